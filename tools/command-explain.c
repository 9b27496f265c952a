/* SPDX-License-Identifier: MIT
 *
 * command-explain.c: tinycore explain: how a program becomes kernels, what runs where, and why.
 *
 * For each kernel its loops, the view that each access is (strides by loop, offset, mask), and its optimisations; or
 * the operation that a unit of the device computes instead, with its operands' views. At the end what the device's
 * plugin said of each operation that it was asked about. As text, or as one JSON object. */
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-claims.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-text.h"
#include "rewrite/tiny-affine.h"
#include "tools/bench-cases.h"
#include "tools/commands.h"
#include "tools/kernel-files.h"

typedef struct {
  JsonBuilder *json; /* NULL: as text */
  const char *source;
  TinyDevice *device; /* that it is explained for */
  guint n_schedules;
  GError *error; /* the first, where a callback met it */
} Explanation;

/* ---- JSON in short ---- */
static void
add_text (JsonBuilder *json, const char *name, const char *value)
{
  json_builder_set_member_name (json, name);
  if (value != NULL)
    json_builder_add_string_value (json, value);
  else
    json_builder_add_null_value (json);
}

static void
add_int (JsonBuilder *json, const char *name, gint64 value)
{
  json_builder_set_member_name (json, name);
  json_builder_add_int_value (json, value);
}

static void
begin_member (JsonBuilder *json, const char *name, gboolean is_array)
{
  json_builder_set_member_name (json, name);
  if (is_array)
    json_builder_begin_array (json);
  else
    json_builder_begin_object (json);
}

/* ---- kernels ---- */
static TinyNode *
get_gate (const TinyNode *access)
{
  const guint at = access->op == TINY_OP_LOAD ? 2 : 3;
  return access->n_sources > at ? access->sources[at] : NULL;
}

/* One access: its strides by range, offset and mask, where the index is affine. */
static void
explain_access (const Explanation *self, TinyGraph *graph, const TinyNode *access)
{
  JsonBuilder *json = self->json;
  const char *what = access->op == TINY_OP_LOAD ? "reads" : "writes";
  TinyAffine affine;
  const gboolean is_affine
      = tiny_affine (graph, access->sources[1], &affine) && affine.rest == NULL;
  TinyNode *gate = get_gate (access);
  g_autofree char *index = tiny_node_to_string (access->sources[1]);
  g_autofree char *mask = gate != NULL ? tiny_node_to_string (gate) : NULL;
  if (json != NULL) {
    json_builder_begin_object (json);
    add_text (json, "does", what);
    add_int (json, "slot", access->sources[0]->arg);
    add_text (json, "index", index);
    add_text (json, "mask", mask);
    if (is_affine) {
      add_int (json, "offset", affine.offset);
      begin_member (json, "strides", FALSE);
      for (guint i = 0; i < affine.n_terms; i++) {
        g_autofree char *name
            = g_strdup_printf ("range%u", tiny_range_get_number (affine.terms[i].range));
        add_int (json, name, affine.terms[i].stride);
      }
      json_builder_end_object (json);
    }
    json_builder_end_object (json);
    return;
  }
  printf ("    %s slot %" G_GINT64_FORMAT " at %s\n", what, access->sources[0]->arg, index);
  if (is_affine) {
    printf ("      strides");
    for (guint i = 0; i < affine.n_terms; i++)
      printf (" %" G_GINT64_FORMAT "×range%u", affine.terms[i].stride,
              tiny_range_get_number (affine.terms[i].range));
    printf (", offset %" G_GINT64_FORMAT "\n", affine.offset);
  }
  if (mask != NULL)
    printf ("      where %s\n", mask);
}

static void
explain_range (const Explanation *self, const TinyNode *range)
{
  const char *kind = tiny_range_kind_to_string (tiny_range_get_kind (range));
  if (self->json != NULL) {
    json_builder_begin_object (self->json);
    add_int (self->json, "number", tiny_range_get_number (range));
    add_text (self->json, "kind", kind);
    add_int (self->json, "extent", tiny_range_get_extent (range));
    json_builder_end_object (self->json);
  } else {
    printf ("    range%u: %s, %" G_GINT64_FORMAT " times\n", tiny_range_get_number (range),
            kind, tiny_range_get_extent (range));
  }
}

/* The kernel's loops and accesses. */
static void
explain_views (const Explanation *self, TinyGraph *graph, TinyNode *sink)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &sink, 1);
  if (self->json != NULL)
    begin_member (self->json, "ranges", TRUE);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_RANGE)
      explain_range (self, order->pdata[i]);
  if (self->json != NULL) {
    json_builder_end_array (self->json);
    begin_member (self->json, "accesses", TRUE);
  }
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
      explain_access (self, graph, node);
  }
  if (self->json != NULL)
    json_builder_end_array (self->json);
}

