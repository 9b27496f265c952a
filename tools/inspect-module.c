/* SPDX-License-Identifier: MIT
 *
 * inspect-module.c: all that a plugin declares, in the helper process: a line of JSON for each part. */
#include "tools/inspect-module.h"

#include <json-glib/json-glib.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-clean.h"
#include "device/tiny-device.h"
#include "ir/tiny-dtype.h"
#include "plugin/tiny-manifest.h"

enum { MAX_TEXT = 4096 };

typedef struct {
  int descriptor;
  gboolean failed; /* to write */
  TinyBackend *backend;
  GPtrArray *targets; /* of TinyTarget, one of each renderer; NULL where there is none */
} Inspection;

/* ---- lines ---- */
static JsonBuilder *
begin (const char *part)
{
  JsonBuilder *out = json_builder_new ();
  json_builder_begin_object (out);
  json_builder_set_member_name (out, "part");
  json_builder_add_string_value (out, part);
  return out;
}

/* Takes @line. */
static void
end (Inspection *self, JsonBuilder *line)
{
  json_builder_end_object (line);
  g_autoptr (JsonNode) root = json_builder_get_root (line);
  g_autofree char *text = json_to_string (root, FALSE);
  g_autofree char *whole = g_strconcat (text, "\n", NULL);
  gsize n = strlen (whole);
  for (gsize done = 0; done < n && !self->failed;) {
    gssize written = write (self->descriptor, whole + done, n - done);
    self->failed = written <= 0;
    done += self->failed ? 0 : (gsize) written;
  }
  g_object_unref (line);
}

/* Texts of plugins may be anything, but they end where their field does. */
static void
add_text (JsonBuilder *line, const char *name, const char *text)
{
  g_autofree char *valid = tiny_clean_text (text, MAX_TEXT);
  json_builder_set_member_name (line, name);
  json_builder_add_string_value (line, valid);
}

static void
add_int (JsonBuilder *line, const char *name, guint64 value)
{
  json_builder_set_member_name (line, name);
  json_builder_add_int_value (line, (gint64) MIN (value, G_MAXINT64));
}

static void
add_ints (JsonBuilder *line, const char *name, const guint32 *values, guint n)
{
  json_builder_set_member_name (line, name);
  json_builder_begin_array (line);
  for (guint i = 0; i < n; i++)
    json_builder_add_int_value (line, values[i]);
  json_builder_end_array (line);
}

typedef struct {
  guint32 bit;
  const char *name;
} Flag;

static void
add_flags (JsonBuilder *line, const char *name, guint32 flags, const Flag *known, guint n)
{
  json_builder_set_member_name (line, name);
  json_builder_begin_array (line);
  for (guint i = 0; i < n; i++)
    if ((flags & known[i].bit) != 0)
      json_builder_add_string_value (line, known[i].name);
  json_builder_end_array (line);
}

static void
add_dtypes (JsonBuilder *line, const char *name, guint32 dtypes)
{
  json_builder_set_member_name (line, name);
  json_builder_begin_array (line);
  for (TinyDType dtype = TINY_DTYPE_BOOL; dtype < TINY_DTYPE_INDEX; dtype++)
    if ((dtypes & TINY_DTYPE_BIT (dtype)) != 0)
      json_builder_add_string_value (line, tiny_dtype_to_string (dtype));
  json_builder_end_array (line);
}

/* What is about to be called: the last of these lines names what a plugin crashed in. */
static void
say_calling (Inspection *self, const char *what)
{
  JsonBuilder *line = begin ("calling");
  add_text (line, "function", what);
  end (self, line);
}

static void
say_failed (Inspection *self, const char *part, const char *name, const GError *error)
{
  JsonBuilder *line = begin (part);
  add_text (line, "name", name);
  add_text (line, "error", error->message);
  end (self, line);
}

/* ---- targets ---- */
static void
add_op (JsonBuilder *line, const TinyTarget *target, guint op)
{
  json_builder_set_member_name (line, inspect_op_name (op));
  json_builder_begin_object (line);
  for (TinyDType dtype = TINY_DTYPE_BOOL; dtype < TINY_DTYPE_INDEX; dtype++) {
    g_autofree char *made_of = NULL;
    InspectOpState state = inspect_op (target, (TinyInstrOp) op, dtype, &made_of);
    if (state == INSPECT_MEANINGLESS)
      continue;
    json_builder_set_member_name (line, tiny_dtype_to_string (dtype));
    json_builder_begin_object (line);
    add_text (line, "state", inspect_op_state_to_string (state));
    if (made_of != NULL)
      add_text (line, state == INSPECT_EMULATED ? "as" : "reason", made_of);
    json_builder_end_object (line);
  }
  json_builder_end_object (line);
}

static gboolean
is_same_code (const TinyTarget *a, const TinyTarget *b)
{
  return memcmp (a->ops, b->ops, sizeof a->ops) == 0 && a->dtypes_storage == b->dtypes_storage
         && a->dtypes_compute == b->dtypes_compute && a->index_dtype == b->index_dtype;
}

