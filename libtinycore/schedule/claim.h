/* SPDX-License-Identifier: MIT
 *
 * claim.h: what a unit of the device computes instead of kernels. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* Whether a device of the plan has units that claim operations. */
gboolean schedule_has_claims (Plan *plan);
/* Rewrites plan->roots: canonical, with what is claimed stored, and its operands. */
void schedule_claim_operations (Plan *plan);
/* Gives those of the plan's items that compute something claimed their operation. */
void schedule_mark_claims (Plan *plan);
/* What @item's kernel is recognised as, if it is claimed, in the plan's arena; else NULL. */
const TinyOperation *schedule_offer (Plan *plan, const PlanItem *item);

/* Of a CONTIGUOUS: its number, instead of 0, where an operation gives its source. */
enum { SCHEDULE_CLAIMED = -1 };
static inline gboolean
schedule_is_claimed (const TinyNode *node)
{
  return node->op == TINY_OP_CONTIGUOUS && node->arg == SCHEDULE_CLAIMED;
}

/* ---- cuts, for claim.c ---- */
/* The roots with a cut above each node that is a key of @cuts, whose value is the cut's number. What is cut
 * already stays so. */
void claim_cut_roots (Plan *plan, TinyNode *const *roots, GHashTable *cuts);
/* Whoever reads what has a cut reads the cut: the graph has been rewritten since. */
void claim_share_cuts (Plan *plan);
/* A result that is what a unit gives but for axes of extent 1 is given by the unit, not copied. */
void claim_lift_roots (Plan *plan);

/* Adds the nodes of @order, sources before users, that are computed within something claimed. */
void schedule_find_claimed (const GPtrArray *order, TinyNodeMap *out);

G_END_DECLS
