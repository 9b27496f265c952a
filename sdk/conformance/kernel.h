/* SPDX-License-Identifier: MIT
 *
 * kernel.h: a kernel in the IR's text form, compiled with given optimisations and run on a device
 * past the engine: no schedule, no cache, no other kernel's choice. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

typedef struct ConfKernel ConfKernel;

/* @text is a kernel (a SINK of STOREs, docs/ir.md) with parameters 0, 1, … all used; @opts as DEBUG=3 shows
 * them, "none", or NULL: as the heuristic chooses. The result (transfer none) is kept while few others
 * are asked for. Errors: those of the parser, codegen, the renderer and the plugin. */
ConfKernel *
conf_kernel_get (TinyDevice *device, const char *text, const char *opts, GError **error);
/* The same for a target that declares less than the device's. */
ConfKernel *conf_kernel_get_for (TinyDevice *device,
                                 const TinyTarget *target,
                                 const char *text,
                                 const char *opts,
                                 GError **error);
/* Lets go of all that are kept, and of their devices. */
void conf_kernels_clear (void);

/* How many instructions of @op with operands of @dtype it has, of at least @lanes. */
guint conf_kernel_count (const ConfKernel *self, TinyInstrOp op, TinyDType dtype, guint lanes);

/* Instructions that a launch runs, each as many times as its loops say, for each lane. */
double conf_kernel_count_work (const ConfKernel *self);

/* How long its fastest launch took so far, 0 before the first. */
guint64 conf_kernel_get_ns (const ConfKernel *self);

/* What a parameter is run on. */
typedef struct {
  gpointer data; /* goes up before the launch; what is there afterwards comes back */
  gsize n_bytes;
} ConfMemory;

/* Runs it with each parameter in a buffer of its own, @offset times the device's alignment from its
 * beginning and with room behind. Fails with %TINY_ERROR_LAUNCH, too, where the kernel changed what is
 * around its parameters or one that it only reads. */
gboolean conf_kernel_run (
    ConfKernel *self, ConfMemory *params, guint n_params, guint offset, GError **error);

G_END_DECLS
