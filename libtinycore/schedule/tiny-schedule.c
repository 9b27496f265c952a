/* SPDX-License-Identifier: MIT
 *
 * tiny-schedule.c: the passes in their order, from a tensor graph to a list of items. */
#include "schedule/tiny-schedule.h"

#include <string.h>

#include "base/interrupt-check.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "schedule/claim.h"
#include "schedule/constants.h"
#include "schedule/known-kernels.h"
#include "schedule/plan.h"
#include "schedule/weights.h"
#include "schedule/work.h"

guint
schedule_add_buffer (Plan *plan,
                     TinyScheduleBufferKind kind,
                     TinyDType dtype,
                     gint64 n_elements,
                     const char *device,
                     gint64 slot)
{
  TinyScheduleBuffer buffer = { kind, dtype, n_elements, device, slot };
  g_array_append_val (plan->buffers, buffer);
  return plan->buffers->len - 1;
}

ScheduleMachine
schedule_get_machine (Plan *plan, const char *device)
{
  const TinyScheduleOptions *options = &plan->options;
  return schedule_machine_of (
      options->find_target != NULL ? options->find_target (device, options->data) : NULL);
}

const GPtrArray *
schedule_list_nodes (Plan *plan, TinyNode *kernel)
{
  GPtrArray *list = tiny_node_map_get (&plan->nodes_of, kernel);
  if (list == NULL) {
    list = tiny_graph_toposort (plan->graph, &kernel, 1);
    g_ptr_array_add (plan->lists, list);
    tiny_node_map_set (&plan->nodes_of, kernel, list);
  }
  return list;
}

GPtrArray *
schedule_list_under (Plan *plan, TinyNode *const *roots, guint n_roots)
{
  const gsize size = n_roots * sizeof (gpointer);
  if (plan->ordered->len == n_roots && n_roots > 0
      && memcmp (plan->ordered->pdata, roots, size) == 0) {
    /* Kernels that were listed since gave their nodes other places. */
    for (guint i = 0; i < plan->order->len; i++)
      ((TinyNode *) plan->order->pdata[i])->place = i;
    return plan->order;
  }
  tiny_graph_toposort_into (plan->graph, roots, n_roots, plan->order);
  g_ptr_array_set_size (plan->ordered, (gint) n_roots);
  if (n_roots > 0)
    memcpy (plan->ordered->pdata, roots, size);
  return plan->order;
}

GPtrArray *
schedule_list_graph (Plan *plan)
{
  return schedule_list_under (plan, plan->roots, plan->n_roots);
}

/* ---- roots ---- */
static gboolean
read_roots (Plan *plan, TinyNode *sink, GError **error)
{
  g_autoptr (GHashTable) assigned = g_hash_table_new (NULL, NULL);
  plan->n_roots = sink->n_sources;
  plan->roots = tiny_arena_alloc (plan->arena, (sink->n_sources + 1) * sizeof (TinyNode *));
  plan->targets = tiny_arena_alloc (plan->arena, (sink->n_sources + 1) * sizeof (TinyNode *));
  plan->outputs = tiny_arena_alloc (plan->arena, (sink->n_sources + 1) * sizeof (guint));
  for (guint i = 0; i < sink->n_sources; i++) {
    TinyNode *root = plan->roots[i] = sink->sources[i];
    if (root->op != TINY_OP_ASSIGN)
      continue;
    TinyNode *target = root->sources[0], *value = root->sources[1];
    if (target->op != TINY_OP_PARAM || target->dtype != value->dtype
        || tiny_shape_get_n_elements (target->shape)
               != tiny_shape_get_n_elements (value->shape)) {
      g_autofree char *a = tiny_shape_to_string (target->shape);
      g_autofree char *b = tiny_shape_to_string (value->shape);
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "assign: %s %s cannot become %s %s",
                   tiny_dtype_to_string (target->dtype), a, tiny_dtype_to_string (value->dtype),
                   b);
      return FALSE;
    }
    if (!g_hash_table_add (assigned, target)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "assign: input %" G_GINT64_FORMAT " is assigned to twice", target->arg);
      return FALSE;
    }
    plan->targets[i] = target;
    plan->roots[i] = value;
    /* A value of no device is computed where it goes, even if it is also wanted elsewhere. */
    if (schedule_get_device (plan, value) == NULL && target->text != plan->only_device)
      plan->roots[i] = tiny_node_new (plan->graph, TINY_OP_COPY, value->dtype, 1, 1, &value, 0,
                                      NULL, target->text);
  }
  return TRUE;
}

