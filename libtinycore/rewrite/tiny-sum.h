/* SPDX-License-Identifier: MIT
 *
 * tiny-sum.h: INDEX expressions taken apart into terms; what the symbolic tables work on. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

enum { TINY_SUM_MAX_TERMS = 48 };

typedef struct {
  TinyNode *atom; /* not a sum, product with a constant, or constant */
  gint64 coef;
} TinyTerm;

/* sum of atom * coef, + constant. */
typedef struct {
  guint n;
  gint64 constant;
  TinyTerm terms[TINY_SUM_MAX_TERMS];
} TinySum;

void tiny_sum_clear (TinySum *self);
/* Adds @node * @scale. FALSE, with the sum spoilt: too many terms, or a coefficient overflows. */
gboolean tiny_sum_add (TinySum *self, TinyNode *node, gint64 scale);
gboolean tiny_sum_add_term (TinySum *self, TinyNode *atom, gint64 coef);
gboolean tiny_sum_add_constant (TinySum *self, gint64 value);
/* Orders terms by structure, joins equal atoms, drops zeros, and puts back together what a
 * division and its remainder took apart. FALSE when something overflows. */
gboolean tiny_sum_normalize (TinySum *self, TinyGraph *graph);
/* The terms left to right, the constant last. Of @like's lanes. */
TinyNode *tiny_sum_build (const TinySum *self, TinyGraph *graph, TinyNode *like);
/* Bounds from those of the atoms. FALSE when they leave INDEX's range. */
gboolean tiny_sum_get_bounds (const TinySum *self, gint64 *out_min, gint64 *out_max);

/* What the RANGE @range is where @x equals @y, integers, as an INDEX expression without it; NULL
 * where that cannot be told. It may be outside of the range. */
TinyNode *tiny_sum_solve (TinyGraph *graph, TinyNode *x, TinyNode *y, TinyNode *range);

/* A total order of nodes by structure, the same in every graph and run: negative, 0, positive. */
int tiny_node_compare_structure (const TinyNode *a, const TinyNode *b);

G_END_DECLS
