/* SPDX-License-Identifier: MIT
 *
 * kept.c: microseconds of small steps beside many realised tensors that are kept with what they were made of.
 *
 * usage: kept [TENSORS [ITERATIONS]]. A step realises a sum of two tensors ("add"), one with a variable, which
 * has a history of its own ("history"), or writes to a tensor ("assign"); each alone, and beside TENSORS others. */
#include <stdio.h>
#include <stdlib.h>

#include <tiny.h>

enum { N = 16, ROUNDS = 7 };

typedef gboolean (*Step) (TinyTensor *a, TinyTensor **b, GError **error);

static TinyTensor *
new_input (void)
{
  return g_object_ref_sink (tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ N }, 1, 0, 1));
}

/* Of what the step before gave: memory that was not there before, as a batch of data is. */
static gboolean
add (TinyTensor *a, TinyTensor **b, GError **error)
{
  TinyTensor *c = g_object_ref_sink (tiny_tensor_add (a, tiny_tensor_detach (*b)));
  g_object_unref (*b);
  *b = c;
  return tiny_tensor_realize (c, error);
}

static gboolean
assign (TinyTensor *a, TinyTensor **b, GError **error)
{
  return tiny_tensor_assign (a, tiny_tensor_mul (a, *b), error)
         && tiny_tensor_realize (a, error);
}

/* The least microseconds of a step. */
static double
measure (Step step, TinyTensor *a, TinyTensor *b, guint n, GError **error)
{
  double best = 1e9;
  TinyTensor *other = g_object_ref (b);
  for (guint r = 0; r <= ROUNDS; r++) {
    gint64 start = g_get_monotonic_time ();
    for (guint i = 0; *error == NULL && i < n; i++)
      step (a, &other, error);
    if (r > 0)
      best = MIN (best, (double) (g_get_monotonic_time () - start) / n);
  }
  g_object_unref (other);
  return *error == NULL ? best : -1;
}

/* Fills @out with the microseconds of each kind of step. */
static gboolean
measure_all (TinyTensor *const *x, guint n, double *out, GError **error)
{
  out[0] = measure (add, x[0], x[1], n, error);
  if (out[0] >= 0)
    out[1] = measure (add, x[2], x[1], n, error);
  if (out[0] >= 0 && out[1] >= 0)
    out[2] = measure (assign, x[0], x[1], n, error);
  return *error == NULL;
}

int
main (int argc, char **argv)
{
  guint n_kept = argc > 1 ? (guint) strtoul (argv[1], NULL, 10) : 1000;
  guint n = argc > 2 ? (guint) strtoul (argv[2], NULL, 10) : 500;
  g_autoptr (GPtrArray) kept = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GError) error = NULL;
  double alone[3] = { 0 }, beside[3] = { 0 };
  for (guint i = 0; i < 3; i++)
    g_ptr_array_add (kept, new_input ());
  TinyTensor *x[] = { kept->pdata[0], kept->pdata[1], kept->pdata[2] };
  gboolean good = n > 0 && tiny_tensor_realize_many (x, 3, &error);
  if (good)
    tiny_tensor_set_requires_grad (x[2], TRUE);
  good = good && measure_all (x, n, alone, &error);
  for (guint i = 0; good && i < n_kept; i++) {
    TinyTensor *y = tiny_tensor_mul (tiny_tensor_add (x[2], x[1]), tiny_tensor_scalar (i));
    g_ptr_array_add (kept, g_object_ref_sink (y));
    good = tiny_tensor_realize (y, &error);
  }
  good = good && measure_all (x, n, beside, &error);
  if (!good) {
    fprintf (stderr, "kept: %s\n", error ? error->message : "iterations are at least 1");
    return 1;
  }
  printf ("{\"us_add\": %.3f, \"us_add_beside\": %.3f, \"us_history\": %.3f, "
          "\"us_history_beside\": %.3f, \"us_assign\": %.3f, \"us_assign_beside\": %.3f}\n",
          alone[0], beside[0], alone[1], beside[1], alone[2], beside[2]);
  return 0;
}
