/* SPDX-License-Identifier: MIT
 *
 * tiny-tuned.c: lists of optimisations that were found for kernels. */
#include "engine/tiny-tuned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/interrupt-check.h"
#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-cache.h"
#include "engine/tiny-debug.h"
#include "engine/tuned-file.h"

/* ---- files ---- */
static GHashTable *entries;   /* of all files */
static GHashTable *looked_up; /* the same names, of kernels */
static GMutex use_lock;       /* of looked_up */

static void
read_files (void)
{
  static gsize done = 0;
  if (!g_once_init_enter (&done))
    return;
  const char *wanted = tiny_env_get_text (TINY_ENV_TUNED);
  entries = tuned_entries_new ();
  g_auto (GStrv) files = g_strsplit (wanted ? wanted : "", ":", -1);
  for (guint i = 0; files[i] != NULL; i++) {
    g_autoptr (GError) error = NULL;
    if (files[i][0] != 0 && !tuned_entries_add (entries, files[i], &error))
      g_warning ("TINY_TUNED: %s; the file is skipped", error->message);
  }
  g_once_init_leave (&done, 1);
}

/* The list of a file for the kernel, or NULL. */
static const TunedEntry *
find_entry (const TinyTunedKey *key)
{
  read_files ();
  if (g_hash_table_size (entries) == 0)
    return NULL;
  g_autofree char *target = tiny_tuned_target_of (key->device);
  char *name = g_strdup_printf ("%s %s", key->digest, target);
  const TunedEntry *entry = g_hash_table_lookup (entries, name);
  g_mutex_lock (&use_lock);
  if (looked_up == NULL)
    looked_up = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_hash_table_add (looked_up, name);
  g_mutex_unlock (&use_lock);
  return entry;
}

void
tiny_tuned_get_use (TinyDevice *device, TinyTunedUse *out)
{
  g_autofree char *target = tiny_tuned_target_of (device);
  GHashTableIter iter;
  gpointer name;
  *out = (TinyTunedUse){ 0 };
  read_files ();
  g_mutex_lock (&use_lock);
  g_hash_table_iter_init (&iter, entries);
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    gboolean is_own = g_str_equal ((char *) name + TUNED_DIGEST_LENGTH + 1, target);
    out->n_entries += is_own;
    out->n_foreign += !is_own;
    out->n_used += is_own && looked_up != NULL && g_hash_table_contains (looked_up, name);
  }
  if (looked_up != NULL)
    g_hash_table_iter_init (&iter, looked_up);
  while (looked_up != NULL && g_hash_table_iter_next (&iter, &name, NULL))
    out->n_kernels += g_str_equal ((char *) name + TUNED_DIGEST_LENGTH + 1, target);
  g_mutex_unlock (&use_lock);
}

void
tiny_tuned_reset_use (void)
{
  g_mutex_lock (&use_lock);
  g_clear_pointer (&looked_up, g_hash_table_unref);
  g_mutex_unlock (&use_lock);
}

char *
tiny_tuned_target_of (TinyDevice *device)
{
  return g_strdup_printf ("%s:%s:%s", tiny_backend_get_name (tiny_device_get_backend (device)),
                          tiny_device_get_renderer (device)->name,
                          tiny_device_get_target (device)->arch);
}

/* ---- what this process found ---- */
typedef struct {
  char *digest, *target, *name, *opts;
  guint beam;
  guint64 ns_heuristic, ns_best;
} Found;

static GMutex lock;
static GHashTable *found_by_key; /* key → Found */
static GPtrArray *found_list;    /* the same, in order; entries live as long as the process */

static void
append_line (GString *text, const Found *found)
{
  g_string_append_printf (text, "%s %s %s # %s: %.2f us, heuristic %.2f us\n", found->digest,
                          found->target, found->opts, found->name,
                          (double) found->ns_best * 1e-3, (double) found->ns_heuristic * 1e-3);
}

