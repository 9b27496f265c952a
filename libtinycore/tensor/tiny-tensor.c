/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor.c: the object: a root in the runtime's graph, or an error.
 *
 * The node behind a tensor changes when it is realised or the graph is swept; its shape and dtype
 * never do, its device only when it is moved in place. Tensors that require gradients are chained so that backward() finds them. */
#include "tensor/tiny-tensor.h"

#include <string.h>

#include "base/tiny-guard.h"
#include "base/tiny-reuse.h"
#include "engine/tiny-history.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

G_DEFINE_FINAL_TYPE (TinyTensor, tiny_tensor, G_TYPE_INITIALLY_UNOWNED)

static TinyTensor *first_variable; /* under the runtime's lock */
static guint64 n_variables;        /* that there ever were */
static guint64 n_toggled;
/* The error of a tensor that was disposed of, or made as any object is. */
static GError no_tensor = { 0, TINY_ERROR_INVALID,
                            (char *) "no tensor: it was disposed of, or made without a value" };

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

/* Under the lock: nobody finds it any more. */
static void
let_go (gpointer data)
{
  TinyTensor *self = data;
  tiny_view_forget (self);
  if (self->requires_grad && self->root.node != NULL)
    tiny_history_end (self->root.node);
  if (self->root.node != NULL)
    tiny_runtime_remove_root (&self->root);
  if (self->error == NULL)
    self->error = &no_tensor;
  if (self->requires_grad)
    unchain (self);
  self->requires_grad = FALSE;
}

/* The last reference may be dropped where another lock is held, such as an interpreter's, that whoever computes waits
 * for: nothing waits here. A tensor that cannot go yet is given to who has the lock. */
/* Drops the reference that kept what another thread let go of: later. That thread may be on its way out of g_object_unref () still, where
 * it looks at the object for the last time, and may wait for an interpreter's lock before. Until thousands came after it the rest of the
 * object stays, which is little. */
static void
unref_left (gpointer object)
{
  enum { N_LEFT = 4096 };
  static gpointer left[N_LEFT];
  static gint n;
  const guint at = (guint) g_atomic_int_add (&n, 1) % N_LEFT;
  g_clear_object (&((TinyTensor *) object)->grad);
  gpointer old = g_atomic_pointer_exchange (&left[at], object);
  if (old != NULL)
    g_object_unref (old);
}

static void
tiny_tensor_dispose (GObject *object)
{
  TinyTensor *self = (TinyTensor *) object;
  if (self->root.next != NULL || self->base != NULL || self->views != NULL
      || self->requires_grad) {
    if (tiny_runtime_try_lock ()) {
      let_go (self);
      tiny_runtime_unlock ();
    } else {
      tiny_runtime_defer (g_object_ref (object), let_go, unref_left);
    }
  }
  /* What the parent does here, it does once more when the last reference goes: of all that a tensor costs that was a tenth. */
  if (g_atomic_int_get (&object->ref_count) > 1)
    G_OBJECT_CLASS (tiny_tensor_parent_class)->dispose (object);
}

static void
clear (TinyTensor *self)
{
  g_clear_object (&self->grad);
  if (self->error == &no_tensor)
    self->error = NULL;
  g_clear_error (&self->error);
  if (self->shape != self->few_sizes)
    g_free (self->shape);
}

static void
tiny_tensor_finalize (GObject *object)
{
  clear ((TinyTensor *) object);
  G_OBJECT_CLASS (tiny_tensor_parent_class)->finalize (object);
}

static void
tiny_tensor_class_init (TinyTensorClass *class)
{
  G_OBJECT_CLASS (class)->dispose = tiny_tensor_dispose;
  G_OBJECT_CLASS (class)->finalize = tiny_tensor_finalize;
  no_tensor.domain = TINY_ERROR;
}

static void
tiny_tensor_init (TinyTensor *self)
{
  self->error = &no_tensor;
}

/* ---- tensors that come again ----
 * Most tensors live from one operation to the next, and GObject takes longer over the end of one than all that is done with
 * it: some are kept for what is made next. Under the runtime's lock. */
static struct {
  TinyTensor *list[TINY_REUSE_OBJECTS + 1];
  guint n;
} spare;

