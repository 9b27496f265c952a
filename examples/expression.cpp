// SPDX-License-Identifier: MIT
//
// expression.cpp: from C++: operations nest as in C, one owner frees.
#include <cstdio>
#include <memory>

#include <tiny.h>

// What is kept is owned; everything in between belongs to the operation that takes it.
struct Unref {
  void operator() (TinyTensor *tensor) const { g_object_unref (tensor); }
};
using Tensor = std::unique_ptr<TinyTensor, Unref>;

static Tensor
keep (TinyTensor *tensor)
{
  return Tensor (static_cast<TinyTensor *> (g_object_ref_sink (tensor)));
}

int
main ()
{
  const gint64 shape[] = { 2, 3 };
  Tensor x = keep (tiny_tensor_ones (TINY_DTYPE_F32, shape, 2));
  Tensor y = keep (tiny_tensor_sum (tiny_tensor_add (x.get (), x.get ()), nullptr, 0, FALSE));
  GError *error = nullptr;
  if (!tiny_tensor_realize (y.get (), &error)) {
    std::fprintf (stderr, "%s\n", error->message);
    g_error_free (error);
    return 1;
  }
  char *text = tiny_tensor_to_string (y.get ());
  std::printf ("two for each of six:\n%s\n", text);
  g_free (text);
  return 0;
}
