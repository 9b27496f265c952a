/* SPDX-License-Identifier: MIT
 *
 * cuda-stream.c: streams, each a thread that does one thing after the other with drawn delays, and events.
 *
 * The NULL stream does its work where it is called, behind all of the streams that are not non-blocking. */
#include "cuda-calls.h"
#include <unistd.h>

typedef struct {
  CudaWork work;
  gpointer data;
  GDestroyNotify free_data;
} Item;

struct CudaStream {
  CUcontext context;
  unsigned flags;
  GMutex lock;
  GCond changed;
  GQueue items; /* of Item */
  gboolean is_busy, is_closed;
  GThread *thread;
};

enum { NON_BLOCKING = 1, DISABLE_TIMING = 2, BLOCKING_SYNC = 1 };

/* ---- threads ---- */

static void
delay (void)
{
  guint64 longest = cuda_driver.delay_us;
  guint64 drawn = cuda_draw ();
  if (longest > 0 && (drawn & 3) == 0)
    g_usleep ((drawn >> 8) % longest);
}

static void
run_item (CUcontext context, Item *item)
{
  if (g_atomic_int_get (&context->sticky) == 0)
    item->work (context, item->data);
  if (item->free_data != NULL)
    item->free_data (item->data);
  g_free (item);
}

static gpointer
run_stream (gpointer data)
{
  CUstream stream = data;
  for (;;) {
    g_mutex_lock (&stream->lock);
    while (g_queue_is_empty (&stream->items) && !stream->is_closed)
      g_cond_wait (&stream->changed, &stream->lock);
    Item *item = g_queue_pop_head (&stream->items);
    stream->is_busy = item != NULL;
    g_mutex_unlock (&stream->lock);
    if (item == NULL)
      return NULL;
    delay ();
    run_item (stream->context, item);
    g_mutex_lock (&stream->lock);
    stream->is_busy = FALSE;
    g_cond_broadcast (&stream->changed);
    g_mutex_unlock (&stream->lock);
  }
}

static gboolean
is_idle (CUstream stream)
{
  return g_queue_is_empty (&stream->items) && !stream->is_busy;
}

static void
wait_for (CUstream stream)
{
  g_mutex_lock (&stream->lock);
  while (!is_idle (stream))
    g_cond_wait (&stream->changed, &stream->lock);
  g_mutex_unlock (&stream->lock);
}

/* Waits for streams; of all, or of those that the NULL stream waits for. */
static void
wait_for_streams (CUcontext context, gboolean is_blocking_only)
{
  g_mutex_lock (&context->lock);
  for (guint i = 0; i < context->streams->len; i++) {
    CUstream stream = context->streams->pdata[i];
    if (!is_blocking_only || !(stream->flags & NON_BLOCKING))
      wait_for (stream);
  }
  g_mutex_unlock (&context->lock);
}

CUresult
cuda_wait_all (CUcontext context)
{
  wait_for_streams (context, FALSE);
  return g_atomic_int_get (&context->sticky);
}

static gboolean
is_stream (CUstream stream)
{
  CUcontext context = cuda_current ();
  g_mutex_lock (&context->lock);
  gboolean is_there = stream == NULL || g_ptr_array_find (context->streams, stream, NULL);
  g_mutex_unlock (&context->lock);
  return is_there;
}

