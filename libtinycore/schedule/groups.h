/* SPDX-License-Identifier: MIT
 *
 * groups.h: what of a tensor graph may be one operation though it has several reductions. What is found here is
 * a guess that is cheap: whether it is one, its kernel says (recognise.h). */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* What @x is a view of. */
TinyNode *groups_skip_movement (TinyNode *x);
/* What @x is a view of, in the same numbers or less wide ones. */
TinyNode *groups_strip (TinyNode *x);

/* Whether @node may be powers of something divided by their sum. */
gboolean groups_is_softmax (const TinyNode *node);
/* Of such a @node: what the powers are of. */
TinyNode *groups_get_softmax_operand (TinyNode *node);

/* softmax (q kᵀ · scale + mask) v */
typedef struct {
  TinyNode *top;       /* the sum over keys */
  TinyNode *dot;       /* the sum over depth */
  GPtrArray *operands; /* what is to be stored if a unit computes it, leaves among them */
  GHashTable *inside;  /* the nodes between @top and @dot, and these */
} AttentionGroup;

/* What may be attention that ends with @reduce; NULL: it is none. */
AttentionGroup *groups_find_attention (TinyNode *reduce);
void groups_free_attention (AttentionGroup *self);

G_END_DECLS
