/* SPDX-License-Identifier: MIT
 *
 * tiny-sample.h: what sample.c (the driver) and sample-compile.c (the compiler) share. */
#pragma once

#include <stdbool.h>
#include <tiny-plugin-kit.h>

#include "tiny-sample-isa.h"

extern const TinyHost *host;

/* Before the instructions in a binary. */
typedef struct {
  uint32_t n_instrs, n_stash;
} SampleHead;

/* Shorter names, for functions with many of them. */
typedef TinyPluginDevice Device;
typedef TinyPluginBuffer Buffer;
typedef TinyPluginQueue Queue;
typedef TinyPluginProgram Program;
typedef TinyPluginError Error;

TinyStatus tiny_sample_target (const char *arch, TinyTarget *out, Error *error);
TinyStatus tiny_sample_compile (const TinyCompileArgs *args,
                                void **out_data,
                                uint64_t *out_size,
                                Error *error);
