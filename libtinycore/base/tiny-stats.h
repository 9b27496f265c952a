/* SPDX-License-Identifier: MIT
 *
 * tiny-stats.h: what compiling costs in things that can be counted, and so compared between
 * commits whatever else the machine does.
 *
 * Every thread counts in a block of its own, so that counting is an addition and no two cores
 * share a line; reading sums the blocks. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Only guint64 fields. */
typedef struct {
  guint64 n_graphs;      /* pools of nodes opened */
  guint64 n_nodes_asked; /* calls of tiny_node_new () */
  guint64 n_nodes;       /* … that made one */
  guint64 n_listed;      /* nodes in orders of a graph's nodes that were made */
  guint64 n_arena_bytes; /* handed out by arenas */
  guint64 n_map_entries; /* places in maps of nodes */
  guint64 n_looks; /* of searches over a schedule's kernels and temporaries, at one of them */
  guint64 n_rule_visits; /* nodes shown to a rule set */
  guint64 n_rule_tries;  /* forms of rules matched against one */
  guint64 n_rule_hits;   /* … that fired */
} TinyStats;

/* Adds to a field of this thread's block. */
#define TINY_COUNT(field, amount)                                                              \
  tiny_stats_add (&tiny_stats_of_thread ()->field, (guint64) (amount))

extern __thread TinyStats *tiny_stats_block __attribute__ ((tls_model ("initial-exec")));
TinyStats *tiny_stats_begin_block (void);

static inline TinyStats *
tiny_stats_of_thread (void)
{
  return G_LIKELY (tiny_stats_block != NULL) ? tiny_stats_block : tiny_stats_begin_block ();
}

/* The only writer; readers may be on other threads. */
static inline void
tiny_stats_add (guint64 *field, guint64 amount)
{
  __atomic_store_n (field, *field + amount, __ATOMIC_RELAXED);
}

/* The sum over all threads since the process began. Exact once the others are idle. */
void tiny_stats_get (TinyStats *out);
/* What was added since @before was got. */
void tiny_stats_since (const TinyStats *before, TinyStats *out);

G_END_DECLS
