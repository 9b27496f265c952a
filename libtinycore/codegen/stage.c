/* SPDX-License-Identifier: MIT
 *
 * stage.c: an operand is copied to LOCAL memory in the order in which it is read.
 *
 * STAGE(axis, operand) splits the ranges that a LOAD depends on at an output axis: those up to it
 * stay what they are, those inside of it are what one copy spans. A STORE of its own over fresh
 * ranges fills the copy in each round of the outer ones, and the LOAD reads it there: neighbours in
 * time are neighbours in memory, without gates, whatever the operand's own layout is. */
#include "optimise.h"

#include "rewrite/tiny-bounds.h"

enum { MAX_RANGES = 24 };

/* What is copied when, and where to. */
typedef struct {
  TinyNode *load;
  TinyNode *ranges[MAX_RANGES], *copied[MAX_RANGES]; /* as read; as filled. Innermost last */
  guint n;
  gint64 n_elements;
} Copy;

TinyNode *
tiny_axes_find_operand (TinyAxes *self, gint64 operand)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->cg->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM && operand-- == 0)
      return node;
  }
  return NULL;
}

/* Loops in their order, then copies, lanes last. */
static guint
place_of (TinyNode *range)
{
  static const guint places[]
      = { [TINY_RANGE_UNROLL] = 1, [TINY_RANGE_UPCAST] = 2, [TINY_RANGE_LANES] = 3 };
  TinyRangeKind kind = tiny_range_get_kind (range);
  guint place = kind < G_N_ELEMENTS (places) ? places[kind] : 0;
  return place << 24 | tiny_range_get_number (range);
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

/* Fresh ranges for the copy. Lanes stay lanes where the operand has neighbours along them. */
static void
make_ranges (TinyAxes *self, Copy *copy)
{
  TinyGraph *graph = self->cg->graph;
  for (guint i = 0; i < copy->n; i++) {
    TinyRangeKind kind = tiny_range_get_kind (copy->ranges[i]);
    gint64 stride;
    gboolean even = tiny_index_stride (graph, copy->load->sources[1], copy->ranges[i], &stride);
    if (kind == TINY_RANGE_REDUCE || (kind == TINY_RANGE_LANES && (!even || stride != 1)))
      kind = TINY_RANGE_LOOP;
    copy->copied[i] = tiny_node_range_const (graph, self->n_numbers++, kind,
                                             tiny_range_get_extent (copy->ranges[i]));
  }
}

static TinyNode *
flatten (TinyAxes *self, TinyNode *const *ranges, guint n)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *flat = tiny_node_const_index (graph, 0);
  gint64 stride = 1;
  for (guint i = n; i-- > 0; stride *= tiny_range_get_extent (ranges[i]))
    flat = tiny_fold_binary (graph, TINY_OP_ADD, flat,
                             tiny_fold_binary (graph, TINY_OP_MUL, ranges[i],
                                               tiny_node_const_index (graph, stride)));
  return flat;
}

static guint
count_locals (TinyGraph *graph, TinyNode *root)
{
  guint n = 0;
  for (guint i = 0; i < root->n_sources; i++)
    if (root->sources[i]->sources[0]->op == TINY_OP_LOCAL)
      n = MAX (n, (guint) root->sources[i]->sources[0]->arg + 1);
  return n;
}

TinyNode *
tiny_axes_stage (TinyAxes *self, guint n_outside, TinyNode *load)
{
  TinyGraph *graph = self->cg->graph;
  Copy copy;
  if (load->op != TINY_OP_LOAD || !find_inside (self, load, n_outside, &copy))
    return load;
  make_ranges (self, &copy);
  g_autofree TinyNode **loops = g_new (TinyNode *, n_outside);
  guint n_loops = 0;
  for (guint i = 0; i < n_outside; i++)
    if (tiny_axes_get (self, i)->node->op == TINY_OP_RANGE)
      loops[n_loops++] = tiny_axes_get (self, i)->node;
  TinyNode *memory = tiny_node_new (graph, TINY_OP_LOCAL, load->dtype, 1, n_loops, loops,
                                    count_locals (graph, self->cg->root) + self->staged->len,
                                    tiny_graph_ints (graph, &copy.n_elements, 1), NULL);
  TinyNode *filled[] = { memory, flatten (self, copy.copied, copy.n),
                         tiny_codegen_replace (graph, load, copy.ranges, copy.copied, copy.n) };
  g_ptr_array_add (self->staged, tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3,
                                                filled, 0, NULL, NULL));
  TinyNode *read[] = { memory, flatten (self, copy.ranges, copy.n) };
  return tiny_node_new (graph, TINY_OP_LOAD, load->dtype, 1, 2, read, 0, NULL, NULL);
}
