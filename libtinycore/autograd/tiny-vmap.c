/* SPDX-License-Identifier: MIT
 *
 * tiny-vmap.c: a function for a whole batch at once.
 *
 * What it draws at random depends on a placeholder for the number of the element, which is not among its arguments:
 * batched, that is 0 1 … */
#include "autograd/batch-rules.h"
#include "autograd/function-call.h"
#include "autograd/tiny-transforms.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_RANK = 16 };

typedef struct {
  FunctionCall call;
  gint64 size; /* of the batch; -1: not known yet */
  guint first; /* the input that it is known from */
  TinyRandomBatch random;
} Vmap;

static gboolean
find_axis (Vmap *self, const char *what, guint i, gint axis, guint rank, guint *out)
{
  *out = 0;
  if (axis < -(gint) rank || axis >= (gint) rank)
    return function_call_fail (&self->call, "%s %u of %u axes has no axis %d", what, i, rank,
                               axis);
  *out = (guint) (axis < 0 ? axis + (gint) rank : axis);
  return TRUE;
}

static gint
get_axis (const gint *axes, guint n, guint i)
{
  return n == 0 ? 0 : axes[i];
}

static gboolean
add_argument (Vmap *self, guint i, gint axis)
{
  TinyNode *node = function_call_get_input (&self->call, i);
  gint64 dims[MAX_RANK];
  guint at, n = 0;
  if (axis == TINY_NO_AXIS) {
    function_call_pass_input (&self->call);
    return TRUE;
  }
  if (!find_axis (self, "input", i, axis, node->shape->n, &at))
    return FALSE;
  gint64 size = node->shape->v[at];
  if (self->size < 0)
    self->first = i;
  else if (size != self->size)
    return function_call_fail (&self->call,
                               "input %u has a batch of %" G_GINT64_FORMAT
                               ", input %u one of %" G_GINT64_FORMAT,
                               self->first, self->size, i, size);
  self->size = size;
  for (guint k = 0; k < node->shape->n; k++)
    if (k != at)
      dims[n++] = node->shape->v[k];
  function_call_add_placeholder (&self->call, dims, n);
  return TRUE;
}

static gboolean
add_arguments (Vmap *self, const gint *in_axes, guint n_in_axes)
{
  guint n = self->call.inputs->len;
  if (n_in_axes != 0 && (n_in_axes != n || in_axes == NULL))
    return function_call_fail (&self->call, "%u axes are given for %u inputs", n_in_axes, n);
  for (guint i = 0; i < n; i++)
    if (!add_argument (self, i, get_axis (in_axes, n_in_axes, i)))
      return FALSE;
  return self->size >= 0
         || function_call_fail (&self->call, "no input has an axis that is the batch's");
}

static gboolean
add_batched (Vmap *self, GPtrArray *results, guint i, TinyNode *batched, gint axis)
{
  TinyNode *output = function_call_get_output (&self->call, i);
  guint rank = output->shape->n + 1, at;
  if (axis == TINY_NO_AXIS) {
    if (batched != NULL)
      return function_call_fail (&self->call,
                                 "result %u has no axis for the batch, and depends on it", i);
    function_call_add_result (&self->call, results, output, self->call.outputs->pdata[i]);
    return TRUE;
  }
  if (!find_axis (self, "batched result", i, axis, rank, &at))
    return FALSE;
  if (batched == NULL)
    batched = tiny_batch_repeat (tiny_runtime_get_graph (), output, self->size);
  batched = tiny_batch_move_axis (tiny_runtime_get_graph (), batched, 0, at);
  function_call_add_result (&self->call, results, batched, self->call.outputs->pdata[i]);
  return TRUE;
}

/* 0 1 … */
static TinyNode *
count_up (TinyGraph *graph, gint64 n)
{
  if (n > 0)
    return tiny_node_new (graph, TINY_OP_IOTA, TINY_DTYPE_U32, 1, 0, NULL, 0,
                          tiny_graph_ints (graph, &n, 1), NULL);
  return tiny_node_broadcast (graph, tiny_node_const_int (graph, TINY_DTYPE_U32, 0), &n, 1);
}

