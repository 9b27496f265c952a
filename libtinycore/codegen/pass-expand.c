/* SPDX-License-Identifier: MIT
 *
 * pass-expand.c: UPCAST and UNROLL ranges become copies, LANES ranges become vectors.
 *
 * Every node gets one copy for each combination of those UPCAST and UNROLL ranges that it depends
 * on, made from the right copies of its sources; hash-consing and folding join what turns out
 * equal. A node has lanes when one of its sources has; scalars enter through VECTOR. Loads and
 * stores whose address grows evenly along the lanes are found before (mark_accesses): their index
 * becomes that of lane 0, and arg says how many lanes of which stride are meant. A load that is
 * consecutive along an UPCAST axis instead, in as many copies as there are lanes, reads vectors along
 * that axis and turns the square.
 *
 * A REDUCE over UNROLL parts either keeps one accumulator for each (few: they hide latency) or
 * combines the parts before they are accumulated (many: registers are short). Lanes that a REDUCE
 * closes are combined after its loops, halves of vectors with halves. */
#include "codegen/codegen-private.h"

#include <string.h>

#include "base/tiny-error.h"
#include "rewrite/tiny-bounds.h"

enum { MAX_AXES = 24, MAX_ACCUMULATORS = 8 };

/* The copies of a node: one for each combination of the axes it depends on, last axis fastest. */
typedef struct {
  guint n_axes, n_copies;
  TinyNode *axes[MAX_AXES];
  TinyNode **copies;
} Copies;

typedef struct {
  TinyGraph *graph;
  const TinyTarget *target;
  TinyNodeMap map; /* Copies */
  GPtrArray *all;
  GHashTable *places; /* RANGE to its expression in GRIDs, or its GROUP */
  GPtrArray *scratch;
} Expand;

static void
copies_free (Copies *copies)
{
  g_free (copies->copies);
  g_free (copies);
}

static void
expand_clear (Expand *self)
{
  tiny_node_map_clear (&self->map);
  g_ptr_array_unref (self->all);
  g_ptr_array_unref (self->scratch);
  g_hash_table_unref (self->places);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Expand, expand_clear)

static gboolean
is_expanded (TinyNode *range)
{
  TinyRangeKind kind = tiny_range_get_kind (range);
  return kind == TINY_RANGE_UPCAST || kind == TINY_RANGE_UNROLL;
}

/* ---- vectors ---- */
static TinyNode *
broadcast (TinyGraph *graph, TinyNode *x, guint lanes)
{
  if (x->lanes == lanes)
    return x;
  if (x->op == TINY_OP_CONST)
    return tiny_node_new (graph, TINY_OP_CONST, x->dtype, lanes, 0, NULL, x->arg, NULL, NULL);
  return tiny_node_new (graph, TINY_OP_VECTOR, x->dtype, lanes, 1, &x, 0, NULL, NULL);
}

static TinyNode *
extract (TinyGraph *graph, TinyNode *x, guint lane)
{
  if (x->lanes == 1)
    return x;
  if (x->op == TINY_OP_VECTOR)
    return x->sources[x->n_sources == 1 ? 0 : lane];
  if (x->op == TINY_OP_CONST)
    return tiny_node_new (graph, TINY_OP_CONST, x->dtype, 1, 0, NULL, x->arg, NULL, NULL);
  if (x->op == TINY_OP_LANES)
    return tiny_node_const_index (graph, lane);
  return tiny_node_new (graph, TINY_OP_EXTRACT, x->dtype, 1, 1, &x, lane, NULL, NULL);
}

/* @address of lane @lane: an even access counts from lane 0, another has a vector of addresses. */
static TinyNode *
lane_address (TinyGraph *graph, TinyNode *address, gint64 stride, guint lane)
{
  if (address->lanes > 1)
    return extract (graph, address, lane);
  return tiny_fold_binary (graph, TINY_OP_ADD, address,
                           tiny_node_const_index (graph, stride * lane));
}

static gboolean
can_be_vector (Expand *self, TinyNode *address, TinyNode *gate, guint lanes)
{
  if (gate != NULL && gate->lanes > 1 && !(self->target->flags & TINY_TARGET_MASKED))
    return FALSE;
  return (self->target->flags & TINY_TARGET_UNALIGNED)
         || tiny_node_get_divisor (address) % lanes == 0;
}

