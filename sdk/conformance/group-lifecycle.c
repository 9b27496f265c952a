/* SPDX-License-Identifier: MIT
 *
 * group-lifecycle.c: opened and closed in every order and many times, nothing is left; a process that
 * forks or ends meanwhile does so unharmed. Each case has a process of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/tiny-queue.h"
#include "device/tiny-table.h"
#include "fresh.h"

enum { LEAK_BYTES = 64 << 10, CHILD_SECONDS = 20 };

/* ---- cycles ---- */
static gboolean
cycle_module (ConfTrial *trial, gpointer data)
{
  GError *error = NULL;
  const ConfSubject *bare = data;
  TinyBackend *backend = tiny_backend_load (bare->path, &error);
  g_clear_object (&backend);
  return conf_check_error (trial, error, "load");
}

/* The quickest of several, which no other work on the machine makes slow. */
static void
run_init (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { TIMES = 3, MOST_MS = 500 };
  gint64 least_us = G_MAXINT64;
  for (guint i = 0; i < TIMES && !conf_has_failed (trial); i++) {
    const gint64 begin = g_get_monotonic_time ();
    cycle_module (trial, (gpointer) subject);
    least_us = MIN (least_us, g_get_monotonic_time () - begin);
  }
  conf_check (trial, least_us < MOST_MS * 1000,
              "loading it, init() and fini() take %" G_GINT64_FORMAT
              " ms, %d are the most: init() accesses no device and takes less than 50 ms",
              least_us / 1000, MOST_MS);
}

static gboolean
cycle_device (ConfTrial *trial, gpointer data)
{
  ConfSubject own;
  if (!conf_fresh_open (trial, data, &own))
    return FALSE;
  conf_fresh_close (&own);
  return TRUE;
}

static gboolean
cycle_use (ConfTrial *trial, gpointer data)
{
  ConfSubject own;
  if (!conf_fresh_open (trial, data, &own))
    return FALSE;
  conf_fresh_use (trial, &own);
  conf_fresh_close (&own);
  return !conf_has_failed (trial);
}

static void
run_cycles (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static gboolean (*const works[]) (ConfTrial *, gpointer)
      = { cycle_module, cycle_device, cycle_use };
  conf_check_growth (trial, (guint) self->args[1], LEAK_BYTES, works[self->args[0]],
                     (gpointer) subject);
}

/* ---- objects of one device ---- */
typedef struct {
  ConfRaw raw;
  const ConfSubject *subject;
  ConfStep step;
  GBytes *binary;
  TinyPluginProgram *program;
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS];
} Objects;

static gboolean
cycle_buffers (ConfTrial *trial, gpointer data)
{
  Objects *self = data;
  TinyPluginBuffer *buffer = conf_raw_alloc (&self->raw, 5000);
  conf_raw_free (&self->raw, buffer);
  return buffer != NULL;
}

static gboolean
cycle_queues (ConfTrial *trial, gpointer data)
{
  Objects *self = data;
  ConfRaw other;
  if (!conf_raw_begin (&other, trial, self->subject))
    return FALSE;
  conf_raw_end (&other);
  return TRUE;
}

static gboolean
cycle_launches (ConfTrial *trial, gpointer data)
{
  Objects *self = data;
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  conf_step_get_spans (&self->step, self->buffers, spans);
  const TinyCommand command = conf_step_dispatch (&self->step, self->program, spans);
  return conf_raw_submit (&self->raw, &command, 1, "dispatch");
}

/* Loaded, run and unloaded. */
static gboolean
cycle_programs (ConfTrial *trial, gpointer data)
{
  Objects *self = data;
  TinyPluginProgram *program = NULL, *before = self->program;
  gsize size;
  const void *binary = g_bytes_get_data (self->binary, &size);
  TinyStatus status = conf_step_load (&self->step, &self->raw, binary, size, &program);
  if (!conf_check (trial, status == TINY_STATUS_OK, "program_load: %s", self->raw.error.text))
    return FALSE;
  self->program = program;
  gboolean good = cycle_launches (trial, self);
  self->program = before;
  conf_raw_unload (&self->raw, program);
  return good;
}