CUresult
cuda_enqueue (CUstream stream, CudaWork work, gpointer data, GDestroyNotify free_data)
{
  Item *item = g_new (Item, 1);
  *item = (Item){ work, data, free_data };
  if (!is_stream (stream)) {
    if (free_data != NULL)
      free_data (data);
    g_free (item);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (stream == NULL) {
    wait_for_streams (cuda_current (), TRUE);
    run_item (cuda_current (), item);
    return 0;
  }
  g_mutex_lock (&stream->lock);
  g_queue_push_tail (&stream->items, item);
  g_cond_broadcast (&stream->changed);
  g_mutex_unlock (&stream->lock);
  return 0;
}

/* ---- streams ---- */

static CUresult
create_stream (CUstream *out, unsigned flags)
{
  if (out == NULL || (flags & ~(unsigned) NON_BLOCKING) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = g_new0 (struct CudaStream, 1);
  stream->context = cuda_current ();
  stream->flags = flags;
  g_mutex_init (&stream->lock);
  g_cond_init (&stream->changed);
  g_queue_init (&stream->items);
  stream->thread = g_thread_new ("stream", run_stream, stream);
  g_mutex_lock (&stream->context->lock);
  g_ptr_array_add (stream->context->streams, stream);
  g_mutex_unlock (&stream->context->lock);
  *out = stream;
  return 0;
}

CUDA_EXPORT
cuStreamCreate (CUstream *out, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return create_stream (out, flags);
}

CUDA_EXPORT
cuStreamCreateWithPriority (CUstream *out, unsigned flags, int priority)
{
  CUDA_ENTER (CUDA_CONTEXT);
  (void) priority;
  return create_stream (out, flags);
}

/* Work that is in it is done before. */
CUDA_EXPORT
cuStreamDestroy_v2 (CUstream stream)
{
  CUDA_ENTER (CUDA_INITIALISED);
  CUcontext context = &cuda_driver.primary;
  g_mutex_lock (&context->lock);
  gboolean is_there = stream != NULL && g_ptr_array_remove (context->streams, stream);
  g_mutex_unlock (&context->lock);
  if (!is_there)
    return CUDA_ERROR_INVALID_HANDLE;
  g_mutex_lock (&stream->lock);
  stream->is_closed = TRUE;
  g_cond_broadcast (&stream->changed);
  g_mutex_unlock (&stream->lock);
  g_thread_join (stream->thread);
  g_mutex_clear (&stream->lock);
  g_cond_clear (&stream->changed);
  g_free (stream);
  return 0;
}

CUDA_EXPORT
cuStreamQuery (CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (!is_stream (stream))
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream == NULL)
    return 0;
  g_mutex_lock (&stream->lock);
  gboolean is_done = is_idle (stream);
  g_mutex_unlock (&stream->lock);
  return is_done ? g_atomic_int_get (&stream->context->sticky) : CUDA_ERROR_NOT_READY;
}

CUDA_EXPORT
cuStreamSynchronize (CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (!is_stream (stream))
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream != NULL)
    wait_for (stream);
  else
    wait_for_streams (cuda_current (), TRUE);
  return g_atomic_int_get (&cuda_current ()->sticky);
}

/* ---- events ---- */

/* Recordings are numbered; an event is ready when the last of them was reached. */
struct CudaEvent {
  gint n_references;
  unsigned flags;
  GMutex lock;
  GCond changed;
  guint64 n_recorded, n_reached;
  gint64 time;
};

typedef struct {
  CUevent event;
  guint64 number;
} Mark;

static GHashTable *
live_events (void)
{
  static gsize once;
  static GHashTable *events;
  if (g_once_init_enter (&once)) {
    events = g_hash_table_new (NULL, NULL);
    g_once_init_leave (&once, 1);
  }
  return events;
}

static gboolean
is_event (CUevent event)
{
  g_mutex_lock (&cuda_driver.lock);
  gboolean is_there = event != NULL && g_hash_table_contains (live_events (), event);
  g_mutex_unlock (&cuda_driver.lock);
  return is_there;
}

static void
unref_event (CUevent event)
{
  if (!g_atomic_int_dec_and_test (&event->n_references))
    return;
  g_mutex_clear (&event->lock);
  g_cond_clear (&event->changed);
  g_free (event);
}

static void
free_mark (gpointer data)
{
  Mark *mark = data;
  /* After a fault nothing is done any more, and nobody is to wait for it. */
  g_mutex_lock (&mark->event->lock);
  mark->event->n_reached = MAX (mark->event->n_reached, mark->number);
  g_cond_broadcast (&mark->event->changed);
  g_mutex_unlock (&mark->event->lock);
  unref_event (mark->event);
  g_free (mark);
}

static void
free_wait (gpointer data)
{
  Mark *mark = data;
  unref_event (mark->event);
  g_free (mark);
}

