/* SPDX-License-Identifier: MIT
 *
 * test-manifest-cache.c: what was parsed once is not parsed again, and what changed in any way is; a file that is
 * damaged, another's or open to others is never believed. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "plugin/tiny-discovery.h"

typedef struct {
  char *root, *manifests, *caches, *file; /* file: the cache's */
} Fixture;

static const char *const NAMES[] = { "ALPHA", "BETA", "GAMMA" };

static void
write_manifest (const Fixture *self, const char *file, const char *name)
{
  g_autofree char *path = g_build_filename (self->manifests, file, NULL);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"%s\", \"abi\": 1, \"module\": \"../x.so\","
      " \"vendor\": \"v\", \"class\": \"npu\", \"renderers\": [\"A\", \"B\"],"
      " \"match\": {\"modalias\": [\"pci:x*\"], \"cpu_features\": [\"avx2\"]},"
      " \"max_devices\": 3, \"probe\": {\"timeout_ms\": 70, \"env\": [\"E\"], \"files\": "
      "[\"/f\"]},"
      " \"isolated\": {\"timeout_ms\": 90}, \"package\": \"lib\","
      " \"exports\": {\"w\": {\"renderer\": \"A\", \"form\": \"files\", \"folder\": \"w\"}}}",
      name);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

/* What changed a moment ago is not remembered. */
static void
settle (void)
{
  g_usleep (G_USEC_PER_SEC / 8);
}

static void
set_up (Fixture *self, gconstpointer unused)
{
  self->root = g_dir_make_tmp ("tiny-manifests-XXXXXX", NULL);
  self->manifests = g_build_filename (self->root, "plugins.d", NULL);
  self->caches = g_build_filename (self->root, "cache", NULL);
  self->file = g_build_filename (self->caches, "manifests.bin", NULL);
  g_assert_cmpint (g_mkdir (self->manifests, 0755), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (NAMES); i++) {
    g_autofree char *name = g_strdup_printf ("%u.json", i);
    write_manifest (self, name, NAMES[i]);
  }
  settle ();
}

static void
clear_folder (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name;
       name = g_dir_read_name (dir)) {
    g_autofree char *file = g_build_filename (path, name, NULL);
    g_unlink (file);
  }
  g_rmdir (path);
}

static void
tear_down (Fixture *self, gconstpointer unused)
{
  g_chmod (self->caches, 0700);
  clear_folder (self->manifests);
  clear_folder (self->caches);
  g_rmdir (self->root);
  g_free (self->root);
  g_free (self->manifests);
  g_free (self->caches);
  g_free (self->file);
}

/* As a program that starts: everything found, in order, and how many were parsed. */
static GPtrArray *
start (const Fixture *self, guint *out_parsed)
{
  const char *const folders[] = { self->manifests, NULL };
  g_autoptr (TinyManifestCache) cache = tiny_manifest_cache_new (self->caches);
  GPtrArray *all = tiny_discover_cached (folders, NULL, cache, NULL);
  *out_parsed = tiny_manifest_cache_count_parsed (cache);
  return all;
}

static void
check_start (const Fixture *self, guint n_parsed, const char *names)
{
  guint parsed;
  g_autoptr (GPtrArray) all = start (self, &parsed);
  g_autoptr (GString) found = g_string_new (NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *it = all->pdata[i];
    g_string_append_printf (found, "%s%s%s", i ? " " : "", it->name,
                            it->is_mask    ? "(mask)"
                            : it->manifest ? ""
                                           : "(bad)");
  }
  g_assert_cmpstr (found->str, ==, names);
  g_assert_cmpuint (parsed, ==, n_parsed);
}

