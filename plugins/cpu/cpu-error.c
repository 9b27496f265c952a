/* SPDX-License-Identifier: MIT
 *
 * cpu-error.c: filling the caller's TinyPluginError, and the clock.
 *
 * The caller's struct may be shorter than ours when it was built against an older header: nothing
 * is written beyond its struct_size. A NULL error is allowed everywhere. */
#include "cpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

TinyStatus
cpu_fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
{
  if (error == NULL || error->struct_size < sizeof *error)
    return status;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->text, sizeof error->text, format, arguments);
  va_end (arguments);
  error->hint[0] = '\0';
  error->vendor_code = 0;
  return status;
}

void
cpu_hint (TinyPluginError *error, const char *format, ...)
{
  if (error == NULL || error->struct_size < sizeof *error)
    return;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->hint, sizeof error->hint, format, arguments);
  va_end (arguments);
}

uint64_t
cpu_now_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * UINT64_C (1000000000) + (uint64_t) now.tv_nsec;
}
