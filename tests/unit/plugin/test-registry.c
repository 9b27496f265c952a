/* SPDX-License-Identifier: MIT
 *
 * test-registry.c: discovery, the cache of scans, and devices by name, with the NULL backend. */
#include "plugin/tiny-registry.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../case-fails.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "device/tiny-buffer.h"
#include "device/tiny-program.h"

typedef struct {
  char *root, *first, *second, *cache;
  char *null_module;
} Fixture;

static void
write_manifest (const char *folder, const char *file, const char *name, const char *module)
{
  g_autofree char *path = g_build_filename (folder, file, NULL);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"%s\", \"abi\": 1, \"module\": \"%s\", \"class\": "
      "\"%s\"}",
      name, module, strstr (file, "gpu") != NULL ? "gpu" : "simulator");
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

/* The module of the NULL backend of this build, by its uninstalled manifest. */
static char *
find_null (void)
{
  g_autoptr (TinyRegistry) registry
      = tiny_registry_new ((const char *[]){ g_getenv ("TINY_PLUGIN_PATH"), NULL }, NULL);
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  for (guint i = 0; i < list->len; i++) {
    const TinyEntry *entry = list->pdata[i];
    if (g_str_equal (entry->name, "NULL"))
      return g_strdup (entry->module_path);
  }
  return NULL;
}

static char *
make_folder (const char *root, const char *name)
{
  char *path = g_build_filename (root, name, NULL);
  g_assert_cmpint (g_mkdir (path, 0755), ==, 0);
  return path;
}

static void
set_up (Fixture *self, gconstpointer unused)
{
  self->root = g_dir_make_tmp ("tiny-registry-XXXXXX", NULL);
  self->first = make_folder (self->root, "first");
  self->second = make_folder (self->root, "second");
  self->cache = g_build_filename (self->root, "cache", NULL);
  self->null_module = find_null ();
  g_assert_nonnull (self->null_module);
  write_manifest (self->second, "null.json", "NULL", self->null_module);
}

static void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name;
       name = g_dir_read_name (dir)) {
    g_autofree char *file = g_build_filename (path, name, NULL);
    if (g_unlink (file) != 0)
      remove_tree (file);
  }
  g_rmdir (path);
}

static void
tear_down (Fixture *self, gconstpointer unused)
{
  remove_tree (self->root);
  char *texts[] = { self->root, self->first, self->second, self->cache, self->null_module };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
}

static TinyRegistry *
new_registry (const Fixture *self)
{
  const char *folders[] = { self->first, self->second, NULL };
  return tiny_registry_new (folders, self->cache);
}

static TinyEntryState
state_of (TinyRegistry *registry, guint n, const char *name, const char *manifest_part)
{
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  g_assert_cmpuint (list->len, ==, n);
  for (guint i = 0; i < list->len; i++) {
    const TinyEntry *entry = list->pdata[i];
    g_test_message ("%s: %s", entry->name, entry->reason ? entry->reason : "ready");
    if (g_str_equal (entry->name, name) && strstr (entry->manifest_path, manifest_part) != NULL)
      return entry->state;
  }
  g_assert_not_reached ();
}

