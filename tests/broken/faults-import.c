/* SPDX-License-Identifier: MIT
 *
 * faults-import.c: import_host() that does not share the memory it is given, or not all of it, or not only it.
 *
 * Most put a shadow in the memory's place: parts of it go there before a submission, and come back after it. */
#include <pthread.h>

#include "broken.h"

enum { PAGE = 4096, MOST_ALIVE = 64, SEGMENT = 1 << 17 };

typedef struct {
  TinyPluginBuffer *buffer;
  char *memory, *shadow;
  size_t n_bytes;
} Imported;
static Imported imported[MOST_ALIVE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Imported *
find (const TinyPluginBuffer *buffer)
{
  for (int i = 0; i < MOST_ALIVE; i++)
    if (imported[i].buffer == buffer)
      return &imported[i];
  return NULL;
}

#define IMPORT(name)                                                                           \
  static TinyStatus name (TinyPluginDevice *device, void *memory, uint64_t n_bytes,            \
                          TinyPluginBuffer **out, TinyPluginError *error)
#define FREE(name) static void name (TinyPluginDevice *device, TinyPluginBuffer *buffer)

/* Remembers @buffer; one too many is simply right. */
static void
remember (TinyPluginBuffer *buffer, void *memory, void *shadow, uint64_t n_bytes)
{
  pthread_mutex_lock (&lock);
  Imported *self = find (NULL);
  if (self != NULL)
    *self = (Imported){ buffer, memory, shadow, (size_t) n_bytes };
  pthread_mutex_unlock (&lock);
}

/* The entry of @buffer, which is free then. */
static Imported
forget (const TinyPluginBuffer *buffer)
{
  pthread_mutex_lock (&lock);
  Imported *self = find (buffer), was = { 0 };
  if (self != NULL) {
    was = *self;
    *self = (Imported){ 0 };
  }
  pthread_mutex_unlock (&lock);
  return was;
}

IMPORT (import_noted)
{
  TINY_TRY (inside.device->import_host (device, memory, n_bytes, out, error));
  remember (*out, memory, NULL, n_bytes);
  return TINY_STATUS_OK;
}

IMPORT (import_shadow)
{
  const size_t room = ((size_t) n_bytes / PAGE + 2) * PAGE;
  char *shadow = aligned_alloc (PAGE, room);
  if (shadow == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory");
  memcpy (shadow, memory, (size_t) n_bytes);
  const TinyStatus status = inside.device->import_host (device, shadow, n_bytes, out, error);
  if (status != TINY_STATUS_OK)
    free (shadow);
  else
    remember (*out, memory, shadow, n_bytes);
  broken_note ();
  return status;
}

FREE (free_noted)
{
  const Imported was = forget (buffer);
  inside.device->free (device, buffer);
  free (was.shadow);
}

FREE (free_written_back)
{
  const Imported was = forget (buffer);
  inside.device->free (device, buffer);
  if (was.shadow != NULL)
    memcpy (was.memory, was.shadow, was.n_bytes);
  free (was.shadow);
}

FREE (free_poisoned)
{
  const Imported was = forget (buffer);
  inside.device->free (device, buffer);
  if (was.memory != NULL) {
    broken_note ();
    memset (was.memory, 0xdd, was.n_bytes);
  }
}

/* ---- shadows ---- */
typedef size_t (*Part) (const Imported *self);

static size_t
part_none (const Imported *self)
{
  return 0;
}
static size_t
part_whole (const Imported *self)
{
  return self->n_bytes;
}

static size_t
part_first_page (const Imported *self)
{
  return self->n_bytes < PAGE ? self->n_bytes : PAGE;
}

static size_t
part_whole_pages (const Imported *self)
{
  return self->n_bytes / PAGE * PAGE;
}

static size_t
part_segment (const Imported *self)
{
  return self->n_bytes < SEGMENT ? self->n_bytes : SEGMENT;
}

static void
move_parts (Part part, int to_host)
{
  pthread_mutex_lock (&lock);
  for (int i = 0; i < MOST_ALIVE; i++) {
    const Imported *self = &imported[i];
    if (self->shadow != NULL)
      memcpy (to_host ? self->memory : self->shadow, to_host ? self->shadow : self->memory,
              part (self));
  }
  pthread_mutex_unlock (&lock);
}

#define SHADOWED(name, in, out)                                                                \
  SUBMIT (name)                                                                                \
  {                                                                                            \
    move_parts (in, 0);                                                                        \
    const TinyStatus status = inside.device->submit (device, queue, submit, error);            \
    move_parts (out, 1);                                                                       \
    return status;                                                                             \
  }
SHADOWED (copy_once, part_none, part_none)
SHADOWED (copy_first_page, part_first_page, part_first_page)
SHADOWED (copy_whole_pages, part_whole_pages, part_whole_pages)
SHADOWED (copy_segment, part_segment, part_segment)
SHADOWED (copy_in, part_whole, part_none)
SHADOWED (copy_out, part_none, part_whole)

/* A submission's results come back when the next one begins. */
SUBMIT (copy_out_late)
{
  static int has_run;
  if (has_run)
    move_parts (part_whole, 1);
  move_parts (part_whole, 0);
  has_run = 1;
  return inside.device->submit (device, queue, submit, error);
}

/* ---- the memory itself ---- */
IMPORT (import_page)
{
  if ((uintptr_t) memory % PAGE != 0)
    broken_note ();
  return inside.device->import_host (device, (char *) memory - (uintptr_t) memory % PAGE,
                                     n_bytes, out, error);
}

IMPORT (import_line)
{
  if ((uintptr_t) memory % 256 != 0)
    broken_note ();
  return inside.device->import_host (device, (char *) memory - (uintptr_t) memory % 256,
                                     n_bytes, out, error);
}

IMPORT (import_pages_only)
{
  if ((uintptr_t) memory % PAGE == 0)
    return inside.device->import_host (device, memory, n_bytes, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "%p is not at the start of a page", memory);
}

IMPORT (import_whole_pages_only)
{
  if (n_bytes % PAGE == 0)
    return inside.device->import_host (device, memory, n_bytes, out, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "%llu bytes are no whole pages",
                    (unsigned long long) n_bytes);
}

IMPORT (import_null)
{
  broken_note ();
  *out = NULL;
  return TINY_STATUS_OK;
}

static unsigned n_alive;

IMPORT (import_one)
{
  if (n_alive > 0) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_INVALID, "memory is registered already");
  }
  TINY_TRY (import_noted (device, memory, n_bytes, out, error));
  n_alive++;
  return TINY_STATUS_OK;
}

