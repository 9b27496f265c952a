/* SPDX-License-Identifier: MIT
 *
 * graph-build.c: microseconds that an operation costs before anything is computed.
 *
 * usage: graph-build [STEPS]. A program of mixed operations, each made of the result before: "new", where every node
 * is one that there was not, and "again", where the same program is built once more beside it and finds its nodes.
 * In time of the processor, so that a busy machine counts little; the best of several rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tiny.h>

enum { N = 8, N_OPERATIONS = 16 /* in a step() */, ROUNDS = 7 };

static double
processor_us (void)
{
  struct timespec now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double) now.tv_sec * 1e6 + (double) now.tv_nsec * 1e-3;
}

/* (N, N) to (N, N): N_OPERATIONS of them, numbers and what is drawn from them not counted. */
static TinyTensor *
step (TinyTensor *x, TinyTensor *w)
{
  TinyTensor *y = g_object_ref_sink (tiny_tensor_add (x, w));
  TinyTensor *z = tiny_tensor_relu (tiny_tensor_mul (y, tiny_tensor_scalar (0.5)));
  z = tiny_tensor_matmul (z, w);
  z = tiny_tensor_sub (z, tiny_tensor_mean (y, (gint[]){ 1 }, 1, TRUE));
  z = tiny_tensor_exp (tiny_tensor_neg (z));
  z = tiny_tensor_permute (z, (gint[]){ 1, 0 }, 2);
  z = tiny_tensor_reshape (z, (gint64[]){ N * N }, 1);
  z = tiny_tensor_reshape (z, (gint64[]){ N, N }, 2);
  z = tiny_tensor_maximum (z, tiny_tensor_select (y, 0, 1));
  TinyTensor *half = tiny_tensor_narrow (y, 1, tiny_tensor_scalar (0), N / 2);
  z = tiny_tensor_add (z, tiny_tensor_sum (half, (gint[]){ 1 }, 1, TRUE));
  z = tiny_tensor_where (tiny_tensor_gt (x, tiny_tensor_scalar (0)), z, x);
  g_object_unref (y);
  return z;
}

/* Microseconds per operation; the program's results are kept in @kept, if any. */
static double
build (TinyTensor *x, TinyTensor *w, guint n, GPtrArray *kept)
{
  double start = processor_us ();
  TinyTensor *y = g_object_ref (x);
  for (guint i = 0; i < n; i++) {
    TinyTensor *next = g_object_ref_sink (step (y, w));
    g_object_unref (y);
    y = next;
  }
  double us = (processor_us () - start) / n / N_OPERATIONS;
  g_ptr_array_add (kept, y);
  return us;
}

int
main (int argc, char **argv)
{
  guint n = argc > 1 ? (guint) strtoul (argv[1], NULL, 10) : 200;
  double best_new = 1e9, best_again = 1e9;
  for (guint r = 0; r < ROUNDS && n > 0; r++) {
    g_autoptr (GPtrArray) kept = g_ptr_array_new_with_free_func (g_object_unref);
    TinyTensor *x
        = g_object_ref_sink (tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ N, N }, 2, 0, 1));
    TinyTensor *w
        = g_object_ref_sink (tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ N, N }, 2, 0, 1));
    g_ptr_array_add (kept, x);
    g_ptr_array_add (kept, w);
    double us_new = build (x, w, n, kept), us_again = build (x, w, n, kept);
    const GError *error = tiny_tensor_get_error (kept->pdata[kept->len - 1]);
    if (error != NULL) {
      fprintf (stderr, "graph-build: %s\n", error->message);
      return 1;
    }
    best_new = MIN (best_new, us_new);
    best_again = MIN (best_again, us_again);
  }
  printf ("{\"us_per_op_new\": %.3f, \"us_per_op_again\": %.3f}\n", best_new, best_again);
  return 0;
}
