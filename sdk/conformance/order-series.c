/* SPDX-License-Identifier: MIT
 *
 * order-series.c: the same commands over and over: launches that read and write one buffer, chains of launches and
 * copies in one submission and over many, with nothing in between that would put right what was left behind.
 *
 * The contents of every buffer are computed beside the device, command by command, and compared at each download. */
#include "order.h"

#include <string.h>

enum { N_REGIONS = 4, FAR = (1 << 20) + TINY_SPAN_ALIGNMENT };

/* A part of a buffer, of which there are two: a launch may have both parts of one. */
typedef struct {
  TinyPluginBuffer *buffer;
  guint64 offset;
  guint32 *words; /* what it is to hold */
} Region;

typedef struct {
  void *host;
  guint32 *wanted; /* of a download, or NULL */
} Transfer;

typedef struct {
  ConfRaw raw;
  ConfScript script;
  TinyPluginProgram *program;
  TinyPluginBuffer *buffers[2];
  Region regions[N_REGIONS];
  guint n; /* words of each */
  /* Those of the next submission. */
  GArray *commands;
  GPtrArray *spans, *variables;
  GArray *transfers;
  guint64 n_done;
} Series;

/* out[i] = out[i] * 3 + in[i] + variable */
static void
write_program (ConfScript *script, guint n)
{
  conf_script_init (script, "series");
  conf_script_set_grid (script, 0, n);
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ | TINY_PARAM_WRITE, n);
  guint32 in = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ, n);
  guint32 add = conf_emit_variable (script), i = conf_emit_index (script, 0);
  guint32 before = CONF_EMIT (script, LOAD, U32, out, i);
  guint32 other = CONF_EMIT (script, LOAD, U32, in, i);
  guint32 three = conf_emit_int (script, TINY_DTYPE_U32, 3);
  guint32 more = CONF_EMIT (script, CAST, U32, add);
  guint32 product = CONF_EMIT (script, MUL, U32, before, three);
  guint32 sum = CONF_EMIT (script, ADD, U32, product, other);
  guint32 all = CONF_EMIT (script, ADD, U32, sum, more);
  CONF_EMIT (script, STORE, VOID, out, i, all);
}

static void
transfers_clear (Series *self)
{
  for (guint i = 0; i < self->transfers->len; i++) {
    g_free (g_array_index (self->transfers, Transfer, i).host);
    g_free (g_array_index (self->transfers, Transfer, i).wanted);
  }
  g_array_set_size (self->transfers, 0);
  g_array_set_size (self->commands, 0);
  g_ptr_array_set_size (self->spans, 0);
  g_ptr_array_set_size (self->variables, 0);
}

static void
series_end (Series *self)
{
  transfers_clear (self);
  g_array_unref (self->commands);
  g_array_unref (self->transfers);
  g_ptr_array_unref (self->spans);
  g_ptr_array_unref (self->variables);
  for (guint i = 0; i < N_REGIONS; i++)
    g_free (self->regions[i].words);
  for (guint i = 0; i < 2; i++)
    conf_raw_free (&self->raw, self->buffers[i]);
  conf_raw_unload (&self->raw, self->program);
  conf_script_clear (&self->script);
  conf_raw_end (&self->raw);
}

/* ---- commands, and what they do ---- */
static guint64
count_bytes (const Series *self)
{
  return self->n * sizeof (guint32);
}

static TinySpan
span_of (const Series *self, const Region *region)
{
  return (TinySpan){ region->buffer, region->offset, count_bytes (self) };
}

static void
add_upload (Series *self, Region *to, guint32 salt)
{
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_UPLOAD,
                          .dst = span_of (self, to) };
  for (guint i = 0; i < self->n; i++)
    to->words[i] = i * 2654435761u + salt;
  const Transfer transfer = { .host = g_memdup2 (to->words, count_bytes (self)) };
  command.host = transfer.host;
  g_array_append_val (self->transfers, transfer);
  g_array_append_val (self->commands, command);
}

static void
add_download (Series *self, const Region *from)
{
  const Transfer transfer = { .host = g_malloc0 (count_bytes (self)),
                              .wanted = g_memdup2 (from->words, count_bytes (self)) };
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DOWNLOAD,
                                .src = span_of (self, from),
                                .host = transfer.host };
  g_array_append_val (self->transfers, transfer);
  g_array_append_val (self->commands, command);
}

/* A copy of no bytes where @is_empty. */
static void
add_copy (Series *self, Region *to, const Region *from, gboolean is_empty)
{
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_COPY,
                          .dst = span_of (self, to),
                          .src = span_of (self, from) };
  if (is_empty)
    command.dst.n_bytes = command.src.n_bytes = 0;
  else
    memcpy (to->words, from->words, count_bytes (self));
  g_array_append_val (self->commands, command);
}

static void
add_launch (Series *self, Region *to, const Region *from, gint32 variable)
{
  TinySpan *spans = g_new (TinySpan, 2);
  gint64 *variables = g_new (gint64, 1);
  spans[0] = span_of (self, to);
  spans[1] = span_of (self, from);
  *variables = variable;
  for (guint i = 0; i < self->n; i++)
    to->words[i] = to->words[i] * 3 + from->words[i] + (guint32) variable;
  const TinyCommand command
      = conf_dispatch (self->program, conf_script_get (&self->script), spans, variables);
  g_ptr_array_add (self->spans, spans);
  g_ptr_array_add (self->variables, variables);
  g_array_append_val (self->commands, command);
}

