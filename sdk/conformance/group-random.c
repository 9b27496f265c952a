/* SPDX-License-Identifier: MIT
 *
 * group-random.c: random tensor programs against the model, and random kernels against REF; one that fails is
 * made smaller before it is kept. */
#include <string.h>

#include "conformance.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-text.h"
#include "program-run.h"
#include "random-kernel.h"
#include "scale.h"
#include "step.h"
#include "tensor/tiny-tensor-private.h"

enum {
  N_CORE = 100,
  N_FULL = 1000,
  N_STRESS = 10000,
  MAX_ATTEMPTS = 400,
  PART = 1000000 /* instructions */
};

static guint64
seed_of (const ConfSubject *subject, const ConfCase *self)
{
  return subject->seed * 1000003 + (guint64) self->args[0];
}

/* ---- programs ---- */
typedef struct {
  const ConfSubject *subject;
  guint n;
} Attempts;

static char *
run_program_on (const Program *program, gpointer data)
{
  Attempts *self = data;
  ProgramTally tally = { 0 };
  if (self->n++ > MAX_ATTEMPTS)
    return NULL;
  return program_run (program, tiny_device_get_name (self->subject->device),
                      self->subject->target, &tally, NULL);
}

static void
attach_program (ConfTrial *trial, const ConfSubject *subject, const Program *program)
{
  TinyTensor *values[PROGRAM_MAX_STEPS] = { NULL };
  g_autoptr (GString) text = g_string_new (NULL), steps = g_string_new (NULL);
  program_build (program, tiny_device_get_name (subject->device), values, steps);
  g_auto (GStrv) lines = g_strsplit (g_strchomp (steps->str), "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    g_string_append_printf (text, "// %s\n", lines[i]);
  for (guint i = program->n; i-- > 0;)
    if (program_is_output (program, i)) { /* one is enough: a file has one root */
      tiny_runtime_lock ();
      g_autofree char *graph
          = tiny_graph_print (tiny_runtime_get_graph (), tiny_tensor_get_node (values[i]));
      tiny_runtime_unlock ();
      g_string_append (text, graph);
      break;
    }
  program_clear (program, values);
  conf_attach (trial, ".tir", text->str);
}

static void
run_program (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Attempts attempts = { subject, 0 };
  Program program;
  program_generate (&program, seed_of (subject, self));
  program.no_f64 = (subject->target->dtypes_compute & TINY_DTYPE_BIT (TINY_DTYPE_F64)) == 0;
  g_autofree char *problem = run_program_on (&program, &attempts);
  if (problem == NULL)
    return;
  program_shrink (&program, problem, run_program_on, &attempts);
  attempts.n = 0;
  g_autofree char *smallest = run_program_on (&program, &attempts);
  conf_fail (trial, "seed %" G_GUINT64_FORMAT ": %s; smallest: %s", seed_of (subject, self),
             problem, smallest ? smallest : "passes now, so it hangs on more than its inputs");
  attach_program (trial, subject, &program);
}

/* ---- kernels ---- */
static char *
shrink_kernel (RandomKernel *kernel, const ConfSubject *subject)
{
  char *last = NULL;
  guint attempts = 0;
  for (gboolean changed = TRUE; changed && attempts < MAX_ATTEMPTS;) {
    RandomKernel simpler;
    changed = FALSE;
    for (guint i = 0; random_kernel_simplify (kernel, i, &simpler) && attempts < MAX_ATTEMPTS;
         i++) {
      if (memcmp (&simpler, kernel, sizeof simpler) == 0)
        continue;
      attempts++;
      char *problem = random_kernel_run (&simpler, subject->device, subject->reference, NULL);
      if (problem == NULL)
        continue;
      g_free (last);
      last = problem;
      *kernel = simpler;
      changed = TRUE;
      break;
    }
  }
  return last;
}

/* Makes @kernel as small as the device's memory wants it, and gives what is wrong. A part of a large one comes first:
 * a device that is slow at that, twice, gets a smaller one. */
static char *
run_scaled (RandomKernel *kernel, const ConfSubject *subject)
{
  enum { N_BYTES = sizeof (gint64) };
  const gsize n = random_kernel_count (kernel);
  random_kernel_shorten (
      kernel,
      conf_scale_to_memory (subject->device, n, N_BYTES * (RANDOM_KERNEL_LOADS + 1), N_BYTES));
  RandomKernel part = *kernel;
  const gsize n_all = random_kernel_count (kernel);
  const double work = random_kernel_count_work (kernel, subject->device);
  if (work > PART)
    random_kernel_shorten (&part, (gsize) ((double) n_all * PART / work));
  const gsize n_part = random_kernel_count (&part);
  gsize most = 0;
  for (guint time = 0; time < 2 && most < n_all && n_part < n_all; time++) {
    guint64 ns = 0;
    char *problem = random_kernel_run (&part, subject->device, subject->reference, &ns);
    if (problem != NULL) {
      *kernel = part;
      return problem;
    }
    most = conf_scale_to_time (n_all, n_part, ns);
  }
  random_kernel_shorten (kernel, MAX (most, n_part));
  return random_kernel_run (kernel, subject->device, subject->reference, NULL);
}

static void
run_kernel (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint32 otherwise = TINY_TARGET_REASSOCIATES | TINY_TARGET_FLUSHES_SUBNORMALS;
  RandomKernel kernel;
  if (!conf_needs (trial, subject->reference, "REF"))
    return;
  random_kernel_generate (&kernel, seed_of (subject, self),
                          (subject->target->flags & otherwise) != 0);
  g_autofree char *problem = run_scaled (&kernel, subject);
  if (problem == NULL)
    return;
  g_autofree char *smallest = shrink_kernel (&kernel, subject);
  g_autofree char *text = random_kernel_to_text (&kernel);
  g_autofree char *whole = g_strdup_printf ("// %s\n%s", smallest ? smallest : problem, text);
  conf_fail (trial, "seed %" G_GUINT64_FORMAT ": %s; smallest: %s", seed_of (subject, self),
             problem, smallest ? smallest : "the same");
  conf_attach (trial, ".tir", whole);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  if (subject->target == NULL)
    return;
  /* Of most programs another device does all. */
  const gint64 part = conf_only_claims (subject) ? 5 : 1;
  for (gint64 i = 0; i < N_STRESS; i++) {
    const ConfLevel level = i < N_CORE / part   ? CONF_CORE
                            : i < N_FULL / part ? CONF_FULL
                                                : CONF_STRESS;
    const ConfCase program = { .run = run_program, .level = level, .args = { i } },
                   kernel = { .run = run_kernel, .level = level, .args = { i } };
    conf_list_add (out, &program, "program/%" G_GINT64_FORMAT, i);
    if (!conf_only_claims (subject))
      conf_list_add (out, &kernel, "kernel/%" G_GINT64_FORMAT, i);
  }
}

const ConfGroup conf_group_random
    = { "random", "random programs and kernels give what the model and REF give", list };
