/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-inspect.h: what a tensor is made of, and the kernels that would compute it. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_KERNEL_INFO (tiny_kernel_info_get_type ())

/**
 * TinyKernelInfo:
 * @name: the kernel's name, as DEBUG=2 has it; of a copy "copy"
 * @device: the device that runs it
 * @text: the kernel as IR (docs/ir.md), before it is optimised; %NULL: a copy
 * @source: what the device's compiler is given, by the optimisations that are chosen without a search: source text, or the linear
 *   program where it takes that; %NULL: a copy, or an operation that a unit of the device computes as a whole
 * @optimisations: those of the program that would run; %NULL: a copy
 * @n_flops: arithmetic of one launch, an estimate
 * @n_bytes: memory that it touches, an estimate
 *
 * One kernel of a schedule.
 *
 * Since: 0.1
 */
typedef struct {
  char *name;
  char *device;
  char *text;
  char *source;
  char *optimisations;
  gint64 n_flops;
  gint64 n_bytes;
} TinyKernelInfo;

/**
 * tiny_kernel_info_get_type: (skip)
 *
 * Gives the boxed type.
 *
 * Returns: a type
 *
 * Since: 0.1
 */
TINY_API GType tiny_kernel_info_get_type (void) G_GNUC_CONST;

/**
 * tiny_kernel_info_copy:
 * @self: what is said of a kernel
 *
 * Copies it.
 *
 * Returns: (transfer full): the same
 *
 * Since: 0.1
 */
TINY_API TinyKernelInfo *tiny_kernel_info_copy (const TinyKernelInfo *self);

/**
 * tiny_kernel_info_free:
 * @self: (transfer full): what is said of a kernel
 *
 * Frees it.
 *
 * Since: 0.1
 */
TINY_API void tiny_kernel_info_free (TinyKernelInfo *self);

/**
 * tiny_tensor_schedule:
 * @self: a tensor
 * @others: (array length=n_others) (nullable): tensors that are wanted together with it
 * @n_others: how many
 * @error: return location
 *
 * Lists the kernels that tiny_tensor_realize_many() would run, in their order: none of what is realised. Nothing runs; kernels are
 * compiled, which is not done again then.
 *
 * Errors: what a tensor carries, those of scheduling and compiling.
 *
 * Returns: (transfer container) (element-type TinyKernelInfo) (nullable): the kernels; %NULL with @error set
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_tensor_schedule (TinyTensor *self,
                                          TinyTensor *const *others,
                                          guint n_others,
                                          GError **error);

/**
 * tiny_tensor_print_graph:
 * @self: a tensor
 * @error: return location
 *
 * The tensor graph that @self is made of, as IR text (docs/ir.md): each node once, after its sources, @self last. Memory is a
 * `param` with a number. Nothing runs.
 *
 * Errors: what @self carries; those of opening the default device.
 *
 * Returns: (transfer full) (nullable): the text; %NULL with @error set
 *
 * Since: 0.1
 */
TINY_API char *tiny_tensor_print_graph (TinyTensor *self, GError **error);

/**
 * tiny_tensor_set_label:
 * @self: a tensor
 * @label: its path, as “layer1.conv1.weight”
 *
 * Names the memory that @self is in, or is about to be assigned to: `DEBUG=2` prints beside a kernel that reads or writes it
 * all before the last dot, the module. What has no memory stays without a name, and a longer one stays: that of a module
 * that another one calls is a part of it. With `DEBUG=2` modules do this whenever they are called.
 *
 * Since: 0.1
 */
TINY_API void tiny_tensor_set_label (TinyTensor *self, const char *label);

G_END_DECLS
