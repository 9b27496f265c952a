/* SPDX-License-Identifier: MIT
 *
 * group-soak.c: a long time of everything at random: buffers that come and go, copies, launches, and
 * what each buffer holds is known throughout; several threads at once. Nothing grows. */
#include <string.h>

#include "fresh.h"

enum { N_BUFFERS = 24, MOST_WORDS = 20000, ROUND = 200, LEAK_BYTES = 1 << 20 };

/* out[i] = in[i] + variable */
typedef struct {
  ConfRaw raw;
  ConfScript script;
  TinyPluginProgram *program;
} Rig;

typedef struct {
  const Rig *rig;
  guint64 seed;
  gint64 end_us;
  guint64 n_done;
  char *failure;
} Worker;

/* Word i of a buffer is i * 3 + value. */
typedef struct {
  TinyPluginBuffer *buffer;
  guint32 n_words, value;
} Known;

static gboolean
fail (Worker *self, const char *what, const TinyPluginError *error)
{
  self->failure = g_strdup_printf ("after %" G_GUINT64_FORMAT " steps: %s: %s", self->n_done,
                                   what, error->text);
  return FALSE;
}

static gboolean
submit (Worker *self, TinyPluginQueue *queue, const TinyCommand *command, const char *what)
{
  const ConfRaw *raw = &self->rig->raw;
  TinyPluginError error = { .struct_size = sizeof error };
  TinySubmit work = { .struct_size = sizeof work, .commands = command, .n_commands = 1 };
  return conf_table_submit (raw->table, raw->device, queue, &work, &error) == TINY_STATUS_OK
         || fail (self, what, &error);
}

static gboolean
renew (Worker *self, TinyPluginQueue *queue, Known *known, GRand *rand)
{
  const ConfRaw *raw = &self->rig->raw;
  TinyPluginError error = { .struct_size = sizeof error };
  if (known->buffer != NULL)
    raw->table->free (raw->device, known->buffer);
  *known = (Known){ .n_words = (guint32) g_rand_int_range (rand, 256, MOST_WORDS) & ~15u,
                    .value = g_rand_int (rand) };
  if (raw->table->alloc (raw->device, known->n_words * 4, &known->buffer, &error)
      != TINY_STATUS_OK)
    return fail (self, "alloc", &error);
  g_autofree guint32 *words = g_new (guint32, known->n_words);
  for (guint32 i = 0; i < known->n_words; i++)
    words[i] = i * 3 + known->value;
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_UPLOAD,
                                .dst = { known->buffer, 0, known->n_words * 4 },
                                .host = words };
  return submit (self, queue, &command, "upload");
}

static gboolean
check (Worker *self, TinyPluginQueue *queue, const Known *known)
{
  g_autofree guint32 *words = g_new0 (guint32, known->n_words);
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DOWNLOAD,
                                .src = { known->buffer, 0, known->n_words * 4 },
                                .host = words };
  if (!submit (self, queue, &command, "download"))
    return FALSE;
  for (guint32 i = 0; i < known->n_words; i++)
    if (words[i] != i * 3 + known->value) {
      self->failure = g_strdup_printf (
          "after %" G_GUINT64_FORMAT " steps: word %u of %u is %u, and %u is right",
          self->n_done, i, known->n_words, words[i], i * 3 + known->value);
      return FALSE;
    }
  return TRUE;
}

/* The first 256 words of @to become those of @from and more: then @to is as long. */
static gboolean
launch (Worker *self, TinyPluginQueue *queue, Known *to, const Known *from, gint32 add)
{
  const gint64 variable = add;
  const TinySpan spans[] = { { to->buffer, 0, 1024 }, { from->buffer, 0, 1024 } };
  const TinyCommand command
      = conf_dispatch (self->rig->program, &self->rig->script.linear, spans, &variable);
  to->n_words = 256;
  to->value = from->value + (guint32) add;
  return to == from || submit (self, queue, &command, "dispatch");
}

static gboolean
step (Worker *self, TinyPluginQueue *queue, Known *all, GRand *rand)
{
  Known *a = &all[g_rand_int_range (rand, 0, N_BUFFERS)];
  Known *b = &all[g_rand_int_range (rand, 0, N_BUFFERS)];
  self->n_done++;
  switch (g_rand_int_range (rand, 0, 4)) {
  case 0:
    return renew (self, queue, a, rand);
  case 1:
    return check (self, queue, a);
  case 2:
    return a == b || launch (self, queue, a, b, g_rand_int_range (rand, -1000, 1000));
  default: {
    guint32 n = MIN (a->n_words, b->n_words);
    const TinyCommand command = { .struct_size = sizeof command,
                                  .type = TINY_COMMAND_COPY,
                                  .dst = { a->buffer, 0, n * 4 },
                                  .src = { b->buffer, 0, n * 4 } };
    if (a == b)
      return TRUE;
    a->n_words = n;
    a->value = b->value;
    return submit (self, queue, &command, "copy");
  }
  }
}

