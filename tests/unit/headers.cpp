// SPDX-License-Identifier: MIT
//
// headers.cpp: a C++ program includes both public headers and runs.
#include <tiny.h>
#include <tiny-plugin.h>

int
main ()
{
  TinyTensor *x = TINY_TENSOR (g_object_ref_sink (tiny_tensor_scalar (2)));
  bool good = tiny_tensor_get_n_elements (x) == 1 && sizeof (TinyInstr) == 24;
  g_object_unref (x);
  return good ? 0 : 1;
}
