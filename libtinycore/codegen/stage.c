/* SPDX-License-Identifier: MIT
 *
 * stage.c: an operand is copied to LOCAL memory in the order in which it is read.
 *
 * STAGE(axis, operand) splits the ranges that a LOAD depends on at an axis: those up to it
 * stay what they are, those inside of it are what one copy spans. A STORE of its own over fresh
 * ranges fills the copy in each round of the outer ones, and the LOAD reads it there: neighbours in
 * time are neighbours in memory, without gates, whatever the operand's own layout is. At a reduced
 * axis the copy is of a few rounds of the reduction.
 *
 * The items of a work-group have one copy, which spans the parts of all of them. They fill it
 * together: each takes every so manieth element in the order of the operand's own memory.
 *
 * A window that slides along the lanes (the taps of a convolution) reads nearly the same elements at
 * each of its steps: they are copied once, a row as long as the lanes and the window together. */
#include "optimise.h"

#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

enum {
  MAX_RANGES = 24,
  MAX_ROUNDS_UNROLLED = 8 /* of a group that fills a copy */
};

/* What is copied when, and where to. */
typedef struct {
  TinyNode *load;
  TinyNode *ranges[MAX_RANGES], *copied[MAX_RANGES]; /* as read; as filled. Innermost last */
  guint n;
  gint64 n_elements;
  TinyNode *window, *copies, *lanes; /* of a row: a loop, the UPCAST or NULL, the LANES */
  gint64 n_row;                      /* elements of a row that are read */
} Copy;

TinyNode *
tiny_axes_find_operand (TinyAxes *self, gint64 operand)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM && operand-- == 0)
      return node;
  }
  return NULL;
}

/* What one copy of @stage takes, when @amount more is split off axis @split. */
static gint64
count_copy_bytes (TinyAxes *self, const TinyStage *stage, guint split, gint64 amount)
{
  gint64 n = (gint64) tiny_dtype_get_n_bytes (stage->load->dtype);
  for (guint o = 0; o < self->origins->len; o++) {
    const TinyOrigin *origin = &g_array_index (self->origins, TinyOrigin, o);
    if (!tiny_node_depends_on (self->cg->graph, stage->load, origin->range))
      continue;
    for (guint i = 0; i < origin->inner->len; i++)
      n *= tiny_range_get_extent (origin->inner->pdata[i]);
    for (guint i = 0; i < self->axes->len; i++)
      if (tiny_axes_get (self, i)->origin == origin->range)
        n *= i >= stage->n_outside ? tiny_axes_get (self, i)->extent : i == split ? amount : 1;
  }
  return (n + 63) & ~G_GINT64_CONSTANT (63);
}

gint64
tiny_axes_count_stage_bytes (TinyAxes *self, guint split, gint64 amount)
{
  gint64 sum = 0;
  for (guint i = 0; i < self->stages->len; i++)
    sum += count_copy_bytes (self, &g_array_index (self->stages, TinyStage, i), split, amount);
  return sum;
}

/* The REDUCE over @range. */
static TinyNode *
find_reduce (TinyAxes *self, TinyNode *range)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->cg->graph, &self->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    for (guint s = 1; s < node->n_sources && node->op == TINY_OP_REDUCE; s++)
      if (node->sources[s] == range)
        return node;
  }
  return NULL;
}

TinyStage
tiny_axes_get_stage (TinyAxes *self, TinyOpt opt)
{
  TinyStage stage = { tiny_axes_find_operand (self, opt.amount), opt.axis + 1, NULL };
  if (opt.axis >= self->n_outputs)
    stage.reduce = find_reduce (self, tiny_axes_get (self, opt.axis)->origin);
  return stage;
}

