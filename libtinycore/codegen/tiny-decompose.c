/* SPDX-License-Identifier: MIT
 *
 * tiny-decompose.c: goes through an expression and has each op made of what the target has.
 *
 * Sources come before users, so a builder finds its sources done, and dec_op() makes every node
 * it asks for legal at once: no second walk, no fixpoint. Depth of the expression costs memory,
 * not stack; builders call each other, but only from an op to simpler ones.
 *
 * What is tried for an op on operands of a dtype, in this order:
 *  1. all sources constant: its value;
 *  2. the target declares it (TinyTarget.ops by the operands' dtype; CAST by both dtypes; a small
 *     float that the target stores but does not compute with is cast from and to f32 only);
 *  3. the dtype is narrow and not computed with: in f32 or 32-bit integers, and back, each op
 *     rounding once (p = 24 is more than twice the bits of f16 and bf16, so that +, -, *, / and
 *     square root round as if done directly: Figueroa, "When is double rounding innocuous?", 1995);
 *  4. the rows of the tables: transcendental, float, integer.
 *
 * a*b+c is never contracted here: that would change the rounding of what a user wrote. Products
 * summed by a reduction become MULACC where the reduction gets its register.
 *
 * What the target does not know at all, 64-bit integers or bytes, is first made of the few ops that
 * decompose-words.c then writes in words of 32 bits; only arithmetic of f64 cannot be had. */
#include "codegen/tiny-decompose.h"

#include <string.h>

#include "base/tiny-error.h"
#include "codegen/codegen-private.h"
#include "codegen/decompose-private.h"
#include "ir/tiny-eval.h"

enum { MAX_DEPTH = 64 };

/* The dtype in which a narrow one is computed, or VOID. */
static const TinyDType wider[TINY_N_DTYPES] = {
  [TINY_DTYPE_I8] = TINY_DTYPE_I32,     [TINY_DTYPE_U8] = TINY_DTYPE_U32,
  [TINY_DTYPE_I16] = TINY_DTYPE_I32,    [TINY_DTYPE_U16] = TINY_DTYPE_U32,
  [TINY_DTYPE_F8E4M3] = TINY_DTYPE_F32, [TINY_DTYPE_F8E5M2] = TINY_DTYPE_F32,
  [TINY_DTYPE_F16] = TINY_DTYPE_F32,    [TINY_DTYPE_BF16] = TINY_DTYPE_F32,
};

static const guint32 longs = TINY_DTYPE_BIT (TINY_DTYPE_I64) | TINY_DTYPE_BIT (TINY_DTYPE_U64);
static const guint32 small_floats
    = TINY_DTYPE_BIT (TINY_DTYPE_F8E4M3) | TINY_DTYPE_BIT (TINY_DTYPE_F8E5M2)
      | TINY_DTYPE_BIT (TINY_DTYPE_F16) | TINY_DTYPE_BIT (TINY_DTYPE_BF16);

static gboolean
computes (Decompose *d, TinyDType dtype)
{
  return (d->target->dtypes_compute & TINY_DTYPE_BIT (dtype)) != 0;
}

gboolean
dec_has (Decompose *d, TinyOp op, TinyDType dtype)
{
  TinyInstrOp instr = tiny_op_infos[op].instr;
  if (dtype == TINY_DTYPE_INDEX) /* becomes an integer of the target later */
    return TRUE;
  return instr != 0 && (d->target->ops[dtype] & TINY_INSTR_BIT (instr)) != 0;
}

static gboolean
has_cast (Decompose *d, TinyDType from, TinyDType to)
{
  if (from == TINY_DTYPE_INDEX || to == TINY_DTYPE_INDEX)
    return TRUE;
  if (!dec_has (d, TINY_OP_CAST, from) || !dec_has (d, TINY_OP_CAST, to))
    return FALSE;
  const guint32 both = TINY_DTYPE_BIT (from) | TINY_DTYPE_BIT (to);
  if ((d->words & both & longs) != 0 && (small_floats & both) != 0)
    return FALSE; /* by way of f32: a pair is no more than that */
  gboolean from_small = wider[from] == TINY_DTYPE_F32 && !computes (d, from);
  gboolean to_small = wider[to] == TINY_DTYPE_F32 && !computes (d, to);
  return (!from_small || to == TINY_DTYPE_F32) && (!to_small || from == TINY_DTYPE_F32);
}

/* ---- constants ---- */
static TinyNode *
new_const (Decompose *d, TinyDType dtype, guint lanes, gint64 arg)
{
  return tiny_node_new (d->graph, TINY_OP_CONST, dtype, lanes, 0, NULL, arg, NULL, NULL);
}

TinyNode *
dec_int (Decompose *d, TinyDType dtype, TinyNode *like, gint64 value)
{
  if (tiny_dtype_is_float (dtype))
    return dec_float (d, dtype, like, (double) value);
  return new_const (d, dtype, like->lanes, tiny_eval_wrap (dtype, value));
}

