/* SPDX-License-Identifier: MIT
 *
 * tiny-loader.c: shuffles indices on the host with the generator that tensors use, and copies the
 * items of a batch side by side, here or on a thread that reads ahead.
 *
 * The thread sees the order, the fields and the function, which do not change while it runs, and a bounded queue
 * under a lock. Whatever would change them ends the thread first. Tensors are made where they are asked for. */
#include "nn/tiny-loader.h"

#include <string.h>

#include "base/tiny-guard.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_ITEM_DIMS = 15 };

typedef struct {
  TinyDType dtype;
  gint64 shape[MAX_ITEM_DIMS + 1]; /* of a batch; its first is set for each */
  guint n_dims;                    /* of a batch */
  gsize item_bytes;
  GBytes *data; /* NULL: from the function */
} Field;

/* A batch on the host: the fields one after the other, or what was wrong. */
typedef struct {
  guint n;
  guint8 *bytes;
  GError *error;
} Batch;

struct _TinyLoader {
  GObject parent_instance;
  GArray *fields;
  gsize item_bytes; /* of all fields */
  guint32 n_items;
  guint batch, at, epoch;
  gboolean shuffle, drop_last;
  guint64 seed;
  char *device;
  guint32 *order;
  TinyItemFunction function;
  gpointer user_data;
  GDestroyNotify destroy;
  GError *error; /* of this epoch */
  guint prefetch;
  GThread *thread; /* or NULL */
  GMutex lock;     /* for what follows */
  GCond changed;
  GQueue ready; /* Batch */
  gboolean stop;
};

G_DEFINE_FINAL_TYPE (TinyLoader, tiny_loader, G_TYPE_OBJECT)

static void
batch_free (Batch *batch)
{
  g_free (batch->bytes);
  g_clear_error (&batch->error);
  g_free (batch);
}

static void
field_clear (gpointer data)
{
  g_clear_pointer (&((Field *) data)->data, g_bytes_unref);
}

static void
end_thread (TinyLoader *self)
{
  if (self->thread == NULL)
    return;
  g_mutex_lock (&self->lock);
  self->stop = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_thread_join (g_steal_pointer (&self->thread));
  self->stop = FALSE;
  g_queue_clear_full (&self->ready, (GDestroyNotify) batch_free);
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
  end_thread (self);
  clear_function (self);
  g_array_unref (self->fields);
  g_free (self->order);
  g_free (self->device);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
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
  self->fields = g_array_new (FALSE, TRUE, sizeof (Field));
  g_array_set_clear_func (self->fields, field_clear);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->ready);
  self->batch = 1; /* of none, where it is made as any object is */
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
measure (const TinyLoader *self, const Field *field, gsize *out_bytes)
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
  Field field = { .dtype = dtype, .n_dims = n_dims + 1 };
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
  end_thread (self);
  field.data = data == NULL ? NULL : g_bytes_ref (data);
  g_array_append_val (self->fields, field);
  self->item_bytes += field.item_bytes;
  tiny_loader_start_epoch (self, self->epoch);
  return TRUE;
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
  return add (self, dtype, item_shape, n_dims, data, error);
}

gboolean
tiny_loader_add_field (
    TinyLoader *self, TinyDType dtype, const gint64 *item_shape, guint n_dims, GError **error)
{
  tiny_return_error_unless (TINY_IS_LOADER (self), error, FALSE, "no loader given");
  tiny_return_error_unless (TINY_IS_LIST (item_shape, n_dims), error, FALSE,
                            "sizes of an item are counted, but none are given");
  return add (self, dtype, item_shape, n_dims, NULL, error);
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
  if (!TINY_IS_LOADER (self) && destroy != NULL)
    destroy (user_data);
  g_return_if_fail (TINY_IS_LOADER (self));
  end_thread (self);
  clear_function (self);
  self->function = function;
  self->user_data = user_data;
  self->destroy = destroy;
  tiny_loader_start_epoch (self, self->epoch);
}

void
tiny_loader_set_shuffle (TinyLoader *self, gboolean shuffle, guint64 seed)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  end_thread (self);
  self->shuffle = shuffle;
  self->seed = seed;
  tiny_loader_start_epoch (self, self->epoch);
}

void
tiny_loader_set_drop_last (TinyLoader *self, gboolean drop_last)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  end_thread (self);
  self->drop_last = drop_last != FALSE;
  tiny_loader_start_epoch (self, self->epoch);
}

void
tiny_loader_set_prefetch (TinyLoader *self, guint n_batches)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  end_thread (self);
  self->prefetch = n_batches;
  tiny_loader_start_epoch (self, self->epoch);
}

void
tiny_loader_set_device (TinyLoader *self, const char *device)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  g_free (self->device);
  self->device = g_strdup (device);
}

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

void
tiny_loader_start_epoch (TinyLoader *self, guint epoch)
{
  g_return_if_fail (TINY_IS_LOADER (self));
  end_thread (self);
  self->at = 0;
  self->epoch = epoch;
  g_clear_error (&self->error);
  for (guint32 i = 0; i < self->n_items; i++)
    self->order[i] = i;
  if (self->shuffle)
    shuffle (self, epoch);
}

/* ---- reading ---- */

