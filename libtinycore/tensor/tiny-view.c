/* SPDX-License-Identifier: MIT
 *
 * tiny-view.c: the steps of a view, forward and back.
 *
 * Steps are numbers in a row: for each an op, how many numbers it has, and those. Back they put a value
 * where it came from and, once only a part of what is before them was read, a mask beside it. */
#include "tensor/tiny-view.h"

#include <string.h>

#include "engine/runtime-private.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_STEPS = 64 }; /* in a view; what is moved more often is none */

static gboolean
is_step (const TinyNode *node)
{
  return (tiny_op_is_movement ((TinyOp) node->op) && node->op != TINY_OP_PAD)
         || node->op == TINY_OP_DETACH;
}

/* Whether movement of @x would become one node with it. */
static gboolean
merges (const TinyNode *x)
{
  return x->op == TINY_OP_RESHAPE || x->op == TINY_OP_EXPAND || x->op == TINY_OP_PERMUTE;
}

/* Whether @tensor goes with the end of the operation that has it as an argument, unseen by others. */
static gboolean
is_passing (TinyTensor *tensor)
{
  return tensor->base == NULL && tensor->views == NULL
         && g_atomic_int_get (&((GObject *) tensor)->ref_count) == 1;
}

/* ---- finding the steps ---- */
gboolean
tiny_view_begin (TinyBuild *self)
{
  TinyNode *x = self->n > 0 ? self->x[0] : NULL;
  if (x == NULL || self->tensors[0]->weak != TINY_WEAK_NONE)
    return TRUE;
  gboolean is_part = x->limits != NULL || self->tensors[0]->is_part;
  if (!is_part && is_passing (self->tensors[0]))
    return TRUE;
  self->base = x;
  if (is_part)
    return TRUE;
  self->viewed = x;
  if (merges (x)) /* no slot of a function's argument is negative */
    self->viewed = tiny_node_new (self->graph, TINY_OP_PARAM, (TinyDType) x->dtype, 1, 0, NULL,
                                  -1, x->shape, self->device);
  self->x[0] = self->viewed;
  return TRUE;
}

/* @detaches: with one more step, to what has no gradient. */
static gint64 *
list_steps (TinyNode *const *nodes, guint n, gboolean detaches, guint *out_n)
{
  guint size = detaches ? 2 : 0, at = 0;
  for (guint i = 0; i < n; i++)
    size += 2 + (nodes[i]->ints != NULL ? nodes[i]->ints->n : 0);
  gint64 *steps = g_new (gint64, size + 1);
  for (guint i = n; i-- > 0;) {
    const TinyInts *ints = nodes[i]->ints;
    guint count = ints != NULL ? ints->n : 0;
    steps[at++] = nodes[i]->op;
    steps[at++] = count;
    if (count > 0)
      memcpy (steps + at, ints->v, count * sizeof *steps);
    at += count;
  }
  if (detaches) {
    steps[at++] = TINY_OP_DETACH;
    steps[at] = 0;
  }
  *out_n = size;
  return steps;
}

/* What one step makes of @x. */
static TinyNode *
step_forward (TinyGraph *graph, TinyNode *x, const gint64 *step)
{
  TinyOp op = (TinyOp) step[0];
  return op == TINY_OP_DETACH ? tiny_layout_unary (graph, op, x)
                              : tiny_node_move (graph, op, x, step + 2, (guint) step[1]);
}

static TinyNode *
steps_forward (TinyGraph *graph, TinyNode *x, const gint64 *steps, guint n)
{
  for (guint at = 0; at < n; at += 2 + (guint) steps[at + 1])
    x = step_forward (graph, x, steps + at);
  return x;
}

