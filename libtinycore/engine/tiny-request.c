/* SPDX-License-Identifier: MIT
 *
 * tiny-request.c: what is asked for, digested, and the cache of plans.
 *
 * The graph under the nodes is digested with its buffers numbered in the order they are met. What has no plan yet is copied
 * into a graph of its own, scheduled and compiled. Of a buffer that is read only as one run of its elements, such as a
 * batch that is cut from a data set, that run is the input: one plan serves all places where it may begin. */
#include "engine/tiny-request.h"

#include <string.h>

#include "base/interrupt-check.h"
#include "base/tiny-error.h"
#include "base/tiny-reuse.h"
#include "engine/keep-computed.h"
#include "engine/runtime-private.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"

enum { MAX_PLANS = 512 }; /* plans kept; the oldest use goes first */
gsize tiny_request_most_bytes = (gsize) 256 << 20;

typedef struct {
  TinyDigest digest;
  TinyPlan *plan;
  guint64 last_use;
  gsize n_bytes;
} CachedPlan;

static GHashTable *plans; /* TinyDigest → CachedPlan, under the runtime's lock */
static guint64 use_count;
static gsize n_plan_bytes;

static guint
digest_hash (gconstpointer key)
{
  return (guint) ((const TinyDigest *) key)->word[0];
}

static gboolean
digest_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (TinyDigest)) == 0;
}

static void
cached_plan_free (gpointer data)
{
  CachedPlan *cached = data;
  n_plan_bytes -= cached->n_bytes;
  tiny_plan_free (cached->plan);
  g_free (cached);
}

/* ---- what is asked for ---- */
static TinyRequest spare; /* lists for the next request; none while there is one */

void
tiny_request_init (TinyRequest *self)
{
  *self = spare;
  spare = (TinyRequest){ 0 };
  tiny_reuse_ptrs (&self->nodes);
  tiny_reuse_array (&self->owners, sizeof (guint64));
  tiny_reuse_ptrs (&self->order);
  tiny_reuse_ptrs (&self->buffers);
  tiny_reuse_ptrs (&self->inputs);
  tiny_reuse_ptrs (&self->outputs);
  tiny_reuse_ptrs (&self->results);
  tiny_reuse_array (&self->variables, sizeof (TinyBoundVariable));
  open_numbers_init (&self->numbers);
}

static void
free_lists (TinyRequest *self)
{
  GPtrArray *const of_pointers[]
      = { self->nodes, self->order, self->buffers, self->inputs, self->outputs, self->results };
  for (guint i = 0; i < G_N_ELEMENTS (of_pointers); i++)
    g_ptr_array_unref (of_pointers[i]);
  g_array_unref (self->owners);
  g_array_unref (self->variables);
  open_numbers_clear (&self->numbers);
}

void
tiny_request_clear (TinyRequest *self)
{
  if (self->nodes == NULL)
    return;
  for (guint i = 0; i < self->inputs->len; i++)
    tiny_buffer_unref (self->inputs->pdata[i]);
  for (guint i = 0; i < self->outputs->len; i++)
    tiny_buffer_unref (self->outputs->pdata[i]);
  tiny_reuse_ptrs (&self->inputs);
  tiny_reuse_ptrs (&self->outputs);
  g_clear_pointer (&self->constants, g_free);
  open_numbers_close (&self->numbers);
  if (spare.nodes == NULL)
    spare = *self;
  else
    free_lists (self);
  *self = (TinyRequest){ 0 };
}

gboolean
tiny_request_is_placeholder (const TinyNode *node)
{
  return node->op == TINY_OP_PARAM;
}

/* Whether its arg says nothing of the value. */
static gboolean
is_marked (const TinyNode *node)
{
  return node->op == TINY_OP_GRADIENT || node->op == TINY_OP_DETACH
         || node->op == TINY_OP_ASSIGN;
}

