/* SPDX-License-Identifier: MIT
 *
 * jit.c: a function whose kernels are recorded at the second call and replayed from the third on. */
#include <stdio.h>

#include <tiny.h>

static gboolean
norm (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  outputs[0] = g_object_ref_sink (
      tiny_tensor_sqrt (tiny_tensor_sum (tiny_tensor_square (inputs[0]), NULL, 0, FALSE)));
  return tiny_tensor_realize (outputs[0], error);
}

int
main (void)
{
  g_autoptr (TinyJit) jit = tiny_jit_new (norm, NULL, NULL, 1);
  g_autoptr (GError) error = NULL;
  for (int i = 1; i <= 4; i++) {
    TinyTensor *result;
    double value;
    g_autoptr (TinyTensor) x = g_object_ref_sink (
        tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 16 }, 1, i)); /* 4 times i in length */
    if (!tiny_jit_call (jit, &x, 1, &result, &error)
        || !tiny_tensor_item (result, &value, &error)) {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
    printf ("call %d: %g, kernels to replay: %u\n", i, value, tiny_jit_get_n_kernels (jit));
  }
  return 0;
}
