/* SPDX-License-Identifier: MIT
 *
 * nvidia-harness.h: linear programs, and what NVIDIA's compiler makes of them, without a driver or GPU. */
#pragma once

#include <glib.h>

#include "../../plugins/nvidia/nvidia.h"

/* A linear program under construction. */
typedef struct {
  TinyInstr instrs[4096];
  uint32_t sources[16384];
  TinyParam params[64];
  TinyLinear linear;
} Program;

/* A program named k with groups of @n_items. */
Program *program_new (uint32_t n_items);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Program, g_free)
/* A buffer of 64 elements. */
uint32_t program_param (Program *p, TinyDType dtype, uint32_t flags);
/* Sources end with -1. */
uint32_t program_add (Program *p, TinyInstrOp op, guint dtype, guint lanes, int64_t arg, ...);
#define ADD(op, dtype, lanes, arg, ...)                                                        \
  program_add (p, TINY_INSTR_##op, dtype, lanes, arg, ##__VA_ARGS__, -1)

/* The program's source; the test fails where the dialect lacks something. */
char *program_render (Program *p);

/* The answer of compiling. */
typedef struct {
  TinyStatus status;
  TinyPluginError error;
  guint8 *data;
  uint64_t size;
} Compiled;
void compiled_clear (Compiled *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Compiled, compiled_clear)
extern const TinyHost test_host;
Compiled program_compile (Program *p, const char *arch, const char *source);

TinyTarget get_target (const char *arch);
/* Ends the program as skipped, with the reason, where NVRTC cannot be had. */
gboolean nvrtc_is_there (void);
