/* SPDX-License-Identifier: MIT
 *
 * test-verify-linear.c: a legal linear program, and each way to break it. */
#include "check-linear.h"

/* out[i] = sum over k of in[i * 64 + k], in a form that is easy to damage. */
enum {
  OUT,
  IN,
  SIXTEEN,
  SIXTY_FOUR,
  ZERO,
  I,
  ACC,
  CLEAR,
  K,
  ROW,
  AT,
  LOAD,
  OLD,
  SUM,
  KEEP,
  END_K,
  TOTAL,
  WRITE,
  END_I,
  N_INSTRS
};

typedef struct {
  TinyLinear linear;
  TinyTarget target;
  TinyInstr instrs[N_INSTRS];
  guint32 sources[64];
  TinyParam params[2];
} Program;

static void
add (Program *self,
     guint at,
     guint op,
     TinyDType dtype,
     gint64 arg,
     guint n,
     guint a,
     guint b,
     guint c)
{
  const guint32 sources[] = { a, b, c };
  self->instrs[at] = (TinyInstr){ .op = (guint16) op,
                                  .dtype = (guint8) dtype,
                                  .lanes = 1,
                                  .n_sources = (guint16) n,
                                  .sources = self->linear.n_sources,
                                  .arg = arg };
  for (guint i = 0; i < n; i++)
    self->sources[self->linear.n_sources++] = sources[i];
}

static void
build (Program *self)
{
  memset (self, 0, sizeof *self);
  self->params[0] = (TinyParam){ TINY_DTYPE_F32, TINY_PARAM_WRITE, 16 };
  self->params[1] = (TinyParam){ TINY_DTYPE_F32, TINY_PARAM_READ, 1024 };
  add (self, OUT, TINY_INSTR_PARAM, TINY_DTYPE_F32, 0, 0, 0, 0, 0);
  add (self, IN, TINY_INSTR_PARAM, TINY_DTYPE_F32, 1, 0, 0, 0, 0);
  add (self, SIXTEEN, TINY_INSTR_CONST, TINY_DTYPE_I32, 16, 0, 0, 0, 0);
  add (self, SIXTY_FOUR, TINY_INSTR_CONST, TINY_DTYPE_I32, 64, 0, 0, 0, 0);
  add (self, ZERO, TINY_INSTR_CONST, TINY_DTYPE_F32, 0, 0, 0, 0, 0);
  add (self, I, TINY_INSTR_RANGE, TINY_DTYPE_I32, 0, 1, SIXTEEN, 0, 0);
  add (self, ACC, TINY_INSTR_REGISTER, TINY_DTYPE_F32, 0, 0, 0, 0, 0);
  add (self, CLEAR, TINY_INSTR_STORE, TINY_DTYPE_VOID, 0, 2, ACC, ZERO, 0);
  add (self, K, TINY_INSTR_RANGE, TINY_DTYPE_I32, 1, 1, SIXTY_FOUR, 0, 0);
  add (self, ROW, TINY_INSTR_MUL, TINY_DTYPE_I32, 0, 2, I, SIXTY_FOUR, 0);
  add (self, AT, TINY_INSTR_ADD, TINY_DTYPE_I32, 0, 2, ROW, K, 0);
  add (self, LOAD, TINY_INSTR_LOAD, TINY_DTYPE_F32, 0, 2, IN, AT, 0);
  add (self, OLD, TINY_INSTR_LOAD, TINY_DTYPE_F32, 0, 1, ACC, 0, 0);
  add (self, SUM, TINY_INSTR_ADD, TINY_DTYPE_F32, 0, 2, OLD, LOAD, 0);
  add (self, KEEP, TINY_INSTR_STORE, TINY_DTYPE_VOID, 0, 2, ACC, SUM, 0);
  add (self, END_K, TINY_INSTR_END, TINY_DTYPE_VOID, 0, 1, K, 0, 0);
  add (self, TOTAL, TINY_INSTR_LOAD, TINY_DTYPE_F32, 0, 1, ACC, 0, 0);
  add (self, WRITE, TINY_INSTR_STORE, TINY_DTYPE_VOID, 0, 3, OUT, I, TOTAL);
  add (self, END_I, TINY_INSTR_END, TINY_DTYPE_VOID, 0, 1, I, 0, 0);
  self->linear = (TinyLinear){ .struct_size = sizeof (TinyLinear),
                               .name = "row_sum",
                               .instrs = self->instrs,
                               .sources = self->sources,
                               .params = self->params,
                               .n_instrs = N_INSTRS,
                               .n_sources = self->linear.n_sources,
                               .n_params = 2,
                               .grid = { 1, 1, 1 },
                               .group = { 1, 1, 1 } };
  self->target.max_lanes = 8;
  self->target.dtypes_storage
      = TINY_DTYPE_BIT (TINY_DTYPE_F32) | TINY_DTYPE_BIT (TINY_DTYPE_I32);
  self->target.ops[TINY_DTYPE_F32] = TINY_INSTR_BIT (TINY_INSTR_ADD);
  self->target.ops[TINY_DTYPE_I32]
      = TINY_INSTR_BIT (TINY_INSTR_ADD) | TINY_INSTR_BIT (TINY_INSTR_MUL);
}