static TinyNode *
make_load (Expand *self, TinyNode *node, TinyNode **s)
{
  TinyGraph *graph = self->graph;
  gboolean gated = node->n_sources > 2;
  guint lanes = (guint) (node->arg & 0xffff);
  gint64 stride = node->arg >> 16;
  for (guint i = 1; i < node->n_sources; i++)
    lanes = MAX (lanes, s[i]->lanes);
  if (lanes <= 1)
    return tiny_fold_node (graph, node, 1, s);
  TinyNode *like
      = tiny_node_new (graph, TINY_OP_LOAD, node->dtype, 1, node->n_sources, s, 0, NULL, NULL);
  if (s[1]->lanes == 1 && stride == 1
      && can_be_vector (self, s[1], gated ? s[2] : NULL, lanes)) {
    if (gated)
      s[3] = broadcast (graph, s[3], lanes);
    return tiny_fold_node (graph, like, lanes, s);
  }
  if (s[1]->lanes == 1 && stride == 0 && (!gated || s[2]->lanes == 1)
      && (!gated || s[3]->lanes == 1))
    return tiny_fold_node (graph, like, 1, s);
  g_autofree TinyNode **parts = g_new (TinyNode *, lanes);
  for (guint lane = 0; lane < lanes; lane++) {
    TinyNode *one[4] = { s[0], lane_address (graph, s[1], stride, lane) };
    for (guint i = 2; i < node->n_sources; i++)
      one[i] = extract (graph, s[i], lane);
    parts[lane] = tiny_fold_node (graph, like, 1, one);
  }
  return tiny_node_new (graph, TINY_OP_VECTOR, node->dtype, lanes, lanes, parts, 0, NULL, NULL);
}

/* Adds the STORE, or one for each lane, to scratch. */
static void
make_store (Expand *self, TinyNode *node, TinyNode **s)
{
  TinyGraph *graph = self->graph;
  guint lanes = (guint) (node->arg & 0xffff);
  gint64 stride = node->arg >> 16;
  gboolean gated = node->n_sources > 3;
  for (guint i = 1; i < node->n_sources; i++)
    lanes = MAX (lanes, s[i]->lanes);
  if (gated && tiny_node_is_const_int (s[3], 0))
    return;
  TinyNode *like = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, node->n_sources, s,
                                  0, NULL, NULL);
  if (lanes <= 1
      || (s[1]->lanes == 1 && stride == 1
          && can_be_vector (self, s[1], gated ? s[3] : NULL, lanes))) {
    s[2] = broadcast (graph, s[2], MAX (lanes, 1));
    g_ptr_array_add (self->scratch, tiny_fold_node (graph, like, MAX (lanes, 1), s));
    return;
  }
  for (guint lane = 0; lane < lanes; lane++) {
    TinyNode *one[4] = { s[0], lane_address (graph, s[1], stride, lane) };
    for (guint i = 2; i < node->n_sources; i++)
      one[i] = extract (graph, s[i], lane);
    if (!gated || !tiny_node_is_const_int (one[3], 0))
      g_ptr_array_add (self->scratch, tiny_fold_node (graph, like, 1, one));
  }
}

static TinyNode *
make_node (Expand *self, TinyNode *node, TinyNode **sources)
{
  guint lanes = 1;
  if (node->op == TINY_OP_LOAD)
    return make_load (self, node, sources);
  for (guint i = 0; i < node->n_sources; i++)
    lanes = MAX (lanes, sources[i]->lanes);
  for (guint i = 0; i < node->n_sources && lanes > 1; i++)
    sources[i] = broadcast (self->graph, sources[i], lanes);
  return tiny_fold_node (self->graph, node, lanes, sources);
}

