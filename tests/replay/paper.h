/* SPDX-License-Identifier: MIT
 *
 * paper.h: what paper-plugin.c tells the program that opened it. */
#pragma once

#include <stdint.h>

/* A loaded program: a digest of its linear program, without its name. */
typedef struct TinyPluginProgram {
  uint64_t digest;
} PaperProgram;

/* Programs that were launched since the last call, oldest first; *out_n says how many. Stays the plugin's. */
typedef PaperProgram *const *(*PaperTakeLaunches) (uint32_t *out_n);
#define PAPER_TAKE_LAUNCHES "paper_take_launches"
