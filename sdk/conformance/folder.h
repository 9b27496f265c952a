/* SPDX-License-Identifier: MIT
 *
 * folder.h: a folder of this run's own. */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct ConfFolder ConfFolder;

/* Makes one where temporary files are, and removes those that runs which were killed left behind. */
ConfFolder *conf_folder_new (GError **error);
const char *conf_folder_get_path (const ConfFolder *self);
/* Removes it with all that is in it. */
void conf_folder_free (ConfFolder *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfFolder, conf_folder_free)

/* Says why there is none. */
void conf_folder_fail (const GError *error);
/* Removes what is at @path, with all that is in it. */
void conf_folder_remove_tree (const char *path);

G_END_DECLS
