/* SPDX-License-Identifier: MIT
 *
 * evaluate.c: the tensor-stage and the kernel-stage evaluator. Slow and plain on purpose. */
#include "evaluate.h"

#include <math.h>
#include <string.h>

#include "ir/tiny-shape.h"
#include "ir/tiny-verify.h"

enum { MAX_RANK = 32, MAX_RANGES = 64 };

Array *
array_new (TinyDType dtype, gint64 n)
{
  Array *self = g_new0 (Array, 1);
  self->dtype = dtype;
  self->n = n;
  self->v = g_new0 (Element, n + 1);
  return self;
}

void
array_free (Array *self)
{
  g_free (self->v);
  g_free (self);
}

static gint64
wrap (TinyDType dtype, gint64 x)
{
  guint bits = 8 * tiny_dtype_get_n_bytes (dtype);
  if (dtype == TINY_DTYPE_BOOL)
    return x != 0;
  if (dtype == TINY_DTYPE_INDEX || bits >= 64)
    return x;
  if (tiny_dtype_is_signed (dtype))
    return (gint64) ((guint64) x << (64 - bits)) >> (64 - bits);
  return x & (((gint64) 1 << bits) - 1);
}

static gint64
floor_div (gint64 x, gint64 y)
{
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static double
compute_float (TinyOp op, const Element *x)
{
  switch (op) {
  case TINY_OP_NEG:
    return -x[0].f;
  case TINY_OP_RECIP:
    return 1 / x[0].f;
  case TINY_OP_SQRT:
    return sqrt (x[0].f);
  case TINY_OP_EXP2:
    return exp2 (x[0].f);
  case TINY_OP_LOG2:
    return log2 (x[0].f);
  case TINY_OP_ADD:
    return x[0].f + x[1].f;
  case TINY_OP_SUB:
    return x[0].f - x[1].f;
  case TINY_OP_MUL:
    return x[0].f * x[1].f;
  case TINY_OP_MAX:
    return x[0].f > x[1].f ? x[0].f : x[1].f;
  case TINY_OP_FDIV:
    return x[0].f / x[1].f;
  case TINY_OP_SIN:
    return sin (x[0].f);
  case TINY_OP_TRUNC:
    return trunc (x[0].f);
  default:
    g_error ("no meaning for %s on floats", tiny_op_to_string (op));
  }
}

static gint64
compute_int (TinyOp op, const Element *x)
{
  switch (op) {
  case TINY_OP_NEG:
    return (gint64) (0 - (guint64) x[0].i);
  case TINY_OP_ADD:
    return (gint64) ((guint64) x[0].i + (guint64) x[1].i);
  case TINY_OP_SUB:
    return (gint64) ((guint64) x[0].i - (guint64) x[1].i);
  case TINY_OP_MUL:
    return (gint64) ((guint64) x[0].i * (guint64) x[1].i);
  case TINY_OP_MAX:
    return MAX (x[0].i, x[1].i);
  case TINY_OP_AND:
    return x[0].i & x[1].i;
  case TINY_OP_OR:
    return x[0].i | x[1].i;
  case TINY_OP_XOR:
    return x[0].i ^ x[1].i;
  case TINY_OP_FLOORDIV:
    return floor_div (x[0].i, x[1].i);
  case TINY_OP_FLOORMOD:
    return x[0].i - x[1].i * floor_div (x[0].i, x[1].i);
  default:
    g_error ("no meaning for %s on integers", tiny_op_to_string (op));
  }
}

/* One elementwise op of @dtype over sources of @from. */
static Element
compute (TinyOp op, TinyDType dtype, TinyDType from, const Element *x)
{
  gboolean floats = tiny_dtype_is_float (from);
  Element y = { 0 };
  switch (op) {
  case TINY_OP_WHERE:
    return x[0].i ? x[1] : x[2];
  case TINY_OP_CMPLT:
    y.i = floats ? x[0].f < x[1].f : x[0].i < x[1].i;
    return y;
  case TINY_OP_CMPNE:
    y.i = floats ? x[0].f != x[1].f : x[0].i != x[1].i;
    return y;
  case TINY_OP_CMPEQ:
    y.i = floats ? x[0].f == x[1].f : x[0].i == x[1].i;
    return y;
  case TINY_OP_CAST:
    if (tiny_dtype_is_float (dtype))
      y.f = floats ? x[0].f : (double) x[0].i;
    else if (dtype == TINY_DTYPE_BOOL)
      y.i = floats ? x[0].f != 0 : x[0].i != 0;
    else
      y.i = wrap (dtype, floats ? (gint64) x[0].f : x[0].i);
    return y;
  case TINY_OP_MULACC:
    y.f = x[0].f * x[1].f + x[2].f;
    return y;
  default:
    if (tiny_dtype_is_float (dtype))
      y.f = compute_float (op, x);
    else if (dtype == TINY_DTYPE_BOOL && op == TINY_OP_ADD)
      y.i = x[0].i | x[1].i;
    else
      y.i = wrap (dtype, compute_int (op, x));
    return y;
  }
}

static Element
get_const (const TinyNode *node)
{
  Element y = { 0 };
  if (tiny_dtype_is_float (node->dtype))
    y.f = tiny_node_get_float (node);
  else
    y.i = node->arg;
  return y;
}

static Element
get_identity (TinyOp op, TinyDType dtype)
{
  Element y = { 0 };
  gboolean floats = tiny_dtype_is_float (dtype);
  if (op == TINY_OP_MUL && floats)
    y.f = 1;
  else if (op == TINY_OP_MUL)
    y.i = 1;
  else if (op == TINY_OP_MAX && floats)
    y.f = -INFINITY;
  else if (op == TINY_OP_MAX)
    y.i = tiny_dtype_get_min (dtype);
  return y;
}

/* ---- tensor stage ---- */
static void
unflatten (const TinyInts *shape, gint64 flat, gint64 *index)
{
  for (guint i = shape->n; i-- > 0;) {
    index[i] = flat % shape->v[i];
    flat /= shape->v[i];
  }
}

static gint64
flatten (const TinyInts *shape, const gint64 *index)
{
  gint64 flat = 0;
  for (guint i = 0; i < shape->n; i++)
    flat = flat * shape->v[i] + index[i];
  return flat;
}

/* Where element @flat of a movement node is in its source; -1: nowhere, it is 0. */
static gint64
find_source (const TinyNode *node, gint64 flat)
{
  const TinyInts *from = node->sources[0]->shape, *ints = node->ints;
  gint64 index[MAX_RANK], at[MAX_RANK];
  if (node->op == TINY_OP_RESHAPE)
    return flat;
  unflatten (node->shape, flat, index);
  for (guint i = 0; i < from->n; i++) {
    at[i] = index[i];
    if (node->op == TINY_OP_EXPAND && from->v[i] == 1)
      at[i] = 0;
    if (node->op == TINY_OP_PAD)
      at[i] = index[i] - ints->v[2 * i];
    if (node->op == TINY_OP_SHRINK)
      at[i] = index[i] + ints->v[2 * i];
  }
  if (node->op == TINY_OP_PERMUTE)
    for (guint i = 0; i < from->n; i++)
      at[ints->v[i]] = index[i];
  if (node->op == TINY_OP_FLIP)
    for (guint i = 0; i < ints->n; i++)
      at[ints->v[i]] = from->v[ints->v[i]] - 1 - index[ints->v[i]];
  if (node->op == TINY_OP_SHEAR) {
    gint64 sum = index[ints->v[0]] * ints->v[2] + index[ints->v[1]] * ints->v[3] + ints->v[4];
    if (floor_div (sum, ints->v[5]) * ints->v[5] != sum)
      return -1;
    at[ints->v[0]] = floor_div (sum, ints->v[5]);
  }
  for (guint i = 0; i < from->n; i++)
    if (at[i] < 0 || at[i] >= from->v[i])
      return -1;
  return flatten (from, at);
}

static void
evaluate_gather (const TinyNode *node, Array *const *sources, Array *out)
{
  const TinyInts *from = node->sources[0]->shape;
  for (gint64 k = 0; k < out->n; k++) {
    gint64 index[MAX_RANK], position = sources[1]->v[k].i;
    unflatten (node->shape, k, index);
    index[node->arg] = position;
    if (position >= 0 && position < from->v[node->arg])
      out->v[k] = sources[0]->v[flatten (from, index)];
  }
}

static Array *
evaluate_node (const TinyNode *node, GPtrArray *values, GPtrArray *inputs)
{
  Array *out = array_new (node->dtype, tiny_shape_get_n_elements (node->shape));
  Array *sources[4] = { NULL };
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = values->pdata[node->sources[i]->id];
  if (tiny_op_is_elementwise (node->op)) {
    for (gint64 k = 0; k < out->n; k++) {
      Element x[4];
      for (guint i = 0; i < node->n_sources; i++)
        x[i] = sources[i]->v[sources[i]->n == 1 ? 0 : k];
      out->v[k] = compute (node->op, node->dtype, node->sources[0]->dtype, x);
    }
  } else if (tiny_op_is_movement (node->op)) {
    for (gint64 k = 0; k < out->n; k++) {
      gint64 at = find_source (node, k);
      if (at >= 0)
        out->v[k] = sources[0]->v[at];
    }
  } else if (node->op == TINY_OP_REDUCE) {
    for (gint64 k = 0; k < out->n; k++)
      out->v[k] = get_identity (node->arg, node->dtype);
    for (gint64 k = 0; k < sources[0]->n; k++) {
      gint64 index[MAX_RANK];
      unflatten (node->sources[0]->shape, k, index);
      for (guint i = 0; i < node->ints->n; i++)
        index[node->ints->v[i]] = 0;
      Element *acc = &out->v[flatten (node->shape, index)];
      *acc = compute (node->arg, node->dtype, node->dtype,
                      (Element[]){ *acc, sources[0]->v[k] });
    }
  } else if (node->op == TINY_OP_GATHER) {
    evaluate_gather (node, sources, out);
  } else if (node->op == TINY_OP_CONST) {
    out->v[0] = get_const (node);
  } else if (node->op == TINY_OP_IOTA) {
    for (gint64 k = 0; k < out->n; k++)
      if (tiny_dtype_is_float (node->dtype))
        out->v[k].f = (double) k;
      else
        out->v[k].i = k;
  } else if (node->op == TINY_OP_PARAM) {
    memcpy (out->v, ((Array *) inputs->pdata[node->arg])->v, out->n * sizeof (Element));
  } else {
    memcpy (out->v, sources[node->op == TINY_OP_ASSIGN]->v, out->n * sizeof (Element));
  }
  return out;
}

GPtrArray *
evaluate_graph (TinyGraph *graph, TinyNode *sink, GPtrArray *inputs)
{
  g_autoptr (GPtrArray) values = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, sink->sources, sink->n_sources);
  GPtrArray *outputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_ptr_array_set_size (values, tiny_graph_get_n_nodes (graph));
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    values->pdata[node->id] = evaluate_node (node, values, inputs);
  }
  for (guint i = 0; i < sink->n_sources; i++) {
    Array *value = values->pdata[sink->sources[i]->id];
    Array *copy = array_new (value->dtype, value->n);
    memcpy (copy->v, value->v, value->n * sizeof (Element));
    g_ptr_array_add (outputs, copy);
  }
  for (guint i = 0; i < values->len; i++)
    if (values->pdata[i] == NULL)
      values->pdata[i] = array_new (TINY_DTYPE_BOOL, 0);
  return outputs;
}

