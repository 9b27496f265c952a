/* SPDX-License-Identifier: MIT
 *
 * rules-simple.c: identities that hold on every dtype they name; constants; WHERE; casts.
 *
 * Measure: the number of nodes falls; where it stays, a constant moves right, or an op is replaced
 * by one later in ADD MUL MAX XOR < OR AND < CMPNE on bools.
 * Floats: every row keeps all values to the bit, NaN, infinities and the sign of zero: x + 0.0 and
 * x * 0.0 are no identities, x + -0.0 and x * 1.0 are. */
#include "ir/tiny-eval.h"
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

#include <math.h>

TinyNode *
tiny_const_like (TinyGraph *graph, TinyNode *like, gint64 value)
{
  return tiny_node_new (graph, TINY_OP_CONST, like->dtype, like->lanes, 0, NULL,
                        tiny_eval_wrap (like->dtype, value), NULL, NULL);
}

static TinyNode *
make_const (TinyMatch *m, gint64 bits)
{
  return tiny_node_new (m->graph, TINY_OP_CONST, m->root->dtype, m->root->lanes, 0, NULL, bits,
                        NULL, NULL);
}

/* ---- constants ---- */
static TinyNode *
fold (TinyMatch *m)
{
  gint64 args[3], result;
  guint n = m->root->n_sources;
  for (guint i = 0; i < n; i++)
    args[i] = m->root->sources[i]->arg;
  TinyDType dtype = m->root->sources[n - 1]->dtype;
  if (!tiny_eval_alu (m->root->op, dtype, m->root->dtype, args, n, &result))
    return NULL;
  if (m->root->dtype == TINY_DTYPE_INDEX
      && (result < tiny_dtype_get_min (TINY_DTYPE_INDEX)
          || result > tiny_dtype_get_max (TINY_DTYPE_INDEX)))
    return NULL;
  return make_const (m, result);
}

/* An integer that can have one value only. */
static TinyNode *
settle (TinyMatch *m)
{
  if (tiny_dtype_is_float (m->root->dtype))
    return NULL;
  gint64 min, max;
  tiny_node_get_bounds (m->root, &min, &max);
  if (min != max || (m->root->dtype == TINY_DTYPE_U64 && max == G_MAXINT64))
    return NULL;
  return make_const (m, min);
}

static TinyNode *
order_constant (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *y = m->root->sources[1];
  if (x->op != TINY_OP_CONST || y->op == TINY_OP_CONST)
    return NULL;
  TinyNode *sources[] = { y, x };
  return tiny_node_with_sources (m->graph, m->root, sources);
}

/* x / 2^k = x * 2^-k exactly, while both are normal numbers of the dtype. */
static TinyNode *
divide_by_power (TinyMatch *m)
{
  const TinyDTypeInfo *info = &tiny_dtype_infos[m->root->dtype];
  double divisor = tiny_node_get_float (TINY_MATCH (m, 'c'));
  int exponent, most = (1 << (info->exponent_bits - 1)) - 3;
  if (fabs (frexp (divisor, &exponent)) != 0.5 || ABS (exponent) > most)
    return NULL;
  TinyNode *factor
      = tiny_node_new (m->graph, TINY_OP_CONST, m->root->dtype, m->root->lanes, 0, NULL,
                       tiny_eval_from_double (m->root->dtype, 1 / divisor), NULL, NULL);
  return tiny_node_binary (m->graph, TINY_OP_MUL, TINY_MATCH (m, 'x'), factor);
}

