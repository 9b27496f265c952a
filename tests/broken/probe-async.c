/* SPDX-License-Identifier: MIT
 *
 * probe-async.c: points, waiting, and memory that host and device cache apart. */
#include <unistd.h>

#include "probe.h"

enum { N = 8, SIZE = 4096, SECOND = 1000000000 };

/* Submissions that nobody waits for, each of one command. */
static void
submit_all (Probe *self, const TinyCommand *command, uint64_t points[N], uint64_t ns[N])
{
  for (int i = 0; i < N; i++) {
    const TinySubmit submit = { .struct_size = sizeof submit,
                                .commands = command,
                                .n_commands = 1,
                                .out_ns = &ns[i],
                                .out_point = &points[i] };
    points[i] = 0;
    say_status (self, "in flight",
                self->table->submit (self->device, self->queue, &submit, &self->error));
  }
}

static TinyStatus
wait (Probe *self, uint64_t point, uint64_t timeout_ns)
{
  return self->table->wait (self->device, self->queue, point, timeout_ns, &self->error);
}

void
probe_points (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, SIZE), *b = probe_alloc (self, SIZE);
  const TinyCommand command = command_copy (b, 0, a, 0, SIZE);
  uint64_t points[N], ns[N] = { 0 }, before = 0, now = 0;
  int n_in_order = 0, goes_back = 0;
  submit_all (self, &command, points, ns);
  for (int i = 1; i < N; i++)
    n_in_order += points[i] > points[i - 1];
  say ("points", "%d in order, the first is %d", n_in_order, points[0] != 0);
  say_status (self, "wait for none", wait (self, points[N - 1], 0));
  self->table->reached (self->device, self->queue, &now, &self->error);
  say ("reached", "too early %d", now >= points[N - 1]);
  uint64_t start = tiny_now_ns ();
  say_status (self, "wait a little", wait (self, points[N - 1], 200000));
  say ("wait a little", "%d", tiny_now_ns () - start < 1500000);
  for (start = tiny_now_ns (); tiny_now_ns () - start < SECOND && now != points[N - 1];) {
    before = now;
    self->table->reached (self->device, self->queue, &now, &self->error);
    goes_back += now < before;
  }
  say ("reached", "at the end %d, went back %d", now == points[N - 1], goes_back != 0);
  say_status (self, "wait", wait (self, points[N - 1], UINT64_MAX));
  say ("times", "%d", ns[N - 1] > 0);
  submit_all (self, &command, points, ns);
  say_status (self, "wait long", wait (self, points[N - 1], UINT64_C (1) * SECOND));
  self->table->free (self->device, a);
  self->table->free (self->device, b);
}

/* What is refused, and what comes of it; and the queue afterwards. */
void
probe_refused (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 64);
  uint64_t point = 0;
  TinyCommand commands[2] = { command_upload (a, 0, probe_data, 64) };
  commands[1] = commands[0];
  commands[1].type = 99;
  const TinySubmit submit = {
    .struct_size = sizeof submit, .commands = commands, .n_commands = 2, .out_point = &point
  };
  probe_fill (probe_data, 64, 1);
  probe_upload (self, a, 0, probe_data, 64);
  const TinyCommand slow = command_copy (a, 0, a, 0, 64);
  uint64_t points[N], ns[N] = { 0 };
  submit_all (self, &slow, points, ns);
  probe_fill (probe_data, 64, 2);
  say_status (self, "refused",
              self->table->submit (self->device, self->queue, &submit, &self->error));
  probe_fill (probe_data, 64, 3);
  say ("refused", "a point %d", point != 0);
  say_status (self, "refused", wait (self, points[N - 1], UINT64_MAX));
  say_status (self, "refused",
              self->table->submit (self->device, self->queue,
                                   &(TinySubmit){ .struct_size = sizeof submit,
                                                  .commands = &slow,
                                                  .n_commands = 1,
                                                  .out_point = &point },
                                   &self->error));
  wait (self, point, UINT64_MAX);
  say_bytes (self, "refused", a, 64);
  self->table->free (self->device, a);
}

/* Work on two queues, of which the other is done. */
void
probe_two_queues (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 64);
  TinyPluginQueue *other = NULL;
  unsigned char back[64] = { 0 };
  uint64_t points[N], ns[N] = { 0 };
  say_status (self, "two queues",
              self->table->queue_create (self->device, &other, &self->error));
  const TinyCommand command = command_download (a, 0, back, 64);
  probe_fill (probe_data, 64, 1);
  probe_upload (self, a, 0, probe_data, 64);
  submit_all (self, &command, points, ns);
  say_status (self, "two queues", wait (self, points[N - 1], UINT64_MAX));
  say ("two queues", "%08x, %d", tiny_hash (0, back, 64), ns[N - 1] > 0);
  usleep (50000);
  self->table->queue_destroy (self->device, other);
  self->table->free (self->device, a);
}

static void
take_over (
    Probe *self, TinyPluginBuffer *buffer, uint64_t offset, uint64_t n, uint32_t direction)
{
  const TinySpan span = { buffer, offset, n };
  say_status (self, "sync", self->table->sync (self->device, &span, direction, &self->error));
}

void
probe_sync (Probe *self)
{
  TinyPluginBuffer *buffer = probe_alloc (self, SIZE);
  unsigned char *seen = NULL;
  probe_fill (probe_data, SIZE, 3);
  if (self->table->map (self->device, buffer, (void **) &seen, &self->error) != TINY_STATUS_OK)
    return;
  probe_upload (self, buffer, 0, probe_data, SIZE);
  take_over (self, buffer, 0, SIZE, TINY_SYNC_TO_HOST);
  say ("sync", "to the host %08x", tiny_hash (0, seen, SIZE));
  memset (seen + 1000, 7, 500);
  take_over (self, buffer, 1000, 500, TINY_SYNC_TO_DEVICE);
  say_bytes (self, "sync", buffer, SIZE);
  /* The host's bytes beside those that it takes over stay. */
  seen[2047] = 99;
  seen[2110] = 98;
  probe_fill (probe_data, SIZE, 4);
  probe_upload (self, buffer, 2048, probe_data, 62);
  take_over (self, buffer, 2048, 62, TINY_SYNC_TO_HOST);
  say ("sync", "beside %d %d, within %08x", seen[2047], seen[2110],
       tiny_hash (0, seen + 2048, 62));
  self->table->free (self->device, buffer);
}
