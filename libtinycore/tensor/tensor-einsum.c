/* SPDX-License-Identifier: MIT
 *
 * tensor-einsum.c: sums of products named by letters for axes.
 *
 * Each operand becomes one with distinct letters in ascending order, of which those that nothing else
 * needs are summed at once. Then pairs are contracted, the one with the smallest result first, each
 * as a product broadcast over all letters and a sum: the kernel compiler finds matrix products. */
#include <string.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"

enum {
  N_LETTERS = 52,
  N_LABELS = N_LETTERS + TINY_MAX_RANK /* the axes of an ellipsis, last first */
};

/* A node whose axes are the labels in a set, ascending. */
typedef struct {
  TinyNode *node;
  gboolean has[N_LABELS];
} Term;

typedef struct {
  const char *text; /* what is left of it */
  guint n_terms;
  Term *terms;
  gboolean in_output[N_LABELS];
  guint uses[N_LABELS];   /* how often it is written */
  gint64 sizes[N_LABELS]; /* of those that are written */
  guint output[TINY_MAX_RANK], n_output;
  gboolean has_arrow;
} Einsum;

static gint
label_of (char c)
{
  return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* ---- reading ---- */

/* Adds @label to those of @what. */
static gboolean
put_label (TinyBuild *b, const char *what, guint *labels, guint *n, guint label)
{
  if (*n == TINY_MAX_RANK)
    return tiny_build_fail (b, "%s has more than %d axes", what, TINY_MAX_RANK) != NULL;
  labels[(*n)++] = label;
  return TRUE;
}

/* The labels of one operand of @rank axes, or of the output, whose ellipsis has @n_ellipsis. */
static gboolean
read_labels (
    TinyBuild *b, Einsum *self, guint rank, gint n_ellipsis, guint *labels, guint *out_n)
{
  const char *what = n_ellipsis < 0 ? "an operand" : "the result";
  guint n_letters = 0;
  gboolean dots = FALSE, good = TRUE;
  for (const char *p = self->text; *p != '\0' && *p != ',' && *p != '-'; p++)
    n_letters += label_of (*p) >= 0;
  if (n_ellipsis < 0)
    n_ellipsis = (gint) rank - (gint) n_letters;
  *out_n = 0;
  for (; good && *self->text != '\0' && *self->text != ',' && *self->text != '-';
       self->text++) {
    gint label = label_of (*self->text);
    if (*self->text == ' ')
      continue;
    if (label < 0 && !dots && g_str_has_prefix (self->text, "...")) {
      dots = TRUE;
      self->text += 2;
      for (gint i = n_ellipsis; good && i-- > 0;)
        good = put_label (b, what, labels, out_n, N_LETTERS + (guint) i);
    } else if (label < 0) {
      return tiny_build_fail (b, "“%s” does not go on with a letter, …, a comma or ->",
                              self->text)
             != NULL;
    } else {
      good = put_label (b, what, labels, out_n, (guint) label);
    }
  }
  return good;
}

static char *
label_to_string (guint label)
{
  char letter = label < 26 ? (char) ('A' + label) : (char) ('a' + label - 26);
  return label < N_LETTERS ? g_strdup_printf ("letter %c", letter)
                           : g_strdup ("an axis of the ellipsis");
}

/* That axis @axis of @shape, called @label, is as long as others of that name. Axes of size 1 are repeated, but not
 * along one of the same operand. */
static gboolean
meet_size (TinyBuild *b, Einsum *self, guint label, const TinyInts *shape, guint axis)
{
  gint64 size = shape->v[axis], before = self->sizes[label];
  if (self->uses[label]++ > 0 && size != before && size != 1 && before != 1) {
    g_autofree char *name = label_to_string (label);
    g_autofree char *text = tiny_shape_to_string (shape);
    return tiny_build_fail (b,
                            "%s is of size %" G_GINT64_FORMAT
                            " in %s and of size %" G_GINT64_FORMAT " before",
                            name, size, text, before)
           != NULL;
  }
  self->sizes[label] = self->uses[label] > 1 && size == 1 ? before : size;
  return TRUE;
}

/* x with equal axes @first and @second made one, their diagonal. */
static TinyNode *
diagonal (TinyBuild *b, TinyNode *x, guint first, guint second, guint label)
{
  if (x == NULL)
    return NULL;
  gint64 one[] = { first };
  if (x->shape->v[first] != x->shape->v[second]) {
    g_autofree char *name = label_to_string (label);
    return tiny_build_fail (b, "%s is of sizes %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                            name, x->shape->v[first], x->shape->v[second]);
  }
  if (tiny_shape_get_n_elements (x->shape) == 0)
    return tiny_build_squeeze (b, x, one, 1);
  return tiny_build_squeeze (b, tiny_node_shear (b->graph, x, first, second, 1, 1, 0, 1, 1),
                             one, 1);
}

static gboolean
read_term (TinyBuild *b, Einsum *self, TinyNode *x, Term *out)
{
  guint labels[TINY_MAX_RANK], n;
  if (!read_labels (b, self, x->shape->n, -1, labels, &n))
    return FALSE;
  if (n != x->shape->n) {
    g_autofree char *text = tiny_shape_to_string (x->shape);
    return tiny_build_fail (b, "%u letters name the axes of %s", n, text) != NULL;
  }
  for (guint i = 0; i < n; i++)
    if (!meet_size (b, self, labels[i], x->shape, i))
      return FALSE;
  for (guint i = 0; i < n; i++)
    for (guint j = i + 1; j < n; j++)
      if (labels[i] == labels[j]) {
        x = diagonal (b, x, i, j, labels[i]);
        memmove (labels + i, labels + i + 1, (n - i - 1) * sizeof *labels);
        n--;
        i--;
        break;
      }
  gint64 axes[TINY_MAX_RANK];
  guint at = 0;
  for (guint label = 0; label < N_LABELS; label++)
    for (guint i = 0; i < n; i++)
      if (labels[i] == label) {
        out->has[label] = TRUE;
        axes[at++] = i;
      }
  out->node = tiny_build_permute (b, x, axes, n);
  return out->node != NULL;
}

/* After the arrow, or in its absence: the ellipsis, then letters that are written once. */
static gboolean
read_output (TinyBuild *b, Einsum *self)
{
  guint n_ellipsis = 0;
  for (guint i = 0; i < TINY_MAX_RANK; i++)
    if (self->uses[N_LETTERS + i] > 0)
      n_ellipsis = i + 1;
  if (*self->text == '\0') {
    for (guint i = n_ellipsis; i-- > 0;)
      self->output[self->n_output++] = N_LETTERS + i;
    for (guint label = 0; label < N_LETTERS; label++)
      if (self->uses[label] == 1
          && !put_label (b, "the result", self->output, &self->n_output, label))
        return FALSE;
  } else {
    if (!g_str_has_prefix (self->text, "->"))
      return tiny_build_fail (b, "“%s” is not -> and the result's letters", self->text) != NULL;
    self->text += 2;
    if (!read_labels (b, self, 0, (gint) n_ellipsis, self->output, &self->n_output))
      return FALSE;
    if (*self->text != '\0')
      return tiny_build_fail (b, "“%s” comes after the result", self->text) != NULL;
  }
  for (guint i = 0; i < self->n_output; i++) {
    guint label = self->output[i];
    if (self->in_output[label] || self->uses[label] == 0)
      return tiny_build_fail (b, "the result names a letter %s",
                              self->in_output[label] ? "twice" : "that no operand has")
             != NULL;
    self->in_output[label] = TRUE;
  }
  return TRUE;
}

/* ---- contracting ---- */

/* Whether another term than these two, or the result, has @label. */
static gboolean
is_needed (const Einsum *self, const Term *x, const Term *y, guint label)
{
  gboolean needed = self->in_output[label];
  for (guint i = 0; i < self->n_terms; i++)
    needed
        = needed || (&self->terms[i] != x && &self->terms[i] != y && self->terms[i].has[label]);
  return needed;
}

static gint64
size_along (const Term *term, guint label)
{
  guint axis = 0;
  for (guint i = 0; i < label; i++)
    axis += term->has[i];
  return term->has[label] ? term->node->shape->v[axis] : 1;
}

/* @term with an axis of 1 for each label of @other that it has not. */
static TinyNode *
align (TinyBuild *b, const Term *term, const Term *other)
{
  gint64 dims[2 * TINY_MAX_RANK];
  guint n = 0;
  for (guint label = 0; label < N_LABELS; label++)
    if (term->has[label] || other->has[label])
      dims[n++] = size_along (term, label);
  return tiny_build_reshape (b, term->node, dims, n);
}

/* @x, which has the axes of @term and @other, summed over those that nothing else needs. */
static void
sum_rest (TinyBuild *b, const Einsum *self, Term *term, const Term *other, TinyNode *x)
{
  gint64 axes[2 * TINY_MAX_RANK];
  guint rank = 0, n = 0;
  for (guint label = 0; label < N_LABELS; label++) {
    if (!term->has[label] && !other->has[label])
      continue;
    term->has[label] = is_needed (self, term, other, label);
    if (!term->has[label])
      axes[n++] = rank;
    rank++;
  }
  term->node = n == 0 ? x : tiny_build_squeeze (b, tiny_build_sum (b, x, axes, n), axes, n);
}

/* How many elements the product of two terms leaves. */
static double
cost_of (const Einsum *self, const Term *x, const Term *y)
{
  double n = 1;
  for (guint label = 0; label < N_LABELS; label++)
    if ((x->has[label] || y->has[label]) && is_needed (self, x, y, label))
      n *= (double) MAX (size_along (x, label), size_along (y, label));
  return n;
}

static gboolean
contract_pair (TinyBuild *b, Einsum *self)
{
  Term *x = &self->terms[0], *y = &self->terms[1];
  double least = cost_of (self, x, y);
  for (guint i = 0; i < self->n_terms; i++)
    for (guint j = i + 1; j < self->n_terms; j++) {
      double cost = cost_of (self, &self->terms[i], &self->terms[j]);
      if (cost < least) {
        least = cost;
        x = &self->terms[i];
        y = &self->terms[j];
      }
    }
  TinyNode *product = tiny_build_mul (b, align (b, x, y), align (b, y, x));
  if (product == NULL)
    return FALSE;
  sum_rest (b, self, x, y, product);
  *y = self->terms[--self->n_terms];
  return x->node != NULL;
}

static TinyNode *
contract (TinyBuild *b, Einsum *self)
{
  for (guint i = 0; i < self->n_terms; i++)
    sum_rest (b, self, &self->terms[i], &self->terms[i], self->terms[i].node);
  while (self->n_terms > 1)
    if (!contract_pair (b, self))
      return NULL;
  gint64 axes[TINY_MAX_RANK];
  for (guint i = 0; i < self->n_output; i++) {
    axes[i] = 0;
    for (guint label = 0; label < self->output[i]; label++)
      axes[i] += self->terms[0].has[label];
  }
  return tiny_build_permute (b, self->terms[0].node, axes, self->n_output);
}

TinyNode *
op_einsum (TinyBuild *b, const char *equation, TinyNode *const *operands, guint n_operands)
{
  g_autofree Term *terms = g_new0 (Term, n_operands + 1);
  Einsum self = { .text = equation, .terms = terms, .n_terms = n_operands };
  if (equation == NULL)
    return tiny_build_fail (b, "there is no equation");
  TinyDType dtype = (TinyDType) operands[0]->dtype;
  for (guint i = 1; i < n_operands; i++)
    dtype = tiny_dtype_promote (dtype, (TinyDType) operands[i]->dtype);
  if (dtype == TINY_DTYPE_BOOL)
    dtype = TINY_DTYPE_I32;
  gboolean is_narrow = tiny_dtype_is_float (dtype) && tiny_dtype_get_n_bytes (dtype) < 4;
  for (guint i = 0; i < n_operands; i++) {
    if (i > 0 && *self.text++ != ',')
      return tiny_build_fail (b, "the equation names %u operands, %u are given", i, n_operands);
    TinyNode *x = tiny_build_cast (b, operands[i], is_narrow ? TINY_DTYPE_F32 : dtype);
    if (!read_term (b, &self, x, &terms[i]))
      return NULL;
  }
  if (*self.text == ',')
    return tiny_build_fail (b, "the equation names more than %u operands", n_operands);
  return read_output (b, &self) ? tiny_build_cast (b, contract (b, &self), dtype) : NULL;
}

/* ---- products that are one ---- */
static gboolean
check_rank (TinyBuild *b, const TinyNode *x, guint rank, const char *what)
{
  if (x->shape->n == rank)
    return TRUE;
  g_autofree char *text = tiny_shape_to_string (x->shape);
  tiny_build_fail (b, "the %s has %u axes, not those of %s", what, rank, text);
  return FALSE;
}

TinyNode *
op_mm (TinyBuild *b, TinyNode *self, TinyNode *mat2)
{
  return check_rank (b, self, 2, "first") && check_rank (b, mat2, 2, "second")
             ? tiny_build_matmul (b, self, mat2)
             : NULL;
}

TinyNode *
op_mv (TinyBuild *b, TinyNode *self, TinyNode *vec)
{
  return check_rank (b, self, 2, "matrix") && check_rank (b, vec, 1, "vector")
             ? tiny_build_matmul (b, self, vec)
             : NULL;
}

TinyNode *
op_bmm (TinyBuild *b, TinyNode *self, TinyNode *mat2)
{
  if (!check_rank (b, self, 3, "first") || !check_rank (b, mat2, 3, "second"))
    return NULL;
  if (self->shape->v[0] != mat2->shape->v[0])
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " matrices",
                            self->shape->v[0], mat2->shape->v[0]);
  return tiny_build_matmul (b, self, mat2);
}

TinyNode *
op_outer (TinyBuild *b, TinyNode *self, TinyNode *vec2)
{
  return check_rank (b, self, 1, "first") && check_rank (b, vec2, 1, "second")
             ? tiny_build_mul (b, tiny_build_unsqueeze (b, self, 1), vec2)
             : NULL;
}

/* x (…, K), y (…, K): every row with every row. */
TinyNode *
op_inner (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  if (self->shape->n == 0 || other->shape->n == 0)
    return tiny_build_mul (b, self, other);
  return op_tensordot (b, self, other, 1, (gint64[]){ self->shape->n - 1 }, 1,
                       (gint64[]){ other->shape->n - 1 }, 1);
}

/* Axes @given, normalised, after the others; or the last or first @dims ones. */
static TinyNode *
axes_last (TinyBuild *b, TinyNode *x, const gint64 *given, guint n, gint64 dims, gboolean first)
{
  gint64 order[2 * TINY_MAX_RANK];
  guint rank = x->shape->n, at = 0;
  guint32 seen = 0;
  if (given == NULL && (dims < 0 || dims > rank))
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " axes of %u cannot be summed", dims, rank);
  n = given == NULL ? (guint) dims : n;
  if (n > rank)
    return tiny_build_fail (b, "%u axes of %u cannot be summed", n, rank);
  for (guint i = 0; i < n; i++) {
    guint axis = first ? i : rank - n + i;
    if (given != NULL
        && !tiny_build_axis (b, x, (gint) CLAMP (given[i], G_MININT, G_MAXINT), &axis))
      return NULL;
    if (seen >> axis & 1)
      return tiny_build_fail (b, "axis %u is named twice", axis);
    seen |= 1u << axis;
    order[rank - n + i] = axis;
  }
  for (guint axis = 0; axis < rank; axis++)
    if (!(seen >> axis & 1))
      order[at++] = axis;
  return tiny_build_permute (b, x, order, rank);
}

