/* SPDX-License-Identifier: MIT
 *
 * faults-vendor.c: habits of drivers: contexts of one thread, tables of a fixed length, keys that are too short, and
 * functions that nobody calls every day. */
#include <pthread.h>
#include <sys/mman.h>

#include "broken.h"

/* ---- the thread that opened the device, and others ---- */
static pthread_t opener;
static int is_open;

static TinyStatus
open_noted (const char *id,
            TinyPluginDevice **out,
            const TinyDeviceTable **out_table,
            TinyPluginError *error)
{
  TINY_TRY (inside_open (id, out, out_table, error));
  opener = pthread_self ();
  is_open = 1;
  return TINY_STATUS_OK;
}

static int
is_foreign (void)
{
  const int foreign = is_open && !pthread_equal (opener, pthread_self ());
  if (foreign)
    broken_note ();
  return foreign;
}

#define NO_CONTEXT tiny_fail (error, TINY_STATUS_DRIVER, "no context is current in this thread")

static TinyStatus
alloc_at_home (TinyPluginDevice *device,
               uint64_t n_bytes,
               TinyPluginBuffer **out,
               TinyPluginError *error)
{
  return is_foreign () ? NO_CONTEXT : inside.device->alloc (device, n_bytes, out, error);
}

static void
free_at_home (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  if (!is_foreign ())
    inside.device->free (device, buffer);
}

static TinyStatus
load_at_home (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  return is_foreign () ? NO_CONTEXT : inside.device->program_load (device, args, out, error);
}

static void
unload_at_home (TinyPluginDevice *device, TinyPluginProgram *program)
{
  if (!is_foreign ())
    inside.device->program_unload (device, program);
}

static TinyStatus
map_at_home (TinyPluginDevice *device,
             TinyPluginBuffer *buffer,
             void **out,
             TinyPluginError *error)
{
  return is_foreign () ? NO_CONTEXT : inside.device->map (device, buffer, out, error);
}

static TinyStatus
queue_at_home (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  return is_foreign () ? NO_CONTEXT : inside.device->queue_create (device, out, error);
}

SUBMIT (submit_at_home)
{
  return is_foreign () ? NO_CONTEXT : inside.device->submit (device, queue, submit, error);
}

static TinyStatus
import_at_home (TinyPluginDevice *device,
                void *memory,
                uint64_t n_bytes,
                TinyPluginBuffer **out,
                TinyPluginError *error)
{
  return is_foreign () ? NO_CONTEXT
                       : inside.device->import_host (device, memory, n_bytes, out, error);
}

/* ---- tables of a fixed length ---- */
enum { MOST_BUFFERS = 1000, MOST_PROGRAMS = 128, MOST_NAME = 15 };
static _Atomic int n_buffers, n_programs;

static TinyStatus
alloc_few (TinyPluginDevice *device,
           uint64_t n_bytes,
           TinyPluginBuffer **out,
           TinyPluginError *error)
{
  if (n_buffers >= MOST_BUFFERS) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "too many allocations");
  }
  TINY_TRY (inside.device->alloc (device, n_bytes, out, error));
  n_buffers++;
  return TINY_STATUS_OK;
}

static TinyStatus
import_few (TinyPluginDevice *device,
            void *memory,
            uint64_t n_bytes,
            TinyPluginBuffer **out,
            TinyPluginError *error)
{
  TINY_TRY (inside.device->import_host (device, memory, n_bytes, out, error));
  n_buffers++;
  return TINY_STATUS_OK;
}

static void
free_few (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  n_buffers--;
  inside.device->free (device, buffer);
}

static TinyStatus
load_few (TinyPluginDevice *device,
          const TinyProgramArgs *args,
          TinyPluginProgram **out,
          TinyPluginError *error)
{
  if (n_programs >= MOST_PROGRAMS) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "too many programs");
  }
  TINY_TRY (inside.device->program_load (device, args, out, error));
  n_programs++;
  return TINY_STATUS_OK;
}

static void
unload_few (TinyPluginDevice *device, TinyPluginProgram *program)
{
  n_programs--;
  inside.device->program_unload (device, program);
}

