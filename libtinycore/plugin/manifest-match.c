/* SPDX-License-Identifier: MIT
 *
 * manifest-match.c: whether this machine has what a manifest asks for.
 *
 * A manifest that names modaliases or device nodes wants any one of them; every CPU feature it
 * names must be there; one that names nothing fits everywhere. Only names are read, no device is
 * opened. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/tiny-manifest.h"

/* Where these begin, fnmatch() and glob() have something to do; a backslash quotes. */
#define WILDCARDS "*?[\\"

/* The buses that accelerators hang on, and how the modaliases of their devices begin; NULL: in many ways, but not as those. */
static const struct {
  const char *folder, *begins;
} buses[] = { { "/sys/bus/pci/devices", "pci:" },
              { "/sys/bus/usb/devices", "usb:" },
              { "/sys/bus/platform/devices", NULL } };

static GPtrArray *
read_modaliases (const char *folder)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (g_free);
  /* What is not there is asked for first: GLib words the error also where nobody wants it, for which it loads tables of character
   * sets, which takes as long as 50 manifests. */
  g_autoptr (GDir) dir = access (folder, F_OK) == 0 ? g_dir_open (folder, 0, NULL) : NULL;
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (folder, name, "modalias", NULL);
    char text[1024];
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    gssize n = fd >= 0 ? read (fd, text, sizeof text) : 0;
    if (fd >= 0)
      close (fd);
    if (n > 0)
      g_ptr_array_add (out, g_strchomp (g_strndup (text, (gsize) n)));
  }
  return out;
}

/* Those of a bus, read once, and only where some manifest asks for it: a start-up is to be short. */
static const GPtrArray *
get_modaliases (guint bus)
{
  static gsize all[G_N_ELEMENTS (buses)];
  if (g_once_init_enter (&all[bus]))
    g_once_init_leave (&all[bus], (gsize) read_modaliases (buses[bus].folder));
  return (const GPtrArray *) all[bus];
}

static gboolean
can_be_on (guint bus, const char *pattern, gsize n_plain)
{
  const char *begins = buses[bus].begins;
  if (begins != NULL)
    return strncmp (pattern, begins, MIN (n_plain, strlen (begins))) == 0;
  for (guint i = 0; i < G_N_ELEMENTS (buses); i++)
    if (buses[i].begins != NULL && g_str_has_prefix (pattern, buses[i].begins))
      return FALSE;
  return TRUE;
}

/* fnmatch() makes wide characters of both texts first; most differ before the first wildcard. */
static gboolean
has_one (const char *pattern)
{
  gsize n_plain = strcspn (pattern, WILDCARDS);
  for (guint bus = 0; bus < G_N_ELEMENTS (buses); bus++) {
    const GPtrArray *all = can_be_on (bus, pattern, n_plain) ? get_modaliases (bus) : NULL;
    for (guint i = 0; all != NULL && i < all->len; i++) {
      const char *text = all->pdata[i];
      if (strncmp (pattern, text, n_plain) == 0
          && fnmatch (pattern + n_plain, text + n_plain, 0) == 0)
        return TRUE;
    }
  }
  return FALSE;
}

static gboolean
has_modalias (char *const *wanted)
{
  for (guint i = 0; wanted[i] != NULL; i++)
    if (has_one (wanted[i]))
      return TRUE;
  return FALSE;
}

/* What is not there is not looked for again at once: a start-up asks once for each manifest, and names in /dev that are not there
 * are among the slow ones. */
static gboolean
is_there (const char *folder)
{
  enum { FRESH_US = 10000 };
  static GMutex lock;
  static GHashTable *absent; /* folder → gint64: when it was not there */
  g_mutex_lock (&lock);
  if (absent == NULL)
    absent = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  const gint64 now = g_get_monotonic_time (), *last = g_hash_table_lookup (absent, folder);
  gboolean found = FALSE;
  if (last == NULL || now - *last > FRESH_US) {
    found = access (folder, F_OK) == 0;
    if (!found)
      g_hash_table_replace (absent, g_strdup (folder), g_memdup2 (&now, sizeof now));
  }
  g_mutex_unlock (&lock);
  return found;
}

