/* SPDX-License-Identifier: MIT
 *
 * test-symbolic.c: axes whose size is a variable: random expressions over them give for each value what the same
 * give with that number as the size, and programs are made for none but the first; what cannot be computed is
 * refused. */
#include <math.h>
#include <string.h>
#include <tiny.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "engine/tiny-runtime.h"

enum { ROWS = 48, WIDTH = 6, MAX_STEPS = 5 };

static TinyTensor *base[3]; /* (ROWS, WIDTH), then (WIDTH, WIDTH) */
static TinyVariable *rows;

static TinyTensor *
make (gint64 n, guint seed)
{
  g_autofree float *data = g_new (float, n *WIDTH);
  for (gint64 i = 0; i < n * WIDTH; i++)
    data[i] = (float) ((i + seed) * 7919 % 211) / 100 - 1;
  return g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32,
                                                       (gint64[]){ n, WIDTH }, 2, data,
                                                       sizeof *data * (gsize) (n * WIDTH)));
}

/* The first @n rows: of a size that is a number, or a variable of that value. */
static TinyTensor *
cut (guint which, gint64 n, gboolean symbolic)
{
  return symbolic ? tiny_tensor_shorten (base[which], 0, tiny_variable_bind (rows, n))
                  : tiny_tensor_slice (base[which], 0, 0, n, 1);
}

/* ---- steps: (n, WIDTH) to the same ---- */
static TinyTensor *
centre (TinyTensor *x)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  return tiny_tensor_sub (kept, tiny_tensor_mean (kept, (gint[]){ 0 }, 1, TRUE));
}

static TinyTensor *
scale (TinyTensor *x)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  TinyTensor *var = tiny_tensor_var (kept, (gint[]){ 0 }, 1, 0, TRUE);
  return tiny_tensor_mul (kept,
                          tiny_tensor_rsqrt (tiny_tensor_add (var, tiny_tensor_scalar (0.1))));
}

static TinyTensor *
by_extremes (TinyTensor *x)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  TinyTensor *high = tiny_tensor_max (kept, (gint[]){ 0 }, 1, TRUE);
  TinyTensor *low = tiny_tensor_min (kept, (gint[]){ 0 }, 1, TRUE);
  return tiny_tensor_add (tiny_tensor_mul_number (kept, 0.5), tiny_tensor_sub (high, low));
}

static TinyTensor *
regroup (TinyTensor *x)
{
  x = tiny_tensor_reshape (x, (gint64[]){ -1, 2, WIDTH / 2 }, 3);
  x = tiny_tensor_permute (x, (gint[]){ 2, 0, 1 }, 3);
  x = tiny_tensor_relu (tiny_tensor_add_number (x, 0.5));
  x = tiny_tensor_permute (x, (gint[]){ 1, 2, 0 }, 3);
  return tiny_tensor_flatten (x, 1, 2);
}

static TinyTensor *
move (TinyTensor *x)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (tiny_tensor_flip (x, (gint[]){ 1 }, 1));
  TinyTensor *part = tiny_tensor_slice (kept, 1, 1, 4, 1);
  TinyTensor *padded = tiny_tensor_pad (part, (gint64[]){ 0, 0, 1, 2 }, 4, "constant", 0.25);
  TinyTensor *both[]
      = { tiny_tensor_slice (kept, 1, 0, 2, 1), tiny_tensor_slice (padded, 1, 2, 6, 1) };
  return tiny_tensor_cat (both, 2, 1);
}

/* softmax (x yᵀ) y: both of the axes of the scores are as long as the variable says. */
static TinyTensor *
attend (TinyTensor *x, gint64 n, gboolean symbolic)
{
  TinyTensor *scores
      = tiny_tensor_matmul (x, tiny_tensor_transpose (cut (1, n, symbolic), 0, 1));
  return tiny_tensor_matmul (tiny_tensor_softmax (scores, -1), cut (1, n, symbolic));
}

