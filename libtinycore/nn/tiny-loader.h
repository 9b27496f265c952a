/* SPDX-License-Identifier: MIT
 *
 * tiny-loader.h: batches of items, in an order that follows from a seed.
 *
 * An item has fields, such as an image and its label, each of one dtype and shape. They lie in arrays
 * (tiny_loader_add_array()) or come from a function (tiny_loader_set_function()). A thread may read ahead
 * (tiny_loader_set_prefetch()); the batches are the same with and without it. A loader serves one call at a time: one
 * by another thread meanwhile, or by the function that reads items, is an error, or a critical message where there is
 * no place for an error. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_LOADER (tiny_loader_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyLoader, tiny_loader, TINY, LOADER, GObject)

/**
 * TinyLoader:
 *
 * A data set and how it is cut into batches.
 *
 * Since: 0.1
 */

/**
 * tiny_loader_new:
 * @items: u8 elements, all items one after the other
 * @labels: u8, one for each item
 * @item_shape: (array length=n_dims): the shape of one item
 * @n_dims: how many axes that has
 * @batch: items in a batch
 * @shuffle: whether every epoch has an order of its own
 * @seed: what the orders follow from
 * @error: return location
 *
 * Two arrays; what does not fill a batch at the end is left out.
 *
 * Errors: %TINY_ERROR_INVALID when sizes do not fit or a batch is larger than the data.
 *
 * Returns: (transfer full) (nullable): a loader at the start of epoch 0
 *
 * Since: 0.1
 */
TINY_API TinyLoader *tiny_loader_new (GBytes *items,
                                      GBytes *labels,
                                      const gint64 *item_shape,
                                      guint n_dims,
                                      guint batch,
                                      gboolean shuffle,
                                      guint64 seed,
                                      GError **error);

/**
 * tiny_loader_new_empty:
 * @n_items: how many items there are, below 2³²
 * @batch: items in a batch
 * @error: return location
 *
 * Items without fields yet, in their own order; the last batch may be smaller.
 *
 * Errors: %TINY_ERROR_INVALID for too many items and for empty batches.
 *
 * Returns: (transfer full) (nullable): a loader at the start of epoch 0
 *
 * Since: 0.1
 */
TINY_API TinyLoader *tiny_loader_new_empty (guint64 n_items, guint batch, GError **error);

/* ---- what is in it; each of these starts the epoch again ---- */
/**
 * tiny_loader_add_array:
 * @self: a loader
 * @dtype: a dtype
 * @item_shape: (array length=n_dims): the shape of one item
 * @n_dims: how many axes that has
 * @data: the elements of all items, one after the other
 * @error: return location
 *
 * A field whose elements lie in memory.
 *
 * Errors: %TINY_ERROR_INVALID when sizes do not fit.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_loader_add_array (TinyLoader *self,
                                         TinyDType dtype,
                                         const gint64 *item_shape,
                                         guint n_dims,
                                         GBytes *data,
                                         GError **error);

/**
 * tiny_loader_add_field:
 * @self: a loader
 * @dtype: a dtype
 * @item_shape: (array length=n_dims): the shape of one item
 * @n_dims: how many axes that has
 * @error: return location
 *
 * A field whose elements the function gives (tiny_loader_set_function()).
 *
 * Errors: %TINY_ERROR_INVALID when sizes do not fit.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_loader_add_field (
    TinyLoader *self, TinyDType dtype, const gint64 *item_shape, guint n_dims, GError **error);

/**
 * TinyItemFunction:
 * @index: which item, from 0
 * @user_data: what tiny_loader_set_function() was given
 * @error: return location
 *
 * Reads an item. With prefetching it is called on another thread, one item at a time. It cannot use its loader.
 *
 * Returns: (transfer full) (nullable): the elements of all fields that are no arrays, one after the other
 *
 * Since: 0.1
 */
typedef GBytes *(*TinyItemFunction) (guint64 index, gpointer user_data, GError **error);

