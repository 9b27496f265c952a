/* SPDX-License-Identifier: MIT
 *
 * test-history.c: gradients of what was realised before: they are those of what was not, nothing is
 * computed twice forward, memory does not grow over steps, and what is stale is refused. */
#include <math.h>

#include "autograd/tiny-gradient.h"
#include "engine/keep-computed.h"
#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-tensor-operations.h"

#define T(name) tiny_tensor_##name

static TinyTensor *
variable (float value)
{
  TinyTensor *tensor = g_object_ref_sink (
      T (new_from_data) (NULL, TINY_DTYPE_F32, (gint64[]){ 1 }, 1, &value, sizeof value));
  T (set_requires_grad) (tensor, TRUE);
  return tensor;
}

static double
read_value (TinyTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  double value = NAN;
  T (item) (tensor, &value, &error);
  g_assert_no_error (error);
  return value;
}

static void
check_backward (TinyTensor *loss, TinyTensor *x, double expected)
{
  g_autoptr (GError) error = NULL;
  T (clear_grad) (x);
  T (backward) (loss, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (read_value (T (get_grad) (x)), expected, 1e-5);
}

static void
check_refused (TinyTensor *loss, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (T (backward) (loss, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, part));
}

#define OWN(name, value) g_autoptr (TinyTensor) name = g_object_ref_sink (value)

/* In each order of reading, of values that one another is made of. */
static void
test_values (void)
{
  for (guint order = 0; order < 8; order++) {
    g_autoptr (TinyTensor) w = variable (2);
    OWN (h, T (mul) (w, w));
    OWN (a, T (mul_number) (h, 3));
    OWN (b, T (exp) (T (mul_number) (h, 0.25)));
    OWN (loss, T (add) (a, b));
    TinyTensor *parts[] = { order & 4 ? loss : a, order & 4 ? h : b, order & 4 ? a : h };
    for (guint i = 0; i < 3; i++)
      if (order & 1 << i)
        read_value (parts[i]);
    g_assert_cmpfloat_with_epsilon (read_value (loss), 12 + exp (1), 1e-5);
    check_backward (loss, w, 12 + exp (1));
    g_autoptr (GError) error = NULL;
    TinyTensor *of_h = NULL;
    tiny_gradient (loss, &h, 1, &of_h, &error);
    g_assert_no_error (error);
    g_assert_cmpfloat_with_epsilon (read_value (of_h), 3 + 0.25 * exp (1), 1e-5);
    g_object_unref (of_h);
  }
}

/* The value is read from memory. */
static void
test_kernels (void)
{
  g_autoptr (TinyTensor) w = variable (2);
  TinyCounters before, after;
  OWN (h, T (exp) (w));
  read_value (h);
  OWN (x, T (mul_number) (h, 2));
  tiny_runtime_get_counters (&before);
  g_assert_cmpfloat_with_epsilon (read_value (x), 2 * exp (2), 1e-4);
  tiny_runtime_get_counters (&after);
  g_assert_cmpuint (after.n_kernels - before.n_kernels, ==, 1);
  g_assert_true (T (is_realized) (h));
}

static void
test_ends (void)
{
  g_autoptr (TinyTensor) w = variable (2);
  OWN (cut, T (detach) (w));
  OWN (x, T (mul_number) (cut, 2));
  read_value (x);
  check_refused (x, "depends on no tensor that requires one");
  gboolean before = tiny_set_grad_enabled (FALSE);
  OWN (y, T (mul_number) (w, 2));
  tiny_set_grad_enabled (before);
  check_refused (y, "detached");
  read_value (y);
  check_refused (y, "detached");
  g_assert_null (T (get_grad) (w));
}

static void
test_stale (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) w = variable (2);
  OWN (x, T (mul) (w, w));
  OWN (y, T (mul) (w, w));
  read_value (x);
  T (assign) (w, T (mul_number) (w, 2), &error);
  g_assert_no_error (error);
  read_value (w);
  check_refused (x, "assigned to since");
  check_refused (y, "assigned to since"); /* realised by the assignment */
  OWN (z, T (mul) (w, w));
  read_value (z);
  check_backward (z, w, 8);
  const float three = 3;
  T (write_data) (w, &three, sizeof three, &error);
  g_assert_no_error (error);
  check_refused (z, "assigned to since");
}

