/* SPDX-License-Identifier: MIT
 *
 * units.h: the two halves of the example: the tables (units-plugin.c), and what the unit does. */
#pragma once

#include "tiny-plugin-kit.h"

/* Whether the unit computes @operation; fills @out. */
void units_claim (const TinyOperation *operation, TinyClaim *out);
/* Computes it; @memory is where each of its buffers begins. */
void units_run (const TinyOperation *operation, void *const *memory);
