/* SPDX-License-Identifier: MIT
 *
 * tiny-radix.c: long rows of integers in order, digit by digit from the last one.
 *
 * A pass moves each key to the number of keys that come before it: those of smaller digits in the row, those of its own
 * in chunks before its own, those of its own digit before it in the chunk. Digits are so small that all of these are
 * counted by comparing (a counting sort, Knuth 5.2 and 5.2.5). No two go to one place, so the kernel that moves them
 * may store at what was counted: the one thing here that the tensor graph has no words for. */
#include "tensor/tiny-radix.h"

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-positions.h"

enum {
  DIGIT_BITS = 4,
  N_DIGITS = 1 << DIGIT_BITS,
  CHUNK = 64,
  LEAST_ROW = 512,          /* shorter ones are merged in fewer kernels, … */
  LEAST_ELEMENTS = 1 << 15, /* and so are few */
};

gboolean
tiny_radix_is_worth_it (const TinyNode *keys)
{
  gint64 n = tiny_shape_get_n_elements (keys->shape);
  return keys->shape->v[1] >= LEAST_ROW && n >= LEAST_ELEMENTS
         && n <= G_MAXINT32 / 2; /* places are i32, also with what is added to rows */
}

static TinyNode *
i32 (TinyBuild *b, gint64 value)
{
  return tiny_node_const_int (b->graph, TINY_DTYPE_I32, value);
}

/* ---- moving ---- */

/* Elements at @places, which are distinct and all there are; @x NULL: the numbers of their columns. (R, N) */
static TinyNode *
move (TinyBuild *b, TinyNode *places, TinyNode *x)
{
  const TinyInts *shape = places->shape;
  gint64 n = tiny_shape_get_n_elements (shape);
  TinyDType dtype = x == NULL ? TINY_DTYPE_I32 : (TinyDType) x->dtype;
  const char *type = tiny_dtype_to_string (dtype);
  TinyNode *inputs[] = { tiny_build_reshape (b, places, &n, 1),
                         x == NULL ? NULL : tiny_build_reshape (b, x, &n, 1) };
  GString *text = g_string_new (NULL);
  g_string_append_printf (text,
                          "%%to = param.%s{slot=0, shape=[%" G_GINT64_FORMAT "]}\n"
                          "%%places = param.i32{slot=1, shape=[%" G_GINT64_FORMAT "]}\n"
                          "%%i = range.index{number=0, kind=loop}(%" G_GINT64_FORMAT ")\n",
                          type, n, n, n);
  if (x == NULL)
    g_string_append_printf (text, "%%x = cast.i32(floormod.index(%%i, %" G_GINT64_FORMAT "))\n",
                            shape->v[1]);
  else
    g_string_append_printf (text,
                            "%%from = param.%s{slot=2, shape=[%" G_GINT64_FORMAT "]}\n"
                            "%%x = load.%s(%%from, %%i)\n",
                            type, n, type);
  g_string_append (text,
                   "sink{name=\"move\"}(store(%to, cast.index(load.i32(%places, %i)), %x))\n");
  g_autofree char *owned = g_string_free (text, FALSE);
  if (b->error != NULL)
    return NULL;
  TinyNode *to = tiny_node_new (b->graph, TINY_OP_KERNEL, dtype, 1, x == NULL ? 1 : 2, inputs,
                                0, tiny_graph_ints (b->graph, &n, 1), owned);
  return tiny_build_reshape (b, to, shape->v, 2);
}

/* ---- counting ---- */

/* (R, C, CHUNK) i32 */
static TinyNode *
digits_of (TinyBuild *b, TinyNode *keys, guint first_bit)
{
  gint64 dims[] = { keys->shape->v[0], keys->shape->v[1] / CHUNK, CHUNK };
  TinyDType dtype = (TinyDType) keys->dtype;
  TinyNode *shift = tiny_node_const_int (b->graph, dtype, first_bit);
  TinyNode *digits = tiny_build_binary (b, TINY_OP_SHR, keys, shift);
  digits = tiny_build_binary (b, TINY_OP_AND, digits,
                              tiny_node_const_int (b->graph, dtype, N_DIGITS - 1));
  digits = tiny_build_reshape (b, tiny_build_cast (b, digits, TINY_DTYPE_I32), dims, 3);
  return tiny_build_store (b, digits);
}

/* How many keys of a row come before the first with a digit in a chunk: (R, N_DIGITS, C), of @digits (R, C, CHUNK). */
static TinyNode *
count_before (TinyBuild *b, TinyNode *digits)
{
  gint64 n_rows = digits->shape->v[0], n_chunks = digits->shape->v[1], last[] = { 3 };
  TinyNode *digit = tiny_build_count_along (b, TINY_DTYPE_I32, 1, N_DIGITS, 4);
  TinyNode *is_it
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, digits, 1), digit);
  TinyNode *count = tiny_build_squeeze (b, tiny_build_sum (b, is_it, last, 1), last, 1);
  count = tiny_build_store (
      b, tiny_build_reshape (b, count, (gint64[]){ n_rows, N_DIGITS * n_chunks }, 2));
  TinyNode *before = count == NULL ? NULL : tiny_build_sub (b, op_cumsum (b, count, 1), count);
  return tiny_build_reshape (b, tiny_build_store (b, before),
                             (gint64[]){ n_rows, N_DIGITS, n_chunks }, 3);
}