static gboolean
cycle_compiles (ConfTrial *trial, gpointer data)
{
  Objects *self = data;
  GError *error = NULL;
  g_autoptr (GBytes) binary = conf_step_compile (&self->step, &error);
  return conf_check_error (trial, error, "compile");
}

static gboolean
cycle_copies (ConfTrial *trial, gpointer data)
{
  Objects *self = data;
  guint8 bytes[1024] = { 0 };
  gsize n = sizeof bytes;
  for (guint i = 0; i < 2; i++)
    n = MIN (n, conf_raw_round (&self->raw, self->step.n_bytes[i]));
  return conf_raw_upload (&self->raw, self->buffers[0], 0, bytes, n)
         && conf_raw_copy (&self->raw, self->buffers[1], 0, self->buffers[0], 0, n)
         && conf_raw_download (&self->raw, self->buffers[1], 0, bytes, n);
}

static gboolean
objects_begin (Objects *self, ConfTrial *trial, const ConfSubject *subject)
{
  g_autoptr (GError) error = NULL;
  *self = (Objects){ .subject = subject };
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  if (!conf_step_init (&self->step, trial, subject))
    return FALSE;
  self->binary = conf_step_compile (&self->step, &error);
  if (self->binary == NULL)
    return conf_check_error (trial, g_steal_pointer (&error), "compile");
  self->program = conf_step_build (&self->step, &self->raw);
  conf_step_alloc (&self->step, &self->raw, self->buffers);
  return !conf_has_failed (trial);
}

static void
objects_end (Objects *self)
{
  conf_step_free (&self->step, &self->raw, self->buffers);
  conf_raw_unload (&self->raw, self->program);
  g_clear_pointer (&self->binary, g_bytes_unref);
  conf_step_clear (&self->step);
  conf_raw_end (&self->raw);
}

static void
run_objects (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static gboolean (*const works[]) (ConfTrial *, gpointer)
      = { cycle_buffers,  cycle_queues, cycle_programs,
          cycle_launches, cycle_copies, cycle_compiles };
  Objects objects;
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  /* A driver may keep a little of every object there ever was: that of 2000 is allowed. */
  const guint n = (guint) self->args[1];
  if (objects_begin (&objects, trial, &own))
    conf_check_growth (trial, n, LEAK_BYTES * MAX (1, n / 2000), works[self->args[0]],
                       &objects);
  objects_end (&objects);
  conf_fresh_close (&own);
}

/* ---- many failures ---- */
typedef enum { FAIL_SUBMIT, FAIL_LOAD, FAIL_ALLOC } Failure;

typedef struct {
  Objects objects;
  Failure failure;
  guint n_done;
} Failures;

/* Asks for something that cannot be done. One that is accepted is another case's to judge. */
static void
fail (Objects *self, Failure failure)
{
  static const TinyCommand command
      = { .struct_size = sizeof command, .type = 0xffff, .grid = { 1, 1, 1 } };
  TinySubmit work = { .struct_size = sizeof work, .commands = &command, .n_commands = 1 };
  TinyPluginProgram *program = NULL;
  gsize size;
  switch (failure) {
  case FAIL_SUBMIT:
    tiny_plugin_error_init (&self->raw.error);
    conf_table_submit (self->raw.table, self->raw.device, self->raw.queue, &work,
                       &self->raw.error);
    break;
  case FAIL_LOAD:
    if (conf_step_load (&self->step, &self->raw, g_bytes_get_data (self->binary, &size), 0,
                        &program)
        == TINY_STATUS_OK)
      conf_raw_unload (&self->raw, program);
    break;
  default:
    conf_raw_free (&self->raw, conf_raw_try_alloc (&self->raw, G_MAXUINT64 / 2 + 1));
  }
}