/* Puts what the function gives for item @index, place @i of the batch, into the fields that are no arrays. */
static gboolean
call_function (
    const TinyLoader *self, guint32 index, guint i, guint n, guint8 *bytes, GError **error)
{
  g_autoptr (GError) wrong = NULL;
  g_autoptr (GBytes) item
      = self->function == NULL ? NULL : self->function (index, self->user_data, &wrong);
  gsize size = 0, used = 0;
  const guint8 *from = item == NULL ? NULL : g_bytes_get_data (item, &size);
  for (guint k = 0; k < self->fields->len; k++) {
    const Field *field = &g_array_index (self->fields, Field, k);
    if (field->data == NULL && item != NULL && field->item_bytes <= size - used) {
      if (field->item_bytes > 0)
        memcpy (bytes + i * field->item_bytes, from + used, field->item_bytes);
      used += field->item_bytes;
    } else if (field->data == NULL) {
      used = size + 1;
      break;
    }
    bytes += n * field->item_bytes;
  }
  if (item != NULL && used == size)
    return TRUE;
  if (wrong != NULL)
    g_propagate_error (error, g_steal_pointer (&wrong));
  else
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 self->function == NULL ? "loader: there is no function for item %u"
                 : item == NULL
                     ? "loader: the function gave nothing for item %u"
                     : "loader: the function gave another number of bytes for item %u than "
                       "its fields have",
                 index);
  return FALSE;
}

/* (transfer full): batch @at; its fields one after the other. */
static Batch *
read_batch (const TinyLoader *self, guint at)
{
  Batch *batch = g_new0 (Batch, 1);
  gsize start = (gsize) at * self->batch;
  const guint32 *order = self->order + start;
  guint n = batch->n = (guint) MIN (self->batch, self->n_items - start);
  gboolean calls = FALSE;
  batch->bytes = g_try_malloc (MAX (n * self->item_bytes, 1));
  if (batch->bytes == NULL) {
    g_set_error (&batch->error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "loader: no memory for %u items of %" G_GSIZE_FORMAT " bytes", n,
                 self->item_bytes);
    return batch;
  }
  guint8 *to = batch->bytes;
  for (guint k = 0; k < self->fields->len; k++) {
    const Field *field = &g_array_index (self->fields, Field, k);
    const guint8 *from = field->data == NULL ? NULL : g_bytes_get_data (field->data, NULL);
    calls = calls || field->data == NULL;
    for (guint i = 0; from != NULL && i < n; i++)
      memcpy (to + i * field->item_bytes, from + order[i] * field->item_bytes,
              field->item_bytes);
    to += n * field->item_bytes;
  }
  for (guint i = 0; calls && i < n && batch->error == NULL; i++)
    call_function (self, order[i], i, n, batch->bytes, &batch->error);
  return batch;
}

static gpointer
read_ahead (gpointer data)
{
  TinyLoader *self = data;
  guint n_batches = tiny_loader_get_n_batches (self);
  gboolean goes_on = TRUE;
  for (guint at = 0; goes_on && at < n_batches; at++) {
    g_mutex_lock (&self->lock);
    while (!self->stop && self->ready.length >= self->prefetch)
      g_cond_wait (&self->changed, &self->lock);
    goes_on = !self->stop;
    g_mutex_unlock (&self->lock);
    Batch *batch = goes_on ? read_batch (self, at) : NULL;
    if (batch == NULL)
      break;
    goes_on = batch->error == NULL;
    g_mutex_lock (&self->lock);
    g_queue_push_tail (&self->ready, batch);
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
  }
  return NULL;
}

static Batch *
take_batch (TinyLoader *self)
{
  if (self->prefetch == 0)
    return read_batch (self, self->at);
  if (self->thread == NULL)
    self->thread = g_thread_new ("tiny-loader", read_ahead, self);
  g_mutex_lock (&self->lock);
  while (self->ready.length == 0)
    g_cond_wait (&self->changed, &self->lock);
  Batch *batch = g_queue_pop_head (&self->ready);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return batch;
}

static GPtrArray *
make_tensors (const TinyLoader *self, const Batch *batch)
{
  GPtrArray *tensors = g_ptr_array_new_with_free_func (g_object_unref);
  const guint8 *from = batch->bytes;
  for (guint k = 0; k < self->fields->len; k++) {
    Field field = g_array_index (self->fields, Field, k);
    field.shape[0] = batch->n;
    gsize n_bytes = batch->n * field.item_bytes;
    TinyTensor *tensor = tiny_tensor_new_from_data (self->device, field.dtype, field.shape,
                                                    field.n_dims, from, n_bytes);
    g_ptr_array_add (tensors, g_object_ref_sink (tensor));
    from += n_bytes;
  }
  return tensors;
}

GPtrArray *
tiny_loader_next_batch (TinyLoader *self, GError **error)
{
  tiny_return_error_unless (TINY_IS_LOADER (self), error, NULL, "no loader given");
  if (self->error == NULL && self->at >= tiny_loader_get_n_batches (self)) {
    end_thread (self);
    return NULL;
  }
  Batch *batch = self->error == NULL ? take_batch (self) : NULL;
  if (batch != NULL && batch->error != NULL) {
    end_thread (self);
    self->error = g_steal_pointer (&batch->error);
  }
  GPtrArray *tensors = self->error == NULL ? make_tensors (self, batch) : NULL;
  if (tensors == NULL)
    g_propagate_error (error, g_error_copy (self->error));
  self->at += tensors != NULL;
  g_clear_pointer (&batch, batch_free);
  return tensors;
}

gboolean
tiny_loader_next (TinyLoader *self, TinyTensor **out_x, TinyTensor **out_y)
{
  g_return_val_if_fail (TINY_IS_LOADER (self) && out_x != NULL && out_y != NULL, FALSE);
  if (self->error != NULL)
    return FALSE;
  if (self->fields->len < 2)
    g_set_error (&self->error, TINY_ERROR, TINY_ERROR_INVALID,
                 "loader_next: gives two fields, there are %u", self->fields->len);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) tensors = tiny_loader_next_batch (self, &error);
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
