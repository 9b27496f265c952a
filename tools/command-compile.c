/* SPDX-License-Identifier: MIT
 *
 * command-compile.c: tinycore compile, for files in the IR's text form. */
#include <stdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-executable.h"
#include "ir/tiny-text.h"
#include "render/tiny-render.h"
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
  for (guint i = 0; i < n; i++)
    kernels.kernels->pdata[i]
        = tiny_node_sink_untrusted (kernels_get_graph (&kernels), kernels.kernels->pdata[i]);
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
  const gboolean has_form = g_strv_contains (forms, form);
  if (argc != 2 || !has_form) {
    g_printerr ("tinycore: compile: %s\n"
                "usage: tinycore compile FILE.tir [--dev D] [--emit source|binary|linear] "
                "[--opts LIST] [--output FILE]\n",
                has_form ? "one file is wanted" : "--emit: source, binary or linear is wanted");
    return EXIT_USAGE;
  }
  Emission emission = { .form = form };
  return compile_file (argv[1], dev, opts, &emission, output);
}
