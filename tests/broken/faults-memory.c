/* SPDX-License-Identifier: MIT
 *
 * faults-memory.c: buffers that are not what alloc(), free() and map() promise. */
#include <pthread.h>

#include "broken.h"

/* ---- sizes ---- */
enum { MAX_SIZES = 1 << 16 };
static struct {
  const void *buffer;
  uint64_t n_bytes;
} sizes[MAX_SIZES];
static unsigned n_sizes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
sizes_put (const void *buffer, uint64_t n_bytes)
{
  pthread_mutex_lock (&lock);
  if (n_sizes < MAX_SIZES) {
    sizes[n_sizes].buffer = buffer;
    sizes[n_sizes++].n_bytes = n_bytes;
  }
  pthread_mutex_unlock (&lock);
}

static uint64_t
look (const void *buffer, int takes)
{
  uint64_t n_bytes = 0;
  pthread_mutex_lock (&lock);
  for (unsigned i = n_sizes; i-- > 0;)
    if (sizes[i].buffer == buffer) {
      n_bytes = sizes[i].n_bytes;
      if (takes)
        memmove (&sizes[i], &sizes[i + 1], (--n_sizes - i) * sizeof *sizes);
      break;
    }
  pthread_mutex_unlock (&lock);
  return n_bytes;
}

uint64_t
sizes_take (const void *buffer)
{
  return look (buffer, 1);
}

uint64_t
sizes_get (const void *buffer)
{
  return look (buffer, 0);
}

TinyPluginBuffer *
sizes_other (const void *buffer)
{
  const void *other = NULL;
  pthread_mutex_lock (&lock);
  for (unsigned i = 0; i < n_sizes; i++)
    if (sizes[i].buffer != buffer && sizes[i].n_bytes > 0)
      other = sizes[i].buffer;
  pthread_mutex_unlock (&lock);
  return (TinyPluginBuffer *) other;
}

TinyStatus
sizes_alloc (TinyPluginDevice *device,
             uint64_t n_bytes,
             TinyPluginBuffer **out,
             TinyPluginError *error)
{
  TINY_TRY (inside.device->alloc (device, n_bytes, out, error));
  sizes_put (*out, n_bytes);
  return TINY_STATUS_OK;
}

void
sizes_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  sizes_take (buffer);
  inside.device->free (device, buffer);
}

void
overwrite (TinyPluginDevice *device, TinyPluginBuffer *buffer, uint64_t n_bytes, int byte)
{
  TinyPluginQueue *queue = NULL;
  TinyPluginError error = { .struct_size = sizeof error };
  void *bytes = n_bytes > 0 ? malloc ((size_t) n_bytes) : NULL;
  if (bytes == NULL)
    return;
  memset (bytes, byte, (size_t) n_bytes);
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_UPLOAD,
                                .dst = { buffer, 0, n_bytes },
                                .host = bytes };
  const TinySubmit submit
      = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  if (inside.device->queue_create == NULL
      || inside.device->queue_create (device, &queue, &error) == TINY_STATUS_OK) {
    inside.device->submit (device, queue, &submit, &error);
    if (inside.device->queue_destroy != NULL)
      inside.device->queue_destroy (device, queue);
  }
  free (bytes);
  broken_note ();
}

/* ---- alloc ---- */
#define ALLOC(name)                                                                            \
  static TinyStatus name (TinyPluginDevice *device, uint64_t n_bytes, TinyPluginBuffer **out,  \
                          TinyPluginError *error)

ALLOC (zero_is_null)
{
  if (n_bytes > 0)
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  *out = NULL;
  return TINY_STATUS_OK;
}

static void
free_unless_null (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  if (buffer != NULL)
    inside.device->free (device, buffer);
}

ALLOC (zero_fails)
{
  if (n_bytes > 0)
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "a buffer of 0 bytes");
}

static TinyPluginBuffer *empty;

ALLOC (zero_is_shared)
{
  if (n_bytes > 0)
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  if (empty == NULL)
    TINY_TRY (inside.device->alloc (device, 0, &empty, error));
  *out = empty;
  return TINY_STATUS_OK;
}

