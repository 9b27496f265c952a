/* SPDX-License-Identifier: MIT
 *
 * tiny-device.h: one opened unit of a backend, with the renderer and architecture it is used with.
 *
 * Thread-safe. A device that reports TINY_STATUS_DEVICE_LOST stays lost: every later call fails at
 * once with TINY_ERROR_DEVICE_LOST, while freeing stays legal. Buffers, programs and queues hold
 * a reference to their device; it is closed when the last of them is gone. */
#pragma once

#include <gio/gio.h>

#include "device/tiny-backend.h"

G_BEGIN_DECLS

#define TINY_TYPE_DEVICE (tiny_device_get_type ())
TINY_API G_DECLARE_FINAL_TYPE (TinyDevice, tiny_device, TINY, DEVICE, GObject)

    typedef struct _TinyQueue TinyQueue;

/* What a device is opened with. */
typedef struct {
  const char *name;     /* as users name it: "CPU", "CUDA:1" */
  const char *id;       /* a candidate's, for the plugin's open() */
  TinyBackend *code;    /* whose renderer makes its programs; NULL: the device's own */
  const char *renderer; /* "" or NULL: the first */
  const char *arch;     /* "" or NULL: the machine at hand */
  TinyDevice *runner;   /* of kernels, where the backend runs beside the host; else NULL */
  gboolean
      is_alone; /* such a backend's device without a runner: it has no target, and no kernel runs */
} TinyDeviceOptions;

/* Asks @renderer for the target of @arch ("": its default) and checks the answer; @target->arch is
 * that of the device that is opened, or empty, and @name whose it is, for messages. */
gboolean tiny_renderer_read_target (const TinyRenderer *renderer,
                                    const char *arch,
                                    const char *name,
                                    TinyTarget *target,
                                    GError **error);

/* Runs @renderer's compile(); @name is whose it is, for messages. Thread-safe. Errors:
 * %TINY_ERROR_COMPILE with the compiler's log, and others. */
GBytes *tiny_renderer_compile (const TinyRenderer *renderer,
                               const char *name,
                               const TinyCompileArgs *args,
                               GError **error);

/* Opens a device. Errors name the device and what failed; an unknown renderer gets a list. */
TinyDevice *
tiny_device_new (TinyBackend *backend, const TinyDeviceOptions *options, GError **error);

/**
 * tiny_device_get_name:
 * @self: a device
 *
 * The name that opens this very device again: "CPU", "CUDA:1", "CPU:CLANG".
 *
 * Returns: the name
 */
TINY_API const char *tiny_device_get_name (TinyDevice *self);
TINY_API TinyBackend *tiny_device_get_backend (TinyDevice *self);
/* What it says of itself, for people. */
TINY_API const char *tiny_device_get_title (TinyDevice *self);
/* The canonical architecture, that is get_target()->arch. */
TINY_API const char *tiny_device_get_arch (TinyDevice *self);
const TinyDeviceInfo *tiny_device_get_info (TinyDevice *self);
/* The core's copy of the plugin's functions; what it leaves out is NULL. */
const TinyDeviceTable *tiny_device_get_table (TinyDevice *self);
const TinyTarget *tiny_device_get_target (TinyDevice *self);
const TinyRenderer *tiny_device_get_renderer (TinyDevice *self);
/* The device that kernels of this one are made for and run on, with this one's memory: itself, or
 * the one beside which it runs. Its target and renderer are this one's as well. */
TinyDevice *tiny_device_get_runner (TinyDevice *self);
/* Changes whenever the plugin whose renderer makes this device's code changes. */
const char *tiny_device_get_code_stamp (TinyDevice *self);
TINY_API gboolean tiny_device_is_lost (TinyDevice *self);

/* ---- code, without touching the device ---- */

/* Runs the renderer's compile(). Errors: %TINY_ERROR_COMPILE with the compiler's log, and others.
 * May be called from several threads at once. */
GBytes *tiny_device_compile (TinyDevice *self, const TinyCompileArgs *args, GError **error);
/* Text of a binary, or NULL with %TINY_ERROR_UNSUPPORTED. */
/* ---- operations (tiny-plugin.h) ---- */
/* Whose claim() and compile() they are, and what arch these are given. */
const TinyRenderer *tiny_device_get_claimer (TinyDevice *self);
const char *tiny_device_get_claim_arch (TinyDevice *self);
/* True if it may claim operations that are found in graphs. */
gboolean tiny_device_has_claims (TinyDevice *self);
/* True if it is asked about operations of @kind. */
gboolean tiny_device_claims_kind (TinyDevice *self, guint kind);
/* What its plugin says of @operation; a failure is in out->reason. Thread-safe. */
void tiny_device_claim (TinyDevice *self, const TinyOperation *operation, TinyClaim *out);
/* A binary of what was claimed, for a program called @name. */
GBytes *tiny_device_compile_operation (TinyDevice *self,
                                       const TinyOperation *operation,
                                       const char *name,
                                       GError **error);
/* What makes those binaries: its name, version, architecture and file, as one text (transfer full). */
char *tiny_device_describe_claims (TinyDevice *self);

char *tiny_device_disassemble (TinyDevice *self, GBytes *binary, GError **error);

/* ---- work ---- */

/* Runs @n commands one after the other on the device's own queue and returns when all is done.
 * @out_ns: NULL, or room for each command's duration. Adds no allocation to the plugin's own; one
 * thread at a time gets the queue. Errors: %TINY_ERROR_LAUNCH, %TINY_ERROR_DEVICE_LOST, … */
gboolean tiny_device_submit (
    TinyDevice *self, const TinyCommand *commands, guint n, guint64 *out_ns, GError **error);
/* The queue behind that (transfer none). */
TinyQueue *tiny_device_get_queue (TinyDevice *self);
/* Whether work goes on after it was submitted, see tiny-queue.h. */
gboolean tiny_device_is_asynchronous (TinyDevice *self);

/**
 * tiny_device_wait:
 * @self: a device
 * @error: return location
 *
 * Waits until all that was realised on it so far is done. Reading values does so by itself: this is for measuring
 * times, and for memory that other code uses as well. Errors: that of work that failed after it was submitted
 * (%TINY_ERROR_LAUNCH, %TINY_ERROR_DEVICE_LOST, …), if that was the last or everything since has been waiting
 * behind it.
 *
 * Returns: %TRUE if all is done
 */
TINY_API gboolean tiny_device_wait (TinyDevice *self, GError **error);

/**
 * tiny_device_get_context: (skip)
 * @self: a device
 * @error: return location
 *
 * The driver's own object in which a program makes memory for tiny_buffer_new_import().
 * Errors: %TINY_ERROR_UNSUPPORTED where there is none.
 *
 * Returns: (transfer none): the driver's handle, or %NULL
 */
TINY_API gpointer tiny_device_get_context (TinyDevice *self, GError **error);

/* ---- memory ---- */
typedef struct {
  guint64 live_bytes;    /* in buffers that exist, as allocated */
  guint64 peak_bytes;    /* the most live_bytes has been */
  guint64 pooled_bytes;  /* freed and kept for the next buffer */
  guint64 n_allocations; /* that reached the plugin */
  guint64 n_reuses;      /* that the pool served */
} TinyDeviceMemory;
TINY_API void tiny_device_get_memory (TinyDevice *self, TinyDeviceMemory *out);
/* peak_bytes becomes live_bytes. */
TINY_API void tiny_device_reset_peak (TinyDevice *self);
/* Gives the pooled memory back to the plugin. */
TINY_API void tiny_device_trim (TinyDevice *self);

G_END_DECLS
