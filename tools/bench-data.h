/* SPDX-License-Identifier: MIT
 *
 * bench-data.h: the numbers that measured programs work on, and their results as files. The peers'
 * programs (bench/peers/common.py) make the same numbers and write the same files. */
#pragma once

#include "tiny.h"

/* @offset + @scale times numbers in [-1/2, 1/2) that follow from @name. */
void bench_fill (const char *name, float *out, gsize n, double offset, double scale);
/* (transfer full): a tensor of such numbers, or of the error that there is no memory for them. */
TinyTensor *
bench_tensor (const char *name, const gint64 *shape, guint n_dims, double offset, double scale);
/* Writes every n-th element of @output as f32, the least n for which 65536 or fewer are written. */
gboolean bench_write_output (TinyTensor *output, const char *path, GError **error);
