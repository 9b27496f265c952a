/* SPDX-License-Identifier: MIT
 *
 * raw.h: the functions of the opened device, called past the core: without its pool, its rounding of
 * sizes and its checks. A failure that a case did not ask for is told to its trial. */
#pragma once

#include "conformance.h"

G_BEGIN_DECLS

typedef struct {
  ConfTrial *trial;
  TinyPluginDevice *device; /* the core's, which is in use meanwhile */
  const TinyDeviceTable *table;
  const TinyDeviceInfo *info;
  TinyPluginQueue *queue; /* of one's own */
  guint unit;             /* info.transfer_bytes, or 1 */
  TinyPluginError error;  /* of the last call */
} ConfRaw;

/* Makes a queue. FALSE where the trial has failed. */
gboolean conf_raw_begin (ConfRaw *self, ConfTrial *trial, const ConfSubject *subject);
void conf_raw_end (ConfRaw *self);

/* submit() of @table, which may be shorter than ours, and wait() where it has one: the work is done. Fills
 * @work's out_point, if it is that long. */
TinyStatus conf_table_submit (const TinyDeviceTable *table,
                              TinyPluginDevice *device,
                              TinyPluginQueue *queue,
                              TinySubmit *work,
                              TinyPluginError *error);
/* Any command. Failure is @what's. */
gboolean
conf_raw_submit (ConfRaw *self, const TinyCommand *commands, guint n, const char *what);
/* NULL where the trial has failed. */
TinyPluginBuffer *conf_raw_alloc (ConfRaw *self, guint64 n_bytes);
/* NULL where there is no memory for it, which the trial is not told. */
TinyPluginBuffer *conf_raw_try_alloc (ConfRaw *self, guint64 n_bytes);
void conf_raw_free (ConfRaw *self, TinyPluginBuffer *buffer);
/* Of whole units. */
gboolean conf_raw_upload (
    ConfRaw *self, TinyPluginBuffer *to, guint64 offset, const void *data, guint64 n_bytes);
gboolean conf_raw_download (
    ConfRaw *self, TinyPluginBuffer *from, guint64 offset, void *data, guint64 n_bytes);
gboolean conf_raw_copy (ConfRaw *self,
                        TinyPluginBuffer *to,
                        guint64 to_offset,
                        TinyPluginBuffer *from,
                        guint64 from_offset,
                        guint64 n_bytes);
/* Whether a failure is one: @status is @wanted and has a text. */
gboolean
conf_raw_check_failure (ConfRaw *self, TinyStatus status, TinyStatus wanted, const char *what);

/* The next multiple of the unit. */
guint64 conf_raw_round (const ConfRaw *self, guint64 n_bytes);

/* "TINY_STATUS_INVALID" or a number. */
const char *conf_status_to_string (TinyStatus status);
/* Bytes that tell where they are from: of @salt and their position. */
void conf_fill (guint8 *data, gsize n_bytes, guint64 salt);
/* That @data has them, from byte @first of the sequence on; else says where it has not. */
gboolean conf_check_fill (ConfTrial *trial,
                          const guint8 *data,
                          gsize n_bytes,
                          guint64 salt,
                          guint64 first,
                          const char *what);

G_END_DECLS