/* Ops of two renderers with the same target are said once. */
static void
add_ops (Inspection *self, JsonBuilder *line, const TinyTarget *target)
{
  const TinyPluginModule *module = tiny_backend_get_module (self->backend);
  for (guint i = 0; i < self->targets->len; i++)
    if (self->targets->pdata[i] != NULL && is_same_code (self->targets->pdata[i], target)) {
      add_text (line, "ops_as", module->renderers[i].name);
      return;
    }
  json_builder_set_member_name (line, "ops");
  json_builder_begin_object (line);
  for (guint op = 1; op <= TINY_INSTR_CMPEQ; op++)
    if (inspect_op_name (op) != NULL)
      add_op (line, target, op);
  json_builder_end_object (line);
}

static void
add_target (Inspection *self, JsonBuilder *line, const TinyTarget *target)
{
  static const Flag flags[] = { { TINY_TARGET_MASKED, "masked" },
                                { TINY_TARGET_GROUPS, "groups" },
                                { TINY_TARGET_GRID_CHUNKS, "grid-chunks" },
                                { TINY_TARGET_FLUSHES_SUBNORMALS, "flushes-subnormals" },
                                { TINY_TARGET_UNALIGNED, "unaligned" },
                                { TINY_TARGET_REASSOCIATES, "reassociates" } };
  const struct {
    const char *name;
    guint64 value;
  } numbers[] = { { "vector_bits", target->vector_bits },
                  { "n_vector_registers", target->n_vector_registers },
                  { "max_lanes", target->max_lanes },
                  { "n_threads", target->n_threads },
                  { "max_params", target->max_params },
                  { "max_group_total", target->max_group_total },
                  { "local_bytes", target->local_bytes } };
  const guint32 caches[] = { (guint32) target->cache_bytes[0], (guint32) target->cache_bytes[1],
                             (guint32) MIN (target->cache_bytes[2], G_MAXUINT32) };
  add_text (line, "arch", target->arch);
  add_flags (line, "flags", target->flags, flags, G_N_ELEMENTS (flags));
  add_dtypes (line, "dtypes_storage", target->dtypes_storage);
  add_dtypes (line, "dtypes_compute", target->dtypes_compute);
  add_text (line, "index_dtype",
            target->index_dtype == TINY_DTYPE_I64   ? "i64"
            : target->index_dtype == TINY_DTYPE_I32 ? "i32"
                                                    : "?");
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    add_int (line, numbers[i].name, numbers[i].value);
  add_ints (line, "max_grid", target->max_grid, 3);
  add_ints (line, "max_group", target->max_group, 3);
  add_ints (line, "cache_bytes", caches, 3);
  add_ops (self, line, target);
}

/* ---- the parts ---- */
static void
say_module (Inspection *self, gint64 took_us)
{
  static const Flag flags[] = { { TINY_MODULE_ANY_RENDERER, "any-renderer" } };
  const TinyPluginModule *module = tiny_backend_get_module (self->backend);
  JsonBuilder *line = begin ("module");
  add_text (line, "name", module->name);
  add_text (line, "vendor", module->vendor);
  add_text (line, "version", module->version);
  add_text (line, "license", module->license);
  add_int (line, "abi_major", module->abi_major);
  add_int (line, "abi_minor", module->abi_minor);
  add_int (line, "abi_minor_min", module->abi_minor_min);
  add_int (line, "struct_size", module->struct_size);
  add_flags (line, "flags", module->flags, flags, G_N_ELEMENTS (flags));
  json_builder_set_member_name (line, "fini");
  json_builder_add_boolean_value (line, module->fini != NULL);
  add_int (line, "load_us", (guint64) took_us);
  end (self, line);
}

/* @target NULL: it gives none, for the reason in @error. */
static void
say_renderer (Inspection *self,
              const TinyRenderer *renderer,
              const TinyTarget *target,
              const GError *error)
{
  JsonBuilder *line = begin ("renderer");
  add_text (line, "name", renderer->name);
  add_text (line, "code_version", renderer->code_version);
  add_text (line, "way", renderer->dialect ? "dialect" : "linear");
  json_builder_set_member_name (line, "disassembles");
  json_builder_add_boolean_value (line, renderer->disassemble != NULL);
  if (target != NULL)
    add_target (self, line, target);
  else
    add_text (line, "error", error->message);
  end (self, line);
}

