/* SPDX-License-Identifier: MIT
 *
 * tiny-module.h: functions of tensors that own parameters, buffers and other modules, all by name.
 *
 * A parameter is what an optimiser changes; a buffer is other state, such as running statistics. The
 * name of a tensor in a module within is a path: "layers.0.weight". Subclass TinyModule to make a kind
 * of module: add tensors and modules where it is made, and implement forward or forward_many. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_MODULE (tiny_module_get_type ())
TINY_API
G_DECLARE_DERIVABLE_TYPE (TinyModule, tiny_module, TINY, MODULE, GObject)

/**
 * TinyModule:
 *
 * A function of tensors with parameters, buffers and modules in it.
 *
 * Since: 0.1
 */

/**
 * TinyModuleClass:
 * @parent_class: the class of its parent
 * @forward: builds the result for one input
 * @forward_many: builds the results for several inputs
 *
 * What a kind of module implements: @forward, or @forward_many where there are several inputs or results.
 * Nothing runs in them: they build lazy tensors.
 *
 * Since: 0.1
 */
struct _TinyModuleClass {
  GObjectClass parent_class;

  /**
   * TinyModuleClass::forward:
   * @self: a module
   * @x: (transfer none): the input, never floating
   *
   * What the module makes of one tensor.
   *
   * Returns: (transfer full): the result, floating or with a reference of its own: an input or a
   *   parameter is given with g_object_ref()
   *
   * Since: 0.1
   */
  TinyTensor *(*forward) (TinyModule *self, TinyTensor *x);

  /**
   * TinyModuleClass::forward_many:
   * @self: a module
   * @inputs: (element-type TinyTensor) (transfer none): the inputs, none floating
   *
   * What the module makes of several tensors.
   *
   * Returns: (element-type TinyTensor) (transfer full): the results, each floating or with a reference
   *   of its own
   *
   * Since: 0.1
   */
  GPtrArray *(*forward_many) (TinyModule *self, GPtrArray *inputs);

  /*< private >*/
  gpointer reserved[8];
};

/* ---- applying ---- */
/**
 * tiny_module_forward:
 * @self: a module
 * @x: an input
 *
 * Applies the module to one tensor. Of a module with several results this is the first. Errors are sticky,
 * as everywhere; so are those of making the module (tiny_module_get_error()).
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_forward (TinyModule *self, TinyTensor *x);

/**
 * tiny_module_call:
 * @self: a module
 * @inputs: (array length=n_inputs): inputs
 * @n_inputs: how many
 *
 * Applies the module to several tensors, such as the query, key and value of attention. A module that
 * implements only forward takes one. Errors are sticky: where the module fails, the one result
 * carries why.
 *
 * Returns: (transfer container) (element-type TinyTensor): the results, at least one, which it owns
 *
 * Since: 0.1
 */
TINY_API GPtrArray *
tiny_module_call (TinyModule *self, TinyTensor *const *inputs, guint n_inputs);

/**
 * tiny_module_get_error:
 * @self: a module
 *
 * What was wrong with the arguments that the module was made with. Applying it gives tensors that carry
 * this error.
 *
 * Returns: (transfer none) (nullable): the error; %NULL when there is none
 *
 * Since: 0.1
 */
TINY_API const GError *tiny_module_get_error (TinyModule *self);

/**
 * tiny_module_set_training:
 * @self: a module
 * @training: whether batch statistics are taken and dropout drops
 *
 * For this module and all in it. Modules start in training mode.
 *
 * Since: 0.1
 */
TINY_API void tiny_module_set_training (TinyModule *self, gboolean training);

