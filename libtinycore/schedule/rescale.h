/* SPDX-License-Identifier: MIT
 *
 * rescale.h: sums of exponentials in parts, each beside its own maximum. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* What is to be summed along @axis in place of summing @value along it, when that axis becomes the
 * axes @axis and @axis + 1 of @dims, of @rank; NULL: @value is no exponential of a difference to a
 * maximum that is made in the same parts. */
TinyNode *schedule_rescale_parts (
    TinyGraph *graph, TinyNode *value, const gint64 *dims, guint rank, guint axis);

G_END_DECLS
