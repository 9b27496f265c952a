/* SPDX-License-Identifier: MIT
 *
 * test-quant.c: blocks of weights: decoded on the default device (DEV=…) to the very bits that the
 * formats' definition gives, encoded within half a step, multiplied within a bound. */
#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "nn/tiny-recorder.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-quant.h"

#define T(name) tiny_tensor_##name

enum { BLOCK = 32 };

static const struct {
  const char *name;
  TinyQuant format;
  gsize n_bytes;
} formats[] = { { "q8_0", TINY_QUANT_Q8_0, 34 }, { "q4_0", TINY_QUANT_Q4_0, 18 } };

/* f16 by its definition (IEEE 754-2019, 3.4): nothing of the library's. */
static float
read_half (const guint8 *bytes)
{
  guint bits = bytes[0] | (guint) bytes[1] << 8;
  int exponent = (int) (bits >> 10 & 31);
  float fraction = (float) (bits & 1023), sign = bits >> 15 ? -1 : 1;
  if (exponent == 31)
    return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0)
    return sign * ldexpf (fraction, -24);
  return sign * ldexpf (1024 + fraction, exponent - 25);
}

/* What the definition of the format says of weight @i of a block. */
static float
read_weight (TinyQuant format, const guint8 *block, guint i)
{
  float d = read_half (block);
  if (format == TINY_QUANT_Q8_0)
    return d * (float) (gint8) block[2 + i];
  guint8 byte = block[2 + i % 16];
  return d * (float) ((i < 16 ? byte & 15 : byte >> 4) - 8);
}

/* Random blocks; the first have scales at the ends: 0, subnormal, largest, infinite, NaN. */
static guint8 *
random_blocks (guint f, gsize n, gboolean finite, guint32 seed)
{
  static const guint16 special[]
      = { 0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00 };
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  gsize n_bytes = n * formats[f].n_bytes;
  guint8 *blocks = g_malloc (n_bytes);
  for (gsize i = 0; i < n_bytes; i++)
    blocks[i] = (guint8) g_rand_int (random);
  for (gsize i = 0; i < n; i++) {
    guint8 *block = blocks + i * formats[f].n_bytes;
    guint16 scale
        = (guint16) (0x2000 + g_rand_int_range (random, 0, 0x1400)); /* 2^-7 to 2^-2 */
    if (!finite && i < G_N_ELEMENTS (special))
      scale = special[i];
    block[0] = (guint8) scale;
    block[1] = (guint8) (scale >> 8);
  }
  return blocks;
}

static TinyTensor *
as_tensor (guint f, const guint8 *blocks, gsize n)
{
  gint64 n_bytes = (gint64) (n * formats[f].n_bytes);
  return T (new_from_data) (NULL, TINY_DTYPE_U8, &n_bytes, 1, blocks, (gsize) n_bytes);
}

static void
test_decode (gconstpointer data)
{
  if (skips_without_device ())
    return;
  enum { N = 60 };
  guint f = GPOINTER_TO_UINT (data);
  g_autofree guint8 *blocks = random_blocks (f, N, FALSE, 5);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) weights = g_object_ref_sink (T (dequantize) (
      as_tensor (f, blocks, N), formats[f].format, (gint64[]){ 3, 5, 4 * BLOCK }, 3));
  float found[N * BLOCK];
  T (copy_data) (weights, found, sizeof found, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N * BLOCK; i++) {
    const guint8 *block = blocks + i / BLOCK * formats[f].n_bytes;
    float expected = read_weight (formats[f].format, block, i % BLOCK);
    guint32 a, b;
    memcpy (&a, &found[i], sizeof a);
    memcpy (&b, &expected, sizeof b);
    if (isnan (expected) ? !isnan (found[i]) : a != b) {
      CASE_FAILS ("weight %u is %.9g (%08x), not %.9g (%08x)", i, found[i], a, expected, b);
      return;
    }
  }
}

/* A step is a 127th or an 8th of the block's largest magnitude, in f16. */
static void
test_encode (gconstpointer data)
{
  if (skips_without_device ())
    return;
  enum { N = 40 };
  guint f = GPOINTER_TO_UINT (data);
  g_autoptr (GRand) random = g_rand_new_with_seed (9);
  float weights[N * BLOCK], found[N * BLOCK];
  for (guint i = 0; i < N * BLOCK; i++)
    weights[i] = i < BLOCK ? 0
                           : (float) g_rand_double_range (random, -1, 1)
                                 * ldexpf (1, (int) (i / BLOCK) % 9);
  gint64 n = N * BLOCK;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      T (new_from_data) (NULL, TINY_DTYPE_F32, &n, 1, weights, sizeof weights));
  TinyTensor *blocks = T (quantize) (x, formats[f].format, &error);
  g_assert_no_error (error);
  g_assert_cmpint (T (get_n_elements) (blocks), ==, N * formats[f].n_bytes);
  g_autoptr (TinyTensor) again
      = g_object_ref_sink (T (dequantize) (blocks, formats[f].format, &n, 1));
  T (copy_data) (again, found, sizeof found, &error);
  g_assert_no_error (error);
  g_object_unref (blocks);
  for (guint b = 0; b < N; b++) {
    float most = 0;
    for (guint i = 0; i < BLOCK; i++)
      most = MAX (most, fabsf (weights[b * BLOCK + i]));
    /* Q4_0 has no +8: what is opposite to the largest may be a whole step off. */
    float step = formats[f].format == TINY_QUANT_Q8_0 ? most / 127 / 2 : most / 8;
    for (guint i = b * BLOCK; i < (b + 1) * BLOCK; i++)
      g_assert_cmpfloat (fabsf (found[i] - weights[i]), <=, step + most * 0x1p-10f);
  }
}

