/* SPDX-License-Identifier: MIT
 *
 * tiny-engine-device.c: devices by name, opened on first use and kept. */
#include "base/tiny-env.h"
#include "base/tiny-timing.h"
#include "base/tiny-error.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"
#include "plugin/tiny-registry.h"

static GMutex lock;
static GHashTable *devices; /* name → TinyDevice */
static const char *default_name;

static TinyDevice *
remember (TinyDevice *device)
{
  if (devices == NULL)
    devices = g_hash_table_new (g_str_hash, g_str_equal);
  TinyDevice *known = g_hash_table_lookup (devices, tiny_device_get_name (device));
  if (known != NULL) {
    g_object_unref (device);
    return known;
  }
  g_hash_table_insert (devices, (gpointer) g_intern_string (tiny_device_get_name (device)),
                       device);
  if (TINY_DEBUG (1))
    tiny_debug_print_device (device);
  return device;
}

TinyDevice *
tiny_engine_get_device (const char *name, GError **error)
{
  g_mutex_lock (&lock);
  TinyDevice *device = devices ? g_hash_table_lookup (devices, name) : NULL;
  if (device == NULL) {
    TINY_TIMED ("engine", "open device");
    device = tiny_registry_open (tiny_registry_get_default (), name, error);
    if (device != NULL)
      device = remember (device);
  }
  g_mutex_unlock (&lock);
  return device;
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

const char *
tiny_runtime_get_default_device (GError **error)
{
  g_mutex_lock (&lock);
  if (default_name == NULL) {
    TINY_TIMED ("engine", "open device");
    TinyDevice *device = tiny_registry_open (tiny_registry_get_default (), NULL, error);
    if (device != NULL)
      default_name = g_intern_string (tiny_device_get_name (remember (device)));
  }
  const char *name = default_name;
  g_mutex_unlock (&lock);
  return name;
}
