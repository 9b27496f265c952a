/* SPDX-License-Identifier: MIT
 *
 * command-bench.c: tinycore bench: the time of a case when its launches are replayed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/tiny-error.h"
#include "base/tiny-whole-file.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-plan.h"
#include "tools/bench-cases.h"
#include "tools/bench-data.h"
#include "tools/bench-times.h"
#include "tools/commands.h"
#include "tools/roofline.h"

enum { N_RUNS = 7 };

typedef struct {
  gboolean json, turns, roofline, again;
  int n_runs;
  char *output, *svg;
} Options;

typedef struct {
  BenchTimes times;
  double compile_ms;
  guint64 temporary_bytes; /* device memory beside the inputs, at most */
  guint n_kernels;
  gboolean runs; /* else the times are the core's own */
} Result;

/* Records the launches of the second building and realising of the case, which write to the output. The
 * first says what its memory costs, and compiling, in so far as it takes longer. */
static TinyCapture *
capture_case (const BenchCase *bench,
              TinyDevice *device,
              TinyTensor **out_output,
              Result *out_result,
              GError **error)
{
  TinyCapture *capture = NULL;
  TinyDeviceMemory before, after;
  tiny_device_reset_peak (device);
  tiny_device_get_memory (device, &before);
  for (guint pass = 0; pass < 2; pass++) {
    gint64 start = tiny_debug_now_ns ();
    if (pass == 1 && (capture = bench_case_begin_capture (bench, error)) == NULL)
      return NULL;
    g_autoptr (TinyTensor) result
        = g_object_ref_sink (bench->build (bench->inputs, bench->sizes));
    gboolean good = tiny_tensor_realize (result, error);
    tiny_device_get_memory (device, &after);
    const double ms = (double) (tiny_debug_now_ns () - start) * 1e-6;
    out_result->compile_ms = pass == 0 ? ms : MAX (out_result->compile_ms - ms, 0);
    if (pass == 0) {
      out_result->temporary_bytes = after.peak_bytes - before.live_bytes;
    } else if (!tiny_capture_end (capture, good ? error : NULL))
      good = FALSE;
    if (!good) {
      tiny_capture_free (capture);
      return NULL;
    }
    if (pass == 1)
      *out_output = g_steal_pointer (&result);
  }
  return capture;
}

typedef struct {
  const BenchCase *bench;
  TinyCapture *capture;
  TinyDevice *device;
} Replay;

static gboolean
replay (gpointer data, GError **error)
{
  const Replay *self = data;
  return bench_case_replay (self->bench, self->capture, error)
         && tiny_device_wait (self->device, error);
}

/* A device that runs nothing has no speed. */
static char *
format_speed (double gflops, double gbps, gboolean runs, gboolean json)
{
  if (json)
    return runs ? g_strdup_printf ("\"gflops\": %.6g, \"gbps\": %.6g", gflops, gbps)
                : g_strdup ("\"gflops\": null, \"gbps\": null");
  if (gflops <= 0 && gbps <= 0)
    return g_strdup_printf ("%-17s", runs ? "" : "not run");
  return runs ? g_strdup_printf ("%8.1f %-8s", gflops > 0 ? gflops : gbps,
                                 gflops > 0 ? "GFLOP/s" : "GB/s")
              : g_strdup_printf ("%-17s", "not run");
}

static void
print_result (const BenchCase *bench, const char *device, const Result *result, gboolean json)
{
  double ms = bench_times_get_median (&result->times), s = ms * 1e-3;
  double gflops = bench->n_flops / s * 1e-9, gbps = bench->n_bytes / s * 1e-9;
  g_autofree char *speed = format_speed (gflops, gbps, result->runs, json);
  if (json) {
    printf ("{\"case\": \"%s\", \"device\": \"%s\", \"ms_median\": %.6g, \"ms_min\": %.6g, "
            "\"calls\": %u, %s, \"kernels\": %u, \"compile_ms\": %.6g, \"temporary_bytes\": "
            "%" G_GUINT64_FORMAT ", \"peak_bytes\": %" G_GUINT64_FORMAT ", \"ms\": ",
            bench->text, device, ms, bench_times_get_min (&result->times),
            result->times.n_calls, speed, result->n_kernels, result->compile_ms,
            result->temporary_bytes, bench_get_peak_bytes ());
    bench_times_print (&result->times);
    puts ("}");
  } else if (bench->per > 1)
    printf ("%-32s %10.4f ms  %8.3f us each, %u kernels%s\n", bench->text, ms,
            ms * 1e3 / bench->per, result->n_kernels, result->runs ? "" : ", not run");
  else
    printf ("%-32s %10.4f ms  %s %u kernel%s, compiled in %.0f ms\n", bench->text, ms, speed,
            result->n_kernels, result->n_kernels == 1 ? "" : "s", result->compile_ms);
  fflush (stdout);
}

