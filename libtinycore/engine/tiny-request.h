/* SPDX-License-Identifier: MIT
 *
 * tiny-request.h: nodes that are to be realised, what lies under them, and the plan for that.
 *
 * A structure seen before finds its plan by its digest, whatever memory it is about. Under the runtime's lock. */
#pragma once

#include "base/tiny-digest.h"
#include "engine/open-numbers.h"
#include "engine/tiny-plan.h"

G_BEGIN_DECLS

/* The graphs of kept plans take no more in all, but for the newest; for tests to change. */
extern gsize tiny_request_most_bytes;

typedef struct {
  GPtrArray *nodes; /* distinct nodes to realise, in order */
  guint n_asked;    /* of them: others come along (keep-computed.h) */
  GArray *owners;   /* guint64: for which recording each of them is, or 0 (tiny-recorders.h) */
  GPtrArray *order; /* all nodes under them, sources first */
  GPtrArray *
      buffers; /* its inputs among those, by slot: BUFFERs, and SHRINKs that are a run of one's elements */
  GPtrArray *inputs;  /* TinyBuffer: the memory of those, once it is wanted; each a reference */
  GPtrArray *outputs; /* TinyBuffer: what a run gave, each a reference */
  GPtrArray *results; /* of each node: that of the memory which it is in */
  GArray *variables;  /* TinyBoundVariable: of VARIABLE nodes, by number */
  gboolean
      *constants; /* of a recording, by slot: stays as it is from replay to replay; or NULL */
  OpenNumbers numbers;
  TinyDigest structure; /* of all but those numbers */
  TinyDigest plain;     /* of all but constants */
  TinyDigest digest;
} TinyRequest;
/* Its lists are those of a request before, and are there for one after it once it is cleared. */
void tiny_request_init (TinyRequest *self);
void tiny_request_clear (TinyRequest *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyRequest, tiny_request_clear)

/* Lists what lies under the nodes, numbers buffers and variables, digests the structure. */
void tiny_request_survey (TinyRequest *self);
/* Whether @node stands for a value that is not there: an argument of a function that is being
 * transformed (autograd/). */
gboolean tiny_request_is_placeholder (const TinyNode *node);
/* FALSE with an error where there is one under the nodes. */
gboolean tiny_request_check_placeholders (const TinyRequest *self, GError **error);
/* What is recorded now will be replayed with other inputs, and with the same of all else. */
void tiny_request_find_constants (TinyRequest *self);
/* (transfer full): the memory of input @i. */
TinyBuffer *tiny_request_get_input (const TinyRequest *self, guint i);
/* The nodes that were surveyed, in @graph, with PARAMs for BUFFERs and numbers for variables; those that no leaf places are
 * computed on @device. NULL when the thread is to stop. */
TinyNode *tiny_request_normalise (const TinyRequest *self,
                                  TinyGraph *graph,
                                  const char *device,
                                  GError **error);
/* (transfer none): the plan for what was surveyed, made if there is none. */
TinyPlan *tiny_request_find_plan (TinyRequest *self, GError **error);

G_END_DECLS
