/* SPDX-License-Identifier: MIT
 *
 * custom-rules.c: what a GRADIENT's rule does: a function of the program, or one of our own.
 *
 * A checkpoint's outputs are computed again from inputs that are AFTER the gradients: other nodes
 * than those of the first time, which therefore need not be kept, and not before they are needed. */
#include "autograd/custom-rules.h"

#include <string.h>

#include "autograd/batch-rules.h"
#include "autograd/function-call.h"
#include "autograd/gradient-rules.h"
#include "autograd/gradient-walk.h"
#include "autograd/tiny-transforms.h"
#include "base/interrupt-check.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

/* A function of the program, and what is made of it for batches. */
typedef struct {
  gint n_refs;
  TinyBackwardFunction function;
  gpointer data;
  GDestroyNotify destroy;
  GPtrArray *batches; /* Batched, which live as long as their rules */
} Custom;

/* The data of a rule for a whole batch. */
typedef struct {
  Custom *each; /* for one element */
  char *kinds;  /* of each input: 'b' batched, 's' the same for all */
  gint64 rule;
} Batched;

static void
custom_unref (gpointer data)
{
  Custom *self = data;
  if (!g_atomic_int_dec_and_test (&self->n_refs))
    return;
  if (self->destroy != NULL)
    self->destroy (self->data);
  g_ptr_array_unref (self->batches);
  g_free (self);
}

gint64
custom_attach (TinyBackwardFunction function, gpointer data, GDestroyNotify destroy)
{
  Custom *self = g_new (Custom, 1);
  *self = (Custom){ 1, function, data, destroy, g_ptr_array_new () };
  return tiny_runtime_attach (self, custom_unref);
}

gboolean
custom_is_same_call (const TinyNode *a, const TinyNode *b)
{
  return a->arg == b->arg && a->n_sources == b->n_sources && a->ints->v[1] == b->ints->v[1]
         && memcmp (a->sources, b->sources, a->n_sources * sizeof *a->sources) == 0;
}

TinyNode *
custom_make_node (TinyGraph *graph,
                  gint64 rule,
                  guint i,
                  guint n_outputs,
                  guint n_remade,
                  TinyNode *const *sources,
                  guint n_sources)
{
  return tiny_node_new (graph, TINY_OP_GRADIENT, (TinyDType) sources[i]->dtype, 1, n_sources,
                        sources, rule,
                        tiny_graph_ints (graph, (gint64[]){ i, n_outputs, n_remade }, 3), NULL);
}

/* ---- checkpoints ---- */
static gboolean
is_constant (const TinyNode *node)
{
  while (tiny_op_is_movement ((TinyOp) node->op))
    node = node->sources[0];
  return node->op == TINY_OP_CONST;
}

/* @x, but not before the @n gradients are there. */
static TinyNode *
make_after (TinyGraph *graph, TinyNode *x, TinyNode *const *gradients, guint n)
{
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  if (x->op == TINY_OP_CONST)
    return x;
  g_ptr_array_add (sources, x);
  for (guint i = 0; i < n; i++)
    if (!is_constant (gradients[i]))
      g_ptr_array_add (sources, gradients[i]);
  return tiny_node_new (graph, TINY_OP_AFTER, (TinyDType) x->dtype, 1, sources->len,
                        (TinyNode *const *) sources->pdata, 0, NULL, NULL);
}

static gboolean
find_checkpoint_gradients (TinyGraph *graph,
                           TinyNode *node,
                           TinyNode *const *gradients,
                           TinyNode **out,
                           GError **error)
{
  guint n = custom_count_outputs (node), n_inputs = custom_count_inputs (node);
  TinyNode *const *inputs = custom_get_inputs (node);
  g_autofree TinyNode **again = g_new (TinyNode *, n_inputs + 1);
  for (guint k = 0; k < n_inputs; k++)
    again[k] = k < node->ints->v[2] ? make_after (graph, inputs[k], gradients, n) : inputs[k];
  TinyNode *outputs = tiny_node_sink (graph, n, node->sources, NULL);
  outputs = tiny_graph_substitute (graph, outputs, inputs, again, (guint) node->ints->v[2]);
  if (!tiny_partial_gradients_of_nodes (graph, n, outputs->sources, gradients, n_inputs, again,
                                        out, error))
    return FALSE;
  for (guint k = 0; k < n_inputs; k++)
    for (guint j = 0; j < k; j++)
      if (inputs[j] == inputs[k])
        out[k] = NULL; /* the first has all of it */
  return TRUE;
}

