/* SPDX-License-Identifier: MIT
 *
 * indexing.c: one stage of a plan to one kernel.
 *
 * Walks from the stored value to what it reads, carrying an index for each axis. Movement changes the indices and may
 * add a condition under which the value exists; a REDUCE adds loops; a stored value becomes a LOAD. Equal (node,
 * indices, condition) are lowered once.
 *
 * A kernel is lowered up to three times. The first time finds every address and condition; where these divide a loop's
 * counter, the loop is split into the digits they want. Of the loops then, neighbours that always run through memory like
 * one are joined, unless the stage is to keep them; the last time uses those. */
#include <math.h>
#include <string.h>

#include "schedule/loops.h"
#include "schedule/lowered.h"
#include "schedule/move-index.h"

typedef struct {
  TinyNode *node;
  gboolean zero; /* is 0 wherever the condition it was lowered under is false */
} Value;

typedef struct {
  guint32 node, depth, n;
  TinyNode *valid;
  Value value;
  const Affine *index[];
} MemoKey;

/* A node that waits for what it is computed from. */
typedef struct {
  TinyNode *node;
  MemoKey *key; /* what it is lowered under; gets its value */
  guint n_values;
  Value values[4];     /* of its sources, as far as these are lowered */
  TinyNode *condition; /* where a movement or GATHER has a value */
  LoopGroup *group;    /* of a REDUCE; or NULL */
} Frame;

typedef struct {
  Plan *plan;
  TinyGraph *graph;
  AffinePool *pool;
  Indexing indexing;
  Stage *stage;
  TinyArena *arena;
  GHashTable *memo;
  GArray
      *stack; /* Frame: each waits for the next; kernels can be deeper than a thread's stack */
  GArray *buffers; /* guint: slot → buffer */
  GArray *waits;   /* guint: buffers to be written before, beside those that are read */
  Loops loops;
} Lowering;

static guint
hash_key (gconstpointer p)
{
  const MemoKey *key = p;
  guint64 hash = key->node * 31u + key->depth;
  hash ^= GPOINTER_TO_SIZE (key->valid) >> 4;
  for (guint i = 0; i < key->n; i++)
    hash = (hash ^ (GPOINTER_TO_SIZE (key->index[i]) >> 4)) * 0x9E3779B97F4A7C15u;
  return (guint) (hash >> 32) ^ (guint) hash;
}

static gboolean
equal_keys (gconstpointer a, gconstpointer b)
{
  const MemoKey *x = a, *y = b;
  return x->node == y->node && x->depth == y->depth && x->n == y->n && x->valid == y->valid
         && memcmp (x->index, y->index, x->n * sizeof (gpointer)) == 0;
}

static gboolean
is_never (TinyNode *valid)
{
  return valid != NULL && tiny_node_is_const (valid);
}

/* ---- reading memory ---- */
static guint
get_slot (Lowering *self, guint buffer)
{
  buffer = lowered_get_buffer (self->plan, self->stage, buffer);
  for (guint i = 0; i < self->buffers->len; i++)
    if (g_array_index (self->buffers, guint, i) == buffer)
      return i;
  g_array_append_val (self->buffers, buffer);
  return self->buffers->len - 1;
}

static TinyNode *
make_param (Lowering *self, guint slot)
{
  guint buffer = g_array_index (self->buffers, guint, slot);
  const TinyScheduleBuffer *info = schedule_get_buffer (self->plan, buffer);
  return tiny_node_new (self->graph, TINY_OP_PARAM, info->dtype, 1, 0, NULL, slot,
                        tiny_graph_ints (self->graph, &info->n_elements, 1), NULL);
}

static const Affine *
flatten (Lowering *self,
         const TinyInts *shape,
         const TinyInts *order,
         const Affine *const *index)
{
  const Affine *flat = affine_const (self->pool, 0);
  gint64 stride = 1;
  for (guint i = shape->n; i-- > 0;) {
    guint axis = order != NULL ? order->v[i] : i;
    flat = affine_sum (self->pool, flat, 1, index[axis], stride, 0);
    stride *= shape->v[axis];
  }
  return flat;
}

static Value
load (Lowering *self,
      TinyNode *node,
      guint buffer,
      const TinyInts *order,
      const Affine *const *index,
      TinyNode *valid)
{
  TinyNode *address = index_use (&self->indexing, flatten (self, node->shape, order, index));
  TinyNode *sources[] = { make_param (self, get_slot (self, buffer)), address, valid,
                          tiny_node_const_int (self->graph, node->dtype, 0) };
  return (Value){ tiny_node_new (self->graph, TINY_OP_LOAD, node->dtype, 1,
                                 valid != NULL ? 4 : 2, sources, 0, NULL, NULL),
                  valid != NULL };
}

