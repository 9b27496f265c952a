/* SPDX-License-Identifier: MIT
 *
 * pass-words.c: buffers of bytes and halves on a target that stores neither, as buffers of words.
 *
 * The memory stays as it is; a kernel sees it as u32, two or four elements in each. A LOAD reads the
 * word and shifts; neighbours read the same word, which is then one node. A STORE becomes one of
 * whole words (words.c), so that no two work-items ever write to the same one, whatever is made of
 * the loops later. Bools in LOCAL memory, too, take a word, one each. */
#include "codegen/codegen-private.h"
#include "codegen/words.h"

#include "rewrite/tiny-simplify.h"

TinyNode *
tiny_words_buffer (TinyGraph *graph, TinyNode *param)
{
  gint64 per_word = tiny_words_count (param->dtype);
  gint64 n
      = ((param->ints != NULL && param->ints->n > 0 ? param->ints->v[0] : 1) + per_word - 1)
        / per_word;
  return tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_U32, 1, 0, NULL, param->arg,
                        tiny_graph_ints (graph, &n, 1), param->text);
}

static TinyNode *
bitcast (TinyGraph *graph, TinyNode *x, TinyDType dtype)
{
  return x->dtype == dtype
             ? x
             : tiny_node_new (graph, TINY_OP_BITCAST, dtype, 1, 1, &x, 0, NULL, NULL);
}

static TinyDType
code_dtype (TinyDType dtype)
{
  return tiny_dtype_get_n_bytes (dtype) == 1 ? TINY_DTYPE_U8 : TINY_DTYPE_U16;
}

TinyNode *
tiny_words_from_value (TinyGraph *graph, TinyNode *value)
{
  if (value->dtype != TINY_DTYPE_BOOL)
    value = bitcast (graph, value, code_dtype (value->dtype));
  return tiny_node_cast (graph, value, TINY_DTYPE_U32);
}

/* What the lowest bits of @word are as @dtype. */
static TinyNode *
value_of (TinyGraph *graph, TinyNode *word, TinyDType dtype)
{
  if (dtype != TINY_DTYPE_BOOL)
    return bitcast (graph, tiny_node_cast (graph, word, code_dtype (dtype)), dtype);
  TinyNode *byte = tiny_node_binary (graph, TINY_OP_AND, word,
                                     tiny_node_const_int (graph, TINY_DTYPE_U32, 0xff));
  return tiny_node_binary (graph, TINY_OP_CMPNE, byte,
                           tiny_node_const_int (graph, TINY_DTYPE_U32, 0));
}

/* ---- loads ---- */
static TinyNode *
shift_down (TinyGraph *graph, TinyNode *word, TinyNode *place, gint64 n_bits)
{
  if (tiny_node_is_const_int (place, 0))
    return word;
  TinyNode *n
      = tiny_fold_binary (graph, TINY_OP_MUL, place, tiny_node_const_index (graph, n_bits));
  n = n->op == TINY_OP_CONST ? tiny_node_const_int (graph, TINY_DTYPE_U32, n->arg)
                             : tiny_node_cast (graph, n, TINY_DTYPE_U32);
  return tiny_node_binary (graph, TINY_OP_SHR, word, n);
}

/* @s are the sources as they are now, but for the buffer. */
static TinyNode *
load_from_word (TinyGraph *graph, TinyNode *load, TinyNode *const *s)
{
  TinyDType dtype = load->dtype;
  gint64 per_word = tiny_words_count (dtype);
  TinyNode *count = tiny_node_const_index (graph, per_word);
  TinyNode *sources[4] = { tiny_words_buffer (graph, load->sources[0]),
                           tiny_fold_binary (graph, TINY_OP_FLOORDIV, s[1], count) };
  if (load->n_sources == 4) {
    sources[2] = s[2];
    sources[3] = tiny_node_const_int (graph, TINY_DTYPE_U32, 0);
  }
  TinyNode *word = tiny_node_new (graph, TINY_OP_LOAD, TINY_DTYPE_U32, 1, load->n_sources,
                                  sources, 0, NULL, NULL);
  TinyNode *place = tiny_fold_binary (graph, TINY_OP_FLOORMOD, s[1], count);
  TinyNode *value = value_of (graph, shift_down (graph, word, place, 32 / per_word), dtype);
  gboolean is_other = load->n_sources == 4 && !(s[3]->op == TINY_OP_CONST && s[3]->arg == 0);
  return is_other ? tiny_node_where (graph, s[2], value, s[3]) : value;
}

