/* SPDX-License-Identifier: MIT
 *
 * tiny-realize.c: makes the values of roots exist.
 *
 * The graph under the roots is digested with its buffers numbered in the order they are met, so a
 * structure seen before finds its plan at once, whatever memory it is about. Otherwise it is copied
 * into a graph of its own, scheduled and compiled. What was realised then replaces the expression
 * in every root that shares it. */
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "engine/runtime-private.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-history.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"

enum { MAX_PLANS = 512 }; /* plans kept; the oldest use goes first */

typedef struct {
  guint64 word[2];
} Digest;

typedef struct {
  Digest digest;
  TinyPlan *plan;
  guint64 last_use;
} CachedPlan;

static GHashTable *plans; /* Digest → CachedPlan, under the runtime's lock */
static guint64 use_count;

static guint
digest_hash (gconstpointer key)
{
  return (guint) ((const Digest *) key)->word[0];
}

static gboolean
digest_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (Digest)) == 0;
}

static void
cached_plan_free (gpointer data)
{
  CachedPlan *cached = data;
  tiny_plan_free (cached->plan);
  g_free (cached);
}

/* ---- what is asked for ---- */
typedef struct {
  GPtrArray *nodes;   /* distinct nodes to realise, in order */
  GPtrArray *order;   /* all nodes under them, sources first */
  GPtrArray *buffers; /* BUFFER nodes among those, by slot */
  GArray *variables;  /* TinyBoundVariable: of VARIABLE nodes, by number */
  gboolean
      *constants; /* of a recording, by slot: stays as it is from replay to replay; or NULL */
  Digest digest;
} Request;

static void
request_clear (Request *self)
{
  g_clear_pointer (&self->nodes, g_ptr_array_unref);
  g_clear_pointer (&self->order, g_ptr_array_unref);
  g_clear_pointer (&self->buffers, g_ptr_array_unref);
  g_clear_pointer (&self->variables, g_array_unref);
  g_clear_pointer (&self->constants, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Request, request_clear)

static inline void
absorb (Digest *digest, guint64 value)
{
  const guint64 k0 = G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  const guint64 k1 = G_GUINT64_CONSTANT (0xD6E8FEB86659FD93);
  digest->word[0] = (digest->word[0] ^ value) * k0;
  digest->word[0] ^= digest->word[0] >> 29;
  digest->word[1] = (digest->word[1] + value) * k1;
  digest->word[1] ^= digest->word[1] >> 31;
}

/* Whether @node stands for a value that is not there: an argument of a function that is being
 * transformed (autograd/). */
static gboolean
is_placeholder (const TinyNode *node)
{
  return node->op == TINY_OP_PARAM;
}

static gboolean
check_placeholders (const Request *self, GError **error)
{
  for (guint i = 0; i < self->order->len; i++)
    if (is_placeholder (self->order->pdata[i])) {
      g_set_error_literal (
          error, TINY_ERROR, TINY_ERROR_INVALID,
          "realize: the value depends on an argument of a function that vmap, jvp or the like "
          "was given: it stands for others, and has a shape and a dtype, but no value");
      return FALSE;
    }
  return TRUE;
}

/* Lists what lies under the nodes, numbers buffers and variables, digests the structure. */
static void
survey (Request *self)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  self->order
      = tiny_graph_toposort (graph, (TinyNode *const *) self->nodes->pdata, self->nodes->len);
  self->buffers = g_ptr_array_new ();
  self->variables = g_array_new (FALSE, FALSE, sizeof (TinyBoundVariable));
  self->digest = (Digest){ { self->nodes->len, self->order->len } };
  g_autofree guint *position = g_new (guint, tiny_graph_get_n_nodes (graph));
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    guint64 arg = (guint64) node->arg;
    const char *text = node->text;
    position[node->id] = i;
    if (node->op == TINY_OP_BUFFER) {
      arg = self->buffers->len;
      g_ptr_array_add (self->buffers, node);
    } else if (node->op == TINY_OP_VARIABLE) {
      arg = self->variables->len;
      text = NULL; /* the same program, whatever the name and the value */
      g_array_append_val (self->variables,
                          ((TinyBoundVariable[]){ tiny_runtime_get_variable (node) })[0]);
    }
    if (node->op == TINY_OP_GRADIENT) /* says nothing of the value */
      arg = 0;
    absorb (&self->digest,
            node->op | (guint64) node->dtype << 16 | (guint64) node->lanes << 32);
    absorb (&self->digest, node->n_sources);
    absorb (&self->digest, node->ints ? node->ints->n + 1 : 0);
    absorb (&self->digest, text ? strlen (text) + 1 : 0);
    absorb (&self->digest, arg);
    for (guint k = 0; node->ints != NULL && k < node->ints->n; k++)
      absorb (&self->digest, (guint64) node->ints->v[k] + 1);
    for (const char *c = text; c != NULL && *c != 0; c++)
      absorb (&self->digest, (guint8) *c);
    for (guint s = 0; s < node->n_sources; s++)
      absorb (&self->digest, position[node->sources[s]->id]);
  }
  for (guint i = 0; i < self->nodes->len; i++)
    absorb (&self->digest, position[((TinyNode *) self->nodes->pdata[i])->id]);
}

