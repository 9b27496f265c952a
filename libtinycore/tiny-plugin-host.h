/* SPDX-License-Identifier: MIT
 *
 * tiny-plugin-host.h: for backends that use the host: compilers that are commands, programs that are
 * shared objects, memory that is the host's.
 *
 * Functions of the plugin's own, as those of the kit. A device of this kind is made of
 * .alloc = tiny_host_alloc, .free = tiny_host_free, .map = tiny_host_map, .import_host = tiny_host_import,
 * .program_load = tiny_library_load, .program_unload = tiny_library_unload and a submit() of
 * tiny_submit_each() and tiny_host_copy(). */
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>

#include "tiny-plugin-kit.h"

/* ---- a compiler that is a command, and programs that are shared objects ---- */

/* Where temporary files are: TMPDIR, where it can be quoted in a command line and has @most bytes at most. */
TINY_KIT const char *
tiny_find_temporary (size_t most)
{
  const char *folder = tiny_getenv ("TMPDIR");
  const int is_usable = folder != NULL && folder[0] == '/' && strlen (folder) <= most
                        && strchr (folder, '\'') == NULL;
  return is_usable ? folder : "/tmp";
}

enum { TINY_FOLDER_BYTES = 240 }; /* of a path */

/* Makes a new folder, to be the TMPDIR of a command that may be stopped half way; @path is then for
 * tiny_remove_folder(), and "" where there is none. */
TINY_KIT TinyStatus
tiny_make_folder (char path[TINY_FOLDER_BYTES], TinyPluginError *error)
{
  snprintf (path, TINY_FOLDER_BYTES, "%s/tiny-XXXXXX",
            tiny_find_temporary (TINY_FOLDER_BYTES - 16));
  if (mkdtemp (path) != NULL)
    return TINY_STATUS_OK;
  tiny_fail (error, TINY_STATUS_INTERNAL, "%s: cannot be made: %s", path, strerror (errno));
  path[0] = '\0';
  return TINY_STATUS_INTERNAL;
}

/* Removes it with the files that are left in it. */
TINY_KIT void
tiny_remove_folder (const char *path)
{
  DIR *dir = path[0] != '\0' ? opendir (path) : NULL;
  for (struct dirent *entry; dir != NULL && (entry = readdir (dir)) != NULL;)
    unlinkat (dirfd (dir), entry->d_name, 0);
  if (dir != NULL)
    closedir (dir);
  if (path[0] != '\0')
    rmdir (path);
}

