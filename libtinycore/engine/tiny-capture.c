/* SPDX-License-Identifier: MIT
 *
 * tiny-capture.c: records the launches that happen on a thread, and replays them on other inputs. */
#include "engine/tiny-capture.h"

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-recorders.h"

struct TinyCapture {
  TinyLaunches *launches;
  TinyLaunches *frozen; /* to run again only when what they read was changed, or NULL */
  gboolean frozen_ran;
  guint frozen_version; /* of what they read, when they last ran */
  GPtrArray *inputs;    /* TinyBuffer in use for each input; each with a reference */
  GPtrArray *next;      /* TinyBuffer for each input of the coming replay; likewise */
  GPtrArray *copies;    /* TinyBuffer or NULL: of inputs that may not be used themselves */
  GArray *numbers;      /* guint: what the caller calls each of those inputs */
  GArray *variables;    /* TinyBoundVariable: inputs that are variables, as recorded */
  GArray *bound;        /* TinyBoundVariable: the same for the coming replay */
  guint n_inputs;       /* of both kinds */
  GHashTable *written;  /* TinyBuffer: in what is used for the inputs now, or NULL */
  GArray *is_written;   /* gboolean: of each of those inputs, once it is recorded */
  GHashTable *touched;  /* TinyBuffer, which are no inputs → whether they are written */
  guint64 n_waiting;    /* of tiny_runtime_count_waiting(), all of which were computed */
};

static gboolean
is_variable (const TinyNode *input)
{
  return input->op == TINY_OP_VARIABLE;
}

gboolean
tiny_capture_add_input (TinyCapture *self, TinyNode *input, GError **error)
{
  const guint i = self->n_inputs++;
  if (is_variable (input)) {
    TinyBoundVariable variable = tiny_runtime_get_variable (input);
    g_array_append_val (self->variables, variable);
    g_array_set_size (self->bound, self->variables->len);
    return TRUE;
  }
  TinyBuffer *buffer = tiny_runtime_get_buffer (input);
  if (g_ptr_array_find (self->inputs, buffer, NULL)) {
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_INVALID,
        "jit: input %u shares its memory with another input: give it a copy, such as clone()",
        i);
    return FALSE;
  }
  g_ptr_array_add (self->inputs, tiny_buffer_ref (buffer));
  g_array_append_val (self->numbers, i);
  g_ptr_array_set_size (self->next, (gint) self->inputs->len);
  g_ptr_array_set_size (self->copies, (gint) self->inputs->len);
  return TRUE;
}

TinyCapture *
tiny_capture_begin (TinyNode *const *inputs, guint n_inputs, GError **error)
{
  if (*tiny_launches_get_recorder () != NULL) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "jit: a function is being captured on this thread already");
    return NULL;
  }
  TinyCapture *self = g_new0 (TinyCapture, 1);
  self->inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_buffer_unref);
  self->next = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_buffer_unref);
  self->copies = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_buffer_unref);
  self->numbers = g_array_new (FALSE, FALSE, sizeof (guint));
  self->variables = g_array_new (FALSE, FALSE, sizeof (TinyBoundVariable));
  self->bound = g_array_new (FALSE, TRUE, sizeof (TinyBoundVariable));
  self->is_written = g_array_new (FALSE, TRUE, sizeof (gboolean));
  self->touched = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < n_inputs; i++)
    if (!tiny_capture_add_input (self, inputs[i], error)) {
      tiny_capture_free (self);
      return NULL;
    }
  self->launches = tiny_launches_new ();
  tiny_launches_set_inputs (self->launches, self->inputs);
  tiny_recorders_begin (self->launches);
  return self;
}

/* A TinyMemoryFunction: @buffer is one of the inputs, or else what the recording goes on to use. */
static void
note_memory (TinyBuffer *buffer, gboolean is_written, gpointer data)
{
  TinyCapture *self = data;
  guint at;
  tiny_buffer_set_recorded (buffer);
  if (g_ptr_array_find (self->inputs, buffer, &at))
    g_array_index (self->is_written, gboolean, at) |= is_written;
  else if (is_written || !g_hash_table_contains (self->touched, buffer))
    g_hash_table_insert (self->touched, buffer, GINT_TO_POINTER (is_written));
}

