/* SPDX-License-Identifier: MIT
 *
 * Proves that kernels over bytes, halves and 64-bit integers compute, on targets that store nothing
 * but words of 32 bits, to the bit what they compute on REF as it is: random kernels under random
 * optimisations, with several outputs of several dtypes in several orders, gated loads, rows and
 * columns summed, values updated in place and parts assigned. And that no two grid points write to
 * the same word: each is run alone on the memory as it was before, and what each changed must be all
 * that the whole changes, with nothing changed by two of them in two ways.
 *
 * WORDS_SEED and WORDS_COUNT choose the kernels; a failure names the seed. */
#include "../case-fails.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-text.h"
#include "words-runner.h"

#include <string.h>

enum { MAX_POINTS = 40 };

/* ---- random kernels ---- */
typedef struct {
  TinyGraph *graph;
  GRand *random;
  TinyNode *ranges[8]; /* in scope */
  guint n, n_numbers, n_params, n_locals;
  gint64 combinations;
  TinyNode *params[MAX_BUFFERS];
  TinyNode *local;
} Maker;

static gint
pick (Maker *self, gint n)
{
  return g_rand_int_range (self->random, 0, n);
}

static TinyNode *
number (Maker *self, gint64 value)
{
  return tiny_node_const_index (self->graph, value);
}

static TinyNode *
op (Maker *self, TinyOp kind, TinyNode *x, TinyNode *y)
{
  return tiny_node_binary (self->graph, kind, x, y);
}

static TinyDType
random_dtype (Maker *self)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_BOOL, TINY_DTYPE_I8,  TINY_DTYPE_U8,   TINY_DTYPE_I16,    TINY_DTYPE_U16,
          TINY_DTYPE_F16,  TINY_DTYPE_U8,  TINY_DTYPE_BF16, TINY_DTYPE_F8E4M3, TINY_DTYPE_I32,
          TINY_DTYPE_I64,  TINY_DTYPE_U64, TINY_DTYPE_F32 };
  return dtypes[pick (self, G_N_ELEMENTS (dtypes))];
}

static TinyNode *
new_range (Maker *self)
{
  static const gint64 extents[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17 };
  gint64 extent;
  do
    extent = extents[pick (self, G_N_ELEMENTS (extents))];
  while (extent > 2 && self->combinations * extent > 600);
  self->combinations *= extent;
  TinyNode *range
      = tiny_node_range_const (self->graph, self->n_numbers++, TINY_RANGE_LOOP, extent);
  self->ranges[self->n++] = range;
  return range;
}

static TinyNode *
new_param (Maker *self, TinyDType dtype, gint64 n)
{
  TinyNode *param = tiny_node_new (self->graph, TINY_OP_PARAM, dtype, 1, 0, NULL,
                                   self->n_params, tiny_graph_ints (self->graph, &n, 1), NULL);
  return self->params[self->n_params++] = param;
}

/* Row-major over some ranges; *n_elements is how many that are. */
static TinyNode *
flatten (Maker *self, guint n, TinyNode *const *ranges, gint64 *n_elements)
{
  TinyNode *index = number (self, 0);
  *n_elements = 1;
  for (guint i = 0; i < n; i++) {
    gint64 extent = tiny_range_get_extent (ranges[i]);
    index = op (self, TINY_OP_ADD, op (self, TINY_OP_MUL, index, number (self, extent)),
                ranges[i]);
    *n_elements *= extent;
  }
  return index;
}

static TinyNode *
load (Maker *self, TinyNode *memory, TinyNode *index, TinyNode *gate)
{
  TinyNode *sources[] = { memory, index, gate, NULL };
  if (gate != NULL)
    sources[3] = tiny_node_const_int (self->graph, memory->dtype, pick (self, 2));
  return tiny_node_new (self->graph, TINY_OP_LOAD, memory->dtype, 1, gate ? 4 : 2, sources, 0,
                        NULL, NULL);
}

