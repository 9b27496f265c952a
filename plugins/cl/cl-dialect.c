/* SPDX-License-Identifier: MIT
 *
 * cl-dialect.c: how the core spells a kernel in OpenCL C 1.2.
 *
 * A bool is a byte of 0 or 1, and so is each lane of a vector of them; comparisons of vectors give
 * masks as wide as their operands, which are turned into that at once. f16 without cl_khr_fp16 is
 * its bits, widened and narrowed by the built-in loads and stores of half. A macro's name is made out
 * of $T: that is how one spelling means different things for different dtypes; n is the lanes,
 * nothing for a scalar. Integers wrap by way of unsigned ones; a quotient by 0 is the dividend, by -1
 * its negative. Products are fused with sums in MULACC and nowhere else. */
#include "cl.h"

/* clang-format off */
/* @M for a scalar and for the lanes there are */
#define EACH(M, ...) M (__VA_ARGS__, ) M (__VA_ARGS__, 2) M (__VA_ARGS__, 4) M (__VA_ARGS__, 8) M (__VA_ARGS__, 16)
#define TYPEDEF(from, to, n) "typedef " #from #n " " #to #n ";\n"
#define SAME(type, n) "#define TINY_FROM_" #type #n "(x) (x)\n"
#define WIDEN(type, n) "#define TINY_FROM_tiny_half" #n "(x) tiny_widen" #n " (x)\n"
#define HALF(type, n) \
  "static inline float" #n " tiny_widen" #n " (ushort" #n " x) { return vload_half" #n " (0, (const half *) &x); }\n" \
  "static inline ushort" #n " tiny_narrow" #n " (float" #n " x) " \
  "{ ushort" #n " y; vstore_half" #n "_rte (x, 0, (half *) &y); return y; }\n"
#define MULACC(type, n) \
  "static inline " #type #n " tiny_mulacc_" #type #n " (" #type #n " a, " #type #n " b, " #type #n " c) " \
  "{ return a * b + c; }\n"
/* what bits are, and what a condition chooses by integers of the same size */
#define BITS(type, as, mask) \
  "#define TINY_AS_" #type "(n, x) as_" #as "##n (x)\n" \
  "#define TINY_WHERE_" #type "(n, c, a, b) (-convert_" #mask "##n (c) ? (a) : (b))\n"
#define NUMBER(type, mask) \
  EACH (SAME, type) BITS (type, type, mask) "#define TINY_TO_" #type "(n, x) convert_" #type "##n (x)\n"
#define SIGN(type) \
  "#define TINY_NEG_" #type "(n, a) (-(a))\n" "#define TINY_WRAP_" #type "(a, op, b) ((a) op (b))\n"
#define FLOAT(type, mask) NUMBER (type, mask) SIGN (type)
#define PLAIN_AND(type) "#define TINY_AND_" #type "(n, a, b) ((a) & (b))\n"
#define INTEGER(type, mask, wide) \
  NUMBER (type, mask) PLAIN_AND (type) \
  "#define TINY_WRAP_" #type "(a, op, b) ((" #type ") ((" #wide ") (a) op (" #wide ") (b)))\n"
#define UNSIGNED(type, mask, wide) \
  INTEGER (type, mask, wide) \
  "#define TINY_NEG_" #type "(n, a) ((" #type "##n) -(a))\n" \
  "#define TINY_NZ_" #type "(n, b) (!(b) ? (" #type "##n) 1 : (b))\n" \
  "#define TINY_DIV_" #type "(n, a, b) ((a) / TINY_NZ_" #type " (n, b))\n"
#define SIGNED(type, wide) \
  INTEGER (type, type, wide) \
  "#define TINY_NEG_" #type "(n, a) as_" #type "##n ((u" #type "##n) -as_u" #type "##n ((" #type "##n) (a)))\n" \
  "#define TINY_NZ_" #type "(n, b) (!(b) || (b) == (" #type "##n) -1 ? (" #type "##n) 1 : (b))\n" \
  "#define TINY_DIV_" #type "(n, a, b) ((b) == (" #type "##n) -1 ? TINY_NEG_" #type " (n, a) : (" #type \
  "##n) ((a) / TINY_NZ_" #type " (n, b)))\n"
/* On processors no result of AND is joined with others in one AVX-512 instruction, which their compiler, LLVM, may get
 * wrong (issue 157929) */
#define APART(type, real) \
  "#undef TINY_AND_" #type "\n" \
  "#define TINY_AND_" #type "(n, a, b) ({ _Pragma (\"clang fp reassociate(on)\") " \
  "as_" #type "##n (__arithmetic_fence (as_" #real "##n ((a) & (b)))); })\n"
#define LANE(a, s) "#define TINY_S" #a " s" #s "\n"

