/* SPDX-License-Identifier: MIT
 *
 * test-eval.c: the reference semantics against plain C: every 8-bit pair, and the corners of the
 * others. */
#include "ir/tiny-eval.h"

#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "ir/tiny-check.h"
#include "ir/tiny-node.h"

static gint64
f (TinyDType dtype, double value)
{
  return tiny_eval_from_double (dtype, value);
}

/* ---- integers ---- */
typedef struct {
  TinyOp op;
  gboolean defined;
  int value;
} Row;

static int
floor_div (int x, int y)
{
  return (int) floor ((double) x / y);
}

/* All pairs of 8-bit numbers; plain int arithmetic is wide enough to be obviously right. */
static void
check_pair (TinyDType dtype, int x, int y)
{
  gboolean shift = y >= 0 && y < 8, divides = y != 0;
  int d = divides ? y : 1, s = shift ? y : 0;
  const Row rows[] = {
    { TINY_OP_ADD, TRUE, x + y },
    { TINY_OP_SUB, TRUE, x - y },
    { TINY_OP_MUL, TRUE, x * y },
    { TINY_OP_MAX, TRUE, x > y ? x : y },
    { TINY_OP_IDIV, divides, x / d },
    { TINY_OP_MOD, divides, x % d },
    { TINY_OP_FLOORDIV, divides, floor_div (x, d) },
    { TINY_OP_FLOORMOD, divides, x - d * floor_div (x, d) },
    { TINY_OP_AND, TRUE, x & y },
    { TINY_OP_OR, TRUE, x | y },
    { TINY_OP_XOR, TRUE, x ^ y },
    { TINY_OP_SHL, shift, (int) ((guint) x << s) },
    { TINY_OP_SHR, shift, x >> s },
    { TINY_OP_CMPLT, TRUE, x < y },
    { TINY_OP_CMPNE, TRUE, x != y },
    { TINY_OP_CMPEQ, TRUE, x == y },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    gint64 args[] = { x, y }, out = 77;
    gboolean compares = tiny_op_infos[rows[i].op].op_class == TINY_OP_CLASS_COMPARE;
    TinyDType to = compares ? TINY_DTYPE_BOOL : dtype;
    gint64 expected = compares                 ? rows[i].value
                      : dtype == TINY_DTYPE_I8 ? (gint8) rows[i].value
                                               : (guint8) rows[i].value;
    gboolean defined = tiny_eval_alu (rows[i].op, dtype, to, args, 2, &out);
    if (defined != rows[i].defined || (defined && out != expected))
      CASE_FAILS ("%s.%s(%d, %d) = %d", tiny_op_to_string (rows[i].op),
                  tiny_dtype_to_string (dtype), x, y, (int) out);
  }
}

static void
test_8_bits (void)
{
  for (int x = 0; x < 256 && !g_test_failed (); x++)
    for (int y = 0; y < 256 && !g_test_failed (); y++) {
      check_pair (TINY_DTYPE_U8, x, y);
      check_pair (TINY_DTYPE_I8, (gint8) x, (gint8) y);
    }
}

/* ---- single values ---- */
typedef struct {
  TinyOp op;
  TinyDType dtype, to;
  gint64 args[3];
  gboolean defined;
  gint64 out;
} Case;

#define MIN64 G_MININT64
#define MAX64 G_MAXINT64
#define NAN64 G_GINT64_CONSTANT (0x7ff8000000000000)

static void
check_cases (const Case *cases, guint n)
{
  for (guint i = 0; i < n; i++) {
    const Case *c = &cases[i];
    gint64 out = 77;
    gboolean defined = tiny_eval_alu (c->op, c->dtype, c->to, c->args,
                                      (guint) tiny_op_infos[c->op].least, &out);
    if (defined != c->defined || (defined && out != c->out))
      CASE_FAILS ("case %u: %s of %s: %s %#" G_GINT64_MODIFIER
                  "x, expected %#" G_GINT64_MODIFIER "x",
                  i, tiny_op_to_string (c->op), tiny_dtype_to_string (c->dtype),
                  defined ? "gives" : "undefined", out, c->out);
    if (defined)
      g_assert_true (tiny_eval_is_canonical (c->to, out));
  }
}

#define OP(op, dtype)     TINY_OP_##op, TINY_DTYPE_##dtype, TINY_DTYPE_##dtype
#define TO(op, dtype, to) TINY_OP_##op, TINY_DTYPE_##dtype, TINY_DTYPE_##to

