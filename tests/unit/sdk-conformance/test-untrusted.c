/* SPDX-License-Identifier: MIT
 *
 * test-untrusted.c: what vendors hand to users is read whatever is in it: certificates of which members were replaced
 * by anything, and bundles of which bytes were. Each is understood or refused with a reason; a crash, a warning or
 * an overrun ends the test. */
#include <glib/gstdio.h>
#include <string.h>

#include "plugin/tiny-json.h"
#include "tools/bundle.h"
#include "verdict.h"

static const char certificate[]
    = "{\"format\": \"tinycore-conformance 1\", \"status\": 0, \"certified\": \"core\","
      " \"subject\": {\"spec\": \"X\", \"sha256\": \"00\", \"build_id\": \"00\"},"
      " \"suite\": {\"version\": \"1\", \"build_id\": \"00\"},"
      " \"run\": {\"level\": \"core\", \"seed\": \"1\", \"filters\": [], \"complete\": true},"
      " \"score\": {\"must\": 1, \"passed\": 1, \"expected\": 1, \"recorded\": 1, \"absent\": "
      "1},"
      " \"absent\": [{\"name\": \"a/b\", \"reason\": \"none\"}], \"worst\": [], "
      "\"capabilities\": [],"
      " \"cases\": [{\"name\": \"a/c\", \"level\": \"core\", \"must\": true, \"outcome\": "
      "\"passed\", \"errors\":"
      " [{\"op\": 1, \"dtype\": 2, \"unit\": \"ulp\", \"worst\": 0.5, \"most\": 1}]},"
      " {\"name\": \"a/d\", \"level\": \"full\", \"must\": false, \"outcome\": \"failed\", "
      "\"messages\": [\"no\"],"
      " \"expectation\": {\"state\": \"holds\", \"text\": \"t\"}, \"stack\": \"s\"},"
      " {\"name\": \"r/e\", \"level\": \"core\", \"must\": false, \"outcome\": \"recorded\"}]}";

/* Gives TRUE where it could be read. */
static gboolean
judge (const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonNode) root = tiny_json_parse (text, -1, &error);
  JsonObject *object = root ? json_node_get_object (root) : NULL;
  gboolean good = object != NULL && conf_certificate_check_form (object, &error);
  g_assert_true (good == (error == NULL));
  if (good) {
    g_autoptr (GPtrArray) wrong = conf_certificate_contradictions (object);
    g_assert_nonnull (conf_certified_level (object));
    g_assert_nonnull (conf_certificate_text (object, "subject", "build_id"));
    for (guint i = 0; i < wrong->len; i++)
      g_assert_cmpuint (strlen (wrong->pdata[i]), >, 10);
  }
  return good;
}

/* Where the value that begins at @at ends. */
static const char *
end_of_value (const char *at)
{
  int depth = 0;
  gboolean is_text = FALSE;
  for (; *at != 0; at++) {
    if (*at == '"')
      is_text = !is_text;
    else if (!is_text && (*at == '{' || *at == '['))
      depth++;
    else if (!is_text && (*at == '}' || *at == ']')) {
      if (depth-- == 0)
        return at;
    } else if (!is_text && *at == ',' && depth == 0)
      return at;
  }
  return at;
}

/* Any value of any type instead of any that there is. */
static char *
replace_one (const char *text)
{
  static const char *const values[]
      = { "null", "0",    "-1",       "1e300",     "9223372036854775807",
          "true", "\"\"", "\"core\"", "[]",        "{}",
          "[[]]", "[{}]", "[null]",   "\"failed\"" };
  g_autoptr (GArray) starts = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; text[i + 1] != 0; i++)
    if (text[i] == ':' || text[i] == '[') {
      guint at = i + 1;
      g_array_append_val (starts, at);
    }
  guint at = g_array_index (starts, guint, g_test_rand_int_range (0, (gint32) starts->len));
  const char *value = values[g_test_rand_int_range (0, G_N_ELEMENTS (values))];
  return g_strdup_printf ("%.*s %s%s", (int) at, text, value, end_of_value (text + at));
}

static void
test_certificates (void)
{
  guint n_read = 0, n_refused = 0;
  g_assert_true (judge (certificate));
  for (guint i = 0; i < 4000; i++) {
    g_autofree char *text = g_strdup (certificate);
    for (guint n = 1 + i % 3; n > 0; n--) {
      char *next = replace_one (text);
      g_free (text);
      text = next;
    }
    *(judge (text) ? &n_read : &n_refused) += 1;
  }
  g_assert_cmpuint (MIN (n_read, n_refused), >, 100); /* both ways are gone */
}

/* ---- bundles ---- */
static char *
make_bundle (const char *folder, const char *end)
{
  static const char manifest[]
      = "{\"format_version\": 1, \"name\": \"X\", \"abi\": 1, \"module\": \"x.so\"}";
  g_autofree char *path = g_build_filename (folder, "x.json", NULL);
  g_autofree char *module = g_build_filename (folder, "x.so", NULL);
  g_autofree char *name = g_strconcat ("x", end, NULL);
  char *out = g_build_filename (folder, name, NULL);
  g_assert_true (g_file_set_contents (path, manifest, -1, NULL));
  g_assert_true (g_file_set_contents (module, "code", -1, NULL));
  g_assert_true (bundle_make (path, NULL, out, NULL));
  g_unlink (path);
  g_unlink (module);
  return out;
}

static gboolean
reads (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Bundle) bundle = bundle_read (path, &error);
  g_assert_true ((bundle != NULL) == (error == NULL));
  g_assert_true (bundle == NULL || g_hash_table_contains (bundle->files, bundle->module_name));
  return bundle != NULL;
}

static void
test_bundles (void)
{
  static const char *const ends[] = { ".tar", ".zip", ".tar.gz", ".tar.xz", ".tar.zst" };
  g_autofree char *folder = g_dir_make_tmp ("tiny-untrusted-XXXXXX", NULL);
  guint n_refused = 0;
  for (guint kind = 0; kind < G_N_ELEMENTS (ends); kind++) {
    g_autofree char *path = make_bundle (folder, ends[kind]);
    g_autofree char *good = NULL;
    gsize size;
    g_assert_true (reads (path));
    g_assert_true (g_file_get_contents (path, &good, &size, NULL));
    for (guint i = 0; i < 150; i++) {
      g_autofree char *data = g_memdup2 (good, size);
      for (guint n = 1 + i % 4; n > 0; n--)
        data[g_test_rand_int_range (0, (gint32) size)] = (char) g_test_rand_int_range (0, 256);
      gsize n_kept = i % 5 == 0 ? (gsize) g_test_rand_int_range (0, (gint32) size) : size;
      g_assert_true (g_file_set_contents_full (path, data, (gssize) n_kept,
                                               G_FILE_SET_CONTENTS_NONE, 0600, NULL));
      n_refused += !reads (path);
    }
    g_unlink (path);
  }
  g_rmdir (folder);
  g_assert_cmpuint (n_refused, >, 100);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sdk-conformance/untrusted/certificates", test_certificates);
  g_test_add_func ("/sdk-conformance/untrusted/bundles", test_bundles);
  return g_test_run ();
}
