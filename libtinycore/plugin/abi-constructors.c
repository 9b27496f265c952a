/* SPDX-License-Identifier: MIT
 *
 * abi-constructors.c: what runs when a plugin is loaded, before anybody asked it for anything.
 *
 * The compiler's own start files leave _init, which is empty, and frame_dummy, which registers nothing on
 * today's systems. Everything else is the plugin's. The array's words are what relocations make
 * of them, so those are read; names are there as long as the file is not stripped, and without names
 * one entry is taken for frame_dummy. */
#include <elf.h>
#include <string.h>

#include "plugin/abi-private.h"

enum { MAX_NAMED = 64 };

#if __ELF_NATIVE_CLASS == 64
#define RELA_SYMBOL(info) ELF64_R_SYM (info)
#else
#define RELA_SYMBOL(info) ELF32_R_SYM (info)
#endif

/* The word at @address once loaded: of a relocation with an addend, or as it lies in the file. */
static guint64
read_word (const TinyElf *elf, const ElfW (Rela) * rows, guint64 n, guint64 address)
{
  for (guint64 i = 0; i < n; i++) {
    if (rows[i].r_offset != address)
      continue;
    guint64 symbol = RELA_SYMBOL (rows[i].r_info);
    guint64 base = 0;
    if (symbol > 0 && symbol <= elf->n_symbols) /* the array lacks the first row */
      base = elf->symbols[symbol - 1].value;
    return base + (guint64) rows[i].r_addend;
  }
  g_autofree ElfW (Addr) *word = tiny_elf_read_memory (elf, address, sizeof *word);
  return word ? *word : 0;
}

/* The function at @address by the debuggers' table of names (transfer full), or NULL. */
static char *
find_name (const TinyElf *elf, guint64 address, gboolean *out_has_names)
{
  ElfW (Shdr) symbols, texts;
  g_autofree ElfW (Sym) *rows = tiny_elf_read_section (elf, SHT_SYMTAB, NULL, &symbols);
  g_autofree char *names
      = rows ? tiny_elf_read_section (elf, SHT_STRTAB, ".strtab", &texts) : NULL;
  *out_has_names = names != NULL;
  for (guint64 i = 0; names != NULL && i < symbols.sh_size / sizeof *rows; i++)
    if (ELF64_ST_TYPE (rows[i].st_info) == STT_FUNC && rows[i].st_value == address
        && rows[i].st_name < texts.sh_size)
      return g_strdup (names + rows[i].st_name);
  return NULL;
}

static gboolean
is_compilers (const char *name)
{
  static const char *const names[]
      = { "frame_dummy", "_init", "register_tm_clones", "__do_init", NULL };
  return g_strv_contains (names, name);
}

/* Adds what an address of a start function is called, unless it is the compiler's. */
static void
add_function (const TinyElf *elf, guint64 address, gboolean *may_be_dummy, GPtrArray *out)
{
  gboolean has_names = FALSE;
  g_autofree char *name = find_name (elf, address, &has_names);
  if (address == 0 || (name != NULL && is_compilers (name)))
    return;
  if (!has_names && *may_be_dummy) {
    *may_be_dummy = FALSE;
    return;
  }
  g_ptr_array_add (out,
                   name ? g_steal_pointer (&name)
                        : g_strdup_printf ("a function at 0x%" G_GINT64_MODIFIER "x", address));
}

void
tiny_abi_check_constructors (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  const TinyElf *elf = self->elf;
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (g_free);
  guint64 at = 0, size = 0, rela_at = 0, rela_size = 0, init = 0;
  gboolean may_be_init = TRUE, may_be_dummy = TRUE;
  g_autofree ElfW (Rela) *rows = tiny_elf_find_tag (elf, DT_RELA, &rela_at)
                                         && tiny_elf_find_tag (elf, DT_RELASZ, &rela_size)
                                     ? tiny_elf_read_memory (elf, rela_at, rela_size)
                                     : NULL;
  guint64 n_rows = rows ? rela_size / sizeof *rows : 0;
  if (tiny_elf_find_tag (elf, DT_INIT, &init))
    add_function (elf, init, &may_be_init, found);
  tiny_elf_find_tag (elf, DT_INIT_ARRAY, &at);
  tiny_elf_find_tag (elf, DT_INIT_ARRAYSZ, &size);
  for (guint64 i = 0; i < MIN (size / sizeof (ElfW (Addr)), MAX_NAMED); i++)
    add_function (elf, read_word (elf, rows, n_rows, at + i * sizeof (ElfW (Addr))),
                  &may_be_dummy, found);
  if (found->len == 0) {
    tiny_abi_say (out, TINY_ABI_OK, NULL, "nothing of its own runs when it is loaded");
    return;
  }
  g_autofree char *list = tiny_abi_join (found);
  tiny_abi_say (out, TINY_ABI_FAILED,
                "move the work to init() or open(), where it can fail in words; in C++ make "
                "global objects constexpr or local to a function",
                "%u function%s run%s when it is loaded: %s", found->len,
                found->len > 1 ? "s" : "", found->len > 1 ? "" : "s", list);
}
