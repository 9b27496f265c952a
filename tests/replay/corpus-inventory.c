/* SPDX-License-Identifier: MIT
 *
 * corpus-inventory.c: the list of operations of tests/unit/tensor/cases.def, each with its gradients, in f32. */
#include "replay.h"
#include "../unit/tensor/cases.h"

enum { MAX_INPUTS = 3, MAX_RANK = 5 };

/* The value and the gradients of the sum of its squares, realised together. */
static gboolean
run (gconstpointer data, GError **error)
{
  const Case *what = data;
  TinyTensor *x[MAX_INPUTS], *wanted[MAX_INPUTS + 1];
  for (guint i = 0; i < what->n; i++) {
    guint rank = 0;
    while (rank < MAX_RANK && what->shapes[i][rank] != 0)
      rank++;
    x[i] = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, what->shapes[i], rank));
    if (!tiny_tensor_realize (x[i], error))
      return FALSE;
  }
  replay_begin ();
  TinyTensor *y = wanted[what->n] = g_object_ref_sink (what->function (x));
  TinyTensor *loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (y), NULL, 0, FALSE));
  return tiny_gradient (loss, x, what->n, wanted, error)
         && tiny_tensor_realize_many (wanted, what->n + 1, error);
}

void
replay_add_inventory (GArray *cases_out)
{
  for (guint i = 0; i < n_cases; i++)
    replay_add (cases_out, run, &cases[i], "%s", cases[i].name)->targets
        = "haswell skylake-avx512 ref-groups webgpu";
}
