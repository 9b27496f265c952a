/* SPDX-License-Identifier: MIT
 *
 * test-float.c: small floats round as the exact arithmetic of their values says.
 *
 * The reference lists all finite values of a format in order and finds the nearest: halfway points
 * between neighbours are exact in double, so the comparison is. */
#include "base/tiny-float.h"

#include <math.h>
#include <string.h>

#include "../case-fails.h"

typedef struct {
  const char *name;
  TinyDType dtype;
  guint n_bits, mantissa_bits, exponent_bits;
  double largest, smallest;
  gboolean has_infinity;
} Case;

static const Case cases[] = {
  { "f16", TINY_DTYPE_F16, 16, 10, 5, 65504, 0x1p-24, TRUE },
  { "bf16", TINY_DTYPE_BF16, 16, 7, 8, 0x1.fep127, 0x1p-133, TRUE },
  { "f8e4m3", TINY_DTYPE_F8E4M3, 8, 3, 4, 448, 0x1p-9, FALSE },
  { "f8e5m2", TINY_DTYPE_F8E5M2, 8, 2, 5, 57344, 0x1p-16, TRUE },
};

/* The value of a non-negative code, by the definition of the format. */
static double
value_of (const Case *c, guint code)
{
  guint fraction = code % (1u << c->mantissa_bits), exponent = code >> c->mantissa_bits;
  double unit = pow (2, 1 - ((1 << (c->exponent_bits - 1)) - 1)) / (1 << c->mantissa_bits);
  return exponent == 0
             ? fraction * unit
             : (fraction + (1u << c->mantissa_bits)) * unit * pow (2, (int) exponent - 1);
}

static guint
count_finite (const Case *c)
{
  guint n = 0;
  while (value_of (c, n) < c->largest)
    n++;
  return n + 1;
}

/* The code nearest to value >= 0, ties to the even code; n stands for "too large". */
static guint
nearest (const double *values, guint n, double value)
{
  guint low = 0, high = n; /* values[low] <= value < values[high] */
  while (high - low > 1) {
    guint middle = (low + high) / 2;
    if (values[middle] <= value)
      low = middle;
    else
      high = middle;
  }
  double above
      = low + 1 < n ? values[low + 1] : values[n - 1] + (values[n - 1] - values[n - 2]);
  double half = values[low] + (above - values[low]) / 2;
  if (value > half || (value == half && low % 2 == 1))
    return low + 1;
  return low;
}

static void
check (const Case *c, const double *values, guint n, double value)
{
  guint64 sign = signbit (value) ? 1u << (c->n_bits - 1) : 0;
  guint code = nearest (values, n, fabs (value));
  guint64 bits = tiny_float_to_bits (c->dtype, value);
  if (code == n && !c->has_infinity) /* its one NaN, positive */
    sign = 0;
  if (bits != (sign | code) && !g_test_failed ()) /* the first tells enough */
    CASE_FAILS ("%s: %a gives %#" G_GINT64_MODIFIER "x, should be %#" G_GINT64_MODIFIER "x",
                c->name, value, bits, sign | code);
}

static void
test_round (gconstpointer data)
{
  const Case *c = data;
  guint n = count_finite (c);
  g_autofree double *values = g_new (double, n);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  for (guint i = 0; i < n; i++)
    values[i] = value_of (c, i);
  g_assert_cmpfloat (values[1], ==, c->smallest);
  for (guint i = 0; i < n; i++) {
    double next = i + 1 < n ? values[i + 1] : values[i] + (values[i] - values[i - 1]);
    double half = values[i] + (next - values[i]) / 2;
    const double near[] = { values[i],
                            half,
                            nextafter (half, 0),
                            nextafter (half, INFINITY),
                            nextafter (values[i], INFINITY),
                            values[i] + (next - values[i]) * g_rand_double (rand) };
    for (guint j = 0; j < G_N_ELEMENTS (near); j++) {
      check (c, values, n, near[j]);
      check (c, values, n, -near[j]);
    }
  }
  for (guint i = 0; i < 20000; i++)
    check (c, values, n,
           ldexp (g_rand_double_range (rand, -2, 2), g_rand_int_range (rand, -160, 140)));
  check (c, values, n, 5e-324);
  check (c, values, n, 1.7e308);
}

