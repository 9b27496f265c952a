/* SPDX-License-Identifier: MIT
 *
 * test-interrupt.c: a thread that computes stops when it is told to, with all tensors as they were. */
#include <gio/gio.h>
#include <math.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "base/tiny-timing.h"
#include "engine/tiny-runtime.h"
#include "tiny.h"

enum { N = 32, LENGTH = 150 };

/* Says stop when it is asked for the @stop_at-th time. */
typedef struct {
  guint n_asked, stop_at;
} Asked;

static gboolean
is_enough (gpointer data)
{
  Asked *self = data;
  return ++self->n_asked == self->stop_at;
}

/* As many kernels as it is long; nothing is computed yet. */
static TinyTensor *
make_chain (TinyTensor *from)
{
  const gint64 dims[] = { N, N };
  TinyTensor *y = tiny_tensor_ones (TINY_DTYPE_F32, dims, 2);
  for (guint i = 0; i < LENGTH; i++)
    y = tiny_tensor_matmul (y, from);
  return g_object_ref_sink (y);
}

/* In memory: a matrix that leaves one of ones as it is. */
static TinyTensor *
make_mean (void)
{
  const gint64 dims[] = { N, N };
  g_autoptr (GError) error = NULL;
  TinyTensor *x = g_object_ref_sink (
      tiny_tensor_contiguous (tiny_tensor_full (TINY_DTYPE_F32, dims, 2, 1.0 / N)));
  tiny_tensor_realize (x, &error);
  g_assert_no_error (error);
  return x;
}

static void
assert_all (TinyTensor *tensor, float expected)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *values = g_new (float, N *N);
  tiny_tensor_copy_data (tensor, values, N * N * sizeof (float), &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N * N; i++)
    g_assert_cmpfloat_with_epsilon (values[i], expected, 1e-4);
}

/* A long computation stops where it is told to, and can be asked for again. */
static void
test_long (void)
{
  g_autoptr (TinyTensor) x = make_mean ();
  for (guint stop_at = 1; stop_at <= 2; stop_at++) {
    g_autoptr (TinyTensor) y = make_chain (x);
    g_autoptr (GError) error = NULL;
    Asked asked = { 0, stop_at };
    tiny_set_interrupt_check (is_enough, &asked, NULL);
    g_assert_false (tiny_tensor_realize (y, &error));
    tiny_set_interrupt_check (NULL, NULL, NULL);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INTERRUPTED);
    g_assert_cmpuint (asked.n_asked, ==, stop_at);
    g_assert_false (tiny_tensor_is_realized (y));
    assert_all (y, 1);
  }
}

/* The thread's own GCancellable says the same. */
static void
test_cancellable (void)
{
  g_autoptr (TinyTensor) x = make_mean (), y = make_chain (x);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_cancellable_push_current (cancellable);
  g_cancellable_cancel (cancellable);
  g_assert_false (tiny_tensor_realize (y, &error));
  g_cancellable_pop_current (cancellable);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  assert_all (y, 1);
}

/* Cancels the thread at the end of the first stretch of work that it is for, and counts those that begin there after that. */
typedef struct {
  GThread *thread;
  GCancellable *cancellable;
  const char *category, *name; /* of the stretch at whose end it cancels; NULL: of any name */
  const char *next_category, *next_name; /* of those that it counts */
  guint n_to_go;                         /* such stretches until that one */
  gint64 cancelled_ns;                   /* 0: not yet */
  guint n_begun;
} Stop;

static gboolean
is_named (const TinyTiming *timing, const char *category, const char *name)
{
  return g_str_equal (timing->category, category)
         && (name == NULL || g_str_equal (timing->name, name));
}

static void
stop_there (const TinyTiming *timing, gpointer data)
{
  Stop *self = data;
  if (g_thread_self () != self->thread)
    return;
  if (self->cancelled_ns > 0) {
    self->n_begun += timing->start_ns >= self->cancelled_ns
                     && is_named (timing, self->next_category, self->next_name);
  } else if (is_named (timing, self->category, self->name) && self->n_to_go-- == 0) {
    g_cancellable_cancel (self->cancellable);
    self->cancelled_ns = tiny_timing_now_ns ();
  }
}

