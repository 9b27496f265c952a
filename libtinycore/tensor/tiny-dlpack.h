/* SPDX-License-Identifier: MIT
 *
 * tiny-dlpack.h: tensors shared with other array libraries, by DLPack's structures.
 *
 * Both of DLPack's forms are there: DLManagedTensor, and DLManagedTensorVersioned of major version 1. Memory is the
 * host's. Who shares memory sees what the other writes: neither side writes while the other computes. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyDlpackCopy:
 * @TINY_DLPACK_COPY_IF_NEEDED: shares where that is possible
 * @TINY_DLPACK_COPY_NEVER: shares, or fails
 * @TINY_DLPACK_COPY_ALWAYS: has memory of its own
 *
 * Whether a tensor made of somebody else's shares the memory.
 *
 * Since: 0.1
 */
typedef enum {
  TINY_DLPACK_COPY_IF_NEEDED,
  TINY_DLPACK_COPY_NEVER,
  TINY_DLPACK_COPY_ALWAYS,
} TinyDlpackCopy;

/**
 * tiny_tensor_new_from_dlpack:
 * @managed: a DLManagedTensor, or a DLManagedTensorVersioned, which is taken; other languages give the address
 * @is_versioned: which of them
 * @device: (nullable): where to put it; %NULL: the default device
 * @copy: whether memory is shared
 *
 * A tensor of what another library exported. Its memory is shared where the device computes in host memory, it is
 * aligned as the device wants, may be written, and its strides are those of dense elements in any order of the axes.
 * @managed is given back to its library, from any thread, when the last tensor that needs it is gone, or before this
 * returns.
 *
 * Errors it may carry: %TINY_ERROR_UNSUPPORTED for memory that is not the host's, a dtype that no tensor has,
 * another major version, and where %TINY_DLPACK_COPY_NEVER cannot be; %TINY_ERROR_INVALID for sizes that cannot be;
 * those of opening the device and allocating.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_new_from_dlpack (gpointer managed,
                                                  gboolean is_versioned,
                                                  const char *device,
                                                  TinyDlpackCopy copy);

/**
 * tiny_tensor_to_dlpack:
 * @self: a tensor
 * @is_versioned: whether a DLManagedTensorVersioned is wanted, of version 1.0, or else a DLManagedTensor
 * @error: return location
 *
 * Realises @self in memory of its own and exports that: nothing is copied where no other tensor has the same memory. Of
 * a view the part of the memory of what it is a view of is exported, with its strides; where there are none that say
 * so, or they would go backwards or stay on the spot, a copy of its elements as they are now. What is exported
 * stays as long as the exported structure does, which is freed by its deleter or tiny_dlpack_free(), also after @self.
 *
 * Errors: those of realising; %TINY_ERROR_UNSUPPORTED where the device's memory has no host address, or DLPack no such
 * dtype.
 *
 * Returns: (transfer full) (nullable): the structure; other languages get its address
 *
 * Since: 0.1
 */
TINY_API gpointer tiny_tensor_to_dlpack (TinyTensor *self,
                                         gboolean is_versioned,
                                         GError **error);

/**
 * tiny_dlpack_free:
 * @managed: (nullable): a structure of any library's
 * @is_versioned: which
 *
 * Calls the deleter of a structure that nobody took.
 *
 * Since: 0.1
 */
TINY_API void tiny_dlpack_free (gpointer managed, gboolean is_versioned);

G_END_DECLS
