/* SPDX-License-Identifier: MIT
 *
 * pass-blocks.c: long sums of floats are made of the sums of blocks.
 *
 *   reduce (x (r), r)  →  reduce (reduce (x (o * B + i), i), o)
 *
 * Each addition rounds by some part of what was summed up so far, so the error of n additions in a row grows with
 * the root of n, that of m blocks with the root of m + n / m², which is least where m is the cube root of n (blocked
 * summation: N. J. Higham, "The accuracy of floating point summation", 1993). With blocks of blocks it is least
 * where there are n^(3/7) blocks.
 *
 * The sums of a tile want all registers: they wait in memory while those of the next block are made, which takes as
 * long as some five rounds. So there blocks are longer than that, and there are no blocks of them.
 *
 * What is counted are additions to one accumulator, of those axes that neither copies nor lanes took. Blocks are the
 * innermost ranges of a nest, and a part of the next one where they are short: a divisor of its extent, or the last
 * block ends earlier. REDUCEs of one nest stay in one nest, whatever they combine. A range that LOCAL memory is
 * filled along stays whole. */
#include "codegen/codegen-private.h"

#include <math.h>
#include <string.h>

#include "rewrite/tiny-bounds.h"

/* FEW accumulators have room in registers beside the sums of their blocks. The others count additions. */
enum { FEW = 8, BLOCK = 64, BLOCK_OF_BLOCKS = 8, TILE_BLOCK = 256, LEAST_BLOCK = 16 };

/* REDUCEs over the same ranges. */
typedef struct {
  GPtrArray *members;
  guint n_inner;                 /* the last of its ranges that are inside of a block */
  gint64 part;                   /* how much of the range before these is as well; 1: nothing */
  TinyNode *o, *i;               /* the ranges that this one becomes */
  gboolean is_block, has_blocks; /* it is summed up by another nest; it sums up one */
  gboolean is_tile;              /* its sums want all registers */
  gboolean is_parted;            /* FALSE: it stays as it is */
} Nest;

typedef struct {
  TinyCodegen *cg;
  TinyNodeMap nests, parted, filled, map; /* of a RANGE: the Nest it is the first range of; that
                          it is parted for; non-NULL: LOCAL memory has it; of nodes: what they became */
  GPtrArray *all_nests;
  guint n_numbers;
} Blocks;

static void
nest_free (Nest *nest)
{
  g_ptr_array_unref (nest->members);
  g_free (nest);
}

static void
blocks_clear (Blocks *self)
{
  tiny_node_map_clear (&self->nests);
  tiny_node_map_clear (&self->parted);
  tiny_node_map_clear (&self->filled);
  tiny_node_map_clear (&self->map);
  g_ptr_array_unref (self->all_nests);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Blocks, blocks_clear)

/* ---- where the blocks are ---- */
/* How often its loop runs at most. */
static gint64
count_rounds (TinyNode *range)
{
  return MAX (tiny_node_get_max (range->sources[0]), 1);
}

/* How many additions to its accumulator a round makes for @reduce, if these round. */
static gint64
count_additions (Blocks *self, TinyNode *reduce)
{
  if (reduce->arg != TINY_OP_ADD || !tiny_dtype_is_float (reduce->dtype))
    return 0;
  return MAX (tiny_codegen_count_products (self->cg->target, reduce->sources[0]), 1);
}

/* The size of blocks of @range near @wanted: the nearest divisor, all of it included, if one is near. */
static gint64
choose_part (TinyNode *range, gint64 wanted)
{
  gint64 rounds = count_rounds (range), best = 0, n_blocks = (rounds + wanted - 1) / wanted;
  for (gint64 i = wanted / 2 + 1; i <= 2 * wanted && range->sources[0]->op == TINY_OP_CONST;
       i++)
    if (rounds % i == 0
        && (best == 0
            || MAX (i, wanted) * MIN (best, wanted) <= MAX (best, wanted) * MIN (i, wanted)))
      best = i;
  return best > 0 ? best : (rounds + n_blocks - 1) / n_blocks;
}

static gboolean
can_part (Blocks *self, Nest *nest, TinyNode *range)
{
  for (guint i = 0; i < nest->members->len; i++)
    if (tiny_node_depends_on (self->cg->graph,
                              ((TinyNode *) nest->members->pdata[i])->sources[0], range))
      return tiny_node_map_get (&self->filled, range) == NULL;
  return FALSE;
}