TinyNode *
dec_float (Decompose *d, TinyDType dtype, TinyNode *like, double value)
{
  return new_const (d, dtype, like->lanes, tiny_eval_from_double (dtype, value));
}

/* ---- one op ---- */
TinyNode *
dec_fail (Decompose *d, TinyOp op, TinyDType dtype, guint lanes)
{
  if (d->error == NULL)
    d->error = g_error_new (
        TINY_ERROR, TINY_ERROR_UNSUPPORTED,
        "the target %s has no %s of %s, and it cannot be made of what the target has%s",
        d->target->arch, tiny_op_to_string (op), tiny_dtype_to_string (dtype),
        dtype == TINY_DTYPE_F64 ? "; compute in f32, or on another device" : "");
  return new_const (d, dtype, lanes, 0);
}

/* Ops that a narrow dtype leaves to the wider one even when the target computes with it. */
static gboolean
is_hard (TinyOp op)
{
  switch (op) {
  case TINY_OP_RECIP:
  case TINY_OP_SQRT:
  case TINY_OP_EXP2:
  case TINY_OP_LOG2:
  case TINY_OP_SIN:
  case TINY_OP_FDIV:
  case TINY_OP_TRUNC:
  case TINY_OP_IDIV:
  case TINY_OP_MOD:
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
goes_wider (Decompose *d, TinyOp op, TinyDType dtype)
{
  if (wider[dtype] == TINY_DTYPE_VOID || op == TINY_OP_CAST || op == TINY_OP_BITCAST)
    return FALSE;
  if (op == TINY_OP_WHERE && tiny_dtype_is_float (dtype))
    return FALSE; /* moves bits */
  return !computes (d, dtype) || is_hard (op);
}

static TinyNode *
make_wider (Decompose *d, TinyOp op, TinyDType dtype, guint n, TinyNode *const *sources)
{
  TinyDType wide = wider[sources[n - 1]->dtype];
  TinyNode *widened[3];
  for (guint i = 0; i < n; i++)
    widened[i]
        = sources[i]->dtype == TINY_DTYPE_BOOL ? sources[i] : dec_cast (d, sources[i], wide);
  if (dtype == TINY_DTYPE_BOOL)
    return dec_op (d, op, dtype, n, widened);
  return dec_cast (d, dec_op (d, op, wide, n, widened), dtype);
}

static TinyNode *
make_by_rows (
    Decompose *d, TinyOp op, TinyDType dtype, TinyDType operand, TinyNode *const *sources)
{
  static const DecomposeRow *const tables[]
      = { decompose_transcendental_rows, decompose_float_rows, decompose_integer_rows };
  char kind = tiny_dtype_infos[operand].kind;
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    for (const DecomposeRow *row = tables[i]; row->build != NULL; row++) {
      if (row->op != op || strchr (row->kinds, kind) == NULL)
        continue;
      TinyNode *made = row->build (d, op, dtype, sources);
      if (made != NULL)
        return made;
    }
  return NULL;
}

static TinyNode *
fold (Decompose *d,
      TinyOp op,
      TinyDType dtype,
      TinyDType operand,
      guint n,
      TinyNode *const *sources)
{
  gint64 args[3], value;
  for (guint i = 0; i < n; i++) {
    if (sources[i]->op != TINY_OP_CONST)
      return NULL;
    args[i] = sources[i]->arg;
  }
  if (operand == TINY_DTYPE_INDEX || dtype == TINY_DTYPE_INDEX
      || !tiny_eval_alu (op, operand, dtype, args, n, &value))
    return NULL;
  return new_const (d, dtype, sources[0]->lanes, value);
}

TinyNode *
dec_op (Decompose *d, TinyOp op, TinyDType dtype, guint n, TinyNode *const *sources)
{
  g_assert (n >= 1 && n <= 3);
  guint lanes = sources[0]->lanes;
  TinyDType operand = sources[op == TINY_OP_WHERE ? 1 : 0]->dtype;
  if (d->error != NULL)
    return new_const (d, dtype, lanes, 0);
  TinyNode *made = fold (d, op, dtype, operand, n, sources);
  if (made != NULL)
    return made;
  if (op == TINY_OP_CAST ? has_cast (d, operand, dtype) : dec_has (d, op, operand))
    return tiny_node_new (d->graph, op, dtype, lanes, n, sources, 0, NULL, NULL);
  if (d->depth >= MAX_DEPTH)
    return dec_fail (d, op, operand, lanes);
  if (dtype == TINY_DTYPE_F64 && (d->words & TINY_DTYPE_BIT (dtype)) != 0)
    return dec_fail (d, op, dtype, lanes);
  d->depth++;
  made = goes_wider (d, op, operand) ? make_wider (d, op, dtype, n, sources)
                                     : make_by_rows (d, op, dtype, operand, sources);
  d->depth--;
  if (made == NULL) {
    dec_fail (d, op, operand, lanes);
    return new_const (d, dtype, lanes, 0);
  }
  return made;
}

TinyNode *
dec_cast (Decompose *d, TinyNode *x, TinyDType dtype)
{
  return x->dtype == dtype ? x : dec_op (d, TINY_OP_CAST, dtype, 1, &x);
}

TinyNode *
dec_bits (Decompose *d, TinyNode *x, TinyDType dtype)
{
  return x->dtype == dtype ? x : dec_op (d, TINY_OP_BITCAST, dtype, 1, &x);
}

TinyNode *
dec_where (Decompose *d, TinyNode *gate, TinyNode *x, TinyNode *y)
{
  TinyNode *sources[] = { gate, x, y };
  return dec_op (d, TINY_OP_WHERE, x->dtype, 3, sources);
}

TinyNode *
dec_mulacc (Decompose *d, TinyNode *x, TinyNode *y, TinyNode *z)
{
  TinyNode *sources[] = { x, y, z };
  return dec_op (d, TINY_OP_MULACC, x->dtype, 3, sources);
}

/* ---- the walk ---- */

TinyNode *
dec_memory_of (TinyNode *access)
{
  TinyNode *target = access->sources[0];
  while (target->op == TINY_OP_AFTER)
    target = target->sources[0];
  return target;
}

static gboolean
is_computed (TinyNode *node)
{
  return tiny_op_is_elementwise (node->op) && node->n_sources >= 1;
}

static gboolean
is_constant (const TinyNode *node)
{
  while (node->op == TINY_OP_VECTOR && node->n_sources == 1)
    node = node->sources[0];
  return node->op == TINY_OP_CONST;
}

/* The larger of x and a number is a choice: what MAX gives of a NaN targets do not agree on, and
 * a rectified NaN is one. (Of two numbers that are no constants the operation sees to it.) */
static TinyNode *
max_with_number (Decompose *d, TinyNode *const *sources)
{
  guint at = is_constant (sources[0]) ? 0 : 1;
  TinyNode *x = sources[1 - at], *number = sources[at];
  TinyNode *is_below[] = { x, number };
  return dec_where (d, dec_op (d, TINY_OP_CMPLT, TINY_DTYPE_BOOL, 2, is_below), number, x);
}

/* True if @node is the CAST of an f32 to a small float that the target lacks, and rounds nothing. */
static gboolean
is_exact_narrowing (Decompose *d, TinyExact *exact, TinyNode *node)
{
  return node->op == TINY_OP_CAST && node->sources[0]->dtype == TINY_DTYPE_F32
         && wider[node->dtype] == TINY_DTYPE_F32 && !has_cast (d, TINY_DTYPE_F32, node->dtype)
         && (tiny_exact_find (exact, node->sources[0]) & TINY_DTYPE_BIT (node->dtype)) != 0;
}

static TinyNode *
decompose_node (Decompose *d, TinyExact *exact, TinyNode *node, TinyNode *const *sources)
{
  if (is_exact_narrowing (d, exact, node) && sources[0]->op != TINY_OP_CONST)
    return dec_narrow_exact (d, sources[0], node->dtype);
  if (node->op == TINY_OP_MAX && tiny_dtype_is_float (node->dtype)
      && (is_constant (sources[0]) || is_constant (sources[1])))
    return max_with_number (d, sources);
  if (is_computed (node))
    return dec_op (d, node->op, node->dtype, node->n_sources, sources);
  if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE) {
    TinyNode *memory = dec_memory_of (node);
    if (memory->op != TINY_OP_REGISTER && !dec_has (d, node->op, memory->dtype))
      return dec_fail (d, node->op, memory->dtype, 1);
  }
  return tiny_node_with_sources (d->graph, node, sources);
}

static TinyNode *
walk (Decompose *d, TinyNode *root)
{
  g_auto (TinyNodeMap) done = { 0 };
  g_auto (TinyExact) exact = { 0 };
  g_autoptr (GArray) sources = g_array_new (FALSE, FALSE, sizeof (TinyNode *));
  g_autoptr (GPtrArray) order = tiny_graph_toposort (d->graph, &root, 1);
  for (guint i = 0; i < order->len && d->error == NULL; i++) {
    TinyNode *node = order->pdata[i];
    g_array_set_size (sources, node->n_sources);
    for (guint j = 0; j < node->n_sources; j++)
      g_array_index (sources, TinyNode *, j) = tiny_node_map_get (&done, node->sources[j]);
    tiny_node_map_set (&done, node,
                       decompose_node (d, &exact, node, (TinyNode *const *) sources->data));
  }
  return d->error == NULL ? tiny_node_map_get (&done, root) : root;
}

TinyNode *
tiny_decompose (TinyGraph *graph, TinyNode *root, const TinyTarget *target, GError **error)
{
  const guint32 words = dec_words_of (target);
  TinyTarget seeming = *target;
  Decompose d = { .graph = graph, .target = &seeming, .words = words };
  if (words != 0)
    dec_words_add (&seeming, words);
  root = walk (&d, root);
  d.target = target;
  d.words = 0;
  if (words != 0 && d.error == NULL)
    root = dec_to_words (&d, root, words);
  if (d.error == NULL)
    return root;
  g_propagate_error (error, d.error);
  return NULL;
}
