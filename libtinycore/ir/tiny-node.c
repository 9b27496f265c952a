/* SPDX-License-Identifier: MIT
 *
 * tiny-node.c: shorthands for making nodes, and what can be read off one. */
#include "ir/tiny-node.h"

#include <math.h>
#include <string.h>

#include "ir/tiny-eval.h"

TinyNode *
tiny_node_unary (TinyGraph *graph, TinyOp op, TinyNode *x)
{
  return tiny_node_new (graph, op, x->dtype, x->lanes, 1, &x, 0, NULL, NULL);
}

TinyNode *
tiny_node_binary (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y)
{
  gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
  TinyNode *sources[] = { x, y };
  return tiny_node_new (graph, op, compares ? TINY_DTYPE_BOOL : x->dtype, x->lanes, 2, sources,
                        0, NULL, NULL);
}

TinyNode *
tiny_node_where (TinyGraph *graph, TinyNode *gate, TinyNode *x, TinyNode *y)
{
  TinyNode *sources[] = { gate, x, y };
  return tiny_node_new (graph, TINY_OP_WHERE, x->dtype, x->lanes, 3, sources, 0, NULL, NULL);
}

TinyNode *
tiny_node_mulacc (TinyGraph *graph, TinyNode *x, TinyNode *y, TinyNode *z)
{
  TinyNode *sources[] = { x, y, z };
  return tiny_node_new (graph, TINY_OP_MULACC, x->dtype, x->lanes, 3, sources, 0, NULL, NULL);
}

TinyNode *
tiny_node_cast (TinyGraph *graph, TinyNode *x, TinyDType dtype)
{
  if (x->dtype == dtype)
    return x;
  return tiny_node_new (graph, TINY_OP_CAST, dtype, x->lanes, 1, &x, 0, NULL, NULL);
}

TinyNode *
tiny_node_const_int (TinyGraph *graph, TinyDType dtype, gint64 value)
{
  gint64 bits = tiny_eval_wrap (dtype, value);
  if (tiny_dtype_is_float (dtype))
    tiny_eval_alu (TINY_OP_CAST, TINY_DTYPE_I64, dtype, &value, 1, &bits);
  return tiny_node_new (graph, TINY_OP_CONST, dtype, 1, 0, NULL, bits, NULL, NULL);
}

TinyNode *
tiny_node_const_float (TinyGraph *graph, TinyDType dtype, double value)
{
  if (tiny_dtype_is_float (dtype))
    return tiny_node_new (graph, TINY_OP_CONST, dtype, 1, 0, NULL,
                          tiny_eval_from_double (dtype, value), NULL, NULL);
  gint64 bits = 0; /* what no integer is nearest to, a NaN, becomes 0 */
  if (value >= 0x1p63)
    bits = value < 0x1p64 ? (gint64) (guint64) value : G_MAXINT64;
  else if (!isnan (value))
    bits = value <= -0x1p63 ? G_MININT64 : (gint64) value;
  return tiny_node_const_int (graph, dtype, bits);
}

TinyNode *
tiny_node_open (TinyGraph *graph, TinyDType dtype)
{
  return tiny_node_new (graph, TINY_OP_CONST, dtype, 1, 0, NULL, 0, NULL, "open");
}

gboolean
tiny_node_is_open (const TinyNode *node)
{
  return node->op == TINY_OP_CONST && node->text != NULL;
}

TinyNode *
tiny_node_const_index (TinyGraph *graph, gint64 value)
{
  return tiny_node_const_int (graph, TINY_DTYPE_INDEX, value);
}

TinyNode *
tiny_node_range (TinyGraph *graph, guint number, TinyRangeKind kind, TinyNode *bound)
{
  return tiny_node_new (graph, TINY_OP_RANGE, bound->dtype, 1, 1, &bound,
                        (gint64) kind << 32 | number, NULL, NULL);
}

TinyNode *
tiny_node_range_const (TinyGraph *graph, guint number, TinyRangeKind kind, gint64 extent)
{
  return tiny_node_range (graph, number, kind, tiny_node_const_index (graph, extent));
}

TinyNode *
tiny_node_sink (TinyGraph *graph, guint n, TinyNode *const *sources, const char *name)
{
  return tiny_node_new (graph, TINY_OP_SINK, TINY_DTYPE_VOID, 1, n, sources, 0, NULL, name);
}

TinyNode *
tiny_node_sink_untrusted (TinyGraph *graph, TinyNode *sink)
{
  return tiny_node_new (graph, TINY_OP_SINK, TINY_DTYPE_VOID, 1, sink->n_sources, sink->sources,
                        1, sink->ints, sink->text);
}

gboolean
tiny_node_is_untrusted (const TinyNode *sink)
{
  return sink != NULL && sink->op == TINY_OP_SINK && sink->arg != 0;
}

double
tiny_node_get_float (const TinyNode *node)
{
  if (!tiny_dtype_is_float (node->dtype))
    return node->dtype == TINY_DTYPE_U64 ? (double) (guint64) node->arg : (double) node->arg;
  double value;
  memcpy (&value, &node->arg, sizeof value);
  return value;
}