static const char prelude[]
    = "#pragma OPENCL FP_CONTRACT ON\n" EACH (MULACC, float)
    "#if TINY_FP64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" EACH (MULACC, double) FLOAT (double, long)
    "#endif\n#if TINY_FP16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    EACH (TYPEDEF, half, tiny_half) EACH (MULACC, tiny_half) EACH (SAME, tiny_half) SIGN (tiny_half)
    BITS (tiny_half, half, short) "#define TINY_TO_tiny_half(n, x) convert_half##n (x)\n"
    "#else\n" EACH (TYPEDEF, ushort, tiny_half) EACH (HALF, half) EACH (WIDEN, half)
    BITS (tiny_half, ushort, short) "#define TINY_TO_tiny_half(n, x) tiny_narrow##n (x)\n"
    "#endif\n#pragma OPENCL FP_CONTRACT OFF\n"
    "#if TINY_INT64\ntypedef long tiny_variable;\n" SIGNED (long, ulong) UNSIGNED (ulong, long, ulong)
    "#else\ntypedef int tiny_variable;\n#endif\n"
    FLOAT (float, int) SIGNED (int, uint) UNSIGNED (uint, int, uint)
    SIGNED (short, uint) UNSIGNED (ushort, short, uint) SIGNED (char, uint) UNSIGNED (uchar, char, uint)
    EACH (TYPEDEF, uchar, tiny_bool) EACH (SAME, tiny_bool) BITS (tiny_bool, uchar, char)
    PLAIN_AND (tiny_bool) "#ifdef __AVX512F__\n#if __has_builtin (__arithmetic_fence)\n" APART (int, float) APART (uint, float)
    "#if TINY_INT64 && TINY_FP64\n" APART (long, double) APART (ulong, double) "#endif\n#endif\n#endif\n"
    "#define TINY_TO_tiny_bool(n, x) (convert_uchar##n (!!(x)) & (uchar) 1)\n"
    "#define TINY_FROM_(x) (x)\n" /* a literal */
    "#define TINY_LANE(v, a) ((v).TINY_S##a)\n"
    LANE (0, 0) LANE (1, 1) LANE (2, 2) LANE (3, 3) LANE (4, 4) LANE (5, 5) LANE (6, 6) LANE (7, 7)
    LANE (8, 8) LANE (9, 9) LANE (10, a) LANE (11, b) LANE (12, c) LANE (13, d) LANE (14, e) LANE (15, f);

#define OP(name) [TINY_INSTR_##name]
#define DTYPE(name) [TINY_DTYPE_##name]
const TinyDialect cl_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude = prelude,
  .types = { DTYPE (VOID) = "void", DTYPE (BOOL) = "tiny_bool",
             DTYPE (I8) = "char", DTYPE (I16) = "short", DTYPE (I32) = "int", DTYPE (I64) = "long",
             DTYPE (U8) = "uchar", DTYPE (U16) = "ushort", DTYPE (U32) = "uint", DTYPE (U64) = "ulong",
             DTYPE (F8E4M3) = "uchar", DTYPE (F8E5M2) = "uchar", DTYPE (BF16) = "ushort",
             DTYPE (F16) = "tiny_half", DTYPE (F32) = "float", DTYPE (F64) = "double" },
  .suffix = { DTYPE (F32) = "f", DTYPE (U32) = "u", DTYPE (I64) = "L", DTYPE (U64) = "UL" },
  .inf = "INFINITY", .neg_inf = "(-INFINITY)", .nan = "NAN",
  .vector_type = "$T$n",
  .kernel_open = "__kernel __attribute__ ((TINY_GROUP)) void\ntiny_kernel_$name ($params)\n{\n",
  .kernel_close = "}\n",
  .param_read = "__global const $T *restrict $0",
  .param_write = "__global $T *restrict $0",
  .param_separator = ", ",
  .variable = "const tiny_variable $0",
  .grid = "TINY_GRID ($a)",
  .group = "get_local_id ($a)",
  .barrier = "barrier (CLK_LOCAL_MEM_FENCE)",
  .local_open = "__local $T $0[$a] __attribute__ ((aligned (64)))",
  .load_vector = "vload$n (0, $0 + $1)",
  .store_vector = "vstore$n ($2, 0, $0 + $1)",
  .vector_literal = "(($t) ($0))",
  .broadcast = "(($t) ($0))",
  .extract = "TINY_LANE ($0, $a)",
  .ops = { TINY_C_OPS,
           OP (CAST) = "TINY_TO_$T (, TINY_FROM_$s ($0))", OP (BITCAST) = "TINY_AS_$T (, ($s) ($0))",
           OP (NEG) = "TINY_NEG_$T (, $0)", OP (SQRT) = "sqrt ($0)", OP (TRUNC) = "trunc ($0)",
           OP (EXP2) = "exp2 ($0)", OP (LOG2) = "log2 ($0)", OP (SIN) = "sin ($0)",
           OP (ADD) = "TINY_WRAP_$T ($0, +, $1)", OP (SUB) = "TINY_WRAP_$T ($0, -, $1)",
           OP (MUL) = "TINY_WRAP_$T ($0, *, $1)", OP (MULACC) = "tiny_mulacc_$t ($0, $1, $2)",
           OP (IDIV) = "(($t) TINY_DIV_$T (, $0, $1))", OP (MOD) = "(($t) ($0 % TINY_NZ_$T (, $1)))" },
  .vector_ops = { OP (CAST) = "TINY_TO_$T ($n, TINY_FROM_$s ($0))", OP (BITCAST) = "TINY_AS_$T ($n, $0)",
                  OP (NEG) = "(-$0)", OP (ADD) = "($0 + $1)", OP (SUB) = "($0 - $1)", OP (MUL) = "($0 * $1)",
                  OP (IDIV) = "TINY_DIV_$T ($n, $0, $1)", OP (MOD) = "($0 % TINY_NZ_$T ($n, $1))",
                  OP (AND) = "TINY_AND_$T ($n, $0, $1)", OP (MAX) = "($0 > $1 ? $0 : $1)", OP (WHERE) = "TINY_WHERE_$T ($n, $0, $1, $2)",
                  OP (CMPLT) = "(convert_uchar$n ($0 < $1) & (uchar) 1)",
                  OP (CMPNE) = "(convert_uchar$n ($0 != $1) & (uchar) 1)",
                  OP (CMPEQ) = "(convert_uchar$n ($0 == $1) & (uchar) 1)" },
};
