/* SPDX-License-Identifier: MIT
 *
 * test-asynchronous.c: launches on a device that goes on working after they were submitted: the CPU backend behind
 * ../asynchronous.c, beside the same as it is. */
#include <string.h>

#include "../asynchronous.h"
#include "base/tiny-error.h"
#include "device/tiny-watch.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-text.h"
#include "near-far.h"

enum { N = 1000, N_BYTES = N * sizeof (float) };

static TinyDeviceTable table;
static TinyDevice *near, *far; /* far: asynchronous */

/* Counts, and sees that nothing waits to run. */
static void (*own_unload) (TinyPluginDevice *device, TinyPluginProgram *program);
static guint n_unloaded;

static void
unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  g_assert_cmpint (g_atomic_int_get (&asynchronous.gate), !=, 0);
  n_unloaded++;
  own_unload (device, program);
}

static TinyStatus
open_far (const char *id,
          TinyPluginDevice **out,
          const TinyDeviceTable **out_table,
          TinyPluginError *error)
{
  const TinyDeviceTable *own;
  TinyStatus status = own_module->open (id, out, &own, error);
  table = asynchronous_wrap (own);
  own_unload = table.program_unload;
  table.program_unload = unload;
  *out_table = &table;
  return status;
}

/* ---- launches ---- */
static void
set_values (const TinyBinding *binding, float value)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  for (guint i = 0; i < N; i++)
    values[i] = value;
  tiny_buffer_upload (binding->buffer, 0, values, N_BYTES, &error);
  g_assert_no_error (error);
}

static TinyBinding
new_memory (TinyDevice *device)
{
  TinyBinding binding = { tiny_buffer_new (device, N_BYTES), 0, N_BYTES, FALSE };
  set_values (&binding, 1);
  return binding;
}

static float
get_value (const TinyBinding *binding)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  tiny_buffer_download (binding->buffer, 0, values, N_BYTES, &error);
  g_assert_no_error (error);
  for (guint i = 1; i < N; i++)
    g_assert_cmpfloat (values[i], ==, values[0]);
  return values[0];
}

static void
assert_failed (const TinyBinding *binding)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  g_assert_false (tiny_buffer_download (binding->buffer, 0, values, N_BYTES, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  g_assert_cmpstr (error->message, ==, "FAR: running commands: a kernel failed");
}

/* %0 the output; what is doubled is its own old value where @from is NULL. */
static const char twice_text[]
    = "// stage: kernel\n"
      "%%i = range.index{number=0, kind=loop}(1000)\n"
      "%%x = load.f32(param.f32{slot=%d, shape=[1000]}, %%i)\n"
      "sink{name=\"twice\"}(store(param.f32{slot=0, shape=[1000]}, %%i, add.f32(%%x, %%x)))\n";

static gboolean is_untrusted; /* what is added from now on */

/* Adds: @to becomes twice @from, or twice itself. */
static void
add_twice (TinyLaunches *launches, const TinyBinding *to, const TinyBinding *from)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autofree char *text = g_strdup_printf (twice_text, from != NULL ? 1 : 0);
  TinyNode *kernel = tiny_graph_parse (graph, text, &error);
  TinyExecutable *executable;
  g_assert_no_error (error);
  if (is_untrusted)
    kernel = tiny_node_sink_untrusted (graph, kernel);
  TinyDevice *device = tiny_buffer_get_device (to->buffer);
  tiny_executables_get (device, graph, &kernel, NULL, 1, &executable, &error);
  g_assert_no_error (error);
  const TinyBinding both[] = { *to, from != NULL ? *from : *to };
  tiny_launches_add_kernel (launches, device, executable, NULL, both, from != NULL ? 2 : 1, 1);
  tiny_executable_unref (executable);
}

static void
submit (TinyLaunches *launches)
{
  g_autoptr (GError) error = NULL;
  tiny_launches_submit (launches, 0, &error);
  g_assert_no_error (error);
}