/* ---- casts ---- */
/* Every value of @x is the same number in @to. */
static gboolean
is_lossless (TinyNode *x, TinyDType to)
{
  const TinyDTypeInfo *a = &tiny_dtype_infos[x->dtype], *b = &tiny_dtype_infos[to];
  if (x->dtype == to || a->kind == 'B')
    return TRUE;
  if (b->kind == 'B' || b->kind == 'N' || a->kind == 'N' || (a->kind == 'F' && b->kind != 'F'))
    return FALSE;
  if (a->kind
      == 'F') /* one step of exponent more makes up for the larger format's subnormals */
    return b->mantissa_bits >= a->mantissa_bits && b->exponent_bits >= a->exponent_bits
           && x->dtype != TINY_DTYPE_F8E4M3 && to != TINY_DTYPE_F8E4M3;
  gint64 min, max;
  tiny_node_get_bounds (x, &min, &max);
  if (x->dtype == TINY_DTYPE_U64 && max == G_MAXINT64)
    return to == TINY_DTYPE_U64;
  if (b->kind == 'F') {
    gint64 exact = (gint64) 1 << MIN (b->mantissa_bits + 1, (1u << (b->exponent_bits - 1)) - 1);
    return min >= -exact && max <= exact && to != TINY_DTYPE_F8E4M3;
  }
  if (to == TINY_DTYPE_INDEX || to == TINY_DTYPE_I64)
    return TRUE;
  return min >= tiny_dtype_get_min (to) && max <= tiny_dtype_get_max (to);
}

static gboolean
is_middle_lossless (TinyMatch *m)
{
  TinyNode *x = TINY_MATCH (m, 'x');
  TinyDType middle = m->root->sources[0]->dtype;
  if (is_lossless (x, middle))
    return TRUE;
  /* Wrapping twice is wrapping to the narrower, if that is last. INDEX does not wrap. */
  return m->root->dtype != TINY_DTYPE_INDEX && tiny_dtype_is_integer (x->dtype)
         && tiny_dtype_is_integer (middle) && tiny_dtype_is_integer (m->root->dtype)
         && tiny_dtype_get_n_bytes (m->root->dtype) <= tiny_dtype_get_n_bytes (middle);
}

static gboolean
has_dtype_of_x (TinyMatch *m)
{
  return TINY_MATCH (m, 'x')->dtype == m->root->dtype;
}

/* ---- vectors ---- */
static TinyNode *
extract_vector (TinyMatch *m)
{
  TinyNode *vector = m->root->sources[0];
  if (vector->n_sources == 1)
    return vector->sources[0]->lanes == 1 ? vector->sources[0] : NULL;
  return m->root->arg < vector->n_sources ? vector->sources[m->root->arg] : NULL;
}

static TinyNode *
extract_known (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0];
  if (x->lanes == 1 && x->op != TINY_OP_LANES)
    return x;
  return x->op == TINY_OP_CONST ? make_const (m, x->arg) : make_const (m, m->root->arg);
}

static TinyNode *
extract_index (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *sources[3];
  if (!tiny_op_is_elementwise (x->op) || x->n_sources > 3)
    return NULL;
  for (guint i = 0; i < x->n_sources; i++)
    sources[i] = tiny_node_new (m->graph, TINY_OP_EXTRACT, x->sources[i]->dtype, 1, 1,
                                &x->sources[i], m->root->arg, NULL, NULL);
  return tiny_node_new (m->graph, x->op, x->dtype, 1, x->n_sources, sources, x->arg, NULL,
                        NULL);
}

static TinyNode *
broadcast_const (TinyMatch *m)
{
  if (m->root->n_sources == 1)
    return make_const (m, TINY_MATCH (m, 'c')->arg);
  for (guint i = 1; i < m->root->n_sources; i++)
    if (m->root->sources[i] != m->root->sources[0])
      return NULL;
  return make_const (m, TINY_MATCH (m, 'c')->arg);
}

static gboolean
is_scalar (TinyMatch *m)
{
  return m->root->lanes == 1 && m->root->n_sources == 1;
}

static TinyNode *
make_zero (TinyMatch *m)
{
  gint64 min, max;
  tiny_node_get_bounds (m->root, &min, &max);
  return max == 0 ? make_const (m, 0) : NULL;
}

