/* SPDX-License-Identifier: MIT
 *
 * roofline.c: times the kernels of a capture and holds them against the roofs of their device. */
#include "tools/roofline.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-dtype.h"

enum { WARM_NS = 200000000, MAX_NS = 500000000, MAX_RUNS = 1000 };

static void
clear_point (gpointer data)
{
  RooflinePoint *point = data;
  g_free (point->text);
  g_free (point->name);
}

gboolean
roofline_init (Roofline *self, TinyDevice *device, gboolean again, GError **error)
{
  *self = (Roofline){ .device = device, .roof = tiny_roof_measure (device, again, error) };
  self->points = g_array_new (FALSE, TRUE, sizeof (RooflinePoint));
  g_array_set_clear_func (self->points, clear_point);
  return self->roof != NULL;
}

void
roofline_clear (Roofline *self)
{
  g_clear_pointer (&self->points, g_array_unref);
}

static int
compare_times (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *) a, y = *(const guint64 *) b;
  return x < y ? -1 : x > y;
}

/* The times of run r, launch i are at out[i * n_runs + r]. Returns how many runs there were. */
static guint
time_launches (
    const BenchCase *bench, TinyCapture *capture, guint n_runs, guint64 *out, GError **error)
{
  TinyLaunches *launches = tiny_capture_get_launches (capture);
  guint n = tiny_launches_get_n (launches);
  tiny_launches_keep_times (launches);
  gint64 start = tiny_timing_now_ns ();
  do
    if (!bench_case_replay (bench, capture, error))
      return 0;
  while (tiny_timing_now_ns () - start < WARM_NS);
  start = tiny_timing_now_ns ();
  for (guint r = 0; r < n_runs; r++) {
    if (!bench_case_replay (bench, capture, error))
      return 0;
    for (guint i = 0; i < n; i++) {
      TinyDevice *device;
      tiny_launches_get (launches, i, &device, &out[(gsize) i * n_runs + r]);
    }
    if (tiny_timing_now_ns () - start > MAX_NS && r >= 6)
      return r + 1;
  }
  return n_runs;
}

static void
add_point (
    Roofline *self, const char *text, const TinyExecutable *executable, double ns, guint n)
{
  double n_flops = (double) executable->n_flops, n_bytes = (double) executable->n_bytes;
  RooflinePoint point
      = { .text = g_strdup (text),
          .name = g_strdup (executable->name),
          .dtype = executable->dtype,
          .n_launches = n,
          .ns = ns,
          .gflops = n_flops / ns,
          .gbps = n_bytes / ns,
          .intensity = n_bytes > 0 ? n_flops / n_bytes : 0,
          .bound = tiny_roof_bound (self->roof, executable->dtype, n_flops, n_bytes) };
  point.share = point.bound.ns / ns;
  g_array_append_val (self->points, point);
}

gboolean
roofline_add (
    Roofline *self, const BenchCase *bench, TinyCapture *capture, guint n_runs, GError **error)
{
  TinyLaunches *launches = tiny_capture_get_launches (capture);
  guint n = tiny_launches_get_n (launches);
  n_runs = CLAMP (n_runs, 1, MAX_RUNS);
  g_autofree guint64 *times = g_new0 (guint64, (gsize) n * n_runs + 1);
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  guint n_done = time_launches (bench, capture, n_runs, times, error);
  if (n_done == 0)
    return FALSE;
  for (guint i = 0; i < n; i++) {
    guint64 ns;
    guint n_same = 0;
    double sum = 0;
    TinyDevice *device;
    const TinyExecutable *executable = tiny_launches_get (launches, i, &device, &ns);
    if (executable == NULL || device != self->device
        || !g_hash_table_add (seen, (gpointer) executable))
      continue;
    for (guint k = i; k < n; k++) {
      if (tiny_launches_get (launches, k, &device, &ns) != executable)
        continue;
      guint64 *row = times + (gsize) k * n_runs;
      qsort (row, n_done, sizeof *row, compare_times);
      sum += (double) MAX (row[n_done / 2], 1);
      n_same++;
    }
    add_point (self, bench->text, executable, sum / n_same, n_same);
  }
  return TRUE;
}

/* ---- the table ---- */
void
roofline_print_roofs (const Roofline *self, gboolean json)
{
  const TinyRoof *roof = self->roof;
  const char *device = tiny_device_get_name (self->device);
  g_autofree char *title = g_strescape (tiny_device_get_title (self->device), NULL);
  guint n_threads = MAX (tiny_device_get_target (self->device)->n_threads, 1);
  if (json)
    printf ("{\"device\": \"%s\", \"name\": \"%s\", \"threads\": %u, \"gflops\": {", device,
            title, n_threads);
  else
    printf ("%s: %s, %u thread%s\n  arithmetic ", device, tiny_device_get_title (self->device),
            n_threads, n_threads == 1 ? "" : "s");
  const char *comma = "";
  for (guint i = 0; i < TINY_N_DTYPES; i++) {
    if (roof->gflops[i] == 0)
      continue;
    printf (json ? "%s\"%s\": %.5g" : "%s%s %.0f GFLOP/s", comma, tiny_dtype_to_string (i),
            roof->gflops[i]);
    comma = ", ";
  }
  printf (json ? "}, \"memory\": [" : "\n  memory     ");
  for (guint i = 0; i < roof->n_levels; i++) {
    const TinyRoofLevel *level = &roof->levels[i];
    comma = i > 0 ? ", " : "";
    if (json)
      printf ("%s{\"level\": \"%s\", \"read\": %.5g, \"triad\": %.5g}", comma, level->name,
              level->read, level->triad);
    else if (level->triad > 0)
      printf ("%s%s %.0f GB/s (triad %.0f)", comma, level->name, level->read, level->triad);
    else
      printf ("%s%s %.0f GB/s", comma, level->name, level->read);
  }
  printf (json ? "]}\n" : "\n\n%-24s %-28s %11s %9s %8s %10s %7s  bound\n", "case", "kernel",
          "time", "GFLOP/s", "GB/s", "FLOP/byte", "share");
}

static void
print_point (const RooflinePoint *point, gboolean json)
{
  const char *bound = point->bound.by_memory            ? point->bound.level
                      : point->dtype != TINY_DTYPE_VOID ? tiny_dtype_to_string (point->dtype)
                                                        : "arithmetic";
  g_autofree char *times
      = point->n_launches > 1 ? g_strdup_printf (", %u ×", point->n_launches) : g_strdup ("");
  if (json)
    printf ("{\"case\": \"%s\", \"kernel\": \"%s\", \"launches\": %u, \"us\": %.6g, "
            "\"gflops\": %.6g, "
            "\"gbps\": %.6g, \"intensity\": %.6g, \"share\": %.4g, \"bound\": \"%s\"}\n",
            point->text, point->name, point->n_launches, point->ns * 1e-3, point->gflops,
            point->gbps, point->intensity, point->share, bound);
  else
    printf ("%-24s %-28s %8.2f us %9.2f %8.2f %10.3f %5.1f %%  %s%s\n", point->text,
            point->name, point->ns * 1e-3, point->gflops, point->gbps, point->intensity,
            point->share * 100, bound, times);
}

void
roofline_print_points (const Roofline *self, guint first, gboolean json)
{
  for (guint i = first; i < self->points->len; i++)
    print_point (&g_array_index (self->points, RooflinePoint, i), json);
  fflush (stdout);
}
