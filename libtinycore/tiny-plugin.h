/* SPDX-License-Identifier: MIT
 *
 * tiny-plugin.h: everything a backend needs to know of tinycore.
 *
 * A backend is one shared object that exports one symbol, tiny_plugin_entry_1(), which returns a
 * constant table of functions and data. The header is plain C11 (and C++17), stands alone, and is
 * all there is: a plugin links neither the core nor GLib.
 *
 * Laws of the structs that begin with struct_size:
 *  - struct_size is the bytes that the writer knows of; flags follows (in a TinyCommand, type does). They have
 *    reserved fields; reserved fields and unknown flag bits are zero, and receivers refuse others.
 *  - A receiver touches no byte beyond struct_size. The core copies what it knows of a plugin's
 *    table and fills missing slots with stubs that return TINY_STATUS_UNSUPPORTED.
 *  - A receiver asks for no more bytes than the struct had in the least minor version that it serves
 *    (TINY_SIZE_0_*), and looks at struct_size before it uses a field that came later.
 *  - Where the core gives room to fill, struct_size says how much there is. The plugin fills what fits, which may be
 *    less than its own struct, and leaves struct_size as it is.
 *  - Of an array of such structs each element is struct_size bytes behind the one before: the commands of a
 *    submission and the renderers of a module by each element's own, the candidates of scan() by the first
 *    one's, which all have.
 *  - Append only: a field never moves, a number never changes its meaning.
 *
 * TinyInstr, TinyParam, TinyUnit, TinySpan, TinyOperandView and TinyPluginNote have no struct_size: arrays of them
 * lie densely, and they never grow. What such a thing lacks comes one day as another array beside it.
 *
 * Ownership: what a pointer names belongs to whoever made it, and lives during the call that it is passed to unless
 * something else is said. Tables and texts of a module, its renderers, dialects and devices are constants: they hold
 * until the process ends. Handles (TinyPluginDevice and the others) are the plugin's, and the core frees each one
 * that it was given, once. Numbers are in bytes, nanoseconds or elements, as their names say.
 *
 * Threads: module functions and target() of one module are serialised by the core; those of others may run at
 * the same time. Device functions may be called from any
 * thread at once, except that one queue is used by one thread at a time; wait() and reached() of a queue may
 * be called from any threads, also during its submit(). compile() may be called from several threads at once.
 *
 * Process state: a plugin leaves signals, locale, floating-point modes, environment, directory and
 * standard streams as it found them, and installs nothing at load time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TINY_PLUGIN_ABI_MAJOR 1u /* part of the entry symbol's name: another one is another contract */
#define TINY_PLUGIN_ABI_MINOR 0u /* what was appended: grows with releases that append something */
#define TINY_PLUGIN_ENTRY_SYMBOL "tiny_plugin_entry_1" /* the one exported symbol, a TinyPluginEntry */
/* Before the definition of that symbol: it stays visible where all else is hidden. */
#if defined(_WIN32)
#define TINY_PLUGIN_EXPORT __declspec (dllexport)
#else
#define TINY_PLUGIN_EXPORT __attribute__ ((visibility ("default")))
#endif

/* What a function answers. Negative values are failures, come with a filled TinyPluginError and leave nothing behind:
 * what out-parameters point to is not looked at. Positive ones are reserved; a core takes them for OK. A number that is
 * not here is TINY_STATUS_INTERNAL to the core, and so is one that makes no sense for its function. Which
 * function answers what, and what becomes of it, is a table in docs/abi.md. */
typedef int32_t TinyStatus;
enum {
  TINY_STATUS_OK = 0,             /* done */
  TINY_STATUS_UNSUPPORTED = -1,   /* never possible with these arguments; nothing happened */
  TINY_STATUS_INVALID = -2,       /* the caller's mistake: a text, number or struct that the function does not take */
  TINY_STATUS_OUT_OF_MEMORY = -3, /* device memory; may work after buffers were freed */
  TINY_STATUS_BUSY = -4,          /* another process holds the device; may work later */
  TINY_STATUS_TIMEOUT = -5,       /* of wait(): the point is not reached yet. Elsewhere: it took too long and
                                   * was given up */
  TINY_STATUS_PERMISSION = -6,    /* hint says which node and group */
  TINY_STATUS_NO_DEVICE = -7,     /* of scan() and open(): there is none, or none of that id */
  TINY_STATUS_DRIVER = -8,        /* driver or library absent or of a wrong version; text says which */
  TINY_STATUS_DEVICE_LOST = -9,   /* sticky: every later call on this device returns it */
  TINY_STATUS_COMPILE = -10,      /* text carries the compiler's log */
  TINY_STATUS_CORRUPT = -11,      /* damaged or foreign program binary */
  TINY_STATUS_LAUNCH = -12,       /* the device refused or failed a launch */
  TINY_STATUS_INTERNAL = -13      /* a bug of the plugin's, or anything that no other number says */
};

/* Why a call failed. Owned by the caller, usually on its stack: reporting never allocates. May be NULL. */
typedef struct TinyPluginError {
  uint32_t struct_size; /* set by the caller; one too short for text and hint is left alone */
  uint32_t flags;       /* 0 */
  int64_t vendor_code; /* the driver's own number, or 0 */
  uint64_t reserved[2]; /* 0 */
  char text[1024]; /* what failed, NUL-terminated UTF-8, lower case, no full stop */
  char hint[256];  /* what to do about it, or "" */
} TinyPluginError;

/* Number formats. The numbers are part of the ABI. */
typedef enum {
  TINY_DTYPE_VOID = 0,     /* no value */
  TINY_DTYPE_BOOL = 1,     /* a byte, 0 or 1 */
  TINY_DTYPE_I8 = 2,       /* signed, two's complement, as all of these */
  TINY_DTYPE_U8 = 3,       /* unsigned */
  TINY_DTYPE_I16 = 4,      /* 2 bytes, little-endian, as all of these */
  TINY_DTYPE_U16 = 5,      /* 2 bytes */
  TINY_DTYPE_I32 = 6,      /* 4 bytes */
  TINY_DTYPE_U32 = 7,      /* 4 bytes */
  TINY_DTYPE_I64 = 8,      /* 8 bytes */
  TINY_DTYPE_U64 = 9,      /* 8 bytes */
  TINY_DTYPE_F8E4M3 = 10,  /* OCP 8-bit float E4M3: no infinities, 448 is the largest */
  TINY_DTYPE_F8E5M2 = 11,  /* OCP 8-bit float E5M2 */
  TINY_DTYPE_F16 = 12,     /* IEEE 754 binary16 */
  TINY_DTYPE_BF16 = 13,    /* bfloat16: the upper half of an f32 */
  TINY_DTYPE_F32 = 14,     /* IEEE 754 binary32 */
  TINY_DTYPE_F64 = 15,     /* IEEE 754 binary64 */
  TINY_DTYPE_INDEX = 16 /* the core's own unbounded index type; a plugin never sees it */
} TinyDType;
#define TINY_N_DTYPES 17                      /* tables by dtype have room for 32 */
#define TINY_DTYPE_BIT(dtype) (1u << (dtype)) /* in sets of dtypes */

#ifndef __GI_SCANNER__ /* of all this, other languages see the number formats */

/* The contract: what an instruction of a linear program can be.
 *
 * The first 25 are the contract ops. A target declares for which dtypes it has each of them
 * (TinyTarget.ops) and the core rewrites the others into those. All act lane by lane on vectors.
 * Integers wrap, as does the least one divided by -1; IDIV and MOD truncate towards zero as in C; a
 * shift count is below the width; SHR is arithmetic on signed types; comparisons give BOOL; MAX returns the
 * other operand of a NaN as IEEE 754-2019 maximumNumber does or NaN, as the target likes; MULACC is a*b+c with
 * one rounding or two. */
