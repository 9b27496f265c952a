/* SPDX-License-Identifier: MIT
 *
 * recorder-private.h: what a recorder and a TinyJit share. */
#pragma once

#include "nn/tiny-recorder.h"

G_BEGIN_DECLS

/* Puts tensors in memory; variables stay what they are. Under the runtime's lock. */
gboolean recorder_realize_inputs (TinyTensor *const *inputs, guint n, GError **error);

G_END_DECLS
