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

/* The flags of @of, "MODULE" or the like, as inspect-flags.def has them: TINY_MODULE_ANY_RENDERER is
 * "any-renderer". A bit that is none of them is a number. */
static void
add_flags (JsonBuilder *line, const char *member, const char *of, guint32 flags)
{
  static const struct {
    const char *of, *name;
    guint32 bit;
  } known[] = {
#define TINY_INSPECT_FLAG(part, flag) { #part, #flag, TINY_##part##_##flag },
#include "tools/inspect-flags.def"
#undef TINY_INSPECT_FLAG
  };
  json_builder_set_member_name (line, member);
  json_builder_begin_array (line);
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (g_str_equal (known[i].of, of) && (flags & known[i].bit) != 0) {
      g_autofree char *name = g_ascii_strdown (known[i].name, -1);
      json_builder_add_string_value (line, g_strdelimit (name, "_", '-'));
      flags &= ~known[i].bit;
    }
  if (flags != 0) {
    g_autofree char *rest = g_strdup_printf ("0x%x", flags);
    json_builder_add_string_value (line, rest);
  }
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
  const struct {
    const char *name;
    guint64 value;
  } numbers[] = { { "vector_bits", target->vector_bits },
                  { "n_vector_registers", target->n_vector_registers },
                  { "max_lanes", target->max_lanes },
                  { "n_threads", target->n_threads },
                  { "max_params", target->max_params },
                  { "max_group_total", target->max_group_total },
                  { "local_bytes", target->local_bytes },
                  { "max_rounds", target->max_rounds } };
  add_text (line, "arch", target->arch);
  add_flags (line, "flags", "TARGET", target->flags);
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
  json_builder_set_member_name (line, "cache_bytes");
  json_builder_begin_array (line);
  for (guint i = 0; i < G_N_ELEMENTS (target->cache_bytes); i++)
    json_builder_add_int_value (line, (gint64) MIN (target->cache_bytes[i], G_MAXINT64));
  json_builder_end_array (line);
  add_ops (self, line, target);
}

/* ---- the parts ---- */
static void
add_boolean (JsonBuilder *line, const char *name, gboolean value)
{
  json_builder_set_member_name (line, name);
  json_builder_add_boolean_value (line, value);
}

static void
say_module (Inspection *self, gint64 took_us)
{
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
  add_flags (line, "flags", "MODULE", module->flags);
  add_boolean (line, "fini", module->fini != NULL);
  add_int (line, "load_us", (guint64) took_us);
  end (self, line);
}

static gboolean
only_claims (const TinyRenderer *renderer)
{
  return (renderer->flags & TINY_RENDERER_CLAIMS_ONLY) != 0;
}

/* @target NULL: it has none, or gives none, for the reason in @error. */
static void
say_renderer (Inspection *self,
              const TinyRenderer *renderer,
              const TinyTarget *target,
              const GError *error)
{
  JsonBuilder *line = begin ("renderer");
  add_text (line, "name", renderer->name);
  add_text (line, "code_version", renderer->code_version);
  add_text (line, "way",
            only_claims (renderer) ? "claims"
            : renderer->dialect    ? "dialect"
                                   : "linear");
  add_flags (line, "renderer_flags", "RENDERER", renderer->flags);
  add_boolean (line, "claims", renderer->claim != NULL);
  add_boolean (line, "disassembles", renderer->disassemble != NULL);
  if (target != NULL)
    add_target (self, line, target);
  else if (error != NULL)
    add_text (line, "error", error->message);
  end (self, line);
}