static void
test_wide_integers (void)
{
  const Case cases[] = {
    { OP (ADD, I32), { G_MAXINT32, 1 }, TRUE, G_MININT32 },
    { OP (ADD, I64), { MAX64, 1 }, TRUE, MIN64 },
    { OP (MUL, I64), { MIN64, -1 }, TRUE, MIN64 },
    { OP (IDIV, I64), { MIN64, -1 }, TRUE, MIN64 },
    { OP (MOD, I64), { MIN64, -1 }, TRUE, 0 },
    { OP (IDIV, I32), { G_MININT32, -1 }, TRUE, G_MININT32 },
    { OP (NEG, U32), { 1 }, TRUE, G_MAXUINT32 },
    { OP (NEG, I64), { MIN64 }, TRUE, MIN64 },
    { OP (IDIV, U64), { -1, 2 }, TRUE, MAX64 },
    { OP (MAX, U64), { -1, 2 }, TRUE, -1 },
    { OP (SHR, U64), { -1, 63 }, TRUE, 1 },
    { OP (SHR, I64), { MIN64, 63 }, TRUE, -1 },
    { OP (SHL, I64), { 1, 64 }, FALSE, 0 },
    { OP (SHL, U16), { 3, 15 }, TRUE, 0x8000 },
    { OP (SHL, I32), { 1, -1 }, FALSE, 0 },
    { TO (CMPLT, U64, BOOL), { 1, -1 }, TRUE, 1 },
    { TO (CMPLT, I64, BOOL), { 1, -1 }, TRUE, 0 },
    { OP (MULACC, U8), { 16, 17, 1 }, TRUE, 17 },
    { OP (WHERE, I32), { 1, 5, 6 }, TRUE, 5 },
    { OP (WHERE, I32), { 0, 5, 6 }, TRUE, 6 },
    { OP (ADD, INDEX), { MAX64, 1 }, FALSE, 0 },
    { OP (MUL, INDEX), { MAX64 / 2, 3 }, FALSE, 0 },
    { OP (NEG, INDEX), { MIN64 }, FALSE, 0 },
    { OP (FLOORDIV, INDEX), { -7, 2 }, TRUE, -4 },
    { OP (FLOORMOD, INDEX), { -7, 2 }, TRUE, 1 },
    { OP (FLOORDIV, INDEX), { 7, -2 }, TRUE, -4 },
    { OP (FLOORMOD, INDEX), { 7, -2 }, TRUE, -1 },
    { OP (FLOORMOD, INDEX), { 7, 0 }, FALSE, 0 },
    { OP (FLOORDIV, INDEX), { MIN64, -1 }, FALSE, 0 },
    { OP (MULACC, INDEX), { 3, 4, 5 }, TRUE, 17 },
    { OP (SHL, INDEX), { 3, 4 }, TRUE, 48 },
    { OP (SHL, INDEX), { 3, 62 }, FALSE, 0 },
    { OP (RECIP, I32), { 3 }, FALSE, 0 },
    { OP (SQRT, I32), { 4 }, FALSE, 0 },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

static void
test_bool (void)
{
  for (int x = 0; x < 2; x++)
    for (int y = 0; y < 2; y++) {
      const Case cases[] = {
        { OP (ADD, BOOL), { x, y }, TRUE, x | y },
        { OP (MUL, BOOL), { x, y }, TRUE, x & y },
        { OP (MAX, BOOL), { x, y }, TRUE, x | y },
        { OP (AND, BOOL), { x, y }, TRUE, x & y },
        { OP (OR, BOOL), { x, y }, TRUE, x | y },
        { OP (XOR, BOOL), { x, y }, TRUE, x ^ y },
        { OP (CMPLT, BOOL), { x, y }, TRUE, x < y },
        { OP (CMPNE, BOOL), { x, y }, TRUE, x != y },
        { OP (CMPEQ, BOOL), { x, y }, TRUE, x == y },
        { OP (SUB, BOOL), { x, y }, FALSE, 0 },
        { OP (IDIV, BOOL), { x, y }, FALSE, 0 },
        { OP (WHERE, BOOL), { x, y, !y }, TRUE, x ? y : !y },
      };
      check_cases (cases, G_N_ELEMENTS (cases));
    }
}

static void
test_floats (void)
{
  const TinyDType h = TINY_DTYPE_F16, s = TINY_DTYPE_F32, d = TINY_DTYPE_F64,
                  b = TINY_DTYPE_BF16;
  const Case cases[] = {
    { OP (ADD, F32), { f (s, 0x1p24), f (s, 1) }, TRUE, f (s, 0x1p24) },
    { OP (ADD, F32), { f (s, 0x1p24), f (s, 3) }, TRUE, f (s, 0x1p24 + 4) },
    { OP (ADD, F64), { f (d, 0x1p24), f (d, 1) }, TRUE, f (d, 0x1p24 + 1) },
    { OP (ADD, F16), { f (h, 2048), f (h, 1) }, TRUE, f (h, 2048) },
    { OP (ADD, BF16), { f (b, 256), f (b, 1) }, TRUE, f (b, 256) },
    { OP (MUL, F16), { f (h, 300), f (h, 300) }, TRUE, f (h, INFINITY) },
    { OP (MUL, F32), { f (s, 0x1p-100), f (s, 0x1p-49) }, TRUE, f (s, 0x1p-149) },
    { OP (FDIV, F32), { f (s, 1), f (s, 3) }, TRUE, f (d, 1.0f / 3.0f) },
    { OP (RECIP, F32), { f (s, 0) }, TRUE, f (s, INFINITY) },
    { OP (RECIP, F32), { f (s, -0.0) }, TRUE, f (s, -INFINITY) },
    { OP (SQRT, F32), { f (s, 2) }, TRUE, f (d, sqrtf (2)) },
    { OP (SQRT, F64), { f (d, -1) }, TRUE, NAN64 },
    { OP (EXP2, F32), { f (s, 10) }, TRUE, f (s, 1024) },
    { OP (EXP2, F32), { f (s, 128) }, TRUE, f (s, INFINITY) },
    { OP (LOG2, F32), { f (s, 0) }, TRUE, f (s, -INFINITY) },
    { OP (LOG2, F64), { f (d, -3) }, TRUE, NAN64 },
    { OP (SIN, F64), { f (d, 1) }, TRUE, f (d, sin (1)) },
    { OP (SIN, F32), { f (s, INFINITY) }, TRUE, NAN64 },
    { OP (TRUNC, F32), { f (s, -1.75) }, TRUE, f (s, -1) },
    { OP (TRUNC, F32), { f (s, -0.5) }, TRUE, f (s, -0.0) },
    { OP (NEG, F32), { f (s, 0) }, TRUE, f (s, -0.0) },
    { OP (NEG, F32), { NAN64 }, TRUE, NAN64 },
    { OP (SUB, F32), { f (s, INFINITY), f (s, INFINITY) }, TRUE, NAN64 },
    { OP (MAX, F32), { f (s, -0.0), f (s, 0) }, TRUE, f (s, 0) },
    { OP (MAX, F32), { f (s, 0), f (s, -0.0) }, TRUE, f (s, 0) },
    { OP (MAX, F32), { f (s, -0.0), f (s, -0.0) }, TRUE, f (s, -0.0) },
    { OP (MAX, F32), { f (s, 1), NAN64 }, FALSE, 0 },
    { OP (MAX, F32), { NAN64, NAN64 }, TRUE, NAN64 },
    { OP (MULACC, F16), { f (h, 2), f (h, 3), f (h, 4) }, TRUE, f (h, 10) },
    { TO (CMPLT, F32, BOOL), { NAN64, f (s, 1) }, TRUE, 0 },
    { TO (CMPNE, F32, BOOL), { NAN64, NAN64 }, TRUE, 1 },
    { TO (CMPEQ, F32, BOOL), { NAN64, NAN64 }, TRUE, 0 },
    { TO (CMPNE, F32, BOOL), { f (s, 0), f (s, -0.0) }, TRUE, 0 },
    { OP (IDIV, F32), { f (s, 4), f (s, 2) }, FALSE, 0 },
    { OP (AND, F32), { f (s, 4), f (s, 2) }, FALSE, 0 },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

static void
test_casts (void)
{
  const TinyDType s = TINY_DTYPE_F32, d = TINY_DTYPE_F64, b = TINY_DTYPE_BF16;
  const Case cases[] = {
    { TO (CAST, F32, I32), { f (s, -1.9) }, TRUE, -1 },
    { TO (CAST, F32, U8), { f (s, 255.9) }, TRUE, 255 },
    { TO (CAST, F32, U8), { f (s, 256) }, FALSE, 0 },
    { TO (CAST, F32, U8), { f (s, -0.9) }, TRUE, 0 },
    { TO (CAST, F32, U8), { f (s, -1) }, FALSE, 0 },
    { TO (CAST, F64, I64), { f (d, -0x1p63) }, TRUE, MIN64 },
    { TO (CAST, F64, I64), { f (d, 0x1p63) }, FALSE, 0 },
    { TO (CAST, F64, U64), { f (d, 0x1p63) }, TRUE, MIN64 },
    { TO (CAST, F64, I32), { NAN64 }, FALSE, 0 },
    { TO (CAST, F64, I32), { f (d, 2147483647.5) }, TRUE, G_MAXINT32 },
    { TO (CAST, F32, BOOL), { NAN64 }, TRUE, 1 },
    { TO (CAST, F32, BOOL), { f (s, -0.0) }, TRUE, 0 },
    { TO (CAST, F32, BOOL), { f (s, 0.25) }, TRUE, 1 },
    { TO (CAST, BOOL, F32), { 1 }, TRUE, f (s, 1) },
    { TO (CAST, I32, I8), { 200 }, TRUE, -56 },
    { TO (CAST, I8, U32), { -1 }, TRUE, G_MAXUINT32 },
    { TO (CAST, U64, F64), { -1 }, TRUE, f (d, 0x1p64) },
    { TO (CAST, I64, F64), { -1 }, TRUE, f (d, -1) },
    /* 2^24 + 1 + 2^-30 of it: through double first, the tie would be decided wrongly */
    { TO (CAST, I64, F32),
      { G_GINT64_CONSTANT (0x4000004000000001) },
      TRUE,
      f (d, 0x1.000002p62) },
    { TO (CAST, I64, F32), { G_GINT64_CONSTANT (0x4000004000000000) }, TRUE, f (d, 0x1p62) },
    { TO (CAST, U64, BF16),
      { G_GINT64_CONSTANT (0x4040000000000001) },
      TRUE,
      f (b, 0x1.02p62) },
    { TO (CAST, F64, F16), { f (d, 1 + 0x1p-11 + 0x1p-40) }, TRUE, f (d, 1 + 0x1p-10) },
    { TO (CAST, U64, INDEX), { -1 }, FALSE, 0 },
    { TO (CAST, INDEX, I32), { G_GINT64_CONSTANT (0x100000007) }, TRUE, 7 },
    { TO (BITCAST, F32, U32), { f (s, 1) }, TRUE, 0x3f800000 },
    { TO (BITCAST, F32, I32), { f (s, -1) }, TRUE, (gint32) 0xbf800000 },
    { TO (BITCAST, I32, F32), { 0x3f800000 }, TRUE, f (s, 1) },
    { TO (BITCAST, U32, F32), { 0x7fc00000 }, TRUE, NAN64 },
    { TO (BITCAST, U32, F32), { 0x7fc00001 }, FALSE, 0 },
    { TO (BITCAST, I32, F32), { (gint32) 0xff800000 }, TRUE, f (s, -INFINITY) },
    { TO (BITCAST, U16, F16), { 0x3c00 }, TRUE, f (s, 1) },
    { TO (BITCAST, BF16, U16), { f (b, 1) }, TRUE, 0x3f80 },
    { TO (BITCAST, F8E4M3, U8), { f (s, 448) }, TRUE, 0x7e },
    { TO (BITCAST, F64, I64), { f (d, -0.0) }, TRUE, MIN64 },
    { TO (BITCAST, U8, BOOL), { 2 }, FALSE, 0 },
    { TO (BITCAST, U8, I8), { 255 }, TRUE, -1 },
    { TO (BITCAST, F32, F64), { f (s, 1) }, FALSE, 0 },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

/* float in C is the reference for f32: random operands, all the exact operations. */
static void
test_f32_against_c (void)
{
  static const TinyOp ops[]
      = { TINY_OP_ADD, TINY_OP_SUB, TINY_OP_MUL, TINY_OP_FDIV, TINY_OP_SQRT, TINY_OP_RECIP };
  g_autoptr (GRand) rand = g_rand_new_with_seed (4);
  for (guint i = 0; i < 300000; i++) {
    guint32 words[2] = { g_rand_int (rand), g_rand_int (rand) };
    float x[2];
    if (i % 3 == 0) /* near each other, for cancellation */
      words[1] = words[0] ^ (words[1] & 0x807fffff);
    memcpy (x, words, sizeof x);
    TinyOp op = ops[i % G_N_ELEMENTS (ops)];
    volatile float y = op == TINY_OP_ADD    ? x[0] + x[1]
                       : op == TINY_OP_SUB  ? x[0] - x[1]
                       : op == TINY_OP_MUL  ? x[0] * x[1]
                       : op == TINY_OP_FDIV ? x[0] / x[1]
                       : op == TINY_OP_SQRT ? sqrtf (x[0])
                                            : 1 / x[0];
    gint64 args[] = { f (TINY_DTYPE_F32, x[0]), f (TINY_DTYPE_F32, x[1]) }, out;
    g_assert_true (tiny_eval_alu (op, TINY_DTYPE_F32, TINY_DTYPE_F32, args,
                                  (guint) tiny_op_infos[op].least, &out));
    g_assert_cmphex (out, ==, f (TINY_DTYPE_F64, y));
  }
}

/* Whatever op, dtype and bits: an answer, canonical where there is one, and none for the dtypes
 * that the op does not take. */
static void
test_every_op (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  for (int op = 0; op < TINY_N_OPS; op++) {
    if (!tiny_op_is_elementwise (op))
      continue;
    for (int dtype = TINY_DTYPE_BOOL; dtype < TINY_N_DTYPES; dtype++)
      for (guint i = 0; i < 200; i++) {
        gint64 args[3], out = 0;
        for (guint j = 0; j < 3; j++) {
          gint64 bits = (gint64) ((guint64) g_rand_int (rand) << 32 | g_rand_int (rand));
          bits >>= g_rand_int_range (rand, 0, 64);
          args[j] = tiny_dtype_is_float (dtype)
                        ? f (dtype, ldexp ((double) bits, -g_rand_int_range (rand, 0, 64)))
                        : tiny_eval_wrap (dtype, bits);
        }
        if (op == TINY_OP_WHERE)
          args[0] &= 1;
        TinyOpClass op_class = tiny_op_infos[op].op_class;
        TinyDType to = op_class == TINY_OP_CLASS_COMPARE ? TINY_DTYPE_BOOL : (TinyDType) dtype;
        if (op_class == TINY_OP_CLASS_CONVERT)
          to = (TinyDType) g_rand_int_range (rand, TINY_DTYPE_BOOL, TINY_N_DTYPES);
        gboolean defined
            = tiny_eval_alu (op, dtype, to, args, (guint) tiny_op_infos[op].least, &out);
        if (defined)
          g_assert_true (tiny_eval_is_canonical (to, out));
        if (defined && dtype != TINY_DTYPE_INDEX && !tiny_op_takes_dtype (op, dtype))
          CASE_FAILS ("%s answers for %s", tiny_op_to_string (op),
                      tiny_dtype_to_string (dtype));
      }
  }
}

static void
test_constants (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *tenth = tiny_node_const_float (graph, TINY_DTYPE_F16, 0.1);
  g_assert_cmpfloat (tiny_node_get_float (tenth), ==, 0x1.998p-4);
  g_assert_true (tiny_node_const_float (graph, TINY_DTYPE_F16, 0x1.998p-4) == tenth);
  g_assert_true (tiny_node_const_float (graph, TINY_DTYPE_F32, NAN)
                 == tiny_node_const_float (graph, TINY_DTYPE_F32, -NAN));
  g_assert_true (
      isnan (tiny_node_get_float (tiny_node_const_float (graph, TINY_DTYPE_F8E4M3, 1e9))));
  g_assert_true (tiny_node_const_int (graph, TINY_DTYPE_U8, -1)
                 == tiny_node_const_int (graph, TINY_DTYPE_U8, 255));
  g_assert_cmpint (tiny_node_const_int (graph, TINY_DTYPE_I8, 255)->arg, ==, -1);
  g_assert_cmpfloat (tiny_node_get_float (tiny_node_const_int (graph, TINY_DTYPE_U64, -1)), ==,
                     0x1p64);
  g_assert_cmpint (tiny_node_const_float (graph, TINY_DTYPE_I32, NAN)->arg, ==, 0);
  g_assert_cmpint (tiny_node_const_float (graph, TINY_DTYPE_I64, 1e300)->arg, ==, MAX64);
  g_assert_cmpint (tiny_node_const_float (graph, TINY_DTYPE_BOOL, 2)->arg, ==, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/eval/8-bits", test_8_bits);
  g_test_add_func ("/ir/eval/wide-integers", test_wide_integers);
  g_test_add_func ("/ir/eval/bool", test_bool);
  g_test_add_func ("/ir/eval/floats", test_floats);
  g_test_add_func ("/ir/eval/casts", test_casts);
  g_test_add_func ("/ir/eval/f32-against-c", test_f32_against_c);
  g_test_add_func ("/ir/eval/every-op", test_every_op);
  g_test_add_func ("/ir/eval/constants", test_constants);
  return g_test_run ();
}
