/* SPDX-License-Identifier: MIT
 *
 * linear-interpreter.c: runs linear programs and kernels in the simplest way there is.
 *
 * A number is held as a double and as an integer, whichever its dtype uses. */
#include "linear-interpreter.h"

#include <math.h>
#include <string.h>

typedef union {
  double f;
  gint64 i;
} Number;

static Number
wrap (TinyDType dtype, Number x)
{
  if (dtype == TINY_DTYPE_F32)
    x.f = (float) x.f;
  else if (dtype == TINY_DTYPE_BOOL)
    x.i = x.i != 0;
  else if (!tiny_dtype_is_float (dtype) && dtype != TINY_DTYPE_VOID) {
    guint shift = 64 - 8 * tiny_dtype_get_n_bytes (dtype);
    x.i = tiny_dtype_is_unsigned (dtype) ? (gint64) ((guint64) x.i << shift >> shift)
                                         : (gint64) ((guint64) x.i << shift) >> shift;
  }
  return x;
}

static Number
read_number (TinyDType dtype, gconstpointer buffer, gint64 i)
{
  Number x = { .i = 0 };
  switch (dtype) {
  case TINY_DTYPE_F32:
    x.f = ((const float *) buffer)[i];
    break;
  case TINY_DTYPE_F64:
    x.f = ((const double *) buffer)[i];
    break;
  case TINY_DTYPE_I32:
    x.i = ((const gint32 *) buffer)[i];
    break;
  case TINY_DTYPE_I64:
    x.i = ((const gint64 *) buffer)[i];
    break;
  case TINY_DTYPE_U8:
  case TINY_DTYPE_BOOL:
    x.i = ((const guint8 *) buffer)[i];
    break;
  default:
    g_error ("no dtype of these tests: %s", tiny_dtype_to_string (dtype));
  }
  return x;
}

static void
write_number (TinyDType dtype, gpointer buffer, gint64 i, Number x)
{
  switch (dtype) {
  case TINY_DTYPE_F32:
    ((float *) buffer)[i] = (float) x.f;
    break;
  case TINY_DTYPE_F64:
    ((double *) buffer)[i] = x.f;
    break;
  case TINY_DTYPE_I32:
    ((gint32 *) buffer)[i] = (gint32) x.i;
    break;
  case TINY_DTYPE_I64:
    ((gint64 *) buffer)[i] = x.i;
    break;
  case TINY_DTYPE_U8:
  case TINY_DTYPE_BOOL:
    ((guint8 *) buffer)[i] = (guint8) x.i;
    break;
  default:
    g_error ("no dtype of these tests: %s", tiny_dtype_to_string (dtype));
  }
}

