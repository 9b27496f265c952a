/* SPDX-License-Identifier: MIT
 *
 * webgpu-target.c: what an adapter can do, as an architecture's text and as a target; and making
 * WGSL that is complete.
 *
 * WGSL has 32-bit integers and f32, bool that cannot be stored, and f16 as an extension. Its
 * functions are too inexact for what is asked of them here, but for division and square root: the
 * core makes the others. A compiled program is the source with a head that says how it is launched. */
#include "webgpu.h"

#define NAME(name) #name,
static const char *const names[]
    = { WEBGPU_FIELDS (NAME) }; /* of the numbers that WebgpuArch is */
#undef NAME
enum { N = TINY_KIT_N (names) };

void
webgpu_arch_print (const WebgpuArch *arch, char out[256])
{
  tiny_arch_print ("wgsl", names, N, (const uint64_t *) arch, out);
}

static TinyStatus
parse (const char *text, WebgpuArch *arch, Error *error)
{
  /* What the standard promises. */
  static const WebgpuArch least
      = { .buffers = 8, .local = 16384, .items = 256, .x = 256, .y = 256, .z = 64 };
  if (arch->buffers == 0)
    *arch = least;
  TINY_TRY (tiny_arch_parse ("wgsl", names, N, text, (const uint64_t *) &least,
                             (uint64_t *) arch, error));
  for (size_t i = 1; i < N; i++) {
    const uint64_t value = ((const uint64_t *) arch)[i];
    if (value == 0 || value > INT32_MAX)
      return tiny_fail (error, TINY_STATUS_INVALID, "'%s': no adapter has %s=%llu", text,
                        names[i], (unsigned long long) value);
  }
  return TINY_STATUS_OK;
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
webgpu_target (const char *text, TinyTarget *out, Error *error)
{
  WebgpuArch arch = { 0 };
  TINY_TRY (parse (out->arch, &arch, error));
  TINY_TRY (parse (text, &arch, error));
  const uint32_t storage = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32)
                           | TINY_DTYPE_BIT (TINY_DTYPE_F32)
                           | (arch.f16 ? TINY_DTYPE_BIT (TINY_DTYPE_F16) : 0);
  *out = (TinyTarget){
    .struct_size = sizeof *out,
    .flags = TINY_TARGET_GROUPS | TINY_TARGET_FLUSHES_SUBNORMALS | TINY_TARGET_REASSOCIATES,
    .dtypes_storage = storage,
    .dtypes_compute = storage | TINY_DTYPE_BIT (TINY_DTYPE_BOOL),
    .index_dtype = TINY_DTYPE_I32,
    .max_lanes = 1,
    .n_threads = 64,
    .max_params = arch.buffers < MAX_BUFFERS ? (uint32_t) arch.buffers : MAX_BUFFERS,
    .max_grid = { INT32_MAX, INT32_MAX, INT32_MAX },
    .max_group = { (uint32_t) arch.x, (uint32_t) arch.y, (uint32_t) arch.z },
    .max_group_total = (uint32_t) arch.items,
    .local_bytes = (uint32_t) arch.local,
    .ops = { [TINY_DTYPE_I32] = every_ops | integer_ops | OP (NEG),
             [TINY_DTYPE_U32] = every_ops | integer_ops,
             [TINY_DTYPE_F32]
             = every_ops | float_ops | OP (BITCAST) | OP (RECIP) | OP (FDIV) | OP (SQRT),
             [TINY_DTYPE_F16] = arch.f16 ? every_ops | float_ops : 0,
             [TINY_DTYPE_BOOL] = bool_ops }
  };
  webgpu_arch_print (&arch, out->arch);
  return TINY_STATUS_OK;
}

/* ---- compiling ---- */
uint32_t
webgpu_points (const uint32_t group[3])
{
  return group[0] == 1 && group[1] == 1 && group[2] == 1 ? 64 : 1;
}

size_t
webgpu_print_head (const uint32_t group[3],
                   uint32_t n_variables,
                   uint32_t n_buffers,
                   char out[80])
{
  return (size_t) snprintf (out, 80, "//tiny wgsl 1 points=%u variables=%u buffers=%u\n",
                            webgpu_points (group), n_variables, n_buffers);
}

TinyStatus
webgpu_compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, Error *error)
{
  const TinyLinear *linear = args->linear;
  const uint32_t points = webgpu_points (linear->group);
  WebgpuArch arch = { 0 };
  char head[1024];
  TINY_TRY (parse (args->arch, &arch, error));
  if (linear->n_variables > MAX_VARIABLES || linear->n_params > MAX_BUFFERS
      || linear->n_params > arch.buffers)
    return tiny_fail (error, TINY_STATUS_COMPILE,
                      "%s: it has %u buffers and %u variables; the device binds no more than "
                      "%llu and %d at a time",
                      args->name, linear->n_params, linear->n_variables,
                      (unsigned long long) arch.buffers, MAX_VARIABLES);
  size_t n = webgpu_print_head (linear->group, linear->n_variables, linear->n_params, head);
  n += (size_t) snprintf (
      head + n, sizeof head - n,
      "%s"
      "const tiny_items_x = %uu;\n"
      "const tiny_items_y = %uu;\n"
      "const tiny_items_z = %uu;\n"
      "fn tiny_point_of (group: u32, item: u32) -> u32 { return %s; }\n",
      arch.f16 ? "enable f16;\n" : "", points > 1 ? points : linear->group[0], linear->group[1],
      linear->group[2], points > 1 ? "group * tiny_items_x + item" : "group");
  char *data = webgpu_host->alloc (n + args->source_size);
  if (data == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to compile it",
                      args->name);
  memcpy (data, head, n);
  memcpy (data + n, args->source, args->source_size);
  *out = data;
  *out_size = n + args->source_size;
  return TINY_STATUS_OK;
}
