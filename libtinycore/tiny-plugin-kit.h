/* SPDX-License-Identifier: MIT
 *
 * tiny-plugin-kit.h: what most plugins would write alike: errors, structs of other lengths, architectures as text,
 * binaries with a head that damage does not get past.
 *
 * Functions of the plugin's own, compiled into it: no part of the ABI, and nothing has to be used. C11 on
 * Linux. Every function may be called from any thread. A TinyPluginError may be NULL or shorter than ours: then
 * nothing is written to it. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "tiny-plugin.h"

#define TINY_KIT          static inline __attribute__ ((unused))
#define TINY_KIT_N(array) (sizeof (array) / sizeof ((array)[0]))
/* Returns from the function what @call answers unless that is TINY_STATUS_OK. */
#define TINY_TRY(call)                                                                         \
  for (TinyStatus tiny_status_ = (call); tiny_status_ != TINY_STATUS_OK;)                      \
  return tiny_status_

/* ---- errors ---- */

/* Puts text into @error and returns @status: return tiny_fail (error, TINY_STATUS_INVALID, "…"); */
static __attribute__ ((unused, format (printf, 3, 4))) TinyStatus
tiny_fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
{
  if (error == NULL || error->struct_size < TINY_SIZE_0_PLUGIN_ERROR)
    return status;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->text, sizeof error->text, format, arguments);
  va_end (arguments);
  error->hint[0] = '\0';
  error->vendor_code = 0;
  return status;
}

/* What to do about it: after tiny_fail(). Returns @status, so that it can wrap that. */
static __attribute__ ((unused, format (printf, 3, 4))) TinyStatus
tiny_hint (TinyStatus status, TinyPluginError *error, const char *format, ...)
{
  if (error == NULL || error->struct_size < TINY_SIZE_0_PLUGIN_ERROR)
    return status;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->hint, sizeof error->hint, format, arguments);
  va_end (arguments);
  return status;
}

/* A number that a driver answers: its name, and the status that always fits it, or 0. */
typedef struct {
  const char *name;
  int64_t number;
  TinyStatus status;
} TinyCode;

/* 0 is TINY_STATUS_OK. Else what the driver answered when it was to do @what, by name, with the code's
 * own status or @status; the number becomes the error's vendor_code. */
TINY_KIT TinyStatus
tiny_check_code (TinyPluginError *error,
                 const TinyCode *codes,
                 size_t n,
                 TinyStatus status,
                 int64_t number,
                 const char *what)
{
  const char *name = "an error of the driver's own";
  if (number == 0)
    return TINY_STATUS_OK;
  for (size_t i = 0; i < n; i++)
    if (codes[i].number == number) {
      name = codes[i].name;
      status = codes[i].status != 0 ? codes[i].status : status;
    }
  tiny_fail (error, status, "%s: %s (%lld)", what, name, (long long) number);
  if (error != NULL && error->struct_size >= TINY_SIZE_0_PLUGIN_ERROR)
    error->vendor_code = number;
  return status;
}

/* ---- the laws of structs ----
 *
 * What the host passes may be shorter or longer than ours, and hold bits that nobody knew when the plugin was built.
 * Refused is what is shorter than it was in the least core that the plugin serves, and unknown bits (the laws at the
 * head of tiny-plugin.h). First thing in a function:
 *
 *   TINY_TRY (TINY_CHECK_IN (submit, 0, error));    read: its flags may be 0
 *   TINY_TRY (TINY_CHECK_OUT (out, error));         filled, by
 *   TINY_FILL (out, .flags = …, .name = "…");       which writes no more than there is room for
 *
 * A field that came later than that core is used behind TINY_HAS (submit, field). */
/* The least minor of the cores that are served: a number defined before this file is included. */
#ifndef TINY_KIT_MINOR_MIN
#define TINY_KIT_MINOR_MIN 0
#endif
/* Bytes that the struct had in that minor. One that grew in minor 1 gets
 * TINY_KIT_MINOR_MIN < 1 ? TINY_SIZE_0_SUBMIT : TINY_SIZE_1_SUBMIT. */
