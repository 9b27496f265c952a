/* SPDX-License-Identifier: MIT
 *
 * broken-plugin.c: the backend named by TINY_BROKEN_AROUND (a path), wrong as TINY_BROKEN says.
 *
 * Its tables are those of the backend inside, and over them the functions of the fault's row. TINY_BROKEN_ARCH is
 * the architecture of which the target is, where none is asked for. */
#include <fcntl.h>

#include "broken.h"

TINY_PLUGIN_NOTE (0);

Inside inside;

static TinyPluginModule module;
static TinyRenderer renderer;
static TinyDeviceTable device_table;
static char code_version[192];

void
broken_note (void)
{
  const char *path = getenv ("TINY_BROKEN_TRACE");
  const int fd = path != NULL ? open (path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644) : -1;
  if (fd >= 0)
    close (fd);
}

/* ---- one table over another ---- */

/* Takes from @over what is not NULL: functions, from @first on to the end of both. */
static void
lay_over (void *table, const void *over, size_t first, size_t size)
{
  for (size_t at = first; at + sizeof (void *) <= size; at += sizeof (void *)) {
    void *function;
    memcpy (&function, (const char *) over + at, sizeof function);
    if (function != NULL)
      memcpy ((char *) table + at, &function, sizeof function);
  }
}

/* ---- compile and target ---- */
static TinyStatus
compile_source (const TinyCompileArgs *args,
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  char *text = strdup (args->source);
  TinyCompileArgs wrong = *args;
  inside.fault->source (text);
  if (strcmp (text, args->source) != 0)
    broken_note ();
  wrong.source = text;
  wrong.source_size = strlen (text);
  const TinyStatus status = inside.renderer->compile (&wrong, out_data, out_size, error);
  free (text);
  return status;
}

static TinyStatus
compile_rewritten (const TinyCompileArgs *args,
                   void **out_data,
                   uint64_t *out_size,
                   TinyPluginError *error)
{
  Rewrite rewrite;
  TinyLinear linear;
  TinyCompileArgs wrong = *args;
  rewrite_run (&rewrite, args->linear, inside.fault->rewrite, &linear);
  if (rewrite.has_changed)
    broken_note ();
  wrong.linear = &linear;
  const TinyStatus status = inside.renderer->compile (&wrong, out_data, out_size, error);
  rewrite_end (&rewrite);
  return status;
}

static TinyStatus
target_of_arch (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  const char *wanted = getenv ("TINY_BROKEN_ARCH");
  return inside.renderer->target (*arch == '\0' && wanted != NULL ? wanted : arch, out, error);
}

static void
make_renderer (void)
{
  const Fault *fault = inside.fault;
  renderer = *inside.renderer;
  if (getenv ("TINY_BROKEN_ARCH") != NULL)
    renderer.target = target_of_arch;
  if (fault->rewrite != NULL)
    renderer.compile = compile_rewritten;
  if (fault->source != NULL)
    renderer.compile = compile_source;
  lay_over (&renderer, &fault->renderer, offsetof (TinyRenderer, target), sizeof renderer);
  snprintf (code_version, sizeof code_version, "%s+%s", renderer.code_version, fault->name);
  renderer.code_version = code_version;
}

/* ---- the module ---- */
TinyStatus
inside_init (const TinyHost *host, TinyPluginError *error)
{
  inside.host = host;
  return inside.module->init (host, error);
}

TinyStatus
inside_open (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  TINY_TRY (inside.module->open (id, out, &inside.device, error));
  device_table = *inside.device;
  lay_over (&device_table, &inside.fault->device, offsetof (TinyDeviceTable, close),
            sizeof device_table);
  *out_table = &device_table;
  return TINY_STATUS_OK;
}

static TinyStatus
make_module (uint32_t host_minor, TinyPluginError *error)
{
  const char *name = getenv ("TINY_BROKEN"), *path = getenv ("TINY_BROKEN_AROUND");
  inside.fault = fault_find (name != NULL ? name : "none");
  if (inside.fault == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "TINY_BROKEN: there is no fault '%s'", name);
  void *library = path != NULL ? dlopen (path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL)
    return tiny_fail (error, TINY_STATUS_DRIVER, "TINY_BROKEN_AROUND: %s",
                      path != NULL ? dlerror () : "names no plugin's file");
  const TinyPluginEntry entry = (TinyPluginEntry) dlsym (library, TINY_PLUGIN_ENTRY_SYMBOL);
  inside.module = entry != NULL ? entry (host_minor, error) : NULL;
  if (inside.module == NULL)
    return TINY_STATUS_DRIVER;
  inside.renderer = &inside.module->renderers[0];
  make_renderer ();
  module = *inside.module;
  module.name = "BROKEN";
  module.renderers = &renderer;
  module.n_renderers = 1;
  module.init = inside_init;
  module.open = inside_open;
  lay_over (&module, &inside.fault->module, offsetof (TinyPluginModule, name), sizeof module);
  if (inside.fault->change != NULL)
    inside.fault->change (&module, &renderer);
  return TINY_STATUS_OK;
}

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  if (inside.module == NULL && make_module (host_minor, error) != TINY_STATUS_OK)
    return NULL;
  return &module;
}
