/* SPDX-License-Identifier: MIT
 *
 * cpu-portable.c: the C renderer: kernels in plain C11, for whatever has a C compiler.
 *
 * Its source needs no library and no extension: scalars, arrays, loops, <stdint.h>. So it is what
 * `tinycore export --target c` writes, and DEV=CPU:C runs the same text, made by clang, which
 * is how it is tested. Nothing in it is undefined: integers wrap by way of unsigned ones, a float that
 * does not fit an integer is cut to its limits, quotients by 0 are the dividend. What the
 * target says is the same on every machine, and so is the code. */
#include "cpu.h"

#include <string.h>

/* TINY_KERNEL goes before each kernel: "static" where many share a file. */
static const char prelude[]
    = "#ifndef TINY_PORTABLE\n"
      "#define TINY_PORTABLE\n"
      "#include <stdint.h>\n"
      "#ifndef TINY_KERNEL\n"
      "#define TINY_KERNEL\n"
      "#endif\n"
      "#if defined __GNUC__\n"
      "#define TINY_MAYBE_UNUSED __attribute__ ((unused))\n"
      "#else\n"
      "#define TINY_MAYBE_UNUSED\n"
      "#endif\n"
      "typedef uint8_t tiny_bool, tiny_f8e4m3, tiny_f8e5m2;\n"
      "typedef uint16_t tiny_f16, tiny_bf16;\n"
      /* what a type is computed in so that it wraps */
      "#define TINY_WIDE_int8_t (uint32_t)\n"
      "#define TINY_WIDE_uint8_t (uint32_t)\n"
      "#define TINY_WIDE_int16_t (uint32_t)\n"
      "#define TINY_WIDE_uint16_t (uint32_t)\n"
      "#define TINY_WIDE_int32_t (uint32_t)\n"
      "#define TINY_WIDE_uint32_t (uint32_t)\n"
      "#define TINY_WIDE_int64_t (uint64_t)\n"
      "#define TINY_WIDE_uint64_t (uint64_t)\n"
      "#define TINY_WIDE_float\n"
      "#define TINY_WIDE_double\n"
      "#define TINY_CAST_tiny_bool(x) ((tiny_bool) ((x) != 0))\n"
      "#define TINY_CAST_float(x) ((float) (x))\n"
      "#define TINY_CAST_double(x) ((double) (x))\n"
      /* floats beyond the type are cut to it; integers wrap */
      "#define TINY_WHOLE(t, x) ((t) _Generic ((x), float: tiny_whole (x), "
      "double: tiny_whole (x), default: (x)))\n"
      "#define TINY_CAST_int8_t(x) TINY_WHOLE (int8_t, x)\n"
      "#define TINY_CAST_uint8_t(x) TINY_WHOLE (uint8_t, x)\n"
      "#define TINY_CAST_int16_t(x) TINY_WHOLE (int16_t, x)\n"
      "#define TINY_CAST_uint16_t(x) TINY_WHOLE (uint16_t, x)\n"
      "#define TINY_CAST_int32_t(x) TINY_WHOLE (int32_t, x)\n"
      "#define TINY_CAST_uint32_t(x) TINY_WHOLE (uint32_t, x)\n"
      "#define TINY_CAST_int64_t(x) TINY_WHOLE (int64_t, x)\n"
      "#define TINY_CAST_uint64_t(x) ((uint64_t) _Generic ((x), float: tiny_whole_unsigned "
      "(x), "
      "double: tiny_whole_unsigned (x), default: (x)))\n"
      "TINY_MAYBE_UNUSED static inline int64_t\n"
      "tiny_whole (double x)\n"
      "{\n"
      "  return x >= 9223372036854775808.0 ? INT64_MAX\n"
      "         : x > -9223372036854775808.0 ? (int64_t) x : INT64_MIN;\n"
      "}\n"
      "TINY_MAYBE_UNUSED static inline uint64_t\n"
      "tiny_whole_unsigned (double x)\n"
      "{\n"
      "  return x >= 18446744073709551616.0 ? UINT64_MAX\n"
      "         : x >= 9223372036854775808.0 ? (uint64_t) x : (uint64_t) tiny_whole (x);\n"
      "}\n"
      /* no quotient traps: by 0 it is the dividend, by -1 its negative, which wraps */
      "#define TINY_DIVIDE(t, x, y) ((t) _Generic ((t) 0, uint64_t: tiny_divide_unsigned, "
      "default: tiny_divide) (x, y))\n"
      "TINY_MAYBE_UNUSED static inline int64_t\n"
      "tiny_divide (int64_t x, int64_t y)\n"
      "{\n"
      "  return y == 0 ? x : y == -1 ? (int64_t) (0 - (uint64_t) x) : x / y;\n"
      "}\n"
      "TINY_MAYBE_UNUSED static inline uint64_t\n"
      "tiny_divide_unsigned (uint64_t x, uint64_t y)\n"
      "{\n"
      "  return y == 0 ? x : x / y;\n"
      "}\n"
      "#define TINY_MODULO(t, x, y) ((t) _Generic ((t) 0, uint64_t: tiny_modulo_unsigned, "
      "default: tiny_modulo) (x, y))\n"
      "TINY_MAYBE_UNUSED static inline int64_t\n"
      "tiny_modulo (int64_t x, int64_t y)\n"
      "{\n"
      "  return y == 0 || y == -1 ? 0 : x % y;\n"
      "}\n"
      "TINY_MAYBE_UNUSED static inline uint64_t\n"
      "tiny_modulo_unsigned (uint64_t x, uint64_t y)\n"
      "{\n"
      "  return y == 0 ? 0 : x % y;\n"
      "}\n"
      "#endif\n\n";

