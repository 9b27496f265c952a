/* SPDX-License-Identifier: MIT
 *
 * move-index.c: how a movement changes the index of each axis, and where it has a value. */
#include "schedule/move-index.h"

#include <string.h>

/* ---- conditions: NULL is true, a CONST false is false ---- */
TinyNode *
index_both (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL || x == y)
    return x == NULL ? y : x;
  if (tiny_node_is_const (x) || tiny_node_is_const (y))
    return tiny_node_is_const (x) ? x : y;
  return tiny_node_binary (graph, TINY_OP_AND, x, y);
}

TinyNode *
index_use (const Indexing *self, const Affine *x)
{
  g_ptr_array_add (self->used, (gpointer) x);
  return affine_to_node (self->pool, x);
}

/* lo <= x < hi, said of x without its offset. */
static TinyNode *
within (const Indexing *self, const Affine *x, gint64 lo, gint64 hi)
{
  TinyNode *above = NULL, *below = NULL;
  if (x->hi < lo || x->lo >= hi)
    return tiny_node_const_int (self->graph, TINY_DTYPE_BOOL, 0);
  if (x->lo >= lo && x->hi < hi)
    return NULL;
  TinyNode *base = index_use (self, affine_scale (self->pool, x, 1, -x->offset));
  if (x->lo < lo)
    above = tiny_node_binary (self->graph, TINY_OP_CMPLT,
                              tiny_node_const_index (self->graph, lo - 1 - x->offset), base);
  if (x->hi >= hi)
    below = tiny_node_binary (self->graph, TINY_OP_CMPLT, base,
                              tiny_node_const_index (self->graph, hi - x->offset));
  return index_both (self->graph, above, below);
}

/* ---- movement: from an index of the node to one of its source ---- */
static void
unreshape (const Indexing *self, TinyNode *node, const Affine *const *index, const Affine **out)
{
  const TinyInts *from = node->sources[0]->shape, *to = node->shape;
  guint i = 0, j = 0;
  while (i < from->n || j < to->n) {
    /* The fewest axes on both sides that hold the same number of elements. */
    gint64 a = i < from->n ? from->v[i] : 1, b = j < to->n ? to->v[j] : 1;
    guint i_end = MIN (i + 1, from->n), j_end = MIN (j + 1, to->n);
    while (a != b) {
      if (a < b)
        a *= from->v[i_end++];
      else
        b *= to->v[j_end++];
    }
    if (i_end == i + 1 && j_end == j + 1) {
      out[i] = index[j];
    } else {
      const Affine *flat = affine_const (self->pool, 0);
      for (guint k = j; k < j_end; k++)
        flat = affine_sum (self->pool, flat, to->v[k], index[k], 1, 0);
      gint64 inner = 1;
      for (guint k = i_end; k-- > i;) {
        const Affine *part = affine_div (self->pool, flat, inner);
        gboolean outermost = inner * from->v[k] == a;
        out[k] = from->v[k] == 1 ? affine_const (self->pool, 0)
                 : outermost     ? part
                                 : affine_mod (self->pool, part, from->v[k]);
        inner *= from->v[k];
      }
    }
    i = i_end;
    j = j_end;
  }
}

TinyNode *
index_move (const Indexing *self,
            TinyNode *node,
            const Affine *const *index,
            const Affine **out)
{
  const TinyInts *from = node->sources[0]->shape, *ints = node->ints;
  TinyNode *valid = NULL;
  if (node->op == TINY_OP_RESHAPE) {
    unreshape (self, node, index, out);
    return NULL;
  }
  memcpy (out, index, from->n * sizeof *out);
  switch (node->op) {
  case TINY_OP_EXPAND:
    for (guint i = 0; i < from->n; i++)
      if (from->v[i] == 1)
        out[i] = affine_const (self->pool, 0);
    break;
  case TINY_OP_PERMUTE:
    for (guint i = 0; i < from->n; i++)
      out[ints->v[i]] = index[i];
    break;
  case TINY_OP_PAD:
    for (guint i = 0; i < from->n; i++) {
      out[i] = affine_scale (self->pool, index[i], 1, -ints->v[2 * i]);
      valid = index_both (self->graph, valid, within (self, out[i], 0, from->v[i]));
    }
    break;
  case TINY_OP_SHRINK:
    for (guint i = 0; i < from->n; i++)
      out[i] = affine_scale (self->pool, index[i], 1, ints->v[2 * i]);
    break;
  case TINY_OP_FLIP:
    for (guint i = 0; i < ints->n; i++)
      out[ints->v[i]]
          = affine_scale (self->pool, index[ints->v[i]], -1, from->v[ints->v[i]] - 1);
    break;
  default: { /* SHEAR */
    guint p = ints->v[0], k = ints->v[1];
    gint64 divisor = ints->v[5];
    const Affine *at
        = affine_sum (self->pool, index[p], ints->v[2], index[k], ints->v[3], ints->v[4]);
    out[p] = affine_div (self->pool, at, divisor);
    valid = within (self, out[p], 0, from->v[p]);
    if (divisor > 1) {
      const Affine *rest = affine_mod (self->pool, at, divisor);
      valid = index_both (self->graph, valid, within (self, rest, 0, 1));
    }
    break;
  }
  }
  return valid;
}
