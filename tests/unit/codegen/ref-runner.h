/* SPDX-License-Identifier: MIT
 *
 * ref-runner.h: runs linear programs with work-groups on REF, which finds missing barriers. */
#pragma once

#include "tiny-plugin.h"

#include <glib.h>

/* Runs @linear over @buffers, one for each parameter; fails the test where REF refuses it. @opts are
 * for the message. */
void run_on_ref (const TinyLinear *linear,
                 gpointer *buffers,
                 const gint64 *variables,
                 const char *opts);
