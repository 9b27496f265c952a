/* SPDX-License-Identifier: MIT
 *
 * broken-plugin.c: the backend named by TINY_BROKEN_AROUND (a path), wrong as TINY_BROKEN says.
 *
 * Its tables are those of the backend inside, and over them the functions of the fault's row. TINY_BROKEN_ARCH is
 * the architecture of which the target is, where none is asked for. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

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

/* ---- what a fault is shown ---- */

/* Structs of another size, and what has no linear program, go past faults that are not about that: the fault is to
 * be found, not what it makes of such arguments. */
#define IS_OURS(given) ((given) != NULL && (given)->struct_size == sizeof *(given))

static TinyRenderer wrong_renderer;
static TinyDeviceTable wrong_table;

static TinyStatus
compile_shown (const TinyCompileArgs *args,
               void **out_data,
               uint64_t *out_size,
               TinyPluginError *error)
{
  const int is_ours = IS_OURS (args) && IS_OURS (error);
  const int is_shown
      = is_ours
        && (inside.fault->is_of_operations ? IS_OURS (args->operation)
                                           : IS_OURS (args->linear) && args->operation == NULL);
  const TinyRenderer *to = is_shown ? &wrong_renderer : inside.renderer;
  return to->compile (args, out_data, out_size, error);
}

static TinyStatus
claim_shown (const char *arch,
             const TinyOperation *operation,
             TinyClaim *out,
             TinyPluginError *error)
{
  const int is_shown = IS_OURS (operation) && IS_OURS (out) && IS_OURS (error);
  const TinyRenderer *to = is_shown ? &wrong_renderer : inside.renderer;
  return to->claim (arch, operation, out, error);
}

static TinyStatus
target_shown (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  const char *wanted = getenv ("TINY_BROKEN_ARCH");
  const int is_shown = IS_OURS (out) && IS_OURS (error);
  const TinyRenderer *to = is_shown ? &wrong_renderer : inside.renderer;
  return to->target (*arch == '\0' && wanted != NULL ? wanted : arch, out, error);
}

static TinyStatus
info_shown (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  const int is_shown = IS_OURS (out) && IS_OURS (error);
  return (is_shown ? &wrong_table : inside.device)->info (device, out, error);
}

static TinyStatus
submit_shown (TinyPluginDevice *device,
              TinyPluginQueue *queue,
              const TinySubmit *submit,
              TinyPluginError *error)
{
  int is_shown = IS_OURS (submit) && IS_OURS (error);
  for (uint32_t i = 0; is_shown && i < submit->n_commands; i++)
    is_shown = IS_OURS (&submit->commands[i]);
  return (is_shown ? &wrong_table : inside.device)->submit (device, queue, submit, error);
}

static TinyStatus
load_shown (TinyPluginDevice *device,
            const TinyProgramArgs *args,
            TinyPluginProgram **out,
            TinyPluginError *error)
{
  const int is_shown = IS_OURS (args) && IS_OURS (error);
  return (is_shown ? &wrong_table : inside.device)->program_load (device, args, out, error);
}

/* ---- compile ---- */
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

static void
make_renderer (void)
{
  const Fault *fault = inside.fault;
  wrong_renderer = *inside.renderer;
  if (fault->rewrite != NULL)
    wrong_renderer.compile = compile_rewritten;
  if (fault->source != NULL)
    wrong_renderer.compile = compile_source;
  lay_over (&wrong_renderer, &fault->renderer, offsetof (TinyRenderer, target),
            sizeof renderer);
  renderer = wrong_renderer;
  if (renderer.compile != inside.renderer->compile)
    renderer.compile = compile_shown;
  if (!fault->is_of_sizes) {
    renderer.target = renderer.target != NULL ? target_shown : NULL;
    renderer.claim = fault->renderer.claim != NULL ? claim_shown : renderer.claim;
  }
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
  const TinyDeviceTable *over = &inside.fault->device;
  wrong_table = *inside.device;
  lay_over (&wrong_table, over, offsetof (TinyDeviceTable, close), sizeof wrong_table);
  device_table = wrong_table;
  if (!inside.fault->is_of_sizes) {
    device_table.info = over->info != NULL ? info_shown : device_table.info;
    device_table.submit = over->submit != NULL ? submit_shown : device_table.submit;
    device_table.program_load
        = over->program_load != NULL ? load_shown : device_table.program_load;
  }
  *out_table = &device_table;
  return TINY_STATUS_OK;
}

/* A copy of the library, which shares nothing with one that the process has loaded as itself. */
static void *
open_copy (const char *path)
{
  char bytes[1 << 16], name[64];
  ssize_t n = 0;
  void *library = NULL;
  const int from = open (path, O_RDONLY | O_CLOEXEC);
  const int to = from >= 0 ? memfd_create ("tiny-broken-inside", MFD_CLOEXEC) : -1;
  while (to >= 0 && (n = read (from, bytes, sizeof bytes)) > 0)
    if (write (to, bytes, (size_t) n) != n)
      break;
  snprintf (name, sizeof name, "/proc/self/fd/%d", to);
  if (to >= 0 && n == 0)
    library = dlopen (name, RTLD_NOW | RTLD_LOCAL);
  if (from >= 0)
    close (from);
  if (to >= 0)
    close (to);
  return library;
}

static TinyStatus
make_module (uint32_t host_minor, TinyPluginError *error)
{
  const char *name = getenv ("TINY_BROKEN"), *path = getenv ("TINY_BROKEN_AROUND");
  inside.fault = fault_find (name != NULL ? name : "none");
  if (inside.fault == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "TINY_BROKEN: there is no fault '%s'", name);
  void *library = path != NULL ? open_copy (path) : NULL;
  if (library == NULL)
    return tiny_fail (error, TINY_STATUS_DRIVER, "TINY_BROKEN_AROUND: %s",
                      path != NULL ? "cannot be opened" : "names no plugin's file");
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
