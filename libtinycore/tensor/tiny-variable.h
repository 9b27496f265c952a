/* SPDX-License-Identifier: MIT
 *
 * tiny-variable.h: a whole number that programs on a device are given when they are launched. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyVariable:
 *
 * A whole number with bounds that programs are given when they are launched.
 *
 * Since: 0.1
 */
#define TINY_TYPE_VARIABLE (tiny_variable_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyVariable, tiny_variable, TINY, VARIABLE, GObject)

/**
 * tiny_variable_new:
 * @name: what messages call it; two variables of one name and the same bounds are the same variable
 * @min: the least value
 * @max: the largest value
 *
 * Makes a number that programs get when they are launched. It has no value until tiny_variable_bind() gives it one, and
 * bounds that are not in order, or are not of 32 bits, are an error then; so is having no name.
 *
 * Returns: (transfer full): a variable
 *
 * Since: 0.1
 */
TINY_API TinyVariable *tiny_variable_new (const char *name, gint64 min, gint64 max);

/**
 * tiny_variable_get_name:
 * @self: a variable
 *
 * What the variable was called when it was made.
 *
 * Returns: its name
 *
 * Since: 0.1
 */
TINY_API const char *tiny_variable_get_name (TinyVariable *self);

/**
 * tiny_variable_get_min:
 * @self: a variable
 *
 * The lower of the bounds, which a value may be.
 *
 * Returns: the least value
 *
 * Since: 0.1
 */
TINY_API gint64 tiny_variable_get_min (TinyVariable *self);

/**
 * tiny_variable_get_max:
 * @self: a variable
 *
 * The upper of the bounds, which a value may be. What has it as a size has memory for so many.
 *
 * Returns: the largest value
 *
 * Since: 0.1
 */
TINY_API gint64 tiny_variable_get_max (TinyVariable *self);

/**
 * tiny_variable_bind:
 * @self: a variable
 * @value: from its least to its largest
 *
 * @self with that value: an i32 tensor without axes. What is computed with it has that value for good, and is
 * compiled once for all values: programs get the value when they are launched. It is a size in
 * tiny_tensor_shorten(), a position in tiny_tensor_narrow(), and an input of a #TinyJit, which takes other values of
 * the same variable later.
 *
 * A @value outside of the bounds, and bounds that are none of i32, are the tensor's error.
 *
 * Returns: (transfer floating): the value as a tensor
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_variable_bind (TinyVariable *self, gint64 value);

/**
 * tiny_tensor_is_symbolic:
 * @self: a tensor
 *
 * Whether @self is an integer without axes that is calculated from variables (tiny_variable_bind()) and numbers: a size
 * in tiny_tensor_shorten(), a place in tiny_tensor_narrow() and tiny_tensor_index(). Nothing is computed.
 *
 * Returns: whether
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_is_symbolic (TinyTensor *self);

G_END_DECLS
