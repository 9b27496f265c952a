/* SPDX-License-Identifier: MIT
 *
 * corpus-attention.c: attention, by its formula and as one call, and softmax, at several sizes, with and without
 * gradients.
 *
 * Letters: B batch, H heads, T rows, d width of a head. */
#include <math.h>

#include "replay.h"

typedef struct {
  const char *name;
  gint64 shape[4];
  guint n_inputs;
  TinyTensor *(*build) (TinyTensor *const *x, gint64 width);
} Row;

static TinyTensor *
formula (TinyTensor *const *x, gint64 width)
{
  TinyTensor *scores = tiny_tensor_matmul (x[0], tiny_tensor_transpose (x[1], -1, -2));
  scores = tiny_tensor_mul_number (scores, 1 / sqrt ((double) width));
  return tiny_tensor_matmul (tiny_tensor_softmax (scores, -1), x[2]);
}

static TinyTensor *
fused (TinyTensor *const *x, gint64 width)
{
  return tiny_tensor_scaled_dot_product_attention (x[0], x[1], x[2], NULL, 0, TRUE, 0, FALSE);
}

static TinyTensor *
softmax (TinyTensor *const *x, gint64 width)
{
  return tiny_tensor_softmax (x[0], -1);
}

static TinyTensor *
log_softmax (TinyTensor *const *x, gint64 width)
{
  return tiny_tensor_log_softmax (x[0], -1);
}

/* (B, H, T, d) each */
static const Row rows[] = {
  { "attention", { 1, 4, 64, 64 }, 3, formula },
  { "attention", { 2, 8, 256, 64 }, 3, formula },
  { "attention", { 1, 12, 1000, 64 }, 3, formula },
  { "attention", { 1, 1, 2048, 128 }, 3, formula },
  { "attention", { 1, 12, 4096, 64 }, 3, formula },
  { "causal", { 1, 4, 64, 64 }, 3, fused },
  { "causal", { 1, 12, 1024, 64 }, 3, fused },
  { "softmax", { 1, 1, 7, 5 }, 1, softmax },
  { "softmax", { 1, 1, 128, 1000 }, 1, softmax },
  { "softmax", { 1, 1, 4096, 4096 }, 1, softmax },
  { "softmax", { 1, 1, 1, 1048576 }, 1, softmax },
  { "log-softmax", { 1, 1, 64, 50257 }, 1, log_softmax },
};

static void
make_inputs (const Row *row, gboolean wants_gradients, TinyTensor **inputs)
{
  for (guint i = 0; i < row->n_inputs + 1; i++) {
    inputs[i] = g_object_ref_sink (
        tiny_tensor_empty (TINY_DTYPE_F32, row->shape, G_N_ELEMENTS (row->shape)));
    tiny_tensor_realize (inputs[i], NULL);
    tiny_tensor_set_requires_grad (inputs[i], wants_gradients && i < row->n_inputs);
  }
  replay_begin ();
}

static gboolean
run_forward (gconstpointer data, GError **error)
{
  const Row *row = data;
  TinyTensor *inputs[4];
  make_inputs (row, FALSE, inputs);
  TinyTensor *out = g_object_ref_sink (row->build (inputs, row->shape[3]));
  return tiny_tensor_realize (out, error);
}

/* The gradients of a weighted sum. */
static gboolean
run_backward (gconstpointer data, GError **error)
{
  const Row *row = data;
  TinyTensor *inputs[4], *gradients[3];
  make_inputs (row, TRUE, inputs);
  TinyTensor *result = row->build (inputs, row->shape[3]);
  TinyTensor *loss = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (result, inputs[row->n_inputs]), NULL, 0, FALSE));
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  for (guint i = 0; i < row->n_inputs; i++)
    gradients[i] = tiny_tensor_get_grad (inputs[i]);
  return tiny_tensor_realize_many (gradients, row->n_inputs, error);
}

void
replay_add_attention (GArray *cases)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *name = g_strdup_printf ("%s:%dx%dx%dx%d", rows[i].name,
                                             (int) rows[i].shape[0], (int) rows[i].shape[1],
                                             (int) rows[i].shape[2], (int) rows[i].shape[3]);
    replay_add (cases, run_forward, &rows[i], "%s/forward", name);
    replay_add (cases, run_backward, &rows[i], "%s/backward", name);
  }
}