const TinyDialect cpu_portable_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude = prelude,
  .types = { [TINY_DTYPE_VOID] = "void",
             [TINY_DTYPE_BOOL] = "tiny_bool",
             [TINY_DTYPE_I8] = "int8_t",
             [TINY_DTYPE_U8] = "uint8_t",
             [TINY_DTYPE_I16] = "int16_t",
             [TINY_DTYPE_U16] = "uint16_t",
             [TINY_DTYPE_I32] = "int32_t",
             [TINY_DTYPE_U32] = "uint32_t",
             [TINY_DTYPE_I64] = "int64_t",
             [TINY_DTYPE_U64] = "uint64_t",
             [TINY_DTYPE_F8E4M3] = "tiny_f8e4m3",
             [TINY_DTYPE_F8E5M2] = "tiny_f8e5m2",
             [TINY_DTYPE_F16] = "tiny_f16",
             [TINY_DTYPE_BF16] = "tiny_bf16",
             [TINY_DTYPE_F32] = "float",
             [TINY_DTYPE_F64] = "double" },
  .kernel_open
  = "TINY_KERNEL void\n" CPU_ENTRY_PREFIX
    "$name (void *const *tiny_buffers, const int64_t *tiny_variables, int64_t tiny_begin, "
    "int64_t tiny_end)\n"
    "{\n"
    "  (void) tiny_buffers, (void) tiny_variables;\n"
    "  $params;\n"
    "  for (int64_t tiny_point = tiny_begin; tiny_point < tiny_end; tiny_point++) {\n"
    "  const int64_t tiny_x = tiny_point % $0, tiny_rest = tiny_point / $0;\n"
    "  const int64_t tiny_y = tiny_rest % $1, tiny_z = tiny_rest / $1;\n"
    "  (void) tiny_x, (void) tiny_y, (void) tiny_z;\n",
  .kernel_close = "  }\n}\n",
  .param_read = "const $T *restrict const $0 = tiny_buffers[$a]; (void) $0",
  .param_write = "$T *restrict const $0 = tiny_buffers[$a]; (void) $0",
  .param_separator = ";\n  ",
  .variable = "const int64_t $0 = tiny_variables[$a]; (void) $0",
  .grid = "tiny_$x",
  .group = "0",
  .barrier = "",
  .local_open = "$T $0[$a]",
  .ops
  = { [TINY_INSTR_LOAD] = "$0[$1]",
      [TINY_INSTR_STORE] = "$0[$1] = $2",
      [TINY_INSTR_CAST] = "TINY_CAST_$T ($0)",
      [TINY_INSTR_BITCAST] = "((union { $s from; $t to; }) { $0 }.to)",
      [TINY_INSTR_NEG] = "(($T) -TINY_WIDE_$T $0)",
      [TINY_INSTR_RECIP] = "(($T) 1 / $0)",
      [TINY_INSTR_ADD] = "(($T) (TINY_WIDE_$T $0 + TINY_WIDE_$T $1))",
      [TINY_INSTR_SUB] = "(($T) (TINY_WIDE_$T $0 - TINY_WIDE_$T $1))",
      [TINY_INSTR_MUL] = "(($T) (TINY_WIDE_$T $0 * TINY_WIDE_$T $1))",
      [TINY_INSTR_FDIV] = "($0 / $1)",
      [TINY_INSTR_IDIV] = "TINY_DIVIDE ($T, $0, $1)",
      [TINY_INSTR_MOD] = "TINY_MODULO ($T, $0, $1)",
      [TINY_INSTR_MAX] = "($0 > $1 ? $0 : $1)",
      [TINY_INSTR_CMPLT] = "((tiny_bool) ($0 < $1))",
      [TINY_INSTR_CMPNE] = "((tiny_bool) ($0 != $1))",
      [TINY_INSTR_CMPEQ] = "((tiny_bool) ($0 == $1))",
      [TINY_INSTR_AND] = "(($T) ($0 & $1))",
      [TINY_INSTR_OR] = "(($T) ($0 | $1))",
      [TINY_INSTR_XOR] = "(($T) ($0 ^ $1))",
      [TINY_INSTR_SHL] = "(($T) (TINY_WIDE_$T $0 << $1))",
      [TINY_INSTR_SHR] = "(($T) ($0 >> $1))",
      [TINY_INSTR_WHERE] = "($0 ? $1 : $2)",
      [TINY_INSTR_MULACC] = "(($T) (TINY_WIDE_$T $0 * TINY_WIDE_$T $1 + TINY_WIDE_$T $2))" },
  .suffix = { [TINY_DTYPE_F32] = "f",
              [TINY_DTYPE_U32] = "u",
              [TINY_DTYPE_I64] = "ll",
              [TINY_DTYPE_U64] = "ull" },
};

