/* SPDX-License-Identifier: MIT
 *
 * Proves that the LLVM renderer's code computes what the contract says: every op at every dtype and at several widths
 * against plain C, and that nothing traps. */
#include "harness.h"

#include <math.h>

#include "../case-fails.h"
#include "values.h"

/* ---- every op at every dtype ---- */

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
    if (!are_nan && memcmp (got, &expected, size_of (result)) != 0) {
      CASE_FAILS ("op %u dtype %u lanes %u element %d: x %016" G_GINT64_MODIFIER
                  "x y %016" G_GINT64_MODIFIER "x",
                  op, dtype, lanes, j, values[0][j].u64, values[1][j].u64);
      return;
    }
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

/* ---- bits of two operands, chosen or not ---- */

/* out = c < d ? joined : x, joined the bits of y where @mask has ones, else of x: by ANDs and an OR, or by XORs. */
static void
check_joined (unsigned lanes, int64_t mask, bool by_xor, bool is_first)
{
  enum { N = 64 };
  uint32_t data[5][N];
  Array arrays[5];
  g_autofree Program *p = program_new ("joined");
  uint32_t param[5], x[5];
  for (uint32_t i = 0; i < 5; i++) {
    param[i]
        = program_param (p, TINY_DTYPE_I32, N, i == 0 ? TINY_PARAM_WRITE : TINY_PARAM_READ);
    arrays[i] = (Array){ data[i], sizeof data[i] };
    for (uint32_t k = 0; k < N; k++)
      data[i][k] = (i + 1) * (k + 1) * 2654435761u;
  }
  uint32_t bound = ADD (CONST, I64, 1, N / lanes), k = ADD (RANGE, I64, 1, 0, bound);
  uint32_t width = ADD (CONST, I64, 1, lanes);
  uint32_t at = ADD (MUL, I64, 1, 0, k, width);
  for (int i = 1; i < 5; i++)
    x[i] = ADD (LOAD, I32, lanes, 0, param[i], at);
  uint32_t ones = ADD (CONST, I32, lanes, mask);
  uint32_t others = ADD (CONST, I32, lanes, (int32_t) ~mask);
  uint32_t differ = ADD (XOR, I32, lanes, 0, x[1], x[2]);
  uint32_t from_y = ADD (AND, I32, lanes, 0, by_xor ? differ : x[2], ones);
  uint32_t from_x = ADD (AND, I32, lanes, 0, x[1], others);
  uint32_t joined = by_xor ? ADD (XOR, I32, lanes, 0, x[1], from_y)
                           : ADD (OR, I32, lanes, 0, from_y, from_x);
  uint32_t less = ADD (CMPLT, BOOL, lanes, 0, x[3], x[4]);
  uint32_t value = ADD (WHERE, I32, lanes, 0, less, joined, x[is_first ? 1 : 2]);
  ADD (STORE, VOID, lanes, 0, param[0], at, value);
  ADD (END, VOID, 1, 0, k);
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 5, NULL, 0, one_point);
  program_unload (program);
  for (int i = 0; i < N; i++) {
    uint32_t both = (data[2][i] & (uint32_t) mask) | (data[1][i] & ~(uint32_t) mask);
    bool is_less = (int32_t) data[3][i] < (int32_t) data[4][i];
    g_assert_cmphex (data[0][i], ==, is_less ? both : data[is_first ? 1 : 2][i]);
  }
}

static void
test_joined (void)
{
  static const int64_t masks[] = { INT32_MIN, INT32_MAX, 0xff00ff, 1 };
  for (unsigned lanes = 4; lanes <= 16; lanes *= 2)
    for (unsigned i = 0; i < G_N_ELEMENTS (masks); i++)
      for (unsigned how = 0; how < 4; how++)
        check_joined (lanes, masks[i], how & 1, how & 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/llvm-ops/ops", test_ops);
  g_test_add_func ("/plugins-cpu/llvm-ops/joined", test_joined);
  g_test_add_func ("/plugins-cpu/llvm-ops/no-trap", test_no_trap);
  int result = g_test_run ();
  harness_close ();
  return result;
}
