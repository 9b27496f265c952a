/* SPDX-License-Identifier: MIT
 *
 * test-jit.c: variables, and recordings that take them: each value gives what a program for that value gives, and
 * none is compiled for it; what a recording cannot take is refused with the reason, and leaves it as it was. */
#include <math.h>
#include <string.h>
#include <tiny.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "engine/tiny-runtime.h"

enum { ROWS = 24, WIDTH = 6, CALLS = 4 };

static TinyTensor *
ramp (gint64 rows, gint64 width)
{
  g_autofree float *data = g_new (float, rows *width);
  for (gint64 i = 0; i < rows * width; i++)
    data[i] = (float) (i * 37 % 101) / 8 - 5;
  return g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32,
                                                       (gint64[]){ rows, width }, 2, data,
                                                       sizeof *data * (gsize) (rows * width)));
}

static void
assert_same (TinyTensor *x, TinyTensor *y)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) first = g_object_ref_sink (x), second = g_object_ref_sink (y);
  g_autoptr (GBytes) a = tiny_tensor_get_data (first, &error);
  g_assert_no_error (error);
  g_autoptr (GBytes) b = tiny_tensor_get_data (second, &error);
  g_assert_no_error (error);
  gsize n, m;
  const float *got = g_bytes_get_data (a, &n), *wanted = g_bytes_get_data (b, &m);
  g_assert_cmpuint (n, ==, m);
  for (gsize i = 0; i < n / sizeof *got; i++)
    g_assert_cmpfloat_with_epsilon (got[i], wanted[i], 1e-5 * MAX (1, fabsf (wanted[i])));
}

static void
assert_error (TinyTensor *x, const char *part)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (x);
  g_assert_nonnull (tiny_tensor_get_error (kept));
  g_assert_nonnull (strstr (tiny_tensor_get_error (kept)->message, part));
}

static guint64
count_made (void)
{
  TinyCounters counters;
  tiny_runtime_get_counters (&counters);
  return counters.n_compiles + counters.n_disk_hits + counters.n_schedules;
}

/* ---- variables ---- */
static void
test_narrow (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) start = tiny_variable_new ("start", 0, ROWS - 5);
  g_autoptr (TinyTensor) x = ramp (ROWS, WIDTH);
  guint64 made = 0;
  for (gint64 at = 0; at <= ROWS - 5; at++) {
    g_autoptr (TinyTensor) v = g_object_ref_sink (tiny_variable_bind (start, at));
    g_autoptr (TinyTensor) part = g_object_ref_sink (tiny_tensor_narrow (x, 0, v, 5));
    /* What is computed with a value keeps it, whatever other values there are later. */
    g_autoptr (TinyTensor) later = g_object_ref_sink (
        tiny_tensor_mul (tiny_tensor_sum (part, (gint[]){ 0 }, 1, FALSE), v));
    g_autoptr (TinyTensor) other
        = g_object_ref_sink (tiny_variable_bind (start, ROWS - 5 - at));
    g_autoptr (TinyTensor) shifted = g_object_ref_sink (tiny_tensor_narrow (x, 0, other, 5));
    g_assert_true (
        tiny_tensor_realize_many ((TinyTensor *[]){ part, shifted, later }, 3, NULL));
    if (at == 1)
      made = count_made ();
    else if (at > 1 && at != ROWS - 5 - at)
      g_assert_cmpuint (count_made (), ==, made);
    float sums[WIDTH], values[5 * WIDTH];
    g_assert_true (tiny_tensor_copy_data (part, values, sizeof values, NULL));
    g_assert_true (tiny_tensor_copy_data (later, sums, sizeof sums, NULL));
    for (gint64 i = 0; i < 5 * WIDTH; i++)
      g_assert_cmpfloat (values[i], ==, (float) ((at * WIDTH + i) * 37 % 101) / 8 - 5);
    for (gint64 i = 0; i < WIDTH; i++) {
      float sum = 0;
      for (gint64 row = 0; row < 5; row++)
        sum += values[row * WIDTH + i];
      g_assert_cmpfloat_with_epsilon (sums[i], sum * (float) at, 1e-3);
    }
    g_assert_true (tiny_tensor_copy_data (shifted, values, sizeof values, NULL));
    g_assert_cmpfloat (values[0], ==, (float) ((ROWS - 5 - at) * WIDTH * 37 % 101) / 8 - 5);
  }
}

