/* SPDX-License-Identifier: MIT
 *
 * group-hygiene.c: the process state that a plugin has to leave as it found it, looked at after loading,
 * while the device is in use, and after it was closed. Each case has a process of its own. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fresh.h"
#include "plugin/tiny-abi-check.h"

enum { FLAG_OF_LIBC = 0x04000000 }; /* SA_RESTORER: every handler that was set by it has that */

/* Each gives a text of what it looks at: two that are equal stand for states that are. */
static char *
look_at_signals (void)
{
  GString *out = g_string_new (NULL);
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction (number, NULL, &action) == 0)
      g_string_append_printf (out, "%d:%p/%x ", number, (void *) action.sa_handler,
                              action.sa_flags & ~FLAG_OF_LIBC);
  }
  return g_string_free (out, FALSE);
}

static char *
look_at_mask (void)
{
  GString *out = g_string_new (NULL);
  sigset_t mask;
  sigprocmask (SIG_BLOCK, NULL, &mask);
  for (int number = 1; number < NSIG; number++)
    g_string_append_c (out, sigismember (&mask, number) == 1 ? 'x' : '.');
  return g_string_free (out, FALSE);
}

static char *
look_at_locale (void)
{
  char number[32];
  g_snprintf (number, sizeof number, "%.1f", 1.5);
  return g_strdup_printf ("%s %s", setlocale (LC_ALL, NULL), number);
}

/* Rounding, exceptions that trap, and whether subnormals are flushed: by what comes out, and by
 * the register where that can be read. The flags that operations raise are theirs to raise. */
static char *
look_at_floats (void)
{
  volatile float tiny = 1e-38f, one = 1, small = 1e-10f, third = 3;
  volatile double double_tiny = 1e-308;
  guint control = 0;
#if defined(__x86_64__) || defined(__i386__)
  control = __builtin_ia32_stmxcsr () & ~0x3fu;
#endif
  return g_strdup_printf ("rounding %d, control 0x%x, %a %a %a %a %a", fegetround (), control,
                          (double) (tiny * 0.001f), double_tiny * 0.001, (double) (one + small),
                          (double) (one / third), (double) (-one / third));
}

static char *
look_at_environment (void)
{
  return g_strjoinv ("\n", environ);
}

static char *
look_at_folder (void)
{
  return g_get_current_dir ();
}

static char *
look_at_umask (void)
{
  mode_t mask = umask (0);
  umask (mask);
  return g_strdup_printf ("%03o", (guint) mask);
}

static char *
look_at_limits (void)
{
  GString *out = g_string_new (NULL);
  for (int what = 0; what < RLIM_NLIMITS; what++) {
    struct rlimit limit;
    if (getrlimit (what, &limit) == 0)
      g_string_append_printf (out, "%d:%llu/%llu ", what, (unsigned long long) limit.rlim_cur,
                              (unsigned long long) limit.rlim_max);
  }
  g_string_append_printf (out, "priority %d", getpriority (PRIO_PROCESS, 0));
  return g_string_free (out, FALSE);
}

static char *
look_at_processors (void)
{
  cpu_set_t set;
  GString *out = g_string_new (NULL);
  CPU_ZERO (&set);
  sched_getaffinity (0, sizeof set, &set);
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET (i, &set))
      g_string_append_printf (out, "%d ", i);
  return g_string_free (out, FALSE);
}

/* Children that nobody has waited for, or that still run. */
static char *
look_at_children (void)
{
  int status;
  return g_strdup (waitpid (-1, &status, WNOHANG) < 0 ? "none" : "some");
}

static char *
look_at_timers (void)
{
  GString *out = g_string_new (NULL);
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
    struct itimerval value = { 0 };
    getitimer (which, &value);
    g_string_append_printf (
        out, "%d:%s ", which,
        value.it_value.tv_sec != 0 || value.it_value.tv_usec != 0 ? "set" : "unset");
  }
  return g_string_free (out, FALSE);
}

/* What the standard streams are, and how many bytes went there: they are files of ours meanwhile. */
static char *
look_at_streams (void)
{
  GString *out = g_string_new (NULL);
  fflush (NULL);
  for (int fd = 0; fd < 3; fd++) {
    struct stat info = { 0 };
    int good = fstat (fd, &info);
    g_string_append_printf (out, "%d: %s, inode %lu, flags %x, %lld bytes; ", fd,
                            good == 0 ? "open" : "closed", (gulong) info.st_ino,
                            (guint) fcntl (fd, F_GETFL), (long long) info.st_size);
  }
  return g_string_free (out, FALSE);
}

static void
take_streams (void)
{
  int null = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2 (null, 0);
  close (null);
  for (int fd = 1; fd < 3; fd++) {
    int file = memfd_create ("stream", MFD_CLOEXEC);
    dup2 (file, fd);
    close (file);
  }
}

