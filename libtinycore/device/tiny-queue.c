/* SPDX-License-Identifier: MIT
 *
 * tiny-queue.c: where commands go.
 *
 * What the core adds to the plugin's submit() is a check of a flag, a lock, and an error struct of
 * which only the heads of the texts are cleared.
 *
 * The points that the plugin gives begin anew with each of its queues, and a failure costs it the
 * queue. Ours go on: they are the plugin's and a base. What failed is remembered as ranges of points, so
 * that whoever comes for a result learns of it, however late. Two locks: `lock` is held while
 * submitting, `state` for moments only, so that others wait and look meanwhile. */
#include "device/tiny-queue.h"

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "device/tiny-watch.h"

typedef struct {
  guint64 first, last; /* points */
  GError *error;
} Failure;

struct _TinyQueue {
  GObject parent_instance;
  TinyDevice *device;
  gboolean holds_device;
  TinyPluginQueue *handle;
  gboolean has_handle;
  GMutex lock;
  /* Of asynchronous devices. Numbers that are read without the lock are written under it. */
  GMutex state;
  GCond unused; /* nobody waits for the plugin's queue */
  guint n_waiting;
  gboolean is_broken;
  guint64 base, reached, last;
  guint64 untrusted; /* the last point of an untrusted kernel that is not reached, or 0 */
  guint64 recent[TINY_MAX_IN_FLIGHT]; /* the last points, in a ring; under `lock` */
  guint64 n_recent;
  GArray *failures; /* Failure, oldest first */
  guint n_failures;
};

G_DEFINE_FINAL_TYPE (TinyQueue, tiny_queue, G_TYPE_OBJECT)

static const char running[] = "running commands";

static inline guint64
load (const guint64 *number)
{
  return __atomic_load_n (number, __ATOMIC_ACQUIRE);
}

static inline void
store (guint64 *number, guint64 value)
{
  __atomic_store_n (number, value, __ATOMIC_RELEASE);
}

/* Under `state`, or with nobody else about. */
static void
set_reached (TinyQueue *self, guint64 point)
{
  store (&self->reached, point);
  if (self->untrusted == 0 || point < self->untrusted)
    return;
  self->untrusted = 0;
  tiny_watch_count_untrusted (-1);
}

/* An untrusted kernel's work goes on until @point. */
static void
note_untrusted (TinyQueue *self, guint64 point)
{
  if (self->untrusted == 0)
    tiny_watch_count_untrusted (1);
  self->untrusted = point;
}

static gboolean
make_handle (TinyQueue *self, GError **error)
{
  TinyDevice *device = self->device;
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  TinyStatus status = device->table.queue_create (device->handle, &self->handle, &plugin_error);
  self->has_handle = tiny_device_check (device, status, &plugin_error, "making a queue", error);
  return self->has_handle;
}

TinyQueue *
tiny_queue_new_own (TinyDevice *device, GError **error)
{
  g_autoptr (TinyQueue) self = g_object_new (TINY_TYPE_QUEUE, NULL);
  self->device = device;
  if (device->table.queue_create != NULL && !make_handle (self, error))
    return NULL;
  return g_steal_pointer (&self);
}

TinyQueue *
tiny_queue_new (TinyDevice *device, GError **error)
{
  if (!tiny_device_check_alive (device, "making a queue", error))
    return NULL;
  TinyQueue *self = tiny_queue_new_own (device, error);
  if (self != NULL) {
    g_object_ref (device);
    self->holds_device = TRUE;
  }
  return self;
}

static void
tiny_queue_finalize (GObject *object)
{
  TinyQueue *self = TINY_QUEUE (object);
  tiny_queue_drain (self);
  set_reached (self, G_MAXUINT64);
  if (self->has_handle && !tiny_device_is_abandoned (self->device))
    self->device->table.queue_destroy (self->device->handle, self->handle);
  if (self->holds_device)
    g_object_unref (self->device);
  g_clear_pointer (&self->failures, g_array_unref);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->state);
  g_cond_clear (&self->unused);
  G_OBJECT_CLASS (tiny_queue_parent_class)->finalize (object);
}

static void
tiny_queue_class_init (TinyQueueClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_queue_finalize;
}

static void
tiny_queue_init (TinyQueue *self)
{
  g_mutex_init (&self->lock);
  g_mutex_init (&self->state);
  g_cond_init (&self->unused);
}

/* ---- what failed; under `state` ---- */
static void
clear_failure (gpointer data)
{
  g_clear_error (&((Failure *) data)->error);
}

static void
add_failure (TinyQueue *self, guint64 first, GError *error)
{
  Failure failure = { first, G_MAXUINT64, error };
  if (self->failures == NULL) {
    self->failures = g_array_new (FALSE, FALSE, sizeof (Failure));
    g_array_set_clear_func (self->failures, clear_failure);
  }
  g_array_append_val (self->failures, failure);
  g_atomic_int_set (&self->n_failures, self->failures->len);
}

