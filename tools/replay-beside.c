/* SPDX-License-Identifier: MIT
 *
 * replay-beside.c: two devices play, and what each kernel writes is compared.
 *
 * The one beside plays first and keeps what its kernels wrote. The other one's are compared with that and then given
 * the same values, so that every kernel is judged by itself, on the same inputs, and rounding does not add up.
 * Buffers begin as zeros: what a kernel leaves alone is the same on both. */
#include <string.h>

#include "tools/replay-private.h"

/* Moves a whole span between the device and @host, which has room for what the device moves at once. */
static gboolean
move (const Player *player, TinyCommandType type, TinySpan span, guint8 *host, GError **error)
{
  TinyCommand command = { .struct_size = sizeof command, .type = type, .host = host };
  span.n_bytes = replay_round_up (player, span.n_bytes);
  if (type == TINY_COMMAND_UPLOAD)
    command.dst = span;
  else
    command.src = span;
  return tiny_device_submit (player->device, &command, 1, NULL, error);
}

gboolean
replay_clear_buffer (const Step *step, const Player *player, TinySpan span)
{
  const gsize n_bytes = replay_round_up (player, span.n_bytes);
  g_autofree guint8 *zeros = g_try_malloc0 (n_bytes + 1);
  if (zeros == NULL)
    return replay_fail (step, "there is no memory for what it moves");
  return n_bytes == 0 || move (player, TINY_COMMAND_UPLOAD, span, zeros, step->error);
}

/* What the device beside wrote there against @found; gives the device the former. */
static gboolean
compare (const Step *step, const Player *player, guint32 dtype, TinySpan span, guint8 *found)
{
  const double given = step->self->options->tolerance;
  GBytes *kept = g_queue_pop_head (step->self->options->written);
  if (kept == NULL || g_bytes_get_size (kept) != span.n_bytes) {
    g_clear_pointer (&kept, g_bytes_unref);
    return replay_fail (step, "the device beside did not come as far");
  }
  gsize size;
  const guint8 *expected = g_bytes_get_data (kept, &size);
  gboolean same = replay_compare (dtype, given >= 0 ? given : replay_get_tolerance (dtype),
                                  expected, found, size, step->difference);
  step->self->n_compared++;
  if (same && size > 0) {
    memcpy (found, expected, size);
    same = move (player, TINY_COMMAND_UPLOAD, span, found, step->error);
  }
  g_bytes_unref (kept);
  return same;
}

static gboolean
note_span (const Step *step, const Player *player, guint32 dtype, TinySpan span)
{
  g_autofree guint8 *bytes = g_try_malloc0 (replay_round_up (player, span.n_bytes) + 1);
  if (bytes == NULL)
    return replay_fail (step, "there is no memory for what it moves");
  if (span.n_bytes > 0 && !move (player, TINY_COMMAND_DOWNLOAD, span, bytes, step->error))
    return FALSE;
  if (step->self->options->is_judged)
    return compare (step, player, dtype, span, bytes);
  g_queue_push_tail (step->self->options->written, g_bytes_new (bytes, span.n_bytes));
  return TRUE;
}

gboolean
replay_note_written (const Step *step,
                     const Player *player,
                     guint index,
                     const TinyRecordCommand *from,
                     const TinyCommand *command)
{
  const Program *program = replay_look_up (step->self->programs, from->program);
  ReplayDifference *difference = step->difference;
  for (guint i = 0; program->code != NULL && i < from->n_buffers; i++) {
    const guint32 dtype = program->code->dtypes[i];
    if (dtype == TINY_DTYPE_VOID || note_span (step, player, dtype, command->buffers[i]))
      continue;
    if (difference->expected == NULL)
      return FALSE;
    difference->function = "dispatch";
    difference->call = step->frame->call;
    difference->command = index;
    difference->kernel = g_strdup (program->name);
    difference->buffer = from->buffers[i].buffer;
    return FALSE;
  }
  return TRUE;
}
