/* SPDX-License-Identifier: MIT
 *
 * memory-plan.c: where temporaries lie.
 *
 * Every device has one arena, or several where one would be more than the device has in one piece. A temporary lives
 * from the item that writes it to the last that reads it; the largest are placed first, each in the smallest gap that fits
 * between those placed before that live at the same time, at a multiple of what any device may ask for. */
#include "base/tiny-stats.h"
#include "schedule/plan.h"

typedef struct {
  guint buffer, first, last;
  gint64 n_bytes, offset;
} Life;

static int
compare_sizes (gconstpointer a, gconstpointer b)
{
  const Life *x = a, *y = b;
  if (x->n_bytes != y->n_bytes)
    return x->n_bytes > y->n_bytes ? -1 : 1;
  return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static GArray *
find_lives (Plan *plan)
{
  GArray *lives = g_array_new (FALSE, FALSE, sizeof (Life));
  g_autofree gint *life_of = g_new (gint, plan->buffers->len + 1);
  for (guint b = 0; b < plan->buffers->len; b++)
    life_of[b] = -1;
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    for (guint j = 0; j < item->n_buffers; j++) {
      guint b = item->buffers[j];
      const TinyScheduleBuffer *buffer = schedule_get_buffer (plan, b);
      if (buffer->kind != TINY_SCHEDULE_TEMPORARY)
        continue;
      if (life_of[b] < 0) {
        gint64 n_bytes = buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype);
        life_of[b] = lives->len;
        n_bytes
            = (n_bytes + TINY_SPAN_ALIGNMENT - 1) / TINY_SPAN_ALIGNMENT * TINY_SPAN_ALIGNMENT;
        g_array_append_val (lives, ((Life){ b, i, i, n_bytes, 0 }));
      }
      g_array_index (lives, Life, life_of[b]).last = i;
    }
  }
  g_array_sort (lives, compare_sizes);
  return lives;
}

/* ---- what is taken, and when ----
 * A tree over the items: a leaf is one item, a node above stands for those of the two below it. A life is noted at the few
 * nodes that together are its time; who asks for another time meets it there, above or below. */
typedef struct {
  gint64 start, end;
} Span;

typedef struct {
  TinyScheduleArena arena;
  guint n;         /* leaves: n … 2 n - 1; below node i are 2 i and 2 i + 1 */
  GArray **always; /* Span: taken all the time of a node, where it is noted */
  GArray **ever;   /* Span: taken at some time of it, noted there or below */
  /* Span: for a place that is being looked for, in runs that are in order each. */
  GArray *found;
  GArray *runs;   /* guint: where each begins in it, and where the last ends */
  GArray *merged; /* Span: half as many runs of the same */
} Taken;

static Taken *
taken_new (const char *device, guint n_items)
{
  Taken *self = g_new0 (Taken, 1);
  self->arena.device = device;
  for (self->n = 1; self->n < n_items;)
    self->n *= 2;
  self->always = g_new0 (GArray *, 2 * self->n);
  self->ever = g_new0 (GArray *, 2 * self->n);
  self->found = g_array_new (FALSE, FALSE, sizeof (Span));
  self->merged = g_array_new (FALSE, FALSE, sizeof (Span));
  self->runs = g_array_new (FALSE, FALSE, sizeof (guint));
  return self;
}

static void
taken_free (gpointer data)
{
  Taken *self = data;
  for (guint i = 0; i < 2 * self->n; i++) {
    g_clear_pointer (&self->always[i], g_array_unref);
    g_clear_pointer (&self->ever[i], g_array_unref);
  }
  g_free (self->always);
  g_free (self->ever);
  g_array_unref (self->found);
  g_array_unref (self->merged);
  g_array_unref (self->runs);
  g_free (self);
}

/* Spans that touch become one: what lies close takes few. */
static void
add_span (GArray **spans, Span span)
{
  if (*spans == NULL)
    *spans = g_array_new (FALSE, FALSE, sizeof (Span));
  const Span *all = (const Span *) (void *) (*spans)->data;
  guint at = 0, end = (*spans)->len, n = 0;
  while (at < end) {
    const guint middle = (at + end) / 2;
    if (all[middle].end < span.start)
      at = middle + 1;
    else
      end = middle;
  }
  for (; at + n < (*spans)->len && all[at + n].start <= span.end; n++)
    span = (Span){ MIN (span.start, all[at + n].start), MAX (span.end, all[at + n].end) };
  TINY_COUNT (n_looks, n + 1);
  if (n > 0)
    g_array_remove_range (*spans, at, n);
  g_array_insert_val (*spans, at, span);
}

static void
take (Taken *self, const Life *life)
{
  const Span span = { life->offset, life->offset + life->n_bytes };
  guint a = life->first + self->n, b = life->last + self->n;
  for (guint i = a, j = b; i > 0; i /= 2, j /= 2) {
    add_span (&self->ever[i], span);
    if (j != i)
      add_span (&self->ever[j], span);
  }
  for (b++; a < b; a = (a + 1) / 2, b /= 2) {
    if (a % 2 == 1) {
      add_span (&self->always[a], span);
      add_span (&self->ever[a], span);
    }
    if (b % 2 == 1) {
      add_span (&self->always[b - 1], span);
      add_span (&self->ever[b - 1], span);
    }
  }
}

