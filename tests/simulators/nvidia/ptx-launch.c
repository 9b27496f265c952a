/* SPDX-License-Identifier: MIT
 *
 * ptx-launch.c: blocks over threads of the host, and the warps of a block in an order that a seed draws.
 *
 * A warp runs to the next barrier, or for a drawn number of instructions: where another warp relies on work that no barrier
 * orders, some seed shows it. Blocks are drawn as well. A block's memory and warps serve the next one. */
#include "ptx-warp.h"
#include <string.h>

enum { LONG_SLICE = 100000, SHORT_SLICE = 64 };
#define DEFAULT_STEPS ((guint64) 1 << 31)

/* splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014) */
guint64
ptx_random (guint64 *state)
{
  guint64 z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

gboolean
ptx_is_failed (const PtxWarp *warp)
{
  return __atomic_load_n (&warp->block->grid->is_failed, __ATOMIC_RELAXED) != 0;
}

static void
set_fault (PtxGrid *grid, const PtxFault *fault)
{
  g_mutex_lock (&grid->lock);
  if (!grid->is_failed)
    *grid->fault = *fault;
  __atomic_store_n (&grid->is_failed, 1, __ATOMIC_RELAXED);
  g_mutex_unlock (&grid->lock);
}

void
ptx_fault (PtxWarp *warp,
           const PtxInstr *instr,
           guint lane,
           int code,
           guint64 address,
           const char *format,
           ...)
{
  const PtxBlock *block = warp->block;
  PtxFault fault = { code, address, "" };
  char what[160];
  va_list arguments;
  va_start (arguments, format);
  g_vsnprintf (what, sizeof what, format, arguments);
  va_end (arguments);
  g_snprintf (fault.text, sizeof fault.text,
              "kernel %.60s, line %u, block %u %u %u, thread %u: %s", block->grid->kernel->name,
              instr != NULL ? instr->line : 0, block->index[0], block->index[1],
              block->index[2], warp->index * PTX_N_LANES + (lane == G_MAXUINT ? 0 : lane),
              what);
  set_fault (block->grid, &fault);
}

/* ---- barriers ---- */

static guint
n_live (const PtxBlock *block)
{
  guint n = 0;
  for (guint i = 0; i < block->n_warps; i++)
    n += block->warps[i].state != PTX_DONE;
  return n;
}

/* The result of a barrier that reduces, to all lanes of the warps that it lets go. */
static guint64
vote_of (const PtxBarrier *barrier, guint8 mode)
{
  if (mode == PTX_MODE_popc)
    return barrier->n_true;
  return mode == PTX_MODE_and ? barrier->n_true == barrier->n_votes : barrier->n_true > 0;
}

static void
release (PtxBlock *block, guint number)
{
  PtxBarrier *barrier = &block->barriers[number];
  for (guint i = 0; i < block->n_warps; i++) {
    PtxWarp *warp = &block->warps[i];
    if (warp->state != PTX_WAITING || warp->barrier != number)
      continue;
    warp->state = PTX_READY;
    for (guint lane = 0; lane < PTX_N_LANES && warp->vote_result != NULL; lane++)
      warp->vote_result[lane] = vote_of (barrier, warp->vote_mode);
    warp->vote_result = NULL;
  }
  block->epoch += barrier->n_wanted == 0;
  *barrier = (PtxBarrier){ 0 };
}

/* Lets go where all that are waited for are there. */
static gboolean
release_some (PtxBlock *block)
{
  gboolean is_released = FALSE;
  for (guint i = 0; i < PTX_N_BARRIERS; i++) {
    const PtxBarrier *barrier = &block->barriers[i];
    guint wanted = barrier->n_wanted != 0 ? barrier->n_wanted : n_live (block);
    if (barrier->n_arrived == 0 || barrier->n_arrived < wanted)
      continue;
    release (block, i);
    is_released = TRUE;
  }
  return is_released;
}

static void
fault_of_barrier (PtxBlock *block)
{
  for (guint i = 0; i < PTX_N_BARRIERS; i++) {
    const PtxBarrier *barrier = &block->barriers[i];
    if (barrier->n_arrived > 0)
      ptx_fault (&block->warps[0], NULL, G_MAXUINT, PTX_FAULT_LAUNCH, 0,
                 "barrier %u waits for ever: %u warps came, %u are wanted", i,
                 barrier->n_arrived,
                 barrier->n_wanted != 0 ? barrier->n_wanted : n_live (block));
  }
}

/* ---- a block ---- */

static guint32
lanes_of (const PtxLaunch *launch, guint warp)
{
  guint64 n = (guint64) launch->block[0] * launch->block[1] * launch->block[2]
              - (guint64) warp * PTX_N_LANES;
  return n >= PTX_N_LANES ? G_MAXUINT32 : (1u << n) - 1;
}

static void
start_block (PtxBlock *block, guint64 number)
{
  const PtxLaunch *launch = block->grid->launch;
  block->number = number;
  block->index[0] = number % launch->grid[0];
  block->index[1] = number / launch->grid[0] % launch->grid[1];
  block->index[2] = number / launch->grid[0] / launch->grid[1];
  block->random = launch->seed ^ (number + 1) * 0xd1342543de82ef95;
  block->epoch = 1;
  memset (block->barriers, 0, sizeof block->barriers);
  memset (block->shared, (int) (ptx_random (&block->random) | 0x81), block->grid->n_shared);
  if (block->shadow != NULL)
    memset (block->shadow, 0, sizeof (PtxShadow) * block->grid->n_shared);
  for (guint i = 0; i < block->n_warps; i++)
    ptx_warp_start (&block->warps[i], lanes_of (launch, i));
}

/* A warp that can run, drawn; NULL where none can. */
static PtxWarp *
draw_warp (PtxBlock *block)
{
  guint n = 0;
  for (guint i = 0; i < block->n_warps; i++)
    n += block->warps[i].state == PTX_READY;
  guint64 drawn = n > 0 ? ptx_random (&block->random) % n : 0;
  for (guint i = 0; i < block->n_warps; i++)
    if (block->warps[i].state == PTX_READY && drawn-- == 0)
      return &block->warps[i];
  return NULL;
}

static void
count_steps (PtxBlock *block, guint64 n)
{
  PtxGrid *grid = block->grid;
  if (__atomic_add_fetch (&grid->n_steps, n, __ATOMIC_RELAXED) > grid->max_steps)
    ptx_fault (&block->warps[0], NULL, G_MAXUINT, PTX_FAULT_TIMEOUT, 0,
               "more than %" G_GUINT64_FORMAT " instructions: does it loop for ever?",
               grid->max_steps);
}

static void
run_block (PtxBlock *block)
{
  gboolean is_short = ptx_random (&block->random) & 1;
  while (!block->grid->is_failed) {
    PtxWarp *warp = draw_warp (block);
    if (warp != NULL) {
      guint64 slice = is_short ? 1 + ptx_random (&block->random) % SHORT_SLICE : LONG_SLICE;
      count_steps (block, ptx_warp_run (warp, slice));
    } else if (n_live (block) == 0) {
      return;
    }
    if (!release_some (block) && warp == NULL)
      fault_of_barrier (block);
  }
}

static gpointer
run_blocks (gpointer data)
{
  PtxGrid *grid = data;
  const PtxLaunch *launch = grid->launch;
  guint64 n_threads = (guint64) launch->block[0] * launch->block[1] * launch->block[2];
  PtxBlock block = { .grid = grid, .n_warps = (n_threads + PTX_N_LANES - 1) / PTX_N_LANES };
  g_autofree guint8 *shared = block.shared = g_malloc (MAX (grid->n_shared, 1));
  g_autofree PtxShadow *shadow = block.shadow
      = launch->is_checked ? g_new0 (PtxShadow, MAX (grid->n_shared, 1)) : NULL;
  g_autofree PtxWarp *warps = block.warps = g_new0 (PtxWarp, block.n_warps);
  for (guint i = 0; i < block.n_warps; i++) {
    warps[i].block = &block;
    warps[i].index = i;
  }
  guint64 n;
  /* An odd stride that shares no factor with any number below it visits each block once. */
  guint64 stride = grid->n_blocks % 2654435761 != 0 && launch->seed & 1 ? 2654435761 : 1;
  while (!grid->is_failed
         && (n = __atomic_fetch_add (&grid->next_block, 1, __ATOMIC_RELAXED))
                < grid->n_blocks) {
    start_block (&block, (guint64) ((unsigned __int128) n * stride % grid->n_blocks));
    run_block (&block);
  }
  for (guint i = 0; i < block.n_warps; i++)
    ptx_warp_clear (&warps[i]);
  return NULL;
}

/* ---- a launch ---- */

static gboolean
refuse (PtxFault *fault, const char *kernel, const char *format, guint64 wanted, guint64 found)
{
  char what[128];
  g_snprintf (what, sizeof what, format, wanted, found);
  *fault = (PtxFault){ .code = PTX_FAULT_LAUNCH };
  g_snprintf (fault->text, sizeof fault->text, "kernel %.60s: %s", kernel, what);
  return FALSE;
}

static gboolean
check_launch (const PtxFunction *kernel, const PtxLaunch *launch, PtxFault *fault)
{
  guint64 n_threads = 1, n_blocks = 1;
  for (guint i = 0; i < 3; i++) {
    n_threads *= MIN (launch->block[i], 1 << 16);
    n_blocks *= launch->grid[i] < 1u << 31 ? launch->grid[i] : 0;
  }
  if (!kernel->is_entry || !kernel->is_defined)
    return refuse (fault, kernel->name, "not a kernel", 0, 0);
  if (n_threads == 0 || n_threads > 1024 || n_blocks == 0)
    return refuse (fault, kernel->name,
                   "%" G_GUINT64_FORMAT " threads in %" G_GUINT64_FORMAT " blocks cannot be",
                   n_threads, n_blocks);
  if (launch->n_param_bytes < kernel->info.n_param_bytes)
    return refuse (fault, kernel->name,
                   "%" G_GUINT64_FORMAT " bytes of parameters are wanted, %" G_GUINT64_FORMAT
                   " are there",
                   kernel->info.n_param_bytes, launch->n_param_bytes);
  return TRUE;
}

static void
run_grid (PtxGrid *grid, guint n_threads)
{
  GThread *threads[16];
  guint n = MIN (MIN (n_threads, G_N_ELEMENTS (threads)), grid->n_blocks) - 1;
  for (guint i = 0; i < n; i++)
    threads[i] = g_thread_new ("ptx", run_blocks, grid);
  run_blocks (grid);
  for (guint i = 0; i < n; i++)
    g_thread_join (threads[i]);
}

gboolean
ptx_launch (const PtxFunction *kernel, const PtxLaunch *launch, PtxFault *out_fault)
{
  *out_fault = (PtxFault){ 0 };
  if (!check_launch (kernel, launch, out_fault))
    return FALSE;
  g_autofree guint8 *params = g_memdup2 (launch->params, MAX (launch->n_param_bytes, 1));
  PtxGrid grid = { .kernel = kernel,
                   .launch = launch,
                   .memory = kernel->module->memory,
                   .params = params,
                   .fault = out_fault };
  grid.n_blocks = (guint64) launch->grid[0] * launch->grid[1] * launch->grid[2];
  grid.n_shared = kernel->info.n_shared_bytes;
  if (launch->n_dynamic_shared > 0)
    grid.n_shared = ((grid.n_shared + 15) & ~15u) + launch->n_dynamic_shared;
  grid.max_steps = launch->max_steps != 0 ? launch->max_steps : DEFAULT_STEPS;
  g_mutex_init (&grid.lock);
  run_grid (&grid,
            launch->n_threads != 0 ? launch->n_threads : MIN (g_get_num_processors (), 4));
  g_mutex_clear (&grid.lock);
  return !grid.is_failed;
}
