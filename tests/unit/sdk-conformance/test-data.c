/* SPDX-License-Identifier: MIT
 *
 * test-data.c: classes of data hold what they are for. */
#include "data.h"

#include <math.h>
#include <string.h>

#include "oracle.h"

enum { N = 1327 };

typedef gboolean (*Wanted) (TinyDType dtype, double x);

static gboolean
is_subnormal (TinyDType dtype, double x)
{
  return x != 0 && fabs (x) < conf_least_normal (dtype);
}

static gboolean
is_negative (TinyDType dtype, double x)
{
  return x < 0;
}

static gboolean
is_near_largest (TinyDType dtype, double x)
{
  return fabs (x) > conf_largest (dtype) / 4;
}

static gboolean
is_infinite (TinyDType dtype, double x)
{
  return isinf (x) != 0;
}

static gboolean
is_negative_zero (TinyDType dtype, double x)
{
  return x == 0 && signbit (x) != 0;
}

static gboolean
is_no_number (TinyDType dtype, double x)
{
  return isnan (x) != 0;
}

static gboolean
is_fraction (TinyDType dtype, double x)
{
  return isfinite (x) && x != trunc (x);
}

static guint
count (ConfClass class, TinyDType dtype, Wanted is_wanted)
{
  gint64 values[N];
  guint n = 0;
  conf_data_fill (class, TINY_OP_ADD, dtype, 0, 7, values, N);
  for (guint i = 0; i < N; i++)
    n += is_wanted (dtype, conf_to_double (values[i]));
  return n;
}

static void
test_floats (void)
{
  for (guint dtype = TINY_DTYPE_F8E4M3; dtype <= TINY_DTYPE_F64; dtype++) {
    g_assert_cmpuint (count (CONF_SIGNED, dtype, is_negative), >, N / 3);
    g_assert_cmpuint (count (CONF_POSITIVE, dtype, is_negative), ==, 0);
    g_assert_cmpuint (count (CONF_SUBNORMAL, dtype, is_subnormal), >, N / 3);
    g_assert_cmpuint (count (CONF_HUGE, dtype, is_near_largest), >, N / 10);
    g_assert_cmpuint (count (CONF_SPECIAL, dtype, is_negative_zero), >, N / 25);
    g_assert_cmpuint (count (CONF_SPECIAL, dtype, is_no_number), >, N / 25);
    g_assert_cmpuint (count (CONF_INTEGER, dtype, is_fraction), ==, 0);
    if (dtype != TINY_DTYPE_F8E4M3)
      g_assert_cmpuint (count (CONF_SPECIAL, dtype, is_infinite), >, N / 25);
  }
}

/* Two operands have every pair of special values, and of boundaries. */
static void
test_pairs (void)
{
  for (guint dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_F64; dtype++)
    for (ConfClass class = CONF_SPECIAL; class <= CONF_BOUNDARY; class ++) {
      if (!conf_class_has (class, dtype, 2) || class == CONF_INTEGER)
        continue;
      gint64 x[N], y[N];
      g_autoptr (GHashTable) pairs
          = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
      conf_data_fill (class, TINY_OP_ADD, dtype, 0, 7, x, N);
      conf_data_fill (class, TINY_OP_ADD, dtype, 1, 7, y, N);
      g_assert_cmpuint (conf_class_get_n_needed (class, dtype, 2), <=, N);
      for (guint i = 0; i < N; i++)
        g_hash_table_add (
            pairs,
            g_strdup_printf ("%" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER "x", x[i], y[i]));
      g_assert_cmpuint (g_hash_table_size (pairs), >=, 100);
    }
}