static void
test_wrong_variables (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) v = tiny_variable_new ("row", 2, 9);
  g_autoptr (TinyVariable) bad = tiny_variable_new ("bad", 5, 4);
  g_autoptr (TinyTensor) x = ramp (10, 3);
  g_assert_cmpstr (tiny_variable_get_name (v), ==, "row");
  g_assert_cmpint (tiny_variable_get_min (v), ==, 2);
  g_assert_cmpint (tiny_variable_get_max (v), ==, 9);
  assert_error (tiny_variable_bind (v, 10), "10 is outside of variable row");
  assert_error (tiny_variable_bind (v, 1), "1 is outside of variable row");
  assert_error (tiny_variable_bind (bad, 5), "not in order");
  assert_error (tiny_tensor_add (x, tiny_variable_bind (v, 11)), "11 is outside");
  /* Whatever the value is, the largest has to fit. */
  assert_error (tiny_tensor_narrow (x, 0, tiny_variable_bind (v, 2), 2), "leave axis 0 of 10");
  assert_error (tiny_tensor_narrow (x, 0, x, 2), "no single integer");
  assert_error (tiny_tensor_narrow (x, 0, tiny_tensor_scalar_float (0.5), 2),
                "no single integer");
  assert_error (tiny_tensor_narrow (x, 0, tiny_tensor_scalar (9), 2), "leave axis 0");
  assert_same (tiny_tensor_narrow (x, 0, tiny_tensor_scalar (3), 2),
               tiny_tensor_slice (x, 0, 3, 5, 1));
  assert_same (tiny_tensor_narrow (x, 0, tiny_variable_bind (v, 9), 1),
               tiny_tensor_slice (x, 0, 9, 10, 1));
}

/* ---- recordings ---- */

/* inputs: a row, its position; writes the row there and gives the sum of the rows up to it. */
static gboolean
remember (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer cache,
          GError **error)
{
  TinyTensor *places
      = tiny_tensor_unsqueeze (tiny_tensor_arange (TINY_DTYPE_I32, 0, ROWS, 1), 1);
  g_autoptr (TinyTensor) counter = g_object_ref_sink (places);
  if (!tiny_tensor_assign (
          cache, tiny_tensor_where (tiny_tensor_eq (counter, inputs[1]), inputs[0], cache),
          error))
    return FALSE;
  TinyTensor *seen = tiny_tensor_where (tiny_tensor_le (counter, inputs[1]), cache,
                                        tiny_tensor_scalar_float (0));
  outputs[0] = g_object_ref_sink (tiny_tensor_sum (seen, (gint[]){ 0 }, 1, FALSE));
  return tiny_tensor_realize_many ((TinyTensor *[]){ cache, outputs[0] }, 2, error);
}

static TinyTensor *
row_of (float value)
{
  float data[WIDTH];
  for (int i = 0; i < WIDTH; i++)
    data[i] = value + (float) i;
  return g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ 1, WIDTH }, 2, data, sizeof data));
}

static TinyTensor *
new_cache (void)
{
  TinyTensor *cache = g_object_ref_sink (tiny_tensor_contiguous (
      tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ ROWS, WIDTH }, 2)));
  g_assert_true (tiny_tensor_realize (cache, NULL));
  return cache;
}

static void
test_positions (void)
{
  g_autoptr (GError) error = NULL;
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) position = tiny_variable_new ("position", 0, ROWS - 1);
  g_autoptr (TinyTensor) cache = new_cache ();
  g_autoptr (TinyJit) jit = tiny_jit_new (remember, cache, NULL, 1);
  guint64 made = 0;
  float sum = 0;
  for (gint64 at = 0; at < ROWS; at++) {
    g_autoptr (TinyTensor) row = row_of ((float) at * 10);
    g_autoptr (TinyTensor) v = g_object_ref_sink (tiny_variable_bind (position, at));
    TinyTensor *output = NULL;
    float values[WIDTH];
    tiny_jit_call (jit, (TinyTensor *[]){ row, v }, 2, &output, &error);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_copy_data (output, values, sizeof values, &error));
    sum += (float) at * 10;
    for (int i = 0; i < WIDTH; i++)
      g_assert_cmpfloat (values[i], ==, sum + (float) i * (float) (at + 1));
    if (at == 1)
      made = count_made ();
    if (at > 1)
      g_assert_cmpuint (count_made (), ==, made);
  }
  float all[ROWS * WIDTH];
  g_assert_true (tiny_tensor_copy_data (cache, all, sizeof all, &error));
  for (int i = 0; i < ROWS * WIDTH; i++)
    g_assert_cmpfloat (all[i], ==, (float) (i / WIDTH * 10 + i % WIDTH));
}

