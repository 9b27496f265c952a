/* SPDX-License-Identifier: MIT
 *
 * test-together.c: tensors of several devices in one program, every pair of those that are there: copies
 * both ways, errors where they are mixed without one, an expression and a replayed step that go through
 * all of them, training with data on one and the model on another, a thread for each. */
#include "../device-there.h"
#include "../unit/case-fails.h"
#include "tiny.h"

#define T(name) tiny_tensor_##name
enum { N = 1001, MAX_DEVICES = 8 };

static const char *devices[MAX_DEVICES];
static guint n_devices;

/* ---- helpers ---- */
static TinyTensor *
numbers (const char *device, guint n, float step)
{
  g_autofree float *values = g_new (float, n);
  for (guint i = 0; i < n; i++)
    values[i] = (float) i * step;
  return g_object_ref_sink (T (new_from_data) (device, TINY_DTYPE_F32, (gint64[]){ n }, 1,
                                               values, n * sizeof (float)));
}

static void
check_numbers (TinyTensor *tensor, const char *device, guint n, float step)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *found = g_new (float, n);
  if (!T (copy_data) (tensor, found, n * sizeof (float), &error)) {
    CASE_FAILS ("%s: %s", device, error->message);
    return;
  }
  g_assert_cmpstr (T (get_device) (tensor), ==, device);
  for (guint i = 0; i < n; i++)
    if (found[i] != (float) i * step) {
      CASE_FAILS ("%s: element %u is %g, and %g is right", device, i, (double) found[i],
                  (double) ((float) i * step));
      return;
    }
}

/* A test for each pair of the devices that are there, TOGETHER/WHAT/A-B. */
typedef struct {
  void (*check) (const char *a, const char *b);
  const char *a, *b;
} Pair;

static void
test_pair (gconstpointer data)
{
  const Pair *pair = data;
  pair->check (pair->a, pair->b);
}

static void
add_pairs (const char *what, void (*check) (const char *a, const char *b))
{
  for (guint i = 0; i < n_devices * n_devices; i++) {
    const Pair pair = { check, devices[i / n_devices], devices[i % n_devices] };
    g_autofree char *path = g_strdup_printf ("/together/%s/%s-%s", what, pair.a, pair.b);
    if (pair.a != pair.b)
      g_test_add_data_func_full (path, g_memdup2 (&pair, sizeof pair), test_pair, g_free);
  }
}

/* ---- copies ---- */
static void
check_copies (const char *a, const char *b)
{
  g_autoptr (TinyTensor) here = numbers (a, N, 1), there = numbers (b, N, 2);
  g_autoptr (TinyTensor) moved = g_object_ref_sink (T (to) (here, b));
  g_autoptr (TinyTensor) sum = g_object_ref_sink (T (add) (moved, there));
  check_numbers (sum, b, N, 3);
  check_numbers (here, a, N, 1);
  /* There and back in one expression. */
  g_autoptr (TinyTensor) round
      = g_object_ref_sink (T (to) (T (mul_number) (T (to) (T (add) (here, here), b), 2), a));
  check_numbers (round, a, N, 4);
}

/* Bytes, an odd number of them, and a part that begins and ends inside of a word. */
static void
check_bytes (const char *a, const char *b)
{
  guint8 bytes[N], found[N - 8];
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < N; i++)
    bytes[i] = (guint8) (i * 7);
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      T (new_from_data) (a, TINY_DTYPE_U8, (gint64[]){ N }, 1, bytes, sizeof bytes));
  g_autoptr (TinyTensor) part
      = g_object_ref_sink (T (to) (T (shrink) (x, (gint64[]){ 3, N - 5 }, 2), b));
  T (copy_data) (part, found, sizeof found, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (found, sizeof found, bytes + 3, sizeof found);
}

/* ---- mixed without a copy ---- */
static void
check_refused (const char *what, TinyTensor *made, const char *a, const char *b)
{
  g_autoptr (TinyTensor) mixed = g_object_ref_sink (made);
  g_autoptr (GError) error = NULL;
  const GError *found = T (get_error) (mixed);
  if (!g_error_matches (found, TINY_ERROR, TINY_ERROR_INVALID)
      || strstr (found->message, a) == NULL || strstr (found->message, b) == NULL) {
    CASE_FAILS ("%s with %s: “%s” does not refuse it", what, b,
                found != NULL ? found->message : "");
    return;
  }
  g_assert_false (T (realize) (mixed, &error));
  g_assert_cmpstr (error->message, ==, found->message);
}

static void
check_mixed (const char *a, const char *b)
{
  g_autoptr (TinyTensor) here = numbers (a, 16, 1), there = numbers (b, 16, 2);
  TinyTensor *both[] = { here, there };
  check_refused ("add", T (add) (here, there), a, b);
  check_refused ("where", T (where) (T (lt) (here, T (scalar) (3)), here, there), a, b);
  check_refused ("cat", T (cat) (both, 2, 0), a, b);
  check_refused ("index_select", T (index_select) (here, 0, T (cast) (there, TINY_DTYPE_I32)),
                 a, b);
  check_refused ("matmul",
                 T (matmul) (T (reshape) (here, (gint64[]){ 4, 4 }, 2),
                             T (reshape) (there, (gint64[]){ 4, 4 }, 2)),
                 a, b);
  g_autoptr (GError) error = NULL;
  g_assert_false (T (assign) (here, T (add_number) (there, 1), &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, a));
  g_assert_nonnull (strstr (error->message, b));
  /* Neither is the worse for it. */
  check_numbers (here, a, 16, 1);
  check_numbers (there, b, 16, 2);
}

