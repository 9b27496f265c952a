/* SPDX-License-Identifier: MIT
 *
 * group-order.c: commands seem to run one after the other, on one queue, on several, and from several
 * threads; what they cannot wait for is not lost. */
#include <string.h>

#include "fresh.h"
#include "order.h"

enum { N = 4096, N_BYTES = N * sizeof (guint32), N_CHAIN = 32, N_THREADS = 3, N_ROUNDS = 40 };

/* out[i] = in[i] * 3 + variable */
typedef struct {
  ConfRaw raw;
  ConfScript script;
  TinyPluginProgram *program;
} Rig;

static void
write_program (ConfScript *script)
{
  conf_script_init (script, "step");
  conf_script_set_grid (script, 0, N);
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_WRITE, N);
  guint32 in = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ, N);
  guint32 add = conf_emit_variable (script);
  guint32 i = conf_emit_index (script, 0);
  guint32 x = CONF_EMIT (script, LOAD, U32, in, i);
  guint32 three = conf_emit_int (script, TINY_DTYPE_U32, 3);
  guint32 more = CONF_EMIT (script, CAST, U32, add);
  guint32 product = CONF_EMIT (script, MUL, U32, x, three);
  guint32 sum = CONF_EMIT (script, ADD, U32, product, more);
  CONF_EMIT (script, STORE, VOID, out, i, sum);
}

static void
rig_end (Rig *self)
{
  conf_raw_unload (&self->raw, self->program);
  conf_script_clear (&self->script);
  conf_raw_end (&self->raw);
}

static gboolean
rig_begin (Rig *self, ConfTrial *trial, const ConfSubject *subject)
{
  memset (self, 0, sizeof *self);
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  write_program (&self->script);
  self->program = conf_raw_build (&self->raw, subject, &self->script);
  if (self->program == NULL)
    rig_end (self);
  return self->program != NULL;
}

static guint32
start_value (guint i, guint32 salt)
{
  return i * 2654435761u + salt;
}

static void
fill_words (guint32 *words, guint32 salt)
{
  for (guint i = 0; i < N; i++)
    words[i] = start_value (i, salt);
}

static gboolean
check_words (
    ConfTrial *trial, const guint32 *words, guint32 salt, guint steps, const char *what)
{
  for (guint i = 0; i < N; i++) {
    guint32 wanted = start_value (i, salt);
    for (guint s = 0; s < steps; s++)
      wanted = wanted * 3 + s;
    if (!conf_check (trial, words[i] == wanted, "%s: element %u is %u, and %u is right", what,
                     i, words[i], wanted))
      return FALSE;
  }
  return TRUE;
}

static TinyCommand
copy_command (guint type, TinyPluginBuffer *to, TinyPluginBuffer *from, void *host)
{
  const TinySpan none = { NULL, 0, 0 };
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = type,
                        .dst = to ? (TinySpan){ to, 0, N_BYTES } : none,
                        .src = from ? (TinySpan){ from, 0, N_BYTES } : none,
                        .host = host };
}

