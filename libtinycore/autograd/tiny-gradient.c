/* SPDX-License-Identifier: MIT
 *
 * tiny-gradient.c: gradients of tensors: what is asked for, checked, and whether to have any. */
#include "autograd/tiny-gradient.h"

#include "autograd/function-call.h"
#include "autograd/gradient-hook.h"
#include "autograd/gradient-walk.h"
#include "base/tiny-guard.h"
#include "engine/tiny-history.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

/* ---- checks ---- */
static gboolean
check_tensor (TinyTensor *tensor, const char *what, guint i, GError **error)
{
  if (tensor == NULL || !TINY_IS_TENSOR (tensor)
      || (tiny_tensor_get_error (tensor) == NULL && tiny_tensor_get_node (tensor) == NULL)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "gradient: %s %u is no tensor", what,
                 i);
    return FALSE;
  }
  if (tiny_tensor_get_error (tensor) == NULL)
    return tiny_runtime_check (error);
  g_propagate_error (error, g_error_copy (tiny_tensor_get_error (tensor)));
  return FALSE;
}

/* What output @y is weighted with: 1 where nothing is given. */
static TinyNode *
find_seed (TinyTensor *y, TinyTensor *given, GError **error)
{
  TinyNode *node = tiny_tensor_get_node (y);
  g_autofree char *shape = tiny_shape_to_string (node->shape);
  const char *dtype = tiny_dtype_to_string (tiny_tensor_get_dtype (y));
  if (given == NULL) {
    if (tiny_dtype_is_float (node->dtype) && tiny_tensor_get_n_elements (y) == 1)
      return tiny_node_const_float (tiny_runtime_get_graph (), (TinyDType) node->dtype, 1);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "gradient: the loss is one float, not %s of %s: take its sum() or mean(), or "
                 "give a gradient",
                 shape, dtype);
    return NULL;
  }
  if (!check_tensor (given, "the gradient of output", 0, error))
    return NULL;
  TinyNode *seed = tiny_tensor_get_node (given);
  if (tiny_dtype_is_float (node->dtype) && seed->dtype == node->dtype
      && tiny_shape_equal (seed->shape, node->shape))
    return seed;
  g_autofree char *other = tiny_shape_to_string (seed->shape);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "gradient: a gradient of %s of %s is given for %s of %s", other,
               tiny_dtype_to_string ((TinyDType) seed->dtype), shape, dtype);
  return NULL;
}

static gboolean
find_targets (TinyTensor *const *xs, guint n, TinyNode **out, GError **error)
{
  for (guint i = 0; i < n; i++) {
    if (!check_tensor (xs != NULL ? xs[i] : NULL, "x", i, error))
      return FALSE;
    out[i] = tiny_tensor_get_node (xs[i]);
    if (!tiny_dtype_is_float (out[i]->dtype)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "gradient: x %u is of %s, which has no gradient", i,
                   tiny_dtype_to_string ((TinyDType) out[i]->dtype));
      return FALSE;
    }
  }
  return TRUE;
}

/* ---- what lies under a loss ---- */
/* A node at which the gradients of a tensor with that number end, or ended. */
typedef struct {
  const TinyNode *node;
  guint64 number;
} End;

typedef struct {
  GPtrArray *order;     /* all, also through histories; sources before users */
  gboolean has_limit;   /* a size that is a variable is among it */
  guint32 seen;         /* the mark of what is not detached */
  GArray *ends;         /* End, of views and of what has another node since */
  gboolean is_stale;    /* see engine/tiny-history.h */
  gboolean has_end;     /* a tensor that required gradients and is gone */
  gboolean is_recorded; /* memory of a recording */
} Below;

static void
clear_below (Below *self)
{
  g_array_unref (self->ends);
  g_ptr_array_unref (self->order);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Below, clear_below)

static Below
look_below (TinyNode *root)
{
  gboolean is_stale;
  TinyGraph *graph = tiny_runtime_get_graph ();
  GPtrArray *order = tiny_history_toposort (graph, &root, 1);
  guint32 seen = tiny_graph_begin_mark (graph);
  Below self
      = { .order = order, .seen = seen, .ends = g_array_new (FALSE, FALSE, sizeof (End)) };
  root->mark = seen;
  for (guint i = order->len; i-- > 0;) {
    TinyNode *node = order->pdata[i], *history = tiny_history_get (node, &is_stale);
    self.has_limit = self.has_limit || node->op == TINY_OP_LIMIT;
    if (node->mark != seen)
      continue;
    self.is_stale = self.is_stale || is_stale;
    self.has_end = self.has_end || tiny_history_is_end (node);
    self.is_recorded = self.is_recorded
                       || (node->op == TINY_OP_BUFFER
                           && tiny_buffer_is_recorded (tiny_runtime_get_buffer (node)));
    End end = { node, tiny_history_get_left (node) };
    if (node->op == TINY_OP_DETACH) /* see tiny_view_read() */
      end.number = (guint64) node->arg;
    if (end.number != 0)
      g_array_append_val (self.ends, end);
    if (history != NULL)
      history->mark = seen;
    for (guint s = 0; s < node->n_sources; s++)
      if (tiny_history_flows (node, s))
        node->sources[s]->mark = seen;
  }
  return self;
}

