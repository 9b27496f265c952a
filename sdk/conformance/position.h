/* SPDX-License-Identifier: MIT
 *
 * position.h: positions in tensors, and what movements make of them: for whatever computes the definition of an
 * operation instead of what the core makes of it. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

enum { POSITION_MAX_RANK = 32 };

/* The position of element @i in row-major order, and back. */
void position_unravel (const TinyInts *shape, gsize i, gint64 *out);
gsize position_ravel (const TinyInts *shape, const gint64 *at);
/* Where a movement reads for its element at @at, by the definition in ops.def; FALSE: a 0. */
gboolean position_move (const TinyNode *node, gint64 *at);

G_END_DECLS
