/* SPDX-License-Identifier: MIT
 *
 * tiny-loader.c: shuffles indices on the host with the generator that tensors use, and copies the
 * items of a batch side by side. */
#include "nn/tiny-loader.h"

#include <string.h>

#include "tensor/tiny-random.h"

enum { MAX_ITEM_DIMS = 8 };

struct _TinyLoader {
  GObject parent_instance;
  GBytes *items, *labels;
  gint64 shape[MAX_ITEM_DIMS + 1]; /* of a batch */
  guint n_dims;                    /* of a batch */
  gsize item_bytes, n_items;
  guint batch, at;
  gboolean shuffle;
  guint64 seed;
  guint32 *order;
  guint8 *staging;
};

G_DEFINE_FINAL_TYPE (TinyLoader, tiny_loader, G_TYPE_OBJECT)

static void
tiny_loader_finalize (GObject *object)
{
  TinyLoader *self = TINY_LOADER (object);
  g_clear_pointer (&self->items, g_bytes_unref);
  g_clear_pointer (&self->labels, g_bytes_unref);
  g_free (self->order);
  g_free (self->staging);
  G_OBJECT_CLASS (tiny_loader_parent_class)->finalize (object);
}

static void
tiny_loader_class_init (TinyLoaderClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_loader_finalize;
}

static void
tiny_loader_init (TinyLoader *self)
{
}

TinyLoader *
tiny_loader_new (GBytes *items,
                 GBytes *labels,
                 const gint64 *item_shape,
                 guint n_dims,
                 guint batch,
                 gboolean shuffle,
                 guint64 seed,
                 GError **error)
{
  g_return_val_if_fail (items != NULL && labels != NULL && n_dims <= MAX_ITEM_DIMS, NULL);
  gsize item_bytes = 1, n_items = g_bytes_get_size (labels), wanted;
  for (guint i = 0; i < n_dims; i++)
    if (item_shape[i] < 1
        || !g_size_checked_mul (&item_bytes, item_bytes, (gsize) item_shape[i]))
      item_bytes = 0;
  if (item_bytes == 0 || n_items > G_MAXUINT32
      || !g_size_checked_mul (&wanted, item_bytes, n_items)
      || wanted != g_bytes_get_size (items)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader: %" G_GSIZE_FORMAT " labels with items of %" G_GSIZE_FORMAT
                 " bytes do not fit %" G_GSIZE_FORMAT " bytes of items",
                 n_items, item_bytes, g_bytes_get_size (items));
    return NULL;
  }
  if (batch < 1 || batch > n_items) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader: a batch of %u from %" G_GSIZE_FORMAT " items is not possible", batch,
                 n_items);
    return NULL;
  }
  TinyLoader *self = g_object_new (TINY_TYPE_LOADER, NULL);
  self->items = g_bytes_ref (items);
  self->labels = g_bytes_ref (labels);
  self->item_bytes = item_bytes;
  self->n_items = n_items;
  self->n_dims = n_dims + 1;
  self->shape[0] = batch;
  memcpy (self->shape + 1, item_shape, n_dims * sizeof *item_shape);
  self->batch = batch;
  self->shuffle = shuffle;
  self->seed = seed;
  self->order = g_new (guint32, n_items);
  self->staging = g_malloc (batch * (item_bytes + 1));
  tiny_loader_start_epoch (self, 0);
  return self;
}

/* Fisher and Yates' shuffle; draw i of an epoch is a number below i + 1. */
void
tiny_loader_start_epoch (TinyLoader *self, guint epoch)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  self->at = 0;
  for (gsize i = 0; i < self->n_items; i++)
    self->order[i] = (guint32) i;
  if (!self->shuffle)
    return;
  const guint32 key[2] = { (guint32) self->seed, (guint32) (self->seed >> 32) ^ 0x5EEDu };
  for (gsize i = self->n_items - 1; i > 0; i--) {
    guint32 word[2];
    tiny_threefry2x32 (key, (guint32[]){ (guint32) i, epoch }, word);
    gsize j = (gsize) ((guint64) word[0] * (i + 1) >> 32);
    guint32 swapped = self->order[i];
    self->order[i] = self->order[j];
    self->order[j] = swapped;
  }
}

gboolean
tiny_loader_next (TinyLoader *self, TinyTensor **out_x, TinyTensor **out_y)
{
  g_return_val_if_fail (TINY_IS_LOADER (self) && out_x != NULL && out_y != NULL, FALSE);
  if (self->at >= tiny_loader_get_n_batches (self))
    return FALSE;
  const guint8 *items = g_bytes_get_data (self->items, NULL);
  const guint8 *labels = g_bytes_get_data (self->labels, NULL);
  guint8 *staged_labels = self->staging + self->batch * self->item_bytes;
  const guint32 *order = self->order + (gsize) self->at++ * self->batch;
  for (guint i = 0; i < self->batch; i++) {
    memcpy (self->staging + i * self->item_bytes, items + order[i] * self->item_bytes,
            self->item_bytes);
    staged_labels[i] = labels[order[i]];
  }
  *out_x = g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_U8, self->shape,
                                                         self->n_dims, self->staging,
                                                         self->batch * self->item_bytes));
  *out_y = g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_U8, self->shape, 1,
                                                         staged_labels, self->batch));
  return TRUE;
}

guint
tiny_loader_get_n_batches (TinyLoader *self)
{
  g_return_val_if_fail (TINY_IS_LOADER (self), 0);
  return (guint) (self->n_items / self->batch);
}

guint
tiny_loader_get_batch (TinyLoader *self)
{
  g_return_val_if_fail (TINY_IS_LOADER (self), 0);
  return self->batch;
}