static gboolean
are_alike (Nest *nest)
{
  TinyNode *first = nest->members->pdata[0];
  for (guint i = 1; i < nest->members->len; i++) {
    TinyNode *other = nest->members->pdata[i];
    if (other->n_sources != first->n_sources
        || memcmp (other->sources + 1, first->sources + 1,
                   (first->n_sources - 1) * sizeof (gpointer))
               != 0)
      return FALSE;
  }
  return TRUE;
}

/* How long blocks of @n additions are to be; 0: there are to be none. */
static gint64
choose_block (Nest *nest, gint64 n)
{
  if (nest->is_block || (nest->is_tile && nest->has_blocks))
    return 0;
  if (nest->is_tile)
    return n > TILE_BLOCK * 3 / 2 ? MAX (TILE_BLOCK, (gint64) (1.5 * pow (n, 2. / 3))) : 0;
  if (nest->has_blocks)
    return n > 2 * BLOCK_OF_BLOCKS ? MAX (BLOCK_OF_BLOCKS, (gint64) pow (n, 2. / 3)) : 0;
  return n > 2 * BLOCK ? MAX (BLOCK, (gint64) pow (n, 4. / 7)) : 0;
}

static void
find_blocks (Blocks *self, Nest *nest)
{
  TinyNode *first = nest->members->pdata[0];
  guint at = first->n_sources;
  gint64 per_round = 0, rounds = 1, inside = 1;
  nest->is_tile = nest->members->len > FEW;
  for (guint i = 0; i < nest->members->len; i++)
    per_round = MAX (per_round, count_additions (self, nest->members->pdata[i]));
  for (guint i = 1; i < at; i++)
    rounds *= MIN (count_rounds (first->sources[i]), G_MAXINT32 / rounds + 1);
  gint64 n = rounds * per_round, wanted = choose_block (nest, n);
  if (wanted == 0 || !are_alike (nest))
    return;
  wanted /= per_round;
  wanted = MAX (wanted, 2);
  while (at > 1 && inside * count_rounds (first->sources[at - 1]) <= wanted)
    inside *= count_rounds (first->sources[--at]);
  if (at == 1)
    return;
  nest->part = choose_part (first->sources[at - 1], MAX (wanted / inside, 1));
  if (nest->part == count_rounds (first->sources[at - 1])) {
    nest->part = 1;
    at--;
  }
  if (nest->part > 1 && !can_part (self, nest, first->sources[at - 1])) {
    nest->part = 1;
    if (inside * per_round < LEAST_BLOCK)
      at--;
  }
  nest->n_inner = first->n_sources - at;
  nest->is_parted = at > 1 && (nest->part > 1 || nest->n_inner > 0);
  if (nest->is_parted && nest->part > 1)
    tiny_node_map_set (&self->parted, first->sources[at - 1], nest);
}

/* ---- the kernel with them ---- */
/* @range as the number of its block and the place in there. */
static TinyNode *
part_range (Blocks *self, Nest *nest, TinyNode *range)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *part = tiny_node_const_index (graph, nest->part);
  TinyNode *more = tiny_node_const_index (graph, nest->part - 1);
  TinyNode *end = tiny_node_map_get (&self->map, range->sources[0]), *size = part;
  TinyNode *up = tiny_fold_binary (graph, TINY_OP_ADD, end, more);
  nest->o = tiny_node_range (graph, self->n_numbers++, tiny_range_get_kind (range),
                             tiny_fold_binary (graph, TINY_OP_FLOORDIV, up, part));
  TinyNode *before = tiny_fold_binary (graph, TINY_OP_MUL, nest->o, part);
  if (end->op != TINY_OP_CONST || end->arg % nest->part != 0) {
    TinyNode *left = tiny_fold_binary (graph, TINY_OP_SUB, end, before);
    size = tiny_node_where (graph, tiny_fold_binary (graph, TINY_OP_CMPLT, left, part), left,
                            part);
  }
  nest->i = tiny_node_range (graph, self->n_numbers++, tiny_range_get_kind (range), size);
  return tiny_fold_binary (graph, TINY_OP_ADD, before, nest->i);
}

