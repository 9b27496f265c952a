/* SPDX-License-Identifier: MIT
 *
 * Sums, quotients and rests of random affine indices have the values that they should for every
 * value of their loops, within the bounds they claim; a reshape undone leaves nothing behind. */
#include "schedule/affine.h"

enum { N_RANGES = 3, N_TRIES = 4000 };

static gint64 counters[N_RANGES];

static gint64
floor_div (gint64 x, gint64 y)
{
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static gint64
evaluate (TinyNode *node)
{
  gint64 x = 0, y = 0;
  if (node->op == TINY_OP_CONST)
    return node->arg;
  if (node->op == TINY_OP_RANGE)
    return counters[tiny_range_get_number (node)];
  x = evaluate (node->sources[0]);
  y = evaluate (node->sources[1]);
  switch (node->op) {
  case TINY_OP_ADD:
    return x + y;
  case TINY_OP_MUL:
    return x * y;
  case TINY_OP_FLOORDIV:
    return floor_div (x, y);
  case TINY_OP_FLOORMOD:
    return x - y * floor_div (x, y);
  default:
    g_assert_not_reached ();
  }
}

typedef struct {
  const Affine *affine;
  enum { SUM, DIV, MOD } op;
  guint x, y;
  gint64 a, b, c;
} Step;

static gint64
step_value (const Step *step, const gint64 *values)
{
  gint64 x = values[step->x];
  if (step->op == SUM)
    return x * step->a + values[step->y] * step->b + step->c;
  gint64 quotient = floor_div (x, step->c);
  return step->op == DIV ? quotient : x - step->c * quotient;
}

static void
check (const Affine *affine, AffinePool *pool, gint64 expected)
{
  g_assert_cmpint (evaluate (affine_to_node (pool, affine)), ==, expected);
  g_assert_cmpint (affine->lo, <=, expected);
  g_assert_cmpint (affine->hi, >=, expected);
}

static void
test_random (void)
{
  enum { N_STEPS = 7 };
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  for (guint t = 0; t < N_TRIES; t++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    AffinePool pool;
    gint64 extents[N_RANGES], values[N_RANGES + N_STEPS];
    const Affine *known[N_RANGES + N_STEPS];
    Step steps[N_STEPS];
    affine_pool_init (&pool, graph);
    for (guint i = 0; i < N_RANGES; i++) {
      extents[i] = g_rand_int_range (random, 1, 7);
      known[i]
          = affine_range (&pool, tiny_node_range_const (graph, i, TINY_RANGE_LOOP, extents[i]));
    }
    for (guint s = 0; s < N_STEPS; s++) {
      static const gint64 multiples[] = { 1, 1, 2, 3, 4, 6, -1, -2, 12 };
      static const gint64 divisors[] = { 1, 2, 3, 4, 6, 8, 12, 5 };
      Step *step = &steps[s];
      *step = (Step){ NULL,
                      g_rand_int_range (random, 0, 3),
                      g_rand_int_range (random, 0, N_RANGES + s),
                      g_rand_int_range (random, 0, N_RANGES + s),
                      multiples[g_rand_int_range (random, 0, 9)],
                      multiples[g_rand_int_range (random, 0, 9)],
                      0 };
      step->c = step->op == SUM ? g_rand_int_range (random, -3, 4)
                                : divisors[g_rand_int_range (random, 0, 8)];
      known[N_RANGES + s] = step->op == SUM   ? affine_sum (&pool, known[step->x], step->a,
                                                            known[step->y], step->b, step->c)
                            : step->op == DIV ? affine_div (&pool, known[step->x], step->c)
                                              : affine_mod (&pool, known[step->x], step->c);
    }
    gint64 n = extents[0] * extents[1] * extents[2];
    for (gint64 k = 0; k < n; k++) {
      values[0] = counters[0] = k % extents[0];
      values[1] = counters[1] = k / extents[0] % extents[1];
      values[2] = counters[2] = k / extents[0] / extents[1];
      for (guint s = 0; s < N_STEPS; s++) {
        values[N_RANGES + s] = step_value (&steps[s], values);
        check (known[N_RANGES + s], &pool, values[N_RANGES + s]);
      }
    }
    affine_pool_clear (&pool);
  }
}

/* Splitting an index into digits and joining them again gives the index, for any digits. */
static void
test_digits (void)
{
  static const gint64 digits[][4]
      = { { 2, 3, 4, 5 }, { 20, 6, 1, 1 }, { 5, 4, 3, 2 }, { 2, 2, 15, 2 } };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  AffinePool pool;
  affine_pool_init (&pool, graph);
  const Affine *x
      = affine_range (&pool, tiny_node_range_const (graph, 0, TINY_RANGE_LOOP, 120));
  for (guint a = 0; a < G_N_ELEMENTS (digits); a++)
    for (guint b = 0; b < G_N_ELEMENTS (digits); b++) {
      const Affine *joined = x;
      for (guint round = 0; round < 2; round++) {
        const gint64 *d = digits[round == 0 ? a : b];
        const Affine *sum = affine_const (&pool, 0), *rest = joined;
        gint64 stride = 1;
        for (guint i = 4; i-- > 0;) {
          sum = affine_sum (&pool, sum, 1, affine_mod (&pool, rest, d[i]), stride, 0);
          rest = affine_div (&pool, rest, d[i]);
          stride *= d[i];
        }
        joined = sum;
      }
      g_assert_true (joined == x);
    }
  affine_pool_clear (&pool);
}

/* What may have any value has bounds that are those of INDEX, also times 8. */
static void
test_unbounded (void)
{
  AffinePool pool;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  const gint64 least = tiny_dtype_get_min (TINY_DTYPE_INDEX);
  const gint64 most = tiny_dtype_get_max (TINY_DTYPE_INDEX);
  affine_pool_init (&pool, graph);
  TinyNode *node = tiny_node_range_const (graph, 0, TINY_RANGE_LOOP, 120);
  const Affine *x = affine_opaque (&pool, node, least, most);
  for (gint64 mul = -8; mul <= 8; mul += 16) {
    const Affine *sum = affine_sum (&pool, x, mul, affine_const (&pool, 0), 1, 3);
    g_assert_cmpint (sum->lo, ==, least);
    g_assert_cmpint (sum->hi, ==, most);
    g_assert_true (affine_mod (&pool, sum, 8)->n == 0); /* 3, which needs no bounds */
    g_assert_true (affine_div (&pool, sum, 16)->n > 0);
  }
  affine_pool_clear (&pool);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/affine/random", test_random);
  g_test_add_func ("/schedule/affine/digits", test_digits);
  g_test_add_func ("/schedule/affine/unbounded", test_unbounded);
  return g_test_run ();
}
