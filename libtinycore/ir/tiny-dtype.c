/* SPDX-License-Identifier: MIT
 *
 * tiny-dtype.c: the table of number formats, made from dtypes.def. */
#include "ir/tiny-dtype.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"

const TinyDTypeInfo tiny_dtype_infos[TINY_N_DTYPES] = {
#define TINY_DTYPE(id, text, n_bytes, kind, mantissa, exponent)                                \
  [TINY_DTYPE_##id] = { text, n_bytes, #kind[0], mantissa, exponent },
#include "ir/dtypes.def"
#undef TINY_DTYPE
};

/* What is no dtype is like the one of no values. */
static const TinyDTypeInfo *
get_info (TinyDType dtype)
{
  return &tiny_dtype_infos[(guint) dtype < TINY_N_DTYPES ? dtype : TINY_DTYPE_VOID];
}

const char *
tiny_dtype_to_string (TinyDType dtype)
{
  g_return_val_if_fail ((guint) dtype < TINY_N_DTYPES, NULL);
  return tiny_dtype_infos[dtype].text;
}

gboolean
tiny_dtype_from_string (const char *text, TinyDType *out_dtype)
{
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    if (g_strcmp0 (tiny_dtype_infos[i].text, text) == 0) {
      if (out_dtype != NULL)
        *out_dtype = i;
      return TRUE;
    }
  return FALSE;
}

gsize
tiny_dtype_get_n_bytes (TinyDType dtype)
{
  return get_info (dtype)->n_bytes;
}

gboolean
tiny_dtype_is_float (TinyDType dtype)
{
  return get_info (dtype)->kind == 'F';
}

gboolean
tiny_dtype_is_signed (TinyDType dtype)
{
  return get_info (dtype)->kind == 'I';
}

gboolean
tiny_dtype_is_unsigned (TinyDType dtype)
{
  return get_info (dtype)->kind == 'U';
}

gboolean
tiny_dtype_is_integer (TinyDType dtype)
{
  return tiny_dtype_is_signed (dtype) || tiny_dtype_is_unsigned (dtype);
}

gint64
tiny_dtype_get_min (TinyDType dtype)
{
  if (dtype == TINY_DTYPE_INDEX)
    return G_MININT64 / 4;
  if (!tiny_dtype_is_signed (dtype))
    return 0;
  return G_MININT64 >> (64 - 8 * tiny_dtype_get_n_bytes (dtype));
}

gint64
tiny_dtype_get_max (TinyDType dtype)
{
  if (dtype == TINY_DTYPE_INDEX)
    return G_MAXINT64 / 4;
  if (dtype == TINY_DTYPE_BOOL)
    return 1;
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype) - (tiny_dtype_is_signed (dtype) ? 1 : 0);
  return n_bits >= 63 ? G_MAXINT64 : ((gint64) 1 << n_bits) - 1;
}

double
tiny_dtype_get_largest (TinyDType dtype)
{
  g_return_val_if_fail (tiny_dtype_is_float (dtype), 0);
  return tiny_float_get_largest (dtype);
}

double
tiny_dtype_get_smallest_normal (TinyDType dtype)
{
  g_return_val_if_fail (tiny_dtype_is_float (dtype), 0);
  return ldexp (1, 2 - (1 << (get_info (dtype)->exponent_bits - 1)));
}

double
tiny_dtype_get_epsilon (TinyDType dtype)
{
  g_return_val_if_fail (tiny_dtype_is_float (dtype), 0);
  return ldexp (1, -(int) get_info (dtype)->mantissa_bits);
}
