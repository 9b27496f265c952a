/* SPDX-License-Identifier: MIT
 *
 * test-opt-space.c: the lists next to a list fit the kernel and compute what it computes. */
#include "codegen/tiny-opt-space.h"

#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "kernels.h"

static TinyNode *
build_matmul (Build *b, gint64 m, gint64 k, gint64 n)
{
  TinyNode *i = build_range (b, m), *j = build_range (b, n), *l = build_range (b, k);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, m * k), INDEX (b, i, l), NULL);
  TinyNode *y
      = build_load (b, build_param (b, TINY_DTYPE_F32, 2, k * n), INDEX (b, l, j), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &l);
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, m * n),
                                     INDEX (b, i, j), sum, NULL));
}

/* From none, two steps away, every kind of optimisation is met, and all that is met is right. */
static void
test_near (void)
{
  g_autoptr (GError) error = NULL;
  BUILD ();
  TinyTarget target = vector_target ();
  TinyNode *kernel = build_matmul (b, 6, 8, 10);
  g_autoptr (TinyOptSpace) space = tiny_opt_space_new (kernel, &target, &error);
  g_assert_no_error (error);
  g_autoptr (GString) met = g_string_new (NULL);
  g_auto (GStrv) first = tiny_opt_space_get_neighbours (space, "none");
  for (guint i = 0; first[i] != NULL; i++) {
    g_autofree char *applied = check_kernel (b, kernel, &target, first[i]);
    g_assert_cmpstr (applied, ==, first[i]);
    g_string_append_printf (met, "%s ", first[i]);
    g_auto (GStrv) second = tiny_opt_space_get_neighbours (space, first[i]);
    g_assert_true (g_strv_contains ((const char *const *) second, "none")
                   || strchr (first[i], ' ') != NULL);
    for (guint k = (guint) g_test_rand_int_range (0, 7); k < g_strv_length (second); k += 7)
      g_free (check_kernel (b, kernel, &target, second[k]));
  }
  for (const char *kinds = "lanes upcast unroll grid split swap stage pad"; kinds != NULL;) {
    g_auto (GStrv) word = g_strsplit (kinds, " ", 2);
    g_autofree char *kind = g_strconcat (word[0], "(", NULL);
    g_test_message ("%s", kind);
    g_assert_nonnull (strstr (met->str, kind));
    kinds = strchr (kinds, ' ') ? strchr (kinds, ' ') + 1 : NULL;
  }
}

/* What a heuristic would give has neighbours with other amounts, before its grid, and one less. */
static void
test_steps (void)
{
  BUILD ();
  TinyTarget target = vector_target ();
  g_autoptr (TinyOptSpace) space
      = tiny_opt_space_new (build_matmul (b, 64, 64, 64), &target, NULL);
  const char *from = "lanes(1,16) pad(0,6) upcast(0,6) grid(0,0)";
  g_auto (GStrv) near = tiny_opt_space_get_neighbours (space, from);
  const char *const *lists = (const char *const *) near;
  g_assert_true (g_strv_contains (lists, "lanes(1,8) pad(0,6) upcast(0,6) grid(0,0)"));
  g_assert_true (g_strv_contains (lists, "lanes(1,16) pad(0,12) upcast(0,12) grid(0,0)"));
  g_assert_true (
      g_strv_contains (lists, "lanes(1,16) pad(0,6) upcast(0,6) upcast(1,4) grid(0,0)"));
  g_assert_true (
      g_strv_contains (lists, "lanes(1,16) pad(0,6) upcast(0,6) grid(0,0) unroll(2,4)"));
  g_assert_true (g_strv_contains (lists, "lanes(1,16) pad(0,6) upcast(0,6)"));
  g_assert_false (g_strv_contains (lists, from));
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; near[i] != NULL; i++) {
    g_assert_true (g_hash_table_add (seen, near[i]));
    g_assert_true (tiny_opt_space_check (space, near[i], NULL));
  }
}

/* Work-groups are in the space of a target that has them, with tiles inside of the reduction, and in
 * no other's. */
static void
test_groups (void)
{
  static const char from[] = "group(1,8) group(0,8) split(2,8) stage(2,0) grid(0,0)";
  static const char *const wanted[]
      = { "group(1,8) group(0,8) split(2,8) stage(2,0) grid(0,0) stage(2,1)",
          "group(1,8) group(0,8) split(2,4) stage(2,0) grid(0,0)",
          "group(1,4) group(0,8) split(2,8) stage(2,0) grid(0,0)",
          "group(1,8) group(0,8) upcast(0,2) split(2,8) stage(2,0) grid(0,0)",
          "group(1,8) split(2,8) stage(2,0) grid(0,0)" };
  BUILD ();
  TinyTarget target = group_target (), other = scalar_target ();
  TinyNode *kernel = build_matmul (b, 16, 16, 16);
  g_autoptr (TinyOptSpace) space = tiny_opt_space_new (kernel, &target, NULL);
  g_auto (GStrv) near = tiny_opt_space_get_neighbours (space, from);
  for (guint i = 0; i < G_N_ELEMENTS (wanted); i++)
    if (!g_strv_contains ((const char *const *) near, wanted[i]))
      CASE_FAILS ("not next to %s: %s", from, wanted[i]);
  for (guint i = 0; near[i] != NULL; i++)
    g_free (check_kernel (b, kernel, &target, near[i]));
  g_autoptr (TinyOptSpace) without = tiny_opt_space_new (kernel, &other, NULL);
  g_auto (GStrv) plain = tiny_opt_space_get_neighbours (without, "none");
  for (guint i = 0; plain[i] != NULL; i++)
    g_assert_null (strstr (plain[i], "group"));
}

/* Copies are bounded, so that no list makes a program that never ends compiling. */
static void
test_bounded (void)
{
  BUILD ();
  TinyTarget target = vector_target ();
  g_autoptr (TinyOptSpace) space
      = tiny_opt_space_new (build_matmul (b, 256, 256, 256), &target, NULL);
  g_auto (GStrv) near = tiny_opt_space_get_neighbours (space, "upcast(0,16) upcast(1,8)");
  for (guint i = 0; near[i] != NULL; i++) {
    gint64 copies = 1;
    guint n;
    g_autofree TinyOpt *opts = tiny_opts_from_string (near[i], &n, NULL);
    for (guint k = 0; k < n; k++)
      if (opts[k].kind == TINY_OPT_UPCAST || opts[k].kind == TINY_OPT_UNROLL)
        copies *= opts[k].amount;
    g_assert_cmpint (copies, <=, 4 * MAX (target.n_vector_registers, 8));
  }
}

static void
test_check (void)
{
  BUILD ();
  TinyTarget target = vector_target ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyOptSpace) space
      = tiny_opt_space_new (build_matmul (b, 4, 4, 4), &target, NULL);
  g_assert_true (tiny_opt_space_check (space, "upcast(0,2) grid(1,0)", &error));
  g_assert_false (tiny_opt_space_check (space, "upcast(2,2)", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (tiny_opt_space_check (space, "upcast(2", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/codegen/opt-space/near", test_near);
  g_test_add_func ("/codegen/opt-space/steps", test_steps);
  g_test_add_func ("/codegen/opt-space/groups", test_groups);
  g_test_add_func ("/codegen/opt-space/bounded", test_bounded);
  g_test_add_func ("/codegen/opt-space/check", test_check);
  return g_test_run ();
}
