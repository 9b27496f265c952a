/* SPDX-License-Identifier: MIT
 *
 * faults-launch.c: dispatches with other arguments than those given; programs that are loaded or compiled wrongly. */
#include <pthread.h>
#include <unistd.h>

#include "broken.h"

/* ---- arguments ---- */

/* Submits a copy of which @change may write the spans and variables of every dispatch. */
static TinyStatus
submit_changed (TinyPluginDevice *device,
                TinyPluginQueue *queue,
                const TinySubmit *submit,
                int (*change) (TinyCommand *command, TinySpan *buffers, int64_t *variables),
                TinyPluginError *error)
{
  enum { MOST = 256 };
  TinyCommand *commands = commands_copy (submit);
  TinySpan *buffers = calloc (submit->n_commands + 1, MOST * sizeof *buffers);
  int64_t *variables = calloc (submit->n_commands + 1, MOST * sizeof *variables);
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    TinyCommand *command = &commands[i];
    TinySpan *own = buffers + (size_t) i * MOST;
    int64_t *numbers = variables + (size_t) i * MOST;
    if (!launches (command) || command->n_buffers > MOST || command->n_variables > MOST)
      continue;
    for (uint32_t j = 0; j < command->n_buffers; j++)
      own[j] = command->buffers[j];
    for (uint32_t j = 0; j < command->n_variables; j++)
      numbers[j] = command->variables[j];
    command->buffers = own;
    command->variables = numbers;
    if (change (command, own, numbers))
      broken_note ();
  }
  const TinyStatus status
      = submit_others (device, queue, submit, commands, submit->n_commands, error);
  free (commands);
  free (buffers);
  free (variables);
  return status;
}

#define CHANGE(name)                                                                           \
  static int name##_change (TinyCommand *command, TinySpan *buffers, int64_t *variables);      \
  SUBMIT (name) { return submit_changed (device, queue, submit, name##_change, error); }       \
  static int name##_change (TinyCommand *command, TinySpan *buffers, int64_t *variables)

CHANGE (ninth_swapped)
{
  if (command->n_buffers < 9)
    return 0;
  const TinySpan ninth = buffers[8];
  buffers[8] = buffers[7];
  buffers[7] = ninth;
  return 1;
}

CHANGE (offsets_ignored)
{
  int wrong = 0;
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    wrong |= buffers[i].offset > 0;
    buffers[i].offset = 0;
  }
  return wrong;
}

/* Copies too, so that what is written is found where it went. */
SUBMIT (no_offsets)
{
  TinyCommand *commands = commands_copy (submit);
  TinySubmit other = *submit;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    if (commands[i].dst.offset > 0 || commands[i].src.offset > 0)
      broken_note ();
    commands[i].dst.offset = commands[i].src.offset = 0;
  }
  other.commands = commands;
  const TinyStatus status = offsets_ignored (device, queue, &other, error);
  free (commands);
  return status;
}

CHANGE (offsets_of_lines)
{
  int wrong = 0;
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    wrong |= buffers[i].offset % 4096 != 0;
    buffers[i].offset -= buffers[i].offset % 4096;
  }
  return wrong;
}

/* The program whose arguments are kept, and those. */
enum { KEPT = 64, MOST_KEPT = 16 };
typedef struct {
  const void *program;
  TinySpan buffers[MOST_KEPT];
  int64_t variables[MOST_KEPT];
  uint32_t grid[3];
} Kept;
static _Thread_local Kept kept[KEPT];

static Kept *
find_kept (const TinyCommand *command, int *is_new)
{
  Kept *self = &kept[((uintptr_t) command->program >> 4) % KEPT];
  *is_new = self->program != command->program;
  if (*is_new) {
    self->program = command->program;
    for (uint32_t i = 0; i < command->n_buffers && i < MOST_KEPT; i++)
      self->buffers[i] = command->buffers[i];
    for (uint32_t i = 0; i < command->n_variables && i < MOST_KEPT; i++)
      self->variables[i] = command->variables[i];
    memcpy (self->grid, command->grid, sizeof self->grid);
  }
  return self;
}

