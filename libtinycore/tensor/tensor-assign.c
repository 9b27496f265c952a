/* SPDX-License-Identifier: MIT
 *
 * tensor-assign.c: tensors that change: assigning, and memory of one's own.
 *
 * Memory that may be assigned to belongs to one tensor and its views: whoever asks for it while another
 * tensor looks at it as well gets fresh memory, so that an assignment never changes other tensors. */
#include <string.h>

#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-recorders.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-place.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

enum {
  MOST_WAITING = 256, /* nodes of what waits to be assigned */
  MOST_PADDED = 6     /* … and PADs among them, two for each part that is written */
};

/* ---- memory of its own ---- */

/* Whether the value of a tensor other than @self and its views is @node, or @node moved. */
static gboolean
is_shared (TinyTensor *self, const TinyNode *node)
{
  TinyRoot *head = tiny_runtime_get_roots ();
  const TinyMovedSearch search = tiny_view_begin_search (node);
  guint n = 0;
  for (TinyRoot *root = head->next; root != head; root = root->next)
    n += root != &self->root && tiny_view_is_moved (&search, root->node);
  return n > 0 && n > tiny_view_count (self, &search);
}

/* The BUFFER, or UNSHARD of some, that is @self's alone, or NULL. */
static TinyNode *
own_buffer (TinyTensor *self)
{
  TinyNode *node = self->root.node;
  while (node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  return tiny_runtime_is_memory (node) && !is_shared (self, node) ? node : NULL;
}

/* Memory for @shape where @self is, cut as @like where that is memory on several devices. */
static TinyNode *
fresh_memory (TinyBuild *b, TinyTensor *self, const TinyInts *shape, const TinyNode *like)
{
  g_auto (TinyPlace) place = tiny_place_open (self->device); /* see begin_in_place() */
  return tiny_place_new_memory (b, &place, self->dtype, shape->v, shape->n, like);
}

/* ASSIGN of @value to @buffer, seen in @self's shape. */
static TinyNode *
assignment (TinyBuild *self, TinyNode *buffer, TinyNode *value)
{
  const TinyInts *shape = value->shape;
  value = tiny_build_reshape (self, value, buffer->shape->v, buffer->shape->n);
  if (buffer->op == TINY_OP_UNSHARD && tiny_node_is_nowhere (self->graph, value))
    value = tiny_node_to_like (self->graph, value, buffer);
  TinyNode *sources[] = { buffer, value };
  TinyNode *node = tiny_node_new (self->graph, TINY_OP_ASSIGN, (TinyDType) buffer->dtype, 1, 2,
                                  sources, (gint64) tiny_recorders_get_target (), NULL, NULL);
  return tiny_build_reshape (self, node, shape->v, shape->n);
}

/* tiny_build_begin() sinks its arguments; what changes @self in place leaves it as it was. */
static gboolean
begin_in_place (TinyTensor *self)
{
  gboolean floating = self != NULL && g_object_is_floating (self);
  if (floating)
    g_object_ref (self);
  if (TINY_IS_TENSOR (self) && self->device == NULL)
    tiny_runtime_open_default_device ();
  return floating;
}

static gboolean
end_in_place (TinyBuild *b, TinyTensor *self, gboolean begun, gboolean floating, GError **error)
{
  g_autoptr (GError) failed = b->error != NULL ? g_error_copy (b->error) : NULL;
  g_autoptr (TinyTensor) done
      = g_object_ref_sink (tiny_build_end (b, begun ? self->root.node : NULL));
  if (floating)
    g_object_force_floating (G_OBJECT (self));
  if (failed == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failed));
  return FALSE;
}

static void
take_memory (TinyBuild *b, TinyTensor *self)
{
  if (self->root.node->op == TINY_OP_PARAM || tiny_tensor_get_n_elements (self) == 0
      || self->root.node->op == TINY_OP_ASSIGN || own_buffer (self) == self->root.node)
    return;
  if (tiny_tensor_is_recorded (self)) { /* it stays where it is, and the others go */
    tiny_tensor_part_memory (self, b->error == NULL ? &b->error : NULL);
    return;
  }
  /* Of its own shape as well: in movement of a RESHAPE that node would be passed by, and so its gradient. */
  const TinyNode *cut = tiny_place_find_cut (b, self);
  TinyNode *memory = b->error == NULL ? fresh_memory (b, self, b->x[0]->shape, cut) : NULL;
  if (memory == NULL)
    return;
  tiny_tensor_set_node (self, assignment (b, memory, b->x[0]));
  self->is_part = FALSE;
  tiny_view_refresh (self);
  self->device = b->device;
}

gboolean
tiny_tensor_own_memory (TinyTensor *self, const char *name, GError **error)
{
  TinyBuild b;
  gboolean floating = begin_in_place (self);
  gboolean begun = tiny_build_begin (&b, name, 1, &self);
  if (begun) {
    tiny_view_unlink (self);
    take_memory (&b, self);
  }
  return end_in_place (&b, self, begun, floating, error);
}

