/* SPDX-License-Identifier: MIT
 *
 * merge.c: kernels that share loops become one.
 *
 * fusion.c gives every stored value a kernel. Here two kernels become one where the loops of the
 * first are the outermost loops of the second: its loops are named alike, and what the second would
 * load at the element that the first stores in the same step is the value itself. What nobody else
 * reads is not stored any more. A row's maximum, its sum and what is divided by it so become one
 * kernel, an optimiser's moments and the weights one with three outputs.
 *
 * Kernels that do not read one another are merged when they go through the same elements of the
 * same memory, or are so small that a launch costs more than they do.
 *
 * Whether it is done says an estimate of the time with and without (work.c). */
#include <string.h>

#include "base/interrupt-check.h"
#include "base/tiny-env.h"
#include "base/tiny-stats.h"
#include "schedule/constants.h"
#include "schedule/join.h"
#include "schedule/weights.h"
#include "schedule/work.h"

/* One kernel, or several that became one. */
typedef struct {
  PlanItem item;
  guint into; /* the group that it is part of, by number; its own: it is one */
  KernelWork work;
  gboolean is_measured;
  gboolean is_constant; /* gives the same in every run */
  GArray *before;       /* guint: items that must run before, as they were */
  GArray *after;        /* guint: items that must run later, as they were */
  guint64 level;        /* above that of all that must run before */
  guint mark;
  guint n_parts; /* kernels that it is made of */
} Group;

/* Two groups, as they were, that did not become one. */
typedef struct {
  guint a, b, n_parts_a, n_parts_b;
  guint32 readers; /* digest: of what @a writes, how many read it */
  gboolean shares;
} Attempt;

/* Two groups, and one on a way between them. */
typedef struct {
  guint a, b, between;
} Way;

typedef struct {
  Plan *plan;
  guint n;
  Group *groups;
  guint *n_readers; /* of each buffer */
  guint mark;
  GHashTable *failed; /* Attempt */
  GHashTable *ways;   /* Way, the last that was found between two */
} Merge;

/* Between the levels of neighbours, so that what one is lifted by does not lift all that come after. */
enum { LEVEL_GAP = 1 << 16 };

/* A search for a way, from one of its ends. */
typedef struct {
  guint from, to;
  gboolean is_forward;
  guint mark, other; /* of what this search and the one from the other end have met */
  GArray *met;       /* guint: groups, the one whose neighbours are looked at by at */
  guint at, neighbour;
} Search;

static guint
find_group (Merge *self, guint i)
{
  while (self->groups[i].into != i)
    i = self->groups[i].into = self->groups[self->groups[i].into].into;
  return i;
}

/* Counts what @item's kernel will compute once (share.c) as such, where that decides. */
static KernelWork
measure (Merge *self, const PlanItem *item)
{
  KernelWork work = schedule_measure_kernel (self->plan, item);
  if (!work.contracts || !schedule_recomputes (self->plan))
    return work;
  PlanItem shared = *item;
  schedule_share_values (self->plan, &shared);
  work.operations = schedule_measure_kernel (self->plan, &shared).operations;
  return work;
}

static const KernelWork *
get_work (Merge *self, Group *group)
{
  if (!group->is_measured)
    group->work = measure (self, &group->item);
  group->is_measured = TRUE;
  return &group->work;
}

/* ---- what must run before what ---- */
/* Looks at one neighbour more. FALSE: there is none, and no way; else one on it is @out_between. */
static gboolean
look_further (Merge *self, Search *search, gboolean *out_is_way, guint *out_between)
{
  while (search->at < search->met->len) {
    const guint at = g_array_index (search->met, guint, search->at);
    const GArray *neighbours
        = search->is_forward ? self->groups[at].after : self->groups[at].before;
    if (search->neighbour == neighbours->len) {
      search->at++;
      search->neighbour = 0;
      continue;
    }
    guint next = find_group (self, g_array_index (neighbours, guint, search->neighbour++));
    Group *group = &self->groups[next];
    const guint64 end = self->groups[search->to].level;
    TINY_COUNT (n_looks, 1);
    if (next == search->to ? at != search->from : group->mark == search->other) {
      *out_is_way = TRUE;
      *out_between = next == search->to ? at : next;
    } else if (next != search->to && next != search->from && group->mark != search->mark
               && (search->is_forward ? group->level < end : group->level > end)) {
      group->mark = search->mark;
      g_array_append_val (search->met, next);
    }
    return TRUE;
  }
  return FALSE;
}

