/* SPDX-License-Identifier: MIT
 *
 * each-case.c: a case that ends its program hides none after it. Linked to the programs of tests, whose main() calls this
 * g_test_run() and not GLib's.
 *
 * The program runs itself again as a child with the same arguments and --GTestSkipCount=0, and passes on what that prints.
 * Where a child ends before its cases do, by an assertion, an error or a signal, the case it was at is "not ok", and another
 * child begins after that case. With --GTestSkipCount=0 by hand (for a debugger) everything runs in one process. */
#include <dlfcn.h>
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct {
  GPtrArray *arguments; /* of this process */
  GHashTable *told;     /* paths of cases whose result was printed */
  char *seed;           /* of the first child */
  gboolean is_list;     /* cases are being listed into @listed; nothing is printed */
  GPtrArray *listed;
} Run;

/* NULL where the system does not say them. */
static GPtrArray *
read_arguments (void)
{
  g_autofree char *text = NULL;
  gsize n;
  if (!g_file_get_contents ("/proc/self/cmdline", &text, &n, NULL))
    return NULL;
  GPtrArray *arguments = g_ptr_array_new_with_free_func (g_free);
  for (gsize at = 0; at < n; at += strlen (text + at) + 1)
    g_ptr_array_add (arguments, g_strdup (text + at));
  return arguments;
}

/* True if the cases run in this process: it is a child, or does not run them all. */
static gboolean
runs_here (GPtrArray *arguments)
{
  for (guint i = 1; i < arguments->len; i++) {
    const char *argument = g_ptr_array_index (arguments, i);
    if (g_str_has_prefix (argument, "--GTest") || g_str_equal (argument, "-l"))
      return TRUE;
  }
  return FALSE;
}

/* A result is "ok 3 /path …" or "not ok 3 /path …"; that of a suite has no path. */
static void
pass_result (Run *self, const char *result, const char *line)
{
  const char *path = strchr (line, '/');
  if (path == NULL || path[-1] != ' ')
    return;
  if (g_hash_table_add (self->told, g_strndup (path, strcspn (path, " \n"))))
    g_print ("%s %u %s", result, g_hash_table_size (self->told), path);
}

static void
pass_on (Run *self, const char *line)
{
  const char *text = line + strspn (line, " ");
  if (self->is_list) {
    if (line[0] == '/')
      g_ptr_array_add (self->listed, g_strndup (line, strcspn (line, "\n")));
  } else if (g_str_has_prefix (text, "ok "))
    pass_result (self, "ok", text + 3);
  else if (g_str_has_prefix (text, "not ok "))
    pass_result (self, "not ok", text + 7);
  /* The end of a child is not that of all, and the plan comes last. */
  else if (g_str_has_prefix (text, "Bail out!"))
    g_print ("# %s", text);
  else if (!g_str_has_prefix (text, "1..") && !g_str_has_prefix (text, "TAP version"))
    g_print ("%s", line);
  if (self->seed == NULL && g_str_has_prefix (line, "# random seed: "))
    self->seed = g_strndup (line + 15, strcspn (line + 15, "\n"));
}

/* A worker of a case may live longer than the case and hold the pipe, so the child's end is the end. */
static int
read_child (Run *self, int fd, pid_t child)
{
  g_autoptr (GString) text = g_string_new (NULL);
  char block[4096];
  int status = 0;
  gboolean has_ended = FALSE;
  for (;;) {
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    int n = poll (&ready, 1, has_ended ? 0 : 100);
    if (n < 0 && errno == EINTR)
      continue;
    gssize got = n > 0 ? read (fd, block, sizeof block) : 0;
    if (got > 0)
      g_string_append_len (text, block, got);
    for (char *end; (end = strchr (text->str, '\n')) != NULL;) {
      g_autofree char *line = g_strndup (text->str, (gsize) (end + 1 - text->str));
      g_string_erase (text, 0, (gssize) strlen (line));
      pass_on (self, line);
    }
    if (got > 0)
      continue;
    if (has_ended)
      return status;
    has_ended = waitpid (child, &status, n > 0 ? 0 : WNOHANG) == child;
  }
}

static int
run_child (Run *self, const char *last)
{
  int ends[2], result;
  pid_t child;
  posix_spawn_file_actions_t actions;
  g_autoptr (GPtrArray) arguments = g_ptr_array_new ();
  g_autofree char *seed = self->seed == NULL ? NULL : g_strconcat ("--seed=", self->seed, NULL);
  for (guint i = 0; i < self->arguments->len; i++)
    g_ptr_array_add (arguments, g_ptr_array_index (self->arguments, i));
  g_ptr_array_add (arguments, (gpointer) last);
  if (seed != NULL)
    g_ptr_array_add (arguments, seed);
  g_ptr_array_add (arguments, NULL);
  if (pipe (ends) != 0)
    g_error ("no pipe: %s", g_strerror (errno));
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose (&actions, ends[0]);
  posix_spawn_file_actions_addclose (&actions, ends[1]);
  result = posix_spawn (&child, "/proc/self/exe", &actions, NULL, (char **) arguments->pdata,
                        environ);
  posix_spawn_file_actions_destroy (&actions);
  close (ends[1]);
  if (result != 0)
    g_error ("%s does not start again: %s", (char *) self->arguments->pdata[0],
             g_strerror (result));
  int status = read_child (self, ends[0], child);
  close (ends[0]);
  return status;
}

/* The first case in their order that has no result; NULL without any. */
static const char *
first_untold (Run *self)
{
  if (self->listed->len == 0) {
    self->is_list = TRUE;
    run_child (self, "-l");
    self->is_list = FALSE;
  }
  for (guint i = 0; i < self->listed->len; i++)
    if (!g_hash_table_contains (self->told, g_ptr_array_index (self->listed, i)))
      return g_ptr_array_index (self->listed, i);
  return NULL;
}

/* Gives the exit status. */
static int
run_all (Run *self)
{
  int failed = 0;
  for (;;) {
    g_autofree char *skip
        = g_strdup_printf ("--GTestSkipCount=%u", g_hash_table_size (self->told));
    int status = run_child (self, skip);
    if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
      return failed;
    const char *path = first_untold (self);
    if (path == NULL)
      return WIFEXITED (status) ? WEXITSTATUS (status) : 1;
    failed = 1;
    g_hash_table_add (self->told, g_strdup (path));
    g_print ("not ok %u %s\n# it ended the program: %s\n", g_hash_table_size (self->told), path,
             WIFSIGNALED (status) ? g_strsignal (WTERMSIG (status)) : "by exit ()");
  }
}

int
g_test_run (void)
{
  g_autoptr (GPtrArray) arguments = read_arguments ();
  if (arguments == NULL || runs_here (arguments)) {
    int (*run) (void) = (int (*) (void)) dlsym (RTLD_NEXT, "g_test_run");
    return run ();
  }
  Run run = { .arguments = arguments,
              .told = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
              .listed = g_ptr_array_new_with_free_func (g_free) };
  int failed = run_all (&run);
  g_print ("1..%u\n", g_hash_table_size (run.told));
  g_hash_table_unref (run.told);
  g_ptr_array_unref (run.listed);
  g_free (run.seed);
  return failed;
}
