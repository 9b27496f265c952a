/* SPDX-License-Identifier: MIT
 *
 * command-tune.c: tinycore tune: searches for the kernels of models and writes what was found.
 *
 * The search is the engine's, as with BEAM=n; here are the models, each run once. */
#include <stdio.h>
#include <string.h>

#include "base/tiny-env.h"
#include "engine/tiny-executable.h"
#include "engine/tiny-tuned.h"
#include "tools/bench-cases.h"
#include "tools/commands.h"
#include "tools/kernel-files.h"

enum { DEFAULT_BEAM = 2, MAX_BEAM = 64, MAX_SECONDS = 86400 };

/* Makes the kernels of a file runnable, without running them. */
static gboolean
tune_file (const char *path, GError **error)
{
  g_auto (Kernels) kernels = { 0 };
  TinyDevice *device = NULL;
  if ((device = tinycore_open_device (NULL, error)) == NULL
      || !kernels_read (path, device, &kernels, error))
    return FALSE;
  guint n = kernels.kernels->len;
  g_autofree TinyExecutable **executables = g_new (TinyExecutable *, n + 1);
  if (!tiny_executables_get (device, kernels_get_graph (&kernels),
                             (TinyNode *const *) kernels.kernels->pdata, NULL, n, executables,
                             error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    tiny_executable_unref (executables[i]);
  return TRUE;
}

/* Only what the case computes is searched, not what makes its inputs. */
static gboolean
tune_case (const char *text, GError **error)
{
  int beam = tiny_env_get_int (TINY_ENV_BEAM);
  tiny_env_set_int (TINY_ENV_BEAM, 0);
  g_autoptr (BenchCase) bench = bench_case_new (text, error);
  tiny_env_set_int (TINY_ENV_BEAM, beam);
  tiny_tuned_reset_use ();
  if (bench == NULL)
    return FALSE;
  g_autoptr (TinyTensor) result
      = g_object_ref_sink (bench->build (bench->inputs, bench->sizes));
  return tiny_tensor_realize (result, error);
}

static gboolean
is_file (const char *model)
{
  return g_str_has_suffix (model, ".tir");
}

static gboolean
tune_model (const char *model, const char *data, GError **error)
{
  return is_file (model)                           ? tune_file (model, error)
         : g_str_equal (model, TINYCORE_TRAINABLE) ? tinycore_train_briefly (data, error)
                                                   : tune_case (model, error);
}

static gboolean
check_model (const char *model, GError **error)
{
  if (is_file (model) || g_str_equal (model, TINYCORE_TRAINABLE)
      || bench_case_check (model, error))
    return TRUE;
  g_prefix_error (error, "tune: %s",
                  bench_case_is_named (model) ? ""
                                              : "a .tir file, " TINYCORE_TRAINABLE
                                                " or a case is wanted: ");
  return FALSE;
}

static int
tune_models (char **models, int n, const char *data)
{
  GError *error = NULL;
  for (int i = 0; i < n; i++)
    if (!check_model (models[i], &error)) {
      tinycore_fail (error);
      return EXIT_USAGE;
    }
  for (int i = 0; i < n; i++)
    if (!tune_model (models[i], data, &error))
      return tinycore_fail (error);
  return 0;
}

static int
tune_all (char **models, int n, const char *data, const char *output)
{
  GError *error = NULL;
  guint n_entries;
  int status = tune_models (models, n, data);
  if (status != 0)
    return status;
  g_autofree char *text = tiny_tuned_export (&n_entries);
  if (n_entries == 0) {
    g_printerr ("tinycore: nothing could be searched on this device; DEBUG=2 says why\n");
    return EXIT_FAILED;
  }
  if (!tinycore_write (output, text, strlen (text), &error))
    return tinycore_fail (error);
  return 0;
}

/* Runs the model with a file's lists and says how many fit. */
static int
check_file (const char *file, char **models, const char *data)
{
  GError *error = NULL;
  TinyTunedUse use;
  tiny_env_set_int (TINY_ENV_BEAM, 0);
  tiny_env_set_text (TINY_ENV_TUNED, file);
  TinyDevice *device = tinycore_open_device (NULL, &error);
  if (device == NULL)
    return tinycore_fail (error);
  int status = tune_models (models, 1, data);
  if (status != 0)
    return status;
  tiny_tuned_get_use (device, &use);
  g_autofree char *target = tiny_tuned_target_of (device);
  printf ("%s: %u of %u entries for %s are used; the model has %u kernels, %u without one\n",
          file, use.n_used, use.n_entries, target, use.n_kernels, use.n_kernels - use.n_used);
  if (use.n_foreign > 0)
    printf ("%u entries are for other targets\n", use.n_foreign);
  if (use.n_used < use.n_entries)
    printf ("an entry is for a kernel as the scheduler made it: what is not used is of another "
            "model, or\nfrom before the scheduler or its view of this machine changed; tune "
            "again\n");
  return use.n_used > 0 && use.n_used == use.n_entries ? 0 : EXIT_FAILED;
}

int
tinycore_tune (int argc, char **argv)
{
  g_autofree char *dev = NULL, *output = NULL, *data = NULL, *check = NULL;
  int status = 0, beam = 0, seconds = 0;
  const GOptionEntry entries[] = {
    { "dev", 0, 0, G_OPTION_ARG_STRING, &dev, "device to tune for, as DEV=", "D" },
    { "beam", 0, 0, G_OPTION_ARG_INT, &beam,
      "lists that each round goes on from; BEAM if set, else 2", "N" },
    { "seconds", 0, 0, G_OPTION_ARG_INT, &seconds,
      "for each kernel; TINY_BEAM_SECONDS, which is 10", "N" },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, &data, "folder of the IDX files", "DIR" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
      "file to write instead of standard output", "FILE" },
    { "check", 0, 0, G_OPTION_ARG_FILENAME, &check,
      "search nothing; say how many of FILE's entries the model uses", "FILE" },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (
          &argc, &argv, "MODEL…",
          "Searches for the fastest optimisations of every kernel of a model: a .tir "
          "file,\n" TINYCORE_TRAINABLE
          ", or a case of tinycore bench such as matmul:512. TINY_TUNED=FILE uses "
          "the result.",
          entries, &status))
    return status;
  if (beam == 0)
    beam = tiny_env_get_int (TINY_ENV_BEAM) > 0 ? tiny_env_get_int (TINY_ENV_BEAM)
                                                : DEFAULT_BEAM;
  if (seconds == 0)
    seconds = tiny_env_get_int (TINY_ENV_BEAM_SECONDS);
  if (argc < 2 || (check != NULL && (argc != 2 || output != NULL)) || beam < 1
      || beam > MAX_BEAM || seconds < 1 || seconds > MAX_SECONDS) {
    g_printerr ("usage: tinycore tune [--beam N] [--seconds N] [-o FILE] MODEL…\n"
                "       tinycore tune --check FILE MODEL\n");
    return EXIT_USAGE;
  }
  tiny_env_set_int (TINY_ENV_BEAM, beam);
  tiny_env_set_int (TINY_ENV_BEAM_SECONDS, seconds);
  tiny_env_set_text (TINY_ENV_TUNED, NULL);
  if (dev != NULL)
    tiny_env_set_text (TINY_ENV_DEV, dev);
  return check != NULL ? check_file (check, argv + 1, data)
                       : tune_all (argv + 1, argc - 1, data, output);
}
