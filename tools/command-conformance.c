/* SPDX-License-Identifier: MIT
 *
 * command-conformance.c: tinycore conformance: finds the suite, which is a program of its own in the
 * package tinycore-sdk, and becomes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"

#define HELPER_NAME "tiny-conformance"

static char *
find_helper (void)
{
  const char *wanted = g_getenv ("TINY_CONFORMANCE_HELPER");
  if (wanted != NULL && wanted[0] != 0)
    return g_strdup (wanted);
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = self ? g_path_get_dirname (self) : g_strdup (".");
  /* In a tree that was moved as a whole. */
  g_autofree char *beside
      = g_build_filename (folder, "../libexec/tinycore-1.0", HELPER_NAME, NULL);
  return g_file_test (TINY_HELPER_DIR "/" HELPER_NAME, G_FILE_TEST_IS_EXECUTABLE)
                 || !g_file_test (beside, G_FILE_TEST_IS_EXECUTABLE)
             ? g_strdup (TINY_HELPER_DIR "/" HELPER_NAME)
             : g_steal_pointer (&beside);
}

int
tinycore_conformance (int argc, char **argv)
{
  g_autofree char *helper = find_helper ();
  fflush (stdout);
  execv (helper, argv);
  int reason = errno;
  if (reason == ENOENT)
    g_printerr ("tinycore: the conformance suite is not installed: there is no %s; install the "
                "package tinycore-sdk\n",
                helper);
  else
    g_printerr ("tinycore: %s cannot be run: %s\n", helper, g_strerror (reason));
  return EXIT_FAILED;
}
