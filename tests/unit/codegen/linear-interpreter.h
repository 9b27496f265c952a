/* SPDX-License-Identifier: MIT
 *
 * linear-interpreter.h: runs linear programs and kernels in the simplest way there is. */
#pragma once

#include "codegen/tiny-codegen.h"

/* Runs @linear over @buffers, one for each parameter. Fails the test on what the contract does not
 * allow: access outside a buffer, sources after their user, operands that do not fit. Returns the most
 * rounds that the loops of a grid point made. */
guint64 interpret_linear (const TinyLinear *linear, gpointer *buffers, const gint64 *variables);

/* Runs the kernel @sink itself, as the IR's definition says: every store for every combination of
 * its ranges. */
void
interpret_kernel (TinyGraph *graph, TinyNode *sink, gpointer *buffers, const gint64 *variables);
