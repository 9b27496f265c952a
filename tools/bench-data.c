/* SPDX-License-Identifier: MIT
 *
 * bench-data.c: numbers that follow from names, so that no file is passed around and no order of
 * making matters. */
#include "tools/bench-data.h"

#include "base/tiny-whole-file.h"

enum { MAX_WRITTEN = 65536 };

/* FNV-1a of the name: where its numbers start. */
static guint32
seed_of (const char *name)
{
  guint32 hash = 2166136261u;
  for (; *name != 0; name++)
    hash = (hash ^ (guint8) *name) * 16777619u;
  return hash;
}

void
bench_fill (const char *name, float *out, gsize n, double offset, double scale)
{
  guint32 start = seed_of (name) * 40503u;
  for (gsize i = 0; i < n; i++) {
    guint32 v = (guint32) i * 2654435761u + start;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    float u = (float) (v >> 8) * (1.0f / 16777216.0f) - 0.5f;
    out[i] = u * (float) scale + (float) offset;
  }
}

TinyTensor *
bench_tensor (const char *name, const gint64 *shape, guint n_dims, double offset, double scale)
{
  g_autoptr (TinyTensor) self
      = g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, shape, n_dims));
  if (tiny_tensor_get_error (self) != NULL)
    return g_steal_pointer (&self);
  gsize n = (gsize) tiny_tensor_get_n_elements (self);
  g_autofree float *values = g_new (float, n);
  bench_fill (name, values, n, offset, scale);
  if (!tiny_tensor_write_data (self, values, n * sizeof *values, NULL))
    g_warning ("%s: no values", name); /* memory that was just made can be written */
  return g_steal_pointer (&self);
}

gboolean
bench_write_output (TinyTensor *output, const char *path, GError **error)
{
  g_autoptr (TinyTensor) wide = g_object_ref_sink (tiny_tensor_cast (output, TINY_DTYPE_F32));
  g_autoptr (GBytes) data = tiny_tensor_get_data (wide, error);
  if (data == NULL)
    return FALSE;
  gsize n_bytes;
  const float *from = g_bytes_get_data (data, &n_bytes);
  gsize n = n_bytes / sizeof *from, step = MAX ((n + MAX_WRITTEN - 1) / MAX_WRITTEN, 1);
  gsize n_written = (n + step - 1) / step;
  g_autofree float *to = g_new (float, n_written + 1);
  for (gsize i = 0; i < n_written; i++)
    to[i] = from[i * step];
  return tiny_whole_file_report (path, (const char *) to, (gssize) (n_written * sizeof *to),
                                 error);
}
