/* SPDX-License-Identifier: MIT
 *
 * loops.h: the loops of a kernel being made. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* Loops that lie next to each other: those of the output, or of reduces alike. An axis is one
 * loop, or several where that makes addresses simpler; neighbouring loops may then become one. */
typedef struct {
  guint depth; /* 0: the output's, 1: a reduce's, 2: of one inside a reduce … */
  guint n_axes, n_parts;
  gint64 extents[SCHEDULE_MAX_RANK];      /* of the axes */
  guint n_axis_parts[SCHEDULE_MAX_RANK];  /* parts of each axis */
  gint64 parts[SCHEDULE_MAX_RANK];        /* extents of the parts, outermost first */
  const Affine *index[SCHEDULE_MAX_RANK]; /* what stands for each axis */
  guint n_ranges;
  TinyNode *ranges[SCHEDULE_MAX_RANK]; /* the loops themselves */
} LoopGroup;

typedef struct {
  TinyGraph *graph;
  AffinePool *pool;
  TinyArena *arena;
  GPtrArray *groups; /* LoopGroup; the output's first */
  guint n_ranges;    /* the next loop's number */
} Loops;

/* A new group with a loop an axis. */
LoopGroup *loops_add (Loops *self, guint depth, guint n, const gint64 *extents);
/* The loops of a reduce; those with the same extents at the same depth share theirs. */
LoopGroup *loops_get_reduce (Loops *self, guint depth, guint n, const gint64 *extents);

/* @used holds every Affine that the kernel uses as an address or in a condition, over loops of
 * which each is an axis. Splits axes; returns whether it did: then all loops are new. */
gboolean loops_split (Loops *self, const GPtrArray *used);
/* Joins neighbours, and numbers all loops anew; @used is over the loops as they were. Returns whether any is another one
 * now. */
gboolean loops_join (Loops *self, const GPtrArray *used);

G_END_DECLS
