/* SPDX-License-Identifier: MIT
 *
 * test-replay.c: a replayed step allocates nothing, and no result depends on the number of threads.
 *
 * malloc() and its kin are this program's own and count; what they give is the C library's. With
 * sanitizers, which need them for themselves, counting is left out. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../device-there.h"
#include "engine/tiny-runtime.h"
#include "tiny.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define CAN_COUNT 0
static atomic_uint n_allocations;
#else
#define CAN_COUNT 1
static atomic_uint n_allocations;
extern void *__libc_malloc (size_t size);
extern void *__libc_calloc (size_t n, size_t size);
extern void *__libc_realloc (void *memory, size_t size);
extern void *__libc_memalign (size_t alignment, size_t size);

void *
malloc (size_t size)
{
  n_allocations++;
  return __libc_malloc (size);
}

void *
calloc (size_t n, size_t size)
{
  n_allocations++;
  return __libc_calloc (n, size);
}

void *
realloc (void *memory, size_t size)
{
  n_allocations++;
  return __libc_realloc (memory, size);
}

int
posix_memalign (void **out, size_t alignment, size_t size)
{
  n_allocations++;
  *out = __libc_memalign (alignment, size);
  return *out != NULL ? 0 : 12;
}
#endif

enum { N_IN = 64, N_HIDDEN = 96, BATCH = 48, N_STEPS = 12 };

static TinyTensor *
some_tensor (guint seed, const gint64 *shape, guint n_dims)
{
  gsize n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= (gsize) shape[i];
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  g_autofree float *values = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    values[i] = (float) g_rand_double_range (rand, -1, 1);
  return g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, n_dims,
                                                       values, n * sizeof *values));
}

/* ---- a step of training ---- */
typedef struct {
  TinyModule *net;
  TinyOptimizer *optimizer;
  TinyJit *jit;
} Trained;

static gboolean
train (TinyTensor *const *inputs,
       guint n_inputs,
       TinyTensor **outputs,
       guint n_outputs,
       gpointer user_data,
       GError **error)
{
  Trained *self = user_data;
  TinyTensor *target = tiny_tensor_sum (tiny_tensor_square (inputs[0]), (gint[]){ 1 }, 1, TRUE);
  TinyTensor *difference = tiny_tensor_sub (tiny_module_forward (self->net, inputs[0]), target);
  TinyTensor *loss
      = g_object_ref_sink (tiny_tensor_mean (tiny_tensor_square (difference), NULL, 0, FALSE));
  outputs[0] = loss;
  tiny_optimizer_zero_grad (self->optimizer);
  return tiny_tensor_backward (loss, error)
         && tiny_optimizer_step (self->optimizer, &loss, 1, error);
}

static void
set_up (Trained *self)
{
  tiny_tensor_manual_seed (5);
  self->net = tiny_sequential_new ();
  tiny_sequential_append (self->net, tiny_linear_new (N_IN, N_HIDDEN, TRUE));
  tiny_sequential_append (self->net, tiny_function_new (tiny_tensor_relu));
  tiny_sequential_append (self->net, tiny_linear_new (N_HIDDEN, 1, TRUE));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (self->net);
  self->optimizer = tiny_adam_new ((TinyTensor *const *) parameters->pdata, parameters->len,
                                   1e-3, 0.9, 0.999, 1e-8, 0);
  self->jit = tiny_jit_new (train, self, NULL, 1);
}

static void
clear (Trained *self)
{
  g_clear_object (&self->jit);
  g_clear_object (&self->optimizer);
  g_clear_object (&self->net);
}

static gboolean
is_on (const char *name)
{
  const char *device = tiny_runtime_get_default_device (NULL);
  return device != NULL && g_str_has_prefix (device, name);
}

static void
test_allocations (void)
{
  if (!CAN_COUNT) {
    g_test_skip ("the sanitizer has malloc() for itself");
    return;
  }
  if (!is_on ("CPU")) {
    g_test_skip ("what interpreters and drivers allocate for a launch is theirs");
    return;
  }
  g_autoptr (GError) error = NULL;
  Trained trained = { 0 };
  set_up (&trained);
  g_autoptr (TinyTensor) a = some_tensor (1, (gint64[]){ BATCH, N_IN }, 2);
  g_autoptr (TinyTensor) b = some_tensor (2, (gint64[]){ BATCH, N_IN }, 2);
  guint before = 0;
  for (guint i = 0; i < N_STEPS; i++) {
    TinyTensor *loss, *x = i % 2 ? a : b;
    if (i == 4) { /* run, recorded, each input replayed once */
      before = atomic_load (&n_allocations);
      g_assert_cmpuint (before, >, 100); /* counting works */
    }
    g_assert_true (tiny_jit_call (trained.jit, &x, 1, &loss, &error));
    g_assert_no_error (error);
  }
  g_assert_cmpuint (atomic_load (&n_allocations) - before, ==, 0);
  g_assert_cmpuint (tiny_jit_get_n_kernels (trained.jit), >, 3);
  clear (&trained);
}

