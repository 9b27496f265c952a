/* SPDX-License-Identifier: MIT
 *
 * launches-submit.c: runs launches, and stops between them when the thread is told to.
 *
 * A device that returns when its commands are done is given them in parts. After the first launch that writes memory which
 * others see nothing is stopped: what was begun there is finished. */
#include <string.h>

#include "base/interrupt-check.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-trace.h"
#include "device/tiny-queue.h"
#include "device/tiny-watch.h"
#include "engine/runtime-private.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-lanes.h"

/* Whoever keeps something made from what is written here learns of it. */
static void
touch_written (TinyLaunches *self, const Launch *launch)
{
  for (guint i = 0; i < launch->n_written; i++) {
    const TinyBinding *binding
        = &g_array_index (self->bindings, TinyBinding, launch->first_binding + i);
    if (!binding->is_temporary)
      tiny_buffer_touch (binding->buffer);
  }
}

static void
trace_copy (gint64 start, const TinyBinding *to, const TinyBinding *from)
{
  const TinyTraceArg args[] = { { "from", tiny_buffer_get_device_name (from->buffer), 0 },
                                { "to", tiny_buffer_get_device_name (to->buffer), 0 },
                                { "bytes", NULL, (double) from->n_bytes } };
  tiny_trace_end (start, "copy", "copy", args, G_N_ELEMENTS (args));
}

/* Copies between devices: straight from or to memory that the host can reach, else by way of some of
 * its own, which is kept. */
static gboolean
run_copy (TinyLaunches *self, const TinyBinding *to, const TinyBinding *from, GError **error)
{
  const gsize n = (gsize) from->n_bytes, at = (gsize) from->offset, there = (gsize) to->offset;
  guint8 *source = tiny_buffer_map (from->buffer), *target = tiny_buffer_map (to->buffer);
  if (source != NULL)
    return tiny_buffer_begin_access (from->buffer, FALSE, at, n, error)
           && tiny_buffer_upload (to->buffer, there, source + at, n, error)
           && tiny_buffer_end_access (from->buffer, FALSE, at, n, error);
  if (target != NULL)
    return tiny_buffer_begin_access (to->buffer, TRUE, there, n, error)
           && tiny_buffer_download (from->buffer, at, target + there, n, error)
           && tiny_buffer_end_access (to->buffer, TRUE, there, n, error);
  if (self->n_staging < n) {
    g_free (self->staging);
    self->staging = g_try_malloc (n);
    self->n_staging = self->staging != NULL ? n : 0;
  }
  if (self->n_staging < n) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "copy between devices: no host memory for %" G_GSIZE_FORMAT " bytes", n);
    return FALSE;
  }
  return tiny_buffer_download (from->buffer, at, self->staging, n, error)
         && tiny_buffer_upload (to->buffer, there, self->staging, n, error);
}

gboolean
tiny_launches_copy (TinyLaunches *self, TinyBuffer *to, TinyBuffer *from, GError **error)
{
  const gint64 n = (gint64) tiny_buffer_get_n_bytes (from);
  return run_copy (self, &(TinyBinding){ to, 0, n, FALSE }, &(TinyBinding){ from, 0, n, FALSE },
                   error);
}

/* Records launches [first, end), submitted at @start and done now. They ran one after the other on
 * this thread's time, the last until the end. */
static void
trace_run (TinyLaunches *self, guint first, guint end, gint64 start)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  gint64 now = tiny_timing_now_ns (), at = now;
  for (guint i = first; i < end; i++)
    at -= (gint64) self->ns[i];
  const TinyTraceArg of_all[]
      = { { "device", tiny_device_get_name (tiny_launch_get_runner (&launches[first])), 0 },
          { "kernels", NULL, end - first } };
  tiny_trace_add (MIN (start, at), now, "submit", "submit", of_all, G_N_ELEMENTS (of_all));
  for (guint i = first; i < end; i++) {
    const TinyExecutable *executable = launches[i].executable;
    gint64 ns = (gint64) self->ns[i];
    double s = (double) MAX (ns, 1) * 1e-9;
    const TinyTraceArg args[]
        = { { "device", tiny_device_get_name (tiny_launch_get_runner (&launches[i])), 0 },
            { "GFLOP/s", NULL, (double) executable->n_flops / s * 1e-9 },
            { "GB/s", NULL, (double) executable->n_bytes / s * 1e-9 },
            { "optimisations", executable->opts, 0 } };
    tiny_trace_add (at, at + ns, "kernel", executable->name, args, G_N_ELEMENTS (args));
    at += ns;
  }
}

/* ---- work that goes on after it was submitted ---- */

/* True if launches [first, end) write the memory of @buffer. */
static gboolean
run_writes (TinyLaunches *self, guint first, guint end, TinyBuffer *buffer)
{
  for (guint i = first; i < end; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    for (guint j = 0; j < launch->n_written; j++)
      if (tiny_buffer_get_handle (
              g_array_index (self->bindings, TinyBinding, launch->first_binding + j).buffer)
          == tiny_buffer_get_handle (buffer))
        return TRUE;
  }
  return FALSE;
}

