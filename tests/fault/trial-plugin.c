/* SPDX-License-Identifier: MIT
 *
 * trial-plugin.c: the CPU backend under another name, some programs of which never end (FAULT=hang), crash (FAULT=crash)
 * or answer the search in place of their process (FAULT=lie): those without a vector. The compiler marks them with a trailer that loading takes
 * off again. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tiny-plugin.h"

static const char trailer[16] = "never comes back";
enum { MAX_MARKED = 64 };

static const TinyPluginModule *own;
static const TinyDeviceTable *own_table;
static const TinyHost *host;
static TinyPluginModule module;
static TinyRenderer renderer;
static TinyDeviceTable table;
static TinyPluginProgram *marked[MAX_MARKED];
static unsigned n_marked;

static TinyStatus
compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  bool has_vector = false;
  for (uint32_t i = 0; i < args->linear->n_instrs; i++)
    has_vector = has_vector || args->linear->instrs[i].lanes > 1;
  TinyStatus status = own->renderers[0].compile (args, data, size, error);
  if (status != TINY_STATUS_OK || has_vector)
    return status;
  char *longer = host->alloc (*size + sizeof trailer);
  memcpy (longer, *data, *size);
  memcpy (longer + *size, trailer, sizeof trailer);
  host->free (*data);
  *data = longer;
  *size += sizeof trailer;
  return status;
}

static TinyStatus
load (TinyPluginDevice *device,
      const TinyProgramArgs *args,
      TinyPluginProgram **out,
      TinyPluginError *error)
{
  TinyProgramArgs inner = *args;
  bool is_marked = args->size > sizeof trailer
                   && memcmp ((const char *) args->data + args->size - sizeof trailer, trailer,
                              sizeof trailer)
                          == 0;
  inner.size -= is_marked ? sizeof trailer : 0;
  TinyStatus status = own_table->program_load (device, &inner, out, error);
  if (status == TINY_STATUS_OK && is_marked && n_marked < MAX_MARKED)
    marked[n_marked++] = *out;
  return status;
}

/* A TrialAnswer to no question: status 2, "differs". */
static void
answer_search (void)
{
  enum { HELPER_FD = 3 };
  const uint32_t answer[6] = { 2 };
  if (write (HELPER_FD, answer, sizeof answer) < 0)
    abort ();
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *submit,
        TinyPluginError *error)
{
  for (uint32_t i = 0; i < submit->n_commands; i++)
    for (unsigned k = 0; k < n_marked; k++)
      if (submit->commands[i].program == marked[k]) {
        if (strcmp (FAULT, "crash") == 0)
          abort ();
        if (strcmp (FAULT, "lie") == 0)
          answer_search ();
        while (strcmp (FAULT, "hang") == 0)
          pause ();
      }
  return own_table->submit (device, queue, submit, error);
}

static TinyStatus
init (const TinyHost *given, TinyPluginError *error)
{
  host = given;
  return own->init (given, error);
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  TinyStatus status = own->open (id, out, &own_table, error);
  if (status != TINY_STATUS_OK)
    return status;
  table = *own_table;
  table.program_load = load;
  table.submit = submit;
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
  renderer = own->renderers[0];
  renderer.compile = compile;
  module.name = NAME;
  module.init = init;
  module.open = open_device;
  module.renderers = &renderer;
  module.n_renderers = 1;
  return &module;
}
