/* SPDX-License-Identifier: MIT
 *
 * tensor-pool.c: windows of images (tiny-windows.h) combined. */
#include <math.h>
#include <string.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-windows.h"

typedef struct {
  const gint64 *kernel, *stride, *padding, *dilation;
  guint n_kernel, n_stride, n_padding, n_dilation;
  gboolean ceil_mode;
} Options;

typedef struct {
  TinyWindows windows;
  gboolean has_batch;
  gint64 axes[TINY_MAX_DIRECTIONS]; /* of the taps in what view() gives */
} Pool;

/* Of @n directions, or as many as the kernel has sizes. */
static gboolean
begin (TinyBuild *b, Pool *self, TinyNode **x, guint n, const Options *options)
{
  TinyWindows *windows = &self->windows;
  *self = (Pool){ .windows.n = options->n_kernel > 1 ? options->n_kernel : n };
  if (options->kernel == NULL || options->n_kernel == 0 || windows->n > TINY_MAX_DIRECTIONS)
    return tiny_build_fail (b, "a window of one size to %d wanted, %u given",
                            TINY_MAX_DIRECTIONS, options->n_kernel)
           != NULL;
  n = windows->n;
  if (!tiny_windows_take (b, "window", options->kernel, options->n_kernel, n, 1, 1,
                          windows->kernel))
    return FALSE;
  gboolean side_by_side = options->stride == NULL || options->n_stride == 0
                          || (options->n_stride == 1 && options->stride[0] == 0);
  memcpy (windows->stride, windows->kernel, sizeof windows->stride);
  if ((!side_by_side
       && !tiny_windows_take (b, "stride", options->stride, options->n_stride, n, 1, 1,
                              windows->stride))
      || !tiny_windows_take (b, "dilation", options->dilation, options->n_dilation, n, 1, 1,
                             windows->dilation)
      || !tiny_windows_take_padding (b, windows, options->padding, options->n_padding))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (MAX (windows->before[i], windows->after[i]) > windows->kernel[i] / 2)
      return tiny_build_fail (
                 b, "padding %" G_GINT64_FORMAT " is more than half of %" G_GINT64_FORMAT,
                 MAX (windows->before[i], windows->after[i]), windows->kernel[i])
             != NULL;
  return tiny_windows_take_image (b, windows, x, &self->has_batch)
         && tiny_windows_fit (b, windows, *x, options->ceil_mode);
}

/* Windows side by side, which are a reshape. */
static gboolean
is_tiling (const TinyWindows *windows)
{
  gboolean tiles = TRUE;
  for (guint i = 0; i < windows->n; i++)
    tiles = tiles && windows->stride[i] == windows->kernel[i] && windows->dilation[i] == 1
            && windows->before[i] == 0 && windows->after[i] == 0;
  return tiles;
}

/* x (B, S…, C) padded with @value, as windows with the taps on self->axes. */
static TinyNode *
view (TinyBuild *b, Pool *self, TinyNode *x, double value)
{
  const TinyWindows *windows = &self->windows;
  gint64 dims[32], pairs[16] = { 0 };
  guint n = windows->n, rank = 0;
  if (x == NULL)
    return NULL;
  dims[rank++] = x->shape->v[0];
  pairs[1] = x->shape->v[0];
  for (guint i = 0; i < n; i++) {
    dims[rank++] = is_tiling (windows) ? windows->out[i] : x->shape->v[1 + i];
    self->axes[i] = is_tiling (windows) ? 2 + 2 * i : 1 + n + i;
    if (is_tiling (windows))
      dims[rank++] = windows->kernel[i];
    pairs[2 + 2 * i + 1] = windows->out[i] * windows->kernel[i];
  }
  pairs[2 + 2 * n + 1] = dims[1 + 2 * n] = x->shape->v[1 + n];
  if (is_tiling (windows))
    return tiny_build_reshape (b, tiny_build_shrink (b, x, pairs), dims, 2 + 2 * n);
  for (guint i = 0; i < n; i++)
    dims[rank++] = 1;
  return tiny_windows_view (b, windows, tiny_build_reshape (b, x, dims, 2 + 2 * n), value);
}