/* First name wins; an empty file masks; what others can write is refused. */
static void
test_discovery (Fixture *self, gconstpointer unused)
{
  g_autofree char *mask = g_build_filename (self->first, "null.json", NULL);
  g_autoptr (TinyRegistry) alone = new_registry (self);
  g_assert_cmpint (state_of (alone, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
  write_manifest (self->first, "other-file.json", "null", self->null_module);
  g_autoptr (TinyRegistry) twice = new_registry (self);
  g_assert_cmpint (state_of (twice, 2, "NULL", "second"), ==, TINY_ENTRY_SHADOWED);
  g_assert_cmpint (state_of (twice, 2, "null", "first"), ==, TINY_ENTRY_READY);
  g_autofree char *other = g_build_filename (self->first, "other-file.json", NULL);
  g_unlink (other);
  g_assert_true (g_file_set_contents_full (mask, "", 0, G_FILE_SET_CONTENTS_NONE, 0644, NULL));
  g_autoptr (TinyRegistry) masked = new_registry (self);
  g_assert_cmpint (state_of (masked, 2, "null", "first"), ==, TINY_ENTRY_MASKED);
  g_assert_cmpint (state_of (masked, 2, "NULL", "second"), ==, TINY_ENTRY_SHADOWED);
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_registry_open (masked, "NULL", &error));
  g_assert_nonnull (strstr (error->message, "hidden by the empty file"));
  g_unlink (mask);
  g_chmod (self->second, 0777);
  g_autoptr (TinyRegistry) loose = new_registry (self);
  g_assert_cmpint (state_of (loose, 1, "null", "second"), ==, TINY_ENTRY_BROKEN);
  g_clear_error (&error);
  g_assert_null (tiny_registry_open (loose, "NULL", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PERMISSION);
  g_assert_nonnull (strstr (error->message, "chmod"));
}

/* An opened device runs the whole way; the same name is the same device while it is held. */
static void
test_open (Fixture *self, gconstpointer unused)
{
  g_autoptr (TinyRegistry) registry = tiny_registry_new (
      (const char *[]){ g_getenv ("TINY_PLUGIN_PATH"), NULL }, self->cache);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, "null", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (tiny_device_get_name (device), ==, "NULL");
  g_autoptr (TinyDevice) again = tiny_registry_open (registry, "NOPE|NULL:0", &error);
  g_assert_true (again == device);
  g_autoptr (GPtrArray) all = tiny_registry_open_all (registry, "NULL:*;NULL:@null", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (all->len, ==, 2);
  g_assert_true (all->pdata[0] == device && all->pdata[1] == device);
  /* A foreign renderer is part of the canonical name, which opens the same again. */
  static const char *const foreign[]
      = { "NULL:REF", "null:ref:ref", "NULL:0:REF:REF", "NULL:REF:REF" };
  g_autoptr (TinyDevice) by_ref = tiny_registry_open (registry, "NULL:REF", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (tiny_device_get_name (by_ref), ==, "NULL:REF:REF");
  g_assert_cmpstr (tiny_device_get_renderer (by_ref)->name, ==, "REF");
  for (guint i = 0; i < G_N_ELEMENTS (foreign); i++) {
    g_autoptr (TinyDevice) same = tiny_registry_open (registry, foreign[i], &error);
    g_assert_no_error (error);
    g_assert_true (same == by_ref);
  }
  guint64 words[4] = { 1, 2, 3, 4 };
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 4096);
  g_assert_true (tiny_buffer_download (buffer, 64, words, sizeof words, &error));
  g_assert_cmpuint (words[0] | words[1] | words[2] | words[3], ==, 0);
  g_assert_true (tiny_buffer_upload (buffer, 4088, "12345678", 8, &error));
  g_assert_nonnull (tiny_buffer_map (buffer));
  g_autoptr (GBytes) blob = g_bytes_new_static ("anything", 8);
  const guint32 group[3] = { 1, 1, 1 };
  g_autoptr (TinyProgram) program = tiny_program_new (device, "p", blob, 0, 0, group, &error);
  g_assert_no_error (error);
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = tiny_program_get_handle (program),
                          .grid = { 1, 1, 1 } };
  g_assert_true (tiny_device_submit (device, &command, 1, NULL, &error));
}

static const struct {
  const char *spec;
  TinyError code;
  const char *part;
} errors[] = {
  { "NOPE", TINY_ERROR_NO_DEVICE, "there is no backend “NOPE”; backends: " },
  { "NUL", TINY_ERROR_NO_DEVICE, "did you mean NULL?" },
  { "NULL:1", TINY_ERROR_NO_DEVICE, "there is: NULL:0 (@null)" },
  { "NULL:@x", TINY_ERROR_NO_DEVICE, "there is: NULL:0 (@null)" },
  { "NULL:NOPE", TINY_ERROR_NO_DEVICE, "no backend or renderer is called “NOPE”" },
  { "NULL:", TINY_ERROR_NO_DEVICE, "no other backend is usable for making code" },
  { "KFD+NULL", TINY_ERROR_UNSUPPORTED, "there is no interface “KFD”" },
  { "USB+NULL", TINY_ERROR_UNSUPPORTED, "no interface “USB”" },
  { "NULL?a=b", TINY_ERROR_UNSUPPORTED, "no option “a=b”" },
  { "A|B", TINY_ERROR_NO_DEVICE, "“A”; there is no backend “B”; backends: NULL" },
  { "help", TINY_ERROR_INVALID, "NULL" },
  { "NULL:2-1", TINY_ERROR_INVALID, "^" },
};

static void
test_errors (Fixture *self, gconstpointer unused)
{
  g_autoptr (TinyRegistry) registry = new_registry (self);
  for (guint i = 0; i < G_N_ELEMENTS (errors); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_registry_open (registry, errors[i].spec, &error));
    if (!g_error_matches (error, TINY_ERROR, (gint) errors[i].code)
        || strstr (error->message, errors[i].part) == NULL)
      CASE_FAILS ("%s: %s", errors[i].spec, error->message);
  }
  /* Nothing asked for: simulators are not chosen, and the message says what there is. */
  tiny_env_set_text (TINY_ENV_DEV, NULL);
  g_autoptr (GError) error = NULL;
  g_assert_null (tiny_registry_open (registry, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE);
  g_assert_nonnull (strstr (error->message, "backends: NULL (ready)"));
  g_clear_error (&error);
  /* What a device says of itself outweighs its manifest: this one is a simulator. */
  write_manifest (self->first, "gpu.json", "NULL", self->null_module);
  g_autoptr (TinyRegistry) promising = new_registry (self);
  g_assert_null (tiny_registry_open (promising, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE);
  g_assert_nonnull (strstr (error->message, "none is chosen unless DEV= names it"));
  g_clear_error (&error);
  g_autofree char *promise = g_build_filename (self->first, "gpu.json", NULL);
  g_unlink (promise);
  tiny_env_set_text (TINY_ENV_DEV, "NOPE");
  g_assert_null (tiny_registry_open (registry, NULL, &error));
  g_assert_nonnull (strstr (error->message, "DEV=NOPE: "));
  tiny_env_set_text (TINY_ENV_DEV, NULL);
  g_autoptr (TinyRegistry) empty
      = tiny_registry_new ((const char *[]){ self->first, NULL }, NULL);
  g_clear_error (&error);
  g_assert_null (tiny_registry_open (empty, NULL, &error));
  g_assert_nonnull (strstr (error->message, "TINY_PLUGIN_PATH"));
}

/* The one file in a folder. */
static char *
file_in (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  g_assert_nonnull (dir);
  char *path = g_build_filename (folder, g_dir_read_name (dir), NULL);
  g_assert_null (g_dir_read_name (dir));
  return path;
}

/* A module's file of results: damaged in every way it is rebuilt with one warning; unwritable it is done
 * without; of another version it is replaced in silence; when the module is gone, so is the file. */
static void
test_cache (Fixture *self, gconstpointer unused)
{
  g_autofree char *scans = g_build_filename (self->cache, "scans", NULL);
  g_autoptr (TinyRegistry) first = new_registry (self);
  g_assert_cmpint (state_of (first, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
  g_autofree char *file = file_in (scans);
  g_autofree char *good = NULL;
  g_assert_true (g_file_get_contents (file, &good, NULL, NULL));
  const char *damaged[] = { "", "{", "\x01\x02", "[]", "{\"core\": 1}", "{\"format\": \"x\"}" };
  for (guint i = 0; i < G_N_ELEMENTS (damaged); i++) {
    g_assert_true (g_file_set_contents (file, damaged[i], -1, NULL));
    g_test_expect_message ("tinycore", G_LOG_LEVEL_WARNING, "*.json is damaged*rebuilt*");
    g_autoptr (TinyRegistry) registry = new_registry (self);
    g_assert_cmpint (state_of (registry, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
    g_test_assert_expected_messages ();
  }
  g_assert_true (g_file_set_contents (
      file, "{\"format\": 1, \"core\": \"0.0.0 abi 0.1\", \"modules\": {\"x\": 1}}", -1, NULL));
  g_autoptr (TinyRegistry) old = new_registry (self);
  g_assert_cmpint (state_of (old, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
  g_autofree char *of_gone = g_build_filename (scans, "gone.json", NULL);
  g_assert_true (g_file_set_contents (of_gone, "{\"module\": \"/gone/gone.so\"}", -1, NULL));
  tiny_registry_retry (old, "NULL");
  g_assert_cmpint (state_of (old, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
  g_assert_false (g_file_test (of_gone, G_FILE_TEST_EXISTS));
  tiny_registry_retry (old, NULL);
  g_assert_false (g_file_test (file, G_FILE_TEST_EXISTS));
  g_assert_cmpint (state_of (old, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
  g_autofree char *blocked = g_build_filename (file, "below-a-file", NULL);
  g_autoptr (TinyRegistry) unwritable
      = tiny_registry_new ((const char *[]){ self->second, NULL }, blocked);
  g_assert_cmpint (state_of (unwritable, 1, "NULL", "second"), ==, TINY_ENTRY_READY);
}

/* A warm listing of fifty backends is a matter of milliseconds. */
static void
test_warm (Fixture *self, gconstpointer unused)
{
  for (guint i = 0; i < 50; i++) {
    g_autofree char *name = g_strdup_printf ("N%u", i);
    g_autofree char *file = g_strconcat (name, ".json", NULL);
    write_manifest (self->first, file, name, self->null_module);
  }
  gint64 best = G_MAXINT64;
  for (guint i = 0; i < 6; i++) {
    g_autoptr (TinyRegistry) registry = new_registry (self);
    gint64 begin = g_get_monotonic_time ();
    g_autoptr (GPtrArray) list = tiny_registry_list (registry);
    best = MIN (best, g_get_monotonic_time () - begin);
    g_assert_cmpuint (list->len, ==, 51);
  }
  g_test_message ("%.2f ms", (double) best / 1e3);
  if (g_test_perf ())
    g_assert_cmpint (best, <, 5000);
}

static gpointer
open_and_close (gpointer data)
{
  for (guint i = 0; i < 50; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyDevice) device = tiny_registry_open (data, "NULL", &error);
    g_assert_no_error (error);
    g_autoptr (GPtrArray) list = tiny_registry_list (data);
    g_assert_nonnull (list);
  }
  return NULL;
}

static void
test_threads (Fixture *self, gconstpointer unused)
{
  g_autoptr (TinyRegistry) registry = tiny_registry_new (
      (const char *[]){ g_getenv ("TINY_PLUGIN_PATH"), NULL }, self->cache);
  GThread *threads[4];
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("user", open_and_close, registry);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

/* The child of the next test. */
static void
open_named (void)
{
  g_autoptr (TinyRegistry) registry = tiny_registry_new (
      (const char *[]){ g_getenv ("TINY_PLUGIN_PATH"), NULL }, g_getenv ("TINY_TEST_CACHE"));
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device
      = tiny_registry_open (registry, g_getenv ("TINY_TEST_DEV"), &error);
  g_assert_no_error (error);
}

/* Opening a backend by its name opens the files of no other plugin, cold or warm. */
static void
test_opens_no_other (Fixture *self, gconstpointer unused)
{
  g_autofree char *strace = g_find_program_in_path ("strace");
  g_autofree char *log = g_build_filename (self->root, "log", NULL);
  g_autofree char *self_path = g_file_read_link ("/proc/self/exe", NULL);
  if (strace == NULL) {
    g_test_skip ("strace is not installed");
    return;
  }
  g_setenv ("ASAN_OPTIONS", "detect_leaks=0",
            TRUE); /* which traces as well, where it is built in */
  g_setenv ("TINY_TEST_CACHE", self->cache, TRUE);
  g_setenv ("TINY_TEST_DEV", "REF", TRUE);
  for (guint warm = 0; warm < 2; warm++) {
    const char *argv[] = { strace, "-f", "-qq",     "-e",           "trace=open,openat",
                           "-o",   log,  self_path, "--open-named", NULL };
    gint status = 0;
    g_autofree char *trace = NULL, *output = NULL;
    g_assert_true (
        g_spawn_sync (NULL, (char **) argv, NULL, 0, NULL, NULL, NULL, &output, &status, NULL));
    g_assert_true (g_file_get_contents (log, &trace, NULL, NULL));
    if (status != 0 && strstr (trace, "openat") == NULL) {
      g_test_skip ("strace may not trace here");
      return;
    }
    if (status != 0)
      g_error ("%s", output);
    g_assert_nonnull (strstr (trace, "tiny-ref.so"));
    g_assert_null (strstr (trace, "tiny-cpu.so"));
    g_assert_null (strstr (trace, "tiny-null.so"));
    g_assert_null (strstr (trace, "libLLVM"));
  }
}

int
main (int argc, char **argv)
{
  if (argc > 1 && g_str_equal (argv[1], "--open-named")) {
    open_named ();
    return 0;
  }
  g_test_init (&argc, &argv, NULL);
  const struct {
    const char *path;
    void (*run) (Fixture *, gconstpointer);
  } tests[] = {
    { "/plugin/registry/discovery", test_discovery },
    { "/plugin/registry/open", test_open },
    { "/plugin/registry/errors", test_errors },
    { "/plugin/registry/cache", test_cache },
    { "/plugin/registry/warm", test_warm },
    { "/plugin/registry/threads", test_threads },
    { "/plugin/registry/opens-no-other", test_opens_no_other },
  };
  for (guint i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].run, tear_down);
  return g_test_run ();
}
