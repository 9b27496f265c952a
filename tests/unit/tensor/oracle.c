/* SPDX-License-Identifier: MIT
 *
 * oracle.c: computes nodes one after the other, whole.
 *
 * Values are long doubles, which hold every value of every dtype exactly; after each operation
 * they are rounded or wrapped to the node's dtype. */
#include "oracle.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"
#include "device/tiny-buffer.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-shape.h"
#include "sdk/conformance/position.h"
#include "tensor/tiny-tensor-private.h"

typedef long double Value;

/* What @dtype makes of an exact value. */
static Value
to_dtype (TinyDType dtype, Value x)
{
  if (dtype == TINY_DTYPE_F64)
    return (double) x;
  if (dtype == TINY_DTYPE_F32)
    return (float) x;
  if (tiny_dtype_is_float (dtype))
    return tiny_float_from_bits (dtype, tiny_float_to_bits (dtype, (double) x));
  if (dtype == TINY_DTYPE_BOOL)
    return x != 0;
  guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes (dtype);
  Value modulus = ldexpl (1, (int) n_bits);
  Value wrapped = truncl (x) - modulus * floorl (truncl (x) / modulus);
  if (tiny_dtype_is_signed (dtype) && wrapped >= modulus / 2)
    wrapped -= modulus;
  return wrapped;
}

static guint64
bits_of (Value x)
{
  return x < 0 ? (guint64) (gint64) x : (guint64) x;
}

static Value
from_bits (TinyDType dtype, guint64 bits)
{
  return tiny_dtype_is_signed (dtype) ? (Value) (gint64) bits : (Value) bits;
}

/* The product of integers modulo 2^64, which a long double cannot hold. */
static Value
multiply (TinyDType dtype, Value x, Value y)
{
  if (tiny_dtype_is_float (dtype))
    return x * y;
  return from_bits (dtype, bits_of (x) * bits_of (y));
}

static Value
alu (const TinyNode *node, const Value *v)
{
  TinyDType dtype = (TinyDType) node->sources[0]->dtype;
  Value x = v[0], y = v[1], z = v[2];
  switch (node->op) {
  case TINY_OP_CAST:
  case TINY_OP_CONTIGUOUS:
    return x;
  case TINY_OP_BITCAST:
    return from_bits ((TinyDType) node->dtype, bits_of (x));
  case TINY_OP_NEG:
    return -x;
  case TINY_OP_RECIP:
    return 1 / x;
  case TINY_OP_SQRT:
    return sqrt ((double) x);
  case TINY_OP_EXP2:
    return exp2 ((double) x);
  case TINY_OP_LOG2:
    return log2 ((double) x);
  case TINY_OP_SIN:
    return sin ((double) x);
  case TINY_OP_TRUNC:
    return truncl (x);
  case TINY_OP_ADD:
    return x + y;
  case TINY_OP_SUB:
    return x - y;
  case TINY_OP_MUL:
    return multiply (dtype, x, y);
  case TINY_OP_FDIV:
    return x / y;
  case TINY_OP_IDIV:
    return truncl (x / y);
  case TINY_OP_MOD:
    return fmodl (x, y);
  case TINY_OP_MAX:
    return x < y ? y : x;
  case TINY_OP_CMPLT:
    return x < y;
  case TINY_OP_CMPNE:
    return x != y;
  case TINY_OP_CMPEQ:
    return x == y;
  case TINY_OP_AND:
    return from_bits (dtype, bits_of (x) & bits_of (y));
  case TINY_OP_OR:
    return from_bits (dtype, bits_of (x) | bits_of (y));
  case TINY_OP_XOR:
    return from_bits (dtype, bits_of (x) ^ bits_of (y));
  case TINY_OP_SHL:
    return from_bits (dtype, bits_of (x) << (guint) y);
  case TINY_OP_SHR:
    return floorl (x / ldexpl (1, (int) y));
  case TINY_OP_WHERE:
    return x != 0 ? y : z;
  case TINY_OP_MULACC:
    return (Value) (double) (x * y) + z;
  default:
    g_error ("oracle: no elementwise op %s", tiny_op_to_string ((TinyOp) node->op));
  }
}

