/* SPDX-License-Identifier: MIT
 *
 * tiny-plugin-kit.h: what most plugins would write alike: errors, a library opened at run time,
 * architectures as text, binaries with a head that damage does not get past.
 *
 * Functions of the plugin's own, compiled into it: no part of the ABI, and nothing has to be used. C11 on
 * Linux; tiny_open_library() wants the C library's dlopen(). Every function may be called from any
 * thread. A TinyPluginError may be NULL or shorter than ours: then nothing is written to it. */
#pragma once

#include <dlfcn.h>
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
  if (error == NULL || error->struct_size < sizeof *error)
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
  if (error == NULL || error->struct_size < sizeof *error)
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
  if (error != NULL && error->struct_size >= sizeof *error)
    error->vendor_code = number;
  return status;
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

/* ---- a driver's library ---- */
typedef struct {
  const char *name;
  size_t offset;   /* of the function pointer in the table that is filled */
  int is_optional; /* NULL where the library lacks it */
} TinySymbol;

/* Opens the file that environment variable @variable names, else the first of the NULL-ended @names
 * that is there, and fills @table. The variable counts for nothing in a privileged program.
 * TINY_STATUS_DRIVER says what is missing; @hint, what to install. */
TINY_KIT TinyStatus
tiny_open_library (const char *variable,
                   const char *const *names,
                   const TinySymbol *symbols,
                   size_t n,
                   void *table,
                   const char *hint,
                   void **out,
                   TinyPluginError *error)
{
  const char *const named[] = { getauxval (AT_SECURE) != 0 ? NULL : getenv (variable), NULL };
  const int is_named = named[0] != NULL && named[0][0] != '\0';
  char why[512] = "";
  void *library = NULL;
  for (names = is_named ? named : names; *names != NULL && library == NULL; names++)
    if ((library = dlopen (*names, RTLD_NOW | RTLD_LOCAL)) == NULL) {
      const char *text = dlerror ();
      snprintf (why + strlen (why), sizeof why - strlen (why), "%s%.200s", why[0] ? "; " : "",
                text != NULL ? text : *names);
    }
  if (library == NULL) {
    tiny_fail (error, TINY_STATUS_DRIVER, "%s%s%s", is_named ? variable : "no library", ": ",
               why);
    return tiny_hint (TINY_STATUS_DRIVER, error, "%s", hint);
  }
  for (size_t i = 0; i < 2 * n; i++) { /* first to look, then to fill: all or none */
    const TinySymbol *symbol = &symbols[i % n];
    void *function = dlsym (library, symbol->name);
    if (function == NULL && !symbol->is_optional) {
      tiny_fail (error, TINY_STATUS_DRIVER, "%s lacks %s: another library, or an older one",
                 names[-1], symbol->name);
      dlclose (library);
      return tiny_hint (TINY_STATUS_DRIVER, error, "%s", hint);
    }
    if (i >= n)
      memcpy ((char *) table + symbol->offset, &function, sizeof function);
  }
  *out = library;
  return TINY_STATUS_OK;
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

/* What scan() does with the @n_found candidates that there are, @stride bytes apart. */
TINY_KIT TinyStatus
tiny_scan_copy (
    const TinyCandidate *found, size_t n_found, size_t stride, TinyCandidate *out, uint32_t *n)
{
  for (size_t i = 0; i < n_found && i < *n; i++)
    out[i] = *(const TinyCandidate *) ((const char *) found + i * stride);
  *n = (uint32_t) n_found;
  return TINY_STATUS_OK;
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

/* The module's table, its one exported symbol and its note; defines @host, which init() fills. What
 * follows are fields of TinyPluginModule: TINY_KIT_MODULE (host, .name = "NPU", .scan = scan, …);
 * with a fini() of its own where it needs one. */
#define TINY_KIT_MODULE(host, ...)                                                             \
  TINY_PLUGIN_NOTE (0);                                                                        \
  const TinyHost *host;                                                                        \
  static TinyStatus tiny_kit_init (const TinyHost *given, TinyPluginError *error)              \
  {                                                                                            \
    host = given;                                                                              \
    return TINY_STATUS_OK;                                                                     \
  }                                                                                            \
  static const TinyPluginModule tiny_kit_module = { .struct_size = sizeof (TinyPluginModule),  \
                                                    .abi_major = TINY_PLUGIN_ABI_MAJOR,        \
                                                    .abi_minor = TINY_PLUGIN_ABI_MINOR,        \
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
  const TinyPacked *packed = (const TinyPacked *) args->data;
  const size_t before = sizeof *packed + head_size;
  if (args->size < before || memcmp (packed->magic, "TINYPAC", 8) != 0
      || packed->head_size != head_size
      || packed->hash != tiny_hash (0, packed + 1, (size_t) args->size - sizeof *packed))
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: damaged, or made by another plugin",
                      args->name);
  memcpy (out_head, packed + 1, head_size);
  *out_data = (const char *) (packed + 1) + head_size;
  *out_size = (size_t) args->size - before;
  return TINY_STATUS_OK;
}

/* ---- a compiler that is a command, and programs that are shared objects ---- */

/* Makes a new file with @data; @path must then be unlinked and is "" where there is none. */
TINY_KIT TinyStatus
tiny_make_file (char path[64], const void *data, size_t size, TinyPluginError *error)
{
  const char *folder = getenv ("TMPDIR");
  snprintf (path, 64, "%.40s/tiny-XXXXXX",
            folder != NULL && folder[0] == '/' ? folder : "/tmp");
  const int fd = mkstemp (path);
  size_t n = 0;
  for (ssize_t now = 1; fd >= 0 && n < size && now > 0; n += now > 0 ? (size_t) now : 0)
    now = write (fd, (const char *) data + n, size - n);
  const int is_closed = fd >= 0 && close (fd) == 0;
  if (is_closed && n == size)
    return TINY_STATUS_OK;
  tiny_fail (error, TINY_STATUS_INTERNAL, "%s: cannot be written", path);
  if (fd >= 0)
    unlink (path);
  path[0] = '\0';
  return TINY_STATUS_INTERNAL;
}

/* Reads the file at @path as what compile() gives. */
TINY_KIT TinyStatus
tiny_pack_file (const TinyHost *host,
                const char *path,
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  FILE *file = fopen (path, "r");
  const long size = file != NULL && fseek (file, 0, SEEK_END) == 0 ? ftell (file) : -1;
  void *bytes = NULL;
  TinyPacked *packed = size > 0 ? tiny_pack (host, "", 0, (size_t) size, &bytes) : NULL;
  const int is_whole = packed != NULL && fseek (file, 0, SEEK_SET) == 0
                       && fread (bytes, 1, (size_t) size, file) == (size_t) size;
  if (file != NULL)
    fclose (file);
  if (is_whole)
    tiny_pack_end (packed, (size_t) size, out_data, out_size);
  else if (packed != NULL)
    host->free (packed);
  return is_whole ? TINY_STATUS_OK
                  : tiny_fail (error, TINY_STATUS_INTERNAL, "%s: cannot be read", path);
}

/* compile() by a command line of the shell, such as "cc -shared -o $out -x c $in": $in becomes the
 * path of a file with the source, $out that of one to write. What the command says goes into the error. */
TINY_KIT TinyStatus
tiny_compile_by_command (const TinyHost *host,
                         const char *command,
                         const TinyCompileArgs *args,
                         void **out_data,
                         uint64_t *out_size,
                         TinyPluginError *error)
{
  char in[64] = "", out[64] = "", log[900] = "";
  char *line = (char *) malloc (strlen (command) + 256);
  TinyStatus status = tiny_make_file (in, args->source, (size_t) args->source_size, error);
  if (status == TINY_STATUS_OK)
    status = tiny_make_file (out, "", 0, error);
  if (line == NULL)
    status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  if (status == TINY_STATUS_OK) {
    snprintf (line, strlen (command) + 256, "in='%s' out='%s'; { %s; } 2>&1", in, out, command);
    FILE *pipe = popen (line, "re");
    const size_t n = pipe != NULL ? fread (log, 1, sizeof log - 1, pipe) : 0;
    for (char rest[512]; n == sizeof log - 1 && fread (rest, 1, sizeof rest, pipe) > 0;)
      ;
    if (pipe == NULL || pclose (pipe) != 0)
      status = tiny_fail (error, TINY_STATUS_COMPILE, "%s: %s", args->name, log);
    else
      status = tiny_pack_file (host, out, out_data, out_size, error);
  }
  free (line);
  unlink (in);
  unlink (out);
  return status;
}

/* program_load() and program_unload() of such shared objects: a TinyPluginProgram is what dlsym() takes. */
TINY_KIT TinyStatus
tiny_library_load (TinyPluginDevice *device,
                   const TinyProgramArgs *args,
                   TinyPluginProgram **out,
                   TinyPluginError *error)
{
  char path[64];
  const void *data = NULL;
  size_t size = 0;
  TINY_TRY (tiny_unpack (args, path, 0, &data, &size, error));
  TINY_TRY (tiny_make_file (path, data, size, error));
  void *library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  const char *why = library == NULL ? dlerror () : NULL;
  unlink (path);
  *out = (TinyPluginProgram *) library;
  return library != NULL ? TINY_STATUS_OK
                         : tiny_fail (error, TINY_STATUS_CORRUPT, "%s: %s", args->name,
                                      why != NULL ? why : "cannot be opened");
}

TINY_KIT void
tiny_library_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  dlclose (program);
}