/**
 * tiny_module_get_training:
 * @self: a module
 *
 * See tiny_module_set_training().
 *
 * Returns: whether it is in training mode
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_get_training (TinyModule *self);

/* ---- making: for implementers ---- */
/**
 * tiny_module_add_parameter:
 * @self: a module
 * @name: such as "weight"; not empty, without a dot, of no other tensor or module in @self
 * @tensor: its value at the start, of a float dtype; a floating reference is taken
 * @error: return location
 *
 * Makes @tensor a parameter with memory of its own that requires gradients.
 *
 * Errors: %TINY_ERROR_INVALID for a bad name or dtype, and what @tensor carries.
 *
 * Returns: (transfer none) (nullable): @tensor, owned by the module
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_add_parameter (TinyModule *self,
                                                const char *name,
                                                TinyTensor *tensor,
                                                GError **error);

/**
 * tiny_module_add_buffer:
 * @self: a module
 * @name: such as "running_mean"; not empty, without a dot, of no other tensor or module in @self
 * @tensor: its value at the start; a floating reference is taken
 * @persistent: whether it is part of the state dict
 * @error: return location
 *
 * Makes @tensor a buffer: state with memory of its own that no optimiser changes.
 *
 * Errors: %TINY_ERROR_INVALID for a bad name, and what @tensor carries.
 *
 * Returns: (transfer none) (nullable): @tensor, owned by the module
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_add_buffer (TinyModule *self,
                                             const char *name,
                                             TinyTensor *tensor,
                                             gboolean persistent,
                                             GError **error);

/**
 * tiny_module_add_child:
 * @self: a module
 * @name: such as "0" or "head"; not empty, without a dot, of no other tensor or module in @self
 * @child: (transfer full): a module, which becomes part of @self
 * @error: return location
 *
 * A module may be part of several, which then share its tensors.
 *
 * Errors: %TINY_ERROR_INVALID for a bad name, and when @child is @self or contains it.
 *
 * Returns: (transfer none) (nullable): @child
 *
 * Since: 0.1
 */
TINY_API TinyModule *
tiny_module_add_child (TinyModule *self, const char *name, TinyModule *child, GError **error);

/**
 * tiny_module_set_tensor:
 * @self: a module
 * @path: a name, or a path such as "head.weight", of one of its parameters or buffers
 * @tensor: (nullable): what is there from now on; %NULL: nothing, as a bias that a layer is to lack
 * @error: return location
 *
 * Puts @tensor itself where another was, so that modules share it: with the weight of another module, both have
 * it under their own names, and an optimiser that gets it changes it once. A buffer stays a buffer, and whether a
 * parameter requires gradients is @tensor's affair. Its shape is not compared: a layer that cannot use it says so
 * when it is applied.
 *
 * Errors: %TINY_ERROR_INVALID when there is no such tensor, or the dtype is none of a parameter; what @tensor carries.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_set_tensor (TinyModule *self,
                                          const char *path,
                                          TinyTensor *tensor,
                                          GError **error);

/**
 * tiny_module_move_buffer:
 * @self: a module
 * @name: one of its buffers
 * @value: the new contents
 *
 * For forward in training mode: makes @value the buffer's contents, without a gradient. It is computed
 * when the buffer is next realised, and by the next step of any optimiser (tiny_optimizer_step()), so
 * that #TinyJit captures it with the step.
 *
 * Errors: %TINY_ERROR_INVALID when there is no such buffer or @value does not fit, and what @value carries.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_move_buffer (TinyModule *self,
                                           const char *name,
                                           TinyTensor *value,
                                           GError **error);

/* ---- what is in it ---- */
/**
 * tiny_module_get_parameter:
 * @self: a module
 * @path: a name, or a path such as "layers.0.weight"
 *
 * Finds what an optimiser changes by its path. It is the module's own tensor, not a copy.
 *
 * Returns: (transfer none) (nullable): the parameter of that name; %NULL when there is none
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_get_parameter (TinyModule *self, const char *path);

/**
 * tiny_module_get_buffer:
 * @self: a module
 * @path: a name, or a path such as "norm.running_mean"
 *
 * Finds state that no optimiser changes by its path. It is the module's own tensor, not a copy.
 *
 * Returns: (transfer none) (nullable): the buffer of that name; %NULL when there is none
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_get_buffer (TinyModule *self, const char *path);

/**
 * tiny_module_get_child:
 * @self: a module
 * @path: a name, or a path such as "layers.0"; "" is @self
 *
 * Finds a module in @self by its path.
 *
 * Returns: (transfer none) (nullable): the module of that name; %NULL when there is none
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_module_get_child (TinyModule *self, const char *path);

/**
 * tiny_module_get_parameters:
 * @self: a module
 *
 * All parameters of the module and those in it, in the order they were added, each once.
 *
 * Returns: (transfer container) (element-type TinyTensor): what an optimiser changes
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_module_get_parameters (TinyModule *self);

/**
 * tiny_module_get_parameter_names:
 * @self: a module
 *
 * The names of all parameters in @self and in the modules in it, as its state dict has them.
 *
 * Returns: (transfer full) (array zero-terminated=1): the path of each of tiny_module_get_parameters()
 *
 * Since: 0.1
 */
TINY_API char **tiny_module_get_parameter_names (TinyModule *self);

