/* SPDX-License-Identifier: MIT
 *
 * cl.h: what the files of the OpenCL backend share. Everything here is hidden in the module. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "cl-api.h"
#include "tiny-plugin-kit.h"

/* The name of the platform whose clang reads cl-builtins.c. */
#define CL_POCL "Portable Computing Language"
enum { CL_MAX_DEVICES = 32, CL_MAX_PARAMS = 120 };

typedef TinyPluginError ClError;
typedef TinyPluginDevice ClDevice;
typedef TinyPluginBuffer ClBuffer;
typedef TinyPluginQueue ClQueue;
typedef TinyPluginProgram ClProgram;

/* ---- cl-arch.c: architectures as text, such as "cl,int64,fp64,threads=2" ----
 *
 * All that the code for a device depends on, in the order of the text: many small work-groups rather
 * than few long loops; exp2, log2 and sin are the device's own; division and sqrt of f32 round
 * correctly; subnormal numbers become zero; number formats; bits of a vector register; compute units;
 * the most work-items of a group, and along its third axis; bytes of local memory; the most buffers of a kernel;
 * bytes of caches; and which device and driver it is, as a hash of their names. 0 is left out, =1 is not said. */
/* clang-format off */
#define CL_FIELDS(F) \
  F (groups) F (math) F (rounded) F (flush) F (int64) F (fp64) F (fp16) \
  F (bits) F (threads) F (group) F (z) F (local) F (params) F (l1) F (l2) F (l3) F (dev)
/* clang-format on */
#define CL_FIELD(name) uint64_t name;
typedef struct {
  CL_FIELDS (CL_FIELD)
} ClArch;
#define CL_NAME(name) #name,
static const char *const cl_names[] = { CL_FIELDS (CL_NAME) };
#define CL_ARCH "cl", cl_names, TINY_KIT_N (cl_names)

TinyStatus cl_target (const char *text, TinyTarget *out, ClError *error);

/* ---- cl-driver.c: the loader and what it offers ---- */

/* A device of some platform that can run our kernels; found once, opened once, never really closed. */
struct TinyPluginDevice {
  cl_device_id device;
  cl_context context; /* once it was opened */
  TinyCandidate candidate;
  TinyDeviceInfo info;
  ClArch arch;
  bool is_pocl;
  pthread_mutex_t lock; /* of kernels' arguments while commands are enqueued */
};
extern ClDevice cl_devices[];
extern uint32_t cl_n_devices;
extern ClApi cl;

/* Opens the loader and asks for its devices when that has not been done. The best come first. For functions
 * that the core serialises. */
TinyStatus cl_find_devices (ClError *error);
/* CL_SUCCESS is OK; else what OpenCL answered when it was to do @what: a status that fits, or @status. */
TinyStatus cl_check (ClError *error, TinyStatus status, cl_int code, const char *what);

/* ---- cl-dialect.c, cl-program.c: kernels ---- */
extern const TinyDialect cl_dialect;
extern const TinyHost *cl_host;

/* ---- cl-builtins.c: declarations before a source, and the option that leaves the driver's own out ---- */
extern const char cl_builtins[], cl_builtins_option[];

/* How a kernel is launched; before the driver's binary or the source. */
typedef struct {
  uint32_t dev, is_binary, variable_bytes;
  uint32_t has_free_groups; /* the driver puts work-items into groups as it likes */
  char options[256];
} ClHead;
struct TinyPluginProgram {
  ClHead head;
  size_t group[3];
  cl_program program;
  cl_kernel kernel;
};
TinyStatus cl_compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, ClError *);
TinyStatus cl_program_load (ClDevice *, const TinyProgramArgs *, ClProgram **out, ClError *);
void cl_program_unload (ClDevice *device, ClProgram *self);

/* ---- cl-device.c ---- */
extern const TinyDeviceTable cl_device_table;
