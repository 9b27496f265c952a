/* SPDX-License-Identifier: MIT
 *
 * tiny-limit.c: what each op makes of sizes that are known at launch. */
#include "ir/tiny-limit.h"

#include <string.h>

#include "ir/tiny-shape.h"

enum { MAX_RANK = TINY_LIMIT_MAX_RANK };

static gboolean
is_refused (const TinyNode *limits)
{
  return limits != NULL && limits->text != NULL;
}

static TinyNode *
refuse (TinyGraph *graph, const char *why)
{
  return tiny_node_sink (graph, 0, NULL, why);
}

TinyNode *
tiny_limits_find (const TinyNode *limits, guint axis)
{
  if (axis >= limits->n_sources)
    return NULL;
  TinyNode *size = limits->sources[axis];
  return tiny_node_is_const_int (size, -1) ? NULL : size;
}

/* Of @n axes, NULL where there is none. */
static TinyNode *
make (TinyGraph *graph, TinyNode *const *limits, guint n)
{
  TinyNode *sources[MAX_RANK];
  gboolean any = FALSE;
  for (guint i = 0; i < n; i++) {
    any = any || limits[i] != NULL;
    sources[i]
        = limits[i] != NULL ? limits[i] : tiny_node_const_int (graph, TINY_DTYPE_I32, -1);
  }
  return any ? tiny_node_sink (graph, n, sources, NULL) : NULL;
}

/* The least that @size can be, as far as that is plain. */
static gint64
get_least (const TinyNode *size)
{
  return size->op == TINY_OP_VARIABLE && size->ints != NULL && size->ints->n == 2
             ? size->ints->v[0]
             : 0;
}

gint64
tiny_limit_evaluate (const TinyNode *size)
{
  switch (size->op) {
  case TINY_OP_CONST:
  case TINY_OP_VARIABLE:
    return size->arg;
  case TINY_OP_ADD:
    return tiny_limit_evaluate (size->sources[0]) + tiny_limit_evaluate (size->sources[1]);
  case TINY_OP_MUL:
    return tiny_limit_evaluate (size->sources[0]) * tiny_limit_evaluate (size->sources[1]);
  default:
    g_assert_not_reached ();
  }
}

static TinyNode *
of_elementwise (TinyGraph *graph, const TinyNode *node)
{
  const TinyNode *first = NULL;
  for (guint i = 0; i < node->n_sources; i++) {
    const TinyNode *source = node->sources[i];
    if (source->shape == NULL || source->shape->n == 0)
      continue;
    if (first != NULL && first->limits != source->limits)
      return refuse (graph, "sizes differ: one is a variable");
    first = source;
  }
  return first != NULL ? first->limits : NULL;
}

/* Axes i .. i_end of @from become j .. j_end of @to: the same elements in the same order. */
static gboolean
regroup (TinyGraph *graph,
         const TinyNode *x,
         guint i,
         guint i_end,
         const TinyInts *to,
         guint j,
         guint j_end,
         TinyNode **out)
{
  TinyNode *limit = NULL;
  gint64 outer = 0; /* its size */
  for (guint k = i, n_before = 0; k < i_end; k++) {
    TinyNode *here = tiny_limit_get (x, k);
    if (here != NULL && n_before > 0)
      return FALSE;
    if (here != NULL) {
      limit = here;
      outer = x->shape->v[k];
    }
    n_before += x->shape->v[k] != 1;
  }
  for (guint k = j; limit != NULL && k < j_end; k++) {
    if (to->v[k] == 1)
      continue;
    /* Whole rows of the limited axis, or as many elements as they have. */
    gint64 inner = 1;
    for (guint l = k + 1; l < j_end; l++)
      inner *= to->v[l];
    gint64 repeats = to->v[k] / outer;
    if (to->v[k] % outer != 0 || (repeats > 1 && inner > 1))
      return FALSE;
    out[k] = repeats == 1
                 ? limit
                 : tiny_node_binary (graph, TINY_OP_MUL, limit,
                                     tiny_node_const_int (graph, limit->dtype, repeats));
    return TRUE;
  }
  return limit == NULL;
}

static TinyNode *
of_reshape (TinyGraph *graph, const TinyNode *node)
{
  const TinyNode *x = node->sources[0];
  const TinyInts *from = x->shape, *to = node->shape;
  TinyNode *out[MAX_RANK] = { NULL };
  if (tiny_shape_get_n_elements (from) == 0)
    return refuse (graph, "there are no elements");
  for (guint i = 0, j = 0; i < from->n || j < to->n;) {
    gint64 a = i < from->n ? from->v[i] : 1, b = j < to->n ? to->v[j] : 1;
    guint i_end = MIN (i + 1, from->n), j_end = MIN (j + 1, to->n);
    while (a != b)
      if (a < b)
        a *= from->v[i_end++];
      else
        b *= to->v[j_end++];
    if (!regroup (graph, x, i, i_end, to, j, j_end, out))
      return refuse (graph, "an axis whose size is a variable is split, or is joined with one "
                            "outside of it: give "
                            "it as -1, with axes that come after it");
    i = i_end;
    j = j_end;
  }
  return make (graph, out, to->n);
}

