/* SPDX-License-Identifier: MIT
 *
 * tiny-launches.c: launches in order, ready to submit as often as wanted.
 *
 * Neighbouring launches on one device become one submission: an array of commands whose spans
 * point into one array of spans. Both are built on the first submit and kept; replacing a buffer
 * only patches the spans that use it. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-trace.h"
#include "device/tiny-queue.h"
#include "engine/runtime-private.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-lanes.h"

TinyLaunches *
tiny_launches_new (void)
{
  TinyLaunches *self = g_new0 (TinyLaunches, 1);
  self->launches = g_array_new (FALSE, FALSE, sizeof (Launch));
  self->bindings = g_array_new (FALSE, FALSE, sizeof (TinyBinding));
  self->variables = g_array_new (FALSE, FALSE, sizeof (LaunchVariable));
  return self;
}

gboolean
tiny_bindings_overlap (const TinyBinding *x, const TinyBinding *y)
{
  gint64 x_at = x->offset + (gint64) tiny_buffer_get_offset (x->buffer);
  gint64 y_at = y->offset + (gint64) tiny_buffer_get_offset (y->buffer);
  return tiny_buffer_get_handle (x->buffer) == tiny_buffer_get_handle (y->buffer)
         && x_at < y_at + y->n_bytes && y_at < x_at + x->n_bytes;
}

static void
forget_commands (TinyLaunches *self)
{
  g_clear_pointer (&self->lanes, tiny_lanes_free);
  g_clear_pointer (&self->commands, g_free);
  g_clear_pointer (&self->spans, g_free);
  g_clear_pointer (&self->values, g_free);
  g_clear_pointer (&self->ns, g_free);
}

void
tiny_launches_free (TinyLaunches *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->bindings->len; i++)
    tiny_buffer_unref (g_array_index (self->bindings, TinyBinding, i).buffer);
  g_array_unref (self->launches);
  g_array_unref (self->bindings);
  g_array_unref (self->variables);
  forget_commands (self);
  g_clear_pointer (&self->owners, g_hash_table_unref);
  g_free (self->staging);
  g_free (self);
}

void
tiny_launches_add (TinyLaunches *self,
                   Launch launch,
                   const TinyBinding *bindings,
                   TinyLaunches *from)
{
  guint first_variable = self->variables->len;
  for (guint i = 0; i < launch.n_variables; i++)
    g_array_append_val (self->variables, g_array_index (from->variables, LaunchVariable,
                                                        launch.first_variable + i));
  launch.first_variable = first_variable;
  launch.first_binding = self->bindings->len;
  g_array_append_val (self->launches, launch);
  g_array_append_vals (self->bindings, bindings, launch.n_bindings);
  for (guint i = 0; i < launch.n_bindings; i++)
    tiny_buffer_ref (bindings[i].buffer);
  self->n_kernels += launch.device != NULL;
  if (launch.executable != NULL) {
    self->n_flops += (guint64) launch.executable->n_flops;
    self->n_bytes += (guint64) launch.executable->n_bytes;
  }
  forget_commands (self);
}

void
tiny_launches_add_kernel (TinyLaunches *self,
                          TinyDevice *device,
                          TinyExecutable *executable,
                          const TinyBoundVariable *variables,
                          const TinyBinding *bindings,
                          guint n_bindings,
                          guint n_written)
{
  Launch launch = {
    .device = device, .executable = executable, .n_bindings = n_bindings, .n_written = n_written
  };
  tiny_launches_add (self, launch, bindings, NULL);
  Launch *added = &g_array_index (self->launches, Launch, self->launches->len - 1);
  added->first_variable = self->variables->len;
  added->n_variables = executable->n_variables;
  for (guint i = 0; i < executable->n_variables; i++)
    g_array_append_val (self->variables, ((LaunchVariable){ variables[i], 0 }));
}

void
tiny_launches_add_copy (TinyLaunches *self, const TinyBinding *to, const TinyBinding *from)
{
  TinyBinding both[] = { *to, *from };
  tiny_launches_add (self, (Launch){ .n_bindings = 2, .n_written = 1 }, both, NULL);
}

guint
tiny_launches_get_n_kernels (TinyLaunches *self)
{
  return self->n_kernels;
}

void
tiny_launches_append (TinyLaunches *self, TinyLaunches *other)
{
  for (guint i = 0; i < other->launches->len; i++) {
    Launch launch = g_array_index (other->launches, Launch, i);
    tiny_launches_add (self, launch,
                       &g_array_index (other->bindings, TinyBinding, launch.first_binding),
                       other);
  }
}

void
tiny_launches_set_inputs (TinyLaunches *self, const GPtrArray *inputs)
{
  self->inputs = inputs;
  self->n_roots = tiny_runtime_count_roots ();
}

void
tiny_launches_set_owners (TinyLaunches *self, GHashTable *owners)
{
  g_clear_pointer (&self->owners, g_hash_table_unref);
  self->owners = owners;
}

TinyRoot *
tiny_launches_get_owner (const TinyLaunches *self, TinyNode *memory)
{
  return self->owners == NULL || !tiny_runtime_is_memory (memory)
             ? NULL
             : g_hash_table_lookup (
                 self->owners, tiny_runtime_get_buffer (tiny_runtime_get_piece (memory, 0)));
}

gboolean
tiny_launches_changes (TinyLaunches *self, TinyBuffer *buffer)
{
  for (guint i = 0; self->inputs != NULL && i < self->inputs->len; i++)
    if (tiny_buffer_get_handle (self->inputs->pdata[i]) == tiny_buffer_get_handle (buffer))
      return TRUE;
  for (guint i = 0; i < self->launches->len; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    for (guint j = 0; j < launch->n_written; j++)
      if (tiny_buffer_get_handle (
              g_array_index (self->bindings, TinyBinding, launch->first_binding + j).buffer)
          == tiny_buffer_get_handle (buffer))
        return TRUE;
  }
  return FALSE;
}

/* How many bytes a kernel may touch: where a target keeps bytes in words, the last word is whole. No
 * two buffers share a word, the pool and the scheduler's arenas see to that. */
