/* SPDX-License-Identifier: MIT
 *
 * tiny-runtime.c: the process-wide tensor graph, its roots, its buffers and its sweep.
 *
 * Nodes are never freed one by one. When the graph has grown to several times what is alive, and was after
 * the last sweep, or much memory may hang on dead nodes, everything the roots reach is copied to a
 * new graph and the old one is dropped whole; buffers whose nodes did not survive are released. */
#include "engine/tiny-runtime.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/interrupt-check.h"
#include "base/tiny-error.h"
#include "base/tiny-trace.h"
#include "engine/node-users.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-recorders.h"

enum {
  /* A graph smaller than this is never swept … */
  SWEEP_NODES = 4096,
  /* … nor one that has not this many nodes for each that is alive, or was after the last sweep. */
  SWEEP_GROWTH = 3,
  /* Memory that may wait for a sweep while something is recorded; else it goes at once. */
  SWEEP_BYTES = 4 << 20,
  FORK_WAIT_MS = 10000, /* for who computes while another thread forks */
  WAIT_NS = 50000000,   /* for the lock, before it is asked again whether to stop */
};
#define FIRST_ATTACHED ((gint64) 1 << 8) /* smaller numbers are rules of our own */

typedef struct {
  gpointer data;
  GDestroyNotify destroy;
} Attached;

/* How often this thread has locked it: who owns it counts, and touches the mutex only from outside. */
static __thread guint depth __attribute__ ((tls_model ("initial-exec")));
/* Whether this thread, which forks, could lock it for that. Several threads may fork at a time. */
static __thread gboolean is_forking __attribute__ ((tls_model ("initial-exec")));

typedef struct {
  gpointer data;
  GDestroyNotify let_go, destroy;
} Deferred;

static struct {
  GMutex lock;  /* never held while anything is called */
  GSList *list; /* Deferred, until the runtime's lock is free */
} deferred;

static struct {
  pthread_mutex_t lock; /* no GMutex: there is an end to waiting for it */
  gboolean is_torn;     /* see tiny_runtime_check() */
  TinyGraph *graph;
  TinyRoot roots;      /* head of a ring */
  guint64 n_roots;     /* that there ever were */
  guint64 n_waiting;   /* see tiny_runtime_count_waiting() */
  GHashTable *buffers; /* id of a BUFFER node, a number → TinyBuffer */
  gint64 next_buffer;
  GHashTable *attached; /* id → Attached, that GRADIENT nodes name */
  GPtrArray *detached;  /* Attached, to be destroyed when the lock is free */
  gint64 next_attached;
  guint n_holds;
  guint live_nodes;    /* after the last sweep */
  gsize waiting_bytes; /* of roots dropped since while a recording keeps buffers */
  TinyCounters counters;
} runtime = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- forks ---- */

static gboolean
try_lock (void)
{
  if (depth == 0 && pthread_mutex_trylock (&runtime.lock) != 0)
    return FALSE;
  depth++;
  return TRUE;
}

/* A child has the graph as it is now: no other thread may be changing it. Whoever holds the lock may wait for what
 * the forking thread has, so there is an end to waiting. */
static void
before_fork (void)
{
  is_forking = FALSE;
  tiny_interrupt_pause ();
  for (guint ms = 0; ms < FORK_WAIT_MS && !is_forking; ms++) {
    is_forking = try_lock ();
    if (!is_forking)
      g_usleep (1000);
  }
}

static void
after_fork_in_parent (void)
{
  tiny_interrupt_resume ();
  if (is_forking && --depth == 0)
    pthread_mutex_unlock (&runtime.lock);
}

/* The locks are as they were, but nobody else is there to unlock them. */
static void
after_fork_in_child (void)
{
  pthread_mutex_init (&runtime.lock, NULL);
  g_mutex_init (&deferred.lock);
  tiny_interrupt_resume ();
  runtime.is_torn = runtime.is_torn || !is_forking;
  if (is_forking && --depth > 0)
    pthread_mutex_lock (&runtime.lock);
}

gboolean
tiny_runtime_check (GError **error)
{
  if (runtime.is_torn)
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "this process was forked while another thread was computing: fork "
                         "before that, or start "
                         "processes anew (multiprocessing's \"spawn\")");
  return !runtime.is_torn;
}

