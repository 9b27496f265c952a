/* SPDX-License-Identifier: MIT
 *
 * expressions.c: makes random expressions, and evaluates them by ir/tiny-eval.h. */
#include "expressions.h"

#include "ir/tiny-eval.h"

#include <math.h>
#include <string.h>

/* ---- making ---- */
void
maker_init (Maker *self, TinyGraph *graph, GRand *random)
{
  *self = (Maker){ .graph = graph, .random = random };
  for (guint i = 0; i < N_RANGES; i++)
    self->ranges[i] = tiny_node_range_const (graph, i, TINY_RANGE_LOOP,
                                             g_rand_int_range (random, 1, i < 3 ? 4 : 20));
}

static gboolean
chance (Maker *self, guint percent)
{
  return g_rand_int_range (self->random, 0, 100) < (gint) percent;
}

static gint64
small (GRand *random)
{
  return g_rand_int_range (random, -12, 25);
}

static gint64
draw (GRand *random, TinyDType dtype, gboolean exact)
{
  static const double floats[] = { 0, -0.0, 1, -1, 2, 0.5, INFINITY, -INFINITY, NAN, 3 };
  static const double exact_floats[] = { 0, -0.0, 1, -1, 1, -1, INFINITY, -INFINITY, NAN, 1 };
  static const double edges[]
      = { 1e-45, 1e-310, 6e-8, 65504, 448, 3e38, 1e308, 0.1, -7.25, 57344 };
  if (dtype == TINY_DTYPE_BOOL)
    return g_rand_boolean (random);
  if (tiny_dtype_is_float (dtype)) {
    double value = (exact ? exact_floats : floats)[g_rand_int_range (random, 0, 10)];
    if (!exact && g_rand_int_range (random, 0, 3) == 0)
      value = edges[g_rand_int_range (random, 0, G_N_ELEMENTS (edges))];
    else if (!exact && g_rand_int_range (random, 0, 2) == 0)
      value = g_rand_double_range (random, -100, 100);
    return tiny_eval_from_double (dtype, value);
  }
  switch (g_rand_int_range (random, 0, 6)) {
  case 0:
    return dtype == TINY_DTYPE_INDEX ? 0 : tiny_dtype_get_min (dtype);
  case 1:
    return dtype == TINY_DTYPE_INDEX ? 1 : tiny_eval_wrap (dtype, tiny_dtype_get_max (dtype));
  case 2:
    return dtype == TINY_DTYPE_INDEX
               ? small (random) * 1000
               : tiny_eval_wrap (
                   dtype, (gint64) ((guint64) g_rand_int (random) << 32 | g_rand_int (random)));
  case 3:
    return tiny_eval_wrap (dtype, g_rand_int_range (random, -1, 3));
  default:
    return tiny_eval_wrap (dtype, small (random));
  }
}

gint64
random_bits (Maker *self, TinyDType dtype)
{
  return draw (self->random, dtype, self->exact);
}

TinyNode *
random_const (Maker *self, TinyDType dtype, guint lanes)
{
  return tiny_node_new (self->graph, TINY_OP_CONST, dtype, lanes, 0, NULL,
                        random_bits (self, dtype), NULL, NULL);
}

static TinyNode *
broadcast (Maker *self, TinyNode *x, guint lanes)
{
  return lanes == 1 ? x
                    : tiny_node_new (self->graph, TINY_OP_VECTOR, x->dtype, lanes, 1, &x, 0,
                                     NULL, NULL);
}

static TinyNode *
new_variable (Maker *self, TinyDType dtype, guint lanes)
{
  struct {
    TinyInts ints;
    gint64 v[2];
  } bounds = { { 2 }, { 0, 0 } };
  gboolean bounded
      = dtype == TINY_DTYPE_INDEX || (tiny_dtype_is_integer (dtype) && chance (self, 40));
  if (bounded) {
    gint64 a = draw (self->random, dtype, FALSE), b = draw (self->random, dtype, FALSE);
    if (dtype == TINY_DTYPE_U64 && (a < 0 || b < 0))
      bounded = FALSE;
    bounds.v[0] = MIN (a, b);
    bounds.v[1] = MAX (a, b);
  }
  return tiny_node_new (self->graph, TINY_OP_VARIABLE, dtype, lanes, 0, NULL,
                        self->n_variables++, bounded ? &bounds.ints : NULL, NULL);
}

