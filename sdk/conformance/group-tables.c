/* SPDX-License-Identifier: MIT
 *
 * group-tables.c: tables that lack what is optional, as plugins that were built before it have them, and a host's
 * table of another core. Each case has a process of its own, and opens the device by what it changed. */
#include <dlfcn.h>
#include <string.h>

#include "device/tiny-table.h"
#include "fresh.h"
#include "step.h"

enum { POISON = 0xa5 };

typedef struct {
  const char *name;
  gsize at;
  gboolean of_claims; /* what runs beside the host and only claims needs it */
} Slot;
#define DEVICE_SLOT(name)   #name, G_STRUCT_OFFSET(TinyDeviceTable, name)
#define RENDERER_SLOT(name) #name, G_STRUCT_OFFSET(TinyRenderer, name)
static const Slot device_slots[] = { { DEVICE_SLOT (map), TRUE },
                                     { DEVICE_SLOT (import) },
                                     { DEVICE_SLOT (context) },
                                     { DEVICE_SLOT (import_host) } };
static const Slot renderer_slots[]
    = { { RENDERER_SLOT (disassemble) }, { RENDERER_SLOT (claim), TRUE } };

/* How the tables are changed; of this process, which has one case. */
static struct {
  TinyStatus (*open) (const char *id,
                      TinyPluginDevice **out,
                      const TinyDeviceTable **out_table,
                      TinyPluginError *error);
  TinyDeviceTable *table; /* where no memory follows */
  gsize size;
  const Slot *without;
} changed;

static TinyStatus
open_changed (const char *id,
              TinyPluginDevice **out,
              const TinyDeviceTable **out_table,
              TinyPluginError *error)
{
  const TinyDeviceTable *whole = NULL;
  TinyStatus status = changed.open (id, out, &whole, error);
  if (status != TINY_STATUS_OK)
    return status;
  changed.table = conf_guarded_new (changed.size);
  memcpy (changed.table, whole, MIN (changed.size, whole->struct_size));
  changed.table->struct_size = (guint32) MIN (changed.size, whole->struct_size);
  if (changed.without != NULL)
    memset ((guint8 *) changed.table + changed.without->at, 0, sizeof (void *));
  *out_table = changed.table;
  return status;
}

/* Opens the device by these tables, and uses it. */
static void
use_changed (ConfTrial *trial,
             const ConfSubject *subject,
             const TinyPluginModule *module,
             const char *what)
{
  g_autoptr (GError) error = NULL;
  ConfSubject own = *subject;
  own.backend = tiny_backend_new (module, subject->path, &error);
  const TinyDeviceOptions options = { .name = "changed", .id = subject->id, .is_alone = TRUE };
  own.device = own.backend ? tiny_device_new (own.backend, &options, &error) : NULL;
  conf_check (trial, own.device != NULL, "%s: %s", what, error ? error->message : "");
  if (own.device != NULL) {
    own.target = tiny_device_get_target (own.device);
    if (!conf_fresh_use (trial, &own))
      conf_fail (trial, "%s: the device does not work", what);
  }
  conf_fresh_close (&own);
}

/* The plugin's own module, past the core's copy. */
static const TinyPluginModule *
load_module (ConfTrial *trial, const ConfSubject *subject)
{
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  void *library = dlopen (subject->path, RTLD_NOW | RTLD_LOCAL);
  TinyPluginEntry entry
      = library ? (TinyPluginEntry) dlsym (library, TINY_PLUGIN_ENTRY_SYMBOL) : NULL;
  const TinyPluginModule *module = entry ? entry (TINY_PLUGIN_ABI_MINOR, &error) : NULL;
  conf_check (trial, module != NULL, "no module: %s", library ? error.text : dlerror ());
  return module;
}

static void
change_device (ConfTrial *trial,
               const ConfSubject *subject,
               gsize size,
               const Slot *without,
               const char *what)
{
  const TinyPluginModule *whole = load_module (trial, subject);
  if (whole == NULL)
    return;
  TinyPluginModule module = *whole;
  changed.open = module.open;
  changed.size = size;
  changed.without = without;
  module.open = open_changed;
  use_changed (trial, subject, &module, what);
  conf_guarded_free (changed.table, size);
}