/* What is recorded now will be replayed with other inputs, and with the same of all else. */
static void
find_constants (Request *self)
{
  TinyLaunches *recorder = *tiny_launches_get_recorder ();
  if (recorder == NULL)
    return;
  self->constants = g_new0 (gboolean, self->buffers->len + 1);
  for (guint i = 0; i < self->buffers->len; i++)
    self->constants[i]
        = !tiny_launches_changes (recorder, tiny_runtime_get_buffer (self->buffers->pdata[i]));
  for (guint i = 0; i < self->order->len; i++) {
    const TinyNode *node = self->order->pdata[i];
    guint slot;
    if (node->op == TINY_OP_ASSIGN && g_ptr_array_find (self->buffers, node->sources[0], &slot))
      self->constants[slot] = FALSE;
  }
  absorb (&self->digest, self->buffers->len + 1);
  for (guint i = 0; i < self->buffers->len; i++)
    absorb (&self->digest, (guint64) self->constants[i]);
}

/* What @root has become in @graph, of which nothing needs to be stored beyond sizes that are variables. */
static TinyNode *
leave_open (TinyGraph *graph, const TinyNode *root, const TinyNodeMap *map)
{
  TinyNode *x = tiny_node_map_get (map, root);
  for (guint i = 0; root->limits != NULL && i < root->shape->n; i++) {
    TinyNode *limit = tiny_limit_get (root, i);
    TinyNode *size = limit != NULL ? tiny_node_map_get (map, limit) : NULL;
    if (size == NULL) /* one that the limit was calculated to */
      continue;
    gint64 dims[TINY_LIMIT_MAX_RANK];
    for (guint k = 0; k < root->shape->n; k++)
      dims[k] = k == i ? root->shape->v[i] : 1;
    TinyNode *at = tiny_node_new (graph, TINY_OP_IOTA, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                  tiny_graph_ints (graph, &root->shape->v[i], 1), NULL);
    TinyNode *is_there = tiny_node_binary (graph, TINY_OP_CMPLT, at, size);
    is_there = tiny_node_reshape (graph, is_there, dims, root->shape->n);
    is_there = tiny_node_broadcast (graph, is_there, root->shape->v, root->shape->n);
    x = tiny_node_where (graph, is_there, x, tiny_node_open (graph, (TinyDType) root->dtype));
  }
  return x;
}

/* The same structure in a graph of its own, with PARAMs for BUFFERs and numbers for variables; what no leaf places is computed
 * on @device. */
static TinyNode *
normalise (const Request *self, TinyGraph *graph, const char *device)
{
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  guint slot = 0, number = 0;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    gboolean is_buffer = node->op == TINY_OP_BUFFER;
    if (node->op == TINY_OP_GRADIENT) {
      tiny_node_map_set (&map, node, tiny_node_map_get (&map, node->sources[node->ints->v[0]]));
      continue;
    }
    gboolean is_variable = node->op == TINY_OP_VARIABLE;
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&map, node->sources[s]));
    if (node->op == TINY_OP_LIMIT) { /* what it means is in the masks that were made with it */
      tiny_node_map_set (&map, node, sources->pdata[0]);
      continue;
    }
    tiny_node_map_set (&map, node,
                       tiny_node_new (graph, is_buffer ? TINY_OP_PARAM : node->op, node->dtype,
                                      node->lanes, node->n_sources,
                                      (TinyNode *const *) sources->pdata,
                                      is_buffer     ? slot++
                                      : is_variable ? number++
                                                    : node->arg,
                                      node->ints, is_variable ? NULL : node->text));
  }
  g_ptr_array_set_size (sources, 0);
  for (guint i = 0; i < self->nodes->len; i++)
    g_ptr_array_add (sources, leave_open (graph, self->nodes->pdata[i], &map));
  return tiny_node_sink (graph, sources->len, (TinyNode *const *) sources->pdata, device);
}

