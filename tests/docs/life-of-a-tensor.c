/* SPDX-License-Identifier: MIT
 *
 * life-of-a-tensor.c: prints the generated blocks of docs/life-of-a-tensor.md.
 *
 * One expression goes the way that realising it goes, step by step, for a fixed target (NULL:CPU:CLANG
 * compiles for a processor that need not be there), and at the end it runs for real.
 * check-page.py compares what is printed here with the page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen-private.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"
#include "render/tiny-render.h"
#include "schedule/tiny-schedule.h"
#include "tensor/tiny-tensor-private.h"
#include "tiny.h"

static const char target_name[] = "NULL:CPU:CLANG:x86_64,haswell";

static void
show (const char *block, const char *language, const char *text)
{
  printf ("<!-- generated: %s -->\n```%s\n%s%s```\n", block, language, text,
          g_str_has_suffix (text, "\n") ? "" : "\n");
}

/* The lines of @text that @before has not, so that a step shows what it changed. */
static void
show_changes (const char *block, const char *before, const char *text)
{
  g_auto (GStrv) old = g_strsplit (before, "\n", -1), lines = g_strsplit (text, "\n", -1);
  g_autoptr (GString) changes = g_string_new (NULL);
  for (guint i = 0; lines[i] != NULL; i++)
    if (!g_strv_contains ((const char *const *) old, lines[i]))
      g_string_append_printf (changes, "%s\n", lines[i]);
  show (block, "text", changes->len > 0 ? changes->str : "(nothing changes)");
}

static void
check (gconstpointer result, GError *error)
{
  if (result == NULL) {
    g_printerr ("life-of-a-tensor: %s\n", error != NULL ? error->message : "no value");
    exit (1);
  }
}

/* shown */
static TinyTensor *
matrix (gint64 rows, gint64 columns, const float *values)
{
  return tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ rows, columns }, 2,
                                    values, (gsize) (rows * columns) * sizeof (float));
}

static TinyTensor *
expression (void)
{
  TinyTensor *a = matrix (2, 3, (const float[]){ 1, 2, 3, -1, 0, 1 });
  TinyTensor *b = matrix (3, 8, (const float[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5,
                                                 4, 3, 2, 1, 1, 0, 1, 0, 1, 0, 1, 0 });
  TinyTensor *c = matrix (1, 8, (const float[]){ 1, 2, 3, 4, 5, 6, 7, 8 });
  return tiny_tensor_relu (tiny_tensor_add (tiny_tensor_matmul (a, b), c));
}
/* to here */

/* What engine/tiny-realize.c does first: memory gets numbers, so that the same structure is the same
 * graph whatever memory it is about. */
static TinyNode *
number_inputs (TinyGraph *graph, TinyNode *root)
{
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (tiny_runtime_get_graph (), &root, 1);
  gint64 slot = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *sources[8];
    gboolean is_buffer = node->op == TINY_OP_BUFFER;
    g_assert (node->n_sources <= G_N_ELEMENTS (sources));
    for (guint k = 0; k < node->n_sources; k++)
      sources[k] = tiny_node_map_get (&map, node->sources[k]);
    tiny_node_map_set (&map, node,
                       tiny_node_new (graph, is_buffer ? TINY_OP_PARAM : node->op, node->dtype,
                                      node->lanes, node->n_sources, sources,
                                      is_buffer ? slot++ : node->arg, node->ints,
                                      is_buffer ? "CPU" : node->text));
  }
  root = tiny_node_map_get (&map, root);
  return tiny_node_sink (graph, 1, &root, "CPU");
}

/* The kernel after each pass of codegen/pass-list.c; whole where @is_whole, else what changed. */
static const struct {
  const char *pass;
  gboolean is_whole;
} steps[] = {
  { "simplify", FALSE }, { "loops", FALSE }, { "optimise", FALSE },  { "expand", TRUE },
  { "reduce", TRUE },    { "index", FALSE }, { "decompose", FALSE },
};

static void
show_passes (TinyGraph *graph, TinyNode *kernel, const TinyTarget *target, const char *opts)
{
  GError *error = NULL;
  g_autofree char *before = tiny_graph_print (graph, kernel);
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++) {
    TinyNode *root
        = tiny_codegen_run_until (graph, kernel, target, opts, steps[i].pass, &error);
    check (root, error);
    char *text = tiny_graph_print (graph, root);
    if (steps[i].is_whole)
      show (steps[i].pass, "text", text);
    else
      show_changes (steps[i].pass, before, text);
    g_free (before);
    before = text;
  }
}

static void
show_codegen (TinyNode *scheduled, TinyDevice *device)
{
  const TinyTarget *target = tiny_device_get_target (device);
  GError *error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *kernel = tiny_graph_import (graph, scheduled);
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, kernel, target, NULL, 0, &error);
  check (program, error);
  show ("optimisations", "text", program->opts);
  show_passes (graph, kernel, target, program->opts);
  g_autofree char *list = tiny_linear_to_string (&program->linear);
  show ("linear", "text", list);
  g_autofree char *source = tiny_render_source (
      &program->linear, tiny_device_get_renderer (device)->dialect, &error);
  check (source, error);
  const char *function = strstr (source, "\nvoid\n"); /* after the dialect's prelude */
  show ("source", "c", function != NULL ? function + 1 : source);
}

/* What stands between the two marks in this file, the program's own source. */
static void
show_program (const char *path)
{
  static const char first[] = "/* shown */\n", last[] = "/* to here */\n";
  g_autofree char *text = NULL;
  GError *error = NULL;
  gboolean is_read = g_file_get_contents (path, &text, NULL, &error);
  check (is_read ? text : NULL, error);
  char *start = strstr (text, first), *stop = strstr (text, last);
  check (start != NULL && stop != NULL ? start : NULL, NULL);
  *stop = 0;
  show ("program", "c", start + strlen (first));
}

int
main (int argc, char **argv)
{
  if (argc != 2) {
    g_printerr ("usage: life-of-a-tensor SOURCE\n");
    return 2;
  }
  show_program (argv[1]);
  GError *error = NULL;
  g_autoptr (TinyTensor) y = g_object_ref_sink (expression ());
  check (tiny_tensor_get_node (y), (GError *) tiny_tensor_get_error (y));

  TinyGraph *graph = tiny_graph_new (); /* the schedule's from here on */
  TinyNode *sink = number_inputs (graph, tiny_tensor_get_node (y));
  g_autofree char *tensors = tiny_graph_print (graph, sink);
  show ("tensors", "text", tensors);

  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  check (schedule, error);
  g_autofree char *list = tiny_schedule_to_string (schedule);
  show ("schedule", "text", list);
  g_autofree char *kernel = tiny_graph_print (schedule->graph, schedule->items[0].kernel);
  show ("kernel", "text", kernel);

  TinyDevice *device = tiny_engine_get_device (target_name, &error);
  check (device, error);
  show_codegen (schedule->items[0].kernel, device);

  g_autofree char *value = tiny_tensor_to_string (y);
  show ("value", "text", value);
  return 0;
}
