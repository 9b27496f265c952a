/* SPDX-License-Identifier: MIT
 *
 * tiny-history.c: a table from the number of a BUFFER to the expression that it was.
 *
 * A step looks at what it made itself: the dead are dropped when there may be as many as there are others, expressions older
 * than what changes are left alone, and which of them read a buffer is found once for each. */
#include "engine/tiny-history.h"

#include "base/tiny-stats.h"
#include "engine/node-users.h"
#include "engine/tiny-recorders.h"

enum { FEW = 16 };

typedef struct {
  gint64 id;         /* of the memory */
  TinyNode *node;    /* NULL: stale, or an end */
  guint64 recording; /* in which it began, or 0 */
  guint64 version;   /* of the expression */
  guint64 left;      /* of an end: by whom, or 0 */
  gboolean is_end;
  gboolean is_alive; /* while the dead are looked for */
} History;

/* A history whose expression read a buffer, if it is that one still. */
typedef struct {
  gint64 id;
  guint64 version;
} Reader;

static GHashTable *histories; /* id → History; NULL until there is one */
static guint64 n_versions;
static guint n_alive;       /* when the dead were dropped last */
static guint32 newest;      /* no expression has a higher id */
static GHashTable *readers; /* TinyBuffer → GArray of Reader; NULL: to be made of all */
static GArray *new_readers; /* Reader: not in there yet */

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

/* The number of a BUFFER; of several under an UNSHARD one below 0 that follows from the first. */
static gboolean
find_id (const TinyNode *node, gint64 *out_id)
{
  const gboolean is_multi
      = node->op == TINY_OP_UNSHARD && node->sources[0]->op == TINY_OP_BUFFER;
  *out_id = is_multi ? -1 - node->sources[0]->arg : node->arg;
  return is_multi || node->op == TINY_OP_BUFFER;
}

static History *
find (const TinyNode *node)
{
  gint64 id;
  if (tiny_history_is_empty () || !find_id (node, &id))
    return NULL;
  return g_hash_table_lookup (histories, &id);
}

TinyNode *
tiny_history_get (const TinyNode *node, gboolean *out_is_stale)
{
  const History *found = find (node);
  if (out_is_stale != NULL)
    *out_is_stale = found != NULL && found->node == NULL && !found->is_end;
  return found != NULL ? found->node : NULL;
}

gboolean
tiny_history_has (const TinyNode *node)
{
  return find (node) != NULL;
}

static void
set_node (History *self, TinyNode *node)
{
  if (node != NULL)
    node_users_add (node);
  if (self->node != NULL)
    node_users_drop (self->node);
  self->node = node;
}

static void
history_free (gpointer data)
{
  set_node (data, NULL);
  g_free (data);
}

static void
change (History *self, TinyNode *expression)
{
  set_node (self, expression);
  self->version = n_versions++;
  if (expression == NULL)
    return;
  newest = MAX (newest, expression->id);
  if (readers != NULL)
    g_array_append_val (new_readers, ((Reader[]){ { self->id, self->version } })[0]);
}

static History *
add (const TinyNode *node)
{
  if (histories == NULL)
    histories = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, history_free);
  History *history = g_new (History, 1);
  *history = (History){ .recording = tiny_recorders_get_own () };
  find_id (node, &history->id);
  g_hash_table_replace (histories, &history->id, history);
  return history;
}

void
tiny_history_keep (const TinyNode *node, TinyNode *expression)
{
  change (add (node), expression);
}

/* The memory that @node is, or will be once an assignment was made. */
static const TinyNode *
find_memory (const TinyNode *node)
{
  node = find_buffer (node);
  return node->op == TINY_OP_ASSIGN ? node->sources[0] : node;
}

void
tiny_history_leave (const TinyNode *node, guint64 left)
{
  gint64 id;
  if (!find_id (find_memory (node), &id))
    return;
  History *history = add (find_memory (node));
  history->is_end = TRUE;
  history->left = left;
}

void
tiny_history_end (const TinyNode *node)
{
  tiny_history_leave (node, 0);
}

static const History *
find_end (const TinyNode *node)
{
  const History *found = tiny_history_is_empty () || node->op == TINY_OP_RESHAPE
                             ? NULL
                             : find (find_memory (node));
  return found != NULL && found->is_end ? found : NULL;
}

guint64
tiny_history_get_left (const TinyNode *node)
{
  const History *found = find_end (node);
  return found != NULL ? found->left : 0;
}

gboolean
tiny_history_is_end (const TinyNode *node)
{
  return node->op == TINY_OP_DETACH ? node->arg != 0 : find_end (node) != NULL;
}

void
tiny_history_forget (const TinyNode *node)
{
  const History *found = find (find_buffer (node));
  if (found != NULL)
    g_hash_table_remove (histories, &found->id);
}

void
tiny_history_forget_of (guint64 recording)
{
  GHashTableIter iter;
  gpointer value;
  if (tiny_history_is_empty ())
    return;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((History *) value)->recording == recording)
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
        node->place = order->len;
        g_ptr_array_add (order, node);
        g_array_set_size (stack, stack->len - 1);
      }
    }
  }
  TINY_COUNT (n_listed, order->len);
  return order;
}

