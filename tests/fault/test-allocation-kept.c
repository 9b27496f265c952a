/* SPDX-License-Identifier: MIT
 *
 * test-allocation-kept.c: what other processes say, and files that the library or the conformance suite keeps, are read with an
 * error, or done without, where there is no memory for what they hold; they stay as they are. */
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocation-large.h"
#include "answer.h"
#include "folder.h"
#include "worker.h"
#include "base/tiny-clean.h"
#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"
#include "base/tiny-version.h"
#include "device/tiny-buffer.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-trial-host.h"
#include "engine/trial-message.h"
#include "engine/tuned-file.h"
#include "ir/tiny-text.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-manifest-cache.h"
#include "plugin/tiny-record.h"
#include "plugin/tiny-registry.h"
#include "plugin/tiny-scan-cache.h"
#include "plugin/worker-describe.h"
#include "verdict.h"

static gboolean
fail (GError **error, const char *text)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY, text);
  return FALSE;
}

/* ---- tuned files ---- */
static gboolean
read_tuned (gpointer path, GError **error)
{
  g_autoptr (GHashTable) entries = tuned_entries_new ();
  if (!tuned_entries_add (entries, path, error))
    return FALSE;
  g_assert_cmpuint (g_hash_table_size (entries), ==, MANY);
  return TRUE;
}

static void
test_tuned (void)
{
  g_autoptr (GString) text = g_string_new (TUNED_HEADER "\n");
  for (guint i = 0; i < MANY; i++)
    g_string_append_printf (text, "%032x REF:LINEAR:x none\n", i);
  g_autofree char *path = write_file ("tuned", text->str, text->len);
  refuse (read_tuned, path, 1);
}

/* ---- manifests ---- */
enum { N_MANIFESTS = 12, N_TEXTS = 20000 };

typedef struct {
  char *paths[N_MANIFESTS];
  char *cache; /* its file */
} Manifests;

static gboolean
load_manifests (const Manifests *self, guint n_parsed_at_most, GError **error)
{
  g_autoptr (TinyManifestCache) cache = tiny_manifest_cache_new (folder);
  for (guint i = 0; i < N_MANIFESTS; i++) {
    struct stat info;
    g_assert_cmpint (stat (self->paths[i], &info), ==, 0);
    g_autoptr (TinyManifest) manifest
        = tiny_manifest_cache_load (cache, self->paths[i], &info, error);
    if (manifest == NULL)
      return FALSE;
    g_assert_cmpuint (g_strv_length (manifest->renderers), ==, N_TEXTS);
  }
  tiny_manifest_cache_save (cache);
  if (tiny_manifest_cache_count_parsed (cache) <= n_parsed_at_most)
    return TRUE;
  return fail (error, "what was kept is not used");
}

static gboolean
make_cache (gpointer data, GError **error)
{
  const Manifests *self = data;
  g_unlink (self->cache);
  return load_manifests (self, N_MANIFESTS, error);
}

static gboolean
read_cache (gpointer data, GError **error)
{
  return load_manifests (data, 0, error);
}

static void
test_manifests (void)
{
  Manifests self;
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append (text, "{\"format_version\":1,\"name\":\"Y\",\"module\":\"y.so\",\"abi\":1,"
                         "\"class\":\"cpu\",\"renderers\":[\"\"");
  for (guint i = 1; i < N_TEXTS; i++)
    g_string_append (text, ",\"\"");
  g_string_append (text, "]}");
  for (guint i = 0; i < N_MANIFESTS; i++) {
    g_autofree char *name = g_strdup_printf ("%u.json", i);
    self.paths[i] = write_file (name, text->str, text->len);
  }
  self.cache = g_build_filename (folder, "manifests.bin", NULL);
  g_usleep (G_USEC_PER_SEC / 8); /* what changed a moment ago is not kept */
  refuse (make_cache, &self, 1);
  refuse (read_cache, &self, 1 + N_MANIFESTS);
  for (guint i = 0; i < N_MANIFESTS; i++)
    g_free (self.paths[i]);
  g_free (self.cache);
}

