/* SPDX-License-Identifier: MIT
 *
 * estimate.c: how much a kernel computes and touches, and which parameters it has.
 *
 * Read off the kernel as it came: a value is computed once for each combination of the ranges it
 * depends on, a REDUCE combines once for each combination of its value's. Index arithmetic does
 * not count. A buffer counts once, for at most its size. */
#include "codegen/codegen-private.h"

static gint64
count_combinations (TinyGraph *graph, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, node, &n);
  gint64 count = 1;
  for (guint i = 0; i < n; i++)
    count *= MAX (tiny_range_get_extent (ranges[i]), 1);
  return count;
}

static gint64
count_flops (TinyGraph *graph, TinyNode *node)
{
  if (node->op == TINY_OP_REDUCE)
    return count_combinations (graph, node->sources[0]);
  if (!tiny_op_is_elementwise (node->op) || node->dtype == TINY_DTYPE_INDEX
      || node->dtype == TINY_DTYPE_BOOL || node->op == TINY_OP_CAST
      || node->op == TINY_OP_BITCAST)
    return 0;
  return count_combinations (graph, node) * (node->op == TINY_OP_MULACC ? 2 : 1);
}

static void
add_access (TinyCodegen *cg, gint64 *touched, TinyNode *node)
{
  TinyParam *params = (TinyParam *) cg->program->linear.params;
  TinyNode *param = node->sources[0];
  if (param->op != TINY_OP_PARAM)
    return;
  params[param->arg].flags |= node->op == TINY_OP_LOAD ? TINY_PARAM_READ : TINY_PARAM_WRITE;
  touched[param->arg] += count_combinations (cg->graph, node);
}

void
tiny_codegen_list_params (TinyCodegen *cg)
{
  TinyParam *params = (TinyParam *) cg->program->linear.params;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  /* One that is not used any more is of what every target has. */
  for (guint i = 0; i < cg->program->linear.n_params; i++) {
    params[i].dtype = TINY_DTYPE_U32;
    params[i].n_elements = 0;
  }
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_PARAM)
      continue;
    params[node->arg].dtype = node->dtype;
    params[node->arg].n_elements = node->ints && node->ints->n > 0 ? node->ints->v[0] : 1;
  }
}

void
tiny_codegen_estimate (TinyCodegen *cg)
{
  TinyLinear *linear = &cg->program->linear;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM)
      linear->n_params = MAX (linear->n_params, (guint32) node->arg + 1);
    else if (node->op == TINY_OP_VARIABLE)
      linear->n_variables = MAX (linear->n_variables, (guint32) node->arg + 1);
  }
  TinyParam *params = g_new0 (TinyParam, linear->n_params);
  g_autofree gint64 *touched = g_new0 (gint64, linear->n_params);
  gint64 flops[TINY_N_DTYPES] = { 0 };
  linear->params = params;
  tiny_codegen_list_params (cg);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    flops[node->dtype] += count_flops (cg->graph, node);
    if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
      add_access (cg, touched, node);
  }
  for (guint i = 0; i < TINY_N_DTYPES; i++) {
    cg->program->n_flops += flops[i];
    if (flops[i] > flops[cg->program->dtype])
      cg->program->dtype = (TinyDType) i;
  }
  for (guint i = 0; i < linear->n_params; i++)
    cg->program->n_bytes += MIN (touched[i], (gint64) params[i].n_elements)
                            * (gint64) tiny_dtype_get_n_bytes (params[i].dtype);
}
