/* SPDX-License-Identifier: MIT
 *
 * Proves that REF computes every op on every dtype as the IR's own evaluator does, that loops,
 * registers, gates, groups and barriers run as written, and that wrong programs, damaged binaries
 * and accesses out of bounds are refused with a reason. */
#include <math.h>

#include "../case-fails.h"
#include "base/tiny-float.h"
#include "ir/tiny-eval.h"
#include "ref-harness.h"

static Rig rig;

/* ---- every op on every dtype ---- */
enum { N_CASES = 400 };

/* A value as the evaluator encodes it, edges first and then random. */
static gint64
sample (GRand *rand, guint dtype, guint i)
{
  static const double floats[]
      = { 0.0, -0.0,  1.0,    -1.0,  0.5,    2.0, 3.0,   -7.25, INFINITY, -INFINITY,
          NAN, 1e-45, -3e-39, 65504, 3.3e38, 448, 57344, 1e300, 1e-310 };
  static const gint64 ints[]
      = { 0,          1,          -1,          2,          3,         7,      -8,
          127,        128,        -128,        255,        32767,     -32768, 65535,
          G_MAXINT32, G_MININT32, G_MAXUINT32, G_MAXINT64, G_MININT64 };
  if (tiny_dtype_is_float (dtype)) {
    if (i < G_N_ELEMENTS (floats))
      return tiny_eval_from_double (dtype, floats[i]);
    return tiny_eval_from_double (
        dtype, ldexp (g_rand_double_range (rand, -2, 2), g_rand_int_range (rand, -12, 10)));
  }
  guint64 random = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
  return tiny_eval_wrap (dtype, i < G_N_ELEMENTS (ints)
                                    ? ints[i]
                                    : (gint64) random >> g_rand_int_range (rand, 0, 63));
}

static guint64
to_memory (guint dtype, gint64 value)
{
  return tiny_dtype_is_float (dtype) ? tiny_float_to_bits (dtype, tiny_eval_to_double (value))
                                     : (guint64) value;
}

static void
put (guint8 *memory, guint dtype, guint i, gint64 value)
{
  guint64 bits = GUINT64_TO_LE (to_memory (dtype, value));
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
  memcpy (memory + i * n_bytes, &bits, n_bytes);
}

static gint64
get (const guint8 *memory, guint dtype, guint i)
{
  guint64 bits = 0;
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
  memcpy (&bits, memory + i * n_bytes, n_bytes);
  bits = GUINT64_FROM_LE (bits);
  if (tiny_dtype_is_float (dtype))
    return tiny_eval_from_double (dtype, tiny_float_from_bits (dtype, bits));
  return tiny_eval_wrap (dtype, (gint64) bits);
}

/* How many steps of the format lie between two values; of the same sign or nearly zero. */
static double
distance (guint dtype, gint64 a, gint64 b)
{
  double x = tiny_eval_to_double (a), y = tiny_eval_to_double (b);
  if (isnan (x) || isnan (y))
    return isnan (x) && isnan (y) ? 0 : INFINITY;
  if (signbit (x) != signbit (y))
    return INFINITY;
  return fabs (
      (double) (gint64) (tiny_float_to_bits (dtype, x) - tiny_float_to_bits (dtype, y)));
}

static void
run_case (TinyOp op, guint dtype, guint to, guint lanes, guint8 *const *memory)
{
  Script s;
  script_init (&s);
  guint n = (guint) tiny_op_infos[op].least;
  guint32 out = emit_param (&s, to, N_CASES), in[3], loaded[3];
  guint dtypes[3] = { op == TINY_OP_WHERE ? TINY_DTYPE_BOOL : dtype, dtype, dtype };
  void *data[4] = { memory[0], memory[1], memory[2], memory[3] };
  gsize sizes[4] = { N_CASES * tiny_dtype_get_n_bytes (to) };
  for (guint i = 0; i < n; i++) {
    in[i] = emit_param (&s, dtypes[i], N_CASES);
    sizes[i + 1] = N_CASES * tiny_dtype_get_n_bytes (dtypes[i]);
  }
  guint32 range = emit (&s, RANGE, I32, 1, emit_int (&s, TINY_DTYPE_I32, N_CASES / lanes));
  guint32 at = emit (&s, MUL, I32, 1, range, emit_int (&s, TINY_DTYPE_I32, lanes));
  for (guint i = 0; i < n; i++)
    loaded[i] = emit_n (&s, TINY_INSTR_LOAD, dtypes[i], lanes, 0, 2, (guint32[]){ in[i], at });
  guint32 value = emit_n (&s, tiny_op_infos[op].instr, to, lanes, 0, n, loaded);
  emit (&s, STORE, VOID, lanes, out, at, value);
  emit (&s, END, VOID, 1, range);
  TinyStatus status = rig_run (&rig, &s, data, sizes, NULL);
  g_assert_cmpstr (rig.error.text, ==, "");
  g_assert_cmpint (status, ==, TINY_STATUS_OK);
}