/* clang-format off */
#define TINY_KIT_LEAST(given)                                                                  \
  ((size_t) _Generic (*(given),                                                                \
                      TinyLinear: TINY_SIZE_0_LINEAR,                                          \
                      TinyTarget: TINY_SIZE_0_TARGET,                                          \
                      TinyOperation: TINY_SIZE_0_OPERATION,                                    \
                      TinyClaim: TINY_SIZE_0_CLAIM,                                            \
                      TinyCompileArgs: TINY_SIZE_0_COMPILE_ARGS,                               \
                      TinyHost: TINY_SIZE_0_HOST,                                              \
                      TinyCandidate: TINY_SIZE_0_CANDIDATE,                                    \
                      TinyDeviceInfo: TINY_SIZE_0_DEVICE_INFO,                                 \
                      TinyCommand: TINY_SIZE_0_COMMAND,                                        \
                      TinySubmit: TINY_SIZE_0_SUBMIT,                                          \
                      TinyProgramArgs: TINY_SIZE_0_PROGRAM_ARGS))
/* clang-format on */

TINY_KIT TinyStatus
tiny_check_struct (const void *given,
                   size_t least,
                   size_t flags,
                   uint32_t known,
                   size_t reserved,
                   size_t n_reserved,
                   const char *what,
                   TinyPluginError *error)
{
  uint32_t has_size = 0, has_flags = 0;
  if (given != NULL)
    memcpy (&has_size, given, sizeof has_size);
  if (has_size < least)
    return tiny_fail (error, TINY_STATUS_INVALID, "%s: %u bytes, and %zu are needed", what,
                      has_size, least);
  if (n_reserved == 0)
    return TINY_STATUS_OK;
  memcpy (&has_flags, (const char *) given + flags, sizeof has_flags);
  uint64_t bits = has_flags & ~known;
  for (size_t i = 0; i < n_reserved && reserved + i + sizeof bits <= has_size;
       i += sizeof bits) {
    uint64_t word;
    memcpy (&word, (const char *) given + reserved + i, sizeof word);
    bits |= word;
  }
  return bits == 0 ? TINY_STATUS_OK
                   : tiny_fail (error, TINY_STATUS_INVALID,
                                "%s: bits are set that this plugin does not know", what);
}
#define TINY_CHECK_IN(given, known, error)                                                     \
  tiny_check_struct ((given), TINY_KIT_LEAST (given),                                          \
                     (size_t) ((char *) &(given)->flags - (char *) (given)), (known),          \
                     (size_t) ((char *) (given)->reserved - (char *) (given)),                 \
                     sizeof (given)->reserved, #given, (error))
#define TINY_CHECK_OUT(given, error)                                                           \
  tiny_check_struct ((given), TINY_KIT_LEAST (given), 0, 0, 0, 0, #given, (error))
/* Whether @given has @field, for fields that came later than the least core served. */
#define TINY_HAS(given, field)                                                                 \
  ((given)->struct_size >= (size_t) ((char *) (&(given)->field + 1) - (char *) (given)))

/* Fills @out, whose struct_size stays, with as much of the @size bytes of @from as it has room for. */
TINY_KIT void
tiny_fill_struct (void *out, const void *from, size_t size)
{
  uint32_t room = 0;
  memcpy (&room, out, sizeof room);
  if (room > sizeof room)
    memcpy ((char *) out + sizeof room, (const char *) from + sizeof room,
            (room < size ? room : size) - sizeof room);
}
/* The fields as in an initialiser; those that are not named become 0. */
#define TINY_FILL(out, ...)                                                                    \
  tiny_fill_struct ((out), &(const __typeof__ (*(out))){ __VA_ARGS__ }, sizeof *(out))

/* What claim() and compile() begin with: the struct, its version, and each operand's reserved fields. @flags: those of
 * TINY_OPERATION_* that the plugin has code for. A failure of claim() is taken as declined, with its text as
 * the reason. Kinds, roles and activations are the plugin's own to look at. */
TINY_KIT TinyStatus
tiny_check_operation (const TinyOperation *operation, uint32_t flags, TinyPluginError *error)
{
  uint64_t bits = 0;
  TINY_TRY (TINY_CHECK_IN (operation, flags, error));
  if (operation->version != TINY_OPERATION_VERSION
      || operation->n_operands > TINY_OPERATION_MAX_OPERANDS)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED,
                      "an operation of version %u, and this plugin knows %u",
                      operation->version, (uint32_t) TINY_OPERATION_VERSION);
  for (uint32_t i = 0; i < operation->n_operands; i++)
    bits |= operation->operands[i].reserved0 | operation->operands[i].reserved[0]
            | operation->operands[i].reserved[1];
  return bits == 0 ? TINY_STATUS_OK
                   : tiny_fail (error, TINY_STATUS_INVALID,
                                "an operand has bits set that this plugin does not know");
}

/* The operand of @operation that has @role, of TINY_ROLE_*, or NULL. */
TINY_KIT const TinyOperandView *
tiny_find_operand (const TinyOperation *operation, uint32_t role)
{
  for (uint32_t i = 0; i < operation->n_operands; i++)
    if (operation->operands[i].role == role)
      return &operation->operands[i];
  return NULL;
}

/* TINY_STATUS_INVALID unless @span lies in a buffer of @n_bytes. */
TINY_KIT TinyStatus
tiny_check_span (const TinySpan *span, uint64_t n_bytes, TinyPluginError *error)
{
  if (span->offset <= n_bytes && span->n_bytes <= n_bytes - span->offset)
    return TINY_STATUS_OK;
  return tiny_fail (error, TINY_STATUS_INVALID,
                    "a span of %llu bytes from byte %llu is outside its buffer of %llu",
                    (unsigned long long) span->n_bytes, (unsigned long long) span->offset,
                    (unsigned long long) n_bytes);
}

/* ---- small things ---- */

/* Of a clock that never goes back. */
TINY_KIT uint64_t
tiny_now_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * UINT64_C (1000000000) + (uint64_t) now.tv_nsec;
}

