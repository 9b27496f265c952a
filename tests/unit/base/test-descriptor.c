/* SPDX-License-Identifier: MIT
 *
 * Proves that a program gets the descriptors it is given, whatever their numbers are, and no other, and that what is
 * larger than a pipe is written and read whole. */
#include "base/tiny-descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a shell with @ends writes to @mine, the end that is read here, and its exit status. */
static char *
run (const char *script, const TinySpawnEnd *ends, guint n, int mine, int *status)
{
  const char *argv[] = { "/bin/sh", "-c", script, NULL };
  g_autofree char *text = g_malloc0 (4096);
  pid_t pid;
  g_assert_cmpint (tiny_spawn (argv[0], argv, NULL, TRUE, ends, n, &pid), ==, 0);
  for (guint i = 0; i < n; i++)
    if (ends[i].from > 2)
      close (ends[i].from);
  for (gssize at = 0, got; (got = read (mine, text + at, (gsize) (4095 - at))) > 0; at += got)
    ;
  close (mine);
  g_assert_cmpint (waitpid (pid, status, 0), ==, pid);
  return g_steal_pointer (&text);
}

/* @fd under @number, and nowhere else. */
static int
at_number (int fd, int number)
{
  g_assert_cmpint (fcntl (number, F_GETFD), <, 0);
  g_assert_cmpint (dup3 (fd, number, O_CLOEXEC), ==, number);
  close (fd);
  return number;
}

static void
test_numbers (void)
{
  static const struct {
    int ours[2], theirs[2];
  } cases[]
      = { { { 20, 21 }, { 20, 21 } }, { { 20, 21 }, { 21, 20 } }, { { 20, 21 }, { 1, 20 } } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    int a[2], b[2], status;
    g_assert_cmpint (pipe2 (a, O_CLOEXEC) | pipe2 (b, O_CLOEXEC), ==, 0);
    const TinySpawnEnd ends[] = { { at_number (a[1], cases[i].ours[0]), cases[i].theirs[0] },
                                  { at_number (b[1], cases[i].ours[1]), cases[i].theirs[1] } };
    g_autofree char *script
        = g_strdup_printf ("echo first >/dev/fd/%d; echo second >/dev/fd/%d",
                           cases[i].theirs[0], cases[i].theirs[1]);
    g_autofree char *first = run (script, ends, 2, a[0], &status);
    char second[16] = "";
    g_assert_cmpint (read (b[0], second, sizeof second - 1), ==, 7);
    close (b[0]);
    g_assert_cmpint (status, ==, 0);
    g_assert_cmpstr (first, ==, "first\n");
    g_assert_cmpstr (second, ==, "second\n");
  }
}

/* Nothing to read, nothing else open; what goes to -1 is gone. */
static void
test_rest (void)
{
  int ends[2], other[2], status;
  g_assert_cmpint (pipe2 (ends, O_CLOEXEC) | pipe2 (other, O_CLOEXEC), ==, 0);
  g_assert_cmpint (write (other[1], "ours", 4), ==, 4);
  g_assert_cmpint (dup2 (other[0], 0), ==, 0);
  g_autofree char *script = g_strdup_printf (
      "cat; test /dev/fd/2 -ef /dev/null || echo said; test -e /dev/fd/%d && echo open; exit 3",
      other[1]);
  const TinySpawnEnd given[] = { { ends[1], 1 }, { -1, 2 } };
  g_autofree char *said = run (script, given, 2, ends[0], &status);
  g_assert_cmpstr (said, ==, "");
  g_assert_cmpint (status, ==, 3 << 8);
  close (other[0]);
  close (other[1]);
}

/* What this program blocks and ignores is neither in a new one; signals from 29 on are the C library's own to
 * ignore. */
static void
test_signals (void)
{
  const char *argv[]
      = { "/bin/grep", "-c", "^Sig\\(Blk\\|Ign\\):.*0000000$", "/proc/self/status", NULL };
  int ends[2], status;
  char said[16] = "";
  sigset_t blocked, before;
  pid_t pid;
  g_assert_cmpint (pipe2 (ends, O_CLOEXEC), ==, 0);
  sigemptyset (&blocked);
  sigaddset (&blocked, SIGTERM);
  g_assert_cmpint (sigprocmask (SIG_BLOCK, &blocked, &before), ==, 0);
  signal (SIGUSR1, SIG_IGN);
  const TinySpawnEnd given = { ends[1], 1 };
  g_assert_cmpint (tiny_spawn (argv[0], argv, NULL, TRUE, &given, 1, &pid), ==, 0);
  signal (SIGUSR1, SIG_DFL);
  g_assert_cmpint (sigprocmask (SIG_SETMASK, &before, NULL), ==, 0);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (read (ends[0], said, sizeof said - 1), >, 0);
  g_assert_cmpstr (said, ==, "2\n");
  close (ends[0]);
  close (ends[1]);
}

static void
test_failures (void)
{
  const char *argv[] = { "/nonexistent", NULL };
  const TinySpawnEnd closed = { 900, 1 };
  pid_t pid;
  g_assert_cmpint (tiny_spawn (argv[0], argv, NULL, FALSE, NULL, 0, &pid), ==, ENOENT);
  g_assert_cmpint (tiny_spawn ("/bin/sh", argv, NULL, FALSE, &closed, 1, &pid), ==, EBADF);
}

static gpointer
write_much (gpointer data)
{
  int fd = GPOINTER_TO_INT (data);
  g_autofree guint8 *bytes = g_malloc (1 << 20);
  for (guint i = 0; i < 1 << 20; i++)
    bytes[i] = (guint8) (i * 7 + i / 256);
  gboolean good = tiny_write_all (fd, bytes, 1 << 20);
  close (fd);
  return GINT_TO_POINTER (good);
}

static void
test_whole (void)
{
  int ends[2];
  g_assert_cmpint (pipe2 (ends, O_CLOEXEC), ==, 0);
  GThread *writer = g_thread_new ("writer", write_much, GINT_TO_POINTER (ends[1]));
  g_autofree guint8 *bytes = g_malloc0 (1 << 20);
  guint8 more;
  g_assert_true (tiny_read_all (ends[0], bytes, 1 << 20));
  g_assert_true (GPOINTER_TO_INT (g_thread_join (writer)));
  for (guint i = 0; i < 1 << 20; i++)
    g_assert_cmpint (bytes[i], ==, (guint8) (i * 7 + i / 256));
  g_assert_false (tiny_read_all (ends[0], &more, 1));
  close (ends[0]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/descriptor/numbers", test_numbers);
  g_test_add_func ("/base/descriptor/rest", test_rest);
  g_test_add_func ("/base/descriptor/signals", test_signals);
  g_test_add_func ("/base/descriptor/failures", test_failures);
  g_test_add_func ("/base/descriptor/whole", test_whole);
  return g_test_run ();
}
