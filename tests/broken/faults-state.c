/* SPDX-License-Identifier: MIT
 *
 * faults-state.c: what one command, submission or failure does to those that come after it. */
#include <pthread.h>

#include "broken.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- several commands of one submission ---- */
/* Submits the commands of @submit as @change leaves them. */
static TinyStatus
submit_changed (TinyPluginDevice *device,
                TinyPluginQueue *queue,
                const TinySubmit *submit,
                void (*change) (TinyCommand *commands, uint32_t n),
                TinyPluginError *error)
{
  TinyCommand *commands = commands_copy (submit), *before = commands_copy (submit);
  const uint32_t n = submit->n_commands;
  change (commands, n);
  if (n > 0 && memcmp (commands, before, n * sizeof *commands) != 0)
    broken_note ();
  const TinyStatus status = submit_others (device, queue, submit, commands, n, error);
  free (commands);
  free (before);
  return status;
}

#define CHANGE(name)                                                                           \
  static void name##_change (TinyCommand *commands, uint32_t n);                               \
  SUBMIT (name) { return submit_changed (device, queue, submit, name##_change, error); }       \
  static void name##_change (TinyCommand *commands, uint32_t n)

/* The last launch of the same program. */
static const TinyCommand *
last_of (const TinyCommand *commands, uint32_t n, const TinyCommand *command)
{
  while (n-- > 0)
    if (launches (&commands[n]) && commands[n].program == command->program)
      return &commands[n];
  return command;
}

CHANGE (last_variables)
{
  for (uint32_t i = 0; i < n; i++)
    if (launches (&commands[i]))
      commands[i].variables = last_of (commands, n, &commands[i])->variables;
}

CHANGE (last_buffers)
{
  for (uint32_t i = 0; i < n; i++)
    if (launches (&commands[i]))
      commands[i].buffers = last_of (commands, n, &commands[i])->buffers;
}

static const void *
target_of (const TinyCommand *command)
{
  if (launches (command))
    return command->n_buffers > 0 ? command->buffers[0].buffer : NULL;
  return command->type == TINY_COMMAND_DOWNLOAD ? NULL : command->dst.buffer;
}

/* Turns around neighbours that write to two buffers, whatever they read. */
static void
overtake (TinyCommand *commands, uint32_t n, unsigned first, unsigned second)
{
  for (uint32_t i = 0; i + 1 < n; i++)
    if (commands[i].type == first && commands[i + 1].type == second
        && target_of (&commands[i]) != target_of (&commands[i + 1])) {
      const TinyCommand one = commands[i];
      commands[i] = commands[i + 1];
      commands[++i] = one;
    }
}

CHANGE (launches_overtake)
{
  overtake (commands, n, TINY_COMMAND_DISPATCH, TINY_COMMAND_DISPATCH);
}
CHANGE (launch_before_copy)
{
  overtake (commands, n, TINY_COMMAND_COPY, TINY_COMMAND_DISPATCH);
}
CHANGE (copy_before_launch)
{
  overtake (commands, n, TINY_COMMAND_DISPATCH, TINY_COMMAND_COPY);
}
CHANGE (download_before_launch)
{
  overtake (commands, n, TINY_COMMAND_DISPATCH, TINY_COMMAND_DOWNLOAD);
}
CHANGE (launch_before_upload)
{
  overtake (commands, n, TINY_COMMAND_UPLOAD, TINY_COMMAND_DISPATCH);
}

SUBMIT (ring_of_1024)
{
  TinySubmit shorter = *submit;
  if (shorter.n_commands > 1024) {
    broken_note ();
    shorter.n_commands = 1024;
  }
  return inside.device->submit (device, queue, &shorter, error);
}

/* ---- one command ---- */
/* A span of a buffer that an earlier one is of as well has that one's offset. */
static int
share_offsets (TinySpan *spans, uint32_t n)
{
  int wrong = 0;
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = 0; k < i; k++)
      if (spans[k].buffer == spans[i].buffer && spans[k].offset != spans[i].offset) {
        spans[i].offset = spans[k].offset;
        wrong = 1;
      }
  return wrong;
}

CHANGE (first_offset_of_buffer)
{
  static _Thread_local TinySpan room[1 << 14];
  size_t n_used = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t n_spans = launches (&commands[i]) ? commands[i].n_buffers : 0;
    TinySpan *spans = room + n_used;
    if (n_spans == 0 || n_used + n_spans > TINY_KIT_N (room))
      continue;
    memcpy (spans, commands[i].buffers, n_spans * sizeof *spans);
    if (share_offsets (spans, n_spans)) {
      commands[i].buffers = spans;
      n_used += n_spans;
    }
  }
}

EDIT (grid_tail)
{
  const int wrong = launches (command) && command->grid[0] > 64 && command->grid[0] % 64 != 0;
  command->grid[0] -= wrong ? command->grid[0] % 64 : 0;
  return wrong;
}

/* ---- submissions ---- */
static unsigned n_submits;

