/* SPDX-License-Identifier: MIT
 *
 * tiny-registry.h: the backends that were found, and devices opened by name. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

#define TINY_TYPE_REGISTRY (tiny_registry_get_type ())
G_DECLARE_FINAL_TYPE (TinyRegistry, tiny_registry, TINY, REGISTRY, GObject)

TinyRegistry *tiny_registry_get_default (void);
TinyDevice *tiny_registry_open (TinyRegistry *self, const char *spec, GError **error);

G_END_DECLS
