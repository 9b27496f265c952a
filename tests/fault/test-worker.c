/* SPDX-License-Identifier: MIT
 *
 * test-worker.c: a backend in a process of its own (DEV=ISOLATED+NAME): it computes what it computes here, and
 * whatever happens to it, in each function in turn, costs its device, with a reason, and nothing else: not the
 * program, not another device, no descriptor, no memory, no process. faulty-plugin.c goes wrong as it is told. */
#include <errno.h>
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
#include "device/tiny-program.h"
#include "device/tiny-queue.h"
#include "plugin/tiny-registry.h"
#include "plugin/tiny-worker.h"
#include "process-state.h"
#include "use-device.h"

enum { HANG_MS = 300, MOST_HANG_MS = 20000 };
#define ISOLATED "ISOLATED+FAULTY"

static TinyRegistry *registry;
static char *folder, *cache; /* of manifests; of what is remembered */

static void
set_fault (const char *fault)
{
  if (fault != NULL)
    g_setenv ("TINY_TEST_FAULT", fault, TRUE);
  else
    g_unsetenv ("TINY_TEST_FAULT");
}

static void
works (const char *name)
{
  g_autoptr (GError) error = NULL;
  open_and_use (registry, name, &error);
  g_assert_no_error (error);
}

/* One that starts processes of its own, with the fault there is now. */
static TinyRegistry *
new_registry (void)
{
  const char *folders[] = { folder, NULL };
  return tiny_registry_new (folders, cache);
}

static void
assert_has (const char *text, const char *part)
{
  if (strstr (text, part) == NULL)
    CASE_FAILS ("“%s” does not hold “%s”", text, part);
}

/* The same results as here, with memory that is shared and with memory that is not. */
static void
test_works (void)
{
  works ("FAULTY");
  works (ISOLATED);
  works (ISOLATED ":1");
  works ("ISOLATED+CPU");
  works ("ISOLATED+REF");
  g_autoptr (TinyRegistry) own = new_registry ();
  g_autoptr (GError) error = NULL;
  g_setenv ("TINY_TEST_PRIVATE", "1", TRUE);
  open_and_use (own, ISOLATED, &error);
  g_assert_no_error (error);
  g_unsetenv ("TINY_TEST_PRIVATE");
}

/* A device that is asynchronous and whose memory is not coherent: work that is under way, and work that fails after all
 * of it was submitted. */
static void
test_asynchronous (void)
{
  static const char *const boards[]
      = { "latency=2000", "card", "fault=4,hold=6", "fault=1,hold=6" };
  for (guint i = 0; i < G_N_ELEMENTS (boards); i++) {
    g_setenv ("SAMPLE_BOARD", boards[i], TRUE);
    g_autoptr (TinyRegistry) own = new_registry ();
    g_autofree char *here = launch_six (own, "SAMPLE");
    g_autofree char *there = launch_six (own, "ISOLATED+SAMPLE");
    g_test_message ("%s: %s", boards[i], there);
    g_assert_cmpstr (here, ==, there);
    g_assert_cmpint (strstr (there, "a fault was asked for") != NULL, ==, boards[i][0] == 'f');
  }
  g_unsetenv ("SAMPLE_BOARD");
}

static const char *const functions[]
    = { "load",           "open",    "info",          "target",       "queue_create",
        "alloc",          "compile", "disassemble",   "program_load", "submit",
        "program_unload", "free",    "queue_destroy", "close",        "fini" };

static const struct {
  const char *how, *text;
} ways[] = {
  { "crash", "crashed with signal 11 (Segmentation fault) in " },
  { "abort", "crashed with signal 6 (Aborted) in " },
  { "exit", "it ended its process, with exit status 3, in " },
  { "kill", "its process was killed (signal 9) during " },
  { "hang", "it hung in " },
};

/* Opens a device of a backend with the fault @fault, and uses it; FALSE with the error that it meets. Where it hangs, a
 * function that works may take longer than what counts as hanging, on a busy machine, and is named in place of the one that
 * hangs: then all have more time. */
static gboolean
meet_fault (const char *fault,
            const char *text,
            gboolean hangs,
            TinyRegistry **own,
            TinyDevice **out,
            GError **error)
{
  gboolean good = TRUE;
  set_fault (fault);
  for (gint ms = HANG_MS; ms <= MOST_HANG_MS; ms *= 4) {
    g_clear_object (out);
    g_clear_object (own);
    g_clear_error (error);
    tiny_env_set_int (TINY_ENV_ISOLATED_TIMEOUT, hangs ? ms : -1);
    *own = new_registry ();
    *out = tiny_registry_open (*own, ISOLATED, error);
    good = *out != NULL && use (*out, 42, error);
    if (!hangs || good || strstr ((*error)->message, text) != NULL)
      break;
  }
  tiny_env_set_int (TINY_ENV_ISOLATED_TIMEOUT, -1);
  return good;
}

