/* SPDX-License-Identifier: MIT
 *
 * webgpu.h: what the parts of the WebGPU backend give each other. Everything here is hidden in the module. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tiny-plugin-kit.h"
#include "webgpu-api.h"

typedef TinyPluginError Error;
typedef TinyPluginDevice Device;
typedef TinyPluginProgram Program;

/* ---- webgpu-library.c: the library, and waiting for it ---- */
typedef struct {
#define FUNCTION(result, name, parameters, arguments) result (*name) parameters;
#define OPTIONAL                                      FUNCTION
#include "webgpu-symbols.def"
} WebgpuFunctions;

extern WebgpuFunctions wgpu;       /* filled by webgpu_library_open() */
extern WGPUInstance wgpu_instance; /* of the open library, else NULL */

/* Opens the library and makes the instance unless that was done. Not thread-safe: the core calls
 * module functions one at a time. */
TinyStatus webgpu_library_open (Error *error);
void webgpu_library_close (void);
/* False: the members of @limits do not lie where ours do, as far as numbers can tell. */
bool webgpu_check_limits (WGPUAdapter adapter, WGPULimits *limits);
/* Into @out, ended and shortened to its size. */
void webgpu_copy_text (char *out, size_t size, WGPUStringView text);

/* What a callback said. */
typedef struct {
  atomic_bool is_done;
  bool is_good;
  uintptr_t value; /* the object that was asked for, the kind of an error */
  char text[900];
} WebgpuAnswer;
#define WEBGPU_ASK(name, answer)                                                               \
  {                                                                                            \
    .mode = WGPUCallbackMode_AllowProcessEvents, .callback = name, .userdata1 = answer         \
  }
/* Defines the callback @name that fills a WebgpuAnswer. @value: of it, when a parameter that follows
 * gives one. */
#define WEBGPU_ON(name, Status, value, ...)                                                    \
  static void name (Status status, ##__VA_ARGS__, WGPUStringView text, void *out,              \
                    void *unused)                                                              \
  {                                                                                            \
    webgpu_answer (out, status == Status##_Success, (uintptr_t) (value), text);                \
  }
/* One of a few that are never freed: a callback that comes too late finds nothing of anybody's. */
WebgpuAnswer *webgpu_ask (void);
void webgpu_answer (WebgpuAnswer *out, bool is_good, uintptr_t value, WGPUStringView text);
/* Until the callback came, or for ten minutes; @device may be NULL. Sleeps in the library where that
 * can wait. */
void webgpu_wait (WGPUDevice device, WGPUFuture future, const WebgpuAnswer *answer);

/* ---- webgpu-target.c, webgpu-dialect.c: what an adapter can do, and how it is spelt ---- */

/* Properties of an adapter that matter to code, in the order of the architecture's text: 16-bit floats. Of its shader compiler: it
 * flushes subnormals; results of AND are to be kept apart from what they are joined with; how many rounds all loops of
 * a work-item make before it ends them, 0 for any number. The most buffers of a kernel; bytes of a work-group's memory;
 * the most items of one, in all and along an axis. */
#define WEBGPU_FIELDS(F)                                                                       \
  F (f16) F (flush) F (apart) F (rounds) F (buffers) F (local) F (items) F (x) F (y) F (z)
#define WEBGPU_FIELD(name) uint64_t name;
typedef struct {
  WEBGPU_FIELDS (WEBGPU_FIELD)
} WebgpuArch;
#define WEBGPU_NAME(name) #name,
static const char *const webgpu_names[] = { WEBGPU_FIELDS (WEBGPU_NAME) };
#define WEBGPU_ARCH "wgsl", webgpu_names, TINY_KIT_N (webgpu_names)

enum { MAX_BUFFERS = 64, MAX_VARIABLES = 12 }; /* of one program; the standard promises 12 */
extern const TinyHost *webgpu_host;
extern const TinyDialect webgpu_dialect;
TinyStatus webgpu_target (const char *arch, TinyTarget *out, Error *error);
TinyStatus webgpu_compile (const TinyCompileArgs *, void **out, uint64_t *out_size, Error *);
/* How many grid points one work-group runs: where the kernel has no groups of its own, as many as fill
 * the machine's vectors. */
uint32_t webgpu_points (const uint32_t group[3]);
/* The first line of a compiled program: of webgpu_points(), variables and buffers. */
#define WEBGPU_HEAD "//tiny wgsl 1 points=%u variables=%u buffers=%u\n"

/* ---- webgpu-device.c: devices, their memory and their complaints ---- */
enum { MAX_UNIFORM_BYTES = 1 << 16, STAGING_BYTES = 1 << 23 };
struct TinyPluginDevice {
  WGPUDevice handle;
  WGPUQueue queue;
  WGPULimits limits;
  TinyDeviceInfo info;
  pthread_mutex_t lock; /* held by every call that uses the queue or an error scope */
  WGPUBuffer staging;   /* for downloads; under the lock */
  WGPUBuffer uniforms;  /* for the numbers that launches are given; under the lock */
  unsigned char numbers[MAX_UNIFORM_BYTES]; /* what will be there */
  WGPUBuffer ticks;                         /* where the two timestamps are resolved to */
  WGPUQuerySet queries;                     /* NULL: it has none */
  atomic_bool is_lost;
  char lost_text[256];
  char stray_text[512]; /* of an error that no scope caught */
};
extern const TinyDeviceTable webgpu_device_table;
TinyStatus webgpu_device_open (WGPUAdapter, const char *name, Device **out, Error *error);
WGPUBuffer webgpu_new_buffer (Device *self, uint64_t n_bytes, WGPUBufferUsage usage);
/* The device is locked between these two. What the library complains of becomes the answer of the
 * second, else that is @status; @invalid is for what the library calls invalid. */
void webgpu_scope_open (Device *self);
TinyStatus webgpu_scope_close (
    Device *self, const char *what, TinyStatus invalid, TinyStatus status, Error *error);
/* Looks whether the device is lost, and remembers: wgpu-native ends the program when a lost one is given
 * work or asked for mapped memory, and its callback comes too late. */
bool webgpu_is_lost (Device *self);

/* ---- webgpu-probe.c ---- */

/* Adds to @arch what an open device is seen to do. */
TinyStatus webgpu_probe (Device *self, WebgpuArch *arch, Error *error);

/* ---- webgpu-program.c, webgpu-queue.c ---- */
#define WEBGPU_ENTRY "tiny_kernel_"
struct TinyPluginProgram {
  WGPUComputePipeline pipeline;
  WGPUBindGroupLayout buffers, variables;
  char entry[128]; /* WEBGPU_ENTRY and the kernel's name */
  uint32_t points_per_group;
};
TinyStatus webgpu_program_load (Device *, const TinyProgramArgs *, Program **out, Error *);
void webgpu_program_unload (Device *device, Program *self);
TinyStatus webgpu_submit (Device *, TinyPluginQueue *, const TinySubmit *submit, Error *error);