static void
add_functions (JsonBuilder *line, const TinyDeviceTable *table)
{
  json_builder_set_member_name (line, "functions");
  json_builder_begin_array (line);
#define TINY_DEVICE_CALL(name, ...)                                                            \
  if (table->name != NULL)                                                                     \
    json_builder_add_string_value (line, #name);
#define TINY_DEVICE_VOID TINY_DEVICE_CALL
#include "device/device-calls.def"
#undef TINY_DEVICE_CALL
#undef TINY_DEVICE_VOID
  json_builder_end_array (line);
}

static void
add_device (JsonBuilder *line, const TinyDeviceInfo *info, const TinyDeviceTable *table)
{
  add_text (line, "title", info->name);
  add_text (line, "arch", info->arch);
  add_flags (line, "flags", "DEVICE", info->flags);
  add_int (line, "memory_bytes", info->memory_bytes);
  add_int (line, "max_buffer_bytes", info->max_buffer_bytes);
  add_int (line, "alignment", info->alignment);
  add_int (line, "n_threads", info->n_threads);
  add_int (line, "transfer_bytes", info->transfer_bytes);
  add_functions (line, table);
}

/* Opens it with its default renderer, which looks at the target too; or as it is, where it has none that makes
 * kernels. */
static gboolean
open_device (Inspection *self,
             const char *id,
             TinyDeviceInfo *out_info,
             TinyDeviceTable *out_table,
             GError **error)
{
  const TinyDeviceOptions options = { .name = tiny_backend_get_name (self->backend), .id = id };
  if (tiny_backend_get_module (self->backend)->n_renderers == 0
      || tiny_backend_runs_beside_host (self->backend))
    return tiny_backend_try_device (self->backend, id, out_info, out_table, error);
  g_autoptr (TinyDevice) device = tiny_device_new (self->backend, &options, error);
  if (device == NULL)
    return FALSE;
  *out_info = *tiny_device_get_info (device);
  *out_table = *tiny_device_get_table (device);
  return TRUE;
}

static void
say_device (Inspection *self, const TinyCandidate *candidate)
{
  g_autoptr (GError) error = NULL;
  TinyDeviceInfo info;
  TinyDeviceTable table;
  gint64 before = g_get_monotonic_time ();
  say_calling (self, "open");
  gboolean good = open_device (self, candidate->id, &info, &table, &error);
  gint64 took_us = g_get_monotonic_time () - before;
  JsonBuilder *line = begin ("device");
  add_text (line, "id", candidate->id);
  add_text (line, "name", candidate->name);
  add_text (line, "driver", candidate->driver);
  add_text (line, "class", tiny_device_class_to_string (candidate->device_class));
  add_int (line, "open_us", (guint64) took_us);
  if (good)
    add_device (line, &info, &table);
  else
    add_text (line, "error", error->message);
  end (self, line);
}

/* The target that the first device gives it, else the one of no device; none of one that only claims. */
static TinyTarget *
find_target (Inspection *self, const TinyRenderer *renderer, const char *id, GError **error)
{
  const TinyDeviceOptions options
      = { .name = tiny_backend_get_name (self->backend), .id = id, .renderer = renderer->name };
  g_autofree char *calling = g_strdup_printf ("target of renderer %.64s", renderer->name);
  say_calling (self, calling);
  g_autoptr (TinyDevice) device
      = id != NULL ? tiny_device_new (self->backend, &options, NULL) : NULL;
  TinyTarget own = { 0 };
  if (device != NULL)
    return g_memdup2 (tiny_device_get_target (device), sizeof own);
  return tiny_renderer_read_target (renderer, "", options.name, &own, error)
             ? g_memdup2 (&own, sizeof own)
             : NULL;
}

static void
inspect_renderer (Inspection *self, const TinyRenderer *renderer, const char *id)
{
  g_autoptr (GError) error = NULL;
  TinyTarget *target = only_claims (renderer) ? NULL : find_target (self, renderer, id, &error);
  say_renderer (self, renderer, target, error);
  g_ptr_array_add (self->targets, target);
}

static void
inspect_parts (Inspection *self)
{
  g_autoptr (GError) error = NULL;
  const TinyPluginModule *module = tiny_backend_get_module (self->backend);
  say_calling (self, "scan");
  g_autofree TinyCandidates *candidates = tiny_backend_scan (self->backend, &error);
  const char *id = candidates != NULL && candidates->n > 0 ? candidates->at[0].id : NULL;
  for (guint i = 0; i < module->n_renderers; i++)
    inspect_renderer (self, &module->renderers[i], id);
  if (candidates == NULL)
    say_failed (self, "scan", "", error);
  for (guint i = 0; candidates != NULL && i < candidates->n; i++)
    say_device (self, &candidates->at[i]);
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
