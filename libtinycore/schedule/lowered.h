/* SPDX-License-Identifier: MIT
 *
 * lowered.h: what the kernel of a stage depends on. */
#pragma once

#include "schedule/known-kernels.h"

G_BEGIN_DECLS

/* Adds all that the kernel of @stage depends on. FALSE: no other is like it. */
gboolean lowered_describe (KernelKey *key, Plan *plan, Stage *stage);

/* The buffer through which the kernel of @stage reads @buffer: one that it assigns to it reads where it writes. */
guint lowered_get_buffer (Plan *plan, const Stage *stage, guint buffer);
/* The stage in whose memory the kernel of @stage finds the value of @node, or NULL: it computes it. */
Stage *lowered_get_stored (Plan *plan, const Stage *stage, const TinyNode *node);

G_END_DECLS
