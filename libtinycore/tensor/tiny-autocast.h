/* SPDX-License-Identifier: MIT
 *
 * tiny-autocast.h: which operations compute in a narrower float than their arguments have. */
#pragma once

#include "base/tiny-error.h"
#include "ir/tiny-dtype.h"

G_BEGIN_DECLS

/**
 * tiny_set_autocast:
 * @dtype: %TINY_DTYPE_F16 or %TINY_DTYPE_BF16; %TINY_DTYPE_VOID ends it
 * @error: return location
 *
 * Products of matrices and convolutions that this thread computes from now on take f32 as @dtype, and give that. Sums,
 * powers, exponentials, norms and losses take narrower floats as f32. All else goes by the dtypes of its arguments, of
 * which f64 stays what it is. Gradients go the same way back, so those of f32 parameters are f32. The rows of the table
 * of operations say which are which (their word `autocast`).
 *
 * Small gradients vanish in f16: #TinyGradScaler makes the loss larger.
 *
 * ```c
 * tiny_set_autocast (TINY_DTYPE_BF16, &error);
 * TinyTensor *loss = ...
 * tiny_set_autocast (TINY_DTYPE_VOID, NULL);
 * tiny_tensor_backward (loss, &error);
 * ```
 *
 * Errors: %TINY_ERROR_INVALID when @dtype is another one; it stays as it was.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_set_autocast (TinyDType dtype, GError **error);

/**
 * tiny_get_autocast:
 *
 * Gives what tiny_set_autocast() said last on this thread.
 *
 * Returns: a dtype; at first %TINY_DTYPE_VOID
 *
 * Since: 0.1
 */
TINY_API TinyDType tiny_get_autocast (void);

G_END_DECLS
