/* SPDX-License-Identifier: MIT
 *
 * test-ops.c: NVIDIA's compiler takes every op of the contract for every dtype that the target declares it for, of
 * scalars and of vectors, with conversions to and from all others, for three generations. */
#include <math.h>

#include "nvidia-harness.h"

#include "ir/tiny-dtype.h"

/* Architectures, and how many of the numbers of lanes are tried on each. */
static const struct {
  const char *name;
  guint n_lanes;
} archs[] = { { "sm_75", 1 }, { "sm_80", 2 }, { "sm_90a", 4 }, { "sm_120", 2 } };
static const guint all_lanes[] = { 1, 4, 3, 16 };

/* How many operands an op has; 0: it is no op of values alone. */
static guint
count_operands (guint op)
{
  switch (op) {
  case TINY_INSTR_NEG:
  case TINY_INSTR_RECIP:
  case TINY_INSTR_SQRT:
  case TINY_INSTR_EXP2:
  case TINY_INSTR_LOG2:
  case TINY_INSTR_SIN:
  case TINY_INSTR_TRUNC:
    return 1;
  case TINY_INSTR_WHERE:
  case TINY_INSTR_MULACC:
    return 3;
  default:
    return op >= TINY_INSTR_ADD && op <= TINY_INSTR_CMPEQ ? 2 : 0;
  }
}

static gboolean
is_comparison (guint op)
{
  return op == TINY_INSTR_CMPLT || op == TINY_INSTR_CMPNE || op == TINY_INSTR_CMPEQ;
}

/* Values of one dtype and so many lanes, and where results of each dtype go. */
typedef struct {
  Program *p;
  const TinyTarget *target;
  uint32_t outputs[TINY_N_DTYPES]; /* 0: not yet; instruction 0 is a constant */
  guint dtype, lanes;
  uint32_t x, y, condition;
} Values;

static void
store (Values *self, guint dtype, uint32_t value)
{
  Program *p = self->p;
  if (self->outputs[dtype] == 0)
    self->outputs[dtype] = program_param (p, dtype, TINY_PARAM_WRITE);
  ADD (STORE, TINY_DTYPE_VOID, self->lanes, 0, self->outputs[dtype], 0, value);
}

static void
add_op (Values *self, guint op)
{
  const guint n = count_operands (op);
  const guint dtype = is_comparison (op) ? TINY_DTYPE_BOOL : self->dtype;
  const int sources[]
      = { (int) self->x, n > 1 ? (int) self->y : -1, n > 2 ? (int) self->x : -1 };
  const int first = op == TINY_INSTR_WHERE ? (int) self->condition : sources[0];
  store (self, dtype,
         program_add (self->p, op, dtype, self->lanes, 0, first, sources[1], sources[2], -1));
}

/* The @i-th constant of the dtype, with what has no literal in C. */
static gint64
get_constant (guint dtype, guint i)
{
  static const double floats[] = { 0, -0.0, 1.5, 448, -INFINITY, NAN };
  const guint bits = 8 * (guint) tiny_dtype_get_n_bytes (dtype);
  const gboolean is_signed = tiny_dtype_is_signed (dtype);
  gint64 value = i == 0 ? 0 : i == 1 || dtype == TINY_DTYPE_BOOL ? 1 : -1;
  if (tiny_dtype_is_float (dtype))
    memcpy (&value, &floats[i % G_N_ELEMENTS (floats)], sizeof value);
  else if (i > 1 && dtype != TINY_DTYPE_BOOL && is_signed)
    value = -(gint64) (G_GUINT64_CONSTANT (1) << (bits - 1));
  else if (i > 1 && dtype != TINY_DTYPE_BOOL && bits < 64)
    value = ((gint64) 1 << bits) - 1;
  return value;
}

static void
add_constants (Values *self)
{
  for (guint i = 0; i < 6; i++)
    store (self, self->dtype,
           program_add (self->p, TINY_INSTR_CONST, self->dtype, self->lanes,
                        get_constant (self->dtype, i), -1));
}

