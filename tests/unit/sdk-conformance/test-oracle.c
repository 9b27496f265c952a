/* SPDX-License-Identifier: MIT
 *
 * test-oracle.c: the suite's own exact results are those of exact-values.py, which has no float unit. */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../case-fails.h"
#include "ir/tiny-eval.h"

typedef struct {
  char text[256];
  TinyOp op;
  TinyDType from, to;
  guint n;
  gint64 args[3];
  guint64 bits;
  gboolean is_real;
  long double value;
} Line;

static double
read_double (const char *word)
{
  guint64 bits = g_ascii_strtoull (word, NULL, 16);
  double value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static gboolean
read_line (FILE *file, Line *out)
{
  if (fgets (out->text, sizeof out->text, file) == NULL)
    return FALSE;
  g_auto (GStrv) words = g_strsplit (g_strchomp (out->text), " ", -1);
  out->op = tiny_op_from_string (words[0], -1);
  g_assert_true (tiny_dtype_from_string (words[1], &out->from));
  g_assert_true (tiny_dtype_from_string (words[2], &out->to));
  guint at = 3;
  for (out->n = 0; strcmp (words[at], "=") != 0; at++) {
    guint64 raw = g_ascii_strtoull (words[at], NULL, 16);
    out->args[out->n++] = conf_decode (out->from, &raw, 0);
  }
  out->bits = g_ascii_strtoull (words[++at], NULL, 16);
  out->is_real = words[at + 1] != NULL;
  if (out->is_real)
    out->value = (long double) read_double (words[at + 1]) + read_double (words[at + 2]);
  return TRUE;
}

static void
check_line (const Line *line)
{
  ConfTruth truth;
  guint64 bits = 0;
  conf_oracle (line->op, line->from, line->to, line->args, line->n, &truth);
  if (truth.kind == CONF_TRUTH_ANY) {
    CASE_FAILS ("%s: the oracle says nothing", line->text);
    return;
  }
  conf_encode (line->to, &bits, 0, truth.bits);
  if (bits != line->bits)
    CASE_FAILS ("%s: the oracle says %" G_GINT64_MODIFIER "x", line->text, bits);
  if (!line->is_real || truth.kind != CONF_TRUTH_REAL)
    return;
  long double error = fabsl (truth.value - line->value) / fabsl (line->value);
  if (!(error <= CONF_ORACLE_ERROR))
    CASE_FAILS ("%s: the oracle is off by 2^%.1Lf of it", line->text, log2l (error));
}

/* Every line of exact-values.py. */
static void
test_exact_values (void)
{
  FILE *file = fopen (EXACT_VALUES, "r");
  Line line;
  guint n = 0;
  g_assert_nonnull (file);
  for (; read_line (file, &line); n++)
    check_line (&line);
  fclose (file);
  g_assert_cmpuint (n, >, 100000);
}

/* A product that is rounded before the sum is as right as one that is not; of a number and a NaN either is
 * the larger. */
static void
test_two_right_results (void)
{
  ConfTruth truth;
  const double a = 1 + 0x1p-12, c = -1;
  gint64 args[] = { conf_from_double (a), conf_from_double (a), conf_from_double (c) };
  conf_oracle (TINY_OP_MULACC, TINY_DTYPE_F32, TINY_DTYPE_F32, args, 3, &truth);
  g_assert_cmpfloat (conf_to_double (truth.bits), ==, fma (a, a, c));
  g_assert_cmpfloat (conf_to_double (truth.other), ==, 0x1p-11);
  args[1] = conf_from_double (NAN);
  conf_oracle (TINY_OP_MAX, TINY_DTYPE_F32, TINY_DTYPE_F32, args, 2, &truth);
  g_assert_cmpfloat (conf_to_double (truth.bits), ==, a);
  g_assert_true (conf_is_nan (TINY_DTYPE_F32, truth.other));
}

/* What the contract leaves open is said to be open. */
static void
test_unspecified (void)
{
  static const struct {
    TinyOp op;
    TinyDType from, to;
    gint64 x, y;
  } rows[] = { { TINY_OP_IDIV, TINY_DTYPE_I32, TINY_DTYPE_I32, 1, 0 },
               { TINY_OP_MOD, TINY_DTYPE_U8, TINY_DTYPE_U8, 1, 0 },
               { TINY_OP_SHL, TINY_DTYPE_I32, TINY_DTYPE_I32, 1, 32 },
               { TINY_OP_SHR, TINY_DTYPE_I8, TINY_DTYPE_I8, 1, -1 } };
  ConfTruth truth;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const gint64 args[] = { rows[i].x, rows[i].y };
    conf_oracle (rows[i].op, rows[i].from, rows[i].to, args, 2, &truth);
    g_assert_cmpint (truth.kind, ==, CONF_TRUTH_ANY);
  }
  const gint64 large[] = { conf_from_double (2147483648.0), conf_from_double (NAN) };
  for (guint i = 0; i < G_N_ELEMENTS (large); i++) {
    conf_oracle (TINY_OP_CAST, TINY_DTYPE_F64, TINY_DTYPE_I32, &large[i], 1, &truth);
    g_assert_cmpint (truth.kind, ==, CONF_TRUTH_ANY);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sdk-conformance/oracle/exact-values", test_exact_values);
  g_test_add_func ("/sdk-conformance/oracle/two-right-results", test_two_right_results);
  g_test_add_func ("/sdk-conformance/oracle/unspecified", test_unspecified);
  return g_test_run ();
}
