/* SPDX-License-Identifier: MIT
 *
 * random-graph.c: guesses nodes and keeps those that are legal.
 *
 * Guesses are made likely to fit: sources are looked for among nodes of one dtype, arguments are
 * drawn from what the op can mean. */
#include "random-graph.h"

#include <math.h>
#include <string.h>

#include "ir/tiny-check.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-shape.h"

typedef struct {
  TinyGraph *graph;
  GRand *rand;
  GPtrArray *pool;
} Maker;

static guint
below (Maker *self, guint n)
{
  return (guint) g_rand_int_range (self->rand, 0, (gint32) n);
}

static gint64
random_bits (Maker *self, TinyDType dtype)
{
  gint64 bits = (gint64) ((guint64) g_rand_int (self->rand) << 32 | g_rand_int (self->rand));
  bits >>= below (self, 64);
  if (!tiny_dtype_is_float (dtype))
    return tiny_eval_wrap (dtype, bits);
  static const double special[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1, 0.1, -1e-45 };
  double value = below (self, 3) == 0 ? special[below (self, G_N_ELEMENTS (special))]
                                      : ldexp ((double) bits, -(int) below (self, 80));
  return tiny_eval_from_double (dtype, value);
}

static TinyNode *
pick (Maker *self, TinyNode *like, gboolean shaped)
{
  for (guint i = 0; i < 20; i++) {
    TinyNode *node = self->pool->pdata[below (self, self->pool->len)];
    if (like != NULL && (node->dtype != like->dtype || node->lanes != like->lanes))
      continue;
    if (shaped && (node->shape == NULL || node->shape->n == 0))
      continue;
    return node;
  }
  return like != NULL ? like : self->pool->pdata[below (self, self->pool->len)];
}

static TinyNode *
pick_op (Maker *self, TinyOp op)
{
  guint start = below (self, self->pool->len);
  for (guint i = 0; i < self->pool->len; i++) {
    TinyNode *node = self->pool->pdata[(start + i) % self->pool->len];
    if (node->op == op)
      return node;
  }
  return self->pool->pdata[start];
}

static TinyNode *
pick_dtype (Maker *self, TinyDType dtype, guint lanes)
{
  g_autofree TinyNode *like = g_new0 (TinyNode, 1);
  like->dtype = (guint8) dtype;
  like->lanes = (guint16) lanes;
  TinyNode *node = pick (self, like, FALSE);
  if (node != like)
    return node;
  return tiny_node_new (self->graph, TINY_OP_CONST, dtype, lanes, 0, NULL,
                        random_bits (self, dtype), NULL, NULL);
}

static const TinyInts *
random_shape (Maker *self)
{
  gint64 dims[4];
  guint rank = below (self, 5);
  for (guint i = 0; i < rank; i++)
    dims[i] = below (self, 4) + (below (self, 10) > 0);
  return tiny_graph_ints (self->graph, dims, rank);
}

/* What a movement or a reduction of @x may have as its list. */
static const TinyInts *
random_move (Maker *self, TinyOp op, TinyNode *x)
{
  gint64 v[64] = { 0 };
  guint rank = x->shape != NULL ? x->shape->n : 0, n = rank;
  for (guint i = 0; i < rank; i++)
    v[i] = op == TINY_OP_PERMUTE ? (gint64) ((i + 1) % rank) : x->shape->v[i];
  switch (op) {
  case TINY_OP_EXPAND:
    for (guint i = 0; i < rank; i++)
      v[i] = v[i] == 1 ? (gint64) below (self, 5) : v[i];
    break;
  case TINY_OP_RESHAPE:
    v[n++] = 1;
    break;
  case TINY_OP_PAD:
    for (n = 0; n < 2 * rank; n++)
      v[n] = below (self, 3);
    break;
  case TINY_OP_SHRINK:
    n = 2 * rank;
    for (guint i = 0; i < rank; i++) {
      v[2 * i] = 0;
      v[2 * i + 1] = x->shape->v[i] - (x->shape->v[i] > 0 && below (self, 2));
    }
    break;
  case TINY_OP_FLIP:
  case TINY_OP_REDUCE:
    for (guint i = n = 0; i < rank; i++)
      if (below (self, 2))
        v[n++] = i;
    break;
  case TINY_OP_SHEAR:
    n = 7;
    for (guint i = 0; i < n; i++)
      v[i] = i < 2   ? below (self, rank + 1)
             : i < 5 ? (gint64) below (self, 9) - 4
                     : below (self, 5);
    break;
  default:
    break;
  }
  return tiny_graph_ints (self->graph, v, n);
}

typedef struct {
  TinyDType dtype;
  guint lanes, n;
  TinyNode *sources[8];
  gint64 arg;
  const TinyInts *ints;
  const char *text;
} Guess;

