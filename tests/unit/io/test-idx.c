/* SPDX-License-Identifier: MIT
 *
 * test-idx.c: good IDX files read back, and each way in which one can be bad gives a FORMAT error
 * with its place. */
#include <glib/gstdio.h>
#include <string.h>

#include "../case-fails.h"
#include "io/tiny-data-set.h"
#include "io/tiny-idx.h"

static char *folder;

static char *
write_file (const char *name, gconstpointer data, gsize n)
{
  char *path = g_build_filename (folder, name, NULL);
  g_assert_true (g_file_set_contents (path, data, (gssize) n, NULL));
  return path;
}

static const guint8 good[] = { 0, 0, 0x08, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6 };
/* Leaves PATH.gz beside PATH. */
static void
pack (const char *path)
{
  const char *arguments[] = { "gzip", "-kf", path, NULL };
  int status;
  g_assert_true (g_spawn_sync (NULL, (char **) arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                               NULL, NULL, &status, NULL));
  g_assert_cmpint (status, ==, 0);
}

static void
check_good (const char *path)
{
  g_auto (TinyIdx) idx = { 0 };
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_idx_load (path, 1 << 20, &idx, &error));
  g_assert_no_error (error);
  g_assert_cmpint (idx.dtype, ==, TINY_DTYPE_U8);
  g_assert_cmpuint (idx.n_dims, ==, 2);
  g_assert_cmpint (idx.shape[0], ==, 2);
  g_assert_cmpint (idx.shape[1], ==, 3);
  g_assert_cmpmem (g_bytes_get_data (idx.data, NULL), g_bytes_get_size (idx.data), good + 12,
                   6);
}

static void
test_plain (void)
{
  g_autofree char *path = write_file ("plain", good, sizeof good);
  check_good (path);
}

static void
test_packed (void)
{
  g_autofree char *path = write_file ("packed", good, sizeof good);
  pack (path);
  g_autofree char *packed = g_strconcat (path, ".gz", NULL);
  check_good (packed);
}

static void
test_byte_order (void)
{
  const guint8 shorts[] = { 0, 0, 0x0B, 1, 0, 0, 0, 2, 0x01, 0x02, 0xFF, 0xFE };
  g_autofree char *path = write_file ("shorts", shorts, sizeof shorts);
  g_auto (TinyIdx) idx = { 0 };
  g_assert_true (tiny_idx_load (path, 1 << 20, &idx, NULL));
  const gint16 *values = g_bytes_get_data (idx.data, NULL);
  g_assert_cmpint (values[0], ==, 0x0102);
  g_assert_cmpint (values[1], ==, -2);
}

static void
check_bad (const char *path, gsize max_bytes, int code, const char *pattern)
{
  TinyIdx idx;
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_idx_load (path, max_bytes, &idx, &error));
  g_assert_error (error, TINY_ERROR, code);
  if (!g_pattern_match_simple (pattern, error->message))
    CASE_FAILS ("message is: %s", error->message);
  g_assert_null (idx.data);
}

static void
check_bad_bytes (gconstpointer data, gsize n, const char *pattern)
{
  g_autofree char *path = write_file ("bad", data, n);
  check_bad (path, 1 << 20, TINY_ERROR_FORMAT, pattern);
}

static void
test_bad (void)
{
  guint8 bytes[sizeof good + 1];
  memcpy (bytes, good, sizeof good);
  check_bad_bytes (good, 0, "*at byte 0: wanted an IDX file, found nothing");
  check_bad_bytes (good, 3, "*truncated: wanted 4 bytes of magic");
  check_bad_bytes (good, 9, "*at byte 9: truncated within the sizes");
  check_bad_bytes (good, 15, "*at byte 15: truncated: wanted 6 bytes of elements, found 3");
  check_bad_bytes ("PNG and more", 12, "*at byte 0: wanted the magic*50 4e 47 20");
  bytes[sizeof good] = 7;
  check_bad_bytes (bytes, sizeof bytes, "*at byte 18: the file goes on*");
  bytes[3] = 9;
  check_bad_bytes (bytes, sizeof good, "*1 to 8 axes*found 00 00 08 09");
  memcpy (bytes, good, sizeof good);
  memset (bytes + 4, 0xFF, 8);
  check_bad_bytes (bytes, sizeof good, "*ask for more than the allowed 1048576 bytes");
  check_bad ("/nowhere/at-all", 1, TINY_ERROR_IO, "/nowhere/at-all: no such file");
  check_bad (folder, 1, TINY_ERROR_IO, "*not a regular file");
}

