/* SPDX-License-Identifier: MIT
 *
 * ref-ops.c: every number format and what every elementwise op does with it.
 *
 * A value's lane is its bits in an uint64_t, upper bits zero. Arithmetic reads the bits as a
 * number, computes without loss where that is possible, and rounds once to the format, to nearest,
 * ties to even; EXP2, LOG2 and SIN are the C library's in long double. What moves values never
 * looks inside them, so that NaN payloads survive. */
#include "ref.h"

#include <math.h>
#include <string.h>

/* ---- number formats ---- */
typedef struct {
  const char *name;
  unsigned n_bytes;
  char kind; /* B bool, I signed, U unsigned, F float */
  int mantissa_bits, least_exponent;
  double largest;
} Format;

static const Format formats[TINY_N_DTYPES] = {
  [TINY_DTYPE_BOOL] = { "bool", 1, 'B' },
  [TINY_DTYPE_I8] = { "i8", 1, 'I' },
  [TINY_DTYPE_U8] = { "u8", 1, 'U' },
  [TINY_DTYPE_I16] = { "i16", 2, 'I' },
  [TINY_DTYPE_U16] = { "u16", 2, 'U' },
  [TINY_DTYPE_I32] = { "i32", 4, 'I' },
  [TINY_DTYPE_U32] = { "u32", 4, 'U' },
  [TINY_DTYPE_I64] = { "i64", 8, 'I' },
  [TINY_DTYPE_U64] = { "u64", 8, 'U' },
  [TINY_DTYPE_F8E4M3] = { "f8e4m3", 1, 'F', 3, -6, 448.0 },
  [TINY_DTYPE_F8E5M2] = { "f8e5m2", 1, 'F', 2, -14, 57344.0 },
  [TINY_DTYPE_F16] = { "f16", 2, 'F', 10, -14, 65504.0 },
  [TINY_DTYPE_BF16] = { "bf16", 2, 'F', 7, -126, 0x1.fep127 },
  [TINY_DTYPE_F32] = { "f32", 4, 'F', 23, -126, 0x1.fffffep127 },
  [TINY_DTYPE_F64] = { "f64", 8, 'F', 52, -1022, 0x1.fffffffffffffp1023 },
};

unsigned
ref_n_bytes (unsigned dtype)
{
  return formats[dtype].n_bytes;
}

static bool
is_float (unsigned dtype)
{
  return formats[dtype].kind == 'F';
}

uint64_t
ref_mask (unsigned dtype)
{
  return dtype == TINY_DTYPE_BOOL ? 1 : UINT64_MAX >> (64 - 8 * formats[dtype].n_bytes);
}

int64_t
ref_to_signed (unsigned dtype, uint64_t bits)
{
  unsigned unused = 64 - 8 * formats[dtype].n_bytes;
  return formats[dtype].kind == 'I' ? (int64_t) (bits << unused) >> unused : (int64_t) bits;
}

static double
to_double (unsigned dtype, uint64_t bits)
{
  double f64;
  float f32;
  uint32_t low = (uint32_t) bits;
  if (dtype == TINY_DTYPE_F64)
    return memcpy (&f64, &bits, sizeof f64), f64;
  if (dtype == TINY_DTYPE_F32)
    return memcpy (&f32, &low, sizeof f32), f32;

  /* sign, exponent, mantissa; the exponent's code 0 means 1 without the hidden bit. */
  const Format *format = &formats[dtype];
  int n_bits = 8 * (int) format->n_bytes;
  uint64_t mantissa = bits & ((1u << format->mantissa_bits) - 1);
  uint64_t top = (1u << (n_bits - 1 - format->mantissa_bits)) - 1;
  uint64_t code = bits >> format->mantissa_bits & top;
  double sign = bits >> (n_bits - 1) ? -1.0 : 1.0;
  if (dtype == TINY_DTYPE_F8E4M3 && code == top && mantissa == 7)
    return NAN;
  if (dtype != TINY_DTYPE_F8E4M3 && code == top)
    return mantissa != 0 ? NAN : sign * INFINITY;
  if (code != 0)
    mantissa |= 1u << format->mantissa_bits;
  int exponent = format->least_exponent + (code != 0 ? (int) code - 1 : 0);
  return sign * ldexp ((double) mantissa, exponent - format->mantissa_bits);
}