/* Whatever it is, as a small i32. */
static TinyNode *
as_int (Maker *self, TinyNode *x)
{
  if (tiny_dtype_is_float (x->dtype)) { /* its code: any bits are a number then */
    static const TinyDType codes[]
        = { [1] = TINY_DTYPE_U8, [2] = TINY_DTYPE_U16, [4] = TINY_DTYPE_U32 };
    x = tiny_node_new (self->graph, TINY_OP_BITCAST, codes[tiny_dtype_get_n_bytes (x->dtype)],
                       1, 1, &x, 0, NULL, NULL);
  }
  x = tiny_node_cast (self->graph, x, TINY_DTYPE_I32);
  return op (self, TINY_OP_AND, x, tiny_node_const_int (self->graph, TINY_DTYPE_I32, 0xff));
}

static TinyNode *
random_load (Maker *self)
{
  TinyNode *ranges[8], *gate = NULL;
  guint n = 0;
  gint64 n_elements;
  if (self->local != NULL && pick (self, 2))
    return as_int (self, load (self, self->local,
                               op (self, TINY_OP_FLOORMOD, self->ranges[pick (self, self->n)],
                                   number (self, self->local->ints->v[0])),
                               NULL));
  for (guint i = 0; i < self->n; i++)
    if (pick (self, 3) > 0)
      ranges[n++] = self->ranges[i];
  if (n > 1 && pick (self, 3) == 0) {
    TinyNode *swap = ranges[0];
    ranges[0] = ranges[n - 1];
    ranges[n - 1] = swap;
  }
  TinyNode *index = flatten (self, n, ranges, &n_elements);
  if (pick (self, 3) == 0) { /* a window that sticks out */
    index = op (self, TINY_OP_ADD, index, number (self, pick (self, 5) - 2));
    gate = op (self, TINY_OP_AND, op (self, TINY_OP_CMPLT, number (self, -1), index),
               op (self, TINY_OP_CMPLT, index, number (self, n_elements)));
  } else if (pick (self, 4) == 0) {
    index = op (self, TINY_OP_ADD, index, number (self, 3));
    n_elements += 3;
  }
  if (self->n_params == MAX_BUFFERS)
    return as_int (self, self->ranges[0]);
  return as_int (self,
                 load (self, new_param (self, random_dtype (self), n_elements), index, gate));
}

static TinyNode *
random_int (Maker *self, guint depth)
{
  static const TinyOp ops[]
      = { TINY_OP_ADD, TINY_OP_SUB, TINY_OP_MUL, TINY_OP_MAX, TINY_OP_XOR };
  if (depth == 0)
    return random_load (self);
  if (pick (self, 3) == 0) {
    guint before = self->n;
    gint64 combinations = self->combinations;
    TinyNode *sources[2];
    sources[1] = new_range (self);
    sources[0] = random_int (self, depth - 1);
    self->n = before;
    self->combinations = combinations;
    return tiny_node_new (self->graph, TINY_OP_REDUCE, TINY_DTYPE_I32, 1, 2, sources,
                          pick (self, 2) ? TINY_OP_ADD : TINY_OP_MAX, NULL, NULL);
  }
  TinyNode *x = random_int (self, depth - 1), *y = random_int (self, depth - 1);
  return op (self, ops[pick (self, G_N_ELEMENTS (ops))], x, y);
}

