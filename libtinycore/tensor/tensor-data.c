/* SPDX-License-Identifier: MIT
 *
 * tensor-data.c: where tensors meet memory: from host data, realising, copying out, assigning.
 *
 * Memory that may be assigned to belongs to one tensor: whoever asks for it while another tensor
 * looks at it as well gets fresh memory, so that an assignment never changes other tensors. */
#include <string.h>

#include "base/tiny-float.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-tensor-import.h"
#include "tensor/tiny-tensor-private.h"

/* ---- devices ---- */

/* A device that is opened before tiny_build_begin(), which takes the lock of all tensors: opening may take
 * long, and other threads do not wait for it. */
typedef struct {
  TinyDevice *device;
  GError *error;
  gboolean is_default;
} Opened;

static void
opened_clear (Opened *self)
{
  g_clear_error (&self->error);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Opened, opened_clear)

static Opened
open_device (const char *name)
{
  Opened out = { .is_default = name == NULL };
  if (out.is_default)
    name = tiny_runtime_get_default_device (&out.error);
  out.device = name == NULL ? NULL : tiny_engine_get_device (name, &out.error);
  return out;
}

/* The device as a sticky error knows it: NULL and an error in @self if there is none. */
static TinyDevice *
find_device (TinyBuild *self, const Opened *opened)
{
  if (opened->device == NULL && self->error == NULL) {
    self->error = g_error_copy (opened->error);
    if (!opened->is_default) /* else it is said of DEV, which no operation named */
      g_prefix_error (&self->error, "%s: ", self->name);
  }
  return opened->device;
}

static const char *
name_of (TinyDevice *device)
{
  return g_intern_string (tiny_device_get_name (device));
}

/* A BUFFER node of memory that is not there yet. */
static TinyNode *
fresh_buffer (
    TinyBuild *self, TinyDevice *device, TinyDType dtype, const gint64 *shape, guint n)
{
  gint64 n_elements = 1;
  for (guint i = 0; i < n; i++)
    n_elements *= shape[i];
  g_autoptr (TinyBuffer) buffer
      = tiny_buffer_new (device, (gsize) n_elements * tiny_dtype_get_n_bytes (dtype));
  self->device = name_of (device);
  return tiny_runtime_buffer_node (buffer, dtype, shape, n);
}

/* ---- making ---- */
static TinyNode *
data_node (TinyBuild *self,
           const Opened *opened,
           TinyDType dtype,
           const gint64 *shape,
           guint n,
           gconstpointer data,
           gsize n_bytes)
{
  if (!tiny_build_check_dtype (self, dtype) || !tiny_build_check_shape (self, shape, n))
    return NULL;
  gsize wanted = tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < n; i++)
    wanted *= (gsize) shape[i];
  if (wanted != n_bytes || (data == NULL && n_bytes > 0)) {
    g_autofree char *text = tiny_shape_to_string (tiny_graph_ints (self->graph, shape, n));
    return tiny_build_fail (
        self, "%s of %s has %" G_GSIZE_FORMAT " bytes, %" G_GSIZE_FORMAT " are given", text,
        tiny_dtype_to_string (dtype), wanted, data == NULL ? (gsize) 0 : n_bytes);
  }
  if (n_bytes == 0)
    return tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, 0), shape, n);
  TinyDevice *device = find_device (self, opened);
  if (device == NULL)
    return NULL;
  TinyNode *node = fresh_buffer (self, device, dtype, shape, n);
  TinyBuffer *buffer = tiny_runtime_get_buffer (node);
  if (tiny_buffer_ensure (buffer, &self->error)
      && tiny_buffer_upload (buffer, 0, data, n_bytes, &self->error))
    return node;
  return NULL;
}

TinyTensor *
tiny_tensor_new_from_data (const char *device,
                           TinyDType dtype,
                           const gint64 *shape,
                           guint n_dims,
                           gconstpointer data,
                           gsize n_bytes)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (Opened) opened = { NULL };
  if (n_bytes > 0)
    opened = open_device (device);
  if (tiny_build_begin (&b, "new_from_data", 0, NULL))
    node = data_node (&b, &opened, dtype, shape, n_dims, data, n_bytes);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_new_from_memory (const char *device,
                             TinyDType dtype,
                             const gint64 *shape,
                             guint n_dims,
                             gconstpointer memory,
                             gsize n_bytes)
{
  return tiny_tensor_new_from_data (device, dtype, shape, n_dims, memory, n_bytes);
}

