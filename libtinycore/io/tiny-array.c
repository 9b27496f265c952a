/* SPDX-License-Identifier: MIT
 *
 * tiny-array.c: see tiny-array.h. */
#include "io/tiny-array.h"

#include "tensor/tiny-tensor-file.h"

TinyArray *
tiny_array_new (
    const char *name, TinyDType dtype, const gint64 *shape, guint n_dims, GBytes *data)
{
  TinyArray *self = g_new0 (TinyArray, 1);
  self->name = g_strdup (name);
  self->dtype = dtype;
  self->shape = g_memdup2 (shape, n_dims * sizeof *shape);
  self->n_dims = n_dims;
  self->data = data == NULL ? NULL : g_bytes_ref (data);
  return self;
}

TinyArray *
tiny_array_new_in_file (const char *name,
                        TinyDType dtype,
                        const gint64 *shape,
                        guint n_dims,
                        TinyOpenedFile *file,
                        guint64 offset)
{
  TinyArray *self = tiny_array_new (name, dtype, shape, n_dims, NULL);
  self->file = tiny_opened_file_ref (file);
  self->offset = offset;
  return self;
}

TinyArray *
tiny_array_new_as (
    const TinyArray *self, const char *name, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  return self->file != NULL
             ? tiny_array_new_in_file (name, dtype, shape, n_dims, self->file, self->offset)
             : tiny_array_new (name, dtype, shape, n_dims, self->data);
}

TinyArray *
tiny_array_rename (const TinyArray *self, const char *name)
{
  return tiny_array_new_as (self, name, self->dtype, self->shape, self->n_dims);
}

void
tiny_array_free (TinyArray *self)
{
  if (self == NULL)
    return;
  g_free (self->name);
  g_free (self->shape);
  g_clear_pointer (&self->data, g_bytes_unref);
  g_clear_pointer (&self->file, tiny_opened_file_unref);
  g_free (self);
}

gsize
tiny_array_get_n_bytes (const TinyArray *self)
{
  gsize n = tiny_dtype_get_n_bytes (self->dtype);
  for (guint i = 0; i < self->n_dims; i++)
    n *= (gsize) self->shape[i];
  return n;
}

GBytes *
tiny_array_read (const TinyArray *self, GError **error)
{
  return self->data != NULL ? g_bytes_ref (self->data)
                            : tiny_opened_file_read_bytes (
                                self->file, self->offset, tiny_array_get_n_bytes (self), error);
}

TinyTensor *
tiny_array_upload (const TinyArray *self, const char *device)
{
  if (self->file != NULL)
    return tiny_tensor_new_from_file (device, self->dtype, self->shape, self->n_dims,
                                      self->file, self->offset, tiny_array_get_n_bytes (self));
  gsize n_bytes;
  const void *data = g_bytes_get_data (self->data, &n_bytes);
  return tiny_tensor_new_from_data (device, self->dtype, self->shape, self->n_dims, data,
                                    n_bytes);
}
