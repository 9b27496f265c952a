/* SPDX-License-Identifier: MIT
 *
 * tiny-function.h: functions from tensors to tensors, as the transforms take them. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyFunction:
 * @inputs: (array length=n_inputs): tensors
 * @n_inputs: how many
 * @user_data: (closure): what goes with the function
 * @error: return location
 *
 * A function from tensors to tensors. Some of what calls it gives it tensors that stand for others
 * (one element of a batch, a variable): such a tensor has a shape and a dtype, but realising it or
 * reading its data is an error.
 *
 * What goes wrong may be set as @error, or be a tensor in error state among the results: in either
 * case it is what the caller's result carries.
 *
 * Returns: (transfer full) (element-type TinyTensor) (nullable): the results, in C of
 *   tiny_tensors(); %NULL with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*TinyFunction) (TinyTensor *const *inputs,
                                    guint n_inputs,
                                    gpointer user_data,
                                    GError **error);

/**
 * tiny_tensors: (skip)
 * @first: (nullable): a tensor
 * @...: more tensors, then %NULL
 *
 * A list of tensors, as a #TinyFunction returns it. Floating tensors become the list's; of others
 * it takes a reference.
 *
 * Returns: (transfer full) (element-type TinyTensor): the list
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_tensors (TinyTensor *first, ...) G_GNUC_NULL_TERMINATED;

G_END_DECLS
