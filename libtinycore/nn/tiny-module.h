/* SPDX-License-Identifier: MIT
 *
 * tiny-module.h: layers: functions of a tensor that own parameters and other modules. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_MODULE (tiny_module_get_type ())
TINY_API
G_DECLARE_DERIVABLE_TYPE (TinyModule, tiny_module, TINY, MODULE, GObject)

/**
 * TinyModuleClass:
 * @forward: builds the result for an input; both references are floating or borrowed as in every
 *   operation on tensors
 *
 * What a kind of layer implements. Nothing runs in @forward.
 */
struct _TinyModuleClass {
  GObjectClass parent_class;
  TinyTensor *(*forward) (TinyModule *self, TinyTensor *x);
  gpointer reserved[8];
};

/**
 * tiny_module_forward:
 * @self: a module
 * @x: an input
 *
 * Applies the module. Errors are sticky, as everywhere.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_forward (TinyModule *self, TinyTensor *x);

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

/**
 * tiny_module_add_tensor:
 * @self: a module
 * @name: "weight"
 * @tensor: its value at the start; a floating reference is taken
 * @trainable: whether an optimiser changes it; if not it is state, such as running statistics
 *
 * For implementers: gives the module a tensor with memory of its own. A tensor in error state is
 * kept and makes forward fail with its error.
 *
 * Returns: (transfer none): @tensor, owned by the module
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_module_add_tensor (TinyModule *self,
                                             const char *name,
                                             TinyTensor *tensor,
                                             gboolean trainable);

/**
 * tiny_module_add_child:
 * @self: a module
 * @name: "0", "head"
 * @child: (transfer full): a module, which becomes part of @self
 *
 * Returns: (transfer none): @child
 *
 * Since: 0.1
 */
TINY_API TinyModule *
tiny_module_add_child (TinyModule *self, const char *name, TinyModule *child);

/**
 * TinyModuleVisitor:
 * @name: the path of a tensor: "3.weight"
 * @tensor: the tensor
 * @trainable: whether it is a parameter
 * @user_data: what was given to tiny_module_visit()
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
 * Goes through all tensors of the module and those in it, in the order they were added.
 *
 * Since: 0.1
 */
TINY_API void
tiny_module_visit (TinyModule *self, TinyModuleVisitor visitor, gpointer user_data);

/**
 * tiny_module_get_parameters:
 * @self: a module
 *
 * Returns: (transfer container) (element-type TinyTensor): what an optimiser changes
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_module_get_parameters (TinyModule *self);

/**
 * tiny_module_get_state:
 * @self: a module
 *
 * Returns: (transfer container) (element-type TinyTensor): all other tensors
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_module_get_state (TinyModule *self);

G_END_DECLS
