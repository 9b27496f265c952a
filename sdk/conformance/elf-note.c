/* SPDX-License-Identifier: MIT
 *
 * elf-note.c: what tells one binary from another. ELF notes: System V gABI 4.1, chapter 5. */
#include "elf-note.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/tiny-opened-file.h"
#include "plugin/tiny-elf.h"

enum { PART_BYTES = 1 << 20 };

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
find_in_notes (TinyOpenedFile *file, guint64 at, guint64 end)
{
  ElfW (Nhdr) note;
  char name[4];
  guint8 id[64];
  while (at < end && tiny_opened_file_read (file, at, &note, sizeof note, NULL)) {
    guint64 text = at + sizeof note;
    guint64 data = text + (((guint64) note.n_namesz + 3) & ~(guint64) 3);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof name
        && note.n_descsz <= sizeof id
        && tiny_opened_file_read (file, text, name, sizeof name, NULL)
        && memcmp (name, "GNU", sizeof name) == 0
        && tiny_opened_file_read (file, data, id, note.n_descsz, NULL))
      return to_text (id, note.n_descsz);
    at = data + (((guint64) note.n_descsz + 3) & ~(guint64) 3);
  }
  return NULL;
}

char *
conf_file_build_id (const char *path)
{
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new (path, NULL);
  ElfW (Ehdr) head;
  char *found = NULL;
  if (file == NULL || !tiny_opened_file_read (file, 0, &head, sizeof head, NULL)
      || memcmp (head.e_ident, ELFMAG, SELFMAG) != 0)
    return g_strdup ("");
  for (guint i = 0; i < head.e_phnum && found == NULL; i++) {
    ElfW (Phdr) part;
    if (tiny_opened_file_read (file, head.e_phoff + (guint64) i * sizeof part, &part,
                               sizeof part, NULL)
        && part.p_type == PT_NOTE)
      found = find_in_notes (file, part.p_offset, part.p_offset + part.p_filesz);
  }
  return found ? found : g_strdup ("");
}

char *
conf_file_digest (const char *path)
{
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new (path, NULL);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guint8 *part = g_malloc (PART_BYTES);
  const guint64 size = file != NULL ? tiny_opened_file_get_size (file) : 0;
  gboolean good = size >= SELFMAG && size <= TINY_ELF_MAX_BYTES;
  for (guint64 done = 0, n; good && done < size; done += n) {
    n = MIN (size - done, PART_BYTES);
    good = tiny_opened_file_read (file, done, part, n, NULL)
           && (done > 0 || memcmp (part, ELFMAG, SELFMAG) == 0);
    g_checksum_update (sum, part, (gssize) n);
  }
  return g_strdup (good ? g_checksum_get_string (sum) : "");
}
