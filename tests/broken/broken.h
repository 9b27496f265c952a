/* SPDX-License-Identifier: MIT
 *
 * broken.h: a backend that is wrong in one way: a working one inside, and a fault around it.
 *
 * A fault is a row: functions that stand in for those of the backend inside, and a rule by which linear programs
 * are rewritten before that backend compiles them. What a row leaves out is the backend's own, unchanged; the
 * row "none" leaves out everything. Handles (device, buffer, queue, program) are those of the backend inside. */
#pragma once

#include "rewrite.h"
#include "tiny-plugin-kit.h"

typedef struct {
  const char *name; /* TINY_BROKEN=name */
  const char *what; /* what is wrong, one line */
  const char *seen; /* in what real drivers it was */
  /* What it is put around: "REF", the interpreter, is the default; "CPU" for what needs speed, threads or
   * much memory, "CL" for what is in source. @arch is the target's: DEV=REF::arch. */
  const char *around, *arch;
  const char *cases; /* globs of the cases that find it fastest, a hint: "memory/ *|queue/ *" */
  int is_of_sizes; /* it is about structs of another size: else it is only shown those of ours */
  int is_of_operations; /* its compile() is shown operations, not programs */
  RewriteRule rewrite;
  /* Deletes from, or changes in place, the source of a dialect's renderer. */
  void (*source) (char *text);
  /* What no function can do: changes the tables themselves. */
  void (*change) (TinyPluginModule *module, TinyRenderer *renderer);
  /* The functions that stand in. */
  TinyPluginModule module;
  TinyRenderer renderer;
  TinyDeviceTable device;
} Fault;

typedef struct {
  const Fault *faults;
  size_t n;
} FaultTable;

/* Every fault there is, "none" first; NULL behind the last. */
const Fault *fault_at (size_t i);
const Fault *fault_find (const char *name);

#define FAULT_TABLE(name) const FaultTable name = { rows, TINY_KIT_N (rows) }

/* The backend inside, for functions that stand in; device: of the device that was opened last. */
typedef struct {
  const Fault *fault;
  const TinyHost *host;
  const TinyPluginModule *module;
  const TinyRenderer *renderer;
  const TinyDeviceTable *device;
} Inside;
extern Inside inside;

static inline int
launches (const TinyCommand *command)
{
  return command->type == TINY_COMMAND_DISPATCH;
}

/* What stands in for init() or open() calls these for the backend inside. */
TinyStatus inside_init (const TinyHost *host, TinyPluginError *error);
TinyStatus inside_open (const char *id,
                        TinyPluginDevice **out,
                        const TinyDeviceTable **out_table,
                        TinyPluginError *error);

/* That the fault has done something wrong now: makes the file TINY_BROKEN_TRACE, if that is set. */
void broken_note (void);

/* ---- buffers whose size a fault has to know ---- */
void sizes_put (const void *buffer, uint64_t n_bytes);
uint64_t sizes_take (const void *buffer);
uint64_t sizes_get (const void *buffer);
/* One that is alive and not @buffer, or NULL: the one made last. */
TinyPluginBuffer *sizes_other (const void *buffer);
/* Those of the backend inside, which note sizes and forget them. */
TinyStatus sizes_alloc (TinyPluginDevice *device,
                        uint64_t n_bytes,
                        TinyPluginBuffer **out,
                        TinyPluginError *error);
void sizes_free (TinyPluginDevice *device, TinyPluginBuffer *buffer);

/* Fills @buffer by an upload. */
void overwrite (TinyPluginDevice *device, TinyPluginBuffer *buffer, uint64_t n_bytes, int byte);

/* ---- submissions ---- */

/* A copy of the commands of @submit, n_commands of them in a row, to change; free() it. */
TinyCommand *commands_copy (const TinySubmit *submit);
/* Submits @n of @commands instead of those of @submit, which is given its times. */
TinyStatus submit_others (TinyPluginDevice *device,
                          TinyPluginQueue *queue,
                          const TinySubmit *submit,
                          const TinyCommand *commands,
                          uint32_t n,
                          TinyPluginError *error);
/* Submits each command as @edit leaves it, which answers whether it changed anything. */
TinyStatus submit_edited (TinyPluginDevice *device,
                          TinyPluginQueue *queue,
                          const TinySubmit *submit,
                          int (*edit) (TinyCommand *command),
                          TinyPluginError *error);

#define SUBMIT(name)                                                                           \
  static TinyStatus name (TinyPluginDevice *device, TinyPluginQueue *queue,                    \
                          const TinySubmit *submit, TinyPluginError *error)
/* submit() with every command edited: EDIT (name) { command->…; return 1; } */
#define EDIT(name)                                                                             \
  static int name##_edit (TinyCommand *command);                                               \
  SUBMIT (name) { return submit_edited (device, queue, submit, name##_edit, error); }          \
  static int name##_edit (TinyCommand *command)
