/* SPDX-License-Identifier: MIT
 *
 * Proves that matrix units are said of processors that have them and renderers that use them, that programs become
 * their instructions on any machine, and that what tiles cannot do is refused. What they compute is the conformance suite's. */
#include "harness.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  if (strstr (error.text, reason) == NULL)
    g_test_message ("%s, not %s", error.text, reason);
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

/* Programs that the core would not make, and a compiler that ends by itself must not see. */
static void
test_hostile (void)
{
  enum { FAR = 1 << 30 };
  uint32_t a, c, sum;
  Parts of = begin ();
  Program *p = of.p;
  a = load (&of);
  sum = product (&of, 0, a, a, none (&of));
  ADD (EXTRACT, F32, 1, 0, sum);
  expect_refusal (&of, with_tiles, "lanes");

  of = begin ();
  p = of.p;
  a = load (&of);
  product (&of, 0, a, a, none (&of));
  uint32_t place = ADD (REGISTER, F32, WIDE_C, 0), one = ADD (CONST, F32, 1, 0);
  ADD (STORE, VOID, 1, 0, place, one);
  expect_refusal (&of, with_tiles, "width");

  of = begin ();
  p = of.p;
  c = none (&of);
  uint32_t number = ADD (CONST, BF16, 1, 0);
  a = ADD (LOAD, BF16, WIDE_A, 0, number, of.zero);
  product (&of, 0, a, a, c);
  expect_refusal (&of, with_tiles, "no memory");

  of = begin ();
  p = of.p;
  uint32_t real = ADD (CONST, F32, 1, 0);
  a = ADD (LOAD, BF16, WIDE_A, 0, of.a, real);
  product (&of, 0, a, a, none (&of));
  expect_refusal (&of, with_tiles, "no scalar integer");

  of = begin ();
  p = of.p;
  a = load (&of);
  sum = product (&of, 0, a, a, none (&of));
  write_out (&of, sum);
  p->instrs[p->linear.n_instrs - 1].sources = FAR;
  expect_refusal (&of, with_tiles, "number of sources");
}

/* Tiles are taken for the process when a program that uses them is loaded, and not by looking. */
static void
test_permission (void)
{
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  enum { PERMITTED = 0x1022, TILE_DATA = 18 }; /* ARCH_GET_XCOMP_PERM, XFEATURE_XTILEDATA */
  uint64_t may = 0;
  const unsigned n = count_units (h.llvm, h.target.arch);
  if (n == 0 || h.target.units[0].a_dtype != TINY_DTYPE_BF16
      || syscall (SYS_arch_prctl, PERMITTED, &may) != 0) {
    g_test_skip ("this processor, or its system, has no tiles for bf16");
    return;
  }
  g_assert_cmpuint (may >> TILE_DATA & 1, ==, 0);
  Parts of = begin ();
  uint32_t a = load (&of);
  write_out (&of, product (&of, 0, a, a, none (&of)));
  program_unload (program_build (of.p));
  g_assert_cmpint (syscall (SYS_arch_prctl, PERMITTED, &may), ==, 0);
  g_assert_cmpuint (may >> TILE_DATA & 1, ==, 1);
  g_free (of.p);
#else
  g_test_skip ("there are no tiles here");
#endif
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/unit/rows", test_rows);
  g_test_add_func ("/plugins-cpu/unit/code", test_code);
  g_test_add_func ("/plugins-cpu/unit/refusals", test_refusals);
  g_test_add_func ("/plugins-cpu/unit/hostile", test_hostile);
  g_test_add_func ("/plugins-cpu/unit/permission", test_permission);
  int result = g_test_run ();
  harness_close ();
  return result;
}