static void
reach (CUcontext context, gpointer data)
{
  Mark *mark = data;
  (void) context;
  g_mutex_lock (&mark->event->lock);
  mark->event->time = g_get_monotonic_time ();
  g_mutex_unlock (&mark->event->lock);
}

static void
wait_for_mark (CUcontext context, gpointer data)
{
  Mark *mark = data;
  (void) context;
  g_mutex_lock (&mark->event->lock);
  while (mark->event->n_reached < mark->number)
    g_cond_wait (&mark->event->changed, &mark->event->lock);
  g_mutex_unlock (&mark->event->lock);
}

CUDA_EXPORT
cuEventCreate (CUevent *out, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL || (flags & ~(unsigned) (BLOCKING_SYNC | DISABLE_TIMING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  CUevent event = g_new0 (struct CudaEvent, 1);
  event->n_references = 1;
  event->flags = flags;
  g_mutex_init (&event->lock);
  g_cond_init (&event->changed);
  g_mutex_lock (&cuda_driver.lock);
  g_hash_table_add (live_events (), event);
  g_mutex_unlock (&cuda_driver.lock);
  *out = event;
  return 0;
}

CUDA_EXPORT
cuEventDestroy_v2 (CUevent event)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (!is_event (event))
    return CUDA_ERROR_INVALID_HANDLE;
  g_mutex_lock (&cuda_driver.lock);
  g_hash_table_remove (live_events (), event);
  g_mutex_unlock (&cuda_driver.lock);
  unref_event (event);
  return 0;
}

static Mark *
new_mark (CUevent event, gboolean is_next)
{
  Mark *mark = g_new (Mark, 1);
  g_atomic_int_inc (&event->n_references);
  g_mutex_lock (&event->lock);
  event->n_recorded += is_next;
  *mark = (Mark){ event, event->n_recorded };
  g_mutex_unlock (&event->lock);
  return mark;
}

CUDA_EXPORT
cuEventRecord (CUevent event, CUstream stream)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (!is_event (event) || !is_stream (stream))
    return CUDA_ERROR_INVALID_HANDLE;
  return cuda_enqueue (stream, reach, new_mark (event, TRUE), free_mark);
}

CUDA_EXPORT
cuStreamWaitEvent (CUstream stream, CUevent event, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (!is_event (event) || !is_stream (stream) || flags != 0)
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  return cuda_enqueue (stream, wait_for_mark, new_mark (event, FALSE), free_wait);
}

CUDA_EXPORT
cuEventQuery (CUevent event)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (!is_event (event))
    return CUDA_ERROR_INVALID_HANDLE;
  g_mutex_lock (&event->lock);
  gboolean is_ready = event->n_reached >= event->n_recorded;
  g_mutex_unlock (&event->lock);
  return is_ready ? g_atomic_int_get (&cuda_current ()->sticky) : CUDA_ERROR_NOT_READY;
}

CUDA_EXPORT
cuEventSynchronize (CUevent event)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (!is_event (event))
    return CUDA_ERROR_INVALID_HANDLE;
  Mark *mark = new_mark (event, FALSE);
  wait_for_mark (NULL, mark);
  free_wait (mark);
  return g_atomic_int_get (&cuda_current ()->sticky);
}

static CUresult
elapsed (float *out_ms, CUevent start, CUevent end)
{
  if (out_ms == NULL || !is_event (start) || !is_event (end))
    return out_ms == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  if (((start->flags | end->flags) & DISABLE_TIMING) != 0 || start->n_recorded == 0
      || end->n_recorded == 0)
    return CUDA_ERROR_INVALID_HANDLE;
  if (start->n_reached < start->n_recorded || end->n_reached < end->n_recorded)
    return CUDA_ERROR_NOT_READY;
  *out_ms = (float) (end->time - start->time) / 1000;
  return 0;
}

CUDA_EXPORT
cuEventElapsedTime (float *out_ms, CUevent start, CUevent end)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return elapsed (out_ms, start, end);
}

CUDA_EXPORT
cuEventElapsedTime_v2 (float *out_ms, CUevent start, CUevent end)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return elapsed (out_ms, start, end);
}
