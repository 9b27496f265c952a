/* SPDX-License-Identifier: MIT
 *
 * order-threads.c: everything from a thread that did not open the device: buffers and programs are made, used and ended
 * there, and nothing of them stays. */
#include "fresh.h"
#include "order.h"
#include "step.h"

enum { TIMES = 8, STRETCHES = 4, GIVEN = 64, N_BYTES = 16 << 10, LEAK_BYTES = 128 << 10 };

typedef struct {
  ConfRaw raw; /* the trial is NULL in other threads */
  ConfStep step;
  GBytes *binary;
  /* Made at home, to be ended there. */
  TinyPluginProgram *programs[GIVEN];
  TinyPluginBuffer *buffers[GIVEN];
  const char *what; /* that failed, */
  TinyStatus status;
  char text[256];
} Visit;

static gboolean
note (Visit *self, const char *what, TinyStatus status, const TinyPluginError *error)
{
  if (status == TINY_STATUS_OK)
    return TRUE;
  self->what = what;
  self->status = status;
  g_strlcpy (self->text, error->text, sizeof self->text);
  return FALSE;
}

/* A launch of the step on buffers that are made for it. */
static gboolean
launch (Visit *self, TinyPluginQueue *queue, TinyPluginProgram *program, TinyPluginError *error)
{
  const TinyDeviceTable *table = self->raw.table;
  TinyPluginDevice *device = self->raw.device;
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  void *address;
  gboolean good = TRUE;
  for (guint i = 0; i < self->step.n_buffers && good; i++) {
    const gsize n = conf_raw_round (&self->raw, MAX (self->step.n_bytes[i], N_BYTES));
    good = note (self, "alloc", table->alloc (device, n, &buffers[i], error), error);
    if (good && (self->raw.info->flags & TINY_DEVICE_HOST_MEMORY) != 0)
      good = note (self, "map", table->map (device, buffers[i], &address, error), error);
  }
  conf_step_get_spans (&self->step, buffers, spans);
  const TinyCommand command = conf_step_dispatch (&self->step, program, spans);
  TinySubmit work = { .struct_size = sizeof work, .commands = &command, .n_commands = 1 };
  if (good)
    good = note (self, "submit", conf_table_submit (table, device, queue, &work, error), error);
  for (guint i = 0; i < self->step.n_buffers; i++)
    if (buffers[i] != NULL)
      table->free (device, buffers[i]);
  return good;
}

static gboolean
import (Visit *self, TinyPluginError *error)
{
  const TinyDeviceTable *table = self->raw.table;
  TinyPluginBuffer *buffer = NULL;
  if (table->import_host == NULL || (self->raw.info->flags & TINY_DEVICE_HOST_MEMORY) == 0)
    return TRUE;
  g_autofree guint8 *room = g_malloc0 (2 * TINY_SPAN_ALIGNMENT);
  guint8 *memory = room + (TINY_SPAN_ALIGNMENT - (guintptr) room % TINY_SPAN_ALIGNMENT);
  if (!note (self, "import_host",
             table->import_host (self->raw.device, memory, 64, &buffer, error), error))
    return FALSE;
  table->free (self->raw.device, buffer);
  return TRUE;
}

static gpointer
visit (gpointer data)
{
  Visit *self = data;
  const TinyDeviceTable *table = self->raw.table;
  TinyPluginDevice *device = self->raw.device;
  TinyPluginError error = { .struct_size = sizeof error };
  TinyPluginQueue *queue = NULL;
  TinyPluginProgram *program = NULL;
  gsize size;
  const void *binary = g_bytes_get_data (self->binary, &size);
  if (table->queue_create != NULL
      && !note (self, "queue_create", table->queue_create (device, &queue, &error), &error))
    return NULL;
  ConfRaw own = self->raw;
  const TinyStatus status = conf_step_load (&self->step, &own, binary, size, &program);
  if (note (self, "program_load", status, &own.error)) {
    if (launch (self, queue, program, &error))
      import (self, &error);
    table->program_unload (device, program);
  }
  for (guint i = 0; i < GIVEN; i++) {
    if (self->programs[i] != NULL)
      table->program_unload (device, g_steal_pointer (&self->programs[i]));
    if (self->buffers[i] != NULL)
      table->free (device, g_steal_pointer (&self->buffers[i]));
  }
  if (table->queue_destroy != NULL)
    table->queue_destroy (device, queue);
  return NULL;
}

static gboolean
visit_once (ConfTrial *trial, Visit *self)
{
  gsize size;
  const void *binary = g_bytes_get_data (self->binary, &size);
  for (guint i = 0; i < GIVEN && self->what == NULL; i++)
    if (note (self, "program_load",
              conf_step_load (&self->step, &self->raw, binary, size, &self->programs[i]),
              &self->raw.error))
      note (self, "alloc",
            self->raw.table->alloc (self->raw.device, conf_raw_round (&self->raw, N_BYTES),
                                    &self->buffers[i], &self->raw.error),
            &self->raw.error);
  g_thread_join (g_thread_new ("conformance", visit, self));
  return conf_check (trial, self->what == NULL,
                     "beside the thread that opened the device: %s: %s: %s", self->what,
                     conf_status_to_string (self->status), self->text);
}

/* Memory of malloc() in several stretches, of which one takes no more. Other threads' heaps, and memory that a driver
 * keeps for later, are not in that number: what is made at home is. */
static void
check_growth (ConfTrial *trial, Visit *self)
{
  gint64 least = G_MAXINT64;
  for (guint i = 0; i < STRETCHES && least > LEAK_BYTES; i++) {
    const ConfUsage before = conf_usage_get ();
    for (guint k = 0; k < TIMES; k++)
      if (!visit_once (trial, self))
        return;
    least = MIN (least, conf_usage_get ().malloc_bytes - before.malloc_bytes);
  }
  conf_check (trial, least <= LEAK_BYTES,
              "%u buffers and programs that were ended in another thread took %" G_GINT64_FORMAT
              " bytes of malloc()",
              TIMES * GIVEN, least);
}

static void
run_elsewhere (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  GError *error = NULL;
  Visit it = { .what = NULL };
  if (!conf_raw_begin (&it.raw, trial, subject))
    return;
  if (conf_step_init (&it.step, trial, subject)) {
    it.binary = conf_step_compile (&it.step, &error);
    if (conf_check_error (trial, error, "compile"))
      check_growth (trial, &it);
    g_clear_pointer (&it.binary, g_bytes_unref);
    conf_step_clear (&it.step);
  }
  conf_raw_end (&it.raw);
}

void
conf_list_elsewhere (ConfList *out)
{
  conf_list_add (out, &(const ConfCase){ .run = run_elsewhere }, "threads/elsewhere");
}
