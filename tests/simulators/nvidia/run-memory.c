/* SPDX-License-Identifier: MIT
 *
 * run-memory.c: loads, stores, atomic operations and asynchronous copies, with every address checked.
 *
 * A copy is done when it is waited for and not before, so that a missing wait shows. */
#include "ptx-number.h"
#include "ptx-run.h"
#include "ptx-warp.h"
#include <math.h>
#include <string.h>

/* ---- addresses ---- */

static guint8 *
bad_address (PtxWarp *warp,
             const PtxInstr *instr,
             guint lane,
             guint64 address,
             guint n_bytes,
             PtxAccess access,
             const char *why)
{
  ptx_fault (warp, instr, lane, PTX_FAULT_ADDRESS, address,
             "%s %u bytes at 0x%" G_GINT64_MODIFIER "x: %s",
             access == PTX_READ ? "reads" : "writes", n_bytes, address, why);
  return NULL;
}

static gboolean
is_raced (PtxShadow *shadow, guint32 epoch, gint16 warp, PtxAccess access)
{
  gboolean is_read = access == PTX_READ;
  gboolean is_after_write = shadow->write_epoch == epoch && shadow->writer != warp;
  gboolean is_after_read = !is_read && shadow->read_epoch == epoch && shadow->reader != warp;
  if (is_read)
    shadow->reader = shadow->read_epoch == epoch && shadow->reader != warp ? -2 : warp;
  else
    shadow->writer = warp;
  *(is_read ? &shadow->read_epoch : &shadow->write_epoch) = epoch;
  return is_after_write || is_after_read;
}

static void
look_for_race (PtxWarp *warp,
               const PtxInstr *instr,
               guint lane,
               guint64 offset,
               guint n_bytes,
               PtxAccess access)
{
  PtxBlock *block = warp->block;
  if (block->shadow == NULL || access == PTX_ATOMIC)
    return;
  for (guint i = 0; i < n_bytes; i++)
    if (is_raced (&block->shadow[offset + i], block->epoch, warp->index, access)) {
      ptx_fault (warp, instr, lane, PTX_FAULT_LAUNCH, PTX_SHARED_START + offset,
                 "another warp touches byte %u of shared memory with no barrier between",
                 (guint) offset + i);
      return;
    }
}

static guint8 *
at_shared (PtxWarp *warp,
           const PtxInstr *instr,
           guint lane,
           guint64 address,
           guint n_bytes,
           PtxAccess access)
{
  guint64 n = warp->block->grid->n_shared, offset = address - PTX_SHARED_START;
  if (address < PTX_SHARED_START || offset > n || n_bytes > n - offset)
    return bad_address (warp, instr, lane, address, n_bytes, access,
                        "beyond the block's shared memory");
  look_for_race (warp, instr, lane, offset, n_bytes, access);
  return warp->block->shared + offset;
}

static guint8 *
at_local (PtxWarp *warp,
          const PtxInstr *instr,
          guint lane,
          guint64 address,
          guint n_bytes,
          PtxAccess access)
{
  const PtxFrame *frame = &warp->frames[warp->n_frames - 1];
  guint64 n = frame->n_local + frame->function->n_local, offset = address - PTX_LOCAL_START;
  if (address < PTX_LOCAL_START || offset > n || n_bytes > n - offset)
    return bad_address (warp, instr, lane, address, n_bytes, access,
                        "beyond the thread's local memory");
  return warp->local + lane * warp->local_stride + offset;
}

static guint8 *
at_param (PtxWarp *warp,
          const PtxInstr *instr,
          guint lane,
          guint64 address,
          guint n_bytes,
          PtxAccess access)
{
  guint64 n = warp->block->grid->kernel->info.n_param_bytes;
  if (access != PTX_READ || address > n || n_bytes > n - address)
    return bad_address (warp, instr, lane, address, n_bytes, access,
                        "beyond the kernel's parameters, which are read only");
  return warp->block->grid->params + address;
}

static guint8 *
at_global (PtxWarp *warp,
           const PtxInstr *instr,
           guint lane,
           guint64 address,
           guint n_bytes,
           PtxAccess access)
{
  PtxMemory *memory = warp->block->grid->memory;
  guint8 *bytes = ptx_memory_at (memory, address, n_bytes);
  if (bytes != NULL)
    return bytes;
  g_autofree char *why = ptx_memory_explain (memory, address);
  return bad_address (warp, instr, lane, address, n_bytes, access, why);
}

