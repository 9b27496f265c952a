/* SPDX-License-Identifier: MIT
 *
 * Proves that the CLANG renderer compiles C of the kernel's form, that its errors carry clang's words,
 * and that the dialect's prelude and templates are C that clang takes. Skipped where there is no clang. */
#include "harness.h"

#include <stdlib.h>

#include "../case-fails.h"

static TinyStatus
compile (const char *source, void **data, uint64_t *size, TinyPluginError *error)
{
  *error = new_error ();
  TinyCompileArgs args = { .struct_size = sizeof args, .arch = h.target.arch, .name = "kernel",
                           .source = source, .source_size = strlen (source) };
  return h.clang->compile (&args, data, size, error);
}

static bool
is_missing (TinyStatus status, const TinyPluginError *error)
{
  if (status != TINY_STATUS_DRIVER)
    return false;
  g_assert_cmpstr (error->hint, !=, "");
  g_test_skip (error->text);
  return true;
}

static void
run_source (const char *source, Array *arrays, unsigned n, const uint32_t grid[3])
{
  TinyPluginError error;
  void *data;
  uint64_t size;
  TinyStatus status = compile (source, &data, &size, &error);
  if (is_missing (status, &error))
    return;
  if (status != TINY_STATUS_OK) {
    CASE_FAILS ("%s", error.text);
    return;
  }
  TinyProgramArgs args = { .struct_size = sizeof args, .name = "kernel", .arch = h.target.arch,
                           .data = data, .size = size, .n_params = n, .group = { 1, 1, 1 } };
  TinyPluginProgram *program;
  status = h.table->program_load (h.device, &args, &program, &error);
  if (status != TINY_STATUS_OK) {
    CASE_FAILS ("%s", error.text);
    program = NULL;
  }
  free (data);
  program_run (program, arrays, n, NULL, 0, grid);
  program_unload (program);
}

static void
test_source (void)
{
  static const char source[]
      = "void *memset (void *, int, unsigned long);\n"
        "static const double table[4] = { 0.5, 1.5, 2.5, 3.5 };\n"
        "static int counters[64];\n"
        "void tiny_kernel_kernel (void **buffers, const long long *variables, long long begin, long long end)\n"
        "{\n"
        "  double *out = buffers[0];\n"
        "  char *zeros = buffers[1];\n"
        "  memset (zeros, 0, (unsigned long) out[0]);\n"
        "  for (long long i = begin; i < end; i++)\n"
        "    out[i] = table[i & 3] * __builtin_fma (out[i], 2.0, __builtin_fmod (7.5, 2.0 + i))\n"
        "      + counters[i]++;\n"
        "}\n";
  double out[4] = { 16, 1, 2, 3 }, x[4] = { 16, 1, 2, 3 };
  char zeros[32];
  memset (zeros, 1, sizeof zeros);
  Array arrays[2] = { { out, sizeof out }, { zeros, sizeof zeros } };
  run_source (source, arrays, 2, (uint32_t[]){ 4, 1, 1 });
  if (zeros[0] == 1)
    return; /* skipped */
  static const double rest[4] = { 1.5, 1.5, 3.5, 2.5 };
  for (int i = 0; i < 4; i++)
    g_assert_cmpfloat (out[i], ==, (0.5 + i) * (x[i] * 2 + rest[i]));
  for (int i = 0; i < 32; i++)
    g_assert_cmpint (zeros[i], ==, i < 16 ? 0 : 1);
}

static void
test_errors (void)
{
  TinyPluginError error;
  void *data = NULL;
  uint64_t size;
  TinyStatus status = compile ("void tiny_kernel_kernel (void) { nonsense }\n", &data, &size, &error);
  if (is_missing (status, &error))
    return;
  g_assert_cmpint (status, ==, TINY_STATUS_COMPILE);
  g_assert_nonnull (strstr (error.text, "nonsense"));
  /* More source than a pipe holds, and a command that does not read it. */
  g_autofree char *large = g_strnfill (1 << 20, ' ');
  g_assert_cmpint (compile (large, &data, &size, &error), ==, TINY_STATUS_OK);
  free (data);
  g_setenv ("TINY_CLANG", "false", TRUE);
  g_assert_cmpint (compile (large, &data, &size, &error), ==, TINY_STATUS_COMPILE);
  g_setenv ("TINY_CLANG", "/nonexistent/clang", TRUE);
  g_assert_cmpint (compile ("", &data, &size, &error), ==, TINY_STATUS_DRIVER);
  g_assert_cmpstr (error.hint, !=, "");
  g_unsetenv ("TINY_CLANG");
}