/* ---- copies ---- */
static Copies *
copies_new (Expand *self, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, node, &n);
  Copies *copies = g_new0 (Copies, 1);
  copies->n_copies = 1;
  for (guint i = 0; i < n; i++)
    if (is_expanded (ranges[i])) {
      g_assert (copies->n_axes < MAX_AXES);
      copies->axes[copies->n_axes++] = ranges[i];
      copies->n_copies *= tiny_range_get_extent (ranges[i]);
    }
  copies->copies = g_new (TinyNode *, copies->n_copies);
  g_ptr_array_add (self->all, copies);
  tiny_node_map_set (&self->map, node, copies);
  return copies;
}

/* How far @inner's copy moves when axis @axis steps. */
static guint
weight_of (Copies *inner, TinyNode *axis)
{
  guint weight = 1;
  for (guint i = inner->n_axes; i-- > 0;) {
    if (inner->axes[i] == axis)
      return weight;
    weight *= tiny_range_get_extent (inner->axes[i]);
  }
  return 0;
}

/* Calls for each copy of @node with its sources. */
typedef void (*CopyFunc) (
    Expand *self, TinyNode *node, TinyNode **sources, guint copy, gpointer user);

static void
for_each_copy (Expand *self, TinyNode *node, Copies *copies, CopyFunc make, gpointer user)
{
  guint n = node->n_sources, counter[MAX_AXES] = { 0 };
  g_autofree guint *weights = g_new0 (guint, n * copies->n_axes + 1);
  g_autofree guint *at = g_new0 (guint, n + 1);
  g_autofree TinyNode **sources = g_new (TinyNode *, n + 4);
  g_autofree Copies **inner = g_new (Copies *, n + 1);
  for (guint s = 0; s < n; s++) {
    inner[s] = tiny_node_map_get (&self->map, node->sources[s]);
    for (guint a = 0; a < copies->n_axes; a++)
      weights[s * copies->n_axes + a] = weight_of (inner[s], copies->axes[a]);
  }
  for (guint copy = 0; copy < copies->n_copies; copy++) {
    for (guint s = 0; s < n; s++)
      sources[s] = inner[s]->copies[at[s]];
    make (self, node, sources, copy, user);
    for (guint a = copies->n_axes; a-- > 0;) {
      guint extent = tiny_range_get_extent (copies->axes[a]);
      gboolean wraps = ++counter[a] == extent;
      for (guint s = 0; s < n; s++)
        at[s] += wraps ? -(extent - 1) * weights[s * copies->n_axes + a]
                       : weights[s * copies->n_axes + a];
      if (!wraps)
        break;
      counter[a] = 0;
    }
  }
}

static void
make_copy (Expand *self, TinyNode *node, TinyNode **sources, guint copy, gpointer user)
{
  ((Copies *) user)->copies[copy] = make_node (self, node, sources);
}

static void
make_store_copy (Expand *self, TinyNode *node, TinyNode **sources, guint copy, gpointer user)
{
  make_store (self, node, sources);
}

/* ---- squares that are turned ---- */
/* The UPCAST axis along which @node reads consecutive elements that its lanes do not, or NULL. */
static TinyNode *
find_turned_axis (Expand *self, TinyNode *node, Copies *copies)
{
  guint lanes = (guint) (node->arg & 0xffff);
  gint64 along_lanes = node->arg >> 16, stride;
  if (node->op != TINY_OP_LOAD || node->n_sources != 2 || along_lanes == 0 || along_lanes == 1
      || lanes < 2 || (lanes & (lanes - 1)) != 0
      || !(self->target->flags & TINY_TARGET_UNALIGNED))
    return NULL;
  for (guint i = 0; i < copies->n_axes; i++)
    if (tiny_range_get_kind (copies->axes[i]) == TINY_RANGE_UPCAST
        && tiny_range_get_extent (copies->axes[i]) % lanes == 0
        && tiny_index_stride (self->graph, node->sources[1], copies->axes[i], &stride)
        && stride == 1)
      return copies->axes[i];
  return NULL;
}

typedef struct {
  Copies *copies;
  TinyNode *axis;
} Turned;