/* ---- buffers of stages ---- */
static void
add_item (Plan *plan, PlanItem item)
{
  g_array_append_val (plan->items, item);
}

/* Root @r is in its stage's memory, unless that already belongs to another root. */
static void
bind_root (Plan *plan, guint r)
{
  TinyNode *target = plan->targets[r];
  Stage *stage = tiny_node_map_get (&plan->stage_of, plan->roots[r]);
  guint buffer
      = schedule_add_buffer (plan, target != NULL ? TINY_SCHEDULE_INPUT : TINY_SCHEDULE_OUTPUT,
                             stage->node->dtype, tiny_shape_get_n_elements (stage->node->shape),
                             stage->device, target != NULL ? target->arg : r);
  plan->outputs[r] = buffer;
  if (stage->buffer == SCHEDULE_NO_BUFFER)
    stage->buffer = buffer;
  else if (schedule_get_buffer (plan, buffer)->n_elements > 0)
    add_item (plan, schedule_copy_kernel (plan, buffer, stage->buffer));
}

static void
bind_buffers (Plan *plan)
{
  for (guint r = 0; r < plan->n_roots; r++)
    if (plan->targets[r] == NULL)
      bind_root (plan, r);
  for (guint r = 0; r < plan->n_roots; r++)
    if (plan->targets[r] != NULL)
      bind_root (plan, r);
  for (guint i = 0; i < plan->stages->len; i++) {
    Stage *stage = plan->stages->pdata[i];
    if (stage->buffer == SCHEDULE_NO_BUFFER)
      stage->buffer = schedule_add_buffer (plan, TINY_SCHEDULE_TEMPORARY, stage->node->dtype,
                                           tiny_shape_get_n_elements (stage->node->shape),
                                           stage->device, 0);
  }
}

/* ---- items ---- */
static gboolean
is_transfer (Plan *plan, Stage *stage)
{
  if (stage->node->op != TINY_OP_COPY)
    return FALSE;
  const char *from = schedule_get_device (plan, stage->node->sources[0]);
  return from != NULL && from != stage->device;
}

static void
add_transfer (Plan *plan, Stage *stage)
{
  TinyNode *source = stage->node->sources[0];
  Stage *stored = tiny_node_map_get (&plan->stage_of, source);
  guint buffers[] = { stage->buffer, stored != NULL ? stored->buffer : (guint) source->arg };
  if (schedule_get_buffer (plan, stage->buffer)->n_elements == 0)
    return;
  add_item (plan, (PlanItem){ .kind = TINY_SCHEDULE_COPY,
                              .device = stage->device,
                              .n_buffers = 2,
                              .n_written = 1,
                              .buffers = tiny_arena_copy (plan->arena, buffers, sizeof buffers),
                              .stage = stage });
}

static void
lower_stage (Plan *plan, Stage *stage)
{
  PlanItem item, zeros;
  if (stage->node->op == TINY_OP_KERNEL) {
    if (!schedule_lower_custom (plan, stage, &item))
      return;
    for (guint i = 0; i < item.n_written; i++)
      if (schedule_lower_zeros (plan, &item, i, &zeros)) {
        zeros.is_part = item.is_part = TRUE;
        add_item (plan, zeros);
      }
    add_item (plan, item);
    return;
  }
  if (!schedule_lower_stage (plan, stage, &item))
    return;
  if (stage->order == NULL && !schedule_is_claimed (stage->node)
      && schedule_wants_detour (plan, &item)) {
    PlanItem first;
    Stage *detour = schedule_detour_stage (plan, stage);
    if (detour != NULL && schedule_lower_stage (plan, detour, &first)) {
      add_item (plan, first);
      schedule_lower_stage (plan, stage, &item);
    }
  }
  add_item (plan, item);
}

static void
lower_stages (Plan *plan)
{
  for (guint i = 0; i < plan->stages->len; i++) {
    Stage *stage = plan->stages->pdata[i];
    if (is_transfer (plan, stage))
      add_transfer (plan, stage);
    else
      lower_stage (plan, stage);
  }
}