gboolean
tiny_tensor_stand_apart (TinyTensor *self, const char *name, GError **error)
{
  TinyBuild b;
  gboolean floating = begin_in_place (self);
  gboolean begun = tiny_build_begin (&b, name, 1, &self);
  if (begun)
    take_memory (&b, self);
  return end_in_place (&b, self, begun, floating, error);
}

/* ---- assigning ---- */
static gboolean
check_assign (TinyTensor *self, TinyBuild *b)
{
  TinyNode *value = b->x[1];
  if (self->weak != TINY_WEAK_NONE)
    return tiny_build_fail (b, "a plain number cannot be assigned to") != NULL;
  if (self->is_part)
    return tiny_build_fail (b, "the tensor is a part of another at a place that a variable "
                               "says, or of a size that is "
                               "one, and no view: assign to that at the place (x[…] = value in "
                               "Python), or to contiguous() of this")
           != NULL;
  if (value->shape->n == self->n_dims
      && memcmp (value->shape->v, self->shape, self->n_dims * sizeof (gint64)) == 0)
    return TRUE;
  g_autofree char *to = tiny_shape_to_string (self->root.node->shape);
  g_autofree char *from = tiny_shape_to_string (value->shape);
  return tiny_build_fail (b, "%s does not fit into %s", from, to) != NULL;
}

/* Whether what waits to be assigned to @self can be part of what is assigned next: it is little, made element by
 * element, and nothing else is that memory. Parts, each at its place, are no more than one plan has variables for
 * (engine/open-numbers.h): a loop over places then runs the same kernel for a few of them at a time. What is recorded
 * is planned once, with all of them. */
static gboolean
can_grow (TinyBuild *b, TinyTensor *self, TinyNode *waiting)
{
  if (self->requires_grad || is_shared (self, waiting)
      || tiny_recorders_get_running ((guint64) waiting->arg) != tiny_recorders_get_target ())
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (b->graph, &waiting->sources[1], 1);
  gboolean can = order->len <= MOST_WAITING;
  guint n_padded = 0;
  for (guint i = 0; can && i < order->len; i++) {
    TinyOp op = (TinyOp) ((const TinyNode *) order->pdata[i])->op;
    can = tiny_op_is_elementwise (op) || tiny_op_is_movement (op) || op == TINY_OP_BUFFER
          || op == TINY_OP_UNSHARD || op == TINY_OP_CONST || op == TINY_OP_IOTA
          || op == TINY_OP_DETACH;
    n_padded += op == TINY_OP_PAD;
  }
  return can && (n_padded <= MOST_PADDED || *tiny_launches_get_recorder () != NULL);
}

/* One assignment at a time can wait for one piece of memory: in *@out_waiting one that grows, or NULL after any
 * other was computed. */
