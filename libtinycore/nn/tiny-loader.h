/* SPDX-License-Identifier: MIT
 *
 * tiny-loader.h: batches of labelled items, in an order that follows from a seed. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_LOADER (tiny_loader_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyLoader, tiny_loader, TINY, LOADER, GObject)

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
 * tiny_loader_next:
 * @self: a loader
 * @out_x: (out) (transfer full): u8, (B, item shape…)
 * @out_y: (out) (transfer full): u8, (B)
 *
 * The next batch, on the default device. What does not fill a batch at the end is left out.
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
 * Returns: batches in an epoch
 *
 * Since: 0.1
 */
TINY_API guint tiny_loader_get_n_batches (TinyLoader *self);

/**
 * tiny_loader_get_batch:
 * @self: a loader
 *
 * Returns: items in a batch
 *
 * Since: 0.1
 */
TINY_API guint tiny_loader_get_batch (TinyLoader *self);

G_END_DECLS
