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

extern const FuzzTarget fuzz_targets[];
extern const guint fuzz_n_targets;