static void
check_case (GRand *rand, TinyOp op, guint dtype, guint to)
{
  guint n = (guint) tiny_op_infos[op].least, n_defined = 0;
  g_autofree guint8 *memory = g_malloc0 (4 * 8 * N_CASES);
  g_autofree guint8 *again = g_malloc0 (8 * N_CASES);
  guint8 *blocks[4];
  gint64 (*args)[3] = g_malloc0 (N_CASES * sizeof *args);
  for (guint j = 0; j < 4; j++)
    blocks[j] = memory + j * 8 * N_CASES;
  gboolean shifts = op == TINY_OP_SHL || op == TINY_OP_SHR;
  for (guint i = 0; i < N_CASES; i++)
    for (guint j = 0; j < n; j++) {
      guint of = op == TINY_OP_WHERE && j == 0 ? TINY_DTYPE_BOOL : dtype;
      guint pick = j == 0 ? i % 19 + (i >= 361 ? 19 : 0) : i / 19;
      args[i][j] = sample (rand, of, j == 2 ? 19 + i : pick);
      if (shifts && j == 1)
        args[i][j] = i % (8 * tiny_dtype_get_n_bytes (dtype));
      put (blocks[j + 1], of, i, args[i][j]);
    }
  run_case (op, dtype, to, 1, blocks);
  memcpy (again, blocks[0], 8 * N_CASES);
  run_case (op, dtype, to, 8, blocks);
  g_assert_cmpmem (again, N_CASES * tiny_dtype_get_n_bytes (to), blocks[0],
                   N_CASES * tiny_dtype_get_n_bytes (to));
  /* The evaluator asks the C library in f64 and rounds MULACC twice; REF does better. */
  double allowed = op == TINY_OP_EXP2 || op == TINY_OP_LOG2 || op == TINY_OP_SIN ? 1 : 0;
  for (guint i = 0; i < N_CASES; i++) {
    gint64 expected, found = get (blocks[0], to, i);
    if (!tiny_eval_alu (op, dtype, to, args[i], n, &expected))
      continue;
    n_defined++;
    if (op == TINY_OP_MULACC && tiny_dtype_is_float (dtype))
      continue;
    if (found != expected
        && !(tiny_dtype_is_float (to) && distance (to, found, expected) <= allowed)) {
      CASE_FAILS ("%s of %s to %s: (%" G_GINT64_MODIFIER "x, %" G_GINT64_MODIFIER
                  "x) gave %" G_GINT64_MODIFIER "x, expected %" G_GINT64_MODIFIER "x",
                  tiny_op_to_string (op), tiny_dtype_to_string (dtype),
                  tiny_dtype_to_string (to), args[i][0], args[i][1], found, expected);
      break;
    }
  }
  g_assert_cmpuint (n_defined, >, N_CASES / 10);
  g_free (args);
}

static void
test_ops (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  TinyTarget target = { .struct_size = sizeof target };
  guint n = 0;
  g_assert_cmpint (rig.module->renderers->target ("", &target, &rig.error), ==, 0);
  for (guint op = 0; op < TINY_N_OPS; op++)
    for (guint dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++) {
      if (!tiny_op_is_elementwise (op) || tiny_op_infos[op].instr == 0
          || !(target.ops[dtype] & TINY_INSTR_BIT (tiny_op_infos[op].instr)))
        continue;
      if (op == TINY_OP_CAST || op == TINY_OP_BITCAST) {
        for (guint to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++)
          if (op == TINY_OP_CAST
              || (to != TINY_DTYPE_BOOL
                  && tiny_dtype_get_n_bytes (to) == tiny_dtype_get_n_bytes (dtype)))
            check_case (rand, op, dtype, to);
      } else {
        gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
        check_case (rand, op, dtype, compares ? TINY_DTYPE_BOOL : dtype);
      }
      n++;
    }
  g_assert_cmpuint (n, >, 200);
}

