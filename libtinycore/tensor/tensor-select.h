/* SPDX-License-Identifier: MIT
 *
 * tensor-select.h: shapes that depend on data: the host reads it. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/* Appends where @mask is true: one vector of positions for each of its axes, and for a mask without
 * axes one of zeros. They are where @mask is, or, if that may be anywhere, where @like is, if there is
 * one. Realises @mask; not under the runtime's lock. */
gboolean
tiny_select_positions (TinyTensor *mask, TinyTensor *like, GPtrArray *out, GError **error);

G_END_DECLS
