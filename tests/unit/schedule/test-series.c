/* SPDX-License-Identifier: MIT
 *
 * test-series.c: the steps of a recurrence become one kernel, whatever runs in step with them; what is computed stays
 * the same, and kernels that differ in more than places stay apart. */
#include "../case-fails.h"
#include "evaluate.h"
#include "ir/tiny-text.h"

enum { T = 9, N = 6, M = 60 };

/* Schedules @text over T rows of N values and M of them, joins series and compares what is computed. Gives how many
 * kernels there are, of how many items, and how many numbers a kernel has at most. */
static guint
count_kernels (const char *text, guint *out_n_items, guint *out_n_numbers)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_autoptr (GHashTable) kernels = g_hash_table_new (NULL, NULL);
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++) {
    Array *array = array_new (TINY_DTYPE_F32, i == 0 ? T * N : M);
    for (gint64 k = 0; k < array->n; k++)
      array->v[k].f = (double) ((k * 7 + i) % 11) - 5;
    g_ptr_array_add (inputs, array);
  }
  g_autoptr (GPtrArray) expected = evaluate_graph (graph, sink, inputs);
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  g_assert_no_error (error);
  tiny_schedule_join_series (schedule);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, inputs);
  for (guint i = 0; i < found->len; i++) {
    g_autofree char *difference = NULL;
    if (!arrays_equal (expected->pdata[i], found->pdata[i], &difference))
      CASE_FAILS ("output %u: %s", i, difference);
  }
  *out_n_items = schedule->n_items;
  *out_n_numbers = 0;
  for (guint i = 0; i < schedule->n_items; i++) {
    g_hash_table_add (kernels, schedule->items[i].kernel);
    *out_n_numbers = MAX (*out_n_numbers, schedule->items[i].n_numbers);
  }
  return g_hash_table_size (kernels);
}

/* Row @t of the first input. */
static void
add_row (GString *text, guint t, guint name)
{
  g_string_append_printf (
      text, "%%x%u = reshape.f32{shape=[6]}(shrink.f32{pairs=[%u, %u, 0, 6]}(%%x))\n", name, t,
      t + 1);
}

#define INPUTS                                                                                 \
  "%x = param.f32{slot=0, shape=[9, 6], device=\"CPU\"}\n"                                     \
  "%y = param.f32{slot=1, shape=[60], device=\"CPU\"}\n"                                       \
  "%h0 = reshape.f32{shape=[6]}(shrink.f32{pairs=[0, 1, 0, 6]}(%x))\n"

/* h = max (h + x[t], h × x[t]) for the rows from the second on, forwards or backwards. */
static guint
count_chain (gboolean is_backwards, guint *out_n_numbers)
{
  g_autoptr (GString) text = g_string_new (INPUTS);
  guint n_items;
  for (guint t = 1; t < T; t++) {
    add_row (text, is_backwards ? T - t : t, t);
    g_string_append_printf (
        text, "%%h%u = contiguous.f32(max.f32(add.f32(%%h%u, %%x%u), mul.f32(%%h%u, %%x%u)))\n",
        t, t - 1, t, t - 1, t);
  }
  g_string_append_printf (text, "sink(%%h%u)", T - 1);
  const guint n = count_kernels (text->str, &n_items, out_n_numbers);
  g_assert_cmpuint (n_items, ==, T - 1);
  return n;
}

/* The first step reads row 0 as well; row 1 begins at the number that is the extent of the loop. */
static void
test_chain (void)
{
  guint n_numbers;
  g_assert_cmpuint (count_chain (FALSE, &n_numbers), ==, 2);
  g_assert_cmpuint (n_numbers, ==, 1);
  g_assert_cmpuint (count_chain (TRUE, &n_numbers), ==, 3);
  g_assert_cmpuint (n_numbers, ==, 1);
}

