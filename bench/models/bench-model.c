/* SPDX-License-Identifier: MIT
 *
 * bench-model.c: runs one model of bench/models, captured and replayed, and prints its times.
 *
 * usage: bench-model CASE [--json] [--runs N] [--turns] [--output FILE]. The output is the result of the
 * third call, which is the first that is a replay: a training step is then at its third. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/models/model.h"
#include "engine/tiny-plan.h"
#include "tools/bench-times.h"

enum { N_CHECKED_CALLS = 3, EXIT_USAGE = 2 };

static const ModelCase *const all_cases[]
    = { attention_cases,    gpt2_cases,      resnet_cases,        cnn_cases,
        resnet_train_cases, recurrent_cases, long_recurrent_cases };

typedef struct {
  gboolean json, turns;
  int n_runs;
  char *path; /* of the output */
} Options;

typedef struct {
  BenchTimes times;
  double set_up_ms, first_ms;
  TinyCounters counters; /* of the first call */
  guint n_kernels;
  guint64 temporary_bytes,
      set_up_bytes; /* of device memory: what the calls need at most beside this */
} Result;

static double
ms_since (gint64 start)
{
  return (double) (g_get_monotonic_time () - start) * 1e-3;
}

static const ModelCase *
find_case (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (all_cases); i++)
    for (const ModelCase *at = all_cases[i]; at->name != NULL; at++)
      if (g_str_equal (at->name, name))
        return at;
  return NULL;
}

static gboolean
call (Model *model, TinyJit *jit, TinyTensor **out, GError **error)
{
  TinyTensor *result;
  if (!tiny_jit_call (jit, model->inputs, model->n_inputs, &result, error))
    return FALSE;
  if (out != NULL)
    *out = result;
  return TRUE;
}

/* ---- running ---- */

/* The first calls: what compiling costs, and the output. */
static gboolean
begin (Model *model, TinyJit *jit, const char *path, Result *out, GError **error)
{
  TinyTensor *output = NULL;
  TinyDeviceMemory memory;
  TinyDevice *device = tiny_engine_get_device (tiny_runtime_get_default_device (NULL), error);
  if (device == NULL)
    return FALSE;
  tiny_device_reset_peak (device);
  tiny_device_get_memory (device, &memory);
  out->set_up_bytes = memory.live_bytes;
  tiny_runtime_reset_counters ();
  for (guint i = 0; i < N_CHECKED_CALLS; i++) {
    gint64 start = g_get_monotonic_time ();
    if (!call (model, jit, &output, error))
      return FALSE;
    if (i == 0) {
      out->first_ms = ms_since (start);
      tiny_runtime_get_counters (&out->counters);
    }
  }
  tiny_device_get_memory (device, &memory);
  out->temporary_bytes = memory.peak_bytes - out->set_up_bytes;
  out->n_kernels = tiny_jit_get_n_kernels (jit);
  return path == NULL || bench_write_output (output, path, error);
}

typedef struct {
  Model *model;
  TinyJit *jit;
} Call;

static gboolean
call_again (gpointer data, GError **error)
{
  Call *self = data;
  return call (self->model, self->jit, NULL, error);
}

static void
print_result (const ModelCase *what, const Result *result, gboolean json)
{
  const TinyCounters *c = &result->counters;
  double ms = bench_times_get_median (&result->times);
  double ms_min = bench_times_get_min (&result->times);
  double gflops = what->n_flops / ms * 1e-6, gbps = what->n_bytes / ms * 1e-6;
  if (json) {
    printf ("{\"case\": \"%s\", \"ms_median\": %.6g, \"ms_min\": %.6g, \"calls\": %u, "
            "\"gflops\": %.6g, \"gbps\": %.6g, \"kernels\": %u, \"set_up_ms\": %.6g, "
            "\"first_ms\": %.6g, "
            "\"schedule_ms\": %.6g, \"codegen_ms\": %.6g, \"compile_ms\": %.6g, "
            "\"compiles\": %" G_GUINT64_FORMAT ", \"set_up_bytes\": %" G_GUINT64_FORMAT
            ", \"temporary_bytes\": %" G_GUINT64_FORMAT ", \"peak_bytes\": %" G_GUINT64_FORMAT
            ", \"ms\": ",
            what->name, ms, ms_min, result->times.n_calls, gflops, gbps, result->n_kernels,
            result->set_up_ms, result->first_ms, (double) c->ns_schedule * 1e-6,
            (double) c->ns_codegen * 1e-6, (double) c->ns_compile * 1e-6, c->n_compiles,
            result->set_up_bytes, result->temporary_bytes, bench_get_peak_bytes ());
    bench_times_print (&result->times);
    puts ("}");
  } else
    printf ("%-20s %9.3f ms, at best %.3f; %.1f GFLOP/s, %u kernels; first call %.0f ms "
            "(schedule %.1f, codegen %.1f, compiler %.1f)\n",
            what->name, ms, ms_min, gflops, result->n_kernels, result->first_ms,
            (double) c->ns_schedule * 1e-6, (double) c->ns_codegen * 1e-6,
            (double) c->ns_compile * 1e-6);
}

static gboolean
run (const ModelCase *what, const Options *options, GError **error)
{
  Result result = { .n_kernels = 0 };
  Model model
      = { .config = what->config, .owned = g_ptr_array_new_with_free_func (g_object_unref) };
  gint64 start = g_get_monotonic_time ();
  gboolean good = what->set_up (&model, error);
  result.set_up_ms = ms_since (start);
  if (good) {
    g_autoptr (TinyJit) jit = tiny_jit_new (model.step, &model, NULL, 1);
    Call measured = { &model, jit };
    good = begin (&model, jit, options->path, &result, error)
           && bench_time (call_again, &measured, (guint) options->n_runs, options->turns,
                          &result.times, error);
  }
  if (good)
    print_result (what, &result, options->json);
  g_ptr_array_unref (model.owned);
  g_free (model.parts);
  return good;
}

static int
usage (void)
{
  fprintf (stderr, "usage: bench-model CASE [--json] [--runs N] [--output FILE]\ncases:");
  for (guint i = 0; i < G_N_ELEMENTS (all_cases); i++)
    for (const ModelCase *at = all_cases[i]; at->name != NULL; at++)
      fprintf (stderr, " %s", at->name);
  fputc ('\n', stderr);
  return EXIT_USAGE;
}

int
main (int argc, char **argv)
{
  Options options = { .n_runs = 7 };
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, NULL, NULL },
    { "runs", 0, 0, G_OPTION_ARG_INT, &options.n_runs, NULL, NULL },
    { "turns", 0, 0, G_OPTION_ARG_NONE, &options.turns, NULL, NULL },
    { "output", 0, 0, G_OPTION_ARG_FILENAME, &options.path, NULL, NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("CASE");
  g_autoptr (GError) error = NULL;
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, NULL) || argc != 2 || options.n_runs < 1
      || options.n_runs > BENCH_MAX_RUNS)
    return usage ();
  const ModelCase *what = find_case (argv[1]);
  if (what == NULL)
    return usage ();
  gboolean good = run (what, &options, &error);
  g_free (options.path);
  if (good)
    return 0;
  fprintf (stderr, "bench-model: %s: %s\n", what->name, error->message);
  return 1;
}
