/* SPDX-License-Identifier: MIT
 *
 * near-far.h: two devices of the CPU backend, one as it is and one whose tables a test changes. */
#pragma once

#include "device/tiny-device.h"

/* The backend's own functions. */
extern const TinyPluginModule *own_module;
/* With @open in the place of the backend's open(), or NULL. */
TinyDevice *near_far_open (const char *name,
                           TinyStatus (*open) (const char *id,
                                               TinyPluginDevice **out,
                                               const TinyDeviceTable **out_table,
                                               TinyPluginError *error));
