/* SPDX-License-Identifier: MIT
 *
 * command-export.c: tinycore export: a model as files that need nothing of tinycore. */
#include "plugin/tiny-registry.h"
#include "tools/bench-cases.h"
#include "tools/commands.h"

/* A case of bench as a model: its inputs are the model's. */
static TinyModel *
model_of_case (const char *text, GError **error)
{
  static const char *const inputs[] = { "a", "b", "c", "d" }, *const outputs[] = { "result" };
  G_STATIC_ASSERT (G_N_ELEMENTS (inputs) == BENCH_MAX_INPUTS);
  g_autoptr (BenchCase) self = bench_case_new (text, error);
  if (self == NULL)
    return NULL;
  g_autoptr (TinyTensor) result = g_object_ref_sink (self->build (self->inputs, self->sizes));
  return tiny_model_new (self->inputs, inputs, self->n_inputs, &result, outputs, 1, NULL,
                         error);
}

int
tinycore_export (int argc, char **argv)
{
  g_autofree char *target = NULL, *output = NULL, *name = NULL;
  g_autofree char *list = tiny_registry_list_code_targets (tiny_registry_get_default ());
  g_autofree char *about
      = g_strdup_printf ("what for: %s%sBACKEND:RENDERER[:ARCH]", list, list[0] ? ", or " : "");
  int status = 0;
  const GOptionEntry entries[] = {
    { "target", 0, 0, G_OPTION_ARG_STRING, &target, about, "T" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "folder to write, new or empty",
      "DIR" },
    { "name", 0, 0, G_OPTION_ARG_STRING, &name, "what files and functions are called", "NAME" },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "MODEL.tir|CASE",
                       "Writes a model as a program that needs nothing of tinycore.", entries,
                       &status))
    return status;
  if (argc != 2 || target == NULL || output == NULL) {
    g_printerr ("usage: tinycore export MODEL.tir|CASE --target T --output DIR [--name NAME]\n"
                "targets: %s\n",
                list);
    return EXIT_USAGE;
  }
  GError *error = NULL;
  g_autoptr (TinyModel) model = g_str_has_suffix (argv[1], ".tir")
                                    ? tiny_model_load (argv[1], &error)
                                    : model_of_case (argv[1], &error);
  if (model == NULL || !tiny_model_export (model, target, name, output, &error))
    return tinycore_fail (error);
  return 0;
}