/* FNV-1a of @data, going on from @hash; begin with 0. */
TINY_KIT uint32_t
tiny_hash (uint32_t hash, const void *data, size_t n_bytes)
{
  hash ^= 2166136261u;
  for (size_t i = 0; i < n_bytes; i++)
    hash = (hash ^ ((const uint8_t *) data)[i]) * 16777619u;
  return hash;
}

/* An environment variable, or NULL where it is unset or empty, or the program is privileged: whoever runs it may not
 * say what it loads, runs or writes. */
TINY_KIT const char *
tiny_getenv (const char *name)
{
  const char *value = getauxval (AT_SECURE) != 0 ? NULL : getenv (name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- architectures as text ----
 *
 * "HEAD,name,other=8": numbers with names, of which 0 is left out and 1 is not said. The same text
 * describes a device in TinyDeviceInfo.arch, is what a user changes in DEV=NAME::…, and is part of every
 * cache key, so that it must hold all that code depends on. */

/* Numbers from 2^32 on are printed as the one below. FALSE (0) and "" when it does not fit, as only numbers
 * that nothing has make it. */
TINY_KIT int
tiny_arch_print (
    const char *head, const char *const *names, size_t n, const uint64_t *values, char out[256])
{
  size_t used = (size_t) snprintf (out, 256, "%s", head);
  for (size_t i = 0; i < n && used < 256; i++)
    if (values[i] != 0)
      used += (size_t) snprintf (out + used, 256 - used, values[i] == 1 ? ",%s" : ",%s=%u",
                                 names[i],
                                 values[i] < UINT32_MAX ? (unsigned) values[i] : UINT32_MAX);
  if (used >= 256)
    out[0] = '\0';
  return used < 256;
}

TINY_KIT TinyStatus
tiny_arch_fail (const char *head,
                const char *const *names,
                size_t n,
                const char *text,
                size_t size,
                TinyPluginError *error)
{
  char all[200] = "";
  for (size_t i = 0; i < n; i++)
    snprintf (all + strlen (all), sizeof all - strlen (all), "%s%s", i ? ", " : "", names[i]);
  tiny_fail (error, TINY_STATUS_INVALID, "'%.*s' is no part of an architecture of %s",
             (int) size, text, head);
  return tiny_hint (TINY_STATUS_INVALID, error, "NAME, -NAME or NAME=NUMBER of %s", all);
}

/* Reads such a text into @values, numbers below 2^32. One that begins with @head is whole: all that it
 * does not name becomes @least, or 0 where that is NULL. Any other changes what it names, such as
 * "fp16,-fp64,bits=128"; "" changes nothing. */
TINY_KIT TinyStatus
tiny_arch_parse (const char *head,
                 const char *const *names,
                 size_t n,
                 const char *text,
                 const uint64_t *least,
                 uint64_t *values,
                 TinyPluginError *error)
{
  const size_t length = strlen (head);
  if (strncmp (text, head, length) == 0 && (text[length] == ',' || text[length] == '\0')) {
    for (size_t i = 0; i < n; i++)
      values[i] = least != NULL ? least[i] : 0;
    text += length;
  }
  for (size_t size; *text != '\0'; text += size) {
    text += *text == ',';
    size = strcspn (text, ",");
    const size_t sign = *text == '-' || *text == '+', key = strcspn (text, "=,") - sign;
    char *end = (char *) text + size;
    size_t i = 0;
    while (i < n && (strlen (names[i]) != key || memcmp (names[i], text + sign, key) != 0))
      i++;
    const int is_bare = sign + key == size, is_number = !is_bare && !sign;
    uint64_t value = is_bare ? *text != '-' : strtoull (text + sign + key + 1, &end, 10);
    if (i == n || end != text + size || value > UINT32_MAX
        || !(is_bare || (is_number && text[key + 1] >= '0' && text[key + 1] <= '9')))
      return tiny_arch_fail (head, names, n, text, size, error);
    values[i] = value;
  }
  return TINY_STATUS_OK;
}

/* For renderers with one architecture: "" and @only are it. */
TINY_KIT TinyStatus
tiny_check_arch (const char *arch, const char *only, TinyPluginError *error)
{
  if (arch[0] == '\0' || strcmp (arch, only) == 0)
    return TINY_STATUS_OK;
  return tiny_fail (error, TINY_STATUS_INVALID, "there is no architecture '%s', only '%s'",
                    arch, only);
}

/* ---- targets and modules ---- */

/* Declares what C compilers have: arithmetic of @compute, @extra ops of f32 beside those, and memory
 * for what is in @storage alone, of f16 with conversions to and from f32. @compute and @storage:
 * TINY_DTYPE_BIT of dtypes. */
TINY_KIT void
tiny_target_declare (TinyTarget *target, uint32_t compute, uint32_t storage, uint64_t extra)
{
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const uint64_t memory = OP (LOAD) | OP (STORE) | OP (WHERE) | OP (BITCAST);
  const uint64_t logic = OP (AND) | OP (OR) | OP (XOR);
  const uint64_t common = memory | OP (CMPLT) | OP (CMPNE) | OP (CMPEQ) | OP (CAST);
  const uint64_t numbers = common | OP (NEG) | OP (ADD) | OP (SUB) | OP (MUL) | OP (MAX);
  const uint64_t ints = numbers | logic | OP (IDIV) | OP (MOD) | OP (SHL) | OP (SHR);
  const uint64_t floats
      = numbers | OP (RECIP) | OP (SQRT) | OP (FDIV) | OP (TRUNC) | OP (MULACC);
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
    if (compute & TINY_DTYPE_BIT (dtype))
      target->ops[dtype] = dtype == TINY_DTYPE_BOOL    ? common | logic
                           : dtype < TINY_DTYPE_F8E4M3 ? ints
                           : dtype == TINY_DTYPE_F32   ? floats | extra
                                                       : floats;
    else if (storage & TINY_DTYPE_BIT (dtype))
      target->ops[dtype] = dtype == TINY_DTYPE_F16 ? memory | OP (CAST) : memory;
  target->dtypes_compute = compute;
  target->dtypes_storage = compute | storage;
#undef OP
}

/* What scan() does with the @n_found candidates that there are, @stride bytes apart. Those of the core lie as far apart
 * as it says that they are long. */
TINY_KIT TinyStatus
tiny_scan_copy (
    const TinyCandidate *found, size_t n_found, size_t stride, TinyCandidate *out, uint32_t *n)
{
  if (*n > 0 && n_found > 0)
    TINY_TRY (TINY_CHECK_OUT (out, NULL));
  for (size_t i = 0; i < n_found && i < *n; i++)
    tiny_fill_struct ((char *) out + i * out->struct_size, (const char *) found + i * stride,
                      sizeof *found);
  *n = (uint32_t) n_found;
  return TINY_STATUS_OK;
}

/* What open() does first, with the candidates of scan(): TINY_STATUS_NO_DEVICE unless @id is one of theirs. */
TINY_KIT TinyStatus
tiny_check_id (const TinyCandidate *found,
               size_t n_found,
               size_t stride,
               const char *id,
               TinyPluginError *error)
{
  for (size_t i = 0; i < n_found; i++)
    if (strcmp (((const TinyCandidate *) ((const char *) found + i * stride))->id, id) == 0)
      return TINY_STATUS_OK;
  return tiny_fail (error, TINY_STATUS_NO_DEVICE, "there is no device '%s'", id);
}

/* Spellings of ops that C-like languages share, scalars and vectors alike unless TinyDialect.vector_ops
 * differ: .ops = { TINY_C_OPS, [TINY_INSTR_ADD] = … }. */
#define TINY_C_OPS                                                                             \
  [TINY_INSTR_LOAD] = "$0[$1]", [TINY_INSTR_STORE] = "$0[$1] = $2",                            \
  [TINY_INSTR_RECIP] = "(($t) 1 / $0)", [TINY_INSTR_FDIV] = "($0 / $1)",                       \
  [TINY_INSTR_CMPLT] = "(($t) ($0 < $1))", [TINY_INSTR_CMPNE] = "(($t) ($0 != $1))",           \
  [TINY_INSTR_CMPEQ] = "(($t) ($0 == $1))", [TINY_INSTR_WHERE] = "(($t) ($0 ? $1 : $2))",      \
  [TINY_INSTR_AND] = "(($t) ($0 & $1))", [TINY_INSTR_OR] = "(($t) ($0 | $1))",                 \
  [TINY_INSTR_XOR] = "(($t) ($0 ^ $1))", [TINY_INSTR_SHL] = "(($t) ($0 << $1))",               \
  [TINY_INSTR_SHR] = "(($t) ($0 >> $1))", [TINY_INSTR_MAX] = "(($t) ($0 > $1 ? $0 : $1))"

/* The module's table, its one exported symbol and its note, for cores from TINY_KIT_MINOR_MIN on;
 * defines @host, which init() fills. What
 * follows are fields of TinyPluginModule: TINY_KIT_MODULE (host, .name = "NPU", .scan = scan, …);
 * with a fini() of its own where it needs one. */
#define TINY_KIT_MODULE(host, ...)                                                             \
  TINY_PLUGIN_NOTE (TINY_KIT_MINOR_MIN);                                                       \
  const TinyHost *host;                                                                        \
  static TinyStatus tiny_kit_init (const TinyHost *given, TinyPluginError *error)              \
  {                                                                                            \
    host = given;                                                                              \
    return TINY_STATUS_OK;                                                                     \
  }                                                                                            \
  static const TinyPluginModule tiny_kit_module = { .struct_size = sizeof (TinyPluginModule),  \
                                                    .abi_major = TINY_PLUGIN_ABI_MAJOR,        \
                                                    .abi_minor = TINY_PLUGIN_ABI_MINOR,        \
                                                    .abi_minor_min = TINY_KIT_MINOR_MIN,       \
                                                    .init = tiny_kit_init,                     \
                                                    __VA_ARGS__ };                             \
  TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,         \
                                                                  TinyPluginError *error);     \
  const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)    \
  {                                                                                            \
    return &tiny_kit_module;                                                                   \
  }

