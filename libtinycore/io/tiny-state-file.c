/* SPDX-License-Identifier: MIT
 *
 * tiny-state-file.c: named tensors to and from safetensors files. */
#include "io/tiny-state-file.h"

#include "base/tiny-clean.h"
#include "base/tiny-guard.h"
#include "base/tiny-text-hash.h"
#include "io/tiny-safetensors.h"

/* ---- writing ---- */
static GBytes *
read_tensor (const TinyArray *array, gpointer user_data, GError **error)
{
  GBytes *data = tiny_tensor_get_data (g_hash_table_lookup (user_data, array->name), error);
  if (data == NULL)
    g_prefix_error (error, "“%s”: ", array->name);
  return data;
}

static void
copy_text (gpointer key, gpointer value, gpointer user_data)
{
  g_hash_table_insert (user_data, g_strdup (key), g_strdup (value));
}

gboolean
tiny_state_save (GHashTable *state, const char *path, GHashTable *metadata, GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (state != NULL, error, FALSE, "no state given");
  tiny_return_error_unless (path != NULL, error, FALSE, "no path given");
  g_autoptr (TinySafetensors) file = tiny_safetensors_new ();
  GHashTableIter at;
  gpointer name, tensor;
  if (metadata != NULL)
    g_hash_table_foreach (metadata, copy_text, file->metadata);
  g_hash_table_iter_init (&at, state);
  while (g_hash_table_iter_next (&at, &name, &tensor)) {
    if (!TINY_IS_TENSOR (tensor)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: “%s” is no tensor", path,
                   (const char *) name);
      return FALSE;
    }
    const GError *wrong = tiny_tensor_get_error (tensor);
    if (wrong != NULL) {
      g_propagate_error (error, g_error_copy (wrong));
      g_prefix_error (error, "%s: “%s”: ", path, (const char *) name);
      return FALSE;
    }
    guint n_dims;
    const gint64 *shape = tiny_tensor_get_shape (tensor, &n_dims);
    g_ptr_array_add (file->arrays, tiny_array_new (name, tiny_tensor_get_dtype (tensor), shape,
                                                   n_dims, NULL));
  }
  return tiny_safetensors_write_streamed (file, path, read_tensor, state, NULL, error);
}

gboolean
tiny_module_save (TinyModule *self, const char *path, GHashTable *metadata, GError **error)
{
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  tiny_return_error_unless (path != NULL, error, FALSE, "no path given");
  g_autoptr (GHashTable) state = tiny_module_get_state_dict (self);
  return tiny_state_save (state, path, metadata, error);
}

/* ---- reading ---- */
static TinyTensor *
make_tensor (const TinyArray *array, const char *path, const char *device, GError **error)
{
  TinyTensor *tensor = g_object_ref_sink (tiny_array_upload (array, device));
  const GError *wrong = tiny_tensor_get_error (tensor);
  if (wrong == NULL)
    return tensor;
  g_propagate_error (error, g_error_copy (wrong));
  if (!g_str_has_prefix (wrong->message, path)) /* what could not be read says so */
    g_prefix_error (error, "%s: “%s”: ", path, array->name);
  g_object_unref (tensor);
  return NULL;
}

GHashTable *
tiny_state_load (const char *path,
                 const char *device,
                 GHashTable **out_metadata,
                 GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (path != NULL, error, NULL, "no path given");
  g_autoptr (TinySafetensors) file = tiny_safetensors_load (path, error);
  if (file == NULL)
    return NULL;
  g_autoptr (GHashTable) state
      = g_hash_table_new_full (tiny_text_hash, g_str_equal, g_free, g_object_unref);
  for (guint i = 0; i < file->arrays->len; i++) {
    const TinyArray *array = file->arrays->pdata[i];
    TinyTensor *tensor = make_tensor (array, path, device, error);
    if (tensor == NULL)
      return NULL;
    g_hash_table_insert (state, g_strdup (array->name), tensor);
  }
  if (out_metadata != NULL)
    *out_metadata = g_hash_table_ref (file->metadata);
  return g_steal_pointer (&state);
}

gboolean
tiny_module_load (TinyModule *self, const char *path, gboolean strict, GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  tiny_return_error_unless (path != NULL, error, FALSE, "no path given");
  g_autoptr (GHashTable) state = tiny_state_load (path, NULL, NULL, error);
  if (state == NULL)
    return FALSE;
  if (tiny_module_load_state_dict (self, state, strict, error))
    return TRUE;
  g_prefix_error (error, "%s: ", path);
  return FALSE;
}
