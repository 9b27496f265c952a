/* SPDX-License-Identifier: MIT
 *
 * tiny-array.h: a named array, in memory or in a file. */
#pragma once

#include "base/tiny-opened-file.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/* Row-major elements, little-endian: in memory, or a part of a file that is read when it is needed. With neither they
 * are made when they are written. */
typedef struct {
  char *name;
  TinyDType dtype;
  gint64 *shape;
  guint n_dims;
  GBytes *data;         /* or NULL */
  TinyOpenedFile *file; /* or NULL */
  guint64 offset;       /* in @file */
} TinyArray;

/* @data: (nullable): its elements. */
TinyArray *tiny_array_new (
    const char *name, TinyDType dtype, const gint64 *shape, guint n_dims, GBytes *data);
/* Its elements are in @file, from @offset on. */
TinyArray *tiny_array_new_in_file (const char *name,
                                   TinyDType dtype,
                                   const gint64 *shape,
                                   guint n_dims,
                                   TinyOpenedFile *file,
                                   guint64 offset);
/* The same elements, wherever they are, under another name, dtype and shape of as many bytes. */
TinyArray *tiny_array_new_as (const TinyArray *self,
                              const char *name,
                              TinyDType dtype,
                              const gint64 *shape,
                              guint n_dims);
TinyArray *tiny_array_rename (const TinyArray *self, const char *name);
void tiny_array_free (TinyArray *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyArray, tiny_array_free)

gsize tiny_array_get_n_bytes (const TinyArray *self);
/* (transfer full): the elements that it has. Errors: those of tiny_opened_file_read_bytes(). */
GBytes *tiny_array_read (const TinyArray *self, GError **error);
/* (transfer floating): a tensor of these elements; @device NULL: on the default one. */
TinyTensor *tiny_array_upload (const TinyArray *self, const char *device);

G_END_DECLS
