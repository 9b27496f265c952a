/* SPDX-License-Identifier: MIT
 *
 * device-there.h: for test programs that run on the device of DEV=: without it the whole program is a skip,
 * with the reason that tinycore devices shows. Opens nothing. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "plugin/tiny-registry.h"

static inline gboolean
device_is_there (void)
{
  const char *name = g_getenv ("DEV");
  g_autoptr (GPtrArray) list = tiny_registry_list (tiny_registry_get_default ());
  for (guint i = 0; name != NULL && i < list->len; i++) {
    const TinyEntry *entry = list->pdata[i];
    gsize n = strlen (entry->name);
    if (strncmp (entry->name, name, n) != 0 || (name[n] != '\0' && name[n] != ':')
        || entry->state == TINY_ENTRY_READY)
      continue;
    printf ("1..0 # SKIP %s: %s\n", entry->name, entry->reason ? entry->reason : "not ready");
    return FALSE;
  }
  return TRUE; /* a name that nobody has is the test's to fail on */
}
