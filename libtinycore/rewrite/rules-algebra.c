/* SPDX-License-Identifier: MIT
 *
 * rules-algebra.c: INDEX sums in one canonical form.
 *
 * A sum is terms atom * coefficient from left to right, atoms in structural order and all
 * different, then the constant; SUB, NEG and SHL do not occur, products distribute over sums.
 * Measure: the multiset of sums not in that form; each firing makes one canonical out of parts
 * that were. */
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

static inline TinyNode *
get_atom (TinyNode *term)
{
  return term->op == TINY_OP_MUL && term->sources[1]->op == TINY_OP_CONST ? term->sources[0]
                                                                          : term;
}

static inline gboolean
is_divided (TinyNode *atom)
{
  return atom->op == TINY_OP_FLOORMOD || atom->op == TINY_OP_FLOORDIV;
}

static TinyNode *
build_sum (TinyMatch *m)
{
  TinySum sum;
  tiny_sum_clear (&sum);
  if (!tiny_sum_add (&sum, m->root, 1) || !tiny_sum_normalize (&sum, m->graph))
    return NULL;
  return tiny_sum_build (&sum, m->graph, m->root);
}

/* The sources are canonical: often one comparison shows that the whole is. */
static TinyNode *
sort_sum (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *y = m->root->sources[1];
  gboolean x_is_sum = x->op == TINY_OP_ADD;
  TinyNode *last = x_is_sum ? x->sources[1] : x;
  if (y->op != TINY_OP_ADD && last->op != TINY_OP_CONST) {
    if (y->op == TINY_OP_CONST)
      return y->arg == 0 ? x : NULL;
    TinyNode *a = get_atom (last), *b = get_atom (y);
    if (!is_divided (b) && tiny_node_compare_structure (a, b) < 0)
      return NULL;
  }
  return build_sum (m);
}

static TinyNode *
distribute (TinyMatch *m)
{
  TinyNode *x = TINY_MATCH (m, 'x');
  gboolean is_product = x->op == TINY_OP_MUL && x->sources[1]->op == TINY_OP_CONST;
  return x->op == TINY_OP_ADD || is_product ? build_sum (m) : NULL;
}

static TinyNode *
order_product (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *y = m->root->sources[1];
  if (x->op == TINY_OP_CONST || y->op == TINY_OP_CONST)
    return NULL;
  TinyNode *swapped[] = { y, x };
  return tiny_node_compare_structure (x, y) > 0
             ? tiny_node_with_sources (m->graph, m->root, swapped)
             : NULL;
}

/* (x * c) * y = (x * y) * c */
static TinyNode *
lift_factor (TinyMatch *m)
{
  TinyNode *product
      = tiny_node_binary (m->graph, TINY_OP_MUL, TINY_MATCH (m, 'x'), TINY_MATCH (m, 'y'));
  if (TINY_MATCH (m, 'y')->op == TINY_OP_CONST)
    return NULL;
  return tiny_node_binary (m->graph, TINY_OP_MUL, product, TINY_MATCH (m, 'c'));
}

static TinyNode *
shift_to_product (TinyMatch *m)
{
  gint64 by = TINY_MATCH (m, 'c')->arg;
  if (by < 0 || by > 60)
    return NULL;
  return tiny_node_binary (m->graph, TINY_OP_MUL, TINY_MATCH (m, 'x'),
                           tiny_const_like (m->graph, m->root, (gint64) 1 << by));
}

static TinyNode *
shift_to_quotient (TinyMatch *m)
{
  gint64 by = TINY_MATCH (m, 'c')->arg;
  if (by < 0 || by > 60)
    return NULL;
  return tiny_node_binary (m->graph, TINY_OP_FLOORDIV, TINY_MATCH (m, 'x'),
                           tiny_const_like (m->graph, m->root, (gint64) 1 << by));
}

/* One operand is never the smaller. */
static TinyNode *
decide_max (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *y = m->root->sources[1];
  gint64 x_min, x_max, y_min, y_max;
  tiny_node_get_bounds (x, &x_min, &x_max);
  tiny_node_get_bounds (y, &y_min, &y_max);
  gboolean is_open = m->root->dtype == TINY_DTYPE_U64;
  if (x_min >= y_max && !(is_open && y_max == G_MAXINT64))
    return x;
  return y_min >= x_max && !(is_open && x_max == G_MAXINT64) ? y : NULL;
}

static const TinyRule rows[] = {
  { "sum", "add.index(x, y)", .build = sort_sum },
  { "distribute", "mul.index(x, #c)", .build = distribute },
  { "product-order", "mul.index(x, y)", .build = order_product },
  { "product-factor", "mul.index(mul(x, #c), y)", .build = lift_factor },
  { "difference", "sub.index(x, y)", "add(x, mul(y, -1))" },
  { "negative", "neg.index(x)", "mul(x, -1)" },
  { "shift-left", "shl.index(x, #c)", .build = shift_to_product },
  { "shift-right", "shr.index(x, #c)", .build = shift_to_quotient },
  { "max-decided", "max.integer(x, y)", .build = decide_max },
};

TINY_RULE_TABLE (tiny_rules_algebra, "algebra", rows);
