/* SPDX-License-Identifier: MIT
 *
 * random-capture.c: random numbers of a captured function, which replays draw anew.
 *
 * While a function is captured, the seed and the number of draws before it are read from memory: three
 * words on each device that draws. The capture ends with a launch that counts its own draws there, and
 * a replay that follows another writes nothing. Where the program drew or seeded meanwhile, the words
 * are written before the replay. So a replay draws what a plain call would draw in its place. */
#include "engine/tiny-recorders.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

typedef struct {
  const char *device;       /* interned, or NULL */
  TinyTensor *tensor;       /* seed low, seed high, draws: (3,) of u32 */
  TinyRandomState expected; /* what is there once all is done that was asked for */
  gboolean is_known;        /* that it is */
} Words;

struct TinyRandomCapture {
  TinyRandomState start, end; /* of the recording */
  gboolean is_seeded;         /* by the function itself: each replay draws the same then */
  GArray *words;              /* Words */
};

/* Of this thread's recording, or NULL. Under the runtime's lock. */
static TinyRandomCapture *
get_current (void)
{
  return tiny_recorders_get_part (TINY_RECORDED_RANDOM);
}

static void
words_clear (gpointer data)
{
  g_clear_object (&((Words *) data)->tensor);
}

TinyRandomCapture *
tiny_random_capture_begin (void)
{
  TinyRandomCapture *self = g_new0 (TinyRandomCapture, 1);
  self->start = tiny_random_get_state ();
  self->words = g_array_new (FALSE, TRUE, sizeof (Words));
  g_array_set_clear_func (self->words, words_clear);
  tiny_recorders_set_part (TINY_RECORDED_RANDOM, self);
  return self;
}

void
tiny_random_capture_free (TinyRandomCapture *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->words);
  g_free (self);
}

void
tiny_random_capture_note_seed (void)
{
  TinyRandomCapture *current = get_current ();
  if (current != NULL)
    current->is_seeded = TRUE;
}

gboolean
tiny_random_capture_is_on (void)
{
  const TinyRandomCapture *current = get_current ();
  return current != NULL && !current->is_seeded;
}

static void
to_words (TinyRandomState state, guint32 out[3])
{
  out[0] = (guint32) state.seed;
  out[1] = (guint32) (state.seed >> 32);
  out[2] = state.n_draws;
}

static TinyTensor *
words_for (TinyRandomCapture *self, const char *device)
{
  guint32 values[3];
  for (guint i = 0; i < self->words->len; i++)
    if (g_array_index (self->words, Words, i).device == device)
      return g_array_index (self->words, Words, i).tensor;
  to_words (self->start, values);
  Words words = { .device = device };
  words.tensor = g_object_ref_sink (tiny_tensor_new_from_data (
      device, TINY_DTYPE_U32, (gint64[]){ 3 }, 1, values, sizeof values));
  g_array_append_val (self->words, words);
  return words.tensor;
}

gboolean
tiny_random_capture_get_words (TinyBuild *build, TinyNode *out[3], guint32 *out_n_before)
{
  if (!tiny_random_capture_is_on ())
    return FALSE;
  TinyRandomCapture *current = get_current ();
  TinyTensor *tensor = words_for (current, build->device);
  if (tiny_tensor_get_error (tensor) != NULL) {
    tiny_build_fail (build, "%s", tiny_tensor_get_error (tensor)->message);
    return FALSE;
  }
  for (gint64 i = 0; i < 3; i++)
    out[i] = tiny_node_shrink (build->graph, tiny_tensor_get_node (tensor),
                               (gint64[]){ i, i + 1 }, 1);
  *out_n_before = current->start.n_draws;
  return TRUE;
}

/* Counts the draws on the device: recorded, so that replays do. */
static gboolean
advance (Words *words, guint32 n, GError **error)
{
  const guint32 step[3] = { 0, 0, n };
  TinyTensor *by = tiny_tensor_new_from_data (words->device, TINY_DTYPE_U32, (gint64[]){ 3 }, 1,
                                              step, sizeof step);
  return tiny_tensor_assign (words->tensor, tiny_tensor_add (words->tensor, by), error)
         && tiny_tensor_realize (words->tensor, error);
}

gboolean
tiny_random_capture_end (TinyRandomCapture *self, GError **error)
{
  gboolean good = TRUE;
  tiny_recorders_set_part (TINY_RECORDED_RANDOM, NULL);
  self->end = tiny_random_get_state ();
  for (guint i = 0; i < self->words->len && good; i++) {
    Words *words = &g_array_index (self->words, Words, i);
    guint32 n = self->end.n_draws - self->start.n_draws;
    words->expected = (TinyRandomState){ self->start.seed, self->start.n_draws + n };
    words->is_known = good = advance (words, n, error);
  }
  return good;
}

gboolean
tiny_random_capture_before_replay (TinyRandomCapture *self, GError **error)
{
  TinyRandomState now = tiny_random_get_state ();
  guint32 n = self->end.n_draws - self->start.n_draws, values[3];
  to_words (now, values);
  for (guint i = 0; i < self->words->len; i++) {
    Words *words = &g_array_index (self->words, Words, i);
    gboolean is_there = words->is_known && words->expected.seed == now.seed
                        && words->expected.n_draws == now.n_draws;
    if (!is_there && !tiny_tensor_write_data (words->tensor, values, sizeof values, error))
      return FALSE;
    words->expected = (TinyRandomState){ now.seed, now.n_draws + n };
    words->is_known = TRUE;
  }
  if (self->is_seeded)
    now = self->end;
  else
    now.n_draws += n;
  tiny_random_set_state (now);
  return TRUE;
}

void
tiny_random_capture_note_failure (TinyRandomCapture *self)
{
  for (guint i = 0; i < self->words->len; i++)
    g_array_index (self->words, Words, i).is_known = FALSE;
}
