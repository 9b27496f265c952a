/* SPDX-License-Identifier: MIT
 *
 * heap.c: malloc() and its kin in front of those of glibc or of AddressSanitizer. See heap.h. */
#include "heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_RANGES = 64, MAX_MAPS = 1024, MAX_PART = 128, MAX_FRAMES = 24, HELPER_BYTES = 512 };
/* Their requests are those of the code that calls them. */
#define GO_BETWEENS "/libc.so|/libc-|libglib-2.0|libgobject-2.0|libgio-2.0|libasan"

static _Atomic gint64 n_blocks, n_bytes, peak;

/* The code of a module. */
typedef struct {
  guintptr from, to;
  gboolean is_always, is_large, is_between;
} Range;

static struct {
  Range ranges[MAX_RANGES];
  guint n_ranges;
  gsize least;
  guintptr helper;
  _Atomic gint64 left; /* requests up to the first that is refused */
  gint64 last;         /* what is left when no more are */
  gsize n_refused;
  gconstpointer code;
} refusal;

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

/* ---- who asks ---- */
static gboolean
is_among (const char *path, const char *parts)
{
  for (const char *at = parts; at != NULL && *at != 0;) {
    char part[MAX_PART] = { 0 };
    const gsize n = strcspn (at, "|");
    memcpy (part, at, MIN (n, sizeof part - 1));
    if (strstr (path, part) != NULL)
      return TRUE;
    at += n + (at[n] == '|');
  }
  return FALSE;
}

