/* SPDX-License-Identifier: MIT
 *
 * test-crash.c: what a program dies of in a backend is known to the next one, which has the backend in a process of
 * its own; what it dies of elsewhere, or by somebody's signal, is held against none. This program is also the one
 * that dies. */
#include <glib/gstdio.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/case-fails.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "device/tiny-buffer.h"
#include "device/tiny-watch.h"
#include "plugin/tiny-registry.h"
#include "tensor/tiny-tensor-kernel.h"
#include "tiny.h"
#include "process-state.h"

static char *folder, *cache, *note, *manifest;
static guint n_warnings;
static char *last_warning;

static TinyRegistry *
new_registry (void)
{
  const char *folders[] = { folder, NULL };
  return tiny_registry_new (folders, cache);
}

/* ---- the program that dies ---- */
static void *
die_here (void *unused)
{
  g_usleep (200 * 1000);
  raise (SIGSEGV);
  return unused;
}

static void *
kill_self (void *number)
{
  g_usleep (200 * 1000);
  kill (getpid (), GPOINTER_TO_INT (number)); /* as another process would */
  return NULL;
}

static void *
leave (void *unused)
{
  g_usleep (200 * 1000);
  exit (7);
}

static void
handle (int number)
{
  _exit (9);
}

/* What happens beside the backend's functions. */
static void
prepare (const char *beside)
{
  pthread_t thread;
  const struct {
    const char *name;
    void *(*run) (void *);
    int number;
  } rows[] = { { "crash", die_here, 0 },
               { "exit", leave, 0 },
               { "SIGTERM", kill_self, SIGTERM },
               { "SIGKILL", kill_self, SIGKILL },
               { "SIGSEGV", kill_self, SIGSEGV } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (g_str_equal (beside, rows[i].name))
      pthread_create (&thread, NULL, rows[i].run, GINT_TO_POINTER (rows[i].number));
  if (g_str_equal (beside, "handler"))
    signal (SIGSEGV, handle);
}

static void
use (void)
{
  g_autoptr (TinyRegistry) registry = new_registry ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, "FAULTY", &error);
  g_assert_no_error (error);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 4096);
  g_assert_true (tiny_buffer_ensure (buffer, &error));
  g_assert_true (tiny_device_submit (device, NULL, 0, NULL, &error));
}

static const char strange[]
    = "%i = range.index{number=0, kind=loop}(64)\n"
      "sink{name=\"strange\"}(store(param.f32{slot=0, shape=[64]}, %i, 1.0))\n";

/* The work of the backend before it dies: a kernel that the scheduler made, or one that a program wrote. */
static void
compute (gboolean is_untrusted)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (TinyTensor) tensor = NULL;
  if (is_untrusted) {
    outputs = tiny_custom_kernel (strange, NULL, 0);
    tensor = g_object_ref (outputs->pdata[0]);
  } else {
    tensor = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_F32, 0, 64, 1));
  }
  tiny_tensor_realize (tensor, &error);
  g_assert_no_error (error);
}

/* Runs @argv so that it dies; the status of waitpid(). */
static int
die_as (char **argv, const char *fault, const char *beside)
{
  g_auto (GStrv) environment
      = g_environ_setenv (g_get_environ (), "TINY_TEST_FAULT", fault, TRUE);
  g_autoptr (GError) error = NULL;
  int status;
  environment = g_environ_setenv (environment, "TINY_PLUGIN_FILES", manifest, TRUE);
  if (g_str_equal (beside, "untrusted")) /* its result is copied by a kernel that is not */
    environment = g_environ_setenv (environment, "TINY_TEST_KERNEL", "strange", TRUE);
  environment = g_environ_setenv (environment, "DEV", "FAULTY", TRUE);
  environment
      = g_environ_setenv (environment, "TINY_NO_CACHE", "1", TRUE); /* of what is compiled */
  g_spawn_sync (NULL, argv, environment, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL, &status,
                &error);
  g_assert_no_error (error);
  return status;
}

/* Runs this program so that it dies. */
static int
die (const char *fault, const char *beside)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  char *argv[] = { self, (char *) "--die", (char *) beside, NULL };
  return die_as (argv, fault, beside);
}

