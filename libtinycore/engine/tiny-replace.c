/* SPDX-License-Identifier: MIT
 *
 * tiny-replace.c: exchanges what was realised for the memory that it is in, under every root and in histories.
 *
 * Only what is newer than the oldest node that was realised can be made of it: other roots and expressions are left
 * alone, so the cost is that of the step, not of all that is alive. */
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-recorders.h"
#include "ir/tiny-shape.h"

/* Distinct nodes and the memory of each. */
typedef struct {
  TinyNode *const *nodes, *const *buffers;
  guint n;
} Realized;

/* The device that each node of @order is on; NULL where nothing says. */
static void
find_devices (GPtrArray *order, const char **out)
{
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    gboolean is_placed
        = node->op == TINY_OP_BUFFER || node->op == TINY_OP_COPY || node->op == TINY_OP_UNSHARD;
    out[node->id] = is_placed ? node->text : NULL;
    if (node->op == TINY_OP_GRADIENT)
      out[node->id] = out[node->sources[node->ints->v[0]]->id];
    for (guint s = 0; s < node->n_sources && out[node->id] == NULL; s++)
      out[node->id] = out[node->sources[s]->id];
  }
}

/* What nodes with ids from @first on have become, by id less @first: older ones stay, for what is realised
 * is no part of them. */
typedef struct {
  guint32 first;
  TinyNode **here, **away; /* on the default device and elsewhere */
  TinyNode **apart;        /* for other recordings: what was assigned alone is memory */
  TinyNode **realized;     /* or NULL */
} Changes;

/* What waits to be assigned for another recording. */
static gboolean
is_assigned_apart (const TinyNode *node)
{
  const guint64 owner
      = node->op == TINY_OP_ASSIGN ? tiny_recorders_get_running ((guint64) node->arg) : 0;
  return owner != 0 && owner != tiny_recorders_get_own ();
}

static TinyNode *
over_sources (const Changes *self, TinyNode *node, TinyNode *const *changed, GPtrArray *sources)
{
  g_ptr_array_set_size (sources, 0);
  for (guint s = 0; s < node->n_sources; s++) {
    TinyNode *source = node->sources[s];
    g_ptr_array_add (sources,
                     source->id < self->first ? source : changed[source->id - self->first]);
  }
  return tiny_node_with_sources (tiny_runtime_get_graph (), node,
                                 (TinyNode *const *) sources->pdata);
}

/* What has to be known of a node before its value takes its place, by its id. */
enum {
  FACT_FLOWS = 1,     /* gradients flow to a root that wants them */
  FACT_IS_WANTED = 2, /* it is that of such a root, or was */
  FACT_IS_OLD = 4,    /* it reads memory that holds something else now */
};

/* Gives @fact to the memory that @node, if it is an assignment, writes over. */
static void
mark_target (const TinyNode *node, guint8 *facts, guint8 fact)
{
  TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
  for (guint i = 0; target != NULL && i < tiny_runtime_count_pieces (target); i++)
    facts[tiny_runtime_get_piece (target, i)->id] |= fact;
}

static guint8 *
find_facts (const Realized *realized, GPtrArray *order, GPtrArray *wanting)
{
  guint8 *facts = g_new (guint8, tiny_graph_get_n_nodes (tiny_runtime_get_graph ()));
  for (guint i = 0; i < order->len; i++)
    facts[((TinyNode *) order->pdata[i])->id] = 0;
  for (guint i = 0; i < wanting->len; i++)
    facts[((TinyRoot *) wanting->pdata[i])->node->id] = FACT_FLOWS | FACT_IS_WANTED;
  for (guint i = 0; i < realized->n; i++)
    mark_target (realized->nodes[i], facts, FACT_IS_OLD);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    gboolean is_assign = node->op == TINY_OP_ASSIGN;
    if (tiny_history_has (node))
      facts[node->id] |= FACT_FLOWS;
    if (tiny_history_is_end (node))
      facts[node->id] |= FACT_FLOWS | FACT_IS_WANTED;
    for (guint s = 0; s < node->n_sources; s++) {
      guint8 source = facts[node->sources[s]->id];
      facts[node->id] |= tiny_history_flows (node, s) ? source & FACT_FLOWS : 0;
      /* What an assignment gave is what is there now, whatever it was made of. */
      gboolean is_new = node->sources[s]->op == TINY_OP_ASSIGN;
      facts[node->id] |= (is_assign && s == 0) || is_new ? 0 : source & FACT_IS_OLD;
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
  if (is_assign && !tiny_history_is_end (node))
    tiny_history_forget (buffer);
  if (!(facts & FACT_FLOWS) || (facts & FACT_IS_WANTED) || !tiny_dtype_is_float (node->dtype)
      || (is_assign && is_old))
    return;
  tiny_history_keep (buffer, is_old ? NULL : is_assign ? expression->sources[1] : expression);
}

/* Drops the histories of what is dead. */
static void
drop_histories (void)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next)
    g_ptr_array_add (all, root->node);
  g_autoptr (GPtrArray) order = tiny_history_toposort (
      tiny_runtime_get_graph (), (TinyNode *const *) all->pdata, all->len);
  tiny_history_retain (order);
}

