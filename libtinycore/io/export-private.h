/* SPDX-License-Identifier: MIT
 *
 * export-private.h: what the forms of an export share. */
#pragma once

#include "engine/tiny-recipe.h"
#include "io/model-private.h"
#include "plugin/tiny-registry.h"

G_BEGIN_DECLS

/* An export under way. */
typedef struct {
  TinyModel *model;
  const TinyCodeTarget *target;
  TinyRecipe *recipe;
  const char *name;      /* of the export, a C identifier */
  const char *folder;    /* where to write; becomes the wanted one at the end */
  TinySafetensors *data; /* weights, and examples called examples.X */
  gsize data_offset;     /* where in their file the data begins */
  gboolean with_examples;
} TinyExport;

/* How an export is written: a row of the table in tiny-export.c. */
gboolean tiny_export_c (TinyExport *self, GError **error);
gboolean tiny_export_files (TinyExport *self, GError **error);

/* Writes a file of the folder. */
gboolean tiny_export_write (
    TinyExport *self, const char *file, const char *data, gssize n_bytes, GError **error);
/* Where the array of that name lies in the data. */
gsize tiny_export_get_offset (const TinyExport *self, const char *array);
/* Of all arrays together. */
gsize tiny_export_get_n_bytes (const TinyExport *self);
/* Of the temporaries. */
gint64 tiny_export_get_arena_bytes (const TinyExport *self);

G_END_DECLS
