/* SPDX-License-Identifier: MIT
 *
 * program-run.c: each element of each output must be one that the model admits: the very bits where nothing
 * may round differently, within the bound of its operations otherwise. */
#include "program-run.h"

#include <math.h>
#include <string.h>

#include "engine/tiny-runtime.h"
#include "ir/tiny-eval.h"
#include "model.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_NODE = 100000, MAX_ATTEMPTS = 3000 };

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
check_output (const char *device,
              TinyTensor *value,
              const Expected *expected,
              guint k,
              ProgramTally *tally)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = tiny_tensor_get_data (value, &error);
  if (data == NULL)
    return g_strdup_printf ("%s: t%u: %s", device, expected->steps[k], error->message);
  TinyDType dtype = expected->dtypes[k];
  for (gsize i = 0; i < expected->sizes[k]; i++) {
    const Cell *cell = &expected->cells[k][i];
    gint64 bits = model_decode (dtype, g_bytes_get_data (data, NULL), i);
    tally->n_elements++;
    tally->n_exact += cell->bound == 0;
    tally->n_unknown += isinf (cell->bound) != 0;
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

char *
program_run (const Program *self,
             const char *device,
             const TinyTarget *target,
             ProgramTally *tally,
             GString *text)
{
  TinyTensor *values[PROGRAM_MAX_STEPS] = { NULL };
  char *problem = NULL;
  /* An assignment that has to be made while building leaves what this device computed. */
  g_auto (Expected) expected = { 0 };
  program_build (self, device, values, text);
  model_target = target;
  if (!expect (self, values, &expected)) {
    program_clear (self, values);
    tally->n_skipped++;
    return NULL;
  }
  const char *name = device ? device : tiny_runtime_get_default_device (NULL);
  problem = realize_outputs (self, name, values);
  for (guint k = 0; k < expected.n && problem == NULL; k++)
    problem = check_output (name, values[expected.steps[k]], &expected, k, tally);
  program_clear (self, values);
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

void
program_shrink (Program *program, const char *problem, ProgramRun run, gpointer data)
{
  guint attempts = 0;
  for (gboolean changed = TRUE; changed && attempts < MAX_ATTEMPTS;) {
    Program simpler;
    changed = FALSE;
    for (guint i = 0; program_simplify (program, i, &simpler) && attempts < MAX_ATTEMPTS; i++) {
      if (memcmp (&simpler, program, sizeof simpler) == 0)
        continue;
      attempts++;
      g_autofree char *other = run (&simpler, data);
      if (other == NULL || !same_kind (problem, other))
        continue;
      *program = simpler;
      changed = TRUE;
      break;
    }
  }
}