/* Whether the folder in which a pattern's first wildcard is to be looked for is there: for most backends' it is not. */
static gboolean
can_match (const char *pattern)
{
  gsize n_plain = strcspn (pattern, WILDCARDS);
  while (n_plain > 1 && pattern[n_plain - 1] != '/')
    n_plain--;
  g_autofree char *folder = g_strndup (pattern, n_plain);
  return is_there (folder);
}

static gboolean
has_node (char *const *wanted)
{
  for (guint i = 0; wanted[i] != NULL; i++) {
    glob_t paths = { 0 };
    gboolean found = can_match (wanted[i]) && glob (wanted[i], GLOB_NOSORT, NULL, &paths) == 0
                     && paths.gl_pathc > 0;
    globfree (&paths);
    if (found)
      return TRUE;
  }
  return FALSE;
}

/* The first feature the CPU lacks, or NULL. */
static const char *
find_missing_feature (char *const *wanted)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    return NULL; /* then the plugin has to look itself */
  const char *line = strstr (text, "\nflags");
  line = line ? line : strstr (text, "\nFeatures");
  g_autofree char *first
      = line ? g_strndup (line + 1, strcspn (line + 1, "\n")) : g_strdup ("");
  g_auto (GStrv) has = g_strsplit_set (first, " \t:", -1);
  for (guint i = 0; wanted[i] != NULL; i++)
    if (!g_strv_contains ((const char *const *) has, wanted[i]))
      return wanted[i];
  return NULL;
}

gboolean
tiny_manifest_matches (const TinyManifest *self, char **out_reason)
{
  gboolean asks_hardware = self->modalias[0] != NULL || self->device_nodes[0] != NULL;
  if (asks_hardware && !has_modalias (self->modalias) && !has_node (self->device_nodes)) {
    if (out_reason == NULL)
      return FALSE;
    g_autofree char *modalias = g_strjoinv (", ", self->modalias);
    g_autofree char *nodes = g_strjoinv (", ", self->device_nodes);
    *out_reason = g_strconcat ("this machine has no such hardware (looked for ", modalias,
                               modalias[0] && nodes[0] ? ", " : "", nodes, ")", NULL);
    return FALSE;
  }
  const char *missing
      = self->cpu_features[0] != NULL ? find_missing_feature (self->cpu_features) : NULL;
  if (missing != NULL && out_reason != NULL)
    *out_reason = g_strdup_printf ("this CPU has no %s", missing);
  return missing == NULL;
}

/* ---- permissions ---- */
static char *
name_group (gid_t group)
{
  char room[4096];
  struct group entry, *found = NULL;
  if (getgrgid_r (group, &entry, room, sizeof room, &found) == 0 && found != NULL)
    return g_strdup (found->gr_name);
  return g_strdup_printf ("%u", group);
}

static char *
name_user (uid_t user)
{
  char room[4096];
  struct passwd entry, *found = NULL;
  if (getpwuid_r (user, &entry, room, sizeof room, &found) == 0 && found != NULL)
    return g_strdup (found->pw_name);
  return g_strdup_printf ("%u", user);
}

static char *
describe_forbidden (const char *path)
{
  struct stat info;
  if (faccessat (AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 || errno != EACCES
      || stat (path, &info) != 0)
    return NULL;
  g_autofree char *owner = name_user (info.st_uid), *group = name_group (info.st_gid);
  g_autofree char *you = name_user (geteuid ());
  gboolean by_group
      = (info.st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP) && info.st_gid != 0;
  g_autofree char *repair
      = by_group
            ? g_strdup_printf ("sudo usermod -aG %s %s, then log in anew", group, you)
            : g_strdup_printf ("an administrator has to let you, with a group and a udev rule");
  return g_strdup_printf (
      "%s belongs to %s:%s with mode %04o, and you (%s) may not open it: %s", path, owner,
      group, info.st_mode & 07777, you, repair);
}

char *
tiny_manifest_find_forbidden (const TinyManifest *self)
{
  char *out = NULL;
  for (guint i = 0; self->device_nodes[i] != NULL && out == NULL; i++) {
    glob_t paths = { 0 };
    if (glob (self->device_nodes[i], 0, NULL, &paths) == 0)
      for (gsize j = 0; j < paths.gl_pathc && out == NULL; j++)
        out = describe_forbidden (paths.gl_pathv[j]);
    globfree (&paths);
  }
  return out;
}