/* softmax (q kᵀ) k over the first @size rows: @size a tensor or, where that is NULL, @n. */
static void
attend (TinyTensor *q, TinyTensor *cache, TinyTensor *size, gint64 n, TinyTensor **out)
{
  g_autoptr (TinyTensor) k
      = g_object_ref_sink (size != NULL ? tiny_tensor_shorten (cache, 0, size)
                                        : tiny_tensor_slice (cache, 0, 0, n, 1));
  TinyTensor *scores
      = tiny_tensor_matmul (tiny_tensor_mul_number (q, 0.1), tiny_tensor_transpose (k, 0, 1));
  out[1] = g_object_ref_sink (tiny_tensor_softmax (scores, -1));
  out[0] = g_object_ref_sink (tiny_tensor_matmul (out[1], k));
}

/* inputs: a row and its position. Puts the row into the cache, then looks at all rows that are there. */
static gboolean
decode (TinyTensor *const *inputs,
        guint n_inputs,
        TinyTensor **outputs,
        guint n_outputs,
        gpointer cache,
        GError **error)
{
  g_autoptr (TinyTensor) counter = g_object_ref_sink (
      tiny_tensor_unsqueeze (tiny_tensor_arange (TINY_DTYPE_I32, 0, ROWS, 1), 1));
  if (!tiny_tensor_assign (
          cache, tiny_tensor_where (tiny_tensor_eq (counter, inputs[1]), inputs[0], cache),
          error))
    return FALSE;
  g_autoptr (TinyTensor) size
      = g_object_ref_sink (tiny_tensor_add (inputs[1], tiny_tensor_scalar (1)));
  attend (inputs[0], cache, size, 0, outputs);
  return tiny_tensor_realize_many ((TinyTensor *[]){ cache, outputs[0], outputs[1] }, 3, error);
}

static void
test_decode (void)
{
  g_autoptr (GError) error = NULL;
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) position = tiny_variable_new ("position", 0, ROWS - 1);
  g_autoptr (TinyTensor) cache = new_cache ();
  g_autoptr (TinyJit) jit = tiny_jit_new (decode, cache, NULL, 2);
  guint64 made = 0;
  for (gint64 i = 0; i < ROWS + 3; i++) {
    gint64 at = i < ROWS ? i : 2 * (i - ROWS);
    g_autoptr (TinyTensor) row = row_of ((float) (i % 5));
    g_autoptr (TinyTensor) v = g_object_ref_sink (tiny_variable_bind (position, at));
    TinyTensor *outputs[2], *wanted[2];
    tiny_jit_call (jit, (TinyTensor *[]){ row, v }, 2, outputs, &error);
    g_assert_no_error (error);
    if (i > 1)
      g_assert_cmpuint (count_made (), ==, made);
    made = count_made ();
    guint n_dims;
    g_assert_cmpint (tiny_tensor_get_shape (outputs[1], &n_dims)[1], ==, at + 1);
    g_assert_cmpuint (n_dims, ==, 2);
    /* Each value's own programs have to be made: a few values are enough. */
    if (at != 0 && at != 6 && at != ROWS - 1)
      continue;
    attend (row, cache, NULL, at + 1, wanted);
    for (guint k = 0; k < 2; k++) {
      assert_same (outputs[k], wanted[k]);
      g_object_unref (wanted[k]);
    }
    made = count_made ();
  }
}