static void
guess_memory (Maker *self, TinyOp op, Guess *g)
{
  static const TinyOp memories[] = { TINY_OP_PARAM, TINY_OP_LOCAL, TINY_OP_REGISTER };
  TinyNode *memory = pick_op (self, memories[below (self, 3)]);
  guint lanes = memory->op == TINY_OP_REGISTER ? memory->lanes : 1 + 3 * below (self, 2);
  gboolean load = op == TINY_OP_LOAD;
  if (memory->dtype == TINY_DTYPE_VOID)
    return; /* there was none */
  g->sources[g->n++] = memory;
  g->dtype = load ? memory->dtype : TINY_DTYPE_VOID;
  g->lanes = load ? lanes : 1;
  if (memory->op != TINY_OP_REGISTER)
    g->sources[g->n++] = pick_dtype (self, TINY_DTYPE_INDEX, 1);
  if (!load)
    g->sources[g->n++] = pick_dtype (self, memory->dtype, lanes);
  if (memory->op != TINY_OP_REGISTER && below (self, 2)) {
    g->sources[g->n++] = pick_dtype (self, TINY_DTYPE_BOOL, below (self, 2) ? lanes : 1);
    if (load)
      g->sources[g->n++] = pick_dtype (self, memory->dtype, lanes);
  }
}

/* An integer constant in the shape of @like. */
static TinyNode *
make_positions (Maker *self, TinyNode *like)
{
  if (like->shape == NULL)
    return like;
  TinyDType dtype = below (self, 2) ? TINY_DTYPE_I32 : TINY_DTYPE_U8;
  TinyNode *number = tiny_node_const_int (self->graph, dtype, below (self, 5));
  return tiny_node_broadcast (self->graph, number, like->shape->v, like->shape->n);
}

static void
guess_other (Maker *self, TinyOp op, Guess *g)
{
  switch (op) {
  case TINY_OP_RANGE:
    g->dtype = TINY_DTYPE_INDEX;
    g->sources[g->n++] = pick_dtype (self, g->dtype, 1);
    g->arg = (gint64) below (self, TINY_N_RANGE_KINDS) << 32 | g_rand_int (self->rand);
    return;
  case TINY_OP_END:
  case TINY_OP_ENDIF:
    g->dtype = TINY_DTYPE_VOID;
    g->sources[g->n++] = pick_op (self, op == TINY_OP_END ? TINY_OP_RANGE : TINY_OP_IF);
    return;
  case TINY_OP_IF:
    g->dtype = TINY_DTYPE_VOID;
    g->sources[g->n++] = pick_dtype (self, TINY_DTYPE_BOOL, 1);
    return;
  case TINY_OP_GATHER:
    g->n = 2;
    g->sources[0] = pick (self, NULL, TRUE);
    g->sources[1] = make_positions (self, g->sources[0]);
    g->dtype = g->sources[0]->dtype;
    if (g->sources[0]->shape != NULL && g->sources[0]->shape->n > 0)
      g->arg = below (self, g->sources[0]->shape->n);
    return;
  case TINY_OP_UNSHARD:
    g->n = 1 + below (self, 3);
    for (guint i = 0; i < g->n; i++)
      g->sources[i] = i == 0 ? pick (self, NULL, TRUE) : g->sources[0];
    g->dtype = g->sources[0]->dtype;
    g->arg = -1;
    if (g->sources[0]->shape != NULL && g->sources[0]->shape->n > 0)
      g->arg = (gint64) below (self, g->sources[0]->shape->n + 1) - 1;
    g->text = g->n == 1 ? "CPU" : g->n == 2 ? "CPU;B" : "CPU;B;CPU:1";
    return;
  case TINY_OP_LIMIT:
    g->n = 2;
    g->sources[0] = pick (self, NULL, TRUE);
    g->sources[1] = below (self, 2) ? pick_op (self, TINY_OP_VARIABLE)
                                    : tiny_node_const_int (self->graph, TINY_DTYPE_I32, 3);
    g->dtype = g->sources[0]->dtype;
    if (g->sources[0]->shape != NULL && g->sources[0]->shape->n > 0)
      g->arg = below (self, g->sources[0]->shape->n);
    return;
  case TINY_OP_VECTOR:
    g->lanes = 2 + below (self, 3);
    g->n = below (self, 2) ? 1 : g->lanes;
    for (guint i = 0; i < g->n; i++)
      g->sources[i] = pick_dtype (self, g->dtype, 1);
    return;
  case TINY_OP_EXTRACT:
    g->sources[g->n++] = pick (self, NULL, FALSE);
    g->dtype = g->sources[0]->dtype;
    g->arg = below (self, g->sources[0]->lanes);
    return;
  case TINY_OP_REDUCE: {
    static const TinyOp by[] = { TINY_OP_ADD, TINY_OP_MUL, TINY_OP_MAX };
    gboolean axes = below (self, 2);
    g->arg = by[below (self, 3)];
    g->sources[g->n++] = pick (self, NULL, axes);
    g->dtype = g->sources[0]->dtype;
    g->lanes = g->sources[0]->lanes;
    if (axes)
      g->ints = random_move (self, op, g->sources[0]);
    else
      g->sources[g->n++] = pick_op (self, TINY_OP_RANGE);
    return;
  }
  case TINY_OP_GRADIENT: {
    guint n_outputs = 1 + below (self, 2), output = below (self, n_outputs);
    g->n = n_outputs + below (self, 3);
    for (guint i = 0; i < g->n; i++)
      g->sources[i] = pick (self, NULL, TRUE);
    g->dtype = g->sources[output]->dtype;
    g->arg = below (self, 1000);
    g->ints = tiny_graph_ints (
        self->graph, (gint64[]){ output, n_outputs, below (self, g->n - n_outputs + 1) }, 3);
    return;
  }
  default: /* leaves and roots: sources of any kind */
    g->n = tiny_op_infos[op].most < 0 ? (guint) tiny_op_infos[op].least + below (self, 4)
                                      : (guint) tiny_op_infos[op].least;
    for (guint i = 0; i < g->n; i++)
      g->sources[i] = pick (self, i > 0 && op == TINY_OP_ASSIGN ? g->sources[0] : NULL, FALSE);
    if (op == TINY_OP_SINK || op == TINY_OP_BARRIER)
      g->dtype = TINY_DTYPE_VOID;
    else if (g->n > 0) {
      g->dtype = g->sources[0]->dtype;
      g->lanes = g->sources[0]->lanes;
    }
    if (op == TINY_OP_LANES || op == TINY_OP_REGISTER || op == TINY_OP_CONST)
      g->lanes = 1 + 3 * below (self, 2);
    if (tiny_op_rules[op].arg != NULL)
      g->arg = op == TINY_OP_CONST ? random_bits (self, g->dtype)
                                   : (gint64) below (self, 1000) - 100;
    if (tiny_op_rules[op].ints != NULL)
      g->ints = op == TINY_OP_PARAM || op == TINY_OP_BUFFER
                    ? random_shape (self)
                    : tiny_graph_ints (self->graph, &(gint64){ below (self, 99) }, 1);
    if (tiny_op_rules[op].text != NULL && below (self, 2))
      g->text = below (self, 2) ? "CPU:1" : "a \"b\"\n\\ \x7f\xff é";
  }
}