/* TRUE if it was stopped, and then nothing of what comes next was begun. */
static gboolean
realize_and_stop (TinyTensor *const *tensors, guint n, Stop *stop)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  stop->thread = g_thread_self ();
  stop->cancellable = cancellable;
  g_cancellable_push_current (cancellable);
  g_assert_true (tiny_timing_watch (stop_there, stop));
  gboolean good = tiny_tensor_realize_many (tensors, n, &error);
  tiny_timing_unwatch (stop_there, stop);
  g_cancellable_pop_current (cancellable);
  if (stop->cancelled_ns > 0)
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  else
    g_assert_no_error (error);
  g_assert_cmpuint (stop->n_begun, ==, 0);
  return !good;
}

/* It stops between any two passes of scheduling. */
static void
test_passes_of_schedule (void)
{
  static const char *const passes[]
      = { "split-reduce", "fusion", "layout", "buffers", "lower" };
  g_autoptr (TinyTensor) x = make_mean (), chain = make_chain (x);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_cos (chain)); /* no plan is kept */
  for (guint i = 0; i < G_N_ELEMENTS (passes); i++)
    for (guint next = 0; next < G_N_ELEMENTS (passes); next++) {
      Stop stop = { .category = "schedule", .name = passes[i] };
      stop.next_category = "schedule";
      stop.next_name = passes[next];
      g_assert_true (realize_and_stop (&y, 1, &stop));
    }
  assert_all (y, cosf (1));
}

/* It stops between any two passes of code generation. */
static void
test_passes_of_codegen (void)
{
  g_autoptr (TinyTensor) x = make_mean ();
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (tiny_tensor_sin (tiny_tensor_add_number (x, 0.125)));
  guint n_stopped = 0;
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1); /* of an earlier run */
  for (gboolean is_stopped = TRUE; is_stopped; n_stopped += is_stopped) {
    Stop stop = { .category = "codegen", .n_to_go = n_stopped, .next_category = "codegen" };
    is_stopped = realize_and_stop (&y, 1, &stop);
  }
  tiny_env_set_int (TINY_ENV_NO_CACHE, 0);
  g_assert_cmpuint (n_stopped, >, 5);
  assert_all (y, sinf (0.125F + 1.0F / N));
}

/* It stops between any two kernels that are made. */
static void
test_kernels (void)
{
  TinyTensor *all[N - 1];
  g_autoptr (TinyTensor) x = make_mean ();
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    const gint64 pairs[] = { 0, N, 0, i + 1 };
    all[i] = g_object_ref_sink (tiny_tensor_exp (tiny_tensor_shrink (x, pairs, 4)));
  }
  Stop stop = { .category = "engine", .name = "kernel" };
  stop.next_category = "engine";
  stop.next_name = "cache read";
  g_assert_true (realize_and_stop (all, G_N_ELEMENTS (all), &stop));
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    g_assert_false (tiny_tensor_is_realized (all[i]));
    g_object_unref (all[i]);
  }
}

/* ---- replays ---- */
typedef struct {
  TinyTensor *x, *first, *last;
} Step;

/* Two assignments, with many products between them that the second waits for. */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  Step *self = user_data;
  if (!tiny_tensor_assign (self->first, tiny_tensor_add_number (self->first, 1), error))
    return FALSE;
  TinyTensor *y = tiny_tensor_mul_number (self->first, 0);
  for (guint i = 0; i < LENGTH; i++)
    y = tiny_tensor_matmul (y, self->x);
  TinyTensor *next = tiny_tensor_add (tiny_tensor_add_number (self->last, 1), y);
  outputs[0] = g_object_ref (self->last);
  return tiny_tensor_assign (self->last, next, error)
         && tiny_tensor_realize_many ((TinyTensor *[]){ self->first, self->last }, 2, error);
}

