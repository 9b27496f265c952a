/* SPDX-License-Identifier: MIT
 *
 * tiny-realize.c: makes the values of roots exist.
 *
 * The graph under the roots is digested with its buffers numbered in the order they are met, so a
 * structure seen before finds its plan at once, whatever memory it is about. Otherwise it is copied
 * into a graph of its own, scheduled and compiled. What was realised then replaces the expression
 * in every root that shares it (tiny-replace.c). */
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "engine/open-numbers.h"
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
  OpenNumbers numbers;
  Digest structure; /* of all but those numbers */
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
  open_numbers_clear (&self->numbers);
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

/* Those that are no variables. */
static void
absorb_numbers (const Request *self, Digest *digest)
{
  const OpenNumbers *numbers = &self->numbers;
  for (guint i = 0; i < numbers->numbers->len; i++)
    if (numbers->is_open == NULL || !numbers->is_open[i])
      absorb (digest, (guint64) g_array_index (numbers->numbers, OpenNumber, i).value);
}

/* Of two values of which one is no number, MAX gives what the order of its operands says, and a constant has its place
 * there: it stays one. */
static void
absorb_bounds (Digest *digest, const TinyNode *max)
{
  for (guint i = 0; i < max->n_sources; i++) {
    const TinyNode *bound = max->sources[i];
    while (tiny_op_is_movement ((TinyOp) bound->op))
      bound = bound->sources[0];
    absorb (digest, bound->op == TINY_OP_CONST ? (guint64) bound->arg : 0);
  }
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
  self->structure = (Digest){ { self->nodes->len, self->order->len } };
  open_numbers_init (&self->numbers, self->order->len);
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
    if (node->op == TINY_OP_GRADIENT || node->op == TINY_OP_DETACH)
      arg = 0; /* says nothing of the value */
    gint64 rest[2 * TINY_LIMIT_MAX_RANK + 1];
    const gint64 *ints = node->ints != NULL ? node->ints->v : NULL;
    if (open_numbers_note (&self->numbers, node, i, rest)) {
      arg = node->ints != NULL ? (guint64) rest[node->ints->n] : (guint64) rest[0];
      ints = rest;
    }
    absorb (&self->structure,
            node->op | (guint64) node->dtype << 16 | (guint64) node->lanes << 32);
    absorb (&self->structure, node->n_sources);
    absorb (&self->structure, node->ints ? node->ints->n + 1 : 0);
    absorb (&self->structure, text ? strlen (text) + 1 : 0);
    absorb (&self->structure, arg);
    for (guint k = 0; node->ints != NULL && k < node->ints->n; k++)
      absorb (&self->structure, (guint64) ints[k] + 1);
    for (const char *c = text; c != NULL && *c != 0; c++)
      absorb (&self->structure, (guint8) *c);
    for (guint s = 0; s < node->n_sources; s++)
      absorb (&self->structure, position[node->sources[s]->id]);
    if (node->op == TINY_OP_MAX)
      absorb_bounds (&self->structure, node);
  }
  for (guint i = 0; i < self->nodes->len; i++)
    absorb (&self->structure, position[((TinyNode *) self->nodes->pdata[i])->id]);
  self->digest = self->structure;
  absorb_numbers (self, &self->digest);
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
    TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
    guint slot;
    for (guint k = 0; target != NULL && k < tiny_runtime_count_pieces (target); k++)
      if (g_ptr_array_find (self->buffers, tiny_runtime_get_piece (target, k), &slot))
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

