/* SPDX-License-Identifier: MIT
 *
 * test-shared.c: threads that use the same objects at the same time: tensors, devices, buffers, programs, modules, optimisers,
 * recorders and models. Every function of a tensor may be called from any thread (tiny-tensor.h), so each reads one value
 * or another, never half of one. Its other half is ThreadSanitizer (tests/sanitize.sh). */
#include <string.h>

#include "../device-there.h"
#include "base/tiny-env.h"
#include "tiny.h"

enum { N_THREADS = 3, N_ROUNDS = 40, N = 32 };

/* Objects that all threads have. */
typedef struct {
  TinyTensor *whole;  /* its elements are one number, which threads change */
  TinyTensor *view;   /* a part of it */
  TinyTensor *sum;    /* not computed at first */
  TinyTensor *weight; /* has gradients */
  TinyModule *layer;
  TinyOptimizer *optimizer;
  TinyRecorder *recorder;
  TinyModel *model;
  TinyVariable *variable;
} Shared;

typedef void (*Act) (const Shared *shared, guint round);

static TinyTensor *
full (double value)
{
  return tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ N }, 1, value);
}

/* @tensor has one number everywhere. */
static void
assert_even (TinyTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  const gint64 n = tiny_tensor_get_n_elements (tensor);
  g_assert_true (tiny_tensor_copy_data (tensor, values, (gsize) n * sizeof *values, &error));
  g_assert_no_error (error);
  for (gint64 i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, values[0]);
}

/* ---- tensors ---- */
static void
read_all (const Shared *shared, guint round)
{
  assert_even (shared->whole);
  assert_even (shared->view);
}

static void
look (const Shared *shared, guint round)
{
  guint n_dims;
  g_autofree char *text = tiny_tensor_to_string (shared->whole);
  g_assert_nonnull (text);
  g_assert_cmpint (tiny_tensor_get_shape (shared->whole, &n_dims)[0], ==, N);
  g_assert_cmpstr (tiny_tensor_get_device (shared->whole), !=, NULL);
  g_assert_null (tiny_tensor_get_error (shared->whole));
  tiny_tensor_is_realized (shared->sum);
  tiny_tensor_is_leaf (shared->weight);
  tiny_tensor_get_requires_grad (shared->weight);
  g_assert_true (tiny_tensor_get_base (shared->view) == shared->whole);
}

static void
write_all (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  for (guint i = 0; i < N; i++)
    values[i] = (float) round;
  g_assert_true (tiny_tensor_write_data (shared->whole, values, sizeof values, &error));
}

static void
assign_all (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *next = tiny_tensor_add_number (shared->whole, 1);
  g_assert_true (tiny_tensor_assign (shared->whole, next, &error));
}

static void
realize_sum (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_tensor_realize (shared->sum, &error));
  assert_even (shared->sum);
}

static void
name_it (const Shared *shared, guint round)
{
  tiny_tensor_set_label (shared->sum, round % 2 == 0 ? "even" : "odd");
}

static void
draw (const Shared *shared, guint round)
{
  g_autoptr (TinyTensor) noise
      = g_object_ref_sink (tiny_tensor_rand (TINY_DTYPE_F32, (gint64[]){ N }, 1));
  g_autoptr (GError) error = NULL;
  tiny_tensor_manual_seed (round);
  g_assert_true (tiny_tensor_realize (noise, &error));
}

/* ---- gradients ---- */
static gboolean
try_to_differentiate (const Shared *shared, GError **error)
{
  g_autoptr (TinyTensor) loss = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (shared->weight, full (2)), NULL, 0, FALSE));
  const gboolean good = tiny_tensor_backward (loss, error);
  tiny_tensor_get_grad (shared->weight); /* borrowed: it may be gone already */
  return good;
}

static void
differentiate (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  try_to_differentiate (shared, &error);
  g_assert_no_error (error);
}

/* Another thread's step may assign to the weight in between: of what it was before there is no gradient. */
static void
differentiate_beside_steps (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  if (!try_to_differentiate (shared, &error))
    g_assert_nonnull (strstr (error->message, "assigned"));
}

static void
forget_gradient (const Shared *shared, guint round)
{
  tiny_tensor_clear_grad (shared->weight);
}

/* ---- modules and optimisers ---- */
static void
forward (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *x = tiny_tensor_reshape (full (1), (gint64[]){ 1, N }, 2);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (shared->layer, x));
  g_assert_true (tiny_tensor_realize (y, &error));
}

static void
list_state (const Shared *shared, guint round)
{
  g_autoptr (GHashTable) state = tiny_module_get_state_dict (shared->layer);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (shared->layer);
  g_assert_cmpuint (g_hash_table_size (state), ==, parameters->len);
  g_autoptr (GHashTable) moments = tiny_optimizer_get_state_dict (shared->optimizer);
  g_assert_cmpuint (g_hash_table_size (moments), >, 0);
}

static void
step (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_optimizer_step (shared->optimizer, NULL, 0, &error));
  tiny_optimizer_zero_grad (shared->optimizer);
}

static void
set_rate (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_optimizer_set_lr (shared->optimizer, 0.01 * round, &error));
  g_assert_cmpfloat (tiny_optimizer_get_lr (shared->optimizer), >=, 0);
}

