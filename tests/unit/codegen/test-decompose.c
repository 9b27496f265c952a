/* SPDX-License-Identifier: MIT
 *
 * Proves of every decomposition that it uses nothing but what the target declares, that it types
 * (REF checks every instruction), and that its values are right: exactly where the op is exact,
 * and else within the bound that the table of a test states, in units of the last place against
 * long double arithmetic. */
#include <math.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "base/tiny-float.h"
#include "codegen/tiny-decompose.h"
#include "decompose-setup.h"
#include "ir/tiny-eval.h"

/* ---- transcendental functions against long double ---- */
static long double
recip_exact (long double x)
{
  return 1 / x;
}

typedef struct {
  TinyOp op;
  TinyDType dtype;
  long double (*exact) (long double x);
  double low, high; /* sizes of x, spread evenly over exponents */
  gboolean both_signs;
  double bound; /* ULP */
} FunctionRow;

static const FunctionRow functions[] = {
  { TINY_OP_EXP2, TINY_DTYPE_F32, exp2l, 0x1p-30, 152, TRUE, 1.2 },
  { TINY_OP_EXP2, TINY_DTYPE_F32, exp2l, 124, 150, TRUE, 1.2 },
  { TINY_OP_EXP2, TINY_DTYPE_F64, exp2l, 0x1p-60, 1080, TRUE, 1.2 },
  { TINY_OP_LOG2, TINY_DTYPE_F32, log2l, 0x1p-149, 0x1p127, FALSE, 1.5 },
  { TINY_OP_LOG2, TINY_DTYPE_F32, log2l, 0.5, 2, FALSE, 1.5 },
  { TINY_OP_LOG2, TINY_DTYPE_F64, log2l, 0x1p-1074, 0x1p1023, FALSE, 1.5 },
  { TINY_OP_LOG2, TINY_DTYPE_F64, log2l, 0.5, 2, FALSE, 1.5 },
  { TINY_OP_SIN, TINY_DTYPE_F32, sinl, 0x1p-149, 1, TRUE, 1.5 },
  { TINY_OP_SIN, TINY_DTYPE_F32, sinl, 0.5, 1e4, TRUE, 2 },
  { TINY_OP_SIN, TINY_DTYPE_F32, sinl, 1e4, 0x1p127, TRUE, 2 },
  { TINY_OP_SIN, TINY_DTYPE_F64, sinl, 0x1p-1074, 1, TRUE, 1.5 },
  { TINY_OP_SIN, TINY_DTYPE_F64, sinl, 0.5, 1e4, TRUE, 2 },
  { TINY_OP_SIN, TINY_DTYPE_F64, sinl, 1e4, 0x1p1023, TRUE, 2 },
  { TINY_OP_RECIP, TINY_DTYPE_F32, recip_exact, 0x1p-149, 0x1p127, TRUE, 2 },
  { TINY_OP_RECIP, TINY_DTYPE_F64, recip_exact, 0x1p-1074, 0x1p1023, TRUE, 2 },
  { TINY_OP_SQRT, TINY_DTYPE_F32, sqrtl, 0x1p-149, 0x1p127, FALSE, 2 },
  { TINY_OP_SQRT, TINY_DTYPE_F64, sqrtl, 0x1p-1074, 0x1p1023, FALSE, 2 },
};

enum { N_SAMPLES = N_MOST };

static void
put (void *memory_at, TinyDType dtype, guint i, double value)
{
  if (dtype == TINY_DTYPE_F32)
    ((float *) memory_at)[i] = (float) value;
  else
    ((double *) memory_at)[i] = value;
}

static double
get (const void *memory_at, TinyDType dtype, guint i)
{
  return dtype == TINY_DTYPE_F32 ? ((const float *) memory_at)[i]
                                 : ((const double *) memory_at)[i];
}

/* In units of the last place of @exact's binade; infinite when one is a NaN, or the infinity or
 * zero has another sign. */