/* Steps of a training loop, in each of which the loss is read. */
static void
test_growth (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) w = variable (2);
  OWN (mean, T (zeros) (TINY_DTYPE_F32, (gint64[]){ 1 }, 1));
  guint settled = 0;
  for (guint i = 0; i < 60; i++) {
    OWN (loss, T (square) (T (add_number) (w, -1)));
    read_value (loss);
    check_backward (loss, w, 2 * (read_value (w) - 1));
    T (assign) (mean, T (add) (T (mul_number) (mean, 0.9), T (get_grad) (w)), &error);
    T (assign) (w, T (sub) (w, T (mul_number) (mean, 0.01)), &error);
    g_assert_no_error (error);
    read_value (w);
    g_autoptr (GPtrArray) kept = g_ptr_array_new ();
    tiny_history_list (0, kept);
    settled = i == 9 ? kept->len : settled;
    if (i > 9)
      g_assert_cmpuint (kept->len, <=, settled);
  }
  g_assert_cmpfloat (read_value (w), <, 1.9);
}

/* A step by hand: @order says what is computed before the gradient is asked for, and after. */
static void
step_by_hand (TinyTensor *w, guint order)
{
  g_autoptr (GError) error = NULL;
  OWN (loss, T (square) (T (add_number) (w, -1)));
  if (order & 1)
    read_value (loss);
  if (order & 2)
    read_value (w);
  T (clear_grad) (w);
  T (backward) (loss, &error);
  g_assert_no_error (error);
  TinyTensor *change = T (mul_number) (T (get_grad) (w), 0.1);
  T (assign) (w, T (sub) (order & 4 ? T (detach) (w) : w, change), &error);
  g_assert_no_error (error);
  if (order & 8)
    read_value (loss);
}

static guint
count_nodes (void)
{
  tiny_runtime_lock ();
  tiny_runtime_sweep (TRUE);
  guint n = tiny_graph_get_n_nodes (tiny_runtime_get_graph ());
  tiny_runtime_unlock ();
  return n;
}

/* What a variable is assigned has no history, whatever is read when: steps work, and nothing grows. */
static void
test_by_hand (void)
{
  for (guint order = 0; order < 16; order++) {
    g_autoptr (TinyTensor) w = variable (2);
    double expected = 2;
    guint settled = 0;
    for (guint i = 0; i < 12; i++) {
      step_by_hand (w, order);
      expected -= 0.1 * 2 * (expected - 1);
      guint n = count_nodes ();
      settled = i == 5 ? n : settled;
      if (i > 5)
        g_assert_cmpuint (n, ==, settled);
    }
    g_assert_cmpfloat_with_epsilon (read_value (w), expected, 1e-5);
    g_autoptr (GPtrArray) kept = g_ptr_array_new ();
    tiny_history_list (0, kept);
    g_assert_cmpuint (kept->len, <=, 1);
  }
}

/* A loss made of a value that was assigned goes on to be one when that is computed. */
static void
test_assigned (void)
{
  g_autoptr (GError) error = NULL;
  for (guint order = 0; order < 2; order++) {
    g_autoptr (TinyTensor) w = variable (2);
    T (assign) (w, T (mul_number) (w, 2), &error);
    g_assert_no_error (error);
    OWN (loss, T (mul) (w, w));
    if (order == 1)
      read_value (loss);
    read_value (w);
    check_backward (loss, w, 8);
  }
}