/* ---- scans ---- */
static char *no_texts[] = { NULL };
static TinyManifest plugin = { .name = "Y",
                               .device_nodes = no_texts,
                               .probe_env = no_texts,
                               .probe_files = no_texts,
                               .timeout_ms = 20000 };

/* The helper writes to a descriptor of its own. */
static gboolean
scan (gpointer unused, GError **error)
{
  g_autoptr (TinyScan) found = tiny_scan_run (&plugin, error);
  if (found == NULL)
    return FALSE;
  g_assert_false (found->is_quarantined);
  g_assert_cmpuint (strlen (found->vendor), ==, TINY_SCAN_MOST_TEXT);
  g_assert_cmpuint (strlen (found->renderers[0]), ==, TINY_SCAN_MOST_TEXT);
  return TRUE;
}

static void
test_scan (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *report = g_strdup_printf (
      TINY_SCAN_GREETING "{\"loaded\": true, \"vendor\": \"%s\", \"renderers\": [\"%s\"]}\n", x,
      x);
  g_autofree char *path = write_file ("report", report, strlen (report));
  g_autofree char *script = g_strdup_printf ("#!/bin/sh\ncat '%s' >&3\n", path);
  g_autofree char *helper = write_file ("helper", script, strlen (script));
  g_assert_cmpint (g_chmod (helper, 0700), ==, 0);
  g_autofree char *usual = g_strdup (g_getenv ("TINY_SCAN_HELPER"));
  g_setenv ("TINY_SCAN_HELPER", helper, TRUE);
  refuse (scan, NULL, 7);
  g_setenv ("TINY_SCAN_HELPER", usual, TRUE);
}

static gboolean
read_scan (gpointer unused, GError **error)
{
  TinyScanCache *cache = tiny_scan_cache_new (folder);
  const TinyScan *found = tiny_scan_cache_get (cache, &plugin);
  const gboolean good = found != NULL && strlen (found->reason) == TINY_SCAN_MOST_TEXT;
  tiny_scan_cache_free (cache);
  return good || fail (error, "there is no result");
}

static void
test_scans (void)
{
  TinyScanCache *cache = tiny_scan_cache_new (folder);
  tiny_scan_cache_put (cache, &plugin, tiny_scan_new_failed (TINY_ERROR_DRIVER, long_text ()));
  tiny_scan_cache_free (cache);
  refuse (read_scan, NULL, 2);
}

/* ---- workers ---- */
static TinyStatus
no_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static gboolean
describe (gpointer module, GError **error)
{
  TinyPluginModule read;
  g_autofree TinyRenderer *renderers = NULL;
  g_autofree TinyDialect *dialects = NULL;
  g_autoptr (GBytes) bytes = worker_description_write (module);
  if (bytes == NULL)
    return fail (error, "it is not written");
  return worker_description_read (bytes, &read, &renderers, &dialects, error);
}

static void
test_description (void)
{
  enum { N_RENDERERS = 256, PRELUDE = 2000 };
  g_autofree char *x = g_strnfill (PRELUDE, 'x');
  const TinyDialect dialect = { .struct_size = sizeof dialect, .prelude = x };
  TinyRenderer renderers[N_RENDERERS];
  for (guint i = 0; i < N_RENDERERS; i++)
    renderers[i] = (TinyRenderer){ .struct_size = sizeof renderers[0],
                                   .name = "C",
                                   .code_version = "1",
                                   .dialect = &dialect,
                                   .target = no_target };
  TinyPluginModule module = { .struct_size = sizeof module,
                              .name = "Y",
                              .vendor = "v",
                              .version = "1",
                              .license = "MIT",
                              .n_renderers = N_RENDERERS,
                              .renderers = renderers };
  refuse (describe, &module, 3);
}

static TinyStatus
find_many (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  enum { MANY_DEVICES = 2000 };
  for (guint i = 0; i < *n && i < MANY_DEVICES; i++)
    g_snprintf (out[i].id, sizeof out[i].id, "%u", i);
  *n = MANY_DEVICES;
  return TINY_STATUS_OK;
}

