/* SPDX-License-Identifier: MIT
 *
 * tiny-dtype.h: what the table of number formats says. The enum is the contract's (tiny-plugin.h). */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

typedef struct {
  const char *text;
  guint n_bytes;
  char kind; /* 'B' bool, 'I' signed, 'U' unsigned, 'F' float, 'N' neither */
  guint mantissa_bits, exponent_bits;
} TinyDTypeInfo;

extern const TinyDTypeInfo tiny_dtype_infos[TINY_N_DTYPES];

TINY_API const char *tiny_dtype_to_string (TinyDType dtype);
TINY_API gboolean tiny_dtype_from_string (const char *text, TinyDType *out_dtype);
TINY_API gsize tiny_dtype_get_n_bytes (TinyDType dtype);
TINY_API gboolean tiny_dtype_is_float (TinyDType dtype);
TINY_API gboolean tiny_dtype_is_signed (TinyDType dtype);
TINY_API gboolean tiny_dtype_is_unsigned (TinyDType dtype);
/* Signed, unsigned and index; not bool. */
TINY_API gboolean tiny_dtype_is_integer (TinyDType dtype);
/* The smallest and largest value of an integer or bool dtype; u64's largest is given as G_MAXINT64,
 * index reaches to a quarter of the range of 64 bits so that sums of two bounds cannot overflow. */
gint64 tiny_dtype_get_min (TinyDType dtype);
gint64 tiny_dtype_get_max (TinyDType dtype);

G_END_DECLS
