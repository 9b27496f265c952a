/* SPDX-License-Identifier: MIT
 *
 * test-attention.c: attention from its plain formula, forward and backward, does not have the matrix
 * of scores in memory, and gives what it gives with that stored; and masks. */
#include <math.h>

#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "tiny.h"

enum { N_INPUTS = 4 };

typedef struct {
  gint64 heads, rows, columns, width; /* rows of q; of k and v */
  gboolean stores;                    /* the scores */
  gboolean masks;                     /* what comes later, with numbers that are added */
  gboolean is_causal;                 /* the same by where() */
} Case;

static gsize
count_input (const Case *self, guint i)
{
  gint64 rows = i == 1 || i == 2 ? self->columns : self->rows;
  return (gsize) (self->heads * rows * self->width);
}

static TinyTensor *
make_input (const Case *self, guint input)
{
  gsize n = count_input (self, input);
  g_autofree float *values = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    values[i] = (float) ((i * 2654435761u + input * 40503u) % 1009) / 504.5f - 1;
  gint64 shape[] = { self->heads, (gint64) n / self->heads / self->width, self->width };
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
make_mask (const Case *self)
{
  const gint64 shape[] = { self->rows, self->columns }, n = self->rows * self->columns;
  g_autofree float *values = g_new (float, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = i % self->columns <= i / self->columns ? 0 : -INFINITY;
  return tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, 2, values,
                                    (gsize) n * sizeof *values);
}

static TinyTensor *
formula (const Case *self, TinyTensor *const *in)
{
  TinyTensor *scores = tiny_tensor_matmul (in[0], tiny_tensor_transpose (in[1], -1, -2));
  scores = tiny_tensor_mul_number (scores, 1 / sqrt ((double) self->width));
  if (self->masks)
    scores = tiny_tensor_add (scores, make_mask (self));
  if (self->is_causal) {
    TinyTensor *row = tiny_tensor_arange (TINY_DTYPE_I32, 0, (double) self->rows, 1);
    TinyTensor *column = tiny_tensor_arange (TINY_DTYPE_I32, 0, (double) self->columns, 1);
    row = tiny_tensor_reshape (row, (gint64[]){ self->rows, 1 }, 2);
    scores = tiny_tensor_where (tiny_tensor_le (column, row), scores,
                                tiny_tensor_scalar_float (-INFINITY));
  }
  if (self->stores)
    scores = tiny_tensor_contiguous (scores);
  TinyTensor *weights = tiny_tensor_softmax (scores, -1);
  if (self->stores)
    weights = tiny_tensor_contiguous (weights);
  return tiny_tensor_matmul (weights, in[2]);
}

/* Elements of the first @n gradients, or of one result. */
static gsize
count_results (const Case *self, guint n)
{
  gsize sum = 0;
  for (guint i = 0; i < n; i++)
    sum += count_input (self, i);
  return sum;
}

/* What all of @tensors hold, one after the other; in @out_bytes, the memory it took beside. */
static float *
compute (const Case *self, TinyTensor *const *tensors, guint n, guint64 *out_bytes)
{
  g_autoptr (GError) error = NULL;
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
  float *values = g_new (float, count_results (self, n));
  for (guint i = 0; i < n; i++)
    g_assert_true (tiny_tensor_copy_data (tensors[i], values + count_results (self, i),
                                          count_input (self, i) * sizeof *values, &error));
  return values;
}

static float *
forward (const Case *self, TinyTensor *const *in, guint64 *out_bytes)
{
  g_autoptr (TinyTensor) result = g_object_ref_sink (formula (self, in));
  return compute (self, &result, 1, out_bytes);
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
  return compute (self, gradients, 3, out_bytes);
}

static void
check (const Case *cases,
       float *(*run) (const Case *self, TinyTensor *const *in, guint64 *out_bytes),
       guint n_results)
{
  TinyTensor *in[N_INPUTS];
  guint64 bytes, stored_bytes;
  const guint64 score_bytes
      = (guint64) (cases->heads * cases->rows * cases->columns) * sizeof (float);
  for (guint i = 0; i < N_INPUTS; i++)
    in[i] = make_input (cases, i);
  Case stored = *cases;
  stored.stores = TRUE;
  g_autofree float *got = run (cases, in, &bytes);
  g_autofree float *expected = run (&stored, in, &stored_bytes);
  g_test_message ("%" G_GUINT64_FORMAT " bytes, %" G_GUINT64_FORMAT
                  " with scores of %" G_GUINT64_FORMAT,
                  bytes, stored_bytes, score_bytes);
  g_assert_cmpuint (bytes, <, score_bytes / 2);
  g_assert_cmpuint (stored_bytes, >, score_bytes);
  for (gsize i = 0; i < count_results (cases, n_results); i++)
    g_assert_cmpfloat_with_epsilon (got[i], expected[i], 4e-6 * (1 + fabsf (expected[i])));
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

/* A softmax in which a mask of as many bools is read twice, from more memory than a cache has. */
static void
test_masked_softmax (void)
{
  enum { N = 1536 };
  g_autoptr (GError) error = NULL;
  const gint64 shape[] = { N, N };
  g_autofree guint8 *mask = g_new (guint8, N * N);
  g_autofree float *values = g_new (float, N *N);
  for (guint i = 0; i < N * N; i++) {
    mask[i] = i % 3 != 0;
    values[i] = (float) (i % 17);
  }
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, shape, 2, values, N * N * sizeof *values));
  TinyTensor *gate = tiny_tensor_new_from_data (NULL, TINY_DTYPE_BOOL, shape, 2, mask, N * N);
  TinyTensor *low = tiny_tensor_add_number (tiny_tensor_mul_number (x, 0), -1e30);
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (tiny_tensor_softmax (tiny_tensor_where (gate, x, low), -1));
  tiny_tensor_copy_data (y, values, N * N * sizeof *values, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++) {
    double sum = 0;
    for (guint j = 0; j < N; j++) {
      sum += values[i * N + j];
      g_assert_true (mask[i * N + j] || values[i * N + j] == 0);
    }
    g_assert_cmpfloat_with_epsilon (sum, 1, 1e-5);
  }
}