static void
assert_refused (TinyJit *jit, guint n, TinyTensor *const *inputs, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_jit_call (jit, inputs, n, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  if (strstr (error->message, part) == NULL)
    CASE_FAILS ("“%s” does not say “%s”", error->message, part);
}

static void
test_refusals (void)
{
  g_autoptr (GError) error = NULL;
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) position = tiny_variable_new ("position", 0, ROWS - 1);
  g_autoptr (TinyTensor) cache = new_cache (), row = row_of (1);
  g_autoptr (TinyTensor) v = g_object_ref_sink (tiny_variable_bind (position, 3));
  g_autoptr (TinyTensor) outside = g_object_ref_sink (tiny_variable_bind (position, ROWS));
  g_autoptr (TinyTensor) empty
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ 0, WIDTH }, 2));
  g_autoptr (TinyJit) jit = tiny_jit_new (remember, cache, NULL, 1);
  for (int i = 0; i < 3; i++)
    tiny_jit_call (jit, (TinyTensor *[]){ row, v }, 2, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), >, 0);
  assert_refused (jit, 1, (TinyTensor *[]){ row }, "recorded with 2 inputs, called with 1");
  assert_refused (jit, 2, (TinyTensor *[]){ empty, v }, "input 0 has no elements");
  assert_refused (jit, 2, (TinyTensor *[]){ row, outside },
                  "24 is outside of variable position");
  assert_refused (jit, 2, (TinyTensor *[]){ NULL, v }, "input 0");
  g_autoptr (TinyTensor) whole_rows = ramp (ROWS, WIDTH);
  g_autoptr (TinyTensor) limited = g_object_ref_sink (tiny_tensor_shorten (whole_rows, 0, v));
  assert_refused (jit, 2, (TinyTensor *[]){ limited, v },
                  "input 0 has a size that is a variable");
  tiny_jit_call (jit, (TinyTensor *[]){ row, v }, 2, NULL, &error);
  g_assert_no_error (error);
  tiny_jit_reset (jit);
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), ==, 0);
}

typedef struct {
  TinyTensor *bound; /* used though it is no input */
  gboolean reads;
} Careless;

static gboolean
add_careless (TinyTensor *const *inputs,
              guint n_inputs,
              TinyTensor **outputs,
              guint n_outputs,
              gpointer user_data,
              GError **error)
{
  const Careless *self = user_data;
  double value = 1;
  g_autoptr (TinyTensor) sum = g_object_ref_sink (tiny_tensor_sum (inputs[0], NULL, 0, FALSE));
  if (self->reads && !tiny_tensor_item (sum, &value, error))
    return FALSE;
  TinyTensor *more = self->bound != NULL ? tiny_tensor_add (inputs[0], self->bound) : inputs[0];
  outputs[0] = g_object_ref_sink (tiny_tensor_mul_number (more, value));
  return TRUE;
}

static void
test_what_would_freeze (void)
{
  g_autoptr (GError) error = NULL;
  if (skips_without_device ())
    return;
  g_autoptr (TinyVariable) v = tiny_variable_new ("n", 0, 7);
  g_autoptr (TinyTensor) x = ramp (3, 3), bound = g_object_ref_sink (tiny_variable_bind (v, 2));
  Careless careless = { bound, FALSE };
  g_autoptr (TinyJit) jit = tiny_jit_new (add_careless, &careless, NULL, 1);
  g_assert_true (tiny_jit_call (jit, &x, 1, NULL, &error));
  assert_refused (jit, 1, &x, "variable n (2 here) is used but is no input");
  g_assert_true (tiny_jit_call (jit, (TinyTensor *[]){ x, bound }, 2, NULL, &error));
  careless = (Careless){ NULL, TRUE };
  tiny_jit_reset (jit);
  assert_refused (jit, 1, &x, "reads or writes a tensor on the host");
  careless.reads = FALSE;
  g_assert_true (tiny_jit_call (jit, &x, 1, NULL, &error));
  g_assert_no_error (error);
}

/* Draws of several kinds, some of them on the way to an input's gradient or in an assignment. */
static gboolean
draw (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer data,
      GError **error)
{
  const gint64 shape[] = { ROWS, WIDTH };
  (void) n_inputs;
  if (data != NULL)
    tiny_tensor_manual_seed (7);
  for (guint i = 0; i < n_outputs; i++) {
    TinyTensor *numbers
        = i == 0 ? tiny_tensor_randn (TINY_DTYPE_F32, shape, 2)
                 : tiny_tensor_mul (
                     tiny_tensor_dropout (inputs[0], 0.5),
                     tiny_tensor_cast (tiny_tensor_randint (TINY_DTYPE_I32, shape, 2, 0, 1000),
                                       TINY_DTYPE_F32));
    outputs[i] = g_object_ref_sink (tiny_tensor_add (inputs[0], numbers));
    if (i == 0 && !tiny_tensor_realize (outputs[i], error))
      return FALSE;
  }
  return TRUE;
}