/* Rounds to nearest, ties to even; too large is infinity, or NaN in f8e4m3, which has none. */
static uint64_t
from_double (unsigned dtype, double value)
{
  if (dtype == TINY_DTYPE_F64) {
    uint64_t bits;
    return memcpy (&bits, &value, sizeof bits), bits;
  }
  if (dtype == TINY_DTYPE_F32) {
    float narrow = (float) value;
    uint32_t bits;
    return memcpy (&bits, &narrow, sizeof bits), bits;
  }
  const Format *format = &formats[dtype];
  int n_bits = 8 * (int) format->n_bytes;
  uint64_t sign = (uint64_t) (signbit (value) != 0) << (n_bits - 1);
  uint64_t infinity = ((1u << (n_bits - 1 - format->mantissa_bits)) - 1)
                      << format->mantissa_bits;
  uint64_t nan
      = dtype == TINY_DTYPE_F8E4M3 ? 0x7f : infinity | 1u << (format->mantissa_bits - 1);
  if (isnan (value))
    return nan;
  if (dtype == TINY_DTYPE_F8E4M3)
    infinity = nan;
  if (isinf (value))
    return sign | infinity;
  int exponent = value == 0 ? format->least_exponent : ilogb (value);
  if (exponent < format->least_exponent)
    exponent = format->least_exponent;
  /* In units of the last place this is a small whole number after rounding; it is exact before. */
  double units = rint (ldexp (fabs (value), format->mantissa_bits - exponent));
  if (ldexp (units, exponent - format->mantissa_bits) > format->largest)
    return sign | infinity;
  /* Codes are consecutive: a carry out of the mantissa moves into the exponent by itself. */
  uint64_t step = (uint64_t) (exponent - format->least_exponent) << format->mantissa_bits;
  return sign | (step + (uint64_t) units);
}

static uint64_t
cast (unsigned from, unsigned to, uint64_t bits)
{
  if (is_float (from)) {
    double value = to_double (from, bits);
    if (is_float (to))
      return from_double (to, value);
    if (to == TINY_DTYPE_BOOL)
      return value != 0;
    /* Out of range is unspecified: here, the nearest number there is, and 0 for a NaN. */
    value = isnan (value) ? 0 : trunc (value);
    unsigned n_bits = 8 * formats[to].n_bytes;
    bool is_signed = formats[to].kind == 'I';
    double end = ldexp (1.0, (int) n_bits - is_signed);
    if (value >= end)
      return ref_mask (to) >> is_signed;
    if (is_signed)
      return (value < -end ? UINT64_C (1) << (n_bits - 1) : (uint64_t) (int64_t) value)
             & ref_mask (to);
    return value < 0 ? 0 : (uint64_t) value;
  }
  if (!is_float (to))
    return to == TINY_DTYPE_BOOL ? bits != 0
                                 : (uint64_t) ref_to_signed (from, bits) & ref_mask (to);
  bool negative = formats[from].kind == 'I' && ref_to_signed (from, bits) < 0;
  uint64_t size = negative ? -(uint64_t) ref_to_signed (from, bits) : bits;
  /* Beyond 2^53 a double would round a first time. Fold the low bits into one sticky bit, which is
   * far below the last place of every narrower format, so that only its own rounding remains. */
  if (to != TINY_DTYPE_F64 && size >> 53 != 0)
    size = (size >> 12 | ((size & 0xfff) != 0)) << 12;
  return from_double (to, negative ? -(double) size : (double) size);
}

