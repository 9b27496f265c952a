/* SPDX-License-Identifier: MIT
 *
 * gradient-walk.c: walks the graph under outputs from users to sources and adds up gradients.
 *
 * There is no tape: the graph that computes the outputs is all that is needed. Only nodes of float
 * dtype on a path from a wanted node to an output are visited. */
#include "autograd/gradient-walk.h"

#include "autograd/custom-rules.h"
#include "autograd/gradient-parts.h"
#include "autograd/gradient-rules.h"
#include "base/interrupt-check.h"
#include "base/tiny-arena.h"
#include "engine/tiny-history.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-layout.h"

/* Elementwise sources of shape () stand for one value everywhere: they get the sum. */
static TinyNode *
fit_to_source (TinyGraph *graph, TinyNode *gradient, const TinyNode *source)
{
  if (gradient->shape->n == source->shape->n || source->shape->n != 0)
    return gradient;
  gint64 axes[32];
  for (guint i = 0; i < gradient->shape->n; i++)
    axes[i] = i;
  gradient = tiny_layout_reduce (graph, gradient, TINY_OP_ADD, axes, gradient->shape->n);
  return tiny_node_reshape (graph, gradient, NULL, 0);
}

static TinyNode *
fit_to_node (TinyGraph *graph, TinyNode *gradient, const TinyNode *node)
{
  if (tiny_shape_equal (gradient->shape, node->shape))
    return gradient;
  return tiny_node_broadcast (graph, gradient, node->shape->v, node->shape->n);
}

TinyNode *
tiny_gradient_or_zeros (TinyGraph *graph, TinyNode *x, const TinyNode *like)
{
  if (x == NULL)
    x = tiny_node_const_float (graph, (TinyDType) like->dtype, 0);
  return fit_to_node (graph, x, like);
}

enum { WANTED_STALE = 2 }; /* something may be below what is gone, see engine/tiny-history.h */

/* One part of what comes for a node, behind those that came before. */
typedef struct Part Part;
struct Part {
  Part *before;
  TinyNode *node;
  guint n; /* with those before */
};

typedef struct {
  TinyGraph *graph;
  TinyArena *arena;
  guint8 *wanted;     /* by node id: a target is below */
  guint8 *ends;       /* by node id: nothing goes further; or NULL */
  GPtrArray *customs; /* GRADIENTs, sources before users */
  TinyNodeMap parts;  /* of a node: the last Part of its gradient */
} Walk;

static void
add_gradient (Walk *self, TinyNode *node, TinyNode *gradient)
{
  Part *before = tiny_node_map_get (&self->parts, node);
  Part *part = tiny_arena_alloc (self->arena, sizeof *part);
  *part = (Part){ before, fit_to_source (self->graph, gradient, node),
                  before != NULL ? before->n + 1 : 1 };
  tiny_node_map_set (&self->parts, node, part);
}

static gboolean
has_gradient (Walk *self, const TinyNode *node)
{
  return tiny_node_map_get (&self->parts, node) != NULL;
}

/* The sum of what came for @node, or NULL. */
static TinyNode *
get_gradient (Walk *self, TinyNode *node)
{
  Part *last = tiny_node_map_get (&self->parts, node);
  if (last == NULL || last->n == 1)
    return last != NULL ? last->node : NULL;
  g_autofree TinyNode **parts = g_new (TinyNode *, last->n);
  for (const Part *part = last; part != NULL; part = part->before)
    parts[part->n - 1] = fit_to_node (self->graph, part->node, node);
  *last = (Part){ NULL, gradient_parts_sum (self->graph, parts, last->n), 1 };
  return last->node;
}

/* Of what is empty nothing comes: zeros. */
static void
pass_on_nothing (Walk *self, TinyNode *node)
{
  for (guint i = 0; i < node->n_sources; i++)
    if (self->wanted[node->sources[i]->id] && tiny_history_flows (node, i))
      add_gradient (self, node->sources[i],
                    tiny_gradient_or_zeros (self->graph, NULL, node->sources[i]));
}

