/* SPDX-License-Identifier: MIT
 *
 * tensor-symbolic.c: parts of an axis between places that are calculated from variables.
 *
 * A place is a number and multiples of variables, so that the length of v:v+3 is found to be the number 3: such a part
 * is read from a place on (GATHER at a counter), and what is longer with the variable has its largest size and a
 * LIMIT. Python moves places outside of an axis inside; here the variables' bounds have to keep them there. */
#include <string.h>

#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "rewrite/tiny-bounds.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-part.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-variable.h"

enum { MOST_TERMS = 8, MOST_NODES = 16, MOST_DEPTH = 32 };

/* ---- sums of multiples ---- */
typedef struct {
  gint64 number;
  guint n;
  TinyNode *terms[MOST_TERMS];
  gint64 factors[MOST_TERMS];
} Linear;

static gboolean
add_term (Linear *self, TinyNode *term, gint64 factor)
{
  for (guint i = 0; i < self->n; i++)
    if (self->terms[i] == term)
      return !__builtin_add_overflow (self->factors[i], factor, &self->factors[i]);
  if (self->n == MOST_TERMS)
    return FALSE;
  self->terms[self->n] = term;
  self->factors[self->n++] = factor;
  return TRUE;
}

/* @self + @factor * @x; FALSE: more than fits. */
static gboolean
add_to (Linear *self, TinyNode *x, gint64 factor, guint depth)
{
  gint64 product;
  if (depth > MOST_DEPTH)
    return FALSE;
  switch (x->op) {
  case TINY_OP_CONST:
    return !__builtin_mul_overflow (x->arg, factor, &product)
           && !__builtin_add_overflow (self->number, product, &self->number);
  case TINY_OP_ADD:
  case TINY_OP_SUB:
    return add_to (self, x->sources[0], factor, depth + 1)
           && add_to (self, x->sources[1], x->op == TINY_OP_ADD ? factor : -factor, depth + 1);
  case TINY_OP_NEG:
    return add_to (self, x->sources[0], -factor, depth + 1);
  case TINY_OP_MUL:
    for (guint i = 0; i < 2; i++)
      if (x->sources[i]->op == TINY_OP_CONST)
        return !__builtin_mul_overflow (factor, x->sources[i]->arg, &product)
               && add_to (self, x->sources[1 - i], product, depth + 1);
    return add_term (self, x, factor);
  default:
    return add_term (self, x, factor);
  }
}

static gboolean
is_number (const Linear *self)
{
  for (guint i = 0; i < self->n; i++)
    if (self->factors[i] != 0)
      return FALSE;
  return TRUE;
}

static gboolean
get_bounds (const Linear *self, gint64 *out_lo, gint64 *out_hi)
{
  gboolean fits = TRUE;
  *out_lo = *out_hi = self->number;
  for (guint i = 0; i < self->n; i++) {
    gint64 ends[2], low, high;
    tiny_node_get_bounds (self->terms[i], &ends[0], &ends[1]);
    gboolean rises = self->factors[i] >= 0;
    fits = fits && !__builtin_mul_overflow (ends[rises ? 0 : 1], self->factors[i], &low)
           && !__builtin_mul_overflow (ends[rises ? 1 : 0], self->factors[i], &high)
           && !__builtin_add_overflow (*out_lo, low, out_lo)
           && !__builtin_add_overflow (*out_hi, high, out_hi);
  }
  return fits;
}

/* As a node of sums and products; equal ones are the same node. */
static TinyNode *
to_node (TinyGraph *graph, const Linear *self)
{
  TinyNode *sum = NULL;
  for (guint i = 0; i < self->n; i++) {
    if (self->factors[i] == 0)
      continue;
    TinyNode *term = self->terms[i];
    if (self->factors[i] != 1)
      term = tiny_node_binary (
          graph, TINY_OP_MUL, term,
          tiny_node_const_int (graph, (TinyDType) term->dtype, self->factors[i]));
    sum = sum == NULL ? term : tiny_node_binary (graph, TINY_OP_ADD, sum, term);
  }
  if (sum == NULL)
    return tiny_node_const_int (graph, TINY_DTYPE_I32, self->number);
  if (self->number == 0)
    return sum;
  return tiny_node_binary (graph, TINY_OP_ADD, sum,
                           tiny_node_const_int (graph, (TinyDType) sum->dtype, self->number));
}

