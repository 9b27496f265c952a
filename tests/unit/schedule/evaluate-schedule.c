/* SPDX-License-Identifier: MIT
 *
 * What a schedule's kernels mean: their expressions, walked for every value of their loops. */
#include "evaluate.h"

#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-verify.h"

enum { MAX_RANGES = 64 };

typedef struct {
  Array **buffers; /* by slot */
  guint n_buffers;
  gint64 ranges[MAX_RANGES];
  gboolean open[MAX_RANGES];
  TinyGraph *graph;
  TinyNode *kernel;
  const gint64 *numbers; /* of its variables */
} Run;

static Element evaluate (Run *run, TinyNode *node);

/* What the kernel put at @at of memory of its own in this round of the loops around that. */
static Element
evaluate_local (const Run *outside, TinyNode *local, gint64 at)
{
  Run run = *outside;
  TinyNode *store = NULL;
  guint n;
  for (guint i = 0; i < run.kernel->n_sources; i++)
    if (run.kernel->sources[i]->sources[0] == local)
      store = run.kernel->sources[i];
  g_assert_nonnull (store);
  g_assert_cmpint (at, >=, 0);
  g_assert_cmpint (at, <, local->ints->v[0]);
  memset (run.open, 0, sizeof run.open);
  TinyNode *const *ranges = tiny_node_get_ranges (run.graph, store, &n);
  gint64 steps = 1;
  for (guint i = 0; i < n; i++) {
    run.open[tiny_range_get_number (ranges[i])] = TRUE;
    if (tiny_node_depends_on (run.graph, local, ranges[i]))
      g_assert_true (outside->open[tiny_range_get_number (ranges[i])]);
    else
      steps *= tiny_range_get_extent (ranges[i]);
  }
  for (gint64 k = 0; k < steps; k++) {
    gint64 rest = k;
    for (guint i = 0; i < n; i++) {
      gint64 extent = tiny_range_get_extent (ranges[i]);
      if (tiny_node_depends_on (run.graph, local, ranges[i]))
        continue;
      run.ranges[tiny_range_get_number (ranges[i])] = rest % extent;
      rest /= extent;
    }
    if (evaluate (&run, store->sources[1]).i == at)
      return evaluate (&run, store->sources[2]);
  }
  g_assert_not_reached ();
}

static Element
evaluate (Run *run, TinyNode *node)
{
  Element x[4] = { { 0 } };
  if (node->op == TINY_OP_CONST)
    return element_get_const (node);
  if (node->op == TINY_OP_VARIABLE)
    return (Element){ .i = run->numbers[node->arg] };
  if (node->op == TINY_OP_RANGE) {
    guint number = tiny_range_get_number (node);
    g_assert_cmpuint (number, <, MAX_RANGES);
    g_assert_true (run->open[number]);
    x[0].i = run->ranges[number];
    g_assert_cmpint (x[0].i, <, tiny_range_get_extent (node));
    return x[0];
  }
  if (node->op == TINY_OP_LOAD) {
    if (node->n_sources > 2 && !evaluate (run, node->sources[2]).i)
      return evaluate (run, node->sources[3]);
    gint64 at = evaluate (run, node->sources[1]).i;
    if (node->sources[0]->op == TINY_OP_LOCAL)
      return evaluate_local (run, node->sources[0], at);
    g_assert_cmpint (node->sources[0]->arg, <, run->n_buffers);
    Array *buffer = run->buffers[node->sources[0]->arg];
    g_assert_cmpint (buffer->dtype, ==, node->dtype);
    g_assert_cmpint (node->sources[0]->ints->v[0], ==, buffer->n);
    g_assert_cmpint (at, >=, 0);
    g_assert_cmpint (at, <, buffer->n);
    return buffer->v[at];
  }
  if (node->op == TINY_OP_REDUCE) {
    Element acc = element_get_identity (node->arg, node->dtype);
    gint64 n = 1;
    for (guint i = 1; i < node->n_sources; i++) {
      n *= tiny_range_get_extent (node->sources[i]);
      /* A loop inside itself would lose the outer one's count. */
      g_assert_false (run->open[tiny_range_get_number (node->sources[i])]);
      run->open[tiny_range_get_number (node->sources[i])] = TRUE;
    }
    for (gint64 k = 0; k < n; k++) {
      gint64 rest = k;
      for (guint i = node->n_sources - 1; i > 0; i--) {
        gint64 extent = tiny_range_get_extent (node->sources[i]);
        run->ranges[tiny_range_get_number (node->sources[i])] = rest % extent;
        rest /= extent;
      }
      Element pair[2] = { acc, evaluate (run, node->sources[0]) };
      acc = element_compute (node->arg, node->dtype, node->dtype, pair);
    }
    for (guint i = 1; i < node->n_sources; i++)
      run->open[tiny_range_get_number (node->sources[i])] = FALSE;
    return acc;
  }
  g_assert_true (tiny_op_is_elementwise (node->op));
  if (node->op == TINY_OP_WHERE) /* what is not chosen may be out of bounds */
    return evaluate (run, node->sources[evaluate (run, node->sources[0]).i ? 1 : 2]);
  for (guint i = 0; i < node->n_sources; i++)
    x[i] = evaluate (run, node->sources[i]);
  return element_compute (node->op, node->dtype, node->sources[0]->dtype, x);
}

