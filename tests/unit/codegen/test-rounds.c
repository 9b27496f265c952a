/* SPDX-License-Identifier: MIT
 *
 * Proves that loops keep to the most rounds that a target allows and compute the same: one loop, nests whose inner or
 * outer loop is the long one, loops side by side, sizes that no number of copies divides, ends that are variables; and
 * that a kernel is refused by a text with both numbers where copies of its bodies would make it too long. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "kernels.h"

typedef struct {
  const char *name;
  gint64 sizes[3]; /* of nested loops, outermost first; 0: none */
  gint64 beside;   /* of a second loop after them; 0: none */
  gint64 variable; /* the largest end of another one around them, which is 3; 0: none */
  guint64 max_rounds;
  gboolean fits;
} RoundsRow;

static const RoundsRow rows[] = {
  { "one", { 1000 }, 0, 0, 100, TRUE },
  { "exactly", { 100 }, 0, 0, 100, TRUE },
  { "one-more", { 101 }, 0, 0, 100, TRUE },
  { "prime", { 997 }, 0, 0, 60, TRUE },
  { "inner", { 3, 700 }, 0, 0, 100, TRUE },
  { "outer", { 700, 3 }, 0, 0, 100, TRUE },
  { "three", { 11, 13, 7 }, 0, 0, 50, TRUE },
  { "beside", { 60 }, 60, 0, 100, TRUE },
  { "variable", { 0 }, 0, 1000, 100, TRUE },
  { "variable-short", { 40 }, 0, 7, 30, TRUE },
  { "variable-outer", { 5 }, 0, 301, 100, TRUE },
  { "all-copied", { 5, 5 }, 0, 0, 1, TRUE },
  { "too-long", { 10000000 }, 0, 0, 100, FALSE },
  { "too-deep", { 4000, 4000 }, 0, 0, 100, FALSE },
  { "no-end", { 0 }, 0, 0x7fffffff, 100, FALSE },
};

/* out = the sum of (i * 31 + j * 7 + k + 1) over all loops, and with a second loop + the sum of its squares. */
static TinyNode *
build_kernel (Build *b, const RoundsRow *row)
{
  TinyNode *loops[4], *number = build_number (b, 1);
  guint n_loops = 0;
  TinyNode *gate = NULL, *zero = tiny_node_const_int (b->graph, TINY_DTYPE_I32, 0);
  if (row->variable > 0) {
    const gint64 bounds[] = { 0, row->variable };
    TinyNode *end = tiny_node_new (b->graph, TINY_OP_VARIABLE, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                   tiny_graph_ints (b->graph, bounds, 2), NULL);
    loops[n_loops++] = build_range (b, row->variable);
    gate
        = build_op (b, TINY_OP_CMPLT, tiny_node_cast (b->graph, loops[0], TINY_DTYPE_I32), end);
  }
  for (guint i = 0; i < 3 && row->sizes[i] > 0; i++)
    loops[n_loops++] = build_range (b, row->sizes[i]);
  for (guint i = 0; i < n_loops; i++) {
    number = build_op (b, TINY_OP_MUL, number, build_number (b, 7));
    number = build_op (b, TINY_OP_ADD, number, loops[i]);
  }
  TinyNode *value = tiny_node_cast (b->graph, number, TINY_DTYPE_I32);
  if (gate != NULL) {
    TinyNode *sources[] = { gate, value, zero };
    value
        = tiny_node_new (b->graph, TINY_OP_WHERE, TINY_DTYPE_I32, 1, 3, sources, 0, NULL, NULL);
  }
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, value, n_loops, loops);
  if (row->beside > 0) {
    TinyNode *other = build_range (b, row->beside);
    TinyNode *square
        = tiny_node_cast (b->graph, build_op (b, TINY_OP_MUL, other, other), TINY_DTYPE_I32);
    sum = build_op (
        b, TINY_OP_ADD, sum,
        build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, square, zero), 1, &other));
  }
  TinyNode *out = build_param (b, TINY_DTYPE_I32, 0, 1);
  return build_sink (b, build_store (b, out, build_number (b, 0), sum, NULL));
}

static void
test_rounds (gconstpointer data)
{
  const RoundsRow *row = data;
  BUILD ();
  TinyNode *sink = build_kernel (b, row);
  TinyTarget target = scalar_target ();
  target.max_rounds = row->max_rounds;
  if (row->fits) {
    g_free (check_kernel (b, sink, &target, "")); /* which counts */
    g_free (check_kernel (b, sink, &target, NULL));
    return;
  }
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_codegen_compile (graph, sink, &target, NULL, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "the target ends them after 100 "));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *path = g_strdup_printf ("/codegen/rounds/%s", rows[i].name);
    g_test_add_data_func (path, &rows[i], test_rounds);
  }
  return g_test_run ();
}
