/* SPDX-License-Identifier: MIT
 *
 * test-whole-file.c: a file replaces what a link leads to and keeps its permissions, what is no file is refused or
 * written to, and nothing is left of what was not finished. */
#include "base/tiny-whole-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-error.h"

static char *folder;

static void
assert_holds (const char *name, const char *wanted, guint mode)
{
  struct stat info;
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents (name, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, wanted);
  g_assert_true (stat (name, &info) == 0);
  g_assert_cmphex (info.st_mode & 0777, ==, mode);
}

static guint
count_files (void)
{
  guint n = 0;
  g_autoptr (GDir) dir = g_dir_open (".", 0, NULL);
  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
assert_refused (const char *path, const char *why)
{
  g_autoptr (GError) error = NULL;
  const guint n = count_files ();
  g_assert_false (tiny_whole_file_write (path, "new", -1, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
  g_assert_nonnull (strstr (error->message, why));
  g_assert_cmpuint (count_files (), ==, n);
}

static void
test_links (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *absolute = g_build_filename (folder, "hop", NULL);
  g_assert_true (g_file_set_contents ("real", "old", -1, NULL) && chmod ("real", 0604) == 0);
  g_assert_true (symlink ("real", "hop") == 0 && symlink (absolute, "link") == 0);
  g_assert_true (symlink ("fresh", "dangling") == 0 && symlink ("loop", "loop") == 0);
  g_assert_true (tiny_whole_file_write ("link", "new", -1, &error));
  g_assert_no_error (error);
  assert_holds ("real", "new", 0604);
  g_assert_true (g_file_test ("link", G_FILE_TEST_IS_SYMLINK));
  g_assert_true (g_file_test ("hop", G_FILE_TEST_IS_SYMLINK));
  const mode_t mask = umask (027);
  g_assert_true (tiny_whole_file_write ("dangling", "four", 4, &error));
  umask (mask);
  assert_holds ("fresh", "four", 0640);
  g_assert_true (g_file_test ("dangling", G_FILE_TEST_IS_SYMLINK));
  assert_refused ("loop", "loop: ");
}

static void
test_refused (void)
{
  g_assert_true (mkfifo ("pipe", 0600) == 0 && g_mkdir ("inner", 0700) == 0);
  assert_refused ("pipe", "pipe: it is no regular file");
  assert_refused ("inner", "inner: it is a folder");
  assert_refused ("", "“”: ");
  assert_refused ("no/such/folder", "no/such/folder: it cannot be made: ");
  g_assert_false (g_file_test ("pipe", G_FILE_TEST_IS_REGULAR));
}

static void
test_unfinished (void)
{
  TinyWholeFile file;
  g_assert_true (g_file_set_contents ("kept", "old", -1, NULL) && chmod ("kept", 0600) == 0);
  const guint n = count_files ();
  g_assert_true (tiny_whole_file_open (&file, "kept", NULL));
  g_assert_cmpint (fputs ("half", file.file), >=, 0);
  g_assert_cmpint (fflush (file.file), ==, 0);
  const int unnamed = open (".", O_TMPFILE | O_RDWR, 0600);
  if (unnamed >= 0) { /* nothing would be left of it if this process ended now */
    g_assert_cmpuint (count_files (), ==, n);
    close (unnamed);
  }
  g_assert_false (tiny_whole_file_close (&file, FALSE, NULL));
  assert_holds ("kept", "old", 0600);
  g_assert_cmpuint (count_files (), ==, n);
}

/* A report goes into a pipe, which stays one, and is a file elsewhere. */
static void
test_report (void)
{
  g_autoptr (GError) error = NULL;
  char text[8] = "";
  g_assert_true (mkfifo ("reader", 0600) == 0);
  const int fd = open ("reader", O_RDWR | O_CLOEXEC);
  g_assert_true (tiny_whole_file_report ("reader", "said", -1, &error));
  g_assert_no_error (error);
  g_assert_cmpint (read (fd, text, sizeof text), ==, 4);
  g_assert_cmpstr (text, ==, "said");
  close (fd);
  const int kept = dup (STDOUT_FILENO),
            file = open ("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  fflush (stdout);
  g_assert_true (dup2 (file, STDOUT_FILENO) >= 0);
  g_assert_cmpint (printf ("before "), >, 0);
  const gboolean good = tiny_whole_file_report ("/dev/stdout", "said", -1, &error);
  g_assert_true (dup2 (kept, STDOUT_FILENO) >= 0);
  g_assert_true (good);
  assert_holds ("out", "before said", 0644);
  close (kept);
  close (file);
  g_assert_true (tiny_whole_file_report ("report", "said", -1, &error));
  assert_holds ("report", "said", 0644);
}

static void
assert_not_found (const char *path, int reason)
{
  gsize n;
  g_assert_null (tiny_whole_file_find (path, 16, &n));
  g_assert_cmpint (errno, ==, reason);
}

/* A file of the library's own is found as it was kept, and nothing that somebody else may have put there. */
static void
test_kept (void)
{
  gsize n;
  const guint before = count_files ();
  g_assert_true (tiny_whole_file_keep ("kept-1", "head", 4, "\0tail", 5));
  assert_holds ("kept-1", "head", 0600); /* up to the NUL */
  g_autofree char *found = tiny_whole_file_find ("kept-1", 16, &n);
  g_assert_cmpuint (n, ==, 9);
  g_assert_cmpint (memcmp (found, "head\0tail", 10), ==, 0);
  g_assert_true (symlink ("kept-1", "kept-2") == 0 && mkfifo ("kept-3", 0600) == 0);
  g_assert_true (g_mkdir ("kept-4", 0700) == 0);
  assert_not_found ("kept-2", EPERM);
  assert_not_found ("kept-3", EPERM);
  assert_not_found ("kept-4", EPERM);
  assert_not_found ("kept-5", ENOENT);
  g_assert_null (tiny_whole_file_find ("kept-1", 8, &n));
  g_assert_cmpint (errno, ==, EFBIG);
  for (guint i = 0; i < 2; i++) {
    g_assert_cmpint (chmod ("kept-1", i == 0 ? 0620 : 0602), ==, 0);
    assert_not_found ("kept-1", EPERM);
  }
  if (geteuid () == 0) { /* only the superuser gives files away */
    g_assert_true (chmod ("kept-1", 0600) == 0 && chown ("kept-1", 65534, 65534) == 0);
    assert_not_found ("kept-1", EPERM);
  }
  for (guint i = 1; i <= 3; i++) {
    g_autofree char *path = g_strdup_printf ("kept-%u", i);
    g_assert_true (tiny_whole_file_keep (path, NULL, 0, "new", 3));
    assert_holds (path, "new", 0600);
  }
  g_assert_false (tiny_whole_file_keep ("kept-4", NULL, 0, "new", 3));
  g_assert_true (tiny_whole_file_keep ("kept-4/inner/file", NULL, 0, "new", 3));
  assert_holds ("kept-4/inner/file", "new", 0600);
  g_assert_true (g_unlink ("kept-4/inner/file") == 0 && g_rmdir ("kept-4/inner") == 0);
  g_assert_cmpuint (count_files (), ==, before + 4);
}

/* In a process of its own, in which a file has 4096 bytes at most and the signal for that ends the process. */
static int
write_beyond (void)
{
  enum { MOST = 4096, N = 3 * MOST };
  const struct rlimit most = { MOST, MOST };
  static char data[N];
  GError *error = NULL;
  sigset_t pending;
  signal (SIGXFSZ, SIG_DFL);
  if (setrlimit (RLIMIT_FSIZE, &most) != 0)
    return 2;
  if (tiny_whole_file_write ("beyond", data, N, &error) || error->code != TINY_ERROR_IO
      || strstr (error->message, g_strerror (EFBIG)) == NULL)
    return 3;
  if (tiny_whole_file_keep ("beyond", NULL, 0, data, N) || errno != EFBIG)
    return 4;
  if (!tiny_whole_file_write ("within", data, MOST, NULL))
    return 5;
  const int fd = open ("within", O_WRONLY | O_APPEND | O_CLOEXEC);
  if (tiny_write_all (fd, "x", 1) || errno != EFBIG)
    return 6;
  sigpending (&pending);
  if (sigismember (&pending, SIGXFSZ) || pthread_sigmask (SIG_BLOCK, NULL, &pending) != 0
      || sigismember (&pending, SIGXFSZ))
    return 7;
  return g_file_test ("beyond", G_FILE_TEST_EXISTS) ? 8 : 0;
}

static void
test_limit (void)
{
  int status;
  const guint before = count_files ();
  const pid_t child = fork ();
  if (child == 0)
    _exit (write_beyond ());
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
  g_assert_cmpuint (count_files (), ==, before + 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  umask (022);
  g_autoptr (GError) error = NULL;
  folder = g_dir_make_tmp ("whole-file-XXXXXX", &error);
  g_assert_no_error (error);
  g_assert_true (chdir (folder) == 0);
  g_test_add_func ("/base/whole-file/links", test_links);
  g_test_add_func ("/base/whole-file/refused", test_refused);
  g_test_add_func ("/base/whole-file/unfinished", test_unfinished);
  g_test_add_func ("/base/whole-file/report", test_report);
  g_test_add_func ("/base/whole-file/kept", test_kept);
  g_test_add_func ("/base/whole-file/limit", test_limit);
  const int failed = g_test_run ();
  g_autoptr (GDir) dir = g_dir_open (".", 0, NULL);
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;)
    g_remove (name);
  g_assert_true (g_rmdir (folder) == 0);
  g_free (folder);
  return failed;
}