#if defined(__aarch64__)
const char cpu_portable_host_arch[] = "aarch64";
#else
const char cpu_portable_host_arch[] = "x86_64";
#endif

/* A plain machine with 16 registers and caches as most have them. */
TinyStatus
cpu_portable_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const uint64_t memory = OP (LOAD) | OP (STORE) | OP (WHERE) | OP (BITCAST);
  const uint64_t logic
      = OP (CMPLT) | OP (CMPNE) | OP (CMPEQ) | OP (AND) | OP (OR) | OP (XOR) | OP (CAST);
  const uint64_t arithmetic
      = OP (NEG) | OP (ADD) | OP (SUB) | OP (MUL) | OP (MAX) | OP (MULACC);
  const uint64_t ints = OP (IDIV) | OP (MOD) | OP (SHL) | OP (SHR);
  const uint64_t floats
      = OP (CMPLT) | OP (CMPNE) | OP (CMPEQ) | OP (CAST) | OP (RECIP) | OP (FDIV);
#undef OP
  if (arch != NULL && arch[0] != '\0' && strcmp (arch, CPU_PORTABLE_ARCH) != 0)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "the renderer C has the architecture " CPU_PORTABLE_ARCH ", not %s",
                      arch);
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_TARGET_GRID_CHUNKS | TINY_TARGET_UNALIGNED,
             .arch = CPU_PORTABLE_ARCH, .index_dtype = TINY_DTYPE_I64, .n_vector_registers = 16,
             .max_lanes = 1, .n_threads = 1, .max_params = CPU_MAX_PARAMS,
             .max_grid = { INT32_MAX, INT32_MAX, INT32_MAX }, .max_group = { 1, 1, 1 },
             .max_group_total = 1, .local_bytes = CPU_PORTABLE_LOCAL_BYTES,
             .cache_bytes = { 32 << 10, 1 << 20, 8 << 20 });
  out->ops[TINY_DTYPE_BOOL] = memory | logic;
  for (unsigned dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++)
    out->ops[dtype] = memory | logic | arithmetic | ints;
  for (unsigned dtype = TINY_DTYPE_F8E4M3; dtype <= TINY_DTYPE_BF16; dtype++)
    out->ops[dtype] = memory;
  out->ops[TINY_DTYPE_F32] = out->ops[TINY_DTYPE_F64] = memory | arithmetic | floats;
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++) {
    bool is_small_float = dtype >= TINY_DTYPE_F8E4M3 && dtype <= TINY_DTYPE_BF16;
    out->dtypes_storage |= TINY_DTYPE_BIT (dtype);
    out->dtypes_compute |= is_small_float ? 0 : TINY_DTYPE_BIT (dtype);
  }
  return TINY_STATUS_OK;
}

/* For the least machine of this kind, as the architecture says nothing of the one at hand. */
TinyStatus
cpu_portable_compile (const TinyCompileArgs *args,
                      void **out_data,
                      uint64_t *out_size,
                      TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  TinyCompileArgs host = *args;
  host.arch = cpu_portable_host_arch;
  return cpu_clang_compile (&host, out_data, out_size, error);
}