static guint32 *
source (Program *self, guint at, guint i)
{
  return &self->sources[self->instrs[at].sources + i];
}

static void
test_breaks (void)
{
  Program p;
  BREAK (NULL, (void) 0);
  BREAK ("is no instruction", p.instrs[ROW].op = 63);
  BREAK ("is no instruction", p.instrs[ROW].op = 0);
  BREAK ("is no dtype", p.instrs[ROW].dtype = TINY_DTYPE_INDEX);
  BREAK ("is no dtype", p.instrs[ROW].dtype = 200);
  BREAK ("reserved", p.instrs[ROW].reserved = 1);
  BREAK ("reserved", p.instrs[ROW].reserved2 = 1);
  BREAK ("not in the list", p.instrs[ROW].sources = 1000);
  BREAK ("not in the list", p.instrs[END_I].n_sources = G_MAXUINT16);
  BREAK ("comes later", *source (&p, ROW, 0) = AT);
  BREAK ("comes later", *source (&p, ROW, 0) = G_MAXUINT32);
  BREAK ("wants 2 sources", p.instrs[ROW].n_sources = 1);
  BREAK ("should be i32, is f32", *source (&p, ROW, 1) = ZERO);
  BREAK ("0 lanes", p.instrs[ROW].lanes = 0);
  BREAK ("should have 4 lanes", p.instrs[ROW].lanes = 4);
  BREAK ("closed loop", *source (&p, WRITE, 1) = K);
  BREAK ("closed loop", *source (&p, WRITE, 2) = SUM);
  BREAK ("innermost", *source (&p, END_K, 0) = I);
  BREAK ("never closed", p.linear.n_instrs = END_I);
  BREAK ("closes range", *source (&p, END_K, 0) = SUM);
  BREAK ("parameter 2 of 2", p.instrs[IN].arg = 2);
  BREAK ("parameter -1 of 2", p.instrs[IN].arg = -1);
  BREAK ("another dtype", p.params[1].dtype = TINY_DTYPE_I32);
  BREAK ("not declared as read", p.params[1].flags = TINY_PARAM_WRITE);
  BREAK ("not declared as written", p.params[0].flags = TINY_PARAM_READ);
  BREAK ("parameter 0 has no dtype", p.params[0].dtype = 99);
  BREAK ("only a register", p.instrs[LOAD].n_sources = 1);
}

static void
test_more_breaks (void)
{
  Program p;
  BREAK ("its bits are not those", p.instrs[SIXTEEN].arg = G_GINT64_CONSTANT (1) << 40);
  BREAK ("variable 0 of 0", p.instrs[SIXTEEN].op = TINY_INSTR_VARIABLE;
         p.instrs[SIXTEEN].arg = 0);
  BREAK ("axis 3", p.instrs[SIXTEEN].op = TINY_INSTR_GRID; p.instrs[SIXTEEN].arg = 3);
  BREAK ("does not declare it for i32",
         p.target.ops[TINY_DTYPE_I32] = TINY_INSTR_BIT (TINY_INSTR_ADD));
  BREAK ("does not declare it for f32", p.target.ops[TINY_DTYPE_F32] = 0);
  BREAK ("9 lanes, the target has 8", p.instrs[ZERO].lanes = 9);
  BREAK ("no C identifier", p.linear.name = "row-sum");
  BREAK ("no C identifier", p.linear.name = NULL);
  BREAK ("struct_size", p.linear.struct_size = 8);
  BREAK ("a list is missing", p.linear.sources = NULL);
  BREAK ("at least 1", p.linear.grid[2] = 0);
}

/* Random bytes over a legal program: an answer, whatever they are. */
static void
test_fuzz (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  guint n_refused = 0;
  for (guint i = 0; i < 20000; i++) {
    Program p;
    build (&p);
    for (guint j = 0; j < 3; j++) {
      guint8 *byte = g_rand_boolean (rand)
                         ? (guint8 *) p.instrs + g_rand_int_range (rand, 0, sizeof p.instrs)
                         : (guint8 *) p.sources + g_rand_int_range (rand, 0, 4 * 30);
      *byte = (guint8) g_rand_int_range (rand, 0, g_rand_boolean (rand) ? 24 : 256);
    }
    g_autoptr (GError) error = NULL;
    if (!tiny_verify_linear (&p.linear, i % 2 ? &p.target : NULL, &error)) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
      n_refused++;
    }
  }
  g_assert_cmpuint (n_refused, >, 10000);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/verify-linear/breaks", test_breaks);
  g_test_add_func ("/ir/verify-linear/more-breaks", test_more_breaks);
  g_test_add_func ("/ir/verify-linear/fuzz", test_fuzz);
  return g_test_run ();
}
