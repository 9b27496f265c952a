/* SPDX-License-Identifier: MIT
 *
 * tiny-windows.c: windows that move over the last axes of a tensor. */
#include "tensor/tiny-windows.h"

#include "ir/tiny-shape.h"

enum { MAX_BUILD_RANK = 32 };
static const gint64 most = 1 << 24;

/* ---- numbers of each direction ---- */
static gboolean
check_number (TinyBuild *b, const char *what, gint64 value, gint64 least)
{
  if (value >= least && value <= most)
    return TRUE;
  tiny_build_fail (b, "%s %" G_GINT64_FORMAT " is not from %" G_GINT64_FORMAT " to 2^24", what,
                   value, least);
  return FALSE;
}

gboolean
tiny_windows_take (TinyBuild *b,
                   const char *what,
                   const gint64 *given,
                   guint n_given,
                   guint n,
                   gint64 least,
                   gint64 otherwise,
                   gint64 *out)
{
  if (given == NULL)
    n_given = 0;
  if (n_given > 1 && n_given != n) {
    tiny_build_fail (b, "%u numbers given as %s, one or %u wanted", n_given, what, n);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    out[i] = n_given == 0 ? otherwise : given[n_given == 1 ? 0 : i];
    if (!check_number (b, what, out[i], least))
      return FALSE;
  }
  return TRUE;
}

gboolean
tiny_windows_take_padding (TinyBuild *b, TinyWindows *self, const gint64 *given, guint n_given)
{
  if (given == NULL || n_given != 2 * self->n) {
    if (!tiny_windows_take (b, "padding", given, n_given, self->n, 0, 0, self->before))
      return FALSE;
    for (guint i = 0; i < self->n; i++)
      self->after[i] = self->before[i];
    return TRUE;
  }
  for (guint i = 0; i < self->n; i++) {
    self->before[i] = given[2 * (self->n - 1 - i)];
    self->after[i] = given[2 * (self->n - 1 - i) + 1];
    if (!check_number (b, "padding", self->before[i], 0)
        || !check_number (b, "padding", self->after[i], 0))
      return FALSE;
  }
  return TRUE;
}

/* ---- images ---- */
gboolean
tiny_windows_take_image (TinyBuild *b, const TinyWindows *self, TinyNode **x, gboolean *batch)
{
  if (*x == NULL)
    return FALSE;
  *batch = (*x)->shape->n == self->n + 2;
  if (!*batch && (*x)->shape->n != self->n + 1) {
    static const char *const names[TINY_MAX_DIRECTIONS]
        = { "X", "Y, X", "Z, Y, X", "S, Z, Y, X", "R, S, Z, Y, X" };
    g_autofree char *text = tiny_shape_to_string ((*x)->shape);
    tiny_build_fail (b, "takes (B, C, %s) or (C, %s), not %s", names[self->n - 1],
                     names[self->n - 1], text);
    return FALSE;
  }
  if (!*batch)
    *x = tiny_build_unsqueeze (b, *x, 0);
  return TRUE;
}

gboolean
tiny_windows_fit (TinyBuild *b, TinyWindows *self, TinyNode *x, gboolean ceil_mode)
{
  for (guint i = 0; i < self->n; i++) {
    gint64 size = x->shape->v[2 + i], step = self->stride[i];
    gint64 width = self->dilation[i] * (self->kernel[i] - 1) + 1;
    gint64 rest = size + self->before[i] + self->after[i] - width;
    if (rest < 0) {
      g_autofree char *text = tiny_shape_to_string (x->shape);
      tiny_build_fail (b,
                       "a window of %" G_GINT64_FORMAT " with dilation %" G_GINT64_FORMAT
                       " and padding %" G_GINT64_FORMAT " does not fit %s",
                       self->kernel[i], self->dilation[i], self->before[i], text);
      return FALSE;
    }
    self->out[i] = rest / step + 1;
    if (ceil_mode && rest % step != 0 && self->out[i] * step < size + self->before[i]) {
      self->after[i] += step - rest % step;
      self->out[i]++;
    }
  }
  return TRUE;
}

/* ---- views ---- */
TinyNode *
tiny_windows_channels_last (TinyBuild *b, TinyNode *x)
{
  gint64 axes[MAX_BUILD_RANK];
  if (x == NULL)
    return NULL;
  for (guint i = 0; i < x->shape->n; i++)
    axes[i] = i == 0 ? 0 : i + 1 < x->shape->n ? i + 1 : 1;
  return tiny_build_permute (b, x, axes, x->shape->n);
}

TinyNode *
tiny_windows_channels_second (TinyBuild *b, TinyNode *x)
{
  gint64 axes[MAX_BUILD_RANK];
  if (x == NULL)
    return NULL;
  for (guint i = 0; i < x->shape->n; i++)
    axes[i] = i == 0 ? 0 : i == 1 ? x->shape->n - 1 : i - 1;
  return tiny_build_permute (b, x, axes, x->shape->n);
}

TinyNode *
tiny_windows_view (TinyBuild *b, const TinyWindows *self, TinyNode *x, double value)
{
  gint64 dims[MAX_BUILD_RANK], pairs[2 * MAX_BUILD_RANK] = { 0 };
  for (guint i = 0; i < self->n; i++) {
    pairs[2 * (1 + i)] = self->before[i];
    pairs[2 * (1 + i) + 1] = self->after[i];
  }
  x = tiny_build_pad (b, x, pairs, value);
  if (x == NULL)
    return NULL;
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = x->shape->v[i];
  for (guint i = 0; i < self->n; i++)
    dims[1 + self->n + i] = self->kernel[i];
  if (!tiny_build_check_shape (b, dims, MIN (x->shape->n, TINY_MAX_RANK)))
    return NULL;
  x = tiny_node_expand (b->graph, x, dims, x->shape->n);
  for (guint i = 0; i < self->n; i++)
    x = tiny_node_shear (b->graph, x, 1 + i, 1 + self->n + i, self->stride[i],
                         self->dilation[i], 0, 1, self->out[i]);
  return x;
}
