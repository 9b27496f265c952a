/* SPDX-License-Identifier: MIT
 *
 * loops.c: the loops of a kernel being made, split and joined as its addresses ask for.
 *
 * An axis begins as one loop. Where addresses divide its counter, the loop is split into the
 * digits they want, so that they become sums of multiples. Of the loops then, neighbours that
 * always run through memory like one become one. */
#include "schedule/loops.h"

#include <string.h>

/* One loop a part, or for neighbours with joins[i] set one loop for parts i and i + 1. */
static void
make_ranges (Loops *self, LoopGroup *group, const gboolean *joins)
{
  TinyRangeKind kind = group->depth == 0 ? TINY_RANGE_LOOP : TINY_RANGE_REDUCE;
  const Affine *parts[SCHEDULE_MAX_RANK];
  group->n_ranges = 0;
  for (guint first = 0, last; first < group->n_parts; first = last + 1) {
    gint64 extent = group->parts[first], inner = 1;
    for (last = first; joins != NULL && last + 1 < group->n_parts && joins[last]; last++)
      extent *= group->parts[last + 1];
    TinyNode *range = tiny_node_range_const (self->graph, self->n_ranges++, kind, extent);
    const Affine *whole = affine_range (self->pool, range);
    group->ranges[group->n_ranges++] = range;
    for (guint i = last + 1; i-- > first;) {
      parts[i] = affine_div (self->pool, whole, inner);
      if (i != first)
        parts[i] = affine_mod (self->pool, parts[i], group->parts[i]);
      inner *= group->parts[i];
    }
  }
  for (guint i = 0, p = 0; i < group->n_axes; i++) {
    group->index[i] = parts[p++];
    for (guint j = 1; j < group->n_axis_parts[i]; j++, p++)
      group->index[i]
          = affine_sum (self->pool, group->index[i], group->parts[p], parts[p], 1, 0);
  }
}

LoopGroup *
loops_add (Loops *self, guint depth, guint n, const gint64 *extents)
{
  LoopGroup *group = tiny_arena_alloc (self->arena, sizeof *group);
  group->depth = depth;
  group->n_axes = group->n_parts = n;
  for (guint i = 0; i < n; i++) {
    group->extents[i] = group->parts[i] = extents[i];
    group->n_axis_parts[i] = 1;
  }
  g_ptr_array_add (self->groups, group);
  make_ranges (self, group, NULL);
  return group;
}

LoopGroup *
loops_get_reduce (Loops *self, guint depth, guint n, const gint64 *extents)
{
  for (guint i = 0; i < self->groups->len; i++) {
    LoopGroup *group = self->groups->pdata[i];
    if (group->depth == depth && group->n_axes == n
        && memcmp (group->extents, extents, n * sizeof *extents) == 0)
      return group;
  }
  return loops_add (self, depth, n, extents);
}

/* Adds to @steps the sizes at which @x divides the counter of @range. Quotients of quotients share what they are
 * made of: each is looked at once, and is in @seen then. */
static void
find_steps (Loops *self, const Affine *x, TinyNode *range, GArray *steps, GHashTable *seen)
{
  for (guint i = 0; i < x->n; i++) {
    const AffineAtom *atom = affine_pool_get_atom (self->pool, x->terms[i].atom);
    if (atom->inner == NULL || !g_hash_table_add (seen, (gpointer) atom))
      continue;
    const Affine *inner = atom->inner;
    gint64 step = atom->divisor;
    find_steps (self, inner, range, steps, seen);
    if (inner->n != 1 || inner->offset != 0 || inner->terms[0].mul != 1)
      continue;
    TinyNode *divided = inner->terms[0].atom;
    if (divided->op == TINY_OP_FLOORDIV) { /* the rest of a quotient */
      const AffineAtom *quotient = affine_pool_get_atom (self->pool, divided);
      inner = quotient->inner;
      step *= quotient->divisor;
      divided = inner->n == 1 && inner->offset == 0 && inner->terms[0].mul == 1
                    ? inner->terms[0].atom
                    : NULL;
    }
    if (divided == range)
      g_array_append_val (steps, step);
  }
}

