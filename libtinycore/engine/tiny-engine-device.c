/* SPDX-License-Identifier: MIT
 *
 * tiny-engine-device.c: devices by name, opened on first use and kept. One that was lost stays so for all that is on
 * it, until a program opens its name again.
 *
 * Opening runs functions of a plugin, which may hang, so no lock is held meanwhile. */
#include <stdlib.h>

#include "base/tiny-env.h"
#include "base/tiny-timing.h"
#include "base/tiny-error.h"
#include "base/tiny-trace.h"
#include "device/tiny-queue.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-devices.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-shard.h"
#include "plugin/tiny-registry.h"

static GMutex lock;
static GHashTable *devices; /* name → TinyDevice */
static const char *default_name;
static guint n_reopened; /* atomic */

/* Devices stay open to the end of the process: what still runs then must not meet a driver that is
 * being taken down. A device that hangs does not keep the process. */
static void
wait_for_devices (void)
{
  const guint64 timeout_ns = G_GUINT64_CONSTANT (2000000000);
  GHashTableIter iter;
  gpointer device;
  if (!g_mutex_trylock (&lock))
    return;
  g_hash_table_iter_init (&iter, devices);
  while (g_hash_table_iter_next (&iter, NULL, &device)) {
    TinyQueue *queue = tiny_device_get_queue (device);
    tiny_queue_wait (queue, tiny_queue_get_last (queue), timeout_ns, NULL);
  }
  g_mutex_unlock (&lock);
}

/* The device of that name: @device, which is kept, unless there is one. A lost one keeps its memory, so that nothing
 * takes another device for it. */
static TinyDevice *
remember_locked (TinyDevice *device)
{
  if (devices == NULL)
    devices = g_hash_table_new (g_str_hash, g_str_equal);
  TinyDevice *known = g_hash_table_lookup (devices, tiny_device_get_name (device));
  if (known != NULL && (known == device || !tiny_device_is_lost (known)))
    return known;
  if (known != NULL)
    g_atomic_int_inc (&n_reopened);
  g_hash_table_insert (devices, (gpointer) g_intern_string (tiny_device_get_name (device)),
                       g_object_ref (device));
  if (tiny_device_is_asynchronous (device))
    atexit (
        wait_for_devices); /* for each, so that it comes before what the driver has registered */
  if (TINY_DEBUG (1))
    tiny_debug_print_device (device);
  return device;
}

/* Opens what @spec names, and keeps it unless another thread has meanwhile. */
static TinyDevice *
open_device (const char *spec, GError **error)
{
  tiny_trace_open (); /* devices come before the runtime */
  TINY_TIMED ("engine", "open device");
  g_autoptr (TinyDevice) opened
      = tiny_registry_open (tiny_registry_get_default (), spec, error);
  if (opened == NULL)
    return NULL;
  g_mutex_lock (&lock);
  TinyDevice *device = remember_locked (opened);
  g_mutex_unlock (&lock);
  return device;
}

guint
tiny_engine_count_reopened (void)
{
  return (guint) g_atomic_int_get (&n_reopened);
}

/* The device of that name, which is another one than before if that was lost. */
static TinyDevice *
reopen_device (const char *name, GError **error)
{
  TinyDevice *device = tiny_engine_get_device (name, error);
  return device != NULL && tiny_device_is_lost (device) ? open_device (name, error) : device;
}

static void
fail_nameless (GError **error)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "a device without a name: try \"CPU\"");
}

TinyDevice *
tiny_engine_get_device (const char *name, GError **error)
{
  if (name == NULL || *name == '\0') {
    fail_nameless (error);
    return NULL;
  }
  g_mutex_lock (&lock);
  TinyDevice *device = devices ? g_hash_table_lookup (devices, name) : NULL;
  g_mutex_unlock (&lock);
  return device != NULL ? device : open_device (name, error);
}

static gboolean
add_devices (const char *name, GPtrArray *out, GError **error)
{
  g_mutex_lock (&lock);
  TinyDevice *known = devices ? g_hash_table_lookup (devices, name) : NULL;
  g_mutex_unlock (&lock);
  if (known != NULL) {
    g_ptr_array_add (out, known);
    return TRUE;
  }
  tiny_trace_open ();
  g_autoptr (GPtrArray) opened
      = tiny_registry_open_all (tiny_registry_get_default (), name, error);
  if (opened == NULL)
    return FALSE;
  g_mutex_lock (&lock);
  for (guint i = 0; i < opened->len; i++)
    g_ptr_array_add (out, remember_locked (opened->pdata[i]));
  g_mutex_unlock (&lock);
  return TRUE;
}

gboolean
tiny_engine_add_devices (const char *names, GPtrArray *out, GError **error)
{
  g_auto (GStrv) all = tiny_devices_split (names);
  gboolean good = TRUE;
  if (names[0] == 0)
    fail_nameless (error);
  for (guint i = 0; good && all[i] != NULL; i++) {
    good = all[i][0] != 0;
    if (!good)
      fail_nameless (error);
    good = good && add_devices (all[i], out, error);
  }
  return good && names[0] != 0;
}

gboolean
tiny_engine_owns_device (TinyDevice *device)
{
  g_mutex_lock (&lock);
  gboolean owns = devices != NULL
                  && g_hash_table_lookup (devices, tiny_device_get_name (device)) == device;
  g_mutex_unlock (&lock);
  return owns;
}

void
tiny_runtime_open_default_device (void)
{
  tiny_runtime_get_default_device (NULL);
}

const char *
tiny_runtime_get_default_device (GError **error)
{
  const char *name = g_atomic_pointer_get (&default_name);
  TinyDevice *device = name == NULL ? open_device (NULL, error) : NULL;
  if (device == NULL)
    return name;
  name = g_intern_string (tiny_device_get_name (device));
  /* The first that was found stays it. */
  return g_atomic_pointer_compare_and_exchange (&default_name, NULL, name)
             ? name
             : g_atomic_pointer_get (&default_name);
}

/* ---- for programs ---- */
const char *
tiny_get_default_device (GError **error)
{
  return tiny_runtime_get_default_device (error);
}

gboolean
tiny_set_default_device (const char *name, GError **error)
{
  TinyDevice *device = reopen_device (name, error);
  if (device == NULL)
    return FALSE;
  g_atomic_pointer_set (&default_name, g_intern_string (tiny_device_get_name (device)));
  return TRUE;
}

const char *
tiny_open_device (const char *name, GError **error)
{
  TinyDevice *device = reopen_device (name, error);
  return device != NULL ? g_intern_string (tiny_device_get_name (device)) : NULL;
}

char **
tiny_list_devices (void)
{
  g_autoptr (GPtrArray) entries = tiny_registry_list (tiny_registry_get_default ());
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < entries->len; i++) {
    const TinyEntry *entry = g_ptr_array_index (entries, i);
    if (entry->state == TINY_ENTRY_READY)
      g_ptr_array_add (names, entry->index > 0
                                  ? g_strdup_printf ("%s:%d", entry->name, entry->index)
                                  : g_strdup (entry->name));
  }
  g_ptr_array_add (names, NULL);
  return (char **) g_ptr_array_free (names, FALSE);
}

gboolean
tiny_synchronize (const char *name, GError **error)
{
  if (name == NULL && (name = tiny_runtime_get_default_device (error)) == NULL)
    return FALSE;
  TinyDevice *device = tiny_engine_get_device (name, error);
  if (device == NULL)
    return FALSE;
  TinyQueue *queue = tiny_device_get_queue (device);
  return tiny_queue_wait (queue, tiny_queue_get_last (queue), G_MAXUINT64, error);
}
