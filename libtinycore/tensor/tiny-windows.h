/* SPDX-License-Identifier: MIT
 *
 * tiny-windows.h: windows that move over the last axes of a tensor.
 *
 * Users see (B, C, S…); inside, channels come last, which is how results are stored. Windows are
 * views: a new axis for the tap is repeated and sheared, so that position p and tap k read element
 * p * stride + k * dilation - before. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

enum {
  TINY_MAX_DIRECTIONS = 5 /* with two axes for each, a batch, and channels in three parts */
};

typedef struct {
  guint n; /* directions */
  gint64 kernel[TINY_MAX_DIRECTIONS], stride[TINY_MAX_DIRECTIONS],
      dilation[TINY_MAX_DIRECTIONS];
  gint64 before[TINY_MAX_DIRECTIONS], after[TINY_MAX_DIRECTIONS]; /* padding */
  gint64 out[TINY_MAX_DIRECTIONS];                                /* positions */
} TinyWindows;

/* One number for all of @n, or one each; without any, @otherwise. Each is from @least to 2²⁴. */
gboolean tiny_windows_take (TinyBuild *b,
                            const char *what,
                            const gint64 *given,
                            guint n_given,
                            guint n,
                            gint64 least,
                            gint64 otherwise,
                            gint64 *out);
/* As tiny_windows_take(), or two for each, the last direction's before and after coming first. */
gboolean
tiny_windows_take_padding (TinyBuild *b, TinyWindows *self, const gint64 *given, guint n_given);
/* That @x is (B, C, S…) or (C, S…) of as many directions; the latter gets a batch of 1. */
gboolean
tiny_windows_take_image (TinyBuild *b, const TinyWindows *self, TinyNode **x, gboolean *batch);
/* Counts positions: of those that begin inside when @ceil_mode, for which padding is added. */
gboolean tiny_windows_fit (TinyBuild *b, TinyWindows *self, TinyNode *x, gboolean ceil_mode);
/* (B, C, S…) as (B, S…, C), and back. */
TinyNode *tiny_windows_channels_last (TinyBuild *b, TinyNode *x);
TinyNode *tiny_windows_channels_second (TinyBuild *b, TinyNode *x);
/* (B, S…, 1…, R…), with the directions from axis 1 and as many axes of size 1 after them, padded
 * with @value and as (B, S'…, K…, R…). */
TinyNode *tiny_windows_view (TinyBuild *b, const TinyWindows *self, TinyNode *x, double value);

G_END_DECLS