/* Known bytes: what ggml's reference makes of 0, 1, … 31 and of their opposites. */
static void
test_bytes (void)
{
  float weights[BLOCK];
  guint8 q8[34], q4[18];
  for (guint i = 0; i < BLOCK; i++)
    weights[i] = (float) i - 31;
  tiny_quant_encode (TINY_QUANT_Q8_0, weights, BLOCK, q8);
  tiny_quant_encode (TINY_QUANT_Q4_0, weights, BLOCK, q4);
  g_assert_cmpfloat (read_half (q8), ==, 0.244140625f); /* 31 / 127 in f16 */
  g_assert_cmpint ((gint8) q8[2], ==, -127);
  g_assert_cmpint ((gint8) q8[2 + 30], ==, -4);
  g_assert_cmpint ((gint8) q8[2 + 31], ==, 0);
  g_assert_cmpfloat (read_half (q4), ==, 3.875f);
  g_assert_cmpint (q4[2], ==, 0 | 4 << 4);
  g_assert_cmpint (q4[2 + 15], ==, 4 | 8 << 4);
  g_assert_cmpuint (tiny_quant_get_n_bytes (TINY_QUANT_Q8_0, 64), ==, 68);
  g_assert_cmpuint (tiny_quant_get_n_bytes (TINY_QUANT_Q4_0, 33), ==, 0);
}

/* (M, K) of blocks times (K) or (K, N) against f64; K of one block, of a prime number of them. */
static void
check_matmul (guint f, gint64 m, gint64 k, gint64 n)
{
  gsize n_blocks = (gsize) (m * k / BLOCK);
  g_autofree guint8 *blocks = random_blocks (f, n_blocks, TRUE, (guint32) (m + k + n));
  g_autofree float *x = g_new (float, k *n), *found = g_new (float, m *n);
  g_autoptr (GRand) random = g_rand_new_with_seed (3);
  for (gint64 i = 0; i < k * n; i++)
    x[i] = (float) g_rand_double_range (random, -1, 1);
  TinyTensor *weights = T (dequantize) (as_tensor (f, blocks, n_blocks), formats[f].format,
                                        (gint64[]){ m, k }, 2);
  TinyTensor *right = T (new_from_data) (NULL, TINY_DTYPE_F32, (gint64[]){ k, n },
                                         n > 1 ? 2 : 1, x, (gsize) (k * n) * sizeof (float));
  g_autoptr (TinyTensor) y = g_object_ref_sink (T (matmul) (weights, right));
  g_autoptr (GError) error = NULL;
  T (copy_data) (y, found, (gsize) (m * n) * sizeof (float), &error);
  g_assert_no_error (error);
  for (gint64 i = 0; i < m; i++)
    for (gint64 j = 0; j < n; j++) {
      double sum = 0, size = 0;
      for (gint64 c = 0; c < k; c++) {
        const guint8 *block = blocks + (gsize) ((i * k + c) / BLOCK) * formats[f].n_bytes;
        double part = (double) read_weight (formats[f].format, block, (guint) (c % BLOCK))
                      * (double) x[c * n + j];
        sum += part;
        size += fabs (part);
      }
      /* Higham, Accuracy and Stability, 3.1: k rounded additions and products. */
      g_assert_cmpfloat (fabs (found[i * n + j] - sum), <=, (double) (k + 1) * 0x1p-24 * size);
    }
}

static void
test_matmul (gconstpointer data)
{
  if (skips_without_device ())
    return;
  guint f = GPOINTER_TO_UINT (data);
  check_matmul (f, 1, 32, 1);
  check_matmul (f, 5, 7 * 32, 1);
  check_matmul (f, 64, 4 * 32, 1);
  check_matmul (f, 13, 3 * 32, 7);
  check_matmul (f, 64, 64, 64);
}

static void
check_refused (TinyTensor *tensor, const char *message)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_assert_nonnull (T (get_error) (owned));
  g_assert_cmpstr (T (get_error) (owned)->message, ==, message);
}