gboolean
tiny_capture_writes_input (TinyCapture *self, guint number)
{
  for (guint i = 0; i < self->numbers->len; i++)
    if (g_array_index (self->numbers, guint, i) == number)
      return g_array_index (self->is_written, gboolean, i);
  return FALSE;
}

gboolean
tiny_capture_has_input (TinyCapture *self, TinyBuffer *buffer)
{
  return g_ptr_array_find (self->inputs, buffer, NULL);
}

gboolean
tiny_capture_touches (TinyCapture *self, TinyBuffer *buffer, gboolean *out_writes)
{
  gpointer writes = NULL;
  gboolean touches = g_hash_table_lookup_extended (self->touched, buffer, NULL, &writes);
  *out_writes = GPOINTER_TO_INT (writes);
  return touches;
}

gboolean
tiny_capture_is_own (TinyCapture *self)
{
  return *tiny_launches_get_recorder () == self->launches;
}

/* What was made meanwhile is of inputs that replays exchange: it is no history. */
static void
stop (TinyCapture *self)
{
  const guint64 number = tiny_recorders_end (self->launches);
  if (number != 0)
    tiny_history_forget_of (number);
}

gboolean
tiny_capture_end (TinyCapture *self, GError **error)
{
  stop (self);
  tiny_launches_set_inputs (self->launches, NULL);
  tiny_launches_set_owners (self->launches, NULL);
  if (tiny_launches_was_touched (self->launches)) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "jit: the function reads or writes a tensor on the host, which no "
                         "replay would do again: "
                         "do so outside of it");
    return FALSE;
  }
  TinyBoundVariable other;
  if (!tiny_launches_number_variables (
          self->launches, (const TinyBoundVariable *) (void *) self->variables->data,
          self->variables->len, &other)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: variable %s (%" G_GINT64_FORMAT
                 " here) is used but is no input, so that its value would be "
                 "frozen in the recording: pass it as one",
                 other.name, other.value);
    return FALSE;
  }
  g_array_set_size (self->is_written, self->inputs->len);
  tiny_launches_each_memory (self->launches, note_memory, self);
  self->frozen = tiny_launches_freeze (
      self->launches, (TinyBuffer *const *) self->inputs->pdata, self->inputs->len);
  return TRUE;
}

/* Runs what is frozen where its results are not there or stale. */
static gboolean
thaw (TinyCapture *self, GError **error)
{
  guint version = self->frozen ? tiny_launches_get_source_version (self->frozen) : 0;
  if (self->frozen == NULL || (self->frozen_ran && version == self->frozen_version))
    return TRUE;
  self->frozen_ran
      = tiny_launches_submit (self->frozen, tiny_launches_count_unseen (self->frozen), error);
  self->frozen_version = version;
  return self->frozen_ran;
}

static gboolean
writes_to (const TinyCapture *self, guint i)
{
  return g_array_index (self->is_written, gboolean, i);
}

/* Whether a replay may use @now in the place of input @i: nothing else of it is there, and each input has
 * memory of its own. */
static gboolean
may_use (TinyCapture *self, guint i, TinyBuffer *now)
{
  for (guint j = 0; j < self->next->len; j++) {
    const gboolean is_before
        = writes_to (self, i) == writes_to (self, j) ? j < i : writes_to (self, j);
    if (is_before
        && tiny_buffer_get_handle (self->next->pdata[j]) == tiny_buffer_get_handle (now))
      return FALSE;
  }
  return now == self->inputs->pdata[i]
         || !(g_hash_table_contains (self->touched, now)
              || tiny_launches_write (self->launches, now,
                                      (TinyBuffer *const *) self->inputs->pdata,
                                      self->inputs->len));
}

