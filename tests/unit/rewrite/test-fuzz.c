/* SPDX-License-Identifier: MIT
 *
 * test-fuzz.c: proves on random INDEX expressions that simplifying keeps the value, ends, is done
 * at once, makes nothing larger, and that bounds and strides are true. */
#include "expressions.h"
#include "rewrite/tiny-affine.h"
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

enum { N_EXPRESSIONS = 20000, N_ASSIGNMENTS = 6, N_GATES = 6000 };

/* The number of terms of the sum that @node is when products are distributed, and of operations
 * below them. */
static guint
measure (TinyNode *node, guint *out_terms)
{
  guint terms[3] = { 0 }, cost = 0;
  *out_terms = 1;
  switch (node->op) {
  case TINY_OP_ADD:
  case TINY_OP_SUB:
    cost = measure (node->sources[0], &terms[0]) + measure (node->sources[1], &terms[1]);
    *out_terms = terms[0] + terms[1];
    return cost + 1 + (node->op == TINY_OP_SUB ? 2 * terms[1] : 0);
  case TINY_OP_MUL:
    cost = measure (node->sources[0], out_terms);
    return cost + 2 * *out_terms;
  case TINY_OP_FLOORDIV:
  case TINY_OP_FLOORMOD:
    /* A quotient of n terms is at most n quotients' worth. */
    cost = measure (node->sources[0], &terms[0]) + measure (node->sources[1], &terms[1]);
    *out_terms = terms[0] + (node->op == TINY_OP_FLOORDIV);
    return cost + 4 + (node->sources[1]->arg < 0 ? 9 : 4) * terms[0];
  case TINY_OP_RANGE:
    return 1;
  default:
    for (guint i = 0; i < node->n_sources; i++) {
      cost += measure (node->sources[i], &terms[0]);
      if (node->op == TINY_OP_MAX || (node->op == TINY_OP_WHERE && i > 0))
        *out_terms = MAX (*out_terms, terms[0]);
    }
    return cost + (node->dtype == TINY_DTYPE_BOOL ? 3 : node->op == TINY_OP_WHERE ? 6 : 1);
  }
}

static guint
count_divisions (TinyGraph *graph, TinyNode *node)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &node, 1);
  guint n = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyOp op = ((TinyNode *) order->pdata[i])->op;
    n += op == TINY_OP_FLOORDIV || op == TINY_OP_FLOORMOD;
  }
  return n;
}

static void
report (const char *what, TinyNode *before, TinyNode *after)
{
  g_autofree char *x = tiny_node_to_expression (before, 12);
  g_autofree char *y = tiny_node_to_expression (after, 12);
  g_test_message ("%s: %s -> %s", what, x, y);
  g_test_fail ();
}

static void
check_values (TinyNode *before, TinyNode *after, TinyNode *gate, GRand *random)
{
  for (guint k = 0; k < N_ASSIGNMENTS; k++) {
    Assignment assignment;
    gint64 min, max;
    assignment_init (&assignment, random);
    Value a = evaluate (&assignment, before), b = evaluate (&assignment, after);
    gboolean holds = TRUE;
    if (gate != NULL) {
      Value g = evaluate (&assignment, gate);
      holds = g.ok[0] && g.v[0];
    }
    assignment_clear (&assignment);
    for (guint i = 0; i < before->lanes; i++) {
      if (!a.ok[i] || !holds)
        continue;
      if (!b.ok[i] || b.v[i] != a.v[i])
        report ("another value", before, after);
      tiny_node_get_bounds (before, &min, &max);
      if (a.v[i] < min || a.v[i] > max)
        report ("outside of the bounds", before, after);
      gint64 divisor = gate == NULL ? tiny_node_get_divisor (before) : 1;
      if (divisor == 0 ? a.v[i] != 0 : a.v[i] % divisor != 0)
        report ("not a multiple of the divisor", before, after);
    }
  }
}

static void
test_index (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  guint64 before_size = 0, after_size = 0;
  for (guint n = 0; n < N_EXPRESSIONS; n++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    Maker maker;
    guint terms;
    maker_init (&maker, graph, random);
    maker.affine = n % 2;
    guint lanes = n % 8 == 0 ? MAX_LANES : 1;
    TinyNode *before = random_index (&maker, lanes, 2 + n % 4);
    g_autoptr (TinyRewriter) rewriter = tiny_rewriter_new (graph, tiny_simplify_index_set ());
    TinyNode *after = tiny_rewriter_run (rewriter, before);
    if (tiny_rewriter_get_n_given_up (rewriter) > 0)
      report ("goes round", before, after);
    if (tiny_simplify_index (graph, after) != after)
      report ("not done at once", before, tiny_simplify_index (graph, after));
    guint a = measure (before, &terms), b = measure (after, &terms);
    before_size += a;
    after_size += b;
    /* A constant, and a factor, may leave each division. */
    if (b > a + 6 * count_divisions (graph, before))
      report ("larger", before, after);
    if (count_divisions (graph, after) > count_divisions (graph, before))
      report ("more divisions", before, after);
    check_values (before, after, NULL, random);
    TinyNode *full = tiny_simplify (graph, before);
    check_values (before, full, NULL, random);
  }
  g_test_message ("%d expressions, size %" G_GUINT64_FORMAT " -> %" G_GUINT64_FORMAT,
                  N_EXPRESSIONS, before_size, after_size);
}

static void
test_given (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  guint changed = 0;
  for (guint n = 0; n < N_GATES; n++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    Maker maker;
    maker_init (&maker, graph, random);
    maker.affine = TRUE;
    TinyNode *before = tiny_simplify_index (graph, random_index (&maker, 1, 2 + n % 3));
    TinyNode *gate = tiny_simplify (graph, random_bool (&maker, 1, 3));
    TinyNode *after = tiny_simplify_given (graph, before, gate);
    changed += before != after;
    check_values (before, after, gate, random);
  }
  g_test_message ("%u of %d changed under a gate", changed, N_GATES);
  g_assert_cmpuint (changed, >, N_GATES / 200);
}

static void
test_affine (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  guint n_affine = 0;
  for (guint n = 0; n < 4000; n++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    Maker maker;
    TinyAffine affine;
    maker_init (&maker, graph, random);
    TinyNode *index = random_index (&maker, 1, n % 4);
    n_affine += tiny_affine (graph, index, &affine);
    TinyNode *sum = tiny_node_const_index (graph, affine.offset);
    for (guint i = 0; i < affine.n_terms; i++) {
      TinyNode *step = tiny_node_const_index (graph, affine.terms[i].stride);
      sum = tiny_node_binary (
          graph, TINY_OP_ADD, sum,
          tiny_node_binary (graph, TINY_OP_MUL, affine.terms[i].range, step));
    }
    if (affine.rest != NULL)
      sum = tiny_node_binary (graph, TINY_OP_ADD, sum, affine.rest);
    check_values (index, sum, NULL, random);
  }
  g_assert_cmpuint (n_affine, >, 400);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rewrite/fuzz/index", test_index);
  g_test_add_func ("/rewrite/fuzz/given", test_given);
  g_test_add_func ("/rewrite/fuzz/affine", test_affine);
  return g_test_run ();
}
