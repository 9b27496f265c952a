/* SPDX-License-Identifier: MIT
 *
 * tensor-permutation.c: numbers drawn without repetition, and by weight. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-random.h"

static TinyNode *
u32 (TinyBuild *b, TinyOp op, TinyNode *x, guint32 value)
{
  return tiny_layout_binary (b->graph, op, x,
                             tiny_node_const_int (b->graph, TINY_DTYPE_U32, value));
}

/* A word of which every bit depends on every bit of @x and @key. */
static TinyNode *
mixed (TinyBuild *b, TinyNode *x, TinyNode *key)
{
  x = tiny_layout_binary (b->graph, TINY_OP_XOR, x, key);
  x = u32 (b, TINY_OP_MUL, x, 0x9E3779B1u);
  x = tiny_layout_binary (b->graph, TINY_OP_XOR, x, u32 (b, TINY_OP_SHR, x, 15));
  x = u32 (b, TINY_OP_MUL, x, 0x85EBCA77u);
  return tiny_layout_binary (b->graph, TINY_OP_XOR, x, u32 (b, TINY_OP_SHR, x, 13));
}

/* For each round a number below @n and a word of its own, (rounds) u32 in memory: one program serves all
 * permutations. */
static void
draw_rounds (TinyBuild *b, gint64 n, guint n_rounds, TinyNode *out[2])
{
  guint32 key[2];
  tiny_random_key (key);
  TinyNode *keys[] = { tiny_random_number (b, key[0]), tiny_random_number (b, key[1]) };
  TinyNode *words[] = { tiny_build_iota (b, TINY_DTYPE_U32, n_rounds),
                        tiny_node_const_int (b->graph, TINY_DTYPE_U32, 0x7065726d) };
  tiny_build_threefry_by (b, keys, words);
  TinyNode *wide = tiny_build_cast (b, words[0], TINY_DTYPE_U64);
  wide = tiny_build_mul (b, wide, tiny_node_const_int (b->graph, TINY_DTYPE_U64, n));
  wide = tiny_build_binary (b, TINY_OP_SHR, wide,
                            tiny_node_const_int (b->graph, TINY_DTYPE_U64, 32));
  out[0] = tiny_build_store (b, tiny_build_cast (b, wide, TINY_DTYPE_U32));
  out[1] = tiny_build_store (b, words[1]);
}

/* Swap or not (Hoang, Morris, Rogaway, "An enciphering scheme based on a card shuffle", CRYPTO
 * 2012): in each round positions x and k - x modulo n, of a random k, change places or do not, as
 * a random function of the larger says. Every round is a permutation, whatever n is, and each
 * position finds its own way: nothing is sorted. */
TinyNode *
op_randperm (TinyBuild *b, TinyDType dtype, gint64 n)
{
  if (!tiny_build_check_dtype (b, dtype))
    return NULL;
  if (n < 0 || n > G_MAXINT32)
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " is not from 0 to 2^31", n);
  if (tiny_random_capture_is_on ()) /* its constants are drawn here and now */
    return tiny_build_fail (
        b,
        "each replay of a captured function would give the same permutation: make it outside "
        "and pass it, or sort: argsort of rand");
  TinyNode *rounds[2];
  if (!tiny_random_spread (b, n, NULL))
    return NULL;
  TinyNode *x = tiny_build_iota (b, TINY_DTYPE_U32, n);
  if (n < 2)
    return tiny_build_cast (b, x, dtype);
  guint n_rounds = 8 + 4 * g_bit_storage ((gulong) n);
  draw_rounds (b, n, n_rounds, rounds);
  for (guint round = 0; round < n_rounds; round++) {
    TinyNode *at = tiny_build_slice (b, rounds[0], 0, round, 1, 1);
    at = tiny_build_expand (b, at, &n, 1);
    TinyNode *word = tiny_build_slice (b, rounds[1], 0, round, 1, 1);
    word = tiny_build_expand (b, word, &n, 1);
    if (word == NULL)
      return NULL;
    TinyNode *is_beyond = tiny_layout_binary (b->graph, TINY_OP_CMPLT, at, x);
    TinyNode *partner = tiny_layout_binary (b->graph, TINY_OP_SUB, at, x);
    partner
        = tiny_build_where (b, is_beyond, u32 (b, TINY_OP_ADD, partner, (guint32) n), partner);
    TinyNode *larger = tiny_layout_binary (b->graph, TINY_OP_MAX, x, partner);
    TinyNode *coin = u32 (b, TINY_OP_AND, mixed (b, larger, word), 1);
    x = tiny_build_where (b, coin, partner, x);
    if (round % 16 == 15)
      x = tiny_build_unary (b, TINY_OP_CONTIGUOUS, x);
  }
  return tiny_build_cast (b, x, dtype);
}

