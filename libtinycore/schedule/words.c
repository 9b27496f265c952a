/* SPDX-License-Identifier: MIT
 *
 * words.c: kernels whose results a target can store in whole words only.
 *
 * Where bytes are stored four at a time (codegen/words.c), the fastest loops of an output that make
 * up whole words become one. What such a loop had of its own, a row's maximum or the memory of a
 * row, it has no longer: it would be computed for each element. */
#include "schedule/plan.h"

enum { MAX_LOOPS = 64 };

gboolean
schedule_stores_in_words (const ScheduleMachine *machine, TinyDType dtype)
{
  return tiny_dtype_get_n_bytes (dtype) < 4
         && (machine->dtypes_storage & TINY_DTYPE_BIT (dtype)) == 0;
}

/* The loops whose rounds make up the words of @store, the fastest first. Returns how many. */
static guint
find_word_loops (Plan *plan, TinyNode *store, TinyNode **out)
{
  const Affine *index = affine_read (&plan->affines, store->sources[1]);
  gint64 per_word = 4 / (gint64) tiny_dtype_get_n_bytes (store->sources[0]->dtype),
         muls[MAX_LOOPS];
  guint n = 0;
  if (index == NULL || index->n > MAX_LOOPS)
    return 0;
  for (guint i = 0; i < index->n; i++) {
    guint at = n++;
    if (index->terms[i].atom->op != TINY_OP_RANGE)
      return 0;
    for (; at > 0 && muls[at - 1] > index->terms[i].mul; at--) {
      muls[at] = muls[at - 1];
      out[at] = out[at - 1];
    }
    muls[at] = index->terms[i].mul;
    out[at] = index->terms[i].atom;
  }
  gint64 n_elements = 1;
  for (guint i = 0; i < n; i++) {
    if (n_elements % per_word == 0)
      return i;
    n_elements *= tiny_range_get_extent (out[i]);
  }
  return n;
}

/* Whether @node, a REDUCE or LOCAL, belongs to some of the loops and not to all. */
static gboolean
is_of_some (Plan *plan, TinyNode *node, TinyNode *const *loops, guint n)
{
  guint n_own = 0;
  for (guint i = 0; i < n; i++)
    n_own += tiny_node_depends_on (plan->graph, node, loops[i]);
  return n_own > 0 && (n_own < n || node->op == TINY_OP_LOCAL);
}

gboolean
schedule_keeps_words (Plan *plan, const char *device, TinyNode *kernel)
{
  const ScheduleMachine machine = schedule_get_machine (plan, device);
  for (guint i = 0; i < kernel->n_sources; i++) {
    TinyNode *store = kernel->sources[i], *loops[MAX_LOOPS];
    if (store->sources[0]->op != TINY_OP_PARAM
        || !schedule_stores_in_words (&machine, store->sources[0]->dtype))
      continue;
    guint n = find_word_loops (plan, store, loops);
    const GPtrArray *order = schedule_list_nodes (plan, kernel);
    for (guint j = 0; j < order->len; j++) {
      TinyNode *node = order->pdata[j];
      if ((node->op == TINY_OP_REDUCE || node->op == TINY_OP_LOCAL)
          && is_of_some (plan, node, loops, n))
        return FALSE;
    }
  }
  return TRUE;
}
