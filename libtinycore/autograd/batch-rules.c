/* SPDX-License-Identifier: MIT
 *
 * batch-rules.c: each op of a tensor graph with one more axis, the outermost.
 *
 * What is the same for the whole batch stays as it is until it meets what is not. */
#include "autograd/batch-rules.h"

#include "autograd/custom-rules.h"
#include "base/tiny-error.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "schedule/factor.h"
#include "schedule/kernel-text.h"
#include "tensor/tiny-layout.h"

enum { MAX_RANK = 32 };

#define RULE(name)                                                                             \
  static TinyNode *name (TinyGraph *graph, TinyNode *node, TinyNode *const *x, gint64 size,    \
                         GError **error)

TinyNode *
tiny_batch_repeat (TinyGraph *graph, TinyNode *x, gint64 size)
{
  gint64 dims[MAX_RANK + 1] = { 1 };
  guint rank = x->shape->n;
  for (guint i = 0; i < rank; i++)
    dims[i + 1] = x->shape->v[i];
  x = tiny_node_reshape (graph, x, dims, rank + 1);
  dims[0] = size;
  return tiny_node_expand (graph, x, dims, rank + 1);
}

TinyNode *
tiny_batch_move_axis (TinyGraph *graph, TinyNode *x, guint from, guint to)
{
  gint64 axes[MAX_RANK + 1];
  guint rank = x->shape->n, next = 0;
  for (guint i = 0; i < rank; i++) {
    next += next == from;
    axes[i] = i == to ? from : next++;
  }
  return tiny_node_permute (graph, x, axes, rank);
}

static TinyNode *
batched (TinyGraph *graph, TinyNode *source, TinyNode *x, gint64 size)
{
  return x != NULL ? x : tiny_batch_repeat (graph, source, size);
}

/* Source @i of an elementwise @node: one value for all elements, or with all axes. */
static TinyNode *
align (TinyGraph *graph, const TinyNode *node, guint i, TinyNode *x, gint64 size)
{
  const TinyInts *to = node->shape;
  TinyNode *source = node->sources[i];
  gint64 dims[MAX_RANK + 1] = { size };
  if (x == NULL && source->shape->n == 0)
    return source;
  x = batched (graph, source, x, size);
  if (source->shape->n == to->n)
    return x;
  for (guint k = 0; k < to->n; k++)
    dims[k + 1] = 1;
  x = tiny_node_reshape (graph, x, dims, to->n + 1);
  for (guint k = 0; k < to->n; k++)
    dims[k + 1] = to->v[k];
  return tiny_node_expand (graph, x, dims, to->n + 1);
}

RULE (rule_elementwise)
{
  TinyNode *sources[3];
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = align (graph, node, i, x[i], size);
  return tiny_layout_elementwise (graph, (TinyOp) node->op, (TinyDType) node->dtype,
                                  node->n_sources, sources);
}

/* The same op over what is batched. */
RULE (rule_same) { return tiny_node_with_sources (graph, node, x); }

/* Lists of axes and of numbers for axes begin with those of the batch. */
RULE (rule_movement)
{
  gint64 v[2 * MAX_RANK + 2];
  guint n = 0, n_axes = node->op == TINY_OP_SHEAR ? 2 : node->ints->n;
  gboolean names_axes
      = node->op == TINY_OP_PERMUTE || node->op == TINY_OP_FLIP || node->op == TINY_OP_SHEAR;
  if (node->op == TINY_OP_PERMUTE || node->op == TINY_OP_PAD || node->op == TINY_OP_SHRINK)
    v[n++] = 0;
  if (!names_axes)
    v[n++] = node->op == TINY_OP_PAD ? 0 : size;
  for (guint i = 0; i < node->ints->n; i++)
    v[n++] = node->ints->v[i] + (names_axes && i < n_axes);
  return tiny_node_new (graph, (TinyOp) node->op, (TinyDType) node->dtype, 1, 1, x, 0,
                        tiny_graph_ints (graph, v, n), NULL);
}

/* Its shape is that of the first source, which may be the one that is not batched. */
RULE (rule_sloped)
{
  TinyNode *sources[3];
  for (guint i = 0; i < 3; i++)
    sources[i] = batched (graph, node->sources[i], x[i], size);
  return tiny_node_with_sources (graph, node, sources);
}

RULE (rule_reduce)
{
  gint64 axes[MAX_RANK];
  for (guint i = 0; i < node->ints->n; i++)
    axes[i] = node->ints->v[i] + 1;
  return tiny_node_reduce_axes (graph, x[0], (TinyOp) node->arg, axes, node->ints->n);
}

RULE (rule_gather)
{
  return tiny_node_gather (graph, batched (graph, node->sources[0], x[0], size),
                           (guint) node->arg + 1,
                           batched (graph, node->sources[1], x[1], size));
}

RULE (rule_assign)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                       "assign: the memory of one tensor cannot become the values of a batch");
  return NULL;
}

RULE (rule_limit)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                       "an axis whose size is a variable, which is not the same for a batch");
  return NULL;
}

/* What it waits for may be batched or not. */
RULE (rule_after)
{
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < node->n_sources; i++)
    g_ptr_array_add (sources, i == 0         ? batched (graph, node->sources[0], x[0], size)
                              : x[i] != NULL ? x[i]
                                             : node->sources[i]);
  return tiny_node_with_sources (graph, node, (TinyNode *const *) sources->pdata);
}

