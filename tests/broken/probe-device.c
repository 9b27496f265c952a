/* SPDX-License-Identifier: MIT
 *
 * probe-device.c: what memory, copies, queues and programs do. */
#include <unistd.h>

#include "probe.h"

unsigned char probe_data[PROBE_LARGE + 64], probe_back[PROBE_LARGE + 64];

void
probe_fill (unsigned char *to, size_t n, unsigned salt)
{
  for (size_t i = 0; i < n; i++)
    to[i] = (unsigned char) ((i * 2654435761u >> 13) + salt);
}

TinyPluginBuffer *
probe_alloc (Probe *self, uint64_t n_bytes)
{
  TinyPluginBuffer *buffer = NULL;
  const TinyStatus status = self->table->alloc (self->device, n_bytes, &buffer, &self->error);
  if (status != TINY_STATUS_OK || buffer == NULL) {
    say_status (self, "alloc", status);
    say ("alloc", "%llu bytes: %s", (unsigned long long) n_bytes,
         buffer != NULL ? "a buffer" : "NULL");
  }
  return buffer;
}

/* What failed on an asynchronous device has broken its queue. */
static void
renew_queue (Probe *self)
{
  TinyPluginError error = { .struct_size = sizeof error };
  self->table->queue_destroy (self->device, self->queue);
  self->table->queue_create (self->device, &self->queue, &error);
}

TinyStatus
probe_submit_timed (Probe *self, const TinyCommand *commands, uint32_t n, uint64_t *ns)
{
  uint64_t point = 0;
  const int is_asynchronous = self->table->wait != NULL;
  const TinySubmit submit = { .struct_size = sizeof submit,
                              .commands = commands,
                              .n_commands = n,
                              .out_ns = ns,
                              .out_point = is_asynchronous ? &point : NULL };
  TinyStatus status = self->table->submit (self->device, self->queue, &submit, &self->error);
  if (status == TINY_STATUS_OK && point != 0)
    status = self->table->wait (self->device, self->queue, point, UINT64_MAX, &self->error);
  if (status != TINY_STATUS_OK && is_asynchronous)
    renew_queue (self);
  return status;
}

TinyStatus
probe_submit (Probe *self, const TinyCommand *commands, uint32_t n)
{
  return probe_submit_timed (self, commands, n, NULL);
}

TinyCommand
command_upload (TinyPluginBuffer *to, uint64_t offset, const void *from, uint64_t n)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_UPLOAD,
                        .dst = { to, offset, n },
                        .host = (void *) from };
}

TinyCommand
command_download (TinyPluginBuffer *from, uint64_t offset, void *to, uint64_t n)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DOWNLOAD,
                        .src = { from, offset, n },
                        .host = to };
}

TinyCommand
command_copy (TinyPluginBuffer *to,
              uint64_t to_offset,
              TinyPluginBuffer *from,
              uint64_t offset,
              uint64_t n)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_COPY,
                        .dst = { to, to_offset, n },
                        .src = { from, offset, n } };
}

TinyStatus
probe_upload (Probe *self, TinyPluginBuffer *to, uint64_t offset, const void *from, uint64_t n)
{
  const TinyCommand command = command_upload (to, offset, from, n);
  return probe_submit (self, &command, 1);
}

TinyStatus
probe_download (Probe *self, TinyPluginBuffer *from, uint64_t offset, void *to, uint64_t n)
{
  const TinyCommand command = command_download (from, offset, to, n);
  return probe_submit (self, &command, 1);
}

void
say_bytes (Probe *self, const char *where, TinyPluginBuffer *buffer, uint64_t n)
{
  probe_fill (probe_back, sizeof probe_back, 77);
  say_status (self, where, probe_download (self, buffer, 0, probe_back, n));
  say (where, "%08x", tiny_hash (0, probe_back, (size_t) n + 64));
}

/* ---- memory ---- */
static void
probe_zero (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 0), *b = probe_alloc (self, 0);
  say ("zero", "%d", a != b);
  self->table->free (self->device, a);
  self->table->free (self->device, b);
}

static void
probe_sizes (Probe *self)
{
  static const uint64_t sizes[] = { 1, 3, 4, 5, 64, 65, PROBE_SMALL, 65537, PROBE_LARGE };
  for (unsigned i = 0; i < TINY_KIT_N (sizes); i++) {
    TinyPluginBuffer *buffer = probe_alloc (self, sizes[i]);
    if (buffer == NULL)
      continue;
    probe_fill (probe_data, sizeof probe_data, i);
    say_status (self, "size", probe_upload (self, buffer, 0, probe_data, sizes[i]));
    say ("size", "%08x", tiny_hash (0, probe_data, sizeof probe_data));
    say_bytes (self, "size", buffer, sizes[i]);
    say_bytes (self, "size", buffer, sizes[i] / 2);
    self->table->free (self->device, buffer);
  }
}

