/* SPDX-License-Identifier: MIT
 *
 * loader-read.c: copies the items of a batch side by side, here or on a thread that reads ahead.
 *
 * The thread sees the order, the fields and the function, which do not change while it runs, and a bounded queue
 * under a lock. Whatever would change them ends the thread first. Tensors are made where they are asked for. A call
 * while another is under way is refused, and so is one by the loader's own function. */
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-fork.h"
#include "nn/loader-private.h"

/* A batch on the host: the fields one after the other, or what was wrong. */
typedef struct {
  guint n;
  guint8 *bytes;
  GError *error;
} Batch;

static void
batch_free (Batch *batch)
{
  g_free (batch->bytes);
  g_clear_error (&batch->error);
  g_free (batch);
}

/* ---- one call at a time ---- */
/* The functions of loaders that this thread is in. */
typedef struct Reading {
  const TinyLoader *loader;
  struct Reading *outer;
} Reading;

static _Thread_local Reading *readings;

gboolean
tiny_loader_is_within (const TinyLoader *self)
{
  const Reading *at = readings;
  while (at != NULL && at->loader != self)
    at = at->outer;
  return at != NULL;
}

gboolean
tiny_loader_enter (TinyLoader *self, GError **error)
{
  const gint now = 1 + (gint) tiny_fork_count (), before = g_atomic_int_get (&self->used);
  const gboolean inside = tiny_loader_is_within (self);
  if (!inside && before != now
      && g_atomic_int_compare_and_exchange (&self->used, before, now)) {
    g_object_ref (self);
    return TRUE;
  }
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "loader: it is used by %s",
               inside ? "its own function; let that only read items"
                      : "two threads at once; let one wait for the other");
  return FALSE;
}

gboolean
tiny_loader_enter_or_warn (TinyLoader *self)
{
  g_autoptr (GError) error = NULL;
  if (!tiny_loader_enter (self, &error))
    g_critical ("%s", error->message);
  return error == NULL;
}

void
tiny_loader_leave (TinyLoader *self)
{
  g_atomic_int_set (&self->used, 0);
  g_object_unref (self);
}

/* ---- the thread ---- */
static gboolean
is_of_parent (const TinyLoader *self)
{
  return self->thread != NULL && self->n_forks != tiny_fork_count ();
}

/* The lock and the queue are as the parent's thread had them, in the middle of anything. */
static void
forget_thread (TinyLoader *self)
{
  self->thread = NULL;
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->ready);
}

void
tiny_loader_end_thread (TinyLoader *self)
{
  if (is_of_parent (self))
    forget_thread (self);
  if (self->thread == NULL)
    return;
  g_mutex_lock (&self->lock);
  self->stop = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (self->thread == g_thread_self ()) /* which has the loader last */
    g_thread_unref (g_steal_pointer (&self->thread));
  else
    g_thread_join (g_steal_pointer (&self->thread));
  self->stop = FALSE;
  g_queue_clear_full (&self->ready, (GDestroyNotify) batch_free);
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
    const TinyLoaderField *field = &g_array_index (self->fields, TinyLoaderField, k);
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
read_batch (TinyLoader *self, guint at)
{
  Reading reading = { self, readings };
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
    const TinyLoaderField *field = &g_array_index (self->fields, TinyLoaderField, k);
    const guint8 *from = field->data == NULL ? NULL : g_bytes_get_data (field->data, NULL);
    calls = calls || field->data == NULL;
    for (guint i = 0; from != NULL && i < n; i++)
      memcpy (to + i * field->item_bytes, from + order[i] * field->item_bytes,
              field->item_bytes);
    to += n * field->item_bytes;
  }
  readings = &reading;
  for (guint i = 0; calls && i < n && batch->error == NULL; i++)
    call_function (self, order[i], i, n, batch->bytes, &batch->error);
  readings = reading.outer;
  return batch;
}

static gpointer
read_ahead (gpointer data)
{
  TinyLoader *self = data;
  guint n_batches = tiny_loader_get_n_batches (self);
  gboolean goes_on = TRUE;
  for (guint at = self->at; goes_on && at < n_batches; at++) {
    g_mutex_lock (&self->lock);
    while (!self->stop && self->ready.length >= self->prefetch)
      g_cond_wait (&self->changed, &self->lock);
    goes_on = !self->stop;
    g_mutex_unlock (&self->lock);
    Batch *batch = goes_on ? read_batch (self, at) : NULL;
    if (batch == NULL)
      break;
    goes_on = batch->error == NULL && !self->is_left;
    g_mutex_lock (&self->lock);
    g_queue_push_tail (&self->ready, batch);
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    if (self->is_left) {
      g_object_unref (self);
      break;
    }
  }
  return NULL;
}

static Batch *
take_batch (TinyLoader *self)
{
  if (self->prefetch == 0)
    return read_batch (self, self->at);
  if (is_of_parent (self))
    forget_thread (self);
  if (self->thread == NULL) {
    self->n_forks = tiny_fork_count ();
    self->thread = g_thread_new ("tiny-loader", read_ahead, self);
  }
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
    TinyLoaderField field = g_array_index (self->fields, TinyLoaderField, k);
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
tiny_loader_read_next (TinyLoader *self, GError **error)
{
  if (self->error == NULL && self->at >= tiny_loader_get_n_batches (self)) {
    tiny_loader_end_thread (self);
    return NULL;
  }
  Batch *batch = self->error == NULL ? take_batch (self) : NULL;
  if (batch != NULL && batch->error != NULL) {
    tiny_loader_end_thread (self);
    self->error = g_steal_pointer (&batch->error);
  }
  GPtrArray *tensors = self->error == NULL ? make_tensors (self, batch) : NULL;
  if (tensors == NULL)
    g_propagate_error (error, g_error_copy (self->error));
  self->at += tensors != NULL;
  g_clear_pointer (&batch, batch_free);
  return tensors;
}
