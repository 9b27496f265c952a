/* SPDX-License-Identifier: MIT
 *
 * cl.h: what the files of the OpenCL backend share.
 *
 * A unit is a device that some platform of the loader has and that can run our kernels; it is found
 * once and stays. Everything here is hidden in the module. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "cl-api.h"
#include "tiny-plugin.h"

#define CL_ARRAY_SIZE(array) (sizeof (array) / sizeof ((array)[0]))

enum { CL_MAX_UNITS = 32, CL_MAX_PARAMS = 120, CL_MAX_VARIABLES = 32 };

/* ---- cl-arch.c: architectures as text, such as "cl,int64,fp64,threads=2,…" ---- */

/* What is there or not, and numbers; in this order in the text. */
#define CL_WORDS(WORD)                                                                         \
  WORD (GROUPS, "groups")   /* many small work-groups, not a few long loops */                 \
  WORD (MATH, "math")       /* exp2, log2, sin are the device's own */                         \
  WORD (ROUNDED, "rounded") /* division and sqrt of f32 round correctly */                     \
  WORD (FLUSH, "flush")     /* subnormal numbers become zero */                                \
  WORD (INT64, "int64")                                                                        \
  WORD (FP64, "fp64")                                                                          \
  WORD (FP16, "fp16")
#define CL_NUMBERS(NUMBER)                                                                     \
  NUMBER (bits)    /* of a vector register */                                                  \
  NUMBER (threads) /* compute units */                                                         \
  NUMBER (group)   /* work-items in a work-group */                                            \
  NUMBER (local)   /* bytes of local memory */                                                 \
  NUMBER (params)  /* buffers that a kernel can have */                                        \
  NUMBER (l1)      /* bytes of caches */                                                       \
  NUMBER (l2)                                                                                  \
  NUMBER (l3)                                                                                  \
  NUMBER (dev) /* which device and driver: a hash of their names */

#define CL_WORD(id, text) CL_##id,
enum { CL_WORDS (CL_WORD) CL_N_WORDS };
#undef CL_WORD
#define CL_NUMBER(name) uint64_t name;
typedef struct {
  uint32_t words; /* 1 << CL_GROUPS … */
  CL_NUMBERS (CL_NUMBER)
} ClArch;
#undef CL_NUMBER
#define CL_HAS(arch, id) (((arch)->words & 1u << CL_##id) != 0)

void cl_arch_to_string (const ClArch *arch, char out[256]);
/* @base: what a text that does not begin with "cl" changes. */
TinyStatus
cl_arch_parse (const char *text, const ClArch *base, ClArch *out, TinyPluginError *error);
TinyStatus cl_target (const char *text, TinyTarget *out, TinyPluginError *error);

/* ---- cl-driver.c: the loader and what it offers ---- */
typedef struct {
  cl_device_id device;
  cl_context context;
  char id[64], name[128], driver[64];
  uint32_t device_class;
  ClArch arch;
  uint64_t memory_bytes, max_buffer_bytes;
  uint32_t alignment;
  bool has_host_memory, is_out_of_order;
} ClUnit;

extern const TinyHost *cl_host;
extern ClApi cl;

/* Opens the loader and asks for its devices when that has not been done. The best come first. */
TinyStatus cl_find_units (TinyPluginError *error);
uint32_t cl_count_units (void);
ClUnit *cl_get_unit (uint32_t i);
void cl_forget_units (void);

TinyStatus cl_fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* The same for what a function of OpenCL answered, with a status that fits it or @status. */
TinyStatus
cl_fail_call (TinyPluginError *error, TinyStatus status, cl_int code, const char *what);

/* ---- cl-dialect.c, cl-program.c: kernels ---- */
extern const TinyDialect cl_dialect;
TinyStatus cl_compile (const TinyCompileArgs *args,
                       void **out_data,
                       uint64_t *out_size,
                       TinyPluginError *error);

struct TinyPluginProgram {
  TinyPluginDevice *device;
  cl_program program;
  cl_kernel kernel;
  uint32_t n_params, n_variables, group[3];
  bool has_free_groups; /* work-items are grouped as the driver likes */
  bool has_int64;
  uint8_t flags[CL_MAX_PARAMS]; /* TINY_PARAM_* */
};
TinyStatus cl_program_load (const ClUnit *unit,
                            const TinyProgramArgs *args,
                            TinyPluginProgram **out,
                            TinyPluginError *error);
void cl_program_unload (TinyPluginProgram *program);

/* ---- cl-device.c ---- */
TinyStatus cl_open (const char *id,
                    TinyPluginDevice **out,
                    const TinyDeviceTable **out_table,
                    TinyPluginError *error);
