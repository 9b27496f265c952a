/* SPDX-License-Identifier: MIT
 *
 * webgpu-target.c: what an adapter can do, as an architecture's text and as a target; and making
 * WGSL that is complete.
 *
 * WGSL has 32-bit integers and f32, bool that cannot be stored, and f16 as an extension. Its
 * functions are too inexact for what is asked of them here, but for division and square root: the
 * core makes the others. A compiled program is the source with a head that says how it is launched. */
#include "webgpu.h"

enum { N_FLAGS = offsetof (WebgpuArch, buffers) / sizeof (uint64_t) };

static TinyStatus
parse (const char *text, WebgpuArch *arch, Error *error)
{
  /* What the standard promises. */
  static const WebgpuArch least
      = { .buffers = 8, .local = 16384, .items = 256, .x = 256, .y = 256, .z = 64 };
  if (arch->buffers == 0)
    *arch = least;
  TINY_TRY (
      tiny_arch_parse (WEBGPU_ARCH, text, (const uint64_t *) &least, (uint64_t *) arch, error));
  for (size_t i = N_FLAGS; i < TINY_KIT_N (webgpu_names); i++) {
    const uint64_t value = ((const uint64_t *) arch)[i];
    if (value == 0 || value > INT32_MAX)
      return tiny_fail (error, TINY_STATUS_INVALID, "'%s': no adapter has %s=%llu", text,
                        webgpu_names[i], (unsigned long long) value);
  }
  return TINY_STATUS_OK;
}

/* ---- the target ---- */
TinyStatus
webgpu_target (const char *text, TinyTarget *out, Error *error)
{
  WebgpuArch arch = { 0 };
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (parse (out->arch, &arch, error));
  TINY_TRY (parse (text, &arch, error));
#define OP(name)  TINY_INSTR_BIT (TINY_INSTR_##name)
#define BIT(name) TINY_DTYPE_BIT (TINY_DTYPE_##name)
  TINY_FILL (out,
             .flags = TINY_TARGET_GROUPS | TINY_TARGET_REASSOCIATES
                      | (arch.flush ? TINY_TARGET_FLUSHES_SUBNORMALS : 0),
             .index_dtype = TINY_DTYPE_I32, .max_lanes = 1, .n_threads = 64,
             .max_params = arch.buffers < MAX_BUFFERS ? (uint32_t) arch.buffers : MAX_BUFFERS,
             .max_grid = { INT32_MAX, INT32_MAX, INT32_MAX },
             .max_group = { (uint32_t) arch.x, (uint32_t) arch.y, (uint32_t) arch.z },
             .max_group_total = (uint32_t) arch.items, .local_bytes = (uint32_t) arch.local,
             .max_rounds = arch.rounds);
  tiny_target_declare (
      out, BIT (BOOL) | BIT (I32) | BIT (U32) | BIT (F32) | (arch.f16 ? BIT (F16) : 0), 0, 0);
  /* What WGSL lacks of C's, or is too inexact. */
  out->dtypes_storage &= ~BIT (BOOL);
  out->ops[TINY_DTYPE_BOOL] &= ~(OP (LOAD) | OP (STORE) | OP (CMPLT) | OP (BITCAST));
  out->ops[TINY_DTYPE_U32] &= ~OP (NEG);
  out->ops[TINY_DTYPE_F32] &= ~OP (MULACC);
  out->ops[TINY_DTYPE_F16]
      &= ~(OP (MULACC) | OP (BITCAST) | OP (RECIP) | OP (FDIV) | OP (SQRT));
  return tiny_arch_print (WEBGPU_ARCH, (const uint64_t *) &arch, out->arch)
             ? TINY_STATUS_OK
             : TINY_STATUS_INVALID;
}

/* ---- compiling ---- */
uint32_t
webgpu_points (const uint32_t group[3])
{
  return group[0] == 1 && group[1] == 1 && group[2] == 1 ? 64 : 1;
}

TinyStatus
webgpu_compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, Error *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  const TinyLinear *linear = args->linear;
  const uint32_t points = webgpu_points (linear->group);
  WebgpuArch arch = { 0 };
  char head[1024];
  TINY_TRY (parse (args->arch, &arch, error));
  if (linear->n_variables > MAX_VARIABLES || linear->n_params > MAX_BUFFERS
      || linear->n_params > arch.buffers)
    return tiny_fail (error, TINY_STATUS_COMPILE,
                      "%s: its %u buffers and %u variables are more than the device binds",
                      args->name, linear->n_params, linear->n_variables);
  const size_t n = (size_t) snprintf (
      head, sizeof head,
      WEBGPU_HEAD "%s"
                  "const tiny_items_x = %uu;\n"
                  "const tiny_items_y = %uu;\n"
                  "const tiny_items_z = %uu;\n"
                  "fn tiny_point_of (group: u32, item: u32) -> u32 { return %s; }\n"
                  "fn tiny_and_i32 (a: i32, b: i32) -> i32 { return (a & b)%s; }\n"
                  "fn tiny_and_u32 (a: u32, b: u32) -> u32 { return (a & b)%s; }\n",
      points, linear->n_variables, linear->n_params, arch.f16 ? "enable f16;\n" : "",
      points > 1 ? points : linear->group[0], linear->group[1], linear->group[2],
      points > 1 ? "group * tiny_items_x + item" : "group",
      arch.apart ? " | i32 (tiny_none)" : "", arch.apart ? " | tiny_none" : "");
  char *data = webgpu_host->alloc (n + args->source_size);
  if (data == NULL)
    return TINY_STATUS_OUT_OF_MEMORY;
  memcpy (data, head, n);
  memcpy (data + n, args->source, args->source_size);
  *out = data;
  *out_size = n + args->source_size;
  return TINY_STATUS_OK;
}
