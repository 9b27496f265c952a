/* SPDX-License-Identifier: MIT
 *
 * cuda-device.c: a device, its context and memory, and the device table.
 *
 * The context is the primary one, which other libraries of the process share, so that their memory can be imported;
 * it is a thread's current one only during a call. An error of a kernel's is sticky: all that is asked in the context
 * afterwards fails as well, and the device is lost for this process. */
#include <unistd.h>

#include "cuda.h"

/* ---- the context ---- */
TinyStatus
cuda_enter (CudaDevice *device, CudaError *error)
{
  if (device->process != getpid ()) {
    tiny_fail (error, TINY_STATUS_DRIVER, "%s was opened before fork ()", device->info.name);
    return tiny_hint (
        TINY_STATUS_DRIVER, error,
        "the driver works in one process: open the device in the child, by exec ()");
  }
  pthread_mutex_lock (&device->lock);
  const bool is_lost = device->is_lost;
  if (is_lost)
    tiny_fail (error, TINY_STATUS_DEVICE_LOST, "%s", device->lost);
  pthread_mutex_unlock (&device->lock);
  return is_lost ? TINY_STATUS_DEVICE_LOST
                 : cuda_answer (device, error, TINY_STATUS_DRIVER,
                                cuda.CtxPushCurrent (device->context), "entering the context");
}

void
cuda_leave (void)
{
  CudaContext context;
  cuda.CtxPopCurrent (&context);
}

TinyStatus
cuda_answer (
    CudaDevice *device, CudaError *error, TinyStatus status, int code, const char *what)
{
  CudaError own = { .struct_size = sizeof own };
  status = cuda_check (&own, status, code, what);
  if (status == TINY_STATUS_OK)
    return status;
  cuda_check (error, status, code, what);
  if (status != TINY_STATUS_DEVICE_LOST)
    return status;
  pthread_mutex_lock (&device->lock);
  if (!device->is_lost)
    snprintf (device->lost, sizeof device->lost, "%.250s", own.text);
  device->is_lost = true;
  tiny_fail (error, status, "%s", device->lost); /* the first reason, each time */
  pthread_mutex_unlock (&device->lock);
  return status;
}

/* ---- opening ---- */
static int
get_attribute (const CudaDevice *device, int attribute)
{
  int value = 0;
  return cuda.DeviceGetAttribute (&value, attribute, device->number) == CUDA_SUCCESS ? value
                                                                                     : 0;
}

/* The architecture as the compiler knows it: with suffix a where there is one, as code is for this device alone. */
static TinyStatus
fill_arch (CudaDevice *self, CudaError *error)
{
  char text[32];
  int version = 0;
  const int major = get_attribute (self, CUDA_CAPABILITY_MAJOR);
  const uint32_t sm = (uint32_t) (major * 10 + get_attribute (self, CUDA_CAPABILITY_MINOR));
  const NvidiaRow *row = nvidia_find_row (sm);
  if (row == NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED,
                      "%s is an sm_%u, for which no code is made: sm_75 to sm_121 are",
                      self->info.name, sm);
  snprintf (text, sizeof text, "sm_%u%s", sm, row->has_a ? "a" : "");
  TINY_TRY (nvidia_arch_parse (text, &self->arch, error));
  cuda.DriverGetVersion (&version);
  const int processors = get_attribute (self, CUDA_MULTIPROCESSORS);
  const int l2 = get_attribute (self, CUDA_L2_BYTES);
  self->arch.cuda = (uint64_t) (version / 1000);
  self->arch.threads = processors > 0 ? (uint64_t) processors : self->arch.threads;
  self->arch.l2 = l2 > 0 ? (uint64_t) l2 : self->arch.l2;
  return nvidia_arch_print (&self->arch, self->info.arch, error);
}

static TinyStatus
fill_info (CudaDevice *self, CudaError *error)
{
  size_t n_bytes = 0;
  self->info
      = (TinyDeviceInfo){ .struct_size = sizeof self->info, .alignment = CUDA_ALIGNMENT };
  TINY_TRY (
      cuda_check (error, TINY_STATUS_DRIVER,
                  cuda.DeviceGetName (self->info.name, sizeof self->info.name, self->number),
                  "asking for a device's name"));
  TINY_TRY (cuda_check (error, TINY_STATUS_DRIVER, cuda.DeviceTotalMem (&n_bytes, self->number),
                        "asking for a device's memory"));
  TINY_TRY (fill_arch (self, error));
  self->info.memory_bytes = self->info.max_buffer_bytes = n_bytes;
  self->info.n_threads = (uint32_t) self->arch.threads;
  return TINY_STATUS_OK;
}

/* Devices that CUDA_VISIBLE_DEVICES hides are none to the driver. */
static TinyStatus
find_number (const char *id, int *out, CudaError *error)
{
  const int code = strncmp (id, "pci-", 4) == 0 ? cuda.DeviceGetByPCIBusId (out, id + 4)
                                                : cuda.DeviceGet (out, 0);
  const TinyStatus status = cuda_check (error, TINY_STATUS_NO_DEVICE, code, id);
  return status == TINY_STATUS_OK
             ? status
             : tiny_hint (status, error,
                          "the driver does not show it: see CUDA_VISIBLE_DEVICES");
}

