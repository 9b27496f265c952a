/* SPDX-License-Identifier: MIT
 *
 * test-cache.c: the folder of compiled programs keeps to its size, keeps what is used, and serves
 * several processes at once with entries that are right or not there. */
#include "engine/tiny-cache.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-env.h"

enum { MIB = 1 << 20, ENTRY_BYTES = 60000, N_ENTRIES = 40, N_PROCESSES = 3, N_ROUNDS = 60 };

static char *programs;

static char *
key_of (guint i)
{
  return g_strdup_printf ("%032x", i * 2654435761u);
}

/* An entry's bytes follow from its number. */
static GBytes *
content_of (guint i)
{
  guint8 *data = g_malloc (ENTRY_BYTES);
  for (guint k = 0; k < ENTRY_BYTES; k++)
    data[k] = (guint8) (i * 7 + k % 251);
  return g_bytes_new_take (data, ENTRY_BYTES);
}

static void
store (guint i)
{
  g_autofree char *key = key_of (i);
  g_autoptr (GBytes) content = content_of (i);
  tiny_cache_store (key, content);
}

/* Whether entry @i is there; it is right then. */
static gboolean
load (guint i)
{
  g_autofree char *key = key_of (i);
  g_autoptr (GBytes) found = tiny_cache_load (key), content = content_of (i);
  if (found != NULL)
    g_assert_true (g_bytes_equal (found, content));
  return found != NULL;
}

/* Lets entry @i look as if it were last used @age_s seconds ago. */
static void
age (const char *name, gint64 age_s)
{
  g_autofree char *path = g_build_filename (programs, name, NULL);
  struct timespec times[2] = { { time (NULL) - age_s, 0 }, { time (NULL) - age_s, 0 } };
  g_assert_cmpint (utimensat (AT_FDCWD, path, times, 0), ==, 0);
}

static void
age_entry (guint i, gint64 age_s)
{
  g_autofree char *key = key_of (i);
  age (key, age_s);
}

static gint64
bytes_in_folder (void)
{
  g_autoptr (GDir) dir = g_dir_open (programs, 0, NULL);
  gint64 total = 0;
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *path = g_build_filename (programs, name, NULL);
    GStatBuf about;
    if (g_stat (path, &about) == 0)
      total += about.st_size;
  }
  return total;
}

static void
empty_folder (void)
{
  g_autoptr (GDir) dir = g_dir_open (programs, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *path = g_build_filename (programs, name, NULL);
    g_unlink (path);
  }
}

/* The oldest go, but not one that was used since. */
static void
test_limit (void)
{
  empty_folder ();
  tiny_env_set_int (TINY_ENV_CACHE_MB, 1);
  for (guint i = 0; i < 16; i++) {
    store (i);
    age_entry (i, 10000 - i);
  }
  for (guint i = 0; i < 16; i++)
    if (i != 3)
      age_entry (i, 10000 - i);
  g_assert_true (load (3));
  store (100);
  store (101); /* passes the limit */
  g_assert_cmpint (bytes_in_folder (), <=, MIB / 4 * 3 + MIB / 16);
  g_assert_cmpint (bytes_in_folder (), >=, MIB / 2);
  g_assert_false (load (0));
  g_assert_false (load (2));
  g_assert_true (load (3));
  g_assert_false (load (4));
  g_assert_true (load (15));
  g_assert_true (load (100));
  g_assert_true (load (101));
}

/* Entries of a clock that was years ahead go first: they had stayed for ever, and each that was new went at once. Nor
 * does what a process left half written then stay. */
static void
test_ahead (void)
{
  enum { YEARS = 10 * 365 * 24 * 3600 };
  g_autofree char *half = g_build_filename (programs, "0123.ABCDEF", NULL);
  empty_folder ();
  tiny_env_set_int (TINY_ENV_CACHE_MB, 0);
  for (guint i = 0; i < 16; i++) {
    store (i);
    age_entry (i, -YEARS);
  }
  g_assert_true (g_file_set_contents (half, "x", 1, NULL));
  age ("0123.ABCDEF", -YEARS);
  tiny_env_set_int (TINY_ENV_CACHE_MB, 1);
  for (guint i = 100; i < 110; i++) {
    store (i);
    age_entry (i, 110 - i);
    g_assert_true (load (i));
  }
  g_assert_false (g_file_test (half, G_FILE_TEST_EXISTS));
  for (guint i = 100; i < 110; i++)
    g_assert_true (load (i));
}

/* Sources that a compiler refused keep below their part of the limit, the newest among them. */
static void
test_failed (void)
{
  enum { N_BYTES = 20000, N_FILES = 12 };
  g_autofree char *text = g_strnfill (N_BYTES, 'x');
  g_autofree char *folder = g_build_filename (tiny_cache_get_dir (), "failed", NULL);
  g_autofree char *last = NULL;
  guint n = 0;
  tiny_env_set_int (TINY_ENV_CACHE_MB, 1);
  for (guint i = 0; i < N_FILES; i++) {
    g_autofree char *name = g_strdup_printf ("kernel-%02u.%s", i, i % 2 ? "c" : "txt");
    g_free (last);
    last = tiny_cache_keep_failed (name, text);
    g_assert_nonnull (last);
    g_usleep (10000); /* a file system's clock */
  }
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    n += g_str_has_prefix (name, "kernel-");
  g_assert_cmpuint (n, >, 0);
  g_assert_cmpuint (n * N_BYTES, <=, MIB / 16);
  g_assert_true (g_file_test (last, G_FILE_TEST_EXISTS));
}

