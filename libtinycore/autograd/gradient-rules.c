/* SPDX-License-Identifier: MIT
 *
 * gradient-rules.c: the gradient of each op, as nodes.
 *
 * Every rule builds only ops that have rules, so gradients of gradients need nothing more. In the
 * comments g is the gradient of the result y, x the source. What is not taken by a WHERE gets an
 * exact 0: multiplying by a mask would let infinities through as NaN. */
#include "autograd/gradient-rules.h"

#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-positions.h"

enum { MAX_RANK = 32 };

#define RULE(name)                                                                             \
  static void name (TinyGraph *graph, TinyNode *node, TinyNode *g, TinyNode **out)

static TinyNode *
mul (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  return tiny_layout_binary (graph, TINY_OP_MUL, x, y);
}

static TinyNode *
divide (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  return tiny_layout_binary (graph, TINY_OP_FDIV, x, y);
}

static TinyNode *
neg (TinyGraph *graph, TinyNode *x)
{
  return tiny_layout_unary (graph, TINY_OP_NEG, x);
}

static TinyNode *
less (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  return tiny_layout_binary (graph, TINY_OP_CMPLT, x, y);
}

static TinyNode *
equal (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  return tiny_layout_binary (graph, TINY_OP_CMPEQ, x, y);
}

static TinyNode *
number (TinyGraph *graph, TinyNode *like, double value)
{
  return tiny_node_const_float (graph, (TinyDType) like->dtype, value);
}

static TinyNode *
scale (TinyGraph *graph, TinyNode *x, double factor)
{
  return mul (graph, x, number (graph, x, factor));
}

static TinyNode *
choose (TinyGraph *graph, TinyNode *gate, TinyNode *x, TinyNode *y)
{
  return tiny_layout_where (graph, gate, x, y);
}

/* ---- elementwise ---- */
RULE (rule_cast) { out[0] = tiny_layout_cast (graph, g, (TinyDType) node->sources[0]->dtype); }

RULE (rule_neg) { out[0] = neg (graph, g); }

/* y = 1/x: -g y² */
RULE (rule_recip) { out[0] = neg (graph, mul (graph, g, mul (graph, node, node))); }

/* y = √x: g / 2y */
RULE (rule_sqrt) { out[0] = divide (graph, scale (graph, g, 0.5), node); }

/* y = 2^x: g y ln 2 */
RULE (rule_exp2) { out[0] = scale (graph, mul (graph, g, node), G_LN2); }

/* y = log2 x: g / (x ln 2) */
RULE (rule_log2) { out[0] = divide (graph, scale (graph, g, 1 / G_LN2), node->sources[0]); }

/* y = sin x: g cos x, where cos x = 1 - 2 sin² (x/2), which loses nothing of a large x as x + π/2
 * would. The same nodes as of the operation cos in operations.pyi. */
RULE (rule_sin)
{
  TinyNode *x = node->sources[0];
  TinyNode *half = tiny_layout_unary (graph, TINY_OP_SIN, scale (graph, x, 0.5));
  TinyNode *cosine = tiny_layout_binary (graph, TINY_OP_SUB, number (graph, x, 1),
                                         scale (graph, mul (graph, half, half), 2));
  TinyNode *sources[] = { cosine, x, neg (graph, node) };
  cosine = tiny_layout_elementwise (graph, TINY_OP_SLOPED, (TinyDType) x->dtype, 3, sources);
  out[0] = mul (graph, g, cosine);
}

RULE (rule_sloped) { out[1] = mul (graph, g, node->sources[2]); }

RULE (rule_add) { out[0] = out[1] = g; }

RULE (rule_sub)
{
  out[0] = g;
  out[1] = neg (graph, g);
}

RULE (rule_mul)
{
  out[0] = mul (graph, g, node->sources[1]);
  out[1] = mul (graph, g, node->sources[0]);
}

/* y = a/b: g/b and -g y/b */
RULE (rule_fdiv)
{
  TinyNode *part = divide (graph, g, node->sources[1]);
  out[0] = part;
  out[1] = neg (graph, mul (graph, part, node));
}

/* The larger gets it, equals share it. A constant gets nothing, nor does what equals it, so that
 * relu has gradient 0 at 0. */
RULE (rule_max)
{
  TinyNode *zero = number (graph, g, 0);
  for (guint i = 0; i < 2; i++) {
    TinyNode *x = node->sources[i], *other = node->sources[1 - i];
    TinyNode *of_equal = zero;
    if (!tiny_node_is_const (other))
      of_equal = choose (graph, equal (graph, x, other), scale (graph, g, 0.5), zero);
    out[i] = choose (graph, less (graph, other, x), g, of_equal);
  }
}