/* ---- sums at positions ---- */

/* y (…, N, …) are sums of x (…, M, …) at positions (…, M, …): to each of x the gradient where it went, over all
 * of a batch for which it is the same. */
static TinyNode *
find_scatter_gradient (TinyGraph *graph, TinyNode *node, TinyNode *gradient)
{
  TinyNode *x = custom_get_inputs (node)[0], *positions = custom_get_inputs (node)[1];
  guint rank = gradient->shape->n, axis = rank - 1 - (guint) (node->arg - CUSTOM_SCATTER);
  gint64 dims[TINY_MAX_RANK * 2], axes[TINY_MAX_RANK * 2];
  guint n_more = rank - x->shape->n;
  for (guint i = 0; i < rank; i++) {
    dims[i] = i == axis ? x->shape->v[axis - n_more] : gradient->shape->v[i];
    axes[i] = i;
  }
  TinyNode *found = tiny_node_gather (graph, gradient, axis,
                                      tiny_node_broadcast (graph, positions, dims, rank));
  found = tiny_layout_reduce (graph, found, TINY_OP_ADD, axes, n_more);
  return tiny_node_reshape (graph, found, x->shape->v, x->shape->n);
}

/* ---- factors of matrices ---- */
static gboolean
is_zero (const TinyNode *node)
{
  while (tiny_op_is_movement ((TinyOp) node->op))
    node = node->sources[0];
  return node->op == TINY_OP_CONST && node->arg == 0;
}

/* Formulas read the outputs as values that have gradients themselves. */
static gboolean
find_factor_gradients (TinyGraph *graph,
                       TinyNode *node,
                       TinyNode *const *gradients,
                       TinyNode **out,
                       GError **error)
{
  guint n = custom_count_outputs (node);
  g_autofree TinyNode **outputs = g_new (TinyNode *, n), **given = g_new (TinyNode *, n);
  for (guint i = 0; i < n; i++) {
    outputs[i] = custom_make_node (graph, node->arg, i, n, 0, node->sources, node->n_sources);
    given[i] = is_zero (gradients[i]) ? NULL : gradients[i];
  }
  const TinyFactorCall call
      = { n, custom_count_inputs (node), given, outputs, custom_get_inputs (node) };
  return tiny_factor_find_gradients (graph, tiny_gradient_find_device (graph, node), node->arg,
                                     &call, out, error);
}

/* ---- functions of the program ---- */
static GPtrArray *
wrap_nodes (TinyGraph *graph, TinyNode *const *nodes, guint n)
{
  GPtrArray *tensors = tensor_list_new ();
  for (guint i = 0; i < n; i++) {
    const char *device = tiny_gradient_find_device (graph, nodes[i]);
    TinyTensor *tensor
        = tiny_tensor_new_for_node (nodes[i], device != NULL ? g_intern_string (device) : NULL);
    g_ptr_array_add (tensors, g_object_ref_sink (tensor));
  }
  return tensors;
}

/* What the function gives, an element for each input. */
static GPtrArray *
call (Custom *self,
      const GPtrArray *gradients,
      const GPtrArray *inputs,
      const GPtrArray *outputs,
      GError **error)
{
  GError *failure = NULL;
  GPtrArray *given = NULL;
  if (tiny_interrupt_check_now (&failure))
    given = self->function ((TinyTensor *const *) gradients->pdata, gradients->len,
                            (TinyTensor *const *) inputs->pdata, inputs->len,
                            (TinyTensor *const *) outputs->pdata, outputs->len, self->data,
                            &failure);
  g_autoptr (GPtrArray) found
      = tensor_list_check ("custom_gradient", given, TRUE, failure, error);
  if (found != NULL && found->len != inputs->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "custom_gradient: %u gradients came for %u inputs", found->len, inputs->len);
    return NULL;
  }
  return g_steal_pointer (&found);
}

static gboolean
check_gradient (guint k, const TinyNode *found, const TinyNode *input, GError **error)
{
  if (found->dtype == input->dtype && tiny_shape_equal (found->shape, input->shape))
    return TRUE;
  g_autofree char *has = tiny_shape_to_string (found->shape);
  g_autofree char *wanted = tiny_shape_to_string (input->shape);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "custom_gradient: gradient %u is %s of %s, not %s of %s", k, has,
               tiny_dtype_to_string ((TinyDType) found->dtype), wanted,
               tiny_dtype_to_string ((TinyDType) input->dtype));
  return FALSE;
}

