/* SPDX-License-Identifier: MIT
 *
 * tiny-error.c: the error domain. */
#include "base/tiny-error.h"

/**
 * tiny_error_quark:
 *
 * Returns: the quark behind %TINY_ERROR
 */
GQuark
tiny_error_quark (void)
{
  return g_quark_from_static_string ("tiny-error-quark");
}