RULE (rule_where)
{
  TinyNode *zero = number (graph, g, 0);
  out[1] = choose (graph, node->sources[0], g, zero);
  out[2] = choose (graph, node->sources[0], zero, g);
}

RULE (rule_mulacc)
{
  out[0] = mul (graph, g, node->sources[1]);
  out[1] = mul (graph, g, node->sources[0]);
  out[2] = g;
}

/* ---- reductions: g has size 1 where the source was combined ---- */
static TinyNode *
spread (TinyGraph *graph, TinyNode *x, const TinyNode *like)
{
  return tiny_node_expand (graph, x, like->shape->v, like->shape->n);
}

static TinyNode *
sum_like (TinyGraph *graph, TinyNode *x, const TinyNode *reduce)
{
  return tiny_layout_reduce (graph, x, TINY_OP_ADD, reduce->ints->v, reduce->ints->n);
}

/* Equal largest ones share it. */
static TinyNode *
gradient_of_max (TinyGraph *graph, TinyNode *node, TinyNode *g)
{
  TinyNode *x = node->sources[0];
  TinyNode *one = number (graph, x, 1), *zero = number (graph, x, 0);
  TinyNode *is_max = equal (graph, x, spread (graph, node, x));
  TinyNode *count = sum_like (graph, choose (graph, is_max, one, zero), node);
  TinyNode *share = divide (graph, g, count);
  return choose (graph, is_max, spread (graph, share, x), zero);
}

/* The product of the others is y/x unless something is 0: then only a single 0 has a gradient, the
 * product of all that is not 0. */
static TinyNode *
gradient_of_product (TinyGraph *graph, TinyNode *node, TinyNode *g)
{
  TinyNode *x = node->sources[0];
  TinyNode *one = number (graph, x, 1), *zero = number (graph, x, 0);
  TinyNode *is_zero = equal (graph, x, zero);
  TinyNode *safe = choose (graph, is_zero, one, x);
  TinyNode *n_zeros = sum_like (graph, choose (graph, is_zero, one, zero), node);
  TinyNode *product
      = tiny_layout_reduce (graph, safe, TINY_OP_MUL, node->ints->v, node->ints->n);
  TinyNode *weighted = mul (graph, g, product);
  TinyNode *if_none = choose (graph, equal (graph, n_zeros, zero), weighted, zero);
  TinyNode *if_one = choose (graph, equal (graph, n_zeros, one), weighted, zero);
  return choose (graph, is_zero, spread (graph, if_one, x),
                 divide (graph, spread (graph, if_none, x), safe));
}

RULE (rule_reduce)
{
  switch (node->arg) {
  case TINY_OP_ADD:
    out[0] = spread (graph, g, node->sources[0]);
    break;
  case TINY_OP_MAX:
    out[0] = gradient_of_max (graph, node, g);
    break;
  case TINY_OP_MUL:
    out[0] = gradient_of_product (graph, node, g);
    break;
  default:
    break;
  }
}

/* ---- storage ---- */
RULE (rule_pass) { out[0] = g; }

RULE (rule_assign) { out[1] = g; }

/* Where the memory under @node is, or NULL when there is none. */
const char *
tiny_gradient_find_device (TinyGraph *graph, TinyNode *node)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &node, 1);
  for (guint i = order->len; i-- > 0;) {
    TinyNode *found = order->pdata[i];
    if (found->op == TINY_OP_BUFFER || found->op == TINY_OP_COPY || found->op == TINY_OP_PARAM
        || found->op == TINY_OP_UNSHARD)
      return found->text;
  }
  return NULL;
}

/* Back to where it came from. */
RULE (rule_copy)
{
  const char *device = tiny_gradient_find_device (graph, node->sources[0]);
  out[0] = device == NULL ? g : tiny_node_to (graph, g, device, TINY_SHARD_WHOLE);
}

/* Each piece gets its part of g. Where each is the whole value, any of them is it: the first gets all. */
RULE (rule_unshard)
{
  const TinyNode *parts = tiny_node_to_like (graph, g, node);
  for (guint i = 0; i < node->n_sources; i++)
    out[i] = i == 0 || node->arg != TINY_SHARD_WHOLE ? parts->sources[i] : NULL;
}

/* ---- movement: the adjoint moves back, and adds up what was read more than once ---- */
RULE (rule_reshape)
{
  const TinyInts *shape = node->sources[0]->shape;
  out[0] = tiny_node_reshape (graph, g, shape->v, shape->n);
}

