/* SPDX-License-Identifier: MIT
 *
 * cuda.h: declarations shared by the files of the CUDA backend. Everything here is hidden in the module. */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "cuda-api.h"
#include "nvidia.h"

typedef TinyPluginError CudaError;
typedef TinyPluginDevice CudaDevice;
typedef TinyPluginBuffer CudaBuffer;
typedef TinyPluginQueue CudaQueue;
typedef TinyPluginProgram CudaProgram;

extern const TinyHost *cuda_host;
extern CudaApi cuda;

enum { CUDA_ALIGNMENT = 256, CUDA_MAX_DEVICES = 64 };

/* ---- cuda-scan.c: GPUs on the PCI bus, without the driver's library ---- */

/* Fills @out with the GPUs of NVIDIA's below @root, "" for the machine's own files. */
TinyStatus cuda_scan_files (const char *root,
                            TinyCandidate out[CUDA_MAX_DEVICES],
                            uint32_t *n,
                            CudaError *error);

/* ---- cuda-driver.c: the driver's library ---- */

/* Opens it and begins to use it, once. For functions that the core serialises. */
TinyStatus cuda_open_driver (CudaError *error);
/* CUDA_SUCCESS is OK; else what the driver answered when it was to do @what: a status that fits, or @status. */
TinyStatus cuda_check (CudaError *error, TinyStatus status, int code, const char *what);

/* ---- cuda-device.c ---- */
struct TinyPluginDevice {
  int number;
  pid_t process; /* that opened it: no other may use it */
  CudaContext context;
  NvidiaArch arch;
  TinyDeviceInfo info;
  pthread_mutex_t lock; /* of what follows */
  bool is_lost;
  char lost[256]; /* why */
};
struct TinyPluginBuffer {
  CudaAddress memory;
  uint64_t n_bytes;
  bool is_imported;
};
extern const TinyDeviceTable cuda_device_table;

TinyStatus cuda_device_open (const char *id, CudaDevice **out, CudaError *error);
/* Makes the device's context the thread's until cuda_leave(), which puts back the one before. Fails where the device
 * is lost, or was opened by another process. */
TinyStatus cuda_enter (CudaDevice *device, CudaError *error);
void cuda_leave (void);
/* Answers as cuda_check() does, and remembers that the device is lost. */
TinyStatus cuda_answer (
    CudaDevice *device, CudaError *error, TinyStatus status, int code, const char *what);

/* ---- cuda-staging.c: memory that the device copies from and to, between the host's and its own ---- */
typedef struct {
  void *host; /* where bytes of a download go; NULL: an upload */
  size_t at, size;
  uint64_t point; /* of the submission that it belongs to */
  CudaEvent event;
} CudaPiece;
enum { CUDA_RING_BYTES = 8 << 20, CUDA_PIECE_BYTES = 2 << 20, CUDA_N_PIECES = 64 };
/* A ring of pieces: the oldest is the first to be free. Used under the queue's lock. */
typedef struct {
  char *memory;
  size_t end; /* behind the newest piece */
  uint64_t n_taken, n_freed;
  CudaPiece pieces[CUDA_N_PIECES];
} CudaStaging;

int cuda_staging_open (CudaStaging *self);
void cuda_staging_close (CudaStaging *self);
/* A piece of @size bytes; NULL: there is no room before the oldest is freed. */
CudaPiece *cuda_staging_take (CudaStaging *self, size_t size);
CudaPiece *cuda_staging_get_oldest (CudaStaging *self); /* or NULL */
/* Frees the oldest piece, which the device is done with, and brings its bytes to the host. */
void cuda_staging_free_oldest (CudaStaging *self);
/* True if a download to these bytes of the host is under way. */
bool cuda_staging_writes (const CudaStaging *self, const void *host, size_t size);

/* ---- cuda-queue.c ---- */
TinyStatus cuda_queue_create (CudaDevice *, CudaQueue **out, CudaError *);
void cuda_queue_destroy (CudaDevice *, CudaQueue *);
TinyStatus cuda_submit (CudaDevice *, CudaQueue *, const TinySubmit *, CudaError *);
TinyStatus
cuda_wait (CudaDevice *, CudaQueue *, uint64_t point, uint64_t timeout_ns, CudaError *);
TinyStatus cuda_reached (CudaDevice *, CudaQueue *, uint64_t *out_point, CudaError *);

/* ---- cuda-program.c ---- */
struct TinyPluginProgram {
  CudaModule module;
  CudaFunction function;
  uint32_t group[3];
  uint32_t n_arguments;
};
TinyStatus
cuda_program_load (CudaDevice *, const TinyProgramArgs *, CudaProgram **out, CudaError *);
void cuda_program_unload (CudaDevice *, CudaProgram *);
TinyStatus cuda_launch (CudaDevice *, CudaStream, const TinyCommand *, CudaError *);
