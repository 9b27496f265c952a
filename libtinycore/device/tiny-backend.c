/* SPDX-License-Identifier: MIT
 *
 * tiny-backend.c: one loaded plugin module: its table checked, copied and initialised. */
#include "device/tiny-backend.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tiny-error.h"

struct _TinyBackend {
  GObject parent_instance;
  TinyPluginModule module;
  TinyRenderer *renderers;
  char *path, *stamp;
  gboolean initialised;
};

G_DEFINE_FINAL_TYPE (TinyBackend, tiny_backend, G_TYPE_OBJECT)

/* Modules stay loaded and initialised for the life of the process once they worked. */
static GMutex module_lock;

/* ---- errors ---- */
static const struct {
  TinyStatus status;
  TinyError code;
  const char *text;
} statuses[] = {
  { TINY_STATUS_UNSUPPORTED, TINY_ERROR_UNSUPPORTED, "not supported" },
  { TINY_STATUS_INVALID, TINY_ERROR_INVALID, "invalid argument" },
  { TINY_STATUS_OUT_OF_MEMORY, TINY_ERROR_OUT_OF_MEMORY, "out of memory" },
  { TINY_STATUS_BUSY, TINY_ERROR_PERMISSION, "in use by another process" },
  { TINY_STATUS_TIMEOUT, TINY_ERROR_TIMEOUT, "took too long" },
  { TINY_STATUS_PERMISSION, TINY_ERROR_PERMISSION, "permission denied" },
  { TINY_STATUS_NO_DEVICE, TINY_ERROR_NO_DEVICE, "no such device" },
  { TINY_STATUS_DRIVER, TINY_ERROR_DRIVER, "driver missing or unsuitable" },
  { TINY_STATUS_DEVICE_LOST, TINY_ERROR_DEVICE_LOST, "device lost" },
  { TINY_STATUS_COMPILE, TINY_ERROR_COMPILE, "the kernel does not compile" },
  { TINY_STATUS_CORRUPT, TINY_ERROR_FORMAT, "damaged program" },
  { TINY_STATUS_LAUNCH, TINY_ERROR_LAUNCH, "launch failed" },
};

gboolean
tiny_status_check (TinyStatus status,
                   const TinyPluginError *plugin_error,
                   const char *device,
                   const char *what,
                   GError **error)
{
  if (status >= 0)
    return TRUE;
  TinyError code = TINY_ERROR_PLUGIN;
  const char *text = "internal error of the plugin";
  for (guint i = 0; i < G_N_ELEMENTS (statuses); i++)
    if (statuses[i].status == status) {
      code = statuses[i].code;
      text = statuses[i].text;
    }
  g_autofree char *said = NULL, *hint = NULL;
  if (plugin_error != NULL) {
    said = g_utf8_make_valid (plugin_error->text, (gssize) strnlen (plugin_error->text, sizeof plugin_error->text));
    hint = g_utf8_make_valid (plugin_error->hint, (gssize) strnlen (plugin_error->hint, sizeof plugin_error->hint));
  }
  g_set_error (error, TINY_ERROR, (gint) code, "%s: %s: %s%s%s%s", device, what,
               said && said[0] ? said : text, hint && hint[0] ? " (" : "", hint ? hint : "",
               hint && hint[0] ? ")" : "");
  return FALSE;
}

/* ---- the host's side ---- */
static void *
host_alloc (uint64_t n_bytes)
{
  void *memory = NULL;
  if (n_bytes > G_MAXSIZE / 2 || posix_memalign (&memory, 64, n_bytes ? n_bytes : 1) != 0)
    return NULL;
  return memory;
}

static void
host_log (int32_t level, const char *domain, const char *text)
{
  static const GLogLevelFlags levels[]
      = { G_LOG_LEVEL_WARNING, G_LOG_LEVEL_WARNING, G_LOG_LEVEL_INFO, G_LOG_LEVEL_DEBUG };
  g_log (domain, levels[CLAMP (level, 0, 3)], "%s", text);
}

const TinyHost *
tiny_host_get (void)
{
  static const TinyHost host = {
    .struct_size = sizeof (TinyHost),
    .abi_major = TINY_PLUGIN_ABI_MAJOR,
    .abi_minor = TINY_PLUGIN_ABI_MINOR,
    .alloc = host_alloc,
    .free = free,
    .log = host_log,
  };
  return &host;
}

gboolean
tiny_table_copy (void *to, gsize size, const void *from, gsize least, const char *what, GError **error)
{
  guint32 given;
  memset (to, 0, size);
  if (from == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s is missing", what);
    return FALSE;
  }
  memcpy (&given, from, sizeof given);
  if (given < least) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s says it has %u bytes, at least %" G_GSIZE_FORMAT " are needed", what, given, least);
    return FALSE;
  }
  memcpy (to, from, MIN (given, size));
  return TRUE;
}

static gboolean
all_zero (const guint64 *words, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (words[i] != 0)
      return FALSE;
  return TRUE;
}

static gboolean
refuse (GError **error, const char *name, const char *why)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: %s", name, why);
  return FALSE;
}