/* An external that the loader does not have is named. */
static void
test_external (void)
{
  TinyPluginError error;
  void *data;
  uint64_t size;
  TinyStatus status = compile ("void launch_rockets (void);\nvoid tiny_kernel_kernel (void) { launch_rockets (); }\n",
                               &data, &size, &error);
  if (is_missing (status, &error))
    return;
  TinyProgramArgs args = { .struct_size = sizeof args, .name = "kernel", .arch = h.target.arch,
                           .data = data, .size = size };
  TinyPluginProgram *program;
  g_assert_cmpint (h.table->program_load (h.device, &args, &program, &error), ==,
                   TINY_STATUS_CORRUPT);
  g_assert_nonnull (strstr (error.text, "launch_rockets"));
  free (data);
}

/* ---- the dialect ---- */

/* One template with its letters replaced. */
static char *
expand (const char *template, const char *const sources[4], const char *type, const char *scalar,
        unsigned lanes)
{
  GString *out = g_string_new (NULL);
  for (const char *c = template; *c != '\0'; c++) {
    if (*c != '$') {
      g_string_append_c (out, *c);
      continue;
    }
    c++;
    if (*c >= '0' && *c <= '3')
      g_string_append (out, sources[*c - '0']);
    else if (*c == 't')
      g_string_append (out, type);
    else if (*c == 'T')
      g_string_append (out, scalar);
    else if (*c == 'n')
      g_string_append_printf (out, "%u", lanes);
  }
  return g_string_free (out, FALSE);
}