/* ---- binaries ----
 *
 * compile() gives one block of memory to the core, and program_load() is given it again, perhaps years
 * later. A head of the plugin's own lies before what its compiler made; both are under a checksum. */
typedef struct {
  char magic[8];
  uint32_t hash, head_size; /* hash: of all that follows */
} TinyPacked;

/* Room for a head and @size bytes; *out_data is where the bytes go. NULL: no memory. */
TINY_KIT TinyPacked *
tiny_pack (
    const TinyHost *host, const void *head, size_t head_size, size_t size, void **out_data)
{
  TinyPacked *packed = (TinyPacked *) host->alloc (sizeof *packed + head_size + size);
  if (packed == NULL)
    return NULL;
  *packed = (TinyPacked){ .magic = "TINYPAC", .head_size = (uint32_t) head_size };
  memcpy (packed + 1, head, head_size);
  *out_data = (char *) (packed + 1) + head_size;
  return packed;
}

/* After the bytes are there: closes it and gives it to the caller of compile(). */
TINY_KIT void
tiny_pack_end (TinyPacked *packed, size_t size, void **out_data, uint64_t *out_size)
{
  packed->hash = tiny_hash (0, packed + 1, packed->head_size + size);
  *out_data = packed;
  *out_size = sizeof *packed + packed->head_size + size;
}

