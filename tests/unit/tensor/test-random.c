/* SPDX-License-Identifier: MIT
 *
 * test-random.c: what is drawn has the distribution that was asked for, as the oracle evaluates it. No
 * device is needed; that devices draw the same is test-device.c's. Seeds are fixed, bounds are of
 * five standard deviations. */
#include <math.h>

#include "oracle.h"
#include "tensor/tiny-tensor-operations.h"

#define T(name) tiny_tensor_##name
#define SIZES(...)                                                                             \
  (gint64[]) { __VA_ARGS__ }

static const Oracle no_params;

/* Consumes @tensor. */
static double *
draw (TinyTensor *tensor, gsize n)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  gsize n_found;
  double *found = oracle_eval (&no_params, owned, &n_found);
  g_assert_cmpuint (n_found, ==, n);
  return found;
}

static void
check_moments (TinyTensor *tensor, gsize n, double mean, double variance, double fourth)
{
  g_autofree double *x = draw (tensor, n);
  double sum = 0, squares = 0;
  for (gsize i = 0; i < n; i++) {
    sum += x[i] - mean;
    squares += (x[i] - mean) * (x[i] - mean);
  }
  g_assert_cmpfloat (fabs (sum / (double) n), <, 5 * sqrt (variance / (double) n));
  g_assert_cmpfloat (fabs (squares / (double) n - variance), <,
                     5 * sqrt ((fourth - variance * variance) / (double) n));
}

static void
test_moments (void)
{
  T (manual_seed) (1);
  check_moments (T (normal) (TINY_DTYPE_F32, SIZES (4000), 1, 3, 2), 4000, 3, 4, 48);
  check_moments (T (kaiming_normal) (TINY_DTYPE_F32, SIZES (400, 10), 2, 0), 4000, 0, 0.2,
                 0.12);
  double bound = sqrt (6.0 / 410);
  check_moments (T (glorot_uniform) (TINY_DTYPE_F32, SIZES (400, 10), 2), 4000, 0,
                 bound * bound / 3, bound * bound * bound * bound / 5);
  check_moments (T (scaled_uniform) (TINY_DTYPE_F32, SIZES (4000), 1), 4000, 0, 1.0 / 4000 / 3,
                 1.0 / 4000 / 4000 / 5);
  check_moments (T (bernoulli) (T (full) (TINY_DTYPE_F32, SIZES (4000), 1, 0.3)), 4000, 0.3,
                 0.21, 0.21 * (1 - 3 * 0.21));
  TinyTensor *like = T (zeros) (TINY_DTYPE_F32, SIZES (4000), 1);
  check_moments (T (rand_like) (like, TINY_DTYPE_VOID), 4000, 0.5, 1.0 / 12, 1.0 / 80);
}

/* All of 0 … n-1, once; of three, all orders about as often. */
static void
test_permutations (void)
{
  T (manual_seed) (2);
  for (guint n = 0; n <= 1000; n = n * 3 + 1) {
    g_autofree double *x = draw (T (randperm) (TINY_DTYPE_I32, n), n);
    g_autofree guint8 *seen = g_new0 (guint8, n + 1);
    for (guint i = 0; i < n; i++) {
      g_assert_true (x[i] >= 0 && x[i] < n && !seen[(guint) x[i]]);
      seen[(guint) x[i]] = 1;
    }
  }
  guint orders[9] = { 0 };
  for (guint i = 0; i < 600; i++) {
    g_autofree double *x = draw (T (randperm) (TINY_DTYPE_I64, 3), 3);
    orders[(guint) (3 * x[0] + x[1])]++;
  }
  for (guint i = 0; i < 9; i++)
    g_assert_true (i % 4 == 0 ? orders[i] == 0 : orders[i] > 54 && orders[i] < 146);
}

