/* SPDX-License-Identifier: MIT
 *
 * test-rules.c: proves that every table loads, that faults in a table are named, that the driver
 * goes deep, remembers and stops, and prints what a visit costs. */
#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

static void
test_load (void)
{
  for (guint i = 0; tiny_rule_tables[i] != NULL; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyRuleSet) set = tiny_rule_set_new (&tiny_rule_tables[i], 1, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (tiny_rule_set_get_n_rules (set), ==, tiny_rule_tables[i]->n_rules);
  }
  g_assert_cmpuint (tiny_rule_set_get_n_rules (tiny_simplify_set ()), >, 100);
}

/* One faulty row each, and a part of the message. */
static const struct {
  TinyRule rule;
  const char *message;
} faults[] = {
  { { "a", "add.index(x, y", "x" }, "expected , or )" },
  { { "b", "plus(x, y)", "x" }, "no such op" },
  { { "c", "add.number(x, y)", "x" }, "class of dtypes" },
  { { "d", "add(x)", "x" }, "wrong number of sources" },
  { { "e", "add(x, y)", "z" }, "not bound" },
  { { "f", "add(x, y)", "add(x, {y+1})" }, "not bound as a constant" },
  { { "g", "add(x, y)" }, "either a text or a builder" },
  { { "h", "x", "x" }, "not an op" },
  { { "i", "add(x, #)", "x" }, "expected a letter" },
  { { "j", "add(x, y) y", "x" }, "unexpected text" },
  { { "k", "add(x, y)", "where(cmplt(1, 2), x, y)" }, "does not follow" },
};

