/* SPDX-License-Identifier: MIT
 *
 * tiny-descriptor.h: all of what is written to a file descriptor or read from it, and programs that are given some. */
#pragma once

#include <glib.h>
#include <signal.h>
#include <sys/types.h>

G_BEGIN_DECLS

/* Between both a write of this thread that passes the limit of files' sizes (RLIMIT_FSIZE) fails with EFBIG, and no
 * SIGXFSZ ends the program. errno stays. */
typedef struct {
  gboolean is_held, was_pending;
  sigset_t before;
} TinyFileLimit;
void tiny_file_limit_hold (TinyFileLimit *self);
void tiny_file_limit_release (TinyFileLimit *self);

/* FALSE with errno: not all of it, EFBIG where the limit of files' sizes is in the way. */
gboolean tiny_write_all (int fd, gconstpointer data, gsize n);
/* FALSE: it ended before. */
gboolean tiny_read_all (int fd, gpointer data, gsize n);

/* Which of our descriptors the program has under which number. */
typedef struct {
  int from; /* -1: what is written there is thrown away */
  int to;
} TinySpawnEnd;

enum { TINY_SPAWN_MAX_ENDS = 4 };

/* Starts @program with the ends given, of which all others are closed on exec, nothing to read at 0, and no signal
 * blocked: 0, or an errno. @environment: (nullable): ours. @is_apart: in a process group of its own, with signals as
 * a new program has them. Any number may be in any end: none of them overwrites another one. */
int tiny_spawn (const char *program,
                const char *const *argv,
                char *const *environment,
                gboolean is_apart,
                const TinySpawnEnd *ends,
                guint n_ends,
                pid_t *out_pid);

G_END_DECLS