/* A replay that has begun to write what is seen goes on to its end. */
static void
test_replay (void)
{
  g_autoptr (TinyTensor) x = make_mean (), first = make_mean (), last = make_mean ();
  Step self = { x, first, last };
  g_autoptr (TinyJit) jit = tiny_jit_new (step, &self, NULL, 1);
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < 5; i++) {
    Asked asked = { 0, i < 2 ? 0 : i - 1 };
    tiny_set_interrupt_check (is_enough, &asked, NULL);
    tiny_jit_call (jit, NULL, 0, NULL, &error);
    tiny_set_interrupt_check (NULL, NULL, NULL);
    g_assert_no_error (error);
    assert_all (first, 1.0F / N + (float) i + 1);
    assert_all (last, 1.0F / N + (float) i + 1);
  }
}

/* ---- waiting for another thread ---- */
typedef struct {
  GMutex lock;
  GCond cond;
  gboolean has_it, is_told;
} Holder;

/* Has the runtime's lock, as a thread that computes, until it is told to go on; at most some seconds. */
static gpointer
hold (gpointer data)
{
  Holder *self = data;
  const gint64 end_us = g_get_monotonic_time () + 5 * G_TIME_SPAN_SECOND;
  tiny_runtime_lock ();
  g_mutex_lock (&self->lock);
  self->has_it = TRUE;
  g_cond_broadcast (&self->cond);
  while (!self->is_told && g_cond_wait_until (&self->cond, &self->lock, end_us))
    ;
  g_mutex_unlock (&self->lock);
  tiny_runtime_unlock ();
  return NULL;
}

static GThread *
start_holder (Holder *self)
{
  GThread *thread = g_thread_new ("holder", hold, self);
  g_mutex_lock (&self->lock);
  while (!self->has_it)
    g_cond_wait (&self->cond, &self->lock);
  g_mutex_unlock (&self->lock);
  return thread;
}

/* A thread stops while it waits for one that computes: in whatever builds, computes or reads a tensor. */
static void
test_waiting (void)
{
  static const char *const names[]
      = { "add", "mean", "realize", "copy", "write", "backward", "gradient" };
  const gint64 dims[] = { N, N };
  g_autofree float *values = g_new0 (float, N *N);
  g_autoptr (TinyTensor) x = make_mean (), y = make_chain (x), w = make_mean ();
  tiny_tensor_set_requires_grad (w, TRUE);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_sum (w, NULL, 0, FALSE));
  Holder holder = { 0 };
  GThread *thread = start_holder (&holder);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) made = NULL;
    g_autoptr (GPtrArray) list = NULL;
    Asked asked = { 0, 1 };
    gboolean good = FALSE;
    tiny_set_interrupt_check (is_enough, &asked, NULL);
    switch (i) {
    case 0:
      made = g_object_ref_sink (tiny_tensor_add_number (x, 1));
      break;
    case 1:
      made = g_object_ref_sink (
          tiny_tensor_mean (tiny_tensor_full (TINY_DTYPE_F32, dims, 2, 1), NULL, 0, FALSE));
      break;
    case 2:
      good = tiny_tensor_realize (y, &error);
      break;
    case 3:
      good = tiny_tensor_copy_data (x, values, N * N * sizeof (float), &error);
      break;
    case 4:
      good = tiny_tensor_write_data (x, values, N * N * sizeof (float), &error);
      break;
    case 5:
      good = tiny_tensor_backward (loss, &error);
      break;
    default:
      list = tiny_tensor_gradient (loss, &w, 1, NULL);
      made = g_object_ref (list->pdata[0]);
    }
    tiny_set_interrupt_check (NULL, NULL, NULL);
    g_test_message ("%s", names[i]);
    if (made != NULL)
      g_assert_error (tiny_tensor_get_error (made), TINY_ERROR, TINY_ERROR_INTERRUPTED);
    else
      g_assert_error (error, TINY_ERROR, TINY_ERROR_INTERRUPTED);
    g_assert_false (good);
    g_assert_cmpuint (asked.n_asked, ==, 1);
  }
  g_mutex_lock (&holder.lock);
  holder.is_told = TRUE;
  g_cond_broadcast (&holder.cond);
  g_mutex_unlock (&holder.lock);
  g_thread_join (thread);
  assert_all (y, 1);
  assert_all (x, 1.0F / N);
}

/* The time of day, which somebody sets back at the first look at it. */
static gint is_set_back, n_looks;

int
clock_gettime (clockid_t clock, struct timespec *out)
{
  const int status = (int) syscall (SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME && g_atomic_int_get (&is_set_back) != 0
      && g_atomic_int_add (&n_looks, 1) == 0)
    out->tv_sec += 3600;
  return status;
}

