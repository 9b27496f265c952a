/* SPDX-License-Identifier: MIT
 *
 * cl-dialect.c: how the core spells a kernel in OpenCL C 1.2.
 *
 * A bool is a byte of 0 or 1, and so is each lane of a vector of them; comparisons of vectors give
 * masks as wide as their operands, which are turned into that at once. f16 without cl_khr_fp16 is
 * its bits, widened and narrowed by the built-in loads and stores of half. A macro's name is made out
 * of $T: that is how one spelling means different things for different dtypes; n is the lanes,
 * nothing for a scalar. Products are fused with sums in MULACC and nowhere else. */
#include "cl.h"

/* @M for each lanes there are, and none. */
#define EACH(M, ...) M (__VA_ARGS__, ) VECTORS (M, __VA_ARGS__)
#define VECTORS(M, ...)                                                                        \
  M (__VA_ARGS__, 2) M (__VA_ARGS__, 4) M (__VA_ARGS__, 8) M (__VA_ARGS__, 16)
#define TYPEDEF(from, to, n) "typedef " #from #n " " #to #n ";\n"
#define SAME(type, n)        "#define TINY_FROM_" #type #n "(x) (x)\n"
#define WIDEN(type, n)       "#define TINY_FROM_tiny_half" #n "(x) tiny_widen" #n " (x)\n"
#define HALF(type, n)                                                                          \
  "static inline float" #n " tiny_widen" #n " (ushort" #n " x) "                               \
  "{ return vload_half" #n " (0, (const half *) &x); }\n"                                      \
  "static inline ushort" #n " tiny_narrow" #n " (float" #n " x) "                              \
  "{ ushort" #n " y; vstore_half" #n "_rte (x, 0, (half *) &y); return y; }\n"
#define MULACC(type, n)                                                                        \
  "static inline " #type #n " tiny_mulacc_" #type #n " (" #type #n " a, " #type #n             \
  " b, " #type #n " c) { return a * b + c; }\n"

/* What every type of numbers has: casts, and integers of its size, of which vectors' masks are. */
#define TYPE(type, mask)                                                                       \
  EACH (SAME, type)                                                                            \
  "#define TINY_TO_" #type "(n, x) convert_" #type "##n (x)\n"                                 \
  "#define TINY_AS_" #type "(n, x) as_" #type "##n (x)\n" MASK (type, mask)
#define MASK(type, mask)                                                                       \
  "#define TINY_WHERE_" #type "(n, c, a, b) (-convert_" #mask "##n (c) ? (a) : (b))\n"
#define FLOAT(type, mask)                                                                      \
  TYPE (type, mask)                                                                            \
  "#define TINY_NEG_" #type "(n, a) (-(a))\n#define TINY_WRAP_" #type                          \
  "(a, op, b) ((a) op (b))\n"
/* Scalars wrap by way of unsigned ones; a quotient by 0 is the dividend, by -1 its negative. */
#define UNSIGNED(type, mask, wide)                                                             \
  TYPE (type, mask)                                                                            \
  "#define TINY_WRAP_" #type "(a, op, b) ((" #type ") ((" #wide ") (a) op (" #wide ") (b)))\n" \
  "#define TINY_NEG_" #type "(n, a) ((" #type "##n) -(a))\n"                                   \
  "#define TINY_NZ_" #type "(n, b) ((b) == 0 ? (" #type "##n) 1 : (b))\n"                      \
  "#define TINY_DIV_" #type "(n, a, b) ((a) / TINY_NZ_" #type " (n, b))\n"
#define SIGNED(type, wide)                                                                     \
  TYPE (type, type)                                                                            \
  "#define TINY_WRAP_" #type "(a, op, b) ((" #type ") ((" #wide ") (a) op (" #wide ") (b)))\n" \
  "#define TINY_NEG_" #type "(n, a) as_" #type "##n ((u" #type "##n) -as_u" #type              \
  "##n ((" #type "##n) (a)))\n"                                                                \
  "#define TINY_NZ_" #type "(n, b) ((b) == 0 || (b) == (" #type "##n) -1 ? (" #type            \
  "##n) 1 : (b))\n"                                                                            \
  "#define TINY_DIV_" #type "(n, a, b) ((b) == (" #type "##n) -1 ? TINY_NEG_" #type            \
  " (n, a) : (" #type "##n) ((a) / TINY_NZ_" #type " (n, b)))\n"