typedef enum {
  TINY_INSTR_LOAD = 1,  /* (buffer, index [, gate, alternative]); (register) */
  TINY_INSTR_STORE = 2, /* (buffer, index, value [, gate]); (register, value) */
  TINY_INSTR_CAST = 3,  /* (x): float to int truncates; out of range is unspecified but no trap */
  TINY_INSTR_BITCAST = 4, /* (x): the same bits in another dtype of the same size */
  TINY_INSTR_NEG = 5,     /* (x) */
  TINY_INSTR_RECIP = 6,   /* (x): 1/x */
  TINY_INSTR_SQRT = 7,    /* (x) */
  TINY_INSTR_EXP2 = 8,    /* (x): 2^x */
  TINY_INSTR_LOG2 = 9,    /* (x) */
  TINY_INSTR_SIN = 10,    /* (x), in radians */
  TINY_INSTR_ADD = 11,    /* (x, y); bool: or */
  TINY_INSTR_SUB = 12,    /* (x, y) */
  TINY_INSTR_MUL = 13,    /* (x, y); bool: and */
  TINY_INSTR_IDIV = 14,   /* (x, y): x/y towards zero */
  TINY_INSTR_MOD = 15,    /* (x, y): what IDIV leaves, of x's sign */
  TINY_INSTR_MAX = 16,    /* (x, y); bool: or */
  TINY_INSTR_CMPLT = 17,  /* (x, y): x < y */
  TINY_INSTR_CMPNE = 18,  /* (x, y): x != y; of a NaN: true */
  TINY_INSTR_AND = 19,    /* (x, y): bit by bit */
  TINY_INSTR_OR = 20,     /* (x, y): bit by bit */
  TINY_INSTR_XOR = 21,    /* (x, y): bit by bit */
  TINY_INSTR_SHL = 22,    /* (x, count) */
  TINY_INSTR_SHR = 23,    /* (x, count) */
  TINY_INSTR_WHERE = 24,  /* (bool, if true, if false) */
  TINY_INSTR_MULACC = 25, /* (a, b, c): a*b+c */
  /* extensions: only for targets that declare them */
  TINY_INSTR_TRUNC = 26, /* float: round towards zero */
  TINY_INSTR_FDIV = 27,   /* (x, y): x/y of floats */
  TINY_INSTR_CMPEQ = 28,  /* (x, y): x == y; of a NaN: false */
  /* structure: every backend has these */
  TINY_INSTR_CONST = 40,     /* arg: the value, splat over the lanes; floats as f64 bits */
  TINY_INSTR_PARAM = 41,     /* arg: n; the n-th buffer parameter; dtype is the element's */
  TINY_INSTR_VARIABLE = 42,  /* arg: n; the n-th scalar parameter, of i32 or i64: its value, a TinyCommand's
                              * int64_t, fits into the dtype. A target without ADD of i64 gets i32 alone */
  TINY_INSTR_GRID = 43,      /* arg: axis 0..2; this work-group's index, i32 or i64 */
  TINY_INSTR_GROUP = 44,     /* arg: axis 0..2; the index within the work-group */
  TINY_INSTR_LOCAL = 45,     /* arg: n elements; memory shared by a work-group, starts undefined */
  TINY_INSTR_REGISTER = 46,  /* a mutable variable of dtype and lanes; starts undefined */
  TINY_INSTR_RANGE = 47,     /* (bound): loop 0 .. bound-1 up to the matching END, not once where bound
                              * is 0 or less; value: counter */
  TINY_INSTR_END = 48,       /* (range) */
  TINY_INSTR_IF = 49,        /* (bool scalar) up to the matching ENDIF */
  TINY_INSTR_ENDIF = 50,     /* (if) */
  TINY_INSTR_BARRIER = 51, /* all of a work-group get here before any goes on, and see what was stored */
  TINY_INSTR_VECTOR = 52,    /* one source: broadcast; else `lanes` scalars, lane 0 first */
  TINY_INSTR_EXTRACT = 53,   /* (vector), arg: lane */
  /* matrix units: only for targets that have rows of them */
  TINY_INSTR_UNIT = 54,      /* (a, b, c), arg: which of TinyTarget.units: c + a b; lanes: of c in one work-item */
  TINY_N_INSTRS = 64         /* tables by op have so many rows */
} TinyInstrOp;
#define TINY_INSTR_BIT(op) (UINT64_C (1) << (op)) /* in TinyTarget.ops */

/* One instruction. Its value is named by its position in TinyLinear.instrs. */
typedef struct TinyInstr {
  uint16_t op;        /* TinyInstrOp */
  uint8_t dtype;      /* of the result; for STORE and structure without value: VOID */
  uint8_t reserved;   /* 0 */
  uint16_t lanes;     /* 1 is a scalar; LOAD and STORE of more touch consecutive elements */
  uint16_t n_sources; /* how many it has */
  uint32_t sources;   /* where its sources start in TinyLinear.sources */
  uint32_t reserved2; /* 0 */
  int64_t arg;        /* as the op says; else 0 */
} TinyInstr;

enum {
  TINY_PARAM_READ = 1u, /* the kernel loads from it */
  TINY_PARAM_WRITE = 2u /* the kernel stores to it; both may be set */
};

/* One buffer parameter of a program. What a target cannot store is u32 here: bytes and halves as they
 * lie in memory, four or two in a word, the last word whole; a 64-bit integer as two words, low first. */
typedef struct TinyParam {
  uint32_t dtype; /* TinyDType of its elements */
  uint32_t flags; /* TINY_PARAM_* */
  uint64_t n_elements; /* that the kernel may touch: from the span's start on */
} TinyParam;

/* A kernel as a flat list in execution order: what a plugin compiles or interprets.
 * Position independent of the core's memory; valid during the call it is passed to. */
typedef struct TinyLinear {
  uint32_t struct_size;    /* of the core's */
  uint32_t flags;          /* 0 */
  const char *name;        /* a C identifier */
  const TinyInstr *instrs; /* in execution order */
  const uint32_t *sources; /* indices of instructions, all smaller than the user's own */
  const TinyParam *params; /* buffer parameters, by number */
  uint32_t n_instrs;       /* how many there are, */
  uint32_t n_sources;      /* of sources of all of them, */
  uint32_t n_params;       /* of buffers, at most TinyTarget.max_params, */
  uint32_t n_variables;    /* of variables: one for each extent that is bound at launch, mostly none. The core knows
                            * no most; compile() answers UNSUPPORTED for more than it can pass */
  uint32_t grid[3];  /* work-groups per axis, at least 1 each */
  uint32_t group[3]; /* work-items per group and axis, at least 1 each */
  uint64_t reserved[4]; /* 0 */
} TinyLinear;

/* ---- the target: what a piece of hardware can do, as data ---- */

/* A matrix unit: one instruction, TINY_INSTR_UNIT, gives C + A B of a matrix A, M by K, B, K by N, and C, M by N,
 * whose extents are powers of two. 1 << n_thread_bits work-items hold them together, those that follow each other
 * along axis 0 of the group (its extent is a multiple), and each has a vector of every matrix's elements, a
 * fragment. Where they are several, all of the group come to the instruction, as to a BARRIER. Which elements, a list
 * of bits says: those of the work-item's number among them, the low one first, then those of the element's number
 * in its vector. Each is a bit of the row's number (TINY_UNIT_M and how manyth), of the column's (N) or of that
 * which is summed over (K), or TINY_UNIT_SAME, where both its values hold the same element, for a and b only. The
 * rest of a list is 0.
 *
 * A fragment may have more lanes than max_lanes: such a one is only loaded and stored without a gate, a CONST, kept in a
 * REGISTER, or what UNIT takes and gives. Its elements lie in memory as in its vector.
 *
 * A float of the result is off the true sum by no more than one rounding to c's dtype, to nearest or towards zero, for each
 * number that is added, a rounding of the size that they all add up to: the order and what is kept within are the unit's
 * own. A subnormal factor, product or sum may be zero. Integers wrap. What rounds its factors first, takes them from other memory
 * than registers, or goes on while the program does, is no row: that is for claim(). */
