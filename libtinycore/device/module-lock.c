/* SPDX-License-Identifier: MIT
 *
 * module-lock.c: the locks of modules, one for each in the process. */
#include "device/device-private.h"

GMutex *
tiny_module_find_lock (gconstpointer key)
{
  static GMutex lock;
  static GHashTable *locks;
  g_mutex_lock (&lock);
  if (locks == NULL)
    locks = g_hash_table_new (NULL, NULL);
  GMutex *found = g_hash_table_lookup (locks, key);
  if (found == NULL) {
    found = g_new (GMutex, 1);
    g_mutex_init (found);
    g_hash_table_insert (locks, (gpointer) key, found);
  }
  g_mutex_unlock (&lock);
  return found;
}
