/* SPDX-License-Identifier: MIT
 *
 * corpus-random.c: the random tensor programs of tests/differential, without f64, which not all targets have. */
#include "program.h"
#include "replay.h"

enum { N_PROGRAMS = 500 };

static gboolean
run (gconstpointer data, GError **error)
{
  Program program;
  TinyTensor *values[PROGRAM_MAX_STEPS] = { NULL }, *outputs[PROGRAM_MAX_STEPS];
  guint n = 0;
  program_generate (&program, GPOINTER_TO_UINT (data));
  program.no_f64 = TRUE;
  program_build (&program, NULL, values, NULL);
  for (guint i = 0; i < program.n; i++)
    if (program_is_output (&program, i))
      outputs[n++] = values[i];
  if (!program.one_by_one)
    return tiny_tensor_realize_many (outputs, n, error);
  for (guint i = 0; i < n; i++)
    if (!tiny_tensor_realize (outputs[i], error))
      return FALSE;
  return TRUE;
}

void
replay_add_random (GArray *cases)
{
  for (guint seed = 1; seed <= N_PROGRAMS; seed++)
    replay_add (cases, run, GUINT_TO_POINTER (seed), "%03u", seed)->targets
        = "haswell skylake-avx512 cl-gpu webgpu";
}