/* ---- copies ---- */
static gboolean
send (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  outputs[0] = g_object_ref_sink (tiny_tensor_to (inputs[0], user_data));
  return tiny_tensor_realize (outputs[0], error);
}

/* A copy to another device is no allocation either, but for a driver's own, and brings what the input
 * holds this time. */
static void
test_copies (void)
{
  enum { N = 5000 };
  g_autoptr (GError) error = NULL;
  const char *away = is_on ("CPU") ? "REF" : "CPU";
  gboolean counts = CAN_COUNT && (is_on ("CPU") || is_on ("REF"));
  g_autoptr (TinyJit) jit = tiny_jit_new (send, (gpointer) away, NULL, 1);
  g_autoptr (TinyTensor) a = some_tensor (1, (gint64[]){ N }, 1);
  g_autoptr (TinyTensor) b = some_tensor (2, (gint64[]){ N }, 1);
  float sent[N], got[N];
  for (guint i = 0; i < N_STEPS; i++) {
    TinyTensor *there, *x = i % 2 ? a : b;
    guint before = atomic_load (&n_allocations);
    g_assert_true (tiny_jit_call (jit, &x, 1, &there, &error));
    g_assert_no_error (error);
    if (i >= 4 && counts)
      g_assert_cmpuint (atomic_load (&n_allocations) - before, ==, 0);
    g_assert_cmpstr (tiny_tensor_get_device (there), ==, away);
    g_assert_true (tiny_tensor_copy_data (x, sent, sizeof sent, &error));
    g_assert_true (tiny_tensor_copy_data (there, got, sizeof got, &error));
    g_assert_cmpmem (sent, sizeof sent, got, sizeof got);
  }
}

/* ---- threads ---- */
static void
print_tensor (const char *name, TinyTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) kept = g_object_ref_sink (tensor);
  gsize n_bytes = tiny_tensor_get_n_bytes (kept);
  g_autofree guchar *data = g_malloc (n_bytes);
  g_assert_true (tiny_tensor_copy_data (kept, data, n_bytes, &error));
  g_autofree char *sum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, data, n_bytes);
  printf ("%s %s\n", name, sum);
}

static int
print_values (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) a = some_tensor (1, (gint64[]){ 257, 300 }, 2);
  g_autoptr (TinyTensor) b = some_tensor (2, (gint64[]){ 300, 190 }, 2);
  g_autoptr (TinyTensor) large = some_tensor (3, (gint64[]){ 1100, 1003 }, 2);
  g_autoptr (TinyTensor) image = some_tensor (4, (gint64[]){ 2, 8, 20, 20 }, 4);
  g_autoptr (TinyTensor) filter = some_tensor (5, (gint64[]){ 12, 8, 3, 3 }, 4);
  print_tensor ("matmul", tiny_tensor_matmul (a, b));
  print_tensor ("sum", tiny_tensor_sum (large, NULL, 0, FALSE));
  print_tensor ("rows", tiny_tensor_sum (large, (gint[]){ 1 }, 1, FALSE));
  print_tensor ("columns", tiny_tensor_sum (large, (gint[]){ 0 }, 1, FALSE));
  print_tensor ("softmax", tiny_tensor_softmax (large, -1));
  print_tensor ("conv", tiny_tensor_conv2d (image, filter, NULL, NULL, 0, (gint64[]){ 1 }, 1,
                                            NULL, 0, 1));
  Trained trained = { 0 };
  set_up (&trained);
  g_autoptr (TinyTensor) x = some_tensor (6, (gint64[]){ BATCH, N_IN }, 2);
  for (guint i = 0; i < N_STEPS; i++) {
    TinyTensor *loss;
    g_assert_true (tiny_jit_call (trained.jit, &x, 1, &loss, &error));
    g_autofree char *name = g_strdup_printf ("loss%u", i);
    print_tensor (name, loss);
  }
  clear (&trained);
  return 0;
}

static const char *self_path;

static void
test_threads (void)
{
  static const char *const threads[] = { "1", "2", "8" };
  if (!is_on ("CPU")) {
    g_test_skip ("has no threads of ours");
    return;
  }
  g_autofree char *first = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++) {
    g_autoptr (GError) error = NULL;
    g_auto (GStrv) environment
        = g_environ_setenv (g_get_environ (), "TINY_THREADS", threads[i], TRUE);
    g_autofree char *output = NULL;
    int status = -1;
    char *command[] = { (char *) self_path, (char *) "--values", NULL };
    g_assert_true (g_spawn_sync (NULL, command, environment, 0, NULL, NULL, &output, NULL,
                                 &status, &error));
    g_assert_true (g_spawn_check_wait_status (status, &error));
    g_assert_true (g_str_has_prefix (output, "matmul "));
    if (first == NULL)
      first = g_steal_pointer (&output);
    else
      g_assert_cmpstr (output, ==, first);
  }
}

int
main (int argc, char **argv)
{
  self_path = argv[0];
  if (argc > 1 && g_str_equal (argv[1], "--values"))
    return print_values ();
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stress/replay/allocations", test_allocations);
  g_test_add_func ("/stress/replay/copies", test_copies);
  g_test_add_func ("/stress/replay/threads", test_threads);
  return g_test_run ();
}
