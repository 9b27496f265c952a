/* SPDX-License-Identifier: MIT
 *
 * tiny-text-private.h: what printer and parser must agree on. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* The dtype and lanes that source @i of an op must have if it is a number without a dtype; FALSE
 * where that follows from nothing. @sources[j] is NULL or a CONST where it may be such a number
 * itself. */
gboolean tiny_text_infer (TinyOp op,
                          TinyDType dtype,
                          guint lanes,
                          guint i,
                          guint n,
                          TinyNode *const *sources,
                          TinyDType *out_dtype,
                          guint *out_lanes);

/* Fills @buffer, of 32 bytes, with the fewest digits that read back as @value of @dtype. */
const char *tiny_text_print_float (TinyDType dtype, double value, char *buffer);

G_END_DECLS
