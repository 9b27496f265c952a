/* SPDX-License-Identifier: MIT
 *
 * tiny-model.h: a computation with its weights, apart from any device: inputs and outputs by name.
 *
 * As files it is NAME.tir, the tensor graph in the IR's text form, and NAME.safetensors beside it. In the
 * graph a PARAM called weights.X is the array X of that file, every other PARAM is an input of its
 * name; the names of the SINK's sources are the outputs'. Such a file can be written by hand. */
#pragma once

#include "nn/tiny-module.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyModel:
 *
 * A computation with its weights, as it is saved and exported.
 *
 * Since: 0.1
 */
#define TINY_TYPE_MODEL (tiny_model_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyModel, tiny_model, TINY, MODEL, GObject)

/**
 * tiny_model_new:
 * @inputs: (array length=n_inputs): what is given anew in each run: tensors in memory, such as of
 *   tiny_tensor_empty()
 * @input_names: (array length=n_inputs): their names
 * @n_inputs: how many
 * @outputs: (array length=n_outputs): what is computed from them, not realised yet
 * @output_names: (array length=n_outputs): their names
 * @n_outputs: how many
 * @module: (nullable): whose tensors give the weights their names
 * @error: return location
 *
 * Makes a model of what is computed for @outputs. All other memory that they read becomes weights,
 * with the values that it has now; so a module's tensors are to be realised before @outputs are built, as
 * they are after a step of training. Names are letters, digits and underscores, with dots between them.
 *
 * Errors: %TINY_ERROR_INVALID for a bad or repeated name, an input that is not in memory or that no
 * output reads, an output that is computed already or that assigns; what the tensors carry.
 *
 * Returns: (transfer full) (nullable): a model
 *
 * Since: 0.1
 */
TINY_API TinyModel *tiny_model_new (TinyTensor *const *inputs,
                                    const char *const *input_names,
                                    guint n_inputs,
                                    TinyTensor *const *outputs,
                                    const char *const *output_names,
                                    guint n_outputs,
                                    TinyModule *module,
                                    GError **error);

/**
 * tiny_model_set_metadata:
 * @self: a model
 * @key: what: "classes" are the names of the last axis of the first output, one a line
 * @text: (nullable): its text; %NULL takes it away
 *
 * Says something of the model, which goes with it into files and exports.
 *
 * Since: 0.1
 */
TINY_API void tiny_model_set_metadata (TinyModel *self, const char *key, const char *text);

/**
 * tiny_model_set_examples:
 * @self: a model
 * @input: the name of an input
 * @examples: values for it one after the other, each of the input's size
 * @error: return location
 *
 * Gives examples of an input, which go with the model into files and exports.
 *
 * Errors: %TINY_ERROR_INVALID when there is no such input or the size does not fit.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_model_set_examples (TinyModel *self,
                                           const char *input,
                                           GBytes *examples,
                                           GError **error);

/**
 * tiny_model_save:
 * @self: a model
 * @path: (type filename): where to write it, ending in ".tir"; weights go beside it, ending in ".safetensors"
 * @error: return location
 *
 * Errors: %TINY_ERROR_INVALID for another ending, %TINY_ERROR_IO.
 *
 * Returns: whether it worked; neither file is ever there in part
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_model_save (TinyModel *self, const char *path, GError **error);

/**
 * tiny_model_load:
 * @path: (type filename): a file that tiny_model_save() wrote, or one by hand
 * @error: return location
 *
 * Errors: %TINY_ERROR_IO for a file that cannot be read, %TINY_ERROR_FORMAT for one that is no tensor
 * graph or lacks weights, naming the file and the place.
 *
 * Weights and examples are read when they are needed; their file stays open until then, as long as the model lives.
 *
 * Returns: (transfer full) (nullable): a model
 *
 * Since: 0.1
 */
TINY_API TinyModel *tiny_model_load (const char *path, GError **error);

/**
 * tiny_model_get_n_inputs:
 * @self: a model
 *
 * The number of tensors that @self takes.
 *
 * Returns: how many inputs it has
 *
 * Since: 0.1
 */
TINY_API guint tiny_model_get_n_inputs (TinyModel *self);

/**
 * tiny_model_get_n_outputs:
 * @self: a model
 *
 * The number of tensors that @self gives.
 *
 * Returns: how many outputs it has
 *
 * Since: 0.1
 */
TINY_API guint tiny_model_get_n_outputs (TinyModel *self);

/**
 * tiny_model_apply: (skip)
 * @self: a model
 * @inputs: (array length=n_inputs): of the model's dtypes and shapes, in its order
 * @n_inputs: as many as it has
 * @outputs: (out caller-allocates) (array): room for as many tensors as it has outputs
 * @error: return location
 *
 * Builds the model's computation on tensors, as any operation does: nothing runs yet. The weights go
 * to the default device, once.
 *
 * Errors: %TINY_ERROR_INVALID for inputs that do not fit; what the inputs carry; %TINY_ERROR_IO for weights that are gone
 * from their file.
 *
 * Returns: whether it worked; @outputs are new references then
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_model_apply (TinyModel *self,
                                    TinyTensor *const *inputs,
                                    guint n_inputs,
                                    TinyTensor **outputs,
                                    GError **error);

/**
 * tiny_model_apply_list: (rename-to tiny_model_apply)
 * @self: a model
 * @inputs: (array length=n_inputs): of the model's dtypes and shapes, in its order
 * @n_inputs: as many as it has
 * @error: return location
 *
 * As tiny_model_apply(), for languages that get a list rather than give room for one.
 *
 * Errors: those of tiny_model_apply().
 *
 * Returns: (transfer container) (element-type TinyTensor): the outputs; they go with the list
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_model_apply_list (TinyModel *self,
                                           TinyTensor *const *inputs,
                                           guint n_inputs,
                                           GError **error);

/**
 * tiny_model_export:
 * @self: a model
 * @target: what for: a name that a backend's manifest exports, such as "c", or
 *   BACKEND:RENDERER[:ARCH] of a renderer that writes source
 * @name: what it is called there; NULL: as @folder
 * @folder: (type filename): where to write it: not there yet, or empty
 * @error: return location
 *
 * Writes a program for @target that needs nothing of this library (docs/export.md). No device is
 * opened.
 *
 * Errors: %TINY_ERROR_NO_DEVICE when there is no such target, %TINY_ERROR_UNSUPPORTED for what it
 * cannot do, %TINY_ERROR_IO; @folder is as it was then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_model_export (
    TinyModel *self, const char *target, const char *name, const char *folder, GError **error);

G_END_DECLS
