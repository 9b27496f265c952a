/* SPDX-License-Identifier: MIT
 *
 * tiny-simplify.h: the symbolic tables, put together. */
#pragma once

#include "rewrite/tiny-rewrite.h"

G_BEGIN_DECLS

/* All tables: for whole kernels. */
const TinyRuleSet *tiny_simplify_set (void);
/* Those for index arithmetic: simple, algebra, divmod, compare. */
const TinyRuleSet *tiny_simplify_index_set (void);

TinyNode *tiny_simplify (TinyGraph *graph, TinyNode *node);
TinyNode *tiny_simplify_index (TinyGraph *graph, TinyNode *node);

/* @node simplified knowing that @gate (a bool) is true: equal to @node wherever it is, anything
 * elsewhere. */
TinyNode *tiny_simplify_given (TinyGraph *graph, TinyNode *node, TinyNode *gate);

/* A constant of @like's dtype and lanes, wrapped to the dtype. */
TinyNode *tiny_const_like (TinyGraph *graph, TinyNode *like, gint64 value);

extern const TinyRuleTable tiny_rules_simple, tiny_rules_algebra, tiny_rules_divmod,
    tiny_rules_compare, tiny_rules_valid, tiny_rules_reduce;

/* All tables above, in order, NULL at the end. */
extern const TinyRuleTable *const tiny_rule_tables[];

G_END_DECLS
