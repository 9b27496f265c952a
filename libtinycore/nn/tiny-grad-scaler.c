/* SPDX-License-Identifier: MIT
 *
 * tiny-grad-scaler.c: the scale and the count of good steps as tensors that each update assigns. */
#include "nn/tiny-grad-scaler.h"

#include <math.h>

#include "base/tiny-guard.h"
#include "nn/module-private.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

/* What was done with an optimiser's gradients since the last update. */
typedef struct {
  TinyOptimizer *optimizer; /* owned */
  TinyTensor *is_bad;       /* owned: bool, (): whether one is not finite */
  gboolean has_stepped;
} Scaled;

struct _TinyGradScaler {
  GObject parent_instance;
  TinyTensor *scale;  /* f32, () */
  TinyTensor *n_good; /* f32, (): updates since the scale last moved */
  GPtrArray *scaled;  /* Scaled */
  double growth, backoff;
  guint interval;
  GError *error;
};

G_DEFINE_FINAL_TYPE (TinyGradScaler, tiny_grad_scaler, G_TYPE_OBJECT)

static void
scaled_free (gpointer data)
{
  Scaled *self = data;
  g_object_unref (self->optimizer);
  g_object_unref (self->is_bad);
  g_free (self);
}

static void
tiny_grad_scaler_finalize (GObject *object)
{
  TinyGradScaler *self = TINY_GRAD_SCALER (object);
  g_clear_object (&self->scale);
  g_clear_object (&self->n_good);
  g_ptr_array_unref (self->scaled);
  g_clear_error (&self->error);
  G_OBJECT_CLASS (tiny_grad_scaler_parent_class)->finalize (object);
}

static void
tiny_grad_scaler_class_init (TinyGradScalerClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_grad_scaler_finalize;
}

static void
tiny_grad_scaler_init (TinyGradScaler *self)
{
  self->scaled = g_ptr_array_new_with_free_func (scaled_free);
}

/* (transfer floating) */
static TinyTensor *
number_of (double value)
{
  const float number = (float) value;
  return tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &number, sizeof number);
}

static gboolean
check_numbers (double scale, double growth, double backoff, guint interval, GError **error)
{
  if (scale > 0 && isfinite (scale) && growth > 1 && isfinite (growth) && backoff > 0
      && backoff < 1 && interval >= 1 && interval <= 1 << 24)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "grad_scaler: a scale of %g that grows by %g every %u steps and shrinks by %g",
               scale, growth, interval, backoff);
  return FALSE;
}

TinyGradScaler *
tiny_grad_scaler_new (double scale, double growth, double backoff, guint interval)
{
  TinyGradScaler *self = g_object_new (TINY_TYPE_GRAD_SCALER, NULL);
  self->growth = growth;
  self->backoff = backoff;
  self->interval = interval;
  check_numbers (scale, growth, backoff, interval, &self->error);
  self->scale = g_object_ref_sink (number_of (scale));
  self->n_good = g_object_ref_sink (number_of (0));
  return self;
}

static gboolean
check (TinyGradScaler *self, GError **error)
{
  if (self->error != NULL)
    g_propagate_error (error, g_error_copy (self->error));
  return self->error == NULL;
}

TinyTensor *
tiny_grad_scaler_scale (TinyGradScaler *self, TinyTensor *loss)
{
  g_autoptr (TinyTensor) owned = TINY_IS_TENSOR (loss) ? g_object_ref_sink (loss) : NULL;
  if (!TINY_IS_GRAD_SCALER (self) || owned == NULL)
    return tiny_tensor_new_invalid ("grad_scaler_scale: no %s is given",
                                    owned == NULL ? "loss" : "scaler");
  return self->error == NULL ? tiny_tensor_mul (owned, self->scale)
                             : tiny_tensor_new_for_error (g_error_copy (self->error));
}

/* Whether an element is infinite or NaN: neither is less than infinity. */
static TinyTensor *
find_bad (TinyTensor *gradient)
{
  TinyTensor *is_finite
      = tiny_tensor_lt (tiny_tensor_abs (gradient), tiny_tensor_scalar_float (INFINITY));
  return tiny_tensor_any (tiny_tensor_logical_not (is_finite), NULL, 0, FALSE);
}