/* out = op (x, y) of 16 lanes and of 1, through the dialect's spellings, against LLVM's code. */
static void
check_op (unsigned op, unsigned dtype, unsigned lanes)
{
  const TinyDialect *d = h.clang->dialect;
  const char *scalar = d->types[dtype], *template = d->ops[op];
  if (lanes > 1 && d->vector_ops[op] != NULL)
    template = d->vector_ops[op];
  bool is_compare = op == TINY_INSTR_CMPLT || op == TINY_INSTR_CMPNE || op == TINY_INSTR_CMPEQ;
  unsigned result = is_compare ? TINY_DTYPE_BOOL : dtype;
  const char *none[4] = { "", "", "", "" };
  g_autofree char *type = lanes > 1 ? expand (d->vector_type, none, "", scalar, lanes) : g_strdup (scalar);
  g_autofree char *result_type = lanes > 1 ? expand (d->vector_type, none, "", d->types[result], lanes)
                                           : g_strdup (d->types[result]);
  const char *names[4] = { "x", "y", "y", "" };
  g_autofree char *value = expand (template, names, result_type, d->types[result], lanes);
  GString *source = g_string_new (d->prelude);
  if (lanes > 1) {
    g_autofree char *one = expand (d->vector_typedef, none, type, scalar, lanes);
    g_string_append (source, one);
    if (is_compare) {
      g_autofree char *two = expand (d->vector_typedef, none, result_type, d->types[result], lanes);
      g_string_append (source, two);
    }
  }
  const char *x_names[4] = { "a", "0", "", "" }, *y_names[4] = { "b", "0", "", "" };
  const char *out_names[4] = { "out", "0", "r", "" };
  const char *load = lanes > 1 ? d->load_vector : d->ops[TINY_INSTR_LOAD];
  const char *store = lanes > 1 ? d->store_vector : d->ops[TINY_INSTR_STORE];
  g_autofree char *x = expand (load, x_names, type, scalar, lanes);
  g_autofree char *y = expand (load, y_names, type, scalar, lanes);
  g_autofree char *s = expand (store, out_names, result_type, d->types[result], lanes);
  g_string_append_printf (source,
                          "void tiny_kernel_kernel (void **buffers, const long long *v, long long begin, long long end)\n"
                          "{ %s *out = buffers[0]; const %s *a = buffers[1], *b = buffers[2];\n"
                          "  const %s x = %s, y = %s; const %s r = %s; %s; }\n",
                          d->types[result], scalar, type, x, y, result_type, value, s);

  g_autofree Program *p = program_new ("reference");
  uint32_t out = program_param (p, result, 16, TINY_PARAM_WRITE);
  uint32_t in[2] = { program_param (p, dtype, 16, TINY_PARAM_READ), program_param (p, dtype, 16, TINY_PARAM_READ) };
  uint32_t zero = ADD (CONST, I64, 1, 0);
  uint32_t xi = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, in[0], zero, -1);
  uint32_t yi = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, in[1], zero, -1), r;
  if (op == TINY_INSTR_NEG || op == TINY_INSTR_RECIP || op == TINY_INSTR_SQRT || op == TINY_INSTR_TRUNC)
    r = add (p, op, result, lanes, 0, xi, -1);
  else if (op == TINY_INSTR_MULACC)
    r = add (p, op, result, lanes, 0, xi, yi, yi, -1);
  else
    r = add (p, op, result, lanes, 0, xi, yi, -1);
  ADD (STORE, VOID, lanes, 0, out, zero, r);

  uint8_t data[4][128] = { { 0 } };
  for (int i = 0; i < 16; i++) {
    static const int a[16] = { 1, 5, 100, 77, 3, 2, 9, 64, 11, 90, 4, 31, 8, 16, 120, 7 };
    static const int b[16] = { 1, 2, 3, 7, 3, 4, 5, 6, 2, 3, 4, 1, 7, 5, 3, 2 };
    if (dtype == TINY_DTYPE_F32) {
      ((float *) (void *) data[2])[i] = (float) a[i] / 3;
      ((float *) (void *) data[3])[i] = (float) b[i] / 7;
    } else if (dtype == TINY_DTYPE_F64) {
      ((double *) (void *) data[2])[i] = (double) a[i] / 3;
      ((double *) (void *) data[3])[i] = (double) b[i] / 7;
    } else {
      unsigned n_bytes = dtype <= TINY_DTYPE_U8 ? 1 : dtype <= TINY_DTYPE_U16 ? 2 : dtype <= TINY_DTYPE_U32 ? 4 : 8;
      memcpy (data[2] + (unsigned) i * n_bytes, &(uint64_t){ (uint64_t) a[i] }, n_bytes);
      memcpy (data[3] + (unsigned) i * n_bytes, &(uint64_t){ (uint64_t) b[i] }, n_bytes);
    }
  }
  const uint32_t grid[3] = { 1, 1, 1 };
  Array arrays[3] = { { data[0], 128 }, { data[2], 128 }, { data[3], 128 } };
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 3, NULL, 0, grid);
  program_unload (program);
  arrays[0].data = data[1];
  run_source (source->str, arrays, 3, grid);
  if (memcmp (data[0], data[1], 128) != 0)
    CASE_FAILS ("op %u dtype %u lanes %u differs from LLVM: %s", op, dtype, lanes, value);
  g_string_free (source, TRUE);
}

static void
test_dialect (void)
{
  TinyPluginError error;
  void *data;
  uint64_t size;
  TinyStatus status = compile ("", &data, &size, &error);
  if (is_missing (status, &error))
    return;
  free (data);
  static const unsigned dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_I32, TINY_DTYPE_U8, TINY_DTYPE_I64, TINY_DTYPE_F64 };
  unsigned n = 0;
  for (unsigned op = TINY_INSTR_NEG; op <= TINY_INSTR_CMPEQ; op++)
    for (unsigned k = 0; k < G_N_ELEMENTS (dtypes); k++)
      if (op != TINY_INSTR_WHERE && (h.target.ops[dtypes[k]] & TINY_INSTR_BIT (op))) {
        /* Each start of clang is 40 ms: the first two dtypes of every op, the rest now and then. */
        if (k > 1 && n++ % 4 != 0)
          continue;
        check_op (op, dtypes[k], 16);
        if (k == 0 || op == TINY_INSTR_IDIV || op == TINY_INSTR_SHR)
          check_op (op, dtypes[k], 1);
      }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/clang/source", test_source);
  g_test_add_func ("/plugins-cpu/clang/errors", test_errors);
  g_test_add_func ("/plugins-cpu/clang/external", test_external);
  g_test_add_func ("/plugins-cpu/clang/dialect", test_dialect);
  int result = g_test_run ();
  harness_close ();
  return result;
}