/* Whether what @variable was before it was assigned to, or moved to another device, is there. */
static gboolean
has_old (const Below *self, TinyTensor *variable)
{
  const TinyNode *now = tiny_tensor_get_node (variable);
  while (tiny_op_is_movement ((TinyOp) now->op))
    now = now->sources[0];
  gboolean found = now->op == TINY_OP_ASSIGN && now->sources[0]->mark == self->seen;
  for (guint i = 0; !found && i < self->ends->len; i++) {
    const End *end = &g_array_index (self->ends, End, i);
    found = end->number == variable->variable && end->node != now;
  }
  return found;
}

static void
refuse_old (GError **error)
{
  g_set_error_literal (
      error, TINY_ERROR, TINY_ERROR_INVALID,
      "gradient: the loss was made of a tensor that requires one before that was "
      "assigned to: take gradients before assigning, or make the loss anew");
}

/* ---- gradients ---- */
static gboolean
check_sizes (const Below *below, TinyGraph *graph, TinyNode *loss, GError **error)
{
  if (!below->has_limit)
    return TRUE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &loss, 1);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_LIMIT) {
      g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                           "gradient: the loss depends on an axis whose size is a variable, "
                           "through which there is none");
      return FALSE;
    }
  return TRUE;
}

static gboolean
find_gradients (const Below *below,
                TinyTensor *loss,
                TinyTensor *seed,
                TinyTensor *const *xs,
                guint n,
                TinyTensor **out_grads,
                GError **error)
{
  if (!check_tensor (loss, "output", 0, error))
    return FALSE;
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *weight = find_seed (loss, seed, error), *output = tiny_tensor_get_node (loss);
  g_autofree TinyNode **targets = g_new0 (TinyNode *, n + 1);
  g_autofree TinyNode **found = g_new0 (TinyNode *, n + 1);
  if (weight == NULL || !find_targets (xs, n, targets, error)
      || !check_sizes (below, graph, output, error)
      || !tiny_gradients_of_order (graph, below->order, weight, n, targets, found, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    out_grads[i] = g_object_ref_sink (tiny_tensor_new_for_node (
        tiny_gradient_or_zeros (graph, found[i], targets[i]), tiny_tensor_get_device (xs[i])));
  gboolean good = TRUE;
  for (guint i = 0; good && i < n; i++)
    good = gradient_hooks_apply (xs[i], &out_grads[i], error);
  for (guint i = 0; !good && i < n; i++)
    g_clear_object (&out_grads[i]);
  return good;
}

static gboolean
gradient_locked (TinyTensor *loss,
                 TinyTensor *seed,
                 TinyTensor *const *xs,
                 guint n,
                 TinyTensor **out_grads,
                 GError **error)
{
  if (!check_tensor (loss, "output", 0, error))
    return FALSE;
  g_auto (Below) below = look_below (tiny_tensor_get_node (loss));
  for (guint i = 0; i < n; i++)
    if (TINY_IS_TENSOR (xs[i]) && xs[i]->requires_grad && has_old (&below, xs[i])) {
      refuse_old (error);
      return FALSE;
    }
  return find_gradients (&below, loss, seed, xs, n, out_grads, error);
}

gboolean
tiny_gradient (
    TinyTensor *loss, TinyTensor *const *xs, guint n, TinyTensor **out_grads, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (loss), error, FALSE, "no tensor given");
  tiny_return_error_unless (TINY_IS_LIST (xs, n) && TINY_IS_LIST (out_grads, n), error, FALSE,
                            "xs are counted, but they or room for gradients are not given");
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  gboolean good = gradient_locked (loss, NULL, xs, n, out_grads, error);
  tiny_runtime_unlock ();
  return good;
}

GPtrArray *
tiny_tensor_gradient (TinyTensor *self,
                      TinyTensor *const *targets,
                      guint n_targets,
                      TinyTensor *gradient)
{
  GError *error = NULL;
  if (!TINY_IS_LIST (targets, n_targets)) {
    g_set_error_literal (&error, TINY_ERROR, TINY_ERROR_INVALID,
                         "gradient: targets are counted, but none are given");
    n_targets = 0;
  }
  g_autofree TinyTensor **found = g_new0 (TinyTensor *, n_targets + 1);
  GPtrArray *results = tensor_list_new ();
  g_autoptr (TinyTensor) owned_self = TINY_IS_TENSOR (self) ? g_object_ref_sink (self) : NULL;
  g_autoptr (TinyTensor) owned_gradient
      = TINY_IS_TENSOR (gradient) ? g_object_ref_sink (gradient) : NULL;
  gboolean is_locked = tiny_runtime_lock_or_stop (error == NULL ? &error : NULL);
  gboolean good
      = error == NULL && gradient_locked (self, gradient, targets, n_targets, found, &error);
  for (guint i = 0; i < MAX (n_targets, !good); i++)
    g_ptr_array_add (
        results,
        good ? found[i] : g_object_ref_sink (tiny_tensor_new_for_error (g_error_copy (error))));
  if (is_locked)
    tiny_runtime_unlock ();
  g_clear_error (&error);
  return results;
}

gboolean
tiny_tensor_depends_on (TinyTensor *self, TinyTensor *other)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self) && TINY_IS_TENSOR (other), FALSE);
  tiny_runtime_lock ();
  TinyNode *root = tiny_tensor_get_node (self), *node = tiny_tensor_get_node (other);
  gboolean found = FALSE;
  if (root != NULL && node != NULL) {
    g_auto (Below) below = look_below (root);
    found = node->mark == below.seen;
  }
  tiny_runtime_unlock ();
  return found;
}

