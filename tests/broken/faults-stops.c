/* SPDX-License-Identifier: MIT
 *
 * faults-stops.c: every function of the contract, in turn, crashes, ends the process, or never returns. */
#include <unistd.h>

#include "broken.h"

static void
crash (void)
{
  broken_note ();
  *(volatile char *) NULL = 0;
}

static void
leave (void)
{
  broken_note ();
  exit (0);
}

static void
hang (void)
{
  broken_note ();
  for (;;)
    pause ();
}

static void
overflow (void)
{
  broken_note ();
  abort ();
}

/* One function for each way. */
#define STOPS(function, result, parameters, after)                                             \
  static result function##_crash parameters                                                    \
  {                                                                                            \
    crash ();                                                                                  \
    after;                                                                                     \
  }                                                                                            \
  static result function##_exit parameters                                                     \
  {                                                                                            \
    leave ();                                                                                  \
    after;                                                                                     \
  }                                                                                            \
  static result function##_hang parameters                                                     \
  {                                                                                            \
    hang ();                                                                                   \
    after;                                                                                     \
  }                                                                                            \
  static result function##_abort parameters                                                    \
  {                                                                                            \
    overflow ();                                                                               \
    after;                                                                                     \
  }

STOPS (init, TinyStatus, (const TinyHost *host, TinyPluginError *error), return TINY_STATUS_OK)
STOPS (fini, void, (void), )
STOPS (scan,
       TinyStatus,
       (TinyCandidate * out, uint32_t *n, TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (open,
       TinyStatus,
       (const char *id,
        TinyPluginDevice **out,
        const TinyDeviceTable **out_table,
        TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (close, void, (TinyPluginDevice * device), )
STOPS (info,
       TinyStatus,
       (TinyPluginDevice * device, TinyDeviceInfo *out, TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (alloc,
       TinyStatus,
       (TinyPluginDevice * device,
        uint64_t n_bytes,
        TinyPluginBuffer **out,
        TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (free, void, (TinyPluginDevice * device, TinyPluginBuffer *buffer), )
STOPS (queue_create,
       TinyStatus,
       (TinyPluginDevice * device, TinyPluginQueue **out, TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (queue_destroy, void, (TinyPluginDevice * device, TinyPluginQueue *queue), )
STOPS (submit,
       TinyStatus,
       (TinyPluginDevice * device,
        TinyPluginQueue *queue,
        const TinySubmit *submit,
        TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (program_load,
       TinyStatus,
       (TinyPluginDevice * device,
        const TinyProgramArgs *args,
        TinyPluginProgram **out,
        TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (program_unload, void, (TinyPluginDevice * device, TinyPluginProgram *program), )
STOPS (
    map,
    TinyStatus,
    (TinyPluginDevice * device, TinyPluginBuffer *buffer, void **out, TinyPluginError *error),
    return TINY_STATUS_OK)
STOPS (target,
       TinyStatus,
       (const char *arch, TinyTarget *out, TinyPluginError *error),
       return TINY_STATUS_OK)
STOPS (
    compile,
    TinyStatus,
    (const TinyCompileArgs *args, void **out_data, uint64_t *out_size, TinyPluginError *error),
    return TINY_STATUS_OK)

#define ROW(table, function, way, text, class)                                                 \
  { .name = #way "-" #function,                                                                \
    .what = #function "() " text,                                                              \
    .seen = class,                                                                             \
    .table = { .function = function##_##way },                                                 \
    .cases = "lifecycle/*|memory/*|exec/*" },
#define ROWS(table, function)                                                                  \
  ROW (table, function, crash, "crashes", "null pointers in drivers")                          \
  ROW (table, function, exit, "calls exit()", "libraries that give up for their program")      \
  ROW (table, function, abort, "calls abort()", "assertions in shipped libraries")             \
  ROW (table, function, hang, "never returns", "waits without a time-out")

static const Fault rows[] = {
  /* clang-format off */
  ROWS (module, init) ROWS (module, fini) ROWS (module, scan) ROWS (module, open)
  ROWS (device, close) ROWS (device, info) ROWS (device, alloc) ROWS (device, free)
  ROWS (device, queue_create) ROWS (device, queue_destroy) ROWS (device, submit)
  ROWS (device, program_load) ROWS (device, program_unload) ROWS (device, map)
  ROWS (renderer, target) ROWS (renderer, compile)
  /* clang-format on */
};
FAULT_TABLE (faults_stops);
