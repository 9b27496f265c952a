/* SPDX-License-Identifier: MIT
 *
 * tiny-norm-layers.h: normalisations. */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/**
 * tiny_batch_norm_new:
 * @n: channels
 * @epsilon: 1e-5
 * @momentum: how far the running statistics move at each forward, such as 0.1; negative: they are the
 *   plain mean over all batches
 * @affine: whether there are "weight" and "bias"
 * @track: whether there are running statistics; if not, the batch's are taken in both modes
 *
 * (B, C, …): each channel to mean 0 and variance 1 over everything else, then times "weight" (C) plus
 * "bias" (C) (Ioffe and Szegedy 2015). In training mode with the batch's statistics, which move
 * "running_mean", "running_var" and "num_batches_tracked" (tiny_module_move_buffer()); else with the
 * running ones.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_batch_norm_new (
    gint64 n, double epsilon, double momentum, gboolean affine, gboolean track);

/**
 * tiny_batch_norm2d_new:
 * @n: channels
 *
 * tiny_batch_norm_new() with epsilon 1e-5, momentum 0.1 and all tensors.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_batch_norm2d_new (gint64 n);

/**
 * tiny_group_norm_new:
 * @n_groups: groups of channels
 * @n: channels, a multiple of @n_groups
 * @epsilon: 1e-5
 * @affine: whether there are "weight" and "bias"
 *
 * (B, C, …): each group of channels of each item to mean 0 and variance 1, then times "weight" (C) plus
 * "bias" (C) (Wu and He 2018).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *
tiny_group_norm_new (gint64 n_groups, gint64 n, double epsilon, gboolean affine);

/**
 * tiny_instance_norm_new:
 * @n: channels
 * @epsilon: 1e-5
 * @affine: whether there are "weight" and "bias"
 *
 * tiny_group_norm_new() with a group for each channel.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_instance_norm_new (gint64 n, double epsilon, gboolean affine);

/**
 * tiny_layer_norm_new:
 * @shape: (array length=n_dims): the sizes of the last axes
 * @n_dims: how many
 * @epsilon: 1e-5
 * @affine: whether there are "weight" and "bias", of @shape
 *
 * (…, @shape): the last axes together to mean 0 and variance 1, then times "weight" plus "bias" (Ba,
 * Kiros and Hinton 2016).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *
tiny_layer_norm_new (const gint64 *shape, guint n_dims, double epsilon, gboolean affine);

/**
 * tiny_layer_norm2d_new:
 * @n: channels
 * @epsilon: 1e-5
 * @affine: whether there are "weight" and "bias", (C)
 *
 * (B, C, Y, X): the channels of each place to mean 0 and variance 1.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_layer_norm2d_new (gint64 n, double epsilon, gboolean affine);

/**
 * tiny_rms_norm_new:
 * @n: the size of the last axis
 * @epsilon: such as 1e-6; 0: as of tiny_tensor_rms_norm()
 * @affine: whether there is "weight" (N)
 *
 * (…, N): x / sqrt (mean (x²) + @epsilon) times "weight" (Zhang and Sennrich 2019).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_rms_norm_new (gint64 n, double epsilon, gboolean affine);

G_END_DECLS
