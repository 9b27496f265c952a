/* SPDX-License-Identifier: MIT
 *
 * dtypes.c: prints the tables of docs/dtypes.md: what dtypes.def says, and what promotion gives. */
#include <stdio.h>
#include <string.h>

#include "ir/tiny-dtype.h"
#include "tensor/tiny-build.h"

/* As in bindings/python/tinycore/dtypes.py, whose other spellings are aliases. */
static const char *const python_names[TINY_N_DTYPES] = {
  [TINY_DTYPE_BOOL] = "bool",      [TINY_DTYPE_I8] = "int8",
  [TINY_DTYPE_U8] = "uint8",       [TINY_DTYPE_I16] = "int16",
  [TINY_DTYPE_U16] = "uint16",     [TINY_DTYPE_I32] = "int32",
  [TINY_DTYPE_U32] = "uint32",     [TINY_DTYPE_I64] = "int64",
  [TINY_DTYPE_U64] = "uint64",     [TINY_DTYPE_F8E4M3] = "fp8e4m3",
  [TINY_DTYPE_F8E5M2] = "fp8e5m2", [TINY_DTYPE_F16] = "float16",
  [TINY_DTYPE_BF16] = "bfloat16",  [TINY_DTYPE_F32] = "float32",
  [TINY_DTYPE_F64] = "float64",
};

static void
print_integer (TinyDType dtype)
{
  printf ("| – | – | %" G_GINT64_FORMAT " | ", tiny_dtype_get_min (dtype));
  if (dtype == TINY_DTYPE_U64)
    printf ("%" G_GUINT64_FORMAT, G_MAXUINT64);
  else
    printf ("%" G_GINT64_FORMAT, tiny_dtype_get_max (dtype));
  puts (" | – | – |");
}

static void
print_float (TinyDType dtype)
{
  const TinyDTypeInfo *info = &tiny_dtype_infos[dtype];
  printf ("| %u | %u | %.6g | %.6g | %.4g | %.4g |\n", info->mantissa_bits, info->exponent_bits,
          -tiny_dtype_get_largest (dtype), tiny_dtype_get_largest (dtype),
          tiny_dtype_get_smallest_normal (dtype), tiny_dtype_get_epsilon (dtype));
}

int
main (void)
{
  puts ("<!-- generated: formats -->\n| C | Python | bytes | mantissa bits | exponent bits | "
        "least | largest | smallest normal | epsilon |\n|---|---|---|---|---|---|---|---|---|");
  for (TinyDType dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++) {
    printf ("| %s | `%s` | %u ", tiny_dtype_to_string (dtype), python_names[dtype],
            (guint) tiny_dtype_get_n_bytes (dtype));
    if (tiny_dtype_is_float (dtype))
      print_float (dtype);
    else
      print_integer (dtype);
  }
  printf ("\n<!-- generated: promotion -->\n| |");
  for (TinyDType b = TINY_DTYPE_BOOL; b <= TINY_DTYPE_F64; b++)
    printf (" %s |", tiny_dtype_to_string (b));
  printf ("\n|---|");
  for (TinyDType b = TINY_DTYPE_BOOL; b <= TINY_DTYPE_F64; b++)
    printf ("---|");
  puts ("");
  for (TinyDType a = TINY_DTYPE_BOOL; a <= TINY_DTYPE_F64; a++) {
    printf ("| **%s** |", tiny_dtype_to_string (a));
    for (TinyDType b = TINY_DTYPE_BOOL; b <= TINY_DTYPE_F64; b++)
      printf (" %s |", tiny_dtype_to_string (tiny_dtype_promote (a, b)));
    puts ("");
  }
  return 0;
}
