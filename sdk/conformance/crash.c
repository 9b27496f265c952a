/* SPDX-License-Identifier: MIT
 *
 * crash.c: the last words of a worker: where it was when a signal or exit() ended it.
 *
 * The handler runs on a stack of its own, so that an overflow of the other is told as well, and
 * uses nothing but write() and backtrace(), which was called once before and so has loaded what it
 * needs. It puts the default action back and lets the signal happen again: the worker ends as it would
 * have ended. */
#include "serve.h"

#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FRAMES = 48, STACK_BYTES = 64 << 10, LAST_SECONDS = 5 };

static int report_fd = -1;
static volatile sig_atomic_t exit_is_meant;
static const int watched[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

static void
put (const char *text)
{
  gssize written = write (report_fd, text, strlen (text));
  (void) written;
}

static void
put_number (int number)
{
  char text[16];
  guint at = sizeof text - 1;
  text[at] = 0;
  do
    text[--at] = (char) ('0' + number % 10);
  while ((number /= 10) != 0 && at > 0);
  put (text + at);
}

static void
put_stack (void)
{
  void *frames[MAX_FRAMES];
  backtrace_symbols_fd (frames, backtrace (frames, MAX_FRAMES), report_fd);
}

static void
on_signal (int number)
{
  signal (number, SIG_DFL);
  alarm (LAST_SECONDS); /* a stack that cannot be walked is not to hang us */
  put ("!crash ");
  put_number (number);
  put ("\n");
  put_stack ();
  raise (number);
}

static void
on_exit_called (void)
{
  if (exit_is_meant)
    return;
  put ("!exit\n");
  put_stack ();
}

void
conf_crash_expect_exit (void)
{
  exit_is_meant = 1;
}

void
conf_crash_watch (int fd)
{
  static char memory[STACK_BYTES];
  void *frame;
  stack_t other = { .ss_sp = memory, .ss_size = sizeof memory };
  report_fd = fd;
  backtrace (&frame, 1);
  sigaltstack (&other, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (watched); i++) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER };
    sigaction (watched[i], &action, NULL);
  }
  atexit (on_exit_called);
}
