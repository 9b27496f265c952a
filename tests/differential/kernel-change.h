/* SPDX-License-Identifier: MIT
 *
 * kernel-change.h: kernel texts changed by chance.
 *
 * Terms of the text form, so that a good part still is IR: numbers, dtypes, operations, operands and kinds become
 * others, terms are put in place of others of their dtype, indices are wrapped, read from memory or gated. */
#pragma once

#include <glib.h>

/* (transfer full): @text with one to four changes. */
char *kernel_change (const char *text, GRand *random);
