/* SPDX-License-Identifier: MIT
 *
 * Proves that the LLVM renderer's code computes what the contract says: every op at every dtype and
 * at several widths against plain C, masks, gates, registers, loops, what would trap. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint32_t one_point[3] = { 1, 1, 1 };

/* ---- a vector add with a masked tail ---- */

static void
test_add_tail (void)
{
  enum { N = 1003, L = 16 };
  g_autofree Program *p = program_new ("add_tail");
  uint32_t out = program_param (p, TINY_DTYPE_F32, N, TINY_PARAM_WRITE);
  uint32_t a = program_param (p, TINY_DTYPE_F32, N, TINY_PARAM_READ);
  uint32_t b = program_param (p, TINY_DTYPE_F32, N, TINY_PARAM_READ);
  p->linear.grid[0] = (N + L - 1) / L;
  uint32_t grid = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, L);
  uint32_t at = ADD (MUL, I64, 1, 0, grid, width);
  uint32_t lanes[L];
  for (int i = 0; i < L; i++)
    lanes[i] = ADD (CONST, I64, 1, i);
  uint32_t iota = ADD (VECTOR, I64, L, 0, lanes[0], lanes[1], lanes[2], lanes[3], lanes[4],
                       lanes[5], lanes[6], lanes[7], lanes[8], lanes[9], lanes[10], lanes[11],
                       lanes[12], lanes[13], lanes[14], lanes[15]);
  uint32_t places = ADD (ADD, I64, L, 0, iota, at), n = ADD (CONST, I64, 1, N);
  uint32_t gate = ADD (CMPLT, BOOL, L, 0, places, n);
  uint32_t zero = ADD (CONST, F32, 1, bits_of (7));
  uint32_t x = ADD (LOAD, F32, L, 0, a, at, gate, zero);
  uint32_t y = ADD (LOAD, F32, L, 0, b, at, gate, zero);
  uint32_t sum = ADD (ADD, F32, L, 0, x, y);
  ADD (STORE, VOID, L, 0, out, at, sum, gate);

  float data[3][N];
  for (int i = 0; i < N; i++) {
    data[1][i] = i;
    data[2][i] = 0.5f * i;
  }
  TinyPluginProgram *program = program_build (p);
  Array arrays[3] = { { data[0], sizeof data[0] },
                      { data[1], sizeof data[1] },
                      { data[2], sizeof data[2] } };
  program_run (program, arrays, 3, NULL, 0, p->linear.grid);
  for (int i = 0; i < N; i++)
    g_assert_cmpfloat (data[0][i], ==, 1.5f * i);
  program_unload (program);
}

/* ---- sum of each row, through a register, with a variable bound ---- */

static void
test_reduce (void)
{
  enum { ROWS = 37, COLUMNS = 50 };
  g_autofree Program *p = program_new ("row_sum");
  p->linear.n_variables = 1;
  p->linear.grid[0] = ROWS;
  uint32_t out = program_param (p, TINY_DTYPE_F64, ROWS, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, ROWS * COLUMNS, TINY_PARAM_READ);
  uint32_t row = ADD (GRID, I32, 1, 0), n = ADD (CONST, I32, 1, COLUMNS);
  uint32_t base = ADD (MUL, I32, 1, 0, row, n);
  uint32_t total = ADD (REGISTER, F64, 1, 0), zero = ADD (CONST, F64, 1, bits_of (0));
  ADD (STORE, VOID, 1, 0, total, zero);
  uint32_t bound = ADD (VARIABLE, I32, 1, 0);
  uint32_t k = ADD (RANGE, I32, 1, 0, bound);
  uint32_t at = ADD (ADD, I32, 1, 0, base, k);
  uint32_t x = ADD (LOAD, F32, 1, 0, in, at), wide = ADD (CAST, F64, 1, 0, x);
  uint32_t old = ADD (LOAD, F64, 1, 0, total), sum = ADD (ADD, F64, 1, 0, old, wide);
  ADD (STORE, VOID, 1, 0, total, sum);
  ADD (END, VOID, 1, 0, k);
  uint32_t result = ADD (LOAD, F64, 1, 0, total);
  ADD (STORE, VOID, 1, 0, out, row, result);
  TinyPluginProgram *program = program_build (p);

  static const int64_t bounds[] = { COLUMNS, 3, 0 };
  for (unsigned b = 0; b < G_N_ELEMENTS (bounds); b++) {
    double sums[ROWS];
    float values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
      values[i] = (float) (i % 101) * 0.25f;
    Array arrays[2] = { { sums, sizeof sums }, { values, sizeof values } };
    program_run (program, arrays, 2, &bounds[b], 1, p->linear.grid);
    for (int i = 0; i < ROWS; i++) {
      double expected = 0;
      for (int j = 0; j < bounds[b]; j++)
        expected += values[i * COLUMNS + j];
      g_assert_cmpfloat (sums[i], ==, expected);
    }
  }
  program_unload (program);
}

/* ---- every op at every dtype ---- */

