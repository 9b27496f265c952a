/* SPDX-License-Identifier: MIT
 *
 * order.c: which item runs when.
 *
 * A reader runs after the writer of what it reads; the writer into an input runs after all who
 * read the input's old contents. Where both cannot be had, the new contents go to a temporary
 * first and are copied at the end, which always can. Among items that are free to run the one
 * made first is taken, so that the order is the same every time; where memory is to be saved, one
 * that gives some back. */
#include <string.h>

#include "base/tiny-error.h"
#include "schedule/plan.h"

gboolean
schedule_is_assigned (Plan *plan, guint i)
{
  return i != SCHEDULE_NO_BUFFER && i >= plan->n_inputs
         && schedule_get_buffer (plan, i)->kind == TINY_SCHEDULE_INPUT;
}

static PlanItem *
get_item (Plan *plan, guint i)
{
  return &g_array_index (plan->items, PlanItem, i);
}

typedef struct {
  guint n_waits; /* items that must run before */
  GArray *users; /* guint: items that wait for this one */
} Wait;

static void
add_wait (Wait *waits, guint before, guint after)
{
  if (waits[before].users == NULL)
    waits[before].users = g_array_new (FALSE, FALSE, sizeof (guint));
  g_array_append_val (waits[before].users, after);
  waits[after].n_waits++;
}

static Wait *
find_waits (Plan *plan)
{
  enum { NONE = -1 };
  guint n = plan->items->len;
  Wait *waits = g_new0 (Wait, n + 1);
  g_autofree gint *writers = g_new (gint, plan->buffers->len + 1);
  g_autofree gint *assigners = g_new (gint, plan->n_inputs + 1); /* of each input */
  memset (writers, NONE, plan->buffers->len * sizeof *writers);
  memset (assigners, NONE, plan->n_inputs * sizeof *assigners);
  for (guint i = 0; i < n; i++) {
    PlanItem *item = get_item (plan, i);
    for (guint j = 0; j < item->n_written; j++) {
      writers[item->buffers[j]] = i;
      if (schedule_is_assigned (plan, item->buffers[j]))
        assigners[schedule_get_buffer (plan, item->buffers[j])->slot] = i;
    }
  }
  for (guint i = 0; i < n; i++) {
    PlanItem *item = get_item (plan, i);
    for (guint j = item->n_written; j < item->n_buffers; j++) {
      guint buffer = item->buffers[j];
      if (writers[buffer] != NONE)
        add_wait (waits, writers[buffer], i);
      else if (buffer < plan->n_inputs && assigners[buffer] != NONE
               && (guint) assigners[buffer] != i)
        add_wait (waits, i, assigners[buffer]);
    }
    for (guint j = 0; j < item->n_waits; j++)
      if (writers[item->waits[j]] != NONE && (guint) writers[item->waits[j]] != i)
        add_wait (waits, writers[item->waits[j]], i);
  }
  return waits;
}

GArray **
schedule_find_waits (Plan *plan)
{
  guint n = plan->items->len;
  Wait *waits = find_waits (plan);
  GArray **before = g_new (GArray *, n + 1);
  for (guint i = 0; i < n; i++)
    before[i] = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < n; i++) {
    for (guint j = 0; waits[i].users != NULL && j < waits[i].users->len; j++)
      g_array_append_val (before[g_array_index (waits[i].users, guint, j)], i);
    g_clear_pointer (&waits[i].users, g_array_unref);
  }
  g_free (waits);
  return before;
}

void
schedule_add_waits (Plan *plan, TinyNode *after, GArray *buffers)
{
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  for (guint i = 1; i < after->n_sources; i++)
    g_ptr_array_add (stack, after->sources[i]);
  while (stack->len > 0) {
    TinyNode *top = g_ptr_array_steal_index (stack, stack->len - 1);
    const Stage *stored = tiny_node_map_get (&plan->stage_of, top);
    if (stored != NULL) {
      g_array_append_val (buffers, stored->buffer);
      continue;
    }
    for (guint i = 0; i < top->n_sources; i++)
      if (g_hash_table_add (seen, top->sources[i]))
        g_ptr_array_add (stack, top->sources[i]);
  }
}

/* A heap of item numbers, the smallest on top. */
static void
heap_push (GArray *heap, guint value)
{
  g_array_append_val (heap, value);
  guint *v = (guint *) heap->data;
  for (guint i = heap->len - 1; i > 0 && v[i] < v[(i - 1) / 2]; i = (i - 1) / 2) {
    guint other = v[i];
    v[i] = v[(i - 1) / 2];
    v[(i - 1) / 2] = other;
  }
}

static guint
heap_pop (GArray *heap)
{
  guint *v = (guint *) heap->data, top = v[0], n = heap->len - 1;
  v[0] = v[n];
  g_array_set_size (heap, n);
  for (guint i = 0, child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && v[child + 1] < v[child])
      child++;
    if (v[i] <= v[child])
      break;
    guint other = v[i];
    v[i] = v[child];
    v[child] = other;
  }
  return top;
}

/* ---- with little memory ----
 * Where something waits so that memory is not held (AFTER), what gives back more than it takes
 * runs as soon as it can. */
