/* SPDX-License-Identifier: MIT
 *
 * test-arguments.c: what GOption takes in silence is refused with its name, however it is written, and nothing else
 * is. */
#include "base/tiny-arguments.h"

#include <locale.h>

static const GOptionEntry entries[]
    = { { "dir", 'd', 0, G_OPTION_ARG_FILENAME, NULL, "", "DIR" },
        { "kind", 0, 0, G_OPTION_ARG_STRING, NULL, "", "KIND" },
        { "jobs", 'j', 0, G_OPTION_ARG_INT, NULL, "", "N" },
        { "filter", 0, 0, G_OPTION_ARG_STRING_ARRAY, NULL, "", "GLOB" },
        { "tap", 't', 0, G_OPTION_ARG_NONE, NULL, "", NULL },
        G_OPTION_ENTRY_NULL };

static const struct {
  const char *words[6];
  const char *part; /* of the message; NULL: it is good */
} rows[] = {
  { { "x" }, NULL },
  { { "--dir", "a", "--kind=b", "-j4", "--tap", "--tap" }, NULL },
  { { "--filter", "a", "--filter", "b" }, NULL },
  { { "-tj", "4", "-da" }, NULL },
  { { "--dir", "--dir" }, NULL }, /* the second is the value */
  { { "--", "--dir", "--dir" }, NULL },
  { { "--dir" }, NULL }, /* for GOption to say */
  { { "--other", "-z" }, NULL },
  { { "--dir", "\xff" }, NULL },
  { { "-" }, NULL },
  { { "" }, "empty argument" },
  { { "--", "" }, "empty argument" },
  { { "--dir", "" }, "--dir “” is empty: it wants DIR" },
  { { "--kind=" }, "--kind “” is empty" },
  { { "-td", "" }, "--dir “” is empty" },
  { { "--filter", "a", "--filter", "" }, "--filter “” is empty" },
  { { "--kind", "a\xff" }, "--kind “a\\377” is no text" },
  { { "--filter=\xff" }, "--filter “\\377” is no text" },
  { { "--dir", "a", "-db" }, "--dir is given twice" },
  { { "--jobs=1", "x", "-tj2" }, "--jobs is given twice" },
};

static void
test_check (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    char *argv[8] = { (char *) "program" };
    int argc = 1;
    g_autoptr (GError) error = NULL;
    for (guint k = 0; k < G_N_ELEMENTS (rows[i].words) && rows[i].words[k] != NULL; k++)
      argv[argc++] = (char *) rows[i].words[k];
    const gboolean good = tiny_arguments_check (entries, argc, argv, &error);
    g_test_message ("row %u: %s", i, error ? error->message : "good");
    g_assert_true (good == (rows[i].part == NULL));
    if (!good)
      g_assert_nonnull (g_strstr_len (error->message, -1, rows[i].part));
  }
}

static void
test_given (void)
{
  char *argv[] = { (char *) "p", (char *) "-tj", (char *) "4",      (char *) "--dir",
                   (char *) "x", (char *) "--",  (char *) "--kind", NULL };
  g_autofree const char **given = tiny_arguments_list_given (entries, 7, argv);
  const char *const wanted[] = { "tap", "jobs", "dir", NULL };
  g_assert_true (g_strv_equal ((const char *const *) given, wanted));
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "C.UTF-8");
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/arguments/check", test_check);
  g_test_add_func ("/base/arguments/given", test_given);
  return g_test_run ();
}
