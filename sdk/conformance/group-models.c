/* SPDX-License-Identifier: MIT
 *
 * group-models.c: training and inference from end to end.
 *
 * The network that learns Fashion-MNIST learns made images of ten kinds, and its loss has to fall. How right a step is
 * is asked of smaller networks, step by step from the device's own state: each gradient and each parameter is
 * within the bounds that the model gives its graph, so that errors are not compounded over steps and none of them
 * hides in a loss. */
#include <math.h>
#include <string.h>

#include "autograd/tiny-gradient.h"
#include "conformance.h"
#include "engine/tiny-runtime.h"
#include "folder.h"
#include "tensor-check.h"

#define T(name) tiny_tensor_##name

enum { SIDE = 28, N_KINDS = 10 };

/* Numbers about @scale, of either sign. */
static TinyTensor *
weights (
    const ConfSubject *subject, guint slot, double scale, guint n_dims, const gint64 *shape)
{
  TinyTensor *x = conf_tensor_new (subject, CONF_SIGNED, TINY_DTYPE_F32, shape, n_dims, slot);
  return g_object_ref_sink (T (mul_number) (T (sin) (x), scale));
}
#define WEIGHTS(slot, scale, ...)                                                              \
  weights (subject, slot, scale, sizeof ((gint64[]){ __VA_ARGS__ }) / sizeof (gint64),         \
           (gint64[]){ __VA_ARGS__ })

/* ---- a network learns ---- */

/* Images of kind k have a bright block of their own in noise. */
static void
draw_images (guint64 seed, guint n, float *images, gint32 *labels)
{
  g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) seed);
  for (guint i = 0; i < n; i++) {
    const guint kind = (guint) g_rand_int_range (random, 0, N_KINDS);
    labels[i] = (gint32) kind;
    for (guint at = 0; at < SIDE * SIDE; at++) {
      const guint row = at / SIDE, column = at % SIDE;
      const gboolean in = row / 6 == kind / 3 && column / 7 == kind % 3 + (kind == 9);
      images[i * SIDE * SIDE + at]
          = (float) (g_rand_double_range (random, 0, 0.3) + (in ? 0.7 : 0));
    }
  }
}

static void
run_learns (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { BATCH = 8, STEPS = 10 }; /* an interpreter takes half a second for an image */
  const char *name = tiny_device_get_name (subject->device);
  g_autofree float *images = g_new (float, BATCH *SIDE *SIDE);
  gint32 labels[BATCH];
  tiny_tensor_manual_seed (subject->seed);
  g_autoptr (TinyModule) network = tiny_image_classifier_new (N_KINDS);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (network);
  g_autoptr (TinyOptimizer) optimizer = tiny_adam_new (
      (TinyTensor *const *) parameters->pdata, parameters->len, 2e-3, 0.9, 0.999, 1e-8, 0);
  g_autoptr (TinyTrainer) trainer = tiny_trainer_new (network, optimizer);
  double first = 0, loss = 0;
  for (guint step = 0; step < STEPS; step++) {
    g_autoptr (GError) error = NULL;
    draw_images (subject->seed * 100 + step, BATCH, images, labels);
    g_autoptr (TinyTensor) x = g_object_ref_sink (
        T (new_from_data) (name, TINY_DTYPE_F32, (gint64[]){ BATCH, 1, SIDE, SIDE }, 4, images,
                           BATCH * SIDE * SIDE * sizeof *images));
    g_autoptr (TinyTensor) y = g_object_ref_sink (T (new_from_data) (
        name, TINY_DTYPE_I32, (gint64[]){ BATCH }, 1, labels, sizeof labels));
    if (!tiny_trainer_step (trainer, x, y, &loss, &error)) {
      conf_check_error (trial, g_steal_pointer (&error), "a step");
      return;
    }
    conf_check (trial, isfinite (loss), "the loss of step %u is %g", step, loss);
    first = step == 0 ? loss : first;
  }
  conf_record (trial, "first loss", first, "");
  conf_record (trial, "last loss", loss, "");
  conf_check (trial, first > 1.5 && first < 5,
              "the first loss is %g, that of ten kinds is about ln 10", first);
  conf_check (trial, loss < first / 2, "the loss fell from %g to %g in %d steps", first, loss,
              STEPS);
}

/* ---- each step is right ---- */
enum { N_STATE = 4 };

/* conv → relu → linear, and the loss against @y; @w: its weights and biases. */
static TinyTensor *
loss_of (TinyTensor *x, TinyTensor *y, TinyTensor *const *w)
{
  TinyTensor *h = T (relu) (
      T (conv2d) (x, w[0], w[1], (gint64[]){ 2 }, 1, (gint64[]){ 1 }, 1, NULL, 0, 1));
  return T (cross_entropy) (T (linear) (T (flatten) (h, 1, 3), w[2], w[3]), y, NULL, -100,
                            "mean", 0);
}

