/* SPDX-License-Identifier: MIT
 *
 * tiny-plan.c: a schedule whose kernels are compiled, run on given memory.
 *
 * The launches of a run are made once and lent other memory by each further run. */
#include "engine/tiny-plan.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "engine/runtime-private.h"
#include "engine/tiny-claims.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-tuned.h"
#include "ir/tiny-verify.h"

/* Where a buffer of the schedule is in memory that a run brings along. */
typedef struct {
  TinyBinding binding; /* without a buffer */
  TinyDevice *device;  /* of an output */
  guint arena;         /* of a temporary */
} Place;

/* A run, which comes again: from one to the next nothing but memory and the values of variables differs. */
typedef struct {
  TinyBuffer **buffers; /* by buffer of the schedule; NULL between runs, as are its launches' */
  TinyBuffer **arenas;  /* likewise; those of temporaries */
  TinyLaunches *launches;
} Run;

static void
run_free (Run *self)
{
  if (self == NULL)
    return;
  g_free (self->buffers);
  g_free (self->arenas);
  tiny_launches_free (self->launches);
  g_free (self);
}

struct TinyPlan {
  TinySchedule *schedule;
  TinyExecutable **executables; /* (owned): by item; NULL for copies */
  TinyDevice **devices;         /* by item: that runs it */
  guint n_kernels;
  Place *places;              /* by buffer */
  TinyDevice **arena_devices; /* by arena */
  guint *lent;                /* by binding of the launches: the buffer of the schedule */
  guint n_unseen;             /* items before the first that writes to an input */
  Run *spare;                 /* of the last run; NULL while one goes on */
};

/* Compiles the kernels of one device together, so that they compile side by side. */
static gboolean
compile_device (TinyPlan *self, const char *name, GError **error)
{
  TinySchedule *schedule = self->schedule;
  g_autoptr (GPtrArray) kernels = g_ptr_array_new ();
  g_autoptr (GPtrArray) operations = g_ptr_array_new ();
  g_autoptr (GArray) items = g_array_new (FALSE, FALSE, sizeof (guint));
  TinyDevice *device = tiny_engine_get_device (name, error);
  if (device == NULL)
    return FALSE;
  for (guint i = 0; i < schedule->n_items; i++) {
    if (!g_str_equal (schedule->items[i].device, name))
      continue;
    self->devices[i] = device;
    if (schedule->items[i].kind != TINY_SCHEDULE_KERNEL)
      continue;
    g_ptr_array_add (kernels, schedule->items[i].kernel);
    g_ptr_array_add (operations, schedule->items[i].operation);
    g_array_append_val (items, i);
  }
  g_autofree TinyExecutable **executables = g_new0 (TinyExecutable *, kernels->len + 1);
  if (!tiny_executables_get (device, schedule->graph, (TinyNode *const *) kernels->pdata,
                             (const TinyOperation *const *) operations->pdata, kernels->len,
                             executables, error))
    return FALSE;
  for (guint i = 0; i < items->len; i++)
    self->executables[g_array_index (items, guint, i)] = executables[i];
  self->n_kernels += kernels->len;
  return TRUE;
}

/* Where checking is on: are the kernels that came out of scheduling legal? */
static gboolean
verify_kernels (const TinySchedule *schedule, GError **error)
{
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    if (item->kind == TINY_SCHEDULE_KERNEL
        && !tiny_graph_verify (schedule->graph, item->kernel, TINY_STAGE_KERNEL, error)) {
      g_prefix_error (error, "after scheduling: ");
      return FALSE;
    }
  }
  return TRUE;
}

/* What a schedule asks about its devices. */
typedef struct {
  GHashTable *devices; /* name → TinyDevice, or NULL */
  GArray *verdicts;    /* TinyVerdict, where they are to be shown; else NULL */
} Questions;

/* Asked for often; a device that cannot be opened is tried once here, and is an error later. */
static TinyDevice *
find_device (Questions *self, const char *name)
{
  gpointer device = NULL;
  if (name == NULL || g_hash_table_lookup_extended (self->devices, name, NULL, &device))
    return device;
  device = tiny_engine_get_device (name, NULL);
  g_hash_table_insert (self->devices, (gpointer) name, device);
  return device;
}

