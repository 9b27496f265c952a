/* SPDX-License-Identifier: MIT
 *
 * journal.c: a line of JSON for each finished case, in a file whose name is a digest of all that a
 * result depends on. A line that is not whole, the last one of a run that was killed, counts as
 * none, and so does one that is no result. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "answer.h"
#include "elf-note.h"

struct ConfJournal {
  char *path;
  int fd;
};

static gint
compare_texts (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

/* The variables that tinycore and the plugin look at, sorted; those that say where files are kept are none. */
static char *
read_environment (const ConfRunning *running)
{
  char **all = running->setup.environment;
  char *const *probed = running->wanted->manifest->probe_env;
  g_autoptr (GPtrArray) rows = g_ptr_array_new ();
  for (guint i = 0; all[i] != NULL; i++) {
    g_autofree char *name = g_strndup (all[i], strcspn (all[i], "="));
    if ((g_str_has_prefix (name, "TINY_") && !g_str_equal (name, "TINY_CACHE_DIR")
         && !g_str_equal (name, "TINY_PLUGIN_FILES"))
        || g_strv_contains ((const char *const *) probed, name))
      g_ptr_array_add (rows, all[i]);
  }
  g_ptr_array_sort (rows, compare_texts);
  g_ptr_array_add (rows, NULL);
  return g_strjoinv ("\n", (char **) rows->pdata);
}

static char *
make_path (const ConfRunning *running)
{
  const char *wanted = tiny_env_get_text (TINY_ENV_CACHE_DIR);
  g_autofree char *subject = conf_file_digest (running->wanted->path);
  g_autofree char *suite = conf_file_digest (running->options->program);
  g_autofree char *environment = read_environment (running);
  g_autofree char *filters = running->options->filters
                                 ? g_strjoinv ("\n", running->options->filters)
                                 : g_strdup ("");
  g_autofree char *key = g_strdup_printf (
      "%s\n%s\n%s\n%s\n%s\n%s %" G_GUINT64_FORMAT "\n%s\n\n%s", running->wanted->path, subject,
      running->wanted->device, conf_running_get_driver (running), suite,
      conf_level_to_string (running->options->level), running->options->seed, filters,
      environment);
  g_autofree char *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, key, -1);
  g_autofree char *name = g_strdup_printf ("%.24s.jsonl", digest);
  return wanted ? g_build_filename (wanted, "conformance", name, NULL)
                : g_build_filename (g_get_user_cache_dir (), "tinycore-1.0", "conformance",
                                    name, NULL);
}

/* ---- reading ---- */
static GHashTable *
read_results (const char *path)
{
  GHashTable *out = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                           (GDestroyNotify) json_object_unref);
  g_autofree char *text = NULL;
  gsize size;
  if (!g_file_get_contents (path, &text, &size, NULL))
    return out;
  const char *end;
  for (const char *at = text; (end = memchr (at, '\n', size - (gsize) (at - text))) != NULL;
       at = end + 1) {
    g_autoptr (JsonNode) node = conf_answer_parse_kept (at, (gsize) (end - at), NULL);
    JsonObject *object = node != NULL ? json_node_get_object (node) : NULL;
    if (object != NULL)
      g_hash_table_replace (out, g_strdup (json_object_get_string_member (object, "name")),
                            json_object_ref (object));
  }
  return out;
}

static void
take_results (ConfRunning *running, const char *path)
{
  g_autoptr (GHashTable) known = read_results (path);
  for (guint i = 0; i < running->planned->len; i++) {
    ConfPlanned *planned = running->planned->pdata[i];
    JsonObject *result = g_hash_table_lookup (known, planned->name);
    if (planned->result == NULL && result != NULL) {
      planned->result = json_object_ref (result);
      planned->was_kept = TRUE;
    }
  }
}

/* ---- writing ---- */
ConfJournal *
conf_journal_new (ConfRunning *running)
{
  g_autofree char *path = make_path (running);
  g_autofree char *folder = g_path_get_dirname (path);
  if (running->options->resume)
    take_results (running, path);
  g_mkdir_with_parents (folder, 0700);
  int fd = g_open (path,
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC
                       | (running->options->resume ? 0 : O_TRUNC),
                   0600);
  if (fd < 0) {
    g_printerr ("tinycore conformance: %s: %s; this run cannot be resumed\n", path,
                g_strerror (errno));
    return NULL;
  }
  ConfJournal *self = g_new (ConfJournal, 1);
  *self = (ConfJournal){ g_steal_pointer (&path), fd };
  return self;
}

void
conf_journal_add (ConfJournal *self, JsonObject *result)
{
  if (self == NULL)
    return;
  g_autoptr (JsonNode) node = json_node_new (JSON_NODE_OBJECT);
  json_node_set_object (node, result);
  g_autofree char *text = json_to_string (node, FALSE);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  gssize n = (gssize) strlen (line);
  /* In one piece, so that what a reader finds is whole lines and at most a torn last one. */
  if (write (self->fd, line, (gsize) n) != n)
    g_printerr ("tinycore conformance: %s: %s\n", self->path, g_strerror (errno));
}

void
conf_journal_free (ConfJournal *self, gboolean is_done)
{
  if (self == NULL)
    return;
  close (self->fd);
  if (is_done)
    g_unlink (self->path);
  g_free (self->path);
  g_free (self);
}
