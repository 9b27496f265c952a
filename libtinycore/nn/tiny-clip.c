/* SPDX-License-Identifier: MIT
 *
 * tiny-clip.c: limits of gradients, between backward and a step. */
#include "nn/tiny-clip.h"

#include <math.h>

#include "base/tiny-guard.h"
#include "nn/module-private.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

static void
set_grad (TinyTensor *parameter, TinyTensor *value)
{
  tiny_runtime_lock ();
  tiny_tensor_leave_grad (parameter, g_object_ref_sink (value));
  tiny_runtime_unlock ();
}

/* The part of a gradient in the norm: |g|^norm summed, or the largest |g|. */
static TinyTensor *
part_of (TinyTensor *gradient, double norm)
{
  TinyTensor *g = tiny_tensor_cast (
      gradient, gradient->dtype == TINY_DTYPE_F64 ? TINY_DTYPE_F64 : TINY_DTYPE_F32);
  if (isinf (norm))
    return tiny_tensor_max (tiny_tensor_abs (g), NULL, 0, FALSE);
  g = norm == 2   ? tiny_tensor_square (g)
      : norm == 1 ? tiny_tensor_abs (g)
                  : tiny_tensor_pow (tiny_tensor_abs (g), tiny_tensor_scalar_float (norm));
  return tiny_tensor_sum (g, NULL, 0, FALSE);
}

static TinyTensor *
norm_of_all (TinyTensor *const *parameters, guint n, double norm)
{
  TinyTensor *all = NULL;
  for (guint i = 0; i < n; i++) {
    TinyTensor *gradient = parameters[i] == NULL ? NULL : tiny_tensor_find_grad (parameters[i]);
    if (gradient == NULL || tiny_tensor_get_n_elements (gradient) == 0)
      continue;
    TinyTensor *part = part_of (gradient, norm);
    all = all == NULL    ? part
          : isinf (norm) ? tiny_tensor_maximum (all, part)
                         : tiny_tensor_add (all, part);
  }
  if (all == NULL)
    return tiny_tensor_full (TINY_DTYPE_F32, NULL, 0, 0);
  if (isinf (norm) || norm == 1)
    return all;
  return norm == 2 ? tiny_tensor_sqrt (all)
                   : tiny_tensor_pow (all, tiny_tensor_scalar_float (1 / norm));
}

TinyTensor *
tiny_clip_grad_norm (TinyTensor *const *parameters, guint n, double max_norm, double norm)
{
  if (!TINY_IS_LIST (parameters, n))
    return tiny_tensor_new_invalid ("clip_grad_norm: %u parameters are counted, none given", n);
  if (!(max_norm >= 0) || !(norm > 0))
    return tiny_tensor_new_invalid ("clip_grad_norm: norm %g cannot be limited to %g", norm,
                                    max_norm);
  g_autoptr (TinyTensor) all = g_object_ref_sink (norm_of_all (parameters, n, norm));
  if (all->error != NULL)
    return tiny_tensor_new_alias (all);
  TinyTensor *part = tiny_tensor_reciprocal (tiny_tensor_add_number (all, 1e-6));
  g_autoptr (TinyTensor) scale = g_object_ref_sink (tiny_tensor_minimum (
      tiny_tensor_mul_number (part, max_norm), tiny_tensor_scalar_float (1)));
  for (guint i = 0; i < n; i++) {
    TinyTensor *gradient = parameters[i] == NULL ? NULL : tiny_tensor_find_grad (parameters[i]);
    if (gradient != NULL)
      set_grad (parameters[i],
                tiny_tensor_cast (tiny_tensor_mul (gradient, scale), gradient->dtype));
  }
  return tiny_tensor_new_alias (all);
}

gboolean
tiny_clip_grad_value (TinyTensor *const *parameters, guint n, double value, GError **error)
{
  tiny_return_error_unless (TINY_IS_LIST (parameters, n), error, FALSE,
                            "parameters are counted, but none are given");
  if (!(value >= 0)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "clip_grad_value: elements cannot be limited to %g", value);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    TinyTensor *gradient = parameters[i] == NULL ? NULL : tiny_tensor_find_grad (parameters[i]);
    if (gradient != NULL)
      set_grad (
          parameters[i],
          tiny_tensor_maximum (tiny_tensor_minimum (gradient, tiny_tensor_scalar_float (value)),
                               tiny_tensor_scalar_float (-value)));
  }
  return TRUE;
}
