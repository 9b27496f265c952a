/* SPDX-License-Identifier: MIT
 *
 * A program that hangs, crashes or lies when a search tries it costs its time and a warning: the search goes
 * on with the others, in a new process, and finds what it would have found. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-search.h"
#include "engine/tiny-trial-host.h"
#include "ir/tiny-text.h"

static const char kernel_text[]
    = "// stage: kernel\n"
      "%i = range.index{number=0, kind=loop}(64)\n%j = range.index{number=1, kind=loop}(64)\n"
      "%k = range.index{number=2, kind=reduce}(64)\n"
      "%a = load.f32(param.f32{slot=1, shape=[4096]}, add.index(mul.index(%i, 64), %k))\n"
      "%b = load.f32(param.f32{slot=2, shape=[4096]}, add.index(mul.index(%k, 64), %j))\n"
      "sink{name=\"small_matmul\"}(store(param.f32{slot=0, shape=[4096]}, "
      "add.index(mul.index(%i, 64), %j), reduce.f32{op=add}(mul.f32(%a, %b), %k)))\n";

static guint n_warnings;
static char *last_warning;

static void
count_warning (const char *domain, GLogLevelFlags level, const char *text, gpointer data)
{
  n_warnings++;
  g_free (last_warning);
  last_warning = g_strdup (text);
}

static void
search (const char *device_name, guint beam, double timeout_ms, TinySearchResult *out)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyDevice *device = tiny_engine_get_device (device_name, &error);
  g_assert_no_error (error);
  TinyNode *kernel = tiny_graph_parse (graph, kernel_text, &error);
  g_assert_no_error (error);
  n_warnings = 0;
  tiny_search_run (device, kernel, &(TinySearchOptions){ beam, 8, timeout_ms }, out, &error);
  g_assert_no_error (error);
}

/* Those of this process that run, by their numbers. */
static char *
list_children (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", getpid ());
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_auto (GStrv) numbers = g_strsplit (text, " ", -1);
  GString *out = g_string_new (NULL);
  for (guint i = 0; numbers[i] != NULL && numbers[i][0] != 0; i++) {
    g_autofree char *stat_path = g_strdup_printf ("/proc/%s/stat", numbers[i]);
    g_autofree char *stat = NULL;
    if (g_file_get_contents (stat_path, &stat, NULL, NULL) && strstr (stat, ") Z ") == NULL)
      g_string_append_printf (out, "%s ", numbers[i]);
  }
  return g_string_free (out, FALSE);
}

static void
test_hang (void)
{
  g_auto (TinySearchResult) result = { 0 };
  gint64 start = g_get_monotonic_time ();
  search ("HANG", 1, 300, &result);
  g_test_message ("%s: %u tried, %u timed, %u stopped, %.1f s", result.opts, result.n_tried,
                  result.n_timed, result.n_stopped,
                  (double) (g_get_monotonic_time () - start) * 1e-6);
  g_assert_cmpuint (result.n_stopped, >, 0);
  g_assert_cmpuint (result.n_timed, >, 0); /* after it */
  g_assert_cmpuint (n_warnings, ==, result.n_stopped);
  g_assert_nonnull (strstr (last_warning, "it was stopped after 400 ms"));
  g_assert_nonnull (strstr (result.opts, "lanes("));
}

static void
test_crash (void)
{
  g_auto (TinySearchResult) result = { 0 };
  search ("CRASH", 1, 2000, &result);
  g_assert_cmpuint (result.n_stopped, >, 0);
  g_assert_cmpuint (result.n_timed, >, 0);
  g_assert_cmpuint (n_warnings, ==, result.n_stopped);
  g_assert_nonnull (strstr (last_warning, "signal 6"));
}

/* A program that writes an answer of its own is out, and its process with it: no later answer is taken for another's. */
static void
test_lie (void)
{
  g_auto (TinySearchResult) result = { 0 };
  search ("LIE", 1, 2000, &result);
  g_assert_cmpuint (result.n_stopped, >, 0);
  g_assert_cmpuint (result.n_timed, >, 0);
  g_assert_cmpuint (result.n_wrong, ==, 0);
  g_assert_nonnull (strstr (last_warning, "wrote into the socket of the search (status 2)"));
}

