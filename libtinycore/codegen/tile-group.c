/* SPDX-License-Identifier: MIT
 *
 * tile-group.c: the tile of a contraction that a work-group computes.
 *
 * Each item has copies along two output axes in registers, the items of the group lie along both,
 * and what the group reads of an operand in a few rounds of the reduction is copied to LOCAL memory
 * first: each element is read from afar once for the tile, not once for each output in it. Sizes
 * are halved until the tile fits registers and LOCAL memory and leaves enough groups. */
#include "heuristic.h"

enum {
  TILE_ITEMS = 256, /* of a group */
  TILE_COPIES = 4,  /* along each axis: sixteen sums in registers */
  TILE_ROUNDS = 16, /* of the reduction between two copies */
  MIN_ROUNDS = 4,
  MIN_OUTPUTS = 1024, /* below, groups that share a reduction are better */
  ENOUGH_GROUPS = 32,
  SPILL_SHARE
  = 2 /* a tile has at most this part of the registers, where the target counts them */
};

/* Along the axis whose outputs are neighbours, and along the other. */
typedef struct {
  guint origin[2];
  gint64 items[2], copies[2];
} Tile;

static gint64
largest_part (gint64 n, gint64 most)
{
  for (gint64 i = MIN (n, most); i > 1; i--)
    if (n % i == 0)
      return i;
  return 1;
}

static gint64
stride_along (const Access *access, guint origin)
{
  return access->uneven[origin] ? G_MAXINT64 : access->strides[origin];
}

/* Whether some load of @nest moves along @moves and stands still along @stays. */
static gboolean
has_operand (Nest *nest, guint moves, guint stays)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    if (stride_along (access, moves) != 0 && stride_along (access, stays) == 0)
      return TRUE;
  }
  return FALSE;
}

static gboolean
is_output (Plan *plan, guint origin)
{
  int at = tiny_axes_find (plan->axes, plan->origins[origin]);
  return at >= 0 && (guint) at < plan->axes->n_outputs && extent_of (plan, origin) > 1
         && tiny_axes_all_stores_depend_on (plan->axes, plan->origins[origin]);
}

/* The pair of axes between which operands are shared: the first is the one along which the outputs
 * are neighbours, or else most loads; both are as long as can be. */
static gboolean
choose_axes (Plan *plan, Nest *nest, Tile *out)
{
  double best = 0;
  for (guint x = 0; x < plan->n_origins; x++)
    for (guint y = 0; y < plan->n_origins; y++) {
      if (x == y || !is_output (plan, x) || !is_output (plan, y) || !has_operand (nest, x, y)
          || !has_operand (nest, y, x))
        continue;
      double score
          = (double) MIN (extent_of (plan, x), 64) * (double) MIN (extent_of (plan, y), 64);
      for (guint i = 0; i < plan->accesses->len; i++)
        score *= stride_along (&g_array_index (plan->accesses, Access, i), x) == 1 ? 4 : 1;
      for (guint i = 0; i < nest->loads->len; i++)
        score *= stride_along (&g_array_index (nest->loads, Access, i), x) == 1 ? 2 : 1;
      if (score > best) {
        best = score;
        out->origin[0] = x;
        out->origin[1] = y;
      }
    }
  return best > 0;
}

/* ---- sizes ---- */
static gint64
count_groups (Plan *plan, const Tile *tile)
{
  gint64 n = 1;
  for (guint i = 0; i < plan->n_origins; i++)
    n *= is_output (plan, i) ? extent_of (plan, i) : 1;
  for (guint i = 0; i < 2; i++)
    n = n / extent_of (plan, tile->origin[i])
        * ((extent_of (plan, tile->origin[i]) + tile->items[i] * tile->copies[i] - 1)
           / (tile->items[i] * tile->copies[i]));
  return n;
}

/* The size of a block that wastes little of @extent: a divisor, or padded. */
static gint64
fit_part (gint64 extent, gint64 most)
{
  gint64 n = largest_part (extent, most);
  return n * 2 > most || extent <= most ? MIN (n, most) : most;
}

static void
choose_sizes (Plan *plan, Nest *nest, Tile *tile)
{
  gint64 n_items = MIN ((gint64) plan->target->max_group_total, TILE_ITEMS);
  gint64 registers = plan->target->n_vector_registers > 0
                         ? MAX ((gint64) plan->target->n_vector_registers / SPILL_SHARE, 1)
                         : TILE_COPIES * TILE_COPIES;
  gint64 root = 1;
  while (4 * root * root <= n_items)
    root *= 2;
  for (guint i = 0; i < 2; i++) {
    gint64 extent = extent_of (plan, tile->origin[i]);
    gint64 most = MIN (i == 0 ? n_items / root : n_items / tile->items[0],
                       (gint64) plan->target->max_group[i]);
    tile->items[i] = fit_part (extent, MIN (MAX (most, 1), extent));
    tile->copies[i] = MIN (TILE_COPIES, (extent + tile->items[i] - 1) / tile->items[i]);
  }
  for (guint i = 1; tile->copies[0] * tile->copies[1] * nest->n_reduces > registers
                    || count_groups (plan, tile) < ENOUGH_GROUPS;
       i = 1 - i) {
    if (tile->copies[0] * tile->copies[1] == 1)
      return;
    tile->copies[i] = MAX (tile->copies[i] / 2, 1);
  }
}