static TinyNode *
imported_node (TinyBuild *self,
               const Opened *opened,
               TinyDType dtype,
               const gint64 *shape,
               guint n,
               gpointer handle)
{
  if (!tiny_build_check_dtype (self, dtype) || !tiny_build_check_shape (self, shape, n))
    return NULL;
  TinyDevice *device = find_device (self, opened);
  if (device == NULL)
    return NULL;
  gsize wanted = tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < n; i++)
    wanted *= (gsize) shape[i];
  g_autoptr (TinyBuffer) whole = tiny_buffer_new_import (device, handle, &self->error);
  if (whole == NULL)
    return NULL;
  if (tiny_buffer_get_n_bytes (whole) < wanted)
    return tiny_build_fail (
        self, "%" G_GSIZE_FORMAT " bytes are needed, the memory has %" G_GSIZE_FORMAT, wanted,
        tiny_buffer_get_n_bytes (whole));
  if (wanted == 0)
    return tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, 0), shape, n);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new_view (whole, 0, wanted);
  self->device = name_of (device);
  return tiny_runtime_buffer_node (buffer, dtype, shape, n);
}

TinyTensor *
tiny_tensor_new_import (
    const char *device, TinyDType dtype, const gint64 *shape, guint n_dims, gpointer handle)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (Opened) opened = open_device (device);
  if (tiny_build_begin (&b, "new_import", 0, NULL))
    node = imported_node (&b, &opened, dtype, shape, n_dims, handle);
  return tiny_build_end (&b, node);
}

gpointer
tiny_tensor_get_import_context (const char *name, GError **error)
{
  if (name == NULL)
    name = tiny_runtime_get_default_device (error);
  TinyDevice *device = name != NULL ? tiny_engine_get_device (name, error) : NULL;
  return device != NULL ? tiny_device_get_context (device, error) : NULL;
}

TinyTensor *
tiny_tensor_empty (TinyDType dtype, const gint64 *shape, guint n_dims)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (Opened) opened = open_device (NULL);
  if (tiny_build_begin (&b, "empty", 0, NULL) && tiny_build_check_dtype (&b, dtype)
      && tiny_build_check_shape (&b, shape, n_dims)) {
    TinyDevice *device = find_device (&b, &opened);
    if (device != NULL) {
      node = fresh_buffer (&b, device, dtype, shape, n_dims);
      if (tiny_shape_get_n_elements (node->shape) > 0
          && !tiny_buffer_ensure (tiny_runtime_get_buffer (node), &b.error))
        node = NULL;
    }
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_to (TinyTensor *self, const char *device_name)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (Opened) opened = open_device (device_name);
  if (TINY_IS_TENSOR (self) && self->device == NULL)
    tiny_runtime_open_default_device ();
  if (!tiny_build_begin_some (&b, "to", 1, &self, 0, TINY_TAKES_SYMBOLIC))
    return tiny_build_end (&b, NULL);
  TinyDevice *device = find_device (&b, &opened);
  if (device != NULL) {
    const char *here = b.device != NULL ? b.device : tiny_runtime_get_default_device (NULL);
    const char *there = name_of (device);
    node = b.x[0];
    if (g_strcmp0 (here, there) != 0 && tiny_shape_get_n_elements (node->shape) > 0)
      node = tiny_node_new (b.graph, TINY_OP_COPY, (TinyDType) node->dtype, 1, 1, &node, 0,
                            NULL, there);
    b.device = there;
  }
  return tiny_build_end (&b, node);
}

