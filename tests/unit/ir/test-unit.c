/* SPDX-License-Identifier: MIT
 *
 * test-unit.c: rows of matrix units, and programs that use one: what is right, and each way to break it. */
#include "check-linear.h"
#include "ir/tiny-unit.h"

/* Two by two by two, by one work-item. */
static const TinyUnit small = { .a_dtype = TINY_DTYPE_F32,
                                .b_dtype = TINY_DTYPE_F32,
                                .c_dtype = TINY_DTYPE_F32,
                                .m_bits = 1,
                                .n_bits = 1,
                                .k_bits = 1,
                                .a = { TINY_UNIT_K, TINY_UNIT_M },
                                .b = { TINY_UNIT_N, TINY_UNIT_K },
                                .c = { TINY_UNIT_N, TINY_UNIT_M } };

/* ---- rows ---- */
static void
check_row (const TinyUnit *unit, const char *reason)
{
  g_autofree char *why = tiny_unit_check (unit);
  if (reason == NULL)
    g_assert_cmpstr (why, ==, NULL);
  else if (why == NULL || strstr (why, reason) == NULL)
    CASE_FAILS ("%s, not %s", why, reason);
}

#define BREAK_ROW(reason, ...)                                                                 \
  do {                                                                                         \
    unit = small;                                                                              \
    __VA_ARGS__;                                                                               \
    check_row (&unit, reason);                                                                 \
  } while (0)

static void
test_rows (void)
{
  TinyUnit unit;
  BREAK_ROW (NULL, (void) 0);
  BREAK_ROW (NULL, unit.a[2] = TINY_UNIT_SAME; unit.n_thread_bits = 1);
  BREAK_ROW ("a has 0x30 2 times", unit.a[2] = TINY_UNIT_K);
  BREAK_ROW ("a has 0x30 0 times", unit.a[0] = TINY_UNIT_M | 1);
  BREAK_ROW ("b has 3 bits, and 2 of them", unit.b[2] = TINY_UNIT_M);
  BREAK_ROW ("b has 0x30 0 times", memset (unit.b, 0, sizeof unit.b));
  BREAK_ROW ("c has an element twice", unit.c[2] = TINY_UNIT_SAME);
  BREAK_ROW ("c[9] is 0x01 behind the list's end", unit.c[9] = 1);
  BREAK_ROW ("a has 2 bits, and 3 choose the work-item", unit.n_thread_bits = 3);
  BREAK_ROW ("b has 0x31 0 times", unit.k_bits = 2; unit.a[2] = TINY_UNIT_K | 1);
  BREAK_ROW ("1 << 16", unit.m_bits = 16);
  BREAK_ROW ("1 << 255", unit.n_bits = 255);
  BREAK_ROW ("no dtype", unit.b_dtype = TINY_DTYPE_BOOL);
  BREAK_ROW ("no dtype", unit.c_dtype = 200);
  BREAK_ROW ("floats and integers", unit.c_dtype = TINY_DTYPE_I32);
  BREAK_ROW ("reserved", unit.reserved0 = 1);
  BREAK_ROW ("reserved", unit.reserved[4] = 1);
  BREAK_ROW ("2 fragments, and it takes 3", unit.n_fragments = 2);
  BREAK_ROW ("a has 1 << 16 lanes", memset (unit.a + 2, TINY_UNIT_SAME, 14));
}

static void
test_lanes (void)
{
  TinyUnit unit = small;
  TinyTarget target = { .units = { small } };
  g_assert_cmpuint (tiny_unit_get_lanes (&unit, TINY_UNIT_A), ==, 4);
  unit.n_thread_bits = 1;
  g_assert_cmpuint (tiny_unit_get_lanes (&unit, TINY_UNIT_C), ==, 2);
  g_assert_cmpuint (tiny_target_count_units (&target), ==, 1);
  for (guint i = 0; i < TINY_MAX_UNITS; i++)
    target.units[i] = small;
  g_assert_cmpuint (tiny_target_count_units (&target), ==, TINY_MAX_UNITS);
  g_assert_true (tiny_target_has_fragment (&target, TINY_DTYPE_F32, 4));
  g_assert_false (tiny_target_has_fragment (&target, TINY_DTYPE_F32, 2));
  g_assert_false (tiny_target_has_fragment (&target, TINY_DTYPE_I32, 4));
}

/* ---- a program: out = in in + 0, fragments of more lanes than the target's vectors have ---- */
enum { OUT, IN, ZERO, A, B, C, HELD, SET, GET, PRODUCT, WRITE, N_INSTRS };

typedef struct {
  TinyLinear linear;
  TinyTarget target;
  TinyInstr instrs[N_INSTRS];
  guint32 sources[32];
  TinyParam params[2];
} Program;

