/* SPDX-License-Identifier: MIT
 *
 * probe-arithmetic.c: every op that the target declares, on values at the edges of every dtype. */
#include "probe.h"

#define OP(name) TINY_INSTR_##name
enum { N_VALUES = 24, MAX_N = N_VALUES * N_VALUES };

static const unsigned char n_bytes_of[TINY_N_DTYPES]
    = { 0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8 };

/* ---- values ---- */
static const double numbers[N_VALUES] = {
  0,    -0.0,    0.5,           -0.5,         1,        -1,       1.5,        -0x1.03p0,
  2.5,  -2.75,   100.7,         -100.7,       0.1,      3.003e-5, -7e-6,      65510,
  1e19, -123456, 0x1.0020001p0, 3000000128.0, 0x1p-130, -130.25,  1.00390636, 0x1.0020001p0,
};
static const uint64_t integers[N_VALUES] = {
  0,
  1,
  2,
  3,
  5,
  7,
  31,
  96,
  127,
  128,
  200,
  255,
  256,
  1000,
  32767,
  32768,
  UINT64_MAX,
  65535,
  16777217,
  0x7fffffff,
  0x80000000,
  UINT64_C (0x1000001000000001),
  UINT64_C (0x1234567890abcdef),
  UINT64_C (0xfffffffffffffff9),
};
/* Of floats, beyond what numbers are: infinities, NaN, and subnormals, by where their bits lie. */
static uint64_t
special (unsigned dtype, unsigned i)
{
  static const unsigned char mantissa[TINY_N_DTYPES]
      = { [TINY_DTYPE_F8E4M3] = 3, [TINY_DTYPE_F8E5M2] = 2, [TINY_DTYPE_F16] = 10,
          [TINY_DTYPE_BF16] = 7,   [TINY_DTYPE_F32] = 23,   [TINY_DTYPE_F64] = 52 };
  const unsigned width = 8u * n_bytes_of[dtype], m = mantissa[dtype];
  const uint64_t sign = UINT64_C (1) << (width - 1), infinity = (sign - 1) >> m << m;
  const uint64_t all[]
      = { infinity,     infinity | sign, sign - 1,         1, (UINT64_C (1) << m) - 1,
          infinity - 1, infinity | 1,    UINT64_C (1) << m };
  return all[i % TINY_KIT_N (all)];
}

static void
put (void *to, unsigned dtype, uint64_t value)
{
  memcpy (to, &value, n_bytes_of[dtype]); /* little endian, as the devices that are tested */
}

static void
put_number (void *to, unsigned dtype, double x)
{
  const float f = (float) x;
  uint32_t u;
  if (dtype == TINY_DTYPE_F64) {
    memcpy (to, &x, 8);
    return;
  }
  memcpy (&u, &f, 4);
  if (dtype == TINY_DTYPE_F32)
    put (to, dtype, u);
  else if (dtype == TINY_DTYPE_BF16)
    put (to, dtype, u >> 16);
  else
    put (to, dtype, (u * UINT32_C (2654435761)) >> 9); /* any bits of the narrow ones */
}

static int
is_float (unsigned dtype)
{
  return (FLOATS & TINY_DTYPE_BIT (dtype)) != 0;
}

/* @with_special: with what has no integer. */
static void
fill (unsigned char *to, unsigned dtype, size_t n, size_t stride, int with_special)
{
  for (size_t i = 0; i < n; i++, to += n_bytes_of[dtype]) {
    const unsigned which = (unsigned) (i / stride % N_VALUES);
    if (dtype == TINY_DTYPE_BOOL)
      put (to, dtype, which % 2);
    else if (!is_float (dtype))
      put (to, dtype, integers[which]);
    else if (with_special && which % 3 == 2)
      put (to, dtype, special (dtype, which / 3));
    else
      put_number (to, dtype, numbers[which]);
  }
}

/* ---- what is defined ---- */

/* The second operand within what the op allows: a count below the width, no zero. */
static void
restrict_second (unsigned char *to, unsigned op, unsigned dtype, size_t n)
{
  const unsigned width = 8u * n_bytes_of[dtype];
  for (size_t i = 0; i < n; i++, to += n_bytes_of[dtype]) {
    uint64_t value = 0;
    memcpy (&value, to, n_bytes_of[dtype]);
    if (op == OP (SHL) || op == OP (SHR))
      put (to, dtype, value % width);
    else if (op == OP (IDIV) || op == OP (MOD))
      put (to, dtype, value == 0 ? 3 : value);
  }
}

/* Floats that the integer dtype has. */
static void
restrict_range (unsigned char *bytes, unsigned dtype, unsigned to, size_t n)
{
  const int is_signed = (SIGNED_INTS & TINY_DTYPE_BIT (to)) != 0;
  const unsigned width = 8u * n_bytes_of[to];
  const double most = (double) (UINT64_C (1) << (width - 1)) * (is_signed ? 1 : 2);
  for (size_t i = 0; i < n; i++) {
    float f = 0;
    double x = 0;
    if (dtype == TINY_DTYPE_F32)
      memcpy (&f, bytes + i * 4, 4);
    memcpy (&x, bytes + i * n_bytes_of[dtype], n_bytes_of[dtype]);
    x = dtype == TINY_DTYPE_F32 ? (double) f : x;
    if (!(x < most && x > (is_signed ? -most : -1)))
      put_number (bytes + i * n_bytes_of[dtype], dtype, 1.5);
  }
}

