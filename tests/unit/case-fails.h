/* SPDX-License-Identifier: MIT
 *
 * case-fails.h: a case that is wrong is said and makes its test fail; the cases after it run. Rows of a table whose failure
 * may end the program are tests of their own. */
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

/* A test for each of the @n rows of a table, @path/@names[i] or @path/i where there are no names; its data is i. */
static inline void
add_row_tests (const char *path, const char *const *names, guint n, GTestDataFunc test)
{
  for (guint i = 0; i < n; i++) {
    g_autofree char *own = names != NULL ? g_strconcat (path, "/", names[i], NULL)
                                         : g_strdup_printf ("%s/%u", path, i);
    g_test_add_data_func (own, GUINT_TO_POINTER (i), test);
  }
}
