/* SPDX-License-Identifier: MIT
 *
 * row-blocks.c: reductions of a long row that a kernel computes, such as the scores of attention, in blocks.
 *
 * share.c keeps a row in memory of the kernel. Where the row is too long for that, each reduction of it becomes two:
 * one within a block, whose result lies in memory of the kernel, and one over the blocks. Then memory of the kernel
 * holds one block of the row and a result for each block.
 *
 * All blocks are gone through once. A sum of exponentials that are held against the row's maximum is made of sums that
 * are held against the block's, each scaled at last (Milakov, Gimelshein, "Online normalizer calculation for softmax",
 * 2018; Dao et al., "FlashAttention", 2022). What is the same for the whole row comes out of the sum. A kernel with a
 * sum that needs more of the row than its maximum, such as a gradient's, keeps its rows whole. */
#include "schedule/row-blocks.h"

#include <math.h>

#include "schedule/remake.h"
#include "schedule/rescale.h"
#include "schedule/work.h"

enum {
  MAX_LOOPS = 64,
  KEPT_ROWS = 2 /* values of a row that are kept at once, about */
};

/* A product: what is the same along the row, an exponential held against the row's maximum, what else changes along
 * the row alone, and the rest. NULL: 1. */
typedef struct {
  TinyNode *coefficient, *exponential, *row, *rest;
} Product;

typedef struct {
  Plan *plan;
  TinyGraph *graph;
  TinyNode *kernel;
  TinyNode *outer[MAX_LOOPS]; /* loops around all rows */
  guint n_outer, n_numbers, n_locals;
  gint64 extent, block, n_blocks;
  GPtrArray *reduces;          /* of rows, sources before users */
  TinyNodeMap is_row, becomes; /* REDUCEs of rows; what they become */
  TinyNode *at;                /* the loop over blocks */
  /* Loops within a block, and over all of them. */
  TinyNode *in_maximum, *in_sum, *over_maxima, *over_sums;
  GPtrArray *values, *parts; /* results of a block; the STOREs of them */
} Blocks;

/* ---- which reductions ---- */
static gboolean
is_outer (Blocks *self, const TinyNode *range)
{
  for (guint i = 0; i < self->n_outer; i++)
    if (self->outer[i] == range)
      return TRUE;
  return FALSE;
}

/* The loop that @node changes with besides those around the rows; FALSE: there are several. */
static gboolean
find_inner (Blocks *self, TinyNode *node, TinyNode **out)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, node, &n);
  *out = NULL;
  for (guint i = 0; i < n; i++) {
    if (is_outer (self, ranges[i]))
      continue;
    if (*out != NULL)
      return FALSE;
    *out = ranges[i];
  }
  return TRUE;
}

/* True where @reduce goes through a row of which each element is a reduction itself. */
static gboolean
is_of_row (Blocks *self, TinyNode *reduce)
{
  if (reduce->op != TINY_OP_REDUCE || reduce->n_sources != 2)
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, reduce->sources, 1);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_REDUCE
        && tiny_node_depends_on (self->graph, order->pdata[i], reduce->sources[1]))
      return TRUE;
  return FALSE;
}

static gboolean
has_row (Blocks *self, TinyNode *node)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &node, 1);
  for (guint i = 0; i < order->len; i++)
    if (tiny_node_map_get (&self->is_row, order->pdata[i]) != NULL)
      return TRUE;
  return FALSE;
}

/* The loops that all stores have; where that is all, the innermost is one along results. */
static void
find_outer (Blocks *self)
{
  TinyNode *loops[MAX_LOOPS];
  gboolean same = TRUE;
  self->n_outer = schedule_list_loops (self->plan, self->kernel->sources[0], self->outer);
  for (guint i = 1; i < self->kernel->n_sources; i++) {
    guint n = schedule_list_loops (self->plan, self->kernel->sources[i], loops), k = 0;
    while (k < MIN (n, self->n_outer) && loops[k] == self->outer[k])
      k++;
    same = same && k == n && k == self->n_outer;
    self->n_outer = k;
  }
  self->n_outer -= same && self->n_outer > 0;
}

