/* SPDX-License-Identifier: MIT
 *
 * default-device.h: tests that run on the default device, and are a skip where there is none. */
#pragma once

#include "engine/tiny-runtime.h"

static inline gboolean
skips_without_device (void)
{
  g_autoptr (GError) error = NULL;
  if (tiny_runtime_get_default_device (&error) != NULL)
    return FALSE;
  g_test_skip (error->message);
  return TRUE;
}