RULE (rule_expand)
{
  const TinyInts *shape = node->sources[0]->shape;
  gint64 axes[MAX_RANK];
  guint n = 0;
  for (guint i = 0; i < shape->n; i++)
    if (shape->v[i] == 1 && node->shape->v[i] != 1)
      axes[n++] = i;
  out[0] = tiny_layout_reduce_windows (graph, g, axes, n);
}

RULE (rule_permute)
{
  gint64 inverse[MAX_RANK];
  for (guint i = 0; i < node->ints->n; i++)
    inverse[node->ints->v[i]] = i;
  out[0] = tiny_node_permute (graph, g, inverse, node->ints->n);
}

RULE (rule_pad)
{
  gint64 pairs[2 * MAX_RANK];
  const TinyInts *shape = node->sources[0]->shape;
  for (guint i = 0; i < shape->n; i++) {
    pairs[2 * i] = node->ints->v[2 * i];
    pairs[2 * i + 1] = node->ints->v[2 * i] + shape->v[i];
  }
  out[0] = tiny_node_shrink (graph, g, pairs, shape->n);
}

RULE (rule_shrink)
{
  gint64 pairs[2 * MAX_RANK];
  const TinyInts *shape = node->sources[0]->shape;
  for (guint i = 0; i < shape->n; i++) {
    pairs[2 * i] = node->ints->v[2 * i];
    pairs[2 * i + 1] = shape->v[i] - node->ints->v[2 * i + 1];
  }
  out[0] = tiny_node_pad (graph, g, pairs, shape->n);
}

RULE (rule_flip) { out[0] = tiny_node_flip (graph, g, node->ints->v, node->ints->n); }

/* y[p, k] = x[q] where q d = p m + k s + o. Each q is read by the one p = (q d - k s - o) / m, if
 * that is whole and inside, so the adjoint is a shear again, with a divisor made positive. */
RULE (rule_shear)
{
  const gint64 *v = node->ints->v;
  gint64 axis = v[0], mul_by = v[2], step = v[3], offset = v[4], divisor = v[5];
  gint64 sign = mul_by < 0 ? -1 : 1;
  out[0] = tiny_node_shear (graph, g, (guint) axis, (guint) v[1], sign * divisor, -sign * step,
                            -sign * offset, sign * mul_by, node->sources[0]->shape->v[axis]);
}

/* ---- positions ---- */
static TinyNode *
count_up (TinyGraph *graph, TinyDType dtype, gint64 n)
{
  return tiny_node_new (graph, TINY_OP_IOTA, dtype, 1, 0, NULL, 0,
                        tiny_graph_ints (graph, &n, 1), NULL);
}

/* @x with another axis, repeated, before or after @axis. */
static TinyNode *
spread_beside (TinyGraph *graph, TinyNode *x, guint axis, gboolean before, gint64 size)
{
  gint64 dims[MAX_RANK + 1];
  guint rank = x->shape->n, at = before ? axis : axis + 1;
  for (guint i = 0; i <= rank; i++)
    dims[i] = i < at ? x->shape->v[i] : i == at ? 1 : x->shape->v[i - 1];
  x = tiny_node_reshape (graph, x, dims, rank + 1);
  dims[at] = size;
  return tiny_node_expand (graph, x, dims, rank + 1);
}

/* For each of @wanted along @axis: @op over those of @x whose @positions are it, @none for others.
 * (…, N, …), (…, M, …), (…, M, …) to (…, N, …) */
static TinyNode *
combine_equal (TinyGraph *graph,
               TinyNode *wanted,
               TinyNode *positions,
               TinyNode *x,
               TinyNode *none,
               guint axis,
               TinyOp op)
{
  gint64 n = wanted->shape->v[axis], m = positions->shape->v[axis], over = axis + 1;
  TinyNode *is_it = equal (graph, spread_beside (graph, wanted, axis, FALSE, m),
                           spread_beside (graph, positions, axis, TRUE, n));
  TinyNode *parts = choose (graph, is_it, spread_beside (graph, x, axis, TRUE, n), none);
  TinyNode *found = tiny_layout_reduce (graph, parts, op, &over, 1);
  return tiny_node_reshape (graph, found, wanted->shape->v, wanted->shape->n);
}

/* 0 1 … along @axis of @dims, the same everywhere else. */
static TinyNode *
count_along (TinyGraph *graph, TinyDType dtype, guint axis, const gint64 *dims, guint rank)
{
  gint64 own[MAX_RANK];
  for (guint i = 0; i < rank; i++)
    own[i] = i == axis ? dims[i] : 1;
  TinyNode *counter = count_up (graph, dtype, own[axis]);
  return tiny_node_expand (graph, tiny_node_reshape (graph, counter, own, rank), dims, rank);
}

