/* SPDX-License-Identifier: MIT
 *
 * test-verify.c: what is broken in one way is refused for that reason. */
#include "ir/tiny-verify.h"

#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "ir/tiny-text.h"
#include "random-graph.h"

static TinyNode *
parse (TinyGraph *graph, const char *text)
{
  g_autoptr (GError) error = NULL;
  TinyNode *node = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  return node;
}

/* @reason NULL: legal. */
static void
check (TinyGraph *graph, TinyNode *root, TinyStage stage, const char *reason)
{
  g_autoptr (GError) error = NULL;
  gboolean legal = tiny_graph_verify (graph, root, stage, &error);
  g_autofree char *text = tiny_node_to_string (root);
  if (reason == NULL) {
    if (!legal)
      CASE_FAILS ("%s: refused: %s", text, error->message);
    return;
  }
  if (legal) {
    CASE_FAILS ("%s: not refused: %s", text, reason);
    return;
  }
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  if (!g_str_has_prefix (error->message, tiny_stage_to_string (stage))
      || strstr (error->message, reason) == NULL)
    CASE_FAILS ("%s: refused for another reason: %s, not %s", text, error->message, reason);
}

static void
test_stages (void)
{
  static const struct {
    TinyStage stage;
    const char *text, *reason;
  } cases[] = {
    { TINY_STAGE_TENSOR, "sink(add.f32(param.f32{shape=[2]}, 1.0))", NULL },
    { TINY_STAGE_TENSOR, "range.index(4)", "does not belong" },
    { TINY_STAGE_TENSOR, "add.f32x4(1.0, 2.0)", "no lanes" },
    { TINY_STAGE_TENSOR, "assign.f32(neg.f32(buffer.f32{shape=[2]}), 1.0)", "not to a buffer" },
    { TINY_STAGE_TENSOR, "assign.f32(buffer.f32{shape=[2]}, 1.0)", NULL },
    { TINY_STAGE_TENSOR, "reduce.f32{op=add}(1.0)", "has no shape" },
    { TINY_STAGE_KERNEL, "sink(store(param.f32{shape=[2]}, 1, 2.0))", NULL },
    { TINY_STAGE_KERNEL, "sink(store(param.f32{shape=[2]}, 1:i32, 2.0))", "is i32, not index" },
    { TINY_STAGE_KERNEL, "sink(store(param.f32{shape=[2, 2]}, 1, 2.0))", "has 2 axes" },
    { TINY_STAGE_KERNEL, "sink(load.f32(param.f32{shape=[2]}, 1))", "not a store" },
    { TINY_STAGE_KERNEL, "load.f32(after.f32(param.f32{shape=[2]}))", "has no index" },
    { TINY_STAGE_KERNEL, "store(after.f32(param.f32{shape=[2]}), 1)", "has no index" },
    { TINY_STAGE_KERNEL, "vector.f32x4(1.0)", "does not belong" },
    { TINY_STAGE_KERNEL, "neg.f32x4(1.0)", "no lanes" },
    { TINY_STAGE_KERNEL, "buffer.f32{shape=[2]}", "does not belong" },
    { TINY_STAGE_KERNEL, "reduce.f32{op=add, axes=[0]}(param.f32{shape=[2]})", "not ranges" },
    { TINY_STAGE_KERNEL, "reduce.f32{op=add}(1.0, range.index{kind=reduce}(4))", NULL },
    { TINY_STAGE_KERNEL, "range.i32(4)", "is i32, not index" },
    { TINY_STAGE_KERNEL, "sink(end(range.index(4)))", "does not belong" },
    { TINY_STAGE_KERNEL, "range.index(variable.index{number=0})", "no constant" },
    { TINY_STAGE_KERNEL, "range.index(-4)", "counts to -4" },
    { TINY_STAGE_KERNEL, "variable.i32{number=0, bounds=[0, 2147483647]}", NULL },
    { TINY_STAGE_KERNEL, "variable.i32{number=0, bounds=[0, 2147483648]}", "not within i32" },
    { TINY_STAGE_KERNEL, "variable.u8{number=0, bounds=[-1, 4]}", "not within u8" },
    { TINY_STAGE_KERNEL, "param.f32{slot=-1, shape=[2]}", "its number is not in" },
    { TINY_STAGE_TENSOR, "param.f32{slot=65536, shape=[2]}", "its number is not in" },
    { TINY_STAGE_KERNEL,
      "sink(store(param.f32{shape=[2]}, 1, load.f32(param.f32{shape=[3]}, 1)))",
      "another param" },
    { TINY_STAGE_KERNEL,
      "%i = range.index{number=1}(4294967296)\n%j = range.index{number=2}(4294967296)\n"
      "sink(store(param.f32{shape=[2]}, add.index(%i, %j), 1.0))",
      "more often" },
    { TINY_STAGE_KERNEL, "reduce.f32{op=add}(1.0, range.index{number=70000}(4))",
      "its number" },
    { TINY_STAGE_EXPANDED, "range.index{kind=upcast}(4)", "kind upcast" },
    { TINY_STAGE_EXPANDED, "range.index{kind=unroll}(4)", "kind unroll" },
    { TINY_STAGE_EXPANDED, "range.index{kind=lanes}(4)", "kind lanes" },
    { TINY_STAGE_EXPANDED, "range.index{kind=grid}(4)", NULL },
    { TINY_STAGE_EXPANDED, "load.f32x4(param.f32{shape=[8]}, 0)", NULL },
    { TINY_STAGE_EXPANDED, "load.f32x4(param.f32{shape=[8]}, lanes.indexx4)", "is a vector" },
    { TINY_STAGE_EXPANDED, "store(param.f32{shape=[8]}, 0, vector.f32x4(1.0), 1:boolx4)",
      NULL },
    { TINY_STAGE_EXPANDED, "iota.i32{size=[4]}", "does not belong" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    check (graph, parse (graph, cases[i].text), cases[i].stage, cases[i].reason);
  }
}

/* Nodes that the parser would not make. */
static void
test_broken (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *f = parse (graph, "load.f32(param.f32{slot=0, shape=[4]}, 1)");
  TinyNode *i = parse (graph, "load.i32(param.i32{slot=1, shape=[4]}, 1)");
  TinyNode *b = parse (graph, "cmplt.bool(load.f32(param.f32{slot=0, shape=[4]}, 1), 0.0)");
  TinyNode *p = f->sources[0], *at = f->sources[1];
  const struct {
    TinyOp op;
    TinyDType dtype;
    guint lanes, n;
    TinyNode *sources[5];
    gint64 arg;
    const char *reason;
  } cases[] = {
    { TINY_OP_ADD, TINY_DTYPE_F32, 1, 2, { f, i }, 0, "source 2 should be f32, is i32" },
    { TINY_OP_ADD, TINY_DTYPE_I32, 1, 2, { f, f }, 0, "source 1 should be i32, is f32" },
    { TINY_OP_ADD, TINY_DTYPE_F32, 1, 1, { f }, 0, "wants 2 sources, has 1" },
    { TINY_OP_ADD, TINY_DTYPE_F32, 4, 2, { f, f }, 0, "should have 4 lanes" },
    { TINY_OP_ADD, TINY_DTYPE_VOID, 1, 2, { f, f }, 0, "does not take void" },
    { TINY_OP_SQRT, TINY_DTYPE_I32, 1, 1, { i }, 0, "does not take i32" },
    { TINY_OP_SHL, TINY_DTYPE_F32, 1, 2, { f, f }, 0, "does not take f32" },
    { TINY_OP_SUB, TINY_DTYPE_BOOL, 1, 2, { b, b }, 0, "does not take bool" },
    { TINY_OP_CMPLT, TINY_DTYPE_F32, 1, 2, { f, f }, 0, "a comparison is bool" },
    { TINY_OP_CMPLT, TINY_DTYPE_BOOL, 1, 2, { f, i }, 0, "source 2 should be f32" },
    { TINY_OP_WHERE, TINY_DTYPE_F32, 1, 3, { i, f, f }, 0, "source 1 should be bool" },
    { TINY_OP_WHERE, TINY_DTYPE_F32, 1, 3, { b, f, i }, 0, "source 3 should be f32" },
    { TINY_OP_BITCAST, TINY_DTYPE_F64, 1, 1, { f }, 0, "differ in size" },
    { TINY_OP_CAST, TINY_DTYPE_VOID, 1, 1, { f }, 0, "does not give void" },
    { TINY_OP_IDIV, TINY_DTYPE_INDEX, 1, 2, { at, at }, 0, "does not take index" },
    { TINY_OP_LOAD, TINY_DTYPE_I32, 1, 2, { p, at }, 0, "source 1 should be i32" },
    { TINY_OP_LOAD, TINY_DTYPE_F32, 1, 2, { p, f }, 0, "an index is an integer" },
    { TINY_OP_LOAD, TINY_DTYPE_F32, 1, 4, { p, at, i, f }, 0, "a gate is bool" },
    { TINY_OP_LOAD, TINY_DTYPE_F32, 1, 4, { p, at, b, i }, 0, "source 4 should be f32" },
    { TINY_OP_LOAD, TINY_DTYPE_F32, 1, 1, { p }, 0, "only a register" },
    { TINY_OP_STORE, TINY_DTYPE_F32, 1, 3, { p, at, f }, 0, "is void, not f32" },
    { TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, { p, at, i }, 0, "source 3 should be f32" },
    { TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, { f, at, f }, 0, "load is no memory" },
    { TINY_OP_CONST,
      TINY_DTYPE_F16,
      1,
      0,
      { 0 },
      0x3fb999999999999a,
      "its bits are not those" },
    { TINY_OP_CONST, TINY_DTYPE_U8, 1, 0, { 0 }, 256, "its bits are not those" },
    { TINY_OP_REDUCE, TINY_DTYPE_F32, 1, 2, { f, at }, TINY_OP_ADD, "should be a range" },
    { TINY_OP_REDUCE, TINY_DTYPE_F32, 1, 1, { f }, TINY_OP_XOR, "combines by" },
    { TINY_OP_RANGE, TINY_DTYPE_INDEX, 1, 1, { at }, G_MAXINT64, "no kind of range" },
    { TINY_OP_RANGE, TINY_DTYPE_INDEX, 1, 1, { i }, 0, "source 1 should be index" },
    { TINY_OP_SINK, TINY_DTYPE_F32, 1, 0, { 0 }, 0, "is void" },
    { TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, { 0 }, 0, "has no shape" },
  };
  for (guint c = 0; c < G_N_ELEMENTS (cases); c++) {
    TinyNode *node = tiny_node_new (graph, cases[c].op, cases[c].dtype, cases[c].lanes,
                                    cases[c].n, cases[c].sources, cases[c].arg, NULL, NULL);
    check (graph, node, TINY_STAGE_KERNEL, cases[c].reason);
    TinyNode *above = tiny_node_new (graph, TINY_OP_AFTER, node->dtype, node->lanes, 1, &node,
                                     0, NULL, NULL);
    check (graph, above, TINY_STAGE_KERNEL, cases[c].reason);
  }
}

/* Random graphs mix the stages: an answer for each, and never a crash. */
static void
test_random (void)
{
  for (guint seed = 0; seed < 300; seed++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    TinyNode *root = random_graph (graph, rand, 40);
    for (guint i = 0; i < root->n_sources; i++)
      for (guint stage = 0; stage <= TINY_STAGE_EXPANDED; stage++) {
        g_autoptr (GError) error = NULL;
        if (!tiny_graph_verify (graph, root->sources[i], stage, &error))
          g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
      }
  }
}

static void
test_names (void)
{
  for (guint stage = 0; stage <= TINY_STAGE_EXPANDED; stage++) {
    TinyStage back;
    g_assert_true (tiny_stage_from_string (tiny_stage_to_string (stage), &back));
    g_assert_cmpuint (back, ==, stage);
  }
  TinyStage none;
  g_assert_false (tiny_stage_from_string ("linear", &none));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/verify/stages", test_stages);
  g_test_add_func ("/ir/verify/broken", test_broken);
  g_test_add_func ("/ir/verify/random", test_random);
  g_test_add_func ("/ir/verify/names", test_names);
  return g_test_run ();
}