/* What codegen makes of it. */
static gboolean
explain_code (const Explanation *self,
              TinyDevice *device,
              TinyGraph *graph,
              TinyNode *sink,
              GError **error)
{
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, tiny_device_get_target (device), NULL, 0, error);
  if (program == NULL)
    return FALSE;
  const char *opts = program->opts && program->opts[0] ? program->opts : "none";
  if (self->json != NULL) {
    add_text (self->json, "optimisations", opts);
    add_int (self->json, "instructions", program->linear.n_instrs);
    add_int (self->json, "operations", program->n_flops);
    add_int (self->json, "bytes", program->n_bytes);
    return TRUE;
  }
  printf ("    optimisations on %s: %s\n", tiny_device_get_name (device), opts);
  printf ("    %u instructions, about %" G_GINT64_FORMAT " operations on %" G_GINT64_FORMAT
          " bytes\n",
          program->linear.n_instrs, program->n_flops, program->n_bytes);
  return TRUE;
}

/* ---- operations ---- */

/* "m", "k", … of axis @axis. */
static char *
name_axis (const TinyOperation *operation, guint axis)
{
  static const char *const names[][TINY_OPERATION_MAX_AXES] = {
    [TINY_OPERATION_MATMUL] = { "batch0", "batch1", "batch2", "batch3", "m", "n", "k" },
    [TINY_OPERATION_CONVOLUTION] = { "batch", "group", "out_channel", "in_channel", "out0",
                                     "out1", "out2", "window0", "window1", "window2" },
    [TINY_OPERATION_REDUCTION]
    = { "kept0", "kept1", "kept2", "kept3", "reduced0", "reduced1", "reduced2", "reduced3" },
    [TINY_OPERATION_SOFTMAX] = { "kept0", "kept1", "kept2", "kept3", "axis" },
    [TINY_OPERATION_ATTENTION]
    = { "batch0", "batch1", "batch2", "query", "key", "depth", "value" },
  };
  const char *name
      = operation->kind < G_N_ELEMENTS (names) ? names[operation->kind][axis] : NULL;
  return name != NULL ? g_strdup (name) : g_strdup_printf ("axis%u", axis);
}

static void
explain_operand (const Explanation *self,
                 const TinyOperation *operation,
                 const TinyOperandView *operand)
{
  JsonBuilder *json = self->json;
  const char *role = tiny_operand_role_to_string (operand->role);
  const char *dtype = tiny_dtype_to_string ((TinyDType) operand->dtype);
  if (json != NULL) {
    json_builder_begin_object (json);
    add_text (json, "role", role);
    add_text (json, "dtype", dtype);
    add_int (json, "slot", operand->buffer);
    add_int (json, "offset", operand->offset);
    begin_member (json, "strides", FALSE);
  } else {
    printf ("    %s: %s in slot %u, offset %" G_GINT64_FORMAT ", strides", role, dtype,
            operand->buffer, (gint64) operand->offset);
  }
  for (guint i = 0; i < operation->n_axes; i++) {
    g_autofree char *axis = name_axis (operation, i);
    if (operand->strides[i] == 0)
      continue;
    if (json != NULL)
      add_int (json, axis, operand->strides[i]);
    else
      printf (" %" G_GINT64_FORMAT "×%s", (gint64) operand->strides[i], axis);
  }
  if (json != NULL) {
    json_builder_end_object (json);
    json_builder_end_object (json);
  } else {
    printf ("\n");
  }
}

static void
explain_operation (const Explanation *self, const TinyOperation *operation)
{
  JsonBuilder *json = self->json;
  g_autofree char *name = tiny_operation_to_name (operation);
  if (json != NULL) {
    begin_member (json, "operation", FALSE);
    add_text (json, "name", name);
    add_text (json, "kind", tiny_operation_kind_to_string (operation->kind));
    add_text (json, "activation", tiny_activation_to_string (operation->activation));
    begin_member (json, "extents", FALSE);
  } else {
    printf ("    a unit computes %s:", name);
  }
  for (guint i = 0; i < operation->n_axes; i++) {
    g_autofree char *axis = name_axis (operation, i);
    if (operation->extents[i] == 1)
      continue;
    if (json != NULL)
      add_int (json, axis, operation->extents[i]);
    else
      printf (" %s %" G_GINT64_FORMAT, axis, (gint64) operation->extents[i]);
  }
  if (json != NULL) {
    json_builder_end_object (json);
    begin_member (json, "operands", TRUE);
  } else {
    printf ("\n");
  }
  for (guint i = 0; i < operation->n_operands; i++)
    explain_operand (self, operation, &operation->operands[i]);
  if (json != NULL) {
    json_builder_end_array (json);
    json_builder_end_object (json);
  }
}

