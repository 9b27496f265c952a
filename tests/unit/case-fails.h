/* SPDX-License-Identifier: MIT
 *
 * case-fails.h: a case that is wrong is said and makes its test fail; the cases after it run. */
#pragma once

#include <glib.h>

/* Like g_test_fail_printf(), which tells the last failure of a test only. */
#define CASE_FAILS(...)                                                                        \
  G_STMT_START                                                                                 \
  {                                                                                            \
    g_test_message (__VA_ARGS__);                                                              \
    g_test_fail ();                                                                            \
  }                                                                                            \
  G_STMT_END