static void
assert_refused (TinyLaunches *launches)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_launches_submit (launches, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
}

static void
begin (void)
{
  tiny_device_wait (far, NULL);
  asynchronous_reset ();
}

/* Submitting returns while nothing has run yet, a thing of the past does not hold its launches, and
 * reading waits. */
static void
test_goes_on (void)
{
  begin ();
  TinyBinding a = new_memory (far), b = new_memory (far);
  TinyLaunches *launches = tiny_launches_new ();
  add_twice (launches, &b, &a);
  add_twice (launches, &b, NULL);
  asynchronous_set_gate (0);
  submit (launches);
  submit (launches);
  g_assert_cmpint (asynchronous.most_in_flight, ==, 2);
  tiny_launches_free (launches);
  GThread *gate = asynchronous_open_gate_later (20);
  g_assert_cmpfloat (get_value (&b), ==, 4);
  g_thread_join (gate);
}

/* An untrusted kernel is at work until its point is reached, or has failed, and no longer. */
static void
test_untrusted (void)
{
  for (guint fails = 0; fails < 2; fails++) {
    begin ();
    g_assert_false (tiny_watch_has_untrusted ());
    TinyBinding a = new_memory (far), b = new_memory (far);
    TinyLaunches *launches = tiny_launches_new ();
    is_untrusted = TRUE;
    add_twice (launches, &b, &a);
    is_untrusted = FALSE;
    asynchronous_set_gate (0);
    if (fails)
      asynchronous_fail (0);
    submit (launches);
    submit (launches);
    g_assert_false (tiny_watch_is_untrusted ());
    g_assert_true (tiny_watch_has_untrusted ());
    tiny_launches_free (launches);
    GThread *gate = asynchronous_open_gate_later (20);
    if (fails)
      assert_failed (&b);
    else
      g_assert_cmpfloat (get_value (&b), ==, 2);
    g_thread_join (gate);
    set_values (&b, 1);
    TinyLaunches *plain = tiny_launches_new (); /* on a queue that works again */
    add_twice (plain, &b, NULL);
    submit (plain);
    g_assert_cmpfloat (get_value (&b), ==, 2);
    tiny_launches_free (plain);
    g_assert_false (tiny_watch_has_untrusted ());
  }
}

/* Times are there when the call returns. */
static void
test_times (void)
{
  begin ();
  TinyBinding a = new_memory (far), b = new_memory (far);
  g_autoptr (TinyLaunches) launches = tiny_launches_new ();
  add_twice (launches, &b, &a);
  tiny_launches_keep_times (launches);
  asynchronous_set_gate (0);
  GThread *gate = asynchronous_open_gate_later (20);
  submit (launches);
  guint64 ns = 0;
  TinyDevice *device;
  tiny_launches_get (launches, 0, &device, &ns);
  g_assert_cmpuint (ns, >, 0);
  g_thread_join (gate);
}

/* Copies to another device and back wait for what they read and for what they overwrite. */
static void
test_copies (void)
{
  begin ();
  g_autoptr (TinyLaunches) launches = tiny_launches_new ();
  TinyBinding a = new_memory (far), b = new_memory (far), here = new_memory (near);
  for (guint i = 0; i < 5; i++) {
    add_twice (launches, &b, &a);
    tiny_launches_add_copy (launches, &here, &b);
    add_twice (launches, &here, NULL);
    tiny_launches_add_copy (launches, &a, &here);
  }
  for (guint round = 0; round < 20; round++) {
    set_values (&a, 1);
    submit (launches);
    g_assert_cmpfloat (get_value (&a), ==, 1024);
    g_assert_cmpfloat (get_value (&here), ==, 1024);
  }
  /* A failure is the copy's: what it would have written is as it was. */
  set_values (&a, 1);
  asynchronous_fail (1);
  assert_refused (launches);
  g_assert_cmpfloat (get_value (&here), ==, 4);
  submit (launches);
  g_assert_cmpfloat (get_value (&here), ==, 4 * 1024);
}

