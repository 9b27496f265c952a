/* SPDX-License-Identifier: MIT
 *
 * record-commands.c: what is nested in a record's frames, as words: commands of submissions, linear programs. */
#include <string.h>

#include "plugin/record-private.h"

/* Arrays of linear programs lie in a record as they lie in memory. */
G_STATIC_ASSERT (G_BYTE_ORDER == G_LITTLE_ENDIAN);
G_STATIC_ASSERT (sizeof (TinyInstr) == 24 && sizeof (TinyParam) == 16);
G_STATIC_ASSERT (sizeof (TinyRecordSpan) == 24);

void
record_put_number (TinyVector *out, guint64 number)
{
  const guint64 word = GUINT64_TO_LE (number);
  tiny_vector_append (out, &word, sizeof word);
}

/* ---- commands ---- */

/* A command is these words, then the spans of its buffers, three words each, and its variables. */
enum {
  COMMAND_TYPE,
  COMMAND_FLAGS,
  COMMAND_DST,
  COMMAND_SRC = COMMAND_DST + 3,
  COMMAND_DATA = COMMAND_SRC + 3,
  COMMAND_PROGRAM,
  COMMAND_GRID,
  COMMAND_N_BUFFERS = COMMAND_GRID + 3,
  COMMAND_N_VARIABLES,
  COMMAND_WORDS,
};

void
record_put_command (TinyVector *out, const TinyRecordCommand *command)
{
  const guint64 words[COMMAND_WORDS] = {
    command->type,        command->flags,      command->dst.buffer,  command->dst.offset,
    command->dst.n_bytes, command->src.buffer, command->src.offset,  command->src.n_bytes,
    command->data,        command->program,    command->grid[0],     command->grid[1],
    command->grid[2],     command->n_buffers,  command->n_variables,
  };
  tiny_vector_append (out, words, sizeof words);
  if (command->n_buffers > 0)
    tiny_vector_append (out, command->buffers, command->n_buffers * sizeof *command->buffers);
  if (command->n_variables > 0)
    tiny_vector_append (out, command->variables,
                        command->n_variables * sizeof *command->variables);
}

static TinyRecordSpan
read_span (const guint64 *words)
{
  return (TinyRecordSpan){ words[0], words[1], words[2] };
}

/* How many words a command takes that begins with these; 0: it is none, or has more than @n_words. */
static gsize
measure (const guint64 *words, gsize n_words)
{
  if (n_words < COMMAND_WORDS || words[COMMAND_TYPE] < TINY_COMMAND_UPLOAD
      || words[COMMAND_TYPE] > TINY_COMMAND_DISPATCH || words[COMMAND_FLAGS] > G_MAXUINT32)
    return 0;
  for (guint i = 0; i < 3; i++)
    if (words[COMMAND_GRID + i] > G_MAXUINT32)
      return 0;
  const gsize room = n_words - COMMAND_WORDS;
  const guint64 n_buffers = words[COMMAND_N_BUFFERS], n_variables = words[COMMAND_N_VARIABLES];
  if (n_buffers > room / 3 || n_variables > room - 3 * n_buffers)
    return 0;
  return COMMAND_WORDS + 3 * n_buffers + n_variables;
}

gboolean
tiny_record_next_command (TinyRecordField *field, TinyRecordCommand *out)
{
  const guint64 *words = field->bytes;
  const gsize n = measure (words, field->n_bytes / sizeof *words);
  if (n == 0)
    return FALSE;
  *out = (TinyRecordCommand){
    .type = (TinyCommandType) words[COMMAND_TYPE],
    .flags = (guint32) words[COMMAND_FLAGS],
    .dst = read_span (words + COMMAND_DST),
    .src = read_span (words + COMMAND_SRC),
    .data = words[COMMAND_DATA],
    .program = words[COMMAND_PROGRAM],
    .grid = { (guint32) words[COMMAND_GRID], (guint32) words[COMMAND_GRID + 1],
              (guint32) words[COMMAND_GRID + 2] },
    .n_buffers = (guint32) words[COMMAND_N_BUFFERS],
    .n_variables = (guint32) words[COMMAND_N_VARIABLES],
    .buffers = (const TinyRecordSpan *) (words + COMMAND_WORDS),
    .variables = (const gint64 *) (words + COMMAND_WORDS + 3 * words[COMMAND_N_BUFFERS]),
  };
  field->bytes = words + n;
  field->n_bytes -= n * sizeof *words;
  return TRUE;
}

