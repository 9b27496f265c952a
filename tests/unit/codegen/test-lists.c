/* SPDX-License-Identifier: MIT
 *
 * test-lists.c: any list of optimisations gives an error or a right program, of bounded size, in bounded memory.
 *
 * CODEGEN_SEED and CODEGEN_COUNT choose the lists; a failure names the seed. */
#include <string.h>
#include <time.h>

#include "../../heap.h"
#include "../case-fails.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-opt-space.h"
#include "kernels.h"
#include "random-list.h"

enum {
  MAX_INSTRS = 128 * 1024,
  MAX_RUN = 4000000,    /* instructions of a program that is run, by the simplest estimate */
  MAX_HEAP = 256 << 20, /* bytes */
  N_ENDLESS = 2         /* kernels that are compiled and not run: the last ones */
};

/* ---- kernels ---- */
static TinyNode *
load (Build *b, TinyDType dtype, gint64 n, TinyNode *index)
{
  return build_load (b, build_param (b, dtype, b->n_params++, n), index, NULL);
}

static TinyNode *
store (Build *b, guint slot, TinyDType dtype, gint64 n, TinyNode *index, TinyNode *value)
{
  return build_store (b, build_param (b, dtype, slot, n), index, value, NULL);
}

static TinyNode *
build_copy (Build *b)
{
  TinyNode *i = build_range (b, 64);
  return build_sink (b, store (b, 0, TINY_DTYPE_F32, 64, i, load (b, TINY_DTYPE_F32, 64, i)));
}

static TinyNode *
build_turned (Build *b)
{
  TinyNode *i = build_range (b, 8), *j = build_range (b, 12);
  return build_sink (b, store (b, 0, TINY_DTYPE_I32, 96, INDEX (b, i, j),
                               load (b, TINY_DTYPE_I32, 96, INDEX (b, j, i))));
}

static TinyNode *
build_matmul (Build *b)
{
  TinyNode *i = build_range (b, 6), *j = build_range (b, 10), *k = build_range (b, 8);
  TinyNode *x = load (b, TINY_DTYPE_I32, 48, INDEX (b, i, k));
  TinyNode *y = load (b, TINY_DTYPE_I32, 80, INDEX (b, k, j));
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &k);
  return build_sink (b, store (b, 0, TINY_DTYPE_I32, 60, INDEX (b, i, j), sum));
}

/* The largest of a row, and the sum of what is left of each element without it. */
static TinyNode *
build_rows (Build *b)
{
  TinyNode *i = build_range (b, 5), *j = build_range (b, 12);
  TinyNode *x = load (b, TINY_DTYPE_I32, 60, INDEX (b, i, j));
  TinyNode *most = build_reduce (b, TINY_OP_MAX, x, 1, &j);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_SUB, x, most), 1, &j);
  return build_sink (b, store (b, 0, TINY_DTYPE_I32, 5, i, sum));
}

/* Each round combines the same value. */
static TinyNode *
build_repeated (Build *b)
{
  TinyNode *i = build_range (b, 4), *j = build_range (b, 64);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, load (b, TINY_DTYPE_I32, 4, i), 1, &j);
  return build_sink (b, store (b, 0, TINY_DTYPE_I32, 4, i, sum));
}

static TinyNode *
build_window (Build *b)
{
  TinyNode *i = build_range (b, 20), *k = build_range (b, 3);
  TinyNode *at
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, i, k), build_number (b, -1));
  TinyNode *in
      = build_op (b, TINY_OP_AND, build_op (b, TINY_OP_CMPLT, build_number (b, -1), at),
                  build_op (b, TINY_OP_CMPLT, at, build_number (b, 20)));
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_I32, b->n_params++, 20), at, in);
  return build_sink (
      b, store (b, 0, TINY_DTYPE_I32, 20, i, build_reduce (b, TINY_OP_ADD, x, 1, &k)));
}

/* Two stores, of which each has an axis of its own. */
static TinyNode *
build_two (Build *b)
{
  TinyNode *i = build_range (b, 6), *j = build_range (b, 16), *k = build_range (b, 9);
  b->n_params = 2;
  TinyNode *stores[] = { store (b, 0, TINY_DTYPE_F64, 96, INDEX (b, i, j),
                                load (b, TINY_DTYPE_F64, 96, INDEX (b, i, j))),
                         store (b, 1, TINY_DTYPE_F64, 54, INDEX (b, i, k),
                                load (b, TINY_DTYPE_F64, 54, INDEX (b, i, k))) };
  return tiny_node_sink (b->graph, 2, stores, "two");
}

