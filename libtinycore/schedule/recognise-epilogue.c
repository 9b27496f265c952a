/* SPDX-License-Identifier: MIT
 *
 * recognise-epilogue.c: what is done to each result of an operation before it is stored.
 *
 * An activation is recognised by making it: for each value inside, the expression that the activation of
 * that value is. Nodes are hash-consed, so that it is the same node or another expression. */
#include <math.h>
#include <string.h>

#include "schedule/recognise.h"

enum { MAX_NODES = 48 }; /* of an epilogue */

/* ---- activations, as the tensor room writes them ---- */
static TinyNode *
number (TinyGraph *graph, const TinyNode *like, double value)
{
  return tiny_node_const_float (graph, like->dtype, value);
}

static TinyNode *
times (TinyGraph *graph, TinyNode *x, double value)
{
  return tiny_node_binary (graph, TINY_OP_MUL, x, number (graph, x, value));
}

static TinyNode *
plus (TinyGraph *graph, TinyNode *x, double value)
{
  return tiny_node_binary (graph, TINY_OP_ADD, x, number (graph, x, value));
}

static TinyNode *
make_relu (TinyGraph *graph, TinyNode *x)
{
  return tiny_node_binary (graph, TINY_OP_MAX, x, tiny_node_const_int (graph, x->dtype, 0));
}

static TinyNode *
make_sigmoid (TinyGraph *graph, TinyNode *x)
{
  TinyNode *minus = tiny_node_unary (graph, TINY_OP_NEG, x);
  TinyNode *power = tiny_node_unary (graph, TINY_OP_EXP2, times (graph, minus, 1 / G_LN2));
  return tiny_node_unary (graph, TINY_OP_RECIP, plus (graph, power, 1));
}

static TinyNode *
make_tanh (TinyGraph *graph, TinyNode *x)
{
  return plus (graph, times (graph, make_sigmoid (graph, times (graph, x, 2)), 2), -1);
}

static TinyNode *
make_silu (TinyGraph *graph, TinyNode *x)
{
  return tiny_node_binary (graph, TINY_OP_MUL, x, make_sigmoid (graph, x));
}

static TinyNode *
make_gelu (TinyGraph *graph, TinyNode *x)
{
  TinyNode *square = tiny_node_binary (graph, TINY_OP_MUL, x, x);
  TinyNode *cube = tiny_node_binary (graph, TINY_OP_MUL, x, square);
  TinyNode *sum = tiny_node_binary (graph, TINY_OP_ADD, x, times (graph, cube, 0.044715));
  TinyNode *inner = times (graph, sum, sqrt (2 / G_PI));
  return tiny_node_binary (graph, TINY_OP_MUL, x,
                           make_sigmoid (graph, times (graph, inner, 2)));
}

static const struct {
  TinyActivation activation;
  TinyNode *(*make) (TinyGraph *graph, TinyNode *x);
  TinyOp top;
  gboolean of_floats;
} activations[] = {
  { TINY_ACTIVATION_RELU, make_relu, TINY_OP_MAX, FALSE },
  { TINY_ACTIVATION_SIGMOID, make_sigmoid, TINY_OP_RECIP, TRUE },
  { TINY_ACTIVATION_TANH, make_tanh, TINY_OP_ADD, TRUE },
  { TINY_ACTIVATION_SILU, make_silu, TINY_OP_MUL, TRUE },
  { TINY_ACTIVATION_GELU, make_gelu, TINY_OP_MUL, TRUE },
};

/* ---- taking it off ---- */

/* The nodes from @value down to REDUCEs and LOADs, into @out; 0 when there are too many. */
static guint
list_inside (TinyNode *value, TinyNode *out[MAX_NODES])
{
  guint n = 1;
  out[0] = value;
  for (guint i = 0; i < n; i++) {
    TinyNode *node = out[i];
    if (node->op == TINY_OP_REDUCE || node->op == TINY_OP_LOAD)
      continue;
    for (guint s = 0; s < node->n_sources; s++) {
      guint j = 0;
      while (j < n && out[j] != node->sources[s])
        j++;
      if (j < n)
        continue;
      if (n == MAX_NODES)
        return 0;
      out[n++] = node->sources[s];
    }
  }
  return n;
}

static TinyNode *
take_activation (Recognition *self, TinyNode *value)
{
  TinyNode *inside[MAX_NODES];
  guint n = list_inside (value, inside);
  for (guint a = 0; a < G_N_ELEMENTS (activations); a++) {
    if (value->op != activations[a].top
        || (activations[a].of_floats && !tiny_dtype_is_float (value->dtype)))
      continue;
    for (guint i = 1; i < n; i++)
      if (inside[i]->dtype == value->dtype && inside[i]->op != TINY_OP_CONST
          && activations[a].make (self->graph, inside[i]) == value) {
        self->out->activation = activations[a].activation;
        return inside[i];
      }
  }
  return value;
}

/* x + BIAS, either way round, of an x that is no LOAD itself. */
static TinyNode *
take_bias (Recognition *self, TinyNode *value)
{
  Access *bias = &self->accesses[TINY_ROLE_BIAS];
  for (guint i = 0; i < 2 && value->op == TINY_OP_ADD; i++) {
    TinyNode *x = value->sources[i];
    if (recognise_load (self, value->sources[1 - i], bias) && bias->gate == NULL
        && x->op != TINY_OP_LOAD)
      return x;
  }
  *bias = (Access){ NULL };
  return value;
}

static TinyNode *
take_scale (Recognition *self, TinyNode *value)
{
  for (guint i = 0; i < 2 && value->op == TINY_OP_MUL; i++)
    if (value->sources[i]->op == TINY_OP_CONST && tiny_dtype_is_float (value->dtype)) {
      self->out->scale = tiny_node_get_float (value->sources[i]);
      return value->sources[1 - i];
    }
  return value;
}

/* A number that becomes another one, not one that becomes true or false. */
static TinyNode *
take_conversion (TinyNode *value)
{
  if (value->op != TINY_OP_CAST)
    return value;
  TinyNode *x = value->sources[0];
  gboolean is_number = x->dtype != TINY_DTYPE_BOOL && value->dtype != TINY_DTYPE_BOOL;
  gboolean is_alike = tiny_dtype_is_float (x->dtype) == tiny_dtype_is_float (value->dtype);
  return is_number && is_alike ? x : value;
}

void
recognise_epilogue (Recognition *self)
{
  TinyNode *value = take_conversion (self->store->sources[2]);
  self->out->compute_dtype = value->dtype;
  value = take_activation (self, value);
  value = take_bias (self, value);
  self->core = take_scale (self, value);
}