typedef struct TinyUnit {
  uint8_t a_dtype, b_dtype, c_dtype; /* TinyDType of the elements; a_dtype 0: there is no such row, nor any behind it */
  uint8_t m_bits, n_bits, k_bits; /* the extents are 1 << these */
  uint8_t n_thread_bits;          /* 0: a work-item by itself */
  uint8_t reserved0;              /* 0 */
  /* That a work-item can keep at once, of all rows together, 3 at least; 0: any number. A LOAD of a register that does not change
   * while its value is used, and a sum that is stored where its c was read, are the register's; a CONST counts where it is used. */
  uint32_t n_fragments;
  uint32_t reserved[5];           /* 0 */
  uint8_t a[16], b[16], c[16];    /* TINY_UNIT_*, as above */
} TinyUnit;
enum {
  TINY_UNIT_M = 0x10,   /* plus n: bit n of the row of a and c */
  TINY_UNIT_N = 0x20,   /* plus n: bit n of the column of b and c */
  TINY_UNIT_K = 0x30,   /* plus n: bit n of a's column and b's row, over which is summed */
  TINY_UNIT_SAME = 0x40 /* either value of the bit is the same element */
};
enum { TINY_MAX_UNITS = 64 }; /* rows of a target */

enum {
  TINY_TARGET_MASKED = 1u,       /* LOAD and STORE take a gate of as many lanes as the access */
  TINY_TARGET_GROUPS = 2u,       /* has work-groups, LOCAL memory and BARRIER */
  TINY_TARGET_GRID_CHUNKS = 4u,  /* runs runs of grid points on one thread: wants few, long ones */
  TINY_TARGET_FLUSHES_SUBNORMALS = 8u, /* arithmetic may take and give zeros for subnormals */
  TINY_TARGET_UNALIGNED = 16u,   /* vector accesses need only the element's alignment */
  TINY_TARGET_REASSOCIATES = 32u /* its compiler takes floats for real numbers: x + c - c is x */
};
typedef struct TinyTarget {
  uint32_t struct_size;        /* of the core's; stays */
  uint32_t flags;              /* TINY_TARGET_* */
  char arch[256];              /* canonical: names the code, part of every cache key; not empty */
  /* By TinyDType: TINY_INSTR_BIT of the ops it has for operands of it. A CAST has to be declared
   * for both dtypes; of f16, bf16 and f8 outside dtypes_compute, only from and to f32 is meant. */
  uint64_t ops[32];
  uint32_t dtypes_storage;     /* TINY_DTYPE_BIT: may be loaded, stored and cast; at least i32, u32 */
  uint32_t dtypes_compute;     /* arithmetic as declared in ops; bools need not be stored */
  uint32_t index_dtype;        /* TINY_DTYPE_I32 or _I64: preferred for addresses */
  uint32_t vector_bits;        /* of a vector register, a power of two from 8 on; 0 for scalar machines */
  uint32_t n_vector_registers; /* how many a kernel's values fit into, a hint; 0: unknown */
  uint32_t max_lanes;          /* the most lanes an instruction may have, from 1 to 65535 */
  uint32_t n_threads;          /* how many grid points run at once, a hint */
  uint32_t max_params;         /* buffer parameters of one program, at least 1 */
  uint32_t max_grid[3];        /* work-groups per axis, at least 1 each */
  uint32_t max_group[3];       /* work-items of a group per axis; with GROUPS at least 1 each */
  uint32_t max_group_total;    /* and in all; without GROUPS these are not looked at */
  uint32_t local_bytes;        /* of LOCAL memory in one program; without GROUPS: a grid point's own */
  uint64_t cache_bytes[3];     /* L1, L2, L3 seen by one thread, 0 unknown */
  uint64_t max_rounds;         /* the most rounds that all loops of a work-item make together; 0: any number */
  uint64_t reserved[7];        /* 0; docs/abi.md says what for */
  TinyUnit units[TINY_MAX_UNITS]; /* matrix units, those that are used rather first */
} TinyTarget;

/* ---- the dialect: from which the core renders C-like source ----
 *
 * In every template $0 $1 $2 $3 stand for the sources' text, $t for the result type's name, $T for the
 * scalar type's, $n for the lanes, $a for the argument, $s for the first source's type. In a STORE $t $T
 * $n are the stored value's. $name, $params and $x (x, y or z) are whole words; otherwise a letter
 * after $ is all of the name, so that "$Tx$n" is float and x and 4. A vector's text is an
 * identifier; a scalar's is an identifier, a constant or a short expression without side effects, so
 * that what an op's template gives must be able to stand anywhere: in parentheses, or a call. A name
 * that begins with tiny_ is the dialect's own. A NULL op is one that the target does not declare.
 *
 * Fixed are `if (…) {`, assignments, braces, semicolons and the names: data0
 * buffers, var0 variables, gidx0 and lidx0 indices, ridx0 loops, acc0 registers, local0, val0. A variable is
 * of i64 where a VARIABLE of i64 is used; one of i32 is cast from it, so that a language without 64-bit
 * integers declares it of 32 bits and passes the lower half: a target without ADD of i64 is asked for nothing
 * else. A driver that binds whole buffers only adds a span's offset once, where param_read and param_write name
 * the pointer: "device $T *$0 = (device $T *) (base$a + offsets[$a])"; a linear one does it in PARAM. A vector
 * type is defined, by vector_typedef, when an instruction has it. Without load_vector, store_vector,
 * load_masked or store_masked such an access goes lane by lane, by extract. A literal of i8 to u16 is one of
 * i32 and cast; a small float whose suffix is NULL is a BITCAST of its bits; inf, neg_inf and nan are cast for
 * f64, or the bits of each dtype where they are NULL.
 *
 * In param_read, param_write and variable $0 is the parameter's name, in kernel_open and grid $0 $1 $2
 * are the grid's extents. An access with a scalar gate is spelt as the plain one inside
 * choose (scalar loads; $0 the gate, $1 the load, $2 the alternative) or if; the gate of a masked vector
 * access has as many lanes as the access, and so has every source of a vector op. */
typedef struct TinyDialect {
  uint32_t struct_size;               /* of the plugin's */
  uint32_t flags;                     /* 0 */
  const char *prelude;                /* start of every source: includes, helpers */
  const char *types[32];              /* by TinyDType: scalar type names */
  const char *vector_type;            /* "$T$n"; NULL: no vectors */
  const char *vector_typedef;         /* a definition made once for each used vector type, or NULL */
  const char *kernel_open;            /* "$name" and "$params" stand for themselves */
  const char *kernel_close;           /* "}": after the body */
  const char *param_read;             /* one read-only buffer parameter: $T $a */
  const char *param_write;            /* one that is written, or both */
  const char *param_separator;        /* ", " */
  const char *variable;               /* a scalar parameter */
  const char *grid, *group;           /* the index along axis $a (also $x: x, y or z) */
  const char *local_open;             /* declares $T $0[$a] in shared memory */
  const char *barrier;                /* a statement for BARRIER; NULL without TINY_TARGET_GROUPS */
  const char *ops[64];                /* by TinyInstrOp: "($0+$1)" */
  const char *vector_ops[64];         /* where a vector is spelt differently from a scalar */
  const char *load_vector, *store_vector;           /* $0 buffer, $1 index, $2 value */
  const char *load_masked, *store_masked;           /* + gate $2/$3, alternative $3 */
  const char *vector_literal;         /* "($t){$0}" with $0 the comma-separated lanes */
  const char *broadcast;              /* "(($t)($0))" */
  const char *extract;                /* "$0[$a]" */
  const char *inf, *neg_inf, *nan;    /* of f32; NULL: as a bit cast */
  const char *suffix[32];             /* by TinyDType: of a literal, "f", "u", "ll" */
  /* Statements that C-like languages do not share; NULL is C's own spelling, given here. */
  const char *constant;               /* "const $t $0 = $1" */
  const char *mutable_open;           /* "$t $0": a register */
  const char *loop;                   /* "for ($t $0 = 0; $0 < $1; $0++)" */
  const char *choose;                 /* "($0 ? $1 : $2)": around a load behind a gate */
  const char *truth[2];               /* "0", "1": literals of bool */
  const char *local_shared;           /* as local_open, before the kernel, for groups of several items */
  const char *zero;                   /* f32's 0 where compilers drop x * 0.0; NULL: a literal */
  uint64_t reserved[8];               /* 0 */
} TinyDialect;

