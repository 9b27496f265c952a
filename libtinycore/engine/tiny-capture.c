/* SPDX-License-Identifier: MIT
 *
 * tiny-capture.c: records the launches that happen on a thread, and replays them on other inputs. */
#include "engine/tiny-capture.h"

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"

struct TinyCapture {
  TinyLaunches *launches;
  TinyLaunches *frozen; /* to run again only when what they read was changed, or NULL */
  gboolean frozen_ran;
  guint frozen_version; /* of what they read, when they last ran */
  GPtrArray *inputs;    /* TinyBuffer in use for each input; each with a reference */
  GPtrArray *next;      /* TinyBuffer for each input of the coming replay; likewise */
  GPtrArray *copies;    /* TinyBuffer or NULL: of inputs that may not be used themselves */
};

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
  g_ptr_array_set_size (self->next, (gint) n_inputs);
  g_ptr_array_set_size (self->copies, (gint) n_inputs);
  for (guint i = 0; i < n_inputs; i++) {
    TinyBuffer *buffer = tiny_runtime_get_buffer (inputs[i]);
    if (g_ptr_array_find (self->inputs, buffer, NULL)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "jit: input %u shares its memory with another input", i);
      tiny_capture_free (self);
      return NULL;
    }
    g_ptr_array_add (self->inputs, tiny_buffer_ref (buffer));
  }
  self->launches = tiny_launches_new ();
  tiny_launches_set_inputs (self->launches, self->inputs);
  *tiny_launches_get_recorder () = self->launches;
  return self;
}

gboolean
tiny_capture_end (TinyCapture *self, GError **error)
{
  g_return_val_if_fail (*tiny_launches_get_recorder () == self->launches, FALSE);
  *tiny_launches_get_recorder () = NULL;
  tiny_launches_set_inputs (self->launches, NULL);
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
  self->frozen_ran = tiny_launches_submit (self->frozen, error);
  self->frozen_version = version;
  return self->frozen_ran;
}

/* Whether a replay may read @now in the place of input @i: it writes elsewhere, and each input has
 * memory of its own. */
static gboolean
may_use (TinyCapture *self, guint i, TinyBuffer *now)
{
  for (guint j = 0; j < i; j++)
    if (tiny_buffer_get_handle (self->next->pdata[j]) == tiny_buffer_get_handle (now))
      return FALSE;
  return now == self->inputs->pdata[i]
         || !tiny_launches_write (self->launches, now,
                                  (TinyBuffer *const *) self->inputs->pdata, self->inputs->len);
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
                 i, tiny_buffer_get_n_bytes (before), tiny_buffer_get_device_name (before),
                 tiny_buffer_get_n_bytes (now), tiny_buffer_get_device_name (now));
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
exchange_inputs (TinyCapture *self, TinyNode *const *inputs, guint n_inputs, GError **error)
{
  if (n_inputs != self->inputs->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: captured with %u inputs, called with %u", self->inputs->len, n_inputs);
    return FALSE;
  }
  gboolean moves = FALSE;
  for (guint i = 0; i < n_inputs; i++) {
    if (!choose_input (self, i, inputs[i], error))
      return FALSE;
    moves = moves || self->next->pdata[i] != self->inputs->pdata[i];
  }
  if (!moves)
    return TRUE;
  tiny_launches_replace (self->launches, (TinyBuffer *const *) self->inputs->pdata,
                         (TinyBuffer *const *) self->next->pdata, n_inputs);
  GPtrArray *before = self->inputs;
  self->inputs = self->next;
  self->next = before;
  return TRUE;
}

gboolean
tiny_capture_replay (TinyCapture *self, TinyNode *const *inputs, guint n_inputs, GError **error)
{
  TINY_TIMED ("engine", "replay");
  tiny_runtime_lock ();
  gboolean good = exchange_inputs (self, inputs, n_inputs, error);
  tiny_runtime_unlock ();
  good = good && thaw (self, error) && tiny_launches_submit (self->launches, error);
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
  if (self->launches != NULL && *tiny_launches_get_recorder () == self->launches)
    *tiny_launches_get_recorder () = NULL;
  g_clear_pointer (&self->launches, tiny_launches_free);
  g_clear_pointer (&self->frozen, tiny_launches_free);
  g_clear_pointer (&self->inputs, g_ptr_array_unref);
  g_clear_pointer (&self->next, g_ptr_array_unref);
  g_clear_pointer (&self->copies, g_ptr_array_unref);
  g_free (self);
}
