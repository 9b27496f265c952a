/* SPDX-License-Identifier: MIT
 *
 * kernel-files.h: the kernels of a file in the IR's text form. */
#pragma once

#include "engine/tiny-claims.h"
#include "schedule/tiny-schedule.h"

/* The kernels of a file. */
typedef struct {
  TinyGraph *graph;       /* of a kernel file; else NULL */
  TinySchedule *schedule; /* of a tensor graph; else NULL */
  GPtrArray *kernels;     /* SINKs */
  GArray *verdicts;       /* TinyVerdict: what the device was asked, and said */
} Kernels;

/* Reads a kernel (SINK of STOREs), or a tensor graph, which is scheduled for @device. */
gboolean kernels_read (const char *path, TinyDevice *device, Kernels *out, GError **error);
TinyGraph *kernels_get_graph (const Kernels *self);
void kernels_clear (Kernels *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Kernels, kernels_clear)