/* ---- one queue ---- */
/* upload, @n dispatches from buffer to buffer, download: in one submit, or in one each. */
static void
run_chain (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  gboolean one_submit = self->args[0] != 0, with_copies = self->args[1] != 0;
  g_autofree guint32 *words = g_new (guint32, N);
  g_autoptr (GArray) commands = g_array_new (FALSE, TRUE, sizeof (TinyCommand));
  TinySpan spans[N_CHAIN][2];
  gint64 variables[N_CHAIN];
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  TinyPluginBuffer *buffers[3];
  for (guint b = 0; b < 3; b++)
    buffers[b] = conf_raw_alloc (&rig.raw, N_BYTES);
  fill_words (words, 1);
  TinyCommand command = copy_command (TINY_COMMAND_UPLOAD, buffers[0], NULL, words);
  g_array_append_val (commands, command);
  guint now = 0;
  for (guint s = 0; s < N_CHAIN; s++) {
    if (with_copies) { /* the result goes on from where it was copied to */
      command = copy_command (TINY_COMMAND_COPY, buffers[2], buffers[now], NULL);
      g_array_append_val (commands, command);
    }
    spans[s][0] = (TinySpan){ buffers[1 - now], 0, N_BYTES };
    spans[s][1] = (TinySpan){ buffers[with_copies ? 2 : now], 0, N_BYTES };
    variables[s] = s;
    command
        = conf_dispatch (rig.program, conf_script_get (&rig.script), spans[s], &variables[s]);
    g_array_append_val (commands, command);
    now = 1 - now;
  }
  command = copy_command (TINY_COMMAND_DOWNLOAD, NULL, buffers[now], words);
  g_array_append_val (commands, command);
  const TinyCommand *all = (const TinyCommand *) (gconstpointer) commands->data;
  gboolean good = !conf_has_failed (trial);
  if (one_submit)
    good = good && conf_raw_submit (&rig.raw, all, commands->len, "a chain of commands");
  for (guint i = 0; i < commands->len && good && !one_submit; i++)
    good = conf_raw_submit (&rig.raw, &all[i], 1, "one of a chain of commands");
  if (good)
    check_words (trial, words, 1, N_CHAIN, "the end of a chain");
  for (guint b = 0; b < 3; b++)
    conf_raw_free (&rig.raw, buffers[b]);
  rig_end (&rig);
}

/* A buffer is read, then written anew, in one submit: the reader saw what was there before. */
static void
run_write_after_read (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autofree guint32 *first = g_new (guint32, N), *second = g_new (guint32, N);
  g_autofree guint32 *computed = g_new0 (guint32, N), *copied = g_new0 (guint32, N);
  gint64 zero = 0;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  TinyPluginBuffer *a = conf_raw_alloc (&rig.raw, N_BYTES),
                   *b = conf_raw_alloc (&rig.raw, N_BYTES),
                   *c = conf_raw_alloc (&rig.raw, N_BYTES);
  const TinySpan spans[] = { { b, 0, N_BYTES }, { a, 0, N_BYTES } };
  fill_words (first, 1);
  fill_words (second, 2);
  const TinyCommand commands[] = {
    copy_command (TINY_COMMAND_UPLOAD, a, NULL, first),
    conf_dispatch (rig.program, conf_script_get (&rig.script), spans, &zero),
    copy_command (TINY_COMMAND_COPY, c, a, NULL),
    copy_command (TINY_COMMAND_UPLOAD, a, NULL, second),
    copy_command (TINY_COMMAND_DOWNLOAD, NULL, b, computed),
    copy_command (TINY_COMMAND_DOWNLOAD, NULL, c, copied),
    copy_command (TINY_COMMAND_DOWNLOAD, NULL, a, first),
  };
  if (!conf_has_failed (trial)
      && conf_raw_submit (&rig.raw, commands, G_N_ELEMENTS (commands), "a write after reads")) {
    check_words (trial, computed, 1, 1, "what was computed before");
    check_words (trial, copied, 1, 0, "what was copied before");
    check_words (trial, first, 2, 0, "what was written after");
  }
  conf_raw_free (&rig.raw, a);
  conf_raw_free (&rig.raw, b);
  conf_raw_free (&rig.raw, c);
  rig_end (&rig);
}

