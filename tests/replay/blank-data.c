/* SPDX-License-Identifier: MIT
 *
 * blank-data.c: the numbers of tools/bench-data.h, none of which matters on paper: memory stays as it came. */
#include "tools/bench-data.h"

void
bench_fill (const char *name, float *out, gsize n, double offset, double scale)
{
  for (gsize i = 0; i < n; i++)
    out[i] = (float) offset;
}

TinyTensor *
bench_tensor (const char *name, const gint64 *shape, guint n_dims, double offset, double scale)
{
  TinyTensor *self = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, shape, n_dims));
  if (!tiny_tensor_realize (self, NULL))
    g_warning ("%s: no memory", name);
  return self;
}
