/* SPDX-License-Identifier: MIT
 *
 * probe-lanes.c: what gates, lanes, registers and local memory do in every dtype, place and depth. */
#include "probe.h"

#define OP(name)    TINY_INSTR_##name
#define DTYPE(name) TINY_DTYPE_##name
enum { READ = TINY_PARAM_READ, WRITE = TINY_PARAM_WRITE, N = 4096, LANES = 16 };

static const Probe *probe_now; /* of the functions below */

/* A kernel of @grid points: out, of @to, and in, of @from. */
static Rewrite *
begin (const char *name, uint32_t grid, unsigned to, unsigned from)
{
  Rewrite *k = kernel_new (name, 2);
  kernel_whole (k)->grid[0] = grid;
  kernel_param (k, 0, to, READ | WRITE, N);
  kernel_param (k, 1, from, READ, N);
  emit (k, OP (PARAM), to, 1, 0, 0, NULL);
  emit (k, OP (PARAM), from, 1, 1, 0, NULL);
  return k;
}
enum { OUT = 0, IN = 1 }; /* the first two values */

static Value
whole (Rewrite *k, int64_t value)
{
  return kernel_int (probe_now, k, value);
}

static Value
load (Rewrite *k, Value from, Value index, unsigned lanes)
{
  return emit (k, OP (LOAD), at (k, from)->dtype, lanes, 0, 2, (const Value[]){ from, index });
}

static Value
load_gated (Rewrite *k, Value from, Value index, Value gate, Value other)
{
  return emit (k, OP (LOAD), at (k, from)->dtype, at (k, other)->lanes, 0, 4,
               (const Value[]){ from, index, gate, other });
}

static void
store (Rewrite *k, Value to, Value index, Value value)
{
  emit (k, OP (STORE), DTYPE (VOID), at (k, value)->lanes, 0, 3,
        (const Value[]){ to, index, value });
}

static void
store_gated (Rewrite *k, Value to, Value index, Value value, Value gate)
{
  emit (k, OP (STORE), DTYPE (VOID), at (k, value)->lanes, 0, 4,
        (const Value[]){ to, index, value, gate });
}

static Value
constant (Rewrite *k, unsigned dtype, unsigned lanes, int64_t arg)
{
  return emit (k, OP (CONST), dtype, lanes, arg, 0, NULL);
}

static Value
new_register (Rewrite *k, unsigned dtype, unsigned lanes)
{
  return emit (k, OP (REGISTER), dtype, lanes, 0, 0, NULL);
}

static void
set (Rewrite *k, Value to, Value value)
{
  emit (k, OP (STORE), DTYPE (VOID), 1, 0, 2, (const Value[]){ to, value });
}

static Value
get (Rewrite *k, Value from)
{
  const TinyInstr of = *at (k, from);
  return emit (k, OP (LOAD), of.dtype, of.lanes, 0, 1, &from);
}

static Value
loop (Rewrite *k, Value bound)
{
  return emit (k, OP (RANGE), at (k, bound)->dtype, 1, 0, 1, &bound);
}

static void
end (Rewrite *k, Value range)
{
  emit (k, at (k, range)->op == OP (IF) ? OP (ENDIF) : OP (END), DTYPE (VOID), 1, 0, 1, &range);
}

static Value
less (Rewrite *k, Value a, Value b)
{
  return op2 (k, OP (CMPLT), a, b);
}

static Value
times (Rewrite *k, Value a, int64_t b)
{
  return op2 (k, OP (MUL), a, integer (k, a, b));
}

static Value
plus (Rewrite *k, Value a, Value b)
{
  return op2 (k, OP (ADD), a, b);
}

/* ---- gates ---- */
static void
probe_alternatives (void)
{
  Rewrite *k = begin ("alternative-i64", 40, DTYPE (I64), DTYPE (I64));
  Value i = kernel_grid (probe_now, k, 0);
  store (k, OUT, i,
         load_gated (k, IN, i, less (k, i, whole (k, 9)),
                     constant (k, DTYPE (I64), 1, INT64_C (0x123456789))));
  kernel_run (probe_now, k);
  k = begin ("alternative-value", 40, DTYPE (I32), DTYPE (I32));
  i = kernel_grid (probe_now, k, 0);
  store (k, OUT, i,
         load_gated (k, IN, i, less (k, i, whole (k, 9)),
                     times (k, load (k, IN, times (k, i, 2), 1), 5)));
  kernel_run (probe_now, k);
}

