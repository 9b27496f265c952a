/* SPDX-License-Identifier: MIT
 *
 * claims.c: graphs that are operations, and a device that claims them. */
#include "claims.h"

#include <string.h>

#include "../case-fails.h"
#include "ir/tiny-shape.h"

void
test_begin (Test *self, guint seed)
{
  *self = (Test){ .graph = tiny_graph_new (),
                  .random = g_rand_new_with_seed (seed),
                  .inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free),
                  .offered = g_array_new (FALSE, FALSE, sizeof (TinyOperation)),
                  .most_activation = TINY_ACTIVATION_GELU,
                  .takes_bias = TRUE,
                  .takes_all = TRUE };
}

void
test_end (Test *self)
{
  g_rand_free (self->random);
  g_ptr_array_unref (self->inputs);
  g_array_unref (self->offered);
}

int
claims_pick (Test *self, int n)
{
  return g_rand_int_range (self->random, 0, n);
}

/* ---- graphs ---- */
TinyNode *
claims_add_input (Test *self, TinyDType dtype, const gint64 *dims, guint n)
{
  TinyNode *param
      = tiny_node_new (self->graph, TINY_OP_PARAM, dtype, 1, 0, NULL, self->inputs->len,
                       tiny_graph_ints (self->graph, dims, n), "UNIT");
  Array *array = array_new (dtype, tiny_shape_get_n_elements (param->shape));
  for (gint64 k = 0; k < array->n; k++)
    if (tiny_dtype_is_float (dtype))
      array->v[k].f = claims_pick (self, 9) - 4;
    else
      array->v[k].i = claims_pick (self, 9) - 4;
  g_ptr_array_add (self->inputs, array);
  return param;
}

TinyNode *
claims_as_cast (Test *self, TinyNode *x, TinyDType dtype)
{
  return tiny_node_cast (self->graph, x, dtype);
}

/* A value of shape @dims that lies in memory in another order, flipped, cut out of a larger one, or
 * computed by something that is stored first. */
