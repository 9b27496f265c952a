/* SPDX-License-Identifier: MIT
 *
 * default-float.c: what integers become among functions of floats. */
#include "tensor/tiny-default-float.h"

static gint default_float = TINY_DTYPE_F32; /* atomic */

gboolean
tiny_set_default_float (TinyDType dtype, GError **error)
{
  if ((guint) dtype >= TINY_N_DTYPES || !tiny_dtype_is_float (dtype)) {
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_INVALID, "the default float is one of the floats, not %s",
        (guint) dtype < TINY_N_DTYPES ? tiny_dtype_to_string (dtype) : "a dtype that is none");
    return FALSE;
  }
  g_atomic_int_set (&default_float, (gint) dtype);
  return TRUE;
}

TinyDType
tiny_get_default_float (void)
{
  return (TinyDType) g_atomic_int_get (&default_float);
}