TinyNode *
tiny_view_end (TinyBuild *self, TinyNode *node, gint64 **out_steps, guint *out_n_steps)
{
  TinyNode *chain[MAX_STEPS], *at = node;
  guint n = 0;
  *out_steps = NULL;
  if (node == NULL || self->viewed == NULL)
    return node;
  while (at != self->viewed && is_step (at) && n < MAX_STEPS) {
    chain[n++] = at;
    at = at->sources[0];
  }
  if (at == self->viewed)
    *out_steps = list_steps (chain, n, !tiny_is_grad_enabled (), out_n_steps);
  if (self->viewed == self->base)
    return node;
  return *out_steps != NULL
             ? steps_forward (self->graph, self->base, *out_steps, *out_n_steps)
             : tiny_graph_substitute (self->graph, node, &self->viewed, &self->base, 1);
}

/* ---- who is a view of what ---- */
static TinyTensor *first_base; /* of the tensors that have views */

static void
add_base (TinyTensor *self)
{
  self->previous_base = NULL;
  self->next_base = first_base;
  if (first_base != NULL)
    first_base->previous_base = self;
  first_base = self;
}

static void
remove_base (TinyTensor *self)
{
  if (self->next_base != NULL)
    self->next_base->previous_base = self->previous_base;
  if (self->previous_base != NULL)
    self->previous_base->next_base = self->next_base;
  else
    first_base = self->next_base;
  self->next_base = self->previous_base = NULL;
}

void
tiny_view_link (TinyTensor *self, TinyTensor *base, gint64 *steps, guint n_steps)
{
  self->base = base;
  self->steps = steps;
  self->n_steps = n_steps;
  self->previous_view = NULL;
  self->next_view = base->views;
  if (base->views != NULL)
    base->views->previous_view = self;
  else
    add_base (base);
  base->views = self;
}

void
tiny_view_unlink (TinyTensor *self)
{
  if (self->base == NULL)
    return;
  if (self->next_view != NULL)
    self->next_view->previous_view = self->previous_view;
  if (self->previous_view != NULL)
    self->previous_view->next_view = self->next_view;
  else
    self->base->views = self->next_view;
  if (self->base->views == NULL)
    remove_base (self->base);
  self->base = self->next_view = self->previous_view = NULL;
  g_clear_pointer (&self->steps, g_free);
}

/* Makes one step of @last and of @next after it, where that can be: parts of parts are parts. */
static gboolean
merge_steps (gint64 *last, const gint64 *next)
{
  if (last[0] != next[0] || (last[0] != TINY_OP_SHRINK && last[0] != TINY_OP_DETACH))
    return FALSE;
  for (gint64 i = 0; i < last[1]; i += 2) { /* of a SHRINK: where each axis begins and ends */
    last[2 + i + 1] = last[2 + i] + next[2 + i + 1];
    last[2 + i] += next[2 + i];
  }
  return TRUE;
}

/* The steps of @self and those of its view after them. */
static gint64 *
join_steps (const TinyTensor *self, const TinyTensor *view, guint *out_n)
{
  gint64 *steps = g_new (gint64, self->n_steps + view->n_steps + 1);
  guint last = 0, from = 0;
  memcpy (steps, self->steps, self->n_steps * sizeof *steps);
  for (guint at = 0; at < self->n_steps; at += 2 + (guint) steps[at + 1])
    last = at;
  if (self->n_steps > 0 && view->n_steps > 0 && merge_steps (steps + last, view->steps))
    from = 2 + (guint) view->steps[1];
  memcpy (steps + self->n_steps, view->steps + from, (view->n_steps - from) * sizeof *steps);
  *out_n = self->n_steps + view->n_steps - from;
  return steps;
}

void
tiny_view_forget (TinyTensor *self)
{
  while (self->views != NULL) {
    TinyTensor *view = self->views;
    guint n = 0;
    gint64 *steps = self->base != NULL ? join_steps (self, view, &n) : NULL;
    tiny_view_unlink (view);
    if (steps != NULL)
      tiny_view_link (view, self->base, steps, n);
  }
  tiny_view_unlink (self);
}

TinyTensor *
tiny_view_get_base (TinyTensor *self)
{
  while (self->base != NULL)
    self = self->base;
  return self;
}

