/* SPDX-License-Identifier: MIT
 *
 * probe-import.c: what becomes of host memory that is somebody else's. */
#include <malloc.h>
#include <sys/mman.h>

#include "probe.h"

enum { PAGE = 4096, SIZE = 200000, ROOM = 64 * PAGE };

static void
say_memory (const char *where, const unsigned char *memory)
{
  say (where, "%08x", tiny_hash (0, memory, ROOM));
}

/* Imports @n bytes from @memory + @at on, launches on them, copies and frees them. */
static void
probe_part (Probe *self, unsigned char *memory, size_t at, uint64_t n, const char *where)
{
  enum { POINTS = 1000, OFFSET = 512 };
  TinyPluginBuffer *shared = NULL, *own = probe_alloc (self, SIZE), *again = NULL;
  const TinyStatus status
      = self->table->import_host (self->device, memory + at, n, &shared, &self->error);
  say_status (self, where, status);
  say (where, "%s", shared != NULL ? "a buffer" : "NULL");
  Rewrite *k = kernel_simple (self, "import", POINTS);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = status == TINY_STATUS_OK && shared != NULL && own != NULL
                                   ? probe_load (self, &linear)
                                   : NULL;
  if (program != NULL) {
    const int64_t variable = 7;
    const TinySpan spans[]
        = { { shared, OFFSET, 4 * POINTS }, { shared, n / 2 / 512 * 512, 4 * POINTS } };
    const TinyCommand command = { .struct_size = sizeof command,
                                  .type = TINY_COMMAND_DISPATCH,
                                  .program = program,
                                  .buffers = spans,
                                  .variables = &variable,
                                  .n_buffers = 2,
                                  .n_variables = 1,
                                  .grid = { POINTS, 1, 1 } };
    for (int time = 0; time < 2; time++) {
      probe_fill (memory + at + n / 2, n / 2, (unsigned) time + 3);
      say_status (self, where, probe_submit (self, &command, 1));
      say_memory (where, memory);
    }
    const TinyCommand copy = command_copy (own, 0, shared, 1000, n - 1000);
    say_status (self, where, probe_submit (self, &copy, 1));
    say_bytes (self, where, own, n - 1000);
    say_status (self, where, probe_upload (self, shared, n - 777, probe_data, 777));
    say_memory (where, memory);
    say_status (self, where, probe_download (self, shared, 999, probe_back, 1234));
    say (where, "%08x", tiny_hash (0, probe_back, 1300));
    say_status (self, where,
                self->table->import_host (self->device, memory, PAGE, &again, &self->error));
    self->table->free (self->device, again);
    self->table->program_unload (self->device, program);
  }
  if (shared != NULL)
    self->table->free (self->device, shared);
  self->table->free (self->device, own);
  say_memory (where, memory);
  kernel_free (k);
}

void
probe_import (Probe *self)
{
  if (self->table->import_host == NULL)
    return;
  unsigned char *memory
      = mmap (NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return;
  probe_fill (memory, ROOM, 12);
  probe_part (self, memory, 2 * PAGE, SIZE, "import");
  probe_part (self, memory, 2 * PAGE + 64, 20001, "import a part");
  probe_part (self, memory, 2 * PAGE + 64, 20001, "import it again");
  const size_t before = mallinfo2 ().uordblks + mallinfo2 ().hblkhd;
  for (int i = 0; i < 200; i++) {
    TinyPluginBuffer *shared = NULL;
    if (self->table->import_host (self->device, memory + (size_t) i * 64, 64, &shared,
                                  &self->error)
            == TINY_STATUS_OK
        && shared != NULL)
      self->table->free (self->device, shared);
  }
  say ("imports", "loses %d", mallinfo2 ().uordblks + mallinfo2 ().hblkhd > before + 4000);
  munmap (memory, ROOM);
}