static void
add_device (JsonBuilder *line, TinyDevice *device)
{
  static const Flag flags[] = { { TINY_DEVICE_HOST_MEMORY, "host-memory" },
                                { TINY_DEVICE_OVERLAPS, "overlaps" },
                                { TINY_DEVICE_RUNS_NOTHING, "runs-nothing" } };
  const TinyDeviceInfo *info = tiny_device_get_info (device);
  const TinyDeviceTable *table = tiny_device_get_table (device);
  const struct {
    gboolean there;
    const char *name;
  } slots[] = { { table->queue_create != NULL, "queue_create" },
                { table->map != NULL, "map" },
                { table->import != NULL, "import" },
                { table->context != NULL, "context" } };
  add_text (line, "title", info->name);
  add_text (line, "arch", info->arch);
  add_flags (line, "flags", info->flags, flags, G_N_ELEMENTS (flags));
  add_int (line, "memory_bytes", info->memory_bytes);
  add_int (line, "max_buffer_bytes", info->max_buffer_bytes);
  add_int (line, "alignment", info->alignment);
  add_int (line, "n_threads", info->n_threads);
  add_int (line, "transfer_bytes", info->transfer_bytes);
  json_builder_set_member_name (line, "optional");
  json_builder_begin_array (line);
  for (guint i = 0; i < G_N_ELEMENTS (slots); i++)
    if (slots[i].there)
      json_builder_add_string_value (line, slots[i].name);
  json_builder_end_array (line);
}

/* Opens the device with its default renderer, or, where it has none, as it is. */
static TinyDevice *
open_device (Inspection *self, const TinyCandidate *candidate, GError **error)
{
  const TinyDeviceOptions options
      = { .name = tiny_backend_get_name (self->backend), .id = candidate->id };
  return tiny_device_new (self->backend, &options, error);
}

static void
say_device (Inspection *self, const TinyCandidate *candidate)
{
  g_autoptr (GError) error = NULL;
  gint64 before = g_get_monotonic_time ();
  TinyDeviceInfo info;
  say_calling (self, "open");
  gboolean has_renderer = tiny_backend_get_module (self->backend)->n_renderers > 0;
  g_autoptr (TinyDevice) device = has_renderer ? open_device (self, candidate, &error) : NULL;
  gboolean good
      = device != NULL
        || (!has_renderer
            && tiny_backend_try_device (self->backend, candidate->id, &info, NULL, &error));
  gint64 took_us = g_get_monotonic_time () - before;
  JsonBuilder *line = begin ("device");
  add_text (line, "id", candidate->id);
  add_text (line, "name", candidate->name);
  add_text (line, "driver", candidate->driver);
  add_text (line, "class", tiny_device_class_to_string (candidate->device_class));
  add_int (line, "open_us", (guint64) took_us);
  if (device != NULL)
    add_device (line, device);
  else if (good)
    add_text (line, "title", info.name);
  else
    add_text (line, "error", error->message);
  end (self, line);
}

/* The target that the first device gives it, else the one of no device. */
static void
inspect_renderer (Inspection *self, const TinyRenderer *renderer, const char *id)
{
  g_autoptr (GError) error = NULL;
  const TinyDeviceOptions options
      = { .name = tiny_backend_get_name (self->backend), .id = id, .renderer = renderer->name };
  TinyTarget *target = NULL;
  g_autofree char *calling = g_strdup_printf ("target of renderer %.64s", renderer->name);
  say_calling (self, calling);
  g_autoptr (TinyDevice) device
      = id != NULL ? tiny_device_new (self->backend, &options, NULL) : NULL;
  TinyTarget own = { 0 };
  if (device != NULL)
    target = g_memdup2 (tiny_device_get_target (device), sizeof *target);
  else if (tiny_renderer_read_target (renderer, "", options.name, &own, &error))
    target = g_memdup2 (&own, sizeof own);
  say_renderer (self, renderer, target, error);
  g_ptr_array_add (self->targets, target);
}

static void
inspect_parts (Inspection *self)
{
  g_autoptr (GError) error = NULL;
  const TinyPluginModule *module = tiny_backend_get_module (self->backend);
  say_calling (self, "scan");
  g_autoptr (GArray) candidates = tiny_backend_scan (self->backend, &error);
  const char *id = candidates != NULL && candidates->len > 0
                       ? g_array_index (candidates, TinyCandidate, 0).id
                       : NULL;
  for (guint i = 0; i < module->n_renderers; i++)
    inspect_renderer (self, &module->renderers[i], id);
  if (candidates == NULL)
    say_failed (self, "scan", "", error);
  for (guint i = 0; candidates != NULL && i < candidates->len; i++)
    say_device (self, &g_array_index (candidates, TinyCandidate, i));
}

gboolean
inspect_module (const char *path, int descriptor)
{
  Inspection self = { .descriptor = descriptor };
  g_autoptr (GError) error = NULL;
  gint64 before = g_get_monotonic_time ();
  say_calling (&self, "dlopen, " TINY_PLUGIN_ENTRY_SYMBOL ", init");
  self.backend = tiny_backend_load (path, &error);
  if (self.backend == NULL) {
    say_failed (&self, "module", "", error);
    end (&self, begin ("end"));
    return !self.failed;
  }
  self.targets = g_ptr_array_new_with_free_func (g_free);
  say_module (&self, g_get_monotonic_time () - before);
  inspect_parts (&self);
  say_calling (&self, "fini");
  g_ptr_array_unref (self.targets);
  g_object_unref (self.backend);
  end (&self, begin ("end"));
  return !self.failed;
}