/* Each function in turn, in each way; a device that is open beside it goes on, and the next that is opened works. */
static void
test_functions (gconstpointer data)
{
  const guint way = GPOINTER_TO_UINT (data);
  const gboolean hangs = g_str_equal (ways[way].how, "hang");
  g_autoptr (TinyDevice) cpu = tiny_registry_open (registry, "CPU", NULL);
  g_autoptr (TinyDevice) other = tiny_registry_open (registry, "ISOLATED+CPU", NULL);
  const guint n_children = count_children (NULL);
  leave_leaks (g_str_equal (ways[way].how, "exit"));
  for (guint i = 0; i < G_N_ELEMENTS (functions); i++) {
    g_autoptr (TinyRegistry) own = NULL;
    g_autofree char *fault = g_strdup_printf ("%s %s", functions[i], ways[way].how);
    g_autofree char *text = g_strconcat (ways[way].text, functions[i], NULL);
    g_autoptr (GError) error = NULL;
    TinyDevice *device = NULL;
    const gboolean good = meet_fault (fault, text, hangs, &own, &device, &error);
    const gboolean is_quiet
        = g_str_equal (functions[i], "close") || g_str_equal (functions[i], "fini");
    g_test_message ("%s: %s", fault, good ? "quiet" : error->message);
    g_assert_cmpint (good, ==, is_quiet);
    if (!good) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
      assert_has (error->message, text);
    }
    if (device != NULL && !good) { /* it stays lost */
      g_clear_error (&error);
      g_assert_false (tiny_device_submit (device, NULL, 0, NULL, &error));
      g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
    }
    g_clear_object (&device);
    g_clear_error (&error);
    use (cpu, 1, &error);
    g_assert_no_error (error);
    use (other, 2, &error);
    g_assert_no_error (error);
    g_clear_object (&own);
    set_fault (NULL);
    g_assert_cmpuint (count_children (NULL), ==, n_children);
  }
  works (ISOLATED);
}

/* Opened again after its process was lost, by the same registry and backend. */
static void
test_again (void)
{
  g_autoptr (TinyRegistry) own = new_registry ();
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GError) error = NULL;
    pid_t pid;
    g_autoptr (TinyDevice) device = tiny_registry_open (own, ISOLATED, &error);
    g_assert_no_error (error);
    use (device, (float) i, &error);
    g_assert_no_error (error);
    count_children (&pid);
    kill (pid, SIGKILL);
    g_assert_false (use (device, 1, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  }
}

