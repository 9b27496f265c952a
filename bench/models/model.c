/* SPDX-License-Identifier: MIT
 *
 * model.c: weights that follow from their names. */
#include "bench/models/model.h"

/* FNV-1a of the name: where its numbers start. */
static guint32
seed_of (const char *name)
{
  guint32 hash = 2166136261u;
  for (; *name != 0; name++)
    hash = (hash ^ (guint8) *name) * 16777619u;
  return hash;
}

void
model_fill (const char *name, float *out, gsize n, double offset, double scale)
{
  guint32 start = seed_of (name) * 40503u;
  for (gsize i = 0; i < n; i++) {
    guint32 v = (guint32) i * 2654435761u + start;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    float u = (float) (v >> 8) * (1.0f / 16777216.0f) - 0.5f;
    out[i] = u * (float) scale + (float) offset;
  }
}

gpointer
model_own_object (Model *self, gpointer object)
{
  g_ptr_array_add (self->owned, object);
  return object;
}

TinyTensor *
model_own (Model *self, TinyTensor *tensor)
{
  return model_own_object (self, g_object_ref_sink (tensor));
}

TinyTensor *
model_weight (Model *self,
              const char *name,
              const gint64 *shape,
              guint n_dims,
              double offset,
              double scale)
{
  gsize n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= (gsize) shape[i];
  g_autofree float *values = g_new (float, n);
  model_fill (name, values, n, offset, scale);
  return model_own (self, tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, n_dims,
                                                     values, n * sizeof *values));
}
