/* SPDX-License-Identifier: MIT
 *
 * tiny-parallel.h: the same work on many things, on all processors. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Calls @func (item, @data) once for each of the @n @items, begun in their order, on as many threads as
 * there are processors, the caller's among them. Returns when all calls have. Where no more threads
 * can be had there are fewer. */
void tiny_parallel_run (GFunc func, gpointer const *items, guint n, gpointer data);

G_END_DECLS
