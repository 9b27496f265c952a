/* SPDX-License-Identifier: MIT
 *
 * cpu-target.c: architecture strings, and what a processor of an architecture can do.
 *
 * An architecture string is ARCH[,ITEM]…: an ITEM is "native" (what this machine has), a
 * processor's name, a feature's name or +feature (with what it implies), or -feature (with what
 * implies it). "" is this machine. The canonical form lists the features in table order, so equal
 * machines share compiled programs, and parses back to itself. Features of this machine come from
 * CPUID, and only those whose register state the operating system saves. */
#include "cpu-caches.h"
#include "cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

enum {
  CPU_WORD_LEAF1_ECX,
  CPU_WORD_LEAF7_EBX,
  CPU_WORD_LEAF7_ECX,
  CPU_WORD_LEAF7_EDX,
  CPU_WORD_LEAF71_EAX,
  CPU_WORD_LEAF81_ECX,
  CPU_WORD_HWCAP,
  CPU_WORD_HWCAP2,
  CPU_N_WORDS
};
/* Bits of the XCR0 register that must be set. */
enum { CPU_STATE_NONE = 0, CPU_STATE_YMM = 0x6, CPU_STATE_ZMM = 0xe6, CPU_STATE_TMM = 0x600e6 };

typedef struct {
  CpuArchKind arch;
  const char *name, *llvm;
  uint8_t word, bit;
  uint32_t state;
  uint64_t implies;
} CpuFeature;