/* Adds to the file of TINY_TUNED_OUT: in one write, so that processes may share it. */
static void
write_out (const Found *found)
{
  const char *path = tiny_env_get_text (TINY_ENV_TUNED_OUT);
  if (path == NULL)
    return;
  static gboolean warned = FALSE;
  int fd = open (path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  struct stat info;
  g_autoptr (GString) text = g_string_new (NULL);
  gboolean good = fd >= 0 && fstat (fd, &info) == 0;
  if (good && info.st_size == 0)
    g_string_append (text, TUNED_HEADER "\n");
  append_line (text, found);
  good = good && tiny_write_all (fd, text->str, text->len);
  if (!good && !warned)
    g_warning ("TINY_TUNED_OUT: %s: %s", path, g_strerror (errno));
  warned = warned || !good;
  if (fd >= 0)
    close (fd);
}

/* (transfer full) (nullable): of a search at least as wide as @beam. */
static char *
recall (const TinyTunedKey *key, guint beam)
{
  g_mutex_lock (&lock);
  const Found *found = found_by_key ? g_hash_table_lookup (found_by_key, key->key) : NULL;
  char *opts = found != NULL && found->beam >= beam ? g_strdup (found->opts) : NULL;
  g_mutex_unlock (&lock);
  return opts;
}

static void
found_free (Found *self)
{
  g_free (self->digest);
  g_free (self->target);
  g_free (self->name);
  g_free (self->opts);
  g_free (self);
}

/* (transfer full): the list of @found, which is kept unless another thread has found as much meanwhile. */
static char *
remember (const TinyTunedKey *key, Found *found)
{
  char *opts = g_strdup (found->opts);
  found->digest = g_strdup (key->digest);
  found->target = tiny_tuned_target_of (key->device);
  found->name = g_strdup (key->kernel->text ? key->kernel->text : "?");
  g_mutex_lock (&lock);
  if (found_by_key == NULL) {
    found_by_key = g_hash_table_new (g_str_hash, g_str_equal);
    found_list = g_ptr_array_new ();
  }
  Found *known = g_hash_table_lookup (found_by_key, key->key);
  if (known == NULL || known->beam < found->beam)
    write_out (found);
  if (known == NULL) {
    g_hash_table_insert (found_by_key, g_strdup (key->key), found);
    g_ptr_array_add (found_list, found);
  } else {
    if (known->beam < found->beam) {
      const Found narrower = *known;
      *known = *found;
      *found = narrower;
    }
    found_free (found);
  }
  g_mutex_unlock (&lock);
  return opts;
}

gboolean
tiny_tuned_is_wanted (void)
{
  return tiny_env_get_int (TINY_ENV_BEAM) > 0 || tiny_env_get_text (TINY_ENV_TUNED) != NULL;
}

char *
tiny_tuned_export (guint *out_n)
{
  GString *text = g_string_new (TUNED_HEADER "\n# digest target optimisations # kernel\n");
  g_mutex_lock (&lock);
  *out_n = found_list ? found_list->len : 0;
  for (guint i = 0; i < *out_n; i++)
    append_line (text, found_list->pdata[i]);
  g_mutex_unlock (&lock);
  return g_string_free (text, FALSE);
}

/* ---- the cache on disk ---- */
static char *
disk_key (const TinyTunedKey *key)
{
  g_autofree char *text = g_strdup_printf ("search %s", key->key);
  char *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  digest[TUNED_DIGEST_LENGTH] = 0;
  return digest;
}

/* A result of a search at least as wide as @beam, or NULL. */
static Found *
load_found (const TinyTunedKey *key, guint beam)
{
  g_autofree char *name = disk_key (key);
  g_autoptr (GBytes) bytes = tiny_cache_load (name);
  if (bytes == NULL)
    return NULL;
  gsize size;
  const char *data = g_bytes_get_data (bytes, &size);
  if (size > TUNED_MAX_LINE)
    return NULL;
  g_autofree char *text = g_strndup (data, size);
  guint had_beam, n;
  guint64 ns_heuristic, ns_best;
  int at = 0;
  if (sscanf (text, "%u %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %n", &had_beam,
              &ns_heuristic, &ns_best, &at)
          != 3
      || at == 0 || had_beam < beam)
    return NULL;
  g_autofree TinyOpt *opts = tiny_opts_from_string (text + at, &n, NULL);
  if (opts == NULL)
    return NULL;
  Found *found = g_new0 (Found, 1);
  *found = (Found){ .opts = g_strdup (text + at),
                    .beam = had_beam,
                    .ns_heuristic = ns_heuristic,
                    .ns_best = ns_best };
  return found;
}

static void
store_found (const TinyTunedKey *key, const Found *found)
{
  g_autofree char *name = disk_key (key);
  char *text = g_strdup_printf ("%u %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s",
                                found->beam, found->ns_heuristic, found->ns_best, found->opts);
  g_autoptr (GBytes) bytes = g_bytes_new_take (text, strlen (text));
  tiny_cache_store (name, bytes);
}

/* ---- all of it ---- */

/* Nothing is kept of a search that was @out_stopped. */
static Found *
search (const TinyTunedKey *key, const TinySearchOptions *options, GError **out_stopped)
{
  TINY_TIMED ("engine", "search");
  g_auto (TinySearchResult) result = { 0 };
  g_autoptr (GError) error = NULL;
  if (!tiny_search_run (key->device, key->kernel, options, &result, &error)) {
    if (tiny_interrupt_is_error (error))
      g_propagate_error (out_stopped, g_steal_pointer (&error));
    else if (!g_error_matches (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED))
      g_warning ("kernel %s is not searched: %s", key->kernel->text ? key->kernel->text : "?",
                 error->message);
    else if (TINY_DEBUG (2))
      g_printerr ("search: %s\n", error->message);
    return NULL;
  }
  Found *found = g_new0 (Found, 1);
  *found = (Found){ .opts = g_steal_pointer (&result.opts),
                    .beam = options->beam,
                    .ns_heuristic = result.ns_heuristic,
                    .ns_best = result.ns_best };
  store_found (key, found);
  return found;
}

char *
tiny_tuned_get_opts (const TinyTunedKey *key, const char **out_origin, GError **error)
{
  const TinySearchOptions options = tiny_search_get_options ();
  *out_origin = NULL;
  if (tiny_env_get_int (TINY_ENV_NO_OPT))
    return NULL;
  const TunedEntry *entry = find_entry (key);
  if (entry != NULL) {
    *out_origin = entry->file;
    return g_strdup (entry->opts);
  }
  if (options.beam == 0)
    return NULL;
  char *opts = recall (key, options.beam);
  if (opts != NULL)
    return opts;
  Found *found = load_found (key, options.beam);
  if (found == NULL)
    found = search (key, &options, error);
  return found != NULL ? remember (key, found) : NULL;
}