typedef union {
  uint8_t b;
  int8_t i8;
  uint8_t u8;
  int16_t i16;
  uint16_t u16;
  int32_t i32;
  uint32_t u32;
  int64_t i64;
  uint64_t u64;
  float f32;
  double f64;
} Value;

#define INT_TYPES(X)                                                                           \
  X (I8, i8, int8_t)                                                                           \
  X (U8, u8, uint8_t) X (I16, i16, int16_t) X (U16, u16, uint16_t) X (I32, i32, int32_t)       \
      X (U32, u32, uint32_t) X (I64, i64, int64_t) X (U64, u64, uint64_t)
#define FLOAT_TYPES(X) X (F32, f32, float) X (F64, f64, double)

static unsigned
size_of (unsigned dtype)
{
  static const unsigned sizes[TINY_N_DTYPES]
      = { 0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8, 0 };
  return sizes[dtype];
}

/* What the op gives; false where the contract leaves it open. */
static bool
expect (unsigned op, unsigned dtype, Value x, Value y, Value z, Value *out)
{
  memset (out, 0, sizeof *out);
  switch (dtype) {
#define CASE(DTYPE, field, type)                                                               \
  case TINY_DTYPE_##DTYPE: {                                                                   \
    type a = x.field, b = y.field, c = z.field;                                                \
    const bool is_signed = (type) -1 < (type) 1;                                               \
    const unsigned count = (unsigned) b & (sizeof (type) * 8 - 1);                             \
    bool bad = b == 0 || (is_signed && b == (type) -1);                                        \
    switch (op) {                                                                              \
    case TINY_INSTR_NEG:                                                                       \
      out->field = (type) (0 - (uint64_t) a);                                                  \
      return true;                                                                             \
    case TINY_INSTR_ADD:                                                                       \
      out->field = (type) ((uint64_t) a + (uint64_t) b);                                       \
      return true;                                                                             \
    case TINY_INSTR_SUB:                                                                       \
      out->field = (type) ((uint64_t) a - (uint64_t) b);                                       \
      return true;                                                                             \
    case TINY_INSTR_MUL:                                                                       \
      out->field = (type) ((uint64_t) a * (uint64_t) b);                                       \
      return true;                                                                             \
    case TINY_INSTR_IDIV:                                                                      \
      if (bad)                                                                                 \
        return false;                                                                          \
      out->field = (type) (a / b);                                                             \
      return true;                                                                             \
    case TINY_INSTR_MOD:                                                                       \
      if (bad)                                                                                 \
        return false;                                                                          \
      out->field = (type) (a % b);                                                             \
      return true;                                                                             \
    case TINY_INSTR_MAX:                                                                       \
      out->field = a > b ? a : b;                                                              \
      return true;                                                                             \
    case TINY_INSTR_AND:                                                                       \
      out->field = a & b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_OR:                                                                        \
      out->field = a | b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_XOR:                                                                       \
      out->field = a ^ b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_SHL:                                                                       \
      out->field = (type) ((uint64_t) a << count);                                             \
      return (uint64_t) b == count;                                                            \
    case TINY_INSTR_SHR:                                                                       \
      out->field = (type) (a >> count);                                                        \
      return (uint64_t) b == count;                                                            \
    case TINY_INSTR_CMPLT:                                                                     \
      out->b = a < b;                                                                          \
      return true;                                                                             \
    case TINY_INSTR_CMPNE:                                                                     \
      out->b = a != b;                                                                         \
      return true;                                                                             \
    case TINY_INSTR_CMPEQ:                                                                     \
      out->b = a == b;                                                                         \
      return true;                                                                             \
    case TINY_INSTR_WHERE:                                                                     \
      out->field = (c & 1) ? a : b;                                                            \
      return true;                                                                             \
    }                                                                                          \
    break;                                                                                     \
  }
    INT_TYPES (CASE)
#undef CASE
#define CASE(DTYPE, field, type)                                                               \
  case TINY_DTYPE_##DTYPE: {                                                                   \
    volatile type a = x.field, b = y.field, c = z.field;                                       \
    switch (op) {                                                                              \
    case TINY_INSTR_NEG:                                                                       \
      out->field = -a;                                                                         \
      return true;                                                                             \
    case TINY_INSTR_RECIP:                                                                     \
      out->field = 1 / a;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_SQRT:                                                                      \
      out->field = sizeof (type) == 4 ? (type) sqrtf ((float) a) : (type) sqrt (a);            \
      return true;                                                                             \
    case TINY_INSTR_TRUNC:                                                                     \
      out->field = (type) trunc (a);                                                           \
      return true;                                                                             \
    case TINY_INSTR_ADD:                                                                       \
      out->field = a + b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_SUB:                                                                       \
      out->field = a - b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_MUL:                                                                       \
      out->field = a * b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_FDIV:                                                                      \
      out->field = a / b;                                                                      \
      return true;                                                                             \
    case TINY_INSTR_MAX:                                                                       \
      out->field = a > b ? a : b;                                                              \
      return !isnan (a) && !isnan (b) && a != b;                                               \
    case TINY_INSTR_MULACC:                                                                    \
      out->field = sizeof (type) == 4 ? (type) fmaf ((float) a, (float) b, (float) c)          \
                                      : (type) fma (a, b, c);                                  \
      return true;                                                                             \
    case TINY_INSTR_CMPLT:                                                                     \
      out->b = a < b;                                                                          \
      return true;                                                                             \
    case TINY_INSTR_CMPNE:                                                                     \
      out->b = a != b;                                                                         \
      return true;                                                                             \
    case TINY_INSTR_CMPEQ:                                                                     \
      out->b = a == b;                                                                         \
      return true;                                                                             \
    case TINY_INSTR_WHERE:                                                                     \
      out->field = c > 0 ? a : b;                                                              \
      return true;                                                                             \
    }                                                                                          \
    break;                                                                                     \
  }
    FLOAT_TYPES (CASE)