/* ---- what is right ---- */
static void
test_again (Fixture *self, gconstpointer unused)
{
  guint parsed;
  g_autoptr (GPtrArray) first = start (self, &parsed);
  g_assert_cmpuint (parsed, ==, 3);
  g_autoptr (GPtrArray) again = start (self, &parsed);
  g_assert_cmpuint (parsed, ==, 0);
  g_assert_cmpuint (again->len, ==, 3);
  for (guint i = 0; i < 3; i++) {
    const TinyManifest *a = ((TinyFound *) first->pdata[i])->manifest;
    const TinyManifest *b = ((TinyFound *) again->pdata[i])->manifest;
    const char *const texts[][2]
        = { { a->path, b->path },      { a->module, b->module },   { a->name, b->name },
            { a->vendor, b->vendor },  { a->version, b->version }, { a->license, b->license },
            { a->package, b->package } };
    char **const lists[][2]
        = { { a->renderers, b->renderers },       { a->modalias, b->modalias },
            { a->device_nodes, b->device_nodes }, { a->cpu_features, b->cpu_features },
            { a->probe_env, b->probe_env },       { a->probe_files, b->probe_files } };
    const TinyManifestExport *x = a->exports->pdata[0], *y = b->exports->pdata[0];
    for (guint j = 0; j < G_N_ELEMENTS (texts); j++)
      g_assert_cmpstr (texts[j][0], ==, texts[j][1]);
    for (guint j = 0; j < G_N_ELEMENTS (lists); j++)
      g_assert_true (
          g_strv_equal ((const char *const *) lists[j][0], (const char *const *) lists[j][1]));
    g_assert_cmpuint (a->abi, ==, b->abi);
    g_assert_cmpuint (a->abi_minor_min, ==, b->abi_minor_min);
    g_assert_cmpuint (a->device_class, ==, b->device_class);
    g_assert_cmpuint (b->max_devices, ==, 3);
    g_assert_cmpuint (b->timeout_ms, ==, 70);
    g_assert_cmpuint (b->call_timeout_ms, ==, 90);
    g_assert_cmpuint (b->exports->len, ==, 1);
    g_assert_cmpstr (x->name, ==, y->name);
    g_assert_cmpstr (x->renderer, ==, y->renderer);
    g_assert_cmpstr (x->form, ==, y->form);
    g_assert_cmpstr (x->folder, ==, y->folder);
  }
}

/* ---- manifests that change ---- */
static char *
manifest_path (const Fixture *self, const char *file)
{
  return g_build_filename (self->manifests, file, NULL);
}

static void
set_times (const char *path, const struct stat *as)
{
  const struct timespec times[] = { as->st_atim, as->st_mtim };
  g_assert_cmpint (utimensat (AT_FDCWD, path, times, 0), ==, 0);
}

static void
test_changes (Fixture *self, gconstpointer unused)
{
  g_autofree char *path = manifest_path (self, "1.json"), *other = manifest_path (self, "x");
  struct stat was;
  check_start (self, 3, "ALPHA BETA GAMMA");
  /* In place, of the same size, and with the time it had. */
  g_assert_cmpint (g_stat (path, &was), ==, 0);
  int fd = open (path, O_RDWR);
  g_assert_cmpint (
      pwrite (fd, "ZETA", 4, (off_t) strlen ("{\"format_version\": 1, \"name\": \"")), ==, 4);
  close (fd);
  set_times (path, &was);
  check_start (self, 1, "ALPHA ZETA GAMMA");
  /* Replaced by a file with the same size and time. */
  write_manifest (self, "x", "BETA");
  g_assert_cmpint (g_stat (path, &was), ==, 0);
  set_times (other, &was);
  settle ();
  g_assert_cmpint (g_rename (other, path), ==, 0);
  check_start (self, 1, "ALPHA BETA GAMMA");
  settle ();
  check_start (self, 1, "ALPHA BETA GAMMA"); /* it was too new to be remembered */
  check_start (self, 0, "ALPHA BETA GAMMA");
  /* A new one, one that is gone, one that became a mask, one that became nonsense. */
  write_manifest (self, "3.json", "DELTA");
  settle ();
  check_start (self, 1, "ALPHA BETA GAMMA DELTA");
  g_unlink (path);
  check_start (self, 0, "ALPHA GAMMA DELTA");
  path[strlen (path) - strlen ("1.json")] = '0';
  g_assert_true (g_file_set_contents (path, "", 0, NULL));
  check_start (self, 0, "0(mask) GAMMA DELTA");
  g_assert_true (g_file_set_contents (path, "{", 1, NULL));
  settle ();
  check_start (self, 1, "0(bad) GAMMA DELTA");
  check_start (self, 1, "0(bad) GAMMA DELTA"); /* its message is told every time */
}

