/* SPDX-License-Identifier: MIT
 *
 * realize.h: numbers into a graph, and out of it. */
#pragma once

#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "engine/runtime-private.h"

static inline TinyNode *
node_of_floats (const float *values, const gint64 *dims, guint n_dims)
{
  g_autoptr (GError) error = NULL;
  gint64 n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= dims[i];
  const char *name = tiny_runtime_get_default_device (&error);
  g_assert_no_error (error);
  TinyDevice *device = tiny_engine_get_device (name, &error);
  g_assert_no_error (error);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, (gsize) n * sizeof (float));
  g_assert_true (tiny_buffer_upload (buffer, 0, values, (gsize) n * sizeof (float), &error));
  return tiny_runtime_buffer_node (buffer, TINY_DTYPE_F32, dims, n_dims);
}

/* Zeros, and a test that fails, where there are no values. */
static inline void
read_floats (TinyRoot *root, float *out, guint n)
{
  g_autoptr (GError) error = NULL;
  memset (out, 0, n * sizeof *out);
  if (!tiny_runtime_realize (&root, 1, &error)
      || !tiny_buffer_download (tiny_runtime_get_buffer (root->node), 0, out, n * sizeof *out,
                                &error))
    CASE_FAILS ("%s", error->message);
}

static inline void
realize (TinyRoot *root)
{
  g_autoptr (GError) error = NULL;
  tiny_runtime_realize (&root, 1, &error);
  g_assert_no_error (error);
}

/* Values that are there without being computed now. */
static inline void
assert_floats (TinyRoot *root, const float *expected, guint n)
{
  g_autofree float *got = g_new (float, n);
  g_assert_true (tiny_runtime_is_realized (root->node));
  read_floats (root, got, n);
  for (guint i = 0; i < n; i++)
    if (!(fabsf (got[i] - expected[i]) <= 1e-6F)) {
      CASE_FAILS ("element %u of %u is %.9g, and %.9g is right", i, n, (double) got[i],
                  (double) expected[i]);
      return;
    }
}