/* A failure; the very next submission is done as if there had been none. */
static gboolean
cycle_failures (ConfTrial *trial, gpointer data)
{
  Failures *self = data;
  Objects *objects = &self->objects;
  guint8 bytes[1024];
  const gsize n = MIN (sizeof bytes, objects->step.n_bytes[0]);
  conf_fill (bytes, n, ++self->n_done);
  fail (objects, self->failure);
  return conf_raw_upload (&objects->raw, objects->buffers[0], 0, bytes, n)
         && conf_raw_download (&objects->raw, objects->buffers[0], 0, bytes, n)
         && conf_check_fill (trial, bytes, n, self->n_done, 0, "after a failure");
}

/* args: the failure. */
static void
run_failures (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { TIMES = 64 };
  Failures failures = { .failure = (Failure) self->args[0] };
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  if (objects_begin (&failures.objects, trial, &own))
    conf_check_growth (trial, TIMES, LEAK_BYTES, cycle_failures, &failures);
  objects_end (&failures.objects);
  conf_fresh_close (&own);
}

/* ---- many in one process ---- */
enum { N_KEPT = 80, N_LOADS = 700 };

/* Launches x + @add of the word @x. */
static gboolean
check_program (
    Objects *self, ConfScript *script, TinyPluginProgram *program, guint add, guint x)
{
  guint32 word = x;
  const TinySpan spans[] = { { self->buffers[0], 0, self->step.n_bytes[0] },
                             { self->buffers[1], 0, self->step.n_bytes[1] } };
  const guint n = MAX (self->raw.unit, sizeof word);
  guint8 room[64] = { 0 };
  memcpy (room, &word, sizeof word);
  const TinyCommand command = conf_dispatch (program, conf_script_get (script), spans, NULL);
  gboolean good = conf_raw_upload (&self->raw, self->buffers[1], 0, room, n)
                  && conf_raw_submit (&self->raw, &command, 1, "dispatch")
                  && conf_raw_download (&self->raw, self->buffers[0], 0, room, n);
  memcpy (&word, room, sizeof word);
  return good
         && conf_check (self->raw.trial, word == x + add, "program %u gives %u for %u + %u", x,
                        word, x, add);
}

/* Program @k of two kinds, x + 5 and x + 6, each by a binary of its own. */
static TinyPluginProgram *
load_kind (Objects *self, ConfScript *scripts, GBytes **binaries, guint k)
{
  gsize size;
  TinyPluginProgram *program = NULL;
  const void *binary = g_bytes_get_data (binaries[k], &size);
  TinyStatus status = conf_raw_load (&self->raw, self->subject->target,
                                     conf_script_get (&scripts[k]), binary, size, &program);
  conf_check (self->raw.trial, status == TINY_STATUS_OK, "program_load: %s",
              self->raw.error.text);
  return program;
}

/* The first stays loaded, all others are of the other kind, @N_KEPT of them at a time. */
static void
load_many (Objects *self, ConfScript *scripts, GBytes **binaries)
{
  TinyPluginProgram *kept[N_KEPT] = { NULL };
  ConfTrial *trial = self->raw.trial;
  TinyPluginProgram *first = load_kind (self, scripts, binaries, 0);
  for (guint i = 1; i < N_LOADS && !conf_has_failed (trial); i++) {
    TinyPluginProgram **program = &kept[i % N_KEPT];
    if (*program != NULL && check_program (self, &scripts[1], *program, 6, i - N_KEPT))
      conf_raw_unload (&self->raw, g_steal_pointer (program));
    *program = conf_has_failed (trial) ? NULL : load_kind (self, scripts, binaries, 1);
    if (*program != NULL)
      check_program (self, &scripts[1], *program, 6, i);
    if (i % N_KEPT == 0 && !conf_has_failed (trial))
      check_program (self, &scripts[0], first, 5, 0);
  }
  for (guint i = 0; i < N_KEPT; i++)
    conf_raw_unload (&self->raw, kept[i]);
  conf_raw_unload (&self->raw, first);
}

