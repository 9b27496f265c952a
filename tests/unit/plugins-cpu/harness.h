/* SPDX-License-Identifier: MIT
 *
 * harness.h: drives the built CPU plugin through its tables as the core does, without the core. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "tiny-plugin.h"

/* The plugin's module and one open device of it, for the whole test program. */
typedef struct {
  const TinyPluginModule *module;
  const TinyRenderer *llvm, *clang;
  TinyTarget target; /* of this machine */
  TinyPluginDevice *device;
  const TinyDeviceTable *table;
  TinyPluginQueue *queue;
} Harness;
extern Harness h;

void harness_open (void);
void harness_close (void);

/* A linear program under construction. */
typedef struct {
  TinyInstr instrs[4096];
  uint32_t sources[16384];
  TinyParam params[16];
  TinyLinear linear;
} Program;

Program *program_new (const char *name);
uint32_t program_param (Program *p, TinyDType dtype, uint64_t n, uint32_t flags);
/* Sources end with -1. */
uint32_t add (Program *p, TinyInstrOp op, TinyDType dtype, unsigned lanes, int64_t arg, ...);
#define ADD(op, dtype, lanes, arg, ...)                                                        \
  add (p, TINY_INSTR_##op, TINY_DTYPE_##dtype, lanes, arg, ##__VA_ARGS__, -1)
int64_t bits_of (double value);

/* Compiles with LLVM and loads; the test fails when that does. */
TinyPluginProgram *program_build (Program *p);
TinyStatus program_compile (Program *p, void **data, uint64_t *size, TinyPluginError *error);

/* The text of its code for @arch; free (). */
char *program_list (Program *p, const char *arch);

/* Runs over host arrays: one buffer for each, copied in before and out after. */
typedef struct {
  void *data;
  uint64_t n_bytes;
} Array;
extern const uint32_t one_point[3]; /* a grid of one */
void program_run (TinyPluginProgram *program,
                  const Array *arrays,
                  unsigned n,
                  const int64_t *variables,
                  unsigned n_variables,
                  const uint32_t grid[3]);
void program_unload (TinyPluginProgram *program);

TinyPluginError new_error (void);
