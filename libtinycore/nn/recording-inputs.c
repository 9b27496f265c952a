/* SPDX-License-Identifier: MIT
 *
 * recording-inputs.c: inputs before they are a recording's: in memory, and of the kind that was recorded. */
#include <string.h>

#include "engine/runtime-private.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "nn/recording.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

gboolean
recording_is_variable (TinyTensor *tensor)
{
  const TinyNode *node = TINY_IS_TENSOR (tensor) ? tiny_tensor_get_node (tensor) : NULL;
  return node != NULL && node->op == TINY_OP_VARIABLE;
}

gboolean
recording_realize_inputs (TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++) {
    if (recording_is_variable (inputs[i]))
      continue;
    if (!tiny_tensor_realize (inputs[i], error)) {
      g_prefix_error (error, "jit: input %u: ", i);
      return FALSE;
    }
    if (tiny_tensor_get_node (inputs[i])->limits != NULL) {
      g_set_error (
          error, TINY_ERROR, TINY_ERROR_INVALID,
          "jit: input %u has a size that is a variable: pass all of the tensor, and the "
          "variable",
          i);
      return FALSE;
    }
  }
  return TRUE;
}

/* Writing to a view writes to memory that was there before. */
static gboolean
realize_bases (TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (TINY_IS_TENSOR (inputs[i]) && inputs[i]->base != NULL
        && !tiny_tensor_realize (tiny_view_get_base (inputs[i]), error))
      return FALSE;
  return TRUE;
}

/* Values that were assigned before are not the recording's to compute, nor are gradients that wait; those that are
 * assigned meanwhile are. */
gboolean
recording_prepare (TinyTensor *const *inputs, guint n, GError **error)
{
  return realize_bases (inputs, n, error) && recording_realize_inputs (inputs, n, error)
         && tiny_runtime_realize_assignments (error);
}

static char *
describe (TinyTensor *tensor)
{
  GString *text = g_string_new ("(");
  for (guint i = 0; i < tensor->n_dims; i++)
    g_string_append_printf (text, i > 0 ? ", %" G_GINT64_FORMAT : "%" G_GINT64_FORMAT,
                            tensor->shape[i]);
  g_string_append_printf (text, "%s of %s on %s", tensor->n_dims == 1 ? ",)" : ")",
                          tiny_dtype_to_string (tensor->dtype),
                          tensor->device != NULL ? tensor->device : "any device");
  const TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (tensor));
  if (memory->op == TINY_OP_UNSHARD && memory->arg != TINY_SHARD_WHOLE)
    g_string_append_printf (text, " cut along axis %" G_GINT64_FORMAT, memory->arg);
  return g_string_free (text, FALSE);
}

/* Whether the pieces are the same on each device. */
static gboolean
is_cut_alike (TinyTensor *a, TinyTensor *b)
{
  TinyNode *of_a = tiny_runtime_get_memory (tiny_tensor_get_node (a));
  TinyNode *of_b = tiny_runtime_get_memory (tiny_tensor_get_node (b));
  guint n = tiny_runtime_count_pieces (of_a);
  gboolean is_one = of_a->op != TINY_OP_UNSHARD && of_b->op != TINY_OP_UNSHARD;
  gboolean alike = of_a->op == of_b->op && n == tiny_runtime_count_pieces (of_b);
  for (guint i = 0; alike && !is_one && i < n; i++)
    alike = of_a->arg == of_b->arg
            && tiny_shape_equal (of_a->sources[i]->shape, of_b->sources[i]->shape);
  return alike || is_one;
}

/* Variables that are one but for the value. */
static gboolean
is_same_variable (TinyTensor *a, TinyTensor *b)
{
  if (!recording_is_variable (a) || !recording_is_variable (b))
    return recording_is_variable (a) == recording_is_variable (b);
  const TinyBoundVariable of_a = tiny_runtime_get_variable (tiny_tensor_get_node (a));
  const TinyBoundVariable of_b = tiny_runtime_get_variable (tiny_tensor_get_node (b));
  return tiny_bound_variable_is_same (&of_a, &of_b);
}

gboolean
recording_check_kind (guint i, TinyTensor *before, TinyTensor *now, GError **why)
{
  if (now->dtype == before->dtype && now->device == before->device
      && now->n_dims == before->n_dims && is_cut_alike (before, now)
      && memcmp (now->shape, before->shape, now->n_dims * sizeof *now->shape) == 0
      && is_same_variable (before, now))
    return TRUE;
  if (why == NULL)
    return FALSE;
  g_autofree char *was = describe (before), *is = describe (now);
  g_set_error (why, TINY_ERROR, TINY_ERROR_INVALID,
               "jit: there is no recording for this: input %u was recorded as %s and is now %s",
               i, was, is);
  return FALSE;
}
