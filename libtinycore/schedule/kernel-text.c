/* SPDX-License-Identifier: MIT
 *
 * kernel-text.c: from text to a kernel that may run: what it may consist of, and gates. */
#include "schedule/kernel-text.h"

#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"
#include "rewrite/tiny-bounds.h"
#include "schedule/factor.h"

/* Passes walk a kernel by recursion, and look at some nodes for each of the others. */
enum { MAX_NODES = 8192, MOST_LOOKED_AT = 1 << 24, MAX_SHOWN = 60 };

#define FAIL(...)                                                                              \
  G_STMT_START                                                                                 \
  {                                                                                            \
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, __VA_ARGS__);                          \
    return FALSE;                                                                              \
  }                                                                                            \
  G_STMT_END

/* ---- what it consists of ---- */
static gboolean
add_param (KernelText *self, TinyNode *param, GError **error)
{
  if (param->arg < 0 || param->arg >= KERNEL_TEXT_MAX_PARAMS)
    FAIL ("slot %" G_GINT64_FORMAT " is not between 0 and %d", param->arg,
          KERNEL_TEXT_MAX_PARAMS - 1);
  if (param->text != NULL)
    FAIL ("param %" G_GINT64_FORMAT " names a device; a kernel runs where its inputs are",
          param->arg);
  if (param->shape->n > KERNEL_TEXT_MAX_RANK || tiny_shape_get_n_elements (param->shape) == 0)
    FAIL ("param %" G_GINT64_FORMAT " has no elements, or more than %d axes", param->arg,
          KERNEL_TEXT_MAX_RANK);
  if (self->params[param->arg] != NULL)
    FAIL ("there are two params of slot %" G_GINT64_FORMAT, param->arg);
  self->params[param->arg] = param;
  self->n_params = MAX (self->n_params, (guint) param->arg + 1);
  return TRUE;
}

/* What only passes make keeps to laws that no check knows. */
static gboolean
check_node (const TinyNode *node, GError **error)
{
  if (node->op == TINY_OP_VARIABLE)
    FAIL ("a variable has no value here");
  if (node->op == TINY_OP_AFTER)
    FAIL ("it has an after, which would make a value stand for memory; stores come in the "
          "sink's order");
  if (node->op == TINY_OP_LOCAL)
    FAIL ("it has local memory; which values are kept there is found out later");
  if (node->op != TINY_OP_RANGE || tiny_range_get_kind (node) == TINY_RANGE_LOOP
      || tiny_range_get_kind (node) == TINY_RANGE_REDUCE)
    return TRUE;
  FAIL ("range %u is of kind %s; it is a loop or a reduce, what that becomes is decided later",
        tiny_range_get_number (node), tiny_range_kind_to_string (tiny_range_get_kind (node)));
}

static gboolean
find_params (KernelText *self, GPtrArray *order, guint n_inputs, GError **error)
{
  if (order->len > MAX_NODES)
    FAIL ("it has %u nodes, and a kernel %d at most", order->len, MAX_NODES);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (!check_node (node, error))
      return FALSE;
    if (node->op == TINY_OP_PARAM && !add_param (self, node, error))
      return FALSE;
  }
  for (guint i = 0; i < self->n_params; i++)
    if (self->params[i] == NULL)
      FAIL ("there is no param of slot %u, but one of slot %u", i, self->n_params - 1);
  if (self->n_params <= n_inputs)
    FAIL ("there are %u params, for %u inputs and at least one output", self->n_params,
          n_inputs);
  self->n_outputs = self->n_params - n_inputs;
  return TRUE;
}

/* Memory is no value: it stands where a LOAD or STORE has it, nowhere else. */
static gboolean
check_memory (const TinyNode *node, GError **error)
{
  gboolean accesses = node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE;
  for (guint s = accesses; s < node->n_sources; s++)
    if (node->sources[s]->op == TINY_OP_PARAM)
      FAIL ("a %s has param %" G_GINT64_FORMAT " as a value; load from it",
            tiny_op_to_string ((TinyOp) node->op), node->sources[s]->arg);
  return TRUE;
}

/* One STORE to each output, no LOAD of one, none to an input. */
static gboolean
check_accesses (KernelText *self, GPtrArray *order, GError **error)
{
  gboolean is_stored[KERNEL_TEXT_MAX_PARAMS] = { FALSE };
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    gboolean loads = node->op == TINY_OP_LOAD;
    if (!check_memory (node, error))
      return FALSE;
    if ((!loads && node->op != TINY_OP_STORE) || node->sources[0]->op != TINY_OP_PARAM)
      continue;
    guint slot = (guint) node->sources[0]->arg;
    if (loads && slot < self->n_outputs)
      FAIL ("it loads from param %u, which is an output", slot);
    if (!loads && slot >= self->n_outputs)
      FAIL ("it stores to param %u, which is an input", slot);
    if (!loads && is_stored[slot])
      FAIL ("there are two stores to output %u", slot);
    is_stored[slot] = is_stored[slot] || !loads;
  }
  for (guint i = 0; i < self->n_outputs; i++)
    if (!is_stored[i])
      FAIL ("there is no store to output %u", i);
  return TRUE;
}

