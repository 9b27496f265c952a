/* SPDX-License-Identifier: MIT
 *
 * tiny-replace.c: exchanges what was realised for the memory that it is in, under every root and in histories.
 *
 * Only what is newer than the oldest node that was realised can be made of it: other roots and expressions are left
 * alone, so the cost is that of the step, not of all that is alive. */
#include "base/tiny-reuse.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-recorders.h"
#include "ir/tiny-shape.h"

/* Distinct nodes and the memory of each. */
typedef struct {
  TinyNode *const *nodes, *const *buffers;
  guint n;
} Realized;

/* For whom a node becomes something. */
typedef enum {
  HERE,  /* what is on the default device, */
  AWAY,  /* or elsewhere; */
  APART, /* other recordings: what was assigned alone is memory */
  N_WAYS
} Way;

/* A node of the order. Older ones than what was realised stay what they are, for that is no part of them. */
typedef struct {
  TinyNode *become[N_WAYS];
  TinyNode *realized; /* its memory, or NULL */
  const char *device; /* that it is on; NULL where nothing says */
} Change;

/* Lists that come again; under the runtime's lock, and nothing here realises. */
typedef struct {
  GPtrArray *pending, *wanting; /* TinyRoot */
  GPtrArray *nodes, *order;
  GPtrArray *kept; /* a node, its buffer, its expression, and so on */
  GPtrArray *sources;
  GArray *changes; /* Change, by place in the order */
} Lists;
static Lists lists;

static Change *
get_change (const TinyNode *node)
{
  return &g_array_index (lists.changes, Change, node->place);
}

/* The device that each node is on. */
static void
find_devices (void)
{
  for (guint i = 0; i < lists.order->len; i++) {
    const TinyNode *node = lists.order->pdata[i];
    Change *change = get_change (node);
    gboolean is_placed
        = node->op == TINY_OP_BUFFER || node->op == TINY_OP_COPY || node->op == TINY_OP_UNSHARD;
    change->device = is_placed ? node->text : NULL;
    if (node->op == TINY_OP_GRADIENT)
      change->device = get_change (node->sources[node->ints->v[0]])->device;
    for (guint s = 0; s < node->n_sources && change->device == NULL; s++)
      change->device = get_change (node->sources[s])->device;
  }
}

/* What waits to be assigned for another recording. */
static gboolean
is_assigned_apart (const TinyNode *node)
{
  const guint64 owner
      = node->op == TINY_OP_ASSIGN ? tiny_recorders_get_running ((guint64) node->arg) : 0;
  return owner != 0 && owner != tiny_recorders_get_own ();
}

static TinyNode *
over_sources (TinyNode *node, Way way)
{
  gboolean is_same = TRUE;
  for (guint s = 0; s < node->n_sources && is_same; s++)
    is_same = get_change (node->sources[s])->become[way] == node->sources[s];
  if (is_same)
    return node;
  tiny_reuse_ptrs (&lists.sources);
  for (guint s = 0; s < node->n_sources; s++)
    g_ptr_array_add (lists.sources, get_change (node->sources[s])->become[way]);
  return tiny_node_with_sources (tiny_runtime_get_graph (), node,
                                 (TinyNode *const *) lists.sources->pdata);
}

/* Facts that have to be known of a node before its value stands for it, by its place in the order. */
enum {
  FACT_FLOWS = 1,     /* gradients flow to a root that wants them */
  FACT_IS_WANTED = 2, /* it is that of such a root, or was */
  FACT_IS_OLD = 4,    /* it reads memory that holds something else now */
};

static void
add_fact (guint8 *facts, const TinyNode *node, guint8 fact)
{
  if (tiny_node_is_in (node, lists.order))
    facts[node->place] |= fact;
}

/* Gives @fact to the memory that @node, if it is an assignment, writes over. */
static void
mark_target (const TinyNode *node, guint8 *facts, guint8 fact)
{
  TinyNode *target = node->op == TINY_OP_ASSIGN ? node->sources[0] : NULL;
  for (guint i = 0; target != NULL && i < tiny_runtime_count_pieces (target); i++)
    add_fact (facts, tiny_runtime_get_piece (target, i), fact);
}

