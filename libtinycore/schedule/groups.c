/* SPDX-License-Identifier: MIT
 *
 * groups.c: finds softmax and attention in a tensor graph, by their outlines. */
#include "schedule/groups.h"

enum {
  MAX_MASKS = 2,
  MAX_SEEN = 256
}; /* nodes that are looked at between the two sums of attention */

TinyNode *
groups_skip_movement (TinyNode *x)
{
  while (tiny_op_is_movement (x->op))
    x = x->sources[0];
  return x;
}

TinyNode *
groups_strip (TinyNode *x)
{
  while (tiny_op_is_movement (x->op) || x->op == TINY_OP_CAST || x->op == TINY_OP_DETACH)
    x = x->sources[0];
  return x;
}

/* x of x times a number; else NULL. */
static TinyNode *
skip_factor (TinyNode *x)
{
  for (guint i = 0; i < 2 && x->op == TINY_OP_MUL; i++)
    if (tiny_node_is_const (groups_skip_movement (x->sources[i])))
      return x->sources[1 - i];
  return NULL;
}

/* ---- softmax ---- */
gboolean
groups_is_softmax (const TinyNode *node)
{
  for (guint i = 0; i < 2 && node->op == TINY_OP_MUL; i++) {
    const TinyNode *inverse = groups_skip_movement (node->sources[i]);
    const TinyNode *sum
        = inverse->op == TINY_OP_RECIP ? groups_skip_movement (inverse->sources[0]) : NULL;
    if (sum != NULL && sum->op == TINY_OP_REDUCE && sum->arg == TINY_OP_ADD
        && groups_skip_movement (sum->sources[0])->op == TINY_OP_EXP2
        && groups_skip_movement (node->sources[1 - i])->op == TINY_OP_EXP2)
      return TRUE;
  }
  return FALSE;
}

TinyNode *
groups_get_softmax_operand (TinyNode *node)
{
  TinyNode *x = groups_skip_movement (node->sources[0]);
  x = x->op == TINY_OP_EXP2 ? x : groups_skip_movement (node->sources[1]);
  for (TinyNode *before = NULL; x != before;) {
    before = x;
    x = groups_strip (x);
    TinyNode *of_factor = skip_factor (x);
    if (x->op == TINY_OP_EXP2 || x->op == TINY_OP_SUB)
      x = x->sources[0];
    else if (of_factor != NULL)
      x = of_factor;
  }
  return x;
}

/* ---- attention ---- */
static gboolean
is_product_sum (const TinyNode *node)
{
  return node->op == TINY_OP_REDUCE && node->arg == TINY_OP_ADD
         && groups_strip (node->sources[0])->op == TINY_OP_MUL;
}

/* Whether @node is 0 or -∞ by the numbers of loops: nothing to be stored. */
static gboolean
is_causal (const TinyNode *node)
{
  if (node->op != TINY_OP_WHERE)
    return FALSE;
  const TinyNode *gate = groups_skip_movement (node->sources[0]);
  if (gate->op == TINY_OP_CMPNE)
    gate = groups_skip_movement (gate->sources[0]);
  for (guint i = 1; i < 3; i++)
    if (!tiny_node_is_const (groups_skip_movement (node->sources[i])))
      return FALSE;
  return gate->op == TINY_OP_CMPLT;
}

/* The sum of products that the scores @x are, once scaled and masked at most @n_masks times; the masks into
 * @operands. */
static TinyNode *
find_dot (TinyNode *x, guint n_masks, GPtrArray *operands)
{
  x = groups_strip (x);
  for (TinyNode *of_factor; (of_factor = skip_factor (x)) != NULL;)
    x = groups_strip (of_factor);
  if (is_product_sum (x))
    return x;
  if (n_masks == 0)
    return NULL;
  if (x->op == TINY_OP_WHERE) {
    const gboolean is_first = tiny_node_is_const (groups_skip_movement (x->sources[1]));
    return find_dot (x->sources[is_first ? 2 : 1], n_masks - 1, operands);
  }
  for (guint i = 0; i < 2 && x->op == TINY_OP_ADD; i++) {
    TinyNode *dot = find_dot (x->sources[i], n_masks - 1, operands),
             *mask = groups_strip (x->sources[1 - i]);
    if (dot != NULL && !is_causal (mask))
      g_ptr_array_add (operands, mask);
    if (dot != NULL)
      return dot;
  }
  return NULL;
}

/* Adds to @inside what of @node and below leads to @dot. */
static gboolean
find_inside (AttentionGroup *self, TinyNode *node, GHashTable *seen)
{
  if (node == self->dot)
    g_hash_table_add (self->inside, node);
  if (node == self->dot || !g_hash_table_add (seen, node))
    return g_hash_table_contains (self->inside, node);
  for (guint i = 0; i < node->n_sources; i++)
    if (!g_ptr_array_find (self->operands, node->sources[i], NULL)
        && g_hash_table_size (seen) < MAX_SEEN && find_inside (self, node->sources[i], seen))
      g_hash_table_add (self->inside, node);
  return g_hash_table_contains (self->inside, node);
}

AttentionGroup *
groups_find_attention (TinyNode *reduce)
{
  if (!is_product_sum (reduce))
    return NULL;
  TinyNode *product = groups_strip (reduce->sources[0]);
  TinyNode *weights = groups_skip_movement (product->sources[0]),
           *values = groups_strip (product->sources[1]);
  if (!groups_is_softmax (weights)) {
    weights = groups_skip_movement (product->sources[1]);
    values = groups_strip (product->sources[0]);
  }
  if (!groups_is_softmax (weights))
    return NULL;
  g_autoptr (GPtrArray) operands = g_ptr_array_new ();
  TinyNode *dot = find_dot (groups_get_softmax_operand (weights), MAX_MASKS, operands);
  if (dot == NULL)
    return NULL;
  TinyNode *scores = groups_strip (dot->sources[0]);
  g_ptr_array_add (operands, values);
  for (guint i = 0; i < 2; i++) {
    TinyNode *x = groups_strip (scores->sources[i]), *of_factor = skip_factor (x);
    g_ptr_array_add (operands, of_factor != NULL ? groups_strip (of_factor) : x);
  }
  AttentionGroup *self = g_new0 (AttentionGroup, 1);
  *self = (AttentionGroup){ reduce, dot, g_steal_pointer (&operands),
                            g_hash_table_new (NULL, NULL) };
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  find_inside (self, reduce, seen);
  return self;
}

void
groups_free_attention (AttentionGroup *self)
{
  g_ptr_array_unref (self->operands);
  g_hash_table_unref (self->inside);
  g_free (self);
}