static gboolean
check_download (Series *self, const Transfer *transfer)
{
  const guint32 *words = transfer->host;
  for (guint i = 0; transfer->wanted != NULL && i < self->n; i++)
    if (!conf_check (self->raw.trial, words[i] == transfer->wanted[i],
                     "after %" G_GUINT64_FORMAT " commands, word %u is %u, and %u is right",
                     self->n_done, i, words[i], transfer->wanted[i]))
      return FALSE;
  return TRUE;
}

/* Submits what was added, and compares what came down. */
static gboolean
go (Series *self)
{
  const TinyCommand *commands = (const TinyCommand *) (gconstpointer) self->commands->data;
  gboolean good = conf_raw_submit (&self->raw, self->commands->len > 0 ? commands : NULL,
                                   self->commands->len, "a series of commands");
  self->n_done += self->commands->len;
  for (guint i = 0; i < self->transfers->len && good; i++)
    good = check_download (self, &g_array_index (self->transfers, Transfer, i));
  transfers_clear (self);
  return good;
}

static gboolean
series_begin (Series *self, ConfTrial *trial, const ConfSubject *subject, guint n)
{
  memset (self, 0, sizeof *self);
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  self->n = n;
  self->commands = g_array_new (FALSE, FALSE, sizeof (TinyCommand));
  self->transfers = g_array_new (FALSE, FALSE, sizeof (Transfer));
  self->spans = g_ptr_array_new_with_free_func (g_free);
  self->variables = g_ptr_array_new_with_free_func (g_free);
  write_program (&self->script, n);
  self->program = conf_raw_build (&self->raw, subject, &self->script);
  for (guint i = 0; i < 2; i++)
    self->buffers[i] = conf_raw_alloc (&self->raw, FAR + count_bytes (self));
  for (guint i = 0; i < N_REGIONS; i++) {
    self->regions[i] = (Region){ self->buffers[i % 2], i < 2 ? 0 : FAR, g_new (guint32, n) };
    add_upload (self, &self->regions[i], i);
  }
  if (!conf_has_failed (trial) && go (self))
    return TRUE;
  series_end (self);
  return FALSE;
}

/* ---- cases ---- */
/* One buffer, read and written by launches that follow each other. args: whether they are one submission. */
static void
run_in_place (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N_WORDS = 256, N_LAUNCHES = 9 };
  Series series;
  gboolean good = TRUE;
  if (!series_begin (&series, trial, subject, N_WORDS))
    return;
  for (guint i = 0; i < N_LAUNCHES && good; i++) {
    add_launch (&series, &series.regions[0], &series.regions[1], 1);
    good = self->args[0] || go (&series);
  }
  add_download (&series, &series.regions[0]);
  if (good)
    go (&series);
  series_end (&series);
}

/* Any command on any region. Few transfers, so that most results are made of results. */
static void
add_any (Series *self, GRand *rand)
{
  Region *to = &self->regions[g_rand_int_range (rand, 0, N_REGIONS)];
  const guint other = (guint) (to - self->regions + g_rand_int_range (rand, 1, N_REGIONS));
  const Region *from = &self->regions[other % N_REGIONS];
  switch (g_rand_int_range (rand, 0, 16)) {
  case 0:
    add_upload (self, to, g_rand_int (rand));
    break;
  case 1:
  case 2:
    add_download (self, from);
    break;
  case 3:
  case 4:
  case 5:
    add_copy (self, to, from, FALSE);
    break;
  case 6:
    add_copy (self, to, from, TRUE);
    break;
  default:
    add_launch (self, to, from, (gint32) g_rand_int (rand));
  }
}

/* args: words of a region, submissions, commands of one at most. */
static void
run_series (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint n_submits = (guint) self->args[1], most = (guint) self->args[2];
  g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) subject->seed + most);
  Series series;
  gboolean good = TRUE;
  if (!series_begin (&series, trial, subject, (guint) self->args[0]))
    return;
  for (guint i = 0; i < n_submits && good; i++) {
    const guint n = n_submits == 1 ? most : (guint) g_rand_int_range (rand, 0, (gint) most + 1);
    for (guint k = 0; k < n; k++)
      add_any (&series, rand);
    good = go (&series);
  }
  for (guint i = 0; i < N_REGIONS && good; i++)
    add_download (&series, &series.regions[i]);
  if (good)
    go (&series);
  series_end (&series);
}

void
conf_list_repeats (ConfList *out)
{
  static const struct {
    const char *name;
    ConfCase self;
  } cases[] = {
    { "in-place/one-submit", { .run = run_in_place, .args = { 1 } } },
    { "in-place/many-submits", { .run = run_in_place, .args = { 0 } } },
    { "series/short", { .run = run_series, .args = { 64, 1500, 5 } } },
    { "series/long", { .run = run_series, .args = { 64, 1, 1500 } } },
    { "series/large", { .run = run_series, .args = { 40000, 24, 6 } } },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    conf_list_add (out, &cases[i].self, "%s", cases[i].name);
}
