/* SPDX-License-Identifier: MIT
 *
 * tiny-trainer.c: two captured functions, one that trains and one that counts right answers. */
#include "nn/tiny-trainer.h"

#include "autograd/tiny-gradient.h"
#include "base/tiny-guard.h"
#include "nn/tiny-conv-layers.h"
#include "nn/tiny-jit.h"
#include "nn/tiny-layers.h"
#include "nn/tiny-norm-layers.h"
#include "tensor/tiny-tensor-operations.h"

/* ---- the network ---- */

/* From 0 … 255 to about mean 0 and deviation 1 (those of Fashion-MNIST: 0.286 and 0.353). */
static TinyTensor *
normalise (TinyTensor *x)
{
  x = tiny_tensor_cast (x, TINY_DTYPE_F32);
  return tiny_tensor_add_number (tiny_tensor_mul_number (x, 1 / (255 * 0.353)), -0.286 / 0.353);
}

static TinyTensor *
max_pool_2 (TinyTensor *x)
{
  return tiny_tensor_max_pool2d (x, (gint64[]){ 2 }, 1, NULL, 0, NULL, 0, NULL, 0, FALSE);
}

static TinyTensor *
flatten (TinyTensor *x)
{
  return tiny_tensor_flatten (x, 1, -1);
}

static void
append_block (TinyModule *net, gint64 n_in, gint64 n_out, gint64 kernel)
{
  for (guint i = 0; i < 2; i++) {
    tiny_sequential_append (
        net, tiny_conv2d_new (i == 0 ? n_in : n_out, n_out, kernel, 1, 0, 1, TRUE));
    tiny_sequential_append (net, tiny_function_new (tiny_tensor_relu));
  }
  tiny_sequential_append (net, tiny_batch_norm2d_new (n_out));
  tiny_sequential_append (net, tiny_function_new (max_pool_2));
}

TinyModule *
tiny_image_classifier_new (gint64 n_classes)
{
  TinyModule *net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_function_new (normalise));
  append_block (net, 1, 32, 5);
  append_block (net, 32, 64, 3);
  tiny_sequential_append (net, tiny_function_new (flatten));
  tiny_sequential_append (net, tiny_linear_new (576, n_classes, TRUE));
  return net;
}

/* ---- the trainer ---- */
struct _TinyTrainer {
  GObject parent_instance;
  TinyModule *module;
  TinyOptimizer *optimizer;
  TinyJit *train, *test;
};

G_DEFINE_FINAL_TYPE (TinyTrainer, tiny_trainer, G_TYPE_OBJECT)

static void
tiny_trainer_finalize (GObject *object)
{
  TinyTrainer *self = TINY_TRAINER (object);
  g_clear_object (&self->train);
  g_clear_object (&self->test);
  g_clear_object (&self->module);
  g_clear_object (&self->optimizer);
  G_OBJECT_CLASS (tiny_trainer_parent_class)->finalize (object);
}

static void
tiny_trainer_class_init (TinyTrainerClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_trainer_finalize;
}

static void
tiny_trainer_init (TinyTrainer *self)
{
}

static gboolean
train (TinyTensor *const *inputs,
       guint n_inputs,
       TinyTensor **outputs,
       guint n_outputs,
       gpointer user_data,
       GError **error)
{
  TinyTrainer *self = user_data;
  g_autoptr (GPtrArray) others = tiny_module_get_buffers (self->module);
  tiny_module_set_training (self->module, TRUE);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_cross_entropy (
      tiny_module_forward (self->module, inputs[0]), inputs[1], NULL, -100, "mean", 0));
  tiny_optimizer_zero_grad (self->optimizer);
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  g_ptr_array_add (others, loss);
  if (!tiny_optimizer_step (self->optimizer, (TinyTensor *const *) others->pdata, others->len,
                            error))
    return FALSE;
  outputs[0] = g_steal_pointer (&loss);
  return TRUE;
}

static gboolean
test (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  TinyTrainer *self = user_data;
  TinyTensor *scores = tiny_module_forward (self->module, inputs[0]);
  TinyTensor *right = tiny_tensor_eq (tiny_tensor_argmax (scores, 1, FALSE), inputs[1]);
  g_autoptr (TinyTensor) count = g_object_ref_sink (tiny_tensor_sum (right, NULL, 0, FALSE));
  if (!tiny_tensor_realize (count, error))
    return FALSE;
  outputs[0] = g_steal_pointer (&count);
  return TRUE;
}