/* What is left of windows, (B, S'…, C) and the taps' axes, as the user sees it. */
static TinyNode *
finish (TinyBuild *b, const Pool *self, TinyNode *x)
{
  x = tiny_windows_channels_second (b, tiny_build_squeeze (b, x, self->axes, self->windows.n));
  return self->has_batch ? x : tiny_build_squeeze (b, x, (gint64[]){ 0 }, 1);
}

static TinyNode *
nothing (TinyBuild *b, const Pool *self, TinyNode *x, TinyDType dtype)
{
  gint64 dims[TINY_MAX_DIRECTIONS + 2] = { x->shape->v[0], x->shape->v[1] };
  for (guint i = 0; i < self->windows.n; i++)
    dims[2 + i] = self->windows.out[i];
  guint skip = self->has_batch ? 0 : 1;
  TinyNode *zero = tiny_build_beside (b, tiny_build_number (b, dtype, 0), x);
  return tiny_node_broadcast (b->graph, zero, dims + skip, self->windows.n + 2 - skip);
}

/* The largest of @x over @axes, where of equals the first has the gradient: numbers that count down along the taps tell
 * which it is. */
static TinyNode *
largest_of (TinyBuild *b, TinyNode *x, const gint64 *axes, guint n)
{
  gint64 dims[32];
  TinyNode *largest = tiny_build_reduce (b, TINY_OP_MAX, x, axes, n);
  if (largest == NULL || !tiny_dtype_is_float (x->dtype))
    return largest;
  const gint64 count = tiny_build_count (x, axes, n);
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = 1;
  for (guint i = 0; i < n; i++)
    dims[axes[i]] = x->shape->v[axes[i]];
  TinyNode *left = tiny_build_iota (b, TINY_DTYPE_I32, count);
  left = tiny_build_sub (b, tiny_build_like (b, left, (double) count), left);
  left = tiny_build_reshape (b, left, dims, x->shape->n);
  TinyNode *is_largest = tiny_build_binary (b, TINY_OP_CMPEQ, x, largest);
  TinyNode *most = tiny_build_where (b, is_largest, left, tiny_build_like (b, left, 0));
  most = tiny_build_reduce (b, TINY_OP_MAX, most, axes, n);
  TinyNode *first = tiny_build_where (b, tiny_build_binary (b, TINY_OP_CMPEQ, left, most), x,
                                      tiny_build_like (b, x, 0));
  first = tiny_build_reduce (b, TINY_OP_ADD, first, axes, n);
  return tiny_build_sloped (b, largest, first, tiny_build_like (b, largest, 1));
}

static TinyNode *
max_pool (TinyBuild *b, TinyNode *x, guint n, const Options *options)
{
  Pool self;
  if (!begin (b, &self, &x, n, options))
    return NULL;
  if (tiny_build_is_empty (x))
    return nothing (b, &self, x, (TinyDType) x->dtype);
  x = view (b, &self, tiny_windows_channels_last (b, x), tiny_build_get_lowest (x));
  return finish (b, &self, largest_of (b, x, self.axes, self.windows.n));
}

/* Places in row-major order of the directions of @x (B, S…, C), as windows of its rank. */
static TinyNode *
places (TinyBuild *b, Pool *self, TinyNode *x)
{
  gint64 dims[TINY_MAX_DIRECTIONS + 2] = { 1 }, count = 1;
  guint n = self->windows.n;
  for (guint i = 0; i < n; i++)
    count *= dims[1 + i] = x->shape->v[1 + i];
  dims[1 + n] = 1;
  TinyNode *place = tiny_build_iota (b, TINY_DTYPE_I64, count);
  return view (b, self, tiny_build_reshape (b, place, dims, n + 2), 0);
}

