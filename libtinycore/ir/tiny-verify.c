/* SPDX-License-Identifier: MIT
 *
 * tiny-verify.c: the rules of each stage of the graph. Which ops are legal where is a column of
 * op-rules.def; what is more than that is one function a stage. */
#include "ir/tiny-verify.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify-private.h"

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
      && node->sources[0]->op != TINY_OP_PARAM && node->sources[0]->op != TINY_OP_UNSHARD)
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

/* The nodes that a program knows by number. */
typedef struct {
  GHashTable *ranges, *params, *variables, *filled; /* the last: LOCALs stored to so far */
} Numbers;

enum { MAX_SLOTS = 65536 };

static char *
verify_number (GHashTable *seen, TinyNode *node, gint64 number)
{
  if (number < 0 || number >= MAX_SLOTS)
    FAIL ("its number is not in 0 .. %d", MAX_SLOTS - 1);
  TinyNode *other = g_hash_table_lookup (seen, GUINT_TO_POINTER ((guint) number));
  if (other != NULL && other != node)
    FAIL ("another %s has its number", tiny_op_to_string (node->op));
  g_hash_table_insert (seen, GUINT_TO_POINTER ((guint) number), node);
  return NULL;
}

/* Readers of a variable trust its bounds, and get no more bits than its dtype has. */
static char *
verify_variable (Numbers *self, TinyNode *node)
{
  const gint64 *bounds = node->ints != NULL && node->ints->n == 2 ? node->ints->v : NULL;
  const TinyDType dtype = (TinyDType) node->dtype;
  if (bounds != NULL && dtype != TINY_DTYPE_INDEX && tiny_dtype_is_integer (dtype)
      && (bounds[0] < tiny_dtype_get_min (dtype) || bounds[1] > tiny_dtype_get_max (dtype)))
    return g_strdup_printf ("its bounds %" G_GINT64_FORMAT " … %" G_GINT64_FORMAT
                            " are not within %s",
                            bounds[0], bounds[1], tiny_dtype_to_string (dtype));
  return verify_number (self->variables, node, node->arg);
}

/* Two loops of one number would be one loop in the program, two parameters one buffer. */
static char *
verify_numbers (Numbers *self, TinyNode *node)
{
  switch (node->op) {
  case TINY_OP_RANGE:
    return verify_number (self->ranges, node, tiny_range_get_number (node));
  case TINY_OP_PARAM:
    return verify_number (self->params, node, node->arg);
  case TINY_OP_VARIABLE:
    return verify_variable (self, node);
  default:
    return NULL;
  }
}

/* LOCAL memory is filled by one STORE, which comes first. Users come after sources, and what a SINK
 * lists first comes before the rest. */
static char *
verify_local (GHashTable *filled, const TinyNode *node)
{
  if ((node->op != TINY_OP_LOAD && node->op != TINY_OP_STORE)
      || node->sources[0]->op != TINY_OP_LOCAL)
    return NULL;
  gboolean is_filled = g_hash_table_contains (filled, node->sources[0]);
  if (node->op == TINY_OP_LOAD && !is_filled)
    FAIL ("reads local memory that nothing before it fills");
  if (node->op == TINY_OP_STORE && !g_hash_table_add (filled, node->sources[0]))
    FAIL ("fills local memory that another store fills");
  return NULL;
}

/* How often a store or the inside of a reduction happens must be countable. */
static char *
verify_extent (TinyGraph *graph, TinyNode *node, TinyStage stage)
{
  /* Once loops have their form it may be calculated from variables. */
  if (node->op == TINY_OP_RANGE && node->sources[0]->op != TINY_OP_CONST) {
    if (stage == TINY_STAGE_KERNEL)
      FAIL ("its bound is no constant");
  } else if (node->op == TINY_OP_RANGE) {
    if (node->sources[0]->arg < 0
        || node->sources[0]->arg > tiny_dtype_get_max (TINY_DTYPE_INDEX))
      FAIL ("counts to %" G_GINT64_FORMAT, node->sources[0]->arg);
  }
  if (node->op != TINY_OP_STORE && node->op != TINY_OP_REDUCE)
    return NULL;
  guint n;
  gint64 count = 1;
  TinyNode *const *ranges
      = tiny_node_get_ranges (graph, node->op == TINY_OP_STORE ? node : node->sources[0], &n);
  for (guint i = 0; i < n; i++)
    if (ranges[i]->sources[0]->op != TINY_OP_CONST)
      return NULL; /* it was counted when it was one */
  for (guint i = 0; i < n; i++)
    if (__builtin_mul_overflow (count, MAX (tiny_range_get_extent (ranges[i]), 1), &count)
        || count > tiny_dtype_get_max (TINY_DTYPE_INDEX))
      FAIL ("happens more often than an index can count");
  return NULL;
}

static gboolean
refuse (TinyStage stage, const TinyNode *node, const char *why, GError **error)
{
  g_autofree char *text = tiny_node_to_string (node);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s stage: %s: %s", stage_names[stage],
               text, why);
  return FALSE;
}

gboolean
tiny_graph_verify (TinyGraph *graph, TinyNode *root, TinyStage stage, GError **error)
{
  g_return_val_if_fail ((guint) stage < G_N_ELEMENTS (verify_stage), FALSE);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_autoptr (GHashTable) ranges = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) params = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) variables = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) filled = g_hash_table_new (NULL, NULL);
  Numbers numbers = { ranges, params, variables, filled };
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
      why = verify_numbers (&numbers, node);
    if (why == NULL && stage == TINY_STAGE_KERNEL)
      why = verify_local (numbers.filled, node);
    if (why == NULL && stage != TINY_STAGE_TENSOR)
      why = verify_extent (graph, node, stage);
    if (why != NULL)
      return refuse (stage, node, why, error);
  }
  const TinyNode *beyond
      = stage == TINY_STAGE_KERNEL ? tiny_verify_find_overflow (order) : NULL;
  if (beyond != NULL)
    return refuse (stage, beyond, "may be more than an index can count", error);
  return TRUE;
}

gboolean
tiny_verify_is_wanted (void)
{
  int wanted = tiny_env_get_int (TINY_ENV_VERIFY);
#ifdef NDEBUG
  return wanted > 0;
#else
  return wanted != 0;
#endif
}
