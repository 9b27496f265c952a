/* SPDX-License-Identifier: MIT
 *
 * corpus-scans.c: sums, products and largest values up to each position, of long rows, of many rows and of columns. */
#include "replay.h"

typedef struct {
  const char *name;
  gint64 shape[2];
  int axis;
  TinyTensor *(*build) (TinyTensor *x, int axis);
} Row;

static TinyTensor *
largest (TinyTensor *x, int axis)
{
  TinyTensor *values, *positions;
  tiny_tensor_cummax (x, axis, &values, &positions);
  return values;
}

static const Row rows[] = {
  { "cumsum", { 1, 4194304 }, 1, tiny_tensor_cumsum },
  { "cumsum", { 2048, 2048 }, 0, tiny_tensor_cumsum },
  { "cumsum", { 2048, 2048 }, 1, tiny_tensor_cumsum },
  { "cumsum", { 1001, 1003 }, 1, tiny_tensor_cumsum },
  { "cumprod", { 1024, 1024 }, 1, tiny_tensor_cumprod },
  { "cummax", { 1024, 1024 }, 1, largest },
  { "logcumsumexp", { 1024, 1024 }, 1, tiny_tensor_logcumsumexp },
};

static gboolean
run_row (const Row *row, gboolean wants_gradient, GError **error)
{
  TinyTensor *x = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, row->shape, 2));
  if (!tiny_tensor_realize (x, error))
    return FALSE;
  replay_begin ();
  TinyTensor *result = g_object_ref_sink (row->build (x, row->axis));
  if (!wants_gradient)
    return tiny_tensor_realize (result, error);
  TinyTensor *gradient;
  TinyTensor *loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (result), NULL, 0, FALSE));
  return tiny_gradient (loss, &x, 1, &gradient, error) && tiny_tensor_realize (gradient, error);
}

static gboolean
run_forward (gconstpointer data, GError **error)
{
  return run_row (data, FALSE, error);
}

static gboolean
run_backward (gconstpointer data, GError **error)
{
  return run_row (data, TRUE, error);
}

void
replay_add_scans (GArray *cases)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *name
        = g_strdup_printf ("%s:%dx%d:%s", rows[i].name, (int) rows[i].shape[0],
                           (int) rows[i].shape[1], rows[i].axis == 0 ? "columns" : "rows");
    replay_add (cases, run_forward, &rows[i], "%s/forward", name);
    replay_add (cases, run_backward, &rows[i], "%s/backward", name);
  }
}
