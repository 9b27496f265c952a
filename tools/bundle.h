/* SPDX-License-Identifier: MIT
 *
 * bundle.h: a vendor's plugin in one archive, read into memory and believed in nothing.
 *
 * A bundle is a tar (plain, gzip, xz, zstd, bzip2) or zip of regular files: NAME.json, the manifest, at the
 * top (or in one folder that holds everything), the module where the manifest says, folders of exports
 * likewise, and at most one certificate, NAME.cert.json or certificate.json, beside the manifest. Anything else in it
 * (a licence, a README) is installed with it. */
#pragma once

#include "plugin/tiny-manifest.h"

G_BEGIN_DECLS

typedef struct {
  char *path;        /* of the archive */
  char *hash;        /* SHA-256 of the archive, in hexadecimal */
  GPtrArray *names;  /* of char *, in order: paths below the manifest's folder */
  GHashTable *files; /* path → GBytes */
  char *manifest_name;
  char *module_name;
  char *certificate_name; /* or NULL */
  TinyManifest *manifest; /* as if it lay in / */
} Bundle;

/* Errors: %TINY_ERROR_FORMAT naming the archive, the member and what is wrong with it, %TINY_ERROR_IO. */
Bundle *bundle_read (const char *path, GError **error);
void bundle_free (Bundle *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Bundle, bundle_free)

/* Writes every file below @folder, which is there and empty, for everybody to read. */
gboolean bundle_write (const Bundle *self, const char *folder, GError **error);

/* The text of the manifest with its module and exports below @folder, a path relative to it. */
char *bundle_move_manifest (const char *text, const char *folder, GError **error);

/* Makes an archive of a manifest, what it names, and a certificate or NULL; its kind is that of the
 * name's end. The same files give the same bytes. */
gboolean bundle_make (const char *manifest_path,
                      const char *certificate,
                      const char *output,
                      GError **error);

G_END_DECLS
