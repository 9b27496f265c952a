/* SPDX-License-Identifier: MIT
 *
 * tiny-realize.c: makes the values of roots exist.
 *
 * What is asked for, and what reads the old contents of memory that is written by it, is one request, of which there may be
 * a plan already (tiny-request.c). What was realised then replaces the expression in every root that shares it
 * (tiny-replace.c). While threads record, what is another recording's, or none's, is realised as such, before the rest. */
#include "base/interrupt-check.h"
#include "base/tiny-timing.h"
#include "engine/keep-computed.h"
#include "engine/runtime-private.h"
#include "engine/tiny-recorders.h"
#include "engine/tiny-request.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-text.h"

/* ---- old values of memory that is about to be overwritten ---- */

/* True if @node is an assignment that alone writes to its memory: who reads it reads the value after it. */
static gboolean
is_only_writer (const TinyNode *node, GHashTable *written)
{
  TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
  return target != NULL
         && g_hash_table_lookup (written,
                                 tiny_runtime_get_buffer (tiny_runtime_get_piece (target, 0)))
                == node;
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

/* What waits: the node of a root, what that is but for movement, and for which recording. */
typedef struct {
  TinyNode *node, *source;
  guint64 owner;
} Waiting;

static guint64
find_owner (const TinyNode *assign)
{
  return tiny_recorders_get_running ((guint64) assign->arg);
}

/* What is a view of memory stays one, also of memory that is about to be written to. */
static GArray *
list_waiting (void)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Waiting));
  TinyRoot *head = tiny_runtime_get_active_roots ();
  guint32 seen = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (TinyRoot *root = head->next_active; root != head; root = root->next_active) {
    if (tiny_recorders_is_any ()) /* to each recording its own */
      seen = tiny_graph_begin_mark (tiny_runtime_get_graph ());
    TinyNode *source = find_source (root->node, seen);
    if (source == NULL)
      continue;
    const gboolean is_assign = source->op == TINY_OP_ASSIGN;
    Waiting one = { root->node, source,
                    is_assign ? find_owner (source) : tiny_recorders_get_owner (root) };
    g_array_append_val (all, one);
  }
  return all;
}

enum { FACT_READS = 1, FACT_STANDS_FOR = 2 };

/* By place in the order of all that waits, which holds until another is made: which of it reads memory that is @written, a
 * table from TinyBuffer to the ASSIGN that alone is asked for and writes to it, if there is one; and which is made of what
 * stands for others, and has no value. */
static guint8 *
find_reading (const GArray *waiting, GHashTable *written)
{
  g_autoptr (GPtrArray) nodes = g_ptr_array_sized_new (waiting->len);
  for (guint i = 0; i < waiting->len; i++)
    g_ptr_array_add (nodes, g_array_index (waiting, Waiting, i).node);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (
      tiny_runtime_get_graph (), (TinyNode *const *) nodes->pdata, nodes->len);
  guint8 *facts = g_new0 (guint8, order->len + 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_BUFFER
        && g_hash_table_contains (written, tiny_runtime_get_buffer (node)))
      facts[i] = FACT_READS;
    for (guint s = 0; s < node->n_sources; s++)
      facts[i] |= facts[node->sources[s]->place];
    if (tiny_request_is_placeholder (node))
      facts[i] |= FACT_STANDS_FOR;
    if (is_only_writer (node, written))
      facts[i] &= (guint8) ~FACT_READS;
  }
  return facts;
}

/* The node that has to be computed before memory changes which it is made of by arithmetic; or NULL. */
static TinyNode *
find_reader (const Waiting *one, const guint8 *facts)
{
  const gboolean is_assign = one->source->op == TINY_OP_ASSIGN;
  const TinyNode *value = is_assign ? one->source->sources[1] : one->node;
  if (facts[value->place] != FACT_READS)
    return NULL;
  return is_assign ? one->source : one->node;
}

