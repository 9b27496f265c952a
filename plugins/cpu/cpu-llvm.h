/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm.h: the opened LLVM library as a table of functions, and the numbers of its C API. */
#pragma once

#include "cpu.h"

typedef struct LlvmOpaque *LlvmRef;

typedef struct {
#define LLVM_SYMBOL(result, name, params) result (*name) params;
#include "cpu-llvm-symbols.def"
#undef LLVM_SYMBOL
  unsigned version; /* major */
} Llvm;

/* Numbers fixed by llvm-c/Core.h and llvm-c/TargetMachine.h. */
enum {
  LLVM_ADD = 8,
  LLVM_FADD = 9,
  LLVM_SUB = 10,
  LLVM_FSUB = 11,
  LLVM_MUL = 12,
  LLVM_FMUL = 13,
  LLVM_UDIV = 14,
  LLVM_SDIV = 15,
  LLVM_FDIV = 16,
  LLVM_UREM = 17,
  LLVM_SREM = 18,
  LLVM_SHL = 20,
  LLVM_LSHR = 21,
  LLVM_ASHR = 22,
  LLVM_AND = 23,
  LLVM_OR = 24,
  LLVM_XOR = 25
};
enum {
  LLVM_TRUNC = 30,
  LLVM_ZEXT = 31,
  LLVM_SEXT = 32,
  LLVM_FPTOUI = 33,
  LLVM_FPTOSI = 34,
  LLVM_UITOFP = 35,
  LLVM_SITOFP = 36,
  LLVM_FPTRUNC = 37,
  LLVM_FPEXT = 38,
  LLVM_BITCAST = 41
};
enum {
  LLVM_INT_EQ = 32,
  LLVM_INT_NE = 33,
  LLVM_INT_UGT = 34,
  LLVM_INT_ULT = 36,
  LLVM_INT_SGT = 38,
  LLVM_INT_SLT = 40
};
enum { LLVM_REAL_OEQ = 1, LLVM_REAL_OGT = 2, LLVM_REAL_OLT = 4, LLVM_REAL_UNE = 14 };
enum { LLVM_LINKAGE_INTERNAL = 8 };
enum { LLVM_ATTRIBUTE_FUNCTION = -1 };

/* ---- building a function: shared by cpu-llvm-emit.c and cpu-llvm-ops.c ---- */
enum { EMIT_MAX_DEPTH = 64 };

/* A RANGE or IF whose end has not come yet. */
typedef struct {
  uint32_t instr;
  LlvmRef body, exit, counter, bound;
} EmitBlock;

/* A line that a round of a loop asks for ahead: bytes from where @base is in @buffer. */
typedef struct {
  uint32_t loop;
  const TinyInstr *buffer, *base;
  int64_t offset;
} EmitAhead;

/* An instruction's value for each of sixteen codes. */
typedef struct {
  LlvmRef entries; /* NULL: it has no table */
  LlvmRef index;   /* the code is in the low four bits of each lane */
  unsigned n_ops;  /* that lead from the index to the value */
} EmitTable;

/* The tiles of a program with matrix units. */
enum { CPU_N_TILES = 8 };
typedef struct {
  uint8_t *of;                 /* each fragment's; NULL: the program has none */
  uint32_t until[CPU_N_TILES]; /* the instruction up to which each is taken, and 1 */
  LlvmRef place;               /* of a tile, in memory */
} EmitTiles;

typedef struct {
  const Llvm *llvm;
  LlvmRef context, module, builder, function;
  LlvmRef entry;   /* block of the allocas; no terminator until the end */
  LlvmRef scratch; /* where a scalar gate that is false sends its access */
  const TinyLinear *linear;
  const char *name; /* the kernel's */
  const CpuArch *arch;
  LlvmRef *values;   /* of each instruction */
  EmitTable *tables; /* … NULL where the processor cannot look up */
  LlvmRef axes[3];   /* the grid point, i64 */
  EmitBlock blocks[EMIT_MAX_DEPTH];
  unsigned depth;
  EmitTiles tiles;
  EmitAhead ahead[32]; /* of the innermost loop */
  unsigned n_ahead;
  bool lacks_memory; /* for what makes a program faster, which is no program to keep */
  TinyPluginError *error;
} Emitter;

/* NULL: failed, and the error is filled. VOID instructions return any other value. */
typedef LlvmRef (*EmitFunc) (Emitter *e, const TinyInstr *instr);

/* What an instruction is made of. */
const TinyInstr *emit_source_instr (const Emitter *e, const TinyInstr *instr, unsigned n);
/* Source @n, broadcast when it is a scalar and the instruction is not. */
LlvmRef emit_source (Emitter *e, const TinyInstr *instr, unsigned n);
LlvmRef emit_broadcast (Emitter *e, LlvmRef scalar, unsigned lanes);
LlvmRef emit_type (const Emitter *e, unsigned dtype, unsigned lanes);
LlvmRef emit_int (const Emitter *e, unsigned n_bits, int64_t value);
LlvmRef emit_intrinsic (
    Emitter *e, const char *name, LlvmRef type, LlvmRef *arguments, unsigned n_arguments);
