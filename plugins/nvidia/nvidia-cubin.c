/* SPDX-License-Identifier: MIT
 *
 * nvidia-cubin.c: reads what the compiler made: an ELF file of NVIDIA's machine.
 *
 * The file comes from a cache that anybody may have written: every offset is held against the size before it is
 * followed, sizes are never added, and each table is walked once. Numbers lie little-endian, at any alignment.
 * Layouts and numbers: the ELF specification; for NVIDIA's own, LLVM's ELF.h and what the compiler's files hold. */
#include <elf.h>

#include "nvidia.h"

enum {
  MACHINE = 190,
  ABI_VERSION_12
  = 7, /* CUDA 12: the architecture is the lowest byte of the flags, later the second */
  INFO_REGISTERS = 0x2f, /* in .nv.info: a symbol and a number */
  INFO_FRAME = 0x11,
  INFO_ARGUMENTS = 0x19, /* in .nv.info.NAME */
  INFO_SIZED = 4         /* a format: bytes follow, as many as the number says */
};

typedef struct {
  const uint8_t *data;
  uint64_t size;
  Elf64_Ehdr header;
  Elf64_Shdr names; /* of sections */
  Elf64_Shdr symbols, strings;
  uint32_t n_sections;
  uint32_t symbol; /* the kernel's number */
  uint32_t text;   /* the number of the section with its code */
  char name[512];
} Cubin;

static bool
is_inside (const Cubin *self, uint64_t at, uint64_t size)
{
  return at <= self->size && size <= self->size - at;
}

static bool
read_at (const Cubin *self, uint64_t at, void *out, size_t size)
{
  if (!is_inside (self, at, size))
    return false;
  memcpy (out, self->data + at, size);
  return true;
}

/* The section of number @i; false where it does not lie in the file. */
static bool
read_section (const Cubin *self, uint32_t i, Elf64_Shdr *out)
{
  return i < self->n_sections
         && read_at (self, self->header.e_shoff + (uint64_t) i * sizeof *out, out, sizeof *out)
         && (out->sh_type == SHT_NOBITS || is_inside (self, out->sh_offset, out->sh_size));
}

/* True if the text at @at of @table, a section of texts, is @prefix and @name. */
static bool
is_named (const Cubin *self,
          const Elf64_Shdr *table,
          uint64_t at,
          const char *prefix,
          const char *name)
{
  const size_t before = strlen (prefix), n = strlen (name) + 1;
  if (at > table->sh_size || before + n > table->sh_size - at)
    return false;
  const uint8_t *text = self->data + table->sh_offset + at;
  return memcmp (text, prefix, before) == 0 && memcmp (text + before, name, n) == 0;
}

/* The section that is called @prefix and the kernel's name. */
static bool
find_section (const Cubin *self, const char *prefix, Elf64_Shdr *out)
{
  for (uint32_t i = 1; i < self->n_sections; i++)
    if (read_section (self, i, out)
        && is_named (self, &self->names, out->sh_name, prefix, self->name))
      return true;
  return false;
}

/* ---- the file as a whole ---- */
static bool
read_header (Cubin *self)
{
  Elf64_Ehdr *header = &self->header;
  if (!read_at (self, 0, header, sizeof *header)
      || memcmp (header->e_ident, ELFMAG, SELFMAG) != 0
      || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB
      || header->e_machine != MACHINE || header->e_shentsize != sizeof (Elf64_Shdr))
    return false;
  self->n_sections = header->e_shnum;
  return is_inside (self, header->e_shoff, (uint64_t) self->n_sections * sizeof (Elf64_Shdr))
         && is_inside (self, header->e_phoff, (uint64_t) header->e_phnum * header->e_phentsize);
}

/* Every section lies in the file, among them the tables that are needed. */
static bool
read_tables (Cubin *self)
{
  Elf64_Shdr section;
  bool has_symbols = false;
  for (uint32_t i = 1; i < self->n_sections; i++) {
    if (!read_section (self, i, &section))
      return false;
    if (section.sh_type == SHT_SYMTAB) {
      self->symbols = section;
      has_symbols = read_section (self, section.sh_link, &self->strings)
                    && self->strings.sh_type == SHT_STRTAB;
    }
  }
  return has_symbols && read_section (self, self->header.e_shstrndx, &self->names)
         && self->names.sh_type == SHT_STRTAB;
}

/* Takes the name of a symbol that is to be found. */
static bool
take_name (Cubin *self, uint64_t at)
{
  if (at >= self->strings.sh_size)
    return false;
  const char *text = (const char *) self->data + self->strings.sh_offset + at;
  const size_t n = strnlen (text, self->strings.sh_size - at);
  if (n == self->strings.sh_size - at || n >= sizeof self->name)
    return false;
  memcpy (self->name, text, n + 1);
  return true;
}