static const TinyTarget *
find_target (const char *name, gpointer questions)
{
  TinyDevice *device = find_device (questions, name);
  return device != NULL ? tiny_device_get_target (device) : NULL;
}

static guint64
find_limit (const char *name, gpointer questions)
{
  TinyDevice *device = find_device (questions, name);
  return device != NULL ? tiny_device_get_info (device)->max_buffer_bytes : 0;
}

static gboolean
claim (const char *name, const TinyOperation *operation, double own_ns, gpointer questions)
{
  TinyDevice *device = find_device (questions, name);
  return device != NULL
         && tiny_claims_decide (device, operation, own_ns, ((Questions *) questions)->verdicts);
}

static void
show_verdicts (const GArray *verdicts)
{
  for (guint i = 0; i < verdicts->len; i++) {
    const TinyVerdict *verdict = &g_array_index (verdicts, TinyVerdict, i);
    g_autofree char *name = tiny_operation_to_name (&verdict->operation);
    g_autofree char *text = tiny_verdict_to_string (verdict);
    g_printerr ("operation %s: %s\n", name, text);
  }
}

/* How many items come before the first that writes to an input: all other memory is new. */
static guint
count_unseen (const TinySchedule *schedule)
{
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    for (guint b = 0; b < item->n_written; b++)
      if (schedule->buffers[item->buffers[b]].kind == TINY_SCHEDULE_INPUT)
        return i;
  }
  return schedule->n_items;
}

static gboolean
find_place (TinyPlan *self, guint i, GError **error)
{
  const TinySchedule *schedule = self->schedule;
  const TinyScheduleBuffer *buffer = &schedule->buffers[i];
  Place *place = &self->places[i];
  place->binding.n_bytes = buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype);
  if (buffer->kind == TINY_SCHEDULE_OUTPUT) {
    place->device = tiny_engine_get_device (buffer->device, error);
    return place->device != NULL;
  }
  if (buffer->kind == TINY_SCHEDULE_TEMPORARY) {
    place->binding.offset = buffer->slot;
    place->binding.is_temporary = TRUE;
    place->arena = buffer->arena;
  }
  return TRUE;
}

/* All that runs have in common. */
static gboolean
find_places (TinyPlan *self, GError **error)
{
  const TinySchedule *schedule = self->schedule;
  g_autoptr (GArray) lent = g_array_new (FALSE, FALSE, sizeof (guint));
  self->places = g_new0 (Place, schedule->n_buffers + 1);
  self->arena_devices = g_new0 (TinyDevice *, schedule->n_arenas + 1);
  for (guint i = 0; i < schedule->n_buffers; i++)
    if (!find_place (self, i, error))
      return FALSE;
  for (guint i = 0; i < schedule->n_arenas; i++) {
    self->arena_devices[i] = tiny_engine_get_device (schedule->arenas[i].device, error);
    if (self->arena_devices[i] == NULL)
      return FALSE;
  }
  for (guint i = 0; i < schedule->n_items; i++)
    g_array_append_vals (lent, schedule->items[i].buffers, schedule->items[i].n_buffers);
  self->lent = (guint *) (gpointer) g_array_free (g_steal_pointer (&lent), FALSE);
  self->n_unseen = count_unseen (schedule);
  return TRUE;
}

static struct {
  TinyPlanWatcher call;
  gpointer data;
} watcher;

void
tiny_plan_set_watcher (TinyPlanWatcher call, gpointer data)
{
  watcher.call = call;
  watcher.data = data;
}

