/* SPDX-License-Identifier: MIT
 *
 * tiny-opened-file.h: a file of somebody else's, of which parts are read when they are needed.
 *
 * Such files are never mapped: another process may make one shorter at any time, and what is mapped behind its end
 * ends the program (SIGBUS). A part that is not there any more is an error here. A file that another one takes the
 * place of stays readable as it was. One descriptor is open as long as somebody holds it. Any thread may read. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct TinyOpenedFile TinyOpenedFile;

/* Errors: %TINY_ERROR_IO with the path: it cannot be opened, or is no regular file. */
TinyOpenedFile *tiny_opened_file_new (const char *path, GError **error);
TinyOpenedFile *tiny_opened_file_ref (TinyOpenedFile *self);
void tiny_opened_file_unref (TinyOpenedFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyOpenedFile, tiny_opened_file_unref)

/* As it was opened with; and its size then. */
const char *tiny_opened_file_get_path (const TinyOpenedFile *self);
guint64 tiny_opened_file_get_size (const TinyOpenedFile *self);

/* The @n bytes from @offset on. Errors: %TINY_ERROR_IO with the file, the offset, what was wanted and what was found. */
gboolean tiny_opened_file_read (
    const TinyOpenedFile *self, guint64 offset, gpointer out, gsize n, GError **error);
/* (transfer full): the same in memory of its own, with a NUL behind it that does not count; also
 * %TINY_ERROR_OUT_OF_MEMORY. */
GBytes *tiny_opened_file_read_bytes (const TinyOpenedFile *self,
                                     guint64 offset,
                                     gsize n,
                                     GError **error);

G_END_DECLS