static gboolean
saves_memory (Plan *plan)
{
  for (guint i = 0; i < plan->items->len; i++)
    if (get_item (plan, i)->n_waits > 0)
      return TRUE;
  return FALSE;
}

/* How many items that did not run yet read each buffer. */
static guint *
count_readers (Plan *plan)
{
  guint *n_readers = g_new0 (guint, plan->buffers->len + 1);
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = get_item (plan, i);
    for (guint j = item->n_written; j < item->n_buffers; j++)
      n_readers[item->buffers[j]]++;
  }
  return n_readers;
}

/* Bytes of temporaries that are there after @item and were not before. */
static gint64
count_growth (Plan *plan, const PlanItem *item, const guint *n_readers)
{
  gint64 n_bytes = 0;
  for (guint j = 0; j < item->n_buffers; j++) {
    const TinyScheduleBuffer *buffer = schedule_get_buffer (plan, item->buffers[j]);
    gint64 size = buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype);
    if (buffer->kind == TINY_SCHEDULE_TEMPORARY)
      n_bytes += j < item->n_written ? size : n_readers[item->buffers[j]] == 1 ? -size : 0;
  }
  return n_bytes;
}

/* Takes the item that shrinks most out of @ready, or the first that was made if none does. */
static guint
take_thriftiest (Plan *plan, GArray *ready, guint *n_readers)
{
  guint best = 0;
  gint64 best_growth = 0;
  for (guint k = 0; k < ready->len; k++) {
    guint i = g_array_index (ready, guint, k);
    gint64 growth = MIN (count_growth (plan, get_item (plan, i), n_readers), 0);
    if (k == 0 || growth < best_growth
        || (growth == best_growth && i < g_array_index (ready, guint, best))) {
      best = k;
      best_growth = growth;
    }
  }
  guint taken = g_array_index (ready, guint, best);
  const PlanItem *item = get_item (plan, taken);
  for (guint j = item->n_written; j < item->n_buffers; j++)
    n_readers[item->buffers[j]]--;
  g_array_remove_index_fast (ready, best);
  return taken;
}

guint
schedule_order_items (Plan *plan)
{
  guint n = plan->items->len;
  Wait *waits = find_waits (plan);
  g_autofree guint *n_readers = saves_memory (plan) ? count_readers (plan) : NULL;
  g_autoptr (GArray) heap = g_array_new (FALSE, FALSE, sizeof (guint));
  GArray *ordered = g_array_sized_new (FALSE, FALSE, sizeof (PlanItem), n);
  for (guint i = 0; i < n; i++)
    if (waits[i].n_waits == 0)
      heap_push (heap, i);
  while (heap->len > 0) {
    guint i = n_readers != NULL ? take_thriftiest (plan, heap, n_readers) : heap_pop (heap);
    g_array_append_val (ordered, *get_item (plan, i));
    for (guint j = 0; waits[i].users != NULL && j < waits[i].users->len; j++) {
      guint user = g_array_index (waits[i].users, guint, j);
      if (--waits[user].n_waits == 0)
        heap_push (heap, user);
    }
  }
  guint n_stuck = n - ordered->len;
  for (guint i = 0; i < n; i++)
    if (waits[i].n_waits > 0)
      g_array_append_val (ordered, *get_item (plan, i));
  for (guint i = 0; i < n; i++)
    g_clear_pointer (&waits[i].users, g_array_unref);
  g_free (waits);
  g_array_unref (plan->items);
  plan->items = ordered;
  return n_stuck;
}

/* Item @i writes a temporary instead of the input it assigns to; a copy is added. */
static void
defer_assign (Plan *plan, guint i)
{
  guint temporary = get_item (plan, i)->buffers[0];
  TinyScheduleBuffer old = *schedule_get_buffer (plan, temporary);
  schedule_get_buffer (plan, temporary)->kind = TINY_SCHEDULE_TEMPORARY;
  guint target = schedule_add_buffer (plan, TINY_SCHEDULE_INPUT, old.dtype, old.n_elements,
                                      old.device, old.slot);
  for (guint r = 0; r < plan->n_roots; r++)
    if (plan->outputs[r] == temporary)
      plan->outputs[r] = target;
  PlanItem *item = get_item (plan, i);
  if (item->stage != NULL && item->kind == TINY_SCHEDULE_KERNEL)
    schedule_lower_stage (plan, item->stage, item);
  PlanItem copy = schedule_copy_kernel (plan, target, temporary);
  g_array_append_val (plan->items, copy);
}

gboolean
schedule_resolve_hazards (Plan *plan, GError **error)
{
  guint n = plan->items->len, n_stuck;
  for (guint i = 0; i < n; i++) {
    PlanItem *item = get_item (plan, i);
    if (item->reads_target_elsewhere && schedule_is_assigned (plan, item->buffers[0]))
      defer_assign (plan, i);
  }
  while ((n_stuck = schedule_order_items (plan)) > 0) {
    guint i = plan->items->len - n_stuck;
    while (i < plan->items->len && !schedule_is_assigned (plan, get_item (plan, i)->buffers[0]))
      i++;
    if (i == plan->items->len) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "schedule: %u kernels wait for one another", n_stuck);
      return FALSE;
    }
    defer_assign (plan, i);
  }
  return TRUE;
}
