/* SPDX-License-Identifier: MIT
 *
 * tensor-check.c: evaluating a tensor's graph by the model, and computing it. */
#include "tensor-check.h"

#include <math.h>

#include "engine/tiny-runtime.h"
#include "ir/tiny-text.h"
#include "model.h"
#include "oracle.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_NODE = 1 << 21 };

TinyTensor *
conf_tensor_new (const ConfSubject *subject,
                 ConfClass data,
                 TinyDType dtype,
                 const gint64 *shape,
                 guint n_dims,
                 guint slot)
{
  gsize n = 1, width = tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < n_dims; i++)
    n *= (gsize) shape[i];
  g_autofree gint64 *values = g_new (gint64, n + 1);
  g_autofree guint8 *bytes = g_malloc (n * width + 8);
  /* Sums of products of any size would leave the range of a narrow float. */
  gboolean is_narrow = data == CONF_SIGNED && tiny_dtype_is_float (dtype) && width < 4;
  conf_data_fill (is_narrow ? CONF_POSITIVE : data, TINY_OP_ADD, dtype, slot, subject->seed,
                  values, n);
  for (gsize i = 0; i < n; i++)
    if (is_narrow && (i * 2654435761u + slot * 40503u) >> 13 & 1)
      values[i] = conf_from_double (-conf_to_double (values[i]));
  for (gsize i = 0; i < n; i++)
    conf_encode (dtype, bytes, i, values[i]);
  return tiny_tensor_new_from_data (tiny_device_get_name (subject->device), dtype, shape,
                                    n_dims, bytes, n * width);
}

/* The graph of @value as text, and its cells; NULL: it is too large for the model. */
static Cell *
evaluate (const ConfSubject *subject, TinyTensor *value, char **out_text)
{
  Cell *cells = NULL;
  model_target = subject->target;
  tiny_runtime_lock ();
  TinyNode *node = tiny_tensor_get_node (value);
  *out_text = tiny_graph_print (tiny_runtime_get_graph (), node);
  if (!model_eval (tiny_runtime_get_graph (), &node, 1, MAX_NODE, &cells))
    g_clear_pointer (&cells, g_free);
  tiny_runtime_unlock ();
  return cells;
}

typedef struct {
  gsize n_known, n_wrong, first, last;
  double worst; /* part of the bound */
} Tally;

static Tally
compare (TinyDType dtype, const Cell *cells, GBytes *data, gsize n)
{
  Tally tally = { 0 };
  for (gsize i = 0; i < n; i++) {
    gint64 got = model_decode (dtype, g_bytes_get_data (data, NULL), i);
    if (isinf (cells[i].bound))
      continue;
    tally.n_known++;
    if (cells[i].bound > 0) {
      double error = fabs (conf_to_double (got) - conf_to_double (cells[i].bits));
      /* Reports have no infinities. */
      tally.worst = MAX (tally.worst,
                         isfinite (error) ? MIN (error / cells[i].bound, 0x1p1000) : 0x1p1000);
    }
    if (model_admits (dtype, &cells[i], got))
      continue;
    if (tally.n_wrong++ == 0)
      tally.first = i;
    tally.last = i;
  }
  return tally;
}

static void
say_wrong (
    ConfTrial *trial, TinyTensor *value, const Cell *cells, GBytes *data, const Tally *tally)
{
  TinyDType dtype = tiny_tensor_get_dtype (value);
  const Cell *cell = &cells[tally->first];
  gint64 bits = model_decode (dtype, g_bytes_get_data (data, NULL), tally->first);
  g_autofree char *got = conf_value_to_string (dtype, bits),
                  *wanted = conf_value_to_string (dtype, cell->bits);
  double off = fabs (conf_to_double (bits) - conf_to_double (cell->bits));
  g_autofree char *distance
      = tiny_dtype_is_float (dtype) && cell->bound > 0 ? g_strdup_printf (
            "; off by %.4g, %.4g times the bound of %.4g", off, off / cell->bound, cell->bound)
                                                       : g_strdup ("; nothing is rounded here");
  conf_fail (trial,
             "%" G_GSIZE_FORMAT " of %" G_GINT64_FORMAT
             " elements wrong, the first at %" G_GSIZE_FORMAT ", the last at %" G_GSIZE_FORMAT
             ": got %s, wanted %s%s",
             tally->n_wrong, tiny_tensor_get_n_elements (value), tally->first, tally->last, got,
             wanted, distance);
}

gsize
conf_tensor_check (ConfTrial *trial,
                   const ConfSubject *subject,
                   TinyTensor *value,
                   TinyInstrOp op)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  g_object_ref_sink (value);
  g_autoptr (TinyTensor) owned = value;
  TinyDType dtype = tiny_tensor_get_dtype (value);
  gsize n = (gsize) tiny_tensor_get_n_elements (value);
  if (tiny_tensor_get_error (value) != NULL) {
    conf_fail (trial, "the tensor cannot be made: %s", tiny_tensor_get_error (value)->message);
    return 0;
  }
  g_autofree Cell *cells = evaluate (subject, value, &text);
  if (!conf_check (trial, cells != NULL, "the tensor is too large to be modelled"))
    return 0;
  g_autoptr (GBytes) data = tiny_tensor_get_data (value, &error);
  if (data == NULL) {
    conf_check_error (trial, g_steal_pointer (&error), "computing it");
    conf_attach (trial, ".tir", text);
    return 0;
  }
  Tally tally = compare (dtype, cells, data, n);
  if (tiny_dtype_is_float (dtype) && tally.n_known > 0)
    conf_record_error (trial, op, dtype, tally.worst, 1, "bound");
  if (tally.n_wrong > 0) {
    say_wrong (trial, value, cells, data, &tally);
    conf_attach (trial, ".tir", text);
  }
  conf_check (trial, tally.n_known > 0 || n == 0, "nothing is known of any element");
  return tally.n_known;
}