static void
find_spans (Taken *self, const GArray *spans)
{
  if (spans == NULL || spans->len == 0)
    return;
  TINY_COUNT (n_looks, spans->len);
  g_array_append_vals (self->found, spans->data, spans->len);
  g_array_append_val (self->runs, self->found->len);
}

/* Appends @span to the @n in order at @out, or to the last of them where they touch. Returns how many they are. */
static inline guint
append_span (Span *out, guint n, Span span)
{
  if (n > 0 && out[n - 1].end >= span.start) {
    out[n - 1].end = MAX (out[n - 1].end, span.end);
    return n;
  }
  out[n] = span;
  return n + 1;
}

/* Makes one of every two runs. */
static void
merge_runs (Taken *self)
{
  const Span *all = (const Span *) (void *) self->found->data;
  guint *runs = (guint *) (void *) self->runs->data, n_runs = 0, total = 0;
  g_array_set_size (self->merged, self->found->len);
  for (guint r = 0; r + 1 < self->runs->len; r += 2) {
    guint a = runs[r], n = 0;
    const guint middle = runs[r + 1], last = MIN (r + 2, self->runs->len - 1);
    Span *out = &g_array_index (self->merged, Span, total);
    for (guint b = middle, end = runs[last]; a < middle || b < end;)
      n = append_span (out, n,
                       b == end || (a < middle && all[a].start <= all[b].start) ? all[a++]
                                                                                : all[b++]);
    runs[n_runs++] = total;
    total += n;
  }
  runs[n_runs++] = total;
  g_array_set_size (self->runs, n_runs);
  g_array_set_size (self->merged, total);
  GArray *old = self->found;
  self->found = self->merged;
  self->merged = old;
}

/* Lists in order what is taken while @life is there. */
static void
find_taken (Taken *self, const Life *life)
{
  guint a = life->first + self->n, b = life->last + self->n;
  const guint none = 0;
  g_array_set_size (self->found, 0);
  g_array_set_size (self->runs, 0);
  g_array_append_val (self->runs, none);
  for (guint i = a, j = b; i > 0; i /= 2, j /= 2) {
    find_spans (self, self->always[i]);
    if (j != i)
      find_spans (self, self->always[j]);
  }
  for (b++; a < b; a = (a + 1) / 2, b /= 2) {
    if (a % 2 == 1)
      find_spans (self, self->ever[a]);
    if (b % 2 == 1)
      find_spans (self, self->ever[b - 1]);
  }
  while (self->runs->len > 2)
    merge_runs (self);
}

/* Finds @life its place. */
static void
find_place (Taken *self, Life *life)
{
  gint64 end = 0, best = -1, best_gap = G_MAXINT64;
  find_taken (self, life);
  for (guint i = 0; i < self->found->len; i++) {
    const Span *other = &g_array_index (self->found, Span, i);
    gint64 gap = other->start - end;
    if (gap >= life->n_bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = MAX (end, other->end);
  }
  life->offset = best >= 0 ? best : end;
}

/* Gives @life its place, in the first arena of @device that has one within @limit, or as large as it is anyway. */
static guint
place (GPtrArray *taken, Life *life, const char *device, guint64 limit, guint n_items)
{
  guint i = 0;
  Taken *it = NULL;
  for (; i < taken->len; i++) {
    it = taken->pdata[i];
    if (it->arena.device != device)
      continue;
    find_place (it, life);
    const guint64 end = (guint64) (life->offset + life->n_bytes);
    if (limit == 0 || end <= MAX (limit, (guint64) it->arena.n_bytes))
      break;
  }
  if (i == taken->len) {
    g_ptr_array_add (taken, it = taken_new (device, n_items));
    life->offset = 0;
  }
  it->arena.n_bytes = MAX (it->arena.n_bytes, life->offset + life->n_bytes);
  if (life->n_bytes > 0)
    take (it, life);
  return i;
}

TinyScheduleArena *
schedule_plan_memory (Plan *plan, guint *out_n_arenas)
{
  const TinyScheduleOptions *options = &plan->options;
  g_autoptr (GArray) lives = find_lives (plan);
  g_autoptr (GArray) arenas = g_array_new (FALSE, TRUE, sizeof (TinyScheduleArena));
  g_autoptr (GPtrArray) taken = g_ptr_array_new_with_free_func (taken_free);
  for (guint i = 0; i < lives->len; i++) {
    Life *life = &g_array_index (lives, Life, i);
    TinyScheduleBuffer *buffer = schedule_get_buffer (plan, life->buffer);
    const guint64 limit
        = options->find_limit != NULL ? options->find_limit (buffer->device, options->data) : 0;
    buffer->arena = place (taken, life, buffer->device, limit, plan->items->len);
    buffer->slot = life->offset;
  }
  for (guint i = 0; i < taken->len; i++)
    g_array_append_val (arenas, ((const Taken *) taken->pdata[i])->arena);
  *out_n_arenas = arenas->len;
  return (TinyScheduleArena *) g_array_free (g_steal_pointer (&arenas), FALSE);
}