static void
test_faults (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++) {
    const TinyRuleTable table = { "faulty", &faults[i].rule, 1 }, *tables[] = { &table };
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_rule_set_new (tables, 1, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
    if (strstr (error->message, faults[i].message) == NULL)
      CASE_FAILS ("%s", error->message);
  }
  static const TinyRule twins[] = { { "one", "add(x, 0)", "x" }, { "two", "add(x, 0)", "0" } };
  const TinyRuleTable table = { "twins", twins, 2 }, *tables[] = { &table };
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_rule_set_new (tables, 1, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
}

static TinyNode *
new_leaf (TinyGraph *graph, TinyDType dtype, guint number)
{
  return tiny_node_new (graph, TINY_OP_VARIABLE, dtype, 1, 0, NULL, number, NULL, NULL);
}

/* A chain far deeper than a C stack allows, of which every second link goes away. */
static void
test_deep (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *x = new_leaf (graph, TINY_DTYPE_I32, 0), *y = new_leaf (graph, TINY_DTYPE_I32, 1);
  TinyNode *deep = x, *wanted = x;
  for (guint i = 0; i < 300000; i++) {
    deep = tiny_node_binary (graph, TINY_OP_MUL, deep, y);
    deep = tiny_node_binary (graph, TINY_OP_ADD, deep,
                             tiny_node_const_int (graph, TINY_DTYPE_I32, 0));
    wanted = tiny_node_binary (graph, TINY_OP_MUL, wanted, y);
  }
  g_assert_true (tiny_simplify (graph, deep) == wanted);
}

/* Rules that never end are stopped, and said so. */
static void
test_endless (void)
{
  static const TinyRule swap[] = { { "swap", "sub.integer(x, y)", "sub(y, x)" } };
  static const TinyRule grow[] = { { "grow", "neg.integer(x)", "neg(add(x, 1))" } };
  const TinyRuleTable tables[] = { { "swap", swap, 1 }, { "grow", grow, 1 } };
  for (guint i = 0; i < 2; i++) {
    const TinyRuleTable *table = &tables[i];
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autoptr (TinyRuleSet) set = tiny_rule_set_new (&table, 1, NULL);
    g_autoptr (TinyRewriter) rewriter = tiny_rewriter_new (graph, set);
    TinyNode *x = new_leaf (graph, TINY_DTYPE_I32, 0), *y = new_leaf (graph, TINY_DTYPE_I32, 1);
    TinyNode *root = i == 0 ? tiny_node_binary (graph, TINY_OP_SUB, x, y)
                            : tiny_node_unary (graph, TINY_OP_NEG, x);
    g_assert_nonnull (tiny_rewriter_run (rewriter, root));
    g_assert_cmpuint (tiny_rewriter_get_n_given_up (rewriter), >, 0);
  }
}

static void
test_counts (void)
{
  static const TinyRule rows[] = { { "zero", "add.integer(x, 0)", "x" } };
  const TinyRuleTable table = { "counts", rows, 1 }, *tables[] = { &table };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (TinyRuleSet) set = tiny_rule_set_new (tables, 1, NULL);
  TinyNode *x = new_leaf (graph, TINY_DTYPE_I32, 0);
  guint64 tries, hits;
  for (gint i = 0; i < 5; i++)
    tiny_rewrite (graph,
                  tiny_node_binary (graph, TINY_OP_ADD, x,
                                    tiny_node_const_int (graph, TINY_DTYPE_I32, i)),
                  set, NULL);
  tiny_rule_set_get_rule (set, 0, NULL, &tries, &hits);
  g_assert_cmpuint (tries, ==, 5);
  g_assert_cmpuint (hits, ==, 1);
}

/* A tensor node keeps its shape: x * 0 of shape (3) is not the 0 of shape (). */
static void
test_shapes (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  const gint64 dims[] = { 3 };
  TinyNode *x = tiny_node_new (graph, TINY_OP_BUFFER, TINY_DTYPE_I32, 1, 0, NULL, 1,
                               tiny_graph_ints (graph, dims, 1), "CPU");
  TinyNode *zero = tiny_node_const_int (graph, TINY_DTYPE_I32, 0);
  TinyNode *product = tiny_node_binary (graph, TINY_OP_MUL, x, zero);
  g_assert_true (tiny_simplify (graph, product) == product);
  g_assert_true (tiny_simplify (graph, tiny_node_binary (graph, TINY_OP_ADD, x, zero)) == x);
}

/* ---- bounds ---- */
static void
test_bounds (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *r = tiny_node_range_const (graph, 0, TINY_RANGE_LOOP, 10);
  TinyNode *i8 = new_leaf (graph, TINY_DTYPE_I8, 0), *u64 = new_leaf (graph, TINY_DTYPE_U64, 1);
  TinyNode *huge = tiny_node_const_int (graph, TINY_DTYPE_U64, -1);
  TinyNode *c = tiny_node_const_index (graph, 1 << 30);
  TinyNode *below = tiny_node_const_index (graph, -(1 << 30));
  TinyNode *product = r;
  gint64 min, max;
  tiny_node_get_bounds (tiny_node_binary (graph, TINY_OP_SUB, r, c), &min, &max);
  g_assert_cmpint (min, ==, -(1 << 30));
  g_assert_cmpint (max, ==, 9 - (1 << 30));
  tiny_node_get_bounds (tiny_node_binary (graph, TINY_OP_ADD, i8, i8), &min, &max);
  g_assert_cmpint (min, ==, -128);
  g_assert_cmpint (max, ==, 127);
  /* INDEX saturates, and stays an interval. */
  for (guint i = 0; i < 6; i++)
    product = tiny_node_binary (graph, TINY_OP_MUL, product, c);
  tiny_node_get_bounds (product, &min, &max);
  g_assert_cmpint (min, ==, 0);
  g_assert_cmpint (max, ==, tiny_dtype_get_max (TINY_DTYPE_INDEX));
  /* An interval that lies outside altogether could be any number once it wraps. */
  TinyNode *after = tiny_node_binary (graph, TINY_OP_ADD, r, tiny_node_const_index (graph, 1));
  for (guint i = 0; i < 3; i++)
    after = tiny_node_binary (graph, TINY_OP_MUL, after, i == 1 ? below : c);
  tiny_node_get_bounds (after, &min, &max);
  g_assert_cmpint (min, ==, tiny_dtype_get_min (TINY_DTYPE_INDEX));
  g_assert_cmpint (max, ==, tiny_dtype_get_max (TINY_DTYPE_INDEX));
  /* The upper half of u64 is not decided by what fits in 63 bits. */
  tiny_node_get_bounds (tiny_node_binary (graph, TINY_OP_CMPLT, u64, huge), &min, &max);
  g_assert_cmpint (min, ==, 0);
  g_assert_cmpint (max, ==, 1);
  g_assert_cmpint (tiny_node_get_divisor (tiny_node_binary (graph, TINY_OP_MUL, r, c)), ==,
                   1 << 30);
}

/* ---- speed ---- */
/* Index arithmetic as a scheduler makes it for a convolution, over changing sizes. */
static TinyNode *
make_kernel (TinyGraph *graph, gint64 size)
{
  TinyNode *r[6], *index = tiny_node_const_index (graph, 0);
  for (guint i = 0; i < 6; i++)
    r[i] = tiny_node_range_const (graph, i, TINY_RANGE_LOOP, size + i);
  for (guint i = 0; i < 6; i++) {
    TinyNode *n = tiny_node_const_index (graph, size + i);
    index = tiny_node_binary (graph, TINY_OP_ADD,
                              tiny_node_binary (graph, TINY_OP_MUL, index, n), r[i]);
  }
  TinyNode *sum = tiny_node_const_index (graph, 0), *gate = NULL;
  for (guint i = 6; i-- > 0;) {
    TinyNode *n = tiny_node_const_index (graph, size + i),
             *one = tiny_node_const_index (graph, -1);
    TinyNode *axis = tiny_node_binary (graph, TINY_OP_FLOORMOD, index, n);
    index = tiny_node_binary (graph, TINY_OP_FLOORDIV, index, n);
    axis = tiny_node_binary (graph, TINY_OP_ADD, axis, one);
    TinyNode *inside = tiny_node_binary (graph, TINY_OP_CMPLT, one, axis);
    gate = gate == NULL ? inside : tiny_node_binary (graph, TINY_OP_AND, gate, inside);
    sum = tiny_node_binary (graph, TINY_OP_ADD, tiny_node_binary (graph, TINY_OP_MUL, sum, n),
                            axis);
  }
  TinyNode *param = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, 1,
                                   tiny_graph_ints (graph, &size, 1), NULL);
  TinyNode *sources[] = { param, sum };
  TinyNode *load
      = tiny_node_new (graph, TINY_OP_LOAD, TINY_DTYPE_F32, 1, 2, sources, 0, NULL, NULL);
  return tiny_node_where (graph, gate, load, tiny_node_const_float (graph, TINY_DTYPE_F32, 0));
}