/* Commands that may run together, and one that waits for all of them. */
static void
run_overlaps (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { WIDE = 8 };
  g_autofree guint32 *words = g_new (guint32, N);
  TinyPluginBuffer *in[WIDE], *out[WIDE];
  TinySpan spans[WIDE + 1][2];
  TinyCommand commands[WIDE + 2];
  gint64 variables[] = { 0, 1 };
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  for (guint i = 0; i < WIDE; i++) {
    in[i] = conf_raw_alloc (&rig.raw, N_BYTES);
    out[i] = conf_raw_alloc (&rig.raw, N_BYTES);
    fill_words (words, i);
    if (!conf_has_failed (trial))
      conf_raw_upload (&rig.raw, in[i], 0, words, N_BYTES);
    spans[i][0] = (TinySpan){ out[i], 0, N_BYTES };
    spans[i][1] = (TinySpan){ in[i], 0, N_BYTES };
    commands[i]
        = conf_dispatch (rig.program, conf_script_get (&rig.script), spans[i], variables);
    commands[i].flags = i > 0 ? TINY_COMMAND_OVERLAPS : 0;
  }
  spans[WIDE][0] = (TinySpan){ in[0], 0, N_BYTES };
  spans[WIDE][1] = (TinySpan){ out[WIDE - 1], 0, N_BYTES };
  commands[WIDE]
      = conf_dispatch (rig.program, conf_script_get (&rig.script), spans[WIDE], variables + 1);
  commands[WIDE + 1] = copy_command (TINY_COMMAND_DOWNLOAD, NULL, in[0], words);
  if (!conf_has_failed (trial)
      && conf_raw_submit (&rig.raw, commands, WIDE + 2, "commands that overlap"))
    check_words (trial, words, WIDE - 1, 2, "what waits for commands that overlap");
  for (guint i = 0; i < WIDE; i++) {
    conf_raw_free (&rig.raw, in[i]);
    conf_raw_free (&rig.raw, out[i]);
  }
  rig_end (&rig);
}

/* out_ns gets a time for each command, none longer than all of it, and nothing behind them. */
static void
run_times (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N_COMMANDS = 6 };
  const guint64 untouched = G_GUINT64_CONSTANT (0xfefefefefefefefe);
  guint64 times[N_COMMANDS + 1];
  TinyCommand commands[N_COMMANDS];
  gint64 zero = 0;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  TinyPluginBuffer *a = conf_raw_alloc (&rig.raw, N_BYTES),
                   *b = conf_raw_alloc (&rig.raw, N_BYTES);
  const TinySpan spans[] = { { a, 0, N_BYTES }, { b, 0, N_BYTES } };
  for (guint i = 0; i < N_COMMANDS; i++)
    commands[i] = conf_dispatch (rig.program, conf_script_get (&rig.script), spans, &zero);
  for (guint round = 0; round < 20 && !conf_has_failed (trial); round++) {
    for (guint i = 0; i <= N_COMMANDS; i++)
      times[i] = untouched;
    TinySubmit work = { .struct_size = sizeof work,
                        .commands = commands,
                        .n_commands = N_COMMANDS,
                        .out_ns = times };
    gint64 begin = g_get_monotonic_time ();
    TinyStatus status = conf_table_submit (rig.raw.table, rig.raw.device, rig.raw.queue, &work,
                                           &rig.raw.error);
    guint64 all_ns = (guint64) (g_get_monotonic_time () - begin + 1) * 1000, sum = 0;
    conf_check (trial, status == TINY_STATUS_OK, "submit: %s", rig.raw.error.text);
    for (guint i = 0; i < N_COMMANDS; i++) {
      conf_check (trial, times[i] <= all_ns,
                  "command %u took %" G_GUINT64_FORMAT " ns, and all of it %" G_GUINT64_FORMAT,
                  i, times[i], all_ns);
      sum += times[i];
    }
    conf_check (trial, conf_has_failed (trial) || sum <= all_ns,
                "the commands took %" G_GUINT64_FORMAT
                " ns together, and all of it %" G_GUINT64_FORMAT,
                sum, all_ns);
    conf_check (trial, times[N_COMMANDS] == untouched, "a time is written behind the last");
  }
  conf_raw_free (&rig.raw, a);
  conf_raw_free (&rig.raw, b);
  rig_end (&rig);
}

/* How long a launch of that many rounds took here, and says that it took. */
static gboolean
time_launch (ConfRaw *raw,
             const TinyCommand *command,
             guint64 *out_here_ns,
             guint64 *out_said_ns)
{
  TinySubmit work = {
    .struct_size = sizeof work, .commands = command, .n_commands = 1, .out_ns = out_said_ns
  };
  gint64 begin = g_get_monotonic_time ();
  TinyStatus status
      = conf_table_submit (raw->table, raw->device, raw->queue, &work, &raw->error);
  *out_here_ns = (guint64) (g_get_monotonic_time () - begin) * 1000;
  return conf_check (raw->trial, status == TINY_STATUS_OK, "submit: %s", raw->error.text);
}