/* One kernel with a loop over the batch. */
RULE (rule_kernel)
{
  gint64 dims[MAX_RANK + 1] = { size };
  g_autofree gboolean *is_batched = g_new0 (gboolean, node->n_sources + 1);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < node->n_sources; i++) {
    is_batched[i] = x[i] != NULL;
    g_ptr_array_add (sources, x[i] != NULL ? x[i]
                              : factor_is_text (node->text)
                                  ? tiny_batch_repeat (graph, node->sources[i], size)
                                  : node->sources[i]);
  }
  for (guint i = 0; i < node->shape->n; i++)
    dims[i + 1] = node->shape->v[i];
  g_autofree char *text
      = kernel_text_batch (node->text, node->n_sources, is_batched, size, error);
  if (text == NULL)
    return NULL;
  return tiny_node_new (graph, TINY_OP_KERNEL, (TinyDType) node->dtype, 1, node->n_sources,
                        (TinyNode *const *) sources->pdata, node->arg,
                        tiny_graph_ints (graph, dims, node->shape->n + 1), text);
}

/* The axis that pieces are cut along comes after that of the batch. */
RULE (rule_unshard)
{
  g_autofree TinyNode **pieces = g_new (TinyNode *, node->n_sources);
  for (guint i = 0; i < node->n_sources; i++)
    pieces[i] = batched (graph, node->sources[i], x[i], size);
  return tiny_node_new (graph, TINY_OP_UNSHARD, (TinyDType) node->dtype, 1, node->n_sources,
                        pieces, node->arg == TINY_SHARD_WHOLE ? node->arg : node->arg + 1, NULL,
                        node->text);
}

RULE (rule_gradient) { return custom_make_batched (graph, node, x, size); }

#define ELEMENTWISE(op) [TINY_OP_##op] = rule_elementwise
#define MOVEMENT(op)    [TINY_OP_##op] = rule_movement
#define SAME(op)        [TINY_OP_##op] = rule_same
static const TinyBatchRule rules[TINY_N_OPS] = {
  ELEMENTWISE (CAST),
  ELEMENTWISE (BITCAST),
  ELEMENTWISE (NEG),
  ELEMENTWISE (RECIP),
  ELEMENTWISE (SQRT),
  ELEMENTWISE (EXP2),
  ELEMENTWISE (LOG2),
  ELEMENTWISE (SIN),
  ELEMENTWISE (ADD),
  ELEMENTWISE (SUB),
  ELEMENTWISE (MUL),
  ELEMENTWISE (IDIV),
  ELEMENTWISE (MOD),
  ELEMENTWISE (MAX),
  ELEMENTWISE (CMPLT),
  ELEMENTWISE (CMPNE),
  ELEMENTWISE (AND),
  ELEMENTWISE (OR),
  ELEMENTWISE (XOR),
  ELEMENTWISE (SHL),
  ELEMENTWISE (SHR),
  ELEMENTWISE (WHERE),
  ELEMENTWISE (MULACC),
  ELEMENTWISE (TRUNC),
  ELEMENTWISE (FDIV),
  ELEMENTWISE (CMPEQ),
  ELEMENTWISE (FLOORDIV),
  ELEMENTWISE (FLOORMOD),
  MOVEMENT (RESHAPE),
  MOVEMENT (EXPAND),
  MOVEMENT (PERMUTE),
  MOVEMENT (PAD),
  MOVEMENT (SHRINK),
  MOVEMENT (FLIP),
  MOVEMENT (SHEAR),
  SAME (CONTIGUOUS),
  SAME (DETACH),
  SAME (COPY),
  [TINY_OP_SLOPED] = rule_sloped,
  [TINY_OP_REDUCE] = rule_reduce,
  [TINY_OP_GATHER] = rule_gather,
  [TINY_OP_ASSIGN] = rule_assign,
  [TINY_OP_AFTER] = rule_after,
  [TINY_OP_LIMIT] = rule_limit,
  [TINY_OP_GRADIENT] = rule_gradient,
  [TINY_OP_KERNEL] = rule_kernel,
  [TINY_OP_UNSHARD] = rule_unshard,
};

TinyBatchRule
tiny_batch_rule (TinyOp op)
{
  return rules[op];
}

/* ---- the walk ---- */
/* In *@out @node batched, or NULL when it is the same for all. */
static gboolean
batch_node (TinyGraph *graph,
            TinyNode *node,
            const TinyNodeMap *map,
            gint64 size,
            TinyNode **out,
            GError **error)
{
  g_autofree TinyNode **many = node->n_sources > 4 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[4], **x = many != NULL ? many : few;
  gboolean differs = FALSE;
  *out = NULL;
  for (guint i = 0; i < node->n_sources; i++) {
    x[i] = tiny_node_map_get (map, node->sources[i]);
    differs = differs || x[i] != NULL;
  }
  if (!differs)
    return TRUE;
  if (node->shape->n >= MAX_RANK) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s has %u axes, no room for one more",
                 tiny_op_to_string ((TinyOp) node->op), node->shape->n);
    return FALSE;
  }
  TinyBatchRule rule = tiny_batch_rule ((TinyOp) node->op);
  g_assert (rule != NULL);
  *out = rule (graph, node, x, size, error);
  return *out != NULL;
}

gboolean
tiny_batch_nodes (TinyGraph *graph,
                  gint64 size,
                  guint n,
                  TinyNode *const *nodes,
                  guint n_from,
                  TinyNode *const *from,
                  TinyNode *const *to,
                  TinyNode **out,
                  GError **error)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, nodes, n);
  g_auto (TinyNodeMap) map = { 0 };
  for (guint i = 0; i < n_from; i++)
    tiny_node_map_set (&map, from[i], to[i]);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *result;
    if (tiny_node_map_get (&map, node) != NULL)
      continue;
    if (!batch_node (graph, node, &map, size, &result, error))
      return FALSE;
    tiny_node_map_set (&map, node, result);
  }
  for (guint i = 0; i < n; i++)
    out[i] = tiny_node_map_get (&map, nodes[i]);
  return TRUE;
}
