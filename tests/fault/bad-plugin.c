/* SPDX-License-Identifier: MIT
 *
 * bad-plugin.c: a backend that is wrong in one way, chosen when it is compiled (FAULT_…).
 *
 * Without a fault it is a small right one, which the table of tests uses as its control. */
#include "tiny-plugin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FAULT_NOTE_MAJOR
#define FAULT_NOTE_MAJOR TINY_PLUGIN_ABI_MAJOR
#endif
#ifndef FAULT_MINOR_MIN
#define FAULT_MINOR_MIN 0
#endif
#ifndef FAULT_MAJOR
#define FAULT_MAJOR TINY_PLUGIN_ABI_MAJOR
#endif
#ifndef FAULT_VERSION
#define FAULT_VERSION "1"
#endif
#ifndef FAULT_NAME
#define FAULT_NAME NAME
#endif

#ifdef FAULT_HUGE /* a text of a million letters, of which the end is not near */
static char huge[1 << 20];
#endif

#ifdef FAULT_NOTE
__attribute__ ((section (".note.tiny.abi"), used, aligned (4))) static const TinyPluginNote note
    = { 9, 16, 1, "TINY-ABI", FAULT_NOTE_MAJOR, 0, FAULT_MINOR_MIN, 0 };
#endif

/* Each variant leaves some of what follows unused. */
#define UNUSED __attribute__ ((unused))

static UNUSED void
sleep_for_ever (void)
{
  for (;;)
    pause ();
}

/* As long as the file that FAULT_HANG names is there; one beside it says that it has begun. */
static UNUSED void
hang_while_told (void)
{
  const char *path = getenv ("FAULT_HANG");
  char begun[512];
  if (path == NULL || access (path, F_OK) != 0)
    return;
  snprintf (begun, sizeof begun, "%s-begun", path);
  fclose (fopen (begun, "w"));
  while (access (path, F_OK) == 0)
    usleep (1000);
}

static UNUSED void
crash (void)
{
  raise (SIGSEGV);
}

/* As FAULT_SHORTAGE says: killed as the system does it, or out of memory under a limit. */
static UNUSED void
run_short_while_told (void)
{
  const char *what = getenv ("FAULT_SHORTAGE");
  if (what != NULL && strcmp (what, "kill") == 0)
    raise (SIGKILL);
  void *volatile memory = what != NULL ? malloc (8ull << 30) : NULL;
  if (what != NULL && memory == NULL)
    abort ();
  free (memory);
}

/* As a damaged heap may: sends what the file FAULT_WORDS has to whom a worker of the conformance suite answers, again and
 * again where FAULT_AGAIN is set. */
static UNUSED void
say_words (void)
{
  enum { ANSWERS = 3 }; /* the worker's descriptor */
  struct stat info;
  static char words[1 << 20];
  FILE *file = fopen (getenv ("FAULT_WORDS"), "r");
  size_t n = fread (words, 1, sizeof words, file);
  fclose (file);
  if (fstat (ANSWERS, &info) != 0 || !S_ISSOCK (info.st_mode))
    return;
  do
    for (size_t i = 0; i < n;) {
      ssize_t written = write (ANSWERS, words + i, n - i);
      if (written <= 0)
        return;
      i += (size_t) written;
    }
  while (getenv ("FAULT_AGAIN") != NULL);
}

static UNUSED void
leave (void)
{
  fputs ("leaving early\n", stderr);
  exit (0);
}

/* Letters of two bytes, of which a cut at any even number of bytes leaves half a one. */
static UNUSED void
leave_with_letters (void)
{
  fputs ("a", stderr);
  for (int i = 0; i < 400; i++)
    fputs ("\xc3\xa9", stderr);
  exit (0);
}

/* A report in place of the helper's, with what steers a terminal. */
static UNUSED void
forge (void)
{
  enum { REPORT_FD = 3 };
  static const char report[] = "{\"quarantined\": true, \"reason\": \"because\\u001b[2J\"}\n";
  _exit (write (REPORT_FD, report, sizeof report - 1) < 0);
}

/* A child that outlives the helper, holding its streams, unless the group is killed. */
static UNUSED void
fork_and_leave (void)
{
  int pid = fork ();
  if (pid == 0)
    sleep_for_ever ();
  fprintf (stderr, "left %d\n", pid);
  _exit (3);
}

static UNUSED void
leave_silently (void)
{
  _exit (0);
}

#ifdef FAULT_THEN
/* Such a child in a session and a group of its own, whose parent has ended. */
static void
fork_session (void)
{
  int ends[2], pid = 0;
  if (pipe (ends) != 0 || fork () == 0) {
    setsid ();
    pid = fork ();
    if (pid == 0)
      sleep_for_ever ();
    _exit (write (ends[1], &pid, sizeof pid) != sizeof pid);
  }
  while (read (ends[0], &pid, sizeof pid) < 0)
    ;
  fprintf (stderr, "left %d\n", pid);
  FAULT_THEN ();
}
#endif

#ifdef FAULT_CONSTRUCTOR
__attribute__ ((constructor)) static void
at_load (void)
{
  FAULT_CONSTRUCTOR ();
}
#endif

/* ---- device ---- */
static void
close_device (TinyPluginDevice *device)
{
}

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
#ifdef FAULT_INFO
  FAULT_INFO ();
