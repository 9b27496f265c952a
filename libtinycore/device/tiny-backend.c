/* SPDX-License-Identifier: MIT
 *
 * tiny-backend.c: one loaded plugin module: its tables checked, copied and initialised.
 *
 * Module functions are serialised here, by one lock for each module: one that hangs does not keep the
 * others. */
#include "device/tiny-backend.h"

#include <glib/gstdio.h>
#include <gmodule.h>
#include <string.h>

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "device/tiny-watch.h"

struct _TinyBackend {
  GObject parent_instance;
  TinyPluginModule module;
  TinyRenderer *renderers; /* module.n_renderers copies */
  TinyDialect *dialects;   /* copies, by renderer; unused where it has none */
  TinyWatch *watch;        /* or NULL */
  TinyModuleProxy proxy;   /* or empty: the functions of the tables are called */
  char *name, *path, *stamp;
  GMutex *lock; /* of module functions */
  gboolean initialised;
};

G_DEFINE_FINAL_TYPE (TinyBackend, tiny_backend, G_TYPE_OBJECT)

enum { MAX_NAME = 32, MAX_TEXT = 256 };

/* ---- checks ---- */
static gboolean
check_abi (const TinyPluginModule *module, const char *name, GError **error)
{
  if (module->abi_major != TINY_PLUGIN_ABI_MAJOR) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                 "%s: built for plugin ABI %u, this core has %u", name, module->abi_major,
                 TINY_PLUGIN_ABI_MAJOR);
    return FALSE;
  }
  if (module->abi_minor_min > TINY_PLUGIN_ABI_MINOR) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                 "%s: needs a core with plugin ABI %u.%u or newer, this one has %u.%u", name,
                 module->abi_major, module->abi_minor_min, TINY_PLUGIN_ABI_MAJOR,
                 TINY_PLUGIN_ABI_MINOR);
    return FALSE;
  }
  return TRUE;
}

/* Names end up in messages, DEV= and keys of caches: short, and of characters that can be typed. */
static gboolean
is_name (const char *text)
{
  gsize n = strnlen (text, MAX_NAME + 1);
  for (gsize i = 0; i < n; i++)
    if (!g_ascii_isalnum (text[i]) && text[i] != '_' && text[i] != '-')
      return FALSE;
  return n > 0 && n <= MAX_NAME && g_ascii_isalpha (text[0]);
}

static gboolean
check_texts (const TinyPluginModule *module, const char *name, GError **error)
{
  const struct {
    const char *slot, *text;
  } texts[] = { { "vendor", module->vendor },
                { "version", module->version },
                { "license", module->license } };
  gboolean good = is_name (module->name);
  const char *slot = "name";
  for (guint i = 0; i < G_N_ELEMENTS (texts) && good; i++) {
    slot = texts[i].slot;
    good = texts[i].text == NULL || strnlen (texts[i].text, MAX_TEXT + 1) <= MAX_TEXT;
  }
  if (!good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: the module table's %s is longer than %d characters%s", name, slot,
                 g_str_equal (slot, "name") ? MAX_NAME : MAX_TEXT,
                 g_str_equal (slot, "name")
                     ? ", or not a letter and then letters, digits, “-” and “_”"
                     : "");
  return good;
}

static gboolean
check_module (const TinyPluginModule *module, const char *name, GError **error)
{
  const struct {
    gboolean there;
    const char *slot;
  } required[] = {
    { module->name != NULL && module->name[0] != 0, "name" },
    { module->init != NULL, "init" },
    { module->scan != NULL, "scan" },
    { module->open != NULL, "open" },
    { module->n_renderers == 0 || module->renderers != NULL, "renderers" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!required[i].there) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                   "%s: the module table lacks the required slot %s", name, required[i].slot);
      return FALSE;
    }
  if (module->n_renderers > 256) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: claims %u renderers", name,
                 module->n_renderers);
    return FALSE;
  }
  return check_texts (module, name, error);
}

static gboolean
copy_dialect (TinyRenderer *renderer, TinyDialect *to, GError **error)
{
  if (renderer->dialect == NULL)
    return TRUE;
  if (!tiny_table_take (TINY_TABLE_DIALECT, to, renderer->dialect, renderer->name, error))
    return FALSE;
  renderer->dialect = to;
  return TRUE;
}

