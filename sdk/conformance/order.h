/* SPDX-License-Identifier: MIT
 *
 * order.h: cases of group order that are not in its own file. */
#pragma once

#include "script.h"

G_BEGIN_DECLS

/* Launches in place, long series of commands (order-series.c). */
void conf_list_repeats (ConfList *out);
/* Everything from another thread (order-threads.c). */
void conf_list_elsewhere (ConfList *out);

G_END_DECLS