static void
probe_map (Probe *self)
{
  TinyPluginBuffer *buffer = probe_alloc (self, PROBE_SMALL);
  TinyDeviceInfo info = { .struct_size = sizeof info };
  unsigned char *bytes = NULL, *again = NULL;
  if (self->table->map == NULL || buffer == NULL)
    return;
  self->table->info (self->device, &info, &self->error);
  probe_fill (probe_data, PROBE_SMALL, 5);
  probe_upload (self, buffer, 0, probe_data, PROBE_SMALL);
  say_status (self, "map",
              self->table->map (self->device, buffer, (void **) &bytes, &self->error));
  say_status (self, "map",
              self->table->map (self->device, buffer, (void **) &again, &self->error));
  say ("map", "%d %d", bytes != NULL, bytes == again);
  if (bytes != NULL) {
    say ("map", "%d %d", info.alignment > 0 && (uintptr_t) bytes % info.alignment == 0,
         memcmp (bytes, probe_data, 500));
    bytes[7] ^= 1;
    say_bytes (self, "map", buffer, PROBE_SMALL);
  }
  self->table->free (self->device, buffer);
}

static void
probe_offsets (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, PROBE_LARGE), *b = probe_alloc (self, PROBE_LARGE);
  if (a == NULL || b == NULL)
    return;
  probe_fill (probe_data, PROBE_LARGE, 1);
  probe_upload (self, a, 0, probe_data, PROBE_LARGE);
  probe_fill (probe_data, PROBE_LARGE, 2);
  probe_upload (self, b, 0, probe_data, PROBE_LARGE);
  probe_fill (probe_data, PROBE_LARGE, 3);
  say_status (self, "upload", probe_upload (self, a, 70005, probe_data, 333));
  say_bytes (self, "upload", a, PROBE_LARGE);
  say_bytes (self, "upload", b, PROBE_LARGE);
  say_status (self, "download", probe_download (self, a, 70001, probe_back, 777));
  say ("download", "%08x", tiny_hash (0, probe_back, 900));
  const TinyCommand move = command_copy (b, 99, a, 70003, 67777);
  say_status (self, "copy", probe_submit (self, &move, 1));
  say_bytes (self, "copy", b, PROBE_LARGE);
  const TinyCommand nothing = command_copy (b, 0, a, 0, 0);
  say_status (self, "copy", probe_submit (self, &nothing, 1));
  self->table->free (self->device, a);
  say_bytes (self, "free", b, PROBE_LARGE);
  self->table->free (self->device, b);
}

/* The machine has less. */
static void
probe_exhaustion (Probe *self)
{
  TinyPluginBuffer *mine = probe_alloc (self, PROBE_SMALL), *huge = NULL;
  probe_fill (probe_data, PROBE_SMALL, 9);
  probe_upload (self, mine, 0, probe_data, PROBE_SMALL);
  TinyStatus status
      = self->table->alloc (self->device, UINT64_C (1) << 62, &huge, &self->error);
  say_status (self, "oom", status);
  if (status == TINY_STATUS_OK && huge != NULL)
    self->table->free (self->device, huge);
  say_bytes (self, "oom", mine, PROBE_SMALL);
  self->table->free (self->device, mine);
  mine = probe_alloc (self, PROBE_SMALL);
  self->table->free (self->device, mine);
}

static void
probe_beyond_4_gib (Probe *self)
{
  const uint64_t far = UINT64_C (1) << 32;
  TinyPluginBuffer *buffer = probe_alloc (self, far + 64);
  if (buffer == NULL)
    return;
  say_status (self, "far", probe_upload (self, buffer, far, "far away", 8));
  memset (probe_back, 0, 8);
  probe_download (self, buffer, far, probe_back, 8);
  say ("far", "%.8s", (const char *) probe_back);
  self->table->free (self->device, buffer);
}

