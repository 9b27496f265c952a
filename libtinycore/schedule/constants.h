/* SPDX-License-Identifier: MIT
 *
 * constants.h: which kernels give the same in every run, and what follows for merging them.
 *
 * A log holds what a layout's kernels read and write and which of them were merged. A schedule that was made without
 * knowing any constants is checked against it when they are known. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

typedef enum {
  SCHEDULE_LOG_LAYOUT, /* of @a kernels and @b buffers; those before belong to another */
  SCHEDULE_LOG_READ,   /* kernel @a reads buffer @b */
  SCHEDULE_LOG_KEEP,   /* kernel @a writes buffer @b, which outlives the run */
  SCHEDULE_LOG_WRITE,  /* kernel @a writes buffer @b; after all that it reads */
  SCHEDULE_LOG_MERGE,  /* kernel @a became part of @b */
} ScheduleLogKind;

typedef struct {
  ScheduleLogKind kind;
  guint a, b;
  gboolean may_repeat_first,
      may_repeat_second; /* of a MERGE, where only that one is constant */
} ScheduleLogEntry;

/* Begins a layout of the plan's items. Fills @out_is_constant, by item. */
void schedule_log_items (Plan *plan, gboolean *out_is_constant);
void schedule_log_merge (Plan *plan, const ScheduleLogEntry *merge);

G_END_DECLS
