/* SPDX-License-Identifier: MIT
 *
 * test-operations.c: each instruction gives, for values of all kinds, what a formula in C gives that shares no code with
 * the interpreter. */
#include "machine.h"
#include <fenv.h>
#include <math.h>
#include <string.h>

enum { N = 256 };

typedef guint64 (*Formula) (guint64 a, guint64 b, guint64 c);

/* An instruction over registers %h (16 bits), %r (32), %d (64), %q (predicates) 0 to 2, into number 3; a formula over their low
 * bits; bits of the result; bits of error that are allowed. */
typedef struct {
  const char *text;
  Formula formula;
  guint bits, ulps;
} Case;

/* ---- formulas ---- */

static float
f32 (guint64 bits)
{
  guint32 word = bits;
  float value;
  memcpy (&value, &word, sizeof value);
  return value;
}

static guint64
bits_f32 (float value)
{
  guint32 word;
  memcpy (&word, &value, sizeof word);
  return isnan (value) ? 0x7fffffff : word;
}

static double
f64 (guint64 bits)
{
  double value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static guint64
bits_f64 (double value)
{
  guint64 word;
  memcpy (&word, &value, sizeof word);
  return isnan (value) ? 0x7ff8000000000000 : word;
}

/* Numbers of @e bits of exponent and @m of mantissa by their definition; of f16, bf16, f8. */
static double
small (guint64 bits, int e, int m)
{
  int bias = (1 << (e - 1)) - 1, exponent = bits >> m & ((1 << e) - 1),
      mantissa = bits & ((1 << m) - 1);
  double sign = bits >> (e + m) & 1 ? -1 : 1;
  if (exponent == (1 << e) - 1 && !(e == 4 && mantissa != 7))
    return mantissa == 0 && e != 4 ? sign * (double) INFINITY : (double) NAN;
  return sign
         * (exponent == 0 ? ldexp (mantissa, 1 - bias - m)
                          : ldexp (mantissa + (1 << m), exponent - bias - m));
}

static double
f16 (guint64 bits)
{
  return small (bits, 5, 10);
}

static double
bf16 (guint64 bits)
{
  return small (bits, 8, 7);
}

typedef enum { NEAREST, ZERO, DOWN, UP } Mode;

/* The number of a format that is nearest to @value by search over all of them; infinity counts as one step further. @exact
 * says on which side of @value the true number is. */
static guint64
search (double value, double rest, int e, int m, Mode mode)
{
  guint64 largest = e == 4 ? 0x7e : (guint64) ((1 << e) - 1) << m, low = 0, high = largest,
          sign = signbit (value) ? 1 : 0;
  double size = fabs (value);
  rest = sign ? -rest : rest;
  if (isnan (value))
    return e == 4 || e == 5 ? (m == 10 ? 0x7fff : 0x7f) : 0x7fff;
  while (low < high) {
    guint64 middle = (low + high + 1) / 2;
    double at = middle == largest && e != 4 ? ldexp (1, 1 << (e - 1)) : small (middle, e, m);
    if (at < size || (at == size && rest >= 0))
      low = middle;
    else
      high = middle - 1;
  }
  double below = low == largest && e != 4 ? ldexp (1, 1 << (e - 1)) : small (low, e, m);
  gboolean is_exact = (below == size && rest == 0) || isinf (size), is_up = FALSE;
  double above = low + 1 >= largest && e != 4 ? ldexp (1, 1 << (e - 1)) : small (low + 1, e, m);
  double middle = below + (above - below) / 2;
  if (mode == NEAREST)
    is_up = low < largest
            && (size > middle || (size == middle && (rest > 0 || (rest == 0 && (low & 1)))));
  else if (!is_exact && low < largest)
    is_up = mode == UP ? !sign : mode == DOWN ? sign : FALSE;
  if (isinf (size))
    low = largest;
  else if (low == largest && mode != NEAREST && e != 4)
    low = (mode == UP && !sign) || (mode == DOWN && sign) ? largest : largest - 1;
  return sign << (e + m) | (low + is_up);
}

/* a + b as a double and what it lacks, in numbers of 113 bits. */
static guint64
sum_in (double a, double b, int e, int m, Mode mode)
{
  double sum = a + b, large = fabs (a) > fabs (b) ? a : b, other = fabs (a) > fabs (b) ? b : a;
  __float128 rest = (__float128) other - ((__float128) sum - (__float128) large);
  return search (sum, !isfinite (sum) ? 0 : rest > 0 ? 1 : rest < 0 ? -1 : 0, e, m, mode);
}

#define S(bits, x) ((gint64) ((guint64) (x) << (64 - (bits))) >> (64 - (bits)))
#define U(bits, x) ((guint64) (x) << (64 - (bits)) >> (64 - (bits)))
#define F(name, expression)                                                                    \
  static guint64 name (guint64 a, guint64 b, guint64 c)                                        \
  {                                                                                            \
    (void) a, (void) b, (void) c;                                                              \
    return (guint64) (expression);                                                             \
  }
/* clang-format off */
F (of_add, a + b) F (of_sub, a - b) F (of_mul, a * b) F (of_mad, a * b + c)
F (of_adds, CLAMP (S (32, a) + S (32, b), G_MININT32, G_MAXINT32)) F (of_subs, CLAMP (S (32, a) - S (32, b), G_MININT32, G_MAXINT32))
F (of_mulhs32, S (32, a) * S (32, b) >> 32) F (of_mulhu32, U (32, a) * U (32, b) >> 32) F (of_mulhs16, S (16, a) * S (16, b) >> 16)
F (of_mulhs64, (__int128) (gint64) a * (gint64) b >> 64) F (of_mulhu64, (unsigned __int128) a * b >> 64)
F (of_wides32, S (32, a) * S (32, b)) F (of_wideu32, U (32, a) * U (32, b)) F (of_wides16, S (16, a) * S (16, b))
F (of_madwide, (guint64) (S (32, a) * S (32, b)) + c) F (of_madhi, (U (32, a) * U (32, b) >> 32) + c)
F (of_divu32, U (32, b) == 0 ? ~0ull : U (32, a) / U (32, b)) F (of_divs32, S (32, b) == 0 ? -1 : S (32, a) / S (32, b))
F (of_divu64, b == 0 ? ~0ull : a / b) F (of_divs64, b == 0 ? ~0ull : (gint64) b == -1 ? 0 - a : (guint64) ((gint64) a / (gint64) b))
F (of_remu32, U (32, b) == 0 ? a : U (32, a) % U (32, b)) F (of_rems32, S (32, b) == 0 ? (gint64) a : S (32, a) % S (32, b))
F (of_divs16, S (16, b) == 0 ? -1 : S (16, a) / S (16, b))
F (of_abs32, S (32, a) < 0 ? -a : a) F (of_neg64, -a) F (of_mins32, MIN (S (32, a), S (32, b))) F (of_maxu32, MAX (U (32, a), U (32, b)))
F (of_mins64, MIN ((gint64) a, (gint64) b)) F (of_maxu16, MAX (U (16, a), U (16, b))) F (of_mins16, MIN (S (16, a), S (16, b)))
F (of_sad, c + (S (32, a) > S (32, b) ? a - b : b - a))
F (of_dp4a, c + (gint8) a * (gint8) b + (gint8) (a >> 8) * (gint8) (b >> 8) + (gint8) (a >> 16) * (gint8) (b >> 16)
   + (gint8) (a >> 24) * (gint8) (b >> 24))
F (of_and, a & b) F (of_or, a | b) F (of_xor, a ^ b) F (of_not, ~a) F (of_cnot, U (32, a) == 0)
F (of_lop3, (a & b) | (~a & c)) /* a ? b : c, table 0xca */
F (of_shl32, U (32, b) > 31 ? 0 : a << U (32, b)) F (of_shl64, U (32, b) > 63 ? 0 : a << U (32, b))
F (of_shl16, U (32, b) > 15 ? 0 : a << U (32, b))
F (of_shru32, U (32, b) > 31 ? 0 : U (32, a) >> U (32, b)) F (of_shrs32, S (32, a) >> MIN (U (32, b), 31))
F (of_shrs64, (gint64) a >> MIN (U (32, b), 63)) F (of_shrs16, S (16, a) >> MIN (U (32, b), 15))
F (of_shfl_wrap, (U (32, b) << 32 | U (32, a)) << (c & 31) >> 32) F (of_shfr_wrap, (U (32, b) << 32 | U (32, a)) >> (c & 31))
F (of_shfl_clamp, U (32, c) > 31 ? b : U (32, b) << U (32, c) | (U (32, c) ? U (32, a) >> (32 - U (32, c)) : 0))
F (of_shfr_clamp, U (32, c) > 31 ? b : (U (32, b) << 32 | U (32, a)) >> U (32, c))
F (of_popc, __builtin_popcount (a)) F (of_popc64, __builtin_popcountll (a)) F (of_clz, U (32, a) ? __builtin_clz (a) : 32)
F (of_clz64, a ? __builtin_clzll (a) : 64) F (of_bfindu, U (32, a) ? 31 - __builtin_clz (a) : ~0)
F (of_bfinds, S (32, a) == 0 || S (32, a) == -1 ? ~0 : 31 - __builtin_clz (S (32, a) < 0 ? ~a : a))
F (of_bfe_u, (c & 255) == 0 || (b & 255) > 31 ? 0 : U (32, a) >> (b & 255) & (((guint64) 1 << MIN (c & 255, 32)) - 1))
F (of_bfi, (b & ~((((guint64) 1 << MIN (c & 7, 32)) - 1) << 3)) | (a & (((guint64) 1 << (c & 7)) - 1)) << 3)
F (of_lt_s32, S (32, a) < S (32, b)) F (of_ge_u32, U (32, a) >= U (32, b)) F (of_ne_64, a != b) F (of_hi_64, a > b)
F (of_lt_and, S (32, a) < S (32, b) && (c & 1)) F (of_le_xor, (S (32, a) <= S (32, b)) != (c & 1)) F (of_eq_or, U (32, a) == U (32, b) || !(c & 1))
F (of_selp, c & 1 ? a : b) F (of_set, S (32, a) > S (32, b) ? 0xffffffff : 0) F (of_slct, S (32, c) >= 0 ? a : b)
F (of_cvt_s8, S (8, a)) F (of_cvt_u8, U (8, a)) F (of_cvt_sat, CLAMP (S (32, a), -128, 127)) F (of_cvt_satu, S (32, a) < 0 ? 0 : MIN (a & G_MAXINT32, 0xffff))
F (of_cvt_s64, S (32, a)) F (of_cvt_u64, U (32, a))
F (of_pack, U (32, a) | b << 32) F (of_high, a >> 32) F (of_halves, U (16, a) | (guint64) U (16, b) << 16)
/* floating point */
F (of_fadd, bits_f32 (f32 (a) + f32 (b))) F (of_fsub, bits_f32 (f32 (a) - f32 (b))) F (of_fmul, bits_f32 (f32 (a) * f32 (b)))
F (of_ffma, bits_f32 (fmaf (f32 (a), f32 (b), f32 (c)))) F (of_fdiv, bits_f32 (f32 (a) / f32 (b)))
F (of_frcp, bits_f32 (1 / f32 (a))) F (of_fsqrt, bits_f32 (sqrtf (f32 (a)))) F (of_frsqrt, bits_f32 ((float) (1 / sqrt ((double) f32 (a)))))
F (of_dadd, bits_f64 (f64 (a) + f64 (b))) F (of_dmul, bits_f64 (f64 (a) * f64 (b))) F (of_dfma, bits_f64 (fma (f64 (a), f64 (b), f64 (c))))
F (of_ddiv, bits_f64 (f64 (a) / f64 (b))) F (of_dsqrt, bits_f64 (sqrt (f64 (a))))
F (of_fex2, bits_f32 (exp2f (f32 (a)))) F (of_flg2, bits_f32 (log2f (f32 (a))))
F (of_fabs32, a & 0x7fffffff) F (of_fneg32, a ^ 0x80000000)
F (of_hadd, sum_in (f16 (a), f16 (b), 5, 10, NEAREST)) F (of_hmul, search (f16 (a) * f16 (b), 0, 5, 10, NEAREST))
F (of_hfma, sum_in (f16 (a) * f16 (b), f16 (c), 5, 10, NEAREST))
F (of_badd, sum_in (bf16 (a), bf16 (b), 8, 7, NEAREST)) F (of_bfma, sum_in (bf16 (a) * bf16 (b), bf16 (c), 8, 7, NEAREST))
F (of_h_f32, bits_f32 ((float) f16 (a))) F (of_b_f32, bits_f32 ((float) bf16 (a)))
F (of_f_h, search (f32 (a), 0, 5, 10, NEAREST)) F (of_f_h_rz, search (f32 (a), 0, 5, 10, ZERO))
F (of_d_h, search (f64 (a), 0, 5, 10, NEAREST))
F (of_f_b, search (f32 (a), 0, 8, 7, NEAREST)) F (of_f_b_rz, search (f32 (a), 0, 8, 7, ZERO))
F (of_d_f, bits_f32 ((float) f64 (a))) F (of_f_d, bits_f64 (f32 (a)))
    /* clang-format on */

    static guint64 in_mode (int mode, guint64 a, guint64 b, guint64 c, char operation)
{
  fesetround (mode);
  volatile float x = f32 (a), y = f32 (b), z = f32 (c), result = 0;
  volatile double p = f64 (a), q = f64 (b), wide = 0;
  if (operation == '+')
    result = x + y;
  else if (operation == '*')
    result = x * y;
  else if (operation == '/')
    result = x / y;
  else if (operation == 'f')
    result = fmaf (x, y, z);
  else if (operation == 'n')
    result = p;
  else
    wide = operation == 'D' ? p + q : p * q;
  fesetround (FE_TONEAREST);
  return operation == 'D' || operation == 'M' ? bits_f64 (wide) : bits_f32 (result);
}

static guint64
min_max (guint64 a, guint64 b, gboolean is_max, gboolean keeps_nan)
{
  float x = f32 (a), y = f32 (b);
  if (isnan (x) || isnan (y))
    return keeps_nan || (isnan (x) && isnan (y)) ? 0x7fffffff : bits_f32 (isnan (x) ? y : x);
  if (x == y)
    return is_max == (signbit (x) != 0) ? bits_f32 (y) : bits_f32 (x);
  return bits_f32 ((x < y) != is_max ? x : y);
}

static guint64
flush (guint64 a)
{
  return (a & 0x7f800000) == 0 ? a & 0x80000000 : a;
}

static guint64
to_int (double value, double least, double most, guint64 nan)
{
  return isnan (value)    ? nan
         : value <= least ? (guint64) (gint64) least
         : value >= most
             ? (most >= 0x1p63 ? (least < 0 ? G_MAXINT64 : G_MAXUINT64) : (guint64) most)
         : value < 0 ? (guint64) (gint64) value
                     : (guint64) value;
}

static guint64
fp8 (guint64 a, int e, int m)
{
  double value = f32 (a);
  guint64 largest = e == 4 ? 0x7e : 0x7b;
  if (isnan (value))
    return 0x7f;
  if (fabs (value) > small (largest, e, m))
    return largest | (value < 0 ? 0x80 : 0);
  return search (value, 0, e, m, NEAREST);
}

static guint64
bytes_by (guint64 a, guint64 b, guint64 selector)
{
  guint8 bytes[8], out[4];
  guint32 low = a, high = b, result;
  memcpy (bytes, &low, 4);
  memcpy (bytes + 4, &high, 4);
  for (guint i = 0; i < 4; i++) {
    guint s = selector >> 4 * i & 15;
    out[i] = s < 8 ? bytes[s] : bytes[s - 8] >= 128 ? 255 : 0;
  }
  memcpy (&result, out, 4);
  return result;
}

/* clang-format off */
F (of_fadd_rz, in_mode (FE_TOWARDZERO, a, b, c, '+')) F (of_fadd_rp, in_mode (FE_UPWARD, a, b, c, '+'))
F (of_fmul_rm, in_mode (FE_DOWNWARD, a, b, c, '*')) F (of_ffma_rz, in_mode (FE_TOWARDZERO, a, b, c, 'f'))
F (of_fdiv_rp, in_mode (FE_UPWARD, a, b, c, '/')) F (of_fdiv_rz, in_mode (FE_TOWARDZERO, a, b, c, '/'))
F (of_dadd_rm, in_mode (FE_DOWNWARD, a, b, c, 'D')) F (of_dmul_rz, in_mode (FE_TOWARDZERO, a, b, c, 'M'))
F (of_d_f_rm, in_mode (FE_DOWNWARD, a, b, c, 'n'))
F (of_fleast, min_max (a, b, FALSE, FALSE)) F (of_fmost, min_max (a, b, TRUE, FALSE)) F (of_fmax_nan, min_max (a, b, TRUE, TRUE))
F (of_fadd_ftz, flush (bits_f32 (f32 (flush (a)) + f32 (flush (b)))))
F (of_fmul_sat, f32 (a) * f32 (b) > 0 ? bits_f32 (MIN (f32 (a) * f32 (b), 1)) : 0)
F (of_flt, f32 (a) < f32 (b)) F (of_fltu, !(f32 (a) >= f32 (b))) F (of_fneu, f32 (a) != f32 (b)) F (of_fne, f32 (a) < f32 (b) || f32 (a) > f32 (b))
F (of_fnum, !isnan (f32 (a)) && !isnan (f32 (b))) F (of_fnan, isnan (f32 (a)) || isnan (f32 (b))) F (of_dge, f64 (a) >= f64 (b))
F (of_hlt, f16 (a) < f16 (b)) F (of_heq, f16 (a) == f16 (b))
F (of_f_s32, to_int (truncf (f32 (a)), -0x1p31, 0x7fffffff, 0)) F (of_f_u32, to_int (truncf (f32 (a)), 0, 0xffffffff, 0))
F (of_f_s8, to_int (rintf (f32 (a)), -128, 127, 0)) F (of_f_s64, to_int (floorf (f32 (a)), -0x1p63, 0x1p63, (guint64) 1 << 63))
F (of_d_u64, to_int (ceil (f64 (a)), 0, 0x1p64, (guint64) 1 << 63)) F (of_d_s32, to_int (rint (f64 (a)), -0x1p31, 0x7fffffff, (guint64) 1 << 31))
F (of_s32_f, bits_f32 ((float) S (32, a))) F (of_u64_f, bits_f32 ((float) a)) F (of_s64_d, bits_f64 ((double) (gint64) a))
F (of_s32_f_rz, bits_f32 ((float) (S (32, a) < 0 ? -1 : 1) * (float) (S (32, a) == 0 ? 0 : ({ guint32 u = S (32, a) < 0 ? -(guint32) a : (guint32) a; int n = 32 - __builtin_clz (u); n > 24 ? u >> (n - 24) << (n - 24) : u; }))))
F (of_u16_h, search (U (16, a), 0, 5, 10, NEAREST)) F (of_round32, bits_f32 (rintf (f32 (a)))) F (of_trunc64, bits_f64 (trunc (f64 (a))))
F (of_e4m3, fp8 (a, 4, 3) << 8 | fp8 (b, 4, 3)) F (of_e5m2, fp8 (a, 5, 2) << 8 | fp8 (b, 5, 2))
F (of_e4m3_h, search (small (a >> 8 & 255, 4, 3), 0, 5, 10, NEAREST) << 16 | search (small (a & 255, 4, 3), 0, 5, 10, NEAREST))
F (of_h2, search (f32 (a), 0, 5, 10, NEAREST) << 16 | search (f32 (b), 0, 5, 10, NEAREST))
F (of_b2, search (f32 (a), 0, 8, 7, NEAREST) << 16 | search (f32 (b), 0, 8, 7, NEAREST)) F (of_drcp, bits_f64 (1 / f64 (a)))
F (of_tf32, isnan (f32 (a)) ? 0x7fffe000 : (U (32, a) + 0x1000) & 0xffffe000)
F (of_hadd2, U (16, of_hadd (a, b, 0)) | U (16, of_hadd (a >> 16, b >> 16, 0)) << 16)
F (of_prmt, bytes_by (a, b, c)) F (of_copysign32, (a & 0x80000000) | (b & 0x7fffffff)) F (of_testp, isfinite (f32 (a)))
F (of_add2, U (16, a + b) | U (16, (a >> 16) + (b >> 16)) << 16) F (of_max2, of_maxu16 (a, b, 0) | of_maxu16 (a >> 16, b >> 16, 0) << 16)
    /* clang-format on */

    /* clang-format off */
static const Case integers[] = {
  { "add.s32 %r3, %r0, %r1;", of_add, 32 }, { "add.u16 %h3, %h0, %h1;", of_add, 16 },
  { "add.s64 %d3, %d0, %d1;", of_add, 64 }, { "sub.s32 %r3, %r0, %r1;", of_sub, 32 },
  { "sub.u64 %d3, %d0, %d1;", of_sub, 64 }, { "add.sat.s32 %r3, %r0, %r1;", of_adds, 32 },
  { "sub.sat.s32 %r3, %r0, %r1;", of_subs, 32 }, { "add.u16x2 %r3, %r0, %r1;", of_add2, 32 },
  { "max.u16x2 %r3, %r0, %r1;", of_max2, 32 }, { "mul.lo.s32 %r3, %r0, %r1;", of_mul, 32 },
  { "mul.lo.u64 %d3, %d0, %d1;", of_mul, 64 }, { "mul.lo.s16 %h3, %h0, %h1;", of_mul, 16 },
  { "mul.hi.s32 %r3, %r0, %r1;", of_mulhs32, 32 }, { "mul.hi.u32 %r3, %r0, %r1;", of_mulhu32, 32 },
  { "mul.hi.s16 %h3, %h0, %h1;", of_mulhs16, 16 }, { "mul.hi.s64 %d3, %d0, %d1;", of_mulhs64, 64 },
  { "mul.hi.u64 %d3, %d0, %d1;", of_mulhu64, 64 }, { "mul.wide.s32 %d3, %r0, %r1;", of_wides32, 64 },
  { "mul.wide.u32 %d3, %r0, %r1;", of_wideu32, 64 }, { "mul.wide.s16 %r3, %h0, %h1;", of_wides16, 32 },
  { "mad.lo.s32 %r3, %r0, %r1, %r2;", of_mad, 32 }, { "mad.lo.u64 %d3, %d0, %d1, %d2;", of_mad, 64 },
  { "mad.wide.s32 %d3, %r0, %r1, %d2;", of_madwide, 64 }, { "mad.hi.u32 %r3, %r0, %r1, %r2;", of_madhi, 32 },
  { "div.u32 %r3, %r0, %r1;", of_divu32, 32 }, { "div.s32 %r3, %r0, %r1;", of_divs32, 32 },
  { "div.u64 %d3, %d0, %d1;", of_divu64, 64 }, { "div.s64 %d3, %d0, %d1;", of_divs64, 64 },
  { "div.s16 %h3, %h0, %h1;", of_divs16, 16 }, { "rem.u32 %r3, %r0, %r1;", of_remu32, 32 },
  { "rem.s32 %r3, %r0, %r1;", of_rems32, 32 }, { "abs.s32 %r3, %r0;", of_abs32, 32 },
  { "neg.s64 %d3, %d0;", of_neg64, 64 }, { "min.s32 %r3, %r0, %r1;", of_mins32, 32 },
  { "max.u32 %r3, %r0, %r1;", of_maxu32, 32 }, { "min.s64 %d3, %d0, %d1;", of_mins64, 64 },
  { "max.u16 %h3, %h0, %h1;", of_maxu16, 16 }, { "min.s16 %h3, %h0, %h1;", of_mins16, 16 },
  { "sad.s32 %r3, %r0, %r1, %r2;", of_sad, 32 }, { "dp4a.s32.s32 %r3, %r0, %r1, %r2;", of_dp4a, 32 },
  { "and.b32 %r3, %r0, %r1;", of_and, 32 }, { "or.b64 %d3, %d0, %d1;", of_or, 64 },
  { "xor.b16 %h3, %h0, %h1;", of_xor, 16 }, { "not.b32 %r3, %r0;", of_not, 32 },
  { "cnot.b32 %r3, %r0;", of_cnot, 32 }, { "lop3.b32 %r3, %r0, %r1, %r2, 0xca;", of_lop3, 32 },
  { "shl.b32 %r3, %r0, %r1;", of_shl32, 32 }, { "shl.b64 %d3, %d0, %r1;", of_shl64, 64 },
  { "shl.b16 %h3, %h0, %r1;", of_shl16, 16 }, { "shr.u32 %r3, %r0, %r1;", of_shru32, 32 },
  { "shr.s32 %r3, %r0, %r1;", of_shrs32, 32 }, { "shr.s64 %d3, %d0, %r1;", of_shrs64, 64 },
  { "shr.s16 %h3, %h0, %r1;", of_shrs16, 16 }, { "shf.l.wrap.b32 %r3, %r0, %r1, %r2;", of_shfl_wrap, 32 },
  { "shf.r.wrap.b32 %r3, %r0, %r1, %r2;", of_shfr_wrap, 32 },
  { "shf.l.clamp.b32 %r3, %r0, %r1, %r2;", of_shfl_clamp, 32, 99 },
  { "shf.r.clamp.b32 %r3, %r0, %r1, %r2;", of_shfr_clamp, 32 }, { "popc.b32 %r3, %r0;", of_popc, 32 },
  { "popc.b64 %r3, %d0;", of_popc64, 32 }, { "clz.b32 %r3, %r0;", of_clz, 32 }, { "clz.b64 %r3, %d0;", of_clz64, 32 },
  { "bfind.u32 %r3, %r0;", of_bfindu, 32 }, { "bfind.s32 %r3, %r0;", of_bfinds, 32 },
  { "bfe.u32 %r3, %r0, %r1, %r2;", of_bfe_u, 32 },
  { "and.b32 %r2, %r2, 7; bfi.b32 %r3, %r0, %r1, 3, %r2;", of_bfi, 32 },
  { "prmt.b32 %r3, %r0, %r1, %r2;", of_prmt, 32 },
  { "brev.b32 %r3, %r0; brev.b32 %r3, %r3; xor.b32 %r3, %r3, %r1;", of_xor, 32 },
  { "setp.lt.s32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_lt_s32, 32 },
  { "setp.ge.u32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_ge_u32, 32 },
  { "setp.ne.s64 %q3, %d0, %d1; selp.u32 %r3, 1, 0, %q3;", of_ne_64, 32 },
  { "setp.hi.u64 %q3, %d0, %d1; selp.u32 %r3, 1, 0, %q3;", of_hi_64, 32 },
  { "setp.lt.and.s32 %q3|%q4, %r0, %r1, %q2; selp.u32 %r3, 1, 0, %q3;", of_lt_and, 32 },
  { "setp.le.xor.s32 %q3, %r0, %r1, %q2; selp.u32 %r3, 1, 0, %q3;", of_le_xor, 32 },
  { "setp.eq.or.s32 %q3, %r0, %r1, !%q2; selp.u32 %r3, 1, 0, %q3;", of_eq_or, 32 },
  { "selp.b64 %d3, %d0, %d1, %q2;", of_selp, 64 }, { "set.gt.u32.s32 %r3, %r0, %r1;", of_set, 32 },
  { "slct.b32.s32 %r3, %r0, %r1, %r2;", of_slct, 32 },
  { "{ .reg .b32 l, h, m, n; mov.b64 {l, h}, %d0; mov.b64 {m, n}, %d1; add.cc.u32 l, l, m; addc.u32 h, h, n; mov.b64 %d3, {l, h}; }", of_add, 64 },
  { "{ .reg .b32 l, h, m, n; mov.b64 {l, h}, %d0; mov.b64 {m, n}, %d1; sub.cc.u32 l, l, m; subc.u32 h, h, n; mov.b64 %d3, {l, h}; }", of_sub, 64 },
  { "{ .reg .b32 l, h, m, n, x, y; mov.b64 {l, h}, %d0; mov.b64 {m, n}, %d1; mul.lo.u32 x, l, m; mul.hi.u32 y, l, m; mad.lo.u32 y, l, n, y; mad.lo.u32 y, h, m, y; mov.b64 %d3, {x, y}; }", of_mul, 64 },
  { "cvt.s32.s8 %r3, %r0;", of_cvt_s8, 32 }, { "cvt.u32.u8 %r3, %r0;", of_cvt_u8, 32 },
  { "cvt.sat.s8.s32 %r3, %r0;", of_cvt_sat, 32 }, { "cvt.sat.u16.s32 %r3, %r0;", of_cvt_satu, 32 },
  { "cvt.s64.s32 %d3, %r0;", of_cvt_s64, 64 }, { "cvt.u64.u32 %d3, %r0;", of_cvt_u64, 64 },
  { "mov.b64 %d3, {%r0, %r1};", of_pack, 64 }, { "mov.b64 {_, %r3}, %d0;", of_high, 32 },
  { "mov.b32 %r3, {%h0, %h1};", of_halves, 32 },
};

static const Case floats[] = {
  { "add.rn.f32 %r3, %r0, %r1;", of_fadd, 32 }, { "sub.f32 %r3, %r0, %r1;", of_fsub, 32 },
  { "mul.f32 %r3, %r0, %r1;", of_fmul, 32 }, { "fma.rn.f32 %r3, %r0, %r1, %r2;", of_ffma, 32 },
  { "mad.rn.f32 %r3, %r0, %r1, %r2;", of_ffma, 32 }, { "add.rz.f32 %r3, %r0, %r1;", of_fadd_rz, 32 },
  { "add.rp.f32 %r3, %r0, %r1;", of_fadd_rp, 32 }, { "mul.rm.f32 %r3, %r0, %r1;", of_fmul_rm, 32 },
  { "fma.rz.f32 %r3, %r0, %r1, %r2;", of_ffma_rz, 32 }, { "div.rn.f32 %r3, %r0, %r1;", of_fdiv, 32 },
  { "div.rp.f32 %r3, %r0, %r1;", of_fdiv_rp, 32 }, { "div.rz.f32 %r3, %r0, %r1;", of_fdiv_rz, 32 },
  { "div.full.f32 %r3, %r0, %r1;", of_fdiv, 32, 2 }, { "rcp.rn.f32 %r3, %r0;", of_frcp, 32 },
  { "rcp.approx.f32 %r3, %r0;", of_frcp, 32, 1 }, { "sqrt.rn.f32 %r3, %r0;", of_fsqrt, 32 },
  { "rsqrt.approx.f32 %r3, %r0;", of_frsqrt, 32, 2 }, { "ex2.approx.f32 %r3, %r0;", of_fex2, 32, 2 },
  { "lg2.approx.f32 %r3, %r0;", of_flg2, 32, 2 }, { "add.rn.f64 %d3, %d0, %d1;", of_dadd, 64 },
  { "mul.rn.f64 %d3, %d0, %d1;", of_dmul, 64 }, { "fma.rn.f64 %d3, %d0, %d1, %d2;", of_dfma, 64 },
  { "div.rn.f64 %d3, %d0, %d1;", of_ddiv, 64 }, { "sqrt.rn.f64 %d3, %d0;", of_dsqrt, 64 },
  { "add.rm.f64 %d3, %d0, %d1;", of_dadd_rm, 64 }, { "mul.rz.f64 %d3, %d0, %d1;", of_dmul_rz, 64 },
  { "abs.f32 %r3, %r0;", of_fabs32, 32 }, { "neg.f32 %r3, %r0;", of_fneg32, 32 },
  { "min.f32 %r3, %r0, %r1;", of_fleast, 32 }, { "max.f32 %r3, %r0, %r1;", of_fmost, 32 },
  { "max.NaN.f32 %r3, %r0, %r1;", of_fmax_nan, 32 }, { "add.ftz.f32 %r3, %r0, %r1;", of_fadd_ftz, 32 },
  { "mul.sat.f32 %r3, %r0, %r1;", of_fmul_sat, 32 }, { "add.f16 %h3, %h0, %h1;", of_hadd, 16 },
  { "mul.rn.f16 %h3, %h0, %h1;", of_hmul, 16 }, { "fma.rn.f16 %h3, %h0, %h1, %h2;", of_hfma, 16 },
  { "add.f16x2 %r3, %r0, %r1;", of_hadd2, 32 }, { "add.rn.bf16 %h3, %h0, %h1;", of_badd, 16 },
  { "fma.rn.bf16 %h3, %h0, %h1, %h2;", of_bfma, 16 },
  { "setp.lt.f32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_flt, 32 },
  { "setp.ltu.f32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_fltu, 32 },
  { "setp.neu.f32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_fneu, 32 },
  { "setp.ne.f32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_fne, 32 },
  { "setp.num.f32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_fnum, 32 },
  { "setp.nan.f32 %q3, %r0, %r1; selp.u32 %r3, 1, 0, %q3;", of_fnan, 32 },
  { "setp.ge.f64 %q3, %d0, %d1; selp.u32 %r3, 1, 0, %q3;", of_dge, 32 },
  { "setp.lt.f16 %q3, %h0, %h1; selp.u32 %r3, 1, 0, %q3;", of_hlt, 32 },
  { "setp.eq.f16 %q3, %h0, %h1; selp.u32 %r3, 1, 0, %q3;", of_heq, 32 },
  { "testp.finite.f32 %q3, %r0; selp.u32 %r3, 1, 0, %q3;", of_testp, 32 },
  { "copysign.f32 %r3, %r0, %r1;", of_copysign32, 32 }, { "cvt.f32.f16 %r3, %h0;", of_h_f32, 32 },
  { "cvt.f32.bf16 %r3, %h0;", of_b_f32, 32 }, { "cvt.rn.f16.f32 %h3, %r0;", of_f_h, 16 },
  { "cvt.rz.f16.f32 %h3, %r0;", of_f_h_rz, 16 }, { "cvt.rn.f16.f64 %h3, %d0;", of_d_h, 16 },
  { "cvt.rn.bf16.f32 %h3, %r0;", of_f_b, 16 }, { "cvt.rz.bf16.f32 %h3, %r0;", of_f_b_rz, 16 },
  { "cvt.rn.f32.f64 %r3, %d0;", of_d_f, 32 }, { "cvt.rm.f32.f64 %r3, %d0;", of_d_f_rm, 32 },
  { "cvt.f64.f32 %d3, %r0;", of_f_d, 64 }, { "cvt.rzi.s32.f32 %r3, %r0;", of_f_s32, 32 },
  { "cvt.rzi.u32.f32 %r3, %r0;", of_f_u32, 32 }, { "cvt.rni.s8.f32 %r3, %r0;", of_f_s8, 32 },
  { "cvt.rmi.s64.f32 %d3, %r0;", of_f_s64, 64 }, { "cvt.rpi.u64.f64 %d3, %d0;", of_d_u64, 64 },
  { "cvt.rni.s32.f64 %r3, %d0;", of_d_s32, 32 }, { "cvt.rn.f32.s32 %r3, %r0;", of_s32_f, 32 },
  { "cvt.rz.f32.s32 %r3, %r0;", of_s32_f_rz, 32 }, { "cvt.rn.f32.u64 %r3, %d0;", of_u64_f, 32 },
  { "cvt.rn.f64.s64 %d3, %d0;", of_s64_d, 64 }, { "cvt.rn.f16.u16 %h3, %h0;", of_u16_h, 16 },
  { "cvt.rni.f32.f32 %r3, %r0;", of_round32, 32 }, { "cvt.rzi.f64.f64 %d3, %d0;", of_trunc64, 64 },
  { "cvt.rn.satfinite.e4m3x2.f32 %h3, %r0, %r1;", of_e4m3, 16 },
  { "cvt.rn.satfinite.e5m2x2.f32 %h3, %r0, %r1;", of_e5m2, 16 }, { "cvt.rn.bf16x2.f32 %r3, %r0, %r1;", of_b2, 32 },
  { "cvt.rna.tf32.f32 %r3, %r0;", of_tf32, 32 }, { "rcp.rn.f64 %d3, %d0;", of_drcp, 64 }, { "cvt.rn.f16x2.e4m3x2 %r3, %h0;", of_e4m3_h, 32 },
  { "cvt.rn.f16x2.f32 %r3, %r0, %r1;", of_h2, 32 },
};
/* clang-format on */

/* ---- running ---- */

static char *
text_of (const Case *row)
{
  const char *store = row->bits == 16   ? "cvt.u64.u16 %d3, %h3;"
                      : row->bits == 32 ? "cvt.u64.u32 %d3, %r3;"
                                        : "";
  return g_strconcat (
      MACHINE_HEAD
      ".visible .entry k (.param .u64 o, .param .u64 x, .param .u64 y, .param .u64 z)\n{\n"
      ".reg .b16 %h<4>; .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .pred %q<5>; .reg .b64 %a<5>;\n"
      "mov.u32 %r0, %tid.x; mul.wide.u32 %a4, %r0, 8;\n"
      "ld.param.u64 %a0, [x]; add.s64 %a0, %a0, %a4; ld.global.u64 %d0, [%a0];\n"
      "ld.param.u64 %a1, [y]; add.s64 %a1, %a1, %a4; ld.global.u64 %d1, [%a1];\n"
      "ld.param.u64 %a2, [z]; add.s64 %a2, %a2, %a4; ld.global.u64 %d2, [%a2];\n"
      "ld.param.u64 %a3, [o]; add.s64 %a3, %a3, %a4; cvta.to.global.u64 %a3, %a3;\n"
      "cvt.u32.u64 %r0, %d0; cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2;\n"
      "cvt.u16.u64 %h0, %d0; cvt.u16.u64 %h1, %d1; cvt.u16.u64 %h2, %d2;\n"
      "and.b32 %r4, %r2, 1; setp.ne.s32 %q2, %r4, 0;\n",
      row->text, "\n", store, "\nst.global.u64 [%a3], %d3;\nret;\n}\n", NULL);
}

/* Steps between two floats of the same sign; 0 where both are NaN. */
static guint64
distance (const Case *row, guint64 a, guint64 b)
{
  return row->ulps == 0                       ? a != b
         : isnan (f32 (a)) && isnan (f32 (b)) ? 0
         : a > b                              ? a - b
                                              : b - a;
}

static gboolean
is_undefined (const Case *row, guint64 c)
{
  /* an amount of 32 and more that a formula of 64 bits cannot shift by */
  return row->formula == of_shfl_clamp && U (32, c) > 31;
}

static void
check_case (const Case *row, const guint64 *a, const guint64 *b, const guint64 *c)
{
  guint64 out[N];
  g_autofree char *text = text_of (row);
  memset (out, 0, sizeof out);
  PtxFault fault = machine_run (&(Machine){ .text = text,
                                            .threads = N,
                                            .arrays = { { out, sizeof out },
                                                        { (void *) a, sizeof out },
                                                        { (void *) b, sizeof out },
                                                        { (void *) c, sizeof out } } });
  g_assert_cmpstr (fault.text, ==, "");
  for (guint i = 0; i < N; i++) {
    guint64 wanted = U (row->bits, row->formula (a[i], b[i], c[i]));
    if (!is_undefined (row, c[i]) && distance (row, wanted, out[i]) > row->ulps) {
      g_test_message ("%s of %016" G_GINT64_MODIFIER "x %016" G_GINT64_MODIFIER
                      "x %016" G_GINT64_MODIFIER "x: %" G_GINT64_MODIFIER
                      "x, not %" G_GINT64_MODIFIER "x",
                      row->text, a[i], b[i], c[i], out[i], wanted);
      g_test_fail ();
      return;
    }
  }
}

static guint64
random64 (void)
{
  return (guint64) g_test_rand_int () << 32 | (guint32) g_test_rand_int ();
}

/* Every pair of edges, with a third one; then numbers by chance. */
static void
fill (guint64 *a, guint64 *b, guint64 *c, const guint64 *edges, guint n, guint round)
{
  for (guint i = 0; i < N; i++) {
    guint pair = round * N + i;
    gboolean is_edge = pair < n * n;
    a[i] = is_edge ? edges[pair / n] : random64 () >> (g_test_rand_int () & 31);
    b[i] = is_edge ? edges[pair % n] : random64 () >> (g_test_rand_int () & 31);
    c[i] = is_edge ? edges[g_test_rand_int_range (0, n)]
                   : random64 () >> (g_test_rand_int () & 31);
  }
}

static void
check_all (const Case *rows, guint n_rows, const guint64 *edges, guint n_edges)
{
  guint64 a[N], b[N], c[N];
  for (guint round = 0; round < n_edges * n_edges / N + 3; round++) {
    fill (a, b, c, edges, n_edges, round);
    for (guint i = 0; i < n_rows; i++)
      check_case (&rows[i], a, b, c);
  }
}

static void
test_integers (void)
{
  static const guint64 edges[] = { 0,
                                   1,
                                   2,
                                   7,
                                   31,
                                   32,
                                   33,
                                   63,
                                   64,
                                   127,
                                   128,
                                   255,
                                   256,
                                   0x7fff,
                                   0x8000,
                                   0xffff,
                                   0x10000,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   0x100000000,
                                   0x7fffffffffffffff,
                                   0x8000000000000000,
                                   0xffffffffffffffff,
                                   0xfffffffffffffffe,
                                   0xffffffff80000000,
                                   0x5410,
                                   0x3210,
                                   0xfedc };
  check_all (integers, G_N_ELEMENTS (integers), edges, G_N_ELEMENTS (edges));
}

/* A pattern of 64 bits whose lower halves are numbers of the smaller formats too. */
static void
test_floats (void)
{
  guint64 edges[64];
  static const float values[] = { 0,
                                  1,
                                  -1,
                                  0.5f,
                                  1.5f,
                                  2.5f,
                                  3,
                                  -2.5f,
                                  448,
                                  464,
                                  480,
                                  57344,
                                  65504,
                                  65520,
                                  70000,
                                  1e-8f,
                                  6e-8f,
                                  0.001f,
                                  0x1p-126f,
                                  0x1p-127f,
                                  -0x1p-149f,
                                  0x1p31f,
                                  0x1.fffffep31f,
                                  0x1p63f,
                                  -0x1p63f,
                                  0x1.fffffep127f,
                                  127.5f,
                                  -128.5f,
                                  1e20f };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    guint64 single = bits_f32 (values[i]);
    edges[n++] = single | single << 32;
    if (i % 2)
      edges[n++] = bits_f64 (values[i]);
  }
  static const guint64 more[]
      = { 0x7f8000007f800000, 0xff800000ff800000, 0x7fc000007fc00000, 0x7ff0000000000000,
          0x7ff8000000000000, 0x8000000080000000, 0x3c003c003c003c00, 0x7bff7bff,
          0x7c007c00,         0xfc007e00,         0x00010001,         0x83ff8400,
          0x3c013555,         0x3fa03fa1 };
  memcpy (edges + n, more, sizeof more);
  check_all (floats, G_N_ELEMENTS (floats), edges, n + G_N_ELEMENTS (more));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/simulators/nvidia/operations/integers", test_integers);
  g_test_add_func ("/simulators/nvidia/operations/floats", test_floats);
  return g_test_run ();
}