static TinyNode *
guess_node (Maker *self, TinyOp op)
{
  Guess g = { .lanes = 1, .dtype = TINY_DTYPE_BOOL + below (self, TINY_N_DTYPES - 1) };
  TinyOpClass op_class = tiny_op_infos[op].op_class;
  if (tiny_op_is_elementwise (op)) {
    g.n = (guint) tiny_op_infos[op].least;
    g.sources[0] = pick (self, NULL, FALSE);
    for (guint i = 1; i < g.n; i++)
      g.sources[i] = pick (self, g.sources[0], FALSE);
    g.lanes = g.sources[0]->lanes;
    if (op == TINY_OP_WHERE)
      g.sources[0] = pick_dtype (self, TINY_DTYPE_BOOL, g.lanes);
    if (op_class == TINY_OP_CLASS_COMPARE)
      g.dtype = TINY_DTYPE_BOOL;
    else if (op_class != TINY_OP_CLASS_CONVERT)
      g.dtype = g.sources[g.n - 1]->dtype;
  } else if (tiny_op_is_movement (op)) {
    g.n = 1;
    g.sources[0] = pick (self, NULL, TRUE);
    g.dtype = g.sources[0]->dtype;
    g.ints = random_move (self, op, g.sources[0]);
  } else if (op_class == TINY_OP_CLASS_MEMORY) {
    guess_memory (self, op, &g);
  } else {
    guess_other (self, op, &g);
  }
  if (below (self, 40) == 0) { /* what the op's row does not name */
    g.text = g.text != NULL ? g.text : "extra";
    if (g.ints == NULL && op != TINY_OP_REDUCE)
      g.ints = random_shape (self);
  }
  g_autofree char *why
      = tiny_check_node (op, g.dtype, g.lanes, g.n, g.sources, g.arg, g.ints, g.text);
  if (why != NULL)
    return NULL;
  return tiny_node_new (self->graph, op, g.dtype, g.lanes, g.n, g.sources, g.arg, g.ints,
                        g.text);
}

TinyNode *
random_graph (TinyGraph *graph, GRand *rand, guint n)
{
  g_autoptr (GPtrArray) pool = g_ptr_array_new ();
  Maker self = { graph, rand, pool };
  g_ptr_array_add (pool, tiny_node_const_float (graph, TINY_DTYPE_F32, 1));
  for (guint i = 0; pool->len < n && i < 20 * n; i++) {
    TinyNode *node = guess_node (&self, (TinyOp) below (&self, TINY_N_OPS));
    if (node != NULL)
      g_ptr_array_add (pool, node);
  }
  return tiny_node_sink (graph, pool->len, (TinyNode *const *) pool->pdata, "random");
}