static guint64
count_touched (const TinyTarget *target, gint64 n_bytes)
{
  gboolean packs = FALSE;
  for (guint i = TINY_DTYPE_BOOL; i <= TINY_DTYPE_F64; i++)
    packs = packs
            || (tiny_dtype_get_n_bytes (i) < 4
                && (target->dtypes_storage & TINY_DTYPE_BIT (i)) == 0);
  return packs ? (guint64) (n_bytes + 3) & ~G_GUINT64_CONSTANT (3) : (guint64) n_bytes;
}

/* What runs @launch: its device, or the one that runs kernels on that one's memory. */
static TinyDevice *
get_runner (const Launch *launch)
{
  return launch->device != NULL ? tiny_program_get_device (launch->executable->program) : NULL;
}

static gboolean
fill_span (TinySpan *span, const TinyBinding *binding, TinyDevice *runner, GError **error)
{
  if (!tiny_buffer_ensure (binding->buffer, error))
    return FALSE;
  TinyPluginBuffer *handle = runner != NULL
                                 ? tiny_buffer_get_handle_on (binding->buffer, runner, error)
                                 : tiny_buffer_get_handle (binding->buffer);
  if (handle == NULL)
    return FALSE;
  *span = (TinySpan){
    .buffer = handle,
    .offset = (guint64) binding->offset + tiny_buffer_get_offset (binding->buffer),
    .n_bytes = count_touched (tiny_device_get_target (tiny_buffer_get_device (binding->buffer)),
                              binding->n_bytes)
  };
  return TRUE;
}

static gboolean
fill_spans (TinyLaunches *self, const Launch *launch, GError **error)
{
  for (guint i = launch->first_binding; i < launch->first_binding + launch->n_bindings; i++)
    if (!fill_span (&self->spans[i], &g_array_index (self->bindings, TinyBinding, i),
                    get_runner (launch), error))
      return FALSE;
  return TRUE;
}

static int
find_buffer (TinyBuffer *buffer, TinyBuffer *const *buffers, guint n)
{
  for (guint i = 0; i < n; i++)
    if (buffers[i] == buffer)
      return (int) i;
  return -1;
}