static gboolean
run_case (const char *text, const Options *options, Roofline *roofline, GError **error)
{
  g_autoptr (BenchCase) bench = bench_case_new (text, error);
  g_autoptr (TinyTensor) output = NULL;
  Result result = { .n_kernels = 0 };
  if (bench == NULL)
    return FALSE;
  TinyDevice *device
      = tiny_engine_get_device (tiny_tensor_get_device (bench->inputs[0]), error);
  if (device == NULL)
    return FALSE;
  TinyCapture *capture = capture_case (bench, device, &output, &result, error);
  if (capture == NULL)
    return FALSE;
  result.n_kernels = tiny_capture_get_n_kernels (capture);
  result.runs = !(tiny_device_get_info (device)->flags & TINY_DEVICE_RUNS_NOTHING);
  guint n_points = roofline ? roofline->points->len : 0, n_runs = (guint) options->n_runs;
  Replay measured = { bench, capture, device };
  gboolean good
      = roofline ? roofline_add (roofline, bench, capture, n_runs, error)
                 : bench_time (replay, &measured, n_runs, options->turns, &result.times, error);
  if (good && options->output != NULL)
    good = bench_write_output (output, options->output, error);
  tiny_capture_free (capture);
  if (good && roofline != NULL)
    roofline_print_points (roofline, n_points, options->json);
  else if (good)
    print_result (bench, tiny_tensor_get_device (bench->inputs[0]), &result, options->json);
  return good;
}

static gboolean
run_cases (char **texts, const Options *options, Roofline *roofline, GError **error)
{
  for (guint i = 0; texts[i] != NULL; i++)
    if (!run_case (texts[i], options, roofline, error))
      return FALSE;
  return TRUE;
}

static gboolean
check_runs (TinyDevice *device, GError **error)
{
  if (!(tiny_device_get_info (device)->flags & TINY_DEVICE_RUNS_NOTHING))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
               "%s runs nothing, so it has no speed to measure", tiny_device_get_name (device));
  return FALSE;
}

/* The same under the roofs of the device. */
static gboolean
run_roofline (char **texts, const Options *options, GError **error)
{
  Roofline roofline = { 0 };
  const char *name = tiny_runtime_get_default_device (error);
  TinyDevice *device = name ? tiny_engine_get_device (name, error) : NULL;
  gboolean good = device != NULL && check_runs (device, error)
                  && roofline_init (&roofline, device, options->again, error);
  if (good) {
    roofline_print_roofs (&roofline, options->json);
    good = run_cases (texts, options, &roofline, error);
  }
  if (good && options->svg != NULL) {
    g_autofree char *svg = roofline_to_svg (&roofline);
    good = tiny_whole_file_report (options->svg, svg, -1, error);
  }
  roofline_clear (&roofline);
  return good;
}

G_STATIC_ASSERT (BENCH_MAX_RUNS == 4096); /* as is said below */

/* NULL: it can be run. */
static const char *
find_misuse (const Options *options, int n_cases)
{
  const struct {
    gboolean is_wrong;
    const char *why;
  } rows[] = {
    { n_cases == 0 && !options->roofline, "no case is given" },
    { options->n_runs < 1 || options->n_runs > BENCH_MAX_RUNS, "--runs: from 1 to 4096" },
    { options->output != NULL && n_cases != 1, "--output takes one case" },
    { options->roofline && options->turns, "--roofline takes no --turns" },
    { !options->roofline && options->svg != NULL, "--svg needs --roofline" },
    { !options->roofline && options->again, "--measure needs --roofline" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].is_wrong)
      return rows[i].why;
  return NULL;
}

static int
run (char **texts, const Options *options)
{
  GError *error = NULL;
  for (guint i = 0; texts[i] != NULL; i++)
    if (!bench_case_check (texts[i], &error)) {
      tinycore_fail (error);
      return EXIT_USAGE;
    }
  gboolean good = options->roofline ? run_roofline (texts, options, &error)
                                    : run_cases (texts, options, NULL, &error);
  return good ? 0 : tinycore_fail (error);
}

int
tinycore_bench (int argc, char **argv)
{
  Options options = { .n_runs = N_RUNS };
  int status = 0;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, "one JSON object a line", NULL },
    { "runs", 0, 0, G_OPTION_ARG_INT, &options.n_runs,
      "timed runs of which the median counts (7)", "N" },
    { "turns", 0, 0, G_OPTION_ARG_NONE, &options.turns,
      "each run waits for a line on standard input", NULL },
    { "output", 0, 0, G_OPTION_ARG_FILENAME, &options.output,
      "write the result's elements, at most 65536 of them, as f32 (one case)", "FILE" },
    { "roofline", 0, 0, G_OPTION_ARG_NONE, &options.roofline,
      "each kernel against what the device can do at most", NULL },
    { "svg", 0, 0, G_OPTION_ARG_FILENAME, &options.svg, "with --roofline: draw it", "FILE" },
    { "measure", 0, 0, G_OPTION_ARG_NONE, &options.again,
      "with --roofline: measure the device anew", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (
          &argc, &argv, "CASE…",
          "Measures cases such as matmul:1024, conv:8x64x56x56:64x3x3 or launch:100; "
          "a dtype may follow, as in matmul:512:f16.",
          entries, &status))
    return status;
  const char *why = find_misuse (&options, argc - 1);
  if (why == NULL) {
    status = run (argv + 1, &options);
  } else {
    g_printerr ("tinycore: bench: %s\n"
                "usage: tinycore bench [--json] [--runs N] [--turns] [--output FILE] "
                "[--roofline [--svg FILE] [--measure]] CASE…\n",
                why);
    status = EXIT_USAGE;
  }
  g_free (options.output);
  g_free (options.svg);
  return status;
}
