/* SPDX-License-Identifier: MIT
 *
 * test-state-file.c: modules saved and loaded, every dtype and metadata, and files that are damaged or
 * cannot be written. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tiny.h>

#include "../case-fails.h"
#include "../default-device.h"

static char *folder;

static TinyModule *
net_new (guint64 seed)
{
  tiny_tensor_manual_seed (seed);
  TinyModule *net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_linear_new (3, 4, TRUE));
  tiny_sequential_append (net, tiny_batch_norm2d_new (4));
  return net;
}

static void
test_module (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL, wrong = NULL;
  g_autofree char *path = g_build_filename (folder, "net.safetensors", NULL);
  g_autoptr (TinyModule) net = net_new (1), other = net_new (2);
  g_autoptr (GHashTable) texts = g_hash_table_new (g_str_hash, g_str_equal);
  g_hash_table_insert (texts, (gpointer) "epoch", (gpointer) "“7”");
  g_assert_true (tiny_module_save (net, path, texts, &error));
  g_assert_true (tiny_module_load (other, path, TRUE, &error));
  g_assert_no_error (error);
  g_autoptr (GBytes) a
      = tiny_tensor_get_data (tiny_module_get_parameter (net, "0.weight"), NULL);
  g_autoptr (GBytes) b
      = tiny_tensor_get_data (tiny_module_get_parameter (other, "0.weight"), NULL);
  g_assert_true (g_bytes_equal (a, b));
  g_autoptr (GHashTable) found = NULL;
  g_autoptr (GHashTable) state = tiny_state_load (path, NULL, &found, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_hash_table_size (state), ==, 7);
  g_assert_cmpstr (g_hash_table_lookup (found, "epoch"), ==, "“7”");
  g_autoptr (TinyModule) small = tiny_linear_new (3, 4, TRUE);
  g_assert_false (tiny_module_load (small, path, TRUE, &wrong));
  g_assert_nonnull (
      strstr (wrong->message, "net.safetensors: load_state_dict: missing “bias”"));
}

static void
test_dtypes (void)
{
  if (skips_without_device ())
    return;
  g_autofree char *path = g_build_filename (folder, "all.safetensors", NULL);
  g_autoptr (GHashTable) state
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  guint8 bytes[24];
  for (guint i = 0; i < sizeof bytes; i++)
    bytes[i] = (guint8) (i % 2);
  static const char *const names[]
      = { "bool", "i8",  "u8",  "i16",    "u16",    "i32",  "u32", "i64",
          "u64",  "f16", "f32", "f8e4m3", "f8e5m2", "bf16", "f64" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    TinyDType dtype;
    g_assert_true (tiny_dtype_from_string (names[i], &dtype));
    TinyTensor *tensor = tiny_tensor_new_from_data (NULL, dtype, (gint64[]){ 3 }, 1, bytes,
                                                    3 * tiny_dtype_get_n_bytes (dtype));
    g_hash_table_insert (state, g_strdup (names[i]), g_object_ref_sink (tensor));
  }
  TinyTensor *none = tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ 2, 0 }, 2);
  g_hash_table_insert (state, g_strdup ("none"), g_object_ref_sink (none));
  g_autoptr (GError) error = NULL;
  tiny_state_save (state, path, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (GHashTable) again = tiny_state_load (path, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    TinyTensor *a = g_hash_table_lookup (state, names[i]),
               *b = g_hash_table_lookup (again, names[i]);
    g_assert_cmpint (tiny_tensor_get_dtype (a), ==, tiny_tensor_get_dtype (b));
    g_autoptr (GBytes) data = tiny_tensor_get_data (b, NULL);
    g_assert_cmpmem (g_bytes_get_data (data, NULL), g_bytes_get_size (data), bytes,
                     3 * tiny_dtype_get_n_bytes (tiny_tensor_get_dtype (a)));
  }
  g_assert_cmpuint (tiny_tensor_get_n_dims (g_hash_table_lookup (again, "none")), ==, 2);
}

/* Any byte changed, and every cut, is an error or other numbers, and never more. */
static void
test_damaged (void)
{
  if (skips_without_device ())
    return;
  g_autofree char *path = g_build_filename (folder, "small.safetensors", NULL);
  g_autofree char *bad = g_build_filename (folder, "bad.safetensors", NULL);
  g_autoptr (TinyModule) net = tiny_linear_new (2, 2, TRUE);
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  gsize length;
  g_assert_true (tiny_module_save (net, path, NULL, &error));
  g_assert_true (g_file_get_contents (path, &contents, &length, &error));
  guint n_errors = 0;
  for (gsize i = 0; i < length; i++) {
    g_autoptr (GError) wrong = NULL;
    char kept = contents[i];
    contents[i] = (char) g_test_rand_int ();
    gsize n = i % 2 ? length : i;
    g_assert_true (g_file_set_contents (bad, contents, (gssize) n, NULL));
    contents[i] = kept;
    if (!tiny_module_load (net, bad, TRUE, &wrong)) {
      g_assert_nonnull (strstr (wrong->message, "bad.safetensors"));
      n_errors++;
    }
  }
  g_assert_cmpuint (n_errors, >, length / 2);
}

