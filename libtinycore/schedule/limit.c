/* SPDX-License-Identifier: MIT
 *
 * limit.c: kernels that would read too many buffers or variables store some of their values.
 *
 * Each value has a list of what it reads from memory, which ends where it is too long. The value to store is that with
 * the fewest bytes for each buffer that the rest then reads less; it is then one that the rest reads, and only the lists
 * of values above it change, up to those that are too long before and after. */
#include "base/tiny-stats.h"
#include "schedule/fusion.h"
#include "schedule/weights.h"

/* A step of a walk. */
typedef struct {
  Info *info;
  guint next;
} Frame;

/* A number, and what it is of. */
typedef struct {
  double key;
  guint value;
} Entry;

/* What the kernel of one stored value is made of. Values have numbers, sources before users: the last is the stored one.
 * What is read has others: those that become stored follow on. */
typedef struct {
  Fusion *fusion;
  GPtrArray *fused;  /* nodes, by number */
  GPtrArray *reads;  /* nodes, by number */
  GArray *stack;     /* of a walk */
  guint n_reads;     /* that are left of them */
  guint n_variables; /* of those */
  guint limit;       /* of reads in a list that is not too long */
  guint *lists;      /* limit + 1 numbers for each value */
  guint *lengths;
  guint *counts[2];  /* how many sources of values left are this value, this read */
  guint *users;      /* numbers of values, one's after the other's */
  guint *first_user; /* of each value in @users */
  guint *stamps;     /* of each read: when it was last seen */
  guint stamp;
  GArray *best;    /* Entry: a heap of bytes for each buffer less */
  GArray *changed; /* Entry: a heap of values whose lists are to be made anew */
} Inside;

/* ---- a heap with the least key on top; of equal keys the greatest value ---- */
static gboolean
is_above (const Entry *a, const Entry *b)
{
  return a->key < b->key || (a->key == b->key && a->value > b->value);
}

static void
push (GArray *heap, double key, guint value)
{
  const Entry entry = { key, value };
  g_array_append_val (heap, entry);
  Entry *all = &g_array_index (heap, Entry, 0);
  guint i = heap->len - 1;
  for (; i > 0 && is_above (&entry, &all[(i - 1) / 2]); i = (i - 1) / 2)
    all[i] = all[(i - 1) / 2];
  all[i] = entry;
}

static Entry
pop (GArray *heap)
{
  Entry *all = &g_array_index (heap, Entry, 0);
  const Entry top = all[0], last = all[heap->len - 1];
  const guint n = heap->len - 1;
  guint i = 0;
  for (guint next; (next = 2 * i + 1) < n; i = next) {
    next += next + 1 < n && is_above (&all[next + 1], &all[next]);
    if (!is_above (&all[next], &last))
      break;
    all[i] = all[next];
  }
  all[i] = last;
  g_array_set_size (heap, n);
  return top;
}

/* ---- what a kernel is made of ---- */
/* True if a kernel is given it. */
static gboolean
is_read (const Info *info)
{
  return info->is_given || info->is_stored;
}

/* Gives what is read, and what is fused, a number each. */
static void
look_inside (Inside *self, Info *root)
{
  Fusion *fusion = self->fusion;
  const guint now = ++fusion->n_walks;
  guint depth = 1;
  g_ptr_array_set_size (self->fused, 0);
  g_ptr_array_set_size (self->reads, 0);
  g_array_set_size (self->stack, 0);
  self->n_variables = 0;
  g_array_append_val (self->stack, ((Frame){ root, 0 }));
  while (depth > 0) {
    Frame *frame = &g_array_index (self->stack, Frame, depth - 1);
    TINY_COUNT (n_looks, 1);
    if (frame->next == frame->info->n_values) {
      frame->info->number = self->fused->len;
      g_ptr_array_add (self->fused, frame->info->node);
      depth--;
      continue;
    }
    Info *source = fusion_get_value (fusion, frame->info, frame->next++);
    if (fusion->seen[source - fusion->infos] == now)
      continue;
    fusion->seen[source - fusion->infos] = now;
    if (is_read (source)) {
      source->number = self->reads->len;
      self->n_variables += source->node->op == TINY_OP_VARIABLE;
      g_ptr_array_add (self->reads, source->node);
    } else if (depth++ == self->stack->len) {
      g_array_append_val (self->stack, ((Frame){ source, 0 }));
    } else {
      g_array_index (self->stack, Frame, depth - 1) = (Frame){ source, 0 };
    }
  }
  self->n_reads = self->reads->len;
}

/* ---- lists ---- */
static guint *
get_list (Inside *self, guint i)
{
  return self->lists + (gsize) i * (self->limit + 1);
}