static guint8 *
find_facts (const Realized *realized)
{
  guint8 *facts = g_new0 (guint8, lists.order->len + 1);
  for (guint i = 0; i < lists.wanting->len; i++)
    add_fact (facts, ((TinyRoot *) lists.wanting->pdata[i])->node, FACT_FLOWS | FACT_IS_WANTED);
  for (guint i = 0; i < realized->n; i++)
    mark_target (realized->nodes[i], facts, FACT_IS_OLD);
  for (guint i = 0; i < lists.order->len; i++) {
    const TinyNode *node = lists.order->pdata[i];
    gboolean is_assign = node->op == TINY_OP_ASSIGN;
    if (tiny_history_has (node))
      facts[i] |= FACT_FLOWS;
    if (tiny_history_is_end (node))
      facts[i] |= FACT_FLOWS | FACT_IS_WANTED;
    for (guint s = 0; s < node->n_sources; s++) {
      guint8 source = facts[node->sources[s]->place];
      facts[i] |= tiny_history_flows (node, s) ? source & FACT_FLOWS : 0;
      /* What an assignment gave is what is there now, whatever it was made of. */
      gboolean is_new = node->sources[s]->op == TINY_OP_ASSIGN;
      facts[i] |= (is_assign && s == 0) || is_new ? 0 : source & FACT_IS_OLD;
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
find_roots (guint32 first)
{
  TinyRoot *head = tiny_runtime_get_active_roots ();
  for (TinyRoot *root = head->next_active; root != head; root = root->next_active) {
    if (root->wants_gradients)
      g_ptr_array_add (lists.wanting, root);
    if (root->node->id >= first && !tiny_runtime_is_realized (root->node))
      g_ptr_array_add (lists.pending, root);
  }
}

/* The nodes of what is pending and of histories, and all under them, sources first. */
static void
find_order (guint32 first)
{
  tiny_history_list (first, lists.nodes);
  for (guint i = 0; i < lists.pending->len; i++)
    g_ptr_array_add (lists.nodes, ((TinyRoot *) lists.pending->pdata[i])->node);
  tiny_graph_toposort_into (tiny_runtime_get_graph (), (TinyNode *const *) lists.nodes->pdata,
                            lists.nodes->len, lists.order);
}

static void
make_lists (const Realized *realized, guint32 first)
{
  tiny_reuse_ptrs (&lists.pending);
  tiny_reuse_ptrs (&lists.wanting);
  tiny_reuse_ptrs (&lists.nodes);
  tiny_reuse_ptrs (&lists.order);
  tiny_reuse_ptrs (&lists.kept);
  tiny_reuse_ptrs (&lists.sources);
  find_roots (first);
  find_order (first);
  tiny_reuse_array (&lists.changes, sizeof (Change));
  g_array_set_size (lists.changes, lists.order->len);
  for (guint i = 0; i < lists.order->len; i++) {
    TinyNode *node = lists.order->pdata[i];
    g_array_index (lists.changes, Change, i) = (Change){ .become = { node, node, node } };
  }
  for (guint i = 0; i < realized->n; i++)
    if (tiny_node_is_in (realized->nodes[i], lists.order))
      get_change (realized->nodes[i])->realized = realized->buffers[i];
}

static guint32
find_first (const Realized *realized)
{
  guint32 first = G_MAXUINT32;
  for (guint i = 0; i < realized->n; i++)
    first = MIN (first, realized->nodes[i]->id);
  return first;
}

/* Finds what @node becomes. If gradients flow to what was realised, the node, its buffer and its expression are kept. */
static void
change_node (TinyNode *node, gboolean is_away, gboolean flows)
{
  Change *self = get_change (node);
  TinyNode *buffer = self->realized;
  /* Constants and variables stay what they are for those who compute with them. */
  if (node->op == TINY_OP_CONST || node->op == TINY_OP_VARIABLE)
    buffer = node;
  TinyNode *local = buffer;
  if (tiny_recorders_is_any ())
    self->become[APART]
        = buffer != NULL && node->op == TINY_OP_ASSIGN ? buffer : over_sources (node, APART);
  if (buffer == NULL && is_assigned_apart (node)) {
    self->become[HERE] = self->become[AWAY] = self->become[APART];
    return;
  }
  if (buffer == NULL || flows)
    local = over_sources (node, is_away && node->op != TINY_OP_COPY ? AWAY : HERE);
  if (buffer != NULL) {
    g_ptr_array_add (lists.kept, node);
    g_ptr_array_add (lists.kept, buffer);
    g_ptr_array_add (lists.kept, local);
    local = buffer;
  }
  if (buffer == NULL) {
    local->n_computed = MAX (local->n_computed, node->n_computed);
    local->n_repeats = MAX (local->n_repeats, node->n_repeats);
  }
  self->become[HERE] = local;
  self->become[AWAY] = self->device != NULL ? local : over_sources (node, AWAY);
}

/* A TinyHistoryChange. */
static TinyNode *
change_history (TinyNode *node, gboolean is_apart)
{
  return get_change (node)->become[is_apart ? APART : HERE];
}

/* What no memory places was realised on the default device: roots on other devices go on computing it. */
void
tiny_runtime_replace (TinyNode *const *replaced, TinyNode *const *buffers, guint n)
{
  const Realized all = { replaced, buffers, n }, *realized = &all;
  const guint32 first = find_first (realized);
  expire_histories (realized);
  if (tiny_history_has_grown ())
    drop_histories ();
  make_lists (realized, first);
  find_devices ();
  gboolean keeps = lists.wanting->len > 0 || !tiny_history_is_empty ();
  g_autofree guint8 *facts = keeps ? find_facts (realized) : NULL;
  const char *home = tiny_runtime_get_default_device (NULL);
  for (guint i = 0; i < lists.order->len; i++) {
    TinyNode *node = lists.order->pdata[i];
    const char *device = get_change (node)->device;
    if (node->id >= first)
      change_node (node, device != NULL && g_strcmp0 (device, home) != 0,
                   facts != NULL && (facts[i] & FACT_FLOWS));
  }
  for (guint i = 0; i < lists.pending->len; i++) {
    TinyRoot *root = lists.pending->pdata[i];
    const Change *change = get_change (root->node);
    TinyNode *here = change->realized != NULL ? change->realized : change->become[HERE];
    tiny_runtime_move_root (root,
                            tiny_recorders_is_apart (root) ? change->become[APART] : here);
  }
  tiny_history_replace (change_history, first);
  for (guint i = 0; facts != NULL && i < lists.kept->len; i += 3) {
    const TinyNode *node = lists.kept->pdata[i];
    keep_history (node, facts[node->place], lists.kept->pdata[i + 1], lists.kept->pdata[i + 2]);
  }
}
