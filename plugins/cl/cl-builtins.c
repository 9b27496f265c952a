/* SPDX-License-Identifier: MIT
 *
 * cl-builtins.c: what kernels call of OpenCL C, declared, for a driver that would read all of it as text.
 *
 * PoCL's clang reads opencl-c.h anew for each kernel, twice: 18,000 lines, half of the time that a kernel
 * takes. With the header's guard defined it reads none of them, and these instead. Types and macros are
 * in another header, which stays. */
#include "cl.h"

const char cl_builtins_option[] = "-D_OPENCL_H_ ";

/* clang-format off */
#define VECTORS(M, ...) M (__VA_ARGS__, 2) M (__VA_ARGS__, 4) M (__VA_ARGS__, 8) M (__VA_ARGS__, 16)
#define EACH(M, ...) M (__VA_ARGS__, ) VECTORS (M, __VA_ARGS__)
#define TYPES(M) \
  M (char) M (uchar) M (short) M (ushort) M (int) M (uint) M (float) \
  "#if TINY_INT64\n" M (long) M (ulong) "#endif\n#if TINY_FP64\n" M (double) "#endif\n#if TINY_FP16\n" M (half) "#endif\n"
#define FLOATS(M) M (float) "#if TINY_FP64\n" M (double) "#endif\n#if TINY_FP16\n" M (half) "#endif\n"
#define CONVERT(to, n) "TINY_CONVERT (" #to #n ", convert_" #to #n ", " #n ")\n"
#define ACCESS(space, type, n) \
  "TINY_PURE " #type #n " vload" #n " (size_t, const " space " " #type " *);\n" \
  "TINY_FUNCTION void vstore" #n " (" #type #n ", size_t, " space " " #type " *);\n"
#define HALF(space, n) \
  "TINY_PURE float" #n " vload_half" #n " (size_t, const half *);\n" \
  "TINY_FUNCTION void vstore_half" #n "_rte (float" #n ", size_t, half *);\n"
#define UNARY(type, n) \
  "TINY_MATH (sqrt, " #type #n ") TINY_MATH (trunc, " #type #n ") TINY_MATH (exp2, " #type #n ") " \
  "TINY_MATH (log2, " #type #n ") TINY_MATH (sin, " #type #n ")\n"
#define CONVERTS(type) EACH (CONVERT, type)
#define ACCESSES(type) VECTORS (ACCESS, "__global", type) VECTORS (ACCESS, "__local", type)
#define UNARIES(type) EACH (UNARY, type)

const char cl_builtins[]
    = "#define TINY_FUNCTION __attribute__ ((overloadable))\n"
      "#define TINY_PURE __attribute__ ((overloadable, pure))\n"
      "#define TINY_CONST __attribute__ ((overloadable, const))\n"
      "#define TINY_MATH(name, type) TINY_CONST type name (type);\n"
      "#if TINY_FP64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#define TINY_OF_F64(M, ...) M (__VA_ARGS__, double)\n"
      "#else\n#define TINY_OF_F64(...)\n#endif\n"
      "#if TINY_FP16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#define TINY_OF_F16(M, ...) M (__VA_ARGS__, half)\n"
      "#else\n#define TINY_OF_F16(...)\n#endif\n"
      "#if TINY_INT64\n#define TINY_OF_I64(M, ...) M (__VA_ARGS__, long) M (__VA_ARGS__, ulong)\n"
      "#else\n#define TINY_OF_I64(...)\n#endif\n"
      "#define TINY_FROM(to, name, n, type) TINY_CONST to name (type##n);\n"
      "#define TINY_CONVERT(...) TINY_FROM (__VA_ARGS__, char) TINY_FROM (__VA_ARGS__, uchar) "
      "TINY_FROM (__VA_ARGS__, short) TINY_FROM (__VA_ARGS__, ushort) TINY_FROM (__VA_ARGS__, int) "
      "TINY_FROM (__VA_ARGS__, uint) TINY_FROM (__VA_ARGS__, float) TINY_OF_I64 (TINY_FROM, __VA_ARGS__) "
      "TINY_OF_F64 (TINY_FROM, __VA_ARGS__) TINY_OF_F16 (TINY_FROM, __VA_ARGS__)\n"
      "TINY_CONST size_t get_global_id (uint);\n"
      "TINY_CONST size_t get_group_id (uint);\n"
      "TINY_CONST size_t get_local_id (uint);\n"
      "__attribute__ ((overloadable, convergent)) void barrier (cl_mem_fence_flags);\n"
      TYPES (CONVERTS) TYPES (ACCESSES) FLOATS (UNARIES) EACH (HALF, "");