static void
run_loads (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  GBytes *binaries[2] = { NULL };
  ConfScript scripts[2];
  Objects objects;
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  gboolean good = objects_begin (&objects, trial, &own);
  for (guint k = 0; k < 2; k++)
    conf_step_init_add (&scripts[k], 5 + k);
  for (guint k = 0; k < 2 && good && !objects.step.is_claimed; k++) {
    GError *error = NULL;
    binaries[k] = conf_linear_compile (tiny_device_get_renderer (own.device), own.target,
                                       tiny_device_get_name (own.device),
                                       conf_script_get (&scripts[k]), &error);
    good = conf_check_error (trial, error, "compile");
  }
  if (good && binaries[0] != NULL)
    load_many (&objects, scripts, binaries);
  for (guint k = 0; k < 2; k++) {
    g_clear_pointer (&binaries[k], g_bytes_unref);
    conf_script_clear (&scripts[k]);
  }
  objects_end (&objects);
  conf_fresh_close (&own);
}

/* ---- orders of ending ---- */
/* A buffer, a program and a queue, used and then ended in the order of a permutation, then the device. */
static void
run_ending (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const guint8 orders[6][3]
      = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
  Objects objects;
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  if (objects_begin (&objects, trial, &own))
    cycle_launches (trial, &objects);
  for (guint i = 0; i < 3; i++)
    switch (orders[self->args[0]][i]) {
    case 0:
      conf_step_free (&objects.step, &objects.raw, objects.buffers);
      break;
    case 1:
      conf_raw_unload (&objects.raw, g_steal_pointer (&objects.program));
      break;
    default:
      conf_raw_end (&objects.raw);
    }
  g_clear_pointer (&objects.binary, g_bytes_unref);
  conf_step_clear (&objects.step);
  conf_fresh_close (&own);
  if (!conf_has_failed (trial) && conf_fresh_open (trial, subject, &own)) {
    conf_fresh_use (trial, &own);
    conf_fresh_close (&own);
  }
}

/* ---- twice at once ---- */
/* A second opening of the same device works, or is refused with a reason; the first goes on. */
static void
run_twice (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  gboolean first_ends_first = self->args[0] != 0;
  g_autoptr (GError) error = NULL;
  ConfSubject first, second;
  if (!conf_fresh_open (trial, subject, &first))
    return;
  second = first;
  const TinyDeviceOptions options = { .name = "second", .id = subject->id, .is_alone = TRUE };
  second.backend = g_object_ref (first.backend);
  second.device = tiny_device_new (first.backend, &options, &error);
  if (second.device == NULL) {
    conf_check (trial, strlen (error->message) > strlen ("second: open: "),
                "a second opening is refused without a reason");
    g_object_unref (second.backend);
  } else {
    second.target = tiny_device_get_target (second.device);
    conf_fresh_use (trial, &second);
    conf_fresh_use (trial, &first);
    conf_fresh_close (first_ends_first ? &first : &second);
    conf_fresh_use (trial, first_ends_first ? &second : &first);
    if (first_ends_first)
      first = second;
  }
  conf_fresh_use (trial, &first);
  conf_fresh_close (&first);
}

/* Every device that scan() finds, all open at once. */
static void
run_all (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 16 };
  GError *error = NULL;
  ConfSubject devices[MOST];
  guint n = 0;
  TinyBackend *backend = tiny_backend_load (subject->path, &error);
  if (!conf_check_error (trial, error, "load"))
    return;
  g_autofree TinyCandidates *found = tiny_backend_scan (backend, NULL);
  for (guint i = 0; found != NULL && i < found->n && n < MOST; i++) {
    ConfSubject one = *subject;
    one.id = found->at[i].id;
    if (conf_fresh_open (trial, &one, &devices[n]))
      n++;
  }
  for (guint i = 0; i < n; i++)
    conf_fresh_use (trial, &devices[i]);
  for (guint i = 0; i < n; i++) {
    conf_fresh_close (&devices[i]);
    if (i + 1 < n)
      conf_fresh_use (trial, &devices[i + 1]);
  }
  g_object_unref (backend);
}

