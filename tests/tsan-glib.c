/* SPDX-License-Identifier: MIT
 *
 * tsan-glib.c: tells ThreadSanitizer what GLib's locks and references order.
 *
 * GLib's GMutex and GCond are built on futexes, which ThreadSanitizer does not see, so that all they
 * protect would look like a race. Linked into a program these stand before GLib's. GRecMutex and
 * GPrivate are pthread's and need nothing; g_once_init_enter() reads its word with atomics. */
#include <dlfcn.h>
#include <glib-object.h>
#include <glib.h>
#include <sanitizer/tsan_interface.h>

#define NEXT(name) ((__typeof__ (&name)) dlsym (RTLD_NEXT, #name))

void
g_mutex_lock (GMutex *mutex)
{
  static __typeof__ (&g_mutex_lock) next;
  if (next == NULL)
    next = NEXT (g_mutex_lock);
  next (mutex);
  __tsan_acquire (mutex);
}

gboolean
g_mutex_trylock (GMutex *mutex)
{
  static __typeof__ (&g_mutex_trylock) next;
  if (next == NULL)
    next = NEXT (g_mutex_trylock);
  gboolean taken = next (mutex);
  if (taken)
    __tsan_acquire (mutex);
  return taken;
}

void
g_mutex_unlock (GMutex *mutex)
{
  static __typeof__ (&g_mutex_unlock) next;
  if (next == NULL)
    next = NEXT (g_mutex_unlock);
  __tsan_release (mutex);
  next (mutex);
}

void
g_cond_wait (GCond *cond, GMutex *mutex)
{
  static __typeof__ (&g_cond_wait) next;
  if (next == NULL)
    next = NEXT (g_cond_wait);
  __tsan_release (mutex);
  next (cond, mutex);
  __tsan_acquire (mutex);
}

gboolean
g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end_time)
{
  static __typeof__ (&g_cond_wait_until) next;
  if (next == NULL)
    next = NEXT (g_cond_wait_until);
  __tsan_release (mutex);
  gboolean signalled = next (cond, mutex, end_time);
  __tsan_acquire (mutex);
  return signalled;
}

/* Whoever initialises happens before everyone who finds it done. */
gboolean (g_once_init_enter) (volatile void *location)
{
  static gboolean (*next) (volatile void *);
  if (next == NULL)
    next = (gboolean (*) (volatile void *)) dlsym (RTLD_NEXT, "g_once_init_enter");
  gboolean mine = next (location);
  if (!mine)
    __tsan_acquire ((void *) location);
  return mine;
}

void (g_once_init_leave) (volatile void *location, gsize result)
{
  static void (*next) (volatile void *, gsize);
  if (next == NULL)
    next = (void (*) (volatile void *, gsize)) dlsym (RTLD_NEXT, "g_once_init_leave");
  __tsan_release ((void *) location);
  next (location, result);
}

/* ---- objects: what a user did happens before what is done by who finds itself the last one ---- */
void (g_object_unref) (gpointer object)
{
  static void (*next) (gpointer);
  if (next == NULL)
    next = (void (*) (gpointer)) dlsym (RTLD_NEXT, "g_object_unref");
  __tsan_release ((void *) &((GObject *) object)->ref_count);
  next (object);
}

/* ---- pools: pushing happens before running, running before the pool is gone ---- */
typedef struct {
  GFunc function;
  gpointer user_data;
} Pooled;

static char pools; /* one word of order for all of them */

static void
run_pooled (gpointer data, gpointer user_data)
{
  Pooled *pooled = user_data;
  __tsan_acquire (&pools);
  pooled->function (data, pooled->user_data);
  __tsan_release (&pools);
}

GThreadPool *
g_thread_pool_new (
    GFunc function, gpointer user_data, gint max_threads, gboolean exclusive, GError **error)
{
  static __typeof__ (&g_thread_pool_new) next;
  if (next == NULL)
    next = NEXT (g_thread_pool_new);
  Pooled *pooled
      = g_new (Pooled, 1); /* lives as long as the program: a pool's end is not its last use */
  *pooled = (Pooled){ function, user_data };
  return next (run_pooled, pooled, max_threads, exclusive, error);
}

gboolean
g_thread_pool_push (GThreadPool *pool, gpointer data, GError **error)
{
  static __typeof__ (&g_thread_pool_push) next;
  if (next == NULL)
    next = NEXT (g_thread_pool_push);
  __tsan_release (&pools);
  return next (pool, data, error);
}

void
g_thread_pool_free (GThreadPool *pool, gboolean immediate, gboolean wait)
{
  static __typeof__ (&g_thread_pool_free) next;
  if (next == NULL)
    next = NEXT (g_thread_pool_free);
  next (pool, immediate, wait);
  if (wait)
    __tsan_acquire (&pools);
}
