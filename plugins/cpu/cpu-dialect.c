/* SPDX-License-Identifier: MIT
 *
 * cpu-dialect.c: how the core spells a kernel in C with GNU vector extensions.
 *
 * Scalar types have names of one word, so that a template can make a macro's name out of $T: that is
 * how one spelling of CAST or SQRT means different things for different dtypes. A bool is a byte of 0
 * or 1, and so is each lane of a vector of them; the masks that vector comparisons give are turned
 * into that at once. Masked access goes lane by lane, which clang turns into mask registers or not. */
#include "cpu.h"

static const char prelude[]
    = "typedef unsigned char tiny_bool, tiny_u8, tiny_f8e4m3, tiny_f8e5m2;\n"
      "typedef signed char tiny_i8;\n"
      "typedef short tiny_i16;\n"
      "typedef unsigned short tiny_u16, tiny_bf16;\n"
      "typedef int tiny_i32;\n"
      "typedef unsigned int tiny_u32;\n"
      "typedef long long tiny_i64;\n"
      "typedef unsigned long long tiny_u64;\n"
      "typedef __fp16 tiny_f16;\n"
      "typedef float tiny_f32;\n"
      "typedef double tiny_f64;\n"
      /* casts by destination: all but bool are the plain ones */
      "#define TINY_CAST_tiny_bool(t, x) ((tiny_bool) ((x) != 0))\n"
      "#define TINY_VCAST_tiny_bool(t, x) (__builtin_convertvector ((x) != 0, t) & 1)\n"
#define PLAIN_CAST(name)                                                                       \
  "#define TINY_CAST_tiny_" name "(t, x) ((t) (x))\n"                                          \
  "#define TINY_VCAST_tiny_" name "(t, x) __builtin_convertvector (x, t)\n"
    PLAIN_CAST ("i8") PLAIN_CAST ("u8") PLAIN_CAST ("i16") PLAIN_CAST ("u16") PLAIN_CAST ("i32")
        PLAIN_CAST ("u32") PLAIN_CAST ("i64") PLAIN_CAST ("u64") PLAIN_CAST ("f16") PLAIN_CAST (
            "f32") PLAIN_CAST ("f64")
#undef PLAIN_CAST
            "#define TINY_SQRT_tiny_f32 __builtin_sqrtf\n"
            "#define TINY_SQRT_tiny_f64 __builtin_sqrt\n"
            "#define TINY_TRUNC_tiny_f32 __builtin_truncf\n"
            "#define TINY_TRUNC_tiny_f64 __builtin_trunc\n"
            /* @expression for each lane l_ */
            "#define TINY_EACH(t, expression) ({ t r_; "
            "for (int l_ = 0; l_ < (int) (sizeof (t) / sizeof (r_[0])); l_++) r_[l_] = "
            "(expression); "
            "r_; })\n"
            "#define TINY_BROADCAST(t, x) ({ __typeof__ (x) x_ = (x); TINY_EACH (t, x_); })\n"
            "#define TINY_BITCAST(t, x) ({ __typeof__ (x) x_ = (x); t b_; "
            "__builtin_memcpy (&b_, &x_, sizeof b_); b_; })\n"
            "#define TINY_SELECT(t, m, a, b) ({ __typeof__ (m) m_ = (m); "
            "(t) (((__typeof__ (m_)) (a) & m_) | ((__typeof__ (m_)) (b) & ~m_)); })\n"
            "#define TINY_VWHERE(t, c, a, b) ({ t a_ = (a), b_ = (b); "
            "TINY_SELECT (t, __builtin_convertvector (c, __typeof__ (a_ == b_)) != 0, a_, b_); "
            "})\n"
            "#define TINY_VMAX(t, a, b) ({ t a_ = (a), b_ = (b); TINY_SELECT (t, a_ > b_, a_, "
            "b_); })\n"
            "#define TINY_MAX(t, a, b) ({ t a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })\n"
            /* no result of AND is joined with others in one instruction: cpu-llvm-ops.c says why */
            "#if defined __AVX512F__ && __has_builtin (__arithmetic_fence)\n"
            "#define TINY_VAND(t, a, b) ({ _Pragma (\"clang fp reassociate(on)\") "
            "typedef tiny_f32 f_ __attribute__ ((vector_size (sizeof (t) < 16 ? 16 : sizeof "
            "(t)))); "
            "union { t x; f_ f; } u_ = { .x = (a) & (b) }; u_.f = __arithmetic_fence (u_.f); "
            "u_.x; })\n"
            "#else\n"
            "#define TINY_VAND(t, a, b) ((a) & (b))\n"
            "#endif\n"
            "#define TINY_MULACC(t, a, b, c) ({ _Pragma (\"clang fp contract(fast)\") "
            "t r_ = (a) * (b) + (c); r_; })\n"
            /* no quotient traps: by 0 it is the dividend, by -1 its negative, which wraps */
            "#define TINY_DIV(t, a, b) ({ t a_ = (a), b_ = (b); "
            "(t) (b_ == 0 ? a_ : b_ == (t) -1 && (t) -1 < (t) 0 ? 0 - a_ : a_ / b_); })\n"
            "#define TINY_MOD(t, a, b) ({ t a_ = (a), b_ = (b); "
            "(t) (b_ == 0 || (b_ == (t) -1 && (t) -1 < (t) 0) ? 0 : a_ % b_); })\n"
            "#define TINY_VDIV(t, s, a, b) ({ t va_ = (a), vb_ = (b); "
            "TINY_EACH (t, TINY_DIV (s, va_[l_], vb_[l_])); })\n"
            "#define TINY_VMOD(t, s, a, b) ({ t va_ = (a), vb_ = (b); "
            "TINY_EACH (t, TINY_MOD (s, va_[l_], vb_[l_])); })\n"
            "#define TINY_LOAD_MASKED(t, p, i, g, x) ({ t r_ = (x); __typeof__ (g) g_ = (g); "
            "for (int l_ = 0; l_ < (int) (sizeof (r_) / sizeof (r_[0])); l_++) "
            "if (g_[l_]) r_[l_] = (p)[(i) + l_]; r_; })\n"
            "#define TINY_STORE_MASKED(p, i, x, g) do { __typeof__ (x) x_ = (x); __typeof__ "
            "(g) g_ = (g); "
            "for (int l_ = 0; l_ < (int) (sizeof (x_) / sizeof (x_[0])); l_++) "
            "if (g_[l_]) (p)[(i) + l_] = x_[l_]; } while (0)\n";

