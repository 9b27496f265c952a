/* SPDX-License-Identifier: MIT
 *
 * heap.c: malloc() and its kin in front of glibc's, with a count of blocks and bytes. */
#include "fuzz.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic gint64 n_blocks, n_bytes, peak;

gint64
heap_get_n_blocks (void)
{
  return n_blocks;
}

gint64
heap_get_n_bytes (void)
{
  return n_bytes;
}

gint64
heap_get_peak (void)
{
  return peak;
}

void
heap_reset_peak (void)
{
  peak = n_bytes;
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc (size_t size);
extern void *__libc_calloc (size_t n, size_t size);
extern void *__libc_realloc (void *block, size_t size);
extern void *__libc_memalign (size_t alignment, size_t size);
extern void __libc_free (void *block);

static void *
add (void *block)
{
  if (block == NULL)
    return NULL;
  n_blocks++;
  const gint64 now = n_bytes += (gint64) malloc_usable_size (block);
  if (now > peak)
    peak = now;
  return block;
}

static void
drop (void *block)
{
  if (block == NULL)
    return;
  n_blocks--;
  n_bytes -= (gint64) malloc_usable_size (block);
}

void *
malloc (size_t size)
{
  return add (__libc_malloc (size));
}

void *
calloc (size_t n, size_t size)
{
  return add (__libc_calloc (n, size));
}

void *
realloc (void *block, size_t size)
{
  const gint64 old = block != NULL ? (gint64) malloc_usable_size (block) : 0;
  void *moved = __libc_realloc (block, size);
  if (moved == NULL && size > 0)
    return NULL;
  if (block != NULL) {
    n_blocks--;
    n_bytes -= old;
  }
  return add (moved);
}

void
free (void *block)
{
  drop (block);
  __libc_free (block);
}

void *
memalign (size_t alignment, size_t size)
{
  return add (__libc_memalign (alignment, size));
}

void *
aligned_alloc (size_t alignment, size_t size)
{
  return memalign (alignment, size);
}

int
posix_memalign (void **out, size_t alignment, size_t size)
{
  void *block = memalign (alignment, size);
  if (block == NULL)
    return ENOMEM;
  *out = block;
  return 0;
}
#endif
