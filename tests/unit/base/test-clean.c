/* SPDX-License-Identifier: MIT
 *
 * test-clean.c: texts of plugins and files: they end, are UTF-8, and steer no terminal. */
#include <string.h>

#include "base/tiny-clean.h"

static void
test_clean (void)
{
  static const struct {
    const char *text;
    gsize size;
    const char *clean;
  } rows[] = { { "plain", 64, "plain" },
               { "as long as", 3, "as " },
               { "", 0, "" },
               { NULL, 5, "" },
               { "two\nlines\tand", 64, "two\nlines\tand" },
               { "\x1b[31mred\a", 64, "?[31mred?" },
               { "back\rwards\x7f", 64, "back?wards?" },
               { "na\xc3\xafve €", 64, "naïve €" },
               { "cut \xe2\x82\xac", 6, "cut \xef\xbf\xbd\xef\xbf\xbd" },
               { "bad \xff", 64, "bad \xef\xbf\xbd" },
               { "turn \xe2\x80\xae round", 64, "turn ? round" } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *clean = tiny_clean_text (rows[i].text, rows[i].size);
    g_assert_cmpstr (clean, ==, rows[i].clean);
  }
}

/* A field that is full has no NUL; what lies behind it is not read. */
static void
test_endless (void)
{
  g_autofree char *field = g_malloc (32);
  memset (field, 'x', 32);
  g_autofree char *clean = tiny_clean_text (field, 32);
  g_assert_cmpuint (strlen (clean), ==, 32);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/clean/texts", test_clean);
  g_test_add_func ("/base/clean/endless", test_endless);
  return g_test_run ();
}
