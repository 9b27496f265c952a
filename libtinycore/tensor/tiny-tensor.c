/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor.c: the object: a root in the runtime's graph, or an error.
 *
 * The node behind a tensor changes when it is realised or the graph is swept; its shape, dtype and
 * device never do. Tensors that require gradients are chained so that backward() finds them. */
#include "tensor/tiny-tensor.h"

#include "engine/tiny-history.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"

G_DEFINE_FINAL_TYPE (TinyTensor, tiny_tensor, G_TYPE_INITIALLY_UNOWNED)

static TinyTensor *first_variable; /* under the runtime's lock */

static void
unchain (TinyTensor *self)
{
  if (self->next != NULL)
    self->next->previous = self->previous;
  if (self->previous != NULL)
    self->previous->next = self->next;
  else if (first_variable == self)
    first_variable = self->next;
  self->next = self->previous = NULL;
}

static void
tiny_tensor_finalize (GObject *object)
{
  TinyTensor *self = (TinyTensor *) object;
  tiny_runtime_lock ();
  if (self->root.node != NULL)
    tiny_runtime_remove_root (&self->root);
  if (self->requires_grad)
    unchain (self);
  tiny_runtime_unlock ();
  g_clear_object (&self->grad);
  g_clear_error (&self->error);
  g_free (self->shape);
  G_OBJECT_CLASS (tiny_tensor_parent_class)->finalize (object);
}

static void
tiny_tensor_class_init (TinyTensorClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_tensor_finalize;
}

static void
tiny_tensor_init (TinyTensor *self)
{
}

/* Sizes that are variables count with their value. */
static void
read_limits (TinyTensor *self, const TinyNode *node)
{
  for (guint i = 0; node->limits != NULL && i < self->n_dims; i++)
    if (tiny_limit_get (node, i) != NULL)
      self->shape[i] = tiny_limit_evaluate (tiny_limit_get (node, i));
}

TinyTensor *
tiny_tensor_new_for_node (TinyNode *node, const char *device)
{
  TinyTensor *self = g_object_new (TINY_TYPE_TENSOR, NULL);
  self->device = device;
  self->dtype = (TinyDType) node->dtype;
  self->n_dims = node->shape->n;
  self->shape = g_memdup2 (node->shape->v, MAX (node->shape->n, 1) * sizeof (gint64));
  read_limits (self, node);
  tiny_runtime_add_root (&self->root, node);
  return self;
}

TinyTensor *
tiny_tensor_new_for_error (GError *error)
{
  TinyTensor *self = g_object_new (TINY_TYPE_TENSOR, NULL);
  self->error = error;
  return self;
}

TinyNode *
tiny_tensor_get_node (TinyTensor *self)
{
  return self->root.node;
}

void
tiny_tensor_set_node (TinyTensor *self, TinyNode *node)
{
  g_assert (self->root.node != NULL && node->dtype == self->dtype);
  tiny_runtime_remove_root (&self->root);
  tiny_runtime_add_root (&self->root, node);
  self->root.wants_gradients = self->requires_grad;
}

void
tiny_tensor_resize (TinyTensor *self, TinyNode *from, TinyNode *to)
{
  if (self->root.node == NULL || self->root.node->limits == NULL)
    return;
  tiny_tensor_set_node (
      self, tiny_graph_substitute (tiny_runtime_get_graph (), self->root.node, &from, &to, 1));
  read_limits (self, self->root.node);
}

TinyTensor *
tiny_tensor_get_first_variable (void)
{
  return first_variable;
}

/* ---- reading what is known without computing ---- */
const GError *
tiny_tensor_get_error (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  return self->error;
}

const gint64 *
tiny_tensor_get_shape (TinyTensor *self, guint *out_n_dims)
{
  if (out_n_dims != NULL)
    *out_n_dims = 0;
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  if (out_n_dims != NULL)
    *out_n_dims = self->n_dims;
  return self->shape;
}

guint
tiny_tensor_get_n_dims (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), 0);
  return self->n_dims;
}

gint64
tiny_tensor_get_n_elements (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), 0);
  gint64 n = self->error == NULL;
  for (guint i = 0; i < self->n_dims; i++)
    n *= self->shape[i];
  return n;
}

gsize
tiny_tensor_get_n_bytes (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), 0);
  return (gsize) tiny_tensor_get_n_elements (self) * tiny_dtype_get_n_bytes (self->dtype);
}

TinyDType
tiny_tensor_get_dtype (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), TINY_DTYPE_VOID);
  return self->dtype;
}

const char *
tiny_tensor_get_device (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  return self->device;
}

gboolean
tiny_tensor_is_realized (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), FALSE);
  tiny_runtime_lock ();
  const TinyNode *node = self->root.node;
  while (node != NULL && (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT))
    node = node->sources[0];
  gboolean realized = node != NULL
                      && (node->op == TINY_OP_BUFFER || node->op == TINY_OP_VARIABLE
                          || tiny_tensor_get_n_elements (self) == 0);
  tiny_runtime_unlock ();
  return realized;
}

/* ---- operations that are about the tensor itself ---- */
TinyTensor *
tiny_tensor_contiguous (TinyTensor *self)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin_some (&b, "contiguous", 1, &self, 0, TINY_TAKES_SYMBOLIC)) {
    node = b.x[0];
    if (node->op != TINY_OP_CONTIGUOUS && node->op != TINY_OP_BUFFER)
      node = tiny_node_new (b.graph, TINY_OP_CONTIGUOUS, (TinyDType) node->dtype, 1, 1, &node,
                            0, NULL, NULL);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_detach (TinyTensor *self)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin_some (&b, "detach", 1, &self, 0, TINY_TAKES_SYMBOLIC))
    node = tiny_layout_unary (b.graph, TINY_OP_DETACH, b.x[0]);
  return tiny_build_end (&b, node);
}

/* ---- gradients ---- */
void
tiny_tensor_set_requires_grad (TinyTensor *self, gboolean requires_grad)
{
  g_return_if_fail (TINY_IS_TENSOR (self));
  tiny_runtime_lock ();
  requires_grad = requires_grad != FALSE;
  if (requires_grad && self->error == NULL && !tiny_tensor_own_memory (self, &self->error))
    tiny_runtime_remove_root (&self->root);
  if (requires_grad != self->requires_grad && self->error == NULL) {
    self->requires_grad = self->root.wants_gradients = requires_grad;
    tiny_history_forget (self->root.node); /* gradients end at it */
    if (!requires_grad) {
      unchain (self);
    } else {
      self->next = first_variable;
      if (first_variable != NULL)
        first_variable->previous = self;
      first_variable = self;
    }
  }
  tiny_runtime_unlock ();
}

gboolean
tiny_tensor_get_requires_grad (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), FALSE);
  return self->requires_grad;
}

TinyTensor *
tiny_tensor_get_grad (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  return self->grad;
}

void
tiny_tensor_clear_grad (TinyTensor *self)
{
  g_return_if_fail (TINY_IS_TENSOR (self));
  g_clear_object (&self->grad);
}