/* ---- realising ---- */
static gboolean
realize_locked (TinyTensor *const *tensors, guint n, GError **error)
{
  g_autofree TinyRoot **roots
      = NULL; /* a replayed step has none to make, and allocates nothing */
  guint n_roots = 0;
  for (guint i = 0; i < n; i++) {
    if (tensors == NULL || tensors[i] == NULL || !TINY_IS_TENSOR (tensors[i])) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "realize: argument %u is no tensor",
                   i + 1);
      return FALSE;
    }
    if (tensors[i]->error != NULL) {
      g_propagate_error (error, g_error_copy (tensors[i]->error));
      return FALSE;
    }
    if (tiny_tensor_is_realized (tensors[i]))
      continue;
    if (roots == NULL)
      roots = g_new (TinyRoot *, n);
    roots[n_roots++] = &tensors[i]->root;
  }
  if (n_roots > 0 && !tiny_runtime_realize (roots, n_roots, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (tensors[i]->device == NULL && tiny_tensor_get_n_elements (tensors[i]) > 0
        && tensors[i]->root.node->op != TINY_OP_VARIABLE)
      tensors[i]->device = g_intern_string (
          tiny_buffer_get_device_name (tiny_runtime_get_buffer (tensors[i]->root.node)));
  return TRUE;
}

gboolean
tiny_tensor_realize_many (TinyTensor *const *tensors, guint n, GError **error)
{
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  gboolean good = realize_locked (tensors, n, error);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_tensor_realize (TinyTensor *self, GError **error)
{
  return tiny_tensor_realize_many (&self, 1, error);
}

/* ---- reading ---- */
static void
note_access (void)
{
  TinyLaunches *recorder = *tiny_launches_get_recorder ();
  if (recorder != NULL)
    tiny_launches_touch (recorder);
}

/* The elements that are meant of a tensor whose memory has room for more. */
static gboolean
copy_part (TinyTensor *self, gpointer out, GError **error)
{
  const TinyNode *node = self->root.node;
  gsize size = tiny_dtype_get_n_bytes (self->dtype), n = size;
  gsize n_whole = (gsize) tiny_shape_get_n_elements (node->shape) * size;
  g_autofree guint8 *whole = g_try_malloc (n_whole);
  if (whole == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "copy_data: no host memory for %" G_GSIZE_FORMAT " bytes", n_whole);
    return FALSE;
  }
  if (!tiny_buffer_download (tiny_runtime_get_buffer (self->root.node), 0, whole, n_whole,
                             error))
    return FALSE;
  gint64 at[TINY_MAX_RANK] = { 0 }, n_elements = tiny_tensor_get_n_elements (self);
  guint last = self->n_dims - 1;
  n *= (gsize) self->shape[last];
  for (gint64 i = 0; i < n_elements; i += self->shape[last]) {
    gsize from = 0;
    for (guint k = 0; k <= last; k++)
      from = from * (gsize) node->shape->v[k] + (gsize) at[k];
    memcpy ((guint8 *) out + (gsize) i * size, whole + from * size, n);
    for (guint k = last; k-- > 0;) {
      if (++at[k] < self->shape[k])
        break;
      at[k] = 0;
    }
  }
  return TRUE;
}

static gboolean
copy_locked (TinyTensor *self, gpointer out, gsize n_bytes, GError **error)
{
  note_access ();
  if (!realize_locked (&self, 1, error))
    return FALSE;
  if (n_bytes != tiny_tensor_get_n_bytes (self)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "copy_data: the tensor has %" G_GSIZE_FORMAT
                 " bytes, room is for %" G_GSIZE_FORMAT,
                 tiny_tensor_get_n_bytes (self), n_bytes);
    return FALSE;
  }
  if (n_bytes == 0)
    return TRUE;
  if (self->root.node->op == TINY_OP_VARIABLE) {
    memcpy (out, &(gint32){ (gint32) self->root.node->arg }, n_bytes);
    return TRUE;
  }
  if (self->root.node->limits != NULL)
    return copy_part (self, out, error);
  return tiny_buffer_download (tiny_runtime_get_buffer (self->root.node), 0, out, n_bytes,
                               error);
}

gboolean
tiny_tensor_copy_data (TinyTensor *self, gpointer out, gsize n_bytes, GError **error)
{
  g_return_val_if_fail (out != NULL || n_bytes == 0, FALSE);
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  gboolean good = copy_locked (self, out, n_bytes, error);
  tiny_runtime_unlock ();
  return good;
}

static gboolean
is_same_memory (TinyBuffer *buffer, gconstpointer other)
{
  return buffer == other;
}

