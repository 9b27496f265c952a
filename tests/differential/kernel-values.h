/* SPDX-License-Identifier: MIT
 *
 * kernel-values.h: numbers to give to kernels that come from anywhere. */
#pragma once

#include "ir/tiny-dtype.h"

/* @n numbers of @dtype to @data: elements of something with @n_elements, or none of anything, or both. */
void kernel_fill (GRand *random, TinyDType dtype, guint8 *data, gint64 n, gint64 n_elements);
