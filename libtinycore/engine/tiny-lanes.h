/* SPDX-License-Identifier: MIT
 *
 * tiny-lanes.h: launches on several devices, side by side. */
#pragma once

#include "engine/launches-private.h"

G_BEGIN_DECLS

/* What of a list of launches is done in which lane: one for each device, and one for all copies
 * between devices. */
typedef struct TinyLanes TinyLanes;

/* @launches must not change as long as this is used, and outlive it. */
TinyLanes *tiny_lanes_new (TinyLaunches *launches);
void tiny_lanes_free (TinyLanes *self);
/* With one lane there is nothing to do side by side. */
guint tiny_lanes_get_n (TinyLanes *self);

/* Runs launches [first, end): kernels of one device, or one copy. From any thread. */
typedef gboolean (*TinyLanesRun) (TinyLaunches *launches,
                                  guint first,
                                  guint end,
                                  GError **error);
/* Runs all with @run, each after those before it in the list that it has memory in common with which
 * one of them writes, and returns when all is done. After a failure, which is what is returned, nothing
 * more is begun. */
gboolean tiny_lanes_submit (TinyLanes *self, TinyLanesRun run, GError **error);

G_END_DECLS
