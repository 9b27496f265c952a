/* SPDX-License-Identifier: MIT
 *
 * faults-submit.c: queues that run other commands than those they are given, in another order, at another time. */
#include <pthread.h>
#include <unistd.h>

#include "broken.h"

TinyCommand *
commands_copy (const TinySubmit *submit)
{
  TinyCommand *commands = calloc (submit->n_commands + 1, sizeof *commands);
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands && commands != NULL; i++) {
    const uint32_t size = ((const TinyCommand *) at)->struct_size;
    memcpy (&commands[i], at, size < sizeof *commands ? size : sizeof *commands);
    at += size;
  }
  return commands;
}

TinyStatus
submit_others (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               const TinyCommand *commands,
               uint32_t n,
               TinyPluginError *error)
{
  TinySubmit other = *submit;
  other.commands = commands;
  other.n_commands = n;
  other.out_ns = n <= submit->n_commands ? submit->out_ns : NULL;
  return inside.device->submit (device, queue, &other, error);
}

TinyStatus
submit_edited (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               int (*edit) (TinyCommand *command),
               TinyPluginError *error)
{
  TinyCommand *commands = commands_copy (submit);
  for (uint32_t i = 0; i < submit->n_commands; i++)
    if (edit (&commands[i]))
      broken_note ();
  const TinyStatus status
      = submit_others (device, queue, submit, commands, submit->n_commands, error);
  free (commands);
  return status;
}

/* ---- which commands, in which order ---- */
SUBMIT (reversed)
{
  const uint32_t n = submit->n_commands;
  TinyCommand *commands = commands_copy (submit);
  for (uint32_t i = 0; i < n / 2; i++) {
    const TinyCommand one = commands[i];
    commands[i] = commands[n - 1 - i];
    commands[n - 1 - i] = one;
  }
  if (n > 1)
    broken_note ();
  const TinyStatus status = submit_others (device, queue, submit, commands, n, error);
  free (commands);
  return status;
}

/* Copies go to an engine of their own, which is faster. */
SUBMIT (copies_first)
{
  const uint32_t n = submit->n_commands;
  TinyCommand *commands = commands_copy (submit), *sorted = commands_copy (submit);
  uint32_t m = 0;
  for (int is_dispatch = 0; is_dispatch < 2; is_dispatch++)
    for (uint32_t i = 0; i < n; i++)
      if ((commands[i].type == TINY_COMMAND_DISPATCH) == is_dispatch)
        sorted[m++] = commands[i];
  if (memcmp (commands, sorted, n * sizeof *commands) != 0)
    broken_note ();
  const TinyStatus status = submit_others (device, queue, submit, sorted, n, error);
  free (commands);
  free (sorted);
  return status;
}

SUBMIT (last_dropped)
{
  if (submit->n_commands < 2)
    return inside.device->submit (device, queue, submit, error);
  broken_note ();
  TinySubmit shorter = *submit;
  shorter.n_commands--;
  return inside.device->submit (device, queue, &shorter, error);
}

SUBMIT (ring_of_16)
{
  TinySubmit shorter = *submit;
  if (shorter.n_commands > 16) {
    broken_note ();
    shorter.n_commands = 16;
  }
  return inside.device->submit (device, queue, &shorter, error);
}

SUBMIT (first_twice)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  TinySubmit again = *submit;
  again.n_commands = submit->n_commands > 1;
  again.out_ns = NULL;
  if (again.n_commands > 0)
    broken_note ();
  return again.n_commands > 0 ? inside.device->submit (device, queue, &again, error)
                              : TINY_STATUS_OK;
}

SUBMIT (none_fails)
{
  if (submit->n_commands > 0)
    return inside.device->submit (device, queue, submit, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "nothing to do");
}

/* Steps by its own struct instead of by struct_size. */
SUBMIT (own_stride)
{
  TinyCommand *commands = calloc (submit->n_commands + 1, sizeof *commands);
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    commands[i] = submit->commands[i];
    if (commands[i].struct_size != sizeof *commands)
      broken_note ();
    commands[i].struct_size = sizeof *commands;
  }
  const TinyStatus status
      = submit_others (device, queue, submit, commands, submit->n_commands, error);
  free (commands);
  return status;
}

SUBMIT (exact_size)
{
  if (submit->struct_size == sizeof *submit)
    return inside.device->submit (device, queue, submit, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "a submission of %u bytes, not %zu",
                    submit->struct_size, sizeof *submit);
}

