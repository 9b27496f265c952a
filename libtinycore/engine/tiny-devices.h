/* SPDX-License-Identifier: MIT
 *
 * tiny-devices.h: which devices there are, and the one that tensors are made on. */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * tiny_get_default_device:
 * @error: return location
 *
 * The device that tensors are made on when none is named: what `DEV` says, else the best there is. It is opened at
 * the first use.
 *
 * Errors: those of opening a device.
 *
 * Returns: (transfer none) (nullable): its name, such as "CPU"
 *
 * Since: 0.1
 */
TINY_API const char *tiny_get_default_device (GError **error);

/**
 * tiny_set_default_device:
 * @name: a device, in the grammar of `DEV`
 * @error: return location
 *
 * Makes another device the one that tensors are made on from now on. Those that are there stay where they are; those
 * that have no place yet, such as constants, are computed on the new one. A lost device is opened again, as
 * tiny_open_device() does.
 *
 * Errors: those of opening a device; nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_set_default_device (const char *name, GError **error);

/**
 * tiny_open_device:
 * @name: a device, in the grammar of `DEV`
 * @error: return location
 *
 * Opens a device unless it is open, which it then stays. One that was lost is opened again: what is made on it from now
 * on works, and tensors that had their data on it, and functions captured there, go on saying that it was lost.
 *
 * Errors: %TINY_ERROR_INVALID for an empty name, those of opening a device.
 *
 * Returns: (transfer none) (nullable): its name as tensors have it, such as "CPU"
 *
 * Since: 0.1
 */
TINY_API const char *tiny_open_device (const char *name, GError **error);

/**
 * tiny_list_devices:
 *
 * The names of all devices that can be used, found without opening one.
 *
 * Returns: (transfer full) (array zero-terminated=1): names
 *
 * Since: 0.1
 */
TINY_API char **tiny_list_devices (void);

/**
 * tiny_synchronize:
 * @name: (nullable): a device; %NULL: the default one
 * @error: return location
 *
 * Waits until a device has done all that it was given.
 *
 * Errors: those of opening the device; that of the work that failed.
 *
 * Returns: whether all of it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_synchronize (const char *name, GError **error);

G_END_DECLS
