/* SPDX-License-Identifier: MIT
 *
 * cases.c: the rows of cases.def, and what their functions call. */
#include "cases.h"

#include <math.h>

#include "engine/tiny-runtime.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name) tiny_tensor_##name
#define AXES(...)                                                                              \
  (gint[]) { __VA_ARGS__ }
#define SIZES(...)                                                                             \
  (gint64[]) { __VA_ARGS__ }

/* A node of the IR that no public operation makes. */
static TinyTensor *
raw (TinyTensor *const *x, TinyOp op, guint n)
{
  tiny_runtime_lock ();
  TinyNode *sources[3];
  for (guint i = 0; i < n; i++)
    sources[i] = tiny_tensor_get_node (x[i]);
  TinyTensor *result = tiny_tensor_new_for_node (
      tiny_layout_elementwise (tiny_runtime_get_graph (), op, TINY_DTYPE_F64, n, sources),
      NULL);
  tiny_runtime_unlock ();
  return result;
}

static TinyTensor *
shear (TinyTensor *x, const gint64 *v)
{
  tiny_runtime_lock ();
  TinyNode *node = tiny_node_shear (tiny_runtime_get_graph (), tiny_tensor_get_node (x),
                                    (guint) v[0], (guint) v[1], v[2], v[3], v[4], v[5], v[6]);
  TinyTensor *result = tiny_tensor_new_for_node (node, NULL);
  tiny_runtime_unlock ();
  return result;
}

#define TENSORS(...)                                                                           \
  (TinyTensor *[]) { __VA_ARGS__ }

/* 0 @step 2 @step … modulo @size, @n of them */
static TinyTensor *
at (gint64 n, gint64 step, gint64 size)
{
  TinyTensor *counted = T (arange) (TINY_DTYPE_I32, 0, (double) (n * step), (double) step);
  return T (mod) (counted, T (scalar) ((double) size));
}

typedef enum { SORT, TOPK, KTHVALUE, MEDIAN } Sorted;

/* The values of what gives positions as well. */
static TinyTensor *
first (TinyTensor *x, Sorted what, gint64 k, gint axis)
{
  TinyTensor *values = NULL;
  if (what == SORT)
    T (sort) (x, axis, TRUE, FALSE, &values, NULL);
  else if (what == TOPK)
    T (topk) (x, k, axis, TRUE, TRUE, &values, NULL);
  else if (what == KTHVALUE)
    T (kthvalue) (x, k, axis, FALSE, &values, NULL);
  else
    T (median) (x, axis, FALSE, &values, NULL);
  g_object_force_floating (G_OBJECT (values));
  return values;
}

/* Result @i of several, consumed. */
static TinyTensor *
nth (GPtrArray *results, guint i)
{
  TinyTensor *result = g_object_ref (results->pdata[i]);
  g_ptr_array_unref (results);
  g_object_force_floating (G_OBJECT (result));
  return result;
}

/* x[-1::-2, None] = y, then x[[-1 + 0, -1 + 2 …]] = z, on a tensor that is computed. */
static TinyTensor *
set_index (TinyTensor *const *x)
{
  TinyTensor *self = T (mul_number) (x[0], 2), *row = T (sub) (at (2, 2, 4), T (scalar) (1));
  gint64 back[] = { -1, TINY_SLICE_BEGIN, -2 };
  gboolean good = T (set_index) (self, "sn", back, 3, NULL, 0, x[1], NULL)
                  && T (set_index) (self, "t", NULL, 0, &row, 1, x[2], NULL);
  g_assert_true (good);
  return self;
}

/* One of two results; the other goes. */
static TinyTensor *
one_of (TinyTensor *wanted, TinyTensor *other)
{
  g_object_unref (other);
  g_object_force_floating (G_OBJECT (wanted));
  return wanted;
}

/* Of two results in y, which @call puts there. */
#define ONE(which, call) (call, one_of (y[which], y[1 - (which)]))

