/* SPDX-License-Identifier: MIT
 *
 * test-heuristic-matvec.c: what the heuristic chooses for products of a matrix with a vector, and that it
 * computes what the kernel says. */
#include "kernels.h"

/* out[i][j] = sum over k of x[a[i][j][k]] * y[b[i][j][k]]; strides of each. */
typedef struct {
  gint64 extents[3], x_strides[3], y_strides[3];
} Product;

static gint64
size_of (const Product *self, const gint64 strides[3])
{
  gint64 n = 1;
  for (guint i = 0; i < 3; i++)
    n += (self->extents[i] - 1) * strides[i];
  return n;
}

static TinyNode *
load_of (Build *b, guint slot, gint64 n, TinyNode **ranges, const gint64 *strides)
{
  TinyNode *index = NULL;
  for (guint i = 0; i < 3; i++) {
    TinyNode *stride = tiny_node_const_index (b->graph, strides[i]), *term = ranges[i];
    if (strides[i] == 0)
      continue;
    if (strides[i] != 1)
      term = build_op (b, TINY_OP_MUL, term, stride);
    index = index == NULL ? term : build_op (b, TINY_OP_ADD, index, term);
  }
  return build_load (b, build_param (b, TINY_DTYPE_F32, slot, n), index, NULL);
}

static char *
choose (const Product *self)
{
  BUILD ();
  TinyTarget target = vector_target ();
  TinyNode *r[3];
  for (guint i = 0; i < 3; i++)
    r[i] = build_range (b, self->extents[i]);
  TinyNode *x = load_of (b, 1, size_of (self, self->x_strides), r, self->x_strides);
  TinyNode *y = load_of (b, 2, size_of (self, self->y_strides), r, self->y_strides);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &r[2]);
  TinyNode *out = build_param (b, TINY_DTYPE_F32, 0, self->extents[0] * self->extents[1]);
  return check_kernel (
      b, build_sink (b, build_store (b, out, INDEX (b, r[0], r[1]), sum, NULL)), &target, NULL);
}

/* A row is read with four accumulators, so that memory is read as it lies, two rows at a time. */
static void
test_matvec (void)
{
  g_autofree char *opts = choose (&(Product){ { 1, 64, 512 }, { 0, 0, 1 }, { 0, 512, 1 } });
  g_test_message ("%s", opts);
  g_assert_nonnull (strstr (opts, "lanes(1,16) unroll(1,4) upcast(0,2)"));
}

/* Heads of keys that lie side by side in each row: rows are the outer loop. */
static void
test_order (void)
{
  g_autofree char *opts = choose (&(Product){ { 3, 40, 64 }, { 64, 0, 1 }, { 64, 192, 1 } });
  g_test_message ("%s", opts);
  g_assert_nonnull (strstr (opts, "swap(0,1)"));
  g_autofree char *straight
      = choose (&(Product){ { 3, 40, 64 }, { 64, 0, 1 }, { 2560, 64, 1 } });
  g_test_message ("%s", straight);
  g_assert_null (strstr (straight, "swap"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/codegen/heuristic/matvec", test_matvec);
  g_test_add_func ("/codegen/heuristic/order", test_order);
  return g_test_run ();
}
