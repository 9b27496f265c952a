/* SPDX-License-Identifier: MIT
 *
 * tiny-loader.c: how a loader is made and set. Shuffles indices on the host with the generator that tensors use. */
#include "nn/tiny-loader.h"

#include <string.h>

#include "base/tiny-guard.h"
#include "nn/loader-private.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-private.h"

G_DEFINE_FINAL_TYPE (TinyLoader, tiny_loader, G_TYPE_OBJECT)

static void
field_clear (gpointer data)
{
  g_clear_pointer (&((TinyLoaderField *) data)->data, g_bytes_unref);
}

static void
clear_function (TinyLoader *self)
{
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  self->function = NULL;
  self->destroy = NULL;
}

static void
tiny_loader_finalize (GObject *object)
{
  TinyLoader *self = TINY_LOADER (object);
  tiny_loader_end_thread (self);
  clear_function (self);
  g_array_unref (self->fields);
  g_free (self->order);
  g_free (self->device);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (tiny_loader_parent_class)->finalize (object);
}

/* A function that lets go of the last reference is still in the loader: the thread lets go of it then. */
static void
tiny_loader_dispose (GObject *object)
{
  TinyLoader *self = TINY_LOADER (object);
  if (!self->is_left && tiny_loader_is_within (self)) {
    self->is_left = TRUE;
    g_object_ref (self);
  }
  G_OBJECT_CLASS (tiny_loader_parent_class)->dispose (object);
}

static void
tiny_loader_class_init (TinyLoaderClass *class)
{
  G_OBJECT_CLASS (class)->dispose = tiny_loader_dispose;
  G_OBJECT_CLASS (class)->finalize = tiny_loader_finalize;
}

static void
tiny_loader_init (TinyLoader *self)
{
  self->fields = g_array_new (FALSE, TRUE, sizeof (TinyLoaderField));
  g_array_set_clear_func (self->fields, field_clear);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->ready);
  self->batch = 1; /* of none, where it is made as any object is */
}

/* ---- epochs ---- */
/* Fisher and Yates' shuffle; draw i of an epoch is a number below i + 1. */
static void
shuffle (TinyLoader *self, guint epoch)
{
  const guint32 key[2] = { (guint32) self->seed, (guint32) (self->seed >> 32) ^ 0x5EEDu };
  for (guint32 i = self->n_items; i-- > 1;) {
    guint32 word[2];
    tiny_threefry2x32 (key, (guint32[]){ i, epoch }, word);
    gsize j = (gsize) ((guint64) word[0] * ((guint64) i + 1) >> 32);
    guint32 swapped = self->order[i];
    self->order[i] = self->order[j];
    self->order[j] = swapped;
  }
}

static void
restart (TinyLoader *self, guint epoch)
{
  tiny_loader_end_thread (self);
  self->at = 0;
  self->epoch = epoch;
  g_clear_error (&self->error);
  for (guint32 i = 0; i < self->n_items; i++)
    self->order[i] = i;
  if (self->shuffle)
    shuffle (self, epoch);
}

/* ---- making ---- */
TinyLoader *
tiny_loader_new_empty (guint64 n_items, guint batch, GError **error)
{
  if (n_items >= G_MAXUINT32 || batch < 1) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader: batches of %u from %" G_GUINT64_FORMAT " items are not possible",
                 batch, n_items);
    return NULL;
  }
  guint32 *order = g_try_new (guint32, MAX (n_items, 1));
  if (order == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "loader: no memory for the order of %" G_GUINT64_FORMAT " items", n_items);
    return NULL;
  }
  TinyLoader *self = g_object_new (TINY_TYPE_LOADER, NULL);
  self->n_items = (guint32) n_items;
  self->batch = batch;
  self->order = order;
  tiny_loader_start_epoch (self, 0);
  return self;
}

/* The bytes of an item; FALSE when there are too many for a batch. */
static gboolean
measure (const TinyLoader *self, const TinyLoaderField *field, gsize *out_bytes)
{
  gsize all;
  *out_bytes = tiny_dtype_get_n_bytes (field->dtype);
  for (guint i = 1; i < field->n_dims; i++)
    if (field->shape[i] < 0
        || !g_size_checked_mul (out_bytes, *out_bytes, (gsize) field->shape[i]))
      return FALSE;
  return g_size_checked_add (&all, self->item_bytes, *out_bytes)
         && g_size_checked_mul (&all, all, self->batch) && all <= G_MAXSSIZE;
}

