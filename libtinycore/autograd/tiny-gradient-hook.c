/* SPDX-License-Identifier: MIT
 *
 * tiny-gradient-hook.c: hooks of a tensor, and GRADIENTs that call them.
 *
 * The gradient of a tensor that is asked for, or requires one, passes through its hooks once it is whole. One that only
 * passes by, on its way to others, does so in a GRADIENT that a hook puts on the tensor. */
#include "autograd/tiny-gradient-hook.h"

#include <string.h>

#include "autograd/custom-rules.h"
#include "autograd/gradient-hook.h"
#include "autograd/tiny-custom.h"
#include "autograd/tiny-function.h"
#include "base/interrupt-check.h"
#include "base/tiny-guard.h"
#include "engine/tiny-history.h"
#include "tensor/tiny-tensor-private.h"

typedef struct {
  gint n_refs;
  guint id;
  TinyGradientHook function; /* NULL: it was removed */
  gpointer data;
  GDestroyNotify destroy;
} Hook;

/* A hook that removes itself, or another, may be running: @data stays until nobody is to call it. */
static void
hook_unref (gpointer data)
{
  Hook *self = data;
  if (!g_atomic_int_dec_and_test (&self->n_refs))
    return;
  if (self->destroy != NULL)
    self->destroy (self->data);
  g_free (self);
}

/* The hooks of a tensor, in the order of their coming. */
typedef struct {
  GPtrArray *list; /* Hook; shared with the rule */
  gint64 rule;     /* of the GRADIENT that calls them, or 0 */
} Hooks;

static void
hooks_free (gpointer data)
{
  Hooks *self = data;
  g_ptr_array_unref (self->list);
  g_free (self);
}

static GQuark
hooks_quark (void)
{
  return g_quark_from_static_string ("tiny-gradient-hooks");
}

static Hooks *
find_hooks (TinyTensor *self)
{
  return g_object_get_qdata (G_OBJECT (self), hooks_quark ());
}

static Hooks *
make_hooks (TinyTensor *self)
{
  Hooks *hooks = g_new0 (Hooks, 1);
  hooks->list = g_ptr_array_new_with_free_func (hook_unref);
  g_object_set_qdata_full (G_OBJECT (self), hooks_quark (), hooks, hooks_free);
  return hooks;
}

static gboolean
check_result (const TinyTensor *found, const TinyTensor *gradient, GError **error)
{
  if (found->error != NULL) {
    g_propagate_error (error, g_error_copy (found->error));
    return FALSE;
  }
  if (found->dtype == gradient->dtype && found->n_dims == gradient->n_dims
      && memcmp (found->shape, gradient->shape, found->n_dims * sizeof *found->shape) == 0)
    return TRUE;
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                       "gradient hook: it gives another shape or dtype than the gradient has");
  return FALSE;
}

/* *@gradient (transfer full) becomes what @self gives. */
static gboolean
hook_call (Hook *self, TinyTensor **gradient, GError **error)
{
  GError *failure = NULL;
  g_autoptr (TinyTensor) before = *gradient;
  TinyTensor *found = NULL;
  if (self->function != NULL && tiny_interrupt_check_now (&failure))
    found = self->function (before, self->data, &failure);
  *gradient = found == NULL                  ? g_object_ref (before)
              : g_object_is_floating (found) ? g_object_ref_sink (found)
                                             : found;
  if (failure != NULL)
    g_propagate_error (error, failure);
  return failure == NULL && check_result (*gradient, before, error);
}

/* Likewise what all of @hooks give, of which one may remove itself. */
static gboolean
call_all (const GPtrArray *hooks, TinyTensor **gradient, GError **error)
{
  g_autoptr (GPtrArray) now = g_ptr_array_new_with_free_func (hook_unref);
  for (guint i = 0; i < hooks->len; i++) {
    Hook *hook = hooks->pdata[i];
    g_atomic_int_inc (&hook->n_refs);
    g_ptr_array_add (now, hook);
  }
  for (guint i = 0; i < now->len; i++)
    if (!hook_call (now->pdata[i], gradient, error))
      return FALSE;
  return TRUE;
}

