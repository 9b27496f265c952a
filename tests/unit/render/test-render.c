/* SPDX-License-Identifier: MIT
 *
 * Proves that rendered source compiles without a warning in two compilers, computes what REF computes
 * from the same linear program, reads as golden texts say, in C and where statements are not C's, and that what a
 * dialect lacks is an error that names it. */
#include <math.h>

#include <glib/gstdio.h>

#include "../sdk-reference/ref-harness.h"
#include "base/tiny-error.h"
#include "render/tiny-render.h"

static Rig rig;

/* ---- a dialect: C with GNU vectors, one call a grid point ---- */
#define COMPARE(op) "(__builtin_convertvector ($0 " op " $1, $t) & 1)"
static const TinyDialect c_dialect = {
  .struct_size = sizeof (TinyDialect),
  .prelude
  = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
    "typedef uint8_t u8;\ntypedef int8_t i8;\ntypedef uint16_t u16;\ntypedef int16_t i16;\n"
    "typedef uint32_t u32;\ntypedef int32_t i32;\ntypedef uint64_t u64;\n"
    "typedef int64_t i64;\ntypedef float f32;\ntypedef double f64;\ntypedef uint16_t f16;\n"
    "#define BITCAST(t, s, x) ((union { s from; t to; }) { .from = (x) }.to)\n\n",
  .types = { [TINY_DTYPE_BOOL] = "u8",
             [TINY_DTYPE_I8] = "i8",
             [TINY_DTYPE_U8] = "u8",
             [TINY_DTYPE_I16] = "i16",
             [TINY_DTYPE_U16] = "u16",
             [TINY_DTYPE_I32] = "i32",
             [TINY_DTYPE_U32] = "u32",
             [TINY_DTYPE_I64] = "i64",
             [TINY_DTYPE_U64] = "u64",
             [TINY_DTYPE_F16] = "f16",
             [TINY_DTYPE_F32] = "f32",
             [TINY_DTYPE_F64] = "f64" },
  .vector_type = "$Tx$n",
  .vector_typedef = "typedef $T $t __attribute__ ((vector_size ($n * sizeof ($T))));\n"
                    "typedef $T $t_at __attribute__ ((vector_size ($n * sizeof ($T)), aligned "
                    "(sizeof ($T)), may_alias));\n",
  .kernel_open = "void\n$name (void **data, const i64 *vars, const i64 *grid)\n{\n  $params;\n"
                 "  (void) grid;\n",
  .kernel_close = "}\n",
  .param_read = "const $T *const $0 = data[$a]",
  .param_write = "$T *const $0 = data[$a]",
  .param_separator = ";\n  ",
  .variable = "const i64 $0 = vars[$a]",
  .grid = "grid[$a]",
  .local_open = "$T $0[$a]",
  .ops = { [TINY_INSTR_LOAD] = "$0[$1]",
           [TINY_INSTR_STORE] = "$0[$1] = $2",
           [TINY_INSTR_CAST] = "(($t) $0)",
           [TINY_INSTR_BITCAST] = "BITCAST ($t, $s, $0)",
           [TINY_INSTR_NEG] = "(-$0)",
           [TINY_INSTR_RECIP] = "(1 / $0)",
           [TINY_INSTR_SQRT] = "sqrtf ($0)",
           [TINY_INSTR_ADD] = "($0 + $1)",
           [TINY_INSTR_SUB] = "($0 - $1)",
           [TINY_INSTR_MUL] = "($0 * $1)",
           [TINY_INSTR_IDIV] = "($0 / $1)",
           [TINY_INSTR_MAX] = "($0 > $1 ? $0 : $1)",
           [TINY_INSTR_CMPLT] = "($0 < $1)",
           [TINY_INSTR_CMPNE] = "($0 != $1)",
           [TINY_INSTR_AND] = "($0 & $1)",
           [TINY_INSTR_XOR] = "($0 ^ $1)",
           [TINY_INSTR_SHL] = "($0 << $1)",
           [TINY_INSTR_SHR] = "($0 >> $1)",
           [TINY_INSTR_WHERE] = "($0 ? $1 : $2)" },
  .vector_ops = { [TINY_INSTR_CMPLT] = COMPARE ("<"), [TINY_INSTR_CMPNE] = COMPARE ("!=") },
  .load_vector = "(*(const $t_at *) ($0 + $1))",
  .store_vector = "*($t_at *) ($0 + $1) = $2",
  .vector_literal = "($t) { $0 }",
  .extract = "$0[$a]",
  .suffix = { [TINY_DTYPE_F32] = "f", [TINY_DTYPE_U32] = "u", [TINY_DTYPE_U64] = "u" },
};

