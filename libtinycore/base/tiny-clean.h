/* SPDX-License-Identifier: MIT
 *
 * tiny-clean.h: texts of others, made fit for messages and terminals. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The text up to its NUL, or of @size bytes where it has none: as UTF-8, what is none replaced, and control
 * characters but newline and tab, which could steer a terminal, as “?” (transfer full). NULL gives "". */
char *tiny_clean_text (const char *text, gsize size);
/* From now on what g_printerr() writes is clean, whoever wrote it: a message quotes what others say. */
void tiny_clean_printerr (void);

G_END_DECLS