/* A header and some bytes as a file. */
static void
write_header (const char *path, const char *header, gsize n_data)
{
  g_autoptr (GByteArray) file = g_byte_array_new ();
  guint64 length = GUINT64_TO_LE ((guint64) strlen (header));
  g_byte_array_append (file, (const guint8 *) &length, sizeof length);
  g_byte_array_append (file, (const guint8 *) header, (guint) strlen (header));
  g_byte_array_set_size (file, file->len + (guint) n_data);
  g_assert_true (g_file_set_contents (path, (const char *) file->data, file->len, NULL));
}

/* Arrays lie one after the other from the first byte to the last; nothing else was said of them. */
static void
test_hostile (void)
{
#define ARRAY(name, begin, end)                                                                \
  "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" #begin "," #end "]}"
  static const struct {
    const char *header;
    gsize n_data;
    const char *error; /* NULL: it is good */
  } rows[] = {
    { "{" ARRAY ("a", 0, 8) "," ARRAY ("b", 8, 16) "}", 16, NULL },
    { "{" ARRAY ("a", 0, 8) "}", 9, "9 bytes of data" },
    { "{" ARRAY ("a", 0, 8) "," ARRAY ("b", 4, 12) "}", 12,
      "“b”: its data begins at byte 4, before byte 8" },
    { "{" ARRAY ("a", 0, 8) "," ARRAY ("b", 12, 20) "}", 20,
      "“b”: its data begins at byte 12, beyond byte 8" },
    { "{" ARRAY ("a", 0, 8) "," ARRAY ("a", 8, 16) "}", 16, "“a” is there twice" },
    { "{" ARRAY ("a", 0, 8) "," ARRAY ("a", 0, 8) "}", 8, "“a” is there twice" },
    { "{" ARRAY ("a", 8, 0) "}", 8, "from 8 to 0" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4,
      "“data_offsets” are 3 numbers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[NaN],\"data_offsets\":[0,4]}}", 4, "not JSON" },
  };
#undef ARRAY
  if (skips_without_device ())
    return;
  g_autofree char *path = g_build_filename (folder, "hostile.safetensors", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GError) error = NULL;
    write_header (path, rows[i].header, rows[i].n_data);
    g_autoptr (GHashTable) state = tiny_state_load (path, NULL, NULL, &error);
    g_assert_cmpint (state == NULL, ==, rows[i].error != NULL);
    if (state == NULL && strstr (error->message, rows[i].error) == NULL)
      CASE_FAILS ("“%s” lacks “%s”", error->message, rows[i].error);
  }
}

/* What is no tensor has no place in a state, and no file that of a pipe. */
static void
test_no_tensor (void)
{
  if (skips_without_device ())
    return;
  g_autofree char *path = g_build_filename (folder, "pipe.safetensors", NULL);
  g_autoptr (TinyModule) net = tiny_linear_new (2, 2, FALSE);
  g_autoptr (GHashTable) state = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GError) save = NULL, load = NULL, kind = NULL, wait = NULL;
  g_hash_table_insert (state, (gpointer) "weight", NULL);
  g_assert_false (tiny_state_save (state, path, NULL, &save));
  g_assert_nonnull (strstr (save->message, "“weight” is no tensor"));
  g_assert_false (tiny_module_load_state_dict (net, state, TRUE, &load));
  g_assert_nonnull (strstr (load->message, "no tensor “weight”"));
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_assert_false (tiny_module_save (net, path, NULL, &kind));
  g_assert_error (kind, TINY_ERROR, TINY_ERROR_IO);
  g_assert_null (tiny_state_load (path, NULL, NULL, &wait));
  g_assert_error (wait, TINY_ERROR, TINY_ERROR_IO);
}

static void
test_cannot_write (void)
{
  if (skips_without_device ())
    return;
  g_autofree char *absent = g_build_filename (folder, "absent", "net.safetensors", NULL);
  g_autofree char *path = g_build_filename (folder, "kept.safetensors", NULL);
  g_autoptr (TinyModule) net = net_new (1);
  g_autoptr (GError) error = NULL, wrong = NULL;
  g_assert_false (tiny_module_save (net, absent, NULL, &wrong));
  g_assert_error (wrong, TINY_ERROR, TINY_ERROR_IO);
  g_clear_error (&wrong);
  g_assert_true (tiny_module_save (net, path, NULL, &error));
  /* What fails leaves the file that was there, and nothing beside it. */
  g_autoptr (GHashTable) state = tiny_module_get_state_dict (net);
  g_hash_table_insert (state, g_strdup ("__metadata__"),
                       g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, NULL, 0)));
  g_assert_false (tiny_state_save (state, path, NULL, &wrong));
  g_assert_error (wrong, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&wrong);
  g_hash_table_insert (
      state, g_strdup ("__metadata__"),
      g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ -1 }, 1)));
  g_assert_false (tiny_state_save (state, path, NULL, &wrong));
  g_assert_true (tiny_module_load (net, path, TRUE, &error));
  g_assert_no_error (error);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("tiny-state-XXXXXX", NULL);
  g_test_add_func ("/state-file/module", test_module);
  g_test_add_func ("/state-file/dtypes", test_dtypes);
  g_test_add_func ("/state-file/damaged", test_damaged);
  g_test_add_func ("/state-file/hostile", test_hostile);
  g_test_add_func ("/state-file/no-tensor", test_no_tensor);
  g_test_add_func ("/state-file/cannot-write", test_cannot_write);
  int result = g_test_run ();
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_assert_true (g_str_has_suffix (name, ".safetensors"));
    g_unlink (path);
  }
  g_rmdir (folder);
  g_free (folder);
  return result;
}
