/* SPDX-License-Identifier: MIT
 *
 * function-cases.c: arguments of cases. */
#include "function-cases.h"

#include <math.h>
#include <string.h>

#include "tensor/tiny-tensor-operations.h"

void
arguments_init (Arguments *self, const Case *test, const gint64 *outer, guint n_outer)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (g_str_hash (test->name));
  *self = (Arguments){ .n = test->n, .oracle.n_params = test->n };
  for (guint i = 0; i < test->n; i++) {
    gint64 shape[8], n = 1;
    guint rank = n_outer;
    if (n_outer > 0)
      memcpy (shape, outer, n_outer * sizeof *shape);
    for (guint k = 0; k < 5 && test->shapes[i][k] != 0; k++)
      shape[rank++] = test->shapes[i][k];
    for (guint k = 0; k < rank; k++)
      n *= shape[k];
    self->n_values[i] = n;
    self->values[i] = g_new (double, n);
    for (gint64 j = 0; j < n; j++)
      self->values[i][j] = g_rand_double_range (random, test->low, test->high);
    self->oracle.params[i] = self->values[i];
    self->x[i] = g_object_ref_sink (oracle_param (i, TINY_DTYPE_F64, shape, rank));
  }
}

void
arguments_clear (Arguments *self)
{
  for (guint i = 0; i < self->n; i++) {
    g_free (self->values[i]);
    g_object_unref (self->x[i]);
  }
}

GPtrArray *
case_function (TinyTensor *const *inputs, guint n_inputs, gpointer test, GError **error)
{
  g_assert_cmpuint (n_inputs, ==, ((const Case *) test)->n);
  return tiny_tensors (((const Case *) test)->function (inputs), NULL);
}

TinyTensor *
uneven_numbers (TinyTensor *like, double first)
{
  guint rank;
  const gint64 *shape = tiny_tensor_get_shape (like, &rank);
  double n = (double) tiny_tensor_get_n_elements (like);
  TinyTensor *numbers
      = tiny_tensor_sin (tiny_tensor_arange (TINY_DTYPE_F64, first, first + n, 1));
  return tiny_tensor_reshape (tiny_tensor_add_number (numbers, 0.3), shape, rank);
}