/* A copy of @now for input @i, in memory that is kept for that. */
static TinyBuffer *
copy_input (TinyCapture *self, guint i, TinyBuffer *now, GError **error)
{
  if (self->copies->pdata[i] == NULL)
    self->copies->pdata[i]
        = tiny_buffer_new (tiny_buffer_get_device (now), tiny_buffer_get_n_bytes (now));
  TinyBuffer *copy = self->copies->pdata[i];
  return tiny_buffer_ensure (copy, error) && tiny_buffer_ensure (now, error)
                 && tiny_launches_copy (self->launches, copy, now, error)
             ? copy
             : NULL;
}

/* Finds the memory for input @i of the coming replay. */
static gboolean
choose_input (TinyCapture *self, guint i, TinyNode *input, GError **error)
{
  TinyBuffer *now = tiny_runtime_get_buffer (input), *before = self->inputs->pdata[i];
  if (tiny_buffer_get_n_bytes (now) != tiny_buffer_get_n_bytes (before)
      || tiny_buffer_get_device (now) != tiny_buffer_get_device (before)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: input %u was captured with %" G_GSIZE_FORMAT
                 " bytes on %s and is now %" G_GSIZE_FORMAT " on %s",
                 g_array_index (self->numbers, guint, i), tiny_buffer_get_n_bytes (before),
                 tiny_buffer_get_device_name (before), tiny_buffer_get_n_bytes (now),
                 tiny_buffer_get_device_name (now));
    return FALSE;
  }
  if (!may_use (self, i, now))
    now = copy_input (self, i, now, error);
  if (now == NULL)
    return FALSE;
  tiny_buffer_unref (self->next->pdata[i]);
  self->next->pdata[i] = tiny_buffer_ref (now);
  return TRUE;
}

/* Puts the memory of @inputs in the place of what was used before. Under the runtime's lock. */
static gboolean
exchange_inputs (TinyCapture *self, TinyNode *const *inputs, GError **error)
{
  gboolean moves = FALSE, is_written = FALSE;
  /* Those that are written first: what others read of them may be a copy. */
  for (guint turn = 0; turn < 2; turn++)
    for (guint i = 0; i < self->inputs->len; i++)
      if (writes_to (self, i) == (turn == 0)
          && !choose_input (self, i, inputs[g_array_index (self->numbers, guint, i)], error))
        return FALSE;
  for (guint i = 0; i < self->inputs->len; i++) {
    gpointer before = self->inputs->pdata[i];
    if (self->next->pdata[i] == before)
      continue;
    moves = TRUE;
    is_written = is_written
                 || (self->written != NULL && g_hash_table_contains (self->written, before));
  }
  if (!moves)
    return TRUE;
  tiny_launches_replace (self->launches, (TinyBuffer *const *) self->inputs->pdata,
                         (TinyBuffer *const *) self->next->pdata, self->inputs->len);
  if (is_written)
    g_clear_pointer (&self->written, g_hash_table_unref);
  GPtrArray *before = self->inputs;
  self->inputs = self->next;
  self->next = before;
  return TRUE;
}

/* Input @i, variable @at of the recording, has another value now. */
static gboolean
choose_value (TinyCapture *self, guint i, guint at, TinyNode *input, GError **error)
{
  const TinyBoundVariable *all = (const TinyBoundVariable *) (void *) self->variables->data;
  TinyBoundVariable now = tiny_runtime_get_variable (input);
  if (!tiny_bound_variable_is_same (&all[at], &now)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: input %u was captured as variable %s of %" G_GINT64_FORMAT
                 " … %" G_GINT64_FORMAT " and is now %s of %" G_GINT64_FORMAT
                 " … %" G_GINT64_FORMAT,
                 i, all[at].name, all[at].min, all[at].max, now.name, now.min, now.max);
    return FALSE;
  }
  g_array_index (self->bound, TinyBoundVariable, at) = now;
  /* What was one variable of one value in the recording has one there for good. */
  for (guint j = 0; j < at; j++)
    if (tiny_bound_variable_is_same (&all[j], &now) && all[j].value == all[at].value
        && g_array_index (self->bound, TinyBoundVariable, j).value != now.value) {
      g_set_error (
          error, TINY_ERROR, TINY_ERROR_INVALID,
          "jit: variable %s was captured with one value for several inputs and has two now",
          now.name);
      return FALSE;
    }
  return TRUE;
}

