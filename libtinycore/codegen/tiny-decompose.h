/* SPDX-License-Identifier: MIT
 *
 * tiny-decompose.h: what a target lacks, in terms of what it has. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* @root of the expanded stage (or any expression) rewritten until only ops occur that @target
 * declares for their dtypes: transcendentals to polynomials, floats it does not compute with to
 * f32 or integer arithmetic, 64-bit integers to pairs, division by constants to multiplication,
 * NEG SUB MAX CMPNE … to others, a*b+c to MULACC where it is declared.
 *
 * Errors: %TINY_ERROR_UNSUPPORTED naming op and dtype. */
TinyNode *
tiny_decompose (TinyGraph *graph, TinyNode *root, const TinyTarget *target, GError **error);

G_END_DECLS