/* ---- offload: a recognised operation, as data ----
 *
 * What a matrix unit, a fixed-function unit or a vendor's library does is more than an op: the core finds it in
 * the tensor graph, describes it in a TinyOperation and asks the renderer's claim() who is to compute it. What
 * is claimed is compiled by the renderer's compile() with TinyCompileArgs.operation set, loaded with
 * program_load() and launched by a DISPATCH like any other program. What is declined becomes ordinary kernels.
 *
 * A TinyOperation is flat, has no pointers, and means the same wherever it is copied to. Its loops are its axes:
 * extents[i] is the length of axis i, and what each axis number stands for is fixed for each kind (below). An axis that
 * an operation does not have has extent 1. An operand is a view of a buffer, in elements of the operand's
 * dtype: the element for axis positions p[0], p[1], … is element
 *     offset + sum over i of p[i] * strides[i]
 * of the buffer. Strides may be 0 (the operand is the same for all positions: broadcast) or negative (it is
 * flipped), and a transposed matrix is one with its strides exchanged. Every element that an operand names lies
 * in its buffer; the outputs' views name each element of their buffers once, and an output shares no memory
 * with another operand.
 *
 * In the formulas below operands are written by their role; all arithmetic is in compute_dtype, to which operands
 * are converted; sums may be made in any order, and a product and sum with one rounding or two. After the
 * sum or other result r of the operation comes the epilogue, each part only where it is present:
 *     r = r * scale;  r = r + BIAS;  r = activation (r);  OUTPUT = r converted to its dtype
 *
 * New kinds, axes, roles, activations and flags may be added by a minor version. A claim() declines what it
 * does not know: any kind, role, activation, version or flag bit that it has no code for. */
typedef enum {
  /* OUTPUT[b,m,n] = sum over k of A[b,m,k] * B[b,k,n]. Axes: TINY_MATMUL_*. An operand without one of the batch
   * axes has stride 0 there. */
  TINY_OPERATION_MATMUL = 1,
  /* OUTPUT[b,g,o,y] = sum over c and w of A[b,g,c,y*step+w*dilation-padding] * B[g,o,c,w] where y and w are up to
   * three axes each and an A at a position below 0 or not below its window_input is 0. Axes: TINY_CONVOLUTION_*; A's
   * strides along its OUT axes are those of its positions, along WINDOW 0. A without in-channels of more than
   * one per group is depthwise. */
  TINY_OPERATION_CONVOLUTION = 2,
  /* OUTPUT[kept] = combination by `reduce` of A[kept,reduced] over the reduced axes. Axes: TINY_REDUCTION_*. */
  TINY_OPERATION_REDUCTION = 3,
  /* OUTPUT[kept,i] = exp (A[kept,i] * scale - m[kept]) / sum over j of exp (A[kept,j] * scale - m[kept]) with
   * m any number that keeps it from overflow, such as the largest. Axes: TINY_SOFTMAX_*. No epilogue; scale is
   * used as given here. */
  TINY_OPERATION_SOFTMAX = 4,
  /* OUTPUT[b,q,d] = sum over k of P[b,q,k] * B2[b,k,d] with P the softmax over k of scale * (sum over e of
   * A[b,q,e] * B[b,k,e]) + MASK[b,q,k]. A is the query, B the key, B2 the value. With TINY_OPERATION_CAUSAL
   * keys beyond the query's number, k > q + n_keys - n_queries, count for nothing; there are then no fewer keys than queries, so
   * that each query has one. Axes: TINY_ATTENTION_*; an operand without one of the batch axes has
   * stride 0. No epilogue; scale is used as given here. */
  TINY_OPERATION_ATTENTION = 5,

  /* Factors of the matrices A[b], ROW by COLUMN, in f32 or f64, and what they solve. Axes: TINY_FACTOR_*, each operand
   * having those that it is indexed by here. No epilogue. The core never finds these in a graph: its linear algebra
   * offers them, to renderers that name them in claim_kinds, with matrices that lie by columns, one behind the other
   * (ROW has stride 1). A matrix with an infinity or a NaN, or whose method does not converge, gives NaNs; none
   * fails, hangs, or changes what the others of its batch give. */

  /* OUTPUT[b,row,column] = L, lower triangular with zeros above and positive on its diagonal: L L' = A, of which the
   * lower triangle is read. All of a matrix that has no such L is NaN. */
  TINY_OPERATION_CHOLESKY = 6,
  /* OUTPUT[b,row,column]: U on and above the diagonal, L below, without its ones: row i of L U is row p of A with
   * p = OUTPUT3[b,row] (i32, from 0). Of step k OUTPUT2[b,value] (i32, from 0) is the row, of those as they lay then, that was
   * exchanged with row k: the first whose element of column k is the largest. A column of zeros keeps its order. */
  TINY_OPERATION_LU = 7,
  /* OUTPUT[b,row,right] = X with A X = B[b,row,right], A lower triangular, its upper triangle not being read; with
   * TINY_OPERATION_UPPER the other way round, with TINY_OPERATION_UNIT ones stand for its diagonal. A zero there
   * divides. */
  TINY_OPERATION_TRIANGULAR = 8,
  /* OUTPUT[b,row,left] = Q, OUTPUT2[b,left,column] = R: orthonormal columns times an upper triangle is A. LEFT is the lesser of
   * ROW and COLUMN, or ROW. By reflections, whose signs are LAPACK's. */
  TINY_OPERATION_QR = 9,
  /* OUTPUT[b,row,left] = U, OUTPUT2[b,value] = S, OUTPUT3[b,right,column] = V': U diag (S) V' = A, orthonormal columns of U and
   * V, values from the largest down. LEFT and RIGHT are VALUE, the lesser of ROW and COLUMN, each; or ROW and COLUMN. */
  TINY_OPERATION_SVD = 10,
  /* OUTPUT[b,value], from the least up, OUTPUT2[b,row,column]: eigenvalues of A, symmetric, of which the lower triangle is
   * read, and orthonormal eigenvectors in columns. */
  TINY_OPERATION_EIGH = 11
} TinyOperationKind;

#define TINY_OPERATION_BIT(kind) (UINT64_C (1) << (kind)) /* of TinyRenderer.claim_kinds */
enum { TINY_OPERATION_MAX_AXES = 12, TINY_OPERATION_MAX_OPERANDS = 6 }; /* of any operation */
/* What axis has what number. BATCH, KEPT and REDUCED: outermost first, unused ones of extent 1 at the end. */
enum { TINY_MATMUL_BATCH = 0, TINY_MATMUL_M = 4, TINY_MATMUL_N = 5, TINY_MATMUL_K = 6 };
enum {
  TINY_CONVOLUTION_BATCH = 0,       /* images */
  TINY_CONVOLUTION_GROUP = 1,       /* of channels */
  TINY_CONVOLUTION_OUT_CHANNEL = 2, /* of one group */
  TINY_CONVOLUTION_IN_CHANNEL = 3,  /* of one group; summed */
  TINY_CONVOLUTION_OUT = 4,         /* 4 5 6: positions of the output, outermost first */
  TINY_CONVOLUTION_WINDOW = 7       /* 7 8 9: positions in the window, in the order of OUT; summed */
};
enum { TINY_REDUCTION_KEPT = 0, TINY_REDUCTION_REDUCED = 4 }; /* the first of each */
enum { TINY_SOFTMAX_KEPT = 0, TINY_SOFTMAX_AXIS = 4 };        /* the first kept; the one summed over */
enum {
  TINY_ATTENTION_BATCH = 0, /* 0 1 2: batch, heads, … */
  TINY_ATTENTION_QUERY = 3, /* q */
  TINY_ATTENTION_KEY = 4,   /* k: summed in the result */
  TINY_ATTENTION_DEPTH = 5, /* e: summed in the scores */
  TINY_ATTENTION_VALUE = 6  /* d */
};
enum {
  TINY_FACTOR_BATCH = 0,  /* each with a matrix of its own */
  TINY_FACTOR_ROW = 1,    /* of A */
  TINY_FACTOR_COLUMN = 2, /* of A; as many as ROW but for LU, QR and SVD */
  TINY_FACTOR_LEFT = 3,   /* columns of Q or U */
  TINY_FACTOR_RIGHT = 4,  /* columns of a right side; rows of V' */
  TINY_FACTOR_VALUE = 5   /* the lesser of ROW and COLUMN */
};

