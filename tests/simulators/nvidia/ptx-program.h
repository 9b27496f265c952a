/* SPDX-License-Identifier: MIT
 *
 * ptx-program.h: a PTX text as it is run: types, instructions with numbered registers, functions.
 *
 * A register is 32 lanes of 64 bits, with zeros above its own width. A constant has lanes of its own, so that an
 * operand is an array of 32 numbers in any case. */
#pragma once

#include "ptx.h"
#include <stdint.h>

enum { PTX_N_LANES = 32, PTX_MAX_GROUPS = 6, PTX_MAX_TYPES = 4 };

/* name, kind, bits, lanes of packed types */
/* clang-format off */
#define PTX_TYPES(T) \
  T (none, NONE, 0, 1) T (pred, PRED, 1, 1) T (b8, BITS, 8, 1) T (b16, BITS, 16, 1) \
  T (b32, BITS, 32, 1) T (b64, BITS, 64, 1) T (b128, BITS, 128, 1) T (u8, UNSIGNED, 8, 1) \
  T (u16, UNSIGNED, 16, 1) T (u32, UNSIGNED, 32, 1) T (u64, UNSIGNED, 64, 1) T (s8, SIGNED, 8, 1) \
  T (s16, SIGNED, 16, 1) T (s32, SIGNED, 32, 1) T (s64, SIGNED, 64, 1) T (u16x2, UNSIGNED, 32, 2) \
  T (s16x2, SIGNED, 32, 2) T (f16, FLOAT, 16, 1) T (f16x2, FLOAT, 32, 2) T (bf16, FLOAT, 16, 1) \
  T (bf16x2, FLOAT, 32, 2) T (tf32, FLOAT, 32, 1) T (f32, FLOAT, 32, 1) T (f64, FLOAT, 64, 1) \
  T (e4m3, FLOAT, 8, 1) T (e5m2, FLOAT, 8, 1) T (e4m3x2, FLOAT, 16, 2) T (e5m2x2, FLOAT, 16, 2)
/* clang-format on */
#define PTX_TYPE_NAME(name, kind, bits, lanes) PTX_##name,
typedef enum { PTX_TYPES (PTX_TYPE_NAME) PTX_N_TYPES } PtxType;

typedef enum {
  PTX_KIND_NONE,
  PTX_KIND_PRED,
  PTX_KIND_BITS,
  PTX_KIND_UNSIGNED,
  PTX_KIND_SIGNED,
  PTX_KIND_FLOAT
} PtxKind;

typedef struct {
  const char *name;
  PtxKind kind;
  guint16 bits;
  guint8 lanes;
} PtxTypeRow;
extern const PtxTypeRow ptx_types[PTX_N_TYPES];

/* Suffixes that are no types, by what they choose. Each class is a field of an instruction; a flag is a bit. */
typedef enum {
  PTX_CLASS_ROUND,
  PTX_CLASS_COMPARE,
  PTX_CLASS_BOOL,
  PTX_CLASS_SPACE,
  PTX_CLASS_VECTOR,
  PTX_CLASS_MODE,
  PTX_CLASS_SHAPE,
  PTX_CLASS_COUNT,
  PTX_CLASS_FLAG,
  PTX_CLASS_CACHE,
  PTX_N_CLASSES,
} PtxClass;

enum { PTX_RN = 1, PTX_RZ, PTX_RM, PTX_RP, PTX_RNA, PTX_RNI, PTX_RZI, PTX_RMI, PTX_RPI };
enum {
  PTX_EQ = 1,
  PTX_NE,
  PTX_LT,
  PTX_LE,
  PTX_GT,
  PTX_GE,
  PTX_LO,
  PTX_LS,
  PTX_HI,
  PTX_HS,
  PTX_EQU,
  PTX_NEU,
  PTX_LTU,
  PTX_LEU,
  PTX_GTU,
  PTX_GEU,
  PTX_NUM,
  PTX_NAN
};
enum { PTX_AND = 1, PTX_OR, PTX_XOR };
enum { PTX_GENERIC = 0, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_PARAM, PTX_CONST };
enum {
  PTX_FLAG_FTZ = 1,
  PTX_FLAG_SAT = 2,
  PTX_FLAG_CC = 4,
  PTX_FLAG_APPROX = 8,
  PTX_FLAG_NAN = 16,
  PTX_FLAG_RELU = 32,
  PTX_FLAG_TRANS = 64,
  PTX_FLAG_TO = 128,
  PTX_FLAG_UNI = 256,
  PTX_FLAG_FULL = 512,
  PTX_FLAG_SATFINITE = 1024,
  PTX_FLAG_SHIFTAMT = 2048
};
/* Modes have a number each, whatever op they are of. */
/* clang-format off */
#define PTX_MODES(M) \
  M (lo) M (hi) M (wide) M (up) M (down) M (bfly) M (idx) M (all) M (any) M (uni) M (ballot) M (and) \
  M (or) M (xor) M (add) M (exch) M (inc) M (dec) M (min) M (max) M (cas) M (f4e) M (b4e) M (rc8) \
  M (ecl) M (ecr) M (rc16) M (l) M (r) M (clamp) M (wrap) M (popc) \
  M (finite) M (infinite) \
  M (number) M (notanumber) M (normal) M (subnormal)
/* clang-format on */
#define PTX_MODE_NAME(name) PTX_MODE_##name,
enum { PTX_MODE_none, PTX_MODES (PTX_MODE_NAME) PTX_N_MODES };

enum { PTX_M16N8K4 = 1, PTX_M16N8K8, PTX_M16N8K16, PTX_M16N8K32, PTX_M8N8 };

