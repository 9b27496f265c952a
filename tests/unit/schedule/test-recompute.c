/* SPDX-License-Identifier: MIT
 *
 * Scores of attention that are only reduced, each time along the same axis, are computed in the one kernel that goes
 * through their rows, however few they are. They are stored where another kernel reads them along the other axis, as
 * a gradient does, where work-groups share memory, and where keys and values of a row do not stay near a core. */
#include <string.h>

#include "base/tiny-stats.h"
#include "evaluate.h"
#include "ir/tiny-text.h"
#include "schedule/weights.h"

static const TinyTarget typical = {
  .struct_size = sizeof typical,
  .vector_bits = 512,
  .n_threads = 2,
  .local_bytes = 1 << 20,
  .cache_bytes = { 48 << 10, 1 << 20, 32 << 20 },
};

/* Heads, rows of queries, rows of keys, width. */
typedef struct {
  const char *heads, *rows, *keys, *width;
} Size;

static const Size small = { "4", "64", "48", "32" };

/* @more: other results, of the weights %p and of what is computed before. */
static char *
write_attention (const Size *size, const char *more)
{
  static const char *const text
      = "%q = param.f32{slot=0, shape=[$h, $r, $d], device=\"REF\"}\n"
        "%k = param.f32{slot=1, shape=[$h, $k, $d], device=\"REF\"}\n"
        "%v = param.f32{slot=2, shape=[$h, $k, $d], device=\"REF\"}\n"
        "%qs = expand.f32{shape=[$h, $r, $k, $d]}(reshape.f32{shape=[$h, $r, 1, $d]}(%q))\n"
        "%ks = expand.f32{shape=[$h, $r, $k, $d]}(reshape.f32{shape=[$h, 1, $k, $d]}(%k))\n"
        "%dot = reduce.f32{op=add, axes=[3]}(mul.f32(%qs, %ks))\n"
        "%s = mul.f32(reshape.f32{shape=[$h, $r, $k]}(%dot), 0.25)\n"
        "%m = expand.f32{shape=[$h, $r, $k]}(reduce.f32{op=max, axes=[2]}(%s))\n"
        "%e = exp2.f32(mul.f32(sub.f32(%s, %m), 1.5))\n"
        "%l = expand.f32{shape=[$h, $r, $k]}(reduce.f32{op=add, axes=[2]}(%e))\n"
        "%p = mul.f32(%e, recip.f32(%l))\n"
        "%ps = expand.f32{shape=[$h, $r, $d, $k]}(reshape.f32{shape=[$h, $r, 1, $k]}(%p))\n"
        "%vt = reshape.f32{shape=[$h, 1, $d, $k]}(permute.f32{axes=[0, 2, 1]}(%v))\n"
        "%vs = expand.f32{shape=[$h, $r, $d, $k]}(%vt)\n"
        "sink(reduce.f32{op=add, axes=[3]}(mul.f32(%ps, %vs))MORE)\n";
  g_autoptr (GString) result = g_string_new (text);
  g_string_replace (result, "MORE", more, 0);
  g_string_replace (result, "$h", size->heads, 0);
  g_string_replace (result, "$r", size->rows, 0);
  g_string_replace (result, "$k", size->keys, 0);
  g_string_replace (result, "$d", size->width, 0);
  return g_string_free (g_steal_pointer (&result), FALSE);
}

static const TinyTarget *
get_target (const char *device, gpointer data)
{
  return data;
}

static TinySchedule *
schedule_text (const char *text, const TinyTarget *target)
{
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  const TinyScheduleOptions options = { .find_target = get_target, .data = (gpointer) target };
  TinySchedule *schedule = tiny_schedule_new_with (graph, sink, &options, &error);
  g_assert_no_error (error);
  verify_schedule (schedule);
  return schedule;
}

static TinySchedule *
make_schedule (const Size *size, const char *more, const TinyTarget *target)
{
  g_autofree char *text = write_attention (size, more);
  return schedule_text (text, target);
}

