/* SPDX-License-Identifier: MIT
 *
 * tensor-bits.c: truth values, bits and signs. */
#include <math.h>

#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

static TinyNode *
bits_node (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  if (tiny_dtype_is_float (tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype)))
    return tiny_build_fail (self, "no integer dtype holds %s and %s: cast one of them",
                            tiny_dtype_to_string ((TinyDType) x->dtype),
                            tiny_dtype_to_string ((TinyDType) y->dtype));
  return tiny_build_binary (self, op, x, y);
}

/* As far as there are bits, or by less than none, which the ops leave open: what all bits moved out leave. */
static TinyNode *
shift_node (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  x = tiny_build_numeric (self, x);
  y = tiny_build_numeric (self, y);
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = (TinyDType) x->dtype;
  const gint64 n_bits = 8 * (gint64) tiny_dtype_get_n_bytes (dtype);
  if (tiny_node_is_const (y) && y->arg >= 0 && y->arg < n_bits)
    return tiny_build_binary (self, op, x, tiny_build_cast (self, y, dtype));
  TinyNode *most = tiny_build_like (self, y, (double) n_bits - 1);
  TinyNode *is_far = tiny_build_less (self, most, y);
  if (!tiny_dtype_is_unsigned (y->dtype))
    is_far = tiny_build_binary (self, TINY_OP_OR, is_far,
                                tiny_build_less (self, y, tiny_build_like (self, y, 0)));
  TinyNode *by = tiny_build_cast (self, tiny_build_where (self, is_far, most, y), dtype);
  TinyNode *result = tiny_build_binary (self, op, x, by);
  const gboolean keeps_sign = op == TINY_OP_SHR && !tiny_dtype_is_unsigned (x->dtype);
  return keeps_sign ? result
                    : tiny_build_where (self, is_far, tiny_build_like (self, x, 0), result);
}

TinyNode *
op_bitwise_not (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || x->dtype == TINY_DTYPE_BOOL)
    return tiny_build_not (self, x);
  return tiny_build_binary (self, TINY_OP_XOR, x,
                            tiny_node_const_int (self->graph, (TinyDType) x->dtype, -1));
}

static TinyNode *
logical (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, op, tiny_build_cast (self, x, TINY_DTYPE_BOOL),
                            tiny_build_cast (self, y, TINY_DTYPE_BOOL));
}

TinyNode *
op_logical_and (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return logical (b, TINY_OP_AND, self, other);
}

TinyNode *
op_logical_or (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return logical (b, TINY_OP_OR, self, other);
}

TinyNode *
op_logical_xor (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return logical (b, TINY_OP_CMPNE, self, other);
}

TinyNode *
op_logical_not (TinyBuild *b, TinyNode *self)
{
  return tiny_build_not (b, self);
}

TinyNode *
op_bitwise_and (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return bits_node (b, TINY_OP_AND, self, other);
}

TinyNode *
op_bitwise_or (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return bits_node (b, TINY_OP_OR, self, other);
}

TinyNode *
op_bitwise_xor (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return bits_node (b, TINY_OP_XOR, self, other);
}

TinyNode *
op_lshift (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return shift_node (b, TINY_OP_SHL, self, other);
}

TinyNode *
op_rshift (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return shift_node (b, TINY_OP_SHR, self, other);
}

/* The bits of a float as an unsigned word. */
static TinyNode *
word_of (TinyBuild *b, TinyNode *x)
{
  static const TinyDType words[] = {
    [1] = TINY_DTYPE_U8, [2] = TINY_DTYPE_U16, [4] = TINY_DTYPE_U32, [8] = TINY_DTYPE_U64
  };
  return x == NULL ? NULL
                   : op_bitcast (b, x, words[tiny_dtype_get_n_bytes ((TinyDType) x->dtype)]);
}

static TinyNode *
sign_bit (TinyBuild *b, TinyNode *word)
{
  if (word == NULL)
    return NULL;
  guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes ((TinyDType) word->dtype);
  return tiny_node_const_int (b->graph, (TinyDType) word->dtype,
                              (gint64) (G_GUINT64_CONSTANT (1) << (n_bits - 1)));
}

TinyNode *
op_signbit (TinyBuild *b, TinyNode *self)
{
  if (self == NULL || !tiny_dtype_is_float (self->dtype))
    return tiny_build_binary (b, TINY_OP_CMPLT, self, tiny_build_like (b, self, 0));
  TinyNode *word = word_of (b, self);
  return tiny_build_cast (b, tiny_build_binary (b, TINY_OP_AND, word, sign_bit (b, word)),
                          TINY_DTYPE_BOOL);
}

/* Where the signs differ the sign bit is turned over, and with it the slope. */
TinyNode *
op_copysign (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  TinyDType dtype = tiny_dtype_promote ((TinyDType) self->dtype, (TinyDType) other->dtype);
  self = tiny_build_cast (b, self, dtype);
  other = tiny_build_cast (b, other, dtype);
  TinyNode *word = word_of (b, self);
  TinyNode *differ = tiny_build_binary (b, TINY_OP_XOR, word, word_of (b, other));
  TinyNode *turned = tiny_build_binary (
      b, TINY_OP_XOR, word, tiny_build_binary (b, TINY_OP_AND, differ, sign_bit (b, word)));
  if (turned == NULL)
    return NULL;
  TinyNode *value = op_bitcast (b, turned, dtype);
  TinyNode *slope = op_mul (b, op_sign (b, self), op_sign (b, value));
  return tiny_build_sloped (b, value, self, slope);
}
