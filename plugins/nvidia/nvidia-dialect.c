/* SPDX-License-Identifier: MIT
 *
 * nvidia-dialect.c: how the core spells a kernel in CUDA C that includes nothing.
 *
 * The compiler comes without headers, so f16, bf16 and the 8-bit floats are structs here, converted by
 * instructions of PTX, and a vector is a struct of lanes whose alignment makes one access of it. Each op is a
 * function of scalars, lifted over the lanes of vectors. Integers wrap by way of unsigned ones; a quotient by 0 is
 * the dividend, by -1 its negative. Products are fused with sums in MULACC and nowhere else: the compiler is told
 * so (--fmad=false). */
#include "nvidia.h"

/* clang-format off */
static const char prelude[] =
  /* ---- narrow floats ---- */
  "struct tiny_half {\n"
  "  unsigned short bits;\n"
  "  tiny_half () = default;\n"
  "  explicit tiny_half (float x) { asm (\"cvt.rn.f16.f32 %0, %1;\" : \"=h\" (bits) : \"f\" (x)); }\n"
  "  explicit tiny_half (double x) { asm (\"cvt.rn.f16.f64 %0, %1;\" : \"=h\" (bits) : \"d\" (x)); }\n"
  "  template <typename T> explicit tiny_half (T x) : tiny_half ((float) x) {}\n"
  "  operator float () const { float y; asm (\"cvt.f32.f16 %0, %1;\" : \"=f\" (y) : \"h\" (bits)); return y; }\n"
  "};\n"
  "struct tiny_bf16 {\n"
  "  unsigned short bits;\n"
  "  tiny_bf16 () = default;\n"
  "  explicit tiny_bf16 (float x) { asm (\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\" (bits) : \"f\" (x)); }\n"
  "  operator float () const { return __int_as_float ((int) bits << 16); }\n"
  "};\n"
  /* of a pair of 8-bit floats the second source is the low one; too large is not the largest number here */
  "#define TINY_F8(name, format, largest, over) \\\n"
  "  struct name { \\\n"
  "    unsigned char bits; \\\n"
  "    name () = default; \\\n"
  "    explicit name (float x) \\\n"
  "    { \\\n"
  "      unsigned short two; \\\n"
  "      asm (\"cvt.rn.satfinite.\" format \"x2.f32 %0, %1, %2;\" : \"=h\" (two) : \"f\" (0.0f), \"f\" (x)); \\\n"
  "      bits = (unsigned char) (fabsf (x) > largest ? (two & 0x80) | over : two & 0xff); \\\n"
  "    } \\\n"
  "    operator float () const \\\n"
  "    { \\\n"
  "      unsigned two; \\\n"
  "      tiny_half half; \\\n"
  "      asm (\"cvt.rn.f16x2.\" format \"x2 %0, %1;\" : \"=r\" (two) : \"h\" ((unsigned short) bits)); \\\n"
  "      half.bits = (unsigned short) two; \\\n"
  "      return half; \\\n"
  "    } \\\n"
  "  };\n"
  "TINY_F8 (tiny_e4m3, \"e4m3\", 464.0f, 0x7f)\n"
  "TINY_F8 (tiny_e5m2, \"e5m2\", 61439.99609375f, 0x7c)\n"
  /* ---- vectors ---- */
  "constexpr int tiny_align (int n) { return (n & -n) > 16 ? 16 : n & -n; }\n"
  "template <typename T, int N> struct alignas (tiny_align (sizeof (T) * N)) tiny_vec { T v[N]; };\n"
  "#define TINY_LANES _Pragma (\"unroll\") for (int i = 0; i < N; i++)\n"
  "#define TINY_LIFT1(name) template <typename T, int N> inline auto name (tiny_vec<T, N> a) "
  "{ tiny_vec<decltype (name (a.v[0])), N> r; TINY_LANES r.v[i] = name (a.v[i]); return r; }\n"
  "#define TINY_LIFT2(name) template <typename T, int N> inline auto name (tiny_vec<T, N> a, tiny_vec<T, N> b) "
  "{ tiny_vec<decltype (name (a.v[0], b.v[0])), N> r; TINY_LANES r.v[i] = name (a.v[i], b.v[i]); return r; }\n"
  "#define TINY_LIFT3(name) template <typename A, typename T, int N> "
  "inline tiny_vec<T, N> name (tiny_vec<A, N> a, tiny_vec<T, N> b, tiny_vec<T, N> c) "
  "{ tiny_vec<T, N> r; TINY_LANES r.v[i] = name (a.v[i], b.v[i], c.v[i]); return r; }\n"
  "template <typename T, int N> inline tiny_vec<T, N> tiny_splat (T x) { tiny_vec<T, N> r; TINY_LANES r.v[i] = x; return r; }\n"
  /* ---- conversions ---- */
  "template <typename To, typename From> inline To tiny_cast (From x) { return (To) x; }\n"
  "template <typename To, typename From, int N> inline tiny_vec<To, N> tiny_casts (tiny_vec<From, N> x) "
  "{ tiny_vec<To, N> r; TINY_LANES r.v[i] = tiny_cast<To> (x.v[i]); return r; }\n"
  "template <typename To, typename From> inline To tiny_bits (From x) { To y; memcpy (&y, &x, sizeof y); return y; }\n"
  /* ---- arithmetic: in the type that wraps, or that is wide enough to round once ---- */
  "template <typename T> struct tiny_in { typedef T type; };\n"
  "#define TINY_IN(T, wide) template <> struct tiny_in<T> { typedef wide type; };\n"
  "TINY_IN (signed char, unsigned) TINY_IN (unsigned char, unsigned) TINY_IN (short, unsigned)\n"
  "TINY_IN (unsigned short, unsigned) TINY_IN (int, unsigned) TINY_IN (long long, unsigned long long)\n"
  "TINY_IN (tiny_half, float)\n"
  "#define TINY_OP1(name, expression) template <typename T> inline T name (T x) "
  "{ typedef typename tiny_in<T>::type W; W a = (W) x; return (T) (expression); } TINY_LIFT1 (name)\n"
  "#define TINY_OP2(name, expression) template <typename T> inline T name (T x, T y) "
  "{ typedef typename tiny_in<T>::type W; W a = (W) x, b = (W) y; return (T) (expression); } TINY_LIFT2 (name)\n"
  "inline float tiny_root (float x) { return sqrtf (x); }\n"
  "inline double tiny_root (double x) { return sqrt (x); }\n"
  "inline float tiny_whole (float x) { return truncf (x); }\n"
  "inline double tiny_whole (double x) { return trunc (x); }\n"
  "TINY_OP1 (tiny_neg, -a) TINY_OP1 (tiny_recip, (W) 1 / a)\n"
  "TINY_OP1 (tiny_sqrt, tiny_root (a)) TINY_OP1 (tiny_trunc, tiny_whole (a))\n"
  "TINY_OP2 (tiny_add, a + b) TINY_OP2 (tiny_sub, a - b) TINY_OP2 (tiny_mul, a * b) TINY_OP2 (tiny_fdiv, a / b)\n"
  "TINY_OP2 (tiny_and, x & y) TINY_OP2 (tiny_or, x | y) TINY_OP2 (tiny_xor, x ^ y)\n"
  "TINY_OP2 (tiny_shl, a << b) TINY_OP2 (tiny_shr, x >> y) TINY_OP2 (tiny_max, x > y ? x : y)\n"
  "template <typename T> inline bool tiny_is_minus_one (T x) { return (T) -1 < (T) 0 && x == (T) -1; }\n"
  "TINY_OP2 (tiny_idiv, tiny_is_minus_one (y) ? tiny_neg (x) : (T) (x / (y == 0 ? (T) 1 : y)))\n"
  "TINY_OP2 (tiny_mod, x % (y == 0 || tiny_is_minus_one (y) ? (T) 1 : y))\n"
  "inline float tiny_exp2 (float x) { return exp2f (x); }\n"
  "inline float tiny_log2 (float x) { return log2f (x); }\n"
  "inline float tiny_sin (float x) { return sinf (x); }\n"
  "TINY_LIFT1 (tiny_exp2) TINY_LIFT1 (tiny_log2) TINY_LIFT1 (tiny_sin)\n"
  "template <typename T> inline bool tiny_lt (T a, T b) { return a < b; }\n"
  "template <typename T> inline bool tiny_ne (T a, T b) { return a != b; }\n"
  "template <typename T> inline bool tiny_eq (T a, T b) { return a == b; }\n"
  "TINY_LIFT2 (tiny_lt) TINY_LIFT2 (tiny_ne) TINY_LIFT2 (tiny_eq)\n"
  "template <typename T> inline T tiny_where (bool c, T a, T b) { return c ? a : b; }\n"
  "inline float tiny_mulacc (float a, float b, float c) { return fmaf (a, b, c); }\n"
  "inline double tiny_mulacc (double a, double b, double c) { return fma (a, b, c); }\n"
  "inline tiny_half tiny_mulacc (tiny_half a, tiny_half b, tiny_half c)\n"
  "{\n"
  "  tiny_half r;\n"
  "  asm (\"fma.rn.f16 %0, %1, %2, %3;\" : \"=h\" (r.bits) : \"h\" (a.bits), \"h\" (b.bits), \"h\" (c.bits));\n"
  "  return r;\n"
  "}\n"
  "TINY_LIFT3 (tiny_where) TINY_LIFT3 (tiny_mulacc)\n";