/* ---- whole nodes ---- */
static void
eval_reduce (const TinyNode *node, const Value *x, Value *out, gsize n_out)
{
  const TinyInts *in = node->sources[0]->shape;
  gsize n_in = (gsize) tiny_shape_get_n_elements (in);
  for (gsize i = 0; i < n_out; i++)
    out[i] = node->arg == TINY_OP_MUL ? 1 : node->arg == TINY_OP_MAX ? -INFINITY : 0;
  for (gsize i = 0; i < n_in; i++) {
    gint64 at[POSITION_MAX_RANK];
    position_unravel (in, i, at);
    for (guint j = 0; j < node->ints->n; j++)
      at[node->ints->v[j]] = 0;
    Value *sum = &out[position_ravel (node->shape, at)];
    *sum = node->arg == TINY_OP_ADD   ? *sum + x[i]
           : node->arg == TINY_OP_MUL ? multiply ((TinyDType) node->dtype, *sum, x[i])
                                      : MAX (*sum, x[i]);
    if (!tiny_dtype_is_float (node->dtype))
      *sum = to_dtype ((TinyDType) node->dtype, *sum);
  }
}

static void
eval_gather (const TinyNode *node, Value *const *in, Value *out, gsize n)
{
  const TinyInts *from = node->sources[0]->shape;
  for (gsize i = 0; i < n; i++) {
    gint64 at[POSITION_MAX_RANK];
    gboolean inside = in[1][i] >= 0 && in[1][i] < from->v[node->arg];
    position_unravel (node->shape, i, at);
    at[node->arg] = inside ? (gint64) in[1][i] : 0;
    out[i] = inside ? in[0][position_ravel (from, at)] : 0;
  }
}

static void
eval_buffer (TinyNode *node, Value *out, gsize n)
{
  TinyBuffer *buffer = tiny_runtime_get_buffer (node);
  gsize n_bytes = n * tiny_dtype_get_n_bytes ((TinyDType) node->dtype);
  g_autofree gpointer data = g_malloc (n_bytes);
  g_autoptr (GError) error = NULL;
  tiny_buffer_download (buffer, 0, data, n_bytes, &error);
  g_assert_no_error (error);
  for (gsize i = 0; i < n; i++)
    out[i] = node->dtype == TINY_DTYPE_I64 ? (Value) ((gint64 *) data)[i]
             : node->dtype == TINY_DTYPE_U64
                 ? (Value) ((guint64 *) data)[i]
                 : tiny_tensor_decode ((TinyDType) node->dtype, data, i);
}

static Value
bit_cast (TinyDType from, TinyDType to, Value x)
{
  guint64 bits = tiny_dtype_is_float (from) && from != TINY_DTYPE_F32 && from != TINY_DTYPE_F64
                     ? tiny_float_to_bits (from, (double) x)
                     : bits_of (x);
  float single = (float) x;
  double twice = (double) x;
  if (from == TINY_DTYPE_F32)
    memcpy (&bits, &single, sizeof single), bits &= G_MAXUINT32;
  if (from == TINY_DTYPE_F64)
    memcpy (&bits, &twice, sizeof twice);
  if (!tiny_dtype_is_float (to))
    return to_dtype (to, (Value) bits);
  memcpy (&single, &bits, sizeof single);
  memcpy (&twice, &bits, sizeof twice);
  return to == TINY_DTYPE_F32   ? (Value) single
         : to == TINY_DTYPE_F64 ? (Value) twice
                                : (Value) tiny_float_from_bits (to, bits);
}