static gint64
count_elements (const Size *size, const char *last)
{
  return g_ascii_strtoll (size->heads, NULL, 10) * g_ascii_strtoll (size->rows, NULL, 10)
         * g_ascii_strtoll (last, NULL, 10);
}

/* True if scores, or what is as large, go from kernel to kernel. */
static gboolean
stores_scores (const TinySchedule *schedule, const Size *size)
{
  for (guint i = 0; i < schedule->n_buffers; i++)
    if (schedule->buffers[i].kind == TINY_SCHEDULE_TEMPORARY
        && schedule->buffers[i].n_elements == count_elements (size, size->keys))
      return TRUE;
  return FALSE;
}

/* Sums over an axis of @extent in all kernels. */
static guint
count_sums (const TinySchedule *schedule, gint64 extent)
{
  guint n = 0;
  for (guint i = 0; i < schedule->n_items; i++) {
    g_autoptr (GPtrArray) order
        = tiny_graph_toposort (schedule->graph, &schedule->items[i].kernel, 1);
    for (guint k = 0; k < order->len; k++) {
      TinyNode *node = order->pdata[k];
      n += node->op == TINY_OP_REDUCE && node->arg == TINY_OP_ADD
           && tiny_range_get_extent (node->sources[1]) == extent;
    }
  }
  return n;
}

