/* SPDX-License-Identifier: MIT
 *
 * decompose-transcendental.c: EXP2, LOG2 and SIN of f32 and f64 in arithmetic of the same dtype
 * and of integers of its width.
 *
 * Each is an argument brought into a short interval without loss, a polynomial long enough that
 * its error is below a tenth of the last place there, and the way back. The largest errors found in
 * units of the last place stand in the test; they are below 2 for every argument, those of SIN
 * too however large it is. Zeros, infinities, NaNs, subnormals and overflow come out as in C. */
#include <math.h>

#include "codegen/decompose-private.h"

/* c[0] + x (c[1] + x (c[2] + …)) */
static TinyNode *
polynomial (Decompose *d, TinyNode *x, const double *c, guint n)
{
  TinyNode *sum = dec_float (d, x->dtype, x, c[n - 1]);
  for (guint i = n - 1; i-- > 0;)
    sum = dec_mulacc (d, sum, x, dec_float (d, x->dtype, x, c[i]));
  return sum;
}

static gboolean
is_double (TinyDType dtype)
{
  return dtype == TINY_DTYPE_F64;
}

/* Whether what a sum lost cannot be had by subtracting again; then it is left out. */
static gboolean
reassociates (Decompose *d)
{
  return (d->target->flags & TINY_TARGET_REASSOCIATES) != 0;
}

/* ---- 2^x = 2^n 2^r, n the nearest integer, r in [-1/2, 1/2] ----
 *
 * The polynomials 1 + r (c[0] + r (c[1] + …)) have the least largest relative error there is on
 * that interval with the first two coefficients rounded before the others were found (Remez'
 * exchange): 5.3e-9 and 6e-18. They are exact at r = 0. */
static const double exp2_f32[]
    = { 0.6931471824645996,   0.2402265965938568,    0.05550375580787659,
        0.009617461822926998, 0.0013383756158873439, 0.00015548201918136328 };
static const double exp2_f64[]
    = { 0.6931471805599453,     0.24022650695910067,    0.05550410866482193,
        0.009618129107615855,   0.001333355814651892,   0.00015403530433170302,
        1.5252733636846418e-05, 1.3215445969446215e-06, 1.0178166807406337e-07,
        7.0721110375926666e-09, 4.4369132111703233e-10 };

/* Where 2^x is subnormal, its code: 2^x times 2^64 is @code and as many steps of the exponent; the
 * sum with a number whose last place is the smallest subnormal times 2^64 is rounded there. No
 * operand and no result is subnormal, which takes some processors a hundred cycles, and a softmax
 * with a mask is full of 2^-inf. */
static TinyNode *
subnormal_code (Decompose *d, TinyNode *code, TinyDType dtype)
{
  const gint lift = 64;
  TinyNode *lifted = dec_with_int (d, TINY_OP_ADD, code,
                                   (gint64) lift << tiny_dtype_infos[dtype].mantissa_bits);
  TinyNode *unit = dec_float (d, dtype, code, ldexp (1, 1 - dec_bias (dtype) + lift));
  TinyNode *sum = dec_binary (d, TINY_OP_ADD, dec_bits (d, lifted, dtype), unit);
  return dec_binary (d, TINY_OP_SUB, dec_bits (d, sum, code->dtype),
                     dec_bits (d, unit, code->dtype));
}

/* @x as the nearest integer n and the rest: n as a word's lowest bits, of which those that a shift by
 * the mantissa's width drops may be others. */
static TinyNode *
split_nearest (Decompose *d, TinyNode *x, TinyNode **out_rest)
{
  TinyDType dtype = x->dtype, word = dec_unsigned (dtype);
  if (reassociates (d)) {
    TinyNode *half = dec_where (d, dec_is_below (d, x, 0), dec_float (d, dtype, x, -0.5),
                                dec_float (d, dtype, x, 0.5));
    TinyNode *n = dec_cast (d, dec_binary (d, TINY_OP_ADD, x, half), dec_signed (dtype));
    *out_rest = dec_binary (d, TINY_OP_SUB, x, dec_cast (d, n, dtype));
    return dec_bits (d, n, word);
  }
  /* The sum's last place is 1. */
  TinyNode *shifter
      = dec_float (d, dtype, x, ldexp (1.5, (gint) tiny_dtype_infos[dtype].mantissa_bits));
  TinyNode *shifted = dec_binary (d, TINY_OP_ADD, x, shifter);
  *out_rest = dec_binary (d, TINY_OP_SUB, x, dec_binary (d, TINY_OP_SUB, shifted, shifter));
  return dec_bits (d, shifted, word);
}