static TinyNode *
make_reduce (Blocks *self, TinyNode *like, TinyNode *value, TinyNode *const *ranges, guint n)
{
  g_autofree TinyNode **sources = g_new (TinyNode *, n + 1);
  sources[0] = value;
  memcpy (sources + 1, ranges, n * sizeof *ranges);
  return tiny_node_new (self->cg->graph, TINY_OP_REDUCE, like->dtype, like->lanes, n + 1,
                        sources, like->arg, NULL, NULL);
}

static TinyNode *
make_blocks (Blocks *self, Nest *nest, TinyNode *reduce)
{
  guint n = reduce->n_sources - 1, n_outer = n - nest->n_inner;
  g_autofree TinyNode **ranges = g_new (TinyNode *, n + 1);
  for (guint i = 0; i < n; i++)
    ranges[i] = tiny_node_map_get (&self->map, reduce->sources[i + 1]);
  TinyNode **inner = ranges + n_outer;
  guint n_inner = nest->n_inner;
  if (nest->part > 1) {
    memmove (inner + 1, inner, n_inner * sizeof *inner);
    *inner = nest->i;
    inner[-1] = nest->o;
    n_inner++;
  }
  TinyNode *block = make_reduce (
      self, reduce, tiny_node_map_get (&self->map, reduce->sources[0]), inner, n_inner);
  return make_reduce (self, reduce, block, ranges, n_outer);
}

static TinyNode *
rebuild (Blocks *self, TinyNode *node)
{
  Nest *nest = node->op == TINY_OP_REDUCE && node->n_sources > 1
                   ? tiny_node_map_get (&self->nests, node->sources[1])
                   : NULL;
  gboolean same = TRUE;
  Nest *parted = tiny_node_map_get (&self->parted, node);
  if (parted != NULL)
    return part_range (self, parted, node);
  if (nest != NULL && nest->is_parted)
    return make_blocks (self, nest, node);
  g_autofree TinyNode **many = node->n_sources > 8 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[8], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++) {
    sources[i] = tiny_node_map_get (&self->map, node->sources[i]);
    same = same && sources[i] == node->sources[i];
  }
  return same ? node : tiny_fold_node (self->cg->graph, node, node->lanes, sources);
}

static void
find_nests (Blocks *self, GPtrArray *order)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    for (guint s = 0; s < node->n_sources && node->op == TINY_OP_LOCAL; s++)
      tiny_node_map_set (&self->filled, node->sources[s], node);
    if (node->op != TINY_OP_REDUCE || node->n_sources == 1)
      continue;
    Nest *nest = tiny_node_map_get (&self->nests, node->sources[1]);
    if (nest == NULL) {
      nest = g_new0 (Nest, 1);
      nest->members = g_ptr_array_new ();
      g_ptr_array_add (self->all_nests, nest);
      tiny_node_map_set (&self->nests, node->sources[1], nest);
    }
    g_ptr_array_add (nest->members, node);
    TinyNode *block = node->sources[0];
    if (block->op == TINY_OP_REDUCE && block->n_sources > 1 && block->arg == node->arg) {
      nest->has_blocks = TRUE;
      ((Nest *) tiny_node_map_get (&self->nests, block->sources[1]))->is_block = TRUE;
    }
  }
}

/* Sums in blocks what is long; TRUE: sums of blocks may be long themselves. */
static gboolean
block_sums (TinyCodegen *cg)
{
  g_auto (Blocks) self = { .cg = cg };
  self.all_nests = g_ptr_array_new_with_free_func ((GDestroyNotify) nest_free);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  gboolean any = FALSE, again = FALSE;
  find_nests (&self, order);
  for (guint i = 0; i < self.all_nests->len; i++) {
    Nest *nest = self.all_nests->pdata[i];
    find_blocks (&self, nest);
    any = any || nest->is_parted;
    again = again || (nest->is_parted && !nest->is_tile);
  }
  if (!any)
    return FALSE;
  self.n_numbers = tiny_codegen_count_ranges (cg->graph, cg->root);
  for (guint i = 0; i < order->len; i++)
    tiny_node_map_set (&self.map, order->pdata[i], rebuild (&self, order->pdata[i]));
  cg->root = tiny_node_map_get (&self.map, cg->root);
  return again;
}

gboolean
tiny_pass_blocks (TinyCodegen *cg, GError **error)
{
  gboolean keeps_order = cg->opts == NULL && !cg->heuristic;
  while (!keeps_order && block_sums (cg))
    continue;
  return TRUE;
}