/* Takes a reference of @data (nullable). */
static gboolean
add (TinyLoader *self,
     TinyDType dtype,
     const gint64 *item_shape,
     guint n_dims,
     GBytes *data,
     GError **error)
{
  TinyLoaderField field = { .dtype = dtype, .n_dims = n_dims + 1 };
  if ((guint) dtype >= TINY_N_DTYPES || tiny_dtype_get_n_bytes (dtype) == 0
      || n_dims > MAX_ITEM_DIMS) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader: there are no items of dtype %d with %u axes", dtype, n_dims);
    return FALSE;
  }
  if (n_dims > 0)
    memcpy (field.shape + 1, item_shape, n_dims * sizeof *item_shape);
  gsize wanted;
  if (!measure (self, &field, &field.item_bytes)
      || !g_size_checked_mul (&wanted, field.item_bytes, self->n_items)
      || (data != NULL && g_bytes_get_size (data) != wanted)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader: %u items of %" G_GSIZE_FORMAT " bytes do not fit %" G_GSIZE_FORMAT
                 " bytes of data",
                 self->n_items, field.item_bytes, data == NULL ? 0 : g_bytes_get_size (data));
    return FALSE;
  }
  tiny_loader_end_thread (self);
  field.data = data == NULL ? NULL : g_bytes_ref (data);
  g_array_append_val (self->fields, field);
  self->item_bytes += field.item_bytes;
  restart (self, self->epoch);
  return TRUE;
}

static gboolean
add_alone (TinyLoader *self,
           TinyDType dtype,
           const gint64 *item_shape,
           guint n_dims,
           GBytes *data,
           GError **error)
{
  if (!tiny_loader_enter (self, error))
    return FALSE;
  gboolean good = add (self, dtype, item_shape, n_dims, data, error);
  tiny_loader_leave (self);
  return good;
}

gboolean
tiny_loader_add_array (TinyLoader *self,
                       TinyDType dtype,
                       const gint64 *item_shape,
                       guint n_dims,
                       GBytes *data,
                       GError **error)
{
  tiny_return_error_unless (TINY_IS_LOADER (self), error, FALSE, "no loader given");
  tiny_return_error_unless (data != NULL, error, FALSE, "no data given");
  tiny_return_error_unless (TINY_IS_LIST (item_shape, n_dims), error, FALSE,
                            "sizes of an item are counted, but none are given");
  return add_alone (self, dtype, item_shape, n_dims, data, error);
}

gboolean
tiny_loader_add_field (
    TinyLoader *self, TinyDType dtype, const gint64 *item_shape, guint n_dims, GError **error)
{
  tiny_return_error_unless (TINY_IS_LOADER (self), error, FALSE, "no loader given");
  tiny_return_error_unless (TINY_IS_LIST (item_shape, n_dims), error, FALSE,
                            "sizes of an item are counted, but none are given");
  return add_alone (self, dtype, item_shape, n_dims, NULL, error);
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
  tiny_return_error_unless (items != NULL, error, NULL, "no items given");
  tiny_return_error_unless (labels != NULL, error, NULL, "no labels given");
  tiny_return_error_unless (TINY_IS_LIST (item_shape, n_dims), error, NULL,
                            "sizes of an item are counted, but none are given");
  gsize n_items = g_bytes_get_size (labels);
  if (batch > n_items) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader: a batch of %u from %" G_GSIZE_FORMAT " items is not possible", batch,
                 n_items);
    return NULL;
  }
  g_autoptr (TinyLoader) self = tiny_loader_new_empty (n_items, batch, error);
  if (self == NULL
      || !tiny_loader_add_array (self, TINY_DTYPE_U8, item_shape, n_dims, items, error)
      || !tiny_loader_add_array (self, TINY_DTYPE_U8, NULL, 0, labels, error))
    return NULL;
  self->drop_last = TRUE;
  tiny_loader_set_shuffle (self, shuffle, seed);
  return g_steal_pointer (&self);
}