static void
pass_on (Walk *self, TinyNode *node)
{
  TinyGradientRule rule = tiny_gradient_rule ((TinyOp) node->op);
  TinyNode *few[4] = { NULL };
  if (rule == NULL)
    return;
  if (tiny_shape_get_n_elements (node->shape) == 0) {
    pass_on_nothing (self, node);
    return;
  }
  const gboolean is_few = node->n_sources <= G_N_ELEMENTS (few);
  g_autofree TinyNode **many = is_few ? NULL : g_new0 (TinyNode *, node->n_sources);
  TinyNode **out = is_few ? few : many;
  rule (self->graph, node, fit_to_node (self->graph, get_gradient (self, node), node), out);
  for (guint i = 0; i < node->n_sources; i++)
    if (out[i] != NULL && self->wanted[node->sources[i]->id])
      add_gradient (self, node->sources[i], out[i]);
}

/* Fills @out with the gradients of all outputs of the call of @node, if this is the first GRADIENT
 * of it in the order, so that none can come any more, and there are any. */
static gboolean
collect_gradients (Walk *self, TinyNode *node, TinyNode **out)
{
  gboolean is_first = TRUE, any = FALSE;
  for (guint i = 0; i < self->customs->len; i++) {
    TinyNode *other = self->customs->pdata[i];
    if (!custom_is_same_call (other, node))
      continue;
    if (is_first && other != node)
      return FALSE;
    is_first = FALSE;
    if (self->ends == NULL || !self->ends[other->id])
      out[other->ints->v[0]] = get_gradient (self, other);
    any = any || out[other->ints->v[0]] != NULL;
  }
  return any;
}

static gboolean
pass_on_custom (Walk *self, TinyNode *node, GError **error)
{
  guint n = custom_count_outputs (node), n_inputs = custom_count_inputs (node);
  TinyNode *const *inputs = custom_get_inputs (node);
  g_autofree TinyNode **gradients = g_new0 (TinyNode *, n + 1);
  g_autofree TinyNode **out = g_new0 (TinyNode *, n_inputs + 1);
  if (!collect_gradients (self, node, gradients))
    return TRUE;
  for (guint i = 0; i < n; i++) {
    TinyNode *zero = tiny_node_const_int (self->graph, (TinyDType) node->sources[i]->dtype, 0);
    gradients[i] = fit_to_node (self->graph, gradients[i] != NULL ? gradients[i] : zero,
                                node->sources[i]);
  }
  if (!custom_find_gradients (self->graph, node, gradients, out, error))
    return FALSE;
  for (guint k = 0; k < n_inputs; k++)
    if (out[k] != NULL && self->wanted[inputs[k]->id])
      add_gradient (self, inputs[k], out[k]);
  return TRUE;
}

/* Whether gradients flow from @node to its source @i. */
static gboolean
flows_to (const TinyNode *node, guint i)
{
  if (node->op == TINY_OP_GRADIENT)
    return i >= custom_count_outputs (node);
  /* To a KERNEL they would: walk() says so. */
  return tiny_gradient_rule ((TinyOp) node->op) != NULL || node->op == TINY_OP_KERNEL;
}

static void
find_wanted (Walk *self, GPtrArray *order, guint n, TinyNode *const *targets)
{
  for (guint i = 0; i < n; i++)
    self->wanted[targets[i]->id] = 1;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    gboolean is_stale;
    const TinyNode *history = tiny_history_get (node, &is_stale);
    if (node->op == TINY_OP_GRADIENT)
      g_ptr_array_add (self->customs, node);
    if (is_stale && !self->wanted[node->id])
      self->wanted[node->id] = WANTED_STALE;
    if (history != NULL && self->wanted[history->id])
      self->wanted[node->id] = TRUE;
    for (guint s = 0;
         tiny_dtype_is_float (node->dtype) && s < node->n_sources && !self->wanted[node->id];
         s++)
      self->wanted[node->id] = flows_to (node, s) && self->wanted[node->sources[s]->id] != 0;
  }
}

static gboolean
reads_wanted (Walk *self, const TinyNode *node)
{
  for (guint i = 0; i < node->n_sources; i++)
    if (self->wanted[node->sources[i]->id])
      return TRUE;
  return FALSE;
}

void
tiny_gradient_refuse_stale (GError **error)
{
  g_set_error_literal (
      error, TINY_ERROR, TINY_ERROR_INVALID,
      "gradient: a tensor that was realised is made of one that was assigned to "
      "since, by an optimiser's step perhaps: take gradients before that, or "
      "detach() what is kept from step to step");
}

/* To the expression that realised @node was. */
static gboolean
pass_to_history (Walk *self, TinyNode *node, GError **error)
{
  TinyNode *history = tiny_history_get (node, NULL);
  if (self->wanted[node->id] == WANTED_STALE) {
    tiny_gradient_refuse_stale (error);
    return FALSE;
  }
  if (history != NULL && self->wanted[history->id])
    add_gradient (self, history, get_gradient (self, node));
  return TRUE;
}

