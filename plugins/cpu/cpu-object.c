/* SPDX-License-Identifier: MIT
 *
 * cpu-object.c: loads one ELF64 relocatable object, of LLVM or of a compiler, as callable code.
 *
 * The object may come damaged from a cache: every offset, size, index and name is checked against
 * the file before it is used, and what does not fit is TINY_STATUS_CORRUPT. All sections lie in one
 * mapping: code and constants, then stubs and the table of external addresses, then what the code may
 * write. The first two are made read-only and executable when everything is in place; nothing is ever
 * writable and executable at once. */
#include "cpu.h"

#include <elf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STUB_BYTES = 16, MAX_OBJECT_BYTES = 256 << 20 };

#if defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#define HOST_MACHINE EM_X86_64
#endif

/* What code may call that is not its own. */
static const struct {
  const char *name;
  void (*address) (void);
} externals[] = {
#define EXTERNAL(name) { #name, (void (*) (void)) name },
  EXTERNAL (memcpy) EXTERNAL (memmove) EXTERNAL (memset) EXTERNAL (memcmp) EXTERNAL (fma)
      EXTERNAL (fmaf) EXTERNAL (fmod) EXTERNAL (fmodf) EXTERNAL (trunc) EXTERNAL (truncf)
          EXTERNAL (floor) EXTERNAL (floorf) EXTERNAL (ceil) EXTERNAL (ceilf) EXTERNAL (rint)
              EXTERNAL (rintf) EXTERNAL (round) EXTERNAL (roundf) EXTERNAL (sqrt)
                  EXTERNAL (sqrtf) EXTERNAL (exp2) EXTERNAL (exp2f) EXTERNAL (log2)
                      EXTERNAL (log2f) EXTERNAL (sin) EXTERNAL (sinf) EXTERNAL (cos)
                          EXTERNAL (cosf)
#undef EXTERNAL
};

typedef struct {
  const uint8_t *data;
  uint64_t size;
  Elf64_Ehdr header;
  Elf64_Shdr *sections;
  uint64_t *offsets; /* of each section in the mapping; UINT64_MAX: not loaded */
  uint32_t n_symbols;
  uint64_t symbols_at; /* in the file */
  const char *names;
  uint64_t n_name_bytes;
  uint8_t *memory;
  uint64_t stubs_at, table_at, writable_at, n_bytes;
  TinyPluginError *error;
} Loader;

static TinyStatus
corrupt (const Loader *l, const char *what)
{
  return tiny_fail (l->error, TINY_STATUS_CORRUPT, "damaged program: %s", what);
}

static bool
is_inside (uint64_t offset, uint64_t n_bytes, uint64_t size)
{
  return offset <= size && n_bytes <= size - offset;
}

/* ---- reading ---- */