/* One place goes up by six, one down by two: in step. A third one of its own is another variable. */
static void
test_several (void)
{
  static const guint own[] = { 3, 1, 9, 4, 30, 11, 2, 17, 5 };
  for (guint with_own = 0; with_own < 2; with_own++) {
    g_autoptr (GString) text = g_string_new (INPUTS);
    guint n_items, n_numbers;
    for (guint t = 1; t < T; t++) {
      const guint place = 50 - 2 * t;
      add_row (text, t, t);
      g_string_append_printf (
          text,
          "%%y%u = shrink.f32{pairs=[%u, %u]}(%%y)\n%%z%u = shrink.f32{pairs=[%u, %u]}(%%y)\n"
          "%%h%u = contiguous.f32(add.f32(mul.f32(%%x%u, %%h%u), add.f32(%%y%u, %%z%u)))\n",
          t, place, place + 6, t, with_own ? own[t] : 1, with_own ? own[t] + 6 : 7, t, t, t - 1,
          t, t);
    }
    g_string_append_printf (text, "sink(%%h%u)", T - 1);
    g_assert_cmpuint (count_kernels (text->str, &n_items, &n_numbers), <=, 3);
    g_assert_cmpuint (n_items, ==, T - 1);
    g_assert_cmpuint (n_numbers, ==, 1 + with_own);
  }
}

/* Three are no series; and other strides are other kernels. */
static void
test_apart (void)
{
  guint n_items, n_numbers;
  g_autoptr (GString) text = g_string_new (INPUTS);
  for (guint t = 1; t <= 3; t++) {
    add_row (text, t + 1, t);
    g_string_append_printf (text, "%%h%u = contiguous.f32(mul.f32(%%h%u, %%x%u))\n", t, t - 1,
                            t);
  }
  g_string_append (text, "sink(%h3)");
  g_assert_cmpuint (count_kernels (text->str, &n_items, &n_numbers), ==, 3);
  g_assert_cmpuint (n_numbers, ==, 0);
  g_string_assign (text, INPUTS);
  for (guint t = 1; t <= 6; t++)
    g_string_append_printf (text,
                            "%%h%u = contiguous.f32(mul.f32(%%h%u, "
                            "reshape.f32{shape=[6]}(shrink.f32{pairs=[0, 6, 0, 1]}("
                            "reshape.f32{shape=[6, %u]}(shrink.f32{pairs=[0, %u]}(%%y))))))\n",
                            t, t - 1, t + 1, 6 * (t + 1));
  g_string_append (text, "sink(%h6)");
  g_assert_cmpuint (count_kernels (text->str, &n_items, &n_numbers), ==, 6);
}

/* One kernel reads any one part of a concatenation, a sum of parts with zeros around them. */
static void
test_parts (void)
{
  enum { PARTS = 8 };
  g_autoptr (GString) text = g_string_new (INPUTS);
  guint n_items, n_numbers;
  for (guint t = 0; t < PARTS; t++) {
    add_row (text, t + 1, t);
    g_string_append_printf (text,
                            "%%part%u = pad.f32{pairs=[%u, %u]}(contiguous.f32(add.f32(%%x%u, "
                            "%%x%u)))\n",
                            t, t * N, (PARTS - 1 - t) * N, t, t);
    if (t > 0)
      g_string_append_printf (text, "%%all%u = add.f32(%%%s%u, %%part%u)\n", t,
                              t == 1 ? "part" : "all", t - 1, t);
  }
  for (guint t = 0; t < PARTS; t++)
    g_string_append_printf (
        text, "%%y%u = contiguous.f32(sqrt.f32(shrink.f32{pairs=[%u, %u]}(%%all%u)))\n", t,
        t * N, (t + 1) * N, PARTS - 1);
  g_string_append (text, "sink(");
  for (guint t = 0; t < PARTS; t++)
    g_string_append_printf (text, "%s%%y%u", t > 0 ? ", " : "", t);
  g_string_append (text, ")");
  g_assert_cmpuint (count_kernels (text->str, &n_items, &n_numbers), ==, 3);
  g_assert_cmpuint (n_items, ==, 2 * PARTS);
}

int
main (int argc, char **argv)
{
  g_setenv ("TINY_NO_MERGE", "1", TRUE); /* what could be one kernel stays several */
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/series/chain", test_chain);
  g_test_add_func ("/schedule/series/several", test_several);
  g_test_add_func ("/schedule/series/apart", test_apart);
  g_test_add_func ("/schedule/series/parts", test_parts);
  return g_test_run ();
}