/* What the evaluator leaves open, and MULACC's one rounding. */
static void
test_edges (void)
{
  struct {
    guint op, dtype, to;
    double a, b, c, expected;
  } rows[] = {
    { TINY_INSTR_MULACC, TINY_DTYPE_F32, TINY_DTYPE_F32, 1 + 0x1p-23, 1 - 0x1p-23, -1,
      -0x1p-46 },
    { TINY_INSTR_MULACC, TINY_DTYPE_F64, TINY_DTYPE_F64, 1 + 0x1p-52, 1 - 0x1p-52, -1,
      -0x1p-104 },
    { TINY_INSTR_MULACC, TINY_DTYPE_F16, TINY_DTYPE_F16, 3, 4, 5, 17 },
    { TINY_INSTR_MAX, TINY_DTYPE_F32, TINY_DTYPE_F32, NAN, 2, 0, 2 },
    { TINY_INSTR_MAX, TINY_DTYPE_F32, TINY_DTYPE_F32, 2, NAN, 0, 2 },
    { TINY_INSTR_CAST, TINY_DTYPE_F32, TINY_DTYPE_I8, 300, 0, 0, 127 },
    { TINY_INSTR_CAST, TINY_DTYPE_F32, TINY_DTYPE_I32, -1e20, 0, 0, G_MININT32 },
    { TINY_INSTR_CAST, TINY_DTYPE_F32, TINY_DTYPE_U8, NAN, 0, 0, 0 },
    { TINY_INSTR_CAST, TINY_DTYPE_I64, TINY_DTYPE_F32, 16777217, 0, 0, 16777216 },
    { TINY_INSTR_CAST, TINY_DTYPE_F64, TINY_DTYPE_F16, 65520, 0, 0, INFINITY },
    { TINY_INSTR_CAST, TINY_DTYPE_F64, TINY_DTYPE_F16, 65519.99, 0, 0, 65504 },
    { TINY_INSTR_CAST, TINY_DTYPE_F64, TINY_DTYPE_F8E4M3, 464, 0, 0, 448 },
    { TINY_INSTR_CAST, TINY_DTYPE_F64, TINY_DTYPE_F8E4M3, 465, 0, 0, NAN },
    { TINY_INSTR_IDIV, TINY_DTYPE_I32, TINY_DTYPE_I32, 5, 0, 0, 0 },
    { TINY_INSTR_IDIV, TINY_DTYPE_I32, TINY_DTYPE_I32, G_MININT32, -1, 0, G_MININT32 },
    { TINY_INSTR_MOD, TINY_DTYPE_I32, TINY_DTYPE_I32, G_MININT32, -1, 0, 0 },
    { TINY_INSTR_MOD, TINY_DTYPE_I32, TINY_DTYPE_I32, -7, 3, 0, -1 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    Script s;
    guint8 memory[8] = { 0 };
    guint32 values[3];
    double in[] = { rows[i].a, rows[i].b, rows[i].c };
    guint n = rows[i].op == TINY_INSTR_CAST ? 1 : rows[i].op == TINY_INSTR_MULACC ? 3 : 2;
    script_init (&s);
    guint32 out = emit_param (&s, rows[i].to, 1), zero = emit_int (&s, TINY_DTYPE_I64, 0);
    for (guint j = 0; j < n; j++)
      values[j] = tiny_dtype_is_float (rows[i].dtype)
                      ? emit_float (&s, rows[i].dtype, in[j])
                      : emit_int (&s, rows[i].dtype, (gint64) in[j]);
    guint32 value = emit_n (&s, rows[i].op, rows[i].to, 1, 0, n, values);
    emit (&s, STORE, VOID, 1, out, zero, value);
    g_assert_cmpint (rig_run (&rig, &s, (void *[]){ memory }, (gsize[]){ 8 }, NULL), ==, 0);
    gint64 found = get (memory, rows[i].to, 0);
    gint64 expected = tiny_dtype_is_float (rows[i].to)
                          ? tiny_eval_from_double (rows[i].to, rows[i].expected)
                          : (gint64) rows[i].expected;
    g_test_message ("row %u", i);
    g_assert_cmpint (found, ==, expected);
  }
}

/* ---- control ---- */

/* out[g] = sum over j < variable of in[g * 4 + j], skipping odd j, through a register. */
static void
test_loops (void)
{
  Script s;
  float in[12], out[3];
  for (int i = 0; i < 12; i++)
    in[i] = (float) (i + 1);
  script_init (&s);
  s.linear.grid[0] = 3;
  s.linear.n_variables = 1;
  guint32 p0 = emit_param (&s, TINY_DTYPE_F32, 3), p1 = emit_param (&s, TINY_DTYPE_F32, 12);
  guint32 grid = emit_arg (&s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
  guint32 bound = emit_arg (&s, TINY_INSTR_VARIABLE, TINY_DTYPE_I32, 0);
  guint32 acc = emit_arg (&s, TINY_INSTR_REGISTER, TINY_DTYPE_F32, 0);
  emit (&s, STORE, VOID, 1, acc, emit_float (&s, TINY_DTYPE_F32, 0.5));
  guint32 four = emit_int (&s, TINY_DTYPE_I32, 4), one = emit_int (&s, TINY_DTYPE_I32, 1);
  guint32 base = emit (&s, MUL, I32, 1, grid, four);
  guint32 range = emit (&s, RANGE, I32, 1, bound);
  guint32 even = emit (&s, CMPLT, BOOL, 1, emit (&s, AND, I32, 1, range, one), one);
  guint32 block = emit (&s, IF, VOID, 1, even);
  guint32 value = emit (&s, LOAD, F32, 1, p1, emit (&s, ADD, I32, 1, base, range));
  emit (&s, STORE, VOID, 1, acc, emit (&s, ADD, F32, 1, emit (&s, LOAD, F32, 1, acc), value));
  emit (&s, ENDIF, VOID, 1, block);
  emit (&s, END, VOID, 1, range);
  emit (&s, STORE, VOID, 1, p0, grid, emit (&s, LOAD, F32, 1, acc));
  void *data[] = { out, in };
  gsize sizes[] = { sizeof out, sizeof in };
  g_assert_cmpint (rig_run (&rig, &s, data, sizes, (gint64[]){ 4 }), ==, 0);
  g_assert_cmpfloat (out[0], ==, 4.5f);
  g_assert_cmpfloat (out[1], ==, 12.5f);
  g_assert_cmpfloat (out[2], ==, 20.5f);
  /* No turn at all, and a bound that is negative. */
  g_assert_cmpint (rig_run (&rig, &s, data, sizes, (gint64[]){ 0 }), ==, 0);
  g_assert_cmpfloat (out[2], ==, 0.5f);
  g_assert_cmpint (rig_run (&rig, &s, data, sizes, (gint64[]){ -3 }), ==, 0);
  g_assert_cmpfloat (out[2], ==, 0.5f);
  /* Past the end: told with instruction and index. */
  g_assert_cmpint (rig_run (&rig, &s, data, sizes, (gint64[]){ 7 }), ==, TINY_STATUS_LAUNCH);
  g_assert_nonnull (strstr (rig.error.text, "load) at index 12 is outside parameter 1 of 12"));
  g_assert_nonnull (strstr (rig.error.text, "grid (2, 0, 0)"));
}

/* Four lanes of which the last two are outside: a gate of lanes makes that legal. */
static void
test_gates (void)
{
  for (int is_gated = 0; is_gated < 2; is_gated++) {
    Script s;
    gint32 in[2] = { 10, 20 }, out[4] = { 1, 2, 3, 4 };
    guint32 gates[4], other[4];
    script_init (&s);
    guint32 p0 = emit_param (&s, TINY_DTYPE_I32, 4), p1 = emit_param (&s, TINY_DTYPE_I32, 2);
    guint32 zero = emit_int (&s, TINY_DTYPE_I64, 0);
    for (guint i = 0; i < 4; i++) {
      gates[i] = emit_int (&s, TINY_DTYPE_BOOL, i < 2);
      other[i] = emit_int (&s, TINY_DTYPE_I32, -(int) i);
    }
    guint32 gate = emit_n (&s, TINY_INSTR_VECTOR, TINY_DTYPE_BOOL, 4, 0, 4, gates);
    guint32 alternative = emit_n (&s, TINY_INSTR_VECTOR, TINY_DTYPE_I32, 4, 0, 4, other);
    guint32 value = is_gated ? emit (&s, LOAD, I32, 4, p1, zero, gate, alternative)
                             : emit (&s, LOAD, I32, 4, p1, zero);
    guint32 swapped = emit_n (&s, TINY_INSTR_VECTOR, TINY_DTYPE_BOOL, 4, 0, 4,
                              (guint32[]){ gates[3], gates[0], gates[0], gates[0] });
    emit (&s, STORE, VOID, 4, p0, zero, value, swapped);
    TinyStatus status = rig_run (&rig, &s, (void *[]){ out, in }, (gsize[]){ 16, 8 }, NULL);
    if (!is_gated) {
      g_assert_cmpint (status, ==, TINY_STATUS_LAUNCH);
      g_assert_nonnull (strstr (rig.error.text, "index 2 is outside parameter 1"));
      continue;
    }
    g_assert_cmpint (status, ==, TINY_STATUS_OK);
    gint32 expected[] = { 1, 20, -2, -3 };
    g_assert_cmpmem (out, sizeof out, expected, sizeof expected);
  }
}

/* A group reverses its items' numbers through local memory. Without the barrier, or with one that
 * only some items reach, that is a mistake. */
static void
test_groups (void)
{
  Script s;
  gint32 out[16];
  script_init (&s);
  s.linear.grid[1] = 2;
  s.linear.group[0] = 4;
  s.linear.group[1] = 2;
  guint32 p0 = emit_param (&s, TINY_DTYPE_I32, 16);
  guint32 x = emit_arg (&s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 0);
  guint32 y = emit_arg (&s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 1);
  guint32 grid = emit_arg (&s, TINY_INSTR_GRID, TINY_DTYPE_I32, 1);
  emit_arg (&s, TINY_INSTR_LOCAL, TINY_DTYPE_F64, 3);
  guint32 local = emit_arg (&s, TINY_INSTR_LOCAL, TINY_DTYPE_I32, 8);
  guint32 four = emit_int (&s, TINY_DTYPE_I32, 4), seven = emit_int (&s, TINY_DTYPE_I32, 7);
  guint32 eight = emit_int (&s, TINY_DTYPE_I32, 8);
  guint32 me = emit (&s, ADD, I32, 1, emit (&s, MUL, I32, 1, y, four), x);
  emit (&s, STORE, VOID, 1, local, me, me);
  emit_n (&s, TINY_INSTR_BARRIER, 0, 1, 0, 0, NULL);
  guint32 other = emit (&s, LOAD, I32, 1, local, emit (&s, SUB, I32, 1, seven, me));
  guint32 at = emit (&s, ADD, I32, 1, emit (&s, MUL, I32, 1, grid, eight), me);
  emit (&s, STORE, VOID, 1, p0, at, other);
  g_assert_cmpint (rig_run (&rig, &s, (void *[]){ out }, (gsize[]){ 64 }, NULL), ==, 0);
  for (int i = 0; i < 16; i++)
    g_assert_cmpint (out[i], ==, 7 - i % 8);

  script_init (&s);
  s.linear.group[0] = 2;
  x = emit_arg (&s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 0);
  guint32 block
      = emit (&s, IF, VOID, 1, emit (&s, CMPLT, BOOL, 1, x, emit_int (&s, TINY_DTYPE_I32, 1)));
  emit_n (&s, TINY_INSTR_BARRIER, 0, 1, 0, 0, NULL);
  emit (&s, ENDIF, VOID, 1, block);
  g_assert_cmpint (rig_run (&rig, &s, NULL, NULL, NULL), ==, TINY_STATUS_LAUNCH);
  g_assert_nonnull (strstr (rig.error.text, "not all items reach the same barrier"));

  script_init (&s);
  guint32 acc = emit_arg (&s, TINY_INSTR_REGISTER, TINY_DTYPE_F32, 0);
  emit (&s, LOAD, F32, 1, acc);
  g_assert_cmpint (rig_run (&rig, &s, NULL, NULL, NULL), ==, TINY_STATUS_LAUNCH);
  g_assert_nonnull (strstr (rig.error.text, "never written"));
}

/* ---- what is refused ---- */
static void
add_script (Script *s)
{
  script_init (s);
  guint32 p0 = emit_param (s, TINY_DTYPE_F32, 4);
  guint32 range = emit (s, RANGE, I32, 1, emit_int (s, TINY_DTYPE_I32, 4));
  guint32 value = emit (s, LOAD, F32, 1, p0, range);
  guint32 twice = emit (s, ADD, F32, 1, value, value);
  emit (s, STORE, VOID, 1, p0, range, twice);
  emit (s, END, VOID, 1, range);
}

static void
test_wrong_programs (void)
{
  /* Each row breaks one field of add_script() (param, 4, range, load, add, store, end). */
  struct {
    guint instr;
    TinyInstr set;
    const char *says;
  } rows[] = {
    { 4,
      { .op = 30, .dtype = TINY_DTYPE_F32, .lanes = 1, .n_sources = 2, .sources = 3 },
      "instruction 4 (op 30) is unknown" },
    { 4,
      { .op = 999, .dtype = TINY_DTYPE_F32, .lanes = 1, .n_sources = 2, .sources = 3 },
      "is unknown" },
    { 4,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_F32,
        .lanes = 1,
        .n_sources = 1,
        .sources = 3 },
      "wrong number of sources" },
    { 4,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_F64,
        .lanes = 1,
        .n_sources = 2,
        .sources = 3 },
      "wrong dtype for its sources" },
    { 4,
      { .op = TINY_INSTR_ADD, .dtype = 16, .lanes = 1, .n_sources = 2, .sources = 3 },
      "unknown dtype" },
    { 4,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_F32,
        .lanes = 2,
        .n_sources = 2,
        .sources = 3 },
      "other lanes" },
    { 4,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_F32,
        .lanes = 65,
        .n_sources = 2,
        .sources = 3 },
      "too many" },
    { 4,
      { .op = TINY_INSTR_AND,
        .dtype = TINY_DTYPE_F32,
        .lanes = 1,
        .n_sources = 2,
        .sources = 3 },
      "does not exist for its sources' dtype" },
    { 4,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_F32,
        .lanes = 1,
        .n_sources = 2,
        .sources = 4000 },
      "outside the list" },
    { 4,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_F32,
        .lanes = 1,
        .n_sources = 2,
        .sources = 3,
        .reserved = 1 },
      "reserved" },
    { 0,
      { .op = TINY_INSTR_PARAM, .dtype = TINY_DTYPE_F32, .lanes = 1, .arg = 1 },
      "no parameter of that dtype" },
    { 0,
      { .op = TINY_INSTR_PARAM, .dtype = TINY_DTYPE_I32, .lanes = 1 },
      "no parameter of that dtype" },
    { 6,
      { .op = TINY_INSTR_ENDIF, .lanes = 1, .n_sources = 1, .sources = 8 },
      "does not close" },
    { 6, { .op = TINY_INSTR_BARRIER, .lanes = 1 }, "is never closed" },
    { 2,
      { .op = TINY_INSTR_ADD,
        .dtype = TINY_DTYPE_I32,
        .lanes = 1,
        .n_sources = 2,
        .sources = 1 },
      "later" },
    { 4,
      { .op = TINY_INSTR_BITCAST,
        .dtype = TINY_DTYPE_F64,
        .lanes = 1,
        .n_sources = 1,
        .sources = 3 },
      "changes the size" },
  };
  Script s;
  g_autofree void *binary = NULL;
  guint64 size;
  add_script (&s);
  g_assert_cmpint (rig_compile (&rig, &s, &binary, &size), ==, TINY_STATUS_OK);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    void *unused = NULL;
    add_script (&s);
    s.instrs[rows[i].instr] = rows[i].set;
    memset (rig.error.text, 0, sizeof rig.error.text);
    g_assert_cmpint (rig_compile (&rig, &s, &unused, &size), ==, TINY_STATUS_COMPILE);
    g_test_message ("%u: %s", i, rig.error.text);
    g_assert_nonnull (strstr (rig.error.text, rows[i].says));
  }
  add_script (&s);
  guint32 late = emit (&s, NEG, F32, 1, 3);
  emit (&s, STORE, VOID, 1, 0, 1, late);
  g_assert_cmpint (rig_compile (&rig, &s, &binary, &size), ==, TINY_STATUS_COMPILE);
  g_assert_nonnull (strstr (rig.error.text, "a block that is closed"));
  add_script (&s);
  s.params[0].flags = TINY_PARAM_WRITE;
  g_assert_cmpint (rig_compile (&rig, &s, &binary, &size), ==, TINY_STATUS_COMPILE);
  g_assert_nonnull (strstr (rig.error.text, "without READ"));
}