static gboolean
find_reduces (Blocks *self)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &self->kernel, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *inner;
    if (node->op == TINY_OP_RANGE)
      self->n_numbers = MAX (self->n_numbers, tiny_range_get_number (node) + 1);
    self->n_locals += node->op == TINY_OP_LOCAL;
    if (!is_of_row (self, node))
      continue;
    gint64 extent = tiny_range_get_extent (node->sources[1]);
    if ((self->extent != 0 && self->extent != extent) || !find_inner (self, node, &inner))
      return FALSE;
    self->extent = extent;
    g_ptr_array_add (self->reduces, node);
    tiny_node_map_set (&self->is_row, node, node);
  }
  return self->reduces->len > 0;
}

/* ---- what is summed up ---- */
static TinyNode *
multiply (Blocks *self, TinyNode *a, TinyNode *b)
{
  return a == NULL ? b : b == NULL ? a : tiny_node_binary (self->graph, TINY_OP_MUL, a, b);
}

static TinyNode *
with_loop (Blocks *self, TinyNode *node, TinyNode *from, const Affine *to)
{
  g_auto (Remake) remake = { NULL };
  remake_init (&remake, self->plan);
  tiny_node_map_set (&remake.loops, from, (gpointer) to);
  return remake_node (&remake, node);
}

/* True where @node is 2^(k (x - M)), M the largest x of the row along @loop. */
static gboolean
is_held_against_maximum (Blocks *self, TinyNode *node, TinyNode *loop)
{
  Exponential e;
  if (!schedule_take_exponential (node, &e) || has_row (self, e.x)
      || tiny_node_map_get (&self->is_row, e.maximum) == NULL || e.maximum->arg != TINY_OP_MAX)
    return FALSE;
  return with_loop (self, e.maximum->sources[0], e.maximum->sources[1],
                    affine_range (&self->plan->affines, loop))
         == e.x;
}

/* Adds the factors of @node to @out. FALSE: it is no such product. */
static gboolean
add_factors (Blocks *self, TinyNode *node, TinyNode *loop, Product *out)
{
  TinyNode *inner;
  if (!tiny_node_depends_on (self->graph, node, loop)) {
    out->coefficient = multiply (self, out->coefficient, node);
  } else if (!has_row (self, node)) {
    TinyNode **same = find_inner (self, node, &inner) ? &out->row : &out->rest;
    *same = multiply (self, *same, node);
  } else if (out->exponential == NULL && is_held_against_maximum (self, node, loop)) {
    out->exponential = node;
  } else {
    return node->op == TINY_OP_MUL && add_factors (self, node->sources[0], loop, out)
           && add_factors (self, node->sources[1], loop, out);
  }
  return TRUE;
}

/* ---- blocks ---- */
/* Stores @value, a block's result, for each block and each step of @inner (NULL: one), in a loop of its own. */
static TinyNode *
store_part (Blocks *self, TinyNode *value, TinyNode *inner, gint64 width)
{
  AffinePool *pool = &self->plan->affines;
  const Affine *at = affine_scale (pool, affine_range (pool, self->at), width, 0);
  gint64 n = width * self->n_blocks;
  TinyNode *sources[3];
  if (inner != NULL) {
    guint number = tiny_range_get_number (self->at) + 1 + self->parts->len;
    const Affine *step = affine_range (
        pool, tiny_node_range_const (self->graph, number, TINY_RANGE_LOOP, width));
    value = with_loop (self, value, inner, step);
    at = affine_sum (pool, at, 1, step, 1, 0);
  }
  sources[0]
      = tiny_node_new (self->graph, TINY_OP_LOCAL, value->dtype, 1, self->n_outer, self->outer,
                       self->n_locals++, tiny_graph_ints (self->graph, &n, 1), NULL);
  sources[1] = affine_to_node (pool, at);
  sources[2] = value;
  return tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL,
                        NULL);
}