static gboolean
launch_reads (const Launch *launch, guint binding)
{
  return binding >= 64 || (launch->executable->reads >> binding & 1) != 0;
}

typedef struct {
  TinyLaunches *launches;
  guint first, end;
} Part;

/* FALSE with its error when these launches would read what was to be written by work that failed after it
 * was submitted. */
static gboolean
check_inputs (gpointer data, GError **error)
{
  const Part *part = data;
  TinyLaunches *self = part->launches;
  for (guint i = part->first; i < part->end; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    const TinyBinding *bindings
        = &g_array_index (self->bindings, TinyBinding, launch->first_binding);
    for (guint j = 0; j < launch->n_bindings; j++)
      if (!bindings[j].is_temporary && launch_reads (launch, j)
          && !tiny_buffer_check (bindings[j].buffer, NULL)
          && !run_writes (self, part->first, i, bindings[j].buffer))
        return tiny_buffer_check (bindings[j].buffer, error);
  }
  return TRUE;
}

static void
mark_buffers (TinyLaunches *self, guint first, guint end, guint64 point)
{
  for (guint i = first; i < end; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    const TinyBinding *bindings
        = &g_array_index (self->bindings, TinyBinding, launch->first_binding);
    for (guint j = 0; j < launch->n_bindings; j++)
      tiny_buffer_mark (bindings[j].buffer, point, j < launch->n_written);
  }
}

static gboolean
has_untrusted (TinyLaunches *self, guint first, guint end)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  gboolean has = FALSE;
  for (guint i = first; self->has_untrusted && i < end; i++)
    has = has || launches[i].executable->is_untrusted;
  return has;
}

/* Submits launches [first, end), which one device runs; waits where @ns is wanted, and where that device is not
 * the one whose memory it is: what they do is not on one timeline. */
static gboolean
enqueue_run (TinyLaunches *self, guint first, guint end, guint64 *ns, GError **error)
{
  const Launch *launch = &g_array_index (self->launches, Launch, first);
  TinyDevice *runner = tiny_launch_get_runner (launch);
  TinyQueue *queue = tiny_device_get_queue (launch->device);
  g_auto (TinyUntrusted) untrusted
      = tiny_watch_begin_untrusted (has_untrusted (self, first, end));
  if (runner != launch->device)
    return tiny_queue_wait (queue, tiny_queue_get_last (queue), G_MAXUINT64, error)
           && tiny_device_submit (runner, self->commands + first, end - first, ns, error);
  Part part = { self, first, end };
  const TinyWork work = { self->commands + first, end - first, ns, check_inputs, &part };
  guint64 point;
  if (!tiny_queue_enqueue (queue, &work, &point, error))
    return FALSE;
  if ((tiny_device_get_info (runner)->flags & TINY_DEVICE_RUNS_NOTHING) != 0)
    point = TINY_POINT_NEVER;
  if (point != 0)
    mark_buffers (self, first, end, point);
  return ns == NULL || point == TINY_POINT_NEVER
         || tiny_queue_wait (queue, point, G_MAXUINT64, error);
}

/* Adds what @label is in, as “layer1.conv1” of “layer1.conv1.weight”, once. */
static void
add_label (GPtrArray *all, const char *label)
{
  const char *end = strrchr (label, '.');
  g_autofree char *owner
      = end != NULL ? g_strndup (label, (gsize) (end - label)) : g_strdup (label);
  if (!g_ptr_array_find_with_equal_func (all, owner, g_str_equal, NULL))
    g_ptr_array_add (all, g_steal_pointer (&owner));
}

/* The modules whose tensors a launch reads or writes. */
static char *
list_labels (TinyLaunches *self, const Launch *launch)
{
  enum { MOST = 3 };
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < launch->n_bindings; i++) {
    const TinyBinding *binding
        = &g_array_index (self->bindings, TinyBinding, launch->first_binding + i);
    const char *label = tiny_buffer_get_label (binding->buffer);
    if (label != NULL)
      add_label (all, label);
  }
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < MIN (all->len, MOST); i++)
    g_string_append_printf (text, i > 0 ? ", %s" : "%s", (const char *) all->pdata[i]);
  if (all->len > MOST)
    g_string_append_printf (text, " and %u more", all->len - MOST);
  return g_string_free (text, FALSE);
}

static void
print_launch (TinyLaunches *self, TinyDevice *device, guint i)
{
  const Launch *launch = &g_array_index (self->launches, Launch, i);
  g_autofree char *labels = list_labels (self, launch);
  tiny_debug_print_launch (device, launch->executable, self->ns[i], labels);
}