/**
 * tiny_loader_set_function:
 * @self: a loader
 * @function: (scope notified) (nullable) (closure user_data) (destroy destroy): reads an item; %NULL: nothing does
 *   any more
 * @user_data: for @function
 * @destroy: (nullable): frees @user_data
 *
 * Where the fields of tiny_loader_add_field() come from.
 *
 * Since: 0.1
 */
TINY_API void tiny_loader_set_function (TinyLoader *self,
                                        TinyItemFunction function,
                                        gpointer user_data,
                                        GDestroyNotify destroy);

/**
 * tiny_loader_set_shuffle:
 * @self: a loader
 * @shuffle: whether every epoch has an order of its own
 * @seed: what the orders follow from
 *
 * How items are ordered.
 *
 * Since: 0.1
 */
TINY_API void tiny_loader_set_shuffle (TinyLoader *self, gboolean shuffle, guint64 seed);

/**
 * tiny_loader_set_drop_last:
 * @self: a loader
 * @drop_last: whether what does not fill a batch at the end is left out
 *
 * Captured steps (#TinyJit) want batches of one size.
 *
 * Since: 0.1
 */
TINY_API void tiny_loader_set_drop_last (TinyLoader *self, gboolean drop_last);

/**
 * tiny_loader_set_prefetch:
 * @self: a loader
 * @n_batches: how many batches a thread reads ahead; 0: none, and there is no thread
 *
 * The thread ends with the epoch, with the loader, and when the epoch is started again: then what is being read
 * is waited for.
 *
 * Since: 0.1
 */
TINY_API void tiny_loader_set_prefetch (TinyLoader *self, guint n_batches);

/**
 * tiny_loader_set_device:
 * @self: a loader
 * @device: (nullable): where batches are put; %NULL: the default device
 *
 * Where batches are put.
 *
 * Since: 0.1
 */
TINY_API void tiny_loader_set_device (TinyLoader *self, const char *device);

/* ---- going through it ---- */
/**
 * tiny_loader_start_epoch:
 * @self: a loader
 * @epoch: a number, which the order follows from
 *
 * Goes to the start of an epoch.
 *
 * Since: 0.1
 */
TINY_API void tiny_loader_start_epoch (TinyLoader *self, guint epoch);

/**
 * tiny_loader_next_batch:
 * @self: a loader
 * @error: return location
 *
 * The next batch: a tensor (B, item shape…) for each field, in the order they were added.
 *
 * Errors: what the function gave, until an epoch is started; %TINY_ERROR_INVALID when there is no function, or it
 * gave too few or too many bytes.
 *
 * Returns: (transfer container) (nullable) (element-type TinyTensor): the tensors, which it owns; %NULL without
 *   an error at the end of the epoch
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_loader_next_batch (TinyLoader *self, GError **error);

/**
 * tiny_loader_next:
 * @self: a loader with two fields or more
 * @out_x: (out) (transfer full): the first field, (B, item shape…)
 * @out_y: (out) (transfer full): the second
 *
 * tiny_loader_next_batch() for images and labels. Tensors carry what was wrong; then the epoch has ended.
 *
 * Returns: %FALSE at the end of the epoch
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_loader_next (TinyLoader *self, TinyTensor **out_x, TinyTensor **out_y);

/**
 * tiny_loader_get_n_batches:
 * @self: a loader
 *
 * How many batches an epoch has, as tiny_loader_set_drop_last() says with the last one or without.
 *
 * Returns: batches in an epoch
 *
 * Since: 0.1
 */
TINY_API guint tiny_loader_get_n_batches (TinyLoader *self);

/**
 * tiny_loader_get_batch:
 * @self: a loader
 *
 * The size of batches that @self was made with; the last of an epoch may be smaller.
 *
 * Returns: items in a batch
 *
 * Since: 0.1
 */
TINY_API guint tiny_loader_get_batch (TinyLoader *self);

G_END_DECLS
