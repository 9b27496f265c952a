/* SPDX-License-Identifier: MIT
 *
 * tiny-check-private.h: the part of tiny_check_node() that looks at shapes. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* NULL when all is well, else what is wrong, to be freed. */
char *tiny_check_shapes (
    TinyOp op, guint n_sources, TinyNode *const *sources, gint64 arg, const TinyInts *ints);

G_END_DECLS
