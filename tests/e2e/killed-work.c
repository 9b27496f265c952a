/* SPDX-License-Identifier: MIT
 *
 * killed-work.c: killed-work FOLDER SEED: a program that test-killed.py kills. Compiles kernels of other shapes, saves a
 * state and a model to files that others save to as well, and reads the state back, for ever. Exit status 1, and why: what it
 * read was not what one of them has saved. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiny.h>
#include <unistd.h>

enum { N = 60000, SHAPES = 97 };

static TinyTensor *
all_of (float value, gint64 n)
{
  return g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, &n, 1, value));
}

/* Both tensors of a saved state have one value. */
static gboolean
save (const char *path, float value, GError **error)
{
  g_autoptr (GHashTable) state
      = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_object_unref);
  g_hash_table_insert (state, (gpointer) "a", all_of (value, N));
  g_hash_table_insert (state, (gpointer) "b", all_of (value, N / 2));
  return tiny_state_save (state, path, NULL, error);
}

static gboolean
read_back (const char *path, GError **error)
{
  g_autoptr (GHashTable) state = tiny_state_load (path, NULL, NULL, error);
  double values[4] = { 0, 1 };
  if (state == NULL)
    return FALSE;
  for (guint i = 0; i < 2; i++) {
    TinyTensor *tensor = g_hash_table_lookup (state, i == 0 ? "a" : "b");
    g_autoptr (TinyTensor) least = g_object_ref_sink (tiny_tensor_min (tensor, NULL, 0, FALSE));
    g_autoptr (TinyTensor) most = g_object_ref_sink (tiny_tensor_max (tensor, NULL, 0, FALSE));
    if (!tiny_tensor_item (least, &values[2 * i], error)
        || !tiny_tensor_item (most, &values[2 * i + 1], error))
      return FALSE;
  }
  for (guint i = 1; i < 4; i++)
    if (values[i] != values[0]) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s: of more than one saving", path);
      return FALSE;
    }
  return TRUE;
}

static gboolean
save_model (const char *path, float value, GError **error)
{
  const char *const input_names[] = { "x" }, *const output_names[] = { "y" };
  const gint64 shape[] = { 8 };
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, shape, 1));
  g_autoptr (TinyTensor) w = all_of (value, 8);
  if (!tiny_tensor_realize (w, error))
    return FALSE;
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul (x, w));
  g_autoptr (TinyModel) model
      = tiny_model_new (&x, input_names, 1, &y, output_names, 1, NULL, error);
  return model != NULL && tiny_model_save (model, path, error);
}

static gboolean
compute (guint n, GError **error)
{
  double value = NAN;
  g_autoptr (TinyTensor) x = all_of (2, n);
  g_autoptr (TinyTensor) sum
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (x), NULL, 0, FALSE));
  if (!tiny_tensor_item (sum, &value, error))
    return FALSE;
  if (value != 4.0 * n)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%u squares are %g", n, value);
  return value == 4.0 * n;
}

int
main (int argc, char **argv)
{
  if (argc != 3)
    return 2;
  guint seed = (guint) atoi (argv[2]);
  g_autofree char *state = g_build_filename (argv[1], "state.safetensors", NULL);
  g_autofree char *model = g_build_filename (argv[1], "model.tir", NULL);
  g_autoptr (GError) error = NULL;
  while (compute (1 + seed * 31 % SHAPES + seed / SHAPES, &error)
         && save (state, (float) seed, &error) && read_back (state, &error)
         && save_model (model, (float) seed, &error)) {
    if (write (1, ".", 1) != 1) /* a round is done */
      return 2;
    seed++;
  }
  fprintf (stderr, "killed-work: %s\n", error->message);
  return 1;
}