static TinyNode *
exp2_of (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *args)
{
  if (dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F64)
    return NULL;
  TinyDType word = dec_unsigned (dtype);
  gint bias = dec_bias (dtype), m = (gint) tiny_dtype_infos[dtype].mantissa_bits;
  /* 2^low rounds to 0. Comparisons are such that a NaN passes. */
  TinyNode *low = dec_float (d, dtype, args[0], -(bias + m + 1));
  TinyNode *x = dec_where (d, dec_binary (d, TINY_OP_CMPLT, args[0], low), low, args[0]);
  TinyNode *r, *n = split_nearest (d, x, &r);
  TinyNode *slope = is_double (dtype) ? polynomial (d, r, exp2_f64, G_N_ELEMENTS (exp2_f64))
                                      : polynomial (d, r, exp2_f32, G_N_ELEMENTS (exp2_f32));
  TinyNode *power = dec_mulacc (d, r, slope, dec_float (d, dtype, x, 1));
  TinyNode *steps = dec_with_int (d, TINY_OP_SHL, n, m);
  TinyNode *code = dec_binary (d, TINY_OP_ADD, dec_bits (d, power, word), steps);
  code = dec_where (d, dec_is_below (d, x, 1 - bias), subnormal_code (d, code, dtype), code);
  TinyNode *beyond = dec_with_float (d, TINY_OP_ADD, args[0], INFINITY);
  return dec_where (d, dec_is_below (d, args[0], bias + 1), dec_bits (d, code, dtype), beyond);
}

/* ---- log2 (2^e m) = e + log2 (m), m in [sqrt (1/2), sqrt (2)] ----
 *
 * With f = m - 1 (exact) and s = f / (2 + f): ln m = 2 atanh s = 2s + s R, where R is
 * 2/3 s^2 + 2/5 s^4 + …; since 2s = f - s f that is f - t with t = s (f - R), and t is small. To
 * keep f whole, 1 / ln 2 is taken as 1 + c: log2 m = f + (c f - t / ln 2). */
static TinyNode *
log2_of (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *args)
{
  if (dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F64)
    return NULL;
  TinyNode *x = args[0];
  DecomposeSplit split = dec_split (d, x);
  TinyNode *is_large
      = dec_binary (d, TINY_OP_CMPLT, dec_float (d, dtype, x, G_SQRT2), split.mantissa);
  TinyNode *halved = dec_with_float (d, TINY_OP_MUL, split.mantissa, 0.5);
  TinyNode *m = dec_where (d, is_large, halved, split.mantissa);
  TinyNode *f = dec_with_float (d, TINY_OP_ADD, m, -1);
  TinyNode *exponent = dec_cast (d, split.exponent, TINY_DTYPE_I32);
  exponent = dec_where (d, is_large, dec_with_int (d, TINY_OP_ADD, exponent, 1), exponent);

  double c[10];
  guint n_terms = is_double (dtype) ? 10 : 4;
  for (guint i = 0; i < n_terms; i++)
    c[i] = 2.0 / (2 * i + 3);
  const double inverse = 1.44269504088896340736; /* 1 / ln 2 */
  TinyNode *s = dec_binary (d, TINY_OP_FDIV, f, dec_with_float (d, TINY_OP_ADD, f, 2));
  TinyNode *z = dec_binary (d, TINY_OP_MUL, s, s);
  TinyNode *rest = dec_binary (d, TINY_OP_MUL, z, polynomial (d, z, c, n_terms));
  TinyNode *t = dec_binary (d, TINY_OP_MUL, s, dec_binary (d, TINY_OP_SUB, f, rest));
  TinyNode *small = dec_mulacc (d, f, dec_float (d, dtype, x, inverse - 1),
                                dec_with_float (d, TINY_OP_MUL, t, -inverse));
  TinyNode *log = dec_binary (d, TINY_OP_ADD, dec_cast (d, exponent, dtype),
                              dec_binary (d, TINY_OP_ADD, f, small));

  log = dec_where (d, dec_binary (d, TINY_OP_CMPLT, dec_float (d, dtype, x, 0), split.size),
                   log, dec_float (d, dtype, x, -INFINITY));
  log = dec_where (d, dec_is_below (d, split.size, INFINITY), log, x);
  return dec_where (d, dec_is_below (d, x, 0), dec_float (d, dtype, x, NAN), log);
}