gboolean
custom_find_gradients (TinyGraph *graph,
                       TinyNode *node,
                       TinyNode *const *gradients,
                       TinyNode **out,
                       GError **error)
{
  guint n = custom_count_outputs (node), n_inputs = custom_count_inputs (node);
  if (node->arg == CUSTOM_CHECKPOINT)
    return find_checkpoint_gradients (graph, node, gradients, out, error);
  if (node->arg == CUSTOM_CONTIGUOUS) {
    TinyNode *sources[] = { tiny_node_new (graph, TINY_OP_CONTIGUOUS, (TinyDType) node->dtype,
                                           1, 1, gradients, 0, NULL, NULL),
                            gradients[0] };
    out[0] = custom_make_node (graph, CUSTOM_CONTIGUOUS, 0, 1, 0, sources, 2);
    return TRUE;
  }
  if (custom_is_factor (node))
    return find_factor_gradients (graph, node, gradients, out, error);
  if (node->arg >= CUSTOM_SCATTER && node->arg < CUSTOM_FACTOR) {
    out[0] = find_scatter_gradient (graph, node, gradients[0]);
    return TRUE;
  }
  Custom *custom = tiny_runtime_get_attached (node->arg);
  g_assert (custom != NULL);
  g_autoptr (GPtrArray) ours = wrap_nodes (graph, gradients, n);
  g_autoptr (GPtrArray) inputs = wrap_nodes (graph, custom_get_inputs (node), n_inputs);
  g_autoptr (GPtrArray) outputs = wrap_nodes (graph, node->sources, n);
  tiny_runtime_hold ();
  g_autoptr (GPtrArray) found = call (custom, ours, inputs, outputs, error);
  tiny_runtime_release ();
  for (guint k = 0; found != NULL && k < n_inputs; k++) {
    TinyNode *input = custom_get_inputs (node)[k];
    out[k] = NULL;
    if (found->pdata[k] == NULL || !tiny_dtype_is_float (input->dtype))
      continue;
    out[k] = tiny_tensor_get_node (found->pdata[k]);
    if (!check_gradient (k, out[k], input, error))
      return FALSE;
  }
  return found != NULL;
}

void
custom_refuse_kernel (GError **error)
{
  g_set_error_literal (
      error, TINY_ERROR, TINY_ERROR_INVALID,
      "custom_kernel: nothing is known of its derivative; call it in a function with a "
      "custom gradient");
}

/* ---- forward ---- */
static gboolean
depends_on_any (TinyGraph *graph, TinyNode *node, TinyNode *const *others, guint n)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &node, 1);
  for (guint i = 0; i < n; i++)
    if (g_ptr_array_find (order, others[i], NULL))
      return TRUE;
  return FALSE;
}

/* Of a function that is linear in g, the gradient with respect to g is the other direction. */
gboolean
custom_find_tangent (
    TinyGraph *graph, TinyNode *node, TinyNode *const *tangents, TinyNode **out, GError **error)
{
  guint n = custom_count_outputs (node), n_inputs = custom_count_inputs (node), n_used = 0;
  if (node->arg < CUSTOM_FACTOR) {
    *out = tangents[node->ints->v[0]];
    return TRUE;
  }
  g_autofree TinyNode **directions = g_new (TinyNode *, n + 1);
  g_autofree TinyNode **gradients = g_new0 (TinyNode *, n_inputs + 1);
  g_autofree TinyNode **seeds = g_new (TinyNode *, n_inputs + 1);
  for (guint i = 0; i < n; i++)
    directions[i] = function_call_make_placeholder (node->sources[i]);
  if (!custom_find_gradients (graph, node, directions, gradients, error))
    return FALSE;
  for (guint k = 0; k < n_inputs; k++) {
    TinyNode *tangent = tangents[n + k];
    if (gradients[k] == NULL || tangent == NULL)
      continue;
    gradients[n_used] = gradients[k];
    seeds[n_used++] = tangent;
  }
  if (!tiny_gradients_of_nodes (graph, n_used, gradients, seeds, 1,
                                &directions[node->ints->v[0]], out, error))
    return FALSE;
  if (*out == NULL || !depends_on_any (graph, *out, directions, n))
    return TRUE;
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                       "custom_gradient: the gradient function is not linear in the gradients "
                       "that it is given, so there is no derivative forward");
  return FALSE;
}

/* ---- batches ---- */
static void
batched_free (gpointer data)
{
  Batched *self = data;
  tiny_runtime_lock ();
  g_ptr_array_remove_fast (self->each->batches, self);
  tiny_runtime_unlock ();
  custom_unref (self->each);
  g_free (self->kinds);
  g_free (self);
}

