/* SPDX-License-Identifier: MIT
 *
 * record-module.c: a backend that records what is asked of another one.
 *
 * It stands before the one inside as a module whose functions are elsewhere (TinyModuleProxy), so that nothing
 * above it, and no program that does not record, pays for it. The one inside may itself be in another process. */
#include <string.h>

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "device/tiny-watch.h"
#include "plugin/record-private.h"
#include "plugin/tiny-elf.h"

typedef struct {
  TinyBackend *inner;
  guint64 number;
  TinyRenderer *renderers; /* what the backend before it copies from */
} Module;

static __thread struct {
  guint64 text;
  char *opts;
} kernel;

void
tiny_record_set_kernel (const char *text, const char *opts)
{
  g_free (kernel.opts);
  kernel.text = record_data_text (text);
  kernel.opts = g_strdup (opts);
}

static void
module_free (gpointer data)
{
  Module *self = data;
  g_clear_object (&self->inner);
  g_free (self->renderers);
  g_free (self);
}

static const TinyRenderer *
get_renderer (const Module *self, guint renderer)
{
  return &tiny_backend_get_module (self->inner)->renderers[renderer];
}

/* ---- devices ---- */
static TinyStatus
module_scan (gpointer data, TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  return tiny_backend_call_scan (((Module *) data)->inner, out, n, error);
}

/* What the driver of the device is called, as scan() says. */
static char *
find_driver (Module *self, const char *id)
{
  g_autofree TinyCandidates *found = tiny_backend_scan (self->inner, NULL);
  for (guint i = 0; found != NULL && i < found->n; i++) {
    const TinyCandidate *candidate = &found->at[i];
    if (id[0] == 0 || strcmp (candidate->id, id) == 0)
      return g_strdup (candidate->driver);
  }
  return g_strdup ("");
}

static TinyStatus
module_open (gpointer data,
             const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  Module *self = data;
  g_autofree char *driver = find_driver (self, id);
  const guint64 call = record_call (TINY_RECORD_OPEN, RECORD_NUMBER (self->number),
                                    RECORD_TEXT (id), RECORD_TEXT (driver));
  TinyStatus status = tiny_backend_open_device (self->inner, id, out, out_table, error);
  record_result (call, status, error, 0, 0);
  if (status < 0)
    return status;
  *out_table = record_device (call, tiny_backend_get_watch (self->inner), out, *out_table);
  return status;
}

/* ---- code ---- */
static TinyStatus
module_target (
    gpointer data, guint number, const char *arch, TinyTarget *out, TinyPluginError *error)
{
  Module *self = data;
  const TinyRenderer *renderer = get_renderer (self, number);
  const guint64 call = record_call (TINY_RECORD_TARGET, RECORD_NUMBER (self->number),
                                    RECORD_TEXT (renderer->name), RECORD_TEXT (arch));
  TinyStatus status = tiny_renderer_call_target (renderer, arch, out, error);
  return record_result (call, status, error, 0,
                        status >= 0 ? record_data (out, sizeof *out) : 0);
}

static guint64
record_linear (const TinyLinear *linear)
{
  g_auto (TinyVector) bytes = { NULL };
  if (linear == NULL)
    return 0;
  record_put_linear (&bytes, linear);
  return record_check_whole (&bytes) ? record_data (bytes.data, bytes.n_bytes) : 0;
}

static TinyStatus
module_compile (gpointer data,
                guint number,
                const TinyCompileArgs *args,
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  Module *self = data;
  const TinyRenderer *renderer = get_renderer (self, number);
  const guint64 source = args->source ? record_data (args->source, args->source_size) : 0,
                linear = record_linear (args->linear),
                operation = record_data (args->operation, sizeof *args->operation);
  const guint64 call = record_call (
      TINY_RECORD_COMPILE, RECORD_NUMBER (self->number), RECORD_TEXT (renderer->name),
      RECORD_TEXT (renderer->code_version), RECORD_TEXT (args->arch), RECORD_TEXT (args->name),
      RECORD_NUMBER (source), RECORD_NUMBER (linear), RECORD_NUMBER (operation),
      RECORD_NUMBER (operation == 0 ? kernel.text : 0), RECORD_TEXT (kernel.opts));
  TinyStatus status = tiny_renderer_call_compile (renderer, args, out_data, out_size, error);
  return record_result (call, status, error, 0,
                        status >= 0 ? record_data (*out_data, *out_size) : 0);
}

