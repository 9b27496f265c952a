/* SPDX-License-Identifier: MIT
 *
 * multi.c: takes a graph of values on several devices apart, before anything else is scheduled.
 *
 * From sources to users, every node that reads such a value becomes one node for each device. UNSHARD, where
 * they come from, and the roots, where they end, then are lists of nodes; what is left are nodes of single
 * devices and COPYs between them, which the other passes know. */
#include "schedule/multi.h"

#include "base/tiny-error.h"

/* ---- values ---- */
Multi *
multi_new (Apart *self, const MultiDevices *on, gint64 axis)
{
  Multi *out = tiny_arena_alloc (self->plan->arena, sizeof *out);
  *out = (Multi){ on, axis, tiny_arena_alloc (self->plan->arena, on->n * sizeof (TinyNode *)) };
  return out;
}

gint64
multi_get_begin (const Multi *self, guint i)
{
  gint64 at = 0;
  for (guint k = 0; k < i; k++)
    at += self->pieces[k]->shape->v[self->axis];
  return at;
}

static const MultiDevices *
find_devices (Apart *self, const char *text)
{
  MultiDevices *on = g_hash_table_lookup (self->devices, text);
  if (on != NULL)
    return on;
  g_auto (GStrv) names = tiny_devices_split (text);
  const guint n = g_strv_length (names);
  const char **interned = tiny_arena_alloc (self->plan->arena, n * sizeof *interned);
  for (guint i = 0; i < n; i++)
    interned[i] = tiny_graph_text (self->graph, names[i]);
  on = tiny_arena_alloc (self->plan->arena, sizeof *on);
  *on = (MultiDevices){ n, interned, tiny_graph_text (self->graph, text) };
  g_hash_table_insert (self->devices, (gpointer) on->text, on);
  return on;
}

/* ---- from device to device ---- */

/* What repeats is copied before it is repeated. */
TinyNode *
multi_copy (Apart *self, TinyNode *x, const char *device)
{
  const char *here = schedule_get_device (self->plan, x);
  if (here == NULL || here == device)
    return x;
  if (x->op == TINY_OP_EXPAND)
    return tiny_node_expand (self->graph, multi_copy (self, x->sources[0], device), x->ints->v,
                             x->ints->n);
  return tiny_node_new (self->graph, TINY_OP_COPY, (TinyDType) x->dtype, 1, 1, &x, 0, NULL,
                        device);
}

TinyNode *
multi_take (Apart *self, const Multi *x, const char *device, gint64 from, gint64 to)
{
  g_autofree TinyNode **parts = g_new (TinyNode *, x->on->n);
  const guint axis = (guint) x->axis;
  guint n = 0;
  gint64 begin = 0;
  for (guint i = 0; i < x->on->n; i++) {
    TinyNode *piece = x->pieces[i];
    gint64 end = begin + piece->shape->v[axis], low = MAX (from, begin), high = MIN (to, end);
    if (low < high)
      parts[n++] = multi_copy (
          self, tiny_node_cut (self->graph, piece, axis, low - begin, high - begin), device);
    begin = end;
  }
  if (n == 0) /* nothing is asked for */
    return tiny_node_cut (self->graph, x->pieces[0], axis, 0, 0);
  return tiny_node_join (self->graph, parts, n, (guint) x->axis);
}

TinyNode *
multi_get_whole (Apart *self, const Multi *x, const char *device)
{
  if (x->axis != TINY_SHARD_WHOLE)
    return multi_take (self, x, device, 0, multi_get_begin (x, x->on->n));
  for (guint i = 0; i < x->on->n; i++)
    if (x->on->names[i] == device)
      return x->pieces[i];
  return multi_copy (self, x->pieces[0], device);
}

static TinyNode *
refuse_devices (Apart *self, const TinyNode *node, const char *here, const char *there)
{
  if (*self->error == NULL)
    g_set_error (self->error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: operands are on %s and on %s; move one with a copy",
                 tiny_op_to_string ((TinyOp) node->op), here, there);
  return NULL;
}