/* What is no variable may be changed in place, whatever is read when. */
static void
test_in_place (void)
{
  g_autoptr (GError) error = NULL;
  for (guint order = 0; order < 16; order++) {
    g_autoptr (TinyTensor) w = variable (2);
    OWN (y, T (mul_number) (w, 3));
    for (guint i = 0; i < 4; i++) { /* y = w y + 1 */
      if (order & 1 << i)
        read_value (y);
      T (assign) (y, T (add_number) (T (mul) (y, w), 1), &error);
      g_assert_no_error (error);
    }
    g_assert_cmpfloat (read_value (y), ==, 96 + 15);
    check_backward (y, w, 5 * 3 * 16 + 3 * 4 + 2 * 2 + 1); /* of 3 w^5 + w³ + w² + w + 1 */
    OWN (z, T (contiguous) (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 1 }, 1)));
    T (assign) (z, T (add_number) (z, 5), &error);
    if (order & 1)
      read_value (z);
    T (assign) (z, T (mul) (z, w), &error);
    if (order & 2)
      read_value (z);
    check_backward (z, w, 5);
  }
}

/* An assignment that waits reads what it was given, though another is computed first. */
static void
test_waiting (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) a = variable (1), b = variable (10);
  OWN (c, T (reshape) (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 1 }, 1), (gint64[]){ 1, 1 }, 2));
  read_value (c);
  T (assign) (c, T (add) (c, a), &error);
  T (assign) (a, T (add_number) (b, 1), &error);
  T (assign) (b, T (mul_number) (b, 2), &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (read_value (b), ==, 20);
  g_assert_cmpfloat (read_value (a), ==, 11);
  g_assert_cmpfloat (read_value (c), ==, 1);
}

/* Among many only those become stale that read what was assigned to, also if they came after the first time that
 * this was asked; and those that nobody holds go. */
static void
test_many (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) u = variable (2), w = variable (3);
  g_autoptr (GPtrArray) kept = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint round = 0; round < 3; round++) {
    for (guint i = 0; i < 40; i++) {
      TinyTensor *from = i % 2 ? u : w;
      TinyTensor *y = T (square) (T (mul) (from, T (scalar) (1 + (i + round) % 3)));
      g_ptr_array_add (kept, g_object_ref_sink (y));
      read_value (y);
    }
    TinyTensor *written = round == 2 ? w : u;
    T (assign) (written, T (full) (TINY_DTYPE_F32, (gint64[]){ 1 }, 1, 5), &error);
    g_assert_no_error (error);
    read_value (written);
    TinyTensor *of_u = kept->pdata[kept->len - 1], *of_w = kept->pdata[kept->len - 2];
    double scale = 1 + (38 + round) % 3;
    check_refused (written == u ? of_u : of_w, "assigned to since");
    if (written == u)
      check_backward (of_w, w, 2 * 3 * scale * scale);
  }
  g_ptr_array_set_size (kept, 0);
  for (guint i = 0; i < 200; i++) {
    OWN (y, T (mul) (w, T (scalar) (1 + i % 3)));
    read_value (y);
  }
  g_autoptr (GPtrArray) left = g_ptr_array_new ();
  tiny_history_list (0, left);
  g_assert_cmpuint (left->len, <, 60);
}

/* A variable that is gone: what was made of it requires gradients, which go to the others. */
static void
test_gone (void)
{
  for (guint order = 0; order < 4; order++) {
    g_autoptr (GError) error = NULL;
    TinyTensor *u = variable (2);
    g_autoptr (TinyTensor) w = variable (3);
    OWN (alias, T (detach) (u));
    OWN (both, T (mul) (u, w));
    OWN (alone, T (exp) (u));
    if (order & 1)
      read_value (T (add) (T (add) (both, alone), alias));
    g_object_unref (u);
    if (order & 2)
      read_value (T (add) (T (add) (both, alone), alias));
    OWN (more, T (mul_number) (alone, 2));
    g_assert_true (T (get_requires_grad) (alone));
    g_assert_true (T (get_requires_grad) (more));
    g_assert_false (T (is_leaf) (alone));
    g_assert_false (T (get_requires_grad) (alias));
    check_backward (both, w, 2);
    T (backward) (more, &error);
    g_assert_no_error (error);
    check_refused (alias, "depends on no tensor that requires one");
  }
}

