/* SPDX-License-Identifier: MIT
 *
 * runtime-private.h: what the files of the engine share about the tensor graph. */
#pragma once

#include "engine/tiny-runtime.h"

G_BEGIN_DECLS

/* The head of the ring of all roots. */
TinyRoot *tiny_runtime_get_roots (void);
/* The head of the ring of those that a step may have to do with: that are in no memory, or want gradients. Who goes on along
 * next_active finds them; however many others a program keeps, they cost nothing. */
TinyRoot *tiny_runtime_get_active_roots (void);
/* Enters @root there or takes it out, as its node and its wishes are now; takes it out. */
void active_roots_update (TinyRoot *root);
void active_roots_leave (TinyRoot *root);
/* The head of the ring of those that want gradients, along next_wanting. */
TinyRoot *tiny_runtime_get_wanting_roots (void);
/* Another node is the value of @root. */
void tiny_runtime_move_root (TinyRoot *root, TinyNode *node);
TinyCounters *tiny_runtime_counters (void);
/* A BUFFER, or an UNSHARD of BUFFERs, or a RESHAPE or LIMIT of one. */
gboolean tiny_runtime_is_realized (const TinyNode *node);
/* Of such a node: the BUFFER or UNSHARD, which holds the same elements in the same order. */
TinyNode *tiny_runtime_get_memory (TinyNode *node);
/* Of a BUFFER or such an UNSHARD: how many BUFFERs it is, and BUFFER @i. */
guint tiny_runtime_count_pieces (const TinyNode *memory);
TinyNode *tiny_runtime_get_piece (TinyNode *memory, guint i);
gsize tiny_runtime_count_bytes (const TinyNode *memory);
/* Whether @node is memory, of which a BUFFER is among @buffers, a set of TinyBuffer. */
gboolean tiny_runtime_has_piece (TinyNode *node, GHashTable *buffers);
/* Exchanges @nodes, which were realised, for their @buffers wherever they are. */
void tiny_runtime_replace (TinyNode *const *nodes, TinyNode *const *buffers, guint n);
/* How many roots there ever were: older ones have lower numbers. */
guint64 tiny_runtime_count_roots (void);
/* How many BUFFERs there ever were, and (transfer container) the TinyBuffers of the first @number of them. */
gint64 tiny_runtime_count_buffers (void);
GHashTable *tiny_runtime_list_buffers (gint64 number);
/* How often a root became one that waits, or came to see memory of a recording: there is none that did not before while it is
 * the same. */
guint64 tiny_runtime_count_waiting (void);
/* Before memory in @written, a set of TinyBuffer, changes: realises every root that waits and is made of it by arithmetic;
 * @and_assignments: and all that waits to be assigned. */
gboolean
tiny_runtime_realize_readers (GHashTable *written, gboolean and_assignments, GError **error);
/* Drops dead nodes and the buffers that only they held, when it is worth it or @force. Every
 * node that is not reached through a root is invalid afterwards. */
void tiny_runtime_sweep (gboolean force);

G_END_DECLS
