/* SPDX-License-Identifier: MIT
 *
 * The scheduler asks the target, not the device's name: a kernel's own memory, what of a sum is split
 * and what is merged follow the declared caches, vectors and threads; any number of threads up to
 * eight gives the same schedule. What is the same in every run is kept apart from what is not. */
#include <glib.h>
#include <string.h>

#include "ir/tiny-text.h"
#include "schedule/tiny-schedule.h"
#include "schedule/weights.h"

static const TinyTarget typical = {
  .struct_size = sizeof typical,
  .vector_bits = 512,
  .n_threads = 2,
  .local_bytes = 1 << 20,
  .cache_bytes = { 48 << 10, 2 << 20, 32 << 20 },
};

static const char softmax[]
    = "%x = param.f32{slot=0, shape=[512, 2048]}\n"
      "%most = reduce.f32{op=max, axes=[1]}(%x)\n"
      "%e = exp2.f32(sub.f32(%x, expand.f32{shape=[512, 2048]}(%most)))\n"
      "%sum = reduce.f32{op=add, axes=[1]}(%e)\n"
      "sink(fdiv.f32(%e, expand.f32{shape=[512, 2048]}(%sum)))\n";

/* As of a convolution's weight: operands of 16 MiB for 64×64 results. */
static const char product[]
    = "%a = param.f32{slot=0, shape=[64, 32768]}\n"
      "%b = param.f32{slot=1, shape=[32768, 64]}\n"
      "%x = expand.f32{shape=[64, 32768, 64]}(reshape.f32{shape=[64, 32768, 1]}(%a))\n"
      "%y = expand.f32{shape=[64, 32768, 64]}(reshape.f32{shape=[1, 32768, 64]}(%b))\n"
      "sink(reduce.f32{op=add, axes=[1]}(mul.f32(%x, %y)))\n";

static const TinyTarget *
get_target (const char *device, gpointer data)
{
  return data;
}

static TinySchedule *
make_schedule (const char *text, const TinyTarget *target)
{
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  const TinyScheduleOptions options = { .find_target = get_target, .data = (gpointer) target };
  TinySchedule *schedule = tiny_schedule_new_with (graph, sink, &options, &error);
  g_assert_no_error (error);
  return schedule;
}

static char *
schedule_text (const char *text, const TinyTarget *target)
{
  g_autoptr (TinySchedule) schedule = make_schedule (text, target);
  return tiny_schedule_to_string (schedule);
}

static void
test_numbers (void)
{
  TinyTarget target = typical;
  ScheduleMachine machine = schedule_machine_of (&target);
  g_assert_cmpfloat (machine.lanes, ==, 16);
  g_assert_cmpfloat (machine.workers, ==, 8);
  g_assert_cmpint (machine.near_bytes, ==, 1 << 20);
  g_assert_cmpint (machine.local_bytes, ==, 1 << 18);
  target.vector_bits = 0;
  target.n_threads = 9;
  target.cache_bytes[1] = 0;
  target.local_bytes = 1000;
  machine = schedule_machine_of (&target);
  g_assert_cmpfloat (machine.lanes, ==, 1);
  g_assert_cmpfloat (machine.workers, ==, 16);
  g_assert_cmpint (machine.near_bytes, ==, schedule_weights.near_bytes);
  g_assert_cmpint (machine.local_bytes, ==, 1000);
  machine = schedule_machine_of (NULL);
  g_assert_cmpfloat (machine.lanes, ==, schedule_weights.lanes);
  g_assert_cmpint (machine.local_bytes, ==, schedule_weights.local_bytes);
}

/* A row's exponentials are kept in memory of the kernel where the target has enough of it. */
static void
test_local_memory (void)
{
  TinyTarget target = typical;
  g_autofree char *with = schedule_text (softmax, &target);
  target.local_bytes = 2048 * 4 - 64; /* less than a row */
  g_autofree char *without = schedule_text (softmax, &target);
  g_assert_nonnull (strstr (with, "local"));
  g_assert_null (strstr (without, "local"));
}

static void
test_caches (void)
{
  TinyTarget target = typical;
  g_autofree char *near = schedule_text (product, &target);
  target.cache_bytes[1] = 256 << 10;
  g_autofree char *far = schedule_text (product, &target);
  target.cache_bytes[1] = 64 << 20;
  g_autofree char *whole = schedule_text (product, &target);
  g_assert_cmpstr (near, !=, far);
  g_assert_nonnull (strstr (near, "_r16")); /* parts of what one kernel computed */
  g_assert_cmpstr (near, !=, whole);
}

/* The items of a product of (512, N) and (512, 256) over its rows, stored as (256, N). */
static guint
count_columns_items (guint N, const TinyTarget *target)
{
  g_autofree char *text = g_strdup_printf (
      "%%a = param.f32{slot=0, shape=[512, %u]}\n"
      "%%b = param.f32{slot=1, shape=[512, 256]}\n"
      "%%x = expand.f32{shape=[512, %u, 256]}(reshape.f32{shape=[512, %u, 1]}(%%a))\n"
      "%%y = expand.f32{shape=[512, %u, 256]}(reshape.f32{shape=[512, 1, 256]}(%%b))\n"
      "%%sum = reshape.f32{shape=[%u, 256]}(reduce.f32{op=add, axes=[0]}(mul.f32(%%x, %%y)))\n"
      "sink(contiguous.f32(permute.f32{axes=[1, 0]}(%%sum)))\n",
      N, N, N, N, N);
  g_autoptr (TinySchedule) schedule = make_schedule (text, target);
  return schedule->n_items;
}