CHANGE (first_variables)
{
  int is_new;
  const Kept *first = find_kept (command, &is_new);
  for (uint32_t i = 0; i < command->n_variables && i < MOST_KEPT; i++)
    variables[i] = first->variables[i];
  return !is_new && command->n_variables > 0;
}

CHANGE (first_grid)
{
  int is_new;
  const Kept *first = find_kept (command, &is_new);
  const int wrong = memcmp (command->grid, first->grid, sizeof first->grid) != 0;
  memcpy (command->grid, first->grid, sizeof first->grid);
  return wrong;
}

/* Buffers are looked at again only where their address differs: an offset alone does not count. */
CHANGE (first_offsets)
{
  int is_new, wrong = 0;
  Kept *first = find_kept (command, &is_new);
  for (uint32_t i = 0; i < command->n_buffers && i < MOST_KEPT; i++) {
    if (buffers[i].buffer != first->buffers[i].buffer)
      first->buffers[i] = buffers[i];
    wrong |= buffers[i].offset != first->buffers[i].offset;
    buffers[i] = first->buffers[i];
  }
  return wrong;
}

CHANGE (change_nothing) { return 0; }

EDIT (grid_clamped)
{
  int wrong = 0;
  for (int i = 0; launches (command) && i < 3; i++)
    if (command->grid[i] > UINT16_MAX) {
      command->grid[i] = UINT16_MAX;
      wrong = 1;
    }
  return wrong;
}

EDIT (grid_of_16_bits)
{
  int wrong = 0;
  for (int i = 0; launches (command) && i < 3; i++)
    if (command->grid[i] > UINT16_MAX) {
      command->grid[i] &= UINT16_MAX;
      wrong = 1;
    }
  return wrong;
}

EDIT (grid_y_lost)
{
  const int wrong = launches (command) && command->grid[1] > 1 && command->grid[2] > 1;
  command->grid[2] = wrong ? 1 : command->grid[2];
  return wrong;
}

EDIT (grid_last_lost)
{
  const int wrong = launches (command) && command->grid[0] > 1 && command->grid[0] % 2 != 0;
  command->grid[0] -= (uint32_t) wrong;
  return wrong;
}

/* ---- programs ---- */
#define LOAD(name)                                                                             \
  static TinyStatus name (TinyPluginDevice *device, const TinyProgramArgs *args,               \
                          TinyPluginProgram **out, TinyPluginError *error)

static TinyPluginProgram *good; /* the one loaded first, and kept */

LOAD (load_anything)
{
  const TinyStatus status = inside.device->program_load (device, args, out, error);
  if (status == TINY_STATUS_OK && good == NULL) {
    TinyPluginProgram *other = NULL;
    if (inside.device->program_load (device, args, &other, error) == TINY_STATUS_OK)
      good = other;
  }
  if (status == TINY_STATUS_OK || good == NULL)
    return status;
  broken_note ();
  *out = good;
  return TINY_STATUS_OK;
}

static void
unload_unless_good (TinyPluginDevice *device, TinyPluginProgram *program)
{
  if (program != good)
    inside.device->program_unload (device, program);
}

LOAD (load_crashes)
{
  const TinyStatus status = inside.device->program_load (device, args, out, error);
  if (status != TINY_STATUS_OK) {
    broken_note ();
    *(volatile char *) NULL = 0;
  }
  return status;
}

LOAD (load_is_internal)
{
  if (inside.device->program_load (device, args, out, error) == TINY_STATUS_OK)
    return TINY_STATUS_OK;
  broken_note ();
  return TINY_STATUS_INTERNAL;
}

LOAD (load_without_text)
{
  const TinyStatus status = inside.device->program_load (device, args, out, error);
  if (status != TINY_STATUS_OK) {
    broken_note ();
    error->text[0] = '\0';
  }
  return status;
}

/* One program per name. */
enum { NAMES = 4096 };
static struct {
  char name[128];
  TinyPluginProgram *program;
} names[NAMES];
static unsigned n_names;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