static TinyStatus
read_header (Loader *l)
{
  if (l->size < sizeof l->header)
    return corrupt (l, "shorter than an ELF header");
  memcpy (&l->header, l->data, sizeof l->header);
  const Elf64_Ehdr *h = &l->header;
  if (memcmp (h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64
      || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL)
    return corrupt (l, "no ELF64 relocatable object");
  if (h->e_machine != EM_X86_64 && h->e_machine != EM_AARCH64)
    return corrupt (l, "of another machine");
  if (h->e_shentsize != sizeof (Elf64_Shdr) || h->e_shnum == 0
      || !is_inside (h->e_shoff, (uint64_t) h->e_shnum * sizeof (Elf64_Shdr), l->size))
    return corrupt (l, "section table outside the file");
  return TINY_STATUS_OK;
}

static TinyStatus
read_sections (Loader *l)
{
  uint32_t n = l->header.e_shnum;
  l->sections = calloc (n, sizeof *l->sections);
  l->offsets = calloc (n, sizeof *l->offsets);
  if (l->sections == NULL || l->offsets == NULL)
    return tiny_fail (l->error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %u sections", n);
  memcpy (l->sections, l->data + l->header.e_shoff, n * sizeof *l->sections);
  for (uint32_t i = 0; i < n; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL
        && !is_inside (s->sh_offset, s->sh_size, l->size))
      return corrupt (l, "section outside the file");
    if (s->sh_addralign > 4096 || (s->sh_addralign & (s->sh_addralign - 1)) != 0)
      return corrupt (l, "section alignment");
    if (s->sh_size > MAX_OBJECT_BYTES)
      return corrupt (l, "section too large");
  }
  return TINY_STATUS_OK;
}

static TinyStatus
find_symbols (Loader *l)
{
  for (uint32_t i = 0; i < l->header.e_shnum; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type != SHT_SYMTAB)
      continue;
    if (s->sh_entsize != sizeof (Elf64_Sym) || s->sh_link >= l->header.e_shnum
        || l->sections[s->sh_link].sh_type != SHT_STRTAB)
      return corrupt (l, "symbol table");
    const Elf64_Shdr *names = &l->sections[s->sh_link];
    l->symbols_at = s->sh_offset;
    l->n_symbols = (uint32_t) (s->sh_size / sizeof (Elf64_Sym));
    l->names = (const char *) l->data + names->sh_offset;
    l->n_name_bytes = names->sh_size;
    if (names->sh_size == 0 || l->names[names->sh_size - 1] != '\0')
      return corrupt (l, "names without an end");
    return TINY_STATUS_OK;
  }
  return corrupt (l, "no symbols");
}

static bool
read_symbol (const Loader *l, uint32_t n, Elf64_Sym *out)
{
  if (n >= l->n_symbols)
    return false;
  memcpy (out, l->data + l->symbols_at + (uint64_t) n * sizeof *out, sizeof *out);
  return out->st_name < l->n_name_bytes;
}

/* ---- placing ---- */

static uint64_t
round_up (uint64_t value, uint64_t unit)
{
  return unit > 1 ? (value + unit - 1) & ~(unit - 1) : value;
}

static TinyStatus
place_sections (Loader *l)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE), at = 0;
  for (uint32_t i = 0; i < l->header.e_shnum; i++)
    l->offsets[i] = UINT64_MAX;
  for (int writable = 0; writable < 2; writable++) {
    for (uint32_t i = 0; i < l->header.e_shnum; i++) {
      const Elf64_Shdr *s = &l->sections[i];
      bool is_loaded
          = s->sh_flags & SHF_ALLOC && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS);
      if (!is_loaded || ((s->sh_flags & SHF_WRITE) != 0) != writable)
        continue;
      if ((s->sh_flags & SHF_TLS)
          || ((s->sh_flags & SHF_WRITE) && (s->sh_flags & SHF_EXECINSTR)))
        return corrupt (l, "thread-local or self-modifying section");
      at = round_up (at, s->sh_addralign);
      l->offsets[i] = at;
      at += s->sh_size;
      if (at > MAX_OBJECT_BYTES)
        return corrupt (l, "too large");
    }
    if (!writable) {
      l->stubs_at = round_up (at, STUB_BYTES);
      l->table_at = l->stubs_at + (uint64_t) l->n_symbols * STUB_BYTES;
      at = l->writable_at = round_up (l->table_at + (uint64_t) l->n_symbols * 8, page);
    }
  }
  l->n_bytes = round_up (at, page);
  return TINY_STATUS_OK;
}