/* Rows that would leave lanes of the target's vectors empty are computed along the other axis, and put in order by
 * a kernel of their own. */
static void
test_empty_lanes (void)
{
  TinyTarget target = typical;
  g_assert_cmpuint (count_columns_items (49, &target), ==, 2);
  g_assert_cmpuint (count_columns_items (196, &target), ==, 2);
  g_assert_cmpuint (count_columns_items (3136, &target), ==, 1);
  target.vector_bits = 256;
  g_assert_cmpuint (count_columns_items (49, &target), ==, 2);
  g_assert_cmpuint (count_columns_items (192, &target), ==, 1);
  target.vector_bits = 32;
  g_assert_cmpuint (count_columns_items (49, &target), ==, 1);
  target = typical;
  target.flags = TINY_TARGET_GROUPS;
  g_assert_cmpuint (count_columns_items (49, &target), ==, 1);
}

static void
test_threads (void)
{
  TinyTarget target = typical;
  const char *const texts[] = { softmax, product };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    target.n_threads = 1;
    g_autofree char *one = schedule_text (texts[i], &target);
    target.n_threads = 8;
    g_autofree char *eight = schedule_text (texts[i], &target);
    g_assert_cmpstr (one, ==, eight);
  }
}

static TinySchedule *
schedule_for (const char *text, const gboolean *constants)
{
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  const TinyScheduleOptions options = { .constants = constants };
  TinySchedule *schedule = tiny_schedule_new_with (graph, sink, &options, &error);
  g_assert_no_error (error);
  return schedule;
}

static guint
count_items (const char *text, const gboolean *constants)
{
  g_autoptr (TinySchedule) schedule = schedule_for (text, constants);
  return schedule->n_items;
}

/* A stored value of a constant input is a kernel of its own, unless computing it again is not dearer
 * than reading it; where nothing is known it is a part of what uses it. */
static void
test_constants (void)
{
  static const char scaled[] = "%x = param.f32{slot=0, shape=[4096]}\n"
                               "%w = param.f32{slot=1, shape=[4096]}\n"
                               "sink(add.f32(%x, contiguous.f32(exp2.f32(%w))))\n";
  static const char same[] = "%x = param.f32{slot=0, shape=[4096]}\n"
                             "%w = param.f32{slot=1, shape=[4096]}\n"
                             "sink(add.f32(%x, contiguous.f32(%w)))\n";
  const gboolean none[] = { FALSE, FALSE }, one[] = { FALSE, TRUE }, other[] = { TRUE, FALSE };
  g_assert_cmpuint (count_items (scaled, NULL), ==, 1);
  g_assert_cmpuint (count_items (scaled, none), ==, 1);
  g_assert_cmpuint (count_items (scaled, other), ==, 1);
  g_assert_cmpuint (count_items (scaled, one), ==, 2);
  g_assert_cmpuint (count_items (same, one), ==, 1);
}

/* A schedule that was made without constants says for which it is the one that they would give. */
static void
test_serves (void)
{
  static const char *const texts[] = {
    "%x = param.f32{slot=0, shape=[4096]}\n"
    "%w = param.f32{slot=1, shape=[4096]}\n"
    "sink(add.f32(%x, contiguous.f32(exp2.f32(%w))))\n",
    "%x = param.f32{slot=0, shape=[4096]}\n"
    "%w = param.f32{slot=1, shape=[4096]}\n"
    "sink(add.f32(%x, contiguous.f32(%w)))\n",
    "%x = param.f32{slot=0, shape=[4096]}\n"
    "%w = param.f32{slot=1, shape=[4096]}\n"
    "%v = contiguous.f32(exp2.f32(%w))\n"
    "%u = contiguous.f32(mul.f32(%v, %v))\n"
    "sink(add.f32(%x, contiguous.f32(exp2.f32(%u))), contiguous.f32(%v))\n",
  };
  guint n_served = 0, n_refused = 0;
  for (guint t = 0; t < G_N_ELEMENTS (texts); t++)
    for (guint bits = 0; bits < 4; bits++) {
      const gboolean constants[] = { (bits & 1) != 0, (bits & 2) != 0 };
      g_autoptr (TinySchedule) plain = schedule_for (texts[t], NULL);
      g_autoptr (TinySchedule) made = schedule_for (texts[t], constants);
      g_autofree char *of_plain = tiny_schedule_to_string (plain);
      g_autofree char *of_made = tiny_schedule_to_string (made);
      const gboolean serves = tiny_schedule_serves (plain, constants);
      g_assert_cmpint (serves, ==, g_str_equal (of_plain, of_made));
      g_assert_false (tiny_schedule_serves (made, constants));
      n_served += serves;
      n_refused += !serves;
    }
  g_assert_cmpuint (n_served, >, 0);
  g_assert_cmpuint (n_refused, >, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/machine/numbers", test_numbers);
  g_test_add_func ("/schedule/machine/local-memory", test_local_memory);
  g_test_add_func ("/schedule/machine/caches", test_caches);
  g_test_add_func ("/schedule/machine/empty-lanes", test_empty_lanes);
  g_test_add_func ("/schedule/machine/threads", test_threads);
  g_test_add_func ("/schedule/machine/constants", test_constants);
  g_test_add_func ("/schedule/machine/serves", test_serves);
  return g_test_run ();
}