/* A tensor of its own with what @value is. */
static TinyTensor *
kept (ConfTrial *trial, const ConfSubject *subject, TinyTensor *value)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = tiny_tensor_get_data (value, &error);
  if (!conf_check_error (trial, g_steal_pointer (&error), "a parameter"))
    return g_object_ref (value);
  guint n;
  const gint64 *shape = tiny_tensor_get_shape (value, &n);
  return g_object_ref_sink (
      T (new_from_data) (tiny_device_get_name (subject->device), TINY_DTYPE_F32, shape, n,
                         g_bytes_get_data (data, NULL), g_bytes_get_size (data)));
}

static void
step_checked (ConfTrial *trial, const ConfSubject *subject, TinyTensor **w, guint step)
{
  g_autoptr (GError) error = NULL;
  gint32 labels[6];
  for (guint i = 0; i < 6; i++)
    labels[i] = (gint32) ((i * 7 + step) % 5);
  g_autoptr (TinyTensor) x = WEIGHTS (10 + step, 1.0, 6, 2, 8, 8);
  g_autoptr (TinyTensor) input = kept (trial, subject, x);
  g_autoptr (TinyTensor) y = g_object_ref_sink (
      T (new_from_data) (tiny_device_get_name (subject->device), TINY_DTYPE_I32,
                         (gint64[]){ 6 }, 1, labels, sizeof labels));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (loss_of (input, y, w));
  TinyTensor *grads[N_STATE] = { NULL };
  if (!tiny_gradient (loss, w, N_STATE, grads, &error)) {
    conf_check_error (trial, g_steal_pointer (&error), "the gradient");
    return;
  }
  conf_tensor_check (trial, subject, loss, TINY_INSTR_LOG2);
  for (guint i = 0; i < N_STATE; i++) {
    g_autoptr (TinyTensor) grad = grads[i];
    conf_tensor_check (trial, subject, grad, TINY_INSTR_MULACC);
    g_autoptr (TinyTensor) next
        = g_object_ref_sink (T (sub) (w[i], T (mul_number) (grad, 0.5)));
    g_autoptr (TinyTensor) old = w[i];
    w[i] = kept (trial, subject, next);
  }
}

static void
run_steps (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  TinyTensor *w[N_STATE] = { WEIGHTS (0, 0.4, 3, 2, 3, 3), WEIGHTS (1, 0.1, 3),
                             WEIGHTS (2, 0.2, 5, 48), WEIGHTS (3, 0.1, 5) };
  for (guint i = 0; i < N_STATE; i++) {
    g_autoptr (TinyTensor) drawn = w[i];
    w[i] = kept (trial, subject, drawn);
  }
  for (guint step = 0; step < 4 && !conf_has_failed (trial); step++)
    step_checked (trial, subject, w, step);
  for (guint i = 0; i < N_STATE; i++)
    g_object_unref (w[i]);
}

/* ---- inference: a transformer's layers, each from what the device made of the one before ---- */
enum { WORDS = 12, WIDTH = 16 };

static TinyTensor *
normed (TinyTensor *x)
{
  gint last = -1;
  TinyTensor *mean = T (mean) (T (square) (x), &last, 1, TRUE);
  return T (mul) (x, T (rsqrt) (T (add_number) (mean, 1e-5)));
}

/* x + softmax (Q Kt / 4, causal) V */
static TinyTensor *
attended (const ConfSubject *subject, TinyTensor *x, guint layer)
{
  TinyTensor *parts[3];
  g_autoptr (TinyTensor) h = g_object_ref_sink (normed (x));
  for (guint i = 0; i < 3; i++) {
    g_autoptr (TinyTensor) w = WEIGHTS (20 + layer * 8 + i, 0.3, WIDTH, WIDTH);
    parts[i] = T (matmul) (h, w);
  }
  TinyTensor *scores
      = T (mul_number) (T (matmul) (parts[0], T (transpose) (parts[1], 0, 1)), 0.25);
  TinyTensor *column = T (arange) (TINY_DTYPE_I32, 0, WORDS, 1);
  TinyTensor *row
      = T (reshape) (T (arange) (TINY_DTYPE_I32, 0, WORDS, 1), (gint64[]){ WORDS, 1 }, 2);
  scores = T (where) (T (le) (column, row), scores, T (scalar) (-1e4));
  return T (add) (x, T (matmul) (T (softmax) (scores, -1), parts[2]));
}

/* x + gelu (x W1) W2 */
static TinyTensor *
fed_forward (const ConfSubject *subject, TinyTensor *x, guint layer)
{
  g_autoptr (TinyTensor) up = WEIGHTS (23 + layer * 8, 0.3, WIDTH, 4 * WIDTH);
  g_autoptr (TinyTensor) down = WEIGHTS (24 + layer * 8, 0.2, 4 * WIDTH, WIDTH);
  return T (add) (x, T (matmul) (T (gelu) (T (matmul) (normed (x), up), "tanh"), down));
}

