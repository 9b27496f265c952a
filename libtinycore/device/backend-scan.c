/* SPDX-License-Identifier: MIT
 *
 * backend-scan.c: the devices that a module finds, in as much room as it says that it needs. */
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "device/device-private.h"

/* (transfer full): room for @n, of the core's version; NULL with an error. */
static TinyCandidates *
new_candidates (TinyBackend *self, guint n, GError **error)
{
  const gsize n_bytes = sizeof (TinyCandidates) + n * sizeof (TinyCandidate);
  TinyCandidates *out = tiny_memory_try (n_bytes, tiny_backend_get_name (self), error);
  if (out == NULL)
    return NULL;
  memset (out, 0, n_bytes);
  out->n = n;
  for (guint i = 0; i < n; i++)
    out->at[i].struct_size = sizeof out->at[i];
  return out;
}

static gboolean
check_candidate (TinyBackend *self,
                 const TinyCandidate *candidate,
                 guint number,
                 GError **error)
{
  const char *name = tiny_backend_get_name (self);
  g_autofree char *who = g_strdup_printf ("%s: scan: number %u", name, number);
  if (!tiny_table_check (TINY_TABLE_CANDIDATE, candidate, who, error))
    return FALSE;
  if (candidate->id[0] == 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: scan: candidate %u has an empty id, so that nothing can open it", name,
                 number);
    return FALSE;
  }
  const char *endless = memchr (candidate->id, 0, sizeof candidate->id) == NULL       ? "id"
                        : memchr (candidate->name, 0, sizeof candidate->name) == NULL ? "name"
                        : memchr (candidate->driver, 0, sizeof candidate->driver) == NULL
                            ? "driver"
                            : NULL;
  if (endless == NULL)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: scan: candidate %u has an endless %s",
               name, number, endless);
  return FALSE;
}

TinyCandidates *
tiny_backend_scan (TinyBackend *self, GError **error)
{
  enum { ROUNDS = 4, FIRST = 16, MOST = 4096 };
  g_autofree TinyCandidates *found = NULL;
  uint32_t n = FIRST, room = 0;
  for (guint round = 0; round < ROUNDS && n > room; round++) {
    TinyPluginError plugin_error;
    tiny_plugin_error_init (&plugin_error);
    room = n;
    g_free (found);
    found = new_candidates (self, room, error);
    if (found == NULL)
      return NULL;
    TinyStatus status = tiny_backend_call_scan (self, found->at, &n, &plugin_error);
    if (status == TINY_STATUS_NO_DEVICE && plugin_error.text[0] == 0)
      n = 0; /* nothing to add to that */
    else if (!tiny_status_check (status, &plugin_error, tiny_backend_get_name (self), "scan",
                                 error))
      return NULL;
    n = MIN (n, MOST);
  }
  found->n = MIN (n, room);
  for (guint i = 0; i < found->n; i++)
    if (!check_candidate (self, &found->at[i], i, error))
      return NULL;
  return g_steal_pointer (&found);
}
