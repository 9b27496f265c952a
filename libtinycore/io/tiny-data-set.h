/* SPDX-License-Identifier: MIT
 *
 * tiny-data-set.h: labelled images for training and for testing. */
#pragma once

#include "io/tiny-idx.h"

G_BEGIN_DECLS

/**
 * TinyDataSet:
 * @images: u8, (N, Y, X), for training
 * @labels: u8, (N), for training
 * @test_images: u8, (M, Y, X)
 * @test_labels: u8, (M)
 * @n_classes: one more than the largest label
 *
 * What tiny_data_set_load() read.
 *
 * Since: 0.1
 */
typedef struct {
  TinyIdx images, labels, test_images, test_labels;
  guint n_classes;
} TinyDataSet;

/**
 * tiny_data_set_load:
 * @name: "fashion-mnist"
 * @directory: (nullable): where its files are; %NULL: where the system's package puts them
 * @out_data_set: (out caller-allocates): the data; free with tiny_data_set_clear()
 * @error: return location
 *
 * Reads a data set and checks that images and labels belong together.
 *
 * Errors: %TINY_ERROR_INVALID for an unknown name, %TINY_ERROR_IO when files are missing (naming
 * the package that has them), %TINY_ERROR_FORMAT when they are damaged or do not fit each other.
 *
 * Returns: whether it worked; @out_data_set is empty if not
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_data_set_load (const char *name,
                                      const char *directory,
                                      TinyDataSet *out_data_set,
                                      GError **error);

/**
 * tiny_data_set_clear:
 * @self: a data set
 *
 * Frees what it holds.
 *
 * Since: 0.1
 */
TINY_API void tiny_data_set_clear (TinyDataSet *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyDataSet, tiny_data_set_clear)

G_END_DECLS