static guint
hash_way (gconstpointer p)
{
  const Way *self = p;
  return (guint) (((guint64) self->a << 32 | self->b) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15)
                  >> 32);
}

static gboolean
equal_ways (gconstpointer x, gconstpointer y)
{
  const Way *a = x, *b = y;
  return a->a == b->a && a->b == b->b;
}

/* True if group @a must run before @b because of one in between: searched from both ends by turns, so that it takes no
 * longer than from the end where there is less to see. A way that was found stays one as groups become one, for as long
 * as what is between its ends is neither of them. */
static gboolean
is_way_between (Merge *self, guint a, guint b)
{
  if (self->groups[b].level < self->groups[a].level + 2)
    return FALSE;
  Way way = { a, b, 0 };
  const Way *known = g_hash_table_lookup (self->ways, &way);
  TINY_COUNT (n_looks, 1);
  if (known != NULL) {
    const guint between = find_group (self, known->between);
    if (between != a && between != b)
      return TRUE;
  }
  g_autoptr (GArray) above = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) below = g_array_new (FALSE, FALSE, sizeof (guint));
  const guint mark = self->mark + 1;
  Search forward = { a, b, TRUE, mark, mark + 1, above, 0, 0 };
  Search backward = { b, a, FALSE, mark + 1, mark, below, 0, 0 };
  gboolean is_way = FALSE;
  self->mark += 2;
  g_array_append_val (above, a);
  g_array_append_val (below, b);
  while (!is_way && look_further (self, &forward, &is_way, &way.between) && !is_way
         && look_further (self, &backward, &is_way, &way.between))
    continue;
  if (is_way)
    g_hash_table_add (self->ways, g_memdup2 (&way, sizeof way));
  return is_way;
}

/* Lifts what must run after group @a above its level. */
static void
lift (Merge *self, guint a)
{
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (guint));
  g_array_append_val (stack, a);
  while (stack->len > 0) {
    const guint at = g_array_index (stack, guint, stack->len - 1);
    const GArray *after = self->groups[at].after;
    g_array_set_size (stack, stack->len - 1);
    for (guint i = 0; i < after->len; i++) {
      const guint next = find_group (self, g_array_index (after, guint, i));
      TINY_COUNT (n_looks, 1);
      if (next == at || self->groups[next].level > self->groups[at].level)
        continue;
      self->groups[next].level = self->groups[at].level + 1;
      g_array_append_val (stack, next);
    }
  }
}

static gboolean
is_before (Merge *self, guint a, guint b)
{
  const GArray *before = self->groups[b].before;
  for (guint i = 0; i < before->len; i++)
    if (find_group (self, g_array_index (before, guint, i)) == a)
      return TRUE;
  return FALSE;
}

/* ---- what was tried ---- */
static guint
hash_attempt (gconstpointer p)
{
  const Attempt *self = p;
  guint64 hash = (guint64) self->a << 32 | self->b;
  hash = (hash ^ self->readers) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  return (guint) (hash >> 32);
}

static gboolean
equal_attempts (gconstpointer x, gconstpointer y)
{
  return memcmp (x, y, sizeof (Attempt)) == 0;
}

/* All that decides whether groups @a and @b can become one, but for ways between them. */
static Attempt
describe (Merge *self, guint a, guint b, gboolean shares)
{
  const Group *first = &self->groups[a], *second = &self->groups[b];
  guint32 readers = 0;
  for (guint i = 0; i < first->item.n_written; i++)
    readers = readers * 31 + self->n_readers[first->item.buffers[i]];
  return (Attempt){ a, b, first->n_parts, second->n_parts, readers, shares };
}