/* A launch so long that nothing else takes as much: its time is most of what passes here. */
static void
run_long_time (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { LONG_NS = 20000000, MOST_ROUNDS = 1 << 28, N_TRIES = 3 };
  const gint64 most_rounds = conf_most_rounds (subject->target, MOST_ROUNDS) / 4;
  gint64 rounds = 1;
  guint64 least_ns = 0, here_ns = 0, said_ns = 0;
  gboolean good = FALSE;
  Rig rig = { 0 };
  if (!conf_raw_begin (&rig.raw, trial, subject))
    return;
  conf_script_init_stir (&rig.script, N);
  rig.program = conf_raw_build (&rig.raw, subject, &rig.script);
  TinyPluginBuffer *a = conf_raw_alloc (&rig.raw, N_BYTES),
                   *b = conf_raw_alloc (&rig.raw, N_BYTES);
  const TinySpan spans[] = { { a, 0, N_BYTES }, { b, 0, N_BYTES } };
  const TinyCommand command
      = conf_dispatch (rig.program, conf_script_get (&rig.script), spans, &rounds);
  gboolean runs
      = !conf_has_failed (trial) && time_launch (&rig.raw, &command, &least_ns, &said_ns);
  for (; runs && rounds <= most_rounds && here_ns < MAX (LONG_NS, 10 * least_ns); rounds *= 4)
    runs = time_launch (&rig.raw, &command, &here_ns, &said_ns);
  for (guint i = 0; runs && i < N_TRIES && !good; i++) {
    runs = time_launch (&rig.raw, &command, &here_ns, &said_ns);
    good = said_ns >= here_ns / 5 && said_ns <= here_ns + 2000;
  }
  conf_check (trial, good || !runs,
              "a launch that took %" G_GUINT64_FORMAT
              " ns here is said to have taken %" G_GUINT64_FORMAT,
              here_ns, said_ns);
  /* As the second of two, of which the first does nothing but begin, it is the longer one. */
  const gint64 none = 0;
  const TinyCommand two[]
      = { conf_dispatch (rig.program, conf_script_get (&rig.script), spans, &none), command };
  guint64 times[] = { 0, 0 };
  TinySubmit work
      = { .struct_size = sizeof work, .commands = two, .n_commands = 2, .out_ns = times };
  for (guint i = 0; runs && i < N_TRIES && times[1] <= times[0]; i++)
    runs = conf_table_submit (rig.raw.table, rig.raw.device, rig.raw.queue, &work,
                              &rig.raw.error)
           == TINY_STATUS_OK;
  conf_check (trial, !runs || times[1] > times[0],
              "a launch of no rounds is said to have taken %" G_GUINT64_FORMAT
              " ns, and one of %" G_GINT64_FORMAT " behind it %" G_GUINT64_FORMAT,
              times[0], rounds, times[1]);
  conf_raw_free (&rig.raw, a);
  conf_raw_free (&rig.raw, b);
  rig_end (&rig);
}

static void
run_empty (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  conf_raw_submit (&raw, NULL, 0, "submit of no commands");
  conf_raw_end (&raw);
}

/* ---- several queues and threads ---- */
typedef struct {
  const ConfSubject *subject;
  const Rig *rig; /* whose program all of them run */
  guint number, shape;
  char *failure; /* trials are told by their own thread only */
  ConfStep step; /* its own, that is compiled */
} Worker;

/* What a worker asks for goes through its own queue. */
static TinyStatus
submit_all (const Rig *rig,
            TinyPluginQueue *queue,
            const TinyCommand *commands,
            guint n,
            TinyPluginError *error)
{
  TinySubmit work = { .struct_size = sizeof work, .commands = commands, .n_commands = n };
  return conf_table_submit (rig->raw.table, rig->raw.device, queue, &work, error);
}

