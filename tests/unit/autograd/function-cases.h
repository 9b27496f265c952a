/* SPDX-License-Identifier: MIT
 *
 * function-cases.h: the cases of differentiable operations as functions that transforms take, and
 * values for their arguments. The oracle evaluates them, so no device is needed. */
#pragma once

#include "../tensor/cases.h"
#include "../tensor/oracle.h"
#include "autograd/tiny-transforms.h"

G_BEGIN_DECLS

enum { MAX_ARGUMENTS = 3 };

typedef struct {
  Oracle oracle;
  guint n;
  double *values[MAX_ARGUMENTS];
  gint64 n_values[MAX_ARGUMENTS];
  TinyTensor *x[MAX_ARGUMENTS];
} Arguments;

/* Random arguments of @test; each with @n_outer more axes, of the sizes @outer, before its own. */
void arguments_init (Arguments *self, const Case *test, const gint64 *outer, guint n_outer);
void arguments_clear (Arguments *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Arguments, arguments_clear)

/* A TinyFunction of the Case that is its data. */
GPtrArray *
case_function (TinyTensor *const *inputs, guint n_inputs, gpointer test, GError **error);

/* f64 of a shape that are different everywhere. */
TinyTensor *uneven_numbers (TinyTensor *like, double first);

/* The message of the error that is all of @list, which is freed. */
#define g_assert_only_error(list, text)                                                        \
  G_STMT_START                                                                                 \
  {                                                                                            \
    g_autoptr (GPtrArray) list_ = (list);                                                      \
    g_assert_cmpuint (list_->len, ==, 1);                                                      \
    g_assert_nonnull (tiny_tensor_get_error (list_->pdata[0]));                                \
    g_assert_cmpstr (tiny_tensor_get_error (list_->pdata[0])->message, ==, text);              \
  }                                                                                            \
  G_STMT_END

G_END_DECLS