static void
drop_oldest_plan (void)
{
  GHashTableIter iter;
  gpointer value;
  CachedPlan *oldest = NULL;
  g_hash_table_iter_init (&iter, plans);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (oldest == NULL || ((CachedPlan *) value)->last_use < oldest->last_use)
      oldest = value;
  if (oldest != NULL)
    g_hash_table_remove (plans, &oldest->digest);
}

static TinyPlan *
find_plan (Request *request, GError **error)
{
  if (plans == NULL)
    plans = g_hash_table_new_full (digest_hash, digest_equal, NULL, cached_plan_free);
  TinyCounters *counters = tiny_runtime_counters ();
  CachedPlan *cached = g_hash_table_lookup (plans, &request->digest);
  if (cached != NULL) {
    counters->n_schedule_hits++;
    cached->last_use = ++use_count;
    return cached->plan;
  }
  const char *device = tiny_runtime_get_default_device (error);
  if (device == NULL)
    return NULL;
  counters->n_schedules++;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = normalise (request, graph, device);
  TinyPlan *plan = tiny_plan_new (graph, sink, request->constants, error);
  if (plan == NULL)
    return NULL;
  if (g_hash_table_size (plans) >= MAX_PLANS)
    drop_oldest_plan ();
  cached = g_new0 (CachedPlan, 1);
  *cached = (CachedPlan){ request->digest, plan, ++use_count };
  g_hash_table_insert (plans, &cached->digest, cached);
  return plan;
}

/* ---- old values that an ASSIGN is about to overwrite ---- */

/* Marks in @reads the nodes whose value depends on an assigned buffer's old contents through
 * arithmetic; views of the buffer itself alias it and stay views. */
static gboolean
reads_old_value (TinyNode *root, GHashTable *assigned, TinyGraph *graph)
{
  TinyNode *node = root;
  while (tiny_op_is_movement (node->op) || node->op == TINY_OP_DETACH)
    node = node->sources[0];
  if (node->op == TINY_OP_BUFFER || node->op == TINY_OP_ASSIGN)
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  gboolean reads = FALSE;
  for (guint i = 0; i < order->len; i++) {
    if (is_placeholder (order->pdata[i]))
      return FALSE;
    reads = reads || g_hash_table_contains (assigned, order->pdata[i]);
  }
  return reads;
}

static void
add_node (Request *request, TinyNode *node)
{
  if (!tiny_runtime_is_realized (node) && !g_ptr_array_find (request->nodes, node, NULL))
    g_ptr_array_add (request->nodes, node);
}

static void
add_readers_of_old_values (Request *request)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_autoptr (GHashTable) assigned = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (
      graph, (TinyNode *const *) request->nodes->pdata, request->nodes->len);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_ASSIGN)
      g_hash_table_add (assigned, node->sources[0]);
  }
  if (g_hash_table_size (assigned) == 0)
    return;
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next)
    if (!tiny_runtime_is_realized (root->node) && reads_old_value (root->node, assigned, graph))
      add_node (request, root->node);
}

/* ---- afterwards ---- */

/* The device that each node of @order is on; NULL where nothing says. */
static void
find_devices (GPtrArray *order, const char **out, guint n_nodes)
{
  memset (out, 0, n_nodes * sizeof *out);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_BUFFER || node->op == TINY_OP_COPY)
      out[node->id] = node->text;
    if (node->op == TINY_OP_GRADIENT)
      out[node->id] = out[node->sources[node->ints->v[0]]->id];
    for (guint s = 0; s < node->n_sources && out[node->id] == NULL; s++)
      out[node->id] = out[node->sources[s]->id];
  }
}

static TinyNode *
over_sources (TinyNode *node, const TinyNodeMap *map, GPtrArray *sources)
{
  g_ptr_array_set_size (sources, 0);
  for (guint s = 0; s < node->n_sources; s++)
    g_ptr_array_add (sources, tiny_node_map_get (map, node->sources[s]));
  return tiny_node_with_sources (tiny_runtime_get_graph (), node,
                                 (TinyNode *const *) sources->pdata);
}

/* What has to be known of a node before its value takes its place, by its id. */
enum {
  FACT_FLOWS = 1,     /* gradients flow to a root that wants them */
  FACT_IS_WANTED = 2, /* it is that of such a root */
  FACT_IS_OLD = 4,    /* it reads memory that holds something else now */
};