gboolean
tiny_request_check_placeholders (const TinyRequest *self, GError **error)
{
  for (guint i = 0; i < self->order->len; i++)
    if (tiny_request_is_placeholder (self->order->pdata[i])) {
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
absorb_numbers (const TinyRequest *self, TinyDigest *digest)
{
  const OpenNumbers *numbers = &self->numbers;
  for (guint i = 0; i < numbers->numbers->len; i++)
    if (numbers->is_open == NULL || !numbers->is_open[i])
      tiny_digest_absorb (digest,
                          (guint64) g_array_index (numbers->numbers, OpenNumber, i).value);
}

/* Of two values of which one is no number, MAX gives what the order of its operands says, and a constant has its place
 * there: it stays one. */
static void
absorb_bounds (TinyDigest *digest, const TinyNode *max)
{
  for (guint i = 0; i < max->n_sources; i++) {
    const TinyNode *bound = max->sources[i];
    while (tiny_op_is_movement ((TinyOp) bound->op))
      bound = bound->sources[0];
    tiny_digest_absorb (digest, bound->op == TINY_OP_CONST ? (guint64) bound->arg : 0);
  }
}

/* ---- slices of buffers ---- */

/* The bytes before the run of a BUFFER's elements that @node, a SHRINK of it, is. FALSE: it is no run, or begins where a
 * device may not be given memory. */
static gboolean
find_run (const TinyNode *node, gsize *out_offset)
{
  if (node->op != TINY_OP_SHRINK || node->sources[0]->op != TINY_OP_BUFFER
      || node->limits != NULL || tiny_shape_get_n_elements (node->shape) == 0)
    return FALSE;
  gint64 stride = 1, start = 0, n_outer = 1;
  gboolean is_whole = TRUE; /* all axes so far, from the last on */
  for (guint i = node->shape->n; i-- > 0;) {
    const gint64 part = node->shape->v[i], whole = node->sources[0]->shape->v[i];
    n_outer *= is_whole ? 1 : part;
    is_whole = is_whole && part == whole;
    start += node->ints->v[2 * i] * stride;
    stride *= whole;
  }
  TinyDevice *device = tiny_buffer_get_device (tiny_runtime_get_buffer (node->sources[0]));
  const gsize word = 4;
  const gsize alignment = tiny_device_get_target (device)->flags & TINY_TARGET_UNALIGNED
                              ? MAX (tiny_device_get_info (device)->alignment, word)
                              : TINY_SPAN_ALIGNMENT;
  *out_offset = (gsize) start * tiny_dtype_get_n_bytes ((TinyDType) node->dtype);
  return n_outer == 1 && *out_offset % alignment == 0;
}

/* How often each node is read by one of the order, by its place; a root is read. */
static guint8 *
count_readers (const TinyRequest *self)
{
  guint8 *n = g_new0 (guint8, self->order->len);
  for (guint i = 0; i < self->order->len; i++) {
    const TinyNode *node = self->order->pdata[i];
    for (guint s = 0; s < node->n_sources; s++) {
      guint8 *count = &n[node->sources[s]->place];
      *count = (guint8) MIN (*count + 1, G_MAXUINT8);
    }
  }
  for (guint i = 0; i < self->nodes->len; i++)
    for (const TinyNode *node = self->nodes->pdata[i]; tiny_op_is_movement (node->op);
         node = node->sources[0])
      n[node->sources[0]->place] = G_MAXUINT8;
  return n;
}

/* Marks the runs that are inputs, and their BUFFERs, of which nothing else is read. A recording knows its inputs as a
 * whole, and what is a part of memory alone is copied from there. */
static guint32
mark_runs (const TinyRequest *self)
{
  gsize offset;
  g_autofree guint8 *n_readers = NULL;
  const guint32 is_run = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  if (*tiny_launches_get_recorder () != NULL)
    return is_run;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (!find_run (node, &offset))
      continue;
    n_readers = n_readers != NULL ? n_readers : count_readers (self);
    if (n_readers[node->sources[0]->place] == 1)
      node->mark = node->sources[0]->mark = is_run;
  }
  return is_run;
}

/* (transfer full): the memory of input @i. */
TinyBuffer *
tiny_request_get_input (const TinyRequest *self, guint i)
{
  TinyNode *node = self->buffers->pdata[i];
  gsize offset;
  if (node->op == TINY_OP_BUFFER)
    return tiny_buffer_ref (tiny_runtime_get_buffer (node));
  find_run (node, &offset);
  return tiny_buffer_new_view (tiny_runtime_get_buffer (node->sources[0]), offset,
                               (gsize) tiny_shape_get_n_elements (node->shape)
                                   * tiny_dtype_get_n_bytes ((TinyDType) node->dtype));
}

void
tiny_request_survey (TinyRequest *self)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  tiny_graph_toposort_into (graph, (TinyNode *const *) self->nodes->pdata, self->nodes->len,
                            self->order);
  keep_computed_add (self);
  self->structure = (TinyDigest){ { self->nodes->len, self->order->len } };
  const guint32 is_run = mark_runs (self);
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    guint64 arg = (guint64) node->arg;
    const char *text = node->text;
    const gboolean is_part = node->mark == is_run; /* a run, or the whole of one */
    const gboolean is_input = is_part != (node->op == TINY_OP_BUFFER);
    if (is_part)
      arg = G_MAXUINT64;
    if (is_input) {
      arg = self->buffers->len;
      g_ptr_array_add (self->buffers, node);
    } else if (node->op == TINY_OP_VARIABLE) {
      arg = self->variables->len;
      text = NULL; /* the same program, whatever the name and the value */
      g_array_append_val (self->variables,
                          ((TinyBoundVariable[]){ tiny_runtime_get_variable (node) })[0]);
    }
    if (is_marked (node))
      arg = 0;
    gint64 rest[2 * TINY_LIMIT_MAX_RANK + 1];
    const gint64 *ints = node->ints != NULL ? node->ints->v : NULL;
    if (is_input && is_part) {
      memset (rest, 0, sizeof rest);
      memcpy (rest, node->shape->v, node->shape->n * sizeof *rest);
      ints = rest;
    } else if (open_numbers_note (&self->numbers, node, i, rest)) {
      arg = node->ints != NULL ? (guint64) rest[node->ints->n] : (guint64) rest[0];
      ints = rest;
    }
    tiny_digest_absorb (&self->structure,
                        node->op | (guint64) node->dtype << 16 | (guint64) node->lanes << 32);
    tiny_digest_absorb (&self->structure, node->n_sources);
    tiny_digest_absorb (&self->structure, node->ints ? node->ints->n + 1 : 0);
    tiny_digest_absorb (&self->structure, text ? strlen (text) + 1 : 0);
    tiny_digest_absorb (&self->structure, arg);
    for (guint k = 0; node->ints != NULL && k < node->ints->n; k++)
      tiny_digest_absorb (&self->structure, (guint64) ints[k] + 1);
    for (const char *c = text; c != NULL && *c != 0; c++)
      tiny_digest_absorb (&self->structure, (guint8) *c);
    for (guint s = 0; s < node->n_sources; s++)
      tiny_digest_absorb (&self->structure, node->sources[s]->place);
    if (node->op == TINY_OP_MAX)
      absorb_bounds (&self->structure, node);
  }
  for (guint i = 0; i < self->nodes->len; i++)
    tiny_digest_absorb (&self->structure, ((TinyNode *) self->nodes->pdata[i])->place);
  self->plain = self->structure;
  absorb_numbers (self, &self->plain);
  self->digest = self->plain;
}