static gboolean
copy_renderer (TinyRenderer *to, const void *from, TinyDialect *dialect, GError **error)
{
  if (!tiny_table_take (TINY_TABLE_RENDERER, to, from, NULL, error))
    return FALSE;
  const gboolean claims = (to->flags & TINY_RENDERER_CLAIMS_ONLY) != 0;
  const char *slot = to->name == NULL || to->name[0] == 0 ? "name"
                     : to->target == NULL && !claims      ? "target"
                     : to->compile == NULL                ? "compile"
                     : to->claim == NULL && claims        ? "claim"
                                                          : NULL;
  if (slot != NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "the renderer lacks the required slot %s", slot);
    return FALSE;
  }
  if (!is_name (to->name)
      || (to->code_version != NULL && strnlen (to->code_version, MAX_TEXT + 1) > MAX_TEXT)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "its name is not of a letter, then letters, digits, “-” and “_”, up to %d, or "
                 "its code_version is "
                 "longer than %d characters",
                 MAX_NAME, MAX_TEXT);
    return FALSE;
  }
  return copy_dialect (to, dialect, error);
}

/* A module has renderers that make kernels, or runs beside the host and has some that claim. */
static gboolean
check_renderers (TinyBackend *self, GError **error)
{
  const gboolean is_beside = (self->module.flags & TINY_MODULE_BESIDE_HOST) != 0;
  const char *wrong = is_beside && self->module.n_renderers == 0
                          ? "runs beside the host and has no renderer that claims operations"
                      : is_beside && (self->module.flags & TINY_MODULE_ANY_RENDERER) != 0
                          ? "runs beside the host and takes programs of any renderer"
                          : NULL;
  for (guint i = 0; i < self->module.n_renderers && wrong == NULL; i++)
    if (((self->renderers[i].flags & TINY_RENDERER_CLAIMS_ONLY) != 0) != is_beside)
      wrong = is_beside ? "runs beside the host and has a renderer for more than claims"
                        : "has a renderer for claims alone and does not run beside the host";
  if (wrong != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: the module %s", self->name, wrong);
  return wrong == NULL;
}

/* Whose renderer the core's copy is, in a word that plugins leave 0. */
static TinyBackend *
get_owner (const TinyRenderer *renderer)
{
  return GSIZE_TO_POINTER (renderer->reserved[G_N_ELEMENTS (renderer->reserved) - 1]);
}

static void
set_owner (TinyRenderer *renderer, TinyBackend *owner)
{
  renderer->reserved[G_N_ELEMENTS (renderer->reserved) - 1] = GPOINTER_TO_SIZE (owner);
}

/* The plugin's array has elements as large as the plugin's own struct, not ours. */
static gboolean
copy_renderers (TinyBackend *self, GError **error)
{
  const guint8 *next = (const guint8 *) self->module.renderers;
  guint n = self->module.n_renderers;
  self->renderers = g_new0 (TinyRenderer, n + 1);
  self->dialects = g_new0 (TinyDialect, n + 1);
  for (guint i = 0; i < n; i++) {
    if (!copy_renderer (&self->renderers[i], next, &self->dialects[i], error)) {
      g_prefix_error (error, "%s: renderer %u: ", self->name, i);
      return FALSE;
    }
    next += self->renderers[i].struct_size;
    set_owner (&self->renderers[i], self);
  }
  self->module.renderers = self->renderers;
  return check_renderers (self, error);
}

/* ---- life ---- */
static char *
make_stamp (const TinyPluginModule *module, const char *path)
{
  GStatBuf info = { 0 };
  if (path != NULL)
    g_stat (path, &info);
  return g_strdup_printf ("%s %s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT ".%09ld", module->name,
                          module->version ? module->version : "", (gint64) info.st_size,
                          (gint64) info.st_mtim.tv_sec, (long) info.st_mtim.tv_nsec);
}

static gboolean
initialise (TinyBackend *self, GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  g_mutex_lock (self->lock);
  const TinyWatchPlace before = tiny_watch_enter (self->watch, "init");
  TinyStatus status = self->module.init (tiny_host_get (), &plugin_error);
  tiny_watch_leave (self->watch, before);
  g_mutex_unlock (self->lock);
  self->initialised = status >= 0;
  return tiny_status_check (status, &plugin_error, self->name, "init", error);
}

static TinyBackend *
new_backend (const TinyPluginModule *module,
             const char *path,
             const TinyModuleProxy *proxy,
             TinyWatch *watch,
             GError **error)
{
  g_autoptr (TinyBackend) self = g_object_new (TINY_TYPE_BACKEND, NULL);
  g_autofree char *file = path ? g_path_get_basename (path) : g_strdup ("plugin");
  self->path = g_strdup (path ? path : "");
  self->lock = tiny_module_find_lock (module);
  self->watch = watch;
  if (proxy != NULL)
    self->proxy = *proxy;
  /* The ABI numbers stand where they stand in every ABI, so a foreign table says what it is even
   * when nothing else of it can be read. */
  if (!tiny_table_copy (&self->module, sizeof self->module, module,
                        G_STRUCT_OFFSET (TinyPluginModule, n_renderers), "the module table",
                        error)
      || !check_abi (&self->module, file, error)
      || !tiny_table_take (TINY_TABLE_MODULE, &self->module, module, file, error)
      || !check_module (&self->module, file, error))
    return NULL;
  self->name = g_strdup (self->module.name);
  self->stamp = make_stamp (&self->module, path);
  if (!copy_renderers (self, error) || (proxy == NULL && !initialise (self, error)))
    return NULL;
  return g_steal_pointer (&self);
}

TinyBackend *
tiny_backend_new (const TinyPluginModule *module, const char *path, GError **error)
{
  return new_backend (module, path, NULL, NULL, error);
}

TinyBackend *
tiny_backend_new_proxy (const TinyPluginModule *module,
                        const char *path,
                        const TinyModuleProxy *proxy,
                        GError **error)
{
  return new_backend (module, path, proxy, NULL, error);
}

/* Loads the file and calls its entry; NULL with @error set. */
static const TinyPluginModule *
load_module (const char *path, GError **error)
{
  TinyPluginEntry entry = NULL;
  GModule *module = g_module_open (path, G_MODULE_BIND_LOCAL);
  if (module == NULL || !g_module_symbol (module, TINY_PLUGIN_ENTRY_SYMBOL, (gpointer *) &entry)
      || entry == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s", g_module_error ());
    return NULL; /* what ran once stays mapped: its threads or handlers may still be about */
  }
  g_module_make_resident (module);
  g_autofree char *file = g_path_get_basename (path);
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  GMutex *lock = tiny_module_find_lock (module);
  g_mutex_lock (lock);
  const TinyPluginModule *table = entry (TINY_PLUGIN_ABI_MINOR, &plugin_error);
  g_mutex_unlock (lock);
  if (table == NULL)
    tiny_status_check (TINY_STATUS_INTERNAL, &plugin_error, file, TINY_PLUGIN_ENTRY_SYMBOL,
                       error);
  return table;
}

TinyBackend *
tiny_backend_load_watched (const char *path, TinyWatch *watch, GError **error)
{
  const TinyWatchPlace before = tiny_watch_enter (watch, "load");
  const TinyPluginModule *table = load_module (path, error);
  tiny_watch_leave (watch, before);
  if (table == NULL) {
    tiny_watch_free (watch);
    return NULL;
  }
  g_autofree char *file = g_path_get_basename (path);
  TinyBackend *self = new_backend (table, path, NULL, watch, error);
  if (self == NULL && error != NULL && !g_str_has_prefix ((*error)->message, file))
    g_prefix_error (error, "%s: ", file);
  return self;
}

TinyBackend *
tiny_backend_load (const char *path, GError **error)
{
  return tiny_backend_load_watched (path, NULL, error);
}

static void
tiny_backend_finalize (GObject *object)
{
  TinyBackend *self = TINY_BACKEND (object);
  if (self->initialised && self->module.fini != NULL) {
    g_mutex_lock (self->lock);
    const TinyWatchPlace before = tiny_watch_enter (self->watch, "fini");
    self->module.fini ();
    tiny_watch_leave (self->watch, before);
    g_mutex_unlock (self->lock);
  }
  tiny_watch_free (self->watch);
  if (self->proxy.free != NULL)
    self->proxy.free (self->proxy.data);
  g_free (self->renderers);
  g_free (self->dialects);
  g_free (self->name);
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

/* ---- what it has ---- */
const char *
tiny_backend_get_name (TinyBackend *self)
{
  return self->name;
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
  for (guint i = 0; i < self->module.n_renderers && !tiny_backend_runs_beside_host (self); i++)
    if (name == NULL || name[0] == 0 || g_ascii_strcasecmp (name, self->renderers[i].name) == 0)
      return &self->renderers[i];
  return NULL;
}

char *
tiny_backend_list_renderers (TinyBackend *self)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < self->module.n_renderers && !tiny_backend_runs_beside_host (self); i++)
    g_string_append_printf (out, "%s%s", i ? ", " : "", self->renderers[i].name);
  if (out->len == 0)
    g_string_append (out, "none");
  return g_string_free (out, FALSE);
}

