/* SPDX-License-Identifier: MIT
 *
 * jit-variable.c: one recording for every position: a variable is a number given at launch. */
#include <stdio.h>

#include <tiny.h>

static gboolean
pair (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  outputs[0] = g_object_ref_sink (tiny_tensor_mul (
      tiny_tensor_narrow (inputs[0], 0, inputs[1], 2), tiny_tensor_scalar (10)));
  return tiny_tensor_realize (outputs[0], error);
}

int
main (void)
{
  g_autoptr (TinyJit) jit = tiny_jit_new (pair, NULL, NULL, 1);
  g_autoptr (TinyVariable) position = tiny_variable_new ("position", 0, 6);
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_I32, 0, 8, 1));
  for (gint64 i = 0; i < 4; i++) {
    TinyTensor *result;
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) bound = g_object_ref_sink (tiny_variable_bind (position, i));
    if (!tiny_jit_call (jit, (TinyTensor *[]){ x, bound }, 2, &result, &error)) {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
    g_autofree char *text = tiny_tensor_to_string (result);
    printf ("%s\n", text);
  }
  return 0;
}