/* Who may write a manifest is looked at on each start. */
static void
test_trust (Fixture *self, gconstpointer unused)
{
  g_autofree char *path = manifest_path (self, "1.json");
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_chmod (path, 0666);
  check_start (self, 0, "ALPHA 1(bad) GAMMA");
  g_chmod (path, 0644);
  settle ();
  check_start (self, 1, "ALPHA BETA GAMMA");
  g_chmod (self->manifests, 0777);
  check_start (self, 0, "0(bad) 1(bad) 2(bad)");
  g_chmod (self->manifests, 0755);
  check_start (self, 0, "ALPHA BETA GAMMA");
}

/* ---- caches that are not to be used ---- */
static void
expect_damage (const Fixture *self)
{
  g_test_expect_message ("tinycore", G_LOG_LEVEL_WARNING, "*manifests.bin is damaged*");
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_test_assert_expected_messages ();
}

static void
test_refused (Fixture *self, gconstpointer unused)
{
  struct stat info;
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_chmod (self->file, 0666);
  expect_damage (self);
  g_assert_cmpint (g_stat (self->file, &info), ==, 0);
  g_assert_cmpuint (info.st_mode & 0777, ==, 0600);
  check_start (self, 0, "ALPHA BETA GAMMA");
  /* A link, a folder and another's file are left as they are. */
  g_autofree char *real = g_build_filename (self->root, "real", NULL);
  g_assert_cmpint (g_rename (self->file, real), ==, 0);
  g_assert_cmpint (symlink (real, self->file), ==, 0);
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_assert_true (g_file_test (self->file, G_FILE_TEST_IS_SYMLINK));
  g_unlink (self->file);
  g_assert_cmpint (g_rename (real, self->file), ==, 0);
  if (geteuid () == 0) {
    g_assert_cmpint (chown (self->file, 65534, 65534), ==, 0);
    check_start (self, 3, "ALPHA BETA GAMMA");
    g_assert_cmpint (g_stat (self->file, &info), ==, 0);
    g_assert_cmpuint (info.st_uid, ==, 65534);
  } else
    g_test_message ("a file of another user is tried by root only");
  g_unlink (self->file);
  g_assert_cmpint (g_mkdir (self->file, 0700), ==, 0);
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_rmdir (self->file);
  /* Nothing can be kept there. */
  g_rmdir (self->caches);
  g_assert_true (g_file_set_contents (self->caches, "a file", -1, NULL));
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_unlink (self->caches);
}

static void
write_cache (const Fixture *self, const char *data, gsize n)
{
  g_unlink (self->file); /* one that is replaced would be waited for until it is on the disk */
  g_assert_true (g_file_set_contents_full (self->file, data, (gssize) n,
                                           G_FILE_SET_CONTENTS_CONSISTENT, 0600, NULL));
}

/* Any byte changed, any length: one warning, everything parsed again. */
static void
test_damaged (Fixture *self, gconstpointer unused)
{
  char *data;
  gsize size;
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_assert_true (g_file_get_contents (self->file, &data, &size, NULL));
  for (guint i = 0; i < 40; i++) {
    g_autofree char *copy = g_memdup2 (data, size);
    gsize n = size;
    if (i % 2 == 0)
      copy[(gsize) g_test_rand_int_range (0, (gint32) size)] ^= (char) (1 << (i / 2 % 8));
    else
      n = (gsize) g_test_rand_int_range (1, (gint32) size);
    write_cache (self, copy, n);
    expect_damage (self);
    check_start (self, 0, "ALPHA BETA GAMMA");
  }
  g_free (data);
}