static double
error_in_ulp (TinyDType dtype, double found, long double exact)
{
  gint mantissa = tiny_dtype_infos[dtype].mantissa_bits,
       least = dtype == TINY_DTYPE_F32 ? -126 : -1022;
  double rounded = dtype == TINY_DTYPE_F32 ? (float) exact : (double) exact;
  if (isnan (found) || isnan (rounded))
    return isnan (found) && isnan (rounded) ? 0 : INFINITY;
  if (isinf (found) && isinf (rounded))
    return found == rounded ? 0 : INFINITY;
  if (signbit (found) != signbit (rounded))
    return INFINITY;
  gint exponent = exact == 0 ? least : MAX (ilogbl (exact), least);
  return (double) (fabsl (found - exact) / ldexpl (1, exponent - mantissa));
}

static void
test_function (gconstpointer data)
{
  const FunctionRow *row = data;
  static const double edges[] = { 0.0,
                                  -0.0,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  __builtin_nan ("0x3fffffffff"), /* low bits of f32's too */
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  -2,
                                  1e-310,
                                  -1e-310,
                                  0x1p-149,
                                  0x1p-1074,
                                  3.4e38,
                                  1.7e308,
                                  -3.4e38,
                                  127,
                                  128,
                                  127.99999,
                                  -126,
                                  -149,
                                  -150,
                                  -151,
                                  1023,
                                  1024,
                                  -1022,
                                  -1074,
                                  -1075,
                                  1e22,
                                  0x1.921fb6p+0,
                                  0x1.921fb54442d18p+1,
                                  0x1.6ac5b262ca1ffp+849 };
  TinyTarget targets[] = { least_target (TRUE), cpu_target (), shader_target () };
  gsize n_bytes = tiny_dtype_get_n_bytes (row->dtype);
  g_autofree guint8 *x = g_malloc (N_SAMPLES * n_bytes), *y = g_malloc (N_SAMPLES * n_bytes);
  for (guint i = 0; i < N_SAMPLES; i++) {
    double t = (double) i / N_SAMPLES + g_test_rand_double_range (0, 1.0 / N_SAMPLES);
    double value = exp2 (log2 (row->low) + t * (log2 (row->high) - log2 (row->low)));
    put (x, row->dtype, i, row->both_signs && g_test_rand_bit () ? -value : value);
    if (i < G_N_ELEMENTS (edges))
      put (x, row->dtype, i, edges[i]);
    else if (row->op == TINY_OP_SIN && row->high > 1
             && i % 8 == 0) /* next to a zero of the sine: hardest */
      put (x, row->dtype, i, i * G_PI);
  }
  for (guint i = 0; i < (row->dtype == TINY_DTYPE_F64 ? 2 : G_N_ELEMENTS (targets)); i++) {
    Setup setup;
    double worst = 0;
    setup_init (&setup, &targets[i], 1, &row->dtype, i == 0 ? 1 : 8);
    run (&setup, tiny_node_unary (setup.graph, row->op, setup.args[0]), N_SAMPLES,
         (void *[]){ y, x });
    for (guint j = 0; j < N_SAMPLES; j++) {
      double at = get (x, row->dtype, j), found = get (y, row->dtype, j);
      double error = error_in_ulp (row->dtype, found, row->exact (at));
      worst = MAX (worst, error);
      if (!(error <= row->bound)) {
        CASE_FAILS ("%s.%s(%a) on %u gave %a, exactly %La: %g ULP", tiny_op_to_string (row->op),
                    tiny_dtype_to_string (row->dtype), at, i, found, row->exact (at), error);
        break;
      }
    }
    g_test_message ("worst %.3f ULP", worst);
    tiny_graph_free (setup.graph);
  }
}