/* x (xᵀ y) */
static TinyTensor *
correlate (TinyTensor *x, gint64 n, gboolean symbolic)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  TinyTensor *square
      = tiny_tensor_matmul (tiny_tensor_transpose (kept, 0, 1), cut (1, n, symbolic));
  return tiny_tensor_mul_number (tiny_tensor_matmul (kept, square), 0.1);
}

static TinyTensor *
choose (TinyTensor *x, gint64 n, gboolean symbolic)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  TinyTensor *gate = tiny_tensor_lt (kept, cut (1, n, symbolic));
  return tiny_tensor_where (gate, tiny_tensor_sin (kept), tiny_tensor_scalar (0.5));
}

static TinyTensor *
step (TinyTensor *x, guint which, gint64 n, gboolean symbolic)
{
  switch (which) {
  case 0:
    return tiny_tensor_add (x, cut (1, n, symbolic));
  case 1:
    return tiny_tensor_softmax (x, 0);
  case 2:
    return tiny_tensor_log_softmax (x, 1);
  case 3:
    return centre (x);
  case 4:
    return scale (x);
  case 5:
    return by_extremes (x);
  case 6:
    return regroup (x);
  case 7:
    return move (x);
  case 8:
    return tiny_tensor_matmul (x, base[2]);
  case 9:
    return attend (x, n, symbolic);
  case 10:
    return correlate (x, n, symbolic);
  case 11:
    return choose (x, n, symbolic);
  default:
    return tiny_tensor_contiguous (x);
  }
}
enum { N_STEPS = 13 };
static const char *const step_names[N_STEPS]
    = { "add",  "softmax", "log-softmax", "centre",    "scale",  "by-extremes", "regroup",
        "move", "matmul",  "attend",      "correlate", "choose", "contiguous" };

static TinyTensor *
finish (TinyTensor *x, guint which)
{
  switch (which) {
  case 0:
    return tiny_tensor_sum (x, NULL, 0, FALSE);
  case 1:
    return tiny_tensor_mean (x, (gint[]){ 0 }, 1, FALSE);
  case 2:
    return tiny_tensor_prod (tiny_tensor_tanh (x), (gint[]){ 0 }, 1, TRUE);
  case 3:
    return tiny_tensor_any (tiny_tensor_gt (x, tiny_tensor_scalar (0.2)), (gint[]){ 1 }, 1,
                            FALSE);
  case 4:
    return tiny_tensor_reshape (x, (gint64[]){ -1 }, 1);
  default:
    return x;
  }
}

static TinyTensor *
expression (const guint8 *steps, guint n_steps, guint end, gint64 n, gboolean symbolic)
{
  TinyTensor *x = cut (0, n, symbolic);
  for (guint i = 0; i < n_steps; i++)
    x = step (x, steps[i], n, symbolic);
  return g_object_ref_sink (finish (x, end));
}

/* NULL where it fails, which is said. */
static GBytes *
read_all (TinyTensor *x)
{
  g_autoptr (GError) error = NULL;
  GBytes *bytes = tiny_tensor_get_data (x, &error);
  if (bytes == NULL)
    CASE_FAILS ("%s", error->message);
  return bytes;
}

static void
assert_same (TinyTensor *x, TinyTensor *y)
{
  guint n_dims, n_wanted;
  gsize size, wanted_size;
  const gint64 *shape = tiny_tensor_get_shape (x, &n_dims);
  const gint64 *wanted_shape = tiny_tensor_get_shape (y, &n_wanted);
  if (n_dims != n_wanted || memcmp (shape, wanted_shape, n_dims * sizeof *shape) != 0) {
    CASE_FAILS ("the shapes differ");
    return;
  }
  g_autoptr (GBytes) a = read_all (x), b = read_all (y);
  if (a == NULL || b == NULL)
    return;
  const float *got = g_bytes_get_data (a, &size), *wanted = g_bytes_get_data (b, &wanted_size);
  if (size != wanted_size
      || (tiny_tensor_get_dtype (x) != TINY_DTYPE_F32 && memcmp (got, wanted, size) != 0)) {
    CASE_FAILS ("the %" G_GSIZE_FORMAT " bytes differ", size);
    return;
  }
  if (tiny_tensor_get_dtype (x) != TINY_DTYPE_F32)
    return;
  for (gsize i = 0; i < size / sizeof *got; i++)
    if (!(fabsf (got[i] - wanted[i]) <= 1e-3F * MAX (1, fabsf (wanted[i])))) {
      CASE_FAILS ("element %" G_GSIZE_FORMAT ": %g, not %g", i, (double) got[i],
                  (double) wanted[i]);
      return;
    }
}

