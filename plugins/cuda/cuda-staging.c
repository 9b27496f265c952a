/* SPDX-License-Identifier: MIT
 *
 * cuda-staging.c: a ring of pinned memory, through which all transfers go.
 *
 * Memory of the host's that is not pinned would be copied by the driver, which waits meanwhile. An upload is copied
 * into the ring when it is submitted; a download out of it when the device is done. Pieces lie one behind the other
 * and are freed in the order in which they were taken. */
#include "cuda.h"

int
cuda_staging_open (CudaStaging *self)
{
  void *memory = NULL;
  int code = self->memory != NULL
                 ? CUDA_SUCCESS
                 : cuda.MemHostAlloc (&memory, CUDA_RING_BYTES, CUDA_HOST_PORTABLE);
  for (int i = 0; i < CUDA_N_PIECES && code == CUDA_SUCCESS && self->memory == NULL; i++)
    if (self->pieces[i].event == NULL)
      code = cuda.EventCreate (&self->pieces[i].event,
                               CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_BLOCKING_SYNC);
  if (code == CUDA_SUCCESS && memory != NULL)
    self->memory = memory;
  else if (memory != NULL)
    cuda.MemFreeHost (memory);
  return code;
}

void
cuda_staging_close (CudaStaging *self)
{
  for (int i = 0; i < CUDA_N_PIECES; i++)
    if (self->pieces[i].event != NULL)
      cuda.EventDestroy (self->pieces[i].event);
  if (self->memory != NULL)
    cuda.MemFreeHost (self->memory);
}

CudaPiece *
cuda_staging_get_oldest (CudaStaging *self)
{
  return self->n_freed < self->n_taken ? &self->pieces[self->n_freed % CUDA_N_PIECES] : NULL;
}

/* Where @size bytes have room, or SIZE_MAX. Used is from the oldest piece on to the end of the newest, maybe around
 * the ring's end; where both are one place, the ring is full. */
static size_t
find_room (CudaStaging *self, size_t size)
{
  const CudaPiece *oldest = cuda_staging_get_oldest (self);
  if (oldest == NULL)
    return 0;
  if (self->end > oldest->at && CUDA_RING_BYTES - self->end >= size)
    return self->end;
  const size_t start = self->end > oldest->at ? 0 : self->end;
  return oldest->at - start >= size ? start : SIZE_MAX;
}

CudaPiece *
cuda_staging_take (CudaStaging *self, size_t size)
{
  const size_t room = (size + 255) / 256 * 256;
  const size_t at = find_room (self, room);
  if (at == SIZE_MAX || self->n_taken - self->n_freed == CUDA_N_PIECES)
    return NULL;
  CudaPiece *piece = &self->pieces[self->n_taken++ % CUDA_N_PIECES];
  piece->host = NULL;
  piece->at = at;
  piece->size = size;
  self->end = at + room;
  return piece;
}

void
cuda_staging_free_oldest (CudaStaging *self)
{
  CudaPiece *piece = cuda_staging_get_oldest (self);
  if (piece->host != NULL)
    memcpy (piece->host, self->memory + piece->at, piece->size);
  self->n_freed++;
}

bool
cuda_staging_writes (const CudaStaging *self, const void *host, size_t size)
{
  for (uint64_t i = self->n_freed; i < self->n_taken; i++) {
    const CudaPiece *piece = &self->pieces[i % CUDA_N_PIECES];
    const uintptr_t a = (uintptr_t) piece->host, b = (uintptr_t) host;
    if (piece->host != NULL && (a < b ? b - a < piece->size : a - b < size))
      return true;
  }
  return false;
}