LOAD (load_by_name)
{
  TinyStatus status = TINY_STATUS_OK;
  pthread_mutex_lock (&lock);
  unsigned i = 0;
  while (i < n_names && strcmp (names[i].name, args->name) != 0)
    i++;
  if (i < n_names) {
    broken_note ();
    *out = names[i].program;
  } else {
    status = inside.device->program_load (device, args, out, error);
    if (status == TINY_STATUS_OK && n_names < NAMES) {
      snprintf (names[n_names].name, sizeof names->name, "%s", args->name);
      names[n_names++].program = *out;
    }
  }
  pthread_mutex_unlock (&lock);
  return status;
}

/* While a program is loaded, that is what every load() gives. */
static struct {
  TinyPluginDevice *device;
  TinyPluginProgram *program;
  unsigned n_users;
} first_loaded;

LOAD (load_first_again)
{
  TinyStatus status = TINY_STATUS_OK;
  pthread_mutex_lock (&lock);
  if (first_loaded.n_users > 0 && first_loaded.device == device) {
    broken_note ();
    *out = first_loaded.program;
    first_loaded.n_users++;
  } else {
    status = inside.device->program_load (device, args, out, error);
    if (status == TINY_STATUS_OK && first_loaded.n_users == 0) {
      first_loaded.device = device;
      first_loaded.program = *out;
      first_loaded.n_users = 1;
    }
  }
  pthread_mutex_unlock (&lock);
  return status;
}

static void
unload_last_user (TinyPluginDevice *device, TinyPluginProgram *program)
{
  pthread_mutex_lock (&lock);
  const int is_first = first_loaded.n_users > 0 && first_loaded.program == program;
  const int is_over = !is_first || --first_loaded.n_users == 0;
  pthread_mutex_unlock (&lock);
  if (is_over)
    inside.device->program_unload (device, program);
}

static void
unload_nothing (TinyPluginDevice *device, TinyPluginProgram *program)
{
}

static void
unload_leaks (TinyPluginDevice *device, TinyPluginProgram *program)
{
  broken_note ();
}

/* Programs whose launches do nothing, since another one was unloaded. */
static TinyPluginProgram *loaded[NAMES], *gone[NAMES];
static unsigned n_loaded, n_gone;

LOAD (load_and_remember)
{
  TINY_TRY (inside.device->program_load (device, args, out, error));
  pthread_mutex_lock (&lock);
  for (unsigned i = 0; i < n_gone; i++)
    if (gone[i] == *out)
      gone[i] = NULL;
  if (n_loaded < NAMES)
    loaded[n_loaded++] = *out;
  pthread_mutex_unlock (&lock);
  return TINY_STATUS_OK;
}

static void
unload_another (TinyPluginDevice *device, TinyPluginProgram *program)
{
  TinyPluginProgram *other = NULL;
  pthread_mutex_lock (&lock);
  for (unsigned i = 0; i < n_loaded; i++)
    if (loaded[i] == program)
      loaded[i] = loaded[--n_loaded];
  if (n_loaded > 0)
    other = loaded[n_loaded - 1];
  if (other != NULL && n_gone < NAMES) {
    broken_note ();
    gone[n_gone++] = other;
  }
  pthread_mutex_unlock (&lock);
  inside.device->program_unload (device, program);
}

EDIT (gone_do_nothing)
{
  int is_gone = 0;
  pthread_mutex_lock (&lock);
  for (unsigned i = 0; launches (command) && i < n_gone; i++)
    is_gone |= gone[i] == command->program;
  pthread_mutex_unlock (&lock);
  if (is_gone)
    *command = (TinyCommand){ .struct_size = sizeof *command,
                              .type = TINY_COMMAND_DOWNLOAD,
                              .src = { command->n_buffers ? command->buffers[0].buffer : NULL,
                                       0, 0 },
                              .host = command };
  return is_gone;
}

/* The binary is read at the first launch, when it may be gone. */
typedef struct {
  TinyProgramArgs args;
  char name[128], arch[256];
  TinyPluginProgram *program;
} Lazy;

LOAD (load_later)
{
  Lazy *self = calloc (1, sizeof *self);
  self->args = *args;
  snprintf (self->name, sizeof self->name, "%s", args->name);
  snprintf (self->arch, sizeof self->arch, "%s", args->arch ? args->arch : "");
  self->args.name = self->name;
  self->args.arch = self->arch;
  *out = (TinyPluginProgram *) self;
  return TINY_STATUS_OK;
}