TinyNode *
multi_fit_whole (Apart *self, const TinyNode *node, guint i, const MultiDevices *on, guint at)
{
  const Multi *x = multi_get (self, node->sources[i]);
  if (x != NULL)
    return x->on == on ? multi_get_whole (self, x, on->names[at])
                       : refuse_devices (self, node, on->text, x->on->text);
  TinyNode *single = tiny_node_map_get (&self->singles, node->sources[i]);
  const char *device = schedule_get_device (self->plan, single);
  return device == NULL ? single : refuse_devices (self, node, on->text, device);
}

/* Whether @x is cut at the same places. */
static gboolean
is_cut_alike (const Multi *x, const Multi *like)
{
  gboolean alike = x->axis == like->axis;
  for (guint i = 0; alike && x->axis != TINY_SHARD_WHOLE && i < x->on->n; i++)
    alike = x->pieces[i]->shape->v[x->axis] == like->pieces[i]->shape->v[like->axis];
  return alike;
}

/* @x, cut along one axis, as a piece of a cut along another one. */
static TinyNode *
cut_across (Apart *self, const Multi *x, const Multi *like, guint at)
{
  gint64 from = multi_get_begin (like, at), to = multi_get_begin (like, at + 1);
  if (x->axis == like->axis)
    return multi_take (self, x, like->on->names[at], from, to);
  Multi *strips = multi_new_like (self, x, x->axis);
  for (guint i = 0; i < x->on->n; i++)
    strips->pieces[i] = tiny_node_cut (self->graph, x->pieces[i], (guint) like->axis, from, to);
  return multi_get_whole (self, strips, like->on->names[at]);
}

TinyNode *
multi_fit (Apart *self, const TinyNode *node, guint i, const Multi *like, guint at)
{
  const Multi *x = multi_get (self, node->sources[i]);
  if (like->axis == TINY_SHARD_WHOLE || node->sources[i]->shape->n == 0)
    return multi_fit_whole (self, node, i, like->on, at);
  if (x != NULL && x->on == like->on && is_cut_alike (x, like))
    return x->pieces[at];
  if (x != NULL && x->on == like->on && x->axis != TINY_SHARD_WHOLE)
    return cut_across (self, x, like, at);
  TinyNode *whole = multi_fit_whole (self, node, i, like->on, at);
  return whole == NULL
             ? NULL
             : tiny_node_cut (self->graph, whole, (guint) like->axis,
                              multi_get_begin (like, at), multi_get_begin (like, at + 1));
}

/* ---- the walk ---- */
static gboolean
is_over_multi (Apart *self, const TinyNode *node)
{
  for (guint i = 0; i < node->n_sources; i++)
    if (multi_get (self, node->sources[i]) != NULL)
      return TRUE;
  return FALSE;
}

/* All of source @i of @node, on @device. */
static TinyNode *
find_source (Apart *self, const TinyNode *node, guint i, const char *device)
{
  const Multi *x = multi_get (self, node->sources[i]);
  return x != NULL
             ? multi_get_whole (self, x, device)
             : multi_copy (self, tiny_node_map_get (&self->singles, node->sources[i]), device);
}

static void
begin_multi (Apart *self, TinyNode *node)
{
  Multi *out = multi_new (self, find_devices (self, node->text), node->arg);
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *piece = find_source (self, node, i, out->on->names[i]);
    if (schedule_get_device (self->plan, piece) == NULL) /* it is computed there */
      piece = tiny_node_new (self->graph, TINY_OP_COPY, (TinyDType) piece->dtype, 1, 1, &piece,
                             0, NULL, out->on->names[i]);
    out->pieces[i] = piece;
  }
  tiny_node_map_set (&self->multis, node, out);
}

/* A copy of what is on several devices is all of it, wherever it comes from. */
static TinyNode *
copy_single (Apart *self, TinyNode *node)
{
  TinyNode *x = find_source (self, node, 0, node->text);
  return schedule_get_device (self->plan, x) != NULL
             ? x
             : tiny_node_with_sources (self->graph, node, &x);
}

