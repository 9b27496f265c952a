/* SPDX-License-Identifier: MIT
 *
 * cpu-device.c: the device table of this machine's processors: memory, programs, submission.
 *
 * Buffers are host memory, so copies are memcpy and map() costs nothing. submit() runs its commands
 * at once on the calling thread; a dispatch spreads over the pool when it is worth a wake-up, which
 * the program's earlier launches tell: it remembers what a grid point took. */
#include "cpu-lapack.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  BUFFER_ALIGNMENT = 64,
  MAPPED_BYTES
  = 1 << 21,       /* from here on a buffer has its own pages, huge ones if there are any */
  INLINE_NS = 3000 /* a launch shorter than this runs on the caller alone */
};

struct TinyPluginDevice {
  CpuPool *pool;
  char name[128], arch[256];
  uint64_t memory_bytes;
};

struct TinyPluginBuffer {
  TinyPluginDevice *device;
  void *data;
  uint64_t n_bytes, n_mapped;
  bool is_foreign; /* the memory is somebody else's */
};

struct TinyPluginQueue {
  TinyPluginDevice *device;
};

struct TinyPluginProgram {
  TinyPluginDevice *device;
  CpuObject object;
  bool is_operation; /* LAPACK computes it; there is no object */
  TinyOperation operation;
  uint32_t n_params, n_variables;
  _Atomic uint32_t ps_per_point; /* 0: not measured yet */
};

/* ---- opening ---- */

static void
read_processor_name (char *out, size_t size)
{
  snprintf (out, size, "CPU");
  FILE *file = fopen ("/proc/cpuinfo", "re");
  char line[256];
  while (file != NULL && fgets (line, sizeof line, file) != NULL) {
    const char *value = strchr (line, ':');
    if (strncmp (line, "model name", 10) != 0 || value == NULL)
      continue;
    value += strspn (value, ": \t");
    snprintf (out, size, "%.*s", (int) strcspn (value, "\n"), value);
    break;
  }
  if (file != NULL)
    fclose (file);
}

static uint64_t
get_memory_bytes (void)
{
  long n_pages = sysconf (_SC_PHYS_PAGES), n_bytes = sysconf (_SC_PAGESIZE);
  return n_pages > 0 && n_bytes > 0 ? (uint64_t) n_pages * (uint64_t) n_bytes : 0;
}

TinyStatus
cpu_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  if (n == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "scan: no count");
  uint32_t room = *n;
  *n = 1;
  if (room == 0 || out == NULL)
    return TINY_STATUS_OK;
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .device_class = TINY_CLASS_CPU);
  snprintf (out->id, sizeof out->id, "cpu");
  read_processor_name (out->name, sizeof out->name);
  return TINY_STATUS_OK;
}

static void
device_close (TinyPluginDevice *device)
{
  if (device == NULL)
    return;
  cpu_pool_free (device->pool);
  free (device);
}

static TinyStatus
device_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_DEVICE_HOST_MEMORY);
  memcpy (out->name, device->name, sizeof out->name);
  memcpy (out->arch, device->arch, sizeof out->arch);
  out->memory_bytes = out->max_buffer_bytes = device->memory_bytes;
  out->alignment = BUFFER_ALIGNMENT;
  out->n_threads = cpu_pool_get_n_threads (device->pool);
  return TINY_STATUS_OK;
}

/* ---- memory ---- */

static TinyStatus
device_alloc (TinyPluginDevice *device,
              uint64_t n_bytes,
              TinyPluginBuffer **out,
              TinyPluginError *error)
{
  /* Linux lends more than there is and kills the program that uses it: say no at once. */
  uint64_t most = device->memory_bytes > 0 ? device->memory_bytes : INT64_MAX;
  TinyPluginBuffer *buffer = n_bytes <= most ? calloc (1, sizeof *buffer) : NULL;
  if (buffer != NULL) {
    *buffer = (TinyPluginBuffer){ .device = device, .n_bytes = n_bytes };
    if (n_bytes >= MAPPED_BYTES) {
      void *pages
          = mmap (NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pages != MAP_FAILED) {
        madvise (pages, n_bytes, MADV_HUGEPAGE);
        buffer->data = pages;
        buffer->n_mapped = n_bytes;
      }
    } else if (posix_memalign (&buffer->data, BUFFER_ALIGNMENT,
                               n_bytes > 0 ? (n_bytes + 63) & ~UINT64_C (63) : 64)
               != 0) {
      buffer->data = NULL;
    }
  }
  if (buffer == NULL || buffer->data == NULL) {
    free (buffer);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer of %llu bytes",
                      (unsigned long long) n_bytes);
  }
  *out = buffer;
  return TINY_STATUS_OK;
}

