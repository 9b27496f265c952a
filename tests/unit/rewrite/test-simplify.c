/* SPDX-License-Identifier: MIT
 *
 * test-simplify.c: proves that known hard expressions come out as they should, and without trying
 * many rules in vain. */
#include "base/tiny-stats.h"
#include "ir/tiny-text.h"
#include "rewrite/tiny-affine.h"
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

static const char *const leaves = "%a = range.index{number=0, kind=loop}(4)\n"
                                  "%b = range.index{number=1, kind=loop}(3)\n"
                                  "%c = range.index{number=2, kind=loop}(4)\n"
                                  "%n = range.index{number=3, kind=loop}(100)\n"
                                  "%r = range.index{number=4, kind=reduce}(16)\n"
                                  "%p = param.f32{slot=0, shape=[1024]}\n"
                                  "%q = param.bool{slot=1, shape=[1024]}\n";

/* Text over the leaves above, and what it simplifies to. */
static const struct {
  const char *from, *to;
} cases[] = {
  { "floordiv.index(add.index(mul.index(add.index(mul.index(%a, 3), %b), 4), %c), 12)", "%a" },
  { "floormod.index(add.index(mul.index(add.index(mul.index(%a, 3), %b), 4), %c), 4)", "%c" },
  { "floormod.index(floordiv.index(add.index(mul.index(add.index(mul.index(%a, 3), %b), 4), "
    "%c), 4), 3)",
    "%b" },
  { "add.index(mul.index(floordiv.index(%n, 7), 7), floormod.index(%n, 7))", "%n" },
  { "floordiv.index(floordiv.index(%n, 3), 5)", "floordiv.index(%n, 15)" },
  { "floormod.index(floormod.index(%n, 12), 4)", "floormod.index(%n, 4)" },
  { "floordiv.index(floormod.index(%n, 12), 4)", "floormod.index(floordiv.index(%n, 4), 3)" },
  { "floormod.index(%n, 100)", "%n" },
  { "floordiv.index(add.index(%n, 100), 100)", "1:index" },
  { "add.index(%c, add.index(%b, %a))", "add.index(add.index(%a, %b), %c)" },
  { "sub.index(add.index(%a, %b), %a)", "%b" },
  { "cmplt.bool(mul.index(%n, 4), 10)", "cmplt.bool(%n, 3)" },
  { "cmplt.bool(floordiv.index(%n, 4), 3)", "cmplt.bool(%n, 12)" },
  { "cmplt.bool(add.index(mul.index(%n, 4), %c), 12)", "cmplt.bool(%n, 3)" },
  { "cmplt.bool(add.index(%a, %n), add.index(%n, 4))", "true" },
  { "cmplt.bool(add.index(%a, -1), 0)", "cmplt.bool(%a, 1)" },
  { "add.index(floormod.index(%n, 4), mul.index(floormod.index(floordiv.index(%n, 4), 5), 4))",
    "floormod.index(%n, 20)" },
  { "where.f32(cmplt.bool(%n, 5), load.f32(%p, %n), 0.0:f32)",
    "load.f32(%p, %n, cmplt.bool(%n, 5), 0.0:f32)" },
  { "load.f32(%p, floormod.index(%n, 10), cmplt.bool(%n, 10), 0.0:f32)",
    "load.f32(%p, %n, cmplt.bool(%n, 10), 0.0:f32)" },
  { "load.f32(%p, floordiv.index(add.index(%a, %n), 10), cmplt.bool(add.index(%a, %n), 10), "
    "0.0:f32)",
    "load.f32(%p, 0:index, cmplt.bool(add.index(%a, %n), 10), 0.0:f32)" },
  { "and.bool(cmplt.bool(%n, 5), cmplt.bool(%n, 8))", "cmplt.bool(%n, 5)" },
  { "and.bool(cmplt.bool(%n, 5), cmplt.bool(floordiv.index(%n, 3), 2))", "cmplt.bool(%n, 5)" },
  { "reduce.i32{op=add}(3:i32, %r)", "48:i32" },
  { "reduce.f32{op=max}(load.f32(%p, %a), %r)", "load.f32(%p, %a)" },
  { "reduce.f32{op=add}(reduce.f32{op=add}(load.f32(%p, add.index(mul.index(%n, 16), %r)), "
    "%r), %n)",
    "reduce.f32{op=add}(load.f32(%p, add.index(mul.index(%n, 16), %r)), %n, %r)" },
  { "reduce.i32{op=add}(where.i32(cmpeq.bool(%r, %n), load.i32(param.i32{slot=2, shape=[16]}, "
    "%r), 0), %r)",
    "load.i32(param.i32{slot=2, shape=[16]}, %n, cmplt.bool(%n, 16), 0)" },
};

static TinyNode *
parse (TinyGraph *graph, const char *expression)
{

  g_autofree char *text = g_strdup_printf ("%s%%z = sink(%s)\n", leaves, expression);
  g_autoptr (GError) error = NULL;
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  return sink;
}

static void
test_cases (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    TinyNode *from = parse (graph, cases[i].from), *to = parse (graph, cases[i].to);
    TinyNode *found = tiny_simplify (graph, from);
    if (found != to) {
      g_autofree char *a = tiny_node_to_expression (found, 9);
      g_test_message ("%s became %s, not %s", cases[i].from, a, cases[i].to);
      g_test_fail ();
    }
  }
}

/* All of the cases in one graph, a fixed amount of work. More nodes shown or more tries than these
 * mean that rules are found less directly, or undo each other. */
static void
test_effort (void)
{
  enum { MOST_VISITS = 170, MOST_TRIES = 340, LEAST_HITS = G_N_ELEMENTS (cases) };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *nodes[G_N_ELEMENTS (cases)];
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    nodes[i] = parse (graph, cases[i].from);
  TinyNode *all = tiny_node_sink (graph, G_N_ELEMENTS (cases), nodes, NULL);
  TinyStats before, work;
  tiny_simplify_set ();
  tiny_stats_get (&before);
  tiny_simplify (graph, all);
  tiny_stats_since (&before, &work);
  g_test_message ("%" G_GUINT64_FORMAT " nodes shown, %" G_GUINT64_FORMAT
                  " rules tried, %" G_GUINT64_FORMAT " fired",
                  work.n_rule_visits, work.n_rule_tries, work.n_rule_hits);
  g_assert_cmpuint (work.n_rule_visits, <=, MOST_VISITS);
  g_assert_cmpuint (work.n_rule_tries, <=, MOST_TRIES);
  g_assert_cmpuint (work.n_rule_hits, >=, LEAST_HITS);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rewrite/simplify/cases", test_cases);
  g_test_add_func ("/rewrite/simplify/effort", test_effort);
  return g_test_run ();
}
