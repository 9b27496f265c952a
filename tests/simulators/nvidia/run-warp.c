/* SPDX-License-Identifier: MIT
 *
 * run-warp.c: what lanes and warps do together: barriers, shuffles, votes, matches. */
#include "ptx-run.h"
#include "ptx-warp.h"

void
ptx_run_nothing (PtxWarp *warp, const PtxInstr *instr)
{
  (void) warp, (void) instr;
}

/* ---- barriers of the block ---- */

/* The barrier and how many threads are wanted; NULL after a fault. */
static PtxBarrier *
arrive (PtxWarp *warp, const PtxInstr *instr, guint id_group, guint count_group)
{
  guint first = __builtin_ctz (warp->active);
  guint64 id = ptx_source (warp, instr, id_group)[first];
  guint64 n_threads = count_group < instr->n_groups && ptx_n_operands (instr, count_group) > 0
                          ? ptx_source (warp, instr, count_group)[first]
                          : 0;
  if (warp->active != warp->live) {
    ptx_fault (warp, instr, first, PTX_FAULT_LAUNCH, 0,
               "a barrier that only lanes 0x%08x of 0x%08x come to", warp->active, warp->live);
    return NULL;
  }
  if (id >= PTX_N_BARRIERS || n_threads % PTX_N_LANES != 0) {
    ptx_fault (warp, instr, first, PTX_FAULT_INSTRUCTION, 0,
               "barrier %u for %u threads: there are 16, for whole warps", (guint) id,
               (guint) n_threads);
    return NULL;
  }
  PtxBarrier *barrier = &warp->block->barriers[id];
  barrier->n_arrived++;
  barrier->n_wanted = n_threads / PTX_N_LANES;
  warp->barrier = id;
  return barrier;
}

void
ptx_run_bar_sync (PtxWarp *warp, const PtxInstr *instr)
{
  if (arrive (warp, instr, 0, 1) != NULL)
    warp->state = PTX_WAITING;
}

void
ptx_run_bar_arrive (PtxWarp *warp, const PtxInstr *instr)
{
  arrive (warp, instr, 0, 1);
}

void
ptx_run_bar_red (PtxWarp *warp, const PtxInstr *instr)
{
  PtxBarrier *barrier = arrive (warp, instr, 1, G_MAXUINT);
  if (barrier == NULL)
    return;
  PTX_EACH_LANE (warp, lane)
  {
    barrier->n_votes++;
    barrier->n_true += ptx_is_true (warp, ptx_operand (instr, 2), lane);
  }
  const PtxOperand *result = ptx_operand (instr, 0);
  warp->vote_result
      = result->is_sink ? NULL : warp->registers + (gsize) result->index * PTX_N_LANES;
  warp->vote_mode = instr->chosen[PTX_CLASS_MODE];
  warp->state = PTX_WAITING;
}

/* ---- lanes of a warp ---- */

/* The lanes of a member mask, all of which have to be here. */
static gboolean
take_members (PtxWarp *warp, const PtxInstr *instr, guint group, guint32 *out_members)
{
  const guint64 *mask = ptx_source (warp, instr, group);
  guint first = __builtin_ctz (warp->active);
  *out_members = mask[first];
  PTX_EACH_LANE (warp, lane)
  if ((guint32) mask[lane] != *out_members || !(*out_members >> lane & 1)) {
    ptx_fault (warp, instr, lane, PTX_FAULT_LAUNCH, 0, "lane %u is not in its mask 0x%08x",
               lane, (guint32) mask[lane]);
    return FALSE;
  }
  if ((*out_members & warp->live & ~warp->active) != 0) {
    ptx_fault (warp, instr, first, PTX_FAULT_LAUNCH, 0,
               "lanes 0x%08x of the mask 0x%08x are elsewhere",
               *out_members & warp->live & ~warp->active, *out_members);
    return FALSE;
  }
  *out_members &= warp->active;
  return TRUE;
}

/* The lane that @lane reads, and whether that is in its segment. */
static guint
source_lane (guint mode, guint lane, guint32 b, guint32 c, gboolean *out_is_inside)
{
  guint clamp = c & 31, segment = c >> 8 & 31, n = b & 31;
  gint most = (lane & segment) | (clamp & ~segment), from;
  if (mode == PTX_MODE_up)
    from = (gint) lane - (gint) n;
  else if (mode == PTX_MODE_down)
    from = lane + n;
  else if (mode == PTX_MODE_bfly)
    from = lane ^ n;
  else
    from = (lane & segment) | (n & ~segment);
  *out_is_inside = mode == PTX_MODE_up ? from >= most : from <= most;
  return *out_is_inside ? (guint) from : lane;
}

