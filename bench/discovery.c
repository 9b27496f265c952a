/* SPDX-License-Identifier: MIT
 *
 * discovery.c: what plugins cost: start-up with 50 manifests, probing one, the core's part of a submit, and a submit to a
 * process of its own.
 *
 *   bench-discovery FOLDER PLUGIN   FOLDER is empty and becomes one of manifests; PLUGIN has a renderer
 *   bench-discovery FOLDER          one start-up with what is there: milliseconds, manifests parsed
 *   bench-discovery WHAT PLUGIN N   N probes (--probes), or submits: by the core (--submits), to the plugin's own function
 *                                   (--direct), to a process of its own (--worker), for their instructions and system calls
 *                                   to be counted from outside
 *
 * Prints one JSON object. Each start-up is a process of its own. What is cold is one that finds no cache of manifests and
 * writes it, what is warm one that finds it; the operating system's own caches are warm, as they are after the first program. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/tiny-buffer.h"
#include "device/tiny-device.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-scan.h"
#include "plugin/tiny-worker.h"

enum { N_MANIFESTS = 50, ROUNDS = 15, CALLS = 20000, WORKER_CALLS = 1000 };

static gint
compare (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

static double
median (double *values, guint n)
{
  qsort (values, n, sizeof *values, compare);
  return values[n / 2];
}

/* Inside: what is there ends otherwise than a manifest. */
static char *
cache_of (const char *folder)
{
  return g_build_filename (folder, "cache", NULL);
}

static void
write_manifests (const char *folder)
{
  for (guint i = 0; i < N_MANIFESTS; i++) {
    g_autofree char *path = g_strdup_printf ("%s/vendor%02u.json", folder, i);
    g_autofree char *text = g_strdup_printf (
        "{\"format_version\": 1, \"name\": \"VENDOR%02u\", \"vendor\": \"vendor %u\", "
        "\"version\": \"2.3.%u\",\n"
        " \"license\": \"MIT\", \"module\": \"../lib/tiny-vendor%02u.so\", \"abi\": 1, "
        "\"abi_minor_min\": 0,\n"
        " \"class\": \"npu\", \"renderers\": [\"VEND\", \"C\"],\n"
        " \"match\": {\"modalias\": [\"pci:v0000%04Xd*\", \"usb:v%04Xp*\"],\n"
        "            \"device_nodes\": [\"/dev/accel/vendor%u*\"]},\n"
        " \"probe\": {\"timeout_ms\": 5000, \"env\": [\"VENDOR_VISIBLE\"],\n"
        "            \"files\": [\"/proc/driver/vendor%u/version\"]},\n"
        " \"package\": \"libvendor%u\"}\n",
        i, i, i, i, 0x1e40 + i, 0x1e40 + i, i, i, i);
    g_assert_true (g_file_set_contents (path, text, -1, NULL));
  }
}

typedef struct {
  double took_ms;
  guint n_parsed;
} StartUp;

/* Finds all manifests and matches them with the machine, as the choice of a device does. */
static StartUp
start_up (const char *folder)
{
  const char *const folders[] = { folder, NULL };
  gint64 before = g_get_monotonic_time ();
  g_autofree char *caches = cache_of (folder);
  g_autoptr (TinyManifestCache) cache = tiny_manifest_cache_new (caches);
  g_autoptr (GPtrArray) all = tiny_discover_cached (folders, NULL, cache, NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->manifest != NULL)
      tiny_manifest_matches (found->manifest, NULL);
  }
  double took = (double) (g_get_monotonic_time () - before) / 1e3;
  return (StartUp){ took, tiny_manifest_cache_count_parsed (cache) };
}

/* In a process of its own: this program with the folder. */
static StartUp
start_up_anew (const char *folder, gboolean cold)
{
  StartUp took = { 0 };
  g_autofree char *caches = cache_of (folder), *out = NULL;
  g_autofree char *file = g_build_filename (caches, "manifests.bin", NULL);
  char *argv[] = { "/proc/self/exe", (char *) folder, NULL };
  g_autoptr (GError) error = NULL;
  if (cold)
    g_unlink (file);
  if (!g_spawn_sync (NULL, argv, NULL, 0, NULL, NULL, &out, NULL, NULL, &error)
      || sscanf (out, "%lf %u", &took.took_ms, &took.n_parsed) != 2)
    g_error ("%s: %s", folder, error ? error->message : out);
  return took;
}

