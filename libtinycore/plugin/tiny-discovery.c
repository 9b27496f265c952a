/* SPDX-License-Identifier: MIT
 *
 * tiny-discovery.c: the manifests there are, in the order in which they count. */
#include "plugin/tiny-discovery.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "plugin/tiny-library.h"

#define SUBFOLDER "tinycore-1.0/plugins.d"

typedef struct {
  GPtrArray *all;      /* of TinyFound */
  GPtrArray *places;   /* of TinyPlace */
  GHashTable *folders; /* canonical paths that were searched */
  const char *rule;    /* of what is searched now */
} Search;

static void
place_free (gpointer data)
{
  TinyPlace *self = data;
  g_free (self->path);
  g_free (self->error);
  g_free (self);
}

static TinyPlace *
add_place (Search *search, const char *path)
{
  TinyPlace *place = g_new0 (TinyPlace, 1);
  place->rule = search->rule;
  place->path = g_strdup (path);
  g_ptr_array_add (search->places, place);
  return place;
}

static void
found_free (gpointer data)
{
  TinyFound *self = data;
  g_free (self->name);
  g_free (self->path);
  g_free (self->stem);
  g_free (self->shadower);
  g_clear_pointer (&self->manifest, tiny_manifest_free);
  g_clear_error (&self->error);
  g_free (self);
}

static char *
stem_of (const char *path)
{
  char *name = g_path_get_basename (path);
  if (g_str_has_suffix (name, ".json"))
    name[strlen (name) - 5] = 0;
  return name;
}

/* An earlier manifest with the same file name or the same backend name hides this one. */
static void
find_shadower (const Search *search, TinyFound *found)
{
  for (guint i = 0; i < search->all->len && found->shadower == NULL; i++) {
    const TinyFound *earlier = search->all->pdata[i];
    if (earlier->shadower == NULL
        && (g_ascii_strcasecmp (found->stem, earlier->stem) == 0
            || g_ascii_strcasecmp (found->name, earlier->name) == 0))
      found->shadower = g_strdup (earlier->path);
  }
}

static void
read_file (Search *search, const char *path, gboolean any_owner)
{
  TinyFound *found = g_new0 (TinyFound, 1);
  struct stat info;
  gint64 before = g_get_monotonic_time ();
  found->rule = search->rule;
  found->path = g_canonicalize_filename (path, NULL);
  found->stem = stem_of (path);
  found->any_owner = any_owner;
  /* A link to /dev/null masks as well; it is a file that is empty, after all. */
  found->is_mask = stat (path, &info) == 0
                   && ((S_ISREG (info.st_mode) && info.st_size == 0) || S_ISCHR (info.st_mode));
  if (!found->is_mask && tiny_file_check_trust (path, any_owner, &found->error)) {
    found->manifest = tiny_manifest_load (found->path, &found->error);
    if (found->error != NULL)
      g_prefix_error (&found->error, "%s: ", path);
  }
  found->name = found->manifest ? g_strdup (found->manifest->name) : g_strdup (found->stem);
  found->took_us = (guint) (g_get_monotonic_time () - before);
  find_shadower (search, found);
  g_ptr_array_add (search->all, found);
}

static void
add_file (Search *search, const char *path, gboolean any_owner)
{
  TinyPlace *place = add_place (search, path);
  place->is_there = g_file_test (path, G_FILE_TEST_EXISTS);
  place->n_manifests = 1;
  read_file (search, path, any_owner);
}

/* What may hold backends and cannot be looked into is said, not passed over. */
static void
add_unreadable (Search *search, TinyPlace *place)
{
  TinyFound *found = g_new0 (TinyFound, 1);
  found->path = g_canonicalize_filename (place->path, NULL);
  found->name = g_path_get_basename (found->path);
  found->stem = g_strdup (found->name);
  found->rule = search->rule;
  g_set_error (&found->error, TINY_ERROR, TINY_ERROR_PERMISSION,
               "the folder %s %s: chmod a+rx '%s'", place->path, place->error, place->path);
  g_ptr_array_add (search->all, found);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

static void
add_folder (Search *search, const char *folder, gboolean any_owner)
{
  char *canonical = g_canonicalize_filename (folder, NULL);
  if (!g_hash_table_add (search->folders, canonical))
    return;
  DIR *dir = opendir (folder);
  int failure = dir ? 0 : errno;
  TinyPlace *place = add_place (search, folder);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  place->is_there = dir != NULL || failure == EACCES;
  if (failure == EACCES) {
    place->error = g_strdup_printf ("cannot be read: %s", g_strerror (failure));
    add_unreadable (search, place);
  }
  for (struct dirent *row = dir ? readdir (dir) : NULL; row != NULL; row = readdir (dir))
    if (g_str_has_suffix (row->d_name, ".json") && row->d_name[0] != '.')
      g_ptr_array_add (names, g_strdup (row->d_name));
  if (dir != NULL)
    closedir (dir);
  g_ptr_array_sort (names, compare_names);
  place->n_manifests = names->len;
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *path = g_build_filename (folder, names->pdata[i], NULL);
    read_file (search, path, any_owner);
  }
}

