/* SPDX-License-Identifier: MIT
 *
 * weights.h: the numbers that the scheduler weighs by, all in one place.
 *
 * Costs are in the time of one simple operation on one element by a vector unit. Tests change
 * them to see every path with small tensors; a program never does. */
#pragma once

#include "ir/tiny-op.h"

G_BEGIN_DECLS

typedef struct {
  /* fusion.c */
  double byte;       /* moved to or from memory */
  double launch;     /* one more kernel */
  double access;     /* one LOAD, address and all */
  double mask;       /* one condition of a PAD or SHEAR */
  double even;       /* a REDUCE may be evaluated this many times per element it has */
  guint max_buffers; /* that one kernel reads; with the output and what packing adds ≤ 32 */
  guint max_depth;   /* elementwise nodes on one way through a kernel */
  /* work.c */
  double lanes;   /* elements of a vector */
  double workers; /* threads that are worth keeping busy */
  /* share.c */
  double local;       /* one access to memory of the kernel */
  gint64 local_bytes; /* of it in one kernel */
  /* merge.c */
  guint max_nodes; /* of a kernel made of several */
  double alike; /* contractions that take at most this share together of what they do apart */
  /* recompute.c */
  double recompute_bytes;  /* what has fewer is stored as usual */
  double recompute_growth; /* and what is not this many times what it is made from */
  double far_byte;         /* moved to or from a temporary of so many bytes */
  /* pass-canonical.c */
  double max_extra_work;  /* a merged reduction may do this many times the work of the two */
  double work_of_storing; /* what an element that need not be stored is worth, in evaluations */
  /* split-reduce.c */
  gint64 split_max_outputs;       /* more give threads enough to do */
  gint64 split_min_reduced;       /* values combined into one, at least */
  gint64 split_min_total;         /* values combined in all, at least */
  gint64 split_least, split_most; /* kernels' worth of partial results */
  gint64 split_cache;             /* bytes of operands that stay near a core */
  /* packing.c */
  gint64 pack_min_reuse;  /* each packed element is used at least this many times */
  gint64 pack_min_work;   /* products in the contraction, at least */
  double pack_max_growth; /* a packed copy is at most this many times what it is made from */
  /* panels.c */
  gint64 pack_block; /* columns of a panel: a tile's vectors, and not less than a cache line */
} ScheduleWeights;

extern ScheduleWeights schedule_weights;

/* What an elementwise operation costs, in simple ones. */
double schedule_get_op_cost (TinyOp op);

G_END_DECLS