/* ---- the result ---- */
/* Inputs after an ASSIGN become the inputs themselves, what nothing uses goes away. */
static void
number_buffers (Plan *plan, TinySchedule *self)
{
  g_autofree gboolean *used = g_new0 (gboolean, plan->buffers->len + 1);
  g_autofree guint *number = g_new0 (guint, plan->buffers->len + 1);
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    for (guint j = 0; j < item->n_buffers; j++)
      used[item->buffers[j]] = TRUE;
  }
  for (guint r = 0; r < plan->n_roots; r++)
    used[plan->outputs[r]] = TRUE;
  self->buffers = g_new0 (TinyScheduleBuffer, plan->buffers->len + 1);
  for (guint b = 0; b < plan->buffers->len; b++) {
    const TinyScheduleBuffer *buffer = schedule_get_buffer (plan, b);
    if (schedule_is_assigned (plan, b)) {
      number[b] = buffer->slot;
    } else if (b < plan->n_inputs || used[b]) {
      number[b] = self->n_buffers;
      self->buffers[self->n_buffers++] = *buffer;
    }
  }
  for (guint i = 0; i < self->n_items; i++)
    for (guint j = 0; j < self->items[i].n_buffers; j++)
      self->items[i].buffers[j] = number[self->items[i].buffers[j]];
  for (guint r = 0; r < plan->n_roots; r++)
    self->outputs[r] = number[plan->outputs[r]];
}

/* Each kernel counts its own variables from 0: a device takes only so many, and kernels that differ in nothing else
 * are one. */
static void
number_variables (TinyGraph *graph, TinyScheduleItem *item)
{
  if (item->kernel == NULL)
    return;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &item->kernel, 1);
  g_autoptr (GPtrArray) from = g_ptr_array_new (), to = g_ptr_array_new ();
  g_autoptr (GArray) numbers = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_VARIABLE)
      continue;
    const guint number = (guint) node->arg;
    g_ptr_array_add (from, node);
    g_ptr_array_add (to, tiny_node_new (graph, TINY_OP_VARIABLE, node->dtype, 1, 0, NULL,
                                        numbers->len, node->ints, node->text));
    g_array_append_val (numbers, number);
  }
  if (from->len > 0)
    item->kernel = tiny_graph_substitute (graph, item->kernel, (TinyNode **) from->pdata,
                                          (TinyNode **) to->pdata, from->len);
  item->n_variables = numbers->len;
  item->variables = (guint *) (void *) g_array_free (g_steal_pointer (&numbers), FALSE);
}

static TinySchedule *
make_schedule (Plan *plan)
{
  TinySchedule *self = g_new0 (TinySchedule, 1);
  schedule_name_kernels (plan);
  self->arenas = schedule_plan_memory (plan, &self->n_arenas);
  self->n_items = plan->items->len;
  self->items = g_new0 (TinyScheduleItem, self->n_items + 1);
  for (guint i = 0; i < self->n_items; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    self->items[i] = (TinyScheduleItem){
      .kind = item->kind == SCHEDULE_CUSTOM ? TINY_SCHEDULE_KERNEL : item->kind,
      .kernel = item->kernel,
      .device = item->device,
      .n_buffers = item->n_buffers,
      .buffers = g_memdup2 (item->buffers, item->n_buffers * sizeof (guint)),
      .n_written = item->n_written,
      .is_part = item->is_part,
      .operation
      = item->operation != NULL ? g_memdup2 (item->operation, sizeof *item->operation) : NULL,
    };
    number_variables (plan->graph, &self->items[i]);
  }
  self->n_inputs = plan->n_inputs;
  self->n_outputs = plan->n_roots;
  self->outputs = g_new0 (guint, plan->n_roots + 1);
  self->spreads = g_memdup2 (plan->spreads, plan->n_spreads * sizeof (TinySpread));
  if (tiny_env_get_int (TINY_ENV_EXPLAIN))
    self->explanation = schedule_explain (plan);
  number_buffers (plan, self);
  self->log = plan->options.constants == NULL ? g_steal_pointer (&plan->log) : NULL;
  self->graph = plan->graph;
  return self;
}

gboolean
schedule_goes_on (Plan *plan, guint i)
{
  if (plan->stopped == NULL && i % 1024 == 0 && !schedule_has_claims (plan))
    tiny_interrupt_check (&plan->stopped);
  return plan->stopped == NULL;
}

static gboolean
run_pass (Plan *plan, const char *name, void (*pass) (Plan *plan), GError **error)
{
  if (!tiny_interrupt_check (error))
    return FALSE;
  TINY_TIMED ("schedule", name);
  pass (plan);
  if (plan->stopped == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&plan->stopped));
  return FALSE;
}

/* ---- two ways to lay out ---- */
/* What a layout of the graph in kernels makes; the rest of a Plan is the same for all. */
typedef struct {
  GArray *buffers, *items;
  GPtrArray *stages;
  TinyNodeMap stage_of;
  TinyNode **roots;
  guint *outputs;
} Layout;

