/* SPDX-License-Identifier: MIT
 *
 * test-text.c: what is printed parses to the identical node, and what is malformed is refused with
 * a place. */
#include "ir/tiny-text.h"

#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-shape.h"

static TinyNode *
parse (TinyGraph *graph, const char *text)
{
  g_autoptr (GError) error = NULL;
  TinyNode *node = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  g_assert_nonnull (node);
  return node;
}

/* The example of docs/ir.md. */
static void
test_example (void)
{
  static const char *const text = "// stage: kernel\n"
                                  "%0 = param.f32{slot=0, shape=[1024]}\n"
                                  "%1 = range.index{number=0, kind=loop}(1024)\n"
                                  "%2 = load.f32(%0, %1)\n"
                                  "%3 = store(%0, %1, add.f32(%2, 1.0))\n"
                                  "sink{name=\"add_one\"}(%3)\n";
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *root = parse (graph, text);
  g_assert_cmpint (root->op, ==, TINY_OP_SINK);
  g_assert_cmpstr (root->text, ==, "add_one");
  g_autofree char *printed = tiny_graph_print (graph, root);
  g_assert_true (parse (graph, printed) == root);
  g_test_message ("%s", printed);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/text/example", test_example);
  return g_test_run ();
}