static void
explain_verdict (const Explanation *self, const TinyVerdict *verdict)
{
  JsonBuilder *json = self->json;
  g_autofree char *name = tiny_operation_to_name (&verdict->operation);
  g_autofree char *text = tiny_verdict_to_string (verdict);
  if (json == NULL) {
    g_autofree char *clean = tiny_clean_text (text, strlen (text)); /* the plugin's words */
    printf ("    %s: %s\n", name, clean);
    return;
  }
  g_autofree char *reason
      = tiny_clean_text (verdict->claim.reason, sizeof verdict->claim.reason);
  json_builder_begin_object (json);
  add_text (json, "operation", name);
  json_builder_set_member_name (json, "taken");
  json_builder_add_boolean_value (json, verdict->is_taken);
  json_builder_set_member_name (json, "accepted");
  json_builder_add_boolean_value (json, verdict->claim.verdict == TINY_CLAIM_ACCEPTED);
  add_int (json, "cost_ns", (gint64) verdict->claim.cost_ns);
  add_int (json, "own_ns", (gint64) verdict->own_ns);
  add_text (json, "reason", reason);
  json_builder_end_object (json);
}

/* ---- schedules ---- */
static gboolean
explain_item (const Explanation *self,
              TinyDevice *device,
              TinyNode *kernel,
              const TinyOperation *operation,
              GError **error)
{
  TinyDevice *runs_on = operation != NULL ? device : tiny_device_get_runner (device);
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  TinyNode *sink = tiny_graph_import (own, kernel);
  if (self->json != NULL) {
    json_builder_begin_object (self->json);
    add_text (self->json, "name", sink->text ? sink->text : "");
    add_text (self->json, "runs_on", tiny_device_get_name (runs_on));
  } else if (runs_on != device || operation != NULL) {
    printf ("  kernel %s, on %s\n", sink->text ? sink->text : "",
            tiny_device_get_name (runs_on));
  } else {
    printf ("  kernel %s\n", sink->text ? sink->text : "");
  }
  gboolean good = TRUE;
  if (operation != NULL) {
    explain_operation (self, operation);
  } else {
    explain_views (self, own, sink);
    good = explain_code (self, runs_on, own, sink, error);
  }
  if (self->json != NULL)
    json_builder_end_object (self->json);
  return good;
}

/* @schedule NULL: of one kernel, @kernel. */
static gboolean
explain_schedule (Explanation *self,
                  const TinySchedule *schedule,
                  TinyNode *kernel,
                  const GArray *verdicts,
                  GError **error)
{
  guint n = kernel != NULL;
  gint64 stored = 0;
  gboolean good = TRUE;
  for (guint i = 0; schedule != NULL && i < schedule->n_items; i++)
    n += schedule->items[i].kind == TINY_SCHEDULE_KERNEL;
  for (guint i = 0; schedule != NULL && i < schedule->n_arenas; i++)
    stored += schedule->arenas[i].n_bytes;
  if (self->json != NULL) {
    json_builder_begin_object (self->json);
    begin_member (self->json, "kernels", TRUE);
  } else {
    printf ("%s: %u kernel%s\n", self->source, n, n == 1 ? "" : "s");
  }
  if (kernel != NULL)
    good = explain_item (self, self->device, kernel, NULL, error);
  for (guint i = 0; schedule != NULL && good && i < schedule->n_items; i++)
    if (schedule->items[i].kind == TINY_SCHEDULE_KERNEL)
      good = explain_item (self, self->device, schedule->items[i].kernel,
                           schedule->items[i].operation, error);
  const guint n_verdicts = verdicts != NULL ? verdicts->len : 0;
  if (self->json != NULL) {
    json_builder_end_array (self->json);
    begin_member (self->json, "asked", TRUE);
  } else if (n_verdicts > 0) {
    printf ("  operations that %s was asked about:\n", tiny_device_get_name (self->device));
  }
  for (guint i = 0; i < n_verdicts; i++)
    explain_verdict (self, &g_array_index (verdicts, TinyVerdict, i));
  if (self->json != NULL) {
    json_builder_end_array (self->json);
    add_int (self->json, "temporary_bytes", stored);
    json_builder_end_object (self->json);
  } else if (schedule != NULL) {
    printf ("  temporaries: %" G_GINT64_FORMAT " bytes\n", stored);
    if (schedule->explanation != NULL)
      printf ("%s", schedule->explanation);
  }
  return good;
}

/* Called for each schedule that the engine makes. */
static void
on_schedule (const TinySchedule *schedule, const GArray *verdicts, gpointer data)
{
  Explanation *self = data;
  self->n_schedules++;
  if (self->error == NULL)
    explain_schedule (self, schedule, NULL, verdicts, &self->error);
}