static void
layout_clear (Layout *self)
{
  g_array_unref (self->buffers);
  g_array_unref (self->items);
  g_ptr_array_unref (self->stages);
  tiny_node_map_clear (&self->stage_of);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Layout, layout_clear)

/* Gives the plan @other, whose own becomes what the plan has now. */
static void
swap_layout (Plan *plan, Layout *other)
{
  Layout now = { plan->buffers,  plan->items, plan->stages,
                 plan->stage_of, plan->roots, plan->outputs };
  plan->buffers = other->buffers;
  plan->items = other->items;
  plan->stages = other->stages;
  plan->stage_of = other->stage_of;
  plan->roots = other->roots;
  plan->outputs = other->outputs;
  *other = now;
}

/* One with nothing but the inputs. */
static void
layout_init (Layout *self, Plan *plan)
{
  *self = (Layout){
    .buffers = g_array_new (FALSE, FALSE, sizeof (TinyScheduleBuffer)),
    .items = g_array_new (FALSE, FALSE, sizeof (PlanItem)),
    .stages = g_ptr_array_new (),
    .roots = tiny_arena_copy (plan->arena, plan->roots, plan->n_roots * sizeof (TinyNode *)),
    .outputs = tiny_arena_alloc (plan->arena, (plan->n_roots + 1) * sizeof (guint))
  };
  g_array_append_vals (self->buffers, plan->buffers->data, plan->n_inputs);
}

/* Makes the plan's items. In @out_is_whole, whether no contraction is repeated in them. */
static gboolean
lay_out (Plan *plan, gboolean *out_is_whole, GError **error)
{
  if (!run_pass (plan, "split-reduce", schedule_split_reduces, error)
      || !run_pass (plan, "fusion", schedule_choose_stages, error)
      || !run_pass (plan, "layout", schedule_choose_layouts, error)
      || !run_pass (plan, "buffers", bind_buffers, error)
      || !run_pass (plan, "lower", lower_stages, error)
      || !run_pass (plan, "claimed", schedule_mark_claims, error)
      || !schedule_resolve_hazards (plan, error)
      || !run_pass (plan, "packing", schedule_pack_operands, error))
    return FALSE;
  TINY_TIMED ("schedule", "order");
  guint n_stuck = schedule_order_items (plan, FALSE);
  g_assert (n_stuck == 0);
  gboolean good = schedule_merge_kernels (plan, error);
  *out_is_whole = TRUE;
  for (guint i = 0; (good = good && tiny_interrupt_check (error)) && i < plan->items->len; i++)
    if (g_array_index (plan->items, PlanItem, i).kind == TINY_SCHEDULE_KERNEL
        && g_array_index (plan->items, PlanItem, i).operation == NULL
        && !schedule_share_values (plan, &g_array_index (plan->items, PlanItem, i)))
      *out_is_whole = FALSE;
  if (!good)
    return FALSE;
  schedule_lay_panels (plan);
  n_stuck = schedule_order_items (plan, TRUE);
  g_assert (n_stuck == 0);
  return TRUE;
}

/* The time of all kernels, where large temporaries do not come from a cache. */
static double
get_time (Plan *plan)
{
  double time = 0;
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    if (item->kind != TINY_SCHEDULE_KERNEL)
      continue;
    KernelWork work = schedule_measure_kernel (plan, item);
    for (guint j = 0; j < item->n_buffers; j++) {
      const TinyScheduleBuffer *buffer = schedule_get_buffer (plan, item->buffers[j]);
      double n_bytes
          = (double) buffer->n_elements * (double) tiny_dtype_get_n_bytes (buffer->dtype);
      if (buffer->kind == TINY_SCHEDULE_TEMPORARY && n_bytes >= schedule_weights.far_bytes)
        work.n_bytes += n_bytes * (schedule_weights.far_byte / schedule_weights.byte - 1);
    }
    time += schedule_get_time (&work);
  }
  return time;
}

/* With large values computed where they are read, or stored: whatever takes less time. */
static gboolean
lay_out_best (Plan *plan, GError **error)
{
  gboolean is_whole;
  if (!schedule_find_recomputed (plan))
    return lay_out (plan, &is_whole, error);
  g_auto (Layout) other = { NULL };
  layout_init (&other, plan);
  if (!lay_out (plan, &is_whole, error))
    return FALSE;
  double time = is_whole ? get_time (plan) : G_MAXDOUBLE;
  swap_layout (plan, &other);
  tiny_node_map_clear (&plan->recomputed);
  plan->recomputed = (TinyNodeMap){ 0 };
  tiny_node_map_clear (&plan->repeated);
  if (!lay_out (plan, &is_whole, error))
    return FALSE;
  if (time < get_time (plan))
    swap_layout (plan, &other);
  return TRUE;
}