typedef enum {
  TINY_ROLE_OUTPUT = 0, /* written, as OUTPUT2 and OUTPUT3 are; the others are read */
  TINY_ROLE_A = 1,      /* the first input, as in the formulas */
  TINY_ROLE_B = 2,      /* the second */
  TINY_ROLE_BIAS = 3,   /* added in the epilogue */
  TINY_ROLE_MASK = 4,   /* added to an ATTENTION's scores */
  TINY_ROLE_B2 = 5,     /* an ATTENTION's value */
  TINY_ROLE_OUTPUT2 = 6, /* a further result */
  TINY_ROLE_OUTPUT3 = 7  /* and one more */
} TinyOperandRole;

typedef enum {
  TINY_ACTIVATION_NONE = 0,    /* r */
  TINY_ACTIVATION_RELU = 1,    /* max (r, 0) */
  TINY_ACTIVATION_SIGMOID = 2, /* 1 / (1 + exp (-r)) */
  TINY_ACTIVATION_TANH = 3,    /* tanh (r) */
  TINY_ACTIVATION_SILU = 4,    /* r * sigmoid (r) */
  TINY_ACTIVATION_GELU = 5     /* r * (1 + tanh (sqrt (2 / pi) * (r + 0.044715 * r^3))) / 2 */
} TinyActivation;

typedef struct TinyOperandView {
  uint32_t role;       /* TinyOperandRole; each at most once */
  uint32_t dtype;      /* TinyDType of an element */
  uint32_t buffer;     /* its number in TinyCommand.buffers; two operands that are read may have one */
  uint32_t reserved0;  /* 0 */
  uint64_t n_elements; /* of that buffer */
  int64_t offset;      /* in elements */
  int64_t strides[TINY_OPERATION_MAX_AXES]; /* in elements, by axis */
  uint64_t reserved[2]; /* 0 */
} TinyOperandView;

enum {
  TINY_OPERATION_CAUSAL = 1u, /* of an ATTENTION */
  TINY_OPERATION_UPPER = 2u,  /* of a TRIANGULAR */
  TINY_OPERATION_UNIT = 4u    /* of a TRIANGULAR */
};
enum { TINY_OPERATION_VERSION = 1 };  /* of all that is said here of operations */
typedef struct TinyOperation {
  uint32_t struct_size;    /* of the core's */
  uint32_t flags;          /* TINY_OPERATION_* */
  uint32_t version;        /* of what the fields mean: TINY_OPERATION_VERSION */
  uint32_t kind;           /* TinyOperationKind */
  uint32_t n_axes;         /* of the kind; extents beyond are 1 */
  uint32_t n_operands;     /* the OUTPUT is the first, before other outputs */
  uint32_t n_buffers;      /* of a DISPATCH, which has no variables; at most n_operands */
  uint32_t compute_dtype;  /* TinyDType */
  uint32_t activation;     /* TinyActivation */
  uint32_t reduce;         /* TinyInstrOp ADD, MUL or MAX: of a REDUCTION; else 0 */
  double scale;            /* 1: none */
  int64_t extents[TINY_OPERATION_MAX_AXES]; /* at least 1 each */
  /* CONVOLUTION, for each of the OUT axes; else 0 */
  int64_t window_input[3];    /* positions that A has */
  int64_t window_step[3];     /* the stride of the convolution */
  int64_t window_dilation[3];
  int64_t window_padding[3];  /* before the first position; may be negative: what is cut off */
  uint64_t reserved[16];      /* 0 */
  TinyOperandView operands[TINY_OPERATION_MAX_OPERANDS]; /* n_operands of them; the others are 0 */
} TinyOperation;

/* What claim() answers. The core zeroes it, sets struct_size, and ignores what it says when claim() fails. */
enum { TINY_CLAIM_DECLINED = 0, TINY_CLAIM_ACCEPTED = 1 };
typedef struct TinyClaim {
  uint32_t struct_size; /* of the core's; stays */
  uint32_t flags;       /* 0 */
  uint32_t verdict;     /* TINY_CLAIM_* */
  uint32_t reserved0;   /* 0 */
  /* ACCEPTED: the nanoseconds that one launch is expected to take on a device of that arch, its own overhead and all
   * conversions of layout included, at least 1. The core takes the offer when that is less than its own estimate
   * for the kernels that it replaces; one without a cost it does not take. */
  uint64_t cost_ns;
  uint64_t reserved[4]; /* 0 */
  /* For people, NUL-terminated UTF-8, lower case, no full stop: why it is declined, or what makes it
   * cost so much. Shown by `tinycore explain` and DEBUG=2; of a declined one required. */
  char reason[256];
} TinyClaim;

/* ---- code: how a kernel becomes a binary ---- */
typedef struct TinyCompileArgs {
  uint32_t struct_size;       /* of the core's */
  uint32_t flags;             /* 0 */
  const char *arch;           /* TinyTarget.arch as target() filled it */
  const char *name;           /* the kernel's entry name */
  const char *source;         /* dialect renderers: the text; else NULL */
  uint64_t source_size;       /* in bytes, without the 0 at its end */
  const TinyLinear *linear;   /* NULL: an operation */
  /* What claim() accepted, to be compiled instead of a kernel: then source and linear are NULL. The program has as many
   * buffer parameters as it says, no variables, and is dispatched with a grid of one. Valid during the call. */
  const TinyOperation *operation;
  uint64_t reserved[3];       /* 0 */
} TinyCompileArgs;

typedef struct TinyHost TinyHost;

/* TINY_RENDERER_CLAIMS_ONLY: compile() takes nothing but operations that claim() accepted; target() and dialect
 * are NULL. Other kernels are made by another renderer: see TINY_MODULE_BESIDE_HOST. */
enum { TINY_RENDERER_CLAIMS_ONLY = 1u };
/* One way of turning kernels into programs. With a dialect the core renders source for compile();
 * without one compile() walks the linear program itself. Needs no device. */
typedef struct TinyRenderer {
  uint32_t struct_size;       /* of the plugin's */
  uint32_t flags;             /* TINY_RENDERER_* */
  const char *name;           /* "LLVM", as after the colon in DEV=CPU:LLVM; a letter, then letters, digits, "-", "_" */
  const char *code_version;   /* changes when the same input may give other code; in the cache key */
  const TinyDialect *dialect; /* or NULL */
  /* Fills @out for @arch as the user wrote it, "" when nothing was written. On entry out->arch is
   * the arch that info() gave for the device that is opened: what "" means, and what a text that
   * names a part of it changes. It is "" when no device of this module is opened; then "" is the
   * machine at hand. INVALID or UNSUPPORTED for an @arch of which it knows no word. The same each time. Serialised
   * with the module's functions. Required. */
  TinyStatus (*target) (const char *arch, TinyTarget *out, TinyPluginError *error);
  /* Makes a binary; *out_data comes from host->alloc and becomes the core's, which keeps it on disk and loads it in
   * other processes. COMPILE with the compiler's log, or UNSUPPORTED for instructions that it does not know or cannot
   * make: this kernel cannot be, which a search takes for a candidate less and any other caller for an error. From any
   * thread, by several at once. Required. */
  TinyStatus (*compile) (const TinyCompileArgs *args, void **out_data, uint64_t *out_size,
                         TinyPluginError *error);
  /* Text of a binary for DEBUG=7, NUL-terminated from host->alloc; becomes the core's. CORRUPT of what
   * compile() did not make. From any thread, by several at once. Optional: without it the text is left out. */
  TinyStatus (*disassemble) (const void *data, uint64_t size, char **out_text,
                             TinyPluginError *error);
  /* Whether an operation is to be computed here. @arch is what compile() is given. Answers from @arch and
   * @operation alone and gives the same answer each time, as schedules are kept; takes microseconds, runs
   * nothing. Called from any thread, by several at once. A failure is taken as declined, with the error's text
   * as the reason. Optional: without it no operations are looked for, and nothing is different from a core that
   * cannot. */
  TinyStatus (*claim) (const char *arch, const TinyOperation *operation, TinyClaim *out,
                       TinyPluginError *error);
  /* The kinds that claim() is asked about, TINY_OPERATION_BIT of each; 0: those up to ATTENTION. Where none up to
   * ATTENTION is among them, graphs are scheduled as without claim(). */
  uint64_t claim_kinds;
  uint64_t reserved[6]; /* 0 */
} TinyRenderer;