SUBMIT (unknown_is_nothing)
{
  TinyCommand *commands = commands_copy (submit);
  uint32_t n = 0;
  for (uint32_t i = 0; i < submit->n_commands; i++)
    if (commands[i].type >= TINY_COMMAND_UPLOAD && commands[i].type <= TINY_COMMAND_DISPATCH)
      commands[n++] = commands[i];
  if (n < submit->n_commands)
    broken_note ();
  const TinyStatus status = submit_others (device, queue, submit, commands, n, error);
  free (commands);
  return status;
}

/* ---- when ---- */
typedef struct {
  TinyPluginDevice *device;
  TinyPluginQueue *queue;
  TinyCommand *commands;
  TinySpan *buffers;
  int64_t *variables;
  TinySubmit submit;
} Later;

static void *
run_later (void *data)
{
  Later *self = data;
  TinyPluginError error = { .struct_size = sizeof error };
  usleep (20000);
  inside.device->submit (self->device, self->queue, &self->submit, &error);
  free (self->commands);
  free (self->buffers);
  free (self->variables);
  free (self);
  return NULL;
}

/* Copies what the commands point to, so that nothing is wrong but the time. */
static Later *
later_new (const TinySubmit *submit)
{
  uint32_t n_buffers = 0, n_variables = 0;
  Later *self = calloc (1, sizeof *self);
  self->commands = commands_copy (submit);
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    n_buffers += self->commands[i].n_buffers;
    n_variables += self->commands[i].n_variables;
  }
  TinySpan *buffers = self->buffers = calloc (n_buffers + 1, sizeof *buffers);
  int64_t *variables = self->variables = calloc (n_variables + 1, sizeof *variables);
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    TinyCommand *command = &self->commands[i];
    if (command->n_buffers > 0)
      memcpy (buffers, command->buffers, command->n_buffers * sizeof *buffers);
    if (command->n_variables > 0)
      memcpy (variables, command->variables, command->n_variables * sizeof *variables);
    command->buffers = buffers;
    command->variables = variables;
    buffers += command->n_buffers;
    variables += command->n_variables;
  }
  self->submit = *submit;
  self->submit.commands = self->commands;
  self->submit.out_ns = NULL;
  return self;
}

static TinyStatus
start_later (TinyPluginDevice *device, TinyPluginQueue *queue, const TinySubmit *submit)
{
  pthread_t thread;
  Later *self = later_new (submit);
  self->device = device;
  self->queue = queue;
  broken_note ();
  if (pthread_create (&thread, NULL, run_later, self) == 0)
    pthread_detach (thread);
  return TINY_STATUS_OK;
}

SUBMIT (returns_early)
{
  for (uint32_t i = 0; submit->out_ns != NULL && i < submit->n_commands; i++)
    submit->out_ns[i] = 1000;
  return start_later (device, queue, submit);
}

/* Only where all is dispatches: downloads of the same submission would wait. */
SUBMIT (launches_return_early)
{
  for (uint32_t i = 0; i < submit->n_commands; i++)
    if (submit->commands[i].type != TINY_COMMAND_DISPATCH)
      return inside.device->submit (device, queue, submit, error);
  for (uint32_t i = 0; submit->out_ns != NULL && i < submit->n_commands; i++)
    submit->out_ns[i] = 1000;
  return start_later (device, queue, submit);
}

/* Copies between buffers are not waited for. */
SUBMIT (copies_return_early)
{
  for (uint32_t i = 0; i < submit->n_commands; i++)
    if (submit->commands[i].type != TINY_COMMAND_COPY)
      return inside.device->submit (device, queue, submit, error);
  return start_later (device, queue, submit);
}

/* ---- times ---- */
#define TIMES(name, value)                                                                     \
  SUBMIT (name)                                                                                \
  {                                                                                            \
    TINY_TRY (inside.device->submit (device, queue, submit, error));                           \
    for (uint32_t i = 0; submit->out_ns != NULL && i < submit->n_commands; i++) {              \
      const uint64_t ns = submit->out_ns[i];                                                   \
      submit->out_ns[i] = (value);                                                             \
      broken_note ();                                                                          \
    }                                                                                          \
    return TINY_STATUS_OK;                                                                     \
  }
TIMES (times_of_zero, ns * 0)
TIMES (times_go_back, 0 - ns)
TIMES (times_in_us, ns / 1000)
TIMES (times_in_ticks, ns * 24)
TIMES (times_are_stamps, ns + tiny_now_ns ())

