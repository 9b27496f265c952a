/* SPDX-License-Identifier: MIT
 *
 * pass-linearise.c: the nodes as a flat list in execution order.
 *
 * A value sits in the innermost of the loops it depends on, so what a loop does not change is
 * computed before it. A loop stands where its END does; the order inside a block is that of a
 * depth-first walk from the SINK, except that stores to memory, loops that contain some, and what waits
 * for one of the same block (AFTER a store to LOCAL memory), come last: everything else in the block
 * reads what was there before. REGISTERs and LOCALs are declared first. */
#include "codegen/codegen-private.h"

#include "base/tiny-error.h"
#include "rewrite/tiny-bounds.h"

#include <string.h>

typedef struct {
  GPtrArray *body, *effects;
} Block;

typedef struct {
  TinyGraph *graph;
  TinyNodeMap depths, blocks, late, positions; /* of RANGEs; of RANGEs; of nodes; of nodes */
  Block root;
  GPtrArray *all_blocks;
  GArray *instrs, *sources;
  GArray *most_rounds; /* of TinyCodegen */
  guint32 grid[3], group[3];
} Linear;

static void
block_free (Block *block)
{
  g_ptr_array_unref (block->body);
  g_ptr_array_unref (block->effects);
  g_free (block);
}

static void
linear_clear (Linear *self)
{
  tiny_node_map_clear (&self->depths);
  tiny_node_map_clear (&self->blocks);
  tiny_node_map_clear (&self->late);
  tiny_node_map_clear (&self->positions);
  g_clear_pointer (&self->all_blocks, g_ptr_array_unref);
  g_clear_pointer (&self->instrs, g_array_unref);
  g_clear_pointer (&self->sources, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Linear, linear_clear)

static Block *
block_new (Linear *self)
{
  Block *block = g_new0 (Block, 1);
  block->body = g_ptr_array_new ();
  block->effects = g_ptr_array_new ();
  g_ptr_array_add (self->all_blocks, block);
  return block;
}

static guint
depth_of (Linear *self, TinyNode *range)
{
  return GPOINTER_TO_UINT (tiny_node_map_get (&self->depths, range));
}

/* The innermost loop @node is in, or NULL. */
static TinyNode *
innermost (Linear *self, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, node, &n);
  TinyNode *deepest = NULL;
  for (guint i = 0; i < n; i++)
    if (deepest == NULL || depth_of (self, ranges[i]) > depth_of (self, deepest))
      deepest = ranges[i];
  return deepest;
}

/* Users come after sources in @order, so the ENDs of outer loops are met first from its end. */
static void
find_depths (Linear *self, GPtrArray *order)
{
  for (guint i = order->len; i-- > 0;) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_END)
      continue;
    TinyNode *parent = innermost (self, node);
    guint depth = 1 + (parent ? depth_of (self, parent) : 0);
    g_assert (depth < 8 * sizeof (gsize));
    tiny_node_map_set (&self->depths, node->sources[0], GUINT_TO_POINTER (depth));
    tiny_node_map_set (&self->blocks, node->sources[0], block_new (self));
  }
}

static gboolean
is_place (TinyNode *node)
{
  return node->op == TINY_OP_REGISTER || node->op == TINY_OP_LOCAL;
}

/* True if @node, in the loop at @depth, stores to memory or comes after what does in a round of the same
 * loop. Asked for sources before users. A bit of a node's entry is the depth of the innermost loop that
 * it shares with such a store: what was stored before a loop keeps nothing waiting inside of it. */
static gboolean
is_late (Linear *self, TinyNode *node, guint depth)
{
  gsize here = (gsize) 1 << depth, stores = 0;
  for (guint i = 0; i < node->n_sources; i++)
    stores |= GPOINTER_TO_SIZE (tiny_node_map_get (&self->late, node->sources[i]));
  if (stores >= here || (node->op == TINY_OP_STORE && node->n_sources > 2))
    stores = (stores & (here - 1)) | here;
  if (stores != 0)
    tiny_node_map_set (&self->late, node, GSIZE_TO_POINTER (stores));
  return (stores & here) != 0;
}

static void
fill_blocks (Linear *self, GPtrArray *order, Block *root)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_RANGE || node->op == TINY_OP_SINK)
      continue;
    TinyNode *loop = is_place (node) ? NULL : innermost (self, node);
    Block *block = loop ? tiny_node_map_get (&self->blocks, loop) : root;
    guint depth = loop ? depth_of (self, loop) : 0;
    g_ptr_array_add (is_late (self, node, depth) ? block->effects : block->body, node);
  }
}

static guint32
position_of (Linear *self, TinyNode *node)
{
  while (node->op == TINY_OP_AFTER)
    node = node->sources[0];
  guint position = GPOINTER_TO_UINT (tiny_node_map_get (&self->positions, node));
  g_assert (position > 0);
  return position - 1;
}