static GHashTable *
new_buffers (void)
{
  return g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) tiny_buffer_unref);
}

static gpointer
key_of (const TinyNode *buffer)
{
  return GSIZE_TO_POINTER ((gsize) buffer->arg);
}

static void
set_up (void)
{
  static gsize done = 0;
  if (!g_once_init_enter (&done))
    return;
  tiny_trace_open ();
  runtime.graph = tiny_graph_new ();
  runtime.roots.next = runtime.roots.previous = &runtime.roots;
  runtime.buffers = new_buffers ();
  runtime.attached = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  runtime.detached = g_ptr_array_new ();
  runtime.next_attached = FIRST_ATTACHED;
  pthread_atfork (before_fork, after_fork_in_parent, after_fork_in_child);
  g_once_init_leave (&done, 1);
}

void
tiny_runtime_lock (void)
{
  if (depth++ > 0)
    return;
  set_up ();
  pthread_mutex_lock (&runtime.lock);
}

/* The time of day may be set back for hours; ThreadSanitizer knows no lock that waits by another clock. */
#ifdef __SANITIZE_THREAD__
#define WAIT_CLOCK               CLOCK_REALTIME
#define lock_until(mutex, until) pthread_mutex_timedlock (mutex, until)
#else
#define WAIT_CLOCK               CLOCK_MONOTONIC
#define lock_until(mutex, until) pthread_mutex_clocklock (mutex, WAIT_CLOCK, until)
#endif

