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

typedef struct {
  guint n_ranges, n_outer, level;
  TinyNode *const *outer;   /* interned */
  TinyNode **ranges, **own; /* as the kernel says, and as this nest uses them */
} Nest;

typedef struct {
  TinyGraph *graph;
  TinyNodeMap map, levels, claims; /* new node; depth of reduces; non-NULL: range is taken */
  GPtrArray *nests;
  guint n_numbers;
} Loops;

static void
nest_free (Nest *nest)
{
  g_free (nest->ranges);
  g_free (nest->own);
  g_free (nest);
}

static void
loops_clear (Loops *self)
{
  tiny_node_map_clear (&self->map);
  tiny_node_map_clear (&self->levels);
  tiny_node_map_clear (&self->claims);
  g_ptr_array_unref (self->nests);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Loops, loops_clear)

static Nest *
find_nest (Loops *self, Nest *wanted)
{
  for (guint i = 0; i < self->nests->len; i++) {
    Nest *nest = self->nests->pdata[i];
    if (nest->level == wanted->level && nest->n_ranges == wanted->n_ranges
        && nest->n_outer == wanted->n_outer
        && memcmp (nest->ranges, wanted->ranges, wanted->n_ranges * sizeof (gpointer)) == 0
        && memcmp (nest->outer, wanted->outer, wanted->n_outer * sizeof (gpointer)) == 0)
      return nest;
  }
  return NULL;
}

/* The range itself for whom comes first, a fresh one for others. */
static TinyNode *
claim_range (Loops *self, TinyNode *range)
{
  if (tiny_node_map_get (&self->claims, range) == NULL) {
    tiny_node_map_set (&self->claims, range, range);
    return range;
  }
  TinyNode *fresh = tiny_node_range (self->graph, self->n_numbers++,
                                     tiny_range_get_kind (range), range->sources[0]);
  tiny_node_map_set (&self->claims, fresh, fresh);
  return fresh;
}

static TinyNode *
separate_reduce (Loops *self, TinyNode *node, guint level)
{
  TinyGraph *graph = self->graph;
  TinyNode *value = tiny_node_map_get (&self->map, node->sources[0]);
  g_autofree TinyNode **sources = g_new (TinyNode *, node->n_sources);
  guint n = 1;
  sources[0] = value;
  for (guint i = 1; i < node->n_sources; i++) {
    if (tiny_range_get_extent (node->sources[i]) <= 0)
      return tiny_reduce_identity (graph, node->arg, node->dtype, node->lanes);
    if (tiny_range_get_extent (node->sources[i]) > 1)
      sources[n++] = node->sources[i];
  }
  if (n == 1)
    return value;
  TinyNode *closed = tiny_node_new (graph, TINY_OP_REDUCE, node->dtype, node->lanes, n, sources,
                                    node->arg, NULL, NULL);
  Nest wanted = { .n_ranges = n - 1, .level = level, .ranges = sources + 1 };
  wanted.outer = tiny_node_get_ranges (graph, closed, &wanted.n_outer);
  Nest *nest = find_nest (self, &wanted);
  if (nest == NULL) {
    nest = g_memdup2 (&wanted, sizeof wanted);
    nest->ranges = g_memdup2 (sources + 1, (n - 1) * sizeof (gpointer));
    nest->own = g_new (TinyNode *, n - 1);
    for (guint i = 0; i < n - 1; i++)
      nest->own[i] = claim_range (self, nest->ranges[i]);
    g_ptr_array_add (self->nests, nest);
  }
  sources[0] = tiny_codegen_replace (graph, value, nest->ranges, nest->own, n - 1);
  for (guint i = 1; i < n; i++)
    sources[i] = nest->own[i - 1];
  return tiny_node_new (graph, TINY_OP_REDUCE, node->dtype, node->lanes, n, sources, node->arg,
                        NULL, NULL);
}

static TinyNode *
separate_node (Loops *self, TinyNode *node)
{
  guint level = 0;
  g_autofree TinyNode **many = node->n_sources > 8 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[8], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++) {
    sources[i] = tiny_node_map_get (&self->map, node->sources[i]);
    level = MAX (level, GPOINTER_TO_UINT (tiny_node_map_get (&self->levels, node->sources[i])));
  }
  if (node->op == TINY_OP_REDUCE)
    level++;
  tiny_node_map_set (&self->levels, node, GUINT_TO_POINTER (level));
  if (node->op == TINY_OP_REDUCE)
    return separate_reduce (self, node, level);
  if (node->op == TINY_OP_RANGE)
    return tiny_range_get_extent (node) == 1 ? tiny_node_const_index (self->graph, 0) : node;
  if (node->n_sources == 0)
    return node;
  return tiny_fold_node (self->graph, node, node->lanes, sources);
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

/* The loops of a kernel's stores form a tree: a range has one parent. A store whose loops do not
 * fit into the tree of those before it gets fresh ones from where it leaves it. */
static TinyNode *
fit_store (Loops *self, TinyNode *store, TinyNodeMap *parents)
{
  guint n;
  g_autofree TinyNode **loops = tiny_codegen_get_loops (self->graph, store, &n);
  g_autofree TinyNode **own = g_memdup2 (loops, n * sizeof (gpointer));
  gpointer parent = self; /* any pointer that is no node: the root */
  gboolean along = TRUE, renames = FALSE;
  for (guint i = 0; i < n; i++) {
    gpointer known = tiny_node_map_get (parents, loops[i]);
    along = along && known == parent;
    renames = renames || (known != NULL && !along);
    if (renames)
      own[i] = tiny_node_range (self->graph, self->n_numbers++, TINY_RANGE_LOOP,
                                loops[i]->sources[0]);
    else if (known == NULL)
      along = FALSE;
    tiny_node_map_set (parents, own[i], parent);
    parent = own[i];
  }
  return tiny_codegen_replace (self->graph, store, loops, own, n);
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
  self.nests = g_ptr_array_new_with_free_func ((GDestroyNotify) nest_free);
  g_autoptr (GPtrArray) stores = g_ptr_array_new ();
  g_auto (TinyNodeMap) parents = { 0 };
  for (guint i = 0; i < cg->root->n_sources; i++) {
    guint n;
    TinyNode *const *ranges = tiny_node_get_ranges (graph, cg->root->sources[i], &n);
    for (guint j = 0; j < n; j++)
      tiny_node_map_set (&self.claims, ranges[j], ranges[j]);
  }
  self.n_numbers = tiny_codegen_count_ranges (graph, cg->root);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &cg->root, 1);
  for (guint i = 0; i + 1 < order->len; i++)
    tiny_node_map_set (&self.map, order->pdata[i], separate_node (&self, order->pdata[i]));
  for (guint i = 0; i < cg->root->n_sources; i++) {
    TinyNode *store = tiny_node_map_get (&self.map, cg->root->sources[i]);
    if (!is_empty (graph, store))
      g_ptr_array_add (stores, fit_store (&self, store, &parents));
  }
  cg->root
      = tiny_node_sink (graph, stores->len, (TinyNode *const *) stores->pdata, cg->root->text);
  return TRUE;
}
