/* SPDX-License-Identifier: MIT
 *
 * custom.c: KERNEL nodes, which a program wrote, as items.
 *
 * The KERNELs of one call are its outputs; a text of factor.h is an operation that a unit of the device computes.
 * Their item is no KERNEL to the other passes: it writes and
 * reads where it likes, so that nothing can be joined to it or laid out for it. */
#include "base/tiny-error.h"
#include "schedule/kernel-text.h"
#include "schedule/plan.h"

/* An operation has no kernel to fall back on. */
static gboolean
check_operation (Plan *plan, TinyNode *node, const TinyOperation *operation, GError **error)
{
  const char *device = schedule_get_device (plan, node);
  const TinyScheduleOptions *options = &plan->options;
  device = device != NULL ? device : plan->only_device;
  if (options->claim != NULL && options->claim (device, operation, G_MAXDOUBLE, options->data))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
               "“%s” was made for a device that has a library for it, and device %s has none; "
               "with TINY_NO_CLAIM=1 kernels are made instead",
               node->text, device != NULL ? device : "default");
  return FALSE;
}

static gboolean
check_kernel (Plan *plan, TinyNode *node, GError **error)
{
  KernelText kernel;
  guint n = node->n_sources;
  if (!kernel_text_parse (&kernel, plan->graph, node->text, n, error)) {
    g_prefix_error_literal (error, "kernel: ");
    return FALSE;
  }
  for (guint i = 0; i < kernel.n_params; i++) {
    const TinyNode *param = kernel.params[i], *tensor = node;
    if (i >= kernel.n_outputs)
      tensor = node->sources[i - kernel.n_outputs];
    else if (node->arg != i)
      continue;
    if (tensor->dtype != param->dtype
        || tiny_shape_get_n_elements (tensor->shape)
               != tiny_shape_get_n_elements (param->shape)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "kernel: param %u is not like the tensor that is there for it", i);
      return FALSE;
    }
  }
  if (node->arg >= 0 && node->arg < kernel.n_outputs)
    return !kernel.is_operation || check_operation (plan, node, &kernel.operation, error);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "kernel: there is no output %" G_GINT64_FORMAT " of %u", node->arg,
               kernel.n_outputs);
  return FALSE;
}

gboolean
schedule_check_customs (Plan *plan, GError **error)
{
  GPtrArray *order = schedule_list_graph (plan);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_KERNEL && !check_kernel (plan, node, error))
      return FALSE;
  }
  return TRUE;
}

TinyNode *
schedule_clean_custom (Plan *plan, TinyNode *node, TinyNode *const *sources)
{
  g_autoptr (GPtrArray) stored = g_ptr_array_new ();
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *x = sources[i];
    while (x->op == TINY_OP_RESHAPE)
      x = x->sources[0];
    if (x->op != TINY_OP_PARAM && x->op != TINY_OP_KERNEL && x->op != TINY_OP_CONTIGUOUS)
      x = tiny_node_new (plan->graph, TINY_OP_CONTIGUOUS, (TinyDType) x->dtype, 1, 1, &x, 0,
                         NULL, NULL);
    g_ptr_array_add (stored, x);
  }
  return tiny_node_with_sources (plan->graph, node, (TinyNode *const *) stored->pdata);
}

static gboolean
is_same_call (const TinyNode *a, const TinyNode *b)
{
  gboolean same = b->op == TINY_OP_KERNEL && a->text == b->text && a->n_sources == b->n_sources;
  for (guint i = 0; same && i < a->n_sources; i++)
    same = a->sources[i] == b->sources[i];
  return same;
}

static guint
find_buffer (Plan *plan, TinyNode *source)
{
  const Stage *stage = tiny_node_map_get (&plan->stage_of, source);
  g_assert (stage != NULL || source->op == TINY_OP_PARAM);
  return stage != NULL ? stage->buffer : (guint) source->arg;
}

/* TRUE: a store at @index, a sum of counters, meets each of @n elements: what one counter leaves out, the next larger
 * one makes up for. */
