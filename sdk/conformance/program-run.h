/* SPDX-License-Identifier: MIT
 *
 * program-run.h: a random program on a device against the model, and a failing one made smaller. */
#pragma once

#include "program.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

typedef struct {
  guint64 n_skipped; /* programs too large for the model */
  guint64 n_elements, n_exact, n_unknown;
} ProgramTally;

/* What is wrong with it on @device (NULL: the default one), which computes as @target says; NULL: nothing. @text,
 * which may be NULL, gets its steps. */
char *program_run (const Program *self,
                   const char *device,
                   const TinyTarget *target,
                   ProgramTally *tally,
                   GString *text);

/* Runs a simpler program: what is wrong with it, or NULL. */
typedef char *(*ProgramRun) (const Program *simpler, gpointer data);
/* Makes @self, of which @problem is known, as simple as it gets with a problem of that kind. */
void program_shrink (Program *self, const char *problem, ProgramRun run, gpointer data);

G_END_DECLS