gboolean
record_check_commands (const void *bytes, gsize n_bytes)
{
  TinyRecordField field = { .bytes = bytes, .n_bytes = n_bytes };
  TinyRecordCommand command;
  while (tiny_record_next_command (&field, &command))
    ;
  return field.n_bytes == 0;
}

/* ---- linear programs ---- */

/* These words, then instructions, sources (to a whole word), parameters and the name with its NUL. */
enum {
  LINEAR_N_INSTRS,
  LINEAR_N_SOURCES,
  LINEAR_N_PARAMS,
  LINEAR_N_VARIABLES,
  LINEAR_GRID,
  LINEAR_GROUP = LINEAR_GRID + 3,
  LINEAR_WORDS = LINEAR_GROUP + 3,
};

static gsize
round_up (gsize n)
{
  return (n + 7) & ~(gsize) 7;
}

void
record_put_linear (TinyVector *out, const TinyLinear *linear)
{
  static const guint8 zeros[8];
  const guint64 words[LINEAR_WORDS]
      = { linear->n_instrs, linear->n_sources, linear->n_params, linear->n_variables,
          linear->grid[0],  linear->grid[1],   linear->grid[2],  linear->group[0],
          linear->group[1], linear->group[2] };
  const gsize n_sources = linear->n_sources * sizeof *linear->sources;
  tiny_vector_append (out, words, sizeof words);
  tiny_vector_append (out, linear->instrs, linear->n_instrs * sizeof *linear->instrs);
  tiny_vector_append (out, linear->sources, n_sources);
  tiny_vector_append (out, zeros, round_up (n_sources) - n_sources);
  tiny_vector_append (out, linear->params, linear->n_params * sizeof *linear->params);
  tiny_vector_append (out, linear->name, strlen (linear->name) + 1);
}

/* Every source is of an instruction before its user, as plugins may take for granted. */
static gboolean
check_sources (const TinyLinear *linear)
{
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (instr->sources > linear->n_sources
        || instr->n_sources > linear->n_sources - instr->sources)
      return FALSE;
    for (guint s = 0; s < instr->n_sources; s++)
      if (linear->sources[instr->sources + s] >= i)
        return FALSE;
  }
  return TRUE;
}

gboolean
tiny_record_read_linear (const void *data, gsize size, TinyLinear *out)
{
  const guint64 *words = data;
  const guint8 *at = (const guint8 *) data + LINEAR_WORDS * sizeof *words;
  if (size < LINEAR_WORDS * sizeof *words)
    return FALSE;
  for (guint i = 0; i < LINEAR_WORDS; i++)
    if (words[i] > G_MAXINT32)
      return FALSE;
  const gsize n_instrs = words[LINEAR_N_INSTRS] * sizeof (TinyInstr),
              n_sources = round_up (words[LINEAR_N_SOURCES] * sizeof (guint32)),
              n_params = words[LINEAR_N_PARAMS] * sizeof (TinyParam),
              left = size - LINEAR_WORDS * sizeof *words;
  if (n_instrs + n_sources + n_params >= left || ((const char *) data)[size - 1] != 0)
    return FALSE;
  *out = (TinyLinear){
    .struct_size = sizeof *out,
    .name = (const char *) at + n_instrs + n_sources + n_params,
    .instrs = (const TinyInstr *) (const void *) at,
    .sources = (const guint32 *) (const void *) (at + n_instrs),
    .params = (const TinyParam *) (const void *) (at + n_instrs + n_sources),
    .n_instrs = (guint32) words[LINEAR_N_INSTRS],
    .n_sources = (guint32) words[LINEAR_N_SOURCES],
    .n_params = (guint32) words[LINEAR_N_PARAMS],
    .n_variables = (guint32) words[LINEAR_N_VARIABLES],
  };
  for (guint i = 0; i < 3; i++) {
    out->grid[i] = (guint32) words[LINEAR_GRID + i];
    out->group[i] = (guint32) words[LINEAR_GROUP + i];
  }
  return check_sources (out);
}
