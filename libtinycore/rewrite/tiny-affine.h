/* SPDX-License-Identifier: MIT
 *
 * tiny-affine.h: an INDEX expression as a sum of ranges times strides. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

enum { TINY_AFFINE_MAX_TERMS = 32 };

typedef struct {
  TinyNode *range;
  gint64 stride;
} TinyAffineTerm;

/* index = sum of range * stride + offset + rest. */
typedef struct {
  guint n_terms; /* ranges of terms differ; strides are not 0 */
  TinyAffineTerm terms[TINY_AFFINE_MAX_TERMS];
  gint64 offset;
  TinyNode *rest; /* what is not a constant multiple of a range; NULL: nothing, it is affine */
} TinyAffine;

/* TRUE when @index is affine; @out is filled in either case (with more terms than fit, all that
 * is left over is in the rest). */
gboolean tiny_affine (TinyGraph *graph, TinyNode *index, TinyAffine *out);

G_END_DECLS