/* Makes value @i's list of those of its sources. FALSE: it was too long and is. */
static gboolean
make_list (Inside *self, guint i)
{
  const TinyNode *node = self->fused->pdata[i];
  const Info *info = fusion_get_info (self->fusion, node);
  guint *list = get_list (self, i), n = 0;
  TINY_COUNT (n_looks, 1);
  self->stamp++;
  for (guint s = 0; s < info->n_values; s++) {
    const Info *source = fusion_get_value (self->fusion, info, s);
    const guint number = source->number;
    const gboolean is_one = is_read (source);
    const guint *from = is_one ? &number : get_list (self, number);
    const guint n_from = is_one ? 1 : self->lengths[number];
    for (guint k = 0; k < n_from && n <= self->limit; k++) {
      if (self->stamps[from[k]] == self->stamp)
        continue;
      self->stamps[from[k]] = self->stamp;
      list[n++] = from[k];
    }
  }
  if (n > self->limit && self->lengths[i] > self->limit)
    return FALSE;
  self->lengths[i] = n;
  if (!tiny_op_is_movement (node->op) && n >= 2 && n <= self->limit && i + 1 < self->fused->len)
    push (self->best, info->n_bytes / ((double) n - 1), i);
  return TRUE;
}

static void
list_users (Inside *self)
{
  const guint n = self->fused->len;
  guint n_edges = 0;
  for (guint i = 0; i < n; i++)
    n_edges += schedule_count_values (self->fused->pdata[i]);
  self->counts[0] = g_new0 (guint, n + 1);
  self->counts[1] = g_new0 (guint, self->reads->len + n + 1);
  self->first_user = g_new0 (guint, n + 2);
  self->users = g_new (guint, n_edges + 1);
  for (guint pass = 0; pass < 2; pass++) {
    for (guint i = 0; i < n; i++) {
      const TinyNode *node = self->fused->pdata[i];
      for (guint s = 0; s < schedule_count_values (node); s++) {
        const Info *source = fusion_get_info (self->fusion, node->sources[s]);
        const gboolean is_one = is_read (source);
        const guint number = source->number;
        if (pass == 0)
          self->counts[is_one][number]++;
        else if (!is_one)
          self->users[self->first_user[number + 1]++] = i;
      }
    }
    /* Before the second pass, first_user[i + 1] is where @i's begin; after it, where they end. */
    for (guint i = 1; pass == 0 && i < n; i++)
      self->first_user[i + 1] = self->first_user[i] + self->counts[0][i - 1];
  }
}

static void
open_lists (Inside *self)
{
  const guint n = self->fused->len;
  list_users (self);
  self->lists = g_new (guint, (gsize) n * (self->limit + 1) + 1);
  self->lengths = g_new0 (guint, n + 1);
  self->stamps = g_new0 (guint, self->reads->len + n + 1);
  self->stamp = 0;
  self->best = g_array_new (FALSE, FALSE, sizeof (Entry));
  self->changed = g_array_new (FALSE, FALSE, sizeof (Entry));
  for (guint i = 0; i < n; i++)
    make_list (self, i);
}

static void
close_lists (Inside *self)
{
  g_clear_pointer (&self->counts[0], g_free);
  g_clear_pointer (&self->counts[1], g_free);
  g_clear_pointer (&self->first_user, g_free);
  g_clear_pointer (&self->users, g_free);
  g_clear_pointer (&self->lists, g_free);
  g_clear_pointer (&self->lengths, g_free);
  g_clear_pointer (&self->stamps, g_free);
  g_clear_pointer (&self->best, g_array_unref);
  g_clear_pointer (&self->changed, g_array_unref);
}

/* ---- storing ---- */
/* The number of the value to store, or that of values: there is none. */
static guint
find_value_to_store (Inside *self)
{
  while (self->best->len > 0) {
    const Entry entry = pop (self->best);
    const TinyNode *node = self->fused->pdata[entry.value];
    const double n = (double) self->lengths[entry.value];
    const Info *info = fusion_get_info (self->fusion, node);
    if (self->counts[0][entry.value] > 0 && !info->is_stored && n >= 2 && n <= self->limit
        && entry.key == info->n_bytes / (n - 1))
      return entry.value;
  }
  return self->fused->len;
}

/* Leaves out what only value @i needs. FALSE: the rest needs some of it as well, whose place among the values is another
 * one then. */
