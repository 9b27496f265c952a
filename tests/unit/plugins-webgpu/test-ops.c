/* SPDX-License-Identifier: MIT
 *
 * Proves that every op which the WebGPU target declares computes on a real implementation what REF
 * computes: every pair of edge values, exactly where the op is exact, else within a bound in units of
 * the last place. */
#include <math.h>

#include "../case-fails.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"
#include "webgpu-harness.h"

static Rig webgpu, ref;

enum { N_EDGES = 24, N = N_EDGES * N_EDGES };

static const float float_edges[N_EDGES]
    = { 0.0f,       -0.0f,       1.0f, -1.0f,  0.5f,    -2.75f,       3.0f,    7.0f,
        INFINITY,   -INFINITY,   NAN,  1e-38f, 3.4e38f, -3.4e38f,     65504.f, 16777216.f,
        16777215.f, -16777217.f, 0.1f, 1e-20f, 1e20f,   -123456.789f, 2.5f,    2147483520.f };
static const gint32 int_edges[N_EDGES]
    = { 0,     1,    -1,  2,          -2,         3,        7,  -7,  31,    32,
        255,   -128, 256, G_MAXINT32, G_MININT32, 0x7fffff, 10, -10, 65535, (gint32) 0xffff0000,
        46341, 100,  -99, 123456789 };

typedef struct {
  guint op, dtype, n_sources;
  gboolean gives_bool;
  double ulps; /* 0: the same bits */
} Case;

#define EXACT(op, dtype, n)                                                                    \
  {                                                                                            \
    TINY_INSTR_##op, TINY_DTYPE_##dtype, n, FALSE, 0                                           \
  }
#define COMPARE(op, dtype)                                                                     \
  {                                                                                            \
    TINY_INSTR_##op, TINY_DTYPE_##dtype, 2, TRUE, 0                                            \
  }
#define NEAR(op, dtype, n, ulps)                                                               \
  {                                                                                            \
    TINY_INSTR_##op, TINY_DTYPE_##dtype, n, FALSE, ulps                                        \
  }
static const Case cases[] = {
  EXACT (ADD, I32, 2),       EXACT (SUB, I32, 2),    EXACT (MUL, I32, 2),
  EXACT (IDIV, I32, 2),      EXACT (MOD, I32, 2),    EXACT (MAX, I32, 2),
  EXACT (AND, I32, 2),       EXACT (OR, I32, 2),     EXACT (XOR, I32, 2),
  EXACT (SHL, I32, 2),       EXACT (SHR, I32, 2),    EXACT (NEG, I32, 1),
  COMPARE (CMPLT, I32),      COMPARE (CMPNE, I32),   COMPARE (CMPEQ, I32),
  EXACT (ADD, U32, 2),       EXACT (SUB, U32, 2),    EXACT (MUL, U32, 2),
  EXACT (IDIV, U32, 2),      EXACT (MOD, U32, 2),    EXACT (MAX, U32, 2),
  EXACT (AND, U32, 2),       EXACT (OR, U32, 2),     EXACT (XOR, U32, 2),
  EXACT (SHL, U32, 2),       EXACT (SHR, U32, 2),    COMPARE (CMPLT, U32),
  COMPARE (CMPNE, U32),      COMPARE (CMPEQ, U32),   EXACT (ADD, F32, 2),
  EXACT (SUB, F32, 2),       EXACT (MUL, F32, 2),    EXACT (NEG, F32, 1),
  EXACT (TRUNC, F32, 1),     EXACT (MAX, F32, 2),    NEAR (FDIV, F32, 2, 2.5),
  NEAR (RECIP, F32, 1, 2.5), NEAR (SQRT, F32, 1, 2), COMPARE (CMPLT, F32),
  COMPARE (CMPNE, F32),      COMPARE (CMPEQ, F32),
};

static const char *
name_of (guint op)
{
  for (guint i = 0; i < TINY_N_OPS; i++)
    if (tiny_op_infos[i].instr == op && op != 0)
      return tiny_op_to_string (i);
  return "formula";
}

/* out[i] = x[i] op y[i], i the grid point; a bool as 1 or 0; shift counts below the width. */
static void
build (Script *s, const Case *test, const char *name)
{
  guint result = test->gives_bool ? TINY_DTYPE_I32 : test->dtype;
  script_init (s);
  s->linear.name = name;
  s->linear.grid[0] = N;
  guint32 out = emit_param (s, result, N), in[2], x[2];
  for (guint i = 0; i < 2; i++)
    in[i] = emit_param (s, test->dtype, N);
  guint32 at = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
  for (guint i = 0; i < 2; i++)
    x[i] = emit_n (s, TINY_INSTR_LOAD, test->dtype, 1, 0, 2, (guint32[]){ in[i], at });
  if (test->op == TINY_INSTR_SHL || test->op == TINY_INSTR_SHR)
    x[1] = emit_n (s, TINY_INSTR_AND, test->dtype, 1, 0, 2,
                   (guint32[]){ x[1], emit_int (s, test->dtype, 31) });
  guint32 value = emit_n (s, test->op, test->gives_bool ? TINY_DTYPE_BOOL : result, 1, 0,
                          test->n_sources, x);
  if (test->gives_bool)
    value = emit (s, WHERE, I32, 1, value, emit_int (s, TINY_DTYPE_I32, 1),
                  emit_int (s, TINY_DTYPE_I32, 0));
  emit (s, STORE, VOID, 1, out, at, value);
}

