/* SPDX-License-Identifier: MIT
 *
 * copy-kernel.c: the kernel that copies a buffer, where a stage's result is wanted twice. */
#include "schedule/plan.h"

PlanItem
schedule_copy_kernel (Plan *plan, guint target, guint source)
{
  TinyGraph *graph = plan->graph;
  const TinyScheduleBuffer *info = schedule_get_buffer (plan, target);
  const TinyInts *shape = tiny_graph_ints (graph, &info->n_elements, 1);
  TinyNode *index = info->n_elements == 1
                        ? tiny_node_const_index (graph, 0)
                        : tiny_node_range_const (graph, 0, TINY_RANGE_LOOP, info->n_elements);
  TinyNode *params[2];
  for (guint i = 0; i < 2; i++)
    params[i] = tiny_node_new (graph, TINY_OP_PARAM, info->dtype, 1, 0, NULL, i, shape, NULL);
  TinyNode *sources[] = { params[1], index };
  TinyNode *value
      = tiny_node_new (graph, TINY_OP_LOAD, info->dtype, 1, 2, sources, 0, NULL, NULL);
  TinyNode *store = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3,
                                   (TinyNode *[]){ params[0], index, value }, 0, NULL, NULL);
  guint buffers[] = { target, source };
  return (PlanItem){ .kind = TINY_SCHEDULE_KERNEL,
                     .kernel = tiny_node_sink (graph, 1, &store, NULL),
                     .device = info->device,
                     .n_buffers = 2,
                     .n_written = 1,
                     .buffers = tiny_arena_copy (plan->arena, buffers, sizeof buffers) };
}
