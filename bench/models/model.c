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

static gboolean
fill_parameter (TinyTensor *parameter, guint i, GError **error)
{
  gboolean is_vector = tiny_tensor_get_n_dims (parameter) == 1;
  gsize n = (gsize) tiny_tensor_get_n_elements (parameter);
  g_autofree char *name = g_strdup_printf ("parameter.%u", i);
  g_autofree float *values = g_new (float, n);
  bench_fill (name, values, n, is_vector ? 0.5 : 0, is_vector ? 0.1 : 0.2);
  return tiny_tensor_write_data (parameter, values, n * sizeof *values, error);
}

gboolean
model_fill_parameters (TinyModule *module, GError **error)
{
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (module);
  for (guint i = 0; i < parameters->len; i++)
    if (!fill_parameter (parameters->pdata[i], i, error))
      return FALSE;
  return TRUE;
}