static TinyStatus
map_sections (Loader *l)
{
  l->memory
      = mmap (NULL, l->n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (l->memory == MAP_FAILED) {
    l->memory = NULL;
    return tiny_fail (l->error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %llu bytes of code",
                      (unsigned long long) l->n_bytes);
  }
  for (uint32_t i = 0; i < l->header.e_shnum; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (l->offsets[i] != UINT64_MAX && s->sh_type == SHT_PROGBITS)
      memcpy (l->memory + l->offsets[i], l->data + s->sh_offset, s->sh_size);
  }
  return TINY_STATUS_OK;
}

/* ---- symbols ---- */

/* The address of symbol @n; *out_is_far when a call may not reach it. */
static TinyStatus
resolve_symbol (Loader *l, uint32_t n, uint64_t *out, bool *out_is_far)
{
  Elf64_Sym symbol;
  if (!read_symbol (l, n, &symbol))
    return corrupt (l, "symbol number");
  const char *name = l->names + symbol.st_name;
  *out_is_far = false;
  if (symbol.st_shndx == SHN_UNDEF) {
    for (unsigned i = 0; i < CPU_ARRAY_SIZE (externals); i++) {
      if (strcmp (externals[i].name, name) == 0) {
        *out = (uint64_t) (uintptr_t) externals[i].address;
        *out_is_far = true;
        return TINY_STATUS_OK;
      }
    }
    return tiny_fail (l->error, TINY_STATUS_CORRUPT,
                      "program calls '%.200s', which the CPU has not", name);
  }
  if (symbol.st_shndx == SHN_ABS) {
    *out = symbol.st_value;
    return TINY_STATUS_OK;
  }
  if (symbol.st_shndx >= l->header.e_shnum || l->offsets[symbol.st_shndx] == UINT64_MAX
      || symbol.st_value > l->sections[symbol.st_shndx].sh_size)
    return corrupt (l, "symbol outside its section");
  *out = (uint64_t) (uintptr_t) l->memory + l->offsets[symbol.st_shndx] + symbol.st_value;
  return TINY_STATUS_OK;
}

/* A jump to @address near the code. */
static uint64_t
make_stub (Loader *l, uint32_t n, uint64_t address)
{
  static const uint8_t x86_jump[8] = { 0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b }; /* jmp *2(%rip) */
  static const uint8_t arm_jump[8]
      = { 0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6 }; /* ldr; br x16 */
  uint8_t *stub = l->memory + l->stubs_at + (uint64_t) n * STUB_BYTES;
  memcpy (stub, l->header.e_machine == EM_X86_64 ? x86_jump : arm_jump, 8);
  memcpy (stub + 8, &address, 8);
  return (uint64_t) (uintptr_t) stub;
}

/* Where symbol @n's address is kept. */
static uint64_t
make_table_entry (Loader *l, uint32_t n, uint64_t address)
{
  uint8_t *entry = l->memory + l->table_at + (uint64_t) n * 8;
  memcpy (entry, &address, 8);
  return (uint64_t) (uintptr_t) entry;
}

/* ---- relocating ---- */

typedef enum {
  TARGET_SYMBOL, /* the symbol's address */
  TARGET_CALL,   /* the same, or a stub when it is far */
  TARGET_TABLE   /* where its address is kept */
} RelocTarget;

typedef enum {
  FIELD_ABS64,
  FIELD_ABS32,  /* zero-extended */
  FIELD_ABS32S, /* sign-extended */
  FIELD_PC32,
  FIELD_PC64,
  FIELD_ARM_PAGE,   /* adrp */
  FIELD_ARM_LOW12,  /* add, ldr, str: scaled by `scale` bits */
  FIELD_ARM_BRANCH, /* b, bl */
  FIELD_ARM_PC32
} RelocField;

typedef struct {
  uint16_t machine;
  uint16_t type;
  uint8_t target, field, scale;
} RelocKind;

static const RelocKind kinds[] = {
  { EM_X86_64, R_X86_64_64, TARGET_SYMBOL, FIELD_ABS64, 0 },
  { EM_X86_64, R_X86_64_PC32, TARGET_CALL, FIELD_PC32, 0 },
  { EM_X86_64, R_X86_64_PLT32, TARGET_CALL, FIELD_PC32, 0 },
  { EM_X86_64, R_X86_64_GOTPCREL, TARGET_TABLE, FIELD_PC32, 0 },
  { EM_X86_64, R_X86_64_GOTPCRELX, TARGET_TABLE, FIELD_PC32, 0 },
  { EM_X86_64, R_X86_64_REX_GOTPCRELX, TARGET_TABLE, FIELD_PC32, 0 },
  { EM_X86_64, R_X86_64_32, TARGET_SYMBOL, FIELD_ABS32, 0 },
  { EM_X86_64, R_X86_64_32S, TARGET_SYMBOL, FIELD_ABS32S, 0 },
  { EM_X86_64, R_X86_64_PC64, TARGET_SYMBOL, FIELD_PC64, 0 },
  { EM_AARCH64, R_AARCH64_ABS64, TARGET_SYMBOL, FIELD_ABS64, 0 },
  { EM_AARCH64, R_AARCH64_PREL32, TARGET_SYMBOL, FIELD_ARM_PC32, 0 },
  { EM_AARCH64, R_AARCH64_PREL64, TARGET_SYMBOL, FIELD_PC64, 0 },
  { EM_AARCH64, R_AARCH64_CALL26, TARGET_CALL, FIELD_ARM_BRANCH, 0 },
  { EM_AARCH64, R_AARCH64_JUMP26, TARGET_CALL, FIELD_ARM_BRANCH, 0 },
  { EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, TARGET_SYMBOL, FIELD_ARM_PAGE, 0 },
  { EM_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, TARGET_SYMBOL, FIELD_ARM_LOW12, 0 },
  { EM_AARCH64, R_AARCH64_LDST8_ABS_LO12_NC, TARGET_SYMBOL, FIELD_ARM_LOW12, 0 },
  { EM_AARCH64, R_AARCH64_LDST16_ABS_LO12_NC, TARGET_SYMBOL, FIELD_ARM_LOW12, 1 },
  { EM_AARCH64, R_AARCH64_LDST32_ABS_LO12_NC, TARGET_SYMBOL, FIELD_ARM_LOW12, 2 },
  { EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, TARGET_SYMBOL, FIELD_ARM_LOW12, 3 },
  { EM_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, TARGET_SYMBOL, FIELD_ARM_LOW12, 4 },
  { EM_AARCH64, R_AARCH64_ADR_GOT_PAGE, TARGET_TABLE, FIELD_ARM_PAGE, 0 },
  { EM_AARCH64, R_AARCH64_LD64_GOT_LO12_NC, TARGET_TABLE, FIELD_ARM_LOW12, 3 },
};

/* Writes @value (an address plus addend) into the field at @place; false: it does not fit. */
static bool
write_field (uint8_t *place, const RelocKind *kind, uint64_t value)
{
  uint64_t distance = value - (uint64_t) (uintptr_t) place;
  int64_t pages = (int64_t) ((value >> 12) - ((uint64_t) (uintptr_t) place >> 12));
  uint32_t word;
  memcpy (&word, place, 4);
  switch ((RelocField) kind->field) {
  case FIELD_ABS64:
    memcpy (place, &value, 8);
    return true;
  case FIELD_PC64:
    memcpy (place, &distance, 8);
    return true;
  case FIELD_ABS32:
    word = (uint32_t) value;
    memcpy (place, &word, 4);
    return value <= UINT32_MAX;
  case FIELD_ABS32S:
    word = (uint32_t) value;
    memcpy (place, &word, 4);
    return (int64_t) value == (int32_t) value;
  case FIELD_PC32:
  case FIELD_ARM_PC32:
    word = (uint32_t) distance;
    memcpy (place, &word, 4);
    return (int64_t) distance == (int32_t) distance;
  case FIELD_ARM_BRANCH:
    word = (word & 0xfc000000u) | (uint32_t) (distance >> 2 & 0x03ffffffu);
    memcpy (place, &word, 4);
    return (int64_t) distance >= -(1 << 27) && (int64_t) distance < 1 << 27;
  case FIELD_ARM_PAGE:
    word = (word & 0x9f00001fu) | (uint32_t) (pages & 3) << 29
           | (uint32_t) (pages >> 2 & 0x7ffff) << 5;
    memcpy (place, &word, 4);
    return pages >= -(1 << 20) && pages < 1 << 20;
  case FIELD_ARM_LOW12:
    word = (word & 0xffc003ffu) | (uint32_t) ((value & 0xfff) >> kind->scale) << 10;
    memcpy (place, &word, 4);
    return (value & ((1u << kind->scale) - 1)) == 0;
  }
  return false;
}

static TinyStatus
relocate (Loader *l, uint32_t section, const Elf64_Rela *rela)
{
  uint32_t type = (uint32_t) ELF64_R_TYPE (rela->r_info);
  uint32_t n = (uint32_t) ELF64_R_SYM (rela->r_info);
  if (type == 0)
    return TINY_STATUS_OK;
  unsigned k = 0;
  while (k < CPU_ARRAY_SIZE (kinds)
         && (kinds[k].machine != l->header.e_machine || kinds[k].type != type))
    k++;
  if (k == CPU_ARRAY_SIZE (kinds))
    return tiny_fail (l->error, TINY_STATUS_CORRUPT, "damaged program: relocation type %u",
                      type);
  uint64_t width = kinds[k].field == FIELD_ABS64 || kinds[k].field == FIELD_PC64 ? 8 : 4;
  if (!is_inside (rela->r_offset, width, l->sections[section].sh_size))
    return corrupt (l, "relocation outside its section");

  uint64_t address = 0;
  bool is_far = false;
  TinyStatus status = resolve_symbol (l, n, &address, &is_far);
  if (status != TINY_STATUS_OK)
    return status;
  if (kinds[k].target == TARGET_TABLE)
    address = make_table_entry (l, n, address);
  else if (kinds[k].target == TARGET_CALL && is_far)
    address = make_stub (l, n, address);
  uint8_t *place = l->memory + l->offsets[section] + rela->r_offset;
  if (!write_field (place, &kinds[k], address + (uint64_t) rela->r_addend))
    return corrupt (l, "relocation does not fit");
  return TINY_STATUS_OK;
}

static TinyStatus
relocate_all (Loader *l)
{
  for (uint32_t i = 0; i < l->header.e_shnum; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type == SHT_REL)
      return corrupt (l, "relocations without addends");
    if (s->sh_type != SHT_RELA || s->sh_info >= l->header.e_shnum
        || l->offsets[s->sh_info] == UINT64_MAX)
      continue;
    if (s->sh_entsize != sizeof (Elf64_Rela) || l->sections[s->sh_info].sh_type != SHT_PROGBITS)
      return corrupt (l, "relocation table");
    for (uint64_t k = 0; k < s->sh_size / sizeof (Elf64_Rela); k++) {
      Elf64_Rela rela;
      memcpy (&rela, l->data + s->sh_offset + k * sizeof rela, sizeof rela);
      TinyStatus status = relocate (l, s->sh_info, &rela);
      if (status != TINY_STATUS_OK)
        return status;
    }
  }
  return TINY_STATUS_OK;
}