/* ---- devices whose memory is the host's: a TinyPluginBuffer is the address of its bytes ---- */
TINY_KIT TinyStatus
tiny_host_alloc (TinyPluginDevice *device,
                 uint64_t n_bytes,
                 TinyPluginBuffer **out,
                 TinyPluginError *error)
{
  *out = n_bytes < PTRDIFF_MAX - 64
             ? (TinyPluginBuffer *) aligned_alloc (64, ((size_t) n_bytes / 64 + 1) * 64)
             : NULL;
  return *out != NULL ? TINY_STATUS_OK
                      : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %llu bytes",
                                   (unsigned long long) n_bytes);
}

TINY_KIT void
tiny_host_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  free (buffer);
}

TINY_KIT TinyStatus
tiny_host_map (TinyPluginDevice *device,
               TinyPluginBuffer *buffer,
               void **out,
               TinyPluginError *error)
{
  *out = buffer;
  return TINY_STATUS_OK;
}

TINY_KIT char *
tiny_host_bytes (const TinySpan *span)
{
  return (char *) span->buffer + span->offset;
}

/* UPLOAD, DOWNLOAD and COPY of such buffers. */
TINY_KIT TinyStatus
tiny_host_copy (const TinyCommand *command, TinyPluginError *error)
{
  if (command->type == TINY_COMMAND_UPLOAD)
    memcpy (tiny_host_bytes (&command->dst), command->host, (size_t) command->dst.n_bytes);
  else if (command->type == TINY_COMMAND_DOWNLOAD)
    memcpy (command->host, tiny_host_bytes (&command->src), (size_t) command->src.n_bytes);
  else if (command->type == TINY_COMMAND_COPY)
    memmove (tiny_host_bytes (&command->dst), tiny_host_bytes (&command->src),
             (size_t) command->src.n_bytes);
  else
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "a command of the unknown type %u",
                      command->type);
  return TINY_STATUS_OK;
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
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const uint64_t start = submit->out_ns != NULL ? tiny_now_ns () : 0;
    TINY_TRY (run (context, (const TinyCommand *) at, error));
    if (submit->out_ns != NULL)
      submit->out_ns[i] = tiny_now_ns () - start;
    at += ((const TinyCommand *) at)->struct_size; /* a newer core's may be longer */
  }
  return TINY_STATUS_OK;
}