/* Makes all copies of a square at its first one. */
static void
make_turned (Expand *self, TinyNode *node, TinyNode **sources, guint copy, gpointer user)
{
  const Turned *turned = user;
  guint lanes = (guint) (node->arg & 0xffff), weight = weight_of (turned->copies, turned->axis);
  if (copy / weight % tiny_range_get_extent (turned->axis) % lanes != 0)
    return;
  g_autofree TinyNode **rows = g_new (TinyNode *, lanes);
  for (guint i = 0; i < lanes; i++) {
    TinyNode *of_row[]
        = { sources[0], lane_address (self->graph, sources[1], node->arg >> 16, i) };
    rows[i] = tiny_node_new (self->graph, TINY_OP_LOAD, node->dtype, lanes, 2, of_row, 0, NULL,
                             NULL);
  }
  tiny_turn_square (self->graph, rows, lanes);
  for (guint i = 0; i < lanes; i++)
    turned->copies->copies[copy + i * weight] = rows[i];
}

/* ---- reduces ---- */
/* parts[0] op parts[1] op …, as a tree. */
static TinyNode *
combine (TinyGraph *graph, TinyOp op, TinyNode **parts, guint n)
{
  for (; n > 1; n = (n + 1) / 2)
    for (guint i = 0; i < n / 2; i++)
      parts[i] = tiny_node_binary (graph, op, parts[i], parts[(n + 1) / 2 + i]);
  return parts[0];
}

/* Its lanes from @first on, as a vector of @n. */
static TinyNode *
part_of_lanes (TinyGraph *graph, TinyNode *x, guint first, guint n)
{
  g_autofree TinyNode **lanes = g_new (TinyNode *, n);
  for (guint i = 0; i < n; i++)
    lanes[i] = extract (graph, x, first + i);
  return n == 1 ? lanes[0]
                : tiny_node_new (graph, TINY_OP_VECTOR, x->dtype, n, n, lanes, 0, NULL, NULL);
}

/* The tree of combine (), as long as it can be in vectors: the lower half with the upper one. */
static TinyNode *
combine_lanes (TinyGraph *graph, TinyOp op, TinyNode *x)
{
  while (x->lanes % 2 == 0) {
    guint n = x->lanes / 2;
    x = tiny_node_binary (graph, op, part_of_lanes (graph, x, 0, n),
                          part_of_lanes (graph, x, n, n));
  }
  g_autofree TinyNode **lanes = g_new (TinyNode *, x->lanes);
  for (guint i = 0; i < x->lanes; i++)
    lanes[i] = extract (graph, x, i);
  return combine (graph, op, lanes, x->lanes);
}

typedef struct {
  Copies *outer; /* of the REDUCE */
  guint weights[MAX_AXES];
  GPtrArray **parts; /* for each copy of it: the unrolled values */
} Parts;

/* Sorts the copies of the value by the copy of the REDUCE that combines them. */
static Parts
sort_parts (Copies *value, Copies *outer)
{
  Parts parts = { .outer = outer, .parts = g_new (GPtrArray *, outer->n_copies) };
  for (guint i = 0; i < outer->n_copies; i++)
    parts.parts[i] = g_ptr_array_new ();
  for (guint i = 0; i < value->n_copies; i++) {
    guint rest = i, copy = 0;
    for (guint a = value->n_axes; a-- > 0;) {
      guint extent = tiny_range_get_extent (value->axes[a]);
      copy += rest % extent * weight_of (outer, value->axes[a]);
      rest /= extent;
    }
    g_ptr_array_add (parts.parts[copy], value->copies[i]);
  }
  return parts;
}

static TinyNode *
make_reduce (
    Expand *self, TinyNode *node, TinyNode *value, TinyNode *const *loops, guint n_loops)
{
  if (n_loops == 0)
    return value;
  g_autofree TinyNode **sources = g_new (TinyNode *, n_loops + 1);
  sources[0] = value;
  memcpy (sources + 1, loops, n_loops * sizeof *loops);
  return tiny_node_new (self->graph, TINY_OP_REDUCE, node->dtype, value->lanes, n_loops + 1,
                        sources, node->arg, NULL, NULL);
}

