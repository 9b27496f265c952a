/* SPDX-License-Identifier: MIT
 *
 * tiny-order.h: building blocks of what sorts, and of what looks up in what is sorted. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* The positions along @axis of the first @keep elements of @x in order, as i32; equal ones keep
 * theirs, NaNs are the greatest. */
TinyNode *
tiny_build_order (TinyBuild *self, TinyNode *x, guint axis, gint64 keep, gboolean descending);
/* Integers @x from 0 to below 2^@n_bits, no two of which are equal along @axis, in order. Those that differ below
 * @first_bit only are in order already. */
TinyNode *tiny_build_sort_distinct (
    TinyBuild *self, TinyNode *x, guint axis, guint first_bit, guint n_bits);
/* How many of @sorted (…, N, …) along @axis come before each of @values (…, K, …), or with @right
 * are not after it, as i32 of the shape of @values. Both have the same other axes. */
TinyNode *tiny_build_rank_in (
    TinyBuild *self, TinyNode *sorted, TinyNode *values, guint axis, gboolean right);

G_END_DECLS
