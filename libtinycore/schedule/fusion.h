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

/* A node, with all that is known of it; members that a walk over kernels looks at come first. */
typedef struct {
  TinyNode *node;
  guint first_value;    /* in Fusion.value_places: the places of what it computes with, … */
  guint n_values;       /* … so many */
  guint number;         /* in the kernel that is looked at (limit.c) */
  guint has_reduce : 1; /* fused, a REDUCE comes along */
  guint is_assumed : 1; /* by the estimates of its users: to be stored */
  guint is_forced : 1;
  guint is_given : 1; /* a PARAM or VARIABLE */
  guint is_stored : 1;
  guint was_stored : 1; /* when kernels were looked at last */
  guint is_claimed : 1; /* part of what a unit computes in one */
  guint is_weighed : 1; /* its costs are known */
  guint n_folds : 16;   /* that divide indices on one way down */
  guint contexts;    /* the first of those that its users gave it, in Fusion.given; 0: none */
  guint last;        /* of them */
  double n;          /* elements */
  double n_bytes;    /* of them all */
  double operations; /* per evaluation, fused */
  double leaf_bytes;
  const char *why; /* it is stored */
  guint depth, n_users;
  guint height; /* nodes on the longest way up to a root */
  guint n_leaves;
  guint32 leaves[MAX_LEAVES]; /* places of what it reads from memory */
} Info;

/* Costs of a node that was weighed. */
typedef struct {
  double stored, again;
} Costs;

/* A context that waits for its node, and the next of the same node, or 0. */
typedef struct {
  Context context;
  guint next;
} Given;

typedef struct {
  Plan *plan;
  GPtrArray *order; /* the last that is made of its nodes: their places are in it */
  Info *infos;
  Costs *costs;
  guint *value_places; /* of all nodes' sources, one node's after the other's */
  guint *seen;         /* by place: when a walk over a kernel was there last (limit.c) */
  guint n_walks;
  gboolean is_looked_at; /* kernels were, once at least */
  GArray *signatures;    /* of each kernel: the REDUCE whose loops it has, or NULL */
  GArray *lengths;       /* of each kernel: tiny_op_count_steps() of the nodes so far */
  GArray *given;         /* Given; the first one is nobody's */
  guint free;            /* the first of those in it that are free again, or 0 */
  GArray *contexts;      /* Context: of the node that is decided on, one for each kernel */
  guint *places;         /* of each kernel: where it may be among these */
} Fusion;

static inline Info *
fusion_get_info (const Fusion *self, const TinyNode *node)
{
  Info *info = &self->infos[node->place];
  g_assert (info->node == node);
  return info;
}

/* The node of source @i of @info's node, which it computes with. */
static inline Info *
fusion_get_value (const Fusion *self, const Info *info, guint i)
{
  return &self->infos[self->value_places[info->first_value + i]];
}

/* limit.c: stores more values until no kernel reads too many buffers or variables. Returns whether it did. */
gboolean fusion_limit_buffers (Fusion *self);

G_END_DECLS