/* What is written to memory that is there is the value of the assignment, in whatever shape it is seen. */
static void
add_node (TinyRequest *request, TinyNode *node, guint64 owner)
{
  TinyNode *inner = node;
  while (inner->op == TINY_OP_RESHAPE)
    inner = inner->sources[0];
  if (inner->op == TINY_OP_ASSIGN)
    node = inner;
  if (tiny_runtime_is_realized (node))
    return;
  owner = node->op == TINY_OP_ASSIGN ? find_owner (node) : owner;
  for (guint i = 0; i < request->nodes->len; i++)
    if (request->nodes->pdata[i] == node
        && g_array_index (request->owners, guint64, i) == owner)
      return;
  g_ptr_array_add (request->nodes, node);
  g_array_append_val (request->owners, owner);
}

/* Notes that @assign writes to @buffer; NULL where two do. FALSE: that was known. */
static gboolean
add_written (GHashTable *written, TinyBuffer *buffer, const TinyNode *assign)
{
  gpointer other = NULL;
  const gboolean is_second = g_hash_table_lookup_extended (written, buffer, NULL, &other);
  if (is_second && (other == assign || other == NULL))
    return FALSE;
  g_hash_table_insert (written, buffer, is_second ? NULL : (gpointer) assign);
  return TRUE;
}

