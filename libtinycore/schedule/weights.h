/* SPDX-License-Identifier: MIT
 *
 * weights.h: the numbers that the scheduler weighs by, all in one place.
 *
 * Costs are in the time of one simple operation on one element by a vector unit. Tests change
 * them to see every path with small tensors; a program never does. What depends on the machine is
 * taken from a target's description where there is one (ScheduleMachine).
 *
 * Not from the machine: what a byte and a launch cost. A measured bandwidth is another one each time
 * it is measured, and a schedule that followed it would be as well, with the kernels that were tuned
 * and cached for it. And threads count in powers of two from eight on, reductions are split into as
 * many parts for any number of them: TINY_THREADS=1 and 8 compute the same bits. */
#pragma once

#include "ir/tiny-op.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

typedef struct {
  /* fusion.c */
  double byte;         /* moved to or from memory */
  double launch;       /* one more kernel */
  double access;       /* one LOAD, address and all */
  double mask;         /* one condition of a PAD or SHEAR */
  double even;         /* a REDUCE may be evaluated this many times per element it has */
  guint max_buffers;   /* that one kernel reads; with the output and what packing adds ≤ 32 */
  guint max_variables; /* that one kernel is given; what WebGPU promises */
  guint max_depth;     /* nodes on one way through a kernel */
  guint max_length;    /* tiny_op_count_steps() of all that it does for an element */
  guint max_folds;     /* RESHAPEs that divide indices on one way through a kernel */
  /* share.c */
  double local; /* one access to memory of the kernel */
  /* row-blocks.c */
  gint64 row_block; /* elements of a row's block, at least */
  /* merge.c */
  guint max_nodes; /* of a kernel made of several */
  double alike; /* contractions that take at most this share together of what they do apart */
  /* recompute.c */
  double far_bytes; /* a temporary of so many comes from far away */
  double far_byte;  /* moved to or from one */
  /* A value that each reader may compute is this many times what it is made from. */
  double recompute_growth;
  /* pass-canonical.c */
  double max_extra_work;  /* a merged reduction may do this many times the work of the two */
  double work_of_storing; /* what an element that need not be stored is worth, in evaluations */
  /* split-reduce.c */
  gint64 split_max_outputs;       /* more give threads enough to do */
  gint64 split_min_reduced;       /* values combined into one, at least */
  gint64 split_min_total;         /* values combined in all, at least */
  gint64 split_least, split_most; /* kernels' worth of partial results */
  gint64 split_contraction;       /* of a product of matrices */
  /* multi-rules.c */
  gint64 strip_elements; /* of a result that several devices combine: fewer are copied whole */
  /* packing.c */
  gint64 pack_min_reuse;  /* each packed element is used at least this many times */
  gint64 pack_min_work;   /* products in the contraction, at least */
  double pack_max_growth; /* a packed copy is at most this many times what it is made from */
  /* A product in a tile with one vector a row costs as much as this many in a tile with two. */
  double narrow_tile;
  /* panels.c */
  gint64 pack_block; /* columns of a panel: a tile's vectors, and not less than a cache line */
  /* where no target is known */
  double lanes, workers;
  gint64 local_bytes, near_bytes;
  /* claim.c */
  double steps_per_ns; /* simple operations of a vector unit */
} ScheduleWeights;

extern ScheduleWeights schedule_weights;

/* What a schedule asks of the machine that it is for. */
typedef struct {
  double lanes;             /* f32 elements of a vector; 1 where none is wasted by a scalar */
  double workers;           /* threads that are worth keeping busy */
  gint64 local_bytes;       /* memory of the kernel in one kernel */
  gint64 large_local_bytes; /* the same where a large value need not be stored for it */
  gint64 near_bytes;        /* of operands that stay near a core */
  gint64 tile_rows;  /* that a tile has memory of the kernel for; 0: work-groups share it */
  guint max_buffers; /* of a kernel, those that it writes among them */
  guint32 dtypes_storage; /* TINY_DTYPE_BIT of what it can store by itself */
} ScheduleMachine;

/* @target may be NULL: then as the weights say. */
ScheduleMachine schedule_machine_of (const TinyTarget *target);

/* What an elementwise operation costs, in simple ones. */
double schedule_get_op_cost (TinyOp op);

G_END_DECLS