static guint8 *
find_facts (const Request *request, GPtrArray *order)
{
  guint8 *facts = g_new0 (guint8, tiny_graph_get_n_nodes (tiny_runtime_get_graph ()));
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next)
    if (root->wants_gradients)
      facts[root->node->id] = FACT_FLOWS | FACT_IS_WANTED;
  for (guint i = 0; i < request->nodes->len; i++) {
    const TinyNode *node = request->nodes->pdata[i];
    if (node->op == TINY_OP_ASSIGN)
      facts[node->sources[0]->id] |= FACT_IS_OLD;
  }
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    gboolean is_stale, is_assign = node->op == TINY_OP_ASSIGN;
    if (tiny_history_get (node, &is_stale) != NULL || is_stale)
      facts[node->id] |= FACT_FLOWS;
    for (guint s = 0; s < node->n_sources; s++) {
      guint8 source = facts[node->sources[s]->id];
      facts[node->id] |= tiny_history_flows (node, s) ? source & FACT_FLOWS : 0;
      facts[node->id] |= is_assign && s == 0 ? 0 : source & FACT_IS_OLD;
    }
  }
  return facts;
}

/* What is memory now was @expression. An assignment that read what it wrote over leaves nothing: a
 * step of an optimiser is no link of a chain. */
static void
keep_history (const TinyNode *node, guint8 facts, const TinyNode *buffer, TinyNode *expression)
{
  gboolean is_assign = node->op == TINY_OP_ASSIGN, is_old = (facts & FACT_IS_OLD) != 0;
  if (is_assign)
    tiny_history_forget (buffer);
  if (!(facts & FACT_FLOWS) || (facts & FACT_IS_WANTED) || !tiny_dtype_is_float (node->dtype)
      || (is_assign && is_old))
    return;
  tiny_history_keep (buffer, is_old ? NULL : is_assign ? expression->sources[1] : expression);
}

/* Whether histories are kept, or would be. */
static gboolean
are_gradients_wanted (void)
{
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next)
    if (root->wants_gradients)
      return TRUE;
  return !tiny_history_is_empty ();
}

/* Drops the histories of what is dead, and adds the expressions of others to @pending. */
static void
add_histories (GPtrArray *pending)
{
  if (tiny_history_is_empty ())
    return;
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next)
    g_ptr_array_add (all, root->node);
  g_autoptr (GPtrArray) order = tiny_history_toposort (
      tiny_runtime_get_graph (), (TinyNode *const *) all->pdata, all->len);
  tiny_history_retain (order);
  g_autoptr (GPtrArray) expressions = tiny_history_list ();
  g_ptr_array_extend (pending, expressions, NULL, NULL);
}

typedef struct {
  GHashTable *assigned; /* TinyBuffer */
} Overwritten;

static gboolean
is_overwritten (TinyBuffer *buffer, gconstpointer data)
{
  return g_hash_table_contains (((const Overwritten *) data)->assigned, buffer);
}

static void
expire_histories (const Request *request)
{
  g_autoptr (GHashTable) assigned = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < request->nodes->len; i++) {
    const TinyNode *node = request->nodes->pdata[i];
    if (node->op == TINY_OP_ASSIGN)
      g_hash_table_add (assigned, tiny_runtime_get_buffer (node->sources[0]));
  }
  if (g_hash_table_size (assigned) > 0)
    tiny_history_expire (is_overwritten, &(Overwritten){ assigned });
}

/* Exchanges realised nodes for their buffers under every root and in histories. What no memory places
 * was realised on the default device: roots on other devices go on computing it. */