/* ---- sin ----
 *
 * |x| = (quadrant + v) pi/2 with v in [-1/2, 1/2]. The product of x and 2/pi is made in integers
 * (Payne, Hanek, "Radian Reduction for Trigonometric Functions", 1983): of the endless bits of
 * 2/pi only a window matters, because those before it give whole turns and those after it too
 * little. With words of B bits (32 for f32, 64 for f64) it is three words long, and two words of
 * the product are kept: 2 bits of quadrant, 2B - 2 of fraction. No float comes nearer to a multiple of
 * pi/2 than 2^-62 (f64) or 2^-30 (f32), so that B bits of v are always good. */

/* 2/pi, behind the binary point; computed from Machin's formula for pi. */
static const guint64 two_over_pi[] = {
  0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
  0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
  0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
  0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
  0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

/* Word @i of 2/pi after one word of zeros. */
static guint64
word_of (guint i, guint n_bits)
{
  if (i == 0)
    return 0;
  if (n_bits == 64)
    return two_over_pi[i - 1];
  return (i - 1) % 2 == 0 ? two_over_pi[(i - 1) / 2] >> 32
                          : two_over_pi[(i - 1) / 2] & 0xffffffff;
}

typedef struct {
  TinyNode *r, *tail; /* |x| less quadrant * pi/2 is r + tail, without its sign */
  TinyNode *quadrant; /* an unsigned word; two bits count */
  TinyNode *negative; /* all ones where the sign is lost, else 0 */
} Reduced;

/* The window's words: bit 0 of the first has the weight 2 when times 2^(exponent of x). */
static void
select_window (Decompose *d, TinyNode *bits, TinyDType dtype, TinyNode *out[3])
{
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype), m = tiny_dtype_infos[dtype].mantissa_bits;
  guint n_starts = n_bits == 64 ? 17 : 5;
  TinyNode *offset = dec_with_int (d, TINY_OP_ADD, dec_with_int (d, TINY_OP_SHR, bits, m),
                                   (gint64) n_bits - 2 - dec_bias (dtype) - m);
  TinyNode *start = dec_with_int (d, TINY_OP_SHR, offset, n_bits == 64 ? 6 : 5);
  TinyNode *left = dec_with_int (d, TINY_OP_AND, offset, n_bits - 1);
  TinyNode *right = dec_with_int (d, TINY_OP_XOR, left, n_bits - 1);
  TinyNode *words[4];
  for (guint i = 0; i < 4; i++) {
    words[i] = dec_int (d, bits->dtype, bits, (gint64) word_of (n_starts - 1 + i, n_bits));
    for (guint j = n_starts - 1; j-- > 0;) {
      TinyNode *is_before
          = dec_binary (d, TINY_OP_CMPLT, start, dec_int (d, bits->dtype, bits, j + 1));
      TinyNode *word = dec_int (d, bits->dtype, bits, (gint64) word_of (j + i, n_bits));
      words[i] = dec_where (d, is_before, word, words[i]);
    }
  }
  for (guint i = 0; i < 3; i++) {
    /* Shifted in two steps, for a count of all the bits would be outside the width. */
    TinyNode *next = dec_with_int (d, TINY_OP_SHR, words[i + 1], 1);
    out[i] = dec_binary (d, TINY_OP_OR, dec_binary (d, TINY_OP_SHL, words[i], left),
                         dec_binary (d, TINY_OP_SHR, next, right));
  }
}

/* v pi/2 for v = (high + low / 2^B) / 2^B, both words positive. The product of the upper halves of
 * v and pi/2 is exact; what else there is goes into the tail. */
