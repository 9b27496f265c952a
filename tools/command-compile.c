/* SPDX-License-Identifier: MIT
 *
 * command-compile.c: tinycore compile and tinycore explain, for files in the IR's text form. */
#include <stdio.h>
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-executable.h"
#include "ir/tiny-text.h"
#include "render/tiny-render.h"
#include "rewrite/tiny-affine.h"
#include "tools/commands.h"
#include "tools/kernel-files.h"

/* What to do with each kernel. */
typedef struct {
  TinyDevice *device;
  const char *form;
  TinyOpt *opts; /* NULL: by heuristic */
  guint n_opts;
} Emission;

/* The text of one kernel; its first line is the list of optimisations, for --opts. */
static char *
emit_text (const Emission *self, TinyNode *kernel, GError **error)
{
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      own, tiny_graph_import (own, kernel), tiny_device_get_target (self->device), self->opts,
      self->n_opts, error);
  if (program == NULL) {
    g_prefix_error (error, "kernel %s: ", kernel->text ? kernel->text : "?");
    return NULL;
  }
  const TinyRenderer *renderer = tiny_device_get_renderer (self->device);
  g_autofree char *text = NULL;
  if (g_str_equal (self->form, "linear")) {
    text = tiny_linear_to_string (&program->linear);
  } else if (renderer->dialect == NULL) {
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
        "renderer %s makes code straight from the linear program and has no source: use "
        "--emit linear, or a renderer with a dialect such as --dev CPU:CLANG",
        renderer->name);
  } else {
    text = tiny_render_source (&program->linear, renderer->dialect, error);
  }
  const char *opts = program->opts && program->opts[0] ? program->opts : "none";
  return text ? g_strdup_printf ("// opts: %s\n%s\n", opts, text) : NULL;
}

/* The text or bytes of all of them. */
static GByteArray *
emit_all (const Emission *self, GPtrArray *kernels, GError **error)
{
  g_autoptr (GByteArray) all = g_byte_array_new ();
  for (guint i = 0; i < kernels->len; i++) {
    TinyNode *kernel = kernels->pdata[i];
    g_autoptr (GBytes) bytes = NULL;
    if (g_str_equal (self->form, "binary")) {
      bytes = tiny_kernel_compile (self->device, kernel, self->opts, self->n_opts, error);
    } else {
      char *text = emit_text (self, kernel, error);
      bytes = text ? g_bytes_new_take (text, strlen (text)) : NULL;
    }
    if (bytes == NULL)
      return NULL;
    gsize size;
    const guint8 *data = g_bytes_get_data (bytes, &size);
    g_byte_array_append (all, data, (guint) size);
  }
  return g_steal_pointer (&all);
}

static int
compile_file (
    const char *path, const char *dev, const char *opts, Emission *self, const char *output)
{
  GError *error = NULL;
  g_auto (Kernels) kernels = { 0 };
  g_autofree TinyOpt *list = NULL;
  if (opts != NULL && (list = tiny_opts_from_string (opts, &self->n_opts, &error)) == NULL)
    return tinycore_fail (error);
  self->opts = list;
  if ((self->device = tinycore_open_device (dev, &error)) == NULL
      || !kernels_read (path, self->device, &kernels, &error))
    return tinycore_fail (error);
  guint n = kernels.kernels->len;
  gboolean binary = g_str_equal (self->form, "binary");
  if ((binary || opts != NULL) && n != 1) {
    g_printerr ("tinycore: %s has %u kernels; %s\n", path, n,
                binary ? "a binary holds one" : "--opts is for one");
    return EXIT_FAILED;
  }
  g_autoptr (GByteArray) all = emit_all (self, kernels.kernels, &error);
  if (all == NULL || !tinycore_write (output, all->data, all->len, &error))
    return tinycore_fail (error);
  return 0;
}

int
tinycore_compile (int argc, char **argv)
{
  g_autofree char *dev = NULL, *form = NULL, *opts = NULL, *output = NULL;
  int status = 0;
  const GOptionEntry entries[] = {
    { "dev", 0, 0, G_OPTION_ARG_STRING, &dev, "device to compile for, as DEV=", "D" },
    { "emit", 0, 0, G_OPTION_ARG_STRING, &form, "source, binary or linear (the default)",
      "FORM" },
    { "opts", 0, 0, G_OPTION_ARG_STRING, &opts,
      "optimisations by hand, such as 'lanes(1,16) upcast(0,4)' or none", "LIST" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
      "file to write instead of standard output", "FILE" },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "FILE.tir", "Compiles the kernels of an IR file.", entries,
                       &status))
    return status;
  if (form == NULL)
    form = g_strdup ("linear");
  const char *const forms[] = { "source", "binary", "linear", NULL };
  if (argc != 2 || !g_strv_contains (forms, form)) {
    g_printerr ("usage: tinycore compile FILE.tir [--dev D] [--emit source|binary|linear] "
                "[--opts LIST]\n");
    return EXIT_USAGE;
  }
  Emission emission = { .form = form };
  return compile_file (argv[1], dev, opts, &emission, output);
}

