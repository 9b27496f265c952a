/* SPDX-License-Identifier: MIT
 *
 * tiny-history.h: what realised values were made of, for gradients.
 *
 * The node of what was realised is a BUFFER: all that computes reads that. Beside it, a history keeps
 * the expression, if that depends on a root that wants gradients, for as long as something that is
 * alive reads the BUFFER. When memory that the expression reads is overwritten it becomes stale: the
 * expression goes, and whoever would need it gets an error. All of it under the runtime's lock. */
#pragma once

#include "engine/tiny-runtime.h"

G_BEGIN_DECLS

/* The expression that BUFFER @node was, or NULL. *@out_is_stale: there was one, and it is gone. */
TinyNode *tiny_history_get (const TinyNode *node, gboolean *out_is_stale);
/* Whether there is one or was. */
gboolean tiny_history_has (const TinyNode *node);
/* All nodes under @roots, and under the expressions that BUFFERs among them were: each after its
 * sources and its expression. */
GPtrArray *tiny_history_toposort (TinyGraph *graph, TinyNode *const *roots, guint n);
/* The tensor that @node was, which wanted gradients, is gone: they end there, and what is made of it still wants them. */
void tiny_history_end (const TinyNode *node);
/* Likewise where that tensor, whose number (TinyTensor) is @left, has another node since: losses made of @node do not reach it. */
void tiny_history_leave (const TinyNode *node, guint64 left);
/* That number; 0 where there is none. */
guint64 tiny_history_get_left (const TinyNode *node);
/* Whether gradients end at @node, which may be such a one, or a DETACH with a number (tensor/tiny-view.c). */
gboolean tiny_history_is_end (const TinyNode *node);
/* @node is a value like one that a program gave, from here on. */
void tiny_history_forget (const TinyNode *node);
/* Those that began in the recording of that number (tiny-recorders.h) are forgotten. */
void tiny_history_forget_of (guint64 recording);
/* The memory for which @is_written says so holds something else now. */
typedef gboolean (*TinyHistoryPredicate) (TinyBuffer *buffer, gconstpointer data);
void tiny_history_expire (TinyHistoryPredicate is_written, gconstpointer data);
void tiny_history_expire_of (TinyBuffer *buffer);
/* @buffer, the memory of BUFFER @node, is given up: nothing that is alive reads it. */
void tiny_history_release (const TinyNode *node, TinyBuffer *buffer);

/* For the engine. */
gboolean tiny_history_is_empty (void);
/* A NULL @expression makes it stale. */
void tiny_history_keep (const TinyNode *node, TinyNode *expression);
/* Whether so many have come that the dead should be dropped. */
gboolean tiny_history_has_grown (void);
/* Drops all but those of the BUFFERs in @order. */
void tiny_history_retain (GPtrArray *order);
/* Exchanges those whose id is at least @first for what @change makes of them; @is_apart: they are of other recordings. */
typedef TinyNode *(*TinyHistoryChange) (TinyNode *node, gboolean is_apart);
void tiny_history_replace (TinyHistoryChange change, guint32 first);
/* Adds to @out the expressions whose id is at least @first: others cannot contain what has it. */
void tiny_history_list (guint32 first, GPtrArray *out);
/* Whether a gradient may flow from @node to its source @i. */
gboolean tiny_history_flows (const TinyNode *node, guint i);

G_END_DECLS