SUBMIT (thousandth_dropped)
{
  enum { WRONG = 1000 };
  if (__atomic_add_fetch (&n_submits, 1, __ATOMIC_RELAXED) % WRONG != 0)
    return inside.device->submit (device, queue, submit, error);
  broken_note ();
  return submit_others (device, queue, submit, submit->commands, 0, error);
}

/* After a failure the launches of the next submission do not run. */
static _Atomic int has_failed;

SUBMIT (nothing_after_failure)
{
  TinyStatus status = TINY_STATUS_OK;
  if (submit->n_commands > 0 && has_failed) {
    has_failed = 0;
    broken_note ();
    return submit_others (device, queue, submit, submit->commands, 0, error);
  }
  status = inside.device->submit (device, queue, submit, error);
  has_failed |= status != TINY_STATUS_OK;
  return status;
}

/* ---- host memory ---- */
static struct {
  const void *host;
  uint64_t n_bytes;
  void *bytes;
} staged;

/* An upload from where the one before was from has the bytes that were there. */
SUBMIT (upload_by_address)
{
  pthread_mutex_lock (&lock);
  TinyCommand *commands = commands_copy (submit);
  void *old = NULL;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    TinyCommand *command = &commands[i];
    const uint64_t n = command->dst.n_bytes;
    if (command->type != TINY_COMMAND_UPLOAD || n == 0 || n > 1 << 16)
      continue;
    if (staged.host == command->host && staged.n_bytes == n) {
      if (memcmp (staged.bytes, command->host, (size_t) n) != 0)
        broken_note ();
      command->host = staged.bytes;
      continue;
    }
    free (old);
    old = staged.bytes; /* a command before this one may have it */
    staged.bytes = malloc ((size_t) n);
    memcpy (staged.bytes, command->host, (size_t) n);
    staged.host = command->host;
    staged.n_bytes = n;
  }
  const TinyStatus status
      = submit_others (device, queue, submit, commands, submit->n_commands, error);
  free (commands);
  free (old);
  pthread_mutex_unlock (&lock);
  return status;
}

/* A download of what the one before was of gives the same bytes, unless something was copied since. */
static struct {
  TinySpan span;
  void *bytes;
} fetched;

SUBMIT (download_again)
{
  if (submit->n_commands != 1 || submit->commands->type != TINY_COMMAND_DOWNLOAD) {
    pthread_mutex_lock (&lock);
    for (uint32_t i = 0; i < submit->n_commands; i++)
      if (!launches (&submit->commands[i]))
        fetched.span.buffer = NULL;
    pthread_mutex_unlock (&lock);
    return inside.device->submit (device, queue, submit, error);
  }
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  const TinySpan *src = &submit->commands->src;
  const size_t n = (size_t) src->n_bytes;
  pthread_mutex_lock (&lock);
  if (n > 0 && memcmp (src, &fetched.span, sizeof *src) == 0) {
    if (memcmp (submit->commands->host, fetched.bytes, n) != 0)
      broken_note ();
    memcpy (submit->commands->host, fetched.bytes, n);
  } else if (n > 0) {
    free (fetched.bytes);
    fetched.bytes = malloc (n);
    memcpy (fetched.bytes, submit->commands->host, n);
    fetched.span = *src;
  }
  pthread_mutex_unlock (&lock);
  return TINY_STATUS_OK;
}

/* ---- failures that cost something ---- */
static TinyStatus
lose (TinyStatus status)
{
  enum { LOST = 4096 };
  char *volatile lost = status != TINY_STATUS_OK ? malloc (LOST) : NULL;
  if (lost != NULL) {
    memset (lost, 1, LOST);
    broken_note ();
  }
  return status;
}

SUBMIT (failed_submit_leaks)
{
  return lose (inside.device->submit (device, queue, submit, error));
}

static TinyStatus
failed_load_leaks (TinyPluginDevice *device,
                   const TinyProgramArgs *args,
                   TinyPluginProgram **out,
                   TinyPluginError *error)
{
  return lose (inside.device->program_load (device, args, out, error));
}

static _Atomic int has_failed_to_load;

static TinyStatus
load_fails_again (TinyPluginDevice *device,
                  const TinyProgramArgs *args,
                  TinyPluginProgram **out,
                  TinyPluginError *error)
{
  if (has_failed_to_load) {
    has_failed_to_load = 0;
    broken_note ();
    return tiny_fail (error, TINY_STATUS_INVALID, "%s: the binary is damaged", args->name);
  }
  const TinyStatus status = inside.device->program_load (device, args, out, error);
  has_failed_to_load = status != TINY_STATUS_OK;
  return status;
}

/* ---- programs ---- */
/* The program that was unloaded last, and not freed. */
static struct {
  TinyPluginDevice *device;
  TinyPluginProgram *program;
} recycled;

static void
unload_to_recycle (TinyPluginDevice *device, TinyPluginProgram *program)
{
  pthread_mutex_lock (&lock);
  if (recycled.program == NULL && program != NULL) {
    recycled.device = device;
    recycled.program = program;
    program = NULL;
  }
  pthread_mutex_unlock (&lock);
  if (program != NULL)
    inside.device->program_unload (device, program);
}