LlvmRef emit_fail (Emitter *e, const TinyInstr *instr, const char *why);

bool dtype_is_float (unsigned dtype);
bool dtype_is_signed (unsigned dtype);
unsigned dtype_bits (unsigned dtype); /* in memory; 0: not a dtype of this backend */

/* cpu-llvm-structure.c: the others, and what the frame needs of it. */
extern const EmitFunc emit_structure[TINY_N_INSTRS];
/* A mutable place in the function's first block; @n_align 0 is its type's own. */
LlvmRef emit_place (Emitter *e, LlvmRef type, unsigned n_align);
/* Counts on by @one and goes back to the loop's body up to its bound. */
void emit_loop_end (Emitter *e, const EmitBlock *block, LlvmRef one);
LlvmRef emit_memory_type (const Emitter *e, unsigned dtype, unsigned lanes);

/* cpu-llvm-masked.c: accesses of vectors with a gate for each lane. One access: where, of what, and under which gate. */
typedef struct {
  unsigned dtype, lanes, n_align;
  LlvmRef address;
  LlvmRef gate;       /* one bool, or NULL */
  LlvmRef lane_gates; /* a vector of them, or NULL */
} EmitAccess;
/* llvm.masked.load or llvm.masked.store, @name; the pointer is argument @pointer_at. */
LlvmRef emit_masked (Emitter *e,
                     const char *name,
                     const EmitAccess *access,
                     LlvmRef *arguments,
                     unsigned n_arguments,
                     unsigned pointer_at);
/* @gate, whose lanes from @first on are those of @access, is where its lane_gates come from. */
LlvmRef emit_masked_load (Emitter *e,
                          const EmitAccess *access,
                          const TinyInstr *gate,
                          unsigned first,
                          LlvmRef alternative);

/* cpu-llvm-ahead.c: asks for what comes two pages after @address, where that pays. */
void emit_ahead (Emitter *e, const TinyInstr *load, LlvmRef address);

/* cpu-llvm-outside.c: true if the masked @access of @lanes may lie where there is no memory. */
bool emit_may_leave (const Emitter *e, const TinyInstr *access, unsigned lanes);

/* cpu-llvm-table.c: the value of @instr, which @emit would compute, looked up where that is shorter. */
LlvmRef emit_with_table (Emitter *e, const TinyInstr *instr, EmitFunc emit);

/* @index less the constant that is added to it, which is 0 where there is none. */
const TinyInstr *
emit_split_index (const Emitter *e, const TinyInstr *index, int64_t *out_added);

/* cpu-llvm-stream.c: lets stores go past the caches where that pays, when all instructions have
 * their values. Returns whether there are any: they want a fence behind them. */
bool emit_streams (Emitter *e);

/* cpu-llvm-prefetch.c: loads ask for what comes later where that pays; false: no memory. */
bool emit_prefetches (Emitter *e);

/* cpu-llvm-check.c: false, and the error filled, when the instruction is malformed. */
bool emit_is_right (Emitter *e, const TinyInstr *instr);
/* The same of the sources of all instructions: a tile depends on what comes later, and is not checked by then. */
bool emit_has_all_sources (Emitter *e);

/* False, and the error filled: a LOAD or STORE whose memory is none, or whose index is no scalar integer. */
bool emit_has_address (Emitter *e, const TinyInstr *instr);
/* Where element @index of @buffer is. */
LlvmRef emit_address (Emitter *e, const TinyInstr *buffer, const TinyInstr *index);

/* cpu-llvm-unit.c: matrix units and their fragments, in tiles. */
/* True if @instr is a unit, or moves what only a unit takes. */
bool emit_is_fragment (const Emitter *e, const TinyInstr *instr);
LlvmRef emit_fragment (Emitter *e, const TinyInstr *instr);
/* False: no memory. */
bool emit_tiles_init (Emitter *e);
/* In the function's first block, and where it returns. */
void emit_tiles_begin (Emitter *e);
void emit_tiles_end (Emitter *e);

/* cpu-llvm-ops.c: instructions that compute; NULL for the others. */
extern const EmitFunc emit_ops[TINY_N_INSTRS];

/* cpu-llvm-emit.c: builds the kernel's functions in @module. */
TinyStatus cpu_llvm_emit (const Llvm *llvm,
                          LlvmRef context,
                          LlvmRef module,
                          const TinyLinear *linear,
                          const char *name,
                          const CpuArch *arch,
                          TinyPluginError *error);