/* The same structure in a graph of its own, with PARAMs for BUFFERs and numbers for variables; what no leaf places
 * is computed on @device. */
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
    TinyNode *open = open_numbers_remake (&self->numbers, graph, node, i,
                                          (TinyNode *const *) sources->pdata);
    if (open != NULL) {
      tiny_node_map_set (&map, node, open);
      continue;
    }
    tiny_node_map_set (&map, node,
                       tiny_node_new (graph, is_buffer ? TINY_OP_PARAM : node->op, node->dtype,
                                      node->lanes, node->n_sources,
                                      (TinyNode *const *) sources->pdata,
                                      is_buffer                    ? slot++
                                      : is_variable                ? number++
                                      : node->op == TINY_OP_DETACH ? 0
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

/* Whether the request takes the plan that is for several of its structure: its digest is that one's then, and its
 * numbers are variables. A recording is planned with what it has, and so is what sizes that are variables or several
 * devices have a part in. */
static gboolean
open_request (Request *request)
{
  enum { OPEN = 0x0b5e };
  double n_elements = 0;
  gboolean reduces = FALSE;
  if (request->constants != NULL || request->variables->len > 0)
    return FALSE;
  for (guint i = 0; i < request->order->len; i++) {
    const TinyNode *node = request->order->pdata[i];
    if (node->op == TINY_OP_UNSHARD || node->op == TINY_OP_LIMIT)
      return FALSE;
    reduces = reduces || node->op == TINY_OP_REDUCE;
    if (node->shape != NULL && node->op != TINY_OP_BUFFER)
      n_elements += (double) tiny_shape_get_n_elements (node->shape);
  }
  if (!open_numbers_decide (&request->numbers, request->structure.word, n_elements, reduces))
    return FALSE;
  request->digest = request->structure;
  absorb (&request->digest, OPEN);
  for (guint i = 0; i < request->numbers.numbers->len; i++)
    absorb (&request->digest, (guint64) request->numbers.is_open[i]);
  absorb_numbers (request, &request->digest);
  open_numbers_bind (&request->numbers, request->variables);
  return TRUE;
}

static TinyPlan *
find_plan (Request *request, GError **error)
{
  if (plans == NULL)
    plans = g_hash_table_new_full (digest_hash, digest_equal, NULL, cached_plan_free);
  TinyCounters *counters = tiny_runtime_counters ();
  CachedPlan *cached = g_hash_table_lookup (plans, &request->digest);
  if (cached == NULL && open_request (request))
    cached = g_hash_table_lookup (plans, &request->digest);
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

/* ---- old values of memory that is about to be overwritten ---- */

/* @written: a set of TinyBuffer. */
static gboolean
reads_any (TinyNode *value, GHashTable *written, TinyGraph *graph)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &value, 1);
  gboolean reads = FALSE;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (is_placeholder (node))
      return FALSE;
    reads = reads
            || (node->op == TINY_OP_BUFFER
                && g_hash_table_contains (written, tiny_runtime_get_buffer (node)));
  }
  return reads;
}

/* What @root is made of by movement alone; NULL where that is memory, or what another root gave already. */
static TinyNode *
find_source (TinyNode *root, guint32 seen)
{
  TinyNode *node = root;
  while (node->mark != seen && (tiny_op_is_movement (node->op) || node->op == TINY_OP_DETACH))
    node = node->sources[0];
  const gboolean is_known = node->mark == seen || tiny_runtime_is_realized (node);
  if (is_known || node->op == TINY_OP_ASSIGN) {
    for (node->mark = seen; root != node; root = root->sources[0])
      root->mark = seen; /* many are views of one tensor, and of one another */
  }
  return is_known ? NULL : node;
}

/* The nodes of roots that wait, and beside each what it is but for movement. What is a view of memory stays one, also
 * of memory that is about to be written to. */
static GPtrArray *
list_waiting (void)
{
  GPtrArray *all = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  const guint32 seen = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *source = find_source (root->node, seen);
    if (source == NULL)
      continue;
    g_ptr_array_add (all, root->node);
    g_ptr_array_add (all, source);
  }
  return all;
}

/* What has to be computed before memory that is @written changes, for @node, which is @source but for movement, is
 * made of its old contents by arithmetic; or NULL. */
static TinyNode *
find_reader (TinyNode *node, TinyNode *source, GHashTable *written)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  if (source->op == TINY_OP_ASSIGN) /* what it writes over is its own */
    return reads_any (source->sources[1], written, graph) ? source : NULL;
  return reads_any (node, written, graph) ? node : NULL;
}

/* What is written to memory that is there is the value of the assignment, in whatever shape it is seen. */
static void
add_node (Request *request, TinyNode *node)
{
  TinyNode *inner = node;
  while (inner->op == TINY_OP_RESHAPE)
    inner = inner->sources[0];
  if (inner->op == TINY_OP_ASSIGN)
    node = inner;
  if (!tiny_runtime_is_realized (node) && !g_ptr_array_find (request->nodes, node, NULL))
    g_ptr_array_add (request->nodes, node);
}