TinyNode *
claims_add_view (Test *self, TinyDType dtype, const gint64 *dims, guint n)
{
  gint64 order[8], back[8], stored[8], ints[16];
  for (guint i = 0; i < n; i++)
    order[i] = i;
  for (guint i = 0; i < n; i++) {
    guint j = claims_pick (self, n);
    gint64 other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
  for (guint i = 0; i < n; i++) {
    gint64 more = claims_pick (self, 3) == 0 ? 1 + claims_pick (self, 2) : 0;
    back[order[i]] = i;
    ints[2 * i] = more > 0 ? claims_pick (self, (int) more + 1) : 0;
    ints[2 * i + 1] = ints[2 * i] + dims[order[i]];
    stored[i] = dims[order[i]] + more;
  }
  TinyNode *x = claims_add_input (self, dtype, stored, n);
  if (claims_pick (self, 3) == 0)
    x = tiny_node_unary (self->graph, TINY_OP_NEG, x);
  x = tiny_node_shrink (self->graph, x, ints, n);
  if (claims_pick (self, 3) == 0)
    x = tiny_node_flip (self->graph, x, (gint64[]){ claims_pick (self, n) }, 1);
  x = tiny_node_permute (self->graph, x, back, n);
  if (claims_pick (self, 3) == 0) /* what is computed in the view's own order */
    x = tiny_node_binary (self->graph, TINY_OP_ADD, x, x);
  return x;
}

/* (B, M, K) times (B, K, N): the sum over K of the product, as (B, M, N). */
TinyNode *
claims_multiply (Test *self, TinyNode *x, TinyNode *y, TinyDType wide)
{
  gint64 b = x->shape->v[0], m = x->shape->v[1], k = x->shape->v[2], n = y->shape->v[2];
  TinyGraph *graph = self->graph;
  x = tiny_node_reshape (graph, claims_as_cast (self, x, wide), (gint64[]){ b, m, k, 1 }, 4);
  y = tiny_node_reshape (graph, claims_as_cast (self, y, wide),
                         (gint64[]){ y->shape->v[0], 1, k, n }, 4);
  x = tiny_node_expand (graph, x, (gint64[]){ b, m, k, n }, 4);
  y = tiny_node_expand (graph, y, (gint64[]){ b, m, k, n }, 4);
  TinyNode *product = tiny_node_binary (graph, TINY_OP_MUL, x, y);
  product = tiny_node_reduce_axes (graph, product, TINY_OP_ADD, (gint64[]){ 2 }, 1);
  return tiny_node_reshape (graph, product, (gint64[]){ b, m, n }, 3);
}

TinyNode *
claims_number (Test *self, const TinyNode *like, double value)
{
  return tiny_node_const_float (self->graph, like->dtype, value);
}

TinyNode *
claims_apply (Test *self, TinyOp op, TinyNode *x, double value)
{
  return tiny_node_binary (self->graph, op, x, claims_number (self, x, value));
}

static TinyNode *
add_sigmoid (Test *self, TinyNode *x)
{
  TinyNode *minus = tiny_node_unary (self->graph, TINY_OP_NEG, x);
  TinyNode *power = tiny_node_unary (self->graph, TINY_OP_EXP2,
                                     claims_apply (self, TINY_OP_MUL, minus, 1 / G_LN2));
  return tiny_node_unary (self->graph, TINY_OP_RECIP,
                          claims_apply (self, TINY_OP_ADD, power, 1));
}

/* As the tensor room writes them. */
TinyNode *
claims_add_activation (Test *self, TinyNode *x, guint activation)
{
  TinyGraph *graph = self->graph;
  switch (activation) {
  case TINY_ACTIVATION_RELU:
    return claims_apply (self, TINY_OP_MAX, x, 0);
  case TINY_ACTIVATION_SIGMOID:
    return add_sigmoid (self, x);
  case TINY_ACTIVATION_TANH:
    return claims_apply (
        self, TINY_OP_ADD,
        claims_apply (self, TINY_OP_MUL,
                      add_sigmoid (self, claims_apply (self, TINY_OP_MUL, x, 2)), 2),
        -1);
  case TINY_ACTIVATION_SILU:
    return tiny_node_binary (graph, TINY_OP_MUL, x, add_sigmoid (self, x));
  case TINY_ACTIVATION_GELU: {
    TinyNode *cube
        = tiny_node_binary (graph, TINY_OP_MUL, x, tiny_node_binary (graph, TINY_OP_MUL, x, x));
    TinyNode *inner = tiny_node_binary (graph, TINY_OP_ADD, x,
                                        claims_apply (self, TINY_OP_MUL, cube, 0.044715));
    inner = claims_apply (self, TINY_OP_MUL, inner, 0.7978845608028654);
    return tiny_node_binary (graph, TINY_OP_MUL, x,
                             add_sigmoid (self, claims_apply (self, TINY_OP_MUL, inner, 2)));
  }
  default:
    return x;
  }
}

/* ---- running ---- */
gboolean
claims_offer (const char *device, const TinyOperation *operation, double own_ns, gpointer data)
{
  Test *self = data;
  g_assert_cmpstr (device, ==, "UNIT");
  if (operation == NULL)
    return TRUE;
  g_assert_cmpfloat (own_ns, >, 0);
  g_array_append_vals (self->offered, operation, 1);
  gboolean has_bias = operation->operands[operation->n_operands - 1].role == TINY_ROLE_BIAS;
  return self->takes_all && !(self->without >> operation->kind & 1)
         && operation->activation <= self->most_activation && (!has_bias || self->takes_bias);
}

/* Schedules, compares all values, and returns the schedule. */
TinySchedule *
claims_run (Test *self, TinyNode *const *roots, guint n_roots)
{
  g_autoptr (GError) error = NULL;
  TinyNode *sink = tiny_node_sink (self->graph, n_roots, roots, "UNIT");
  const TinyScheduleOptions options = { .claim = claims_offer, .data = self };
  g_autoptr (GPtrArray) expected = evaluate_graph (self->graph, sink, self->inputs);
  TinySchedule *schedule = tiny_schedule_new_with (self->graph, sink, &options, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, self->inputs);
  for (guint i = 0; i < found->len; i++) {
    g_autofree char *difference = NULL;
    if (!arrays_equal (expected->pdata[i], found->pdata[i], &difference))
      CASE_FAILS ("output %u: %s", i, difference);
  }
  return schedule;
}

/* The only operation in @schedule; NULL: there is none. */
const TinyOperation *
claims_find_operation (TinySchedule *schedule)
{
  const TinyOperation *found = NULL;
  for (guint i = 0; i < schedule->n_items; i++)
    if (schedule->items[i].operation != NULL) {
      g_assert_null (found);
      found = schedule->items[i].operation;
    }
  return found;
}