/* The helper process, without what the plugin itself takes, in milliseconds. */
static double
probe (const char *module)
{
  g_autoptr (GError) error = NULL;
  TinyManifest manifest = { .module = (char *) module, .timeout_ms = 5000 };
  gint64 before = g_get_monotonic_time ();
  g_autoptr (TinyScan) scan = tiny_scan_run (&manifest, &error);
  gint64 took = g_get_monotonic_time () - before;
  if (scan == NULL || !scan->is_loaded)
    g_error ("%s", scan ? scan->reason : error->message);
  took -= scan->load_us + scan->scan_us;
  for (guint i = 0; i < scan->devices->len; i++)
    took -= ((const TinyScanDevice *) scan->devices->pdata[i])->open_us;
  return (double) took / 1e3;
}

typedef struct {
  TinyDevice *device;
  const TinyDeviceTable *table;
  TinyPluginDevice *handle;
  TinyPluginQueue *queue;
  TinyCommand command;
} Submits;

/* Nanoseconds for each of many calls. */
static double
time_direct (const Submits *self, guint n_calls)
{
  TinyPluginError error = { .struct_size = sizeof error };
  const TinySubmit submit
      = { .struct_size = sizeof submit, .commands = &self->command, .n_commands = 1 };
  gint64 before = g_get_monotonic_time ();
  for (guint i = 0; i < n_calls; i++)
    self->table->submit (self->handle, self->queue, &submit, &error);
  return (double) (g_get_monotonic_time () - before) * 1e3 / n_calls;
}

static double
time_core (TinyDevice *device, const TinyCommand *command, guint n_calls)
{
  gint64 before = g_get_monotonic_time ();
  for (guint i = 0; i < n_calls; i++)
    tiny_device_submit (device, command, 1, NULL, NULL);
  return (double) (g_get_monotonic_time () - before) * 1e3 / n_calls;
}

static TinyDevice *
open_first (TinyBackend *backend)
{
  g_autoptr (GError) error = NULL;
  g_autofree TinyCandidates *candidates = tiny_backend_scan (backend, &error);
  g_assert_no_error (error);
  const TinyDeviceOptions options = { .name = "bench", .id = candidates->at[0].id };
  TinyDevice *device = tiny_device_new (backend, &options, &error);
  g_assert_no_error (error);
  return device;
}

/* A device in a process of its own, and a submit of the same kind to it. */
static TinyDevice *
open_worker (const char *module, TinyCommand *out_command)
{
  static guint8 byte;
  g_autoptr (GError) error = NULL;
  const TinyManifest manifest
      = { .module = (char *) module, .timeout_ms = 5000, .call_timeout_ms = 20000 };
  g_autoptr (TinyBackend) backend = tiny_worker_load_backend (&manifest, &error);
  g_assert_no_error (error);
  TinyDevice *device = open_first (backend);
  TinyBuffer *buffer = tiny_buffer_new (device, 64); /* for as long as the program runs */
  g_assert_true (tiny_buffer_ensure (buffer, NULL));
  *out_command = (TinyCommand){ .struct_size = sizeof *out_command,
                                .type = TINY_COMMAND_UPLOAD,
                                .dst = { tiny_buffer_get_handle (buffer), 0, 0 },
                                .host = &byte };
  return device;
}

/* In microseconds: the best of the rounds, as whatever else runs on the machine takes the processors from one of the two. */
static double
measure_worker (const char *module)
{
  TinyCommand command;
  TinyDevice *device = open_worker (module, &command);
  double best = G_MAXDOUBLE;
  for (guint i = 0; i < ROUNDS; i++)
    best = MIN (best, time_core (device, &command, WORKER_CALLS) / 1e3);
  return best;
}