gboolean
tiny_node_is_const_int (const TinyNode *node, gint64 value)
{
  return node->op == TINY_OP_CONST && !tiny_dtype_is_float (node->dtype) && node->arg == value;
}

gint64
tiny_range_get_extent (const TinyNode *range)
{
  g_assert (range->op == TINY_OP_RANGE && range->sources[0]->op == TINY_OP_CONST);
  return range->sources[0]->arg;
}

const char *
tiny_range_kind_to_string (TinyRangeKind kind)
{
  static const char *const names[TINY_N_RANGE_KINDS]
      = { "loop", "reduce", "grid", "group", "upcast", "unroll", "lanes" };
  return names[kind];
}

/* ---- ranges a node depends on ---- */
static int
compare_ids (gconstpointer a, gconstpointer b)
{
  guint32 x = (*(TinyNode *const *) a)->id, y = (*(TinyNode *const *) b)->id;
  return x < y ? -1 : x > y;
}

/* Which of the node's sources are loops it closes: those are not open in its value. */
static gboolean
closes (TinyNode *node, TinyNode *range)
{
  if (node->op != TINY_OP_REDUCE && node->op != TINY_OP_END)
    return FALSE;
  for (guint i = node->op == TINY_OP_REDUCE ? 1 : 0; i < node->n_sources; i++)
    if (node->sources[i] == range)
      return TRUE;
  return FALSE;
}

/* Sorts @ranges, drops what is there twice, and gives how many are left. */
static guint
make_unique (TinyNode **ranges, guint n)
{
  guint unique = 0;
  qsort (ranges, n, sizeof *ranges, compare_ids);
  for (guint i = 0; i < n; i++)
    if (unique == 0 || ranges[unique - 1] != ranges[i])
      ranges[unique++] = ranges[i];
  return unique;
}

/* Gives the source that all others with ranges agree with, or NULL where they differ; *@out_n is the
 * number of ranges, counted again for each source. */
static TinyNode *
find_common (const TinyNode *node, guint *out_n)
{
  TinyNode *common = NULL;
  gboolean agree = TRUE;
  *out_n = 0;
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *source = node->sources[i];
    *out_n += source->n_ranges;
    if (common == NULL || common->n_ranges == 0)
      common = source;
    agree = agree && (source->n_ranges == 0 || source->ranges == common->ranges);
  }
  return agree ? common : NULL;
}

static void
compute_ranges (TinyGraph *graph, TinyNode *node)
{
  guint n, used = 0;
  TinyNode *common = find_common (node, &n), *few[32];
  gboolean keeps
      = node->op != TINY_OP_REDUCE && node->op != TINY_OP_END && node->op != TINY_OP_RANGE;
  if (common != NULL && keeps) {
    node->ranges = common->ranges;
    node->n_ranges = common->n_ranges;
    return;
  }
  g_autofree TinyNode **many = n >= G_N_ELEMENTS (few) ? g_new (TinyNode *, n + 1) : NULL;
  TinyNode **all = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++)
    for (guint j = 0; j < node->sources[i]->n_ranges; j++)
      if (!closes (node, node->sources[i]->ranges[j]))
        all[used++] = node->sources[i]->ranges[j];
  if (node->op == TINY_OP_RANGE)
    all[used++] = node;
  used = make_unique (all, used);
  /* Interned integers are the graph's own store for small lists of pointers. */
  G_STATIC_ASSERT (sizeof (gint64) == sizeof (gpointer));
  node->ranges = (TinyNode *const *) tiny_graph_ints (graph, (const gint64 *) all, used)->v;
  node->n_ranges = (guint16) used;
}

/* Pushes the sources of @node whose ranges are not known; whether there was none. */
static gboolean
push_unknown_sources (GPtrArray *stack, const TinyNode *node)
{
  guint len = stack->len;
  for (guint i = node->n_sources; i-- > 0;)
    if (node->sources[i]->ranges == NULL)
      g_ptr_array_add (stack, node->sources[i]);
  return stack->len == len;
}

/* Looks at what is not known only: most of what is under a new node is older than it. */
static void
compute_ranges_below (TinyGraph *graph, TinyNode *node)
{
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  g_ptr_array_add (stack, node);
  while (stack->len > 0) {
    TinyNode *top = stack->pdata[stack->len - 1];
    if (top->ranges == NULL && !push_unknown_sources (stack, top))
      continue;
    if (top->ranges == NULL)
      compute_ranges (graph, top);
    g_ptr_array_set_size (stack, (gint) stack->len - 1);
  }
}

TinyNode *const *
tiny_node_get_ranges (TinyGraph *graph, TinyNode *node, guint *out_n)
{
  if (node->ranges == NULL) {
    gboolean ready = TRUE;
    for (guint i = 0; i < node->n_sources; i++)
      ready = ready && node->sources[i]->ranges != NULL;
    if (ready)
      compute_ranges (graph, node);
    else
      compute_ranges_below (graph, node);
  }
  *out_n = node->n_ranges;
  return node->ranges;
}

gboolean
tiny_node_depends_on (TinyGraph *graph, TinyNode *node, TinyNode *range)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, node, &n);
  for (guint i = 0; i < n; i++)
    if (ranges[i] == range)
      return TRUE;
  return FALSE;
}
