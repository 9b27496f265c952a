/* SPDX-License-Identifier: MIT
 *
 * tiny-decompose.h: what a target lacks, in terms of what it has. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* @root of the expanded stage (or any expression) rewritten until only ops occur that @target
 * declares for their dtypes: transcendentals to polynomials, narrow floats and integers it does
 * not compute with to f32, 32-bit integers and bit arithmetic, division by constants to
 * multiplication, NEG SUB MAX CMPNE FLOORDIV … to others. What the target has stays the same node;
 * a*b+c is never contracted. INDEX arithmetic stays as it is. Values of dtypes that @target neither
 * stores nor computes with are in words of 32 bits, those of 64 bits in two; buffers of the latter are
 * then parameters of u32 with twice the elements.
 *
 * Errors: %TINY_ERROR_UNSUPPORTED naming op and dtype: arithmetic of f64 on a target without it. */
TinyNode *
tiny_decompose (TinyGraph *graph, TinyNode *root, const TinyTarget *target, GError **error);

G_END_DECLS
