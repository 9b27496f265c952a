/* SPDX-License-Identifier: MIT
 *
 * tiny-elf.c: reads what the loader would read of a shared object. ELF: System V ABI, gABI 4.1,
 * chapters 4 and 5; symbol versions and the GNU hash table: Linux Standard Base 5.0, chapter 10.
 *
 * Nothing is mapped: a file that somebody shortens while it is mapped ends the program that looks. */
#include "plugin/tiny-elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"

/* More than any table of a real file, so that a forged size asks for no memory. */
enum { MAX_TABLE = 256 << 20, MAX_NOTES = 1 << 20, MAX_VERSIONS = 4096 };
/* The loader and its readers look at each byte once or twice. A call of the system costs as many bytes. */
enum { MOST_TIMES = 8, MOST_MORE = 4 << 20, CALL_COSTS = 64 };

/* @why, but for want of memory. */
static gboolean
refuse (const TinyElf *self, GError **error, const char *why)
{
  if (self->work->refused > 0)
    return tiny_memory_fail (self->work->refused, "its tables", error);
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_PLUGIN, why);
  return FALSE;
}

/* Who names a disk image by mistake waits for nobody to read it. */
static gboolean
check_size (const TinyElf *self, GError **error)
{
  if (self->size <= TINY_ELF_MAX_BYTES)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
               "it has %" G_GUINT64_FORMAT " bytes, and a plugin's file %d MiB at most",
               self->size, TINY_ELF_MAX_BYTES >> 20);
  return FALSE;
}

/* ---- bytes ---- */
/* FALSE, from then on: more work is wanted than any real file gives. */
static gboolean
spend (const TinyElf *self, guint64 n)
{
  const gboolean is_paid = n < self->work->left;
  self->work->left = is_paid ? self->work->left - n : 0;
  return is_paid;
}

gboolean
tiny_elf_check_work (const TinyElf *self, GError **error)
{
  return (self->work->left > 0 && self->work->refused == 0)
         || refuse (self, error,
                    "damaged: its tables overlap, or are longer than those of any plugin");
}