static void
test_speed (void)
{
  enum { N_KERNELS = 100, N_LINKS = 100000 };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *kernels[N_KERNELS];
  const TinyRuleSet *set = tiny_simplify_set ();
  for (guint i = 0; i < N_KERNELS; i++)
    kernels[i] = make_kernel (graph, 3 + i);
  guint n_nodes = tiny_graph_get_n_nodes (graph);
  gint64 start = g_get_monotonic_time ();
  g_autoptr (TinyRewriter) rewriter = tiny_rewriter_new (graph, set);
  for (guint i = 0; i < N_KERNELS; i++)
    tiny_rewriter_run (rewriter, kernels[i]);
  double ns = 1000.0 * (double) (g_get_monotonic_time () - start);
  g_test_message ("%d index kernels: %.2f ms, %.0f ns for each of %u nodes", N_KERNELS,
                  ns / 1e6, ns / n_nodes, n_nodes);
  /* Nothing here matches. */
  TinyNode *x = new_leaf (graph, TINY_DTYPE_F32, 0), *chain = x;
  for (guint i = 0; i < N_LINKS; i++)
    chain = tiny_node_binary (graph, i % 2 ? TINY_OP_ADD : TINY_OP_MUL, chain,
                              new_leaf (graph, TINY_DTYPE_F32, i % 7));
  start = g_get_monotonic_time ();
  guint fired = 0;
  for (guint turn = 0; turn < 10; turn++)
    for (TinyNode *n = chain; n != x; n = n->sources[0])
      fired += tiny_rule_set_apply (set, graph, n, NULL, NULL) != NULL;
  ns = 1000.0 * (double) (g_get_monotonic_time () - start);
  g_assert_cmpuint (fired, ==, 0);
  g_test_message ("matching a node that nothing matches: %.0f ns", ns / (10.0 * N_LINKS));
  start = g_get_monotonic_time ();
  g_assert_true (tiny_rewriter_run (rewriter, chain) == chain);
  ns = 1000.0 * (double) (g_get_monotonic_time () - start);
  g_test_message ("rewriting it: %.0f ns", ns / N_LINKS);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rewrite/rules/load", test_load);
  g_test_add_func ("/rewrite/rules/faults", test_faults);
  g_test_add_func ("/rewrite/rules/deep", test_deep);
  g_test_add_func ("/rewrite/rules/endless", test_endless);
  g_test_add_func ("/rewrite/rules/counts", test_counts);
  g_test_add_func ("/rewrite/rules/shapes", test_shapes);
  g_test_add_func ("/rewrite/rules/bounds", test_bounds);
  g_test_add_func ("/rewrite/rules/speed", test_speed);
  return g_test_run ();
}