/* ---- programs by a key that is too short ---- */
enum { KEPT = 4096 };
typedef struct {
  const void *data;
  uint64_t size;
  char name[128];
  TinyPluginProgram *program;
} Loaded;
static Loaded loaded[KEPT];
static unsigned n_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static TinyStatus
load_known (TinyPluginDevice *device,
            const TinyProgramArgs *args,
            int (*is_same) (const Loaded *known, const TinyProgramArgs *args),
            TinyPluginProgram **out,
            TinyPluginError *error)
{
  TinyStatus status = TINY_STATUS_OK;
  unsigned i = 0;
  pthread_mutex_lock (&lock);
  while (i < n_loaded && !is_same (&loaded[i], args))
    i++;
  if (i < n_loaded) {
    broken_note ();
    *out = loaded[i].program;
  } else {
    status = inside.device->program_load (device, args, out, error);
    if (status == TINY_STATUS_OK && n_loaded < KEPT) {
      Loaded *self = &loaded[n_loaded++];
      *self = (Loaded){ .data = args->data, .size = args->size, .program = *out };
      snprintf (self->name, sizeof self->name, "%s", args->name);
    }
  }
  pthread_mutex_unlock (&lock);
  return status;
}

static void
unload_nothing (TinyPluginDevice *device, TinyPluginProgram *program)
{
}

#define KNOWN(name, condition)                                                                 \
  static int name##_is_same (const Loaded *known, const TinyProgramArgs *args)                 \
  {                                                                                            \
    return condition;                                                                          \
  }                                                                                            \
  static TinyStatus name (TinyPluginDevice *device, const TinyProgramArgs *args,               \
                          TinyPluginProgram **out, TinyPluginError *error)                     \
  {                                                                                            \
    return load_known (device, args, name##_is_same, out, error);                              \
  }
KNOWN (load_by_address, known->data == args->data && known->size == args->size)
KNOWN (load_by_size, known->size == args->size && strcmp (known->name, args->name) == 0)
KNOWN (load_by_short_name,
       strlen (args->name) > MOST_NAME && strncmp (known->name, args->name, MOST_NAME) == 0)

/* ---- disassemble() ---- */
#define DISASSEMBLE(name)                                                                      \
  static TinyStatus name (const void *data, uint64_t size, char **out_text,                    \
                          TinyPluginError *error)

DISASSEMBLE (text_of_its_own)
{
  static char own[1 << 16];
  TINY_TRY (inside.renderer->disassemble (data, size, out_text, error));
  snprintf (own, sizeof own, "%s", *out_text);
  inside.host->free (*out_text);
  *out_text = own;
  broken_note ();
  return TINY_STATUS_OK;
}

DISASSEMBLE (text_null)
{
  *out_text = NULL;
  broken_note ();
  return TINY_STATUS_OK;
}

DISASSEMBLE (text_of_anything)
{
  if (inside.renderer->disassemble (data, size, out_text, error) == TINY_STATUS_OK)
    return TINY_STATUS_OK;
  broken_note ();
  *out_text = inside.host->alloc (1);
  **out_text = '\0';
  return TINY_STATUS_OK;
}

DISASSEMBLE (text_crashes)
{
  const TinyStatus status = inside.renderer->disassemble (data, size, out_text, error);
  if (status != TINY_STATUS_OK) {
    broken_note ();
    *(volatile char *) NULL = 0;
  }
  return status;
}

DISASSEMBLE (text_of_the_first)
{
  static char first[1 << 16];
  TINY_TRY (inside.renderer->disassemble (data, size, out_text, error));
  if (first[0] == '\0')
    snprintf (first, sizeof first, "%s", *out_text);
  inside.host->free (*out_text);
  *out_text = inside.host->alloc (sizeof first);
  memcpy (*out_text, first, sizeof first);
  broken_note ();
  return TINY_STATUS_OK;
}

DISASSEMBLE (text_latin)
{
  TINY_TRY (inside.renderer->disassemble (data, size, out_text, error));
  (*out_text)[0] = '\xb5';
  broken_note ();
  return TINY_STATUS_OK;
}

/* ---- context() ---- */
static TinyStatus
context_null (TinyPluginDevice *device, void **out, TinyPluginError *error)
{
  broken_note ();
  *out = NULL;
  return TINY_STATUS_OK;
}

static TinyStatus
context_new (TinyPluginDevice *device, void **out, TinyPluginError *error)
{
  broken_note ();
  *out = malloc (64);
  return TINY_STATUS_OK;
}

static TinyStatus
context_fails (TinyPluginDevice *device, void **out, TinyPluginError *error)
{
  broken_note ();
  return TINY_STATUS_UNSUPPORTED;
}

/* ---- memory ---- */
static TinyStatus
alloc_beside (TinyPluginDevice *device,
              uint64_t n_bytes,
              TinyPluginBuffer **out,
              TinyPluginError *error)
{
  enum { LARGE = 1 << 20 };
  if (n_bytes < LARGE || inside.device->import_host == NULL)
    return inside.device->alloc (device, n_bytes, out, error);
  char *memory = mmap (NULL, (size_t) n_bytes + 64, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory");
  broken_note ();
  return inside.device->import_host (device, memory + 8, n_bytes, out, error);
}

/* Behind the output of a launch everything up to the next 64 bytes is lost. */
SUBMIT (launches_write_lines)
{
  static const char zeros[64];
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    if (!launches (command) || command->n_buffers == 0)
      continue;
    const TinySpan *span = &command->buffers[0];
    const uint64_t end = span->offset + span->n_bytes, size = sizes_get (span->buffer);
    const uint64_t n = (64 - end % 64) % 64;
    if (n == 0 || end + n > size)
      continue;
    const TinyCommand clear = { .struct_size = sizeof clear,
                                .type = TINY_COMMAND_UPLOAD,
                                .dst = { span->buffer, end, n },
                                .host = (void *) zeros };
    const TinySubmit more = { .struct_size = sizeof more, .commands = &clear, .n_commands = 1 };
    broken_note ();
    inside.device->submit (device, queue, &more, error);
  }
  return TINY_STATUS_OK;
}

EDIT (copies_of_31_bits)
{
  const uint64_t far = UINT64_C (1) << 31;
  if (launches (command) || (command->dst.offset < far && command->src.offset < far))
    return 0;
  command->dst.offset &= far - 1;
  command->src.offset &= far - 1;
  return 1;
}

EDIT (copies_of_32_bits)
{
  if (launches (command)
      || (command->dst.offset <= UINT32_MAX && command->src.offset <= UINT32_MAX))
    return 0;
  command->dst.offset &= UINT32_MAX;
  command->src.offset &= UINT32_MAX;
  return 1;
}

/* ---- submissions ---- */

/* Commands behind a refused one are done all the same. */
SUBMIT (goes_on)
{
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  for (uint32_t i = 0; status != TINY_STATUS_OK && i < submit->n_commands; i++) {
    TinyPluginError other = { .struct_size = sizeof other };
    const TinySubmit one
        = { .struct_size = sizeof one, .commands = &submit->commands[i], .n_commands = 1 };
    broken_note ();
    inside.device->submit (device, queue, &one, &other);
  }
  return status;
}

/* Times since the submission began, each with those before it. */
SUBMIT (times_add_up)
{
  const uint64_t start = tiny_now_ns ();
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 0; submit->out_ns != NULL && i < submit->n_commands; i++) {
    broken_note ();
    submit->out_ns[i] = tiny_now_ns () - start;
  }
  return TINY_STATUS_OK;
}

