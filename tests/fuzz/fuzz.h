/* SPDX-License-Identifier: MIT
 *
 * fuzz.h: readers of what may come from a stranger. */
#pragma once

#include <glib.h>

/* A reader, and inputs that it accepts, from which others are made. */
typedef struct {
  const char *name;
  /* True if it accepts them. */
  gboolean (*read) (const guint8 *data, gsize size);
  void (*add_seeds) (GPtrArray *seeds); /* of GBytes */
} FuzzTarget;

/* The input as a file, until the next one is; its path. */
const char *fuzz_as_file (const void *data, gsize size);

/* targets-messages.c */
gboolean fuzz_read_bundle (const guint8 *data, gsize size);
gboolean fuzz_read_answer (const guint8 *data, gsize size);
gboolean fuzz_read_description (const guint8 *data, gsize size);
gboolean fuzz_read_entry (const guint8 *data, gsize size);
void fuzz_seed_bundle (GPtrArray *seeds);
void fuzz_seed_answer (GPtrArray *seeds);
void fuzz_seed_description (GPtrArray *seeds);
void fuzz_seed_entry (GPtrArray *seeds);

extern const FuzzTarget fuzz_targets[];
extern const guint fuzz_n_targets;
