/* SPDX-License-Identifier: MIT
 *
 * tensor-conv.c: convolutions in any number of directions, and their adjoints.
 *
 * A convolution is the product of windows (tiny-windows.h) and weights and its sum over taps and
 * channels. Its adjoint reads, for position q and tap k, what a window at
 * p = (q + before - k * dilation) / stride would have read there, where that p is one. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-windows.h"

/* Sizes by letter: batch B, groups G, channels I into and O out of each group. */
typedef struct {
  TinyWindows windows;
  TinyDType dtype, wide; /* of the result, and what is added up in */
  gint64 batch, groups, in, out;
  gboolean has_batch; /* the user's image has an axis for it */
} Convolution;

static gint64
get_n_elements (const TinyNode *x)
{
  return tiny_shape_get_n_elements (x->shape);
}

/* What is the same of both kinds: a weight (W0, W1, K…), where W0 or W1 is I of all groups. */
static gboolean
begin (TinyBuild *b,
       Convolution *self,
       TinyNode **x,
       TinyNode *w,
       TinyNode *bias,
       gboolean transposed)
{
  TinyWindows *windows = &self->windows;
  g_autofree char *x_text = tiny_shape_to_string ((*x)->shape);
  g_autofree char *w_text = tiny_shape_to_string (w->shape);
  for (guint i = 0; i < windows->n; i++) {
    windows->kernel[i] = w->shape->v[2 + i];
    if (windows->kernel[i] < 1 || windows->kernel[i] > 1 << 24)
      return tiny_build_fail (b, "a weight of shape %s has no window", w_text) != NULL;
  }
  if (!tiny_windows_take_image (b, windows, x, &self->has_batch))
    return FALSE;
  gint64 first = w->shape->v[0], second = w->shape->v[1], channels = (*x)->shape->v[1];
  gint64 grouped = transposed ? channels : first;
  if (self->groups < 1 || self->groups > MAX (grouped, 1) || first % self->groups != 0
      || channels % self->groups != 0
      || (transposed ? channels != first : channels / self->groups != second))
    return tiny_build_fail (b,
                            "channels of %s and %s do not fit for %" G_GINT64_FORMAT " groups",
                            x_text, w_text, self->groups)
           != NULL;
  self->batch = (*x)->shape->v[0];
  self->in = channels / self->groups;
  self->out = transposed ? second : first / self->groups;
  self->dtype = tiny_dtype_promote ((TinyDType) (*x)->dtype, (TinyDType) w->dtype);
  self->wide = tiny_dtype_is_float (self->dtype) && tiny_dtype_get_n_bytes (self->dtype) < 4
                   ? TINY_DTYPE_F32
                   : self->dtype;
  gint64 n_out = self->out * self->groups;
  if (bias != NULL && (bias->shape->n != 1 || bias->shape->v[0] != n_out)) {
    g_autofree char *text = tiny_shape_to_string (bias->shape);
    tiny_build_fail (b, "a bias is (O) = (%" G_GINT64_FORMAT ",), not %s", n_out, text);
  }
  return b->error == NULL;
}

/* Axes first, S…, K…, then last: how many there are. */
static guint
join (gint64 *dims, gint64 first, const gint64 *s, const gint64 *k, guint n, const gint64 *last)
{
  guint rank = 0;
  dims[rank++] = first;
  for (guint i = 0; i < n; i++)
    dims[rank++] = s != NULL ? s[i] : 1;
  for (guint i = 0; i < n; i++)
    dims[rank++] = k != NULL ? k[i] : 1;
  for (guint i = 0; i < 3; i++)
    dims[rank++] = last[i];
  return rank;
}

/* x (B, C, S…) as (B, S…, 1…, I, G, 1) */
static TinyNode *
split_image (TinyBuild *b, const Convolution *self, TinyNode *x)
{
  guint n = self->windows.n, rank = 0;
  gint64 dims[32];
  x = tiny_windows_channels_last (b, tiny_build_cast (b, x, self->wide));
  if (x == NULL)
    return NULL;
  dims[rank++] = self->batch;
  for (guint i = 0; i < n; i++)
    dims[rank++] = x->shape->v[1 + i];
  const gint64 *sizes = x->shape->v + 1;
  dims[rank++] = self->groups;
  dims[rank++] = self->in;
  x = tiny_build_transpose (b, tiny_build_reshape (b, x, dims, rank), rank - 2, rank - 1);
  rank = join (dims, self->batch, sizes, NULL, n, (gint64[]){ self->in, self->groups, 1 });
  return tiny_build_reshape (b, x, dims, rank);
}

/* The sum of @x (B, S…, K…, I, G, 1) times @w (1, 1…, K…, I, G, O) over K… and I, as (B, C, S…). Where nothing is to
 * be added up they may have any shape. */
