/* SPDX-License-Identifier: MIT
 *
 * tiny-debug.h: what DEBUG=1 … 7 print on standard error. */
#pragma once

#include "base/tiny-timing.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-executable.h"

G_BEGIN_DECLS

#define tiny_debug_now_ns tiny_timing_now_ns
void tiny_debug_print_device (TinyDevice *device); /* 1 */
/* @labels: of the memory that it reads and writes, may be empty */
void tiny_debug_print_launch (TinyDevice *device,
                              const TinyExecutable *executable,
                              guint64 ns,
                              const char *labels); /* 2 */
void tiny_debug_print_kernel (const TinyLinearProgram *program,
                              const char *source);                   /* 3, 4, 6 */
void tiny_debug_print_assembly (TinyDevice *device, GBytes *binary); /* 7 */

G_END_DECLS