static gboolean
drop_below (Inside *self, guint i)
{
  g_autoptr (GArray) below = g_array_new (FALSE, FALSE, sizeof (guint)); /* that were met */
  gboolean is_whole = TRUE;
  g_array_append_val (below, i);
  for (guint k = 0; k < below->len; k++) {
    const guint at = g_array_index (below, guint, k);
    const TinyNode *node = self->fused->pdata[at];
    if (k > 0 && self->counts[0][at] > 0)
      continue;
    for (guint s = 0; s < schedule_count_values (node); s++) {
      const Info *source = fusion_get_info (self->fusion, node->sources[s]);
      const guint number = source->number;
      const gboolean is_one = is_read (source);
      TINY_COUNT (n_looks, 1);
      const gboolean is_last = --self->counts[is_one][number] == 0;
      if (!is_one) {
        g_array_append_val (below, number);
      } else if (is_last) {
        self->n_reads--;
        self->n_variables -= source->node->op == TINY_OP_VARIABLE;
      }
    }
  }
  for (guint k = 1; k < below->len; k++)
    is_whole = is_whole && self->counts[0][g_array_index (below, guint, k)] == 0;
  return is_whole;
}

static void
mark_users (Inside *self, guint i)
{
  for (guint u = self->first_user[i]; u < self->first_user[i + 1]; u++)
    if (self->counts[0][self->users[u]] > 0 || self->users[u] + 1 == self->fused->len)
      push (self->changed, self->users[u], self->users[u]);
}

/* Stores value @i. FALSE: the kernel is to be looked at anew. */
static gboolean
store_value (Inside *self, guint i)
{
  Info *info = fusion_get_info (self->fusion, self->fused->pdata[i]);
  const gboolean is_whole = drop_below (self, i);
  info->is_forced = info->is_stored = TRUE;
  if (!is_whole)
    return FALSE;
  info->number = self->reads->len;
  self->counts[1][info->number] = self->counts[0][i];
  g_ptr_array_add (self->reads, self->fused->pdata[i]);
  self->n_reads++;
  mark_users (self, i);
  for (guint last = self->fused->len; self->changed->len > 0;) {
    const guint at = pop (self->changed).value;
    if (at != last && make_list (self, at))
      mark_users (self, at);
    last = at;
  }
  return TRUE;
}

/* How many reads a list may have where the kernel has too many; 0: it has not. */
static guint
find_limit (const Inside *self, guint most)
{
  const gboolean too_many = self->n_variables > schedule_weights.max_variables;
  if (self->n_reads - self->n_variables <= most && !too_many)
    return 0;
  return too_many ? MIN (most, schedule_weights.max_variables) : most;
}

/* Stores more until the kernel of @root, a value that is stored, does not read too much. Returns whether it did. */
static gboolean
limit_kernel (Inside *self, Info *root)
{
  Plan *plan = self->fusion->plan;
  const char *device = schedule_get_device (plan, root->node);
  const ScheduleMachine machine
      = schedule_get_machine (plan, device != NULL ? device : plan->only_device);
  const guint most = MIN (schedule_weights.max_buffers, MAX (machine.max_buffers, 2) - 1);
  gboolean changed = FALSE, is_known = TRUE;
  for (look_inside (self, root); (self->limit = find_limit (self, most)) > 0;
       look_inside (self, root)) {
    open_lists (self);
    for (is_known = TRUE; is_known && find_limit (self, most) == self->limit;) {
      const guint i = find_value_to_store (self);
      if (i == self->fused->len)
        break;
      is_known = store_value (self, i);
      changed = TRUE;
    }
    const gboolean is_end = is_known && find_limit (self, most) == self->limit;
    close_lists (self);
    if (is_end)
      break;
  }
  return changed;
}

/* By place: the kernels of these nodes, as far as there are any, are not made of what they were made of when kernels were
 * looked at last. */
static guint8 *
find_changed (const Fusion *self)
{
  enum { INSIDE = 1, ITSELF = 2 };
  guint8 *changed = g_new0 (guint8, self->order->len + 1);
  for (guint i = 0; i < self->order->len; i++) {
    const Info *info = &self->infos[i];
    changed[i] = info->is_stored != info->was_stored ? INSIDE | ITSELF : 0;
    for (guint s = 0; s < info->n_values; s++) {
      const guint place = self->value_places[info->first_value + s];
      const guint8 how = self->infos[place].is_stored ? ITSELF : INSIDE;
      changed[i] |= (changed[place] & how) != 0 ? INSIDE : 0;
    }
  }
  return changed;
}

gboolean
fusion_limit_buffers (Fusion *self)
{
  g_autoptr (GPtrArray) fused = g_ptr_array_new (), reads = g_ptr_array_new ();
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  g_autofree guint8 *changed = self->is_looked_at ? find_changed (self) : NULL;
  Inside inside = { .fusion = self, .fused = fused, .reads = reads, .stack = stack };
  gboolean stores = FALSE;
  for (guint i = 0; i < self->order->len; i++)
    self->infos[i].was_stored = self->infos[i].is_stored;
  self->is_looked_at = TRUE;
  for (guint i = 0; i < self->order->len; i++)
    if (self->infos[i].is_stored && (changed == NULL || changed[i])
        && limit_kernel (&inside, &self->infos[i]))
      stores = TRUE;
  return stores;
}
