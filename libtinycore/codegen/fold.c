/* SPDX-License-Identifier: MIT
 *
 * fold.c: nodes made with their constants folded, substitution that knows scopes, strides.
 *
 * Expanding a kernel makes thousands of index nodes of which most fold at once. Doing that while
 * they are made keeps the expanded graph small and needs no second walk. The rules are the few
 * that matter for addresses and gates; the full set is rewrite/'s, applied before. */
#include "codegen/codegen-private.h"

#include <math.h>

#include "rewrite/tiny-bounds.h"

/* ---- constants ---- */
static gboolean
fold_integers (TinyOp op, gint64 x, gint64 y, gint64 *out)
{
  switch (op) {
  case TINY_OP_ADD:
    *out = x + y;
    return TRUE;
  case TINY_OP_SUB:
    *out = x - y;
    return TRUE;
  case TINY_OP_MUL:
    *out = x * y;
    return TRUE;
  case TINY_OP_MAX:
    *out = MAX (x, y);
    return TRUE;
  case TINY_OP_FLOORDIV:
    *out = y != 0 ? tiny_floor_div (x, y) : 0;
    return y != 0;
  case TINY_OP_FLOORMOD:
    *out = y != 0 ? x - y * tiny_floor_div (x, y) : 0;
    return y != 0;
  case TINY_OP_CMPLT:
    *out = x < y;
    return TRUE;
  case TINY_OP_CMPNE:
    *out = x != y;
    return TRUE;
  default:
    return FALSE;
  }
}

static TinyNode *
const_lanes (TinyGraph *graph, TinyDType dtype, guint lanes, gint64 value)
{
  return tiny_node_new (graph, TINY_OP_CONST, dtype, lanes, 0, NULL, value, NULL, NULL);
}

/* @node / @divisor, which tiny_node_get_divisor() says is whole; NULL: not seen how. */
static TinyNode *
divide_exactly (TinyGraph *graph, TinyNode *node, gint64 divisor)
{
  if (node->op == TINY_OP_CONST)
    return const_lanes (graph, node->dtype, node->lanes, node->arg / divisor);
  if (node->op == TINY_OP_ADD) {
    TinyNode *x = divide_exactly (graph, node->sources[0], divisor);
    TinyNode *y = divide_exactly (graph, node->sources[1], divisor);
    return x != NULL && y != NULL ? tiny_fold_binary (graph, TINY_OP_ADD, x, y) : NULL;
  }
  if (node->op != TINY_OP_MUL || node->sources[1]->op != TINY_OP_CONST)
    return NULL;
  gint64 own = node->sources[1]->arg;
  if (own % divisor == 0)
    return tiny_fold_binary (graph, TINY_OP_MUL, node->sources[0],
                             const_lanes (graph, node->dtype, node->lanes, own / divisor));
  return NULL;
}

static TinyNode *
fold_add (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  if (x->op == TINY_OP_CONST) {
    TinyNode *swap = x;
    x = y;
    y = swap;
  }
  if (tiny_node_is_const_int (y, 0))
    return x;
  gboolean x_sum = x->op == TINY_OP_ADD && x->sources[1]->op == TINY_OP_CONST;
  gboolean y_sum = y->op == TINY_OP_ADD && y->sources[1]->op == TINY_OP_CONST;
  if (y->op == TINY_OP_CONST) {
    if (!x_sum)
      return tiny_node_binary (graph, TINY_OP_ADD, x, y);
    gint64 sum = x->sources[1]->arg + y->arg;
    return fold_add (graph, x->sources[0], const_lanes (graph, x->dtype, x->lanes, sum));
  }
  if (!x_sum && !y_sum)
    return tiny_node_binary (graph, TINY_OP_ADD, x, y);
  gint64 sum = (x_sum ? x->sources[1]->arg : 0) + (y_sum ? y->sources[1]->arg : 0);
  TinyNode *base = tiny_node_binary (graph, TINY_OP_ADD, x_sum ? x->sources[0] : x,
                                     y_sum ? y->sources[0] : y);
  return fold_add (graph, base, const_lanes (graph, x->dtype, x->lanes, sum));
}

static TinyNode *
fold_mul (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  if (x->op == TINY_OP_CONST) {
    TinyNode *swap = x;
    x = y;
    y = swap;
  }
  if (tiny_node_is_const_int (y, 1))
    return x;
  if (tiny_node_is_const_int (y, 0))
    return y;
  if (y->op == TINY_OP_CONST && x->n_sources == 2 && x->sources[1]->op == TINY_OP_CONST) {
    TinyNode *product = const_lanes (graph, x->dtype, x->lanes, x->sources[1]->arg * y->arg);
    if (x->op == TINY_OP_MUL)
      return fold_mul (graph, x->sources[0], product);
    if (x->op == TINY_OP_ADD)
      return fold_add (graph, fold_mul (graph, x->sources[0], y), product);
  }
  return tiny_node_binary (graph, TINY_OP_MUL, x, y);
}