/* ---- the whole ---- */

static TinyStatus
find_entry (Loader *l, const char *name, CpuObject *out)
{
  const size_t n_prefix = strlen (CPU_ENTRY_PREFIX), n_name = strlen (name);
  for (uint32_t i = 1; i < l->n_symbols; i++) {
    Elf64_Sym symbol;
    if (!read_symbol (l, i, &symbol) || symbol.st_shndx == SHN_UNDEF
        || symbol.st_shndx >= l->header.e_shnum || l->offsets[symbol.st_shndx] == UINT64_MAX)
      continue;
    const Elf64_Shdr *s = &l->sections[symbol.st_shndx];
    const char *symbol_name = l->names + symbol.st_name;
    if (strncmp (symbol_name, CPU_ENTRY_PREFIX, n_prefix) != 0
        || strncmp (symbol_name + n_prefix, name, n_name) != 0)
      continue;
    symbol_name += n_prefix;
    if (symbol.st_value > s->sh_size)
      return corrupt (l, "symbol outside its section");
    uint8_t *address = l->memory + l->offsets[symbol.st_shndx] + symbol.st_value;
    if (symbol_name[n_name] == '\0') {
      if (!(s->sh_flags & SHF_EXECINSTR) || symbol.st_value >= s->sh_size)
        return corrupt (l, "entry outside the code");
      out->entry = (CpuKernel) (uintptr_t) address;
    } else if (strcmp (symbol_name + n_name, ".grid") == 0) {
      if (!is_inside (symbol.st_value, sizeof out->grid, s->sh_size))
        return corrupt (l, "grid outside its section");
      memcpy (out->grid, address, sizeof out->grid);
    } else if (strcmp (symbol_name + n_name, ".tiles") == 0) {
      out->uses_tiles = true;
    }
  }
  if (out->entry != NULL)
    return TINY_STATUS_OK;
  return tiny_fail (l->error, TINY_STATUS_CORRUPT, "damaged program: no function '%.200s'",
                    name);
}

