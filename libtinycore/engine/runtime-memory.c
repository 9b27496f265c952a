/* SPDX-License-Identifier: MIT
 *
 * runtime-memory.c: nodes of the tensor graph that are memory, on one device or several, or variables. */
#include "engine/runtime-private.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"

TinyNode *
tiny_runtime_get_memory (TinyNode *node)
{
  while (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT)
    node = node->sources[0];
  return node;
}

gboolean
tiny_runtime_is_memory (const TinyNode *node)
{
  gboolean is_memory = node->op == TINY_OP_BUFFER || node->op == TINY_OP_UNSHARD;
  for (guint i = 0; is_memory && i < node->n_sources; i++)
    is_memory = node->sources[i]->op == TINY_OP_BUFFER;
  return is_memory;
}

gboolean
tiny_runtime_is_realized (const TinyNode *node)
{
  return tiny_runtime_is_memory (tiny_runtime_get_memory ((TinyNode *) node));
}

guint
tiny_runtime_count_pieces (const TinyNode *memory)
{
  return memory->op == TINY_OP_UNSHARD ? memory->n_sources : 1;
}

TinyNode *
tiny_runtime_get_piece (TinyNode *memory, guint i)
{
  return memory->op == TINY_OP_UNSHARD ? memory->sources[i] : memory;
}

/* How much of the axis a piece has follows from how many bytes it has. */
TinyNode *
tiny_runtime_memory_node (TinyDType dtype,
                          const TinyInts *shape,
                          const char *devices,
                          gint64 axis,
                          TinyBuffer *const *buffers,
                          guint n)
{
  if (devices == NULL)
    return tiny_runtime_buffer_node (buffers[0], dtype, shape->v, shape->n);
  g_autofree TinyNode **pieces = g_new (TinyNode *, n);
  g_autofree gint64 *dims = g_memdup2 (shape->v, MAX (shape->n, 1) * sizeof (gint64));
  gint64 slice = (gint64) tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < shape->n; i++)
    slice *= i == axis ? 1 : shape->v[i];
  for (guint i = 0; i < n; i++) {
    if (axis != TINY_SHARD_WHOLE)
      dims[axis] = (gint64) tiny_buffer_get_n_bytes (buffers[i]) / slice;
    pieces[i] = tiny_runtime_buffer_node (buffers[i], dtype, dims, shape->n);
  }
  return tiny_node_new (tiny_runtime_get_graph (), TINY_OP_UNSHARD, dtype, 1, n, pieces, axis,
                        NULL, devices);
}

gsize
tiny_runtime_count_bytes (const TinyNode *memory)
{
  return tiny_shape_get_n_elements (memory->shape) * tiny_dtype_get_n_bytes (memory->dtype);
}

gboolean
tiny_runtime_has_piece (TinyNode *node, GHashTable *buffers)
{
  gboolean has = FALSE;
  if (tiny_runtime_is_memory (node))
    for (guint i = 0; i < tiny_runtime_count_pieces (node) && !has; i++)
      has = g_hash_table_contains (buffers,
                                   tiny_runtime_get_buffer (tiny_runtime_get_piece (node, i)));
  return has;
}

TinyBoundVariable
tiny_runtime_get_variable (const TinyNode *node)
{
  g_assert (node->op == TINY_OP_VARIABLE && node->ints != NULL && node->ints->n == 2);
  return (TinyBoundVariable){ g_intern_string (node->text), node->ints->v[0], node->ints->v[1],
                              node->arg };
}

gboolean
tiny_bound_variable_is_same (const TinyBoundVariable *a, const TinyBoundVariable *b)
{
  return a->name == b->name && a->min == b->min && a->max == b->max;
}
