/* SPDX-License-Identifier: MIT
 *
 * tiny-op.h: the enum of operations and what their table says of them. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

typedef enum {
#define TINY_OP(id, text, least, most, class, flags, instr, meaning) TINY_OP_##id,
#include "ir/ops.def"
#undef TINY_OP
  TINY_N_OPS
} TinyOp;

typedef enum {
  TINY_OP_CLASS_MEMORY,
  TINY_OP_CLASS_CONVERT,
  TINY_OP_CLASS_UNARY,
  TINY_OP_CLASS_BINARY,
  TINY_OP_CLASS_TERNARY,
  TINY_OP_CLASS_COMPARE,
  TINY_OP_CLASS_VALUE,
  TINY_OP_CLASS_STRUCTURE,
  TINY_OP_CLASS_REDUCE,
  TINY_OP_CLASS_TENSOR,
  TINY_OP_CLASS_MOVEMENT,
} TinyOpClass;

enum {
  TINY_OP_FLAG_COMMUTATIVE = 1,
  TINY_OP_FLAG_ASSOCIATIVE = 2,
  TINY_OP_FLAG_IDEMPOTENT = 4
};

typedef struct {
  const char *text;
  int least, most; /* number of sources, most -1: any */
  TinyOpClass op_class;
  guint flags;
  TinyInstrOp instr; /* 0: not part of the contract */
  const char *meaning;
} TinyOpInfo;

extern const TinyOpInfo tiny_op_infos[TINY_N_OPS];

/* The op of that name in the text form, or TINY_N_OPS. */
TinyOp tiny_op_from_string (const char *text, gssize length);

static inline const char *
tiny_op_to_string (TinyOp op)
{
  return tiny_op_infos[op].text;
}

/* Element by element: unary, binary, ternary, comparison, conversion. */
static inline gboolean
tiny_op_is_elementwise (TinyOp op)
{
  TinyOpClass c = tiny_op_infos[op].op_class;
  return c == TINY_OP_CLASS_UNARY || c == TINY_OP_CLASS_BINARY || c == TINY_OP_CLASS_TERNARY
         || c == TINY_OP_CLASS_COMPARE || c == TINY_OP_CLASS_CONVERT;
}

static inline gboolean
tiny_op_is_movement (TinyOp op)
{
  return tiny_op_infos[op].op_class == TINY_OP_CLASS_MOVEMENT;
}

static inline gboolean
tiny_op_is_commutative (TinyOp op)
{
  return (tiny_op_infos[op].flags & TINY_OP_FLAG_COMMUTATIVE) != 0;
}

/* Instructions that elementwise @op takes, roughly, on a target that has arithmetic alone. */
guint tiny_op_count_steps (TinyOp op);

G_END_DECLS
