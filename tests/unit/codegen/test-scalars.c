/* SPDX-License-Identifier: MIT
 *
 * test-scalars.c: what the heuristic chooses for a target that has no vectors. */
#include "kernels.h"

#include <string.h>

/* A product of matrices for a target with so many registers; also that it is computed right. */
static char *
choose_scalars (guint n_registers)
{
  enum { M = 128, N = 96, K = 64 };
  BUILD ();
  TinyTarget target = vector_target ();
  target.flags = 0;
  target.max_lanes = 1;
  target.vector_bits = 0;
  target.n_vector_registers = n_registers;
  memset (target.cache_bytes, 0, sizeof target.cache_bytes);
  TinyNode *i = build_range (b, M), *j = build_range (b, N), *k = build_range (b, K);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, M * K), INDEX (b, i, k), NULL);
  TinyNode *y
      = build_load (b, build_param (b, TINY_DTYPE_F32, 2, K * N), INDEX (b, k, j), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &k);
  TinyNode *out = build_param (b, TINY_DTYPE_F32, 0, M * N);
  return check_kernel (b, build_sink (b, build_store (b, out, INDEX (b, i, j), sum, NULL)),
                       &target, NULL);
}

/* A target without vectors gets a tile of single numbers, as large as its registers, and none where it has few. */
static void
test_scalars (void)
{
  static const guint registers[] = { 0, 8, 16, 504 };
  for (guint i = 0; i < G_N_ELEMENTS (registers); i++) {
    g_autofree char *opts = choose_scalars (registers[i]);
    gint64 n_sums = 1;
    for (const char *at = opts; (at = strstr (at, "upcast(")) != NULL; at++)
      n_sums *= g_ascii_strtoll (strchr (at, ',') + 1, NULL, 10);
    g_assert_null (strstr (opts, "lanes"));
    g_assert_cmpint (n_sums, >=, registers[i] == 504 ? 32 : registers[i] == 16 ? 8 : 1);
    g_assert_cmpint (n_sums, <=, registers[i] < 16 ? 1 : registers[i]);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/codegen/scalars/tiles", test_scalars);
  return g_test_run ();
}