/* Of @dtype, made of integers that all targets compute alike, and of @other where it is not NULL. */
static TinyNode *
random_value (Maker *self, TinyDType dtype, TinyNode *other)
{
  TinyNode *x = random_int (self, 2);
  if (other != NULL)
    x = op (self, TINY_OP_XOR, x, as_int (self, other));
  if (tiny_dtype_get_n_bytes (dtype) == 8) {
    TinyNode *wide = tiny_node_cast (self->graph, x, dtype);
    wide = op (self, TINY_OP_MUL, wide, tiny_node_const_int (self->graph, dtype, 0x123456789));
    return op (self, TINY_OP_ADD, wide,
               tiny_node_cast (self->graph, random_int (self, 1), dtype));
  }
  if (tiny_dtype_is_float (dtype)) {
    x = op (self, TINY_OP_AND, x, tiny_node_const_int (self->graph, TINY_DTYPE_I32, 0xff));
    x = tiny_node_cast (self->graph, x, TINY_DTYPE_F32);
    x = op (self, TINY_OP_MUL, x, tiny_node_const_float (self->graph, TINY_DTYPE_F32, 0.37));
  }
  return tiny_node_cast (self->graph, x, dtype);
}

static TinyNode *
random_condition (Maker *self)
{
  TinyNode *range = self->ranges[pick (self, self->n)];
  gint64 at = pick (self, (gint) tiny_range_get_extent (range));
  TinyNode *gate
      = op (self, pick (self, 2) ? TINY_OP_CMPEQ : TINY_OP_CMPLT, range, number (self, at));
  if (pick (self, 3) > 0)
    return gate;
  TinyNode *bit = tiny_node_const_int (self->graph, TINY_DTYPE_I32, 0x10);
  return op (self, TINY_OP_AND, gate, op (self, TINY_OP_CMPLT, random_load (self), bit));
}

/* @other is what another store in the same loops is about to change, or NULL. */
static TinyNode *
random_store (Maker *self, TinyNode *param, TinyNode *index, TinyNode *other)
{
  TinyNode *value = random_value (self, param->dtype, other);
  TinyNode *old = load (self, param, index, NULL);
  TinyNode *sources[] = { param, index, value, NULL };
  guint n = 3;
  switch (pick (self, 6)) {
  case 0:
    sources[2] = tiny_node_where (self->graph, random_condition (self), value, old);
    break;
  case 1:
    sources[2] = tiny_node_where (self->graph, random_condition (self), old, value);
    break;
  case 2:
    sources[3] = random_condition (self);
    n = 4;
    break;
  case 3:
    if (!tiny_dtype_is_float (param->dtype) && param->dtype != TINY_DTYPE_BOOL)
      sources[2] = op (self, TINY_OP_ADD, value, old);
    break;
  default:
    break;
  }
  return tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, n, sources, 0, NULL,
                        NULL);
}

static TinyNode *
random_local (Maker *self)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_BOOL, TINY_DTYPE_U8, TINY_DTYPE_I16, TINY_DTYPE_I64, TINY_DTYPE_F16 };
  TinyDType dtype = dtypes[pick (self, G_N_ELEMENTS (dtypes))];
  guint before = self->n;
  gint64 combinations = self->combinations;
  TinyNode *range = new_range (self), *value = random_value (self, dtype, NULL);
  gint64 n = tiny_range_get_extent (range);
  TinyNode *local
      = tiny_node_new (self->graph, TINY_OP_LOCAL, dtype, 1, before, self->ranges,
                       self->n_locals++, tiny_graph_ints (self->graph, &n, 1), NULL);
  self->n = before;
  self->combinations = combinations;
  self->local = local;
  TinyNode *sources[] = { local, range, value };
  return tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL,
                        NULL);
}

