/* SPDX-License-Identifier: MIT
 *
 * tiny-given.h: tiny_simplify_given() for rules, which run inside a rewriter. */
#pragma once

#include "rewrite/tiny-rewrite.h"

G_BEGIN_DECLS

enum { TINY_MAX_CLAUSES = 32 };

/* The operands of the ANDs on top of @gate; 0 when there are too many. */
guint tiny_gate_get_clauses (TinyNode *gate, TinyNode **out_clauses);

/* 0 <= @x < the bound of the RANGE @range. */
TinyNode *tiny_gate_is_in_range (TinyGraph *graph, TinyNode *x, TinyNode *range);

/* @rewriter NULL: without a memo. */
TinyNode *tiny_simplify_given_clauses (TinyGraph *graph,
                                       TinyRewriter *rewriter,
                                       TinyNode *node,
                                       TinyNode *const *clauses,
                                       guint n);

G_END_DECLS
