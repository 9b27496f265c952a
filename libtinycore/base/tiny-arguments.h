/* SPDX-License-Identifier: MIT
 *
 * tiny-arguments.h: what GOption takes of a command line in silence, and nobody means. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Fails for a value or an argument that is empty, for a value that is no text of this locale, and for an option
 * with a value that is given twice, where the last would count. What is wrong with single values is for
 * g_option_context_parse(), which comes after it. @entries end with %G_OPTION_ENTRY_NULL.
 * Errors: %G_OPTION_ERROR. */
gboolean
tiny_arguments_check (const GOptionEntry *entries, int argc, char *const *argv, GError **error);
/* The long names of the options that were given, in their order and ended by NULL (transfer container). */
const char **
tiny_arguments_list_given (const GOptionEntry *entries, int argc, char *const *argv);

G_END_DECLS