/* Why no copy can be made in the loop of the axis, or NULL. */
static const char *
object_to_axis (TinyAxes *self, guint axis, TinyNode *load)
{
  TinyGraph *graph = self->cg->graph;
  if (axis >= self->n_outputs) {
    TinyNode *range = tiny_axes_get (self, axis)->origin, *reduce = find_reduce (self, range);
    for (guint i = self->n_outputs; i < self->axes->len; i++)
      if (tiny_node_depends_on (graph, reduce, tiny_axes_get (self, i)->origin))
        return "the reduction is inside another one";
    for (guint i = self->n_outputs; i < axis;
         i++) /* of a reduction that what it combines is made of */
      if (tiny_node_depends_on (graph, load, tiny_axes_get (self, i)->origin)
          && !tiny_axes_involves (graph, reduce, tiny_axes_get (self, i)->origin))
        return "the operand has an axis of another reduction, which is inside";
    return tiny_node_depends_on (graph, load, range) ? NULL
                                                     : "the operand does not have the axis";
  }
  for (guint i = 0; i <= axis; i++)
    if (!tiny_axes_all_stores_depend_on (self, tiny_axes_get (self, i)->origin))
      return "a store does not have the axis";
  for (guint i = axis + 1; i < self->n_outputs; i++)
    if (tiny_axes_get (self, i)->kind == TINY_RANGE_GRID)
      return "an axis inside is on the grid";
  return NULL;
}

/* A copy is made in loops that all stores share, or in those of a reduction, of what can be read
 * without reading something else. */
const char *
tiny_axes_object_to_stage (TinyAxes *self, TinyOpt opt)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *load = opt.amount < 0 ? NULL : tiny_axes_find_operand (self, opt.amount);
  if (load == NULL)
    return "there is no such operand";
  const char *why = object_to_axis (self, opt.axis, load);
  if (why != NULL)
    return why;
  for (guint i = 0; i < self->stages->len; i++) {
    if (g_array_index (self->stages, TinyStage, i).load == load)
      return "the operand is staged";
    /* One filled inside the loops of another may be read before it is. */
    if (g_array_index (self->stages, TinyStage, i).n_outside != opt.axis + 1)
      return "another operand is staged at another axis";
  }
  for (guint i = 0; i < self->root->n_sources; i++)
    if (self->root->sources[i]->sources[0] == load->sources[0])
      return "the operand is stored to";
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (graph, load->sources + 1, load->n_sources - 1);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_LOAD
        || ((TinyNode *) order->pdata[i])->op == TINY_OP_REDUCE)
      return "the operand's place is computed";
  TinyStage stage = tiny_axes_get_stage (self, opt);
  gint64 n_bytes = count_copy_bytes (self, &stage, G_MAXUINT, 1)
                   + tiny_axes_count_all_bytes (self, G_MAXUINT, 1, TINY_RANGE_LOOP);
  return n_bytes <= (gint64) self->cg->target->local_bytes
             ? NULL
             : "the copy would not fit local memory";
}

/* Loops in their order, then copies, items along the group's first axis next to each other, lanes
 * last. */
static guint
place_of (TinyNode *range)
{
  static const guint places[] = { [TINY_RANGE_UNROLL] = 1,
                                  [TINY_RANGE_UPCAST] = 2,
                                  [TINY_RANGE_GROUP] = 3,
                                  [TINY_RANGE_LANES] = 4 };
  TinyRangeKind kind = tiny_range_get_kind (range);
  guint place = kind < G_N_ELEMENTS (places) ? places[kind] : 0;
  guint number = tiny_range_get_number (range);
  return place << 24 | (kind == TINY_RANGE_GROUP ? 0xffffff - number : number);
}

static gboolean
is_outside (TinyAxes *self, guint n_outside, TinyNode *range)
{
  for (guint i = 0; i < n_outside; i++)
    if (tiny_axes_get (self, i)->node == range)
      return TRUE;
  return FALSE;
}

/* The ranges of @load that run inside the first @n_outside axes, in the order of the copy. */
static gboolean
find_inside (TinyAxes *self, TinyNode *load, guint n_outside, Copy *out)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->cg->graph, load, &n);
  *out = (Copy){ .load = load, .n_elements = 1 };
  for (guint i = 0; i < n; i++) {
    if (is_outside (self, n_outside, ranges[i]))
      continue;
    if (out->n == MAX_RANGES)
      return FALSE;
    guint at = out->n++;
    for (; at > 0 && place_of (out->ranges[at - 1]) > place_of (ranges[i]); at--)
      out->ranges[at] = out->ranges[at - 1];
    out->ranges[at] = ranges[i];
    out->n_elements *= tiny_range_get_extent (ranges[i]);
  }
  return out->n > 0;
}