/* The block's result @value, which changes with @inner (NULL: with none), of the block that @over counts. */
static TinyNode *
load_part (Blocks *self, TinyNode *value, TinyNode *inner, TinyNode *over)
{
  AffinePool *pool = &self->plan->affines;
  gint64 width = inner ? tiny_range_get_extent (inner) : 1;
  const Affine *at = affine_scale (pool, affine_range (pool, over), width, 0);
  guint i;
  if (!g_ptr_array_find (self->values, value, &i)) {
    i = self->parts->len;
    g_ptr_array_add (self->parts, store_part (self, value, inner, width));
    g_ptr_array_add (self->values, value);
  }
  if (inner != NULL)
    at = affine_sum (pool, at, 1, affine_range (pool, inner), 1, 0);
  TinyNode *sources[]
      = { ((TinyNode *) self->parts->pdata[i])->sources[0], affine_to_node (pool, at) };
  return tiny_node_new (self->graph, TINY_OP_LOAD, value->dtype, 1, 2, sources, 0, NULL, NULL);
}

static TinyNode *
reduce (Blocks *self, TinyOp op, TinyNode *value, TinyNode *loop)
{
  TinyNode *sources[] = { value, loop };
  return tiny_node_new (self->graph, TINY_OP_REDUCE, value->dtype, 1, 2, sources, op, NULL,
                        NULL);
}

/* @node, an expression along the row's @loop, along @within of a block. */
static TinyNode *
in_block (Blocks *self, TinyNode *node, TinyNode *loop, TinyNode *within)
{
  AffinePool *pool = &self->plan->affines;
  return with_loop (self, node, loop,
                    affine_sum (pool, affine_range (pool, self->at), self->block,
                                affine_range (pool, within), 1, 0));
}

/* The largest of the block, for which @maximum is that of the row. */
static TinyNode *
block_maximum (Blocks *self, TinyNode *maximum)
{
  return reduce (self, TINY_OP_MAX,
                 in_block (self, maximum->sources[0], maximum->sources[1], self->in_maximum),
                 self->in_maximum);
}

/* The sum of @product along the row's @loop without its coefficient. */
static TinyNode *
sum_product (Blocks *self, const Product *product, TinyNode *loop)
{
  TinyNode *value = product->row ? in_block (self, product->row, loop, self->in_sum) : NULL;
  TinyNode *scale = NULL, *inner;
  Exponential e;
  if (product->exponential != NULL) {
    schedule_take_exponential (product->exponential, &e);
    TinyNode *maximum = block_maximum (self, e.maximum);
    TinyNode *x = in_block (self, e.x, loop, self->in_sum);
    value = multiply (
        self, schedule_exponential (self->graph, &e, x, schedule_hold (self->graph, maximum)),
        value);
    find_inner (self, e.maximum, &inner);
    maximum = load_part (self, maximum, inner, self->over_sums);
    scale = schedule_exponential (self->graph, &e, schedule_hold (self->graph, maximum),
                                  tiny_node_map_get (&self->becomes, e.maximum));
  }
  if (product->rest != NULL)
    value = multiply (self, value, in_block (self, product->rest, loop, self->in_sum));
  value = reduce (self, TINY_OP_ADD, value, self->in_sum);
  TinyNode *loops[MAX_LOOPS];
  inner = NULL;
  guint n = schedule_list_loops (self->plan, value, loops);
  for (guint i = 0; i < n; i++)
    if (!is_outer (self, loops[i]) && loops[i] != self->at)
      inner = loops[i];
  return reduce (self, TINY_OP_ADD,
                 multiply (self, load_part (self, value, inner, self->over_sums), scale),
                 self->over_sums);
}

/* @node with the row's reductions below it as they are now. */
static TinyNode *
with_totals (Blocks *self, TinyNode *node)
{
  g_autoptr (GPtrArray) from = g_ptr_array_new (), to = g_ptr_array_new ();
  for (guint i = 0; i < self->reduces->len; i++) {
    TinyNode *total = tiny_node_map_get (&self->becomes, self->reduces->pdata[i]);
    if (total == NULL)
      continue;
    g_ptr_array_add (from, self->reduces->pdata[i]);
    g_ptr_array_add (to, total);
  }
  return tiny_graph_substitute (self->graph, node, (TinyNode **) from->pdata,
                                (TinyNode **) to->pdata, from->len);
}