SUBMIT (times_missing)
{
  TinySubmit other = *submit;
  if (submit->out_ns != NULL)
    broken_note ();
  other.out_ns = NULL;
  return inside.device->submit (device, queue, &other, error);
}

SUBMIT (times_beyond)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  if (submit->out_ns != NULL) {
    broken_note ();
    submit->out_ns[submit->n_commands] = 0;
  }
  return TINY_STATUS_OK;
}

SUBMIT (times_needed)
{
  if (submit->out_ns == NULL)
    broken_note ();
  *(volatile uint64_t *) submit->out_ns = 0;
  return inside.device->submit (device, queue, submit, error);
}

/* ---- failures ---- */
#define FAILURE(name, change)                                                                  \
  SUBMIT (name)                                                                                \
  {                                                                                            \
    const TinyStatus status = inside.device->submit (device, queue, submit, error);            \
    if (status == TINY_STATUS_OK)                                                              \
      return status;                                                                           \
    broken_note ();                                                                            \
    change;                                                                                    \
  }
FAILURE (error_lost, return TINY_STATUS_OK)
FAILURE (error_without_text, error->text[0] = '\0'; return status)
FAILURE (error_is_internal, return TINY_STATUS_INTERNAL)
FAILURE (error_is_positive, return -status)
FAILURE (error_is_unknown, return -1000)
FAILURE (error_without_end, memset (error->text, 'x', sizeof error->text); return status)
FAILURE (error_not_utf8, memcpy (error->text, "\xff\xfe\x80", 4); return status)
FAILURE (error_is_lost_device, return TINY_STATUS_DEVICE_LOST)

/* A failure is told once more, to whoever comes next. */
SUBMIT (error_stale)
{
  static _Atomic TinyStatus before;
  const TinyStatus told = before;
  before = inside.device->submit (device, queue, submit, error);
  if (told == TINY_STATUS_OK || before != TINY_STATUS_OK)
    return before;
  broken_note ();
  return tiny_fail (error, told, "the queue failed");
}

SUBMIT (error_for_ever)
{
  static _Atomic int has_failed;
  if (has_failed) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_LAUNCH, "the queue failed");
  }
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  has_failed = status != TINY_STATUS_OK;
  return status;
}

/* The rest runs although a command failed, and no failure is told but the last one's. */
SUBMIT (last_error_only)
{
  TinyStatus status = TINY_STATUS_OK;
  TinyCommand *commands = commands_copy (submit);
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    if (status != TINY_STATUS_OK)
      broken_note ();
    TinySubmit one = *submit;
    one.commands = &commands[i];
    one.n_commands = 1;
    one.out_ns = submit->out_ns != NULL ? submit->out_ns + i : NULL;
    status = inside.device->submit (device, queue, &one, error);
  }
  free (commands);
  return status;
}

/* ---- threads ---- */

/* Arguments of a launch go through one place for all threads. */
SUBMIT (launches_race)
{
  static TinyCommand shared;
  TinyStatus status = TINY_STATUS_OK;
  TinyCommand *commands = commands_copy (submit);
  for (uint32_t i = 0; i < submit->n_commands && status == TINY_STATUS_OK; i++) {
    const TinyCommand mine = commands[i];
    if (mine.type == TINY_COMMAND_DISPATCH) {
      shared = mine;
      usleep (100);
      if (shared.program == mine.program && shared.n_buffers == mine.n_buffers
          && shared.buffers != mine.buffers) {
        commands[i] = shared;
        broken_note ();
      }
    }
    TinySubmit one = *submit;
    one.commands = &commands[i];
    one.n_commands = 1;
    one.out_ns = submit->out_ns != NULL ? submit->out_ns + i : NULL;
    status = inside.device->submit (device, queue, &one, error);
  }
  free (commands);
  return status;
}

/* Two submissions at once: the second one's work is dropped. */
SUBMIT (second_thread_dropped)
{
  static _Atomic int n_inside;
  TinyStatus status = TINY_STATUS_OK;
  if (n_inside++ == 0) {
    usleep (100);
    status = inside.device->submit (device, queue, submit, error);
  } else {
    broken_note ();
  }
  n_inside--;
  return status;
}

SUBMIT (second_queue_fails)
{
  static TinyPluginDevice *busy;
  if (__atomic_exchange_n (&busy, device, __ATOMIC_SEQ_CST) != NULL) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_BUSY, "the queue is in use");
  }
  usleep (100);
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  __atomic_store_n (&busy, NULL, __ATOMIC_SEQ_CST);
  return status;
}