static gboolean
check_module (TinyBackend *self, GError **error)
{
  const TinyPluginModule *module = &self->module;
  const char *name = module->name ? module->name : "plugin without a name";
  if (module->abi_major != TINY_PLUGIN_ABI_MAJOR) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI, "%s is built for plugin ABI %u, this core has %u",
                 name, module->abi_major, TINY_PLUGIN_ABI_MAJOR);
    return FALSE;
  }
  if (module->abi_minor_min > TINY_PLUGIN_ABI_MINOR) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                 "%s needs a core with plugin ABI %u.%u or newer, this is %u.%u", name,
                 module->abi_major, module->abi_minor_min, TINY_PLUGIN_ABI_MAJOR,
                 TINY_PLUGIN_ABI_MINOR);
    return FALSE;
  }
  if (!all_zero (module->reserved, G_N_ELEMENTS (module->reserved))
      || (module->flags & ~TINY_MODULE_ANY_RENDERER) != 0)
    return refuse (error, name, "the module table has reserved bits set");
  const struct {
    gboolean there;
    const char *slot;
  } required[] = {
    { module->name != NULL, "name" }, { module->init != NULL, "init" },
    { module->fini != NULL, "fini" }, { module->scan != NULL, "scan" },
    { module->open != NULL, "open" },
    { module->n_renderers == 0 || module->renderers != NULL, "renderers" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!required[i].there) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                   "%s: the module table lacks the required slot %s", name, required[i].slot);
      return FALSE;
    }
  return TRUE;
}

static gboolean
copy_renderers (TinyBackend *self, GError **error)
{
  const guint8 *next = (const guint8 *) self->module.renderers;
  self->renderers = g_new0 (TinyRenderer, self->module.n_renderers + 1);
  for (guint i = 0; i < self->module.n_renderers; i++) {
    TinyRenderer *renderer = &self->renderers[i];
    if (!tiny_table_copy (renderer, sizeof *renderer, next,
                          G_STRUCT_OFFSET (TinyRenderer, disassemble), "renderer", error))
      return FALSE;
    if (renderer->name == NULL || renderer->target == NULL || renderer->compile == NULL)
      return refuse (error, self->module.name, "a renderer lacks name, target or compile");
    next += *(const guint32 *) next;
  }
  self->module.renderers = self->renderers;
  return TRUE;
}

TinyBackend *
tiny_backend_new (const TinyPluginModule *module, const char *path, GError **error)
{
  g_autoptr (TinyBackend) self = g_object_new (TINY_TYPE_BACKEND, NULL);
  self->path = g_strdup (path ? path : "");
  if (!tiny_table_copy (&self->module, sizeof self->module, module,
                        G_STRUCT_OFFSET (TinyPluginModule, reserved), "the module table", error)
      || !check_module (self, error) || !copy_renderers (self, error))
    return NULL;
  GStatBuf info = { 0 };
  if (path != NULL)
    g_stat (path, &info);
  self->stamp = g_strdup_printf ("%s %s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, self->module.name,
                                 self->module.version ? self->module.version : "",
                                 (gint64) info.st_size, (gint64) info.st_mtime);
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  g_mutex_lock (&module_lock);
  TinyStatus status = self->module.init (tiny_host_get (), &plugin_error);
  g_mutex_unlock (&module_lock);
  if (!tiny_status_check (status, &plugin_error, self->module.name, "init", error))
    return NULL;
  self->initialised = TRUE;
  return g_steal_pointer (&self);
}

static void
tiny_backend_finalize (GObject *object)
{
  TinyBackend *self = TINY_BACKEND (object);
  if (self->initialised)
    self->module.fini ();
  g_free (self->renderers);
  g_free (self->path);
  g_free (self->stamp);
  G_OBJECT_CLASS (tiny_backend_parent_class)->finalize (object);
}

static void
tiny_backend_class_init (TinyBackendClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_backend_finalize;
}

static void
tiny_backend_init (TinyBackend *self)
{
}

const char *
tiny_backend_get_name (TinyBackend *self)
{
  return self->module.name;
}

const char *
tiny_backend_get_path (TinyBackend *self)
{
  return self->path;
}

const char *
tiny_backend_get_stamp (TinyBackend *self)
{
  return self->stamp;
}

const TinyPluginModule *
tiny_backend_get_module (TinyBackend *self)
{
  return &self->module;
}

const TinyRenderer *
tiny_backend_find_renderer (TinyBackend *self, const char *name)
{
  for (guint i = 0; i < self->module.n_renderers; i++)
    if (name == NULL || name[0] == 0 || g_ascii_strcasecmp (name, self->renderers[i].name) == 0)
      return &self->renderers[i];
  return NULL;
}

int
tiny_backend_scan (TinyBackend *self, TinyCandidate *out, guint max, GError **error)
{
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  uint32_t n = max;
  for (guint i = 0; i < max; i++)
    out[i].struct_size = sizeof *out;
  g_mutex_lock (&module_lock);
  TinyStatus status = self->module.scan (out, &n, &plugin_error);
  g_mutex_unlock (&module_lock);
  if (!tiny_status_check (status, &plugin_error, self->module.name, "scan", error))
    return -1;
  return (int) MIN (n, max);
}
