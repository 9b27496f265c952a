/* SPDX-License-Identifier: MIT
 *
 * worker-memory.c: memory of buffers that a program and its worker share.
 *
 * What is large has a mapping of its own, which goes with it. What is small is cut from mappings that are kept
 * until the end: each of one size, a power of two, so that giving back and taking again is a matter of a list. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin/tiny-worker.h"

enum {
  LEAST = 256,
  N_SMALL = 9, /* sizes that are cut: 256 … 64 Ki */
  MOST = LEAST << (N_SMALL - 1),
  SLAB_BYTES = 1 << 20, /* what they are cut from */
  HUGE_BYTES = 2 << 20, /* from here on large pages are worth asking for */
};

/* One memfd, mapped on both sides. */
typedef struct {
  guint8 *here;
  guint64 there;
  gsize n_bytes;
} Mapping;

struct TinyWorkerMemory {
  TinyWorker *worker;
  GMutex lock;
  GPtrArray *slabs;           /* Mapping */
  GPtrArray *pieces[N_SMALL]; /* TinyWorkerSpan, of each size those that nobody has */
};

static TinyStatus
fail (TinyPluginError *error, gsize n_bytes)
{
  g_snprintf (error->text, sizeof error->text,
              "no memory of %" G_GSIZE_FORMAT " bytes to share with its process: %s", n_bytes,
              g_strerror (errno));
  return TINY_STATUS_OUT_OF_MEMORY;
}

/* ---- mappings ---- */
static TinyStatus
map_there (
    TinyWorker *worker, int fd, gsize alignment, Mapping *mapping, TinyPluginError *error)
{
  TinyStatus status;
  TinyWorkerLane *lane = tiny_worker_begin (worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  head->numbers[0] = mapping->n_bytes;
  head->numbers[1] = alignment;
  tiny_worker_lane_send (lane, fd);
  status = tiny_worker_lane_ask (lane, WORKER_MAP_MEMORY, 0, error);
  mapping->there = head->numbers[0];
  tiny_worker_end (lane);
  return status;
}

static void
mapping_free (TinyWorker *worker, Mapping *mapping)
{
  guint64 numbers[WORKER_NUMBERS] = { mapping->there, mapping->n_bytes };
  TinyPluginError ignored;
  tiny_plugin_error_init (&ignored);
  if (mapping->there != 0 && !tiny_worker_is_lost (worker))
    tiny_worker_call (worker, WORKER_UNMAP_MEMORY, numbers, &ignored);
  munmap (mapping->here, mapping->n_bytes);
  g_free (mapping);
}

static TinyStatus
mapping_new (
    TinyWorker *worker, gsize n_bytes, gsize alignment, Mapping **out, TinyPluginError *error)
{
  int fd = worker_memory_new ("tiny-buffers", n_bytes);
  if (fd < 0)
    return fail (error, n_bytes);
  Mapping *self = g_new0 (Mapping, 1);
  self->n_bytes = n_bytes;
  void *mapped = worker_memory_map (fd, n_bytes, alignment);
  TinyStatus status = TINY_STATUS_OK;
  if (mapped == NULL)
    status = fail (error, n_bytes);
  else {
    self->here = mapped;
    if (n_bytes >= HUGE_BYTES)
      madvise (mapped, n_bytes, MADV_HUGEPAGE);
    status = map_there (worker, fd, alignment, self, error);
  }
  close (fd);
  if (status >= 0) {
    *out = self;
    return status;
  }
  if (self->here != NULL)
    munmap (self->here, n_bytes);
  g_free (self);
  return status;
}

/* ---- pieces ---- */
TinyWorkerMemory *
tiny_worker_memory_new (TinyWorker *worker)
{
  TinyWorkerMemory *self = g_new0 (TinyWorkerMemory, 1);
  self->worker = tiny_worker_ref (worker);
  g_mutex_init (&self->lock);
  self->slabs = g_ptr_array_new ();
  for (guint i = 0; i < N_SMALL; i++)
    self->pieces[i] = g_ptr_array_new_with_free_func (g_free);
  return self;
}

void
tiny_worker_memory_free (TinyWorkerMemory *self)
{
  for (guint i = 0; i < self->slabs->len; i++)
    mapping_free (self->worker, self->slabs->pdata[i]);
  g_ptr_array_unref (self->slabs);
  for (guint i = 0; i < N_SMALL; i++)
    g_ptr_array_unref (self->pieces[i]);
  g_mutex_clear (&self->lock);
  tiny_worker_unref (self->worker);
  g_free (self);
}

/* Which size is cut for @n_bytes at @alignment; N_SMALL: none. Pieces are aligned to their size, as slabs are to
 * that of the largest. */
static guint
class_of (gsize n_bytes, gsize alignment)
{
  gsize wanted = MAX (MAX (n_bytes, alignment), LEAST);
  guint i = 0;
  while (i < N_SMALL && (gsize) LEAST << i < wanted)
    i++;
  return i;
}

static TinyStatus
cut_slab (TinyWorkerMemory *self, guint class_number, TinyPluginError *error)
{
  Mapping *slab;
  gsize size = (gsize) LEAST << class_number;
  TinyStatus status = mapping_new (self->worker, SLAB_BYTES, MOST, &slab, error);
  if (status < 0)
    return status;
  g_ptr_array_add (self->slabs, slab);
  for (gsize at = SLAB_BYTES; at > 0; at -= size) {
    TinyWorkerSpan piece
        = { slab->here + at - size, slab->there + at - size, size, TRUE, NULL };
    g_ptr_array_add (self->pieces[class_number], g_memdup2 (&piece, sizeof piece));
  }
  return status;
}

TinyStatus
tiny_worker_memory_take (TinyWorkerMemory *self,
                         gsize n_bytes,
                         gsize alignment,
                         TinyWorkerSpan *out,
                         TinyPluginError *error)
{
  const guint class_number = class_of (n_bytes, alignment);
  TinyStatus status = TINY_STATUS_OK;
  if (class_number == N_SMALL) {
    const gsize page = (gsize) sysconf (_SC_PAGESIZE);
    Mapping *mapping = NULL;
    errno = ENOMEM;
    if (n_bytes > G_MAXSSIZE - page)
      status = fail (error, n_bytes);
    else
      status = mapping_new (self->worker, (n_bytes + page - 1) & ~(page - 1), alignment,
                            &mapping, error);
    if (status >= 0)
      *out = (TinyWorkerSpan){ mapping->here, mapping->there, n_bytes, FALSE, mapping };
    return status;
  }
  g_mutex_lock (&self->lock);
  GPtrArray *pieces = self->pieces[class_number];
  if (pieces->len == 0)
    status = cut_slab (self, class_number, error);
  if (status >= 0) {
    TinyWorkerSpan *piece = g_ptr_array_steal_index (pieces, pieces->len - 1);
    *out = (TinyWorkerSpan){ piece->here, piece->there, n_bytes, TRUE, piece };
  }
  g_mutex_unlock (&self->lock);
  return status;
}

void
tiny_worker_memory_give (TinyWorkerMemory *self, const TinyWorkerSpan *span)
{
  if (!span->is_cut) {
    mapping_free (self->worker, span->origin);
    return;
  }
  TinyWorkerSpan *piece = span->origin;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->pieces[class_of (piece->n_bytes, 1)], piece);
  g_mutex_unlock (&self->lock);
}
