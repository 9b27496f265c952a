/* SPDX-License-Identifier: MIT
 *
 * test-differential.c: random tensor programs on two devices, against a model with error bounds.
 *
 *   test-differential [--seed N] [--count N] [--devices A,B] [--no-f64] [--verbose]
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
#include "program.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_DEVICES = 4, MAX_NODE = 100000, PROGRAM_SECONDS = 60, MAX_ATTEMPTS = 3000 };

static gint64 option_seed = 1, option_count = 500;
static char *option_devices = NULL;
static gboolean option_verbose = FALSE, option_no_f64 = FALSE;

static struct {
  const char *names[MAX_DEVICES];
  const TinyTarget *targets[MAX_DEVICES];
  guint n;
} devices;

static struct {
  guint64 n_programs, n_skipped, n_elements, n_exact, n_unknown;
} tally;

static char current[128]; /* what a signal handler writes */

/* ---- one program ---- */
typedef struct {
  guint n;
  guint steps[PROGRAM_MAX_STEPS];
  TinyDType dtypes[PROGRAM_MAX_STEPS];
  gsize sizes[PROGRAM_MAX_STEPS];
  Cell *cells[PROGRAM_MAX_STEPS];
} Expected;

static void
expected_clear (Expected *self)
{
  for (guint i = 0; i < self->n; i++)
    g_free (self->cells[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Expected, expected_clear)

static gboolean
expect (const Program *program, TinyTensor **values, Expected *out)
{
  TinyNode *roots[PROGRAM_MAX_STEPS];
  tiny_runtime_lock ();
  for (guint i = 0; i < program->n; i++) {
    if (!program_is_output (program, i))
      continue;
    roots[out->n] = tiny_tensor_get_node (values[i]);
    out->dtypes[out->n] = tiny_tensor_get_dtype (values[i]);
    out->sizes[out->n] = (gsize) tiny_tensor_get_n_elements (values[i]);
    out->steps[out->n++] = i;
  }
  gboolean good = model_eval (tiny_runtime_get_graph (), roots, out->n, MAX_NODE, out->cells);
  tiny_runtime_unlock ();
  if (!good)
    out->n = 0;
  return good;
}

static char *
value_text (TinyDType dtype, gint64 bits)
{
  return tiny_dtype_is_float (dtype) ? g_strdup_printf ("%.17g", tiny_eval_to_double (bits))
                                     : g_strdup_printf ("%" G_GINT64_FORMAT, bits);
}

/* NULL, or what is wrong with output @k. */
static char *
check_output (const char *device, TinyTensor *value, const Expected *expected, guint k)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = tiny_tensor_get_data (value, &error);
  if (data == NULL)
    return g_strdup_printf ("%s: t%u: %s", device, expected->steps[k], error->message);
  TinyDType dtype = expected->dtypes[k];
  for (gsize i = 0; i < expected->sizes[k]; i++) {
    const Cell *cell = &expected->cells[k][i];
    gint64 bits = model_decode (dtype, g_bytes_get_data (data, NULL), i);
    tally.n_elements++;
    tally.n_exact += cell->bound == 0;
    tally.n_unknown += isinf (cell->bound) != 0;
    if (model_admits (dtype, cell, bits))
      continue;
    g_autofree char *got = value_text (dtype, bits), *want = value_text (dtype, cell->bits);
    return g_strdup_printf ("%s: t%u[%zu] is %s, not %s within %.3g", device,
                            expected->steps[k], i, got, want, cell->bound);
  }
  return NULL;
}

static char *
realize_outputs (const Program *program, const char *device, TinyTensor **values)
{
  TinyTensor *outputs[PROGRAM_MAX_STEPS];
  guint n = 0;
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < program->n; i++)
    if (program_is_output (program, i))
      outputs[n++] = values[i];
  if (program->one_by_one || tiny_tensor_realize_many (outputs, n, &error))
    return NULL;
  return g_strdup_printf ("%s: %s", device, error->message);
}

/* What is wrong with the program on any device; NULL: nothing. @text gets its steps. */
static char *
run (const Program *program, GString *text)
{
  TinyTensor *values[PROGRAM_MAX_STEPS] = { NULL };
  char *problem = NULL;
  for (guint d = 0; d < devices.n && problem == NULL; d++) {
    /* An assignment that has to be made while building leaves what this device computed. */
    g_auto (Expected) expected = { 0 };
    program_build (program, devices.names[d], values, d == 0 ? text : NULL);
    model_target = devices.targets[d];
    if (!expect (program, values, &expected)) {
      program_clear (program, values);
      tally.n_skipped++;
      return NULL;
    }
    const char *name
        = devices.names[d] ? devices.names[d] : tiny_runtime_get_default_device (NULL);
    problem = realize_outputs (program, name, values);
    for (guint k = 0; k < expected.n && problem == NULL; k++)
      problem = check_output (name, values[expected.steps[k]], &expected, k);
    program_clear (program, values);
  }
  return problem;
}

/* ---- a failing program ---- */

/* The first part of a message tells failures apart: which device, a value or an error. */
static gboolean
same_kind (const char *a, const char *b)
{
  return (strstr (a, " is ") != NULL) == (strstr (b, " is ") != NULL)
         && strcspn (a, ":") == strcspn (b, ":") && strncmp (a, b, strcspn (a, ":")) == 0;
}

static void
shrink (Program *program, const char *problem)
{
  guint attempts = 0;
  for (gboolean changed = TRUE; changed && attempts < MAX_ATTEMPTS;) {
    Program simpler;
    changed = FALSE;
    for (guint i = 0; program_simplify (program, i, &simpler) && attempts < MAX_ATTEMPTS; i++) {
      if (memcmp (&simpler, program, sizeof simpler) == 0)
        continue;
      attempts++;
      alarm (PROGRAM_SECONDS);
      g_autofree char *other = run (&simpler, NULL);
      if (other == NULL || !same_kind (problem, other))
        continue;
      *program = simpler;
      changed = TRUE;
      break;
    }
  }
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
  shrink (program, problem);
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
  for (gint64 seed = option_seed; seed < option_seed + option_count; seed++) {
    Program program;
    g_autoptr (GString) text = g_string_new (NULL);
    g_snprintf (current, sizeof current, "seed %" G_GINT64_FORMAT, seed);
    program_generate (&program, (guint64) seed);
    program.no_f64 = option_no_f64;
    alarm (PROGRAM_SECONDS);
    g_autofree char *problem = run (&program, text);
    tally.n_programs++;
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
  printf ("%" G_GUINT64_FORMAT " programs on %u devices, %" G_GUINT64_FORMAT
          " too large; %" G_GUINT64_FORMAT
          " elements, %.1f%% to the bit, %.1f%% not defined; %d failures\n",
          tally.n_programs, devices.n, tally.n_skipped, tally.n_elements,
          100.0 * (double) tally.n_exact / MAX (1, (double) tally.n_elements),
          100.0 * (double) tally.n_unknown / MAX (1, (double) tally.n_elements), n_failures);
  return n_failures != 0;
}