TinyStatus
cuda_device_open (const char *id, CudaDevice **out, CudaError *error)
{
  CudaDevice self = { .process = getpid (), .lock = PTHREAD_MUTEX_INITIALIZER };
  TINY_TRY (cuda_open_driver (error));
  TINY_TRY (find_number (id, &self.number, error));
  TINY_TRY (fill_info (&self, error));
  TINY_TRY (cuda_check (error, TINY_STATUS_DRIVER,
                        cuda.DevicePrimaryCtxRetain (&self.context, self.number),
                        self.info.name));
  *out = malloc (sizeof self);
  if (*out == NULL) {
    cuda.DevicePrimaryCtxRelease (self.number);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a device");
  }
  **out = self;
  return TINY_STATUS_OK;
}

static void
device_close (CudaDevice *device)
{
  if (device->process == getpid ())
    cuda.DevicePrimaryCtxRelease (device->number);
  free (device);
}

static TinyStatus
device_info (CudaDevice *device, TinyDeviceInfo *out, CudaError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  tiny_fill_struct (out, &device->info, sizeof *out);
  return TINY_STATUS_OK;
}

static TinyStatus
device_context (CudaDevice *device, void **out, CudaError *error)
{
  *out = device->context;
  return TINY_STATUS_OK;
}

/* ---- memory ---- */
static TinyStatus
new_buffer (
    CudaAddress memory, uint64_t n_bytes, bool is_imported, CudaBuffer **out, CudaError *error)
{
  *out = malloc (sizeof **out);
  if (*out == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer");
  **out = (CudaBuffer){ .memory = memory, .n_bytes = n_bytes, .is_imported = is_imported };
  return TINY_STATUS_OK;
}

/* With the context current. */
static TinyStatus
allocate (CudaDevice *device, uint64_t n_bytes, CudaBuffer **out, CudaError *error)
{
  CudaAddress memory = 0;
  TINY_TRY (cuda_answer (device, error, TINY_STATUS_OUT_OF_MEMORY,
                         cuda.MemAlloc (&memory, n_bytes > 0 ? n_bytes : 1),
                         "making a buffer"));
  TinyStatus status = memory % CUDA_ALIGNMENT == 0
                          ? new_buffer (memory, n_bytes, false, out, error)
                          : tiny_fail (error, TINY_STATUS_DRIVER,
                                       "memory is not aligned to %d bytes", CUDA_ALIGNMENT);
  if (status != TINY_STATUS_OK)
    cuda.MemFree (memory);
  return status;
}

static TinyStatus
device_alloc (CudaDevice *device, uint64_t n_bytes, CudaBuffer **out, CudaError *error)
{
  if (n_bytes > device->info.max_buffer_bytes)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY,
                      "a buffer of %llu bytes, and %s has %llu", (unsigned long long) n_bytes,
                      device->info.name, (unsigned long long) device->info.max_buffer_bytes);
  TINY_TRY (cuda_enter (device, error));
  const TinyStatus status = allocate (device, n_bytes, out, error);
  cuda_leave ();
  return status;
}

static void
device_free (CudaDevice *device, CudaBuffer *buffer)
{
  if (!buffer->is_imported && cuda_enter (device, NULL) == TINY_STATUS_OK) {
    cuda.MemFree (buffer->memory);
    cuda_leave ();
  }
  free (buffer);
}

/* With the context current: @handle is an address in memory of this device's, which is a buffer from there on. */
static TinyStatus
import (CudaDevice *device,
        CudaAddress memory,
        CudaBuffer **out,
        uint64_t *out_n_bytes,
        CudaError *error)
{
  static const char what[] = "importing an address";
  unsigned type = 0, ordinal = 0;
  CudaAddress base = 0;
  size_t size = 0;
  TINY_TRY (cuda_answer (device, error, TINY_STATUS_INVALID,
                         cuda.PointerGetAttribute (&type, CUDA_POINTER_MEMORY_TYPE, memory),
                         what));
  TINY_TRY (cuda_answer (
      device, error, TINY_STATUS_INVALID,
      cuda.PointerGetAttribute (&ordinal, CUDA_POINTER_DEVICE_ORDINAL, memory), what));
  if (type != CUDA_MEMORY_DEVICE || ordinal != (unsigned) device->number
      || memory % CUDA_ALIGNMENT != 0)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "%s: it is to be memory of %s, aligned to %d bytes", what,
                      device->info.name, CUDA_ALIGNMENT);
  TINY_TRY (cuda_answer (device, error, TINY_STATUS_INVALID,
                         cuda.MemGetAddressRange (&base, &size, memory), what));
  *out_n_bytes = size - (memory - base);
  return new_buffer (memory, *out_n_bytes, true, out, error);
}

static TinyStatus
device_import (
    CudaDevice *device, void *handle, CudaBuffer **out, uint64_t *out_n_bytes, CudaError *error)
{
  if (cuda.MemGetAddressRange == NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "the driver does not tell memory's size");
  TINY_TRY (cuda_enter (device, error));
  const TinyStatus status = import (device, (CudaAddress) handle, out, out_n_bytes, error);
  cuda_leave ();
  return status;
}

const TinyDeviceTable cuda_device_table = {
  .struct_size = sizeof (TinyDeviceTable),
  .close = device_close,
  .info = device_info,
  .alloc = device_alloc,
  .free = device_free,
  .queue_create = cuda_queue_create,
  .queue_destroy = cuda_queue_destroy,
  .submit = cuda_submit,
  .program_load = cuda_program_load,
  .program_unload = cuda_program_unload,
  .import = device_import,
  .context = device_context,
  .wait = cuda_wait,
  .reached = cuda_reached,
};