static void
add_single (Apart *self, TinyNode *node)
{
  g_autofree TinyNode **sources = g_new (TinyNode *, node->n_sources + 1);
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = tiny_node_map_get (&self->singles, node->sources[i]);
  const gboolean gathers = node->op == TINY_OP_COPY && is_over_multi (self, node);
  TinyNode *out = gathers ? copy_single (self, node)
                          : tiny_node_with_sources (self->graph, node, sources);
  schedule_get_device (self->plan, out);
  tiny_node_map_set (&self->singles, node, out);
}

static gboolean
add_node (Apart *self, TinyNode *node)
{
  if (node->op == TINY_OP_UNSHARD) {
    begin_multi (self, node);
  } else if (node->op == TINY_OP_COPY || !is_over_multi (self, node)) {
    add_single (self, node);
  } else if (node->op == TINY_OP_AFTER && multi_get (self, node->sources[0]) == NULL) {
    tiny_node_map_set (&self->singles, node,
                       tiny_node_map_get (&self->singles, node->sources[0]));
  } else {
    Multi *out = multi_apply_rule (self, node);
    if (out == NULL)
      return FALSE;
    for (guint i = 0; i < out->on->n;
         i++) /* now that its sources are known: no deep walk later */
      schedule_get_device (self->plan, out->pieces[i]);
    tiny_node_map_set (&self->multis, node, out);
  }
  return TRUE;
}

/* A piece of what reads an assignment may be a whole piece of that: it gets memory of its own. */
static TinyNode *
get_root (Apart *self, const TinyNode *root, TinyNode *piece)
{
  const TinyNode *inner = piece;
  while (inner->op == TINY_OP_RESHAPE)
    inner = inner->sources[0];
  if (root->op == TINY_OP_ASSIGN || inner->op != TINY_OP_ASSIGN)
    return piece;
  return tiny_node_new (self->graph, TINY_OP_CONTIGUOUS, (TinyDType) piece->dtype, 1, 1, &piece,
                        0, NULL, NULL);
}

/* SINK of all pieces, and for each root which they are. */
static TinyNode *
make_sink (Apart *self, const TinyNode *sink)
{
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  self->plan->spreads
      = tiny_arena_alloc (self->plan->arena, (sink->n_sources + 1) * sizeof (TinySpread));
  self->plan->n_spreads = sink->n_sources;
  for (guint r = 0; r < sink->n_sources; r++) {
    const Multi *x = multi_get (self, sink->sources[r]);
    self->plan->spreads[r] = (TinySpread){ roots->len, x != NULL ? x->on->n : 1,
                                           x != NULL ? x->axis : TINY_SHARD_WHOLE, NULL };
    if (x == NULL)
      g_ptr_array_add (roots, tiny_node_map_get (&self->singles, sink->sources[r]));
    else
      self->plan->spreads[r].devices = x->on->text;
    for (guint i = 0; x != NULL && i < x->on->n; i++)
      g_ptr_array_add (roots, get_root (self, sink->sources[r], x->pieces[i]));
  }
  return tiny_node_sink (self->graph, roots->len, (TinyNode *const *) roots->pdata, sink->text);
}

TinyNode *
schedule_take_apart (Plan *plan, TinyNode *sink, GError **error)
{
  const GPtrArray *order = schedule_list_under (plan, sink->sources, sink->n_sources);
  gboolean good = FALSE;
  for (guint i = 0; i < order->len && !good; i++)
    good = ((TinyNode *) order->pdata[i])->op == TINY_OP_UNSHARD;
  if (!good)
    return sink;
  GError *failure = NULL;
  g_autoptr (GHashTable) devices = g_hash_table_new (g_str_hash, g_str_equal);
  Apart self = { .plan = plan, .graph = plan->graph, .devices = devices, .error = &failure };
  for (guint i = 0; i < order->len && good; i++)
    good = add_node (&self, order->pdata[i]);
  TinyNode *out = good ? make_sink (&self, sink) : NULL;
  tiny_node_map_clear (&self.singles);
  tiny_node_map_clear (&self.multis);
  tiny_node_numbers_clear (
      &plan->devices); /* it is asked anew of every node, with all checks */
  if (!good)
    g_propagate_error (error, failure);
  return out;
}
