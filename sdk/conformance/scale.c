/* SPDX-License-Identifier: MIT
 *
 * scale.c: bounds of a case's size by memory and by time. */
#include "scale.h"

/* A device that does a part of a case in a thousandth of it never takes so long. */
#define MOMENT_NS G_GUINT64_CONSTANT (2000000000)

gsize
conf_scale_to_memory (TinyDevice *device, gsize n, gsize n_bytes, gsize n_largest)
{
  const TinyDeviceInfo *info = tiny_device_get_info (device);
  const guint64 all = info->memory_bytes != 0 ? info->memory_bytes / 2 : G_MAXUINT64;
  const guint64 one = info->max_buffer_bytes != 0 ? info->max_buffer_bytes / 2 : G_MAXUINT64;
  const guint64 most = MIN (all / MAX (n_bytes, 1), one / MAX (n_largest, 1));
  return (gsize) MAX (MIN (n, most), 1);
}

gsize
conf_scale_to_time (gsize n, gsize n_part, guint64 ns)
{
  const double most = (double) n_part * (double) MOMENT_NS / (double) MAX (ns, 1);
  return most < (double) n ? MAX ((gsize) most, n_part) : n;
}