gboolean
tiny_backend_takes_any_renderer (TinyBackend *self)
{
  return (self->module.flags & TINY_MODULE_ANY_RENDERER) != 0;
}

gboolean
tiny_backend_runs_beside_host (TinyBackend *self)
{
  return (self->module.flags & TINY_MODULE_BESIDE_HOST) != 0;
}

gboolean
tiny_backend_is_elsewhere (TinyBackend *self)
{
  return self->proxy.open != NULL;
}

TinyWatch *
tiny_backend_get_watch (TinyBackend *self)
{
  return self->watch;
}

/* ---- module functions ---- */
gboolean
tiny_backend_is_proxy (const TinyBackend *self)
{
  return self->proxy.free != NULL;
}

TinyStatus
tiny_backend_call_scan (TinyBackend *self,
                        TinyCandidate *out,
                        uint32_t *n,
                        TinyPluginError *plugin_error)
{
  if (self->proxy.scan != NULL)
    return self->proxy.scan (self->proxy.data, out, n, plugin_error);
  g_mutex_lock (self->lock);
  const TinyWatchPlace before = tiny_watch_enter (self->watch, "scan");
  TinyStatus status = self->module.scan (out, n, plugin_error);
  tiny_watch_leave (self->watch, before);
  g_mutex_unlock (self->lock);
  return status;
}