/* Sizes that no tile divides; one matrix of scores is larger than all else together. The long rows
 * fit the memory of a kernel, but not so often as a tile would copy them. */
static const Case plain = { 63, 274, 274, 5 }, masked = { 63, 274, 274, 5, FALSE, TRUE },
                  causal = { 63, 274, 274, 5, FALSE, FALSE, TRUE };
static const Case long_rows = { 1, 500, 12000, 7 };

/* As long as rows can be that still fit: a kernel's memory is an eighth of the second cache,
 * a row's half of that. */
static void
test_longest (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device
      = tiny_engine_get_device (tiny_runtime_get_default_device (&error), &error);
  g_assert_no_error (error);
  const gint64 cache = (gint64) tiny_device_get_target (device)->cache_bytes[1];
  const gint64 columns = cache > 0 ? MIN (cache / 8 / 4 - 500, 17001) | 1 : 17001;
  const Case longest = { 1, 300, columns, 7 };
  check (&longest, forward, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/stress/attention/forward", &plain, test_forward);
  g_test_add_data_func ("/stress/attention/forward-masked", &masked, test_forward);
  g_test_add_data_func ("/stress/attention/forward-causal", &causal, test_forward);
  g_test_add_func ("/stress/attention/forward-longest", test_longest);
  g_test_add_data_func ("/stress/attention/backward", &plain, test_backward);
  g_test_add_data_func ("/stress/attention/backward-masked", &masked, test_backward);
  g_test_add_data_func ("/stress/attention/backward-long", &long_rows, test_backward);
  g_test_add_func ("/stress/attention/masked-softmax", test_masked_softmax);
  return g_test_run ();
}
