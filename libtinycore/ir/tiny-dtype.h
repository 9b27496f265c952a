/* SPDX-License-Identifier: MIT
 *
 * tiny-dtype.h: what the table of number formats says. The enum is the contract's (tiny-plugin.h). */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

/**
 * TinyDType:
 * @TINY_DTYPE_VOID: no value; where a dtype is an argument, the default that it names
 * @TINY_DTYPE_BOOL: false or true, in a byte
 * @TINY_DTYPE_I8: integers of 8 bits
 * @TINY_DTYPE_U8: unsigned integers of 8 bits
 * @TINY_DTYPE_I16: integers of 16 bits
 * @TINY_DTYPE_U16: unsigned integers of 16 bits
 * @TINY_DTYPE_I32: integers of 32 bits
 * @TINY_DTYPE_U32: unsigned integers of 32 bits
 * @TINY_DTYPE_I64: integers of 64 bits
 * @TINY_DTYPE_U64: unsigned integers of 64 bits
 * @TINY_DTYPE_F8E4M3: floats of 4 bits of exponent and 3 of mantissa
 * @TINY_DTYPE_F8E5M2: floats of 5 bits of exponent and 2 of mantissa
 * @TINY_DTYPE_F16: floats of half precision
 * @TINY_DTYPE_BF16: the upper half of an f32
 * @TINY_DTYPE_F32: floats of single precision
 * @TINY_DTYPE_F64: floats of double precision
 * @TINY_DTYPE_INDEX: the compiler's own integers, which no tensor has
 *
 * What an element of a tensor is.
 *
 * Since: 0.1
 */

/**
 * TINY_N_DTYPES:
 *
 * How many dtypes there are.
 *
 * Since: 0.1
 */

/**
 * TinyDTypeInfo:
 * @text: its name, such as "f32"
 * @n_bytes: the bytes of an element
 * @kind: B bool, I signed, U unsigned, F float, N neither
 * @mantissa_bits: of a float, without the hidden one
 * @exponent_bits: of a float
 *
 * What is known of a dtype.
 *
 * Since: 0.1
 */
typedef struct {
  const char *text;
  guint n_bytes;
  char kind;
  guint mantissa_bits, exponent_bits;
} TinyDTypeInfo;

extern const TinyDTypeInfo tiny_dtype_infos[TINY_N_DTYPES];

/**
 * tiny_dtype_to_string:
 * @dtype: a dtype
 *
 * Returns: its name, such as "f32"
 *
 * Since: 0.1
 */
TINY_API const char *tiny_dtype_to_string (TinyDType dtype);

/**
 * tiny_dtype_from_string:
 * @text: a name, such as "f32"
 * @out_dtype: (out): the dtype of that name
 *
 * Returns: whether there is one
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_dtype_from_string (const char *text, TinyDType *out_dtype);

/**
 * tiny_dtype_get_n_bytes:
 * @dtype: a dtype
 *
 * Returns: the bytes of an element
 *
 * Since: 0.1
 */
TINY_API gsize tiny_dtype_get_n_bytes (TinyDType dtype);

/**
 * tiny_dtype_is_float:
 * @dtype: a dtype
 *
 * Returns: whether it is a float
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_dtype_is_float (TinyDType dtype);

/**
 * tiny_dtype_is_signed:
 * @dtype: a dtype
 *
 * Returns: whether it is a signed integer or index
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_dtype_is_signed (TinyDType dtype);

/**
 * tiny_dtype_is_unsigned:
 * @dtype: a dtype
 *
 * Returns: whether it is an unsigned integer
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_dtype_is_unsigned (TinyDType dtype);

/**
 * tiny_dtype_is_integer:
 * @dtype: a dtype
 *
 * Returns: whether it is signed, unsigned or index; bool is none
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_dtype_is_integer (TinyDType dtype);

/**
 * tiny_dtype_get_min:
 * @dtype: an integer dtype or bool
 *
 * Returns: its smallest value; that of index is a quarter of 64 bits, so that sums of two bounds
 *   cannot overflow
 *
 * Since: 0.1
 */
TINY_API gint64 tiny_dtype_get_min (TinyDType dtype);

/**
 * tiny_dtype_get_max:
 * @dtype: an integer dtype or bool
 *
 * Returns: its largest value; u64's is given as %G_MAXINT64, index's is a quarter of 64 bits
 *
 * Since: 0.1
 */
TINY_API gint64 tiny_dtype_get_max (TinyDType dtype);

/**
 * tiny_dtype_get_largest:
 * @dtype: a float dtype
 *
 * Returns: its largest finite number; the least is the negative of that
 *
 * Since: 0.1
 */
TINY_API double tiny_dtype_get_largest (TinyDType dtype);

/**
 * tiny_dtype_get_smallest_normal:
 * @dtype: a float dtype
 *
 * Returns: its smallest positive number of full precision; subnormals are below
 *
 * Since: 0.1
 */
TINY_API double tiny_dtype_get_smallest_normal (TinyDType dtype);

/**
 * tiny_dtype_get_epsilon:
 * @dtype: a float dtype
 *
 * Returns: the distance from 1 to the next larger number
 *
 * Since: 0.1
 */
TINY_API double tiny_dtype_get_epsilon (TinyDType dtype);

G_END_DECLS
