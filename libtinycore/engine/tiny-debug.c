/* SPDX-License-Identifier: MIT
 *
 * tiny-debug.c: what DEBUG=1 … 7 print on standard error. */
#include "engine/tiny-debug.h"

#include "base/tiny-env.h"
#include "engine/tiny-roof.h"

void
tiny_debug_print_device (TinyDevice *device)
{
  TinyDevice *runner = tiny_device_get_runner (device);
  g_printerr ("device %s: %s%s%srenderer %s, architecture %s\n", tiny_device_get_name (device),
              runner != device ? "kernels that it does not claim run on " : "",
              runner != device ? tiny_device_get_name (runner) : "",
              runner != device ? ", " : "", tiny_device_get_renderer (device)->name,
              tiny_device_get_target (device)->arch);
}

void
tiny_debug_print_launch (TinyDevice *device,
                         const TinyExecutable *executable,
                         guint64 ns,
                         const char *labels)
{
  double at = (double) MAX (ns, 1), n_flops = (double) executable->n_flops,
         n_bytes = (double) executable->n_bytes;
  /* What a device beside another does by itself has no roof: kernels measured that. */
  const TinyRoof *roof
      = tiny_device_get_runner (device) == device ? tiny_roof_find (device) : NULL;
  char share[64] = "";
  if (roof != NULL) {
    TinyRoofBound bound = tiny_roof_bound (roof, executable->dtype, n_flops, n_bytes);
    g_snprintf (share, sizeof share, " %5.1f %% of %s", bound.ns / at * 100,
                bound.by_memory ? bound.level : "arithmetic");
  }
  g_printerr ("%-8s %-44s %10.2f us %8.2f GFLOP/s %7.2f GB/s%s%s%s\n",
              tiny_device_get_name (device), executable->name, at * 1e-3, n_flops / at,
              n_bytes / at, share, labels[0] != 0 ? " " : "", labels);
}

void
tiny_debug_print_kernel (const TinyLinearProgram *program, const char *source)
{
  static GMutex lock;
  g_autofree char *listing = TINY_DEBUG (6) || (TINY_DEBUG (4) && source == NULL)
                                 ? tiny_linear_to_string (&program->linear)
                                 : NULL;
  g_mutex_lock (&lock);
  g_printerr ("kernel %s: %s\n", program->linear.name,
              program->opts && program->opts[0] ? program->opts : "no optimisations");
  if (TINY_DEBUG (4) && source != NULL)
    g_printerr ("%s\n", source);
  if (listing != NULL)
    g_printerr ("%s\n", listing);
  g_mutex_unlock (&lock);
}

void
tiny_debug_print_assembly (TinyDevice *device, GBytes *binary)
{
  g_autofree char *text = tiny_device_disassemble (device, binary, NULL);
  if (text != NULL)
    g_printerr ("%s\n", text);
}