/* ---- computing ---- */
static TinyNode *
make_identity (Lowering *self, TinyOp op, TinyDType dtype)
{
  if (op == TINY_OP_MAX)
    return tiny_dtype_is_float (dtype)
               ? tiny_node_const_float (self->graph, dtype, -INFINITY)
               : tiny_node_const_int (self->graph, dtype, tiny_dtype_get_min (dtype));
  return tiny_node_const_int (self->graph, dtype, op == TINY_OP_MUL ? 1 : 0);
}

/* Asks for the value of @node: among @frame's now, or when it is on top of the stack again. Moves the stack. */
static void
want (Lowering *self,
      Frame *frame,
      TinyNode *node,
      const Affine *const *index,
      TinyNode *valid,
      guint depth)
{
  guint n = node->shape->n;
  union {
    MemoKey key;
    guint8 bytes[sizeof (MemoKey) + SCHEDULE_MAX_RANK * sizeof (gpointer)];
  } probe;
  probe.key = (MemoKey){ node->id, depth, n, valid, { NULL, FALSE } };
  memcpy (probe.key.index, index, n * sizeof *index);
  MemoKey *found = g_hash_table_lookup (self->memo, &probe.key);
  if (found != NULL) {
    frame->values[frame->n_values++] = found->value;
    return;
  }
  Frame next = { node, tiny_arena_copy (self->arena, &probe,
                                        sizeof (MemoKey) + n * sizeof (gpointer)) };
  g_array_append_val (self->stack, next);
}

/* ---- computing: TRUE with the value of @frame's node, or FALSE where it waits for one that it wants ---- */
static gboolean
lower_source (Lowering *self, Frame *frame, Value *out)
{
  const MemoKey *key = frame->key;
  if (frame->n_values == 0) {
    want (self, frame, frame->node->sources[0], key->index, key->valid, key->depth);
    return FALSE;
  }
  *out = frame->values[0];
  return TRUE;
}

/* A loop that the value does not depend on repeats one value. */
static Value
close_reduce (Lowering *self, TinyNode *node, const LoopGroup *group, Value value)
{
  TinyNode *sources[SCHEDULE_MAX_RANK + 1] = { value.node };
  gint64 repeats = 1;
  guint n_sources = 1;
  for (guint i = 0; i < group->n_ranges; i++) {
    if (node->arg == TINY_OP_MUL
        || tiny_node_depends_on (self->graph, value.node, group->ranges[i]))
      sources[n_sources++] = group->ranges[i];
    else
      repeats *= tiny_range_get_extent (group->ranges[i]);
  }
  if (n_sources > 1)
    value.node = tiny_node_new (self->graph, TINY_OP_REDUCE, node->dtype, 1, n_sources, sources,
                                node->arg, NULL, NULL);
  if (repeats > 1 && node->arg == TINY_OP_ADD && node->dtype != TINY_DTYPE_BOOL)
    value.node = tiny_node_binary (self->graph, TINY_OP_MUL, value.node,
                                   tiny_node_const_int (self->graph, node->dtype, repeats));
  return value;
}

static gboolean
lower_reduce (Lowering *self, Frame *frame, Value *out)
{
  TinyNode *node = frame->node;
  const MemoKey *key = frame->key;
  const TinyInts *from = node->sources[0]->shape, *axes = node->ints;
  const Affine *inner[SCHEDULE_MAX_RANK];
  gint64 extents[SCHEDULE_MAX_RANK];
  guint n = 0;
  if (frame->n_values > 0) {
    *out = frame->values[0];
    if (frame->group != NULL)
      *out = close_reduce (self, node, frame->group, *out);
    return TRUE;
  }
  memcpy (inner, key->index, from->n * sizeof *inner);
  for (guint i = 0; i < axes->n; i++) {
    gint64 extent = from->v[axes->v[i]];
    if (extent == 0) {
      *out = (Value){ make_identity (self, node->arg, node->dtype), node->arg != TINY_OP_MUL };
      return TRUE;
    }
    inner[axes->v[i]] = affine_const (self->pool, 0);
    if (extent > 1)
      extents[n++] = extent;
  }
  if (n > 0)
    frame->group = loops_get_reduce (&self->loops, key->depth + 1, n, extents);
  for (guint i = 0, j = 0; i < axes->n && n > 0; i++)
    if (from->v[axes->v[i]] > 1)
      inner[axes->v[i]] = frame->group->index[j++];
  want (self, frame, node->sources[0], inner, key->valid, key->depth + (n > 0));
  return FALSE;
}

