/* SPDX-License-Identifier: MIT
 *
 * tiny-program.h: a binary loaded on a device. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

typedef struct TinyProgram TinyProgram;

/* Errors: %TINY_ERROR_FORMAT for a damaged binary, %TINY_ERROR_UNSUPPORTED for one made for other
 * hardware. */
TinyProgram *tiny_program_new (TinyDevice *device,
                               const char *name,
                               GBytes *binary,
                               guint n_params,
                               guint n_variables,
                               const guint32 group[3],
                               GError **error);
void tiny_program_free (TinyProgram *self);
TinyPluginProgram *tiny_program_get_handle (TinyProgram *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyProgram, tiny_program_free)

G_END_DECLS