static TinyStatus
load (Loader *l, const char *name, CpuObject *out)
{
  TinyStatus status;
  if ((status = read_header (l)) != TINY_STATUS_OK)
    return status;
  if (l->header.e_machine != HOST_MACHINE)
    return tiny_fail (l->error, TINY_STATUS_UNSUPPORTED,
                      "a program for another kind of processor");
  if ((status = read_sections (l)) != TINY_STATUS_OK
      || (status = find_symbols (l)) != TINY_STATUS_OK
      || (status = place_sections (l)) != TINY_STATUS_OK
      || (status = map_sections (l)) != TINY_STATUS_OK
      || (status = relocate_all (l)) != TINY_STATUS_OK
      || (status = find_entry (l, name, out)) != TINY_STATUS_OK)
    return status;
  if (out->uses_tiles && !cpu_arch_take_tiles ())
    return tiny_fail (l->error, TINY_STATUS_PERMISSION,
                      "the system lets this process use no AMX tiles");
  if (mprotect (l->memory, l->writable_at, PROT_READ | PROT_EXEC) != 0)
    return tiny_fail (l->error, TINY_STATUS_PERMISSION,
                      "the system lets no code be made executable");
  __builtin___clear_cache ((char *) l->memory, (char *) l->memory + l->writable_at);
  return TINY_STATUS_OK;
}