/* ---- kernels ---- */

/* out[i] = (in[i] * 2 + 0.1 < var0 ? in[i] : -1), i the grid point */
static void
build_elementwise (Script *s)
{
  script_init (s);
  s->linear.grid[0] = 4;
  s->linear.name = "elementwise";
  s->linear.n_variables = 1;
  guint32 out = emit_param (s, TINY_DTYPE_F32, 4), in = emit_param (s, TINY_DTYPE_F32, 4);
  s->params[0].flags = TINY_PARAM_WRITE;
  s->params[1].flags = TINY_PARAM_READ;
  guint32 i = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
  guint32 limit = emit (s, CAST, F32, 1, emit_arg (s, TINY_INSTR_VARIABLE, TINY_DTYPE_I32, 0));
  guint32 x = emit (s, LOAD, F32, 1, in, i);
  guint32 y = emit (s, ADD, F32, 1, emit (s, MUL, F32, 1, x, emit_float (s, TINY_DTYPE_F32, 2)),
                    emit_float (s, TINY_DTYPE_F32, 0.1f));
  guint32 gate = emit (s, CMPLT, BOOL, 1, y, limit);
  guint32 value = emit (s, WHERE, F32, 1, gate, x, emit_float (s, TINY_DTYPE_F32, -1));
  emit (s, STORE, VOID, 1, out, i, value);
}

static const char elementwise_text[]
    = "void\n"
      "elementwise (void **data, const i64 *vars, const i64 *grid)\n"
      "{\n"
      "  f32 *const data0 = data[0];\n"
      "  const f32 *const data1 = data[1];\n"
      "  const i64 var0 = vars[0];\n"
      "  (void) grid;\n"
      "  const i32 gidx0 = grid[0];\n"
      "  const f32 val0 = data1[gidx0];\n"
      "  data0[gidx0] = ((((val0 * 2.0f) + 0.1f) < ((f32) ((i32) "
      "var0))) ? val0 : (-1.0f));\n"
      "}\n";

/* out[0] = sum of in[i] over the even i < 6, where an i of 4 or more reads 100 instead; and the
 * accumulator before the last step, which a value moved too far would get wrong, in out[1]. */
static void
build_reduction (Script *s)
{
  script_init (s);
  s->linear.name = "reduction";
  guint32 out = emit_param (s, TINY_DTYPE_F32, 2), in = emit_param (s, TINY_DTYPE_F32, 4);
  s->params[1].flags = TINY_PARAM_READ;
  guint32 acc = emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_F32, 0);
  guint32 zero = emit_int (s, TINY_DTYPE_I32, 0), one = emit_int (s, TINY_DTYPE_I32, 1);
  guint32 four = emit_int (s, TINY_DTYPE_I32, 4), six = emit_int (s, TINY_DTYPE_I32, 6);
  emit (s, STORE, VOID, 1, acc, emit_float (s, TINY_DTYPE_F32, 0));
  guint32 range = emit (s, RANGE, I32, 1, six);
  guint32 even = emit (s, CMPLT, BOOL, 1, emit (s, AND, I32, 1, range, one), one);
  guint32 block = emit (s, IF, VOID, 1, even);
  guint32 gate = emit (s, CMPLT, BOOL, 1, range, four);
  guint32 value = emit (s, LOAD, F32, 1, in, range, gate, emit_float (s, TINY_DTYPE_F32, 100));
  guint32 before = emit (s, LOAD, F32, 1, acc);
  emit (s, STORE, VOID, 1, acc, emit (s, ADD, F32, 1, emit (s, LOAD, F32, 1, acc), value));
  emit (s, STORE, VOID, 1, out, one, before, even);
  emit (s, ENDIF, VOID, 1, block);
  emit (s, END, VOID, 1, range);
  emit (s, STORE, VOID, 1, out, zero, emit (s, LOAD, F32, 1, acc));
}