static gboolean
check_point (TinyQueue *self, guint64 point, GError **error)
{
  guint begin = 0, end = self->failures != NULL ? self->failures->len : 0;
  while (begin < end) { /* to the first that does not end before @point */
    guint middle = (begin + end) / 2;
    if (g_array_index (self->failures, Failure, middle).last < point)
      begin = middle + 1;
    else
      end = middle;
  }
  const Failure *failure = self->failures != NULL && begin < self->failures->len
                               ? &g_array_index (self->failures, Failure, begin)
                               : NULL;
  if (failure == NULL || point < failure->first)
    return TRUE;
  if (error != NULL)
    g_propagate_error (error, g_error_copy (failure->error));
  return FALSE;
}

/* The plugin answered @status for work, at @failed or before: asks it which was the first. A failure has
 * no end before the queue was exchanged, as another thread may be submitting. */
static void
note_failure (TinyQueue *self,
              guint64 failed,
              TinyStatus status,
              const TinyPluginError *plugin_error)
{
  TinyDevice *device = self->device;
  uint64_t point = 0;
  TinyPluginError ignored;
  tiny_plugin_error_init (&ignored);
  GError *error = NULL;
  if (self->is_broken)
    return;
  tiny_device_check (device, status, plugin_error, running, &error);
  device->table.reached (device->handle, self->handle, &point, &ignored);
  point = MIN (self->base + point, failed - 1);
  set_reached (self, MAX (self->reached, point));
  add_failure (self, self->reached + 1, error);
  self->is_broken = TRUE;
}

/* Whether there is a point that has failed. */
static gboolean
has_failed (TinyQueue *self)
{
  return g_atomic_int_get (&self->n_failures) > 0;
}

gboolean
tiny_queue_check (TinyQueue *self, guint64 point, GError **error)
{
  if (point == 0 || !has_failed (self))
    return TRUE;
  g_mutex_lock (&self->state);
  gboolean good = check_point (self, point, error);
  g_mutex_unlock (&self->state);
  return good;
}

/* ---- waiting ---- */

/* Waits in the plugin, without the lock. FALSE: too long, or the device is lost. */
static gboolean
wait_in_plugin (TinyQueue *self, guint64 point, guint64 timeout_ns, GError **error)
{
  TinyDevice *device = self->device;
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  const guint64 own = point - self->base;
  gboolean is_known = TRUE; /* what became of @point */
  TinyUntrusted untrusted = tiny_watch_begin_untrusted (self->untrusted != 0);
  self->n_waiting++;
  g_mutex_unlock (&self->state);
  TinyStatus status
      = device->table.wait (device->handle, self->handle, own, timeout_ns, &plugin_error);
  g_mutex_lock (&self->state);
  tiny_watch_end_untrusted (&untrusted);
  if (status >= 0)
    set_reached (self, MAX (self->reached, point));
  else if (status == TINY_STATUS_TIMEOUT || status == TINY_STATUS_DEVICE_LOST)
    is_known = FALSE;
  else
    note_failure (self, point, status, &plugin_error);
  if (--self->n_waiting == 0)
    g_cond_broadcast (&self->unused);
  return is_known
         || tiny_device_check (device, status, &plugin_error,
                               status == TINY_STATUS_TIMEOUT ? "waiting for commands" : running,
                               error);
}

gboolean
tiny_queue_wait (TinyQueue *self, guint64 point, guint64 timeout_ns, GError **error)
{
  if (point == 0 || (point <= load (&self->reached) && !has_failed (self)))
    return TRUE;
  if (!tiny_device_check_alive (self->device, running, error))
    return FALSE;
  g_mutex_lock (&self->state);
  gboolean good = check_point (self, point, error);
  if (good && point > self->reached)
    good = wait_in_plugin (self, point, timeout_ns, error) && check_point (self, point, error);
  g_mutex_unlock (&self->state);
  return good && tiny_device_check_alive (self->device, running, error);
}

void
tiny_queue_drain (TinyQueue *self)
{
  tiny_queue_wait (self, tiny_queue_get_last (self), G_MAXUINT64, NULL);
}

guint64
tiny_queue_get_last (TinyQueue *self)
{
  return load (&self->last);
}

/* ---- submitting; under `lock` ---- */

/* Gives up the plugin's queue, which has failed, once nobody asks for its points any more. */
static gboolean
exchange_handle (TinyQueue *self, GError **error)
{
  TinyDevice *device = self->device;
  g_mutex_lock (&self->state);
  while (self->n_waiting > 0)
    g_cond_wait (&self->unused, &self->state);
  g_array_index (self->failures, Failure, self->failures->len - 1).last = self->last;
  self->base = self->last;
  set_reached (self, self->last);
  g_mutex_unlock (&self->state);
  if (self->has_handle && !tiny_device_is_abandoned (device))
    device->table.queue_destroy (device->handle, self->handle);
  self->n_recent = 0;
  self->has_handle = FALSE;
  if (!make_handle (self, error))
    return FALSE;
  g_mutex_lock (&self->state);
  self->is_broken = FALSE;
  g_mutex_unlock (&self->state);
  return TRUE;
}