/* Whether @size is what tiny_limit_evaluate() knows: it is evaluated often, and what is shared as often as it is
 * met. */
static gboolean
is_size (TinyGraph *graph, TinyNode *size)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &size, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if ((node->op != TINY_OP_CONST && node->op != TINY_OP_VARIABLE && node->op != TINY_OP_ADD
         && node->op != TINY_OP_MUL)
        || node->dtype != TINY_DTYPE_I32)
      return FALSE;
  }
  return order->len <= MOST_NODES;
}

gboolean
tiny_part_is_symbolic (TinyBuild *self, TinyNode *x)
{
  gint64 lo, hi;
  return tiny_build_get_bounds (self, x, &lo, &hi) && lo < hi;
}

/* @size of an axis as sums and products of variables and numbers, which limits are made of; NULL without an
 * error where it is none. */
static TinyNode *
to_size (TinyBuild *self, TinyNode *size, gint64 *out_lo, gint64 *out_hi)
{
  Linear sum = { 0 };
  if (!add_to (&sum, size, 1, 0) || !get_bounds (&sum, out_lo, out_hi))
    return NULL;
  TinyNode *node = to_node (self->graph, &sum);
  return is_size (self->graph, node) ? node : NULL;
}

/* ---- places ---- */

/* The end of @axis. */
static TinyNode *
get_end (TinyBuild *self, TinyNode *x, guint axis)
{
  TinyNode *limit = tiny_limit_get (x, axis);
  return limit != NULL ? limit
                       : tiny_node_const_int (self->graph, TINY_DTYPE_I32, x->shape->v[axis]);
}

/* @place along @axis as a sum: a negative number counts from the end, one beyond that is the end. */
static gboolean
resolve (TinyBuild *self, TinyNode *x, guint axis, TinyNode *place, Linear *out)
{
  gint64 lo, hi, least, size = x->shape->v[axis];
  TinyNode *end = get_end (self, x, axis);
  *out = (Linear){ 0 };
  if (!tiny_build_get_bounds (self, place, &lo, &hi) || lo > hi)
    return tiny_build_fail (self, "a place is a whole number or is calculated from variables, "
                                  "and this is neither")
           != NULL;
  if (lo < hi)
    return add_to (out, place, 1, 0)
           || tiny_build_fail (self, "the place is more than a few sums of variables") != NULL;
  if (lo < 0)
    out->number = MAX (lo, -size);
  if (lo < 0 || lo >= size)
    return add_to (out, end, 1, 0);
  out->number = lo;
  tiny_node_get_bounds (end, &least, &hi);
  if (lo > least)
    return tiny_build_fail (
               self,
               "the size of axis %u is a variable, and may be below %" G_GINT64_FORMAT
               ": cut the whole first, or give the variable that as its least value",
               axis, lo)
           != NULL;
  return TRUE;
}

/* @a - @b */
static gboolean
subtract (const Linear *a, const Linear *b, Linear *out)
{
  *out = *a;
  gboolean fits = !__builtin_sub_overflow (a->number, b->number, &out->number);
  for (guint i = 0; fits && i < b->n; i++)
    fits = b->factors[i] != G_MININT64 && add_term (out, b->terms[i], -b->factors[i]);
  return fits;
}

static gboolean
outside (TinyBuild *self, TinyNode *x, guint axis, gint64 lo, gint64 hi)
{
  return tiny_build_fail (self,
                          "with these variables it reaches from %" G_GINT64_FORMAT
                          " to %" G_GINT64_FORMAT " of axis %u of %" G_GINT64_FORMAT
                          ": give them bounds that stay inside",
                          lo, hi, axis, x->shape->v[axis])
         != NULL;
}