/* The global function @name, or the first one, and its code. */
static bool
find_kernel (Cubin *self, const char *name)
{
  const uint64_t n = self->symbols.sh_size / sizeof (Elf64_Sym);
  for (uint64_t i = 1; i < n && i < UINT32_MAX; i++) {
    Elf64_Sym symbol;
    if (!read_at (self, self->symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol))
      return false;
    if (ELF64_ST_TYPE (symbol.st_info) != STT_FUNC
        || ELF64_ST_BIND (symbol.st_info) != STB_GLOBAL
        || (name != NULL && !is_named (self, &self->strings, symbol.st_name, "", name)))
      continue;
    self->symbol = (uint32_t) i;
    self->text = symbol.st_shndx;
    return take_name (self, symbol.st_name);
  }
  return false;
}

/* ---- attributes ---- */

/* Walks @section's attributes: each has a format, a number, and 16 bits, which are the value or its size. */
static bool
read_info (const Cubin *self, const Elf64_Shdr *section, NvidiaKernel *out)
{
  for (uint64_t at = 0; at < section->sh_size;) {
    uint8_t head[4];
    uint32_t words[2] = { 0 };
    if (section->sh_size - at < sizeof head
        || !read_at (self, section->sh_offset + at, head, sizeof head))
      return false;
    const uint32_t value = head[2] | (uint32_t) head[3] << 8;
    at += sizeof head;
    if (head[0] == INFO_SIZED) {
      if (value > section->sh_size - at)
        return false;
      if (value >= sizeof words)
        memcpy (words, self->data + section->sh_offset + at, sizeof words);
      at += value;
    }
    if (head[1] == INFO_REGISTERS && words[0] == self->symbol)
      out->n_registers = words[1];
    else if (head[1] == INFO_FRAME && words[0] == self->symbol)
      out->local_bytes = words[1];
    else if (head[1] == INFO_ARGUMENTS && head[0] != INFO_SIZED)
      out->argument_bytes = value;
  }
  return true;
}

static bool
read_kernel (Cubin *self, const char *name, NvidiaKernel *out)
{
  Elf64_Shdr section;
  if (!read_header (self) || !read_tables (self) || !find_kernel (self, name)
      || !read_section (self, self->text, &section) || section.sh_type != SHT_PROGBITS)
    return false;
  const uint32_t flags = self->header.e_flags;
  *out = (NvidiaKernel){ .sm = self->header.e_ident[EI_ABIVERSION] <= ABI_VERSION_12
                                   ? flags & 0xff
                                   : flags >> 8 & 0xff,
                         .code_at = section.sh_offset,
                         .n_code = section.sh_size };
  if (find_section (self, ".nv.shared.", &section))
    out->shared_bytes = (uint32_t) section.sh_size;
  if (find_section (self, ".nv.info.", &section) && !read_info (self, &section, out))
    return false;
  for (uint32_t i = 1; i < self->n_sections; i++)
    if (read_section (self, i, &section)
        && is_named (self, &self->names, section.sh_name, ".nv.info", ""))
      return read_info (self, &section, out);
  return false;
}

TinyStatus
nvidia_cubin_read (const void *data,
                   uint64_t size,
                   const char *name,
                   NvidiaKernel *out,
                   TinyPluginError *error)
{
  Cubin self = { .data = data, .size = size };
  if (read_kernel (&self, name, out))
    return TINY_STATUS_OK;
  return tiny_fail (
      error, TINY_STATUS_CORRUPT,
      "%s: a cubin with this kernel was to be expected, and its %llu bytes are none",
      name != NULL ? name : "a program", (unsigned long long) size);
}

/* An instruction has 16 bytes: two words, the low one first. */
static void
print_code (const uint8_t *code, uint64_t n_bytes, char *out)
{
  size_t used = 0;
  for (uint64_t i = 0; i + 16 <= n_bytes; i += 16) {
    uint64_t words[2];
    memcpy (words, code + i, sizeof words);
    used += (size_t) sprintf (out + used, "%06llx: %016llx %016llx\n", (unsigned long long) i,
                              (unsigned long long) words[1], (unsigned long long) words[0]);
  }
}

TinyStatus
nvidia_describe (
    const TinyHost *host, const void *data, uint64_t size, char **out, TinyPluginError *error)
{
  enum { HEAD = 256, LINE = 64 };
  NvidiaKernel kernel;
  TINY_TRY (nvidia_cubin_read (data, size, NULL, &kernel, error));
  char *text = host->alloc (HEAD + (kernel.n_code / 16 + 1) * LINE);
  if (text == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a program's text");
  const int n = snprintf (text, HEAD,
                          "sm_%u: %u registers and %u bytes of local memory a thread, %u bytes "
                          "of shared memory a block, "
                          "%u bytes of arguments, and its instructions:\n",
                          kernel.sm, kernel.n_registers, kernel.local_bytes,
                          kernel.shared_bytes, kernel.argument_bytes);
  print_code ((const uint8_t *) data + kernel.code_at, kernel.n_code, text + n);
  *out = text;
  return TINY_STATUS_OK;
}