/* ---- the ops, lane by lane ---- */
static double
float_op (unsigned op, unsigned dtype, double a, double b, double c)
{
  switch (op) {
  case TINY_INSTR_NEG:
    return -a;
  case TINY_INSTR_RECIP:
    return 1.0 / a;
  case TINY_INSTR_SQRT:
    return sqrt (a);
  case TINY_INSTR_EXP2:
    return (double) exp2l (a);
  case TINY_INSTR_LOG2:
    return (double) log2l (a);
  case TINY_INSTR_SIN:
    return (double) sinl (a);
  case TINY_INSTR_TRUNC:
    return trunc (a);
  case TINY_INSTR_ADD:
    return a + b;
  case TINY_INSTR_SUB:
    return a - b;
  case TINY_INSTR_MUL:
    return a * b;
  case TINY_INSTR_FDIV:
    return a / b;
  case TINY_INSTR_MAX:
    /* Of two zeros the positive one, of a number and a NaN the number. */
    return a != b ? fmax (a, b) : signbit (a) ? b : a;
  /* In f32 a double's sum would be rounded twice. */
  case TINY_INSTR_MULACC:
    return dtype == TINY_DTYPE_F32 ? fmaf ((float) a, (float) b, (float) c) : fma (a, b, c);
  default:
    return NAN;
  }
}

/* On the bits of integers; the caller cuts the result to the width. On bool, + is or, * is and. */
static uint64_t
integer_op (unsigned op, unsigned dtype, uint64_t a, uint64_t b, uint64_t c)
{
  int64_t x = ref_to_signed (dtype, a), y = ref_to_signed (dtype, b);
  bool is_signed = formats[dtype].kind == 'I', is_bool = dtype == TINY_DTYPE_BOOL;
  switch (op) {
  case TINY_INSTR_NEG:
    return -a;
  case TINY_INSTR_ADD:
    return is_bool ? a | b : a + b;
  case TINY_INSTR_SUB:
    return a - b;
  case TINY_INSTR_MUL:
    return a * b;
  case TINY_INSTR_MULACC:
    return is_bool ? (a & b) | c : a * b + c;
  case TINY_INSTR_MAX:
    return is_signed ? (x > y ? a : b) : (a > b ? a : b);
  case TINY_INSTR_AND:
    return a & b;
  case TINY_INSTR_OR:
    return a | b;
  case TINY_INSTR_XOR:
    return a ^ b;
  case TINY_INSTR_SHL:
    return b > 63 ? 0 : a << b;
  case TINY_INSTR_SHR:
    return is_signed ? (uint64_t) (x >> (b > 63 ? 63 : b)) : (b > 63 ? 0 : a >> b);
  /* By zero is unspecified but must not trap, and neither must the least number by -1. */
  case TINY_INSTR_IDIV:
    if (b == 0)
      return 0;
    return !is_signed ? a / b : y == -1 ? -a : (uint64_t) (x / y);
  case TINY_INSTR_MOD:
    if (b == 0)
      return a;
    return !is_signed ? a % b : y == -1 ? 0 : (uint64_t) (x % y);
  default:
    return 0;
  }
}

uint64_t
ref_constant (unsigned dtype, int64_t arg)
{
  double number;
  memcpy (&number, &arg, sizeof number);
  return is_float (dtype) ? from_double (dtype, number) : (uint64_t) arg & ref_mask (dtype);
}

bool
ref_is_less (unsigned dtype, uint64_t a, uint64_t b)
{
  if (is_float (dtype))
    return to_double (dtype, a) < to_double (dtype, b);
  return formats[dtype].kind == 'I' ? ref_to_signed (dtype, a) < ref_to_signed (dtype, b)
                                    : a < b;
}

uint64_t
ref_element (unsigned op, unsigned dtype, unsigned to, uint64_t a, uint64_t b, uint64_t c)
{
  if (op == TINY_INSTR_CAST)
    return cast (dtype, to, a);
  if (op == TINY_INSTR_BITCAST)
    return a;
  if (op == TINY_INSTR_WHERE)
    return a ? b : c;
  if (op == TINY_INSTR_CMPLT)
    return ref_is_less (dtype, a, b);
  if (is_float (dtype)) {
    double x = to_double (dtype, a), y = to_double (dtype, b), z = to_double (dtype, c);
    switch (op) {
    case TINY_INSTR_CMPNE:
      return x != y;
    case TINY_INSTR_CMPEQ:
      return x == y;
    default:
      return from_double (dtype, float_op (op, dtype, x, y, z));
    }
  }
  switch (op) {
  case TINY_INSTR_CMPNE:
    return a != b;
  case TINY_INSTR_CMPEQ:
    return a == b;
  default:
    return integer_op (op, dtype, a, b, c) & ref_mask (dtype);
  }
}