/* A reader may be an assignment, whose memory has readers as well. */
static void
add_readers_of_old_values (TinyRequest *request)
{
  g_autoptr (GHashTable) assigned = NULL;
  g_autoptr (GArray) waiting = NULL;
  for (guint n_seen = 0;;) {
    gboolean is_more = FALSE;
    for (; n_seen < request->nodes->len; n_seen++) {
      const TinyNode *node = request->nodes->pdata[n_seen];
      TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
      if (target != NULL && assigned == NULL)
        assigned = g_hash_table_new (NULL, NULL);
      for (guint k = 0; target != NULL && k < tiny_runtime_count_pieces (target); k++)
        is_more |= add_written (
            assigned, tiny_runtime_get_buffer (tiny_runtime_get_piece (target, k)), node);
    }
    if (!is_more)
      return;
    if (waiting == NULL)
      waiting = list_waiting ();
    g_autofree guint8 *facts = find_reading (waiting, assigned);
    for (guint i = 0; i < waiting->len; i++) {
      const Waiting *one = &g_array_index (waiting, Waiting, i);
      TinyNode *reader = find_reader (one, facts);
      if (reader != NULL)
        add_node (request, reader, one->owner);
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
run (TinyRequest *request, GError **error)
{
  tiny_request_survey (request);
  if (!tiny_request_check_placeholders (request, error))
    return FALSE;
  tiny_request_find_constants (request);
  TinyPlan *plan = tiny_request_find_plan (request, error);
  if (plan == NULL)
    return FALSE;
  for (guint i = 0; i < request->buffers->len; i++)
    g_ptr_array_add (request->inputs, tiny_request_get_input (request, i));
  g_ptr_array_set_size (request->outputs, (gint) tiny_plan_get_n_outputs (plan));
  TinyBuffer **outputs = (TinyBuffer **) request->outputs->pdata;
  if (!tiny_plan_run (plan, (TinyBuffer *const *) request->inputs->pdata,
                      (const TinyBoundVariable *) (void *) request->variables->data, outputs,
                      error))
    return FALSE;
  for (guint i = 0; i < request->nodes->len; i++) {
    const TinySpread spread = tiny_plan_get_spread (plan, i);
    g_ptr_array_add (request->results,
                     node_of_outputs (request->nodes->pdata[i], &spread, outputs));
  }
  keep_computed_note (request);
  tiny_runtime_replace ((TinyNode *const *) request->nodes->pdata,
                        (TinyNode *const *) request->results->pdata, request->nodes->len);
  return TRUE;
}

/* ---- what is asked for, and whose it is ---- */
typedef struct {
  TinyRoot *const *roots;
  guint n_roots;
  GHashTable *written; /* TinyBuffer: what reads their old values, unless NULL */
  gboolean assigns;    /* all that waits to be assigned, but for other recordings */
} Wanted;

static void
list_nodes (const Wanted *self, TinyRequest *request)
{
  const guint64 own = tiny_recorders_get_own ();
  tiny_request_init (request);
  for (guint i = 0; i < self->n_roots; i++) {
    const guint64 owner = tiny_recorders_get_owner (self->roots[i]);
    const gboolean is_other = owner != 0 && owner != own;
    add_node (request, self->roots[i]->node, is_other ? owner : tiny_recorders_get_target ());
  }
  g_autoptr (GArray) waiting = self->written != NULL ? list_waiting () : NULL;
  g_autofree guint8 *facts = waiting != NULL && g_hash_table_size (self->written) > 0
                                 ? find_reading (waiting, self->written)
                                 : NULL;
  for (guint i = 0; waiting != NULL && i < waiting->len; i++) {
    const Waiting *one = &g_array_index (waiting, Waiting, i);
    TinyNode *node = NULL;
    if (self->assigns && one->source->op == TINY_OP_ASSIGN && one->owner == own)
      node = one->source;
    else if (facts != NULL)
      node = find_reader (one, facts);
    if (node != NULL)
      add_node (request, node, one->owner);
  }
}

/* What of @request another recording is to have, or no recording: all that is for the first such, *@out_owner. */
static GPtrArray *
list_others (const TinyRequest *request, guint64 *out_owner)
{
  GPtrArray *others = g_ptr_array_new ();
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (tiny_runtime_get_graph (),
                             (TinyNode *const *) request->nodes->pdata, request->nodes->len);
  const guint64 target = tiny_recorders_get_target ();
  for (guint i = 0; i < order->len + request->nodes->len; i++) {
    const gboolean is_part = i < order->len;
    TinyNode *node = is_part ? order->pdata[i] : request->nodes->pdata[i - order->len];
    if (is_part && node->op != TINY_OP_ASSIGN)
      continue;
    const guint64 owner = is_part ? find_owner (node)
                                  : g_array_index (request->owners, guint64, i - order->len);
    if (owner == target || (others->len > 0 && owner != *out_owner))
      continue;
    *out_owner = owner;
    g_ptr_array_add (others, node);
  }
  return others;
}

static gboolean realize_wanted (const Wanted *wanted, GError **error);

/* Realises @nodes as the thread would whose recording @owner is. */
static gboolean
realize_for (guint64 owner, const GPtrArray *nodes, GError **error)
{
  g_autofree TinyRoot *kept = g_new0 (TinyRoot, nodes->len);
  g_autofree TinyRoot **roots = g_new (TinyRoot *, nodes->len);
  const TinyActing before = tiny_recorders_act_for (owner);
  for (guint i = 0; i < nodes->len; i++)
    tiny_runtime_add_root (roots[i] = &kept[i], nodes->pdata[i]);
  gboolean good = realize_wanted (&(Wanted){ roots, nodes->len, NULL, FALSE }, error);
  for (guint i = 0; i < nodes->len; i++)
    tiny_runtime_remove_root (&kept[i]);
  tiny_recorders_act_again (before);
  return good;
}

/* What is for others comes first, unless they wait for one another. */
static gboolean
realize_wanted (const Wanted *wanted, GError **error)
{
  enum { DEEPEST = 4 };
  static guint depth; /* under the lock */
  for (;;) {
    guint64 owner = 0;
    tiny_runtime_sweep (FALSE);
    g_auto (TinyRequest) request = { 0 };
    list_nodes (wanted, &request);
    if (request.nodes->len == 0)
      return TRUE;
    add_readers_of_old_values (&request);
    const gboolean looks = tiny_recorders_is_any () && depth < DEEPEST;
    g_autoptr (GPtrArray) others = looks ? list_others (&request, &owner) : NULL;
    if (others == NULL || others->len == 0)
      return run (&request, error);
    depth++;
    gboolean good = realize_for (owner, others, error);
    depth--;
    if (!good)
      return FALSE;
  }
}

gboolean
tiny_runtime_realize (TinyRoot *const *roots, guint n, GError **error)
{
  tiny_runtime_lock ();
  TinyTiming timing = tiny_timing_begin ("engine", "realize");
  gboolean good = realize_wanted (&(Wanted){ roots, n, NULL, FALSE }, error);
  tiny_timing_end (&timing);
  tiny_runtime_unlock ();
  return good;
}

/* Assigns all that waits and can be computed, one by one. The rest waits on, and is an error of who asks for it. */
static gboolean
realize_each (GError **error)
{
  g_autoptr (GArray) waiting = list_waiting ();
  g_autofree TinyRoot *kept = g_new0 (TinyRoot, waiting->len);
  guint n = 0;
  gboolean goes_on = TRUE;
  for (guint i = 0; i < waiting->len; i++) {
    const Waiting *one = &g_array_index (waiting, Waiting, i);
    if (one->source->op == TINY_OP_ASSIGN && one->owner == 0)
      tiny_runtime_add_root (&kept[n++], one->source);
  }
  for (guint i = 0; i < n && goes_on; i++) {
    g_autoptr (GError) failed = NULL;
    TinyRoot *root = &kept[i];
    goes_on = realize_wanted (&(Wanted){ &root, 1, NULL, FALSE }, &failed)
              || !tiny_interrupt_is_error (failed);
    if (!goes_on)
      g_propagate_error (error, g_steal_pointer (&failed));
  }
  for (guint i = 0; i < n; i++)
    tiny_runtime_remove_root (&kept[i]);
  return goes_on;
}

gboolean
tiny_runtime_realize_readers (GHashTable *written, gboolean and_assignments, GError **error)
{
  g_autoptr (GError) failed = NULL;
  if (realize_wanted (&(Wanted){ NULL, 0, written, and_assignments }, &failed))
    return TRUE;
  /* Assignments of a recording are its own to answer for. */
  if (and_assignments && tiny_recorders_get_own () == 0 && !tiny_interrupt_is_error (failed))
    return realize_each (error) && realize_wanted (&(Wanted){ NULL, 0, written, FALSE }, error);
  g_propagate_error (error, g_steal_pointer (&failed));
  return FALSE;
}

gboolean
tiny_runtime_realize_assignments (GError **error)
{
  g_autoptr (GHashTable) none = g_hash_table_new (NULL, NULL);
  return tiny_runtime_realize_readers (none, TRUE, error);
}

/* ---- looking ---- */
gboolean
tiny_runtime_find_plan (TinyRoot *const *roots, guint n, TinyPlan **out_plan, GError **error)
{
  g_auto (TinyRequest) request = { 0 };
  *out_plan = NULL;
  list_nodes (&(Wanted){ roots, n, NULL, FALSE }, &request);
  if (request.nodes->len == 0)
    return TRUE;
  add_readers_of_old_values (&request);
  tiny_request_survey (&request);
  if (!tiny_request_check_placeholders (&request, error))
    return FALSE;
  tiny_request_find_constants (&request);
  *out_plan = tiny_request_find_plan (&request, error);
  return *out_plan != NULL;
}

char *
tiny_runtime_print (const TinyRoot *root, GError **error)
{
  g_auto (TinyRequest) request = { 0 };
  const char *device = tiny_runtime_get_default_device (error);
  if (device == NULL)
    return NULL;
  tiny_request_init (&request);
  g_array_append_val (request.owners, ((guint64[]){ 0 })[0]);
  g_ptr_array_add (request.nodes, root->node);
  tiny_request_survey (&request);
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  const TinyNode *sink = tiny_request_normalise (&request, graph, device, error);
  return sink == NULL ? NULL : tiny_graph_print (graph, sink->sources[0]);
}
