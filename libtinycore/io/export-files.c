/* SPDX-License-Identifier: MIT
 *
 * export-files.c: a model as model.json, kernels/NAME.SUFFIX and NAME.safetensors.
 *
 * model.json says what to do with the rest; docs/export.md says what its members mean. The suffix is the
 * renderer's name. */
#include <errno.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>

#include "base/tiny-error.h"
#include "io/export-private.h"

enum { VERSION = 1 };

static void
add_text (JsonBuilder *json, const char *key, const char *text)
{
  json_builder_set_member_name (json, key);
  json_builder_add_string_value (json, text);
}

static void
add_int (JsonBuilder *json, const char *key, gint64 value)
{
  json_builder_set_member_name (json, key);
  json_builder_add_int_value (json, value);
}

static void
begin_list (JsonBuilder *json, const char *key)
{
  json_builder_set_member_name (json, key);
  json_builder_begin_array (json);
}

static void
add_triple (JsonBuilder *json, const char *key, const guint32 values[3])
{
  begin_list (json, key);
  for (guint i = 0; i < 3; i++)
    json_builder_add_int_value (json, values[i]);
  json_builder_end_array (json);
}

/* Inputs or outputs; @buffers: by port, the schedule's number, or NULL where that is the port's own. */
static void
add_ports (JsonBuilder *json, const char *key, const GPtrArray *ports, const guint *buffers)
{
  begin_list (json, key);
  for (guint i = 0; i < ports->len; i++) {
    const TinyPort *port = ports->pdata[i];
    json_builder_begin_object (json);
    add_text (json, "name", port->name);
    add_text (json, "dtype", tiny_dtype_to_string (port->dtype));
    begin_list (json, "shape");
    for (guint d = 0; d < port->n_dims; d++)
      json_builder_add_int_value (json, port->shape[d]);
    json_builder_end_array (json);
    add_int (json, "buffer", buffers != NULL ? buffers[i] : i);
    json_builder_end_object (json);
  }
  json_builder_end_array (json);
}

static void
add_buffers (JsonBuilder *json, const TinyExport *self)
{
  const TinyModel *model = self->model;
  const TinySchedule *schedule = self->recipe->schedule;
  begin_list (json, "buffers");
  for (guint b = 0; b < schedule->n_buffers; b++) {
    const TinyScheduleBuffer *buffer = &schedule->buffers[b];
    gboolean is_weight
        = buffer->kind == TINY_SCHEDULE_INPUT && buffer->slot >= model->inputs->len;
    json_builder_begin_object (json);
    add_int (json, "bytes",
             buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype));
    if (is_weight) {
      const TinyArray *weight = model->weights->pdata[buffer->slot - model->inputs->len];
      add_text (json, "kind", "weight");
      add_text (json, "name", weight->name);
      add_int (json, "offset",
               (gint64) (self->data_offset + tiny_export_get_offset (self, weight->name)));
    } else {
      add_text (json, "kind",
                buffer->kind == TINY_SCHEDULE_INPUT    ? "input"
                : buffer->kind == TINY_SCHEDULE_OUTPUT ? "output"
                                                       : "temporary");
      if (buffer->kind == TINY_SCHEDULE_TEMPORARY)
        add_int (json, "offset", buffer->slot);
    }
    json_builder_end_object (json);
  }
  json_builder_end_array (json);
}

static char *
file_of (const TinyExport *self, const TinyRecipeKernel *kernel)
{
  g_autofree char *suffix = g_ascii_strdown (self->target->renderer->name, -1);
  return g_strdup_printf ("kernels/%s.%s", kernel->name, suffix);
}