/* One unit of a backend is lost, the other is not. */
static void
test_units (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyRegistry) own = new_registry ();
  g_autoptr (TinyDevice) first = tiny_registry_open (own, ISOLATED ":0", &error);
  g_assert_no_error (error);
  set_fault ("submit crash");
  g_autoptr (TinyDevice) second = tiny_registry_open (own, ISOLATED ":1", &error);
  g_assert_no_error (error);
  set_fault (NULL);
  use (first, 1, &error);
  g_assert_no_error (error);
  g_assert_false (use (second, 2, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  assert_has (error->message, ISOLATED ":1: ");
  g_clear_error (&error);
  use (first, 3, &error);
  g_assert_no_error (error);
}

/* The plugin's own failures come with text, hint and code, and cost nothing. */
static void
test_error (void)
{
  g_autoptr (GError) error = NULL;
  set_fault ("submit error");
  g_autoptr (TinyRegistry) own = new_registry ();
  g_autoptr (TinyDevice) device = tiny_registry_open (own, ISOLATED, &error);
  g_assert_no_error (error);
  g_assert_false (use (device, 1, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  assert_has (error->message, "running commands: unit 7 says no (ask it nicely)");
  g_assert_false (tiny_device_is_lost (device));
  set_fault (NULL);
}

/* ---- a launch whose process is killed from outside ---- */
typedef struct {
  pid_t pid;
  const char *path; /* of a file that is there once the launch hangs */
} Victim;

static gpointer
kill_when_it_hangs (gpointer data)
{
  enum { MOST_WAITS = 60000 };
  const Victim *victim = data;
  for (guint i = 0; i < MOST_WAITS && !g_file_test (victim->path, G_FILE_TEST_EXISTS); i++)
    g_usleep (1000);
  kill (victim->pid, SIGKILL);
  return NULL;
}

static void
test_killed (void)
{
  g_autoptr (TinyRegistry) own = new_registry ();
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (folder, "hangs", NULL);
  Victim victim = { .path = path };
  const guint n_children = count_children (NULL);
  g_setenv ("TINY_TEST_HANGS", path, TRUE);
  set_fault ("submit hang");
  g_autoptr (TinyDevice) device = tiny_registry_open (own, ISOLATED, &error);
  g_assert_no_error (error);
  set_fault (NULL);
  g_unsetenv ("TINY_TEST_HANGS");
  g_assert_cmpuint (count_children (&victim.pid), ==, n_children + 1);
  GThread *killer = g_thread_new ("killer", kill_when_it_hangs, &victim);
  g_assert_false (tiny_device_submit (device, NULL, 0, NULL, &error));
  g_thread_join (killer);
  assert_has (error->message, "its process was killed (signal 9) during submit");
  g_assert_cmpuint (count_children (NULL), ==, n_children);
}

/* ---- several threads ---- */
typedef struct {
  TinyDevice *device;
  guint number;
  gint n_uses, is_killed; /* atomic */
} Task;

static gpointer
use_often (gpointer data)
{
  const Task *task = data;
  for (guint i = 0; i < 20; i++) {
    g_autoptr (GError) error = NULL;
    use (task->device, (float) (task->number * 1000 + i), &error);
    g_assert_no_error (error);
  }
  return NULL;
}

static void
test_threads (void)
{
  g_autoptr (TinyDevice) first = tiny_registry_open (registry, ISOLATED, NULL);
  g_autoptr (TinyDevice) second = tiny_registry_open (registry, ISOLATED ":1", NULL);
  Task tasks[6];
  GThread *threads[G_N_ELEMENTS (tasks)];
  for (guint i = 0; i < G_N_ELEMENTS (tasks); i++) {
    tasks[i] = (Task){ .device = i % 2 != 0 ? second : first, .number = i };
    threads[i] = g_thread_new ("user", use_often, &tasks[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (tasks); i++)
    g_thread_join (threads[i]);
}

/* All threads of a device that is lost are told, not only the one whose call it was. */
static gpointer
use_until_lost (gpointer data)
{
  enum { MOST_AFTER = 1000 };
  Task *task = data;
  GError *error = NULL;
  for (guint i = 0, n_after = 0; error == NULL && n_after < MOST_AFTER; i++) {
    n_after += (guint) g_atomic_int_get (&task->is_killed);
    use (task->device, (float) i, &error);
    if (i == 0)
      g_atomic_int_inc (&task->n_uses);
  }
  return error;
}

static void
test_threads_lost (void)
{
  g_autoptr (TinyRegistry) own = new_registry ();
  g_autoptr (TinyDevice) device = tiny_registry_open (own, ISOLATED, NULL);
  pid_t pid;
  count_children (&pid);
  Task task = { .device = device };
  GThread *threads[4];
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("user", use_until_lost, &task);
  while (g_atomic_int_get (&task.n_uses) < (gint) G_N_ELEMENTS (threads))
    g_usleep (1000);
  kill (pid, SIGKILL);
  g_atomic_int_set (&task.is_killed, TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++) {
    g_autoptr (GError) error = g_thread_join (threads[i]);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  }
}

/* ---- the program's own things ---- */
static void
test_leaks (void)
{
  works (ISOLATED);
  works (ISOLATED ":1");
  const guint n_files = count_files (), n_mappings = count_mappings (),
              n_children = count_children (NULL);
  for (guint i = 0; i < 100; i++)
    works (i % 4 == 0 ? ISOLATED ":1" : ISOLATED);
  g_assert_cmpuint (count_files (), ==, n_files);
  g_assert_cmpuint (count_mappings (), ==, n_mappings);
  g_assert_cmpuint (count_children (NULL), ==, n_children);
}

/* Without descriptors nothing is lost: what needs some fails and says so, the rest goes on. */
static void
test_descriptors (void)
{
  struct rlimit before, now;
  g_autoptr (TinyRegistry) own = new_registry ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, ISOLATED, &error);
  g_assert_no_error (error);
  g_ptr_array_unref (tiny_registry_list (own)); /* so that no helper is wanted below */
  use (device, 1, &error);
  g_assert_no_error (error);
  g_autoptr (TinyBuffer) large = tiny_buffer_new (device, 1 << 20);
  getrlimit (RLIMIT_NOFILE, &before);
  now = before;
  now.rlim_cur = 3; /* those there are stay open */
  setrlimit (RLIMIT_NOFILE, &now);
  gboolean opened = tiny_registry_open (own, ISOLATED, &error) != NULL;
  g_autofree char *why = g_strdup (error ? error->message : "");
  g_clear_error (&error);
  gboolean allocated = tiny_buffer_ensure (large, &error);
  g_autofree char *why_not = g_strdup (error ? error->message : "");
  gint code = error != NULL ? error->code : -1;
  g_clear_error (&error);
  gboolean ran = tiny_device_submit (device, NULL, 0, NULL, &error);
  setrlimit (RLIMIT_NOFILE, &before);
  g_assert_false (opened);
  assert_has (why, g_strerror (EMFILE));
  g_assert_false (allocated);
  g_assert_cmpint (code, ==, TINY_ERROR_OUT_OF_MEMORY);
  assert_has (why_not, g_strerror (EMFILE));
  g_assert_no_error (error);
  g_assert_true (ran);
  g_assert_true (tiny_buffer_ensure (large, &error));
  works (ISOLATED);
}

static void
test_no_helper (void)
{
  static const struct {
    const char *helper, *text;
  } rows[] = { { "/nonexistent/helper", "which is no program" },
               { "/bin/false", "it ended its process, with exit status 1, in starting" } };
  g_autofree char *helper = g_strdup (g_getenv ("TINY_SCAN_HELPER"));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (TinyRegistry) own = new_registry ();
    g_autoptr (GError) error = NULL;
    g_ptr_array_unref (tiny_registry_list (own));
    g_setenv ("TINY_SCAN_HELPER", rows[i].helper, TRUE);
    g_assert_null (tiny_registry_open (own, ISOLATED, &error));
    g_setenv ("TINY_SCAN_HELPER", helper, TRUE);
    g_test_message ("%s", error->message);
    assert_has (error->message, rows[i].text);
  }
}

/* A child has no share in its parent's processes, and does not end them. */
static void
test_fork (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = tiny_registry_open (registry, ISOLATED, &error);
  use (device, 1, &error);
  g_assert_no_error (error);
  int status;
  pid_t pid = fork ();
  if (pid == 0) {
    gboolean good = use (device, 2, &error);
    gboolean right = !good && g_error_matches (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST)
                     && strstr (error->message, "forked") != NULL;
    g_clear_object (&device);
    _exit (right ? 0 : 1);
  }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
  use (device, 3, &error);
  g_assert_no_error (error);
}

/* In a program of its own, which ends as @end says while a device is open; its process is gone soon after. */
static void
end_with_device (const char *end)
{
  pid_t worker = 0;
  tiny_env_set_int (TINY_ENV_ISOLATED_TIMEOUT, 0);
  set_fault ("submit hang");
  TinyDevice *device = tiny_registry_open (registry, ISOLATED, NULL);
  set_fault (NULL);
  count_children (&worker);
  printf ("worker %d\n", worker);
  fflush (stdout);
  if (g_str_equal (end, "exit"))
    exit (0);
  alarm (1); /* SIGALRM, by default, inside of submit() */
  tiny_device_submit (device, NULL, 0, NULL, NULL);
}

static void
test_program_ends (void)
{
  static const char *const ends[] = { "exit", "alarm" };
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
    char *argv[] = { self, (char *) "--end-with-device", (char *) ends[i], NULL };
    g_autofree char *said = NULL;
    g_autoptr (GError) error = NULL;
    g_spawn_sync (NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &said, NULL, NULL, &error);
    g_assert_no_error (error);
    const char *number = strstr (said, "worker ");
    g_assert_nonnull (number);
    pid_t worker = (pid_t) g_ascii_strtoll (number + strlen ("worker "), NULL, 10);
    g_assert_cmpint (worker, >, 1);
    g_autofree char *stat = g_strdup_printf ("/proc/%d/stat", worker);
    gboolean is_gone = FALSE;
    for (guint tries = 0; !is_gone && tries < 1200;
         tries++) { /* as often as a busy machine needs */
      g_autofree char *text = NULL;
      g_usleep (50 * 1000);
      is_gone = !g_file_get_contents (stat, &text, NULL, NULL) || strstr (text, ") Z ") != NULL;
    }
    g_assert_true (is_gone);
  }
}

/* Signals, their handlers and those of the children are as they were; a program may ignore its children. */
static void
test_signals (void)
{
  struct sigaction before[NSIG], after;
  sigset_t mask_before, mask_after;
  pthread_sigmask (SIG_SETMASK, NULL, &mask_before);
  for (int i = 1; i < NSIG; i++)
    sigaction (i, NULL, &before[i]);
  works (ISOLATED);
  g_autoptr (TinyRegistry) own = new_registry ();
  set_fault ("submit crash");
  g_assert_false (open_and_use (own, ISOLATED, NULL));
  pthread_sigmask (SIG_SETMASK, NULL, &mask_after);
  for (int i = 1; i < NSIG; i++) {
    g_assert_cmpint (sigismember (&mask_before, i), ==, sigismember (&mask_after, i));
    if (sigaction (i, NULL, &after) == 0)
      g_assert_true (before[i].sa_handler == after.sa_handler);
  }
  g_autoptr (GError) error = NULL;
  signal (SIGCHLD, SIG_IGN);
  g_assert_false (open_and_use (own, ISOLATED, &error));
  set_fault (NULL);
  assert_has (error->message, "its process ended in submit");
  signal (SIGCHLD, SIG_DFL);
}

/* Memory is aligned as it was asked for, on both sides. */
static void
test_alignment (void)
{
  static const gsize sizes[] = { 1, 3000, 70000 };
  g_autoptr (GError) error = NULL;
  TinyPluginError plugin_error = { .struct_size = sizeof plugin_error };
  TinyWorker *worker = tiny_worker_new (20000, &error);
  g_assert_no_error (error);
  TinyWorkerMemory *memory = tiny_worker_memory_new (worker);
  for (gsize alignment = 1; alignment <= 4 << 20; alignment *= 2)
    for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
      TinyWorkerSpan span;
      TinyStatus status
          = tiny_worker_memory_take (memory, sizes[i], alignment, &span, &plugin_error);
      if (status < 0)
        g_error ("%s", plugin_error.text);
      g_assert_cmpuint (GPOINTER_TO_SIZE (span.here) % alignment, ==, 0);
      g_assert_cmpuint (span.there % alignment, ==, 0);
      memset (span.here, 1, sizes[i]);
      tiny_worker_memory_give (memory, &span);
    }
  tiny_worker_memory_free (memory);
  tiny_worker_unref (worker);
}

static void
write_manifest (const char *name, const char *module)
{
  g_autofree char *path = g_strdup_printf ("%s/%s.json", folder, name);
  g_autofree char *text = g_strdup_printf (
      "{\"format_version\": 1, \"name\": \"%s\", \"abi\": 1, \"module\": \"%s\", \"class\": "
      "\"simulator\", \"probe\": {\"timeout_ms\": 10000}, \"isolated\": {\"timeout_ms\": "
      "20000}}",
      name, module);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

int
main (int argc, char **argv)
{
  if (argc == 3 && g_str_equal (argv[1], "--end-with-device")) {
    cache = g_strdup (g_getenv ("TINY_CACHE_DIR"));
    folder = g_path_get_dirname (cache);
    registry = new_registry ();
    end_with_device (argv[2]);
  }
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("tiny-worker-XXXXXX", NULL);
  cache = g_build_filename (folder, "cache", NULL);
  g_setenv ("TINY_CACHE_DIR", cache, TRUE);
  write_manifest ("FAULTY", FAULTY_PLUGIN);
  write_manifest ("CPU", CPU_PLUGIN);
  write_manifest ("REF", REF_PLUGIN);
  write_manifest ("SAMPLE", SAMPLE_PLUGIN);
  registry = new_registry ();
  g_ptr_array_unref (tiny_registry_list (registry));
  g_test_add_func ("/fault/worker/works", test_works);
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    g_autofree char *path = g_strdup_printf ("/fault/worker/functions/%s", ways[i].how);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_functions);
  }
  g_test_add_func ("/fault/worker/again", test_again);
  g_test_add_func ("/fault/worker/units", test_units);
  g_test_add_func ("/fault/worker/error", test_error);
  g_test_add_func ("/fault/worker/asynchronous", test_asynchronous);
  g_test_add_func ("/fault/worker/alignment", test_alignment);
  g_test_add_func ("/fault/worker/killed", test_killed);
  g_test_add_func ("/fault/worker/threads", test_threads);
  g_test_add_func ("/fault/worker/threads-lost", test_threads_lost);
  g_test_add_func ("/fault/worker/leaks", test_leaks);
  g_test_add_func ("/fault/worker/descriptors", test_descriptors);
  g_test_add_func ("/fault/worker/no-helper", test_no_helper);
  g_test_add_func ("/fault/worker/fork", test_fork);
  g_test_add_func ("/fault/worker/program-ends", test_program_ends);
  g_test_add_func ("/fault/worker/signals", test_signals);
  int status = g_test_run ();
  g_object_unref (registry);
  g_autofree char *remove = g_strdup_printf ("rm -r '%s'", folder);
  return WEXITSTATUS (system (remove)) | status;
}
