/* SPDX-License-Identifier: MIT
 *
 * tiny-fork.h: what a process has to know of fork(), after which it has one thread and locks as others left them. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How many forks lie between this process and the one that loaded the library. What has threads, or is another
 * process's, remembers the number of when it was made. */
guint tiny_fork_count (void);

G_END_DECLS
