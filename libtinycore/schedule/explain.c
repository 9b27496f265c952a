/* SPDX-License-Identifier: MIT
 *
 * explain.c: why there is a boundary between two kernels, and what it costs.
 *
 * A value goes through memory because fusion.c stored it (Stage.why) and because its kernel and the
 * one that reads it were not merged; the latter is found out here by trying once more. */
#include "schedule/join.h"
#include "schedule/weights.h"
#include "schedule/work.h"

static PlanItem *
get_item (Plan *plan, guint i)
{
  return &g_array_index (plan->items, PlanItem, i);
}

/* Whether @item has @buffer among those from @from to before @to. */
static gboolean
has_buffer (const PlanItem *item, guint from, guint to, guint buffer)
{
  for (guint i = from; i < to; i++)
    if (item->buffers[i] == buffer)
      return TRUE;
  return FALSE;
}

static gboolean
reads_from (const PlanItem *reader, const PlanItem *writer)
{
  for (guint i = 0; i < writer->n_written; i++)
    if (has_buffer (reader, reader->n_written, reader->n_buffers, writer->buffers[i]))
      return TRUE;
  return FALSE;
}

/* A kernel that reads what @a gives, directly or not, and that @b waits for; 0: none. Kernels are in
 * the order they run in. */
static guint
find_between (Plan *plan, guint a, guint b)
{
  g_autofree gboolean *after = g_new0 (gboolean, b + 1);
  after[a] = TRUE;
  for (guint i = a + 1; i <= b; i++)
    for (guint j = a; j < i && !after[i]; j++)
      after[i] = after[j] && reads_from (get_item (plan, i), get_item (plan, j));
  for (guint i = a + 1; i < b; i++)
    if (after[i] && reads_from (get_item (plan, b), get_item (plan, i)))
      return i;
  return 0;
}

/* Whether @item has memory of its own already: nothing can join it any more. */
static gboolean
has_local (const PlanItem *item)
{
  for (guint i = 0; item->kernel != NULL && i < item->kernel->n_sources; i++)
    if (item->kernel->sources[i]->sources[0]->op == TINY_OP_LOCAL)
      return TRUE;
  return FALSE;
}

static void
add_reason_apart (Plan *plan, guint a, guint b, const guint *n_readers, GString *text)
{
  PlanItem *first = get_item (plan, a), *second = get_item (plan, b), both;
  guint between = find_between (plan, a, b);
  if (first->kind != TINY_SCHEDULE_KERNEL || second->kind != TINY_SCHEDULE_KERNEL
      || first->device != second->device)
    g_string_append (text, "a copy between devices is no part of a kernel");
  else if (between > 0)
    g_string_append_printf (
        text, "%s comes between them",
        get_item (plan, between)->kernel ? get_item (plan, between)->kernel->text : "a copy");
  else if (has_local (first) || has_local (second))
    g_string_append (text,
                     "one of them computes rows in memory of its own, and the other would not "
                     "make that cheaper");
  else if (!schedule_join_kernels (plan, n_readers, first, second, TRUE, &both))
    g_string_append (text, "their loops do not fit, or together they have too many buffers");
  else {
    KernelWork one = schedule_measure_kernel (plan, first);
    KernelWork two = schedule_measure_kernel (plan, second);
    KernelWork whole = schedule_measure_kernel (plan, &both);
    double apart = schedule_get_time (&one) + schedule_get_time (&two);
    double merged = schedule_get_time (&whole);
    if (schedule_is_worth_merging (&one, &two, &whole))
      g_string_append (text, "the scheduler did not come to it");
    else if (merged < apart)
      g_string_append (text,
                       "one of them is a contraction, whose tiles want loops of their own");
    else
      g_string_append_printf (text, "one kernel would cost %.3g, the two cost %.3g", merged,
                              apart);
  }
}

static const Stage *
find_stage (Plan *plan, guint buffer)
{
  for (guint i = 0; i < plan->stages->len; i++) {
    const Stage *stage = plan->stages->pdata[i];
    if (stage->buffer == buffer)
      return stage;
  }
  return NULL;
}

static void
add_boundary (Plan *plan, guint a, guint b, guint buffer, const guint *n_readers, GString *text)
{
  const TinyScheduleBuffer *info = schedule_get_buffer (plan, buffer);
  const Stage *stage = find_stage (plan, buffer);
  const PlanItem *first = get_item (plan, a), *second = get_item (plan, b);
  gint64 n_bytes = info->n_elements * (gint64) tiny_dtype_get_n_bytes (info->dtype);
  g_string_append_printf (text,
                          "%s -> %s: %" G_GINT64_FORMAT
                          " bytes written and read, which cost %.3g\n  stored: ",
                          first->kernel ? first->kernel->text : "copy",
                          second->kernel ? second->kernel->text : "copy", n_bytes,
                          2 * (double) n_bytes * schedule_weights.byte);
  if (stage == NULL)
    g_string_append (text, "an operand in the order in which it is read");
  else if (stage->cost_stored > 0)
    g_string_append_printf (text, "%s: %.3g, not %.3g", stage->why, stage->cost_again,
                            stage->cost_stored);
  else
    g_string_append (text, stage->why);
  g_string_append (text, "\n  apart: ");
  add_reason_apart (plan, a, b, n_readers, text);
  g_string_append_c (text, '\n');
}

char *
schedule_explain (Plan *plan)
{
  g_autofree guint *n_readers = g_new0 (guint, plan->buffers->len + 1);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = get_item (plan, i);
    for (guint j = item->n_written; j < item->n_buffers; j++)
      n_readers[item->buffers[j]]++;
  }
  for (guint a = 0; a < plan->items->len; a++)
    for (guint w = 0; w < get_item (plan, a)->n_written; w++)
      for (guint b = a + 1; b < plan->items->len; b++) {
        guint buffer = get_item (plan, a)->buffers[w];
        const PlanItem *reader = get_item (plan, b);
        if (has_buffer (reader, reader->n_written, reader->n_buffers, buffer))
          add_boundary (plan, a, b, buffer, n_readers, text);
      }
  if (text->len == 0)
    g_string_append (text, "no value goes from kernel to kernel\n");
  return g_string_free (text, FALSE);
}
