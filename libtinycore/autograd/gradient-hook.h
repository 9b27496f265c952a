/* SPDX-License-Identifier: MIT
 *
 * gradient-hook.h: what hooks make of the gradient of a tensor that was asked for. */
#pragma once

#include "autograd/tiny-gradient-hook.h"

G_BEGIN_DECLS

/* Calls the hooks of @self. *@gradient (transfer full) is what they make of it. */
gboolean gradient_hooks_apply (TinyTensor *self, TinyTensor **gradient, GError **error);

G_END_DECLS
