/* SPDX-License-Identifier: MIT
 *
 * test-calls.c: proves that every method of a tensor, and every other public function, called with nonsense, gives a
 * result that can be computed or an error that says something: never a crash, a hang or a message of an assertion.
 *
 * usage: test-calls [--functions] [--seed N] [--first N] [--count N] [--minutes N] [--call N] [--seconds N]. A failure names seed
 * and call: --call runs that one alone. No call begins after --minutes. Functions are called a few after another, with the same objects: a call is
 * an episode there. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "things.h"

enum {
  LARGEST_READ = 4096,
  N_GRADIENTS = 8 /* one of so many results has its gradient computed */
};

/* A sanitizer's report ends in a signal, too; and there may be no memory of an absurd size. */
const char *__asan_default_options (void);
const char *
__asan_default_options (void)
{
  return "abort_on_error=1:allow_user_segv_handler=1:allocator_may_return_null=1:"
         "max_allocation_size_mb=4096";
}

const char *__ubsan_default_options (void);
const char *
__ubsan_default_options (void)
{
  return "abort_on_error=1";
}

static gint64 option_seed = 1, option_count = 2000, option_call = -1, option_first = 0,
              option_seconds = 120, option_minutes = 0;
static gboolean option_verbose = FALSE, option_functions = FALSE;
static char current[4096]; /* what a signal handler writes */
static guint64 number;
static struct {
  guint64 results, errors, computed, refused, gradients;
} tally;

/* Absurd sizes are refused as on a machine that has less memory, and not taken from what else runs there. */
static void
limit_memory (void)
{
#ifdef LIMITS_MEMORY
  const rlim_t most = (rlim_t) 4 << 30;
  setrlimit (RLIMIT_AS, &(struct rlimit){ most, most });
#endif
}

static void
remember (const char *name, const char *arguments)
{
  g_snprintf (current, sizeof current,
              "nonsense: seed %" G_GINT64_FORMAT " call %" G_GUINT64_FORMAT ": %s (%s)\n",
              option_seed, number, name, arguments);
  if (option_verbose)
    fputs (current, stderr);
}

static void
tell (int signal_number)
{
  static const char hang[] = "nonsense: no end in sight\n";
  gboolean written
      = signal_number != SIGALRM || write (STDERR_FILENO, hang, sizeof hang - 1) > 0;
  if (written && write (STDERR_FILENO, current, strlen (current)) < 0)
    current[0] = '\0';
  signal (signal_number, SIG_DFL);
  raise (signal_number);
}

static void
check_error (const GError *error)
{
  if (error == NULL || error->domain != TINY_ERROR || error->message == NULL
      || strlen (error->message) < 8)
    g_error ("%s: an error that says nothing: %s", current,
             error != NULL ? error->message : "NULL");
}

/* The gradients of all that wants one. */
static void
differentiate (TinyTensor *tensor, GPtrArray *inputs)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *sum = g_object_ref_sink (tiny_tensor_sum (tensor, NULL, 0, FALSE));
  tally.gradients += tiny_tensor_backward (sum, &error);
  if (error != NULL)
    check_error (error);
  g_object_unref (sum);
  for (guint i = 0; i < inputs->len; i++) {
    TinyTensor *input = inputs->pdata[i],
               *grad = input != NULL ? tiny_tensor_get_grad (input) : NULL;
    if (grad == NULL)
      continue;
    g_autoptr (GError) unreadable = NULL;
    if (!tiny_tensor_realize (grad, &unreadable))
      check_error (unreadable);
    tiny_tensor_clear_grad (input);
  }
}