/* A thread that waits is told to stop all the same. */
static void
test_set_back (void)
{
#ifdef __SANITIZE_THREAD__
  g_test_skip (
      "ThreadSanitizer knows no lock that waits by another clock than the time of day");
  return;
#endif
  Asked asked = { 0, 3 };
  g_autoptr (GError) error = NULL;
  Holder holder = { 0 };
  GThread *thread = start_holder (&holder);
  g_atomic_int_set (&is_set_back, 1);
  tiny_set_interrupt_check (is_enough, &asked, NULL);
  g_assert_false (tiny_runtime_lock_or_stop (&error));
  tiny_set_interrupt_check (NULL, NULL, NULL);
  g_atomic_int_set (&is_set_back, 0);
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INTERRUPTED);
  g_mutex_lock (&holder.lock);
  holder.is_told = TRUE;
  g_cond_broadcast (&holder.cond);
  g_mutex_unlock (&holder.lock);
  g_thread_join (thread);
}

/* @data goes when another check is set. */
static void
count_up (gpointer data)
{
  ++*(guint *) data;
}

/* @data goes when another check is set, or none is set with it. */
static void
test_destroy (void)
{
  guint n_destroyed = 0;
  tiny_set_interrupt_check (is_enough, &n_destroyed, count_up);
  g_assert_cmpuint (n_destroyed, ==, 0);
  tiny_set_interrupt_check (NULL, &n_destroyed, count_up);
  g_assert_cmpuint (n_destroyed, ==, 2);
}

typedef struct {
  guint n_asked, depth, n_destroyed;
} Nested;

static void
count_destroyed (gpointer data)
{
  ((Nested *) data)->n_destroyed++;
}

/* Does what it must not: computes for longer than a check waits for its turn, and sets another. */
static gboolean
calls_back (gpointer data)
{
  Nested *self = data;
  g_assert_cmpuint (++self->depth, ==, 1);
  if (self->n_asked++ == 0) {
    g_usleep (30000);
    g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_add (
        tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 2 }, 1), tiny_tensor_scalar_float (2)));
    tiny_tensor_realize (y, NULL);
    g_test_expect_message ("tinycore", G_LOG_LEVEL_CRITICAL,
                           "*replaces itself while it is asked*");
    tiny_set_interrupt_check (calls_back, self, count_destroyed);
    g_test_assert_expected_messages ();
    g_assert_cmpuint (self->n_destroyed, ==, 1); /* that of the new one */
  }
  self->depth--;
  return FALSE;
}

/* A check that calls the library is not asked by what it calls, and is there until it has returned. */
static void
test_nested (void)
{
  Nested nested = { 0 };
  g_autoptr (TinyTensor) x = make_mean ();
  g_autoptr (TinyTensor) y = make_chain (x);
  tiny_set_interrupt_check (calls_back, &nested, count_destroyed);
  assert_all (y, 1);
  g_assert_cmpuint (nested.n_asked, >, 1);
  g_assert_cmpuint (nested.n_destroyed, ==, 1);
  tiny_set_interrupt_check (NULL, NULL, NULL);
  g_assert_cmpuint (nested.n_destroyed, ==, 2);
}

int
main (int argc, char **argv)
{
  g_setenv ("DEV", "REF", FALSE);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/engine/interrupt/long", test_long);
  g_test_add_func ("/engine/interrupt/cancellable", test_cancellable);
  g_test_add_func ("/engine/interrupt/passes-of-schedule", test_passes_of_schedule);
  g_test_add_func ("/engine/interrupt/passes-of-codegen", test_passes_of_codegen);
  g_test_add_func ("/engine/interrupt/kernels", test_kernels);
  g_test_add_func ("/engine/interrupt/replay", test_replay);
  g_test_add_func ("/engine/interrupt/waiting", test_waiting);
  g_test_add_func ("/engine/interrupt/set-back", test_set_back);
  g_test_add_func ("/engine/interrupt/destroy", test_destroy);
  g_test_add_func ("/engine/interrupt/nested", test_nested);
  return g_test_run ();
}