#undef CASE
  }
  return false;
}

static Value
random_value (unsigned dtype, GRand *random)
{
  static const double edges[]
      = { 0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-42, 3.0e38, 0.5, -2.75, 65504.0 };
  static const uint64_t int_edges[]
      = { 0,          1,           2,    7,    UINT64_MAX, INT64_MAX, (uint64_t) INT64_MIN,
          0x7fffffff, 0x80000000u, 0x7f, 0x80, 0x7fff,     0x8000 };
  Value value = { .u64 = (uint64_t) g_rand_int (random) << 32 | g_rand_int (random) };
  bool is_edge = g_rand_int_range (random, 0, 4) == 0;
  if (dtype == TINY_DTYPE_F32 || dtype == TINY_DTYPE_F64) {
    double real = is_edge ? edges[g_rand_int_range (random, 0, G_N_ELEMENTS (edges))]
                          : g_rand_double_range (random, -100, 100);
    if (dtype == TINY_DTYPE_F32)
      value.f32 = (float) real;
    else
      value.f64 = real;
  } else if (is_edge) {
    value.u64 = int_edges[g_rand_int_range (random, 0, G_N_ELEMENTS (int_edges))];
  } else if (g_rand_boolean (random)) {
    value.u64 &= 0x1f;
  }
  if (dtype == TINY_DTYPE_BOOL)
    value.b &= 1;
  return value;
}

static unsigned
n_operands (unsigned op)
{
  switch (op) {
  case TINY_INSTR_NEG:
  case TINY_INSTR_RECIP:
  case TINY_INSTR_SQRT:
  case TINY_INSTR_TRUNC:
    return 1;
  case TINY_INSTR_MULACC:
    return 3;
  }
  return 2;
}

/* One program: out[i] = op (x[i], y[i], z[i]) over 64 elements, @lanes at a time. */
static void
check_op (unsigned op, unsigned dtype, unsigned lanes, GRand *random)
{
  enum { N = 64 };
  bool is_compare = op == TINY_INSTR_CMPLT || op == TINY_INSTR_CMPNE || op == TINY_INSTR_CMPEQ;
  unsigned result = is_compare ? TINY_DTYPE_BOOL : dtype;
  g_autofree Program *p = program_new ("one_op");
  uint32_t out = program_param (p, result, N, TINY_PARAM_WRITE), in[3];
  for (int i = 0; i < 3; i++)
    in[i] = program_param (p, dtype, N, TINY_PARAM_READ);
  uint32_t bound = ADD (CONST, I64, 1, N / lanes), k = ADD (RANGE, I64, 1, 0, bound);
  uint32_t width = ADD (CONST, I64, 1, lanes), at = ADD (MUL, I64, 1, 0, k, width), x[3];
  for (int i = 0; i < 3; i++)
    x[i] = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, in[i], at, -1);
  uint32_t value;
  if (op == TINY_INSTR_WHERE) {
    bool is_float = dtype >= TINY_DTYPE_F32;
    uint32_t zero = add (p, TINY_INSTR_CONST, dtype, lanes, 0, -1), gate;
    if (is_float) {
      gate = add (p, TINY_INSTR_CMPLT, TINY_DTYPE_BOOL, lanes, 0, zero, x[2], -1);
    } else {
      uint32_t one = add (p, TINY_INSTR_CONST, dtype, lanes, 1, -1);
      uint32_t low = add (p, TINY_INSTR_AND, dtype, lanes, 0, x[2], one, -1);
      gate = add (p, TINY_INSTR_CMPNE, TINY_DTYPE_BOOL, lanes, 0, low, zero, -1);
    }
    value = add (p, op, dtype, lanes, 0, gate, x[0], x[1], -1);
  } else {
    value = n_operands (op) == 1   ? add (p, op, result, lanes, 0, x[0], -1)
            : n_operands (op) == 2 ? add (p, op, result, lanes, 0, x[0], x[1], -1)
                                   : add (p, op, result, lanes, 0, x[0], x[1], x[2], -1);
  }
  ADD (STORE, VOID, lanes, 0, out, at, value);
  ADD (END, VOID, 1, 0, k);

  uint8_t data[4][N * 8];
  Value values[3][N];
  unsigned n_bytes = size_of (dtype);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < N; j++) {
      values[i][j] = random_value (dtype, random);
      memcpy (data[i + 1] + j * n_bytes, &values[i][j], n_bytes);
    }
  Array arrays[4] = { { data[0], N * size_of (result) },
                      { data[1], N * n_bytes },
                      { data[2], N * n_bytes },
                      { data[3], N * n_bytes } };
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 4, NULL, 0, one_point);
  program_unload (program);
  for (int j = 0; j < N; j++) {
    Value expected;
    if (!expect (op, dtype, values[0][j], values[1][j], values[2][j], &expected))
      continue;
    const uint8_t *got = data[0] + j * size_of (result);
    bool are_nan = false;
    if (result == TINY_DTYPE_F32)
      are_nan = isnan (expected.f32) && isnan (((const float *) (const void *) data[0])[j]);
    if (result == TINY_DTYPE_F64)
      are_nan = isnan (expected.f64) && isnan (((const double *) (const void *) data[0])[j]);
    if (!are_nan && memcmp (got, &expected, size_of (result)) != 0)
      g_error ("op %u dtype %u lanes %u element %d: x %016" G_GINT64_MODIFIER
               "x y %016" G_GINT64_MODIFIER "x",
               op, dtype, lanes, j, values[0][j].u64, values[1][j].u64);
  }
}