static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
  return TINY_STATUS_OK;
}

static TinyStatus
open_none (const char *id,
           TinyPluginDevice **out,
           const TinyDeviceTable **out_table,
           TinyPluginError *error)
{
  return TINY_STATUS_INTERNAL;
}

static gboolean
find_devices (gpointer backend, GError **error)
{
  g_autofree TinyCandidates *found = tiny_backend_scan (backend, error);
  return found != NULL;
}

static void
test_devices (void)
{
  const TinyPluginModule module = { .struct_size = sizeof module,
                                    .abi_major = TINY_PLUGIN_ABI_MAJOR,
                                    .name = "Y",
                                    .init = init,
                                    .scan = find_many,
                                    .open = open_none };
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyBackend) backend = tiny_backend_new (&module, NULL, &error);
  g_assert_no_error (error);
  refuse (find_devices, backend, 1);
}

/* ---- records ---- */
static void
ignore (const char *domain, GLogLevelFlags level, const char *text, gpointer unused)
{
}

static gboolean
move_data (GError **error)
{
  static guint8 data[LONG], found[LONG];
  g_autoptr (TinyDevice) device
      = tiny_registry_open (tiny_registry_get_default (), "REF", error);
  g_autoptr (TinyBuffer) buffer = device != NULL ? tiny_buffer_new (device, LONG) : NULL;
  if (buffer == NULL || !tiny_buffer_ensure (buffer, error))
    return FALSE;
  const TinyCommand upload = { .struct_size = sizeof upload,
                               .type = TINY_COMMAND_UPLOAD,
                               .dst = tiny_buffer_get_span (buffer),
                               .host = data };
  return tiny_device_submit (device, &upload, 1, NULL, error)
         && tiny_buffer_download (buffer, 0, found, LONG, error);
}

enum { NONE_REFUSED, REFUSED, WRONG };

/* A record ends for good, so that each is a process's. */
static int
record_in_child (const char *path, guint nth)
{
  static const HeapAskers askers = { .large = "test-fault", .least = ALLOCATION_LARGE };
  const pid_t child = fork ();
  if (child == 0) {
    g_autoptr (GError) error = NULL;
    g_log_set_always_fatal (G_LOG_LEVEL_ERROR);
    g_log_set_default_handler (ignore, NULL);
    tiny_env_set_text (TINY_ENV_RECORD, path);
    heap_refuse (&askers, nth);
    const gboolean good = move_data (&error);
    const gsize n_refused = heap_stop_refusing (NULL);
    _exit (!good ? WRONG : n_refused > 0 ? REFUSED : NONE_REFUSED);
  }
  int status = 0;
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  return WIFEXITED (status) ? WEXITSTATUS (status) : WRONG;
}

/* A program that is recorded goes on, and its record can be read. */
static void
test_recorder (void)
{
  g_autofree char *path = g_build_filename (folder, "record", NULL);
  guint n = 0;
  for (int outcome = REFUSED; outcome == REFUSED; n++) {
    g_autoptr (GError) error = NULL;
    outcome = record_in_child (path, n + 1);
    g_autoptr (TinyRecord) record = tiny_record_open (path, &error);
    if (outcome == WRONG || record == NULL)
      CASE_FAILS ("request %u: %s", n + 1,
                  error != NULL ? error->message : "it does not go on");
  }
  g_assert_cmpuint (n, >=, 2);
}

/* ---- searches ---- */
static const char kernel_text[]
    = "// stage: kernel\n"
      "%i = range.index{number=0, kind=loop}(4)\n"
      "sink{name=\"k\"}(store(param.f32{slot=0, shape=[4]}, %i, 1.0))\n";

typedef struct {
  TinyDevice *device;
  TinyNode *kernel;
  TinyCode code;
} Search;

/* The helper is told of a program whose binary is long. */
static gboolean
add_program (gpointer data, GError **error)
{
  const Search *self = data;
  const TinyParam params[] = { { .dtype = TINY_DTYPE_F32, .n_elements = 4 } };
  guint id;
  g_autoptr (TinyTrialHost) host
      = tiny_trial_host_new (self->device, self->kernel, params, 1, 20000, error);
  g_assert_true (host == NULL || tiny_trial_host_can_stop (host));
  return host != NULL && tiny_trial_host_add (host, &self->code, &id, error);
}

