/* SPDX-License-Identifier: MIT
 *
 * decompose-setup.h: an expression over buffers, decomposed for a target and run on REF. */
#pragma once

#include "ir/tiny-node.h"

enum { N_MOST = 40000 };

/* The least set: 32 bits and f32 computed with (64 bits as well when @wide), the rest stored. */
TinyTarget least_target (gboolean wide);
/* 32 bits and bools that nothing can be stored as: no i64, no byte, no f16. */
TinyTarget small_target (void);
/* That, and the ops of 32 bits that shader languages have. */
TinyTarget shader_target (void);
/* What a CPU of today declares: all but transcendentals, f16 only cast. */
TinyTarget cpu_target (void);
/* Least (0), a CPU (1), small (2), a shader language (3). */
TinyTarget target_number (gint i);

typedef struct {
  TinyGraph *graph;
  TinyTarget target;
  TinyNode *args[3], *index;
  guint lanes;
} Setup;

/* What @dtype is in memory: where a target cannot store it, each element lies in a word of its own. */
TinyDType memory_dtype (const TinyTarget *target, TinyDType dtype);
/* @args load from buffers 1 to @n. Free @graph. */
void setup_init (
    Setup *self, const TinyTarget *target, guint n, const TinyDType *dtypes, guint lanes);
/* Fails where @root needs what the target does not declare. @data[0] is the output. */
void run (Setup *setup, TinyNode *root, guint n_elements, void *const *data);

/* Opens and closes REF. */
void setup_open (void);
void setup_close (void);