static void
test_ops (void)
{
  static const unsigned ops[]
      = { TINY_INSTR_NEG,   TINY_INSTR_RECIP, TINY_INSTR_SQRT,  TINY_INSTR_TRUNC,
          TINY_INSTR_ADD,   TINY_INSTR_SUB,   TINY_INSTR_MUL,   TINY_INSTR_FDIV,
          TINY_INSTR_IDIV,  TINY_INSTR_MOD,   TINY_INSTR_MAX,   TINY_INSTR_AND,
          TINY_INSTR_OR,    TINY_INSTR_XOR,   TINY_INSTR_SHL,   TINY_INSTR_SHR,
          TINY_INSTR_CMPLT, TINY_INSTR_CMPNE, TINY_INSTR_CMPEQ, TINY_INSTR_WHERE,
          TINY_INSTR_MULACC };
  static const unsigned widths[] = { 1, 16, 64 };
  GRand *random = g_rand_new_with_seed (42);
  for (unsigned dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_F64; dtype++)
    for (unsigned i = 0; i < G_N_ELEMENTS (ops); i++)
      for (unsigned w = 0; w < G_N_ELEMENTS (widths); w++)
        if (dtype != TINY_DTYPE_F16 && dtype != TINY_DTYPE_BF16
            && (h.target.ops[dtype] & TINY_INSTR_BIT (ops[i])))
          check_op (ops[i], dtype, widths[w], random);
  g_rand_free (random);
}

/* ---- casts ---- */

static double
to_double (unsigned dtype, const void *data)
{
  Value v = { 0 };
  memcpy (&v, data, size_of (dtype));
  switch (dtype) {
  case TINY_DTYPE_BOOL:
    return v.b;
#define CASE(DTYPE, field, type)                                                               \
  case TINY_DTYPE_##DTYPE:                                                                     \
    return (double) v.field;
    INT_TYPES (CASE)
    FLOAT_TYPES (CASE)
#undef CASE
        case TINY_DTYPE_F16:
    {
      int exponent = v.u16 >> 10 & 31, mantissa = v.u16 & 1023;
      double r = exponent == 0    ? ldexp (mantissa, -24)
                 : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                  : ldexp (1024 + mantissa, exponent - 25);
      return v.u16 >> 15 ? -r : r;
    }
  }
  return 0;
}

static void
from_double (unsigned dtype, double real, void *data)
{
  Value v = { 0 };
  switch (dtype) {
  case TINY_DTYPE_BOOL:
    v.b = real != 0;
    break;
#define CASE(DTYPE, field, type)                                                               \
  case TINY_DTYPE_##DTYPE:                                                                     \
    v.field = (type) real;                                                                     \
    break;
    INT_TYPES (CASE)
    FLOAT_TYPES (CASE)
#undef CASE
        case TINY_DTYPE_F16:
    { /* the nearest by trying, ties to even */
      double best = INFINITY;
      for (unsigned bits = 0; bits < 0x7c00; bits++) {
        uint16_t candidate = (uint16_t) (bits | (signbit (real) ? 0x8000 : 0));
        double distance = fabs (to_double (dtype, &candidate) - real);
        if (distance < best || (distance == best && !(bits & 1))) {
          best = distance;
          v.u16 = candidate;
        }
      }
      break;
    }
  }
  memcpy (data, &v, size_of (dtype));
}