/* Writes to @to, so that other stores of the kernel read what was there before. */
static void
run_store (TinyGraph *graph, Run *run, TinyNode *store, Array *to)
{
  guint n_ranges;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, store, &n_ranges);
  Array *buffer = run->buffers[store->sources[0]->arg];
  g_autofree gboolean *written = g_new0 (gboolean, buffer->n + 1);
  gint64 n = 1, n_written = 0;
  for (guint i = 0; i < n_ranges; i++) {
    n *= tiny_range_get_extent (ranges[i]);
    g_assert_cmpint (tiny_range_get_kind (ranges[i]), ==, TINY_RANGE_LOOP);
    run->open[tiny_range_get_number (ranges[i])] = TRUE;
  }
  g_assert_cmpint (store->sources[0]->ints->v[0], ==, buffer->n);
  g_assert_cmpint (store->sources[0]->dtype, ==, buffer->dtype);
  for (gint64 k = 0; k < n; k++) {
    gint64 rest = k;
    for (guint i = 0; i < n_ranges; i++) {
      gint64 extent = tiny_range_get_extent (ranges[i]);
      run->ranges[tiny_range_get_number (ranges[i])] = rest % extent;
      rest /= extent;
    }
    Element value = evaluate (run, store->sources[2]);
    gint64 at = evaluate (run, store->sources[1]).i;
    g_assert_cmpint (at, >=, 0);
    g_assert_cmpint (at, <, buffer->n);
    g_assert_false (written[at]);
    written[at] = TRUE;
    n_written++;
    to->v[at] = value;
  }
  g_assert_cmpint (n_written, ==, buffer->n);
  for (guint i = 0; i < n_ranges; i++)
    run->open[tiny_range_get_number (ranges[i])] = FALSE;
}

static void
run_kernel (TinyGraph *graph, Run *run, const TinyScheduleItem *item)
{
  Array *written[64] = { NULL };
  run->graph = graph;
  run->kernel = item->kernel;
  for (guint i = 0; i < item->kernel->n_sources; i++) {
    TinyNode *store = item->kernel->sources[i];
    gint64 slot = store->sources[0]->arg;
    if (store->sources[0]->op == TINY_OP_LOCAL)
      continue; /* computed where it is read */
    g_assert_cmpint (slot, <, item->n_written);
    g_assert_null (written[slot]);
    written[slot] = array_new (run->buffers[slot]->dtype, run->buffers[slot]->n);
    run_store (graph, run, store, written[slot]);
  }
  for (guint i = 0; i < item->n_written; i++) {
    memcpy (run->buffers[i]->v, written[i]->v, written[i]->n * sizeof (Element));
    array_free (written[i]);
  }
}

/* A kernel reads memory that it writes only at the element that it writes next. */
static void
verify_reads (TinySchedule *schedule, const TinyScheduleItem *item)
{
  TinyNode *kernel = item->kernel;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (schedule->graph, &kernel, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *load = order->pdata[i];
    if (load->op != TINY_OP_LOAD || load->sources[0]->op == TINY_OP_LOCAL)
      continue;
    for (guint s = 0; s < kernel->n_sources; s++)
      if (kernel->sources[s]->sources[0] == load->sources[0])
        g_assert_true (kernel->sources[s]->sources[1] == load->sources[1]);
  }
}

/* Fills the temporaries that lie over @target with rubbish, as its writing would. */
static void
spoil_overlaps (TinySchedule *schedule, Array **arrays, guint target)
{
  const TinyScheduleBuffer *t = &schedule->buffers[target];
  if (t->kind != TINY_SCHEDULE_TEMPORARY)
    return;
  gint64 t_end = t->slot + t->n_elements * (gint64) tiny_dtype_get_n_bytes (t->dtype);
  for (guint b = 0; b < schedule->n_buffers; b++) {
    const TinyScheduleBuffer *o = &schedule->buffers[b];
    gint64 o_end = o->slot + o->n_elements * (gint64) tiny_dtype_get_n_bytes (o->dtype);
    if (b == target || o->kind != TINY_SCHEDULE_TEMPORARY || o->arena != t->arena
        || o->slot >= t_end || o_end <= t->slot)
      continue;
    for (gint64 k = 0; k < arrays[b]->n; k++)
      if (tiny_dtype_is_float (o->dtype))
        arrays[b]->v[k].f = 1e30;
      else
        arrays[b]->v[k].i = 77;
  }
}

