/* SPDX-License-Identifier: MIT
 *
 * webgpu-target.c: what an adapter can do, as an architecture's text and as a target; and making
 * WGSL that is complete.
 *
 * WGSL has 32-bit integers and f32, bool that cannot be stored, and f16 as an extension. Its
 * functions are too inexact for what is asked of them here, but for division and square root: the
 * core makes the others. A compiled program is the source with a head that says what the loader
 * must know. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "webgpu.h"

/* What the standard promises. */
const WebgpuArch webgpu_least_arch = { .max_buffers = 8,
                                       .max_groups = 65535,
                                       .local_bytes = 16384,
                                       .items = 256,
                                       .items_per_axis = { 256, 256, 64 } };

/* ---- the architecture's text ---- */
void
webgpu_arch_to_string (const WebgpuArch *arch, char out[256])
{
  snprintf (out, 256, "wgsl%s,buffers=%u,groups=%u,local=%u,items=%u,x=%u,y=%u,z=%u",
            arch->f16 ? ",f16" : "", arch->max_buffers, arch->max_groups, arch->local_bytes,
            arch->items, arch->items_per_axis[0], arch->items_per_axis[1],
            arch->items_per_axis[2]);
}

static bool
read_number (const char *word, WebgpuArch *out)
{
  const struct {
    const char *name;
    uint32_t *value;
  } fields[] = { { "buffers=", &out->max_buffers }, { "groups=", &out->max_groups },
                 { "local=", &out->local_bytes },   { "items=", &out->items },
                 { "x=", &out->items_per_axis[0] }, { "y=", &out->items_per_axis[1] },
                 { "z=", &out->items_per_axis[2] } };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    size_t n = strlen (fields[i].name);
    if (strncmp (word, fields[i].name, n) != 0)
      continue;
    char *end;
    unsigned long value = strtoul (word + n, &end, 10);
    *fields[i].value = (uint32_t) value;
    return end != word + n && *end == '\0' && value > 0 && value <= INT32_MAX;
  }
  return false;
}

bool
webgpu_arch_from_string (const char *text, WebgpuArch *out)
{
  char copy[256], *rest = copy;
  if (text == NULL || *text == '\0')
    return true;
  if ((size_t) snprintf (copy, sizeof copy, "%s", text) >= sizeof copy)
    return false;
  const char *first = strsep (&rest, ",");
  if (strcmp (first, "wgsl") != 0)
    return false;
  for (char *word = strsep (&rest, ","); word != NULL; word = strsep (&rest, ",")) {
    if (strcmp (word, "f16") == 0)
      out->f16 = true;
    else if (!read_number (word, out))
      return false;
  }
  return true;
}

/* ---- the target ---- */
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
static const uint64_t every_ops = OP (LOAD) | OP (STORE) | OP (CAST) | OP (CMPLT) | OP (CMPNE)
                                  | OP (CMPEQ) | OP (WHERE) | OP (ADD) | OP (SUB) | OP (MUL)
                                  | OP (MAX);
static const uint64_t integer_ops
    = OP (BITCAST) | OP (IDIV) | OP (MOD) | OP (AND) | OP (OR) | OP (XOR) | OP (SHL) | OP (SHR);
static const uint64_t float_ops = OP (NEG) | OP (TRUNC);
static const uint64_t bool_ops
    = OP (CAST) | OP (CMPNE) | OP (CMPEQ) | OP (WHERE) | OP (AND) | OP (OR) | OP (XOR);