/* Nothing of what was overwritten is in the result: its gradient is 0. */
static void
test_overwritten (void)
{
  for (guint order = 0; order < 4; order++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) w = variable (2);
    OWN (x, T (mul) (w, w));
    for (guint i = 0; i < 2; i++) {
      if (order & 1 << i)
        read_value (x);
      OWN (number, T (full) (TINY_DTYPE_F32, (gint64[]){ 1 }, 1, 3 + i));
      T (assign) (x, number, &error);
      g_assert_no_error (error);
      g_assert_true (T (get_requires_grad) (x));
      check_backward (x, w, 0);
    }
    OWN (y, T (mul) (x, w));
    check_backward (y, w, 4);
    g_assert_cmpfloat (read_value (x), ==, 4);
  }
}

/* What is empty remembers what it was made of, and leaves without elements are told apart. */
static void
test_empty (void)
{
  g_autoptr (TinyTensor) w = variable (2), other = variable (3);
  OWN (none, T (shrink) (w, (gint64[]){ 1, 1 }, 2));
  OWN (cut, T (detach) (none));
  g_assert_true (T (get_requires_grad) (none));
  g_assert_false (T (get_requires_grad) (cut));
  OWN (sum, T (sum) (T (exp) (none), NULL, 0, FALSE));
  check_backward (sum, w, 0);
  g_assert_null (T (get_grad) (other));
  OWN (leaf, T (mul_number) (cut, 1));
  OWN (second, T (mul_number) (cut, 1));
  T (set_requires_grad) (leaf, TRUE);
  g_assert_false (T (get_requires_grad) (second));
  T (set_requires_grad) (second, TRUE);
  OWN (product, T (sum) (T (mul_number) (leaf, 2), NULL, 0, FALSE));
  T (backward) (product, NULL);
  g_assert_nonnull (T (get_grad) (leaf));
  g_assert_null (T (get_grad) (second));
  T (set_requires_grad) (leaf, FALSE);
  g_assert_false (T (get_requires_grad) (leaf));
}

/* A state that gradients flow through is computed from the first round on for each reader: that is said, once. */
static void
test_repeats (void)
{
  enum { ROUNDS = 120, DETACHED = 0, STORED, HELD, AGAIN, PLAIN, LARGE, N_WAYS };
  const gssize budget = keep_computed_budget;
  for (guint way = 0; way < N_WAYS; way++) {
    g_autoptr (GError) error = NULL;
    OWN (w, T (contiguous) (T (full) (TINY_DTYPE_F32, (gint64[]){ 4, 4 }, 2, 0.1)));
    T (realize) (w, &error);
    T (set_requires_grad) (w, way < PLAIN);
    keep_computed_budget = way == LARGE ? 0 : budget;
    TinyTensor *h = g_object_ref_sink (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 1, 4 }, 2));
    if (way == HELD || way == LARGE)
      g_test_expect_message ("tinycore", G_LOG_LEVEL_WARNING,
                             way == HELD ? "*again and again*never stored*realize ()*"
                                         : "*again and again*too large*realize ()*");
    for (guint i = 0; i < ROUNDS; i++) {
      TinyTensor *next = T (tanh) (T (add_number) (T (matmul) (h, w), 1));
      next = g_object_ref_sink (way == DETACHED ? T (detach) (next) : next);
      g_object_unref (h);
      h = next;
      if (way == STORED)
        T (realize) (h, &error);
      g_assert_no_error (error);
      read_value (T (sum) (T (mul_number) (h, 2), NULL, 0, FALSE));
    }
    if (way == HELD || way == LARGE)
      g_test_assert_expected_messages ();
    g_object_unref (h);
  }
  keep_computed_budget = budget;
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func ("/autograd/history/" name, function)
  ADD ("values", test_values);
  ADD ("kernels", test_kernels);
  ADD ("many", test_many);
  ADD ("ends", test_ends);
  ADD ("stale", test_stale);
  ADD ("growth", test_growth);
  ADD ("by-hand", test_by_hand);
  ADD ("assigned", test_assigned);
  ADD ("in-place", test_in_place);
  ADD ("waiting", test_waiting);
  ADD ("gone", test_gone);
  ADD ("overwritten", test_overwritten);
  ADD ("empty", test_empty);
  ADD ("repeats", test_repeats);
  return g_test_run ();
}