static void
add_kernels (JsonBuilder *json, const TinyExport *self)
{
  begin_list (json, "kernels");
  for (guint i = 0; i < self->recipe->kernels->len; i++) {
    const TinyRecipeKernel *kernel = self->recipe->kernels->pdata[i];
    g_autofree char *file = file_of (self, kernel);
    json_builder_begin_object (json);
    add_text (json, "name", kernel->name);
    add_text (json, "file", file);
    add_int (json, "params", kernel->n_params);
    add_int (json, "local_bytes", (gint64) kernel->local_bytes);
    add_triple (json, "group", kernel->group);
    json_builder_end_object (json);
  }
  json_builder_end_array (json);
}

static void
add_launches (JsonBuilder *json, const TinyExport *self)
{
  const TinySchedule *schedule = self->recipe->schedule;
  begin_list (json, "launches");
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    guint number = self->recipe->kernel_of_item[i];
    json_builder_begin_object (json);
    add_int (json, "kernel", number);
    add_triple (json, "grid",
                ((const TinyRecipeKernel *) self->recipe->kernels->pdata[number])->grid);
    begin_list (json, "buffers");
    for (guint b = 0; b < item->n_buffers; b++)
      json_builder_add_int_value (json, item->buffers[b]);
    json_builder_end_array (json);
    add_int (json, "written", item->n_written);
    json_builder_end_object (json);
  }
  json_builder_end_array (json);
}

static void
add_examples (JsonBuilder *json, const TinyExport *self)
{
  begin_list (json, "examples");
  for (guint i = 0; i < self->model->examples->len; i++) {
    const TinyArray *examples = self->model->examples->pdata[i];
    g_autofree char *name = g_strconcat ("examples.", examples->name, NULL);
    json_builder_begin_object (json);
    add_text (json, "input", examples->name);
    add_int (json, "count", examples->shape[0]);
    add_int (json, "offset",
             (gint64) (self->data_offset + tiny_export_get_offset (self, name)));
    json_builder_end_object (json);
  }
  json_builder_end_array (json);
}

static char *
make_manifest (const TinyExport *self)
{
  g_autoptr (JsonBuilder) json = json_builder_new ();
  g_autofree char *data = g_strconcat (self->name, ".safetensors", NULL);
  GHashTableIter iter;
  gpointer key, value;
  json_builder_begin_object (json);
  add_text (json, "format", "tinycore-model");
  add_int (json, "version", VERSION);
  add_text (json, "name", self->name);
  add_text (json, "renderer", self->target->renderer->name);
  add_text (json, "architecture", self->target->target.arch);
  add_text (json, "data", self->data->arrays->len > 0 ? data : "");
  add_ports (json, "inputs", self->model->inputs, NULL);
  add_ports (json, "outputs", self->model->outputs, self->recipe->schedule->outputs);
  add_int (json, "temporary_bytes", tiny_export_get_arena_bytes (self));
  add_buffers (json, self);
  add_kernels (json, self);
  add_launches (json, self);
  add_examples (json, self);
  json_builder_set_member_name (json, "metadata");
  json_builder_begin_object (json);
  g_hash_table_iter_init (&iter, self->model->metadata);
  while (g_hash_table_iter_next (&iter, &key, &value))
    add_text (json, key, value);
  json_builder_end_object (json);
  json_builder_end_object (json);
  g_autoptr (JsonNode) root = json_builder_get_root (json);
  return json_to_string (root, TRUE);
}

gboolean
tiny_export_files (TinyExport *self, GError **error)
{
  g_autofree char *kernels = g_build_filename (self->folder, "kernels", NULL);
  if (g_mkdir (kernels, 0777) != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", kernels, g_strerror (errno));
    return FALSE;
  }
  for (guint i = 0; i < self->recipe->kernels->len; i++) {
    const TinyRecipeKernel *kernel = self->recipe->kernels->pdata[i];
    g_autofree char *file = file_of (self, kernel);
    gsize size;
    const char *code = g_bytes_get_data (kernel->code, &size);
    if (!tiny_export_write (self, file, code, (gssize) size, error))
      return FALSE;
  }
  g_autofree char *manifest = make_manifest (self);
  return tiny_export_write (self, "model.json", manifest, -1, error);
}
