/* SPDX-License-Identifier: MIT
 *
 * oracle.h: what an operation of the contract really gives, of single values.
 *
 * Made from the definitions alone: integers in 128 bits, floats in long double with what that loses
 * beside it. It shares the small float formats' conversions with the core (base/tiny-float.h) and nothing
 * else, so that a mistake in the core's own evaluation is not repeated here. */
#pragma once

#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"

G_BEGIN_DECLS

typedef enum {
  CONF_TRUTH_ANY,   /* the contract does not say */
  CONF_TRUTH_EXACT, /* a number of the dtype, an infinity or a NaN, whatever the op's bound is */
  CONF_TRUTH_REAL,  /* a real number, which is rounded */
} ConfTruthKind;

typedef struct {
  ConfTruthKind kind;
  gint64 bits; /* the result, rounded to nearest; as a CONST of the dtype (ir/tiny-eval.h) */
  gint64
      other; /* as right as that: MULACC rounded twice, MAX's NaN or other zero; else the same */
  long double value; /* REAL: before rounding, to within CONF_ORACLE_ERROR of its size */
} ConfTruth;

/* Half a unit in the last place of f64 or, where long double is no more than that, two. */
#define CONF_ORACLE_ERROR (LDBL_MANT_DIG >= 64 ? 0x1p-62L : 0x1p-51L)

/* @args are @n values of @from, a WHERE's first of bool; the result is of @to. */
void conf_oracle (
    TinyOp op, TinyDType from, TinyDType to, const gint64 *args, guint n, ConfTruth *out);

/* Element @i of @data as a CONST holds it, and back: what is a NaN comes as the quiet one. */
gint64 conf_decode (TinyDType dtype, gconstpointer data, gsize i);
void conf_encode (TinyDType dtype, gpointer data, gsize i, gint64 bits);
double conf_to_double (gint64 bits);
gint64 conf_from_double (double value);
gboolean conf_is_nan (TinyDType dtype, gint64 bits);
/* "0x1.8p+3 (12)", "-7" */
char *conf_value_to_string (TinyDType dtype, gint64 bits);

/* A unit in the last place of a number of about @size in @dtype, and its least normal number. */
long double conf_ulp_of (TinyDType dtype, long double size);
double conf_least_normal (TinyDType dtype);
double conf_largest (TinyDType dtype);

G_END_DECLS