/* Values that every dtype holds, and fractions and large ones for the float dtypes. */
static void
check_cast (unsigned from, unsigned to, unsigned lanes)
{
  enum { N = 16 };
  static const double small[N] = { 0, 1, 2, 3, 5, 17, 100, 127, 7, 1, 0, 0, 64, 99, 12, 31 };
  static const double real[N]
      = { 0,     0.5,  1.75, 2.999,    5.0001,    17.25,    100.125, 127.99,
          7.003, 1e-5, 3e-8, 0.333333, 64.031251, 99.96877, 12.1,    31.01563 };
  bool is_real = from >= TINY_DTYPE_F16;
  g_autofree Program *p = program_new ("cast");
  uint32_t out = program_param (p, to, N, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, from, N, TINY_PARAM_READ);
  uint32_t bound = ADD (CONST, I64, 1, N / lanes), k = ADD (RANGE, I64, 1, 0, bound);
  uint32_t width = ADD (CONST, I64, 1, lanes), at = ADD (MUL, I64, 1, 0, k, width);
  uint32_t x = add (p, TINY_INSTR_LOAD, from, lanes, 0, in, at, -1);
  uint32_t y = add (p, TINY_INSTR_CAST, to, lanes, 0, x, -1);
  ADD (STORE, VOID, lanes, 0, out, at, y);
  ADD (END, VOID, 1, 0, k);
  uint8_t data[2][N * 8], expected[N * 8];
  for (int i = 0; i < N; i++) {
    from_double (from, is_real ? real[i] : small[i], data[1] + i * size_of (from));
    from_double (to, to_double (from, data[1] + i * size_of (from)),
                 expected + i * size_of (to));
  }
  Array arrays[2] = { { data[0], N * size_of (to) }, { data[1], N * size_of (from) } };
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 2, NULL, 0, one_point);
  program_unload (program);
  for (int i = 0; i < N; i++)
    if (memcmp (data[0] + i * size_of (to), expected + i * size_of (to), size_of (to)) != 0)
      g_error ("cast %u to %u, %u lanes, %g: %g instead of %g", from, to, lanes,
               to_double (from, data[1] + i * size_of (from)),
               to_double (to, data[0] + i * size_of (to)),
               to_double (to, expected + i * size_of (to)));
}

static void
test_casts (void)
{
  bool has_f16 = (h.target.ops[TINY_DTYPE_F16] & TINY_INSTR_BIT (TINY_INSTR_CAST)) != 0;
  for (unsigned from = TINY_DTYPE_BOOL; from <= TINY_DTYPE_F64; from++)
    for (unsigned to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++) {
      bool is_skipped = false;
      for (unsigned dtype = TINY_DTYPE_F8E4M3; dtype <= TINY_DTYPE_BF16; dtype++)
        is_skipped
            = is_skipped
              || ((from == dtype || to == dtype) && (dtype != TINY_DTYPE_F16 || !has_f16));
      if (is_skipped)
        continue;
      check_cast (from, to, 1);
      check_cast (from, to, 16);
    }
}

/* ---- what would trap or be undefined ---- */

static void
test_no_trap (void)
{
  static const unsigned dtypes[]
      = { TINY_DTYPE_I32, TINY_DTYPE_U32, TINY_DTYPE_I64, TINY_DTYPE_U64, TINY_DTYPE_I8 };
  static const unsigned ops[]
      = { TINY_INSTR_IDIV, TINY_INSTR_MOD, TINY_INSTR_SHL, TINY_INSTR_SHR };
  for (unsigned d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (unsigned o = 0; o < G_N_ELEMENTS (ops); o++)
      for (unsigned lanes = 1; lanes <= 16; lanes *= 16)
        for (int is_constant = 0; is_constant < 2; is_constant++) {
          unsigned dtype = dtypes[d];
          g_autofree Program *p = program_new ("trap");
          uint32_t out = program_param (p, dtype, 16, TINY_PARAM_WRITE);
          uint32_t in[2] = { program_param (p, dtype, 16, TINY_PARAM_READ),
                             program_param (p, dtype, 16, TINY_PARAM_READ) };
          uint32_t zero = ADD (CONST, I64, 1, 0);
          uint32_t x = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, in[0], zero, -1);
          uint32_t y = is_constant ? add (p, TINY_INSTR_CONST, dtype, lanes, 0, -1)
                                   : add (p, TINY_INSTR_LOAD, dtype, lanes, 0, in[1], zero, -1);
          uint32_t value = add (p, ops[o], dtype, lanes, 0, x, y, -1);
          ADD (STORE, VOID, lanes, 0, out, zero, value);
          TinyPluginProgram *program = program_build (p);
          for (int divisor = -1; divisor < 1; divisor++) {
            uint8_t data[3][128] = { { 0 } };
            memset (data[2], divisor, sizeof data[2]);
            for (unsigned i = 0; i < 16; i++)
              data[1][(i + 1) * size_of (dtype) - 1] = 0x80; /* the least signed number */
            Array arrays[3] = { { data[0], 16 * size_of (dtype) },
                                { data[1], 16 * size_of (dtype) },
                                { data[2], 16 * size_of (dtype) } };
            program_run (program, arrays, 3, NULL, 0, one_point);
          }
          program_unload (program);
        }
}