static gint64
argument_of (TinyNode *node)
{
  switch (node->op) {
  case TINY_OP_CONST:
  case TINY_OP_PARAM:
  case TINY_OP_VARIABLE:
  case TINY_OP_GRID:
  case TINY_OP_GROUP:
  case TINY_OP_EXTRACT:
  case TINY_OP_REGISTER:
    return node->arg;
  case TINY_OP_LOCAL:
    return node->ints->v[0];
  default:
    return 0;
  }
}

static void
emit (Linear *self, TinyNode *node, guint n_sources)
{
  gboolean has_value = node->op != TINY_OP_STORE && node->op != TINY_OP_END;
  TinyInstr instr = { .op = tiny_op_infos[node->op].instr,
                      .dtype = has_value ? node->dtype : TINY_DTYPE_VOID,
                      .lanes = node->lanes,
                      .n_sources = n_sources,
                      .sources = self->sources->len,
                      .arg = argument_of (node) };
  for (guint i = 0; i < n_sources; i++) {
    guint32 position = position_of (self, node->sources[i]);
    g_array_append_val (self->sources, position);
  }
  if (node->op == TINY_OP_GRID)
    self->grid[node->arg] = node->ints->v[0];
  if (node->op == TINY_OP_GROUP)
    self->group[node->arg] = node->ints->v[0];
  g_array_append_val (self->instrs, instr);
  tiny_node_map_set (&self->positions, node, GUINT_TO_POINTER (self->instrs->len));
}

static void emit_block (Linear *self, Block *block);

static void
emit_node (Linear *self, TinyNode *node)
{
  if (node->op == TINY_OP_AFTER)
    return;
  if (node->op != TINY_OP_END) {
    emit (self, node, is_place (node) ? 0 : node->n_sources);
    return;
  }
  gint64 most = tiny_node_get_max (node->sources[0]->sources[0]);
  g_array_append_val (self->most_rounds, most);
  emit (self, node->sources[0], 1);
  emit_block (self, tiny_node_map_get (&self->blocks, node->sources[0]));
  emit (self, node, 1);
}

static void
emit_block (Linear *self, Block *block)
{
  for (guint i = 0; i < block->body->len; i++)
    emit_node (self, block->body->pdata[i]);
  for (guint i = 0; i < block->effects->len; i++)
    emit_node (self, block->effects->pdata[i]);
}

/* @text as a C identifier. */
static char *
identifier_of (const char *text)
{
  g_autoptr (GString) name = g_string_new (text != NULL && text[0] != 0 ? text : "kernel");
  for (gsize i = 0; i < name->len; i++)
    if (!g_ascii_isalnum (name->str[i]))
      name->str[i] = '_';
  if (g_ascii_isdigit (name->str[0]))
    g_string_prepend_c (name, 'k');
  return g_string_free (g_steal_pointer (&name), FALSE);
}

static gboolean
check_ops (Linear *self, GPtrArray *order, GError **error)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_SINK || node->op == TINY_OP_AFTER
        || tiny_op_infos[node->op].instr != 0)
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "kernel: %s.%s cannot be in a linear program", tiny_op_to_string (node->op),
                 tiny_dtype_to_string (node->dtype));
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_local_memory (TinyCodegen *cg, GPtrArray *order, GError **error)
{
  gint64 n_bytes = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOCAL)
      n_bytes += (node->ints->v[0] * (gint64) tiny_dtype_get_n_bytes (node->dtype) + 63) & ~63;
  }
  if (n_bytes <= cg->target->local_bytes)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
               "kernel: wants %" G_GINT64_FORMAT " bytes of local memory, the target has %u",
               n_bytes, cg->target->local_bytes);
  return FALSE;
}

gboolean
tiny_pass_linearise (TinyCodegen *cg, GError **error)
{
  g_auto (Linear) self = { .graph = cg->graph, .grid = { 1, 1, 1 }, .group = { 1, 1, 1 } };
  self.most_rounds = cg->most_rounds;
  self.all_blocks = g_ptr_array_new_with_free_func ((GDestroyNotify) block_free);
  self.instrs = g_array_new (FALSE, FALSE, sizeof (TinyInstr));
  self.sources = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  if (!check_ops (&self, order, error) || !check_local_memory (cg, order, error))
    return FALSE;
  Block *root = block_new (&self);
  find_depths (&self, order);
  fill_blocks (&self, order, root);
  emit_block (&self, root);

  TinyLinear *linear = &cg->program->linear;
  linear->struct_size = sizeof *linear;
  linear->name = identifier_of (cg->root->text);
  linear->n_instrs = self.instrs->len;
  linear->n_sources = self.sources->len;
  linear->instrs = (TinyInstr *) g_array_free (g_steal_pointer (&self.instrs), FALSE);
  linear->sources = (guint32 *) g_array_free (g_steal_pointer (&self.sources), FALSE);
  for (guint i = 0; i < 3; i++) {
    linear->grid[i] = self.grid[i];
    linear->group[i] = self.group[i];
  }
  return TRUE;
}