static guint
resolve (guint space, guint64 *address)
{
  static const guint64 windows[] = { PTX_SHARED_WINDOW, PTX_LOCAL_WINDOW, PTX_PARAM_WINDOW };
  static const guint spaces[] = { PTX_SHARED, PTX_LOCAL, PTX_PARAM };
  for (guint i = 0; i < G_N_ELEMENTS (windows) && space == PTX_GENERIC; i++)
    if (*address - windows[i] < PTX_WINDOW_BYTES) {
      *address -= windows[i];
      return spaces[i];
    }
  return space;
}

guint8 *
ptx_at (PtxWarp *warp,
        const PtxInstr *instr,
        guint lane,
        guint space,
        guint64 address,
        guint n_bytes,
        PtxAccess access)
{
  if ((address & (n_bytes - 1)) != 0) {
    ptx_fault (warp, instr, lane, PTX_FAULT_MISALIGNED, address,
               "0x%" G_GINT64_MODIFIER "x is not aligned to %u bytes", address, n_bytes);
    return NULL;
  }
  switch (resolve (space, &address)) {
  case PTX_SHARED:
    return at_shared (warp, instr, lane, address, n_bytes, access);
  case PTX_LOCAL:
    return at_local (warp, instr, lane, address, n_bytes, access);
  case PTX_PARAM:
    return at_param (warp, instr, lane, address, n_bytes, access);
  default:
    return at_global (warp, instr, lane, address, n_bytes, access);
  }
}

/* A parameter of a function, and a slot for a call, are of its frame. */
static guint
space_of (const PtxInstr *instr, const PtxOperand *address)
{
  guint space = instr->chosen[PTX_CLASS_SPACE];
  return space == PTX_PARAM && address->space == PTX_LOCAL ? PTX_LOCAL : space;
}

static guint64
address_in (const PtxWarp *warp, const PtxOperand *address, guint lane)
{
  guint64 value
      = ptx_truncate (address->bits, ptx_lanes (warp, address)[lane]) + address->offset;
  return address->bits == 32 ? (guint32) value : value;
}

/* ---- loads and stores ---- */

static inline guint64
load_element (const guint8 *bytes, guint size)
{
  guint64 value = 0;
  guint32 word;
  if (size == sizeof word) {
    memcpy (&word, bytes, sizeof word);
    return word;
  }
  memcpy (&value, bytes, size);
  return value;
}

static inline void
store_element (guint8 *bytes, guint64 value, guint size)
{
  guint32 word = value;
  if (size == sizeof word)
    memcpy (bytes, &word, sizeof word);
  else
    memcpy (bytes, &value, size);
}

/* The range that the first lane's address is in, where lanes mostly are together. */
typedef struct {
  guint8 *bytes; /* NULL: each lane looks for itself */
  guint64 start, n_bytes;
} Window;

static Window
window_at (PtxWarp *warp, guint space, guint64 address)
{
  const PtxBlock *block = warp->block;
  PtxMemory *memory = block->grid->memory;
  Window window = { NULL, 0, 0 };
  if (space == PTX_SHARED && block->shadow == NULL)
    return (Window){ block->shared, PTX_SHARED_START, block->grid->n_shared };
  gboolean is_global = space == PTX_GLOBAL || space == PTX_GENERIC || space == PTX_CONST;
  if (is_global && ptx_memory_range (memory, address, &window.start, &window.n_bytes))
    window.bytes = ptx_memory_at (memory, window.start, window.n_bytes);
  return window;
}

/* As ptx_at (), by way of @window where that has it. */
static inline guint8 *
at (PtxWarp *warp,
    const PtxInstr *instr,
    guint lane,
    guint space,
    guint64 address,
    guint n_bytes,
    PtxAccess access,
    const Window *window)
{
  guint64 offset = address - window->start;
  gboolean is_inside = window->bytes != NULL && offset < window->n_bytes
                       && window->n_bytes - offset >= n_bytes;
  if (is_inside && (address & (n_bytes - 1)) == 0)
    return window->bytes + offset;
  return ptx_at (warp, instr, lane, space, address, n_bytes, access);
}

static guint
n_elements (const PtxInstr *instr)
{
  return MAX (instr->chosen[PTX_CLASS_VECTOR], 1);
}