gboolean
tiny_tensor_write_data (TinyTensor *self, gconstpointer data, gsize n_bytes, GError **error)
{
  g_return_val_if_fail (data != NULL || n_bytes == 0, FALSE);
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  note_access ();
  gboolean good = realize_locked (&self, 1, error);
  if (good && (self->root.node->limits != NULL || self->root.node->op == TINY_OP_VARIABLE)) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "write_data: the tensor is a variable, or has a size that is one");
    good = FALSE;
  }
  if (good && n_bytes != tiny_tensor_get_n_bytes (self)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "write_data: the tensor has %" G_GSIZE_FORMAT " bytes, %" G_GSIZE_FORMAT
                 " are given",
                 tiny_tensor_get_n_bytes (self), n_bytes);
    good = FALSE;
  }
  if (good && n_bytes > 0) {
    TinyBuffer *buffer = tiny_runtime_get_buffer (self->root.node);
    tiny_history_forget (self->root.node);
    tiny_history_expire (is_same_memory, buffer);
    good = tiny_buffer_upload (buffer, 0, data, n_bytes, error);
  }
  tiny_runtime_unlock ();
  return good;
}

GBytes *
tiny_tensor_get_data (TinyTensor *self, GError **error)
{
  /* Realised first: until then nobody knows whether so much memory is worth asking for. */
  if (!tiny_tensor_realize (self, error))
    return NULL;
  gsize n_bytes = tiny_tensor_get_n_bytes (self);
  g_autofree gpointer data = g_try_malloc (MAX (n_bytes, 1));
  if (data == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "get_data: no host memory for %" G_GSIZE_FORMAT " bytes", n_bytes);
    return NULL;
  }
  if (!tiny_tensor_copy_data (self, data, n_bytes, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&data), n_bytes);
}

gboolean
tiny_tensor_item (TinyTensor *self, double *out_value, GError **error)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self) && out_value != NULL, FALSE);
  guint64 bytes = 0;
  if (self->error == NULL && tiny_tensor_get_n_elements (self) != 1) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "item: the tensor has %" G_GINT64_FORMAT " elements, not 1",
                 tiny_tensor_get_n_elements (self));
    return FALSE;
  }
  if (!tiny_tensor_copy_data (self, &bytes, tiny_tensor_get_n_bytes (self), error))
    return FALSE;
  *out_value = tiny_tensor_decode (self->dtype, &bytes, 0);
  return TRUE;
}

/* ---- memory of its own ---- */

/* Whether another tensor's value is, or is a view of, @buffer. */
static gboolean
is_shared (TinyTensor *self, const TinyNode *buffer)
{
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    const TinyNode *node = root->node;
    while (tiny_op_is_movement ((TinyOp) node->op) || node->op == TINY_OP_DETACH)
      node = node->sources[0];
    if (root != &self->root && node == buffer)
      return TRUE;
  }
  return FALSE;
}

/* The BUFFER node that is @self's alone, or NULL. */
static TinyNode *
own_buffer (TinyTensor *self)
{
  TinyNode *node = self->root.node;
  while (node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  return node->op == TINY_OP_BUFFER && !is_shared (self, node) ? node : NULL;
}

/* ASSIGN of @value to @buffer, seen in @self's shape. */
static TinyNode *
assignment (TinyBuild *self, TinyNode *buffer, TinyNode *value)
{
  const TinyInts *shape = value->shape;
  value = tiny_build_reshape (self, value, buffer->shape->v, buffer->shape->n);
  TinyNode *sources[] = { buffer, value };
  TinyNode *node = tiny_node_new (self->graph, TINY_OP_ASSIGN, (TinyDType) buffer->dtype, 1, 2,
                                  sources, 0, NULL, NULL);
  return tiny_build_reshape (self, node, shape->v, shape->n);
}

/* tiny_build_begin() sinks its arguments; what changes @self in place leaves it as it was. */
static gboolean
begin_in_place (TinyTensor *self)
{
  gboolean floating = self != NULL && g_object_is_floating (self);
  if (floating)
    g_object_ref (self);
  if (TINY_IS_TENSOR (self) && self->device == NULL)
    tiny_runtime_open_default_device ();
  return floating;
}

static void
end_in_place (TinyTensor *self, gboolean floating)
{
  if (floating)
    g_object_force_floating (G_OBJECT (self));
}

gboolean
tiny_tensor_own_memory (TinyTensor *self, GError **error)
{
  TinyBuild b;
  gboolean floating = begin_in_place (self);
  gboolean begun = tiny_build_begin (&b, "own_memory", 1, &self);
  if (begun && self->root.node->op != TINY_OP_PARAM && tiny_tensor_get_n_elements (self) > 0
      && self->root.node->op != TINY_OP_ASSIGN && own_buffer (self) == NULL) {
    g_auto (Opened) opened = open_device (self->device); /* it is open, see begin_in_place() */
    TinyDevice *device = find_device (&b, &opened);
    if (device != NULL) {
      TinyNode *buffer = fresh_buffer (&b, device, self->dtype, self->shape, self->n_dims);
      tiny_tensor_set_node (self, assignment (&b, buffer, b.x[0]));
      self->device = b.device;
    }
  }
  g_autoptr (GError) failed = b.error != NULL ? g_error_copy (b.error) : NULL;
  g_autoptr (TinyTensor) done
      = g_object_ref_sink (tiny_build_end (&b, begun ? self->root.node : NULL));
  end_in_place (self, floating);
  if (failed == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failed));
  return FALSE;
}