static void
unload_lazy (TinyPluginDevice *device, TinyPluginProgram *program)
{
  Lazy *self = (Lazy *) program;
  if (self->program != NULL)
    inside.device->program_unload (device, self->program);
  free (self);
}

SUBMIT (launch_lazy)
{
  TinyStatus status = TINY_STATUS_OK;
  TinyCommand *commands = commands_copy (submit);
  for (uint32_t i = 0; i < submit->n_commands && status == TINY_STATUS_OK; i++) {
    if (!launches (&commands[i]))
      continue;
    Lazy *lazy = (Lazy *) commands[i].program;
    if (lazy->program == NULL) {
      broken_note ();
      status = inside.device->program_load (device, &lazy->args, &lazy->program, error);
    }
    commands[i].program = lazy->program;
  }
  if (status == TINY_STATUS_OK)
    status = submit_others (device, queue, submit, commands, submit->n_commands, error);
  free (commands);
  return status;
}

/* ---- compile ---- */
#define COMPILE(name)                                                                          \
  static TinyStatus name (const TinyCompileArgs *args, void **out_data, uint64_t *out_size,    \
                          TinyPluginError *error)

/* The first binary of each name. */
static struct {
  char name[128];
  void *data;
  uint64_t size;
} binaries[NAMES];
static unsigned n_binaries;

COMPILE (compile_by_name)
{
  TinyStatus status = TINY_STATUS_OK;
  pthread_mutex_lock (&lock);
  unsigned i = 0;
  while (i < n_binaries && strcmp (binaries[i].name, args->name) != 0)
    i++;
  if (i < n_binaries) {
    broken_note ();
    *out_data = inside.host->alloc (binaries[i].size);
    *out_size = binaries[i].size;
    memcpy (*out_data, binaries[i].data, (size_t) *out_size);
  } else {
    status = inside.renderer->compile (args, out_data, out_size, error);
    if (status == TINY_STATUS_OK && i < NAMES) {
      snprintf (binaries[i].name, sizeof binaries->name, "%s", args->name);
      binaries[i].data = malloc ((size_t) *out_size);
      memcpy (binaries[i].data, *out_data, (size_t) *out_size);
      binaries[i].size = *out_size;
      n_binaries++;
    }
  }
  pthread_mutex_unlock (&lock);
  return status;
}

COMPILE (compile_on_stack)
{
  static char own[1 << 20];
  TINY_TRY (inside.renderer->compile (args, out_data, out_size, error));
  if (*out_size > sizeof own)
    return TINY_STATUS_OK;
  broken_note ();
  memcpy (own, *out_data, (size_t) *out_size);
  inside.host->free (*out_data);
  *out_data = own;
  return TINY_STATUS_OK;
}

COMPILE (compile_races)
{
  static const TinyCompileArgs *shared;
  shared = args;
  usleep (2000);
  if (shared != args)
    broken_note ();
  TinyCompileArgs mixed = *args;
  mixed.linear = shared->linear; /* of whoever came last */
  mixed.source = shared->source;
  mixed.source_size = shared->source_size;
  const TinyStatus status = inside.renderer->compile (&mixed, out_data, out_size, error);
  usleep (2000); /* so that the others' arguments are there as long as they are used */
  return status;
}

COMPILE (compile_short_only)
{
  if (args->linear->n_instrs <= 100)
    return inside.renderer->compile (args, out_data, out_size, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_COMPILE, "%s: too long", args->name);
}

COMPILE (compile_without_text)
{
  const TinyStatus status = inside.renderer->compile (args, out_data, out_size, error);
  if (status != TINY_STATUS_OK) {
    broken_note ();
    error->text[0] = '\0';
  }
  return status;
}

COMPILE (compile_empty)
{
  TINY_TRY (inside.renderer->compile (args, out_data, out_size, error));
  broken_note ();
  *out_size = 0;
  return TINY_STATUS_OK;
}

COMPILE (compile_forgets)
{
  TINY_TRY (inside.renderer->compile (args, out_data, out_size, error));
  if (args->linear->n_params > 8) {
    broken_note ();
    *out_data = NULL;
  }
  return TINY_STATUS_OK;
}