/* FNV-1a over what follows the header's sum, so that a flip behind a right sum is seen as well. */
static void
seal (guint8 *binary, gsize size)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (gsize i = 16; i < size; i++)
    hash = (hash ^ binary[i]) * G_GUINT64_CONSTANT (0x100000001b3);
  memcpy (binary + 8, &hash, sizeof hash);
}

static void
test_damage (void)
{
  Script s;
  g_autofree void *binary = NULL;
  guint64 size;
  TinyPluginProgram *program;
  add_script (&s);
  g_assert_cmpint (rig_compile (&rig, &s, &binary, &size), ==, TINY_STATUS_OK);
  guint8 *bytes = binary;
  for (gsize bit = 0; bit < 8 * size; bit++) {
    bytes[bit / 8] ^= 1 << bit % 8;
    g_assert_cmpint (rig_load (&rig, &s, binary, size, &program), ==, TINY_STATUS_CORRUPT);
    /* With the sum made right the check has to hold by itself: refuse, or load what is sound. */
    if (bit >= 16 * 8) {
      guint64 sum;
      memcpy (&sum, bytes + 8, sizeof sum);
      seal (binary, size);
      TinyStatus status = rig_load (&rig, &s, binary, size, &program);
      if (status == TINY_STATUS_OK)
        rig.table->program_unload (rig.device, program);
      else
        g_assert_cmpint (status, ==, TINY_STATUS_CORRUPT);
      memcpy (bytes + 8, &sum, sizeof sum);
    }
    bytes[bit / 8] ^= 1 << bit % 8;
  }
  for (gsize length = 0; length < size; length++) {
    g_autofree void *part = g_memdup2 (binary, length);
    g_assert_cmpint (rig_load (&rig, &s, part, length, &program), ==, TINY_STATUS_CORRUPT);
  }
  g_assert_cmpint (rig_load (&rig, &s, binary, size, &program), ==, TINY_STATUS_OK);
  rig.table->program_unload (rig.device, program);
}

