/* SPDX-License-Identifier: MIT
 *
 * tiny-verify.h: whether an IR is legal at its stage.
 *
 * Run after every pass in debug builds and tests; also what stands between a file and the compiler. */
#pragma once

#include "ir/tiny-check.h"

G_BEGIN_DECLS

/* TRUE in debug builds and where TINY_VERIFY=1: whoever makes IR then has it checked. */
gboolean tiny_verify_is_wanted (void);

/* Checks all that is under @root: each node by itself (tiny-check.h), and what docs/ir.md says of
 * @stage. The message names the stage, the first bad node in text form, and what is wrong.
 *
 * Errors: %TINY_ERROR_INVALID. */
gboolean tiny_graph_verify (TinyGraph *graph, TinyNode *root, TinyStage stage, GError **error);

/* Checks a linear program, which may come from anywhere: every index is in bounds, sources come
 * before their users and from a loop that is still open, loops and conditions nest, dtypes, lanes
 * and arity fit. With @target, which may be NULL, also that only ops occur that it declares.
 *
 * Errors: %TINY_ERROR_INVALID. */
gboolean
tiny_verify_linear (const TinyLinear *linear, const TinyTarget *target, GError **error);

/* "tensor", "kernel", "expanded" */
const char *tiny_stage_to_string (TinyStage stage);
gboolean tiny_stage_from_string (const char *text, TinyStage *out_stage);

G_END_DECLS