static TinyNode *
finish (TinyBuild *b,
        const Convolution *self,
        TinyNode *x,
        TinyNode *w,
        TinyNode *bias,
        gint64 *out)
{
  guint n = self->windows.n, rank = 0;
  gint64 dims[32], axes[TINY_MAX_DIRECTIONS + 1];
  gboolean is_none = self->batch == 0;
  if (x == NULL || w == NULL)
    return NULL;
  for (guint i = 0; i <= n; i++)
    axes[i] = 1 + n + i;
  for (guint i = 0; i < n; i++)
    is_none = is_none || out[i] == 0;
  dims[rank++] = self->batch;
  for (guint i = 0; i < n; i++)
    dims[rank++] = out[i];
  dims[rank++] = self->groups * self->out;
  TinyNode *sum;
  if (is_none || get_n_elements (x) == 0 || get_n_elements (w) == 0)
    sum = tiny_node_broadcast (
        b->graph,
        tiny_build_beside (b, tiny_build_beside (b, tiny_build_number (b, self->dtype, 0), x),
                           w),
        dims, rank);
  else
    sum = tiny_build_reshape (b, tiny_build_sum (b, tiny_build_mul (b, x, w), axes, n + 1),
                              dims, rank);
  sum = tiny_build_cast (b, sum, self->dtype);
  if (bias != NULL)
    sum = tiny_build_add (b, sum, bias);
  sum = tiny_windows_channels_second (b, sum);
  return self->has_batch ? sum : tiny_build_squeeze (b, sum, (gint64[]){ 0 }, 1);
}

/* ---- convolution ---- */

/* w (O of all groups, I, K…) stored as (K…, I, O), which is what the inner loop reads in order. */
static TinyNode *
conv_weight (TinyBuild *b, const Convolution *self, TinyNode *w)
{
  guint n = self->windows.n;
  gint64 axes[TINY_MAX_DIRECTIONS + 2], dims[32];
  for (guint i = 0; i < n; i++)
    axes[i] = 2 + i;
  axes[n] = 1;
  axes[n + 1] = 0;
  w = tiny_build_permute (b, tiny_build_cast (b, w, self->wide), axes, n + 2);
  w = tiny_build_store (b, w);
  guint rank = join (dims, 1, NULL, self->windows.kernel, n,
                     (gint64[]){ self->in, self->groups, self->out });
  return tiny_build_reshape (b, w, dims, rank);
}

typedef struct {
  const gint64 *stride, *padding, *dilation;
  guint n_stride, n_padding, n_dilation;
  gint64 groups;
} Options;

static gboolean
take_options (TinyBuild *b, Convolution *self, TinyNode *w, guint n, const Options *options)
{
  if (n == 0)
    n = w->shape->n >= 3 && w->shape->n <= TINY_MAX_DIRECTIONS + 2 ? w->shape->n - 2 : 0;
  if (n == 0 || w->shape->n != n + 2) {
    g_autofree char *text = tiny_shape_to_string (w->shape);
    tiny_build_fail (b, "a weight of %u directions has two axes more, not %s", MAX (n, 1),
                     text);
    return FALSE;
  }
  *self = (Convolution){ .windows.n = n, .groups = options->groups };
  return tiny_windows_take (b, "stride", options->stride, options->n_stride, n, 1, 1,
                            self->windows.stride)
         && tiny_windows_take (b, "dilation", options->dilation, options->n_dilation, n, 1, 1,
                               self->windows.dilation)
         && tiny_windows_take_padding (b, &self->windows, options->padding, options->n_padding);
}

/* @n directions; 0: those of the weight. */
static TinyNode *
convolve (
    TinyBuild *b, TinyNode *x, TinyNode *w, TinyNode *bias, guint n, const Options *options)
{
  Convolution self;
  if (!take_options (b, &self, w, n, options) || !begin (b, &self, &x, w, bias, FALSE)
      || !tiny_windows_fit (b, &self.windows, x, FALSE))
    return NULL;
  if (get_n_elements (x) == 0 || get_n_elements (w) == 0)
    return finish (b, &self, x, w, bias, self.windows.out);
  x = tiny_windows_view (b, &self.windows, split_image (b, &self, x), 0);
  return finish (b, &self, x, conv_weight (b, &self, w), bias, self.windows.out);
}

#define CONVOLUTION(name, n)                                                                   \
  TinyNode *op_##name (TinyBuild *b, TinyNode *self, TinyNode *weight, TinyNode *bias,         \
                       const gint64 *stride, guint n_stride, const gint64 *padding,            \
                       guint n_padding, const gint64 *dilation, guint n_dilation,              \
                       gint64 groups)                                                          \
  {                                                                                            \
    const Options options                                                                      \
        = { stride, padding, dilation, n_stride, n_padding, n_dilation, groups };              \
    return convolve (b, self, weight, bias, n, &options);                                      \
  }

