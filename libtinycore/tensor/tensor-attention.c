/* SPDX-License-Identifier: MIT
 *
 * tensor-attention.c: softmax, and what it weighs.
 *
 * The scheduler finds attention in the nodes made here (schedule/recognise-attention.c): one product,
 * its softmax and another product, with a mask added or of counters. */
#include <float.h>
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

/* x - max (x) has the same softmax and cannot overflow; the shift has no gradient. */
static TinyNode *
shifted (TinyBuild *self, TinyNode *x, guint axis)
{
  if (x == NULL || tiny_build_is_empty (x)) /* of no elements none is the largest */
    return x;
  TinyNode *largest = tiny_build_reduce (self, TINY_OP_MAX, x, (gint64[]){ axis }, 1);
  if (largest == NULL)
    return NULL;
  return tiny_build_sub (self, x, tiny_layout_unary (self->graph, TINY_OP_DETACH, largest));
}

TinyNode *
tiny_build_log_softmax (TinyBuild *self, TinyNode *x, guint axis)
{
  x = shifted (self, tiny_build_float (self, x), axis);
  TinyNode *sum = tiny_build_sum (self, tiny_build_exp (self, x), (gint64[]){ axis }, 1);
  return tiny_build_sub (self, x, op_log (self, sum));
}

TinyNode *
op_softmax (TinyBuild *b, TinyNode *self, guint axis)
{
  TinyNode *x = tiny_build_exp (b, shifted (b, self, axis));
  TinyNode *sum = tiny_build_sum (b, x, (gint64[]){ axis }, 1);
  return tiny_build_mul (b, x, tiny_build_unary (b, TINY_OP_RECIP, sum));
}

/* The score of a key that is not seen. Of -infinity, a row of nothing else would be NaN, and so would its gradient. */
static double
get_unseen (TinyDType dtype)
{
  return dtype == TINY_DTYPE_F64 ? -DBL_MAX : -FLT_MAX;
}

/* The numbers that are added to scores for a mask of numbers: -infinity hides a key, as false does; any other number, and
 * be it the least one, is a key that is seen, if little. */
static TinyNode *
show_or_hide (TinyBuild *b, TinyNode *mask)
{
  const double unseen = get_unseen ((TinyDType) mask->dtype);
  TinyNode *least = tiny_build_like (b, mask, unseen);
  return tiny_build_where (
      b, op_lt (b, mask, least), least,
      tiny_build_binary (b, TINY_OP_MAX, mask, tiny_build_like (b, mask, unseen / 2)));
}

/* Its softmax, and 0 in a row where no key is seen. */
static TinyNode *
masked_softmax (TinyBuild *b, TinyNode *self, guint axis)
{
  TinyNode *largest = tiny_build_reduce (b, TINY_OP_MAX, self, (gint64[]){ axis }, 1);
  TinyNode *x = tiny_build_exp (b, shifted (b, self, axis));
  TinyNode *sum = tiny_build_sum (b, x, (gint64[]){ axis }, 1);
  if (sum == NULL || largest == NULL)
    return NULL;
  TinyNode *is_seen
      = op_gt (b, largest, tiny_build_like (b, largest, get_unseen ((TinyDType) self->dtype)));
  return tiny_build_mul (b, x,
                         tiny_build_where (b, is_seen, tiny_build_unary (b, TINY_OP_RECIP, sum),
                                           tiny_build_like (b, sum, 0)));
}

TinyNode *
op_log_softmax (TinyBuild *b, TinyNode *self, guint axis)
{
  return tiny_build_log_softmax (b, self, axis);
}

/* ---- attention ---- */

/* x (…, H, N, E) with each of its heads @times one after the other. */
static TinyNode *
repeat_heads (TinyBuild *b, TinyNode *x, gint64 times)
{
  gint64 dims[TINY_MAX_RANK + 1];
  guint rank = x->shape->n, head = rank - 3;
  x = tiny_build_unsqueeze (b, x, head + 1);
  for (guint i = 0; i <= rank; i++)
    dims[i] = i == head + 1 ? times : x->shape->v[i];
  x = tiny_build_expand (b, x, dims, rank + 1);
  dims[head] *= times;
  for (guint i = head + 1; i < rank; i++)
    dims[i] = x->shape->v[i + 1];
  return tiny_build_reshape (b, x, dims, rank);
}

