/* SPDX-License-Identifier: MIT
 *
 * tensor-blob.c: tensors in host memory of somebody else's. */
#include <string.h>

#include "engine/tiny-plan.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-import.h"
#include "tensor/tiny-tensor-private.h"

typedef struct {
  gpointer memory;
  GDestroyNotify free_func; /* not yet called, or NULL */
  gpointer owner;
} Blob;

static void
blob_clear (Blob *self)
{
  if (self->free_func != NULL)
    self->free_func (self->owner);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Blob, blob_clear)

static void
ignore (gpointer owner)
{
}

/* The memory itself, which @self then leaves to the buffer, or a copy. */
static TinyBuffer *
take_memory (TinyBuild *b, TinyDevice *device, Blob *self, gsize n_bytes)
{
  if (tiny_buffer_can_be_host (device, self->memory)) {
    TinyBuffer *shared = tiny_buffer_new_host (
        device, self->memory, n_bytes, self->free_func != NULL ? self->free_func : ignore,
        self->owner, &b->error);
    if (shared != NULL)
      self->free_func = NULL;
    return shared;
  }
  g_autoptr (TinyBuffer) copy = tiny_buffer_new (device, n_bytes);
  if (!tiny_buffer_ensure (copy, &b->error)
      || !tiny_buffer_upload (copy, 0, self->memory, n_bytes, &b->error))
    return NULL;
  return g_steal_pointer (&copy);
}

static TinyNode *
blob_node (
    TinyBuild *b, TinyDevice *device, TinyDType dtype, const gint64 *shape, guint n, Blob *self)
{
  if (!tiny_build_check_dtype (b, dtype) || !tiny_build_check_shape (b, shape, n))
    return NULL;
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < n; i++)
    n_bytes *= (gsize) shape[i];
  if (n_bytes == 0)
    return tiny_node_broadcast (b->graph, tiny_build_number (b, dtype, 0), shape, n);
  if (self->memory == NULL)
    return tiny_build_fail (b, "there is no memory");
  if (device == NULL)
    return NULL;
  b->device = g_intern_string (tiny_device_get_name (device));
  g_autoptr (TinyBuffer) buffer = take_memory (b, device, self, n_bytes);
  return buffer == NULL ? NULL : tiny_runtime_buffer_node (buffer, dtype, shape, n);
}

TinyTensor *
tiny_tensor_new_from_blob (const char *device_name,
                           TinyDType dtype,
                           const gint64 *shape,
                           guint n_dims,
                           gpointer memory,
                           GDestroyNotify free_func,
                           gpointer user_data)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Blob) blob = { memory, free_func, user_data };
  if (device_name == NULL)
    device_name = tiny_runtime_get_default_device (&error);
  TinyDevice *device
      = device_name != NULL ? tiny_engine_get_device (device_name, &error) : NULL;
  if (tiny_build_begin (&b, "from_blob", 0, NULL)) {
    node = blob_node (&b, device, dtype, shape, n_dims, &blob);
    if (node == NULL && b.error == NULL)
      b.error = g_steal_pointer (&error);
  }
  return tiny_build_end (&b, node);
}
