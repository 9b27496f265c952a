/* SPDX-License-Identifier: MIT
 *
 * tir-passes.h: the passes that golden files can name. */
#pragma once

#include "ir/tiny-node.h"

/* Rewrites @root; @args is what follows the name on the "// run:" line, or "". The verdict of a
 * pass that fails is its error, which the file then expects as "// error: message". */
typedef TinyNode *(*TirPass) (TinyGraph *graph,
                              TinyNode *root,
                              const char *args,
                              GError **error);

typedef struct {
  const char *name;
  TirPass run;
} TirPassRow;

/* Ends in a row without a name. */
extern const TirPassRow tir_passes[];