/* ---- what the core gives the plugin ---- */
enum {
  TINY_LOG_ERROR = 0,   /* something failed; what is answered by a status is not logged as well */
  TINY_LOG_WARNING = 1, /* it works, and somebody ought to know */
  TINY_LOG_INFO = 2,    /* shown where the program shows information */
  TINY_LOG_DEBUG = 3    /* shown where the program shows debugging messages */
};
/* Given to init(); holds until fini() has returned. Its functions may be called from any thread at any time between
 * them, also inside of the plugin's own functions. */
struct TinyHost {
  uint32_t struct_size; /* of the core's */
  uint32_t flags;       /* 0 */
  uint32_t abi_major;   /* the core's, as TINY_PLUGIN_ABI_MAJOR */
  uint32_t abi_minor;   /* the core's: no field that came later is there */
  /* Host memory, aligned to 64, uninitialised; of 0 bytes an address as well. NULL when there is none. */
  void *(*alloc) (uint64_t n_bytes);
  /* Of what alloc() gave, or NULL. */
  void (*free) (void *memory);
  /* One message for people, at @level (TINY_LOG_*), under @domain (NULL: "tinycore-plugin"): @text is one or
   * more lines of UTF-8 without a line feed at the end, and is copied. */
  void (*log) (int32_t level, const char *domain, const char *text);
  uint64_t reserved[8]; /* 0 */
};

/* ---- devices ---- */
typedef struct TinyPluginDevice TinyPluginDevice;   /* what open() gave: never NULL, else whatever the plugin likes */
typedef struct TinyPluginBuffer TinyPluginBuffer;   /* of a device, as are the others */
typedef struct TinyPluginQueue TinyPluginQueue;     /* NULL for devices without queue_create() */
typedef struct TinyPluginProgram TinyPluginProgram; /* a loaded binary */

/* What a device is, by which the core chooses where nobody did. */
enum {
  TINY_CLASS_CPU = 1,       /* the host's processor */
  TINY_CLASS_GPU = 2,       /* a graphics processor, or what is programmed like one */
  TINY_CLASS_NPU = 3,       /* an accelerator of another kind */
  TINY_CLASS_REMOTE = 4,    /* on another machine */
  TINY_CLASS_SIMULATOR = 5, /* never chosen unless asked for */
};

/* What scan() found, without opening anything. */
typedef struct TinyCandidate {
  uint32_t struct_size;  /* of the core's; stays, and is how far apart the elements of the array are */
  uint32_t flags;        /* 0 */
  char id[64];           /* what open() is given; stable over reboots: "cpu", "pci-0000:c1:00.0"; not empty */
  char name[128];        /* for people */
  char driver[64];       /* "nvidia 580.82.07", or "" */
  uint32_t device_class; /* TINY_CLASS_* */
  uint32_t reserved0;    /* 0 */
  uint64_t reserved[4];  /* 0 */
} TinyCandidate;

enum {
  TINY_DEVICE_HOST_MEMORY = 1u, /* map() works on every buffer and costs nothing */
  TINY_DEVICE_OVERLAPS = 2u,    /* can run commands together: the core looks which may be */
  TINY_DEVICE_RUNS_NOTHING = 4u, /* a dispatch does nothing, so its time is no kernel's */
  TINY_DEVICE_NON_COHERENT = 8u  /* what host and device write in map()ped memory is seen by the other after
                                  * sync(), which the device then has */
};
/* Spans begin at multiples of this, so that no device may ask for more. */
enum { TINY_SPAN_ALIGNMENT = 512 };
typedef struct TinyDeviceInfo {
  uint32_t struct_size;   /* of the core's; stays */
  uint32_t flags;         /* TINY_DEVICE_* */
  char name[128];         /* for people */
  char arch[256];         /* of this device; target() of the module's renderers is given it */
  uint64_t memory_bytes;  /* 0: unknown */
  uint64_t max_buffer_bytes; /* the core asks for no more; 0: unknown */
  uint32_t alignment;     /* of buffers and of a DISPATCH's spans' offsets, a power of two up to
                           * TINY_SPAN_ALIGNMENT; 0: 1 */
  uint32_t n_threads;     /* that run a kernel at once, for people; 0: unknown */
  uint32_t transfer_bytes; /* what uploads, downloads and copies move is a whole number of these, as is
                            * where it lies; a power of two, at most 64; 0: any number of bytes. A buffer
                            * then reaches to the next multiple */
  uint32_t reserved0;     /* 0 */
  uint64_t reserved[7];   /* 0 */
} TinyDeviceInfo;

/* A part of a buffer. In a DISPATCH for a target that lacks dtypes of 1 or 2 bytes a whole
 * number of words, of which the last may be more than the tensor. */
typedef struct TinySpan {
  TinyPluginBuffer *buffer; /* of the device */
  uint64_t offset;          /* in bytes. Temporaries share a buffer, so that a DISPATCH has offsets other than
                             * 0: multiples
                             * of info()'s alignment. A driver that binds whole buffers passes the offset beside */
  uint64_t n_bytes;         /* from there on; offset + n_bytes lie in the buffer */
} TinySpan;

typedef enum {
  /* Of 0 bytes the first three are done when they are reached, and touch nothing. */
  TINY_COMMAND_UPLOAD = 1,   /* host memory to dst */
  TINY_COMMAND_DOWNLOAD = 2, /* src to host memory */
  TINY_COMMAND_COPY = 3,     /* src to dst; they do not overlap */
  TINY_COMMAND_DISPATCH = 4  /* runs a program */
  /* Minor versions may add others: what it does not know submit() refuses with UNSUPPORTED. */
} TinyCommandType;

enum { TINY_COMMAND_OVERLAPS = 1u }; /* see flags */
/* The core has seen that copies have sizes that fit and dispatches what their programs take. A type that the
 * plugin does not know is UNSUPPORTED; what comes before it in the submission may have run. */
typedef struct TinyCommand {
  uint32_t struct_size;       /* of the core's: the next command is so many bytes on */
  uint32_t type;              /* TinyCommandType */
  TinySpan dst;               /* UPLOAD, COPY: what is written */
  TinySpan src;               /* DOWNLOAD, COPY: what is read; as long as dst */
  void *host;                 /* UPLOAD (read only), DOWNLOAD */
  TinyPluginProgram *program; /* DISPATCH */
  const TinySpan *buffers;    /* as many as the program has parameters, in their order */
  const int64_t *variables;   /* DISPATCH: as many as the program has, in their order */
  uint32_t n_buffers;         /* how many spans, */
  uint32_t n_variables;       /* and variables there are */
  uint32_t grid[3];           /* DISPATCH: work-groups per axis, as the program was compiled for (TinyLinear.grid) */
  /* TINY_COMMAND_OVERLAPS: may run together with the one before it and with those that one may run
   * together with. Set for devices with TINY_DEVICE_OVERLAPS; without it the command waits for all before it. */
  uint32_t flags;
  uint64_t reserved[4];       /* 0 */
} TinyCommand;