static void
run_transformer (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autoptr (TinyTensor) drawn = WEIGHTS (19, 1.0, WORDS, WIDTH);
  TinyTensor *x = kept (trial, subject, drawn);
  for (guint part = 0; part < 6 && !conf_has_failed (trial); part++) {
    g_autoptr (TinyTensor) old = x;
    g_autoptr (TinyTensor) next
        = g_object_ref_sink (part % 2 == 0 ? attended (subject, old, part / 2)
                                           : fed_forward (subject, old, part / 2));
    conf_tensor_check (trial, subject, next, TINY_INSTR_MULACC);
    x = kept (trial, subject, next);
  }
  g_object_unref (x);
}

/* ---- what is recorded gives the same again, with other inputs too ---- */
static TinyTensor *
recorded_result (TinyTensor *x, TinyTensor *w)
{
  return T (softmax) (T (relu) (T (matmul) (x, w)), 1);
}

static gboolean
recorded (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer user_data,
          GError **error)
{
  outputs[0] = g_object_ref_sink (recorded_result (inputs[0], inputs[1]));
  return tiny_tensor_realize (outputs[0], error);
}

static void
run_replay (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autoptr (TinyJit) jit = tiny_jit_new (recorded, NULL, NULL, 1);
  g_autoptr (TinyTensor) w = WEIGHTS (1, 1.0, 24, 9);
  g_autoptr (TinyTensor) weight = kept (trial, subject, w);
  for (guint call = 0; call < 6; call++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) drawn = WEIGHTS (40 + call, 2.0, 17, 24);
    g_autoptr (TinyTensor) x = kept (trial, subject, drawn);
    g_autoptr (TinyTensor) wanted = g_object_ref_sink (recorded_result (x, weight));
    TinyTensor *inputs[] = { x, weight }, *output;
    if (!tiny_jit_call (jit, inputs, 2, &output, &error)) {
      conf_check_error (trial, g_steal_pointer (&error), "a call");
      return;
    }
    g_autoptr (GBytes) got = tiny_tensor_get_data (output, NULL);
    g_autoptr (GBytes) right = tiny_tensor_get_data (wanted, NULL);
    conf_check (trial, got != NULL && right != NULL && g_bytes_equal (got, right),
                "call %u gave other numbers than the function by itself", call);
  }
  conf_check (trial, tiny_jit_get_n_kernels (jit) > 0, "nothing was recorded");
}

/* ---- a model goes to a file and comes back ---- */
static void
run_saved (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const char *const in[] = { "x" }, *const out[] = { "y" };
  g_autoptr (GError) error = NULL;
  ConfFolder *folder = conf_folder_new (&error);
  if (!conf_check_error (trial, g_steal_pointer (&error), "a temporary folder"))
    return;
  g_autofree char *path = g_build_filename (conf_folder_get_path (folder), "saved.tir", NULL);
  g_autoptr (TinyTensor) drawn = WEIGHTS (1, 1.0, 24, 9), drawn_x = WEIGHTS (2, 1.0, 7, 24);
  g_autoptr (TinyTensor) w = kept (trial, subject, drawn), x = kept (trial, subject, drawn_x);
  g_autoptr (TinyTensor) y = g_object_ref_sink (recorded_result (x, w));
  g_autoptr (TinyModel) model = tiny_model_new (&x, in, 1, &y, out, 1, NULL, &error);
  g_autoptr (TinyModel) loaded = NULL;
  TinyTensor *again = NULL;
  if (model != NULL && tiny_model_save (model, path, &error))
    loaded = tiny_model_load (path, &error);
  if (loaded != NULL && tiny_model_apply (loaded, &x, 1, &again, &error)) {
    g_autoptr (TinyTensor) owned = again;
    g_autoptr (GBytes) got = tiny_tensor_get_data (again, &error);
    g_autoptr (GBytes) wanted = tiny_tensor_get_data (y, NULL);
    conf_check (trial, got != NULL && wanted != NULL && g_bytes_equal (got, wanted),
                "the loaded model gives other numbers");
  }
  conf_check_error (trial, g_steal_pointer (&error), "saving and loading");
  conf_folder_free (folder);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name;
    ConfRun run;
  } cases[] = { { "learns", run_learns },
                { "steps", run_steps },
                { "transformer", run_transformer },
                { "replay", run_replay },
                { "saved", run_saved } };
  if (subject->target == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const ConfCase self = { .run = cases[i].run, .level = CONF_MODELS, .seconds = 600 };
    conf_list_add (out, &self, "%s", cases[i].name);
  }
}

const ConfGroup conf_group_models
    = { "models", "networks learn and infer, each step within its bounds", list };
