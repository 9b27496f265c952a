/* SPDX-License-Identifier: MIT
 *
 * tiny-error.h: the one error domain of the library.
 *
 * Messages read: thing, what was wanted, what was found; lower case, no full stop. */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * TINY_ERROR:
 *
 * The error domain of everything in tinycore; codes are #TinyError.
 *
 * Since: 0.1
 */
#define TINY_ERROR (tiny_error_quark ())

/**
 * TinyError:
 * @TINY_ERROR_NO_DEVICE: no device fits what was asked for
 * @TINY_ERROR_PLUGIN: a backend's file, manifest or table is unusable
 * @TINY_ERROR_ABI: a backend was built for another contract
 * @TINY_ERROR_PERMISSION: the system refuses access
 * @TINY_ERROR_DRIVER: a driver or library that a backend needs is absent or of a wrong version
 * @TINY_ERROR_OUT_OF_MEMORY: no memory of the wanted kind
 * @TINY_ERROR_COMPILE: a kernel does not compile
 * @TINY_ERROR_LAUNCH: a device refused or failed a launch
 * @TINY_ERROR_DEVICE_LOST: a device stopped working; sticky for that device
 * @TINY_ERROR_TIMEOUT: something took longer than allowed
 * @TINY_ERROR_INVALID: an argument, shape or dtype does not fit
 * @TINY_ERROR_UNSUPPORTED: the target cannot do this
 * @TINY_ERROR_FORMAT: a file or text is malformed
 * @TINY_ERROR_IO: the system could not read or write
 * @TINY_ERROR_INTERRUPTED: the thread was told to stop, see tiny_set_interrupt_check()
 *
 * Codes of %TINY_ERROR.
 *
 * Since: 0.1
 */
typedef enum {
  TINY_ERROR_NO_DEVICE,
  TINY_ERROR_PLUGIN,
  TINY_ERROR_ABI,
  TINY_ERROR_PERMISSION,
  TINY_ERROR_DRIVER,
  TINY_ERROR_OUT_OF_MEMORY,
  TINY_ERROR_COMPILE,
  TINY_ERROR_LAUNCH,
  TINY_ERROR_DEVICE_LOST,
  TINY_ERROR_TIMEOUT,
  TINY_ERROR_INVALID,
  TINY_ERROR_UNSUPPORTED,
  TINY_ERROR_FORMAT,
  TINY_ERROR_IO,
  TINY_ERROR_INTERRUPTED,
} TinyError;

/**
 * tiny_error_quark:
 *
 * The domain of the library's errors, as GLib registers it; programs write %TINY_ERROR.
 *
 * Returns: what %TINY_ERROR is
 *
 * Since: 0.1
 */
TINY_API GQuark tiny_error_quark (void);

G_END_DECLS