gboolean
tiny_tensor_recycle (TinyTensor *self)
{
  GObject *object = (GObject *) self;
  /* What others tie to an object is its data: wrappers of other languages, weak references, closures. */
  gboolean is_tied
      = self->grad != NULL || ((gsize) object->qdata & ~(gsize) G_DATALIST_FLAGS_MASK) != 0;
  if (spare.n == TINY_REUSE_OBJECTS || is_tied || g_atomic_int_get (&object->ref_count) > 1)
    return FALSE;
  let_go (self);
  clear (self);
  memset (&self->root, 0, sizeof *self - G_STRUCT_OFFSET (TinyTensor, root));
  spare.list[spare.n++] = self;
  return TRUE;
}

/* (transfer floating) */
static TinyTensor *
tensor_new (void)
{
  if (spare.n == 0)
    return g_object_new (TINY_TYPE_TENSOR, NULL);
  TinyTensor *self = spare.list[--spare.n];
  g_object_force_floating ((GObject *) self);
  return self;
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
  TinyTensor *self = tensor_new ();
  self->error = NULL;
  self->device = device;
  self->dtype = (TinyDType) node->dtype;
  self->n_dims = node->shape->n;
  self->shape = self->n_dims <= G_N_ELEMENTS (self->few_sizes) ? self->few_sizes
                                                               : g_new (gint64, self->n_dims);
  memcpy (self->shape, node->shape->v, self->n_dims * sizeof (gint64));
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
  const gboolean is_recorded = self->root.is_recorded;
  tiny_runtime_remove_root (&self->root);
  tiny_runtime_add_root (&self->root, node);
  tiny_root_set_wants_gradients (&self->root, self->requires_grad);
  self->root.is_recorded = is_recorded;
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

guint64
tiny_tensor_count_variables (void)
{
  return n_variables;
}

guint64
tiny_tensor_count_toggled (void)
{
  return n_toggled;
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
  const TinyNode *node = self->root.node, *own = node;
  while (node != NULL && (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT))
    node = node->sources[0];
  gboolean realized = node != NULL
                      && (tiny_runtime_is_memory (node) || own->op == TINY_OP_VARIABLE
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
    if (node->op != TINY_OP_CONTIGUOUS && !tiny_runtime_is_memory (node))
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
  if (tiny_build_begin_some (&b, "detach", 1, &self, 0, TINY_TAKES_SYMBOLIC)
      && tiny_view_begin (&b))
    node = tiny_layout_unary (b.graph, TINY_OP_DETACH, b.x[0]);
  return tiny_build_end (&b, node);
}

/* ---- gradients ---- */
static void
chain (TinyTensor *self)
{
  self->variable = ++n_variables;
  self->next = first_variable;
  if (first_variable != NULL)
    first_variable->previous = self;
  first_variable = self;
}

/* An empty tensor has no memory that would be its own: equal nodes are one, but for a number in them. */
static void
number_empty (TinyTensor *self)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  const TinyInts *shape = self->root.node->shape;
  TinyNode *node = tiny_node_const_float (graph, self->dtype, 0);
  if (self->requires_grad)
    node = tiny_node_new (graph, TINY_OP_DETACH, self->dtype, 1, 1, &node,
                          (gint64) self->variable, NULL, NULL);
  tiny_tensor_set_node (self, tiny_node_broadcast (graph, node, shape->v, shape->n));
}

/* Gradients end at the node of @self, which has to be nobody else's. A view stays one. */
static gboolean
begin_variable (TinyTensor *self, GError **error)
{
  if (self->base == NULL && !tiny_tensor_own_memory (self, "requires_grad", error))
    return FALSE;
  if (self->requires_grad)
    return TRUE;
  self->requires_grad = TRUE;
  chain (self);
  if (self->base != NULL)
    tiny_tensor_set_node (self, tiny_view_read (self));
  else if (tiny_tensor_get_n_elements (self) == 0)
    number_empty (self);
  else
    tiny_history_forget (self->root.node);
  tiny_root_set_wants_gradients (&self->root, TRUE);
  return TRUE;
}

static void
end_variable (TinyTensor *self)
{
  if (!self->requires_grad)
    return;
  self->requires_grad = FALSE;
  tiny_root_set_wants_gradients (&self->root, FALSE);
  unchain (self);
  if (self->base != NULL)
    tiny_tensor_set_node (self, tiny_view_read (self));
  else if (tiny_tensor_get_n_elements (self) == 0)
    number_empty (self);
  else
    tiny_history_forget (self->root.node);
}

void
tiny_tensor_set_requires_grad (TinyTensor *self, gboolean requires_grad)
{
  g_return_if_fail (TINY_IS_TENSOR (self));
  tiny_runtime_lock ();
  n_toggled += self->variable > 0 && self->requires_grad != (requires_grad != FALSE);
  if (self->error == NULL && !requires_grad)
    end_variable (self);
  else if (self->error == NULL && !begin_variable (self, &self->error))
    tiny_runtime_remove_root (&self->root);
  tiny_runtime_unlock ();
}

gboolean
tiny_tensor_reaches_variable (TinyNode *root)
{
  if (root == NULL || !tiny_dtype_is_float (root->dtype)
      || (first_variable == NULL && tiny_history_is_empty ()))
    return FALSE;
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_autoptr (GHashTable) variables = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  for (TinyTensor *t = first_variable; t != NULL; t = t->next)
    g_hash_table_add (variables, t->root.node);
  guint32 seen = tiny_graph_begin_mark (graph);
  g_ptr_array_add (stack, root);
  while (stack->len > 0) {
    TinyNode *node = g_ptr_array_steal_index_fast (stack, stack->len - 1);
    if (node->mark == seen)
      continue;
    node->mark = seen;
    gboolean is_stale;
    TinyNode *history = tiny_history_get (node, &is_stale);
    if (is_stale || tiny_history_is_end (node) || g_hash_table_contains (variables, node))
      return TRUE;
    if (history != NULL)
      g_ptr_array_add (stack, history);
    for (guint i = 0; i < node->n_sources; i++)
      if (tiny_history_flows (node, i))
        g_ptr_array_add (stack, node->sources[i]);
  }
  return FALSE;
}

gboolean
tiny_tensor_get_requires_grad (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), FALSE);
  tiny_runtime_lock ();
  gboolean requires = self->requires_grad || tiny_tensor_reaches_variable (self->root.node);
  tiny_runtime_unlock ();
  return requires;
}