FREE (free_one)
{
  const Imported was = forget (buffer);
  n_alive -= was.buffer != NULL;
  inside.device->free (device, buffer);
}

/* The memory of the last few that were ever imported. */
static void *registered[MOST_ALIVE];
static unsigned n_registered;

IMPORT (import_never_again)
{
  int is_known = 0;
  for (unsigned i = 0; i < MOST_ALIVE; i++)
    is_known |= registered[i] == memory;
  if (is_known) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_INVALID, "%p is registered already", memory);
  }
  registered[n_registered++ % MOST_ALIVE] = memory;
  return inside.device->import_host (device, memory, n_bytes, out, error);
}

FREE (free_keeps_imported)
{
  const Imported was = forget (buffer);
  if (was.buffer == NULL)
    inside.device->free (device, buffer);
  else
    broken_note ();
}

IMPORT (import_with_table)
{
  TINY_TRY (import_noted (device, memory, n_bytes, out, error));
  *(volatile char *) calloc (1, 1 << 16) = 1; /* a page table that nobody frees */
  broken_note ();
  return TINY_STATUS_OK;
}

/* A copy engine that moves whole lines: what lies behind the memory, up to the next line, is lost. */
SUBMIT (lines_lost)
{
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  pthread_mutex_lock (&lock);
  for (int i = 0; i < MOST_ALIVE; i++) {
    const Imported *self = &imported[i];
    if (self->memory != NULL && self->n_bytes % 64 != 0) {
      broken_note ();
      memset (self->memory + self->n_bytes, 0, 64 - self->n_bytes % 64);
    }
  }
  pthread_mutex_unlock (&lock);
  return status;
}

/* ---- commands ---- */
EDIT (transfers_from_start)
{
  TinySpan *spans[] = { &command->dst, &command->src };
  int wrong = 0;
  for (int i = 0; i < 2 && !launches (command); i++)
    if (spans[i]->buffer != NULL && spans[i]->offset != 0 && find (spans[i]->buffer) != NULL) {
      spans[i]->offset = 0;
      wrong = 1;
    }
  return wrong;
}

