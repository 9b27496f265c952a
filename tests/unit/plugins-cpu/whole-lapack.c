/* SPDX-License-Identifier: MIT
 *
 * whole-lapack.c: a library with all symbols that the CPU backend wants of a LAPACK, and OpenMP's. None computes anything:
 * the largest number of threads that a call may use is noted. With WHOLE_LAPACK_IS_WIDE set it has integers of 64 bits.
 * As OpenBLAS does, it takes the processor for what OPENBLAS_CORETYPE says while it is opened. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void omp_set_num_threads (int n);
int omp_get_max_threads (void);
void ilaver_ (void *major, void *minor, void *patch);
char *openblas_get_corename (void);
extern _Atomic int whole_lapack_threads;

static char core[32] = "Prescott";

__attribute__ ((constructor)) static void
choose_core (void)
{
  const char *wanted = getenv ("OPENBLAS_CORETYPE");
  if (wanted != NULL && strlen (wanted) < sizeof core)
    strcpy (core, wanted);
}

char *
openblas_get_corename (void)
{
  return core;
}

_Atomic int whole_lapack_threads;
static _Thread_local int n_threads = 7;

void
omp_set_num_threads (int n)
{
  n_threads = n;
}

int
omp_get_max_threads (void)
{
  return n_threads;
}

static void
note_threads (void)
{
  int most = whole_lapack_threads;
  while (most < n_threads
         && !atomic_compare_exchange_weak (&whole_lapack_threads, &most, n_threads))
    ;
}

#define LAPACK_SYMBOL(name, params)                                                            \
  void s##name##_ (void);                                                                      \
  void d##name##_ (void);                                                                      \
  void s##name##_ (void) { note_threads (); }                                                  \
  void d##name##_ (void) { note_threads (); }
#include "cpu-lapack.def"

void
ilaver_ (void *major, void *minor, void *patch)
{
  void *const parts[] = { major, minor, patch };
  for (int i = 0; i < 3; i++)
    if (getenv ("WHOLE_LAPACK_IS_WIDE") != NULL)
      *(int64_t *) parts[i] = 3;
    else
      *(int32_t *) parts[i] = 3;
}
