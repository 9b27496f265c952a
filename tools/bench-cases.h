/* SPDX-License-Identifier: MIT
 *
 * bench-cases.h: what `tinycore bench` can measure. */
#pragma once

#include "engine/tiny-capture.h"
#include "tiny.h"

enum { BENCH_MAX_INPUTS = 4 };

/* One case, read from a text such as "matmul:1024" or "conv:8x64x56x56:64x3x3:f16". */
typedef struct {
  char *text;
  TinyTensor *inputs[BENCH_MAX_INPUTS]; /* realised */
  guint n_inputs, n_weights; /* weights are the last of the inputs; calls are not given them */
  double n_flops, n_bytes;   /* of one run; 0: not meaningful */
  guint per;                 /* a run does this many of what is counted (launches) */
  /* Builds the result from the inputs. */
  TinyTensor *(*build) (TinyTensor *const *inputs, const gint64 *sizes);
  gint64 sizes[8];
} BenchCase;

/* Whether @text begins as a case does, so that it is one or a mistaken one. */
gboolean bench_case_is_named (const char *text);
/* Whether @text reads as a case. Errors: %TINY_ERROR_INVALID with what would fit. */
gboolean bench_case_check (const char *text, GError **error);
/* Reads @text and makes the inputs. Errors: %TINY_ERROR_INVALID with what would fit. */
BenchCase *bench_case_new (const char *text, GError **error);
void bench_case_free (BenchCase *self);

/* As tiny_capture_begin() and tiny_capture_replay(): the case's inputs are the recording's, so that a
 * replay computes all that depends on them. */
TinyCapture *bench_case_begin_capture (const BenchCase *self, GError **error);
gboolean bench_case_replay (const BenchCase *self, TinyCapture *capture, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchCase, bench_case_free)
