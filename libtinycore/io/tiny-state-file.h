/* SPDX-License-Identifier: MIT
 *
 * tiny-state-file.h: named tensors, such as a module's, in a safetensors file. */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/**
 * tiny_state_save:
 * @state: (element-type utf8 TinyTensor): names and tensors
 * @path: (type filename): a file
 * @metadata: (nullable) (element-type utf8 utf8): texts that are kept with them
 * @error: return location
 *
 * Writes all tensors, with the elements of one in memory at a time. The file is there whole or not at all.
 *
 * Errors: %TINY_ERROR_IO; %TINY_ERROR_INVALID for names that the format cannot hold; what a tensor carries.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_state_save (GHashTable *state,
                                   const char *path,
                                   GHashTable *metadata,
                                   GError **error);

/**
 * tiny_state_load:
 * @path: (type filename): a file
 * @device: (nullable): where to put the tensors; %NULL: the default device
 * @out_metadata: (out) (optional) (transfer container) (element-type utf8 utf8): the texts kept with them
 * @error: return location
 *
 * Reads all tensors of a file. What its header says is checked against the file before it is believed.
 *
 * Errors: %TINY_ERROR_IO, %TINY_ERROR_FORMAT with the file, the tensor and what is wrong; those of making
 * tensors.
 *
 * Returns: (transfer container) (nullable) (element-type utf8 TinyTensor): names and tensors, which it owns
 *
 * Since: 0.1
 */
TINY_API GHashTable *tiny_state_load (const char *path,
                                      const char *device,
                                      GHashTable **out_metadata,
                                      GError **error);

/**
 * tiny_module_save:
 * @self: a module
 * @path: (type filename): a file
 * @metadata: (nullable) (element-type utf8 utf8): texts that are kept with the tensors
 * @error: return location
 *
 * tiny_state_save() of tiny_module_get_state_dict().
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_save (TinyModule *self,
                                    const char *path,
                                    GHashTable *metadata,
                                    GError **error);

/**
 * tiny_module_load:
 * @self: a module
 * @path: (type filename): a file
 * @strict: whether its names have to be those of @self
 * @error: return location
 *
 * tiny_module_load_state_dict() of tiny_state_load().
 *
 * Returns: whether it worked; nothing has changed if not
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_module_load (TinyModule *self,
                                    const char *path,
                                    gboolean strict,
                                    GError **error);

G_END_DECLS
