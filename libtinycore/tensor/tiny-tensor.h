/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor.h: arrays of numbers that are computed when they are asked for.
 *
 * A tensor is a lazy value: operations build a graph, nothing runs before tiny_tensor_realize() or
 * a read. Operations return floating references and consume floating arguments, as GVariant's do,
 * so tiny_tensor_add (tiny_tensor_mul (a, b), c) leaks nothing; g_object_ref_sink() what you keep.
 * Errors are sticky: an operation that cannot be gives a tensor that carries the GError, all that
 * is built on it carries the first one, and realising reports it. Every function may be called
 * from any thread. */
#pragma once

#include <glib-object.h>

#include "base/tiny-error.h"
#include "ir/tiny-dtype.h"

G_BEGIN_DECLS

/**
 * TinyTensor:
 *
 * An array that is computed when it is realised or read. Operations give floating references and take those of
 * their arguments; what is wrong with one is an error that the tensor carries.
 *
 * Since: 0.1
 */
#define TINY_TYPE_TENSOR (tiny_tensor_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyTensor, tiny_tensor, TINY, TENSOR, GInitiallyUnowned)

/**
 * TINY_SLICE_BEGIN:
 *
 * An open stop of a slice with a negative step.
 */
#define TINY_SLICE_BEGIN G_MININT64
/**
 * TINY_SLICE_END:
 *
 * An open stop of a slice with a positive step.
 */
#define TINY_SLICE_END G_MAXINT64

/**
 * TINY_NO_AXIS:
 *
 * Where an axis may be left out: all elements, as if the tensor were a vector. In tiny_vmap(): the
 * same for the whole batch.
 *
 * Since: 0.1
 */
#define TINY_NO_AXIS (-2147483647 - 1)

/* ---- making ---- */
/**
 * tiny_tensor_new_from_data:
 * @device: (nullable): where to put it; %NULL: the default device
 * @dtype: a dtype
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 * @data: (array length=n_bytes) (element-type guint8): elements in row-major order
 * @n_bytes: exactly the elements' size
 *
 * A tensor with a copy of @data. Errors it may carry: %TINY_ERROR_INVALID when the sizes disagree,
 * those of opening the device and allocating.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_new_from_data (const char *device,
                                                TinyDType dtype,
                                                const gint64 *shape,
                                                guint n_dims,
                                                gconstpointer data,
                                                gsize n_bytes);

/**
 * tiny_tensor_new_from_memory:
 * @device: (nullable): where to put it; %NULL: the default device
 * @dtype: a dtype
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 * @memory: elements in row-major order; other languages give the address
 * @n_bytes: exactly the elements' size
 *
 * As tiny_tensor_new_from_data(), for languages that would copy an array once more to hand it over.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_new_from_memory (const char *device,
                                                  TinyDType dtype,
                                                  const gint64 *shape,
                                                  guint n_dims,
                                                  gconstpointer memory,
                                                  gsize n_bytes);

/**
 * tiny_tensor_empty:
 * @dtype: a dtype
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 *
 * Unspecified values in memory of its own.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_empty (TinyDType dtype, const gint64 *shape, guint n_dims);

/**
 * tiny_tensor_scalar:
 * @value: a number
 *
 * A tensor of shape () that takes the dtype of what it meets: a float's, or an integer's when @value
 * is whole and at most 2⁵³ from 0. Alone it is i32, i64 where that does not hold it, or f32.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_scalar (double value);

/**
 * tiny_tensor_scalar_float:
 * @value: a number
 *
 * As tiny_tensor_scalar(), but never an integer.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_scalar_float (double value);

/**
 * tiny_tensor_manual_seed:
 * @seed: any number
 *
 * Starts the process's sequence of random numbers again: what is drawn follows from @seed and from what was drawn
 * since, on every device. Without it a process has a seed of its own by chance. No kernel depends on a seed.
 * A forked process goes on from the state of its parent.
 *
 * Since: 0.1
 */
TINY_API void tiny_tensor_manual_seed (guint64 seed);