static TinyStatus
module_disassemble (gpointer data,
                    guint number,
                    const void *code,
                    uint64_t size,
                    char **out_text,
                    TinyPluginError *error)
{
  return tiny_renderer_call_disassemble (get_renderer (data, number), code, size, out_text,
                                         error);
}

static TinyStatus
module_claim (gpointer data,
              guint number,
              const char *arch,
              const TinyOperation *operation,
              TinyClaim *out,
              TinyPluginError *error)
{
  Module *self = data;
  const TinyRenderer *renderer = get_renderer (self, number);
  const guint64 asked = record_data (operation, sizeof *operation);
  const guint64 call
      = record_call (TINY_RECORD_CLAIM, RECORD_NUMBER (self->number),
                     RECORD_TEXT (renderer->name), RECORD_TEXT (arch), RECORD_NUMBER (asked));
  TinyStatus status = tiny_renderer_call_claim (renderer, arch, operation, out, error);
  return record_result (call, status, error, status >= 0 ? out->verdict : 0, 0);
}

/* ---- the module ---- */

/* Ours in every respect but the functions, which are never called. */
static TinyRenderer *
copy_renderers (const TinyPluginModule *module)
{
  TinyRenderer *out = g_new0 (TinyRenderer, module->n_renderers + 1);
  for (guint i = 0; i < module->n_renderers; i++) {
    out[i] = module->renderers[i];
    out[i].struct_size = sizeof *out;
    memset (out[i].reserved, 0, sizeof out[i].reserved);
  }
  return out;
}

static guint64
write_backend (TinyBackend *inner, gboolean isolated)
{
  const TinyPluginModule *module = tiny_backend_get_module (inner);
  g_autoptr (TinyElf) elf = tiny_elf_open (tiny_backend_get_path (inner), NULL);
  g_autofree char *build_id = elf != NULL ? tiny_elf_read_build_id (elf) : NULL;
  g_autofree char *file = g_path_get_basename (tiny_backend_get_path (inner));
  GString *renderers = g_string_new (NULL);
  for (guint i = 0; i < module->n_renderers; i++)
    g_string_append_printf (
        renderers, "%s%s %s", i ? ", " : "", module->renderers[i].name,
        module->renderers[i].code_version ? module->renderers[i].code_version : "");
  g_autofree char *list = g_string_free (renderers, FALSE);
  return record_call (TINY_RECORD_BACKEND, RECORD_TEXT (module->name),
                      RECORD_TEXT (module->vendor), RECORD_TEXT (module->version),
                      RECORD_TEXT (file), RECORD_TEXT (build_id), RECORD_TEXT (list),
                      RECORD_NUMBER (isolated));
}

TinyBackend *
tiny_record_backend (TinyBackend *inner, gboolean isolated, GError **error)
{
  if (tiny_backend_runs_beside_host (inner)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "it computes in memory of the host beside another backend (offload), which "
                 "cannot be recorded: unset TINY_RECORD, or choose another device with DEV=");
    g_object_unref (inner);
    return NULL;
  }
  const guint64 number = write_backend (inner, isolated);
  if (number == 0)
    return inner; /* there is no file to write, which was said */
  Module *self = g_new0 (Module, 1);
  TinyPluginModule module = *tiny_backend_get_module (inner);
  self->inner = inner;
  self->renderers = copy_renderers (&module);
  self->number = number;
  module.struct_size = sizeof module;
  module.renderers = self->renderers;
  const TinyModuleProxy proxy = { .data = self,
                                  .free = module_free,
                                  .scan = module_scan,
                                  .open = module_open,
                                  .target = module_target,
                                  .compile = module_compile,
                                  .disassemble = module_disassemble,
                                  .claim = module_claim };
  return tiny_backend_new_proxy (&module, tiny_backend_get_path (inner), &proxy, error);
}