/* @parameter's gradient divided by the scale; whether it was good is added to @bad (nullable). */
static TinyTensor *
unscale_one (TinyTensor *parameter, TinyTensor *inverse, TinyTensor *bad)
{
  TinyTensor *gradient = tiny_tensor_find_grad (parameter);
  if (gradient == NULL)
    return bad;
  TinyTensor *found = find_bad (gradient);
  TinyTensor *value = tiny_tensor_cast (tiny_tensor_mul (gradient, inverse), gradient->dtype);
  tiny_tensor_leave_grad (parameter, g_object_ref_sink (value));
  return bad == NULL ? found : tiny_tensor_logical_or (bad, found);
}

static Scaled *
find_scaled (TinyGradScaler *self, TinyOptimizer *optimizer)
{
  for (guint i = 0; i < self->scaled->len; i++) {
    Scaled *scaled = self->scaled->pdata[i];
    if (scaled->optimizer == optimizer)
      return scaled;
  }
  return NULL;
}

/* A TinyFoundNumber: which optimisers' gradients were unscaled, and which of them have stepped. */
static gint64
hash_scaled (gpointer data)
{
  const TinyGradScaler *self = data;
  guint64 hash = self->scaled->len;
  for (guint i = 0; i < self->scaled->len; i++) {
    const Scaled *scaled = self->scaled->pdata[i];
    hash = (hash ^ (guint64) (gsize) scaled->optimizer ^ (guint64) scaled->has_stepped)
           * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  }
  return (gint64) hash;
}

/* That is kept on the host, which replays do not touch. */
static void
note_scaled (TinyGradScaler *self)
{
  tiny_found_keep (self, hash_scaled,
                   "what a scaler knows of unscale_ (), step () and update ()");
}

gboolean
tiny_grad_scaler_unscale (TinyGradScaler *self, TinyOptimizer *optimizer, GError **error)
{
  tiny_return_error_unless (TINY_IS_GRAD_SCALER (self), error, FALSE, "no scaler given");
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, FALSE, "no optimizer given");
  if (!check (self, error))
    return FALSE;
  note_scaled (self);
  if (find_scaled (self, optimizer) != NULL) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "grad_scaler: this optimiser's gradients have been unscaled since the "
                         "last update");
    return FALSE;
  }
  tiny_runtime_lock ();
  g_autoptr (TinyTensor) inverse = g_object_ref_sink (tiny_tensor_reciprocal (self->scale));
  TinyTensor *bad = NULL;
  for (guint k = 0; k < optimizer->groups->len; k++) {
    const TinyGroup *group = optimizer->groups->pdata[k];
    for (guint i = 0; i < group->parameters->len; i++)
      bad = unscale_one (group->parameters->pdata[i], inverse, bad);
  }
  if (bad == NULL)
    bad = tiny_tensor_full (TINY_DTYPE_BOOL, NULL, 0, 0);
  Scaled *scaled = g_new (Scaled, 1);
  *scaled = (Scaled){ g_object_ref (optimizer), g_object_ref_sink (bad), FALSE };
  g_ptr_array_add (self->scaled, scaled);
  tiny_runtime_unlock ();
  return TRUE;
}

gboolean
tiny_grad_scaler_step (TinyGradScaler *self,
                       TinyOptimizer *optimizer,
                       TinyTensor *const *others,
                       guint n_others,
                       GError **error)
{
  tiny_return_error_unless (TINY_IS_GRAD_SCALER (self), error, FALSE, "no scaler given");
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, FALSE, "no optimizer given");
  tiny_return_error_unless (TINY_IS_LIST (others, n_others), error, FALSE,
                            "others are counted, but none are given");
  note_scaled (self);
  if (find_scaled (self, optimizer) == NULL
      && !tiny_grad_scaler_unscale (self, optimizer, error))
    return FALSE;
  Scaled *scaled = find_scaled (self, optimizer);
  if (scaled->has_stepped) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "grad_scaler: this optimiser has stepped since the last update");
    return FALSE;
  }
  scaled->has_stepped = TRUE;
  g_autoptr (GPtrArray) all = g_ptr_array_new (); /* the update wants to know, too */
  for (guint i = 0; i < n_others; i++)
    g_ptr_array_add (all, others[i]);
  g_ptr_array_add (all, scaled->is_bad);
  return tiny_optimizer_step_unless (optimizer, scaled->is_bad,
                                     (TinyTensor *const *) all->pdata, all->len, error);
}

