/* SPDX-License-Identifier: MIT
 *
 * test-stats.c: counters add up over threads, those that ended too, and count what happens. */
#include "base/tiny-stats.h"

#include "ir/tiny-node.h"
#include "rewrite/tiny-simplify.h"

enum { N_THREADS = 4, N_ADDED = 1000 };

static gpointer
add_some (gpointer unused)
{
  for (guint i = 0; i < N_ADDED; i++)
    TINY_COUNT (n_graphs, 3);
  return NULL;
}

static void
test_threads (void)
{
  TinyStats before, added;
  GThread *threads[N_THREADS];
  tiny_stats_get (&before);
  for (guint i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("count", add_some, NULL);
  add_some (NULL);
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  tiny_stats_since (&before, &added);
  g_assert_cmpuint (added.n_graphs, ==, 3 * (N_THREADS + 1) * N_ADDED);
  g_assert_cmpuint (added.n_nodes, ==, 0);
}

/* A graph says how many nodes it was asked for and made; a rule that fires is a try and a hit. */
static void
test_graph (void)
{
  TinyStats before, added;
  tiny_simplify_set ();
  tiny_stats_get (&before);
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *x = tiny_node_const_index (graph, 7);
  g_assert_true (tiny_node_const_index (graph, 7) == x);
  TinyNode *sum = tiny_node_binary (graph, TINY_OP_ADD, x, tiny_node_const_index (graph, 5));
  tiny_stats_since (&before, &added);
  g_assert_cmpuint (added.n_graphs, ==, 1);
  g_assert_cmpuint (added.n_nodes, ==, 3);
  g_assert_cmpuint (added.n_nodes_asked, ==, 4);
  g_assert_cmpuint (added.n_arena_bytes, ==,
                    tiny_graph_get_n_bytes (graph)
                        - 256 * (sizeof (gpointer) + sizeof (guint32)));
  g_assert_cmpuint (added.n_rule_visits, ==, 0);

  tiny_stats_get (&before);
  g_assert_cmpint (tiny_simplify (graph, sum)->arg, ==, 12);
  tiny_stats_since (&before, &added);
  g_assert_cmpuint (added.n_rule_visits, ==, 4); /* 7, 5, their sum, 12 */
  g_assert_cmpuint (added.n_rule_hits, ==, 1);
  g_assert_cmpuint (added.n_rule_tries, >=, 1);
  tiny_graph_free (graph);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/stats/threads", test_threads);
  g_test_add_func ("/base/stats/graph", test_graph);
  return g_test_run ();
}