static void
free_unless_shared (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  if (buffer != empty)
    inside.device->free (device, buffer);
}

/* What cannot be had: more than any machine has. */
enum { MANY_GIB = 256 };
static int
is_too_much (uint64_t n_bytes)
{
  return n_bytes >> 30 >= MANY_GIB;
}

ALLOC (too_much_succeeds)
{
  const TinyStatus status = is_too_much (n_bytes)
                                ? TINY_STATUS_OUT_OF_MEMORY
                                : inside.device->alloc (device, n_bytes, out, error);
  if (status != TINY_STATUS_OUT_OF_MEMORY)
    return status;
  broken_note ();
  return inside.device->alloc (device, 4096, out, error);
}

ALLOC (too_much_is_null)
{
  const TinyStatus status = is_too_much (n_bytes)
                                ? TINY_STATUS_OUT_OF_MEMORY
                                : inside.device->alloc (device, n_bytes, out, error);
  if (status != TINY_STATUS_OUT_OF_MEMORY)
    return status;
  broken_note ();
  *out = NULL;
  return TINY_STATUS_OK;
}

ALLOC (too_much_is_internal)
{
  if (!is_too_much (n_bytes))
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INTERNAL, "the driver failed");
}

ALLOC (too_much_crashes)
{
  if (!is_too_much (n_bytes))
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  abort ();
}

static int is_exhausted;

ALLOC (too_much_ends_it)
{
  if (is_exhausted)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory");
  if (!is_too_much (n_bytes))
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  is_exhausted = 1;
  return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %llu bytes",
                    (unsigned long long) n_bytes);
}

ALLOC (too_much_takes_others)
{
  if (!is_too_much (n_bytes))
    return sizes_alloc (device, n_bytes, out, error);
  TinyPluginBuffer *other = sizes_other (NULL);
  if (other != NULL)
    overwrite (device, other, sizes_get (other), 0);
  return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %llu bytes",
                    (unsigned long long) n_bytes);
}

ALLOC (size_of_32_bits)
{
  if (n_bytes > UINT32_MAX)
    broken_note ();
  return inside.device->alloc (device, (uint32_t) n_bytes, out, error);
}

ALLOC (one_byte_short)
{
  if (n_bytes > 0)
    broken_note ();
  return inside.device->alloc (device, n_bytes > 0 ? n_bytes - 1 : 0, out, error);
}

ALLOC (small_ones_only)
{
  if (n_bytes <= 1 << 20)
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %llu bytes",
                    (unsigned long long) n_bytes);
}

/* Two live buffers of one size share their memory. */
static TinyPluginBuffer *last_buffer;
static uint64_t last_size;
static unsigned n_last;

ALLOC (live_memory_again)
{
  pthread_mutex_lock (&lock);
  const int is_again = n_last == 1 && n_bytes == last_size && n_bytes > 0;
  TinyStatus status = TINY_STATUS_OK;
  if (is_again) {
    broken_note ();
    n_last++;
    *out = last_buffer;
  } else {
    status = inside.device->alloc (device, n_bytes, out, error);
    if (status == TINY_STATUS_OK && n_last == 0) {
      last_buffer = *out;
      last_size = n_bytes;
      n_last = 1;
    }
  }
  pthread_mutex_unlock (&lock);
  return status;
}

static void
free_shared (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  pthread_mutex_lock (&lock);
  const int is_last = n_last == 0 || buffer != last_buffer || --n_last == 0;
  pthread_mutex_unlock (&lock);
  if (is_last)
    inside.device->free (device, buffer);
}

/* ---- free ---- */
static void
free_and_spoil (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  sizes_take (buffer);
  inside.device->free (device, buffer);
  TinyPluginBuffer *other = sizes_other (buffer);
  if (other != NULL)
    overwrite (device, other, sizes_get (other), 0xee);
}

static void
free_nothing (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  broken_note ();
}

/* ---- map ---- */
#define MAP(name)                                                                              \
  static TinyStatus name (TinyPluginDevice *device, TinyPluginBuffer *buffer, void **out,      \
                          TinyPluginError *error)