/* Work for a queue. Commands run, or seem to, one after the other, and submissions of a queue do so too;
 * nothing orders those of different queues but the core, which waits on the host.
 *
 * Without wait() a device is synchronous: submit() returns when all of it is done and visible.
 *
 * With wait() it is asynchronous: submit() may return before the work is done, with this submission's point
 * on the timeline of the queue, by which wait() and reached() name it.
 *  - Points. Each is greater than those given before by the same queue; a new queue may begin anew. A point
 *    is reached when its submission and all before it are done and what they wrote is visible to the host,
 *    to other queues, and to later submissions. 0 is no point: *out_point left at 0 says that the work was
 *    done when submit() returned, and so was all before it.
 *  - How long things live. The submission, its commands, their spans and variables: during submit() only.
 *    Host memory of transfers, out_ns, buffers and programs: until the point is reached, or has failed. The
 *    core frees and unloads nothing before, and destroys no queue that still has work.
 *  - At most TINY_MAX_IN_FLIGHT submissions of a queue are not reached: a ring of so many is enough.
 *  - When submit() fails, some of its commands may have run, those before the one that failed, and what they
 *    were to write holds anything. None runs any more after it returned, and there is no point; submissions before
 *    go on.
 *  - When work fails later, its point fails, and with it every later one of the queue: what was submitted
 *    behind does not run. From then on the queue is broken: submit(), and wait() for these points, answer that
 *    same failure, with the same text, however often they are asked. Points before stay reached. Other queues
 *    are not concerned. A point has failed only when nothing of it runs or touches memory any more. The core
 *    destroys a broken queue and makes another to go on, so that queue_create() is required.
 *  - TINY_STATUS_DEVICE_LOST fails every point of every queue that was not reached, at once, and whoever
 *    waits is woken with it. */
enum { TINY_MAX_IN_FLIGHT = 64 }; /* submissions of a queue that are not reached */
typedef struct TinySubmit {
  uint32_t struct_size; /* of the core's */
  uint32_t flags;       /* 0 */
  const TinyCommand *commands; /* one behind the other, each as long as its own struct_size */
  uint32_t n_commands;  /* may be 0: then there is a point, but no work */
  uint32_t reserved0;   /* 0 */
  uint64_t *out_ns;    /* NULL, or room for each command's duration in nanoseconds; filled when the work is done */
  uint64_t *out_point; /* of a device with wait(): where the point goes, 0 on entry. Without: NULL */
  uint64_t reserved[3]; /* 0 */
} TinySubmit;

/* For sync(): who is to see what the other wrote. */
enum {
  TINY_SYNC_TO_HOST = 1u,  /* before the host reads what the device wrote */
  TINY_SYNC_TO_DEVICE = 2u /* after the host wrote what the device will read */
};

/* A program as program_load() gets it. All of it is valid during the call: what is needed later is copied. */
typedef struct TinyProgramArgs {
  uint32_t struct_size; /* of the core's */
  uint32_t flags;       /* 0 */
  const char *name;     /* the kernel's entry name, as compile() was given it */
  const char *arch;     /* what it was compiled for */
  const void *data;     /* what compile() gave, perhaps in another process or year; at any alignment */
  uint64_t size;        /* of data, in bytes */
  uint32_t n_params;    /* buffers that a DISPATCH will have, */
  uint32_t n_variables; /* and variables */
  uint32_t group[3];    /* work-items per group and axis that the kernel was compiled for, as in TinyLinear */
  uint32_t reserved0;   /* 0 */
  uint64_t reserved[4]; /* 0 */
} TinyProgramArgs;

/* Device functions. The first nine are required, but for the queues'; a missing one refuses the plugin by
 * name. Those that answer nothing cannot fail; after DEVICE_LOST only these are called. */
typedef struct TinyDeviceTable {
  uint32_t struct_size; /* of the plugin's */
  uint32_t flags;       /* 0 */
  /* The last call for the device: its queues, programs and buffers are gone before, and no other function runs. */
  void (*close) (TinyPluginDevice *device);
  /* Fills @out, whose fields are 0 but for its size. Called after open() before anything else; what it says
   * holds until close(). */
  TinyStatus (*info) (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error);
  /* n_bytes may be 0 and the result is still a buffer; contents are undefined. At most max_buffer_bytes.
   * OUT_OF_MEMORY: the core frees what it keeps for later and asks once more. From any thread, by several at
   * once. */
  TinyStatus (*alloc) (TinyPluginDevice *device, uint64_t n_bytes, TinyPluginBuffer **out,
                       TinyPluginError *error);
  /* Of what alloc(), import() and import_host() gave: nothing that was submitted uses it any more. From any thread. */
  void (*free) (TinyPluginDevice *device, TinyPluginBuffer *buffer);
  /* NULL: submit() needs none, is given NULL and may come from several threads at once. Then queue_destroy() is
   * NULL as well. The core makes one queue for work and one for transfers, and more where a program asks for them;
   * the device fails where the first cannot be made. From any thread. */
  TinyStatus (*queue_create) (TinyPluginDevice *device, TinyPluginQueue **out,
                              TinyPluginError *error);
  /* No work of it is left, or it is broken. From any thread. */
  void (*queue_destroy) (TinyPluginDevice *device, TinyPluginQueue *queue);
  /* Does the work, or begins it: see TinySubmit. INVALID and UNSUPPORTED of what it does not take, LAUNCH
   * where the driver refuses, DEVICE_LOST. One thread at a time for each queue that is not NULL. */
  TinyStatus (*submit) (TinyPluginDevice *device, TinyPluginQueue *queue, const TinySubmit *submit,
                        TinyPluginError *error);
  /* Makes a program of a binary; @args and its data are the caller's again when it returns. CORRUPT of what cannot
   * be a whole binary of this plugin's compile(): of no bytes, cut off, something else, or not for this arch; one that
   * the core had kept on disk is compiled again. COMPILE as well where it is the source of a dialect, which only the
   * driver reads. A changed bit, or bytes behind its end, it need not see: what the core keeps has a checksum. From any
   * thread, by several at once. */
  TinyStatus (*program_load) (TinyPluginDevice *device, const TinyProgramArgs *args,
                              TinyPluginProgram **out, TinyPluginError *error);
  /* Nothing that was submitted runs it any more. From any thread. */
  void (*program_unload) (TinyPluginDevice *device, TinyPluginProgram *program);
  /* Optional: a host address of the whole buffer, valid until it is freed. Used where info() says
   * TINY_DEVICE_HOST_MEMORY, right after alloc(); otherwise, or where it fails, transfers are commands. */
  TinyStatus (*map) (TinyPluginDevice *device, TinyPluginBuffer *buffer, void **out,
                     TinyPluginError *error);
  /* Optional: memory that the program made with the driver itself, by the driver's own handle (such
   * as a cl_mem), as a buffer of its size; nothing is copied. It was made in what context() gives, is
   * kept alive until free(), and map() need not work on it. */
  TinyStatus (*import) (TinyPluginDevice *device, void *handle, TinyPluginBuffer **out,
                        uint64_t *out_n_bytes, TinyPluginError *error);
  /* Optional: the driver's own object in which such memory is made, valid as long as
   * the device is open. */
  TinyStatus (*context) (TinyPluginDevice *device, void **out, TinyPluginError *error);
  /* Optional, both or neither: with them the device is asynchronous, see TinySubmit. They are called from any
   * thread, also during submit() on the same queue, but never with a queue that is being destroyed.
   * wait() returns TINY_STATUS_OK once @point, one that submit() gave, is reached; its failure if it failed;
   * TINY_STATUS_TIMEOUT after @timeout_ns, which changes nothing: the work goes on and can be waited for again.
   * UINT64_MAX is no limit, 0 only looks. reached() never blocks and sets *out_point to the last point that
   * is reached, 0 before the first; it never goes back. Of a broken queue it sets it to the last point before
   * the failure, and answers the failure. */
  TinyStatus (*wait) (TinyPluginDevice *device, TinyPluginQueue *queue, uint64_t point,
                      uint64_t timeout_ns, TinyPluginError *error);
  /* See wait(). */
  TinyStatus (*reached) (TinyPluginDevice *device, TinyPluginQueue *queue, uint64_t *out_point,
                         TinyPluginError *error);
  /* Required with TINY_DEVICE_NON_COHERENT, else not called: makes the bytes of @span, in a buffer that was
   * map()ped, that the device wrote visible to the host (TINY_SYNC_TO_HOST, before the host reads) or the
   * other way round (TINY_SYNC_TO_DEVICE, after the host wrote). Nothing that is submitted uses these bytes
   * meanwhile. The span may begin and end anywhere: what lies beside it on a cache line loses nothing that
   * either side wrote. Of memory that was never synchronised the host sees anything. UPLOAD, DOWNLOAD and COPY
   * need no sync(). */
  TinyStatus (*sync) (TinyPluginDevice *device, const TinySpan *span, uint32_t direction,
                      TinyPluginError *error);
  /* Optional: host memory that belongs to somebody else, such as another backend's device, as a buffer:
   * @n_bytes from @memory on, which is aligned as info() asks and stays there until free(), which leaves it
   * alone. Nothing is copied: programs read and write that memory, and when submit() has returned what they
   * wrote is there. For devices with TINY_DEVICE_HOST_MEMORY; one that has it can run the kernels that a module
   * with TINY_MODULE_BESIDE_HOST does not claim, and shares its buffers with the program when it is in a
   * process of its own (DEV=ISOLATED+NAME). */
  TinyStatus (*import_host) (TinyPluginDevice *device, void *memory, uint64_t n_bytes,
                             TinyPluginBuffer **out, TinyPluginError *error);
  uint64_t reserved[10]; /* 0; docs/abi.md says what for */
} TinyDeviceTable;