static const char reduction_text[]
    = "void\n"
      "reduction (void **data, const i64 *vars, const i64 *grid)\n"
      "{\n"
      "  f32 *const data0 = data[0];\n"
      "  const f32 *const data1 = data[1];\n"
      "  (void) grid;\n"
      "  f32 acc0;\n"
      "  acc0 = 0.0f;\n"
      "  for (i32 ridx0 = 0; ridx0 < 6; ridx0++) {\n"
      "    const u8 val0 = ((ridx0 & 1) < 1);\n"
      "    if (val0) {\n"
      "      const f32 val1 = acc0;\n"
      "      acc0 = (acc0 + ((ridx0 < 4) ? data1[ridx0] : 100.0f));\n"
      "      if (val0) {\n"
      "        data0[1] = val1;\n"
      "      }\n"
      "    }\n"
      "  }\n"
      "  data0[0] = acc0;\n"
      "}\n";

/* Vectors of four: masked load and store, broadcast, lanes taken out and joined. */
static void
build_vectors (Script *s)
{
  script_init (s);
  s->linear.name = "vectors";
  guint32 out = emit_param (s, TINY_DTYPE_I32, 8), in = emit_param (s, TINY_DTYPE_I32, 3);
  s->params[1].flags = TINY_PARAM_READ;
  guint32 zero = emit_int (s, TINY_DTYPE_I64, 0), four = emit_int (s, TINY_DTYPE_I64, 4);
  guint32 lanes[4];
  for (guint i = 0; i < 4; i++)
    lanes[i] = emit_int (s, TINY_DTYPE_I32, i);
  guint32 steps = emit_n (s, TINY_INSTR_VECTOR, TINY_DTYPE_I32, 4, 0, 4, lanes);
  guint32 three = emit_n (s, TINY_INSTR_VECTOR, TINY_DTYPE_I32, 4, 0, 1,
                          (guint32[]){ emit_int (s, TINY_DTYPE_I32, 3) });
  guint32 gate = emit (s, CMPLT, BOOL, 4, steps, three);
  guint32 minus = emit_n (s, TINY_INSTR_CONST, TINY_DTYPE_I32, 4, -7, 0, NULL);
  guint32 value = emit (s, LOAD, I32, 4, in, zero, gate, minus);
  guint32 sum = emit (s, ADD, I32, 4, value, steps);
  emit (s, STORE, VOID, 4, out, zero, sum, gate);
  guint32 taken[4];
  for (guint i = 0; i < 4; i++)
    taken[i] = emit_n (s, TINY_INSTR_EXTRACT, TINY_DTYPE_I32, 1, 3 - i, 1, &sum);
  guint32 turned = emit_n (s, TINY_INSTR_VECTOR, TINY_DTYPE_I32, 4, 0, 4, taken);
  emit (s, STORE, VOID, 4, out, four, turned);
}

static const char vectors_text[]
    = "typedef i32 i32x4 __attribute__ ((vector_size (4 * sizeof (i32))));\n"
      "typedef i32 i32x4_at __attribute__ ((vector_size (4 * sizeof (i32)), aligned (sizeof "
      "(i32)), may_alias));\n"
      "typedef u8 u8x4 __attribute__ ((vector_size (4 * sizeof (u8))));\n"
      "typedef u8 u8x4_at __attribute__ ((vector_size (4 * sizeof (u8)), aligned (sizeof "
      "(u8)), "
      "may_alias));\n"
      "void\n"
      "vectors (void **data, const i64 *vars, const i64 *grid)\n"
      "{\n"
      "  i32 *const data0 = data[0];\n"
      "  const i32 *const data1 = data[1];\n"
      "  (void) grid;\n"
      "  const i32x4 val0 = (i32x4) { 0, 1, 2, 3 };\n"
      "  const i32x4 val1 = (i32x4) { 3, 3, 3, 3 };\n"
      "  const u8x4 val2 = (__builtin_convertvector (val0 < val1, u8x4) & 1);\n"
      "  const i32x4 val3 = (i32x4) { (-7), (-7), (-7), (-7) };\n"
      "  const i32x4 val4 = (i32x4) { (val2[0] ? data1[(0 + 0)] : val3[0]), (val2[1] ? "
      "data1[(0 + "
      "1)] : val3[1]), (val2[2] ? data1[(0 + 2)] : val3[2]), (val2[3] ? data1[(0 + 3)] : "
      "val3[3]) "
      "};\n"
      "  const i32x4 val5 = (val4 + val0);\n"
      "  if (val2[0]) data0[(0 + 0)] = val5[0];\n"
      "  if (val2[1]) data0[(0 + 1)] = val5[1];\n"
      "  if (val2[2]) data0[(0 + 2)] = val5[2];\n"
      "  if (val2[3]) data0[(0 + 3)] = val5[3];\n"
      "  const i32x4 val6 = (i32x4) { val5[3], val5[2], val5[1], val5[0] };\n"
      "  *(i32x4_at *) (data0 + 4) = val6;\n"
      "}\n";

