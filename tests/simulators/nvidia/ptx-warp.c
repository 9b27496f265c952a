/* SPDX-License-Identifier: MIT
 *
 * ptx-warp.c: runs the instructions of a warp: its frames of functions, and the paths of lanes that branches parted.
 *
 * The innermost path runs until it comes to where it joins the one below. The side of a branch that runs first is drawn, so
 * that what relies on either is found. */
#include "ptx-warp.h"
#include "ptx-run.h"
#include <string.h>

/* ---- frames ---- */

static guint64
entry_value (const PtxWarp *warp, const PtxEntryValue *entry, guint lane)
{
  const PtxBlock *block = warp->block;
  const PtxLaunch *launch = block->grid->launch;
  const guint32 *size = launch->block;
  guint32 thread = warp->index * PTX_N_LANES + lane, bit = 1u << lane;
  const guint32 tid[3]
      = { thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1] };
  switch ((PtxEntry) entry->what) {
  case PTX_ENTRY_TID:
    return tid[entry->dimension];
  case PTX_ENTRY_NTID:
    return size[entry->dimension];
  case PTX_ENTRY_CTAID:
    return block->index[entry->dimension];
  case PTX_ENTRY_NCTAID:
    return launch->grid[entry->dimension];
  case PTX_ENTRY_LANEID:
    return lane;
  case PTX_ENTRY_WARPID:
    return warp->index;
  case PTX_ENTRY_NWARPID:
    return block->n_warps;
  case PTX_ENTRY_LANEMASK_EQ:
    return bit;
  case PTX_ENTRY_LANEMASK_LT:
    return bit - 1;
  case PTX_ENTRY_LANEMASK_LE:
    return bit | (bit - 1);
  case PTX_ENTRY_LANEMASK_GT:
    return ~(bit | (bit - 1));
  case PTX_ENTRY_LANEMASK_GE:
    return ~(bit - 1);
  case PTX_ENTRY_SMID:
    return block->number % 132;
  case PTX_ENTRY_NSMID:
    return 132;
  case PTX_ENTRY_GRIDID:
  case PTX_ENTRY_ZERO:
    return 0;
  case PTX_ENTRY_CLOCK:
    return (guint64) g_get_monotonic_time () * 1000;
  case PTX_ENTRY_ONE:
    return 1;
  case PTX_ENTRY_DYNAMIC_SHARED:
    return PTX_SHARED_START + block->grid->n_shared - launch->n_dynamic_shared;
  case PTX_ENTRY_DYNAMIC_SIZE:
    return launch->n_dynamic_shared;
  case PTX_ENTRY_LOCAL:
    return PTX_LOCAL_START + warp->frames[warp->n_frames - 1].n_local + entry->value;
  }
  return 0;
}

static void
fill_entries (PtxWarp *warp, const PtxFunction *function)
{
  for (guint i = 0; i < function->entries->len; i++) {
    const PtxEntryValue *entry = &g_array_index (function->entries, PtxEntryValue, i);
    for (guint lane = 0; lane < PTX_N_LANES; lane++)
      warp->registers[(gsize) entry->index * PTX_N_LANES + lane]
          = entry_value (warp, entry, lane);
  }
}

/* Poisoned registers for the frame of a depth, kept for the next one there. */
static guint64 *
take_registers (PtxWarp *warp, guint depth, guint64 n)
{
  if (depth >= warp->spare->len)
    g_ptr_array_add (warp->spare, NULL);
  if (warp->spare_sizes[depth] < n || warp->spare->pdata[depth] == NULL) {
    g_free (warp->spare->pdata[depth]);
    warp->spare->pdata[depth] = g_new (guint64, MAX (n, 1));
    warp->spare_sizes[depth] = n;
  }
  guint64 *registers = warp->spare->pdata[depth], poison = ptx_random (&warp->block->random);
  for (guint64 i = 0; i < n; i++)
    registers[i] = poison;
  return registers;
}