/* What failed spoils what is computed from it, not what is computed anew; replays work again. */
static void
test_failure (void)
{
  begin ();
  TinyBinding a = new_memory (far), b = new_memory (far), c = new_memory (far),
              d = new_memory (far);
  g_autoptr (TinyLaunches) chain = tiny_launches_new ();
  add_twice (chain, &b, &a);
  add_twice (chain, &c, &b);
  g_autoptr (TinyLaunches) reads = tiny_launches_new ();
  add_twice (reads, &d, &c);
  g_autoptr (TinyLaunches) updates = tiny_launches_new ();
  add_twice (updates, &c, NULL);
  asynchronous_fail (0);
  submit (chain);
  assert_failed (&c);
  assert_refused (reads);
  assert_refused (updates);
  g_assert_cmpfloat (get_value (&d), ==, 1);
  g_assert_cmpfloat (get_value (&a), ==, 1);
  submit (chain); /* reads b, which failed, but after it has written it */
  submit (updates);
  submit (reads);
  g_assert_cmpfloat (get_value (&c), ==, 8);
  g_assert_cmpfloat (get_value (&d), ==, 16);
}

/* %d: how many of the thousand are stored. */
static const char some_text[]
    = "// stage: kernel\n"
      "%%i = range.index{number=0, kind=loop}(%d)\n"
      "sink{name=\"some\"}(store(param.f32{slot=0, shape=[1000]}, %%i, 1.0:f32))\n";

/* Programs that nobody has a part in go when they are many, those let go of first before others, and not before what
 * is queued has run. */
static void
test_unload (void)
{
  enum { N_MORE = TINY_MAX_SPARES };
  begin ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autofree TinyNode **kernels = g_new (TinyNode *, N_MORE);
  g_autofree TinyExecutable **executables = g_new (TinyExecutable *, N_MORE);
  for (guint i = 0; i < N_MORE; i++) {
    g_autofree char *text = g_strdup_printf (some_text, i + 1);
    kernels[i] = tiny_graph_parse (graph, text, &error);
    g_assert_no_error (error);
  }
  tiny_executables_get (far, graph, kernels, NULL, N_MORE, executables, &error);
  g_assert_no_error (error);
  TinyBinding a = new_memory (far), b = new_memory (far), c = new_memory (far);
  g_autoptr (TinyLaunches) kept = tiny_launches_new ();
  TinyLaunches *launches = tiny_launches_new ();
  add_twice (kept, &c, NULL);
  add_twice (launches, &b, &a);
  asynchronous_set_gate (0);
  submit (launches);
  tiny_launches_free (launches);
  const guint n_loaded = tiny_executables_count ();
  g_assert_cmpuint (n_unloaded, ==, 0);
  GThread *gate = asynchronous_open_gate_later (50);
  for (guint i = 0; i < N_MORE; i++)
    tiny_executable_unref (executables[i]);
  g_assert_cmpuint (n_unloaded, >, TINY_MAX_SPARES / 8);
  g_assert_cmpuint (n_unloaded, <, TINY_MAX_SPARES / 2);
  g_assert_cmpuint (tiny_executables_count (), <=, n_loaded - n_unloaded); /* near's too */
  g_assert_cmpfloat (get_value (&b), ==, 2);
  submit (kept);
  g_assert_cmpfloat (get_value (&c), ==, 2);
  g_thread_join (gate);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  asynchronous_reset ();
  near = near_far_open ("CPU", NULL);
  far = near_far_open ("FAR", open_far);
  g_test_add_func ("/engine/asynchronous/goes-on", test_goes_on);
  g_test_add_func ("/engine/asynchronous/untrusted", test_untrusted);
  g_test_add_func ("/engine/asynchronous/times", test_times);
  g_test_add_func ("/engine/asynchronous/copies", test_copies);
  g_test_add_func ("/engine/asynchronous/failure", test_failure);
  g_test_add_func ("/engine/asynchronous/unload", test_unload);
  return g_test_run ();
}