/* Entries that changed places, and those that others may have written, are made anew. */
static void
test_strangers (void)
{
  empty_folder ();
  g_autofree char *first = key_of (0), *second = key_of (1);
  g_autofree char *a = g_build_filename (programs, first, NULL);
  g_autofree char *b = g_build_filename (programs, second, NULL);
  g_autofree char *c = g_build_filename (programs, "between", NULL);
  store (0);
  store (1);
  g_assert_true (g_rename (a, c) == 0 && g_rename (b, a) == 0 && g_rename (c, b) == 0);
  for (guint i = 0; i < 2; i++) {
    g_test_expect_message ("tinycore", G_LOG_LEVEL_WARNING,
                           "*is damaged and will be made anew");
    g_assert_false (load (i));
    g_test_assert_expected_messages ();
    g_assert_false (g_file_test (i == 0 ? a : b, G_FILE_TEST_EXISTS));
  }
  const guint gives_away = geteuid () == 0;
  for (guint i = 0; i < 4 + gives_away; i++) {
    store (0);
    if (i < 2)
      g_assert_cmpint (chmod (a, i == 0 ? 0660 : 0606), ==, 0);
    else if (i < 4)
      g_assert_true (g_rename (a, c) == 0 && (i == 2 ? symlink (c, a) : mkfifo (a, 0600)) == 0);
    else
      g_assert_cmpint (chown (a, 65534, 65534), ==, 0);
    g_test_expect_message ("tinycore", G_LOG_LEVEL_WARNING,
                           "*is no file that only this user can write and will be made anew");
    g_assert_false (load (0));
    g_test_assert_expected_messages ();
  }
  store (0);
  g_assert_true (load (0));
}

static void
test_no_limit (void)
{
  empty_folder ();
  tiny_env_set_int (TINY_ENV_CACHE_MB, 0);
  for (guint i = 0; i < N_ENTRIES; i++)
    store (i);
  for (guint i = 0; i < N_ENTRIES; i++)
    g_assert_true (load (i));
}

/* An account that is wrong, missing or nonsense is made anew; what a dead process left goes. */
static void
test_repair (void)
{
  static const char *const accounts[] = { NULL, "", "nonsense, and rather a lot of that" };
  tiny_env_set_int (TINY_ENV_CACHE_MB, 1);
  for (guint i = 0; i < G_N_ELEMENTS (accounts); i++) {
    g_autofree char *path = g_build_filename (programs, "account", NULL);
    g_autofree char *old = g_build_filename (programs, "0123.ABCDEF", NULL);
    g_autofree char *young = g_build_filename (programs, "4567.ABCDEF", NULL);
    empty_folder ();
    tiny_env_set_int (TINY_ENV_CACHE_MB, 0);
    for (guint k = 0; k < N_ENTRIES; k++) {
      store (k);
      age_entry (k, 100); /* files written within one tick of the clock are of one age */
    }
    if (accounts[i] != NULL)
      g_assert_true (g_file_set_contents (path, accounts[i], -1, NULL));
    g_assert_true (g_file_set_contents (old, "x", 1, NULL));
    g_assert_true (g_file_set_contents (young, "x", 1, NULL));
    age ("0123.ABCDEF", 7200);
    tiny_env_set_int (TINY_ENV_CACHE_MB, 1);
    store (200);
    g_assert_cmpint (bytes_in_folder (), <=, MIB);
    g_assert_true (load (200));
    g_assert_false (g_file_test (old, G_FILE_TEST_EXISTS));
    g_assert_true (g_file_test (young, G_FILE_TEST_EXISTS));
  }
}

/* Stores and loads at random; what is found is right. */
static int
work (guint seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  guint n_found = 0;
  for (guint i = 0; i < N_ROUNDS; i++) {
    store ((guint) g_rand_int_range (rand, 0, N_ENTRIES));
    n_found += load ((guint) g_rand_int_range (rand, 0, N_ENTRIES));
  }
  return n_found > 0 ? 0 : 1;
}

static void
test_processes (void)
{
  pid_t children[N_PROCESSES];
  empty_folder ();
  tiny_env_set_int (TINY_ENV_CACHE_MB, 1);
  for (guint i = 0; i < N_PROCESSES; i++) {
    children[i] = fork ();
    g_assert_cmpint (children[i], >=, 0);
    if (children[i] == 0)
      _exit (work (i + 1));
  }
  for (guint i = 0; i < N_PROCESSES; i++) {
    int status;
    g_assert_cmpint (waitpid (children[i], &status, 0), ==, children[i]);
    g_assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
  }
  /* Those that did not get the account's lock went uncounted: a few entries. */
  g_assert_cmpint (bytes_in_folder (), <=, 3 * MIB / 2);
  g_assert_cmpint (bytes_in_folder (), >, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_autofree char *folder = g_dir_make_tmp ("tinycore-cache-XXXXXX", NULL);
  g_assert_nonnull (folder);
  tiny_env_set_text (TINY_ENV_CACHE_DIR, folder);
  programs = g_build_filename (folder, "programs", NULL);
  g_test_add_func ("/engine/cache/limit", test_limit);
  g_test_add_func ("/engine/cache/ahead", test_ahead);
  g_test_add_func ("/engine/cache/failed", test_failed);
  g_test_add_func ("/engine/cache/no-limit", test_no_limit);
  g_test_add_func ("/engine/cache/strangers", test_strangers);
  g_test_add_func ("/engine/cache/repair", test_repair);
  g_test_add_func ("/engine/cache/processes", test_processes);
  int result = g_test_run ();
  empty_folder ();
  g_rmdir (programs);
  g_rmdir (folder);
  g_free (programs);
  return result;
}