TinyNode *
op_tensordot (TinyBuild *b,
              TinyNode *self,
              TinyNode *other,
              gint64 dims,
              const gint64 *self_dims,
              guint n_self_dims,
              const gint64 *other_dims,
              guint n_other_dims)
{
  gboolean is_named = self_dims != NULL || other_dims != NULL;
  if (is_named && (self_dims == NULL || other_dims == NULL || n_self_dims != n_other_dims))
    return tiny_build_fail (b, "as many axes of the first as of the second are wanted");
  guint n = is_named ? n_self_dims : (guint) CLAMP (dims, 0, TINY_MAX_RANK);
  TinyNode *x = axes_last (b, self, self_dims, n_self_dims, dims, FALSE);
  TinyNode *y = axes_last (b, other, other_dims, n_other_dims, dims, TRUE);
  if (x == NULL || y == NULL)
    return NULL;
  gint64 shape[2 * TINY_MAX_RANK], k = 1, rows = 1, columns = 1;
  guint rank = 0;
  for (guint i = 0; i < n; i++) {
    gint64 a = x->shape->v[x->shape->n - n + i], c = y->shape->v[y->shape->n - n + i];
    if (a != c)
      return tiny_build_fail (
          b, "sizes %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " are not summed together", a,
          c);
    k *= a;
  }
  for (guint i = 0; i + n < x->shape->n; i++)
    rows *= shape[rank++] = x->shape->v[i];
  for (guint i = 0; i + n < y->shape->n; i++)
    columns *= shape[rank++] = y->shape->v[i];
  x = tiny_build_reshape (b, x, (gint64[]){ rows, k }, 2);
  y = tiny_build_reshape (b, y, (gint64[]){ columns, k }, 2);
  return tiny_build_reshape (b, tiny_build_matmul (b, x, tiny_build_transpose (b, y, 0, 1)),
                             shape, rank);
}