/* The braces have as many registers as the instruction says. */
static gboolean
check_width (PtxWarp *warp, const PtxInstr *instr, guint group)
{
  if (ptx_n_operands (instr, group) == n_elements (instr))
    return TRUE;
  ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_INSTRUCTION, 0, "%u registers for %u elements",
             ptx_n_operands (instr, group), n_elements (instr));
  return FALSE;
}

void
ptx_run_ld (PtxWarp *warp, const PtxInstr *instr)
{
  const PtxOperand *address = ptx_operand (instr, 1);
  guint space = space_of (instr, address), n = n_elements (instr),
        size = ptx_types[instr->type[0]].bits / 8;
  if (!check_width (warp, instr, 0))
    return;
  Window window
      = window_at (warp, space, address_in (warp, address, __builtin_ctz (warp->active)));
  PTX_EACH_LANE (warp, lane)
  {
    const guint8 *bytes = at (warp, instr, lane, space, address_in (warp, address, lane),
                              n * size, PTX_READ, &window);
    if (bytes == NULL)
      return;
    for (guint i = 0; i < n; i++)
      ptx_put (warp, ptx_operand (instr, 0) + i, lane,
               ptx_extend (instr->type[0], load_element (bytes + i * size, size)));
  }
}

void
ptx_run_st (PtxWarp *warp, const PtxInstr *instr)
{
  const PtxOperand *address = ptx_operand (instr, 0);
  guint space = space_of (instr, address), n = n_elements (instr),
        size = ptx_types[instr->type[0]].bits / 8;
  if (!check_width (warp, instr, 1))
    return;
  Window window
      = window_at (warp, space, address_in (warp, address, __builtin_ctz (warp->active)));
  PTX_EACH_LANE (warp, lane)
  {
    guint8 *bytes = at (warp, instr, lane, space, address_in (warp, address, lane), n * size,
                        PTX_WRITE, &window);
    if (bytes == NULL)
      return;
    for (guint i = 0; i < n; i++)
      store_element (bytes + i * size, ptx_lanes (warp, ptx_operand (instr, 1) + i)[lane],
                     size);
  }
}

/* ---- atomic operations ---- */

static guint64
float_sum (PtxType type, guint64 a, guint64 b)
{
  if (type == PTX_f32)
    return ptx_bits_of_float (ptx_float_of (a) + ptx_float_of (b));
  if (type == PTX_f64)
    return ptx_bits_of_double (ptx_double_of (a) + ptx_double_of (b));
  if (type == PTX_f16x2 || type == PTX_bf16x2) {
    PtxType part = type == PTX_f16x2 ? PTX_f16 : PTX_bf16;
    return float_sum (part, a & 0xffff, b & 0xffff) | float_sum (part, a >> 16, b >> 16) << 16;
  }
  double x = ptx_decode (type, a), y = ptx_decode (type, b);
  return isfinite (x + y) ? ptx_pack (type, ptx_exact_sum (x, y), PTX_RN, FALSE)
                          : ptx_encode (type, x + y, PTX_RN, FALSE);
}

static guint64
updated (const PtxInstr *instr, guint64 old, guint64 b, guint64 c)
{
  PtxType type = instr->type[0];
  guint64 x = ptx_extend (type, old), y = ptx_extend (type, b);
  gboolean is_less = ptx_is_signed (type) ? (gint64) x < (gint64) y : x < y;
  switch (instr->chosen[PTX_CLASS_MODE]) {
  case PTX_MODE_add:
    return ptx_is_float (type) ? float_sum (type, x, y) : x + y;
  case PTX_MODE_and:
    return x & y;
  case PTX_MODE_or:
    return x | y;
  case PTX_MODE_xor:
    return x ^ y;
  case PTX_MODE_inc:
    return x >= y ? 0 : x + 1;
  case PTX_MODE_dec:
    return x == 0 || x > y ? y : x - 1;
  case PTX_MODE_min:
    return is_less ? x : y;
  case PTX_MODE_max:
    return is_less ? y : x;
  case PTX_MODE_cas:
    return x == y ? c : x;
  default:
    return y;
  }
}