static guint64
count_made (void)
{
  TinyCounters counters;
  tiny_runtime_get_counters (&counters);
  return counters.n_compiles + counters.n_disk_hits + counters.n_schedules;
}

static void
check_expression (const guint8 *steps, guint n_steps, guint end, GRand *random)
{
  const gint64 values[] = { ROWS, 1, g_rand_int_range (random, 2, ROWS), 16 };
  guint64 made = 0;
  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    g_test_message ("steps %d %d %d %d %d of %u, end %u, %d rows", steps[0], steps[1], steps[2],
                    steps[3], steps[4], n_steps, end, (int) values[i]);
    g_autoptr (TinyTensor) x = expression (steps, n_steps, end, values[i], TRUE);
    g_autoptr (GError) error = NULL;
    if (!tiny_tensor_realize (x, &error)) {
      CASE_FAILS ("%s", error->message);
      continue;
    }
    if (i > 0 && count_made () != made)
      CASE_FAILS ("%" G_GUINT64_FORMAT " programs or schedules are made for another value",
                  count_made () - made);
    g_autoptr (TinyTensor) y = expression (steps, n_steps, end, values[i], FALSE);
    assert_same (x, y);
    made = count_made ();
  }
}

/* Steps by chance, others in each row. GLib's random numbers begin anew in each test. */
static GRand *
draw_steps (guint8 steps[MAX_STEPS], guint row)
{
  GRand *random = g_rand_new_with_seed ((guint32) g_test_rand_int () + row);
  for (guint k = 0; k < MAX_STEPS; k++)
    steps[k] = (guint8) g_rand_int_range (random, 0, N_STEPS);
  return random;
}

/* Each step alone. */
static void
test_step (gconstpointer data)
{
  if (skips_without_device ())
    return;
  guint8 steps[MAX_STEPS];
  g_autoptr (GRand) random = draw_steps (steps, GPOINTER_TO_UINT (data));
  steps[0] = (guint8) GPOINTER_TO_UINT (data);
  check_expression (steps, 1, (guint) g_rand_int_range (random, 0, 7), random);
}

/* Several together. */
static void
test_random (gconstpointer data)
{
  if (skips_without_device ())
    return;
  guint8 steps[MAX_STEPS];
  g_autoptr (GRand) random = draw_steps (steps, N_STEPS + GPOINTER_TO_UINT (data));
  check_expression (steps, (guint) g_rand_int_range (random, 2, MAX_STEPS + 1),
                    (guint) g_rand_int_range (random, 0, 7), random);
}

static void
assert_error (TinyTensor *x, const char *part)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  const GError *error = tiny_tensor_get_error (kept);
  if (error == NULL)
    CASE_FAILS ("nothing says “%s”", part);
  else if (strstr (error->message, part) == NULL)
    CASE_FAILS ("“%s” does not say “%s”", error->message, part);
}

