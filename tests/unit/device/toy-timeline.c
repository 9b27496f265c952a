/* SPDX-License-Identifier: MIT
 *
 * toy-timeline.c: see there. */
#include "toy-timeline.h"

#include <string.h>

#include "../asynchronous.h"

struct TinyPluginBuffer {
  guint64 n_bytes;
  guint8 *data, *host;
};

Toy toy;
static TinyDeviceTable table;
static char the_handle;

static void
toy_close (TinyPluginDevice *device)
{
}

static TinyStatus
toy_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  g_strlcpy (out->name, "a toy", sizeof out->name);
  out->flags = toy.flags;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_alloc (TinyPluginDevice *device,
           uint64_t n_bytes,
           TinyPluginBuffer **out,
           TinyPluginError *error)
{
  *out = g_new0 (TinyPluginBuffer, 1);
  (*out)->n_bytes = n_bytes;
  (*out)->data = g_malloc0 (n_bytes);
  (*out)->host = g_malloc0 (n_bytes);
  g_atomic_int_inc (&toy.n_buffers);
  return TINY_STATUS_OK;
}

static void
toy_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  g_free (buffer->data);
  g_free (buffer->host);
  g_free (buffer);
  g_atomic_int_add (&toy.n_buffers, -1);
}

static void
run (const TinyCommand *command)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  g_usleep (toy.run_us);
  if (command->type == TINY_COMMAND_UPLOAD)
    memcpy (dst->buffer->data + dst->offset, command->host, dst->n_bytes);
  if (command->type == TINY_COMMAND_DOWNLOAD)
    memcpy (command->host, src->buffer->data + src->offset, src->n_bytes);
  if (command->type == TINY_COMMAND_DISPATCH)
    for (guint64 i = 0; i < command->buffers[0].n_bytes; i++)
      command->buffers[0].buffer->data[command->buffers[0].offset + i]
          = (guint8) (command->buffers[1].buffer->data[command->buffers[1].offset + i] + 1);
}

static TinyStatus
toy_submit (TinyPluginDevice *device,
            TinyPluginQueue *queue,
            const TinySubmit *work,
            TinyPluginError *error)
{
  for (uint32_t i = 0; i < work->n_commands; i++) {
    run (&work->commands[i]);
    if (work->out_ns != NULL)
      work->out_ns[i] = 7;
  }
  return TINY_STATUS_OK;
}

static TinyStatus
toy_load (TinyPluginDevice *device,
          const TinyProgramArgs *args,
          TinyPluginProgram **out,
          TinyPluginError *error)
{
  *out = (TinyPluginProgram *) &the_handle;
  return TINY_STATUS_OK;
}

static void
toy_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
}

static TinyStatus
toy_map (TinyPluginDevice *device, TinyPluginBuffer *buffer, void **out, TinyPluginError *error)
{
  *out = buffer->host;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_sync (TinyPluginDevice *device,
          const TinySpan *span,
          uint32_t direction,
          TinyPluginError *error)
{
  guint8 *data = span->buffer->data + span->offset, *host = span->buffer->host + span->offset;
  g_atomic_int_inc (&toy.n_syncs);
  if (direction == TINY_SYNC_TO_HOST)
    memcpy (host, data, span->n_bytes);
  else
    memcpy (data, host, span->n_bytes);
  return TINY_STATUS_OK;
}

static const TinyDeviceTable toy_table = {
  .struct_size = sizeof toy_table,
  .close = toy_close,
  .info = toy_info,
  .alloc = toy_alloc,
  .free = toy_free,
  .submit = toy_submit,
  .program_load = toy_load,
  .program_unload = toy_unload,
  .map = toy_map,
  .sync = toy_sync,
};

static TinyStatus
toy_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  g_strlcpy (out->arch, "toy1", sizeof out->arch);
  out->index_dtype = TINY_DTYPE_I32;
  out->dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_U8) | TINY_DTYPE_BIT (TINY_DTYPE_I32)
                        | TINY_DTYPE_BIT (TINY_DTYPE_U32);
  out->max_lanes = out->max_params = 1;
  out->max_grid[0] = out->max_grid[1] = out->max_grid[2] = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  return TINY_STATUS_COMPILE;
}

static const TinyRenderer toy_renderer = { .struct_size = sizeof toy_renderer,
                                           .name = "TOYC",
                                           .target = toy_target,
                                           .compile = toy_compile };

static TinyStatus
toy_init (const TinyHost *host, TinyPluginError *error)
{
  return TINY_STATUS_OK;
}

static TinyStatus
toy_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  *n = 0;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_open (const char *id,
          TinyPluginDevice **out,
          const TinyDeviceTable **out_table,
          TinyPluginError *error)
{
  *out = NULL;
  *out_table = &table;
  table = asynchronous_wrap (&toy_table);
  if (toy.lacks_sync)
    table.sync = NULL;
  if (toy.lacks_reached)
    table.reached = NULL;
  if (toy.lacks_queues)
    table.queue_create = NULL, table.queue_destroy = NULL;
  return TINY_STATUS_OK;
}

static const TinyPluginModule toy_module = {
  .struct_size = sizeof toy_module,
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .n_renderers = 1,
  .name = "TOY",
  .renderers = &toy_renderer,
  .init = toy_init,
  .scan = toy_scan,
  .open = toy_open,
};

TinyDevice *
try_toy (GError **error)
{
  g_autoptr (TinyBackend) backend = tiny_backend_new (&toy_module, NULL, NULL);
  const TinyDeviceOptions options = { .name = "TOY", .id = "toy" };
  return tiny_device_new (backend, &options, error);
}

TinyDevice *
open_toy (void)
{
  asynchronous_reset ();
  memset (&toy, 0, sizeof toy);
  TinyDevice *device = try_toy (NULL);
  g_assert_nonnull (device);
  return device;
}