/* Submits launches [first, end), which one device runs, and shows them when asked. */
static gboolean
submit_run (TinyLaunches *self, guint first, guint end, GError **error)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  TinyDevice *device = tiny_launch_get_runner (&launches[first]);
  gint64 start = self->ns != NULL ? tiny_trace_begin () : 0;
  guint64 *ns = self->ns != NULL ? self->ns + first : NULL;
  if (!enqueue_run (self, first, end, ns, error))
    return FALSE;
  if (start != 0)
    trace_run (self, first, end, start);
  for (guint i = first; TINY_DEBUG (2) && ns != NULL && i < end; i++)
    print_launch (self, device, i);
  return TRUE;
}

/* The end of a part of launches [first, end), which do about @work operations and bytes; all of them where nothing
 * stops them. */
static guint
find_end_of_part (TinyLaunches *self, guint first, guint end, double work)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  guint next = first;
  if (first >= self->n_unseen
      || tiny_device_is_asynchronous (tiny_launch_get_runner (&launches[first])))
    return end;
  do {
    const TinyExecutable *executable = launches[next++].executable;
    work -= (double) executable->n_flops + (double) executable->n_bytes;
  } while (next < end
           && (work > 0 || self->commands[next].flags != 0)); /* together they stay */
  return next;
}

/* Submits launches [first, end), which one device runs, in parts of some milliseconds: many small ones are one part, and
 * what a part takes says how much the next one is. */
static gboolean
submit_parts (TinyLaunches *self, guint first, guint end, GError **error)
{
  enum { SHORT_NS = 10000000, LONG_NS = 50000000 };
  double work = 2e6; /* that a slow interpreter does as quickly */
  for (guint next; first < end; first = next) {
    if (first < self->n_unseen && !tiny_interrupt_check (error))
      return FALSE;
    next = find_end_of_part (self, first, end, work);
    const gint64 start = next < end ? tiny_debug_now_ns () : 0;
    if (!submit_run (self, first, next, error))
      return FALSE;
    const gint64 ns = next < end ? tiny_debug_now_ns () - start : 0;
    work *= ns < SHORT_NS ? 2 : ns > LONG_NS ? 0.5 : 1;
  }
  return TRUE;
}

/* Submits launches [first, end), which are on the memory of one device. What another one runs there is in turns with
 * what itself does: each has ended when the next begins. */
static gboolean
submit_runs (TinyLaunches *self, guint first, guint end, GError **error)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  for (guint next; first < end; first = next) {
    TinyDevice *runner = tiny_launch_get_runner (&launches[first]);
    for (next = first + 1; next < end && tiny_launch_get_runner (&launches[next]) == runner;)
      next++;
    if (!submit_parts (self, first, next, error))
      return FALSE;
  }
  return TRUE;
}

/* Runs launches [first, end): on one device, or one copy. */
static gboolean
run_step (TinyLaunches *self, guint first, guint end, GError **error)
{
  const Launch *launch = &g_array_index (self->launches, Launch, first);
  if (launch->device != NULL)
    return submit_runs (self, first, end, error);
  if (first < self->n_unseen && !tiny_interrupt_check (error))
    return FALSE;
  const TinyBinding *both = &g_array_index (self->bindings, TinyBinding, launch->first_binding);
  gint64 start = tiny_trace_begin ();
  gboolean good = run_copy (self, &both[0], &both[1], error);
  trace_copy (start, &both[0], &both[1]);
  return good;
}

guint
tiny_launches_count_unseen (TinyLaunches *self)
{
  for (guint i = 0; i < self->launches->len; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    for (guint j = 0; j < launch->n_written; j++)
      if (!g_array_index (self->bindings, TinyBinding, launch->first_binding + j).is_temporary)
        return i;
  }
  return self->launches->len;
}

gboolean
tiny_launches_submit (TinyLaunches *self, guint n_unseen, GError **error)
{
  const guint n = self->launches->len;
  const gint64 start = tiny_debug_now_ns ();
  if ((self->commands == NULL || self->is_lent) && !tiny_launches_build (self, error))
    return FALSE;
  if (self->lanes == NULL)
    self->lanes = tiny_lanes_new (self);
  /* Side by side, any of them may be under way. */
  self->n_unseen = tiny_lanes_get_n (self->lanes) == 1 || n_unseen >= n ? n_unseen : 0;
  for (guint i = 0; i < n; i++)
    touch_written (self, &g_array_index (self->launches, Launch, i));
  if (tiny_trace_begin () != 0 || TINY_DEBUG (2))
    tiny_launches_keep_times (self);
  const gboolean is_one_lane = n > 0 && tiny_lanes_get_n (self->lanes) == 1
                               && g_array_index (self->launches, Launch, 0).device != NULL;
  if (!(is_one_lane ? run_step (self, 0, n, error)
                    : tiny_lanes_submit (self->lanes, run_step, error)))
    return FALSE;
  tiny_runtime_count_run (tiny_debug_now_ns () - start, self->n_kernels, self->n_flops,
                          self->n_bytes);
  return TRUE;
}