CONVOLUTION (conv1d, 1)
CONVOLUTION (conv2d, 0)
CONVOLUTION (conv3d, 3)

/* ---- its adjoint ---- */

/* w (I of all groups, O, K…) as (1, 1…, K…, I, G, O), stored so. */
static TinyNode *
transposed_weight (TinyBuild *b, const Convolution *self, TinyNode *w)
{
  guint n = self->windows.n;
  gint64 axes[TINY_MAX_DIRECTIONS + 3], dims[32] = { self->groups, self->in, self->out };
  for (guint i = 0; i < n; i++) {
    dims[3 + i] = self->windows.kernel[i];
    axes[i] = 3 + i;
  }
  axes[n] = 1;
  axes[n + 1] = 0;
  axes[n + 2] = 2;
  w = tiny_build_reshape (b, tiny_build_cast (b, w, self->wide), dims, n + 3);
  w = tiny_build_permute (b, w, axes, n + 3);
  w = tiny_build_store (b, w);
  guint rank = join (dims, 1, NULL, self->windows.kernel, n,
                     (gint64[]){ self->in, self->groups, self->out });
  return tiny_build_reshape (b, w, dims, rank);
}

/* How many positions there are: out = (size - 1) stride - before - after + width + more. */
static gboolean
count_positions (TinyBuild *b, Convolution *self, TinyNode *x, const gint64 *more, gint64 *out)
{
  const TinyWindows *windows = &self->windows;
  for (guint i = 0; i < windows->n; i++) {
    gint64 size = x->shape->v[2 + i];
    if (more[i] >= MAX (windows->stride[i], windows->dilation[i])) {
      tiny_build_fail (b, "output padding %" G_GINT64_FORMAT " is not below stride or dilation",
                       more[i]);
      return FALSE;
    }
    out[i] = size > 1 << 24
                 ? -1
                 : (size - 1) * windows->stride[i] - windows->before[i] - windows->after[i]
                       + windows->dilation[i] * (windows->kernel[i] - 1) + more[i] + 1;
    if (out[i] < 0) {
      g_autofree char *text = tiny_shape_to_string (x->shape);
      tiny_build_fail (b, "padding leaves nothing of %s", text);
      return FALSE;
    }
  }
  return TRUE;
}

static TinyNode *
convolve_transposed (TinyBuild *b,
                     TinyNode *x,
                     TinyNode *w,
                     TinyNode *bias,
                     guint n,
                     const Options *options,
                     const gint64 *output_padding,
                     guint n_output_padding)
{
  Convolution self;
  const TinyWindows *windows = &self.windows;
  gint64 more[TINY_MAX_DIRECTIONS], out[TINY_MAX_DIRECTIONS], dims[32];
  if (!take_options (b, &self, w, n, options)
      || !tiny_windows_take (b, "output padding", output_padding, n_output_padding, windows->n,
                             0, 0, more)
      || !begin (b, &self, &x, w, bias, TRUE) || !count_positions (b, &self, x, more, out))
    return NULL;
  n = windows->n;
  gint64 n_out = self.batch;
  for (guint i = 0; i < n; i++)
    n_out *= MIN (out[i], 1);
  if (get_n_elements (x) == 0 || get_n_elements (w) == 0 || n_out == 0)
    return finish (b, &self, x, w, bias, out);
  const gint64 *sizes = x->shape->v + 2;
  x = split_image (b, &self, x);
  guint rank = join (dims, self.batch, sizes, windows->kernel, n,
                     (gint64[]){ self.in, self.groups, 1 });
  x = tiny_build_check_shape (b, dims, MIN (rank, TINY_MAX_RANK))
          ? tiny_build_expand (b, x, dims, rank)
          : NULL;
  for (guint i = 0; i < n && x != NULL; i++)
    x = tiny_node_shear (b->graph, x, 1 + i, 1 + n + i, 1, -windows->dilation[i],
                         windows->before[i], windows->stride[i], out[i]);
  return x == NULL ? NULL : finish (b, &self, x, transposed_weight (b, &self, w), bias, out);
}

#define TRANSPOSED(name, n)                                                                    \
  TinyNode *op_##name (TinyBuild *b, TinyNode *self, TinyNode *weight, TinyNode *bias,         \
                       const gint64 *stride, guint n_stride, const gint64 *padding,            \
                       guint n_padding, const gint64 *output_padding, guint n_output_padding,  \
                       gint64 groups, const gint64 *dilation, guint n_dilation)                \
  {                                                                                            \
    const Options options                                                                      \
        = { stride, padding, dilation, n_stride, n_padding, n_dilation, groups };              \
    return convolve_transposed (b, self, weight, bias, n, &options, output_padding,            \
                                n_output_padding);                                             \
  }

TRANSPOSED (conv_transpose1d, 1)
TRANSPOSED (conv_transpose2d, 0)
TRANSPOSED (conv_transpose3d, 3)
