/* SPDX-License-Identifier: MIT
 *
 * tensor-classes.c: losses of scores of classes, which are along axis 1: (B, K, S…), or (K).
 *
 * A target is the number of a class for each (B, S…), or a probability for each score. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-positions.h"

typedef struct {
  guint axis;       /* of the classes in scores */
  gint64 n;         /* of classes */
  TinyNode *log;    /* logarithms of probabilities (B, K, S…) */
  TinyNode *weight; /* of each class, as (1, K, 1…), or NULL */
  const char *reduction;
  double smoothing;
} Classes;

/* A vector (K) along the axis of classes. */
static TinyNode *
along_classes (TinyBuild *b, const Classes *self, TinyNode *vector)
{
  gint64 dims[TINY_MAX_RANK];
  for (guint i = 0; i < self->log->shape->n; i++)
    dims[i] = i == self->axis ? self->n : 1;
  return tiny_build_reshape (b, vector, dims, self->log->shape->n);
}

static gboolean
begin (TinyBuild *b, Classes *self, TinyNode *scores, TinyNode *weight)
{
  g_autofree char *text = tiny_shape_to_string (scores->shape);
  if (scores->shape->n < 1)
    return tiny_build_fail (b, "takes scores (B, K, …) or (K), not a number") != NULL;
  self->n = scores->shape->v[self->axis];
  self->log = tiny_build_float (b, scores);
  self->weight = NULL;
  if (weight == NULL)
    return TRUE;
  if (weight->shape->n != 1 || weight->shape->v[0] != self->n) {
    g_autofree char *found = tiny_shape_to_string (weight->shape);
    tiny_build_fail (b, "the weight of classes in %s is (%" G_GINT64_FORMAT ",), not %s", text,
                     self->n, found);
    return FALSE;
  }
  self->weight = along_classes (b, self, weight);
  return TRUE;
}

static gint64
count_rows (const Classes *self)
{
  return tiny_shape_get_n_elements (self->log->shape) / MAX (self->n, 1);
}

/* The sum along classes, which are no axis any more. */
static TinyNode *
sum_classes (TinyBuild *b, const Classes *self, TinyNode *x)
{
  gint64 axes[] = { self->axis };
  return tiny_build_squeeze (b, tiny_build_sum (b, x, axes, 1), axes, 1);
}

static TinyNode *
sum_all (TinyBuild *b, TinyNode *x)
{
  gint64 axes[TINY_MAX_RANK];
  if (x == NULL || x->shape->n == 0)
    return x;
  for (guint i = 0; i < x->shape->n; i++)
    axes[i] = i;
  return tiny_build_squeeze (b, tiny_build_sum (b, x, axes, x->shape->n), axes, x->shape->n);
}

static gboolean
check_labels (TinyBuild *b, const Classes *self, const TinyNode *labels)
{
  const TinyInts *scores = self->log->shape;
  gboolean fits = labels->shape->n + 1 == scores->n;
  for (guint i = 0; fits && i < labels->shape->n; i++)
    fits = labels->shape->v[i] == scores->v[i < self->axis ? i : i + 1];
  if (!fits) {
    g_autofree char *x = tiny_shape_to_string (scores);
    g_autofree char *y = tiny_shape_to_string (labels->shape);
    return tiny_build_fail (b, "labels of scores %s have its shape without axis %u, not %s", x,
                            self->axis, y)
           != NULL;
  }
  if (!tiny_dtype_is_integer (labels->dtype))
    return tiny_build_fail (b, "labels are integers, not %s",
                            tiny_dtype_to_string ((TinyDType) labels->dtype))
           != NULL;
  return TRUE;
}

/* Where class k is the label, (B, K, S…). */
static TinyNode *
is_label (TinyBuild *b, const Classes *self, TinyNode *labels)
{
  TinyDType dtype = tiny_dtype_get_n_bytes ((TinyDType) labels->dtype) > 4 ? TINY_DTYPE_I64
                                                                           : TINY_DTYPE_I32;
  TinyNode *class = along_classes (b, self, tiny_build_iota (b, dtype, self->n));
  labels = tiny_build_unsqueeze (b, tiny_build_cast (b, labels, dtype), self->axis);
  return tiny_build_binary (b, TINY_OP_CMPEQ, labels, class);
}