/* ---- windows ---- */
/* Whether @gate sees the window and the lanes only as their sum, which is as @self counts it. */
static gboolean
sees_sum (TinyGraph *graph, TinyNode *gate, const Copy *self)
{
  TinyNode *const parts[] = { self->lanes, self->window, self->copies };
  const gint64 weights[] = { 1, 1, tiny_range_get_extent (self->lanes) };
  gboolean depends = FALSE;
  gint64 x, y, scale = 0;
  for (guint i = 0; i < 3; i++)
    depends = depends || (parts[i] != NULL && tiny_node_depends_on (graph, gate, parts[i]));
  if (!depends)
    return TRUE;
  if (gate->op == TINY_OP_AND || gate->op == TINY_OP_OR)
    return sees_sum (graph, gate->sources[0], self) && sees_sum (graph, gate->sources[1], self);
  if (gate->op != TINY_OP_CMPLT || gate->sources[0]->dtype != TINY_DTYPE_INDEX)
    return FALSE;
  for (guint i = 0; i < 3 && parts[i] != NULL; i++) {
    if (!tiny_index_stride (graph, gate->sources[0], parts[i], &x)
        || !tiny_index_stride (graph, gate->sources[1], parts[i], &y))
      return FALSE;
    scale = i == 0 ? x - y : scale;
    if (x - y != scale * weights[i])
      return FALSE;
  }
  return TRUE;
}

static gboolean
has_stride (TinyGraph *graph, TinyNode *load, TinyNode *range, gint64 wanted)
{
  gint64 stride;
  return tiny_index_stride (graph, load->sources[1], range, &stride) && stride == wanted;
}

/* Finds a window: a loop with the stride of the lanes, so that both count along one row. */
static void
find_window (TinyAxes *self, Copy *copy)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *load = copy->load, *last = copy->ranges[copy->n - 1];
  if (tiny_range_get_kind (last) != TINY_RANGE_LANES || !has_stride (graph, load, last, 1))
    return;
  copy->lanes = last;
  copy->n_row = tiny_range_get_extent (last);
  if (copy->n > 1 && tiny_range_get_kind (copy->ranges[copy->n - 2]) == TINY_RANGE_UPCAST
      && has_stride (graph, load, copy->ranges[copy->n - 2], copy->n_row)) {
    copy->copies = copy->ranges[copy->n - 2];
    copy->n_row *= tiny_range_get_extent (copy->copies);
  }
  for (guint i = 0; i < copy->n && copy->window == NULL; i++) {
    copy->window = copy->ranges[i];
    if (tiny_range_get_kind (copy->window) != TINY_RANGE_REDUCE
        || !has_stride (graph, load, copy->window, 1)
        || (load->n_sources > 2 && !sees_sum (graph, load->sources[2], copy)))
      copy->window = NULL;
  }
  if (copy->window != NULL)
    copy->n_row += tiny_range_get_extent (copy->window) - 1;
}

gboolean
tiny_axes_has_window (TinyAxes *self, TinyNode *load, TinyNode *along)
{
  TinyGraph *graph = self->cg->graph;
  for (guint i = self->n_outputs; i < self->axes->len; i++) {
    const Copy copy = { .lanes = along, .window = tiny_axes_get (self, i)->origin };
    if (has_stride (graph, load, copy.window, 1)
        && (load->n_sources == 2 || sees_sum (graph, load->sources[2], &copy)))
      return TRUE;
  }
  return FALSE;
}

/* What is left of the ranges without those that count along the row. */
static void
take_row (Copy *copy)
{
  guint n = 0;
  for (guint i = 0; i < copy->n; i++)
    if (copy->ranges[i] != copy->window && copy->ranges[i] != copy->copies
        && copy->ranges[i] != copy->lanes)
      copy->ranges[n++] = copy->ranges[i];
  copy->n = n;
}