/* In a loop, both gates by its counter. */
static void
probe_gates_in_loops (void)
{
  Rewrite *k = begin ("gates-in-loops", 4, DTYPE (I32), DTYPE (I32));
  const Value i = kernel_grid (probe_now, k, 0), sum = new_register (k, DTYPE (I32), 1);
  set (k, sum, constant (k, DTYPE (I32), 1, 1));
  const Value j = loop (k, whole (k, 8));
  const Value where = plus (k, times (k, i, 8), j), gate = less (k, j, whole (k, 5));
  const Value x = load_gated (k, IN, where, gate, constant (k, DTYPE (I32), 1, 77));
  set (k, sum, plus (k, times (k, get (k, sum), 3), x));
  store_gated (k, OUT, where, get (k, sum), less (k, whole (k, 3), j));
  const Value branch = less (k, whole (k, 5), j);
  const Value block = emit (k, OP (IF), DTYPE (VOID), 1, 0, 1, &branch);
  store (k, OUT, plus (k, where, whole (k, 100)), x);
  end (k, block);
  end (k, j);
  kernel_run (probe_now, k);
}

static void
probe_gates_of_local (void)
{
  Rewrite *k = begin ("gates-of-local", 1, DTYPE (I32), DTYPE (I32));
  const Value local = emit (k, OP (LOCAL), DTYPE (I32), 1, 32, 0, NULL);
  Value j = loop (k, whole (k, 32));
  store (k, local, j, load (k, IN, j, 1));
  store_gated (k, local, j, constant (k, DTYPE (I32), 1, 5), less (k, j, whole (k, 7)));
  end (k, j);
  j = loop (k, whole (k, 32));
  store (k, OUT, j,
         load_gated (k, local, j, less (k, whole (k, 4), j), constant (k, DTYPE (I32), 1, 9)));
  end (k, j);
  kernel_run (probe_now, k);
}

/* Far from any memory; the last, as what goes there does not come back. */
static void
probe_far_gates (void)
{
  Rewrite *k = begin ("far-gates", 40, DTYPE (I32), DTYPE (I32));
  const Value i = kernel_grid (probe_now, k, 0), open = less (k, i, whole (k, 20));
  const Value where
      = choose (k, open, i, times (k, plus (k, i, whole (k, -30)), INT64_C (1) << 26));
  const Value x = load_gated (k, IN, where, open, constant (k, DTYPE (I32), 1, 5));
  store_gated (k, OUT, where, x, open);
  kernel_run (probe_now, k);
}

/* ---- depth ---- */
static void
probe_depth (void)
{
  Rewrite *k = begin ("branches", 40, DTYPE (I32), DTYPE (I32));
  Value i = kernel_grid (probe_now, k, 0), blocks[4];
  for (unsigned b = 0; b < 4; b++) {
    const Value open = less (k, i, whole (k, 30 - 5 * (int64_t) b));
    blocks[b] = emit (k, OP (IF), DTYPE (VOID), 1, 0, 1, &open);
    store (k, OUT, plus (k, i, whole (k, 100 * (int64_t) b)), load (k, IN, i, 1));
  }
  for (unsigned b = 4; b-- > 0;)
    end (k, blocks[b]);
  kernel_run (probe_now, k);
  k = begin ("loops", 1, DTYPE (I32), DTYPE (I32));
  const Value sum = new_register (k, DTYPE (I32), 1);
  set (k, sum, constant (k, DTYPE (I32), 1, 1));
  for (unsigned b = 0; b < 4; b++)
    blocks[b] = loop (k, whole (k, 3));
  set (k, sum, plus (k, times (k, get (k, sum), 3), constant (k, DTYPE (I32), 1, 1)));
  for (unsigned b = 4; b-- > 0;)
    end (k, blocks[b]);
  const Value long_bound = constant (k, DTYPE (I64), 1, 3 - (INT64_C (1) << 32));
  blocks[0] = loop (k, long_bound);
  set (k, sum, plus (k, get (k, sum), constant (k, DTYPE (I32), 1, 1)));
  end (k, blocks[0]);
  store (k, OUT, whole (k, 0), get (k, sum));
  kernel_run (probe_now, k);
}

