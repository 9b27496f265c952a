/* SPDX-License-Identifier: MIT
 *
 * tiny-shard.c: cutting, joining and placing pieces of values. */
#include "ir/tiny-shard.h"

#include <string.h>

#include "ir/tiny-shape.h"

enum {
  MAX_RANK = 32,
  MOST_AGAIN = 64 /* nodes that each device computes for itself */
};

guint
tiny_devices_count (const char *devices)
{
  guint n = devices != NULL && devices[0] != 0;
  for (const char *c = devices; n > 0 && *c != 0; c++)
    n += *c == ';';
  return n;
}

char **
tiny_devices_split (const char *devices)
{
  return g_strsplit (devices, ";", -1);
}

gint64
tiny_shard_get_begin (gint64 size, guint n, guint i)
{
  return size / n * i + MIN (size % n, (gint64) i);
}

/* One value for all elements is the same for fewer of them: nothing is read that need not be. */
static TinyNode *
cut_repeated (TinyGraph *graph, TinyNode *x, guint axis, gint64 size)
{
  gint64 dims[MAX_RANK];
  memcpy (dims, x->shape->v, x->shape->n * sizeof (gint64));
  dims[axis] = size;
  return tiny_node_expand (graph, x->sources[0], dims, x->shape->n);
}

TinyNode *
tiny_node_cut (TinyGraph *graph, TinyNode *x, guint axis, gint64 from, gint64 to)
{
  gint64 pairs[2 * MAX_RANK];
  if (x->op == TINY_OP_EXPAND && x->sources[0]->shape->v[axis] == 1)
    return cut_repeated (graph, x, axis, to - from);
  for (guint i = 0; i < x->shape->n; i++) {
    pairs[2 * i] = i == axis ? from : 0;
    pairs[2 * i + 1] = i == axis ? to : x->shape->v[i];
  }
  return tiny_node_shrink (graph, x, pairs, x->shape->n);
}

/* TRUE where padding @x by @pairs leaves what @x has. */
static TinyNode *
inside (TinyGraph *graph, const TinyNode *x, const gint64 *pairs)
{
  TinyNode *yes = tiny_node_const_int (graph, TINY_DTYPE_BOOL, 1);
  yes = tiny_node_broadcast (graph, yes, x->shape->v, x->shape->n);
  return tiny_node_pad (graph, yes, pairs, x->shape->n);
}

/* Chosen and not added, so that zeros keep their sign. */
TinyNode *
tiny_node_join (TinyGraph *graph, TinyNode *const *pieces, guint n, guint axis)
{
  TinyNode *joined = NULL;
  gint64 total = 0, at = 0, pairs[2 * MAX_RANK] = { 0 };
  for (guint i = 0; i < n; i++)
    total += pieces[i]->shape->v[axis];
  for (guint i = 0; i < n; i++) {
    pairs[2 * axis] = at;
    at += pieces[i]->shape->v[axis];
    pairs[2 * axis + 1] = total - at;
    TinyNode *part = tiny_node_pad (graph, pieces[i], pairs, pieces[i]->shape->n);
    joined = joined == NULL
                 ? part
                 : tiny_node_where (graph, inside (graph, pieces[i], pairs), part, joined);
  }
  return joined;
}

static TinyNode *
copy_to (TinyGraph *graph, TinyNode *x, const char *device)
{
  return tiny_node_new (graph, TINY_OP_COPY, (TinyDType) x->dtype, 1, 1, &x, 0, NULL, device);
}

static gboolean
is_placed (const TinyNode *x)
{
  return x->op == TINY_OP_PARAM || x->op == TINY_OP_BUFFER
         || (x->text != NULL && x->op != TINY_OP_VARIABLE);
}

/* How many nodes @x is made of, numbers alone; 0: there is something else. */
static guint
count_nowhere (TinyGraph *graph, TinyNode *x)
{
  const TinyNode *first = x;
  while (!is_placed (first) && first->n_sources > 0)
    first = first->sources[0];
  if (is_placed (first))
    return 0;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &x, 1);
  for (guint i = 0; i < order->len; i++)
    if (is_placed (order->pdata[i]))
      return 0;
  return order->len;
}

gboolean
tiny_node_is_nowhere (TinyGraph *graph, TinyNode *x)
{
  return count_nowhere (graph, x) > 0;
}

/* @begins: where each piece begins, and the end; NULL: the whole for each. */
static TinyNode *
spread (TinyGraph *graph, TinyNode *x, const char *devices, gint64 axis, const gint64 *begins)
{
  g_auto (GStrv) names = tiny_devices_split (devices);
  const guint n = g_strv_length (names);
  g_autofree TinyNode **pieces = g_new (TinyNode *, n + 1);
  if (count_nowhere (graph, x) > MOST_AGAIN)
    x = copy_to (graph, x, names[0]);
  for (guint i = 0; i < n; i++) {
    TinyNode *piece
        = begins == NULL ? x : tiny_node_cut (graph, x, (guint) axis, begins[i], begins[i + 1]);
    pieces[i] = copy_to (graph, piece, names[i]);
  }
  return tiny_node_new (graph, TINY_OP_UNSHARD, (TinyDType) x->dtype, 1, n, pieces, axis, NULL,
                        devices);
}

TinyNode *
tiny_node_to (TinyGraph *graph, TinyNode *x, const char *devices, gint64 axis)
{
  const guint n = tiny_devices_count (devices);
  if (n < 2)
    return copy_to (graph, x, devices);
  if (axis == TINY_SHARD_WHOLE)
    return spread (graph, x, devices, axis, NULL);
  g_autofree gint64 *begins = g_new (gint64, n + 1);
  for (guint i = 0; i <= n; i++)
    begins[i] = tiny_shard_get_begin (x->shape->v[axis], n, i);
  return spread (graph, x, devices, axis, begins);
}

TinyNode *
tiny_node_to_like (TinyGraph *graph, TinyNode *x, const TinyNode *like)
{
  g_autofree gint64 *begins = g_new0 (gint64, like->n_sources + 1);
  if (like->arg == TINY_SHARD_WHOLE)
    return spread (graph, x, like->text, like->arg, NULL);
  for (guint i = 0; i < like->n_sources; i++)
    begins[i + 1] = begins[i] + like->sources[i]->shape->v[like->arg];
  return spread (graph, x, like->text, like->arg, begins);
}