static gint64
floor_div (gint64 x, gint64 y)
{
  gint64 q = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

/* One elementwise op; @dtype is of the operands. */
static Number
apply (TinyOp op, TinyDType dtype, TinyDType to, const Number *x)
{
  gboolean is_float = tiny_dtype_is_float (dtype), is_bool = dtype == TINY_DTYPE_BOOL;
  Number r = { .i = 0 };
#define BOTH(float_value, int_value)                                                           \
  if (is_float)                                                                                \
    r.f = (float_value);                                                                       \
  else                                                                                         \
    r.i = (int_value);                                                                         \
  return wrap (dtype, r)
  switch (op) {
  case TINY_OP_NEG:
    BOTH (-x[0].f, -x[0].i);
  case TINY_OP_ADD:
    BOTH (x[0].f + x[1].f, is_bool ? x[0].i | x[1].i : (gint64) ((guint64) x[0].i + x[1].i));
  case TINY_OP_SUB:
    BOTH (x[0].f - x[1].f, (gint64) ((guint64) x[0].i - x[1].i));
  case TINY_OP_MUL:
    BOTH (x[0].f * x[1].f, (gint64) ((guint64) x[0].i * x[1].i));
  case TINY_OP_MULACC:
    BOTH (x[0].f * x[1].f + x[2].f, (gint64) ((guint64) x[0].i * x[1].i + x[2].i));
  case TINY_OP_MAX:
    BOTH (fmax (x[0].f, x[1].f), MAX (x[0].i, x[1].i));
  case TINY_OP_RECIP:
    r.f = 1 / x[0].f;
    return wrap (dtype, r);
  case TINY_OP_SQRT:
    r.f = sqrt (x[0].f);
    return wrap (dtype, r);
  case TINY_OP_EXP2:
    r.f = exp2 (x[0].f);
    return wrap (dtype, r);
  case TINY_OP_IDIV:
    r.i = x[1].i != 0 ? x[0].i / x[1].i : 0;
    return r;
  case TINY_OP_MOD:
    r.i = x[1].i != 0 ? x[0].i % x[1].i : 0;
    return r;
  case TINY_OP_FLOORDIV:
    r.i = floor_div (x[0].i, x[1].i);
    return r;
  case TINY_OP_FLOORMOD:
    r.i = x[0].i - x[1].i * floor_div (x[0].i, x[1].i);
    return r;
  case TINY_OP_AND:
    r.i = x[0].i & x[1].i;
    return r;
  case TINY_OP_OR:
    r.i = x[0].i | x[1].i;
    return r;
  case TINY_OP_XOR:
    r.i = x[0].i ^ x[1].i;
    return r;
  case TINY_OP_SHL:
    r.i = (gint64) ((guint64) x[0].i << x[1].i);
    return wrap (dtype, r);
  case TINY_OP_SHR:
    r.i = x[0].i >> x[1].i;
    return r;
  case TINY_OP_CMPLT:
    r.i = is_float ? x[0].f < x[1].f : x[0].i < x[1].i;
    return r;
  case TINY_OP_CMPNE:
    r.i = is_float ? x[0].f != x[1].f : x[0].i != x[1].i;
    return r;
  case TINY_OP_CMPEQ:
    r.i = is_float ? x[0].f == x[1].f : x[0].i == x[1].i;
    return r;
  case TINY_OP_WHERE:
    return x[0].i ? x[1] : x[2];
  case TINY_OP_CAST:
    if (tiny_dtype_is_float (to))
      r.f = is_float ? x[0].f : (double) x[0].i;
    else if (to == TINY_DTYPE_BOOL)
      r.i = is_float ? x[0].f != 0 : x[0].i != 0;
    else
      r.i = is_float ? (gint64) x[0].f : x[0].i;
    return wrap (to, r);
  default:
    g_error ("no op of these tests: %s", tiny_op_to_string (op));
  }
}

static Number
number_of_const (TinyDType dtype, gint64 arg)
{
  Number x = { .i = arg };
  if (tiny_dtype_is_float (dtype))
    memcpy (&x.f, &arg, sizeof arg);
  return x;
}

/* ---- linear programs ---- */
enum { MAX_LANES = 64 };
typedef struct {
  Number lane[MAX_LANES];
} Value;

typedef struct {
  const TinyLinear *linear;
  gpointer *buffers;
  const gint64 *variables;
  gint64 grid[3];
  Value *values;    /* by instruction; of a REGISTER: what it holds */
  gpointer *locals; /* by instruction */
  guint64 rounds;   /* of the loops of this grid point */
} Machine;

static TinyOp
op_of_instr (guint instr)
{
  for (guint i = 0; i < TINY_N_OPS; i++)
    if (tiny_op_infos[i].instr == (TinyInstrOp) instr)
      return i;
  g_error ("unknown instruction %u", instr);
}

/* The memory that instruction @place is, of which element @i is wanted. */
static gpointer
find_memory (Machine *m, guint32 place, gint64 i)
{
  const TinyInstr *instr = &m->linear->instrs[place];
  gboolean is_param = instr->op == TINY_INSTR_PARAM;
  g_assert_true (is_param || instr->op == TINY_INSTR_LOCAL);
  g_assert_cmpint (i, >=, 0);
  g_assert_cmpint (i, <,
                   is_param ? (gint64) m->linear->params[instr->arg].n_elements : instr->arg);
  return is_param ? m->buffers[instr->arg] : m->locals[place];
}

static void
access_memory (Machine *m, const TinyInstr *instr, const guint32 *s, Value *out)
{
  gboolean loads = instr->op == TINY_INSTR_LOAD;
  guint gate = loads ? 2 : 3;
  const TinyInstr *place = &m->linear->instrs[s[0]];
  if (place->op == TINY_INSTR_REGISTER) {
    g_assert_cmpint (place->lanes, ==, instr->lanes);
    if (loads)
      *out = m->values[s[0]];
    else
      m->values[s[0]] = m->values[s[1]];
    return;
  }
  g_assert_cmpint (m->linear->instrs[s[1]].lanes, ==, 1);
  for (guint lane = 0; lane < instr->lanes; lane++) {
    gint64 i = m->values[s[1]].lane[0].i + lane;
    if (instr->n_sources > gate) {
      guint n = m->linear->instrs[s[gate]].lanes;
      g_assert_true (n == 1 || n == instr->lanes);
      if (!m->values[s[gate]].lane[n == 1 ? 0 : lane].i) {
        if (loads) {
          g_assert_cmpint (m->linear->instrs[s[3]].lanes, ==, instr->lanes);
          out->lane[lane] = m->values[s[3]].lane[lane];
        }
        continue;
      }
    }
    gpointer memory = find_memory (m, s[0], i);
    if (loads)
      out->lane[lane] = read_number (place->dtype, memory, i);
    else
      write_number (place->dtype, memory, i, m->values[s[2]].lane[lane]);
  }
  if (!loads)
    g_assert_cmpint (m->linear->instrs[s[2]].lanes, ==, instr->lanes);
}

static void
execute (Machine *m, guint32 index)
{
  const TinyInstr *instr = &m->linear->instrs[index];
  const guint32 *s = m->linear->sources + instr->sources;
  Value *out = &m->values[index];
  g_assert_cmpint (instr->lanes, <=, MAX_LANES);
  for (guint i = 0; i < instr->n_sources; i++)
    g_assert_cmpint (s[i], <, index);
  switch (instr->op) {
  case TINY_INSTR_CONST:
    for (guint lane = 0; lane < instr->lanes; lane++)
      out->lane[lane] = number_of_const (instr->dtype, instr->arg);
    return;
  case TINY_INSTR_PARAM:
  case TINY_INSTR_LOCAL:
  case TINY_INSTR_REGISTER:
    return;
  case TINY_INSTR_VARIABLE:
    out->lane[0].i = m->variables[instr->arg];
    return;
  case TINY_INSTR_GRID:
    out->lane[0].i = m->grid[instr->arg];
    return;
  case TINY_INSTR_VECTOR:
    g_assert_true (instr->n_sources == 1 || instr->n_sources == instr->lanes);
    for (guint lane = 0; lane < instr->lanes; lane++) {
      guint32 source = s[instr->n_sources == 1 ? 0 : lane];
      g_assert_cmpint (m->linear->instrs[source].lanes, ==, 1);
      g_assert_cmpint (m->linear->instrs[source].dtype, ==, instr->dtype);
      out->lane[lane] = m->values[source].lane[0];
    }
    return;
  case TINY_INSTR_EXTRACT:
    g_assert_cmpint (instr->arg, <, m->linear->instrs[s[0]].lanes);
    out->lane[0] = m->values[s[0]].lane[instr->arg];
    return;
  case TINY_INSTR_LOAD:
  case TINY_INSTR_STORE:
    access_memory (m, instr, s, out);
    return;
  default:
    for (guint lane = 0; lane < instr->lanes; lane++) {
      Number x[3];
      for (guint i = 0; i < instr->n_sources; i++) {
        g_assert_cmpint (m->linear->instrs[s[i]].lanes, ==, instr->lanes);
        x[i] = m->values[s[i]].lane[lane];
      }
      if (instr->n_sources == 2)
        g_assert_cmpint (m->linear->instrs[s[0]].dtype, ==, m->linear->instrs[s[1]].dtype);
      out->lane[lane]
          = apply (op_of_instr (instr->op), m->linear->instrs[s[0]].dtype, instr->dtype, x);
    }
  }
}

/* The ENDIF of the IF at @i. */
static guint32
find_endif (Machine *m, guint32 i)
{
  guint32 depth = 0;
  for (; i < m->linear->n_instrs; i++) {
    depth += m->linear->instrs[i].op == TINY_INSTR_IF;
    depth -= m->linear->instrs[i].op == TINY_INSTR_ENDIF;
    if (depth == 0)
      break;
  }
  return i;
}

/* Runs instructions from @i up to the END of @range; returns the END's position. */
static guint32
run_from (Machine *m, guint32 i, gint64 range)
{
  for (; i < m->linear->n_instrs; i++) {
    const TinyInstr *instr = &m->linear->instrs[i];
    if (instr->op == TINY_INSTR_END) {
      g_assert_cmpint (m->linear->sources[instr->sources], ==, range);
      return i;
    }
    if (instr->op == TINY_INSTR_IF || instr->op == TINY_INSTR_ENDIF) {
      gboolean skips = instr->op == TINY_INSTR_IF
                       && !m->values[m->linear->sources[instr->sources]].lane[0].i;
      i = skips ? find_endif (m, i) : i;
      continue;
    }
    if (instr->op != TINY_INSTR_RANGE) {
      execute (m, i);
      continue;
    }
    gint64 bound = m->values[m->linear->sources[instr->sources]].lane[0].i;
    g_assert_cmpint (bound, >, 0);
    guint32 end = i;
    for (gint64 k = 0; k < bound; k++) {
      m->values[i].lane[0].i = k;
      end = run_from (m, i + 1, i);
      m->rounds++;
    }
    i = end;
  }
  g_assert_cmpint (range, ==, -1);
  return i;
}

enum { UNDEFINED = 0xff }; /* NaN, or -1 */

/* Local memory is undefined when a grid point starts. */
static void
make_locals (Machine *m)
{
  for (guint32 i = 0; i < m->linear->n_instrs; i++) {
    const TinyInstr *instr = &m->linear->instrs[i];
    gsize n_bytes = (gsize) instr->arg * tiny_dtype_get_n_bytes (instr->dtype);
    if (instr->op != TINY_INSTR_LOCAL)
      continue;
    g_free (m->locals[i]);
    m->locals[i] = memset (g_malloc (n_bytes), UNDEFINED, n_bytes);
  }
}

guint64
interpret_linear (const TinyLinear *linear, gpointer *buffers, const gint64 *variables)
{
  Machine m = { linear,
                buffers,
                variables,
                { 0 },
                g_new0 (Value, linear->n_instrs + 1),
                g_new0 (gpointer, linear->n_instrs + 1) };
  guint64 most = 0;
  for (m.grid[2] = 0; m.grid[2] < linear->grid[2]; m.grid[2]++)
    for (m.grid[1] = 0; m.grid[1] < linear->grid[1]; m.grid[1]++)
      for (m.grid[0] = 0; m.grid[0] < linear->grid[0]; m.grid[0]++) {
        make_locals (&m);
        m.rounds = 0;
        run_from (&m, 0, -1);
        most = MAX (most, m.rounds);
      }
  for (guint32 i = 0; i < linear->n_instrs; i++)
    g_free (m.locals[i]);
  g_free (m.locals);
  g_free (m.values);
  return most;
}

/* ---- kernels ---- */
typedef struct {
  TinyNode *range[32];
  gint64 value[32];
  guint n;
  TinyGraph *graph;
  gpointer *buffers;
  gpointer locals[8];
  const gint64 *variables;
} Scope;

static gpointer
memory_of (Scope *scope, TinyNode *place)
{
  gboolean is_local = place->op == TINY_OP_LOCAL;
  g_assert_true (is_local || place->op == TINY_OP_PARAM);
  if (!is_local)
    return scope->buffers[place->arg];
  g_assert_cmpint (place->arg, <, G_N_ELEMENTS (scope->locals));
  gsize n_bytes = place->ints->v[0] * tiny_dtype_get_n_bytes (place->dtype);
  if (scope->locals[place->arg] == NULL)
    scope->locals[place->arg] = memset (g_malloc (n_bytes), UNDEFINED, n_bytes);
  return scope->locals[place->arg];
}

static Number evaluate (Scope *scope, TinyNode *node);

/* All combinations of @ranges from @i on. */
static void
evaluate_reduce (Scope *scope, TinyNode *node, guint i, Number *acc, gboolean *started)
{
  if (i == node->n_sources) {
    Number x[2] = { *acc, evaluate (scope, node->sources[0]) };
    *acc = *started ? apply (node->arg, node->dtype, node->dtype, x) : x[1];
    *started = TRUE;
    return;
  }
  guint slot = scope->n++;
  scope->range[slot] = node->sources[i];
  for (gint64 k = 0; k < tiny_range_get_extent (node->sources[i]); k++) {
    scope->value[slot] = k;
    evaluate_reduce (scope, node, i + 1, acc, started);
  }
  scope->n--;
}

static Number
evaluate (Scope *scope, TinyNode *node)
{
  Number x[4] = { { .i = 0 } };
  switch (node->op) {
  case TINY_OP_CONST:
    return number_of_const (node->dtype, node->arg);
  case TINY_OP_VARIABLE:
    x[0].i = scope->variables[node->arg];
    return x[0];
  case TINY_OP_RANGE:
    for (guint i = scope->n; i-- > 0;)
      if (scope->range[i] == node) {
        x[0].i = scope->value[i];
        return x[0];
      }
    g_error ("a range is used outside of its loop");
  case TINY_OP_REDUCE: {
    gboolean started = FALSE;
    evaluate_reduce (scope, node, 1, x, &started);
    return x[0];
  }
  case TINY_OP_LOAD:
    if (node->n_sources > 2 && !evaluate (scope, node->sources[2]).i)
      return evaluate (scope, node->sources[3]);
    return read_number (node->dtype, memory_of (scope, node->sources[0]),
                        evaluate (scope, node->sources[1]).i);
  default:
    for (guint i = 0; i < node->n_sources; i++)
      x[i] = evaluate (scope, node->sources[i]);
    return apply (node->op, node->sources[0]->dtype, node->dtype, x);
  }
}

/* The loop of @store at @depth, counted from the outermost: by ascending number. */
static TinyNode *
loop_at (Scope *scope, TinyNode *store, guint depth)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (scope->graph, store, &n);
  for (guint i = 0; i < n; i++) {
    guint below = 0;
    for (guint j = 0; j < n; j++)
      below += tiny_range_get_number (ranges[j]) < tiny_range_get_number (ranges[i]);
    if (below == depth)
      return ranges[i];
  }
  return NULL;
}

