/* SPDX-License-Identifier: MIT
 *
 * tiny-launches.c: launches in order, ready to submit as often as wanted.
 *
 * Neighbouring launches on one device become one submission: an array of commands whose spans
 * point into one array of spans. Both are built on the first submit and kept; replacing a buffer
 * only patches the spans that use it. */
#include <string.h>

#include "engine/runtime-private.h"
#include "engine/tiny-lanes.h"

static void
launch_clear (gpointer launch)
{
  tiny_executable_unref (((Launch *) launch)->executable);
}

TinyLaunches *
tiny_launches_new (void)
{
  TinyLaunches *self = g_new0 (TinyLaunches, 1);
  self->launches = g_array_new (FALSE, FALSE, sizeof (Launch));
  g_array_set_clear_func (self->launches, launch_clear);
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
  for (guint i = 0; i < self->bindings->len && !self->is_lent; i++)
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
    if (bindings[i].buffer != NULL)
      tiny_buffer_ref (bindings[i].buffer);
  self->n_kernels += launch.device != NULL;
  if (launch.executable != NULL) {
    tiny_executable_ref (launch.executable);
    self->has_untrusted = self->has_untrusted || launch.executable->is_untrusted;
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
tiny_launches_mark_part (TinyLaunches *self)
{
  g_array_index (self->launches, Launch, self->launches->len - 1).is_part = TRUE;
}

void
tiny_launches_add_copy (TinyLaunches *self, const TinyBinding *to, const TinyBinding *from)
{
  TinyBinding both[] = { *to, *from };
  tiny_launches_add (self, (Launch){ .n_bindings = 2, .n_written = 1 }, both, NULL);
}

void
tiny_launches_lend (TinyLaunches *self, TinyBuffer *const *buffers, const guint *which)
{
  self->is_lent = TRUE;
  for (guint i = 0; i < self->bindings->len; i++)
    g_array_index (self->bindings, TinyBinding, i).buffer
        = buffers != NULL ? buffers[which[i]] : NULL;
  if (buffers == NULL)
    g_clear_pointer (&self->ns, g_free); /* the next run is watched, or not, as it begins */
}

void
tiny_launches_set_variable (TinyLaunches *self,
                            guint launch,
                            guint i,
                            const TinyBoundVariable *variable)
{
  const guint first = g_array_index (self->launches, Launch, launch).first_variable;
  g_array_index (self->variables, LaunchVariable, first + i).bound = *variable;
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
  const guint32 narrow = 0
#define TINY_DTYPE(id, text, n_bytes, ...)                                                     \
  | (n_bytes == 1 || n_bytes == 2 ? TINY_DTYPE_BIT (TINY_DTYPE_##id) : 0)
#include "ir/dtypes.def"
#undef TINY_DTYPE
      ;
  return (narrow & ~target->dtypes_storage) != 0
             ? (guint64) (n_bytes + 3) & ~G_GUINT64_CONSTANT (3)
             : (guint64) n_bytes;
}

TinyDevice *
tiny_launch_get_runner (const Launch *launch)
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
                    tiny_launch_get_runner (launch), error))
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
    TinyDevice *device = tiny_launch_get_runner (&launches[i]);
    gboolean overlaps = device != NULL && tiny_launch_get_runner (&launches[first]) == device
                        && (tiny_device_get_info (device)->flags & TINY_DEVICE_OVERLAPS) != 0
                        && i > first && i - first < MAX_TOGETHER;
    for (guint j = first; overlaps && j < i; j++)
      overlaps = !launches_conflict (self, &launches[i], &launches[j]);
    self->commands[i].flags = overlaps ? TINY_COMMAND_OVERLAPS : 0;
    first = overlaps ? first : i;
  }
}

/* Other memory, other waits. */
static void
forget_waits (TinyLaunches *self)
{
  if (self->lanes != NULL && tiny_lanes_get_n (self->lanes) > 1)
    g_clear_pointer (&self->lanes, tiny_lanes_free);
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
          && !fill_span (&self->spans[i], binding, tiny_launch_get_runner (launch), NULL))
        forget_commands (self);
    }
  }
  if (self->commands != NULL)
    mark_overlaps (self);
  forget_waits (self);
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

/* All of the commands that stays as it is. */
static void
make_commands (TinyLaunches *self)
{
  self->commands = g_new0 (TinyCommand, self->launches->len + 1);
  self->spans = g_new0 (TinySpan, self->bindings->len + 1);
  self->values = g_new0 (gint64, self->variables->len + 1);
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
}

gboolean
tiny_launches_build (TinyLaunches *self, GError **error)
{
  if (self->commands == NULL)
    make_commands (self);
  for (guint i = 0; i < self->variables->len; i++)
    self->values[i] = g_array_index (self->variables, LaunchVariable, i).bound.value;
  for (guint i = 0; i < self->launches->len; i++)
    if (!fill_spans (self, &g_array_index (self->launches, Launch, i), error)) {
      forget_commands (self);
      return FALSE;
    }
  mark_overlaps (self);
  forget_waits (self);
  return TRUE;
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
