/* SPDX-License-Identifier: MIT
 *
 * tiny-grad-mode.h: whether what is computed is to have gradients. */
#pragma once

#include "base/tiny-macros.h"

#include <glib.h>

G_BEGIN_DECLS

/**
 * tiny_set_grad_enabled:
 * @enabled: whether gradients flow through what this thread computes from now on
 *
 * While they do not, every result is as if tiny_tensor_detach() were applied to it. Values are the
 * same. Give back what was returned to end it:
 *
 * ```c
 * gboolean before = tiny_set_grad_enabled (FALSE);
 * ...
 * tiny_set_grad_enabled (before);
 * ```
 *
 * Returns: what it was before; at first %TRUE
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_set_grad_enabled (gboolean enabled);

/**
 * tiny_is_grad_enabled:
 *
 * What tiny_set_grad_enabled() said last on this thread; at first it is so.
 *
 * Returns: whether gradients flow through what this thread computes
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_is_grad_enabled (void);

G_END_DECLS
