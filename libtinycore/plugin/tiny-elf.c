/* SPDX-License-Identifier: MIT
 *
 * tiny-elf.c: looks at a shared object without running any of it.
 *
 * The file is mapped; every structure is copied out of it through one function that checks the
 * bounds, so a truncated or forged file gives an error and nothing else. ELF: System V ABI, gABI
 * 4.1, chapters 4 and 5. */
#include "plugin/tiny-elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/tiny-error.h"
#include "tiny-plugin.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__i386__)
#define OWN_MACHINE EM_386
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#elif defined(__s390x__)
#define OWN_MACHINE EM_S390
#elif defined(__arm__)
#define OWN_MACHINE EM_ARM
#elif defined(__loongarch__)
#define OWN_MACHINE EM_LOONGARCH
#else
#define OWN_MACHINE EM_NONE /* then any is let through to the helper process */
#endif

typedef struct {
  const guint8 *data;
  gsize size;
  ElfW (Ehdr) head;
} File;

static gboolean
copy_out (const File *file, guint64 offset, void *out, gsize n)
{
  if (offset > file->size || n > file->size - offset)
    return FALSE;
  memcpy (out, file->data + offset, n);
  return TRUE;
}

static gboolean
refuse (GError **error, const char *why)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_PLUGIN, why);
  return FALSE;
}

static const char *
name_of_machine (guint machine)
{
  static const struct {
    guint machine;
    const char *name;
  } names[] = { { EM_X86_64, "x86_64" }, { EM_AARCH64, "aarch64" },    { EM_RISCV, "riscv" },
                { EM_386, "i386" },      { EM_PPC64, "ppc64" },        { EM_S390, "s390" },
                { EM_ARM, "arm" },       { EM_LOONGARCH, "loongarch" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (names[i].machine == machine)
      return names[i].name;
  return "an unknown machine";
}

static gboolean
check_head (File *file, GError **error)
{
  const ElfW (Ehdr) *head = &file->head;
  if (file->size < SELFMAG || memcmp (file->data, ELFMAG, SELFMAG) != 0)
    return refuse (error, "not a shared object: it does not begin as an ELF file does");
  if (!copy_out (file, 0, &file->head, sizeof file->head))
    return refuse (error, "truncated: the ELF header is not complete");
  guint8 own_data = G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
  if (head->e_ident[EI_CLASS] != (sizeof (void *) == 8 ? ELFCLASS64 : ELFCLASS32)
      || head->e_ident[EI_DATA] != own_data
      || (OWN_MACHINE != EM_NONE && head->e_machine != OWN_MACHINE)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "built for %s (%s-bit), this program is %s", name_of_machine (head->e_machine),
                 head->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
                 name_of_machine (OWN_MACHINE));
    return FALSE;
  }
  if (head->e_type != ET_DYN)
    return refuse (error, "an ELF file, but not a shared object");
  guint64 end = head->e_shoff + (guint64) head->e_shnum * head->e_shentsize;
  if (head->e_shnum != 0 && (head->e_shentsize != sizeof (ElfW (Shdr)) || end < head->e_shoff))
    return refuse (error, "damaged: the ELF section table is not as it should be");
  if (head->e_shnum != 0 && end > file->size)
    return refuse (error, "truncated: the ELF section table lies behind the end of the file");
  return TRUE;
}

static gboolean
get_section (const File *file, guint i, ElfW (Shdr) * out)
{
  return i < file->head.e_shnum
         && copy_out (file, file->head.e_shoff + (guint64) i * sizeof *out, out, sizeof *out);
}

/* ---- the ABI note ---- */
static gboolean
check_note (const File *file, guint64 offset, guint64 size, GError **error)
{
  TinyPluginNote note;
  const guint32 fixed = 3 * sizeof (guint32);
  for (guint64 at = 0; at + fixed <= size;) {
    guint32 sizes[3];
    if (!copy_out (file, offset + at, sizes, sizeof sizes))
      return refuse (error, "truncated: a note lies behind the end of the file");
    guint64 name = ((guint64) sizes[0] + 3) & ~(guint64) 3;
    guint64 desc = ((guint64) sizes[1] + 3) & ~(guint64) 3;
    if (sizes[0] == 9 && sizes[1] >= 16 && copy_out (file, offset + at, &note, sizeof note)
        && memcmp (note.name, "TINY-ABI", 9) == 0) {
      if (note.abi_major == TINY_PLUGIN_ABI_MAJOR
          && note.abi_minor_min <= TINY_PLUGIN_ABI_MINOR)
        return TRUE;
      g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                   "built for plugin ABI %u.%u (from %u.%u on), this core has %u.%u",
                   note.abi_major, note.abi_minor, note.abi_major, note.abi_minor_min,
                   TINY_PLUGIN_ABI_MAJOR, TINY_PLUGIN_ABI_MINOR);
      return FALSE;
    }
    at += fixed + name + desc;
  }
  return TRUE;
}

