/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-import.h: tensors in memory that the program has already: the host's, or made with a device's own
 * driver. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_tensor_new_from_blob:
 * @device: (nullable): where to put it; %NULL: the default device
 * @dtype: a dtype
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 * @memory: host memory with the elements in row-major order; other languages give the address
 * @free_func: (nullable) (scope async): called with @user_data, from any thread, when @memory is not needed any
 *   more, which may be before this returns; %NULL: it is there as long as the program runs
 * @user_data: (closure): for @free_func
 *
 * A tensor in memory of somebody else's. It is shared where the device computes in host memory and it is aligned as
 * the device wants, and copied otherwise: who writes to shared memory does so while nothing computes, and does not see
 * what is assigned to the tensor where it was copied. Errors it may carry: %TINY_ERROR_INVALID for a shape or dtype
 * that cannot be, or no memory; those of opening the device and allocating.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_new_from_blob (const char *device,
                                                TinyDType dtype,
                                                const gint64 *shape,
                                                guint n_dims,
                                                gpointer memory,
                                                GDestroyNotify free_func,
                                                gpointer user_data);
/**
 * tiny_tensor_new_import: (skip)
 * @device: (nullable): whose driver made the memory; %NULL: the default device
 * @dtype: a dtype
 * @shape: (array length=n_dims): sizes
 * @n_dims: how many axes
 * @handle: the driver's own handle of memory with the elements in row-major order, such as a cl_mem
 *
 * A tensor in memory that the program made with the device's driver, in the context of
 * tiny_tensor_get_import_context(); nothing is copied. The driver keeps the memory as long as a tensor needs
 * it. Two tensors of one handle are not seen to be the same memory: what reads one must not depend on writing the
 * other. Errors it may carry: %TINY_ERROR_UNSUPPORTED where the device imports nothing, %TINY_ERROR_INVALID
 * for memory of another context, or too little.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_new_import (
    const char *device, TinyDType dtype, const gint64 *shape, guint n_dims, gpointer handle);
/**
 * tiny_tensor_get_import_context: (skip)
 * @device: (nullable): a device; %NULL: the default one
 * @error: return location
 *
 * The driver's own object in which memory for tiny_tensor_new_import() is made: a cl_context.
 * Errors: %TINY_ERROR_UNSUPPORTED where there is none, those of opening the device.
 *
 * Returns: (transfer none): the driver's handle, or %NULL
 *
 * Since: 0.1
 */
TINY_API gpointer tiny_tensor_get_import_context (const char *device, GError **error);

G_END_DECLS