TinyNode *
random_index (Maker *self, guint lanes, guint depth)
{
  if (depth == 0 || chance (self, 20)) {
    if (chance (self, 15))
      return tiny_node_new (self->graph, TINY_OP_CONST, TINY_DTYPE_INDEX, lanes, 0, NULL,
                            small (self->random), NULL, NULL);
    if (lanes > 1 && chance (self, 30))
      return tiny_node_new (self->graph, TINY_OP_LANES, TINY_DTYPE_INDEX, lanes, 0, NULL, 0,
                            NULL, NULL);
    if (!self->affine && chance (self, 25))
      return new_variable (self, TINY_DTYPE_INDEX, lanes);
    return broadcast (self, self->ranges[g_rand_int_range (self->random, 0, N_RANGES)], lanes);
  }
  TinyNode *x = random_index (self, lanes, depth - 1);
  TinyNode *c = tiny_node_new (self->graph, TINY_OP_CONST, TINY_DTYPE_INDEX, lanes, 0, NULL,
                               chance (self, 10) ? small (self->random)
                                                 : g_rand_int_range (self->random, 1, 14),
                               NULL, NULL);
  switch (g_rand_int_range (self->random, 0, 13)) {
  case 0:
  case 1:
  case 2:
  case 3:
    return tiny_node_binary (self->graph, TINY_OP_ADD, x,
                             random_index (self, lanes, depth - 1));
  case 4:
  case 5:
    return tiny_node_binary (self->graph, TINY_OP_MUL, x, c);
  case 6:
  case 7:
    return tiny_node_binary (self->graph, TINY_OP_FLOORDIV, x, c);
  case 8:
  case 9:
    return tiny_node_binary (self->graph, TINY_OP_FLOORMOD, x, c);
  case 10:
    return tiny_node_binary (self->graph, TINY_OP_SUB, x,
                             random_index (self, lanes, depth - 1));
  case 11:
    return tiny_node_binary (self->graph, TINY_OP_MAX, x,
                             random_index (self, lanes, depth - 1));
  default:
    return tiny_node_where (self->graph, random_bool (self, lanes, depth - 1), x,
                            random_index (self, lanes, depth - 1));
  }
}

TinyNode *
random_bool (Maker *self, guint lanes, guint depth)
{
  static const TinyOp compares[]
      = { TINY_OP_CMPLT, TINY_OP_CMPLT, TINY_OP_CMPNE, TINY_OP_CMPEQ };
  if (depth == 0)
    return new_variable (self, TINY_DTYPE_BOOL, lanes);
  if (chance (self, 30)) {
    TinyNode *x = random_bool (self, lanes, depth - 1),
             *y = random_bool (self, lanes, depth - 1);
    return tiny_node_binary (self->graph, chance (self, 70) ? TINY_OP_AND : TINY_OP_OR, x, y);
  }
  TinyNode *x = random_index (self, lanes, depth - 1);
  TinyNode *y = chance (self, 60)
                    ? tiny_node_new (self->graph, TINY_OP_CONST, TINY_DTYPE_INDEX, lanes, 0,
                                     NULL, small (self->random), NULL, NULL)
                    : random_index (self, lanes, depth - 1);
  gboolean swap = chance (self, 30);
  return tiny_node_binary (self->graph, compares[g_rand_int_range (self->random, 0, 4)],
                           swap ? y : x, swap ? x : y);
}

static TinyNode *
random_load (Maker *self, TinyDType dtype)
{
  struct {
    TinyInts ints;
    gint64 v[1];
  } shape = { { 1 }, { PARAM_SIZE } };
  TinyNode *param = tiny_node_new (self->graph, TINY_OP_PARAM, dtype, 1, 0, NULL,
                                   g_rand_int_range (self->random, 0, 3), &shape.ints, NULL);
  TinyNode *size = tiny_node_const_index (self->graph, PARAM_SIZE);
  TinyNode *sources[] = { param, tiny_node_binary (self->graph, TINY_OP_FLOORMOD,
                                                   random_index (self, 1, 2), size) };
  return tiny_node_new (self->graph, TINY_OP_LOAD, dtype, 1, 2, sources, 0, NULL, NULL);
}

TinyNode *
random_leaf (Maker *self, TinyDType dtype, guint lanes)
{
  if (chance (self, 12))
    return random_const (self, dtype, lanes);
  if (dtype == TINY_DTYPE_INDEX)
    return random_index (self, lanes, 0);
  if (lanes == 1 && chance (self, 30))
    return random_load (self, dtype);
  return new_variable (self, dtype, lanes);
}