/* ---- queues ---- */
static void
probe_order (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 64), *b = probe_alloc (self, 64);
  TinyCommand commands[20];
  uint64_t ns[21];
  probe_fill (probe_data, 20 * 64, 4);
  for (unsigned i = 0; i < 20; i += 2) {
    commands[i] = command_upload (i % 4 ? a : b, 0, probe_data + i * 64, 64);
    commands[i + 1] = command_copy (i % 4 ? b : a, 0, i % 4 ? a : b, 32, 32);
  }
  memset (ns, 0xff, sizeof ns);
  say_status (self, "order", probe_submit_timed (self, commands, 20, ns));
  say_bytes (self, "order", a, 64);
  say_bytes (self, "order", b, 64);
  unsigned n_right = 0;
  for (unsigned i = 0; i < 20; i++)
    n_right += ns[i] < UINT64_C (1000000000);
  say ("order", "%u %d", n_right, ns[20] == UINT64_MAX);
  say_status (self, "order", probe_submit (self, NULL, 0));
  self->table->free (self->device, a);
  self->table->free (self->device, b);
}

/* Commands of a newer core. */
static void
probe_longer (Probe *self)
{
  uint64_t point = 0;
  struct {
    TinyCommand command;
    uint64_t more[3];
  } commands[2] = { 0 };
  TinyPluginBuffer *a = probe_alloc (self, 64);
  probe_fill (probe_data, 128, 6);
  for (unsigned i = 0; i < 2; i++) {
    commands[i].command = command_upload (a, i * 32, probe_data + i * 32, 32);
    commands[i].command.struct_size = sizeof commands[i];
  }
  struct {
    TinySubmit submit;
    uint64_t more[3];
  } longer = { .submit = { .struct_size = sizeof longer,
                           .out_point = self->table->wait != NULL ? &point : NULL,
                           .commands = &commands[0].command,
                           .n_commands = 2 } };
  say_status (self, "longer",
              self->table->submit (self->device, self->queue, &longer.submit, &self->error));
  if (point != 0)
    self->table->wait (self->device, self->queue, point, UINT64_MAX, &self->error);
  say_bytes (self, "longer", a, 64);
  self->table->free (self->device, a);
}

static void
probe_failures (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 64);
  TinyCommand outside = command_upload (a, 60, probe_data, 64),
              good = command_upload (a, 0, probe_data, 64), unknown = good;
  unknown.type = 77;
  const TinyCommand several[] = { good, unknown, good };
  say_status (self, "unknown", probe_submit (self, &unknown, 1));
  say_status (self, "after", probe_submit (self, &good, 1));
  say_status (self, "several", probe_submit (self, several, 3));
  say_status (self, "after", probe_submit (self, &good, 1));
  (void) outside;
  self->table->free (self->device, a);
}

static void
probe_early (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, PROBE_SMALL), *b = probe_alloc (self, PROBE_SMALL);
  unsigned char *seen = NULL;
  probe_fill (probe_data, PROBE_SMALL, 8);
  probe_upload (self, a, 0, probe_data, PROBE_SMALL);
  const TinyCommand move = command_copy (b, 0, a, 0, PROBE_SMALL);
  probe_submit (self, &move, 1);
  if (self->table->map != NULL
      && self->table->map (self->device, b, (void **) &seen, &self->error) == TINY_STATUS_OK
      && seen != NULL)
    say ("early", "%d", memcmp (seen, probe_data, PROBE_SMALL) == 0);
  usleep (30000);
  self->table->free (self->device, a);
  self->table->free (self->device, b);
}

static void
probe_queues (Probe *self)
{
  TinyPluginQueue *queues[4] = { NULL };
  for (unsigned i = 0; i < 4 && self->table->queue_create != NULL; i++)
    say_status (self, "queue",
                self->table->queue_create (self->device, &queues[i], &self->error));
  for (unsigned i = 0; i < 4 && self->table->queue_create != NULL; i++)
    if (queues[i] != NULL && self->table->queue_destroy != NULL)
      self->table->queue_destroy (self->device, queues[i]);
}

void
probe_device (Probe *self)
{
  probe_queues (self);
  probe_zero (self);
  probe_sizes (self);
  probe_map (self);
  probe_offsets (self);
  probe_exhaustion (self);
  probe_beyond_4_gib (self);
  probe_order (self);
  probe_longer (self);
  probe_early (self);
  probe_failures (self);
  probe_import (self);
  if ((self->renderer->flags & TINY_RENDERER_CLAIMS_ONLY) != 0)
    return;
  probe_vendor (self);
  probe_programs (self);
  probe_late (self);
  probe_state (self);
  if (self->table->wait != NULL) {
    probe_points (self);
    probe_refused (self);
    probe_two_queues (self);
  }
  if (self->table->sync != NULL)
    probe_sync (self);
}