static gboolean
add_results (Vmap *self,
             GPtrArray *results,
             const gint *in_axes,
             guint n_in_axes,
             const gint *out_axes,
             guint n_out_axes)
{
  FunctionCall *call = &self->call;
  TinyGraph *graph = tiny_runtime_get_graph ();
  guint n_inputs = call->inputs->len, n = call->outputs->len, n_mapped = 0;
  g_autofree TinyNode **from = g_new (TinyNode *, n_inputs + 2);
  g_autofree TinyNode **to = g_new (TinyNode *, n_inputs + 2);
  g_autofree TinyNode **nodes = g_new (TinyNode *, n + 1);
  g_autofree TinyNode **batched = g_new (TinyNode *, n + 1);
  if (n_out_axes != 0 && (n_out_axes != n || out_axes == NULL))
    return function_call_fail (call, "%u axes are given for %u results", n_out_axes, n);
  for (guint i = 0; i < n_inputs; i++) {
    TinyNode *input = function_call_get_input (call, i);
    gint axis = get_axis (in_axes, n_in_axes, i);
    if (axis == TINY_NO_AXIS)
      continue;
    from[n_mapped] = function_call_get_argument (call, i);
    to[n_mapped++] = tiny_batch_move_axis (
        graph, input, (guint) (axis < 0 ? axis + (gint) input->shape->n : axis), 0);
  }
  from[n_mapped] = tiny_tensor_get_node (self->random.index);
  to[n_mapped++] = count_up (graph, self->size);
  for (guint i = 0; i < n; i++)
    nodes[i] = function_call_get_output (call, i);
  if (!tiny_batch_nodes (graph, self->size, n, nodes, n_mapped, from, to, batched,
                         &call->error)) {
    g_prefix_error (&call->error, "%s: ", call->name);
    return FALSE;
  }
  for (guint i = 0; i < n; i++)
    if (!add_batched (self, results, i, batched[i], get_axis (out_axes, n_out_axes, i)))
      return FALSE;
  return TRUE;
}

static gboolean
set_randomness (Vmap *self, const char *word)
{
  static const char *const words[] = { "error", "different", "same" };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (word == NULL || g_str_equal (word, words[i])) {
      self->random.randomness = (TinyRandomness) i;
      return TRUE;
    }
  return function_call_fail (&self->call,
                             "the randomness “%s” is none of error, different, same", word);
}

/* The function draws as one of a batch. */
static gboolean
run_one (Vmap *self, TinyFunction function, gpointer user_data)
{
  self->random.size = self->size;
  self->random.index = function_call_add_hidden (&self->call, TINY_DTYPE_U32);
  tiny_random_enter_batch (&self->random);
  gboolean good = function_call_run (&self->call, function, user_data);
  tiny_random_leave_batch (&self->random);
  return good;
}

GPtrArray *
tiny_vmap_with_randomness (TinyFunction function,
                           gpointer user_data,
                           TinyTensor *const *inputs,
                           guint n_inputs,
                           const gint *in_axes,
                           guint n_in_axes,
                           const gint *out_axes,
                           guint n_out_axes,
                           const char *randomness)
{
  Vmap self = { .size = -1 };
  GPtrArray *results = tensor_list_new ();
  if (function_call_begin (&self.call, "vmap", function, inputs, n_inputs)
      && set_randomness (&self, randomness) && add_arguments (&self, in_axes, n_in_axes)
      && run_one (&self, function, user_data))
    add_results (&self, results, in_axes, n_in_axes, out_axes, n_out_axes);
  results = function_call_end (&self.call, results);
  g_clear_object (&self.random.index);
  return results;
}

GPtrArray *
tiny_vmap (TinyFunction function,
           gpointer user_data,
           TinyTensor *const *inputs,
           guint n_inputs,
           const gint *in_axes,
           guint n_in_axes,
           const gint *out_axes,
           guint n_out_axes)
{
  return tiny_vmap_with_randomness (function, user_data, inputs, n_inputs, in_axes, n_in_axes,
                                    out_axes, n_out_axes, NULL);
}