static gboolean
share_heads (TinyBuild *b, TinyNode *query, TinyNode **x, const char *what)
{
  guint rank = query->shape->n;
  if (rank < 3 || (*x)->shape->n != rank)
    return tiny_build_fail (b, "shared heads are of (…, H, N, E), in query and %s", what)
           != NULL;
  gint64 n = query->shape->v[rank - 3], n_shared = (*x)->shape->v[rank - 3];
  if (n_shared < 1 || n % n_shared != 0)
    return tiny_build_fail (b,
                            "%" G_GINT64_FORMAT " heads of the query do not share "
                            "%" G_GINT64_FORMAT " of the %s",
                            n, n_shared, what)
           != NULL;
  if (n != n_shared)
    *x = repeat_heads (b, *x, n / n_shared);
  return TRUE;
}

/* Whether key j is not after query i, (L, S). */
static TinyNode *
is_earlier (TinyBuild *b, gint64 n_queries, gint64 n_keys)
{
  TinyNode *query = tiny_build_iota (b, TINY_DTYPE_I32, n_queries);
  query = tiny_build_reshape (b, query, (gint64[]){ n_queries, 1 }, 2);
  return op_le (b, tiny_build_iota (b, TINY_DTYPE_I32, n_keys), query);
}

TinyNode *
op_scaled_dot_product_attention (TinyBuild *b,
                                 TinyNode *self,
                                 TinyNode *key,
                                 TinyNode *value,
                                 TinyNode *attn_mask,
                                 double dropout_p,
                                 gboolean is_causal,
                                 double scale,
                                 gboolean enable_gqa)
{
  TinyNode *x[] = { self, key, value }; /* a mask of bool stays one */
  if (!tiny_build_take (b, TINY_TAKES_FLOAT, G_N_ELEMENTS (x), x))
    return NULL;
  self = x[0], key = x[1], value = x[2];
  guint rank = self->shape->n;
  if (rank < 2 || key->shape->n < 2 || value->shape->n < 2)
    return tiny_build_fail (b, "query, key and value are (…, N, E)");
  if (attn_mask != NULL && is_causal)
    return tiny_build_fail (b, "a mask and is_causal exclude each other");
  if (enable_gqa
      && (!share_heads (b, self, &key, "key") || !share_heads (b, self, &value, "value")))
    return NULL;
  if (!tiny_build_check_number (b, self, rank - 1))
    return NULL;
  gint64 depth = self->shape->v[rank - 1];
  if (scale == 0)
    scale = 1 / sqrt ((double) MAX (depth, 1));
  /* Products of narrow floats may be larger than those hold, and are rounded once, as weights. */
  const TinyDType dtype = tiny_dtype_promote ((TinyDType) self->dtype, (TinyDType) key->dtype);
  const TinyDType wide = tiny_dtype_get_n_bytes (dtype) < 4 ? TINY_DTYPE_F32 : dtype;
  key = tiny_build_transpose (b, tiny_build_cast (b, key, wide), key->shape->n - 2,
                              key->shape->n - 1);
  TinyNode *scores = tiny_build_matmul (b, tiny_build_cast (b, self, wide), key);
  if (scores == NULL)
    return NULL;
  scores = tiny_build_mul (b, scores, tiny_build_like (b, scores, scale));
  const gboolean has_mask = attn_mask != NULL;
  const gboolean is_gated = has_mask && attn_mask->dtype == TINY_DTYPE_BOOL;
  if (is_causal) {
    const gint64 *sizes = scores->shape->v + scores->shape->n - 2;
    scores = tiny_build_where (b, is_earlier (b, sizes[0], sizes[1]), scores,
                               tiny_build_like (b, scores, -INFINITY));
  } else if (is_gated) {
    scores = tiny_build_where (b, attn_mask, scores,
                               tiny_build_like (b, scores, get_unseen (wide)));
  } else if (attn_mask != NULL) {
    attn_mask = tiny_build_cast (b, attn_mask,
                                 tiny_dtype_promote (wide, (TinyDType) attn_mask->dtype));
    if (attn_mask != NULL)
      attn_mask = show_or_hide (b, attn_mask);
    scores = tiny_build_add (b, scores, attn_mask);
  }
  if (scores == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (scores->shape) > 0)
    scores = has_mask ? masked_softmax (b, scores, scores->shape->n - 1)
                      : op_softmax (b, scores, scores->shape->n - 1);
  scores = tiny_build_cast (b, scores, dtype);
  return tiny_build_matmul (b, op_dropout (b, scores, dropout_p), value);
}
