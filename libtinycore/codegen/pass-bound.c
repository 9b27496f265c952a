/* SPDX-License-Identifier: MIT
 *
 * pass-bound.c: loops end where nothing follows.
 *
 * What is combined over an axis whose size is a variable is masked: where (i < n, x, neutral). From i = n on
 * rounds of the loop change nothing, so it counts to n instead of to the largest n. The same holds where the axis
 * was split: of a loop whose round k does elements 16 k … 16 k + 15 the last is that of n - 1, and the masks inside
 * care for the rest of it. A store whose gate is such a condition does nothing from there on either.
 *
 * The bound is calculated from variables, constants and the place of the grid point alone, so it is the same for all
 * items of a work-group, which meet at barriers. Where there is no local memory nobody waits for others: there it
 * may also be a number that the kernel reads for the loops around, such as how many of a list belong to a row
 * (tensor/tiny-positions.c). It is the largest of those of all that happens in the loop; anything in it without one
 * leaves it as it is. */
#include "codegen/codegen-private.h"

#include "ir/tiny-eval.h"
#include "rewrite/tiny-bounds.h"

/* Where it ends for one range. */
typedef struct {
  TinyGraph *graph;
  TinyNode *range;
  TinyOp op;          /* of the REDUCE; of no account in conditions */
  TinyNode *identity; /* scalar */
  TinyNode *reduce;   /* whose bound may be read from memory; or NULL */
} Search;

/* range * mul + place + something of at least min, place the same for all of a grid point, or NULL */
typedef struct {
  gint64 mul, min;
  TinyNode *place;
} Line;

static TinyNode *
skip_conversions (TinyNode *node)
{
  for (;;) {
    if (node->op == TINY_OP_VECTOR && node->n_sources == 1) {
      node = node->sources[0];
      continue;
    }
    if (node->op != TINY_OP_CAST || tiny_dtype_is_float (node->dtype)
        || tiny_dtype_is_float (node->sources[0]->dtype)
        || node->sources[0]->dtype == TINY_DTYPE_BOOL)
      return node;
    gint64 lo, hi;
    tiny_node_get_bounds (node->sources[0], &lo, &hi);
    if (lo < tiny_dtype_get_min (node->dtype) || hi > tiny_dtype_get_max (node->dtype)
        || tiny_dtype_is_unsigned (node->dtype))
      return node;
    node = node->sources[0];
  }
}

/* Whether what @load reads is there before the loops that the REDUCE closes, and stays. */
static gboolean
is_read_before (const Search *self, TinyNode *load)
{
  if (self->reduce == NULL || load->lanes > 1 || load->sources[0]->op != TINY_OP_PARAM)
    return FALSE;
  for (guint i = 1; i < self->reduce->n_sources; i++)
    if (tiny_node_depends_on (self->graph, load, self->reduce->sources[i]))
      return FALSE;
  return TRUE;
}

/* Whether @node is calculated from variables, constants and where the grid point is; the last is not let in where
 * @out_varies is wanted, which says whether there is a variable, or something that is read. */
static gboolean
is_uniform (const Search *self, TinyNode *node, gboolean *out_varies)
{
  gboolean is_read
      = out_varies != NULL && node->op == TINY_OP_LOAD && is_read_before (self, node);
  if (out_varies != NULL)
    *out_varies = *out_varies || node->op == TINY_OP_VARIABLE || is_read;
  if (is_read)
    return TRUE;
  if (node->op == TINY_OP_VARIABLE || node->op == TINY_OP_CONST || node->op == TINY_OP_GRID)
    return out_varies == NULL || node->op != TINY_OP_GRID;
  if (!tiny_op_is_elementwise (node->op) || node->lanes > 1)
    return FALSE;
  for (guint i = 0; i < node->n_sources; i++)
    if (!is_uniform (self, node->sources[i], out_varies))
      return FALSE;
  return TRUE;
}

static TinyNode *
add (TinyGraph *graph, TinyNode *x, gint64 number)
{
  return tiny_fold_binary (graph, TINY_OP_ADD, x, tiny_node_const_index (graph, number));
}

static gboolean
read_rest (const Search *self, TinyNode *node, Line *out)
{
  gint64 hi;
  if (tiny_dtype_is_float (node->dtype) || node->dtype == TINY_DTYPE_U64)
    return FALSE;
  if (node->op != TINY_OP_CONST && node->dtype == TINY_DTYPE_INDEX && node->lanes == 1
      && is_uniform (self, node, NULL)) {
    out->place = node;
    return TRUE;
  }
  tiny_node_get_bounds (node, &out->min, &hi);
  return TRUE;
}