static void
work_round (Worker *self, TinyPluginQueue *queue, TinyPluginBuffer *const *buffers, guint round)
{
  g_autofree guint32 *words = g_new (guint32, N);
  TinyPluginError error = { .struct_size = sizeof error };
  const Rig *rig = self->rig;
  guint32 salt = self->number * 1000 + round;
  const TinyLinear *linear = &rig->script.linear;
  gint64 variables[] = { 0, 1 };
  const TinySpan there[] = { { buffers[1], 0, N_BYTES }, { buffers[0], 0, N_BYTES } };
  const TinySpan back[] = { { buffers[0], 0, N_BYTES }, { buffers[1], 0, N_BYTES } };
  fill_words (words, salt);
  const TinyCommand commands[]
      = { copy_command (TINY_COMMAND_UPLOAD, buffers[0], NULL, words),
          conf_dispatch (rig->program, linear, there, variables),
          conf_dispatch (rig->program, linear, back, variables + 1),
          copy_command (TINY_COMMAND_DOWNLOAD, NULL, buffers[0], words) };
  TinyStatus status = submit_all (rig, queue, commands, G_N_ELEMENTS (commands), &error);
  if (status != TINY_STATUS_OK) {
    self->failure = g_strdup_printf ("thread %u, round %u: submit: %s: %s", self->number, round,
                                     conf_status_to_string (status), error.text);
    return;
  }
  for (guint i = 0; i < N && self->failure == NULL; i++) {
    guint32 wanted = start_value (i, salt) * 9 + 1;
    if (words[i] != wanted)
      self->failure = g_strdup_printf ("thread %u, round %u: element %u is %u, and %u is right",
                                       self->number, round, i, words[i], wanted);
  }
}

static gpointer
work (gpointer data)
{
  Worker *self = data;
  const ConfRaw *raw = &self->rig->raw;
  TinyPluginError error = { .struct_size = sizeof error };
  TinyPluginQueue *queue = NULL;
  TinyPluginBuffer *buffers[2] = { NULL, NULL };
  if (raw->table->queue_create != NULL
      && raw->table->queue_create (raw->device, &queue, &error) != TINY_STATUS_OK) {
    self->failure = g_strdup_printf ("thread %u: queue_create: %s", self->number, error.text);
    return NULL;
  }
  for (guint round = 0; round < N_ROUNDS && self->failure == NULL; round++) {
    /* Memory comes and goes while others compute. */
    for (guint b = 0; b < 2 && round % 4 == 0; b++) {
      if (buffers[b] != NULL)
        raw->table->free (raw->device, buffers[b]);
      buffers[b] = NULL;
      if (raw->table->alloc (raw->device, N_BYTES, &buffers[b], &error) != TINY_STATUS_OK)
        self->failure = g_strdup_printf ("thread %u: alloc: %s", self->number, error.text);
    }
    if (self->failure == NULL)
      work_round (self, queue, buffers, round);
  }
  for (guint b = 0; b < 2; b++)
    if (buffers[b] != NULL)
      raw->table->free (raw->device, buffers[b]);
  if (raw->table->queue_destroy != NULL)
    raw->table->queue_destroy (raw->device, queue);
  return NULL;
}

static void
run_threads (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 16 };
  guint n = (guint) self->args[0];
  Worker workers[MOST] = { 0 };
  GThread *threads[MOST];
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  for (guint i = 0; i < n; i++) {
    workers[i] = (Worker){ .subject = subject, .rig = &rig, .number = i };
    threads[i] = g_thread_new ("conformance", work, &workers[i]);
  }
  for (guint i = 0; i < n; i++) {
    g_thread_join (threads[i]);
    conf_check (trial, workers[i].failure == NULL, "%s", workers[i].failure);
    g_free (workers[i].failure);
  }
  rig_end (&rig);
}