typedef struct {
  Custom *each;
  guint n_outputs, n_inputs;
} Each;

/* Of gradients, inputs and outputs, one element of the batch: a TinyFunction. */
static GPtrArray *
call_each (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  const Each *self = data;
  GPtrArray *parts[3];
  guint counts[] = { self->n_outputs, self->n_inputs, self->n_outputs };
  for (guint i = 0, at = 0; i < 3; i++) {
    parts[i] = tensor_list_new ();
    for (guint k = 0; k < counts[i]; k++)
      g_ptr_array_add (parts[i], g_object_ref (x[at++]));
  }
  GPtrArray *found = call (self->each, parts[0], parts[1], parts[2], error);
  for (guint k = 0; found != NULL && k < found->len; k++)
    if (found->pdata[k] == NULL) {
      const TinyTensor *like = parts[1]->pdata[k];
      found->pdata[k]
          = g_object_ref_sink (tiny_tensor_zeros (like->dtype, like->shape, like->n_dims));
    }
  for (guint i = 0; i < 3; i++)
    g_ptr_array_unref (parts[i]);
  return found;
}

/* A TinyBackwardFunction: what is the same for all of the batch has the sum as gradient. */
static GPtrArray *
call_batched (TinyTensor *const *gradients,
              guint n_gradients,
              TinyTensor *const *inputs,
              guint n_inputs,
              TinyTensor *const *outputs,
              guint n_outputs,
              gpointer data,
              GError **error)
{
  const Batched *self = data;
  Each each = { self->each, n_outputs, n_inputs };
  guint n = n_gradients + n_inputs + n_outputs;
  g_autofree gint *axes = g_new0 (gint, n);
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  for (guint i = 0; i < n_gradients; i++)
    g_ptr_array_add (all, gradients[i]);
  for (guint i = 0; i < n_inputs; i++) {
    if (self->kinds[i] == 's')
      axes[all->len] = TINY_NO_AXIS;
    g_ptr_array_add (all, inputs[i]);
  }
  for (guint i = 0; i < n_outputs; i++)
    g_ptr_array_add (all, outputs[i]);
  GPtrArray *found = tiny_vmap_with_randomness (
      call_each, &each, (TinyTensor *const *) all->pdata, n, axes, n, NULL, 0, "same");
  for (guint i = 0; found->len == n_inputs && i < n_inputs; i++)
    if (self->kinds[i] == 's') {
      TinyTensor *sum = tiny_tensor_sum (found->pdata[i], (gint[]){ 0 }, 1, FALSE);
      g_object_ref_sink (sum);
      g_object_unref (found->pdata[i]);
      found->pdata[i] = sum;
    }
  return found;
}

/* The rule for a batch, the same one for all GRADIENTs of a call. */
static gint64
find_batched_rule (Custom *self, const char *kinds)
{
  for (guint i = 0; i < self->batches->len; i++) {
    const Batched *known = self->batches->pdata[i];
    if (g_str_equal (known->kinds, kinds) && tiny_runtime_get_attached (known->rule) != NULL)
      return known->rule;
  }
  Batched *batched = g_new0 (Batched, 1);
  batched->each = self;
  batched->kinds = g_strdup (kinds);
  g_atomic_int_inc (&self->n_refs);
  batched->rule = custom_attach (call_batched, batched, batched_free);
  g_ptr_array_add (self->batches, batched);
  return batched->rule;
}

TinyNode *
custom_make_batched (TinyGraph *graph, TinyNode *node, TinyNode *const *x, gint64 size)
{
  guint n = custom_count_outputs (node);
  gint64 rule = node->arg;
  g_autofree TinyNode **sources = g_new (TinyNode *, node->n_sources);
  g_autoptr (GString) kinds = g_string_new (NULL);
  for (guint i = 0; i < node->n_sources; i++) {
    sources[i] = x[i] != NULL ? x[i] : node->sources[i];
    if (x[i] == NULL && (i < n || custom_is_factor (node)))
      sources[i] = tiny_batch_repeat (graph, sources[i], size);
    if (i >= n)
      g_string_append_c (kinds, x[i] != NULL ? 'b' : 's');
  }
  if (rule >= CUSTOM_N_RULES)
    rule = find_batched_rule (tiny_runtime_get_attached (rule), kinds->str);
  return tiny_node_new (graph, TINY_OP_GRADIENT, (TinyDType) node->dtype, 1, node->n_sources,
                        sources, rule, node->ints, NULL);
}