/* ---- tests ---- */
static char *
read_note (void)
{
  char *text = NULL;
  g_file_get_contents (note, &text, NULL, NULL);
  return text;
}

static const struct {
  const char *fault, *beside; /* in the backend, and in the program meanwhile */
  int signal;                 /* that it dies of, or … */
  int status;                 /* … its exit status */
  const char *note;           /* what the note holds; NULL: there is none */
} rows[] = {
  { "load crash", "", SIGSEGV, 0, "function init\nsignal 11\nend\n" },
  { "open crash", "", SIGSEGV, 0, "function open\nsignal 11\n" },
  { "info abort", "", SIGABRT, 0, "function info\nsignal 06\n" },
  { "target crash", "", SIGSEGV, 0, "function target\nsignal 11\n" },
  { "queue_create crash", "", SIGSEGV, 0, "function queue_create\nsignal 11\n" },
  { "alloc abort", "", SIGABRT, 0, "function alloc\nsignal 06\n" },
  { "submit crash", "", SIGSEGV, 0, "function submit\nsignal 11\n" },
  { "submit thread", "", SIGSEGV, 0, "function submit\nsignal 11\n" },
  { "submit code", "", SIGILL, 0, "function submit\nsignal 04\n" },
  { "submit exit", "", 0, 3, "function submit\nexit\n" },
  { "free crash", "", SIGSEGV, 0, "function free\nsignal 11\n" },
  { "close crash", "", SIGSEGV, 0, "function close\nsignal 11\n" },
  { "submit hang", "crash", SIGSEGV, 0, NULL },
  { "submit hang", "exit", 0, 7, NULL },
  { "submit hang", "SIGTERM", SIGTERM, 0, NULL },
  { "submit hang", "SIGKILL", SIGKILL, 0, NULL },
  { "submit hang", "SIGSEGV", SIGSEGV, 0, NULL },
  { "submit crash", "handler", 0, 9, NULL },
  { "none", "", 0, 0, NULL },
};

static void
test_notes (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_test_message ("%s, %s", rows[i].fault, rows[i].beside);
    int status = die (rows[i].fault, rows[i].beside);
    if (rows[i].signal != 0) {
      g_assert_true (WIFSIGNALED (status));
      g_assert_cmpint (WTERMSIG (status), ==, rows[i].signal);
    } else {
      g_assert_true (WIFEXITED (status));
      g_assert_cmpint (WEXITSTATUS (status), ==, rows[i].status);
    }
    g_autofree char *text = read_note ();
    if (rows[i].note == NULL)
      g_assert_cmpstr (text, ==, NULL);
    else if (text == NULL || strstr (text, rows[i].note) == NULL)
      CASE_FAILS ("“%s”", text ? text : "no note");
    g_unlink (note);
  }
}

static void
count_warning (const char *domain, GLogLevelFlags level, const char *text, gpointer data)
{
  n_warnings++;
  g_free (last_warning);
  last_warning = g_strdup (text);
}

static const char *
reason_of (TinyRegistry *registry, GPtrArray **out_list)
{
  *out_list = tiny_registry_list (registry);
  for (guint i = 0; i < (*out_list)->len; i++) {
    const TinyEntry *entry = (*out_list)->pdata[i];
    if (g_str_equal (entry->name, "FAULTY")) {
      g_assert_cmpint (entry->state, ==, TINY_ENTRY_READY);
      return entry->reason;
    }
  }
  g_assert_not_reached ();
}

static void
assert_has (const char *text, const char *part)
{
  if (text == NULL || strstr (text, part) == NULL)
    CASE_FAILS ("“%s” does not hold “%s”", text ? text : "(nothing)", part);
}

/* Opens it, submits, and says whether that took another process. */
static gboolean
is_isolated (TinyRegistry *registry)
{
  g_autoptr (GError) error = NULL;
  const guint n_children = count_children (NULL);
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, "FAULTY", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (tiny_device_get_name (device), ==, "FAULTY");
  g_assert_true (tiny_device_submit (device, NULL, 0, NULL, &error));
  return count_children (NULL) > n_children;
}

