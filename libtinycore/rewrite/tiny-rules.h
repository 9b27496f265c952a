/* SPDX-License-Identifier: MIT
 *
 * tiny-rules.h: rewrite rules as rows of text, and sets of them compiled for fast matching.
 *
 * A row says what to match and what it becomes, both in the IR's expression syntax:
 *
 *   { "mul-nested", "mul.index(mul(x, #a), #b)", "mul(x, {a*b})" }
 *
 *   x          a letter binds any node; the same letter twice is the same node; x:float restricts
 *   #c         binds a CONST
 *   3 true     literals match a CONST of that value: integers and bools, wrapped to the dtype;
 *   1.5 -0.0   with a point: floats, the very bits
 *   op(…)      sources in order, either order where the op is commutative; `…` as `...` at the end:
 *              any further sources
 *   op.class   restricts the dtype; on comparisons, that of the operands. Classes: index, int
 *              (signed, index too), uint, integer (both), bits (integer or bool), bool, float, any
 *   alu(…)     as the root: any elementwise op of so many sources
 *   reduce{add}  a REDUCE by that op
 *   {a*b-1}    in what it becomes: a constant computed from bound ones with + - * / % (rounding
 *              down), min(,) max(,); a rule whose constant leaves INDEX's range does not fire
 *
 * In what a rule becomes, dtypes and lanes follow from the node that is replaced; operands of a
 * comparison or of a cast take theirs from the variables below. A guard may refuse a match; a
 * builder replaces the text where text cannot say it, and returns NULL to refuse. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct {
  TinyGraph *graph;
  TinyNode *root;
  gpointer user;
  struct TinyRewriter *rewriter; /* in which this happens, or NULL */
  TinyNode *var[26];             /* by letter */
} TinyMatch;

#define TINY_MATCH(match, letter) ((match)->var[(letter) - 'a'])

typedef struct {
  const char *name, *match, *become;
  gboolean (*guard) (TinyMatch *match);
  TinyNode *(*build) (TinyMatch *match);
} TinyRule;

typedef struct {
  const char *name;
  const TinyRule *rules;
  guint n_rules;
} TinyRuleTable;

#define TINY_RULE_TABLE(id, text, rows)                                                        \
  const TinyRuleTable id = { text, rows, G_N_ELEMENTS (rows) }

typedef struct TinyRuleSet TinyRuleSet;

/* Compiles @tables. Errors: %TINY_ERROR_FORMAT with table, row and what is wrong with it. */
TinyRuleSet *
tiny_rule_set_new (const TinyRuleTable *const *tables, guint n_tables, GError **error);
void tiny_rule_set_free (TinyRuleSet *self);

/* What the first row that fires makes of @node, or NULL. Does not look at the sources' insides
 * further than the rows say, nor rewrite the result. Thread-safe on different graphs.
 * @rewriter: the one that asks, or NULL. */
TinyNode *tiny_rule_set_apply (const TinyRuleSet *self,
                               TinyGraph *graph,
                               TinyNode *node,
                               gpointer user,
                               struct TinyRewriter *rewriter);

guint tiny_rule_set_get_n_rules (const TinyRuleSet *self);
/* Row @i, the table it is from, how often it was tried and fired in this process. */
const TinyRule *tiny_rule_set_get_rule (const TinyRuleSet *self,
                                        guint i,
                                        const char **out_table,
                                        guint64 *out_tries,
                                        guint64 *out_hits);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyRuleSet, tiny_rule_set_free)

G_END_DECLS
