/* SPDX-License-Identifier: MIT
 *
 * tiny-crash.c: backends in which a program has crashed, remembered from one start to the next. */
#include "plugin/tiny-crash.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tiny-env.h"
#include "plugin/tiny-elf.h"

#define FIRST_LINE "tiny-crash 1\n"
enum { MAX_BYTES = 8192 };

/* ---- which build a file is ---- */

static char *
identify_build (const char *path)
{
  struct stat info;
  g_autoptr (TinyElf) elf = tiny_elf_open (path, NULL);
  g_autofree char *id = elf != NULL ? tiny_elf_read_build_id (elf) : NULL;
  if (id != NULL)
    return g_strconcat ("build-id ", id, NULL);
  if (stat (path, &info) != 0)
    return g_strdup ("absent");
  return g_strdup_printf ("%lld bytes of %lld", (long long) info.st_size,
                          (long long) info.st_mtime);
}

/* ---- notes ---- */
static char *
get_note_path (const char *folder, const TinyManifest *manifest)
{
  return g_build_filename (folder, manifest->name,
                           NULL); /* names are letters, digits, - and _ */
}

TinyWatch *
tiny_crash_watch (const char *folder, const TinyManifest *manifest)
{
  if (folder == NULL || tiny_env_get_int (TINY_ENV_CRASH_NOTES) == 0)
    return NULL;
  g_autofree char *path = get_note_path (folder, manifest);
  g_autofree char *build = identify_build (manifest->module);
  g_autofree char *head
      = g_strdup_printf (FIRST_LINE "module %s\nbuild %s\n", manifest->module, build);
  g_mkdir_with_parents (folder, 0700);
  return tiny_watch_new (path, manifest->module, head);
}

/* The rest of the line that begins with @word. */
static char *
find_line (char *const *lines, const char *word)
{
  for (guint i = 0; lines[i] != NULL; i++)
    if (g_str_has_prefix (lines[i], word) && lines[i][strlen (word)] == ' ')
      return g_utf8_make_valid (lines[i] + strlen (word) + 1, -1);
  return NULL;
}

static TinyCrash *
parse (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", 16);
  g_autoptr (TinyCrash) self = g_new0 (TinyCrash, 1);
  g_autofree char *number = find_line (lines, "signal");
  self->function = find_line (lines, "function");
  self->build = find_line (lines, "build");
  self->signal = number != NULL ? (int) g_ascii_strtoll (number, NULL, 10) : 0;
  const gboolean is_whole
      = g_str_has_prefix (text, FIRST_LINE) && g_str_has_suffix (text, "\nend\n");
  return is_whole && self->function != NULL && self->build != NULL ? g_steal_pointer (&self)
                                                                   : NULL;
}

TinyCrash *
tiny_crash_recall (const char *folder, const TinyManifest *manifest)
{
  struct stat info;
  g_autofree char *path = folder != NULL ? get_note_path (folder, manifest) : NULL;
  g_autofree char *text = NULL;
  if (path == NULL || tiny_env_get_int (TINY_ENV_CRASH_NOTES) == 0 || stat (path, &info) != 0
      || !S_ISREG (info.st_mode) || info.st_size > MAX_BYTES
      || !g_file_get_contents (path, &text, NULL, NULL))
    return NULL;
  g_autoptr (TinyCrash) self = parse (text);
  g_autofree char *build = identify_build (manifest->module);
  g_auto (GStrv) lines = g_strsplit (text, "\n", 16);
  g_autofree char *module = find_line (lines, "module");
  if (self == NULL || !g_str_equal (self->build, build)
      || g_strcmp0 (module, manifest->module) != 0) {
    g_unlink (path);
    return NULL;
  }
  self->when = info.st_mtime;
  return g_steal_pointer (&self);
}

void
tiny_crash_free (TinyCrash *self)
{
  if (self == NULL)
    return;
  g_free (self->function);
  g_free (self->build);
  g_free (self);
}

void
tiny_crash_forget (const char *folder, const TinyManifest *manifest)
{
  if (folder == NULL)
    return;
  if (manifest != NULL) {
    g_autofree char *path = get_note_path (folder, manifest);
    g_unlink (path);
    return;
  }
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_unlink (path);
  }
}

char *
tiny_crash_to_string (const TinyCrash *self)
{
  g_autoptr (GDateTime) when = g_date_time_new_from_unix_local (self->when);
  g_autofree char *date = when ? g_date_time_format (when, "%F %H:%M") : g_strdup ("?");
  g_autofree char *what = self->signal > 0
                              ? g_strdup_printf ("a program crashed with signal %d (%s) in its",
                                                 self->signal, g_strsignal (self->signal))
                              : g_strdup ("it ended a program by exit () in its");
  return g_strdup_printf ("%s %s on %s (%s)", what, self->function, date, self->build);
}
