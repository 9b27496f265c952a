/* SPDX-License-Identifier: MIT
 *
 * ptx-warp.h: warps and blocks while they run, and what instructions do with them. */
#pragma once

#include "ptx-program.h"

/* Windows of generic addresses; shared memory begins behind what the system has there. */
#define PTX_SHARED_WINDOW ((guint64) 0x7f00000000000000)
#define PTX_LOCAL_WINDOW  ((guint64) 0x7f10000000000000)
#define PTX_PARAM_WINDOW  ((guint64) 0x7f20000000000000)
#define PTX_WINDOW_BYTES  ((guint64) 1 << 32)
enum {
  PTX_SHARED_START = 0x400,
  PTX_LOCAL_START = 0x100,
  PTX_N_BARRIERS = 16,
  PTX_MAX_FRAMES = 32,
  PTX_MAX_PATHS = 80,
  PTX_MAX_COPIES = 1 << 16
};

typedef enum { PTX_READY, PTX_WAITING, PTX_DONE } PtxState;

/* Lanes on their way from @pc to @reconverge, where they join those of the path below. */
typedef struct {
  guint32 pc, reconverge, mask;
} PtxPath;

typedef struct {
  const PtxFunction *function;
  const PtxInstr *call; /* NULL: the kernel */
  guint64 *registers;
  guint64 n_local; /* where its local memory begins */
  guint32 mask;
  guint n_paths;
  PtxPath paths[PTX_MAX_PATHS];
} PtxFrame;

/* A copy that was begun, and is done when somebody waits for it. */
typedef struct {
  guint64 to, from;
  guint32 group, lane;
  guint8 n_bytes, n_read;
} PtxCopy;

typedef struct PtxBlock PtxBlock;

struct PtxWarp {
  PtxBlock *block;
  guint index;
  guint32 live;    /* lanes that there are and that have not ended */
  guint32 active;  /* lanes that do the instruction */
  guint32 present; /* lanes that are here, whatever their guards say */
  guint32 carry;   /* lanes whose carry flag is set */
  PtxState state;
  guint barrier;
  guint64 *vote_result; /* of a barrier that reduces, and */
  guint8 vote_mode;
  guint64 *registers; /* of the innermost frame */
  guint n_frames;
  PtxFrame *frames;
  GPtrArray *spare; /* arrays of registers by depth, and */
  guint64 spare_sizes[PTX_MAX_FRAMES];
  guint8 *local; /* of all lanes, @local_stride each */
  guint64 local_stride;
  GArray *copies; /* of PtxCopy */
  guint32 copy_group;
};

typedef struct {
  guint n_arrived, n_wanted; /* warps; 0 wanted: all that live */
  guint32 n_true, n_votes;   /* of the barrier's reduction */
} PtxBarrier;

/* Who touched a byte of shared memory last, and in which epoch: between barriers of all. */
typedef struct {
  guint32 write_epoch, read_epoch;
  gint16 writer, reader; /* warps; -2: several */
} PtxShadow;

typedef struct {
  const PtxFunction *kernel;
  const PtxLaunch *launch;
  PtxMemory *memory;
  guint64 n_blocks, next_block, n_steps, max_steps;
  guint32 n_shared;
  guint8 *params;
  GMutex lock; /* of atomic operations and of the fault */
  int is_failed;
  PtxFault *fault;
} PtxGrid;

struct PtxBlock {
  PtxGrid *grid;
  guint32 index[3];
  guint64 number;
  guint8 *shared;
  PtxShadow *shadow;
  guint32 epoch;
  guint n_warps;
  PtxWarp *warps;
  PtxBarrier barriers[PTX_N_BARRIERS];
  guint64 random;
};

/* ---- frames and paths (ptx-warp.c) ---- */
void ptx_warp_start (PtxWarp *warp, guint32 lanes);
void ptx_warp_clear (PtxWarp *warp);
/* At most @n_steps instructions; the number of those done. */
guint64 ptx_warp_run (PtxWarp *warp, guint64 n_steps);

/* ---- faults (ptx-launch.c) ---- */
/* Ends the kernel; the first one is told. @lane: G_MAXUINT where all of the warp did it. */
G_GNUC_PRINTF (6, 7)
void ptx_fault (PtxWarp *warp,
                const PtxInstr *instr,
                guint lane,
                int code,
                guint64 address,
                const char *format,
                ...);
gboolean ptx_is_failed (const PtxWarp *warp);
guint64 ptx_random (guint64 *state);

/* ---- memory (ptx-access.c) ---- */
typedef enum { PTX_READ, PTX_WRITE, PTX_ATOMIC } PtxAccess;
/* Bytes of the host behind an address of @space; NULL after a fault. */
guint8 *ptx_at (PtxWarp *warp,
                const PtxInstr *instr,
                guint lane,
                guint space,
                guint64 address,
                guint n_bytes,
                PtxAccess access);
/* Begun copies up to a group are done. */
void
ptx_finish_copies (PtxWarp *warp, const PtxInstr *instr, guint32 lanes, guint32 before_group);

/* ---- operands ---- */
#define PTX_EACH_LANE(warp, lane)                                                              \
  for (guint lane = 0; lane < PTX_N_LANES; lane++)                                             \
    if ((warp)->active >> lane & 1)

static inline const PtxOperand *
ptx_operand (const PtxInstr *instr, guint group)
{
  return &instr->operands[instr->start[group]];
}

static inline guint
ptx_n_operands (const PtxInstr *instr, guint group)
{
  return instr->start[group + 1] - instr->start[group];
}

static inline const guint64 *
ptx_lanes (const PtxWarp *warp, const PtxOperand *operand)
{
  return operand->lanes != NULL ? operand->lanes
                                : warp->registers + (gsize) operand->index * PTX_N_LANES;
}

static inline const guint64 *
ptx_source (const PtxWarp *warp, const PtxInstr *instr, guint group)
{
  return ptx_lanes (warp, ptx_operand (instr, group));
}

/* A result in the low bits of its register; the rest is zeros. */
static inline void
ptx_put (PtxWarp *warp, const PtxOperand *operand, guint lane, guint64 value)
{
  if (!operand->is_sink)
    warp->registers[(gsize) operand->index * PTX_N_LANES + lane]
        = ptx_truncate (operand->bits, value);
}

static inline gboolean
ptx_is_true (const PtxWarp *warp, const PtxOperand *operand, guint lane)
{
  return (gboolean) (ptx_lanes (warp, operand)[lane] & 1) != operand->is_negated;
}