static TinyNode *
random_kernel (Maker *self)
{
  TinyNode *stores[5], *outputs[3], *indices[3];
  guint n_outputs = 1 + pick (self, 3), n_loops = 1 + pick (self, 3), n = 0;
  for (guint i = 0; i < n_loops; i++) {
    new_range (self);
    if (i == 0 && n_loops > 1 && pick (self, 6) == 0)
      stores[n++] = random_local (self);
  }
  for (guint i = 0; i < n_outputs; i++) {
    TinyNode *order[8];
    gint64 n_elements;
    guint turn = pick (self, 3) == 0 ? pick (self, (gint) n_loops) : 0;
    /* A row's result beside its elements, now and then. */
    guint n_own = n_loops > 1 && pick (self, 5) == 0 ? n_loops - 1 : n_loops;
    for (guint j = 0; j < n_own; j++)
      order[j] = self->ranges[(j + turn) % n_own];
    indices[i] = flatten (self, n_own, order, &n_elements);
    outputs[i] = new_param (self, random_dtype (self), n_elements);
    self->combinations = 1;
    for (guint j = 0; j < n_loops; j++)
      self->combinations *= tiny_range_get_extent (self->ranges[j]);
  }
  for (guint i = 0; i < n_outputs; i++) {
    guint n_own = 0, before = self->n, next = (i + 1) % n_outputs;
    TinyNode *own[8] = { NULL }, *all[8];
    gboolean meets = next != i && indices[next] == indices[i] && pick (self, 2);
    memcpy (all, self->ranges, sizeof all);
    for (guint j = 0; j < n_loops; j++)
      if (tiny_node_depends_on (self->graph, indices[i], all[j])
          || tiny_range_get_extent (all[j]) == 1)
        own[n_own++] = all[j];
    memcpy (self->ranges, own, sizeof own);
    self->n = n_own;
    stores[n++] = random_store (self, outputs[i], indices[i],
                                meets ? load (self, outputs[next], indices[i], NULL) : NULL);
    memcpy (self->ranges, all, sizeof all);
    self->n = before;
  }
  return tiny_node_sink (self->graph, n, stores, "words");
}

/* ---- comparing ---- */
static void
memory_init (Memory *self, Maker *maker)
{
  self->n = maker->n_params;
  for (guint i = 0; i < self->n; i++) {
    TinyDType dtype = maker->params[i]->dtype;
    gsize n = (gsize) maker->params[i]->ints->v[0] * tiny_dtype_get_n_bytes (dtype);
    self->sizes[i] = (n + 3) & ~(gsize) 3;
    self->data[i] = g_malloc0 (self->sizes[i] + 8);
    for (gsize j = 0; j < n; j++)
      self->data[i][j]
          = (guint8) (dtype == TINY_DTYPE_BOOL ? pick (maker, 2) : pick (maker, 256));
    /* Floats are positive and finite: what becomes of a NaN's bits is open. */
    gsize size = tiny_dtype_get_n_bytes (dtype);
    for (gsize j = size - 1; j < n && tiny_dtype_is_float (dtype); j += size)
      self->data[i][j] &= size == 4 ? 0x3f : 0x3b;
  }
}

/* A list in which most entries make sense; those that do not apply are left out. */
static char *
random_opts (Maker *self, TinyNode *sink, const TinyTarget *target)
{
  static const gint64 amounts[] = { 2, 2, 3, 4, 4, 8 };
  g_autoptr (GArray) opts = g_array_new (FALSE, FALSE, sizeof (TinyOpt));
  for (guint i = 0; i < 6; i++) {
    TinyOpt opt = { pick (self, 4) == 0 ? TINY_OPT_GRID : pick (self, TINY_N_OPTS),
                    pick (self, 4), amounts[pick (self, G_N_ELEMENTS (amounts))] };
    g_autoptr (GError) error = NULL;
    if (opt.kind == TINY_OPT_SWAP)
      opt.amount = pick (self, 4);
    g_array_append_val (opts, opt);
    g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
        self->graph, sink, target, (TinyOpt *) opts->data, opts->len, &error);
    if (program == NULL)
      g_array_set_size (opts, opts->len - 1);
  }
  return tiny_opts_to_string ((TinyOpt *) opts->data, opts->len);
}

