/* SPDX-License-Identifier: MIT
 *
 * operation.h: operations as the core offers them (TinyOperation), what each gives by its definition in
 * tiny-plugin.h, and how far from that a device may be.
 *
 * The bound is the operation's own, of each element by itself: a sum of K terms may be off by K units of the sum of
 * their sizes (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), whatever the order; what
 * follows the sum takes its error along and adds roundings. Of whole numbers nothing is rounded. */
#pragma once

#include "conformance.h"

G_BEGIN_DECLS

/* What is offered: rows of a table, from small to large, of every kind. */
typedef struct {
  const char *name; /* "matmul/f32/transposed-a" */
  ConfLevel level;
  TinyOperation operation;
} ConfOffer;

guint conf_offers_count (void);
void conf_offers_get (guint i, ConfOffer *out);

/* ---- operands ---- */
/* How many bytes buffer @i of a launch of @operation has. */
gsize conf_operation_get_n_bytes (const TinyOperation *operation, guint i);

typedef enum {
  CONF_NUMBERS_WHOLE, /* small whole numbers: sums of products are exact */
  CONF_NUMBERS_SIGNED,
  CONF_NUMBERS_POSITIVE,
  CONF_N_NUMBERS
} ConfNumbers;
/* Whether the operation computes with floats: else there are only whole numbers. */
gboolean conf_operation_has_floats (const TinyOperation *operation);
/* Fills buffer @i: what its views name with numbers of @salt, the rest with NaN or the largest number. */
void conf_operation_fill (
    const TinyOperation *operation, guint i, ConfNumbers numbers, guint64 salt, guint8 *data);

/* ---- results ---- */
/* Says what of the output, in buffers[0], is not what the operation gives for the others; with @trial NULL only
 * whether. */
gboolean conf_operation_check (ConfTrial *trial,
                               const TinyOperation *operation,
                               guint8 *const *buffers,
                               const char *what);

/* What its unit of rounding is: 2^-24 for f32; 0 for integers. */
double conf_operation_get_roundoff (TinyDType dtype);

G_END_DECLS