static void
expand_reduce (Expand *self, TinyNode *node, Copies *copies)
{
  Copies *value = tiny_node_map_get (&self->map, node->sources[0]);
  g_autofree TinyNode **loops = g_new (TinyNode *, node->n_sources);
  guint n_loops = 0, n_lanes = 1, repeats = 1;
  for (guint i = 1; i < node->n_sources; i++) {
    TinyRangeKind kind = tiny_range_get_kind (node->sources[i]);
    if (kind == TINY_RANGE_LANES)
      n_lanes = tiny_range_get_extent (node->sources[i]);
    else if (kind == TINY_RANGE_UNROLL && weight_of (value, node->sources[i]) == 0)
      repeats *= tiny_range_get_extent (node->sources[i]);
    else if (kind != TINY_RANGE_UNROLL)
      loops[n_loops++] = node->sources[i];
  }
  Parts parts = sort_parts (value, copies);
  for (guint c = 0; c < copies->n_copies; c++) {
    GPtrArray *own = parts.parts[c];
    guint n_own = own->len;
    for (guint r = 1; r < repeats; r++)
      for (guint i = 0; i < n_own; i++)
        g_ptr_array_add (own, own->pdata[i]);
    for (guint i = 0; i < own->len && n_lanes > 1; i++)
      own->pdata[i] = broadcast (self->graph, own->pdata[i], n_lanes);
    gboolean separate
        = n_loops > 0 && repeats == 1 && copies->n_copies * own->len <= MAX_ACCUMULATORS;
    TinyNode **all = (TinyNode **) own->pdata;
    for (guint i = 0; i < own->len && separate; i++)
      all[i] = make_reduce (self, node, all[i], loops, n_loops);
    TinyNode *result = combine (self->graph, node->arg, all, own->len);
    if (!separate)
      result = make_reduce (self, node, result, loops, n_loops);
    copies->copies[c] = n_lanes > 1 ? combine_lanes (self->graph, node->arg, result) : result;
    g_ptr_array_unref (own);
  }
  g_free (parts.parts);
}

/* ---- before ---- */
/* The LANES range that @node depends on; FALSE when there are several. */
static gboolean
find_lanes (TinyGraph *graph, TinyNode *node, TinyNode **out)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, node, &n);
  *out = NULL;
  for (guint i = 0; i < n; i++)
    if (tiny_range_get_kind (ranges[i]) == TINY_RANGE_LANES) {
      if (*out != NULL)
        return FALSE;
      *out = ranges[i];
    }
  return TRUE;
}

/* LOADs and STOREs whose index has a stride along the lanes get lane 0's index, and in arg the
 * number of lanes and the stride above 16 bits. */
static TinyNode *
mark_accesses (TinyCodegen *cg, GError **error)
{
  TinyGraph *graph = cg->graph;
  g_auto (TinyNodeMap) map = { 0 };
  TinyNode *zero = tiny_node_const_index (graph, 0), *range;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &cg->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_autofree TinyNode **many
        = node->n_sources > 6 ? g_new (TinyNode *, node->n_sources) : NULL;
    TinyNode *few[6], **sources = many ? many : few;
    gint64 stride, arg = node->arg;
    for (guint s = 0; s < node->n_sources; s++)
      sources[s] = tiny_node_map_get (&map, node->sources[s]);
    if (!find_lanes (graph, node, &range) && node->op != TINY_OP_SINK) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "optimisations: a value has lanes along two axes");
      return NULL;
    }
    /* Asked of the address as it was: one that is read from memory no longer shows its lanes. */
    if (range != NULL && (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
        && tiny_index_stride (graph, node->sources[1], range, &stride)
        && ABS (stride) < 1 << 30) {
      sources[1] = tiny_codegen_replace (graph, sources[1], &range, &zero, 1);
      arg = stride * 65536 + tiny_range_get_extent (range);
    }
    tiny_node_map_set (&map, node,
                       node->n_sources == 0
                           ? node
                           : tiny_node_new (graph, node->op, node->dtype, 1, node->n_sources,
                                            sources, arg, node->ints, node->text));
  }
  return tiny_node_map_get (&map, cg->root);
}

/* The kernel's RANGEs of @kind, innermost first. */
static GPtrArray *
find_ranges (GPtrArray *order, TinyRangeKind kind)
{
  GPtrArray *ranges = g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_RANGE || tiny_range_get_kind (node) != kind)
      continue;
    guint at = 0;
    while (at < ranges->len
           && tiny_range_get_number (ranges->pdata[at]) > tiny_range_get_number (node))
      at++;
    g_ptr_array_insert (ranges, at, node);
  }
  return ranges;
}