static void
test_refused (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) any = tiny_variable_new ("any", 0, ROWS);
  g_autoptr (TinyVariable) much = tiny_variable_new ("much", 0, ROWS + 1);
  g_autoptr (TinyTensor) v = g_object_ref_sink (tiny_variable_bind (rows, 9));
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_shorten (base[0], 0, v));
  g_autoptr (TinyTensor) maybe_none
      = g_object_ref_sink (tiny_tensor_shorten (base[0], 0, tiny_variable_bind (any, 9)));
  assert_error (tiny_tensor_shorten (base[0], 0, tiny_variable_bind (much, 3)),
                "more than axis 0");
  assert_error (tiny_tensor_shorten (base[0], 0, base[1]), "no number and no variable");
  assert_error (tiny_tensor_shorten (x, 0, v), "a variable already");
  assert_error (tiny_tensor_add (x, base[0]), "differ");
  assert_error (tiny_tensor_add (x, maybe_none), "differ");
  assert_error (tiny_tensor_matmul (tiny_tensor_transpose (x, 0, 1), base[0]), "differ");
  /* Another value of the same variable is another size. */
  assert_error (tiny_tensor_add (x, cut (0, 8, TRUE)), "differ");
  assert_error (tiny_tensor_flip (x, (gint[]){ 0 }, 1), "reversed");
  assert_error (tiny_tensor_pad (x, (gint64[]){ 1, 0, 0, 0 }, 4, "constant", 0), "padded");
  assert_error (tiny_tensor_slice (x, 0, 3, TINY_SLICE_END, 1), "cut");
  assert_error (tiny_tensor_slice (x, 0, -3, -1, 1), "from its end");
  assert_error (tiny_tensor_reshape (x, (gint64[]){ ROWS, WIDTH }, 2), "give it as -1");
  assert_error (tiny_tensor_scaled_dot_product_attention (
                    tiny_tensor_transpose (x, 0, 1), tiny_tensor_transpose (x, 0, 1),
                    tiny_tensor_transpose (x, 0, 1), NULL, 0, FALSE, 0, FALSE),
                "do this with the whole");
  assert_error (tiny_tensor_index (base[0], "v", NULL, 0, (TinyTensor *[]){ v, base[1] }, 2),
                "neither");
  assert_error (tiny_tensor_index (base[0], "v", NULL, 0, (TinyTensor *[]){ v }, 1),
                "wants 0 numbers and 2 tensors");
  assert_error (tiny_tensor_index (base[0], "v", NULL, 0, (TinyTensor *[]){ v, NULL }, 2),
                "no tensor");
  assert_error (tiny_tensor_flatten (tiny_tensor_transpose (x, 0, 1), 0, 1), "joined");
  assert_error (tiny_tensor_max (maybe_none, NULL, 0, FALSE), "may be 0");
  assert_error (tiny_tensor_argsort (x, 0, FALSE, FALSE), "does not take");
  assert_error (tiny_tensor_argmax (x, 0, FALSE), "variable");
  assert_error (tiny_tensor_cat ((TinyTensor *[]){ x, x }, 2, 0), "padded");
  assert_error (tiny_tensor_dropout (x, 0.5), "does not take");
  assert_error (tiny_tensor_layer_norm (x, (gint64[]){ 4 }, 1, NULL, NULL, 1e-5),
                "counts as its largest");
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) target = make (ROWS, 3),
                         sum = g_object_ref_sink (tiny_tensor_sum (x, NULL, 0, FALSE));
  g_assert_false (tiny_tensor_assign (target, x, &error));
  g_clear_error (&error);
  TinyTensor *gradient = NULL;
  g_assert_false (tiny_gradient (sum, &base[0], 1, &gradient, &error));
  g_assert_nonnull (strstr (error->message, "size is a variable"));
  g_clear_error (&error);
  float zero[ROWS * WIDTH] = { 0 };
  g_assert_false (tiny_tensor_write_data (x, zero, 9 * WIDTH * sizeof *zero, &error));
}

