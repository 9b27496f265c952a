/* SPDX-License-Identifier: MIT
 *
 * program-steps.h: how the steps of a random program become tensors.
 *
 * A row of program-steps.def is a function of a Maker, which knows the step, its sources and the device.
 * Functions that want operands of a special form (integers, broadcasting shapes, four axes) bring
 * what they are given into it, which makes chains of movement by the way. */
#pragma once

#include "ir/tiny-dtype.h"
#include "program.h"

G_BEGIN_DECLS

enum { MAX_ELEMENTS = 4096, MAX_AXES = 5, N_STEP_SIZES = 19, N_STEP_DTYPES = 14 };

typedef struct {
  const Step *step;
  const char *device;
  TinyTensor *x[3];
  GString *note; /* the step's numbers as they were understood */
  gboolean no_f64;
} Maker;

typedef struct {
  const char *name;
  TinyTensor *(*make) (Maker *self);
  guint n, weight;
} StepKind;

enum {
#define STEP(name, n, weight) STEP_##name,
#include "program-steps.def"
#undef STEP
  N_STEP_KINDS
};

#define STEP(name, n, weight) TinyTensor *make_##name (Maker *self);
#include "program-steps.def"
#undef STEP

extern const StepKind step_kinds[N_STEP_KINDS];
extern const gint64 step_sizes[N_STEP_SIZES];
extern const TinyDType step_dtypes[N_STEP_DTYPES];

#define T(name) tiny_tensor_##name

/* ---- what a step says ---- */
/* Its number @i, below @below. */
guint maker_number (const Maker *self, guint i, guint below);
void maker_note_sizes (Maker *self, const gint64 *v, guint n);
void maker_note_number (Maker *self, double value);
/* An axis of @x, which has some. */
gint maker_axis (Maker *self, guint i, TinyTensor *x);
/* Some axes of @x, at least one if there are any: how many. */
guint maker_axes (Maker *self, TinyTensor *x, gint *out);

/* ---- bringing operands into form; take and give floating references ---- */
TinyTensor *operand_float (TinyTensor *x);
TinyTensor *operand_integer (TinyTensor *x);
TinyTensor *operand_flat (TinyTensor *x);
/* The elements of @x, cut off or again from the beginning, in @shape. */
TinyTensor *operand_fitted (TinyTensor *x, const gint64 *shape, guint n);
/* @y made to broadcast with @x: of its shape, where some axes may be 1 or missing. */
TinyTensor *operand_partner (Maker *self, TinyTensor *x, TinyTensor *y);

static inline gint64
n_elements (TinyTensor *x)
{
  return tiny_tensor_get_n_elements (x);
}

static inline guint
rank_of (TinyTensor *x)
{
  return tiny_tensor_get_n_dims (x);
}

static inline gint64
size_of (TinyTensor *x, guint axis)
{
  return tiny_tensor_get_shape (x, NULL)[axis];
}

static inline gboolean
is_float (TinyTensor *x)
{
  return tiny_dtype_is_float (tiny_tensor_get_dtype (x));
}

G_END_DECLS