/* ---- through all devices ---- */
/* Consumes nothing: x·2ⁿ, a factor on each device, back where it began. */
static TinyTensor *
go_round (TinyTensor *x)
{
  TinyTensor *y = T (mul_number) (x, 2);
  for (guint i = 1; i < n_devices; i++)
    y = T (mul_number) (T (to) (y, devices[i]), 2);
  return T (to) (y, devices[0]);
}

static gboolean
step_round (TinyTensor *const *inputs,
            guint n_inputs,
            TinyTensor **outputs,
            guint n_outputs,
            gpointer user_data,
            GError **error)
{
  outputs[0] = g_object_ref_sink (go_round (inputs[0]));
  return T (realize) (outputs[0], error);
}

static void
test_round (void)
{
  g_autoptr (GError) error = NULL;
  float factor = (float) (1 << n_devices);
  g_autoptr (TinyTensor) x = numbers (devices[0], N, 1);
  g_autoptr (TinyTensor) y = g_object_ref_sink (go_round (x));
  check_numbers (y, devices[0], N, factor);
  g_autoptr (TinyJit) jit = tiny_jit_new (step_round, NULL, NULL, 1);
  for (guint i = 1; i < 7; i++) {
    g_autoptr (TinyTensor) input = numbers (devices[0], N, (float) i);
    TinyTensor *output;
    g_assert_true (tiny_jit_call (jit, &input, 1, &output, &error));
    g_assert_no_error (error);
    check_numbers (output, devices[0], N, (float) i * factor);
  }
}

/* What all devices hold is computed in one call. */
static void
test_many (void)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *made[MAX_DEVICES];
  g_autoptr (TinyTensor) x = numbers (devices[0], N, 1);
  for (guint i = 0; i < n_devices; i++)
    made[i] = g_object_ref_sink (T (mul_number) (T (to) (x, devices[i]), i + 1.0));
  g_assert_true (T (realize_many) (made, n_devices, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < n_devices; i++) {
    check_numbers (made[i], devices[i], N, (float) i + 1);
    g_object_unref (made[i]);
  }
}

/* ---- training ---- */
/* One weight per input, y = x·w: steps of descent where data stay on one device and the model on another. */
static float
train (const char *data_device, const char *model_device)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = numbers (data_device, 64, 0.01f);
  g_autoptr (TinyTensor) w = numbers (model_device, 64, 0.001f);
  float value = 0;
  for (guint step = 0; step < 4; step++) {
    g_autoptr (TinyTensor) loss = g_object_ref_sink (T (square) (T (sub) (
        T (sum) (T (mul) (T (to) (x, model_device), w), NULL, 0, FALSE), T (scalar) (1))));
    TinyTensor *gradient;
    g_assert_true (tiny_gradient (loss, &w, 1, &gradient, &error));
    g_assert_no_error (error);
    T (copy_data) (loss, &value, sizeof value, &error);
    g_assert_no_error (error);
    g_assert_true (T (assign) (w, T (sub) (w, T (mul_number) (gradient, 0.005)), &error));
    g_assert_cmpstr (T (get_device) (w), ==, model_device);
    g_object_unref (gradient);
  }
  return value;
}

static void
check_training (const char *a, const char *b)
{
  g_assert_cmpfloat_with_epsilon (train (a, b), train ("CPU", "CPU"), 1e-5);
}

static void
test_training (void)
{
  g_assert_cmpfloat (train ("CPU", "CPU"), <, 0.5);
}

/* ---- threads ---- */
static gpointer
work (gpointer device)
{
  for (guint i = 1; i <= 20; i++) {
    g_autoptr (TinyTensor) x = numbers (device, N, (float) i);
    g_autoptr (TinyTensor) twice = g_object_ref_sink (T (mul_number) (x, 2));
    g_autoptr (TinyTensor) home = g_object_ref_sink (T (to) (twice, "CPU"));
    check_numbers (twice, device, N, 2 * (float) i);
    check_numbers (home, "CPU", N, 2 * (float) i);
  }
  return NULL;
}

static void
test_threads (void)
{
  GThread *threads[MAX_DEVICES];
  for (guint i = 0; i < n_devices; i++)
    threads[i] = g_thread_new (devices[i], work, (gpointer) devices[i]);
  for (guint i = 0; i < n_devices; i++)
    g_thread_join (threads[i]);
}

/* ---- which there are ---- */
static void
test_there (gconstpointer name)
{
  g_autofree char *reason = device_find_obstacle (name);
  if (reason != NULL)
    g_test_skip (reason);
}

int
main (int argc, char *argv[])
{
  static const char *const wanted[] = { "CPU", "REF", "CL", "WEBGPU" };
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (wanted); i++) {
    g_autofree char *path = g_strconcat ("/together/there/", wanted[i], NULL);
    g_autofree char *reason = device_find_obstacle (wanted[i]);
    g_test_add_data_func (path, wanted[i], test_there);
    if (reason == NULL)
      devices[n_devices++] = wanted[i];
  }
  add_pairs ("copies", check_copies);
  add_pairs ("bytes", check_bytes);
  add_pairs ("mixed", check_mixed);
  g_test_add_func ("/together/round", test_round);
  g_test_add_func ("/together/many", test_many);
  g_test_add_func ("/together/training/alone", test_training);
  add_pairs ("training", check_training);
  g_test_add_func ("/together/threads", test_threads);
  return g_test_run ();
}