TinyNode *
random_expression (Maker *self, TinyDType dtype, guint lanes)
{
  if (dtype == TINY_DTYPE_INDEX && chance (self, 70))
    return random_index (self, lanes, (guint) g_rand_int_range (self->random, 0, 4));
  if (dtype == TINY_DTYPE_BOOL && chance (self, 60))
    return random_bool (self, lanes, (guint) g_rand_int_range (self->random, 0, 3));
  if (tiny_dtype_is_integer (dtype) && lanes == 1 && chance (self, 20))
    return tiny_node_cast (self->graph,
                           self->ranges[g_rand_int_range (self->random, 0, N_RANGES)], dtype);
  return random_leaf (self, dtype, lanes);
}

/* ---- values ---- */
void
assignment_init (Assignment *self, GRand *random)
{
  *self = (Assignment){ .random = random, .salt = g_rand_int (random) };
  self->leaves = g_hash_table_new_full (NULL, NULL, NULL, g_free);
}

void
assignment_clear (Assignment *self)
{
  g_clear_pointer (&self->leaves, g_hash_table_unref);
}

/* The value of a leaf: drawn once. */
static Value *
get_leaf (Assignment *self, TinyNode *node)
{
  Value *value = g_hash_table_lookup (self->leaves, node);
  if (value != NULL)
    return value;
  value = g_new0 (Value, 1);
  for (guint i = 0; i < node->lanes; i++) {
    value->ok[i] = TRUE;
    if (node->op == TINY_OP_RANGE) {
      gint64 extent = tiny_range_get_extent (node);
      value->v[i] = g_rand_int_range (self->random, 0, (gint32) MAX (extent, 1));
    } else if (node->ints != NULL) {
      gint64 min = node->ints->v[0], max = node->ints->v[1];
      gint kind = g_rand_int_range (self->random, 0, 4);
      guint64 step = (guint64) g_rand_int (self->random) << 20 ^ g_rand_int (self->random);
      guint64 span = (guint64) max - (guint64) min;
      value->v[i]
          = kind == 0 ? min
            : kind == 1
                ? max
                : (gint64) ((guint64) min + (span == G_MAXUINT64 ? step : step % (span + 1)));
    } else {
      value->v[i] = draw (self->random, node->dtype, self->exact);
    }
  }
  g_hash_table_insert (self->leaves, node, value);
  return value;
}

static gint64
read_memory (Assignment *self, TinyNode *param, gint64 at)
{
  guint64 hash = (self->salt + (guint64) param->arg * 977 + (guint64) at * 131 + param->dtype)
                 * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  gint64 value = (gint64) (hash >> 40) % 4 - 1;
  return tiny_dtype_is_float (param->dtype)
             ? tiny_eval_from_double (param->dtype, (double) value)
             : tiny_eval_wrap (param->dtype, value);
}

static Value evaluate_reduce (Assignment *self, TinyNode *node);

static void
evaluate_elementwise (TinyNode *node, const Value *s, Value *out)
{
  guint n = node->n_sources;
  for (guint i = 0; i < node->lanes; i++) {
    gint64 args[3];
    gboolean ok = TRUE;
    for (guint j = 0; j < n; j++) {
      args[j] = s[j].v[i];
      ok = ok && s[j].ok[i];
    }
    /* What is unspecified on one side may not matter. */
    if (node->op == TINY_OP_WHERE && s[0].ok[i]) {
      out->v[i] = s[args[0] ? 1 : 2].v[i];
      out->ok[i] = s[args[0] ? 1 : 2].ok[i];
      continue;
    }
    for (guint j = 0; j < n && !ok && node->dtype == TINY_DTYPE_BOOL; j++) {
      gboolean decides = (node->op == TINY_OP_AND && args[j] == 0)
                         || (node->op == TINY_OP_OR && args[j] == 1);
      if (s[j].ok[i] && decides) {
        out->v[i] = args[j];
        out->ok[i] = TRUE;
      }
    }
    if (ok)
      out->ok[i] = tiny_eval_alu (node->op, node->sources[n - 1]->dtype, node->dtype, args, n,
                                  &out->v[i]);
  }
}

