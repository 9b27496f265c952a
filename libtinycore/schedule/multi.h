/* SPDX-License-Identifier: MIT
 *
 * multi.h: values on several devices, while a graph is taken apart by device.
 *
 * Each such value becomes a node for each device: its piece of it, or all of it. A rule may always ask for
 * all of it, which costs copies and is never wrong; what nobody uses of that is no part of the graph, so
 * asking costs nothing by itself. */
#pragma once

#include "ir/tiny-shard.h"
#include "schedule/plan.h"

G_BEGIN_DECLS

typedef struct {
  guint n;
  const char *const *names; /* interned in the graph */
  const char *text;         /* all of them */
} MultiDevices;

typedef struct {
  const MultiDevices *on;
  gint64 axis;       /* that it is cut along, or TINY_SHARD_WHOLE */
  TinyNode **pieces; /* by device */
} Multi;

typedef struct {
  Plan *plan;
  TinyGraph *graph;
  TinyNodeMap singles; /* node → node: on one device, or on none */
  TinyNodeMap multis;  /* node → Multi */
  GHashTable *devices; /* text → MultiDevices */
  GError **error;
} Apart;

/* One with no pieces yet. */
Multi *multi_new (Apart *self, const MultiDevices *on, gint64 axis);
/* As @like is cut, along @axis where that is no longer the same one. */
static inline Multi *
multi_new_like (Apart *self, const Multi *like, gint64 axis)
{
  return multi_new (self, like->on, axis);
}
/* Where its piece @i begins along the axis that it is cut along; @i may be the number of pieces. */
gint64 multi_get_begin (const Multi *self, guint i);

/* @x, on one device or none, on @device. */
TinyNode *multi_copy (Apart *self, TinyNode *x, const char *device);
/* From @from up to before @to along the axis that @x is cut along, on @device. */
TinyNode *multi_take (Apart *self, const Multi *x, const char *device, gint64 from, gint64 to);
/* All of @x, on @device. */
TinyNode *multi_get_whole (Apart *self, const Multi *x, const char *device);
/* Source @i of @node as it has to be on device @at for what is cut as @like, of which only that and not the
 * pieces are looked at from device @at on; NULL and an error where it is on another device. */
TinyNode *multi_fit (Apart *self, const TinyNode *node, guint i, const Multi *like, guint at);
/* As multi_fit(), but all of it. */
TinyNode *
multi_fit_whole (Apart *self, const TinyNode *node, guint i, const MultiDevices *on, guint at);

static inline Multi *
multi_get (Apart *self, const TinyNode *node)
{
  return tiny_node_map_get (&self->multis, node);
}

/* multi-rules.c: what @node, over at least one such source, becomes; NULL and an error where that cannot be.
 * COPY and UNSHARD are multi.c's own. */
Multi *multi_apply_rule (Apart *self, TinyNode *node);

G_END_DECLS
