/* SPDX-License-Identifier: MIT
 *
 * probe.h: what a backend does, written down: two transcripts that differ show that a fault is one.
 *
 * Nothing here judges. Every line is the same in every run with the same backend: no addresses, no times. */
#pragma once

#include "broken.h"

typedef struct {
  const TinyPluginModule *module;
  const TinyRenderer *renderer;
  TinyPluginDevice *device;
  const TinyDeviceTable *table;
  TinyPluginQueue *queue;
  TinyTarget target;
  TinyPluginError error;
} Probe;

/* One line: where, and what. */
__attribute__ ((format (printf, 2, 3))) void say (const char *where, const char *format, ...);
/* The status, and whether there is a text with a failure. */
void say_status (Probe *self, const char *where, TinyStatus status);

/* Bytes to write, and room to read into. */
enum { PROBE_SMALL = 1000, PROBE_LARGE = (1 << 20) + 5000 };
extern unsigned char probe_data[PROBE_LARGE + 64], probe_back[PROBE_LARGE + 64];
void probe_fill (unsigned char *to, size_t n, unsigned salt);
/* The first @n_bytes of a buffer, and what a download of them writes behind. */
void say_bytes (Probe *self, const char *where, TinyPluginBuffer *buffer, uint64_t n);

/* Uploads and copies of these. */
TinyCommand
command_upload (TinyPluginBuffer *to, uint64_t offset, const void *from, uint64_t n);
TinyCommand command_download (TinyPluginBuffer *from, uint64_t offset, void *to, uint64_t n);
TinyCommand command_copy (TinyPluginBuffer *to,
                          uint64_t to_offset,
                          TinyPluginBuffer *from,
                          uint64_t offset,
                          uint64_t n);

TinyStatus
probe_submit_timed (Probe *self, const TinyCommand *commands, uint32_t n, uint64_t *ns);
TinyStatus probe_submit (Probe *self, const TinyCommand *commands, uint32_t n);
TinyPluginBuffer *probe_alloc (Probe *self, uint64_t n_bytes);
TinyStatus
probe_upload (Probe *self, TinyPluginBuffer *to, uint64_t offset, const void *data, uint64_t n);
TinyStatus
probe_download (Probe *self, TinyPluginBuffer *from, uint64_t offset, void *data, uint64_t n);

/* Compiles and loads; NULL after a failure, which is said. */
TinyPluginProgram *probe_load (Probe *self, const TinyLinear *linear);

/* ---- programs to run ---- */
Rewrite *kernel_new (const char *name, uint32_t n_params);
void
kernel_param (Rewrite *self, uint32_t n, unsigned dtype, uint32_t flags, uint64_t n_elements);
TinyLinear kernel_linear (const Rewrite *self);
void kernel_free (Rewrite *self);
/* The program that it rewrites, to set its grid. */
TinyLinear *kernel_whole (Rewrite *self);
/* Runs it, says what is in buffer 0, and frees it. */
void kernel_run (const Probe *probe, Rewrite *self);
/* out[i] = in[i] + variable 0 + i for i32 and a grid of @n; the buffer parameters: out, in. */
Rewrite *kernel_simple (const Probe *probe, const char *name, uint32_t n);
Value kernel_grid (const Probe *probe, Rewrite *self, unsigned axis);
Value kernel_int (const Probe *probe, Rewrite *self, int64_t value);

/* The sections. */
void probe_device (Probe *self);
void probe_programs (Probe *self);
void probe_late (Probe *self);
void probe_state (Probe *self);
void probe_points (Probe *self);
void probe_refused (Probe *self);
void probe_two_queues (Probe *self);
void probe_sync (Probe *self);
void probe_arithmetic (Probe *self);
void probe_structure (Probe *self);
void probe_lanes (Probe *self);
void probe_units (Probe *self);
void probe_import (Probe *self);
void probe_vendor (Probe *self);
void probe_operations (Probe *self);
/* Tables and names that are constants. */
void probe_vendor_tables (Probe *self, const char *id);
