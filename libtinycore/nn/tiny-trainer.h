/* SPDX-License-Identifier: MIT
 *
 * tiny-trainer.h: a network, its optimiser, and the captured steps that train and test it. */
#pragma once

#include "nn/tiny-loader.h"
#include "nn/tiny-module.h"
#include "nn/tiny-optimizer.h"

G_BEGIN_DECLS

/**
 * tiny_image_classifier_new:
 * @n_classes: how many classes
 *
 * The network for small grey images of 28×28: conv 32@5×5, relu, conv 32@5×5, relu, batch-norm,
 * max-pool 2, conv 64@3×3, relu, conv 64@3×3, relu, batch-norm, max-pool 2, linear 576→@n_classes.
 * Takes (B, 1, 28, 28) of u8 or of floats from 0 to 255; gives scores (B, K) before softmax.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_image_classifier_new (gint64 n_classes);

/**
 * TinyTrainer:
 *
 * A classifier and its optimiser, whose step is recorded and replayed.
 *
 * Since: 0.1
 */
#define TINY_TYPE_TRAINER (tiny_trainer_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyTrainer, tiny_trainer, TINY, TRAINER, GObject)

/**
 * tiny_trainer_new:
 * @module: from (B, …) to scores (B, K)
 * @optimizer: of @module's parameters
 *
 * Makes a trainer, which classifies: each of its steps is a forward and a backward pass and one of @optimizer, recorded
 * once and replayed from then on. Without @module or @optimizer steps are refused.
 *
 * Returns: (transfer full): a trainer
 *
 * Since: 0.1
 */
TINY_API TinyTrainer *tiny_trainer_new (TinyModule *module, TinyOptimizer *optimizer);

/**
 * tiny_trainer_step:
 * @self: a trainer
 * @x: a batch
 * @y: its labels, integers (B)
 * @out_loss: (out) (optional): the loss before the step; asking for it waits for the device
 * @error: return location
 *
 * One step of training: cross-entropy, gradients, new parameters. The first call computes, the
 * second records, later ones replay; all batches have one shape.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_trainer_step (
    TinyTrainer *self, TinyTensor *x, TinyTensor *y, double *out_loss, GError **error);

/**
 * tiny_trainer_evaluate:
 * @self: a trainer
 * @loader: what to test with
 * @out_accuracy: (out): the part of the items whose highest score is at their label
 * @error: return location
 *
 * Runs one epoch of @loader without training, and leaves the modes of modules as they were. Every item counts that
 * @loader gives, those of a last batch that is not full too.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_trainer_evaluate (TinyTrainer *self,
                                         TinyLoader *loader,
                                         double *out_accuracy,
                                         GError **error);

/**
 * tiny_trainer_get_n_kernels:
 * @self: a trainer
 *
 * The size of the recorded step.
 *
 * Returns: how many kernels a replayed step launches; 0 before the second step
 *
 * Since: 0.1
 */
TINY_API guint tiny_trainer_get_n_kernels (TinyTrainer *self);

G_END_DECLS