TinyPlan *
tiny_plan_new (TinyGraph *graph, TinyNode *sink, const gboolean *constants, GError **error)
{
  gboolean verify = tiny_verify_is_wanted ();
  if (verify && !tiny_graph_verify (graph, sink, TINY_STAGE_TENSOR, error)) {
    tiny_graph_free (graph);
    return NULL;
  }
  g_autoptr (GHashTable) devices = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GArray) verdicts = TINY_DEBUG (2) || watcher.call != NULL
                                    ? g_array_new (FALSE, FALSE, sizeof (TinyVerdict))
                                    : NULL;
  Questions questions = { devices, verdicts };
  const TinyScheduleOptions options = { .find_target = find_target,
                                        .find_limit = find_limit,
                                        .data = &questions,
                                        .constants = constants,
                                        .claim = claim };
  gint64 start = tiny_debug_now_ns ();
  TinyTiming timing = tiny_timing_begin ("engine", "schedule");
  TinySchedule *schedule = tiny_schedule_new_with (graph, sink, &options, error);
  tiny_timing_end (&timing);
  tiny_runtime_counters ()->ns_schedule += (guint64) (tiny_debug_now_ns () - start);
  if (schedule == NULL)
    return NULL;
  if (!tiny_tuned_is_wanted ()) /* lists are found for kernels of known numbers */
    tiny_schedule_join_series (schedule);
  if (TINY_DEBUG (2))
    show_verdicts (verdicts);
  if (watcher.call != NULL)
    watcher.call (schedule, verdicts, watcher.data);
  if (schedule->explanation != NULL)
    g_printerr ("%s", schedule->explanation);
  g_autoptr (TinyPlan) self = g_new0 (TinyPlan, 1);
  self->schedule = schedule;
  if (verify && !verify_kernels (schedule, error))
    return NULL;
  self->executables = g_new0 (TinyExecutable *, schedule->n_items + 1);
  self->devices = g_new0 (TinyDevice *, schedule->n_items + 1);
  for (guint i = 0; i < schedule->n_items; i++)
    if (self->devices[i] == NULL && !compile_device (self, schedule->items[i].device, error))
      return NULL;
  return find_places (self, error) ? g_steal_pointer (&self) : NULL;
}

void
tiny_plan_free (TinyPlan *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; self->executables != NULL && i < self->schedule->n_items; i++)
    tiny_executable_unref (self->executables[i]);
  g_clear_pointer (&self->schedule, tiny_schedule_free);
  g_free (self->executables);
  g_free (self->devices);
  g_free (self->places);
  g_free (self->arena_devices);
  g_free (self->lent);
  run_free (self->spare);
  g_free (self);
}

const TinySchedule *
tiny_plan_get_schedule (const TinyPlan *self)
{
  return self->schedule;
}

const TinyExecutable *
tiny_plan_get_item (const TinyPlan *self, guint i, TinyDevice **out_device)
{
  *out_device = self->devices[i];
  return self->executables[i];
}

gboolean
tiny_plan_serves (const TinyPlan *self, const gboolean *constants)
{
  return tiny_schedule_serves (self->schedule, constants);
}

guint
tiny_plan_get_n_outputs (const TinyPlan *self)
{
  return self->schedule->n_outputs;
}

TinySpread
tiny_plan_get_spread (const TinyPlan *self, guint i)
{
  const TinySpread *spreads = self->schedule->spreads;
  return spreads != NULL ? spreads[i] : (TinySpread){ .first = i, .n = 1 };
}

/* ---- running ---- */

static void
add_item (TinyPlan *self, guint i, TinyLaunches *launches)
{
  const TinyScheduleItem *item = &self->schedule->items[i];
  TinyBinding *bindings = g_newa (TinyBinding, item->n_buffers + 1);
  for (guint b = 0; b < item->n_buffers; b++)
    bindings[b] = self->places[item->buffers[b]].binding;
  TinyBoundVariable *variables
      = g_newa0 (TinyBoundVariable, item->n_variables + item->n_numbers + 1);
  for (guint v = 0; v < item->n_numbers; v++)
    variables[item->n_variables + v] = tiny_bound_variable_of (item->numbers[v]);
  if (item->kind == TINY_SCHEDULE_COPY)
    tiny_launches_add_copy (launches, &bindings[0], &bindings[1]);
  else
    tiny_launches_add_kernel (launches, self->devices[i], self->executables[i], variables,
                              bindings, item->n_buffers, item->n_written);
  if (item->is_part)
    tiny_launches_mark_part (launches);
}

