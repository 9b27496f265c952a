/* SPDX-License-Identifier: MIT
 *
 * kernels.c: kernels built by hand, and the comparison of what they compute. */
#include "kernels.h"

#include <math.h>
#include <string.h>

#include "../case-fails.h"

/* ---- targets ---- */
TinyTarget
scalar_target (void)
{
  TinyTarget target = { .struct_size = sizeof target, .index_dtype = TINY_DTYPE_I32 };
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    target.ops[i] = ~G_GUINT64_CONSTANT (0);
  target.dtypes_storage = target.dtypes_compute = 0xffff;
  target.max_lanes = 1;
  target.max_params = 32;
  target.local_bytes = 1 << 24;
  for (guint i = 0; i < 3; i++)
    target.max_grid[i] = G_MAXINT32;
  return target;
}

TinyTarget
short_target (void)
{
  TinyTarget target = scalar_target ();
  target.max_rounds = 400;
  return target;
}

TinyTarget
vector_target (void)
{
  TinyTarget target = scalar_target ();
  target.flags = TINY_TARGET_MASKED | TINY_TARGET_GRID_CHUNKS | TINY_TARGET_UNALIGNED;
  target.index_dtype = TINY_DTYPE_I64;
  target.vector_bits = 512;
  target.n_vector_registers = 32;
  target.max_lanes = 64;
  target.n_threads = 2;
  target.cache_bytes[0] = 48 << 10;
  target.cache_bytes[1] = 2 << 20;
  target.cache_bytes[2] = 32 << 20;
  return target;
}

TinyTarget
narrow_target (void)
{
  TinyTarget target = vector_target ();
  target.flags = TINY_TARGET_GRID_CHUNKS;
  target.index_dtype = TINY_DTYPE_I32;
  target.vector_bits = 128;
  target.n_vector_registers = 16;
  target.max_lanes = 4;
  target.cache_bytes[0] = 1 << 10; /* so small that panels are copied */
  target.cache_bytes[1] = 8 << 10;
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    target.ops[i] &= ~TINY_INSTR_BIT (TINY_INSTR_MULACC);
  return target;
}

/* Like a graphics processor: a group of 64 items, 8 KiB of LOCAL memory, short vectors. */
TinyTarget
group_target (void)
{
  TinyTarget target = scalar_target ();
  target.flags = TINY_TARGET_GROUPS | TINY_TARGET_MASKED;
  target.vector_bits = 128;
  target.max_lanes = 4;
  target.local_bytes = 8 << 10;
  target.max_group_total = 64;
  for (guint i = 0; i < 3; i++)
    target.max_group[i] = 64;
  return target;
}

/* As little of everything as still has groups. */
TinyTarget
tiny_group_target (void)
{
  TinyTarget target = scalar_target ();
  target.flags = TINY_TARGET_GROUPS;
  target.local_bytes = 512;
  target.max_group_total = 8;
  for (guint i = 0; i < 3; i++) {
    target.max_group[i] = i == 0 ? 8 : 4;
    target.max_grid[i] = 40;
  }
  return target;
}

/* ---- kernels ---- */

TinyNode *
build_range (Build *b, gint64 extent)
{
  return tiny_node_range_const (b->graph, b->n_ranges++, TINY_RANGE_LOOP, extent);
}

TinyNode *
build_number (Build *b, gint64 value)
{
  return tiny_node_const_index (b->graph, value);
}

TinyNode *
build_op (Build *b, TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_node_binary (b->graph, op, x, y);
}

/* Row-major index of @ranges of the extents they have. */
TinyNode *
build_index (Build *b, guint n, TinyNode *const *ranges)
{
  TinyNode *index = build_number (b, 0);
  for (guint i = 0; i < n; i++) {
    index
        = build_op (b, TINY_OP_MUL, index, build_number (b, tiny_range_get_extent (ranges[i])));
    index = build_op (b, TINY_OP_ADD, index, ranges[i]);
  }
  return index;
}
TinyNode *
build_param (Build *b, TinyDType dtype, guint slot, gint64 n)
{
  const TinyInts *ints = tiny_graph_ints (b->graph, &n, 1);
  return tiny_node_new (b->graph, TINY_OP_PARAM, dtype, 1, 0, NULL, slot, ints, NULL);
}

TinyNode *
build_load (Build *b, TinyNode *p, TinyNode *index, TinyNode *gate)
{
  TinyNode *zero = tiny_node_const_int (b->graph, p->dtype, 0);
  TinyNode *sources[] = { p, index, gate, zero };
  return tiny_node_new (b->graph, TINY_OP_LOAD, p->dtype, 1, gate ? 4 : 2, sources, 0, NULL,
                        NULL);
}

TinyNode *
build_store (Build *b, TinyNode *p, TinyNode *index, TinyNode *value, TinyNode *gate)
{
  TinyNode *sources[] = { p, index, value, gate };
  return tiny_node_new (b->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, gate ? 4 : 3, sources, 0,
                        NULL, NULL);
}

TinyNode *
build_reduce (Build *b, TinyOp op, TinyNode *value, guint n, TinyNode *const *ranges)
{
  TinyNode *sources[8] = { value };
  memcpy (sources + 1, ranges, n * sizeof *sources);
  return tiny_node_new (b->graph, TINY_OP_REDUCE, value->dtype, 1, n + 1, sources, op, NULL,
                        NULL);
}

TinyNode *
build_sink (Build *b, TinyNode *s)
{
  return tiny_node_sink (b->graph, 1, &s, "test");
}