static void
fill (guint32 data[3][N], guint dtype)
{
  memset (data[0], 0x11, sizeof data[0]);
  for (guint i = 0; i < N; i++) {
    guint x = i / N_EDGES, y = i % N_EDGES;
    const void *edges = dtype == TINY_DTYPE_F32 ? (const void *) float_edges : int_edges;
    memcpy (&data[1][i], (const guint32 *) edges + x, 4);
    memcpy (&data[2][i], (const guint32 *) edges + y, 4);
  }
}

static float
as_float (guint32 bits)
{
  float value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static gboolean
is_near (guint32 found, guint32 expected, double ulps)
{
  float f = as_float (found), e = as_float (expected);
  if (found == expected || (isnan (f) && isnan (e)))
    return TRUE;
  /* What is subnormal may be 0. */
  if (fabsf (e) < 1.17549435e-38f && fabsf (f) <= fabsf (e))
    return TRUE;
  int exponent;
  frexpf (e, &exponent);
  return isfinite (e) && fabs ((double) f - e) <= ulps * ldexp (1, exponent - 24);
}

/* The contract leaves open: quotients by 0 and of the least by -1, and which of two equals or of a NaN and
 * a number MAX is. */
static gboolean
is_open (const Case *test, guint32 x, guint32 y, guint32 found)
{
  if (test->op == TINY_INSTR_IDIV || test->op == TINY_INSTR_MOD)
    return y == 0 || (test->dtype == TINY_DTYPE_I32 && y == G_MAXUINT32);
  if (test->op != TINY_INSTR_MAX || test->dtype != TINY_DTYPE_F32)
    return FALSE;
  float a = as_float (x), b = as_float (y);
  return a == b
         || ((isnan (a) || isnan (b))
             && (found == x || found == y || isnan (as_float (found))));
}

static void
compare (const Script *s, const Case *test)
{
  static guint32 found[3][N], expected[3][N];
  fill (found, test->dtype);
  fill (expected, test->dtype);
  gsize sizes[3] = { sizeof found[0], sizeof found[0], sizeof found[0] };
  void *found_at[3] = { found[0], found[1], found[2] };
  void *expected_at[3] = { expected[0], expected[1], expected[2] };
  if (rig_run (&ref, s, expected_at, sizes, NULL) != TINY_STATUS_OK) {
    CASE_FAILS ("%s by REF: %s", name_of (test->op), ref.error.text);
    return;
  }
  if (webgpu_run (&webgpu, s, found_at, sizes, NULL) != TINY_STATUS_OK) {
    CASE_FAILS ("%s: %s", name_of (test->op), webgpu.error.text);
    return;
  }
  gboolean is_float = test->dtype == TINY_DTYPE_F32 && !test->gives_bool;
  for (guint i = 0; i < N; i++) {
    guint32 f = found[0][i], e = expected[0][i], x = found[1][i], y = found[2][i];
    if (is_open (test, x, y, f) || (is_float ? is_near (f, e, test->ulps) : f == e))
      continue;
    CASE_FAILS ("%s (%.9g %d, %.9g %d) is %.9g %d, by REF %.9g %d", name_of (test->op),
                as_float (x), (gint32) x, as_float (y), (gint32) y, as_float (f), (gint32) f,
                as_float (e), (gint32) e);
  }
}

static void
test_op (gconstpointer data)
{
  g_autofree Script *s = g_new (Script, 1);
  build (s, data, "one_op");
  compare (s, data);
}

/* ---- what a compiler that takes floats for numbers gets wrong ---- */
typedef guint32 (*Formula) (Script *s, guint32 x, guint32 y);

static guint32
is_nan (Script *s, guint32 x, guint32 y)
{
  return emit (s, CMPNE, BOOL, 1, x, x);
}

static guint32
is_number (Script *s, guint32 x, guint32 y)
{
  return emit (s, CMPEQ, BOOL, 1, x, x);
}

static guint32
is_not_less (Script *s, guint32 x, guint32 y)
{
  return emit (s, XOR, BOOL, 1, emit (s, CMPLT, BOOL, 1, x, y),
               emit_int (s, TINY_DTYPE_BOOL, 1));
}

static guint32
is_not_less_chosen (Script *s, guint32 x, guint32 y)
{
  guint32 one = emit_int (s, TINY_DTYPE_I32, 1), zero = emit_int (s, TINY_DTYPE_I32, 0);
  guint32 less = emit (s, WHERE, I32, 1, emit (s, CMPLT, BOOL, 1, x, y), zero, one);
  return emit (s, CMPNE, BOOL, 1, less, zero);
}

static guint32
is_infinite (Script *s, guint32 x, guint32 y)
{
  return emit (s, CMPEQ, BOOL, 1, x, emit_float (s, TINY_DTYPE_F32, INFINITY));
}

static guint32
is_below_infinity (Script *s, guint32 x, guint32 y)
{
  return emit (s, CMPLT, BOOL, 1, x, emit_float (s, TINY_DTYPE_F32, INFINITY));
}

static guint32
times_zero (Script *s, guint32 x, guint32 y)
{
  return emit (s, MUL, F32, 1, x, emit_float (s, TINY_DTYPE_F32, 0));
}

static guint32
times_minus_zero (Script *s, guint32 x, guint32 y)
{
  return emit (s, MUL, F32, 1, x, emit_float (s, TINY_DTYPE_F32, -0.0));
}

static guint32
plus_infinity (Script *s, guint32 x, guint32 y)
{
  return emit (s, ADD, F32, 1, x, emit_float (s, TINY_DTYPE_F32, INFINITY));
}

static guint32
nan_where_less (Script *s, guint32 x, guint32 y)
{
  return emit (s, WHERE, F32, 1, emit (s, CMPLT, BOOL, 1, x, y),
               emit_float (s, TINY_DTYPE_F32, NAN), emit_float (s, TINY_DTYPE_F32, -INFINITY));
}

static guint32
greater_or_other (Script *s, guint32 x, guint32 y)
{
  return emit (s, WHERE, F32, 1, emit (s, CMPLT, BOOL, 1, x, y), y, x);
}

static guint32
through_bits (Script *s, guint32 x, guint32 y)
{
  guint32 bits = emit (s, BITCAST, U32, 1, x);
  bits = emit (s, AND, U32, 1, bits, emit_int (s, TINY_DTYPE_U32, 0x7fffffff));
  return emit (s, BITCAST, F32, 1, bits);
}

/* Not here: x - x, which lavapipe takes for 0 also of infinities and NaNs, as WGSL allows. */
static const struct {
  const char *name;
  Formula formula;
  gboolean gives_bool;
} formulas[] = {
  { "is-nan", is_nan, TRUE },
  { "is-number", is_number, TRUE },
  { "is-not-less", is_not_less, TRUE },
  { "is-not-less-chosen", is_not_less_chosen, TRUE },
  { "is-infinite", is_infinite, TRUE },
  { "is-below-infinity", is_below_infinity, TRUE },
  { "times-zero", times_zero, FALSE },
  { "times-minus-zero", times_minus_zero, FALSE },
  { "plus-infinity", plus_infinity, FALSE },
  { "nan-where-less", nan_where_less, FALSE },
  { "greater-or-other", greater_or_other, FALSE },
  { "through-bits", through_bits, FALSE },
};

static void
test_formula (gconstpointer data)
{
  gsize which = GPOINTER_TO_SIZE (data);
  const gboolean gives_bool = formulas[which].gives_bool;
  const Case as_case = { .op = 0, .dtype = TINY_DTYPE_F32, .gives_bool = gives_bool };
  g_autofree Script *s = g_new (Script, 1);
  script_init (s);
  s->linear.name = "formula";
  s->linear.grid[0] = N;
  guint32 out = emit_param (s, gives_bool ? TINY_DTYPE_I32 : TINY_DTYPE_F32, N);
  guint32 a = emit_param (s, TINY_DTYPE_F32, N), b = emit_param (s, TINY_DTYPE_F32, N);
  guint32 at = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
  guint32 x = emit (s, LOAD, F32, 1, a, at), y = emit (s, LOAD, F32, 1, b, at);
  guint32 value = formulas[which].formula (s, x, y);
  if (gives_bool)
    value = emit (s, WHERE, I32, 1, value, emit_int (s, TINY_DTYPE_I32, 1),
                  emit_int (s, TINY_DTYPE_I32, 0));
  emit (s, STORE, VOID, 1, out, at, value);
  compare (s, &as_case);
}

/* A kernel may be called as what the source around it has. */
static void
test_names (void)
{
  static const char *const names[]
      = { "float", "main",  "half", "kernel",   "xor_i32",    "items_x",
          "point", "group", "fn",   "point_of", "tiny_float", "data0" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const Case *test = &cases[0];
    g_autofree Script *s = g_new (Script, 1);
    build (s, test, names[i]);
    compare (s, test);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!device_is_there ())
    return 0;
  webgpu_open (&webgpu);
  rig_open (&ref, REF_PLUGIN, "ref");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path
        = g_strdup_printf ("/plugins-webgpu/ops/%s-%s", tiny_dtype_to_string (cases[i].dtype),
                           name_of (cases[i].op));
    g_test_add_data_func (path, &cases[i], test_op);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (formulas); i++) {
    g_autofree char *path = g_strconcat ("/plugins-webgpu/ops/", formulas[i].name, NULL);
    g_test_add_data_func (path, GSIZE_TO_POINTER (i), test_formula);
  }
  g_test_add_func ("/plugins-webgpu/ops/names", test_names);
  int status = g_test_run ();
  rig_close (&ref);
  rig_close (&webgpu);
  return status;
}