/* ---- copies ---- */
static TinyNode *
copy_range (TinyAxes *self, TinyNode *range, TinyRangeKind kind)
{
  return tiny_node_range_const (self->cg->graph, self->n_numbers++, kind,
                                tiny_range_get_extent (range));
}

/* Fresh ranges for the copy. Lanes stay lanes where the operand has neighbours along them. */
static void
make_ranges (TinyAxes *self, Copy *copy)
{
  TinyGraph *graph = self->cg->graph;
  for (guint i = 0; i < copy->n; i++) {
    TinyRangeKind kind = tiny_range_get_kind (copy->ranges[i]);
    if (kind == TINY_RANGE_REDUCE
        || (kind == TINY_RANGE_LANES && !has_stride (graph, copy->load, copy->ranges[i], 1)))
      kind = TINY_RANGE_LOOP;
    copy->copied[i] = copy_range (self, copy->ranges[i], kind);
  }
}

TinyNode *
tiny_axes_add_scaled (TinyGraph *graph, TinyNode *sum, TinyNode *x, gint64 scale)
{
  return tiny_fold_binary (
      graph, TINY_OP_ADD, sum,
      tiny_fold_binary (graph, TINY_OP_MUL, x, tiny_node_const_index (graph, scale)));
}

TinyNode *
tiny_axes_flatten (TinyAxes *self, TinyNode *const *ranges, guint n, gint64 stride)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *flat = tiny_node_const_index (graph, 0);
  for (guint i = n; i-- > 0; stride *= tiny_range_get_extent (ranges[i]))
    flat = tiny_axes_add_scaled (graph, flat, ranges[i], stride);
  return flat;
}

/* @load over the copied ranges and @along its row; past the row's end it reads nothing. */
static TinyNode *
load_row (TinyAxes *self, Copy *copy, TinyNode *along)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *load = copy->load, *zero = tiny_node_const_index (graph, 0);
  TinyNode *from[] = { copy->window, copy->lanes, copy->copies };
  TinyNode *to[] = { zero, along, zero }, *sources[4];
  load = tiny_codegen_replace (graph, load, copy->ranges, copy->copied, copy->n);
  load = tiny_codegen_replace (graph, load, from, to, copy->copies ? 3 : 2);
  TinyNode *gate = tiny_fold_binary (graph, TINY_OP_CMPLT, along,
                                     tiny_node_const_index (graph, copy->n_row));
  for (guint i = 0; i < load->n_sources; i++)
    sources[i] = load->sources[i];
  sources[2] = load->n_sources > 2
                   ? tiny_fold_binary (graph, TINY_OP_AND, load->sources[2], gate)
                   : gate;
  if (load->n_sources == 2)
    sources[3] = tiny_node_const_int (graph, load->dtype, 0);
  return tiny_node_new (graph, TINY_OP_LOAD, load->dtype, 1, 4, sources, 0, NULL, NULL);
}

/* The loops that @stage's copy is made in. */
static guint
find_loops (TinyAxes *self, const TinyStage *stage, TinyNode **out)
{
  guint n = 0;
  for (guint i = 0; i < stage->n_outside; i++) {
    const TinyAxis *axis = tiny_axes_get (self, i);
    if (axis->node->op == TINY_OP_RANGE
        && (stage->reduce == NULL
            || tiny_axes_involves (self->cg->graph, stage->reduce, axis->origin)))
      out[n++] = axis->node;
  }
  return n;
}

/* ---- by one item ---- */
/* The index of the copy that it is filled at; what is stored there is left in *out_value. */
static TinyNode *
fill_alone (TinyAxes *self, Copy *copy, gint64 n_row, TinyNode **out_value)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *along = tiny_node_const_index (graph, 0);
  make_ranges (self, copy);
  if (copy->window != NULL) {
    gint64 lanes = tiny_range_get_extent (copy->lanes);
    along = copy_range (self, copy->lanes, TINY_RANGE_LANES);
    along = tiny_axes_add_scaled (
        graph, along,
        tiny_node_range_const (graph, self->n_numbers++, TINY_RANGE_UPCAST, n_row / lanes),
        lanes);
  }
  *out_value = copy->window ? load_row (self, copy, along)
                            : tiny_codegen_replace (graph, copy->load, copy->ranges,
                                                    copy->copied, copy->n);
  return tiny_fold_binary (graph, TINY_OP_ADD,
                           tiny_axes_flatten (self, copy->copied, copy->n, n_row), along);
}