static void
times_half_pi (Decompose *d, TinyNode *high, TinyNode *low, TinyDType dtype, Reduced *out)
{
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype);
  guint half = (tiny_dtype_infos[dtype].mantissa_bits + 1) / 2;
  gint64 mask = (G_GINT64_CONSTANT (1) << (n_bits - 1 - half)) - 1;
  TinyDType count = dec_signed (high->dtype);
  double pi_2 = 1.57079632679489661923, pi_2_tail = 6.123233995736766e-17;
  double pi_high = ldexp (floor (ldexp (pi_2, (gint) half - 1)), 1 - (gint) half);
  double pi_low = (pi_2 - pi_high) + pi_2_tail, unit = ldexp (1, -(gint) n_bits);

  TinyNode *upper = dec_bits (d, dec_with_int (d, TINY_OP_AND, high, ~mask), count);
  TinyNode *lower = dec_bits (d, dec_with_int (d, TINY_OP_AND, high, mask), count);
  TinyNode *rest = dec_bits (d, dec_with_int (d, TINY_OP_SHR, low, 1), count);
  upper = dec_with_float (d, TINY_OP_MUL, dec_cast (d, upper, dtype), unit);
  lower = dec_with_float (d, TINY_OP_MUL, dec_cast (d, lower, dtype), unit);
  rest = dec_with_float (d, TINY_OP_MUL, dec_cast (d, rest, dtype), 2 * unit * unit);
  lower = dec_binary (d, TINY_OP_ADD, lower, rest);

  TinyNode *main = dec_with_float (d, TINY_OP_MUL, upper, pi_high);
  TinyNode *other = dec_binary (d, TINY_OP_ADD, dec_with_float (d, TINY_OP_MUL, upper, pi_low),
                                dec_with_float (d, TINY_OP_MUL, lower, pi_2));
  out->r = dec_binary (d, TINY_OP_ADD, main, other);
  if (reassociates (d))
    out->tail = dec_float (d, dtype, main, 0);
  else
    out->tail = dec_binary (d, TINY_OP_SUB, other, dec_binary (d, TINY_OP_SUB, out->r, main));
}

static Reduced
reduce (Decompose *d, TinyNode *size)
{
  TinyDType dtype = size->dtype, word = dec_unsigned (dtype);
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype), m = tiny_dtype_infos[dtype].mantissa_bits;
  /* Below pi/4 there is nothing to reduce; 1 stands in to keep the offset right. */
  TinyNode *is_small = dec_is_below (d, size, G_PI_4);
  TinyNode *one = dec_float (d, dtype, size, 1), *zero = dec_int (d, word, size, 0);
  TinyNode *bits = dec_bits (d, dec_where (d, is_small, one, size), word), *window[3];
  select_window (d, bits, dtype, window);
  gint64 hidden = G_GINT64_CONSTANT (1) << m;
  TinyNode *mantissa
      = dec_with_int (d, TINY_OP_OR, dec_with_int (d, TINY_OP_AND, bits, hidden - 1), hidden);

  TinyNode *low_carry = dec_mul_high (d, window[2], mantissa);
  TinyNode *low = dec_binary (d, TINY_OP_ADD, dec_binary (d, TINY_OP_MUL, window[1], mantissa),
                              low_carry);
  TinyNode *overflow = dec_cast (d, dec_binary (d, TINY_OP_CMPLT, low, low_carry), word);
  TinyNode *high = dec_binary (d, TINY_OP_ADD, dec_binary (d, TINY_OP_MUL, window[0], mantissa),
                               dec_mul_high (d, window[1], mantissa));
  high = dec_binary (d, TINY_OP_ADD, high, overflow);

  Reduced out;
  TinyNode *fraction = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, high, 2),
                                   dec_with_int (d, TINY_OP_SHR, low, n_bits - 2));
  low = dec_with_int (d, TINY_OP_SHL, low, 2);
  TinyNode *top = dec_with_int (d, TINY_OP_SHR, fraction, n_bits - 1);
  out.quadrant
      = dec_binary (d, TINY_OP_ADD, dec_with_int (d, TINY_OP_SHR, high, n_bits - 2), top);
  out.negative = dec_binary (d, TINY_OP_SUB, zero, top);
  /* The complement is the negative number less one unit, which is too small to matter. */
  fraction = dec_binary (d, TINY_OP_XOR, fraction, out.negative);
  low = dec_binary (d, TINY_OP_XOR, low, out.negative);
  times_half_pi (d, fraction, low, dtype, &out);

  out.r = dec_where (d, is_small, size, out.r);
  out.tail = dec_where (d, is_small, dec_float (d, dtype, size, 0), out.tail);
  out.quadrant = dec_where (d, is_small, zero, out.quadrant);
  out.negative = dec_where (d, is_small, zero, out.negative);
  return out;
}

