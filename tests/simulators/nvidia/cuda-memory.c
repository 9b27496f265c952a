/* SPDX-License-Identifier: MIT
 *
 * cuda-memory.c: memory of the device and of the host, and copies.
 *
 * A copy from memory that is not pinned is read before the call returns, one to such memory is done before; the others are
 * done when their stream comes to them. */
#include "cuda-calls.h"
#include <string.h>

/* ---- the device's ---- */

CUDA_EXPORT
cuMemGetInfo_v2 (gsize *out_free, gsize *out_total)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out_free == NULL || out_total == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out_free = ptx_memory_free_bytes (cuda_driver.memory);
  *out_total = cuda_driver.n_bytes;
  return 0;
}

CUDA_EXPORT
cuMemAlloc_v2 (CUdeviceptr *out, gsize n_bytes)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL || n_bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  *out = ptx_memory_take (cuda_driver.memory, n_bytes);
  return *out != 0 ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_EXPORT
cuMemFree_v2 (CUdeviceptr address)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (address == 0)
    return 0;
  CUresult status = cuda_wait_all (cuda_current ());
  return status != 0                                     ? status
         : ptx_memory_give (cuda_driver.memory, address) ? 0
                                                         : CUDA_ERROR_INVALID_VALUE;
}

CUDA_EXPORT
cuMemGetAddressRange_v2 (CUdeviceptr *out_start, gsize *out_n_bytes, CUdeviceptr address)
{
  CUDA_ENTER (CUDA_CONTEXT);
  guint64 start, n_bytes;
  if (!ptx_memory_range (cuda_driver.memory, address, &start, &n_bytes))
    return CUDA_ERROR_NOT_FOUND;
  if (out_start != NULL)
    *out_start = start;
  if (out_n_bytes != NULL)
    *out_n_bytes = n_bytes;
  return 0;
}

/* ---- the host's ---- */

enum { HOST_FLAGS = 7, REGISTER_FLAGS = 15, PAGE_BYTES = 4096 };

static gboolean
is_inside (gpointer start, const CudaPinned *pinned, const guint8 *bytes, gsize n_bytes)
{
  gsize offset = bytes - (guint8 *) start;
  return bytes >= (guint8 *) start && offset <= pinned->n_bytes
         && n_bytes <= pinned->n_bytes - offset;
}

gboolean
cuda_is_pinned (const void *bytes, gsize n_bytes)
{
  GHashTableIter iter;
  gpointer start;
  CudaPinned *pinned;
  gboolean is_found = FALSE;
  g_mutex_lock (&cuda_driver.lock);
  g_hash_table_iter_init (&iter, cuda_driver.pinned);
  while (!is_found && g_hash_table_iter_next (&iter, &start, (gpointer *) &pinned))
    is_found = is_inside (start, pinned, bytes, n_bytes);
  g_mutex_unlock (&cuda_driver.lock);
  return is_found;
}

static gboolean
remember_pinned (void *bytes, gsize n_bytes, gboolean is_owned)
{
  CudaPinned pinned = { n_bytes, is_owned };
  g_mutex_lock (&cuda_driver.lock);
  gboolean is_new = !g_hash_table_contains (cuda_driver.pinned, bytes);
  if (is_new)
    g_hash_table_insert (cuda_driver.pinned, bytes, g_memdup2 (&pinned, sizeof pinned));
  g_mutex_unlock (&cuda_driver.lock);
  return is_new;
}

static gboolean
forget_pinned (void *bytes, gboolean is_owned)
{
  g_mutex_lock (&cuda_driver.lock);
  const CudaPinned *pinned = g_hash_table_lookup (cuda_driver.pinned, bytes);
  gboolean is_there = pinned != NULL && pinned->is_owned == is_owned;
  if (is_there)
    g_hash_table_remove (cuda_driver.pinned, bytes);
  g_mutex_unlock (&cuda_driver.lock);
  return is_there;
}

