/* SPDX-License-Identifier: MIT
 *
 * model.c: what models are made of. */
#include "bench/models/model.h"

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
  return model_own_object (self, bench_tensor (name, shape, n_dims, offset, scale));
}
