/* SPDX-License-Identifier: MIT
 *
 * tiny-transforms.c: derivatives of functions; batches are in tiny-vmap.c.
 *
 * A Jacobian is a derivative in one direction, batched over all directions: the derivative's graph is
 * made for a placeholder direction, which the rows of an identity matrix then take the place of. What
 * does not depend on the direction, such as the values of the function itself, is there once. */
#include "autograd/tiny-transforms.h"

#include "autograd/batch-rules.h"
#include "autograd/function-call.h"
#include "autograd/gradient-walk.h"
#include "autograd/tangent-rules.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_RANK = 16 };

/* ---- derivatives ---- */
/* All inputs are variables. */
static gboolean
begin_derivative (FunctionCall *self,
                  const char *name,
                  TinyFunction function,
                  gpointer user_data,
                  TinyTensor *const *inputs,
                  guint n)
{
  if (!function_call_begin (self, name, function, inputs, n))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    TinyNode *node = function_call_get_input (self, i);
    if (!function_call_check_float (self, "input", i, node))
      return FALSE;
    function_call_add_placeholder (self, node->shape->v, node->shape->n);
  }
  return function_call_run (self, function, user_data);
}

/* The nodes of @given, which are to be like those of @get; NULL with an error. */
static TinyNode **
read_directions (FunctionCall *self,
                 const char *what,
                 TinyTensor *const *given,
                 guint n_given,
                 guint n,
                 TinyNode *(*get) (FunctionCall *self, guint i))
{
  g_autofree TinyNode **nodes = g_new (TinyNode *, n + 1);
  if (n_given != n || (n > 0 && given == NULL)) {
    function_call_fail (self, "%u %ss are given, not %u", n_given, what, n);
    return NULL;
  }
  for (guint i = 0; i < n; i++) {
    if (given[i] == NULL || !TINY_IS_TENSOR (given[i])) {
      function_call_fail (self, "%s %u is no tensor", what, i);
      return NULL;
    }
    if (given[i]->error != NULL) {
      self->error = g_error_copy (given[i]->error);
      return NULL;
    }
    nodes[i] = tiny_tensor_get_node (given[i]);
    if (!function_call_check_like (self, what, i, nodes[i], get (self, i)))
      return NULL;
  }
  return g_steal_pointer (&nodes);
}

static TinyNode **
get_nodes (FunctionCall *self, guint n, TinyNode *(*get) (FunctionCall *self, guint i))
{
  TinyNode **nodes = g_new (TinyNode *, n + 1);
  for (guint i = 0; i < n; i++)
    nodes[i] = get (self, i);
  return nodes;
}

/* Zeros of any dtype for NULL. */
static TinyNode *
or_zeros (TinyNode *x, TinyNode *like)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  if (x == NULL)
    x = tiny_node_const_int (graph, (TinyDType) like->dtype, 0);
  return tiny_shape_equal (x->shape, like->shape)
             ? x
             : tiny_node_broadcast (graph, x, like->shape->v, like->shape->n);
}

/* Adds @nodes, over arguments, to @results; and what the function gave to *@out_outputs. */
static void
add_derivatives (FunctionCall *self,
                 GPtrArray *results,
                 TinyNode **nodes,
                 const GPtrArray *like,
                 GPtrArray **out_outputs)
{
  function_call_fill_in (self, nodes, like->len);
  for (guint i = 0; i < like->len; i++)
    function_call_add_result (self, results, nodes[i], like->pdata[i]);
  if (out_outputs == NULL)
    return;
  guint n = self->outputs->len;
  g_autofree TinyNode **outputs = get_nodes (self, n, function_call_get_output);
  function_call_fill_in (self, outputs, n);
  for (guint i = 0; i < n; i++)
    function_call_add_result (self, *out_outputs, outputs[i], self->outputs->pdata[i]);
}

/* Like function_call_end(), and the other list shares its fate. */
static GPtrArray *
end_derivative (FunctionCall *self, GPtrArray *results, GPtrArray **out_outputs)
{
  results = function_call_end (self, results);
  if (out_outputs == NULL || self->error == NULL)
    return results;
  g_ptr_array_set_size (*out_outputs, 0);
  g_ptr_array_add (*out_outputs, g_object_ref (results->pdata[0]));
  return results;
}