/* self (…, K) weights to (…, N): with u uniform over the total, how many sums of weights are below. */
static TinyNode *
with_replacement (TinyBuild *b, TinyNode *self, gint64 n)
{
  gint64 dims[TINY_MAX_RANK + 1];
  guint last = self->shape->n - 1;
  gint64 size = self->shape->v[last];
  TinyNode *sums = tiny_build_unary (b, TINY_OP_CONTIGUOUS, op_cumsum (b, self, last));
  if (sums == NULL)
    return NULL;
  TinyNode *total = tiny_build_slice (b, sums, last, size - 1, 1, 1);
  for (guint i = 0; i <= last; i++)
    dims[i] = i == last ? n : self->shape->v[i];
  TinyNode *at
      = tiny_build_mul (b, op_rand (b, (TinyDType) self->dtype, dims, last + 1), total);
  TinyNode *below
      = op_le (b, tiny_build_unsqueeze (b, sums, last), tiny_build_unsqueeze (b, at, last + 1));
  TinyNode *count = tiny_build_sum (b, below, (gint64[]){ last + 1 }, 1);
  count = tiny_build_squeeze (b, count, (gint64[]){ last + 1 }, 1);
  return op_minimum (b, count, tiny_build_like (b, count, (double) (size - 1)));
}

/* The N that come first when each waits an exponential time by its weight (Efraimidis and
 * Spirakis 2006); who comes when is counted. */
static TinyNode *
without_replacement (TinyBuild *b, TinyNode *self, gint64 n)
{
  gint64 row[TINY_MAX_RANK + 2];
  guint last = self->shape->n - 1;
  gint64 size = self->shape->v[last];
  TinyNode *u = op_rand (b, (TinyDType) self->dtype, self->shape->v, last + 1);
  TinyNode *wait = tiny_build_div (b, op_neg (b, op_log1p (b, op_neg (b, u))), self);
  wait = tiny_build_unary (b, TINY_OP_CONTIGUOUS, wait);
  TinyNode *mine = tiny_build_unsqueeze (b, wait, last + 1),
           *other = tiny_build_unsqueeze (b, wait, last);
  for (guint i = 0; i < last + 2; i++)
    row[i] = i == last ? size : 1;
  TinyNode *counter = tiny_build_iota (b, TINY_DTYPE_I32, size);
  TinyNode *here = tiny_build_reshape (b, counter, row, last + 2);
  row[last] = 1;
  row[last + 1] = size;
  TinyNode *there = tiny_build_reshape (b, counter, row, last + 2);
  TinyNode *tie = op_logical_and (b, tiny_build_binary (b, TINY_OP_CMPEQ, other, mine),
                                  tiny_build_binary (b, TINY_OP_CMPLT, there, here));
  TinyNode *earlier = op_logical_or (b, tiny_build_binary (b, TINY_OP_CMPLT, other, mine), tie);
  TinyNode *rank = tiny_build_sum (b, earlier, (gint64[]){ last + 1 }, 1); /* (…, K, 1) */
  rank = tiny_build_unary (b, TINY_OP_CONTIGUOUS, rank);
  row[last + 1] = n;
  TinyNode *wanted
      = tiny_build_reshape (b, tiny_build_iota (b, TINY_DTYPE_I32, n), row, last + 2);
  TinyNode *is_it = tiny_build_binary (b, TINY_OP_CMPEQ, rank, wanted);
  TinyNode *found = tiny_build_where (b, is_it, here, tiny_build_number (b, TINY_DTYPE_I32, 0));
  found = tiny_build_sum (b, found, (gint64[]){ last }, 1);
  return tiny_build_squeeze (b, found, (gint64[]){ last }, 1);
}

/* True unless weights that can be read are none: those of each row, along the last axis, are finite, from 0 on and not all 0. */
static gboolean
check_weights (TinyBuild *b, TinyNode *x)
{
  x = tiny_build_float (b, x);
  if (x == NULL || tiny_build_is_empty (x))
    return x != NULL;
  TinyNode *zero = tiny_build_like (b, x, 0);
  TinyNode *is_finite = op_lt (b, x, tiny_build_like (b, x, INFINITY));
  if (!tiny_build_check_all (b, tiny_build_where (b, is_finite, op_ge (b, x, zero), is_finite),
                             "a weight is below 0, infinite or NaN"))
    return FALSE;
  TinyNode *most
      = tiny_build_reduce (b, TINY_OP_MAX, x, (gint64[]){ (gint64) x->shape->n - 1 }, 1);
  return most != NULL
         && tiny_build_check_all (b, op_gt (b, most, tiny_build_like (b, most, 0)),
                                  "all weights of a row are 0");
}

TinyNode *
op_multinomial (TinyBuild *b, TinyNode *self, gint64 num_samples, gboolean replacement)
{
  guint rank = self->shape->n;
  if (rank < 1 || rank > 2 || self->shape->v[rank - 1] < 1)
    return tiny_build_fail (b, "wants weights of shape (K) or (B, K)");
  gint64 size = self->shape->v[rank - 1];
  if (num_samples < 1 || (!replacement && num_samples > size))
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " cannot be drawn%s",
                            num_samples, size, replacement ? "" : " without replacement");
  if (!check_weights (b, self))
    return NULL;
  return replacement ? with_replacement (b, self, num_samples)
                     : without_replacement (b, self, num_samples);
}

TinyNode *
op_bernoulli (TinyBuild *b, TinyNode *self)
{
  TinyNode *is_most = op_le (b, self, tiny_build_like (b, self, 1));
  if (!tiny_build_check_all (
          b,
          tiny_build_where (b, is_most, op_ge (b, self, tiny_build_like (b, self, 0)), is_most),
          "a probability is not from 0 to 1"))
    return NULL;
  TinyNode *u = op_rand (b, (TinyDType) self->dtype, self->shape->v, self->shape->n);
  return tiny_build_cast (b, tiny_build_binary (b, TINY_OP_CMPLT, u, self),
                          (TinyDType) self->dtype);
}
