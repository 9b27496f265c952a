/* SPDX-License-Identifier: MIT
 *
 * tiny-eval.h: what every elementwise op means, on single values.
 *
 * This is the reference: constant folding, the proofs of rewrite rules and tests of backends ask
 * here. Values are encoded as in the argument of a CONST: integers as gint64, sign- or
 * zero-extended from the dtype (u64 as its bits), bools as 0 and 1, floats as the bits of a double
 * that the dtype can hold, every NaN as the same positive quiet one. */
#pragma once

#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"

G_BEGIN_DECLS

/* Computes @op of @n values of @dtype (WHERE: of a bool and two of @dtype) as a value of
 * @out_dtype: BOOL for comparisons, what the CAST or BITCAST is to, else @dtype again.
 *
 * FALSE when the result is not defined, or defined only by the target: division by zero, a shift
 * count outside the width, a float outside the range of the integer it is cast to, MAX of a number
 * and a NaN, INDEX arithmetic that leaves 64 bits, a bit cast to a NaN other than the quiet one,
 * an op that the dtype does not have.
 *
 * Floats are computed without loss and rounded once (ADD SUB MUL FDIV RECIP SQRT; MULACC rounds
 * twice); EXP2, LOG2 and SIN are the C library's in f64, rounded. Subnormals are kept. Division
 * of the least integer by -1 wraps. MAX of two zeros is the positive one. */
gboolean tiny_eval_alu (
    TinyOp op, TinyDType dtype, TinyDType out_dtype, const gint64 *args, guint n, gint64 *out);

/* @value wrapped to the integer dtype; for bool: whether it is not 0. */
gint64 tiny_eval_wrap (TinyDType dtype, gint64 value);
/* @value rounded to the float dtype, encoded. */
gint64 tiny_eval_from_double (TinyDType dtype, double value);
/* The encoded value of a float dtype, as double. */
double tiny_eval_to_double (gint64 bits);
/* TRUE when @bits is how a CONST of @dtype holds a value: what the two above give. */
gboolean tiny_eval_is_canonical (TinyDType dtype, gint64 bits);

G_END_DECLS