/* Both call the same plugin with the same command: a copy of no bytes. */
static void
begin_submits (Submits *self, TinyBackend *backend)
{
  static guint8 byte;
  g_autoptr (GError) error = NULL;
  g_autofree TinyCandidates *candidates = tiny_backend_scan (backend, &error);
  const char *id = candidates->at[0].id;
  TinyPluginError plugin_error = { .struct_size = sizeof plugin_error };
  TinyPluginBuffer *buffer = NULL;
  *self = (Submits){ .device = open_first (backend) };
  g_assert_cmpint (
      tiny_backend_get_module (backend)->open (id, &self->handle, &self->table, &plugin_error),
      ==, 0);
  if (self->table->queue_create != NULL)
    self->table->queue_create (self->handle, &self->queue, &plugin_error);
  self->table->alloc (self->handle, 64, &buffer, &plugin_error);
  self->command = (TinyCommand){ .struct_size = sizeof self->command,
                                 .type = TINY_COMMAND_UPLOAD,
                                 .dst = { buffer, 0, 0 },
                                 .host = &byte };
}

static void
measure_submits (TinyBackend *backend, double *out_direct, double *out_core)
{
  Submits self;
  double direct[ROUNDS], core[ROUNDS];
  begin_submits (&self, backend);
  for (guint i = 0; i < ROUNDS; i++) { /* in turns: a busy moment falls on both */
    direct[i] = time_direct (&self, CALLS);
    core[i] = time_core (self.device, &self.command, CALLS);
  }
  *out_direct = median (direct, ROUNDS);
  *out_core = median (core, ROUNDS);
}

/* Without a clock: so many probes or submits. */
static int
count (const char *what, const char *module, guint n_calls)
{
  if (strcmp (what, "--probes") == 0) {
    for (guint i = 0; i < n_calls; i++)
      probe (module);
    return 0;
  }
  if (strcmp (what, "--worker") == 0) {
    TinyCommand command;
    time_core (open_worker (module, &command), &command, n_calls);
    return 0;
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyBackend) backend = tiny_backend_load (module, &error);
  Submits self;
  g_assert_no_error (error);
  begin_submits (&self, backend);
  if (strcmp (what, "--submits") == 0)
    time_core (self.device, &self.command, n_calls);
  else
    time_direct (&self, n_calls);
  return 0;
}

int
main (int argc, char **argv)
{
  if (argc == 2) {
    StartUp one = start_up (argv[1]);
    printf ("%.3f %u\n", one.took_ms, one.n_parsed);
    return 0;
  }
  if (argc == 4)
    return count (argv[1], argv[2], (guint) atoi (argv[3]));
  if (argc != 3)
    return 2;
  double cold[ROUNDS], warm[ROUNDS], probes[ROUNDS], direct, core;
  guint parsed_cold = 0, parsed_warm = 0;
  write_manifests (argv[1]);
  g_usleep (G_USEC_PER_SEC / 5);       /* what changed this moment is not remembered */
  for (guint i = 0; i < ROUNDS; i++) { /* in turns: a busy moment falls on both */
    StartUp first = start_up_anew (argv[1], TRUE), second = start_up_anew (argv[1], FALSE);
    cold[i] = first.took_ms;
    warm[i] = second.took_ms;
    parsed_cold = MAX (parsed_cold, first.n_parsed);
    parsed_warm = MAX (parsed_warm, second.n_parsed);
  }
  for (guint i = 0; i < ROUNDS; i++)
    probes[i] = probe (argv[2]);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyBackend) backend = tiny_backend_load (argv[2], &error);
  g_assert_no_error (error);
  measure_submits (backend, &direct, &core);
  printf ("{\"manifests\": %d, \"start_up_cold_ms\": %.3f, \"start_up_warm_ms\": %.3f, "
          "\"parsed_cold\": %u, \"parsed_warm\": %u, \"probe_ms\": %.2f, "
          "\"submit_direct_ns\": %.1f, \"submit_ns\": %.1f, \"submit_overhead_ns\": %.1f, "
          "\"submit_worker_us\": %.2f}\n",
          N_MANIFESTS, median (cold, ROUNDS), median (warm, ROUNDS), parsed_cold, parsed_warm,
          median (probes, ROUNDS), direct, core, core - direct, measure_worker (argv[2]));
  return 0;
}
