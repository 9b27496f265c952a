/* SPDX-License-Identifier: MIT
 *
 * tiny-safetensors.h: named arrays in one file, in the safetensors format: 8 bytes of the header's
 * length (little-endian), a JSON header with dtype, shape and data_offsets of each, then the data. */
#pragma once

#include "io/tiny-array.h"

G_BEGIN_DECLS

typedef struct {
  GPtrArray *arrays;    /* of TinyArray, in the order of their data */
  GHashTable *names;    /* of those that were read: name → TinyArray */
  GHashTable *metadata; /* char * → char * */
} TinySafetensors;

TinySafetensors *tiny_safetensors_new (void);
void tiny_safetensors_free (TinySafetensors *self);
/* The array of that name which was read, or NULL. */
TinyArray *tiny_safetensors_find (const TinySafetensors *self, const char *name);

/* Reads the header, and keeps the file open for its arrays; what it says is checked against the file's size before it
 * is believed. Errors:
 * %TINY_ERROR_IO, %TINY_ERROR_FORMAT with the file, the array and what is wrong. */
TinySafetensors *tiny_safetensors_load (const char *path, GError **error);

/* (transfer full): the data of an array that has none. */
typedef GBytes *(*TinyArrayReader) (const TinyArray *array, gpointer user_data, GError **error);

/* As tiny_safetensors_write(), with the data of one array in memory at a time. */
gboolean tiny_safetensors_write_streamed (TinySafetensors *self,
                                          const char *path,
                                          TinyArrayReader reader,
                                          gpointer user_data,
                                          gsize *out_data_offset,
                                          GError **error);

/* Writes the file, which is there whole or not at all; @out_data_offset (optional): where in it the
 * data begins. Wide elements come first, so that every array is aligned to its elements as long as
 * the data is to eight bytes; @self's arrays are in that order afterwards. Errors: %TINY_ERROR_IO;
 * %TINY_ERROR_INVALID for names and dtypes that the format cannot hold. */
gboolean tiny_safetensors_write (TinySafetensors *self,
                                 const char *path,
                                 gsize *out_data_offset,
                                 GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinySafetensors, tiny_safetensors_free)

G_END_DECLS
