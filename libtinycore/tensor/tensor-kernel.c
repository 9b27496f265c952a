/* SPDX-License-Identifier: MIT
 *
 * tensor-kernel.c: KERNEL nodes. The text is checked here against the inputs; the scheduler parses
 * it again, into its own graph. */
#include "tensor/tiny-tensor-kernel.h"

#include "ir/tiny-shape.h"
#include "schedule/kernel-text.h"
#include "tensor/tiny-build.h"

static gboolean
check_inputs (TinyBuild *self, const KernelText *kernel)
{
  for (guint i = 0; i < self->n; i++) {
    const TinyNode *input = self->x[i], *param = kernel->params[kernel->n_outputs + i];
    if (input->dtype == param->dtype
        && tiny_shape_get_n_elements (input->shape) == tiny_shape_get_n_elements (param->shape))
      continue;
    g_autofree char *has = tiny_shape_to_string (input->shape);
    g_autofree char *wanted = tiny_shape_to_string (param->shape);
    tiny_build_fail (self, "input %u is %s of %s, param %u of the kernel %s of %s", i, has,
                     tiny_dtype_to_string ((TinyDType) input->dtype), kernel->n_outputs + i,
                     wanted, tiny_dtype_to_string ((TinyDType) param->dtype));
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_kernel (TinyBuild *self, const char *code, TinyGraph *graph, KernelText *out)
{
  if (code == NULL)
    return tiny_build_fail (self, "there is no text") != NULL;
  if (kernel_text_parse (out, graph, code, self->n, &self->error))
    return out->is_operation ? tiny_build_fail (self, "the text is no kernel") != NULL
                             : check_inputs (self, out);
  g_prefix_error (&self->error, "%s: ", self->name);
  return FALSE;
}

/* Output @i of a call that begins anew, as each result ends a frame of its own. */
static TinyTensor *
make_output (const char *code,
             TinyTensor *const *inputs,
             guint n_inputs,
             const KernelText *kernel,
             guint i)
{
  TinyBuild b;
  TinyNode *node = NULL;
  const TinyNode *param = kernel->params[i];
  if (tiny_build_begin (&b, "custom_kernel", n_inputs, inputs))
    node = tiny_node_new (b.graph, TINY_OP_KERNEL, (TinyDType) param->dtype, 1, n_inputs, b.x,
                          i, param->shape, code);
  return g_object_ref_sink (tiny_build_end (&b, node));
}

GPtrArray *
tiny_custom_kernel (const char *code, TinyTensor *const *inputs, guint n_inputs)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GPtrArray) owned = g_ptr_array_new_with_free_func (g_object_unref);
  GPtrArray *results = g_ptr_array_new_with_free_func (g_object_unref);
  KernelText kernel;
  TinyBuild b;
  for (guint i = 0; inputs != NULL && i < n_inputs; i++)
    if (inputs[i] != NULL && TINY_IS_TENSOR (inputs[i]))
      g_ptr_array_add (owned, g_object_ref_sink (inputs[i]));
  gboolean good = tiny_build_begin (&b, "custom_kernel", n_inputs, inputs)
                  && read_kernel (&b, code, graph, &kernel);
  g_autoptr (TinyTensor) failed = g_object_ref_sink (tiny_build_end (&b, NULL));
  if (!good)
    g_ptr_array_add (results, g_steal_pointer (&failed));
  for (guint i = 0; good && i < kernel.n_outputs; i++)
    g_ptr_array_add (results, make_output (code, inputs, n_inputs, &kernel, i));
  return results;
}