static void
grow_local (PtxWarp *warp, guint64 n_bytes)
{
  if (n_bytes <= warp->local_stride)
    return;
  guint64 stride = MAX (n_bytes, 2 * warp->local_stride);
  guint8 *local = g_malloc (stride * PTX_N_LANES);
  memset (local, 0xa5, stride * PTX_N_LANES);
  for (guint lane = 0; lane < PTX_N_LANES && warp->local_stride > 0; lane++)
    memcpy (local + lane * stride, warp->local + lane * warp->local_stride, warp->local_stride);
  g_free (warp->local);
  warp->local = local;
  warp->local_stride = stride;
}

static void
push_frame (PtxWarp *warp, const PtxFunction *function, const PtxInstr *call, guint32 mask)
{
  const PtxFrame *below = warp->n_frames > 0 ? &warp->frames[warp->n_frames - 1] : NULL;
  guint64 n_local
      = below != NULL ? (below->n_local + below->function->n_local + 15) & ~(guint64) 15 : 0;
  guint64 *registers
      = take_registers (warp, warp->n_frames, (guint64) function->n_registers * PTX_N_LANES);
  grow_local (warp, n_local + function->n_local);
  PtxFrame *frame = &warp->frames[warp->n_frames++];
  frame->function = function;
  frame->call = call;
  frame->registers = warp->registers = registers;
  frame->n_local = n_local;
  frame->mask = mask;
  frame->n_paths = 1;
  frame->paths[0] = (PtxPath){ 0, function->instrs->len, mask };
  fill_entries (warp, function);
}

static guint8 *
slot_at (const PtxWarp *warp, const PtxFrame *frame, guint lane, guint64 offset)
{
  return warp->local + lane * warp->local_stride + frame->n_local + offset;
}

/* Bytes between the caller's slots and those of the function that was called. */
static void
copy_slots (PtxWarp *warp, const PtxFrame *inner, gboolean is_results, guint32 mask)
{
  const PtxFrame *outer = inner - 1;
  const PtxInstr *call = inner->call;
  guint first = is_results ? 0 : call->start[1],
        end = is_results ? call->start[1] : call->start[2];
  GArray *slots = is_results ? inner->function->results : inner->function->params;
  for (guint i = first; i < end; i++) {
    const PtxSlot *slot = &g_array_index (slots, PtxSlot, i - first);
    for (guint lane = 0; lane < PTX_N_LANES; lane++)
      if (mask >> lane & 1) {
        guint8 *mine = slot_at (warp, inner, lane, slot->offset),
               *theirs = slot_at (warp, outer, lane, call->operands[i].offset);
        memcpy (is_results ? theirs : mine, is_results ? mine : theirs, slot->n_bytes);
      }
  }
}

static void
pop_frame (PtxWarp *warp)
{
  PtxFrame *frame = &warp->frames[warp->n_frames - 1];
  if (frame->call != NULL)
    copy_slots (warp, frame, TRUE, frame->mask & warp->live);
  warp->n_frames--;
  warp->registers = warp->n_frames > 0 ? warp->frames[warp->n_frames - 1].registers : NULL;
  if (warp->n_frames == 0)
    warp->state = PTX_DONE;
}

void
ptx_run_call (PtxWarp *warp, const PtxInstr *instr)
{
  if (warp->n_frames == PTX_MAX_FRAMES) {
    ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_LAUNCH, 0,
               "functions call one another more than %d deep", PTX_MAX_FRAMES);
    return;
  }
  push_frame (warp, instr->callee, instr, warp->active);
  copy_slots (warp, &warp->frames[warp->n_frames - 1], FALSE, warp->active);
}

/* ---- paths ---- */

static void
push_path (PtxWarp *warp, const PtxInstr *instr, guint32 pc, guint32 reconverge, guint32 mask)
{
  PtxFrame *frame = &warp->frames[warp->n_frames - 1];
  if (pc == reconverge || mask == 0)
    return;
  if (frame->n_paths == PTX_MAX_PATHS)
    ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_LAUNCH, 0, "lanes are on more than %d paths",
               PTX_MAX_PATHS);
  else
    frame->paths[frame->n_paths++] = (PtxPath){ pc, reconverge, mask };
}

