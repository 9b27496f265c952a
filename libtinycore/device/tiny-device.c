/* SPDX-License-Identifier: MIT
 *
 * tiny-device.c: one opened unit of a backend: opening, closing, its code, its lost state. */
#include "device/tiny-device.h"

#include <string.h>

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "device/tiny-watch.h"

enum { PROP_NAME = 1, PROP_TITLE, PROP_ARCH, PROP_BACKEND, PROP_LOST, N_PROPS };

G_DEFINE_FINAL_TYPE (TinyDevice, tiny_device, G_TYPE_OBJECT)

/* ---- answers ---- */
gboolean
tiny_device_check (TinyDevice *self,
                   TinyStatus status,
                   const TinyPluginError *plugin_error,
                   const char *what,
                   GError **error)
{
  if (status == TINY_STATUS_DEVICE_LOST)
    g_atomic_int_set (&self->lost, TRUE);
  return tiny_status_check (status, plugin_error, self->name, what, error);
}

gboolean
tiny_device_fail_lost (TinyDevice *self, const char *what, GError **error)
{
  g_set_error (
      error, TINY_ERROR, TINY_ERROR_DEVICE_LOST,
      "%s: %s: the device was lost before; open it again to go on (tiny_open_device(), in "
      "Python Device[…])",
      self->name, what);
  return FALSE;
}

/* ---- opening ---- */
static gboolean
open_handle (TinyDevice *self, const char *id, GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  const TinyDeviceTable *table = NULL;
  TinyPluginDevice *handle = NULL;
  TinyStatus status
      = tiny_backend_open_device (self->backend, id ? id : "", &handle, &table, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "open", error))
    return FALSE;
  gboolean good = tiny_device_table_copy (&self->table, table, self->name, error);
  if (good && tiny_backend_get_watch (self->backend) != NULL)
    tiny_watch_device (tiny_backend_get_watch (self->backend), &handle, &self->table);
  self->handle = handle; /* from here on finalize closes it, where it has a close() */
  return good;
}

static gboolean
read_info (TinyDevice *self, GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  self->info.struct_size = sizeof self->info;
  TinyStatus status = self->table.info (self->handle, &self->info, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "info", error))
    return FALSE;
  if (memchr (self->info.name, 0, sizeof self->info.name) == NULL
      || memchr (self->info.arch, 0, sizeof self->info.arch) == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: info: an endless name or arch",
                 self->name);
    return FALSE;
  }
  if (!tiny_table_check (TINY_TABLE_INFO, &self->info, self->name, error))
    return FALSE;
  guint32 alignment = self->info.alignment, unit = self->info.transfer_bytes;
  if ((self->info.flags & TINY_DEVICE_NON_COHERENT) != 0 && self->table.sync == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: its memory is not coherent, and the device table lacks the slot sync",
                 self->name);
    return FALSE;
  }
  if ((alignment & (alignment - 1)) != 0 || alignment > TINY_SPAN_ALIGNMENT
      || (unit & (unit - 1)) != 0 || unit > 64) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: info: alignment %u or transfer_bytes %u is no power of two, or more than "
                 "%d or 64",
                 self->name, alignment, unit, TINY_SPAN_ALIGNMENT);
    return FALSE;
  }
  return TRUE;
}

gboolean
tiny_renderer_read_target (const TinyRenderer *renderer,
                           const char *arch,
                           const char *name,
                           TinyTarget *target,
                           GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  target->struct_size = sizeof *target;
  TinyStatus status = tiny_renderer_call_target (renderer, arch, target, &plugin_error);
  g_autofree char *what
      = arch[0] != 0 ? g_strdup_printf ("renderer %s: architecture “%s”", renderer->name, arch)
                     : g_strdup_printf ("renderer %s", renderer->name);
  if (!tiny_status_check (status, &plugin_error, name, what, error))
    return FALSE;
  g_autofree char *who = g_strdup_printf ("%s: %s", name, what);
  return tiny_table_check (TINY_TABLE_TARGET, target, who, error)
         && tiny_target_check (target, who, error);
}

/* What runs beside the host computes what it claims in memory of the host, and has a device that runs
 * kernels there. */
