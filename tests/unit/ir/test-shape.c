/* SPDX-License-Identifier: MIT
 *
 * test-shape.c: the shape each op gives, and movement shorthands that vanish or merge. */
#include "ir/tiny-shape.h"

#include "../case-fails.h"
#include "ir/tiny-text.h"

static TinyNode *
parse (TinyGraph *graph, const char *text)
{
  g_autoptr (GError) error = NULL;
  TinyNode *node = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  return node;
}

static void
test_ops (void)
{
  static const struct {
    const char *text, *shape;
  } cases[] = {
    { "1.0:f32", "()" },
    { "variable.index{number=0}", "()" },
    { "param.f32{shape=[2, 3]}", "(2, 3)" },
    { "buffer.f32{shape=[7]}", "(7,)" },
    { "iota.i32{size=[9]}", "(9,)" },
    { "add.f32(1.0, param.f32{shape=[2, 3]})", "(2, 3)" },
    { "where.f32(true, 1.0, 2.0)", "()" },
    { "cmplt.bool(param.f32{shape=[2]}, 1.0)", "(2,)" },
    { "reshape.f32{shape=[3, 1, 2]}(param.f32{shape=[2, 3]})", "(3, 1, 2)" },
    { "expand.f32{shape=[2, 5]}(param.f32{shape=[2, 1]})", "(2, 5)" },
    { "permute.f32{axes=[2, 0, 1]}(param.f32{shape=[2, 3, 4]})", "(4, 2, 3)" },
    { "pad.f32{pairs=[1, 0, 2, 3]}(param.f32{shape=[2, 3]})", "(3, 8)" },
    { "shrink.f32{pairs=[1, 2, 0, 2]}(param.f32{shape=[2, 3]})", "(1, 2)" },
    { "flip.f32{axes=[1]}(param.f32{shape=[2, 3]})", "(2, 3)" },
    { "shear.f32{axis=0, along=1, mul=1, step=1, offset=0, divisor=1, size=3}"
      "(param.f32{shape=[5, 3]})",
      "(3, 3)" },
    { "reduce.f32{op=add, axes=[0, 2]}(param.f32{shape=[2, 3, 4]})", "(1, 3, 1)" },
    { "contiguous.f32(param.f32{shape=[2]})", "(2,)" },
    { "assign.f32(param.f32{shape=[2]}, 1.0)", "(2,)" },
    { "load.f32(param.f32{shape=[2]}, 0)", NULL },
    { "vector.f32x4(1.0)", NULL },
    { "add.f32x4(1.0, 2.0)", NULL },
    { "range.index(4)", NULL },
  };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    TinyNode *node = parse (graph, cases[i].text);
    g_autofree char *shape = node->shape != NULL ? tiny_shape_to_string (node->shape) : NULL;
    if (g_strcmp0 (shape, cases[i].shape) != 0)
      CASE_FAILS ("%s has shape %s", cases[i].text, shape);
  }
}

static void
test_shorthands (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *x = parse (graph, "param.f32{shape=[2, 3, 4]}");
  const gint64 flat[] = { 24 }, dims[] = { 2, 3, 4 }, turn[] = { 1, 2, 0 },
               back[] = { 2, 0, 1 };
  const gint64 none[] = { 0, 0, 0, 0, 0, 0 }, all[] = { 0, 2, 0, 3, 0, 4 };
  TinyNode *reshaped = tiny_node_reshape (graph, x, flat, 1);
  g_assert_cmpint (reshaped->shape->n, ==, 1);
  g_assert_true (tiny_node_reshape (graph, reshaped, dims, 3) == x);
  TinyNode *turned = tiny_node_permute (graph, x, turn, 3);
  g_assert_cmpint (turned->shape->v[0], ==, 3);
  g_assert_true (tiny_node_permute (graph, turned, back, 3) == x);
  g_assert_true (tiny_node_pad (graph, x, none, 3) == x);
  g_assert_true (tiny_node_shrink (graph, x, all, 3) == x);
  g_assert_true (tiny_node_flip (graph, x, NULL, 0) == x);
  g_assert_true (tiny_node_expand (graph, x, dims, 3) == x);
  g_assert_true (tiny_node_reduce_axes (graph, x, TINY_OP_ADD, NULL, 0) == x);
  g_assert_true (tiny_node_shear (graph, x, 1, 2, 1, 0, 0, 1, 3) == x);
  g_assert_true (tiny_node_shear (graph, x, 1, 2, 1, 1, 0, 1, 3) != x);
  TinyNode *row = parse (graph, "param.f32{shape=[4]}");
  TinyNode *wide = tiny_node_broadcast (graph, row, dims, 3);
  g_assert_true (tiny_shape_equal (wide->shape, x->shape));
  g_assert_cmpint (tiny_shape_get_n_elements (x->shape), ==, 24);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/shape/ops", test_ops);
  g_test_add_func ("/ir/shape/shorthands", test_shorthands);
  return g_test_run ();
}
