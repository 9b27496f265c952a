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
  /* Of those that are not shadowed, in lower case → their place in all, from 1 on. */
  GHashTable *stems, *names;
  const char *rule; /* of what is searched now */
  TinyManifestCache *cache;
  char *folder; /* whose files are read now; it is asked once about who may write it … */
  gboolean any_owner;   /* … in this way */
  GError *folder_error; /* or NULL: it is trusted */
  gboolean is_short;    /* a folder could not be read for another reason than its permissions */
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
  const char *slash = strrchr (path, '/'), *name = slash != NULL ? slash + 1 : path;
  return g_strndup (name, strlen (name) - (g_str_has_suffix (name, ".json") ? 5 : 0));
}

/* An earlier manifest with the same file name or the same backend name hides this one. */
static void
add_found (Search *search, TinyFound *found)
{
  g_autofree char *stem = g_ascii_strdown (found->stem, -1);
  g_autofree char *name = g_ascii_strdown (found->name, -1);
  guint by_stem = GPOINTER_TO_UINT (g_hash_table_lookup (search->stems, stem));
  guint by_name = GPOINTER_TO_UINT (g_hash_table_lookup (search->names, name));
  guint first = by_stem && by_name ? MIN (by_stem, by_name) : MAX (by_stem, by_name);
  g_ptr_array_add (search->all, found);
  if (first > 0) {
    found->shadower = g_strdup (((const TinyFound *) search->all->pdata[first - 1])->path);
    return;
  }
  gpointer place = GUINT_TO_POINTER (search->all->len);
  g_hash_table_insert (search->stems, g_steal_pointer (&stem), place);
  g_hash_table_insert (search->names, g_steal_pointer (&name), place);
}

static gboolean
stat_file (const char *path, struct stat *out, GError **error)
{
  if (stat (path, out) == 0)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path, g_strerror (errno));
  return FALSE;
}

static gboolean
check_folder (Search *search, const char *path, gboolean any_owner, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);
  struct stat info;
  if (g_strcmp0 (search->folder, folder) != 0 || search->any_owner != any_owner) {
    search->any_owner = any_owner;
    g_clear_error (&search->folder_error);
    g_free (search->folder);
    search->folder = g_strdup (folder);
    if (stat_file (folder, &info, &search->folder_error))
      tiny_stat_check_trust (folder, &info, any_owner, &search->folder_error);
  }
  if (search->folder_error != NULL)
    g_propagate_error (error, g_error_copy (search->folder_error));
  return search->folder_error == NULL;
}

/* Takes @path, which is absolute and canonical. */
static void
read_file (Search *search, char *path, gboolean any_owner)
{
  TinyFound *found = g_new0 (TinyFound, 1);
  struct stat info = { 0 };
  gint64 before = g_get_monotonic_time ();
  found->rule = search->rule;
  found->path = path;
  found->stem = stem_of (path);
  found->any_owner = any_owner;
  /* A link to /dev/null masks as well; it is a file that is empty, after all. */
  gboolean is_there = stat_file (path, &info, &found->error);
  found->is_mask
      = is_there && ((S_ISREG (info.st_mode) && info.st_size == 0) || S_ISCHR (info.st_mode));
  if (is_there && !found->is_mask && check_folder (search, path, any_owner, &found->error)
      && tiny_stat_check_trust (path, &info, any_owner, &found->error)) {
    found->manifest = tiny_manifest_cache_load (search->cache, path, &info, &found->error);
    if (found->error != NULL)
      g_prefix_error (&found->error, "%s: ", path);
  }
  found->name = found->manifest ? g_strdup (found->manifest->name) : g_strdup (found->stem);
  found->took_us = (guint) (g_get_monotonic_time () - before);
  add_found (search, found);
}

static void
add_file (Search *search, const char *path, gboolean any_owner)
{
  TinyPlace *place = add_place (search, path);
  place->is_there = g_file_test (path, G_FILE_TEST_EXISTS);
  place->n_manifests = 1;
  read_file (search, g_canonicalize_filename (path, NULL), any_owner);
  TinyFound *found = search->all->pdata[search->all->len - 1];
  if (g_file_test (path, G_FILE_TEST_IS_DIR)) {
    g_clear_error (&found->error);
    g_set_error (&found->error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s names manifests of backends (NAME.json), %s is a folder: TINY_PLUGIN_PATH "
                 "names those",
                 search->rule, path);
  } else if (!place->is_there)
    g_prefix_error (&found->error,
                    "%s names manifests of backends (NAME.json): ", search->rule);
}

/* What may hold backends and cannot be looked into is said, not passed over. */
static void
add_unreadable (Search *search, TinyPlace *place, int failure)
{
  TinyFound *found = g_new0 (TinyFound, 1);
  found->path = g_canonicalize_filename (place->path, NULL);
  found->name = g_path_get_basename (found->path);
  found->stem = g_strdup (found->name);
  found->rule = search->rule;
  if (failure == EACCES)
    g_set_error (&found->error, TINY_ERROR, TINY_ERROR_PERMISSION,
                 "the folder %s %s: chmod a+rx '%s'", place->path, place->error, place->path);
  else
    g_set_error (&found->error, TINY_ERROR, TINY_ERROR_IO, "the folder %s %s", place->path,
                 place->error);
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
  place->is_there = failure != ENOENT && failure != ENOTDIR;
  if (dir == NULL && place->is_there) {
    place->error = g_strdup_printf ("cannot be read: %s", g_strerror (failure));
    if (failure == EACCES || !search->is_short) /* once: all others are as this one */
      add_unreadable (search, place, failure);
    search->is_short = search->is_short || failure != EACCES;
  }
  for (struct dirent *row = dir ? readdir (dir) : NULL; row != NULL; row = readdir (dir))
    if (g_str_has_suffix (row->d_name, ".json") && row->d_name[0] != '.')
      g_ptr_array_add (names, g_strdup (row->d_name));
  if (dir != NULL)
    closedir (dir);
  g_ptr_array_sort (names, compare_names);
  place->n_manifests = names->len;
  for (guint i = 0; i < names->len; i++)
    read_file (search, g_build_filename (canonical, names->pdata[i], NULL), any_owner);
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
tiny_discover_cached (const char *const *folders,
                      const GPtrArray *added,
                      TinyManifestCache *cache,
                      GPtrArray **out_places)
{
  Search search = {
    .all = g_ptr_array_new_with_free_func (found_free),
    .places = g_ptr_array_new_with_free_func (place_free),
    .folders = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    .stems = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    .names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    .rule = "named by the program",
    .cache = cache,
  };
  for (guint i = 0; folders != NULL && folders[i] != NULL; i++)
    add_folder (&search, folders[i], TRUE);
  if (folders == NULL)
    search_everywhere (&search, added);
  tiny_manifest_cache_save (search.cache);
  g_clear_error (&search.folder_error);
  g_free (search.folder);
  g_hash_table_unref (search.folders);
  g_hash_table_unref (search.stems);
  g_hash_table_unref (search.names);
  if (out_places != NULL)
    *out_places = search.places;
  else
    g_ptr_array_unref (search.places);
  return search.all;
}

GPtrArray *
tiny_discover (const char *const *folders, const GPtrArray *added, GPtrArray **out_places)
{
  g_autoptr (TinyManifestCache) none = tiny_manifest_cache_new (NULL);
  return tiny_discover_cached (folders, added, none, out_places);
}
