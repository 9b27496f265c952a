/* SPDX-License-Identifier: MIT
 *
 * tiny-elf.h: looks at a shared object without running any of it.
 *
 * What is read is what the loader would read: program headers and the dynamic section, so that a
 * file without sections is understood as well. Every part is copied out of the file within bounds: a
 * file that is truncated, forged or rewritten meanwhile gives an error and nothing else. The work is linear in the
 * file: one whose tables overlap, so that more than some times its size would be read, is damaged. */
#pragma once

#include <link.h>

#include <glib.h>

G_BEGIN_DECLS

/* What is larger is refused when its header has been read. */
enum { TINY_ELF_MAX_BYTES = 1 << 30 };

/* A row of the dynamic symbol table. Texts belong to the TinyElf. */
typedef struct {
  const char *name;
  const char *version; /* that it has or asks for, or NULL */
  guint64 value;
  gboolean is_defined;
  gboolean is_exported; /* defined, global or weak, and not hidden */
  gboolean is_weak;
} TinyElfSymbol;

/* The work of reading one file. */
typedef struct {
  guint64 left; /* what may still be read; 0: too much was wanted, and nothing more is read */
  guint64 refused; /* bytes for which there was no memory, or 0 */
} TinyElfWork;

/* "libc.so.6 is to have GLIBC_2.34". */
typedef struct {
  const char *library, *version;
} TinyElfVersion;

typedef struct {
  char *path;
  int fd;
  guint64 size;
  TinyElfWork *work;
  ElfW (Ehdr) head;
  ElfW (Phdr) * segments;
  ElfW (Shdr) * sections; /* there need be none */
  ElfW (Dyn) * dynamic;   /* up to DT_NULL */
  guint n_segments, n_sections, n_dynamic;
  char *texts; /* of the dynamic section, NUL-terminated */
  guint64 texts_size;
  GPtrArray *needed; /* of const char *: DT_NEEDED, in order */
  /* What tiny_elf_read_symbols() adds. */
  TinyElfSymbol *symbols; /* without the first row, which is empty */
  guint n_symbols;
  GArray *wanted;      /* of TinyElfVersion: versions it asks of libraries */
  GPtrArray *versions; /* of const char *: versions it has */
} TinyElf;

/* Errors, each saying what was found without the path: %TINY_ERROR_IO there is no file that can be read,
 * %TINY_ERROR_FORMAT it is something else than ELF or larger than %TINY_ELF_MAX_BYTES, %TINY_ERROR_PLUGIN it is no
 * shared object for this machine, or damaged, %TINY_ERROR_OUT_OF_MEMORY. */
TinyElf *tiny_elf_open (const char *path, GError **error);
gboolean tiny_elf_read_symbols (TinyElf *self, GError **error);
void tiny_elf_close (TinyElf *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyElf, tiny_elf_close)

/* The first value of a tag of the dynamic section. */
gboolean tiny_elf_find_tag (const TinyElf *self, gint64 tag, guint64 *out_value);
/* A text of the dynamic section, or NULL. */
const char *tiny_elf_get_text (const TinyElf *self, guint64 offset);
/* @n bytes of the file, or of memory as it lies after loading (transfer full), or NULL. */
gpointer tiny_elf_read (const TinyElf *self, guint64 offset, guint64 n);
gpointer tiny_elf_read_memory (const TinyElf *self, guint64 address, guint64 n);

/* A section's bytes, by type or by name (NULL: any), or NULL; @out_section may be NULL. */
gpointer tiny_elf_read_section (const TinyElf *self,
                                guint type,
                                const char *name,
                                ElfW (Shdr) * out_section);
/* The bytes of all sections whose name begins so. */
guint64 tiny_elf_measure_sections (const TinyElf *self, const char *prefix);

/* The description of the first note of that owner and type, of @n bytes (transfer full), or NULL;
 * *@out_size may be more than a caller wants of it. */
gpointer
tiny_elf_read_note (const TinyElf *self, const char *owner, guint type, guint64 *out_size);
/* The linker's identification of the file as text, or NULL. */
char *tiny_elf_read_build_id (const TinyElf *self);

/* "x86_64", …, for e_machine. */
const char *tiny_elf_name_machine (guint machine);

/* FALSE: it was not read to the end, for want of memory or because more was wanted than any real file gives. */
gboolean tiny_elf_check_work (const TinyElf *self, GError **error);
/* Whether @self is a shared object for this machine. */
gboolean tiny_elf_check_machine (const TinyElf *self, GError **error);
/* The ABI that its note (TINY_PLUGIN_NOTE) says it speaks, and whether this core serves it; a file
 * without a note passes. */
gboolean tiny_elf_check_note (const TinyElf *self, gboolean *out_has_note, GError **error);

/* Whether @path is a shared object for this machine that exports this ABI's entry symbol, was built
 * without a sanitizer that this program lacks, and, where it has a note, speaks an ABI that this core serves.
 * Errors: those of tiny_elf_open() and %TINY_ERROR_ABI, each saying what was found. */
gboolean tiny_elf_check (const char *path, GError **error);

G_END_DECLS
