/* SPDX-License-Identifier: MIT
 *
 * Proves that architecture strings mean what they say, are canonical, and that nonsense is refused. */
#include "../../../plugins/cpu/cpu-caches.h"
#include "harness.h"

static TinyStatus
resolve (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  *out = (TinyTarget){ .struct_size = sizeof *out };
  *error = new_error ();
  return h.llvm->target (arch, out, error);
}

static void
test_native (void)
{
  TinyTarget target, again;
  TinyPluginError error;
  g_assert_cmpint (resolve ("", &target, &error), ==, TINY_STATUS_OK);
  g_assert_cmpint (resolve (target.arch, &again, &error), ==, TINY_STATUS_OK);
  g_assert_cmpmem (&target, sizeof target, &again, sizeof again);
  g_assert_cmpuint (target.max_lanes, ==, 64);
  g_assert_cmpuint (target.n_threads, >=, 1);
  g_assert_true (target.flags & TINY_TARGET_MASKED);
  g_test_message ("%s, %u bits, %u threads, caches %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
                  " %" G_GUINT64_FORMAT,
                  target.arch, target.vector_bits, target.n_threads, target.cache_bytes[0],
                  target.cache_bytes[1], target.cache_bytes[2]);
}

/* Whatever a machine reports of its caches, decisions see sizes that processors have, each level larger than the one
 * before. */
static void
test_caches (void)
{
  enum { KIB = 1 << 10, MIB = 1 << 20 };
  static const guint64 reports[]
      = { 0, 1, 16 * KIB, 480 * (guint64) MIB, 1024 * (guint64) MIB, G_MAXUINT64 };
  static const guint64 real[][3]
      = { { 32 * KIB, 512 * KIB, 32 * MIB }, { 48 * KIB, 2 * MIB, 105 * MIB } };
  TinyTarget target;
  TinyPluginError error;
  for (guint i = 0; i < G_N_ELEMENTS (reports); i++)
    for (guint k = 0; k < G_N_ELEMENTS (reports); k++) {
      const guint64 near = cpu_cache_believe (1, reports[i]),
                    second = cpu_cache_believe (2, reports[k]);
      g_assert_cmpuint (near, >=, 24 * KIB);
      g_assert_cmpuint (near, <, second);
      g_assert_cmpuint (second, <=, cpu_cache_believe (3, reports[i]));
      g_assert_cmpuint (cpu_cache_believe (3, reports[i]), <=, 128 * MIB);
    }
  g_assert_cmpuint (cpu_cache_believe (3, 16 * KIB), ==, cpu_cache_believe (3, 0));
  for (guint i = 0; i < G_N_ELEMENTS (real); i++)
    for (gint level = 1; level <= 3; level++)
      g_assert_cmpuint (cpu_cache_believe (level, real[i][level - 1]), ==, real[i][level - 1]);
  g_assert_cmpint (resolve ("", &target, &error), ==, TINY_STATUS_OK);
  for (gint level = 1; level <= 3; level++)
    g_assert_cmpuint (target.cache_bytes[level - 1], ==,
                      cpu_cache_believe (level, target.cache_bytes[level - 1]));
}

/* TINY_CPU_CACHES takes the place of the machine's report, within the same ranges. */
static void
test_given_caches (void)
{
  static const guint64 wanted[] = { 32 << 10, 1536 << 10, 128 << 20 };
  TinyTarget target;
  TinyPluginError error;
  if (g_test_subprocess ()) {
    g_assert_cmpint (resolve ("", &target, &error), ==, TINY_STATUS_OK);
    for (guint i = 0; i < G_N_ELEMENTS (wanted); i++)
      g_assert_cmpuint (target.cache_bytes[i], ==, wanted[i]);
    return;
  }
  g_setenv ("TINY_CPU_CACHES", "4096,1536K,480M", TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_unsetenv ("TINY_CPU_CACHES");
  g_test_trap_assert_passed ();
}

static void
test_names (void)
{
  static const struct {
    const char *text, *canonical;
    unsigned vector_bits, n_registers;
  } cases[] = {
    { "x86_64", "x86_64", 128, 16 },
    { "amd64", "x86_64", 128, 16 },
    { "x86_64,avx2", "x86_64,sse3,ssse3,sse4.1,sse4.2,avx,avx2", 256, 16 },
    { "x86_64,+avx2,-avx", "x86_64,sse3,ssse3,sse4.1,sse4.2", 128, 16 },
    { "x86_64,haswell,-sse4.1,-bmi,-bmi2,-lzcnt,-movbe", "x86_64,sse3,ssse3,popcnt", 128, 16 },
    { "aarch64", "aarch64", 128, 32 },
    { "arm64,neoverse-n1", "aarch64,lse,fp16,dotprod", 128, 32 },
  };
  TinyTarget target;
  TinyPluginError error;
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_assert_cmpint (resolve (cases[i].text, &target, &error), ==, TINY_STATUS_OK);
    g_assert_cmpstr (target.arch, ==, cases[i].canonical);
    g_assert_cmpuint (target.vector_bits, ==, cases[i].vector_bits);
    g_assert_cmpuint (target.n_vector_registers, ==, cases[i].n_registers);
  }
  resolve ("x86_64,skylake-avx512", &target, &error);
  g_assert_cmpuint (target.vector_bits, ==, 512);
  g_assert_cmpuint (target.n_vector_registers, ==, 32);
  resolve ("x86_64,skylake-avx512,-avx512f", &target, &error);
  g_assert_cmpuint (target.vector_bits, ==, 256);
  g_assert_true (target.ops[TINY_DTYPE_F32] & TINY_INSTR_BIT (TINY_INSTR_MULACC));
  g_assert_true (target.ops[TINY_DTYPE_F16] & TINY_INSTR_BIT (TINY_INSTR_CAST));
  resolve ("x86_64,znver2,-fma,-f16c", &target, &error);
  g_assert_false (target.ops[TINY_DTYPE_F32] & TINY_INSTR_BIT (TINY_INSTR_MULACC));
  g_assert_false (target.ops[TINY_DTYPE_F16] & TINY_INSTR_BIT (TINY_INSTR_CAST));
  /* Everything there is fits the field. */
  resolve ("x86_64,sapphirerapids", &target, &error);
  g_assert_cmpuint (strlen (target.arch), <, sizeof target.arch - 1);
}

