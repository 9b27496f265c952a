/* SPDX-License-Identifier: MIT
 *
 * tiny-simplify.c: the symbolic tables as two sets, compiled at first use. */
#include "rewrite/tiny-simplify.h"

const TinyRuleTable *const tiny_rule_tables[] = { &tiny_rules_simple,
                                                  &tiny_rules_algebra,
                                                  &tiny_rules_divmod,
                                                  &tiny_rules_compare,
                                                  &tiny_rules_valid,
                                                  &tiny_rules_reduce,
                                                  NULL };

enum { N_INDEX_TABLES = 4 };

static const TinyRuleSet *
compile (guint n)
{
  g_autoptr (GError) error = NULL;
  TinyRuleSet *set = tiny_rule_set_new (tiny_rule_tables, n, &error);
  if (set == NULL)
    g_critical ("%s", error->message);
  g_assert (set != NULL); /* a test loads every table */
  return set;
}

const TinyRuleSet *
tiny_simplify_set (void)
{
  static gsize set = 0;
  if (g_once_init_enter (&set))
    g_once_init_leave (&set, (gsize) compile (G_N_ELEMENTS (tiny_rule_tables) - 1));
  return (const TinyRuleSet *) set;
}

const TinyRuleSet *
tiny_simplify_index_set (void)
{
  static gsize set = 0;
  if (g_once_init_enter (&set))
    g_once_init_leave (&set, (gsize) compile (N_INDEX_TABLES));
  return (const TinyRuleSet *) set;
}

TinyNode *
tiny_simplify (TinyGraph *graph, TinyNode *node)
{
  return tiny_rewrite (graph, node, tiny_simplify_set (), NULL);
}

TinyNode *
tiny_simplify_index (TinyGraph *graph, TinyNode *node)
{
  return tiny_rewrite (graph, node, tiny_simplify_index_set (), NULL);
}
