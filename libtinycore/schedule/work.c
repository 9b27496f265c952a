/* SPDX-License-Identifier: MIT
 *
 * work.c: what a kernel would take to run.
 *
 * Operations count once for each step of the loops that they depend on. Those along a loop through
 * neighbouring elements are done a vector at a time; a value has lanes along one loop only, so
 * where two such loops meet in a value the one with less to do goes without. */
#include "schedule/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/tiny-stats.h"
#include "schedule/weights.h"

enum { MAX_LOOPS = 64 };

typedef struct {
  TinyNode *range;
  double gain;         /* operations that lanes along it would save */
  gboolean contiguous; /* some access goes along it */
  gboolean has_lanes;
} Loop;

typedef struct {
  Plan *plan;
  double lanes;
  const GPtrArray *order;
  double *operations; /* that each node of @order takes in all */
  guint n_loops;
  Loop loops[MAX_LOOPS];
  KernelWork work;
} Measure;

static Loop *
find_loop (Measure *self, TinyNode *range)
{
  for (guint i = 0; i < self->n_loops; i++)
    if (self->loops[i].range == range)
      return &self->loops[i];
  if (self->n_loops == MAX_LOOPS)
    return NULL;
  self->loops[self->n_loops] = (Loop){ range };
  return &self->loops[self->n_loops++];
}

static double
count_steps (Plan *plan, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (plan->graph, node, &n);
  double steps = 1;
  for (guint i = 0; i < n; i++)
    steps *= (double) tiny_range_get_extent (ranges[i]);
  return steps;
}

/* Simple operations that @node takes in all, without what is below it. */
static double
get_operations (Measure *self, TinyNode *node)
{
  if (node->op == TINY_OP_REDUCE)
    return count_steps (self->plan, node->sources[0]);
  if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
    return count_steps (self->plan, node) * schedule_weights.access;
  if (!tiny_op_is_elementwise (node->op) || node->dtype == TINY_DTYPE_INDEX)
    return 0;
  return count_steps (self->plan, node) * schedule_get_op_cost (node->op);
}

/* The node whose loops say how often @node is computed. */
static TinyNode *
get_inside (TinyNode *node)
{
  return node->op == TINY_OP_REDUCE ? node->sources[0] : node;
}

static gboolean
is_access (const TinyNode *node)
{
  return node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE;
}

/* By how much the address of @access moves with @range; 2 where that is not the same every time. */
static gint64
get_stride (Measure *self, TinyNode *access, TinyNode *range)
{
  const Affine *sum = affine_read (&self->plan->affines, access->sources[1]);
  if (sum == NULL)
    return tiny_node_depends_on (self->plan->graph, access->sources[1], range) ? 2 : 0;
  for (guint i = 0; i < sum->n; i++)
    if (sum->terms[i].atom != range
        && tiny_node_depends_on (self->plan->graph, sum->terms[i].atom, range))
      return 2;
  return affine_get_mul (sum, range);
}

/* ---- lanes ---- */
/* True if @node, with lanes along @range, is or waits for as many accesses as there are lanes. @stride is its own with
 * @range where it is an access, else 0. */
static gboolean
gathers (Measure *self, TinyNode *node, TinyNode *range, gint64 stride)
{
  guint n = is_access (node) ? 0 : node->n_sources;
  for (guint i = 0; i < n && (stride == 0 || stride == 1); i++)
    if (node->sources[i]->op == TINY_OP_LOAD)
      stride = get_stride (self, node->sources[i], range);
  return stride != 0 && stride != 1;
}

static void
weigh_loops (Measure *self)
{
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    guint n;
    const double operations = self->operations[i];
    TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, get_inside (node), &n);
    for (guint r = 0; r < n && operations > 0; r++) {
      Loop *loop = find_loop (self, ranges[r]);
      if (loop == NULL)
        continue;
      gint64 stride = is_access (node) ? get_stride (self, node, ranges[r]) : 0;
      loop->contiguous = loop->contiguous || stride == 1;
      loop->gain += gathers (self, node, ranges[r], stride) ? -operations : operations;
    }
  }
}