static void
test_commands (void)
{
  TinyPluginBuffer *buffer;
  char host[8] = { 0 };
  g_assert_cmpint (rig.table->alloc (rig.device, 0, &buffer, &rig.error), ==, 0);
  rig.table->free (rig.device, buffer);
  g_assert_cmpint (rig.table->alloc (rig.device, G_MAXUINT64, &buffer, &rig.error), ==,
                   TINY_STATUS_OUT_OF_MEMORY);
  g_assert_cmpint (rig.table->alloc (rig.device, 4, &buffer, &rig.error), ==, 0);
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DOWNLOAD,
                          .src = { buffer, 2, 4 },
                          .host = host };
  TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  g_assert_cmpint (rig.table->submit (rig.device, rig.queue, &submit, &rig.error), ==,
                   TINY_STATUS_INVALID);
  command.src.offset = G_MAXUINT64;
  g_assert_cmpint (rig.table->submit (rig.device, rig.queue, &submit, &rig.error), ==,
                   TINY_STATUS_INVALID);
  command.type = 99;
  g_assert_cmpint (rig.table->submit (rig.device, rig.queue, &submit, &rig.error), ==,
                   TINY_STATUS_UNSUPPORTED);
  rig.table->free (rig.device, buffer);
  TinyCandidate candidate = { .struct_size = sizeof candidate };
  guint32 n = 1;
  g_assert_cmpint (rig.module->scan (&candidate, &n, &rig.error), ==, 0);
  g_assert_cmpint (candidate.device_class, ==, TINY_CLASS_SIMULATOR);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rig_open (&rig, REF_PLUGIN, "ref");
  g_test_add_func ("/sdk-reference/ref/ops", test_ops);
  g_test_add_func ("/sdk-reference/ref/edges", test_edges);
  g_test_add_func ("/sdk-reference/ref/loops", test_loops);
  g_test_add_func ("/sdk-reference/ref/gates", test_gates);
  g_test_add_func ("/sdk-reference/ref/groups", test_groups);
  g_test_add_func ("/sdk-reference/ref/wrong-programs", test_wrong_programs);
  g_test_add_func ("/sdk-reference/ref/damage", test_damage);
  g_test_add_func ("/sdk-reference/ref/commands", test_commands);
  int status = g_test_run ();
  rig_close (&rig);
  return status;
}