static gboolean
set_runner (TinyDevice *self, const TinyDeviceOptions *options, GError **error)
{
  TinyDevice *runner = options->runner;
  const char *wrong = NULL;
  if ((self->info.flags & TINY_DEVICE_HOST_MEMORY) == 0 || self->table.map == NULL)
    wrong = tiny_backend_is_elsewhere (self->backend)
                ? "it is in a process of its own, which can share memory only with devices "
                  "that have import_host()"
                : "its memory is none of the host";
  else if (runner == NULL && !options->is_alone)
    wrong = "no device is given that runs the rest";
  if (wrong != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: runs beside the host, but %s",
                 self->name, wrong);
  else if (runner == NULL)
    return TRUE;
  else if (runner->table.import_host == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s: device %s cannot run what is not claimed: it has no import_host(), so it "
                 "cannot use this device's memory; name another one, such as DEV=%s:CPU",
                 self->name, runner->name, tiny_backend_get_name (self->backend));
  else {
    self->runner = g_object_ref (runner);
    self->renderer = runner->renderer;
    self->target = runner->target;
  }
  return self->runner != NULL;
}

static gboolean
find_renderer (TinyDevice *self, const char *name, GError **error)
{
  self->renderer = tiny_backend_find_renderer (self->code, name);
  if (self->renderer != NULL)
    return TRUE;
  g_autofree char *list = tiny_backend_list_renderers (self->code);
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
               "%s: backend %s has no renderer “%s”; it has: %s", self->name,
               tiny_backend_get_name (self->code), name ? name : "", list);
  return FALSE;
}

TinyDevice *
tiny_device_new (TinyBackend *backend, const TinyDeviceOptions *options, GError **error)
{
  g_autoptr (TinyDevice) self = g_object_new (TINY_TYPE_DEVICE, NULL);
  self->backend = g_object_ref (backend);
  self->code = g_object_ref (options->code ? options->code : backend);
  self->name = g_strdup (options->name);
  const gboolean is_beside = tiny_backend_runs_beside_host (backend);
  if ((!is_beside && !find_renderer (self, options->renderer, error))
      || !open_handle (self, options->id, error) || !read_info (self, error))
    return NULL;
  if (self->code == self->backend)
    memcpy (self->target.arch, self->info.arch, sizeof self->target.arch);
  if (!(is_beside
            ? set_runner (self, options, error)
            : tiny_renderer_read_target (self->renderer, options->arch ? options->arch : "",
                                         self->name, &self->target, error)))
    return NULL;
  self->queue = tiny_queue_new_own (self, error);
  if (self->queue == NULL)
    return NULL;
  self->pool = tiny_pool_new (self);
  return g_steal_pointer (&self);
}

gboolean
tiny_backend_try_device (TinyBackend *self,
                         const char *id,
                         TinyDeviceInfo *out_info,
                         TinyDeviceTable *out_table,
                         GError **error)
{
  g_autoptr (TinyDevice) device = g_object_new (TINY_TYPE_DEVICE, NULL);
  device->backend = g_object_ref (self);
  device->name = g_strdup (tiny_backend_get_name (self));
  if (!open_handle (device, id, error) || !read_info (device, error))
    return FALSE;
  *out_info = device->info;
  if (out_table != NULL)
    *out_table = device->table;
  return TRUE;
}

static void
tiny_device_finalize (GObject *object)
{
  TinyDevice *self = TINY_DEVICE (object);
  g_clear_pointer (&self->pool, tiny_pool_free);
  if (self->transfers != self->queue)
    g_clear_object (&self->transfers);
  g_clear_object (&self->queue);
  g_mutex_clear (&self->transfers_lock);
  g_mutex_clear (&self->memory_lock);
  if (self->table.close != NULL && !tiny_device_is_abandoned (self))
    self->table.close (self->handle);
  g_clear_object (&self->runner);
  g_clear_object (&self->code);
  g_clear_object (&self->backend);
  g_free (self->name);
  G_OBJECT_CLASS (tiny_device_parent_class)->finalize (object);
}

static void
tiny_device_get_property (GObject *object, guint id, GValue *value, GParamSpec *spec)
{
  TinyDevice *self = TINY_DEVICE (object);
  switch (id) {
  case PROP_NAME:
    g_value_set_string (value, self->name);
    break;
  case PROP_TITLE:
    g_value_set_string (value, self->info.name);
    break;
  case PROP_ARCH:
    g_value_set_string (value, self->target.arch);
    break;
  case PROP_BACKEND:
    g_value_set_object (value, self->backend);
    break;
  case PROP_LOST:
    g_value_set_boolean (value, tiny_device_is_lost (self));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
  }
}