/* Stores in their order, inside the loops that neighbours share. */
static void
run_stores (Scope *scope, TinyNode *const *stores, guint n, guint depth)
{
  for (guint i = 0, end; i < n; i = end) {
    TinyNode *loop = loop_at (scope, stores[i], depth), *store = stores[i];
    end = i + 1;
    if (loop == NULL) {
      if (store->n_sources < 4 || evaluate (scope, store->sources[3]).i)
        write_number (store->sources[0]->dtype, memory_of (scope, store->sources[0]),
                      evaluate (scope, store->sources[1]).i,
                      evaluate (scope, store->sources[2]));
      continue;
    }
    while (end < n && loop_at (scope, stores[end], depth) == loop)
      end++;
    guint slot = scope->n++;
    scope->range[slot] = loop;
    for (gint64 k = 0; k < tiny_range_get_extent (loop); k++) {
      scope->value[slot] = k;
      run_stores (scope, stores + i, end - i, depth + 1);
    }
    scope->n--;
  }
}

void
interpret_kernel (TinyGraph *graph, TinyNode *sink, gpointer *buffers, const gint64 *variables)
{
  Scope scope = { .graph = graph, .buffers = buffers, .variables = variables };
  run_stores (&scope, sink->sources, sink->n_sources, 0);
  for (guint i = 0; i < G_N_ELEMENTS (scope.locals); i++)
    g_free (scope.locals[i]);
}