/* A copy of the keys in the order in which they are read, and the kernel of all. */
static void
test_one_kernel (void)
{
  static const Size sizes[] = {
    { "1", "16", "24", "8" },    { "4", "64", "48", "32" },    { "12", "128", "96", "64" },
    { "8", "256", "192", "64" }, { "16", "512", "384", "64" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autoptr (TinySchedule) schedule = make_schedule (&sizes[i], "", &typical);
    g_assert_cmpuint (schedule->n_items, <=, 2);
    g_assert_false (stores_scores (schedule, &sizes[i]));
  }
}

/* One row of queries, as a decoder has. */
static void
test_one_row (void)
{
  static const Size one = { "12", "1", "1024", "64" };
  g_autoptr (TinySchedule) schedule = make_schedule (&one, "", &typical);
  g_assert_cmpuint (schedule->n_items, ==, 1);
  g_assert_cmpuint (schedule->n_arenas, ==, 0);
}

/* Even where a launch is so dear that the estimate is for fewer kernels. */
static void
test_other_axis (void)
{
  const ScheduleWeights old = schedule_weights;
  schedule_weights.launch = 1e9;
  g_autoptr (TinySchedule) schedule
      = make_schedule (&small, ", reduce.f32{op=add, axes=[1]}(%p)", &typical);
  schedule_weights = old;
  g_assert_true (stores_scores (schedule, &small));
  g_assert_cmpuint (count_sums (schedule, 32), ==, 1);
}

static void
test_result (void)
{
  g_autoptr (TinySchedule) schedule = make_schedule (&small, ", %p", &typical);
  g_assert_cmpuint (count_sums (schedule, 32), ==, 1);
}

static void
test_targets (void)
{
  TinyTarget target = typical;
  target.flags = TINY_TARGET_GROUPS;
  g_autoptr (TinySchedule) groups = make_schedule (&small, "", &target);
  g_assert_true (stores_scores (groups, &small));
  target = typical;
  target.cache_bytes[1] = 8 << 10; /* keys of a head have 6 KiB */
  g_autoptr (TinySchedule) far = make_schedule (&small, "", &target);
  g_assert_true (stores_scores (far, &small));
  target.cache_bytes[1] = 16 << 10;
  g_autoptr (TinySchedule) near = make_schedule (&small, "", &target);
  g_assert_false (stores_scores (near, &small));
}

static Array *
make_input (guint n, GRand *random)
{
  Array *x = array_new (TINY_DTYPE_F32, n);
  for (guint i = 0; i < n; i++)
    x->v[i].f = (float) g_rand_double_range (random, -1, 1);
  return x;
}

static void
test_values (void)
{
  static const Size few = { "2", "5", "6", "4" };
  static const char *const more[] = { "", ", %p", ", reduce.f32{op=add, axes=[1]}(%p)" };
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  g_autoptr (GPtrArray) inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_ptr_array_add (inputs, make_input (2 * 5 * 4, random));
  g_ptr_array_add (inputs, make_input (2 * 6 * 4, random));
  g_ptr_array_add (inputs, make_input (2 * 6 * 4, random));
  for (guint i = 0; i < G_N_ELEMENTS (more); i++) {
    g_autofree char *text = write_attention (&few, more[i]);
    TinyGraph *graph = tiny_graph_new ();
    TinyNode *sink = tiny_graph_parse (graph, text, NULL);
    g_autoptr (GPtrArray) expected = evaluate_graph (graph, sink, inputs);
    g_autoptr (TinySchedule) schedule = make_schedule (&few, more[i], &typical);
    g_autoptr (GPtrArray) found = evaluate_schedule (schedule, inputs);
    for (guint k = 0; k < expected->len; k++) {
      g_autofree char *difference = NULL;
      if (!arrays_equal (expected->pdata[k], found->pdata[k], &difference))
        g_error ("%s, result %u: %s", more[i], k, difference);
    }
    tiny_graph_free (graph);
  }
}

/* The looks where each of @n values uses the one before it three times. */
static guint64
count_looks (guint n)
{
  TinyStats before, work;
  g_autofree char *text = write_attention (&small, "");
  g_autoptr (GString) whole = g_string_new (text), steps = g_string_new (NULL);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (steps, "%%y%u = add.f32(mul.f32(%%y%u, %%y%u), %%y%u)\n", i + 1, i,
                            i, i);
  g_string_append_printf (steps, "%%s = mul.f32(%%y%u, 0.5)\n%%m = ", n);
  g_assert_cmpuint (g_string_replace (whole, "%s = ", "%y0 = ", 1), ==, 1);
  g_assert_cmpuint (g_string_replace (whole, "%m = ", steps->str, 1), ==, 1);
  tiny_stats_get (&before);
  g_autoptr (TinySchedule) schedule = schedule_text (whole->str, &typical);
  tiny_stats_since (&before, &work);
  return work.n_looks;
}

/* Each value is looked at once, not once for each way to it: twice as many take no more than twice the looks. */
static void
test_ways (void)
{
  const guint64 few = count_looks (8), many = count_looks (16);
  g_assert_cmpuint (many, >, few);
  g_assert_cmpuint (many, <=, 2 * few);
}

/* Reductions of a product that do not wait for each other: it is stored, and has its tile where it is made. */
static void
test_apart (void)
{
  static const char *const text
      = "%a = param.f32{slot=0, shape=[2048, 256], device=\"REF\"}\n"
        "%b = param.f32{slot=1, shape=[256, 304], device=\"REF\"}\n"
        "%x = expand.f32{shape=[2048, 304, 256]}(reshape.f32{shape=[2048, 1, 256]}(%a))\n"
        "%t = permute.f32{axes=[1, 0]}(%b)\n"
        "%y = expand.f32{shape=[2048, 304, 256]}(reshape.f32{shape=[1, 304, 256]}(%t))\n"
        "%c = reduce.f32{op=add, axes=[2]}(mul.f32(%x, %y))\n"
        "sink(add.f32(reduce.f32{op=max, axes=[1]}(%c), reduce.f32{op=add, axes=[1]}(%c)))\n";
  static const Size size = { "1", "2048", "304", "256" };
  g_autoptr (TinySchedule) schedule = schedule_text (text, &typical);
  g_assert_true (stores_scores (schedule, &size));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/recompute/apart", test_apart);
  g_test_add_func ("/schedule/recompute/one-kernel", test_one_kernel);
  g_test_add_func ("/schedule/recompute/one-row", test_one_row);
  g_test_add_func ("/schedule/recompute/other-axis", test_other_axis);
  g_test_add_func ("/schedule/recompute/result", test_result);
  g_test_add_func ("/schedule/recompute/targets", test_targets);
  g_test_add_func ("/schedule/recompute/values", test_values);
  g_test_add_func ("/schedule/recompute/ways", test_ways);
  return g_test_run ();
}