/* Whether one of the two writes what the other touches. */
static gboolean
launches_conflict (TinyLaunches *self, const Launch *x, const Launch *y)
{
  for (guint i = 0; i < x->n_bindings; i++)
    for (guint j = 0; j < y->n_bindings; j++)
      if ((i < x->n_written || j < y->n_written)
          && tiny_bindings_overlap (
              &g_array_index (self->bindings, TinyBinding, x->first_binding + i),
              &g_array_index (self->bindings, TinyBinding, y->first_binding + j)))
        return TRUE;
  return FALSE;
}

/* Finds which launches may run together with those before them, for devices that can do that. */
static void
mark_overlaps (TinyLaunches *self)
{
  enum { MAX_TOGETHER = 32 }; /* more fill no device, and each is compared with all */
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  for (guint i = 0, first = 0; i < self->launches->len; i++) {
    TinyDevice *device = get_runner (&launches[i]);
    gboolean overlaps = device != NULL && get_runner (&launches[first]) == device
                        && (tiny_device_get_info (device)->flags & TINY_DEVICE_OVERLAPS) != 0
                        && i > first && i - first < MAX_TOGETHER;
    for (guint j = first; overlaps && j < i; j++)
      overlaps = !launches_conflict (self, &launches[i], &launches[j]);
    self->commands[i].flags = overlaps ? TINY_COMMAND_OVERLAPS : 0;
    first = overlaps ? first : i;
  }
}

void
tiny_launches_replace (TinyLaunches *self,
                       TinyBuffer *const *from,
                       TinyBuffer *const *to,
                       guint n)
{
  for (guint l = 0; l < self->launches->len; l++) {
    const Launch *launch = &g_array_index (self->launches, Launch, l);
    for (guint i = launch->first_binding; i < launch->first_binding + launch->n_bindings; i++) {
      TinyBinding *binding = &g_array_index (self->bindings, TinyBinding, i);
      TinyBuffer *before = binding->buffer;
      int at = find_buffer (before, from, n);
      if (at < 0 || to[at] == before)
        continue;
      binding->buffer = tiny_buffer_ref (to[at]);
      tiny_buffer_unref (before);
      if (self->spans != NULL
          && !fill_span (&self->spans[i], binding, get_runner (launch), NULL))
        forget_commands (self);
    }
  }
  /* Other memory, other waits. */
  if (self->commands != NULL)
    mark_overlaps (self);
  if (self->lanes != NULL && tiny_lanes_get_n (self->lanes) > 1)
    g_clear_pointer (&self->lanes, tiny_lanes_free);
}

gboolean
tiny_launches_write (TinyLaunches *self,
                     TinyBuffer *buffer,
                     TinyBuffer *const *except,
                     guint n_except)
{
  const TinyBinding all = { buffer, 0, (gint64) tiny_buffer_get_n_bytes (buffer), FALSE };
  for (guint i = 0; i < self->launches->len; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    for (guint j = 0; j < launch->n_written; j++) {
      const TinyBinding *binding
          = &g_array_index (self->bindings, TinyBinding, launch->first_binding + j);
      if (find_buffer (binding->buffer, except, n_except) < 0
          && tiny_bindings_overlap (binding, &all))
        return TRUE;
    }
  }
  return FALSE;
}