/* ---- the entry symbol ---- */
static gboolean
symbol_is (const File *file, const ElfW (Shdr) * texts, guint32 name, char *out, gsize n)
{
  if (name >= texts->sh_size)
    return FALSE;
  gsize room = (gsize) MIN (texts->sh_size - name, n - 1);
  if (!copy_out (file, texts->sh_offset + name, out, room))
    return FALSE;
  out[room] = 0;
  return g_str_has_prefix (out, "tiny_plugin_entry_");
}

static gboolean
check_symbols (const File *file, const ElfW (Shdr) * symbols, GError **error)
{
  ElfW (Shdr) texts;
  char name[64], other[64] = "";
  if (symbols->sh_entsize != sizeof (ElfW (Sym))
      || !get_section (file, symbols->sh_link, &texts))
    return refuse (error, "damaged: its symbol table is not as it should be");
  guint64 n = symbols->sh_size / sizeof (ElfW (Sym));
  for (guint64 i = 0; i < n; i++) {
    ElfW (Sym) symbol;
    if (!copy_out (file, symbols->sh_offset + i * sizeof symbol, &symbol, sizeof symbol))
      return refuse (error, "truncated: its symbols lie behind the end of the file");
    if (symbol.st_shndx == SHN_UNDEF
        || !symbol_is (file, &texts, symbol.st_name, name, sizeof name))
      continue;
    if (g_str_equal (name, TINY_PLUGIN_ENTRY_SYMBOL))
      return TRUE;
    memcpy (other, name, sizeof other);
  }
  if (other[0] != 0)
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                 "built for another plugin ABI: it exports %s, this core wants %s", other,
                 TINY_PLUGIN_ENTRY_SYMBOL);
  else
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "a shared object, but no backend: it does not export %s",
                 TINY_PLUGIN_ENTRY_SYMBOL);
  return FALSE;
}

static gboolean
check_file (File *file, GError **error)
{
  if (!check_head (file, error))
    return FALSE;
  ElfW (Shdr) section;
  for (guint i = 0; get_section (file, i, &section); i++)
    if (section.sh_type == SHT_NOTE
        && !check_note (file, section.sh_offset, section.sh_size, error))
      return FALSE;
  for (guint i = 0; get_section (file, i, &section); i++)
    if (section.sh_type == SHT_DYNSYM)
      return check_symbols (file, &section, error);
  return file->head.e_shnum == 0 || refuse (error, "a shared object without symbols");
}

gboolean
tiny_elf_check (const char *path, GError **error)
{
  g_autoptr (GError) why = NULL;
  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: there is no such file", path);
    return FALSE;
  }
  g_autoptr (GMappedFile) map = g_mapped_file_new (path, FALSE, &why);
  if (map == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: cannot be read: %s", path,
                 why->message);
    return FALSE;
  }
  File file = { .data = (const guint8 *) g_mapped_file_get_contents (map),
                .size = g_mapped_file_get_length (map) };
  if (check_file (&file, error))
    return TRUE;
  g_prefix_error (error, "%s: ", path);
  return FALSE;
}