static gboolean
meet (Measure *self, TinyNode *a, TinyNode *b)
{
  TinyGraph *graph = self->plan->graph;
  for (guint i = 0; i + 1 < self->order->len; i++) { /* stores have lanes each for itself */
    TinyNode *node = get_inside (self->order->pdata[i]);
    if (tiny_node_depends_on (graph, node, a) && tiny_node_depends_on (graph, node, b))
      return TRUE;
  }
  return FALSE;
}

static int
compare_gains (gconstpointer a, gconstpointer b)
{
  const Loop *x = a, *y = b;
  if (x->gain != y->gain)
    return x->gain > y->gain ? -1 : 1;
  return x->range->id < y->range->id ? -1 : x->range->id > y->range->id;
}

static void
choose_lanes (Measure *self)
{
  weigh_loops (self);
  qsort (self->loops, self->n_loops, sizeof *self->loops, compare_gains);
  for (guint i = 0; i < self->n_loops; i++) {
    Loop *loop = &self->loops[i];
    loop->has_lanes = loop->contiguous && loop->gain > 0;
    for (guint j = 0; j < i && loop->has_lanes; j++)
      loop->has_lanes
          = !self->loops[j].has_lanes || !meet (self, self->loops[j].range, loop->range);
  }
}

/* How many times an operation of @node is done for a vector of them. */
static double
count_scalars (Measure *self, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, get_inside (node), &n);
  for (guint r = 0; r < n; r++) {
    Loop *loop = find_loop (self, ranges[r]);
    if (loop == NULL || !loop->has_lanes)
      continue;
    gint64 stride = is_access (node) ? get_stride (self, node, ranges[r]) : 0;
    return stride < 0 || stride > 1 ? self->lanes : 1;
  }
  return self->lanes;
}

/* ---- steps, bytes ---- */
guint
schedule_list_loops (Plan *plan, TinyNode *store, TinyNode **out)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (plan->graph, store, &n);
  for (guint i = 0; i < n; i++) {
    guint j = i;
    for (; j > 0 && tiny_range_get_number (out[j - 1]) > tiny_range_get_number (ranges[i]); j--)
      out[j] = out[j - 1];
    out[j] = ranges[i];
  }
  return n;
}

/* Whether a thread that has only some steps of @range can leave the others' work alone. */
static gboolean
can_share (Measure *self, TinyNode *kernel, TinyNode *range)
{
  enum { REPEATED_SHARE = 64 };
  for (guint i = 0; i < kernel->n_sources; i++)
    if (!tiny_node_depends_on (self->plan->graph, kernel->sources[i], range))
      return FALSE;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (node->op == TINY_OP_REDUCE && !tiny_node_depends_on (self->plan->graph, node, range)
        && self->operations[i] * REPEATED_SHARE > self->work.operations)
      return FALSE;
  }
  return TRUE;
}

static void
measure_steps (Measure *self, TinyNode *kernel)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, kernel->sources[0], &n);
  self->work.n_steps = 1;
  for (guint i = 0; i < n; i++)
    if (can_share (self, kernel, ranges[i]))
      self->work.n_steps *= (double) tiny_range_get_extent (ranges[i]);
  self->work.n_loops = n;
  self->work.is_even = TRUE;
  for (guint i = 1; i < kernel->n_sources; i++) {
    guint n_other;
    TinyNode *const *other
        = tiny_node_get_ranges (self->plan->graph, kernel->sources[i], &n_other);
    self->work.n_loops = MAX (self->work.n_loops, n_other);
    self->work.is_even
        = self->work.is_even && n_other == n && memcmp (other, ranges, n * sizeof *ranges) == 0;
  }
}

/* One look at each node: a PARAM comes before what goes to its memory. */
static void
measure_bytes (Measure *self)
{
  typedef struct {
    const TinyNode *node;
    double steps; /* of all that go there */
  } Param;
  g_autofree Param *params = g_new (Param, self->order->len + 1);
  guint n = 0;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    TINY_COUNT (n_looks, 1);
    if (node->op == TINY_OP_PARAM)
      params[n++] = (Param){ node, 0 };
    for (guint k = 0; k < n && is_access (node); k++)
      if (params[k].node == node->sources[0])
        params[k].steps += count_steps (self->plan, node);
  }
  for (guint k = 0; k < n; k++)
    self->work.n_bytes += MIN (params[k].steps, (double) params[k].node->ints->v[0])
                          * tiny_dtype_get_n_bytes (params[k].node->dtype);
}