/* Positions and what is at them know nothing of each other. */
static void
test_permutation_spreads (void)
{
  enum { N = 3000 };
  T (manual_seed) (3);
  g_autofree double *x = draw (T (randperm) (TINY_DTYPE_I32, N), N);
  double covariance = 0, neighbours = 0, middle = (N - 1) / 2.0, variance = N * N / 12.0;
  for (guint i = 0; i < N; i++)
    covariance += (i - middle) * (x[i] - middle) / variance / N;
  for (guint i = 0; i + 1 < N; i++)
    neighbours += (x[i] - middle) * (x[i + 1] - middle) / variance / N;
  g_assert_cmpfloat (fabs (covariance), <, 5 / sqrt (N));
  g_assert_cmpfloat (fabs (neighbours), <, 5 / sqrt (N));
}

static void
test_multinomial (void)
{
  T (manual_seed) (4);
  TinyTensor *parts[]
      = { T (full) (TINY_DTYPE_F32, SIZES (1), 1, 1), T (zeros) (TINY_DTYPE_F32, SIZES (1), 1),
          T (full) (TINY_DTYPE_F32, SIZES (1), 1, 3) };
  g_autoptr (TinyTensor) weights = g_object_ref_sink (T (cat) (parts, 3, 0));
  g_autofree double *x = draw (T (multinomial) (weights, 2000, TRUE), 2000);
  guint counts[3] = { 0 };
  for (guint i = 0; i < 2000; i++)
    counts[(guint) x[i]]++;
  g_assert_cmpuint (counts[1], ==, 0);
  g_assert_cmpfloat (fabs (counts[2] - 1500.0), <, 5 * sqrt (2000 * 0.25 * 0.75));
  guint first = 0;
  for (guint i = 0; i < 400; i++) {
    g_autofree double *two = draw (T (multinomial) (weights, 2, FALSE), 2);
    g_assert_true (two[0] != two[1] && two[0] != 1 && two[1] != 1);
    first += two[0] == 2;
  }
  g_assert_cmpfloat (fabs (first - 300.0), <, 5 * sqrt (400 * 0.25 * 0.75));
  g_autoptr (TinyTensor) four = g_object_ref_sink (T (multinomial) (weights, 4, FALSE));
  g_assert_cmpstr (T (get_error) (four)->message, ==,
                   "multinomial: 4 of 3 cannot be drawn without replacement");
}

/* The bits that are drawn are a function of the seed and of how many draws there were. */
static void
test_threefry (void)
{
  enum { N = 50, N_DRAWS = 3 };
  const guint64 seed = 0x123456789abcdef0;
  T (manual_seed) (seed);
  for (guint draws = 0; draws < N_DRAWS; draws++) {
    g_autofree double *bits = draw (T (random_bits) (SIZES (N), 1), N);
    TinyTensor *high = T (lshift) (T (full) (TINY_DTYPE_U64, NULL, 0, draws), T (scalar) (32));
    TinyTensor *counters = T (add) (T (arange) (TINY_DTYPE_U64, 0, N, 1), high);
    /* A double holds half of it exactly. */
    TinyTensor *key = T (lshift) (T (full) (TINY_DTYPE_U64, NULL, 0, (double) (seed >> 32)),
                                  T (scalar) (32));
    key = T (add) (key, T (full) (TINY_DTYPE_U64, NULL, 0, (double) (seed & G_MAXUINT32)));
    g_autofree double *words
        = draw (T (cast) (T (threefry) (counters, key), TINY_DTYPE_U32), N);
    for (guint i = 0; i < N; i++)
      g_assert_cmpfloat (words[i], ==, bits[i]);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/random/moments", test_moments);
  g_test_add_func ("/tensor/random/permutations", test_permutations);
  g_test_add_func ("/tensor/random/permutation-spreads", test_permutation_spreads);
  g_test_add_func ("/tensor/random/multinomial", test_multinomial);
  g_test_add_func ("/tensor/random/threefry", test_threefry);
  return g_test_run ();
}