/* ---- reading ---- */
/**
 * tiny_tensor_realize:
 * @self: a tensor
 * @error: return location
 *
 * Computes @self if it is not in memory yet. An asynchronous device may still be at it when this returns; who
 * reads the value waits, and is told when that work failed.
 * Errors: what the tensor carries; those of scheduling, compiling and running.
 *
 * Returns: whether it is in memory now
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_realize (TinyTensor *self, GError **error);

/**
 * tiny_tensor_realize_many:
 * @tensors: (array length=n): tensors
 * @n: how many
 * @error: return location
 *
 * Computes all of them together, sharing what they have in common.
 *
 * Returns: whether all are in memory now
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_realize_many (TinyTensor *const *tensors,
                                            guint n,
                                            GError **error);

/**
 * tiny_tensor_copy_data:
 * @self: a tensor
 * @out: where to put the elements in row-major order; other languages give the address
 * @n_bytes: exactly tiny_tensor_get_n_bytes()
 * @error: return location
 *
 * Realises @self and copies its elements out.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_copy_data (TinyTensor *self,
                                         gpointer out,
                                         gsize n_bytes,
                                         GError **error);

/**
 * tiny_tensor_get_data:
 * @self: a tensor
 * @error: return location
 *
 * Realises @self and copies its elements out.
 *
 * Returns: (transfer full) (nullable): the elements in row-major order
 *
 * Since: 0.1
 */
TINY_API GBytes *tiny_tensor_get_data (TinyTensor *self, GError **error);

/**
 * tiny_tensor_item:
 * @self: a tensor
 * @out_value: (out): the value
 * @error: return location
 *
 * Realises @self, which has one element, and reads it.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_item (TinyTensor *self, double *out_value, GError **error);

/**
 * tiny_tensor_to_string:
 * @self: a tensor
 *
 * The elements as NumPy writes them, long ones shortened; realises @self. An error reads as its message.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
TINY_API char *tiny_tensor_to_string (TinyTensor *self);

/**
 * tiny_tensor_get_error:
 * @self: a tensor
 *
 * What went wrong in making this tensor.
 *
 * Returns: (transfer none) (nullable): the error, owned by @self
 *
 * Since: 0.1
 */
TINY_API const GError *tiny_tensor_get_error (TinyTensor *self);

/**
 * tiny_tensor_get_shape:
 * @self: a tensor
 * @out_n_dims: (out) (optional): how many axes
 *
 * The sizes of the axes. They never change.
 *
 * Returns: (transfer none) (array length=out_n_dims) (nullable): sizes; %NULL in error state
 *
 * Since: 0.1
 */
TINY_API const gint64 *tiny_tensor_get_shape (TinyTensor *self, guint *out_n_dims);

/**
 * tiny_tensor_get_n_dims:
 * @self: a tensor
 *
 * How many axes there are.
 *
 * Returns: a number; 0 in error state
 *
 * Since: 0.1
 */
TINY_API guint tiny_tensor_get_n_dims (TinyTensor *self);

/**
 * tiny_tensor_get_n_elements:
 * @self: a tensor
 *
 * The product of the sizes.
 *
 * Returns: a number; 0 in error state
 *
 * Since: 0.1
 */
TINY_API gint64 tiny_tensor_get_n_elements (TinyTensor *self);

/**
 * tiny_tensor_get_n_bytes:
 * @self: a tensor
 *
 * The size of the elements in memory.
 *
 * Returns: a number; 0 in error state
 *
 * Since: 0.1
 */
TINY_API gsize tiny_tensor_get_n_bytes (TinyTensor *self);

/**
 * tiny_tensor_get_dtype:
 * @self: a tensor
 *
 * The number format.
 *
 * Returns: a dtype; %TINY_DTYPE_VOID in error state
 *
 * Since: 0.1
 */
TINY_API TinyDType tiny_tensor_get_dtype (TinyTensor *self);

/**
 * tiny_tensor_get_device:
 * @self: a tensor
 *
 * Where the tensor is or will be computed.
 *
 * Returns: (transfer none) (nullable): a device's name; %NULL: the default device
 *
 * Since: 0.1
 */
TINY_API const char *tiny_tensor_get_device (TinyTensor *self);