static void
replace_in_roots (const Request *request, TinyNode *const *buffers)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyRoot *head = tiny_runtime_get_roots ();
  g_autoptr (GPtrArray) pending = g_ptr_array_new ();
  expire_histories (request);
  for (TinyRoot *root = head->next; root != head; root = root->next)
    if (!tiny_runtime_is_realized (root->node))
      g_ptr_array_add (pending, root->node);
  add_histories (pending);
  g_auto (TinyNodeMap) here = { 0 }, away = { 0 }, realized = { 0 };
  for (guint i = 0; i < request->nodes->len; i++)
    tiny_node_map_set (&realized, request->nodes->pdata[i], buffers[i]);
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (graph, (TinyNode *const *) pending->pdata, pending->len);
  guint n_nodes = tiny_graph_get_n_nodes (graph);
  g_autofree const char **devices = g_new (const char *, n_nodes);
  find_devices (order, devices, n_nodes);
  g_autofree guint8 *facts = are_gradients_wanted () ? find_facts (request, order) : NULL;
  g_autoptr (GPtrArray) kept = g_ptr_array_new (); /* node, its buffer, its expression */
  const char *home = tiny_runtime_get_default_device (NULL);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *buffer = tiny_node_map_get (&realized, node);
    const char *device = devices[node->id];
    gboolean is_away = device != NULL && g_strcmp0 (device, home) != 0;
    /* Constants and variables stay what they are for those who compute with them. */
    if (node->op == TINY_OP_CONST || node->op == TINY_OP_VARIABLE)
      buffer = node;
    gboolean keeps = buffer != NULL && facts != NULL && (facts[node->id] & FACT_FLOWS);
    TinyNode *local = buffer;
    if (buffer == NULL || keeps)
      local = over_sources (node, is_away && node->op != TINY_OP_COPY ? &away : &here, sources);
    if (buffer != NULL) {
      g_ptr_array_add (kept, node);
      g_ptr_array_add (kept, buffer);
      g_ptr_array_add (kept, local);
      local = buffer;
    }
    tiny_node_map_set (&here, node, local);
    tiny_node_map_set (&away, node,
                       device != NULL ? local : over_sources (node, &away, sources));
  }
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *replacement = tiny_node_map_get (&realized, root->node);
    if (replacement == NULL)
      replacement = tiny_node_map_get (&here, root->node);
    if (replacement != NULL)
      root->node = replacement;
  }
  tiny_history_replace (&here);
  for (guint i = 0; facts != NULL && i < kept->len; i += 3)
    keep_history (kept->pdata[i], facts[((TinyNode *) kept->pdata[i])->id], kept->pdata[i + 1],
                  kept->pdata[i + 2]);
}

/* The BUFFER node of a realised node: a new one, or what an ASSIGN wrote to. */
static TinyNode *
node_of_output (TinyNode *node, TinyBuffer *buffer)
{
  if (node->op == TINY_OP_ASSIGN)
    return node->sources[0];
  TinyNode *whole
      = tiny_runtime_buffer_node (buffer, node->dtype, node->shape->v, node->shape->n);
  return tiny_node_limit_like (tiny_runtime_get_graph (), whole, node, 0);
}

static gboolean
realize_locked (TinyRoot *const *roots, guint n, GError **error)
{
  tiny_runtime_sweep (FALSE);
  g_auto (Request) request = { .nodes = g_ptr_array_new () };
  for (guint i = 0; i < n; i++)
    add_node (&request, roots[i]->node);
  if (request.nodes->len == 0)
    return TRUE;
  add_readers_of_old_values (&request);
  survey (&request);
  if (!check_placeholders (&request, error))
    return FALSE;
  find_constants (&request);
  TinyPlan *plan = find_plan (&request, error);
  if (plan == NULL)
    return FALSE;
  guint n_nodes = request.nodes->len;
  g_autofree TinyBuffer **inputs = g_new (TinyBuffer *, request.buffers->len + 1);
  g_autofree TinyBuffer **outputs = g_new0 (TinyBuffer *, n_nodes + 1);
  for (guint i = 0; i < request.buffers->len; i++)
    inputs[i] = tiny_runtime_get_buffer (request.buffers->pdata[i]);
  if (!tiny_plan_run (plan, inputs,
                      (const TinyBoundVariable *) (void *) request.variables->data, outputs,
                      error))
    return FALSE;
  g_autofree TinyNode **nodes = g_new (TinyNode *, n_nodes);
  for (guint i = 0; i < n_nodes; i++) {
    nodes[i] = node_of_output (request.nodes->pdata[i], outputs[i]);
    tiny_buffer_unref (outputs[i]);
  }
  replace_in_roots (&request, nodes);
  return TRUE;
}

gboolean
tiny_runtime_realize (TinyRoot *const *roots, guint n, GError **error)
{
  tiny_runtime_lock ();
  TinyTiming timing = tiny_timing_begin ("engine", "realize");
  gboolean good = realize_locked (roots, n, error);
  tiny_timing_end (&timing);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_runtime_realize_assignments (GError **error)
{
  g_autoptr (GPtrArray) waiting = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    const TinyNode *node = root->node;
    while (node->op == TINY_OP_RESHAPE)
      node = node->sources[0];
    if (node->op == TINY_OP_ASSIGN)
      g_ptr_array_add (waiting, root);
  }
  return waiting->len == 0
         || tiny_runtime_realize ((TinyRoot *const *) waiting->pdata, waiting->len, error);
}
