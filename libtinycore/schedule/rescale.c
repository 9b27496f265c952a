/* SPDX-License-Identifier: MIT
 *
 * rescale.c: a row's exponentials are summed in the pass that finds its maximum.
 *
 * The sum over i of 2^(k (x_i - M)) with M the row's maximum has to know M before it reads the row.
 * Where split-reduce.c makes both reductions in parts, a part c can do with its own maximum m_c,
 * which is found while the part is near:
 *
 *   sum over c of 2^(k (m_c - M)) * (sum over i in c of 2^(k (x_i - m_c)))
 *
 * (Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018). The row then is read
 * from memory once instead of twice. What is not finite comes out as before: a part of nothing but
 * -infinity has to add 0 where another is finite, so m_c is held at the least finite number; a NaN
 * or a +infinity makes its part NaN, and a row of nothing but -infinity is inf * 0. */
#include <float.h>
#include <string.h>

#include "schedule/plan.h"
#include "schedule/rescale.h"

static TinyNode *
skip_movement (TinyNode *node)
{
  while (tiny_op_is_movement (node->op))
    node = node->sources[0];
  return node;
}

gboolean
schedule_take_exponential (TinyNode *node, Exponential *out)
{
  if (node->op != TINY_OP_EXP2
      || (node->dtype != TINY_DTYPE_F32 && node->dtype != TINY_DTYPE_F64))
    return FALSE;
  TinyNode *difference = node->sources[0];
  out->k = NULL;
  for (guint i = 0; i < 2 && difference->op == TINY_OP_MUL && out->k == NULL; i++) {
    TinyNode *factor = difference->sources[i];
    while (tiny_op_is_movement (factor->op) && factor->op != TINY_OP_PAD
           && factor->op != TINY_OP_SHEAR) /* which have zeros beside it */
      factor = factor->sources[0];
    if (tiny_node_is_const (factor) && tiny_node_get_float (factor) > 0) {
      out->k = factor;
      difference = difference->sources[1 - i];
    }
  }
  if (difference->op != TINY_OP_SUB)
    return FALSE;
  out->x = difference->sources[0];
  out->maximum = difference->sources[1];
  return TRUE;
}

/* The maxima of the parts of @x, which has the shape of the parts, if @maximum is made of them. */
static TinyNode *
find_part_maxima (TinyNode *maximum, TinyNode *x, guint axis)
{
  TinyNode *all = skip_movement (maximum);
  if (all->op != TINY_OP_REDUCE || all->arg != TINY_OP_MAX || all->ints->n != 1
      || all->ints->v[0] != axis || all->sources[0]->op != TINY_OP_CONTIGUOUS)
    return NULL;
  TinyNode *parts = all->sources[0]->sources[0];
  gboolean fits = parts->op == TINY_OP_REDUCE && parts->arg == TINY_OP_MAX
                  && parts->ints->n == 1 && parts->ints->v[0] == axis + 1
                  && parts->sources[0] == x;
  return fits ? all->sources[0] : NULL;
}

/* Whether @maximum repeats what it is made of along the split axis only, as it was before. */
static gboolean
is_per_row (TinyNode *maximum, const gint64 *dims, guint rank, guint axis)
{
  TinyNode *row = maximum->op == TINY_OP_EXPAND ? maximum->sources[0] : maximum, *made_of = row;
  while (made_of->op == TINY_OP_RESHAPE)
    made_of = made_of->sources[0];
  if (row->shape->n != rank - 1 || made_of != skip_movement (maximum))
    return FALSE;
  for (guint i = 0; i < rank - 1; i++) {
    gint64 wanted = i == axis ? 1 : dims[i + (i > axis)];
    if (row->shape->v[i] != wanted)
      return FALSE;
  }
  return TRUE;
}

TinyNode *
schedule_exponential (TinyGraph *graph, const Exponential *e, TinyNode *x, TinyNode *y)
{
  TinyNode *difference = tiny_node_binary (graph, TINY_OP_SUB, x, y);
  if (e->k != NULL)
    difference = tiny_node_binary (graph, TINY_OP_MUL, difference, e->k);
  return tiny_node_unary (graph, TINY_OP_EXP2, difference);
}

TinyNode *
schedule_hold (TinyGraph *graph, TinyNode *maximum)
{
  double least = maximum->dtype == TINY_DTYPE_F32 ? -FLT_MAX : -DBL_MAX;
  return tiny_node_binary (graph, TINY_OP_MAX, maximum,
                           tiny_node_const_float (graph, maximum->dtype, least));
}

TinyNode *
schedule_rescale_parts (
    TinyGraph *graph, TinyNode *value, const gint64 *dims, guint rank, guint axis)
{
  Exponential e;
  gint64 part_dims[SCHEDULE_MAX_RANK + 1];
  if (!schedule_take_exponential (value, &e) || !is_per_row (e.maximum, dims, rank, axis))
    return NULL;
  TinyNode *x = tiny_node_reshape (graph, e.x, dims, rank);
  TinyNode *maxima = find_part_maxima (e.maximum, x, axis);
  if (maxima == NULL)
    return NULL;
  memcpy (part_dims, dims, rank * sizeof *dims);
  part_dims[axis + 1] = 1;
  TinyNode *held = schedule_hold (graph, maxima);
  TinyNode *part
      = schedule_exponential (graph, &e, x, tiny_node_expand (graph, held, dims, rank));
  part = tiny_node_reduce_axes (graph, part, TINY_OP_ADD, (gint64[]){ axis + 1 }, 1);
  part = tiny_node_new (graph, TINY_OP_CONTIGUOUS, part->dtype, 1, 1, &part, 0, NULL, NULL);
  TinyNode *all = tiny_node_expand (graph, skip_movement (e.maximum), part_dims, rank);
  return tiny_node_binary (graph, TINY_OP_MUL, part,
                           schedule_exponential (graph, &e, held, all));
}
