/* SPDX-License-Identifier: MIT
 *
 * pass-loops.c: gives every loop nest ranges of its own.
 *
 * A kernel may use one RANGE as an output loop and close it in several REDUCEs. Loops that can run
 * as one keep sharing it: REDUCEs over the same ranges, inside the same other loops, at the same
 * depth of reduces below them (so that none needs another's result). All others get fresh ranges.
 * Afterwards a range belongs to one nest, so what is done to it later is done to that nest. Ranges
 * of extent 1 become the constant 0; a REDUCE over an empty range is its neutral element, a STORE
 * in an empty loop never happens. Output loops come to nest by ascending range number. */
#include "codegen/codegen-private.h"

#include <string.h>

/* What a range is inside of some loops. */
typedef struct {
  TinyNode *from, *to;
} Binding;

typedef struct {
  guint n_ranges, n_outer, level;
  TinyNode **ranges, **outer; /* as the kernel says; those around it, as they are now */
  TinyNode **own;             /* the ranges as this nest uses them */
} Nest;

/* A node where its ranges mean something else than what they are: what it became. */
typedef struct {
  TinyNode *node, *result;
  guint n;
  TinyNode *ranges[];
} Renamed;

typedef struct {
  TinyGraph *graph;
  TinyNodeMap plain, levels,
      claims; /* what a node became where its ranges are themselves; depth
                                        of reduces; non-NULL: the range is taken */
  GHashTable *renamed;
  GArray *scope;             /* Binding, the innermost last */
  GPtrArray *nests, *stores; /* the stores that have loops of their own already */
  guint n_numbers;
} Loops;

static void
nest_free (Nest *nest)
{
  g_free (nest->ranges);
  g_free (nest->outer);
  g_free (nest->own);
  g_free (nest);
}

static guint
renamed_hash (gconstpointer key)
{
  const Renamed *self = key;
  guint hash = self->node->id;
  for (guint i = 0; i < self->n; i++)
    hash = hash * 31 + self->ranges[i]->id;
  return hash;
}

static gboolean
renamed_equal (gconstpointer a, gconstpointer b)
{
  const Renamed *x = a, *y = b;
  return x->node == y->node && x->n == y->n
         && (x->n == 0 || memcmp (x->ranges, y->ranges, x->n * sizeof (gpointer)) == 0);
}

static void
loops_clear (Loops *self)
{
  tiny_node_map_clear (&self->plain);
  tiny_node_map_clear (&self->levels);
  tiny_node_map_clear (&self->claims);
  g_hash_table_unref (self->renamed);
  g_array_unref (self->scope);
  g_ptr_array_unref (self->nests);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Loops, loops_clear)

static TinyNode *
look_up (Loops *self, TinyNode *range)
{
  for (guint i = self->scope->len; i-- > 0;)
    if (g_array_index (self->scope, Binding, i).from == range)
      return g_array_index (self->scope, Binding, i).to;
  return tiny_range_get_extent (range) == 1 ? tiny_node_const_index (self->graph, 0) : range;
}

/* ---- nests ---- */
/* The range itself for whom comes first, a fresh one for others. */
static TinyNode *
claim_range (Loops *self, TinyNode *range)
{
  TinyNode *own = range;
  if (tiny_node_map_get (&self->claims, range) != NULL)
    own = tiny_node_range (self->graph, self->n_numbers++, tiny_range_get_kind (range),
                           range->sources[0]);
  tiny_node_map_set (&self->claims, own, own);
  return own;
}

static gboolean
is_same_nest (const Nest *x, const Nest *y)
{
  return x->level == y->level && x->n_ranges == y->n_ranges && x->n_outer == y->n_outer
         && memcmp (x->ranges, y->ranges, x->n_ranges * sizeof (gpointer)) == 0
         && memcmp (x->outer, y->outer, x->n_outer * sizeof (gpointer)) == 0;
}

/* Takes @wanted. */
static Nest *
find_nest (Loops *self, Nest *wanted)
{
  for (guint i = 0; i < self->nests->len; i++)
    if (is_same_nest (self->nests->pdata[i], wanted)) {
      nest_free (wanted);
      return self->nests->pdata[i];
    }
  wanted->own = g_new (TinyNode *, wanted->n_ranges);
  for (guint i = 0; i < wanted->n_ranges; i++)
    wanted->own[i] = claim_range (self, wanted->ranges[i]);
  g_ptr_array_add (self->nests, wanted);
  return wanted;
}

static TinyNode *separate (Loops *self, TinyNode *node);