/* A reader may be an assignment, whose memory has readers as well. */
static void
add_readers_of_old_values (Request *request)
{
  g_autoptr (GHashTable) assigned = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) waiting = NULL;
  for (guint n_seen = 0;;) {
    guint n_before = g_hash_table_size (assigned);
    for (; n_seen < request->nodes->len; n_seen++) {
      const TinyNode *node = request->nodes->pdata[n_seen];
      TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
      for (guint k = 0; target != NULL && k < tiny_runtime_count_pieces (target); k++)
        g_hash_table_add (assigned,
                          tiny_runtime_get_buffer (tiny_runtime_get_piece (target, k)));
    }
    if (g_hash_table_size (assigned) == n_before)
      return;
    if (waiting == NULL)
      waiting = list_waiting ();
    for (guint i = 0; i < waiting->len; i += 2) {
      TinyNode *reader = find_reader (waiting->pdata[i], waiting->pdata[i + 1], assigned);
      if (reader != NULL)
        add_node (request, reader);
    }
  }
}

/* ---- running ---- */

/* The node of the memory that a realised node is in: new, or what an ASSIGN wrote to. */
static TinyNode *
node_of_outputs (TinyNode *node, const TinySpread *spread, TinyBuffer *const *outputs)
{
  if (node->op == TINY_OP_ASSIGN)
    return node->sources[0];
  TinyNode *whole
      = tiny_runtime_memory_node ((TinyDType) node->dtype, node->shape, spread->devices,
                                  spread->axis, &outputs[spread->first], spread->n);
  return tiny_node_limit_like (tiny_runtime_get_graph (), whole, node, 0);
}

static gboolean
run (Request *request, GError **error)
{
  if (request->nodes->len == 0)
    return TRUE;
  add_readers_of_old_values (request);
  survey (request);
  if (!check_placeholders (request, error))
    return FALSE;
  find_constants (request);
  TinyPlan *plan = find_plan (request, error);
  if (plan == NULL)
    return FALSE;
  guint n_nodes = request->nodes->len, n_outputs = tiny_plan_get_n_outputs (plan);
  g_autofree TinyBuffer **inputs = g_new (TinyBuffer *, request->buffers->len + 1);
  g_autofree TinyBuffer **outputs = g_new0 (TinyBuffer *, n_outputs + 1);
  for (guint i = 0; i < request->buffers->len; i++)
    inputs[i] = tiny_runtime_get_buffer (request->buffers->pdata[i]);
  if (!tiny_plan_run (plan, inputs,
                      (const TinyBoundVariable *) (void *) request->variables->data, outputs,
                      error))
    return FALSE;
  g_autofree TinyNode **nodes = g_new (TinyNode *, n_nodes);
  for (guint i = 0; i < n_nodes; i++) {
    const TinySpread spread = tiny_plan_get_spread (plan, i);
    nodes[i] = node_of_outputs (request->nodes->pdata[i], &spread, outputs);
  }
  for (guint i = 0; i < n_outputs; i++)
    tiny_buffer_unref (outputs[i]);
  tiny_runtime_replace ((TinyNode *const *) request->nodes->pdata, nodes, n_nodes);
  return TRUE;
}

static gboolean
realize_locked (TinyRoot *const *roots, guint n, GError **error)
{
  tiny_runtime_sweep (FALSE);
  g_auto (Request) request = { .nodes = g_ptr_array_new () };
  for (guint i = 0; i < n; i++)
    add_node (&request, roots[i]->node);
  return run (&request, error);
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
tiny_runtime_realize_readers (GHashTable *written, gboolean and_assignments, GError **error)
{
  tiny_runtime_sweep (FALSE);
  g_auto (Request) request = { .nodes = g_ptr_array_new () };
  g_autoptr (GPtrArray) waiting = list_waiting ();
  for (guint i = 0; i < waiting->len; i += 2) {
    TinyNode *source = waiting->pdata[i + 1], *node = NULL;
    if (and_assignments && source->op == TINY_OP_ASSIGN)
      node = source;
    else if (g_hash_table_size (written) > 0)
      node = find_reader (waiting->pdata[i], source, written);
    if (node != NULL)
      add_node (&request, node);
  }
  return run (&request, error);
}

gboolean
tiny_runtime_realize_assignments (GError **error)
{
  g_autoptr (GHashTable) none = g_hash_table_new (NULL, NULL);
  return tiny_runtime_realize_readers (none, TRUE, error);
}