/* Of equals in a window the first, whose place is the least: the most negative one is largest. */
static void
max_pool_with_places (
    TinyBuild *b, TinyNode *x, guint n, const Options *options, TinyNode **out)
{
  Pool self;
  if (!begin (b, &self, &x, n, options))
    return;
  if (tiny_build_is_empty (x)) {
    out[0] = nothing (b, &self, x, (TinyDType) x->dtype);
    out[1] = nothing (b, &self, x, TINY_DTYPE_I64);
    return;
  }
  n = self.windows.n;
  x = tiny_windows_channels_last (b, x);
  TinyNode *windows = view (b, &self, x, tiny_build_get_lowest (x));
  TinyNode *largest = largest_of (b, windows, self.axes, n);
  TinyNode *is_largest = tiny_build_binary (b, TINY_OP_CMPEQ, windows, largest);
  /* Padding may be as low as an element; it is no place. */
  TinyNode *inside = tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_BOOL, 1),
                                          (gint64[]){ 1, 1, 1, 1, 1, 1, 1 }, n + 2);
  gint64 dims[TINY_MAX_DIRECTIONS + 2] = { 1 };
  for (guint i = 0; i < n; i++)
    dims[1 + i] = x->shape->v[1 + i];
  dims[1 + n] = 1;
  inside = view (b, &self, tiny_build_expand (b, inside, dims, n + 2), 0);
  is_largest = tiny_build_binary (b, TINY_OP_AND, is_largest, inside);
  TinyNode *place = op_neg (b, places (b, &self, x));
  TinyNode *found
      = tiny_build_where (b, is_largest, place, tiny_build_number (b, TINY_DTYPE_I64, -9e15));
  found = op_neg (b, tiny_build_reduce (b, TINY_OP_MAX, found, self.axes, n));
  out[0] = finish (b, &self, largest);
  out[1] = finish (b, &self, found);
}

#define MAX_POOL(n)                                                                            \
  TinyNode *op_max_pool##n##d (TinyBuild *b, TinyNode *self, const gint64 *kernel_size,        \
                               guint n_kernel_size, const gint64 *stride, guint n_stride,      \
                               const gint64 *padding, guint n_padding, const gint64 *dilation, \
                               guint n_dilation, gboolean ceil_mode)                           \
  {                                                                                            \
    const Options options = { kernel_size, stride,    padding,    dilation, n_kernel_size,     \
                              n_stride,    n_padding, n_dilation, ceil_mode };                 \
    return max_pool (b, self, n, &options);                                                    \
  }                                                                                            \
  void op_max_pool##n##d_with_indices (                                                        \
      TinyBuild *b, TinyNode *self, const gint64 *kernel_size, guint n_kernel_size,            \
      const gint64 *stride, guint n_stride, const gint64 *padding, guint n_padding,            \
      const gint64 *dilation, guint n_dilation, gboolean ceil_mode, TinyNode **out)            \
  {                                                                                            \
    const Options options = { kernel_size, stride,    padding,    dilation, n_kernel_size,     \
                              n_stride,    n_padding, n_dilation, ceil_mode };                 \
    max_pool_with_places (b, self, n, &options, out);                                          \
  }

MAX_POOL (1)
MAX_POOL (2)
MAX_POOL (3)

/* x (…, P) and the places of its elements (…, P): the sum of those whose place is q, (…, Q). */
static TinyNode *
put (TinyBuild *b, TinyNode *x, TinyNode *indices, gint64 n_places)
{
  TinyNode *place = tiny_build_iota (b, TINY_DTYPE_I64, n_places);
  place = tiny_build_reshape (b, place, (gint64[]){ n_places, 1 }, 2);
  guint axis = x->shape->n - 1;
  TinyNode *is_here
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, indices, axis), place);
  TinyNode *here = tiny_build_where (b, is_here, tiny_build_unsqueeze (b, x, axis),
                                     tiny_build_like (b, x, 0));
  gint64 last[] = { axis + 1 };
  return tiny_build_squeeze (b, tiny_build_reduce (b, TINY_OP_ADD, here, last, 1), last, 1);
}