TinyStatus
cpu_object_load (
    const void *data, uint64_t size, const char *name, CpuObject *out, TinyPluginError *error)
{
  Loader l = { .data = data, .size = size, .error = error };
  *out = (CpuObject){ 0 };
  TinyStatus status = load (&l, name, out);
  out->memory = l.memory;
  out->n_bytes = l.n_bytes;
  if (status != TINY_STATUS_OK)
    cpu_object_unload (out);
  free (l.sections);
  free (l.offsets);
  return status;
}

void
cpu_object_unload (CpuObject *object)
{
  if (object->memory != NULL)
    munmap (object->memory, object->n_bytes);
  *object = (CpuObject){ 0 };
}

TinyStatus
cpu_object_for_each_code (const void *data,
                          uint64_t size,
                          uint16_t *out_machine,
                          CpuSectionFunc func,
                          void *user_data,
                          TinyPluginError *error)
{
  Loader l = { .data = data, .size = size, .error = error };
  TinyStatus status = read_header (&l);
  if (status == TINY_STATUS_OK)
    status = read_sections (&l);
  if (status == TINY_STATUS_OK) {
    *out_machine = l.header.e_machine;
    for (uint32_t i = 0; i < l.header.e_shnum && func != NULL; i++) {
      const Elf64_Shdr *s = &l.sections[i];
      if (s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_EXECINSTR) && s->sh_size > 0)
        func ("code", l.data + s->sh_offset, s->sh_size, user_data);
    }
  }
  free (l.sections);
  free (l.offsets);
  return status;
}
