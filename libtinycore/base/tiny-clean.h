/* SPDX-License-Identifier: MIT
 *
 * tiny-clean.h: texts of others, made fit for messages and terminals. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The text up to its NUL, or of @size bytes where it has none: as UTF-8, what is none replaced, and control
 * characters but newline and tab, which could steer a terminal, as “?” (transfer full). NULL gives "". A text for which
 * there is no memory is cut. */
char *tiny_clean_text (const char *text, gsize size);
/* From now on what g_printerr() writes is clean, whoever wrote it: a message quotes what others say. */
void tiny_clean_printerr (void);

/* The place of a function's error. At the end of the scope its message is UTF-8, as that of a GError has to be: names of
 * files in it are bytes. */
typedef GError **TinyMessage;
void tiny_clean_message (TinyMessage *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyMessage, tiny_clean_message)

G_END_DECLS