typedef struct PtxInstr PtxInstr;
typedef struct PtxWarp PtxWarp;
typedef void (*PtxRun) (PtxWarp *warp, const PtxInstr *instr);

/* Operands, a letter each: d register written, s value, D and S vectors of them, p predicate written, q predicate read,
 * a address, l label, i number; ? after a letter: may be left out. */
typedef struct {
  const char *name; /* before the first dot that is not part of it */
  const char *
      classes; /* that it takes: letters of PtxClass in their order, and flags by PTX_FLAG_… in @flags */
  guint flags;
  const char *types; /* lists of names, a list for each type it has, parted by ';' */
  const char *operands;
  PtxRun run;
  const char *modes; /* that it takes */
} PtxOp;

typedef struct {
  const guint64 *lanes; /* of a constant; NULL: a register */
  guint32 index;        /* of the register */
  guint16 bits;
  gboolean is_negated; /* a predicate */
  guint8
      space; /* of a symbol: PTX_PARAM where it is a kernel's parameter, PTX_LOCAL where it is of the frame */
  gboolean is_sink; /* "_": what is written is lost */
  gint64 offset;    /* of an address */
} PtxOperand;

struct PtxInstr {
  PtxRun run;
  const PtxOp *op;
  PtxOperand guard; /* with @has_guard */
  gboolean has_guard;
  guint8 chosen[PTX_N_CLASSES];
  guint flags;
  PtxType type[PTX_MAX_TYPES];
  guint8 n_types, n_groups;
  guint8 start[PTX_MAX_GROUPS + 1]; /* where each group of operands begins in @operands */
  PtxOperand *operands;
  guint32 line;
  guint32 target, reconverge; /* of a branch: where it goes, and where its lanes meet again */
  const char *label;          /* until it is found */
  struct PtxFunction
      *callee; /* of a call: operands are first results (start[1]), then arguments */
  const char *callee_name;
};

/* A register that has a value when a function is entered. */
typedef struct {
  guint32 index;
  guint8 what; /* PtxEntry */
  guint8 dimension;
  guint64 value;
} PtxEntryValue;

typedef enum {
  PTX_ENTRY_TID,
  PTX_ENTRY_NTID,
  PTX_ENTRY_CTAID,
  PTX_ENTRY_NCTAID,
  PTX_ENTRY_LANEID,
  PTX_ENTRY_WARPID,
  PTX_ENTRY_NWARPID,
  PTX_ENTRY_LANEMASK_EQ,
  PTX_ENTRY_LANEMASK_LT,
  PTX_ENTRY_LANEMASK_LE,
  PTX_ENTRY_LANEMASK_GT,
  PTX_ENTRY_LANEMASK_GE,
  PTX_ENTRY_SMID,
  PTX_ENTRY_NSMID,
  PTX_ENTRY_GRIDID,
  PTX_ENTRY_CLOCK,
  PTX_ENTRY_ZERO,
  PTX_ENTRY_ONE,
  PTX_ENTRY_DYNAMIC_SHARED,
  PTX_ENTRY_DYNAMIC_SIZE,
  PTX_ENTRY_LOCAL, /* @value: an offset in the frame's local memory */
} PtxEntry;

/* A parameter or a result: bytes of the kernel's parameters, or of a frame's memory. */
typedef struct {
  guint32 offset, n_bytes;
} PtxSlot;

struct PtxFunction {
  const PtxModule *module;
  char *name;
  gboolean is_entry, is_defined;
  PtxKernelInfo info;
  GArray *instrs;  /* of PtxInstr; the number of them is where a function ends */
  GArray *params;  /* of PtxSlot */
  GArray *results; /* of PtxSlot */
  GArray *entries; /* of PtxEntryValue */
  guint32 n_registers, n_local, n_shared, line;
};

struct PtxModule {
  PtxMemory *memory;
  GStringChunk *strings;
  GHashTable *functions; /* name → PtxFunction */
  GHashTable *variables; /* name → PtxVariable */
  GHashTable *constants; /* value → lanes */
  GPtrArray *operands;   /* arrays of them, to be freed */
  guint32 n_shared;      /* of variables outside of kernels */
  gboolean has_kernel;
  guint64 n_bytes; /* of variables in memory */
  char *target;
};

typedef struct {
  guint64 address, n_bytes;
} PtxVariable;

PtxModule *ptx_module_empty (PtxMemory *memory);
/* A function, made when it is first named. */
PtxFunction *ptx_module_function (PtxModule *module, const char *name);
/* The 32 lanes of a constant. */
const guint64 *ptx_module_constant (PtxModule *module, guint64 value);

/* Where lanes that a branch parted meet again: the immediate post-dominator. */
void ptx_find_reconvergence (PtxFunction *function);

/* The row of an opcode with its suffixes, into @instr: FALSE and the reason. */
gboolean ptx_read_opcode (const char *text, PtxInstr *instr, char **out_reason);
PtxType ptx_type_of (const char *name, gsize n_chars);

static inline gboolean
ptx_is_float (PtxType type)
{
  return ptx_types[type].kind == PTX_KIND_FLOAT;
}

static inline gboolean
ptx_is_signed (PtxType type)
{
  return ptx_types[type].kind == PTX_KIND_SIGNED;
}

/* The low bits of @value that @type has. */
static inline guint64
ptx_truncate (guint bits, guint64 value)
{
  return bits >= 64 ? value : value & (((guint64) 1 << bits) - 1);
}

/* @value as a number of @type: its sign, or zeros, in all bits above. */
static inline guint64
ptx_extend (PtxType type, guint64 value)
{
  guint shift = 64 - MIN (ptx_types[type].bits, 64);
  return ptx_is_signed (type) ? (guint64) ((gint64) (value << shift) >> shift)
                              : value << shift >> shift;
}