static void
expire_histories (const Realized *realized)
{
  for (guint i = 0; i < realized->n; i++) {
    const TinyNode *node = realized->nodes[i];
    TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
    for (guint k = 0; target != NULL && k < tiny_runtime_count_pieces (target); k++)
      tiny_history_expire_of (tiny_runtime_get_buffer (tiny_runtime_get_piece (target, k)));
  }
}

/* The roots whose value may change when the nodes from @first on do, and those that want gradients. */
static void
find_roots (guint32 first, GPtrArray *pending, GPtrArray *wanting)
{
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    if (root->wants_gradients)
      g_ptr_array_add (wanting, root);
    if (root->node->id >= first && !tiny_runtime_is_realized (root->node))
      g_ptr_array_add (pending, root);
  }
}

/* The nodes of @pending and of histories, and all under them, sources first. */
static GPtrArray *
find_order (guint32 first, const GPtrArray *pending)
{
  g_autoptr (GPtrArray) nodes = tiny_history_list (first);
  for (guint i = 0; i < pending->len; i++)
    g_ptr_array_add (nodes, ((TinyRoot *) pending->pdata[i])->node);
  return tiny_graph_toposort (tiny_runtime_get_graph (), (TinyNode *const *) nodes->pdata,
                              nodes->len);
}

static guint32
find_first (const Realized *realized)
{
  guint32 first = G_MAXUINT32;
  for (guint i = 0; i < realized->n; i++)
    first = MIN (first, realized->nodes[i]->id);
  return first;
}

/* What @node becomes, and in @kept, if gradients flow to what was realised: the node, its buffer, its expression. */
static void
change (Changes *self,
        TinyNode *node,
        gboolean is_placed,
        gboolean is_away,
        gboolean flows,
        GPtrArray *kept)
{
  guint at = node->id - self->first;
  TinyNode *buffer = self->realized[at];
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  /* Constants and variables stay what they are for those who compute with them. */
  if (node->op == TINY_OP_CONST || node->op == TINY_OP_VARIABLE)
    buffer = node;
  TinyNode *local = buffer;
  if (tiny_recorders_is_any ())
    self->apart[at] = buffer != NULL && node->op == TINY_OP_ASSIGN
                          ? buffer
                          : over_sources (self, node, self->apart, sources);
  if (buffer == NULL && is_assigned_apart (node)) {
    self->here[at] = self->away[at] = self->apart[at];
    return;
  }
  if (buffer == NULL || flows)
    local = over_sources (
        self, node, is_away && node->op != TINY_OP_COPY ? self->away : self->here, sources);
  if (buffer != NULL) {
    g_ptr_array_add (kept, node);
    g_ptr_array_add (kept, buffer);
    g_ptr_array_add (kept, local);
    local = buffer;
  }
  if (buffer == NULL)
    local->n_computed = MAX (local->n_computed, node->n_computed);
  self->here[at] = local;
  self->away[at] = is_placed ? local : over_sources (self, node, self->away, sources);
}

/* What no memory places was realised on the default device: roots on other devices go on computing it. */
void
tiny_runtime_replace (TinyNode *const *replaced, TinyNode *const *buffers, guint n)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  const Realized all = { replaced, buffers, n }, *realized = &all;
  guint32 first = find_first (realized);
  g_autoptr (GPtrArray) pending = g_ptr_array_new (), wanting = g_ptr_array_new ();
  g_autoptr (GPtrArray) kept = g_ptr_array_new (); /* node, its buffer, its expression */
  expire_histories (realized);
  if (tiny_history_has_grown ())
    drop_histories ();
  find_roots (first, pending, wanting);
  g_autoptr (GPtrArray) order = find_order (first, pending);
  guint n_nodes = tiny_graph_get_n_nodes (graph), n_recent = n_nodes - first;
  /* Of the nodes in order alone: all that are recent may be many. */
  g_autofree TinyNode **changed = g_new (TinyNode *, 4 * n_recent);
  Changes changes
      = { first, changed, changed + n_recent, changed + 2 * n_recent, changed + 3 * n_recent };
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->id >= first)
      changes.realized[((TinyNode *) order->pdata[i])->id - first] = NULL;
  for (guint i = 0; i < realized->n; i++)
    changes.realized[replaced[i]->id - first] = buffers[i];
  g_autofree const char **devices = g_new (const char *, n_nodes);
  find_devices (order, devices);
  gboolean keeps = wanting->len > 0 || !tiny_history_is_empty ();
  g_autofree guint8 *facts = keeps ? find_facts (realized, order, wanting) : NULL;
  const char *home = tiny_runtime_get_default_device (NULL);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    const char *device = devices[node->id];
    if (node->id >= first)
      change (&changes, node, device != NULL, device != NULL && g_strcmp0 (device, home) != 0,
              facts != NULL && (facts[node->id] & FACT_FLOWS), kept);
  }
  for (guint i = 0; i < pending->len; i++) {
    TinyRoot *root = pending->pdata[i];
    guint at = root->node->id - first;
    TinyNode *here = changes.realized[at] != NULL ? changes.realized[at] : changes.here[at];
    root->node = tiny_recorders_is_apart (root) ? changes.apart[at] : here;
  }
  tiny_history_replace (changes.here, changes.apart, first);
  for (guint i = 0; facts != NULL && i < kept->len; i += 3)
    keep_history (kept->pdata[i], facts[((TinyNode *) kept->pdata[i])->id], kept->pdata[i + 1],
                  kept->pdata[i + 2]);
}
