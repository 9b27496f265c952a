/* SPDX-License-Identifier: MIT
 *
 * tensor-data.c: where tensors meet memory: from host data, realising, copying out and in. */
#include <string.h>

#include "base/tiny-float.h"
#include "base/tiny-guard.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-place.h"
#include "tensor/tiny-tensor-file.h"
#include "tensor/tiny-tensor-import.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

/* ---- making ---- */
/* Its elements are @data, or those in @file from @offset on. */
static TinyNode *
data_node (TinyBuild *self,
           const TinyPlace *place,
           TinyDType dtype,
           const gint64 *shape,
           guint n,
           gconstpointer data,
           gsize n_bytes,
           const TinyOpenedFile *file,
           guint64 offset)
{
  if (!tiny_build_check_dtype (self, dtype) || !tiny_build_check_shape (self, shape, n))
    return NULL;
  gsize wanted = tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < n; i++)
    wanted *= (gsize) shape[i];
  if (wanted != n_bytes || (data == NULL && file == NULL && n_bytes > 0)) {
    g_autofree char *text = tiny_shape_to_string (tiny_graph_ints (self->graph, shape, n));
    return tiny_build_fail (
        self, "%s of %s has %" G_GSIZE_FORMAT " bytes, %" G_GSIZE_FORMAT " are given", text,
        tiny_dtype_to_string (dtype), wanted, data == NULL ? (gsize) 0 : n_bytes);
  }
  if (n_bytes == 0)
    return tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, 0), shape, n);
  TinyNode *node = tiny_place_new_memory (self, place, dtype, shape, n, NULL);
  if (node == NULL)
    return NULL;
  const gboolean good = file != NULL
                            ? tiny_memory_upload_file (node, file, offset, &self->error)
                            : tiny_memory_upload (node, data, &self->error);
  return good ? node : NULL;
}

static TinyTensor *
new_from (const char *device,
          TinyDType dtype,
          const gint64 *shape,
          guint n_dims,
          gconstpointer data,
          gsize n_bytes,
          const TinyOpenedFile *file,
          guint64 offset)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (TinyPlace) place = { NULL };
  if (n_bytes > 0)
    place = tiny_place_open (device);
  if (tiny_build_begin (&b, "new_from_data", 0, NULL))
    node = data_node (&b, &place, dtype, shape, n_dims, data, n_bytes, file, offset);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_new_from_data (const char *device,
                           TinyDType dtype,
                           const gint64 *shape,
                           guint n_dims,
                           gconstpointer data,
                           gsize n_bytes)
{
  return new_from (device, dtype, shape, n_dims, data, n_bytes, NULL, 0);
}

TinyTensor *
tiny_tensor_new_from_file (const char *device,
                           TinyDType dtype,
                           const gint64 *shape,
                           guint n_dims,
                           const TinyOpenedFile *file,
                           guint64 offset,
                           gsize n_bytes)
{
  return new_from (device, dtype, shape, n_dims, NULL, n_bytes, file, offset);
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
               const TinyPlace *place,
               TinyDType dtype,
               const gint64 *shape,
               guint n,
               gpointer handle)
{
  if (!tiny_build_check_dtype (self, dtype) || !tiny_build_check_shape (self, shape, n))
    return NULL;
  TinyDevice *device = tiny_place_get_device (self, place);
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
  self->device = place->name;
  return tiny_runtime_buffer_node (buffer, dtype, shape, n);
}

TinyTensor *
tiny_tensor_new_import (
    const char *device, TinyDType dtype, const gint64 *shape, guint n_dims, gpointer handle)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_auto (TinyPlace) place = tiny_place_open (device);
  if (tiny_build_begin (&b, "new_import", 0, NULL))
    node = imported_node (&b, &place, dtype, shape, n_dims, handle);
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
  g_auto (TinyPlace) place = tiny_place_open (NULL);
  if (tiny_build_begin (&b, "empty", 0, NULL) && tiny_build_check_dtype (&b, dtype)
      && tiny_build_check_shape (&b, shape, n_dims)) {
    node = tiny_place_new_memory (&b, &place, dtype, shape, n_dims, NULL);
    if (node != NULL && tiny_shape_get_n_elements (node->shape) > 0
        && !tiny_buffer_ensure (tiny_runtime_get_buffer (node), &b.error))
      node = NULL;
  }
  return tiny_build_end (&b, node);
}

