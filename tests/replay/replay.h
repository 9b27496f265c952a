/* SPDX-License-Identifier: MIT
 *
 * replay.h: what a corpus gives, and what its cases may say while they run. */
#pragma once

#include "tiny.h"

/* A program whose schedules, kernels and launches are one line. It runs in a process of its own. */
typedef struct {
  char *name;
  gboolean (*run) (gconstpointer data, GError **error);
  gconstpointer data;
  const char *targets; /* names with spaces between them, or NULL: all */
} ReplayCase;

/* Each adds its cases. */
typedef void (*ReplayCorpus) (GArray *cases);
void replay_add_models (GArray *cases);
void replay_add_attention (GArray *cases);
void replay_add_examples (GArray *cases);
void replay_add_inventory (GArray *cases);
void replay_add_random (GArray *cases);
void replay_add_scans (GArray *cases);

/* @format makes the name. The result may be changed until the next one is added. */
ReplayCase *replay_add (GArray *cases,
                        gboolean (*run) (gconstpointer, GError **),
                        gconstpointer data,
                        const char *format,
                        ...) G_GNUC_PRINTF (4, 5);

/* Forgets the schedules, launches and memory so far: those of setting the case up. */
void replay_begin (void);
/* Forgets the launches so far. */
void replay_begin_launches (void);
