/* SPDX-License-Identifier: MIT
 *
 * tiny-history.c: a table from the number of a BUFFER to the expression that it was. */
#include "engine/tiny-history.h"

typedef struct {
  gint64 id;      /* of the BUFFER */
  TinyNode *node; /* NULL: stale */
  guint64 number;
  gboolean is_alive; /* while the dead are looked for */
} History;

static GHashTable *histories; /* id → History; NULL until there is one */
static guint64 n_kept;

gboolean
tiny_history_is_empty (void)
{
  return histories == NULL || g_hash_table_size (histories) == 0;
}

static const TinyNode *
find_buffer (const TinyNode *node)
{
  while (node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  return node;
}

static History *
find (const TinyNode *node)
{
  if (node->op != TINY_OP_BUFFER || tiny_history_is_empty ())
    return NULL;
  return g_hash_table_lookup (histories, &node->arg);
}

TinyNode *
tiny_history_get (const TinyNode *node, gboolean *out_is_stale)
{
  const History *found = find (node);
  if (out_is_stale != NULL)
    *out_is_stale = found != NULL && found->node == NULL;
  return found != NULL ? found->node : NULL;
}

void
tiny_history_keep (const TinyNode *node, TinyNode *expression)
{
  if (histories == NULL)
    histories = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  History *history = g_new (History, 1);
  *history = (History){ node->arg, expression, n_kept++, FALSE };
  g_hash_table_replace (histories, &history->id, history);
}

void
tiny_history_forget (const TinyNode *node)
{
  node = find_buffer (node);
  if (find (node) != NULL)
    g_hash_table_remove (histories, &node->arg);
}

guint64
tiny_history_count (void)
{
  return n_kept;
}

void
tiny_history_forget_since (guint64 count)
{
  GHashTableIter iter;
  gpointer value;
  if (tiny_history_is_empty ())
    return;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((History *) value)->number >= count)
      g_hash_table_iter_remove (&iter);
}

gboolean
tiny_history_flows (const TinyNode *node, guint i)
{
  if (node->op == TINY_OP_DETACH || !tiny_dtype_is_float (node->sources[i]->dtype))
    return FALSE;
  if (node->op == TINY_OP_GRADIENT)
    return i >= (guint) node->ints->v[1];
  return node->op != TINY_OP_ASSIGN || i == 1;
}

/* ---- the order ---- */
typedef struct {
  TinyNode *node;
  guint next;
} Frame;

static void
push (GArray *stack, TinyNode *node, guint32 seen)
{
  if (node == NULL || node->mark == seen)
    return;
  node->mark = seen;
  g_array_append_val (stack, ((Frame[]){ { node, 0 } })[0]);
}

GPtrArray *
tiny_history_toposort (TinyGraph *graph, TinyNode *const *roots, guint n)
{
  if (tiny_history_is_empty ())
    return tiny_graph_toposort (graph, roots, n);
  GPtrArray *order = g_ptr_array_new ();
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  guint32 seen = tiny_graph_begin_mark (graph);
  for (guint i = 0; i < n; i++) {
    push (stack, roots[i], seen);
    while (stack->len > 0) {
      Frame *top = &g_array_index (stack, Frame, stack->len - 1);
      TinyNode *node = top->node;
      guint next = top->next++;
      if (next < node->n_sources) {
        push (stack, node->sources[next], seen);
      } else if (next == node->n_sources) {
        push (stack, tiny_history_get (node, NULL), seen);
      } else {
        g_ptr_array_add (order, node);
        g_array_set_size (stack, stack->len - 1);
      }
    }
  }
  return order;
}

void
tiny_history_retain (GPtrArray *order)
{
  GHashTableIter iter;
  gpointer value;
  if (tiny_history_is_empty ())
    return;
  for (guint i = 0; i < order->len; i++) {
    History *found = find (order->pdata[i]);
    if (found != NULL)
      found->is_alive = TRUE;
  }
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    History *history = value;
    if (history->is_alive)
      history->is_alive = FALSE;
    else
      g_hash_table_iter_remove (&iter);
  }
}

void
tiny_history_replace (const TinyNodeMap *map)
{
  GHashTableIter iter;
  gpointer value;
  if (tiny_history_is_empty ())
    return;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    History *history = value;
    if (history->node != NULL)
      history->node = tiny_node_map_get (map, history->node);
  }
}

GPtrArray *
tiny_history_list (void)
{
  GPtrArray *all = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer value;
  if (histories == NULL)
    return all;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((History *) value)->node != NULL)
      g_ptr_array_add (all, ((History *) value)->node);
  return all;
}

/* ---- memory that changes ---- */
void
tiny_history_expire (TinyHistoryPredicate is_written, gconstpointer data)
{
  if (tiny_history_is_empty ())
    return;
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_autoptr (GPtrArray) all = tiny_history_list ();
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (graph, (TinyNode *const *) all->pdata, all->len);
  g_autofree guint8 *reads = g_new0 (guint8, tiny_graph_get_n_nodes (graph));
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_BUFFER)
      reads[node->id] = is_written (tiny_runtime_get_buffer (node), data);
    for (guint s = 0; s < node->n_sources; s++)
      reads[node->id] |= reads[node->sources[s]->id];
  }
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    History *history = value;
    if (history->node != NULL && reads[history->node->id])
      history->node = NULL;
  }
}
