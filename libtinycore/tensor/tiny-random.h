/* SPDX-License-Identifier: MIT
 *
 * tiny-random.h: the counter-based generator behind all random numbers. */
#pragma once

#include <glib.h>

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* Threefry2x32 with 20 rounds, on the host. */
void tiny_threefry2x32 (const guint32 key[2], const guint32 counter[2], guint32 out[2]);
/* A key for whoever draws in a way of its own; under the runtime's lock. */
void tiny_random_key (guint32 key[2]);
/* The same as nodes: @x holds the counter's words (u32) and becomes the result. */
void tiny_build_threefry (TinyBuild *self, const guint32 key[2], TinyNode *x[2]);

G_END_DECLS
