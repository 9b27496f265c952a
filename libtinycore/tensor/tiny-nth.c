/* SPDX-License-Identifier: MIT
 *
 * tiny-nth.c: elements of long rows that have so many before them in order, without sorting.
 *
 * The key is found digit by digit from the first one, by counting how many of the row are below what it may be: a pass
 * reads the row once. Which of those that equal it is wanted is known then: its chunk of the row is looked up where
 * the counts of chunks are added up, and its place by counting in there. */
#include "tensor/tiny-nth.h"

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-order.h"
#include "tensor/tiny-positions.h"

enum {
  DIGIT_BITS = 2,
  CHUNK = 32,
  LEAST_ROW = 512,          /* shorter ones are sorted, … */
  LEAST_ELEMENTS = 1 << 15, /* and so are few */
};

gboolean
tiny_nth_is_worth_it (const TinyNode *keys)
{
  return keys->shape->v[1] >= LEAST_ROW
         && tiny_shape_get_n_elements (keys->shape) >= LEAST_ELEMENTS;
}

static TinyNode *
integer (TinyBuild *b, const TinyNode *like, gint64 value)
{
  return tiny_node_const_int (b->graph, (TinyDType) like->dtype, value);
}

/* (R, N) to (R, 1) i32 */
static TinyNode *
count_row (TinyBuild *b, TinyNode *x)
{
  return tiny_build_sum (b, x, (gint64[]){ 1 }, 1);
}

/* As many bits as @x has, in which the sign orders as the others do: its own inverse. */
static TinyNode *
turn_sign (TinyBuild *b, TinyNode *x)
{
  return tiny_dtype_is_unsigned ((TinyDType) x->dtype)
             ? x
             : tiny_build_binary (b, TINY_OP_XOR, x,
                                  integer (b, x, tiny_dtype_get_min ((TinyDType) x->dtype)));
}

/* ---- which key ---- */

/* The key (R, 1) that has at most @n smaller ones in @keys (R, N), and of which the next larger one has more. */
static TinyNode *
find_key (TinyBuild *b, TinyNode *keys, gint64 n)
{
  gint64 n_rows = keys->shape->v[0], n_digits = 1 << DIGIT_BITS;
  gint64 dims[] = { n_rows, n_digits - 1 };
  guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes ((TinyDType) keys->dtype);
  TinyNode *found
      = tiny_node_broadcast (b->graph, integer (b, keys, 0), (gint64[]){ n_rows, 1 }, 2);
  TinyNode *digit = tiny_build_count_along (b, TINY_DTYPE_I32, 1, n_digits - 1, 2);
  digit = tiny_build_cast (b, tiny_build_add_number (b, digit, 1), (TinyDType) keys->dtype);
  for (guint bit = n_bits; bit > 0 && found != NULL;) {
    bit -= DIGIT_BITS;
    TinyNode *shift = integer (b, keys, bit);
    TinyNode *tried
        = tiny_build_add (b, found, tiny_build_binary (b, TINY_OP_SHL, digit, shift));
    tried = tiny_build_unsqueeze (b, tiny_build_expand (b, turn_sign (b, tried), dims, 2), 2);
    TinyNode *is_below = tiny_build_less (b, tiny_build_unsqueeze (b, keys, 1), tried);
    TinyNode *count = tiny_build_sum (b, is_below, (gint64[]){ 2 }, 1); /* (R, D, 1) */
    count = tiny_build_store (b, tiny_build_reshape (b, count, dims, 2));
    TinyNode *fits = op_le (b, count, tiny_node_const_int (b->graph, TINY_DTYPE_I32, n));
    TinyNode *step = tiny_build_cast (b, count_row (b, fits), (TinyDType) keys->dtype);
    step = tiny_build_binary (b, TINY_OP_SHL, step, shift);
    found = tiny_build_store (b, tiny_build_add (b, found, step));
  }
  return turn_sign (b, found);
}

/* ---- where it is ---- */

/* @keys (R, C, CHUNK) in whole chunks: what is added comes after all. */
static TinyNode *
make_chunks (TinyBuild *b, TinyNode *keys)
{
  gint64 n = keys->shape->v[1], n_chunks = (n + CHUNK - 1) / CHUNK;
  gint64 dims[] = { keys->shape->v[0], n_chunks, CHUNK };
  if (n_chunks * CHUNK > n)
    keys = tiny_build_pad (b, keys, (gint64[]){ 0, 0, 0, n_chunks * CHUNK - n }, 0);
  return tiny_build_reshape (b, keys, dims, 3);
}

/* Of what is TRUE in @is_it (R, N) the one with @which (R, 1) before it: where it is, (R, 1). */
static TinyNode *
find_true (TinyBuild *b, TinyNode *is_it, TinyNode *which)
{
  gint64 last[] = { 2 };
  TinyNode *chunks = tiny_build_cast (b, make_chunks (b, is_it), TINY_DTYPE_I32);
  chunks = tiny_build_store (b, chunks); /* (R, C, CHUNK) */
  TinyNode *count = tiny_build_squeeze (b, tiny_build_sum (b, chunks, last, 1), last, 1);
  count = tiny_build_store (b, count);
  TinyNode *ends = count == NULL ? NULL : tiny_build_store (b, op_cumsum (b, count, 1));
  TinyNode *chunk = tiny_build_store (b, tiny_build_rank_in (b, ends, which, 1, TRUE));
  if (chunk == NULL)
    return NULL;
  TinyNode *begin = tiny_build_sub (b, tiny_node_gather (b->graph, ends, 1, chunk),
                                    tiny_node_gather (b->graph, count, 1, chunk));
  TinyNode *first = tiny_build_mul_number (b, chunk, CHUNK); /* (R, 1) */
  TinyNode *at
      = tiny_build_add (b, first, tiny_build_count_along (b, TINY_DTYPE_I32, 1, CHUNK, 2));
  gint64 dims[] = { is_it->shape->v[0], chunks->shape->v[1] * CHUNK };
  chunks = tiny_build_reshape (b, chunks, dims, 2);
  TinyNode *found = at == NULL ? NULL : tiny_node_gather (b->graph, chunks, 1, at);
  /* How many of the chunk come before the one: those up to which fewer are counted. */
  TinyNode *up_to = found == NULL ? NULL : op_cumsum (b, tiny_build_store (b, found), 1);
  TinyNode *is_before
      = up_to == NULL ? NULL : op_le (b, up_to, tiny_build_sub (b, which, begin));
  return tiny_build_add (b, first, count_row (b, is_before));
}

TinyNode *
tiny_build_nth (TinyBuild *b, TinyNode *keys, gint64 n)
{
  keys = tiny_build_store (b, keys);
  TinyNode *key = keys == NULL ? NULL : tiny_build_store (b, find_key (b, keys, n));
  if (key == NULL)
    return NULL;
  TinyNode *n_smaller = count_row (b, tiny_build_less (b, keys, key));
  TinyNode *which
      = tiny_build_sub (b, tiny_node_const_int (b->graph, TINY_DTYPE_I32, n), n_smaller);
  return find_true (b, tiny_build_binary (b, TINY_OP_CMPEQ, keys, key),
                    tiny_build_store (b, which));
}