/* ---- whether ---- */
static void
count_readers (Merge *self, const PlanItem *item, int by)
{
  for (guint i = item->n_written; i < item->n_buffers; i++)
    self->n_readers[item->buffers[i]] += by;
}

/* Group @a becomes part of @b. */
static void
unite (Merge *self, guint a, guint b, const PlanItem *item, const KernelWork *work)
{
  Group *first = &self->groups[a], *second = &self->groups[b];
  count_readers (self, &first->item, -1);
  count_readers (self, &second->item, -1);
  count_readers (self, item, 1);
  first->into = b;
  PlanItem both = *item;
  both.n_waits = first->item.n_waits + second->item.n_waits;
  both.waits = tiny_arena_alloc (self->plan->arena, (both.n_waits + 1) * sizeof (guint));
  for (guint i = 0; i < both.n_waits; i++)
    both.waits[i] = i < first->item.n_waits ? first->item.waits[i]
                                            : second->item.waits[i - first->item.n_waits];
  second->item = both;
  second->n_parts += first->n_parts;
  second->is_constant = first->is_constant && second->is_constant;
  second->work = *work;
  g_array_append_vals (second->before, first->before->data, first->before->len);
  g_array_append_vals (second->after, first->after->data, first->after->len);
  second->level = MAX (first->level, second->level);
  lift (self, b);
}

static gboolean
can_meet (Merge *self, guint a, guint b)
{
  const PlanItem *first = &self->groups[a].item, *second = &self->groups[b].item;
  return a != b && first->kind == TINY_SCHEDULE_KERNEL && second->kind == TINY_SCHEDULE_KERNEL
         && first->operation == NULL && second->operation == NULL
         && first->device == second->device && !is_way_between (self, a, b)
         && !is_way_between (self, b, a);
}

/* A kernel that gives the same in every run need not be run again. It may become part of one that does where that costs
 * no more. */
static gboolean
may_merge (const Group *first, const Group *second, const ScheduleLogEntry *merge)
{
  if (first->is_constant == second->is_constant)
    return TRUE;
  return first->is_constant ? merge->may_repeat_first : merge->may_repeat_second;
}

/* Makes one of groups @a and @b, where @b does not run before @a, if that is better. */
static gboolean
try_merge (Merge *self, guint a, guint b, gboolean shares)
{
  Group *first = &self->groups[a], *second = &self->groups[b];
  const Attempt attempt = describe (self, a, b, shares);
  PlanItem item;
  TINY_COUNT (n_looks, 1);
  if (g_hash_table_contains (self->failed, &attempt) || !can_meet (self, a, b))
    return FALSE;
  if (!schedule_join_kernels (self->plan, self->n_readers, &first->item, &second->item, shares,
                              &item)) {
    g_hash_table_add (self->failed, g_memdup2 (&attempt, sizeof attempt));
    return FALSE;
  }
  KernelWork work = measure (self, &item);
  const KernelWork *one = get_work (self, first), *two = get_work (self, second);
  const ScheduleLogEntry merge
      = { .kind = SCHEDULE_LOG_MERGE,
          .a = a,
          .b = b,
          .may_repeat_first = schedule_get_time (&work) <= schedule_get_time (two),
          .may_repeat_second = schedule_get_time (&work) <= schedule_get_time (one) };
  if (!schedule_is_worth_merging (one, two, &work) || !may_merge (first, second, &merge)) {
    g_hash_table_add (self->failed, g_memdup2 (&attempt, sizeof attempt));
    return FALSE;
  }
  schedule_log_merge (self->plan, &merge);
  unite (self, a, b, &item, &work);
  return TRUE;
}

/* ---- which ---- */
/* Merges @b with those whose values it reads, until there is none left to merge with. */
static void
merge_sources (Merge *self, guint b)
{
  gboolean merged = TRUE;
  while (merged) {
    const GArray *before = self->groups[b].before;
    merged = FALSE;
    for (guint i = 0; i < before->len && !merged; i++) {
      guint a = find_group (self, g_array_index (before, guint, i));
      merged = a != b && try_merge (self, a, b, TRUE);
    }
  }
}

