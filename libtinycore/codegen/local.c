/* SPDX-License-Identifier: MIT
 *
 * local.c: a kernel's LOCAL memory when the loops in which it is filled are copied or become lanes. */
#include "optimise.h"

/* What a LOCAL became: see tiny_axes_grow_local(). */
typedef struct {
  TinyNode *memory, *offset, *lane;
  gint64 lanes;
} Local;

gint64
tiny_axes_count_local_bytes (TinyAxes *self, TinyNode *range, gint64 copies)
{
  TinyNode *root = self->cg->root;
  gint64 sum = 0;
  for (guint i = 0; i < root->n_sources; i++) {
    TinyNode *memory = root->sources[i]->sources[0];
    if (memory->op != TINY_OP_LOCAL)
      continue;
    gint64 n = memory->ints->v[0] * (gint64) tiny_dtype_get_n_bytes (memory->dtype);
    for (guint s = 0; s < memory->n_sources; s++) {
      TinyOrigin *origin = tiny_axes_find_origin (self, memory->sources[s]);
      n *= memory->sources[s] == range ? copies : 1;
      for (guint j = 0; origin != NULL && j < origin->inner->len; j++)
        n *= tiny_range_get_extent (origin->inner->pdata[j]);
    }
    sum += (n + 63) & ~G_GINT64_CONSTANT (63); /* each begins a line */
  }
  return sum;
}

gint64
tiny_axes_count_all_bytes (TinyAxes *self, guint split, gint64 amount, TinyRangeKind kind)
{
  TinyNode *origin = split < self->axes->len ? tiny_axes_get (self, split)->origin : NULL;
  return tiny_axes_count_local_bytes (self, origin, amount)
         + tiny_axes_count_part_bytes (self, origin, amount, kind)
         + tiny_axes_count_stage_bytes (self, split, amount);
}

gboolean
tiny_axes_fit_local (TinyAxes *self, guint axis, gint64 amount, TinyRangeKind kind)
{
  gint64 now = tiny_axes_count_all_bytes (self, G_MAXUINT, 1, kind);
  gint64 then = tiny_axes_count_all_bytes (self, axis, amount, kind);
  return then == now || then <= (gint64) self->cg->target->local_bytes;
}

void
tiny_axes_grow_local (TinyAxes *self, TinyNode *memory)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *zero = tiny_node_const_index (graph, 0);
  Local *local = g_new0 (Local, 1);
  gint64 n = memory->ints->v[0];
  g_autofree TinyNode **loops = g_new (TinyNode *, memory->n_sources + 1);
  local->lanes = 1;
  local->offset = zero;
  for (guint i = 0; i < memory->n_sources; i++) {
    TinyOrigin *origin = tiny_axes_find_origin (self, memory->sources[i]);
    loops[i] = origin ? origin->expression : memory->sources[i];
    for (guint j = 0; origin != NULL && j < origin->inner->len; j++) {
      TinyNode *inner = origin->inner->pdata[j];
      gint64 extent = tiny_range_get_extent (inner), scale = n;
      loops[i] = tiny_codegen_replace (graph, loops[i], &inner, &zero, 1);
      if (tiny_range_get_kind (inner) == TINY_RANGE_LANES) {
        local->lanes = extent;
        local->lane = inner;
        continue;
      }
      n *= extent;
      local->offset = tiny_fold_binary (
          graph, TINY_OP_ADD, local->offset,
          tiny_fold_binary (graph, TINY_OP_MUL, inner, tiny_node_const_index (graph, scale)));
    }
  }
  n *= local->lanes;
  local->memory = tiny_node_new (graph, TINY_OP_LOCAL, memory->dtype, 1, memory->n_sources,
                                 loops, memory->arg, tiny_graph_ints (graph, &n, 1), NULL);
  g_hash_table_insert (self->locals, memory, local);
}

/* Where @index of a LOCAL as the kernel has it now is. */
static TinyNode *
local_index (TinyAxes *self, const Local *local, TinyNode *index)
{
  TinyGraph *graph = self->cg->graph;
  index = tiny_fold_binary (graph, TINY_OP_ADD, index, local->offset);
  if (local->lane == NULL)
    return index;
  index = tiny_fold_binary (graph, TINY_OP_MUL, index,
                            tiny_node_const_index (graph, local->lanes));
  return tiny_fold_binary (graph, TINY_OP_ADD, index, local->lane);
}

void
tiny_axes_move_local (TinyAxes *self, TinyNode *memory, TinyNode **sources)
{
  const Local *local = g_hash_table_lookup (self->locals, memory);
  if (local == NULL)
    return;
  sources[0] = local->memory;
  sources[1] = local_index (self, local, sources[1]);
}

/* Loops of reductions are no loops of stores. */
static gboolean
is_in_loops_of (TinyGraph *graph, TinyNode *store, TinyNode *memory)
{
  for (guint i = 0; i < memory->n_sources; i++)
    if (tiny_range_get_kind (memory->sources[i]) != TINY_RANGE_REDUCE
        && !tiny_node_depends_on (graph, store, memory->sources[i]))
      return FALSE;
  return TRUE;
}

/* It comes before the first store that is in all of the memory's loops: earlier, it could take those
 * that share fewer of them along; later, its readers are among those that share all. What it reads
 * itself comes before it. */
void
tiny_axes_insert_fill (TinyGraph *graph, GPtrArray *stores, TinyNode *store)
{
  guint at = 0;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &store->sources[2], 1);
  while (at < stores->len && !is_in_loops_of (graph, stores->pdata[at], store->sources[0]))
    at++;
  for (guint i = at; i < stores->len; i++) {
    TinyNode *memory = ((TinyNode *) stores->pdata[i])->sources[0];
    if (memory->op == TINY_OP_LOCAL && g_ptr_array_find (order, memory, NULL))
      at = i + 1;
  }
  g_ptr_array_insert (stores, (gint) at, store);
}
