/* SPDX-License-Identifier: MIT
 *
 * bench-cases.h: what `tinycore bench` can measure. */
#pragma once

#include "tiny.h"

/* One case, read from a text such as "matmul:1024" or "conv:8x64x56x56:64x3x3:f16". */
typedef struct {
  char *text;
  TinyTensor *inputs[4]; /* realised */
  guint n_inputs;
  double n_flops, n_bytes; /* of one run; 0: not meaningful */
  guint per;               /* a run does this many of what is counted (launches) */
  /* Builds the result from the inputs. */
  TinyTensor *(*build) (TinyTensor *const *inputs, const gint64 *sizes);
  gint64 sizes[8];
} BenchCase;

/* Whether @text reads as a case. Errors: %TINY_ERROR_INVALID with what would fit. */
gboolean bench_case_check (const char *text, GError **error);
/* Reads @text and makes the inputs. Errors: %TINY_ERROR_INVALID with what would fit. */
BenchCase *bench_case_new (const char *text, GError **error);
void bench_case_free (BenchCase *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchCase, bench_case_free)