static gboolean
is_local_bool (const TinyCodegen *cg, const TinyNode *memory)
{
  return memory->op == TINY_OP_LOCAL && memory->dtype == TINY_DTYPE_BOOL
         && tiny_words_packs (cg->target, TINY_DTYPE_BOOL);
}

/* @node, which accesses bools in LOCAL memory, over words. */
static TinyNode *
access_local_bool (TinyGraph *graph, TinyNode *node, TinyNode **s)
{
  guint value = node->op == TINY_OP_LOAD ? 3 : 2;
  if (node->n_sources > value)
    s[value] = tiny_node_cast (graph, s[value], TINY_DTYPE_U32);
  TinyDType dtype = node->op == TINY_OP_LOAD ? TINY_DTYPE_U32 : TINY_DTYPE_VOID;
  TinyNode *made = tiny_node_new (graph, node->op, dtype, 1, node->n_sources, s, 0, NULL, NULL);
  return node->op == TINY_OP_LOAD ? value_of (graph, made, TINY_DTYPE_BOOL) : made;
}

static TinyNode *
rewrite_node (TinyCodegen *cg, TinyNode *node, TinyNode **sources)
{
  TinyGraph *graph = cg->graph;
  gboolean accesses = node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE;
  if (is_local_bool (cg, node))
    return tiny_node_new (graph, node->op, TINY_DTYPE_U32, 1, node->n_sources, sources,
                          node->arg, node->ints, node->text);
  if (accesses && is_local_bool (cg, node->sources[0]))
    return access_local_bool (graph, node, sources);
  if (node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM
      && tiny_words_packs (cg->target, node->dtype))
    return load_from_word (graph, node, sources);
  return node->n_sources == 0 ? node : tiny_fold_node (graph, node, node->lanes, sources);
}

static TinyNode *
rewrite_loads (TinyCodegen *cg, TinyNode *root)
{
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&map, node->sources[s]));
    tiny_node_map_set (&map, node, rewrite_node (cg, node, (TinyNode **) sources->pdata));
  }
  return tiny_node_map_get (&map, root);
}

static gboolean
has_packed (const TinyCodegen *cg)
{
  gboolean packs = FALSE;
  for (guint i = TINY_DTYPE_BOOL; i <= TINY_DTYPE_F64; i++)
    packs = packs || tiny_words_packs (cg->target, i);
  if (!packs)
    return FALSE;
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (cg->graph, (TinyNode *const *) &cg->root, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if ((node->op == TINY_OP_PARAM && tiny_words_packs (cg->target, node->dtype))
        || is_local_bool (cg, node))
      return TRUE;
  }
  return FALSE;
}

/* Of a word that holds several elements some are of account and some may not be: it has a value. */
static void
close_values (TinyCodegen *cg)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  g_autoptr (GPtrArray) from = g_ptr_array_new (), to = g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (!tiny_node_is_open (node))
      continue;
    g_ptr_array_add (from, node);
    g_ptr_array_add (to, tiny_node_const_int (cg->graph, (TinyDType) node->dtype, 0));
  }
  cg->root = tiny_graph_substitute (cg->graph, cg->root, (TinyNode *const *) from->pdata,
                                    (TinyNode *const *) to->pdata, from->len);
}

gboolean
tiny_pass_words (TinyCodegen *cg, GError **error)
{
  if (!has_packed (cg))
    return TRUE;
  close_values (cg);
  TinyNode *root = tiny_words_rewrite_stores (cg, error);
  if (root == NULL)
    return FALSE;
  cg->root = tiny_simplify (cg->graph, rewrite_loads (cg, root));
  tiny_codegen_list_params (cg);
  return TRUE;
}