void
tiny_loader_set_function (TinyLoader *self,
                          TinyItemFunction function,
                          gpointer user_data,
                          GDestroyNotify destroy)
{
  const gboolean is_loader = TINY_IS_LOADER (self),
                 is_in = is_loader && tiny_loader_enter_or_warn (self);
  if (!is_in && destroy != NULL)
    destroy (user_data);
  g_return_if_fail (is_loader);
  if (!is_in)
    return;
  tiny_loader_end_thread (self);
  clear_function (self);
  self->function = function;
  self->user_data = user_data;
  self->destroy = destroy;
  restart (self, self->epoch);
  tiny_loader_leave (self);
}

void
tiny_loader_set_shuffle (TinyLoader *self, gboolean shuffle, guint64 seed)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  if (!tiny_loader_enter_or_warn (self))
    return;
  tiny_loader_end_thread (self);
  self->shuffle = shuffle;
  self->seed = seed;
  restart (self, self->epoch);
  tiny_loader_leave (self);
}

void
tiny_loader_set_drop_last (TinyLoader *self, gboolean drop_last)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  if (!tiny_loader_enter_or_warn (self))
    return;
  tiny_loader_end_thread (self);
  self->drop_last = drop_last != FALSE;
  restart (self, self->epoch);
  tiny_loader_leave (self);
}

void
tiny_loader_set_prefetch (TinyLoader *self, guint n_batches)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  if (!tiny_loader_enter_or_warn (self))
    return;
  tiny_loader_end_thread (self);
  self->prefetch = n_batches;
  restart (self, self->epoch);
  tiny_loader_leave (self);
}

void
tiny_loader_set_device (TinyLoader *self, const char *device)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  if (!tiny_loader_enter_or_warn (self))
    return;
  g_free (self->device);
  self->device = g_strdup (device);
  tiny_loader_leave (self);
}

void
tiny_loader_start_epoch (TinyLoader *self, guint epoch)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  if (!tiny_loader_enter_or_warn (self))
    return;
  restart (self, epoch);
  tiny_loader_leave (self);
}

GPtrArray *
tiny_loader_next_batch (TinyLoader *self, GError **error)
{
  tiny_return_error_unless (TINY_IS_LOADER (self), error, NULL, "no loader given");
  if (!tiny_loader_enter (self, error))
    return NULL;
  GPtrArray *tensors = tiny_loader_read_next (self, error);
  tiny_loader_leave (self);
  return tensors;
}

/* As tiny_loader_read_next(), but that an error is said once. */
static GPtrArray *
next_pair (TinyLoader *self, GError **error)
{
  if (self->error != NULL)
    return NULL;
  if (self->fields->len < 2)
    g_set_error (&self->error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader_next: gives two fields, there are %u", self->fields->len);
  return tiny_loader_read_next (self, error);
}

gboolean
tiny_loader_next (TinyLoader *self, TinyTensor **out_x, TinyTensor **out_y)
{
  g_return_val_if_fail (TINY_IS_LOADER (self) && out_x != NULL && out_y != NULL, FALSE);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) tensors = NULL;
  if (tiny_loader_enter (self, &error)) {
    tensors = next_pair (self, &error);
    tiny_loader_leave (self);
  }
  TinyTensor **const out[] = { out_x, out_y };
  if (tensors == NULL && error == NULL)
    return FALSE;
  for (guint i = 0; i < 2; i++)
    *out[i] = tensors != NULL
                  ? g_object_ref (tensors->pdata[i])
                  : g_object_ref_sink (tiny_tensor_new_for_error (g_error_copy (error)));
  return TRUE;
}

guint
tiny_loader_get_n_batches (TinyLoader *self)
{
  g_return_val_if_fail (TINY_IS_LOADER (self), 0);
  guint n = self->n_items / self->batch;
  return n + (!self->drop_last && self->n_items % self->batch != 0);
}

guint
tiny_loader_get_batch (TinyLoader *self)
{
  g_return_val_if_fail (TINY_IS_LOADER (self), 0);
  return self->batch;
}
