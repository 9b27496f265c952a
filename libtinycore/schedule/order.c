/* SPDX-License-Identifier: MIT
 *
 * order.c: which item runs when.
 *
 * A reader runs after the writer of what it reads; the writer into an input runs after all who
 * read the input's old contents. Where both cannot be had, the new contents go to a temporary
 * first and are copied at the end, which always can. Among items that are free to run the one
 * made first is taken, so that the order is the same every time. In the end, and where something
 * waits so that memory is not held (AFTER), what gives back more than it takes runs as soon as it
 * can. */
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
      if (writers[item->buffers[j]] != NONE)
        add_wait (waits, writers[item->buffers[j]], i);
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

/* ---- which comes next ---- */
/* An item that is free to run; one whose growth has become less since is there twice. */
typedef struct {
  gint64 growth; /* at most 0; 0 where memory is not to be saved */
  guint item;
} Ready;

typedef struct {
  Plan *plan;
  gboolean is_thrifty;
  Wait *waits;
  GArray *heap;    /* Ready, what is to run first on top */
  gboolean *taken; /* of each item */
  gint64 *
      growth; /* of each item: bytes of temporaries that are there after it and were not before */
  guint *n_readers,
      *readers; /* of each buffer: how many are still to read it, and their numbers XORed */
} Order;

static gboolean
is_first (const Ready *a, const Ready *b)
{
  return a->growth != b->growth ? a->growth < b->growth : a->item < b->item;
}

static void
heap_push (GArray *heap, Ready value)
{
  g_array_append_val (heap, value);
  Ready *v = (Ready *) (void *) heap->data;
  for (guint i = heap->len - 1; i > 0 && is_first (&v[i], &v[(i - 1) / 2]); i = (i - 1) / 2) {
    Ready other = v[i];
    v[i] = v[(i - 1) / 2];
    v[(i - 1) / 2] = other;
  }
}

static Ready
heap_pop (GArray *heap)
{
  Ready *v = (Ready *) (void *) heap->data, top = v[0];
  guint n = heap->len - 1;
  v[0] = v[n];
  g_array_set_size (heap, n);
  for (guint i = 0, child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && is_first (&v[child + 1], &v[child]))
      child++;
    if (is_first (&v[i], &v[child]))
      break;
    Ready other = v[i];
    v[i] = v[child];
    v[child] = other;
  }
  return top;
}

static void
push_item (Order *self, guint i)
{
  heap_push (self->heap, (Ready){ self->is_thrifty ? MIN (self->growth[i], 0) : 0, i });
}

/* Bytes of @buffer if it is a temporary. */
static gint64
count_bytes (Plan *plan, guint b)
{
  const TinyScheduleBuffer *buffer = schedule_get_buffer (plan, b);
  return buffer->kind == TINY_SCHEDULE_TEMPORARY
             ? buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype)
             : 0;
}

/* The last that is to read @buffer gives it back. */
static void
note_last_reader (Order *self, guint buffer)
{
  const gint64 n_bytes = count_bytes (self->plan, buffer);
  guint last = self->readers[buffer];
  if (self->n_readers[buffer] != 1 || n_bytes == 0)
    return;
  self->growth[last] -= n_bytes;
  if (self->waits[last].n_waits == 0 && !self->taken[last])
    push_item (self, last);
}

static void
order_init (Order *self, Plan *plan, gboolean is_thrifty)
{
  const guint n = plan->items->len, n_buffers = plan->buffers->len;
  *self = (Order){ plan, is_thrifty, find_waits (plan) };
  self->heap = g_array_new (FALSE, FALSE, sizeof (Ready));
  self->taken = g_new0 (gboolean, n + 1);
  self->growth = g_new0 (gint64, n + 1);
  self->n_readers = g_new0 (guint, n_buffers + 1);
  self->readers = g_new0 (guint, n_buffers + 1);
  for (guint i = 0; i < n; i++) {
    const PlanItem *item = get_item (plan, i);
    self->is_thrifty = self->is_thrifty || item->n_waits > 0;
    for (guint j = 0; j < item->n_buffers; j++) {
      if (j < item->n_written) {
        self->growth[i] += count_bytes (plan, item->buffers[j]);
      } else {
        self->n_readers[item->buffers[j]]++;
        self->readers[item->buffers[j]] ^= i;
      }
    }
  }
  for (guint b = 0; b < n_buffers; b++)
    if (self->n_readers[b] == 1)
      self->growth[self->readers[b]] -= count_bytes (plan, b);
  for (guint i = 0; i < n; i++)
    if (self->waits[i].n_waits == 0)
      push_item (self, i);
}

static void
order_clear (Order *self)
{
  for (guint i = 0; i < self->plan->items->len; i++)
    g_clear_pointer (&self->waits[i].users, g_array_unref);
  g_free (self->waits);
  g_array_unref (self->heap);
  g_free (self->taken);
  g_free (self->growth);
  g_free (self->n_readers);
  g_free (self->readers);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Order, order_clear)

/* Item @i runs: what waited for it may run, and what it read is read by one less. */
static void
take_item (Order *self, guint i)
{
  const PlanItem *item = get_item (self->plan, i);
  const GArray *users = self->waits[i].users;
  self->taken[i] = TRUE;
  for (guint j = 0; users != NULL && j < users->len; j++) {
    guint user = g_array_index (users, guint, j);
    if (--self->waits[user].n_waits == 0)
      push_item (self, user);
  }
  for (guint j = item->n_written; j < item->n_buffers && self->is_thrifty; j++) {
    self->n_readers[item->buffers[j]]--;
    self->readers[item->buffers[j]] ^= i;
    note_last_reader (self, item->buffers[j]);
  }
}

guint
schedule_order_items (Plan *plan, gboolean is_thrifty)
{
  const guint n = plan->items->len;
  g_auto (Order) self = { NULL };
  order_init (&self, plan, is_thrifty);
  GArray *ordered = g_array_sized_new (FALSE, FALSE, sizeof (PlanItem), n);
  while (self.heap->len > 0) {
    guint i = heap_pop (self.heap).item;
    if (self.taken[i])
      continue;
    g_array_append_val (ordered, *get_item (plan, i));
    take_item (&self, i);
  }
  guint n_stuck = n - ordered->len;
  for (guint i = 0; i < n; i++)
    if (!self.taken[i])
      g_array_append_val (ordered, *get_item (plan, i));
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
  while ((n_stuck = schedule_order_items (plan, FALSE)) > 0) {
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