static void
tiny_device_class_init (TinyDeviceClass *klass)
{
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  GParamSpec *specs[N_PROPS] = {
    NULL,
    g_param_spec_string ("name", NULL, NULL, NULL, flags),
    g_param_spec_string ("title", NULL, NULL, NULL, flags),
    g_param_spec_string ("arch", NULL, NULL, NULL, flags),
    g_param_spec_object ("backend", NULL, NULL, TINY_TYPE_BACKEND, flags),
    g_param_spec_boolean ("lost", NULL, NULL, FALSE, flags),
  };
  G_OBJECT_CLASS (klass)->finalize = tiny_device_finalize;
  G_OBJECT_CLASS (klass)->get_property = tiny_device_get_property;
  g_object_class_install_properties (G_OBJECT_CLASS (klass), N_PROPS, specs);
}

static void
tiny_device_init (TinyDevice *self)
{
  g_mutex_init (&self->transfers_lock);
  g_mutex_init (&self->memory_lock);
}

/* ---- what it is ---- */
const char *
tiny_device_get_name (TinyDevice *self)
{
  return self->name;
}

TinyBackend *
tiny_device_get_backend (TinyDevice *self)
{
  return self->backend;
}

const char *
tiny_device_get_title (TinyDevice *self)
{
  return self->info.name;
}

const char *
tiny_device_get_arch (TinyDevice *self)
{
  return self->target.arch;
}

const TinyDeviceInfo *
tiny_device_get_info (TinyDevice *self)
{
  return &self->info;
}

const TinyDeviceTable *
tiny_device_get_table (TinyDevice *self)
{
  return &self->table;
}

const TinyTarget *
tiny_device_get_target (TinyDevice *self)
{
  return &self->target;
}

const TinyRenderer *
tiny_device_get_renderer (TinyDevice *self)
{
  return self->renderer;
}

TinyDevice *
tiny_device_get_runner (TinyDevice *self)
{
  return self->runner != NULL ? self->runner : self;
}

const char *
tiny_device_get_code_stamp (TinyDevice *self)
{
  return tiny_backend_get_stamp (self->code);
}

gboolean
tiny_device_is_lost (TinyDevice *self)
{
  return g_atomic_int_get (&self->lost);
}

/* ---- code ---- */
GBytes *
tiny_renderer_compile (const TinyRenderer *renderer,
                       const char *name,
                       const TinyCompileArgs *args,
                       GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  void *data = NULL;
  uint64_t size = 0;
  TinyStatus status = tiny_renderer_call_compile (renderer, args, &data, &size, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, name, "compile", error))
    return NULL;
  if (data == NULL && size != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: compile: renderer %s returned no code for %s", name, renderer->name,
                 args->name);
    return NULL;
  }
  return g_bytes_new_with_free_func (data, size, tiny_host_get ()->free, data);
}

GBytes *
tiny_device_compile (TinyDevice *self, const TinyCompileArgs *args, GError **error)
{
  return tiny_renderer_compile (self->renderer, self->name, args, error);
}

/* ---- operations ---- */

const TinyRenderer *
tiny_device_get_claimer (TinyDevice *self)
{
  return tiny_backend_runs_beside_host (self->backend)
             ? &tiny_backend_get_module (self->backend)->renderers[0]
             : self->renderer;
}

const char *
tiny_device_get_claim_arch (TinyDevice *self)
{
  return tiny_backend_runs_beside_host (self->backend) ? self->info.arch : self->target.arch;
}

/* The kinds that renderers without claim_kinds are asked about, and that are looked for in graphs. */
enum { FOUND_KINDS = (2 << TINY_OPERATION_ATTENTION) - 2 };

static guint64
get_claim_kinds (TinyDevice *self)
{
  const TinyRenderer *claimer = tiny_device_get_claimer (self);
  return claimer->claim == NULL      ? 0
         : claimer->claim_kinds == 0 ? FOUND_KINDS
                                     : claimer->claim_kinds;
}

gboolean
tiny_device_has_claims (TinyDevice *self)
{
  return (get_claim_kinds (self) & FOUND_KINDS) != 0;
}

gboolean
tiny_device_claims_kind (TinyDevice *self, guint kind)
{
  return kind < 64 && (get_claim_kinds (self) & TINY_OPERATION_BIT (kind)) != 0;
}

void
tiny_device_claim (TinyDevice *self, const TinyOperation *operation, TinyClaim *out)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  *out = (TinyClaim){ .struct_size = sizeof *out };
  TinyStatus status = tiny_renderer_call_claim (tiny_device_get_claimer (self),
                                                tiny_device_get_claim_arch (self), operation,
                                                out, &plugin_error);
  out->reason[sizeof out->reason - 1] = 0;
  if (status >= 0 && tiny_table_check (TINY_TABLE_CLAIM, out, NULL, NULL)
      && out->verdict <= TINY_CLAIM_ACCEPTED)
    return;
  const gboolean has_text = status < 0 && plugin_error.text[0] != 0;
  *out = (TinyClaim){ .struct_size = sizeof *out };
  plugin_error.text[sizeof plugin_error.text - 1] = 0;
  g_snprintf (out->reason, sizeof out->reason, "claim() %s%s",
              status >= 0 ? "gave an answer that this core does not know" : "failed: ",
              status >= 0 ? ""
              : has_text  ? plugin_error.text
                          : "it does not say why");
}

