/* SPDX-License-Identifier: MIT
 *
 * cell.h: values with error bounds (model.h), one at a time. */
#pragma once

#include "model.h"

G_BEGIN_DECLS

/* Nothing is known of it; it has these very bits. */
Cell cell_unknown (void);
Cell cell_exact (gint64 bits);
/* What the operation @node makes of @in, an element of each of its sources. */
Cell cell_of (const TinyNode *node, const Cell *in, guint n);
/* What @n cells become by a REDUCE. */
Cell cell_reduce (TinyOp op, TinyDType dtype, const Cell *x, gsize n);

G_END_DECLS