static void
assign_grid (Expand *self, GPtrArray *order)
{
  g_autoptr (GPtrArray) ranges = find_ranges (order, TINY_RANGE_GRID);
  guint n = ranges->len;
  g_autofree gint64 *extents = g_new (gint64, n + 1);
  g_autofree TinyNode **indices = g_new (TinyNode *, n + 1);
  TinyGrid grid;
  for (guint i = 0; i < n; i++)
    extents[i] = tiny_range_get_extent (ranges->pdata[i]);
  if (!tiny_grid_lay_out (self->target, extents, n, &grid))
    g_assert_not_reached (); /* GRID would not have been applied */
  tiny_grid_get_indices (self->graph, &grid, extents, n, indices);
  for (guint i = 0; i < n; i++)
    g_hash_table_insert (self->places, ranges->pdata[i], indices[i]);
}

/* The axes of the work-group, the first of which has the lowest number. */
static void
assign_items (Expand *self, GPtrArray *order)
{
  g_autoptr (GPtrArray) ranges = find_ranges (order, TINY_RANGE_GROUP);
  for (guint i = 0; i < ranges->len; i++) {
    gint64 extent = tiny_range_get_extent (ranges->pdata[i]);
    TinyNode *item
        = tiny_node_new (self->graph, TINY_OP_GROUP, TINY_DTYPE_INDEX, 1, 0, NULL,
                         ranges->len - 1 - i, tiny_graph_ints (self->graph, &extent, 1), NULL);
    g_hash_table_insert (self->places, ranges->pdata[i], item);
  }
}

static void
expand_range (Expand *self, TinyNode *node, Copies *copies)
{
  TinyGraph *graph = self->graph;
  TinyRangeKind kind = tiny_range_get_kind (node);
  for (guint i = 0; i < copies->n_copies && is_expanded (node); i++)
    copies->copies[i] = tiny_node_const_index (graph, i);
  if (kind == TINY_RANGE_LANES)
    copies->copies[0] = tiny_node_new (graph, TINY_OP_LANES, TINY_DTYPE_INDEX,
                                       tiny_range_get_extent (node), 0, NULL, 0, NULL, NULL);
  else if (kind == TINY_RANGE_GRID || kind == TINY_RANGE_GROUP)
    copies->copies[0] = g_hash_table_lookup (self->places, node);
  else if (!is_expanded (node))
    copies->copies[0] = node;
}

gboolean
tiny_pass_expand (TinyCodegen *cg, GError **error)
{
  if (cg->applied->len == 0)
    return TRUE;
  g_auto (Expand) self = { .graph = cg->graph, .target = cg->target };
  self.all = g_ptr_array_new_with_free_func ((GDestroyNotify) copies_free);
  self.scratch = g_ptr_array_new ();
  self.places = g_hash_table_new (NULL, NULL);
  TinyNode *root = mark_accesses (cg, error);
  if (root == NULL)
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &root, 1);
  assign_grid (&self, order);
  assign_items (&self, order);
  for (guint i = 0; i + 1 < order->len; i++) {
    TinyNode *node = order->pdata[i];
    Copies *copies = copies_new (&self, node);
    Turned turned = { copies, NULL };
    if (node->op == TINY_OP_RANGE)
      expand_range (&self, node, copies);
    else if (node->op == TINY_OP_REDUCE)
      expand_reduce (&self, node, copies);
    else if (node->op == TINY_OP_STORE)
      for_each_copy (&self, node, copies, make_store_copy, NULL);
    else if (node->n_sources == 0)
      copies->copies[0] = node;
    else if ((turned.axis = find_turned_axis (&self, node, copies)) != NULL)
      for_each_copy (&self, node, copies, make_turned, &turned);
    else
      for_each_copy (&self, node, copies, make_copy, copies);
  }
  cg->root = tiny_node_sink (cg->graph, self.scratch->len,
                             (TinyNode *const *) self.scratch->pdata, root->text);
  return TRUE;
}