/**
 * tiny_tensor_is_realized:
 * @self: a tensor
 *
 * Whether the elements are in memory.
 *
 * Returns: %TRUE when nothing is left to compute
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_is_realized (TinyTensor *self);

/* ---- memory ---- */
/**
 * tiny_tensor_contiguous:
 * @self: a tensor
 *
 * A copy of @self, in memory of its own in row-major order.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_contiguous (TinyTensor *self);

/**
 * tiny_tensor_detach:
 * @self: a tensor
 *
 * A view of @self, through which no gradient flows.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_detach (TinyTensor *self);

/**
 * tiny_tensor_assign:
 * @self: a tensor
 * @value: of the same shape and device; cast to @self's dtype
 * @error: return location
 *
 * Makes @value the contents of @self. Memory that @self already has is kept and overwritten when it is realised next;
 * what was computed from the old contents, even if that still waits, keeps those. @self is unchanged on error.
 *
 * Views are no such copies: what tiny_tensor_index() gives for numbers and slices, tiny_tensor_reshape(),
 * tiny_tensor_detach() and the other operations that only move elements (they say so) is another sight of the same
 * contents, as of PyTorch's. Assigning to a view assigns that part of what it is a view of, and of what that is a
 * view of, and all other views of it see the new contents. A view does not keep what it is a view of alive: when
 * that is gone the view is a tensor of its own. It is an error to assign to what was expanded.
 *
 * Gradients flow to @value, unless @self requires gradients (tiny_tensor_set_requires_grad()): it is where they end,
 * and stays that. So a step by hand needs no more than the new value: `w.assign (w - lr * w.grad)` in Python.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_assign (TinyTensor *self, TinyTensor *value, GError **error);

/**
 * tiny_tensor_write_data:
 * @self: a tensor
 * @data: (array length=n_bytes) (element-type guint8): elements in row-major order
 * @n_bytes: exactly tiny_tensor_get_n_bytes()
 * @error: return location
 *
 * Realises @self and overwrites its memory from the host; captured functions (#TinyJit) that read
 * it see the new values. So does every tensor that is a view of it. Of a view the part that it is of is overwritten.
 * Nothing else changes, as with tiny_tensor_assign(): what waits and is made of the old values is computed first, other
 * tensors that share the memory get copies.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_write_data (TinyTensor *self,
                                          gconstpointer data,
                                          gsize n_bytes,
                                          GError **error);

/**
 * tiny_tensor_set_index:
 * @self: a tensor
 * @pattern: what the subscript consists of, see tiny_tensor_index()
 * @numbers: (array length=n_numbers) (nullable): of the parts i and s, in order
 * @n_numbers: how many
 * @tensors: (array length=n_tensors) (nullable): of the parts t, in order
 * @n_tensors: how many
 * @value: what broadcasts to what tiny_tensor_index() gives; cast to @self's dtype
 * @error: return location
 *
 * `@self[…] = @value` of Python: @self becomes, by tiny_tensor_assign(), what it is with @value there. Of several
 * values at one position the last wins; positions outside are left out. A mask is realised, unless @value has one
 * element. Gradients flow to @value and to what is left of @self.
 *
 * Where @self is a view, what it is a view of changes with it: see tiny_tensor_assign().
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_set_index (TinyTensor *self,
                                         const char *pattern,
                                         const gint64 *numbers,
                                         guint n_numbers,
                                         TinyTensor *const *tensors,
                                         guint n_tensors,
                                         TinyTensor *value,
                                         GError **error);

/* ---- gradients ---- */
/**
 * tiny_tensor_set_requires_grad:
 * @self: a tensor
 * @requires_grad: whether
 *
 * Whether tiny_tensor_backward() computes a gradient for @self, which then has memory of its own and is a view of
 * nothing.
 *
 * Since: 0.1
 */
TINY_API void tiny_tensor_set_requires_grad (TinyTensor *self, gboolean requires_grad);

/**
 * tiny_tensor_get_requires_grad:
 * @self: a tensor
 *
 * Whether gradients flow to @self or through it: it was told to have one (tiny_tensor_set_requires_grad()), or is
 * computed from a tensor that was, and not detached from it.
 *
 * Returns: whether
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_get_requires_grad (TinyTensor *self);

/**
 * tiny_tensor_is_leaf:
 * @self: a tensor
 *
 * Whether gradients end at @self: none flows to it, or it was told to have one itself.
 *
 * Returns: whether
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_is_leaf (TinyTensor *self);

/**
 * tiny_tensor_get_base:
 * @self: a tensor
 *
 * What changes with @self: the tensor that it is a view of in the end, or @self.
 *
 * Returns: (transfer none): a tensor
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_get_base (TinyTensor *self);

/**
 * tiny_tensor_get_grad:
 * @self: a tensor
 *
 * The gradient that tiny_tensor_backward() left. It lives until another takes its place or it is cleared; threads that do
 * that while others read it want a lock of their own.
 *
 * Returns: (transfer none) (nullable): of @self's shape and dtype
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_get_grad (TinyTensor *self);

/**
 * tiny_tensor_set_grad:
 * @self: a tensor
 * @grad: (nullable): of @self's shape, dtype and device; %NULL: none
 * @error: return location
 *
 * What tiny_tensor_get_grad() gives from here on; tiny_tensor_backward() adds to it.
 *
 * Errors: what an argument carries; %TINY_ERROR_INVALID when @grad does not fit.
 *
 * Returns: whether it worked; if not, the gradient is what it was
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_set_grad (TinyTensor *self, TinyTensor *grad, GError **error);

/**
 * tiny_tensor_clear_grad:
 * @self: a tensor
 *
 * Forgets the gradient.
 *
 * Since: 0.1
 */
TINY_API void tiny_tensor_clear_grad (TinyTensor *self);

G_END_DECLS
