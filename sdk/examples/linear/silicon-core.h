/* SPDX-License-Identifier: MIT
 *
 * silicon-core.h: a core of the simulated board. */
#pragma once

#include "silicon.h"

/* Runs every work-group of a dispatch, one after the other. FALSE: a fault, of which @fault, of 256 bytes, then
 * tells. */
bool core_run (const RingCommand *command, char *fault);