static gboolean
check_assign (TinyTensor *self, TinyBuild *b)
{
  TinyNode *value = b->x[1];
  if (self->weak != TINY_WEAK_NONE)
    return tiny_build_fail (b, "a plain number cannot be assigned to") != NULL;
  if (value->shape->n == self->n_dims
      && memcmp (value->shape->v, self->shape, self->n_dims * sizeof (gint64)) == 0)
    return TRUE;
  g_autofree char *to = tiny_shape_to_string (self->root.node->shape);
  g_autofree char *from = tiny_shape_to_string (value->shape);
  return tiny_build_fail (b, "%s does not fit into %s", from, to) != NULL;
}

gboolean
tiny_tensor_assign (TinyTensor *self, TinyTensor *value, GError **error)
{
  TinyBuild b;
  TinyTensor *both[] = { self, value };
  gboolean floating = begin_in_place (self);
  gboolean begun = tiny_build_begin (&b, "assign", 2, both);
  TinyNode *node = self != NULL && begun ? self->root.node : NULL;
  const TinyNode *inner = node;
  while (inner != NULL && inner->op == TINY_OP_RESHAPE)
    inner = inner->sources[0];
  if (begun && inner->op == TINY_OP_ASSIGN) {
    /* One assignment at a time can wait for one piece of memory. */
    TinyRoot *root = &self->root, kept = { 0 };
    tiny_runtime_add_root (&kept, b.x[1]);
    tiny_runtime_realize (&root, 1, &b.error);
    b.graph = tiny_runtime_get_graph ();
    b.x[1] = kept.node;
    tiny_runtime_remove_root (&kept);
  }
  if (begun && b.error == NULL && check_assign (self, &b)) {
    TinyNode *new_value = tiny_build_cast (&b, b.x[1], self->dtype);
    if (!tiny_is_grad_enabled ())
      new_value = tiny_build_detach (&b, new_value);
    TinyNode *buffer = own_buffer (self);
    gboolean had_memory = tiny_tensor_is_realized (self);
    if (buffer != NULL && tiny_tensor_get_n_elements (self) > 0) {
      new_value = assignment (&b, buffer, new_value);
    } else if (had_memory && tiny_tensor_get_n_elements (self) > 0) {
      g_auto (Opened) opened
          = open_device (self->device); /* it is open, see begin_in_place() */
      TinyDevice *device = find_device (&b, &opened);
      if (device != NULL)
        new_value = assignment (
            &b, fresh_buffer (&b, device, self->dtype, self->shape, self->n_dims), new_value);
    }
    if (b.error == NULL) {
      tiny_tensor_set_node (self, new_value);
      if (self->device == NULL)
        self->device = b.device;
    }
  }
  g_autoptr (GError) failed = b.error != NULL ? g_error_copy (b.error) : NULL;
  g_autoptr (TinyTensor) done
      = g_object_ref_sink (tiny_build_end (&b, begun ? self->root.node : NULL));
  end_in_place (self, floating);
  if (failed == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failed));
  return FALSE;
}
