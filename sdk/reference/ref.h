/* SPDX-License-Identifier: MIT
 *
 * ref.h: what the files of REF share. Read tiny-ref.c first: it is the part that every
 * backend has. The others are what REF does in place of hardware. */
#pragma once

#include "tiny-plugin-kit.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LANES = 64, MAX_GROUP = 1024, MAX_PARAMS = 1024, MAX_INSTRS = 1 << 22 };

/* ---- ref-ops.c: numbers and what each op does with them ---- */
typedef struct {
  const char *name;
  char form; /* E elementwise, B block structure, V value, M memory access, U matrix unit */
  uint8_t least, most;
  uint32_t dtypes; /* of the operands; of form V: of the result */
} OpRow;

/* The target's declaration and the checker's rules are this one table. No name: no such op. */
extern const OpRow ref_ops[TINY_N_INSTRS];

#define BOOLS   TINY_DTYPE_BIT (TINY_DTYPE_BOOL)
#define INTS    (TINY_DTYPE_BIT (TINY_DTYPE_U64 + 1) - TINY_DTYPE_BIT (TINY_DTYPE_I8))
#define FLOATS  (TINY_DTYPE_BIT (TINY_DTYPE_F64 + 1) - TINY_DTYPE_BIT (TINY_DTYPE_F8E4M3))
#define NUMBERS (INTS | FLOATS)
#define ALL     (BOOLS | NUMBERS)

unsigned ref_n_bytes (unsigned dtype);
/* The low bits that a value of @dtype has. */
uint64_t ref_mask (unsigned dtype);
/* An integer's bits, sign-extended when @dtype is signed. */
int64_t ref_to_signed (unsigned dtype, uint64_t bits);
/* Whether @a < @b, as numbers of @dtype. */
bool ref_is_less (unsigned dtype, uint64_t a, uint64_t b);
/* The bits of a CONST's argument. */
uint64_t ref_constant (unsigned dtype, int64_t arg);
/* One lane of an elementwise op. @dtype is the operands', @to the result's. */
uint64_t
ref_element (unsigned op, unsigned dtype, unsigned to, uint64_t a, uint64_t b, uint64_t c);

/* ---- ref-target.c: what the core may use ---- */
TinyStatus ref_target (const char *arch, TinyTarget *out, TinyPluginError *error);
/* Refuses a program, which was found whole, that uses what @arch does not have. */
TinyStatus
ref_check_target (const char *arch, const TinyLinear *linear, TinyPluginError *error);

/* ---- ref-units.c: matrix units ---- */
/* Adds the rows that as many work-items as @target has can compute. */
void ref_set_units (TinyTarget *target);
/* NULL: there is no such row. */
const TinyUnit *ref_find_unit (int64_t number);
/* True if a fragment has as many lanes, which may be more than MAX_LANES. */
bool ref_is_fragment (unsigned dtype, unsigned lanes);
/* True if @instr is one of those that may have a fragment's lanes, and has. */
bool ref_may_be_wide (const TinyInstr *instrs, const uint32_t *sources, const TinyInstr *instr);
/* c + a b. A work-item's fragments lie @stride after the one's before, and so do those of @result. False: no memory. */
bool ref_multiply (const TinyUnit *unit,
                   const uint64_t *const fragments[3],
                   uint64_t stride,
                   uint64_t *result);

/* ---- ref-program.c: a checked program ---- */
struct TinyPluginProgram {
  char name[128];
  void *blob; /* owned; the three below point into it */
  const TinyInstr *instrs;
  const TinyParam *params;
  const uint32_t *sources;
  uint32_t *slots;   /* where an instruction's lanes are in a work-item's values */
  uint32_t *partner; /* RANGE to END, IF to ENDIF, and back */
  uint32_t *scope;   /* the RANGE or IF an instruction is in; its own index + 1, 0 outside */
  uint64_t n_slots, n_local_bytes;
  uint32_t n_instrs, n_sources, n_variables, n_params, group[3];
};

/* The i-th source of an instruction, as an instruction. */
static inline const TinyInstr *
ref_source (const TinyPluginProgram *self, const TinyInstr *instr, unsigned i)
{
  return &self->instrs[self->sources[instr->sources + i]];
}

/* How many bytes @linear takes as a blob, and the blob. */
uint64_t ref_blob_size (const TinyLinear *linear);
void ref_blob_write (const TinyLinear *linear, void *data);
/* A checked program from a blob. A mistake gives @status. */
TinyStatus ref_program_new (const char *name,
                            const void *data,
                            uint64_t size,
                            TinyStatus status,
                            TinyPluginProgram **out,
                            TinyPluginError *error);
void ref_program_free (TinyPluginProgram *self);

/* ---- ref-run.c: running it ---- */
struct TinyPluginBuffer {
  unsigned char *data;
  uint64_t n_bytes;
  bool is_foreign; /* the memory is somebody else's */
};

bool ref_span_is_inside (const TinySpan *span);
TinyStatus ref_dispatch (const TinyCommand *command, TinyPluginError *error);
