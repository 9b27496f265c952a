/* SPDX-License-Identifier: MIT
 *
 * keep-computed.h: what a program computes again and again is stored.
 *
 * A value that is held, but was only read through something else, is not in memory: whoever reads it next computes it
 * again, and in a loop all that led to it. The first two such readers leave a mark; for the third it is an output as well. */
#pragma once

#include "engine/tiny-request.h"

G_BEGIN_DECLS

/* Adds to the nodes of @request, whose order is known, what was computed twice and is needed by what was not. */
void keep_computed_add (TinyRequest *request);
/* Marks what was computed for @request, is not stored by it, and is worth storing for its next reader. */
void keep_computed_note (const TinyRequest *request);

G_END_DECLS