gboolean
tiny_tensor_is_leaf (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), FALSE);
  return self->requires_grad || !tiny_tensor_get_requires_grad (self);
}

TinyTensor *
tiny_tensor_get_base (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  tiny_runtime_lock ();
  TinyTensor *base = tiny_view_get_base (self);
  tiny_runtime_unlock ();
  return base;
}

TinyTensor *
tiny_tensor_get_grad (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), NULL);
  return tiny_tensor_find_grad (self);
}

static gboolean
set_grad (TinyTensor *self, TinyTensor *grad, GError **error)
{
  const GError *wrong = self->error != NULL ? self->error : grad->error;
  if (wrong != NULL) {
    g_propagate_error (error, g_error_copy (wrong));
    return FALSE;
  }
  if (grad->dtype == self->dtype && grad->n_dims == self->n_dims
      && memcmp (grad->shape, self->shape, self->n_dims * sizeof *self->shape) == 0
      && (grad->device == self->device || grad->device == NULL || self->device == NULL)) {
    tiny_tensor_leave_grad (self, g_object_ref (grad));
    return TRUE;
  }
  g_autofree char *has = tiny_shape_to_string (grad->root.node->shape);
  g_autofree char *wanted = tiny_shape_to_string (self->root.node->shape);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "grad: %s of %s on %s is no gradient of %s of %s on %s", has,
               tiny_dtype_to_string (grad->dtype), grad->device != NULL ? grad->device : "any",
               wanted, tiny_dtype_to_string (self->dtype),
               self->device != NULL ? self->device : "any");
  return FALSE;
}

gboolean
tiny_tensor_set_grad (TinyTensor *self, TinyTensor *grad, GError **error)
{
  g_autoptr (TinyTensor) owned = TINY_IS_TENSOR (grad) ? g_object_ref_sink (grad) : NULL;
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, FALSE, "no tensor given");
  tiny_return_error_unless (grad == NULL || owned != NULL, error, FALSE,
                            "the gradient is no tensor");
  tiny_runtime_lock ();
  gboolean good = grad == NULL || set_grad (self, grad, error);
  if (grad == NULL)
    tiny_tensor_clear_grad (self);
  tiny_runtime_unlock ();
  return good;
}

void
tiny_tensor_clear_grad (TinyTensor *self)
{
  g_return_if_fail (TINY_IS_TENSOR (self));
  tiny_tensor_leave_grad (self, NULL);
}