static void
test_cast_out_of_range (void)
{
  static const float values[16]
      = { NAN,   INFINITY, -INFINITY, 1e20f, -1e20f, -1,    3e9f,  -3e9f,
          5e18f, 2e19f,    1e-30f,    -0.0f, 256,    65536, 1e38f, -1e38f };
  for (unsigned to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_U64; to++) {
    g_autofree Program *p = program_new ("out_of_range");
    uint32_t out = program_param (p, to, 16, TINY_PARAM_WRITE);
    uint32_t in = program_param (p, TINY_DTYPE_F32, 16, TINY_PARAM_READ);
    uint32_t zero = ADD (CONST, I64, 1, 0), x = ADD (LOAD, F32, 16, 0, in, zero);
    uint32_t y = add (p, TINY_INSTR_CAST, to, 16, 0, x, -1);
    /* The same value must be seen twice: y ^ y is 0 whatever y is. */
    uint32_t same = add (p, TINY_INSTR_XOR, to, 16, 0, y, y, -1);
    ADD (STORE, VOID, 16, 0, out, zero, same);
    uint8_t data[128], expected[128] = { 0 };
    float copy[16];
    memcpy (copy, values, sizeof copy);
    Array arrays[2] = { { data, 16 * size_of (to) }, { copy, sizeof copy } };
    TinyPluginProgram *program = program_build (p);
    program_run (program, arrays, 2, NULL, 0, one_point);
    program_unload (program);
    g_assert_cmpmem (data, 16 * size_of (to), expected, 16 * size_of (to));
  }
}

/* ---- gates never touch what they hide ---- */

/* A function over the last bytes before a page that may not be touched. */
static uint8_t *
new_guarded (size_t n_bytes)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);
  uint8_t *memory
      = mmap (NULL, page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_assert_true (memory != MAP_FAILED);
  g_assert_cmpint (mprotect (memory + page, page, PROT_NONE), ==, 0);
  return memory + page - n_bytes;
}

/* Loads from and stores into 5 guarded elements with gates of 16 lanes, or one scalar gate. The
 * guarded memory is no buffer, so its address comes in as the difference of two: the index. */
static void
check_gate (unsigned dtype, unsigned lanes, bool is_scalar_gate)
{
  enum { N = 5 };
  unsigned n_bytes = size_of (dtype);
  uint8_t *guarded = new_guarded (N * n_bytes);
  TinyPluginError error = new_error ();
  TinyPluginBuffer *buffer;
  void *base;
  g_assert_cmpint (h.table->alloc (h.device, 64, &buffer, &error), ==, 0);
  g_assert_cmpint (h.table->map (h.device, buffer, &base, &error), ==, 0);

  g_autofree Program *p = program_new ("gate");
  p->linear.n_variables = 2;
  uint32_t memory = program_param (p, dtype, N, TINY_PARAM_READ | TINY_PARAM_WRITE);
  uint32_t at = ADD (VARIABLE, I64, 1, 0), n = ADD (VARIABLE, I64, 1, 1), gate;
  if (is_scalar_gate) {
    uint32_t zero = ADD (CONST, I64, 1, 0);
    gate = ADD (CMPLT, BOOL, 1, 0, zero, n);
  } else {
    uint32_t places[16];
    for (unsigned i = 0; i < 16; i++)
      places[i] = ADD (CONST, I64, 1, i);
    uint32_t iota
        = ADD (VECTOR, I64, 16, 0, places[0], places[1], places[2], places[3], places[4],
               places[5], places[6], places[7], places[8], places[9], places[10], places[11],
               places[12], places[13], places[14], places[15]);
    gate = ADD (CMPLT, BOOL, 16, 0, iota, n);
  }
  uint32_t other = add (p, TINY_INSTR_CONST, dtype, lanes, 0, -1);
  uint32_t x = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, memory, at, gate, other, -1);
  ADD (STORE, VOID, lanes, 0, memory, at, x, gate);
  TinyPluginProgram *program = program_build (p);
  for (int n_open = 0; n_open <= N; n_open++) {
    if (is_scalar_gate && n_open > 0 && lanes > N)
      break;
    int64_t variables[2] = { (guarded - (uint8_t *) base) / (int64_t) n_bytes, n_open };
    if (is_scalar_gate && n_open == 0)
      variables[0] += N; /* wholly inside the forbidden page */
    TinySpan span = { buffer, 0, 64 };
    TinyCommand command = { .struct_size = sizeof command,
                            .type = TINY_COMMAND_DISPATCH,
                            .program = program,
                            .buffers = &span,
                            .variables = variables,
                            .n_buffers = 1,
                            .n_variables = 2,
                            .grid = { 1, 1, 1 } };
    TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
    g_assert_cmpint ((guarded - (uint8_t *) base) % (int64_t) n_bytes, ==, 0);
    g_assert_cmpint (h.table->submit (h.device, h.queue, &submit, &error), ==, 0);
  }
  program_unload (program);
  h.table->free (h.device, buffer);
  munmap (guarded + N * n_bytes - sysconf (_SC_PAGESIZE), 2 * (size_t) sysconf (_SC_PAGESIZE));
}

static void
test_gates (void)
{
  static const unsigned dtypes[]
      = { TINY_DTYPE_BOOL, TINY_DTYPE_I8, TINY_DTYPE_F16, TINY_DTYPE_F32, TINY_DTYPE_F64 };
  for (unsigned d = 0; d < G_N_ELEMENTS (dtypes); d++) {
    check_gate (dtypes[d], 16, false);
    check_gate (dtypes[d], 16, true);
    check_gate (dtypes[d], 1, true);
  }
}