/* Calls as one function or another makes them, with draws and a seed between. */
static void
draw_all (TinyJit *jit, TinyTensor *x, gpointer data, GBytes *found[CALLS][2])
{
  tiny_tensor_manual_seed (5);
  for (guint i = 0; i < CALLS; i++) {
    g_autoptr (GError) error = NULL;
    TinyTensor *outputs[2];
    g_assert_true (jit != NULL ? tiny_jit_call (jit, &x, 1, outputs, &error)
                               : draw (&x, 1, outputs, 2, data, &error));
    for (guint k = 0; k < 2; k++) {
      found[i][k] = tiny_tensor_get_data (outputs[k], &error);
      g_assert_no_error (error);
      if (jit == NULL)
        g_object_unref (outputs[k]);
    }
    if (i == 2)
      g_object_unref (g_object_ref_sink (tiny_tensor_rand (TINY_DTYPE_F32, NULL, 0)));
    if (i == 2)
      tiny_tensor_manual_seed (G_GUINT64_CONSTANT (0x123456789abcdef0));
  }
}

/* A replay draws what a plain call in its place would. */
static void
test_random (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) x = ramp (ROWS, WIDTH);
  for (guint seeds = 0; seeds < 2; seeds++) {
    gpointer data = GUINT_TO_POINTER (seeds);
    GBytes *plain[CALLS][2], *replayed[CALLS][2];
    g_autoptr (TinyJit) jit = tiny_jit_new (draw, data, NULL, 2);
    draw_all (NULL, x, data, plain);
    draw_all (jit, x, data, replayed);
    for (guint i = 0; i < CALLS; i++)
      for (guint k = 0; k < 2; k++) {
        g_assert_true (g_bytes_equal (plain[i][k], replayed[i][k]));
        g_assert_true (i == 0
                       || g_bytes_equal (replayed[i][k], replayed[i - 1][k]) == (seeds == 1));
      }
    for (guint i = 0; i < 2 * CALLS; i++) {
      g_bytes_unref (plain[i / 2][i % 2]);
      g_bytes_unref (replayed[i / 2][i % 2]);
    }
  }
}

/* One program serves every draw, also those of what a captured function finds drawn and not computed. */
static gboolean
add_given (TinyTensor *const *inputs,
           guint n_inputs,
           TinyTensor **outputs,
           guint n_outputs,
           gpointer data,
           GError **error)
{
  (void) n_inputs, (void) n_outputs, (void) error;
  outputs[0] = g_object_ref_sink (tiny_tensor_add (inputs[0], TINY_TENSOR (data)));
  return TRUE;
}

static void
test_draws (void)
{
  if (skips_without_device ())
    return;
  const gint64 shape[] = { ROWS, WIDTH };
  GBytes *found[CALLS] = { NULL };
  guint64 n_made = 0;
  for (guint i = 0; i < CALLS; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_randn (TINY_DTYPE_F32, shape, 2));
    found[i] = tiny_tensor_get_data (x, &error);
    g_assert_no_error (error);
    g_assert_true (i == 0 || !g_bytes_equal (found[i], found[i - 1]));
    g_assert_true (i < 2 || count_made () == n_made);
    n_made = count_made ();
  }
  g_autoptr (TinyTensor) x = ramp (ROWS, WIDTH);
  g_autoptr (TinyTensor) noise
      = g_object_ref_sink (tiny_tensor_rand (TINY_DTYPE_F32, shape, 2));
  g_autoptr (TinyJit) jit = tiny_jit_new (add_given, noise, NULL, 1);
  for (guint i = 0; i < CALLS; i++) {
    g_autoptr (GError) error = NULL;
    TinyTensor *output;
    g_assert_true (tiny_jit_call (jit, &x, 1, &output, &error));
    g_bytes_unref (found[i]);
    found[i] = tiny_tensor_get_data (output, &error);
    g_assert_no_error (error);
    g_assert_true (i == 0 || g_bytes_equal (found[i], found[i - 1]));
  }
  for (guint i = 0; i < CALLS; i++)
    g_bytes_unref (found[i]);
}

static gboolean
shuffle (TinyTensor *const *inputs,
         guint n_inputs,
         TinyTensor **outputs,
         guint n_outputs,
         gpointer data,
         GError **error)
{
  (void) n_inputs, (void) n_outputs, (void) data, (void) error;
  outputs[0] = g_object_ref_sink (
      tiny_tensor_add (inputs[0], tiny_tensor_randperm (TINY_DTYPE_I32, 6)));
  return TRUE;
}