/* The next tensor of the tree of views of @base after @at, without recursion: chains of views are long. */
static TinyTensor *
next_in_tree (TinyTensor *base, TinyTensor *at)
{
  if (at->views != NULL)
    return at->views;
  while (at != base && at->next_view == NULL)
    at = at->base;
  return at != base ? at->next_view : NULL;
}

TinyNode *
tiny_view_read (TinyTensor *self)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *node = steps_forward (graph, self->base->root.node, self->steps, self->n_steps);
  if (self->requires_grad) /* equal nodes are one, and gradients are to end at this */
    node = tiny_node_new (graph, TINY_OP_DETACH, (TinyDType) node->dtype, 1, 1, &node,
                          (gint64) self->variable, NULL, NULL);
  return node;
}

void
tiny_view_refresh (TinyTensor *base)
{
  for (TinyTensor *view = base; (view = next_in_tree (base, view)) != NULL;) {
    TinyNode *node = tiny_view_read (view);
    if (node != view->root.node)
      tiny_tensor_set_node (view, node);
    view->root.recording = view->base->root.recording;
  }
}

GHashTable *
tiny_view_list_all (void)
{
  GHashTable *roots = g_hash_table_new (NULL, NULL);
  for (TinyTensor *base = first_base; base != NULL; base = base->next_base)
    if (base->base == NULL)
      for (TinyTensor *view = base; (view = next_in_tree (base, view)) != NULL;)
        g_hash_table_insert (roots, &view->root, &base->root);
  return roots;
}

GHashTable *
tiny_view_list_roots (TinyTensor *base)
{
  GHashTable *roots = g_hash_table_new (NULL, NULL);
  for (TinyTensor *view = base; (view = next_in_tree (base, view)) != NULL;)
    g_hash_table_add (roots, &view->root);
  return roots;
}

gboolean
tiny_view_is_written (TinyTensor *self, GHashTable *written)
{
  return tiny_runtime_has_piece (tiny_runtime_get_memory (self->root.node), written);
}

void
tiny_view_refresh_all (void)
{
  for (TinyTensor *base = first_base; base != NULL; base = base->next_base)
    if (base->base == NULL)
      tiny_view_refresh (base);
}

void
tiny_view_refresh_written (GHashTable *written)
{
  for (TinyTensor *base = first_base; base != NULL; base = base->next_base)
    if (base->base == NULL && tiny_view_is_written (base, written))
      tiny_view_refresh (base);
}

/* What @self is if what it is a view of in the end is @node. */
static TinyNode *
read_from (TinyTensor *self, TinyNode *node)
{
  g_autoptr (GPtrArray) chain = g_ptr_array_new ();
  for (; self->base != NULL; self = self->base)
    g_ptr_array_add (chain, self);
  for (guint i = chain->len; i-- > 0;) {
    const TinyTensor *view = chain->pdata[i];
    node = steps_forward (tiny_runtime_get_graph (), node, view->steps, view->n_steps);
  }
  return node;
}

gboolean
tiny_view_is_same_part (TinyTensor *self, TinyTensor *other)
{
  TinyNode *node = tiny_view_get_base (self)->root.node;
  return tiny_shape_equal (node->shape, tiny_view_get_base (other)->root.node->shape)
         && read_from (self, node) == read_from (other, node);
}

gboolean
tiny_view_is_movement (const TinyNode *node)
{
  return tiny_op_is_movement ((TinyOp) node->op) || node->op == TINY_OP_DETACH
         || node->op == TINY_OP_LIMIT;
}

TinyMovedSearch
tiny_view_begin_search (const TinyNode *source)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  const guint32 no = tiny_graph_begin_mark (graph);
  return (TinyMovedSearch){ source, tiny_graph_begin_mark (graph), no };
}

gboolean
tiny_view_is_moved (const TinyMovedSearch *self, TinyNode *node)
{
  TinyNode *at = node;
  while (at != self->source && at->mark != self->yes && at->mark != self->no
         && tiny_view_is_movement (at))
    at = at->sources[0];
  const gboolean is_moved = at == self->source || at->mark == self->yes;
  for (; node != at; node = node->sources[0])
    node->mark = is_moved ? self->yes : self->no;
  return is_moved;
}

