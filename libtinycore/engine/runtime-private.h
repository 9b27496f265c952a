/* SPDX-License-Identifier: MIT
 *
 * runtime-private.h: what the files of the engine share about the tensor graph. */
#pragma once

#include "engine/tiny-runtime.h"

G_BEGIN_DECLS

/* The head of the ring of all roots. */
TinyRoot *tiny_runtime_get_roots (void);
TinyCounters *tiny_runtime_counters (void);
/* A BUFFER, or a RESHAPE or LIMIT of one. */
gboolean tiny_runtime_is_realized (const TinyNode *node);
/* Drops dead nodes and the buffers that only they held, when it is worth it or @force. Every
 * node that is not reached through a root is invalid afterwards. */
void tiny_runtime_sweep (gboolean force);

G_END_DECLS
