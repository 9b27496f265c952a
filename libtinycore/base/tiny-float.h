/* SPDX-License-Identifier: MIT
 *
 * tiny-float.h: the number formats that C has no type for: f16, bf16, f8e4m3, f8e5m2.
 *
 * Conversions are from and to double, which holds every value of every format exactly; they round
 * once, to nearest, ties to even, and keep subnormals. A NaN becomes the format's positive quiet
 * NaN. What is too large becomes an infinity, except in f8e4m3, which has none (OCP 8-bit
 * Floating Point Specification 1.0, non-saturating mode): there it becomes NaN. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

/* @dtype is a float dtype; bits are in the low end of the result. */
guint64 tiny_float_to_bits (TinyDType dtype, double value);
double tiny_float_from_bits (TinyDType dtype, guint64 bits);
/* The nearest value of @dtype. */
double tiny_float_round (TinyDType dtype, double value);
/* The largest finite number of @dtype. */
double tiny_float_get_largest (TinyDType dtype);

G_END_DECLS