static void
device_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  if (buffer == NULL)
    return;
  if (buffer->n_mapped > 0)
    munmap (buffer->data, buffer->n_mapped);
  else if (!buffer->is_foreign)
    free (buffer->data);
  free (buffer);
}

static TinyStatus
device_import_host (TinyPluginDevice *device,
                    void *memory,
                    uint64_t n_bytes,
                    TinyPluginBuffer **out,
                    TinyPluginError *error)
{
  if (memory == NULL || (uintptr_t) memory % BUFFER_ALIGNMENT != 0)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "host memory at %p is not aligned to %d bytes", memory, BUFFER_ALIGNMENT);
  TinyPluginBuffer *buffer = calloc (1, sizeof *buffer);
  if (buffer == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer");
  *buffer = (TinyPluginBuffer){
    .device = device, .data = memory, .n_bytes = n_bytes, .is_foreign = true
  };
  *out = buffer;
  return TINY_STATUS_OK;
}

static TinyStatus
device_map (TinyPluginDevice *device,
            TinyPluginBuffer *buffer,
            void **out,
            TinyPluginError *error)
{
  if (buffer == NULL || buffer->device != device)
    return tiny_fail (error, TINY_STATUS_INVALID, "map: another device's buffer");
  *out = buffer->data;
  return TINY_STATUS_OK;
}

/* ---- programs ---- */

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->data == NULL || args->name == NULL || args->arch == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "program: incomplete arguments");
  if (args->n_params > CPU_MAX_PARAMS)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "%s: %u buffers, at most %d", args->name,
                      args->n_params, CPU_MAX_PARAMS);
  CpuArch arch;
  char missing[256];
  bool is_portable = strcmp (args->arch, CPU_PORTABLE_ARCH) == 0;
  TinyStatus status
      = cpu_arch_parse (is_portable ? cpu_portable_host_arch : args->arch, &arch, error);
  if (status != TINY_STATUS_OK)
    return status;
  if (cpu_arch_missing (&arch, missing))
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "%s: this processor lacks %s", args->name,
                      missing);

  TinyPluginProgram *program = calloc (1, sizeof *program);
  if (program == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  program->device = device;
  program->n_params = args->n_params;
  program->n_variables = args->n_variables;
  program->is_operation = cpu_lapack_is_program (args->data, args->size);
  status
      = program->is_operation
            ? cpu_lapack_load (args->data, args->size, args->name, &program->operation, error)
            : cpu_object_load (args->data, args->size, args->name, &program->object, error);
  if (status != TINY_STATUS_OK) {
    free (program);
    return status;
  }
  *out = program;
  return TINY_STATUS_OK;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  if (program == NULL)
    return;
  if (!program->is_operation)
    cpu_object_unload (&program->object);
  free (program);
}

/* ---- submission ---- */

static TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  TinyPluginQueue *queue = malloc (sizeof *queue);
  if (queue == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a queue");
  queue->device = device;
  *out = queue;
  return TINY_STATUS_OK;
}

static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  free (queue);
}

/* The address of a span; NULL when it is not wholly inside a buffer of this device. */
static inline void *
get_address (const TinyPluginDevice *device, const TinySpan *span)
{
  const TinyPluginBuffer *buffer = span->buffer;
  if (buffer == NULL || buffer->device != device || span->offset > buffer->n_bytes
      || span->n_bytes > buffer->n_bytes - span->offset)
    return NULL;
  return (char *) buffer->data + span->offset;
}