static void
eval_one (const Oracle *self, TinyNode *node, Value *const *in, Value *out, gsize n)
{
  switch (node->op) {
  case TINY_OP_CONST:
    out[0] = tiny_dtype_is_float (node->dtype) || node->dtype == TINY_DTYPE_U64
                 ? (Value) tiny_node_get_float (node)
                 : (Value) node->arg;
    if (node->dtype == TINY_DTYPE_U64)
      out[0] = (Value) (guint64) node->arg;
    return;
  case TINY_OP_IOTA:
    for (gsize i = 0; i < n; i++)
      out[i] = i;
    return;
  case TINY_OP_VARIABLE: /* of the process-wide graph: its value */
    out[0] = node->arg;
    return;
  case TINY_OP_PARAM:
    g_assert (node->arg < self->n_params);
    for (gsize i = 0; i < n; i++)
      out[i] = self->params[node->arg][i];
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
  case TINY_OP_AFTER:
    memcpy (out, in[0], n * sizeof *out);
    return;
  case TINY_OP_GRADIENT:
    memcpy (out, in[node->ints->v[0]], n * sizeof *out);
    return;
  case TINY_OP_ASSIGN:
    memcpy (out, in[1], n * sizeof *out);
    return;
  default:
    break;
  }
  for (gsize i = 0; i < n; i++) {
    if (tiny_op_is_movement ((TinyOp) node->op)) {
      gint64 at[POSITION_MAX_RANK];
      position_unravel (node->shape, i, at);
      out[i]
          = position_move (node, at) ? in[0][position_ravel (node->sources[0]->shape, at)] : 0;
    } else if (node->op == TINY_OP_BITCAST) {
      out[i] = bit_cast ((TinyDType) node->sources[0]->dtype, (TinyDType) node->dtype,
                         in[0][node->sources[0]->shape->n == 0 ? 0 : i]);
    } else {
      Value v[3] = { 0 };
      for (guint s = 0; s < node->n_sources; s++)
        v[s] = in[s][node->sources[s]->shape->n == 0 ? 0 : i];
      out[i] = alu (node, v);
    }
  }
}

double *
oracle_eval_node (const Oracle *self, TinyNode *root, gsize *out_n)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_auto (TinyNodeMap) values = { 0 };
  for (guint k = 0; k < order->len; k++) {
    TinyNode *node = order->pdata[k];
    g_autofree Value **in = g_new0 (Value *, node->n_sources + 1);
    gsize n = (gsize) tiny_shape_get_n_elements (node->shape);
    Value *out = g_new0 (Value, n + 1);
    for (guint s = 0; s < node->n_sources; s++)
      in[s] = tiny_node_map_get (&values, node->sources[s]);
    eval_one (self, node, in, out, n);
    for (gsize i = 0; i < n; i++)
      out[i] = to_dtype ((TinyDType) node->dtype, out[i]);
    tiny_node_map_set (&values, node, out);
  }
  gsize n = (gsize) tiny_shape_get_n_elements (root->shape);
  double *result = g_new0 (double, n + 1);
  const Value *from = tiny_node_map_get (&values, root);
  for (gsize i = 0; i < n; i++)
    result[i] = (double) from[i];
  for (guint k = 0; k < order->len; k++)
    g_free (tiny_node_map_get (&values, order->pdata[k]));
  if (out_n != NULL)
    *out_n = n;
  return result;
}

double *
oracle_eval (const Oracle *self, TinyTensor *tensor, gsize *out_n)
{
  g_assert_no_error (tiny_tensor_get_error (tensor));
  tiny_runtime_lock ();
  double *result = oracle_eval_node (self, tiny_tensor_get_node (tensor), out_n);
  tiny_runtime_unlock ();
  return result;
}

TinyTensor *
oracle_param (guint slot, TinyDType dtype, const gint64 *shape, guint n)
{
  tiny_runtime_lock ();
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *node = tiny_node_new (graph, TINY_OP_PARAM, dtype, 1, 0, NULL, slot,
                                  tiny_graph_ints (graph, shape, n), NULL);
  TinyTensor *tensor = tiny_tensor_new_for_node (node, NULL);
  tiny_runtime_unlock ();
  return tensor;
}
