/* SPDX-License-Identifier: MIT
 *
 * data.h: what operands are made of: classes of numbers in which mistakes of different kinds show. */
#pragma once

#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"

G_BEGIN_DECLS

typedef enum {
  CONF_SIGNED,    /* any size near 1, both signs; integers: any number of bits */
  CONF_POSITIVE,  /* the same of one sign: sums have condition 1 */
  CONF_SUBNORMAL, /* subnormal numbers and those that give some; floats only */
  CONF_HUGE,      /* near the largest, so that much overflows */
  CONF_SPECIAL, /* every pair of zeros, infinities, NaN, 1, the ends of the ranges; floats only */
  CONF_INTEGER, /* small whole numbers: every sum of them is exact in f32 */
  CONF_BOUNDARY, /* every pair of numbers at which something changes: powers of two and neighbours */
  CONF_ALL,      /* every number of a dtype of 8 or 16 bits; of 8 bits every pair */
  CONF_N_CLASSES
} ConfClass;

const char *conf_class_to_string (ConfClass self);
/* Whether there is such data of @dtype. CONF_ALL: for one operand, or two. */
gboolean conf_class_has (ConfClass self, TinyDType dtype, guint n_operands);
/* How many elements there have to be for all of it, or 0 where it is drawn. */
gsize conf_class_get_n_needed (ConfClass self, TinyDType dtype, guint n_operands);

/* @n elements of @dtype, as CONSTs hold them, that are operand @slot of @op: divisors are not 0, counts of
 * shifts below the width, a WHERE's first is of bool. The same @seed gives the same. */
void conf_data_fill (
    ConfClass self, TinyOp op, TinyDType dtype, guint slot, guint64 seed, gint64 *out, gsize n);

G_END_DECLS
