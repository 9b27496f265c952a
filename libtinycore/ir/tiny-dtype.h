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
 * The name of a dtype in the IR, in messages and in files; tiny_dtype_from_string() reads it.
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
 * The dtype of a name that tiny_dtype_to_string() gave. @out_dtype stays as it is where there is none.
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
 * The size of one element in memory; %TINY_DTYPE_VOID has none. What is no dtype is taken for that one, here and below.
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
 * Whether @dtype has a fraction: f64, f32, f16, bf16 and the fp8 formats.
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
 * Whether @dtype holds whole numbers below 0. Floats and bool are not meant.
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
 * Whether @dtype holds whole numbers from 0 on: u8 to u64. Bool is not meant.
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
 * Whether @dtype holds whole numbers, and arithmetic on it wraps.
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
 * The least number that @dtype holds.
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
 * The largest number that @dtype holds, as far as a #gint64 does.
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
 * The largest number that @dtype holds and that is not infinite: 65504 of f16.
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
 * The least number above 0 that @dtype holds with all of its digits, PyTorch's `finfo.tiny`.
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
 * How fine @dtype is next to 1, PyTorch's `finfo.eps`: 2^-23 of f32.
 *
 * Returns: the distance from 1 to the next larger number
 *
 * Since: 0.1
 */
TINY_API double tiny_dtype_get_epsilon (TinyDType dtype);

G_END_DECLS