TinyNode *
op_kron (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  gint64 x_dims[2 * TINY_MAX_RANK], y_dims[2 * TINY_MAX_RANK], dims[TINY_MAX_RANK];
  guint rank = MAX (self->shape->n, other->shape->n);
  for (guint i = 0; i < rank; i++) {
    guint x_missing = rank - self->shape->n, y_missing = rank - other->shape->n;
    x_dims[2 * i] = i < x_missing ? 1 : self->shape->v[i - x_missing];
    y_dims[2 * i + 1] = i < y_missing ? 1 : other->shape->v[i - y_missing];
    x_dims[2 * i + 1] = y_dims[2 * i] = 1;
    dims[i] = x_dims[2 * i] * y_dims[2 * i + 1];
  }
  if (!tiny_build_check_shape (b, dims, rank))
    return NULL;
  TinyNode *product = tiny_build_mul (b, tiny_build_reshape (b, self, x_dims, 2 * rank),
                                      tiny_build_reshape (b, other, y_dims, 2 * rank));
  return tiny_build_reshape (b, product, dims, rank);
}

TinyNode *
op_trace (TinyBuild *b, TinyNode *self)
{
  if (!check_rank (b, self, 2, "matrix"))
    return NULL;
  gint64 n = MIN (self->shape->v[0], self->shape->v[1]), axes[] = { 0 };
  TinyNode *square = tiny_build_shrink (b, self, (gint64[]){ 0, n, 0, n });
  return tiny_build_squeeze (b, tiny_build_sum (b, diagonal (b, square, 0, 1, 0), axes, 1),
                             axes, 1);
}

