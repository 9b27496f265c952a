/* SPDX-License-Identifier: MIT
 *
 * replay-list.c: the frames of a record as lines. */
#include <stdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "tools/commands.h"
#include "tools/replay.h"

enum { SHORT = 60 }; /* characters of a text in a line; --json has all */

const char *
replay_status_to_string (TinyStatus status)
{
  static const char *const names[]
      = { "ok",      "unsupported", "invalid",   "out of memory", "busy",
          "timeout", "permission",  "no device", "driver",        "device lost",
          "compile", "corrupt",     "launch",    "internal" };
  return status >= 0                                        ? names[0]
         : -(gint64) status < (gint64) G_N_ELEMENTS (names) ? names[-status]
                                                            : "unknown";
}

static char *
clean (const TinyRecordField *field)
{
  char *text = tiny_clean_text (field->bytes, field->n_bytes);
  g_strdelimit (text, "\n", ' ');
  if (g_utf8_strlen (text, -1) > SHORT) {
    char *end = g_utf8_offset_to_pointer (text, SHORT);
    g_autofree char *all = text;
    return g_strdup_printf ("%.*s…", (int) (end - all), all);
  }
  return g_strchomp (text);
}

static void
put_span (GString *out, const char *what, const TinyRecordSpan *span)
{
  g_string_append_printf (out, " %s=%" G_GUINT64_FORMAT, what, span->buffer);
  g_string_append_printf (out, "[%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT "]", span->offset,
                          span->n_bytes);
}

static char *
command_to_string (const TinyRecordCommand *command)
{
  static const char *const names[] = { "?", "upload", "download", "copy", "dispatch" };
  GString *out = g_string_new (names[command->type]);
  if (command->type == TINY_COMMAND_DISPATCH) {
    g_string_append_printf (out, " program=%" G_GUINT64_FORMAT " grid=%u,%u,%u",
                            command->program, command->grid[0], command->grid[1],
                            command->grid[2]);
    for (guint i = 0; i < command->n_buffers; i++)
      put_span (out, "buffer", &command->buffers[i]);
    for (guint i = 0; i < command->n_variables; i++)
      g_string_append_printf (out, " variable=%" G_GINT64_FORMAT, command->variables[i]);
  }
  if (command->dst.buffer != 0)
    put_span (out, "to", &command->dst);
  if (command->src.buffer != 0)
    put_span (out, "from", &command->src);
  return g_string_free (out, FALSE);
}

/* What became of the call, "" where there is nothing to say. */
static char *
result_to_string (const TinyRecord *record, const TinyRecordFrame *frame)
{
  static const TinyRecordKind quiet[] = { TINY_RECORD_FREE, TINY_RECORD_QUEUE_DESTROY,
                                          TINY_RECORD_PROGRAM_UNLOAD, TINY_RECORD_CLOSE };
  TinyRecordFrame result;
  if (!tiny_record_get_row (frame->kind)->is_call)
    return g_strdup ("");
  for (guint i = 0; i < G_N_ELEMENTS (quiet); i++)
    if (quiet[i] == frame->kind)
      return g_strdup ("");
  if (!tiny_record_get_result (record, frame->call, &result))
    return g_strdup ("it did not return");
  const TinyStatus status = (TinyStatus) (gint64) result.fields[0].number;
  g_autofree char *text = clean (&result.fields[1]);
  return g_strdup_printf ("%s%s%s", replay_status_to_string (status), text[0] ? ": " : "",
                          text);
}

static void
list_text (const TinyRecord *record, const TinyRecordFrame *frame)
{
  const TinyRecordRow *row = tiny_record_get_row (frame->kind);
  g_autofree char *result = result_to_string (record, frame);
  const char *name;
  gsize length;
  char kind;
  printf ("%6" G_GUINT64_FORMAT " %s", frame->call, row->name);
  for (guint i = 0; tiny_record_row_get_field (row, i, &name, &length, &kind); i++) {
    if (kind == 't') {
      g_autofree char *text = clean (&frame->fields[i]);
      if (text[0] != 0)
        printf (" %.*s=%s", (int) length, name, text);
    } else if (kind != 'c' && (kind == 'u' || frame->fields[i].number != 0)) {
      printf (" %.*s=%s%" G_GUINT64_FORMAT, (int) length, name, kind == 'd' ? "#" : "",
              frame->fields[i].number);
    }
  }
  printf ("%s%s\n", result[0] ? " → " : "", result);
  TinyRecordField commands = frame->fields[2];
  TinyRecordCommand command;
  while (frame->kind == TINY_RECORD_SUBMIT && tiny_record_next_command (&commands, &command)) {
    g_autofree char *text = command_to_string (&command);
    printf ("       %s\n", text);
  }
}

static void
list_json (const TinyRecord *record, const TinyRecordFrame *frame)
{
  g_autoptr (JsonBuilder) line = json_builder_new ();
  const TinyRecordRow *row = tiny_record_get_row (frame->kind);
  g_autofree char *result = result_to_string (record, frame);
  const char *name;
  gsize length;
  char kind;
  json_builder_begin_object (line);
  json_builder_set_member_name (line, "call");
  json_builder_add_int_value (line, (gint64) frame->call);
  tinycore_add_text (line, "function", row->name);
  for (guint i = 0; tiny_record_row_get_field (row, i, &name, &length, &kind); i++) {
    g_autofree char *key = g_strndup (name, length);
    json_builder_set_member_name (line, key);
    if (kind == 't') {
      g_autofree char *text
          = tiny_clean_text (frame->fields[i].bytes, frame->fields[i].n_bytes);
      json_builder_add_string_value (line, text);
    } else if (kind == 'c') {
      TinyRecordField commands = frame->fields[i];
      TinyRecordCommand command;
      json_builder_begin_array (line);
      while (tiny_record_next_command (&commands, &command)) {
        g_autofree char *text = command_to_string (&command);
        json_builder_add_string_value (line, text);
      }
      json_builder_end_array (line);
    } else {
      json_builder_add_int_value (line, (gint64) frame->fields[i].number);
    }
  }
  tinycore_add_text (line, "result", result[0] ? result : NULL);
  json_builder_end_object (line);
  tinycore_print_json (line);
}

void
replay_list_frame (const TinyRecord *record, const TinyRecordFrame *frame, gboolean json)
{
  if (frame->kind == TINY_RECORD_RESULT)
    return; /* it is shown with its call */
  if (json)
    list_json (record, frame);
  else
    list_text (record, frame);
}
