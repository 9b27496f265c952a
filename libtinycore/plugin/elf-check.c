/* SPDX-License-Identifier: MIT
 *
 * elf-check.c: whether a file can be a plugin of this core, as far as the file itself says. */
#include <elf.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "plugin/tiny-elf.h"
#include "tiny-plugin.h"

enum { MAX_SHOWN = 64 }; /* bytes of a name in a message */

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

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define OWN_ADDRESS TRUE
#else
#define OWN_ADDRESS FALSE
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define OWN_THREAD TRUE
#else
#define OWN_THREAD FALSE
#endif
#if __has_feature(memory_sanitizer)
#define OWN_MEMORY TRUE
#else
#define OWN_MEMORY FALSE
#endif

const char *
tiny_elf_name_machine (guint machine)
{
  static const struct {
    guint machine;
    const char *name;
  } names[]
      = { { EM_X86_64, "x86_64" }, { EM_AARCH64, "aarch64" }, { EM_RISCV, "riscv" },
          { EM_386, "i386" },      { EM_PPC64, "ppc64" },     { EM_S390, "s390" },
          { EM_ARM, "arm" },       { EM_MIPS, "mips" },       { EM_LOONGARCH, "loongarch" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (names[i].machine == machine)
      return names[i].name;
  return "an unknown machine";
}

gboolean
tiny_elf_check_machine (const TinyElf *self, GError **error)
{
  const ElfW (Ehdr) *head = &self->head;
  guint8 own_data = G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
  guint8 own_class = sizeof (void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  /* Of another byte order the machine's number is, too. */
  guint machine = head->e_ident[EI_DATA] == own_data ? head->e_machine
                                                     : GUINT16_SWAP_LE_BE (head->e_machine);
  if (head->e_ident[EI_CLASS] != own_class || head->e_ident[EI_DATA] != own_data
      || (OWN_MACHINE != EM_NONE && machine != OWN_MACHINE)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "built for %s (%s-bit), this program is %s", tiny_elf_name_machine (machine),
                 head->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
                 tiny_elf_name_machine (OWN_MACHINE));
    return FALSE;
  }
  if (head->e_type == ET_DYN)
    return TRUE;
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                       "an ELF file, but not a shared object");
  return FALSE;
}

/* The sanitizer that the file was built with and this program was not, "AddressSanitizer", or NULL. */
static const char *
find_sanitizer (const TinyElf *self)
{
  /* What instrumented code calls on each access; the runtimes' other symbols come with them. */
  static const struct {
    const char *prefix, *name;
    gboolean is_own;
  } kinds[] = { { "__asan_", "AddressSanitizer", OWN_ADDRESS },
                { "__tsan_", "ThreadSanitizer", OWN_THREAD },
                { "__msan_", "MemorySanitizer", OWN_MEMORY },
                { "__hwasan_", "HWAddressSanitizer", FALSE } };
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (guint i = 0; i < self->n_symbols && !kinds[k].is_own; i++) {
      const TinyElfSymbol *symbol = &self->symbols[i];
      if (!symbol->is_defined && g_str_has_prefix (symbol->name, kinds[k].prefix))
        return kinds[k].name;
    }
  return NULL;
}

gboolean
tiny_elf_check_note (const TinyElf *self, gboolean *out_has_note, GError **error)
{
  guint64 size = 0;
  g_autofree guint32 *abi = tiny_elf_read_note (self, "TINY-ABI", 1, &size);
  *out_has_note = abi != NULL;
  if (abi == NULL)
    return tiny_elf_check_work (self, error);
  if (size < 4 * sizeof (guint32)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "damaged: its ABI note has %" G_GUINT64_FORMAT " bytes, not 16", size);
    return FALSE;
  }
  if (abi[0] == TINY_PLUGIN_ABI_MAJOR && abi[2] <= TINY_PLUGIN_ABI_MINOR)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
               "built for plugin ABI %u.%u (from %u.%u on), this core has %u.%u", abi[0],
               abi[1], abi[0], abi[2], TINY_PLUGIN_ABI_MAJOR, TINY_PLUGIN_ABI_MINOR);
  return FALSE;
}

static gboolean
check_entry (const TinyElf *self, GError **error)
{
  const char *other = NULL;
  for (guint i = 0; i < self->n_symbols; i++) {
    const TinyElfSymbol *symbol = &self->symbols[i];
    if (!symbol->is_exported || !g_str_has_prefix (symbol->name, "tiny_plugin_entry_"))
      continue;
    if (g_str_equal (symbol->name, TINY_PLUGIN_ENTRY_SYMBOL))
      return TRUE;
    other = symbol->name;
  }
  g_autofree char *shown = tiny_clean_text (other, MAX_SHOWN);
  if (other != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                 "built for another plugin ABI: it exports %s, this core wants %s", shown,
                 TINY_PLUGIN_ENTRY_SYMBOL);
  else
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "a shared object, but no backend: it does not export %s",
                 TINY_PLUGIN_ENTRY_SYMBOL);
  return FALSE;
}

static gboolean
check_sanitizer (const TinyElf *self, GError **error)
{
  const char *sanitizer = find_sanitizer (self);
  if (sanitizer != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "built with %s, which this program is not and which would end it: build it "
                 "without -fsanitize",
                 sanitizer);
  return sanitizer == NULL;
}

gboolean
tiny_elf_check (const char *path, GError **error)
{
  gboolean has_note;
  g_autoptr (TinyElf) self = tiny_elf_open (path, error);
  if (self != NULL && tiny_elf_read_symbols (self, error)
      && tiny_elf_check_note (self, &has_note, error) && check_entry (self, error)
      && check_sanitizer (self, error))
    return TRUE;
  g_prefix_error (error, "%s: ", path);
  return FALSE;
}