/* Vectors whose gate is one bool: nothing is touched where it is false. */
static void
build_gated_vectors (Script *s)
{
  script_init (s);
  s->linear.name = "gated_vectors";
  s->linear.grid[0] = 3;
  guint32 out = emit_param (s, TINY_DTYPE_I32, 8), in = emit_param (s, TINY_DTYPE_I32, 8);
  guint32 i = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I64, 0);
  guint32 at = emit (s, MUL, I64, 1, i, emit_int (s, TINY_DTYPE_I64, 4));
  guint32 inside = emit (s, CMPLT, BOOL, 1, i, emit_int (s, TINY_DTYPE_I64, 2));
  guint32 first = emit (s, CMPLT, BOOL, 1, i, emit_int (s, TINY_DTYPE_I64, 1));
  guint32 minus = emit_n (s, TINY_INSTR_CONST, TINY_DTYPE_I32, 4, -7, 0, NULL);
  guint32 value = emit (s, LOAD, I32, 4, in, at, first, minus);
  emit (s, STORE, VOID, 4, out, at, emit (s, ADD, I32, 4, value, value), inside);
}

/* Every kind of literal, through a store of each. */
static void
build_literals (Script *s)
{
  static const double floats[] = { 0,        -0.0,      0.1, 1e-45,    3.4028234663852886e38,
                                   INFINITY, -INFINITY, NAN, 16777217, 1.0 / 3,
                                   -1e-40,   5e-324,    1e22 };
  static const gint64 ints[] = { 0,    -1,    G_MININT32, G_MAXINT32, 200,
                                 -128, 65535, G_MININT64, G_MAXINT64, G_MAXUINT32 };
  script_init (s);
  s->linear.name = "literals";
  guint32 f32 = emit_param (s, TINY_DTYPE_F32, 13), f64 = emit_param (s, TINY_DTYPE_F64, 13);
  guint32 f16 = emit_param (s, TINY_DTYPE_F16, 13), i32 = emit_param (s, TINY_DTYPE_I32, 10);
  guint32 i64 = emit_param (s, TINY_DTYPE_I64, 10), u64 = emit_param (s, TINY_DTYPE_U64, 10);
  guint32 i8 = emit_param (s, TINY_DTYPE_I8, 10);
  for (guint i = 0; i < G_N_ELEMENTS (floats); i++) {
    guint32 at = emit_int (s, TINY_DTYPE_I32, i);
    emit (s, STORE, VOID, 1, f32, at, emit_float (s, TINY_DTYPE_F32, (float) floats[i]));
    emit (s, STORE, VOID, 1, f64, at, emit_float (s, TINY_DTYPE_F64, floats[i]));
    emit (s, STORE, VOID, 1, f16, at,
          emit_float (s, TINY_DTYPE_F16, i == 2 ? 0.0999755859375 : 1));
  }
  for (guint i = 0; i < G_N_ELEMENTS (ints); i++) {
    guint32 at = emit_int (s, TINY_DTYPE_I32, i);
    emit (s, STORE, VOID, 1, i32, at, emit_int (s, TINY_DTYPE_I32, (gint32) ints[i]));
    emit (s, STORE, VOID, 1, i64, at, emit_int (s, TINY_DTYPE_I64, ints[i]));
    emit (s, STORE, VOID, 1, u64, at, emit_int (s, TINY_DTYPE_U64, ints[i]));
    emit (s, STORE, VOID, 1, i8, at, emit_int (s, TINY_DTYPE_I8, (gint8) ints[i]));
  }
}