/* ---- by a group ---- */
/* The ranges by how far the operand moves along them, the nearest last. */
static void
sort_by_stride (TinyGraph *graph, const Copy *copy, guint *out)
{
  gint64 strides[MAX_RANGES];
  for (guint i = 0; i < copy->n; i++) {
    if (!tiny_index_stride (graph, copy->load->sources[1], copy->ranges[i], &strides[i])
        || strides[i] == 0)
      strides[i] = G_MAXINT64;
    guint at = i;
    for (; at > 0 && ABS (strides[out[at - 1]]) < ABS (strides[i]); at--)
      out[at] = out[at - 1];
    out[at] = i;
  }
}

/* How many neighbours each item copies at once. */
static gint64
count_lanes (TinyAxes *self, const Copy *copy, TinyNode *nearest)
{
  const TinyTarget *target = self->cg->target;
  gint64 lanes = MIN (target->vector_bits / 8 / tiny_dtype_get_n_bytes (copy->load->dtype),
                      target->max_lanes);
  while (lanes > 1 && tiny_range_get_extent (nearest) % lanes != 0)
    lanes /= 2;
  return lanes > 1 && has_stride (self->cg->graph, copy->load, nearest, 1) ? lanes : 1;
}

static gint64
number_items (TinyAxes *self, TinyNode **out_number)
{
  gint64 n = 1;
  *out_number = tiny_node_const_index (self->cg->graph, 0);
  for (guint i = 0; i < self->n_items; i++) {
    *out_number = tiny_axes_add_scaled (self->cg->graph, *out_number, self->items[i], n);
    n *= tiny_range_get_extent (self->items[i]);
  }
  return n;
}

/* Makes copy->copied what each range is for the blocks of @lanes elements that an item copies, of
 * which @number is the number, in the order of the operand's memory. */
static void
take_digits (TinyAxes *self, Copy *copy, TinyNode *number, gint64 lanes)
{
  TinyGraph *graph = self->cg->graph;
  guint order[MAX_RANGES];
  sort_by_stride (graph, copy, order);
  for (guint i = copy->n; i-- > 0;) {
    gint64 n = tiny_range_get_extent (copy->ranges[order[i]]) / (i + 1 == copy->n ? lanes : 1);
    TinyNode *size = tiny_node_const_index (graph, n);
    TinyNode *digit
        = i == 0 ? number : tiny_fold_binary (graph, TINY_OP_FLOORMOD, number, size);
    number = tiny_fold_binary (graph, TINY_OP_FLOORDIV, number, size);
    if (i + 1 == copy->n && lanes > 1)
      digit = tiny_axes_add_scaled (
          graph, tiny_node_range_const (graph, self->n_numbers++, TINY_RANGE_LANES, lanes),
          digit, lanes);
    copy->copied[order[i]] = tiny_simplify_index (graph, digit);
  }
}

/* @load where @gate says so, 0 elsewhere. */
static TinyNode *
gate_load (TinyGraph *graph, TinyNode *load, TinyNode *gate)
{
  gboolean gated = load->n_sources > 2;
  TinyNode *sources[]
      = { load->sources[0], load->sources[1],
          gated ? tiny_fold_binary (graph, TINY_OP_AND, load->sources[2], gate) : gate,
          gated ? load->sources[3] : tiny_node_const_int (graph, load->dtype, 0) };
  return tiny_node_new (graph, TINY_OP_LOAD, load->dtype, 1, 4, sources, 0, NULL, NULL);
}

