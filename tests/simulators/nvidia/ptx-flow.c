/* SPDX-License-Identifier: MIT
 *
 * ptx-flow.c: where the lanes that a branch parts meet again.
 *
 * Immediate post-dominators of instructions by Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001), over
 * the reversed graph: an instruction is followed by the next one and by its target; the function's end is the root. */
#include "ptx-program.h"
#include "ptx-run.h"

enum { NONE = G_MAXUINT32 };

typedef struct {
  guint32 n; /* instructions; the end is the n-th place */
  const PtxInstr *instrs;
  guint32 *order; /* of a place in a walk from the end backwards: lower is nearer to the end */
  guint32 *by_order; /* places */
  guint32 *dominator;
  guint32 n_reached;
} Flow;

static gboolean
is_end (const PtxInstr *instr)
{
  return instr->run == ptx_run_return || instr->run == ptx_run_exit
         || instr->run == ptx_run_trap;
}

/* The places behind an instruction: up to two. */
static guint
successors (const Flow *flow, guint32 place, guint32 out[2])
{
  const PtxInstr *instr = &flow->instrs[place];
  guint n = 0;
  if (instr->run == ptx_run_branch)
    out[n++] = instr->target;
  else if (is_end (instr))
    out[n++] = flow->n;
  if (n == 0 || instr->has_guard)
    out[n++] = place + 1;
  return n;
}

/* Edges backwards: those to place i are at edges[first[i]] … edges[first[i + 1]]. */
static void
collect_predecessors (const Flow *flow, guint32 *first, guint32 *edges)
{
  guint32 next[2];
  for (guint32 i = 0; i < flow->n; i++)
    for (guint j = successors (flow, i, next); j-- > 0;)
      first[next[j] + 1]++;
  for (guint32 i = 0; i <= flow->n; i++)
    first[i + 1] += first[i];
  g_autofree guint32 *fill = g_memdup2 (first, sizeof (guint32) * (flow->n + 2));
  for (guint32 i = 0; i < flow->n; i++)
    for (guint j = successors (flow, i, next); j-- > 0;)
      edges[fill[next[j]]++] = i;
}

/* Numbers places in the order in which a walk from the end leaves them, the end last. */
static void
number_places (Flow *flow, const guint32 *first, const guint32 *edges)
{
  g_autofree guint32 *stack = g_new (guint32, flow->n + 1),
                     *at = g_memdup2 (first, sizeof (guint32) * (flow->n + 2));
  g_autofree guint8 *is_seen = g_new0 (guint8, flow->n + 1);
  guint32 n_stack = 0;
  stack[n_stack++] = flow->n;
  is_seen[flow->n] = TRUE;
  while (n_stack > 0) {
    guint32 place = stack[n_stack - 1];
    if (at[place] == first[place + 1]) {
      flow->order[place] = flow->n_reached;
      flow->by_order[flow->n_reached++] = place;
      n_stack--;
    } else {
      guint32 next = edges[at[place]++];
      if (!is_seen[next])
        stack[n_stack++] = next;
      is_seen[next] = TRUE;
    }
  }
}

static guint32
meet (const Flow *flow, guint32 a, guint32 b)
{
  while (a != b) {
    while (flow->order[a] < flow->order[b])
      a = flow->dominator[a];
    while (flow->order[b] < flow->order[a])
      b = flow->dominator[b];
  }
  return a;
}

static guint32
dominator_of (const Flow *flow, guint32 place)
{
  guint32 next[2], found = NONE;
  for (guint j = successors (flow, place, next); j-- > 0;)
    if (flow->order[next[j]] != NONE && flow->dominator[next[j]] != NONE)
      found = found == NONE ? next[j] : meet (flow, found, next[j]);
  return found;
}

static void
find_dominators (Flow *flow)
{
  flow->dominator[flow->n] = flow->n;
  for (gboolean is_changed = TRUE; is_changed;) {
    is_changed = FALSE;
    for (guint32 i = flow->n_reached - 1; i-- > 0;) {
      guint32 place = flow->by_order[i], dominator = dominator_of (flow, place);
      is_changed |= flow->dominator[place] != dominator;
      flow->dominator[place] = dominator;
    }
  }
}

void
ptx_find_reconvergence (PtxFunction *function)
{
  guint32 n = function->instrs->len;
  g_autofree guint32 *first = g_new0 (guint32, n + 3), *edges = g_new (guint32, 2 * n + 1);
  g_autofree guint32 *order = g_new (guint32, n + 1), *by_order = g_new0 (guint32, n + 1),
                     *dominator = g_new (guint32, n + 1);
  Flow flow = { n, (const PtxInstr *) function->instrs->data, order, by_order, dominator, 0 };
  for (guint32 i = 0; i <= n; i++)
    order[i] = dominator[i] = NONE;
  collect_predecessors (&flow, first, edges);
  number_places (&flow, first, edges);
  find_dominators (&flow);
  for (guint32 i = 0; i < n; i++)
    g_array_index (function->instrs, PtxInstr, i).reconverge
        = dominator[i] != NONE ? dominator[i] : n;
}
