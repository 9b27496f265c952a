/* SPDX-License-Identifier: MIT
 *
 * test-model.c: a model made from tensors computes what they do, before and after it went through
 * files; names and values survive; and what cannot be a model is refused in words. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <tiny.h>
#include <unistd.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "io/tiny-safetensors.h"

static char *folder;

static char *
path_of (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static TinyTensor *
vector (float a, float b)
{
  const float values[] = { a, b };
  const gint64 shape[] = { 2 };
  return g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, 1, values, sizeof values));
}

/* ---- files ---- */
static void
test_safetensors (void)
{
  const guint8 bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
  const gint64 wide[] = { 2 }, narrow[] = { 1, 3 }, none[] = { 0, 5 };
  g_autofree char *path = path_of ("a.safetensors");
  g_autoptr (GError) error = NULL;
  g_autoptr (TinySafetensors) file = tiny_safetensors_new ();
  g_autoptr (GBytes) eight = g_bytes_new (bytes, 8), three = g_bytes_new (bytes, 3),
                     empty = g_bytes_new (NULL, 0);
  g_ptr_array_add (file->arrays,
                   tiny_array_new ("a \"name\"", TINY_DTYPE_U8, narrow, 2, three));
  g_ptr_array_add (file->arrays, tiny_array_new ("wide", TINY_DTYPE_F32, wide, 1, eight));
  g_ptr_array_add (file->arrays, tiny_array_new ("none", TINY_DTYPE_F64, none, 2, empty));
  g_ptr_array_add (file->arrays, tiny_array_new ("scalar", TINY_DTYPE_I64, NULL, 0, eight));
  g_hash_table_insert (file->metadata, g_strdup ("k"), g_strdup ("two\nlines"));
  gsize offset;
  g_assert_true (tiny_safetensors_write (file, path, &offset, &error));
  g_assert_cmpuint (offset % 8, ==, 0);
  g_assert_cmpstr (((TinyArray *) file->arrays->pdata[3])->name, ==, "a \"name\"");
  g_autoptr (TinySafetensors) back = tiny_safetensors_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (back->arrays->len, ==, 4);
  g_assert_cmpstr (g_hash_table_lookup (back->metadata, "k"), ==, "two\nlines");
  for (guint i = 0; i < 4; i++) {
    const TinyArray *a = file->arrays->pdata[i], *b = tiny_safetensors_find (back, a->name);
    g_assert_nonnull (b);
    g_assert_cmpint (a->dtype, ==, b->dtype);
    g_assert_cmpmem (a->shape, a->n_dims * 8, b->shape, b->n_dims * 8);
    g_autoptr (GBytes) read = tiny_array_read (b, &error);
    g_assert_no_error (error);
    g_assert_true (g_bytes_equal (a->data, read));
  }
  /* Every cut of it is refused. */
  g_autofree char *text = NULL, *cut = path_of ("cut");
  gsize size;
  g_assert_true (g_file_get_contents (path, &text, &size, NULL));
  for (gsize n = 0; n < size; n++) {
    g_assert_true (g_file_set_contents (cut, text, (gssize) n, NULL));
    g_assert_null (tiny_safetensors_load (cut, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
    g_clear_error (&error);
  }
  g_autofree char *nowhere = path_of ("none/x");
  g_assert_false (tiny_safetensors_write (file, nowhere, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
}

/* ---- models ---- */

/* y = x * w + 2, z = sum (y) */
static TinyModel *
make_model (TinyTensor *x, TinyTensor *w, GError **error)
{
  const char *const inputs[] = { "x" }, *const outputs[] = { "y", "total.z" };
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (tiny_tensor_add_number (tiny_tensor_mul (x, w), 2));
  g_autoptr (TinyTensor) z = g_object_ref_sink (tiny_tensor_sum (y, NULL, 0, FALSE));
  return tiny_model_new (&x, inputs, 1, (TinyTensor *[]){ y, z }, outputs, 2, NULL, error);
}

static void
check_model (TinyModel *model)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = vector (3, 4), y = NULL, z = NULL;
  TinyTensor *out[2];
  double value;
  float values[2];
  g_assert_true (tiny_model_apply (model, &x, 1, out, &error));
  g_assert_no_error (error);
  y = out[0];
  z = out[1];
  g_assert_true (tiny_tensor_copy_data (y, values, sizeof values, &error));
  g_assert_cmpfloat (values[0], ==, 32);
  g_assert_cmpfloat (values[1], ==, 82);
  g_assert_true (tiny_tensor_item (z, &value, &error));
  g_assert_cmpfloat (value, ==, 114);
  g_autoptr (GPtrArray) list = tiny_model_apply_list (model, &x, 1, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (list->len, ==, 2);
  g_assert_true (tiny_tensor_item (list->pdata[1], &value, &error));
  g_assert_cmpfloat (value, ==, 114);
  g_assert_null (tiny_model_apply_list (model, NULL, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

static void
test_files (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = vector (0, 0), w = vector (10, 20);
  g_autoptr (TinyModel) model = make_model (x, w, &error);
  g_assert_no_error (error);
  check_model (model);
  const float examples[] = { 1, 2, 3, 4 };
  g_autoptr (GBytes) bytes = g_bytes_new (examples, sizeof examples);
  tiny_model_set_metadata (model, "classes", "a\nb");
  g_assert_true (tiny_model_set_examples (model, "x", bytes, &error));
  g_assert_true (
      tiny_model_set_examples (model, "x", bytes, &error)); /* instead of those before */
  g_autofree char *path = path_of ("m.tir"), *again = path_of ("again.tir");
  g_assert_true (tiny_model_save (model, path, &error));
  g_autoptr (TinyModel) back = tiny_model_load (path, &error);
  g_assert_no_error (error);
  check_model (back);
  /* What is saved of what was loaded is the same, to the byte. */
  g_assert_true (symlink ("behind.tir", again) == 0);
  g_assert_true (tiny_model_save (back, again, &error));
  g_assert_true (g_file_test (again, G_FILE_TEST_IS_SYMLINK));
  const char *const ends[] = { "tir", "safetensors" };
  for (guint i = 0; i < 2; i++) {
    g_autofree char *one = g_strdup_printf ("%s/m.%s", folder, ends[i]);
    g_autofree char *two = g_strdup_printf ("%s/again.%s", folder, ends[i]);
    g_autofree char *a = NULL, *b = NULL;
    gsize n_a, n_b;
    g_assert_true (g_file_get_contents (one, &a, &n_a, NULL));
    g_assert_true (g_file_get_contents (two, &b, &n_b, NULL));
    g_assert_cmpmem (a, n_a, b, n_b);
    if (i == 0)
      for (guint k = 0; k < 4; k++)
        g_assert_nonnull (strstr (
            a, ((const char *[]){ "%x = param", "%weights.", "%y = ", "%total.z = " })[k]));
  }
}

#define REFUSED(call, part)                                                                    \
  do {                                                                                         \
    g_assert_false (call);                                                                     \
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);                                    \
    if (strstr (error->message, part) == NULL)                                                 \
      CASE_FAILS ("“%s” wanted in: %s", part, error->message);                                 \
    g_clear_error (&error);                                                                    \
  } while (0)

/* The last output for { 3, 4 }, or NaN and the error. */
static double
apply_loaded (TinyModel *model, GError **error)
{
  g_autoptr (TinyTensor) x = vector (3, 4);
  g_autoptr (GPtrArray) out = tiny_model_apply_list (model, &x, 1, error);
  double value = NAN;
  return out != NULL && tiny_tensor_item (out->pdata[1], &value, error) ? value : NAN;
}

/* Weights that are gone from their file are an error and no signal; a file that another takes the place of stays. */
static void
test_other_writers (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = vector (0, 0), w = vector (10, 20), v = vector (0, 1);
  g_autofree char *path = path_of ("shared.tir"), *weights = path_of ("shared.safetensors");
  g_autofree char *copy = path_of ("copy.tir");
  g_autoptr (TinyModel) one = make_model (x, w, &error), two = make_model (x, v, &error);
  g_assert_no_error (error);
  g_assert_true (tiny_model_save (one, path, &error));
  g_autoptr (TinyModel) loaded = tiny_model_load (path, &error);
  g_autoptr (TinyModel) replaced = tiny_model_load (path, &error);
  g_assert_true (tiny_model_save (two, path, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (apply_loaded (replaced, &error), ==, 114);
  g_assert_no_error (error);
  g_assert_true (tiny_model_save (loaded, path, &error)); /* what it had, to where that was */
  g_autoptr (TinyModel) cut = tiny_model_load (path, &error);
  g_assert_no_error (error);
  g_assert_true (truncate (weights, 16) == 0);
  apply_loaded (cut, &error);
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
  g_assert_nonnull (strstr (error->message, weights));
  g_assert_nonnull (strstr (error->message, "wanted 8 bytes from byte "));
  g_assert_nonnull (strstr (error->message, "found 0"));
  g_clear_error (&error);
  g_assert_false (tiny_model_save (cut, copy, &error));
  g_assert_nonnull (strstr (error->message, weights));
}

static void
test_refused (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = vector (1, 2), w = vector (3, 4), wide = NULL;
  g_autoptr (TinyTensor) lazy = g_object_ref_sink (tiny_tensor_neg (x));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul (x, w));
  g_autoptr (TinyTensor) bad = g_object_ref_sink (tiny_tensor_reshape (x, (gint64[]){ 3 }, 1));
  TinyTensor *both[] = { x, w };
#define MAKE(in, in_name, out, out_name)                                                       \
  tiny_model_new (&in, (const char *[]){ in_name }, 1, &out, (const char *[]){ out_name }, 1,  \
                  NULL, &error)
  REFUSED (MAKE (x, "1", y, "y"), "“1” cannot name an input");
  REFUSED (MAKE (x, "weights.a", y, "y"), "cannot name an input");
  REFUSED (MAKE (x, "x", y, "y z"), "“y z” cannot name an output");
  REFUSED (MAKE (lazy, "x", y, "y"), "“x” is not in memory");
  REFUSED (MAKE (x, "x", w, "y"), "“y” is computed already");
  REFUSED (MAKE (x, "x", bad, "y"), "reshape");
  REFUSED (tiny_model_new (both, (const char *[]){ "x", "x" }, 2, &y, (const char *[]){ "y" },
                           1, NULL, &error),
           "two inputs “x”");
  wide = g_object_ref_sink (tiny_tensor_neg (x));
  REFUSED (tiny_model_new (both, (const char *[]){ "x", "w" }, 2, &wide,
                           (const char *[]){ "y" }, 1, NULL, &error),
           "no output reads input “w”");
  g_autoptr (TinyModel) model = make_model (x, w, &error);
  g_autoptr (GBytes) bytes = g_bytes_new ("abc", 3);
  g_autofree char *path = path_of ("m.txt");
  TinyTensor *out[2];
  REFUSED (tiny_model_set_examples (model, "x", bytes, &error), "no whole number");
  REFUSED (tiny_model_set_examples (model, "q", bytes, &error), "no input “q”");
  REFUSED (tiny_model_save (model, path, &error), "ends in .tir");
  REFUSED (tiny_model_apply (model, both, 2, out, &error), "2 inputs given, it has 1");
  TinyTensor *null = NULL;
  g_autoptr (TinyTensor) empty
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ 0 }, 1));
  REFUSED (tiny_model_apply (model, &null, 1, out, &error), "input “x” is no tensor");
  REFUSED (MAKE (null, "x", y, "y"), "input “x” is no tensor");
  REFUSED (MAKE (x, "x", null, "y"), "output “y” is no tensor");
  REFUSED (MAKE (x, NULL, y, "y"), "has no name");
  REFUSED (MAKE (empty, "x", y, "y"), "“x” is not in memory");
  REFUSED (MAKE (x, "x", empty, "y"), "“y” is computed already");
  g_autoptr (TinyTensor) scalar = g_object_ref_sink (tiny_tensor_sum (x, NULL, 0, FALSE));
  REFUSED (tiny_model_apply (model, &scalar, 1, out, &error), "“x” has another dtype or shape");
}

static void
collect (const char *name, TinyTensor *tensor, gboolean trainable, gpointer tensors)
{
  g_ptr_array_add (tensors, tensor);
}

/* Names are the module's; new weights are to be there before they are used. */
static void
test_module (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyModule) net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_linear_new (2, 3, TRUE));
  tiny_sequential_append (net, tiny_function_new (tiny_tensor_relu));
  g_autoptr (TinyTensor) x = vector (1, 2);
  g_autoptr (TinyTensor) early = g_object_ref_sink (tiny_module_forward (net, x));
  REFUSED (MAKE (x, "x", early, "y"), "realise the module's tensors before");
  g_autoptr (GPtrArray) tensors = g_ptr_array_new ();
  tiny_module_visit (net, collect, tensors);
  tiny_tensor_realize_many ((TinyTensor *const *) tensors->pdata, tensors->len, &error);
  g_assert_no_error (error);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (net, x));
  g_autoptr (TinyModel) model = tiny_model_new (&x, (const char *[]){ "x" }, 1, &y,
                                                (const char *[]){ "y" }, 1, net, &error);
  g_assert_no_error (error);
  g_autofree char *path = path_of ("net.tir"), *data = path_of ("net.safetensors");
  g_assert_true (tiny_model_save (model, path, &error));
  g_autoptr (TinySafetensors) file = tiny_safetensors_load (data, &error);
  g_assert_cmpuint (file->arrays->len, ==, 2);
  g_assert_nonnull (tiny_safetensors_find (file, "0.weight"));
  g_assert_nonnull (tiny_safetensors_find (file, "0.bias"));
  TinyTensor *out;
  float a[3], b[3];
  g_assert_true (tiny_model_apply (model, &x, 1, &out, &error));
  g_assert_true (tiny_tensor_copy_data (out, a, sizeof a, &error));
  g_assert_true (tiny_tensor_copy_data (y, b, sizeof b, &error));
  g_object_unref (out);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpfloat_with_epsilon (a[i], b[i], 1e-6);
}

/* Kernels in IR text keep it, from tensors to files and back. */
static void
test_kernel (void)
{
  if (skips_without_device ())
    return;
  static const char add_one[] = "%y = param.f32{slot=0, shape=[2]}\n"
                                "%x = param.f32{slot=1, shape=[2]}\n"
                                "%i = range.index{number=0, kind=loop}(2)\n"
                                "sink(store(%y, %i, add.f32(load.f32(%x, %i), 1.0)))\n";
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = vector (1, 2);
  g_autoptr (GPtrArray) results = tiny_custom_kernel (add_one, &x, 1);
  TinyTensor *y = results->pdata[0];
  g_autofree char *path = path_of ("kernel.tir");
  g_autoptr (TinyModel) model = MAKE (x, "x", y, "y");
  g_assert_no_error (error);
  g_assert_true (tiny_model_save (model, path, &error));
  g_autoptr (TinyModel) back = tiny_model_load (path, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++) {
    TinyTensor *out;
    float values[2];
    g_assert_true (tiny_model_apply (i == 0 ? model : back, &x, 1, &out, &error));
    g_assert_true (tiny_tensor_copy_data (out, values, sizeof values, &error));
    g_object_unref (out);
    g_assert_cmpfloat (values[0], ==, 2);
    g_assert_cmpfloat (values[1], ==, 3);
  }
}

/* A model file whose kernel stores and loads where its weights say, out of its buffers and in a circle. */
static void
test_hostile_kernel (void)
{
  if (skips_without_device ())
    return;
  static const char *const indices[]
      = { "mul.index(max.index(%at, 0), 2)", "add.index(max.index(%at, 0), 1099511627776)",
          "shl.index(max.index(%at, 0), 1)" };
  static const gint64 weights[] = { (gint64) 1 << 62, ((gint64) 1 << 62) + 3, G_MAXINT64,
                                    G_MAXINT64 - ((gint64) 1 << 40) + 1, G_MININT64 };
  g_autofree char *path = path_of ("evil.tir"), *data = path_of ("evil.safetensors");
  for (guint i = 0; i < G_N_ELEMENTS (indices) * G_N_ELEMENTS (weights) * 2; i++) {
    g_autoptr (GError) error = NULL;
    const gboolean loads = i % 2 == 1;
    const char *index = indices[i / 2 % G_N_ELEMENTS (indices)];
    const gint64 weight = weights[i / 2 / G_N_ELEMENTS (indices)];
    g_autofree char *text = g_strdup_printf (
        "// stage: tensor\n%%input = param.f32{slot=0, shape=[2]}\n"
        "%%weights.w = param.i64{slot=1, shape=[1]}\n"
        "%%out = kernel.f32{output=0, shape=[2], code=\"%%y = param.f32{slot=0, shape=[2]}\\n"
        "%%x = param.i64{slot=1, shape=[1]}\\n%%z = param.f32{slot=2, shape=[2]}\\n"
        "%%r = range.index{number=0, kind=loop}(2)\\n%%at = cast.index(load.i64(%%x, 0))\\n"
        "%%i = add.index(%s, %%r)\\nsink(store(%%y, %s, load.f32(%%z, %s)))\"}(%%weights.w, "
        "%%input)\nsink(%%out)\n",
        index, loads ? "%r" : "%i", loads ? "%i" : "%r");
    g_assert_true (g_file_set_contents (path, text, -1, &error));
    g_autoptr (TinySafetensors) file = tiny_safetensors_new ();
    g_autoptr (GBytes) bytes = g_bytes_new (&weight, sizeof weight);
    g_ptr_array_add (file->arrays,
                     tiny_array_new ("w", TINY_DTYPE_I64, (gint64[]){ 1 }, 1, bytes));
    gsize offset;
    g_assert_true (tiny_safetensors_write (file, data, &offset, &error));
    g_autoptr (TinyModel) model = tiny_model_load (path, &error);
    g_assert_no_error (error);
    g_autoptr (TinyTensor) x = vector (3, 4);
    TinyTensor *out;
    float values[2] = { 1, 1 };
    const gboolean ok = tiny_model_apply (model, &x, 1, &out, &error)
                        && tiny_tensor_copy_data (out, values, sizeof values, &error);
    g_assert_no_error (error);
    g_assert_true (ok);
    g_object_unref (out);
    const gboolean is_first = weight == G_MININT64 && i / 2 % G_N_ELEMENTS (indices) != 1;
    if (values[0] != (is_first ? 3 : 0) || values[1] != (is_first ? 4 : 0))
      CASE_FAILS ("index %s, number %" G_GINT64_FORMAT ", %s: %g %g", index, weight,
                  loads ? "load" : "store", values[0], values[1]);
  }
}

/* A model that was made as any object is computes nothing, and is saved and read as that. */
static void
test_empty (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyModel) model = g_object_new (TINY_TYPE_MODEL, NULL), back = NULL;
  g_autofree char *path = path_of ("empty.tir");
  TinyTensor *none;
  g_assert_true (tiny_model_apply (model, NULL, 0, &none, &error));
  g_assert_true (tiny_model_save (model, path, &error));
  back = tiny_model_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (tiny_model_get_n_outputs (back), ==, 0);
}

