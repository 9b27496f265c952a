/* SPDX-License-Identifier: MIT
 *
 * position-checks.c: positions from either end of an axis, and those that are outside of it.
 *
 * A position counts from 0, a negative one from the end: -1 is the last. What is read outside is 0 and has no gradient,
 * what is written there is lost; on every backend, as addresses are masked. An error it is where it is known without
 * computing anything, and with TINY_CHECK=1, for which the host reads all positions first. So it does labels, weights and
 * probabilities. */
#include "base/tiny-env.h"
#include "engine/tiny-recorders.h"
#include "engine/tiny-request.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "rewrite/tiny-bounds.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-private.h"

/* True if all of @x is one number, which is known before anything is computed. */
static gboolean
is_number (TinyNode *x, gint64 *out_least, gint64 *out_most)
{
  while (x->op == TINY_OP_RESHAPE || x->op == TINY_OP_PERMUTE || x->op == TINY_OP_EXPAND)
    x = x->sources[0];
  if (x->op == TINY_OP_CONST)
    *out_least = *out_most = x->arg;
  return x->op == TINY_OP_CONST;
}

/* True if the value of @x is there. There is none of an argument that stands for others, nor while all is recorded. */
static gboolean
is_readable (TinyGraph *graph, TinyNode *x)
{
  if (tiny_recorders_get_own () != 0)
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &x, 1);
  for (guint i = 0; i < order->len; i++)
    if (tiny_request_is_placeholder (order->pdata[i]))
      return FALSE;
  return TRUE;
}

/* The value of integers without axes. */
static gboolean
read_one (TinyBuild *self, TinyNode *x, gint64 *out_value)
{
  g_autoptr (TinyTensor) tensor = g_object_ref_sink (
      tiny_tensor_new_for_node (tiny_build_cast (self, x, TINY_DTYPE_I64), self->device));
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (tensor, &self->error);
  if (bytes != NULL)
    *out_value = *(const gint64 *) g_bytes_get_data (bytes, NULL);
  return bytes != NULL;
}

/* The largest of @x. */
static gboolean
read_most (TinyBuild *self, TinyNode *x, gint64 *out_value)
{
  gint64 axes[TINY_MAX_RANK], n = (gint64) x->shape->n;
  for (gint64 i = 0; i < n; i++)
    axes[i] = i;
  x = tiny_node_reduce_axes (self->graph, x, TINY_OP_MAX, axes, (guint) n);
  return read_one (self, tiny_build_reshape (self, x, NULL, 0), out_value);
}

/* Reads the least and the largest of @x where that is asked for and can be; else both stay as they are. */
static gboolean
read_extremes (TinyBuild *self, TinyNode *x, gint64 *out_least, gint64 *out_most)
{
  if (tiny_env_get_int (TINY_ENV_CHECK) == 0 || tiny_shape_get_n_elements (x->shape) == 0
      || !is_readable (self->graph, x))
    return TRUE;
  tiny_runtime_hold ();
  x = tiny_build_cast (self, x, TINY_DTYPE_I64);
  TinyNode *minus = tiny_build_sub (self, tiny_build_like (self, x, 0), x);
  gboolean good
      = minus != NULL && read_most (self, x, out_most) && read_most (self, minus, out_least);
  *out_least = good ? -*out_least : 0;
  tiny_runtime_release ();
  return good;
}

gboolean
tiny_build_check_all (TinyBuild *self, TinyNode *is_good, const char *wanted)
{
  gint64 least = 0, most = 0;
  return is_good != NULL && read_extremes (self, tiny_build_not (self, is_good), &least, &most)
         && (most == 0 || tiny_build_fail (self, "%s", wanted) != NULL);
}

TinyNode *
tiny_build_positions (TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions)
{
  if (x == NULL || positions == NULL)
    return NULL;
  gint64 size = x->shape->v[axis], least = 0, most = 0;
  if (!tiny_dtype_is_integer (positions->dtype))
    return tiny_build_fail (self, "the indices are integers, not %s",
                            tiny_dtype_to_string ((TinyDType) positions->dtype));
  if (tiny_shape_get_n_elements (positions->shape) > 0 && !is_number (positions, &least, &most)
      && !read_extremes (self, positions, &least, &most))
    return NULL;
  if (least < -size || most >= MAX (size, 1))
    return tiny_build_fail (self,
                            "position %" G_GINT64_FORMAT
                            " is outside of axis %u, whose size is %" G_GINT64_FORMAT,
                            least < -size ? least : most, axis, size);
  if (positions->dtype == TINY_DTYPE_U64) /* what is beyond i64 would seem to be negative */
    return positions;
  positions = tiny_build_wide_enough (self, positions, size);
  tiny_node_get_bounds (positions, &least, &most);
  if (least >= 0)
    return positions;
  TinyNode *end = tiny_limit_get (x, axis);
  end = end != NULL ? tiny_build_cast (self, end, (TinyDType) positions->dtype)
                    : tiny_node_const_int (self->graph, (TinyDType) positions->dtype, size);
  TinyNode *before = tiny_build_binary (self, TINY_OP_CMPLT, positions,
                                        tiny_build_like (self, positions, 0));
  return tiny_build_where (self, before, tiny_build_add (self, positions, end), positions);
}

gboolean
tiny_build_check_labels (TinyBuild *self, TinyNode *labels, gint64 n, gint64 ignored)
{
  gint64 least = 0, most = 0;
  TinyNode *none = tiny_node_const_int (self->graph, (TinyDType) labels->dtype, ignored);
  TinyNode *counts = tiny_build_binary (self, TINY_OP_CMPNE, labels, none);
  labels = tiny_build_where (self, counts, labels, tiny_build_like (self, labels, 0));
  if (labels == NULL || !read_extremes (self, labels, &least, &most))
    return FALSE;
  return (least >= 0 && most < MAX (n, 1))
         || tiny_build_fail (
                self, "label %" G_GINT64_FORMAT " is none of %" G_GINT64_FORMAT " classes",
                least < 0 ? least : most, n)
                != NULL;
}