static gboolean
read_sum (const Search *self, const Line *x, const Line *y, Line *out)
{
  out->place = x->place != NULL ? x->place : y->place;
  if (x->place != NULL && y->place != NULL)
    out->place = tiny_fold_binary (self->graph, TINY_OP_ADD, x->place, y->place);
  return !__builtin_add_overflow (x->min, y->min, &out->min)
         && !__builtin_add_overflow (x->mul, y->mul, &out->mul);
}

static gboolean
read_line (const Search *self, TinyNode *node, Line *out)
{
  Line x, y;
  node = skip_conversions (node);
  *out = (Line){ 1, 0, NULL };
  if (node == self->range)
    return TRUE;
  out->mul = 0;
  if (!tiny_node_depends_on (self->graph, node, self->range) && node->op != TINY_OP_ADD)
    return read_rest (self, node, out);
  if ((node->op != TINY_OP_ADD && node->op != TINY_OP_MUL)
      || !read_line (self, node->sources[0], &x) || !read_line (self, node->sources[1], &y))
    return FALSE;
  if (node->op == TINY_OP_ADD)
    return read_sum (self, &x, &y, out);
  TinyNode *factor = skip_conversions (node->sources[1]);
  if (x.place != NULL)
    out->place = tiny_fold_binary (self->graph, TINY_OP_MUL, x.place, factor);
  return factor->op == TINY_OP_CONST && factor->arg > 0 && factor->dtype == TINY_DTYPE_INDEX
         && !__builtin_mul_overflow (x.min, factor->arg, &out->min)
         && !__builtin_mul_overflow (x.mul, factor->arg, &out->mul);
}

/* The first round from which x < y + @more is false for good: x = mul * range + at least min. */
static TinyNode *
end_of_less (const Search *self, TinyNode *x, TinyNode *y, gint64 more)
{
  Line line;
  gboolean varies = FALSE;
  y = skip_conversions (y);
  if (!read_line (self, x, &line) || line.mul <= 0 || !is_uniform (self, y, &varies) || !varies
      || ABS (line.min) > G_MAXINT32 || line.mul > G_MAXINT32
      || !tiny_dtype_is_signed (y->dtype))
    return NULL;
  TinyNode *end = add (self->graph, tiny_node_cast (self->graph, y, TINY_DTYPE_INDEX),
                       more - line.min + line.mul - 1);
  if (line.place != NULL)
    end = tiny_fold_binary (self->graph, TINY_OP_SUB, end, line.place);
  return line.mul == 1 ? end
                       : tiny_fold_binary (self->graph, TINY_OP_FLOORDIV, end,
                                           tiny_node_const_index (self->graph, line.mul));
}

static TinyNode *
choose (const Search *self, TinyNode *x, TinyNode *y, gboolean larger)
{
  if (x == y)
    return x;
  TinyNode *less = tiny_fold_binary (self->graph, TINY_OP_CMPLT, x, y);
  return larger ? tiny_node_where (self->graph, less, y, x)
                : tiny_node_where (self->graph, less, x, y);
}

/* The first round from which @gate (@negated: its opposite) is false for good; NULL: that is not known. */
static TinyNode *
end_of_gate (const Search *self, TinyNode *gate, gboolean negated)
{
  while (gate->op == TINY_OP_VECTOR && gate->n_sources == 1)
    gate = gate->sources[0];
  if (gate->op == TINY_OP_CMPLT)
    return negated ? end_of_less (self, gate->sources[1], gate->sources[0], 1)
                   : end_of_less (self, gate->sources[0], gate->sources[1], 0);
  if (gate->op == TINY_OP_CMPNE && gate->sources[0]->dtype == TINY_DTYPE_BOOL
      && tiny_node_is_const_int (gate->sources[1], 1))
    return end_of_gate (self, gate->sources[0], !negated);
  gboolean either = gate->op == (negated ? TINY_OP_OR : TINY_OP_AND);
  if (!either && gate->op != (negated ? TINY_OP_AND : TINY_OP_OR))
    return NULL;
  TinyNode *x = end_of_gate (self, gate->sources[0], negated);
  TinyNode *y = end_of_gate (self, gate->sources[1], negated);
  if (x != NULL && y != NULL)
    return choose (self, x, y, !either);
  return either ? (x != NULL ? x : y) : NULL;
}

static gboolean
is_identity (const Search *self, const TinyNode *node)
{
  while (node->op == TINY_OP_VECTOR && node->n_sources == 1)
    node = node->sources[0];
  return node->op == TINY_OP_CONST && node->arg == self->identity->arg;
}

