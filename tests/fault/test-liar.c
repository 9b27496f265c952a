/* SPDX-License-Identifier: MIT
 *
 * test-liar.c: a worker that lies costs its device, or tells the program numbers that are not so: never the program's
 * memory, its time or its descriptors, and every error says something. This program is the helper, too: its worker is
 * lying-worker.c, all else the helper of the build.
 *
 * usage: test-liar [-- SEED COUNT] */
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "lying-worker.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-worker.h"
#include "process-state.h"
#include "use-device.h"

enum { TIMEOUT_MS = 200 };

static guint first_seed = 1, n_seeds = 200;
static char *folder;

static TinyRegistry *
new_registry (const char *lie)
{
  const char *folders[] = { folder, NULL };
  g_setenv ("TINY_TEST_LIE", lie, TRUE);
  return tiny_registry_new (folders, folder);
}

/* A device used as programs do, whatever it computes. */
static gboolean
use_blindly (TinyDevice *device, GError **error)
{
  const guint32 group[] = { 1, 1, 1 };
  float numbers[N] = { 0 };
  g_autoptr (GBytes) code = compile (device, 7, error);
  if (code == NULL)
    return FALSE;
  if (tiny_device_get_renderer (device)->disassemble != NULL) {
    g_autofree char *text = tiny_device_disassemble (device, code, error);
    if (text == NULL)
      return FALSE;
    g_assert_true (g_utf8_validate (text, -1, NULL));
  }
  g_autoptr (TinyProgram) program = tiny_program_new (device, "put", code, 1, 0, group, error);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, sizeof numbers);
  g_autoptr (TinyBuffer) large = tiny_buffer_new (device, 1 << 20);
  return program != NULL && tiny_buffer_upload (buffer, 0, numbers, sizeof numbers, error)
         && tiny_buffer_ensure (large, error) && launch (device, program, buffer, error)
         && tiny_buffer_download (buffer, 0, numbers, sizeof numbers, error)
         && tiny_device_submit (device, NULL, 0, NULL, error);
}

static gboolean
meet_lie (const char *lie, GError **error)
{
  tiny_env_set_int (TINY_ENV_ISOLATED_TIMEOUT, g_str_equal (lie, "0") ? -1 : TIMEOUT_MS);
  g_autoptr (TinyRegistry) own = new_registry (lie);
  g_autoptr (TinyDevice) device = tiny_registry_open (own, "ISOLATED+CPU", error);
  gboolean good = device != NULL;
  for (guint i = 0; i < 4 && good; i++)
    good = use_blindly (device, error);
  g_clear_object (&device);
  g_clear_object (&own);
  g_assert_cmpint (good, ==, *error == NULL);
  if (good)
    return TRUE;
  g_test_message ("%s: %s", lie, (*error)->message);
  g_assert_true ((*error)->domain == TINY_ERROR);
  g_assert_true (g_utf8_validate ((*error)->message, -1, NULL));
  g_assert_nonnull (strstr ((*error)->message, "CPU"));
  g_assert_null (
      strstr ((*error)->message, "starting")); /* which it has done, and has much time for */
  g_assert_cmpuint (strlen ((*error)->message), >, strlen ("ISOLATED+CPU: "));
  return FALSE;
}

static void
test_honest (void)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (meet_lie ("0", &error));
}

static void
test_chance (void)
{
  guint n_good = 0;
  const guint n_files = count_files (), n_mappings = count_mappings (),
              n_children = count_children (NULL);
  for (guint i = 0; i < n_seeds; i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *lie = g_strdup_printf ("%u", first_seed + i);
    n_good += meet_lie (lie, &error);
  }
  g_test_message ("%u of %u lies were met with an error", n_seeds - n_good, n_seeds);
  g_assert_cmpuint (n_good, <, n_seeds);
  g_assert_cmpuint (count_files (), ==, n_files);
  g_assert_cmpuint (count_mappings (), ==, n_mappings);
  g_assert_cmpuint (count_children (NULL), ==, n_children);
}

/* One that was installed after the program began, for example. */
static void
test_other (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyRegistry) own = new_registry ("other");
  tiny_env_set_int (TINY_ENV_ISOLATED_TIMEOUT, -1);
  g_autoptr (TinyDevice) device = tiny_registry_open (own, "ISOLATED+CPU", &error);
  g_assert_null (device);
  g_assert_nonnull (strstr (error->message, TINY_HELPER_OTHER_TEXT));
}

/* Its socket is never empty, and it never answers. */
static void
test_streams (gconstpointer how)
{
  g_autoptr (GError) error = NULL;
  const guint n_files = count_files ();
  g_assert_false (meet_lie (how, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, "not done after"));
  g_assert_cmpuint (count_files (), ==, n_files);
}

/* It wants to be woken and takes nothing from its socket: nobody waits for room there. */
static void
test_deaf (void)
{
  enum { N_CALLS = 2000 };
  g_autoptr (GError) error = NULL;
  tiny_env_set_int (TINY_ENV_ISOLATED_TIMEOUT, -1);
  g_autoptr (TinyRegistry) own = new_registry ("deaf");
  g_autoptr (TinyDevice) device = tiny_registry_open (own, "ISOLATED+CPU", &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N_CALLS; i++) {
    tiny_device_submit (device, NULL, 0, NULL, &error);
    g_assert_no_error (error);
  }
}

/* The worker is given handles that are none: a sanitizer's reports of that go where nobody looks. */
static void
hide_reports (const char *name)
{
  const char *options = g_getenv (name);
  g_autofree char *changed = g_strconcat (options ? options : "",
                                          ":detect_leaks=0:log_path=", folder, "/report", NULL);
  g_setenv (name, changed, TRUE);
}

int
main (int argc, char **argv)
{
  if (argc == 3 && g_str_equal (argv[2], TINY_SCAN_WORKER))
    lying_worker_serve (atoi (argv[1]));
  if (g_getenv ("TINY_TEST_LIE") != NULL) { /* a scan */
    execv (HELPER, argv);
    return 2;
  }
  g_test_init (&argc, &argv, NULL);
  if (argc > 2) {
    first_seed = (guint) atoi (argv[argc - 2]);
    n_seeds = (guint) atoi (argv[argc - 1]);
  }
  folder = g_dir_make_tmp ("tiny-liar-XXXXXX", NULL);
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *path = g_build_filename (folder, "CPU.json", NULL);
  hide_reports ("ASAN_OPTIONS");
  hide_reports ("UBSAN_OPTIONS");
  g_setenv ("TINY_CACHE_DIR", folder, TRUE);
  g_setenv ("TINY_SCAN_HELPER", self, TRUE);
  g_assert_true (g_file_set_contents (
      path,
      "{\"format_version\": 1, \"name\": \"CPU\", \"abi\": 1, \"module\": \"" CPU_PLUGIN
      "\", \"class\": \"simulator\", \"probe\": {\"timeout_ms\": 10000}}",
      -1, NULL));
  g_test_add_func ("/fault/liar/honest", test_honest);
  g_test_add_func ("/fault/liar/other", test_other);
  g_test_add_func ("/fault/liar/chance", test_chance);
  g_test_add_data_func ("/fault/liar/drip", "drip", test_streams);
  g_test_add_data_func ("/fault/liar/flood", "flood", test_streams);
  g_test_add_func ("/fault/liar/deaf", test_deaf);
  int status = g_test_run ();
  g_autofree char *remove = g_strdup_printf ("rm -r '%s'", folder);
  return WEXITSTATUS (system (remove)) | status;
}