static void
test_refused (void)
{
  if (skips_without_device ())
    return;
  guint8 blocks[68] = { 0 };
#define U8(n) as_tensor (0, blocks, (n) / 34)
  check_refused (T (dequantize) (U8 (68), TINY_QUANT_Q8_0, (gint64[]){ 2, 16 }, 2),
                 "dequantize: the last size of (2, 16) is no multiple of 32");
  check_refused (T (dequantize) (U8 (34), TINY_QUANT_Q8_0, (gint64[]){ 2, 32 }, 2),
                 "dequantize: (2, 32) takes 68 bytes, there are 34");
  check_refused (T (dequantize) (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 34 }, 1),
                                 TINY_QUANT_Q8_0, (gint64[]){ 32 }, 1),
                 "dequantize: blocks are u8, not f32");
  check_refused (T (dequantize) (U8 (34), (TinyQuant) 99, (gint64[]){ 32 }, 1),
                 "dequantize: 99 is no format");
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) odd
      = g_object_ref_sink (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 4, 31 }, 2));
  g_assert_null (T (quantize) (odd, TINY_QUANT_Q4_0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_autoptr (TinyTensor) none = g_object_ref_sink (T (dequantize) (
      T (zeros) (TINY_DTYPE_U8, (gint64[]){ 0 }, 1), TINY_QUANT_Q8_0, (gint64[]){ 0, 32 }, 2));
  g_clear_error (&error);
  g_assert_true (T (realize) (none, &error));
}

/* The product of a quarter of the unpacked weights and @right, computed, and by how many kernels. */
static TinyTensor *
multiply_unpacked (TinyTensor *packed, TinyTensor *right, guint *out_n_kernels)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyRecorder) recorder = tiny_recorder_new ();
  /* What does not depend on an input would be no part of a recording. */
  tiny_recorder_begin (recorder, &packed, 1, &error);
  g_assert_no_error (error);
  TinyTensor *weights = T (float) (T (unpack_int4) (packed, 0, TRUE));
  TinyTensor *y = g_object_ref_sink (T (matmul) (T (mul) (weights, T (scalar) (0.25)), right));
  tiny_recorder_end (recorder, &y, 1, &error);
  g_assert_no_error (error);
  *out_n_kernels = tiny_recorder_get_n_kernels (recorder);
  return y;
}

/* Weights of four bits with a scale for each row, times a vector and a matrix: read as bytes by one kernel. */
static void
test_int4 (void)
{
  if (skips_without_device ())
    return;
  enum { M = 24, K = 64, N = 3 };
  g_autoptr (GRand) random = g_rand_new_with_seed (11);
  g_autoptr (GError) error = NULL;
  gint8 weights[M * K];
  float x[K * N], found[M * N];
  for (guint i = 0; i < M * K; i++)
    weights[i] = (gint8) g_rand_int_range (random, -8, 8);
  for (guint i = 0; i < K * N; i++)
    x[i] = (float) g_rand_int_range (random, -64, 64) / 16;
  g_autoptr (TinyTensor) packed = g_object_ref_sink (T (pack_int4) (
      T (new_from_data) (NULL, TINY_DTYPE_I8, (gint64[]){ M, K }, 2, weights, sizeof weights)));
  g_assert_cmpuint (T (get_n_bytes) (packed), ==, M * K / 2);
  g_assert_true (T (realize) (packed, &error));
  for (guint n = 1; n <= N; n += N - 1) {
    TinyTensor *right = T (new_from_data) (NULL, TINY_DTYPE_F32, (gint64[]){ K, n },
                                           n > 1 ? 2 : 1, x, K * n * sizeof (float));
    guint n_kernels;
    g_autoptr (TinyTensor) y = multiply_unpacked (packed, right, &n_kernels);
    g_assert_cmpuint (n_kernels, ==, 1);
    T (copy_data) (y, found, M * n * sizeof (float), &error);
    g_assert_no_error (error);
    for (guint i = 0; i < M; i++)
      for (guint j = 0; j < n; j++) {
        double sum = 0;
        for (guint k = 0; k < K; k++)
          sum += 0.25 * weights[i * K + k] * (double) x[k * n + j];
        g_assert_cmpfloat (found[i * n + j], ==, sum); /* exact in f32 */
      }
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
    static const struct {
      const char *name;
      GTestDataFunc test;
    } rows[]
        = { { "decode", test_decode }, { "encode", test_encode }, { "matmul", test_matmul } };
    for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
      g_autofree char *path
          = g_strdup_printf ("/tensor/quant/%s/%s", formats[f].name, rows[i].name);
      g_test_add_data_func (path, GUINT_TO_POINTER (f), rows[i].test);
    }
  }
  g_test_add_func ("/tensor/quant/bytes", test_bytes);
  g_test_add_func ("/tensor/quant/refused", test_refused);
  g_test_add_func ("/tensor/quant/int4", test_int4);
  return g_test_run ();
}