/* A long operation becomes as many instructions as the schedule and the heuristic count for it. */
static void
test_steps (void)
{
  static const TinyOp ops[] = { TINY_OP_EXP2, TINY_OP_LOG2, TINY_OP_SIN };
  const TinyTarget target = cpu_target ();
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++) {
    const TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_F32 };
    guint n_steps = 0;
    g_autoptr (GError) error = NULL;
    Setup setup;
    setup_init (&setup, &target, 2, dtypes, 1);
    TinyNode *root
        = tiny_node_new (setup.graph, ops[i], TINY_DTYPE_F32, 1,
                         (guint) tiny_op_infos[ops[i]].least, setup.args, 0, NULL, NULL);
    root = tiny_decompose (setup.graph, root, &target, &error);
    g_assert_no_error (error);
    g_autoptr (GPtrArray) order = tiny_graph_toposort (setup.graph, &root, 1);
    for (guint j = 0; j < order->len; j++)
      n_steps += tiny_op_is_elementwise (((TinyNode *) order->pdata[j])->op);
    if (n_steps < 0.8 * tiny_op_count_steps (ops[i])
        || n_steps > 1.2 * tiny_op_count_steps (ops[i]))
      CASE_FAILS ("%s: %u steps", tiny_op_to_string (ops[i]), n_steps);
    tiny_graph_free (setup.graph);
  }
}

/* ---- every op on every dtype against the evaluator ---- */
static void
put_value (guint8 *to, TinyDType dtype, TinyDType in_memory, guint i, gint64 value)
{
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype), step = tiny_dtype_get_n_bytes (in_memory);
  guint64 bits = tiny_dtype_is_float (dtype)
                     ? tiny_float_to_bits (dtype, tiny_eval_to_double (value))
                     : (guint64) value;
  bits = GUINT64_TO_LE (bits);
  memcpy (to + i * step, &bits, n_bytes);
}

static gint64
get_value (const guint8 *from, TinyDType dtype, TinyDType in_memory, guint i)
{
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype), step = tiny_dtype_get_n_bytes (in_memory);
  guint64 bits = 0;
  for (gsize j = n_bytes; j < step; j++)
    g_assert_cmpuint (from[i * step + j], ==, 0);
  memcpy (&bits, from + i * step, n_bytes);
  bits = GUINT64_FROM_LE (bits);
  if (tiny_dtype_is_float (dtype))
    return tiny_eval_from_double (dtype, tiny_float_from_bits (dtype, bits));
  return tiny_eval_wrap (dtype, (gint64) bits);
}

/* A few edges often, else any: floats near the values that narrow formats hold, and half between. */
static gint64
random_value (TinyDType dtype, TinyDType near)
{
  static const gint64 ints[] = { 0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 7,
                                 10,
                                 127,
                                 128,
                                 255,
                                 256,
                                 32767,
                                 -32768,
                                 65535,
                                 65536,
                                 G_MAXINT32,
                                 G_MININT32,
                                 G_MAXUINT32,
                                 G_MAXINT64,
                                 G_MININT64,
                                 (1 << 24) + 1,
                                 (G_GINT64_CONSTANT (1) << 62) + 1 };
  static const double floats[]
      = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5, 65520, 464, 61440 };
  guint64 random = (guint64) (guint32) g_test_rand_int () << 32 | (guint32) g_test_rand_int ();
  if (!tiny_dtype_is_float (dtype)) {
    guint pick = g_test_rand_int_range (0, 3 * G_N_ELEMENTS (ints));
    return tiny_eval_wrap (dtype, pick < G_N_ELEMENTS (ints)
                                      ? ints[pick]
                                      : (gint64) random >> g_test_rand_int_range (0, 64));
  }
  guint pick = g_test_rand_int_range (0, 8 * G_N_ELEMENTS (floats));
  if (pick < G_N_ELEMENTS (floats))
    return tiny_eval_from_double (dtype, floats[pick]);
  if (!tiny_dtype_is_float (near))
    return tiny_eval_from_double (
        dtype, ldexp (g_test_rand_double_range (-1, 1), g_test_rand_int_range (0, 40)));
  guint n_bits = 8 * tiny_dtype_get_n_bytes (near);
  double value = tiny_float_from_bits (
      near, n_bits == 64 ? random : random & ((G_GUINT64_CONSTANT (1) << n_bits) - 1));
  double other = tiny_float_from_bits (
      near,
      ((random + 1) & (n_bits == 64 ? G_MAXUINT64 : (G_GUINT64_CONSTANT (1) << n_bits) - 1)));
  if (random >> 60 & 1)
    value = value / 2 + other / 2;
  if (random >> 61 & 1)
    value = nextafter (value, random >> 62 & 1 ? INFINITY : -INFINITY);
  return tiny_eval_from_double (dtype, value);
}