static gboolean
build_commands (TinyLaunches *self, GError **error)
{
  self->commands = g_new0 (TinyCommand, self->launches->len + 1);
  self->spans = g_new0 (TinySpan, self->bindings->len + 1);
  self->values = g_new0 (gint64, self->variables->len + 1);
  for (guint i = 0; i < self->variables->len; i++)
    self->values[i] = g_array_index (self->variables, LaunchVariable, i).bound.value;
  for (guint i = 0; i < self->launches->len; i++)
    if (!fill_spans (self, &g_array_index (self->launches, Launch, i), error)) {
      forget_commands (self);
      return FALSE;
    }
  for (guint i = 0; i < self->launches->len; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    if (launch->device == NULL)
      continue;
    TinyCommand *command = &self->commands[i];
    command->struct_size = sizeof *command;
    command->type = TINY_COMMAND_DISPATCH;
    command->program = tiny_program_get_handle (launch->executable->program);
    command->buffers = &self->spans[launch->first_binding];
    command->n_buffers = launch->n_bindings;
    command->variables = &self->values[launch->first_variable];
    command->n_variables = launch->n_variables;
    memcpy (command->grid, launch->executable->grid, sizeof command->grid);
  }
  mark_overlaps (self);
  return TRUE;
}

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
      = { { "device", tiny_device_get_name (get_runner (&launches[first])), 0 },
          { "kernels", NULL, end - first } };
  tiny_trace_add (MIN (start, at), now, "submit", "submit", of_all, G_N_ELEMENTS (of_all));
  for (guint i = first; i < end; i++) {
    const TinyExecutable *executable = launches[i].executable;
    gint64 ns = (gint64) self->ns[i];
    double s = (double) MAX (ns, 1) * 1e-9;
    const TinyTraceArg args[]
        = { { "device", tiny_device_get_name (get_runner (&launches[i])), 0 },
            { "GFLOP/s", NULL, (double) executable->n_flops / s * 1e-9 },
            { "GB/s", NULL, (double) executable->n_bytes / s * 1e-9 },
            { "optimisations", executable->opts, 0 } };
    tiny_trace_add (at, at + ns, "kernel", executable->name, args, G_N_ELEMENTS (args));
    at += ns;
  }
}

void
tiny_launches_keep_times (TinyLaunches *self)
{
  if (self->ns == NULL)
    self->ns = g_new0 (guint64, self->launches->len + 1);
}

guint
tiny_launches_get_n (TinyLaunches *self)
{
  return self->launches->len;
}

const TinyExecutable *
tiny_launches_get (TinyLaunches *self, guint i, TinyDevice **out_device, guint64 *out_ns)
{
  const Launch *launch = &g_array_index (self->launches, Launch, i);
  *out_device = launch->device;
  *out_ns = self->ns != NULL ? self->ns[i] : 0;
  return launch->executable;
}

/* ---- work that goes on after it was submitted ---- */

/* Whether launches [first, end) write the memory of @buffer. */
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

/* Submits launches [first, end), which one device runs; waits where @ns is wanted, and where that device is not
 * the one whose memory it is: what they do is not on one timeline. */
static gboolean
enqueue_run (TinyLaunches *self, guint first, guint end, guint64 *ns, GError **error)
{
  const Launch *launch = &g_array_index (self->launches, Launch, first);
  TinyDevice *runner = get_runner (launch);
  TinyQueue *queue = tiny_device_get_queue (launch->device);
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

/* Submits launches [first, end), which one device runs, and shows them when asked. */
static gboolean
submit_run (TinyLaunches *self, guint first, guint end, GError **error)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  TinyDevice *device = get_runner (&launches[first]);
  gint64 start = self->ns != NULL ? tiny_trace_begin () : 0;
  guint64 *ns = self->ns != NULL ? self->ns + first : NULL;
  if (!enqueue_run (self, first, end, ns, error))
    return FALSE;
  if (start != 0)
    trace_run (self, first, end, start);
  for (guint i = first; TINY_DEBUG (2) && ns != NULL && i < end; i++)
    tiny_debug_print_launch (device, launches[i].executable, self->ns[i]);
  return TRUE;
}

/* Submits launches [first, end), which are on the memory of one device. What another one runs there is in turns with
 * what itself does: each has ended when the next begins. */
static gboolean
submit_runs (TinyLaunches *self, guint first, guint end, GError **error)
{
  const Launch *launches = &g_array_index (self->launches, Launch, 0);
  for (guint next; first < end; first = next) {
    TinyDevice *runner = get_runner (&launches[first]);
    for (next = first + 1; next < end && get_runner (&launches[next]) == runner;)
      next++;
    if (!submit_run (self, first, next, error))
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
  const TinyBinding *both = &g_array_index (self->bindings, TinyBinding, launch->first_binding);
  gint64 start = tiny_trace_begin ();
  gboolean good = run_copy (self, &both[0], &both[1], error);
  trace_copy (start, &both[0], &both[1]);
  return good;
}

gboolean
tiny_launches_submit (TinyLaunches *self, GError **error)
{
  const guint n = self->launches->len;
  const gint64 start = tiny_debug_now_ns ();
  if (self->commands == NULL && !build_commands (self, error))
    return FALSE;
  if (self->lanes == NULL)
    self->lanes = tiny_lanes_new (self);
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
