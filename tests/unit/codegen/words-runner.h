/* SPDX-License-Identifier: MIT
 *
 * words-runner.h: linear programs over plain memory on REF, as a whole and point by point. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

enum { MAX_BUFFERS = 12 };

typedef struct {
  guint8 *data[MAX_BUFFERS];
  gsize sizes[MAX_BUFFERS]; /* of whole words */
  guint n;
} Memory;

void memory_copy (Memory *self, const Memory *from);
void memory_clear (Memory *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Memory, memory_clear)

/* REF's target of that architecture, with memory of its own enough for all. */
TinyTarget target_of (const char *arch);
/* @text says what it is when it fails. */
void run_linear (const TinyLinear *linear, const char *arch, Memory *memory, const char *text);
/* Runs each grid point by itself on the memory as it was; @whole is what all of them made of it. Fails
 * where two change one place in two ways, or where they do not make up the whole. */
void check_points (const TinyLinear *linear,
                   const Memory *before,
                   const Memory *whole,
                   const char *text);

/* Opens and closes REF. */
void runner_open (void);
void runner_close (void);
