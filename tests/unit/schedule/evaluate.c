/* SPDX-License-Identifier: MIT
 *
 * evaluate.c: what a tensor graph means. Slow and plain on purpose. */
#include "evaluate.h"

#include <math.h>
#include <string.h>

#include "ir/tiny-shape.h"

enum { MAX_RANK = 32 };

Array *
array_new (TinyDType dtype, gint64 n)
{
  Array *self = g_new0 (Array, 1);
  self->dtype = dtype;
  self->n = n;
  self->v = g_new0 (Element, n + 1);
  return self;
}

void
array_free (Array *self)
{
  g_free (self->v);
  g_free (self);
}

static gint64
wrap (TinyDType dtype, gint64 x)
{
  guint bits = 8 * tiny_dtype_get_n_bytes (dtype);
  if (dtype == TINY_DTYPE_BOOL)
    return x != 0;
  if (dtype == TINY_DTYPE_INDEX || bits >= 64)
    return x;
  if (tiny_dtype_is_signed (dtype))
    return (gint64) ((guint64) x << (64 - bits)) >> (64 - bits);
  return x & (((gint64) 1 << bits) - 1);
}

static gint64
floor_div (gint64 x, gint64 y)
{
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static double
compute_float (TinyOp op, const Element *x)
{
  switch (op) {
  case TINY_OP_NEG:
    return -x[0].f;
  case TINY_OP_RECIP:
    return 1 / x[0].f;
  case TINY_OP_SQRT:
    return sqrt (x[0].f);
  case TINY_OP_EXP2:
    return exp2 (x[0].f);
  case TINY_OP_LOG2:
    return log2 (x[0].f);
  case TINY_OP_ADD:
    return x[0].f + x[1].f;
  case TINY_OP_SUB:
    return x[0].f - x[1].f;
  case TINY_OP_MUL:
    return x[0].f * x[1].f;
  case TINY_OP_MAX:
    return x[0].f > x[1].f ? x[0].f : x[1].f;
  case TINY_OP_FDIV:
    return x[0].f / x[1].f;
  case TINY_OP_SIN:
    return sin (x[0].f);
  case TINY_OP_TRUNC:
    return trunc (x[0].f);
  default:
    g_error ("no meaning for %s on floats", tiny_op_to_string (op));
  }
}

static gint64
compute_int (TinyOp op, const Element *x)
{
  switch (op) {
  case TINY_OP_NEG:
    return (gint64) (0 - (guint64) x[0].i);
  case TINY_OP_ADD:
    return (gint64) ((guint64) x[0].i + (guint64) x[1].i);
  case TINY_OP_SUB:
    return (gint64) ((guint64) x[0].i - (guint64) x[1].i);
  case TINY_OP_MUL:
    return (gint64) ((guint64) x[0].i * (guint64) x[1].i);
  case TINY_OP_MAX:
    return MAX (x[0].i, x[1].i);
  case TINY_OP_AND:
    return x[0].i & x[1].i;
  case TINY_OP_OR:
    return x[0].i | x[1].i;
  case TINY_OP_XOR:
    return x[0].i ^ x[1].i;
  case TINY_OP_FLOORDIV:
    return floor_div (x[0].i, x[1].i);
  case TINY_OP_FLOORMOD:
    return x[0].i - x[1].i * floor_div (x[0].i, x[1].i);
  default:
    g_error ("no meaning for %s on integers", tiny_op_to_string (op));
  }
}

/* One elementwise op of @dtype over sources of @from. */
Element
element_compute (TinyOp op, TinyDType dtype, TinyDType from, const Element *x)
{
  gboolean floats = tiny_dtype_is_float (from);
  Element y = { 0 };
  switch (op) {
  case TINY_OP_WHERE:
    return x[0].i ? x[1] : x[2];
  case TINY_OP_CMPLT:
    y.i = floats ? x[0].f < x[1].f : x[0].i < x[1].i;
    return y;
  case TINY_OP_CMPNE:
    y.i = floats ? x[0].f != x[1].f : x[0].i != x[1].i;
    return y;
  case TINY_OP_CMPEQ:
    y.i = floats ? x[0].f == x[1].f : x[0].i == x[1].i;
    return y;
  case TINY_OP_CAST:
    if (tiny_dtype_is_float (dtype))
      y.f = floats ? x[0].f : (double) x[0].i;
    else if (dtype == TINY_DTYPE_BOOL)
      y.i = floats ? x[0].f != 0 : x[0].i != 0;
    else
      y.i = wrap (dtype, floats ? (gint64) x[0].f : x[0].i);
    return y;
  case TINY_OP_MULACC:
    y.f = x[0].f * x[1].f + x[2].f;
    return y;
  default:
    if (tiny_dtype_is_float (dtype))
      y.f = compute_float (op, x);
    else if (dtype == TINY_DTYPE_BOOL && op == TINY_OP_ADD)
      y.i = x[0].i | x[1].i;
    else
      y.i = wrap (dtype, compute_int (op, x));
    return y;
  }
}

Element
element_get_const (const TinyNode *node)
{
  Element y = { 0 };
  if (tiny_dtype_is_float (node->dtype))
    y.f = tiny_node_get_float (node);
  else
    y.i = node->arg;
  return y;
}

Element
element_get_identity (TinyOp op, TinyDType dtype)
{
  Element y = { 0 };
  gboolean floats = tiny_dtype_is_float (dtype);
  if (op == TINY_OP_MUL && floats)
    y.f = 1;
  else if (op == TINY_OP_MUL)
    y.i = 1;
  else if (op == TINY_OP_MAX && floats)
    y.f = -INFINITY;
  else if (op == TINY_OP_MAX)
    y.i = tiny_dtype_get_min (dtype);
  return y;
}

/* ---- tensor stage ---- */
static void
unflatten (const TinyInts *shape, gint64 flat, gint64 *index)
{
  for (guint i = shape->n; i-- > 0;) {
    index[i] = flat % shape->v[i];
    flat /= shape->v[i];
  }
}

static gint64
flatten (const TinyInts *shape, const gint64 *index)
{
  gint64 flat = 0;
  for (guint i = 0; i < shape->n; i++)
    flat = flat * shape->v[i] + index[i];
  return flat;
}

/* Where element @flat of a movement node is in its source; -1: nowhere, it is 0. */
static gint64
find_source (const TinyNode *node, gint64 flat)
{
  const TinyInts *from = node->sources[0]->shape, *ints = node->ints;
  gint64 index[MAX_RANK], at[MAX_RANK];
  if (node->op == TINY_OP_RESHAPE)
    return flat;
  unflatten (node->shape, flat, index);
  for (guint i = 0; i < from->n; i++) {
    at[i] = index[i];
    if (node->op == TINY_OP_EXPAND && from->v[i] == 1)
      at[i] = 0;
    if (node->op == TINY_OP_PAD)
      at[i] = index[i] - ints->v[2 * i];
    if (node->op == TINY_OP_SHRINK)
      at[i] = index[i] + ints->v[2 * i];
  }
  if (node->op == TINY_OP_PERMUTE)
    for (guint i = 0; i < from->n; i++)
      at[ints->v[i]] = index[i];
  if (node->op == TINY_OP_FLIP)
    for (guint i = 0; i < ints->n; i++)
      at[ints->v[i]] = from->v[ints->v[i]] - 1 - index[ints->v[i]];
  if (node->op == TINY_OP_SHEAR) {
    gint64 sum = index[ints->v[0]] * ints->v[2] + index[ints->v[1]] * ints->v[3] + ints->v[4];
    if (floor_div (sum, ints->v[5]) * ints->v[5] != sum)
      return -1;
    at[ints->v[0]] = floor_div (sum, ints->v[5]);
  }
  for (guint i = 0; i < from->n; i++)
    if (at[i] < 0 || at[i] >= from->v[i])
      return -1;
  return flatten (from, at);
}

static void
evaluate_gather (const TinyNode *node, Array *const *sources, Array *out)
{
  const TinyInts *from = node->sources[0]->shape;
  for (gint64 k = 0; k < out->n; k++) {
    gint64 index[MAX_RANK], position = sources[1]->v[k].i;
    unflatten (node->shape, k, index);
    index[node->arg] = position;
    if (position >= 0 && position < from->v[node->arg])
      out->v[k] = sources[0]->v[flatten (from, index)];
  }
}

static Array *
evaluate_node (const TinyNode *node, GPtrArray *values, GPtrArray *inputs)
{
  Array *out = array_new (node->dtype, tiny_shape_get_n_elements (node->shape));
  Array *sources[4] = { NULL };
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = values->pdata[node->sources[i]->id];
  if (tiny_op_is_elementwise (node->op)) {
    for (gint64 k = 0; k < out->n; k++) {
      Element x[4];
      for (guint i = 0; i < node->n_sources; i++)
        x[i] = sources[i]->v[sources[i]->n == 1 ? 0 : k];
      out->v[k] = element_compute (node->op, node->dtype, node->sources[0]->dtype, x);
    }
  } else if (tiny_op_is_movement (node->op)) {
    for (gint64 k = 0; k < out->n; k++) {
      gint64 at = find_source (node, k);
      if (at >= 0)
        out->v[k] = sources[0]->v[at];
    }
  } else if (node->op == TINY_OP_REDUCE) {
    for (gint64 k = 0; k < out->n; k++)
      out->v[k] = element_get_identity (node->arg, node->dtype);
    for (gint64 k = 0; k < sources[0]->n; k++) {
      gint64 index[MAX_RANK];
      unflatten (node->sources[0]->shape, k, index);
      for (guint i = 0; i < node->ints->n; i++)
        index[node->ints->v[i]] = 0;
      Element *acc = &out->v[flatten (node->shape, index)];
      *acc = element_compute (node->arg, node->dtype, node->dtype,
                              (Element[]){ *acc, sources[0]->v[k] });
    }
  } else if (node->op == TINY_OP_GATHER) {
    evaluate_gather (node, sources, out);
  } else if (node->op == TINY_OP_CONST) {
    out->v[0] = element_get_const (node);
  } else if (node->op == TINY_OP_IOTA) {
    for (gint64 k = 0; k < out->n; k++)
      if (tiny_dtype_is_float (node->dtype))
        out->v[k].f = (double) k;
      else
        out->v[k].i = k;
  } else if (node->op == TINY_OP_PARAM) {
    memcpy (out->v, ((Array *) inputs->pdata[node->arg])->v, out->n * sizeof (Element));
  } else {
    memcpy (out->v, sources[node->op == TINY_OP_ASSIGN]->v, out->n * sizeof (Element));
  }
  return out;
}

GPtrArray *
evaluate_graph (TinyGraph *graph, TinyNode *sink, GPtrArray *inputs)
{
  g_autoptr (GPtrArray) values = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, sink->sources, sink->n_sources);
  GPtrArray *outputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_ptr_array_set_size (values, tiny_graph_get_n_nodes (graph));
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    values->pdata[node->id] = evaluate_node (node, values, inputs);
  }
  for (guint i = 0; i < sink->n_sources; i++) {
    Array *value = values->pdata[sink->sources[i]->id];
    Array *copy = array_new (value->dtype, value->n);
    memcpy (copy->v, value->v, value->n * sizeof (Element));
    g_ptr_array_add (outputs, copy);
  }
  for (guint i = 0; i < values->len; i++)
    if (values->pdata[i] == NULL)
      values->pdata[i] = array_new (TINY_DTYPE_BOOL, 0);
  return outputs;
}

/* Both sides compute in f64: sums of 1e5 terms in another order differ by about 1e-11 of the largest. */
gboolean
arrays_equal (const Array *a, const Array *b, char **out_difference)
{
  if (a->n != b->n || a->dtype != b->dtype) {
    *out_difference = g_strdup ("sizes or dtypes differ");
    return FALSE;
  }
  for (gint64 k = 0; k < a->n; k++) {
    gboolean same = a->v[k].i == b->v[k].i;
    if (tiny_dtype_is_float (a->dtype)) {
      double x = a->v[k].f, y = b->v[k].f;
      same = x == y || (isnan (x) && isnan (y)) || fabs (x - y) <= 1e-9 * fmax (fabs (x), 1);
    }
    if (!same) {
      *out_difference
          = tiny_dtype_is_float (a->dtype)
                ? g_strdup_printf ("element %d: %g, not %g", (int) k, b->v[k].f, a->v[k].f)
                : g_strdup_printf ("element %d: %d, not %d", (int) k, (int) b->v[k].i,
                                   (int) a->v[k].i);
      return FALSE;
    }
  }
  return TRUE;
}
