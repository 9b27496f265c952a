/* SPDX-License-Identifier: MIT
 *
 * ptx-memory.c: the device's address space: ranges between guards, found by a table of pages.
 *
 * Each range begins on a page of 64 KiB and has at least one page behind it that is in none. No address is used twice,
 * so that a pointer to what was freed is noticed. Readers take no lock: a page's entry is written before anybody has the
 * address, and one of a range that was given back names the one range that stands for all of those. */
#include "ptx.h"
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BITS = 16, N_PAGES = 1 << 25, FIRST_PAGE = 16, POISON = 0xa5 };
#define BASE ((guint64) 0x7100000000)

typedef struct {
  guint64 start, n_bytes;
  guint8 *bytes; /* NULL: given back */
} Range;

struct PtxMemory {
  GMutex lock;
  guint64 n_bytes, n_used;
  Range **pages;              /* N_PAGES, mostly never touched */
  GPtrArray *ranges, *unused; /* of Range; the second are among the first */
  Range freed;                /* stands for all that were given back */
  guint64 next_page;
};

PtxMemory *
ptx_memory_new (guint64 n_bytes)
{
  gsize n_table = (gsize) N_PAGES * sizeof (Range *);
  void *pages = mmap (NULL, n_table, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return NULL;
  PtxMemory *memory = g_new0 (PtxMemory, 1);
  g_mutex_init (&memory->lock);
  memory->n_bytes = n_bytes;
  memory->pages = pages;
  memory->ranges = g_ptr_array_new ();
  memory->unused = g_ptr_array_new ();
  memory->next_page = FIRST_PAGE;
  return memory;
}

static void
free_bytes (Range *range)
{
  if (range->bytes != NULL)
    munmap (range->bytes, MAX (range->n_bytes, 1));
  range->bytes = NULL;
}

void
ptx_memory_free (PtxMemory *memory)
{
  for (guint i = 0; i < memory->ranges->len; i++) {
    free_bytes (memory->ranges->pdata[i]);
    g_free (memory->ranges->pdata[i]);
  }
  g_ptr_array_unref (memory->ranges);
  g_ptr_array_unref (memory->unused);
  munmap (memory->pages, (gsize) N_PAGES * sizeof (Range *));
  g_mutex_clear (&memory->lock);
  g_free (memory);
}

static guint64
n_pages_of (guint64 n_bytes)
{
  return (n_bytes >> PAGE_BITS) + 2;
}

/* The pages of the next range; FALSE when the table is at its end. */
static gboolean
take_pages (PtxMemory *memory, guint64 n_pages, guint64 *out_page)
{
  if (n_pages > N_PAGES - FIRST_PAGE || memory->next_page > N_PAGES - n_pages)
    return FALSE;
  *out_page = memory->next_page;
  memory->next_page += n_pages;
  return TRUE;
}

/* One that was given back, or a new one. */
static Range *
new_range (PtxMemory *memory)
{
  if (memory->unused->len > 0)
    return g_ptr_array_steal_index_fast (memory->unused, memory->unused->len - 1);
  g_ptr_array_add (memory->ranges, g_new0 (Range, 1));
  return memory->ranges->pdata[memory->ranges->len - 1];
}

/* All pages of @range but the guard name @entry. */
static void
set_pages (PtxMemory *memory, const Range *range, Range *entry)
{
  guint64 page = (range->start - BASE) >> PAGE_BITS;
  for (guint64 i = 0; i + 1 < n_pages_of (range->n_bytes); i++)
    __atomic_store_n (&memory->pages[page + i], entry, __ATOMIC_RELEASE);
}

guint64
ptx_memory_take (PtxMemory *memory, guint64 n_bytes)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&memory->lock);
  guint64 page;
  if (n_bytes > memory->n_bytes - memory->n_used
      || !take_pages (memory, n_pages_of (n_bytes), &page))
    return 0;
  void *bytes = mmap (NULL, MAX (n_bytes, 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED)
    return 0;
  memset (bytes, POISON, n_bytes);
  Range *range = new_range (memory);
  *range = (Range){ BASE + (page << PAGE_BITS), n_bytes, bytes };
  set_pages (memory, range, range);
  memory->n_used += n_bytes;
  return range->start;
}

static Range *
find (PtxMemory *memory, guint64 address)
{
  guint64 page = (address - BASE) >> PAGE_BITS;
  return address >= BASE && page < N_PAGES
             ? __atomic_load_n (&memory->pages[page], __ATOMIC_ACQUIRE)
             : NULL;
}

gboolean
ptx_memory_give (PtxMemory *memory, guint64 address)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&memory->lock);
  Range *range = find (memory, address);
  if (range == NULL || range->start != address || range->bytes == NULL)
    return FALSE;
  memory->n_used -= range->n_bytes;
  set_pages (memory, range, &memory->freed);
  free_bytes (range);
  g_ptr_array_add (memory->unused, range);
  return TRUE;
}

void *
ptx_memory_at (PtxMemory *memory, guint64 address, guint64 n_bytes)
{
  const Range *range = find (memory, address);
  if (range == NULL || range->bytes == NULL)
    return NULL;
  guint64 offset = address - range->start;
  return offset <= range->n_bytes && n_bytes <= range->n_bytes - offset ? range->bytes + offset
                                                                        : NULL;
}

gboolean
ptx_memory_range (PtxMemory *memory, guint64 address, guint64 *out_start, guint64 *out_n_bytes)
{
  const Range *range = find (memory, address);
  if (range == NULL || range->bytes == NULL || address - range->start >= range->n_bytes)
    return FALSE;
  *out_start = range->start;
  *out_n_bytes = range->n_bytes;
  return TRUE;
}

guint64
ptx_memory_free_bytes (PtxMemory *memory)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&memory->lock);
  return memory->n_bytes - memory->n_used;
}

char *
ptx_memory_explain (PtxMemory *memory, guint64 address)
{
  const Range *range = find (memory, address);
  if (range == NULL || range->bytes == NULL)
    return g_strdup (range == NULL ? "no memory is there"
                                   : "the memory that was there was freed");
  return g_strdup_printf ("byte %" G_GUINT64_FORMAT " of memory of %" G_GUINT64_FORMAT " bytes",
                          address - range->start, range->n_bytes);
}