static void
test_all_codes (gconstpointer data)
{
  const Case *c = data;
  guint n = count_finite (c);
  for (guint64 bits = 0; bits < G_GUINT64_CONSTANT (1) << c->n_bits; bits++) {
    double value = tiny_float_from_bits (c->dtype, bits);
    guint code = (guint) bits & ((1u << (c->n_bits - 1)) - 1);
    if (code < n) {
      g_assert_cmpfloat (fabs (value), ==, value_of (c, code));
      g_assert_cmpuint (signbit (value) != 0, ==, bits >> (c->n_bits - 1));
    } else if (code == n && c->has_infinity) {
      g_assert_true (isinf (value) && (value < 0) == (bits != code));
    } else {
      g_assert_true (isnan (value));
      continue;
    }
    g_assert_cmpuint (tiny_float_to_bits (c->dtype, value), ==, bits);
    g_assert_cmpfloat (tiny_float_round (c->dtype, value), ==, value);
  }
  guint64 nan_bits = tiny_float_to_bits (c->dtype, -NAN);
  g_assert_true (isnan (tiny_float_from_bits (c->dtype, nan_bits)));
  g_assert_cmpuint (nan_bits >> (c->n_bits - 1), ==, 0);
}

static void
test_infinity (void)
{
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F16, INFINITY), ==, 0x7c00);
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F16, -65520), ==, 0xfc00);
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_BF16, -INFINITY), ==, 0xff80);
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F8E5M2, 1e9), ==, 0x7c);
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F8E4M3, 464), ==, 0x7e);
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F8E4M3, 464.001), ==, 0x7f);
  g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F8E4M3, -INFINITY), ==, 0x7f);
}

/* The generic code against the compiler's own float, and _Float16 where it has one. */
static void
test_compiler (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  for (guint i = 0; i < 200000; i++) {
    guint64 word = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
    if (i % 2 == 0) /* exponents near those of float and half */
      word = (word & G_GUINT64_CONSTANT (0x800fffffffffffff))
             | (guint64) (1023 + g_rand_int_range (rand, -152, 130)) << 52;
    if (i % 4 == 0)
      word = (word & G_GUINT64_CONSTANT (0x800fffffffffffff))
             | (guint64) (1023 + g_rand_int_range (rand, -27, 18)) << 52;
    double value;
    memcpy (&value, &word, sizeof value);
    if (isnan (value))
      continue;
    float f = (float) value;
    guint32 f_bits;
    memcpy (&f_bits, &f, sizeof f_bits);
    g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F32, value), ==, f_bits);
    g_assert_cmpfloat (tiny_float_from_bits (TINY_DTYPE_F32, f_bits), ==, f);
#ifdef __FLT16_MANT_DIG__
    _Float16 h = (_Float16) value;
    guint16 h_bits;
    memcpy (&h_bits, &h, sizeof h_bits);
    g_assert_cmphex (tiny_float_to_bits (TINY_DTYPE_F16, value), ==, h_bits);
    g_assert_cmpfloat (tiny_float_from_bits (TINY_DTYPE_F16, h_bits), ==, (double) h);
#endif
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *round = g_strdup_printf ("/base/float/round/%s", cases[i].name);
    g_autofree char *codes = g_strdup_printf ("/base/float/all-codes/%s", cases[i].name);
    g_test_add_data_func (round, &cases[i], test_round);
    g_test_add_data_func (codes, &cases[i], test_all_codes);
  }
  g_test_add_func ("/base/float/infinity", test_infinity);
  g_test_add_func ("/base/float/compiler", test_compiler);
  return g_test_run ();
}
