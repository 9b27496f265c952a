/* SPDX-License-Identifier: MIT
 *
 * test-export.c: every operation of the list of cases, exported as C and compiled without a
 * warning by two compilers, computes what it does here, with nothing undefined on the way. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "base/tiny-env.h"
#include "../default-device.h"
#include "../tensor/cases.h"
#include "io/tiny-model.h"
#include "tensor/tiny-tensor-operations.h"

static char *folder;

static char *
path_of (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

/* f32 values from low to high, the same in every run. */
static TinyTensor *
make_tensor (const Case *c, guint k)
{
  guint n_dims = 0;
  gsize n = 1;
  while (n_dims < 5 && c->shapes[k][n_dims] != 0)
    n *= (gsize) c->shapes[k][n_dims++];
  g_autofree float *values = g_new (float, n);
  g_autoptr (GRand) numbers = g_rand_new_with_seed (k + 7);
  for (gsize i = 0; i < n; i++)
    values[i] = (float) g_rand_double_range (numbers, c->low, c->high);
  return g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, c->shapes[k],
                                                       n_dims, values, n * sizeof (float)));
}

static void
write_tensor (const char *name, const char *suffix, TinyTensor *tensor)
{
  g_autofree char *file = g_strconcat (name, suffix, NULL), *path = path_of (file);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = tiny_tensor_get_data (tensor, &error);
  g_assert_no_error (error);
  g_assert_true (g_file_set_contents (path, g_bytes_get_data (data, NULL),
                                      (gssize) g_bytes_get_size (data), NULL));
}

/* Exports the case with its first tensor as input, the others as weights. */
static gboolean
export_case (const Case *c)
{
  static const char *const inputs[] = { "x" }, *const outputs[] = { "y" };
  g_autoptr (GError) error = NULL;
  TinyTensor *x[3];
  for (guint k = 0; k < c->n; k++)
    x[k] = make_tensor (c, k);
  g_autoptr (TinyTensor) y = g_object_ref_sink (c->function (x));
  g_autoptr (TinyModel) model = tiny_model_new (x, inputs, 1, &y, outputs, 1, NULL, &error);
  g_autofree char *out = path_of (c->name);
  gboolean reads = !g_error_matches (error, TINY_ERROR, TINY_ERROR_INVALID);
  if (reads) { /* detach, for one, does not read its first tensor */
    g_assert_no_error (error);
    tiny_model_export (model, "c", NULL, out, &error);
    g_assert_no_error (error);
    write_tensor (c->name, ".x", x[0]);
    write_tensor (c->name, ".y", y);
  }
  for (guint k = 0; k < c->n; k++)
    g_object_unref (x[k]);
  return reads;
}

/* ---- the program around the exported functions ---- */
static const char main_head[]
    = "#include <stdio.h>\n#include <stdlib.h>\n"
      "static void *take (size_t n) { void *p = malloc (n); if (!p) exit (3); return p; }\n"
      "static void *read_file (const char *path, size_t n) {\n"
      "  FILE *file = fopen (path, \"rb\");\n  void *data = take (n);\n"
      "  if (!file || fread (data, 1, n, file) != n) { perror (path); exit (3); }\n"
      "  fclose (file);\n  return data;\n}\n"
      "static void write_file (const char *path, const void *data, size_t n) {\n"
      "  FILE *file = fopen (path, \"wb\");\n"
      "  if (!file || fwrite (data, 1, n, file) != n) { perror (path); exit (3); }\n"
      "  fclose (file);\n}\n";