TinyStatus
webgpu_target (const char *text, TinyTarget *out, TinyPluginError *error)
{
  WebgpuArch arch = webgpu_least_arch;
  if (out == NULL || out->struct_size < sizeof *out)
    return webgpu_fail (error, TINY_STATUS_INVALID, "target is too small");
  if (!webgpu_arch_from_string (out->arch, &arch) || !webgpu_arch_from_string (text, &arch)) {
    TinyStatus status
        = webgpu_fail (error, TINY_STATUS_INVALID, "“%s” is no architecture of WGSL", text);
    webgpu_hint (error, "it reads wgsl[,f16][,buffers=N][,groups=N][,local=BYTES][,items=N]"
                        "[,x=N][,y=N][,z=N]");
    return status;
  }
  uint32_t storage = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32)
                     | TINY_DTYPE_BIT (TINY_DTYPE_F32);
  if (arch.f16)
    storage |= TINY_DTYPE_BIT (TINY_DTYPE_F16);
  *out = (TinyTarget){
    .struct_size = sizeof *out,
    .flags = TINY_TARGET_GROUPS | TINY_TARGET_FLUSHES_SUBNORMALS | TINY_TARGET_REASSOCIATES,
    .dtypes_storage = storage,
    .dtypes_compute = storage | TINY_DTYPE_BIT (TINY_DTYPE_BOOL),
    .index_dtype = TINY_DTYPE_I32,
    .max_lanes = 1,
    .n_threads = 64,
    .max_params = arch.max_buffers < MAX_BUFFERS ? arch.max_buffers : MAX_BUFFERS,
    .max_grid = { INT32_MAX, INT32_MAX, INT32_MAX },
    .max_group = { arch.items_per_axis[0], arch.items_per_axis[1], arch.items_per_axis[2] },
    .max_group_total = arch.items,
    .local_bytes = arch.local_bytes
  };
  webgpu_arch_to_string (&arch, out->arch);
  out->ops[TINY_DTYPE_I32] = every_ops | integer_ops | OP (NEG);
  out->ops[TINY_DTYPE_U32] = every_ops | integer_ops;
  out->ops[TINY_DTYPE_F32]
      = every_ops | float_ops | OP (BITCAST) | OP (RECIP) | OP (FDIV) | OP (SQRT);
  out->ops[TINY_DTYPE_BOOL] = bool_ops;
  if (arch.f16)
    out->ops[TINY_DTYPE_F16] = every_ops | float_ops;
  return TINY_STATUS_OK;
}

/* ---- compiling ---- */

/* How many grid points one work-group runs: where the kernel has no groups of its own, as many as
 * fill the machine's vectors. */
static uint32_t
points_per_group (const TinyLinear *linear)
{
  enum { POINTS = 64 };
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].op == TINY_INSTR_BARRIER)
      return 1;
  return linear->group[0] * linear->group[1] * linear->group[2] == 1 ? POINTS : 1;
}

static int
write_head (const TinyCompileArgs *args, const WebgpuArch *arch, char *out, size_t size)
{
  const TinyLinear *linear = args->linear;
  uint32_t points = points_per_group (linear);
  return snprintf (out, size,
                   "//tiny wgsl 1 points=%u variables=%u buffers=%u\n"
                   "%s"
                   "const tiny_items_x = %uu;\n"
                   "const tiny_items_y = %uu;\n"
                   "const tiny_items_z = %uu;\n"
                   "fn tiny_point_of (group: u32, item: u32) -> u32 { return %s; }\n",
                   points, linear->n_variables, linear->n_params,
                   arch->f16 ? "enable f16;\n" : "", points > 1 ? points : linear->group[0],
                   linear->group[1], linear->group[2],
                   points > 1 ? "group * tiny_items_x + item" : "group");
}

TinyStatus
webgpu_compile (const TinyCompileArgs *args,
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  WebgpuArch arch = webgpu_least_arch;
  char head[1024];
  if (args->source == NULL || args->linear == NULL
      || args->linear->struct_size < sizeof *args->linear)
    return webgpu_fail (error, TINY_STATUS_INVALID, "compile needs source and linear program");
  if (!webgpu_arch_from_string (args->arch, &arch))
    return webgpu_fail (error, TINY_STATUS_INVALID, "“%s” is no architecture of WGSL",
                        args->arch);
  if (args->linear->n_variables > MAX_VARIABLES)
    return webgpu_fail (error, TINY_STATUS_COMPILE, "%s: it has %u variables, more than %d",
                        args->name, args->linear->n_variables, MAX_VARIABLES);
  if (args->linear->n_params > arch.max_buffers)
    return webgpu_fail (error, TINY_STATUS_COMPILE,
                        "%s: it has %u buffers, the device binds no more than %u at a time",
                        args->name, args->linear->n_params, arch.max_buffers);
  uint64_t n = (uint64_t) write_head (args, &arch, head, sizeof head);
  char *data = webgpu_host->alloc (n + args->source_size);
  if (data == NULL)
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to compile it",
                        args->name);
  memcpy (data, head, n);
  memcpy (data + n, args->source, args->source_size);
  *out_data = data;
  *out_size = n + args->source_size;
  return TINY_STATUS_OK;
}