/* ---- fork and exit ---- */
/* What became of a child; says so where it is not status 0. */
static void
check_child (ConfTrial *trial, pid_t pid, const char *what)
{
  int status = 0;
  pid_t got = 0;
  for (guint i = 0; i < CHILD_SECONDS * 100 && got == 0; i++) {
    got = waitpid (pid, &status, WNOHANG);
    if (got == 0)
      g_usleep (10000);
  }
  if (got == 0) {
    kill (pid, SIGKILL);
    waitpid (pid, &status, 0);
    conf_fail (trial, "%s: the child hangs", what);
    return;
  }
  conf_check (trial, !WIFSIGNALED (status), "%s: the child crashes with signal %d (%s)", what,
              WTERMSIG (status), g_strsignal (WTERMSIG (status)));
  conf_check (trial, !WIFEXITED (status) || WEXITSTATUS (status) == 0,
              "%s: the child ends with status %d", what, WEXITSTATUS (status));
}

/* A child of a program that has the device open, and does not touch it, ends as others do. */
static void
run_fork (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfSubject own;
  if (!conf_fresh_open (trial, subject, &own))
    return;
  conf_fresh_use (trial, &own);
  pid_t pid = fork ();
  if (pid == 0)
    conf_child_exit (0);
  check_child (trial, pid, "fork while the device is open");
  conf_fresh_use (trial, &own);
  conf_fresh_close (&own);
}

/* A program that ends with the device open, with all that it used still there, ends well. */
static void
run_exit (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  pid_t pid
      = fork (); /* before anything was loaded, so that the child is a program of its own */
  if (pid == 0) {
    ConfSubject own;
    Objects objects;
    gboolean good = conf_fresh_open (trial, subject, &own)
                    && objects_begin (&objects, trial, &own)
                    && cycle_launches (trial, &objects);
    conf_child_exit (good ? 0 : 3);
  }
  check_child (trial, pid, "exit() while the device is open");
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name;
    ConfCase self;
  } cases[] = {
    { "init", { .run = run_init } },
    { "cycle/init", { .run = run_cycles, .args = { 0, 50 } } },
    { "cycle/open", { .run = run_cycles, .args = { 1, 50 } } },
    { "cycle/use",
      { .run = run_cycles, .level = CONF_FULL, .args = { 2, 25 }, .seconds = 180 } },
    { "objects/buffers", { .run = run_objects, .args = { 0, 2000 } } },
    { "objects/buffers-70000", { .run = run_objects, .args = { 0, 35000 } } },
    { "objects/loads", { .run = run_loads } },
    { "objects/queues", { .run = run_objects, .args = { 1, 500 } } },
    { "objects/programs", { .run = run_objects, .args = { 2, 200 } } },
    { "objects/launches", { .run = run_objects, .args = { 3, 3000 } } },
    { "objects/copies", { .run = run_objects, .args = { 4, 2000 } } },
    { "objects/compiles", { .run = run_objects, .args = { 5, 50 } } },
    { "failures/submit", { .run = run_failures, .args = { FAIL_SUBMIT } } },
    { "failures/load", { .run = run_failures, .args = { FAIL_LOAD } } },
    { "failures/alloc", { .run = run_failures, .args = { FAIL_ALLOC } } },
    { "twice/second-first", { .run = run_twice, .args = { 0 } } },
    { "twice/first-first", { .run = run_twice, .args = { 1 } } },
    { "all-devices", { .run = run_all } },
    { "fork", { .run = run_fork } },
    { "exit/open", { .run = run_exit } },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    ConfCase it = cases[i].self;
    it.flags |= CONF_FRESH;
    conf_list_add (out, &it, "%s", cases[i].name);
  }
  for (guint i = 0; i < 6; i++) {
    const ConfCase it = { .run = run_ending, .flags = CONF_FRESH, .args = { i } };
    conf_list_add (out, &it, "ending/%u", i);
  }
}

const ConfGroup conf_group_lifecycle
    = { "lifecycle", "opened and closed in every order and many times, nothing is left", list };