#endif
  snprintf (out->name, sizeof out->name, "bad");
  snprintf (out->arch, sizeof out->arch, "bad");
#ifdef FAULT_ENDLESS_INFO
  memset (out->name, 'x', sizeof out->name);
#endif
  return TINY_STATUS_OK;
}

static UNUSED TinyStatus
alloc (TinyPluginDevice *device,
       uint64_t n_bytes,
       TinyPluginBuffer **out,
       TinyPluginError *error)
{
  *out = malloc (n_bytes ? n_bytes : 1);
  return TINY_STATUS_OK;
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  free (buffer);
}

static UNUSED TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  *out = NULL;
  return TINY_STATUS_OK;
}

static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
#ifdef FAULT_SUBMIT
  FAULT_SUBMIT ();
#endif
  return TINY_STATUS_OK;
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  return TINY_STATUS_OK;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
}

static const TinyDeviceTable table = {
  .struct_size = sizeof table,
  .close = close_device,
  .info = info,
#ifndef FAULT_NO_ALLOC
  .alloc = alloc,
#endif
  .free = free_buffer,
#ifndef FAULT_HALF_QUEUES
  .queue_create = queue_create,
#endif
  .queue_destroy = queue_destroy,
  .submit = submit,
  .program_load = program_load,
  .program_unload = program_unload,
#ifdef FAULT_TABLE_RESERVED
  .reserved[sizeof table.reserved / 8 - 1] = 1,
#endif
};

/* ---- renderer ---- */
static TinyStatus
target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
#ifdef FAULT_TARGET
  FAULT_TARGET ();
#endif
  snprintf (out->arch, sizeof out->arch, "bad");
  out->index_dtype = TINY_DTYPE_I32;
  out->dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_F32) | TINY_DTYPE_BIT (TINY_DTYPE_I32)
                        | TINY_DTYPE_BIT (TINY_DTYPE_U32);
  out->max_lanes = out->max_params = 1;
  out->max_grid[0] = out->max_grid[1] = out->max_grid[2] = 1;
#ifdef FAULT_ENDLESS_TARGET
  memset (out->arch, 'x', sizeof out->arch);
#endif
  return TINY_STATUS_OK;
}

static UNUSED TinyStatus
compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  return TINY_STATUS_UNSUPPORTED;
}

#ifndef FAULT_RENDERER
#define FAULT_RENDERER "BAD"
#endif
static const TinyRenderer renderer = {
  .struct_size = sizeof renderer,
  .name = FAULT_RENDERER,
  .code_version = "1",
  .target = target,
#ifndef FAULT_NO_COMPILE
  .compile = compile,
#endif
};

/* ---- module ---- */
static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
#ifdef FAULT_STEERS
  memset (error->text, 27, sizeof error->text);
  memset (error->hint, 'h', sizeof error->hint);
  return TINY_STATUS_DRIVER;
#elif defined(FAULT_DRIVER)
  snprintf (error->text, sizeof error->text, "libbad.so.1 is not there");
  snprintf (error->hint, sizeof error->hint, "install it");
  return TINY_STATUS_DRIVER;
#else
  return TINY_STATUS_OK;
#endif
}

static void
fini (void)
{
#ifdef FAULT_FINI
  FAULT_FINI ();
#endif
}

static UNUSED TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
#ifdef FAULT_SCAN
  FAULT_SCAN ();
#endif
#ifdef FAULT_NO_DEVICE
  *n = 0;
  return TINY_STATUS_NO_DEVICE;
#endif
  if (*n > 0)
    snprintf (out->id, sizeof out->id, "bad");
#ifdef FAULT_ENDLESS_ID
  memset (out->id, 'x', sizeof out->id);
#endif
  *n = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
#ifdef FAULT_OPEN
  FAULT_OPEN ();
#endif
  *out = NULL;
  *out_table = &table;
  return TINY_STATUS_OK;
}

static const TinyPluginModule module = {
#ifdef FAULT_SIZE
  .struct_size = FAULT_SIZE,
#else
  .struct_size = sizeof module,
#endif
#ifdef FAULT_FLAGS
  .flags = FAULT_FLAGS,
#endif
  .abi_major = FAULT_MAJOR,
  .abi_minor_min = FAULT_MINOR_MIN,
  .n_renderers = 1,
  .name = FAULT_NAME,
  .vendor = "tests",
  .version = FAULT_VERSION,
  .license = "MIT",
  .renderers = &renderer,
  .init = init,
  .fini = fini,
#ifndef FAULT_NO_SCAN
  .scan = scan,
#endif
  .open = open_device,
#ifdef FAULT_RESERVED
  .reserved[3] = 1,
#endif
};

#ifndef FAULT_ENTRY
#define FAULT_ENTRY tiny_plugin_entry_1
#endif

TINY_PLUGIN_EXPORT const TinyPluginModule *FAULT_ENTRY (uint32_t host_minor,
                                                        TinyPluginError *error);

TINY_PLUGIN_EXPORT const TinyPluginModule *
FAULT_ENTRY (uint32_t host_minor, TinyPluginError *error)
{
#ifdef FAULT_REFUSES
  snprintf (error->text, sizeof error->text, "this core is not good enough");
  return NULL;
#else
#ifdef FAULT_HUGE
  memset (huge, 'x', sizeof huge);
#endif
  return &module;
#endif
}