static void
add_list (Search *search, const char *list, void add (Search *, const char *, gboolean))
{
  g_auto (GStrv) parts = g_strsplit (list ? list : "", G_SEARCHPATH_SEPARATOR_S, -1);
  for (guint i = 0; parts[i] != NULL; i++)
    if (parts[i][0] != 0)
      add (search, parts[i], TRUE);
}

static char *
library_folder (void)
{
  g_autofree char *own = tiny_library_get_own_path ();
  return own != NULL ? g_path_get_dirname (own) : NULL;
}

static const char *const above[] = { "", "..", "../.." };

char *
tiny_find_beside_library (const char *way)
{
  g_autofree char *folder = library_folder ();
  for (guint i = 0; folder != NULL && i < G_N_ELEMENTS (above); i++) {
    g_autofree char *path = g_build_filename (folder, above[i], way, NULL);
    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return g_canonicalize_filename (path, NULL);
  }
  return NULL;
}

/* In a tree that was moved as a whole: wheels, conda, AppImages. */
static void
add_beside_library (Search *search)
{
  g_autofree char *folder = library_folder ();
  for (guint i = 0; folder != NULL && i < G_N_ELEMENTS (above); i++) {
    g_autofree char *path
        = g_build_filename (folder, above[i], i > 0 ? "share/" SUBFOLDER : SUBFOLDER, NULL);
    add_folder (search, path, FALSE);
  }
}

static void
add_below (Search *search, const char *data_folder)
{
  g_autofree char *path = g_build_filename (data_folder, SUBFOLDER, NULL);
  add_folder (search, path, FALSE);
}

static void
search_everywhere (Search *search, const GPtrArray *added)
{
  gboolean privileged = tiny_env_is_privileged ();
  if (!privileged) {
    search->rule = "TINY_PLUGIN_FILES";
    add_list (search, tiny_env_get_text (TINY_ENV_PLUGIN_FILES), add_file);
    search->rule = "TINY_PLUGIN_PATH";
    add_list (search, tiny_env_get_text (TINY_ENV_PLUGIN_PATH), add_folder);
  }
  search->rule = "named by the program";
  for (guint i = 0; added != NULL && i < added->len; i++)
    add_folder (search, added->pdata[i], TRUE);
  search->rule = "the administrator's folder";
  add_folder (search, "/etc/" SUBFOLDER, FALSE);
  search->rule = "beside the library";
  add_beside_library (search);
  search->rule = "the user's data folder";
  if (!privileged)
    add_below (search, g_get_user_data_dir ());
  search->rule = "where tinycore was installed";
  add_folder (search, TINY_MANIFEST_DIR, FALSE);
  search->rule = "the system's data folders";
  const char *const *system_folders = g_get_system_data_dirs ();
  for (guint i = 0; !privileged && system_folders[i] != NULL; i++)
    add_below (search, system_folders[i]);
}

GPtrArray *
tiny_discover (const char *const *folders, const GPtrArray *added, GPtrArray **out_places)
{
  Search search = { g_ptr_array_new_with_free_func (found_free),
                    g_ptr_array_new_with_free_func (place_free),
                    g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                    "named by the program" };
  for (guint i = 0; folders != NULL && folders[i] != NULL; i++)
    add_folder (&search, folders[i], TRUE);
  if (folders == NULL)
    search_everywhere (&search, added);
  g_hash_table_unref (search.folders);
  if (out_places != NULL)
    *out_places = search.places;
  else
    g_ptr_array_unref (search.places);
  return search.all;
}