static TinyNode *
separate_reduce (Loops *self, TinyNode *node)
{
  guint n_outer, depth = self->scope->len;
  TinyNode *const *outer = tiny_node_get_ranges (self->graph, node, &n_outer);
  Nest *nest = g_new0 (Nest, 1);
  nest->level = GPOINTER_TO_UINT (tiny_node_map_get (&self->levels, node));
  nest->ranges = g_new (TinyNode *, node->n_sources);
  nest->outer = g_new (TinyNode *, n_outer + 1);
  for (guint i = 0; i < n_outer; i++)
    nest->outer[nest->n_outer++] = look_up (self, outer[i]);
  for (guint i = 1; i < node->n_sources; i++) {
    if (tiny_range_get_extent (node->sources[i]) <= 0) {
      nest_free (nest);
      return tiny_reduce_identity (self->graph, node->arg, node->dtype, node->lanes);
    }
    if (tiny_range_get_extent (node->sources[i]) > 1)
      nest->ranges[nest->n_ranges++] = node->sources[i];
  }
  nest = find_nest (self, nest);
  for (guint i = 0; i < nest->n_ranges; i++)
    g_array_append_val (self->scope, ((Binding){ nest->ranges[i], nest->own[i] }));
  g_autofree TinyNode **sources = g_new (TinyNode *, nest->n_ranges + 1);
  sources[0] = separate (self, node->sources[0]);
  g_array_set_size (self->scope, depth);
  if (nest->n_ranges == 0)
    return sources[0];
  memcpy (sources + 1, nest->own, nest->n_ranges * sizeof (gpointer));
  return tiny_node_new (self->graph, TINY_OP_REDUCE, node->dtype, node->lanes,
                        nest->n_ranges + 1, sources, node->arg, NULL, NULL);
}

static TinyNode *
separate_sources (Loops *self, TinyNode *node)
{
  if (node->op == TINY_OP_RANGE)
    return look_up (self, node);
  if (node->op == TINY_OP_REDUCE)
    return separate_reduce (self, node);
  if (node->n_sources == 0)
    return node;
  g_autofree TinyNode **many = node->n_sources > 8 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[8], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = separate (self, node->sources[i]);
  return tiny_fold_node (self->graph, node, node->lanes, sources);
}

/* @node inside the loops in scope. What it becomes depends on what its own ranges mean there. */
static TinyNode *
separate (Loops *self, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, node, &n);
  gboolean is_plain = TRUE;
  g_autofree Renamed *key = g_malloc (sizeof (Renamed) + n * sizeof (gpointer));
  *key = (Renamed){ node, NULL, n };
  for (guint i = 0; i < n; i++) {
    key->ranges[i] = look_up (self, ranges[i]);
    is_plain = is_plain && key->ranges[i] == ranges[i];
  }
  TinyNode *result;
  if (is_plain) {
    result = tiny_node_map_get (&self->plain, node);
  } else {
    Renamed *known = g_hash_table_lookup (self->renamed, key);
    result = known ? known->result : NULL;
  }
  if (result != NULL)
    return result;
  result = separate_sources (self, node);
  if (is_plain) {
    tiny_node_map_set (&self->plain, node, result);
  } else {
    key->result = result;
    g_hash_table_add (self->renamed, g_steal_pointer (&key));
  }
  return result;
}

/* How many REDUCEs deep each node is. What reads LOCAL memory is deeper than all that fills it. */
static void
find_levels (Loops *self, GPtrArray *order)
{
  g_auto (TinyNodeMap) locals = { 0 };
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    guint level = 0;
    for (guint s = 0; s < node->n_sources; s++)
      level
          = MAX (level, GPOINTER_TO_UINT (tiny_node_map_get (&self->levels, node->sources[s])));
    level += node->op == TINY_OP_REDUCE;
    if (node->op == TINY_OP_STORE && node->sources[0]->op == TINY_OP_LOCAL)
      tiny_node_map_set (&locals, node->sources[0], GUINT_TO_POINTER (level + 1));
    if (node->op == TINY_OP_LOAD)
      level = MAX (level, GPOINTER_TO_UINT (tiny_node_map_get (&locals, node->sources[0])));
    tiny_node_map_set (&self->levels, node, GUINT_TO_POINTER (level));
  }
}

/* ---- output loops ---- */
static int
compare_numbers (gconstpointer a, gconstpointer b)
{
  guint x = tiny_range_get_number (*(TinyNode *const *) a);
  guint y = tiny_range_get_number (*(TinyNode *const *) b);
  return x < y ? -1 : x > y;
}

TinyNode **
tiny_codegen_get_loops (TinyGraph *graph, TinyNode *store, guint *out_n)
{
  TinyNode *const *ranges = tiny_node_get_ranges (graph, store, out_n);
  TinyNode **sorted = g_memdup2 (ranges, *out_n * sizeof (gpointer));
  if (*out_n > 0)
    qsort (sorted, *out_n, sizeof (gpointer), compare_numbers);
  return sorted;
}

/* Adds to @memories those that products read which are summed for each round of @loop. FALSE:
 * memory of the kernel stands in that loop. */