TinyNode *
op_max_unpool2d (TinyBuild *b,
                 TinyNode *self,
                 TinyNode *indices,
                 const gint64 *kernel_size,
                 guint n_kernel_size,
                 const gint64 *stride,
                 guint n_stride,
                 const gint64 *padding,
                 guint n_padding,
                 const gint64 *output_size,
                 guint n_output_size)
{
  gint64 kernel[2], step[2], around[2], dims[TINY_MAX_RANK];
  guint rank = self->shape->n, lead = rank - 2;
  if (!tiny_dtype_is_integer (indices->dtype) || !tiny_shape_equal (indices->shape, self->shape)
      || rank < 3 || rank > 4)
    return tiny_build_fail (
        b, "takes (B, C, Y, X) or (C, Y, X) and as many places, which are integers");
  if (!tiny_windows_take (b, "window", kernel_size, n_kernel_size, 2, 1, 1, kernel)
      || !tiny_windows_take (b, "padding", padding, n_padding, 2, 0, 0, around))
    return NULL;
  if (stride == NULL || n_stride == 0)
    memcpy (step, kernel, sizeof step);
  else if (!tiny_windows_take (b, "stride", stride, n_stride, 2, 1, 1, step))
    return NULL;
  if (output_size != NULL && n_output_size != 0 && n_output_size != 2 && n_output_size != rank)
    return tiny_build_fail (b, "the output has 2 sizes, not %u", n_output_size);
  for (guint i = 0; i < rank; i++)
    dims[i] = self->shape->v[i];
  for (guint i = 0; i < 2; i++)
    dims[lead + i]
        = output_size != NULL && n_output_size > 0
              ? output_size[n_output_size - 2 + i]
              : (MIN (dims[lead + i], 1 << 24) - 1) * step[i] - 2 * around[i] + kernel[i];
  if (!tiny_build_check_shape (b, dims, rank))
    return NULL;
  if (tiny_build_is_empty (self) || dims[lead] * dims[lead + 1] == 0)
    return tiny_node_broadcast (
        b->graph, tiny_build_beside (b, tiny_build_like (b, self, 0), self), dims, rank);
  g_autofree char *wanted
      = g_strdup_printf ("places are from 0 to below %" G_GINT64_FORMAT ", those of the output",
                         dims[lead] * dims[lead + 1]);
  if (!tiny_build_check_all (b, tiny_build_is_inside (b, indices, dims[lead] * dims[lead + 1]),
                             wanted))
    return NULL;
  gint64 flat[3];
  memcpy (flat, self->shape->v, lead * sizeof *flat);
  flat[lead] = self->shape->v[lead] * self->shape->v[lead + 1];
  return tiny_build_reshape (b,
                             put (b, tiny_build_reshape (b, self, flat, lead + 1),
                                  tiny_build_reshape (b, indices, flat, lead + 1),
                                  dims[lead] * dims[lead + 1]),
                             dims, rank);
}

/* ---- the mean ---- */

/* How many of a window's elements count along direction @i, as (1…, S', 1…) of rank n + 2: those of
 * the image, and of the padding that was asked for when @includes. At least 1, so that a window that
 * is all padding has mean 0. */
static TinyNode *
counted (TinyBuild *b, const Pool *self, guint i, gint64 size, gint64 after, gboolean includes)
{
  const TinyWindows *windows = &self->windows;
  gint64 dims[TINY_MAX_DIRECTIONS + 2] = { 1, 1, 1, 1, 1, 1, 1 };
  double least = includes ? (double) -windows->before[i] : 0;
  double most = (double) (size + (includes ? after : 0));
  TinyNode *begin = tiny_build_iota (b, TINY_DTYPE_I64, windows->out[i]);
  begin = tiny_build_mul (b, begin, tiny_build_like (b, begin, (double) windows->stride[i]));
  begin = tiny_build_sub (b, begin, tiny_build_like (b, begin, (double) windows->before[i]));
  TinyNode *end
      = tiny_build_add (b, begin, tiny_build_like (b, begin, (double) windows->kernel[i]));
  TinyNode *n = tiny_build_sub (b, op_minimum (b, end, tiny_build_like (b, end, most)),
                                op_maximum (b, begin, tiny_build_like (b, begin, least)));
  n = op_maximum (b, n, tiny_build_like (b, n, 1));
  dims[1 + i] = windows->out[i];
  return tiny_build_reshape (b, n, dims, windows->n + 2);
}

