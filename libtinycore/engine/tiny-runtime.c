/* SPDX-License-Identifier: MIT
 *
 * tiny-runtime.c: the process-wide tensor graph, its roots, its buffers and its sweep.
 *
 * Nodes are never freed one by one. When the graph has grown to several times what was alive after
 * the last sweep, or much memory may hang on dead nodes, everything the roots reach is copied to a
 * new graph and the old one is dropped whole; buffers whose nodes did not survive are released. */
#include "engine/tiny-runtime.h"

#include <string.h>

#include "base/tiny-trace.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "ir/tiny-shape.h"

enum {
  SWEEP_NODES = 4096,     /* never sweep a graph smaller than this … */
  SWEEP_GROWTH = 3,       /* … nor one that grew less than this since the last sweep */
  SWEEP_BYTES = 32 << 20, /* memory that may wait for a sweep */
};
#define FIRST_ATTACHED ((gint64) 1 << 8) /* smaller numbers are rules of our own */

typedef struct {
  gpointer data;
  GDestroyNotify destroy;
} Attached;

static struct {
  GRecMutex lock;
  guint depth; /* how often its owner has locked it */
  TinyGraph *graph;
  TinyRoot roots;      /* head of a ring */
  GHashTable *buffers; /* id of a BUFFER node → TinyBuffer */
  gint64 next_buffer;
  GHashTable *attached; /* id → Attached, that GRADIENT nodes name */
  GPtrArray *detached;  /* Attached, to be destroyed when the lock is free */
  gint64 next_attached;
  guint n_holds;
  guint live_nodes;    /* after the last sweep */
  gsize waiting_bytes; /* of buffers made since, and of roots dropped since */
  TinyCounters counters;
} runtime;

static void
set_up (void)
{
  static gsize done = 0;
  if (!g_once_init_enter (&done))
    return;
  tiny_trace_open ();
  g_rec_mutex_init (&runtime.lock);
  runtime.graph = tiny_graph_new ();
  runtime.roots.next = runtime.roots.previous = &runtime.roots;
  runtime.buffers = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free,
                                           (GDestroyNotify) tiny_buffer_unref);
  runtime.attached = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  runtime.detached = g_ptr_array_new ();
  runtime.next_attached = FIRST_ATTACHED;
  g_once_init_leave (&done, 1);
}

void
tiny_runtime_lock (void)
{
  set_up ();
  g_rec_mutex_lock (&runtime.lock);
  runtime.depth++;
}

static void
attached_free (Attached *self)
{
  if (self->destroy != NULL)
    self->destroy (self->data);
  g_free (self);
}

/* Here nobody holds a node outside a root: what a program builds and drops without realising
 * anything is swept now. */
void
tiny_runtime_unlock (void)
{
  g_autoptr (GPtrArray) detached = NULL;
  if (runtime.depth == 1) {
    tiny_runtime_sweep (FALSE);
    if (runtime.detached->len > 0) {
      detached = runtime.detached;
      runtime.detached = g_ptr_array_new ();
    }
  }
  runtime.depth--;
  g_rec_mutex_unlock (&runtime.lock);
  for (guint i = 0; detached != NULL && i < detached->len; i++)
    attached_free (detached->pdata[i]);
}

gint64
tiny_runtime_attach (gpointer data, GDestroyNotify destroy)
{
  tiny_runtime_lock ();
  gint64 id = runtime.next_attached++;
  Attached attached = { data, destroy };
  g_hash_table_insert (runtime.attached, g_memdup2 (&id, sizeof id),
                       g_memdup2 (&attached, sizeof attached));
  tiny_runtime_unlock ();
  return id;
}

gpointer
tiny_runtime_get_attached (gint64 id)
{
  tiny_runtime_lock ();
  const Attached *attached = g_hash_table_lookup (runtime.attached, &id);
  gpointer data = attached != NULL ? attached->data : NULL;
  tiny_runtime_unlock ();
  return data;
}

void
tiny_runtime_hold (void)
{
  runtime.n_holds++;
}

void
tiny_runtime_release (void)
{
  runtime.n_holds--;
}

TinyGraph *
tiny_runtime_get_graph (void)
{
  set_up ();
  return runtime.graph;
}

TinyRoot *
tiny_runtime_get_roots (void)
{
  return &runtime.roots;
}

TinyCounters *
tiny_runtime_counters (void)
{
  return &runtime.counters;
}

void
tiny_runtime_add_root (TinyRoot *root, TinyNode *node)
{
  tiny_runtime_lock ();
  root->node = node;
  root->wants_gradients = FALSE;
  root->next = runtime.roots.next;
  root->previous = &runtime.roots;
  root->next->previous = root;
  runtime.roots.next = root;
  tiny_runtime_unlock ();
}

gboolean
tiny_runtime_is_realized (const TinyNode *node)
{
  while (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT)
    node = node->sources[0];
  return node->op == TINY_OP_BUFFER;
}

static gsize
bytes_of_node (const TinyNode *node)
{
  return node->shape == NULL
             ? 0
             : tiny_shape_get_n_elements (node->shape) * tiny_dtype_get_n_bytes (node->dtype);
}

void
tiny_runtime_remove_root (TinyRoot *root)
{
  if (root->next == NULL)
    return;
  tiny_runtime_lock ();
  if (tiny_runtime_is_realized (root->node))
    runtime.waiting_bytes += bytes_of_node (root->node);
  root->next->previous = root->previous;
  root->previous->next = root->next;
  memset (root, 0, sizeof *root);
  tiny_runtime_unlock ();
}