/* ---- compile, run, compare ---- */
typedef void (*KernelFunc) (void **data, const gint64 *vars, const gint64 *grid);
typedef void (*ChunkFunc) (void **data, const long long *vars, long long begin, long long end);

static void *
compile (const char *compiler, const char *flags, const char *source)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("tiny-render-XXXXXX", &error), *log = NULL;
  g_assert_no_error (error);
  g_autofree char *c = g_build_filename (dir, "kernel.c", NULL);
  g_autofree char *so = g_build_filename (dir, "kernel.so", NULL);
  g_assert_true (g_file_set_contents (c, source, -1, NULL));
  g_autofree char *command = g_strdup_printf (
      "%s -O1 -ffp-contract=off %s -shared -fPIC -o %s %s -lm", compiler, flags, so, c);
  gint status = 0;
  g_assert_true (g_spawn_command_line_sync (command, NULL, &log, &status, &error));
  if (status != 0)
    g_error ("%s: %s\n%s", compiler, log, source);
  void *library = dlopen (so, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (library);
  g_unlink (c);
  g_unlink (so);
  g_rmdir (dir);
  return library;
}

enum { MAX_BYTES = 8 * 16 };

static void
fill (guint8 data[8][MAX_BYTES], const Script *s)
{
  memset (data, 0x11, 8 * MAX_BYTES);
  for (guint i = 0; i < s->linear.n_params; i++)
    for (guint j = 0; j < s->params[i].n_elements; j++)
      if (s->params[i].dtype == TINY_DTYPE_F32)
        ((float *) data[i])[j] = 1.5f * (float) (j + 1);
      else if (s->params[i].dtype == TINY_DTYPE_I32)
        ((gint32 *) data[i])[j] = (gint32) (j + 1) * 10;
}

static void
compare_with_ref (const char *compiler,
                  const char *flags,
                  const TinyDialect *dialect,
                  gboolean is_chunk,
                  void (*build) (Script *))
{
  static const gsize sizes_of[TINY_N_DTYPES] = {
    [TINY_DTYPE_F32] = 4, [TINY_DTYPE_F64] = 8, [TINY_DTYPE_F16] = 2, [TINY_DTYPE_I32] = 4,
    [TINY_DTYPE_I64] = 8, [TINY_DTYPE_U64] = 8, [TINY_DTYPE_I8] = 1
  };
  g_autoptr (GError) error = NULL;
  g_autofree Script *s = g_new (Script, 1);
  guint8 expected[8][MAX_BYTES], found[8][MAX_BYTES];
  void *expected_at[8], *found_at[8];
  gsize sizes[8];
  gint64 variables[] = { 7 };
  build (s);
  fill (expected, s);
  fill (found, s);
  for (guint i = 0; i < s->linear.n_params; i++) {
    expected_at[i] = expected[i];
    found_at[i] = found[i];
    sizes[i] = s->params[i].n_elements * sizes_of[s->params[i].dtype];
  }
  TinyStatus status = rig_run (&rig, s, expected_at, sizes, variables);
  g_assert_cmpstr (rig.error.text, ==, "");
  g_assert_cmpint (status, ==, 0);

  g_autofree char *source = tiny_render_source (&s->linear, dialect, &error);
  g_assert_no_error (error);
  g_autofree char *entry = g_strconcat (is_chunk ? "tiny_kernel_" : "", s->linear.name, NULL);
  void *library = compile (compiler, flags, source), *symbol = dlsym (library, entry);
  g_assert_nonnull (symbol);
  if (is_chunk)
    ((ChunkFunc) symbol) (found_at, (const long long *) variables, 0, s->linear.grid[0]);
  for (gint64 x = 0; x < s->linear.grid[0] && !is_chunk; x++)
    ((KernelFunc) symbol) (found_at, variables, (gint64[]){ x, 0, 0 });
  dlclose (library);
  for (guint i = 0; i < s->linear.n_params; i++)
    g_assert_cmpmem (found[i], sizes[i], expected[i], sizes[i]);
}

