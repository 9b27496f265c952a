/* SPDX-License-Identifier: MIT
 *
 * elf-note.c: what tells one binary from another. ELF notes: System V gABI 4.1, chapter 5. */
#include "elf-note.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "plugin/tiny-elf.h"

static gboolean
copy_out (GMappedFile *file, guint64 offset, void *out, gsize n)
{
  gsize size = g_mapped_file_get_length (file);
  if (offset > size || n > size - offset)
    return FALSE;
  memcpy (out, g_mapped_file_get_contents (file) + offset, n);
  return TRUE;
}

static char *
to_text (const guint8 *bytes, gsize n)
{
  GString *out = g_string_new (NULL);
  for (gsize i = 0; i < n; i++)
    g_string_append_printf (out, "%02x", bytes[i]);
  return g_string_free (out, FALSE);
}

/* Of the notes in [@at, @end). */
static char *
find_in_notes (GMappedFile *file, guint64 at, guint64 end)
{
  ElfW (Nhdr) note;
  char name[4];
  guint8 id[64];
  while (at < end && copy_out (file, at, &note, sizeof note)) {
    guint64 text = at + sizeof note;
    guint64 data = text + (((guint64) note.n_namesz + 3) & ~(guint64) 3);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof name
        && note.n_descsz <= sizeof id && copy_out (file, text, name, sizeof name)
        && memcmp (name, "GNU", sizeof name) == 0 && copy_out (file, data, id, note.n_descsz))
      return to_text (id, note.n_descsz);
    at = data + (((guint64) note.n_descsz + 3) & ~(guint64) 3);
  }
  return NULL;
}

char *
conf_file_build_id (const char *path)
{
  g_autoptr (GMappedFile) file = g_mapped_file_new (path, FALSE, NULL);
  ElfW (Ehdr) head;
  char *found = NULL;
  if (file == NULL || !copy_out (file, 0, &head, sizeof head)
      || memcmp (head.e_ident, ELFMAG, SELFMAG) != 0)
    return g_strdup ("");
  for (guint i = 0; i < head.e_phnum && found == NULL; i++) {
    ElfW (Phdr) part;
    if (copy_out (file, head.e_phoff + (guint64) i * sizeof part, &part, sizeof part)
        && part.p_type == PT_NOTE)
      found = find_in_notes (file, part.p_offset, part.p_offset + part.p_filesz);
  }
  return found ? found : g_strdup ("");
}

char *
conf_file_digest (const char *path)
{
  g_autoptr (GMappedFile) file = g_mapped_file_new (path, FALSE, NULL);
  char magic[SELFMAG];
  const gboolean is_elf = file != NULL && copy_out (file, 0, magic, sizeof magic)
                          && memcmp (magic, ELFMAG, SELFMAG) == 0
                          && g_mapped_file_get_length (file) <= TINY_ELF_MAX_BYTES;
  return is_elf
             ? g_compute_checksum_for_data (G_CHECKSUM_SHA256,
                                            (const guchar *) g_mapped_file_get_contents (file),
                                            g_mapped_file_get_length (file))
             : g_strdup ("");
}
