/* SPDX-License-Identifier: MIT
 *
 * test-apart.c: while a function of one plugin hangs, in this process or in the helper, other threads open and use
 * other devices. Where that is not so, nothing here ends. */
#include <glib/gstdio.h>
#include <stdlib.h>

#include "plugin/tiny-registry.h"
#include "tiny.h"

enum { SCAN_MS = 2500, N = 1000 };

static char *folder; /* of manifests */

static void
write_manifest (const char *name)
{
  g_autofree char *file = g_strdup_printf ("%s/%s.json", folder, name);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"%s\", \"abi\": 1, \"module\": \"%s/bad-%s.so\", "
      "\"class\": \"simulator\", \"version\": \"1\", \"probe\": {\"timeout_ms\": %d}}",
      name, BAD_DIR, name, SCAN_MS);
  g_assert_true (g_file_set_contents (file, text, -1, NULL));
}

static void
assert_computes (const char *device)
{
  g_autofree float *found = g_new (float, N);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_to (
      tiny_tensor_contiguous (tiny_tensor_arange (TINY_DTYPE_F32, 0, N, 1)), device));
  g_autoptr (TinyTensor) sum = g_object_ref_sink (tiny_tensor_add (x, x));
  tiny_tensor_copy_data (sum, found, N * sizeof *found, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (found[i], ==, 2 * (float) i);
}

/* ---- the helper's time ---- */
static gint scanning;

static gpointer
open_scan_hang (gpointer unused)
{
  g_autoptr (GError) error = NULL;
  g_atomic_int_set (&scanning, TRUE);
  TinyDevice *device = tiny_registry_open (tiny_registry_get_default (), "scan-hang", &error);
  g_atomic_int_set (&scanning, FALSE);
  g_assert_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT);
  return device;
}

/* Others are opened, and scanned, during a scan that uses up its time. */
static void
test_scan (void)
{
  g_autoptr (GError) error = NULL;
  GThread *thread = g_thread_new (NULL, open_scan_hang, NULL);
  while (!g_atomic_int_get (&scanning))
    g_usleep (1000);
  g_usleep (50000); /* until it runs, for certain enough: else this test shows nothing */
  g_autoptr (TinyDevice) other
      = tiny_registry_open (tiny_registry_get_default (), "control", &error);
  g_assert_no_error (error);
  assert_computes ("CPU");
  g_assert_true (g_atomic_int_get (&scanning));
  g_assert_null (g_thread_join (thread));
}

/* ---- in this process ---- */
static gpointer
open_open_hang (gpointer unused)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = tiny_registry_open (tiny_registry_get_default (), "open-hang", &error);
  g_assert_no_error (error);
  return device;
}

static gpointer
use_open_hang (gpointer unused)
{
  const float numbers[] = { 1, 2 };
  const gint64 shape[] = { 2 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
      "open-hang", TINY_DTYPE_F32, shape, 1, numbers, sizeof numbers));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_to (x, "open-hang"));
  tiny_tensor_get_n_elements (y);
  return NULL;
}

/* Others compute while open() of one hangs; those that want the same wait, and get the same. */
static void
test_open (void)
{
  g_autofree char *told = g_build_filename (folder, "told", NULL);
  g_autofree char *begun = g_strconcat (told, "-begun", NULL);
  GThread *threads[3];
  g_autoptr (GPtrArray) list = tiny_registry_list (tiny_registry_get_default ()); /* scanned */
  g_assert_true (g_file_set_contents (told, "", -1, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new (NULL, i < 2 ? open_open_hang : use_open_hang, NULL);
  while (g_access (begun, F_OK) != 0)
    g_usleep (1000);
  assert_computes ("CPU");
  assert_computes ("CPU:CLANG"); /* opened now */
  g_autoptr (GPtrArray) again = tiny_registry_list (tiny_registry_get_default ());
  g_assert_cmpuint (again->len, ==, list->len);
  g_assert_cmpint (g_access (told, F_OK), ==, 0);
  g_unlink (told);
  g_unlink (begun);
  g_autoptr (TinyDevice) first = g_thread_join (threads[0]),
                         second = g_thread_join (threads[1]);
  g_assert_nonnull (first);
  g_assert_true (first == second);
  g_thread_join (threads[2]);
}

/* What the others look at stays while the registry forgets everything. */
static gint is_over;

static gpointer
retry_often (gpointer unused)
{
  while (!g_atomic_int_get (&is_over)) {
    tiny_registry_retry (tiny_registry_get_default (), "control");
    g_usleep (500);
  }
  return NULL;
}

static void
test_forgotten (void)
{
  GThread *thread = g_thread_new (NULL, retry_often, NULL);
  for (guint i = 0; i < 8; i++) {
    g_autoptr (GPtrArray) list = tiny_registry_list (tiny_registry_get_default ());
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyDevice) device
        = tiny_registry_open (tiny_registry_get_default (), "control", &error);
    g_assert_no_error (error);
    g_assert_cmpuint (list->len, >=, 3);
  }
  g_atomic_int_set (&is_over, TRUE);
  g_thread_join (thread);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("tiny-apart-XXXXXX", NULL);
  g_autofree char *told = g_build_filename (folder, "told", NULL);
  g_setenv ("DEV", "CPU", TRUE);
  g_setenv ("FAULT_HANG", told, TRUE);
  const char *names[] = { "control", "scan-hang", "open-hang" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    write_manifest (names[i]);
  tiny_registry_add_path (tiny_registry_get_default (), folder);
  g_test_add_func ("/fault/apart/forgotten", test_forgotten);
  g_test_add_func ("/fault/apart/scan", test_scan);
  g_test_add_func ("/fault/apart/open", test_open);
  int failed = g_test_run ();
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *file = g_strdup_printf ("%s/%s.json", folder, names[i]);
    g_unlink (file);
  }
  g_rmdir (folder);
  return failed;
}