/* ---- what each op takes ---- */
const OpRow ref_ops[TINY_N_INSTRS] = {
  [TINY_INSTR_LOAD] = { "load", 'M', 1, 4, ALL },
  [TINY_INSTR_STORE] = { "store", 'M', 2, 4, ALL },
  [TINY_INSTR_CAST] = { "cast", 'E', 1, 1, ALL },
  [TINY_INSTR_BITCAST] = { "bitcast", 'E', 1, 1, NUMBERS },
  [TINY_INSTR_NEG] = { "neg", 'E', 1, 1, NUMBERS },
  [TINY_INSTR_RECIP] = { "recip", 'E', 1, 1, FLOATS },
  [TINY_INSTR_SQRT] = { "sqrt", 'E', 1, 1, FLOATS },
  [TINY_INSTR_EXP2] = { "exp2", 'E', 1, 1, FLOATS },
  [TINY_INSTR_LOG2] = { "log2", 'E', 1, 1, FLOATS },
  [TINY_INSTR_SIN] = { "sin", 'E', 1, 1, FLOATS },
  [TINY_INSTR_ADD] = { "add", 'E', 2, 2, ALL },
  [TINY_INSTR_SUB] = { "sub", 'E', 2, 2, NUMBERS },
  [TINY_INSTR_MUL] = { "mul", 'E', 2, 2, ALL },
  [TINY_INSTR_IDIV] = { "idiv", 'E', 2, 2, INTS },
  [TINY_INSTR_MOD] = { "mod", 'E', 2, 2, INTS },
  [TINY_INSTR_MAX] = { "max", 'E', 2, 2, ALL },
  [TINY_INSTR_CMPLT] = { "cmplt", 'E', 2, 2, ALL },
  [TINY_INSTR_CMPNE] = { "cmpne", 'E', 2, 2, ALL },
  [TINY_INSTR_AND] = { "and", 'E', 2, 2, INTS | BOOLS },
  [TINY_INSTR_OR] = { "or", 'E', 2, 2, INTS | BOOLS },
  [TINY_INSTR_XOR] = { "xor", 'E', 2, 2, INTS | BOOLS },
  [TINY_INSTR_SHL] = { "shl", 'E', 2, 2, INTS },
  [TINY_INSTR_SHR] = { "shr", 'E', 2, 2, INTS },
  [TINY_INSTR_WHERE] = { "where", 'E', 3, 3, ALL },
  [TINY_INSTR_MULACC] = { "mulacc", 'E', 3, 3, ALL },
  [TINY_INSTR_TRUNC] = { "trunc", 'E', 1, 1, FLOATS },
  [TINY_INSTR_FDIV] = { "fdiv", 'E', 2, 2, FLOATS },
  [TINY_INSTR_CMPEQ] = { "cmpeq", 'E', 2, 2, ALL },
  [TINY_INSTR_CONST] = { "const", 'V', 0, 0, ALL },
  [TINY_INSTR_PARAM] = { "param", 'V', 0, 0, ALL },
  [TINY_INSTR_VARIABLE] = { "variable", 'V', 0, 0, INTS },
  [TINY_INSTR_GRID] = { "grid", 'V', 0, 0, INTS },
  [TINY_INSTR_GROUP] = { "group", 'V', 0, 0, INTS },
  [TINY_INSTR_LOCAL] = { "local", 'V', 0, 0, ALL },
  [TINY_INSTR_REGISTER] = { "register", 'V', 0, 0, ALL },
  [TINY_INSTR_RANGE] = { "range", 'B', 1, 1, INTS },
  [TINY_INSTR_END] = { "end", 'B', 1, 1, 0 },
  [TINY_INSTR_IF] = { "if", 'B', 1, 1, 0 },
  [TINY_INSTR_ENDIF] = { "endif", 'B', 1, 1, 0 },
  [TINY_INSTR_BARRIER] = { "barrier", 'B', 0, 0, 0 },
  [TINY_INSTR_VECTOR] = { "vector", 'V', 1, MAX_LANES, ALL },
  [TINY_INSTR_EXTRACT] = { "extract", 'V', 1, 1, ALL },
  [TINY_INSTR_UNIT] = { "unit", 'U', 3, 3, NUMBERS },
};