/* @x with @axis turned so that element @by comes first. */
static TinyNode *
turn (TinyBuild *b, TinyNode *x, guint axis, gint64 by)
{
  gint64 n = x->shape->v[axis];
  TinyNode *parts[] = { tiny_build_slice (b, x, axis, by, 1, n - by),
                        tiny_build_slice (b, x, axis, 0, 1, by) };
  return tiny_build_cat (b, parts, 2, axis);
}

TinyNode *
op_cross (TinyBuild *b, TinyNode *self, TinyNode *other, guint axis)
{
  if (self->shape->n != other->shape->n || self->shape->v[axis] != 3
      || other->shape->v[axis] != 3) {
    g_autofree char *left = tiny_shape_to_string (self->shape);
    g_autofree char *right = tiny_shape_to_string (other->shape);
    return tiny_build_fail (
        b, "axis %u is of size 3 in both, which have as many axes, not %s and %s", axis, left,
        right);
  }
  TinyNode *ahead = tiny_build_mul (b, self, turn (b, other, axis, 1));
  TinyNode *behind = tiny_build_mul (b, turn (b, self, axis, 1), other);
  TinyNode *last = tiny_build_sub (b, ahead, behind);
  return last == NULL ? NULL : turn (b, last, axis, 1);
}

/* beta self + alpha product; a factor of 0 drops what it is of, NaNs included. */
static TinyNode *
add_product (TinyBuild *b, TinyNode *x, TinyNode *product, double beta, double alpha)
{
  if (product == NULL)
    return NULL;
  gint64 dims[TINY_MAX_RANK];
  guint rank = product->shape->n;
  memcpy (dims, product->shape->v, rank * sizeof *dims);
  x = tiny_build_expand (b, x, dims, rank);
  if (alpha != 1)
    product = tiny_build_mul (b, product, tiny_build_like (b, product, alpha));
  if (beta == 0)
    return product;
  return tiny_build_add (b, beta == 1 ? x : tiny_build_mul (b, x, tiny_build_like (b, x, beta)),
                         product);
}

TinyNode *
op_addmm (
    TinyBuild *b, TinyNode *self, TinyNode *mat1, TinyNode *mat2, double beta, double alpha)
{
  return add_product (b, self, op_mm (b, mat1, mat2), beta, alpha);
}

TinyNode *
op_baddbmm (
    TinyBuild *b, TinyNode *self, TinyNode *batch1, TinyNode *batch2, double beta, double alpha)
{
  return add_product (b, self, op_bmm (b, batch1, batch2), beta, alpha);
}