/* Asks now and then whether to stop; who has the lock may compute for long. */
static gboolean
wait_for_lock (GError **error)
{
  struct timespec until;
  do {
    if (!tiny_interrupt_check (error))
      return FALSE;
    clock_gettime (WAIT_CLOCK, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
  } while (lock_until (&runtime.lock, &until) != 0);
  depth = 1;
  return TRUE;
}

gboolean
tiny_runtime_lock_or_stop (GError **error)
{
  if (depth == 0)
    set_up ();
  return try_lock () || wait_for_lock (error);
}

gboolean
tiny_runtime_try_lock (void)
{
  set_up ();
  return try_lock ();
}

static void
attached_free (Attached *self)
{
  if (self->destroy != NULL)
    self->destroy (self->data);
  g_free (self);
}

/* Under the lock. */
static void
let_go_of_deferred (void)
{
  g_mutex_lock (&deferred.lock);
  GSList *list = deferred.list;
  g_atomic_pointer_set (&deferred.list, NULL);
  g_mutex_unlock (&deferred.lock);
  for (GSList *at = list; at != NULL; at = at->next) {
    const Deferred *one = at->data;
    Attached attached = { one->data, one->destroy };
    one->let_go (one->data);
    g_ptr_array_add (runtime.detached, g_memdup2 (&attached, sizeof attached));
  }
  g_slist_free_full (list, g_free);
}

static gboolean
is_any_deferred (void)
{
  return G_UNLIKELY (g_atomic_pointer_get (&deferred.list) != NULL);
}

/* What was deferred after who had the lock looked for the last time. */
static void
take_over_deferred (void)
{
  if (is_any_deferred () && tiny_runtime_try_lock ())
    tiny_runtime_unlock ();
}

void
tiny_runtime_defer (gpointer data, GDestroyNotify let_go, GDestroyNotify destroy)
{
  Deferred one = { data, let_go, destroy };
  g_mutex_lock (&deferred.lock);
  g_atomic_pointer_set (&deferred.list,
                        g_slist_prepend (deferred.list, g_memdup2 (&one, sizeof one)));
  g_mutex_unlock (&deferred.lock);
  take_over_deferred ();
}

/* Here nobody holds a node outside a root. Buffers go with the last that had them, and with them what they were made
 * of; in a recording, which knows buffers by their addresses, when the graph is swept. */
static void
release_lost (void)
{
  GPtrArray *lost = node_users_get_lost ();
  while (lost->len > 0) {
    TinyNode *node = g_ptr_array_steal_index_fast (lost, lost->len - 1);
    if (node->n_users > 0)
      continue;
    if (tiny_recorders_is_any ())
      continue;
    TinyBuffer *buffer = g_hash_table_lookup (runtime.buffers, key_of (node));
    if (buffer != NULL)
      tiny_history_release (node, buffer);
    g_hash_table_remove (runtime.buffers, key_of (node));
  }
}

static gboolean
is_sweep_due (void)
{
  guint n_nodes = tiny_graph_get_n_nodes (runtime.graph);
  guint n_live = MAX (runtime.live_nodes, node_users_count_alive ());
  gboolean grown = n_nodes > SWEEP_NODES && n_nodes > n_live * SWEEP_GROWTH;
  return runtime.n_holds == 0 && (grown || runtime.waiting_bytes > SWEEP_BYTES);
}

/* Here nobody holds a node outside a root: what a program builds and drops without realising
 * anything is swept now. */
void
tiny_runtime_unlock (void)
{
  g_autoptr (GPtrArray) detached = NULL;
  g_assert (depth > 0);
  if (depth > 1) {
    depth--;
    return;
  }
  if (is_any_deferred ())
    let_go_of_deferred ();
  if (runtime.n_holds == 0)
    release_lost ();
  if (is_sweep_due ())
    tiny_runtime_sweep (FALSE);
  if (runtime.detached->len > 0) {
    detached = runtime.detached;
    runtime.detached = g_ptr_array_new ();
  }
  depth = 0;
  pthread_mutex_unlock (&runtime.lock);
  take_over_deferred ();
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
  g_assert (depth > 0);
  runtime.n_holds++;
}

void
tiny_runtime_release (void)
{
  g_assert (depth > 0 && runtime.n_holds > 0);
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

/* Whether @node, which is realised, is memory that a recording uses. */
static gboolean
is_of_recording (TinyNode *node)
{
  TinyNode *first = tiny_runtime_get_piece (tiny_runtime_get_memory (node), 0);
  TinyBuffer *buffer = g_hash_table_lookup (runtime.buffers, key_of (first));
  return buffer != NULL && tiny_buffer_is_recorded (buffer);
}

void
tiny_runtime_add_root (TinyRoot *root, TinyNode *node)
{
  tiny_runtime_lock ();
  root->node = node;
  node_users_add (node);
  root->next_active = root->previous_active = NULL;
  root->next_wanting = root->previous_wanting = NULL;
  root->wants_gradients = root->is_recorded = FALSE;
  root->number = runtime.n_roots++;
  root->recording = tiny_recorders_get_own ();
  root->next = runtime.roots.next;
  root->previous = &runtime.roots;
  root->next->previous = root;
  runtime.roots.next = root;
  active_roots_update (root);
  runtime.n_waiting += root->next_active != NULL || is_of_recording (node);
  tiny_runtime_unlock ();
}

guint64
tiny_runtime_count_roots (void)
{
  return runtime.n_roots;
}

guint64
tiny_runtime_count_waiting (void)
{
  return runtime.n_waiting;
}

gint64
tiny_runtime_count_buffers (void)
{
  return runtime.next_buffer;
}

GHashTable *
tiny_runtime_list_buffers (gint64 number)
{
  GHashTable *buffers = g_hash_table_new (NULL, NULL);
  GHashTableIter iter;
  gpointer id, buffer;
  g_hash_table_iter_init (&iter, runtime.buffers);
  while (g_hash_table_iter_next (&iter, &id, &buffer))
    if ((gint64) GPOINTER_TO_SIZE (id) < number)
      g_hash_table_add (buffers, buffer);
  return buffers;
}

void
tiny_runtime_remove_root (TinyRoot *root)
{
  if (root->next == NULL)
    return;
  if (runtime.is_torn) {
    memset (root, 0, sizeof *root);
    return;
  }
  tiny_runtime_lock ();
  if (tiny_recorders_is_any () && tiny_runtime_is_realized (root->node))
    runtime.waiting_bytes += tiny_runtime_count_bytes (root->node);
  node_users_drop (root->node);
  root->next->previous = root->previous;
  root->previous->next = root->next;
  active_roots_leave (root);
  memset (root, 0, sizeof *root);
  tiny_runtime_unlock ();
}

TinyNode *
tiny_runtime_buffer_node (TinyBuffer *buffer, TinyDType dtype, const gint64 *dims, guint n)
{
  tiny_runtime_lock ();
  TinyNode *node = tiny_node_new (
      runtime.graph, TINY_OP_BUFFER, dtype, 1, 0, NULL, runtime.next_buffer++,
      tiny_graph_ints (runtime.graph, dims, n), tiny_buffer_get_device_name (buffer));
  g_hash_table_insert (runtime.buffers, key_of (node), tiny_buffer_ref (buffer));
  tiny_runtime_unlock ();
  return node;
}

TinyBuffer *
tiny_runtime_get_buffer (TinyNode *node)
{
  tiny_runtime_lock ();
  node = tiny_runtime_get_memory (node);
  g_assert (node->op == TINY_OP_BUFFER);
  TinyBuffer *buffer = g_hash_table_lookup (runtime.buffers, key_of (node));
  tiny_runtime_unlock ();
  return buffer;
}

/* ---- the sweep ---- */

/* All that the roots reach; each node's place is its index. */
static GPtrArray *
list_live (void)
{
  g_autoptr (GPtrArray) live = g_ptr_array_new ();
  for (TinyRoot *root = runtime.roots.next; root != &runtime.roots; root = root->next)
    g_ptr_array_add (live, root->node);
  return tiny_history_toposort (runtime.graph, (TinyNode *const *) live->pdata, live->len);
}

/* By place in the order: what the nodes have become. */
static TinyNode **copies;

/* A TinyHistoryChange. */
static TinyNode *
get_copy (TinyNode *node, gboolean is_apart)
{
  return copies[node->place];
}

/* Copies @live into a new graph; one memo serves all roots. */
static TinyGraph *
copy_live (GPtrArray *live)
{
  TinyGraph *graph = tiny_graph_new ();
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  copies = g_new (TinyNode *, live->len);
  for (guint i = 0; i < live->len; i++) {
    TinyNode *node = live->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, copies[node->sources[s]->place]);
    copies[i]
        = tiny_node_new (graph, node->op, node->dtype, node->lanes, node->n_sources,
                         (TinyNode *const *) sources->pdata, node->arg, node->ints, node->text);
    copies[i]->n_computed = MAX (copies[i]->n_computed, node->n_computed);
    copies[i]->n_repeats = MAX (copies[i]->n_repeats, node->n_repeats);
  }
  for (TinyRoot *root = runtime.roots.next; root != &runtime.roots; root = root->next) {
    root->node = copies[root->node->place];
    node_users_add (root->node);
  }
  tiny_history_retain (live);
  tiny_history_replace (get_copy, 0);
  g_clear_pointer (&copies, g_free);
  return graph;
}

/* Releases buffers and what is attached that no node of @live names. */
static void
release_dead (const GPtrArray *live)
{
  g_autoptr (GHashTable) buffers = new_buffers ();
  g_autoptr (GHashTable) attached = g_hash_table_new (g_int64_hash, g_int64_equal);
  GHashTableIter iter;
  gpointer id, data;
  for (guint i = 0; i < live->len; i++) {
    TinyNode *node = live->pdata[i];
    if (node->op == TINY_OP_BUFFER
        && g_hash_table_steal_extended (runtime.buffers, key_of (node), &id, &data))
      g_hash_table_insert (buffers, id, data);
    if (node->op == TINY_OP_GRADIENT)
      g_hash_table_add (attached, &node->arg);
  }
  GHashTable *dead = runtime.buffers;
  runtime.buffers = g_steal_pointer (&buffers);
  buffers = dead;
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
  tiny_runtime_lock ();
  if (is_sweep_due () || (force && runtime.n_holds == 0)) {
    g_autoptr (GPtrArray) live = list_live ();
    TinyGraph *graph = copy_live (live);
    release_dead (live);
    g_ptr_array_set_size (node_users_get_lost (), 0); /* they are dead, and gone */
    tiny_graph_free (runtime.graph);
    runtime.graph = graph;
    runtime.live_nodes = tiny_graph_get_n_nodes (graph);
    node_users_set_alive (runtime.live_nodes);
    runtime.waiting_bytes = 0;
    runtime.counters.n_sweeps++;
  }
  tiny_runtime_unlock ();
}

void
tiny_runtime_count_run (gint64 ns, guint n_kernels, guint64 n_flops, guint64 n_bytes)
{
  tiny_runtime_lock ();
  runtime.counters.ns_run += (guint64) ns;
  runtime.counters.n_kernels += n_kernels;
  runtime.counters.n_flops += n_flops;
  runtime.counters.n_bytes += n_bytes;
  tiny_runtime_unlock ();
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