static gboolean
check_arch (Maker *self,
            TinyNode *sink,
            const char *arch,
            const char *opts_text,
            const Memory *before,
            const Memory *expected,
            guint seed)
{
  g_autoptr (GError) error = NULL;
  guint n_opts = 0;
  TinyTarget target = target_of (arch);
  g_autofree TinyOpt *opts
      = opts_text != NULL ? tiny_opts_from_string (opts_text, &n_opts, NULL) : NULL;
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (self->graph, sink, &target, opts, n_opts, &error);
  g_autofree char *text = g_strdup_printf ("seed %u on %s with \"%s\"", seed, arch,
                                           opts_text != NULL ? opts_text : "the heuristic");
  if (program == NULL) {
    if (self->n_locals == 0 || !g_error_matches (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED))
      CASE_FAILS ("%s: %s", text, error->message);
    return FALSE;
  }
  g_auto (Memory) found = { { NULL } };
  memory_copy (&found, before);
  run_linear (&program->linear, arch, &found, text);
  for (guint i = 0; i < found.n; i++) {
    gsize n
        = (gsize) self->params[i]->ints->v[0] * tiny_dtype_get_n_bytes (self->params[i]->dtype);
    for (gsize j = 0; j < n; j++)
      if (found.data[i][j] != expected->data[i][j]) {
        CASE_FAILS ("%s: byte %zu of buffer %u, %s, is %02x, not %02x", text, j, i,
                    tiny_dtype_to_string (self->params[i]->dtype), found.data[i][j],
                    expected->data[i][j]);
        break;
      }
  }
  const guint32 *grid = program->linear.grid;
  if (grid[0] * grid[1] * grid[2] <= MAX_POINTS)
    check_points (&program->linear, before, &found, text);
  return TRUE;
}

static guint
check_seed (guint seed, gboolean prints)
{
  static const char *const archs[]
      = { "words", "words,lanes=4", "words,least", "words,f16,lanes=8" };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  Maker self = { .graph = graph, .random = g_rand_new_with_seed (seed), .combinations = 1 };
  TinyNode *sink = random_kernel (&self);
  TinyTarget plain = target_of ("ref");
  g_auto (Memory) before = { { NULL } }, expected = { { NULL } };
  g_autoptr (GError) error = NULL;
  guint n_done = 0, n_opts;
  g_autofree TinyOpt *none = tiny_opts_from_string ("none", &n_opts, NULL);
  if (prints) {
    g_autofree char *text = tiny_graph_print (graph, sink);
    g_printerr ("%s", text);
  }
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, &plain, none, 0, &error);
  g_assert_no_error (error);
  memory_init (&before, &self);
  memory_copy (&expected, &before);
  run_linear (&program->linear, "ref", &expected, "as it is");
  for (guint i = 0; i < G_N_ELEMENTS (archs); i++) {
    TinyTarget target = target_of (archs[i]);
    g_autofree char *opts = random_opts (&self, sink, &target);
    n_done += check_arch (&self, sink, archs[i], "none", &before, &expected, seed);
    n_done += check_arch (&self, sink, archs[i], NULL, &before, &expected, seed);
    n_done += check_arch (&self, sink, archs[i], opts, &before, &expected, seed);
  }
  g_rand_free (self.random);
  return n_done;
}

static void
test_random (void)
{
  const char *seed_text = g_getenv ("WORDS_SEED"), *count_text = g_getenv ("WORDS_COUNT");
  guint seed = seed_text ? (guint) atoi (seed_text) : 1;
  guint count = count_text ? (guint) atoi (count_text) : 150, n_done = 0;
  for (guint i = seed; i < seed + count; i++)
    n_done += check_seed (i, seed_text != NULL && count == 1);
  g_test_message ("%u programs", n_done);
  g_assert_cmpuint (n_done, >, count * 10);
}

/* ---- indices of 32 bits ---- */