/* Directions may be floating. */
static GPtrArray *
own_directions (TinyTensor *const *tensors, guint n)
{
  GPtrArray *owned = tensor_list_new ();
  for (guint i = 0; tensors != NULL && i < n; i++)
    if (tensors[i] != NULL && TINY_IS_TENSOR (tensors[i]))
      g_ptr_array_add (owned, g_object_ref_sink (tensors[i]));
  return owned;
}

static void
jvp (FunctionCall *self,
     GPtrArray *results,
     TinyTensor *const *tangents,
     guint n_tangents,
     GPtrArray **out_outputs)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  guint n_inputs = self->inputs->len, n = self->outputs->len;
  g_autofree TinyNode **directions = read_directions (self, "tangent", tangents, n_tangents,
                                                      n_inputs, function_call_get_input);
  g_autofree TinyNode **variables = get_nodes (self, n_inputs, function_call_get_argument);
  g_autofree TinyNode **outputs = get_nodes (self, n, function_call_get_output);
  g_autofree TinyNode **found = g_new (TinyNode *, n + 1);
  if (directions == NULL
      || !tiny_tangents_of_nodes (graph, n, outputs, n_inputs, variables, directions, found,
                                  &self->error))
    return;
  for (guint i = 0; i < n; i++)
    found[i] = or_zeros (found[i], outputs[i]);
  add_derivatives (self, results, found, self->outputs, out_outputs);
}

GPtrArray *
tiny_jvp (TinyFunction function,
          gpointer user_data,
          TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor *const *tangents,
          guint n_tangents,
          GPtrArray **out_outputs)
{
  FunctionCall call;
  GPtrArray *results = tensor_list_new ();
  g_autoptr (GPtrArray) owned = own_directions (tangents, n_tangents);
  if (out_outputs != NULL)
    *out_outputs = tensor_list_new ();
  if (begin_derivative (&call, "jvp", function, user_data, inputs, n_inputs))
    jvp (&call, results, tangents, n_tangents, out_outputs);
  return end_derivative (&call, results, out_outputs);
}

/* 1 for the one result there is. */
static TinyNode **
make_weight (FunctionCall *self)
{
  TinyNode **weights = g_new0 (TinyNode *, 2);
  TinyNode *output = self->outputs->len == 1 ? function_call_get_output (self, 0) : NULL;
  if (output != NULL && tiny_dtype_is_float (output->dtype)
      && tiny_shape_get_n_elements (output->shape) == 1) {
    weights[0]
        = tiny_node_const_float (tiny_runtime_get_graph (), (TinyDType) output->dtype, 1);
    return weights;
  }
  function_call_fail (self, "the function does not give one float");
  g_free (weights);
  return NULL;
}

static void
vjp (FunctionCall *self,
     GPtrArray *results,
     TinyTensor *const *cotangents,
     guint n_cotangents,
     GPtrArray **out_outputs)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  guint n_inputs = self->inputs->len, n = self->outputs->len;
  g_autofree TinyNode **weights
      = n_cotangents == 0 ? make_weight (self)
                          : read_directions (self, "cotangent", cotangents, n_cotangents, n,
                                             function_call_get_output);
  g_autofree TinyNode **variables = get_nodes (self, n_inputs, function_call_get_argument);
  g_autofree TinyNode **outputs = get_nodes (self, n, function_call_get_output);
  g_autofree TinyNode **found = g_new (TinyNode *, n_inputs + 1);
  for (guint i = 0; weights != NULL && i < n; i++)
    if (!function_call_check_float (self, "result", i, outputs[i]))
      return;
  if (weights == NULL
      || !tiny_gradients_of_nodes (graph, n, outputs, weights, n_inputs, variables, found,
                                   &self->error))
    return;
  for (guint i = 0; i < n_inputs; i++)
    found[i] = or_zeros (found[i], variables[i]);
  add_derivatives (self, results, found, self->inputs, out_outputs);
}