static const struct {
  const char *name;
  char *(*look) (void);
} states[] = {
  { "signals", look_at_signals },
  { "signal-mask", look_at_mask },
  { "locale", look_at_locale },
  { "floats", look_at_floats },
  { "environment", look_at_environment },
  { "folder", look_at_folder },
  { "umask", look_at_umask },
  { "limits", look_at_limits },
  { "timers", look_at_timers },
  { "processors", look_at_processors },
  { "children", look_at_children },
  { "streams", look_at_streams },
};

/* Two texts, without what they have in common at both ends. */
static void
check_same (ConfTrial *trial, const char *before, const char *after, const char *when)
{
  gsize head = 0, n = strlen (before), m = strlen (after), tail = 0;
  if (g_str_equal (before, after))
    return;
  while (before[head] == after[head] && before[head] != 0)
    head++;
  while (tail < n - head && tail < m - head && before[n - 1 - tail] == after[m - 1 - tail])
    tail++;
  head = head > 8 ? head - 8 : 0;
  conf_fail (trial, "%s: “%.*s” has become “%.*s”", when, (int) MIN (n - tail - head + 8, 200),
             before + head, (int) MIN (m - tail - head + 8, 200), after + head);
}

static void
run_state (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  char *(*look) (void) = states[self->args[0]].look;
  ConfSubject own;
  if (look == look_at_streams)
    take_streams ();
  g_autofree char *before = look ();
  void *library = dlopen (subject->path, RTLD_LAZY | RTLD_LOCAL);
  conf_check (trial, library != NULL, "%s", dlerror ());
  g_autofree char *loaded = look ();
  check_same (trial, before, loaded, "after it was loaded");
  if (library == NULL || !conf_fresh_open (trial, subject, &own))
    return;
  g_autofree TinyCandidates *found = tiny_backend_scan (own.backend, NULL);
  g_autofree char *opened = look ();
  check_same (trial, before, opened, "after the device was opened");
  conf_fresh_use (trial, &own);
  g_autofree char *used = look ();
  check_same (trial, before, used, "after a program was compiled and run");
  conf_fresh_close (&own);
  g_autofree char *closed = look ();
  check_same (trial, before, closed, "after the device was closed");
}

/* Where a program has set the floating-point modes otherwise, they stay as it has them. */
static void
run_own_floats (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  fesetround (FE_UPWARD);
  g_autofree char *before = look_at_floats ();
  conf_fresh_use (trial, &own);
  g_autofree char *after = look_at_floats ();
  fesetround (FE_TONEAREST);
  check_same (trial, before, after, "while the program rounds upwards");
  conf_fresh_close (&own);
}

/* ---- the file ---- */
/* What tinycore abi-check says of it. args: which of its checks. */
static void
run_file (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const char *check = tiny_abi_list_checks ()[self->args[0]];
  g_autoptr (GPtrArray) findings = tiny_abi_check (subject->path, NULL);
  for (guint i = 0; i < findings->len; i++) {
    const TinyAbiFinding *finding = findings->pdata[i];
    if (g_str_equal (finding->check, check))
      conf_check (trial, finding->state < TINY_ABI_FAILED, "%s%s%s", finding->text,
                  finding->hint ? ": " : "", finding->hint ? finding->hint : "");
  }
}

/* The plugin's own threads leave signals to the program's. */
static void
run_thread_signals (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const int tested[] = { SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM };
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  conf_fresh_use (trial, &own);
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/task", 0, NULL);
  g_autofree char *main_thread = g_strdup_printf ("%d", (int) getpid ());
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    g_autofree char *path = g_strdup_printf ("/proc/self/task/%s/status", name);
    g_autofree char *text = NULL;
    const char *blocked
        = g_file_get_contents (path, &text, NULL, NULL) ? strstr (text, "SigBlk:\t") : NULL;
    if (blocked == NULL || g_str_equal (name, main_thread))
      continue;
    guint64 mask = g_ascii_strtoull (blocked + strlen ("SigBlk:\t"), NULL, 16);
    for (guint i = 0; i < G_N_ELEMENTS (tested); i++)
      if ((mask >> (tested[i] - 1) & 1) == 0) {
        conf_record (trial, "a thread that takes signals", 1, "thread");
        break;
      }
  }
  conf_fresh_close (&own);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase floats = { .run = run_own_floats, .flags = CONF_FRESH };
  const ConfCase threads = { .run = run_thread_signals, .flags = CONF_FRESH | CONF_RECORD };
  for (guint i = 0; i < G_N_ELEMENTS (states); i++) {
    const ConfCase it = { .run = run_state, .flags = CONF_FRESH, .args = { i } };
    conf_list_add (out, &it, "%s", states[i].name);
  }
  for (guint i = 0; tiny_abi_list_checks ()[i] != NULL; i++) {
    const ConfCase it = { .run = run_file, .flags = CONF_FRESH, .args = { i } };
    conf_list_add (out, &it, "file/%s", tiny_abi_list_checks ()[i]);
  }
  conf_list_add (out, &floats, "floats-of-the-program");
  conf_list_add (out, &threads, "threads-that-take-signals");
}

const ConfGroup conf_group_hygiene = { "hygiene", "the process is left as it was found", list };