/* Merges kernels that read the same memory. */
static void
merge_siblings (Merge *self)
{
  g_autofree guint *last = g_new (guint, self->plan->buffers->len + 1);
  for (guint i = 0; i < self->plan->buffers->len; i++)
    last[i] = G_MAXUINT;
  for (guint i = 0; i < self->n; i++) {
    for (guint j = 0; self->groups[i].into == i && j < self->groups[i].item.n_buffers; j++) {
      guint buffer = self->groups[i].item.buffers[j];
      guint a = last[buffer] != G_MAXUINT ? find_group (self, last[buffer]) : i;
      last[buffer] = i;
      if (a != i && !is_before (self, i, a) && !is_before (self, a, i)
          && try_merge (self, a, i, TRUE))
        j = G_MAXUINT; /* the buffers are others now */
    }
  }
}

/* Merges what is so small that it may run on one thread. */
static void
merge_small (Merge *self)
{
  guint last = G_MAXUINT;
  for (guint i = 0; i < self->n; i++) {
    Group *group = &self->groups[i];
    if (group->into != i || group->item.kind != TINY_SCHEDULE_KERNEL)
      continue;
    const KernelWork *work = get_work (self, group);
    if (work->operations + work->n_bytes * schedule_weights.byte > schedule_weights.launch)
      continue;
    guint a = last != G_MAXUINT ? find_group (self, last) : i;
    if (a != i && !is_before (self, a, i) && !is_before (self, i, a))
      try_merge (self, a, i, FALSE);
    last = i;
  }
}

static void
merge_init (Merge *self, Plan *plan)
{
  *self = (Merge){ .plan = plan, .n = plan->items->len };
  self->failed = g_hash_table_new_full (hash_attempt, equal_attempts, g_free, NULL);
  self->ways = g_hash_table_new_full (hash_way, equal_ways, g_free, NULL);
  self->groups = g_new0 (Group, self->n + 1);
  self->n_readers = g_new0 (guint, plan->buffers->len + 1);
  g_autofree gboolean *is_constant = g_new0 (gboolean, self->n + 1);
  schedule_log_items (plan, is_constant);
  GArray **before = schedule_find_waits (plan);
  for (guint i = 0; i < self->n; i++) {
    Group *group = &self->groups[i];
    group->item = g_array_index (plan->items, PlanItem, i);
    group->into = i;
    group->n_parts = 1;
    group->is_constant = is_constant[i];
    group->before = before[i];
    group->after = g_array_new (FALSE, FALSE, sizeof (guint));
    for (guint k = 0; k < before[i]->len; k++) {
      Group *other = &self->groups[g_array_index (before[i], guint, k)];
      g_array_append_val (other->after, i);
      group->level = MAX (group->level, other->level + LEVEL_GAP);
    }
    count_readers (self, &group->item, 1);
  }
  g_free (before);
}

gboolean
schedule_merge_kernels (Plan *plan, GError **error)
{
  Merge self;
  gboolean good = TRUE;
  if (tiny_env_get_int (TINY_ENV_NO_MERGE))
    return TRUE;
  merge_init (&self, plan);
  for (guint i = 0; good && i < self.n; i++) {
    if (self.groups[i].item.kind == TINY_SCHEDULE_KERNEL)
      merge_sources (&self, i);
    good = tiny_interrupt_check (error);
  }
  if (good)
    merge_siblings (&self);
  if (good && (good = tiny_interrupt_check (error)))
    merge_small (&self);
  g_array_set_size (plan->items, 0);
  for (guint i = 0; i < self.n; i++) {
    if (self.groups[i].into == i)
      g_array_append_val (plan->items, self.groups[i].item);
    g_array_unref (self.groups[i].before);
    g_array_unref (self.groups[i].after);
  }
  g_hash_table_unref (self.failed);
  g_hash_table_unref (self.ways);
  g_free (self.groups);
  g_free (self.n_readers);
  return good;
}