const TinyDialect cpu_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude = prelude,
  .types = { [TINY_DTYPE_VOID] = "void",
             [TINY_DTYPE_BOOL] = "tiny_bool",
             [TINY_DTYPE_I8] = "tiny_i8",
             [TINY_DTYPE_U8] = "tiny_u8",
             [TINY_DTYPE_I16] = "tiny_i16",
             [TINY_DTYPE_U16] = "tiny_u16",
             [TINY_DTYPE_I32] = "tiny_i32",
             [TINY_DTYPE_U32] = "tiny_u32",
             [TINY_DTYPE_I64] = "tiny_i64",
             [TINY_DTYPE_U64] = "tiny_u64",
             [TINY_DTYPE_F8E4M3] = "tiny_f8e4m3",
             [TINY_DTYPE_F8E5M2] = "tiny_f8e5m2",
             [TINY_DTYPE_F16] = "tiny_f16",
             [TINY_DTYPE_BF16] = "tiny_bf16",
             [TINY_DTYPE_F32] = "tiny_f32",
             [TINY_DTYPE_F64] = "tiny_f64" },
  .vector_type = "$Tx$n",
  .vector_typedef = "typedef $T $t __attribute__ ((vector_size (sizeof ($T) * $n)));\n"
                    "typedef $T $t_at __attribute__ ((vector_size (sizeof ($T) * $n), "
                    "aligned (__alignof__ ($T)), may_alias));\n",
  .kernel_open
  = "void\n" CPU_ENTRY_PREFIX "$name (void **tiny_buffers, const long long *tiny_variables, "
    "long long tiny_begin, long long tiny_end)\n"
    "{\n"
    "  $params;\n"
    "  for (long long tiny_point = tiny_begin; tiny_point < tiny_end; tiny_point++) {\n"
    "  const unsigned long long tiny_rest = (unsigned long long) tiny_point / $0;\n"
    "  const long long tiny_x = (unsigned long long) tiny_point % $0;\n"
    "  const long long tiny_y = tiny_rest % $1, tiny_z = tiny_rest / $1;\n",
  .kernel_close = "  }\n}\n",
  .param_read = "const $T *restrict $0 = tiny_buffers[$a]",
  .param_write = "$T *restrict $0 = tiny_buffers[$a]",
  .param_separator = ";\n  ",
  .variable = "const long long $0 = tiny_variables[$a]",
  .grid = "tiny_$x",
  .group = "0",
  .barrier = "",
  .local_open = "$T $0[$a] __attribute__ ((aligned (64)))",
  .ops = { [TINY_INSTR_LOAD] = "$0[$1]",
           [TINY_INSTR_STORE] = "$0[$1] = $2",
           [TINY_INSTR_CAST] = "TINY_CAST_$T ($t, $0)",
           [TINY_INSTR_BITCAST] = "TINY_BITCAST ($t, $0)",
           [TINY_INSTR_NEG] = "(($t) -$0)",
           [TINY_INSTR_RECIP] = "(($T) 1 / $0)",
           [TINY_INSTR_SQRT] = "TINY_SQRT_$T ($0)",
           [TINY_INSTR_TRUNC] = "TINY_TRUNC_$T ($0)",
           [TINY_INSTR_ADD] = "(($t) ($0 + $1))",
           [TINY_INSTR_SUB] = "(($t) ($0 - $1))",
           [TINY_INSTR_MUL] = "(($t) ($0 * $1))",
           [TINY_INSTR_FDIV] = "($0 / $1)",
           [TINY_INSTR_IDIV] = "TINY_DIV ($t, $0, $1)",
           [TINY_INSTR_MOD] = "TINY_MOD ($t, $0, $1)",
           [TINY_INSTR_MAX] = "TINY_MAX ($t, $0, $1)",
           [TINY_INSTR_CMPLT] = "($0 < $1)",
           [TINY_INSTR_CMPNE] = "($0 != $1)",
           [TINY_INSTR_CMPEQ] = "($0 == $1)",
           [TINY_INSTR_AND] = "(($t) ($0 & $1))",
           [TINY_INSTR_OR] = "(($t) ($0 | $1))",
           [TINY_INSTR_XOR] = "(($t) ($0 ^ $1))",
           [TINY_INSTR_SHL] = "(($t) ($0 << $1))",
           [TINY_INSTR_SHR] = "(($t) ($0 >> $1))",
           [TINY_INSTR_WHERE] = "($0 ? $1 : $2)",
           [TINY_INSTR_MULACC] = "TINY_MULACC ($t, $0, $1, $2)" },
  .vector_ops = { [TINY_INSTR_CAST] = "TINY_VCAST_$T ($t, $0)",
                  [TINY_INSTR_NEG] = "(-$0)",
                  [TINY_INSTR_SQRT] = "TINY_EACH ($t, TINY_SQRT_$T ($0[l_]))",
                  [TINY_INSTR_TRUNC] = "TINY_EACH ($t, TINY_TRUNC_$T ($0[l_]))",
                  [TINY_INSTR_ADD] = "($0 + $1)",
                  [TINY_INSTR_SUB] = "($0 - $1)",
                  [TINY_INSTR_MUL] = "($0 * $1)",
                  [TINY_INSTR_IDIV] = "TINY_VDIV ($t, $T, $0, $1)",
                  [TINY_INSTR_MOD] = "TINY_VMOD ($t, $T, $0, $1)",
                  [TINY_INSTR_MAX] = "TINY_VMAX ($t, $0, $1)",
                  [TINY_INSTR_CMPLT] = "(__builtin_convertvector ($0 < $1, $t) & 1)",
                  [TINY_INSTR_CMPNE] = "(__builtin_convertvector ($0 != $1, $t) & 1)",
                  [TINY_INSTR_CMPEQ] = "(__builtin_convertvector ($0 == $1, $t) & 1)",
                  [TINY_INSTR_AND] = "TINY_VAND ($t, $0, $1)",
                  [TINY_INSTR_OR] = "($0 | $1)",
                  [TINY_INSTR_XOR] = "($0 ^ $1)",
                  [TINY_INSTR_SHL] = "($0 << $1)",
                  [TINY_INSTR_SHR] = "($0 >> $1)",
                  [TINY_INSTR_WHERE] = "TINY_VWHERE ($t, $0, $1, $2)" },
  .load_vector = "(*(const $t_at *) ($0 + $1))",
  .store_vector = "*($t_at *) ($0 + $1) = $2",
  .load_masked = "TINY_LOAD_MASKED ($t, $0, $1, $2, $3)",
  .store_masked = "TINY_STORE_MASKED ($0, $1, $2, $3)",
  .vector_literal = "(($t) { $0 })",
  .broadcast = "TINY_BROADCAST ($t, $0)",
  .extract = "$0[$a]",
  .inf = "__builtin_inff ()",
  .neg_inf = "(-__builtin_inff ())",
  .nan = "__builtin_nanf (\"\")",
  .suffix = { [TINY_DTYPE_F32] = "f",
              [TINY_DTYPE_U32] = "u",
              [TINY_DTYPE_I64] = "ll",
              [TINY_DTYPE_U64] = "ull" },
};