/* The least that an op wants, its sources and what it gives, may be too much for a target. */
static gboolean
check_buffers (Plan *plan, GError **error)
{
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    guint most = schedule_get_machine (plan, item->device).max_buffers;
    if (item->kind == TINY_SCHEDULE_COPY || item->n_buffers <= most)
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "schedule: a kernel wants %u buffers, device %s allows %u; make parts of the "
                 "expression contiguous, or use another device",
                 item->n_buffers, item->device != NULL ? item->device : "default", most);
    return FALSE;
  }
  return TRUE;
}

static gboolean
run_passes (Plan *plan, TinyNode *sink, GError **error)
{
  if (sink->op != TINY_OP_SINK) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "schedule: the root is %s, not a sink",
                 tiny_op_to_string (sink->op));
    return FALSE;
  }
  sink = schedule_take_apart (plan, sink, error);
  if (sink == NULL || !schedule_check_devices (plan, sink, error)
      || !read_roots (plan, sink, error) || !schedule_check_customs (plan, error))
    return FALSE;
  if (schedule_has_claims (plan)) {
    if (!run_pass (plan, "claim", schedule_claim_operations, error))
      return FALSE;
  } else if (!run_pass (plan, "canonical", schedule_canonicalize, error)
             || !run_pass (plan, "roots", schedule_share_roots, error)) {
    return FALSE;
  }
  return lay_out_best (plan, error) && check_buffers (plan, error);
}

void
schedule_plan_init (Plan *self,
                    TinyGraph *graph,
                    TinyArena *arena,
                    const TinyScheduleOptions *options)
{
  *self = (Plan){ .graph = graph, .arena = arena };
  if (options != NULL)
    self->options = *options;
  affine_pool_init (&self->affines, graph);
  self->buffers = g_array_new (FALSE, FALSE, sizeof (TinyScheduleBuffer));
  self->stages = g_ptr_array_new ();
  self->order = g_ptr_array_new ();
  self->ordered = g_ptr_array_new ();
  self->device_names = g_ptr_array_new ();
  self->lists = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  self->kernels = known_kernels_new ();
  self->items = g_array_new (FALSE, FALSE, sizeof (PlanItem));
  self->log = g_array_new (FALSE, FALSE, sizeof (ScheduleLogEntry));
}

void
schedule_plan_clear (Plan *self)
{
  g_array_unref (self->items);
  g_clear_pointer (&self->log, g_array_unref);
  known_kernels_free (self->kernels);
  g_ptr_array_unref (self->stages);
  g_array_unref (self->buffers);
  g_ptr_array_unref (self->lists);
  g_ptr_array_unref (self->order);
  g_ptr_array_unref (self->ordered);
  g_ptr_array_unref (self->device_names);
  tiny_node_numbers_clear (&self->devices);
  tiny_node_map_clear (&self->nodes_of);
  tiny_node_map_clear (&self->works);
  tiny_node_map_clear (&self->detours);
  tiny_node_map_clear (&self->stage_of);
  tiny_node_map_clear (&self->recomputed);
  tiny_node_map_clear (&self->repeated);
  affine_pool_clear (&self->affines);
}

TinySchedule *
tiny_schedule_new_with (TinyGraph *graph,
                        TinyNode *sink,
                        const TinyScheduleOptions *options,
                        GError **error)
{
  Plan plan;
  TinyArena *arena = tiny_arena_new ();
  schedule_plan_init (&plan, graph, arena, options);
  TinySchedule *self = run_passes (&plan, sink, error) ? make_schedule (&plan) : NULL;
  if (self == NULL)
    tiny_graph_free (graph);
  schedule_plan_clear (&plan);
  tiny_arena_free (arena);
  return self;
}

TinySchedule *
tiny_schedule_new (TinyGraph *graph, TinyNode *sink, GError **error)
{
  return tiny_schedule_new_with (graph, sink, NULL, error);
}

void
tiny_schedule_free (TinySchedule *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->n_items; i++) {
    g_free (self->items[i].buffers);
    g_free (self->items[i].variables);
    g_free (self->items[i].numbers);
    g_free (self->items[i].operation);
  }
  g_free (self->items);
  g_free (self->buffers);
  g_free (self->arenas);
  g_free (self->outputs);
  g_free (self->spreads);
  g_free (self->explanation);
  g_clear_pointer (&self->log, g_array_unref);
  tiny_graph_free (self->graph);
  g_free (self);
}
