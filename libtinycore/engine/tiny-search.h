/* SPDX-License-Identifier: MIT
 *
 * tiny-search.h: BEAM=n: lists of optimisations for one kernel, tried on the device. */
#pragma once

#include "device/tiny-device.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct {
  guint beam;        /* how many of the best lists each round goes on from */
  double seconds;    /* for the kernel, all in all; what has begun is finished */
  double timeout_ms; /* what would take longer to compile or to run once is left out */
} TinySearchOptions;

/* What BEAM, TINY_BEAM_SECONDS and TINY_BEAM_TIMEOUT say. */
TinySearchOptions tiny_search_get_options (void);

typedef struct {
  char *opts; /* the fastest list as text; the heuristic's own when nothing is faster */
  gboolean is_heuristic;
  guint64 ns_heuristic, ns_best; /* medians of the run-off */
  guint n_tried;                 /* lists made into linear programs */
  guint n_same;                  /* of these, the same program as another list's */
  guint n_timed;                 /* run to the end at least once */
  guint n_slow;                  /* left out for the time they would take */
  guint n_stopped;               /* hung or crashed; each is warned of */
  guint n_failed;                /* refused by codegen, compiler or device */
  guint n_wrong; /* gave other values than the heuristic's program; each is warned of */
} TinySearchResult;

/* Searches for @kernel on @device, which nobody else uses meanwhile. The result computes what the
 * heuristic's program computes and is not slower. Errors: those of compiling and running the
 * heuristic's program, and %TINY_ERROR_UNSUPPORTED for kernels with variables and for devices that
 * do not run anything. A thread that is told to stop does so between two candidates: then that is the error. */
gboolean tiny_search_run (TinyDevice *device,
                          TinyNode *kernel,
                          const TinySearchOptions *options,
                          TinySearchResult *out,
                          GError **error);
void tiny_search_result_clear (TinySearchResult *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinySearchResult, tiny_search_result_clear)

G_END_DECLS