static void
test_refusals (void)
{
  static const char *const cases[] = {
    "z80", "x86_64,pentium9", "x86_64,+avx9", "x86_64,", "x86_64,,avx", "x86_64,+", "x86_64,-",
    ",",   "x86_64,-znver2",  "aarch64,avx2", "x86_64 ", "x86_64,avx2;"
  };
  TinyTarget target;
  TinyPluginError error;
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_assert_cmpint (resolve (cases[i], &target, &error), ==, TINY_STATUS_INVALID);
    g_assert_cmpstr (error.text, !=, "");
  }
  g_autofree char *longest = g_strnfill (5000, 'x');
  g_assert_cmpint (resolve (longest, &target, &error), ==, TINY_STATUS_INVALID);
  target.struct_size = 8;
  g_assert_cmpint (h.llvm->target ("", &target, &error), ==, TINY_STATUS_INVALID);
}

static void
test_cross (void)
{
  /* Compiles for what this machine need not be, and refuses to load it. */
  static const char *const archs[]
      = { "aarch64,neoverse-n1", "x86_64", "x86_64,sapphirerapids" };
  g_autofree Program *p = program_new ("cross");
  uint32_t out = program_param (p, TINY_DTYPE_F32, 16, TINY_PARAM_WRITE);
  uint32_t zero = ADD (CONST, I64, 1, 0), x = ADD (LOAD, F32, 16, 0, out, zero);
  uint32_t y = ADD (MUL, F32, 16, 0, x, x);
  ADD (STORE, VOID, 16, 0, out, zero, y);
  for (unsigned i = 0; i < G_N_ELEMENTS (archs); i++) {
    TinyTarget target;
    TinyPluginError error;
    void *data;
    uint64_t size;
    g_assert_cmpint (resolve (archs[i], &target, &error), ==, TINY_STATUS_OK);
    TinyCompileArgs args = {
      .struct_size = sizeof args, .arch = target.arch, .name = "cross", .linear = &p->linear
    };
    TinyStatus status = h.llvm->compile (&args, &data, &size, &error);
    if (status == TINY_STATUS_UNSUPPORTED) /* an LLVM without that target */
      continue;
    g_assert_cmpint (status, ==, TINY_STATUS_OK);
    TinyProgramArgs load = { .struct_size = sizeof load,
                             .name = "cross",
                             .arch = target.arch,
                             .data = data,
                             .size = size,
                             .n_params = 1,
                             .group = { 1, 1, 1 } };
    TinyPluginProgram *program = NULL;
    status = h.table->program_load (h.device, &load, &program, &error);
#if defined(__x86_64__)
    if (i == 0) {
      g_assert_cmpint (status, ==, TINY_STATUS_UNSUPPORTED);
      /* The wrong architecture is seen in the object too. */
      load.arch = "x86_64";
      g_assert_cmpint (h.table->program_load (h.device, &load, &program, &error), ==,
                       TINY_STATUS_UNSUPPORTED);
    }
    if (i == 1)
      g_assert_cmpint (status, ==, TINY_STATUS_OK);
#endif
    if (status == TINY_STATUS_OK)
      h.table->program_unload (h.device, program);
    h.module->renderers[0].disassemble (data, size, (char **) &args.source, &error);
    g_assert_nonnull (strstr (args.source, "mul"));
    g_free ((char *) args.source);
    g_free (data);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/target/native", test_native);
  g_test_add_func ("/plugins-cpu/target/caches", test_caches);
  g_test_add_func ("/plugins-cpu/target/given-caches", test_given_caches);
  g_test_add_func ("/plugins-cpu/target/names", test_names);
  g_test_add_func ("/plugins-cpu/target/refusals", test_refusals);
  g_test_add_func ("/plugins-cpu/target/cross", test_cross);
  int result = g_test_run ();
  harness_close ();
  return result;
}