/* sin (r + tail) = r + (r^3 S + tail (1 - r^2 / 2)) */
static TinyNode *
sin_series (Decompose *d, TinyNode *r, TinyNode *tail, TinyNode *z, TinyNode *half)
{
  double c[8] = { -1.0 / 6 };
  guint n_terms = is_double (r->dtype) ? 8 : 4;
  for (guint i = 1; i < n_terms; i++)
    c[i] = -c[i - 1] / ((2 * i + 2) * (2 * i + 3));
  TinyNode *cubic = dec_binary (d, TINY_OP_MUL, dec_binary (d, TINY_OP_MUL, r, z),
                                polynomial (d, z, c, n_terms));
  TinyNode *slope = dec_binary (d, TINY_OP_SUB, dec_float (d, r->dtype, r, 1), half);
  return dec_binary (d, TINY_OP_ADD, r, dec_mulacc (d, tail, slope, cubic));
}

/* cos (r + tail) = w + ((1 - w) - r^2 / 2 + (r^4 C - r tail)) with w = 1 - r^2 / 2 rounded */
static TinyNode *
cos_series (Decompose *d, TinyNode *r, TinyNode *tail, TinyNode *z, TinyNode *half)
{
  double c[8] = { 1.0 / 24 };
  guint n_terms = is_double (r->dtype) ? 7 : 4;
  for (guint i = 1; i < n_terms; i++)
    c[i] = -c[i - 1] / ((2 * i + 3) * (2 * i + 4));
  TinyNode *quartic = dec_binary (d, TINY_OP_MUL, dec_binary (d, TINY_OP_MUL, z, z),
                                  polynomial (d, z, c, n_terms));
  TinyNode *one = dec_float (d, r->dtype, r, 1), *w = dec_binary (d, TINY_OP_SUB, one, half);
  TinyNode *lost = dec_binary (d, TINY_OP_SUB, dec_binary (d, TINY_OP_SUB, one, w), half);
  if (reassociates (d))
    lost = dec_float (d, r->dtype, r, 0);
  TinyNode *small = dec_binary (d, TINY_OP_SUB, quartic, dec_binary (d, TINY_OP_MUL, r, tail));
  return dec_binary (d, TINY_OP_ADD, w, dec_binary (d, TINY_OP_ADD, lost, small));
}

static TinyNode *
sin_of (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *args)
{
  if (dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F64)
    return NULL;
  TinyDType word = dec_unsigned (dtype);
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype);
  gint64 sign_bit = (gint64) (G_GUINT64_CONSTANT (1) << (n_bits - 1));
  TinyNode *x = args[0], *bits = dec_bits (d, x, word);
  TinyNode *size = dec_bits (d, dec_with_int (d, TINY_OP_AND, bits, ~sign_bit), dtype);
  Reduced reduced = reduce (d, size);
  TinyNode *z = dec_binary (d, TINY_OP_MUL, reduced.r, reduced.r);
  TinyNode *half = dec_with_float (d, TINY_OP_MUL, z, 0.5);
  TinyNode *sine = sin_series (d, reduced.r, reduced.tail, z, half);
  TinyNode *cosine = cos_series (d, reduced.r, reduced.tail, z, half);

  TinyNode *zero = dec_int (d, word, x, 0);
  TinyNode *odd = dec_with_int (d, TINY_OP_AND, reduced.quadrant, 1);
  TinyNode *is_odd = dec_binary (d, TINY_OP_CMPLT, zero, odd);
  /* Signs: of x, of the lower half turn, and of r where the sine counts. */
  TinyNode *flip = dec_with_int (
      d, TINY_OP_SHL, dec_with_int (d, TINY_OP_SHR, reduced.quadrant, 1), n_bits - 1);
  flip = dec_binary (d, TINY_OP_XOR, flip, bits);
  flip = dec_binary (d, TINY_OP_XOR, flip, dec_where (d, is_odd, zero, reduced.negative));
  flip = dec_with_int (d, TINY_OP_AND, flip, sign_bit);
  TinyNode *result = dec_bits (d, dec_where (d, is_odd, cosine, sine), word);
  result = dec_bits (d, dec_binary (d, TINY_OP_XOR, result, flip), dtype);
  return dec_where (d, dec_is_below (d, size, INFINITY), result, dec_float (d, dtype, x, NAN));
}

const DecomposeRow decompose_transcendental_rows[] = {
  { TINY_OP_EXP2, "F", exp2_of },
  { TINY_OP_LOG2, "F", log2_of },
  { TINY_OP_SIN, "F", sin_of },
  { 0 },
};
