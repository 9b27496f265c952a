/* SPDX-License-Identifier: MIT
 *
 * tiny-verify.c: the rules of each stage of the graph. Which ops are legal where is a column of
 * op-rules.def; what is more than that is one function a stage. */
#include "ir/tiny-verify.h"

#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-text.h"

static const char *const stage_names[] = { "tensor", "kernel", "expanded" };

const char *
tiny_stage_to_string (TinyStage stage)
{
  g_return_val_if_fail ((guint) stage < G_N_ELEMENTS (stage_names), NULL);
  return stage_names[stage];
}

gboolean
tiny_stage_from_string (const char *text, TinyStage *out_stage)
{
  for (guint i = 0; i < G_N_ELEMENTS (stage_names); i++)
    if (strcmp (stage_names[i], text) == 0) {
      *out_stage = i;
      return TRUE;
    }
  return FALSE;
}

#define FAIL(...) return g_strdup_printf (__VA_ARGS__)

static char *
verify_tensor (const TinyNode *node)
{
  if (node->op == TINY_OP_SINK)
    return NULL;
  if (node->lanes != 1)
    FAIL ("a tensor has no lanes");
  if (node->shape == NULL)
    FAIL ("has no shape");
  if (node->op == TINY_OP_REDUCE && node->ints == NULL)
    FAIL ("names no axes");
  if (node->op == TINY_OP_ASSIGN && node->sources[0]->op != TINY_OP_BUFFER
      && node->sources[0]->op != TINY_OP_PARAM)
    FAIL ("assigns to %s, not to a buffer", tiny_op_to_string (node->sources[0]->op));
  return NULL;
}

/* Of kernels before and after expansion. */
static char *
verify_loops (const TinyNode *node)
{
  switch (node->op) {
  case TINY_OP_PARAM:
    if (node->ints->n != 1)
      FAIL ("has %u axes, a kernel's buffer has one", node->ints->n);
    return NULL;
  case TINY_OP_REDUCE:
    if (node->ints != NULL)
      FAIL ("combines axes, not ranges");
    return NULL;
  case TINY_OP_SINK:
    for (guint i = 0; i < node->n_sources; i++)
      if (node->sources[i]->dtype != TINY_DTYPE_VOID)
        FAIL ("source %u is a value, not a store", i + 1);
    return NULL;
  default:
    return NULL;
  }
}

static char *
verify_kernel (const TinyNode *node)
{
  if (node->lanes != 1)
    FAIL ("a kernel has no lanes before it is expanded");
  if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE) {
    if (node->n_sources < (node->op == TINY_OP_LOAD ? 2 : 3))
      FAIL ("has no index");
    if (node->sources[1]->dtype != TINY_DTYPE_INDEX)
      FAIL ("the index is %s, not index", tiny_dtype_infos[node->sources[1]->dtype].text);
  }
  if (node->op == TINY_OP_RANGE && node->dtype != TINY_DTYPE_INDEX)
    FAIL ("is %s, not index", tiny_dtype_infos[node->dtype].text);
  return verify_loops (node);
}

static char *
verify_expanded (const TinyNode *node)
{
  if (node->op == TINY_OP_RANGE) {
    TinyRangeKind kind = tiny_range_get_kind (node);
    if (kind == TINY_RANGE_UPCAST || kind == TINY_RANGE_UNROLL || kind == TINY_RANGE_LANES)
      FAIL ("ranges of kind %s are gone by now", tiny_range_kind_to_string (kind));
  }
  if ((node->op == TINY_OP_LOAD && node->n_sources > 1)
      || (node->op == TINY_OP_STORE && node->n_sources > 2)) {
    if (node->sources[1]->lanes != 1)
      FAIL ("the index is a vector");
  }
  return verify_loops (node);
}

static char *(*const verify_stage[]) (const TinyNode *node)
    = { verify_tensor, verify_kernel, verify_expanded };

/* Two loops of one number would be one loop in the program. */
static char *
verify_range_number (GHashTable *numbers, TinyNode *node)
{
  if (node->op != TINY_OP_RANGE)
    return NULL;
  gpointer number = GUINT_TO_POINTER (tiny_range_get_number (node));
  TinyNode *other = g_hash_table_lookup (numbers, number);
  if (other != NULL && other != node)
    FAIL ("another range has its number");
  g_hash_table_insert (numbers, number, node);
  return NULL;
}

gboolean
tiny_graph_verify (TinyGraph *graph, TinyNode *root, TinyStage stage, GError **error)
{
  g_return_val_if_fail ((guint) stage < G_N_ELEMENTS (verify_stage), FALSE);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_autoptr (GHashTable) numbers = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_autofree char *why = NULL;
    if ((tiny_op_rules[node->op].stages >> stage & 1) == 0)
      why = g_strdup ("does not belong to this stage");
    if (why == NULL)
      why = tiny_check_node (node->op, node->dtype, node->lanes, node->n_sources, node->sources,
                             node->arg, node->ints, node->text);
    if (why == NULL)
      why = verify_stage[stage](node);
    if (why == NULL)
      why = verify_range_number (numbers, node);
    if (why == NULL)
      continue;
    g_autofree char *text = tiny_node_to_string (node);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s stage: %s: %s", stage_names[stage],
                 text, why);
    return FALSE;
  }
  return TRUE;
}