static void
set_mode (const Shared *shared, guint round)
{
  tiny_module_set_training (shared->layer, round % 2 == 0);
  tiny_module_get_training (shared->layer);
}

static void
load_state (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) state = tiny_module_get_state_dict (shared->layer);
  g_assert_true (tiny_module_load_state_dict (shared->layer, state, TRUE, &error));
}

/* ---- recordings, models, variables ---- */
/* One thread records at a time; the others are told so. */
static void
record (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (full (round));
  if (!tiny_recorder_begin (shared->recorder, &x, 1, &error)) {
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
    return;
  }
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul_number (x, 2));
  g_assert_true (tiny_recorder_end (shared->recorder, &y, 1, &error));
  g_assert_no_error (error);
}

static void
replay (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (full (round));
  if (!tiny_recorder_replay (shared->recorder, &x, 1, &error))
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

static void
apply (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (full (round));
  g_autoptr (GPtrArray) y = tiny_model_apply_list (shared->model, &x, 1, &error);
  g_assert_no_error (error);
  assert_even (y->pdata[0]);
}

static void
bind (const Shared *shared, guint round)
{
  double value;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) n
      = g_object_ref_sink (tiny_variable_bind (shared->variable, 1 + round % 4));
  g_assert_true (tiny_tensor_item (n, &value, &error));
  g_assert_cmpfloat (value, ==, 1 + round % 4);
}

/* ---- the process ---- */
static void
look_around (const Shared *shared, guint round)
{
  g_autoptr (GError) error = NULL;
  const char *name = tiny_get_default_device (&error);
  g_assert_no_error (error);
  g_assert_true (tiny_synchronize (name, &error));
  g_assert_cmpstr (tiny_open_device (name, &error), ==, name);
  g_auto (GStrv) names = tiny_list_devices ();
  g_assert_cmpuint (g_strv_length (names), >, 0);
  tiny_get_counter ("kernels");
}

static const struct {
  const char *name;
  Act acts[6];
} rows[] = {
  { "read-write", { read_all, write_all, assign_all, look } },
  { "realize", { realize_sum, look, name_it, read_all, draw } },
  { "gradients", { differentiate, forget_gradient, look } },
  { "modules", { forward, list_state, load_state, set_mode } },
  { "optimizers", { differentiate_beside_steps, step, set_rate, list_state, forget_gradient } },
  { "recorders", { record, replay, apply, bind } },
  { "process", { look_around, draw, read_all } },
};

/* ---- threads ---- */
typedef struct {
  const Shared *shared;
  guint row, number;
} Worker;

static gpointer
work (gpointer data)
{
  const Worker *self = data;
  g_autoptr (GRand) chance = g_rand_new_with_seed (self->number);
  const Act *acts = rows[self->row].acts;
  guint n = 0;
  while (n < G_N_ELEMENTS (rows[0].acts) && acts[n] != NULL)
    n++;
  for (guint round = 0; round < N_ROUNDS; round++)
    acts[g_rand_int_range (chance, 0, (gint32) n)](self->shared, round);
  return NULL;
}

static void
make_shared (Shared *self)
{
  g_autoptr (GError) error = NULL;
  self->whole = g_object_ref_sink (tiny_tensor_contiguous (full (1)));
  g_assert_true (tiny_tensor_realize (self->whole, &error));
  self->view = g_object_ref_sink (tiny_tensor_shrink (self->whole, (gint64[]){ 1, N / 2 }, 2));
  self->sum = g_object_ref_sink (tiny_tensor_add (self->whole, full (3)));
  self->weight = g_object_ref_sink (tiny_tensor_contiguous (full (1)));
  g_assert_true (tiny_tensor_realize (self->weight, &error));
  tiny_tensor_set_requires_grad (self->weight, TRUE);
  self->layer = tiny_linear_new (N, 4, TRUE);
  self->optimizer = tiny_adam_new (&self->weight, 1, 0.1, 0.9, 0.999, 1e-8, 0);
  self->recorder = tiny_recorder_new ();
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_contiguous (full (1)));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul_number (x, 3));
  g_assert_true (tiny_tensor_realize (x, &error));
  self->model = tiny_model_new (&x, (const char *[]){ "x" }, 1, &y, (const char *[]){ "y" }, 1,
                                NULL, &error);
  g_assert_no_error (error);
  self->variable = tiny_variable_new ("n", 1, 8);
}

static void
clear_shared (Shared *self)
{
  g_clear_object (&self->whole);
  g_clear_object (&self->view);
  g_clear_object (&self->sum);
  g_clear_object (&self->weight);
  g_clear_object (&self->layer);
  g_clear_object (&self->optimizer);
  g_clear_object (&self->recorder);
  g_clear_object (&self->model);
  g_clear_object (&self->variable);
}

static void
test_row (gconstpointer row)
{
  Shared shared;
  Worker workers[N_THREADS];
  GThread *threads[N_THREADS];
  make_shared (&shared);
  for (guint i = 0; i < N_THREADS; i++) {
    workers[i] = (Worker){ &shared, GPOINTER_TO_UINT (row), i + 1 };
    threads[i] = g_thread_new ("sharer", work, &workers[i]);
  }
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  clear_shared (&shared);
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *path = g_strdup_printf ("/stress/shared/%s", rows[i].name);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_row);
  }
  return g_test_run ();
}
