/* SPDX-License-Identifier: MIT
 *
 * pass-index.c: INDEX becomes the target's integers, and division becomes what machines do.
 *
 * Scalars take the dtype the target prefers for addresses, i64 where a bound does not fit into
 * i32. Vectors of indices take i32 whenever they fit: twice the lanes of i64 in a register. Where i64
 * is made of words, counters stay i32, what is computed of them is i64, and addresses fit i32 again: a
 * buffer with more elements is refused.
 * FLOORDIV and FLOORMOD are shifts and masks by powers of two, IDIV and MOD where both sides are
 * known not to be negative, otherwise those with a correction. */
#include "codegen/codegen-private.h"

#include "base/tiny-error.h"
#include "rewrite/tiny-bounds.h"

typedef struct {
  TinyGraph *graph;
  TinyNodeMap map;
  TinyDType scalar, vector;
  gboolean makes_long; /* i64 is made of words */
} Index;

static void
index_clear (Index *self)
{
  tiny_node_map_clear (&self->map);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Index, index_clear)

/* Numbers read from memory say nothing about the size of an address: the buffers' sizes do. */
static gboolean
fits_i32 (TinyNode *node)
{
  gint64 lowest, highest;
  if (node->op == TINY_OP_PARAM)
    return node->ints == NULL || node->ints->n == 0 || node->ints->v[0] <= G_MAXINT32;
  if (node->dtype != TINY_DTYPE_INDEX)
    return TRUE;
  tiny_node_get_bounds (node, &lowest, &highest);
  return lowest >= G_MININT32 && highest <= G_MAXINT32;
}

static void
choose_dtypes (Index *self, const TinyTarget *target, GPtrArray *order)
{
  g_auto (TinyNodeMap) from_memory = { 0 };
  gboolean scalars_fit = TRUE, vectors_fit = TRUE;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    gboolean unknown = node->dtype == TINY_DTYPE_INDEX && node->op == TINY_OP_CAST;
    for (guint s = 0; s < node->n_sources && node->dtype == TINY_DTYPE_INDEX; s++)
      unknown = unknown || tiny_node_map_get (&from_memory, node->sources[s]) != NULL;
    if (unknown)
      tiny_node_map_set (&from_memory, node, node);
    if (node->lanes == 1)
      scalars_fit = scalars_fit && (unknown || fits_i32 (node));
    else
      vectors_fit = vectors_fit && !unknown && fits_i32 (node);
  }
  self->scalar = scalars_fit ? (TinyDType) target->index_dtype : TINY_DTYPE_I64;
  if (self->scalar != TINY_DTYPE_I32 && self->scalar != TINY_DTYPE_I64)
    self->scalar = TINY_DTYPE_I64;
  self->vector = vectors_fit ? TINY_DTYPE_I32 : self->scalar;
  self->makes_long = self->scalar == TINY_DTYPE_I64
                     && !tiny_target_has (target, TINY_INSTR_ADD, TINY_DTYPE_I64);
}

static gboolean
is_counter (const TinyNode *node)
{
  return node->op == TINY_OP_RANGE || node->op == TINY_OP_GRID || node->op == TINY_OP_GROUP
         || node->op == TINY_OP_VARIABLE;
}

/* Refuses what no index of 32 bits can count, where there is no other. */
static gboolean
check_counts (const Index *self, const TinyTarget *target, GPtrArray *order, GError **error)
{
  for (guint i = 0; i < order->len && self->makes_long; i++) {
    TinyNode *node = order->pdata[i];
    if ((node->op != TINY_OP_PARAM && !is_counter (node)) || fits_i32 (node))
      continue;
    if (node->op == TINY_OP_PARAM)
      g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                   "a buffer of %" G_GINT64_FORMAT
                   " elements is more than an index of the target %s counts; split the tensor",
                   node->ints->v[0], target->arch);
    else
      g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                   "a loop is longer than an index of the target %s counts; split the tensor",
                   target->arch);
    return FALSE;
  }
  return TRUE;
}

static TinyNode *
const_lanes (Index *self, TinyNode *like, gint64 value)
{
  return tiny_node_new (self->graph, TINY_OP_CONST, like->dtype, like->lanes, 0, NULL, value,
                        NULL, NULL);
}