static void
append_case (GString *out, const char *name)
{
  g_autofree char *upper = g_ascii_strup (name, -1);
  g_string_append_printf (
      out,
      "#include \"%s/%s.c\"\n"
      "static void run_%s (void) {\n"
      "  void *weights = take (%s_WEIGHTS_BYTES), *scratch = take (%s_SCRATCH_BYTES);\n"
      "  void *x = read_file (\"%s.x\", sizeof (float) * %s_N_IN_X);\n"
      "  float *y = take (sizeof (float) * %s_N_OUT_Y);\n"
      "  if (%s_load (\"%s/%s.safetensors\", weights) != 0) { puts (\"%s\"); exit (4); }\n"
      "  %s_run (weights, scratch, x, y);\n"
      "  write_file (\"%s.out\", y, sizeof (float) * %s_N_OUT_Y);\n"
      "  free (weights), free (scratch), free (x), free (y);\n}\n",
      name, name, name, upper, upper, name, upper, upper, name, name, name, name, name, name,
      upper);
}

static void
run_command (char **argv)
{
  g_autofree char *out = NULL, *err = NULL, *line = g_strjoinv (" ", argv);
  g_autoptr (GError) error = NULL;
  int status;
  g_assert_true (g_spawn_sync (folder, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err,
                               &status, &error));
  if (status != 0 || err[0] != 0)
    g_error ("%s: status %d\n%s%s", line, status, out, err);
}

/* @flags: words for the compiler. */
static void
build_and_run (const char *compiler, const char *flags)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *line = g_strconcat (compiler, " -std=c11 -Wall -Wextra -Werror ", flags,
                                       " -o main main.c", NULL);
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  for (guint i = 0; words[i] != NULL; i++)
    g_ptr_array_add (argv, g_strdup (words[i]));
  g_ptr_array_add (argv, NULL);
  run_command ((char **) argv->pdata);
  run_command ((char *[]){ "./main", NULL });
}

static void
check_result (const char *name)
{
  g_autofree char *got_file = g_strconcat (name, ".out", NULL), *got_path = path_of (got_file);
  g_autofree char *file = g_strconcat (name, ".y", NULL), *path = path_of (file);
  g_autofree float *got = NULL, *wanted = NULL;
  gsize n_got, n;
  g_assert_true (g_file_get_contents (got_path, (char **) &got, &n_got, NULL));
  g_assert_true (g_file_get_contents (path, (char **) &wanted, &n, NULL));
  g_assert_cmpuint (n_got, ==, n);
  for (gsize i = 0; i < n / sizeof (float); i++)
    if (!(fabsf (got[i] - wanted[i]) <= 1e-5f * MAX (1, fabsf (wanted[i])))) {
      CASE_FAILS ("%s: element %" G_GSIZE_FORMAT " is %.9g, not %.9g", name, i, got[i],
                  wanted[i]);
      break;
    }
  g_unlink (got_path);
}

static void
test_cases (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GString) text = g_string_new (main_head);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < n_cases; i++)
    if (!g_str_equal (cases[i].name, "mulacc") && !g_str_equal (cases[i].name, "cast")
        && export_case (&cases[i])) {
      g_ptr_array_add (names, (gpointer) cases[i].name);
      append_case (text, cases[i].name);
    }
  g_assert_cmpuint (names->len, >, n_cases * 9 / 10);
  g_string_append (text, "int main (void) {\n");
  for (guint i = 0; i < names->len; i++)
    g_string_append_printf (text, "  run_%s ();\n", (char *) names->pdata[i]);
  g_string_append (text, "  return 0;\n}\n");
  g_autofree char *main_path = path_of ("main.c");
  g_assert_true (g_file_set_contents (main_path, text->str, -1, NULL));
  build_and_run ("gcc", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all");
  for (guint i = 0; i < names->len; i++)
    check_result (names->pdata[i]);
  build_and_run ("clang", "-O1");
  for (guint i = 0; i < names->len; i++)
    check_result (names->pdata[i]);
}

static void
remove_all (void)
{
  const char *argv[] = { "rm", "-rf", folder, NULL };
  g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                NULL);
  g_free (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  /* Exported models are kernels alone: a library of this machine is not on the next. */
  tiny_env_set_int (TINY_ENV_NO_CLAIM, 1);
  folder = g_dir_make_tmp ("tiny-export-XXXXXX", NULL);
  g_test_add_func ("/io/export/cases", test_cases);
  int status = g_test_run ();
  remove_all ();
  return status;
}