static void
add_conversions (Values *self)
{
  const uint64_t cast = TINY_INSTR_BIT (TINY_INSTR_CAST);
  const guint size = tiny_dtype_get_n_bytes (self->dtype);
  for (guint to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++) {
    const gboolean is_narrow
        = (~self->target->dtypes_compute & (TINY_DTYPE_BIT (to) | TINY_DTYPE_BIT (self->dtype)))
          != 0;
    const gboolean has_f32 = to == TINY_DTYPE_F32 || self->dtype == TINY_DTYPE_F32;
    if ((self->target->ops[self->dtype] & self->target->ops[to] & cast) != 0
        && (!is_narrow || has_f32) && to != self->dtype)
      store (self, to,
             program_add (self->p, TINY_INSTR_CAST, to, self->lanes, 0, (int) self->x, -1));
    if (tiny_dtype_get_n_bytes (to) == size && to != self->dtype)
      store (self, to,
             program_add (self->p, TINY_INSTR_BITCAST, to, self->lanes, 0, (int) self->x, -1));
  }
}

static Program *
make_program (const TinyTarget *target, guint dtype, guint lanes)
{
  Program *p = program_new (1);
  Values self = { .p = p, .target = target, .dtype = dtype, .lanes = lanes };
  const uint32_t zero = ADD (CONST, TINY_DTYPE_I32, 1, 0);
  const uint32_t in = program_param (p, dtype, TINY_PARAM_READ);
  const uint32_t gates = program_param (p, TINY_DTYPE_BOOL, TINY_PARAM_READ);
  const uint32_t at = ADD (CONST, TINY_DTYPE_I32, 1, 16);
  self.x = ADD (LOAD, dtype, lanes, 0, in, zero);
  self.condition = ADD (LOAD, TINY_DTYPE_BOOL, lanes, 0, gates, zero);
  self.y = ADD (LOAD, dtype, lanes, 0, in, at, self.condition, self.x);
  for (guint op = TINY_INSTR_NEG; op <= TINY_INSTR_CMPEQ; op++)
    if ((target->ops[dtype] & TINY_INSTR_BIT (op)) != 0 && count_operands (op) > 0)
      add_op (&self, op);
  add_constants (&self);
  add_conversions (&self);
  const uint32_t gated = program_param (p, dtype, TINY_PARAM_WRITE);
  ADD (STORE, TINY_DTYPE_VOID, lanes, 0, gated, zero, self.y, self.condition);
  return p;
}

static void
check_compiles (Program *p, const char *arch, guint lanes)
{
  g_autofree char *source = program_render (p);
  g_auto (Compiled) made = program_compile (p, arch, source);
  NvidiaKernel kernel = { 0 };
  if (made.status != TINY_STATUS_OK)
    g_error ("%s, %u lanes: %s\n%s", arch, lanes, made.error.text,
             strstr (source, "extern \"C\""));
  g_assert_cmpint (
      nvidia_cubin_read (made.data, made.size, "tiny_kernel_k", &kernel, &made.error), ==,
      TINY_STATUS_OK);
  g_assert_cmpuint (kernel.sm, ==, (guint) atoi (arch + 3));
  g_assert_cmpuint (kernel.argument_bytes, ==,
                    8 * (p->linear.n_params + p->linear.n_variables));
}

static void
test_dtype (gconstpointer data)
{
  const guint arch = GPOINTER_TO_UINT (data) / 32, dtype = GPOINTER_TO_UINT (data) % 32;
  const TinyTarget target = get_target (archs[arch].name);
  for (guint i = 0; i < archs[arch].n_lanes; i++) {
    g_autoptr (Program) p = make_program (&target, dtype, all_lanes[i]);
    check_compiles (p, target.arch, all_lanes[i]);
  }
}