static const char prelude[]
    = "#pragma OPENCL FP_CONTRACT ON\n" /* of MULACC, which rounds once or twice */
    EACH (MULACC, float) "#if TINY_FP64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" EACH (MULACC, double) FLOAT (
        double,
        long) "#endif\n"
              "#if TINY_FP16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" EACH (
                  TYPEDEF, half, tiny_half) EACH (MULACC, tiny_half)
                  EACH (
                      SAME,
                      tiny_half) "#define TINY_TO_tiny_half(n, x) convert_half##n (x)\n"
                                 "#define TINY_AS_tiny_half(n, x) as_half##n (x)\n"
                                 "#define TINY_NEG_tiny_half(n, a) (-(a))\n#define "
                                 "TINY_WRAP_tiny_half(a, op, b) ((a) op (b))\n"
                                 "#else\n" EACH (TYPEDEF, ushort, tiny_half) EACH (HALF, half) EACH (
                                     WIDEN,
                                     half) "#define TINY_TO_tiny_half(n, x) tiny_narrow##n "
                                           "(x)\n"
                                           "#define TINY_AS_tiny_half(n, x) as_ushort##n "
                                           "(x)\n#endif\n" MASK (
                                               tiny_half,
                                               short) "#pragma OPENCL FP_CONTRACT OFF\n"
                                                      "#if TINY_INT64\ntypedef long "
                                                      "tiny_variable;\n" SIGNED (long, ulong) UNSIGNED (
                                                          ulong,
                                                          long,
                                                          ulong) "#else\ntypedef int "
                                                                 "tiny_variable;\n#"
                                                                 "endif\n" FLOAT (float, int) SIGNED (
                                                                     int, uint) UNSIGNED (uint,
                                                                                          int,
                                                                                          uint)
                                                                     SIGNED (short, uint) UNSIGNED (
                                                                         ushort,
                                                                         short,
                                                                         uint) SIGNED (char,
                                                                                       uint)
                                                                         UNSIGNED (uchar, char, uint) EACH (
                                                                             TYPEDEF,
                                                                             uchar,
                                                                             tiny_bool)
                                                                             EACH (
                                                                                 SAME,
                                                                                 tiny_bool) "#d"
                                                                                            "ef"
                                                                                            "in"
                                                                                            "e "
                                                                                            "TI"
                                                                                            "NY"
                                                                                            "_F"
                                                                                            "RO"
                                                                                            "M_"
                                                                                            "(x"
                                                                                            ") "
                                                                                            "(x"
                                                                                            ")"
                                                                                            "\n" /* a literal */
                                                                                            "#d"
                                                                                            "ef"
                                                                                            "in"
                                                                                            "e "
                                                                                            "TI"
                                                                                            "NY"
                                                                                            "_T"
                                                                                            "O_"
                                                                                            "ti"
                                                                                            "ny"
                                                                                            "_b"
                                                                                            "oo"
                                                                                            "l("
                                                                                            "n,"
                                                                                            " x"
                                                                                            ") "
                                                                                            "(c"
                                                                                            "on"
                                                                                            "ve"
                                                                                            "rt"
                                                                                            "_u"
                                                                                            "ch"
                                                                                            "ar"
                                                                                            "##"
                                                                                            "n "
                                                                                            "(("
                                                                                            "x)"
                                                                                            " !"
                                                                                            "= "
                                                                                            "0)"
                                                                                            " &"
                                                                                            " ("
                                                                                            "uc"
                                                                                            "ha"
                                                                                            "r)"
                                                                                            " 1"
                                                                                            ")"
                                                                                            "\n"
                                                                                            "#d"
                                                                                            "ef"
                                                                                            "in"
                                                                                            "e "
                                                                                            "TI"
                                                                                            "NY"
                                                                                            "_A"
                                                                                            "S_"
                                                                                            "ti"
                                                                                            "ny"
                                                                                            "_b"
                                                                                            "oo"
                                                                                            "l("
                                                                                            "n,"
                                                                                            " x"
                                                                                            ") "
                                                                                            "as"
                                                                                            "_u"
                                                                                            "ch"
                                                                                            "ar"
                                                                                            "##"
                                                                                            "n "
                                                                                            "(x"
                                                                                            ")"
                                                                                            "\n" MASK (
                                                                                                tiny_bool,
                                                                                                char) "#define TINY_LANE(v, a) ((v).TINY_S##a)\n"
#define LANE(a, s) "#define TINY_S" #a " s" #s "\n"
    LANE (0, 0) LANE (1, 1) LANE (2, 2) LANE (3, 3) LANE (4, 4) LANE (5, 5) LANE (6, 6)
        LANE (7, 7) LANE (8, 8) LANE (9, 9) LANE (10, a) LANE (11, b) LANE (12, c) LANE (13, d)
            LANE (14, e) LANE (15, f);

