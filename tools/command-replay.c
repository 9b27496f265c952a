/* SPDX-License-Identifier: MIT
 *
 * command-replay.c: tinycore replay: what a program asked of its devices, without the program. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-env.h"
#include "tools/commands.h"
#include "tools/replay.h"

enum { EXIT_NOTHING = 3 };
#define ALL_CALLS G_MININT64

typedef struct {
  ReplayOptions options; /* of the device that is judged */
  ReplayOptions beside;  /* of the one that it is compared with, where device is set */
  gint64 until;          /* the last call; ALL_CALLS: all */
  gboolean json, list;
} Command;

/* ---- what is said of the record ---- */
/* Others wrote it, and a terminal is not theirs to steer. */
static void
print_origin (const Command *self, const TinyRecordFrame *frame)
{
  const TinyRecordField *fields = frame->fields;
  g_autofree char *text = NULL;
  if (self->json) {
    replay_list_frame (self->options.record, frame, TRUE);
    return;
  }
  if (frame->kind == TINY_RECORD_HEAD)
    text = g_strdup_printf ("recorded by %s with tinycore %s on %s, %s",
                            (const char *) fields[2].bytes, (const char *) fields[1].bytes,
                            (const char *) fields[5].bytes, (const char *) fields[4].bytes);
  else if (frame->kind == TINY_RECORD_BACKEND)
    text = g_strdup_printf ("backend %s %s of %s, %s, build-id %s",
                            (const char *) fields[0].bytes, (const char *) fields[2].bytes,
                            (const char *) fields[1].bytes, (const char *) fields[3].bytes,
                            ((const char *) fields[4].bytes)[0] ? (const char *) fields[4].bytes
                                                                : "none");
  else
    text = g_strconcat ("the record ends here: ", fields[0].bytes, NULL);
  g_autofree char *clean = tiny_clean_text (text, strlen (text));
  puts (clean);
}

static void
print_cut (const Command *self)
{
  const guint64 cut = tiny_record_get_cut (self->options.record);
  if (cut != 0)
    g_printerr ("tinycore: the record is cut off at byte %" G_GUINT64_FORMAT
                "; what is before it counts\n",
                cut);
}

/* ---- outcomes ---- */
static void
add_number (JsonBuilder *line, const char *name, guint64 number)
{
  json_builder_set_member_name (line, name);
  json_builder_add_int_value (line, (gint64) number);
}

static void
print_outcome_json (const ReplayPlayer *player, const ReplayDifference *difference)
{
  g_autoptr (JsonBuilder) line = json_builder_new ();
  const guint n_compared = replay_player_get_n_compared (player);
  json_builder_begin_object (line);
  tinycore_add_text (line, "function", "outcome");
  tinycore_add_text (line, "outcome",
                     difference->function != NULL ? "differs"
                     : n_compared > 0             ? "same"
                                                  : "nothing compared");
  tinycore_add_text (line, "device", replay_player_get_device_name (player));
  add_number (line, "n_calls", replay_player_get_n_calls (player));
  add_number (line, "n_compared", n_compared);
  if (difference->function != NULL) {
    add_number (line, "call", difference->call);
    tinycore_add_text (line, "in", difference->function);
    add_number (line, "command", difference->command);
    tinycore_add_text (line, "kernel", difference->kernel);
    add_number (line, "buffer", difference->buffer);
    add_number (line, "element", difference->element);
    add_number (line, "n_different", difference->n_different);
    add_number (line, "n_elements", difference->n_elements);
    tinycore_add_text (line, "expected", difference->expected);
    tinycore_add_text (line, "found", difference->found);
  }
  json_builder_end_object (line);
  tinycore_print_json (line);
}

static void
print_difference (const Command *command, const ReplayDifference *self)
{
  const gboolean is_beside = g_str_equal (self->function, "dispatch");
  g_autofree char *kernel = tiny_clean_text (self->kernel, G_MAXINT);
  printf ("differs: call %" G_GUINT64_FORMAT ", %s", self->call, self->function);
  if (self->buffer != 0)
    printf (" of buffer %" G_GUINT64_FORMAT " (command %u)%s%s", self->buffer, self->command,
            self->kernel == NULL ? ""
            : is_beside          ? ", which is written by kernel "
                                 : ", which kernel last wrote: ",
            kernel);
  if (self->n_elements > 0)
    printf (": element %" G_GUINT64_FORMAT, self->element);
  printf (": %s %s, found %s", is_beside ? command->beside.device : "recorded", self->expected,
          self->found);
  if (self->n_elements > 0)
    printf ("; %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " elements differ",
            self->n_different, self->n_elements);
  putchar ('\n');
}

static int
print_outcome (const Command *self,
               const ReplayPlayer *player,
               const ReplayDifference *difference)
{
  const guint n_compared = replay_player_get_n_compared (player);
  g_autofree char *device = tiny_clean_text (replay_player_get_device_name (player), G_MAXINT);
  if (self->json)
    print_outcome_json (player, difference);
  else if (difference->function != NULL)
    print_difference (self, difference);
  else
    printf ("%s: %u calls on %s, %u answers compared\n",
            n_compared > 0 ? "same" : "nothing to compare", replay_player_get_n_calls (player),
            device[0] ? device : "no device", n_compared);
  return difference->function != NULL ? EXIT_FAILED : n_compared > 0 ? 0 : EXIT_NOTHING;
}

