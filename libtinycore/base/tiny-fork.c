/* SPDX-License-Identifier: MIT
 *
 * tiny-fork.c: counts forks in the child. */
#include "base/tiny-fork.h"

#include <pthread.h>

static guint n_forks; /* written where there is one thread */

static void
count_fork (void)
{
  n_forks++;
}

guint
tiny_fork_count (void)
{
  static gsize done;
  if (g_once_init_enter (&done)) {
    pthread_atfork (NULL, NULL, count_fork);
    g_once_init_leave (&done, 1);
  }
  return n_forks;
}
