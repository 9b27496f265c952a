/* SPDX-License-Identifier: MIT
 *
 * test-manifest.c: manifests, right and wrong. */
#include <glib/gstdio.h>
#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-manifest.h"

#define HEAD "{\"format_version\": 1, \"name\": \"X\", \"module\": \"x.so\", \"abi\": 1"

static void
test_whole (void)
{
  const char *text
      = "{\"format_version\": 1, \"name\": \"CUDA\", \"vendor\": \"v\", \"version\": \"2\","
        " \"license\": \"MIT\", \"max_devices\": 64, \"module\": \"../lib/tiny-cuda.so\", "
        "\"abi\": 1,"
        " \"abi_minor_min\": 0, \"class\": \"gpu\", \"renderers\": [\"PTX\", \"NVRTC\"],"
        " \"match\": {\"modalias\": [\"pci:v000010DE*\"], \"device_nodes\": [\"/dev/nvidia0\"],"
        " \"cpu_features\": [\"avx2\"]}, \"probe\": {\"timeout_ms\": 10, \"env\": [\"A\"],"
        " \"files\": [\"/b\"]}, \"package\": \"libcuda1\", \"later\": {\"unknown\": [1, 2]}}";
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyManifest) manifest
      = tiny_manifest_parse ("/usr/share/plugins.d/cuda.json", text, -1, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (manifest->name, ==, "CUDA");
  g_assert_cmpstr (manifest->module, ==, "/usr/share/lib/tiny-cuda.so");
  g_assert_cmpuint (manifest->device_class, ==, TINY_CLASS_GPU);
  g_assert_cmpuint (manifest->max_devices, ==, 64);
  g_assert_cmpstr (manifest->renderers[1], ==, "NVRTC");
  g_assert_cmpstr (manifest->modalias[0], ==, "pci:v000010DE*");
  g_assert_cmpstr (manifest->device_nodes[0], ==, "/dev/nvidia0");
  g_assert_cmpstr (manifest->cpu_features[0], ==, "avx2");
  g_assert_cmpuint (manifest->timeout_ms, ==, 10);
  g_assert_cmpstr (manifest->probe_env[0], ==, "A");
  g_assert_cmpstr (manifest->probe_files[0], ==, "/b");
  g_assert_cmpstr (manifest->package, ==, "libcuda1");
}

static const struct {
  const char *text;
  TinyError code;
  const char *part;
} bad[] = {
  { "", TINY_ERROR_FORMAT, "not a JSON object" },
  { "[]", TINY_ERROR_FORMAT, "not a JSON object" },
  { "{", TINY_ERROR_FORMAT, "not JSON" },
  { "\xff\xfe", TINY_ERROR_FORMAT, "UTF-8" },
  { "{}", TINY_ERROR_FORMAT, "“format_version” is missing" },
  { "{\"format_version\": \"1\"}", TINY_ERROR_FORMAT,
    "“format_version” is not a whole number" },
  { "{\"format_version\": 2}", TINY_ERROR_FORMAT, "is 2, this core reads 1" },
  { "{\"format_version\": 1}", TINY_ERROR_FORMAT, "“name”" },
  { "{\"format_version\": 1, \"name\": \"a b\"}", TINY_ERROR_FORMAT, "“name” is “a b”" },
  { "{\"format_version\": 1, \"name\": \"../x\"}", TINY_ERROR_FORMAT, "“name”" },
  { "{\"format_version\": 1, \"name\": [1]}", TINY_ERROR_FORMAT, "“name” is not a text" },
  { "{\"format_version\": 1, \"name\": \"X\"}", TINY_ERROR_FORMAT, "“module” is missing" },
  { "{\"format_version\": 1, \"name\": \"X\", \"module\": \"x\"}", TINY_ERROR_ABI, "ABI 0" },
  { "{\"format_version\": 1, \"name\": \"X\", \"module\": \"x\", \"abi\": 2}", TINY_ERROR_ABI,
    "it is for plugin ABI 2, this core has 1" },
  { HEAD ", \"abi_minor_min\": 9}", TINY_ERROR_ABI, "1.9 or newer" },
  { HEAD ", \"max_devices\": 65}", TINY_ERROR_FORMAT, "“max_devices” is 65, not from 0 to 64" },
  { HEAD ", \"abi_minor_min\": -1}", TINY_ERROR_FORMAT, "“abi_minor_min” is -1" },
  { HEAD ", \"class\": \"toaster\"}", TINY_ERROR_FORMAT, "“class” is “toaster”" },
  { HEAD ", \"renderers\": \"LLVM\"}", TINY_ERROR_FORMAT, "“renderers” is not a list" },
  { HEAD ", \"renderers\": [1]}", TINY_ERROR_FORMAT, "“renderers” is not a list of texts" },
  { HEAD ", \"exports\": []}", TINY_ERROR_FORMAT, "“exports” is not an object" },
  { HEAD ", \"exports\": {\"x\": 1}}", TINY_ERROR_FORMAT, "“x” is not an object" },
  { HEAD ", \"exports\": {\"x\": {\"form\": 1}}}", TINY_ERROR_FORMAT, "“form” is not a text" },
  { HEAD ", \"exports\": {\"x y\": {}}}", TINY_ERROR_FORMAT, "“exports” has “x y”" },
  { HEAD ", \"match\": []}", TINY_ERROR_FORMAT, "“match” is not an object" },
  { HEAD ", \"probe\": {\"timeout_ms\": 1e9}}", TINY_ERROR_FORMAT, "“timeout_ms”" },
  { HEAD ", \"probe\": {\"timeout_ms\": 99999999}}", TINY_ERROR_FORMAT, "not from 0 to 60000" },
  { HEAD ", \"abi_minor_min\": 18446744073709551616}", TINY_ERROR_FORMAT,
    "the number 18446744073709551616 at byte " },
  { HEAD ", \"abi_minor_min\": -9223372036854775809}", TINY_ERROR_FORMAT, "beyond all" },
  { HEAD ", \"later\": [1e999]}", TINY_ERROR_FORMAT, "the number 1e999 at byte " },
  { HEAD ", \"name\": \"Y\"}", TINY_ERROR_FORMAT, "“name” is there twice" },
  { HEAD ", \"match\": {\"modalias\": [], \"\\u006dodalias\": []}}", TINY_ERROR_FORMAT,
    "“modalias” is there twice" },
  { HEAD ", \"vendor\": \"a\\u0000b\"}", TINY_ERROR_FORMAT, "a text with \\u0000 at byte " },
};

