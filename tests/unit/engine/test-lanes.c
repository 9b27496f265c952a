/* SPDX-License-Identifier: MIT
 *
 * Copies between devices and kernels of different devices overlap where nothing orders them, and keep
 * the order of the list where something does. The devices are the CPU backend behind functions that take
 * their time; one of them hides its memory from the host, so that copies are commands. */
#include <string.h>

#include "base/tiny-error.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-text.h"
#include "near-far.h"

enum { N = 1000, N_BYTES = N * sizeof (float) };

static struct {
  gulong dispatch_us, copy_us;
  gint n_commands;
  gint fail_at;  /* this command of all fails; -1: none */
  GRand *random; /* sleep up to as long */
} slow;

static const TinyDeviceTable *own_table;
static TinyDeviceTable table;
static GMutex lock;
static GString
    *seen; /* of each launch: '|' when it waits for all before it, '+' when it may not */
static TinyDevice *near, *far; /* far: without host memory */

static void
take_time (const TinyCommand *command)
{
  gulong us = command->type == TINY_COMMAND_DISPATCH ? slow.dispatch_us : slow.copy_us;
  g_mutex_lock (&lock);
  if (slow.random != NULL && us > 0)
    us = (gulong) g_rand_int_range (slow.random, 0, (gint32) us);
  g_mutex_unlock (&lock);
  g_usleep (us);
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *submit,
        TinyPluginError *error)
{
  for (guint i = 0; i < submit->n_commands; i++) {
    take_time (&submit->commands[i]);
    if (seen != NULL && submit->commands[i].type == TINY_COMMAND_DISPATCH)
      g_string_append_c (seen, submit->commands[i].flags & TINY_COMMAND_OVERLAPS ? '+' : '|');
    if (g_atomic_int_add (&slow.n_commands, 1) == slow.fail_at) {
      g_strlcpy (error->text, "no more", sizeof error->text);
      return TINY_STATUS_LAUNCH;
    }
  }
  return own_table->submit (device, queue, submit, error);
}

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TinyStatus status = own_table->info (device, out, error);
  out->flags = (out->flags & ~(uint32_t) TINY_DEVICE_HOST_MEMORY) | TINY_DEVICE_OVERLAPS;
  return status;
}

static TinyStatus
open_far (const char *id,
          TinyPluginDevice **out,
          const TinyDeviceTable **out_table,
          TinyPluginError *error)
{
  TinyStatus status = own_module->open (id, out, &own_table, error);
  table = *own_table;
  table.info = info;
  table.map = NULL;
  table.submit = submit;
  *out_table = &table;
  return status;
}

/* ---- launches ---- */
static TinyBinding
new_memory (TinyDevice *device)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *values = g_new (float, N);
  TinyBinding binding = { tiny_buffer_new (device, N_BYTES), 0, N_BYTES, FALSE };
  for (guint i = 0; i < N; i++)
    values[i] = 1;
  tiny_buffer_upload (binding.buffer, 0, values, N_BYTES, &error);
  g_assert_no_error (error);
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

static const char twice_text[]
    = "// stage: kernel\n"
      "%i = range.index{number=0, kind=loop}(1000)\n"
      "%x = load.f32(param.f32{slot=1, shape=[1000]}, %i)\n"
      "sink{name=\"twice\"}(store(param.f32{slot=0, shape=[1000]}, %i, add.f32(%x, %x)))\n";

/* Adds: @to becomes twice @from. */
static void
add_twice (TinyLaunches *launches,
           TinyDevice *device,
           const TinyBinding *to,
           const TinyBinding *from)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *kernel = tiny_graph_parse (graph, twice_text, &error);
  TinyExecutable *executable;
  g_assert_no_error (error);
  tiny_executables_get (device, graph, &kernel, NULL, 1, &executable, &error);
  g_assert_no_error (error);
  const TinyBinding both[] = { *to, *from };
  tiny_launches_add_kernel (launches, device, executable, NULL, both, 2, 1);
  tiny_executable_unref (executable);
}

static double
submit_and_time (TinyLaunches *launches)
{
  g_autoptr (GError) error = NULL;
  gint64 start = g_get_monotonic_time ();
  tiny_launches_submit (launches, 0, &error);
  g_assert_no_error (error);
  return (double) (g_get_monotonic_time () - start) * 1e-3;
}

/* A kernel, and a copy to the same device of what it has nothing to do with: as long as one of them. */
static void
test_overlap (void)
{
  g_autoptr (TinyLaunches) launches = tiny_launches_new ();
  TinyBinding a = new_memory (far), b = new_memory (far), c = new_memory (far),
              source = new_memory (near);
  add_twice (launches, far, &b, &a);
  tiny_launches_add_copy (launches, &c, &source);
  submit_and_time (launches);
  slow.dispatch_us = slow.copy_us = 200000;
  double ms = submit_and_time (launches);
  slow.dispatch_us = slow.copy_us = 0;
  g_test_message ("a kernel of 200 ms and a copy of 200 ms: %.0f ms", ms);
  g_assert_cmpfloat (ms, >=, 200);
  g_assert_cmpfloat (ms, <, 350);
  g_assert_cmpfloat (get_value (&b), ==, 2);
  g_assert_cmpfloat (get_value (&c), ==, 1);
}

