/* SPDX-License-Identifier: MIT
 *
 * custom-kernel.c: a kernel written in the IR's text form, for whatever device there is. */
#include <stdio.h>

#include <tiny.h>

static const char code[] = "%y = param.f32{slot=0, shape=[3]}\n"
                           "%x = param.f32{slot=1, shape=[3, 4]}\n"
                           "%i = range.index{number=0, kind=loop}(3)\n"
                           "%k = range.index{number=1, kind=reduce}(4)\n"
                           "%v = load.f32(%x, add.index(mul.index(%i, 4), %k))\n"
                           "sink{name=\"norms\"}(store(%y, %i, "
                           "sqrt.f32(reduce.f32{op=add}(mul.f32(%v, %v), %k))))\n";

int
main (void)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_reshape (
      tiny_tensor_arange (TINY_DTYPE_F32, 0, 12, 1), (gint64[]){ 3, 4 }, 2));
  g_autoptr (GPtrArray) y = tiny_custom_kernel (code, &x, 1);
  g_autofree char *text = tiny_tensor_to_string (y->pdata[0]);
  printf ("%s\n", text);
  return 0;
}