/* ---- kernel stage ---- */
typedef struct {
  Array **buffers; /* by slot */
  guint n_buffers;
  gint64 ranges[MAX_RANGES];
  gboolean open[MAX_RANGES];
  TinyGraph *graph;
  TinyNode *kernel;
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
    return get_const (node);
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
    Element acc = get_identity (node->arg, node->dtype);
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
      acc = compute (node->arg, node->dtype, node->dtype, pair);
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
  return compute (node->op, node->dtype, node->sources[0]->dtype, x);
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
    if (b == target || o->kind != TINY_SCHEDULE_TEMPORARY || o->device != t->device
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
      gboolean found = FALSE;
      for (guint a = 0; a < schedule->n_arenas; a++)
        if (schedule->arenas[a].device == buffer->device) {
          found = TRUE;
          g_assert_cmpint (buffer->slot
                               + buffer->n_elements
                                     * (gint64) tiny_dtype_get_n_bytes (buffer->dtype),
                           <=, schedule->arenas[a].n_bytes);
        }
      g_assert_true (found || buffer->n_elements == 0);
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
    Run run = { .buffers = slots, .n_buffers = item->n_buffers };
    run_kernel (schedule->graph, &run, item);
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

gboolean
arrays_equal (const Array *a, const Array *b, char **out_difference)
{
  if (a->n != b->n || a->dtype != b->dtype) {
    *out_difference = g_strdup ("sizes or dtypes differ");
    return FALSE;
  }
  for (gint64 k = 0; k < a->n; k++) {
    gboolean same = a->v[k].i == b->v[k].i;
    if (tiny_dtype_is_float (a->dtype)) {
      double x = a->v[k].f, y = b->v[k].f;
      same = x == y || (isnan (x) && isnan (y)) || fabs (x - y) <= 1e-6 * fmax (fabs (x), 1);
    }
    if (!same) {
      *out_difference
          = tiny_dtype_is_float (a->dtype)
                ? g_strdup_printf ("element %d: %g, not %g", (int) k, b->v[k].f, a->v[k].f)
                : g_strdup_printf ("element %d: %d, not %d", (int) k, (int) b->v[k].i,
                                   (int) a->v[k].i);
      return FALSE;
    }
  }
  return TRUE;
}
