/* SPDX-License-Identifier: MIT
 *
 * tiny-counters.c: the runtime's counters by name. */
#include "engine/tiny-counters.h"

#include "engine/tiny-runtime.h"

static const struct {
  const char *name;
  gsize offset;
} counters[] = {
  { "kernels", G_STRUCT_OFFSET (TinyCounters, n_kernels) },
  { "flops", G_STRUCT_OFFSET (TinyCounters, n_flops) },
  { "bytes", G_STRUCT_OFFSET (TinyCounters, n_bytes) },
  { "ns-run", G_STRUCT_OFFSET (TinyCounters, ns_run) },
  { "schedules", G_STRUCT_OFFSET (TinyCounters, n_schedules) },
  { "compiles", G_STRUCT_OFFSET (TinyCounters, n_compiles) },
};

guint64
tiny_get_counter (const char *name)
{
  TinyCounters now;
  tiny_runtime_get_counters (&now);
  for (guint i = 0; i < G_N_ELEMENTS (counters); i++)
    if (g_strcmp0 (name, counters[i].name) == 0)
      return G_STRUCT_MEMBER (guint64, &now, counters[i].offset);
  return 0;
}

void
tiny_reset_counters (void)
{
  tiny_runtime_reset_counters ();
}
