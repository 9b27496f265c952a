/* SPDX-License-Identifier: MIT
 *
 * tiny-rewrite.h: applies a set of rules everywhere, until none fires. */
#pragma once

#include "rewrite/tiny-rules.h"

G_BEGIN_DECLS

/* @root with @set applied to every node below it, sources first, to the fixpoint. @user reaches
 * guards and builders. Depth costs memory, not stack. */
TinyNode *
tiny_rewrite (TinyGraph *graph, TinyNode *root, const TinyRuleSet *set, gpointer user);

/* The same, remembering across runs what each node became: for work done piecewise on one graph. */
typedef struct TinyRewriter TinyRewriter;
TinyRewriter *tiny_rewriter_new (TinyGraph *graph, const TinyRuleSet *set);
TinyNode *tiny_rewriter_run (TinyRewriter *self, TinyNode *root);
/* Firings that were given up because the rules ran in a circle or without end: 0 for sound tables. */
guint tiny_rewriter_get_n_given_up (TinyRewriter *self);
/* One over tiny_simplify_index_set() that lives as long as @self: for rules that simplify. */
TinyRewriter *tiny_rewriter_get_inner (TinyRewriter *self);
void tiny_rewriter_free (TinyRewriter *self);

/* "add.i32(x, 1)" down to @depth levels, for traces. Free with g_free(). */
char *tiny_node_to_expression (TinyNode *node, guint depth);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyRewriter, tiny_rewriter_free)

G_END_DECLS