/* Nodes that only a running program has: their numbers and names would be taken for its own. */
static void
test_hostile_graph (void)
{
  static const struct {
    const char *part, *rest;
  } rows[] = {
    { "sink has no", "%inner = sink(%x)\nsink(%inner)" },
    { "sink has no", "%inner = sink()\nsink(%x, %inner)" },
    { "limit has no", "sink(limit.f32{axis=0}(%x, sub.i32(3:i32, 1:i32)))" },
    { "limit has no", "%n = param.i32{slot=1, shape=[]}\nsink(limit.f32{axis=0}(%x, %n))" },
    { "unshard has no", "sink(unshard.f32{axis=0, devices=\"CPU;CPU:1\"}(%x, %x))" },
    { "gradient has no",
      "sink(gradient.f32{rule=7, output=0, n_outputs=1, n_remade=0}(neg.f32(%x), %x))" },
    { "after has no", "sink(after.f32(%x, %x))" },
    { "output 0 is of dtype index", "sink(cast.index(%x))" },
    { "buffer has no", "sink(add.f32(%x, buffer.f32{number=1, shape=[4]}))" },
  };
  g_autofree char *path = path_of ("graph.tir");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *text = g_strdup_printf (
        "// stage: tensor\n%%x = param.f32{slot=0, shape=[4]}\n%s\n", rows[i].rest);
    g_assert_true (g_file_set_contents (path, text, -1, &error));
    g_autoptr (TinyModel) model = tiny_model_load (path, &error);
    if (model != NULL || strstr (error->message, rows[i].part) == NULL)
      CASE_FAILS ("%s: %s", rows[i].rest, error != NULL ? error->message : "it is read");
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("tiny-model-XXXXXX", NULL);
  g_test_add_func ("/io/model/safetensors", test_safetensors);
  g_test_add_func ("/io/model/files", test_files);
  g_test_add_func ("/io/model/other-writers", test_other_writers);
  g_test_add_func ("/io/model/refused", test_refused);
  g_test_add_func ("/io/model/module", test_module);
  g_test_add_func ("/io/model/kernel", test_kernel);
  g_test_add_func ("/io/model/hostile-kernel", test_hostile_kernel);
  g_test_add_func ("/io/model/hostile-graph", test_hostile_graph);
  g_test_add_func ("/io/model/empty", test_empty);
  int status = g_test_run ();
  const char *rm[] = { "rm", "-rf", folder, NULL };
  g_spawn_sync (NULL, (char **) rm, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                NULL);
  g_free (folder);
  return status;
}