static const CpuFeature features[CPU_N_FEATURES] = {
#define CPU_FEATURE(arch, id, name, llvm, word, bit, state, implies)                           \
  { CPU_ARCH_##arch, name, llvm, CPU_WORD_##word, bit, CPU_STATE_##state, implies },
#include "cpu-features.def"
#undef CPU_FEATURE
};

static const struct {
  CpuArchKind arch;
  const char *name, *words;
} processors[] = {
#define CPU_PROCESSOR(arch, name, words) { CPU_ARCH_##arch, name, words },
#include "cpu-processors.def"
#undef CPU_PROCESSOR
};

static const struct {
  const char *name;
  CpuArchKind kind;
} arch_names[] = { { "x86_64", CPU_ARCH_X86_64 },
                   { "aarch64", CPU_ARCH_AARCH64 },
                   { "amd64", CPU_ARCH_X86_64 },
                   { "arm64", CPU_ARCH_AARCH64 } };

/* ---- this machine ---- */

static bool
read_words (CpuArchKind *out_kind, uint32_t words[CPU_N_WORDS], uint64_t *out_state)
{
  memset (words, 0, CPU_N_WORDS * sizeof words[0]);
  *out_state = 0;
#if defined(__x86_64__)
  unsigned a, b, c, d, unused;
  *out_kind = CPU_ARCH_X86_64;
  if (!__get_cpuid (1, &a, &b, &words[CPU_WORD_LEAF1_ECX], &d))
    return true;
  if (words[CPU_WORD_LEAF1_ECX] & (1u << 27)) { /* OSXSAVE: xgetbv may be used */
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    *out_state = (uint64_t) high << 32 | low;
  }
  if (__get_cpuid_count (7, 0, &a, &words[CPU_WORD_LEAF7_EBX], &words[CPU_WORD_LEAF7_ECX],
                         &words[CPU_WORD_LEAF7_EDX])
      && a >= 1)
    __get_cpuid_count (7, 1, &words[CPU_WORD_LEAF71_EAX], &b, &c, &unused);
  __get_cpuid (0x80000001u, &a, &b, &words[CPU_WORD_LEAF81_ECX], &d);
  return true;
#elif defined(__aarch64__)
  *out_kind = CPU_ARCH_AARCH64;
  words[CPU_WORD_HWCAP] = (uint32_t) getauxval (AT_HWCAP);
  words[CPU_WORD_HWCAP2] = (uint32_t) getauxval (AT_HWCAP2);
  return true;
#else
  return false;
#endif
}

/* Tiles are a process's for the asking (Linux 5.16 and later), for good: with them each stack for signals has to have room
 * for 8 KiB more. So the system is only asked whether there are any; who loads a program that uses them asks for them. */
enum {
  XCOMP_SUPPORTED = 0x1021,
  XCOMP_REQUEST = 0x1023,
  XTILE_DATA = 18
}; /* of arch_prctl() */

static bool
has_tiles (void)
{
  uint64_t supported = 0;
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  if (syscall (SYS_arch_prctl, XCOMP_SUPPORTED, &supported) != 0)
    return false;
#endif
  return (supported >> XTILE_DATA & 1) != 0;
}

bool
cpu_arch_take_tiles (void)
{
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  return syscall (SYS_arch_prctl, XCOMP_REQUEST, XTILE_DATA) == 0;
#else
  return false;
#endif
}

bool
cpu_arch_host (CpuArch *out)
{
  uint32_t words[CPU_N_WORDS];
  uint64_t state;
  *out = (CpuArch){ 0 };
  if (!read_words (&out->kind, words, &state))
    return false;
  for (unsigned i = 0; i < CPU_N_FEATURES; i++) {
    const CpuFeature *feature = &features[i];
    if (feature->arch == out->kind && (words[feature->word] >> feature->bit & 1)
        && (state & feature->state) == feature->state
        && (out->features & feature->implies) == feature->implies)
      out->features |= UINT64_C (1) << i;
  }
  const uint64_t tiles = CPU_BIT (AMXBF16) | CPU_BIT (AMXINT8);
  if ((out->features & tiles) != 0 && !has_tiles ())
    out->features &= ~tiles;
  return true;
}

bool
cpu_arch_missing (const CpuArch *program, char out[256])
{
  CpuArch host;
  if (!cpu_arch_host (&host) || host.kind != program->kind) {
    snprintf (out, 256, "%s", arch_names[program->kind].name);
    return true;
  }
  CpuArch missing = { host.kind, program->features & ~host.features };
  cpu_arch_to_string (&missing, out);
  char *comma = strchr (out, ',');
  if (comma != NULL)
    memmove (out, comma + 1, strlen (comma));
  return missing.features != 0;
}

/* ---- text ---- */

static int
find_feature (CpuArchKind kind, const char *name, size_t n)
{
  for (unsigned i = 0; i < CPU_N_FEATURES; i++)
    if (features[i].arch == kind && strlen (features[i].name) == n
        && memcmp (features[i].name, name, n) == 0)
      return (int) i;
  return -1;
}

static void
add_feature (CpuArch *arch, unsigned i)
{
  arch->features |= UINT64_C (1) << i;
  for (int k = (int) i; k >= 0; k--)
    if (arch->features >> k & 1)
      arch->features |= features[k].implies;
}

static void
remove_feature (CpuArch *arch, unsigned i)
{
  uint64_t gone = UINT64_C (1) << i;
  for (unsigned k = i + 1; k < CPU_N_FEATURES; k++)
    if (features[k].implies & gone)
      gone |= UINT64_C (1) << k;
  arch->features &= ~gone;
}

/* Adds what the @n bytes at @name stand for. */
static bool
add_named (CpuArch *arch, const char *name, size_t n)
{
  int feature = find_feature (arch->kind, name, n);
  if (feature >= 0) {
    add_feature (arch, (unsigned) feature);
    return true;
  }
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (processors); i++) {
    if (processors[i].arch != arch->kind || strlen (processors[i].name) != n
        || memcmp (processors[i].name, name, n) != 0)
      continue;
    for (const char *word = processors[i].words; *word != '\0';) {
      size_t length = strcspn (word, " ");
      add_named (arch, word, length);
      word += length + strspn (word + length, " ");
    }
    return true;
  }
  return false;
}