static gpointer
work (gpointer data)
{
  Worker *self = data;
  const ConfRaw *raw = &self->rig->raw;
  TinyPluginError error = { .struct_size = sizeof error };
  TinyPluginQueue *queue = NULL;
  Known all[N_BUFFERS] = { 0 };
  GRand *rand = g_rand_new_with_seed ((guint32) self->seed);
  gboolean good = raw->table->queue_create == NULL
                  || raw->table->queue_create (raw->device, &queue, &error) == TINY_STATUS_OK
                  || fail (self, "queue_create", &error);
  for (guint i = 0; i < N_BUFFERS && good; i++)
    good = renew (self, queue, &all[i], rand);
  while (good && g_get_monotonic_time () < self->end_us)
    for (guint i = 0; i < ROUND && good; i++)
      good = step (self, queue, all, rand);
  for (guint i = 0; i < N_BUFFERS; i++)
    if (all[i].buffer != NULL)
      raw->table->free (raw->device, all[i].buffer);
  if (queue != NULL)
    raw->table->queue_destroy (raw->device, queue);
  g_rand_free (rand);
  return NULL;
}

/* ---- the case ---- */
static gboolean
build (Rig *rig, ConfTrial *trial, const ConfSubject *subject)
{
  if (!conf_raw_begin (&rig->raw, trial, subject))
    return FALSE;
  ConfScript *script = &rig->script;
  conf_script_init (script, "soak");
  conf_script_set_grid (script, 0, 256);
  guint32 out = conf_emit_param (script, TINY_DTYPE_I32, TINY_PARAM_WRITE, 256);
  guint32 in = conf_emit_param (script, TINY_DTYPE_I32, TINY_PARAM_READ, 256);
  guint32 add = conf_emit_variable (script), i = conf_emit_index (script, 0);
  guint32 x = CONF_EMIT (script, LOAD, I32, in, i);
  guint32 sum = CONF_EMIT (script, ADD, I32, x, add);
  CONF_EMIT (script, STORE, VOID, out, i, sum);
  rig->program = conf_raw_build (&rig->raw, subject, script);
  return rig->program != NULL;
}

static void
run_threads (ConfTrial *trial, Rig *rig, guint64 seed, guint n, gint64 seconds)
{
  enum { MOST = 16 };
  Worker workers[MOST] = { 0 };
  GThread *threads[MOST];
  guint64 n_done = 0;
  for (guint i = 0; i < n; i++) {
    workers[i] = (Worker){ .rig = rig,
                           .seed = seed + i,
                           .end_us = g_get_monotonic_time () + seconds * G_USEC_PER_SEC };
    threads[i] = g_thread_new ("soak", work, &workers[i]);
  }
  for (guint i = 0; i < n; i++) {
    g_thread_join (threads[i]);
    conf_check (trial, workers[i].failure == NULL, "thread %u, %s", i, workers[i].failure);
    g_free (workers[i].failure);
    n_done += workers[i].n_done;
  }
  conf_record (trial, "steps", (double) n_done, "steps");
}

/* args: threads, seconds. The first quarter fills what is kept for reuse; the rest takes nothing more. */
static void
run_soak (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Rig rig = { 0 };
  if (!build (&rig, trial, subject))
    return;
  guint n = (guint) self->args[0];
  gint64 seconds = self->args[1];
  run_threads (trial, &rig, subject->seed, n, (seconds + 3) / 4);
  ConfUsage before = conf_usage_get ();
  if (!conf_has_failed (trial))
    run_threads (trial, &rig, subject->seed + 100, n, seconds - seconds / 4);
  ConfUsage after = conf_usage_get ();
  conf_check (trial, after.n_fds <= before.n_fds && after.n_threads <= before.n_threads,
              "%u descriptors became %u, %u threads %u", before.n_fds, after.n_fds,
              before.n_threads, after.n_threads);
  conf_check (trial, after.malloc_bytes - before.malloc_bytes <= LEAK_BYTES,
              "it took %" G_GINT64_FORMAT " bytes of malloc() and kept them",
              after.malloc_bytes - before.malloc_bytes);
  conf_raw_unload (&rig.raw, rig.program);
  conf_script_clear (&rig.script);
  conf_raw_end (&rig.raw);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    ConfLevel level;
    gint64 threads, seconds;
  } runs[] = { { CONF_FULL, 1, 4 },
               { CONF_FULL, 3, 4 },
               { CONF_STRESS, 1, 120 },
               { CONF_STRESS, 8, 120 },
               { CONF_STRESS, 2, 900 } };
  if (subject->device == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (runs); i++) {
    const ConfCase it = { .run = conf_only_claims (subject) ? conf_soak_series : run_soak,
                          .level = runs[i].level,
                          .seconds = (guint) runs[i].seconds + 60,
                          .args = { runs[i].threads, runs[i].seconds } };
    conf_list_add (out, &it, "%u-threads/%u-seconds", (guint) runs[i].threads,
                   (guint) runs[i].seconds);
  }
}

const ConfGroup conf_group_soak
    = { "soak", "a long time of everything at random, from several threads", list };