void
tiny_request_find_constants (TinyRequest *self)
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
  tiny_digest_absorb (&self->digest, self->buffers->len + 1);
  for (guint i = 0; i < self->buffers->len; i++)
    tiny_digest_absorb (&self->digest, (guint64) self->constants[i]);
}

/* What @root has become in @graph, of which nothing needs to be stored beyond sizes that are variables. */
static TinyNode *
leave_open (const TinyRequest *self, TinyGraph *graph, const TinyNode *root, TinyNode **made)
{
  TinyNode *x = made[root->place];
  for (guint i = 0; root->limits != NULL && i < root->shape->n; i++) {
    TinyNode *limit = tiny_limit_get (root, i);
    TinyNode *size
        = limit != NULL && tiny_node_is_in (limit, self->order) ? made[limit->place] : NULL;
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

TinyNode *
tiny_request_normalise (const TinyRequest *self,
                        TinyGraph *graph,
                        const char *device,
                        GError **error)
{
  /* Each node of the order as it has become, by its place. */
  g_autofree TinyNode **made = g_new0 (TinyNode *, self->order->len + 1);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  guint slot = 0, number = 0;
  for (guint i = 0; i < self->order->len; i++) {
    if (i % 1024 == 0 && !tiny_interrupt_check (error))
      return NULL;
    TinyNode *node = self->order->pdata[i];
    if (slot < self->buffers->len && node == self->buffers->pdata[slot]) {
      const TinyNode *buffer = node->op == TINY_OP_BUFFER ? node : node->sources[0];
      made[i] = tiny_node_new (graph, TINY_OP_PARAM, node->dtype, node->lanes, 0, NULL, slot++,
                               node->shape, buffer->text);
      continue;
    }
    if (node->op == TINY_OP_BUFFER) /* of which a run is read alone */
      continue;
    if (node->op == TINY_OP_GRADIENT) {
      made[i] = made[node->sources[node->ints->v[0]]->place];
      continue;
    }
    gboolean is_variable = node->op == TINY_OP_VARIABLE;
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, made[node->sources[s]->place]);
    if (node->op == TINY_OP_LIMIT) { /* what it means is in the masks that were made with it */
      made[i] = sources->pdata[0];
      continue;
    }
    TinyNode *open = open_numbers_remake (&self->numbers, graph, node, i,
                                          (TinyNode *const *) sources->pdata);
    if (open != NULL) {
      made[i] = open;
      continue;
    }
    made[i] = tiny_node_new (graph, node->op, node->dtype, node->lanes, node->n_sources,
                             (TinyNode *const *) sources->pdata,
                             is_variable        ? number++
                             : is_marked (node) ? 0
                                                : node->arg,
                             node->ints, is_variable ? NULL : node->text);
  }
  g_ptr_array_set_size (sources, 0);
  for (guint i = 0; i < self->nodes->len; i++)
    g_ptr_array_add (sources, leave_open (self, graph, self->nodes->pdata[i], made));
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

/* Plans are for devices by name, and hold what was loaded on them. */
static void
drop_plans_of_lost (void)
{
  static guint n_reopened;
  const guint n = tiny_engine_count_reopened ();
  if (n != n_reopened)
    g_hash_table_remove_all (plans);
  n_reopened = n;
}

/* Whether the request takes the plan that is for several of its structure: its digest is that one's then, and its
 * numbers are variables. A recording is planned with what it has, and so is what sizes that are variables or several
 * devices have a part in. */
static gboolean
open_request (TinyRequest *request)
{
  enum { OPEN = 0x0b5e };
  double n_elements = 0;
  gboolean reduces = FALSE;
  if (request->variables->len > 0)
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
  tiny_digest_absorb (&request->digest, OPEN);
  for (guint i = 0; i < request->numbers.numbers->len; i++)
    tiny_digest_absorb (&request->digest, (guint64) request->numbers.is_open[i]);
  absorb_numbers (request, &request->digest);
  open_numbers_bind (&request->numbers, request->variables);
  return TRUE;
}

/* The plan that is there for @request. What a plain call has planned serves a recording of the same, unless constants
 * would make another plan. */
static CachedPlan *
look_up (TinyRequest *request)
{
  CachedPlan *cached = g_hash_table_lookup (plans, &request->digest);
  if (cached != NULL)
    return cached;
  if (request->constants == NULL)
    return open_request (request) ? g_hash_table_lookup (plans, &request->digest) : NULL;
  cached = g_hash_table_lookup (plans, &request->plain);
  return cached != NULL && tiny_plan_serves (cached->plan, request->constants) ? cached : NULL;
}

TinyPlan *
tiny_request_find_plan (TinyRequest *request, GError **error)
{
  if (plans == NULL)
    plans = g_hash_table_new_full (digest_hash, digest_equal, NULL, cached_plan_free);
  drop_plans_of_lost ();
  TinyCounters *counters = tiny_runtime_counters ();
  CachedPlan *cached = look_up (request);
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
  TinyNode *sink = tiny_request_normalise (request, graph, device, error);
  if (sink == NULL)
    tiny_graph_free (graph);
  TinyPlan *plan = sink != NULL ? tiny_plan_new (graph, sink, request->constants, error) : NULL;
  if (plan == NULL)
    return NULL;
  while (g_hash_table_size (plans) > 0
         && (g_hash_table_size (plans) >= MAX_PLANS || n_plan_bytes > tiny_request_most_bytes))
    drop_oldest_plan ();
  cached = g_new0 (CachedPlan, 1);
  *cached = (CachedPlan){ request->digest, plan, ++use_count,
                          tiny_graph_get_n_bytes (tiny_plan_get_schedule (plan)->graph) };
  n_plan_bytes += cached->n_bytes;
  g_hash_table_insert (plans, &cached->digest, cached);
  return plan;
}
