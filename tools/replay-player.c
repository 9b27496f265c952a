/* SPDX-License-Identifier: MIT
 *
 * replay-player.c: makes the calls of a record again, one after the other, and compares what comes back.
 *
 * A call is made where it stands in the record, so one that used what another gave comes after it. Of an
 * asynchronous device's work is waited for where the program learned that it was done. */
#include <string.h>

#include "base/tiny-error.h"
#include "plugin/tiny-registry.h"
#include "tools/replay-private.h"

/* ---- things ---- */
static void
free_maker (gpointer data)
{
  Maker *maker = data;
  g_free (maker->name);
  g_free (maker->version);
  g_free (maker);
}

static void
free_player (gpointer data)
{
  Player *player = data;
  g_clear_object (&player->device);
  g_free (player->id);
  g_free (player);
}

static void
free_buffer (gpointer data)
{
  Buffer *buffer = data;
  TinyDevice *device = buffer->player->device;
  device->table.free (device->handle, buffer->handle);
  g_free (buffer->writer);
  g_free (buffer);
}

static void
free_program (gpointer data)
{
  Program *program = data;
  TinyDevice *device = program->player->device;
  device->table.program_unload (device->handle, program->handle);
  g_free (program->name);
  g_free (program);
}

static void
free_queue (gpointer data)
{
  Queue *queue = data;
  TinyDevice *device = queue->player->device;
  if (device->table.queue_destroy != NULL)
    device->table.queue_destroy (device->handle, queue->handle);
  g_array_unref (queue->points);
  g_free (queue);
}

static GHashTable *
new_table (GDestroyNotify free_value)
{
  return g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, free_value);
}

void
replay_keep (GHashTable *table, guint64 number, gpointer thing)
{
  g_hash_table_replace (table, g_memdup2 (&number, sizeof number), thing);
}

gpointer
replay_look_up (GHashTable *table, guint64 number)
{
  return g_hash_table_lookup (table, &number);
}

ReplayPlayer *
replay_player_new (const ReplayOptions *options)
{
  ReplayPlayer *self = g_new0 (ReplayPlayer, 1);
  self->options = options;
  self->makers = new_table (free_maker);
  self->players = new_table (free_player);
  self->buffers = new_table (free_buffer);
  self->programs = new_table (free_program);
  self->queues = new_table (free_queue);
  self->submitted = new_table (replay_free_submitted);
  self->codes = new_table ((GDestroyNotify) replay_code_free);
  return self;
}

void
replay_player_free (ReplayPlayer *self)
{
  if (self == NULL)
    return;
  replay_wait_for_all (self);
  GHashTable *tables[] = { self->submitted, self->queues,  self->programs, self->buffers,
                           self->codes,     self->players, self->makers };
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    g_hash_table_unref (tables[i]);
  g_free (self);
}

guint
replay_player_get_n_calls (const ReplayPlayer *self)
{
  return self->n_calls;
}

guint
replay_player_get_n_compared (const ReplayPlayer *self)
{
  return self->n_compared;
}

const char *
replay_player_get_device_name (const ReplayPlayer *self)
{
  GHashTableIter iter;
  gpointer player;
  g_hash_table_iter_init (&iter, self->players);
  return g_hash_table_iter_next (&iter, NULL, &player)
             ? tiny_device_get_name (((Player *) player)->device)
             : NULL;
}

/* ---- outcomes ---- */
gboolean
replay_fail (const Step *step, const char *what)
{
  g_set_error (step->error, TINY_ERROR, TINY_ERROR_FORMAT,
               "call %" G_GUINT64_FORMAT " (%s, byte %" G_GUINT64_FORMAT " of the record): %s",
               step->frame->call, tiny_record_get_row (step->frame->kind)->name,
               step->frame->offset, what);
  return FALSE;
}

/* What a call answered against what it did: TRUE if it is the same. What the program ended in has no answer. */
gboolean
replay_compare_status (const Step *step, TinyStatus status, const TinyPluginError *error)
{
  TinyRecordFrame result;
  ReplayDifference *difference = step->difference;
  step->self->n_calls++;
  if (!tiny_record_get_result (step->self->options->record, step->frame->call, &result))
    return TRUE;
  const TinyStatus expected = (TinyStatus) (gint64) result.fields[0].number;
  if (expected < 0 && expected == status)
    step->self->n_compared++;
  if (expected == status || (expected >= 0 && status >= 0))
    return TRUE;
  const gboolean has_text = error != NULL && status < 0 && error->text[0] != 0;
  difference->call = step->frame->call;
  difference->function = tiny_record_get_row (step->frame->kind)->name;
  const char *text = result.fields[1].bytes;
  difference->expected = g_strdup_printf ("%s%s%s", replay_status_to_string (expected),
                                          text[0] ? ": " : "", text);
  difference->found = g_strdup_printf ("%s%s%s", replay_status_to_string (status),
                                       has_text ? ": " : "", has_text ? error->text : "");
  return FALSE;
}

