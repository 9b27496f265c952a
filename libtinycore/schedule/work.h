/* SPDX-License-Identifier: MIT
 *
 * work.h: what a kernel would take to run. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

typedef struct {
  double operations;      /* in simple ones of a vector unit */
  double n_bytes;         /* from and to memory */
  double n_steps;         /* that threads can share */
  double n_scalar;        /* of @operations: what values without lanes add */
  double workers;         /* of the device that runs it */
  guint n_nodes, n_loops; /* n_loops: of its outputs */
  guint length;           /* tiny_op_count_steps() of all nodes */
  gboolean contracts;     /* reads operands again and again, which asks for tiles */
  gboolean is_even;       /* all stores have the same loops */
} KernelWork;

KernelWork schedule_measure_kernel (Plan *plan, const PlanItem *item);
/* The time of it in the units of ScheduleWeights. */
double schedule_get_time (const KernelWork *work);

/* Whether the one kernel is better than the two. */
gboolean
schedule_is_worth_merging (const KernelWork *a, const KernelWork *b, const KernelWork *both);

/* The loops of @store, outermost first; returns how many. */
guint schedule_list_loops (Plan *plan, TinyNode *store, TinyNode **out);

G_END_DECLS
