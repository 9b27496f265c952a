/* SPDX-License-Identifier: MIT
 *
 * keep-computed.h: what a program computes again and again is stored.
 *
 * A value that is held, but was only read through something else, is not in memory: whoever reads it next computes it
 * again, and in a loop all that led to it. The first two such readers leave a mark; for the third it is an output as well. */
#pragma once

#include "engine/tiny-request.h"

G_BEGIN_DECLS

/* Bytes of all kept values that are alive. Tests make it less. */
extern gssize keep_computed_budget;

/* Adds values to the nodes of @request, whose order is known: those that were computed twice and are read by others. */
void keep_computed_add (TinyRequest *request);
/* Counts the values that @request computed and does not store: those that the program holds and that are worth storing,
 * and those that were counted before. */
void keep_computed_note (const TinyRequest *request);

G_END_DECLS