SUBMIT (launches_from_start)
{
  enum { MOST = 64 };
  TinyCommand *commands = commands_copy (submit);
  TinySpan *spans = calloc ((size_t) submit->n_commands * MOST + 1, sizeof *spans);
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    TinySpan *own = spans + (size_t) i * MOST;
    if (!launches (&commands[i]) || commands[i].n_buffers > MOST)
      continue;
    for (uint32_t k = 0; k < commands[i].n_buffers; k++) {
      own[k] = commands[i].buffers[k];
      if (own[k].offset != 0 && find (own[k].buffer) != NULL) {
        own[k].offset = 0;
        broken_note ();
      }
    }
    commands[i].buffers = own;
  }
  const TinyStatus status
      = submit_others (device, queue, submit, commands, submit->n_commands, error);
  free (commands);
  free (spans);
  return status;
}

SUBMIT (copies_refused)
{
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    if (command->type == TINY_COMMAND_COPY
        && (find (command->src.buffer) != NULL || find (command->dst.buffer) != NULL)) {
      broken_note ();
      return tiny_fail (error, TINY_STATUS_INVALID, "memory of another kind");
    }
  }
  return inside.device->submit (device, queue, submit, error);
}

#define SHADOW(function) .import_host = import_shadow, .free = free_noted, .submit = function
#define NOTED(...)       .import_host = import_noted, .free = free_noted, __VA_ARGS__
#define ROW(row_name, row_what, row_seen, ...)                                                 \
  {                                                                                            \
    row_name, row_what, row_seen, .device = { __VA_ARGS__ }, .cases = "memory/import*"         \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("import-copies", "import_host() copies and shares nothing", "staging where memory cannot be pinned", SHADOW (copy_once)),
  ROW ("import-first-page", "import_host() shares the first page only", "a list of pages with one entry", SHADOW (copy_first_page)),
  ROW ("import-whole-pages", "import_host() does not share what is behind the last whole page", "sizes rounded down to pages", SHADOW (copy_whole_pages)),
  ROW ("import-128-kib", "import_host() shares the first 128 KiB", "one segment of a scatter list", SHADOW (copy_segment)),
  ROW ("import-read-only", "what is written to imported memory is not there", "pages pinned for reading", SHADOW (copy_in)),
  ROW ("import-read-once", "imported memory is read when it is imported", "a copy made too early", SHADOW (copy_out)),
  ROW ("import-late", "what is written to imported memory is there after the next submission", "write-back caches", SHADOW (copy_out_late)),
  ROW ("import-at-free", "what is written to imported memory is there after free()", "staging that is written back", .import_host = import_shadow, .free = free_written_back, .submit = copy_in),
  ROW ("import-page-down", "import_host() begins at the start of the page", "an offset within a page forgotten", .import_host = import_page),
  ROW ("import-256-down", "import_host() begins at a multiple of 256 bytes", "addresses without their low bits", .import_host = import_line),
  ROW ("import-pages-only", "import_host() refuses what is not at the start of a page", "an alignment that info() does not tell", .import_host = import_pages_only),
  ROW ("import-sizes-of-pages", "import_host() refuses sizes that are no whole pages", "mapping units that are passed on", .import_host = import_whole_pages_only),
  ROW ("import-null", "import_host() answers OK and NULL", "an unchecked driver call", .import_host = import_null),
  ROW ("import-one", "a second import_host() fails while one is alive", "one window for the host's memory", .import_host = import_one, .free = free_one),
  ROW ("import-never-again", "memory that was imported once cannot be again", "registrations that are not undone", .import_host = import_never_again),
  ROW ("import-poisoned", "free() overwrites memory that was imported", "one path for both kinds of memory", .import_host = import_noted, .free = free_poisoned),
  ROW ("import-kept", "free() keeps what was imported", "a reference that is never dropped", .import_host = import_noted, .free = free_keeps_imported),
  ROW ("import-leaks", "each import_host() loses 64 KiB", "page tables that are not freed", .import_host = import_with_table, .free = free_noted),
  ROW ("import-lines", "what lies behind imported memory on its last line is overwritten", "sizes rounded up to lines", NOTED (.submit = lines_lost)),
  ROW ("import-transfers-at-0", "transfers of imported memory ignore their offset", "a second kind of memory with a path of its own", NOTED (.submit = transfers_from_start)),
  ROW ("import-launches-at-0", "launches on imported memory ignore their spans' offsets", "a second kind of memory with a path of its own", NOTED (.submit = launches_from_start)),
  ROW ("import-no-copies", "COPY of imported memory is refused", "copy engines that see device memory only", NOTED (.submit = copies_refused)),
  /* clang-format on */
};
FAULT_TABLE (faults_import);