GBytes *
tiny_device_compile_operation (TinyDevice *self,
                               const TinyOperation *operation,
                               const char *name,
                               GError **error)
{
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = tiny_device_get_claim_arch (self),
                                 .name = name,
                                 .operation = operation };
  return tiny_renderer_compile (tiny_device_get_claimer (self), self->name, &args, error);
}

char *
tiny_device_describe_claims (TinyDevice *self)
{
  const TinyRenderer *claimer = tiny_device_get_claimer (self);
  return g_strdup_printf (
      "%s %s %s %s", claimer->name, claimer->code_version ? claimer->code_version : "",
      tiny_device_get_claim_arch (self), tiny_backend_get_stamp (self->backend));
}

char *
tiny_device_disassemble (TinyDevice *self, GBytes *binary, GError **error)
{
  if (self->renderer->disassemble == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s: renderer %s cannot disassemble", self->name, self->renderer->name);
    return NULL;
  }
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  gsize size;
  const void *data = g_bytes_get_data (binary, &size);
  char *text = NULL;
  TinyStatus status
      = tiny_renderer_call_disassemble (self->renderer, data, size, &text, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "disassemble", error))
    return NULL;
  char *copy = text ? g_utf8_make_valid (text, -1) : g_strdup ("");
  tiny_host_get ()->free (text);
  return copy;
}

/* ---- work and memory ---- */
gboolean
tiny_device_submit (
    TinyDevice *self, const TinyCommand *commands, guint n, guint64 *out_ns, GError **error)
{
  return tiny_queue_submit (self->queue, commands, n, out_ns, error);
}

static TinyQueue *
get_transfers (TinyDevice *self)
{
  g_mutex_lock (&self->transfers_lock);
  if (self->transfers == NULL)
    self->transfers = tiny_queue_new_own (self, NULL);
  if (self->transfers == NULL)
    self->transfers = self->queue;
  g_mutex_unlock (&self->transfers_lock);
  return self->transfers;
}

typedef struct {
  TinyQueue *queue;
  guint64 point;
} After;

static gboolean
check_after (gpointer data, GError **error)
{
  const After *after = data;
  return tiny_queue_check (after->queue, after->point, error);
}

/* What is to come right behind the last of the queue goes there: one wait instead of two. */
gboolean
tiny_device_transfer (TinyDevice *self,
                      const TinyCommand *command,
                      guint64 after,
                      GError **error)
{
  After both = { self->queue, after };
  const TinyWork work = { command, 1, NULL, check_after, &both };
  guint64 point;
  if (after != 0 && after == tiny_queue_get_last (self->queue))
    return tiny_queue_enqueue (self->queue, &work, &point, error)
           && tiny_queue_wait (self->queue, point, G_MAXUINT64, error);
  return tiny_queue_wait (self->queue, after, G_MAXUINT64, error)
         && tiny_queue_submit (get_transfers (self), command, 1, NULL, error);
}

gboolean
tiny_device_wait (TinyDevice *self, GError **error)
{
  return tiny_queue_wait (self->queue, tiny_queue_get_last (self->queue), G_MAXUINT64, error);
}

gboolean
tiny_device_is_asynchronous (TinyDevice *self)
{
  return self->table.wait != NULL;
}

TinyQueue *
tiny_device_get_queue (TinyDevice *self)
{
  return self->queue;
}

gpointer
tiny_device_get_context (TinyDevice *self, GError **error)
{
  TinyPluginError plugin_error;
  void *context = NULL;
  tiny_plugin_error_init (&plugin_error);
  TinyStatus status = self->table.context != NULL
                          ? self->table.context (self->handle, &context, &plugin_error)
                          : TINY_STATUS_UNSUPPORTED;
  return tiny_device_check (self, status, &plugin_error, "its context", error) ? context : NULL;
}

void
tiny_device_get_memory (TinyDevice *self, TinyDeviceMemory *out)
{
  tiny_pool_get_memory (self->pool, out);
}

void
tiny_device_reset_peak (TinyDevice *self)
{
  tiny_pool_reset_peak (self->pool);
}

void
tiny_device_trim (TinyDevice *self)
{
  tiny_pool_trim (self->pool);
}