/* y = x at positions: to each of x the sum of g over the positions that are it. Where positions are
 * those of whole rows, g is first summed over equal positions, each row's sum standing wherever the
 * row was read; then a row of x takes the sum from where it was read last, and 0 if it was not. */
RULE (rule_gather)
{
  TinyNode *x = node->sources[0], *p = node->sources[1];
  guint axis = node->arg, rank = x->shape->n;
  gint64 n = x->shape->v[axis], m = p->shape->v[axis];
  gint64 row = m == 0 ? 0 : tiny_shape_get_n_elements (p->shape) / m;
  gboolean wide = tiny_dtype_get_n_bytes ((TinyDType) p->dtype) > 4 || n > G_MAXINT32;
  TinyDType counts = wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  TinyNode *rows = p->op == TINY_OP_EXPAND ? p->sources[0] : p;
  TinyNode *zero = number (graph, g, 0);
  gboolean whole = tiny_shape_get_n_elements (rows->shape) == m && rows->shape->v[axis] == m;
  TinyBuild build = { .name = "gradient", .graph = graph };
  if (tiny_build_is_sorted (whole ? rows : p, axis, n, g)) {
    out[0] = tiny_build_scatter_sum (&build, x, axis, whole ? rows : p, g);
    g_assert (build.error == NULL); /* sizes were checked when y was made */
    return;
  }
  if (!whole || (double) m * row + n + row >= (double) n * row) {
    TinyNode *wanted = count_along (graph, counts, axis, x->shape->v, rank);
    out[0] = combine_equal (graph, wanted, tiny_layout_cast (graph, p, counts), g, zero, axis,
                            TINY_OP_ADD);
    return;
  }
  gint64 dims[MAX_RANK];
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : 1;
  TinyNode *at = tiny_layout_cast (graph, p, counts);
  TinyNode *summed = combine_equal (graph, at, at, g, zero, axis, TINY_OP_ADD);
  TinyNode *last
      = combine_equal (graph, count_along (graph, counts, axis, dims, rank),
                       tiny_layout_cast (graph, rows, counts),
                       count_along (graph, TINY_DTYPE_I32, axis, rows->shape->v, rank),
                       tiny_node_const_int (graph, TINY_DTYPE_I32, -1), axis, TINY_OP_MAX);
  out[0] = tiny_node_gather (graph, summed, axis, spread (graph, last, x));
}

/* Comparisons, bits, integer arithmetic, TRUNC and DETACH have no rule: nothing flows. What a GRADIENT
 * does is in custom-rules.c. */
static const TinyGradientRule rules[TINY_N_OPS] = {
  [TINY_OP_CAST] = rule_cast,       [TINY_OP_NEG] = rule_neg,
  [TINY_OP_RECIP] = rule_recip,     [TINY_OP_SQRT] = rule_sqrt,
  [TINY_OP_EXP2] = rule_exp2,       [TINY_OP_LOG2] = rule_log2,
  [TINY_OP_SIN] = rule_sin,         [TINY_OP_ADD] = rule_add,
  [TINY_OP_SUB] = rule_sub,         [TINY_OP_MUL] = rule_mul,
  [TINY_OP_FDIV] = rule_fdiv,       [TINY_OP_MAX] = rule_max,
  [TINY_OP_WHERE] = rule_where,     [TINY_OP_MULACC] = rule_mulacc,
  [TINY_OP_REDUCE] = rule_reduce,   [TINY_OP_CONTIGUOUS] = rule_pass,
  [TINY_OP_ASSIGN] = rule_assign,   [TINY_OP_COPY] = rule_copy,
  [TINY_OP_RESHAPE] = rule_reshape, [TINY_OP_EXPAND] = rule_expand,
  [TINY_OP_PERMUTE] = rule_permute, [TINY_OP_PAD] = rule_pad,
  [TINY_OP_SHRINK] = rule_shrink,   [TINY_OP_FLIP] = rule_flip,
  [TINY_OP_SHEAR] = rule_shear,     [TINY_OP_GATHER] = rule_gather,
  [TINY_OP_AFTER] = rule_pass,      [TINY_OP_SLOPED] = rule_sloped,
  [TINY_OP_UNSHARD] = rule_unshard,
};

TinyGradientRule
tiny_gradient_rule (TinyOp op)
{
  return rules[op];
}