/* out[r] = in[f(r)], @n_in being the elements of in. */
static TinyNode *
gather_kernel (
    TinyGraph *graph, TinyDType dtype, gint64 extent, gint64 n_in, gint64 mul, gint64 div)
{
  TinyNode *range = tiny_node_range_const (graph, 0, TINY_RANGE_LOOP, extent);
  TinyNode *out = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                 tiny_graph_ints (graph, &extent, 1), NULL);
  TinyNode *in = tiny_node_new (graph, TINY_OP_PARAM, dtype, 1, 0, NULL, 1,
                                tiny_graph_ints (graph, &n_in, 1), NULL);
  TinyNode *index
      = tiny_node_binary (graph, TINY_OP_MUL, range, tiny_node_const_index (graph, mul));
  index = tiny_node_binary (graph, TINY_OP_FLOORDIV, index, tiny_node_const_index (graph, div));
  TinyNode *load = tiny_node_new (graph, TINY_OP_LOAD, dtype, 1, 2, (TinyNode *[]){ in, index },
                                  0, NULL, NULL);
  TinyNode *sources[] = { out, range, tiny_node_cast (graph, load, TINY_DTYPE_I32) };
  TinyNode *store
      = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL, NULL);
  return tiny_node_sink (graph, 1, &store, "gather");
}

/* What is computed on the way to an address may be more than 32 bits hold. */
static void
test_large_index (void)
{
  enum { N = 300 };
  const gint64 mul = G_GINT64_CONSTANT (12345678901), div = 7654321098;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  gint64 n_in = (N - 1) * mul / div + 1;
  TinyNode *sink = gather_kernel (graph, TINY_DTYPE_U8, N, n_in, mul, div);
  TinyTarget target = target_of ("words");
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, &target, NULL, 0, &error);
  g_assert_no_error (error);
  Memory memory = { .n = 2, .sizes = { 4 * N, (gsize) (n_in + 3) & ~(gsize) 3 } };
  for (guint i = 0; i < 2; i++)
    memory.data[i] = g_malloc0 (memory.sizes[i]);
  for (guint i = 0; i < n_in; i++)
    memory.data[1][i] = (guint8) (i * 37);
  run_linear (&program->linear, "words", &memory, "large index");
  for (gint64 i = 0; i < N; i++)
    g_assert_cmpint (((gint32 *) memory.data[0])[i], ==, (guint8) (i * mul / div * 37));
  memory_clear (&memory);
}

/* A buffer whose elements no index counts is refused; as bytes in words they may be counted. */
static void
test_large_buffer (void)
{
  static const struct {
    TinyDType dtype;
    gint64 n;
    gboolean fits;
  } rows[] = {
    { TINY_DTYPE_F32, G_GINT64_CONSTANT (1) << 31, FALSE },
    { TINY_DTYPE_F32, (G_GINT64_CONSTANT (1) << 31) - 1, TRUE },
    { TINY_DTYPE_I64, G_GINT64_CONSTANT (1) << 30, FALSE },
    { TINY_DTYPE_I64, (G_GINT64_CONSTANT (1) << 30) - 1, TRUE },
    { TINY_DTYPE_U8, G_GINT64_CONSTANT (3000000000), TRUE },
    { TINY_DTYPE_U8, G_GINT64_CONSTANT (1) << 33, FALSE },
  };
  TinyTarget target = target_of ("words");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autoptr (GError) error = NULL;
    TinyNode *sink = gather_kernel (graph, rows[i].dtype, 1000, rows[i].n, rows[i].n / 1000, 1);
    g_autoptr (TinyLinearProgram) program
        = tiny_codegen_compile (graph, sink, &target, NULL, 0, &error);
    if (rows[i].fits) {
      g_assert_no_error (error);
      continue;
    }
    g_assert_null (program);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
    g_assert_nonnull (strstr (error->message, "words"));
    g_assert_nonnull (strstr (error->message, "split the tensor"));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  runner_open ();
  g_test_add_func ("/codegen/words/random", test_random);
  g_test_add_func ("/codegen/words/large-index", test_large_index);
  g_test_add_func ("/codegen/words/large-buffer", test_large_buffer);
  int status = g_test_run ();
  runner_close ();
  return status;
}