/* ---- rebuilding ---- */
typedef struct {
  TinyGraph *graph;
  TinyNodeMap map, addresses;
  TinyNode *batch;                             /* the RANGE over a batch, or NULL */
  gboolean is_batched[KERNEL_TEXT_MAX_PARAMS]; /* by slot */
} Rebuild;

static TinyNode *
make_param (Rebuild *self, TinyNode *param)
{
  gint64 n = tiny_shape_get_n_elements (param->shape);
  return tiny_node_new (self->graph, TINY_OP_PARAM, (TinyDType) param->dtype, 1, 0, NULL,
                        param->arg, tiny_graph_ints (self->graph, &n, 1), NULL);
}

/* Index arithmetic that may leave its range: over numbers from memory, or of extents that are too large. Nothing
 * may be concluded of it, so it is done in i64, which wraps by definition. */
static gboolean
may_wrap (TinyNode *node, TinyNode *const *sources)
{
  gint64 least, most;
  if (node->dtype != TINY_DTYPE_INDEX || node->op == TINY_OP_RANGE || node->op == TINY_OP_CONST)
    return FALSE;
  for (guint s = 0; s < node->n_sources; s++)
    if (sources[s]->dtype == TINY_DTYPE_I64 && node->sources[s]->dtype == TINY_DTYPE_INDEX)
      return TRUE;
  tiny_node_get_bounds (node, &least, &most);
  return node->op == TINY_OP_CAST || least <= tiny_dtype_get_min (TINY_DTYPE_INDEX)
         || most >= tiny_dtype_get_max (TINY_DTYPE_INDEX);
}

static TinyNode *
widen (Rebuild *self, TinyNode *x)
{
  return x->op == TINY_OP_CONST ? tiny_node_const_int (self->graph, TINY_DTYPE_I64, x->arg)
                                : tiny_node_cast (self->graph, x, TINY_DTYPE_I64);
}

/* Makes index operands of @node one dtype; the loops that it names stay INDEX. Whether @node is i64. */
static gboolean
settle_index (Rebuild *self, TinyNode *node, TinyNode **sources)
{
  const gboolean wraps = may_wrap (node, sources);
  const guint n = node->op == TINY_OP_REDUCE ? 1 : node->n_sources;
  gboolean any = wraps;
  for (guint s = 0; s < n; s++)
    any = any || sources[s]->dtype == TINY_DTYPE_I64;
  for (guint s = 0; any && s < n; s++)
    if (node->sources[s]->dtype == TINY_DTYPE_INDEX)
      sources[s] = widen (self, sources[s]);
  return wraps;
}

static TinyNode *
get_address (Rebuild *self, TinyNode *node)
{
  TinyNode *noted = tiny_node_map_get (&self->addresses, node);
  return noted != NULL ? noted : tiny_node_map_get (&self->map, node);
}

/* Notes @made, which is @node in i64, as INDEX again. Sums and products are made anew: they are the same modulo any power
 * of two, so where the gate holds they are the element, in as many bits as a target counts elements with. */
static void
note_address (Rebuild *self, TinyNode *node, TinyNode *made)
{
  TinyNode *sources[2], *address;
  const gboolean adds = node->op == TINY_OP_ADD || node->op == TINY_OP_SUB
                        || node->op == TINY_OP_MUL || node->op == TINY_OP_NEG;
  if (node->dtype != TINY_DTYPE_INDEX || made->dtype != TINY_DTYPE_I64)
    return;
  for (guint s = 0; adds && s < node->n_sources; s++)
    sources[s] = get_address (self, node->sources[s]);
  address = adds ? tiny_node_with_sources (self->graph, node, sources)
                 : tiny_node_cast (self->graph, made, TINY_DTYPE_INDEX);
  tiny_node_map_set (&self->addresses, node, address);
}

/* 0 <= @index < @n as far as that is not known; NULL: it always is. */
static TinyNode *
make_gate (Rebuild *self, TinyNode *index, gint64 n)
{
  const TinyDType dtype = (TinyDType) index->dtype;
  TinyNode *gate = NULL;
  if (tiny_node_get_min (index) < 0)
    gate = tiny_node_binary (self->graph, TINY_OP_CMPLT,
                             tiny_node_const_int (self->graph, dtype, -1), index);
  if (tiny_node_get_max (index) < n)
    return gate;
  TinyNode *below = tiny_node_binary (self->graph, TINY_OP_CMPLT, index,
                                      tiny_node_const_int (self->graph, dtype, n));
  return gate == NULL ? below : tiny_node_binary (self->graph, TINY_OP_AND, gate, below);
}