/* The same with a checksum that is right, as somebody could write it: nothing but a manifest that could have been in
 * JSON comes out, whatever it says, and nothing is read outside. */
static guint64
sum_of (const guint8 *data, gsize n)
{
  guint64 sum = 0xcbf29ce484222325 ^ n;
  for (gsize i = 0; i < n; i += sizeof (guint64)) {
    guint64 word = 0;
    memcpy (&word, data + i, MIN (sizeof word, n - i));
    sum = (sum ^ word) * 0x100000001b3;
    sum ^= sum >> 32;
  }
  return sum;
}

static GLogWriterOutput
write_nothing (GLogLevelFlags level, const GLogField *fields, gsize n, gpointer unused)
{
  return G_LOG_WRITER_HANDLED;
}

static void
check_hostile (const Fixture *self)
{
  guint parsed;
  g_autoptr (GPtrArray) all = start (self, &parsed);
  g_assert_cmpuint (all->len, ==, 3);
  for (guint i = 0; i < all->len; i++) {
    const TinyManifest *manifest = ((TinyFound *) all->pdata[i])->manifest;
    g_assert_nonnull (manifest);
    g_assert_true (tiny_manifest_check (manifest, NULL));
    g_assert_true (g_path_is_absolute (manifest->module));
  }
}

static void
damage (guint8 *copy, gsize *n)
{
  static const guint32 sizes[] = { 0, 1, 0x7fffffff, 0xffffffff, 0x10000 };
  for (guint i = (guint) g_test_rand_int_range (1, 5); i > 0; i--) {
    gsize at = (gsize) g_test_rand_int_range (16, (gint32) *n - 4);
    if (g_test_rand_bit ())
      memcpy (copy + at, &sizes[g_test_rand_int_range (0, G_N_ELEMENTS (sizes))], 4);
    else
      copy[at] = (guint8) g_test_rand_int_range (0, 256);
  }
  if (g_test_rand_int_range (0, 8) == 0)
    *n = (gsize) g_test_rand_int_range (17, (gint32) *n);
}

static void
test_hostile (Fixture *self, gconstpointer unused)
{
  char *data;
  gsize size;
  check_start (self, 3, "ALPHA BETA GAMMA");
  g_assert_true (g_file_get_contents (self->file, &data, &size, NULL));
  g_log_set_writer_func (write_nothing, NULL, NULL);
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  for (guint i = 0; i < 200; i++) {
    g_autofree guint8 *copy = g_memdup2 (data, size);
    gsize n = size;
    damage (copy, &n);
    guint64 sum = sum_of (copy + 16, n - 16);
    memcpy (copy + 8, &sum, sizeof sum);
    write_cache (self, (const char *) copy, n);
    check_hostile (self);
  }
  g_free (data);
}

/* Many processes that begin at once, with a cache and without. */
static void
test_together (Fixture *self, gconstpointer unused)
{
  for (guint i = 0; i < 8; i++)
    if (fork () == 0) {
      for (guint round = 0; round < 20; round++) {
        guint parsed;
        g_autoptr (GPtrArray) all = start (self, &parsed);
        if (all->len != 3 || ((TinyFound *) all->pdata[2])->manifest == NULL)
          _exit (1);
        if (round % 5 == 0)
          g_unlink (self->file);
      }
      _exit (0);
    }
  int status;
  while (wait (&status) > 0)
    g_assert_cmpint (status, ==, 0);
  check_start (self, 0, "ALPHA BETA GAMMA");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define CASE(name, function)                                                                   \
  g_test_add ("/plugin/manifest-cache/" name, Fixture, NULL, set_up, function, tear_down)
  CASE ("again", test_again);
  CASE ("changes", test_changes);
  CASE ("trust", test_trust);
  CASE ("refused", test_refused);
  CASE ("damaged", test_damaged);
  CASE ("together", test_together);
  CASE ("hostile", test_hostile);
  return g_test_run ();
}
