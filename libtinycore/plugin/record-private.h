/* SPDX-License-Identifier: MIT
 *
 * record-private.h: what the files of a record's writer and reader share. */
#pragma once

#include "base/tiny-memory.h"
#include "device/tiny-table.h"
#include "plugin/tiny-record.h"

G_BEGIN_DECLS

/* Before the bytes of a frame, words of 64 bits. */
enum {
  RECORD_KIND,
  RECORD_CALL_NUMBER,
  RECORD_N_BYTES,
  RECORD_CHECK,
  RECORD_HEAD_CHECK,
  RECORD_HEAD_WORDS
};
enum { RECORD_HEAD_BYTES = 8 * RECORD_HEAD_WORDS };

guint64 record_checksum (const void *data, gsize size);

/* A field of a frame that is written. */
typedef struct {
  guint64 number;
  const void *bytes;
  gsize n_bytes;
} RecordValue;
#define RECORD_NUMBER(value) ((RecordValue){ .number = (guint64) (value) })
#define RECORD_TEXT(text)    ((RecordValue){ .bytes = (text) })
#define RECORD_BYTES(vector)                                                                   \
  ((RecordValue){ .bytes = (vector)->data, .n_bytes = (vector)->n_bytes })

/* Writes a frame of @values, which are those that its row lists, about @call; 0: it gets a number of its own, which
 * is returned. A thing is known by the number of the call that made it. */
guint64 record_write (TinyRecordKind kind, guint64 call, const RecordValue *values);
#define record_call(kind, ...) record_write (kind, 0, (RecordValue[]){ __VA_ARGS__ })
/* Of a call; @value and @data as the function gives them. Returns @status. */
TinyStatus record_result (
    guint64 call, TinyStatus status, const TinyPluginError *error, guint64 value, guint64 data);
/* The number of a block of data, which is written unless it was before; NULL is 0. */
guint64 record_data (const void *data, gsize size);
guint64 record_data_text (const char *text);
/* Ends the record where there was no memory for what is to be written; FALSE then. */
gboolean record_check_whole (const TinyVector *bytes);
/* ---- commands and linear programs as bytes (record-commands.c) ---- */
void record_put_number (TinyVector *out, guint64 number);
void record_put_command (TinyVector *out, const TinyRecordCommand *command);
void record_put_linear (TinyVector *out, const TinyLinear *linear);
gboolean record_check_commands (const void *bytes, gsize n_bytes);

/* ---- devices (record-device.c) ---- */
/* Puts a table of ours before the table of a device that call @number opened; *@device is replaced by ours, which
 * close() frees, with the table; @watch may be NULL. */
const TinyDeviceTable *record_device (guint64 number,
                                      TinyWatch *watch,
                                      TinyPluginDevice **device,
                                      const TinyDeviceTable *table);

G_END_DECLS
