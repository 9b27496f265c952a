/* SPDX-License-Identifier: MIT
 *
 * tensor-select.c: what is as large as the data says.
 *
 * A shape is known before anything runs, so these wait for the data and count on the host. */
#include "tensor/tensor-select.h"

#include <string.h>

#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-operations.h"

/* The positions along one axis of what is true, @n of them; the axis has @size and @inner elements
 * below each of its own. */
static TinyTensor *
positions_along (
    const char *device, const guint8 *mask, gsize n_all, gint64 n, gint64 size, gint64 inner)
{
  gboolean wide = size > G_MAXINT32;
  gsize n_bytes = (gsize) n * (wide ? 8 : 4);
  g_autofree gpointer data = g_malloc (MAX (n_bytes, 1));
  gint64 at = 0;
  for (gsize i = 0; i < n_all; i++)
    if (mask[i]) {
      gint64 position = (gint64) i / inner % size;
      if (wide)
        ((gint64 *) data)[at++] = position;
      else
        ((gint32 *) data)[at++] = (gint32) position;
    }
  return g_object_ref_sink (tiny_tensor_new_from_data (
      device, wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32, &n, 1, data, n_bytes));
}

gboolean
tiny_select_positions (TinyTensor *mask, GPtrArray *out, GError **error)
{
  guint rank;
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (mask, error);
  if (bytes == NULL)
    return FALSE;
  const gint64 *dims = tiny_tensor_get_shape (mask, &rank);
  gsize n_all;
  const guint8 *values = g_bytes_get_data (bytes, &n_all);
  gint64 n = 0, inner = (gint64) n_all;
  for (gsize i = 0; i < n_all; i++)
    n += values[i] != 0;
  const char *device = tiny_tensor_get_device (mask);
  if (rank == 0)
    g_ptr_array_add (out, positions_along (device, values, n_all, n, 1, 1));
  for (guint i = 0; i < rank; i++) {
    inner = dims[i] == 0 ? 1 : inner / dims[i];
    g_ptr_array_add (out, positions_along (device, values, n_all, n, MAX (dims[i], 1), inner));
  }
  return TRUE;
}
