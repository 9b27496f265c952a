/* SPDX-License-Identifier: MIT
 *
 * machine.h: a kernel of a text, run over arrays of the test. */
#pragma once

#include "ptx.h"

#define MACHINE_HEAD ".version 8.0\n.target sm_90a\n.address_size 64\n"
enum { MACHINE_MAX_ARRAYS = 8 };

/* Arrays go in before the run and come out after it, at addresses that are the kernel's first parameters. */
typedef struct {
  const char *text, *kernel;
  guint32 blocks, threads, n_dynamic;
  struct {
    void *bytes;
    gsize n_bytes;
  } arrays[MACHINE_MAX_ARRAYS];
  guint32 numbers[4]; /* parameters behind the arrays */
  guint n_numbers;
  guint64 seed, max_steps;
  gboolean is_checked;
} Machine;

/* The fault, or code 0. A text that cannot be read is a failure of the test. */
PtxFault machine_run (const Machine *machine);
/* The error of a text; NULL where it can be read. */
char *machine_error (const char *text);