static gboolean
settle (TinyBuild *b, TinyTensor *self, TinyNode **out_waiting)
{
  TinyNode *node = self->root.node;
  while (node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  *out_waiting = node->op == TINY_OP_ASSIGN && can_grow (b, self, node) ? node : NULL;
  if (node->op != TINY_OP_ASSIGN || *out_waiting != NULL)
    return TRUE;
  return tiny_build_compute (b, self->root.node) != NULL;
}

/* Whether the gradient of @value, which is to be assigned, needs what is in @memory. A recorded function has its
 * state there, and writes over it. */
static gboolean
is_needed (TinyBuild *b, TinyTensor *self, const TinyNode *memory, TinyNode *value)
{
  if (*tiny_launches_get_recorder () != NULL || !tiny_is_grad_enabled () || self->requires_grad
      || !tiny_tensor_reaches_variable (value))
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (b->graph, &value, 1);
  return g_ptr_array_find (order, memory, NULL);
}

/* @value, in which nothing is of what @self is, and no gradient: what that was made of gets zeros, as in PyTorch. */
static TinyNode *
beside_old (TinyBuild *b, TinyTensor *self, TinyNode *value)
{
  TinyNode *old = self->root.node;
  if (*tiny_launches_get_recorder () != NULL || !tiny_is_grad_enabled () || self->requires_grad
      || value == NULL || !tiny_tensor_reaches_variable (old)
      || tiny_tensor_reaches_variable (value))
    return value;
  while (old->op == TINY_OP_RESHAPE)
    old = old->sources[0];
  if (old->op == TINY_OP_ASSIGN)
    old = old->sources[1];
  else if (tiny_history_get (old, NULL) != NULL)
    old = tiny_history_get (old, NULL);
  old = tiny_build_reshape (b, old, value->shape->v, value->shape->n);
  TinyNode *zero = tiny_node_broadcast (b->graph, tiny_build_like (b, value, 0),
                                        value->shape->v, value->shape->n);
  if (old->op == TINY_OP_SLOPED && old->sources[2] == zero) /* it was overwritten before */
    old = old->sources[1];
  return tiny_build_sloped (b, value, old, zero);
}

/* Computes what @self was before the recording, which replays are not to do again. */
static gboolean
realize_unrecorded (TinyTensor *self, GError **error)
{
  TinyLaunches **recorder = tiny_launches_get_recorder (), *kept = *recorder;
  TinyRoot *root = &self->root;
  *recorder = NULL;
  gboolean good = tiny_runtime_realize (&root, 1, error);
  *recorder = kept;
  return good;
}

/* A recorded function has its state in memory, always the same, also when others change it: who shares that gets a copy. The
 * memory of @self, and @value made of it; NULL where there is none, or where what is made in the recording shares another's. */
static TinyNode *
keep_memory (TinyBuild *b, TinyTensor *self, TinyNode **value)
{
  const TinyLaunches *recorder = *tiny_launches_get_recorder ();
  const gboolean is_older
      = recorder != NULL
        && (self->root.number < tiny_launches_get_n_roots (recorder)
            || tiny_launches_get_owner (recorder, tiny_runtime_get_memory (self->root.node))
                   == &self->root);
  if (tiny_tensor_get_n_elements (self) == 0
      || (recorder == NULL && !tiny_tensor_is_recorded (self)))
    return NULL;
  if (recorder != NULL
      && !(is_older || (tiny_tensor_is_realized (self) && own_buffer (self) != NULL)))
    return NULL;
  TinyRoot kept = { 0 };
  TinyNode *memory = NULL;
  tiny_runtime_add_root (&kept, *value);
  if ((tiny_tensor_is_realized (self) || realize_unrecorded (self, &b->error))
      && (own_buffer (self) != NULL || tiny_tensor_part_memory (self, &b->error)))
    memory = own_buffer (self);
  b->graph = tiny_runtime_get_graph ();
  *value = kept.node;
  tiny_runtime_remove_root (&kept);
  return memory;
}

/* Makes @value that of @self, which is no view; in the memory that it has, if it has any, or for which @waiting waits.
 * A variable has some, also one that was a view of what is gone. */
static void
put (TinyBuild *b, TinyTensor *self, TinyNode *value, TinyNode *waiting)
{
  if (!tiny_is_grad_enabled () || self->requires_grad)
    value = tiny_build_detach (b, value);
  value = beside_old (b, self, value);
  TinyNode *memory = NULL;
  if (waiting != NULL)
    memory = waiting->sources[0];
  else
    memory = keep_memory (b, self, &value);
  gboolean has_memory = memory != NULL
                        || (tiny_tensor_get_n_elements (self) > 0
                            && (self->requires_grad || tiny_tensor_is_realized (self)));
  if (memory == NULL && has_memory)
    memory = own_buffer (self);
  if (waiting != NULL)
    value = tiny_graph_substitute (b->graph, value, &waiting, &waiting->sources[1], 1);
  if (has_memory && (memory == NULL || is_needed (b, self, memory, value))) {
    const TinyNode *now = waiting != NULL ? memory : tiny_runtime_get_memory (self->root.node);
    const TinyInts *shape = now->op == TINY_OP_UNSHARD ? now->shape : self->root.node->shape;
    memory = fresh_memory (b, self, shape, now);
  }
  if (memory != NULL)
    value = assignment (b, memory, value);
  if (b->error != NULL)
    return;
  if (self->requires_grad && memory != tiny_runtime_get_memory (self->root.node))
    tiny_history_leave (self->root.node, self->variable);
  tiny_tensor_set_node (self, value);
  if (self->device == NULL)
    self->device = b->device;
  tiny_view_refresh (self);
}

/* A tensor that is an expression is a longer one with each write to a part of it, so one that is written often gets
 * memory: the writes are to that then. Not where gradients flow to it, which go through the expression. */
static gboolean
is_written_often (TinyTensor *base)
{
  enum { OFTEN = 8 };
  TinyNode *node = tiny_tensor_get_node (base);
  while (node != NULL && node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  const gboolean has_memory = node == NULL || node->op == TINY_OP_ASSIGN
                              || tiny_runtime_is_memory (tiny_runtime_get_memory (node));
  base->n_written = has_memory ? 0 : base->n_written + 1;
  return base->n_written >= OFTEN && node->limits == NULL && !tiny_recorders_is_any ()
         && !tiny_tensor_reaches_variable (node);
}

gboolean
tiny_tensor_assign (TinyTensor *self, TinyTensor *value, GError **error)
{
  TinyBuild b;
  TinyTensor *both[] = { self, value };
  gboolean floating = begin_in_place (self);
  gboolean begun = tiny_build_begin (&b, "assign", 2, both), is_often = FALSE;
  if (begun && check_assign (self, &b)) {
    TinyTensor *base = tiny_view_get_base (self);
    TinyNode *waiting;
    if (b.x[1] != self->root.node && settle (&b, base, &waiting)) {
      TinyNode *part = tiny_build_cast (&b, b.x[1], self->dtype);
      if (self->requires_grad) /* it is where gradients end, and stays that */
        part = tiny_build_detach (&b, part);
      TinyNode *whole = tiny_view_write (&b, self, part);
      if (whole != NULL)
        put (&b, base, whole, waiting);
      is_often = is_written_often (base);
    }
  }
  return end_in_place (&b, self, begun, floating, error)
         && (!is_often || tiny_tensor_stand_apart (tiny_view_get_base (self), "assign", error));
}
