/* SPDX-License-Identifier: MIT
 *
 * model.c: evaluates tensor-stage nodes, each whole, with a running error bound. */
#include "model.h"

#include <string.h>

#include "base/tiny-float.h"
#include "cell.h"
#include "device/tiny-buffer.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-shape.h"
#include "position.h"

/* ---- whole nodes ---- */
gint64
model_decode (TinyDType dtype, gconstpointer data, gsize i)
{
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
  guint64 raw = 0;
  memcpy (&raw, (const guint8 *) data + i * n_bytes,
          n_bytes); /* little-endian, as are all targets */
  if (tiny_dtype_is_float (dtype))
    return tiny_eval_from_double (dtype, tiny_float_from_bits (dtype, raw));
  return tiny_eval_wrap (dtype, (gint64) raw);
}

static void
eval_reduce (const TinyNode *node, const Cell *x, Cell *out, gsize n_out)
{
  const TinyInts *in = node->sources[0]->shape;
  gsize n_in = (gsize) tiny_shape_get_n_elements (in), n_each = n_in / MAX (n_out, 1);
  g_autofree Cell *groups = g_new (Cell, n_in + 1);
  g_autofree gsize *filled = g_new0 (gsize, n_out + 1);
  for (gsize i = 0; i < n_in; i++) {
    gint64 at[POSITION_MAX_RANK];
    position_unravel (in, i, at);
    for (guint j = 0; j < node->ints->n; j++)
      at[node->ints->v[j]] = 0;
    gsize to = position_ravel (node->shape, at);
    groups[to * n_each + filled[to]++] = x[i];
  }
  for (gsize i = 0; i < n_out; i++)
    out[i] = cell_reduce ((TinyOp) node->arg, (TinyDType) node->dtype, groups + i * n_each,
                          n_each);
}

static void
eval_gather (const TinyNode *node, Cell *const *in, Cell *out, gsize n)
{
  const TinyInts *from = node->sources[0]->shape;
  gint64 at[POSITION_MAX_RANK];
  for (gsize i = 0; i < n; i++) {
    const Cell *position = &in[1][i];
    position_unravel (node->shape, i, at);
    at[node->arg] = position->bits;
    out[i] = position->bound != 0 ? cell_unknown ()
             : position->bits < 0 || position->bits >= from->v[node->arg]
                 ? cell_exact (0)
                 : in[0][position_ravel (from, at)];
  }
}

static void
eval_buffer (TinyNode *node, Cell *out, gsize n)
{
  TinyDType dtype = (TinyDType) node->dtype;
  gsize n_bytes = n * tiny_dtype_get_n_bytes (dtype);
  g_autofree gpointer data = g_malloc (n_bytes + 1);
  g_autoptr (GError) error = NULL;
  tiny_buffer_download (tiny_runtime_get_buffer (node), 0, data, n_bytes, &error);
  g_assert_no_error (error);
  for (gsize i = 0; i < n; i++)
    out[i] = cell_exact (model_decode (dtype, data, i));
}

static void
eval_node (TinyNode *node, Cell *const *in, Cell *out, gsize n)
{
  gint64 at[POSITION_MAX_RANK];
  switch (node->op) {
  case TINY_OP_CONST:
  case TINY_OP_VARIABLE:
    out[0] = cell_exact (node->arg);
    return;
  case TINY_OP_IOTA:
    for (gsize i = 0; i < n; i++)
      out[i] = cell_exact ((gint64) i);
    return;
  case TINY_OP_BUFFER:
    eval_buffer (node, out, n);
    return;
  case TINY_OP_REDUCE:
    eval_reduce (node, in[0], out, n);
    return;
  case TINY_OP_GATHER:
    eval_gather (node, in, out, n);
    return;
  case TINY_OP_CONTIGUOUS:
  case TINY_OP_DETACH:
  case TINY_OP_SLOPED:
  case TINY_OP_COPY:
    memcpy (out, in[0], n * sizeof *out);
    return;
  case TINY_OP_ASSIGN:
    memcpy (out, in[1], n * sizeof *out);
    return;
  default:
    break;
  }
  for (gsize i = 0; i < n; i++) {
    if (tiny_op_is_movement ((TinyOp) node->op)) {
      position_unravel (node->shape, i, at);
      out[i] = position_move (node, at) ? in[0][position_ravel (node->sources[0]->shape, at)]
                                        : cell_exact (0);
    } else {
      Cell v[3];
      for (guint s = 0; s < node->n_sources; s++)
        v[s] = in[s][node->sources[s]->shape->n == 0 ? 0 : i];
      out[i] = cell_of (node, v, node->n_sources);
    }
  }
}

gboolean
model_eval (
    TinyGraph *graph, TinyNode *const *roots, guint n_roots, gint64 max_elements, Cell **out)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, roots, n_roots);
  g_auto (TinyNodeMap) values = { 0 };
  for (guint k = 0; k < order->len; k++)
    if (tiny_shape_get_n_elements (((TinyNode *) order->pdata[k])->shape) > max_elements)
      return FALSE;
  for (guint k = 0; k < order->len; k++) {
    TinyNode *node = order->pdata[k];
    Cell *in[3] = { NULL };
    gsize n = (gsize) tiny_shape_get_n_elements (node->shape);
    Cell *cells = g_new0 (Cell, n + 1);
    for (guint s = 0; s < node->n_sources; s++)
      in[s] = tiny_node_map_get (&values, node->sources[s]);
    eval_node (node, in, cells, n);
    tiny_node_map_set (&values, node, cells);
  }
  for (guint i = 0; i < n_roots; i++)
    out[i]
        = g_memdup2 (tiny_node_map_get (&values, roots[i]),
                     ((gsize) tiny_shape_get_n_elements (roots[i]->shape) + 1) * sizeof (Cell));
  for (guint k = 0; k < order->len; k++)
    g_free (tiny_node_map_get (&values, order->pdata[k]));
  return TRUE;
}
