/* SPDX-License-Identifier: MIT
 *
 * node-users.h: which nodes of the tensor graph are alive, and memory that is not any more.
 *
 * A node is alive while a root, an expression of a history or a node that is alive has it: n_users counts those. The end of
 * a node is no more than that nobody has it; where it is a BUFFER its memory is free for what is made next, long before
 * the graph is swept. What was never anybody's is left to the sweep. Under the runtime's lock. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

void node_users_add (TinyNode *node);
void node_users_drop (TinyNode *node);

/* How many nodes are alive. */
guint node_users_count_alive (void);
/* Sets that, where a graph of so many takes the place of the one whose nodes were counted. */
void node_users_set_alive (guint n);

/* BUFFERs that have lost their last user since this was cleared; some may have one again. */
GPtrArray *node_users_get_lost (void);

G_END_DECLS