/* That of the last run, unless another one goes on. */
static Run *
take_run (TinyPlan *self)
{
  Run *run = g_steal_pointer (&self->spare);
  if (run != NULL)
    return run;
  run = g_new0 (Run, 1);
  run->buffers = g_new0 (TinyBuffer *, self->schedule->n_buffers + 1);
  run->arenas = g_new0 (TinyBuffer *, self->schedule->n_arenas + 1);
  run->launches = tiny_launches_new ();
  for (guint i = 0; i < self->schedule->n_items; i++)
    add_item (self, i, run->launches);
  return run;
}

static TinyBuffer *
allocate (TinyDevice *device, gint64 n_bytes, GError **error)
{
  TinyBuffer *buffer = tiny_buffer_new (device, (gsize) n_bytes);
  if (!tiny_buffer_ensure (buffer, error))
    g_clear_pointer (&buffer, tiny_buffer_unref);
  return buffer;
}

static gboolean
find_memory (TinyPlan *self, Run *run, TinyBuffer *const *inputs, GError **error)
{
  const TinySchedule *schedule = self->schedule;
  for (guint i = 0; i < schedule->n_arenas; i++) {
    TinyDevice *device = self->arena_devices[i];
    run->arenas[i] = allocate (device, schedule->arenas[i].n_bytes, error);
    if (run->arenas[i] == NULL)
      return FALSE;
  }
  for (guint i = 0; i < schedule->n_buffers; i++) {
    const TinyScheduleBuffer *buffer = &schedule->buffers[i];
    const Place *place = &self->places[i];
    run->buffers[i] = buffer->kind == TINY_SCHEDULE_INPUT ? inputs[buffer->slot]
                      : buffer->kind == TINY_SCHEDULE_OUTPUT
                          ? allocate (place->device, place->binding.n_bytes, error)
                          : run->arenas[place->arena];
    if (run->buffers[i] == NULL)
      return FALSE;
  }
  return TRUE;
}

/* Keeps @run for the next, without its memory. */
static void
give_back (TinyPlan *self, Run *run)
{
  const TinySchedule *schedule = self->schedule;
  tiny_launches_lend (run->launches, NULL, NULL);
  for (guint i = 0; i < schedule->n_buffers; i++) {
    if (schedule->buffers[i].kind == TINY_SCHEDULE_OUTPUT)
      tiny_buffer_unref (run->buffers[i]);
    run->buffers[i] = NULL;
  }
  for (guint i = 0; i < schedule->n_arenas; i++)
    g_clear_pointer (&run->arenas[i], tiny_buffer_unref);
  if (self->spare == NULL)
    self->spare = g_steal_pointer (&run);
  run_free (run);
}

static void
bind_variables (TinyPlan *self, const TinyBoundVariable *values, TinyLaunches *launches)
{
  for (guint i = 0; i < self->schedule->n_items; i++) {
    const TinyScheduleItem *item = &self->schedule->items[i];
    for (guint v = 0; v < item->n_variables; v++)
      tiny_launches_set_variable (launches, i, v, &values[item->variables[v]]);
  }
}
static gboolean
submit (TinyPlan *self,
        Run *run,
        TinyBuffer *const *inputs,
        const TinyBoundVariable *variables,
        GError **error)
{
  if (!find_memory (self, run, inputs, error))
    return FALSE;
  tiny_launches_lend (run->launches, run->buffers, self->lent);
  bind_variables (self, variables, run->launches);
  return tiny_launches_submit (run->launches, self->n_unseen, error);
}

gboolean
tiny_plan_run (TinyPlan *self,
               TinyBuffer *const *inputs,
               const TinyBoundVariable *variables,
               TinyBuffer **out_outputs,
               GError **error)
{
  Run *run = take_run (self);
  const gboolean good = submit (self, run, inputs, variables, error);
  TinyLaunches *recorder = *tiny_launches_get_recorder ();
  if (good && recorder != NULL)
    tiny_launches_append (recorder, run->launches);
  for (guint i = 0; good && i < self->schedule->n_outputs; i++)
    out_outputs[i] = tiny_buffer_ref (run->buffers[self->schedule->outputs[i]]);
  give_back (self, run);
  return good;
}
