/* SPDX-License-Identifier: MIT
 *
 * tiny-positions.h: building blocks of what reads and writes at positions that are data.
 *
 * There is no store at a computed address: an element that is written finds who writes it. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* The arg of GRADIENTs that are sums of values at positions, plus how many axes come after that of the
 * positions: their inputs are both. Their rule is in autograd/custom-rules.c. */
enum { TINY_RULE_SCATTER = 16 };

/* Integers along @axis of @x as they count from its start: negative ones count from its end, those outside stay
 * outside. An error of what is known to be outside, and with TINY_CHECK=1 of all that is. */
TinyNode *tiny_build_positions (TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions);
/* Integers of which those from 0 to below @n are classes. With TINY_CHECK=1 an error of what is neither one nor @ignored. */
gboolean tiny_build_check_labels (TinyBuild *self, TinyNode *labels, gint64 n, gint64 ignored);
/* With TINY_CHECK=1 the error @wanted unless all of bools @is_good hold. */
gboolean tiny_build_check_all (TinyBuild *self, TinyNode *is_good, const char *wanted);
/* The parts of @x along @axis at @positions, as they come from tiny_build_positions(): their shape takes that axis' place. */
TinyNode *tiny_build_select (TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions);
/* Where @positions are from 0 to below @size. */
TinyNode *tiny_build_is_inside (TinyBuild *self, TinyNode *positions, gint64 size);
/* 0 1 … n-1 along @axis of @rank, the other axes being 1. */
TinyNode *
tiny_build_count_along (TinyBuild *self, TinyDType dtype, guint axis, gint64 n, guint rank);
/* @positions in a dtype that holds all of an axis of @n. */
TinyNode *tiny_build_wide_enough (TinyBuild *self, TinyNode *positions, gint64 n);
/* Whether to sort @positions: comparing each with each of @n would be more work for @values. */
gboolean
tiny_build_is_sorted (const TinyNode *positions, guint axis, gint64 n, const TinyNode *values);
/* How many of @positions (…, M, …) are each of n: (…, n, …) of i32. */
TinyNode *tiny_build_count_at (TinyBuild *self, TinyNode *positions, guint axis, gint64 n);
/* For each of n positions along @axis: @op over the elements of @x whose @positions are it, @none
 * where there is none. (…, M, …), (…, M, …) to (…, n, …); other axes of @positions may be 1. */
TinyNode *tiny_build_combine (TinyBuild *self,
                              TinyNode *positions,
                              TinyNode *x,
                              guint axis,
                              gint64 n,
                              TinyOp op,
                              double none);
/* @x (…, N, …) with @values (…, M, …) at @positions (…, M, …), whose other axes may be 1. The last
 * of those at one position wins; positions outside write nothing. */
TinyNode *tiny_build_put (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values);
/* The sums of @values at each position, in the shape of @x; arguments as above. */
TinyNode *tiny_build_scatter_sum (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values);
/* Likewise the largest; the lowest number there is where there is none. */
TinyNode *tiny_build_scatter_largest (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values);
/* The products of @values at each of n @positions, which are of one shape; 1 where there is none. */
TinyNode *tiny_build_scatter_product (
    TinyBuild *self, TinyNode *positions, TinyNode *values, guint axis, gint64 n);

G_END_DECLS