static int
compare_steps (gconstpointer a, gconstpointer b)
{
  gint64 x = *(const gint64 *) a, y = *(const gint64 *) b;
  return x < y ? -1 : x > y;
}

/* Splits the axes of @group, which have a loop each, where addresses divide their counters: the
 * digits that they ask for become loops. Returns whether there was one. */
static gboolean
split_axes (Loops *self, LoopGroup *group, const GPtrArray *used)
{
  g_autoptr (GArray) steps = g_array_new (FALSE, FALSE, sizeof (gint64));
  guint n_parts = 0;
  gboolean splits = FALSE;
  for (guint i = 0; i < group->n_axes; i++) {
    gint64 last = 1;
    guint n = 0, left = SCHEDULE_MAX_RANK - n_parts - (group->n_axes - i);
    gint64 parts[SCHEDULE_MAX_RANK]; /* innermost first */
    g_array_set_size (steps, 0);
    g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
    for (guint u = 0; u < used->len; u++)
      find_steps (self, used->pdata[u], group->ranges[i], steps, seen);
    g_array_sort (steps, compare_steps);
    for (guint k = 0; k < steps->len && n < left; k++) {
      gint64 step = g_array_index (steps, gint64, k);
      if (step <= last || step >= group->extents[i] || step % last != 0
          || group->extents[i] % step != 0)
        continue;
      parts[n++] = step / last;
      last = step;
      splits = TRUE;
    }
    parts[n++] = group->extents[i] / last;
    group->n_axis_parts[i] = n;
    while (n > 0)
      group->parts[n_parts++] = parts[--n];
  }
  group->n_parts = n_parts;
  return splits;
}

/* Whether in every sum that @x is made of, @outer moves as @extent steps of @inner would; @seen is as above. */
static gboolean
moves_as_one (Loops *self,
              const Affine *x,
              TinyNode *outer,
              TinyNode *inner,
              gint64 extent,
              GHashTable *seen)
{
  if (affine_get_mul (x, outer) != affine_get_mul (x, inner) * extent)
    return FALSE;
  for (guint i = 0; i < x->n; i++) {
    const AffineAtom *atom = affine_pool_get_atom (self->pool, x->terms[i].atom);
    if (atom->inner != NULL && g_hash_table_add (seen, (gpointer) atom)
        && !moves_as_one (self, atom->inner, outer, inner, extent, seen))
      return FALSE;
  }
  return TRUE;
}

gboolean
loops_split (Loops *self, const GPtrArray *used)
{
  gboolean splits = FALSE;
  for (guint g = 0; g < self->groups->len; g++)
    splits |= split_axes (self, self->groups->pdata[g], used);
  if (!splits)
    return FALSE;
  self->n_ranges = 0;
  for (guint g = 0; g < self->groups->len; g++)
    make_ranges (self, self->groups->pdata[g], NULL);
  return TRUE;
}

gboolean
loops_join (Loops *self, const GPtrArray *used)
{
  gboolean changed = FALSE;
  self->n_ranges = 0;
  for (guint g = 0; g < self->groups->len; g++) {
    LoopGroup *group = self->groups->pdata[g];
    gboolean joins[SCHEDULE_MAX_RANK] = { FALSE };
    for (guint i = 0; i + 1 < group->n_parts; i++) {
      g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
      joins[i] = TRUE;
      for (guint u = 0; u < used->len && joins[i]; u++)
        joins[i] = moves_as_one (self, used->pdata[u], group->ranges[i], group->ranges[i + 1],
                                 group->parts[i + 1], seen);
    }
    TinyNode *before[SCHEDULE_MAX_RANK];
    const guint n_before = group->n_ranges;
    memcpy (before, group->ranges, n_before * sizeof *before);
    make_ranges (self, group, joins);
    changed = changed || group->n_ranges != n_before
              || memcmp (before, group->ranges, n_before * sizeof *before) != 0;
  }
  return changed;
}