static gboolean
keeps_zero (TinyOp op)
{
  switch (op) {
  case TINY_OP_CAST:
  case TINY_OP_ADD:
  case TINY_OP_SUB:
  case TINY_OP_MUL:
  case TINY_OP_MAX:
  case TINY_OP_AND:
  case TINY_OP_OR:
  case TINY_OP_XOR:
  case TINY_OP_SQRT:
  case TINY_OP_SIN:
  case TINY_OP_TRUNC:
  case TINY_OP_MULACC:
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
is_positive_zero (const TinyNode *node)
{
  return tiny_node_is_const (node) && node->arg == 0 && !tiny_node_is_open (node);
}

/* Any number of zeros added to x, wherever they stand, is x + 0, which may differ from x in the sign of a 0. So what reads
 * one part of a concatenation, a sum of parts with zeros around them, is the same whichever part it is. */
static TinyNode *
combine (Lowering *self, TinyNode *node, TinyNode *const *sources)
{
  const guint z = node->op != TINY_OP_ADD || !is_positive_zero (sources[0]);
  if (node->op != TINY_OP_ADD || !is_positive_zero (sources[z]))
    return tiny_node_with_sources (self->graph, node, sources);
  TinyNode *x = sources[1 - z], *ordered[] = { x, sources[z] };
  const gboolean has_zero = x->op == TINY_OP_ADD && is_positive_zero (x->sources[1]);
  const gboolean is_x = has_zero || is_positive_zero (x) || !tiny_dtype_is_float (node->dtype);
  return is_x ? x : tiny_node_with_sources (self->graph, node, ordered);
}

static gboolean
lower_elementwise (Lowering *self, Frame *frame, Value *out)
{
  TinyNode *node = frame->node, *sources[G_N_ELEMENTS (frame->values)];
  const MemoKey *key = frame->key;
  gboolean zero = keeps_zero (node->op);
  g_assert (node->n_sources <= G_N_ELEMENTS (sources));
  if (frame->n_values < node->n_sources) {
    want (self, frame, node->sources[frame->n_values], key->index, key->valid, key->depth);
    return FALSE;
  }
  for (guint i = 0; i < node->n_sources; i++) {
    sources[i] = frame->values[i].node;
    zero = zero && frame->values[i].zero;
  }
  *out = (Value){ combine (self, node, sources), zero };
  return TRUE;
}

/* @value where @condition, and 0 elsewhere. */
static Value
keep_where (Lowering *self, const Frame *frame, Value value)
{
  TinyNode *condition = frame->condition;
  if (condition == NULL || value.zero)
    return value;
  TinyNode *zero = tiny_node_const_int (self->graph, frame->node->dtype, 0);
  return (Value){ tiny_node_where (self->graph, condition, value.node, zero),
                  frame->key->valid == NULL };
}

static gboolean
lower_movement (Lowering *self, Frame *frame, Value *out)
{
  TinyNode *node = frame->node;
  const MemoKey *key = frame->key;
  const Affine *inner[SCHEDULE_MAX_RANK];
  if (frame->n_values > 0) {
    *out = keep_where (self, frame, frame->values[0]);
    return TRUE;
  }
  *out = (Value){ tiny_node_const_int (self->graph, node->dtype, 0), TRUE };
  if (tiny_shape_get_n_elements (node->sources[0]->shape) == 0)
    return TRUE;
  frame->condition = index_move (&self->indexing, node, key->index, inner);
  TinyNode *all = index_both (self->graph, key->valid, frame->condition);
  if (is_never (all))
    return TRUE;
  want (self, frame, node->sources[0], inner, all, key->depth);
  return FALSE;
}

/* Where @position, of any integer dtype, is one of 0 .. size-1; NULL: always. Compared in its own
 * dtype: INDEX may be narrower. */
static TinyNode *
inside (Lowering *self, TinyNode *position, gint64 size)
{
  TinyNode *above = NULL, *below = NULL;
  TinyDType dtype = position->dtype;
  if (affine_is_position_within (position, size))
    return NULL;
  if (tiny_dtype_is_signed (dtype))
    above = tiny_node_binary (self->graph, TINY_OP_CMPLT,
                              tiny_node_const_int (self->graph, dtype, -1), position);
  if (size <= tiny_dtype_get_max (dtype))
    below = tiny_node_binary (self->graph, TINY_OP_CMPLT, position,
                              tiny_node_const_int (self->graph, dtype, size));
  return index_both (self->graph, above, below);
}

/* The load's address is 0 along the axis where there is nothing to read. */
static gboolean
lower_gather (Lowering *self, Frame *frame, Value *out)
{
  TinyNode *node = frame->node, *source = node->sources[0];
  const MemoKey *key = frame->key;
  guint axis = node->arg;
  gint64 size = source->shape->v[axis];
  const Affine *inner[SCHEDULE_MAX_RANK];
  if (frame->n_values == 0) {
    *out = (Value){ tiny_node_const_int (self->graph, node->dtype, 0), TRUE };
    if (size > 0)
      want (self, frame, node->sources[1], key->index, key->valid, key->depth);
    return size == 0;
  }
  if (frame->n_values == 2) {
    *out = keep_where (self, frame, frame->values[1]);
    return TRUE;
  }
  TinyNode *position = frame->values[0].node;
  TinyNode *condition = inside (self, position, size);
  TinyNode *safe = position;
  if (condition != NULL)
    safe = tiny_node_where (self->graph, condition, position,
                            tiny_node_const_int (self->graph, position->dtype, 0));
  memcpy (inner, key->index, node->shape->n * sizeof *inner);
  inner[axis] = condition == NULL ? affine_read_position (self->pool, position) : NULL;
  if (inner[axis] == NULL)
    inner[axis]
        = affine_opaque (self->pool, tiny_node_cast (self->graph, safe, TINY_DTYPE_INDEX), 0,
                         MIN (size - 1, tiny_dtype_get_max (position->dtype)));
  frame->condition = condition;
  want (self, frame, source, inner, index_both (self->graph, key->valid, condition),
        key->depth);
  return FALSE;
}

static gboolean
compute (Lowering *self, Frame *frame, Value *out)
{
  TinyNode *node = frame->node;
  if (tiny_op_is_elementwise (node->op))
    return lower_elementwise (self, frame, out);
  if (tiny_op_is_movement (node->op))
    return lower_movement (self, frame, out);
  switch (node->op) {
  case TINY_OP_REDUCE:
    return lower_reduce (self, frame, out);
  case TINY_OP_GATHER:
    return lower_gather (self, frame, out);
  case TINY_OP_CONST:
    *out = (Value){ node, node->arg == 0 && !tiny_node_is_open (node) };
    return TRUE;
  case TINY_OP_VARIABLE:
    *out = (Value){ node, FALSE };
    return TRUE;
  case TINY_OP_IOTA:
    *out = (Value){ tiny_node_cast (self->graph,
                                    index_use (&self->indexing, frame->key->index[0]),
                                    node->dtype),
                    FALSE };
    return TRUE;
  case TINY_OP_AFTER:
    if (frame->n_values == 0)
      schedule_add_waits (self->plan, node, self->waits);
    return lower_source (self, frame, out);
  default: /* CONTIGUOUS, COPY and the like are their source */
    return lower_source (self, frame, out);
  }
}

/* As compute(), of what is read from memory too. */
static gboolean
read_or_compute (Lowering *self, Frame *frame, Value *out)
{
  TinyNode *node = frame->node;
  const MemoKey *key = frame->key;
  if (frame->n_values > 0)
    return compute (self, frame, out);
  const Stage *stored;
  if (node->op == TINY_OP_PARAM)
    *out = load (self, node, node->arg, NULL, key->index, key->valid);
  else if ((stored = lowered_get_stored (self->plan, self->stage, node)) != NULL)
    *out = load (self, node, stored->buffer, stored->order, key->index, key->valid);
  else
    return compute (self, frame, out);
  return TRUE;
}

static Value
lower (Lowering *self, TinyNode *node, const Affine *const *index)
{
  Frame whole = { NULL };
  g_array_set_size (self->stack, 0);
  want (self, &whole, node, index, NULL, 0);
  while (self->stack->len > 0) {
    Frame *top = &g_array_index (self->stack, Frame, self->stack->len - 1);
    Value value;
    if (!read_or_compute (self, top, &value))
      continue;
    top->key->value = value;
    g_hash_table_add (self->memo, top->key);
    g_array_set_size (self->stack, self->stack->len - 1);
    Frame *user = self->stack->len > 0 ? top - 1 : &whole;
    user->values[user->n_values++] = value;
  }
  return whole.values[0];
}

/* ---- the kernel ---- */
/* Lowers once with the loops that the groups have now. */
static TinyNode *
lower_once (Lowering *self)
{
  TinyNode *node = self->stage->node;
  LoopGroup *group = self->loops.groups->pdata[0];
  const Affine *index[SCHEDULE_MAX_RANK];
  g_hash_table_remove_all (self->memo);
  g_ptr_array_set_size (self->indexing.used, 0);
  g_array_set_size (self->buffers, 0);
  g_array_set_size (self->waits, 0);
  get_slot (self, self->stage->buffer);
  for (guint i = 0, j = 0; i < node->shape->n; i++) {
    guint axis = self->stage->order != NULL ? self->stage->order->v[i] : i;
    index[axis] = node->shape->v[axis] == 1 ? affine_const (self->pool, 0) : group->index[j++];
  }
  TinyNode *address
      = index_use (&self->indexing, flatten (self, node->shape, self->stage->order, index));
  Value value = lower (self, node, index);
  TinyNode *sources[] = { make_param (self, 0), address, value.node };
  return tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL,
                        NULL);
}

/* Whether the kernel reads its own output's memory at another place than it writes. */
static gboolean
reads_elsewhere (Lowering *self, TinyNode *store)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD && node->sources[0] == store->sources[0]
        && node->sources[1] != store->sources[1])
      return TRUE;
  }
  return FALSE;
}