gboolean
tiny_history_has_grown (void)
{
  return !tiny_history_is_empty ()
         && g_hash_table_size (histories) > n_alive + n_alive / 2 + FEW;
}

void
tiny_history_retain (GPtrArray *order)
{
  GHashTableIter iter;
  gpointer value;
  g_clear_pointer (&readers, g_hash_table_unref); /* what the dead read goes */
  n_alive = 0;
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
  n_alive = g_hash_table_size (histories);
}

void
tiny_history_replace (TinyHistoryChange find_new, guint32 first)
{
  GHashTableIter iter;
  gpointer value;
  guint32 highest = 0;
  if (tiny_history_is_empty () || newest < first)
    return;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    History *history = value;
    TinyNode *node = history->node;
    const guint64 owner = tiny_recorders_get_running (history->recording);
    const gboolean is_apart = owner != 0 && owner != tiny_recorders_get_own ();
    TinyNode *now = node != NULL && node->id >= first ? find_new (node, is_apart) : node;
    if (now != node)
      change (history, now);
    if (history->node != NULL)
      highest = MAX (highest, history->node->id);
  }
  newest = highest;
}

void
tiny_history_list (guint32 first, GPtrArray *out)
{
  GHashTableIter iter;
  gpointer value;
  if (histories == NULL || newest < first)
    return;
  g_hash_table_iter_init (&iter, histories);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    TinyNode *node = ((History *) value)->node;
    if (node != NULL && node->id >= first)
      g_ptr_array_add (out, node);
  }
}

/* ---- memory that changes ---- */
static void
note_reader (TinyBuffer *buffer, Reader reader)
{
  GArray *all = g_hash_table_lookup (readers, buffer);
  if (all == NULL) {
    all = g_array_new (FALSE, FALSE, sizeof (Reader));
    g_hash_table_insert (readers, buffer, all);
  }
  g_array_append_val (all, reader);
}

/* What an assignment gives is what is there afterwards: what that was made of does not count. */
static void
add_reader (const History *history)
{
  g_autoptr (GPtrArray) left = g_ptr_array_new ();
  guint32 seen = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  g_ptr_array_add (left, history->node);
  while (left->len > 0) {
    TinyNode *node = g_ptr_array_steal_index_fast (left, left->len - 1);
    if (node->mark == seen)
      continue;
    node->mark = seen;
    if (node->op == TINY_OP_BUFFER)
      note_reader (tiny_runtime_get_buffer (node), (Reader){ history->id, history->version });
    for (guint i = 0; node->op != TINY_OP_ASSIGN && i < node->n_sources; i++)
      g_ptr_array_add (left, node->sources[i]);
  }
}

static void
find_readers (void)
{
  GHashTableIter iter;
  gpointer value;
  if (readers == NULL) {
    readers = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_array_unref);
    g_clear_pointer (&new_readers, g_array_unref);
    new_readers = g_array_new (FALSE, FALSE, sizeof (Reader));
    g_hash_table_iter_init (&iter, histories);
    while (g_hash_table_iter_next (&iter, NULL, &value))
      if (((History *) value)->node != NULL)
        add_reader (value);
  }
  for (guint i = 0; i < new_readers->len; i++) {
    const Reader *reader = &g_array_index (new_readers, Reader, i);
    const History *history = g_hash_table_lookup (histories, &reader->id);
    if (history != NULL && history->version == reader->version && history->node != NULL)
      add_reader (history);
  }
  g_array_set_size (new_readers, 0);
}

static void
expire_all (const GArray *all)
{
  for (guint i = 0; i < all->len; i++) {
    const Reader *reader = &g_array_index (all, Reader, i);
    History *history = g_hash_table_lookup (histories, &reader->id);
    if (history != NULL && history->version == reader->version)
      set_node (history, NULL);
  }
}

void
tiny_history_expire_of (TinyBuffer *buffer)
{
  if (tiny_history_is_empty ())
    return;
  find_readers ();
  const GArray *all = g_hash_table_lookup (readers, buffer);
  if (all == NULL)
    return;
  expire_all (all);
  g_hash_table_remove (readers, buffer);
}

void
tiny_history_expire (TinyHistoryPredicate is_written, gconstpointer data)
{
  GHashTableIter iter;
  gpointer buffer, all;
  if (tiny_history_is_empty ())
    return;
  find_readers ();
  g_hash_table_iter_init (&iter, readers);
  while (g_hash_table_iter_next (&iter, &buffer, &all))
    if (is_written (buffer, data)) {
      expire_all (all);
      g_hash_table_iter_remove (&iter);
    }
}

void
tiny_history_release (const TinyNode *node, TinyBuffer *buffer)
{
  tiny_history_forget (node);
  if (readers == NULL || !g_hash_table_contains (readers, buffer))
    return;
  /* Who else has it keeps it for a while that nobody tells us the end of. */
  if (g_atomic_int_get (&G_OBJECT (buffer)->ref_count) > 1)
    g_clear_pointer (&readers, g_hash_table_unref);
  else
    g_hash_table_remove (readers, buffer);
}
