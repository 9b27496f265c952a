/* SPDX-License-Identifier: MIT
 *
 * targets-messages.c: readers of archives of plugins, of what workers answer, and of entries of the cache. */
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>

#include "answer.h"
#include "engine/tiny-cache.h"
#include "fuzz.h"
#include "plugin/worker-describe.h"
#include "tools/bundle.h"

static char *folder; /* of this process */

/* Readers and seeds remove their own files; the cache has an account. */
static void
remove_folder (void)
{
  static const char *const left[] = { "programs/account", "programs", "." };
  for (guint i = 0; i < G_N_ELEMENTS (left); i++) {
    g_autofree char *path = g_canonicalize_filename (left[i], folder);
    g_remove (path);
  }
}

static const char *
get_folder (void)
{
  if (folder != NULL)
    return folder;
  folder = g_dir_make_tmp ("tinycore-fuzz-XXXXXX", NULL);
  if (folder == NULL)
    g_error ("no folder for temporary files");
  atexit (remove_folder);
  return folder;
}

static char *
write_file (const char *name, const void *data, gsize size)
{
  char *path = g_build_filename (get_folder (), name, NULL);
  g_autoptr (GError) error = NULL;
  if (!g_file_set_contents (path, data, (gssize) size, &error))
    g_error ("%s", error->message);
  return path;
}

static void
add_file (GPtrArray *seeds, const char *path)
{
  char *data;
  gsize size;
  g_autoptr (GError) error = NULL;
  if (!g_file_get_contents (path, &data, &size, &error))
    g_error ("%s", error->message);
  g_ptr_array_add (seeds, g_bytes_new_take (data, size));
}

/* ---- archives of plugins ---- */
gboolean
fuzz_read_bundle (const guint8 *data, gsize size)
{
  g_autoptr (Bundle) bundle = bundle_read (fuzz_as_file (data, size), NULL);
  return bundle != NULL;
}

void
fuzz_seed_bundle (GPtrArray *seeds)
{
  static const char manifest[]
      = "{\"format_version\": 1, \"name\": \"Y\", \"vendor\": \"v\", \"version\": \"1\", "
        "\"license\": \"MIT\", \"module\": \"y.so\", \"abi\": 1, \"abi_minor_min\": 0, "
        "\"class\": \"cpu\"}";
  static const char *const kinds[] = { "y.tar", "y.tar.gz", "y.tar.xz", "y.zip" };
  g_autofree char *from = write_file ("Y.json", manifest, strlen (manifest));
  g_autofree char *module = write_file ("y.so",
                                        "\x7f"
                                        "ELF",
                                        4);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree char *path = g_build_filename (get_folder (), kinds[i], NULL);
    g_autoptr (GError) error = NULL;
    if (!bundle_make (from, NULL, path, &error))
      g_error ("%s", error->message);
    add_file (seeds, path);
    g_unlink (path);
  }
  g_unlink (from);
  g_unlink (module);
}

/* ---- answers of workers ---- */
gboolean
fuzz_read_answer (const guint8 *data, gsize size)
{
  g_autoptr (JsonNode) answer = conf_answer_parse ((const char *) data, size, NULL);
  return answer != NULL;
}

void
fuzz_seed_answer (GPtrArray *seeds)
{
  static const char *const answers[] = {
    "{\"case\": {\"name\": \"memory/zero\", \"level\": 0, \"flags\": 1, \"seconds\": 10}}",
    "{\"absent\": {\"name\": \"memory/map\", \"reason\": \"no map\"}}",
    "{\"end\": 0}",
    "{\"result\": {\"name\": \"memory/zero\", \"outcome\": \"failed\", \"us\": 12, "
    "\"messages\": [\"x\"], \"records\": [{\"what\": \"w\", \"value\": 1.5, \"unit\": \"s\"}], "
    "\"errors\": [{\"op\": 1, \"dtype\": 2, \"unit\": \"u\", \"worst\": 0.5, \"most\": 1}], "
    "\"files\": [{\"suffix\": \"ir\", \"text\": \"t\"}]}}",
    "{\"error\": {\"text\": \"t\", \"code\": 3}}",
    "{\"rung\": 2}",
  };
  for (guint i = 0; i < G_N_ELEMENTS (answers); i++)
    g_ptr_array_add (seeds, g_bytes_new (answers[i], strlen (answers[i])));
}

/* A process that runs a plugin says of it. */
gboolean
fuzz_read_description (const guint8 *data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  TinyPluginModule module;
  g_autofree TinyRenderer *renderers = NULL;
  g_autofree TinyDialect *dialects = NULL;
  if (!worker_description_read (bytes, &module, &renderers, &dialects, NULL))
    return FALSE;
  g_bytes_unref (worker_description_write (&module)); /* looks at every text */
  return TRUE;
}

static TinyStatus
no_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

void
fuzz_seed_description (GPtrArray *seeds)
{
  static const TinyDialect dialect = { .struct_size = sizeof dialect, .prelude = "x" };
  static const TinyRenderer renderers[]
      = { { .struct_size = sizeof renderers[0],
            .name = "C",
            .code_version = "1",
            .dialect = &dialect },
          { .struct_size = sizeof renderers[0], .name = "D", .target = no_target } };
  static const TinyPluginModule module = { .struct_size = sizeof module,
                                           .name = "Y",
                                           .vendor = "v",
                                           .version = "1",
                                           .license = "MIT",
                                           .n_renderers = G_N_ELEMENTS (renderers),
                                           .renderers = renderers };
  g_ptr_array_add (seeds, worker_description_write (&module));
}

/* ---- entries of the cache ---- */
#define KEY "0123456789abcdef0123456789abcdef"

static void
ignore (const char *domain, GLogLevelFlags level, const char *text, gpointer data)
{
}

static char *
get_entry (void)
{
  static guint handler;
  if (handler == 0) {
    g_setenv ("TINY_CACHE_DIR", get_folder (), TRUE);
    g_setenv ("TINY_NO_CACHE", "0", TRUE);
    handler = g_log_set_handler ("tinycore", G_LOG_LEVEL_WARNING, ignore, NULL);
  }
  return g_build_filename (tiny_cache_get_dir (), "programs", KEY, NULL);
}

gboolean
fuzz_read_entry (const guint8 *data, gsize size)
{
  g_autofree char *path = get_entry ();
  if (!g_file_set_contents (path, (const char *) data, (gssize) size, NULL))
    g_error ("%s cannot be written", path);
  g_autoptr (GBytes) payload = tiny_cache_load (KEY);
  g_unlink (path);
  return payload != NULL;
}

void
fuzz_seed_entry (GPtrArray *seeds)
{
  g_autofree char *path = get_entry ();
  g_autoptr (GBytes) payload = g_bytes_new_static ("a program", 9);
  tiny_cache_store (KEY, payload);
  add_file (seeds, path);
}