static gboolean
read_at (const TinyElf *self, guint64 offset, void *out, guint64 n)
{
  if (offset > self->size || n > self->size - offset || !spend (self, n + CALL_COSTS))
    return FALSE;
  for (guint64 done = 0; done < n;) {
    gssize got = pread (self->fd, (guint8 *) out + done, n - done, (off_t) (offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return FALSE;
    done += (guint64) got;
  }
  return TRUE;
}

gpointer
tiny_elf_read (const TinyElf *self, guint64 offset, guint64 n)
{
  if (offset > self->size || n > self->size - offset || n > MAX_TABLE)
    return NULL;
  if (n >= self->work->left) { /* no memory for what is not read */
    self->work->left = 0;
    return NULL;
  }
  g_autofree guint8 *out = g_try_malloc (n + 1);
  if (out == NULL) {
    self->work->refused = n + 1;
    return NULL;
  }
  out[n] = 0; /* a text ends, whatever the file says */
  return read_at (self, offset, out, n) ? g_steal_pointer (&out) : NULL;
}

static gboolean
find_offset (const TinyElf *self, guint64 address, guint64 n, guint64 *out)
{
  for (guint i = 0; i < self->n_segments && spend (self, 1); i++) {
    const ElfW (Phdr) *segment = &self->segments[i];
    guint64 at = address - segment->p_vaddr;
    if (segment->p_type != PT_LOAD || address < segment->p_vaddr || at > segment->p_filesz
        || n > segment->p_filesz - at)
      continue;
    *out = segment->p_offset + at;
    return TRUE;
  }
  return FALSE;
}

gpointer
tiny_elf_read_memory (const TinyElf *self, guint64 address, guint64 n)
{
  guint64 offset;
  return find_offset (self, address, n, &offset) ? tiny_elf_read (self, offset, n) : NULL;
}

/* ---- the head ---- */
static gboolean
read_head (TinyElf *self, GError **error)
{
  char magic[SELFMAG];
  if (!read_at (self, 0, magic, SELFMAG) || memcmp (magic, ELFMAG, SELFMAG) != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "not a shared object: it %s",
                 self->size == 0 ? "is empty" : "does not begin as an ELF file does");
    return FALSE;
  }
  if (!read_at (self, 0, &self->head, sizeof self->head))
    return refuse (self, error, "truncated: the ELF header is not complete");
  return TRUE;
}

static gboolean
read_segments (TinyElf *self, GError **error)
{
  const ElfW (Ehdr) *head = &self->head;
  guint64 end = head->e_shoff + (guint64) head->e_shnum * head->e_shentsize;
  if (head->e_shnum != 0 && (head->e_shentsize != sizeof (ElfW (Shdr)) || end < head->e_shoff))
    return refuse (self, error, "damaged: the ELF section table is not as it should be");
  if (head->e_shnum != 0 && end > self->size)
    return refuse (self, error,
                   "truncated: the ELF section table lies behind the end of the file");
  self->sections = tiny_elf_read (self, head->e_shnum > 0 ? head->e_shoff : 0,
                                  head->e_shnum * sizeof (ElfW (Shdr)));
  if (self->sections == NULL)
    return refuse (self, error, "truncated: the ELF section table cannot be read");
  self->n_sections = head->e_shnum;
  if (head->e_phnum != 0 && head->e_phentsize != sizeof (ElfW (Phdr)))
    return refuse (self, error, "damaged: the ELF program headers are not as they should be");
  self->segments = tiny_elf_read (self, head->e_phnum > 0 ? head->e_phoff : 0,
                                  head->e_phnum * sizeof (ElfW (Phdr)));
  if (self->segments == NULL)
    return refuse (self, error,
                   "truncated: the program headers lie behind the end of the file");
  self->n_segments = head->e_phnum;
  return TRUE;
}

static gboolean
read_dynamic (TinyElf *self, GError **error)
{
  for (guint i = 0; i < self->n_segments; i++) {
    const ElfW (Phdr) *segment = &self->segments[i];
    if (segment->p_type != PT_DYNAMIC)
      continue;
    const guint64 n = segment->p_filesz / sizeof (ElfW (Dyn));
    self->dynamic = tiny_elf_read (self, segment->p_offset, n * sizeof (ElfW (Dyn)));
    if (self->dynamic == NULL)
      return refuse (self, error,
                     "truncated: the dynamic section lies behind the end of the file");
    while (self->n_dynamic < n && self->dynamic[self->n_dynamic].d_tag != DT_NULL)
      self->n_dynamic++;
    return TRUE;
  }
  return refuse (self, error, "a shared object without symbols");
}

gboolean
tiny_elf_find_tag (const TinyElf *self, gint64 tag, guint64 *out_value)
{
  for (guint i = 0; i < self->n_dynamic; i++) {
    const ElfW (Dyn) *row = &self->dynamic[i];
    if ((gint64) row->d_tag != tag)
      continue;
    *out_value = row->d_un.d_val;
    return TRUE;
  }
  return FALSE;
}

const char *
tiny_elf_get_text (const TinyElf *self, guint64 offset)
{
  return offset < self->texts_size ? self->texts + offset : NULL;
}

static gboolean
read_texts (TinyElf *self, GError **error)
{
  guint64 at = 0;
  if (!tiny_elf_find_tag (self, DT_STRTAB, &at)
      || !tiny_elf_find_tag (self, DT_STRSZ, &self->texts_size))
    return refuse (self, error, "a shared object without symbols");
  self->texts = tiny_elf_read_memory (self, at, self->texts_size);
  if (self->texts == NULL)
    return refuse (self, error, "truncated: its texts lie behind the end of the file");
  for (guint i = 0; i < self->n_dynamic; i++) {
    const ElfW (Dyn) *row = &self->dynamic[i];
    const char *name
        = row->d_tag == DT_NEEDED ? tiny_elf_get_text (self, row->d_un.d_val) : NULL;
    if (name != NULL)
      g_ptr_array_add (self->needed, (gpointer) name);
  }
  return TRUE;
}

/* ---- sections ---- */
static gboolean
get_section (const TinyElf *self, guint i, ElfW (Shdr) * out)
{
  if (i >= self->n_sections)
    return FALSE;
  *out = self->sections[i];
  return TRUE;
}

/* The names of sections, NUL-terminated. */
static char *
read_section_names (const TinyElf *self, guint64 *out_size)
{
  ElfW (Shdr) names;
  if (!get_section (self, self->head.e_shstrndx, &names) || names.sh_type != SHT_STRTAB)
    return NULL;
  *out_size = names.sh_size;
  return tiny_elf_read (self, names.sh_offset, names.sh_size);
}

gpointer
tiny_elf_read_section (const TinyElf *self,
                       guint type,
                       const char *name,
                       ElfW (Shdr) * out_section)
{
  guint64 size = 0;
  g_autofree char *names = name ? read_section_names (self, &size) : NULL;
  ElfW (Shdr) section;
  for (guint i = 0; get_section (self, i, &section); i++)
    if (section.sh_type == type
        && (name == NULL
            || (names != NULL && section.sh_name < size
                && g_str_equal (names + section.sh_name, name)))) {
      if (out_section != NULL)
        *out_section = section;
      return tiny_elf_read (self, section.sh_offset, section.sh_size);
    }
  return NULL;
}

guint64
tiny_elf_measure_sections (const TinyElf *self, const char *prefix)
{
  guint64 size = 0, sum = 0;
  g_autofree char *names = read_section_names (self, &size);
  ElfW (Shdr) section;
  for (guint i = 0; names != NULL && get_section (self, i, &section); i++)
    if (section.sh_name < size && g_str_has_prefix (names + section.sh_name, prefix))
      sum += section.sh_size;
  return sum;
}

/* ---- symbols ---- */
/* How many rows the symbol table has: by the hash tables, which is all that the loader knows; an
 * empty GNU table counts no undefined ones, but then there are sections. */
static guint64
count_symbols (const TinyElf *self)
{
  guint64 n = 0, at;
  ElfW (Shdr) section;
  for (guint i = 0; get_section (self, i, &section); i++)
    if (section.sh_type == SHT_DYNSYM)
      n = section.sh_size / sizeof (ElfW (Sym));
  g_autofree guint32 *hash
      = tiny_elf_find_tag (self, DT_HASH, &at) ? tiny_elf_read_memory (self, at, 8) : NULL;
  if (hash != NULL)
    n = MAX (n, hash[1]);
  g_autofree guint32 *gnu
      = tiny_elf_find_tag (self, DT_GNU_HASH, &at) ? tiny_elf_read_memory (self, at, 16) : NULL;
  if (gnu == NULL || n > 0)
    return n;
  guint64 buckets_at = at + 16 + (guint64) gnu[2] * sizeof (ElfW (Addr));
  guint64 chains_at = buckets_at + (guint64) gnu[0] * 4;
  g_autofree guint32 *buckets = tiny_elf_read_memory (self, buckets_at, (guint64) gnu[0] * 4);
  guint32 last = 0;
  for (guint32 i = 0; buckets != NULL && i < gnu[0]; i++)
    last = MAX (last, buckets[i]);
  for (; last >= gnu[1] && last < G_MAXUINT32; last++) {
    g_autofree guint32 *link
        = tiny_elf_read_memory (self, chains_at + (guint64) (last - gnu[1]) * 4, 4);
    if (link == NULL || (link[0] & 1) != 0)
      return link != NULL ? (guint64) last + 1 : 0;
  }
  return gnu[1];
}

/* Names by version index. Entries of both tables are linked by distances from each to the next. */
static void
read_wanted (TinyElf *self, GHashTable *names)
{
  guint64 at, n_libraries;
  if (!tiny_elf_find_tag (self, DT_VERNEED, &at)
      || !tiny_elf_find_tag (self, DT_VERNEEDNUM, &n_libraries))
    return;
  for (guint64 i = 0; i < MIN (n_libraries, G_MAXUINT16); i++) {
    g_autofree ElfW (Verneed) *row = tiny_elf_read_memory (self, at, sizeof *row);
    if (row == NULL)
      return;
    guint64 entry_at = at + row->vn_aux;
    for (guint j = 0; j < row->vn_cnt; j++) {
      g_autofree ElfW (Vernaux) *entry = tiny_elf_read_memory (self, entry_at, sizeof *entry);
      if (entry == NULL)
        return;
      TinyElfVersion wanted = { tiny_elf_get_text (self, row->vn_file),
                                tiny_elf_get_text (self, entry->vna_name) };
      if (wanted.library != NULL && wanted.version != NULL) {
        if (self->wanted->len == MAX_VERSIONS)
          self->work->left = 0;
        else
          g_array_append_val (self->wanted, wanted);
        g_hash_table_insert (names, GUINT_TO_POINTER (entry->vna_other & 0x7fff),
                             (gpointer) wanted.version);
      }
      if (entry->vna_next == 0)
        break;
      entry_at += entry->vna_next;
    }
    if (row->vn_next == 0)
      return;
    at += row->vn_next;
  }
}

static void
read_versions (TinyElf *self, GHashTable *names)
{
  guint64 at, n;
  if (!tiny_elf_find_tag (self, DT_VERDEF, &at) || !tiny_elf_find_tag (self, DT_VERDEFNUM, &n))
    return;
  for (guint64 i = 0; i < MIN (n, G_MAXUINT16); i++) {
    g_autofree ElfW (Verdef) *row = tiny_elf_read_memory (self, at, sizeof *row);
    g_autofree ElfW (Verdaux) *entry
        = row ? tiny_elf_read_memory (self, at + row->vd_aux, sizeof *entry) : NULL;
    const char *name = entry ? tiny_elf_get_text (self, entry->vda_name) : NULL;
    if (name == NULL)
      return;
    if (self->versions->len == MAX_VERSIONS)
      self->work->left = 0;
    g_ptr_array_add (self->versions, (gpointer) name);
    g_hash_table_insert (names, GUINT_TO_POINTER (row->vd_ndx & 0x7fff), (gpointer) name);
    if (row->vd_next == 0)
      return;
    at += row->vd_next;
  }
}

gboolean
tiny_elf_read_symbols (TinyElf *self, GError **error)
{
  guint64 at, versions_at, n = count_symbols (self), row_size = sizeof (ElfW (Sym));
  g_autoptr (GHashTable) names = g_hash_table_new (NULL, NULL);
  if (!tiny_elf_find_tag (self, DT_SYMTAB, &at)
      || (tiny_elf_find_tag (self, DT_SYMENT, &row_size) && row_size != sizeof (ElfW (Sym))))
    return refuse (self, error, "damaged: its symbol table is not as it should be");
  if (n > MAX_TABLE / sizeof (ElfW (Sym)))
    return refuse (self, error, "damaged: its symbol table is larger than any");
  g_autofree ElfW (Sym) *rows = tiny_elf_read_memory (self, at, n * sizeof *rows);
  if (rows == NULL)
    return refuse (self, error, "truncated: its symbols lie behind the end of the file");
  read_wanted (self, names);
  read_versions (self, names);
  g_autofree guint16 *indices = tiny_elf_find_tag (self, DT_VERSYM, &versions_at)
                                    ? tiny_elf_read_memory (self, versions_at, n * 2)
                                    : NULL;
  g_free (self->symbols);
  self->n_symbols = 0;
  self->symbols = tiny_memory_try (n * sizeof *self->symbols, "its symbols", error);
  if (self->symbols == NULL)
    return FALSE;
  for (guint64 i = 1; i < n; i++) {
    guint bind = ELF64_ST_BIND (rows[i].st_info); /* the same in both classes */
    guint seen = ELF64_ST_VISIBILITY (rows[i].st_other);
    TinyElfSymbol symbol = { .name = tiny_elf_get_text (self, rows[i].st_name),
                             .value = rows[i].st_value,
                             .is_defined = rows[i].st_shndx != SHN_UNDEF,
                             .is_weak = bind == STB_WEAK };
    if (symbol.name == NULL)
      return refuse (self, error, "damaged: a symbol's name lies outside its texts");
    if (!spend (self, strnlen (symbol.name, self->work->left)))
      break;
    symbol.is_exported = symbol.is_defined && bind != STB_LOCAL
                         && (seen == STV_DEFAULT || seen == STV_PROTECTED);
    if (indices != NULL)
      symbol.version
          = g_hash_table_lookup (names, GUINT_TO_POINTER ((guint) indices[i] & 0x7fff));
    self->symbols[self->n_symbols++] = symbol;
  }
  return tiny_elf_check_work (self, error);
}

/* ---- notes ---- */
/* The same way through sections and segments: each is a run of notes, read at once. */
static gpointer
find_note (const TinyElf *self,
           guint64 offset,
           guint64 size,
           const char *owner,
           guint type,
           guint64 *out_size)
{
  const guint64 fixed = 3 * sizeof (guint32), length = strlen (owner) + 1;
  const guint64 n = MIN (size, MAX_NOTES);
  g_autofree guint8 *notes = tiny_elf_read (self, offset, n);
  for (guint64 at = 0; notes != NULL && at + fixed <= n;) {
    guint32 sizes[3];
    memcpy (sizes, notes + at, sizeof sizes);
    const guint64 name = ((guint64) sizes[0] + 3) & ~(guint64) 3;
    const guint64 desc = ((guint64) sizes[1] + 3) & ~(guint64) 3;
    const guint64 data = at + fixed + name;
    if (sizes[0] == length && sizes[2] == type && data <= n && sizes[1] <= n - data
        && memcmp (notes + at + fixed, owner, length) == 0) {
      *out_size = sizes[1];
      memmove (notes, notes + data, sizes[1]);
      return g_steal_pointer (&notes);
    }
    at = data + desc;
  }
  return NULL;
}

gpointer
tiny_elf_read_note (const TinyElf *self, const char *owner, guint type, guint64 *out_size)
{
  gpointer found = NULL;
  ElfW (Shdr) section;
  for (guint i = 0; i < self->n_segments && found == NULL; i++) {
    const ElfW (Phdr) *segment = &self->segments[i];
    if (segment->p_type == PT_NOTE)
      found = find_note (self, segment->p_offset, segment->p_filesz, owner, type, out_size);
  }
  for (guint i = 0; found == NULL && get_section (self, i, &section); i++)
    if (section.sh_type == SHT_NOTE)
      found = find_note (self, section.sh_offset, section.sh_size, owner, type, out_size);
  return found;
}

char *
tiny_elf_read_build_id (const TinyElf *self)
{
  guint64 n = 0;
  g_autofree guint8 *bytes = tiny_elf_read_note (self, "GNU", NT_GNU_BUILD_ID, &n);
  if (bytes == NULL || n == 0 || n > 64)
    return NULL;
  GString *out = g_string_new (NULL);
  for (guint64 i = 0; i < n; i++)
    g_string_append_printf (out, "%02x", bytes[i]);
  return g_string_free (out, FALSE);
}

/* ---- life ---- */
void
tiny_elf_close (TinyElf *self)
{
  if (self == NULL)
    return;
  if (self->fd >= 0)
    close (self->fd);
  g_free (self->work);
  g_free (self->segments);
  g_free (self->sections);
  g_free (self->dynamic);
  g_free (self->symbols);
  g_array_unref (self->wanted);
  g_ptr_array_unref (self->versions);
  g_ptr_array_unref (self->needed);
  g_free (self->texts);
  g_free (self->path);
  g_free (self);
}

static gboolean
open_file (TinyElf *self, GError **error)
{
  struct stat info;
  self->fd = open (self->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (self->fd < 0 || fstat (self->fd, &info) < 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO,
                 errno == ENOENT ? "there is no such file" : "cannot be read: %s",
                 g_strerror (errno));
    return FALSE;
  }
  if (!S_ISREG (info.st_mode)) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_IO,
                         S_ISDIR (info.st_mode) ? "it is a folder, not a shared object"
                                                : "it is no file");
    return FALSE;
  }
  self->size = (guint64) info.st_size;
  self->work->left = MOST_TIMES * self->size + MOST_MORE;
  return TRUE;
}

TinyElf *
tiny_elf_open (const char *path, GError **error)
{
  g_autoptr (TinyElf) self = g_new0 (TinyElf, 1);
  self->fd = -1;
  self->path = g_strdup (path);
  self->work = g_new0 (TinyElfWork, 1);
  self->wanted = g_array_new (FALSE, FALSE, sizeof (TinyElfVersion));
  self->versions = g_ptr_array_new ();
  self->needed = g_ptr_array_new ();
  if (!open_file (self, error) || !read_head (self, error)
      || !tiny_elf_check_machine (self, error) || !check_size (self, error)
      || !read_segments (self, error) || !read_dynamic (self, error)
      || !read_texts (self, error))
    return NULL;
  return g_steal_pointer (&self);
}
