/* SPDX-License-Identifier: MIT
 *
 * webgpu.h: what the parts of the WebGPU backend give each other. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tiny-plugin.h"
#include "webgpu-api.h"

/* ---- the library (webgpu-library.c) ---- */
typedef struct {
#define FUNCTION(result, name, parameters, arguments) result (*name) parameters;
#define OPTIONAL                                      FUNCTION
#include "webgpu-symbols.def"
#undef OPTIONAL
#undef FUNCTION
} WebgpuFunctions;

extern WebgpuFunctions wgpu;       /* filled by webgpu_library_open() */
extern WGPUInstance wgpu_instance; /* of the open library, else NULL */

/* Opens the library and makes the instance unless that was done. Not thread-safe: the core calls
 * module functions one at a time. */
TinyStatus webgpu_library_open (TinyPluginError *error);
void webgpu_library_close (void);
/* Whether the members of @limits lie where ours do, as far as numbers can tell. */
bool webgpu_check_limits (WGPUAdapter adapter, WGPULimits *limits);

/* What a callback said. */
typedef struct {
  atomic_bool is_done;
  bool is_good;
  void *object; /* that was asked for */
  WGPUErrorType error;
  char text[900];
} WebgpuAnswer;
#define WEBGPU_ANSWER_MODE(name, answer)                                                       \
  {                                                                                            \
    .mode = WGPUCallbackMode_AllowProcessEvents, .callback = name, .userdata1 = answer         \
  }
void webgpu_answer (WebgpuAnswer *answer, bool is_good, void *object, WGPUStringView text);
/* Until the callback came; @device may be NULL. Sleeps in the library where that can wait. */
bool webgpu_wait (WGPUDevice device, WGPUFuture future, const WebgpuAnswer *answer);

/* ---- errors (webgpu-error.c) ---- */
TinyStatus webgpu_fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
void webgpu_hint (TinyPluginError *error, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
/* Into @out, ended and shortened to its size. */
void webgpu_copy_text (char *out, size_t size, WGPUStringView text);
uint64_t webgpu_now_ns (void);

/* What the library complains of between these two becomes the answer of the second; @invalid is the
 * status of what it calls invalid. The device's lock is held. */
void webgpu_scope_open (TinyPluginDevice *device);
TinyStatus webgpu_scope_close (TinyPluginDevice *device,
                               const char *what,
                               TinyStatus invalid,
                               TinyPluginError *error);
/* Looks whether the device is lost, and remembers: wgpu-native ends the program when a lost one is given
 * work or asked for mapped memory, and its callback comes too late. */
bool webgpu_is_lost (TinyPluginDevice *device);
void webgpu_on_lost (const WGPUDevice *handle,
                     WGPUDeviceLostReason reason,
                     WGPUStringView message,
                     void *device,
                     void *unused);
void webgpu_on_error (const WGPUDevice *handle,
                      WGPUErrorType type,
                      WGPUStringView message,
                      void *device,
                      void *unused);

/* ---- adapters (webgpu-adapter.c) ---- */
enum { MAX_ADAPTERS = 32 };
typedef struct {
  WGPUAdapter handle;
  char id[64]; /* "vulkan-10005:0": interface, vendor's and device's number, how many before */
  char name[128];
  char driver[64];
  WGPUAdapterType type;
} WebgpuAdapter;
/* Fills @out; the handles are the caller's to release. */
TinyStatus webgpu_adapters (WebgpuAdapter *out, uint32_t *out_n, TinyPluginError *error);

/* ---- the target (webgpu-target.c) ---- */
/* What of an adapter matters to code; its text is the architecture. */
typedef struct {
  bool f16;
  uint32_t max_buffers, max_groups, local_bytes, items, items_per_axis[3];
} WebgpuArch;
extern const WebgpuArch webgpu_least_arch; /* what every adapter has */
void webgpu_arch_to_string (const WebgpuArch *arch, char out[256]);
/* Changes in @out what @text names. */
bool webgpu_arch_from_string (const char *text, WebgpuArch *out);

TinyStatus webgpu_target (const char *arch, TinyTarget *out, TinyPluginError *error);
TinyStatus webgpu_compile (const TinyCompileArgs *args,
                           void **out_data,
                           uint64_t *out_size,
                           TinyPluginError *error);
extern const TinyDialect webgpu_dialect;
extern const TinyHost *webgpu_host;

/* ---- devices ---- */
struct TinyPluginBuffer {
  WGPUBuffer handle;
  uint64_t n_bytes; /* as asked for; the memory is a multiple of 4, and never none */
};

enum { MAX_BUFFERS = 64, MAX_VARIABLES = 12 }; /* of one program; the standard promises 12 */
struct TinyPluginProgram {
  WGPUComputePipeline pipeline;
  WGPUBindGroupLayout buffers, variables;
  char name[128];
  uint32_t n_params, n_variables;
  uint32_t points_per_group;
};

struct TinyPluginDevice {
  WGPUAdapter adapter;
  WGPUDevice handle;
  WGPUQueue queue;
  WGPULimits limits;
  double ns_per_tick;
  TinyDeviceInfo info;
  pthread_mutex_t lock; /* held by every call that uses the queue or an error scope */
  WGPUBuffer staging;   /* for downloads; under the lock */
  uint64_t staging_bytes;
  WGPUBuffer uniforms;  /* for the numbers that launches are given; under the lock */
  WGPUQuerySet queries; /* two timestamps, and where they are resolved to; NULL: it has none */
  WGPUBuffer ticks;
  atomic_bool is_lost;
  char lost_text[256];
  char stray_text[512]; /* of an error that no scope caught */
};

extern const TinyDeviceTable webgpu_device_table;
TinyStatus webgpu_device_open (const char *id, TinyPluginDevice **out, TinyPluginError *error);
WGPUBuffer
webgpu_new_buffer (TinyPluginDevice *device, uint64_t n_bytes, WGPUBufferUsage usage);
TinyStatus webgpu_program_load (TinyPluginDevice *device,
                                const TinyProgramArgs *args,
                                TinyPluginProgram **out,
                                TinyPluginError *error);
void webgpu_program_unload (TinyPluginDevice *device, TinyPluginProgram *program);
TinyStatus webgpu_submit (TinyPluginDevice *device,
                          TinyPluginQueue *queue,
                          const TinySubmit *submit,
                          TinyPluginError *error);
