/* SPDX-License-Identifier: MIT
 *
 * tiny-idx.h: IDX files, plain or gzipped: the format of the MNIST family of data sets. */
#pragma once

#include <glib.h>

#include "base/tiny-error.h"
#include "ir/tiny-dtype.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

enum { TINY_IDX_MAX_DIMS = 8 };

/**
 * TinyIdx:
 * @dtype: of the elements
 * @n_dims: number of axes
 * @shape: their sizes
 * @data: the elements in row-major order, in this machine's byte order
 *
 * An array read from an IDX file.
 *
 * Since: 0.1
 */
typedef struct {
  TinyDType dtype;
  guint n_dims;
  gint64 shape[8]; /* TINY_IDX_MAX_DIMS, in a form that the scanner for other languages reads */
  GBytes *data;
} TinyIdx;

/**
 * tiny_idx_load:
 * @path: (type filename): a file, which may be gzipped
 * @max_bytes: refuse arrays larger than this
 * @out_idx: (out caller-allocates): the array; free with tiny_idx_clear()
 * @error: return location
 *
 * Reads an array. Memory grows with what the file holds, never with what its head promises.
 *
 * Errors: %TINY_ERROR_IO when the file cannot be read; %TINY_ERROR_FORMAT, with the offset in the
 * unpacked data, when it is no IDX file, is truncated, damaged, longer than its head says, or
 * larger than @max_bytes.
 *
 * Returns: whether it worked; @out_idx is empty if not
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_idx_load (const char *path,
                                 gsize max_bytes,
                                 TinyIdx *out_idx,
                                 GError **error);

/**
 * tiny_idx_to_tensor:
 * @self: an array
 * @device: (nullable): where to put it; %NULL: the default device
 *
 * A tensor with a copy of the elements.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_idx_to_tensor (const TinyIdx *self, const char *device);

/**
 * tiny_idx_clear:
 * @self: an array
 *
 * Frees what it holds.
 *
 * Since: 0.1
 */
TINY_API void tiny_idx_clear (TinyIdx *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyIdx, tiny_idx_clear)

G_END_DECLS