static TinyNode *
avg_pool (TinyBuild *b,
          TinyNode *x,
          guint n,
          const Options *options,
          gboolean includes,
          gint64 divisor)
{
  Pool self;
  gint64 after[TINY_MAX_DIRECTIONS];
  if (divisor < 0)
    return tiny_build_fail (b, "the divisor %" G_GINT64_FORMAT " is negative", divisor);
  if (!begin (b, &self, &x, n, options))
    return NULL;
  x = tiny_build_float (b, x);
  if (tiny_build_is_empty (x))
    return nothing (b, &self, x, (TinyDType) x->dtype);
  const TinyWindows *windows = &self.windows;
  gboolean varies = FALSE; /* how many are counted */
  n = windows->n;
  for (guint i = 0; i < n; i++) {
    after[i] = windows->before[i];
    if (options->padding != NULL && options->n_padding == 2 * n)
      after[i] = options->padding[2 * (n - 1 - i) + 1];
    varies = varies || windows->after[i] != after[i]
             || (!includes && (after[i] > 0 || windows->before[i] > 0));
  }
  TinyNode *image = tiny_windows_channels_last (b, x);
  x = view (b, &self, image, 0);
  if (x == NULL)
    return NULL;
  if (!varies && divisor == 0)
    return finish (b, &self, tiny_build_mean (b, x, self.axes, n));
  TinyDType dtype = (TinyDType) x->dtype;
  TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
  x = tiny_build_sum (b, tiny_build_cast (b, x, wide), self.axes, n);
  if (divisor > 0) {
    x = tiny_build_mul (b, x, tiny_build_like (b, x, 1.0 / (double) divisor));
    return tiny_build_cast (b, finish (b, &self, x), dtype);
  }
  x = tiny_build_squeeze (b, x, self.axes, n);
  for (guint i = 0; i < n; i++)
    x = tiny_build_div (b, x,
                        counted (b, &self, i, image->shape->v[1 + i], after[i], includes));
  x = tiny_windows_channels_second (b, tiny_build_cast (b, x, dtype));
  return self.has_batch ? x : tiny_build_squeeze (b, x, (gint64[]){ 0 }, 1);
}

#define AVG_POOL(n)                                                                            \
  TinyNode *op_avg_pool##n##d (TinyBuild *b, TinyNode *self, const gint64 *kernel_size,        \
                               guint n_kernel_size, const gint64 *stride, guint n_stride,      \
                               const gint64 *padding, guint n_padding, gboolean ceil_mode,     \
                               gboolean count_include_pad, gint64 divisor_override)            \
  {                                                                                            \
    const Options options = { .kernel = kernel_size,                                           \
                              .stride = stride,                                                \
                              .padding = padding,                                              \
                              .n_kernel = n_kernel_size,                                       \
                              .n_stride = n_stride,                                            \
                              .n_padding = n_padding,                                          \
                              .ceil_mode = ceil_mode };                                        \
    return avg_pool (b, self, n, &options, count_include_pad, divisor_override);               \
  }

AVG_POOL (1)
AVG_POOL (2)
AVG_POOL (3)

/* ---- to a size ---- */

/* i size / out, rounded down, for @first and 0 … out-1, as a column. */
static TinyNode *
bound (TinyBuild *b, gint64 size, gint64 out, gint64 first, gint64 round_up)
{
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I64, out);
  at = tiny_build_add (b, at, tiny_build_like (b, at, (double) first));
  at = tiny_build_mul (b, at, tiny_build_like (b, at, (double) size));
  at = tiny_build_add (b, at, tiny_build_like (b, at, (double) round_up));
  at = tiny_build_binary (b, TINY_OP_IDIV, at, tiny_build_like (b, at, (double) out));
  return tiny_build_reshape (b, at, (gint64[]){ out, 1 }, 2);
}

/* x with axis @axis of @out parts that share what does not divide: part i is of elements
 * floor (i size / out) up to before ceil ((i + 1) size / out). */
