/* SPDX-License-Identifier: MIT
 *
 * supervise.c: see supervise.h.
 *
 * On Linux a process may be the one that orphans below it are given to (prctl(2), PR_SET_CHILD_SUBREAPER). It loads
 * nothing itself, so it is there when the plugin has ended its own process. */
#include "tools/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PR_SET_CHILD_SUBREAPER

/* Those that are children of this process now; FALSE where the system does not say. */
static gboolean
kill_children (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", (int) getpid ());
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  char *at = text, *end;
  for (long pid; (pid = strtol (at, &end, 10)) > 1 && end != at; at = end)
    kill ((pid_t) pid, SIGKILL);
  return TRUE;
}

/* Children of what is killed are children of this process then. */
static void
kill_all (void)
{
  pid_t got = 0;
  while ((got >= 0 || errno == EINTR) && kill_children ()) {
    got = waitpid (-1, NULL, 0);
    while (got > 0 && waitpid (-1, NULL, WNOHANG) > 0)
      ;
  }
}

/* FALSE: this process was told that the time is over. */
static gboolean
wait_for (pid_t child, const sigset_t *watched, int *out_status)
{
  for (;;) {
    int status;
    pid_t got;
    while ((got = waitpid (-1, &status, WNOHANG)) > 0 && got != child)
      ;
    if (got == child) {
      *out_status = status;
      return TRUE;
    }
    if (sigwaitinfo (watched, NULL) == SIGTERM)
      return FALSE;
  }
}

static G_NORETURN void
end_as (int status, const sigset_t *before)
{
  sigprocmask (SIG_SETMASK, before, NULL);
  if (WIFSIGNALED (status))
    raise (WTERMSIG (status));
  _exit (WIFEXITED (status) ? WEXITSTATUS (status) : 1);
}

void
supervise (void)
{
  sigset_t watched, before;
  int status = SIGTERM;
  sigemptyset (&watched);
  sigaddset (&watched, SIGCHLD);
  sigaddset (&watched, SIGTERM);
  if (prctl (PR_SET_CHILD_SUBREAPER, 1) != 0)
    return;
  sigprocmask (SIG_BLOCK, &watched, &before);
  const pid_t child = fork ();
  if (child <= 0) {
    if (child == 0)
      prctl (PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask (SIG_SETMASK, &before, NULL);
    return;
  }
  prctl (PR_SET_PDEATHSIG, SIGTERM); /* whoever started this has ended, and its time is over */
  wait_for (child, &watched, &status);
  kill_all ();
  end_as (status, &before);
}

#else

void
supervise (void)
{
}

#endif