/* x FLOORDIV y and x FLOORMOD y where all of x but a constant is a multiple of y. */
static TinyNode *
fold_divmod (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (y->op == TINY_OP_CONST && y->arg > 0 && x->lanes == 1) {
    if (y->arg == 1)
      return op == TINY_OP_FLOORDIV ? x : const_lanes (graph, x->dtype, 1, 0);
    gint64 lowest, highest;
    tiny_node_get_bounds (x, &lowest, &highest);
    if (lowest >= 0 && highest < y->arg)
      return op == TINY_OP_FLOORDIV ? const_lanes (graph, x->dtype, 1, 0) : x;
    gboolean sum = x->op == TINY_OP_ADD && x->sources[1]->op == TINY_OP_CONST;
    TinyNode *rest = sum ? x->sources[0] : x;
    gint64 offset = sum ? x->sources[1]->arg : 0, quotient = tiny_floor_div (offset, y->arg);
    if (tiny_node_get_divisor (rest) % y->arg == 0) {
      if (op == TINY_OP_FLOORMOD)
        return const_lanes (graph, x->dtype, 1, offset - quotient * y->arg);
      TinyNode *whole = divide_exactly (graph, rest, y->arg);
      if (whole != NULL)
        return fold_add (graph, whole, const_lanes (graph, x->dtype, 1, quotient));
    }
  }
  return tiny_node_binary (graph, op, x, y);
}

static TinyNode *
fold_compare (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  if (x->lanes == 1) {
    gint64 x_min, x_max, y_min, y_max;
    tiny_node_get_bounds (x, &x_min, &x_max);
    tiny_node_get_bounds (y, &y_min, &y_max);
    if (x_max < y_min)
      return tiny_node_const_int (graph, TINY_DTYPE_BOOL, TRUE);
    if (x_min >= y_max)
      return tiny_node_const_int (graph, TINY_DTYPE_BOOL, FALSE);
  }
  return tiny_node_binary (graph, TINY_OP_CMPLT, x, y);
}

/* AND and OR of gates. */
static TinyNode *
fold_bool (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y)
{
  gint64 neutral = op == TINY_OP_AND;
  if (x == y || tiny_node_is_const_int (y, neutral) || tiny_node_is_const_int (x, !neutral))
    return x;
  if (tiny_node_is_const_int (x, neutral) || tiny_node_is_const_int (y, !neutral))
    return y;
  return tiny_node_binary (graph, op, x, y);
}

TinyNode *
tiny_fold_binary (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (x->dtype == TINY_DTYPE_BOOL
      && (op == TINY_OP_AND || op == TINY_OP_OR || op == TINY_OP_MUL))
    return fold_bool (graph, op == TINY_OP_MUL ? TINY_OP_AND : op, x, y);
  if (x->dtype != TINY_DTYPE_INDEX)
    return tiny_node_binary (graph, op, x, y);
  gint64 value;
  if (x->op == TINY_OP_CONST && y->op == TINY_OP_CONST
      && fold_integers (op, x->arg, y->arg, &value)) {
    gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
    return const_lanes (graph, compares ? TINY_DTYPE_BOOL : TINY_DTYPE_INDEX, x->lanes, value);
  }
  switch (op) {
  case TINY_OP_ADD:
    return fold_add (graph, x, y);
  case TINY_OP_SUB:
    if (y->op == TINY_OP_CONST)
      return fold_add (graph, x, const_lanes (graph, y->dtype, y->lanes, -y->arg));
    return tiny_node_binary (graph, op, x, y);
  case TINY_OP_MUL:
    return fold_mul (graph, x, y);
  case TINY_OP_FLOORDIV:
  case TINY_OP_FLOORMOD:
    return fold_divmod (graph, op, x, y);
  case TINY_OP_CMPLT:
    return fold_compare (graph, x, y);
  default:
    return tiny_node_binary (graph, op, x, y);
  }
}

/* A LOAD or STORE whose gate is known. NULL: it is not. */
static TinyNode *
fold_gate (TinyGraph *graph, TinyNode *like, guint lanes, TinyNode *const *sources)
{
  guint gate = like->op == TINY_OP_LOAD ? 2 : 3;
  if (like->n_sources <= gate || sources[gate]->op != TINY_OP_CONST)
    return NULL;
  if (sources[gate]->arg)
    return tiny_node_new (graph, like->op, like->dtype, lanes, gate, sources, like->arg,
                          like->ints, like->text);
  return like->op == TINY_OP_LOAD ? sources[3] : NULL;
}

TinyNode *
tiny_fold_node (TinyGraph *graph, TinyNode *like, guint lanes, TinyNode *const *sources)
{
  TinyNode *folded = NULL;
  if (like->n_sources == 2
      && (tiny_op_infos[like->op].op_class == TINY_OP_CLASS_BINARY
          || tiny_op_infos[like->op].op_class == TINY_OP_CLASS_COMPARE))
    return tiny_fold_binary (graph, like->op, sources[0], sources[1]);
  if (like->op == TINY_OP_WHERE && sources[0]->op == TINY_OP_CONST)
    return sources[0]->arg ? sources[1] : sources[2];
  if (like->op == TINY_OP_LOAD || like->op == TINY_OP_STORE)
    folded = fold_gate (graph, like, lanes, sources);
  if (folded != NULL)
    return folded;
  return tiny_node_new (graph, like->op, like->dtype, lanes, like->n_sources, sources,
                        like->arg, like->ints, like->text);
}

