/* SPDX-License-Identifier: MIT
 *
 * tiny-worker.h: a process that runs a backend for this program, and requests to it.
 *
 * Thread-safe. A worker that crashes, ends or hangs is lost: every request under way and every later one fails with
 * TINY_STATUS_DEVICE_LOST and the reason. The process leads a group of its own, which is killed as a whole; it ends
 * with this program, however that ends. After fork() the child cannot use it. */
#pragma once

#include "device/tiny-backend.h"
#include "plugin/tiny-manifest.h"
#include "plugin/worker-message.h"

G_BEGIN_DECLS

/* Loads the manifest's backend in a process of its own: one for the module and its first device, and one more for
 * each further device. Errors: %TINY_ERROR_PLUGIN for a helper that cannot be run, and those of
 * tiny_backend_load(). */
TinyBackend *tiny_worker_load_backend (const TinyManifest *manifest, GError **error);

/* In the helper: obeys until the program is gone. Does not return. */
void tiny_worker_serve (int socket);

/* ---- between the files of the worker ---- */
typedef struct TinyWorker TinyWorker;
typedef struct TinyWorkerLane TinyWorkerLane;

/* Starts the process; nothing is loaded yet. @timeout_ms: for what no other is said for; 0: none. */
TinyWorker *tiny_worker_new (guint timeout_ms, GError **error);
TinyWorker *tiny_worker_ref (TinyWorker *self);
/* With the last reference the process is told to call fini() and end, and is killed if it does not. */
void tiny_worker_unref (TinyWorker *self);
gboolean tiny_worker_is_lost (TinyWorker *self);
/* Whether a device is open in it; noted, not asked. */
gboolean tiny_worker_has_device (TinyWorker *self);
void tiny_worker_set_device (TinyWorker *self, gboolean has_device);

/* A lane to write a request to; NULL with @error filled, and its status in
 * *@out_status, when the worker is lost. */
TinyWorkerLane *
tiny_worker_begin (TinyWorker *self, TinyStatus *out_status, TinyPluginError *error);
WorkerHead *tiny_worker_lane_get_head (TinyWorkerLane *lane);
/* Room for data of the request; *@out_address is where the worker sees it. NULL: there is no more. */
gpointer tiny_worker_lane_place (TinyWorkerLane *lane,
                                 gsize n_bytes,
                                 gsize alignment,
                                 guint64 *out_address);
/* A copy of @data in the lane; the worker's address of it, 0 if there is no room. */
guint64 tiny_worker_lane_copy (TinyWorkerLane *lane, gconstpointer data, gsize n_bytes);
/* Forgets what was placed. */
void tiny_worker_lane_reset (TinyWorkerLane *lane);
/* Sends @fd with the request to come. */
gboolean tiny_worker_lane_send (TinyWorkerLane *lane, int fd);
/* Asks and waits for the answer, no longer than @timeout_ms (0: as long as the worker's time-out). What is not negative
 * is an answer; @error is filled otherwise. */
TinyStatus tiny_worker_lane_ask (TinyWorkerLane *lane,
                                 WorkerVerb verb,
                                 guint timeout_ms,
                                 TinyPluginError *error);
/* TINY_STATUS_OUT_OF_MEMORY and what to say of a request that does not fit. */
TinyStatus tiny_worker_too_large (TinyPluginError *error);
void tiny_worker_end (TinyWorkerLane *lane);

/* A request that is no more than numbers; the answer's are written over them. */
TinyStatus tiny_worker_call (TinyWorker *self,
                             WorkerVerb verb,
                             guint64 numbers[WORKER_NUMBERS],
                             TinyPluginError *error);

/* Opens the device of that id, in @worker, for tiny_backend_open_device(); takes the reference to @worker also on
 * failure. */
TinyStatus tiny_worker_open_device (TinyWorker *worker,
                                    const char *id,
                                    TinyPluginDevice **out,
                                    const TinyDeviceTable **out_table,
                                    TinyPluginError *error);

/* ---- memory that both see (worker-memory.c) ---- */
typedef struct TinyWorkerMemory TinyWorkerMemory;

/* A part of it: where it is here, and where the worker has it. */
typedef struct {
  guint8 *here;
  guint64 there;
  gsize n_bytes;   /* that were asked for */
  gboolean is_cut; /* its own, as what follows */
  gpointer origin;
} TinyWorkerSpan;

TinyWorkerMemory *tiny_worker_memory_new (TinyWorker *worker);
/* After the worker's end as well. */
void tiny_worker_memory_free (TinyWorkerMemory *self);
/* @n_bytes, aligned to @alignment, a power of two. */
TinyStatus tiny_worker_memory_take (TinyWorkerMemory *self,
                                    gsize n_bytes,
                                    gsize alignment,
                                    TinyWorkerSpan *out,
                                    TinyPluginError *error);
void tiny_worker_memory_give (TinyWorkerMemory *self, const TinyWorkerSpan *span);

G_END_DECLS