static TinyStatus
load_recycled (TinyPluginDevice *device,
               const TinyProgramArgs *args,
               TinyPluginProgram **out,
               TinyPluginError *error)
{
  TinyPluginProgram *program = NULL;
  pthread_mutex_lock (&lock);
  if (recycled.device == device) {
    program = recycled.program;
    recycled.program = NULL;
    recycled.device = NULL;
  }
  pthread_mutex_unlock (&lock);
  if (program == NULL)
    return inside.device->program_load (device, args, out, error);
  broken_note ();
  *out = program;
  return TINY_STATUS_OK;
}

static void
close_recycled (TinyPluginDevice *device)
{
  pthread_mutex_lock (&lock);
  if (recycled.device == device) {
    inside.device->program_unload (device, recycled.program);
    recycled.program = NULL;
    recycled.device = NULL;
  }
  pthread_mutex_unlock (&lock);
  inside.device->close (device);
}

#define ALLOC(name)                                                                            \
  static TinyStatus name (TinyPluginDevice *device, uint64_t n_bytes, TinyPluginBuffer **out,  \
                          TinyPluginError *error)

ALLOC (failed_alloc_leaks) { return lose (inside.device->alloc (device, n_bytes, out, error)); }

ALLOC (alloc_65536)
{
  enum { MOST = 65535 };
  static unsigned n_allocs;
  if (__atomic_add_fetch (&n_allocs, 1, __ATOMIC_RELAXED) <= MOST)
    return inside.device->alloc (device, n_bytes, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no more handles");
}

#define CASES       "order/*|exec/*"
#define DEVICE(...) .device = { __VA_ARGS__ }, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "variables-of-last", "launches of a program in one submission have the last one's variables", "one block of arguments for each program", DEVICE (.submit = last_variables) },
  { "buffers-of-last", "launches of a program in one submission have the last one's buffers", "one table of bindings for each program", DEVICE (.submit = last_buffers) },
  { "launches-overtake", "a launch that writes another buffer than the one before it runs first", "dependencies found from what is written", DEVICE (.submit = launches_overtake) },
  { "launch-before-copy", "a launch that writes another buffer than the copy before it runs first", "two engines without a semaphore", DEVICE (.submit = launch_before_copy) },
  { "copy-before-launch", "a copy that writes another buffer than the launch before it runs first", "two engines without a semaphore", DEVICE (.submit = copy_before_launch) },
  { "download-before-launch", "a download runs before the launch in front of it", "two engines without a semaphore", DEVICE (.submit = download_before_launch) },
  { "launch-before-upload", "a launch that writes another buffer than the upload before it runs first", "two engines without a semaphore", DEVICE (.submit = launch_before_upload) },
  { "ring-of-1024", "commands beyond the 1024th do not run", "a ring that wraps around", DEVICE (.submit = ring_of_1024) },
  { "offset-of-buffer", "a launch has one offset for each buffer", "tables of bindings by buffer", DEVICE (.submit = first_offset_of_buffer) },
  { "grid-tail-lost", "points beyond a multiple of 64 do not run", "work-groups counted by a division that rounds down", DEVICE (.submit = grid_tail) },
  { "submit-1000th-lost", "every 1000th submission does nothing", "a ring that wraps around", DEVICE (.submit = thousandth_dropped) },
  { "lost-after-failure", "after a submit() that fails the next one does nothing", "a ring that is rewound too far", .device = { .submit = nothing_after_failure }, .cases = "lifecycle/failures/*" },
  { "upload-by-address", "an upload from the address of the one before has that one's bytes", "pinned copies of host memory, found by address", .device = { .submit = upload_by_address }, .cases = "memory/*|order/*" },
  { "download-again", "a download of the same span gives the same bytes although a launch came between", "a cache of host memory that copies invalidate, and launches do not", .device = { .submit = download_again }, .cases = "faults/programs/*" },
  { "leak-failed-submit", "each submit() that fails loses 4 KiB", "clean-up that only success reaches", .device = { .submit = failed_submit_leaks }, .cases = "lifecycle/failures/*" },
  { "leak-failed-load", "each program_load() that fails loses 4 KiB", "clean-up that only success reaches", .device = { .program_load = failed_load_leaks }, .cases = "lifecycle/failures/*" },
  { "leak-failed-alloc", "each alloc() that fails loses 4 KiB", "clean-up that only success reaches", .device = { .alloc = failed_alloc_leaks }, .cases = "lifecycle/failures/*" },
  { "load-fails-again", "after a program_load() that fails the next one fails", "an error flag that nobody clears", .device = { .program_load = load_fails_again }, .cases = "faults/*" },
  { "load-recycled", "the first program that is loaded after an unload is the one that was unloaded", "slots whose code is not written anew", .device = { .program_load = load_recycled, .program_unload = unload_to_recycle, .close = close_recycled }, .cases = "faults/*|exec/*" },
  { "alloc-65536th-fails", "alloc() fails from the 65536th time on", "handles of 16 bits that are not given back", .device = { .alloc = alloc_65536 }, .cases = "lifecycle/objects/*" },
  /* clang-format on */
};
FAULT_TABLE (faults_state);