/* Ops that a target without them makes of others and that then round more than once. */
static double
tolerance (TinyOp op, TinyDType dtype)
{
  switch (op) {
  case TINY_OP_RECIP:
  case TINY_OP_SQRT:
    return tiny_dtype_get_n_bytes (dtype) < 4 ? 1 : 2;
  case TINY_OP_FDIV:
    return tiny_dtype_get_n_bytes (dtype) < 4 ? 1 : 3;
  case TINY_OP_EXP2:
  case TINY_OP_LOG2:
  case TINY_OP_SIN:
    return 2;
  default:
    return 0;
  }
}

static gboolean
is_close (TinyDType dtype, gint64 a, gint64 b, double allowed)
{
  if (a == b || !tiny_dtype_is_float (dtype))
    return a == b;
  double x = tiny_eval_to_double (a), y = tiny_eval_to_double (b);
  if (isnan (x) || isnan (y) || signbit (x) != signbit (y))
    return FALSE;
  double steps = fabs (
      (double) (gint64) (tiny_float_to_bits (dtype, x) - tiny_float_to_bits (dtype, y)));
  return steps <= allowed;
}

enum { N_CASES = 4000 };

/* The operands that make sense for @op: shift counts below the width. */
static gint64
operand (TinyOp op, TinyDType dtype, TinyDType to, guint i)
{
  gint64 value = random_value (dtype, op == TINY_OP_CAST ? to : dtype);
  if ((op == TINY_OP_SHL || op == TINY_OP_SHR) && i == 1)
    return (value & 0x7fffffff) % (8 * (gint64) tiny_dtype_get_n_bytes (dtype));
  return value;
}

static void
check_op (const TinyTarget *target, TinyOp op, TinyDType dtype, TinyDType to, gint64 constant)
{
  guint n = (guint) tiny_op_infos[op].least, n_checked = 0;
  TinyDType dtypes[3] = { op == TINY_OP_WHERE ? TINY_DTYPE_BOOL : dtype, dtype, dtype };
  Setup setup;
  g_autofree guint8 *data = g_malloc0 (4 * 8 * N_CASES);
  guint8 *blocks[] = { data, data + 8 * N_CASES, data + 16 * N_CASES, data + 24 * N_CASES };
  gint64 (*args)[3] = g_malloc0 (N_CASES * sizeof *args);
  for (guint i = 0; i < N_CASES; i++)
    for (guint j = 0; j < n; j++) {
      args[i][j] = constant != 0 && j == 1 ? tiny_eval_wrap (dtype, constant)
                                           : operand (op, dtypes[j], to, j);
      put_value (blocks[j + 1], dtypes[j], memory_dtype (target, dtypes[j]), i, args[i][j]);
    }
  setup_init (&setup, target, n, dtypes, g_test_rand_bit () ? 1 : 4);
  if (constant != 0)
    setup.args[1] = tiny_node_new (setup.graph, TINY_OP_CONST, dtype, setup.lanes, 0, NULL,
                                   tiny_eval_wrap (dtype, constant), NULL, NULL);
  TinyNode *root
      = tiny_node_new (setup.graph, op, to, setup.lanes, n, setup.args, 0, NULL, NULL);
  run (&setup, root, N_CASES, (void *const *) blocks);
  for (guint i = 0; i < N_CASES; i++) {
    gint64 expected, found = get_value (blocks[0], to, memory_dtype (target, to), i);
    if (!tiny_eval_alu (op, dtype, to, args[i], n, &expected))
      continue;
    n_checked++;
    /* Which zero MAX gives, and how often MULACC rounds, is the target's choice. */
    if ((op == TINY_OP_MAX
         && tiny_eval_to_double (args[i][0]) == tiny_eval_to_double (args[i][1]))
        || (op == TINY_OP_MULACC && tiny_dtype_is_float (dtype)))
      continue;
    if (!is_close (to, found, expected, tolerance (op, dtype))) {
      CASE_FAILS ("%s of %s to %s: (%" G_GINT64_MODIFIER "x, %" G_GINT64_MODIFIER
                  "x) gave %" G_GINT64_MODIFIER "x, expected %" G_GINT64_MODIFIER "x",
                  tiny_op_to_string (op), tiny_dtype_to_string (dtype),
                  tiny_dtype_to_string (to), args[i][0], args[i][1], found, expected);
      break;
    }
  }
  g_assert_cmpuint (n_checked, >, N_CASES / 10);
  g_free (args);
  tiny_graph_free (setup.graph);
}