/* The length, once begin and end are known. */
static gboolean
measure (TinyBuild *self, TinyNode *x, TinyPart *out, guint axis, const Linear *length)
{
  gint64 least;
  if (is_number (length)) {
    out->n = MAX (length->number, 0);
    return TRUE;
  }
  if (!get_bounds (length, &least, &out->n))
    return tiny_build_fail (self, "the length is beyond 64 bits") != NULL;
  if (least < 0)
    return tiny_build_fail (self,
                            "the part along axis %u may end before it begins: its length is "
                            "%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                            axis, least, out->n)
           != NULL;
  if (tiny_build_is_empty (x))
    return tiny_build_fail (self, "of a tensor without elements no size is a variable") != NULL;
  out->size = to_node (self->graph, length);
  if (out->n < 2 || !is_size (self->graph, out->size))
    return tiny_build_fail (self, out->n < 2
                                      ? "a size of at most 1 is no variable one"
                                      : "the size is more than a few sums and products of "
                                        "variables and numbers")
           != NULL;
  return TRUE;
}

gboolean
tiny_part_find (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *start, TinyNode *stop, TinyPart *out)
{
  Linear begin = { 0 }, end = { 0 }, length;
  gint64 lo, hi, unused;
  *out = (TinyPart){ 0 };
  if ((start != NULL && !resolve (self, x, axis, start, &begin))
      || !(stop != NULL ? resolve (self, x, axis, stop, &end)
                        : add_to (&end, get_end (self, x, axis), 1, 0)))
    return FALSE;
  if (!subtract (&end, &begin, &length) || !get_bounds (&begin, &lo, &unused)
      || !get_bounds (&end, &unused, &hi))
    return tiny_build_fail (self, "the places are more than a few sums of variables") != NULL;
  if (lo < 0 || hi > x->shape->v[axis])
    return outside (self, x, axis, lo, hi);
  out->start = begin.number;
  out->at = is_number (&begin) ? NULL : to_node (self->graph, &begin);
  return measure (self, x, out, axis, &length);
}

gboolean
tiny_part_find_one (TinyBuild *self, TinyNode *x, guint axis, TinyNode *index, TinyPart *out)
{
  Linear at;
  gint64 lo, hi, least, most;
  *out = (TinyPart){ .n = 1 };
  if (!resolve (self, x, axis, index, &at) || !get_bounds (&at, &lo, &hi))
    return FALSE;
  tiny_node_get_bounds (get_end (self, x, axis), &least, &most);
  if (lo < 0 || hi >= x->shape->v[axis] || (is_number (&at) && hi >= least))
    return outside (self, x, axis, lo, hi + 1);
  out->start = at.number;
  out->at = is_number (&at) ? NULL : to_node (self->graph, &at);
  return TRUE;
}

/* ---- reading and spreading ---- */

/* The elements of @x along @axis at @first + (0 1 … n-1); zeros where that is outside. */
static TinyNode *
gather_from (TinyBuild *self, TinyNode *x, guint axis, TinyNode *first, gint64 n)
{
  gint64 dims[TINY_MAX_RANK];
  guint rank = x->shape->n;
  TinyNode *positions = tiny_build_add (
      self, tiny_build_count_along (self, TINY_DTYPE_I32, axis, n, rank), first);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : x->shape->v[i];
  positions = tiny_build_expand (self, positions, dims, rank);
  if (positions == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (positions->shape) == 0)
    return tiny_node_broadcast (self->graph, tiny_build_like (self, x, 0), dims, rank);
  return tiny_node_gather (self->graph, x, axis,
                           tiny_node_limit_like (self->graph, positions, x, 1u << axis));
}

TinyNode *
tiny_part_read (TinyBuild *self, TinyNode *x, guint axis, const TinyPart *part)
{
  if (x == NULL)
    return NULL;
  if (tiny_limit_get (x, axis) != NULL)
    x = tiny_node_limit (self->graph, x, axis, NULL);
  x = part->at != NULL ? gather_from (self, x, axis, part->at, part->n)
                       : tiny_build_slice (self, x, axis, part->start, 1, part->n);
  return x == NULL || part->size == NULL ? x
                                         : tiny_node_limit (self->graph, x, axis, part->size);
}

TinyNode *
tiny_part_spread (TinyBuild *self, TinyNode *x, guint axis, const TinyPart *part, gint64 size)
{
  TinyNode *first = part->at != NULL
                        ? part->at
                        : tiny_node_const_int (self->graph, TINY_DTYPE_I32, part->start);
  if (x == NULL)
    return NULL;
  if (part->size != NULL) {
    TinyNode *place = tiny_build_count_along (self, TINY_DTYPE_I32, axis, part->n, x->shape->n);
    TinyNode *inside = tiny_build_binary (self, TINY_OP_CMPLT, place, part->size);
    x = tiny_node_limit (self->graph, x, axis, NULL);
    x = tiny_build_where (self, inside, x, tiny_build_like (self, x, 0));
  }
  return x == NULL ? NULL
                   : gather_from (
                       self, x, axis,
                       tiny_build_sub (
                           self, tiny_node_const_int (self->graph, TINY_DTYPE_I32, 0), first),
                       size);
}

/* ---- what operations do not take ---- */
gboolean
tiny_build_check_number (TinyBuild *self, const TinyNode *x, guint axis)
{
  if (tiny_limit_get (x, axis) == NULL)
    return TRUE;
  tiny_build_fail (self,
                   "the size of axis %u is a variable: do this with the whole, and shorten the "
                   "result, or give it a size that is a number",
                   axis);
  return FALSE;
}

void
tiny_build_refuse_symbolic (TinyBuild *self)
{
  for (guint i = 0; i < self->n; i++)
    for (guint axis = 0;
         self->x[i] != NULL && self->x[i]->limits != NULL && axis < self->x[i]->shape->n;
         axis++)
      if (tiny_limit_get (self->x[i], axis) != NULL)
        tiny_build_fail (
            self,
            "axis %u of argument %u has a size that is a variable, which this "
            "operation does not take: do it with the whole, and shorten the result, "
            "or give it a size that is a number",
            axis, i + 1);
}

/* Messages about sizes name the largest ones, which programs have not seen. */
void
tiny_build_explain_symbolic (TinyBuild *self)
{
  if (strstr (self->error->message, "variable") != NULL)
    return;
  for (guint i = 0; i < self->n; i++)
    for (guint axis = 0; self->x[i] != NULL && axis < self->x[i]->shape->n; axis++)
      if (tiny_limit_get (self->x[i], axis) != NULL) {
        g_autofree char *before = self->error->message;
        self->error->message = g_strdup_printf ("%s (the size of axis %u of argument %u is a "
                                                "variable: it counts as its largest, and is "
                                                "-1 where a shape is given)",
                                                before, axis, i + 1);
        return;
      }
}

/* A result without elements has lost which of its sizes are variables (ir/tiny-limit.c). */
void
tiny_build_check_left (TinyBuild *self, const TinyNode *node)
{
  if (node == NULL || !tiny_build_is_empty (node))
    return;
  for (guint i = 0; self->error == NULL && i < self->n; i++)
    if (self->x[i] != NULL && self->x[i]->limits != NULL)
      tiny_build_fail (self, "nothing is left of a tensor with a size that is a variable");
}

/* ---- public functions ---- */
gboolean
tiny_tensor_is_symbolic (TinyTensor *self)
{
  g_return_val_if_fail (TINY_IS_TENSOR (self), FALSE);
  if (self->error != NULL || self->n_dims > 0)
    return FALSE;
  tiny_runtime_lock ();
  TinyBuild b = { .graph = tiny_runtime_get_graph () };
  gboolean is_symbolic = tiny_part_is_symbolic (&b, self->root.node);
  tiny_runtime_unlock ();
  return is_symbolic;
}

TinyNode *
op_shorten (TinyBuild *self, TinyNode *x, guint axis, TinyNode *size)
{
  gint64 lo, hi, whole = x->shape->v[axis];
  if (!tiny_build_get_bounds (self, size, &lo, &hi) || lo > hi)
    return tiny_build_fail (self, "the size is no number and no variable");
  TinyNode *sum = lo < hi ? to_size (self, size, &lo, &hi) : size;
  if (lo < 0 || hi > whole)
    return tiny_build_fail (self,
                            "%" G_GINT64_FORMAT " … %" G_GINT64_FORMAT
                            " elements are more than axis %u of %" G_GINT64_FORMAT " has",
                            lo, hi, axis, whole);
  if (tiny_limit_get (x, axis) != NULL)
    return tiny_build_fail (self, "the size of axis %u is a variable already", axis);
  if (lo < hi && tiny_build_is_empty (x))
    return tiny_build_fail (self, "of a tensor without elements no size is a variable");
  TinyNode *part = tiny_build_slice (self, x, axis, 0, 1, hi);
  if (lo == hi || part == NULL)
    return part;
  if (sum == NULL || hi < 2)
    return tiny_build_fail (
        self, hi < 2
                  ? "a size of at most 1 is no variable one"
                  : "the size is more than a few sums and products of variables and numbers");
  return tiny_node_limit (self->graph, part, axis, sum);
}
