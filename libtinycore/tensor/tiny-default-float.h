/* SPDX-License-Identifier: MIT
 *
 * tiny-default-float.h: the number format of floats that nothing else decides. */
#pragma once

#include "base/tiny-error.h"
#include "ir/tiny-dtype.h"

G_BEGIN_DECLS

/**
 * tiny_set_default_float:
 * @dtype: a float dtype; at first %TINY_DTYPE_F32
 * @error: return location
 *
 * What integers become where an operation makes floats of them (quotients, means, functions such as
 * tiny_tensor_exp()), and a plain number that is no integer (tiny_tensor_scalar_float()) among integers or alone. Of
 * the whole process, for what is built from here on.
 *
 * Errors: %TINY_ERROR_INVALID when @dtype is no float.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_set_default_float (TinyDType dtype, GError **error);

/**
 * tiny_get_default_float:
 *
 * See tiny_set_default_float().
 *
 * Returns: a float dtype
 *
 * Since: 0.1
 */
TINY_API TinyDType tiny_get_default_float (void);

G_END_DECLS
