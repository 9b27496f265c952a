/* SPDX-License-Identifier: MIT
 *
 * tiny-axes.c: axes that a program names, from the end or from the start.
 *
 * What has no axes takes those of a line of one, as in PyTorch: it has no axis to go along, or is made such a line, and
 * the result no line. */
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-private.h"

static gboolean
is_of_line (gint axis)
{
  return axis == -1 || axis == 0;
}

gboolean
tiny_build_axis (TinyBuild *self, TinyNode *x, gint axis, guint *out_axis)
{
  *out_axis = 0;
  if (x == NULL)
    return FALSE;
  gint n = (gint) x->shape->n;
  if (axis < -n || axis >= n) {
    g_autofree char *text = tiny_shape_to_string (x->shape);
    tiny_build_fail (self, "axis %d is outside of shape %s", axis, text);
    return FALSE;
  }
  *out_axis = (guint) (axis < 0 ? axis + n : axis);
  return TRUE;
}

gboolean
tiny_build_one_axis (TinyBuild *self, TinyNode **x, gint axis, guint *out_axis)
{
  *out_axis = 0;
  if (axis != TINY_NO_AXIS)
    return tiny_build_axis (self, *x, axis, out_axis);
  *x = *x == NULL ? NULL
                  : tiny_build_reshape (
                      self, *x, (gint64[]){ tiny_shape_get_n_elements ((*x)->shape) }, 1);
  return *x != NULL;
}

gboolean
tiny_build_raise (TinyBuild *self, gint axis)
{
  for (guint i = 0; i < self->n; i++)
    if (self->x[i] != NULL && self->x[i]->shape->n > 0)
      return TRUE;
  self->is_raised = self->n > 0 && self->x[0] != NULL && is_of_line (axis);
  for (guint i = 0; self->is_raised && i < self->n; i++)
    if (self->x[i] != NULL)
      self->x[i] = tiny_build_reshape (self, self->x[i], (gint64[]){ 1 }, 1);
  return TRUE;
}

TinyNode *
tiny_build_lower (TinyBuild *self, TinyNode *node)
{
  gboolean is_line
      = self->is_raised && node != NULL && node->shape->n == 1 && node->shape->v[0] == 1;
  return is_line ? tiny_build_reshape (self, node, NULL, 0) : node;
}

TinyNode *
tiny_build_keep_all (TinyBuild *self, TinyNode *x, TinyTensor *tensor)
{
  gint64 ones[TINY_MAX_RANK];
  for (guint i = 0; i < TINY_MAX_RANK; i++)
    ones[i] = 1;
  return tensor == NULL ? x : tiny_build_reshape (self, x, ones, tensor->n_dims);
}

gboolean
tiny_build_axes (
    TinyBuild *self, TinyNode *x, const gint *axes, guint n, gint64 *out_axes, guint *out_n)
{
  *out_n = 0;
  if (x == NULL)
    return FALSE;
  if (axes == NULL && n == 0) {
    for (guint i = 0; i < x->shape->n; i++)
      out_axes[i] = i;
    *out_n = x->shape->n;
    return TRUE;
  }
  guint32 seen = 0;
  for (guint i = 0; i < n; i++) {
    guint axis;
    if (x->shape->n == 0 && n == 1 && axes != NULL && is_of_line (axes[i]))
      return TRUE;
    if (axes == NULL || !tiny_build_axis (self, x, axes[i], &axis))
      return tiny_build_fail (self, "%u axes wanted, none given", n) != NULL;
    if (seen & 1u << axis)
      return tiny_build_fail (self, "axis %d is named twice", axes[i]) != NULL;
    seen |= 1u << axis;
    out_axes[i] = axis;
  }
  *out_n = n;
  return TRUE;
}