/* ---- one op ---- */
static void
run_op (Probe *probe, unsigned op, unsigned dtype, unsigned to, unsigned n_operands)
{
  static unsigned char bytes[4][MAX_N * 8];
  static char name[64];
  const uint32_t n = n_operands == 1 ? N_VALUES : MAX_N;
  const int is_where = op == OP (WHERE);
  TinyPluginBuffer *buffers[4];
  TinySpan spans[4];
  snprintf (name, sizeof name, "op%u_%u_%u", op, dtype, to);
  Rewrite *k = kernel_new (name, n_operands + 1);
  ((TinyLinear *) k->in)->grid[0] = n;
  kernel_param (k, 0, to, TINY_PARAM_WRITE, n);
  for (unsigned i = 1; i <= n_operands; i++)
    kernel_param (k, i, is_where && i == 1 ? TINY_DTYPE_BOOL : dtype, TINY_PARAM_READ, n);
  Value at_i[4], s[3];
  for (unsigned i = 0; i <= n_operands; i++)
    at_i[i] = emit (k, OP (PARAM), k->params[i].dtype, 1, i, 0, NULL);
  const Value index = kernel_grid (probe, k, 0);
  for (unsigned i = 0; i < n_operands; i++)
    s[i] = emit (k, OP (LOAD), k->params[i + 1].dtype, 1, 0, 2,
                 (const Value[]){ at_i[i + 1], index });
  const Value y = emit (k, op, to, 1, 0, n_operands, s);
  emit (k, OP (STORE), TINY_DTYPE_VOID, 1, 0, 3, (const Value[]){ at_i[0], index, y });

  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (probe, &linear);
  for (unsigned i = 0; i <= n_operands; i++) {
    const unsigned own = k->params[i].dtype;
    const uint64_t size = (uint64_t) n * n_bytes_of[own];
    fill (bytes[i], own, n, i == 2 ? N_VALUES : i == 3 ? 5 : 1, 1);
    if (i == 2)
      restrict_second (bytes[i], op, own, n);
    if (op == OP (CAST) && is_float (dtype) && (INTS & TINY_DTYPE_BIT (to)) != 0 && i == 1) {
      if (dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F64)
        memset (bytes[i], 0, size);
      else
        restrict_range (bytes[i], dtype, to, n);
    }
    buffers[i] = probe_alloc (probe, size);
    probe_upload (probe, buffers[i], 0, bytes[i], size);
    spans[i] = (TinySpan){ buffers[i], 0, size };
  }
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = program,
                                .buffers = spans,
                                .n_buffers = n_operands + 1,
                                .grid = { n, 1, 1 } };
  if (program != NULL) {
    say_status (probe, name, probe_submit (probe, &command, 1));
    probe_download (probe, buffers[0], 0, bytes[0], spans[0].n_bytes);
    say (name, "%08x", tiny_hash (0, bytes[0], (size_t) spans[0].n_bytes));
    probe->table->program_unload (probe->device, program);
  }
  for (unsigned i = 0; i <= n_operands; i++)
    probe->table->free (probe->device, buffers[i]);
  kernel_free (k);
}

/* ---- all of them ---- */
static int
has (const Probe *probe, unsigned op, unsigned dtype)
{
  const int is_computed = op == OP (CAST) || op == OP (WHERE) || op == OP (BITCAST)
                          || (probe->target.dtypes_compute & TINY_DTYPE_BIT (dtype)) != 0;
  return is_computed && (probe->target.dtypes_storage & TINY_DTYPE_BIT (dtype)) != 0
         && (probe->target.ops[dtype] & TINY_INSTR_BIT (op)) != 0;
}

static void
probe_conversions (Probe *probe, unsigned from)
{
  for (unsigned to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++) {
    const uint32_t both = TINY_DTYPE_BIT (from) | TINY_DTYPE_BIT (to);
    const int is_f32 = from == TINY_DTYPE_F32 || to == TINY_DTYPE_F32;
    const int is_computed = (probe->target.dtypes_compute & both) == both;
    if (from != to && has (probe, OP (CAST), from) && has (probe, OP (CAST), to)
        && (is_computed || is_f32))
      run_op (probe, OP (CAST), from, to, 1);
    if (from != to && n_bytes_of[from] == n_bytes_of[to] && from != TINY_DTYPE_BOOL
        && to != TINY_DTYPE_BOOL && has (probe, OP (BITCAST), from)
        && has (probe, OP (BITCAST), to))
      run_op (probe, OP (BITCAST), from, to, 1);
  }
}

void
probe_arithmetic (Probe *probe)
{
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++) {
    for (unsigned op = OP (NEG); op <= OP (CMPEQ); op++) {
      const int is_comparison = op == OP (CMPLT) || op == OP (CMPNE) || op == OP (CMPEQ);
      const unsigned n = op <= OP (SIN) || op == OP (TRUNC)      ? 1
                         : op == OP (WHERE) || op == OP (MULACC) ? 3
                                                                 : 2;
      if (has (probe, op, dtype))
        run_op (probe, op, dtype, is_comparison ? TINY_DTYPE_BOOL : dtype, n);
    }
    probe_conversions (probe, dtype);
  }
}
