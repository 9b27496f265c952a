/* SPDX-License-Identifier: MIT
 *
 * serve.h: a worker, from its inside.
 *
 * A worker is asked and answers on one descriptor, a line at a time:
 *
 *   list        a line {"case": {"name", "level", "flags", "seconds"}} or {"absent": {"name",
 *               "reason"}} for each, and {"end": N}
 *   run NAME    {"result": {…}}, as conf_trial_run() gives
 *
 * Before that it says {"ready": {…}} with what the opened subject is, or {"error": …, "code": N},
 * and no more after that. What ends it says "!crash SIGNAL" or "!exit" and the stack, a frame a line. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The descriptor that a worker finds its end on. */
enum { CONF_WORKER_FD = 3 };

/* argv: "--serve", "open", "fresh" or "climb", SPEC, PATH, ID, SEED. Returns the exit status. */
int conf_serve (int argc, char **argv);

/* crash.c: from here on a crash or exit writes its stack to @fd. */
void conf_crash_watch (int fd);
/* The end of the process is meant. */
void conf_crash_expect_exit (void);

G_END_DECLS
