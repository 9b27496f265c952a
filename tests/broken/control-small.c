/* SPDX-License-Identifier: MIT
 *
 * control-small.c: a chip that is right, small and slow: memory of its own of TINY_BROKEN_MEMORY MiB, of which one buffer
 * takes no more than 31 of 64 parts; TINY_BROKEN_SPEED bytes a second are copied, and a launch takes as long as 16 KiB.
 * Without these variables it is the backend inside. */
#include <pthread.h>
#include <unistd.h>

#include "broken.h"

enum { LAUNCH_BYTES = 16 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_used;
static TinyDeviceTable table;

static uint64_t
read_number (const char *name)
{
  const char *text = getenv (name);
  return text != NULL ? strtoull (text, NULL, 10) : 0;
}

static uint64_t
memory_bytes (void)
{
  return read_number ("TINY_BROKEN_MEMORY") << 20;
}

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (inside.device->info (device, out, error));
  if (memory_bytes () == 0)
    return TINY_STATUS_OK;
  out->memory_bytes = memory_bytes ();
  out->max_buffer_bytes = memory_bytes () / 64 * 31;
  out->flags &= ~(uint32_t) (TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT);
  return TINY_STATUS_OK;
}

/* Takes @more of the memory where it is there, or gives back @less. */
static int
take (uint64_t more, uint64_t less)
{
  pthread_mutex_lock (&lock);
  const int has_room = memory_bytes () == 0 || n_used + more <= memory_bytes ();
  n_used += has_room ? more : 0;
  n_used -= less;
  pthread_mutex_unlock (&lock);
  return has_room;
}

static TinyStatus
alloc (TinyPluginDevice *device,
       uint64_t n_bytes,
       TinyPluginBuffer **out,
       TinyPluginError *error)
{
  const int fits = memory_bytes () == 0 || n_bytes <= memory_bytes () / 64 * 31;
  if (!fits || !take (n_bytes, 0))
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%llu bytes are more than there are",
                      (unsigned long long) n_bytes);
  const TinyStatus status = inside.device->alloc (device, n_bytes, out, error);
  if (status == TINY_STATUS_OK)
    sizes_put (*out, n_bytes);
  else
    take (0, n_bytes);
  return status;
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  const uint64_t n_bytes = sizes_take (buffer);
  inside.device->free (device, buffer);
  take (0, n_bytes);
}

SUBMIT (submit_slowly)
{
  const uint64_t speed = read_number ("TINY_BROKEN_SPEED");
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; speed > 0 && i < submit->n_commands; i++)
    n_bytes += submit->commands[i].type == TINY_COMMAND_DISPATCH ? LAUNCH_BYTES
               : submit->commands[i].type == TINY_COMMAND_UPLOAD
                   ? submit->commands[i].dst.n_bytes
                   : submit->commands[i].src.n_bytes;
  if (speed > 0)
    usleep ((useconds_t) (n_bytes * 1000000 / speed));
  return inside.device->submit (device, queue, submit, error);
}

/* A chip's memory is not seen by the host. */
static TinyStatus
open_small (const char *id,
            TinyPluginDevice **out,
            const TinyDeviceTable **out_table,
            TinyPluginError *error)
{
  const TinyDeviceTable *whole;
  TINY_TRY (inside_open (id, out, &whole, error));
  table = *whole;
  if (memory_bytes () != 0) {
    table.map = NULL;
    table.sync = NULL;
    table.import_host = NULL;
  }
  *out_table = &table;
  return TINY_STATUS_OK;
}

static const Fault rows[] = {
  /* clang-format off */
  { "none-small", "nothing is wrong, it has little memory and is slow", "the measure of false alarms", .module = { .open = open_small },
    .device = { .info = info, .alloc = alloc, .free = free_buffer, .submit = submit_slowly } },
  /* clang-format on */
};
FAULT_TABLE (faults_small);
