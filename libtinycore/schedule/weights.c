/* SPDX-License-Identifier: MIT
 *
 * weights.c: the scheduler's numbers. A byte is dear: a core does some 16 operations in the time
 * that memory takes for 8 bytes. A launch is what 20 µs of one core's simple operations are. */
#include "schedule/weights.h"

ScheduleWeights schedule_weights = {
  .byte = 2,
  .launch = 20000,
  .access = 0.5,
  .mask = 2,
  .even = 1.01,
  .max_buffers = 28,
  .max_variables = 12,
  .max_depth = 200,
  .max_length = 2000,
  .max_folds = 8,
  .local = 2,
  .row_block = 128,
  .max_nodes = 600,
  .alike = 0.9,
  .far_bytes = 1 << 24,
  .far_byte = 8,
  .recompute_growth = 2,
  .max_extra_work = 1.5,
  .work_of_storing = 16,
  .split_max_outputs = 1024,
  .split_min_reduced = 4096,
  .split_min_total = 1 << 18,
  .split_least = 4,
  .split_most = 64,
  .split_contraction = 16,
  .strip_elements = 1 << 18,
  .pack_min_reuse = 16,
  .pack_min_work = 1 << 16,
  .pack_max_growth = 2,
  .narrow_tile = 1.2,
  .pack_block = 32,
  .lanes = 16,
  .workers = 8,
  .local_bytes = 1 << 18,
  .near_bytes = 1 << 20,
  .steps_per_ns = 3,
};

enum { MAX_BUFFERS = 32 };

/* Shares of the second cache that a kernel's own memory may take: most is for what streams by, unless all of a large
 * value would be stored otherwise, and come from far away. */
enum { LOCAL_SHARE = 8, LARGE_SHARE = 2 };

/* Rows of a register tile beside memory of the kernel. */
enum { TILE_ROWS = 6 };

ScheduleMachine
schedule_machine_of (const TinyTarget *target)
{
  ScheduleMachine machine = { schedule_weights.lanes,
                              schedule_weights.workers,
                              schedule_weights.local_bytes,
                              schedule_weights.local_bytes,
                              schedule_weights.near_bytes,
                              TILE_ROWS,
                              MAX_BUFFERS,
                              G_MAXUINT32 };
  if (target == NULL)
    return machine;
  const gint64 cache = (gint64) target->cache_bytes[1];
  machine.lanes = MAX (target->vector_bits / 32, 1);
  while (machine.workers < target->n_threads)
    machine.workers *= 2;
  if (cache > 0) {
    machine.local_bytes = cache / LOCAL_SHARE;
    machine.large_local_bytes = cache / LARGE_SHARE;
    machine.near_bytes = cache / 2;
  }
  machine.local_bytes = MIN (machine.local_bytes, target->local_bytes);
  machine.large_local_bytes = MIN (machine.large_local_bytes, target->local_bytes);
  if (target->flags & TINY_TARGET_GROUPS)
    machine.tile_rows = 0;
  machine.dtypes_storage = target->dtypes_storage;
  if (target->max_params > 0)
    machine.max_buffers = MIN (machine.max_buffers, target->max_params);
  return machine;
}

/* Operations that are not simple, in simple ones. */
static const struct {
  TinyOp op;
  double cost;
} op_costs[] = {
  { TINY_OP_EXP2, 10 },   { TINY_OP_LOG2, 10 },     { TINY_OP_SIN, 20 },
  { TINY_OP_SQRT, 4 },    { TINY_OP_RECIP, 4 },     { TINY_OP_FDIV, 4 },
  { TINY_OP_IDIV, 12 },   { TINY_OP_MOD, 12 },      { TINY_OP_CAST, 1 },
  { TINY_OP_BITCAST, 0 }, { TINY_OP_FLOORDIV, 14 }, { TINY_OP_FLOORMOD, 14 },
};

double
schedule_get_op_cost (TinyOp op)
{
  static double costs[TINY_N_OPS];
  static gsize ready = 0;
  if (g_once_init_enter (&ready)) {
    for (guint i = 0; i < TINY_N_OPS; i++)
      costs[i] = 1;
    for (guint i = 0; i < G_N_ELEMENTS (op_costs); i++)
      costs[op_costs[i].op] = op_costs[i].cost;
    g_once_init_leave (&ready, 1);
  }
  return costs[op];
}