/* Lanes that go to @target part from those that go on, which are all that are present but not active. */
static void
part (PtxWarp *warp, const PtxInstr *instr, guint32 target)
{
  PtxFrame *frame = &warp->frames[warp->n_frames - 1];
  PtxPath *path = &frame->paths[frame->n_paths - 1];
  guint32 taken = warp->active, rest = warp->present & ~taken, next = path->pc;
  if (rest == 0) {
    path->pc = target;
  } else if (taken != 0) {
    gboolean is_same = path->reconverge == instr->reconverge && frame->n_paths > 1;
    path->pc = instr->reconverge;
    frame->n_paths -= is_same;
    gboolean is_swapped = ptx_random (&warp->block->random) & 1;
    push_path (warp, instr, is_swapped ? target : next, instr->reconverge,
               is_swapped ? taken : rest);
    push_path (warp, instr, is_swapped ? next : target, instr->reconverge,
               is_swapped ? rest : taken);
  }
}

void
ptx_run_branch (PtxWarp *warp, const PtxInstr *instr)
{
  part (warp, instr, instr->target);
}

void
ptx_run_return (PtxWarp *warp, const PtxInstr *instr)
{
  part (warp, instr, warp->frames[warp->n_frames - 1].function->instrs->len);
}

void
ptx_run_exit (PtxWarp *warp, const PtxInstr *instr)
{
  (void) instr;
  warp->live &= ~warp->active;
}

void
ptx_run_trap (PtxWarp *warp, const PtxInstr *instr)
{
  if (warp->active != 0)
    ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_INSTRUCTION, 0, "the kernel ends itself");
}

/* ---- running ---- */

static gboolean
is_always_run (PtxRun run)
{
  return run == ptx_run_branch || run == ptx_run_return;
}

static guint32
guarded (const PtxWarp *warp, const PtxInstr *instr, guint32 mask)
{
  const guint64 *lanes = ptx_lanes (warp, &instr->guard);
  guint32 is_true = 0;
  for (guint lane = 0; lane < PTX_N_LANES; lane++)
    is_true |= (guint32) (lanes[lane] & 1) << lane;
  return mask & (instr->guard.is_negated ? ~is_true : is_true);
}

/* The next instruction, or the end of a path or frame: FALSE when the warp stops. */
static gboolean
step (PtxWarp *warp)
{
  PtxFrame *frame = &warp->frames[warp->n_frames - 1];
  PtxPath *path = &frame->paths[frame->n_paths - 1];
  guint32 mask = path->mask & warp->live;
  if (path->pc == path->reconverge || mask == 0) {
    if (--frame->n_paths == 0)
      pop_frame (warp);
    return warp->state == PTX_READY;
  }
  const PtxInstr *instr = &g_array_index (frame->function->instrs, PtxInstr, path->pc);
  path->pc++;
  warp->present = mask;
  warp->active = instr->has_guard ? guarded (warp, instr, mask) : mask;
  if (warp->active != 0 || is_always_run (instr->run))
    instr->run (warp, instr);
  return warp->state == PTX_READY;
}

guint64
ptx_warp_run (PtxWarp *warp, guint64 n_steps)
{
  guint64 n = 0;
  while (n < n_steps) {
    n++;
    if (!step (warp) || ptx_is_failed (warp))
      break;
  }
  return n;
}

void
ptx_warp_start (PtxWarp *warp, guint32 lanes)
{
  if (warp->frames == NULL) {
    warp->frames = g_new (PtxFrame, PTX_MAX_FRAMES);
    warp->spare = g_ptr_array_new_with_free_func (g_free);
    warp->copies = g_array_new (FALSE, FALSE, sizeof (PtxCopy));
  }
  if (warp->local != NULL)
    memset (warp->local, 0xa5, warp->local_stride * PTX_N_LANES);
  warp->live = lanes;
  warp->state = PTX_READY;
  warp->n_frames = 0;
  warp->carry = 0;
  warp->copy_group = 0;
  g_array_set_size (warp->copies, 0);
  push_frame (warp, warp->block->grid->kernel, NULL, lanes);
}

void
ptx_warp_clear (PtxWarp *warp)
{
  g_free (warp->frames);
  g_free (warp->local);
  g_clear_pointer (&warp->spare, g_ptr_array_unref);
  g_clear_pointer (&warp->copies, g_array_unref);
}
