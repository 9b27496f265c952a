/* SPDX-License-Identifier: MIT
 *
 * tiny-shard.h: values that lie on several devices.
 *
 * The names of such devices are one text, separated by semicolons as in the grammar of DEV. An UNSHARD
 * stands for the whole value: who builds on it sees its shape and nothing of the pieces. Only what is
 * below an UNSHARD knows of them, and schedule/multi.h, which takes the graph apart by device. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

enum { TINY_SHARD_WHOLE = -1 /* as UNSHARD's axis: each device has all of it */ };

/* How many devices @devices names; 0 for NULL and "". */
guint tiny_devices_count (const char *devices);
/* Their names (transfer full). */
char **tiny_devices_split (const char *devices);

/* Where piece @i of @n of an axis of @size begins; that of piece @n: @size. Sizes differ by 1 at most, larger
 * ones first. */
gint64 tiny_shard_get_begin (gint64 size, guint n, guint i);

/* From @from up to before @to of @x along @axis. */
TinyNode *tiny_node_cut (TinyGraph *graph, TinyNode *x, guint axis, gint64 from, gint64 to);
/* @pieces one behind the other along @axis. */
TinyNode *tiny_node_join (TinyGraph *graph, TinyNode *const *pieces, guint n, guint axis);

/* Whether @x is made of numbers alone, which are on no device: each that uses it computes it. */
gboolean tiny_node_is_nowhere (TinyGraph *graph, TinyNode *x);
/* @x on @devices: a COPY to one; on several cut along @axis, which is at least as long, or whole on each. */
TinyNode *tiny_node_to (TinyGraph *graph, TinyNode *x, const char *devices, gint64 axis);
/* @x, cut where @like, an UNSHARD, is and on its devices. */
TinyNode *tiny_node_to_like (TinyGraph *graph, TinyNode *x, const TinyNode *like);

G_END_DECLS