static TinyNode *
of_permute (TinyGraph *graph, const TinyNode *node)
{
  TinyNode *out[MAX_RANK] = { NULL };
  for (guint i = 0; i < node->ints->n; i++)
    out[i] = tiny_limit_get (node->sources[0], (guint) node->ints->v[i]);
  return make (graph, out, node->ints->n);
}

static TinyNode *
of_limit (TinyGraph *graph, const TinyNode *node)
{
  TinyNode *out[MAX_RANK] = { NULL };
  for (guint i = 0; i < node->shape->n; i++)
    out[i] = tiny_limit_get (node->sources[0], i);
  out[node->arg] = node->sources[1]->op != TINY_OP_CONST ? node->sources[1] : NULL;
  return make (graph, out, node->shape->n);
}

/* Movement that has to leave such an axis as it is, but for a beginning that is always there. */
static TinyNode *
of_other_movement (TinyGraph *graph, const TinyNode *node)
{
  const TinyNode *x = node->sources[0];
  TinyNode *out[MAX_RANK] = { NULL };
  for (guint i = 0; i < x->shape->n; i++) {
    TinyNode *limit = out[i] = tiny_limit_get (x, i);
    if (limit == NULL)
      continue;
    const gint64 *ints = node->ints->v;
    gboolean whole = TRUE;
    if (node->op == TINY_OP_PAD) {
      whole = ints[2 * i] == 0 && ints[2 * i + 1] == 0;
    } else if (node->op == TINY_OP_SHRINK && ints[2 * i + 1] <= get_least (limit)) {
      out[i] = NULL;
    } else if (node->op == TINY_OP_SHRINK) {
      whole = ints[2 * i] == 0 && ints[2 * i + 1] == x->shape->v[i];
    } else if (node->op == TINY_OP_SHEAR) {
      whole = ints[0] != i && (ints[1] != i || ints[3] == 0);
    } else {
      for (guint k = 0; k < node->ints->n; k++) /* FLIP, REDUCE */
        whole = whole && ints[k] != i;
    }
    if (!whole)
      return refuse (
          graph, "an axis whose size is a variable is cut, padded, reversed or combined: do "
                 "that with the whole, and shorten it then");
  }
  return make (graph, out, x->shape->n);
}

static TinyNode *
of_gather (TinyGraph *graph, const TinyNode *node)
{
  const TinyNode *x = node->sources[0], *at = node->sources[1];
  for (guint i = 0; i < x->shape->n; i++)
    if (i == node->arg ? tiny_limit_get (x, i) != NULL
                       : tiny_limit_get (x, i) != tiny_limit_get (at, i))
      return refuse (
          graph, "positions are looked up along or beside an axis whose size is a variable");
  return at->limits;
}

TinyNode *
tiny_limits_of_node (TinyGraph *graph, const TinyNode *node)
{
  gboolean any = node->op == TINY_OP_LIMIT;
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *limits = node->sources[i]->limits;
    if (is_refused (limits))
      return limits;
    any = any || limits != NULL;
  }
  if (!any || node->shape == NULL)
    return NULL;
  if (tiny_op_is_elementwise (node->op) || node->op == TINY_OP_SLOPED)
    return of_elementwise (graph, node);
  switch (node->op) {
  case TINY_OP_CONTIGUOUS:
  case TINY_OP_DETACH:
  case TINY_OP_COPY:
    return node->sources[0]->limits;
  case TINY_OP_EXPAND:
    return node->sources[0]->limits;
  case TINY_OP_GRADIENT:
    return node->sources[node->ints->v[0]]->limits;
  case TINY_OP_RESHAPE:
    return of_reshape (graph, node);
  case TINY_OP_PERMUTE:
    return of_permute (graph, node);
  case TINY_OP_LIMIT:
    return of_limit (graph, node);
  case TINY_OP_PAD:
  case TINY_OP_SHRINK:
  case TINY_OP_FLIP:
  case TINY_OP_SHEAR:
  case TINY_OP_REDUCE:
    return of_other_movement (graph, node);
  case TINY_OP_GATHER:
    return of_gather (graph, node);
  default:
    return refuse (graph,
                   "an axis has a size that is a variable: give it one that is a number");
  }
}

TinyNode *
tiny_node_limit (TinyGraph *graph, TinyNode *x, guint axis, TinyNode *size)
{
  if (tiny_limit_get (x, axis) == size)
    return x;
  if (size == NULL)
    size = tiny_node_const_int (graph, TINY_DTYPE_I32, x->shape->v[axis]);
  TinyNode *sources[] = { x, size };
  return tiny_node_new (graph, TINY_OP_LIMIT, x->dtype, 1, 2, sources, axis, NULL, NULL);
}

TinyNode *
tiny_node_limit_like (TinyGraph *graph, TinyNode *x, const TinyNode *like, guint32 except)
{
  for (guint i = 0; like->limits != NULL && i < x->shape->n; i++)
    if ((except >> i & 1) == 0 && tiny_limit_get (like, i) != NULL)
      x = tiny_node_limit (graph, x, i, tiny_limit_get (like, i));
  return x;
}
