/* SPDX-License-Identifier: MIT
 *
 * run-model.c: run-model MODEL.tir VALUES N SHAPE…: applies a model of one f32 input of that shape to N values for
 * it from a file, one after the other, and writes the first output of each to standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <tiny.h>

static gboolean
run_one (TinyModel *model, const gint64 *shape, guint n_dims, const char *data, gsize n_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) y = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, n_dims, data, n_bytes));
  g_autoptr (GBytes) result = NULL;
  if (tiny_model_apply (model, &x, 1, &y, &error))
    result = tiny_tensor_get_data (y, &error);
  if (result == NULL) {
    g_printerr ("%s\n", error->message);
    return FALSE;
  }
  gsize size;
  gconstpointer bytes = g_bytes_get_data (result, &size);
  return fwrite (bytes, 1, size, stdout) == size;
}

int
main (int argc, char **argv)
{
  gint64 shape[8];
  gsize n_bytes = sizeof (float), size;
  guint n_dims = 0;
  g_autofree char *data = NULL;
  g_autoptr (GError) error = NULL;
  if (argc < 5 || argc > 12)
    return 2;
  for (int i = 4; i < argc; i++)
    n_bytes *= (gsize) (shape[n_dims++] = atoll (argv[i]));
  g_autoptr (TinyModel) model = tiny_model_load (argv[1], &error);
  if (model == NULL || tiny_model_get_n_inputs (model) != 1
      || tiny_model_get_n_outputs (model) != 1
      || !g_file_get_contents (argv[2], &data, &size, &error)) {
    g_printerr ("%s\n", error != NULL ? error->message : "one input and one output wanted");
    return 1;
  }
  gsize n = (gsize) atoll (argv[3]);
  for (gsize i = 0; i < n && (i + 1) * n_bytes <= size; i++)
    if (!run_one (model, shape, n_dims, data + i * n_bytes, n_bytes))
      return 1;
  return 0;
}