void
ptx_run_shfl (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members;
  guint64 values[PTX_N_LANES], poison = ptx_random (&warp->block->random);
  const guint64 *a = ptx_source (warp, instr, 2), *b = ptx_source (warp, instr, 3),
                *c = ptx_source (warp, instr, 4);
  guint from[PTX_N_LANES];
  gboolean is_inside[PTX_N_LANES];
  if (!take_members (warp, instr, 5, &members))
    return;
  for (guint lane = 0; lane < PTX_N_LANES; lane++) {
    values[lane] = members >> lane & 1 ? a[lane] : poison;
    from[lane]
        = source_lane (instr->chosen[PTX_CLASS_MODE], lane, b[lane], c[lane], &is_inside[lane]);
  }
  PTX_EACH_LANE (warp, lane)
  {
    ptx_put (warp, ptx_operand (instr, 0), lane, ptx_truncate (32, values[from[lane] & 31]));
    ptx_put (warp, ptx_operand (instr, 1), lane, is_inside[lane]);
  }
}

static guint32
votes (const PtxWarp *warp, const PtxOperand *predicate, guint32 members)
{
  guint32 result = 0;
  for (guint lane = 0; lane < PTX_N_LANES; lane++)
    if (members >> lane & 1)
      result |= (guint32) ptx_is_true (warp, predicate, lane) << lane;
  return result;
}

static void
put_all (PtxWarp *warp, const PtxOperand *operand, guint64 value)
{
  PTX_EACH_LANE (warp, lane)
  ptx_put (warp, operand, lane, value);
}

void
ptx_run_vote (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members;
  if (!take_members (warp, instr, 2, &members))
    return;
  guint32 yes = votes (warp, ptx_operand (instr, 1), members);
  guint mode = instr->chosen[PTX_CLASS_MODE];
  gboolean result = mode == PTX_MODE_all   ? yes == members
                    : mode == PTX_MODE_any ? yes != 0
                                           : yes == members || yes == 0;
  put_all (warp, ptx_operand (instr, 0), result);
}

void
ptx_run_ballot (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members;
  if (take_members (warp, instr, 2, &members))
    put_all (warp, ptx_operand (instr, 0), votes (warp, ptx_operand (instr, 1), members));
}

static guint32
equal_lanes (const guint64 *values, guint32 members, guint lane)
{
  guint32 result = 0;
  for (guint i = 0; i < PTX_N_LANES; i++)
    if (members >> i & 1)
      result |= (guint32) (values[i] == values[lane]) << i;
  return result;
}

void
ptx_run_match_any (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members, results[PTX_N_LANES];
  const guint64 *a = ptx_source (warp, instr, 1);
  if (!take_members (warp, instr, 2, &members))
    return;
  PTX_EACH_LANE (warp, lane)
  results[lane] = equal_lanes (a, members, lane);
  PTX_EACH_LANE (warp, lane)
  ptx_put (warp, ptx_operand (instr, 0), lane, results[lane]);
}

void
ptx_run_match_all (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members;
  if (!take_members (warp, instr, 3, &members))
    return;
  gboolean is_same
      = equal_lanes (ptx_source (warp, instr, 2), members, __builtin_ctz (members)) == members;
  put_all (warp, ptx_operand (instr, 0), is_same ? members : 0);
  put_all (warp, ptx_operand (instr, 1), is_same);
}

static guint64
reduced (guint mode, PtxType type, guint64 a, guint64 b)
{
  gint64 x = (gint64) ptx_extend (type, a), y = (gint64) ptx_extend (type, b);
  switch (mode) {
  case PTX_MODE_add:
    return a + b;
  case PTX_MODE_min:
    return (guint64) MIN (x, y);
  case PTX_MODE_max:
    return (guint64) MAX (x, y);
  case PTX_MODE_and:
    return a & b;
  case PTX_MODE_or:
    return a | b;
  default:
    return a ^ b;
  }
}

void
ptx_run_redux (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members;
  const guint64 *a = ptx_source (warp, instr, 1);
  if (!take_members (warp, instr, 2, &members))
    return;
  guint first = __builtin_ctz (members);
  guint64 result = a[first];
  for (guint lane = first + 1; lane < PTX_N_LANES; lane++)
    if (members >> lane & 1)
      result = reduced (instr->chosen[PTX_CLASS_MODE], instr->type[0], result, a[lane]);
  put_all (warp, ptx_operand (instr, 0), ptx_truncate (32, result));
}

void
ptx_run_activemask (PtxWarp *warp, const PtxInstr *instr)
{
  put_all (warp, ptx_operand (instr, 0), warp->active);
}

void
ptx_run_elect (PtxWarp *warp, const PtxInstr *instr)
{
  guint32 members;
  if (!take_members (warp, instr, 2, &members))
    return;
  guint chosen = __builtin_ctz (members);
  PTX_EACH_LANE (warp, lane)
  {
    ptx_put (warp, ptx_operand (instr, 0), lane, chosen);
    ptx_put (warp, ptx_operand (instr, 1), lane, lane == chosen);
  }
}
