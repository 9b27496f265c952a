/* SPDX-License-Identifier: MIT
 *
 * test-roof.c: what bounds a kernel, from given roofs; that a device which runs nothing and one that
 * is simulated have none. That measured roofs are sane is proved end to end (tests/e2e). */
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-roof.h"

static const TinyRoof example = {
  .gflops = { [TINY_DTYPE_F32] = 100, [TINY_DTYPE_F64] = 50 },
  .n_levels = 3,
  .levels
  = { { "L1", 1000, 200, 0 }, { "L2", 50000, 80, 90 }, { "memory", G_MAXUINT64, 20, 15 } },
};

static void
test_bound (void)
{
  static const struct {
    TinyDType dtype;
    double n_flops, n_bytes, ns;
    const char *level;
    gboolean by_memory;
  } rows[] = {
    { TINY_DTYPE_F32, 1000, 400, 10, "L1", FALSE },
    { TINY_DTYPE_F64, 1000, 400, 20, "L1", FALSE },
    { TINY_DTYPE_BF16, 1000, 400, 10, "L1", FALSE }, /* computed in f32 */
    { TINY_DTYPE_F32, 0, 1000, 5, "L1", TRUE },
    { TINY_DTYPE_F32, 100, 1001, 1001 / 90.0, "L2", TRUE },
    { TINY_DTYPE_F32, 100, 100000, 5000, "memory", TRUE },
    { TINY_DTYPE_F32, 1e6, 100000, 10000, "memory", FALSE },
    { TINY_DTYPE_VOID, 0, 100000, 5000, "memory", TRUE },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    TinyRoofBound bound
        = tiny_roof_bound (&example, rows[i].dtype, rows[i].n_flops, rows[i].n_bytes);
    g_assert_cmpfloat_with_epsilon (bound.ns, rows[i].ns, 1e-9);
    g_assert_cmpstr (bound.level, ==, rows[i].level);
    g_assert_cmpint (bound.by_memory, ==, rows[i].by_memory);
  }
}

static void
test_none (gconstpointer name)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = tiny_engine_get_device (name, &error);
  g_assert_no_error (error);
  g_assert_null (tiny_roof_find (device));
  g_assert_null (tiny_roof_measure (device, FALSE, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "measuring its roof"));
  g_assert_null (tiny_roof_find (device));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  g_test_add_func ("/engine/roof/bound", test_bound);
  g_test_add_data_func ("/engine/roof/simulated", "REF", test_none);
  g_test_add_data_func ("/engine/roof/nothing-runs", "NULL:CPU", test_none);
  return g_test_run ();
}