/* Copies the head out and finds the bytes behind it. TINY_STATUS_CORRUPT: not what was packed. */
TINY_KIT TinyStatus
tiny_unpack (const TinyProgramArgs *args,
             void *out_head,
             size_t head_size,
             const void **out_data,
             size_t *out_size,
             TinyPluginError *error)
{
  TinyPacked packed = { .head_size = 0 };
  const size_t before = sizeof packed + head_size;
  const char *data = (const char *) args->data; /* at any address */
  if (args->size >= before)
    memcpy (&packed, data, sizeof packed);
  if (args->size < before || memcmp (packed.magic, "TINYPAC", 8) != 0
      || packed.head_size != head_size
      || packed.hash
             != tiny_hash (0, data + sizeof packed, (size_t) args->size - sizeof packed))
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: damaged, or made by another plugin",
                      args->name);
  memcpy (out_head, data + sizeof packed, head_size);
  *out_data = data + before;
  *out_size = (size_t) args->size - before;
  return TINY_STATUS_OK;
}

/* Where an element of a fragment is in its matrix: the numbers along TINY_UNIT_M, _N and _K, those it has.
 * @bits: a, b or c of the unit; @item: the work-item's number among those of the unit. */
typedef struct {
  uint32_t m, n, k;
} TinyUnitPlace;
TINY_KIT TinyUnitPlace
tiny_find_in_unit (const TinyUnit *unit,
                   const uint8_t bits[16],
                   uint32_t item,
                   uint32_t element)
{
  uint32_t at[TINY_UNIT_SAME / 16 + 1] = { 0 };
  for (uint32_t i = 0; i < 16 && bits[i] != 0; i++) {
    const uint32_t value
        = i < unit->n_thread_bits ? item >> i : element >> (i - unit->n_thread_bits);
    at[bits[i] / 16 % (TINY_UNIT_SAME / 16 + 1)] |= (value & 1) << bits[i] % 16;
  }
  return (TinyUnitPlace){ at[TINY_UNIT_M / 16], at[TINY_UNIT_N / 16], at[TINY_UNIT_K / 16] };
}

/* The elements of a fragment. */
TINY_KIT uint32_t
tiny_count_in_unit (const TinyUnit *unit, const uint8_t bits[16])
{
  uint32_t n = 0;
  while (n < 16 && bits[n] != 0)
    n++;
  return n < unit->n_thread_bits ? 0 : UINT32_C (1) << (n - unit->n_thread_bits);
}

/* submit() of a synchronous device: @run for each command, with its time. */
TINY_KIT TinyStatus
tiny_submit_each (const TinySubmit *submit,
                  TinyStatus (*run) (void *context,
                                     const TinyCommand *command,
                                     TinyPluginError *error),
                  void *context,
                  TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    const uint64_t start = submit->out_ns != NULL ? tiny_now_ns () : 0;
    TINY_TRY (TINY_CHECK_IN (command, TINY_COMMAND_OVERLAPS, error));
    TINY_TRY (run (context, command, error));
    if (submit->out_ns != NULL)
      submit->out_ns[i] = tiny_now_ns () - start;
    at += command->struct_size; /* a newer core's may be longer */
  }
  return TINY_STATUS_OK;
}