static const TinyRule rows[] = {
  /* constants */
  { "fold-unary", "alu(#a)", .build = fold },
  { "fold-binary", "alu(#a, #b)", .build = fold },
  { "fold-ternary", "alu(#a, #b, #c)", .build = fold },
  { "settle-unary", "alu.bits(x)", .build = settle },
  { "settle-binary", "alu.bits(x, y)", .build = settle },
  { "settle-ternary", "alu.bits(x, y, z)", .build = settle },
  { "range-one", "range(#c)", .build = make_zero },
  { "order-add", "add.any(x, y)", .build = order_constant },
  { "order-mul", "mul.any(x, y)", .build = order_constant },
  { "order-max", "max.bits(x, y)", .build = order_constant },
  { "order-and", "and.bits(x, y)", .build = order_constant },
  { "order-or", "or.bits(x, y)", .build = order_constant },
  { "order-xor", "xor.bits(x, y)", .build = order_constant },
  { "order-cmpne", "cmpne.any(x, y)", .build = order_constant },
  { "order-cmpeq", "cmpeq.any(x, y)", .build = order_constant },
  { "nest-add", "add.integer(add(x, #a), #b)", "add(x, add(a, b))" },
  { "nest-mul", "mul.integer(mul(x, #a), #b)", "mul(x, mul(a, b))" },
  { "nest-max", "max.integer(max(x, #a), #b)", "max(x, max(a, b))" },
  { "nest-and", "and.integer(and(x, #a), #b)", "and(x, and(a, b))" },
  { "nest-or", "or.integer(or(x, #a), #b)", "or(x, or(a, b))" },
  { "nest-xor", "xor.integer(xor(x, #a), #b)", "xor(x, xor(a, b))" },
  /* arithmetic */
  { "add-zero", "add.bits(x, 0)", "x" },
  { "add-minus-zero", "add.float(x, -0.0)", "x" },
  { "sub-zero", "sub.integer(x, 0)", "x" },
  { "sub-plus-zero", "sub.float(x, 0.0)", "x" },
  { "sub-self", "sub.integer(x, x)", "0" },
  { "sub-neg", "sub.any(x, neg(y))", "add(x, y)" },
  { "neg-neg", "neg.any(neg(x))", "x" },
  { "mul-one", "mul.bits(x, 1)", "x" },
  { "mul-one-float", "mul.float(x, 1.0)", "x" },
  { "mul-zero", "mul.bits(x, 0)", "0" },
  { "fdiv-one", "fdiv.float(x, 1.0)", "x" },
  { "fdiv-power", "fdiv.float(x, #c)", .build = divide_by_power },
  { "idiv-one", "idiv.integer(x, 1)", "x" },
  { "mod-one", "mod.integer(x, 1)", "0" },
  { "floordiv-one", "floordiv.integer(x, 1)", "x" },
  { "floormod-one", "floormod.integer(x, 1)", "0" },
  { "max-self", "max.any(x, x)", "x" },
  { "max-again", "max.any(max(x, y), y)", "max(x, y)" },
  { "trunc-trunc", "trunc.float(trunc(x))", "trunc(x)" },
  { "shl-zero", "shl.integer(x, 0)", "x" },
  { "shr-zero", "shr.integer(x, 0)", "x" },
  /* bits */
  { "and-self", "and.bits(x, x)", "x" },
  { "and-zero", "and.bits(x, 0)", "0" },
  { "and-ones", "and.integer(x, -1)", "x" },
  { "and-true", "and.bool(x, true)", "x" },
  { "and-again", "and.bits(and(x, y), y)", "and(x, y)" },
  { "and-absorbs", "and.bits(x, or(x, y))", "x" },
  { "and-not", "and.bool(x, cmpne(x, true))", "false" },
  { "or-self", "or.bits(x, x)", "x" },
  { "or-zero", "or.bits(x, 0)", "x" },
  { "or-ones", "or.integer(x, -1)", "-1" },
  { "or-true", "or.bool(x, true)", "true" },
  { "or-again", "or.bits(or(x, y), y)", "or(x, y)" },
  { "or-absorbs", "or.bits(x, and(x, y))", "x" },
  { "or-not", "or.bool(x, cmpne(x, true))", "true" },
  { "xor-self", "xor.bits(x, x)", "0" },
  { "xor-zero", "xor.bits(x, 0)", "x" },
  { "xor-again", "xor.integer(xor(x, y), y)", "x" },
  /* bools */
  { "bool-add", "add.bool(x, y)", "or(x, y)" },
  { "bool-mul", "mul.bool(x, y)", "and(x, y)" },
  { "bool-max", "max.bool(x, y)", "or(x, y)" },
  { "bool-xor", "xor.bool(x, y)", "cmpne(x, y)" },
  { "cmplt-self", "cmplt.any(x, x)", "false" },
  { "cmpne-self", "cmpne.bits(x, x)", "false" },
  { "cmpeq-self", "cmpeq.bits(x, x)", "true" },
  { "cmpne-false", "cmpne.bool(x, false)", "x" },
  { "not-not", "cmpne.bool(cmpne.bool(x, true), true)", "x" },
  { "not-cmpeq", "cmpne.bool(cmpeq.any(x, y), true)", "cmpne(x, y)" },
  { "cmpeq-true", "cmpeq.bool(x, true)", "x" },
  { "cmpeq-false", "cmpeq.bool(x, false)", "cmpne(x, true)" },
  { "cmpne-cast", "cmpne.integer(cast(x:bool), 0)", "x" },
  { "cmpne-cast-float", "cmpne.float(cast(x:bool), 0.0)", "x" },
  /* where */
  { "where-true", "where.any(true, x, y)", "x" },
  { "where-false", "where.any(false, x, y)", "y" },
  { "where-same", "where.any(c, x, x)", "x" },
  { "where-not", "where.any(cmpne.bool(c, true), x, y)", "where(c, y, x)" },
  { "where-and", "where.any(a, where(b, x, y), y)", "where(and(a, b), x, y)" },
  { "where-or", "where.any(a, x, where(b, x, y))", "where(or(a, b), x, y)" },
  { "where-inside-true", "where.any(a, where(a, x, y), z)", "where(a, x, z)" },
  { "where-inside-false", "where.any(a, x, where(a, y, z))", "where(a, x, z)" },
  { "where-bool", "where.bool(c, true, false)", "c" },
  { "where-bool-not", "where.bool(c, false, true)", "cmpne(c, true)" },
  { "where-bool-and", "where.bool(c, x, false)", "and(c, x)" },
  { "where-bool-or", "where.bool(c, true, x)", "or(c, x)" },
  { "cmpne-where", "cmpne.any(where(c, #a, #b), #d)", "where(c, cmpne(a, d), cmpne(b, d))" },
  { "cmpeq-where", "cmpeq.any(where(c, #a, #b), #d)", "where(c, cmpeq(a, d), cmpeq(b, d))" },
  { "cmplt-where", "cmplt.any(where(c, #a, #b), #d)", "where(c, cmplt(a, d), cmplt(b, d))" },
  { "where-cmplt", "cmplt.any(#d, where(c, #a, #b))", "where(c, cmplt(d, a), cmplt(d, b))" },
  { "add-where", "add.any(where(c, #a, #b), #d)", "where(c, add(a, d), add(b, d))" },
  { "mul-where", "mul.any(where(c, #a, #b), #d)", "where(c, mul(a, d), mul(b, d))" },
  { "cast-where", "cast.any(where(c, #a, #b))", "where(c, cast(a), cast(b))" },
  /* casts */
  { "cast-same", "cast.any(x)", "x", has_dtype_of_x },
  { "cast-cast", "cast.any(cast(x))", "cast(x)", is_middle_lossless },
  { "bitcast-same", "bitcast.any(x)", "x", has_dtype_of_x },
  { "bitcast-bitcast", "bitcast.any(bitcast(x))", "bitcast(x)" },
  /* vectors */
  { "extract-vector", "extract(vector(...))", .build = extract_vector },
  { "extract-const", "extract(#c)", .build = extract_known },
  { "extract-lanes", "extract(lanes())", .build = extract_known },
  { "extract-index", "extract.index(x)", .build = extract_index },
  { "vector-const", "vector(#c, ...)", .build = broadcast_const },
  { "vector-one", "vector(x)", "x", is_scalar },
};

TINY_RULE_TABLE (tiny_rules_simple, "simple", rows);