/* ---- running ---- */
static void
fill (GRand *rand, TinyDType dtype, gpointer buffer, gint64 n)
{
  for (gint64 i = 0; i < n; i++)
    if (dtype == TINY_DTYPE_F32)
      ((float *) buffer)[i] = (float) g_rand_double_range (rand, -1, 1);
    else if (dtype == TINY_DTYPE_F64)
      ((double *) buffer)[i] = g_rand_double_range (rand, -1, 1);
    else if (dtype == TINY_DTYPE_I32)
      ((gint32 *) buffer)[i] = g_rand_int_range (rand, -50, 50);
    else if (dtype == TINY_DTYPE_I64)
      ((gint64 *) buffer)[i] = g_rand_int_range (rand, -50, 50);
    else
      ((guint8 *) buffer)[i] = g_rand_int_range (rand, 0, dtype == TINY_DTYPE_BOOL ? 2 : 200);
}

static void
expect_equal (TinyDType dtype, gpointer got, gpointer wanted, gint64 n, const char *opts)
{
  for (gint64 i = 0; i < n; i++) {
    double x, y, slack = 0;
    if (dtype == TINY_DTYPE_F32) {
      x = ((float *) got)[i];
      y = ((float *) wanted)[i];
      slack = 2e-5 * (1 + fabs (y));
    } else if (dtype == TINY_DTYPE_F64) {
      x = ((double *) got)[i];
      y = ((double *) wanted)[i];
      slack = 1e-12 * (1 + fabs (y));
    } else {
      gsize size = tiny_dtype_get_n_bytes (dtype);
      x = memcmp ((char *) got + i * size, (char *) wanted + i * size, size);
      y = 0;
    }
    if (!(fabs (x - y) <= slack) && !(isnan (x) && isnan (y)) && x != y) {
      CASE_FAILS ("element %d: got %.9g, wanted %.9g, with \"%s\"", (int) i, x, y, opts);
      return;
    }
  }
}

/* The type and size of parameter @slot as the kernel has it: a program forgets what it has no use for. */
static TinyParam
get_param (GPtrArray *order, const TinyLinear *linear, guint slot)
{
  TinyParam param = { 0 };
  if (slot < linear->n_params)
    param = linear->params[slot];
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM && node->arg == slot) {
      param.dtype = node->dtype;
      param.n_elements = MAX (param.n_elements, (guint64) node->ints->v[0]);
    }
  }
  return param;
}

void
check_program (Build *b,
               TinyNode *sink,
               const TinyTarget *target,
               const TinyLinearProgram *program)
{
  GRand *rand = g_rand_new_with_seed (7);
  const TinyLinear *linear = &program->linear;
  gpointer got[MAX_PARAMS], wanted[MAX_PARAMS];
  g_autoptr (GPtrArray) order = tiny_graph_toposort (b->graph, &sink, 1);
  const guint n_params = MAX (linear->n_params, b->n_params);
  for (guint i = 0; i < n_params; i++) {
    const TinyParam p = get_param (order, linear, i);
    gsize n_bytes = p.n_elements * tiny_dtype_get_n_bytes (p.dtype);
    got[i] = g_malloc0 (n_bytes + 1);
    fill (rand, p.dtype, got[i], (gint64) p.n_elements);
    wanted[i] = g_memdup2 (got[i], n_bytes + 1);
  }
  gint64 variables[] = { 3, 5 };
  if (linear->group[0] * linear->group[1] * linear->group[2] > 1)
    run_on_ref (linear, got, variables, program->opts);
  else {
    guint64 rounds = interpret_linear (linear, got, variables);
    if (target->max_rounds != 0)
      g_assert_cmpuint (rounds, <=, target->max_rounds);
  }
  interpret_kernel (b->graph, sink, wanted, variables);
  for (guint i = 0; i < n_params; i++) {
    const TinyParam p = get_param (order, linear, i);
    expect_equal (p.dtype, got[i], wanted[i], (gint64) p.n_elements, program->opts);
    g_free (got[i]);
    g_free (wanted[i]);
  }
  g_rand_free (rand);
}

char *
check_kernel (Build *b, TinyNode *sink, const TinyTarget *target, const char *opts_text)
{
  g_autoptr (GError) error = NULL;
  g_autofree TinyOpt *opts = NULL;
  guint n_opts = 0;
  if (opts_text != NULL) {
    opts = tiny_opts_from_string (opts_text, &n_opts, &error);
    g_assert_no_error (error);
  }
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (b->graph, sink, target, opts, n_opts, &error);
  g_assert_no_error (error);
  check_program (b, sink, target, program);
  return g_strdup (program->opts);
}

TinyTarget
with_room (const TinyTarget *target, TinyNode *sink)
{
  TinyTarget roomy = *target;
  for (guint i = 0; i < sink->n_sources; i++) {
    TinyNode *memory = sink->sources[i]->sources[0];
    if (memory->op == TINY_OP_LOCAL)
      roomy.local_bytes += (guint) memory->ints->v[0] * 8 + 64;
  }
  return roomy;
}

void
check_everywhere (Build *b, TinyNode *sink)
{
  TinyTarget targets[] = { scalar_target (), vector_target (), narrow_target (),
                           group_target (), tiny_group_target () };
  for (guint i = 0; i < G_N_ELEMENTS (targets); i++) {
    TinyTarget target = with_room (&targets[i], sink);
    g_free (check_kernel (b, sink, &target, ""));
    g_free (check_kernel (b, sink, &target, NULL));
  }
}
