/* SPDX-License-Identifier: MIT
 *
 * fusion.h: what is known of each value while it is decided which are kept in memory. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

enum { MAX_LEAVES = 8 };

/* A kernel in which a node would be evaluated. */
typedef struct {
  guint kernel;
  gboolean in_reduce;
  gboolean by_movement;
  gboolean repeated; /* an EXPAND makes copies of it on the way */
  double evaluations;
} Context;

typedef struct {
  TinyNode *node;
  double n;          /* elements */
  double n_bytes;    /* of them all */
  double operations; /* per evaluation, fused */
  guint depth, n_users;
  guint height;        /* nodes on the longest way up to a root */
  guint n_folds;       /* that divide indices on one way down */
  guint number;        /* in the kernel that is looked at (limit.c) */
  gboolean has_reduce; /* fused, a REDUCE comes along */
  gboolean is_assumed; /* by the estimates of its users: to be stored */
  gboolean is_forced;
  gboolean is_stored;
  gboolean is_claimed; /* part of what a unit computes in one */
  const char *why;     /* it is stored */
  double cost_stored, cost_again;
  guint n_leaves;
  guint32 leaves[MAX_LEAVES]; /* places of what it reads from memory */
  double leaf_bytes;
  guint contexts; /* the first of those that its users gave it, in Fusion.given; 0: none */
  guint last;     /* of them */
} Info;

/* A context that waits for its node, and the next of the same node, or 0. */
typedef struct {
  Context context;
  guint next;
} Given;

typedef struct {
  Plan *plan;
  GPtrArray *order; /* the last that is made of its nodes: their places are in it */
  Info *infos;
  GArray *signatures; /* of each kernel: the REDUCE whose loops it has, or NULL */
  GArray *given;      /* Given; the first one is nobody's */
  guint free;         /* the first of those in it that are free again, or 0 */
  GArray *contexts;   /* Context: of the node that is decided on, one for each kernel */
  guint *places;      /* of each kernel: where it may be among these */
} Fusion;

static inline Info *
fusion_get_info (const Fusion *self, const TinyNode *node)
{
  Info *info = &self->infos[node->place];
  g_assert (info->node == node);
  return info;
}

/* limit.c: stores more values until no kernel reads too many buffers or variables. Returns whether it did. */
gboolean fusion_limit_buffers (Fusion *self);

G_END_DECLS
