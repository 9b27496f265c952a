/* SPDX-License-Identifier: MIT
 *
 * cases.h: the one list of differentiable operations: functions of up to three tensors, their
 * shapes and the range their values are drawn from. It serves correctness, gradients and devices. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

typedef TinyTensor *(*Function) (TinyTensor *const *x);

typedef struct {
  const char *name;
  Function function;
  guint n;
  gint64 shapes[3][5]; /* ended by 0 */
  double low, high;
  gboolean
      is_formula; /* made of operations that have cases: one dtype is enough for a device */
} Case;

extern const Case cases[];
extern const guint n_cases;

G_END_DECLS
