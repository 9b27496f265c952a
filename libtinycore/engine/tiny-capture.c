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

/* Puts the memory of @inputs in the place of what was used before. Under the runtime's lock. */
static gboolean
exchange_inputs (TinyCapture *self, TinyNode *const *inputs, guint n_inputs, GError **error)
{
  if (n_inputs != self->inputs->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: captured with %u inputs, called with %u", self->inputs->len, n_inputs);
    return FALSE;
  }
  for (guint i = 0; i < n_inputs; i++) {
    TinyBuffer *now = tiny_runtime_get_buffer (inputs[i]);
    TinyBuffer *before = self->inputs->pdata[i];
    if (now == before)
      continue;
    if (tiny_buffer_get_n_bytes (now) != tiny_buffer_get_n_bytes (before)
        || tiny_buffer_get_device (now) != tiny_buffer_get_device (before)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "jit: input %u was captured with %" G_GSIZE_FORMAT
                   " bytes on %s and is now %" G_GSIZE_FORMAT " on %s",
                   i, tiny_buffer_get_n_bytes (before), tiny_buffer_get_device_name (before),
                   tiny_buffer_get_n_bytes (now), tiny_buffer_get_device_name (now));
      return FALSE;
    }
    tiny_launches_replace (self->launches, before, now);
    self->inputs->pdata[i] = tiny_buffer_ref (now);
    tiny_buffer_unref (before);
  }
  return TRUE;
}

gboolean
tiny_capture_replay (TinyCapture *self, TinyNode *const *inputs, guint n_inputs, GError **error)
{
  TINY_TIMED ("engine", "replay");
  tiny_runtime_lock ();
  gboolean good = exchange_inputs (self, inputs, n_inputs, error);
  tiny_runtime_unlock ();
  return good && thaw (self, error) && tiny_launches_submit (self->launches, error);
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
  g_free (self);
}