/* Where it reads stands in memory. */
static TinyNode *
build_gather (Build *b)
{
  TinyNode *i = build_range (b, 24), *j = build_range (b, 4), *n = build_number (b, 32);
  TinyNode *row = tiny_node_cast (b->graph, load (b, TINY_DTYPE_I32, 24, i), TINY_DTYPE_INDEX);
  row = build_op (b, TINY_OP_FLOORMOD, row, n);
  TinyNode *at
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, row, build_number (b, 4)), j);
  return build_sink (
      b, store (b, 0, TINY_DTYPE_I32, 96, INDEX (b, i, j), load (b, TINY_DTYPE_I32, 128, at)));
}

static TinyNode *
build_cube (Build *b)
{
  TinyNode *i = build_range (b, 4), *j = build_range (b, 5), *k = build_range (b, 6);
  TinyNode *x = load (b, TINY_DTYPE_I64, 120, INDEX (b, k, i, j));
  return build_sink (b, store (b, 0, TINY_DTYPE_BOOL, 120, INDEX (b, i, j, k),
                               build_op (b, TINY_OP_CMPLT, x,
                                         load (b, TINY_DTYPE_I64, 120, INDEX (b, i, j, k)))));
}

static TinyNode *
build_nested (Build *b)
{
  TinyNode *i = build_range (b, 4), *j = build_range (b, 6), *k = build_range (b, 8);
  TinyNode *inner
      = build_reduce (b, TINY_OP_MAX, load (b, TINY_DTYPE_I32, 192, INDEX (b, i, j, k)), 1, &k);
  return build_sink (
      b, store (b, 0, TINY_DTYPE_I32, 4, i, build_reduce (b, TINY_OP_ADD, inner, 1, &j)));
}

/* Memory of its own, filled in each round of the first axis. */
static TinyNode *
build_local (Build *b)
{
  TinyNode *i = build_range (b, 8), *j = build_range (b, 16), *k = build_range (b, 16);
  const gint64 n = 16;
  TinyNode *memory = tiny_node_new (b->graph, TINY_OP_LOCAL, TINY_DTYPE_I32, 1, 1, &i, 0,
                                    tiny_graph_ints (b->graph, &n, 1), NULL);
  TinyNode *back = build_op (b, TINY_OP_SUB, build_number (b, 15), k);
  TinyNode *stores[]
      = { build_store (b, memory, j, load (b, TINY_DTYPE_I32, 128, INDEX (b, i, j)), NULL),
          store (b, 0, TINY_DTYPE_I32, 128, INDEX (b, i, k),
                 build_load (b, memory, back, NULL)) };
  return tiny_node_sink (b->graph, 2, stores, "local");
}

/* Axes of one round. */
static TinyNode *
build_single (Build *b)
{
  TinyNode *i = build_range (b, 1), *j = build_range (b, 3);
  TinyNode *x
      = build_reduce (b, TINY_OP_ADD, load (b, TINY_DTYPE_I32, 3, INDEX (b, i, j)), 1, &j);
  return build_sink (b, store (b, 0, TINY_DTYPE_I32, 1, i, x));
}

/* 2^25 elements along one axis, and 2^32 along three: each optimisation alone is modest. */
static TinyNode *
build_long (Build *b)
{
  TinyNode *i = build_range (b, 1 << 25);
  return build_sink (b, store (b, 0, TINY_DTYPE_F32, 1 << 25, i,
                               tiny_node_const_float (b->graph, TINY_DTYPE_F32, 1)));
}

static TinyNode *
build_wide (Build *b)
{
  TinyNode *i = build_range (b, 1024), *j = build_range (b, 1024), *k = build_range (b, 4096);
  return build_sink (b, store (b, 0, TINY_DTYPE_F32, G_GINT64_CONSTANT (1) << 32,
                               INDEX (b, i, j, k),
                               tiny_node_const_float (b->graph, TINY_DTYPE_F32, 1)));
}

static TinyNode *(*const kernels[]) (Build *b) = {
  build_copy,   build_turned, build_matmul, build_rows, build_repeated,
  build_window, build_two,    build_gather, build_cube, build_nested,
  build_local,  build_single, build_long,   build_wide,
};

/* ---- tests ---- */
/* Instructions of a launch at most, if all that is in a loop is in all of them. */
static double
estimate_run (const TinyLinear *linear)
{
  double n = linear->n_instrs, rounds = 1;
  for (guint i = 0; i < 3; i++)
    n *= linear->grid[i] * (double) linear->group[i];
  for (guint i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].op == TINY_INSTR_RANGE)
      rounds = MAX (rounds, 64);
  return n * rounds;
}

