/* SPDX-License-Identifier: MIT
 *
 * tiny-optimizer.c: SGD and Adam as assignments of lazy expressions.
 *
 * What changes from step to step (the rate, the powers of Adam's betas) is in device memory, so a
 * captured step stays right when it is replayed. */
#include "nn/tiny-optimizer.h"

#include "nn/module-private.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

typedef enum { SGD, ADAM } Kind;

struct _TinyOptimizer {
  GObject parent_instance;
  Kind kind;
  GPtrArray *parameters;
  GPtrArray *first, *second; /* moments; NULL where there are none */
  TinyTensor *lr;            /* f32, () */
  TinyTensor *powers;        /* Adam: f32, (2): beta1^t, beta2^t */
  double rate, momentum, weight_decay, beta1, beta2, epsilon;
  gboolean nesterov;
};

G_DEFINE_FINAL_TYPE (TinyOptimizer, tiny_optimizer, G_TYPE_OBJECT)

static void
tiny_optimizer_finalize (GObject *object)
{
  TinyOptimizer *self = TINY_OPTIMIZER (object);
  g_clear_pointer (&self->parameters, g_ptr_array_unref);
  g_clear_pointer (&self->first, g_ptr_array_unref);
  g_clear_pointer (&self->second, g_ptr_array_unref);
  g_clear_object (&self->lr);
  g_clear_object (&self->powers);
  G_OBJECT_CLASS (tiny_optimizer_parent_class)->finalize (object);
}

static void
tiny_optimizer_class_init (TinyOptimizerClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_optimizer_finalize;
}

static void
tiny_optimizer_init (TinyOptimizer *self)
{
}

/* Zeros like each parameter, each in memory of its own. */
static GPtrArray *
moments (TinyOptimizer *self)
{
  GPtrArray *result = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < self->parameters->len; i++) {
    TinyTensor *p = self->parameters->pdata[i];
    guint n;
    const gint64 *shape = tiny_tensor_get_shape (p, &n);
    TinyTensor *zeros = g_object_ref_sink (
        tiny_tensor_to (tiny_tensor_zeros (tiny_tensor_get_dtype (p), shape, n), p->device));
    tiny_tensor_own_memory (zeros, NULL);
    g_ptr_array_add (result, zeros);
  }
  return result;
}

static TinyOptimizer *
optimizer_new (Kind kind, TinyTensor *const *parameters, guint n, double lr)
{
  TinyOptimizer *self = g_object_new (TINY_TYPE_OPTIMIZER, NULL);
  float rate = (float) lr;
  self->kind = kind;
  self->rate = lr;
  self->parameters = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (self->parameters, g_object_ref (parameters[i]));
  const char *device = n > 0 ? parameters[0]->device : NULL;
  self->lr = g_object_ref_sink (
      tiny_tensor_new_from_data (device, TINY_DTYPE_F32, NULL, 0, &rate, sizeof rate));
  return self;
}

TinyOptimizer *
tiny_sgd_new (TinyTensor *const *parameters,
              guint n,
              double lr,
              double momentum,
              double weight_decay,
              gboolean nesterov)
{
  TinyOptimizer *self = optimizer_new (SGD, parameters, n, lr);
  self->momentum = momentum;
  self->weight_decay = weight_decay;
  self->nesterov = nesterov;
  if (momentum != 0)
    self->first = moments (self);
  return self;
}

TinyOptimizer *
tiny_adam_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double beta1,
               double beta2,
               double epsilon,
               double weight_decay)
{
  TinyOptimizer *self = optimizer_new (ADAM, parameters, n, lr);
  const float ones[] = { 1, 1 };
  self->beta1 = beta1;
  self->beta2 = beta2;
  self->epsilon = epsilon;
  self->weight_decay = weight_decay;
  self->first = moments (self);
  self->second = moments (self);
  self->powers = g_object_ref_sink (tiny_tensor_new_from_data (
      self->lr->device, TINY_DTYPE_F32, (gint64[]){ 2 }, 1, ones, sizeof ones));
  return self;
}

/* a * x + b * y */
static TinyTensor *
mix (double a, TinyTensor *x, double b, TinyTensor *y)
{
  return tiny_tensor_add (tiny_tensor_mul_number (x, a), tiny_tensor_mul_number (y, b));
}

/* The change of a parameter, and its moments assigned. */
static TinyTensor *
sgd_change (TinyOptimizer *self, guint i, TinyTensor *p, TinyTensor *gradient, GError **error)
{
  TinyTensor *g = gradient;
  if (self->weight_decay != 0)
    g = tiny_tensor_add (g, tiny_tensor_mul_number (p, self->weight_decay));
  if (self->momentum == 0)
    return tiny_tensor_mul (g, self->lr);
  g_autoptr (TinyTensor) kept = g_object_ref_sink (g);
  TinyTensor *m = self->first->pdata[i];
  if (!tiny_tensor_assign (
          m, tiny_tensor_add (tiny_tensor_mul_number (m, self->momentum), kept), error))
    return NULL;
  TinyTensor *change
      = self->nesterov ? tiny_tensor_add (kept, tiny_tensor_mul_number (m, self->momentum)) : m;
  return tiny_tensor_mul (change, self->lr);
}