/* x[v] and x[v:w] of Python. */
static void
test_places (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) place = tiny_variable_new ("place", 1, 40);
  for (gint64 i = 1; i <= 40; i += 13) {
    g_autoptr (TinyTensor) at = g_object_ref_sink (tiny_variable_bind (place, i));
    g_assert_true (tiny_tensor_is_symbolic (at));
    g_autoptr (TinyTensor) row = g_object_ref_sink (
        tiny_tensor_index (base[0], "t", NULL, 0, (TinyTensor *[]){ at }, 1));
    g_autoptr (TinyTensor) wanted = g_object_ref_sink (tiny_tensor_select (base[0], 0, i));
    assert_same (row, wanted);
    g_assert_false (tiny_tensor_is_symbolic (row));
    TinyTensor *ends[] = { at, tiny_tensor_add_number (at, 3) };
    g_autoptr (TinyTensor) three
        = g_object_ref_sink (tiny_tensor_index (base[0], "v", NULL, 0, ends, 2));
    g_autoptr (TinyTensor) same = g_object_ref_sink (tiny_tensor_narrow (base[0], 0, at, 3));
    assert_same (three, same);
    ends[1] = tiny_tensor_scalar (ROWS);
    g_autoptr (TinyTensor) rest
        = g_object_ref_sink (tiny_tensor_index (base[0], "v", NULL, 0, ends, 2));
    g_autoptr (TinyTensor) sliced
        = g_object_ref_sink (tiny_tensor_slice (base[0], 0, i, TINY_SLICE_END, 1));
    assert_same (rest, sliced);
  }
}

/* What is there for every value is a part of a size that is a number; no rows at all are none. */
static void
test_edges (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) any = tiny_variable_new ("any", 0, ROWS);
  g_autoptr (TinyTensor) first
      = g_object_ref_sink (tiny_tensor_slice (cut (0, 9, TRUE), 0, 0, 1, 1));
  g_autoptr (TinyTensor) wanted = g_object_ref_sink (tiny_tensor_slice (base[0], 0, 0, 1, 1));
  assert_same (first, wanted);
  g_autoptr (TinyTensor) all
      = g_object_ref_sink (tiny_tensor_shorten (base[0], 0, tiny_tensor_scalar (5)));
  g_autoptr (TinyTensor) five = g_object_ref_sink (tiny_tensor_slice (base[0], 0, 0, 5, 1));
  assert_same (all, five);
  g_autoptr (TinyTensor) none
      = g_object_ref_sink (tiny_tensor_shorten (base[0], 0, tiny_variable_bind (any, 0)));
  g_assert_cmpint (tiny_tensor_get_n_elements (none), ==, 0);
  g_autoptr (TinyTensor) sum
      = g_object_ref_sink (tiny_tensor_sum (none, (gint[]){ 0 }, 1, FALSE));
  g_autoptr (TinyTensor) zeros
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ WIDTH }, 1));
  assert_same (sum, zeros);
  double value;
  g_autoptr (TinyTensor) bound = g_object_ref_sink (tiny_variable_bind (any, 7));
  g_assert_true (tiny_tensor_item (bound, &value, NULL));
  g_assert_cmpfloat (value, ==, 7);
  g_autoptr (TinyTensor) vector
      = g_object_ref_sink (tiny_tensor_reshape (bound, (gint64[]){ 1 }, 1));
  g_assert_true (tiny_tensor_item (vector, &value, NULL));
  g_assert_cmpfloat (value, ==, 7);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rows = tiny_variable_new ("rows", 1, ROWS);
  base[0] = make (ROWS, 0);
  base[1] = make (ROWS, 1000);
  base[2] = make (WIDTH, 2000);
  add_row_tests ("/tensor/symbolic/step", step_names, N_STEPS, test_step);
  add_row_tests ("/tensor/symbolic/random", NULL, g_test_slow () ? 300 : 6, test_random);
  g_test_add_func ("/tensor/symbolic/places", test_places);
  g_test_add_func ("/tensor/symbolic/refused", test_refused);
  g_test_add_func ("/tensor/symbolic/edges", test_edges);
  int result = g_test_run ();
  for (guint i = 0; i < G_N_ELEMENTS (base); i++)
    g_object_unref (base[i]);
  g_object_unref (rows);
  return result;
}