/* Structure: a loop, a condition, registers, memory of a group and its barrier, a variable, both kinds of index. */
static void
test_structure (gconstpointer data)
{
  const char *arch = data;
  g_autoptr (Program) p = program_new (64);
  const guint f32 = TINY_DTYPE_F32, i32 = TINY_DTYPE_I32;
  const uint32_t out = program_param (p, f32, TINY_PARAM_READ | TINY_PARAM_WRITE);
  const uint32_t grid = ADD (GRID, TINY_DTYPE_I64, 1, 1), group = ADD (GROUP, i32, 1, 0);
  const uint32_t variable = ADD (VARIABLE, i32, 1, 0),
                 wide = ADD (VARIABLE, TINY_DTYPE_I64, 1, 1);
  const uint32_t local = ADD (LOCAL, f32, 1, 256), sum = ADD (REGISTER, f32, 4, 0);
  const uint32_t zero = ADD (CONST, f32, 4, 0);
  p->linear.n_variables = 2;
  ADD (STORE, TINY_DTYPE_VOID, 4, 0, sum, zero);
  const uint32_t four = ADD (CONST, i32, 1, 4), at = ADD (MUL, i32, 1, 0, group, four);
  ADD (STORE, TINY_DTYPE_VOID, 4, 0, local, at, zero);
  ADD (BARRIER, TINY_DTYPE_VOID, 1, 0);
  const uint32_t range = ADD (RANGE, i32, 1, 0, variable);
  const uint32_t x = ADD (LOAD, f32, 4, 0, local, at), old = ADD (LOAD, f32, 4, 0, sum);
  const uint32_t next = ADD (ADD, f32, 4, 0, x, old);
  ADD (STORE, TINY_DTYPE_VOID, 4, 0, sum, next);
  ADD (END, TINY_DTYPE_VOID, 1, 0, range);
  const uint32_t is_first = ADD (CMPLT, TINY_DTYPE_BOOL, 1, 0, grid, wide);
  ADD (IF, TINY_DTYPE_VOID, 1, 0, is_first);
  const uint32_t last = ADD (LOAD, f32, 4, 0, sum), lane = ADD (EXTRACT, f32, 1, 3, last);
  ADD (STORE, TINY_DTYPE_VOID, 1, 0, out, group, lane);
  ADD (ENDIF, TINY_DTYPE_VOID, 1, 0, is_first);
  check_compiles (p, arch, 4);
}

/* Four lanes that lie side by side are one access of 16 bytes. */
static void
test_accesses (void)
{
  g_autoptr (Program) p = program_new (1);
  const guint f32 = TINY_DTYPE_F32;
  const uint32_t in = program_param (p, f32, TINY_PARAM_READ),
                 out = program_param (p, f32, TINY_PARAM_WRITE);
  const uint32_t zero = ADD (CONST, TINY_DTYPE_I32, 1, 0);
  const uint32_t x = ADD (LOAD, f32, 4, 0, in, zero);
  ADD (STORE, TINY_DTYPE_VOID, 4, 0, out, zero, x);
  g_autofree char *source = program_render (p);
  g_auto (Compiled) vector = program_compile (p, "sm_90a", source);
  g_assert_cmpint (vector.status, ==, TINY_STATUS_OK);
  NvidiaKernel kernel;
  g_assert_cmpint (nvidia_cubin_read (vector.data, vector.size, NULL, &kernel, NULL), ==,
                   TINY_STATUS_OK);
  /* an instruction has 16 bytes: its lowest 12 bits are 0x981 for a load of global memory, 0x986 for a store */
  guint n_loads = 0, n_stores = 0;
  for (guint64 i = 0; i + 16 <= kernel.n_code; i += 16) {
    const guint8 *word = vector.data + kernel.code_at + i;
    const guint op = word[0] | (word[1] & 0x0f) << 8;
    n_loads += op == 0x981;
    n_stores += op == 0x986;
  }
  g_assert_cmpuint (n_loads, ==, 1);
  g_assert_cmpuint (n_stores, ==, 1);
}

/* A mistake in a source is an error that has the compiler's words. */
static void
test_log (void)
{
  g_autoptr (Program) p = program_new (1);
  g_auto (Compiled) made = program_compile (
      p, "sm_80", "extern \"C\" __global__ void tiny_kernel_k () { nobody (); }");
  g_assert_cmpint (made.status, ==, TINY_STATUS_COMPILE);
  g_assert_nonnull (strstr (made.error.text, "\"nobody\" is undefined"));
  g_assert_cmpint (made.error.vendor_code, !=, 0);
}

int
main (int argc, char **argv)
{
  if (!nvrtc_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (archs); i++) {
    for (guint dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++) {
      g_autofree char *path
          = g_strdup_printf ("/nvidia/ops/%s/%s", archs[i].name, tiny_dtype_to_string (dtype));
      g_test_add_data_func (path, GUINT_TO_POINTER (i * 32 + dtype), test_dtype);
    }
    g_autofree char *path = g_strdup_printf ("/nvidia/ops/%s/structure", archs[i].name);
    g_test_add_data_func (path, archs[i].name, test_structure);
  }
  g_test_add_func ("/nvidia/ops/accesses", test_accesses);
  g_test_add_func ("/nvidia/ops/log", test_log);
  return g_test_run ();
}