/* ---- if, constants, grids of three axes, local memory ---- */

static void
test_grid_if (void)
{
  enum { X = 3, Y = 5, Z = 4 };
  g_autofree Program *p = program_new ("grid_if");
  memcpy (p->linear.grid, (uint32_t[]){ X, Y, Z }, sizeof p->linear.grid);
  uint32_t out = program_param (p, TINY_DTYPE_I32, X * Y * Z, TINY_PARAM_WRITE);
  uint32_t axis[3] = { ADD (GRID, I64, 1, 0), ADD (GRID, I64, 1, 1), ADD (GRID, I64, 1, 2) };
  uint32_t ten = ADD (CONST, I64, 1, 10), nx = ADD (CONST, I64, 1, X),
           ny = ADD (CONST, I64, 1, Y);
  uint32_t zy = ADD (MUL, I64, 1, 0, axis[2], ny), row = ADD (ADD, I64, 1, 0, zy, axis[1]);
  uint32_t rows = ADD (MUL, I64, 1, 0, row, nx), at = ADD (ADD, I64, 1, 0, rows, axis[0]);
  uint32_t z10 = ADD (MUL, I64, 1, 0, axis[2], ten), zy1 = ADD (ADD, I64, 1, 0, z10, axis[1]);
  uint32_t zy10 = ADD (MUL, I64, 1, 0, zy1, ten), code = ADD (ADD, I64, 1, 0, zy10, axis[0]);
  uint32_t local = ADD (LOCAL, I32, 1, 4), zero = ADD (CONST, I64, 1, 0);
  uint32_t value = ADD (CAST, I32, 1, 0, code);
  ADD (STORE, VOID, 1, 0, local, zero, value);
  uint32_t condition = ADD (CMPNE, BOOL, 1, 0, axis[1], zero);
  uint32_t branch = ADD (IF, VOID, 1, 0, condition);
  uint32_t again = ADD (LOAD, I32, 1, 0, local, zero);
  ADD (STORE, VOID, 1, 0, out, at, again);
  ADD (ENDIF, VOID, 1, 0, branch);
  int32_t data[Z][Y][X];
  memset (data, -1, sizeof data);
  Array array = { data, sizeof data };
  TinyPluginProgram *program = program_build (p);
  program_run (program, &array, 1, NULL, 0, p->linear.grid);
  program_unload (program);
  for (int z = 0; z < Z; z++)
    for (int y = 0; y < Y; y++)
      for (int x = 0; x < X; x++)
        g_assert_cmpint (data[z][y][x], ==, y != 0 ? z * 100 + y * 10 + x : -1);
}

/* A choice by constants of which the other lane is 0 / 0, as a gate that is false leaves it: a code
 * generator that takes such a quotient for 0 drops the choice, and stores a NaN. */
static void
test_constant_choice (void)
{
  g_autofree Program *p = program_new ("constant_choice");
  uint32_t out = program_param (p, TINY_DTYPE_F32, 2, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, 2, TINY_PARAM_READ);
  uint32_t yes = ADD (CONST, BOOL, 1, 1), no = ADD (CONST, BOOL, 1, 0);
  uint32_t chosen = ADD (VECTOR, BOOL, 2, 0, yes, no);
  uint32_t at = ADD (CONST, I64, 1, 0), next = ADD (CONST, I64, 1, 1);
  uint32_t zero = ADD (CONST, F32, 1, 0), nothing = ADD (CONST, F32, 2, 0);
  uint32_t x = ADD (LOAD, F32, 1, 0, in, at), y = ADD (LOAD, F32, 1, 0, in, next);
  uint32_t xs = ADD (VECTOR, F32, 2, 0, x, zero), ys = ADD (VECTOR, F32, 2, 0, y, zero);
  uint32_t quotient = ADD (FDIV, F32, 2, 0, xs, ys);
  uint32_t result = ADD (WHERE, F32, 2, 0, chosen, quotient, nothing);
  ADD (STORE, VOID, 2, 0, out, at, result);
  float data[2][2] = { { 7, 7 }, { 6, 4 } };
  Array arrays[2] = { { data[0], sizeof data[0] }, { data[1], sizeof data[1] } };
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 2, NULL, 0, one_point);
  program_unload (program);
  g_assert_cmpfloat (data[0][0], ==, 1.5f);
  g_assert_cmpfloat (data[0][1], ==, 0);
}

