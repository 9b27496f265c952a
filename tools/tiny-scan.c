/* SPDX-License-Identifier: MIT
 *
 * tiny-scan.c: the helper that loads one plugin and reports what it finds, that runs what a search
 * wants to try, or that runs a backend for a program (DEV=ISOLATED+NAME).
 *
 *   tiny-scan DESCRIPTOR SECONDS MODULE
 *   tiny-scan DESCRIPTOR SECONDS MODULE inspect
 *   tiny-scan DESCRIPTOR trials
 *   tiny-scan DESCRIPTOR worker
 *
 * Started by the core with standard streams of its own, as leader of a process group. Greets on
 * DESCRIPTOR, writes one line of JSON there when all went well up to the plugin's fini() (to inspect: many, as it
 * goes), and leaves without running destructors: a plugin that fails in those has done its work before. The process that
 * does this has another one above it, which ends what is left of it (supervise.h). Trials
 * and workers begin and end with the other side of DESCRIPTOR, a socket. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "engine/tiny-trial-host.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-scan.h"
#include "plugin/tiny-worker.h"
#include "tools/inspect-module.h"
#include "tools/supervise.h"

enum { MAX_FILE_BYTES = 256 << 20 };

static void
limit (int what, rlim_t value)
{
  struct rlimit now;
  if (getrlimit (what, &now) != 0)
    return;
  if (now.rlim_max == RLIM_INFINITY || now.rlim_max > value)
    now.rlim_max = value;
  if (now.rlim_cur == RLIM_INFINITY || now.rlim_cur > now.rlim_max)
    now.rlim_cur = now.rlim_max;
  setrlimit (what, &now);
}

/* Address space stays unlimited: drivers of accelerators reserve far more than they use. */
static void
confine (unsigned seconds)
{
  limit (RLIMIT_CPU, 4 * seconds);
  limit (RLIMIT_FSIZE, MAX_FILE_BYTES);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static void
die_plainly (void)
{
  /* A crash is to look like one, whatever a sanitizer or a preloaded library has installed. */
  for (int number = 1; number < NSIG; number++)
    if (number != SIGKILL && number != SIGSTOP)
      signal (number, SIG_DFL);
}

static int
write_all (int descriptor, const char *text, size_t n)
{
  while (n > 0) {
    ssize_t written = write (descriptor, text, n);
    if (written <= 0)
      return -1;
    text += written;
    n -= (size_t) written;
  }
  return 0;
}

int
main (int argc, char **argv)
{
  const gboolean inspects = argc == 5 && strcmp (argv[4], TINY_HELPER_INSPECT) == 0;
  const gboolean is_worker = argc == 3 && strcmp (argv[2], TINY_SCAN_WORKER) == 0;
  if (argc != 4 && !inspects && !is_worker
      && (argc != 3 || strcmp (argv[2], TINY_SCAN_TRIALS) != 0))
    return 2;
  int descriptor = atoi (argv[1]);
  die_plainly ();
  tiny_env_set_text (TINY_ENV_RECORD, NULL); /* the program's own */
  if (is_worker) { /* a crash of it may leave a core file, as it would in the program */
    closefrom (descriptor + 1);
    tiny_worker_serve (descriptor);
  }
  limit (RLIMIT_CORE, 0);
  if (argc == 3) {
    closefrom (descriptor + 1);
    tiny_trial_serve (descriptor);
    _exit (0);
  }
  confine ((unsigned) atoi (argv[2]));
  /* Of the program's other descriptors a plugin learns nothing. */
  closefrom (descriptor + 1);
  supervise ();
  if (write_all (descriptor, TINY_SCAN_GREETING, strlen (TINY_SCAN_GREETING)) != 0)
    return 1;
  if (inspects)
    _exit (inspect_module (argv[3], descriptor) ? 0 : 1);
  g_autoptr (TinyScan) scan = tiny_scan_module (argv[3]);
  g_autoptr (JsonNode) root = tiny_scan_to_json (scan);
  g_autofree char *text = json_to_string (root, FALSE);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  _exit (write_all (descriptor, line, strlen (line)) == 0 ? 0 : 1);
}
