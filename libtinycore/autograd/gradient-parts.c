/* SPDX-License-Identifier: MIT
 *
 * gradient-parts.c: the sum of what comes for one node.
 *
 * A value that is read slice by slice, as a recurrence reads its sequence, gets a PAD from each slice. One after the
 * other, n of them would be n sums as large as the value: n² bytes. Slices that do not overlap are put side by side
 * instead. */
#include "autograd/gradient-parts.h"

#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"

enum { FEW_SLICES = 16, MAX_RANK = 32 }; /* few: any kernel can read them */

/* The part of a value, along one axis, that a PAD gives something for. */
typedef struct {
  TinyNode *pad;
  guint axis, at; /* at: in the order in which parts came */
  gint64 start, end;
} Slice;

static gboolean
read_slice (TinyNode *part, guint at, Slice *out)
{
  guint n_padded = 0;
  if (part->op != TINY_OP_PAD || part->limits != NULL || part->sources[0]->limits != NULL)
    return FALSE;
  for (guint i = 0; i < part->shape->n; i++) {
    const gint64 before = part->ints->v[2 * i], size = part->sources[0]->shape->v[i];
    if (part->shape->v[i] == size)
      continue;
    *out = (Slice){ part, i, at, before, before + size };
    n_padded++;
  }
  return n_padded == 1 && out->end > out->start;
}

static int
compare_slices (gconstpointer a, gconstpointer b)
{
  const Slice *x = a, *y = b;
  if (x->axis != y->axis)
    return x->axis < y->axis ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* Takes out of @slices, in their order, those of one axis that do not overlap. */
static void
take_row (GArray *slices, GArray *row)
{
  guint n_left = 0;
  g_array_set_size (row, 0);
  for (guint i = 0; i < slices->len; i++) {
    const Slice slice = g_array_index (slices, Slice, i);
    const Slice *last = row->len > 0 ? &g_array_index (row, Slice, row->len - 1) : NULL;
    if (last == NULL || (last->axis == slice.axis && last->end <= slice.start))
      g_array_append_val (row, slice);
    else
      g_array_index (slices, Slice, n_left++) = slice;
  }
  g_array_set_size (slices, n_left);
}

/* Slices that do not overlap, in order, with zeros between them, as one value. */
static TinyNode *
lay_side_by_side (TinyGraph *graph, const GArray *row)
{
  g_autofree TinyNode **parts = g_new (TinyNode *, row->len);
  TinyBuild build = { .name = "gradient", .graph = graph };
  const Slice *slices = &g_array_index (row, Slice, 0);
  const guint axis = slices->axis;
  gint64 end = 0;
  for (guint i = 0; i < row->len; i++) {
    const TinyInts *shape = slices[i].pad->shape;
    const gboolean is_last = i + 1 == row->len;
    gint64 pairs[2 * MAX_RANK] = { 0 };
    pairs[2 * axis] = slices[i].start - end;
    pairs[2 * axis + 1] = is_last ? shape->v[axis] - slices[i].end : 0;
    parts[i] = tiny_node_pad (graph, slices[i].pad->sources[0], pairs, shape->n);
    end = slices[i].end;
  }
  TinyNode *whole = tiny_build_cat (&build, parts, row->len, axis);
  g_assert (build.error == NULL); /* parts of one value fit */
  return whole;
}

/* Puts slices among @parts side by side where they are many; those become NULL. */
static void
lay_slices (TinyGraph *graph, TinyNode **parts, guint n, GPtrArray *out)
{
  g_autoptr (GArray) slices = g_array_new (FALSE, FALSE, sizeof (Slice));
  g_autoptr (GArray) row = g_array_new (FALSE, FALSE, sizeof (Slice));
  for (guint i = 0; i < n; i++) {
    Slice slice;
    if (read_slice (parts[i], i, &slice))
      g_array_append_val (slices, slice);
  }
  g_array_sort (slices, compare_slices);
  while (slices->len > FEW_SLICES) {
    take_row (slices, row);
    if (row->len <= FEW_SLICES)
      continue;
    for (guint i = 0; i < row->len; i++)
      parts[g_array_index (row, Slice, i).at] = NULL;
    g_ptr_array_add (out, lay_side_by_side (graph, row));
  }
}

TinyNode *
gradient_parts_sum (TinyGraph *graph, TinyNode *const *parts, guint n)
{
  if (n == 1)
    return parts[0];
  g_autofree TinyNode **left = g_memdup2 (parts, n * sizeof *parts);
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  lay_slices (graph, left, n, all);
  TinyNode *sum = NULL;
  for (guint i = 0; i < n; i++)
    if (left[i] != NULL)
      sum = sum == NULL ? left[i] : tiny_layout_binary (graph, TINY_OP_ADD, sum, left[i]);
  for (guint i = 0; i < all->len; i++)
    sum = sum == NULL ? all->pdata[i]
                      : tiny_layout_binary (graph, TINY_OP_ADD, sum, all->pdata[i]);
  return sum;
}
