/* SPDX-License-Identifier: MIT
 *
 * tiny-verify-private.h: parts of the verifier. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* The first INDEX node of a kernel, sources before users, whose value may leave INDEX, or NULL.
 * The bounds of ranges are constants. */
const TinyNode *tiny_verify_find_overflow (GPtrArray *order);

G_END_DECLS