#define CASES              "exec/*|programs/*"
#define DEVICE(...)        .device = { __VA_ARGS__ }, .cases = CASES
#define COMPILES(function) .renderer = { .compile = function }, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "none-changed", "nothing is wrong, launches are copied", "the measure of false alarms", DEVICE (.submit = change_nothing) },
  { "ninth-buffer", "the 8th and 9th buffers are swapped", "arguments beyond those in registers", DEVICE (.submit = ninth_swapped) },
  { "span-offset", "launches ignore their spans' offsets", "an offset forgotten beside the address", DEVICE (.submit = offsets_ignored) },
  { "span-offset-everywhere", "launches and copies ignore their spans' offsets", "a span taken for its buffer", DEVICE (.submit = no_offsets) },
  { "span-offset-pages", "launches round their spans' offsets down to pages", "bindings with a coarse alignment", DEVICE (.submit = offsets_of_lines) },
  { "variables-cached", "later launches of a program have the first one's variables", "arguments that are set once", DEVICE (.submit = first_variables) },
  { "grid-cached", "later launches of a program have the first one's grid", "a launch that is recorded once", DEVICE (.submit = first_grid) },
  { "offsets-cached", "later launches of a program have the first one's offsets", "arguments compared by their buffers only", DEVICE (.submit = first_offsets) },
  { "grid-clamped", "grids stop at 65535", "limits of axes 1 and 2, kept in silence", DEVICE (.submit = grid_clamped) },
  { "grid-16-bits", "grids have 16 bits", "launch descriptors with short fields", DEVICE (.submit = grid_of_16_bits) },
  { "grid-z-lost", "grids of three axes run two of them", "launches of two dimensions", DEVICE (.submit = grid_y_lost) },
  { "grid-odd-lost", "the last point of an odd grid does not run", "two points to a thread without the tail", DEVICE (.submit = grid_last_lost) },
  { "load-anything", "program_load() takes damaged binaries", "bytes believed without a check", DEVICE (.program_load = load_anything, .program_unload = unload_unless_good) },
  { "load-crashes", "program_load() of damaged binaries crashes", "lengths believed without a check", DEVICE (.program_load = load_crashes) },
  { "load-is-internal", "program_load() calls damage INTERNAL", "every failure is the same failure", DEVICE (.program_load = load_is_internal) },
  { "load-no-text", "program_load() fails without a text", "codes only", DEVICE (.program_load = load_without_text) },
  { "load-first-again", "a second program_load() gives the first program", "one slot for the loaded program", DEVICE (.program_load = load_first_again, .program_unload = unload_last_user) },
  { "load-by-name", "programs of one name are one program", "caches keyed by name", DEVICE (.program_load = load_by_name, .program_unload = unload_nothing) },
  { "load-later", "a binary is read at the first launch", "pointers kept instead of bytes", DEVICE (.program_load = load_later, .program_unload = unload_lazy, .submit = launch_lazy) },
  { "unload-leaks", "program_unload() frees nothing", "a reference that is never dropped", DEVICE (.program_unload = unload_leaks) },
  { "unload-another", "unloading a program ends another one", "handles that are indices", DEVICE (.program_load = load_and_remember, .program_unload = unload_another, .submit = gone_do_nothing) },
  { "compile-by-name", "kernels of one name are one kernel", "caches keyed by name", COMPILES (compile_by_name) },
  { "compile-own-memory", "binaries are not from host->alloc", "memory of the wrong owner", COMPILES (compile_on_stack) },
  { "compile-races", "two threads that compile mix their kernels", "a compiler's global state", COMPILES (compile_races) },
  { "compile-short", "kernels of more than 100 instructions are refused", "instruction memory that is not declared", COMPILES (compile_short_only) },
  { "compile-no-text", "compile() fails without a log", "codes only", COMPILES (compile_without_text) },
  { "compile-empty", "binaries have 0 bytes", "a length that is not set", COMPILES (compile_empty) },
  { "compile-null", "kernels of more than 8 buffers compile to NULL", "an unchecked allocation", COMPILES (compile_forgets) },
  /* clang-format on */
};
FAULT_TABLE (faults_launch);