static void
probe_constants (void)
{
  Rewrite *k = begin ("forty-constants", 1, DTYPE (I32), DTYPE (I32));
  for (int i = 0; i < 40; i++)
    store (k, OUT, whole (k, i), constant (k, DTYPE (I32), 1, 1000 + 7 * i));
  kernel_run (probe_now, k);
  k = begin ("constants-i8", 1, DTYPE (I8), DTYPE (I8));
  store (k, OUT, whole (k, 0), constant (k, DTYPE (I8), 1, -5));
  kernel_run (probe_now, k);
}

/* ---- registers and local memory ---- */
static void
probe_registers (void)
{
  Rewrite *k = begin ("registers", 1, DTYPE (I32), DTYPE (I32));
  Value registers[10];
  for (unsigned i = 0; i < 10; i++) {
    registers[i] = new_register (k, DTYPE (I32), 1);
    set (k, registers[i], load (k, IN, whole (k, i), 1));
  }
  for (unsigned i = 0; i < 10; i++)
    store (k, OUT, whole (k, i), get (k, registers[i]));
  kernel_run (probe_now, k);
  static const unsigned dtypes[]
      = { DTYPE (I8), DTYPE (I16), DTYPE (I64), DTYPE (F64), DTYPE (F32), DTYPE (U8) };
  for (unsigned d = 0; d < TINY_KIT_N (dtypes); d++) {
    k = begin ("register-of", 1, dtypes[d], dtypes[d]);
    const Value x = new_register (k, dtypes[d], 1);
    const Value local = emit (k, OP (LOCAL), dtypes[d], 1, 16, 0, NULL),
                other = emit (k, OP (LOCAL), dtypes[d], 1, 16, 0, NULL);
    Value j = loop (k, whole (k, 16));
    set (k, x, op1 (k, OP (NEG), load (k, IN, j, 1)));
    store (k, OUT, j, get (k, x));
    store (k, local, op2 (k, OP (SUB), whole (k, 15), j), get (k, x));
    store (k, other, j, load (k, IN, j, 1));
    end (k, j);
    j = loop (k, whole (k, 16));
    store (k, OUT, plus (k, j, whole (k, 16)), load (k, local, j, 1));
    store (k, OUT, plus (k, j, whole (k, 32)), load (k, other, j, 1));
    end (k, j);
    kernel_run (probe_now, k);
  }
  k = begin ("register-of-bool", 1, DTYPE (I32), DTYPE (I32));
  const Value flag = new_register (k, DTYPE (BOOL), 1);
  set (k, flag, constant (k, DTYPE (BOOL), 1, 0));
  const Value j = loop (k, whole (k, 8));
  set (k, flag, less (k, op2 (k, OP (MOD), j, whole (k, 3)), whole (k, 1)));
  store (k, OUT, j, cast (k, DTYPE (I32), get (k, flag)));
  end (k, j);
  kernel_run (probe_now, k);
}

static void
probe_stored (void)
{
  Rewrite *k = begin ("stored", 4, DTYPE (I32), DTYPE (I32));
  const Value i = kernel_grid (probe_now, k, 0);
  store (k, OUT, i, load (k, IN, i, 1));
  const Value back = load (k, OUT, i, 1);
  store (k, OUT, plus (k, i, whole (k, 8)), times (k, back, 3));
  kernel_run (probe_now, k);
}