static void
test_values (gconstpointer data)
{
  const char *compiler = data;
  g_autofree char *path = g_find_program_in_path (compiler);
  if (path == NULL) {
    g_test_skip ("no such compiler here");
    return;
  }
  const char *strict = "-Wall -Werror -std=gnu11";
  compare_with_ref (compiler, strict, &c_dialect, FALSE, build_elementwise);
  compare_with_ref (compiler, strict, &c_dialect, FALSE, build_reduction);
  compare_with_ref (compiler, strict, &c_dialect, FALSE, build_vectors);
  compare_with_ref (compiler, strict, &c_dialect, FALSE, build_gated_vectors);
  compare_with_ref (compiler, strict, &c_dialect, FALSE, build_literals);
}

/* The CPU backend's own dialect, which the core only knows through the plugin's table. */
static void
test_cpu_dialect (gconstpointer compiler)
{
  g_autofree char *path = g_find_program_in_path (compiler);
  void *library = dlopen (CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  TinyPluginEntry entry
      = library != NULL ? (TinyPluginEntry) dlsym (library, TINY_PLUGIN_ENTRY_SYMBOL) : NULL;
  const TinyPluginModule *module = entry != NULL ? entry (0, NULL) : NULL;
  const TinyDialect *dialect = NULL;
  for (guint i = 0; module != NULL && i < module->n_renderers; i++)
    if (strcmp (module->renderers[i].name, "CLANG") == 0)
      dialect = module->renderers[i].dialect;
  if (dialect == NULL || path == NULL) {
    g_test_skip ("no CPU backend or no clang here");
    return;
  }
  compare_with_ref (compiler, "-w", dialect, TRUE, build_elementwise);
  compare_with_ref (compiler, "-w", dialect, TRUE, build_reduction);
  compare_with_ref (compiler, "-w", dialect, TRUE, build_vectors);
  compare_with_ref (compiler, "-w", dialect, TRUE, build_gated_vectors);
  compare_with_ref (compiler, "-w", dialect, TRUE, build_literals);
  dlclose (library);
}

/* ---- text ---- */
static void
check_text (void (*build) (Script *), const TinyDialect *dialect, const char *expected)
{
  g_autoptr (GError) error = NULL;
  g_autofree Script *s = g_new (Script, 1);
  build (s);
  g_autofree char *source = tiny_render_source (&s->linear, dialect, &error);
  g_assert_no_error (error);
  g_assert_true (g_str_has_prefix (source, dialect->prelude));
  g_assert_cmpstr (source + strlen (dialect->prelude), ==, expected);
}

static void
test_golden (void)
{
  check_text (build_elementwise, &c_dialect, elementwise_text);
  check_text (build_reduction, &c_dialect, reduction_text);
  check_text (build_vectors, &c_dialect, vectors_text);
}

/* build_reduction(), with a gate that is always true. */
static void
build_statements (Script *s)
{
  build_reduction (s);
  guint32 always = emit_int (s, TINY_DTYPE_BOOL, 1), zero = emit_int (s, TINY_DTYPE_I32, 0);
  emit (s, STORE, VOID, 1, 0, zero, emit_float (s, TINY_DTYPE_F32, 2), always);
}

static const char statements_text[]
    = "$params reduction {\n"
      "  var acc0: f32;\n"
      "  acc0 = nothing;\n"
      "  for (var ridx0: i32 = 0; ridx0 < 6; ridx0++) {\n"
      "    let val0: u8 = ((ridx0 & 1) < 1);\n"
      "    if (val0) {\n"
      "      let val1: f32 = acc0;\n"
      "      acc0 = (acc0 + select(100.0f, data1[ridx0], (ridx0 < 4)));\n"
      "      if (val0) {\n"
      "        data0[1] = val1;\n"
      "      }\n"
      "    }\n"
      "  }\n"
      "  data0[0] = acc0;\n"
      "  if (true) {\n"
      "    data0[0] = 2.0f;\n"
      "  }\n"
      "}\n";

/* Memory that the items of a group share may have to be declared before the kernel; an item's own is
 * not. */
static void
build_local (Script *s)
{
  script_init (s);
  s->linear.name = "local";
  guint32 local = emit_arg (s, TINY_INSTR_LOCAL, TINY_DTYPE_F32, 4);
  guint32 zero = emit_int (s, TINY_DTYPE_I32, 0);
  emit (s, STORE, VOID, 1, local, zero, emit_float (s, TINY_DTYPE_F32, 1));
}

static void
build_shared (Script *s)
{
  build_local (s);
  s->linear.group[1] = 2;
}

static void
test_local (void)
{
  TinyDialect dialect = c_dialect;
  dialect.prelude = "";
  dialect.kernel_open = "$name {\n";
  check_text (build_shared, &dialect, "local {\n  f32 local0[4];\n  local0[0] = 1.0f;\n}\n");
  dialect.local_shared = "shared $T $0[$a]";
  check_text (build_local, &dialect, "local {\n  f32 local0[4];\n  local0[0] = 1.0f;\n}\n");
  check_text (build_shared, &dialect,
              "shared f32 local0[4];\nlocal {\n  local0[0] = 1.0f;\n}\n");
}

/* Statements spelt otherwise: types after names, choices as calls, words for truth. */
static void
test_statements (void)
{
  TinyDialect dialect = c_dialect;
  dialect.prelude = "";
  dialect.kernel_open = "$$params $name {\n";
  dialect.constant = "let $0: $t = $1";
  dialect.mutable_open = "var $0: $t";
  dialect.loop = "for (var $0: $t = 0; $0 < $1; $0++)";
  dialect.choose = "select($2, $1, $0)";
  dialect.truth[0] = "false";
  dialect.truth[1] = "true";
  dialect.zero = "nothing";
  check_text (build_statements, &dialect, statements_text);
}

static void
check_refused (const Script *s, const TinyDialect *dialect, const char *says)
{
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_render_source (&s->linear, dialect, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, says));
}