/* ---- realising ---- */
/* Equal constants are one node: those of others, and numbers that programs calculate with, stay constants. And what is made of such
 * alone would go to the default device, also where operands were on another. */
static gboolean
wants_own_memory (TinyTensor *self)
{
  return self->root.node->op == TINY_OP_CONST
         || (self->device != NULL && self->device != tiny_runtime_get_default_device (NULL)
             && tiny_node_is_nowhere (tiny_runtime_get_graph (), self->root.node));
}

static gboolean
realize_locked (TinyTensor *const *tensors, guint n, GError **error)
{
  /* a replayed step has none to make, and allocates nothing */
  g_autoptr (GPtrArray) roots = NULL;
  if (!tiny_runtime_check (error))
    return FALSE;
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
    if (wants_own_memory (tensors[i]) && !tiny_tensor_own_memory (tensors[i], "realize", error))
      return FALSE;
    if (roots == NULL)
      roots = g_ptr_array_new ();
    g_ptr_array_add (roots, &tensors[i]->root);
  }
  if (roots != NULL) {
    tiny_found_add_parts (roots);
    if (!tiny_runtime_realize ((TinyRoot *const *) roots->pdata, roots->len, error))
      return FALSE;
  }
  for (guint i = 0; i < n; i++)
    if (tensors[i]->device == NULL && tiny_tensor_get_n_elements (tensors[i]) > 0
        && tensors[i]->root.node->op != TINY_OP_VARIABLE)
      tensors[i]->device
          = g_intern_string (tiny_runtime_get_memory (tensors[i]->root.node)->text);
  return TRUE;
}

gboolean
tiny_tensor_realize_many (TinyTensor *const *tensors, guint n, GError **error)
{
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
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
  if (!tiny_memory_download (self->root.node, whole, error))
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
  return tiny_memory_download (self->root.node, out, error);
}

gboolean
tiny_tensor_copy_data (TinyTensor *self, gpointer out, gsize n_bytes, GError **error)
{
  tiny_return_error_unless (TINY_IS_LIST (out, n_bytes), error, FALSE,
                            "out are counted, but none are given");
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  gboolean good = copy_locked (self, out, n_bytes, error);
  tiny_runtime_unlock ();
  return good;
}

/* What a view was written belongs into the memory that it is a view of, which stays where it is. */
static gboolean
write_view (TinyTensor *self, gconstpointer data, gsize n_bytes, GError **error)
{
  TinyTensor *base = tiny_view_get_base (self);
  if (!realize_locked (&base, 1, error) || !tiny_tensor_part_memory (base, error))
    return FALSE;
  TinyTensor *value = tiny_tensor_new_from_data (self->device, self->dtype, self->shape,
                                                 self->n_dims, data, n_bytes);
  return tiny_tensor_assign (self, value, error) && realize_locked (&base, 1, error);
}

static gboolean
write_locked (TinyTensor *self, gconstpointer data, gsize n_bytes, GError **error)
{
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
  if (good && self->is_part) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "write_data: the tensor is a part of another at a place that a "
                         "variable says, and no view: "
                         "assign to that at the place");
    good = FALSE;
  }
  good = good && (n_bytes == 0 || tiny_tensor_part_memory (self, error));
  if (good && n_bytes > 0) {
    TinyNode *memory = tiny_runtime_get_memory (self->root.node);
    tiny_history_forget (memory);
    for (guint i = 0; i < tiny_runtime_count_pieces (memory); i++)
      tiny_history_expire_of (tiny_runtime_get_buffer (tiny_runtime_get_piece (memory, i)));
    good = tiny_memory_upload (memory, data, error);
    tiny_view_refresh (self);
  }
  return good;
}

gboolean
tiny_tensor_write_data (TinyTensor *self, gconstpointer data, gsize n_bytes, GError **error)
{
  tiny_return_error_unless (TINY_IS_LIST (data, n_bytes), error, FALSE,
                            "data are counted, but none are given");
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  note_access ();
  gboolean good = TINY_IS_TENSOR (self) && self->base != NULL
                      ? write_view (self, data, n_bytes, error)
                      : write_locked (self, data, n_bytes, error);
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
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, FALSE, "no tensor given");
  tiny_return_error_unless (out_value != NULL, error, FALSE, "no room for the value given");
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
