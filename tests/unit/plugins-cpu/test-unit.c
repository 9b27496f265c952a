/* SPDX-License-Identifier: MIT
 *
 * Proves that matrix units are said of processors that have them and renderers that use them, that programs become
 * their instructions on any machine, and that what tiles cannot do is refused. What they compute is the conformance suite's. */
#include "harness.h"

#include <stdlib.h>

static const char with_tiles[] = "x86_64,sapphirerapids";
enum { WIDE_A = 512, WIDE_C = 256 }; /* lanes of bf16 factors and f32 sums */

static unsigned
count_units (const TinyRenderer *renderer, const char *arch)
{
  TinyTarget target = { .struct_size = sizeof target };
  TinyPluginError error = new_error ();
  unsigned n = 0;
  g_assert_cmpint (renderer->target (arch, &target, &error), ==, TINY_STATUS_OK);
  while (target.units[n].a_dtype != TINY_DTYPE_VOID)
    n++;
  return n;
}

static void
test_rows (void)
{
  TinyTarget target = { .struct_size = sizeof target };
  TinyPluginError error = new_error ();
  g_assert_cmpuint (count_units (h.llvm, with_tiles), ==, 2);
  g_assert_cmpuint (count_units (h.clang, with_tiles), ==, 0);
  g_assert_cmpuint (count_units (h.llvm, "x86_64,haswell"), ==, 0);
  g_assert_cmpuint (count_units (h.llvm, "aarch64"), ==, 0);
  g_assert_cmpuint (count_units (h.llvm, "x86_64,sapphirerapids,-avx512f"), ==, 0);
  g_assert_cmpint (h.llvm->target ("x86_64,sapphirerapids,-amx-bf16", &target, &error), ==,
                   TINY_STATUS_OK);
  g_assert_cmpuint (target.units[0].a_dtype, ==, TINY_DTYPE_I8);
  g_assert_cmpuint (target.units[1].a_dtype, ==, TINY_DTYPE_VOID);
}

/* ---- programs ---- */
typedef struct {
  Program *p;
  uint32_t out, a, zero;
} Parts;

static Parts
begin (void)
{
  Program *p = program_new ("unit");
  return (Parts){ p, program_param (p, TINY_DTYPE_F32, WIDE_C, TINY_PARAM_WRITE),
                  program_param (p, TINY_DTYPE_BF16, WIDE_A, TINY_PARAM_READ),
                  ADD (CONST, I64, 1, 0) };
}

static uint32_t
load (const Parts *self)
{
  Program *p = self->p;
  return ADD (LOAD, BF16, WIDE_A, 0, self->a, self->zero);
}

static uint32_t
none (const Parts *self)
{
  Program *p = self->p;
  return ADD (CONST, F32, WIDE_C, 0);
}

static uint32_t
product (const Parts *self, int64_t number, uint32_t a, uint32_t b, uint32_t c)
{
  Program *p = self->p;
  return ADD (UNIT, F32, WIDE_C, number, a, b, c);
}

static void
write_out (const Parts *self, uint32_t sum)
{
  Program *p = self->p;
  ADD (STORE, VOID, WIDE_C, 0, self->out, self->zero, sum);
}

/* A sum in a register along a loop: no tile is copied. */
static void
test_code (void)
{
  static const struct {
    const char *name;
    unsigned n;
  } wanted[] = { { "ldtilecfg", 1 }, { "tdpbf16ps", 1 },  { "tileloadd", 2 },
                 { "tilezero", 1 },  { "tilestored", 1 }, { "tilerelease", 1 } };
  Parts of = begin ();
  Program *p = of.p;
  uint32_t sum = ADD (REGISTER, F32, WIDE_C, 0), nothing = none (&of);
  ADD (STORE, VOID, WIDE_C, 0, sum, nothing);
  uint32_t bound = ADD (CONST, I64, 1, 9), range = ADD (RANGE, I64, 1, 0, bound);
  uint32_t a = load (&of), b = load (&of), before = ADD (LOAD, F32, WIDE_C, 0, sum);
  uint32_t after = product (&of, 0, a, b, before);
  ADD (STORE, VOID, WIDE_C, 0, sum, after);
  ADD (END, VOID, 1, 0, range);
  uint32_t result = ADD (LOAD, F32, WIDE_C, 0, sum);
  write_out (&of, result);
  char *text = program_list (p, with_tiles);
  for (unsigned i = 0; i < G_N_ELEMENTS (wanted); i++) {
    char **parts = g_strsplit (text, wanted[i].name, -1);
    if (g_strv_length (parts) != wanted[i].n + 1)
      g_test_message ("%s", text);
    g_assert_cmpuint (g_strv_length (parts), ==, wanted[i].n + 1);
    g_strfreev (parts);
  }
  free (text);
  g_free (p);
}

static void
expect_refusal (Parts *of, const char *arch, const char *reason)
{
  TinyPluginError error = new_error ();
  TinyCompileArgs args = { .struct_size = sizeof args,
                           .arch = arch,
                           .name = of->p->linear.name,
                           .linear = &of->p->linear };
  void *data = NULL;
  uint64_t size;
  g_assert_cmpint (h.llvm->compile (&args, &data, &size, &error), ==, TINY_STATUS_UNSUPPORTED);
  g_assert_nonnull (strstr (error.text, reason));
  g_assert_null (data);
  g_free (of->p);
}

static void
test_refusals (void)
{
  uint32_t all[9], a, b, c;
  Parts of = begin ();
  for (unsigned i = 0; i < G_N_ELEMENTS (all); i++)
    all[i] = load (&of);
  for (unsigned i = 0; i < G_N_ELEMENTS (all); i++) {
    c = none (&of);
    write_out (&of, product (&of, 0, all[i], all[i], c));
  }
  expect_refusal (&of, with_tiles, "tiles, 8");

  static const struct {
    const char *arch, *reason;
    int64_t number;
  } units[] = { { "x86_64,haswell", "lanes", 0 },
                { with_tiles, "no such unit", 2 },
                { with_tiles, "no such unit", -1 },
                { with_tiles, "a source is no matrix", 1 } };
  for (unsigned i = 0; i < G_N_ELEMENTS (units); i++) {
    of = begin ();
    a = load (&of);
    b = load (&of);
    c = none (&of);
    product (&of, units[i].number, a, b, c);
    expect_refusal (&of, units[i].arch, units[i].reason);
  }

  of = begin ();
  a = load (&of);
  c = none (&of);
  product (&of, 0, c, a, c);
  expect_refusal (&of, with_tiles, "a source is no matrix");

  of = begin ();
  Program *p = of.p;
  a = load (&of);
  c = none (&of);
  b = product (&of, 0, a, a, c);
  ADD (NEG, F32, WIDE_C, 0, b);
  expect_refusal (&of, with_tiles, "lanes");

  of = begin ();
  p = of.p;
  uint32_t gate = ADD (CONST, BOOL, 1, 1), other = ADD (CONST, BF16, WIDE_A, 0);
  a = ADD (LOAD, BF16, WIDE_A, 0, of.a, of.zero, gate, other);
  c = none (&of);
  product (&of, 0, a, a, c);
  expect_refusal (&of, with_tiles, "a gate");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/unit/rows", test_rows);
  g_test_add_func ("/plugins-cpu/unit/code", test_code);
  g_test_add_func ("/plugins-cpu/unit/refusals", test_refusals);
  int result = g_test_run ();
  harness_close ();
  return result;
}
