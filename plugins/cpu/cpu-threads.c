/* SPDX-License-Identifier: MIT
 *
 * cpu-threads.c: how many threads there are and on which processors they run.
 *
 * TINY_THREADS counts the caller. TINY_AFFINITY is a list of processors as the kernel writes them,
 * "0-3,8": worker n is bound to the n-th of the list, from 0 and round again, and place 0 is left to
 * the thread that submits, which is the program's own and is not bound. */
#include "cpu.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a number from *@text and moves it on; false where there is none up to @most. */
static bool
read_number (const char **text, long most, long *out)
{
  char *end;
  if (**text < '0' || **text > '9')
    return false;
  errno = 0;
  *out = strtol (*text, &end, 10);
  *text = end;
  return errno == 0 && *out <= most;
}

static const char *
get_text (const char *name)
{
  const char *text = getenv (name);
  return text != NULL && *text != '\0' ? text : NULL;
}

/* The processors this process may use. */
static unsigned
count_allowed (void)
{
  cpu_set_t allowed;
  CPU_ZERO (&allowed);
  if (sched_getaffinity (0, sizeof allowed, &allowed) == 0 && CPU_COUNT (&allowed) > 0)
    return (unsigned) CPU_COUNT (&allowed);
  long online = sysconf (_SC_NPROCESSORS_ONLN);
  return online > 0 ? (unsigned) online : 1;
}

static TinyStatus
read_affinity (const char *text, CpuThreads *out, TinyPluginError *error)
{
  for (const char *p = text; out->n_processors == 0 || *p != '\0';) {
    long first, last;
    if ((out->n_processors > 0 && *p++ != ',') || !read_number (&p, CPU_SETSIZE - 1, &first))
      return tiny_fail (error, TINY_STATUS_INVALID,
                        "TINY_AFFINITY=%s: a list of processors such as 0-3,8 is wanted", text);
    last = first;
    if (*p == '-' && (p++, !read_number (&p, CPU_SETSIZE - 1, &last) || last < first))
      return tiny_fail (error, TINY_STATUS_INVALID,
                        "TINY_AFFINITY=%s: a range is FIRST-LAST, such as 0-3", text);
    for (long i = first; i <= last; i++) {
      if (out->n_processors == CPU_MAX_THREADS)
        return tiny_fail (error, TINY_STATUS_INVALID, "TINY_AFFINITY: more than %d processors",
                          CPU_MAX_THREADS);
      out->processors[out->n_processors++] = (uint16_t) i;
    }
  }
  return TINY_STATUS_OK;
}

TinyStatus
cpu_threads_read (CpuThreads *out, TinyPluginError *error)
{
  const char *threads = get_text ("TINY_THREADS"), *affinity = get_text ("TINY_AFFINITY");
  *out = (CpuThreads){ .n_threads = count_allowed () };
  if (affinity != NULL) {
    TinyStatus status = read_affinity (affinity, out, error);
    if (status != TINY_STATUS_OK)
      return status;
    out->n_threads = out->n_processors;
  }
  long wanted = 0;
  if (threads == NULL || !read_number (&threads, LONG_MAX, &wanted) || *threads != '\0')
    wanted = 0; /* a number that is none counts as unset, as everywhere */
  if (wanted > 0)
    out->n_threads = (unsigned) (wanted < CPU_MAX_THREADS ? wanted : CPU_MAX_THREADS);
  return TINY_STATUS_OK;
}

unsigned
cpu_n_threads (void)
{
  CpuThreads threads;
  return cpu_threads_read (&threads, NULL) == TINY_STATUS_OK ? threads.n_threads : 1;
}