/* A child has no share in the process of its parent's searches: it neither asks it nor ends it. */
static void
test_fork (void)
{
  g_auto (TinySearchResult) first = { 0 }, last = { 0 };
  search ("CPU", 1, 2000, &first);
  g_autofree char *before = list_children ();
  g_assert_cmpstr (before, !=, "");
  pid_t pid = fork ();
  if (pid == 0) {
    g_auto (TinySearchResult) result = { 0 };
    search ("CPU", 1, 2000, &result);
    g_autofree char *own = list_children ();
    _exit (result.n_timed > 1 && own[0] != 0 ? 0 : 1);
  }
  int status;
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
  g_autofree char *between = list_children ();
  g_assert_cmpstr (between, ==, before);
  search ("CPU", 1, 2000, &last);
  g_autofree char *after = list_children ();
  g_assert_cmpstr (after, ==, before);
}

/* Another device's kernels after it, in the same process: nothing is left over. */
static void
test_other (void)
{
  g_auto (TinySearchResult) result = { 0 };
  search ("CPU", 1, 2000, &result);
  g_assert_cmpuint (result.n_stopped + result.n_wrong, ==, 0);
  g_assert_cmpuint (result.n_timed, >, 1);
  g_assert_cmpuint (n_warnings, ==, 0);
}

/* Without the helper a search runs its programs itself. */
static void
test_without (void)
{
  g_auto (TinySearchResult) result = { 0 };
  g_autofree char *helper = g_strdup (g_getenv ("TINY_SCAN_HELPER"));
  g_autofree char *none = g_strdup ("/bin/false");
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  const TinyParam params[] = { { TINY_DTYPE_F32, TINY_PARAM_WRITE, 4096 },
                               { TINY_DTYPE_F32, TINY_PARAM_READ, 4096 },
                               { TINY_DTYPE_F32, TINY_PARAM_READ, 4096 } };
  TinyDevice *device = tiny_engine_get_device ("CPU", NULL);
  TinyNode *kernel = tiny_graph_parse (graph, kernel_text, NULL);
  TinyTrialHost *idle = tiny_trial_host_new (device, kernel, params, 3, 1000, &error);
  g_assert_no_error (error);
  g_assert_true (tiny_trial_host_can_stop (idle)); /* and it has the process that was idle */
  g_setenv ("TINY_SCAN_HELPER", none, TRUE);
  TinyTrialHost *host = tiny_trial_host_new (device, kernel, params, 3, 1000, &error);
  g_assert_no_error (error);
  g_assert_false (tiny_trial_host_can_stop (host));
  g_assert_true (tiny_trial_host_reset (host, &error));
  g_setenv ("TINY_SCAN_HELPER", helper, TRUE);
  tiny_trial_host_free (host);
  tiny_trial_host_free (idle);
}

static void
write_manifest (const char *folder, const char *name, const char *module)
{
  g_autofree char *path = g_strdup_printf ("%s/%s.json", folder, name);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"%s\", \"abi\": 1, \"module\": \"%s\", \"class\": "
      "\"simulator\", \"probe\": {\"timeout_ms\": 10000}}",
      name, module);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_handler ("tinycore", G_LOG_LEVEL_WARNING, count_warning, NULL);
  g_autofree char *folder = g_dir_make_tmp ("tiny-trials-XXXXXX", NULL);
  g_autofree char *path = g_strdup_printf ("%s:%s", folder, g_getenv ("TINY_PLUGIN_PATH"));
  write_manifest (folder, "HANG", TRIAL_DIR "/trial-hang.so");
  write_manifest (folder, "CRASH", TRIAL_DIR "/trial-crash.so");
  write_manifest (folder, "LIE", TRIAL_DIR "/trial-lie.so");
  g_setenv ("TINY_PLUGIN_PATH", path, TRUE);
  g_setenv ("TINY_CACHE_DIR", folder, TRUE);
  g_test_add_func ("/fault/trials/hang", test_hang);
  g_test_add_func ("/fault/trials/crash", test_crash);
  g_test_add_func ("/fault/trials/lie", test_lie);
  g_test_add_func ("/fault/trials/other", test_other);
  g_test_add_func ("/fault/trials/fork", test_fork);
  g_test_add_func ("/fault/trials/without", test_without);
  int status = g_test_run ();
  g_autofree char *remove = g_strdup_printf ("rm -r '%s'", folder);
  return WEXITSTATUS (system (remove)) | status;
}
