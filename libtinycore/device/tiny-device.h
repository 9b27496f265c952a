/* SPDX-License-Identifier: MIT
 *
 * tiny-device.h: one opened unit of a backend, with the renderer and target it compiles for. */
#pragma once

#include "device/tiny-backend.h"

G_BEGIN_DECLS

#define TINY_TYPE_DEVICE (tiny_device_get_type ())
G_DECLARE_FINAL_TYPE (TinyDevice, tiny_device, TINY, DEVICE, GObject)

/* Opens the candidate @id of @backend as @name. Code comes from @renderer of @code_backend (which
 * may be another backend where the module takes any renderer) for @arch, "" being the renderer's own choice.
 *
 * Errors: what the plugin's open(), info() and target() report, naming the device. */
TinyDevice *tiny_device_new (TinyBackend *backend,
                             const char *id,
                             const char *name,
                             TinyBackend *code_backend,
                             const TinyRenderer *renderer,
                             const char *arch,
                             GError **error);

const char *tiny_device_get_name (TinyDevice *self);
const char *tiny_device_get_id (TinyDevice *self);
TinyBackend *tiny_device_get_backend (TinyDevice *self);
const TinyDeviceInfo *tiny_device_get_info (TinyDevice *self);
const TinyTarget *tiny_device_get_target (TinyDevice *self);
const TinyRenderer *tiny_device_get_renderer (TinyDevice *self);
/* Text that changes when the plugin that makes the code changes. */
const char *tiny_device_get_code_stamp (TinyDevice *self);

/* Runs commands in order and returns when they are done; @out_ns NULL or room for each one's
 * duration. Any thread; one submission runs at a time.
 *
 * Errors: %TINY_ERROR_LAUNCH, %TINY_ERROR_DEVICE_LOST (from then on for every call), … */
gboolean tiny_device_submit (TinyDevice *self,
                             const TinyCommand *commands,
                             guint n_commands,
                             guint64 *out_ns,
                             GError **error);

/* (transfer full): the binary of a kernel. Any thread, several at once. */
GBytes *tiny_device_compile (TinyDevice *self, const TinyCompileArgs *args, GError **error);
/* (transfer full): assembly text, or NULL with @error. */
char *tiny_device_disassemble (TinyDevice *self, GBytes *binary, GError **error);

/* Memory of the device, in bytes. */
typedef struct {
  guint64 live, peak, pooled; /* in buffers, its maximum, kept for reuse */
} TinyDeviceMemory;
void tiny_device_get_memory (TinyDevice *self, TinyDeviceMemory *out);
/* Gives pooled memory back to the device. */
void tiny_device_trim (TinyDevice *self);

G_END_DECLS