/* ---- what is explained ---- */
static gboolean
explain_file (Explanation *self, GError **error)
{
  g_auto (Kernels) kernels = { 0 };
  if (!kernels_read (self->source, self->device, &kernels, error))
    return FALSE;
  return explain_schedule (self, kernels.schedule,
                           kernels.schedule == NULL ? kernels.kernels->pdata[0] : NULL,
                           kernels.verdicts, error);
}

/* A case of bench: built and realised once, on the default device. */
static gboolean
explain_case (Explanation *self, GError **error)
{
  g_autoptr (BenchCase) bench = bench_case_new (self->source, error);
  if (bench == NULL)
    return FALSE;
  tiny_plan_set_watcher (on_schedule, self);
  g_autoptr (TinyTensor) result
      = g_object_ref_sink (bench->build (bench->inputs, bench->sizes));
  const gboolean good = tiny_tensor_realize (result, error);
  tiny_plan_set_watcher (NULL, NULL);
  return good;
}

static gboolean
explain_training (Explanation *self, const char *directory, GError **error)
{
  tiny_plan_set_watcher (on_schedule, self);
  const gboolean good = tinycore_train_briefly (directory, error);
  tiny_plan_set_watcher (NULL, NULL);
  return good;
}

static void
begin_json (Explanation *self)
{
  TinyDevice *runner = tiny_device_get_runner (self->device);
  json_builder_begin_object (self->json);
  add_text (self->json, "source", self->source);
  add_text (self->json, "device", tiny_device_get_name (self->device));
  add_text (self->json, "runner", tiny_device_get_name (runner));
  begin_member (self->json, "schedules", TRUE);
}

static void
end_json (Explanation *self)
{
  json_builder_end_array (self->json);
  json_builder_end_object (self->json);
  g_autoptr (JsonNode) root = json_builder_get_root (self->json);
  g_autofree char *text = json_to_string (root, TRUE);
  printf ("%s\n", text);
}

/* FALSE for what is neither a file nor anything by name. */
static gboolean
check_source (const char *source, gboolean *out_is_file, GError **error)
{
  const gboolean is_case = bench_case_is_named (source);
  *out_is_file = !is_case && !g_str_equal (source, TINYCORE_TRAINABLE);
  if (*out_is_file && !g_str_has_suffix (source, ".tir")
      && !g_file_test (source, G_FILE_TEST_EXISTS)) {
    bench_case_check (source, error);
    g_prefix_error (error, "there is no file %s, and ", source);
    return FALSE;
  }
  return !is_case || bench_case_check (source, error);
}

static int
explain (Explanation *self, const char *dev, const char *directory)
{
  GError *error = NULL;
  gboolean good, is_file;
  if (!check_source (self->source, &is_file, &error)) {
    tinycore_fail (error);
    return EXIT_USAGE;
  }
  if (!is_file && dev != NULL)
    g_setenv ("DEV", dev, TRUE);
  if ((self->device = tinycore_open_device (is_file ? dev : NULL, &error)) == NULL)
    return tinycore_fail (error);
  if (self->json != NULL)
    begin_json (self);
  if (is_file)
    good = explain_file (self, &error);
  else if (g_str_equal (self->source, TINYCORE_TRAINABLE))
    good = explain_training (self, directory, &error);
  else
    good = explain_case (self, &error);
  if (self->error != NULL) {
    g_clear_error (&error);
    error = self->error;
    good = FALSE;
  }
  if (!good)
    return tinycore_fail (error);
  if (self->json != NULL)
    end_json (self);
  return 0;
}

int
tinycore_explain (int argc, char **argv)
{
  g_autofree char *dev = NULL, *directory = NULL;
  gboolean fusion = FALSE, json = FALSE;
  int status = 0;
  const GOptionEntry entries[] = {
    { "dev", 0, 0, G_OPTION_ARG_STRING, &dev, "device to explain it for, as DEV=", "D" },
    { "fusion", 0, 0, G_OPTION_ARG_NONE, &fusion,
      "why each value between kernels is stored, and what it costs", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "one JSON object", NULL },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, &directory, "folder of the IDX files, as of train",
      "DIR" },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "FILE.tir|CASE|" TINYCORE_TRAINABLE,
                       "Shows how a program becomes kernels, what runs where, and why.",
                       entries, &status))
    return status;
  if (argc != 2) {
    g_printerr ("usage: tinycore explain FILE.tir|CASE|" TINYCORE_TRAINABLE
                " [--dev D] [--fusion] [--json] [--data DIR]\n");
    return EXIT_USAGE;
  }
  if (fusion)
    tiny_env_set_int (TINY_ENV_EXPLAIN, 1);
  g_autoptr (JsonBuilder) builder = json ? json_builder_new () : NULL;
  Explanation self = { .json = builder, .source = argv[1] };
  return explain (&self, dev, directory);
}
