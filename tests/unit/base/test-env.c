/* SPDX-License-Identifier: MIT
 *
 * test-env.c: variables come from the environment once, have defaults, and can be overridden. */
#include "base/tiny-env.h"

static void
test_read (void)
{
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_DEBUG), ==, 3);
  g_assert_cmpstr (tiny_env_get_text (TINY_ENV_DEV), ==, "CL:1");
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_NO_OPT), ==, 0); /* set, but empty */
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_VERIFY), ==, -1);
  g_assert_null (tiny_env_get_text (TINY_ENV_BACKEND));
  g_setenv ("DEBUG", "7", TRUE);
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_DEBUG), ==, 3);
}

static void
test_override (void)
{
  tiny_env_set_int (TINY_ENV_DEBUG, 2);
  gboolean at_2 = TINY_DEBUG (2), at_3 = TINY_DEBUG (3);
  g_assert_true (at_2);
  g_assert_false (at_3);
  tiny_env_set_text (TINY_ENV_DEV, "REF");
  g_assert_cmpstr (tiny_env_get_text (TINY_ENV_DEV), ==, "REF");
  tiny_env_set_text (TINY_ENV_DEV, NULL);
  g_assert_null (tiny_env_get_text (TINY_ENV_DEV));
}

static void
test_table (void)
{
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < TINY_N_ENVS; i++) {
    g_assert_true (g_hash_table_add (names, (gpointer) tiny_env_get_name (i)));
    g_assert_nonnull (tiny_env_get_meaning (i));
  }
  g_assert_true (tiny_env_is_int (TINY_ENV_DEBUG));
  g_assert_false (tiny_env_is_int (TINY_ENV_DEV));
}

/* What works for this process neither searches nor records, is on its own device, and has the rest. */
static void
test_helper (void)
{
  g_auto (GStrv) helper = tiny_env_for_helper ();
  g_assert_null (g_environ_getenv (helper, "DEBUG"));
  g_assert_null (g_environ_getenv (helper, "TINY_TUNED"));
  g_assert_cmpstr (g_environ_getenv (helper, "DEV"), ==, "CL:1");
  g_assert_cmpstr (g_environ_getenv (helper, "TINY_CRASH_NOTES"), ==, "0");
  g_assert_cmpstr (g_getenv ("TINY_TUNED"), ==, "nothing");
}

int
main (int argc, char **argv)
{
  g_setenv ("DEBUG", "3", TRUE);
  g_setenv ("DEV", "CL:1", TRUE);
  g_setenv ("TINY_NO_OPT", "", TRUE);
  g_unsetenv ("TINY_VERIFY");
  g_unsetenv ("BACKEND");
  g_setenv ("TINY_TUNED", "nothing", TRUE);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/env/read", test_read);
  g_test_add_func ("/base/env/override", test_override);
  g_test_add_func ("/base/env/table", test_table);
  g_test_add_func ("/base/env/helper", test_helper);
  return g_test_run ();
}