/* Makes a new file with @data; @path must then be unlinked and is "" where there is none. */
TINY_KIT TinyStatus
tiny_make_file (char path[64], const void *data, size_t size, TinyPluginError *error)
{
  snprintf (path, 64, "%s/tiny-XXXXXX", tiny_find_temporary (48));
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

/* Writes @data to the file at @path. */
TINY_KIT TinyStatus
tiny_write_file (const char *path, const void *data, size_t size, TinyPluginError *error)
{
  FILE *file = fopen (path, "we");
  const int is_whole = file != NULL && fwrite (data, 1, size, file) == size;
  const int is_closed = file != NULL && fclose (file) == 0;
  return is_whole && is_closed
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_INTERNAL, "%s: cannot be written", path);
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

/* Runs the shell's command line and puts the beginning of what it says into @log. -1 where there is no shell; else its
 * exit status, 0 where nobody can say, as the program ignores its children (SIGCHLD). */
TINY_KIT int
tiny_run_command (const char *line, char *log, size_t n_log)
{
  FILE *pipe = popen (line, "re");
  if (pipe == NULL)
    return -1;
  const size_t n = fread (log, 1, n_log - 1, pipe);
  log[n] = '\0';
  for (char rest[512]; fread (rest, 1, sizeof rest, pipe) > 0;)
    ;
  const int status = pclose (pipe);
  return status == -1 && errno == ECHILD ? 0 : status;
}

/* compile() by a command line of the shell, such as "cc -shared -o $out -x c $in": $in becomes the
 * path of a file with the source, $out that of one to write: one that is empty in the end is a failure, too. TMPDIR
 * is a folder of its own, which goes with what it leaves there. What the command says goes into the error.
 * Privileged programs have the system's PATH. */
TINY_KIT TinyStatus
tiny_compile_by_command (const TinyHost *host,
                         const char *command,
                         const TinyCompileArgs *args,
                         void **out_data,
                         uint64_t *out_size,
                         TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->linear != NULL)
    TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  char own[TINY_FOLDER_BYTES] = "", in[TINY_FOLDER_BYTES + 8], out[TINY_FOLDER_BYTES + 8],
       log[900] = "";
  const size_t n_line = strlen (command) + 4 * sizeof out;
  char *line = (char *) malloc (n_line);
  const char *path = getauxval (AT_SECURE) != 0 ? "PATH=/usr/bin:/bin; export PATH; " : "";
  TinyStatus status = tiny_make_folder (own, error);
  snprintf (in, sizeof in, "%s/in", own);
  snprintf (out, sizeof out, "%s/out", own);
  if (status == TINY_STATUS_OK)
    status = tiny_write_file (in, args->source, (size_t) args->source_size, error);
  if (status == TINY_STATUS_OK)
    status = tiny_write_file (out, "", 0, error);
  if (line == NULL)
    status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  if (status == TINY_STATUS_OK) {
    struct stat made;
    snprintf (line, n_line, "%sTMPDIR='%s'; export TMPDIR; in='%s' out='%s'; { %s; } 2>&1",
              path, own, in, out, command);
    const int is_good = tiny_run_command (line, log, sizeof log) == 0;
    const int is_empty = stat (out, &made) != 0 || made.st_size == 0;
    if (!is_good || (is_empty && log[0] != '\0'))
      status = tiny_fail (error, TINY_STATUS_COMPILE, "%s: %s", args->name, log);
    else
      status = tiny_pack_file (host, out, out_data, out_size, error);
  }
  free (line);
  tiny_remove_folder (own);
  return status;
}

/* program_load() and program_unload() of such shared objects: a TinyPluginProgram is what dlsym() takes. */
TINY_KIT TinyStatus
tiny_library_load (TinyPluginDevice *device,
                   const TinyProgramArgs *args,
                   TinyPluginProgram **out,
                   TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
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

/* ---- devices whose memory is the host's: a TinyPluginBuffer is the address of its bytes, and in its
 * last bit says that they are somebody else's ---- */
enum { TINY_HOST_IS_IMPORTED = 1 };

TINY_KIT char *
tiny_host_address (const TinyPluginBuffer *buffer)
{
  return (char *) ((uintptr_t) buffer & ~(uintptr_t) TINY_HOST_IS_IMPORTED);
}

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
  if (((uintptr_t) buffer & TINY_HOST_IS_IMPORTED) == 0)
    free (buffer);
}

/* Takes memory of the program, or of a process that shares it (DEV=ISOLATED+NAME). */
TINY_KIT TinyStatus
tiny_host_import (TinyPluginDevice *device,
                  void *memory,
                  uint64_t n_bytes,
                  TinyPluginBuffer **out,
                  TinyPluginError *error)
{
  if (memory == NULL || ((uintptr_t) memory & TINY_HOST_IS_IMPORTED) != 0)
    return tiny_fail (error, TINY_STATUS_INVALID, "memory at %p cannot be imported", memory);
  *out = (TinyPluginBuffer *) ((uintptr_t) memory | TINY_HOST_IS_IMPORTED);
  return TINY_STATUS_OK;
}

TINY_KIT TinyStatus
tiny_host_map (TinyPluginDevice *device,
               TinyPluginBuffer *buffer,
               void **out,
               TinyPluginError *error)
{
  *out = tiny_host_address (buffer);
  return TINY_STATUS_OK;
}

TINY_KIT char *
tiny_host_bytes (const TinySpan *span)
{
  return tiny_host_address (span->buffer) + span->offset;
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