/* Whether the evaluator knows @op for @dtype at all. */
static gboolean
is_defined (TinyOp op, TinyDType dtype, TinyDType to)
{
  gint64 one = tiny_dtype_is_float (dtype) ? tiny_eval_from_double (dtype, 1) : 1, out;
  gint64 args[3] = { one, one, one };
  if (op == TINY_OP_WHERE)
    args[0] = 1;
  return tiny_eval_alu (op, dtype, to, args, (guint) tiny_op_infos[op].least, &out);
}

static void
test_ops (gconstpointer which)
{
  TinyTarget target = target_number (GPOINTER_TO_INT (which));
  guint n = 0;
  for (guint op = 0; op < TINY_N_OPS; op++) {
    gboolean is_floor = op == TINY_OP_FLOORDIV || op == TINY_OP_FLOORMOD;
    if (!tiny_op_is_elementwise (op) || op == TINY_OP_BITCAST
        || (tiny_op_infos[op].instr == 0 && !is_floor))
      continue;
    for (guint dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
      for (guint to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++) {
        gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
        guint result = compares ? TINY_DTYPE_BOOL : dtype;
        if ((op != TINY_OP_CAST && to != result) || (op == TINY_OP_CAST && to == dtype)
            || !is_defined (op, dtype, to)
            || (GPOINTER_TO_INT (which) >= 2
                && (dtype == TINY_DTYPE_F64 || to == TINY_DTYPE_F64)))
          continue;
        check_op (&target, op, dtype, to, 0);
        n++;
      }
  }
  g_assert_cmpuint (n, >, 250);
}

static void
test_divide_by_constant (gconstpointer which)
{
  static const gint64 divisors[]
      = { 1,          2,          3,
          5,          7,          10,
          64,         100,        127,
          641,        65535,      65537,
          1 << 30,    G_MAXINT32, -1,
          -3,         -8,         G_MININT32,
          G_MAXINT64, G_MININT64, G_GINT64_CONSTANT (0x5555555555555555),
          G_MAXUINT32 };
  TinyTarget target = target_number (GPOINTER_TO_INT (which));
  for (guint i = 0; i < G_N_ELEMENTS (divisors); i++)
    for (guint dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++) {
      if (tiny_eval_wrap (dtype, divisors[i]) == 0)
        continue;
      check_op (&target, TINY_OP_IDIV, dtype, dtype, divisors[i]);
      check_op (&target, TINY_OP_MOD, dtype, dtype, divisors[i]);
    }
}

/* RECIP and no FDIV: quotients of operands of any size, also where the divisor's reciprocal is no normal number. */
static void
test_divide_by_recip (void)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_F16, TINY_DTYPE_BF16, TINY_DTYPE_F32, TINY_DTYPE_F64 };
  TinyTarget target = cpu_target ();
  for (guint dtype = TINY_DTYPE_F32; dtype <= TINY_DTYPE_F64; dtype++)
    target.ops[dtype] &= ~TINY_INSTR_BIT (TINY_INSTR_FDIV);
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++)
    for (guint n = 0; n < 4; n++)
      check_op (&target, TINY_OP_FDIV, dtypes[i], dtypes[i], 0);
}