/* A kernel that a program wrote is at fault itself: in its own thread, in threads beside it, in the compiler and while it is
 * loaded. The same fault of another kernel is the backend's. */
static void
test_untrusted (void)
{
  const struct {
    const char *fault;
    int signal, status;
    const char *note;
  } faults[] = {
    { "submit crash", SIGSEGV, 0, "function submit\nsignal 11\n" },
    { "submit thread", SIGSEGV, 0, "function submit\nsignal 11\n" },
    { "submit code", SIGILL, 0, "function submit\nsignal 04\n" },
    { "submit exit", 0, 3, "function submit\nexit\n" },
    { "compile abort", SIGABRT, 0, "function compile\nsignal 06\n" },
    { "program_load crash", SIGSEGV, 0, "function program_load\nsignal 11\n" },
  };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (faults); i++) {
    const gboolean is_untrusted = i % 2;
    const char *kind = is_untrusted ? "untrusted" : "plain";
    g_test_message ("%s, %s", faults[i / 2].fault, kind);
    const int status = die (faults[i / 2].fault, kind);
    g_assert_cmpint (WIFSIGNALED (status) ? WTERMSIG (status) : 0, ==, faults[i / 2].signal);
    g_assert_cmpint (WIFEXITED (status) ? WEXITSTATUS (status) : 0, ==, faults[i / 2].status);
    g_autofree char *text = read_note ();
    if (is_untrusted ? text != NULL : text == NULL || strstr (text, faults[i / 2].note) == NULL)
      CASE_FAILS ("“%s”", text ? text : "no note");
    g_autoptr (TinyRegistry) registry = new_registry ();
    if (is_isolated (registry) == is_untrusted)
      CASE_FAILS ("%s: the next program has it %s", kind,
                  is_untrusted ? "in another process" : "in its own process");
    g_unlink (note);
  }
}

/* The kernels of a file are a stranger's to tinycore compile. */
static void
test_compile (void)
{
  g_autofree char *kernel = g_build_filename (folder, "k.tir", NULL);
  char *argv[] = { (char *) TINYCORE,
                   (char *) "compile",
                   (char *) "--emit",
                   (char *) "binary",
                   (char *) "-o",
                   (char *) "/dev/null",
                   kernel,
                   NULL };
  g_assert_true (g_file_set_contents (kernel, strange, -1, NULL));
  const int status = die_as (argv, "compile abort", "");
  g_assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT);
  g_assert_false (g_file_test (note, G_FILE_TEST_EXISTS));
}

static void
test_next_start (void)
{
  g_autoptr (GPtrArray) list = NULL, later = NULL;
  n_warnings = 0;
  die ("submit crash", "");
  g_autoptr (TinyRegistry) registry = new_registry ();
  g_assert_true (is_isolated (registry));
  g_assert_true (tiny_registry_open (registry, "FAULTY:1", NULL) != NULL);
  g_assert_cmpuint (n_warnings, ==, 1);
  g_test_message ("%s", last_warning);
  assert_has (last_warning,
              "FAULTY: a program crashed with signal 11 (Segmentation fault) in its "
              "submit on 20");
  assert_has (last_warning, "(build-id ");
  const char *reason = reason_of (registry, &list);
  assert_has (reason, "runs in a process of its own, as a program crashed with signal 11");
  /* A person says so. */
  tiny_registry_retry (registry, "FAULTY");
  g_assert_cmpstr (reason_of (registry, &later), ==, NULL);
  g_autoptr (TinyRegistry) next = new_registry ();
  g_assert_false (is_isolated (next));
  g_assert_cmpuint (n_warnings, ==, 1);
}

