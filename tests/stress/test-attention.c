/* SPDX-License-Identifier: MIT
 *
 * test-attention.c: attention from its plain formula, forward and backward, never has the matrix of
 * scores in memory, and gives what it gives with that stored. */
#include <math.h>

#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "tiny.h"

/* Sizes that no tile divides; one matrix of scores is larger than all else together. */
enum { HEADS = 63, ROWS = 274, WIDTH = 5, N_INPUTS = 4 };
static const guint64 SCORE_BYTES = (guint64) HEADS * ROWS * ROWS * sizeof (float);

typedef struct {
  gboolean stores; /* the scores */
  gboolean masks;  /* what comes later */
} Case;

static TinyTensor *
make_input (guint seed)
{
  gsize n = (gsize) HEADS * ROWS * WIDTH;
  g_autofree float *values = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    values[i] = (float) ((i * 2654435761u + seed * 40503u) % 1009) / 504.5f - 1;
  gint64 shape[] = { HEADS, ROWS, WIDTH };
  g_autoptr (GError) error = NULL;
  TinyTensor *x
      = tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, 3, values, n * sizeof *values);
  g_object_ref_sink (x);
  tiny_tensor_realize (x, &error);
  g_assert_no_error (error);
  return x;
}

/* 0 where column ≤ row, -∞ elsewhere. */
static TinyTensor *
make_mask (void)
{
  g_autofree float *values = g_new (float, ROWS *ROWS);
  for (guint i = 0; i < ROWS * ROWS; i++)
    values[i] = i % ROWS <= i / ROWS ? 0 : -INFINITY;
  gint64 shape[] = { ROWS, ROWS };
  return tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, 2, values,
                                    ROWS * ROWS * sizeof *values);
}

static TinyTensor *
formula (const Case *self, TinyTensor *const *in)
{
  TinyTensor *scores = tiny_tensor_matmul (in[0], tiny_tensor_transpose (in[1], -1, -2));
  scores = tiny_tensor_mul_number (scores, 1 / sqrt (WIDTH));
  if (self->masks)
    scores = tiny_tensor_add (scores, make_mask ());
  if (self->stores)
    scores = tiny_tensor_contiguous (scores);
  TinyTensor *weights = tiny_tensor_softmax (scores, -1);
  if (self->stores)
    weights = tiny_tensor_contiguous (weights);
  return tiny_tensor_matmul (weights, in[2]);
}

/* What all of @tensors hold, one after the other; in @out_bytes, the memory it took beside. */
static float *
compute (TinyTensor *const *tensors, guint n, guint64 *out_bytes)
{
  g_autoptr (GError) error = NULL;
  const gsize n_each = (gsize) HEADS * ROWS * WIDTH;
  TinyDeviceMemory before, after;
  TinyDevice *device
      = tiny_engine_get_device (tiny_runtime_get_default_device (&error), &error);
  g_assert_no_error (error);
  tiny_runtime_sweep (TRUE);
  tiny_device_reset_peak (device);
  tiny_device_get_memory (device, &before);
  tiny_tensor_realize_many (tensors, n, &error);
  g_assert_no_error (error);
  tiny_device_get_memory (device, &after);
  *out_bytes = after.peak_bytes - before.live_bytes;
  float *values = g_new (float, n_each *n);
  for (guint i = 0; i < n; i++)
    g_assert_true (tiny_tensor_copy_data (tensors[i], values + i * n_each,
                                          n_each * sizeof *values, &error));
  return values;
}

static float *
forward (const Case *self, TinyTensor *const *in, guint64 *out_bytes)
{
  g_autoptr (TinyTensor) result = g_object_ref_sink (formula (self, in));
  return compute (&result, 1, out_bytes);
}

static float *
backward (const Case *self, TinyTensor *const *in, guint64 *out_bytes)
{
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < 3; i++) {
    tiny_tensor_clear_grad (in[i]);
    tiny_tensor_set_requires_grad (in[i], TRUE);
  }
  g_autoptr (TinyTensor) loss = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (formula (self, in), in[3]), NULL, 0, FALSE));
  tiny_tensor_backward (loss, &error);
  g_assert_no_error (error);
  TinyTensor *gradients[3];
  for (guint i = 0; i < 3; i++)
    gradients[i] = tiny_tensor_get_grad (in[i]);
  return compute (gradients, 3, out_bytes);
}

static void
check (const Case *cases,
       float *(*run) (const Case *self, TinyTensor *const *in, guint64 *out_bytes),
       guint n_results)
{
  TinyTensor *in[N_INPUTS];
  guint64 bytes, stored_bytes;
  for (guint i = 0; i < N_INPUTS; i++)
    in[i] = make_input (i + 1);
  Case stored = *cases;
  stored.stores = TRUE;
  g_autofree float *got = run (cases, in, &bytes);
  g_autofree float *expected = run (&stored, in, &stored_bytes);
  g_test_message ("%" G_GUINT64_FORMAT " bytes, %" G_GUINT64_FORMAT
                  " with scores of %" G_GUINT64_FORMAT,
                  bytes, stored_bytes, SCORE_BYTES);
  g_assert_cmpuint (bytes, <, SCORE_BYTES / 2);
  g_assert_cmpuint (stored_bytes, >, SCORE_BYTES);
  for (gsize i = 0; i < (gsize) HEADS * ROWS * WIDTH * n_results; i++)
    g_assert_cmpfloat_with_epsilon (got[i], expected[i], 2e-6 * (1 + fabsf (expected[i])));
  for (guint i = 0; i < N_INPUTS; i++)
    g_object_unref (in[i]);
}

static void
test_forward (gconstpointer data)
{
  check (data, forward, 1);
}

static void
test_backward (gconstpointer data)
{
  check (data, backward, 3);
}

int
main (int argc, char **argv)
{
  static const Case plain = { FALSE, FALSE }, masked = { FALSE, TRUE };
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/stress/attention/forward", &plain, test_forward);
  g_test_add_data_func ("/stress/attention/forward-masked", &masked, test_forward);
  g_test_add_data_func ("/stress/attention/backward", &plain, test_backward);
  g_test_add_data_func ("/stress/attention/backward-masked", &masked, test_backward);
  return g_test_run ();
}