/* A time for the whole, and none for what is in it. */
SUBMIT (times_of_first)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  for (uint32_t i = 1; submit->out_ns != NULL && i < submit->n_commands; i++) {
    broken_note ();
    submit->out_ns[0] += submit->out_ns[i];
    submit->out_ns[i] = 0;
  }
  return TINY_STATUS_OK;
}

SUBMIT (logs_success)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  broken_note ();
  inside.host->log (TINY_LOG_ERROR, NULL, "submit: success");
  return TINY_STATUS_OK;
}

/* ---- tables ---- */
static TinyStatus
open_fresh_table (const char *id,
                  TinyPluginDevice **out,
                  const TinyDeviceTable **out_table,
                  TinyPluginError *error)
{
  static TinyDeviceTable *last;
  const TinyDeviceTable *whole;
  TINY_TRY (inside_open (id, out, &whole, error));
  if (last != NULL)
    broken_note ();
  if (last != NULL)
    memset (last, 0, sizeof *last);
  last = malloc (sizeof *last);
  *last = *whole;
  *out_table = last;
  return TINY_STATUS_OK;
}

/* ---- the target ---- */
static TinyStatus
target_grows (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  TINY_TRY (inside.renderer->target (arch, out, error));
  if (strlen (out->arch) + 5 < sizeof out->arch) {
    broken_note ();
    strcat (out->arch, ",ref");
  }
  return TINY_STATUS_OK;
}

#define CASES        "lifecycle/*|memory/*|order/*|faults/*|limits/*|hygiene/*"
#define DEVICE(...)  .device = { __VA_ARGS__ }, .cases = CASES
#define AT_HOME(...) .module = { .open = open_noted }, .device = { __VA_ARGS__ }, .cases = CASES
#define TEXT(function)                                                                         \
  .around = "CPU", .renderer = { .disassemble = function }, .cases = "faults/*|disassembly/*"