/* Q of the factors of @x, and R, side by side. */
static TinyTensor *
tall_q (TinyTensor *x)
{
  TinyTensor *q, *r;
  T (qr) (x, "reduced", &q, &r);
  TinyTensor *both = T (cat) ((TinyTensor *[]){ q, r }, 2, 0);
  g_object_unref (q);
  g_object_unref (r);
  return both;
}

/* P, L and U of a matrix that can be inverted, side by side. */
static TinyTensor *
lu_parts (TinyTensor *x)
{
  TinyTensor *p, *l, *u;
  T (lu) (x, &p, &l, &u);
  TinyTensor *all = T (cat) ((TinyTensor *[]){ p, l, u }, 3, 0);
  g_object_unref (p);
  g_object_unref (l);
  g_object_unref (u);
  return all;
}

/* X of @x X = @y. */
static TinyTensor *
solve_by_lu (TinyTensor *x, TinyTensor *y)
{
  TinyTensor *lu, *pivots;
  T (lu_factor) (x, &lu, &pivots);
  TinyTensor *found = T (lu_solve) (lu, pivots, y);
  g_object_unref (lu);
  g_object_unref (pivots);
  return found;
}

/* Eigenvalues of a symmetric matrix, and squares of vectors, which have no sign. */
static TinyTensor *
eigh_parts (TinyTensor *x)
{
  TinyTensor *values, *vectors;
  T (eigh) (x, FALSE, &values, &vectors);
  TinyTensor *all = T (cat) (
      (TinyTensor *[]){ T (reshape) (values, SIZES (1, -1), 2), T (square) (vectors) }, 2, 0);
  g_object_unref (values);
  g_object_unref (vectors);
  return all;
}

/* What has no sign of U, S and V side by side, of a matrix whose singular values differ. */
static TinyTensor *
svd_parts (TinyTensor *x)
{
  gint64 m = T (get_shape) (x, NULL)[0], n = T (get_shape) (x, NULL)[1];
  TinyDType dtype = T (get_dtype) (x);
  TinyTensor *u, *s, *vh, *steps = T (arange) (dtype, 4, 4 + 4 * (double) n, 4);
  T (svd) (T (add) (x, T (mul) (T (eye) (dtype, m, n), steps)), FALSE, &u, &s, &vh);
  TinyTensor *parts[]
      = { T (reshape) (T (square) (u), SIZES (-1), 1), T (reshape) (s, SIZES (-1), 1),
          T (reshape) (T (square) (vh), SIZES (-1), 1) };
  TinyTensor *all = T (cat) (parts, 3, 0);
  g_object_unref (u);
  g_object_unref (s);
  g_object_unref (vh);
  return all;
}

/* A matrix that can be inverted. */
#define REGULAR(x) T (add) (x, T (mul_number) (T (eye) (T (get_dtype) (x), 3, 3), 4))
#define CONV_TRANSPOSE(stride, padding, more, groups, dilation)                                \
  SIZES (stride), 1, SIZES (padding), 1, SIZES (more), 1, groups, SIZES (dilation), 1

#define CASE(name, expression, n, low, high, ...)                                              \
  static TinyTensor *f_##name (TinyTensor *const *x)                                           \
  {                                                                                            \
    G_GNUC_UNUSED TinyTensor *y[2];                                                            \
    return expression;                                                                         \
  }
#define FORMULA CASE
#include "cases.def"
#undef CASE
#undef FORMULA

const Case cases[] = {
#define CASE(name, expression, n, low, high, ...)                                              \
  { #name, f_##name, n, { __VA_ARGS__ }, low, high, FALSE },
#define FORMULA(name, expression, n, low, high, ...)                                           \
  { #name, f_##name, n, { __VA_ARGS__ }, low, high, TRUE },
#include "cases.def"
};
const guint n_cases = G_N_ELEMENTS (cases);