/* Of each key how many of its chunk have its digit and come before it: (R, C, CHUNK). */
static TinyNode *
count_within (TinyBuild *b, TinyNode *digits)
{
  gint64 last[] = { 3 };
  TinyNode *i = tiny_build_count_along (b, TINY_DTYPE_I32, 2, CHUNK, 4);
  TinyNode *j = tiny_build_count_along (b, TINY_DTYPE_I32, 3, CHUNK, 4);
  TinyNode *is_like = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, digits, 2),
                                         tiny_build_unsqueeze (b, digits, 3));
  TinyNode *counts = tiny_build_binary (b, TINY_OP_AND, is_like, tiny_build_less (b, j, i));
  return tiny_build_squeeze (b, tiny_build_sum (b, counts, last, 1), last, 1);
}

/* Where in memory each of @keys goes: (R, N). */
static TinyNode *
places_of (TinyBuild *b, TinyNode *keys, guint first_bit)
{
  const TinyInts *shape = keys->shape;
  TinyNode *digits = digits_of (b, keys, first_bit);
  TinyNode *before = digits == NULL ? NULL : count_before (b, digits);
  if (before == NULL)
    return NULL;
  before = tiny_node_gather (b->graph, tiny_build_transpose (b, before, 1, 2), 2, digits);
  TinyNode *row = tiny_build_count_along (b, TINY_DTYPE_I32, 0, shape->v[0], 3);
  row = tiny_build_mul (b, row, i32 (b, shape->v[1]));
  TinyNode *places = tiny_build_add (b, count_within (b, digits), before);
  places = tiny_build_add (b, places, row);
  return tiny_build_reshape (b, places, shape->v, 2);
}

/* ---- the whole ---- */

/* Every bit set, or for a key whose sign counts the largest number: what comes last. */
static TinyNode *
last_key (TinyBuild *b, const TinyRadix *self)
{
  TinyDType dtype = (TinyDType) self->keys->dtype;
  gboolean is_signed = !tiny_dtype_is_unsigned (dtype);
  return tiny_node_const_int (b->graph, dtype, is_signed ? tiny_dtype_get_max (dtype) : -1);
}

/* @x, in which the sign orders as the other bits do; its own inverse. */
static TinyNode *
turn_sign (TinyBuild *b, const TinyRadix *self, TinyNode *x)
{
  guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes ((TinyDType) x->dtype);
  if (tiny_dtype_is_unsigned ((TinyDType) x->dtype) || self->n_bits < n_bits)
    return x;
  TinyNode *sign = tiny_node_const_int (b->graph, (TinyDType) x->dtype,
                                        tiny_dtype_get_min ((TinyDType) x->dtype));
  return tiny_build_binary (b, TINY_OP_XOR, x, sign);
}

/* Rows of whole chunks: what is added comes after all, and stays there. */
static TinyNode *
pad_row (TinyBuild *b, const TinyRadix *self)
{
  gint64 n = self->keys->shape->v[1], whole = (n + CHUNK - 1) / CHUNK * CHUNK;
  if (whole == n)
    return self->keys;
  TinyNode *padded = tiny_build_pad (b, self->keys, (gint64[]){ 0, 0, 0, whole - n }, 0);
  TinyNode *is_there = tiny_build_less (
      b, tiny_build_count_along (b, TINY_DTYPE_I32, 1, whole, 2), i32 (b, n));
  return tiny_build_where (b, is_there, padded, last_key (b, self));
}

static TinyNode *
cut_row (TinyBuild *b, TinyNode *x, gint64 n)
{
  return x == NULL ? NULL : tiny_build_slice (b, x, 1, 0, 1, n);
}

void
tiny_radix_sort (TinyBuild *b, TinyRadix *self)
{
  gint64 n = self->keys->shape->v[1];
  self->from = NULL;
  self->keys = pad_row (b, self);
  self->keys = tiny_build_store (b, turn_sign (b, self, self->keys));
  for (guint bit = self->first_bit; bit < self->n_bits && self->keys != NULL;
       bit += DIGIT_BITS) {
    gboolean is_last = bit + DIGIT_BITS >= self->n_bits;
    TinyNode *places = tiny_build_store (b, places_of (b, self->keys, bit));
    if (places == NULL)
      break;
    if (self->wants_from)
      self->from = move (b, places, self->from);
    self->keys = is_last && self->wants_from ? NULL : move (b, places, self->keys);
  }
  if (b->error != NULL)
    self->keys = self->from = NULL;
  self->from = cut_row (b, self->from, n);
  if (self->keys != NULL)
    self->keys = cut_row (b, turn_sign (b, self, self->keys), n);
}
