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

int
tinycore_conformance (int argc, char **argv)
{
  const char *installed = TINY_HELPER_DIR "/" HELPER_NAME;
  g_autofree char *found = tinycore_find_installed ("TINY_CONFORMANCE_HELPER", installed,
                                                    "libexec/tinycore-1.0/" HELPER_NAME);
  const char *helper = found != NULL ? found : installed;
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