static struct {
  guint n_refused, n_run, n_large, n_most;
} tally;

/* An error, or a right program. */
static void
check_list (guint which, const TinyTarget *plain, const char *list)
{
  BUILD ();
  b->n_params = 1;
  TinyNode *sink = kernels[which](b);
  const TinyTarget target = with_room (plain, sink);
  g_autoptr (GError) error = NULL;
  guint n;
  g_autofree TinyOpt *opts = tiny_opts_from_string (list, &n, &error);
  g_assert_no_error (error);
  const gint64 before = heap_get_n_bytes ();
  heap_reset_peak ();
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, &target, opts, n, &error);
  const gint64 taken = heap_get_peak () - before;
  if (taken > MAX_HEAP)
    CASE_FAILS ("kernel %u: %" G_GINT64_FORMAT " bytes of memory, with \"%s\"", which, taken,
                list);
  if (program == NULL) {
    tally.n_refused++;
    if (!g_error_matches (error, TINY_ERROR, TINY_ERROR_INVALID)
        || strstr (error->message, "after ") != NULL)
      CASE_FAILS ("kernel %u: %s, with \"%s\"", which, error->message, list);
    return;
  }
  const guint n_instrs = program->linear.n_instrs;
  tally.n_most = MAX (tally.n_most, n_instrs);
  if (n_instrs == 0 || n_instrs > MAX_INSTRS)
    CASE_FAILS ("kernel %u: %u instructions, with \"%s\"", which, n_instrs, list);
  if (which + N_ENDLESS >= G_N_ELEMENTS (kernels)
      || estimate_run (&program->linear) > MAX_RUN) {
    tally.n_large++;
    return;
  }
  tally.n_run++;
  check_program (b, sink, &target, program);
}

static void
test_random (void)
{
  const char *seed_text = g_getenv ("CODEGEN_SEED"), *count_text = g_getenv ("CODEGEN_COUNT");
  const guint first = seed_text ? (guint) atoi (seed_text) : 1;
  const guint count = count_text ? (guint) atoi (count_text) : 4000;
  const TinyTarget targets[] = { scalar_target (), vector_target (), narrow_target (),
                                 group_target (), tiny_group_target () };
  for (guint seed = first; seed < first + count; seed++) {
    GRand *rand = g_rand_new_with_seed (seed);
    BUILD ();
    b->n_params = 1;
    const guint which = seed % G_N_ELEMENTS (kernels);
    const TinyTarget *plain = &targets[g_rand_int_range (rand, 0, G_N_ELEMENTS (targets))];
    TinyNode *sink = kernels[which](b);
    const TinyTarget target = with_room (plain, sink);
    g_autoptr (TinyOptSpace) space
        = g_rand_int_range (rand, 0, 5) > 0 ? tiny_opt_space_new (sink, &target, NULL) : NULL;
    g_autofree char *list = random_list_draw (rand, space);
    g_test_message ("seed %u, kernel %u: %s", seed, which, list);
    check_list (which, plain, list);
    g_rand_free (rand);
  }
  g_test_message ("%u refused, %u run, %u too large to run; at most %u instructions",
                  tally.n_refused, tally.n_run, tally.n_large, tally.n_most);
  g_assert_cmpuint (tally.n_run, >=, count / 4);
}

/* @n times @opt. */
static char *
repeat (const char *opt, guint n)
{
  GString *list = g_string_new (NULL);
  while (n-- > 0)
    g_string_append_printf (list, "%s ", opt);
  return g_string_free (list, FALSE);
}

/* Lists of modest optimisations that together make 2^25 copies, 2^32 of them, 2^60 rounds, or a list without end. */
static void
test_multiplied (void)
{
  enum { COPY = 0, LONG = 12, WIDE = 13 };
  static const struct {
    guint kernel;
    const char *opt;
    guint n;
    const char *why;
  } rows[] = {
    { LONG, "upcast(0,2)", 25, "too many copies" },
    { LONG, "upcast(0,64)", 4, "too many copies" },
    { WIDE, "upcast(0,32) upcast(1,32) upcast(2,64)", 2, "too many copies" },
    { WIDE, "upcast(0,32) upcast(1,32) upcast(2,32)", 2, "too many copies" },
    { WIDE, "pad(0,65536) pad(1,65536)", 1, "many times its work" },
    { COPY, "pad(0,1000000000000)", 1, "many times its work" },
    { COPY, "split(0,1)", 300, "too long" },
  };
  const TinyTarget target = vector_target ();
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    BUILD ();
    b->n_params = 1;
    g_autoptr (GError) error = NULL;
    g_autofree char *list = repeat (rows[i].opt, rows[i].n);
    g_autoptr (TinyOptSpace) space
        = tiny_opt_space_new (kernels[rows[i].kernel](b), &target, NULL);
    if (tiny_opt_space_check (space, list, &error))
      CASE_FAILS ("%u times %s fit", rows[i].n, rows[i].opt);
    else if (strstr (error->message, rows[i].why) == NULL)
      CASE_FAILS ("%u times %s: %s", rows[i].n, rows[i].opt, error->message);
    else
      check_list (rows[i].kernel, &target, list);
  }
}