/* ---- substitution ---- */
static gboolean
depends_on_any (TinyGraph *graph, TinyNode *node, TinyNode *const *ranges, guint n)
{
  guint n_own;
  TinyNode *const *own = tiny_node_get_ranges (graph, node, &n_own);
  for (guint i = 0; i < n_own; i++)
    for (guint j = 0; j < n; j++)
      if (own[i] == ranges[j])
        return TRUE;
  return FALSE;
}

TinyNode *
tiny_codegen_replace (
    TinyGraph *graph, TinyNode *root, TinyNode *const *from, TinyNode *const *to, guint n)
{
  if (!depends_on_any (graph, root, from, n))
    return root;
  g_auto (TinyNodeMap) map = { 0 };
  for (guint i = 0; i < n; i++)
    tiny_node_map_set (&map, from[i], to[i]);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (tiny_node_map_get (&map, node) != NULL)
      continue;
    if (!depends_on_any (graph, node, from, n)) {
      tiny_node_map_set (&map, node, node);
      continue;
    }
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++) {
      gboolean closed = node->op == TINY_OP_REDUCE && s > 0;
      g_ptr_array_add (sources,
                       closed ? node->sources[s] : tiny_node_map_get (&map, node->sources[s]));
    }
    tiny_node_map_set (
        &map, node,
        tiny_fold_node (graph, node, node->lanes, (TinyNode *const *) sources->pdata));
  }
  return tiny_node_map_get (&map, root);
}

TinyNode *
tiny_reduce_identity (TinyGraph *graph, TinyOp op, TinyDType dtype, guint lanes)
{
  TinyNode *one;
  if (op == TINY_OP_MAX)
    one = tiny_dtype_is_float (dtype)
              ? tiny_node_const_float (graph, dtype, -INFINITY)
              : tiny_node_const_int (graph, dtype, tiny_dtype_get_min (dtype));
  else
    one = tiny_node_const_int (graph, dtype, op == TINY_OP_MUL);
  return const_lanes (graph, dtype, lanes, one->arg);
}

guint
tiny_codegen_count_ranges (TinyGraph *graph, TinyNode *root)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  guint n = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_RANGE)
      n = MAX (n, tiny_range_get_number (node) + 1);
  }
  return n;
}

/* ---- strides ---- */
/* x = A + stride * l with A a multiple of m, m dividing the divisor, and 0 <= stride * l < m:
 * then the quotient does not see l and the remainder sees all of it. */
static gboolean
divmod_stride (TinyGraph *graph, TinyNode *node, TinyNode *range, gint64 *out_stride)
{
  gint64 stride, extent = tiny_range_get_extent (range);
  TinyNode *x = node->sources[0], *y = node->sources[1];
  if (y->op != TINY_OP_CONST || y->arg <= 0 || !tiny_index_stride (graph, x, range, &stride))
    return FALSE;
  TinyNode *zero = tiny_node_const_index (graph, 0);
  TinyNode *base = tiny_codegen_replace (graph, x, &range, &zero, 1);
  gint64 offset = base->op == TINY_OP_CONST ? base->arg : 0;
  TinyNode *rest = base;
  if (base->op == TINY_OP_ADD && base->sources[1]->op == TINY_OP_CONST) {
    offset = base->sources[1]->arg;
    rest = base->sources[0];
  }
  gint64 a = tiny_gcd (base->op == TINY_OP_CONST ? 0 : tiny_node_get_divisor (rest), y->arg);
  gint64 inner = offset - tiny_floor_div (offset, a) * a, last = inner + stride * (extent - 1);
  if (last < 0 || last >= a)
    return FALSE;
  *out_stride = node->op == TINY_OP_FLOORDIV ? 0 : stride;
  return TRUE;
}

gboolean
tiny_index_stride (TinyGraph *graph, TinyNode *node, TinyNode *range, gint64 *out_stride)
{
  gint64 a, b;
  *out_stride = 0;
  if (node == range) {
    *out_stride = 1;
    return TRUE;
  }
  if (!tiny_node_depends_on (graph, node, range))
    return TRUE;
  if (node->op == TINY_OP_ADD || node->op == TINY_OP_SUB) {
    if (!tiny_index_stride (graph, node->sources[0], range, &a)
        || !tiny_index_stride (graph, node->sources[1], range, &b))
      return FALSE;
    *out_stride = node->op == TINY_OP_ADD ? a + b : a - b;
    return TRUE;
  }
  if (node->op == TINY_OP_MUL) {
    for (guint i = 0; i < 2; i++)
      if (node->sources[i]->op == TINY_OP_CONST
          && tiny_index_stride (graph, node->sources[1 - i], range, &a)) {
        *out_stride = a * node->sources[i]->arg;
        return TRUE;
      }
    return FALSE;
  }
  if (node->op == TINY_OP_FLOORDIV || node->op == TINY_OP_FLOORMOD)
    return divmod_stride (graph, node, range, out_stride);
  return FALSE;
}
