/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-kernel.h: kernels that a program writes itself, in IR text. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_custom_kernel:
 * @code: the text of a kernel (docs/ir.md)
 * @inputs: (array length=n_inputs): tensors
 * @n_inputs: how many
 *
 * The results of a kernel that is given as it is, in the IR's text form, for any device:
 *
 * ```
 * %y = param.f32{slot=0, shape=[4, 256]}
 * %x = param.f32{slot=1, shape=[1024]}
 * %i = range.index{number=0, kind=loop}(1024)
 * sink{name="add_one"}(store(%y, %i, add.f32(load.f32(%x, %i), 1.0)))
 * ```
 *
 * The params are the results, from slot 0 on, then the inputs; their shapes and dtypes are those of
 * the tensors, which lie in memory row by row. Each result is stored to once, in loops over all its
 * elements, and not loaded from. Ranges are of the kinds loop and reduce, and there is no local
 * memory: what becomes of loops and which values are kept is decided as for other kernels. An address outside of a
 * param reads 0 and stores nothing; what is not stored to has any value. Nothing else is made part of the kernel.
 *
 * It has a gradient inside of tiny_custom_gradient() only.
 *
 * Errors: what an input carries; %TINY_ERROR_FORMAT for a text that is no IR, with line and column;
 * %TINY_ERROR_INVALID for one that is no kernel, or not one of such inputs.
 *
 * Returns: (transfer container) (element-type TinyTensor): the results; one tensor in error state
 *   where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *
tiny_custom_kernel (const char *code, TinyTensor *const *inputs, guint n_inputs);

G_END_DECLS