/* clang-format on */

#define OP(name)    [TINY_INSTR_##name]
#define DTYPE(name) [TINY_DTYPE_##name]
const TinyDialect nvidia_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude = prelude,
  .types
  = { DTYPE (VOID) = "void", DTYPE (BOOL) = "bool", DTYPE (I8) = "signed char",
      DTYPE (U8) = "unsigned char", DTYPE (I16) = "short", DTYPE (U16) = "unsigned short",
      DTYPE (I32) = "int", DTYPE (U32) = "unsigned", DTYPE (I64) = "long long",
      DTYPE (U64) = "unsigned long long", DTYPE (F8E4M3) = "tiny_e4m3",
      DTYPE (F8E5M2) = "tiny_e5m2", DTYPE (F16) = "tiny_half", DTYPE (BF16) = "tiny_bf16",
      DTYPE (F32) = "float", DTYPE (F64) = "double" },
  .suffix = { DTYPE (F32) = "f", DTYPE (U32) = "u", DTYPE (I64) = "ll", DTYPE (U64) = "ull" },
  .truth = { "false", "true" },
  .vector_type = "tiny_vec<$T, $n>",
  .kernel_open = "extern \"C\" __global__ void __launch_bounds__ (TINY_ITEMS)\n"
                 "tiny_kernel_$name ($params)\n{\n",
  .kernel_close = "}\n",
  .param_read = "const $T *__restrict__ $0",
  .param_write = "$T *__restrict__ $0",
  .param_separator = ", ",
  .variable = "const long long $0",
  .grid = "blockIdx.$x",
  .group = "threadIdx.$x",
  .barrier = "__syncthreads ()",
  .local_open = "__shared__ __align__ (16) $T $0[$a]",
  .load_vector = "(*(const $t *) ($0 + $1))",
  .store_vector = "*($t *) ($0 + $1) = $2",
  .vector_literal = "($t{{$0}})",
  .broadcast = "tiny_splat<$T, $n> ($0)",
  .extract = "$0.v[$a]",
  .ops = { OP (LOAD) = "$0[$1]",
           OP (STORE) = "$0[$1] = $2",
           OP (CAST) = "tiny_cast<$t> ($0)",
           OP (BITCAST) = "tiny_bits<$t> ($0)",
           OP (NEG) = "tiny_neg ($0)",
           OP (RECIP) = "tiny_recip ($0)",
           OP (SQRT) = "tiny_sqrt ($0)",
           OP (EXP2) = "tiny_exp2 ($0)",
           OP (LOG2) = "tiny_log2 ($0)",
           OP (SIN) = "tiny_sin ($0)",
           OP (ADD) = "tiny_add ($0, $1)",
           OP (SUB) = "tiny_sub ($0, $1)",
           OP (MUL) = "tiny_mul ($0, $1)",
           OP (IDIV) = "tiny_idiv ($0, $1)",
           OP (MOD) = "tiny_mod ($0, $1)",
           OP (MAX) = "tiny_max ($0, $1)",
           OP (CMPLT) = "tiny_lt ($0, $1)",
           OP (CMPNE) = "tiny_ne ($0, $1)",
           OP (CMPEQ) = "tiny_eq ($0, $1)",
           OP (AND) = "tiny_and ($0, $1)",
           OP (OR) = "tiny_or ($0, $1)",
           OP (XOR) = "tiny_xor ($0, $1)",
           OP (SHL) = "tiny_shl ($0, $1)",
           OP (SHR) = "tiny_shr ($0, $1)",
           OP (WHERE) = "tiny_where ($0, $1, $2)",
           OP (MULACC) = "tiny_mulacc ($0, $1, $2)",
           OP (TRUNC) = "tiny_trunc ($0)",
           OP (FDIV) = "tiny_fdiv ($0, $1)" },
  .vector_ops = { OP (CAST) = "tiny_casts<$T> ($0)" },
};