static void
test_permutation (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = ramp (ROWS, WIDTH);
  g_autoptr (TinyJit) jit = tiny_jit_new (shuffle, NULL, NULL, 1);
  g_assert_true (tiny_jit_call (jit, &x, 1, NULL, &error));
  g_assert_false (tiny_jit_call (jit, &x, 1, NULL, &error));
  g_assert_nonnull (strstr (error->message, "each replay of a captured function"));
}

#define REFUSED(call, text)                                                                    \
  do {                                                                                         \
    g_autoptr (GError) error = NULL;                                                           \
    g_assert_false (call);                                                                     \
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);                                    \
    g_assert_cmpstr (error->message, ==, text);                                                \
  } while (0)

/* What a caller gets wrong about counts is said, and nothing is read. */
static void
test_counts (void)
{
  static const char none[]
      = "jit_call: it was made without a function, or for too many outputs";
  g_autoptr (TinyJit) jit = tiny_jit_new (shuffle, NULL, NULL, 1);
  g_autoptr (TinyJit) endless = tiny_jit_new (shuffle, NULL, NULL, G_MAXUINT);
  g_autoptr (TinyJit) empty = tiny_jit_new (NULL, NULL, NULL, 1);
  g_autoptr (TinyRecorder) recorder = tiny_recorder_new ();
  REFUSED (tiny_jit_call (NULL, NULL, 0, NULL, &error), "jit_call: no jit given");
  REFUSED (tiny_jit_call (endless, NULL, 0, NULL, &error), none);
  REFUSED (tiny_jit_call (empty, NULL, 0, NULL, &error), none);
  REFUSED (tiny_jit_call (jit, NULL, 2, NULL, &error),
           "jit_call: inputs are counted, but none are given");
  REFUSED (tiny_recorder_begin (recorder, NULL, 2, &error),
           "recorder_begin: inputs are counted, but none are given");
  REFUSED (tiny_recorder_replay (recorder, NULL, 2, &error),
           "recorder_replay: inputs are counted, but none are given");
  REFUSED (tiny_recorder_end (recorder, NULL, 2, &error),
           "recorder_end: outputs are counted, but none are given");
}

/* ---- beside recordings ---- */
static gpointer
add_one (gpointer count)
{
  g_autoptr (TinyTensor) more
      = g_object_ref_sink (tiny_tensor_add (count, tiny_tensor_scalar (1)));
  return GINT_TO_POINTER (tiny_tensor_assign (count, more, NULL));
}

/* What waits to be assigned by another thread is computed once, not by each replay. */
static void
test_other_threads (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) x = ramp (2, 3), count = ramp (2, 3), start = ramp (2, 3);
  g_autoptr (TinyRecorder) recorder = tiny_recorder_new ();
  g_autoptr (GError) error = NULL;
  tiny_recorder_begin (recorder, &x, 1, &error);
  g_assert_no_error (error);
  g_autoptr (TinyTensor) twice = g_object_ref_sink (tiny_tensor_add (x, x));
  g_assert_true (GPOINTER_TO_INT (g_thread_join (g_thread_new ("other", add_one, count))));
  g_assert_true (tiny_recorder_end (recorder, &twice, 1, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < CALLS; i++)
    g_assert_true (tiny_recorder_replay (recorder, &x, 1, &error));
  g_assert_cmpuint (tiny_recorder_get_n_kernels (recorder), ==, 1);
  assert_same (tiny_tensor_sub (count, start),
               tiny_tensor_add (tiny_tensor_mul (start, tiny_tensor_scalar (0)),
                                tiny_tensor_scalar (1)));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nn/jit/narrow", test_narrow);
  g_test_add_func ("/nn/jit/wrong-variables", test_wrong_variables);
  g_test_add_func ("/nn/jit/positions", test_positions);
  g_test_add_func ("/nn/jit/decode", test_decode);
  g_test_add_func ("/nn/jit/refusals", test_refusals);
  g_test_add_func ("/nn/jit/what-would-freeze", test_what_would_freeze);
  g_test_add_func ("/nn/jit/random", test_random);
  g_test_add_func ("/nn/jit/draws", test_draws);
  g_test_add_func ("/nn/jit/permutation", test_permutation);
  g_test_add_func ("/nn/jit/counts", test_counts);
  g_test_add_func ("/nn/jit/other-threads", test_other_threads);
  return g_test_run ();
}