static TinyStatus
add_item (CpuArch *arch, const char *item, size_t n, TinyPluginError *error)
{
  const char *arch_name = arch_names[arch->kind].name;
  if (n == 6 && memcmp (item, "native", 6) == 0) {
    CpuArch host;
    if (!cpu_arch_host (&host) || host.kind != arch->kind)
      return tiny_fail (error, TINY_STATUS_INVALID, "native: this machine is no %s", arch_name);
    arch->features |= host.features;
    return TINY_STATUS_OK;
  }
  if (n > 1 && (item[0] == '+' || item[0] == '-')) {
    int feature = find_feature (arch->kind, item + 1, n - 1);
    if (feature < 0)
      return tiny_fail (error, TINY_STATUS_INVALID, "unknown %s feature '%.*s'", arch_name,
                        (int) n - 1, item + 1);
    if (item[0] == '+')
      add_feature (arch, (unsigned) feature);
    else
      remove_feature (arch, (unsigned) feature);
    return TINY_STATUS_OK;
  }
  if (n > 0 && add_named (arch, item, n))
    return TINY_STATUS_OK;
  tiny_fail (error, TINY_STATUS_INVALID, "unknown %s processor or feature '%.*s'", arch_name,
             (int) n, item);
  return tiny_hint (TINY_STATUS_INVALID, error, "ARCH,PROCESSOR,+feature,-feature, such as %s",
                    arch->kind == CPU_ARCH_X86_64 ? "x86_64,native,-avx512f or x86_64,x86-64-v3"
                                                  : "aarch64,native or aarch64,neoverse-n1");
}

TinyStatus
cpu_arch_parse (const char *text, CpuArch *out, TinyPluginError *error)
{
  if (text == NULL || text[0] == '\0' || strcmp (text, "native") == 0) {
    if (cpu_arch_host (out))
      return TINY_STATUS_OK;
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "no code generator for this processor");
  }
  if (strlen (text) > 1024)
    return tiny_fail (error, TINY_STATUS_INVALID, "architecture string of over 1024 bytes");

  size_t n = strcspn (text, ",");
  unsigned i = 0;
  while (i < CPU_ARRAY_SIZE (arch_names)
         && (strlen (arch_names[i].name) != n || memcmp (arch_names[i].name, text, n) != 0))
    i++;
  if (i == CPU_ARRAY_SIZE (arch_names)) {
    tiny_fail (error, TINY_STATUS_INVALID, "unknown architecture '%.*s'", (int) n, text);
    return tiny_hint (TINY_STATUS_INVALID, error, "x86_64 and aarch64 are known");
  }
  *out = (CpuArch){ arch_names[i].kind, 0 };
  while (text[n] == ',') {
    text += n + 1;
    n = strcspn (text, ",");
    TinyStatus status = add_item (out, text, n, error);
    if (status != TINY_STATUS_OK)
      return status;
  }
  return TINY_STATUS_OK;
}

void
cpu_arch_to_string (const CpuArch *arch, char out[256])
{
  int used = snprintf (out, 256, "%s", arch_names[arch->kind].name);
  for (unsigned i = 0; i < CPU_N_FEATURES; i++)
    if (arch->features >> i & 1)
      used += snprintf (out + used, 256 - (size_t) used, ",%s", features[i].name);
}

const char *
cpu_arch_llvm_feature (const CpuArch *arch, unsigned n)
{
  return n < CPU_N_FEATURES && (arch->features >> n & 1) ? features[n].llvm : NULL;
}

const char *
cpu_arch_clang_feature (const CpuArch *arch, unsigned n)
{
  return n < CPU_N_FEATURES && (arch->features >> n & 1) ? features[n].name : NULL;
}

