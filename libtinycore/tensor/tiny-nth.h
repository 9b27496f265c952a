/* SPDX-License-Identifier: MIT
 *
 * tiny-nth.h: elements of long rows that have so many before them in order, without sorting. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* Whether rows of @keys (R, N), integers, are long enough. */
gboolean tiny_nth_is_worth_it (const TinyNode *keys);
/* Where in its row the one is, (R, 1) i32, that has @n before it; equal ones are in the order in which they lie. */
TinyNode *tiny_build_nth (TinyBuild *b, TinyNode *keys, gint64 n);

G_END_DECLS