static Value
evaluate_access (Assignment *self, TinyNode *node)
{
  Value out = { 0 }, one = { { 1, 1, 1, 1 }, { TRUE, TRUE, TRUE, TRUE } };
  gboolean is_load = node->op == TINY_OP_LOAD;
  guint gate_at = is_load ? 2 : 3;
  Value index = evaluate (self, node->sources[1]);
  Value gate = node->n_sources == 4 ? evaluate (self, node->sources[gate_at]) : one;
  Value other = node->n_sources >= 3 ? evaluate (self, node->sources[is_load ? 3 : 2]) : one;
  guint lanes = is_load ? node->lanes : node->sources[2]->lanes;
  for (guint i = 0; i < lanes; i++) {
    guint g = node->n_sources == 4 && node->sources[gate_at]->lanes > 1 ? i : 0;
    gint64 at = index.v[0] + i;
    if (!gate.ok[g])
      continue;
    if (!gate.v[g]) {
      out.ok[i] = is_load ? other.ok[i] : TRUE;
      out.v[i] = is_load ? other.v[i] : 0;
    } else if (index.ok[0] && at >= 0 && at < PARAM_SIZE) {
      out.ok[i] = is_load || other.ok[i];
      out.v[i] = is_load ? read_memory (self, node->sources[0], at)
                         : (gint64) ((guint64) other.v[i] * 64 + (guint64) at + 1);
    }
  }
  return out;
}

Value
evaluate (Assignment *self, TinyNode *node)
{
  Value out = { 0 }, s[MAX_LANES] = { 0 };
  switch (node->op) {
  case TINY_OP_CONST:
    for (guint i = 0; i < node->lanes; i++)
      out.v[i] = node->arg, out.ok[i] = TRUE;
    return out;
  case TINY_OP_RANGE:
  case TINY_OP_VARIABLE:
    return *get_leaf (self, node);
  case TINY_OP_LANES:
    for (guint i = 0; i < node->lanes; i++)
      out.v[i] = i, out.ok[i] = TRUE;
    return out;
  case TINY_OP_LOAD:
  case TINY_OP_STORE:
    return evaluate_access (self, node);
  case TINY_OP_REDUCE:
    return evaluate_reduce (self, node);
  default:
    break;
  }
  for (guint j = 0; j < MIN (node->n_sources, MAX_LANES); j++)
    s[j] = evaluate (self, node->sources[j]);
  if (node->op == TINY_OP_VECTOR) {
    for (guint i = 0; i < node->lanes; i++) {
      out.v[i] = s[node->n_sources == 1 ? 0 : i].v[0];
      out.ok[i] = s[node->n_sources == 1 ? 0 : i].ok[0];
    }
    return out;
  }
  if (node->op == TINY_OP_EXTRACT) {
    out.v[0] = s[0].v[node->arg];
    out.ok[0] = s[0].ok[node->arg];
    return out;
  }
  g_assert (tiny_op_is_elementwise (node->op));
  evaluate_elementwise (node, s, &out);
  return out;
}

static Value
evaluate_reduce (Assignment *self, TinyNode *node)
{
  gint64 counters[32] = { 0 }, saved[32] = { 0 };
  guint n = node->n_sources - 1;
  gboolean first = TRUE;
  Value total = { 0 };
  for (guint r = 0; r < n; r++)
    if (node->sources[r + 1]->op == TINY_OP_RANGE)
      saved[r] = get_leaf (self, node->sources[r + 1])->v[0];
  for (gboolean more = TRUE; more;) {
    for (guint r = 0; r < n; r++)
      if (node->sources[r + 1]->op == TINY_OP_RANGE)
        get_leaf (self, node->sources[r + 1])->v[0] = counters[r];
    Value x = evaluate (self, node->sources[0]);
    for (guint i = 0; i < node->lanes; i++) {
      gint64 args[2] = { total.v[i], x.v[i] };
      if (first) {
        total.v[i] = x.v[i];
        total.ok[i] = x.ok[i];
      } else {
        total.ok[i] = total.ok[i] && x.ok[i]
                      && tiny_eval_alu ((TinyOp) node->arg, node->dtype, node->dtype, args, 2,
                                        &total.v[i]);
      }
    }
    first = FALSE;
    more = FALSE;
    for (guint r = n; r-- > 0 && !more;) {
      TinyNode *range = node->sources[r + 1];
      gint64 extent = range->op == TINY_OP_RANGE ? tiny_range_get_extent (range) : 1;
      more = ++counters[r] < extent;
      if (!more)
        counters[r] = 0;
    }
  }
  for (guint r = 0; r < n; r++)
    if (node->sources[r + 1]->op == TINY_OP_RANGE)
      get_leaf (self, node->sources[r + 1])->v[0] = saved[r];
  return total;
}
