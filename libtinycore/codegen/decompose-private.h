/* SPDX-License-Identifier: MIT
 *
 * decompose-private.h: how a decomposition is written.
 *
 * A builder makes the replacement of one op with dec_op() and its shorthands. These return what
 * the target has: an op that it lacks is decomposed in turn, so a builder may use whatever is
 * simpler than itself. After the first failure they return placeholders and the whole fails. */
#pragma once

#include "ir/tiny-node.h"

typedef struct {
  TinyGraph *graph;
  const TinyTarget *target;
  guint32 words; /* TINY_DTYPE_BIT of what it only seems to have: that will be in words */
  GError *error; /* the first failure */
  guint depth;   /* of builders within builders */
} Decompose;

/* Makes of x[0] … the value of an op with result @dtype; NULL when it does not apply. */
typedef TinyNode *(*DecomposeFunc) (Decompose *d,
                                    TinyOp op,
                                    TinyDType dtype,
                                    TinyNode *const *x);

typedef struct {
  TinyOp op;
  const char *kinds; /* of the operands' dtype: B bool, I signed, U unsigned, F float */
  DecomposeFunc build;
} DecomposeRow;

/* Tables end with a row that has no builder; the first row that applies is taken. */
extern const DecomposeRow decompose_integer_rows[], decompose_float_rows[],
    decompose_transcendental_rows[];

/* Whether the target has @op on operands of @dtype. */
gboolean dec_has (Decompose *d, TinyOp op, TinyDType dtype);
TinyNode *dec_op (Decompose *d, TinyOp op, TinyDType dtype, guint n, TinyNode *const *sources);
/* Notes that @op of @dtype cannot be had; returns a placeholder. */
TinyNode *dec_fail (Decompose *d, TinyOp op, TinyDType dtype, guint lanes);

/* The memory or register that a LOAD or STORE goes to. */
TinyNode *dec_memory_of (TinyNode *access);

/* ---- decompose-words.c, decompose-pairs.c: what a target does not know, in words of 32 bits ---- */
/* TINY_DTYPE_BIT of each dtype that has to be. */
guint32 dec_words_of (const TinyTarget *target);
/* Makes @target one that moves and converts @words, and computes with those of 64 bits that are
 * integers. */
void dec_words_add (TinyTarget *target, guint32 words);
/* @root, which has only ops of a target that dec_words_add() made, with ops of @d->target. */
TinyNode *dec_to_words (Decompose *d, TinyNode *root, guint32 words);
/* Whether it takes two words. */
gboolean dec_is_pair (TinyDType dtype);

/* 64 bits: two u32. */
typedef struct {
  TinyNode *low, *high;
} DecPair;

/* An op of two sources; @dtype is theirs. */
DecPair dec_pair_op (Decompose *d, TinyOp op, TinyDType dtype, const DecPair *x);
TinyNode *dec_pair_compare (Decompose *d, TinyOp op, TinyDType dtype, DecPair x, DecPair y);
/* @x of 32 bits or fewer as a pair of dtype @to, and a pair of dtype @from as @to: u32, i32, bool, a
 * float. */
DecPair dec_pair_from (Decompose *d, TinyNode *x, TinyDType to);
TinyNode *dec_pair_to (Decompose *d, DecPair x, TinyDType from, TinyDType to);

/* Constants with @like's lanes. */
TinyNode *dec_int (Decompose *d, TinyDType dtype, TinyNode *like, gint64 value);
TinyNode *dec_float (Decompose *d, TinyDType dtype, TinyNode *like, double value);
TinyNode *dec_cast (Decompose *d, TinyNode *x, TinyDType dtype);
TinyNode *dec_bits (Decompose *d, TinyNode *x, TinyDType dtype);
TinyNode *dec_where (Decompose *d, TinyNode *gate, TinyNode *x, TinyNode *y);
TinyNode *dec_mulacc (Decompose *d, TinyNode *x, TinyNode *y, TinyNode *z);
/* An f32 as the bits of small float @dtype in a u32, and back. */
TinyNode *dec_float_to_code (Decompose *d, TinyNode *x, TinyDType dtype);
TinyNode *dec_float_from_code (Decompose *d, TinyNode *code, TinyDType dtype);
/* An f32 that is a number of small float @dtype as that. */
TinyNode *dec_narrow_exact (Decompose *d, TinyNode *x, TinyDType dtype);
/* Upper half of the product of two unsigned integers of 32 or 64 bits. */
TinyNode *dec_mul_high (Decompose *d, TinyNode *x, TinyNode *y);
/* Whether @x < value. */
TinyNode *dec_is_below (Decompose *d, TinyNode *x, double value);
/* x * 2^n in two steps, so that neither power leaves the normal range. */
TinyNode *dec_scale (Decompose *d, TinyNode *x, TinyNode *n);
/* The float dtype's exponent bias. */
gint dec_bias (TinyDType dtype);
/* |x| as mantissa times 2^exponent, the mantissa in [1, 2); subnormals are made normal first. What
 * it says of zeros, infinities and NaNs means nothing. */
typedef struct {
  TinyNode *size, *mantissa, *exponent;
} DecomposeSplit;
DecomposeSplit dec_split (Decompose *d, TinyNode *x);
/* The dtype of @dtype's width that is unsigned, or signed. */
TinyDType dec_unsigned (TinyDType dtype);
TinyDType dec_signed (TinyDType dtype);

static inline TinyNode *
dec_unary (Decompose *d, TinyOp op, TinyNode *x)
{
  return dec_op (d, op, x->dtype, 1, &x);
}

static inline TinyNode *
dec_binary (Decompose *d, TinyOp op, TinyNode *x, TinyNode *y)
{
  TinyNode *sources[] = { x, y };
  gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
  return dec_op (d, op, compares ? TINY_DTYPE_BOOL : x->dtype, 2, sources);
}

/* dec_binary() with a constant. */
static inline TinyNode *
dec_with_int (Decompose *d, TinyOp op, TinyNode *x, gint64 value)
{
  return dec_binary (d, op, x, dec_int (d, x->dtype, x, value));
}

static inline TinyNode *
dec_with_float (Decompose *d, TinyOp op, TinyNode *x, double value)
{
  return dec_binary (d, op, x, dec_float (d, x->dtype, x, value));
}