/* ---- vectors ---- */
static void
probe_vectors_of (const char *name, unsigned dtype)
{
  const int is_unaligned = (probe_now->target.flags & TINY_TARGET_UNALIGNED) != 0;
  const int is_masked = (probe_now->target.flags & TINY_TARGET_MASKED) != 0;
  Rewrite *k = begin (name, 1, dtype, dtype);
  const Value x = load (k, IN, whole (k, 32 + 2 * is_unaligned), LANES),
              y = load (k, IN, whole (k, 64), LANES);
  Value lanes[LANES], at_row = whole (k, 2 * is_unaligned);
  for (unsigned i = 0; i < LANES; i++)
    lanes[i] = emit (k, OP (EXTRACT), dtype, 1, (i * 5 + 3) % LANES, 1, &x);
  const Value stirred = emit (k, OP (VECTOR), dtype, LANES, 0, LANES, lanes);
  const Value spread = emit (k, OP (VECTOR), dtype, LANES, 0, 1, &lanes[3]);
  const Value splat = integer (k, x, 0);
  const Value mask = less (k, x, op2 (k, OP (XOR), y, integer (k, y, 0x80))),
              few = less (k, x, integer (k, x, 110));
  const Value values[] = { stirred,
                           spread,
                           op2 (k, OP (MUL), x, y),
                           choose (k, few, x, stirred),
                           op2 (k, OP (XOR), x, splat),
                           plus (k, x, constant (k, dtype, LANES, 3)) };
  for (unsigned i = 0; i < TINY_KIT_N (values); i++) {
    store (k, OUT, at_row, values[i]);
    at_row = plus (k, at_row, whole (k, LANES));
  }
  if (is_masked) {
    store (k, OUT, at_row, load_gated (k, IN, whole (k, 96), mask, stirred));
    at_row = plus (k, at_row, whole (k, LANES));
    store_gated (k, OUT, at_row, y, mask);
    at_row = plus (k, at_row, whole (k, LANES));
  }
  const Value held = new_register (k, dtype, LANES);
  set (k, held, stirred);
  store (k, OUT, at_row, get (k, held));
  if (probe_now->target.local_bytes > 0) {
    const Value local = emit (k, OP (LOCAL), dtype, 1, 4 * LANES, 0, NULL);
    store (k, local, whole (k, is_unaligned), x);
    store (k, local, whole (k, LANES + is_unaligned), y);
    store (k, OUT, plus (k, at_row, whole (k, LANES)),
           load (k, local, whole (k, 3 * is_unaligned), LANES));
  }
  kernel_run (probe_now, k);
}

static void
probe_vector_casts (void)
{
  static const unsigned pairs[][2] = { { DTYPE (I32), DTYPE (U8) },
                                       { DTYPE (U8), DTYPE (I32) },
                                       { DTYPE (F32), DTYPE (U32) },
                                       { DTYPE (I16), DTYPE (I64) } };
  for (unsigned i = 0; i < TINY_KIT_N (pairs); i++) {
    Rewrite *k = begin ("vector-cast", 1, pairs[i][0], pairs[i][1]);
    Value x = load (k, IN, whole (k, 0), LANES);
    if (pairs[i][1] == DTYPE (U32))
      x = op2 (k, OP (XOR), x, integer (k, x, 0xf0000000));
    store (k, OUT, whole (k, 0), cast (k, pairs[i][0], x));
    kernel_run (probe_now, k);
  }
}

static void
probe_vector_ops (void)
{
  Rewrite *k = begin ("vector-shr", 1, DTYPE (U8), DTYPE (U8));
  Value x = load (k, IN, whole (k, 0), LANES);
  store (k, OUT, whole (k, 0), op2 (k, OP (SHR), x, integer (k, x, 3)));
  kernel_run (probe_now, k);
  k = begin ("vector-idiv", 1, DTYPE (I32), DTYPE (I32));
  x = load (k, IN, whole (k, 0), LANES);
  x = plus (k, x, integer (k, x, 0x7ffffff));
  store (k, OUT, whole (k, 0), op2 (k, OP (IDIV), x, integer (k, x, 3)));
  kernel_run (probe_now, k);
  if ((probe_now->target.flags & TINY_TARGET_MASKED) == 0)
    return;
  /* A gate of which some lanes are open in each row, behind words that differ. */
  k = begin ("vector-gate", 4, DTYPE (I32), DTYPE (I32));
  const Value row = times (k, kernel_grid (probe_now, k, 0), LANES);
  x = load (k, IN, row, LANES);
  const Value some = less (k, op2 (k, OP (MOD), x, integer (k, x, 5)), integer (k, x, 3));
  store_gated (k, OUT, row, load_gated (k, IN, row, some, integer (k, x, 9)),
               less (k, op2 (k, OP (MOD), x, integer (k, x, 7)), integer (k, x, 4)));
  kernel_run (probe_now, k);
}

void
probe_lanes (Probe *probe)
{
  probe_now = probe;
  probe_alternatives ();
  probe_gates_in_loops ();
  if (probe->target.local_bytes > 0 && (probe->target.flags & TINY_TARGET_GROUPS) == 0)
    probe_gates_of_local ();
  probe_depth ();
  probe_constants ();
  if (probe->target.local_bytes > 0)
    probe_registers ();
  probe_stored ();
  if (probe->target.max_lanes >= LANES) {
    probe_vectors_of ("vectors-i32", DTYPE (I32));
    probe_vectors_of ("vectors-i64", DTYPE (I64));
    probe_vectors_of ("vectors-u8", DTYPE (U8));
    probe_vector_casts ();
    probe_vector_ops ();
  }
  probe_far_gates ();
}