/* ---- doing ---- */
static gboolean
split_output (Plan *plan, const Tile *tile, guint i)
{
  guint at = (guint) tiny_axes_find (plan->axes, plan->origins[tile->origin[i]]);
  gint64 block = tile->items[i] * tile->copies[i];
  if (tiny_axes_get (plan->axes, at)->extent % block != 0
      && !apply (plan, TINY_OPT_PAD, at, block))
    return FALSE;
  if (tile->items[i] > 1 && !apply (plan, TINY_OPT_GROUP, at, tile->items[i]))
    return FALSE;
  return tile->copies[i] == 1 || apply (plan, TINY_OPT_UPCAST, at, tile->copies[i]);
}

/* Stages what several outputs of the tile read, every few rounds of the reduced axis @at. */
static void
stage_operands (Plan *plan, Nest *nest, const Tile *tile, guint at)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    gboolean stays = stride_along (access, tile->origin[0]) == 0
                     || stride_along (access, tile->origin[1]) == 0;
    gint64 operand = 0;
    if (!stays || access->node->sources[0]->op != TINY_OP_PARAM)
      continue;
    while (tiny_axes_find_operand (plan->axes, operand) != access->node)
      operand++;
    apply (plan, TINY_OPT_STAGE, at, operand);
  }
}

/* What a round of the reduced axis @origin copies, in bytes: all operands, for the whole tile. */
static gint64
count_round_bytes (Plan *plan, Nest *nest, const Tile *tile, guint origin)
{
  gint64 sum = 0;
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    gint64 n = (gint64) tiny_dtype_get_n_bytes (access->node->dtype);
    for (guint j = 0; j < 2; j++)
      n *= stride_along (access, tile->origin[j]) != 0 ? tile->items[j] * tile->copies[j] : 1;
    for (guint s = 1; s < nest->reduce->n_sources; s++)
      if (nest->reduce->sources[s] != plan->origins[origin])
        n *= tiny_range_get_extent (nest->reduce->sources[s]);
    sum += n + 64;
  }
  return sum;
}

/* Splits the longest reduced axis into rounds and stages there. */
static void
stage_rounds (Plan *plan, Nest *nest, const Tile *tile)
{
  guint longest = plan->n_origins;
  for (guint i = 0; i < plan->n_origins; i++)
    for (guint s = 1; s < nest->reduce->n_sources; s++)
      if (nest->reduce->sources[s] == plan->origins[i]
          && (longest == plan->n_origins || extent_of (plan, i) > extent_of (plan, longest)))
        longest = i;
  gint64 room = (gint64) plan->target->local_bytes
                - tiny_axes_count_all_bytes (plan->axes, G_MAXUINT, 1, TINY_RANGE_LOOP);
  gint64 most = MIN (room / count_round_bytes (plan, nest, tile, longest), TILE_ROUNDS);
  gint64 extent = extent_of (plan, longest), n = largest_part (extent, MAX (most, 1));
  gint64 others = nest->work / combinations (plan->graph, nest->reduce) / extent;
  guint at = (guint) tiny_axes_find (plan->axes, plan->origins[longest]);
  if (most < 1 || n * others < MIN_ROUNDS)
    return;
  /* Loops around the split one would change what it copies: it comes first. */
  if (at > plan->axes->n_outputs && !apply (plan, TINY_OPT_SWAP, plan->axes->n_outputs, at))
    return;
  at = (guint) tiny_axes_find (plan->axes, plan->origins[longest]);
  if (n > 1 && n < extent && !apply (plan, TINY_OPT_SPLIT, at, n))
    return;
  if (n < extent)
    stage_operands (plan, nest, tile, at);
}

gboolean
tiny_plan_group_tile (Plan *plan)
{
  Tile tile;
  gint64 n_outputs = 1;
  if (plan->nests->len != 1 || tiny_axes_count_local_bytes (plan->axes, NULL, 1) > 0)
    return FALSE;
  Nest *nest = &g_array_index (plan->nests, Nest, 0);
  for (guint i = 0; i < plan->n_origins; i++)
    n_outputs *= is_output (plan, i) ? extent_of (plan, i) : 1;
  if (n_outputs < MIN_OUTPUTS || !choose_axes (plan, nest, &tile))
    return FALSE;
  choose_sizes (plan, nest, &tile);
  for (guint i = 0; i < 2; i++)
    split_output (plan, &tile, i);
  stage_rounds (plan, nest, &tile);
  return TRUE;
}
