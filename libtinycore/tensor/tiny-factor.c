/* SPDX-License-Identifier: MIT
 *
 * tiny-factor.c: KERNELs of linear algebra: asking the device, and laying matrices by columns as libraries want them. */
#include "tensor/tiny-factor.h"

#include "engine/tiny-claims.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/operations-private.h"
#include "schedule/factor.h"
#include "tensor/tiny-matrix.h"

enum { MAX_OUTPUTS = 3, MAX_INPUTS = 2 };

/* ---- which is faster ---- */

/* Kernels of a step of our own methods, which walk over the columns, and how often they walk. */
static const struct {
  guint n_kernels, n_rounds;
} steps[] = {
  [TINY_OPERATION_CHOLESKY] = { 2, 1 },   [TINY_OPERATION_LU] = { 4, 1 },
  [TINY_OPERATION_TRIANGULAR] = { 2, 1 }, [TINY_OPERATION_QR] = { 4, 1 },
  [TINY_OPERATION_SVD] = { 2, 8 },        [TINY_OPERATION_EIGH] = { 2, 8 },
};
enum { LAUNCH_NS = 3000, ELEMENTS_PER_NS = 2 };

static double
estimate_own_ns (const TinyOperation *operation)
{
  const gint64 *extents = operation->extents;
  double n = (double) extents[TINY_FACTOR_BATCH] * (double) extents[TINY_FACTOR_ROW];
  n *= (double) extents[TINY_FACTOR_COLUMN]
       + (operation->kind == TINY_OPERATION_TRIANGULAR ? (double) extents[TINY_FACTOR_RIGHT]
                                                       : 0);
  double each = steps[operation->kind].n_kernels * (LAUNCH_NS + n / ELEMENTS_PER_NS);
  return each * (double) extents[TINY_FACTOR_VALUE] * steps[operation->kind].n_rounds;
}

/* A value that is nowhere yet may come to any device, and one on several is taken apart. A device that runs nothing makes
 * code for others, which need not have what is here. */
static gboolean
is_taken (TinyBuild *self, const TinyOperation *operation)
{
  if (self->device == NULL || tiny_devices_count (self->device) != 1)
    return FALSE;
  TinyDevice *device = tiny_engine_get_device (self->device, NULL);
  return device != NULL
         && (tiny_device_get_info (device)->flags & TINY_DEVICE_RUNS_NOTHING) == 0
         && tiny_claims_decide (device, operation, estimate_own_ns (operation), NULL);
}

/* ---- nodes ---- */
static TinyNode *
make_output (TinyBuild *self,
             const TinyOperation *operation,
             const char *text,
             TinyNode *const *inputs,
             guint i)
{
  gint64 dims[FACTOR_MAX_RANK];
  guint rank = factor_get_shape (operation, i, dims);
  guint n_inputs = operation->n_operands - factor_count_outputs (operation);
  TinyNode *node
      = tiny_node_new (self->graph, TINY_OP_KERNEL, (TinyDType) operation->operands[i].dtype, 1,
                       n_inputs, inputs, i, tiny_graph_ints (self->graph, dims, rank), text);
  return rank == FACTOR_MAX_RANK ? tiny_matrix_transposed (self, node) : node;
}

static gint64
get_rule (const TinyOperation *operation)
{
  return tiny_factor_get_rule (operation->kind, operation->flags);
}

gboolean
tiny_factor_compute (TinyBuild *self,
                     guint kind,
                     guint flags,
                     TinyNode *const *inputs,
                     const TinyFactorSizes *sizes,
                     TinyNode **out)
{
  const gint64 *v = inputs[0]->shape->v;
  gint64 extents[FACTOR_N_EXTENTS] = { v[TINY_BATCH], v[TINY_ROW], v[TINY_COLUMN], 1, 1, 1 };
  TinyOperation operation;
  TinyNode *given[MAX_INPUTS];
  if (sizes != NULL && sizes->left > 0)
    extents[TINY_FACTOR_LEFT] = sizes->left;
  if (sizes != NULL && sizes->right > 0)
    extents[TINY_FACTOR_RIGHT] = sizes->right;
  if (kind == TINY_OPERATION_TRIANGULAR)
    extents[TINY_FACTOR_RIGHT] = inputs[1]->shape->v[TINY_COLUMN];
  if (!factor_init (&operation, kind, flags, (TinyDType) inputs[0]->dtype, extents)
      || !is_taken (self, &operation))
    return FALSE;
  g_autofree char *text = factor_to_text (&operation);
  guint n_outputs = factor_count_outputs (&operation);
  guint n_inputs = operation.n_operands - n_outputs;
  for (guint i = 0; i < n_inputs; i++)
    given[i] = tiny_build_store (self, tiny_matrix_transposed (self, inputs[i]));
  if (self->error != NULL)
    return FALSE;
  for (guint i = 0; i < n_outputs; i++)
    out[i] = make_output (self, &operation, text, given, i);
  if (kind == TINY_OPERATION_LU)
    tiny_factor_set_rule (self, get_rule (&operation), 1, out, 2,
                          (TinyNode *[]){ inputs[0], out[2] });
  else
    tiny_factor_set_rule (self, get_rule (&operation), n_outputs, out, n_inputs, inputs);
  return self->error == NULL;
}

TinyNode *
tiny_factor_mirror (TinyBuild *self, TinyNode *a, gboolean upper)
{
  TinyNode *one = upper ? op_triu (self, a, 0) : op_tril (self, a, 0);
  TinyNode *other = upper ? op_triu (self, a, 1) : op_tril (self, a, -1);
  TinyNode *both = tiny_build_add (self, one, tiny_matrix_transposed (self, other));
  tiny_factor_set_rule (self, TINY_RULE_MIRROR, 1, &both, 1, &a);
  return both;
}

void
tiny_factor_set_rule (TinyBuild *self,
                      gint64 rule,
                      guint n_outputs,
                      TinyNode **outputs,
                      guint n_inputs,
                      TinyNode *const *inputs)
{
  TinyNode *sources[MAX_OUTPUTS + MAX_INPUTS];
  for (guint i = 0; i < n_outputs; i++)
    sources[i] = outputs[i];
  for (guint i = 0; i < n_inputs; i++)
    sources[n_outputs + i] = inputs[i];
  for (guint i = 0; i < n_outputs + n_inputs; i++)
    if (sources[i] == NULL)
      return;
  for (guint i = 0; i < n_outputs; i++)
    outputs[i] = tiny_node_new (
        self->graph, TINY_OP_GRADIENT, (TinyDType) sources[i]->dtype, 1, n_outputs + n_inputs,
        sources, rule, tiny_graph_ints (self->graph, (gint64[]){ i, n_outputs, 0 }, 3), NULL);
}