static void
test_cut_gzip (void)
{
  g_autofree guint8 *random = g_malloc (5000);
  for (guint i = 0; i < 5000; i++)
    random[i] = (guint8) (i * i * 31 + i * 7);
  memcpy (random, (guint8[]){ 0, 0, 8, 1, 0, 0, 0x13, 0x80 }, 8);
  g_autofree char *path = write_file ("cut", random, 5000);
  pack (path);
  g_autofree char *packed = g_strconcat (path, ".gz", NULL), *data = NULL;
  gsize n;
  g_assert_true (g_file_get_contents (packed, &data, &n, NULL));
  g_autofree char *cut = write_file ("cut2.gz", data, n / 2);
  check_bad (cut, 1 << 20, TINY_ERROR_FORMAT, "*truncated*");
  data[n / 2] ^= 0x55;
  data[n / 2 + 1] ^= 0x33;
  g_autofree char *damaged = write_file ("damaged.gz", data, n);
  TinyIdx idx;
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_idx_load (damaged, 1 << 20, &idx, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
}

static void
test_missing_set (void)
{
  TinyDataSet set;
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_data_set_load ("fashion-mnist", "/nowhere", &set, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
  g_assert_nonnull (strstr (error->message, "apt install dataset-fashion-mnist"));
  g_clear_error (&error);
  g_assert_false (tiny_data_set_load ("nothing", NULL, &set, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

static void
test_fitting_set (void)
{
  const guint8 images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 9, 8 };
  guint8 labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 0, 6 };
  TinyDataSet set;
  g_autoptr (GError) error = NULL;
  g_free (write_file ("train-images-idx3-ubyte", images, sizeof images));
  g_free (write_file ("t10k-images-idx3-ubyte", images, sizeof images));
  g_free (write_file ("train-labels-idx1-ubyte", labels, sizeof labels));
  g_free (write_file ("t10k-labels-idx1-ubyte", labels, sizeof labels));
  g_assert_true (tiny_data_set_load ("fashion-mnist", folder, &set, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (set.n_classes, ==, 7);
  tiny_data_set_clear (&set);
  labels[7] = 1;
  g_free (write_file ("t10k-labels-idx1-ubyte", labels, sizeof labels - 1));
  g_assert_false (tiny_data_set_load ("fashion-mnist", folder, &set, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
  g_assert_nonnull (strstr (error->message, "do not fit each other"));
}

static void
test_installed_set (void)
{
  g_auto (TinyDataSet) set = { 0 };
  g_autoptr (GError) error = NULL;
  if (!tiny_data_set_load ("fashion-mnist", NULL, &set, &error)) {
    g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
    g_test_skip (error->message);
    return;
  }
  g_assert_cmpint (set.images.shape[0], ==, 60000);
  g_assert_cmpint (set.test_images.shape[0], ==, 10000);
  g_assert_cmpint (set.images.shape[2], ==, 28);
  g_assert_cmpuint (set.n_classes, ==, 10);
}

static void
remove_folder (void)
{
  g_autoptr (GDir) directory = g_dir_open (folder, 0, NULL);
  const char *name;
  while ((name = g_dir_read_name (directory)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_unlink (path);
  }
  g_rmdir (folder);
  g_free (folder);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("tiny-idx-XXXXXX", NULL);
  g_test_add_func ("/io/idx/plain", test_plain);
  g_test_add_func ("/io/idx/packed", test_packed);
  g_test_add_func ("/io/idx/byte-order", test_byte_order);
  g_test_add_func ("/io/idx/bad", test_bad);
  g_test_add_func ("/io/idx/cut-gzip", test_cut_gzip);
  g_test_add_func ("/io/data-set/missing", test_missing_set);
  g_test_add_func ("/io/data-set/fitting", test_fitting_set);
  g_test_add_func ("/io/data-set/installed", test_installed_set);
  int result = g_test_run ();
  remove_folder ();
  return result;
}