/* 2^32 points are laid out on a grid of 2^31 along an axis without trying every number below. */
static void
test_grid (void)
{
  BUILD ();
  g_autoptr (GError) error = NULL;
  const TinyTarget target = vector_target ();
  const clock_t start = clock ();
  TinyOpt opts[]
      = { { TINY_OPT_GRID, 0, 0 }, { TINY_OPT_GRID, 1, 0 }, { TINY_OPT_GRID, 2, 0 } };
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, build_wide (b), &target, opts, 3, &error);
  g_assert_no_error (error);
  const guint *grid = program->linear.grid;
  g_assert_cmpuint ((guint64) grid[0] * grid[1] * grid[2], ==, G_GUINT64_CONSTANT (1) << 32);
  g_assert_cmpfloat ((double) (clock () - start) / CLOCKS_PER_SEC, <, 1);
}

/* Vectors of neighbours are no copies. */
static void
test_neighbours (void)
{
  enum { N_LOADS = 700 };
  BUILD ();
  g_autoptr (GError) error = NULL;
  const TinyTarget target = vector_target ();
  TinyNode *i = build_range (b, 1024), *sum = tiny_node_const_int (graph, TINY_DTYPE_U8, 0);
  TinyNode *x = build_param (b, TINY_DTYPE_U8, 1, 1024 + N_LOADS);
  for (gint64 k = 0; k < N_LOADS; k++) {
    TinyNode *at = build_op (b, TINY_OP_ADD, i, build_number (b, k));
    sum = build_op (b, TINY_OP_ADD, sum, build_load (b, x, at, NULL));
  }
  TinyNode *sink = build_sink (b, store (b, 0, TINY_DTYPE_U8, 1024, i, sum));
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (program->opts, "lanes(0,64)"));
}

/* The heuristic ends where the lanes that it wants do not fit: each would have memory of its own. */
static void
test_refused_lanes (void)
{
  BUILD ();
  g_autoptr (GError) error = NULL;
  TinyTarget target = vector_target ();
  TinyNode *i = build_range (b, 64), *j = build_range (b, 16), *k = build_range (b, 16);
  const gint64 n = 16;
  target.local_bytes = 64;
  b->n_params = 1;
  TinyNode *memory = tiny_node_new (graph, TINY_OP_LOCAL, TINY_DTYPE_I32, 1, 1, &i, 0,
                                    tiny_graph_ints (graph, &n, 1), NULL);
  TinyNode *stores[]
      = { build_store (b, memory, j, load (b, TINY_DTYPE_I32, 1024, INDEX (b, j, i)), NULL),
          store (b, 0, TINY_DTYPE_I32, 1024, INDEX (b, k, i),
                 build_load (b, memory, k, NULL)) };
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      graph, tiny_node_sink (graph, 2, stores, "refused"), &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_null (strstr (program->opts, "lanes"));
}

/* A program without instructions is one whose loops have no rounds. */
static void
test_empty (void)
{
  const TinyTarget target = vector_target ();
  for (gint64 n = 0; n < 2; n++) {
    BUILD ();
    g_autoptr (GError) error = NULL;
    TinyNode *i = build_range (b, n), *one = tiny_node_const_float (graph, TINY_DTYPE_F32, 1);
    TinyNode *sink = build_sink (b, store (b, 0, TINY_DTYPE_F32, 1, i, one));
    g_autoptr (TinyLinearProgram) program
        = tiny_codegen_compile (graph, sink, &target, NULL, 0, &error);
    g_assert_no_error (error);
    g_assert_true ((program->linear.n_instrs == 0) == (n == 0));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  g_test_add_func ("/codegen/lists/empty", test_empty);
  g_test_add_func ("/codegen/lists/grid", test_grid);
  g_test_add_func ("/codegen/lists/neighbours", test_neighbours);
  g_test_add_func ("/codegen/lists/refused-lanes", test_refused_lanes);
  g_test_add_func ("/codegen/lists/multiplied", test_multiplied);
  g_test_add_func ("/codegen/lists/random", test_random);
  return g_test_run ();
}
