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

/* @node and the few levels below it on one line, for messages; "…" stands for what is left out.
 * Never fails, whatever is wrong with the node. Free with g_free(). */
char *tiny_node_to_string (const TinyNode *node);

/* The node of the last statement of @text, made in @graph. Takes any input: a node is made only
 * when arity, dtypes, lanes and shapes fit (ir/tiny-check.h).
 *
 * Errors: %TINY_ERROR_FORMAT, the message beginning with "line:column: ". */
TinyNode *tiny_graph_parse (TinyGraph *graph, const char *text, GError **error);

G_END_DECLS
