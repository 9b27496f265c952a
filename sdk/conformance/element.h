/* SPDX-License-Identifier: MIT
 *
 * element.h: one op on one dtype, element by element, in a kernel of its own, judged against bounds.def. */
#pragma once

#include "bounds.h"
#include "conformance.h"
#include "data.h"
#include "kernel.h"

G_BEGIN_DECLS

/* How the loop over the elements is laid out. */
typedef struct {
  const char *name;
  const char *opts; /* "%u" stands for the lanes; NULL: by heuristic */
  gint64 shape
      [3]; /* of the elements; 0: no such axis. With lanes, in vectors along the last axis */
  gint64 extra;  /* elements more, along the last axis */
  guint lanes;   /* that instructions are to have; 1: scalars */
  guint32 needs; /* TINY_TARGET_* */
  guint offset;  /* of the parameters in their buffers, in alignments */
} ConfLayout;

extern const ConfLayout conf_layouts[];
extern const guint conf_n_layouts;
enum { CONF_LAYOUT_HEURISTIC = 0, CONF_LAYOUT_SCALAR = 1 };
/* Whether @target can have it, for elements of these dtypes. */
gboolean
conf_layout_fits (guint layout, const TinyTarget *target, TinyDType from, TinyDType to);

typedef struct {
  TinyOp op;
  TinyDType from, to;       /* as in ConfOperation */
  const TinyTarget *target; /* one that declares less than the device's; NULL: that */
  ConfClass data;
  guint layout;
  gsize
      n; /* elements, where the layout is by heuristic or scalar; 0: as many as the data has */
} ConfElementwise;

/* Number of sources of @op. */
guint conf_op_get_n (TinyOp op);
/* The dtype of @op's result for operands of @from; a CAST's is @from. */
TinyDType conf_op_get_result (TinyOp op, TinyDType from);

/* The kernel; free with g_free(). */
char *conf_elementwise_to_text (const ConfElementwise *self);
/* The same, compiled (transfer none). */
ConfKernel *conf_elementwise_compile (const ConfElementwise *self,
                                      const ConfSubject *subject,
                                      GError **error);
/* Runs it and says what is wrong. */
void conf_elementwise_check (ConfTrial *trial,
                             const ConfSubject *subject,
                             const ConfElementwise *self);

G_END_DECLS