/* @node is the FLOORDIV or FLOORMOD, x and y its lowered sources. */
static TinyNode *
lower_division (Index *self, TinyNode *node, TinyNode *x, TinyNode *y)
{
  TinyGraph *graph = self->graph;
  gboolean divides = node->op == TINY_OP_FLOORDIV;
  if (y->op == TINY_OP_CONST && y->arg > 0 && (y->arg & (y->arg - 1)) == 0)
    return divides
               ? tiny_node_binary (graph, TINY_OP_SHR, x,
                                   const_lanes (self, x, g_bit_nth_msf (y->arg, -1)))
               : tiny_node_binary (graph, TINY_OP_AND, x, const_lanes (self, x, y->arg - 1));
  gint64 x_min, x_max, y_min, y_max;
  tiny_node_get_bounds (node->sources[0], &x_min, &x_max);
  tiny_node_get_bounds (node->sources[1], &y_min, &y_max);
  if ((x_min >= 0 && y_min >= 0) || tiny_dtype_is_unsigned (x->dtype))
    return tiny_node_binary (graph, divides ? TINY_OP_IDIV : TINY_OP_MOD, x, y);
  /* The truncated remainder has the sign of x. Where it is not 0 and its sign is not y's, the
   * quotient was rounded up. */
  TinyNode *zero = const_lanes (self, x, 0);
  TinyNode *rest = tiny_node_binary (graph, TINY_OP_MOD, x, y);
  TinyNode *differs = tiny_node_binary (graph, TINY_OP_CMPLT,
                                        tiny_node_binary (graph, TINY_OP_XOR, rest, y), zero);
  TinyNode *inexact = tiny_node_binary (graph, TINY_OP_CMPNE, rest, zero);
  TinyNode *wrong = tiny_node_binary (graph, TINY_OP_AND, inexact, differs);
  if (!divides)
    return tiny_node_where (graph, wrong, tiny_node_binary (graph, TINY_OP_ADD, rest, y), rest);
  TinyNode *quotient = tiny_node_binary (graph, TINY_OP_IDIV, x, y);
  return tiny_node_where (
      graph, wrong, tiny_node_binary (graph, TINY_OP_ADD, quotient, const_lanes (self, x, -1)),
      quotient);
}

/* 0 1 2 … times nothing: the contract has no such value, a VECTOR of constants is one. */
static TinyNode *
lower_lanes (Index *self, TinyNode *node)
{
  g_autofree TinyNode **lanes = g_new (TinyNode *, node->lanes);
  for (guint i = 0; i < node->lanes; i++)
    lanes[i] = tiny_node_const_int (self->graph, self->vector, i);
  return tiny_node_new (self->graph, TINY_OP_VECTOR, self->vector, node->lanes, node->lanes,
                        lanes, 0, NULL, NULL);
}

/* Whether RANGEs among the sources of @op are loops, not numbers. */
static gboolean
names_loops (TinyOp op)
{
  return op == TINY_OP_END || op == TINY_OP_AFTER || op == TINY_OP_REGISTER
         || op == TINY_OP_LOCAL;
}

/* In i32, and what it counts in i64. */
static TinyNode *
lower_counter (Index *self, TinyNode *node, TinyNode **sources)
{
  for (guint i = 0; i < node->n_sources; i++)
    if (sources[i]->dtype == TINY_DTYPE_I64 && sources[i]->op == TINY_OP_CONST)
      sources[i] = tiny_node_const_int (self->graph, TINY_DTYPE_I32, sources[i]->arg);
    else
      sources[i] = tiny_node_cast (self->graph, sources[i], TINY_DTYPE_I32);
  TinyNode *counter = tiny_node_new (self->graph, node->op, TINY_DTYPE_I32, 1, node->n_sources,
                                     sources, node->arg, node->ints, node->text);
  return tiny_node_cast (self->graph, counter, TINY_DTYPE_I64);
}

static TinyNode *
lower_node (Index *self, TinyNode *node)
{
  TinyGraph *graph = self->graph;
  gboolean is_index = node->dtype == TINY_DTYPE_INDEX;
  TinyDType dtype = !is_index ? node->dtype : node->lanes == 1 ? self->scalar : self->vector;
  g_autofree TinyNode **many
      = node->n_sources > 16 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[16], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = tiny_node_map_get (&self->map, node->sources[i]);
  if (self->makes_long && is_index && is_counter (node))
    return lower_counter (self, node, sources);
  for (guint i = 0; i < node->n_sources && names_loops (node->op); i++)
    if (node->sources[i]->op == TINY_OP_RANGE && sources[i]->op == TINY_OP_CAST)
      sources[i] = sources[i]->sources[0];
  if (node->op == TINY_OP_LANES)
    return lower_lanes (self, node);
  if (node->op == TINY_OP_FLOORDIV || node->op == TINY_OP_FLOORMOD)
    return lower_division (self, node, sources[0], sources[1]);
  if (node->op == TINY_OP_CAST && sources[0]->dtype == dtype)
    return sources[0];
  if (is_index && node->op == TINY_OP_VECTOR)
    for (guint i = 0; i < node->n_sources; i++)
      sources[i] = sources[i]->op == TINY_OP_CONST
                       ? tiny_node_const_int (graph, self->vector, sources[i]->arg)
                       : tiny_node_cast (graph, sources[i], self->vector);
  if (is_index && node->op == TINY_OP_EXTRACT)
    return tiny_node_cast (graph,
                           tiny_node_new (graph, node->op, sources[0]->dtype, 1, 1, sources,
                                          node->arg, NULL, NULL),
                           self->scalar);
  if (!is_index)
    return tiny_node_with_sources (graph, node, sources);
  return tiny_node_new (graph, node->op, dtype, node->lanes, node->n_sources, sources,
                        node->arg, node->ints, node->text);
}

gboolean
tiny_pass_index (TinyCodegen *cg, GError **error)
{
  g_auto (Index) self = { .graph = cg->graph };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  choose_dtypes (&self, cg->target, order);
  if (!check_counts (&self, cg->target, order, error))
    return FALSE;
  for (guint i = 0; i < order->len; i++)
    tiny_node_map_set (&self.map, order->pdata[i], lower_node (&self, order->pdata[i]));
  cg->root = tiny_node_map_get (&self.map, cg->root);
  return TRUE;
}
