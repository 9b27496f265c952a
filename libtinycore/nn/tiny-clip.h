/* SPDX-License-Identifier: MIT
 *
 * tiny-clip.h: limits for gradients, between backward and the optimiser's step. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_clip_grad_norm:
 * @parameters: (array length=n): tensors with gradients
 * @n: how many
 * @max_norm: how large all gradients together may be
 * @norm: which norm: 2, 1, infinity, or another number above 0
 *
 * Scales all gradients by @max_norm / (their norm + 1e-6) where that is below 1. Nothing runs.
 *
 * Returns: (transfer floating): the norm before, of shape (); it carries what is wrong, in which case nothing is
 *   scaled
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_clip_grad_norm (TinyTensor *const *parameters, guint n, double max_norm, double norm);

/**
 * tiny_clip_grad_value:
 * @parameters: (array length=n): tensors with gradients
 * @n: how many
 * @value: how large an element of a gradient may be
 * @error: return location
 *
 * Moves elements of gradients to -@value … @value. Nothing runs.
 *
 * Errors: %TINY_ERROR_INVALID when @value is negative or not a number.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_clip_grad_value (TinyTensor *const *parameters,
                                        guint n,
                                        double value,
                                        GError **error);

G_END_DECLS
