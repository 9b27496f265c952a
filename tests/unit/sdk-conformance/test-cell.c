/* SPDX-License-Identifier: MIT
 *
 * test-cell.c: the model of the bits of a number that it knows within bounds. */
#include "cell.h"

#include <math.h>

#include "ir/tiny-eval.h"

typedef struct {
  TinyGraph *graph;
  TinyNode *number, *code, *masked, *back; /* f32, its bits, some of them, those as f32 */
} Fixture;

static void
setup (Fixture *self, gconstpointer data)
{
  self->graph = tiny_graph_new ();
  self->number = tiny_node_const_float (self->graph, TINY_DTYPE_F32, 1);
  self->code = tiny_node_new (self->graph, TINY_OP_BITCAST, TINY_DTYPE_U32, 1, 1, &self->number,
                              0, NULL, NULL);
  TinyNode *mask = tiny_node_const_int (self->graph, TINY_DTYPE_U32, 0xfffff000);
  self->masked = tiny_node_binary (self->graph, TINY_OP_AND, self->code, mask);
  self->back = tiny_node_new (self->graph, TINY_OP_BITCAST, TINY_DTYPE_F32, 1, 1, &self->masked,
                              0, NULL, NULL);
}

static void
teardown (Fixture *self, gconstpointer data)
{
  tiny_graph_free (self->graph);
}

static Cell
near (double value, double bound)
{
  return (Cell){ tiny_eval_from_double (TINY_DTYPE_F32, value), bound, 0 };
}

/* @in without the last 12 bits of its mantissa. */
static Cell
cut (const Fixture *self, Cell in, gint64 mask)
{
  Cell code = cell_of (self->code, &in, 1), pair[] = { code, cell_exact (mask) };
  Cell masked = cell_of (self->masked, pair, 2);
  return cell_of (self->back, &masked, 1);
}

/* The bits of a number are as far off as it is, in units of its last place, whatever its sign. */
static void
test_bits (Fixture *self, gconstpointer data)
{
  for (gint sign = -1; sign <= 1; sign += 2) {
    Cell in = near (sign * 1.5, 0x1p-20), code = cell_of (self->code, &in, 1);
    g_assert_cmpint (code.bits, ==, sign > 0 ? 0x3fc00000 : 0xbfc00000);
    g_assert_cmpfloat (code.bound, ==, 8);
    g_assert_true (model_admits (TINY_DTYPE_U32, &code, code.bits + 8));
    g_assert_true (model_admits (TINY_DTYPE_U32, &code, code.bits - 8));
    g_assert_false (model_admits (TINY_DTYPE_U32, &code, code.bits + 9));
  }
}

/* Where no number within the bounds loses other bits than the rest the cut one is exact, else off by its last place. */
static void
test_cut (Fixture *self, gconstpointer data)
{
  Cell inside = cut (self, near (-1.5 - 0x1p-12, 0x1p-20), 0xfffff000);
  g_assert_cmpfloat (tiny_eval_to_double (inside.bits), ==, -1.5);
  g_assert_cmpfloat (inside.bound, ==, 0);
  Cell across = cut (self, near (1.5, 0x1p-20), 0xfffff000);
  g_assert_cmpfloat (tiny_eval_to_double (across.bits), ==, 1.5);
  g_assert_cmpfloat (across.bound, ==, 0x1p-11);
}

/* Nothing is known about zero, where numbers are huge, or where a mask has holes. */
static void
test_unknown (Fixture *self, gconstpointer data)
{
  const Cell cells[] = { near (0x1p-21, 0x1p-20), near (0, 0x1p-20), near (0x1.8p127, 0x1p127),
                         cell_unknown () };
  for (guint i = 0; i < G_N_ELEMENTS (cells); i++)
    g_assert_true (isinf (cell_of (self->code, &cells[i], 1).bound));
  g_assert_true (isinf (cut (self, near (1.5, 0x1p-20), 0xffffef00).bound));
  g_assert_true (isinf (cut (self, near (1.5, 0x1p-20), 0x00000fff).bound));
}

/* Sums that round in no order may round where their addends are added to others: all in one loop. */
static void
test_sums (Fixture *self, gconstpointer data)
{
  enum { ROWS = 3, N = 8 };
  static const double addends[] = { 1517731 * 0x1p-20, 1517731 * 0x1p-24, 1.5 };
  for (guint i = 0; i < G_N_ELEMENTS (addends); i++) {
    Cell rows[ROWS], cells[N];
    float flat = 0;
    for (guint k = 0; k < N; k++)
      cells[k] = cell_exact (tiny_eval_from_double (TINY_DTYPE_F32, addends[i]));
    for (guint k = 0; k < ROWS; k++)
      rows[k] = cell_reduce (TINY_OP_ADD, TINY_DTYPE_F32, cells, N);
    for (guint k = 0; k < ROWS * N; k++)
      flat += (float) addends[i];
    const double exact = ROWS * N * addends[i];
    Cell all = cell_reduce (TINY_OP_ADD, TINY_DTYPE_F32, rows, ROWS);
    g_assert_cmpfloat (rows[0].bound, ==, 0);
    g_assert_cmpfloat (tiny_eval_to_double (all.bits), ==, exact);
    g_assert_cmpint (all.bound == 0, ==, i == 2);
    g_assert_cmpint (flat == exact, ==, i == 2);
    g_assert_true (
        model_admits (TINY_DTYPE_F32, &all, tiny_eval_from_double (TINY_DTYPE_F32, flat)));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name)                                                                              \
  g_test_add ("/sdk-conformance/cell/" #name, Fixture, NULL, setup, test_##name, teardown)
  ADD (bits);
  ADD (cut);
  ADD (unknown);
  ADD (sums);
  return g_test_run ();
}
