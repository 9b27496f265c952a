/* SPDX-License-Identifier: MIT
 *
 * test-settings.c: variables are found by name, changed, and refuse what they cannot be. */
#include "base/tiny-settings.h"

#include "base/tiny-env.h"
#include "base/tiny-error.h"

static void
check_setting (const char *name, const char *wanted)
{
  g_autofree char *found = tiny_get_setting (name);
  g_assert_cmpstr (found, ==, wanted);
}

static void
test_change (void)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_set_setting ("DEBUG", "2", &error));
  g_assert_no_error (error);
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_DEBUG), ==, 2);
  check_setting ("DEBUG", "2");
  g_assert_true (tiny_set_setting ("TINY_TUNED", "a:b", &error));
  check_setting ("TINY_TUNED", "a:b");
  g_assert_true (tiny_set_setting ("TINY_TUNED", NULL, &error));
  check_setting ("TINY_TUNED", NULL);
  g_assert_true (tiny_set_setting ("TINY_VERIFY", "-1", &error));
}

static void
test_refuse (void)
{
  const char *bad[][2] = { { NULL, "1" },     { "", "1" },
                           { "HOME", "1" },   { "DEBUG", NULL },
                           { "DEBUG", "" },   { "DEBUG", "loud" },
                           { "DEBUG", "1 " }, { "DEBUG", "9999999999" },
                           { "DEBUG", "-1" }, { "TINY_VERIFY", "-2" } };
  int before = tiny_env_get_int (TINY_ENV_DEBUG);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_false (tiny_set_setting (bad[i][0], bad[i][1], &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  }
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_DEBUG), ==, before);
  check_setting (NULL, NULL);
  check_setting ("HOME", NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/settings/change", test_change);
  g_test_add_func ("/base/settings/refuse", test_refuse);
  return g_test_run ();
}