/* scale, n_good = bad: scale * backoff, 0; after interval good ones: scale * growth, 0; else scale, n_good + 1 */
static gboolean
move (TinyGradScaler *self, TinyTensor *is_bad, GError **error)
{
  g_autoptr (TinyTensor) bad = g_object_ref_sink (is_bad);
  g_autoptr (TinyTensor) good = g_object_ref_sink (tiny_tensor_add_number (self->n_good, 1));
  g_autoptr (TinyTensor) grows = g_object_ref_sink (
      tiny_tensor_ge (good, tiny_tensor_scalar_float ((double) self->interval)));
  TinyTensor *scale = tiny_tensor_where (
      grows, tiny_tensor_mul_number (self->scale, self->growth), self->scale);
  scale = tiny_tensor_where (bad, tiny_tensor_mul_number (self->scale, self->backoff), scale);
  TinyTensor *n = tiny_tensor_where (tiny_tensor_logical_or (grows, bad),
                                     tiny_tensor_scalar_float (0), good);
  return tiny_tensor_assign (self->scale, scale, error)
         && tiny_tensor_assign (self->n_good, n, error)
         && tiny_tensor_realize_many ((TinyTensor *[]){ self->scale, self->n_good }, 2, error);
}

gboolean
tiny_grad_scaler_update (TinyGradScaler *self, GError **error)
{
  tiny_return_error_unless (TINY_IS_GRAD_SCALER (self), error, FALSE, "no scaler given");
  if (!check (self, error))
    return FALSE;
  note_scaled (self);
  if (self->scaled->len == 0) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "grad_scaler: no gradients were unscaled since the last update");
    return FALSE;
  }
  tiny_runtime_lock ();
  TinyTensor *bad = NULL;
  for (guint i = 0; i < self->scaled->len; i++) {
    const Scaled *scaled = self->scaled->pdata[i];
    bad = bad == NULL ? scaled->is_bad : tiny_tensor_logical_or (bad, scaled->is_bad);
  }
  gboolean good = move (self, bad, error);
  g_ptr_array_set_size (self->scaled, 0);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_grad_scaler_get_scale (TinyGradScaler *self, double *out_scale, GError **error)
{
  tiny_return_error_unless (TINY_IS_GRAD_SCALER (self), error, FALSE, "no scaler given");
  tiny_return_error_unless (out_scale != NULL, error, FALSE, "no room for the scale given");
  return check (self, error) && tiny_tensor_item (self->scale, out_scale, error);
}

gboolean
tiny_grad_scaler_get_n_good (TinyGradScaler *self, guint *out_n_good, GError **error)
{
  double n_good = 0;
  tiny_return_error_unless (TINY_IS_GRAD_SCALER (self), error, FALSE, "no scaler given");
  tiny_return_error_unless (out_n_good != NULL, error, FALSE, "no room for the number given");
  if (!check (self, error) || !tiny_tensor_item (self->n_good, &n_good, error))
    return FALSE;
  *out_n_good = (guint) n_good;
  return TRUE;
}

gboolean
tiny_grad_scaler_load (TinyGradScaler *self,
                       double scale,
                       guint n_good,
                       double growth,
                       double backoff,
                       guint interval,
                       GError **error)
{
  tiny_return_error_unless (TINY_IS_GRAD_SCALER (self), error, FALSE, "no scaler given");
  if (!check (self, error) || !check_numbers (scale, growth, backoff, interval, error))
    return FALSE;
  if (self->scaled->len > 0 || n_good > interval) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "grad_scaler: %u good steps of %u are loaded%s", n_good, interval,
                 self->scaled->len > 0 ? " after gradients were unscaled: update () first"
                                       : "");
    return FALSE;
  }
  if (!tiny_tensor_assign (self->scale, number_of (scale), error)
      || !tiny_tensor_assign (self->n_good, number_of (n_good), error)
      || !tiny_tensor_realize_many ((TinyTensor *[]){ self->scale, self->n_good }, 2, error))
    return FALSE;
  self->growth = growth;
  self->backoff = backoff;
  self->interval = interval;
  return TRUE;
}