/* One item waits for nobody. */
static void
test_barrier (void)
{
  g_autofree Script *s = g_new (Script, 1);
  TinyDialect dialect = c_dialect;
  dialect.barrier = "wait ()";
  for (guint32 n = 1; n <= 2; n++) {
    g_autoptr (GError) error = NULL;
    script_init (s);
    s->linear.group[1] = n;
    emit_n (s, TINY_INSTR_BARRIER, 0, 1, 0, 0, NULL);
    g_autofree char *text = tiny_render_source (&s->linear, &dialect, &error);
    g_assert_no_error (error);
    g_assert_cmpint (strstr (text, "wait ();") != NULL, ==, n == 2);
  }
}

static void
test_refused (void)
{
  g_autofree Script *s = g_new (Script, 1);
  script_init (s);
  guint32 out = emit_param (s, TINY_DTYPE_F32, 4);
  guint32 sine = emit (s, SIN, F32, 1, emit_float (s, TINY_DTYPE_F32, 1));
  emit (s, STORE, VOID, 1, out, emit_int (s, TINY_DTYPE_I32, 0), sine);
  check_refused (s, &c_dialect, "no spelling for sin of f32");

  script_init (s);
  emit_param (s, TINY_DTYPE_F8E4M3, 4);
  check_refused (s, &c_dialect, "f8e4m3");

  script_init (s);
  emit_n (s, TINY_INSTR_BARRIER, 0, 1, 0, 0, NULL);
  check_refused (s, &c_dialect, "barrier");

  TinyDialect scalar = c_dialect;
  scalar.vector_type = NULL;
  build_vectors (s);
  check_refused (s, &scalar, "vectors");
  scalar.kernel_open = NULL;
  check_refused (s, &scalar, "begins");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rig_open (&rig, REF_PLUGIN, "ref");
  g_test_add_func ("/render/render/golden", test_golden);
  g_test_add_func ("/render/render/statements", test_statements);
  g_test_add_func ("/render/render/local", test_local);
  g_test_add_func ("/render/render/barrier", test_barrier);
  g_test_add_func ("/render/render/refused", test_refused);
  g_test_add_data_func ("/render/render/values-gcc", "gcc", test_values);
  g_test_add_data_func ("/render/render/values-clang", "clang", test_values);
  g_test_add_data_func ("/render/render/cpu-dialect", "clang", test_cpu_dialect);
  int status = g_test_run ();
  rig_close (&rig);
  return status;
}