const TinyDialect cl_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude = prelude,
  .types = { [TINY_DTYPE_VOID] = "void",
             [TINY_DTYPE_BOOL] = "tiny_bool",
             [TINY_DTYPE_I8] = "char",
             [TINY_DTYPE_U8] = "uchar",
             [TINY_DTYPE_I16] = "short",
             [TINY_DTYPE_U16] = "ushort",
             [TINY_DTYPE_I32] = "int",
             [TINY_DTYPE_U32] = "uint",
             [TINY_DTYPE_I64] = "long",
             [TINY_DTYPE_U64] = "ulong",
             [TINY_DTYPE_F8E4M3] = "uchar",
             [TINY_DTYPE_F8E5M2] = "uchar",
             [TINY_DTYPE_F16] = "tiny_half",
             [TINY_DTYPE_BF16] = "ushort",
             [TINY_DTYPE_F32] = "float",
             [TINY_DTYPE_F64] = "double" },
  .vector_type = "$T$n",
  .kernel_open = "__kernel TINY_GROUP void\n$name ($params)\n{\n",
  .kernel_close = "}\n",
  .param_read = "__global const $T *restrict $0",
  .param_write = "__global $T *restrict $0",
  .param_separator = ", ",
  .variable = "const tiny_variable $0",
  .grid = "TINY_GRID ($a)",
  .group = "get_local_id ($a)",
  .barrier = "barrier (CLK_LOCAL_MEM_FENCE)",
  .local_open = "__local $T $0[$a] __attribute__ ((aligned (64)))",
  .ops = { [TINY_INSTR_LOAD] = "$0[$1]",
           [TINY_INSTR_STORE] = "$0[$1] = $2",
           [TINY_INSTR_CAST] = "TINY_TO_$T (, TINY_FROM_$s ($0))",
           [TINY_INSTR_BITCAST] = "TINY_AS_$T (, ($s) ($0))",
           [TINY_INSTR_NEG] = "TINY_NEG_$T (, $0)",
           [TINY_INSTR_RECIP] = "(($t) 1 / $0)",
           [TINY_INSTR_SQRT] = "sqrt ($0)",
           [TINY_INSTR_EXP2] = "exp2 ($0)",
           [TINY_INSTR_LOG2] = "log2 ($0)",
           [TINY_INSTR_SIN] = "sin ($0)",
           [TINY_INSTR_TRUNC] = "trunc ($0)",
           [TINY_INSTR_ADD] = "TINY_WRAP_$T ($0, +, $1)",
           [TINY_INSTR_SUB] = "TINY_WRAP_$T ($0, -, $1)",
           [TINY_INSTR_MUL] = "TINY_WRAP_$T ($0, *, $1)",
           [TINY_INSTR_FDIV] = "($0 / $1)",
           [TINY_INSTR_IDIV] = "(($t) TINY_DIV_$T (, $0, $1))",
           [TINY_INSTR_MOD] = "(($t) ($0 % TINY_NZ_$T (, $1)))",
           [TINY_INSTR_MAX] = "(($t) ($0 > $1 ? $0 : $1))",
           [TINY_INSTR_CMPLT] = "((tiny_bool) ($0 < $1))",
           [TINY_INSTR_CMPNE] = "((tiny_bool) ($0 != $1))",
           [TINY_INSTR_CMPEQ] = "((tiny_bool) ($0 == $1))",
           [TINY_INSTR_AND] = "(($t) ($0 & $1))",
           [TINY_INSTR_OR] = "(($t) ($0 | $1))",
           [TINY_INSTR_XOR] = "(($t) ($0 ^ $1))",
           [TINY_INSTR_SHL] = "(($t) ($0 << $1))",
           [TINY_INSTR_SHR] = "(($t) ($0 >> $1))",
           [TINY_INSTR_WHERE] = "(($t) ($0 ? $1 : $2))",
           [TINY_INSTR_MULACC] = "tiny_mulacc_$t ($0, $1, $2)" },
  .vector_ops = { [TINY_INSTR_CAST] = "TINY_TO_$T ($n, TINY_FROM_$s ($0))",
                  [TINY_INSTR_BITCAST] = "TINY_AS_$T ($n, $0)",
                  [TINY_INSTR_NEG] = "(-$0)",
                  [TINY_INSTR_ADD] = "($0 + $1)",
                  [TINY_INSTR_SUB] = "($0 - $1)",
                  [TINY_INSTR_MUL] = "($0 * $1)",
                  [TINY_INSTR_IDIV] = "TINY_DIV_$T ($n, $0, $1)",
                  [TINY_INSTR_MOD] = "($0 % TINY_NZ_$T ($n, $1))",
                  [TINY_INSTR_MAX] = "($0 > $1 ? $0 : $1)",
                  [TINY_INSTR_CMPLT] = "(convert_uchar$n ($0 < $1) & (uchar) 1)",
                  [TINY_INSTR_CMPNE] = "(convert_uchar$n ($0 != $1) & (uchar) 1)",
                  [TINY_INSTR_CMPEQ] = "(convert_uchar$n ($0 == $1) & (uchar) 1)",
                  [TINY_INSTR_WHERE] = "TINY_WHERE_$T ($n, $0, $1, $2)" },
  .load_vector = "vload$n (0, $0 + $1)",
  .store_vector = "vstore$n ($2, 0, $0 + $1)",
  .vector_literal = "(($t) ($0))",
  .broadcast = "(($t) ($0))",
  .extract = "TINY_LANE ($0, $a)",
  .inf = "INFINITY",
  .neg_inf = "(-INFINITY)",
  .nan = "NAN",
  .suffix = { [TINY_DTYPE_F32] = "f",
              [TINY_DTYPE_U32] = "u",
              [TINY_DTYPE_I64] = "L",
              [TINY_DTYPE_U64] = "UL" },
};