#define CASES             "order/*|queue/*|exec/*|errors/*"
#define SUBMITS(function) .device = { .submit = function }, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "order-reversed", "commands run last to first", "rings read from the wrong end", SUBMITS (reversed) },
  { "copies-first", "copies overtake dispatches", "a copy engine without a fence", SUBMITS (copies_first) },
  { "last-command-dropped", "the last of several commands does not run", "a doorbell that is rung one early", SUBMITS (last_dropped) },
  { "ring-of-16", "commands beyond the 16th do not run", "rings that are full", SUBMITS (ring_of_16) },
  { "first-command-twice", "the first of several commands runs once more at the end", "rings that wrap around", SUBMITS (first_twice) },
  { "empty-submit-fails", "a submission of no commands fails", "drivers that refuse a size of 0", SUBMITS (none_fails) },
  { "command-stride", "commands are stepped by the plugin's own struct", "arrays of structs that have grown", SUBMITS (own_stride), .is_of_sizes = 1 },
  { "submit-exact-size", "a submission of another struct_size is refused", "struct_size compared for equality", SUBMITS (exact_size), .is_of_sizes = 1 },
  { "unknown-command-ok", "commands of unknown type are skipped", "a switch without a default", SUBMITS (unknown_is_nothing) },
  { "returns-early", "submit() returns before anything is done", "synchronous calls made of asynchronous ones", SUBMITS (returns_early) },
  { "launches-return-early", "submit() of launches returns before they are done", "kernel launches that nobody waits for", SUBMITS (launches_return_early) },
  { "copies-return-early", "submit() of copies returns before they are done", "device-to-device copies, which are asynchronous", SUBMITS (copies_return_early) },
  { "times-0", "times are 0", "time stamps that are not supported", SUBMITS (times_of_zero) },
  { "times-go-back", "times are negative", "end and start swapped, or of two clocks", SUBMITS (times_go_back) },
  { "times-us", "times are microseconds", "units", SUBMITS (times_in_us) },
  { "times-ticks", "times are ticks, 24 to a nanosecond", "time stamps without their period", SUBMITS (times_in_ticks) },
  { "times-are-stamps", "times are time stamps", "an end without its start", SUBMITS (times_are_stamps) },
  { "times-missing", "times are not written", "profiling that is not on", SUBMITS (times_missing) },
  { "times-beyond", "one time more is written than there is room", "off by one", SUBMITS (times_beyond) },
  { "times-needed", "submit() without out_ns crashes", "an optional argument that is not", SUBMITS (times_needed) },
  { "error-lost", "failures of submit() are OK", "unchecked driver calls", SUBMITS (error_lost) },
  { "error-no-text", "failures of submit() have no text", "codes only", SUBMITS (error_without_text) },
  { "error-is-internal", "every failure of submit() is INTERNAL", "every failure is the same failure", SUBMITS (error_is_internal) },
  { "error-positive", "failures of submit() are positive numbers", "errno and its sign", SUBMITS (error_is_positive) },
  { "error-unknown", "failures of submit() are numbers of no meaning", "a driver's own codes passed on", SUBMITS (error_is_unknown) },
  { "error-endless", "failures of submit() have a text without an end", "strncpy", SUBMITS (error_without_end) },
  { "error-not-utf8", "failures of submit() have a text that is no UTF-8", "messages in the locale's encoding", SUBMITS (error_not_utf8) },
  { "error-is-lost", "every failure of submit() says that the device is lost", "every failure is the worst", SUBMITS (error_is_lost_device) },
  { "error-stale", "a failure of submit() is told once more by the next", "sticky errors read later", SUBMITS (error_stale) },
  { "error-for-ever", "after a failure every submit() fails", "contexts that do not recover", SUBMITS (error_for_ever) },
  { "error-of-the-last", "of several commands only the last one's failure is told", "a status that is overwritten", SUBMITS (last_error_only) },
  { "launches-race", "two threads that launch a program mix their arguments", "arguments set on a shared kernel object", SUBMITS (launches_race) },
  { "second-thread-dropped", "of two submissions at once one does nothing", "a flag where a lock was meant", SUBMITS (second_thread_dropped) },
  { "second-thread-busy", "of two submissions at once one fails", "drivers that allow one thread", SUBMITS (second_queue_fails) },
  /* clang-format on */
};
FAULT_TABLE (faults_submit);