/* ---- what cannot be had, what is shared, what is deep ---- */
static void
test_unsupported (void)
{
  TinyTarget target = least_target (FALSE);
  TinyDType dtype = TINY_DTYPE_F64;
  Setup setup;
  g_autoptr (GError) error = NULL;
  setup_init (&setup, &target, 1, &dtype, 1);
  g_assert_null (tiny_decompose (
      setup.graph, tiny_node_unary (setup.graph, TINY_OP_NEG, setup.args[0]), &target, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "least"));
  g_assert_nonnull (strstr (error->message, "neg of f64"));
  g_assert_nonnull (strstr (error->message, "compute in f32"));
  tiny_graph_free (setup.graph);
}

static void
test_shape_of_result (void)
{
  TinyTarget target = least_target (TRUE);
  TinyDType dtype = TINY_DTYPE_F32;
  Setup setup;
  setup_init (&setup, &target, 1, &dtype, 1);
  /* 2^20 paths, 20 nodes: sharing has to stay, and a chain deeper than any stack has to pass. */
  TinyNode *x = setup.args[0];
  for (guint i = 0; i < 20; i++)
    x = tiny_node_binary (setup.graph, TINY_OP_SUB, x, x);
  TinyNode *made = tiny_decompose (setup.graph, x, &target, NULL);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (setup.graph, &made, 1);
  g_assert_cmpuint (order->len, <, 100);
  for (guint i = 0; i < 300000; i++)
    x = tiny_node_unary (setup.graph, TINY_OP_NEG, x);
  g_assert_nonnull (tiny_decompose (setup.graph, x, &target, NULL));
  /* What the target has is left alone: the very same node. */
  TinyNode *plain = tiny_node_binary (setup.graph, TINY_OP_ADD, setup.args[0], setup.args[0]);
  g_assert_true (tiny_decompose (setup.graph, plain, &target, NULL) == plain);
  /* And a*b+c is not contracted, though the target has MULACC. */
  TinyTarget cpu = cpu_target ();
  plain = tiny_node_binary (setup.graph, TINY_OP_ADD,
                            tiny_node_binary (setup.graph, TINY_OP_MUL, plain, plain), plain);
  g_assert_true (tiny_decompose (setup.graph, plain, &cpu, NULL) == plain);
  tiny_graph_free (setup.graph);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  setup_open ();
  g_test_add_data_func ("/codegen/decompose/ops-least", GINT_TO_POINTER (0), test_ops);
  g_test_add_data_func ("/codegen/decompose/ops-cpu", GINT_TO_POINTER (1), test_ops);
  g_test_add_data_func ("/codegen/decompose/ops-small", GINT_TO_POINTER (2), test_ops);
  g_test_add_data_func ("/codegen/decompose/ops-shader", GINT_TO_POINTER (3), test_ops);
  g_test_add_data_func ("/codegen/decompose/divide-by-constant", GINT_TO_POINTER (0),
                        test_divide_by_constant);
  g_test_add_data_func ("/codegen/decompose/divide-by-constant-shader", GINT_TO_POINTER (3),
                        test_divide_by_constant);
  g_test_add_func ("/codegen/decompose/divide-by-recip", test_divide_by_recip);
  g_test_add_func ("/codegen/decompose/steps", test_steps);
  g_test_add_func ("/codegen/decompose/unsupported", test_unsupported);
  g_test_add_func ("/codegen/decompose/shape-of-result", test_shape_of_result);
  for (guint i = 0; i < G_N_ELEMENTS (functions); i++) {
    g_autofree char *path
        = g_strdup_printf ("/codegen/decompose/%s-%s-%g", tiny_op_to_string (functions[i].op),
                           tiny_dtype_to_string (functions[i].dtype), functions[i].high);
    g_test_add_data_func (path, &functions[i], test_function);
  }
  int status = g_test_run ();
  setup_close ();
  return status;
}