gboolean
gradient_hooks_apply (TinyTensor *self, TinyTensor **gradient, GError **error)
{
  const Hooks *hooks = find_hooks (self);
  return hooks == NULL || call_all (hooks->list, gradient, error);
}

/* A TinyBackwardFunction. */
static GPtrArray *
pass_through (TinyTensor *const *gradients,
              guint n_gradients,
              TinyTensor *const *inputs,
              guint n_inputs,
              TinyTensor *const *outputs,
              guint n_outputs,
              gpointer user_data,
              GError **error)
{
  TinyTensor *gradient = g_object_ref (gradients[0]);
  gboolean good = call_all (user_data, &gradient, error);
  GPtrArray *found = good ? tiny_tensors (gradient, NULL) : NULL;
  g_object_unref (gradient);
  return found;
}

static void
list_unref (gpointer list)
{
  g_ptr_array_unref (list);
}

/* True if gradients of @self pass through the GRADIENT of @hooks, which what was realised has in its history. */
static gboolean
is_passed (TinyTensor *self, const Hooks *hooks)
{
  const TinyNode *node = tiny_tensor_get_node (self);
  if (hooks->rule != 0 && tiny_runtime_is_memory (node))
    node = tiny_history_get (node, NULL);
  return node != NULL && hooks->rule != 0 && node->op == TINY_OP_GRADIENT
         && node->arg == hooks->rule;
}

/* The hooks of @self, which is computed, with a GRADIENT that calls them. */
static Hooks *
make_passed (TinyTensor *self)
{
  Hooks *hooks = find_hooks (self);
  if (hooks != NULL && is_passed (self, hooks))
    return hooks;
  TinyNode *node = tiny_tensor_get_node (self), *sources[] = { node, node };
  hooks = make_hooks (self);
  hooks->rule = custom_attach (pass_through, g_ptr_array_ref (hooks->list), list_unref);
  tiny_tensor_set_node (
      self, custom_make_node (tiny_runtime_get_graph (), hooks->rule, 0, 1, 0, sources, 2));
  return hooks;
}

static gboolean
check_tensor (TinyTensor *self, TinyGradientHook function, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, FALSE, "no tensor given");
  tiny_return_error_unless (function != NULL, error, FALSE, "no hook given");
  if (self->error != NULL)
    g_propagate_error (error, g_error_copy (self->error));
  else if (!tiny_tensor_get_requires_grad (self))
    g_set_error_literal (
        error, TINY_ERROR, TINY_ERROR_INVALID,
        "gradient hook: no gradient flows to this tensor: set_requires_grad () "
        "first, of it or of what it is made of");
  else
    return TRUE;
  return FALSE;
}

guint
tiny_tensor_add_gradient_hook (TinyTensor *self,
                               TinyGradientHook function,
                               gpointer user_data,
                               GDestroyNotify destroy,
                               GError **error)
{
  static gint last_id = 0;
  Hook *hook = g_new (Hook, 1);
  *hook = (Hook){ 1, (guint) g_atomic_int_add (&last_id, 1) + 1, function, user_data, destroy };
  tiny_runtime_lock ();
  gboolean good = check_tensor (self, function, error);
  guint id = good ? hook->id : 0;
  if (!good) {
    hook_unref (hook);
  } else if (!tiny_tensor_is_leaf (self)) {
    g_ptr_array_add (make_passed (self)->list, hook);
  } else {
    Hooks *hooks = find_hooks (self);
    g_ptr_array_add ((hooks != NULL ? hooks : make_hooks (self))->list, hook);
  }
  tiny_runtime_unlock ();
  return id;
}

gboolean
tiny_tensor_remove_gradient_hook (TinyTensor *self, guint id)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), FALSE);
  tiny_runtime_lock ();
  const Hooks *hooks = find_hooks (self);
  gboolean found = FALSE;
  for (guint i = 0; !found && hooks != NULL && i < hooks->list->len; i++) {
    Hook *hook = hooks->list->pdata[i];
    found = hook->id == id;
    if (found) {
      hook->function = NULL;
      g_ptr_array_remove_index (hooks->list, i);
    }
  }
  tiny_runtime_unlock ();
  return found;
}
