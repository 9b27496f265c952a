/* SPDX-License-Identifier: MIT
 *
 * eager-steps.c: training steps of the Fashion-MNIST network that are built, scheduled and run anew
 * each time, on random images: what the first costs and where, and what memory the rest take.
 *
 * usage: eager-steps [STEPS]. Memory is looked at after 50 steps, when the graph has been swept a
 * few times and the pools have filled, and at the end. What is live in a step is the peak of the
 * device's buffers in one step that follows a sweep, so that nothing dead is counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "tiny.h"

enum { BATCH = 128, N_CLASSES = 10, LEAST_STEPS = 2, WARM_STEPS = 50 };

typedef struct {
  TinyModule *net;
  TinyOptimizer *adam;
  TinyTensor *x, *y;
} Run;

static TinyTensor *
new_labels (void)
{
  gint32 labels[BATCH];
  for (gint32 i = 0; i < BATCH; i++)
    labels[i] = i % N_CLASSES;
  return g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_I32, (gint64[]){ BATCH }, 1, labels, sizeof labels));
}

static gboolean
set_up (Run *self, GError **error)
{
  if (tiny_runtime_get_default_device (error) == NULL)
    return FALSE;
  self->net = tiny_image_classifier_new (N_CLASSES);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (self->net);
  self->adam = tiny_adam_new ((TinyTensor *const *) parameters->pdata, parameters->len, 1e-3,
                              0.9, 0.999, 1e-8, 0);
  self->x = g_object_ref_sink (
      tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ BATCH, 1, 28, 28 }, 4, 0, 255));
  self->y = new_labels ();
  tiny_module_set_training (self->net, TRUE);
  return tiny_tensor_realize (self->x, error) && tiny_tensor_realize (self->y, error);
}

static gboolean
step (Run *self, double *out_loss, GError **error)
{
  g_autoptr (GPtrArray) others = tiny_module_get_buffers (self->net);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_cross_entropy (
      tiny_module_forward (self->net, self->x), self->y, NULL, -100, "mean", 0));
  tiny_optimizer_zero_grad (self->adam);
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  g_ptr_array_add (others, loss);
  return tiny_optimizer_step (self->adam, (TinyTensor *const *) others->pdata, others->len,
                              error)
         && tiny_tensor_item (loss, out_loss, error);
}

/* A number of bytes from /proc/self/status, such as VmRSS. */
static gint64
read_status (const char *name)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents ("/proc/self/status", &text, NULL, NULL))
    return 0;
  const char *line = strstr (text, name);
  return line ? g_ascii_strtoll (line + strlen (name) + 1, NULL, 10) << 10 : 0;
}

static gint64
live_bytes_of_step (Run *self, GError **error)
{
  TinyDevice *device = tiny_engine_get_device (tiny_runtime_get_default_device (NULL), error);
  TinyDeviceMemory memory;
  double loss;
  tiny_runtime_sweep (TRUE);
  tiny_device_reset_peak (device);
  if (!step (self, &loss, error))
    return -1;
  tiny_device_get_memory (device, &memory);
  return (gint64) memory.peak_bytes;
}

static gboolean
run (Run *self, int n_steps, double set_up_ms, GError **error)
{
  double loss = 0, first_ms = 0, later_ms = 0;
  gint64 rss = 0;
  TinyCounters counters = { 0 };
  tiny_runtime_reset_counters ();
  for (int i = 0; i < n_steps; i++) {
    gint64 start = g_get_monotonic_time ();
    if (!step (self, &loss, error))
      return FALSE;
    double ms = (double) (g_get_monotonic_time () - start) * 1e-3;
    *(i == 0 ? &first_ms : &later_ms) += ms;
    if (i == 0)
      tiny_runtime_get_counters (&counters);
    if (i == MIN (n_steps - 1, WARM_STEPS))
      rss = read_status ("VmRSS:");
  }
  gint64 growth = read_status ("VmRSS:") - rss, peak = read_status ("VmHWM:");
  gint64 live = live_bytes_of_step (self, error);
  if (live < 0)
    return FALSE;
  printf ("{\"steps\": %d, \"loss\": %.6f, \"set_up_ms\": %.3f, \"first_step_ms\": %.3f, "
          "\"schedule_ms\": %.3f, "
          "\"codegen_ms\": %.3f, \"compile_ms\": %.3f, \"compiles\": %" G_GUINT64_FORMAT
          ", \"ms_per_step\": %.3f, \"rss_growth_bytes\": %" G_GINT64_FORMAT
          ", \"rss_peak_bytes\": %" G_GINT64_FORMAT ", \"live_bytes\": %" G_GINT64_FORMAT "}\n",
          n_steps, loss, set_up_ms, first_ms, (double) counters.ns_schedule * 1e-6,
          (double) counters.ns_codegen * 1e-6, (double) counters.ns_compile * 1e-6,
          counters.n_compiles, later_ms / MAX (n_steps - 1, 1), growth, peak, live);
  return TRUE;
}

int
main (int argc, char **argv)
{
  int n_steps = argc > 1 ? atoi (argv[1]) : 500;
  Run self = { 0 };
  g_autoptr (GError) error = NULL;
  if (n_steps < LEAST_STEPS) {
    fprintf (stderr, "usage: eager-steps [STEPS, at least %d]\n", LEAST_STEPS);
    return 2;
  }
  gint64 start = g_get_monotonic_time ();
  gboolean good
      = set_up (&self, &error)
        && run (&self, n_steps, (double) (g_get_monotonic_time () - start) * 1e-3, &error);
  if (!good)
    fprintf (stderr, "eager-steps: %s\n", error->message);
  g_clear_object (&self.adam);
  g_clear_object (&self.net);
  g_clear_object (&self.x);
  g_clear_object (&self.y);
  return good ? 0 : 1;
}