static TinyStatus
run_copy (TinyPluginDevice *device, const TinyCommand *command, TinyPluginError *error)
{
  bool has_dst = command->type != TINY_COMMAND_DOWNLOAD;
  bool has_src = command->type != TINY_COMMAND_UPLOAD;
  void *dst = has_dst ? get_address (device, &command->dst) : command->host;
  const void *src = has_src ? get_address (device, &command->src) : command->host;
  uint64_t n_bytes = has_dst ? command->dst.n_bytes : command->src.n_bytes;
  if (has_dst && has_src && command->src.n_bytes != n_bytes)
    return tiny_fail (error, TINY_STATUS_INVALID, "copy of %llu bytes into %llu",
                      (unsigned long long) command->src.n_bytes, (unsigned long long) n_bytes);
  if ((has_dst && dst == NULL) || (has_src && src == NULL)
      || (command->host == NULL && n_bytes > 0 && !(has_dst && has_src)))
    return tiny_fail (error, TINY_STATUS_INVALID, "copy outside a buffer");
  if (n_bytes > 0)
    memcpy (dst, src, n_bytes);
  return TINY_STATUS_OK;
}

static TinyStatus
check_dispatch (const TinyPluginDevice *device,
                const TinyCommand *command,
                TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  const uint32_t *grid = command->grid;
  if (program == NULL || program->device != device)
    return tiny_fail (error, TINY_STATUS_INVALID, "dispatch: another device's program");
  if (program->is_operation && command->n_buffers != program->operation.n_buffers)
    return tiny_fail (error, TINY_STATUS_INVALID, "dispatch: %u buffers, the program has %u",
                      command->n_buffers, program->operation.n_buffers);
  if (command->n_buffers != program->n_params || command->n_variables != program->n_variables)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "dispatch: %u buffers and %u variables, the program has %u and %u",
                      command->n_buffers, command->n_variables, program->n_params,
                      program->n_variables);
  /* The code divides by the first two extents as constants; a kernel of one axis has none. */
  const uint32_t *made_for = program->object.grid;
  if (grid[0] > INT32_MAX || grid[1] > INT32_MAX || grid[2] > INT32_MAX
      || (made_for[0] != 0
          && ((grid[0] != made_for[0] && (made_for[1] != 1 || made_for[2] != 1))
              || (grid[1] != made_for[1] && made_for[2] != 1)
              || (grid[1] != 1 && made_for[1] == 1) || (grid[2] != 1 && made_for[2] == 1)
              || (grid[0] != 1 && made_for[0] == 1))))
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "dispatch of grid (%u, %u, %u), the program is made for (%u, %u, %u)",
                      grid[0], grid[1], grid[2], made_for[0], made_for[1], made_for[2]);
  return TINY_STATUS_OK;
}

/* Runs the grid, alone or with the pool, and remembers what a point took. */
static void
run_grid (TinyPluginDevice *device,
          TinyPluginProgram *program,
          void **buffers,
          const int64_t *variables,
          int64_t n_points)
{
  CpuKernel entry = program->object.entry;
  if (n_points <= 1) {
    entry (buffers, variables, 0, n_points);
    return;
  }
  uint64_t before = atomic_load_explicit (&program->ps_per_point, memory_order_relaxed);
  bool is_alone = before > 0 && (uint64_t) n_points < (uint64_t) INLINE_NS * 1000 / before + 1;
  uint64_t now
      = cpu_pool_run (is_alone ? NULL : device->pool, entry, buffers, variables, n_points);
  if (now == 0)
    return;
  now = before > 0 ? (before + now + 1) / 2 : now; /* half the weight on the past */
  now = now > UINT32_MAX ? UINT32_MAX : now;
  atomic_store_explicit (&program->ps_per_point, (uint32_t) now, memory_order_relaxed);
}

static TinyStatus
run_operation (TinyPluginDevice *device,
               const TinyCommand *command,
               void *const *buffers,
               TinyPluginError *error)
{
  const TinyOperation *operation = &command->program->operation;
  for (uint32_t i = 0; i < command->n_buffers; i++)
    if (command->buffers[i].n_bytes < cpu_lapack_count_bytes (operation, i))
      return tiny_fail (error, TINY_STATUS_INVALID, "dispatch: buffer %u is too small", i);
  return cpu_lapack_run (device->pool, operation, buffers, error);
}

