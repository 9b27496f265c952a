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
  .max_depth = 200,
  .max_extra_work = 1.5,
  .work_of_storing = 16,
  .split_max_outputs = 1024,
  .split_min_reduced = 4096,
  .split_min_total = 1 << 18,
  .split_least = 4,
  .split_most = 64,
  .split_cache = 1 << 20,
  .pack_min_reuse = 16,
  .pack_min_work = 1 << 16,
  .pack_max_growth = 2,
};
