/* SPDX-License-Identifier: MIT
 *
 * tiny-queue.h: where commands go; one after the other on one queue.
 *
 * Every device has one of its own (tiny_device_get_queue); further ones can be made. A queue may be
 * used from several threads: submissions take turns.
 *
 * Of an asynchronous device work goes on after it was enqueued, and a point says how far: a number
 * that grows from submission to submission. 0 is the point of what is done already, and all that a
 * synchronous device gives. What fails, fails its point and those of all that was enqueued behind it;
 * the queue goes on with what is enqueued after somebody was told. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

#define TINY_TYPE_QUEUE (tiny_queue_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyQueue, tiny_queue, TINY, QUEUE, GObject)

TinyQueue *tiny_queue_new (TinyDevice *device, GError **error);
/* As tiny_device_submit(). */
gboolean tiny_queue_submit (
    TinyQueue *self, const TinyCommand *commands, guint n, guint64 *out_ns, GError **error);

/* What is enqueued at once. */
typedef struct {
  const TinyCommand *commands;
  guint n;
  guint64 *out_ns; /* or NULL */
  /* FALSE with its error when what the commands read was never computed (tiny_queue_check). Called
   * if anything has failed yet; it is between this call and the commands that nothing else can. */
  gboolean (*check) (gpointer data, GError **error);
  gpointer data;
} TinyWork;
/* As tiny_queue_submit() without waiting. Until *out_point is reached or failed the caller keeps the host
 * memory of transfers, out_ns, buffers and programs; commands only during the call. Fails also when work
 * that was enqueued before turns out to have failed: none of these commands runs then. */
gboolean
tiny_queue_enqueue (TinyQueue *self, const TinyWork *work, guint64 *out_point, GError **error);
/* Waits until @point is reached, %G_MAXUINT64: without limit. Errors: that of the work if it failed, the
 * same for every point behind it; %TINY_ERROR_DEVICE_LOST; %TINY_ERROR_TIMEOUT, after which it may be
 * waited for again. */
gboolean tiny_queue_wait (TinyQueue *self, guint64 point, guint64 timeout_ns, GError **error);
/* Waits until nothing that was enqueued so far runs any more, whatever became of it. */
void tiny_queue_drain (TinyQueue *self);
/* FALSE with its error if @point is known to have failed. Waits for nothing. */
gboolean tiny_queue_check (TinyQueue *self, guint64 point, GError **error);
/* The point of the last submission. */
guint64 tiny_queue_get_last (TinyQueue *self);

G_END_DECLS
