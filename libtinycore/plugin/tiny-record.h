/* SPDX-License-Identifier: MIT
 *
 * tiny-record.h: everything that a program asks of its devices, in one file, and that file read again.
 *
 * With TINY_RECORD=FILE each backend that the registry loads is put behind tables of ours (record-module.c,
 * record-device.c) that write what is called, call, and write what came of it. While a program records, devices have
 * none of the ways around that: no map(), no import, no context, and compilers are asked rather than the cache.
 *
 * The file is a word that says what it is and frames: a head of five words with checksums, and as many bytes
 * as the head says, a multiple of 8. All numbers are little-endian words of 64 bits. Frames are written whole and at
 * once, a call before it is made: what is left of a program that was killed says in which call. A frame that the end
 * of the file cuts off does not count. What the frames mean is a table, record-frames.def; data are stored once, by
 * their digest, before the first frame that names them. */
#pragma once

#include "device/tiny-backend.h"

G_BEGIN_DECLS

#define TINY_RECORD_MAGIC "TINYREC\n"
enum {
  TINY_RECORD_FORMAT = 1,
  TINY_RECORD_MAX_FIELDS = 10,
  TINY_RECORD_DATA_BYTES
  = 16 << 20, /* downloads up to here are kept whole, of others the digest */
};

typedef enum {
#define RECORD_FRAME(id, name, fields) TINY_RECORD_##id,
#define RECORD_CALL(id, name, fields)  TINY_RECORD_##id,
#include "plugin/record-frames.def"
#undef RECORD_FRAME
#undef RECORD_CALL
  TINY_N_RECORD_KINDS
} TinyRecordKind;

/* A row of that table. */
typedef struct {
  const char *name, *fields;
  gboolean is_call;
} TinyRecordRow;
const TinyRecordRow *tiny_record_get_row (TinyRecordKind kind);
/* The name and kind of the @i-th field; FALSE if there are fewer. */
gboolean tiny_record_row_get_field (const TinyRecordRow *row,
                                    guint i,
                                    const char **out_name,
                                    gsize *out_length,
                                    char *out_kind);

/* ---- writing ---- */

/* Whether TINY_RECORD names a file that can be written; the first call opens it, and warns otherwise. */
gboolean tiny_record_is_on (void);
/* A backend that records and calls @inner, whose reference it takes. */
TinyBackend *tiny_record_backend (TinyBackend *inner, gboolean isolated, GError **error);
/* What this thread compiles next, as IR text; @opts NULL: by heuristic. */
void tiny_record_set_kernel (const char *text, const char *opts);

/* ---- reading ---- */
typedef struct TinyRecord TinyRecord;

typedef struct {
  guint64 number;
  const void *bytes; /* of texts (with their NUL) and commands */
  gsize n_bytes;
} TinyRecordField;

typedef struct {
  TinyRecordKind kind;
  guint64 call;   /* the number of the call that it is, or is about */
  guint64 offset; /* in the file */
  TinyRecordField fields[TINY_RECORD_MAX_FIELDS];
} TinyRecordFrame;

/* Reads and checks the frames. Errors: %TINY_ERROR_IO, and %TINY_ERROR_FORMAT with the place of what is wrong. */
TinyRecord *tiny_record_open (const char *path, GError **error);
void tiny_record_free (TinyRecord *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyRecord, tiny_record_free)

guint tiny_record_get_n_frames (const TinyRecord *self);
void tiny_record_get_frame (const TinyRecord *self, guint i, TinyRecordFrame *out);
/* What became of call @call; FALSE: nothing is known, the program ended in it. */
gboolean tiny_record_get_result (const TinyRecord *self, guint64 call, TinyRecordFrame *out);
/* Where the last frame was cut off; 0: nowhere. */
guint64 tiny_record_get_cut (const TinyRecord *self);
/* Reads block @id (transfer full), NULL for 0 (none). Errors: %TINY_ERROR_FORMAT where it is not what its digest says, and
 * those of tiny_opened_file_read_bytes(). */
gboolean
tiny_record_get_data (const TinyRecord *self, guint64 id, GBytes **out, GError **error);

/* A command of a submission. */
typedef struct {
  guint64 buffer, offset, n_bytes;
} TinyRecordSpan;
typedef struct {
  TinyCommandType type;
  guint32 flags;
  TinyRecordSpan dst, src;
  guint64 data, program;
  guint32 grid[3], n_buffers, n_variables;
  const TinyRecordSpan *buffers;
  const gint64 *variables;
} TinyRecordCommand;
/* Takes the next command off @field; FALSE at its end. What tiny_record_open() passed has no other ends. */
gboolean tiny_record_next_command (TinyRecordField *field, TinyRecordCommand *out);

/* The linear program of a compile call; its arrays are the block's. FALSE: it is none. Valid as long as @data. */
gboolean tiny_record_read_linear (const void *data, gsize size, TinyLinear *out);

/* What files and frames name data by: "sha256", shortened. */
void tiny_record_digest (const void *data, gsize size, char out[33]);

G_END_DECLS
