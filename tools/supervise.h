/* SPDX-License-Identifier: MIT
 *
 * supervise.h: a process that waits for the one that loads a plugin, and ends what that one started. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Returns in a new process, a child of this one, which does the work from here on. This one ends as the child does,
 * once nothing that the child started is left, wherever in the tree of processes that has gone: in a session of its own,
 * or behind a parent that has ended. SIGTERM tells it that the time is over: it ends the child then.
 *
 * Returns in this process where the system does not give orphans to it, or has no room for another process. */
void supervise (void);

G_END_DECLS