#define SEEN_CONTEXT "contexts that are current in one thread"

static const Fault rows[] = {
  /* clang-format off */
  { "alloc-at-home", "alloc() fails in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.alloc = alloc_at_home) },
  { "free-at-home", "free() does nothing in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.free = free_at_home) },
  { "load-at-home", "program_load() fails in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.program_load = load_at_home) },
  { "unload-at-home", "program_unload() does nothing in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.program_unload = unload_at_home) },
  { "map-at-home", "map() fails in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.map = map_at_home) },
  { "queue-at-home", "queue_create() fails in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.queue_create = queue_at_home) },
  { "submit-at-home", "submit() fails in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.submit = submit_at_home) },
  { "import-at-home", "import_host() fails in other threads than open() was called in", SEEN_CONTEXT, AT_HOME (.import_host = import_at_home) },
  { "buffers-1000", "there are 1000 buffers at most", "limits of allocations that are no limit of memory", DEVICE (.alloc = alloc_few, .free = free_few, .import_host = import_few) },
  { "programs-128", "there are 128 programs at most", "tables of a fixed length", DEVICE (.program_load = load_few, .program_unload = unload_few) },
  { "load-by-address", "binaries at one address are one program", "caches keyed by pointers", DEVICE (.program_load = load_by_address, .program_unload = unload_nothing) },
  { "load-by-size", "binaries of one name and size are one program", "caches keyed by too little", DEVICE (.program_load = load_by_size, .program_unload = unload_nothing) },
  { "load-by-15-letters", "programs whose names have the same first 15 letters are one", "names cut short", DEVICE (.program_load = load_by_short_name, .program_unload = unload_nothing) },
  { "disassembly-own", "disassemble() gives memory that is not from host->alloc", "memory of the wrong owner", TEXT (text_of_its_own) },
  { "disassembly-null", "disassemble() answers OK and NULL", "a stub", TEXT (text_null) },
  { "disassembly-anything", "disassemble() takes damaged binaries", "bytes believed without a check", TEXT (text_of_anything) },
  { "disassembly-crashes", "disassemble() of damaged binaries crashes", "lengths believed without a check", TEXT (text_crashes) },
  { "disassembly-first", "disassemble() gives the first text for ever", "one buffer for the listing", TEXT (text_of_the_first) },
  { "disassembly-latin", "disassemble() gives a text that is no UTF-8", "comments in the vendor's own encoding", TEXT (text_latin) },
  { "context-null", "context() answers OK and NULL", "a stub", DEVICE (.context = context_null) },
  { "context-new", "context() gives another object each time", "contexts made on demand", DEVICE (.context = context_new) },
  { "context-no-text", "context() fails without a text", "a stub", DEVICE (.context = context_fails) },
  { "alloc-large-beside", "buffers of 1 MiB and more are aligned to 8 bytes", "mappings with a header", DEVICE (.alloc = alloc_beside) },
  { "launches-write-lines", "what lies behind a launch's output on its line is lost", "sizes rounded up to lines", DEVICE (.alloc = sizes_alloc, .free = sizes_free, .submit = launches_write_lines) },
  { "copies-31-bits", "offsets of copies have 31 bits", "int for size_t", DEVICE (.submit = copies_of_31_bits) },
  { "copies-32-bits", "offsets of copies have 32 bits", "unsigned for size_t", DEVICE (.submit = copies_of_32_bits) },
  { "refused-goes-on", "what stands behind a refused command is done", "loops that note a failure and go on", DEVICE (.submit = goes_on) },
  { "times-add-up", "times are those since the submission began", "two stamps where four are needed", DEVICE (.submit = times_add_up) },
  { "times-of-first", "the first command has the time of all", "one stamp for each submission", DEVICE (.submit = times_of_first) },
  { "logs-success", "every submit() logs an error", "messages of a debug build", DEVICE (.submit = logs_success) },
  { "table-dies", "a device's table is gone after the next open()", "tables in the device's own memory", .module = { .open = open_fresh_table }, .cases = CASES },
  { "target-grows", "target() of its own arch is another arch", "names that are not canonical", .renderer = { .target = target_grows }, .cases = "declared/*" },
  /* clang-format on */
};
FAULT_TABLE (faults_vendor);