/* Lanes take turns, in their order, and no other block is between what is read and what is written. */
static void
update (PtxWarp *warp, const PtxInstr *instr, const PtxOperand *result, guint address_group)
{
  const PtxOperand *address = ptx_operand (instr, address_group);
  const guint64 *b = ptx_source (warp, instr, address_group + 1);
  gboolean has_third
      = address_group + 2 < instr->n_groups && ptx_n_operands (instr, address_group + 2) > 0;
  const guint64 *c = has_third ? ptx_source (warp, instr, address_group + 2) : b;
  guint size = ptx_types[instr->type[0]].bits / 8;
  PTX_EACH_LANE (warp, lane)
  {
    guint64 place = address_in (warp, address, lane);
    guint8 *bytes
        = ptx_at (warp, instr, lane, instr->chosen[PTX_CLASS_SPACE], place, size, PTX_ATOMIC);
    if (bytes == NULL)
      return;
    g_mutex_lock (&warp->block->grid->lock);
    guint64 old = load_element (bytes, size), new = updated (instr, old, b[lane], c[lane]);
    memcpy (bytes, &new, size);
    g_mutex_unlock (&warp->block->grid->lock);
    if (result != NULL)
      ptx_put (warp, result, lane, old);
  }
}

void
ptx_run_atom (PtxWarp *warp, const PtxInstr *instr)
{
  update (warp, instr, ptx_operand (instr, 0), 1);
}

void
ptx_run_red (PtxWarp *warp, const PtxInstr *instr)
{
  update (warp, instr, NULL, 0);
}

/* ---- asynchronous copies ---- */

void
ptx_run_cp_async (PtxWarp *warp, const PtxInstr *instr)
{
  guint64 n_bytes = ptx_source (warp, instr, 2)[0];
  const guint64 *n_read = ptx_n_operands (instr, 3) > 0 ? ptx_source (warp, instr, 3) : NULL;
  if ((n_bytes != 4 && n_bytes != 8 && n_bytes != 16)
      || warp->copies->len + PTX_N_LANES > PTX_MAX_COPIES) {
    ptx_fault (warp, instr, G_MAXUINT, PTX_FAULT_INSTRUCTION, 0,
               "a copy of %u bytes, or too many of them, cannot be", (guint) n_bytes);
    return;
  }
  PTX_EACH_LANE (warp, lane)
  {
    PtxCopy copy = { .to = address_in (warp, ptx_operand (instr, 0), lane),
                     .from = address_in (warp, ptx_operand (instr, 1), lane),
                     .group = warp->copy_group,
                     .lane = lane,
                     .n_bytes = n_bytes };
    copy.n_read = n_read != NULL ? MIN ((guint32) n_read[lane], n_bytes) : n_bytes;
    g_array_append_val (warp->copies, copy);
  }
}

static void
finish_copy (PtxWarp *warp, const PtxInstr *instr, const PtxCopy *copy)
{
  guint8 *to = ptx_at (warp, instr, copy->lane, PTX_SHARED, copy->to, copy->n_bytes, PTX_WRITE);
  const guint8 *from
      = to != NULL && copy->n_read > 0
            ? ptx_at (warp, instr, copy->lane, PTX_GLOBAL, copy->from, copy->n_bytes, PTX_READ)
            : NULL;
  if (to == NULL || (from == NULL && copy->n_read > 0))
    return;
  memset (to, 0, copy->n_bytes);
  if (from != NULL)
    memcpy (to, from, copy->n_read);
}

void
ptx_finish_copies (PtxWarp *warp, const PtxInstr *instr, guint32 lanes, guint32 before_group)
{
  guint n = 0;
  for (guint i = 0; i < warp->copies->len; i++) {
    PtxCopy copy = g_array_index (warp->copies, PtxCopy, i);
    if ((lanes >> copy.lane & 1) && copy.group < before_group)
      finish_copy (warp, instr, &copy);
    else
      g_array_index (warp->copies, PtxCopy, n++) = copy;
  }
  g_array_set_size (warp->copies, n);
}

void
ptx_run_commit_group (PtxWarp *warp, const PtxInstr *instr)
{
  (void) instr;
  warp->copy_group++;
}

void
ptx_run_wait_group (PtxWarp *warp, const PtxInstr *instr)
{
  guint64 n_pending = ptx_source (warp, instr, 0)[0];
  if (n_pending < warp->copy_group)
    ptx_finish_copies (warp, instr, warp->active, warp->copy_group - n_pending);
}

void
ptx_run_wait_all (PtxWarp *warp, const PtxInstr *instr)
{
  ptx_finish_copies (warp, instr, warp->active, G_MAXUINT32);
}
