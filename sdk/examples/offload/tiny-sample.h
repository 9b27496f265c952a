/* SPDX-License-Identifier: MIT
 *
 * tiny-sample.h: the two halves of the example: the tables (sample.c), and what the unit does. */
#pragma once

#include <tiny-plugin-host.h>

/* TINY_OPERATION_* that there is code for. */
#ifndef SAMPLE_FLAGS
#define SAMPLE_FLAGS 0
#endif

/* Whether the unit computes @operation; fills @out. */
void tiny_sample_claim (const TinyOperation *operation, TinyClaim *out);
/* Computes it; @memory is where each of its buffers begins. */
void tiny_sample_run (const TinyOperation *operation, void *const *memory);