/* ---- devices ---- */

/* The first frame of that kind behind the step's whose first field is @first, or anything for 0. */
static gboolean
find_after (const Step *step, TinyRecordKind kind, guint64 first, TinyRecordFrame *out)
{
  const TinyRecord *record = step->self->options->record;
  const guint n = tiny_record_get_n_frames (record);
  for (guint i = 0; i < n; i++) {
    tiny_record_get_frame (record, i, out);
    if (out->kind == kind && out->offset > step->frame->offset
        && (first == 0 || out->fields[0].number == first))
      return TRUE;
  }
  return FALSE;
}

/* The same unit as before, else the next one of its backend: another machine may have other ids. */
static guint
choose_index (const Step *step, const Maker *maker, const char *id)
{
  GHashTableIter iter;
  gpointer data;
  guint next = 0;
  g_hash_table_iter_init (&iter, step->self->players);
  while (g_hash_table_iter_next (&iter, NULL, &data)) {
    const Player *player = data;
    const Maker *other = replay_look_up (step->self->makers, player->maker);
    if (!g_str_equal (other->name, maker->name))
      continue;
    if (g_str_equal (player->id, id))
      return player->index;
    next = MAX (next, player->index + 1);
  }
  return next;
}

/* "CUDA:1:PTX", as the program had it. */
static char *
name_device (const Step *step, const Maker *maker, guint index)
{
  TinyRecordFrame target;
  const char *renderer = "", *arch = "";
  if (find_after (step, TINY_RECORD_TARGET, 0, &target)) {
    const Maker *code = replay_look_up (step->self->makers, target.fields[0].number);
    renderer = code == NULL || g_str_equal (code->name, maker->name) ? target.fields[1].bytes
                                                                     : code->name;
    arch = target.fields[2].bytes;
  }
  return g_strdup_printf ("%s:%u%s%s%s%s", maker->name, index, renderer[0] ? ":" : "", renderer,
                          arch[0] ? ":" : "", arch);
}

static TinyDevice *
open_device (const Step *step, const Maker *maker, guint index, GError **error)
{
  const char *given = step->self->options->device;
  g_autofree char *name = given != NULL ? NULL : name_device (step, maker, index);
  return tiny_registry_open (tiny_registry_get_default (), given != NULL ? given : name, error);
}

/* The architecture that the record's programs on this device are for, "" where there are none. */
static const char *
find_arch (const Step *step)
{
  TinyRecordFrame load;
  return find_after (step, TINY_RECORD_PROGRAM_LOAD, step->frame->call, &load)
             ? load.fields[2].bytes
             : "";
}

static gboolean
step_open (const Step *step)
{
  ReplayPlayer *self = step->self;
  const Maker *maker = replay_look_up (self->makers, step->frame->fields[0].number);
  TinyRecordFrame result;
  g_autoptr (GError) why = NULL;
  if (maker == NULL)
    return replay_fail (step, "there is no such backend");
  if (tiny_record_get_result (self->options->record, step->frame->call, &result)
      && (gint64) result.fields[0].number < 0)
    return TRUE; /* what comes later has no device */
  const char *id = step->frame->fields[1].bytes;
  const guint index = choose_index (step, maker, id);
  TinyDevice *device = open_device (step, maker, index, &why);
  if (device == NULL) {
    g_propagate_error (step->error, g_steal_pointer (&why));
    return FALSE;
  }
  Player *player = g_new0 (Player, 1);
  const char *name = tiny_backend_get_name (tiny_device_get_backend (device)),
             *arch = find_arch (step);
  player->device = device;
  player->maker = step->frame->fields[0].number;
  player->id = g_strdup (id);
  player->index = index;
  player->is_foreign = !g_str_equal (name, maker->name)
                       || (arch[0] != 0 && !g_str_equal (arch, tiny_device_get_arch (device)));
  replay_keep (self->players, step->frame->call, player);
  self->n_calls++;
  return TRUE;
}