/* Minus the logarithm at the label, or of all classes in parts, weighted; 0 where it is ignored. */
static TinyNode *
loss_of_labels (TinyBuild *b, const Classes *self, TinyNode *labels, gint64 ignore_index)
{
  TinyNode *zero = tiny_build_like (b, self->log, 0);
  TinyNode *weighted
      = self->weight != NULL ? tiny_build_mul (b, self->log, self->weight) : self->log;
  if (!tiny_build_check_labels (b, labels, self->n, ignore_index))
    return NULL;
  TinyNode *is_class = is_label (b, self, labels);
  TinyNode *loss = tiny_build_where (
      b, is_class, tiny_build_mul_number (b, weighted, self->smoothing - 1), zero);
  if (self->smoothing > 0)
    loss = tiny_build_sub (
        b, loss,
        tiny_build_mul_number (b, weighted, self->smoothing / (double) MAX (self->n, 1)));
  TinyNode *counts = tiny_build_binary (
      b, TINY_OP_CMPNE, labels,
      tiny_node_const_int (b->graph, (TinyDType) labels->dtype, ignore_index));
  /* A label that is no class picks nothing anyway. */
  if (self->smoothing > 0 || (ignore_index >= 0 && ignore_index < self->n))
    loss = tiny_build_where (b, tiny_build_unsqueeze (b, counts, self->axis), loss, zero);
  if (g_str_equal (self->reduction, "none"))
    return sum_classes (b, self, loss);
  loss = sum_all (b, loss);
  if (g_str_equal (self->reduction, "sum"))
    return loss;
  TinyNode *share = tiny_build_where (b, counts, tiny_build_like (b, zero, 1), zero);
  if (self->weight != NULL)
    share = tiny_build_mul (
        b, share, sum_classes (b, self, tiny_build_where (b, is_class, self->weight, zero)));
  return tiny_build_div (b, loss, sum_all (b, share));
}

static TinyNode *
loss_of_probabilities (TinyBuild *b, const Classes *self, TinyNode *target)
{
  if (self->smoothing > 0) {
    target = tiny_build_mul_number (b, target, 1 - self->smoothing);
    target = tiny_build_add (
        b, target, tiny_build_like (b, target, self->smoothing / (double) MAX (self->n, 1)));
  }
  TinyNode *product = tiny_build_mul (b, self->log, target);
  if (self->weight != NULL)
    product = tiny_build_mul (b, product, self->weight);
  TinyNode *loss = op_neg (b, sum_classes (b, self, product));
  if (g_str_equal (self->reduction, "none"))
    return loss;
  loss = sum_all (b, loss);
  return g_str_equal (self->reduction, "sum")
             ? loss
             : tiny_build_mul_number (b, loss, 1.0 / (double) count_rows (self));
}

static gboolean
take_words (TinyBuild *b, const char *reduction, double smoothing)
{
  guint which;
  if (!(smoothing >= 0 && smoothing <= 1))
    tiny_build_fail (b, "label smoothing %g is not from 0 to 1", smoothing);
  return b->error == NULL && tiny_build_word (b, reduction, "mean|sum|none", &which);
}

TinyNode *
op_cross_entropy (TinyBuild *b,
                  TinyNode *self,
                  TinyNode *target,
                  TinyNode *weight,
                  gint64 ignore_index,
                  const char *reduction,
                  double label_smoothing)
{
  Classes classes = { .axis = self->shape->n > 1 ? 1 : 0,
                      .reduction = reduction,
                      .smoothing = label_smoothing };
  if (!take_words (b, reduction, label_smoothing) || !begin (b, &classes, self, weight))
    return NULL;
  gboolean is_shares
      = tiny_dtype_is_float (target->dtype) && tiny_shape_equal (self->shape, target->shape);
  if (!is_shares && !check_labels (b, &classes, target))
    return NULL;
  classes.log = tiny_build_log_softmax (b, self, classes.axis);
  if (classes.log == NULL)
    return NULL;
  return is_shares ? loss_of_probabilities (b, &classes, target)
                   : loss_of_labels (b, &classes, target, ignore_index);
}

TinyNode *
op_nll_loss (TinyBuild *b,
             TinyNode *self,
             TinyNode *target,
             TinyNode *weight,
             gint64 ignore_index,
             const char *reduction)
{
  Classes classes = { .axis = self->shape->n > 1 ? 1 : 0, .reduction = reduction };
  if (!take_words (b, reduction, 0) || !begin (b, &classes, self, weight)
      || !check_labels (b, &classes, target))
    return NULL;
  return loss_of_labels (b, &classes, target, ignore_index);
}

TinyNode *
op_sparse_categorical_crossentropy (TinyBuild *b,
                                    TinyNode *self,
                                    TinyNode *target,
                                    gint64 ignore_index,
                                    double label_smoothing,
                                    const char *reduction)
{
  Classes classes = { .axis = self->shape->n > 0 ? self->shape->n - 1 : 0,
                      .reduction = reduction,
                      .smoothing = label_smoothing };
  if (!take_words (b, reduction, label_smoothing) || !begin (b, &classes, self, NULL)
      || !check_labels (b, &classes, target))
    return NULL;
  classes.log = tiny_build_log_softmax (b, self, classes.axis);
  return classes.log == NULL ? NULL : loss_of_labels (b, &classes, target, ignore_index);
}