/* ---- the module ---- */
enum {
  TINY_MODULE_ANY_RENDERER = 1u, /* takes programs of every other backend's renderers */
  /* Its renderers only claim operations (TINY_RENDERER_CLAIMS_ONLY), and its devices have
   * TINY_DEVICE_HOST_MEMORY. All other kernels
   * are made and run by another backend, the processor's unless DEV=NAME:SELECTOR:BACKEND says which, straight on the
   * memory that map() gives. Nothing is copied, and commands of the two never run at the same time on the
   * same buffer. */
  TINY_MODULE_BESIDE_HOST = 2u
};
typedef struct TinyPluginModule {
  uint32_t struct_size;   /* of the plugin's */
  uint32_t flags;         /* TINY_MODULE_* */
  uint32_t abi_major;     /* what it was built against: TINY_PLUGIN_ABI_MAJOR */
  uint32_t abi_minor;     /* and TINY_PLUGIN_ABI_MINOR */
  uint32_t abi_minor_min; /* serves cores of this minor and later */
  uint32_t n_renderers;   /* how many there are, at most 256 */
  const char *name;       /* as in the manifest: a letter, then letters, digits, "-" and "_", at most 32 in all */
  const char *vendor;     /* as in the manifest, up to 256 bytes, as are the next two; or NULL */
  const char *version;    /* of the plugin; or NULL */
  const char *license;    /* an SPDX expression; or NULL */
  const TinyRenderer *renderers; /* one behind the other, each as long as its own struct_size; the first is the
                                  * default */
  /* The first call, before all others; after fini() it may come again. @host holds until fini(). A failure: the
   * backend is not there, for the reason that is told. No device access, under 50 ms. Required. */
  TinyStatus (*init) (const TinyHost *host, TinyPluginError *error);
  /* The last call: all devices are closed. Only where init() succeeded. Optional. */
  void (*fini) (void);
  /* Fills up to *n candidates, all of each but their struct_size, and sets *n to how many there are; the same each
   * time. Elements of @out are as far apart as the first one's struct_size says. No device access, so that it takes
   * no longer than init() may. None is no failure, but TINY_STATUS_NO_DEVICE with a text says why there is none, as
   * the conformance suite wants to know, and so do DRIVER and PERMISSION. Called again with more room where there
   * are more than that. Required. */
  TinyStatus (*scan) (TinyCandidate *out, uint32_t *n, TinyPluginError *error);
  /* Opens the device of that id, several times where it is asked to; again after DEVICE_LOST, before close() of the
   * lost one. NO_DEVICE of another id; BUSY, PERMISSION and DRIVER say why it cannot be had, and the next one that the
   * user named is tried. Required. */
  TinyStatus (*open) (const char *id, TinyPluginDevice **out, const TinyDeviceTable **out_table,
                      TinyPluginError *error);
  uint64_t reserved[16]; /* 0; docs/abi.md says what for */
} TinyPluginModule;

/* The one exported symbol. Returns the table, the same each time and constant until the process ends, or NULL
 * with @error filled when it cannot serve @host_minor. */
typedef const TinyPluginModule *(*TinyPluginEntry) (uint32_t host_minor, TinyPluginError *error);

/* What the structs had in minor version 0, in bytes: so much is there, whoever wrote it. When one grows, its row
 * stays, and TINY_SIZE_1_… (the minor's number) comes beside it. */
#define TINY_BYTES_TO(type, field) (offsetof (type, field) + sizeof (((type *) 0)->field))
enum {
  TINY_SIZE_0_PLUGIN_ERROR = TINY_BYTES_TO (TinyPluginError, hint),
  TINY_SIZE_0_LINEAR = TINY_BYTES_TO (TinyLinear, reserved),
  TINY_SIZE_0_TARGET = TINY_BYTES_TO (TinyTarget, reserved),
  TINY_SIZE_0_DIALECT = TINY_BYTES_TO (TinyDialect, reserved),
  TINY_SIZE_0_OPERATION = TINY_BYTES_TO (TinyOperation, operands),
  TINY_SIZE_0_CLAIM = TINY_BYTES_TO (TinyClaim, reason),
  TINY_SIZE_0_COMPILE_ARGS = TINY_BYTES_TO (TinyCompileArgs, reserved),
  TINY_SIZE_0_RENDERER = TINY_BYTES_TO (TinyRenderer, reserved),
  TINY_SIZE_0_HOST = TINY_BYTES_TO (TinyHost, reserved),
  TINY_SIZE_0_CANDIDATE = TINY_BYTES_TO (TinyCandidate, reserved),
  TINY_SIZE_0_DEVICE_INFO = TINY_BYTES_TO (TinyDeviceInfo, reserved),
  TINY_SIZE_0_COMMAND = TINY_BYTES_TO (TinyCommand, reserved),
  TINY_SIZE_0_SUBMIT = TINY_BYTES_TO (TinySubmit, reserved),
  TINY_SIZE_0_PROGRAM_ARGS = TINY_BYTES_TO (TinyProgramArgs, reserved),
  TINY_SIZE_0_DEVICE_TABLE = TINY_BYTES_TO (TinyDeviceTable, reserved),
  TINY_SIZE_0_PLUGIN_MODULE = TINY_BYTES_TO (TinyPluginModule, reserved)
};

/* Readable by packagers without running anything: readelf -n */
typedef struct TinyPluginNote {
  uint32_t name_size;     /* 9: of name, with its 0 */
  uint32_t desc_size;     /* 16: of what follows the name */
  uint32_t type;          /* 1 */
  char name[12];          /* "TINY-ABI" */
  uint32_t abi_major;     /* as in TinyPluginModule, as are the next two */
  uint32_t abi_minor;     /* what it was built against */
  uint32_t abi_minor_min; /* the least core that it serves */
  uint32_t reserved;      /* 0 */
} TinyPluginNote;
/* Once in a plugin, with the least minor that it serves. */
#define TINY_PLUGIN_NOTE(minor_min)                                                                \
  __attribute__ ((section (".note.tiny.abi"), used, aligned (4))) static const TinyPluginNote      \
      tiny_plugin_note                                                                             \
      = { 9, 16, 1, "TINY-ABI", TINY_PLUGIN_ABI_MAJOR, TINY_PLUGIN_ABI_MINOR, (minor_min), 0 }

#endif /* __GI_SCANNER__ */

#ifdef __cplusplus
}
#endif
