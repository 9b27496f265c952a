/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-shape.h: movement and indexing: none of these copies.
 *
 * Axes may be negative: -1 is the last. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_tensor_reshape:
 * @self: a tensor
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 *
 * The elements in row-major order in another shape; one size may be -1 and follows from the others.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_reshape (TinyTensor *self, const gint64 *shape, guint n_dims);

/**
 * tiny_tensor_permute:
 * @self: a tensor
 * @axes: (array length=n_axes): a permutation
 * @n_axes: @self's number of axes
 *
 * Axis @axes[i] becomes axis i.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_permute (TinyTensor *self, const gint *axes, guint n_axes);

/**
 * tiny_tensor_transpose:
 * @self: a tensor
 * @a: an axis
 * @b: another
 *
 * Axes @a and @b exchanged.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_transpose (TinyTensor *self, gint a, gint b);

/**
 * tiny_tensor_expand:
 * @self: a tensor
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 *
 * @self broadcast to @shape; -1 keeps a size.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_expand (TinyTensor *self, const gint64 *shape, guint n_dims);

/**
 * tiny_tensor_pad:
 * @self: a tensor
 * @pairs: (array length=n_pairs): before and after of each axis; negative ones cut off
 * @n_pairs: twice @self's number of axes
 * @value: what to pad with
 *
 * @self with @value around it.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_pad (TinyTensor *self, const gint64 *pairs, guint n_pairs, double value);

/**
 * tiny_tensor_shrink:
 * @self: a tensor
 * @pairs: (array length=n_pairs): begin and end of each axis
 * @n_pairs: twice @self's number of axes
 *
 * The part of @self from begin up to before end.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_shrink (TinyTensor *self, const gint64 *pairs, guint n_pairs);

/**
 * tiny_tensor_flip:
 * @self: a tensor
 * @axes: (array length=n_axes): axes
 * @n_axes: how many
 *
 * @self with @axes reversed.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_flip (TinyTensor *self, const gint *axes, guint n_axes);

/**
 * tiny_tensor_squeeze:
 * @self: a tensor
 * @axis: an axis of size 1
 *
 * @self without @axis.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_squeeze (TinyTensor *self, gint axis);

/**
 * tiny_tensor_unsqueeze:
 * @self: a tensor
 * @axis: where, from -rank-1 to rank
 *
 * @self with a new axis of size 1 at @axis.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_unsqueeze (TinyTensor *self, gint axis);

/**
 * tiny_tensor_flatten:
 * @self: a tensor
 * @start: the first axis
 * @end: the last axis
 *
 * Axes @start to @end made one.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_flatten (TinyTensor *self, gint start, gint end);

/**
 * tiny_tensor_slice:
 * @self: a tensor
 * @axis: an axis
 * @start: where to start
 * @stop: where to stop, not included
 * @step: not 0
 *
 * The part of @self along @axis that Python's start:stop:step takes: negative positions count from the end,
 * those outside are moved inside. Use %TINY_SLICE_END and %TINY_SLICE_BEGIN for an open stop.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_slice (TinyTensor *self, gint axis, gint64 start, gint64 stop, gint64 step);

/**
 * tiny_tensor_repeat:
 * @self: a tensor
 * @repeats: (array length=n_repeats): how often, for each axis
 * @n_repeats: at least @self's number of axes
 *
 * @self laid side by side @repeats times.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_repeat (TinyTensor *self, const gint64 *repeats, guint n_repeats);

/**
 * tiny_tensor_cat:
 * @tensors: (array length=n): tensors equal in all sizes but @axis
 * @n: at least 1
 * @axis: an axis
 *
 * The tensors one after the other along @axis.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_cat (TinyTensor *const *tensors, guint n, gint axis);

/**
 * tiny_tensor_stack:
 * @tensors: (array length=n): tensors of equal shape
 * @n: at least 1
 * @axis: where the new axis goes
 *
 * The tensors side by side along a new axis.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_stack (TinyTensor *const *tensors, guint n, gint axis);

/**
 * tiny_tensor_one_hot:
 * @self: integers
 * @n_classes: how many classes
 *
 * A new last axis that is 1 at the position the label says and 0 elsewhere, as i32.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_one_hot (TinyTensor *self, gint64 n_classes);

/**
 * tiny_tensor_gather:
 * @self: a tensor
 * @axis: an axis
 * @indices: integers of any shape
 *
 * The parts of @self along @axis at @indices, whose shape replaces that axis: rows of an embedding
 * (V, D) at tokens (B, T) along axis 0 are (B, T, D). NumPy's `take`, ONNX's `Gather`; with a vector
 * PyTorch's `index_select`.
 *
 * A position below 0 or beyond the last gives zeros and has no gradient: indices are data, and no
 * kernel stops for them. (Negative positions do not count from the end.) What is read at equal
 * positions adds up in the gradient of @self. One load for each element of the result, whatever the
 * size of @self.
 *
 * Errors: %TINY_ERROR_INVALID when @indices are not integers, @self has no such axis, or the result
 * has too many axes.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_gather (TinyTensor *self, gint axis, TinyTensor *indices);

/**
 * tiny_tensor_take_along_axis:
 * @self: a tensor
 * @axis: an axis
 * @indices: integers with as many axes as @self
 *
 * The elements of @self whose position along @axis is what @indices say and along the other axes is
 * that of the index; there @indices broadcast to the sizes of @self. The score of each row's label
 * is `take_along_axis (scores (B, K), 1, labels (B, 1))`, (B, 1). NumPy's `take_along_axis`,
 * PyTorch's `gather`, ONNX's `GatherElements`. Positions outside and gradients: as
 * tiny_tensor_gather().
 *
 * Errors: %TINY_ERROR_INVALID when @indices are not integers or do not fit.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_take_along_axis (TinyTensor *self, gint axis, TinyTensor *indices);

G_END_DECLS
