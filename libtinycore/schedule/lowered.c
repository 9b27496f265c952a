/* SPDX-License-Identifier: MIT
 *
 * lowered.c: writes down what a stage computes, so that stages that compute alike get the kernel of the first of them.
 *
 * Its nodes, users before sources, each with what it is or where it was met before, down to what is read, of which only
 * the place among all that is read counts. */
#include "schedule/lowered.h"

enum { SEEN = 1, READ, LEAF, COMPUTED };

guint
lowered_get_buffer (Plan *plan, const Stage *stage, guint buffer)
{
  const gboolean is_own = buffer < plan->n_inputs && schedule_is_assigned (plan, stage->buffer)
                          && schedule_get_buffer (plan, stage->buffer)->slot == buffer;
  return is_own ? stage->buffer : buffer;
}

/* A value that is stored elsewhere is of no device, or it would have come by a COPY: computed here again. */
Stage *
lowered_get_stored (Plan *plan, const Stage *stage, const TinyNode *node)
{
  Stage *stored = tiny_node_map_get (&plan->stage_of, node);
  return stored != NULL && stored != stage && g_strcmp0 (stored->device, stage->device) == 0
             ? stored
             : NULL;
}

typedef struct {
  KernelKey *key;
  Plan *plan;
  const Stage *stage;
  guint32 seen;
  guint n_seen;
} Walk;

static void
add_read (Walk *self, const TinyNode *node, guint buffer, const TinyInts *order)
{
  KERNEL_KEY_ADD (self->key, READ | (guint64) node->dtype << 8, GPOINTER_TO_SIZE (node->shape),
                  GPOINTER_TO_SIZE (order));
  kernel_key_add_buffer (self->key, self->plan,
                         lowered_get_buffer (self->plan, self->stage, buffer));
}

/* Adds @node, and leaves its sources pending, the first on top. FALSE: a kernel waits for more than it reads. */
static gboolean
add_node (Walk *self, TinyNode *node)
{
  const Stage *stored;
  if (node->mark == self->seen) {
    KERNEL_KEY_ADD (self->key, SEEN | (guint64) node->place << 8);
    return TRUE;
  }
  node->mark = self->seen;
  node->place = self->n_seen++;
  if (node->op == TINY_OP_PARAM)
    add_read (self, node, (guint) node->arg, NULL);
  else if ((stored = lowered_get_stored (self->plan, self->stage, node)) != NULL)
    add_read (self, node, stored->buffer, stored->order);
  else if (node->n_sources == 0)
    KERNEL_KEY_ADD (self->key, LEAF, GPOINTER_TO_SIZE (node));
  else {
    KERNEL_KEY_ADD (self->key,
                    COMPUTED | (guint64) node->dtype << 8 | (guint64) node->op << 16
                        | (guint64) node->n_sources << 32,
                    (guint64) node->arg, GPOINTER_TO_SIZE (node->ints),
                    GPOINTER_TO_SIZE (node->shape));
    for (guint i = node->n_sources; i > 0; i--)
      g_ptr_array_add (self->key->pending, node->sources[i - 1]);
    return node->op != TINY_OP_AFTER;
  }
  return TRUE;
}

/* Kernels can be deeper than a thread's stack, so nothing calls itself. */
static gboolean
describe (Walk *self, TinyNode *node)
{
  GPtrArray *pending = self->key->pending;
  g_ptr_array_add (pending, node);
  while (pending->len > 0)
    if (!add_node (self, g_ptr_array_steal_index (pending, pending->len - 1))) {
      g_ptr_array_set_size (pending, 0);
      return FALSE;
    }
  return TRUE;
}

gboolean
lowered_describe (KernelKey *key, Plan *plan, Stage *stage)
{
  Walk self = { key, plan, stage, tiny_graph_begin_mark (plan->graph), 0 };
  KERNEL_KEY_ADD (key, KERNEL_OF_STAGE | (guint64) stage->keeps_axes << 8,
                  GPOINTER_TO_SIZE (stage->order));
  kernel_key_add_buffer (key, plan, stage->buffer);
  return describe (&self, stage->node);
}