/* ---- variables ---- */
/* What was there plus what came. */
static void
accumulate (TinyTensor *variable, TinyTensor *gradient)
{
  TinyTensor *before = tiny_tensor_find_grad (variable);
  tiny_tensor_leave_grad (variable, before != NULL
                                        ? g_object_ref_sink (tiny_tensor_add (before, gradient))
                                        : g_object_ref (gradient));
}

/* The tensors that require gradients and lie there; NULL and @error where what one was before does. */
static GPtrArray *
find_variables (const Below *self, GError **error)
{
  g_autoptr (GPtrArray) variables = g_ptr_array_new_with_free_func (g_object_unref);
  for (TinyTensor *t = tiny_tensor_get_first_variable (); t != NULL; t = t->next) {
    if (!tiny_dtype_is_float (t->dtype) || tiny_tensor_get_node (t) == NULL)
      continue;
    if (has_old (self, t)) {
      refuse_old (error);
      return NULL;
    }
    if (tiny_tensor_get_node (t)->mark == self->seen)
      g_ptr_array_add (variables, g_object_ref (t));
  }
  return g_steal_pointer (&variables);
}

static gboolean
backward_locked (TinyTensor *loss, TinyTensor *seed, GError **error)
{
  if (!check_tensor (loss, "output", 0, error) || find_seed (loss, seed, error) == NULL)
    return FALSE;
  g_auto (Below) below = look_below (tiny_tensor_get_node (loss));
  g_autoptr (GPtrArray) variables = find_variables (&below, error);
  if (variables == NULL)
    return FALSE;
  if (variables->len == 0 && below.is_stale) {
    tiny_gradient_refuse_stale (error);
    return FALSE;
  }
  if (variables->len == 0 && below.has_end)
    return TRUE;
  if (variables->len == 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "gradient: the loss depends on no tensor that requires one, or only "
                 "through what was detached, as all is while gradients are disabled, or on "
                 "what one was before it was assigned to%s",
                 below.is_recorded
                     ? "; or through a recorded function (TinyJit), behind whose results "
                       "there are no gradients: let that function call backward () itself"
                     : "");
    return FALSE;
  }
  g_autofree TinyTensor **gradients = g_new0 (TinyTensor *, variables->len + 1);
  if (!find_gradients (&below, loss, seed, (TinyTensor *const *) variables->pdata,
                       variables->len, gradients, error))
    return FALSE;
  for (guint i = 0; i < variables->len; i++) {
    accumulate (variables->pdata[i], gradients[i]);
    g_object_unref (gradients[i]);
  }
  return TRUE;
}

gboolean
tiny_tensor_backward (TinyTensor *loss, GError **error)
{
  return tiny_tensor_backward_with (loss, NULL, error);
}

gboolean
tiny_tensor_backward_with (TinyTensor *self, TinyTensor *gradient, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, FALSE, "no tensor given");
  g_autoptr (TinyTensor) owned
      = TINY_IS_TENSOR (gradient) ? g_object_ref_sink (gradient) : NULL;
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  GError *why = NULL;
  gboolean good = backward_locked (self, gradient, &why);
  if (why != NULL)
    g_propagate_prefixed_error (
        error, why, "%s",
        self->had_backward ? "backward () was called on this loss before; a second time "
                             "it goes the same way only as long as nothing that the loss "
                             "was made of is assigned to, as a step of an optimiser does: "
                             "make the loss anew: "
                           : "");
  self->had_backward = self->had_backward || good;
  tiny_runtime_unlock ();
  return good;
}