static gboolean
meets_all (const Affine *index, gint64 n)
{
  gint64 reached = 1;
  if (index == NULL || index->offset != 0 || !affine_counts_only (index))
    return FALSE;
  for (guint found = 0; found < index->n; found++) {
    const AffineTerm *next = NULL;
    for (guint i = 0; i < index->n && next == NULL; i++)
      if (index->terms[i].mul == reached)
        next = &index->terms[i];
    if (next == NULL || next->atom->sources[0]->op != TINY_OP_CONST
        || __builtin_mul_overflow (reached, tiny_range_get_extent (next->atom), &reached))
      return FALSE;
  }
  return reached >= n;
}

/* FALSE: a loop that it is in is empty. */
static gboolean
happens (Plan *plan, TinyNode *store)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (plan->graph, store, &n);
  for (guint i = 0; i < n; i++)
    if (tiny_range_get_extent (ranges[i]) == 0)
      return FALSE;
  return TRUE;
}

gboolean
schedule_lower_zeros (Plan *plan, const PlanItem *custom, guint output, PlanItem *out_item)
{
  TinyGraph *graph = plan->graph;
  for (guint i = 0; i < custom->kernel->n_sources; i++) {
    TinyNode *store = custom->kernel->sources[i], *param = store->sources[0];
    const gint64 n = tiny_shape_get_n_elements (param->shape);
    if ((guint) param->arg != output
        || (store->n_sources == 3 && happens (plan, store)
            && meets_all (affine_read (&plan->affines, store->sources[1]), n)))
      continue;
    TinyNode *to = tiny_node_new (graph, TINY_OP_PARAM, (TinyDType) param->dtype, 1, 0, NULL, 0,
                                  param->ints, NULL);
    TinyNode *zero = tiny_node_const_int (graph, (TinyDType) param->dtype, 0);
    TinyNode *range = tiny_node_range_const (graph, 0, TINY_RANGE_LOOP, n);
    TinyNode *sources[] = { to, range, zero };
    TinyNode *fill
        = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL, NULL);
    *out_item = *custom;
    out_item->kernel = tiny_node_sink (graph, 1, &fill, "zeros");
    out_item->n_buffers = out_item->n_written = 1;
    out_item->buffers = &custom->buffers[output];
    return TRUE;
  }
  return FALSE;
}

gboolean
schedule_lower_custom (Plan *plan, Stage *stage, PlanItem *out_item)
{
  TinyNode *node = stage->node;
  KernelText kernel;
  g_autofree guint *buffers = NULL;
  for (guint i = 0; i < plan->stages->len; i++) {
    Stage *other = plan->stages->pdata[i];
    if (is_same_call (node, other->node)) {
      if (other != stage)
        return FALSE; /* the first of them makes all */
      break;
    }
  }
  if (!kernel_text_parse (&kernel, plan->graph, node->text, node->n_sources, NULL))
    g_assert_not_reached (); /* schedule_check_customs() did */
  buffers = g_new (guint, kernel.n_params);
  for (guint i = 0; i < kernel.n_outputs; i++)
    buffers[i] = SCHEDULE_NO_BUFFER;
  for (guint i = 0; i < plan->stages->len; i++) {
    const Stage *other = plan->stages->pdata[i];
    if (is_same_call (node, other->node))
      buffers[other->node->arg] = other->buffer;
  }
  for (guint i = 0; i < kernel.n_outputs; i++)
    if (buffers[i] == SCHEDULE_NO_BUFFER)
      buffers[i] = schedule_add_buffer (
          plan, TINY_SCHEDULE_TEMPORARY, (TinyDType) kernel.params[i]->dtype,
          tiny_shape_get_n_elements (kernel.params[i]->shape), stage->device, 0);
  for (guint i = 0; i < node->n_sources; i++)
    buffers[kernel.n_outputs + i] = find_buffer (plan, node->sources[i]);
  *out_item = (PlanItem){
    .kind = SCHEDULE_CUSTOM,
    .kernel = kernel.sink,
    .operation = kernel.is_operation
                     ? tiny_arena_copy (plan->arena, &kernel.operation, sizeof kernel.operation)
                     : NULL,
    .device = stage->device,
    .n_buffers = kernel.n_params,
    .n_written = kernel.n_outputs,
    .buffers = tiny_arena_copy (plan->arena, buffers, kernel.n_params * sizeof (guint)),
    .stage = stage
  };
  return TRUE;
}