static void
test_16_bit_constants (void)
{
  static const struct {
    double value;
    uint16_t f16, bf16;
  } cases[] = { { 1.0, 0x3c00, 0x3f80 },
                { -2.0, 0xc000, 0xc000 },
                { 65504, 0x7bff, 0x4780 },
                { 65520, 0x7c00, 0x4780 },
                { 65519.9, 0x7bff, 0x4780 },
                { 6e-8, 0x0001, 0x3381 },
                { 2.9802322387695312e-8, 0x0000, 0x3300 },
                { INFINITY, 0x7c00, 0x7f80 },
                { 1.00048828125, 0x3c00, 0x3f80 },
                { 1.00146484375, 0x3c02, 0x3f80 },
                { 3.3961775292304601e38, 0x7c00, 0x7f80 } };
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree Program *p = program_new ("constants");
    uint32_t f = program_param (p, TINY_DTYPE_F16, 1, TINY_PARAM_WRITE);
    uint32_t b = program_param (p, TINY_DTYPE_BF16, 1, TINY_PARAM_WRITE);
    uint32_t zero = ADD (CONST, I64, 1, 0), x = ADD (CONST, F16, 1, bits_of (cases[i].value));
    uint32_t y = ADD (CONST, BF16, 1, bits_of (cases[i].value));
    ADD (STORE, VOID, 1, 0, f, zero, x);
    ADD (STORE, VOID, 1, 0, b, zero, y);
    uint16_t data[2] = { 0, 0 };
    Array arrays[2] = { { &data[0], 2 }, { &data[1], 2 } };
    TinyPluginProgram *program = program_build (p);
    program_run (program, arrays, 2, NULL, 0, one_point);
    program_unload (program);
    g_assert_cmphex (data[0], ==, cases[i].f16);
    g_assert_cmphex (data[1], ==, cases[i].bf16);
  }
}

/* ---- mistakes are errors ---- */

static void
expect_refusal (Program *p)
{
  TinyPluginError error = new_error ();
  void *data = NULL;
  uint64_t size;
  g_assert_cmpint (program_compile (p, &data, &size, &error), <, 0);
  g_assert_cmpstr (error.text, !=, "");
  g_assert_null (data);
  g_free (p);
}

static void
test_refusals (void)
{
  Program *p = program_new ("refused");
  uint32_t x = ADD (CONST, F32, 1, 0);
  ADD (SIN, F32, 1, 0, x);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F32, 1, 0);
  uint32_t y = ADD (CONST, I32, 1, 0);
  ADD (ADD, F32, 1, 0, x, y);
  expect_refusal (p);
  p = program_new ("refused");
  ADD (NEG, F32, 1, 0, 5);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, I32, 1, 3);
  ADD (RANGE, I32, 1, 0, x);
  expect_refusal (p);
  p = program_new ("refused");
  ADD (PARAM, F32, 1, 3);
  expect_refusal (p);
  p = program_new ("refused");
  ADD (CONST, F32, 65, 0);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F8E4M3, 1, 0); /* is only stored */
  ADD (ADD, F8E4M3, 1, 0, x, x);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F32, 4, 0);
  ADD (EXTRACT, F32, 1, 4, x);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F32, 4, 0);
  y = ADD (CONST, F32, 8, 0);
  ADD (MUL, F32, 8, 0, x, y);
  expect_refusal (p);
  p = program_new ("refused");
  p->instrs[p->linear.n_instrs++].op = 63;
  expect_refusal (p);
}

/* ---- conversions meet their inverses ---- */

/* A sum of halves in f32 that is stored as halves is one of halves: nothing is converted. */
static void
test_conversions (void)
{
  enum { N = 512, L = 16 };
  g_autofree Program *p = program_new ("sum_of_halves");
  uint32_t out = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_WRITE);
  uint32_t a = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_READ);
  uint32_t b = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_READ);
  p->linear.grid[0] = N / L;
  uint32_t grid = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, L);
  uint32_t at = ADD (MUL, I64, 1, 0, grid, width);
  uint32_t x = ADD (LOAD, F16, L, 0, a, at), y = ADD (LOAD, F16, L, 0, b, at);
  uint32_t wide_x = ADD (CAST, F32, L, 0, x), wide_y = ADD (CAST, F32, L, 0, y);
  uint32_t sum = ADD (ADD, F32, L, 0, wide_x, wide_y), half = ADD (CAST, F16, L, 0, sum);
  ADD (STORE, VOID, L, 0, out, at, half);
  char *text = program_list (p, "x86_64,sapphirerapids"); /* which adds halves */
  g_assert_nonnull (strstr (text, "vaddph"));
  g_assert_null (strstr (text, "vcvt"));
  free (text);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/llvm/add-tail", test_add_tail);
  g_test_add_func ("/plugins-cpu/llvm/reduce", test_reduce);
  g_test_add_func ("/plugins-cpu/llvm/ops", test_ops);
  g_test_add_func ("/plugins-cpu/llvm/casts", test_casts);
  g_test_add_func ("/plugins-cpu/llvm/no-trap", test_no_trap);
  g_test_add_func ("/plugins-cpu/llvm/cast-out-of-range", test_cast_out_of_range);
  g_test_add_func ("/plugins-cpu/llvm/gates", test_gates);
  g_test_add_func ("/plugins-cpu/llvm/grid-if", test_grid_if);
  g_test_add_func ("/plugins-cpu/llvm/constant-choice", test_constant_choice);
  g_test_add_func ("/plugins-cpu/llvm/16-bit-constants", test_16_bit_constants);
  g_test_add_func ("/plugins-cpu/llvm/refusals", test_refusals);
  g_test_add_func ("/plugins-cpu/llvm/conversions", test_conversions);
  int result = g_test_run ();
  harness_close ();
  return result;
}
