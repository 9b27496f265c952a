/* SPDX-License-Identifier: MIT
 *
 * tiny-text.h: the text form of the IR, see docs/ir.md for the grammar.
 *
 * Parsing what was printed gives the identical node. Printing is deterministic: it depends on the
 * structure under the root alone. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* All that is under @root, one statement a line, @root last. Free with g_free(). */
char *tiny_graph_print (TinyGraph *graph, TinyNode *root);
/* As above; a node that has a name in @names (const char *) is written with it. */
char *tiny_graph_print_named (TinyGraph *graph, TinyNode *root, const TinyNodeMap *names);
/* Whether it can name a node: letters, digits and underscores, and dots between them; no number, as
 * those are the printer's own. */
gboolean tiny_text_is_name (const char *name);

/* @node and the few levels below it on one line, for messages; "…" stands for what is left out.
 * Never fails, whatever is wrong with the node. Free with g_free(). */
char *tiny_node_to_string (const TinyNode *node);

/* The node of the last statement of @text, made in @graph. Takes any input: a node is made only
 * when arity, dtypes, lanes and shapes fit (ir/tiny-check.h).
 *
 * Errors: %TINY_ERROR_FORMAT, the message beginning with "line:column: ". */
TinyNode *tiny_graph_parse (TinyGraph *graph, const char *text, GError **error);
/* As above; @out_names (transfer full) gets the names of @text and their nodes (char *: TinyNode). */
TinyNode *tiny_graph_parse_named (TinyGraph *graph,
                                  const char *text,
                                  GHashTable **out_names,
                                  GError **error);

G_END_DECLS