/* ---- the way through ---- */
static gboolean
is_about_record (TinyRecordKind kind)
{
  return kind == TINY_RECORD_HEAD || kind == TINY_RECORD_BACKEND || kind == TINY_RECORD_STOPPED;
}

/* One call on both devices, the one beside first. What fails or differs there ends it as well. */
static gboolean
step (ReplayPlayer *player,
      ReplayPlayer *beside,
      const TinyRecordFrame *frame,
      ReplayDifference *difference,
      GError **error)
{
  if (beside != NULL && frame->kind != TINY_RECORD_DOWNLOADED
      && !replay_player_step (beside, frame, difference, error))
    return FALSE;
  return difference->function != NULL || replay_player_step (player, frame, difference, error);
}

static int
replay (const Command *self)
{
  const TinyRecord *record = self->options.record;
  const guint n = tiny_record_get_n_frames (record);
  g_autoptr (ReplayPlayer) player = replay_player_new (&self->options);
  g_autoptr (ReplayPlayer) beside
      = self->beside.device != NULL ? replay_player_new (&self->beside) : NULL;
  ReplayDifference difference = { 0 };
  GError *error = NULL;
  TinyRecordFrame frame;
  for (guint i = 0; i < n && difference.function == NULL; i++) {
    tiny_record_get_frame (record, i, &frame);
    if (self->until != ALL_CALLS && frame.call > (guint64) self->until)
      break;
    if (is_about_record (frame.kind))
      print_origin (self, &frame);
    fflush (stdout); /* before what may crash */
    if (!step (player, beside, &frame, &difference, &error)) {
      replay_difference_clear (&difference);
      tinycore_fail (error);
      return EXIT_NOTHING;
    }
  }
  const int status = print_outcome (self, player, &difference);
  replay_difference_clear (&difference);
  return status;
}

static int
list (const Command *self)
{
  TinyRecordFrame frame;
  for (guint i = 0; i < tiny_record_get_n_frames (self->options.record); i++) {
    tiny_record_get_frame (self->options.record, i, &frame);
    if (self->until == ALL_CALLS || frame.call <= (guint64) self->until)
      replay_list_frame (self->options.record, &frame, self->json);
  }
  return 0;
}

static int
run (Command *self, const char *path)
{
  GError *error = NULL;
  g_autoptr (TinyRecord) record = tiny_record_open (path, &error);
  if (record == NULL) {
    tinycore_fail (error);
    return EXIT_USAGE;
  }
  tiny_env_set_text (TINY_ENV_RECORD, NULL); /* it may name this very file */
  self->options.record = self->beside.record = record;
  print_cut (self);
  return self->list ? list (self) : replay (self);
}

static gboolean
read_tolerance (const char *text, double *out)
{
  char *end = NULL;
  *out = g_ascii_strtod (text, &end);
  return end != text && *end == 0 && isfinite (*out) && *out >= 0;
}

int
tinycore_replay (int argc, char **argv)
{
  g_autofree char *device = NULL, *beside = NULL, *tolerance = NULL;
  int status = 0;
  Command self = { .options = { .tolerance = -1 }, .until = ALL_CALLS };
  const GOptionEntry entries[] = {
    { "device", 0, 0, G_OPTION_ARG_STRING, &device,
      "the device to play on, as DEV=; else the one that was recorded", "D" },
    { "beside", 0, 0, G_OPTION_ARG_STRING, &beside,
      "another device that plays as well, with which each kernel is compared", "D" },
    { "until", 0, 0, G_OPTION_ARG_INT64, &self.until,
      "the last call to make, as --list numbers", "N" },
    { "tolerance", 0, 0, G_OPTION_ARG_STRING, &tolerance,
      "how much floats may differ, as a part of the larger or of the largest", "T" },
    { "binaries", 0, 0, G_OPTION_ARG_NONE, &self.options.binaries,
      "load the recorded programs rather than compile them again", NULL },
    { "list", 0, 0, G_OPTION_ARG_NONE, &self.list, "print the calls and make none", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &self.json, "one JSON object a line", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "FILE",
                       "Plays again what a program asked of its devices with TINY_RECORD=FILE.",
                       entries, &status))
    return status;
  if (argc != 2) {
    g_printerr ("usage: tinycore replay FILE [--device D] [--beside D] [--until N] "
                "[--tolerance T] [--binaries] [--list] [--json]\n");
    return EXIT_USAGE;
  }
  if (self.until < 1 && self.until != ALL_CALLS)
    return tinycore_fail_usage ("--until %" G_GINT64_FORMAT
                                " is no call: the first is 1, and --list numbers them",
                                self.until);
  if (tolerance != NULL && !read_tolerance (tolerance, &self.options.tolerance))
    return tinycore_fail_usage ("--tolerance “%s” is no number from 0 on, such as 0.001",
                                tolerance);
  GQueue written = G_QUEUE_INIT;
  self.options.device = device;
  if (beside != NULL) {
    self.options.written = &written;
    self.beside = self.options;
    self.beside.device = beside;
    self.options.is_judged = TRUE;
  }
  status = run (&self, argv[1]);
  g_queue_clear_full (&written, (GDestroyNotify) g_bytes_unref);
  return status;
}