const char *
cpu_arch_tune (const CpuArch *arch)
{
  static const struct {
    CpuArchKind arch;
    uint64_t needs;
    const char *name;
  } models[]
      = { /* also for AVX-512: schedulers that know it move broadcasts until registers spill */
          { CPU_ARCH_X86_64, CPU_BIT (AVX2), "haswell" },
          { CPU_ARCH_X86_64, 0, "x86-64" },
          { CPU_ARCH_AARCH64, CPU_BIT (DOTPROD), "neoverse-n1" },
          { CPU_ARCH_AARCH64, 0, "generic" }
        };
  unsigned i = 0;
  while (models[i].arch != arch->kind || (arch->features & models[i].needs) != models[i].needs)
    i++;
  return models[i].name;
}

/* ---- the target ---- */

unsigned
cpu_arch_vector_bits (const CpuArch *arch)
{
  const uint64_t wide
      = CPU_BIT (AVX512F) | CPU_BIT (AVX512BW) | CPU_BIT (AVX512DQ) | CPU_BIT (AVX512VL);
  if ((arch->features & wide) == wide)
    return 512;
  return arch->features & CPU_BIT (AVX2) ? 256 : 128;
}

/* A line of what the kernel says of a cache of the first processor. */
static bool
read_cache_line (int index, const char *what, char out[32])
{
  char path[96];
  snprintf (path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read (fd, out, 31) : -1;
  out[n > 0 ? n : 0] = '\0';
  if (fd >= 0)
    close (fd);
  return fd >= 0;
}

/* A size such as 1024K, and in @end what follows it. */
static uint64_t
parse_size (const char *text, char **end)
{
  static const char units[] = "KMG";
  uint64_t n_bytes = strtoull (text, end, 10);
  const char *unit = **end != '\0' ? strchr (units, **end) : NULL;
  *end += unit != NULL;
  return unit != NULL ? n_bytes << 10 * (unit - units + 1) : n_bytes;
}

/* Up to three sizes with commas between them, of which each may be left out. */
static TinyStatus
check_caches (TinyPluginError *error)
{
  const char *given = tiny_getenv ("TINY_CPU_CACHES"), *at = given;
  for (int level = 1; at != NULL; level++) {
    char *end = (char *) at;
    if (*at >= '0' && *at <= '9')
      parse_size (at, &end);
    if ((*end != ',' && *end != '\0') || level > 3)
      return tiny_fail (
          error, TINY_STATUS_INVALID,
          "TINY_CPU_CACHES=%.99s: sizes of the caches of levels 1, 2 and 3 such as "
          "48K,2M,105M are wanted",
          given);
    at = *end == ',' ? end + 1 : NULL;
  }
  return TINY_STATUS_OK;
}

/* The first data or unified cache of @level, in bytes, or what TINY_CPU_CACHES has in its place. The kernel's files take as long to read as the rest of opening the
 * device, so the C library says what it knows; the last level it counts for the whole socket, not for what shares one. */
static uint64_t
read_cache_bytes (int level)
{
  char text[32], *end = text;
  const char *given = tiny_getenv ("TINY_CPU_CACHES");
  for (int i = 1; given != NULL && i < level; i++)
    given = strchr (given, ',') != NULL ? strchr (given, ',') + 1 : NULL;
  if (given != NULL && *given != ',' && *given != '\0')
    return parse_size (given, &end);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  static const int names[] = { -1, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE };
  const long said = level < 3 ? sysconf (names[level]) : 0;
  if (said > 0)
    return (uint64_t) said;
#endif
  for (int index = 0; index < 8 && read_cache_line (index, "level", text); index++) {
    if (atoi (text) != level || !read_cache_line (index, "type", text) || text[0] == 'I'
        || !read_cache_line (index, "size", text))
      continue;
    return parse_size (text, &end);
  }
  return 0;
}

uint64_t
cpu_cache_bytes (int level)
{
  static _Atomic uint64_t known[4]; /* with the lowest bit set: it has been read */
  uint64_t n_bytes = known[level];
  if (n_bytes == 0)
    known[level] = n_bytes = cpu_cache_believe (level, read_cache_bytes (level)) | 1;
  return n_bytes & ~UINT64_C (1);
}

static void
fill_ops (const CpuArch *arch, TinyTarget *out)
{
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const uint64_t memory = OP (LOAD) | OP (STORE) | OP (WHERE) | OP (BITCAST);
  const uint64_t compare = OP (CMPLT) | OP (CMPNE) | OP (CMPEQ);
  const uint64_t logic = OP (AND) | OP (OR) | OP (XOR);
  const uint64_t arithmetic = OP (NEG) | OP (ADD) | OP (SUB) | OP (MUL) | OP (MAX) | OP (CAST);
  const uint64_t floats = OP (RECIP) | OP (SQRT) | OP (FDIV) | OP (TRUNC);
  const uint64_t ints = OP (IDIV) | OP (MOD) | OP (SHL) | OP (SHR);
#undef OP
  bool is_arm = arch->kind == CPU_ARCH_AARCH64;
  bool has_fma = is_arm || (arch->features & CPU_BIT (FMA)) != 0;
  bool has_f16_cast = is_arm || (arch->features & CPU_BIT (F16C)) != 0;
  uint64_t cast = TINY_INSTR_BIT (TINY_INSTR_CAST);
  uint64_t fma = has_fma ? TINY_INSTR_BIT (TINY_INSTR_MULACC) : 0;

  out->ops[TINY_DTYPE_BOOL] = memory | compare | logic | cast;
  for (unsigned dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++)
    out->ops[dtype] = memory | compare | logic | arithmetic | ints;
  out->ops[TINY_DTYPE_F16] = memory | (has_f16_cast ? cast : 0);
  out->ops[TINY_DTYPE_BF16] = memory;
  out->ops[TINY_DTYPE_F8E4M3] = memory;
  out->ops[TINY_DTYPE_F8E5M2] = memory;
  out->ops[TINY_DTYPE_F32] = memory | compare | arithmetic | floats | fma;
  out->ops[TINY_DTYPE_F64] = memory | compare | arithmetic | floats | fma;

  for (unsigned dtype = TINY_DTYPE_BOOL; dtype < TINY_N_DTYPES; dtype++)
    if (out->ops[dtype] != 0) {
      bool computes = (out->ops[dtype]
                       & (TINY_INSTR_BIT (TINY_INSTR_ADD) | TINY_INSTR_BIT (TINY_INSTR_AND)))
                      != 0;
      out->dtypes_storage |= TINY_DTYPE_BIT (dtype);
      out->dtypes_compute |= computes ? TINY_DTYPE_BIT (dtype) : 0;
    }
}

TinyStatus
cpu_target (const char *text, TinyTarget *out, TinyPluginError *error)
{
  CpuArch arch;
  TinyStatus status = cpu_arch_parse (text, &arch, error);
  if (status != TINY_STATUS_OK)
    return status;
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (check_caches (error));

  TINY_FILL (out,
             .flags = TINY_TARGET_MASKED | TINY_TARGET_GRID_CHUNKS | TINY_TARGET_UNALIGNED);
  cpu_arch_to_string (&arch, out->arch);
  fill_ops (&arch, out);
  out->index_dtype = TINY_DTYPE_I64;
  out->vector_bits = cpu_arch_vector_bits (&arch);
  out->n_vector_registers = arch.kind == CPU_ARCH_AARCH64 || out->vector_bits == 512 ? 32 : 16;
  out->max_lanes = CPU_MAX_LANES;
  out->n_threads = cpu_n_threads ();
  out->max_params = CPU_MAX_PARAMS;
  for (int axis = 0; axis < 3; axis++) {
    out->max_grid[axis] = INT32_MAX;
    out->max_group[axis] = 1;
    out->cache_bytes[axis] = cpu_cache_bytes (axis + 1);
  }
  out->max_group_total = 1;
  out->local_bytes = CPU_LOCAL_BYTES;
  return TINY_STATUS_OK;
}