static PlanItem
make_item (Plan *plan, Stage *stage)
{
  const TinyNode *node = stage->node;
  gint64 extents[SCHEDULE_MAX_RANK];
  guint n = 0;
  g_autoptr (TinyArena) arena = tiny_arena_new ();
  g_autoptr (GHashTable) memo = g_hash_table_new (hash_key, equal_keys);
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  g_autoptr (GArray) buffers = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) waits = g_array_sized_new (FALSE, FALSE, sizeof (guint), 4);
  g_autoptr (GPtrArray) used = g_ptr_array_new ();
  g_autoptr (GPtrArray) groups = g_ptr_array_new ();
  Lowering self = { .plan = plan,
                    .graph = plan->graph,
                    .pool = &plan->affines,
                    .indexing = { plan->graph, &plan->affines, used },
                    .stage = stage,
                    .arena = arena,
                    .memo = memo,
                    .stack = stack,
                    .buffers = buffers,
                    .waits = waits,
                    .loops = { plan->graph, &plan->affines, arena, groups, 0 } };

  for (guint i = 0; i < node->shape->n; i++) {
    gint64 extent = node->shape->v[stage->order != NULL ? stage->order->v[i] : i];
    if (extent > 1)
      extents[n++] = extent;
  }
  loops_add (&self.loops, 0, n, extents);
  TinyNode *store = lower_once (&self);
  if (loops_split (&self.loops, used))
    store = lower_once (&self);
  if (!stage->keeps_axes && loops_join (&self.loops, used))
    store = lower_once (&self);
  /* What is read at positions that turn out not to matter is not read. */
  guint n_buffers
      = schedule_drop_unused (plan, &store, 1, (guint *) (void *) buffers->data, buffers->len);
  return (PlanItem){
    .kind = TINY_SCHEDULE_KERNEL,
    .kernel = tiny_node_sink (plan->graph, 1, &store, NULL),
    .device = stage->device,
    .n_buffers = n_buffers,
    .n_written = 1,
    .buffers = tiny_arena_copy (plan->arena, buffers->data, n_buffers * sizeof (guint)),
    .stage = stage,
    .reads_target_elsewhere = reads_elsewhere (&self, store),
    .n_waits = waits->len,
    .waits = tiny_arena_copy (plan->arena, waits->data, waits->len * sizeof (guint)),
  };
}

gboolean
schedule_lower_stage (Plan *plan, Stage *stage, PlanItem *out_item)
{
  if (tiny_shape_get_n_elements (stage->node->shape) == 0)
    return FALSE;
  KernelKey *key = known_kernels_begin_key (plan->kernels);
  const gboolean may_be_known = lowered_describe (key, plan, stage);
  if (may_be_known && known_kernels_find (plan, key, out_item)) {
    out_item->device = stage->device;
    out_item->stage = stage;
    return TRUE;
  }
  *out_item = make_item (plan, stage);
  if (may_be_known)
    known_kernels_note (plan, key, out_item);
  return TRUE;
}