static void
check_result (TinyTensor *tensor, Chance *c)
{
  const GError *sticky = tiny_tensor_get_error (tensor);
  if (sticky != NULL) {
    check_error (sticky);
    tally.errors++;
    return;
  }
  guint n_dims;
  const gint64 *shape = tiny_tensor_get_shape (tensor, &n_dims);
  gint64 n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= shape[i];
  if (n_dims > 16 || n != tiny_tensor_get_n_elements (tensor) || n < 0)
    g_error ("%s: a shape of %u axes and %" G_GINT64_FORMAT " elements", current, n_dims, n);
  tally.results++;
  if (c->is_large || n > LARGEST_READ)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = tiny_tensor_get_data (tensor, &error);
  if (data == NULL)
    check_error (error);
  else if (g_bytes_get_size (data) != tiny_tensor_get_n_bytes (tensor))
    g_error ("%s: %" G_GSIZE_FORMAT " bytes", current, g_bytes_get_size (data));
  tally.computed += data != NULL;
  tally.refused += data == NULL;
  if (data != NULL && tiny_dtype_is_float (tiny_tensor_get_dtype (tensor))
      && chance_int (c, N_GRADIENTS) == 0)
    differentiate (tensor, c->inputs);
}

static void
run (Chance *c)
{
  alarm ((guint) option_seconds);
  if (option_functions) {
    things_run (c, (guint64) option_seed, number);
  } else {
    chance_begin (c, (guint64) option_seed, number);
    chance_call (c, &calls[number % n_calls]);
  }
  for (guint i = 0; i < c->made->len; i++)
    check_result (c->made->pdata[i], c);
  alarm (0);
}

int
main (int argc, char **argv)
{
  const GOptionEntry entries[] = {
    { "seed", 0, 0, G_OPTION_ARG_INT64, &option_seed, "where chance begins", "N" },
    { "count", 0, 0, G_OPTION_ARG_INT64, &option_count, "how many calls", "N" },
    { "minutes", 0, 0, G_OPTION_ARG_INT64, &option_minutes, "begin none after so long", "N" },
    { "first", 0, 0, G_OPTION_ARG_INT64, &option_first, "the number of the first", "N" },
    { "call", 0, 0, G_OPTION_ARG_INT64, &option_call, "this one alone", "N" },
    { "seconds", 0, 0, G_OPTION_ARG_INT64, &option_seconds, "how long a call may take", "N" },
    { "functions", 0, 0, G_OPTION_ARG_NONE, &option_functions,
      "call functions that are no methods, a few after another", NULL },
    { "verbose", 0, 0, G_OPTION_ARG_NONE, &option_verbose, "each call before it is made",
      NULL },
    G_OPTION_ENTRY_NULL
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_option_context_add_main_entries (context, entries, NULL);
  g_autoptr (GError) error = NULL;
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "test-calls: %s\n", error->message);
    return 2;
  }
  limit_memory ();
  if (option_functions)
    things_init ();
  else
    g_log_set_always_fatal (G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  for (guint i = 0; i < 6; i++)
    signal (((int[]){ SIGSEGV, SIGABRT, SIGALRM, SIGFPE, SIGTRAP, SIGBUS })[i], tell);
  Chance chance = { .about_to_call = remember };
  remember ("before the first", "");
  chance_init (&chance);
  guint64 first = option_call >= 0 ? (guint64) option_call : (guint64) MAX (option_first, 0);
  guint64 end = option_call >= 0 ? first + 1 : first + (guint64) MAX (option_count, 0);
  const gint64 last = g_get_monotonic_time () + option_minutes * 60 * G_USEC_PER_SEC;
  for (number = first; number < end; number++) {
    if (option_minutes > 0 && g_get_monotonic_time () >= last)
      end = number;
    else
      run (&chance);
  }
  if (option_functions)
    things_clear ();
  chance_clear (&chance);
  printf ("%" G_GUINT64_FORMAT " calls, %u %s: %" G_GUINT64_FORMAT " errors, %" G_GUINT64_FORMAT
          " results, of which %" G_GUINT64_FORMAT " were computed, %" G_GUINT64_FORMAT
          " refused; %" G_GUINT64_FORMAT " with gradients\n",
          end - first, option_functions ? n_functions : n_calls,
          option_functions ? "functions" : "methods", tally.errors, tally.results,
          tally.computed, tally.refused, tally.gradients);
  /* A test that only meets errors, or none, tests little. */
  if (option_call < 0 && end - first >= 1000 && !option_functions
      && (tally.errors < (end - first) / 10 || tally.computed < (end - first) / 10
          || tally.gradients < (end - first) / 200)) {
    fputs ("test-calls: hardly anything was tested\n", stderr);
    return 1;
  }
  return 0;
}
