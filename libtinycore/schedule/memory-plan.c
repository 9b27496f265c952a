/* SPDX-License-Identifier: MIT
 *
 * memory-plan.c: where temporaries lie.
 *
 * Every device has one arena. A temporary lives from the item that writes it to the last that
 * reads it; the largest are placed first, each in the smallest gap that fits between those placed
 * before that live at the same time, at a multiple of what any device may ask for. */
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

static int
compare_offsets (gconstpointer a, gconstpointer b)
{
  const Life *x = *(Life *const *) a, *y = *(Life *const *) b;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
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

/* Places @life among those @placed on the same device. */
static void
place (Life *life, GPtrArray *placed)
{
  gint64 end = 0, best = -1, best_gap = G_MAXINT64;
  for (guint i = 0; i < placed->len; i++) {
    const Life *other = placed->pdata[i];
    if (other->first > life->last || other->last < life->first)
      continue;
    gint64 gap = other->offset - end;
    if (gap >= life->n_bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = MAX (end, other->offset + other->n_bytes);
  }
  life->offset = best >= 0 ? best : end;
  g_ptr_array_add (placed, life);
  g_ptr_array_sort (placed, compare_offsets);
}

TinyScheduleArena *
schedule_plan_memory (Plan *plan, guint *out_n_arenas)
{
  g_autoptr (GArray) lives = find_lives (plan);
  g_autoptr (GArray) arenas = g_array_new (FALSE, TRUE, sizeof (TinyScheduleArena));
  g_autoptr (GPtrArray) placed
      = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  for (guint i = 0; i < lives->len; i++) {
    Life *life = &g_array_index (lives, Life, i);
    TinyScheduleBuffer *buffer = schedule_get_buffer (plan, life->buffer);
    guint a = 0;
    while (a < arenas->len
           && g_array_index (arenas, TinyScheduleArena, a).device != buffer->device)
      a++;
    if (a == arenas->len) {
      g_array_append_val (arenas, ((TinyScheduleArena){ buffer->device, 0 }));
      g_ptr_array_add (placed, g_ptr_array_new ());
    }
    place (life, placed->pdata[a]);
    buffer->slot = life->offset;
    TinyScheduleArena *arena = &g_array_index (arenas, TinyScheduleArena, a);
    arena->n_bytes = MAX (arena->n_bytes, life->offset + life->n_bytes);
  }
  *out_n_arenas = arenas->len;
  return (TinyScheduleArena *) g_array_free (g_steal_pointer (&arenas), FALSE);
}
