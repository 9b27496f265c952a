/* SPDX-License-Identifier: MIT
 *
 * subject.h: from what the user named to what is tested.
 *
 * The process that reports only finds it (ConfWanted); the plugin is loaded in others, first in the
 * helper that scans every plugin, then in workers, which open it (conf_subject_open). */
#pragma once

#include "conformance.h"
#include "folder.h"
#include "plugin/tiny-scan.h"

G_BEGIN_DECLS

/* What was asked for, found without running any of it. */
typedef struct {
  char *spec;              /* as written */
  char *device;            /* in the grammar of DEV=, for workers; NULL until it was scanned */
  TinyManifest *manifest;  /* or NULL: a file without one that was not scanned yet */
  char *path;              /* of the plugin's file, absolute */
  char *manifest_path;     /* one that discovery does not find by itself, or NULL */
  ConfFolder *made_folder; /* of a manifest that was made, removed at the end; or NULL */
} ConfWanted;

/* Errors: %TINY_ERROR_INVALID for what cannot be meant, %TINY_ERROR_NO_DEVICE for what is not
 * here, %TINY_ERROR_IO, %TINY_ERROR_FORMAT. */
ConfWanted *conf_wanted_new (const char *spec, const char *manifest, GError **error);
void conf_wanted_free (ConfWanted *self);
/* Looks at it in the helper process; what goes wrong with the plugin is in the result. NULL for a
 * helper that cannot be run. */
TinyScan *conf_wanted_scan (ConfWanted *self, GError **error);

/* Opens it, in a worker. @bare has spec (for DEV=), path and seed. */
ConfSubject *conf_subject_open (const ConfSubject *bare, GError **error);
/* Lets go of all that it holds. */
void conf_subject_free (ConfSubject *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfWanted, conf_wanted_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfSubject, conf_subject_free)

G_END_DECLS
