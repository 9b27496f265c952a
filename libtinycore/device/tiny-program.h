/* SPDX-License-Identifier: MIT
 *
 * tiny-program.h: a binary loaded on a device, ready to dispatch. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

#define TINY_TYPE_PROGRAM (tiny_program_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyProgram, tiny_program, TINY, PROGRAM, GObject)

/* Loads @blob, which may be dropped afterwards. @group: work-items per group and axis.
 * Errors: %TINY_ERROR_FORMAT for a damaged binary, %TINY_ERROR_DEVICE_LOST, … */
TinyProgram *tiny_program_new (TinyDevice *device,
                               const char *name,
                               GBytes *blob,
                               guint n_params,
                               guint n_variables,
                               const guint32 group[3],
                               GError **error);
TinyDevice *tiny_program_get_device (TinyProgram *self);
TinyPluginProgram *tiny_program_get_handle (TinyProgram *self);

G_END_DECLS
