/* SPDX-License-Identifier: MIT
 *
 * tiny-descriptor.c: see tiny-descriptor.h. */
#include "base/tiny-descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void
tiny_file_limit_hold (TinyFileLimit *self)
{
  struct rlimit most;
  sigset_t signal, pending;
  self->is_held = getrlimit (RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY;
  if (!self->is_held)
    return;
  sigemptyset (&signal);
  sigaddset (&signal, SIGXFSZ);
  sigpending (&pending);
  self->was_pending = sigismember (&pending, SIGXFSZ) == 1;
  pthread_sigmask (SIG_BLOCK, &signal, &self->before);
}

void
tiny_file_limit_release (TinyFileLimit *self)
{
  const int reason = errno;
  const struct timespec at_once = { 0, 0 };
  sigset_t signal;
  if (!self->is_held)
    return;
  sigemptyset (&signal);
  sigaddset (&signal, SIGXFSZ);
  if (!self->was_pending)
    sigtimedwait (&signal, NULL, &at_once);
  pthread_sigmask (SIG_SETMASK, &self->before, NULL);
  errno = reason;
}

static gboolean
write_all (int fd, gconstpointer data, gsize n)
{
  for (const guint8 *at = data; n > 0;) {
    const gssize written = write (fd, at, n);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return FALSE;
    at += written;
    n -= (gsize) written;
  }
  return TRUE;
}

gboolean
tiny_write_all (int fd, gconstpointer data, gsize n)
{
  TinyFileLimit limit;
  tiny_file_limit_hold (&limit);
  const gboolean good = write_all (fd, data, n);
  tiny_file_limit_release (&limit);
  return good;
}

gboolean
tiny_read_all (int fd, gpointer data, gsize n)
{
  for (guint8 *at = data; n > 0;) {
    const gssize got = read (fd, at, n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return FALSE;
    at += got;
    n -= (gsize) got;
  }
  return TRUE;
}

/* Ours above all numbers that the program's have, or dup2() would overwrite one with another, or keep the close-on-exec
 * flag of one that has its number already; FALSE with errno. */
static gboolean
move_up (const TinySpawnEnd *ends, guint n, int *out)
{
  int last = 0;
  for (guint i = 0; i < n; i++)
    last = MAX (last, ends[i].to);
  for (guint i = 0; i < n; i++)
    if (ends[i].from >= 0 && (out[i] = fcntl (ends[i].from, F_DUPFD_CLOEXEC, last + 1)) < 0)
      return FALSE;
  return TRUE;
}

static int
spawn_with (const char *program,
            const char *const *argv,
            char *const *environment,
            gboolean is_apart,
            const posix_spawn_file_actions_t *files,
            pid_t *out_pid)
{
  posix_spawnattr_t how;
  sigset_t none, all;
  sigemptyset (&none);
  sigfillset (&all);
  posix_spawnattr_init (&how);
  posix_spawnattr_setpgroup (&how, 0);
  posix_spawnattr_setsigmask (&how, &none);
  posix_spawnattr_setsigdefault (&how, &all);
  posix_spawnattr_setflags (
      &how,
      POSIX_SPAWN_SETSIGMASK | (is_apart ? POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF : 0));
  int failure = posix_spawn (out_pid, program, files, &how, (char *const *) argv,
                             environment != NULL ? environment : environ);
  posix_spawnattr_destroy (&how);
  return failure;
}

int
tiny_spawn (const char *program,
            const char *const *argv,
            char *const *environment,
            gboolean is_apart,
            const TinySpawnEnd *ends,
            guint n_ends,
            pid_t *out_pid)
{
  int moved[TINY_SPAWN_MAX_ENDS] = { -1, -1, -1, -1 };
  g_assert (n_ends <= TINY_SPAWN_MAX_ENDS);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init (&files);
  int failure = move_up (ends, n_ends, moved) ? 0 : errno;
  for (guint i = 0; i < n_ends; i++)
    if (ends[i].from >= 0)
      posix_spawn_file_actions_adddup2 (&files, moved[i], ends[i].to);
    else
      posix_spawn_file_actions_addopen (&files, ends[i].to, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  if (failure == 0)
    failure = spawn_with (program, argv, environment, is_apart, &files, out_pid);
  posix_spawn_file_actions_destroy (&files);
  for (guint i = 0; i < n_ends; i++)
    if (moved[i] >= 0)
      close (moved[i]);
  return failure;
}