static void
test_search (void)
{
  static const guint8 binary[LONG];
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GBytes) bytes = g_bytes_new_static (binary, LONG);
  Search self = { .device = tiny_engine_get_device ("NULL:CPU", &error),
                  .kernel = tiny_graph_parse (graph, kernel_text, &error),
                  .code = { { .n_params = 1, .grid = { 1, 1, 1 }, .name = "k" }, bytes } };
  g_assert_no_error (error);
  refuse (add_program, &self, 1);
}

typedef struct {
  int ends[2];
  guint8 *payload; /* of TRIAL_OPEN */
  gsize n_payload;
} Asker;

static gpointer
serve (gpointer data)
{
  tiny_trial_serve (((Asker *) data)->ends[1]);
  return NULL;
}

/* The helper reads a kernel whose text is long. */
static gboolean
open_kernel (gpointer data, GError **error)
{
  const Asker *self = data;
  const TrialRequest request = { .verb = TRIAL_OPEN, .n_payload = (guint32) self->n_payload };
  TrialAnswer answer;
  static char text[4096];
  g_assert_true (tiny_write_all (self->ends[0], &request, sizeof request)
                 && tiny_write_all (self->ends[0], self->payload, self->n_payload)
                 && tiny_read_all (self->ends[0], &answer, sizeof answer)
                 && answer.n_payload <= sizeof text
                 && tiny_read_all (self->ends[0], text, answer.n_payload));
  if (answer.status == TRIAL_GOOD)
    return TRUE;
  g_set_error_literal (error, TINY_ERROR, (TinyError) answer.code, text);
  return FALSE;
}

static void
test_search_helper (void)
{
  static const char device[] = "NULL:CPU";
  TrialOpen head = { .n_params = 1, .n_name = sizeof device };
  const TinyParam param = { .dtype = TINY_DTYPE_F32, .n_elements = 4 };
  g_autofree char *x = long_text ();
  g_autofree char *text = g_strdup_printf ("// %s\n%s", x, kernel_text);
  g_autoptr (GByteArray) payload = g_byte_array_new ();
  g_strlcpy (head.version, tiny_get_version (), sizeof head.version);
  g_byte_array_append (payload, (const guint8 *) &head, sizeof head);
  g_byte_array_append (payload, (const guint8 *) &param, sizeof param);
  g_byte_array_append (payload, (const guint8 *) device, sizeof device);
  g_byte_array_append (payload, (const guint8 *) text, (guint) strlen (text) + 1);
  Asker self = { .payload = payload->data, .n_payload = payload->len };
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM, 0, self.ends), ==, 0);
  GThread *thread = g_thread_new ("trials", serve, &self);
  refuse (open_kernel, &self, 1);
  g_autoptr (GError) error = NULL;
  payload->data[0] = 'x'; /* the version's */
  g_assert_false (open_kernel (&self, &error));
  g_assert_cmpstr (error->message, ==, TINY_HELPER_OTHER_TEXT);
  close (self.ends[0]);
  g_thread_join (thread);
  close (self.ends[1]);
}

/* A program's last words are shown by what could not be had of them. */
static gboolean
clean (gpointer text, GError **error)
{
  g_autofree char *out = tiny_clean_text (text, LONG);
  return strlen (out) == LONG || fail (error, "it is cut");
}

static void
test_words (void)
{
  g_autofree char *x = long_text ();
  refuse (clean, x, 1);
}

/* ---- the conformance suite ---- */
static gboolean
hear_worker (gpointer setup, GError **error)
{
  g_autoptr (ConfWorker) worker = conf_worker_new (setup, CONF_WORKER_OPEN, error);
  g_assert_nonnull (worker);
  g_autoptr (JsonNode) answer = conf_worker_wait (worker, 20 * G_USEC_PER_SEC);
  if (answer != NULL)
    return TRUE;
  g_autofree char *why = conf_worker_explain (worker);
  g_assert_nonnull (strstr (why, "the suite ran out of memory"));
  return fail (error, why);
}

