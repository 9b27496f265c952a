/* SPDX-License-Identifier: MIT
 *
 * faulty-plugin.c: the CPU backend under another name and with two devices, which goes wrong in the function and in the
 * way that TINY_TEST_FAULT says: "submit crash", "alloc hang", "compile abort", "open exit", "close kill"; with
 * "thread" and "code" in a thread of its own, in this file and in memory of none. Before it hangs it makes the file
 * TINY_TEST_HANGS. With TINY_TEST_KERNEL, compile and program_load go wrong for the kernel of that name alone. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tiny-plugin.h"

enum { MAX_RENDERERS = 8 };

static const TinyPluginModule *own;
static const TinyDeviceTable *own_table;
static TinyPluginModule module;
static TinyRenderer renderers[MAX_RENDERERS];
static TinyDeviceTable table;

static int *volatile nowhere;

/* The fault itself, which a sanitizer is not to see before. */
__attribute__ ((no_sanitize ("address", "undefined"))) static void *
crash_here (void *unused)
{
  *nowhere = 0;
  return unused;
}

/* What a kernel is: instructions in memory of no file. */
static void *
crash_in_code (void *unused)
{
#if defined(__x86_64__)
  static const unsigned char code[] = { 0x0f, 0x0b };
#else
  static const unsigned char code[8] = { 0 };
#endif
  void *memory = mmap (NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void (*run) (void);
  memcpy (memory, code, sizeof code);
  __builtin___clear_cache (memory, (char *) memory + sizeof code);
  *(void **) &run = memory;
  run ();
  return unused;
}

static void
in_thread (void *(*run) (void *) )
{
  pthread_t thread;
  pthread_create (&thread, NULL, run, NULL);
  pthread_join (thread, NULL);
}

static void
fault (const char *function)
{
  const char *wanted = getenv ("TINY_TEST_FAULT");
  size_t n = strlen (function);
  if (wanted == NULL || strncmp (wanted, function, n) != 0 || wanted[n] != ' ')
    return;
  const char *how = wanted + n + 1;
  if (strcmp (how, "crash") == 0)
    crash_here (NULL);
  if (strcmp (how, "abort") == 0)
    abort ();
  if (strcmp (how, "exit") == 0)
    exit (3);
  if (strcmp (how, "kill") == 0)
    raise (SIGKILL);
  if (strcmp (how, "thread") == 0)
    in_thread (crash_here);
  if (strcmp (how, "code") == 0)
    in_thread (crash_in_code);
  const char *path = getenv ("TINY_TEST_HANGS");
  if (strcmp (how, "hang") == 0 && path != NULL)
    close (open (path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  while (strcmp (how, "hang") == 0)
    pause ();
}

static void
fault_of (const char *function, const char *kernel)
{
  const char *wanted = getenv ("TINY_TEST_KERNEL");
  if (wanted == NULL || strcmp (wanted, kernel) == 0)
    fault (function);
}

/* ---- device ---- */
static void
close_device (TinyPluginDevice *device)
{
  fault ("close");
  own_table->close (device);
}

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  fault ("info");
  TinyStatus status = own_table->info (device, out, error);
  if (getenv ("TINY_TEST_PRIVATE") != NULL)
    out->flags &= ~(uint32_t) TINY_DEVICE_HOST_MEMORY;
  return status;
}

static TinyStatus
alloc (TinyPluginDevice *device,
       uint64_t n_bytes,
       TinyPluginBuffer **out,
       TinyPluginError *error)
{
  fault ("alloc");
  return own_table->alloc (device, n_bytes, out, error);
}

static TinyStatus
import_host (TinyPluginDevice *device,
             void *memory,
             uint64_t n_bytes,
             TinyPluginBuffer **out,
             TinyPluginError *error)
{
  fault ("alloc");
  return own_table->import_host (device, memory, n_bytes, out, error);
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  fault ("free");
  own_table->free (device, buffer);
}

static TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  fault ("queue_create");
  return own_table->queue_create (device, out, error);
}

static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  fault ("queue_destroy");
  own_table->queue_destroy (device, queue);
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  const char *wanted = getenv ("TINY_TEST_FAULT");
  fault ("submit");
  if (wanted != NULL && strcmp (wanted, "submit error") == 0) {
    error->vendor_code = -77;
    snprintf (error->text, sizeof error->text, "unit 7 says no");
    snprintf (error->hint, sizeof error->hint, "ask it nicely");
    return TINY_STATUS_LAUNCH;
  }
  return own_table->submit (device, queue, work, error);
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  fault_of ("program_load", args->name);
  return own_table->program_load (device, args, out, error);
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  fault ("program_unload");
  own_table->program_unload (device, program);
}

/* ---- renderer ---- */
static TinyStatus
target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  fault ("target");
  return own->renderers[0].target (arch, out, error);
}

static TinyStatus
compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  fault_of ("compile", args->name);
  return own->renderers[0].compile (args, data, size, error);
}

static TinyStatus
disassemble (const void *data, uint64_t size, char **out_text, TinyPluginError *error)
{
  fault ("disassemble");
  return own->renderers[0].disassemble (data, size, out_text, error);
}

/* ---- module ---- */
static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
  fault ("load");
  return own->init (host, error);
}

static void
fini (void)
{
  fault ("fini");
  if (own->fini != NULL)
    own->fini ();
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  fault ("scan");
  for (uint32_t i = 0; i < 2 && i < *n; i++) {
    snprintf (out[i].id, sizeof out[i].id, "unit-%u", i);
    out[i].device_class = TINY_CLASS_SIMULATOR;
  }
  *n = 2;
  return TINY_STATUS_OK;
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  fault ("open");
  TinyStatus status = own->open ("cpu", out, &own_table, error);
  if (status != TINY_STATUS_OK)
    return status;
  table = *own_table;
  table.close = close_device;
  table.info = info;
  table.alloc = alloc;
  table.import_host = import_host;
  table.free = free_buffer;
  table.queue_create = queue_create;
  table.queue_destroy = queue_destroy;
  table.submit = submit;
  table.program_load = program_load;
  table.program_unload = program_unload;
  *out_table = &table;
  return status;
}

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  TinyPluginEntry entry = NULL;
  void *cpu = dlopen (CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (cpu != NULL)
    *(void **) &entry = dlsym (cpu, TINY_PLUGIN_ENTRY_SYMBOL);
  if (entry == NULL) {
    snprintf (error->text, sizeof error->text, "cannot open %s", CPU_PLUGIN);
    return NULL;
  }
  own = entry (host_minor, error);
  module = *own;
  renderers[0] = own->renderers[0];
  renderers[0].target = target;
  renderers[0].compile = compile;
  renderers[0].disassemble = disassemble;
  module.name = "FAULTY";
  module.init = init;
  module.fini = fini;
  module.scan = scan;
  module.open = open_device;
  module.renderers = renderers;
  module.n_renderers = 1;
  return &module;
}