/* The first round from which @node changes nothing that it is combined with. */
static TinyNode *
end_of_value (const Search *self, TinyNode *node)
{
  if (is_identity (self, node))
    return tiny_node_const_index (self->graph, 0);
  if (node->op == TINY_OP_WHERE) {
    gboolean first = is_identity (self, node->sources[1]);
    TinyNode *gate = first || is_identity (self, node->sources[2])
                         ? end_of_gate (self, node->sources[0], first)
                         : NULL;
    if (gate != NULL)
      return gate;
  }
  if (node->op == TINY_OP_LOAD && node->n_sources == 4 && is_identity (self, node->sources[3]))
    return end_of_gate (self, node->sources[2], FALSE);
  if (node->op == TINY_OP_EXTRACT || (node->op == TINY_OP_CAST && self->op == TINY_OP_ADD))
    return end_of_value (self, node->sources[0]);
  if (node->op != self->op && node->op != TINY_OP_VECTOR)
    return NULL;
  TinyNode *end = NULL;
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *other = end_of_value (self, node->sources[i]);
    if (other == NULL)
      return NULL;
    end = end == NULL ? other : choose (self, end, other, TRUE);
  }
  return end;
}

/* The end of @range in what @user, a REDUCE or STORE, does; NULL: all rounds count. */
static TinyNode *
end_for (TinyGraph *graph, TinyNode *user, TinyNode *range, gboolean may_read)
{
  Search search = { .graph = graph, .range = range };
  if (user->op == TINY_OP_STORE)
    return user->n_sources == 4 && user->sources[0]->op == TINY_OP_PARAM
               ? end_of_gate (&search, user->sources[3], FALSE)
               : NULL;
  search.reduce = may_read ? user : NULL;
  search.op = (TinyOp) user->arg;
  search.identity = tiny_reduce_identity (graph, search.op, user->dtype, 1);
  return end_of_value (&search, user->sources[0]);
}

static gboolean
is_loop_of (TinyGraph *graph, TinyNode *user, TinyNode *range)
{
  if (user->op == TINY_OP_STORE)
    return tiny_node_depends_on (graph, user, range);
  for (guint i = 1; i < user->n_sources; i++)
    if (user->sources[i] == range)
      return TRUE;
  return FALSE;
}

/* @range with the bound that all of its users allow, or itself. */
static TinyNode *
bound (TinyGraph *graph, GPtrArray *users, TinyNode *range, gboolean may_read)
{
  TinyNode *end = NULL, *whole = range->sources[0];
  TinyRangeKind kind = tiny_range_get_kind (range);
  Search search = { .graph = graph, .range = range };
  if (kind != TINY_RANGE_LOOP && kind != TINY_RANGE_REDUCE)
    return range;
  for (guint i = 0; i < users->len; i++) {
    if (!is_loop_of (graph, users->pdata[i], range))
      continue;
    TinyNode *other = end_for (graph, users->pdata[i], range, may_read);
    if (other == NULL)
      return range;
    end = end == NULL ? other : choose (&search, end, other, TRUE);
  }
  gint64 lo, hi;
  if (end == NULL || end->op == TINY_OP_CONST)
    return range;
  tiny_node_get_bounds (end, &lo, &hi);
  if (hi > whole->arg)
    end = choose (&search, end, whole, FALSE);
  return tiny_node_range (graph, tiny_range_get_number (range), kind, end);
}

gboolean
tiny_pass_bound (TinyCodegen *cg, GError **error)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  g_autoptr (GPtrArray) users = g_ptr_array_new (), from = g_ptr_array_new ();
  g_autoptr (GPtrArray) to = g_ptr_array_new ();
  gboolean varies = FALSE, reads = FALSE, waits = FALSE;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    varies = varies || node->op == TINY_OP_VARIABLE;
    reads = reads || (node->op == TINY_OP_LOAD && tiny_dtype_is_signed (node->dtype));
    waits = waits || node->op == TINY_OP_LOCAL;
    if (node->op == TINY_OP_STORE || (node->op == TINY_OP_REDUCE && node->n_sources > 1))
      g_ptr_array_add (users, node);
  }
  gboolean may_read = reads && !waits;
  for (guint i = 0; (varies || may_read) && i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    TinyNode *other
        = node->op == TINY_OP_RANGE ? bound (cg->graph, users, node, may_read) : node;
    if (other != node) {
      g_ptr_array_add (from, node);
      g_ptr_array_add (to, other);
    }
  }
  if (from->len > 0)
    cg->root = tiny_graph_substitute (cg->graph, cg->root, (TinyNode *const *) from->pdata,
                                      (TinyNode *const *) to->pdata, from->len);
  return TRUE;
}