guint
tiny_view_count (TinyTensor *base, const TinyMovedSearch *search)
{
  guint n = 0;
  for (TinyTensor *view = base; (view = next_in_tree (base, view)) != NULL;)
    n += tiny_view_is_moved (search, view->root.node);
  return n;
}

/* ---- writing ---- */

/* @part of what a step read, where it came from in something of @shape; zeros elsewhere. */
static TinyNode *
step_back (TinyGraph *graph, TinyNode *part, const gint64 *step, const TinyInts *shape)
{
  const gint64 *v = step + 2;
  gint64 numbers[4 * TINY_MAX_RANK + 4], sign;
  switch ((TinyOp) step[0]) {
  case TINY_OP_RESHAPE:
    return tiny_node_reshape (graph, part, shape->v, shape->n);
  case TINY_OP_PERMUTE:
    for (guint i = 0; i < shape->n; i++)
      numbers[v[i]] = i;
    return tiny_node_permute (graph, part, numbers, shape->n);
  case TINY_OP_FLIP:
    return tiny_node_flip (graph, part, v, (guint) step[1]);
  case TINY_OP_SHRINK:
    for (guint i = 0; i < shape->n; i++) {
      numbers[2 * i] = v[2 * i];
      numbers[2 * i + 1] = shape->v[i] - v[2 * i + 1];
    }
    return tiny_node_pad (graph, part, numbers, shape->n);
  case TINY_OP_SHEAR: /* see rule_shear in autograd/gradient-rules.c */
    sign = v[2] < 0 ? -1 : 1;
    return tiny_node_shear (graph, part, (guint) v[0], (guint) v[1], sign * v[5], -sign * v[3],
                            -sign * v[4], sign * v[2], shape->v[v[0]]);
  default:
    return part;
  }
}

typedef struct {
  TinyNode *value, *inside; /* NULL: everywhere */
} Written;

static gboolean
write_step (TinyBuild *b, const gint64 *step, const TinyInts *shape, Written *written)
{
  TinyOp op = (TinyOp) step[0];
  TinyNode *value = written->value;
  if (op == TINY_OP_EXPAND)
    return tiny_build_fail (b,
                            "the tensor is expanded, each of its elements may stand for "
                            "several: write to contiguous() of it, or to what it was made of")
           != NULL;
  if (op == TINY_OP_DETACH)
    value = tiny_build_detach (b, value);
  if (written->inside == NULL && (op == TINY_OP_SHRINK || op == TINY_OP_SHEAR))
    written->inside = tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_BOOL, 1),
                                           value->shape->v, value->shape->n);
  written->value = step_back (b->graph, value, step, shape);
  if (written->inside != NULL)
    written->inside = step_back (b->graph, written->inside, step, shape);
  return TRUE;
}

/* Through the steps of one view, back to its base. */
static gboolean
write_view (TinyBuild *b, TinyTensor *view, Written *written)
{
  g_autoptr (GArray) starts = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GPtrArray) befores = g_ptr_array_new ();
  TinyNode *x = view->base->root.node;
  for (guint at = 0; at < view->n_steps; at += 2 + (guint) view->steps[at + 1]) {
    g_array_append_val (starts, at);
    g_ptr_array_add (befores, x);
    x = step_forward (b->graph, x, view->steps + at);
  }
  for (guint i = starts->len; i-- > 0;)
    if (!write_step (b, view->steps + g_array_index (starts, guint, i),
                     ((const TinyNode *) befores->pdata[i])->shape, written))
      return FALSE;
  return TRUE;
}

TinyNode *
tiny_view_write (TinyBuild *build, TinyTensor *self, TinyNode *value)
{
  Written written = { value, NULL };
  for (; self->base != NULL; self = self->base)
    if (!write_view (build, self, &written))
      return NULL;
  return written.inside == NULL
             ? written.value
             : tiny_build_where (build, written.inside, written.value, self->root.node);
}