static gboolean
walk (Walk *self, GPtrArray *order, GError **error)
{
  for (guint i = order->len; i-- > 0;) {
    TinyNode *node = order->pdata[i];
    if (i % 1024 == 0 && !tiny_interrupt_check (error))
      return FALSE;
    if (node->op == TINY_OP_GRADIENT) {
      if (!pass_on_custom (self, node, error))
        return FALSE;
    } else if (node->op == TINY_OP_KERNEL && has_gradient (self, node)
               && (self->ends == NULL || !self->ends[node->id]) && reads_wanted (self, node)) {
      custom_refuse_kernel (error);
      return FALSE;
    } else if (tiny_runtime_is_memory (node)) {
      if (has_gradient (self, node) && (self->ends == NULL || !self->ends[node->id])
          && !pass_to_history (self, node, error))
        return FALSE;
    } else if (has_gradient (self, node) && (self->ends == NULL || !self->ends[node->id])) {
      pass_on (self, node);
    }
  }
  return TRUE;
}

/* The UNSHARD that target @x is, or writes to: its gradient is cut alike. */
static const TinyNode *
find_shards (const TinyNode *x)
{
  if (x->op == TINY_OP_ASSIGN)
    x = x->sources[0];
  return x->op == TINY_OP_UNSHARD ? x : NULL;
}

static gboolean
find_gradients (TinyGraph *graph,
                GPtrArray *order,
                guint n_outputs,
                TinyNode *const *outputs,
                TinyNode *const *seeds,
                guint n,
                TinyNode *const *targets,
                gboolean is_partial,
                TinyNode **out,
                GError **error)
{
  guint n_nodes = tiny_graph_get_n_nodes (graph);
  g_autofree guint8 *wanted = g_new0 (guint8, n_nodes);
  g_autofree guint8 *ends = is_partial ? g_new0 (guint8, n_nodes) : NULL;
  g_autoptr (GPtrArray) customs = g_ptr_array_new ();
  g_autoptr (TinyArena) arena = tiny_arena_new ();
  Walk self = { graph, arena, wanted, ends, customs, { 0 } };
  for (guint i = 0; is_partial && i < n; i++)
    ends[targets[i]->id] = 1;
  find_wanted (&self, order, n, targets);
  for (guint i = 0; i < n_outputs; i++)
    if (wanted[outputs[i]->id])
      add_gradient (&self, outputs[i], seeds[i]);
  gboolean good = walk (&self, order, error);
  for (guint i = 0; good && i < n; i++) {
    out[i] = get_gradient (&self, targets[i]);
    if (out[i] != NULL)
      out[i] = fit_to_node (graph, out[i], targets[i]);
    if (out[i] != NULL && find_shards (targets[i]) != NULL)
      out[i] = tiny_node_to_like (graph, out[i], find_shards (targets[i]));
  }
  tiny_node_map_clear (&self.parts);
  return good;
}

gboolean
tiny_gradients_of_nodes (TinyGraph *graph,
                         guint n_outputs,
                         TinyNode *const *outputs,
                         TinyNode *const *seeds,
                         guint n,
                         TinyNode *const *targets,
                         TinyNode **out,
                         GError **error)
{
  g_autoptr (GPtrArray) order = tiny_history_toposort (graph, outputs, n_outputs);
  return find_gradients (graph, order, n_outputs, outputs, seeds, n, targets, FALSE, out,
                         error);
}

gboolean
tiny_gradients_of_order (TinyGraph *graph,
                         GPtrArray *order,
                         TinyNode *seed,
                         guint n,
                         TinyNode *const *targets,
                         TinyNode **out,
                         GError **error)
{
  TinyNode *output = order->pdata[order->len - 1];
  return find_gradients (graph, order, 1, &output, &seed, n, targets, FALSE, out, error);
}

gboolean
tiny_partial_gradients_of_nodes (TinyGraph *graph,
                                 guint n_outputs,
                                 TinyNode *const *outputs,
                                 TinyNode *const *seeds,
                                 guint n,
                                 TinyNode *const *targets,
                                 TinyNode **out,
                                 GError **error)
{
  g_autoptr (GPtrArray) order = tiny_history_toposort (graph, outputs, n_outputs);
  return find_gradients (graph, order, n_outputs, outputs, seeds, n, targets, TRUE, out, error);
}
