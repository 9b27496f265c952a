/* SPDX-License-Identifier: MIT
 *
 * compile-cases.h: the programs whose compiling bench-compile looks at. */
#pragma once

#include "tiny.h"

/* One program: built anew at each step, from tensors that set_up() made. */
typedef struct {
  const char *name;
  gboolean (*set_up) (GPtrArray *owned, GError **error); /* fills @owned with objects */
  gboolean (*step) (GPtrArray *owned, GError **error);
} CompileCase;

extern const CompileCase compile_cases[]; /* ended by a row without name */
