/* SPDX-License-Identifier: MIT
 *
 * test-progress.c: what the line says, and that it is written only where it may be. */
#include <glib.h>
#include <string.h>

#include "../case-fails.h"
#include "base/tiny-progress.h"

static void
assert_line (TinyProgress *progress, const char *pattern)
{
  g_autofree char *line = tiny_progress_to_string (progress);
  if (!g_pattern_match_simple (pattern, line))
    CASE_FAILS ("“%s” is not like “%s”", line, pattern);
}

static void
test_text (void)
{
  g_autoptr (TinyProgress) progress = tiny_progress_new ("epoch 1", 10, TINY_PROGRESS_NEVER);
  assert_line (progress, "epoch 1   0% [                    ] 0/10");
  tiny_progress_update (progress, 4, "loss 0.5");
  assert_line (progress, "epoch 1  40% [########            ] 4/10  */s  0:0? left  loss 0.5");
  tiny_progress_update (progress, 10, NULL);
  assert_line (progress, "epoch 1 100% [####################] 10/10  */s");
  tiny_progress_update (progress, 20, NULL);
  assert_line (progress, "epoch 1 100% [####################] 20/10  */s");
  g_autoptr (TinyProgress) unknown = tiny_progress_new (NULL, 0, TINY_PROGRESS_NEVER);
  tiny_progress_update (unknown, G_MAXUINT64, NULL);
  assert_line (unknown, "18446744073709551615  */s");
}

/* In a process of its own, whose standard error is a pipe: what is shown is what was asked for. */
static void
write_lines (void)
{
  static const char *const labels[] = { "by itself", "never", "asked for" };
  for (guint mode = 0; mode < 3; mode++) {
    g_autoptr (TinyProgress) progress
        = tiny_progress_new (labels[mode], 1000, (TinyProgressMode) mode);
    for (guint i = 1; i <= 1000; i++)
      tiny_progress_update (progress, i, NULL);
    tiny_progress_finish (progress);
    tiny_progress_update (progress, 1, NULL);
  }
}

static void
test_shown (void)
{
  if (g_test_subprocess ()) {
    write_lines ();
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("asked for   0% *1/1000*\nasked for 100% *1000/1000*/s\n");
  g_test_trap_assert_stderr_unmatched ("*never*");
  g_test_trap_assert_stderr_unmatched ("*by itself*");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/progress/text", test_text);
  g_test_add_func ("/progress/shown", test_shown);
  return g_test_run ();
}
