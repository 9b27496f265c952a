/* SPDX-License-Identifier: MIT
 *
 * tiny-version.c: see tiny-version.h. */
#include "base/tiny-version.h"

const char *
tiny_get_version (void)
{
  return TINY_VERSION;
}