/* As fill_alone (). *out_gate: which items copy something in the last round, or NULL. */
static TinyNode *
fill_together (TinyAxes *self, Copy *copy, TinyNode **out_value, TinyNode **out_gate)
{
  TinyGraph *graph = self->cg->graph;
  guint order[MAX_RANGES];
  TinyNode *number;
  sort_by_stride (graph, copy, order);
  gint64 lanes = count_lanes (self, copy, copy->ranges[order[copy->n - 1]]);
  gint64 n_items = number_items (self, &number), n_blocks = copy->n_elements / lanes;
  gint64 n_rounds = (n_blocks + n_items - 1) / n_items;
  if (n_rounds > 1) {
    TinyRangeKind kind = n_rounds <= MAX_ROUNDS_UNROLLED ? TINY_RANGE_UPCAST : TINY_RANGE_LOOP;
    TinyNode *round = tiny_node_range_const (graph, self->n_numbers++, kind, n_rounds);
    number = tiny_axes_add_scaled (graph, number, round, n_items);
  }
  take_digits (self, copy, number, lanes);
  TinyNode *value
      = tiny_codegen_replace (graph, copy->load, copy->ranges, copy->copied, copy->n);
  *out_gate = NULL;
  if (n_rounds * n_items > n_blocks) {
    *out_gate = tiny_fold_binary (graph, TINY_OP_CMPLT, number,
                                  tiny_node_const_index (graph, n_blocks));
    value = gate_load (graph, value, *out_gate);
  }
  *out_value = value;
  TinyNode *index = tiny_node_const_index (graph, 0);
  gint64 scale = 1;
  for (guint i = copy->n; i-- > 0; scale *= tiny_range_get_extent (copy->ranges[i]))
    index = tiny_axes_add_scaled (graph, index, copy->copied[i], scale);
  return index;
}

TinyNode *
tiny_axes_stage (TinyAxes *self, const TinyStage *stage, TinyNode *load)
{
  TinyGraph *graph = self->cg->graph;
  Copy copy;
  if (load->op != TINY_OP_LOAD || !find_inside (self, load, stage->n_outside, &copy))
    return load;
  TinyNode *place = tiny_node_const_index (graph, 0), *value, *gate = NULL;
  gint64 n_row = 1;
  if (self->n_items == 0 && stage->reduce == NULL)
    find_window (self, &copy);
  if (copy.window != NULL) {
    gint64 lanes = tiny_range_get_extent (copy.lanes), n = (copy.n_row + lanes - 1) / lanes;
    n_row = n * lanes;
    copy.n_elements /= tiny_range_get_extent (copy.window) * lanes
                       * (copy.copies ? tiny_range_get_extent (copy.copies) : 1);
    copy.n_elements *= n_row;
    take_row (&copy);
    place = tiny_fold_binary (graph, TINY_OP_ADD, copy.lanes, copy.window);
    if (copy.copies != NULL)
      place = tiny_axes_add_scaled (graph, place, copy.copies, lanes);
  }
  g_autofree TinyNode **loops = g_new (TinyNode *, stage->n_outside);
  guint n_loops = find_loops (self, stage, loops);
  TinyNode *memory
      = tiny_node_new (graph, TINY_OP_LOCAL, load->dtype, 1, n_loops, loops, self->n_locals++,
                       tiny_graph_ints (graph, &copy.n_elements, 1), NULL);
  TinyNode *to = self->n_items > 0 ? fill_together (self, &copy, &value, &gate)
                                   : fill_alone (self, &copy, n_row, &value);
  TinyNode *from = tiny_axes_flatten (self, copy.ranges, copy.n, n_row);
  TinyNode *filled[] = { memory, to, value, gate };
  TinyNode *store = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, gate ? 4 : 3,
                                   filled, 0, NULL, NULL);
  g_ptr_array_add (self->fills, tiny_axes_gate_items (self, store));
  TinyNode *read[] = { memory, tiny_fold_binary (graph, TINY_OP_ADD, from, place) };
  return tiny_node_new (graph, TINY_OP_LOAD, load->dtype, 1, 2, read, 0, NULL, NULL);
}