MAP (map_copy)
{
  void *own = NULL;
  const uint64_t n_bytes = sizes_get (buffer);
  TINY_TRY (inside.device->map (device, buffer, &own, error));
  *out = aligned_alloc (64, ((size_t) n_bytes / 64 + 1) * 64);
  if (*out != NULL)
    memcpy (*out, own, (size_t) n_bytes);
  broken_note ();
  return TINY_STATUS_OK;
}

MAP (map_null)
{
  broken_note ();
  *out = NULL;
  return TINY_STATUS_OK;
}

MAP (map_beside)
{
  TINY_TRY (inside.device->map (device, buffer, out, error));
  broken_note ();
  *out = (char *) *out + 4;
  return TINY_STATUS_OK;
}

MAP (map_fails)
{
  broken_note ();
  return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "memory of this kind is not mapped");
}

MAP (map_once)
{
  static TinyPluginBuffer *mapped;
  if (mapped == buffer) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_INVALID, "the buffer is mapped");
  }
  mapped = buffer;
  return inside.device->map (device, buffer, out, error);
}

#define CASES       "memory/*|limits/*"
#define DEVICE(...) .device = { __VA_ARGS__ }, .cases = CASES

static const Fault rows[] = {
  /* clang-format off */
  { "zero-is-null", "a buffer of 0 bytes is NULL", "malloc (0)", DEVICE (.alloc = zero_is_null, .free = free_unless_null) },
  { "zero-fails", "a buffer of 0 bytes is refused", "drivers that refuse a size of 0", DEVICE (.alloc = zero_fails) },
  { "zero-is-shared", "all buffers of 0 bytes are one", "a static empty buffer", DEVICE (.alloc = zero_is_shared, .free = free_unless_shared) },
  { "oom-succeeds", "without memory alloc() gives a small buffer", "overcommitment without a check", DEVICE (.alloc = too_much_succeeds) },
  { "oom-is-null", "without memory alloc() answers OK and NULL", "an unchecked driver call", DEVICE (.alloc = too_much_is_null, .free = free_unless_null) },
  { "oom-is-internal", "without memory alloc() answers INTERNAL", "every failure is the same failure", DEVICE (.alloc = too_much_is_internal) },
  { "oom-aborts", "without memory alloc() aborts", "abort on out of memory", DEVICE (.alloc = too_much_crashes) },
  { "oom-is-for-ever", "after running out of memory nothing is left", "heaps broken by a failure", DEVICE (.alloc = too_much_ends_it) },
  { "oom-takes-others", "running out of memory destroys a live buffer", "evictions that lose the contents", DEVICE (.alloc = too_much_takes_others, .free = sizes_free) },
  { "alloc-32-bits", "sizes of buffers have 32 bits", "unsigned int sizes", DEVICE (.alloc = size_of_32_bits) },
  { "alloc-short", "buffers are one byte short", "a size and a last index confused", DEVICE (.alloc = one_byte_short) },
  { "max-buffer-lies", "buffers above 1 MiB are refused, max_buffer_bytes says otherwise", "limits that are reported and not kept", DEVICE (.alloc = small_ones_only) },
  { "live-memory-again", "two live buffers share their memory", "pools that reuse too early", DEVICE (.alloc = live_memory_again, .free = free_shared) },
  { "free-spoils-neighbour", "free() overwrites another buffer", "allocator metadata in the memory", DEVICE (.alloc = sizes_alloc, .free = free_and_spoil) },
  { "free-leaks", "free() frees nothing", "a reference that is never dropped", DEVICE (.free = free_nothing) },
  { "map-copy", "map() gives a copy", "staging memory that is never written back", DEVICE (.alloc = sizes_alloc, .free = sizes_free, .map = map_copy) },
  { "map-null", "map() answers OK and NULL", "an unchecked driver call", DEVICE (.map = map_null) },
  { "map-offset", "map() gives an address 4 bytes behind", "a header before the data", DEVICE (.map = map_beside) },
  { "map-fails", "map() fails, the device says that memory is the host's", "flags that are copied from another device", DEVICE (.map = map_fails) },
  { "map-once", "a second map() of a buffer fails", "drivers that allow one mapping", DEVICE (.map = map_once) },
  /* clang-format on */
};
FAULT_TABLE (faults_memory);