/* ---- contractions ---- */
/* Whether @reduce combines loads of which each is the same for steps in which another is not. */
static gboolean
is_contraction (Measure *self, TinyNode *reduce)
{
  TinyGraph *graph = self->plan->graph;
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, reduce, &n);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, reduce->sources, 1);
  g_autoptr (GArray) masks = g_array_new (FALSE, FALSE, sizeof (guint64)); /* of each load */
  for (guint i = 0; i < order->len; i++) {
    TinyNode *load = order->pdata[i];
    gboolean inside = FALSE;
    for (guint s = 1; s < reduce->n_sources && load->op == TINY_OP_LOAD; s++)
      inside = inside || tiny_node_depends_on (graph, load, reduce->sources[s]);
    if (!inside)
      continue;
    guint64 mask = 0;
    for (guint r = 0; r < MIN (n, 64); r++)
      if (tiny_node_depends_on (graph, load, ranges[r]))
        mask |= G_GUINT64_CONSTANT (1) << r;
    for (guint j = 0; j < masks->len; j++) {
      guint64 other = g_array_index (masks, guint64, j);
      if ((mask & ~other) != 0 && (other & ~mask) != 0)
        return TRUE;
    }
    g_array_append_val (masks, mask);
  }
  return FALSE;
}

static KernelWork
measure (Plan *plan, TinyNode *kernel, const char *device)
{
  const ScheduleMachine machine = schedule_get_machine (plan, device);
  Measure self = { .plan = plan, .lanes = machine.lanes, .work.workers = machine.workers };
  const GPtrArray *order = self.order = schedule_list_nodes (plan, kernel);
  g_autofree double *all = self.operations = g_new (double, order->len + 1);
  self.work.n_nodes = order->len;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    all[i] = get_operations (&self, node);
    self.work.length += node->dtype == TINY_DTYPE_INDEX ? 0 : tiny_op_count_steps (node->op);
  }
  choose_lanes (&self);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    const double operations = all[i];
    if (operations == 0)
      continue;
    double scalars = count_scalars (&self, node);
    self.work.operations += operations * scalars;
    self.work.n_scalar += operations * (scalars - 1);
    if (node->op == TINY_OP_REDUCE && node->n_sources > 1
        && operations >= (double) schedule_weights.pack_min_work
        && is_contraction (&self, node))
      self.work.contracts = TRUE;
  }
  measure_steps (&self, kernel);
  measure_bytes (&self);
  return self.work;
}

/* A kernel on the device on which it was measured first. */
typedef struct {
  const char *device;
  KernelWork work;
} Measured;

KernelWork
schedule_measure_kernel (Plan *plan, const PlanItem *item)
{
  Measured *known = tiny_node_map_get (&plan->works, item->kernel);
  if (known != NULL && known->device == item->device)
    return known->work;
  const Measured now = { item->device, measure (plan, item->kernel, item->device) };
  if (known == NULL)
    tiny_node_map_set (&plan->works, item->kernel,
                       tiny_arena_copy (plan->arena, &now, sizeof now));
  return now.work;
}

double
schedule_get_time (const KernelWork *work)
{
  double workers = CLAMP (work->n_steps, 1, work->workers);
  return schedule_weights.launch
         + (work->operations + work->n_bytes * schedule_weights.byte) / workers;
}

gboolean
schedule_is_worth_merging (const KernelWork *a, const KernelWork *b, const KernelWork *both)
{
  if (both->n_nodes > schedule_weights.max_nodes || both->length > schedule_weights.max_length)
    return FALSE;
  /* Tiles of a contraction are made for its own loops, unless much is the same contraction. */
  gboolean contract = a->contracts || b->contracts;
  double apart = a->operations + b->operations;
  if (contract && both->n_loops > MAX (a->n_loops, b->n_loops))
    return FALSE;
  if (contract && (!both->is_even || (a->contracts && b->contracts))
      && both->operations > schedule_weights.alike * apart)
    return FALSE;
  return schedule_get_time (both) < schedule_get_time (a) + schedule_get_time (b);
}