/* Takes the inputs of a replay, or refuses them all. */
static gboolean
take_inputs (TinyCapture *self, TinyNode *const *inputs, guint n_inputs, GError **error)
{
  if (n_inputs != self->n_inputs) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: captured with %u inputs, called with %u", self->n_inputs, n_inputs);
    return FALSE;
  }
  guint n_buffers = 0, n_variables = 0;
  for (guint i = 0; i < n_inputs; i++) {
    gboolean was_variable = n_buffers == self->numbers->len
                            || g_array_index (self->numbers, guint, n_buffers) != i;
    if (was_variable != is_variable (inputs[i])) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "jit: input %u was captured as a %s and is now a %s", i,
                   was_variable ? "variable" : "tensor", was_variable ? "tensor" : "variable");
      return FALSE;
    }
    if (was_variable && !choose_value (self, i, n_variables++, inputs[i], error))
      return FALSE;
    n_buffers += !was_variable;
  }
  if (!exchange_inputs (self, inputs, error))
    return FALSE;
  tiny_launches_bind (self->launches, (const TinyBoundVariable *) (void *) self->bound->data);
  return TRUE;
}

/* A TinyHistoryPredicate. */
static gboolean
is_rewritten (TinyBuffer *buffer, gconstpointer data)
{
  return tiny_launches_write ((TinyLaunches *) data, buffer, NULL, 0);
}

GHashTable *
tiny_capture_get_written (TinyCapture *self)
{
  if (self->written != NULL)
    return self->written;
  self->written = g_hash_table_new (NULL, NULL);
  self->n_waiting = 0;
  tiny_launches_list_written (self->launches, self->written);
  if (self->frozen != NULL)
    tiny_launches_list_written (self->frozen, self->written);
  return self->written;
}

/* A plain call would assign what waits, and compute what is made of memory that it writes. */
static gboolean
settle (TinyCapture *self, GError **error)
{
  GHashTable *written = tiny_capture_get_written (self);
  if (tiny_runtime_count_waiting () == self->n_waiting)
    return TRUE;
  gboolean good = tiny_runtime_realize_readers (written, TRUE, error);
  self->n_waiting = good ? tiny_runtime_count_waiting () : 0;
  return good;
}

gboolean
tiny_capture_replay (TinyCapture *self, TinyNode *const *inputs, guint n_inputs, GError **error)
{
  TINY_TIMED ("engine", "replay");
  tiny_runtime_lock ();
  gboolean good = take_inputs (self, inputs, n_inputs, error) && settle (self, error);
  if (good)
    tiny_history_expire (is_rewritten, self->launches);
  tiny_runtime_unlock ();
  good = good && thaw (self, error)
         && tiny_launches_submit (self->launches, tiny_launches_count_unseen (self->launches),
                                  error);
  if (!good) /* what is frozen may be what failed */
    self->frozen_ran = FALSE;
  return good;
}

guint
tiny_capture_get_n_kernels (TinyCapture *self)
{
  return tiny_launches_get_n_kernels (self->launches);
}

struct TinyLaunches *
tiny_capture_get_launches (TinyCapture *self)
{
  return self->launches;
}

void
tiny_capture_free (TinyCapture *self)
{
  if (self == NULL)
    return;
  if (self->launches != NULL)
    stop (self);
  g_clear_pointer (&self->launches, tiny_launches_free);
  g_clear_pointer (&self->frozen, tiny_launches_free);
  g_clear_pointer (&self->inputs, g_ptr_array_unref);
  g_clear_pointer (&self->next, g_ptr_array_unref);
  g_clear_pointer (&self->copies, g_ptr_array_unref);
  g_clear_pointer (&self->numbers, g_array_unref);
  g_clear_pointer (&self->variables, g_array_unref);
  g_clear_pointer (&self->bound, g_array_unref);
  g_clear_pointer (&self->written, g_hash_table_unref);
  g_clear_pointer (&self->is_written, g_array_unref);
  g_clear_pointer (&self->touched, g_hash_table_unref);
  g_free (self);
}