/* Notes of another build, of another file and those that are damaged count for nothing, and go. */
static void
test_other_notes (void)
{
  die ("submit crash", "");
  g_autofree char *text = read_note ();
  g_assert_nonnull (text);
  assert_has (text, "build build-id ");
  for (guint i = 0; i < 4; i++) {
    g_autofree char *other = g_strdup (text);
    if (i == 0)
      *strstr (other, "build-id ") = 'B';
    else if (i == 1)
      other[strlen ("tiny-crash 1\nmodule /")] ^= 1;
    else if (i == 2)
      other[strlen (other) - 3] = 0; /* cut off */
    else
      other[0] = 0;
    g_assert_true (g_file_set_contents (note, other, -1, NULL));
    g_autoptr (TinyRegistry) registry = new_registry ();
    g_assert_false (is_isolated (registry));
    g_assert_false (g_file_test (note, G_FILE_TEST_EXISTS));
  }
  g_assert_true (g_file_set_contents (note, text, -1, NULL));
  g_autoptr (TinyRegistry) registry = new_registry ();
  g_assert_true (is_isolated (registry)); /* the control */
  tiny_env_set_int (TINY_ENV_CRASH_NOTES, 0);
  g_autoptr (TinyRegistry) careless = new_registry ();
  g_assert_false (is_isolated (careless));
  tiny_env_set_int (TINY_ENV_CRASH_NOTES, 1);
  g_unlink (note);
}

/* More threads than there are places, one after the other and at once. */
static void *
enter_and_leave (void *watch)
{
  for (guint i = 0; i < 1000; i++) {
    const TinyWatchPlace outer = tiny_watch_enter (watch, "outer");
    const TinyWatchPlace inner = tiny_watch_enter (watch, "inner");
    tiny_watch_leave (watch, inner);
    tiny_watch_leave (watch, outer);
  }
  return NULL;
}

static void
test_places (void)
{
  TinyWatch *watch = tiny_watch_new (note, "/nonexistent", "");
  for (guint round = 0; round < 100; round++) {
    pthread_t threads[10];
    for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
      pthread_create (&threads[i], NULL, enter_and_leave, watch);
    for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
      pthread_join (threads[i], NULL);
  }
  const TinyWatchPlace before = tiny_watch_enter (watch, "here");
  g_assert_cmpstr (tiny_watch_here->function, ==, "here");
  tiny_watch_leave (watch, before);
  g_assert_null (tiny_watch_here->watch);
  tiny_watch_free (watch);
}

int
main (int argc, char **argv)
{
  if (argc == 3 && g_str_equal (argv[1], "--die")) {
    const struct rlimit none = { 0, 0 };
    setrlimit (RLIMIT_CORE, &none);
    cache = g_strdup (g_getenv ("TINY_CACHE_DIR"));
    folder = g_path_get_dirname (cache);
    prepare (argv[2]);
    if (g_str_equal (argv[2], "plain") || g_str_equal (argv[2], "untrusted"))
      compute (g_str_equal (argv[2], "untrusted"));
    else
      use ();
    return 0;
  }
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("tiny-crash-XXXXXX", NULL);
  cache = g_build_filename (folder, "cache", NULL);
  note = g_build_filename (cache, "crashes", "FAULTY", NULL);
  g_setenv ("TINY_CACHE_DIR", cache, TRUE);
  manifest = g_build_filename (folder, "FAULTY.json", NULL);
  g_assert_true (g_file_set_contents (
      manifest,
      "{\"format_version\": 1, \"name\": \"FAULTY\", \"abi\": 1, \"module\": \"" FAULTY_PLUGIN
      "\", \"class\": \"simulator\", \"probe\": {\"timeout_ms\": 10000}}",
      -1, NULL));
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_handler ("tinycore", G_LOG_LEVEL_WARNING, count_warning, NULL);
  g_autoptr (TinyRegistry) first = new_registry ();
  g_ptr_array_unref (tiny_registry_list (first)); /* scanned while nothing is wrong */
  g_test_add_func ("/fault/crash/notes", test_notes);
  g_test_add_func ("/fault/crash/untrusted", test_untrusted);
  g_test_add_func ("/fault/crash/compile", test_compile);
  g_test_add_func ("/fault/crash/next-start", test_next_start);
  g_test_add_func ("/fault/crash/other-notes", test_other_notes);
  g_test_add_func ("/fault/crash/places", test_places);
  int status = g_test_run ();
  g_free (last_warning);
  g_autofree char *remove = g_strdup_printf ("rm -r '%s'", folder);
  return WEXITSTATUS (system (remove)) | status;
}