/* @node, a reduction of the row, in blocks; NULL: it is none that can be. */
static TinyNode *
total_of (Blocks *self, TinyNode *node)
{
  Product product = { NULL };
  TinyNode *inner;
  if (node->arg == TINY_OP_MAX && !has_row (self, node->sources[0])) {
    find_inner (self, node, &inner);
    return reduce (self, TINY_OP_MAX,
                   load_part (self, block_maximum (self, node), inner, self->over_maxima),
                   self->over_maxima);
  }
  if (node->arg != TINY_OP_ADD || !tiny_dtype_is_float (node->dtype)
      || !add_factors (self, node->sources[0], node->sources[1], &product)
      || (product.exponential == NULL && product.row == NULL && product.rest == NULL))
    return NULL;
  TinyNode *total = sum_product (self, &product, node->sources[1]);
  return product.coefficient ? multiply (self, total, with_totals (self, product.coefficient))
                             : total;
}

/* ---- how long ---- */
/* Elements that the blocks' results have, each. */
static gint64
count_width (Blocks *self)
{
  gint64 width = 0;
  for (guint i = 0; i < self->reduces->len; i++) {
    TinyNode *inner;
    find_inner (self, self->reduces->pdata[i], &inner);
    width += inner ? tiny_range_get_extent (inner) : 1;
  }
  return width;
}

/* True if a tile's rows take more than half of a kernel's memory: they would leave the nearest cache between two passes. */
static gboolean
is_long (Blocks *self, const ScheduleMachine *machine)
{
  return machine->tile_rows * self->extent * 4 * KEPT_ROWS > machine->local_bytes / 2;
}

/* The length of blocks with which they and their results take the least memory; 0: there is none. */
static gint64
choose_block (Blocks *self)
{
  const double wanted = sqrt ((double) self->extent * (double) count_width (self) / KEPT_ROWS);
  gint64 best = 0;
  for (gint64 i = schedule_weights.row_block; i <= self->extent / 2;
       i += schedule_weights.pack_block)
    if (self->extent % i == 0
        && (best == 0
            || fabs (log ((double) i / wanted)) < fabs (log ((double) best / wanted))))
      best = i;
  return best;
}

static TinyNode *
fresh_loop (Blocks *self, TinyRangeKind kind, gint64 extent)
{
  return tiny_node_range_const (self->graph, self->n_numbers++, kind, extent);
}

static void
make_loops (Blocks *self)
{
  self->n_blocks = self->extent / self->block;
  self->in_maximum = fresh_loop (self, TINY_RANGE_REDUCE, self->block);
  self->in_sum = fresh_loop (self, TINY_RANGE_REDUCE, self->block);
  self->over_maxima = fresh_loop (self, TINY_RANGE_REDUCE, self->n_blocks);
  self->over_sums = fresh_loop (self, TINY_RANGE_REDUCE, self->n_blocks);
  self->at = fresh_loop (self, TINY_RANGE_LOOP, self->n_blocks);
}

TinyNode *
schedule_block_rows (Plan *plan, const char *device, TinyNode *kernel, TinyNode **out_parts)
{
  const ScheduleMachine machine = schedule_get_machine (plan, device);
  TinyNode *result = NULL;
  Blocks self = { .plan = plan, .graph = plan->graph, .kernel = kernel };
  self.reduces = g_ptr_array_new ();
  self.values = g_ptr_array_new ();
  self.parts = g_ptr_array_new ();
  find_outer (&self);
  gboolean good = machine.tile_rows > 0 && self.n_outer > 0 && find_reduces (&self)
                  && is_long (&self, &machine);
  self.block = good ? choose_block (&self) : 0;
  good = self.block > 0;
  if (good)
    make_loops (&self);
  for (guint i = 0; i < self.reduces->len && good; i++) {
    TinyNode *total = total_of (&self, self.reduces->pdata[i]);
    good = total != NULL;
    if (good)
      tiny_node_map_set (&self.becomes, self.reduces->pdata[i], total);
  }
  if (good) {
    result = with_totals (&self, kernel);
    *out_parts = tiny_node_sink (plan->graph, self.parts->len,
                                 (TinyNode *const *) self.parts->pdata, NULL);
  }
  g_ptr_array_unref (self.reduces);
  g_ptr_array_unref (self.values);
  g_ptr_array_unref (self.parts);
  tiny_node_map_clear (&self.is_row);
  tiny_node_map_clear (&self.becomes);
  return result;
}
