/* SPDX-License-Identifier: MIT
 *
 * test-opened-file.c: parts of a file are read as they were asked for; one that became shorter is an error that says
 * where, one that another took the place of stays what it was, and what is no file is refused. */
#include "base/tiny-opened-file.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"

static void
write_text (const char *path, const char *text)
{
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
assert_reads (const TinyOpenedFile *file, guint64 offset, const char *wanted)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) found
      = tiny_opened_file_read_bytes (file, offset, strlen (wanted), &error);
  g_assert_no_error (error);
  g_assert_cmpstr (g_bytes_get_data (found, NULL), ==, wanted); /* there is a NUL behind it */
}

static void
assert_fails (const TinyOpenedFile *file, guint64 offset, gsize n, const char *why)
{
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_opened_file_read_bytes (file, offset, n, &error));
  g_assert_true (error->domain == TINY_ERROR);
  g_assert_cmpstr (error->message, ==, why);
}

static void
test_parts (void)
{
  g_autoptr (GError) error = NULL;
  write_text ("a", "0123456789");
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new ("a", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (tiny_opened_file_get_path (file), ==, "a");
  g_assert_cmpuint (tiny_opened_file_get_size (file), ==, 10);
  assert_reads (file, 0, "0123456789");
  assert_reads (file, 7, "789");
  assert_reads (file, 10, "");
  assert_fails (file, 0, G_MAXSIZE, "a: no memory for 18446744073709551615 bytes of it");
}

static void
test_shorter (void)
{
  write_text ("b", "0123456789");
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new ("b", NULL);
  g_assert_true (truncate ("b", 6) == 0);
  assert_reads (file, 2, "2345");
  assert_fails (
      file, 4, 6,
      "b: wanted 6 bytes from byte 4 on, found 2: it became shorter while it was read");
  assert_fails (
      file, 8, 1,
      "b: wanted 1 bytes from byte 8 on, found 0: it became shorter while it was read");
}

static void
test_replaced (void)
{
  write_text ("c", "old");
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new ("c", NULL);
  write_text ("d", "new and longer");
  g_assert_true (g_rename ("d", "c") == 0);
  tiny_opened_file_unref (tiny_opened_file_ref (file));
  assert_reads (file, 0, "old");
}

static void
test_refused (void)
{
  static const struct {
    const char *path, *why;
  } rows[] = {
    { "", "“”: No such file or directory" },
    { "nowhere", "nowhere: No such file or directory" },
    { ".", ".: it is a folder" },
    { "pipe", "pipe: it is no regular file" },
  };
  g_assert_true (mkfifo ("pipe", 0600) == 0);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_opened_file_new (rows[i].path, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
    g_assert_cmpstr (error->message, ==, rows[i].why);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_autofree char *folder = g_dir_make_tmp ("tiny-opened-XXXXXX", NULL);
  g_assert_true (chdir (folder) == 0);
  g_test_add_func ("/base/opened-file/parts", test_parts);
  g_test_add_func ("/base/opened-file/shorter", test_shorter);
  g_test_add_func ("/base/opened-file/replaced", test_replaced);
  g_test_add_func ("/base/opened-file/refused", test_refused);
  const int status = g_test_run ();
  for (const char *const *name = (const char *const[]){ "a", "b", "c", "pipe", NULL }; *name;
       name++)
    g_unlink (*name);
  g_assert_true (chdir ("/") == 0);
  g_rmdir (folder);
  return status;
}