/**
 * tiny_module_get_buffers:
 * @self: a module
 *
 * All buffers of the module and those in it, in the order they were added, each once.
 *
 * Returns: (transfer container) (element-type TinyTensor): state that no optimiser changes
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_module_get_buffers (TinyModule *self);

/**
 * tiny_module_get_buffer_names:
 * @self: a module
 *
 * The names of all buffers in @self and in the modules in it, also of those that are not saved.
 *
 * Returns: (transfer full) (array zero-terminated=1): the path of each of tiny_module_get_buffers()
 *
 * Since: 0.1
 */
TINY_API char **tiny_module_get_buffer_names (TinyModule *self);

/**
 * tiny_module_get_child_names:
 * @self: a module
 *
 * The parts of paths that tiny_module_get_child() goes on with, in the order in which they were added.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names of the modules directly in it
 *
 * Since: 0.1
 */
TINY_API char **tiny_module_get_child_names (TinyModule *self);

/**
 * TinyModuleVisitor:
 * @name: the path of a tensor: "3.weight"
 * @tensor: the tensor
 * @trainable: whether it is a parameter
 * @user_data: what was given to tiny_module_visit()
 *
 * Called for a tensor of a module.
 *
 * Since: 0.1
 */
typedef void (*TinyModuleVisitor) (const char *name,
                                   TinyTensor *tensor,
                                   gboolean trainable,
                                   gpointer user_data);

/**
 * tiny_module_visit:
 * @self: a module
 * @visitor: (scope call): called for every tensor
 * @user_data: for @visitor
 *
 * Goes through all tensors of the module and those in it, in the order they were added. One that has
 * several names is seen with each.
 *
 * Since: 0.1
 */
TINY_API void
tiny_module_visit (TinyModule *self, TinyModuleVisitor visitor, gpointer user_data);

/**
 * TinyModuleCallback:
 * @module: a module
 * @user_data: what was given to tiny_module_apply()
 *
 * Called for a module.
 *
 * Since: 0.1
 */
typedef void (*TinyModuleCallback) (TinyModule *module, gpointer user_data);

/**
 * tiny_module_apply:
 * @self: a module
 * @callback: (scope call): called for every module
 * @user_data: for @callback
 *
 * Calls @callback for the modules in @self, and those in them, and for @self last.
 *
 * Since: 0.1
 */
TINY_API void
tiny_module_apply (TinyModule *self, TinyModuleCallback callback, gpointer user_data);

/* ---- state ---- */
/**
 * tiny_module_get_state_dict:
 * @self: a module
 *
 * All parameters and persistent buffers by path. They are the module's own, not copies.
 *
 * Returns: (transfer container) (element-type utf8 TinyTensor): paths and tensors, which it owns
 *
 * Since: 0.1
 */
TINY_API GHashTable *tiny_module_get_state_dict (TinyModule *self);

/**
 * tiny_module_load_state_dict:
 * @self: a module
 * @state: (element-type utf8 TinyTensor): paths and tensors
 * @strict: whether every name of the module has to be in @state, and the other way round
 * @error: return location
 *
 * Copies values into the module's tensors, which keep their memory, dtype and device: captured functions
 * (#TinyJit) see the new values.
 *
 * Errors: %TINY_ERROR_INVALID that lists all names that are missing or unexpected (when @strict) and all
 * shapes that differ; what a tensor of @state carries. Nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_load_state_dict (TinyModule *self,
                                               GHashTable *state,
                                               gboolean strict,
                                               GError **error);

/**
 * tiny_module_to:
 * @self: a module
 * @device: (nullable): a device's name; %NULL: the default device
 * @error: return location
 *
 * Moves all tensors. They are new objects afterwards: make the optimiser after this.
 *
 * Errors: those of opening the device and copying. Nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_to (TinyModule *self, const char *device, GError **error);

/**
 * tiny_module_to_dtype:
 * @self: a module
 * @dtype: a float dtype
 * @error: return location
 *
 * Casts all tensors of float dtypes. They are new objects afterwards: make the optimiser after this.
 *
 * Errors: %TINY_ERROR_INVALID when @dtype is no float; those of computing. Nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_to_dtype (TinyModule *self, TinyDType dtype, GError **error);

/**
 * tiny_module_set_requires_grad:
 * @self: a module
 * @requires_grad: whether gradients are computed for its parameters
 *
 * For all parameters of the module and those in it: %FALSE freezes them.
 *
 * Since: 0.1
 */
TINY_API void tiny_module_set_requires_grad (TinyModule *self, gboolean requires_grad);

/**
 * tiny_module_zero_grad:
 * @self: a module
 *
 * Forgets the gradients of all parameters.
 *
 * Since: 0.1
 */
TINY_API void tiny_module_zero_grad (TinyModule *self);

G_END_DECLS