static int
add_module (struct dl_phdr_info *info, G_GNUC_UNUSED size_t size, void *data)
{
  const HeapAskers *askers = data;
  const char *path = info->dlpi_name[0] != 0 ? info->dlpi_name : program_invocation_name;
  const Range kind = { .is_always = is_among (path, askers->always),
                       .is_large = askers->large == NULL || is_among (path, askers->large),
                       .is_between = is_among (path, GO_BETWEENS) };
  for (guint i = 0; i < info->dlpi_phnum && refusal.n_ranges < MAX_RANGES; i++) {
    const ElfW (Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
      continue;
    Range *range = &refusal.ranges[refusal.n_ranges++];
    *range = kind;
    range->from = info->dlpi_addr + segment->p_vaddr;
    range->to = range->from + segment->p_memsz;
  }
  return 0;
}

void
heap_refuse (const HeapAskers *askers, guint nth)
{
  void *frames[1];
  backtrace (frames, 1); /* loads what it needs */
  refusal.last = refusal.left = 0;
  refusal.n_ranges = 0;
  refusal.n_refused = 0;
  refusal.code = NULL;
  refusal.least = askers->least;
  refusal.helper = (guintptr) askers->helper;
  dl_iterate_phdr (add_module, (gpointer) askers);
  refusal.last = 1 - (gint64) MAX (askers->times, 1);
  refusal.left = nth;
}

gsize
heap_stop_refusing (gconstpointer *out_code)
{
  refusal.last = refusal.left = 0;
  if (out_code != NULL)
    *out_code = refusal.code;
  return refusal.n_refused;
}

#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
static const Range *
range_of (gconstpointer code)
{
  for (guint i = 0; i < refusal.n_ranges; i++)
    if ((guintptr) code >= refusal.ranges[i].from && (guintptr) code < refusal.ranges[i].to)
      return &refusal.ranges[i];
  return NULL;
}

/* A list of GLib's whose elements are requests of their own. */
static gboolean
is_list (gconstpointer code)
{
  Dl_info info;
  return dladdr (code, &info) != 0 && info.dli_sname != NULL
         && is_among (info.dli_sname, "g_ptr_array_|g_hash_table_");
}

static gboolean
is_helper (gconstpointer code)
{
  return refusal.helper != 0 && (guintptr) code - refusal.helper < HELPER_BYTES;
}

static gboolean
is_between (gconstpointer code)
{
  const Range *range = range_of (code);
  return is_helper (code) || (range != NULL && range->is_between);
}

/* The code that calls go-betweens down to @code; NULL: a list that grows. */
static gconstpointer
skip_between (gconstpointer code)
{
  static _Thread_local gboolean is_within;
  if (is_within || !is_between (code))
    return code;
  void *frames[MAX_FRAMES];
  is_within = TRUE;
  const guint n = (guint) backtrace (frames, MAX_FRAMES);
  is_within = FALSE;
  guint i = 0;
  while (i < n && frames[i] != code)
    i++;
  for (; i < n && is_between (frames[i]); i++)
    if (is_list (frames[i]))
      return NULL;
  return i < n ? frames[i] : code;
}

/* Called before AddressSanitizer is there. */
#define EARLY __attribute__ ((no_sanitize ("address", "undefined")))

/* TRUE, and errno, for one that is refused. */
EARLY static gboolean
is_refused (gsize size, gconstpointer code)
{
  if (refusal.left <= refusal.last)
    return FALSE;
  if (is_helper (code))
    code = skip_between (code);
  const Range *range = range_of (code);
  gboolean counts = range != NULL && range->is_always;
  if (!counts && refusal.least > 0 && size >= refusal.least) {
    code = skip_between (code);
    range = range_of (code);
    counts = range != NULL && range->is_large;
  }
  if (!counts || atomic_fetch_sub (&refusal.left, 1) > 1)
    return FALSE;
  refusal.n_refused = MAX (size, 1);
  refusal.code = code;
  errno = ENOMEM;
  return TRUE;
}

#define ASKER __builtin_return_address (0)

/* AddressSanitizer takes blocks for functions of libc past this file, and finds leaks itself: nothing is counted. */
#ifdef __SANITIZE_ADDRESS__
#define BELOW(name)    __interceptor_##name
#define SIZE_OF(block) 0
#else
#define BELOW(name)    __libc_##name
#define SIZE_OF(block) ((gint64) malloc_usable_size (block))
#endif
extern void *BELOW (malloc) (size_t size);
extern void *BELOW (calloc) (size_t n, size_t size);
extern void *BELOW (realloc) (void *block, size_t size);
extern void *BELOW (memalign) (size_t alignment, size_t size);
extern void BELOW (free) (void *block);

EARLY static void
count (gint64 blocks, gint64 bytes)
{
#ifndef __SANITIZE_ADDRESS__
  n_blocks += blocks;
  const gint64 now = n_bytes += bytes;
  if (now > peak)
    peak = now;
#endif
}

EARLY static void *
add (void *block)
{
  if (block != NULL)
    count (1, SIZE_OF (block));
  return block;
}

EARLY void *
malloc (size_t size)
{
  return is_refused (size, ASKER) ? NULL : add (BELOW (malloc) (size));
}

EARLY void *
calloc (size_t n, size_t size)
{
  return is_refused (n * size, ASKER) ? NULL : add (BELOW (calloc) (n, size));
}

EARLY void *
realloc (void *block, size_t size)
{
  if (size > 0 && is_refused (size, ASKER))
    return NULL;
  const gint64 old = block != NULL ? SIZE_OF (block) : 0;
  void *moved = BELOW (realloc) (block, size);
  if (moved == NULL && size > 0)
    return NULL;
  if (block != NULL)
    count (-1, -old);
  return add (moved);
}

EARLY void
free (void *block)
{
  if (block != NULL)
    count (-1, -SIZE_OF (block));
  BELOW (free) (block);
}

EARLY void *
memalign (size_t alignment, size_t size)
{
  return is_refused (size, ASKER) ? NULL : add (BELOW (memalign) (alignment, size));
}

EARLY void *
aligned_alloc (size_t alignment, size_t size)
{
  return is_refused (size, ASKER) ? NULL : add (BELOW (memalign) (alignment, size));
}

EARLY int
posix_memalign (void **out, size_t alignment, size_t size)
{
  void *block = is_refused (size, ASKER) ? NULL : add (BELOW (memalign) (alignment, size));
  if (block == NULL)
    return ENOMEM;
  *out = block;
  return 0;
}

/* ---- mappings ---- */
static struct {
  atomic_flag lock;
  gconstpointer at[MAX_MAPS]; /* those without a file */
} maps = { ATOMIC_FLAG_INIT, { NULL } };

/* TRUE: @from was in the table, and is @to now. */
EARLY static gboolean
replace_map (gconstpointer from, gconstpointer to)
{
  guint i = 0;
  while (atomic_flag_test_and_set (&maps.lock))
    ;
  while (i < MAX_MAPS && maps.at[i] != from)
    i++;
  if (i < MAX_MAPS)
    maps.at[i] = to;
  atomic_flag_clear (&maps.lock);
  return i < MAX_MAPS;
}

EARLY void *
mmap (void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
  if ((flags & MAP_ANONYMOUS) != 0 && is_refused (size, ASKER))
    return MAP_FAILED;
  void *map = (void *) syscall (SYS_mmap, at, size, protection, flags, fd, offset);
  if (map != MAP_FAILED && (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_FIXED) == 0
      && replace_map (NULL, map))
    count (1, 0);
  return map;
}

EARLY int
munmap (void *at, size_t size)
{
  if (at != NULL && replace_map (at, NULL))
    count (-1, 0);
  return (int) syscall (SYS_munmap, at, size);
}
#endif