CUDA_EXPORT
cuMemHostAlloc (void **out, gsize n_bytes, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL || n_bytes == 0 || (flags & ~(unsigned) HOST_FLAGS) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *out = g_try_malloc (n_bytes + PAGE_BYTES);
  if (*out == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  guintptr base = (guintptr) *out, aligned = (base / PAGE_BYTES + 1) * PAGE_BYTES;
  /* The start of what was allocated is just below. */
  memcpy ((guint8 *) aligned - sizeof base, &base, sizeof base);
  *out = (void *) aligned;
  memset (*out, 0xa5, n_bytes);
  remember_pinned (*out, n_bytes, TRUE);
  return 0;
}

CUDA_EXPORT
cuMemFreeHost (void *bytes)
{
  CUDA_ENTER (CUDA_CONTEXT);
  CUresult status = cuda_wait_all (cuda_current ());
  if (status != 0 || bytes == NULL || !forget_pinned (bytes, TRUE))
    return status != 0 ? status : CUDA_ERROR_INVALID_VALUE;
  guintptr base;
  memcpy (&base, (guint8 *) bytes - sizeof base, sizeof base);
  g_free ((void *) base);
  return 0;
}

CUDA_EXPORT
cuMemHostRegister_v2 (void *bytes, gsize n_bytes, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (bytes == NULL || n_bytes == 0 || (flags & ~(unsigned) REGISTER_FLAGS) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return remember_pinned (bytes, n_bytes, FALSE) ? 0
                                                 : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUDA_EXPORT
cuMemHostUnregister (void *bytes)
{
  CUDA_ENTER (CUDA_CONTEXT);
  CUresult status = cuda_wait_all (cuda_current ());
  return status != 0                    ? status
         : forget_pinned (bytes, FALSE) ? 0
                                        : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

/* Kernels of the simulated device do not see memory of the host. */
CUDA_EXPORT
cuMemHostGetDevicePointer_v2 (CUdeviceptr *out, void *bytes, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  (void) bytes, (void) flags;
  return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- pointers ---- */

enum {
  ATTRIBUTE_CONTEXT = 1,
  ATTRIBUTE_MEMORY_TYPE = 2,
  ATTRIBUTE_DEVICE_POINTER = 3,
  ATTRIBUTE_HOST_POINTER = 4,
  ATTRIBUTE_ORDINAL = 9,
  ATTRIBUTE_START = 11,
  ATTRIBUTE_SIZE = 12,
  MEMORY_HOST = 1,
  MEMORY_DEVICE = 2
};

static CUresult
attribute_of_device (
    void *out, int attribute, CUdeviceptr address, guint64 start, guint64 n_bytes)
{
  switch (attribute) {
  case ATTRIBUTE_CONTEXT:
    *(CUcontext *) out = &cuda_driver.primary;
    return 0;
  case ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *) out = MEMORY_DEVICE;
    return 0;
  case ATTRIBUTE_ORDINAL:
    *(int *) out = 0;
    return 0;
  case ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *) out = address;
    return 0;
  case ATTRIBUTE_START:
    *(CUdeviceptr *) out = start;
    return 0;
  case ATTRIBUTE_SIZE:
    *(gsize *) out = n_bytes;
    return 0;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUDA_EXPORT
cuPointerGetAttribute (void *out, int attribute, CUdeviceptr address)
{
  CUDA_ENTER (CUDA_CONTEXT);
  guint64 start, n_bytes;
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (ptx_memory_range (cuda_driver.memory, address, &start, &n_bytes))
    return attribute_of_device (out, attribute, address, start, n_bytes);
  if (!cuda_is_pinned ((void *) (guintptr) address, 1))
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute == ATTRIBUTE_MEMORY_TYPE)
    *(unsigned *) out = MEMORY_HOST;
  else if (attribute == ATTRIBUTE_HOST_POINTER)
    *(void **) out = (void *) (guintptr) address;
  else
    return attribute_of_device (out, attribute, 0, 0, 0);
  return 0;
}

/* ---- copies ---- */

typedef enum { TO_DEVICE, TO_HOST, ON_DEVICE, FILL_BYTES, FILL_WORDS } Direction;

typedef struct {
  Direction direction;
  CUdeviceptr to, from;
  void *host, *staged; /* @staged: owned */
  gsize n_bytes;
  guint32 value;
} Transfer;

static void
free_transfer (gpointer data)
{
  g_free (((Transfer *) data)->staged);
  g_free (data);
}

static void
fill (guint8 *to, const Transfer *transfer)
{
  if (transfer->direction == FILL_BYTES)
    memset (to, (int) transfer->value, transfer->n_bytes);
  for (gsize i = 0; i < transfer->n_bytes && transfer->direction == FILL_WORDS;
       i += sizeof transfer->value)
    memcpy (to + i, &transfer->value, sizeof transfer->value);
}

static void
transfer_now (CUcontext context, gpointer data)
{
  Transfer *transfer = data;
  void *to = transfer->direction == TO_HOST
                 ? transfer->host
                 : ptx_memory_at (cuda_driver.memory, transfer->to, transfer->n_bytes);
  void *from = transfer->direction == TO_DEVICE
                   ? transfer->host
                   : ptx_memory_at (cuda_driver.memory, transfer->from, transfer->n_bytes);
  if (to == NULL || (from == NULL && transfer->direction < FILL_BYTES))
    cuda_break (context, CUDA_ERROR_ILLEGAL_ADDRESS, "a copy of memory that was freed");
  else if (transfer->direction >= FILL_BYTES)
    fill (to, transfer);
  else
    memmove (to, from, transfer->n_bytes);
}

static gboolean
is_device (CUdeviceptr address, gsize n_bytes)
{
  return ptx_memory_at (cuda_driver.memory, address, n_bytes) != NULL;
}

static CUresult
transfer (CUstream stream, Transfer wanted)
{
  gboolean writes_device = wanted.direction != TO_HOST,
           reads_device = wanted.direction == TO_HOST || wanted.direction == ON_DEVICE;
  gboolean has_host = wanted.direction == TO_DEVICE || wanted.direction == TO_HOST;
  if (wanted.n_bytes == 0)
    return 0;
  if ((writes_device && !is_device (wanted.to, wanted.n_bytes))
      || (reads_device && !is_device (wanted.from, wanted.n_bytes))
      || (has_host && wanted.host == NULL))
    return CUDA_ERROR_INVALID_VALUE;
  gboolean is_pageable = has_host && !cuda_is_pinned (wanted.host, wanted.n_bytes);
  if (is_pageable && wanted.direction == TO_DEVICE)
    wanted.host = wanted.staged = g_memdup2 (wanted.host, wanted.n_bytes);
  CUresult status
      = cuda_enqueue (stream, transfer_now, g_memdup2 (&wanted, sizeof wanted), free_transfer);
  return status == 0 && is_pageable && wanted.direction == TO_HOST
             ? cuda_wait_all (cuda_current ())
             : status;
}

CUDA_EXPORT
cuMemcpyHtoDAsync_v2 (CUdeviceptr to, const void *from, gsize n_bytes, CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return transfer (stream, (Transfer){ .direction = TO_DEVICE,
                                       .to = to,
                                       .host = (void *) from,
                                       .n_bytes = n_bytes });
}

CUDA_EXPORT
cuMemcpyDtoHAsync_v2 (void *to, CUdeviceptr from, gsize n_bytes, CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return transfer (
      stream, (Transfer){ .direction = TO_HOST, .host = to, .from = from, .n_bytes = n_bytes });
}

CUDA_EXPORT
cuMemcpyDtoDAsync_v2 (CUdeviceptr to, CUdeviceptr from, gsize n_bytes, CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return transfer (
      stream, (Transfer){ .direction = ON_DEVICE, .to = to, .from = from, .n_bytes = n_bytes });
}

CUDA_EXPORT
cuMemcpyHtoD_v2 (CUdeviceptr to, const void *from, gsize n_bytes)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return transfer (
      NULL, (Transfer){
                .direction = TO_DEVICE, .to = to, .host = (void *) from, .n_bytes = n_bytes });
}

CUDA_EXPORT
cuMemcpyDtoH_v2 (void *to, CUdeviceptr from, gsize n_bytes)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return transfer (
      NULL, (Transfer){ .direction = TO_HOST, .host = to, .from = from, .n_bytes = n_bytes });
}

CUDA_EXPORT
cuMemcpyPeerAsync (CUdeviceptr to,
                   CUcontext to_context,
                   CUdeviceptr from,
                   CUcontext from_context,
                   gsize n_bytes,
                   CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (to_context != &cuda_driver.primary || from_context != &cuda_driver.primary)
    return CUDA_ERROR_INVALID_CONTEXT;
  return transfer (
      stream, (Transfer){ .direction = ON_DEVICE, .to = to, .from = from, .n_bytes = n_bytes });
}

CUDA_EXPORT
cuMemsetD8Async (CUdeviceptr to, guint8 value, gsize n, CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return transfer (
      stream, (Transfer){ .direction = FILL_BYTES, .to = to, .n_bytes = n, .value = value });
}

CUDA_EXPORT
cuMemsetD32Async (CUdeviceptr to, unsigned value, gsize n, CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (to % 4 != 0 || n > G_MAXSIZE / 4)
    return CUDA_ERROR_INVALID_VALUE;
  return transfer (
      stream,
      (Transfer){ .direction = FILL_WORDS, .to = to, .n_bytes = 4 * n, .value = value });
}
