/* SPDX-License-Identifier: MIT
 *
 * kernel-text.h: kernels that a program wrote in IR text.
 *
 * The text is a SINK of STOREs (docs/ir.md, stage kernel), one to each output. Its PARAMs are the
 * outputs, from slot 0 on, then the inputs; their shapes may have several axes and are those of the
 * tensors. It comes from anywhere: nothing that it does reaches beyond the memory of its PARAMs. */
#pragma once

#include "ir/tiny-node.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

enum { KERNEL_TEXT_MAX_PARAMS = 32, KERNEL_TEXT_MAX_RANK = 16 };

typedef struct {
  TinyNode *
      sink; /* untrusted; its PARAMs have one axis, and its accesses have gates where they need them */
  guint n_outputs, n_params;
  TinyNode *params[KERNEL_TEXT_MAX_PARAMS]; /* by slot, in the shapes of the tensors */
  gboolean
      is_operation; /* the text is one of factor.h: the sink is empty, a unit computes it */
  TinyOperation operation;
} KernelText;

/* Parses @text, whose last @n_inputs PARAMs are inputs, into @graph.
 *
 * Errors: %TINY_ERROR_FORMAT for what is no IR ("line:column: …"), %TINY_ERROR_INVALID for what is no
 * such kernel. */
gboolean kernel_text_parse (
    KernelText *self, TinyGraph *graph, const char *text, guint n_inputs, GError **error);

/* The text of the kernel that does the work of @text for each element of a batch: all outputs and
 * those inputs that is_batched[i] says have one more axis, the outermost, of @size. All inputs of an operation
 * have it. */
char *kernel_text_batch (
    const char *text, guint n_inputs, const gboolean *is_batched, gint64 size, GError **error);

G_END_DECLS
