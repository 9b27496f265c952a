/* SPDX-License-Identifier: MIT
 *
 * journal.h: the cases that an interrupted run has finished, for --resume. */
#pragma once

#include "run.h"

G_BEGIN_DECLS

typedef struct ConfJournal ConfJournal;

/* The journal of runs of this very file, device, driver, suite, level, seed, filters and environment, so that
 * another run neither takes its results nor ends it. With resume the results that it holds
 * become those of @running's cases; without, it begins anew. Gives NULL, after a warning, where it cannot
 * be written: the run is only not to be resumed then. */
ConfJournal *conf_journal_new (ConfRunning *running);
void conf_journal_add (ConfJournal *self, JsonObject *result);
/* @is_done: all cases have a result; nothing is kept then. */
void conf_journal_free (ConfJournal *self, gboolean is_done);

G_END_DECLS
