/* SPDX-License-Identifier: MIT
 *
 * model.h: what the models of bench/ share: their weights, whose values follow from their names
 * (tools/bench-data.h), and the list of cases that bench-model runs. */
#pragma once

#include "tools/bench-data.h"

enum { MODEL_MAX_INPUTS = 4 };

/* A model ready to run: what it owns, and the function that is captured. */
typedef struct {
  const void *config;
  gpointer parts;   /* of the model's own kind, freed with g_free() */
  GPtrArray *owned; /* every weight and state tensor */
  TinyTensor *inputs[MODEL_MAX_INPUTS];
  guint n_inputs;
  TinyJitFunction step; /* one output; its user data is the Model */
} Model;

typedef struct {
  const char *name;
  const void *config;
  gboolean (*set_up) (Model *self, GError **error);
  double n_flops, n_bytes; /* of one step; 0: not meaningful */
} ModelCase;

extern const ModelCase attention_cases[], gpt2_cases[], resnet_cases[], cnn_cases[],
    resnet_train_cases[], recurrent_cases[],
    long_recurrent_cases[]; /* ended by a row without name */

/* bench_tensor (), owned by @self. Weights of all models are made here. */
TinyTensor *model_weight (Model *self,
                          const char *name,
                          const gint64 *shape,
                          guint n_dims,
                          double offset,
                          double scale);
/* Sinks @tensor, which lives as long as @self. */
TinyTensor *model_own (Model *self, TinyTensor *tensor);
/* (transfer full): @object lives as long as @self. */
gpointer model_own_object (Model *self, gpointer object);
/* Weights of two axes or more within ±0.1, those of one axis near 0.5. */
gboolean model_fill_parameters (TinyModule *module, GError **error);