/* args: the slot that is NULL. */
static void
run_device_table (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Slot *slot = &device_slots[self->args[0]];
  g_autofree char *what = g_strdup_printf ("a device table without %s", slot->name);
  change_device (trial, subject, sizeof (TinyDeviceTable), slot, what);
}

static void
run_renderer (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Slot *slot = &renderer_slots[self->args[0]];
  const TinyPluginModule *whole = load_module (trial, subject);
  if (whole == NULL
      || !conf_check (trial, whole->n_renderers > 0, "the module has no renderer"))
    return;
  const gsize size = MIN (whole->renderers[0].struct_size, sizeof (TinyRenderer));
  /* One that only claims needs what follows: claim(). */
  const guint n = whole->renderers[0].flags & TINY_RENDERER_CLAIMS_ONLY ? 1 : 2;
  for (guint is_cut = 0; is_cut < n; is_cut++) {
    g_autofree char *what = g_strdup_printf (
        is_cut ? "a renderer that ends before %s" : "a renderer without %s", slot->name);
    TinyRenderer *changed_one = conf_guarded_new (is_cut ? slot->at : size);
    TinyPluginModule module = *whole;
    memcpy (changed_one, whole->renderers, MIN (size, is_cut ? slot->at : size));
    if (is_cut)
      changed_one->struct_size = (guint32) MIN (size, slot->at);
    else if (slot->at < size)
      memset ((guint8 *) changed_one + slot->at, 0, sizeof (void *));
    module.renderers = changed_one;
    module.n_renderers = 1;
    use_changed (trial, subject, &module, what);
    conf_guarded_free (changed_one, is_cut ? slot->at : size);
  }
}

/* init() with a TinyHost of another core. args: how much longer it is. */
static void
run_host (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gsize known = sizeof (TinyHost), size = known + (gsize) self->args[0];
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  const TinyPluginModule *module = load_module (trial, subject);
  if (module == NULL)
    return;
  guint8 *host = conf_guarded_new (size);
  const guint32 given = (guint32) size;
  memset (host, POISON, size);
  memcpy (host, tiny_host_get (), known);
  memcpy (host, &given, sizeof given);
  TinyStatus status = module->init ((const TinyHost *) (gconstpointer) host, &error);
  conf_check (trial, status == TINY_STATUS_OK,
              "init() with a TinyHost of %" G_GSIZE_FORMAT " bytes, not %" G_GSIZE_FORMAT
              ": %s: %s",
              size, known, conf_status_to_string (status), error.text);
  if (status == TINY_STATUS_OK && module->fini != NULL)
    module->fini ();
  for (gsize i = known; i < size; i++)
    conf_check (trial, host[i] == POISON, "init() writes behind what it knows of TinyHost");
  conf_guarded_free (host, size);
}

/* What is optional, but where the device runs beside the host and only claims. */
static void
list_slots (const ConfSubject *subject,
            ConfList *out,
            ConfCase self,
            const char *table,
            const Slot *slots,
            guint n)
{
  for (guint i = 0; i < n; i++) {
    self.args[0] = i;
    if (conf_only_claims (subject) && slots[i].of_claims)
      conf_list_absent (out, "what runs beside the host needs it", "%s/without-%s", table,
                        slots[i].name);
    else
      conf_list_add (out, &self, "%s/without-%s", table, slots[i].name);
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  for (guint i = 0; i < 3; i++) {
    static const gint longer[] = { 0, 8, 64 };
    const ConfCase host = { .run = run_host, .flags = CONF_FRESH, .args = { longer[i] } };
    conf_list_add (out, &host, "host/longer-%d", longer[i]);
  }
  const ConfCase device = { .run = run_device_table, .flags = CONF_FRESH },
                 renderer = { .run = run_renderer, .flags = CONF_FRESH };
  list_slots (subject, out, device, "device", device_slots, G_N_ELEMENTS (device_slots));
  list_slots (subject, out, renderer, "renderer", renderer_slots,
              G_N_ELEMENTS (renderer_slots));
}

const ConfGroup conf_group_tables
    = { "tables", "tables without what is optional, and a longer host's, are taken", list };
