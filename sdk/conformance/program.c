/* SPDX-License-Identifier: MIT
 *
 * program.c: random programs drawn, and built of the steps that program-steps.def lists. */
#include "program-steps.h"

const StepKind step_kinds[N_STEP_KINDS] = {
#define STEP(name, n, weight) { #name, make_##name, n, weight },
#include "program-steps.def"
#undef STEP
};

static guint
draw_op (GRand *random)
{
  guint total = 0, at = 0;
  for (guint i = 0; i < N_STEP_KINDS; i++)
    total += step_kinds[i].weight;
  guint left = (guint) g_rand_int_range (random, 0, (gint) total);
  while (left >= step_kinds[at].weight)
    left -= step_kinds[at++].weight;
  return at;
}

void
program_generate (Program *self, guint64 seed)
{
  guint32 seeds[] = { (guint32) seed, (guint32) (seed >> 32) };
  g_autoptr (GRand) random = g_rand_new_with_seed_array (seeds, 2);
  guint n_leaves = 1 + g_rand_int_range (random, 0, 3);
  *self = (Program){ .n = n_leaves + 1 + (guint) g_rand_int_range (random, 0, 8),
                     .one_by_one = g_rand_int_range (random, 0, 4) == 0 };
  /* Most programs are about few dtypes. */
  TinyDType favourite = step_dtypes[g_rand_int_range (random, 0, N_STEP_DTYPES)];
  gboolean mixed = g_rand_int_range (random, 0, 3) == 0;
  gboolean large
      = g_rand_int_range (random, 0, 8) == 0; /* what the optimiser tiles and unrolls */
  for (guint i = 0; i < self->n; i++) {
    Step *step = &self->steps[i];
    step->op = (guint8) (i < n_leaves ? 0 : draw_op (random));
    step->size = (guint8) (large ? 12 : g_rand_int_range (random, 2, 11));
    step->dtype = (guint8) (mixed || (i >= n_leaves && g_rand_int_range (random, 0, 2))
                                ? step_dtypes[g_rand_int_range (random, 0, N_STEP_DTYPES)]
                                : favourite);
    for (guint j = 0; j < G_N_ELEMENTS (step->from); j++)
      step->from[j] = (guint8) (i == 0 ? 0
                                : g_rand_int_range (random, 0, 3) == 0
                                    ? (guint) g_rand_int_range (random, 0, (gint) i)
                                    : i - 1);
    /* Operands of one op are seldom the same value. */
    if (i > 0)
      step->from[1] = (guint8) g_rand_int_range (random, 0, (gint) i);
    for (guint j = 0; j < STEP_N_NUMBERS; j++)
      step->p[j] = g_rand_int (random);
  }
}

static void
describe (const Program *self, guint i, const char *note, TinyTensor *value, GString *text)
{
  const Step *step = &self->steps[i];
  g_string_append_printf (text, "  t%u = %s (", i, step_kinds[step->op].name);
  for (guint j = 0; j < step_kinds[step->op].n; j++)
    g_string_append_printf (text, "%st%u", j ? ", " : "", step->from[j]);
  g_string_append_printf (text, "%s);  // %s (",
                          step_kinds[step->op].n == 0 && *note ? note + 2 : note,
                          tiny_dtype_to_string (tiny_tensor_get_dtype (value)));
  for (guint j = 0; j < rank_of (value); j++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, j ? ", " : "", size_of (value, j));
  g_string_append_printf (text, ")%s\n", program_is_output (self, i) ? ", output" : "");
}

void
program_build (const Program *self, const char *device, TinyTensor **out, GString *text)
{
  tiny_tensor_manual_seed (7);
  for (guint i = 0; i < self->n; i++) {
    Step own = self->steps[i];
    const Step *step = &own;
    g_autoptr (GString) note = g_string_new (NULL);
    if (self->no_f64 && own.dtype == TINY_DTYPE_F64)
      own.dtype = TINY_DTYPE_F32;
    Maker maker = { .step = step, .device = device, .note = note, .no_f64 = self->no_f64 };
    for (guint j = 0; i > 0 && j < G_N_ELEMENTS (maker.x); j++)
      maker.x[j] = out[step->from[j]];
    out[i] = g_object_ref_sink (step_kinds[step->op].make (&maker));
    if (tiny_tensor_get_error (out[i]) != NULL || n_elements (out[i]) > 4 * MAX_ELEMENTS) {
      if (text != NULL)
        g_string_append_printf (text, "  // %s\n",
                                tiny_tensor_get_error (out[i])
                                    ? tiny_tensor_get_error (out[i])->message
                                    : "too large");
      g_object_unref (out[i]);
      out[i] = g_object_ref (i == 0 ? NULL : maker.x[0]);
    }
    if (text != NULL)
      describe (self, i, note->str, out[i], text);
  }
}

void
program_clear (const Program *self, TinyTensor **values)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_object (&values[i]);
}

gboolean
program_is_output (const Program *self, guint i)
{
  for (guint k = i + 1; k < self->n; k++)
    for (guint j = 0; j < step_kinds[self->steps[k].op].n; j++)
      if (self->steps[k].from[j] == i)
        return FALSE;
  return TRUE;
}
