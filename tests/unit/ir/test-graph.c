/* SPDX-License-Identifier: MIT
 *
 * test-graph.c: equal nodes are one node; walks, copies, digests and memos follow the structure
 * alone. */
#include "ir/tiny-node.h"

#include <string.h>

#include "../case-fails.h"
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

/* Each difference makes another node, the same again makes none. */
static void
test_consing (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  static const char *const different[] = {
    "param.f32{slot=0, shape=[2, 3]}",
    "param.f32{slot=1, shape=[2, 3]}",
    "param.f16{slot=0, shape=[2, 3]}",
    "param.f32{slot=0, shape=[3, 2]}",
    "param.f32{slot=0, shape=[2, 3], device=\"CL\"}",
    "param.f32{slot=0, shape=[2, 3], device=\"\"}",
    "param.f32{slot=0, shape=[]}",
    "add.f32(1.0, 2.0)",
    "add.f32(2.0, 1.0)",
    "sub.f32(1.0, 2.0)",
    "add.f32x4(1.0, 2.0)",
    "sink",
    "sink{ints=[]}",
  };
  TinyNode *nodes[G_N_ELEMENTS (different)];
  for (guint i = 0; i < G_N_ELEMENTS (different); i++) {
    nodes[i] = parse (graph, different[i]);
    for (guint j = 0; j < i; j++)
      g_assert_true (nodes[i] != nodes[j]);
  }
  guint n = tiny_graph_get_n_nodes (graph);
  for (guint i = 0; i < G_N_ELEMENTS (different); i++)
    g_assert_true (parse (graph, different[i]) == nodes[i]);
  g_assert_cmpuint (tiny_graph_get_n_nodes (graph), ==, n);
}

/* Enough nodes, lists and texts to grow every table. */
static void
test_growth (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  enum { N = 20000 };
  g_autofree TinyNode **nodes = g_new (TinyNode *, N);
  for (guint round = 0; round < 2; round++)
    for (gint64 i = 0; i < N; i++) {
      char text[24];
      g_snprintf (text, sizeof text, "device %d", (int) (i % 100));
      TinyNode *node = tiny_node_new (graph, TINY_OP_BUFFER, TINY_DTYPE_F32, 1, 0, NULL, i % 7,
                                      tiny_graph_ints (graph, &i, 1), text);
      g_assert_true (round == 0 || node == nodes[i]);
      g_assert_cmpint (node->shape->v[0], ==, i);
      nodes[i] = node;
    }
  g_assert_cmpuint (tiny_graph_get_n_nodes (graph), ==, N);
  g_assert_cmpuint (tiny_graph_get_n_bytes (graph), >, N * sizeof (TinyNode));
}

static void
test_toposort (void)
{
  for (guint seed = 0; seed < 50; seed++) {
    g_autoptr (TinyGraph) a = tiny_graph_new (), b = tiny_graph_new ();
    g_autoptr (GRand) rand_a = g_rand_new_with_seed (seed),
                      rand_b = g_rand_new_with_seed (seed);
    TinyNode *root_a = random_graph (a, rand_a, 80);
    parse (b, "neg.f32(param.f32{slot=9, shape=[7]})"); /* other ids, same order */
    TinyNode *root_b = random_graph (b, rand_b, 80);
    g_autoptr (GPtrArray) order_a = tiny_graph_toposort (a, &root_a, 1);
    g_autoptr (GPtrArray) order_b = tiny_graph_toposort (b, &root_b, 1);
    g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
    g_assert_cmpuint (order_a->len, ==, order_b->len);
    g_assert_true (order_a->pdata[order_a->len - 1] == root_a);
    for (guint i = 0; i < order_a->len; i++) {
      TinyNode *node = order_a->pdata[i], *twin = order_b->pdata[i];
      g_assert_cmpint (node->op, ==, twin->op);
      g_assert_cmpint (node->arg, ==, twin->arg);
      for (guint s = 0; s < node->n_sources; s++)
        g_assert_true (g_hash_table_contains (seen, node->sources[s]));
      g_assert_true (g_hash_table_add (seen, node));
    }
  }
}

static void
test_substitute (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *x = parse (graph, "load.f32(param.f32{slot=0, shape=[4]}, 1)");
  TinyNode *y = parse (graph, "load.f32(param.f32{slot=1, shape=[4]}, 2)");
  TinyNode *root
      = tiny_node_binary (graph, TINY_OP_ADD, tiny_node_unary (graph, TINY_OP_NEG, x), y);
  /* At once, not one after the other. */
  TinyNode *from[] = { x, y }, *to[] = { y, x };
  TinyNode *swapped = tiny_graph_substitute (graph, root, from, to, 2);
  g_assert_true (
      swapped
      == tiny_node_binary (graph, TINY_OP_ADD, tiny_node_unary (graph, TINY_OP_NEG, y), x));
  g_assert_true (tiny_graph_substitute (graph, swapped, from, to, 2) == root);
  g_assert_true (tiny_graph_substitute (graph, root, &root, &x, 1) == x);
  g_assert_true (tiny_graph_substitute (graph, root, NULL, NULL, 0) == root);
}

static void
test_import (void)
{
  for (guint seed = 0; seed < 100; seed++) {
    g_autoptr (TinyGraph) a = tiny_graph_new (), b = tiny_graph_new ();
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    TinyNode *root = random_graph (a, rand, 60);
    TinyNode *copy = tiny_graph_import (b, root);
    g_assert_true (tiny_graph_import (b, root) == copy);
    g_assert_true (tiny_graph_import (a, copy) == root);
    g_autofree char *text_a = tiny_graph_print (a, root), *text_b = tiny_graph_print (b, copy);
    g_assert_cmpstr (text_a, ==, text_b);
  }
}