static TinyStatus
run_dispatch (TinyPluginDevice *device, const TinyCommand *command, TinyPluginError *error)
{
  TinyStatus status = check_dispatch (device, command, error);
  if (status != TINY_STATUS_OK)
    return status;
  void *buffers[CPU_MAX_PARAMS];
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    buffers[i] = get_address (device, &command->buffers[i]);
    if (buffers[i] == NULL)
      return tiny_fail (error, TINY_STATUS_INVALID, "dispatch: buffer %u is outside its memory",
                        i);
    if (command->buffers[i].offset % BUFFER_ALIGNMENT != 0) /* stores may rely on it */
      return tiny_fail (error, TINY_STATUS_INVALID, "dispatch: buffer %u is not aligned to %d",
                        i, BUFFER_ALIGNMENT);
  }
  if (command->program->is_operation)
    return run_operation (device, command, buffers, error);
  uint64_t n_points = (uint64_t) command->grid[0] * command->grid[1];
  if (n_points > 0 && command->grid[2] > INT64_MAX / n_points)
    return tiny_fail (error, TINY_STATUS_INVALID, "dispatch: the grid is too large");
  run_grid (device, command->program, buffers, command->variables,
            (int64_t) (n_points * command->grid[2]));
  return TINY_STATUS_OK;
}

static TinyStatus
run_command (TinyPluginDevice *device, const TinyCommand *command, TinyPluginError *error)
{
  switch (command->type) {
  case TINY_COMMAND_DISPATCH:
    return run_dispatch (device, command, error);
  case TINY_COMMAND_UPLOAD:
  case TINY_COMMAND_DOWNLOAD:
  case TINY_COMMAND_COPY:
    return run_copy (device, command, error);
  default:
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "no command of type %u", command->type);
  }
}

static TinyStatus
device_submit (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  if (queue == NULL || queue->device != device)
    return tiny_fail (error, TINY_STATUS_INVALID, "submit: incomplete arguments");
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    TINY_TRY (TINY_CHECK_IN (command, TINY_COMMAND_OVERLAPS, error));
    uint64_t start = submit->out_ns != NULL ? tiny_now_ns () : 0;
    TinyStatus status = run_command (device, command, error);
    if (status != TINY_STATUS_OK)
      return status;
    if (submit->out_ns != NULL)
      submit->out_ns[i] = tiny_now_ns () - start;
    at += command->struct_size; /* a newer core's commands are longer */
  }
  return TINY_STATUS_OK;
}

static const TinyDeviceTable device_table = {
  .struct_size = sizeof (TinyDeviceTable),
  .close = device_close,
  .info = device_info,
  .alloc = device_alloc,
  .free = device_free,
  .queue_create = queue_create,
  .queue_destroy = queue_destroy,
  .submit = device_submit,
  .program_load = program_load,
  .program_unload = program_unload,
  .map = device_map,
  .import_host = device_import_host,
};

TinyStatus
cpu_open (const char *id,
          TinyPluginDevice **out,
          const TinyDeviceTable **out_table,
          TinyPluginError *error)
{
  if (id == NULL || strcmp (id, "cpu") != 0)
    return tiny_fail (error, TINY_STATUS_NO_DEVICE, "no CPU '%s', there is 'cpu'",
                      id != NULL ? id : "");
  CpuArch arch;
  CpuThreads threads;
  TinyStatus status = cpu_arch_parse ("", &arch, error);
  if (status == TINY_STATUS_OK)
    status = cpu_threads_read (&threads, error);
  if (status == TINY_STATUS_OK)
    status = cpu_lapack_check (error);
  if (status != TINY_STATUS_OK)
    return status;
  TinyPluginDevice *device = calloc (1, sizeof *device);
  if (device == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for the device");
  status = cpu_pool_new (&threads, &device->pool, error);
  if (status != TINY_STATUS_OK) {
    free (device);
    return status;
  }
  cpu_arch_to_string (&arch, device->arch);
  read_processor_name (device->name, sizeof device->name);
  device->memory_bytes = get_memory_bytes ();
  *out = device;
  *out_table = &device_table;
  return TINY_STATUS_OK;
}
