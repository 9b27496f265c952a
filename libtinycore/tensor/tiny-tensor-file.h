/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-file.h: tensors of what is in a file. */
#pragma once

#include "base/tiny-opened-file.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/* (transfer floating): as tiny_tensor_new_from_data(), of the @n_bytes of @file from @offset on. Errors it may also carry:
 * those of tiny_opened_file_read(). */
TinyTensor *tiny_tensor_new_from_file (const char *device,
                                       TinyDType dtype,
                                       const gint64 *shape,
                                       guint n_dims,
                                       const TinyOpenedFile *file,
                                       guint64 offset,
                                       gsize n_bytes);

G_END_DECLS
