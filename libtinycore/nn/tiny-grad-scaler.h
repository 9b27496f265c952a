/* SPDX-License-Identifier: MIT
 *
 * tiny-grad-scaler.h: scaling of a loss, so that gradients in small formats do not vanish. */
#pragma once

#include "nn/tiny-optimizer.h"

G_BEGIN_DECLS

#define TINY_TYPE_GRAD_SCALER (tiny_grad_scaler_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyGradScaler, tiny_grad_scaler, TINY, GRAD_SCALER, GObject)

/**
 * TinyGradScaler:
 *
 * A scale that grows while gradients are finite and shrinks when they are not (Micikevicius et al. 2018). It lives
 * in device memory, and so does the choice to skip a step: #TinyJit can capture both.
 *
 * Since: 0.1
 */

/**
 * tiny_grad_scaler_new:
 * @scale: the scale at the start, such as 65536
 * @growth: what it is multiplied by after @interval updates with finite gradients, such as 2
 * @backoff: what it is multiplied by where a gradient is not finite, such as 0.5
 * @interval: how many updates, such as 2000
 *
 * Numbers that cannot be are the error of the first step.
 *
 * Returns: (transfer full): a scaler
 *
 * Since: 0.1
 */
TINY_API TinyGradScaler *
tiny_grad_scaler_new (double scale, double growth, double backoff, guint interval);

/**
 * tiny_grad_scaler_scale:
 * @self: a scaler
 * @loss: a loss
 *
 * @loss times the scale, for tiny_tensor_backward().
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_grad_scaler_scale (TinyGradScaler *self, TinyTensor *loss);

/**
 * tiny_grad_scaler_unscale:
 * @self: a scaler
 * @optimizer: an optimiser with gradients of a scaled loss
 * @error: return location
 *
 * Divides the gradients by the scale, for what comes before the step, such as tiny_clip_grad_norm(). Nothing
 * runs.
 *
 * Errors: %TINY_ERROR_INVALID when it was done for this optimiser since the last update; what the scaler was made with.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_grad_scaler_unscale (TinyGradScaler *self,
                                            TinyOptimizer *optimizer,
                                            GError **error);

/**
 * tiny_grad_scaler_step:
 * @self: a scaler
 * @optimizer: an optimiser with gradients of a scaled loss
 * @others: (array length=n_others) (nullable): tensors to realise along with the new parameters
 * @n_others: how many
 * @error: return location
 *
 * tiny_grad_scaler_unscale(), if it was not done, and tiny_optimizer_step(), which changes nothing where one of
 * its gradients is not finite. The scale stays what it is until tiny_grad_scaler_update(), for further optimisers.
 *
 * Errors: %TINY_ERROR_INVALID when this optimiser has stepped since the last update; those of its step.
 *
 * Returns: whether it worked; a step that was skipped did
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_grad_scaler_step (TinyGradScaler *self,
                                         TinyOptimizer *optimizer,
                                         TinyTensor *const *others,
                                         guint n_others,
                                         GError **error);

/**
 * tiny_grad_scaler_update:
 * @self: a scaler
 * @error: return location
 *
 * Moves the scale, once after the steps of all optimisers: down where a gradient of any was not finite.
 *
 * Errors: %TINY_ERROR_INVALID when no gradients were unscaled since the last update.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_grad_scaler_update (TinyGradScaler *self, GError **error);

/**
 * tiny_grad_scaler_get_scale:
 * @self: a scaler
 * @out_scale: (out): the scale
 * @error: return location
 *
 * Reads the scale, which waits for the device.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_grad_scaler_get_scale (TinyGradScaler *self,
                                              double *out_scale,
                                              GError **error);

/**
 * tiny_grad_scaler_get_n_good:
 * @self: a scaler
 * @out_n_good: (out): how many updates since the scale last moved
 * @error: return location
 *
 * Reads that number, which waits for the device: beside the scale it is all that a scaler remembers.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_grad_scaler_get_n_good (TinyGradScaler *self,
                                               guint *out_n_good,
                                               GError **error);

/**
 * tiny_grad_scaler_load:
 * @self: a scaler
 * @scale: the scale
 * @n_good: how many updates since it last moved
 * @growth: as tiny_grad_scaler_new() takes it
 * @backoff: likewise
 * @interval: likewise
 * @error: return location
 *
 * Makes a scaler go on as another one would, of which the numbers were saved. Functions that were recorded before read the new
 * scale and number; the other three are constants in them.
 *
 * Errors: %TINY_ERROR_INVALID when the numbers are none, or gradients were unscaled since the last update.
 *
 * Returns: whether it worked; if not, nothing has changed
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_grad_scaler_load (TinyGradScaler *self,
                                         double scale,
                                         guint n_good,
                                         double growth,
                                         double backoff,
                                         guint interval,
                                         GError **error);

G_END_DECLS