static void
add (Program *self,
     guint at,
     guint op,
     TinyDType dtype,
     guint lanes,
     gint64 arg,
     guint n,
     const guint32 *sources)
{
  self->instrs[at] = (TinyInstr){ .op = (guint16) op,
                                  .dtype = (guint8) dtype,
                                  .lanes = (guint16) lanes,
                                  .n_sources = (guint16) n,
                                  .sources = self->linear.n_sources,
                                  .arg = arg };
  for (guint i = 0; i < n; i++)
    self->sources[self->linear.n_sources++] = sources[i];
}
#define ADD(self, at, op, dtype, lanes, arg, ...)                                              \
  add ((self), at, TINY_INSTR_##op, TINY_DTYPE_##dtype, lanes, arg,                            \
       sizeof ((guint32[]){ __VA_ARGS__ }) / sizeof (guint32), (guint32[]){ __VA_ARGS__ })

static void
build (Program *self)
{
  memset (self, 0, sizeof *self);
  self->params[0] = (TinyParam){ TINY_DTYPE_F32, TINY_PARAM_WRITE, 4 };
  self->params[1] = (TinyParam){ TINY_DTYPE_F32, TINY_PARAM_READ, 8 };
  add (self, OUT, TINY_INSTR_PARAM, TINY_DTYPE_F32, 1, 0, 0, NULL);
  add (self, IN, TINY_INSTR_PARAM, TINY_DTYPE_F32, 1, 1, 0, NULL);
  add (self, ZERO, TINY_INSTR_CONST, TINY_DTYPE_I32, 1, 0, 0, NULL);
  ADD (self, A, LOAD, F32, 4, 0, IN, ZERO);
  ADD (self, B, LOAD, F32, 4, 0, IN, ZERO);
  add (self, C, TINY_INSTR_CONST, TINY_DTYPE_F32, 4, 0, 0, NULL);
  add (self, HELD, TINY_INSTR_REGISTER, TINY_DTYPE_F32, 4, 0, 0, NULL);
  ADD (self, SET, STORE, VOID, 4, 0, HELD, C);
  ADD (self, GET, LOAD, F32, 4, 0, HELD);
  ADD (self, PRODUCT, UNIT, F32, 4, 0, A, B, GET);
  ADD (self, WRITE, STORE, VOID, 4, 0, OUT, ZERO, PRODUCT);
  self->linear = (TinyLinear){ .struct_size = sizeof (TinyLinear),
                               .name = "unit",
                               .instrs = self->instrs,
                               .sources = self->sources,
                               .params = self->params,
                               .n_instrs = N_INSTRS,
                               .n_sources = self->linear.n_sources,
                               .n_params = 2,
                               .grid = { 1, 1, 1 },
                               .group = { 1, 1, 1 } };
  self->target.max_lanes = 2;
  self->target.max_group[0] = self->target.max_group_total = 32;
  self->target.dtypes_storage
      = TINY_DTYPE_BIT (TINY_DTYPE_F32) | TINY_DTYPE_BIT (TINY_DTYPE_I32);
  self->target.ops[TINY_DTYPE_F32] = TINY_INSTR_BIT (TINY_INSTR_NEG);
  self->target.units[0] = small;
}

static void
test_programs (void)
{
  Program p;
  BREAK (NULL, (void) 0);
  BREAK (NULL, p.instrs[WRITE].lanes = 1); /* the value's */
  BREAK ("unit 1, the target has 1", p.instrs[PRODUCT].arg = 1);
  BREAK ("unit -1, the target has 1", p.instrs[PRODUCT].arg = -1);
  BREAK ("unit 0, the target has 0", memset (p.target.units, 0, sizeof p.target.units);
         p.target.max_lanes = 4);
  BREAK ("4 lanes, the target has 2", memset (p.target.units, 0, sizeof p.target.units));
  BREAK ("source 3 should have 2 lanes, has 4", p.instrs[PRODUCT].lanes = 2);
  BREAK ("source 1 should be 4 lanes of bf16, is 4 of f32",
         p.target.units[0].a_dtype = TINY_DTYPE_BF16);
  BREAK ("source 2 should be 8 lanes of f32, is 4 of f32",
         p.target.units[0].b[2] = TINY_UNIT_SAME);
  BREAK ("1 items along axis 0, and the unit takes 2 together",
         p.target.units[0].n_thread_bits = 1;
         p.target.units[0].a[2] = p.target.units[0].b[2] = p.target.units[0].c[2]
         = TINY_UNIT_SAME);
  BREAK ("source 1 has 4 lanes, the target has 2", p.instrs[GET].op = TINY_INSTR_NEG;
         p.sources[p.instrs[GET].sources] = C);
  BREAK ("source 1 has 4 lanes, the target has 2", p.instrs[GET].op = TINY_INSTR_EXTRACT;
         p.instrs[GET].lanes = 1; p.sources[p.instrs[GET].sources] = C);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/unit/rows", test_rows);
  g_test_add_func ("/ir/unit/lanes", test_lanes);
  g_test_add_func ("/ir/unit/programs", test_programs);
  return g_test_run ();
}
