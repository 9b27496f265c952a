/* SPDX-License-Identifier: MIT
 *
 * test-differential.c: random tensor programs on two devices, against a model with error bounds.
 *
 *   test-differential [--seed N] [--count N] [--minutes N] [--devices A,B] [--no-f64] [--verbose]
 *
 * Each program is built alike on every device; each element of each output must be one that the
 * model admits: the very bits where nothing may round differently, within the bound of its
 * operations otherwise. A failing program is made smaller, then printed with its seed and the
 * tensor graph of the output that differs. */
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-text.h"
#include "model.h"
#include "program-run.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_DEVICES = 4, PROGRAM_SECONDS = 60, MOST_SKIPPED = 20 };

static gint64 option_seed = 1, option_count = 500, option_minutes = 0;
static char *option_devices = NULL;
static gboolean option_verbose = FALSE, option_no_f64 = FALSE;

static struct {
  const char *names[MAX_DEVICES];
  const TinyTarget *targets[MAX_DEVICES];
  guint n;
} devices;

static guint64 n_programs;
static ProgramTally tally;

static char current[128]; /* what a signal handler writes */

/* ---- one program ---- */

/* What is wrong with the program on any device; NULL: nothing. @text gets its steps. */
static char *
run (const Program *program, GString *text)
{
  for (guint d = 0; d < devices.n; d++) {
    char *problem = program_run (program, devices.names[d], devices.targets[d], &tally,
                                 d == 0 ? text : NULL);
    if (problem != NULL)
      return problem;
  }
  return NULL;
}

static char *
run_simpler (const Program *program, gpointer unused)
{
  alarm (PROGRAM_SECONDS);
  return run (program, NULL);
}

static void
print_graphs (const Program *program)
{
  TinyTensor *values[PROGRAM_MAX_STEPS] = { NULL };
  program_build (program, devices.names[devices.n - 1], values, NULL);
  for (guint i = 0; i < program->n; i++) {
    if (!program_is_output (program, i))
      continue;
    tiny_runtime_lock ();
    g_autofree char *text
        = tiny_graph_print (tiny_runtime_get_graph (), tiny_tensor_get_node (values[i]));
    tiny_runtime_unlock ();
    fprintf (stderr, "  t%u:\n%s\n", i, text);
  }
  program_clear (program, values);
}

static void
report (Program *program, guint64 seed, const char *problem)
{
  fprintf (stderr, "seed %" G_GUINT64_FORMAT ": %s\n", seed, problem);
  program_shrink (program, problem, run_simpler, NULL);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *smallest = run (program, text);
  fprintf (stderr, "smallest: %s\n%s", smallest ? smallest : "(passes now)", text->str);
  print_graphs (program);
}

static void
on_signal (int number)
{
  static const char what[] = ": crashed or hung\n";
  alarm (0);
  if (write (2, current, strlen (current)) < 0 || write (2, what, sizeof what - 1) < 0)
    _exit (3);
  signal (number, SIG_DFL);
  raise (number);
}

/* ---- the command ---- */
enum { EXIT_SKIP = 77 };

static const GOptionEntry entries[] = {
  { "seed", 0, 0, G_OPTION_ARG_INT64, &option_seed, "the first program", "N" },
  { "count", 0, 0, G_OPTION_ARG_INT64, &option_count, "how many programs", "N" },
  { "minutes", 0, 0, G_OPTION_ARG_INT64, &option_minutes, "begin none after so long", "N" },
  { "devices", 0, 0, G_OPTION_ARG_STRING, &option_devices, "devices besides the default one",
    "A,B" },
  { "no-f64", 0, 0, G_OPTION_ARG_NONE, &option_no_f64, "f32 in place of f64", NULL },
  { "verbose", 0, 0, G_OPTION_ARG_NONE, &option_verbose, "print every program", NULL },
  { NULL },
};

static int
run_all (void)
{
  int n_failures = 0;
  const gint64 end = g_get_monotonic_time () + option_minutes * 60 * G_USEC_PER_SEC;
  for (gint64 seed = option_seed; seed < option_seed + option_count; seed++) {
    Program program;
    if (option_minutes > 0 && g_get_monotonic_time () >= end)
      break;
    g_autoptr (GString) text = g_string_new (NULL);
    g_snprintf (current, sizeof current, "seed %" G_GINT64_FORMAT, seed);
    program_generate (&program, (guint64) seed);
    program.no_f64 = option_no_f64;
    alarm (PROGRAM_SECONDS);
    g_autofree char *problem = run (&program, text);
    n_programs++;
    if (option_verbose)
      fprintf (stderr, "seed %" G_GINT64_FORMAT ":\n%s", seed, text->str);
    if (problem == NULL)
      continue;
    report (&program, (guint64) seed, problem);
    if (++n_failures >= 10)
      break;
  }
  alarm (0);
  return n_failures;
}

/* @name: NULL is the default one. */
static void
add_device (const char *name)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device
      = tiny_engine_get_device (name ? name : tiny_runtime_get_default_device (NULL), &error);
  g_assert_no_error (error);
  devices.targets[devices.n] = tiny_device_get_target (device);
  devices.names[devices.n++] = name;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  setlocale (LC_ALL, "");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "test-differential: %s\n", error->message);
    return 2;
  }
  const int signals[] = { SIGSEGV, SIGABRT, SIGTRAP, SIGALRM, SIGBUS, SIGFPE, SIGILL };
  static char stack[1 << 16]; /* a stack that overflowed has no room for the handler */
  sigaltstack (&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (signals); i++)
    sigaction (signals[i],
               &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK }, NULL);
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  model_rounds_correctly = TRUE; /* all devices of these tests' do */
  if (tiny_runtime_get_default_device (&error) == NULL) {
    printf ("skipped: %s\n", error->message);
    return EXIT_SKIP;
  }
  g_auto (GStrv) names = g_strsplit (option_devices ? option_devices : "REF", ",", -1);
  add_device (NULL);
  for (guint i = 0; names[i] != NULL && *names[i] && devices.n < MAX_DEVICES; i++)
    add_device (names[i]);
  int n_failures = run_all ();
  printf ("%" G_GUINT64_FORMAT " of %" G_GINT64_FORMAT
          " programs on %u devices, %" G_GUINT64_FORMAT " too large; %" G_GUINT64_FORMAT
          " elements, %.1f%% to the bit, %.1f%% not defined; %d failures\n",
          n_programs, option_count, devices.n, tally.n_skipped, tally.n_elements,
          100.0 * (double) tally.n_exact / MAX (1, (double) tally.n_elements),
          100.0 * (double) tally.n_unknown / MAX (1, (double) tally.n_elements), n_failures);
  /* Programs that nothing was compared with prove nothing. */
  const gboolean is_empty
      = tally.n_elements == 0 || tally.n_skipped > n_programs / MOST_SKIPPED;
  if (is_empty && n_failures == 0)
    fprintf (stderr, "too few programs were compared\n");
  return n_failures != 0 || is_empty;
}