TinyNode *
tiny_runtime_buffer_node (TinyBuffer *buffer, TinyDType dtype, const gint64 *dims, guint n)
{
  tiny_runtime_lock ();
  gint64 id = runtime.next_buffer++;
  g_hash_table_insert (runtime.buffers, g_memdup2 (&id, sizeof id), tiny_buffer_ref (buffer));
  TinyNode *node = tiny_node_new (runtime.graph, TINY_OP_BUFFER, dtype, 1, 0, NULL, id,
                                  tiny_graph_ints (runtime.graph, dims, n),
                                  tiny_buffer_get_device_name (buffer));
  tiny_runtime_unlock ();
  return node;
}

TinyBuffer *
tiny_runtime_get_buffer (TinyNode *node)
{
  tiny_runtime_lock ();
  while (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT)
    node = node->sources[0];
  g_assert (node->op == TINY_OP_BUFFER);
  TinyBuffer *buffer = g_hash_table_lookup (runtime.buffers, &node->arg);
  tiny_runtime_unlock ();
  return buffer;
}

TinyBoundVariable
tiny_runtime_get_variable (const TinyNode *node)
{
  g_assert (node->op == TINY_OP_VARIABLE && node->ints != NULL && node->ints->n == 2);
  return (TinyBoundVariable){ g_intern_string (node->text), node->ints->v[0], node->ints->v[1],
                              node->arg };
}

gboolean
tiny_bound_variable_is_same (const TinyBoundVariable *a, const TinyBoundVariable *b)
{
  return a->name == b->name && a->min == b->min && a->max == b->max;
}

/* Copies what the roots reach into a new graph; one memo serves all roots. */
static TinyGraph *
copy_live (void)
{
  TinyGraph *graph = tiny_graph_new ();
  g_autoptr (GPtrArray) live = g_ptr_array_new ();
  for (TinyRoot *root = runtime.roots.next; root != &runtime.roots; root = root->next)
    g_ptr_array_add (live, root->node);
  g_autoptr (GPtrArray) order
      = tiny_history_toposort (runtime.graph, (TinyNode *const *) live->pdata, live->len);
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&map, node->sources[s]));
    tiny_node_map_set (&map, node,
                       tiny_node_new (graph, node->op, node->dtype, node->lanes,
                                      node->n_sources, (TinyNode *const *) sources->pdata,
                                      node->arg, node->ints, node->text));
  }
  for (TinyRoot *root = runtime.roots.next; root != &runtime.roots; root = root->next)
    root->node = tiny_node_map_get (&map, root->node);
  tiny_history_retain (order);
  tiny_history_replace (&map);
  return graph;
}

/* Releases buffers and what is attached that no node of the new graph names. */
static void
release_dead (TinyGraph *graph)
{
  g_autoptr (GHashTable) alive = g_hash_table_new (g_int64_hash, g_int64_equal);
  g_autoptr (GHashTable) attached = g_hash_table_new (g_int64_hash, g_int64_equal);
  g_autoptr (GPtrArray) live = g_ptr_array_new ();
  for (TinyRoot *root = runtime.roots.next; root != &runtime.roots; root = root->next)
    g_ptr_array_add (live, root->node);
  g_autoptr (GPtrArray) order
      = tiny_history_toposort (graph, (TinyNode *const *) live->pdata, live->len);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_BUFFER)
      g_hash_table_add (alive, &node->arg);
    if (node->op == TINY_OP_GRADIENT)
      g_hash_table_add (attached, &node->arg);
  }
  GHashTableIter iter;
  gpointer id, data;
  g_hash_table_iter_init (&iter, runtime.buffers);
  while (g_hash_table_iter_next (&iter, &id, NULL))
    if (!g_hash_table_contains (alive, id))
      g_hash_table_iter_remove (&iter);
  g_hash_table_iter_init (&iter, runtime.attached);
  while (g_hash_table_iter_next (&iter, &id, &data))
    if (!g_hash_table_contains (attached, id)) {
      g_ptr_array_add (runtime.detached, data);
      g_hash_table_iter_remove (&iter);
    }
}

void
tiny_runtime_sweep (gboolean force)
{
  set_up ();
  g_rec_mutex_lock (&runtime.lock);
  guint n_nodes = tiny_graph_get_n_nodes (runtime.graph);
  gboolean grown = n_nodes > SWEEP_NODES && n_nodes > runtime.live_nodes * SWEEP_GROWTH;
  if (runtime.n_holds == 0 && (force || grown || runtime.waiting_bytes > SWEEP_BYTES)) {
    TinyGraph *graph = copy_live ();
    release_dead (graph);
    tiny_graph_free (runtime.graph);
    runtime.graph = graph;
    runtime.live_nodes = tiny_graph_get_n_nodes (graph);
    runtime.waiting_bytes = 0;
    runtime.counters.n_sweeps++;
  }
  g_rec_mutex_unlock (&runtime.lock);
}

void
tiny_runtime_get_counters (TinyCounters *out)
{
  tiny_runtime_lock ();
  *out = runtime.counters;
  tiny_runtime_unlock ();
}

void
tiny_runtime_reset_counters (void)
{
  tiny_runtime_lock ();
  memset (&runtime.counters, 0, sizeof runtime.counters);
  tiny_runtime_unlock ();
}