/* One access: its strides by range, offset and mask, where the index is affine. */
static void
explain_access (TinyGraph *graph, const TinyNode *access)
{
  const char *what = access->op == TINY_OP_LOAD ? "reads" : "writes";
  g_autofree char *index = tiny_node_to_string (access->sources[1]);
  printf ("    %s slot %" G_GINT64_FORMAT " at %s\n", what, access->sources[0]->arg, index);
  TinyAffine affine;
  if (tiny_affine (graph, access->sources[1], &affine) && affine.rest == NULL) {
    printf ("      strides");
    for (guint i = 0; i < affine.n_terms; i++)
      printf (" %" G_GINT64_FORMAT "×range%u", affine.terms[i].stride,
              tiny_range_get_number (affine.terms[i].range));
    printf (", offset %" G_GINT64_FORMAT "\n", affine.offset);
  }
  TinyNode *gate = NULL;
  if (access->op == TINY_OP_LOAD && access->n_sources > 2)
    gate = access->sources[2];
  if (access->op == TINY_OP_STORE && access->n_sources > 3)
    gate = access->sources[3];
  if (gate != NULL) {
    g_autofree char *mask = tiny_node_to_string (gate);
    printf ("      where %s\n", mask);
  }
}

static gboolean
explain_kernel (TinyDevice *device, TinyGraph *graph, TinyNode *kernel, GError **error)
{
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  TinyNode *sink = tiny_graph_import (own, kernel);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (own, &sink, 1);
  printf ("  kernel %s\n", sink->text ? sink->text : "");
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_RANGE)
      printf ("    range%u: %s, %" G_GINT64_FORMAT " times\n", tiny_range_get_number (node),
              tiny_range_kind_to_string (tiny_range_get_kind (node)),
              tiny_range_get_extent (node));
  }
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
      explain_access (own, node);
  }
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (own, sink, tiny_device_get_target (device), NULL, 0, error);
  if (program == NULL)
    return FALSE;
  printf ("    optimisations on %s: %s\n", tiny_device_get_name (device),
          program->opts && program->opts[0] ? program->opts : "none");
  printf ("    %u instructions, about %" G_GINT64_FORMAT " operations on %" G_GINT64_FORMAT
          " bytes\n",
          program->linear.n_instrs, program->n_flops, program->n_bytes);
  return TRUE;
}

int
tinycore_explain (int argc, char **argv)
{
  g_autofree char *dev = NULL;
  gboolean fusion = FALSE;
  int status = 0;
  const GOptionEntry entries[] = {
    { "dev", 0, 0, G_OPTION_ARG_STRING, &dev, "device to explain it for, as DEV=", "D" },
    { "fusion", 0, 0, G_OPTION_ARG_NONE, &fusion,
      "why each value between kernels is stored, and what it costs", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "FILE.tir", "Shows how an IR file becomes kernels.",
                       entries, &status))
    return status;
  if (argc != 2) {
    g_printerr ("usage: tinycore explain FILE.tir [--dev D] [--fusion]\n");
    return EXIT_USAGE;
  }
  GError *error = NULL;
  g_auto (Kernels) kernels = { 0 };
  TinyDevice *device = NULL;
  if (fusion)
    tiny_env_set_int (TINY_ENV_EXPLAIN, 1);
  if ((device = tinycore_open_device (dev, &error)) == NULL
      || !kernels_read (argv[1], device, &kernels, &error))
    return tinycore_fail (error);
  printf ("%s: %u kernel%s\n", argv[1], kernels.kernels->len,
          kernels.kernels->len == 1 ? "" : "s");
  for (guint i = 0; i < kernels.kernels->len; i++)
    if (!explain_kernel (device, kernels_get_graph (&kernels), kernels.kernels->pdata[i],
                         &error))
      return tinycore_fail (error);
  if (kernels.schedule != NULL) {
    gint64 stored = 0;
    for (guint i = 0; i < kernels.schedule->n_arenas; i++)
      stored += kernels.schedule->arenas[i].n_bytes;
    printf ("  temporaries: %" G_GINT64_FORMAT " bytes\n", stored);
    if (kernels.schedule->explanation != NULL)
      printf ("%s", kernels.schedule->explanation);
  }
  return 0;
}