static gboolean
step_backend (const Step *step)
{
  Maker *maker = g_new0 (Maker, 1);
  maker->name = g_strdup (step->frame->fields[0].bytes);
  maker->version = g_strdup (step->frame->fields[2].bytes);
  replay_keep (step->self->makers, step->frame->call, maker);
  return TRUE;
}

Player *
replay_find_player (const Step *step)
{
  Player *player = replay_look_up (step->self->players, step->frame->fields[0].number);
  if (player == NULL)
    replay_fail (step, "there is no such device");
  return player;
}

/* ---- memory ---- */
gsize
replay_round_up (const Player *player, gsize n_bytes)
{
  const gsize unit = MAX (player->device->info.transfer_bytes, 1);
  return (n_bytes + unit - 1) & ~(unit - 1);
}

static gboolean
step_alloc (const Step *step)
{
  Player *player = replay_find_player (step);
  const guint64 n_bytes = step->frame->fields[1].number;
  TinyPluginError error;
  TinyPluginBuffer *handle = NULL;
  if (player == NULL)
    return FALSE;
  TinyDevice *device = player->device;
  tiny_plugin_error_init (&error);
  const guint64 most = device->info.max_buffer_bytes;
  const gboolean is_large = n_bytes > G_MAXINT64 || (most != 0 && n_bytes > most);
  TinyStatus status
      = is_large ? TINY_STATUS_OUT_OF_MEMORY
                 : device->table.alloc (device->handle, replay_round_up (player, n_bytes),
                                        &handle, &error);
  if (status >= 0 && handle == NULL)
    status = TINY_STATUS_INTERNAL; /* as the core has it */
  if (status >= 0) {
    Buffer *buffer = g_new0 (Buffer, 1);
    buffer->player = player;
    buffer->handle = handle;
    buffer->n_bytes = n_bytes;
    replay_keep (step->self->buffers, step->frame->call, buffer);
    if (step->self->options->written != NULL
        && !replay_clear_buffer (step, player, (TinySpan){ handle, 0, n_bytes }))
      return FALSE;
  }
  return replay_compare_status (step, status, &error);
}

/* ---- programs ---- */

/* A device of the backend that compiled it, else any. */
static Player *
find_compiler (const Step *step)
{
  GHashTableIter iter;
  gpointer player, any = NULL;
  g_hash_table_iter_init (&iter, step->self->players);
  while (g_hash_table_iter_next (&iter, NULL, &player)) {
    any = player;
    if (((Player *) player)->maker == step->frame->fields[0].number)
      return player;
  }
  return any;
}

static gboolean
step_compile (const Step *step)
{
  ReplayPlayer *self = step->self;
  Player *player = find_compiler (step);
  TinyStatus status;
  TinyPluginError plugin_error;
  TinyRecordFrame result;
  if (player == NULL)
    return replay_fail (step, "no device is open that would compile it");
  if (player->is_foreign && step->frame->fields[8].number == 0)
    return TRUE; /* it matters only if it is loaded: a search compiles much that is not */
  tiny_plugin_error_init (&plugin_error);
  GError *error = NULL;
  ReplayCode *code = replay_code_make (self->options, player->device, player->is_foreign,
                                       step->frame, &status, &plugin_error, &error);
  const gboolean has_result
      = tiny_record_get_result (self->options->record, step->frame->call, &result);
  if (error != NULL && has_result && (gint64) result.fields[0].number < 0) {
    g_error_free (error); /* it did not compile there, either */
    return TRUE;
  }
  if (error != NULL) {
    g_propagate_error (step->error, error);
    return FALSE;
  }
  if (code != NULL && has_result && (gint64) result.fields[0].number >= 0
      && replay_look_up (self->codes, result.fields[4].number) == NULL)
    replay_keep (self->codes, result.fields[4].number, code);
  else
    replay_code_free (code);
  return replay_compare_status (step, status, &plugin_error);
}

