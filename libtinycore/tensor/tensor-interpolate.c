/* SPDX-License-Identifier: MIT
 *
 * tensor-interpolate.c: images in other sizes.
 *
 * Along each direction a result lies between two elements, or on one: those are read at positions that
 * are computed, and mixed. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"

enum { NEAREST, NEAREST_EXACT, LINEAR };

typedef struct {
  guint mode;
  gboolean align_corners;
  double ratio; /* elements of the source for one of the result */
  /* Where sizes are given, result i lies at (@step i + @start) / @parts of the source; else @parts is 0. */
  gint64 step, start, parts;
} Direction;

/* Where results 0 … @n-1 are in the source. */
static TinyNode *
positions (TinyBuild *b, gint64 n, const Direction *self)
{
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_F32, n);
  double shift = self->mode == NEAREST || self->align_corners ? 0 : 0.5;
  at = tiny_build_add (b, at, tiny_build_like (b, at, shift));
  at = tiny_build_mul (b, at, tiny_build_like (b, at, self->ratio));
  if (self->mode != LINEAR || self->align_corners)
    return at;
  return op_maximum (b, tiny_build_add (b, at, tiny_build_like (b, at, -0.5)),
                     tiny_build_like (b, at, 0));
}

static TinyNode *
bounded (TinyBuild *b, TinyNode *at, gint64 size)
{
  at = tiny_build_cast (b, at, TINY_DTYPE_I32);
  return op_minimum (b, at, tiny_build_like (b, at, (double) (size - 1)));
}

/* The element below the place of results 0 … @n-1, and in *@out_share the part of the way to the next one. With sizes both
 * come from whole numbers: an f32 position far along a long axis has few bits left for the share. */
static TinyNode *
below (TinyBuild *b, gint64 n, gint64 size, const Direction *self, TinyNode **out_share)
{
  if (self->mode != LINEAR || self->parts == 0) {
    TinyNode *at = positions (b, n, self), *low = bounded (b, at, size);
    *out_share = tiny_build_sub (b, at, tiny_build_cast (b, low, TINY_DTYPE_F32));
    return low;
  }
  const gboolean is_small = self->step * n + self->start <= G_MAXINT32;
  TinyNode *at = tiny_build_iota (b, is_small ? TINY_DTYPE_I32 : TINY_DTYPE_I64, n);
  at = tiny_build_mul (b, at, tiny_build_like (b, at, (double) self->step));
  at = tiny_build_add (b, at, tiny_build_like (b, at, (double) self->start));
  at = op_maximum (b, at, tiny_build_like (b, at, 0));
  TinyNode *parts = tiny_build_like (b, at, (double) self->parts);
  TinyNode *low = tiny_build_binary (b, TINY_OP_IDIV, at, parts);
  TinyNode *rest = tiny_build_sub (b, at, tiny_build_mul (b, low, parts));
  *out_share
      = tiny_build_mul (b, tiny_build_cast (b, rest, TINY_DTYPE_F32),
                        tiny_build_number (b, TINY_DTYPE_F32, 1.0 / (double) self->parts));
  return bounded (b, low, size);
}

static TinyNode *
resize (TinyBuild *b, TinyNode *x, guint axis, gint64 n, const Direction *self)
{
  gint64 size = x->shape->v[axis], dims[TINY_MAX_RANK];
  TinyNode *share, *low = below (b, n, size, self, &share);
  TinyNode *first = low == NULL ? NULL : op_index_select (b, x, axis, low);
  if (self->mode != LINEAR || first == NULL)
    return first;
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = i == axis ? n : 1;
  TinyNode *high = op_minimum (b, tiny_build_add (b, low, tiny_build_like (b, low, 1)),
                               tiny_build_like (b, low, (double) (size - 1)));
  share = tiny_build_cast (b, tiny_build_reshape (b, share, dims, x->shape->n),
                           (TinyDType) x->dtype);
  TinyNode *second = op_index_select (b, x, axis, high);
  TinyNode *rest = tiny_build_sub (b, tiny_build_like (b, share, 1), share);
  return tiny_build_add (b, tiny_build_mul (b, first, rest), tiny_build_mul (b, second, share));
}

TinyNode *
op_interpolate (TinyBuild *b,
                TinyNode *self,
                const gint64 *size,
                guint n_size,
                const double *scale_factor,
                guint n_scale_factor,
                const char *mode,
                gboolean align_corners)
{
  guint rank = self->shape->n, n = rank - 2, which;
  if (!tiny_build_word (b, mode, "nearest|nearest-exact|linear|bilinear|trilinear", &which))
    return NULL;
  if (rank < 3 || (which >= LINEAR && n != which - LINEAR + 1))
    return tiny_build_fail (b, "takes (B, C, S…) of as many directions as %s has, not %u axes",
                            mode, rank);
  Direction direction = { .mode = MIN (which, (guint) LINEAR), .align_corners = align_corners };
  if (align_corners && direction.mode != LINEAR)
    return tiny_build_fail (b, "only linear modes align corners");
  gboolean has_size = size != NULL && n_size > 0;
  gboolean has_scale = scale_factor != NULL && n_scale_factor > 0;
  guint given = has_size ? n_size : n_scale_factor;
  if (has_size == has_scale || (given != 1 && given != n))
    return tiny_build_fail (b, "either sizes or factors are wanted, one or %u", n);
  if (tiny_shape_get_n_elements (self->shape) == 0)
    return tiny_build_fail (b, "there is nothing in an image of size 0");
  TinyNode *x = direction.mode == LINEAR ? tiny_build_float (b, self) : self;
  for (guint i = 0; i < n && x != NULL; i++) {
    gint64 from = x->shape->v[2 + i];
    double factor = has_scale ? scale_factor[n_scale_factor == 1 ? 0 : i] : 0;
    double wanted
        = has_size ? (double) size[n_size == 1 ? 0 : i] : floor ((double) from * factor);
    if (!(wanted >= 1 && wanted <= 1 << 24) || from > 1 << 24)
      return tiny_build_fail (b, "%g elements of %" G_GINT64_FORMAT " are not a size", wanted,
                              from);
    gint64 to = (gint64) wanted;
    direction.ratio = align_corners ? to > 1 ? (double) (from - 1) / (double) (to - 1) : 0
                      : has_scale   ? 1 / factor
                                    : (double) from / (double) to;
    direction.parts = has_scale ? 0 : align_corners ? MAX (to - 1, 1) : 2 * to;
    direction.step = !align_corners ? 2 * from : to > 1 ? from - 1 : 0;
    direction.start = align_corners ? 0 : from - to;
    if (to != from || (has_scale && factor != 1))
      x = resize (b, x, 2 + i, to, &direction);
  }
  return x;
}