/* m = β1 m + (1-β1) g; v = β2 v + (1-β2) g²; p -= lr/(1-β1^t) m / (√(v/(1-β2^t)) + ε) */
static TinyTensor *
adam_change (TinyOptimizer *self,
             guint i,
             TinyTensor *p,
             TinyTensor *gradient,
             TinyTensor *const scales[2],
             GError **error)
{
  TinyTensor *m = self->first->pdata[i], *v = self->second->pdata[i];
  TinyTensor *square = tiny_tensor_square (gradient);
  if (!tiny_tensor_assign (m, mix (self->beta1, m, 1 - self->beta1, gradient), error)
      || !tiny_tensor_assign (v, mix (self->beta2, v, 1 - self->beta2, square), error))
    return NULL;
  TinyTensor *size = tiny_tensor_sqrt (tiny_tensor_mul (v, scales[1]));
  TinyTensor *change = tiny_tensor_div (tiny_tensor_mul (m, scales[0]),
                                        tiny_tensor_add_number (size, self->epsilon), NULL);
  if (self->weight_decay == 0)
    return change;
  TinyTensor *decay
      = tiny_tensor_mul (p, tiny_tensor_mul_number (self->lr, self->weight_decay));
  return tiny_tensor_add (change, decay);
}

/* lr / (1 - β1^t) and 1 / (1 - β2^t), after a step of t. */
static gboolean
adam_scales (TinyOptimizer *self, TinyTensor *out[2], GError **error)
{
  TinyTensor *betas[] = {
    tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 1 }, 1, self->beta1),
    tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 1 }, 1, self->beta2),
  };
  if (!tiny_tensor_assign (
          self->powers, tiny_tensor_mul (self->powers, tiny_tensor_cat (betas, 2, 0)), error))
    return FALSE;
  for (guint i = 0; i < 2; i++) {
    TinyTensor *power
        = tiny_tensor_reshape (tiny_tensor_slice (self->powers, 0, i, i + 1, 1), NULL, 0);
    TinyTensor *rest = tiny_tensor_reciprocal (tiny_tensor_sub (tiny_tensor_scalar (1), power));
    out[i] = g_object_ref_sink (i == 0 ? tiny_tensor_mul (rest, self->lr) : rest);
  }
  return TRUE;
}

static gboolean
assign_all (TinyOptimizer *self, GPtrArray *changed, GError **error)
{
  TinyTensor *scales[2] = { NULL };
  gboolean good = self->kind != ADAM || adam_scales (self, scales, error);
  if (good && self->powers != NULL)
    g_ptr_array_add (changed, self->powers);
  for (guint i = 0; good && i < self->parameters->len; i++) {
    TinyTensor *p = self->parameters->pdata[i], *gradient = tiny_tensor_get_grad (p);
    if (gradient == NULL)
      continue;
    TinyTensor *change = self->kind == ADAM ? adam_change (self, i, p, gradient, scales, error)
                                            : sgd_change (self, i, p, gradient, error);
    good = change != NULL && tiny_tensor_assign (p, tiny_tensor_sub (p, change), error);
    g_ptr_array_add (changed, p);
    if (self->first != NULL)
      g_ptr_array_add (changed, self->first->pdata[i]);
    if (self->second != NULL)
      g_ptr_array_add (changed, self->second->pdata[i]);
  }
  g_clear_object (&scales[0]);
  g_clear_object (&scales[1]);
  return good;
}

/* Before anything is assigned: what is still waiting for its first value gets it, so that every
 * step of the same kind is the same schedule. */
static gboolean
realize_state (TinyOptimizer *self, GError **error)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  GPtrArray *const lists[] = { self->parameters, self->first, self->second };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    for (guint j = 0; lists[i] != NULL && j < lists[i]->len; j++)
      if (!tiny_tensor_is_realized (lists[i]->pdata[j]))
        g_ptr_array_add (all, lists[i]->pdata[j]);
  return tiny_tensor_realize_many ((TinyTensor *const *) all->pdata, all->len, error);
}

gboolean
tiny_optimizer_step (TinyOptimizer *self,
                     TinyTensor *const *others,
                     guint n_others,
                     GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), FALSE);
  g_autoptr (GPtrArray) changed = g_ptr_array_new ();
  tiny_runtime_lock ();
  gboolean good = realize_state (self, error) && assign_all (self, changed, error);
  for (guint i = 0; i < n_others; i++)
    g_ptr_array_add (changed, others[i]);
  tiny_module_collect_moved (changed);
  good
      = good
        && tiny_tensor_realize_many ((TinyTensor *const *) changed->pdata, changed->len, error);
  if (good)
    tiny_module_forget_moved ();
  for (guint i = 0; i < self->parameters->len; i++)
    tiny_tensor_clear_grad (self->parameters->pdata[i]);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_optimizer_set_lr (TinyOptimizer *self, double lr, GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), FALSE);
  float rate = (float) lr;
  if (!tiny_tensor_write_data (self->lr, &rate, sizeof rate, error))
    return FALSE;
  self->rate = lr;
  return TRUE;
}

double
tiny_optimizer_get_lr (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), 0);
  return self->rate;
}