void
verify_schedule (TinySchedule *schedule)
{
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    g_autoptr (GError) error = NULL;
    g_assert_nonnull (item->device);
    g_assert_cmpuint (item->n_buffers, <=, 32);
    if (item->kind == TINY_SCHEDULE_COPY)
      continue;
    tiny_graph_verify (schedule->graph, item->kernel, TINY_STAGE_KERNEL, &error);
    g_assert_no_error (error);
    verify_reads (schedule, item);
  }
}

/* What an operation gives is what the kernel gives that it stands for; with activations, as exp() is
 * computed one way or the other. */
static void
check_claimed (const TinyOperation *operation, Array *found, const Array *kernel)
{
  g_autofree char *difference = NULL;
  g_assert_cmpint (found->dtype, ==, kernel->dtype);
  g_assert_cmpint (found->n, ==, kernel->n);
  for (gint64 k = 0; k < found->n && tiny_dtype_is_float (found->dtype); k++)
    if (fabs (found->v[k].f - kernel->v[k].f) <= 1e-6 * MAX (1, fabs (kernel->v[k].f)))
      found->v[k].f = kernel->v[k].f;
  if (!arrays_equal (kernel, found, &difference))
    CASE_FAILS ("operation of kind %u differs from its kernel: %s", operation->kind,
                difference);
  array_free (found);
}

GPtrArray *
evaluate_schedule (TinySchedule *schedule, GPtrArray *inputs)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_autofree Array **arrays = g_new0 (Array *, schedule->n_buffers + 1);
  verify_schedule (schedule);
  for (guint b = 0; b < schedule->n_buffers; b++) {
    const TinyScheduleBuffer *buffer = &schedule->buffers[b];
    arrays[b] = array_new (buffer->dtype, buffer->n_elements);
    if (buffer->kind == TINY_SCHEDULE_INPUT && buffer->dtype != TINY_DTYPE_VOID)
      memcpy (arrays[b]->v, ((Array *) inputs->pdata[buffer->slot])->v,
              buffer->n_elements * sizeof (Element));
    else
      for (gint64 k = 0; k < buffer->n_elements; k++)
        arrays[b]->v[k].i = 123456;
    if (buffer->kind == TINY_SCHEDULE_TEMPORARY) {
      const gint64 n_bytes
          = buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype);
      g_assert_true (n_bytes == 0
                     || (buffer->arena < schedule->n_arenas
                         && schedule->arenas[buffer->arena].device == buffer->device
                         && buffer->slot + n_bytes <= schedule->arenas[buffer->arena].n_bytes));
    }
  }
  for (guint i = 0; i < schedule->n_items; i++) {
    const TinyScheduleItem *item = &schedule->items[i];
    Array *slots[64];
    g_assert_cmpuint (item->n_buffers, <=, 32);
    for (guint j = 0; j < item->n_buffers; j++)
      slots[j] = arrays[item->buffers[j]];
    for (guint j = 0; j < item->n_written; j++)
      spoil_overlaps (schedule, arrays, item->buffers[j]);
    if (item->kind == TINY_SCHEDULE_COPY) {
      g_assert_cmpint (slots[0]->n, ==, slots[1]->n);
      memcpy (slots[0]->v, slots[1]->v, slots[0]->n * sizeof (Element));
      continue;
    }
    Array *claimed = item->operation ? evaluate_operation (item->operation, slots) : NULL;
    Run run = { .buffers = slots, .n_buffers = item->n_buffers, .numbers = item->numbers };
    run_kernel (schedule->graph, &run, item);
    if (claimed != NULL)
      check_claimed (item->operation, claimed, slots[0]);
  }
  for (guint r = 0; r < schedule->n_outputs; r++) {
    Array *value = arrays[schedule->outputs[r]];
    Array *copy = array_new (value->dtype, value->n);
    memcpy (copy->v, value->v, value->n * sizeof (Element));
    g_ptr_array_add (outputs, copy);
  }
  for (guint b = 0; b < schedule->n_buffers; b++)
    array_free (arrays[b]);
  return outputs;
}
