/* SPDX-License-Identifier: MIT
 *
 * device-there.h: for test programs that run on the device of DEV=: without it the whole program is a skip,
 * with the reason that tinycore devices shows. Opens nothing. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "plugin/tiny-registry.h"

/* Whether a backend is not ready for want of a driver or hardware; anything else is to be seen as a failure. */
static inline gboolean
device_is_absent (const TinyEntry *entry)
{
  static const char *const wants[] = { "cannot open shared object", "CL_PLATFORM_NOT_FOUND" };
  gboolean is_absent = entry->state == TINY_ENTRY_NO_HARDWARE;
  for (guint i = 0; i < G_N_ELEMENTS (wants) && entry->reason != NULL; i++)
    is_absent |= entry->state == TINY_ENTRY_BROKEN && strstr (entry->reason, wants[i]) != NULL;
  return is_absent;
}

/* Why the backend of @name, as in DEV=, cannot run anything; NULL: it can, or nobody has it. */
static inline char *
device_find_obstacle (const char *name)
{
  gsize n_name = strcspn (name, ":");
  g_autoptr (GPtrArray) list = tiny_registry_list (tiny_registry_get_default ());
  for (guint i = 0; i < list->len; i++) {
    const TinyEntry *entry = list->pdata[i];
    if (strlen (entry->name) == n_name && strncmp (entry->name, name, n_name) == 0
        && entry->state != TINY_ENTRY_READY && device_is_absent (entry))
      return g_strdup_printf ("%s: %s", entry->name,
                              entry->reason ? entry->reason : "not ready");
  }
  return NULL; /* a name that nobody has is the test's to fail on */
}

static inline gboolean
device_is_there (void)
{
  const char *name = g_getenv ("DEV");
  g_autofree char *reason = name != NULL ? device_find_obstacle (name) : NULL;
  if (reason != NULL)
    printf ("1..0 # SKIP %s\n", reason);
  return reason == NULL;
}