/* Back and forth, doubled on the way: a copy waits for the kernel that writes its source, a kernel for
 * the copy, and a kernel that overwrites what a copy reads for that copy. */
static void
test_order (void)
{
  enum { ROUNDS = 6, REPLAYS = 20 };
  g_autoptr (TinyLaunches) launches = tiny_launches_new ();
  TinyBinding here = new_memory (near), there = new_memory (far), kept = new_memory (near),
              one = new_memory (far);
  for (guint i = 0; i < ROUNDS; i++) {
    tiny_launches_add_copy (launches, &there, &here);
    add_twice (launches, far, &there, &there);
    tiny_launches_add_copy (launches, &here, &there);
    add_twice (launches, near, &here, &here);
    tiny_launches_add_copy (launches, &kept, &there);
    add_twice (launches, far, &there, &one); /* what was kept is not this */
  }
  slow.random = g_rand_new_with_seed (1);
  slow.dispatch_us = slow.copy_us = 2000;
  float ones[N];
  for (guint i = 0; i < N; i++)
    ones[i] = 1;
  for (guint replay = 0; replay < REPLAYS; replay++) {
    g_assert_true (tiny_buffer_upload (here.buffer, 0, ones, N_BYTES, NULL));
    submit_and_time (launches);
    g_assert_cmpfloat (get_value (&here), ==, 1 << 2 * ROUNDS);
    g_assert_cmpfloat (get_value (&kept), ==, 1 << (2 * ROUNDS - 1));
    g_assert_cmpfloat (get_value (&there), ==, 2);
  }
  slow.dispatch_us = slow.copy_us = 0;
  g_clear_pointer (&slow.random, g_rand_free);
}

/* Whichever command fails, the call fails with its error and comes back. */
static void
test_failure (void)
{
  TinyBinding here = new_memory (near), there = new_memory (far);
  for (slow.fail_at = 0; slow.fail_at < 4; slow.fail_at++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLaunches) launches = tiny_launches_new ();
    for (guint i = 0; i < 2; i++) {
      tiny_launches_add_copy (launches, &there, &here);
      add_twice (launches, far, &there, &there);
      add_twice (launches, near, &here, &here);
    }
    g_atomic_int_set (&slow.n_commands, 0);
    g_assert_false (tiny_launches_submit (launches, 0, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
    g_assert_nonnull (strstr (error->message, "no more"));
  }
  slow.fail_at = -1;
}

/* Memory that is exchanged orders launches that it did not order before. */
static void
test_replace (void)
{
  g_autoptr (TinyLaunches) launches = tiny_launches_new ();
  TinyBinding a = new_memory (far), b = new_memory (far), c = new_memory (far),
              here = new_memory (near);
  add_twice (launches, far, &b, &a);
  tiny_launches_add_copy (launches, &here, &c);
  submit_and_time (launches);
  tiny_launches_replace (launches, &c.buffer, &b.buffer, 1);
  slow.dispatch_us = 20000;
  submit_and_time (launches);
  slow.dispatch_us = 0;
  g_assert_cmpfloat (get_value (&here), ==, 2);
}

static void
check_together (TinyLaunches *launches, const char *expected)
{
  seen = g_string_new ("");
  submit_and_time (launches);
  g_assert_cmpstr (seen->str, ==, expected);
  g_string_free (seen, TRUE);
  seen = NULL;
}

/* Launches that have nothing to wait for say so; other buffers, other answers. */
static void
test_together (void)
{
  enum { PART = 4096 }; /* aligned */
  g_autoptr (TinyLaunches) launches = tiny_launches_new ();
  TinyBinding a = new_memory (far), b = new_memory (far), c = new_memory (far),
              d = new_memory (far), parts[2] = { new_memory (far), new_memory (far) };
  add_twice (launches, far, &b, &a);
  add_twice (launches, far, &c, &a);
  add_twice (launches, far, &d, &a); /* reads what others read */
  add_twice (launches, far, &a, &d); /* reads what is written */
  add_twice (launches, far, &c, &b);
  add_twice (launches, far, &b, &d); /* writes what is read */
  add_twice (launches, far, &b, &d); /* writes what is written */
  check_together (launches, "|++|+||");
  tiny_launches_replace (launches, &c.buffer, &d.buffer, 1);
  check_together (launches, "|+|||||");
  /* Parts of one buffer. */
  g_autoptr (TinyLaunches) halves = tiny_launches_new ();
  TinyBinding whole = { tiny_buffer_new (far, 2 * PART), 0, N_BYTES, FALSE };
  for (guint i = 0; i < 3; i++) {
    whole.offset = i % 2 * PART;
    add_twice (halves, far, &whole, &parts[i % 2]);
  }
  check_together (halves, "|+|");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  slow.fail_at = -1;
  near = near_far_open ("CPU", NULL);
  far = near_far_open ("FAR", open_far);
  g_test_add_func ("/engine/lanes/overlap", test_overlap);
  g_test_add_func ("/engine/lanes/order", test_order);
  g_test_add_func ("/engine/lanes/failure", test_failure);
  g_test_add_func ("/engine/lanes/replace", test_replace);
  g_test_add_func ("/engine/lanes/together", test_together);
  return g_test_run ();
}