TinyStatus
tiny_backend_open_device (TinyBackend *self,
                          const char *id,
                          TinyPluginDevice **out,
                          const TinyDeviceTable **out_table,
                          TinyPluginError *plugin_error)
{
  if (self->proxy.open != NULL)
    return self->proxy.open (self->proxy.data, id, out, out_table, plugin_error);
  g_mutex_lock (self->lock);
  const TinyWatchPlace before = tiny_watch_enter (self->watch, "open");
  TinyStatus status = self->module.open (id, out, out_table, plugin_error);
  tiny_watch_leave (self->watch, before);
  g_mutex_unlock (self->lock);
  return status;
}

/* ---- renderers ---- */

/* A renderer straight from a plugin's table has no owner. */
static TinyWatch *
get_watch (const TinyBackend *owner)
{
  return owner != NULL ? owner->watch : NULL;
}

/* The number of one whose functions are elsewhere. */
static guint
get_number (const TinyBackend *owner, const TinyRenderer *renderer)
{
  return (guint) (renderer - owner->renderers);
}

TinyStatus
tiny_renderer_call_target (const TinyRenderer *renderer,
                           const char *arch,
                           TinyTarget *target,
                           TinyPluginError *plugin_error)
{
  const TinyBackend *owner = get_owner (renderer);
  if (owner != NULL && owner->proxy.target != NULL)
    return owner->proxy.target (owner->proxy.data, get_number (owner, renderer), arch, target,
                                plugin_error);
  GMutex *lock = owner != NULL ? owner->lock : tiny_module_find_lock (renderer);
  g_mutex_lock (lock);
  const TinyWatchPlace before = tiny_watch_enter (get_watch (owner), "target");
  TinyStatus status = renderer->target (arch, target, plugin_error);
  tiny_watch_leave (get_watch (owner), before);
  g_mutex_unlock (lock);
  return status;
}

TinyStatus
tiny_renderer_call_compile (const TinyRenderer *renderer,
                            const TinyCompileArgs *args,
                            void **out_data,
                            uint64_t *out_size,
                            TinyPluginError *plugin_error)
{
  const TinyBackend *owner = get_owner (renderer);
  if (owner != NULL && owner->proxy.compile != NULL)
    return owner->proxy.compile (owner->proxy.data, get_number (owner, renderer), args,
                                 out_data, out_size, plugin_error);
  const TinyWatchPlace before = tiny_watch_enter (get_watch (owner), "compile");
  TinyStatus status = renderer->compile (args, out_data, out_size, plugin_error);
  tiny_watch_leave (get_watch (owner), before);
  return status;
}

TinyStatus
tiny_renderer_call_disassemble (const TinyRenderer *renderer,
                                const void *data,
                                uint64_t size,
                                char **out_text,
                                TinyPluginError *plugin_error)
{
  const TinyBackend *owner = get_owner (renderer);
  if (owner != NULL && owner->proxy.disassemble != NULL)
    return owner->proxy.disassemble (owner->proxy.data, get_number (owner, renderer), data,
                                     size, out_text, plugin_error);
  const TinyWatchPlace before = tiny_watch_enter (get_watch (owner), "disassemble");
  TinyStatus status = renderer->disassemble (data, size, out_text, plugin_error);
  tiny_watch_leave (get_watch (owner), before);
  return status;
}

TinyStatus
tiny_renderer_call_claim (const TinyRenderer *renderer,
                          const char *arch,
                          const TinyOperation *operation,
                          TinyClaim *out,
                          TinyPluginError *plugin_error)
{
  const TinyBackend *owner = get_owner (renderer);
  if (owner != NULL && owner->proxy.claim != NULL)
    return owner->proxy.claim (owner->proxy.data, get_number (owner, renderer), arch, operation,
                               out, plugin_error);
  const TinyWatchPlace before = tiny_watch_enter (get_watch (owner), "claim");
  TinyStatus status = renderer->claim (arch, operation, out, plugin_error);
  tiny_watch_leave (get_watch (owner), before);
  return status;
}