/* A LOAD or STORE that reaches its PARAM only: elsewhere it reads 0 and stores nothing. */
static TinyNode *
guard_access (Rebuild *self, TinyNode *node, TinyNode *const *sources, gint64 n_elements)
{
  gboolean loads = node->op == TINY_OP_LOAD;
  guint n = node->n_sources, at = loads ? 2 : 3;
  TinyNode *all[4] = { sources[0], get_address (self, node->sources[1]) };
  TinyNode *gate = make_gate (self, sources[1], n_elements);
  for (guint s = 2; s < n; s++)
    all[s] = sources[s];
  if (gate == NULL)
    return tiny_node_with_sources (self->graph, node, all);
  all[at] = n > at ? tiny_node_binary (self->graph, TINY_OP_AND, sources[at], gate) : gate;
  if (loads && n <= 3)
    all[3] = tiny_node_const_int (self->graph, (TinyDType) node->dtype, 0);
  return tiny_node_new (self->graph, (TinyOp) node->op, (TinyDType) node->dtype, 1, 4, all,
                        node->arg, node->ints, node->text);
}

/* @access, of one element of the batch, of element @batch of it. */
static TinyNode *
batch_access (Rebuild *self, TinyNode *access, gint64 n_elements)
{
  TinyNode *first = tiny_node_binary (self->graph, TINY_OP_MUL, self->batch,
                                      tiny_node_const_index (self->graph, n_elements));
  g_autofree TinyNode **sources
      = g_memdup2 (access->sources, access->n_sources * sizeof *sources);
  sources[1] = tiny_node_binary (self->graph, TINY_OP_ADD, first, sources[1]);
  return tiny_node_with_sources (self->graph, access, sources);
}

static TinyNode *
rebuild_node (Rebuild *self, TinyNode *node, TinyNode **sources)
{
  gboolean accesses = node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE;
  TinyNode *memory = accesses ? node->sources[0] : NULL;
  if (memory == NULL || memory->op != TINY_OP_PARAM)
    return settle_index (self, node, sources)
               ? tiny_node_new (self->graph, (TinyOp) node->op, TINY_DTYPE_I64, 1,
                                node->n_sources, sources, node->arg, node->ints, node->text)
               : tiny_node_with_sources (self->graph, node, sources);
  const gint64 n = tiny_shape_get_n_elements (memory->shape);
  TinyNode *access = guard_access (self, node, sources, n);
  return self->batch != NULL && self->is_batched[memory->arg] ? batch_access (self, access, n)
                                                              : access;
}

static TinyNode *
rebuild (Rebuild *self, TinyNode *root, TinyNode *(*make) (Rebuild *self, TinyNode *param))
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &root, 1);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&self->map, node->sources[s]));
    TinyNode *made = node->op == TINY_OP_PARAM
                         ? make (self, node)
                         : rebuild_node (self, node, (TinyNode **) sources->pdata);
    tiny_node_map_set (&self->map, node, made);
    note_address (self, node, made);
  }
  TinyNode *result = tiny_node_map_get (&self->map, root);
  tiny_node_map_clear (&self->map);
  tiny_node_map_clear (&self->addresses);
  self->map = self->addresses = (TinyNodeMap){ 0 };
  return result;
}

/* ---- the whole ---- */
/* @root with PARAMs of one axis, if it is legal in a kernel; else NULL. */
static TinyNode *
flatten (TinyGraph *graph, TinyNode *root, GError **error)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_autoptr (GPtrArray) from = g_ptr_array_new (), to = g_ptr_array_new ();
  Rebuild way = { .graph = graph };
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_PARAM)
      continue;
    g_ptr_array_add (from, node);
    g_ptr_array_add (to, make_param (&way, node));
  }
  root = tiny_graph_substitute (graph, root, (TinyNode *const *) from->pdata,
                                (TinyNode *const *) to->pdata, from->len);
  return tiny_graph_verify (graph, root, TINY_STAGE_KERNEL, error) ? root : NULL;
}

/* The line of the first statement that is not legal: that up to which @text is not; 0: none, or it would take long. */
static guint
find_line (const char *text)
{
  guint line = 1, first = 1;
  gsize n_lines = 0;
  for (const char *end = text; *end != 0; end++)
    n_lines += *end == '\n';
  if (n_lines > MOST_LOOKED_AT / (strlen (text) + 1))
    return 0;
  for (const char *end = text; *end != 0; end++) {
    if (*end != '\n')
      continue;
    line++;
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autofree char *head = g_strndup (text, (gsize) (end - text) + 1);
    TinyNode *root = tiny_graph_parse (graph, head, NULL);
    if (root == NULL) /* a statement of several lines, or none yet */
      continue;
    if (flatten (graph, root, NULL) == NULL)
      return first;
    first = line;
  }
  return 0;
}

