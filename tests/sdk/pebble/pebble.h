/* SPDX-License-Identifier: MIT
 *
 * pebble.h: what the files of the plugin say to one another. */
#pragma once

#include <stdbool.h>

#include "chip.h"
#include "tiny-plugin-kit.h"

/* Before the steps of a binary. */
typedef struct {
  uint32_t n_steps;
} Head;

extern const TinyHost *host;

TinyStatus pebble_target (const char *arch, TinyTarget *out, TinyPluginError *error);
TinyStatus pebble_compile (const TinyCompileArgs *args,
                           void **out_data,
                           uint64_t *out_size,
                           TinyPluginError *error);
