/* SPDX-License-Identifier: MIT
 *
 * test-scan.c: the CUDA backend finds GPUs of NVIDIA's by files alone: displays and 3D controllers, in the order of
 * their places on the bus, with the driver's words for them, and says what is missing where one cannot be used. */
#include <glib/gstdio.h>

#include "../../plugins/cuda/cuda.h"

static char *root;

static void
write_file (const char *path, const char *text)
{
  g_autofree char *whole = g_build_filename (root, path, NULL);
  g_autofree char *folder = g_path_get_dirname (whole);
  g_assert_cmpint (g_mkdir_with_parents (folder, 0755), ==, 0);
  g_assert_true (g_file_set_contents (whole, text, -1, NULL));
}

static void
add_function (const char *address, const char *vendor, const char *class)
{
  g_autofree char *first = g_strdup_printf ("sys/bus/pci/devices/%s/vendor", address);
  g_autofree char *second = g_strdup_printf ("sys/bus/pci/devices/%s/class", address);
  write_file (first, vendor);
  write_file (second, class);
}

static void
set_up (void)
{
  root = g_dir_make_tmp ("tiny-scan-XXXXXX", NULL);
  g_assert_nonnull (root);
  g_assert_cmpint (g_chmod (root, 0755), ==, 0);
}

static void
tear_down (void)
{
  const char *argv[] = { "rm", "-rf", "--", root, NULL };
  g_assert_true (g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                               NULL, NULL, NULL, NULL));
  g_clear_pointer (&root, g_free);
}

static TinyStatus
scan_root (TinyCandidate out[CUDA_MAX_DEVICES], uint32_t *n, TinyPluginError *error)
{
  *error = (TinyPluginError){ .struct_size = sizeof *error };
  return cuda_scan_files (root, out, n, error);
}

static void
test_found (void)
{
  static TinyCandidate out[CUDA_MAX_DEVICES];
  TinyPluginError error;
  uint32_t n;
  set_up ();
  add_function ("0000:c1:00.0", "0x10de\n", "0x030200\n");
  add_function ("0000:01:00.0", "0x10de\n", "0x030000\n");
  add_function ("0000:01:00.1", "0x10de\n", "0x040300\n"); /* its sound */
  add_function ("0000:02:00.0", "0x8086\n", "0x030000\n");
  write_file ("proc/driver/nvidia/gpus/0000:c1:00.0/information",
              "Model: \t\t NVIDIA H100 PCIe\nIRQ:   \t\t 99\n");
  write_file ("sys/module/nvidia/version", "580.82.07\n");
  g_assert_cmpint (scan_root (out, &n, &error), ==, TINY_STATUS_OK);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpstr (out[0].id, ==, "pci-0000:01:00.0");
  g_assert_cmpstr (out[0].name, ==, "NVIDIA GPU");
  g_assert_cmpstr (out[1].id, ==, "pci-0000:c1:00.0");
  g_assert_cmpstr (out[1].name, ==, "NVIDIA H100 PCIe");
  g_assert_cmpstr (out[1].driver, ==, "nvidia 580.82.07");
  g_assert_cmpuint (out[1].device_class, ==, TINY_CLASS_GPU);
  tear_down ();
}

static void
test_none (void)
{
  static TinyCandidate out[CUDA_MAX_DEVICES];
  TinyPluginError error;
  uint32_t n = 7;
  set_up ();
  g_assert_cmpint (scan_root (out, &n, &error), ==, TINY_STATUS_NO_DEVICE);
  add_function ("0000:02:00.0", "0x8086\n", "0x030000\n");
  g_assert_cmpint (scan_root (out, &n, &error), ==, TINY_STATUS_NO_DEVICE);
  g_assert_cmpuint (n, ==, 0);
  g_assert_cmpstr (error.text, ==, "no NVIDIA GPU is on the PCI bus");
  tear_down ();
}

static void
test_obstacles (void)
{
  static TinyCandidate out[CUDA_MAX_DEVICES];
  TinyPluginError error;
  uint32_t n;
  set_up ();
  add_function ("0000:01:00.0", "0x10de\n", "0x030000\n");
  g_assert_cmpint (scan_root (out, &n, &error), ==, TINY_STATUS_DRIVER);
  g_assert_nonnull (strstr (error.text, "module nvidia is not loaded"));
  g_assert_nonnull (strstr (error.hint, "nvidia-driver"));
  write_file ("proc/driver/nvidia/version", "");
  g_assert_cmpint (scan_root (out, &n, &error), ==, TINY_STATUS_OK);
  write_file ("dev/nvidiactl", "");
  g_assert_cmpint (scan_root (out, &n, &error), ==, TINY_STATUS_OK);
  g_autofree char *node = g_build_filename (root, "dev/nvidiactl", NULL);
  g_assert_cmpint (g_chmod (node, 0), ==, 0);
  const uid_t user = geteuid ();
  g_assert_cmpint (user == 0 ? seteuid (65534) : 0, ==, 0); /* root may open every file */
  const TinyStatus status = scan_root (out, &n, &error);
  g_assert_cmpint (seteuid (user), ==, 0);
  g_assert_cmpint (status, ==, TINY_STATUS_PERMISSION);
  g_assert_nonnull (strstr (error.hint, "group"));
  tear_down ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nvidia/scan/found", test_found);
  g_test_add_func ("/nvidia/scan/none", test_none);
  g_test_add_func ("/nvidia/scan/obstacles", test_obstacles);
  return g_test_run ();
}
