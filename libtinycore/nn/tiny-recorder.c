/* SPDX-License-Identifier: MIT
 *
 * tiny-recorder.c: the recordings of one stretch of a program, and which of them a replay takes.
 *
 * There is one as long as what the program does is the same: inputs of another shape, another set of gradients that are
 * there, another mode, other settings, inputs that are the same tensor twice are each another recording. */
#include "nn/tiny-recorder.h"

#include "base/tiny-guard.h"
#include "engine/tiny-runtime.h"
#include "nn/recording.h"

enum { MOST_RECORDINGS = 8 }; /* the oldest goes first */

struct _TinyRecorder {
  GObject parent_instance;
  GPtrArray *recordings;
  Recording *current; /* that which is being recorded, or NULL */
  guint n_made;       /* recordings, ever */
  guint n_last;       /* kernels of the last that was made or replayed */
};

G_DEFINE_FINAL_TYPE (TinyRecorder, tiny_recorder, G_TYPE_OBJECT)

void
tiny_recorder_cancel (TinyRecorder *self)
{
  g_return_if_fail (TINY_IS_RECORDER (self));
  tiny_runtime_lock ();
  if (self->current != NULL) {
    g_clear_pointer (&self->current, recording_free);
  } else {
    g_ptr_array_set_size (self->recordings, 0);
    self->n_made = self->n_last = 0;
  }
  tiny_runtime_unlock ();
}

static void
tiny_recorder_finalize (GObject *object)
{
  TinyRecorder *self = TINY_RECORDER (object);
  tiny_runtime_lock ();
  g_clear_pointer (&self->current, recording_free);
  g_clear_pointer (&self->recordings, g_ptr_array_unref);
  tiny_runtime_unlock ();
  G_OBJECT_CLASS (tiny_recorder_parent_class)->finalize (object);
}

static void
tiny_recorder_class_init (TinyRecorderClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_recorder_finalize;
}

static void
tiny_recorder_init (TinyRecorder *self)
{
  self->recordings = g_ptr_array_new_with_free_func ((GDestroyNotify) recording_free);
}

TinyRecorder *
tiny_recorder_new (void)
{
  return g_object_new (TINY_TYPE_RECORDER, NULL);
}

/* ---- which recording ---- */
static Recording *const *
get_all (TinyRecorder *self)
{
  return (Recording *const *) self->recordings->pdata;
}

static gboolean
check_inputs (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  return recording_realize_inputs (inputs, n, error)
         && (self->recordings->len == 0 || recording_check_n (get_all (self)[0], n, error));
}

/* The number of the recording that is right for @inputs, or -1 and why the last one that was made is not. */
static gint
find (TinyRecorder *self, TinyTensor *const *inputs, GError **why)
{
  g_autoptr (GError) reason = NULL;
  for (guint i = 0; i < self->recordings->len; i++) {
    const gboolean is_last = i == (self->n_made - 1) % MOST_RECORDINGS;
    if (recording_fits (get_all (self)[i], inputs, get_all (self), self->recordings->len,
                        is_last && why != NULL ? &reason : NULL))
      return (gint) i;
  }
  if (reason != NULL)
    g_propagate_error (why, g_steal_pointer (&reason));
  return -1;
}

static gboolean
refuse (GError **error, const char *why)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "jit: %s", why);
  return FALSE;
}

/* ---- recording ---- */
static gboolean
begin_locked (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (self->current != NULL)
    return refuse (error, "there is a recording already");
  if (self->recordings->len > 0 && !check_inputs (self, inputs, n, error))
    return FALSE;
  if (find (self, inputs, NULL) >= 0)
    return refuse (error, "there is a recording already");
  self->current = recording_begin (inputs, n, error);
  return self->current != NULL;
}

gboolean
tiny_recorder_begin (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n), error, FALSE,
                            "inputs are counted, but none are given");
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  gboolean good = begin_locked (self, inputs, n, error);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_recorder_prepare (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n), error, FALSE,
                            "inputs are counted, but none are given");
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  gboolean good = recording_prepare (inputs, n, error);
  tiny_runtime_unlock ();
  return good;
}

/* Puts @made beside the others, or in the place of the oldest. */
static void
add (TinyRecorder *self, Recording *made)
{
  const guint at = self->n_made++ % MOST_RECORDINGS;
  for (guint i = 0; i < self->recordings->len; i++) {
    recording_compare (get_all (self)[i], made);
    recording_compare (made, get_all (self)[i]);
  }
  if (at == self->recordings->len)
    g_ptr_array_add (self->recordings, NULL);
  g_clear_pointer ((Recording **) &self->recordings->pdata[at], recording_free);
  self->recordings->pdata[at] = made;
  self->n_last = recording_get_n_kernels (made);
}

static gint
finish_locked (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  if (self->current == NULL || !recording_is_own (self->current)) {
    refuse (error, self->current == NULL
                       ? "nothing is being recorded"
                       : "another thread records, which is the one to end it");
    return -1;
  }
  Recording *made = g_steal_pointer (&self->current);
  if (!recording_end (made, outputs, n, error)) {
    recording_free (made);
    return -1;
  }
  add (self, made);
  return (gint) ((self->n_made - 1) % MOST_RECORDINGS);
}

static gint
finish (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  tiny_runtime_lock ();
  gint at = finish_locked (self, outputs, n, error);
  tiny_runtime_unlock ();
  return at;
}

gboolean
tiny_recorder_end (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (outputs, n), error, FALSE,
                            "outputs are counted, but none are given");
  return finish (self, outputs, n, error) >= 0;
}

gint
tiny_recorder_finish (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, -1, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (outputs, n), error, -1,
                            "outputs are counted, but none are given");
  return finish (self, outputs, n, error);
}

/* ---- replaying ---- */
static gint
try_locked (
    TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **why, GError **error)
{
  if (self->recordings->len == 0 || self->current != NULL) {
    refuse (error, "there is no recording");
    return -1;
  }
  gint at = check_inputs (self, inputs, n, error) ? find (self, inputs, why) : -1;
  if (at < 0)
    return -1;
  self->n_last = recording_get_n_kernels (get_all (self)[at]);
  return recording_replay (get_all (self)[at], inputs, error) ? at : -1;
}

static gint
try_replay (
    TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **why, GError **error)
{
  if (!tiny_runtime_lock_or_stop (error))
    return -1;
  gint at = try_locked (self, inputs, n, why, error);
  tiny_runtime_unlock ();
  return at;
}

gint
tiny_recorder_try_replay (TinyRecorder *self,
                          TinyTensor *const *inputs,
                          guint n,
                          GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, -1, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n), error, -1,
                            "inputs are counted, but none are given");
  return try_replay (self, inputs, n, NULL, error);
}

gboolean
tiny_recorder_replay (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n), error, FALSE,
                            "inputs are counted, but none are given");
  return try_replay (self, inputs, n, error, error) >= 0;
}

guint
tiny_recorder_get_n_kernels (TinyRecorder *self)
{
  g_return_val_if_fail (TINY_IS_RECORDER (self), 0);
  tiny_runtime_lock ();
  guint n = self->current != NULL ? 0 : self->n_last;
  tiny_runtime_unlock ();
  return n;
}