GPtrArray *
tiny_vjp (TinyFunction function,
          gpointer user_data,
          TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor *const *cotangents,
          guint n_cotangents,
          GPtrArray **out_outputs)
{
  FunctionCall call;
  GPtrArray *results = tensor_list_new ();
  g_autoptr (GPtrArray) owned = own_directions (cotangents, n_cotangents);
  if (out_outputs != NULL)
    *out_outputs = tensor_list_new ();
  if (begin_derivative (&call, "vjp", function, user_data, inputs, n_inputs))
    vjp (&call, results, cotangents, n_cotangents, out_outputs);
  return end_derivative (&call, results, out_outputs);
}

/* ---- all directions ---- */
/* The directions of @like: element i of the first axis is 1 at place i of the rest, else 0. */
static TinyNode *
make_basis (TinyGraph *graph, const TinyNode *like)
{
  gint64 n = tiny_shape_get_n_elements (like->shape), dims[MAX_RANK + 1] = { n };
  TinyNode *count
      = tiny_node_new (graph, TINY_OP_IOTA, n > G_MAXINT32 ? TINY_DTYPE_I64 : TINY_DTYPE_I32, 1,
                       0, NULL, 0, tiny_graph_ints (graph, &n, 1), NULL);
  TinyNode *rows = tiny_node_reshape (graph, count, (gint64[]){ n, 1 }, 2);
  TinyNode *columns = tiny_node_reshape (graph, count, (gint64[]){ 1, n }, 2);
  TinyNode *is_one = tiny_layout_binary (
      graph, TINY_OP_CMPEQ, tiny_node_expand (graph, rows, (gint64[]){ n, n }, 2),
      tiny_node_expand (graph, columns, (gint64[]){ n, n }, 2));
  for (guint i = 0; i < like->shape->n; i++)
    dims[i + 1] = like->shape->v[i];
  return tiny_node_reshape (graph, tiny_layout_cast (graph, is_one, (TinyDType) like->dtype),
                            dims, like->shape->n + 1);
}

static gboolean
check_size (FunctionCall *self, const TinyNode *y, const TinyNode *x)
{
  if (y->shape->n + x->shape->n <= MAX_RANK)
    return TRUE;
  return function_call_fail (self, "a derivative of %u axes by %u has more than %d axes",
                             y->shape->n, x->shape->n, MAX_RANK);
}

/* @derivative, made for @direction, for all directions of @like: their axes come first. */
static TinyNode *
over_basis (FunctionCall *self, TinyNode *derivative, TinyNode *direction, const TinyNode *like)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *basis = make_basis (graph, like), *result;
  gint64 n = basis->shape->v[0];
  if (!tiny_batch_nodes (graph, n, 1, &derivative, 1, &direction, &basis, &result,
                         &self->error))
    return NULL;
  return result != NULL ? result : tiny_batch_repeat (graph, derivative, n);
}

/* The sizes of @y followed by those of @x; returns how many. */
static guint
join_shapes (const TinyNode *y, const TinyNode *x, gint64 *out)
{
  guint n = 0;
  for (guint i = 0; i < y->shape->n; i++)
    out[n++] = y->shape->v[i];
  for (guint i = 0; i < x->shape->n; i++)
    out[n++] = x->shape->v[i];
  return n;
}

static TinyNode *
shape_derivative (TinyGraph *graph, TinyNode *derivative, const TinyNode *y, const TinyNode *x)
{
  gint64 dims[2 * MAX_RANK];
  guint n = join_shapes (y, x, dims);
  return tiny_node_reshape (graph, derivative, dims, n);
}

/* dy/dx, column by column. */
static TinyNode *
derive_forward (FunctionCall *self, TinyNode *y, TinyNode *x)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *direction = function_call_make_placeholder (x), *tangent;
  if (!tiny_tangents_of_nodes (graph, 1, &y, 1, &x, &direction, &tangent, &self->error))
    return NULL;
  TinyNode *columns = over_basis (self, or_zeros (tangent, y), direction, x);
  if (columns == NULL)
    return NULL;
  return shape_derivative (graph, tiny_batch_move_axis (graph, columns, 0, y->shape->n), y, x);
}