/* Before a submission: a queue that works, and has room. */
static gboolean
make_room (TinyQueue *self, GError **error)
{
  g_mutex_lock (&self->state);
  gboolean is_broken = self->is_broken;
  g_mutex_unlock (&self->state);
  if (is_broken && !exchange_handle (self, error))
    return FALSE;
  return self->n_recent < TINY_MAX_IN_FLIGHT
         || tiny_queue_wait (self, self->recent[self->n_recent % TINY_MAX_IN_FLIGHT],
                             G_MAXUINT64, error);
}

static void
abandon (TinyDevice *device)
{
  g_atomic_int_set (&device->abandoned, TRUE);
  g_atomic_int_set (&device->lost, TRUE);
}

/* After a submission: our own point for the plugin's. */
static gboolean
keep_point (TinyQueue *self, guint64 point, guint64 *out_point, GError **error)
{
  TinyDevice *device = self->device;
  const guint64 before = self->last - self->base;
  *out_point = 0;
  if (point != 0 && point <= before) {
    abandon (device);
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: %s: the plugin gave point %" G_GUINT64_FORMAT " after %" G_GUINT64_FORMAT
                 "; the device is not used any more",
                 device->name, running, point, before);
    return FALSE;
  }
  g_mutex_lock (&self->state);
  if (point != 0)
    store (&self->last, *out_point = self->base + point);
  else if (!self->is_broken)
    set_reached (self, self->last);
  if (point != 0 && tiny_watch_is_untrusted ())
    note_untrusted (self, *out_point);
  g_mutex_unlock (&self->state);
  if (point != 0)
    self->recent[self->n_recent++ % TINY_MAX_IN_FLIGHT] = *out_point;
  return TRUE;
}

/* A submission was refused: by itself, or because the queue has failed. */
static void
find_failure (TinyQueue *self, TinyStatus status, const TinyPluginError *plugin_error)
{
  TinyDevice *device = self->device;
  uint64_t point = 0;
  TinyPluginError ignored;
  tiny_plugin_error_init (&ignored);
  g_mutex_lock (&self->state);
  if (device->table.reached (device->handle, self->handle, &point, &ignored) < 0)
    note_failure (self, G_MAXUINT64, status, plugin_error);
  g_mutex_unlock (&self->state);
}

static gboolean
enqueue_asynchronous (TinyQueue *self,
                      const TinyWork *work,
                      const TinySubmit *submit,
                      guint64 *out_point,
                      GError **error)
{
  TinyDevice *device = self->device;
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  if (!make_room (self, error)
      || (work->check != NULL && has_failed (self) && !work->check (work->data, error)))
    return FALSE;
  TinyStatus status
      = device->table.submit (device->handle, self->handle, submit, &plugin_error);
  if (G_LIKELY (status >= 0))
    return keep_point (self, *submit->out_point, out_point, error);
  if (status != TINY_STATUS_DEVICE_LOST)
    find_failure (self, status, &plugin_error);
  return tiny_device_check (device, status, &plugin_error, running, error);
}

gboolean
tiny_queue_enqueue (TinyQueue *self, const TinyWork *work, guint64 *out_point, GError **error)
{
  TinyDevice *device = self->device;
  if (!tiny_device_check_alive (device, running, error))
    return FALSE;
  uint64_t point = 0;
  const gboolean is_asynchronous = device->table.wait != NULL;
  const TinySubmit submit = {
    .struct_size = sizeof submit,
    .commands = work->commands,
    .n_commands = work->n,
    .out_ns = work->out_ns,
    .out_point = is_asynchronous ? &point : NULL,
  };
  *out_point = 0;
  if (is_asynchronous) {
    g_mutex_lock (&self->lock);
    gboolean good = enqueue_asynchronous (self, work, &submit, out_point, error);
    g_mutex_unlock (&self->lock);
    return good;
  }
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  g_mutex_lock (&self->lock);
  TinyStatus status
      = device->table.submit (device->handle, self->handle, &submit, &plugin_error);
  g_mutex_unlock (&self->lock);
  return G_LIKELY (status >= 0)
         || tiny_device_check (device, status, &plugin_error, running, error);
}

gboolean
tiny_queue_submit (
    TinyQueue *self, const TinyCommand *commands, guint n, guint64 *out_ns, GError **error)
{
  const TinyWork work = { commands, n, out_ns, NULL, NULL };
  guint64 point;
  return tiny_queue_enqueue (self, &work, &point, error)
         && tiny_queue_wait (self, point, G_MAXUINT64, error);
}
