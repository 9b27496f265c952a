/* SPDX-License-Identifier: MIT
 *
 * test-bounds.c: what each kind of bound lets through, and what not. */
#include "bounds.h"

#include <math.h>

#include "ir/tiny-check.h"

static ConfOperation
of_two (TinyOp op, TinyDType dtype, double a, double b)
{
  return (ConfOperation){ .op = op,
                          .from = dtype,
                          .to = dtype,
                          .n = op == TINY_OP_ADD || op == TINY_OP_FDIV || op == TINY_OP_MAX ? 2
                                                                                            : 1,
                          .args = { conf_from_double (a), conf_from_double (b) } };
}

static ConfVerdict
judge (const ConfOperation *operation, const TinyTarget *target, double got)
{
  ConfJudgement judgement;
  conf_judge (operation, target, conf_from_double (got), &judgement);
  return judgement.verdict;
}

static TinyTarget
everything (guint32 flags)
{
  TinyTarget target = { .struct_size = sizeof target, .flags = flags, .dtypes_compute = ~0u };
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    target.ops[i] = ~G_GUINT64_CONSTANT (0);
  return target;
}

/* A sum has one right result, and a zero one sign. */
static void
test_exact (void)
{
  ConfOperation sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, 1, 0x1p-24);
  g_assert_cmpint (judge (&sum, NULL, 1), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&sum, NULL, 1 + 0x1p-23), ==, CONF_WRONG);
  sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, 1, -1);
  g_assert_cmpint (judge (&sum, NULL, 0.0), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&sum, NULL, -0.0), ==, CONF_WRONG);
  sum = of_two (TINY_OP_ADD, TINY_DTYPE_F16, 65504, 32);
  g_assert_cmpint (judge (&sum, NULL, INFINITY), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&sum, NULL, 65504), ==, CONF_WRONG);
  sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, 1, NAN);
  g_assert_cmpint (judge (&sum, NULL, 1), ==, CONF_WRONG);
  g_assert_cmpint (judge (&sum, NULL, -NAN), ==, CONF_RIGHT);
}

/* n units and no more, of the exact result's binade; less for f64; correct rounding in f64's division. */
static void
test_ulps (void)
{
  const double third = 1.0 / 3;
  ConfOperation quotient = of_two (TINY_OP_FDIV, TINY_DTYPE_F32, 1, 3);
  g_assert_cmpint (judge (&quotient, NULL, (float) third), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&quotient, NULL, (float) third + 2 * 0x1p-25), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&quotient, NULL, (float) third + 3 * 0x1p-25), ==, CONF_WRONG);
  quotient = of_two (TINY_OP_FDIV, TINY_DTYPE_F64, 1, 3);
  g_assert_cmpint (judge (&quotient, NULL, third), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&quotient, NULL, nextafter (third, 1)), ==, CONF_WRONG);
  ConfOperation power = of_two (TINY_OP_EXP2, TINY_DTYPE_F32, 200, 0);
  g_assert_cmpint (judge (&power, NULL, INFINITY), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&power, NULL, 0x1.fffffep127), ==, CONF_WRONG);
}

/* Each flag opens what it says, and nothing without it. */
static void
test_flags (void)
{
  const TinyTarget plain = everything (0),
                   flushes = everything (TINY_TARGET_FLUSHES_SUBNORMALS),
                   any_order = everything (TINY_TARGET_REASSOCIATES);
  ConfOperation sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, 0x1p-140, 0x1p-141);
  g_assert_cmpint (judge (&sum, &plain, 0), ==, CONF_WRONG);
  g_assert_cmpint (judge (&sum, &flushes, 0), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&sum, &flushes, 0x1p-140), ==, CONF_RIGHT);
  g_assert_cmpint (judge (&sum, &flushes, 0x1p-142), ==, CONF_WRONG);
  sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, 1, 2);
  g_assert_cmpint (judge (&sum, &flushes, 0), ==, CONF_WRONG);
  sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, INFINITY, -INFINITY);
  g_assert_cmpint (judge (&sum, &plain, 0), ==, CONF_WRONG);
  g_assert_cmpint (judge (&sum, &any_order, 0), ==, CONF_UNSPECIFIED);
  sum = of_two (TINY_OP_ADD, TINY_DTYPE_F32, 1, 2);
  g_assert_cmpint (judge (&sum, &any_order, 3 + 0x1p-22), ==, CONF_WRONG);
  ConfOperation choice = { .op = TINY_OP_WHERE,
                           .from = TINY_DTYPE_F32,
                           .to = TINY_DTYPE_F32,
                           .n = 3,
                           .args = { 1, conf_from_double (0x1p-140), 0 } };
  g_assert_cmpint (judge (&choice, &flushes, 0), ==, CONF_WRONG);
}

/* What the core makes where an op is not declared has the bound of that, in f32 and f64 alone. */
static void
test_made (void)
{
  TinyTarget target = everything (0);
  target.ops[TINY_DTYPE_F64] &= ~TINY_INSTR_BIT (TINY_INSTR_SQRT);
  g_assert_cmpfloat (conf_bound_get_ulps (TINY_OP_SQRT, TINY_DTYPE_F64, NULL), ==, 0);
  g_assert_cmpfloat (conf_bound_get_ulps (TINY_OP_SQRT, TINY_DTYPE_F64, &target), ==, 3);
  g_assert_cmpfloat (conf_bound_get_ulps (TINY_OP_SQRT, TINY_DTYPE_F32, &target), ==, 3);
  target.dtypes_compute &= ~TINY_DTYPE_BIT (TINY_DTYPE_BF16);
  g_assert_true (conf_is_native (&target, TINY_OP_CAST, TINY_DTYPE_BF16, TINY_DTYPE_F32));
  g_assert_false (conf_is_native (&target, TINY_OP_CAST, TINY_DTYPE_BF16, TINY_DTYPE_F64));
  target.ops[TINY_DTYPE_F32] &= ~TINY_INSTR_BIT (TINY_INSTR_FDIV);
  ConfOperation quotient = of_two (TINY_OP_FDIV, TINY_DTYPE_F32, 1, 0x1p127);
  g_assert_cmpint (judge (&quotient, &target, 0), ==, CONF_UNSPECIFIED);
  quotient = of_two (TINY_OP_FDIV, TINY_DTYPE_F32, 1, 0x1p120);
  g_assert_cmpint (judge (&quotient, &target, 0), ==, CONF_WRONG);
}

/* No bound is as much as half of the digits of its dtype: a result of another size is always seen. */
static void
test_table (void)
{
  const TinyTarget nothing = { .struct_size = sizeof nothing };
  for (guint op = TINY_OP_CAST; op <= TINY_OP_CMPEQ; op++)
    for (guint dtype = TINY_DTYPE_F8E4M3; dtype <= TINY_DTYPE_F64; dtype++) {
      g_assert_cmpfloat (conf_bound_get_ulps (op, dtype, NULL), <=, 4);
      g_assert_cmpfloat (conf_bound_get_ulps (op, dtype, &nothing), <=, 6);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sdk-conformance/bounds/exact", test_exact);
  g_test_add_func ("/sdk-conformance/bounds/ulps", test_ulps);
  g_test_add_func ("/sdk-conformance/bounds/flags", test_flags);
  g_test_add_func ("/sdk-conformance/bounds/made", test_made);
  g_test_add_func ("/sdk-conformance/bounds/table", test_table);
  return g_test_run ();
}
