/* SPDX-License-Identifier: MIT
 *
 * factor.h: operations of linear algebra (TINY_OPERATION_CHOLESKY to EIGH) as the text of KERNEL nodes.
 *
 * Such a node is computed by a unit of its device alone: there is no kernel that would do instead, so it is made
 * where the device has one (tensor/tiny-factor.h). Matrices lie by columns: as axes they are (B, columns, rows). */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

enum { FACTOR_N_EXTENTS = TINY_FACTOR_VALUE + 1, FACTOR_MAX_RANK = 3 };

/* Fills @out for batches of matrices; VALUE follows from the other extents. FALSE: there is no such kind, or an extent
 * or a flag is none of it, or the elements are too many. */
gboolean factor_init (TinyOperation *out,
                      guint kind,
                      guint flags,
                      TinyDType dtype,
                      const gint64 extents[FACTOR_N_EXTENTS]);
guint factor_count_outputs (const TinyOperation *self);
/* The shape of operand @i; how many axes it has. */
guint factor_get_shape (const TinyOperation *self, guint i, gint64 dims[FACTOR_MAX_RANK]);

/* "factor svd f32 0 1 64 48 48 48": kind, dtype, flags, extents up to RIGHT; free with g_free(). */
char *factor_to_text (const TinyOperation *self);
/* True of every text that means to be one. */
gboolean factor_is_text (const char *text);
/* FALSE: it is none. */
gboolean factor_from_text (TinyOperation *out, const char *text);

G_END_DECLS