/* Divisors are not 0, counts are below the width and there is each; a seed gives the same again. */
static void
test_operands (void)
{
  gint64 values[N], again[N];
  for (guint dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++) {
    guint64 seen = 0;
    conf_data_fill (CONF_BOUNDARY, TINY_OP_IDIV, dtype, 1, 7, values, N);
    for (guint i = 0; i < N; i++)
      g_assert_cmpint (values[i], !=, 0);
    conf_data_fill (CONF_SIGNED, TINY_OP_SHR, dtype, 1, 7, values, N);
    for (guint i = 0; i < N; i++) {
      g_assert_cmpuint ((guint64) values[i], <, 8 * tiny_dtype_get_n_bytes (dtype));
      seen |= G_GUINT64_CONSTANT (1) << values[i];
    }
    g_assert_cmpuint (seen, ==, G_MAXUINT64 >> (64 - 8 * tiny_dtype_get_n_bytes (dtype)));
    conf_data_fill (CONF_SIGNED, TINY_OP_ADD, dtype, 1, 7, values, N);
    conf_data_fill (CONF_SIGNED, TINY_OP_ADD, dtype, 1, 7, again, N);
    g_assert_cmpmem (values, sizeof values, again, sizeof again);
    conf_data_fill (CONF_SIGNED, TINY_OP_ADD, dtype, 1, 8, again, N);
    g_assert_true (memcmp (values, again, sizeof values) != 0);
  }
}

/* All numbers of 8 bits, all pairs of them, and all of 16. */
static void
test_all (void)
{
  const gsize n = 65536;
  g_autofree gint64 *x = g_new (gint64, n), *y = g_new (gint64, n);
  g_autofree guint8 *seen = g_malloc0 (n);
  conf_data_fill (CONF_ALL, TINY_OP_ADD, TINY_DTYPE_I8, 0, 7, x, n);
  conf_data_fill (CONF_ALL, TINY_OP_ADD, TINY_DTYPE_I8, 1, 7, y, n);
  for (gsize i = 0; i < n; i++)
    seen[(guint8) x[i] << 8 | (guint8) y[i]]++;
  for (gsize i = 0; i < n; i++)
    g_assert_cmpuint (seen[i], ==, 1);
  conf_data_fill (CONF_ALL, TINY_OP_NEG, TINY_DTYPE_U16, 0, 7, x, n);
  for (gsize i = 0; i < n; i++)
    seen[x[i]]++;
  for (gsize i = 0; i < n; i++)
    g_assert_cmpuint (seen[i], ==, 2);
}

/* Numbers to cast from f32 lie halfway between two of f16 and of bf16, at odd and at even ones. */
static void
test_ties (void)
{
  gint64 values[N];
  conf_data_fill (CONF_SIGNED, TINY_OP_CAST, TINY_DTYPE_F32, 0, 7, values, N);
  for (guint n_bits = 13; n_bits <= 16; n_bits += 3) {
    guint n[2] = { 0 };
    for (guint i = 0; i < N; i++) {
      const float x = (float) conf_to_double (values[i]);
      guint32 u;
      memcpy (&u, &x, sizeof u);
      n[u >> n_bits & 1] += (u & ((1u << n_bits) - 1)) == 1u << (n_bits - 1);
    }
    g_assert_cmpuint (n[0], >, 0);
    g_assert_cmpuint (n[1], >, 0);
  }
}

/* Numbers to cast from f32 lie about the largest of f16, on both sides of where it rounds to infinity, and between its
 * subnormals. */
static void
test_narrow (void)
{
  gint64 values[N];
  guint n_below = 0, n_above = 0, n_between = 0;
  conf_data_fill (CONF_HUGE, TINY_OP_CAST, TINY_DTYPE_F32, 0, 7, values, N);
  for (guint i = 0; i < N; i++) {
    const double x = fabs (conf_to_double (values[i]));
    n_below += x > 65504 && x < 65520;
    n_above += x >= 65520 && x < 65536;
  }
  conf_data_fill (CONF_SUBNORMAL, TINY_OP_CAST, TINY_DTYPE_F32, 0, 7, values, N);
  for (guint i = 0; i < N; i++) {
    const double x = fabs (conf_to_double (values[i])) * 0x1p24;
    n_between += x > 1 && x < 1024 && x != floor (x);
  }
  g_assert_cmpuint (n_below, >, 0);
  g_assert_cmpuint (n_above, >, 0);
  g_assert_cmpuint (n_between, >, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sdk-conformance/data/floats", test_floats);
  g_test_add_func ("/sdk-conformance/data/pairs", test_pairs);
  g_test_add_func ("/sdk-conformance/data/operands", test_operands);
  g_test_add_func ("/sdk-conformance/data/all", test_all);
  g_test_add_func ("/sdk-conformance/data/ties", test_ties);
  g_test_add_func ("/sdk-conformance/data/narrow", test_narrow);
  return g_test_run ();
}