/* Equal across graphs, whatever else is in them; different for any change of any node. */
static void
test_digest (void)
{
  g_autoptr (GHashTable) digests
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  static const char *const texts[] = {
    "sink(add.f32(param.f32{slot=0, shape=[4]}, 1.0))",
    "sink(add.f32(param.f32{slot=0, shape=[4]}, 2.0))",
    "sink(add.f32(param.f32{slot=1, shape=[4]}, 1.0))",
    "sink(add.f32(param.f32{slot=0, shape=[5]}, 1.0))",
    "sink(sub.f32(param.f32{slot=0, shape=[4]}, 1.0))",
    "sink(add.f16(param.f16{slot=0, shape=[4]}, 1.0))",
    "sink(add.f32(1.0, param.f32{slot=0, shape=[4]}))",
    "sink{name=\"a\"}(add.f32(param.f32{slot=0, shape=[4]}, 1.0))",
    "sink{ints=[]}(add.f32(param.f32{slot=0, shape=[4]}, 1.0))",
    "sink(add.f32(param.f32{slot=0, shape=[4], device=\"CL\"}, 1.0))",
    "sink(add.f32x2(1.0, 2.0))",
    "sink(add.f32(1.0, 2.0))",
    "%a = 1.0:f32\n%b = 2.0:f32\nsink(%a, %b, %a)",
    "%a = 1.0:f32\n%b = 2.0:f32\nsink(%a, %b, %b)",
  };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    guint8 first[16];
    for (guint round = 0; round < 2; round++) {
      g_autoptr (TinyGraph) graph = tiny_graph_new ();
      guint8 digest[16];
      if (round == 1)
        parse (graph, "sink(2.0:f32, neg.f32(1.0), param.f32{slot=1, shape=[4]})");
      tiny_node_digest (graph, parse (graph, texts[i]), digest);
      if (round == 0)
        memcpy (first, digest, 16);
      g_assert_cmpmem (digest, 16, first, 16);
    }
    GString *hex = g_string_new (NULL);
    for (guint j = 0; j < 16; j++)
      g_string_append_printf (hex, "%02x", first[j]);
    if (!g_hash_table_add (digests, g_string_free (hex, FALSE)))
      CASE_FAILS ("the digest of %s is taken", texts[i]);
  }
}

static guint
count_ranges (TinyGraph *graph, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, node, &n);
  for (guint i = 1; i < n; i++)
    g_assert_cmpuint (ranges[i - 1]->id, <, ranges[i]->id);
  return n;
}

static void
test_ranges (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *i = parse (graph, "range.index{number=0, kind=loop}(16)");
  TinyNode *k = parse (graph, "range.index{number=1, kind=reduce}(64)");
  TinyNode *at = tiny_node_binary (graph, TINY_OP_ADD, i, k);
  TinyNode *load_sources[] = { parse (graph, "param.f32{slot=0, shape=[80]}"), at };
  TinyNode *load
      = tiny_node_new (graph, TINY_OP_LOAD, TINY_DTYPE_F32, 1, 2, load_sources, 0, NULL, NULL);
  TinyNode *reduce_sources[] = { load, k };
  TinyNode *reduce = tiny_node_new (graph, TINY_OP_REDUCE, TINY_DTYPE_F32, 1, 2, reduce_sources,
                                    TINY_OP_ADD, NULL, NULL);
  TinyNode *end = tiny_node_new (graph, TINY_OP_END, TINY_DTYPE_VOID, 1, 1, &k, 0, NULL, NULL);
  TinyNode *after_sources[] = { i, end };
  TinyNode *after = tiny_node_new (graph, TINY_OP_AFTER, TINY_DTYPE_INDEX, 1, 2, after_sources,
                                   0, NULL, NULL);
  g_assert_cmpuint (count_ranges (graph, load), ==, 2);
  g_assert_true (tiny_node_depends_on (graph, load, k));
  g_assert_cmpuint (count_ranges (graph, reduce), ==, 1);
  g_assert_true (tiny_node_depends_on (graph, reduce, i));
  g_assert_false (tiny_node_depends_on (graph, reduce, k));
  g_assert_cmpuint (count_ranges (graph, after), ==, 1);
  g_assert_cmpuint (count_ranges (graph, load_sources[0]), ==, 0);
  g_assert_cmpuint (count_ranges (graph, i), ==, 1);
  /* Asked again: the same memo. */
  guint n, m;
  g_assert_true (tiny_node_get_ranges (graph, at, &n)
                 == tiny_node_get_ranges (graph, load, &m));
  g_assert_cmpuint (n, ==, m);
}

static void
test_range_fields (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *range = tiny_node_range_const (graph, G_MAXUINT32, TINY_RANGE_LANES, 8);
  g_assert_cmpuint (tiny_range_get_number (range), ==, G_MAXUINT32);
  g_assert_cmpint (tiny_range_get_kind (range), ==, TINY_RANGE_LANES);
  g_assert_cmpint (tiny_range_get_extent (range), ==, 8);
  g_assert_true (parse (graph, "range.index{number=4294967295, kind=lanes}(8)") == range);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ir/graph/consing", test_consing);
  g_test_add_func ("/ir/graph/growth", test_growth);
  g_test_add_func ("/ir/graph/toposort", test_toposort);
  g_test_add_func ("/ir/graph/substitute", test_substitute);
  g_test_add_func ("/ir/graph/import", test_import);
  g_test_add_func ("/ir/graph/digest", test_digest);
  g_test_add_func ("/ir/graph/ranges", test_ranges);
  g_test_add_func ("/ir/graph/range-fields", test_range_fields);
  return g_test_run ();
}