static TinyNode *
adapt (TinyBuild *b, TinyNode *x, guint axis, gint64 out, gboolean largest)
{
  gint64 dims[TINY_MAX_RANK + 1], size = x->shape->v[axis];
  guint rank = x->shape->n;
  for (guint i = 0; i <= rank; i++)
    dims[i] = i < axis ? x->shape->v[i] : i > axis + 1 ? x->shape->v[i - 1] : 1;
  gint64 inner[] = { axis + 1 };
  dims[axis] = size % out == 0 ? out : 1;
  dims[axis + 1] = size / dims[axis];
  x = tiny_build_reshape (b, x, dims, rank + 1);
  if (size % out == 0) {
    x = largest ? largest_of (b, x, inner, 1) : tiny_build_mean (b, x, inner, 1);
    return tiny_build_squeeze (b, x, inner, 1);
  }
  TinyNode *begin = bound (b, size, out, 0, 0), *end = bound (b, size, out, 1, out - 1);
  TinyNode *place = tiny_build_iota (b, TINY_DTYPE_I64, size);
  TinyNode *is_part = tiny_build_binary (b, TINY_OP_AND, op_le (b, begin, place),
                                         tiny_build_binary (b, TINY_OP_CMPLT, place, end));
  gint64 shape[TINY_MAX_RANK + 1];
  for (guint i = 0; i <= rank; i++)
    shape[i] = i == axis ? out : i == axis + 1 ? size : 1;
  is_part = tiny_build_reshape (b, is_part, shape, rank + 1);
  shape[axis + 1] = 1;
  x = tiny_build_where (b, is_part, x,
                        tiny_build_like (b, x, largest ? tiny_build_get_lowest (x) : 0));
  if (x == NULL) /* too many elements */
    return NULL;
  if (largest)
    return tiny_build_squeeze (b, largest_of (b, x, inner, 1), inner, 1);
  TinyNode *n = tiny_build_reshape (b, tiny_build_sub (b, end, begin), shape, rank + 1);
  TinyDType dtype = (TinyDType) x->dtype;
  x = tiny_build_sum (b, x, inner, 1);
  x = tiny_build_div (b, x, tiny_build_cast (b, n, dtype));
  return tiny_build_squeeze (b, x, inner, 1);
}

static TinyNode *
adaptive (TinyBuild *b,
          TinyNode *x,
          guint n,
          const gint64 *output_size,
          guint n_output_size,
          gboolean largest)
{
  Pool self = { .windows.n = n };
  gint64 out[TINY_MAX_DIRECTIONS];
  if (!tiny_windows_take (b, "output size", output_size, n_output_size, n, 1, 0, out)
      || !tiny_windows_take_image (b, &self.windows, &x, &self.has_batch))
    return NULL;
  for (guint i = 0; i < n; i++)
    if (x->shape->v[2 + i] == 0)
      return tiny_build_fail (b, "there is nothing in an image of size 0");
  memcpy (self.windows.out, out, sizeof out);
  if (tiny_build_is_empty (x))
    return nothing (b, &self, x, (TinyDType) x->dtype);
  for (guint i = n; i-- > 0 && x != NULL;) /* the first of equals is so in row-major order */
    x = adapt (b, x, 2 + i, out[i], largest);
  return self.has_batch ? x : tiny_build_squeeze (b, x, (gint64[]){ 0 }, 1);
}

#define ADAPTIVE(n)                                                                            \
  TinyNode *op_adaptive_avg_pool##n##d (TinyBuild *b, TinyNode *self,                          \
                                        const gint64 *output_size, guint n_output_size)        \
  {                                                                                            \
    return adaptive (b, tiny_build_float (b, self), n, output_size, n_output_size, FALSE);     \
  }                                                                                            \
  TinyNode *op_adaptive_max_pool##n##d (TinyBuild *b, TinyNode *self,                          \
                                        const gint64 *output_size, guint n_output_size)        \
  {                                                                                            \
    return adaptive (b, self, n, output_size, n_output_size, TRUE);                            \
  }

ADAPTIVE (1)
ADAPTIVE (2)
ADAPTIVE (3)
