/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-shard.h: tensors from device to device, and on several at once. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_tensor_to:
 * @self: a tensor
 * @device: (nullable): a device's name; %NULL: the default device; several with semicolons between: the whole of
 *   @self on each of them, as tiny_tensor_shard() makes it
 *
 * @self on another device. What was on several is put together.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_to (TinyTensor *self, const char *device);

/**
 * tiny_tensor_to_:
 * @self: a tensor
 * @device: (nullable): as of tiny_tensor_to()
 * @error: return location
 *
 * Moves @self, and the gradient it has, to another device. What was built on it before stays where it was. It goes
 * on requiring a gradient if it did.
 *
 * Errors: those of opening a device; %TINY_ERROR_INVALID as tiny_tensor_to() has it. Nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_to_ (TinyTensor *self, const char *device, GError **error);

/**
 * tiny_tensor_shard:
 * @self: a tensor
 * @devices: (array zero-terminated=1): names of devices
 * @axis: the axis that @self is cut along, from the last one where negative; %TINY_NO_AXIS: @self is whole on each
 *   device
 *
 * @self on several devices: in pieces, whose sizes along @axis differ by 1 at most, or whole on each. It is a tensor
 * of the same shape, and takes part in all operations with others on the same devices in the same order; each device
 * then works on its pieces, side by side with the others. Where an operation needs what is on other devices, it is
 * copied: sums over @axis for example are made of one sum a device. tiny_tensor_to() puts it together on one device,
 * reading it does so too. Its gradient is cut as it is.
 *
 * Errors: those of opening a device; %TINY_ERROR_INVALID for a device that is there twice, an axis shorter than
 * there are devices, a size that is a variable.
 *
 * Returns: (transfer floating): the result; with one device that of tiny_tensor_to()
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_shard (TinyTensor *self, const char *const *devices, gint axis);

/**
 * tiny_tensor_shard_:
 * @self: a tensor
 * @devices: (array zero-terminated=1): names of devices
 * @axis: as of tiny_tensor_shard()
 * @error: return location
 *
 * Moves @self, and the gradient it has, to several devices, as tiny_tensor_to_() does to one.
 *
 * Errors: those of tiny_tensor_shard(); nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_shard_ (TinyTensor *self,
                                      const char *const *devices,
                                      gint axis,
                                      GError **error);

/**
 * tiny_tensor_shard_like:
 * @self: a tensor
 * @other: another one
 *
 * @self where @other is: on its device; on its devices, cut along the axis that @other is cut along, or whole on
 * each where @other is, or @self has no axes. How @other is cut is what it was given by tiny_tensor_shard() or came
 * out of computing it, which is done now where it has not been.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_shard_like (TinyTensor *self, TinyTensor *other);

G_END_DECLS