static void
test_bad (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyManifest) manifest
        = tiny_manifest_parse ("/x.json", bad[i].text, -1, &error);
    g_assert_null (manifest);
    if (!g_error_matches (error, TINY_ERROR, (gint) bad[i].code)
        || strstr (error->message, bad[i].part) == NULL)
      CASE_FAILS ("%s: %s", bad[i].text, error->message);
  }
}

/* Every cut of a right text, and depth and size that would hurt a parser. */
static void
test_hostile (void)
{
  const char *text = HEAD ", \"renderers\": [\"A\\u00e9\"], \"match\": {\"modalias\": []}}";
  for (gsize n = 0; n < strlen (text); n++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (tiny_manifest_parse ("/x.json", text, (gssize) n, &error));
    g_assert_nonnull (error);
  }
  g_autoptr (GError) error = NULL;
  g_autofree char *deep = g_strnfill (1 << 20, '[');
  memcpy (deep, "{\"a\":", 5);
  g_assert_null (tiny_json_parse (deep, -1, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
  g_assert_nonnull (strstr (error->message, "nested deeper"));
  g_clear_error (&error);
  g_assert_null (tiny_manifest_load ("/dev/zero", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
  g_clear_error (&error);
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("tiny-manifest-XXXXXX", &path, NULL);
  g_assert_true (g_file_set_contents (path, deep, 1 << 20, NULL));
  g_assert_null (tiny_manifest_load (path, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
  g_assert_nonnull (strstr (error->message, "larger than 65536"));
  g_close (fd, NULL);
  g_remove (path);
}

static void
test_match (void)
{
  const struct {
    const char *members;
    const char *reason; /* NULL: it fits */
  } cases[] = {
    { "", NULL },
    { ", \"match\": {}", NULL },
    { ", \"match\": {\"device_nodes\": [\"/dev/null\"]}", NULL },
    { ", \"match\": {\"device_nodes\": [\"/dev/nul*\"], \"modalias\": [\"none:*\"]}", NULL },
    { ", \"match\": {\"modalias\": [\"none:*\"]}", "looked for none:*" },
    { ", \"match\": {\"device_nodes\": [\"/dev/none?\"]}", "looked for /dev/none?" },
    { ", \"match\": {\"cpu_features\": [\"warp-drive\"]}", "this CPU has no warp-drive" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = g_strconcat (HEAD, cases[i].members, "}", NULL);
    g_autofree char *reason = NULL;
    g_autoptr (TinyManifest) manifest = tiny_manifest_parse ("/x.json", text, -1, NULL);
    g_assert_cmpint (tiny_manifest_matches (manifest, &reason), ==, cases[i].reason == NULL);
    if (cases[i].reason != NULL)
      g_assert_nonnull (strstr (reason, cases[i].reason));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/plugin/manifest/whole", test_whole);
  g_test_add_func ("/plugin/manifest/bad", test_bad);
  g_test_add_func ("/plugin/manifest/hostile", test_hostile);
  g_test_add_func ("/plugin/manifest/match", test_match);
  return g_test_run ();
}