/* The arguments as recorded, with *@out_data, or of the code that was made here. */
static gboolean
fill_args (const Step *step,
           const Player *player,
           const ReplayCode *code,
           TinyProgramArgs *out,
           GBytes **out_data)
{
  const TinyRecordField *fields = step->frame->fields;
  gsize size = 0;
  *out = (TinyProgramArgs){ .struct_size = sizeof *out,
                            .name = fields[1].bytes,
                            .arch = fields[2].bytes,
                            .n_params = (guint32) fields[4].number,
                            .n_variables = (guint32) fields[5].number };
  for (guint i = 0; i < 3; i++)
    out->group[i] = (guint32) fields[6 + i].number;
  if (step->self->options->binaries && !player->is_foreign)
    code = NULL;
  if (code == NULL && player->is_foreign)
    return replay_fail (
        step,
        "the record has no IR of this program, of which one for this device could be made: it "
        "is an operation that was claimed, or a trial of a search");
  if (code == NULL) {
    if (!tiny_record_get_data (step->self->options->record, fields[3].number, out_data,
                               step->error))
      return FALSE;
    out->data = *out_data != NULL ? g_bytes_get_data (*out_data, &size) : NULL;
    out->size = size;
    return TRUE;
  }
  out->name = code->name;
  out->arch = code->arch;
  out->data = g_bytes_get_data (code->binary, &size);
  out->size = size;
  memcpy (out->group, code->group, sizeof out->group);
  return code->n_params == out->n_params
         || replay_fail (step, "its kernel has other parameters");
}

static gboolean
step_load (const Step *step)
{
  Player *player = replay_find_player (step);
  TinyProgramArgs args;
  TinyPluginError error;
  TinyPluginProgram *handle = NULL;
  g_autoptr (GBytes) data = NULL;
  if (player == NULL)
    return FALSE;
  const ReplayCode *code = replay_look_up (step->self->codes, step->frame->fields[3].number);
  if (!fill_args (step, player, code, &args, &data))
    return FALSE;
  tiny_plugin_error_init (&error);
  TinyStatus status
      = player->device->table.program_load (player->device->handle, &args, &handle, &error);
  if (status >= 0) {
    Program *program = g_new0 (Program, 1);
    program->player = player;
    program->handle = handle;
    program->code = code;
    program->name = g_strdup (step->frame->fields[1].bytes);
    program->n_params = args.n_params;
    program->n_variables = args.n_variables;
    replay_keep (step->self->programs, step->frame->call, program);
  }
  return replay_compare_status (step, status, &error);
}

/* ---- all of them ---- */
static gboolean
step_reached (const Step *step)
{
  TinyRecordFrame result;
  return !tiny_record_get_result (step->self->options->record, step->frame->call, &result)
         || replay_step_wait (step, result.fields[3].number);
}

static gboolean
drop (GHashTable *table, const Step *step)
{
  replay_wait_for_all (step->self);
  if (!g_hash_table_remove (table, &step->frame->fields[1].number))
    return replay_fail (step, "there is no such thing");
  step->self->n_calls++;
  return TRUE;
}

static gboolean
make_step (const Step *step)
{
  switch (step->frame->kind) {
  case TINY_RECORD_BACKEND:
    return step_backend (step);
  case TINY_RECORD_OPEN:
    return step_open (step);
  case TINY_RECORD_COMPILE:
    return step_compile (step);
  case TINY_RECORD_ALLOC:
    return step_alloc (step);
  case TINY_RECORD_FREE:
    return drop (step->self->buffers, step);
  case TINY_RECORD_QUEUE_CREATE:
    return replay_step_queue (step);
  case TINY_RECORD_QUEUE_DESTROY:
    return drop (step->self->queues, step);
  case TINY_RECORD_PROGRAM_LOAD:
    return step_load (step);
  case TINY_RECORD_PROGRAM_UNLOAD:
    return drop (step->self->programs, step);
  case TINY_RECORD_SUBMIT:
    return replay_step_submit (step);
  case TINY_RECORD_WAIT:
    return replay_step_wait (step, step->frame->fields[2].number);
  case TINY_RECORD_REACHED:
    return step_reached (step);
  case TINY_RECORD_DOWNLOADED:
    return replay_step_downloaded (step);
  default:
    return TRUE; /* what opening and closing does by itself */
  }
}

gboolean
replay_player_step (ReplayPlayer *self,
                    const TinyRecordFrame *frame,
                    ReplayDifference *difference,
                    GError **error)
{
  GError *why = NULL;
  const Step step = { self, frame, difference, &why };
  if (!make_step (&step) && difference->function == NULL && why == NULL)
    g_set_error (&why, TINY_ERROR, TINY_ERROR_FORMAT, "a call cannot be played");
  if (why == NULL)
    return TRUE;
  g_propagate_error (error, why);
  return FALSE;
}