static void
test_worker (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *answer
      = g_strdup_printf ("{\"result\": {\"name\": \"a/b\", \"outcome\": \"failed\", \"us\": 1, "
                         "\"messages\": [\"%s\"]}}\n",
                         x);
  g_autofree char *path = write_file ("answer", answer, strlen (answer));
  g_autofree char *script = g_strdup_printf ("#!/bin/sh\ncat '%s' >&3\nsleep 60\n", path);
  g_autofree char *program = write_file ("worker", script, strlen (script));
  g_auto (GStrv) environment = g_get_environ ();
  const ConfWorkerSetup setup = { .program = program,
                                  .environment = environment,
                                  .folder = folder,
                                  .device = (char *) "",
                                  .path = (char *) "",
                                  .id = (char *) "" };
  g_assert_cmpint (g_chmod (program, 0700), ==, 0);
  refuse (hear_worker, (gpointer) &setup, 4);
}

static gboolean
read_answer (gpointer text, GError **error)
{
  g_autoptr (JsonNode) answer = conf_answer_parse (text, strlen (text), error);
  return answer != NULL;
}

static gboolean
read_result (gpointer text, GError **error)
{
  g_autoptr (JsonNode) result = conf_answer_parse_kept (text, strlen (text), error);
  return result != NULL;
}

static void
test_answers (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *result = g_strdup_printf (
      "{\"name\": \"a/b\", \"outcome\": \"failed\", \"us\": 1, \"messages\": [\"%s\"], "
      "\"files\": [{\"suffix\": \"ir\", \"text\": \"%s\"}]}",
      x, x);
  g_autofree char *answer = g_strdup_printf ("{\"result\": %s}", result);
  refuse (read_answer, answer, 2);
  refuse (read_result, result, 2);
}

static gboolean
read_certificate (gpointer path, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_load (path, 1 << 28, error);
  return root != NULL && conf_certificate_check_form (json_node_get_object (root), error);
}

static void
test_certificate (void)
{
  g_autofree char *x = long_text ();
  g_autofree char *text = g_strdup_printf (
      "{\"format\": \"" CONF_FORMAT
      "\", \"certified\": \"none\", \"status\": 0, \"score\": {}, "
      "\"subject\": {\"spec\": \"%s\", \"sha256\": \"\", \"build_id\": \"\"}, "
      "\"suite\": {\"version\": \"\", \"build_id\": \"\"}, "
      "\"run\": {\"level\": \"core\", \"seed\": \"1\", \"filters\": [], \"complete\": true}, "
      "\"cases\": [{\"name\": \"%s\", \"outcome\": \"passed\", \"level\": \"core\", "
      "\"must\": true}], \"absent\": [], \"worst\": []}",
      x, x);
  g_autofree char *path = write_file ("certificate.json", text, strlen (text));
  refuse (read_certificate, path, 3);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  make_folder ();
  plugin.module = write_file ("y.so", "", 0);
  g_test_add_func ("/fault/allocation/tuned", test_tuned);
  g_test_add_func ("/fault/allocation/manifests", test_manifests);
  g_test_add_func ("/fault/allocation/scan", test_scan);
  g_test_add_func ("/fault/allocation/scans", test_scans);
  g_test_add_func ("/fault/allocation/description", test_description);
  g_test_add_func ("/fault/allocation/devices", test_devices);
  g_test_add_func ("/fault/allocation/recorder", test_recorder);
  g_test_add_func ("/fault/allocation/search", test_search);
  g_test_add_func ("/fault/allocation/search-helper", test_search_helper);
  g_test_add_func ("/fault/allocation/words", test_words);
  g_test_add_func ("/fault/allocation/worker", test_worker);
  g_test_add_func ("/fault/allocation/answers", test_answers);
  g_test_add_func ("/fault/allocation/certificate", test_certificate);
  return g_test_run ();
}
