/* SPDX-License-Identifier: MIT
 *
 * process-state.h: what a process holds, for tests that nothing is left behind. */
#pragma once

#include <glib.h>
#include <string.h>
#include <unistd.h>

static inline guint
count_files (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;
  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static inline guint
count_mappings (void)
{
  g_autofree char *text = NULL;
  guint n = 0;
  g_assert_true (g_file_get_contents ("/proc/self/maps", &text, NULL, NULL));
  for (const char *at = text; (at = strstr (at, "memfd:")) != NULL; at++)
    n++;
  return n;
}

/* Processes that this one has started, with zombies; *@out_last is one of them. */
static inline guint
count_children (pid_t *out_last)
{
  g_autofree char *text = NULL;
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", getpid ());
  guint n = 0;
  pid_t last = 0;
  /* Of each thread; the one that starts them is not always this. */
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/task", 0, NULL);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir)) {
    g_autofree char *file = g_strdup_printf ("/proc/self/task/%s/children", name);
    g_clear_pointer (&text, g_free);
    if (!g_file_get_contents (file, &text, NULL, NULL))
      continue;
    g_auto (GStrv) pids = g_strsplit (g_strstrip (text), " ", -1);
    for (guint i = 0; pids[i] != NULL && pids[i][0] != 0; i++, n++)
      last = (pid_t) g_ascii_strtoll (pids[i], NULL, 10);
  }
  if (out_last != NULL)
    *out_last = last;
  return n;
}

/* From here on, where @so, LeakSanitizer looks at no process that is started: a worker that a plugin's exit () ends has what
 * the program has handles of. */
static inline void
leave_leaks (gboolean so)
{
  const char *options = g_getenv ("ASAN_OPTIONS");
  g_autofree char *changed = g_strconcat (options ? options : "", ":detect_leaks=0", NULL);
  if (so)
    g_setenv ("ASAN_OPTIONS", changed, TRUE);
}