static gboolean
find_operands (TinyGraph *graph, TinyNode *store, TinyNode *loop, GHashTable *memories)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOCAL && tiny_node_depends_on (graph, node, loop))
      return FALSE;
    if (node->op != TINY_OP_REDUCE || node->sources[0]->op != TINY_OP_MUL
        || !tiny_node_depends_on (graph, node, loop))
      continue;
    for (guint s = 0; s < 2; s++)
      if (node->sources[0]->sources[s]->op == TINY_OP_LOAD)
        g_hash_table_add (memories, node->sources[0]->sources[s]->sources[0]);
  }
  return TRUE;
}

/* True where @store sums products along @loop, as stores before it do, and none of its operands is
 * one of theirs. A tile for both at once would have half the columns, or rows, and save no load. */
static gboolean
shares_nothing (Loops *self, TinyNode *store, TinyNode *loop)
{
  g_autoptr (GHashTable) own = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) others = g_hash_table_new (NULL, NULL);
  if (!find_operands (self->graph, store, loop, own) || g_hash_table_size (own) == 0)
    return FALSE;
  for (guint i = 0; i < self->stores->len; i++)
    if (tiny_node_depends_on (self->graph, self->stores->pdata[i], loop))
      find_operands (self->graph, self->stores->pdata[i], loop, others);
  GHashTableIter iter;
  gpointer memory;
  g_hash_table_iter_init (&iter, own);
  while (g_hash_table_iter_next (&iter, &memory, NULL))
    if (g_hash_table_contains (others, memory))
      return FALSE;
  return g_hash_table_size (others) > 0;
}

/* The loops of a kernel's stores form a tree: a range has one parent. A store whose loops do not
 * fit into the tree of those before it gets fresh ones from where it leaves it; so does one that
 * sums products of other operands along the innermost. */
static TinyNode *
separate_store (Loops *self, TinyNode *store, TinyNodeMap *parents)
{
  guint n;
  g_autofree TinyNode **loops = tiny_codegen_get_loops (self->graph, store, &n);
  gpointer parent = self; /* any pointer that is no node: the root */
  gboolean along = TRUE, renames = FALSE;
  gboolean apart = n > 1 && shares_nothing (self, store, loops[n - 1]);
  for (guint i = 0; i < n; i++) {
    if (tiny_range_get_extent (loops[i]) == 1)
      continue;
    gpointer known = tiny_node_map_get (parents, loops[i]);
    Binding binding = { loops[i], loops[i] };
    along = along && known == parent && !(apart && i == n - 1);
    renames = renames || (known != NULL && !along);
    if (renames)
      binding.to = tiny_node_range (self->graph, self->n_numbers++, TINY_RANGE_LOOP,
                                    loops[i]->sources[0]);
    tiny_node_map_set (parents, binding.to, parent);
    tiny_node_map_set (&self->claims, binding.to, binding.to);
    parent = binding.to;
    g_array_append_val (self->scope, binding);
  }
  TinyNode *result = separate (self, store);
  g_array_set_size (self->scope, 0);
  return result;
}

static gboolean
is_empty (TinyGraph *graph, TinyNode *store)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, store, &n);
  for (guint i = 0; i < n; i++)
    if (tiny_range_get_extent (ranges[i]) <= 0)
      return TRUE;
  return store->n_sources == 4 && tiny_node_is_const_int (store->sources[3], 0);
}

gboolean
tiny_pass_loops (TinyCodegen *cg, GError **error)
{
  TinyGraph *graph = cg->graph;
  g_auto (Loops) self = { .graph = graph };
  self.renamed = g_hash_table_new_full (renamed_hash, renamed_equal, g_free, NULL);
  self.scope = g_array_new (FALSE, FALSE, sizeof (Binding));
  self.nests = g_ptr_array_new_with_free_func ((GDestroyNotify) nest_free);
  g_autoptr (GPtrArray) stores = self.stores = g_ptr_array_new ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &cg->root, 1);
  g_auto (TinyNodeMap) parents = { 0 };
  find_levels (&self, order);
  self.n_numbers = tiny_codegen_count_ranges (graph, cg->root);
  for (guint i = 0; i < cg->root->n_sources; i++) {
    guint n;
    TinyNode *const *ranges = tiny_node_get_ranges (graph, cg->root->sources[i], &n);
    for (guint j = 0; j < n; j++)
      tiny_node_map_set (&self.claims, ranges[j], ranges[j]);
  }
  for (guint i = 0; i < cg->root->n_sources; i++)
    if (!is_empty (graph, cg->root->sources[i]))
      g_ptr_array_add (stores, separate_store (&self, cg->root->sources[i], &parents));
  cg->root
      = tiny_node_sink (graph, stores->len, (TinyNode *const *) stores->pdata, cg->root->text);
  return TRUE;
}