/* Two queues of one thread, by turns. */
static void
run_queues (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Worker worker = { .subject = subject };
  TinyPluginQueue *queues[2] = { NULL, NULL };
  TinyPluginBuffer *buffers[2][2] = { { NULL } };
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  worker.rig = &rig;
  for (guint q = 0; q < 2; q++) {
    if (rig.raw.table->queue_create != NULL)
      conf_check (trial,
                  rig.raw.table->queue_create (rig.raw.device, &queues[q], &rig.raw.error)
                      == TINY_STATUS_OK,
                  "queue_create: %s", rig.raw.error.text);
    for (guint b = 0; b < 2; b++)
      buffers[q][b] = conf_raw_alloc (&rig.raw, N_BYTES);
  }
  for (guint round = 0; round < N_ROUNDS && worker.failure == NULL && !conf_has_failed (trial);
       round++)
    work_round (&worker, queues[round % 2], buffers[round % 2], round);
  conf_check (trial, worker.failure == NULL, "%s", worker.failure);
  g_free (worker.failure);
  for (guint q = 0; q < 2; q++) {
    for (guint b = 0; b < 2; b++)
      conf_raw_free (&rig.raw, buffers[q][b]);
    if (rig.raw.table->queue_destroy != NULL)
      rig.raw.table->queue_destroy (rig.raw.device, queues[q]);
  }
  rig_end (&rig);
}

static gpointer
compile_some (gpointer data)
{
  Worker *self = data;
  for (guint i = 0; i < 6 && self->failure == NULL; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) binary = conf_step_compile (&self->step, &error);
    if (binary == NULL)
      self->failure = g_strdup_printf ("thread %u: compile: %s", self->number, error->message);
  }
  return NULL;
}

static void
run_compilers (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Worker workers[N_THREADS] = { 0 };
  GThread *threads[N_THREADS];
  if (!conf_needs (trial, subject->device, "device"))
    return;
  for (guint i = 0; i < N_THREADS; i++) {
    workers[i] = (Worker){ .subject = subject, .number = i };
    conf_step_init (&workers[i].step, trial, subject);
    threads[i] = g_thread_new ("conformance", compile_some, &workers[i]);
  }
  for (guint i = 0; i < N_THREADS; i++) {
    g_thread_join (threads[i]);
    conf_check (trial, workers[i].failure == NULL, "%s", workers[i].failure);
    g_free (workers[i].failure);
    conf_step_clear (&workers[i].step);
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name;
    ConfCase self;
  } cases[] = {
    { "empty", { .run = run_empty } },
    { "chain/one-submit", { .run = run_chain, .args = { 1, 0 } } },
    { "chain/many-submits", { .run = run_chain, .args = { 0, 0 } } },
    { "chain/with-copies", { .run = run_chain, .args = { 1, 1 } } },
    { "chain/with-copies-many", { .run = run_chain, .args = { 0, 1 } } },
    { "write-after-read", { .run = run_write_after_read } },
    { "times", { .run = run_times, .flags = CONF_ALONE } },
    { "queues/two", { .run = run_queues } },
    { "threads/2", { .run = run_threads, .args = { 2 } } },
    { "threads/8", { .run = run_threads, .level = CONF_FULL, .args = { 8 } } },
    { "threads/compile", { .run = run_compilers } },
  };
  const ConfCase overlaps = { .run = run_overlaps }, empty = { .run = run_empty },
                 compilers = { .run = run_compilers },
                 times = { .run = run_long_time, .flags = CONF_ALONE };
  if (subject->device == NULL)
    return;
  conf_list_elsewhere (out);
  if (conf_only_claims (subject)) {
    conf_list_add (out, &empty, "empty");
    conf_list_add (out, &compilers, "threads/compile");
    conf_list_series (out);
    return;
  }
  if ((tiny_device_get_info (subject->device)->flags & TINY_DEVICE_RUNS_NOTHING) == 0)
    conf_list_add (out, &times, "times-of-long-ones");
  else
    conf_list_absent (out, "the device runs nothing", "times-of-long-ones");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    conf_list_add (out, &cases[i].self, "%s", cases[i].name);
  conf_list_repeats (out);
  if ((tiny_device_get_info (subject->device)->flags & TINY_DEVICE_OVERLAPS) != 0)
    conf_list_add (out, &overlaps, "overlaps");
  else
    conf_list_absent (out, "the device has not TINY_DEVICE_OVERLAPS", "overlaps");
}

const ConfGroup conf_group_order
    = { "order", "commands seem to run one after the other, from every thread", list };
