/* SPDX-License-Identifier: MIT
 *
 * constants.c: kernels that give the same in every run.
 *
 * Such a kernel reads constant inputs, or values of such kernels, and writes values that others go on from. It need not
 * be run again, unless it is part of one that does; merge.c keeps them apart. Nothing else of a schedule depends on the
 * constants: one that was made without them is the one for them, if they refuse none of its merges. */
#include "schedule/constants.h"

/* @out_is_constant: of the kernels of the last layout, or NULL. FALSE: the constants refuse a merge. */
static gboolean
run_log (const GArray *log,
         const gboolean *constants,
         guint n_inputs,
         gboolean *out_is_constant)
{
  g_autofree gboolean *kernels = NULL, *buffers = NULL;
  for (guint i = 0; i < log->len; i++) {
    const ScheduleLogEntry *entry = &g_array_index (log, ScheduleLogEntry, i);
    const guint a = entry->a, b = entry->b;
    switch (entry->kind) {
    case SCHEDULE_LOG_LAYOUT:
      g_free (kernels);
      g_free (buffers);
      kernels = g_new (gboolean, a + 1);
      buffers = g_new0 (gboolean, b + 1);
      for (guint k = 0; k < a; k++)
        kernels[k] = TRUE;
      for (guint k = 0; k < n_inputs; k++)
        buffers[k] = constants[k];
      break;
    case SCHEDULE_LOG_READ:
      kernels[a] = kernels[a] && buffers[b];
      break;
    case SCHEDULE_LOG_KEEP:
      kernels[a] = FALSE;
      break;
    case SCHEDULE_LOG_WRITE:
      buffers[b] = kernels[a];
      break;
    case SCHEDULE_LOG_MERGE:
      if (kernels[a] != kernels[b]
          && !(kernels[a] ? entry->may_repeat_first : entry->may_repeat_second))
        return FALSE;
      kernels[b] = kernels[a] && kernels[b];
      break;
    }
    if (out_is_constant != NULL && entry->kind != SCHEDULE_LOG_LAYOUT)
      out_is_constant[entry->kind == SCHEDULE_LOG_MERGE ? b : a]
          = kernels[entry->kind == SCHEDULE_LOG_MERGE ? b : a];
  }
  return TRUE;
}

static void
add_entry (Plan *plan, ScheduleLogKind kind, guint a, guint b)
{
  const ScheduleLogEntry entry = { .kind = kind, .a = a, .b = b };
  g_array_append_val (plan->log, entry);
}

/* The items are in an order to run them. */
void
schedule_log_items (Plan *plan, gboolean *out_is_constant)
{
  const gboolean *constants = plan->options.constants;
  if (constants != NULL) /* the log is of use for this layout alone */
    g_array_set_size (plan->log, 0);
  add_entry (plan, SCHEDULE_LOG_LAYOUT, plan->items->len, plan->buffers->len);
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    for (guint j = item->n_written; j < item->n_buffers; j++)
      add_entry (plan, SCHEDULE_LOG_READ, i, item->buffers[j]);
    for (guint j = 0; j < item->n_written; j++)
      if (schedule_get_buffer (plan, item->buffers[j])->kind != TINY_SCHEDULE_TEMPORARY
          || item->is_part)
        add_entry (plan, SCHEDULE_LOG_KEEP, i, item->buffers[j]);
    for (guint j = 0; j < item->n_written; j++)
      add_entry (plan, SCHEDULE_LOG_WRITE, i, item->buffers[j]);
  }
  if (constants != NULL)
    run_log (plan->log, constants, plan->n_inputs, out_is_constant);
}

void
schedule_log_merge (Plan *plan, const ScheduleLogEntry *merge)
{
  if (plan->options.constants == NULL)
    g_array_append_vals (plan->log, merge, 1);
}

gboolean
tiny_schedule_serves (const TinySchedule *self, const gboolean *constants)
{
  return self->log != NULL && run_log (self->log, constants, self->n_inputs, NULL);
}
