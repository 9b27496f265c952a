/* SPDX-License-Identifier: MIT
 *
 * tiny-op.c: the table of operations, made from ops.def. */
#include "ir/tiny-op.h"

#include <string.h>

#define TINY_INSTR_0 0
#define C            TINY_OP_FLAG_COMMUTATIVE
#define A            TINY_OP_FLAG_ASSOCIATIVE
#define I            TINY_OP_FLAG_IDEMPOTENT
const TinyOpInfo tiny_op_infos[TINY_N_OPS] = {
#define TINY_OP(id, text, least, most, class, flags, instr, meaning)                           \
  { text, least, most, TINY_OP_CLASS_##class, flags, TINY_INSTR_##instr, meaning },
#include "ir/ops.def"
#undef TINY_OP
};
#undef C
#undef A
#undef I

guint
tiny_op_count_steps (TinyOp op)
{
  switch (op) {
  case TINY_OP_SIN:
    return 150;
  case TINY_OP_LOG2:
    return 40;
  case TINY_OP_EXP2:
    return 26;
  case TINY_OP_IDIV:
  case TINY_OP_MOD:
    return 20;
  default:
    return tiny_op_is_elementwise (op);
  }
}

TinyOp
tiny_op_from_string (const char *text, gssize length)
{
  gsize n = length < 0 ? strlen (text) : (gsize) length;
  for (int op = 0; op < TINY_N_OPS; op++)
    if (strlen (tiny_op_infos[op].text) == n && memcmp (tiny_op_infos[op].text, text, n) == 0)
      return op;
  return TINY_N_OPS;
}