/* dy/dx, row by row. */
static TinyNode *
derive_in_reverse (FunctionCall *self, TinyNode *y, TinyNode *x)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *direction = function_call_make_placeholder (y), *gradient;
  if (!tiny_gradients_of_nodes (graph, 1, &y, &direction, 1, &x, &gradient, &self->error))
    return NULL;
  TinyNode *rows = over_basis (self, or_zeros (gradient, x), direction, y);
  return rows == NULL ? NULL : shape_derivative (graph, rows, y, x);
}

static TinyNode *
derive (FunctionCall *self, TinyNode *y, TinyNode *x, gboolean forward)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *nothing = tiny_node_const_int (graph, (TinyDType) y->dtype, 0);
  gint64 n_y = tiny_shape_get_n_elements (y->shape), n_x = tiny_shape_get_n_elements (x->shape);
  if (n_y == 0 || n_x == 0) {
    gint64 dims[2 * MAX_RANK];
    guint n = join_shapes (y, x, dims);
    return tiny_node_broadcast (graph, nothing, dims, n);
  }
  return forward ? derive_forward (self, y, x) : derive_in_reverse (self, y, x);
}

/* Adds @derivative, over arguments, to @results. */
static gboolean
add_derivative (FunctionCall *self, GPtrArray *results, TinyNode *derivative, TinyTensor *like)
{
  if (derivative == NULL)
    return FALSE;
  function_call_fill_in (self, &derivative, 1);
  function_call_add_result (self, results, derivative, like);
  return TRUE;
}

static gboolean
add_jacobian (FunctionCall *self, GPtrArray *results, guint i, guint j)
{
  TinyNode *y = function_call_get_output (self, i), *x = function_call_get_argument (self, j);
  if (!function_call_check_float (self, "result", i, y) || !check_size (self, y, x))
    return FALSE;
  gboolean forward
      = tiny_shape_get_n_elements (x->shape) < tiny_shape_get_n_elements (y->shape);
  return add_derivative (self, results, derive (self, y, x, forward), self->outputs->pdata[i]);
}

GPtrArray *
tiny_jacobian (TinyFunction function,
               gpointer user_data,
               TinyTensor *const *inputs,
               guint n_inputs)
{
  FunctionCall call;
  GPtrArray *results = tensor_list_new ();
  gboolean good = begin_derivative (&call, "jacobian", function, user_data, inputs, n_inputs);
  for (guint i = 0; good && i < call.outputs->len; i++)
    for (guint j = 0; good && j < n_inputs; j++)
      good = add_jacobian (&call, results, i, j);
  return function_call_end (&call, results);
}

static void
add_hessian (FunctionCall *self, GPtrArray *results)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  guint n = self->inputs->len;
  g_autofree TinyNode **weight = make_weight (self);
  if (weight == NULL)
    return;
  TinyNode *y = function_call_get_output (self, 0);
  g_autofree TinyNode **variables = get_nodes (self, n, function_call_get_argument);
  g_autofree TinyNode **gradients = g_new (TinyNode *, n + 1);
  gboolean good
      = tiny_gradients_of_nodes (graph, 1, &y, weight, n, variables, gradients, &self->error);
  for (guint i = 0; good && i < n; i++) {
    TinyNode *gradient = or_zeros (gradients[i], variables[i]);
    for (guint j = 0; good && j < n; j++)
      good = check_size (self, gradient, variables[j])
             && add_derivative (self, results, derive (self, gradient, variables[j], TRUE),
                                self->inputs->pdata[i]);
  }
}

GPtrArray *
tiny_hessian (TinyFunction function,
              gpointer user_data,
              TinyTensor *const *inputs,
              guint n_inputs)
{
  FunctionCall call;
  GPtrArray *results = tensor_list_new ();
  if (begin_derivative (&call, "hessian", function, user_data, inputs, n_inputs))
    add_hessian (&call, results);
  return function_call_end (&call, results);
}
