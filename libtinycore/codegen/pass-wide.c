/* SPDX-License-Identifier: MIT
 *
 * pass-wide.c: arithmetic of floats that the target only stores is arithmetic of f32, between a CAST from each operand and
 * one of the result.
 *
 * Each operation still rounds. A rounding that changes nothing goes: the larger of two numbers, a choice
 * between them and their negatives are numbers of the same dtype, so what reads them as f32 reads them before the CAST.
 * The largest of many is found in f32 and rounded once, by no change. What chooses the kernel's axes sees how wide
 * the arithmetic is. */
#include "codegen/codegen-private.h"

#include "ir/tiny-eval.h"

typedef struct {
  TinyGraph *graph;
  const TinyTarget *target;
  TinyNodeMap map;
  TinyExact exact;
} Wide;

/* ---- what needs no rounding ---- */
static guint32
find_lossless (TinyDType from)
{
  const TinyDTypeInfo *a = &tiny_dtype_infos[from];
  guint32 found = TINY_DTYPE_BIT (from);
  for (guint to = TINY_DTYPE_F16; to <= TINY_DTYPE_F32; to++) {
    const TinyDTypeInfo *b = &tiny_dtype_infos[to];
    if (a->kind == 'F' && from != TINY_DTYPE_F8E4M3 && b->mantissa_bits >= a->mantissa_bits
        && b->exponent_bits >= a->exponent_bits)
      found |= TINY_DTYPE_BIT (to);
  }
  return found;
}

static guint32
find_exact (TinyExact *self, const TinyNode *node)
{
  guint32 found = ~UINT32_C (0);
  switch (node->op) {
  case TINY_OP_CAST:
    return find_lossless (node->sources[0]->dtype);
  case TINY_OP_CONST:
    found = 0;
    for (guint i = 0; i < TINY_N_DTYPES; i++)
      if (tiny_dtype_is_float ((TinyDType) i)
          && tiny_eval_is_canonical ((TinyDType) i, node->arg))
        found |= TINY_DTYPE_BIT (i);
    return found;
  case TINY_OP_REDUCE:
    return node->arg == TINY_OP_MAX ? tiny_exact_find (self, node->sources[0]) : 0;
  case TINY_OP_MAX:
  case TINY_OP_NEG:
  case TINY_OP_WHERE:
    for (guint i = node->op == TINY_OP_WHERE; i < node->n_sources; i++)
      found &= tiny_exact_find (self, node->sources[i]);
    return found;
  default:
    return 0;
  }
}

guint32
tiny_exact_find (TinyExact *self, const TinyNode *node)
{
  const guint32 is_known = (guint32) 1 << 31;
  G_STATIC_ASSERT (TINY_N_DTYPES < 31);
  guint32 known = GPOINTER_TO_UINT (tiny_node_map_get (&self->known, node));
  if (known == 0) {
    known = find_exact (self, node) | is_known;
    tiny_node_map_set (&self->known, node, GUINT_TO_POINTER (known));
  }
  return known & ~is_known;
}

void
tiny_exact_clear (TinyExact *self)
{
  tiny_node_map_clear (&self->known);
}

/* ---- the pass ---- */
static gboolean
is_only_stored (Wide *self, TinyDType dtype)
{
  return tiny_dtype_is_float (dtype) && tiny_dtype_get_n_bytes (dtype) <= 2
         && (self->target->dtypes_compute & TINY_DTYPE_BIT (dtype)) == 0;
}

/* @x in f32. */
static TinyNode *
widen (Wide *self, TinyNode *x)
{
  if (!is_only_stored (self, x->dtype))
    return x;
  if (x->op == TINY_OP_CONST)
    return tiny_node_new (self->graph, TINY_OP_CONST, TINY_DTYPE_F32, x->lanes, 0, NULL, x->arg,
                          x->ints, x->text);
  if (x->op == TINY_OP_CAST && x->sources[0]->dtype == TINY_DTYPE_F32
      && (tiny_exact_find (&self->exact, x->sources[0]) & TINY_DTYPE_BIT (x->dtype)) != 0)
    return x->sources[0];
  return tiny_node_cast (self->graph, x, TINY_DTYPE_F32);
}

/* A choice between what was only read moves bits: that it does where they lie. */
static gboolean
moves_bits (TinyNode *node, TinyNode *const *sources)
{
  for (guint i = 1; i < 3 && node->op == TINY_OP_WHERE; i++)
    if (sources[i]->op == TINY_OP_CAST)
      return FALSE;
  return node->op == TINY_OP_WHERE;
}

static gboolean
computes (Wide *self, TinyNode *node, TinyNode *const *sources)
{
  if (node->op == TINY_OP_REDUCE)
    return node->arg == TINY_OP_MAX && is_only_stored (self, node->dtype);
  if (!tiny_op_is_elementwise (node->op) || node->n_sources == 0 || node->op == TINY_OP_CAST
      || node->op == TINY_OP_BITCAST || moves_bits (node, sources))
    return FALSE;
  return is_only_stored (self, sources[node->n_sources - 1]->dtype);
}

static TinyNode *
rebuild (Wide *self, TinyNode *node, TinyNode **sources)
{
  TinyGraph *graph = self->graph;
  if (node->op == TINY_OP_CAST && node->dtype == TINY_DTYPE_F32)
    return is_only_stored (self, sources[0]->dtype)
               ? widen (self, sources[0])
               : tiny_node_with_sources (graph, node, sources);
  if (!computes (self, node, sources))
    return tiny_node_with_sources (graph, node, sources);
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = widen (self, sources[i]);
  if (!is_only_stored (self, node->dtype))
    return tiny_node_with_sources (graph, node, sources);
  TinyNode *wide = tiny_node_new (graph, node->op, TINY_DTYPE_F32, node->lanes, node->n_sources,
                                  sources, node->arg, node->ints, node->text);
  return tiny_node_cast (graph, wide, node->dtype);
}

gboolean
tiny_pass_wide (TinyCodegen *cg, GError **error)
{
  Wide self = { .graph = cg->graph, .target = cg->target };
  g_autoptr (GArray) sources = g_array_new (FALSE, FALSE, sizeof (TinyNode *));
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_array_set_size (sources, node->n_sources);
    for (guint j = 0; j < node->n_sources; j++)
      g_array_index (sources, TinyNode *, j) = tiny_node_map_get (&self.map, node->sources[j]);
    tiny_node_map_set (&self.map, node, rebuild (&self, node, (TinyNode **) sources->data));
  }
  cg->root = tiny_node_map_get (&self.map, cg->root);
  tiny_node_map_clear (&self.map);
  tiny_exact_clear (&self.exact);
  return TRUE;
}