TinyTrainer *
tiny_trainer_new (TinyModule *module, TinyOptimizer *optimizer)
{
  TinyTrainer *self = g_object_new (TINY_TYPE_TRAINER, NULL);
  self->module = TINY_IS_MODULE (module) ? g_object_ref (module) : NULL;
  self->optimizer = TINY_IS_OPTIMIZER (optimizer) ? g_object_ref (optimizer) : NULL;
  self->train = tiny_jit_new (train, self, NULL, 1);
  return self;
}

/* Whether it was made of what it needs. */
static gboolean
check (TinyTrainer *self, GError **error)
{
  if (self->module != NULL && self->optimizer != NULL)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "trainer: it was made without %s",
               self->module == NULL ? "a module" : "an optimizer");
  return FALSE;
}

gboolean
tiny_trainer_step (
    TinyTrainer *self, TinyTensor *x, TinyTensor *y, double *out_loss, GError **error)
{
  tiny_return_error_unless (TINY_IS_TRAINER (self), error, FALSE, "no trainer given");
  if (!check (self, error))
    return FALSE;
  TinyTensor *inputs[] = { x, y }, *loss;
  if (!tiny_jit_call (self->train, inputs, 2, &loss, error))
    return FALSE;
  return out_loss == NULL || tiny_tensor_item (loss, out_loss, error);
}

/* ---- counting right answers ---- */
typedef struct {
  TinyModule *module;
  gboolean training;
} Mode;

/* A TinyModuleCallback. */
static void
note_mode (TinyModule *module, gpointer modes)
{
  const Mode mode = { module, tiny_module_get_training (module) };
  g_array_append_val ((GArray *) modes, mode);
}

/* As they were noted, a module before those in it, which it sets as well. */
static void
restore_modes (const GArray *modes)
{
  for (guint i = modes->len; i-- > 0;) {
    const Mode *mode = &g_array_index (modes, Mode, i);
    tiny_module_set_training (mode->module, mode->training);
  }
}

/* Adds to @right and @n what is right in a batch and how many it has. One that is not full is not recorded. */
static gboolean
count_batch (TinyTrainer *self,
             TinyTensor *const *inputs,
             guint batch,
             double *right,
             double *n,
             GError **error)
{
  guint n_dims;
  const gint64 *shape = tiny_tensor_get_shape (inputs[1], &n_dims);
  const gint64 found = n_dims > 0 ? shape[0] : 0;
  g_autoptr (TinyTensor) count = NULL;
  double value = 0;
  gboolean good = found == batch ? tiny_jit_call (self->test, inputs, 2, &count, error)
                                 : test (inputs, 2, &count, 1, self, error);
  if (found == batch && count != NULL)
    g_object_ref (count); /* which the recording owns */
  good = good && tiny_tensor_item (count, &value, error);
  *right += value;
  *n += (double) found;
  return good;
}

static gboolean
count_epoch (TinyTrainer *self, TinyLoader *loader, double *right, double *n, GError **error)
{
  TinyTensor *x, *y;
  gboolean good = TRUE;
  tiny_loader_start_epoch (loader, 0);
  while (good && tiny_loader_next (loader, &x, &y)) {
    TinyTensor *inputs[] = { x, y };
    good = count_batch (self, inputs, tiny_loader_get_batch (loader), right, n, error);
    g_object_unref (x);
    g_object_unref (y);
  }
  return good;
}

gboolean
tiny_trainer_evaluate (TinyTrainer *self,
                       TinyLoader *loader,
                       double *out_accuracy,
                       GError **error)
{
  tiny_return_error_unless (TINY_IS_TRAINER (self), error, FALSE, "no trainer given");
  tiny_return_error_unless (TINY_IS_LOADER (loader), error, FALSE, "no loader given");
  tiny_return_error_unless (out_accuracy != NULL, error, FALSE,
                            "no room for the accuracy given");
  if (!check (self, error))
    return FALSE;
  double right = 0, n = 0;
  /* A recording of its own for each evaluation: loaders differ in their batches. */
  g_clear_object (&self->test);
  self->test = tiny_jit_new (test, self, NULL, 1);
  g_autoptr (GArray) modes = g_array_new (FALSE, FALSE, sizeof (Mode));
  tiny_module_apply (self->module, note_mode, modes);
  tiny_module_set_training (self->module, FALSE);
  gboolean good = count_epoch (self, loader, &right, &n, error);
  restore_modes (modes);
  if (good)
    *out_accuracy = right / MAX (n, 1);
  return good;
}

guint
tiny_trainer_get_n_kernels (TinyTrainer *self)
{
  g_return_val_if_fail (TINY_IS_TRAINER (self), 0);
  return tiny_jit_get_n_kernels (self->train);
}