/* The operands of an operation as PARAMs. */
static gboolean
read_operation (
    KernelText *self, TinyGraph *graph, const char *text, guint n_inputs, GError **error)
{
  g_autofree char *shown = tiny_clean_text (text, MAX_SHOWN);
  self->is_operation = TRUE;
  if (!factor_from_text (&self->operation, text)
      || self->operation.n_operands != factor_count_outputs (&self->operation) + n_inputs)
    FAIL ("“%s” is no operation of %u inputs", shown, n_inputs);
  self->n_outputs = factor_count_outputs (&self->operation);
  self->n_params = self->operation.n_operands;
  self->sink = tiny_node_sink_untrusted (graph, tiny_node_sink (graph, 0, NULL, text));
  for (guint i = 0; i < self->n_params; i++) {
    gint64 dims[FACTOR_MAX_RANK];
    guint n = factor_get_shape (&self->operation, i, dims);
    self->params[i]
        = tiny_node_new (graph, TINY_OP_PARAM, (TinyDType) self->operation.operands[i].dtype, 1,
                         0, NULL, i, tiny_graph_ints (graph, dims, n), NULL);
  }
  return TRUE;
}

static char *
batch_operation (const char *text, gint64 size, GError **error)
{
  TinyOperation operation;
  g_autofree char *shown = tiny_clean_text (text, MAX_SHOWN);
  if (!factor_from_text (&operation, text)
      || operation.extents[TINY_FACTOR_BATCH] > G_MAXINT64 / size)
    FAIL ("“%s” is no operation that has a batch of %" G_GINT64_FORMAT, shown, size);
  operation.extents[TINY_FACTOR_BATCH] *= size;
  return factor_to_text (&operation);
}

gboolean
kernel_text_parse (
    KernelText *self, TinyGraph *graph, const char *text, guint n_inputs, GError **error)
{
  *self = (KernelText){ 0 };
  if (factor_is_text (text))
    return read_operation (self, graph, text, n_inputs, error);
  TinyNode *root = tiny_graph_parse (graph, text, error);
  if (root == NULL)
    return FALSE;
  if (root->op != TINY_OP_SINK)
    FAIL ("the last statement is a %s, not the sink of the kernel's stores",
          tiny_op_to_string ((TinyOp) root->op));
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  if (!find_params (self, order, n_inputs, error))
    return FALSE;
  TinyNode *flat = flatten (graph, root, error);
  if (flat == NULL) {
    guint line = find_line (text);
    if (line > 0)
      g_prefix_error (error, "%u:1: ", line);
    return FALSE;
  }
  if (!check_accesses (self, order, error))
    return FALSE;
  Rebuild way = { .graph = graph };
  self->sink = tiny_node_sink_untrusted (graph, rebuild (&way, flat, make_param));
  return TRUE;
}

/* ---- batches ---- */
/* In its tensor's shape, with the batch's axis. */
static TinyNode *
make_batched_param (Rebuild *self, TinyNode *param)
{
  gint64 dims[KERNEL_TEXT_MAX_RANK + 1]
      = { self->is_batched[param->arg] ? tiny_range_get_extent (self->batch) : 1 };
  guint n = param->shape->n;
  if (!self->is_batched[param->arg])
    return param;
  memcpy (dims + 1, param->shape->v, n * sizeof *dims);
  return tiny_node_new (self->graph, TINY_OP_PARAM, (TinyDType) param->dtype, 1, 0, NULL,
                        param->arg, tiny_graph_ints (self->graph, dims, n + 1), NULL);
}

char *
kernel_text_batch (
    const char *text, guint n_inputs, const gboolean *is_batched, gint64 size, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  KernelText kernel;
  guint number = 0;
  if (factor_is_text (text))
    return batch_operation (text, size, error);
  if (!kernel_text_parse (&kernel, graph, text, n_inputs, error))
    return NULL;
  TinyNode *root = tiny_graph_parse (graph, text, error);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_RANGE)
      number = MAX (number, tiny_range_get_number (node) + 1);
  }
  Rebuild way = { .graph = graph };
  for (guint i = 0; i < kernel.n_params; i++)
    way.is_batched[i] = i < kernel.n_outputs || is_batched[i - kernel.n_outputs];
  way.batch = tiny_node_range_const (graph, number, TINY_RANGE_LOOP, size);
  return tiny_graph_print (graph, rebuild (&way, root, make_batched_param));
}
